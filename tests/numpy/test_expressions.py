"""`minijax.numpy` against `jax.numpy`: the same expressions, run eagerly and under jit."""

import collections
import functools
import operator
import re
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.cases.numpy_cases import CASES, EAGER_CASES, ERROR_CASES, INPUTS, lines
from tests.harness.differential import assert_same, x64
from tests.harness.expected_errors import expect
from tests.harness.rules import outcome

_NAMES = re.compile(r"\b(" + "|".join(INPUTS) + r")\b")


def _used(text):
    """The inputs that an expression names, outside of strings and attributes."""
    bare = re.sub(r'"[^"]*"|\.\w+|\w+(?==[^=])', "", text)
    return sorted(set(_NAMES.findall(bare)))


def _function(text, library, names):
    code = compile(text, text, "eval")

    def fun(*args):
        values = dict(zip(names, args, strict=True))
        return eval(code, {"jax": library, "jnp": library.numpy, "np": np, **values})

    return fun


def _arrays(library, names):
    return [library.numpy.asarray(INPUTS[name]) for name in names]


def run_text(text, library, transform=None):
    names = _used(text)
    fun = _function(text, library, names)
    if transform is not None:
        fun = transform(library, fun)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fun(*_arrays(library, names))


def _compare(ours, theirs, **options):
    """Arrays as arrays; whatever else is in the results must be equal."""
    mine, tree = jax.tree_util.tree_flatten(
        ours, is_leaf=lambda x: isinstance(x, minijax.Array) or x is None
    )
    yours, same_tree = jax.tree_util.tree_flatten(theirs, is_leaf=lambda x: x is None)
    assert tree == same_tree
    for a, b in zip(mine, yours, strict=True):
        if isinstance(b, (jax.Array, float, complex)):
            assert_same(a, b, **options)
        else:
            assert type(a) is type(b) and a == b, options


_NOT_UNDER_JIT = re.compile(
    r"\.name|finfo|hash\(|iscomplexobj|array_str|s_\[|jnp\.shape|jnp\.ndim|jnp\.size|nbytes|"
    r"issubdtype|promote_types|jnp\.float32 =="
)


UNDER_JIT = [text for text in lines(CASES) if not _NOT_UNDER_JIT.search(text)]
_TOGETHER = 16  # expressions that are one program: each program costs more than what is in it


