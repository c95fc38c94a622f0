"""The elementwise functions of `lax` against upstream: values, types, derivatives, batching,
text.
"""

import itertools

import jax
import ml_dtypes
import mpmath
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, x64

F32, F64, C64, C128 = np.float32, np.float64, np.complex64, np.complex128
F16, BF16, I32, U32, BOOL = np.float16, ml_dtypes.bfloat16, np.int32, np.uint32, np.bool_
I8, U8, I16, U64, I64 = np.int8, np.uint8, np.int16, np.uint64, np.int64
REAL = (F32, BF16, F16)
INEXACT = (*REAL, C64)
INTEGER = (I32, U32, I8, U8)
NUMBER = (*INEXACT, *INTEGER)
WIDE = {F32: F64, C64: C128, I32: I64, U32: U64}


def words(text):
    return text.split()


# name -> (dtypes, range of real values)
UNARY = {
    **dict.fromkeys(words("neg sign square"), (NUMBER, (-3, 3))),
    **dict.fromkeys(words("floor ceil round is_finite"), (REAL, (-3, 3))),
    **dict.fromkeys(words("exp exp2 expm1 logistic tanh sin cos tan"), (INEXACT, (-3, 3))),
    **dict.fromkeys(words("atan sinh cosh asinh"), (INEXACT, (-3, 3))),
    **dict.fromkeys(words("log sqrt rsqrt"), (INEXACT, (0.1, 4))),
    "log1p": (INEXACT, (-0.9, 4)),
    "cbrt": (REAL, (-4, 4)),
    **dict.fromkeys(words("asin acos atanh"), (INEXACT, (-0.9, 0.9))),
    "acosh": (INEXACT, (1.1, 4)),
    "abs": ((*INEXACT, I32, I8), (-3, 3)),
    **dict.fromkeys(words("real imag"), ((C64,), (-3, 3))),
    "conj": ((C64, F32), (-3, 3)),
    "reciprocal": (INEXACT, (0.5, 3)),
    **dict.fromkeys(words("erf erfc"), (REAL, (-3, 3))),
    "erf_inv": (REAL, (-0.9, 0.9)),
    **dict.fromkeys(words("lgamma digamma"), (REAL, (0.5, 6))),
    **dict.fromkeys(words("bessel_i0e bessel_i1e"), (REAL, (-12, 12))),
    "bitwise_not": ((*INTEGER, BOOL), (-9, 9)),
    **dict.fromkeys(words("population_count clz"), (INTEGER, (-9, 99))),
}
BINARY = {
    **dict.fromkeys(words("add sub mul div max min"), (NUMBER, (-3, 3))),
    "rem": ((*REAL, *INTEGER), (-9, 9)),
    "pow": (INEXACT, (0.3, 3)),
    "atan2": (INEXACT, (0.2, 3)),
    "complex": ((F32,), (-3, 3)),
    "nextafter": (REAL, (-3, 3)),
    "mulhi": (INTEGER, (-(2**31), 2**31)),
    **dict.fromkeys(words("eq ne"), ((*NUMBER, BOOL), (-2, 2))),
    **dict.fromkeys(words("ge gt le lt"), ((*REAL, *INTEGER, BOOL), (-2, 2))),
    **dict.fromkeys(words("bitwise_and bitwise_or bitwise_xor"), ((*INTEGER, BOOL), (-99, 99))),
    **dict.fromkeys(
        words("shift_left shift_right_logical shift_right_arithmetic"), (INTEGER, (0, 40))
    ),
    **dict.fromkeys(words("igamma igammac igamma_grad_a"), (REAL, (0.3, 6))),
    "random_gamma_grad": ((F32,), (0.3, 6)),
    "zeta": (REAL, (1.5, 5)),
}
# Since then upstream has changed some derivatives, and what it converts on the host.
OLD = tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12)
NO_JVP = {"nextafter", "zeta", "igamma_grad_a", "random_gamma_grad"}


