"""The docstrings of public functions: what they must tell, and their examples, run as doctests."""

import ast
import doctest
import importlib
import inspect
import io
import pathlib
import re
from typing import TypeVar

import numpy as np
import pytest

import minijax
from minijax.core.primitive import Primitive
from minijax.scipy import stats

DISTRIBUTIONS = sorted(name for name in dir(stats) if inspect.ismodule(getattr(stats, name)))
MODULES = (
    "minijax.numpy", "minijax.numpy.fft", "minijax.numpy.linalg", "minijax.numpy.ufunc",
    "minijax.numpy.indexing.IndexRef", "minijax.arrays.array.ArrayImpl",
    "minijax.numpy.array_api.ArrayNamespaceInfo", "minijax", "minijax.lax", "minijax.lax.linalg",
    "minijax.random", "minijax.nn", "minijax.nn.initializers", "minijax.tree", "minijax.tree_util",
    "minijax.image", "minijax.ops", "minijax.scipy.linalg", "minijax.scipy.special",
    "minijax.scipy.stats", "minijax.scipy.signal", "minijax.scipy.ndimage", "minijax.scipy.fft",
    "minijax.scipy.integrate", "minijax.scipy.interpolate", "minijax.scipy.optimize",
    "minijax.scipy.cluster.vq", "minijax.scipy.spatial.transform", "minijax.scipy.sparse.linalg",
    *(f"minijax.scipy.stats.{name}" for name in DISTRIBUTIONS),
)  # fmt: skip
PACKAGE = pathlib.Path(minijax.__file__).parent
UNFINISHED = set()  # of modules whose docstrings are still to be brought to the contract

_AWKWARD = (  # no verb or noun to begin with
    "The same", "Of", "What", "That", "Those", "Which", "How", "Where", "When", "By", "With", "From",
    "For", "In", "As", "To",
)  # fmt: skip
_NOT_FUNCTIONS = (Primitive, TypeVar)
_TYPES = re.compile(
    r"shape|dtype|pytree|[Tt]race|process|thread|['\"]\w+['\"]"
    r"|\b(bool|boolean|int|array|number|bytes|device|tree|function|string)s?\b"
)
_DEFAULTS = {  # examples run as in a fresh process, whatever other tests have set
    "jax_enable_x64": False, "jax_default_matmul_precision": None, "jax_numpy_rank_promotion":
    "allow", "jax_numpy_dtype_promotion": "standard", "jax_debug_nans": False, "jax_disable_jit":
    False,
}  # fmt: skip


def _loaded(name):
    """Return a public module or class by its dotted name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


def _documented(home):
    """Yield by name a class and the members of a module or class that the package defines."""
    if inspect.isclass(home):
        yield home.__name__, home
    seen = set()
    for name in sorted(dir(home)):
        member = inspect.getattr_static(home, name, None) or getattr(home, name)
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if name.startswith("_") or id(member) in seen or isinstance(member, _NOT_FUNCTIONS):
            continue
        seen.add(id(member))
        if callable(member) and (getattr(member, "__module__", None) or "").startswith("minijax"):
            yield name, member


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PACKAGE.rglob("*.py")}),
    ids=lambda path: str(path.relative_to(PACKAGE.parent)),
)
def test_first_words(folder):
    """No docstring of a function or a class begins as an answer to a question that is not asked."""
    awkward = tuple(f"{words} " for words in _AWKWARD)
    found = [
        f"{path.name}:{node.lineno} {doc.splitlines()[0]}"
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and (doc := ast.get_docstring(node) or "").startswith(awkward)
    ]
    assert not found, found


def _faults(doc):
    """Yield what a docstring lacks."""
    if not doc:
        yield "has no docstring"
        return
    first = doc.splitlines()[0]
    if not re.match(r"[A-Z0-9`|\"]", first) or first.startswith(tuple(w + " " for w in _AWKWARD)):
        yield f"begins with {first.split()[0]!r}"
    if "Source" not in doc:
        yield "names no source"
    if ">>>" not in doc:
        yield "has no example"
    if not _TYPES.search(doc):
        yield "mentions no shape, dtype or type"
    count = len([line for line in doc.splitlines() if line])
    if count > 14:
        yield f"has {count} lines"


def _names_in_scope():
    modules = {"jnp": "numpy", "lax": "lax", "random": "random", "nn": "nn"}
    scope = {short: _loaded(f"minijax.{name}") for short, name in modules.items()}
    return scope | {"jax": minijax, "np": np}


def _failures(name, doc):
    """Run the examples of a docstring; return the report of those that fail."""
    test = doctest.DocTestParser().get_doctest(doc, _names_in_scope(), name, None, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=report.write)
    return report.getvalue()


@pytest.fixture
def defaults():
    before = {name: getattr(minijax.config, name) for name in _DEFAULTS}
    for name, value in _DEFAULTS.items():
        minijax.config.update(name, value)
    yield
    for name, value in before.items():
        minijax.config.update(name, value)


@pytest.mark.parametrize("module", [name for name in MODULES if name not in UNFINISHED])
def test_public_docstrings_keep_the_contract(module):
    found = _documented(_loaded(module))
    faults = {name: list(_faults(inspect.getdoc(member))) for name, member in found}
    assert faults and not {name: told for name, told in faults.items() if told}


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_public_docstrings_run(module, defaults):
    found = [(name, inspect.getdoc(member) or "") for name, member in _documented(_loaded(module))]
    reports = [_failures(f"{module}.{name}", doc) for name, doc in found if ">>>" in doc]
    assert not "".join(reports)


def test_faults_of_a_docstring_are_found():
    assert list(_faults("")) == ["has no docstring"]
    assert len(list(_faults("What is computed."))) == 4
    assert not list(_faults("Return x, of its shape. Source: NumPy's `f`.\n\n>>> 1\n1"))
    assert "Expected" in _failures("wrong", ">>> jnp.ones(2).shape\n(3,)")
