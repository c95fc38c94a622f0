"""At least one call of every function of `lax`: shared data of `lax/test_every_function`.

A row is `(name, function, arguments)`: `function(m, *arrays)` calls `m.lax.name`, where `m` is one of
the two libraries. `@` after the name says what kinds of tests it leaves out: `g` derivatives, `b`
batching, `v` values (types only are compared).
"""

import ml_dtypes
import numpy as np


def floats(*shape, low=-2.0, high=2.0, seed=0):
    rng = np.random.RandomState(seed)
    return rng.uniform(low, high, shape).astype(np.float32)


def ints(*shape, low=-9, high=10, seed=0):
    return np.random.RandomState(seed).randint(low, high, shape).astype(np.int32)


def complexes(*shape):
    return (floats(*shape) + 1j * floats(*shape, seed=1)).astype(np.complex64)


X, Y = floats(3, 4), floats(3, 4, seed=1)
UNIT, PLUS = floats(3, 4, low=-0.9, high=0.9), floats(3, 4, low=0.3, high=3.0)
MORE = floats(3, 4, low=0.3, high=3.0, seed=2)
N, K = ints(3, 4), ints(3, 4, low=0, high=8, seed=1)
V = floats(5)
Z = complexes(3, 4)
BOOL = X > 0
KEY = np.array([3, 4, 5, 6], np.uint32)
IMAGE, FILTER = floats(1, 2, 6, 6), floats(3, 2, 3, 3, seed=1)


def calls(names, *args):
    """Rows that call each function with the arguments alone."""
    return [
        (name, lambda m, *xs, f=name.partition("@")[0]: getattr(m.lax, f)(*xs), args)
        for name in names.split()
    ]


def along(names, *args, **kwargs):
    """Rows that call each function with the one array and the same further arguments."""
    return [
        (
            name,
            lambda m, x, f=name.partition("@")[0]: getattr(m.lax, f)(x, *args[1:], **kwargs),
            args[:1],
        )
        for name in names.split()
    ]