def values(dtype, shape, bounds, seed):
    rng = np.random.RandomState(seed)
    low, high = bounds
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.rand(*shape) > 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(low, info.min), min(high, info.max)
        return rng.uniform(low, high, shape).astype(dtype)
    x = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        return (x + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return x.astype(dtype)


def compare(call, *args, **options):
    """`call(library, *args)` in both libraries."""
    assert_same(call(minijax, *args), call(jax, *args), **options)


def cases(table, count):
    for name, (dtypes, bounds) in table.items():
        for dtype in dtypes:
            yield pytest.param(name, dtype, bounds, count, id=f"{name}-{np.dtype(dtype).name}")


ALL = [*cases(UNARY, 1), *cases(BINARY, 2)]


@pytest.mark.parametrize(("name", "dtype", "bounds", "count"), ALL)
def test_values(name, dtype, bounds, count):
    args = [values(dtype, (3, 4), bounds, seed) for seed in range(count)]
    compare(lambda lib: getattr(lib.lax, name)(*args), where=name)
    if dtype in (F32, C64, I32):
        compare(lambda lib: lib.jit(getattr(lib.lax, name))(*args), where=name)


@pytest.mark.parametrize(
    ("name", "dtype", "bounds", "count"), [c for c in ALL if c.values[1] in WIDE]
)
def test_values_64_bits(name, dtype, bounds, count):
    with x64(True):
        args = [values(WIDE[dtype], (3, 4), bounds, seed) for seed in range(count)]
        compare(lambda lib: getattr(lib.lax, name)(*args), where=name)


@pytest.mark.parametrize(
    ("name", "dtype", "bounds", "count"),
    [c for c in ALL if c.values[1] in (F32, C64) and c.values[0] not in NO_JVP],
)
def test_derivatives(name, dtype, bounds, count):
    """jvp, vjp and their second order, along each operand."""
    if dtype is C64 and name in (("sign", "abs") if OLD else ("max", "min")):
        return  # upstream has none, or not the second
    args = [values(dtype, (3, 4), bounds, seed) for seed in range(count)]
    tangents = [values(dtype, (3, 4), (-1, 1), seed + 9) for seed in range(count)]

    def jvp(lib):
        return lib.jvp(getattr(lib.lax, name), tuple(args), tuple(tangents))

    compare(jvp, where=f"jvp of {name}")
    out = np.asarray(getattr(jax.lax, name)(*args))
    if out.dtype.kind not in "fc":
        return
    ct = values(out.dtype, out.shape, (-1, 1), 5)

    def vjp(lib):
        return lib.vjp(getattr(lib.lax, name), *args)[1](ct)

    compare(vjp, where=f"vjp of {name}")
    if name in ("igamma", "igammac", "bessel_i1e"):
        return

    def second(lib):
        def first(*xs):
            return lib.jvp(getattr(lib.lax, name), xs, tuple(tangents))[1]

        return lib.jvp(first, tuple(args), tuple(tangents))

    compare(second, where=f"second derivative of {name}")


SMALL = ("add", "mul", "max", "atan2", "pow", "rem", "complex", "igamma", "div", "eq", "nextafter")


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    ("shapes", "dims"),
    [
        (((3, 4), (4,)), (0, None)),
        (((3, 4), (3, 4)), (1, None)),
        (((3, 4), (4, 3)), (0, 1)),
        (((3, 4), (3,)), (0, 0)),
        (((3, 4), ()), (1, None)),
        (((2, 3, 4), (1, 4)), (0, None)),
    ],
)
def test_batching(name, shapes, dims):
    if dims == (1, None) and len(shapes[1]) == 2:
        shapes = ((3, 4), (3,))
    args = [values(F32, shape, (0.3, 3), seed) for seed, shape in enumerate(shapes)]
    compare(lambda lib: lib.vmap(getattr(lib.lax, name), dims)(*args), where=name)


@pytest.mark.parametrize("name", [n for n in SMALL if n not in NO_JVP | {"eq", "igamma"}])
@pytest.mark.parametrize("shapes", [((3, 4), ()), ((), (3,)), ((3, 1), (3, 4)), ((1, 4), (3, 1))])
def test_derivatives_of_broadcast_operands(name, shapes):
    args = [values(F32, shape, (0.3, 3), seed) for seed, shape in enumerate(shapes)]
    tangents = [values(F32, shape, (-1, 1), seed) for seed, shape in enumerate(shapes)]
    fun = name
    compare(lambda lib: lib.jvp(getattr(lib.lax, fun), tuple(args), tuple(tangents)), where=name)

    def vjp(lib):
        out, pull = lib.vjp(getattr(lib.lax, fun), *args)
        return pull(out)

    compare(vjp, where=name)


SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2.5, 1e-6, 1e-30, 3e38, -3e38, 1e-42, 100, -100, 1e4]
    + [np.inf, -np.inf, np.nan, 88.9, -88.9, 8, 20, 1.5],
    F32,
)
# Values at which the libraries agree only up to what rounding or flushing does.
UNSAFE_SLOPE = {"tan", "digamma", "lgamma", "bessel_i1e", "cbrt", "erfc", "rsqrt", "acosh"}


@pytest.mark.parametrize("name", [n for n in UNARY if F32 in UNARY[n][0]])
def test_special_values(name):
    x = SPECIAL if name != "lgamma" or OLD else np.abs(SPECIAL)[np.abs(SPECIAL) > 1e-40]
    compare(lambda lib: getattr(lib.lax, name)(x), where=name)
    if name in NO_JVP | UNSAFE_SLOPE:
        return
    ones = np.ones_like(SPECIAL)
    compare(lambda lib: lib.jvp(getattr(lib.lax, name), (SPECIAL,), (ones,))[1], where=name)


