"""The public face as type checkers see it: a program without errors, and mistakes that are
found.
"""

import ast
import builtins
import importlib
import inspect
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from tests.cases import everywhere
from tests.test_namespace import MODULES

TYPED = Path(__file__).parent / "typed"
MISTAKES = {
    number
    for number, line in enumerate((TYPED / "mistakes.py").read_text().splitlines(), 1)
    if line.endswith("  # wrong")
}


PROGRAMS = ("program.py", "mistakes.py")


def mypy(folder):
    """The errors that `mypy --strict` finds in the programs: their files, lines and messages."""
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(str(TYPED / name) for name in PROGRAMS)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"(\w+\.py):(\d+): error: (.*)", done.stdout)
    return [(file, int(line), message) for file, line, message in found]


def pyright(folder):
    """The same that pyright finds in its strict mode."""
    # basedpyright is pyright in a wheel that brings all it needs.
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps({"include": PROGRAMS, "typeCheckingMode": "strict"}))
    for name in PROGRAMS:
        (folder / name).write_text((TYPED / name).read_text())
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable,
         "-p", str(folder)],
        capture_output=True, text=True,
    )  # fmt: skip
    return [
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"])
        for d in json.loads(done.stdout)["generalDiagnostics"]
        if d["severity"] == "error"
    ]


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request, tmp_path_factory):
    """The errors of both programs, of one run: most of it is reading the package."""
    return request.param(tmp_path_factory.mktemp("typed"))


def test_program(errors):
    assert not [error for error in errors if error[0] == "program.py"]


def test_mistakes_are_found(errors):
    lines = {line for file, line, _ in errors if file == "mistakes.py"}
    assert len(MISTAKES) >= 20
    assert MISTAKES.issubset(lines)


def test_the_program_runs():
    subprocess.run([sys.executable, str(TYPED / "program.py")], check=True)


# -- the calls of all functions --------------------------------------------------------------------

# Names of arrays that stand for something else in these calls.
MISUSED = re.compile(
    r"jnp\.vectorize\(F|lax\.(DotDimensionNumbers|all_to_all|pbroadcast|ppermute|precv|psend|pshuffle)\("
)
# Transforms of functions without annotations: x is an array.
TRANSFORMS = [
    "jax.grad(lambda x: x**3)(2.0)", "jax.value_and_grad(lambda x: x * x)(x)[0]",
    "jax.grad(jax.checkpoint(lambda x: x**3))(2.0)", "jax.hessian(lambda x: x @ x)(x)",
    "jax.grad(lambda x, y: (x * y, y), has_aux=True)(2.0, 3.0)", "jax.jacfwd(lambda x: x * 2)(1.0)",
    "jax.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)", "jax.vmap(lambda x, y: x @ y)(x, x)",
    "jax.vjp(lambda x: x * x, 2.0)[1](1.0)", "jax.jvp(lambda x: x * x, (2.0,), (3.0,))",
    "jax.linearize(lambda x: x * x, 2.0)[1](1.0)", "jax.jit(lambda x: x * 2)(1.0)",
    "jax.pmap(lambda x: x * 2)(x)", "jax.checkpoint(lambda x: x + 1)(2.0)",
    "jax.custom_jvp(lambda x: x * x)(x)", "jax.eval_shape(lambda x: x + 1, 2.0)",
    "jax.make_jaxpr(lambda x: x * x)(2.0).jaxpr", "jax.tree.map(lambda x: x * 2, [1, 2])",
    "jax.lax.scan(lambda c, x: (c + x, c * x), x, x)", "jax.new_ref(x)[0]",
    "jax.lax.while_loop(lambda c: c < 3, lambda c: c * 2, 1.0)", "jax.typeof(x).sharding",
    "jax.lax.cond(True, lambda x: x + 1, lambda x: x * 2, 1.0)", "jax.core.Tracer",
]  # fmt: skip
# Types that leave open what is given: upstream's functions that are jitted lose theirs, too.
OPEN = re.compile(r"\b(Any|Unknown)\b|\|")


def _typed_rows(library):
    """A module of functions that give the calls of `everywhere`, with the types of all arrays."""
    space = {"jax": "", "jnp": ".numpy", "lax": ".lax", "special": ".scipy.special"}
    space |= {name: "." + name for name in ("nn", "random", "image", "scipy")}
    lines = ["import operator", "from typing import Any", "import numpy as np"]
    lines += [f"import {library}{module} as {name}" for name, module in space.items()]
    arrays = {row.text: {*row.arrays, "key", "KEY"} for row in everywhere.rows()}
    arrays |= {text: {"x"} for text in TRANSFORMS}
    for number, (text, named) in enumerate(sorted(arrays.items())):
        tree = list(ast.walk(ast.parse(text, mode="eval")))
        bound = {node.arg for node in tree if isinstance(node, ast.arg)}
        free = {node.id for node in tree if isinstance(node, ast.Name)} - bound - {*dir(builtins)}
        kinds = [
            f"{name}: {'jax.Array' if name in named else 'Any'}"
            for name in sorted(free - {*space, "operator", "np"})
        ]
        lines += [f"def call_{number}({', '.join(kinds)}):", f"    reveal_type({text})"]
    return "\n".join(lines) + "\n"


