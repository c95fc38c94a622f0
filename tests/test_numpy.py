"""`minijax.numpy` against `jax.numpy`: the same expressions, run eagerly, under jit, grad and vmap."""

import re
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.differential import assert_same, x64
from tests.numpy_cases import CASES, EAGER_CASES, ERROR_CASES, GRAD_CASES, INPUTS, lines

_NAMES = re.compile(r"\b(" + "|".join(INPUTS) + r")\b")


def _used(text):
    """The inputs that an expression names, outside of strings and attributes."""
    bare = re.sub(r'"[^"]*"|\.\w+|\w+(?==[^=])', "", text)
    return sorted(set(_NAMES.findall(bare)))


def _function(text, library, names):
    code = compile(text, text, "eval")

    def fun(*args):
        values = dict(zip(names, args, strict=True))
        return eval(code, {"jnp": library.numpy, "np": np, **values})

    return fun


def _arrays(library, names):
    return [library.numpy.asarray(INPUTS[name]) for name in names]


def _run(text, library, transform=None):
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


def _traced(library, fun):
    return library.jit(fun)


@pytest.mark.parametrize("text", lines(CASES) + lines(EAGER_CASES))
def test_eager(text):
    _compare(_run(text, minijax), _run(text, jax), where=text)


_NOT_UNDER_JIT = re.compile(
    r"\.name|finfo|hash\(|iscomplexobj|array_str|s_\[|jnp\.shape|jnp\.ndim|jnp\.size|nbytes|"
    r"issubdtype|promote_types|jnp\.float32 =="
)


@pytest.mark.parametrize("text", [t for t in lines(CASES) if not _NOT_UNDER_JIT.search(t)])
def test_jit_with_x64(text):
    with x64(True):
        assert_same(_run(text, minijax, _traced), _run(text, jax, _traced), where=text)


@pytest.mark.parametrize("text", lines(ERROR_CASES))
def test_errors(text):
    with pytest.raises(Exception) as theirs:
        _run(text, jax)
    with pytest.raises(Exception) as ours:
        _run(text, minijax)
    expected = theirs.value
    assert type(ours.value).__name__ == type(expected).__name__ or isinstance(
        ours.value, type(expected)
    ), f"{text}: {ours.value!r} is not {expected!r}"


def _gradient(library, fun):
    """The gradient of the sum of all results, each weighted differently."""

    def total(*args):
        outs = [x for x in jax.tree_util.tree_leaves(fun(*args))]
        parts = [
            library.numpy.sum(
                x * library.numpy.cos(library.numpy.arange(x.size) * 1.0).reshape(x.shape)
            )
            for x in outs
        ]
        return sum(parts)

    def run(*args):
        return library.grad(total, argnums=tuple(range(len(args))))(*args)

    return run


@pytest.mark.parametrize("text", lines(GRAD_CASES))
def test_grad(text):
    ours, theirs = _run(text, minijax, _gradient), _run(text, jax, _gradient)
    assert_same(ours, theirs, where=text, rtol=2e-4, atol=2e-5)


def _mapped(library, fun):
    """The function mapped over copies of its arguments that differ a little."""

    def run(*args):
        stacked = [library.numpy.stack([x, x * 2, x + 1]) for x in args]
        return library.jit(library.vmap(fun))(*stacked)

    return run


@pytest.mark.parametrize("text", lines(GRAD_CASES))
def test_vmap(text):
    ours, theirs = _run(text, minijax, _mapped), _run(text, jax, _mapped)
    assert_same(ours, theirs, where=text, rtol=2e-4, atol=2e-5)


_UNARY = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_not",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "frexp",
    "imag",
    "invert",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "modf",
    "nan_to_num",
    "negative",
    "positive",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
_BINARY = [
    "add",
    "arctan2",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "divmod",
    "equal",
    "float_power",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "isclose",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nextafter",
    "not_equal",
    "power",
    "remainder",
    "right_shift",
    "subtract",
    "true_divide",
]
_DTYPES = ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]


def _values(dtype, seed):
    rng = np.random.RandomState(seed)
    x = rng.randn(2, 3) * 3
    if dtype == "complex64":
        x = x + 1j * rng.randn(2, 3)
    if dtype == "bool":
        return x > 0
    if dtype == "uint8":
        x = np.abs(x)
    if dtype not in ("float16", "bfloat16", "float32", "complex64"):
        x = np.where(x.astype(int) == 0, 2, x)  # what division by zero gives is not defined
    return x.astype(jax.numpy.dtype(dtype))


def _call(library, name, args):
    args = [library.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(library.numpy, name)(*args)
    except Exception as error:
        return error


def _agree(name, args):
    ours, theirs = _call(minijax, name, args), _call(jax, name, args)
    where = f"{name}{[str(getattr(x, 'dtype', x)) for x in args]}"
    if isinstance(theirs, Exception):
        same = type(ours).__name__ == type(theirs).__name__ or isinstance(ours, type(theirs))
        assert same, f"{where}: {ours!r} is not {theirs!r}"
        return
    assert not isinstance(ours, Exception), f"{where}: {ours!r}"
    loose = any("16" in str(getattr(x, "dtype", "")) for x in args)
    tolerance = {"rtol": 0.05, "atol": 0.05} if loose else {}
    assert_same(ours, theirs, where=where, **tolerance)


@pytest.mark.parametrize("name", _UNARY)
def test_unary(name):
    for enabled in (False, True):
        with x64(enabled):
            for dtype in _DTYPES:
                _agree(name, [_values(dtype, 0)])
            for x in (2, 0.5, True, np.float32(2), [1.0])[: 3 if name == "angle" else 5]:
                _agree(name, [x])


@pytest.mark.parametrize("name", _BINARY)
def test_binary(name):
    with x64(len(name) % 2 == 0):
        for one in _DTYPES:
            for two in (one, "float32", "int8"):
                if name in ("power", "fmod") and "int" in one and two in (one, "int8", "bool"):
                    continue  # not defined for negative exponents, and for division by zero
                _agree(name, [_values(one, 0), np.abs(_values(two, 1)[0])])
            for x in (2, 2.5):
                _agree(name, [_values(one, 0), x])
                if name not in ("power", "heaviside", "fmod"):
                    _agree(name, [x, _values(one, 0)])
        _agree(name, [2, 3])
        _agree(name, [2.5, 3])


@pytest.mark.parametrize("text", ["i + f", "i + 1.5", "f + 1", "i / i", "b & 1", "f + np.ones(3)"])
def test_strict_promotion(text):
    results = []
    for library in (minijax, jax):
        with library.numpy_dtype_promotion("strict"):
            try:
                results.append(_run(text, library))
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