@pytest.mark.parametrize("name", [n for n in UNARY if C64 in UNARY[n][0]])
def test_special_complex_values(name):
    """On the axes and far out, where real or imaginary parts overflow one at a time."""
    parts = [0, -0.0, 1, -1, 0.5, -2, 1e-20, 1e20, -1e20, 3e38, 95, np.inf, -np.inf, np.nan]
    if name == "abs":  # of infinity and NaN: infinite since 0.12, NaN before
        parts = parts[:-1]
    x = np.array([complex(re, im) for re in parts for im in parts], C64)
    ours, theirs = (np.asarray(getattr(lib.lax, name)(x)) for lib in (minijax, jax))
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(ours), part(theirs), rtol=1e-4)


PAIRS = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)


@pytest.mark.parametrize("name", words("add sub mul div max min rem pow atan2 nextafter le ne"))
def test_special_pairs(name):
    compare(lambda lib: getattr(lib.lax, name)(*PAIRS), where=name)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_special_pairs_of_incomplete_gamma(name):
    """Upstream gives NaN, or the wrong limit, where `a` is zero or infinite."""
    x, y = PAIRS
    keep = ((np.abs(x) < 1e3) & (np.abs(x) > 1e-40)) | np.isnan(x)
    compare(lambda lib: getattr(lib.lax, name)(x[keep], y[keep]), where=name, ulps=512)
    a, at = np.float32([0, 0, np.inf, 0, np.inf]), np.float32([1, np.inf, 1, 0, np.inf])
    lower = np.float32([1, 1, 0, np.nan, np.nan])
    want = lower if name == "igamma" else 1 - lower
    np.testing.assert_array_equal(getattr(minijax.lax, name)(a, at), want)


