"""`minijax.nn` against upstream: every public name has a row."""

import functools
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample, x64
from tests.harness.libraries import LOW, Row, both, check_dtype, check_row, check_wide, ids, missing

X = sample((3, 4), np.float32) * 2
EDGES = np.asarray([-4.0, -1.0, 0.0, 1.0, 3.0, 6.0, np.inf, -np.inf, np.nan], np.float32)
MASK = np.asarray([True, False, True, True])


def unary(name, *args, label="", **options):
    call = lambda m, *xs: getattr(m.nn, name)(*xs)
    return Row(name, call, *(args or (X,)), label=label, **options)


SIMPLE = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip
ELEMENTWISE = [n for n in SIMPLE if n not in ("glu", "standardize")] + ["log1mexp"]


def with_options(name, label, x=X, **options):
    return Row(name, lambda m, *xs: getattr(m.nn, name)(xs[0], **options), x, label=label)


def with_where(name, label, **options):
    def call(m, x, where):
        return getattr(m.nn, name)(x, where=where, **options)

    return Row(name, call, X, MASK, label=label)


def attention(label, *args, shapes=None, names=(), **options):
    q, k = shapes or ((2, 5, 4, 8), (2, 7, 2, 8))
    arrays = [sample(q, np.float32), sample(k, np.float32, 1), sample(k, np.float32, 2), *args]

    def call(m, q, k, v, *rest):
        return m.nn.dot_product_attention(q, k, v, **dict(zip(names, rest, strict=True)), **options)

    # Upstream computes the softmax in float32, also in 64-bit mode.
    return Row("dot_product_attention", call, *arrays, label=label, wide_ulps=2**33)


LENGTHS = (np.asarray([3, 5], np.int32), np.asarray([4, 7], np.int32))
SEEN = np.random.RandomState(0).rand(2, 1, 5, 7) > 0.3
BIAS = sample((1, 4, 5, 7), np.float32, 3)
DOT = (((2,), (2,)), ((0,), (0,)))

ROWS = [
    *[unary(name) for name in SIMPLE],
    unary("log1mexp", np.abs(X) + 0.1),
    *[unary(name, EDGES, label="edges", grad=name not in ("logsumexp",)) for name in ELEMENTWISE],
    unary("elu", X, sample((4,), np.float32, 1), label="alpha"),
    unary("celu", X, np.abs(sample((4,), np.float32, 1)) + 0.5, label="alpha"),
    unary("leaky_relu", X, sample((4,), np.float32, 1), label="slope"),
    unary("squareplus", X, np.float32(2), label="b"),
    with_options("gelu", "exact", approximate=False),
    with_options("glu", "axis", axis=1),
    with_options("glu", "odd", axis=0),
    with_options("softmax", "axes", axis=(0, 1)),
    with_options("softmax", "axis", axis=0),
    with_options("log_softmax", "axis", axis=0),
    with_options("logsumexp", "axis", axis=-1, keepdims=True),
    with_options("logsumexp", "sign", axis=0, return_sign=True),
    with_options("logmeanexp", "axis", axis=0, keepdims=True),
    with_options("standardize", "stable", algorithm="stable"),
    with_options("standardize", "mean", mean=0.5, variance=2.0, epsilon=1e-3),
    with_options("standardize", "axes", axis=(0, 1)),
    with_options("standardize", "unknown", algorithm="other"),
    *[with_where(n, "where") for n in ("softmax", "log_softmax", "logsumexp", "logmeanexp")],
    with_where("standardize", "where"),
    Row("logsumexp", lambda m, x, b: m.nn.logsumexp(x, b=b, axis=1), X, X[0], label="b"),
    Row("logsumexp", lambda m, x: m.nn.logsumexp(x, return_sign=True),
        sample((4,), np.complex64), label="complex sign"),
    Row("logsumexp", lambda m, x: m.nn.logsumexp(x), sample((4,), np.complex64), label="complex"),
    Row("one_hot", lambda m, x: m.nn.one_hot(x, 4), np.asarray([0, 3, 4, -1])),
    Row("one_hot", lambda m, x: m.nn.one_hot(x, 4, axis=0, dtype=np.bool_), np.asarray([0, 3])),
    Row("one_hot", lambda m, x: m.nn.one_hot(x, 4, axis=1, dtype=np.int8), np.ones((2, 2), np.int8)),
    Row("one_hot", lambda m, x: m.nn.one_hot(x, 3), np.asarray([0.0, 2.0], np.float32)),
    attention("plain"),
    attention("one head", shapes=((2, 5, 2, 8), (2, 7, 1, 8))),
    attention("rank 3", shapes=((5, 4, 8), (7, 2, 8))),
    attention("causal", is_causal=True),
    attention("window", local_window_size=(2, 1)),
    attention("scale", scale=0.3, local_window_size=1, implementation="xla"),
    attention("lengths", *LENGTHS, names=("query_seq_lengths", "key_value_seq_lengths")),
    attention("mask", SEEN, BIAS, names=("mask", "bias"), is_causal=True),
    attention("residual", return_residual=True),
    attention("bad", shapes=((2, 5, 4, 8), (2, 7, 3, 8))),
    attention("bad mask", SEEN.astype(np.int32), names=("mask",)),
    attention("bad name", implementation="other"),
    Row("scaled_dot_general", lambda m, x, y: m.nn.scaled_dot_general(x, y, DOT),
        sample((2, 3, 64), np.float32), sample((2, 5, 64), np.float32, 1)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_row(row):
    check_row(row)


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_row_in_64_bits(row):
    check_wide(row)


@pytest.mark.parametrize("dtype", LOW, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("row", ROWS[: len(SIMPLE) + 1], ids=ids(ROWS[: len(SIMPLE) + 1]))
def test_row_in_16_bits(row, dtype):
    check_dtype(row, dtype)


# On a CPU upstream computes float16 eagerly, and refuses to compile it; here both work.
@pytest.mark.parametrize(
    "dtype", [d for d in LOW if d != np.float16], ids=lambda dtype: np.dtype(dtype).name
)
def test_attention_in_16_bits(dtype):
    for row in ROWS:
        if row.name == "dot_product_attention":
            check_dtype(row, dtype, size=1.0)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.5}], ids=str)
