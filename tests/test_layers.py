"""Imports run downward, the client of jaxlib is touched in one place only."""

import ast
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent / "minijax"

GROUND = {
    "accepted_options", "collector", "config", "deprecated", "dtypes", "errors", "installation", "late_names", "monitoring", "namespace",
    "tracebacks", "tree", "tree_util", "version",
}  # fmt: skip
LAYERS = {
    **dict.fromkeys(GROUND, 0),
    "core": 1,
    "runtime": 1,
    "array_members": 1,  # the types of members, for type checkers only
    "typing": 1,
    "arguments": 2,
    "lowering": 2,
    "arrays": 3,
    "transforms": 4,
    "features": 5,
    "lax": 6,
    "jax": 8,
    "difftest": 8,
    "explain": 8,
}
LIBRARY = 7


def files():
    return sorted(ROOT.rglob("*.py"))


def module(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


def layer(name: str) -> int:
    return LAYERS.get(name, LIBRARY)


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
    here = module(path)
    if here == "__init__":
        return
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] != "minijax" or len(parts) < 2:
            continue
        there = parts[1]
        assert layer(there) <= layer(here), f"{path}:{line}: {here} imports {there}, which is above"
        if {here, there} == {"core", "runtime"}:
            raise AssertionError(f"{path}:{line}: core and runtime do not know each other")


# Names of modules as data: of objects that have moved, of classes that pickles of programs may hold.
NAMED_AS_DATA = {"deprecated.py", "runtime/saved.py"}


def test_modules_named_by_strings_are_below():
    """A module whose whole name is a string is one that `import_module` may be given."""
    names = {named(path) for path in files()}
    for path in files():
        here = module(path)
        if here == "__init__" or str(path.relative_to(ROOT)) in NAMED_AS_DATA:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in names - {"minijax"}:
                there = layer(node.value.split(".")[1])
                assert there <= layer(here), f"{path}:{node.lineno}: {node.value} is above"


def named(path: pathlib.Path) -> str:
    parts = ("minijax", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("package", ["core", "lowering", "arrays", "transforms"])
def test_files_of_a_package_have_an_order(package):
    """None imports another, wherever in it the import stands, that comes to import it in turn."""
    paths = {named(path): path for path in (ROOT / package).glob("*.py")}
    below = {
        name: {there if there in paths else there.rpartition(".")[0] for there, _ in imports(path)}
        & set(paths) - {name}
        for name, path in paths.items()
    }
    while below:
        lowest = {name for name, others in below.items() if not others & set(below)}
        assert lowest, f"these import each other: {sorted(below)}"
        below = {name: others for name, others in below.items() if name not in lowest}


def test_files_say_what_they_are_for_and_not_what_they_import():
    heads = {path: ast.get_docstring(ast.parse(path.read_text())) or "" for path in files()}
    assert not [path for path, text in heads.items() if "ay import" in text]


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_outside_imports(path):
    here = module(path)
    for name, line in imports(path):
        parts = name.split(".")
        where = f"{path}:{line}: imports {name}"
        if parts[0] == "jax":
            assert here == "difftest", where
        if parts[0] == "jaxlib":
            mlir = here in ("lowering", "features") and "mlir" in name
            allowed = here in ("runtime", "tree_util") or mlir
            assert allowed, where
        outside = {"jax", "jaxlib", "minijax", "numpy", "ml_dtypes"}
        if here == "jax" and path.parent.name == "testing":
            outside.add("absl")  # the helpers of tests written for absl's test cases
        if path.name == "showing_trees.py":
            outside.add("treescope")  # which is told of arrays where it is installed
        assert parts[0] in outside or parts[0] in sys.stdlib_module_names, where


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_sets_attributes_of_classes_of_another(path):
    """Features extend the machine through `core.hooks`."""
    tree = ast.parse(path.read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("minijax")
        for alias in node.names
        if (alias.asname or alias.name)[0].isupper()
    }
    for node in ast.walk(tree):
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        for target in targets if isinstance(node, (ast.Assign, ast.AugAssign)) else ():
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                where = f"{path}:{node.lineno}: {ast.unparse(target)}"
                assert target.value.id not in imported, where
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            assert getattr(node.args[0], "id", "") not in imported, f"{path}:{node.lineno}"


WEEKEND_SET = ("core", "transforms", "lowering", "arrays")
# Names of features: placements, stages, references, high-level types, custom rules, symbolic sizes.
FEATURES_NAMES = {
    "AbstractRef", "DimExpr", "Ref", "auto_axes", "checkpoint", "closure_convert", "custom_jvp",
    "custom_vjp", "explicit_of", "export", "has_qdd", "hi_makers", "hijax", "is_ref",
    "key_reuse", "manual_axes", "memory_space", "policy", "qdd", "remat", "reshard", "sums_of",
    "symbolic", "unreduced", "varying", "vma",
}  # fmt: skip


def test_the_weekend_set_does_not_know_features():
    found = set()
    for path in (path for part in WEEKEND_SET for path in (ROOT / part).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {getattr(node, field, None) for field in ("id", "attr", "arg", "name")}
            found |= {(str(path.relative_to(ROOT)), name) for name in names & FEATURES_NAMES}
            if isinstance(node, ast.Attribute) and node.attr == "explicit":
                found.add((str(path.relative_to(ROOT)), "explicit"))
    assert not found


def test_slots_are_filled_once_and_by_their_names():
    from minijax.core.hooks import Hooks

    def double(trace, primitive, args, params):
        return args

    class Machine:
        pass

    hooks = Hooks()
    hooks.method("run_primitive", Machine, "process")
    with pytest.raises(NotImplementedError, match="Nothing runs primitives"):
        hooks.run_primitive(None, None, (), {})
    hooks.fill(run_primitive=double)
    assert hooks.run_primitive is Machine.process is double
    for name in ("run_primitive", "no_such_slot"):
        with pytest.raises(ValueError, match=name):
            hooks.fill(**{name: double})


def test_a_feature_adds_a_column_of_rules():
    from minijax.core.primitive import RuleColumn
    from minijax.lax import cos_p, sin_p

    cost = RuleColumn("cost")

    @cost(sin_p)
    def of_sine(size):
        return 4 * size

    assert cost.rule(sin_p) is of_sine
    assert cost.rule(cos_p) is RuleColumn("cost").rule(sin_p) is None


def names_of_primitives(function):
    """Expressions within a function that are the name of a primitive, as text."""
    found = {"eqn.primitive.name", "primitive.name", "str(primitive)", "str(prim)"}
    for node in ast.walk(function):
        pairs = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            values = getattr(node.value, "elts", ())
            pairs = zip(node.targets[0].elts, values, strict=False)
        elif isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
        found |= {ast.unparse(t) for t, value in pairs if is_name_of_primitive(value)}
    return found


def is_name_of_primitive(node):
    text = ast.unparse(node)
    return text.endswith("primitive.name") or text in ("str(primitive)", "str(prim)")


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_table_has_names_of_primitives(path):
    """What depends on the primitive is a rule or data on it, or in a column of rules."""
    tree = ast.parse(path.read_text())
    for function in [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))]:
        known = names_of_primitives(function)
        is_known = lambda node, known=known: (
            ast.unparse(node) in known or is_name_of_primitive(node)
        )
        for node in ast.walk(function):
            where = f"{path}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"
            if isinstance(node, ast.Compare) and any(map(is_known, (node.left, *node.comparators))):
                asked = isinstance(node.ops[0], (ast.In, ast.NotIn)) and is_known(node.left)
                texts = [n for n in (node.left, *node.comparators) if isinstance(n, ast.Constant)]
                assert not asked and not texts, where
            if isinstance(node, ast.Subscript):
                assert not is_known(node.slice), where
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
                "get",
                "setdefault",
            ):
                assert not (node.args and is_known(node.args[0])), where