@pytest.mark.parametrize("dtype", [I8, U8, I16, np.uint16, I32, U32, I64, U64])
def test_high_halves_of_products(dtype):
    """Of all pairs of extremes and of random integers, against products of Python's integers."""
    info, generator = np.iinfo(dtype), np.random.RandomState(0)
    some = [int(info.min), int(info.min) + 1, 0, 1, int(info.max) // 2, int(info.max)]
    some += generator.randint(info.min, info.max, 30, dtype).tolist()
    x, y = (
        np.array(list(each), dtype) for each in zip(*itertools.product(some, some), strict=True)
    )
    wanted = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
    with x64(True):
        assert minijax.jit(minijax.lax.mulhi)(x, y).tolist() == wanted


def test_ties_share_the_derivative():
    x = np.array([1.0, 2.0, np.nan, -0.0, np.inf], F32)
    y = np.array([1.0, 3.0, 1.0, 0.0, np.inf], F32)
    for name in ("max", "min", "atan2", "pow"):

        def vjp(lib, name=name):
            return lib.vjp(getattr(lib.lax, name), x, y)[1](np.ones_like(x))

        compare(vjp, where=name)


@pytest.mark.parametrize("y", [-3, -2, -1, 0, 1, 2, 3, 7, 16])
def test_integer_pow(y):
    x = values(F32, (5,), (-2, 2), 0)
    for arg in (x, x.astype(C64), x.astype(BF16)):
        compare(lambda lib, arg=arg: lib.lax.integer_pow(arg, y))
    compare(lambda lib: lib.jvp(lambda v: lib.lax.integer_pow(v, y), (x,), (x,)))
    zero = np.zeros(2, F32)
    compare(lambda lib: lib.jvp(lambda v: lib.lax.integer_pow(v, y), (zero,), (zero + 1,)))
    if y >= 0:
        compare(lambda lib: lib.lax.integer_pow(np.arange(-3, 4), y))


@pytest.mark.parametrize("exponent", [I32, U8])
def test_pow_with_whole_exponent(exponent):
    x, y = np.meshgrid(np.array([0, 0.5, -2, np.inf], F32), np.array([0, 1, 2, 3], exponent))
    compare(lambda lib: lib.lax.pow(x, y))
    compare(lambda lib: lib.jvp(lambda v: lib.lax.pow(v, y), (x,), (np.ones_like(x),)))
    compare(lambda lib: lib.lax.pow(x.astype(C64) + 1, y))


@pytest.mark.parametrize(
    "dtype",
    words(
        "bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 bfloat16 float16 float32 complex64 "
        "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz"
    ),
)
def test_conversions(dtype):
    names = words("bool int4 uint4 int8 uint8 int32 uint32 bfloat16 float16 float32 complex64")
    x = np.array([0, 1, 2, 3, 5, 7, 1.5, 0.25, 100, 300, -1, -2.5], F32).astype(dtype)
    for new in [*names, "float8_e4m3fn", "float8_e5m2"]:
        compare(
            lambda lib, new=new: lib.lax.convert_element_type(lib.lax.copy_p.bind(x), new),
            where=f"to {new}",
        )
    if np.dtype(dtype).name in ("float32", "bfloat16", "complex64"):
        for new in ("float16", "float32", "complex64", "int32"):

            def both(lib, new=new):
                def fun(v):
                    return lib.lax.convert_element_type(v, new)

                out, pull = lib.vjp(fun, x)
                if new == "int32":
                    return lib.jvp(fun, (x,), (x,))
                return lib.jvp(fun, (x,), (x,)), pull(out)

            compare(both, where=f"derivatives of conversion to {new}")


def test_conversions_of_numbers():
    for value in (1, 1.5, True, np.float64(2), np.arange(3), 300, -1, 2**31, 1e10, -1.5, np.nan):
        for new in (int, float, np.float16, "int8", bool, complex):
            compare(lambda lib, v=value, new=new: lib.lax.convert_element_type(v, new))
    compare(lambda lib: lib.lax.convert_element_type(lib.lax.sin(1.0), np.float32))
    with x64(True):
        compare(lambda lib: lib.lax.convert_element_type(1, np.float64))
        compare(lambda lib: lib.lax.convert_element_type(np.float32(1.5), float))


@pytest.mark.parametrize(
    ("old", "new", "shape"),
    [
        ("float32", "int32", (3, 4)), ("float32", "uint8", (3, 4)), ("uint8", "float32", (3, 4)),
        ("int8", "int4", (3,)), ("int4", "int8", (3, 2)), ("bfloat16", "uint16", ()),
        ("bool", "bool", (2,)), ("complex64", "complex64", (2,)), ("float32", "bfloat16", (2, 2)),
    ],
)  # fmt: skip
def test_bitcast(old, new, shape):
    x = values(F32, shape, (0, 9), 0).astype(old)
    compare(lambda lib: lib.lax.bitcast_convert_type(x, new))
    if len(shape) == 2:
        for dim in (0, 1) if old != "uint8" and old != "int4" else (0,):
            compare(lambda lib, d=dim: lib.vmap(
                lambda v: lib.lax.bitcast_convert_type(v, new), d)(x))  # fmt: skip


def test_bitcast_of_the_batch_in_the_last_axis():
    x = np.arange(4 * 3, dtype=np.uint8).reshape(4, 3)
    got = minijax.vmap(lambda v: minijax.lax.bitcast_convert_type(v, np.float32), 1)(x)
    np.testing.assert_array_equal(got, np.ascontiguousarray(x.T).view(np.float32)[:, 0])


def test_reduce_precision():
    x = values(F32, (20,), (-300, 300), 0)
    for bits in ((5, 10), (8, 7), (3, 2), (8, 0)):
        compare(lambda lib, bits=bits: lib.lax.reduce_precision(x, *bits))
    compare(lambda lib: lib.vjp(lambda v: lib.lax.reduce_precision(v, 5, 2), x)[1](x))


def test_total_order():
    x = PAIRS.copy()
    for name in ("eq_to_p", "le_to_p", "lt_to_p"):
        compare(lambda lib, name=name: getattr(lib.lax, name).bind(*x))
        compare(lambda lib, name=name: getattr(lib.lax, name).bind(*np.int32([[1, 2], [2, 2]])))


def test_stop_gradient_and_copies():
    x = np.float32([1, 2])
    tree = {"a": x, "b": np.int32([1])}
    compare(lambda lib: lib.lax.stop_gradient(tree))
    compare(lambda lib: lib.vjp(lambda v: lib.lax.mul(lib.lax.stop_gradient(v), v), x)[1](x))
    compare(lambda lib: lib.lax.stop_gradient(lib.lax.sin(1.0)))
    compare(lambda lib: lib.vjp(lambda v: lib.lax.copy_p.bind(v), x)[1](x))
    compare(lambda lib: lib.lax.stage(1.0))
    compare(lambda lib: lib.jit(lambda: lib.lax.stage(np.float32([1])))())


def test_select_n():
    x, y, z = (values(F32, (3, 4), (-1, 1), seed) for seed in range(3))
    which = np.int32([[0, 1, 2, 0], [5, -1, 1, 2], [2, 2, 1, 0]])
    mask = which > 0
    for args in ((mask, x, y), (which, x, y, z), (True, x, y), (1, x, y), (mask, x),
                 (which.astype(np.int8), x, y, z, x, y), (mask, mask, ~mask)):  # fmt: skip
        compare(lambda lib, args=args: lib.lax.select_n(*args))
    whole = np.clip(which, 0, 2) if OLD else which
    for first, cases in ((mask, (x, y)), (whole, (x, y, x)), (False, (x, y))):

        def derivatives(lib, first=first, cases=cases):
            def fun(*vs):
                return lib.lax.select_n(first, *vs)

            return lib.jvp(fun, cases, cases), lib.vjp(fun, *cases)[1](z)

        compare(derivatives)
    compare(lambda lib: lib.lax.select(mask, x, y))
    compare(lambda lib: lib.jvp(lambda v: lib.lax.select(mask, v, y), (x,), (x,)))


@pytest.mark.parametrize(
    "dims", [(0, 0, 0), (1, 0, 0), (None, 0, 1), (0, None, 0), (0, None, None)]
)
def test_batched_select_and_clamp(dims):
    x, y, z = (values(F32, (4, 4), (-1, 1), seed) for seed in range(3))
    args = [v if d is not None else v[0] for v, d in zip((x, y, z), dims, strict=True)]

    def ours(which, on_true, on_false):
        return np.where(which > 0, on_true, on_false)

    got = minijax.vmap(
        lambda p, a, b: minijax.lax.select(minijax.lax.gt(p, np.float32(0)), a, b), dims
    )(*args)
    want = np.stack(
        [
            ours(*[v if d is None else v.take(i, d) for v, d in zip(args, dims, strict=True)])
            for i in range(4)
        ]
    )
    np.testing.assert_array_equal(got, want)
    compare(lambda lib: lib.vmap(lib.lax.clamp, dims)(*args))
    scalar = np.arange(4) > 1
    compare(lambda lib: lib.vmap(lambda p, a: lib.lax.select(p, a, y[0]))(scalar, x))
    compare(lambda lib: lib.vmap(lambda p: lib.lax.select(p, y[0], x[0]))(scalar))


@pytest.mark.parametrize("axis", [0, 1])
def test_batched_select_between_numbers(axis):
    """Under vmap `which` may have any rank where the cases are numbers that are not mapped."""
    which = np.arange(6).reshape(2, 3) % 2
    for cases in ((0, 1), (0.5, 2.0), (np.int8(3), np.int8(4))):
        compare(
            lambda lib, cases=cases: lib.vmap(lambda p: lib.lax.select(p, *cases), axis, axis)(
                which > 0
            )
        )
        compare(lambda lib, cases=cases: lib.vmap(lambda p: lib.lax.select_n(p, *cases))(which))
    compare(
        lambda lib: lib.jit(
            lib.grad(lambda a: lib.vmap(lambda p: lib.lax.select(p, a, a * a))(which > 0).sum())
        )(np.float32(3))
    )


def test_clamp():
    x = np.float32([-2, -1, 0, 0.5, 1, 3, np.nan])
    low, high = np.full_like(x, -1), np.full_like(x, 1)
    compare(lambda lib: lib.lax.clamp(-1.0, x, 1.0))
    compare(lambda lib: lib.lax.clamp(low, x, np.float32(1)))
    compare(lambda lib: lib.lax.clamp(np.int8(1), np.arange(9, dtype=np.int8), np.int8(4)))
    compare(lambda lib: lib.jvp(lib.lax.clamp, (low, x, high), (x, x, x)))
    compare(lambda lib: lib.vjp(lambda v: lib.lax.clamp(-1.0, v, 1.0), x)[1](x))


def test_mul_with_out_dtype():
    a, b = (values(BF16, (5,), (-3, 3), seed) for seed in range(2))
    for args in ((a, b), (a.astype(F32), b)):
        for dtype in (F32, BF16, F16):
            compare(lambda lib, args=args, d=dtype: lib.lax.mul(*args, out_dtype=d))
    compare(lambda lib: lib.vjp(lambda v: lib.lax.mul(v, b, out_dtype=F32), a)[1](a.astype(F32)))
    compare(lambda lib: lib.lax.mul(np.int8([100]), np.int8([100]), out_dtype=np.int32))


@pytest.mark.parametrize("shape", [(4096,), (4097,), (1366, 3), (7, 120, 5), (4097, 0)])
@pytest.mark.parametrize("name", ["erf_inv", "lgamma", "digamma"])
def test_kernels_of_their_own(name, shape):
    """Many elements are computed by a function that XLA does not inline, in programs for one CPU."""
    for dtype in (*REAL, F64):
        with x64(dtype is F64):
            x = values(dtype, shape, (0.05, 0.6), 0)
            compare(lambda lib, x=x: getattr(lib.lax, name)(x), where=name, ulps=2)
    x = values(F32, shape, (0.05, 0.6), 0)
    run = minijax.jit(getattr(minijax.lax, name))
    many = x.size > 4096
    assert ('inlineable = "false"' in run.lower(x).as_text()) is many
    assert "inlineable" not in minijax.export.export(run)(x).mlir_module()
    assert "inlineable" not in run.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    tangents = [lib.jvp(lib.jit(getattr(lib.lax, name)), (x,), (x,))[1] for lib in (minijax, jax)]
    assert_same(*tangents, where=name, ulps=16)


def test_special_functions_of_three_operands():
    a, b = (values(F32, (40,), (0.2, 30), seed) for seed in range(2))
    x = values(F32, (40,), (0, 1), 2)
    compare(lambda lib: lib.lax.betainc(a, b, x), ulps=256)
    compare(lambda lib: lib.jvp(lambda v: lib.lax.betainc(a, b, v), (x,), (x,)), ulps=256)
    ends = np.float32([0, 1, -0.1, 1.1, np.nan])
    compare(lambda lib: lib.lax.betainc(np.float32(2), np.float32(3), ends))
    m = np.float32([0, 1, 2, 3])
    compare(lambda lib: lib.lax.polygamma(m, a[:4]), ulps=256)
    compare(lambda lib: lib.jvp(lambda v: lib.lax.polygamma(m, v), (a[:4],), (a[:4],)), ulps=256)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.0, 40.0, 500.0])