def test_attention_in_float16(options):
    """As upstream computes it eagerly, and under jit the same."""
    q, k, v = (sample((2, 4, 2, 8), np.float16, seed) for seed in range(3))
    wanted = jax.nn.dot_product_attention(q, k, v, **options)
    eager = minijax.nn.dot_product_attention(q, k, v, **options)
    jitted = minijax.jit(lambda *a: minijax.nn.dot_product_attention(*a, **options))(q, k, v)
    for found in (eager, jitted):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=2e-2)


@pytest.mark.parametrize("name", [n for n in SIMPLE if n != "glu"] + ["log1mexp"])
def test_numbers_and_lists(name):
    """Python numbers promote as upstream's do, integers and lists are taken or refused alike."""
    for value in (1, True, 0.5, 1 + 2j, np.float16(2), [1.0], np.arange(3), np.ones((0, 3)), "x"):
        both(lambda m, v=value: getattr(m.nn, name)(v), ROWS[0])


def test_scaled():
    """Quantized products: configurations, scales, and what upstream runs only on some devices."""
    for mode in ("mxfp8", "nvfp4", "other"):
        both(lambda m, x=mode: m.nn.get_scaled_dot_general_config(x).block_size, ROWS[0])
    a, b = sample((2, 4, 64), np.float32), sample((2, 3, 64), np.float32, 1)
    scales = np.full((2, 4, 2), 2, np.float32), np.full((2, 3, 2), 0.5, np.float32)
    out = minijax.nn.scaled_matmul(a, b, *scales)
    np.testing.assert_allclose(out, np.einsum("bmk,bnk->bmn", a, b), rtol=1e-4, atol=1e-4)
    exact = np.einsum("bmk,bnk->bmn", a, b)
    for mode, bound in (("mxfp8", 0.1), ("nvfp4", 0.4)):
        whole = np.asarray([0.01], np.float32)
        config = minijax.nn.get_scaled_dot_general_config(mode, whole)
        f = lambda x, y, c=config: minijax.nn.scaled_dot_general(x, y, DOT, configs=[c] * 3)
        error = np.abs(np.asarray(f(a, b)) - exact).mean() / np.abs(exact).mean()
        assert error < bound, (mode, error)
        grads = minijax.grad(lambda x, y, f=f: f(x, y).sum(), (0, 1))(a, b)
        assert grads[0].shape == a.shape and np.isfinite(np.asarray(grads[0])).all()
    x, y = sample((2, 32, 4, 16), np.float32), sample((96, 16, 4), np.float32, 1)
    numbers, ct = (((3, 2), (1, 2)), ((), ())), sample((2, 32, 96), np.float32, 2)
    grads = {}
    for mode in ("mxfp8", "nvfp4"):
        config = minijax.nn.get_scaled_dot_general_config(mode, np.float32([1e-3]))
        product = functools.partial(minijax.nn.scaled_dot_general, configs=[config] * 3)
        f = lambda x, y, f=product: (f(x, y, numbers) * ct).sum()
        grads[mode] = minijax.grad(f, (0, 1))(x, y)
        if mode == "mxfp8":  # along what is contracted, each
            along = product(ct, y, (((2,), (0,)), ((), ())))
            np.testing.assert_array_equal(grads[mode][0], np.swapaxes(along, 2, 3))
            along = product(ct, x, (((0, 1), (0, 1)), ((), ())))
            np.testing.assert_array_equal(grads[mode][1], np.swapaxes(along, 1, 2))
    wanted = np.einsum("abn,nkl->ablk", ct, y), np.einsum("abn,ablk->nkl", ct, x)
    for found, exact, z in zip(grads["nvfp4"], wanted, (x, y), strict=True):
        inside = np.abs(z) <= 1e-3 * 6 * 448
        assert not inside.all()
        np.testing.assert_allclose(found, np.where(inside, exact, 0), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="3-dimensional"):
        minijax.nn.scaled_matmul(a[0], b, *scales)
    assert np.dtype(ml_dtypes.float8_e4m3fn) == np.dtype(
        minijax.nn.get_scaled_dot_general_config("mxfp8").data_type
    )