ELEMENTS = [
    *calls("abs ceil@g cos cosh exp exp2 expm1 erf erfc floor@g logistic neg reciprocal", PLUS),
    *calls("round@g sign@g sin sinh square tan tanh atan asinh cbrt bessel_i0e bessel_i1e", X),
    *calls("is_finite@g", np.array([1, np.inf, -np.inf, np.nan], np.float32)),
    *calls("acos asin atanh erf_inv", UNIT),
    *calls("acosh", PLUS + 1),
    *calls("log log1p sqrt rsqrt lgamma digamma", PLUS),
    *calls("real imag conj abs neg exp sin", Z),
    *calls("conj", X),
    *calls("add sub mul div max min atan2 pow rem complex", PLUS, MORE),
    *calls("nextafter@g", X, Y),
    *calls("add sub mul div", Z, Z[::-1]),
    *calls("add sub mul div max min mulhi@g", N, K + 1),
    *calls("eq ne ge gt le lt", N, N.T.reshape(3, 4)),
    *calls("bitwise_and bitwise_or bitwise_xor", N, K),
    *calls("bitwise_not clz population_count", K),
    *calls("shift_left shift_right_arithmetic shift_right_logical", N, K),
    ("clamp", lambda m, x: m.lax.clamp(-1.0, x, 1.0), (X,)),
    *calls("clamp@g", Y - 1, X, Y + 1),
    *calls("select", BOOL, X, Y),
    *calls("select_n", BOOL, X, Y),
    *calls("betainc@g", PLUS, MORE, floats(3, 4, low=0.1, high=0.9)),
    *calls("igamma igammac", PLUS, MORE),
    *calls("igamma_grad_a@g random_gamma_grad@g", PLUS, MORE),
    *calls("polygamma@g", np.full((3, 4), 2, np.float32), PLUS),
    *calls("zeta@g", PLUS + 1.5, MORE),
    *calls("stop_gradient stage optimization_barrier", X),
    *along("integer_pow", X, 3),
    *along("integer_pow", PLUS, -2),
    *along("convert_element_type", X, np.float16),
    *along("convert_element_type@g", X, np.int32),
    *along("bitcast_convert_type@g", X, np.int32),
    *along("reduce_precision", X, 5, 10),
]
SHAPES = [
    *along("broadcast", X, (2,)),
    *along("broadcast_in_dim", X, (3, 2, 4), (0, 2)),
    *calls("broadcast_like", V, floats(2, 5)),
    *along("broadcast_to_rank", X, 4),
    *along("collapse", floats(2, 3, 4), 1),
    ("concatenate", lambda m, x, y: m.lax.concatenate([x, y], 0), (X, Y)),
    *along("expand_dims", X, (0, 2)),
    *along("full_like@g", X, 2),
    *along("index_in_dim", X, -1, 1),
    *along("pad", X, 0.0, ((1, -1, 0), (0, 2, 1))),
    *along("reshape", X, (6, 2)),
    *along("rev", X, (1,)),
    *along("slice", X, (0, 1), (3, 4), (2, 1)),
    *along("slice_in_dim", X, 1, None, 2, axis=1),
    *along("split", floats(2, 5), (2, 3), 1),
    *along("squeeze", floats(3, 1, 2), (1,)),
    ("stack", lambda m, x, y: m.lax.stack([x, y], 1), (X, Y)),
    *along("tile", X, (2, 3)),
    *along("transpose", X, (1, 0)),
    *along("unstack", X, 1),
    (
        "dynamic_index_in_dim",
        lambda m, x, i: m.lax.dynamic_index_in_dim(x, i, 1),
        (X, np.int32(-1)),
    ),
    ("dynamic_slice", lambda m, x, i: m.lax.dynamic_slice(x, (i, 1), (2, 2)), (X, np.int32(2))),
    (
        "dynamic_slice_in_dim",
        lambda m, x, i: m.lax.dynamic_slice_in_dim(x, i, 2, 1),
        (X, np.int32(1)),
    ),
    (
        "dynamic_update_index_in_dim",
        lambda m, x, y, i: m.lax.dynamic_update_index_in_dim(x, y, i, 0),
        (X, Y[0], np.int32(1)),
    ),
    (
        "dynamic_update_slice",
        lambda m, x, y, i: m.lax.dynamic_update_slice(x, y, (i, 0)),
        (X, Y[:2], np.int32(1)),
    ),
    (
        "dynamic_update_slice_in_dim",
        lambda m, x, y, i: m.lax.dynamic_update_slice_in_dim(x, y, i, 1),
        (X, Y[:, :2], np.int32(1)),
    ),
    (
        "index_take",
        lambda m, x, i, j: m.lax.index_take(x, (i, j), (0, 1)),
        (X, np.array([2, 0]), np.array([1, 3])),
    ),
]
REDUCTIONS = [
    *along("reduce_max reduce_min reduce_prod reduce_sum", X, (0,)),
    *along("reduce_and reduce_or reduce_xor", N, (1,)),
    *along("argmax@g argmin@g", X, 1, np.int32),
    *along("cumlogsumexp cummax cummin cumprod cumsum", X, 1, reverse=True),
    (
        "reduce@g",
        lambda m, x, i: m.lax.reduce((x, i), _zeros(m, x, i), _wider(m), (1,)),
        (X, N),
    ),
    *along("sort", X, 0),
    ("sort@g", lambda m, i, x: m.lax.sort((i, x), dimension=1, num_keys=2), (N, X)),
    *calls("sort_key_val", X, Y),
    *along("top_k", X, 2),
    *along("approx_max_k approx_min_k", X, 2),
    (
        "reduce_window",
        lambda m, x: m.lax.reduce_window(x, -np.inf, m.lax.max, (2, 2), (1, 2), "SAME"),
        (X,),
    ),
    ("reduce_window", lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, (2, 2), (1, 1)), (X,)),
    *[
        (
            "reduce_window",
            lambda m, x, dilations=dilations, padding=padding: m.lax.reduce_window(
                x, 0.0, m.lax.add, (3, 2), (2, 1), padding, *dilations
            ),
            (X,),
        )
        for dilations in [((2, 1), (1, 2)), ((2, 3), None), ((3, 2), (2, 2))]
        for padding in ["SAME", "SAME_LOWER"]
    ],
    (
        "associative_scan",
        lambda m, x: m.lax.associative_scan(m.lax.add, x, reverse=True, axis=1),
        (X,),
    ),
]


def _zeros(m, *xs):
    return tuple(m.lax.full((), 0, x.dtype) for x in xs)