def test_incomplete_gamma_far_out(shape):
    with x64(True):
        x = shape * np.logspace(-3, 1, 30)
        a = np.full_like(x, shape)
        for name in ("igamma", "igammac", "igamma_grad_a"):
            compare(lambda lib, name=name: getattr(lib.lax, name)(a, x), where=name, ulps=2**13)


def test_random_gamma_grad():
    """Against 40-digit values: upstream stops its series too early where x is far below a."""
    x = np.float64([0.5, 2.446950459238747, 58.60511487667402, 286.807625522434])
    want = [0.00691565878098698, 0.026167148344627, 0.284718309403305, 0.747959435090635]
    with x64(True):
        got = minijax.lax.random_gamma_grad(np.full_like(x, 500.0), x)
        np.testing.assert_allclose(got, want, rtol=1e-11)


def test_weak_types():
    one = np.float32(1)
    for name in ("neg", "sin", "sign", "is_finite", "floor", "square", "erf"):
        compare(lambda lib, name=name: getattr(lib.lax, name)(1.5), where=name)
    for name in ("real", "abs", "conj", "exp"):
        compare(lambda lib, name=name: getattr(lib.lax, name)(1.5 + 2j), where=name)
    for name in ("add", "eq", "lt", "complex", "pow", "atan2", "igamma"):
        for args in ((1.0, 2.0), (1.0, one), (one, 2.0)):
            compare(lambda lib, name=name, args=args: getattr(lib.lax, name)(*args), where=name)
    for args in ((0.0, 1.0, 2.0), (0.0, one, 2.0), (one, 1.0, one)):
        compare(lambda lib, args=args: lib.lax.clamp(*args))
    for args in ((True, 1.0, 2.0), (True, one, 2.0), (0, 1.0)):
        compare(lambda lib, args=args: lib.lax.select_n(*args))
    compare(lambda lib: lib.lax.integer_pow(2, 2))
    compare(lambda lib: lib.lax.bitwise_and(3, 1))
    compare(lambda lib: lib.lax.bitcast_convert_type(1.0, np.int32))


