"""The functions of `minijax.numpy` on elements: every pair of dtypes, numbers, lists, 64 bits."""

import functools
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.cases.numpy_cases import OLD
from tests.harness.differential import assert_same, x64
from tests.harness.expected_errors import expect

_UNARY = """
    abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan
    atanh bitwise_count bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad
    degrees exp exp2 expm1 fabs floor frexp imag invert iscomplex isfinite isinf isnan isneginf
    isposinf isreal log log10 log1p log2 logical_not modf nan_to_num negative positive rad2deg
    radians real reciprocal rint round sign signbit sin sinc sinh sqrt square tan tanh trunc
"""
_BINARY = """
    add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd greater
    greater_equal heaviside hypot isclose lcm ldexp left_shift less less_equal logaddexp
    logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter
    not_equal power remainder right_shift subtract true_divide
"""
# Upstream 0.12 computes these in another way, with other weak types.
_CHANGED = set() if OLD else {"hypot", "log2", "sinc"}
FUNCTIONS = {*_UNARY.split(), *_BINARY.split()}
UNARY = [name for name in _UNARY.split() if name not in _CHANGED]
BINARY = [name for name in _BINARY.split() if name not in _CHANGED]
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


def _outcomes(library, name, cases, compiled):
    """Results of the cases, or the errors they raise: all of them in one program, or one by one."""
    function, errors = getattr(library.numpy, name), {}

    def run(arrays):
        results = {}
        for case, args in cases.items():
            try:
                given = [
                    arrays[case, i] if isinstance(x, np.ndarray) else x for i, x in enumerate(args)
                ]
                results[case] = function(*given)
            except Exception as error:
                errors[case] = error
        return results

    arrays = {
        (case, i): library.numpy.asarray(x)
        for case, args in cases.items()
        for i, x in enumerate(args)
        if isinstance(x, np.ndarray)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = (library.jit(run) if compiled else run)(arrays)
    return {**results, **errors}


def _agree(name, calls, number):
    """All calls in one program of each library, and two of them, in turn, without."""
    label = lambda x: f"{x.dtype}{list(x.shape)}" if hasattr(x, "dtype") else repr(x)
    cases = {", ".join(map(label, args)): args for args in calls}
    assert len(cases) == len(calls)
    chosen = [[*cases][(number + half) % len(cases)] for half in (0, len(cases) // 2)]
    for compiled, some in ((True, cases), (False, {case: cases[case] for case in chosen})):
        ours, theirs = (_outcomes(m, name, some, compiled) for m in (minijax, jax))
        for case in some:
            _same(ours[case], theirs[case], f"{name}({case})")


def _same(ours, theirs, where):
    if isinstance(theirs, Exception):
        expect(theirs)
        same = type(ours).__name__ == type(theirs).__name__ or isinstance(ours, type(theirs))
        assert same, f"{where}: {ours!r} is not {theirs!r}"
        return
    assert not isinstance(ours, Exception), f"{where}: {ours!r}"
    assert_same(ours, theirs, where=where)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for enabled in (False, True):
        numbers = (2, 0.5, True, np.float32(2), [1.0])
        calls = [
            *[[_values(dtype, 0)] for dtype in _DTYPES[:: 1 + 2 * enabled]],
            *[[x] for x in numbers[: 2 if enabled else 3 if name == "angle" else 5]],
        ]
        with x64(enabled):
            _agree(name, calls, UNARY.index(name))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    calls = [[2, 3], [2.5, 3]]
    for number, one in enumerate(_DTYPES):
        # Each function meets every dtype, with its own kind or with another.
        mixed = (number + len(name) // 2) % 2
        two = ("float32", "int8")[number % 2] if mixed else one
        undefined = name in ("power", "fmod")  # for negative exponents, and division by zero
        if not (undefined and "int" in one and two in (one, "int8", "bool")):
            calls.append([_values(one, 0), np.abs(_values(two, 1)[0])])
        x, y = ((2, 2.5), (2.5, 2))[number // 2 % 2]
        if number % 2 or name in ("power", "heaviside", "fmod"):
            calls.append([_values(one, 0), x])
        else:
            calls.append([y, _values(one, 0)])
    with x64(len(name) % 2 == 0):
        _agree(name, calls, BINARY.index(name))


WEAK = {  # makes a value of one type, which may be weak
    "float": lambda m: 1.5, "int": lambda m: 2, "bool": lambda m: True,
    "weak": lambda m: m.numpy.asarray(1.5),
    "weak vector": lambda m: m.numpy.broadcast_to(m.numpy.asarray(1.5), (2,)),
    "weak integers": lambda m: m.numpy.broadcast_to(m.numpy.asarray(2), (2,)),
    "float32": lambda m: m.numpy.float32(1.5), "bool_": lambda m: m.numpy.bool_(True),
    "int32": lambda m: m.numpy.int32(2), "float16": lambda m: m.numpy.float16(1.5),
    "vector": lambda m: m.numpy.ones(2), "booleans": lambda m: m.numpy.ones(2, bool),
}  # fmt: skip


@functools.cache
def _of_weak_types(m):
    return {kind: make(m) for kind, make in WEAK.items()}


@pytest.mark.parametrize("name", BINARY)
def test_weak_types_of_pairs(name):
    """Numbers, scalars and arrays of weak and strong types, each with each.

    All are traced, which gives their types; each kind is met once in either place without.
    """

    def found(m, pairs, values):
        def types(one, two):
            try:
                out = getattr(m.numpy, name)(values[one], values[two])
            except Exception as error:
                return type(error).__name__
            return [(x.dtype, x.weak_type, x.shape) for x in m.tree.leaves(out)]

        return {pair: types(*pair) for pair in pairs}

    def traced(m):
        types, values = {}, _of_weak_types(m)
        m.eval_shape(lambda: types.update(found(m, pairs, values)))
        return types

    pairs = [(one, two) for one in WEAK for two in WEAK]
    if name in ("pow", "power"):  # upstream waits for the value of an exponent that is an array
        pairs = [(one, two) for one, two in pairs if two not in ("int32", "bool_")]
    theirs = traced(jax)
    assert traced(minijax) == theirs
    apart = BINARY.index(name) % len(WEAK)
    kinds = [*WEAK]
    turned = [pair for pair in zip(kinds, kinds[apart:] + kinds[:apart]) if pair in theirs]
    assert found(minijax, turned, _of_weak_types(minijax)) == {
        pair: theirs[pair] for pair in turned
    }


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_integers_to_any_power(dtype):
    # NumPy's: upstream's is wrong from an exponent of 64 on.
    bases = np.asarray([0, 1, 2, 3, 5, 7, 101], dtype)[:, None]
    exponents = np.asarray([0, 1, 2, 31, 63, 64, 65, 100, 127], dtype)
    expected = np.power(bases, exponents)
    power = minijax.numpy.power
    for function in (power, minijax.jit(power), minijax.vmap(power, (0, None))):
        np.testing.assert_array_equal(function(bases, exponents), expected)