def _wider(m):
    return lambda a, b: (m.lax.add(a[0], b[0]), m.lax.max(a[1], b[1]))


PRODUCTS = [
    *calls("dot", X, floats(4, 2)),
    *calls("batch_matmul", floats(2, 3, 4), floats(2, 4, 2)),
    (
        "dot_general",
        lambda m, x, y: m.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        (floats(2, 3, 4), floats(2, 4, 2)),
    ),
    *calls("ragged_dot", floats(5, 4), floats(2, 4, 3), np.array([2, 3], np.int32)),
    (
        "ragged_dot_general",
        lambda m, x, y, g: m.lax.ragged_dot_general(
            x, y, g, m.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
        ),
        (floats(5, 4), floats(2, 4, 3), np.array([2, 3], np.int32)),
    ),
    (
        "scaled_dot@gb",
        lambda m, x, y, s: m.lax.scaled_dot(x, y, lhs_scale=s),
        (
            floats(1, 4, 64).astype(ml_dtypes.float8_e4m3fn),
            floats(1, 64, 3).astype(ml_dtypes.bfloat16),
            np.ones((1, 4, 2), ml_dtypes.bfloat16),
        ),
    ),
    ("conv", lambda m, x, w: m.lax.conv(x, w, (1, 1), "SAME"), (IMAGE, FILTER)),
    (
        "conv_general_dilated",
        lambda m, x, w: m.lax.conv_general_dilated(x, w, (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1)),
        (IMAGE, FILTER),
    ),
    (
        "conv_general_dilated_local",
        lambda m, x, w: m.lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (3, 3)),
        (IMAGE, floats(3, 18, 4, 4)),
    ),
    (
        "conv_general_dilated_patches",
        lambda m, x: m.lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID"),
        (IMAGE,),
    ),
    (
        "conv_transpose",
        lambda m, x, w: m.lax.conv_transpose(x, w, (2, 2), "SAME"),
        (floats(1, 3, 3, 2), floats(3, 3, 2, 3)),
    ),
    (
        "conv_with_general_padding",
        lambda m, x, w: m.lax.conv_with_general_padding(x, w, (1, 1), ((0, 0), (1, 1)), None, None),
        (IMAGE, FILTER),
    ),
    *along("fft", complexes(2, 6), "FFT", (6,)),
    *along("fft", floats(2, 6), "RFFT", (6,)),
]


def _at(m, kind):
    """Dimension numbers for rows of an array, for gather or for scatter."""
    if kind == "gather":
        return m.lax.GatherDimensionNumbers((1,), (0,), (0,))
    return m.lax.ScatterDimensionNumbers((1,), (0,), (0,))


ROWS = np.array([[2], [0]], np.int32)
INDEXING = [
    (
        "gather",
        lambda m, x, i: m.lax.gather(x, i, _at(m, "gather"), (1, 4), mode="clip"),
        (X, ROWS),
    ),
    *[
        (
            name,
            lambda m, x, i, y, f=name: getattr(m.lax, f)(x, i, y, _at(m, ""), unique_indices=True),
            (PLUS, ROWS, MORE[:2]),
        )
        for name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul")
    ],
    *[
        (
            f"{name}@g",
            lambda m, x, i, y, f=name: getattr(m.lax, f)(x, i, y, _at(m, "")),
            (X, ROWS, Y[:2]),
        )
        for name in ("scatter_max", "scatter_min")
    ],
    (
        "scatter_apply@gb",
        lambda m, x, i: m.lax.scatter_apply(x, i, m.lax.sin, _at(m, ""), update_shape=(2, 4)),
        (X, ROWS),
    ),
]


def _newton(m, x):
    """A square root by the solver of the program, differentiated implicitly."""
    f = lambda y: y * y - x

    def solve(f, y):
        step = lambda _, y: y - f(y) / m.grad(lambda y: f(y).sum())(y)
        return m.lax.fori_loop(0, 10, step, y)

    return m.lax.custom_root(
        f, m.lax.full_like(x, 1.0), solve, lambda g, y: y / g(m.numpy.ones_like(y))
    )


def _solve(m, a, b):
    a = a @ a.T + 4 * np.eye(3, dtype=np.float32)
    matvec = lambda x: a @ x
    solve = lambda _, b: m.numpy.linalg.solve(a, b)
    return m.lax.custom_linear_solve(matvec, b, solve, symmetric=True)