BAD = {
    "dtypes": lambda lax, x: lax.add(x, np.int32(1)),
    "int and float": lambda lax, x: lax.add(x, 1),
    "bool": lambda lax, x: lax.add(x, True),
    "shapes": lambda lax, x: lax.mul(x, np.ones(3, F32)),
    "ranks": lambda lax, x: lax.mul(x, np.ones((2, 2), F32)),
    "integer sine": lambda lax, x: lax.sin(1),
    "list": lambda lax, x: lax.add(x, [1.0, 2.0]),
    "none": lambda lax, x: lax.add(x, None),
    "negative power": lambda lax, x: lax.integer_pow(np.int32([1]), -1),
    "pow": lambda lax, x: lax.pow(x, np.complex64(1)),
    "pow of integers": lambda lax, x: lax.pow(np.int32(1), 2),
    "order of complex": lambda lax, x: lax.lt(1j, 2j),
    "which is float": lambda lax, x: lax.select_n(x, x, x),
    "no case": lambda lax, x: lax.select_n(True),
    "three cases": lambda lax, x: lax.select_n(x > 0, x, x, x),
    "shape of cases": lambda lax, x: lax.select(True, x, np.float32(1)),
    "shape of which": lambda lax, x: lax.select(np.array([True]), x, x),
    "shape of bound": lambda lax, x: lax.clamp(np.zeros(3, F32), x, np.float32(1)),
    "no dtype": lambda lax, x: lax.convert_element_type(x, None),
    "dtype": lambda lax, x: lax.convert_element_type(x, "bad"),
    "list to convert": lambda lax, x: lax.convert_element_type([1.0], np.int32),
    "too large": lambda lax, x: lax.convert_element_type(2**70, np.int32),
    "complex number": lambda lax, x: lax.convert_element_type(1j, np.float32),
    "bits": lambda lax, x: lax.bitcast_convert_type(np.uint8([1, 2, 3]), np.float32),
    "bits of complex": lambda lax, x: lax.bitcast_convert_type(x, np.complex64),
    "exponent": lambda lax, x: lax.reduce_precision(x, 0, 3),
    "mantissa": lambda lax, x: lax.reduce_precision(x, 3, -1),
    "whole bits": lambda lax, x: lax.reduce_precision(x, 3.0, 1),
    "rounding": lambda lax, x: lax.round(x, 7),
    "string": lambda lax, x: lax.stop_gradient("a"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    x = np.float32([1, 2])
    with pytest.raises(Exception) as theirs:
        BAD[name](jax.lax, x)
    with pytest.raises(type(theirs.value)):
        BAD[name](minijax.lax, x)


def test_errors_of_derivatives():
    x = np.float32([1, 2])
    for call in (
        lambda lib: lib.jvp(lib.lax.zeta, (x, x), (x, x)),
        lambda lib: lib.jvp(lambda m: lib.lax.polygamma(m, x), (x,), (x,)),
        lambda lib: lib.jvp(lambda a: lib.lax.betainc(a, x, x), (x,), (x,)),
        lambda lib: lib.jvp(lib.lax.igamma_grad_a, (x, x), (x, x)),
    ):
        with pytest.raises(Exception) as theirs:
            call(jax)
        with pytest.raises(type(theirs.value)):
            call(minijax)


TEXTS = {
    "literal": lambda lax, x: lax.add(x, 2.0),
    "round": lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "convert": lambda lax, x: lax.convert_element_type(x, np.int8),
    "no conversion": lambda lax, x: lax.convert_element_type(x, np.float32),
    "bits": lambda lax, x: lax.bitcast_convert_type(x, np.uint8),
    "accuracy": lambda lax, x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST),
    "no accuracy": lambda lax, x: lax.tanh(lax.log(x)),
    "conj": lambda lax, x: lax.conj(x),
    "power": lambda lax, x: lax.integer_pow(lax.pow(x, 2), 3),
    "precision": lambda lax, x: lax.reduce_precision(x, 5, 10),
    "select": lambda lax, x: lax.select(lax.gt(x, 0.0), x, lax.neg(x)),
    "clamp": lambda lax, x: lax.clamp(0.0, x, 1.0),
    "special": lambda lax, x: lax.betainc(x, x, lax.igamma(x, lax.bessel_i0e(lax.erf_inv(x)))),
    "out_dtype": lambda lax, x: lax.mul(x, x, out_dtype=np.float32),
    "stop": lambda lax, x: lax.stop_gradient(lax.reciprocal(x)),
    "stage": lambda lax, x: lax.stage(x),
}


@pytest.mark.parametrize("name", TEXTS)
def test_printed(name):
    x = np.float32([1, 2])
    ours, theirs = (
        str(lib.make_jaxpr(lambda v: TEXTS[name](lib.lax, v))(x)) for lib in (minijax, jax)
    )
    assert ours == theirs


def test_accuracy():
    x = values(F32, (5,), (0.1, 2), 0)
    for name in words("exp exp2 log log1p expm1 tanh logistic sin cos tan sqrt rsqrt cbrt"):
        for accuracy in ("HIGHEST", "DEFAULT", None):

            def call(lib, name=name, accuracy=accuracy):
                mode = (
                    lib.lax.Tolerance(1e-5, 1e-5, 2)
                    if accuracy is None
                    else lib.lax.AccuracyMode[accuracy]
                )
                if accuracy != "HIGHEST":
                    return getattr(lib.lax, name)(x, accuracy=mode)

                def fun(v):
                    return getattr(lib.lax, name)(v, accuracy=mode)

                return lib.jvp(fun, (x,), (x,))

            compare(call, where=name)


def test_derivatives_that_upstream_has_lately():
    z, t = np.complex64([3 + 4j, 0, -2j]), np.complex64([1, 1, 1])
    _, got = minijax.jvp(minijax.lax.sign, (z,), (t,))
    np.testing.assert_allclose(got, np.complex64([0.128 - 0.096j, 0, 0.5]), rtol=1e-6, atol=1e-7)
    which = np.int32([-3, 0, 1, 5])
    cts = minijax.vjp(lambda a, b: minijax.lax.select_n(which, a, b), *np.ones((2, 4), F32))[1](
        np.float32([1, 2, 3, 4])
    )
    np.testing.assert_array_equal(cts, np.float32([[1, 2, 0, 0], [0, 0, 3, 4]]))


def test_random_keys_compare_and_select():
    ours = [minijax.random.key(seed) for seed in (0, 1)]
    assert bool(minijax.lax.eq(ours[0], ours[0]))
    assert not bool(minijax.lax.eq(*ours))
    assert bool(minijax.lax.ne(*ours))
    keys = [minijax.random.split(key, 3) for key in ours]
    chosen = minijax.lax.select(np.array([True, False, True]), *keys)
    data = [minijax.random.key_data(key) for key in (*keys, chosen)]
    np.testing.assert_array_equal(data[2], np.stack([data[0][0], data[1][1], data[0][2]]))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_narrow_dtypes(dtype):
    x = np.array([1, 2, 3], dtype)
    names = ["neg", "sign", "square"]
    if dtype.startswith("float"):
        names += ["exp", "sin", "tanh", "lgamma", "bessel_i0e", "abs"]
    for name in names:
        compare(lambda lib, name=name: getattr(lib.lax, name)(x), where=name)
    for name in ("add", "mul", "max", "rem", "lt"):
        compare(lambda lib, name=name: getattr(lib.lax, name)(x, x), where=name)


def test_zero_size():
    x = np.zeros((0, 3), F32)
    for call in (
        lambda lib: lib.lax.add(x, 1.0),
        lambda lib: lib.lax.select(x > 0, x, x),
        lambda lib: lib.lax.igamma(x, x),
        lambda lib: lib.vmap(lib.lax.sin, 1)(x),
        lambda lib: lib.vjp(lib.lax.mul, x, np.float32(2))[1](x),
    ):
        compare(call)


DIVISIONS = (
    "lax.div(x, y)", "lax.rem(x, y)", "jnp.floor_divide(x, y)", "jnp.remainder(x, y)",
    "jnp.divmod(x, y)", "jnp.fmod(x, y)", "lax.div(x, y * 0)", "lax.rem(x, y - y)",
    "lax.div(x[0], y[0])", "lax.rem(x, lax.broadcast(y[0], (4,)))", "lax.div(x, lax.full_like(y, 0))",
    "lax.fori_loop(0, 2, lambda i, c: lax.div(c, y), x)", "jnp.array(7) // 0", "lax.rem(7, 0)",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
def test_constants_divided_by_zero(dtype):
    """They are, as arguments are; a process that divided them while it compiled would end."""
    lax, jnp = minijax.lax, minijax.numpy
    x, y = np.array([5, np.iinfo(dtype).min, 0, 7], dtype), np.array([0, 2, 0, 0], dtype)
    y[1] = -1 if np.iinfo(dtype).min else 2
    for text in DIVISIONS:
        f = eval(f"lambda lax, jnp, x, y: {text}")
        constant = minijax.jit(lambda f=f: f(lax, jnp, jnp.asarray(x), jnp.asarray(y)))
        given = minijax.jit(lambda x, y, f=f: f(lax, jnp, x, y))
        assert_same(constant(), minijax.tree.map(np.asarray, given(x, y)), where=text)


def _slope_of_gamma_samples(a, x):
    """The derivative in `a` of a sample `x`, at most 1.2 `a`, by the series of P(a, x) (DLMF 8.7.1)."""
    a, x = mpmath.mpf(float(a)), mpmath.mpf(float(x))
    term, log_slope, total, slope = mpmath.mpf(1), mpmath.mpf(0), mpmath.mpf(1), mpmath.mpf(0)
    for k in itertools.count(1):
        term *= x / (a + k)
        log_slope -= 1 / (a + k)
        total += term
        slope += term * log_slope
        if term < total * mpmath.mpf(10) ** -36:
            return float(x / a * (total * (mpmath.psi(0, a + 1) - mpmath.log(x)) - slope))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_of_gamma_samples(dtype):
    """Over all formulas: shapes from 1e-3 to 1e6, and samples far below them."""
    rng = np.random.RandomState(1)
    a = (10 ** rng.uniform(-3, 6, 60)).astype(dtype)
    x = (a * 10 ** rng.uniform(-4, 0.07, 60)).astype(dtype)
    with x64(dtype == np.float64):
        got = np.asarray(minijax.jit(minijax.lax.random_gamma_grad)(a, x))
    with mpmath.workdps(40):
        wanted = np.asarray([_slope_of_gamma_samples(*pair) for pair in zip(a, x, strict=True)])
    np.testing.assert_allclose(got, wanted, rtol=16 * np.finfo(dtype).eps)