def _revealed(library, folder):
    """By the text of a call its type, as pyright sees it, or the error that it finds."""
    source = _typed_rows(library)
    folder.mkdir()
    (folder / "calls.py").write_text(source)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable,
         "-p", str(folder)],
        capture_output=True, text=True,
    )  # fmt: skip
    lines, found = source.splitlines(), {}
    for d in json.loads(done.stdout)["generalDiagnostics"]:
        text = lines[d["range"]["start"]["line"]].strip()
        if d["severity"] == "error":
            found[text] = "error: " + d["message"]
        elif d["severity"] == "information" and " is " in d["message"]:
            kind = d["message"].rsplit(' is "', 1)[1].rstrip('"')
            found.setdefault(text, re.sub(r"\b\w+(\.\w+)*\.(?=\w)", "", kind))
    return found


def test_calls_have_types_no_worse_than_upstreams(tmp_path):
    """No call is an error, or of an open type, where upstream's is not."""
    ours, theirs = (_revealed(name, tmp_path / name) for name in ("minijax", "jax"))
    assert len(theirs) > 2400
    worse = {
        text: (kind, ours.get(text))
        for text, kind in theirs.items()
        if not kind.startswith("error") and not OPEN.search(kind) and not MISUSED.search(text)
        if text not in ours or ours[text].startswith("error") or OPEN.search(ours[text])
    }
    assert not worse


# Annotations made of these words alone say what upstream takes or gives.
PLAIN = re.compile(
    r"\b(Array|ArrayLike|DTypeLike\w*|Shape|int|bool|str|float|Axis|Sequence|tuple|list|None|Union"
    r"|ndarray|Precision\w*|Hashable|jax|jaxlib|_jax|np|lax)\b|[\[\],|. ]"
)
OTHERWISE = {
    # overloads say it, of which `inspect` does not know
    "jax.numpy.linspace.return",
    # any number of arguments, which other names of the environment share
    "jax.host_count.return", "jax.host_id.return", "jax.host_ids.return",
    # one function makes the context managers of all settings
    "jax.transfer_guard.new_val",
    # a tree of references, of one for each leaf
    "jax.experimental.pallas.empty_ref_like.return",
}  # fmt: skip


def annotations(fun):
    """The annotations of the parameters and of the result of a function, as texts."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return {}
    found = {name: p.annotation for name, p in signature.parameters.items()}
    found["return"] = signature.return_annotation
    return {
        name: "Any" if a is inspect.Parameter.empty else getattr(a, "__name__", None) or str(a)
        for name, a in found.items()
    }


@pytest.mark.parametrize(
    "name",
    [
        "typing.ArrayLike",
        "typing.DTypeLike",
        "lax.PrecisionLike",
        "lax.ConvGeneralDilatedDimensionNumbers",
    ],
)
def test_unions_are_joined_to_names_in_quotes(name):
    module, _, union = name.rpartition(".")
    kinds = []
    for m in ("minijax", "jax"):
        alias = getattr(importlib.import_module(f"{m}.{module}"), union)
        joined = (alias | "Vector", None | alias)
        kinds.append(
            (typing.get_origin(alias), *map(typing.get_origin, joined), len(typing.get_args(alias)))
        )
    assert kinds[0] == kinds[1]


def public():
    """The public objects of both libraries, with their names: ours, and upstream's or None."""
    for module in MODULES:
        try:
            upstream = importlib.import_module(module)
        except ImportError:
            continue
        ours = importlib.import_module("mini" + module)
        for name in dir(ours):
            yield f"{module}.{name}", getattr(ours, name), getattr(upstream, name, None)


@pytest.mark.filterwarnings("ignore")
def test_signatures_say_what_upstreams_say():
    """No public function says `Any` where upstream's names arrays, dtypes, shapes or numbers."""
    wrong, seen = set(), 0
    for name, fun, other in public():
        if name.rpartition(".")[2].startswith("_") or isinstance(fun, type) or not callable(fun):
            continue
        mine = annotations(fun)
        for part, theirs in annotations(other).items():
            if part in mine and theirs not in ("Any", "None") and not PLAIN.sub("", theirs):
                seen += 1
                if mine[part] in ("Any", "typing.Any"):
                    wrong.add(f"{name}.{part}")
    assert seen > 3500
    assert wrong == OTHERWISE


@pytest.mark.filterwarnings("ignore")
def test_type_hints_are_found():
    """Wherever upstream's are: libraries that check or convert arguments ask for them."""
    wrong, seen = [], 0
    for name, mine, theirs in public():
        if not (callable(mine) and callable(theirs)):
            continue
        try:
            typing.get_type_hints(theirs)
        except (TypeError, NameError, AttributeError):
            continue
        seen += 1
        try:
            typing.get_type_hints(mine)
        except (TypeError, NameError, AttributeError) as error:
            wrong.append((name, error))
    assert seen > 1900
    assert not wrong