CONTROL = [
    ("cond", lambda m, p, x: m.lax.cond(p, m.lax.sin, m.lax.cos, x), (np.bool_(True), X)),
    (
        "switch",
        lambda m, i, x: m.lax.switch(i, [m.lax.sin, m.lax.cos, m.lax.tan], x),
        (np.int32(1), X),
    ),
    ("fori_loop", lambda m, x: m.lax.fori_loop(0, 3, lambda i, y: y * x + i, x), (X,)),
    (
        "while_loop@g",
        lambda m, x: m.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, x)),
        (X,),
    ),
    (
        "scan",
        lambda m, c, x: m.lax.scan(lambda c, x: (c + x, c * x), c, x, reverse=True),
        (floats(4), X),
    ),
    ("map", lambda m, x: m.lax.map(lambda row: m.lax.sin(row).sum(), x), (X,)),
    ("map", lambda m, x: m.lax.map(m.lax.sin, x, batch_size=2), (X,)),
    ("custom_root", _newton, (PLUS[0],)),
    ("custom_linear_solve", _solve, (floats(3, 3), floats(3))),
    (
        "platform_dependent",
        lambda m, x: m.lax.platform_dependent(x, cpu=m.lax.sin, default=m.lax.cos),
        (X,),
    ),
    ("composite@gb", lambda m, x: m.lax.composite(m.lax.tan, "my.tan", 1)(x), (X,)),
    ("dce_sink", lambda m, x: (m.lax.dce_sink({"a": m.lax.sin(x)}), x * 2)[1], (X,)),
    (
        "create_token",
        lambda m, x: (m.lax.after_all(m.lax.create_token(), m.lax.create_token(x)), x)[1],
        (X,),
    ),
    ("after_all", lambda m, x: (m.lax.after_all(), x * 2)[1], (X,)),
]


def over(names, x, *args, **kwargs):
    """Rows that call each collective within a map over the first axis."""
    return [
        (
            name,
            lambda m, x, f=name.partition("@")[0]: m.vmap(
                lambda x: getattr(m.lax, f)(x, "i", *args, **kwargs), axis_name="i"
            )(x),
            (x,),
        )
        for name in names.split()
    ]


COLLECTIVES = [
    *over("psum pmean", X),
    *over("pmax@g pmin@g", X),
    *over("ppermute", X, ((0, 1), (1, 2), (2, 0))),
    *over("pshuffle", X, (2, 0, 1)),
    *over("all_gather", X),
    *over("all_gather", X, axis=0, tiled=True),
    *over("all_to_all", floats(3, 3, 2), 0, 1),
    *over("pswapaxes", floats(3, 3, 2), 0),
    *over("psum_scatter", floats(3, 3)),
    (
        "axis_index",
        lambda m, x: m.vmap(lambda x: x * m.lax.axis_index("i"), axis_name="i")(x),
        (X,),
    ),
    (
        "axis_size",
        lambda m, x: m.vmap(lambda x: x * m.lax.axis_size("i"), axis_name="i")(x),
        (X,),
    ),
]
MAKING = [
    ("iota", lambda m: m.lax.iota(np.int8, 5), ()),
    ("broadcasted_iota", lambda m: m.lax.broadcasted_iota(np.float32, (2, 3), 1), ()),
    ("full", lambda m: m.lax.full((2, 3), 1.5, np.float16), ()),
    ("full", lambda m: (m.lax.full((2,), 1.5), m.lax.full((), True)), ()),
    ("empty@v", lambda m: m.lax.empty((2, 3), np.float32), ()),
    *calls("rng_uniform@v", np.float32(0), np.float32(1)),
    ("rng_bit_generator@b", lambda m, k: m.lax.rng_bit_generator(k, (2, 3), np.uint32), (KEY,)),
]
MAKING = [
    (name, (lambda m, a, b: m.lax.rng_uniform(a, b, (3,))), args) if "rng_uniform" in name
    else (name, function, args)
    for name, function, args in MAKING
]  # fmt: skip

ROWS_OF = {
    "elements": ELEMENTS, "shapes": SHAPES, "reductions": REDUCTIONS, "products": PRODUCTS,
    "indexing": INDEXING, "control": CONTROL, "collectives": COLLECTIVES, "making": MAKING,
}  # fmt: skip

