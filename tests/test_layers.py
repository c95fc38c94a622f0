"""The house stands: imports run downward, the client of jaxlib is touched in one place only."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent / "minijax"

GROUND = {"config", "deprecated", "errors", "dtypes", "monitoring", "tree_util", "tree", "version"}
FLOORS = {
    **dict.fromkeys(GROUND, 0),
    "core": 1,
    "runtime": 1,
    "lowering": 2,
    "arrays": 3,
    "transforms": 4,
    "lax": 5,
    "jax": 7,
    "difftest": 7,
    "explain": 7,
}
LIBRARY = 6


def files():
    return sorted(ROOT.rglob("*.py"))


def room(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return FLOORS.get(name, LIBRARY)


def imports(path: pathlib.Path):
    """The absolute names that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                assert alias.name != "*", f"{path}:{node.lineno}: wildcard import"
                yield f"{node.module}.{alias.name}", node.lineno


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downward(path):
    here = room(path)
    if here == "__init__":
        return
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] != "minijax" or len(parts) < 2:
            continue
        there = parts[1]
        assert floor(there) <= floor(here), f"{path}:{line}: {here} imports {there}, which is above"
        if {here, there} == {"core", "runtime"}:
            raise AssertionError(f"{path}:{line}: core and runtime do not know each other")


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_outside_imports(path):
    here = room(path)
    for name, line in imports(path):
        parts = name.split(".")
        where = f"{path}:{line}: imports {name}"
        if parts[0] == "jax":
            assert here == "difftest", where
        if parts[0] == "jaxlib":
            allowed = here in ("runtime", "tree_util") or (here == "lowering" and "mlir" in name)
            assert allowed, where
        outside = {"jax", "jaxlib", "minijax", "numpy", "ml_dtypes"}
        if here == "jax" and path.parent.name == "testing":
            outside.add("absl")  # the helpers of tests written for absl's test cases
        assert parts[0] in outside or parts[0] in sys.stdlib_module_names, where


def test_import_starts_nothing():
    """Importing minijax starts no XLA client, runs no computation, and imports no upstream."""
    program = (
        "import sys, minijax, minijax.numpy\n"
        "from minijax.runtime import platforms, executables\n"
        "assert not platforms._clients, platforms._clients\n"
        "assert not executables._in_memory\n"
        "assert 'jax' not in sys.modules\n"
        "x = minijax.numpy.arange(3.) + 1\n"
        "repr(x); x.tolist(); minijax.grad(lambda x: (x * x).sum())(x)\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