def test_tables_of_names_are_found(tmp_path):
    for line in (
        "name in _TABLE", "eqn.primitive.name == 'scan'", "_TABLE.get(name)", "_TABLE[name]",
        "'jit' == name",
    ):  # fmt: skip
        path = tmp_path / "minijax.py"
        path.write_text(f"def f(eqn):\n    name, ins = eqn.primitive.name, 1\n    return {line}\n")
        with pytest.raises(AssertionError, match=r"minijax\.py:3"):
            test_no_table_has_names_of_primitives(path)


def test_programs_are_given_their_operands():
    """The groups of operands of each primitive are the inputs of its programs."""
    import minijax
    import minijax.numpy as jnp
    from minijax import lax

    def every(x, ys):
        def body(carry, y):
            carry = lax.cond(carry[0] > 0, lambda c: (c[0] + y, c[1]), lambda c: c, carry)
            again = lambda c: (c[0] * x, c[1] + 1)
            return lax.while_loop(lambda c: c[1] < 3, again, carry), (y, carry[0])

        return minijax.checkpoint(minijax.jit(lambda: lax.scan(body, (x, 0), ys)))()

    seen = set()

    def check(jaxpr):
        for eqn in jaxpr.eqns:
            calls = eqn.primitive.programs
            if calls is None:
                continue
            seen.add(eqn.primitive.name)
            avals = [v.aval for v in eqn.invars]
            groups = calls.groups(avals, eqn.params)
            if calls.mapped is not None:
                groups[calls.mapped] = [a.update(shape=a.shape[1:]) for a in groups[calls.mapped]]
            for name in calls.inputs:
                for program in calls.held(name, eqn.params):
                    given = [a.strip_weak_type() for a in calls.given(name, groups)]
                    assert given == [v.aval.strip_weak_type() for v in program.invars]
                    check(getattr(program, "jaxpr", program))
            count = 0 if calls.carried is None else len(groups[calls.carried])
            results = [v.aval for v in eqn.outvars[:count]]
            assert results == calls.held(calls.result, eqn.params)[0].out_avals[:count]

    check(minijax.make_jaxpr(every)(1.0, jnp.ones(3)).jaxpr)
    assert seen >= {"cond", "jit", "remat2", "scan", "while"}


SHARED = {"bad_calls", "benchmarks", "cases", "harness", "typed"}  # by tests of several parts


def test_tests_mirror_the_package():
    tests = pathlib.Path(__file__).parent
    folders = {path.name for path in tests.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert all((ROOT / name).is_dir() for name in folders - SHARED)


def test_sections_of_slots_name_the_modules_that_fill_them():
    section, sections = "", {}
    for line in (ROOT / "core" / "hooks.py").read_text().splitlines():
        if heading := re.match(r"    # -- .*: (.*?)(?:;.*)? -+$", line):
            section = heading[1]
        elif slot := re.match(r"    def (\w+)\(", line):
            sections[slot[1]] = section.split(", ")
    filled = set()
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "hooks.fill":
                here = named(path).removeprefix("minijax.")
                for slot in node.keywords:
                    wanted = sections[slot.arg]
                    assert any(f"{here}.".startswith(f"{name}.") for name in wanted), slot.arg
                    filled.add(slot.arg)
    assert {name for name, modules in sections.items() if modules != [""]} == filled