# Functions of shapes and dtypes: what they give is compared as it is.
_NUMBERS = ("NHWC", "HWIO", "NHWC")
STATIC = [
    ("broadcast_shapes", lambda l: l.broadcast_shapes((2, 1), (3,), (1, 1, 1))),
    ("conv_dimension_numbers", lambda l: tuple(l.conv_dimension_numbers((1, 6, 6, 2), (3, 3, 2, 4), _NUMBERS))),
    ("conv_general_permutations", lambda l: l.conv_general_permutations(_NUMBERS)),
    (
        "conv_general_shape_tuple",
        lambda l: l.conv_general_shape_tuple((1, 6, 6, 2), (3, 3, 2, 4), (1, 2), "SAME", _NUMBERS),
    ),
    (
        "conv_shape_tuple",
        lambda l: l.conv_shape_tuple((1, 2, 6, 6), (4, 2, 3, 3), (1, 2), ((0, 0), (1, 1))),
    ),
    (
        "conv_transpose_shape_tuple",
        lambda l: l.conv_transpose_shape_tuple((1, 6, 6, 2), (3, 3, 2, 4), (2, 2), "SAME", _NUMBERS),
    ),
    ("padtype_to_pads", lambda l: l.padtype_to_pads((6, 7), (3, 2), (2, 2), "SAME")),
    ("reduce_window_shape_tuple", lambda l: l.reduce_window_shape_tuple((6, 7), (3, 2), (2, 1), ((0, 0), (1, 1)))),
    ("shape_as_value", lambda l: np.asarray(l.shape_as_value((2, 3))).tolist()),
    ("dtype", lambda l: [str(l.dtype(x)) for x in (1, 1.0, True, 1j, np.ones(2), "int8", np.float64)]),
    *[
        (name, lambda l, n=name: sorted(member.name for member in getattr(l, n)))
        for name in ("AccuracyMode", "DotAlgorithmPreset", "GatherScatterMode", "Precision", "RoundingMethod")
    ],
    ("FftType", lambda l: [str(getattr(l.FftType, k)) for k in ("FFT", "IFFT", "RFFT", "IRFFT")]),
    ("RandomAlgorithm", lambda l: [int(getattr(l.RandomAlgorithm, k)) for k in ("RNG_DEFAULT", "RNG_PHILOX", "RNG_THREE_FRY")]),
    ("ConvDimensionNumbers", lambda l: tuple(l.ConvDimensionNumbers((0, 1), (1, 0), (0, 1)))),
    ("GatherDimensionNumbers", lambda l: repr(l.GatherDimensionNumbers((1,), (0,), (0,)))),
    ("ScatterDimensionNumbers", lambda l: repr(l.ScatterDimensionNumbers((1,), (0,), (0,)))),
    ("Tolerance", lambda l: (l.Tolerance(0.1, 0.2, 3).atol, l.Tolerance(0.1, 0.2, 3).ulps)),
    ("DotAlgorithm", lambda l: l.DotAlgorithm(np.float32, np.float32, np.float32).num_primitive_operations),
    ("DotDimensionNumbers", lambda l: l.DotDimensionNumbers is not None),
    ("RaggedDotDimensionNumbers", lambda l: l.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions),
    ("linalg", lambda l: l.linalg.__name__.split(".", 1)[1]),
]  # fmt: skip

# Types of arguments, for annotations only.
ALIASES = {"ConvGeneralDilatedDimensionNumbers", "PrecisionLike"}

# What has tests of its own, with more than one device; upstream has no pbroadcast on a CPU.
ELSEWHERE = {
    "pbroadcast": "test_collectives", "pcast": "test_collectives", "precv": "test_exchange", "psend": "test_exchange",
    "ragged_all_to_all": "test_exchange", "with_sharding_constraint": "test_devices",
}  # fmt: skip

# Functions that are called with Python numbers too, for weak types.
UNARY = [
    "abs", "acos", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "cbrt", "ceil",
    "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor",
    "lgamma", "log", "log1p", "logistic", "neg", "reciprocal", "round", "rsqrt", "sign", "sin",
    "sinh", "sqrt", "square", "tan", "tanh",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "complex", "igamma",
    "igammac", "zeta",
]  # fmt: skip