def test_one_hot_over_a_named_axis():
    def run(m):
        row = lambda x, _: m.nn.one_hot(x, 3, axis="i")
        return m.vmap(row, (None, 0), axis_name="i")(m.numpy.asarray([0, 2]), m.numpy.arange(3))

    assert_same(run(minijax), run(jax))


# -- initializers ------------------------------------------------------------------------------------

PLAIN = ["zeros", "ones"]
MADE = {
    "constant": [{"value": 3}, {"value": 2.5}],
    "normal": [{}, {"stddev": 2.0}],
    "uniform": [{}, {"scale": 3}],
    "truncated_normal": [{}, {"stddev": 1.0, "lower": -1.0, "upper": 0.5}],
    "orthogonal": [{}, {"scale": 2.0, "column_axis": 0}],
    "delta_orthogonal": [{}, {"scale": 2.0}],
    **{
        name: [{}, {"in_axis": 0, "out_axis": (1, 2)}]
        for name in (
            "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
            "kaiming_uniform", "lecun_normal", "lecun_uniform", "xavier_normal", "xavier_uniform",
        )
    },
    "variance_scaling": [
        {"scale": 2.0, "mode": mode, "distribution": distribution}
        for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg", "other")
        for distribution in ("normal", "truncated_normal", "uniform", "other")
    ],
}  # fmt: skip
DTYPES = [None, np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.int32]


def draw(m, name, options, shape, dtype, seed=0):
    init = getattr(m.nn.initializers, name)
    init = init if name in PLAIN else init(**options)
    given = () if dtype is None else (dtype,)
    return init(m.random.key(seed), shape, *given)


def in_both(name, options, shape, dtype, exact):
    run = lambda m: draw(m, name, options, shape, dtype)
    both(run, ROWS[0], **({"ulps": 0} if exact else {}))


CASES = [(name, i) for name in [*PLAIN, *MADE] for i in range(len(MADE.get(name, [{}])))]


@pytest.mark.parametrize(("name", "index"), CASES, ids=[f"{name}-{i}" for name, i in CASES])
def test_initializer(name, index):
    options = MADE.get(name, [{}])[index]
    exact = "orthogonal" not in name
    for wide in (False, True):
        with x64(wide):
            for dtype in DTYPES:
                # Complex powers and exponentials may differ by an ulp.
                in_both(name, options, (3, 4, 5), dtype, exact and dtype is not np.complex64)
            for shape in ((3, 4), (3,), (), (0, 3), (3, 0), (2, 3, 4, 5)):
                in_both(name, options, shape, None, exact)


@pytest.mark.parametrize("name", [*PLAIN, *MADE])
def test_a_wide_dtype_that_an_initializer_is_asked_for_is_named(name):
    options = MADE.get(name, [{}])[0]
    for m in (minijax, jax):
        with pytest.warns(UserWarning, match="Explicitly requested dtype float64"):
            draw(m, name, options, (3, 4, 5), "float64")
        for dtype in (None, float):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                draw(m, name, options, (3, 4, 5), dtype)


