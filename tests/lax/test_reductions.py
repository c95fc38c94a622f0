"""Reductions, cumulative operations, windows and sorting: against upstream."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample, x64
from tests.harness.rules import check, in_both

X = sample((3, 4), np.float32)
Y = sample((3, 4), np.float32, 1)
CUBE = sample((2, 3, 4), np.float32, 2)
TIES = np.random.RandomState(3).randint(-1, 2, (5, 4)).astype(np.float32)
WHOLE = np.random.RandomState(4).randint(0, 9, (3, 4)).astype(np.int32)
TRUTH = X > 0
COMPLEX = sample((3, 4), np.complex64, 5)
INF, NAN = np.inf, np.nan
OLD = tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12)
RENAMED = ("reduce", "reduce_max", "reduce_min", "top_k")  # they have more parameters since 0.12


def known(name, axes):
    return lambda m, x: getattr(m.lax, name)(x, axes)


def cumulative(name, *args):
    return lambda m, x: getattr(m.lax, name)(x, *args)


# What prints as upstream's under no transform; derivatives of products and cumulative extrema are shorter.
CASES = {
    "reduce_sum": (known("reduce_sum", (0,)), X),
    "reduce_sum of all": (known("reduce_sum", (2, 0, 1)), CUBE),
    "reduce_sum over nothing": (known("reduce_sum", ()), X),
    "reduce_prod": (known("reduce_prod", (0,)), X),
    "reduce_prod with zeros": (known("reduce_prod", (0,)), TIES),
    "reduce_prod of two axes": (known("reduce_prod", (0, 2)), CUBE),
    "reduce_prod of one": (known("reduce_prod", (1,)), X[:, :1]),
    "reduce_prod complex": (known("reduce_prod", (1,)), COMPLEX),
    "reduce_max": (known("reduce_max", (1,)), X),
    "reduce_max with ties": (known("reduce_max", (0,)), TIES),
    "reduce_min with ties": (known("reduce_min", (0, 1)), TIES),
    "reduce_max complex": (known("reduce_max", (0,)), COMPLEX),
    "reduce_and": (known("reduce_and", (0,)), TRUTH),
    "reduce_or": (known("reduce_or", (1,)), WHOLE),
    "reduce_xor": (known("reduce_xor", (0, 1)), WHOLE),
    "argmax": (lambda m, x: m.lax.argmax(x, 1, np.int32), WHOLE),
    "argmin": (lambda m, x: m.lax.argmin(x, 0, np.uint8), WHOLE),
    "reduce by add": (lambda m, x: m.lax.reduce(x, 0.0, m.lax.add, (0,)), X),
    "reduce by max": (lambda m, x: m.lax.reduce(x, -INF, m.lax.max, (1,)), X),
    "cumsum": (cumulative("cumsum"), X),
    "cumsum reversed": (cumulative("cumsum", 1, True), X),
    "cumprod": (cumulative("cumprod", 1), X),
    "cumprod with zeros": (cumulative("cumprod", 0, True), TIES),
    "cummax with ties": (cumulative("cummax"), TIES),
    "cummin with ties": (cumulative("cummin", 0, True), TIES),
    "cumlogsumexp": (cumulative("cumlogsumexp", 1), X),
    "cumlogsumexp with ties": (cumulative("cumlogsumexp", 0, True), TIES),
    "reduce_window sum": (lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, (2, 3)), X),
    "reduce_window max": (
        lambda m, x: m.lax.reduce_window(x, -INF, m.lax.max, (2, 2), (1, 2), "SAME"), X,
    ),
    "reduce_window min": (
        lambda m, x: m.lax.reduce_window(x, INF, m.lax.min, (2, 2), (2, 1), [(1, 0), (0, 2)]), TIES,
    ),
    "sort": (lambda m, x: m.lax.sort(x), X),
    "sort rows": (lambda m, x, y: m.lax.sort((x, y), dimension=0), X, Y),
    "sort by two keys": (lambda m, x, y: m.lax.sort((x, y), num_keys=2), WHOLE, WHOLE[::-1] % 3),
    "sort_key_val": (lambda m, x, y: m.lax.sort_key_val(x, y), WHOLE, Y),
    "top_k": (lambda m, x: m.lax.top_k(x, 2)[0], X),
    "top_k of columns": (lambda m, x: m.lax.top_k(x, 2, axis=0), WHOLE),
    "approx_max_k": (lambda m, x: m.lax.approx_max_k(x, 3)[0], X),
    "approx_min_k": (lambda m, x: m.lax.approx_min_k(x, 2, reduction_dimension=0)[0], X),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_transforms(name):
    function, *args = CASES[name]
    check(function, *args, jaxpr=OLD or name.split()[0] not in RENAMED)


@pytest.mark.parametrize("name", ["reduce_prod", "reduce_max", "cumprod", "cummax", "cumlogsumexp"])
@pytest.mark.parametrize("x", [X, TIES], ids=["distinct", "ties"])
def test_second_derivatives(name, x):
    def run(m):
        f = known(name, (0,)) if name.startswith("reduce") else cumulative(name)
        given = m.numpy.asarray(x)

        def pull(v):
            out, pullback = m.vjp(lambda z: f(m, z), v)
            return pullback(m.numpy.ones_like(out))[0]

        return m.jvp(pull, (given,), (given,)), m.vjp(pull, given)[1](given)

    in_both(run)


# -- every dtype ----------------------------------------------------------------------------------------

DTYPES = [
    np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16, np.float32, ml_dtypes.bfloat16,
    np.complex64, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.float4_e2m1fn,
]  # fmt: skip
LOGICAL = ("reduce_and", "reduce_or", "reduce_xor")
ALL = {
    **{
        f"reduce_{name}": known(f"reduce_{name}", (0,))
        for name in ("sum", "prod", "max", "min", "and", "or", "xor")
    },
    **{f"cum{name}": cumulative(f"cum{name}", 1) for name in ("sum", "prod", "max", "min")},
    "argmax": lambda m, x: m.lax.argmax(x, 1, np.int32),
    "argmin": lambda m, x: m.lax.argmin(x, 1, np.int32),
    "sort": lambda m, x: m.lax.sort(x),
    "sort pairs": lambda m, x: m.lax.sort((x, x[::-1]), num_keys=2),
    "window sum": lambda m, x: m.lax.reduce_window(x, 0, m.lax.add, (2, 2), (1, 2), "SAME"),
    "window max": lambda m, x: m.lax.reduce_window(x, -INF, m.lax.max, (2, 2)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_dtypes(dtype):
    x = sample((5, 6), dtype)
    narrow = np.dtype(dtype).name in ("int4", "uint4")
    for name, function in ALL.items():
        if narrow and name in LOGICAL:  # upstream refuses them
            continue
        in_both(lambda m, f=function: f(m, m.numpy.asarray(x)))
    if np.dtype(dtype).name not in ("int4", "uint4", "float4_e2m1fn"):  # upstream's do not compile
        in_both(lambda m: m.lax.top_k(m.numpy.asarray(x), 3))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4], ids=["int4", "uint4"])
def test_dtypes_that_upstream_refuses(dtype):
    x = sample((5, 6), dtype)
    a = minijax.numpy.asarray(x)
    wide = x.astype(np.int32)
    for name, reduce in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        ours = getattr(minijax.lax, f"reduce_{name}")(a, (0,))
        np.testing.assert_array_equal(np.asarray(ours).astype(np.int32), reduce.reduce(wide, 0))
    values, places = minijax.lax.top_k(a, 2)
    order = np.argsort(-wide, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(np.asarray(places), order)
    expected = np.take_along_axis(wide, order, 1)
    np.testing.assert_array_equal(np.asarray(values).astype(np.int32), expected)


def test_64_bits():
    x = sample((4, 5), np.float64)
    with x64(True):
        for function in ALL.values():
            in_both(lambda m, f=function: f(m, m.numpy.asarray(x)))
        in_both(lambda m: m.lax.argmax(m.numpy.asarray(x), 0, np.int64))
        in_both(lambda m: m.lax.sort((m.numpy.asarray(x), m.numpy.arange(20).reshape(4, 5))))
        in_both(lambda m: m.lax.top_k(m.numpy.asarray(x), 2))


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.float32, ml_dtypes.float8_e4m3fn, np.complex64]
)
def test_of_nothing(dtype):
    def run(m):
        x = m.numpy.zeros((0, 3), dtype)
        names = ["max", "min"] if dtype is np.bool_ else ["sum", "prod", "max", "min"]
        found = [getattr(m.lax, f"reduce_{name}")(x, (0,)) for name in names]
        return [*found, m.lax.sort(x), m.lax.sort(x, dimension=0), m.lax.sort((x, x))]

    in_both(run)
    for function in (
        lambda m, x: m.lax.cumsum(x),
        lambda m, x: m.lax.cummax(x, 1),
        lambda m, x: m.lax.top_k(x, 2),
        lambda m, x: m.lax.top_k(x.T, 0),
        lambda m, x: m.lax.argmax(x, 1, np.int32),
        lambda m, x: m.lax.argmax(x, 0, np.int32),
        lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, (2, 2)),
        lambda m, x: m.grad(lambda v: m.lax.reduce_prod(v, (0, 1)))(x),
    ):
        in_both(lambda m, f=function: f(m, m.numpy.zeros((0, 3), np.float32)))


def test_weak_types():
    def weak(m, x=1.0):
        return m.lax.broadcast(x, (3,))

    for run in (
        lambda m: [m.lax.reduce_max(1, ()), m.lax.reduce_sum(1.0, ()), m.lax.reduce_prod(2.0, ())],
        lambda m: [getattr(m.lax, f"reduce_{n}")(weak(m), (0,)) for n in ("sum", "prod", "max")],
        lambda m: [m.lax.reduce_and(weak(m, 1), (0,)), m.lax.argmax(weak(m), 0, np.int32)],
        lambda m: [m.lax.cumsum(weak(m)), m.lax.cummax(weak(m)), m.lax.cumlogsumexp(weak(m))],
        lambda m: [m.lax.sort((weak(m), weak(m).astype(np.float32))), m.lax.top_k(weak(m), 1)],
        lambda m: m.lax.approx_max_k(weak(m), 2)[0],
        lambda m: m.lax.reduce(weak(m), 0.0, m.lax.add, (0,)),
        lambda m: m.lax.reduce(weak(m), np.float32(0), m.lax.add, (0,)),
        lambda m: m.lax.reduce(weak(m), 2.0, m.lax.mul, (0,)),
        lambda m: m.lax.reduce(weak(m), np.float32(2), m.lax.mul, (0,)),
        lambda m: m.lax.reduce_window(weak(m), 0.0, m.lax.add, (2,)),
        lambda m: m.lax.reduce_window(weak(m), 1.0, m.lax.mul, (2,)),
    ):
        in_both(run)


# -- special values ---------------------------------------------------------------------------------------

SPECIAL = np.array([1, NAN, 3, -NAN, -0.0, 0.0, INF, -INF, 2, -0.0, 0.0], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_special_values(dtype):
    x = SPECIAL.astype(dtype)

    def run(m, x):
        x, places = m.numpy.asarray(x), np.arange(len(x), dtype=np.int32)
        lax = m.lax
        return [
            lax.reduce_max(x, (0,)), lax.reduce_min(x, (0,)), lax.argmax(x, 0, np.int32),
            lax.argmin(x, 0, np.int32), lax.cummax(x), lax.cummin(x), lax.sort(x),
            lax.sort((x, places)), lax.sort((x, x[::-1], places), num_keys=2), lax.top_k(x, len(x)),
        ]  # fmt: skip

    with x64(dtype is np.float64):
        in_both(lambda m: run(m, x))
        in_both(lambda m: run(m, x[~np.isnan(SPECIAL)]))
        in_both(lambda m: run(m, np.full(3, -INF, dtype)))


def test_complex_order():
    x = np.array(
        [1 + 1j, complex(NAN, 0), 1 - 1j, complex(0, NAN), -0.0 + 0j, 0.0 - 0j, complex(INF, -INF)],
        np.complex64,
    )
    in_both(lambda m: [m.lax.sort(x), m.lax.sort((x, np.arange(7, dtype=np.int32)))])
    in_both(lambda m: [m.lax.cummax(COMPLEX), m.lax.cumlogsumexp(m.numpy.asarray(COMPLEX * 4))])


def test_cumlogsumexp_of_infinities():
    for values in ([-INF, -INF, 1.0, INF, 2.0, NAN, 2.0], [-INF, -INF, 1.0, 2.0, INF, 2.0, INF]):
        x = np.array(values, np.float32)
        in_both(lambda m, x=x: m.jvp(m.lax.cumlogsumexp, (x,), (np.ones_like(x),)))


# -- long axes, which have their own algorithms on CPU --------------------------------------------------


@pytest.mark.parametrize("size", [8, 9, 64, 65, 101, 10001])
def test_cumulative_of_a_long_axis(size):
    x = np.random.RandomState(0).randint(-9, 10, size).astype(np.int32)
    real = sample((size,), np.float32)
    for reverse in (False, True):
        in_both(lambda m, r=reverse: [m.lax.cumsum(x, 0, r), m.lax.cummin(x, 0, r)])
        in_both(lambda m, r=reverse: m.lax.cumlogsumexp(m.numpy.asarray(real), 0, r))
    assert np.array_equal(np.asarray(minijax.lax.cumsum(x)), np.cumsum(x))


@pytest.mark.parametrize("size", [2, 3, 8])
def test_cumulative_of_a_short_axis_of_many(size):
    x = np.random.RandomState(0).randint(-9, 10, (size, 3000)).astype(np.int32)
    waves = (sample((3000, size), np.float32) * (1 + 2j)).astype(np.complex64)
    for reverse in (False, True):
        in_both(lambda m, r=reverse: [m.lax.cumsum(x, 0, r), m.lax.cummax(x, 0, r)])
        in_both(lambda m, r=reverse: m.lax.cumprod(m.numpy.remainder(x, 4.0), 0, r))
        in_both(lambda m, r=reverse: m.lax.cumlogsumexp(m.numpy.asarray(waves), 1, r))


def test_cumulative_along_inner_axes():
    x = np.random.RandomState(0).randint(-9, 10, (2, 130, 3)).astype(np.int32)
    in_both(lambda m: [m.lax.cumsum(x, 1), m.lax.cummax(x, 1, True)])


MANY = [
    np.bool_, np.int8, np.uint8, np.uint32, np.float16, np.float32, ml_dtypes.bfloat16,
    np.complex64, ml_dtypes.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", MANY, ids=lambda d: np.dtype(d).name)
def test_sorting_many(dtype):
    for shape, axis in (((17000,), 0), ((3, 150, 40), 1)):
        x = sample(shape, dtype, 3)
        if np.dtype(dtype).kind in "fV":
            flat = x.reshape(-1)
            flat[::7], flat[::9], flat[::10], flat[::11] = NAN, 0.0, -0.0, -INF
        places = np.arange(x.size, dtype=np.int32).reshape(shape)

        def run(m, x=x, places=places, axis=axis):
            pairs = m.lax.sort((x, places, x), dimension=axis)
            return m.lax.sort(x, dimension=axis), pairs, m.lax.sort((x, places), axis, True, 2)

        in_both(run)


def test_sorting_many_negative_keys_of_32_bits():
    x = np.random.RandomState(0).randint(-(2**31), 2**31 - 1, 17000).astype(np.int32)
    x[:2] = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    places = np.arange(17000, dtype=np.int32)
    in_both(lambda m: [m.lax.sort((x, places)), m.lax.sort((x.view(np.uint32), places))])


# -- reduce by a traced operation -------------------------------------------------------------------------

INITS = [
    0, 0.0, -0.0, False, 1, 1.0, -1, True, -INF, INF, 0j, -1e50, np.float32(0), np.int32(0),
    np.float64(-INF), np.iinfo(np.int32).min, np.iinfo(np.int32).max,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32, np.complex64])
def test_identities_are_recognized(dtype):
    x = np.ones((3, 2), dtype)
    for name in ("add", "mul", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor"):
        for init in INITS:

            def run(m, name=name, init=init):
                op = getattr(m.lax, name)
                made = m.make_jaxpr(lambda x: m.lax.reduce(x, init, op, (0,)))(x)
                return [np.bool_(eqn.primitive.name == "reduce") for eqn in made.eqns]

            in_both(run)
            in_both(
                lambda m, name=name, i=init: m.lax.reduce_window(x, i, getattr(m.lax, name), (2, 2))
            )


def test_reduce_of_trees():
    check(
        lambda m, x, y: m.lax.reduce(
            (x, y),
            (np.float32(0), np.float32(1)),
            lambda a, b: (m.lax.add(a[0], b[0]), m.lax.mul(a[1], b[1])),
            (1,),
        ),
        X,
        Y,
        jaxpr=False,
        batch=False,  # upstream's derivative by one of two operands fails
    )
    check(
        lambda m, x: m.lax.reduce(
            {"a": x, "b": [x + 1]},
            {"a": 0.0, "b": [-INF]},
            lambda p, q: {"a": p["a"] + q["a"], "b": [m.lax.max(p["b"][0], q["b"][0])]},
            [0, 1],
        ),
        TIES,
        jaxpr=False,
    )


def test_reduce_with_an_index():
    def first_max(m, x):
        places = m.lax.iota(np.int32, 5)[:, None] + m.numpy.zeros((5, 4), np.int32)

        def body(p, q):
            better = (p[0] > q[0]) | ((p[0] == q[0]) & (p[1] < q[1]))
            return m.lax.select(better, p[0], q[0]), m.lax.select(better, p[1], q[1])

        return m.lax.reduce((x, places), (np.float32(-INF), np.int32(9)), body, (0,))

    check(first_max, TIES, jaxpr=False, grad=False)
    ours = minijax.grad(lambda x: first_max(minijax, x)[0].sum())(TIES)
    np.testing.assert_array_equal(np.asarray(ours).sum(0), np.ones(4))


def test_reduce_from_mapped_initial_values():
    # Upstream does not implement this.
    def total(x, init):
        return minijax.lax.reduce(x, init, lambda a, b: a + b, (0,))

    ours = minijax.vmap(total)(X, np.arange(3, dtype=np.float32))
    np.testing.assert_allclose(np.asarray(ours), X.sum(1) + np.arange(3), rtol=1e-6)


def test_reduce_takes_its_initial_value_into_account():
    # Upstream loses it in derivatives.
    f = lambda x: minijax.lax.reduce(x, np.float32(3), lambda a, b: a * b, (0,))
    out, tangent = minijax.jvp(f, (X[0],), (np.ones(4, np.float32),))
    others = [np.prod(np.delete(X[0], i)) for i in range(4)]
    np.testing.assert_allclose(out, 3 * np.prod(X[0]), rtol=1e-6)
    np.testing.assert_allclose(tangent, 3 * np.sum(others), rtol=1e-5)


# -- windows ------------------------------------------------------------------------------------------------

WINDOWS = [
    ((2, 3), (2, 1), "SAME", None, None),
    ((3, 2), (1, 2), "SAME_LOWER", (2, 1), None),
    ((2, 2), (2, 3), ((1, 1), (2, 0)), (1, 3), (2, 2)),
    ((1, 1), (1, 1), "VALID", None, None),
    ((7, 9), (1, 1), "SAME", None, None),
    ((7, 9), (1, 1), "VALID", None, None),
    ((2, 2), (3, 3), ((0, 2), (3, 1)), (1, 2), None),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("name", "init"), [("add", 0.0), ("max", -INF), ("min", INF)])
def test_windows(window, name, init):
    x = sample((5, 6), np.float32)
    check(
        lambda m, x: m.lax.reduce_window(x, init, getattr(m.lax, name), *window),
        x,
        jaxpr=False,
        batch=window == WINDOWS[0],
    )


def test_negative_padding_of_windows():
    # Upstream gives values, but no derivatives of extrema.
    x = sample((5, 6), np.float32)
    pads = ((-1, 0), (0, -1))
    check(lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, (2, 2), (1, 1), pads), x, jaxpr=False)
    f = lambda m, x, pads: m.lax.reduce_window(x, -INF, m.lax.max, (2, 2), (1, 1), pads).sum()
    ours = minijax.grad(lambda x: f(minijax, x, pads))(x)
    theirs = jax.grad(lambda x: f(jax, x[1:, :-1], "VALID"))(x)
    assert_same(ours, theirs)


@pytest.mark.parametrize("window", WINDOWS[:4], ids=str)
def test_windows_by_a_traced_operation(window):
    # Upstream has no reverse mode for it: that is checked against its forward mode.
    def f(m, x):
        return m.lax.reduce_window(x, np.float32(1), lambda a, b: a * b, *window)

    x = sample((4, 5), np.float32)
    check(f, x, jaxpr=False, grad=False)
    in_both(lambda m: m.jvp(lambda x: f(m, x), (x,), (2 * x,)))
    ours = minijax.jacrev(lambda x: f(minijax, x))(x)
    forward = minijax.jacfwd(lambda x: f(minijax, x))(x)
    np.testing.assert_allclose(ours, forward, rtol=1e-4, atol=1e-6)


def test_windows_of_trees():
    def f(m, x, y):
        body = lambda a, b: (m.lax.add(a[0], b[0]), m.lax.mul(a[1], b[1]))
        return m.lax.reduce_window((x, y), (np.float32(0), np.float32(1)), body, (2, 2))

    check(f, X, Y, jaxpr=False, grad=False)


def test_select_and_scatter():
    body = lambda m, op: m.make_jaxpr(op)(np.float32(0), np.float32(0))

    def run(m):
        select, scatter = body(m, m.lax.ge), body(m, m.lax.add)
        x, source = m.numpy.asarray(CUBE[0]), m.numpy.asarray(np.ones((2, 3), np.float32))
        return m.lax.select_and_scatter_p.bind(
            x,
            source,
            np.float32(2),
            select_jaxpr=select if m is minijax else select.jaxpr,
            select_consts=(),
            scatter_jaxpr=scatter if m is minijax else scatter.jaxpr,
            scatter_consts=(),
            window_dimensions=(2, 2),
            window_strides=(1, 1),
            padding=((0, 0), (0, 0)),
        )

    in_both(run)


# -- what cannot be -----------------------------------------------------------------------------------------

ERRORS = [
    lambda m: m.lax.reduce_sum(X, (-1,)),
    lambda m: m.lax.reduce_max(X, (5,)),
    lambda m: m.lax.reduce_max(X, (0, 0)),
    lambda m: m.lax.reduce_max(X, 0),
    lambda m: m.lax.reduce_max([1, 2], (0,)),
    lambda m: m.lax.reduce_sum(TRUTH, (0,)),
    lambda m: m.lax.reduce_prod(TRUTH, (0,)),
    lambda m: m.lax.reduce_and(X, (0,)),
    lambda m: m.lax.argmax(X, -1, np.int32),
    lambda m: m.lax.argmax(X, 0, np.float32),
    lambda m: m.lax.argmax(X, 0, bool),
    lambda m: m.lax.argmax(X[:0], 0, np.int32),
    lambda m: m.lax.argmax(COMPLEX, 0, np.int32),
    lambda m: m.lax.argmax(3, 0, np.int32),
    lambda m: m.lax.cumsum(X, -1),
    lambda m: m.lax.cumsum(X, 2),
    lambda m: m.lax.cumsum(3.0),
    lambda m: m.lax.cumsum([1, 2]),
    lambda m: m.lax.cumsum(TRUTH),
    lambda m: m.lax.cummax(X, None),
    lambda m: m.lax.reduce(X, 0.0, lambda a, b: a * b, (3,)),
    lambda m: m.lax.reduce((X, X), (0.0,), lambda a, b: a, (1,)),
    lambda m: m.lax.reduce((), (), lambda a, b: (), (1,)),
    lambda m: m.lax.reduce(X, np.zeros(3, np.float32), m.lax.add, (1,)),
    lambda m: m.lax.reduce(X, 0, m.lax.max, (1,)),
    lambda m: m.lax.reduce(X, 0.0, lambda a, b: (a, b), (1,)),
    lambda m: m.jit(lambda x: m.lax.reduce(x, 0.0, lambda a, b: a * b * x[0, 0], (0,)))(X),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2,)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), (1,)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), (0, 1)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (0, 2)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), base_dilation=(1,)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), window_dilation=(0, 1)),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), padding="FOO"),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), padding=[(0, 1)]),
    lambda m: m.lax.reduce_window(X, 0.0, m.lax.add, (2, 2), padding=1),
    lambda m: m.lax.reduce_window(X, np.zeros(2, np.float32), m.lax.add, (2, 2)),
    lambda m: m.lax.reduce_window((), (), lambda a, b: (), (2, 2)),
    lambda m: m.grad(
        lambda x: m.lax.reduce_window(x, -INF, m.lax.max, (2, 2), window_dilation=(1, 2)).sum()
    )(X),
    lambda m: m.lax.sort((X, X[0])),
    lambda m: m.lax.sort((X, X), num_keys=3),
    lambda m: m.lax.sort((X, X), num_keys=0),
    lambda m: m.lax.sort(X, num_keys=2),
    lambda m: m.lax.sort(()),
    lambda m: m.lax.sort(X, dimension=4),
    lambda m: m.lax.sort(X, dimension=1.0),
    lambda m: m.lax.sort_key_val(X, X[0]),
    lambda m: m.lax.top_k(X, 9),
    lambda m: m.lax.top_k(X, -1),
    lambda m: m.lax.top_k(X, 1.5),
    lambda m: m.lax.top_k(X, 1, axis=4),
    lambda m: m.lax.top_k(COMPLEX, 1),
    lambda m: m.lax.top_k([1, 2], 1),
    lambda m: m.lax.approx_max_k(WHOLE, 2),
    lambda m: m.lax.approx_max_k(X, 9),
    lambda m: m.lax.approx_max_k(X, 0),
    lambda m: m.lax.approx_max_k(X, 2, reduction_dimension=4),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    with pytest.raises(Exception):  # noqa: B017
        ERRORS[case](jax)
    in_both(ERRORS[case])


def test_sizes_of_approximate_results():
    for size, k, recall, override in (
        (5000, 3, 0.95, -1), (5000, 3, 0.5, -1), (5000, 3, 0.9, 100000), (30, 2, 0.95, -1),
    ):  # fmt: skip
        x = sample((2, size), np.float32)

        def run(m, x=x, args=(k, -1, recall, override, False)):
            return [np.asarray(v.shape) for v in m.lax.approx_max_k(x, *args)]

        in_both(run)


def test_shapes_of_windows():
    for args in (
        ((5, 6), (2, 3), (1, 2), ((0, 0), (1, 1))),
        ((3, 4), (2, 2), (1, 1), [(0, 0), (0, 1)], (1, 2), (2, 1)),
        ((5, 6), (9, 3), (1, 2), [(0, 0), (1, 1)]),
    ):
        ours, theirs = (m.lax.reduce_window_shape_tuple(*args) for m in (minijax, jax))
        assert ours == theirs


@pytest.mark.parametrize(("widths", "strides"), [((3, 3), (1, 1)), ((5, 2), (2, 2))])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_cotangents_of_windows_are_padded_first(widths, strides, padding):
    """XLA would evaluate windows with padding of a constant cotangent while it compiles."""
    pool = lambda m, x: m.lax.reduce_window(x, 0.0, m.lax.add, widths, strides, padding)
    pull = lambda m: m.grad(lambda x: pool(m, x).sum())
    x = np.arange(56, dtype=np.float32).reshape(7, 8)
    assert_same(pull(minijax)(x), pull(jax)(x))
    eqns = minijax.make_jaxpr(pull(minijax))(x).eqns
    (windows,) = [eqn for eqn in eqns if eqn.primitive.name == "reduce_window_sum"][-1:]
    assert windows.params["padding"] == ((0, 0), (0, 0))
    assert "pad" in [eqn.primitive.name for eqn in eqns]


def test_computations_are_traced_once():
    calls = []

    def body(a, b):
        calls.append(None)
        return a * b + 1

    for _ in range(3):
        minijax.lax.reduce(X, np.float32(0), body, (0,))
    assert len(calls) == 1