def _compiled(text, library, wide):
    """The result of an expression under `jit`, the error that it raises, and whether all is arrays."""
    return _compiled_part(UNDER_JIT.index(text) // _TOGETHER, library, wide)[text]


@functools.cache
def _compiled_part(part, library, wide):
    return _compiled_together(UNDER_JIT[part * _TOGETHER :][:_TOGETHER], library, wide)


def _compiled_together(texts, library, wide):
    errors, arrays = {}, {}

    def program(values):
        found = {}
        for text in texts:
            names = _used(text)
            fun = _function(text, library, names)
            run = lambda _: fun(*[values[name] for name in names])
            found[text], errors[text] = outcome(run, library)
            leaves = library.tree.leaves(found[text])
            arrays[text] = all(isinstance(x, library.Array) for x in leaves)
        return found

    names = sorted({name for text in texts for name in _used(text)})
    with x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = dict(zip(names, _arrays(library, names), strict=True))
        results, error = outcome(lambda m: m.jit(program)(values), library)
    if error is None:
        return {text: (results[text], errors[text], arrays[text]) for text in texts}
    if len(texts) == 1:
        return {texts[0]: (None, error, False)}
    return {text: _compiled_together([text], library, wide)[text] for text in texts}


@pytest.mark.parametrize("text", UNDER_JIT)
def test_jit_with_x64(text):
    theirs, error, _ = _compiled(text, jax, True)
    ours, our_error, _ = _compiled(text, minijax, True)
    if error is None:
        if our_error is not None:
            raise our_error
        assert_same(ours, theirs, where=text)
        return
    expect(error)
    assert type(our_error).__name__ == type(error).__name__, f"{our_error!r} is not {error!r}"


@pytest.mark.parametrize("text", lines(CASES) + lines(EAGER_CASES))
def test_eager(text):
    theirs, error, arrays = (
        _compiled(text, jax, False) if text in UNDER_JIT else (None, None, False)
    )
    if error is not None or not arrays:
        theirs = run_text(text, jax)
    _compare(run_text(text, minijax), theirs, where=text)


@pytest.mark.parametrize("text", lines(ERROR_CASES))
def test_errors(text):
    with pytest.raises(Exception) as theirs:
        run_text(text, jax)
    with pytest.raises(Exception) as ours:
        run_text(text, minijax)
    expected = theirs.value
    expect(expected)
    assert type(ours.value).__name__ == type(expected).__name__ or isinstance(
        ours.value, type(expected)
    ), f"{text}: {ours.value!r} is not {expected!r}"


@pytest.mark.parametrize("text", ["i + f", "i + 1.5", "f + 1", "i / i", "b & 1", "f + np.ones(3)"])
def test_strict_promotion(text):
    results = []
    for library in (minijax, jax):
        with library.numpy_dtype_promotion("strict"):
            try:
                results.append(run_text(text, library))
            except Exception as error:
                results.append(type(error).__name__)
    if isinstance(results[1], str):
        assert results[0] == results[1]
    else:
        assert_same(*results, where=text)


@pytest.mark.parametrize("setting", ["raise", "warn", "allow"])
@pytest.mark.parametrize("text", ["m + f", "m + 1", "m + s", "m * m"])
def test_rank_promotion(text, setting):
    outcomes = []
    for library in (minijax, jax):
        names = _used(text)
        fun, args = _function(text, library, names), _arrays(library, names)
        with library.numpy_rank_promotion(setting), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                fun(*args)
                outcomes.append(bool(found))
            except ValueError:
                outcomes.append("ValueError")
    assert outcomes[0] == outcomes[1]


def test_eager_is_one_program_and_traced_is_inlined():
    """A composite function compiles once when eager and leaves no call in a jaxpr."""
    jaxpr = str(minijax.make_jaxpr(minijax.numpy.var)(np.ones((2, 3), np.float32)))
    assert "jit" not in jaxpr and "reduce_sum" in jaxpr


@pytest.mark.parametrize(
    "text",
    ["m + f", "f + 1", "f * 2.5", "i + f", "f**2", "f**0.5", "m.sum(0)", "m @ f", "f == 1",
     "m.reshape(-1)", "m.T", "jnp.maximum(f, 0)", "jnp.sin(i)", "i / i", "-f", "f[:, None]",
     "jnp.concatenate([m, m])", "jnp.mean(m)", "jnp.einsum('ij,jk->ki', m, m2)", "m.astype(int)"],
)  # fmt: skip
def test_jaxprs_have_the_same_primitives(text):
    def primitives(library):
        names = _used(text)
        jaxpr = library.make_jaxpr(_function(text, library, names))(*_arrays(library, names))
        return [str(eqn.primitive) for eqn in jaxpr.jaxpr.eqns]

    assert primitives(minijax) == primitives(jax)


def test_setitem_shows_what_to_write():
    x = minijax.numpy.ones(3)
    with pytest.raises(TypeError, match=r"x\.at\[0\]\.set\(y\)"):
        x[0] = 1.0


def test_scalar_types():
    for name in ("float32", "bfloat16", "int4", "bool_", "complex64", "uint8"):
        ours, theirs = getattr(minijax.numpy, name), getattr(jax.numpy, name)
        assert np.dtype(ours) == np.dtype(theirs)
        assert ours == theirs.dtype and hash(ours) == hash(theirs)
        assert not isinstance(ours(1), ours)
        assert ours.__name__ == theirs.__name__


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("complex_part", [0, 1j])
def test_convolutions_of_all_small_sizes(name, mode, complex_part):
    """Either may be the longer one, and of either parity."""
    rng = np.random.RandomState(0)
    for m in range(1, 7):
        for n in range(1, 7):
            a, v = (
                rng.randint(-3, 4, size) + complex_part * rng.randint(-3, 4, size)
                for size in (m, n)
            )
            found = getattr(minijax.numpy, name)(a.astype("complex64"), v.astype("complex64"), mode)
            np.testing.assert_array_equal(found, getattr(np, name)(a, v, mode))


def _reflected(base):
    """A class that knows what to do with an array on its left."""
    names = [
        f"__r{name}__"
        for name in ("add", "sub", "mul", "truediv", "matmul", "and", "pow", "divmod")
    ]
    methods = {name: lambda self, other, name=name: name for name in [*names, "__eq__", "__gt__"]}
    return type("Reflected", (base,), methods)


_Pair = collections.namedtuple("_Pair", "a b")
CONTAINERS = {
    "list": [1.0, 2.0], "tuple": (1.0, 2.0), "dict": {}, "set": set(), "frozenset": frozenset(),
    "deque": collections.deque(), "ordered": collections.OrderedDict(), "named": _Pair(1, 2),
    "range": range(2), "text": "ab", "none": None,
    **{f"of {base.__name__}": type("Plain", (base,), {})() for base in (list, tuple, dict, set)},
    **{f"knowing {base.__name__}": _reflected(base)() for base in (list, tuple, dict, set)},
}  # fmt: skip
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "@": operator.matmul,
    "&": operator.and_, "**": operator.pow, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "divmod": divmod,
}  # fmt: skip


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_operators_with_containers(container, scalar):
    """Python's own containers are refused; of others the class is asked, as for all operators."""

    def found(m, apply, reverse):
        x, other = m.numpy.int32(2) if scalar else m.numpy.ones(2), CONTAINERS[container]
        try:
            return apply(other, x) if reverse else apply(x, other)
        except TypeError:
            return TypeError

    for name, apply in OPERATORS.items():
        for reverse in (False, True):
            assert found(minijax, apply, reverse) == found(jax, apply, reverse), (name, reverse)