def test_a_size_alone_is_the_shape_of_an_initializer():
    run = lambda m: m.nn.initializers.he_normal(0, 0)(m.random.key(0), 3)
    assert_same(run(minijax), run(jax))


def test_initializers_under_jit_and_vmap():
    def run(m):
        init = m.nn.initializers.lecun_normal()
        made = m.jit(lambda key: init(key, (3, 4)))(m.random.key(0))
        return made, m.vmap(lambda key: init(key, (3, 4)))(m.random.split(m.random.key(1), 2))

    assert_same(run(minijax), run(jax))


_INTEGERS = (np.bool_, np.int8, np.int32, np.int64, np.float16)
_SOME = np.asarray([True, False, True])


@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"]
)
@pytest.mark.parametrize("dtype", _INTEGERS)
def test_integers_of_which_some_count(name, dtype):
    """The dtype of the result is the one that a masked array has."""
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for wide in (False, True):
        with x64(wide):
            ours, theirs = (
                getattr(m.nn, name)(m.numpy.asarray(x), where=_SOME) for m in (minijax, jax)
            )
            assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["softplus", "log_sigmoid", "mish"])
def test_imaginary_parts_of_many_turns(name):
    """By the definition: upstream adds the turns to the angle, and rounds."""
    x = np.asarray([1e30j, -1e30j, 1e8j, 3e5j, -1e12j], np.complex64)
    known = {
        "softplus": lambda z: np.log1p(np.exp(z)),
        "log_sigmoid": lambda z: -np.log1p(np.exp(-z)),
        "mish": lambda z: z * np.tanh(np.log1p(np.exp(z))),
    }[name](x.astype(np.complex128))
    np.testing.assert_allclose(getattr(minijax.nn, name)(x), known, rtol=1e-5)


def test_every_name_has_a_row():
    tested = {"initializers", "scaled_matmul", "get_scaled_dot_general_config"}
    assert not missing(jax.nn, ROWS, tested)
    assert set(minijax.nn.__all__) == {n for n in dir(jax.nn) if not n.startswith("_")}
    public = {n for n in dir(jax.nn.initializers) if not n.startswith("_")}
    assert set(minijax.nn.initializers.__all__) == public
    assert public == {*PLAIN, *MADE, "Initializer"}


NARROW = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "uint4",
    "int4",
    "int8",
    "bool",
    "int32",
)
# Upstream subtracts booleans, promotes integers of 4 bits, and has no type for what they are divided to.
REFUSED_UPSTREAM = {
    ("softmax", "bool"), ("log_softmax", "bool"), ("log_softmax", "uint4"), ("log_softmax", "int4"),
    ("standardize", "uint4"), ("standardize", "int4"), ("soft_sign", "int4"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SIMPLE, "log1mexp"])
def test_types_of_few_bits(name):
    """Types of results and derivatives."""
    for dtype in NARROW:
        said = []
        for m in (minijax, jax):
            f, x = getattr(m.nn, name), m.numpy.ones((3, 4), dtype)
            slope = m.grad(lambda x, f=f: f(x).sum().astype("float32"))
            for call in (f, slope):
                try:
                    out = m.eval_shape(call, x)
                    said.append((str(out.dtype), out.weak_type, out.shape))
                except (TypeError, ValueError) as error:
                    said.append(type(error).__name__)
        value, derivative, *theirs = said
        if (name, dtype) in REFUSED_UPSTREAM:
            assert theirs[0] in ("TypeError", "TypePromotionError") and value[0] == "float32"
        else:
            assert value == theirs[0], dtype
        assert derivative == theirs[1], dtype


@pytest.mark.parametrize("by_result", [False, True])
def test_softmax_has_the_derivative_that_the_flag_chooses(by_result):
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)

    def found(m):
        with m.softmax_custom_jvp(by_result):
            closed = m.make_jaxpr(m.nn.softmax)(x)
            derivative = m.jit(m.jacrev(m.nn.softmax))(x)
        return [eqn.primitive.name for eqn in closed.jaxpr.eqns], np.asarray(derivative)

    (ours, derivative), (upstreams, expected) = found(minijax), found(jax)
    assert ours == upstreams
    np.testing.assert_allclose(derivative, expected, rtol=1e-5, atol=1e-7)
