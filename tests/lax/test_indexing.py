"""Gather and scatter in all modes and under all transforms, against upstream."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample
from tests.harness.rules import check, in_both

X = sample((3, 4), np.float32)
CUBE = sample((3, 4, 5), np.float32, 1)
ROWS = np.array([[0], [2]], np.int32)
TWICE = np.array([[1], [1], [0]], np.int32)
BEYOND = np.array([[0], [7], [-1]], np.int32)
PAIRS = np.array([[0, 1], [2, 3], [1, 1], [1, 1]], np.int32)
MODES = ["clip", "fill", "promise_in_bounds", None]
KINDS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


def rows(m):
    return m.lax.GatherDimensionNumbers((1,), (0,), (0,))


def places(m):
    return m.lax.ScatterDimensionNumbers((1,), (0,), (0,))


GATHERS = {
    "rows": (rows, (1, 4), X, ROWS),
    "rows twice": (rows, (1, 4), X, TWICE),
    "rows beyond": (rows, (1, 4), X, BEYOND),
    "pairs": (lambda m: m.lax.GatherDimensionNumbers((1,), (0, 1), (0, 1)), (1, 1, 5), CUBE, PAIRS),
    "windows": (
        lambda m: m.lax.GatherDimensionNumbers((0, 2), (2,), (1, 2)), (3, 2, 1), CUBE, PAIRS,
    ),
    "batches": (
        lambda m: m.lax.GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,)), (1, 1, 5), CUBE,
        np.array([[1], [3], [9]], np.int32),
    ),
    "no index": (
        lambda m: m.lax.GatherDimensionNumbers((0, 1), (), ()), (2, 3), X, np.zeros(0, np.int32),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), itertools.product(GATHERS, MODES))
def test_gather(name, mode):
    numbers, sizes, x, indices = GATHERS[name]
    check(lambda m, x, i: m.lax.gather(x, i, numbers(m), sizes, mode=mode), x, indices)


def test_gather_options():
    check(lambda m, x, i: m.lax.gather(x, i, rows(m), (1, 4), mode="fill", fill_value=3), X, BEYOND)
    check(
        lambda m, x, i: m.lax.gather(
            x, i, rows(m), (1, 4), unique_indices=True, indices_are_sorted=True, mode="fill"
        ),
        X,
        ROWS,
    )


@pytest.mark.parametrize(("kind", "mode"), itertools.product(KINDS, MODES))
def test_scatter(kind, mode):
    updates = sample((2, 4), np.float32, 2)
    # Upstream derives min and max in mode "clip" as if windows beyond were left out.
    grad = not (kind in ("scatter_min", "scatter_max") and mode == "clip")

    def run(m, x, i, y, unique=False):
        return getattr(m.lax, kind)(x, i, y, places(m), mode=mode, unique_indices=unique)

    check(run, X, ROWS, updates, grad=grad)
    check(lambda *args: run(*args, unique=True), X, ROWS, updates, batch=False, grad=grad)
    more = sample((3, 4), np.float32, 3)
    check(run, X, TWICE, more, batch=False)
    check(run, X, BEYOND, more, batch=False, grad=grad)


@pytest.mark.parametrize("kind", KINDS)
def test_scatter_of_windows(kind):
    def windows(m, x, i, y):
        numbers = m.lax.ScatterDimensionNumbers((0, 1), (1,), (1, 2))
        return getattr(m.lax, kind)(x, i, y, numbers)

    check(windows, CUBE, np.array([0, 1], np.int32), sample((3, 2), np.float32))

    def batches(m, x, i, y):
        numbers = m.lax.ScatterDimensionNumbers((1,), (1,), (1,), (0,), (0,))
        return getattr(m.lax, kind)(x, i, y, numbers, unique_indices=True)

    check(batches, CUBE, np.array([[1], [3], [0]], np.int32), sample((3, 5), np.float32))


def test_extremal_derivatives_in_mode_clip():
    x = minijax.numpy.asarray(np.array([1.0, 5.0, 2.0], np.float32))
    numbers = minijax.lax.ScatterDimensionNumbers((), (0,), (0,))
    indices = np.array([[9], [9], [0]], np.int32)
    y = np.array([7.0, 7.0, 1.0], np.float32)

    def f(x, y):
        return minijax.lax.scatter_max(x, indices, y, numbers, mode="clip")

    _, pullback = minijax.vjp(f, x, y)
    of_x, of_y = pullback(minijax.numpy.ones(3))
    np.testing.assert_allclose(of_x, [0.5, 1.0, 0.0])  # the first ties with its update
    np.testing.assert_allclose(of_y, [0.5, 0.5, 0.5])


def test_scatter_apply():
    def run(m, x, i):
        square = lambda v: m.lax.mul(v, v)
        return m.lax.scatter_apply(x, i, square, places(m), update_shape=(2, 4))

    check(run, X, ROWS, grad=False)
    in_both(lambda m: m.grad(lambda x: run(m, x, ROWS).sum())(X))


DTYPES = [
    np.bool_, np.int8, np.uint8, np.uint32, np.float16, ml_dtypes.bfloat16, np.complex64,
    ml_dtypes.int4, ml_dtypes.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_dtypes(dtype):
    x, y = sample((3, 4), dtype), sample((2, 4), dtype, 1)
    for kind in KINDS:
        in_both(
            lambda m, kind=kind: getattr(m.lax, kind)(
                m.numpy.asarray(x), ROWS, m.numpy.asarray(y), places(m)
            )
        )
    for mode in ("fill", "clip"):
        in_both(
            lambda m, mode=mode: m.lax.gather(
                m.numpy.asarray(x), BEYOND, rows(m), (1, 2), mode=mode
            )
        )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_dtypes_of_indices(dtype):
    """Upstream's result is that of the same places as int32: with narrow ones, it is XLA's to get wrong."""
    most = np.iinfo(dtype).max
    indices = np.array([[9], [most], [np.iinfo(dtype).min]], dtype)
    wide = indices.astype(np.int32 if most < 2**31 else dtype)
    x = np.arange(600, dtype=np.int32).reshape(300, 2)
    ones = np.ones((3, 2), np.int32)
    for mode in MODES:
        calls = [
            lambda m, i, mode=mode: m.lax.gather(x, i, rows(m), (1, 2), mode=mode),
            lambda m, i, mode=mode: m.lax.scatter_add(x, i, ones, places(m), mode=mode),
        ]
        for call in calls:
            assert_same(call(minijax, indices), call(jax, wide))


def test_weak_types():
    def run(m):
        weak, strong = m.lax.full((3, 4), 1.0), m.numpy.ones((3, 4), np.float32)
        return [
            m.lax.gather(weak, ROWS, rows(m), (1, 4)),
            *[m.lax.scatter_add(a, ROWS, b[:2], places(m)) for a in (weak, strong)
              for b in (weak, strong)],
        ]  # fmt: skip

    in_both(run)


def gathering(indices, sizes, *numbers):
    return lambda m: m.lax.gather(
        m.numpy.asarray(X), indices, m.lax.GatherDimensionNumbers(*numbers), sizes
    )


def scattering(indices, shape, *numbers, dtype=np.float32):
    return lambda m: m.lax.scatter(
        m.numpy.asarray(X), indices, np.ones(shape, dtype), m.lax.ScatterDimensionNumbers(*numbers)
    )


ROW = ((1,), (0,), (0,))
ERRORS = [
    gathering(ROWS * 1.0, (1, 4), *ROW),
    gathering(ROWS > 1, (1, 4), *ROW),
    gathering(np.int32(1), (1, 4), *ROW),
    gathering(ROWS, (1, 4), (1, 1), (0,), (0,)),
    gathering(ROWS, (1, 4), (2,), (0,), (0,)),
    gathering(ROWS, (1, 4), (1,), (0, 0), (0,)),
    gathering(ROWS, (1, 4), (1,), (2,), (0,)),
    gathering(ROWS, (1, 4), (1,), (0,), (0, 1)),
    gathering(ROWS, (1, 4), (1,), (0,), (3,)),
    gathering(ROWS, (1,), *ROW),
    gathering(ROWS, (1, 5), *ROW),
    gathering(ROWS, (1, -1), *ROW),
    gathering(ROWS, (2, 4), *ROW),
    gathering(ROWS, (1, 1), (), (0,), (1,), (0,), (0,)),
    scattering(ROWS * 1.0, (2, 4), *ROW),
    scattering(ROWS, (1, 4), *ROW),
    scattering(ROWS, (2, 5), *ROW),
    scattering(ROWS, (2,), *ROW),
    scattering(ROWS, (2, 4), (0, 1), (0,), (0,)),
    scattering(ROWS, (2, 4), (3,), (0,), (0,)),
    scattering(ROWS, (2, 4), (1,), (0, 0), (0,)),
    scattering(ROWS, (2, 4), (1,), (0,), (4,)),
    scattering(ROWS, (2, 4), (1,), (0,), (0, 1)),
    scattering(ROWS, (2, 4), *ROW, dtype=np.int32),
    lambda m: m.lax.gather(X, ROWS, rows(m), (1, 4), mode="wrap"),
    lambda m: m.lax.gather(X, ROWS, rows(m), (1, 4), mode="fill", fill_value=np.ones(3)),
    lambda m: m.lax.gather(X, ROWS, rows(m), (1, 4), mode="fill", fill_value="a"),
    lambda m: m.lax.scatter_add(X > 0, ROWS, np.ones((2, 4), bool), places(m)),
    lambda m: m.grad(
        lambda y: m.lax.scatter_mul(X, ROWS, y, places(m)).sum()
    )(np.ones((2, 4), np.float32)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    with pytest.raises(Exception):  # noqa: B017
        ERRORS[number](jax)
    in_both(ERRORS[number])


def test_modes():
    ours, theirs = minijax.lax.GatherScatterMode, jax.lax.GatherScatterMode
    for name in ("clip", "fill", "drop", "promise_in_bounds", "one_hot", None):
        assert str(ours.from_any(name)) == str(theirs.from_any(name))
    assert ours.from_any(ours.CLIP) is ours.CLIP
    assert [m.value for m in ours] == [m.value for m in theirs]
    assert str(rows(minijax)) == str(rows(jax))
    assert str(places(minijax)) == str(places(jax))


def test_index_take():
    def run(m):
        x = m.numpy.asarray(CUBE)
        one, two = np.array([0, -1, 2], np.int32), np.array([1, 1, 3], np.int32)
        return [m.lax.index_take(x, (one, two), (0, 1)), m.lax.index_take(x, (two,), (2,))]

    in_both(run)


def test_second_derivatives_and_nested_maps():
    def run(m):
        def f(x, i):
            y = m.lax.gather(x * x, i, rows(m), (1, 4), mode="fill")
            return (m.lax.scatter_add(x, i, y, places(m)) ** 2).sum()

        mapped = m.vmap(m.grad(lambda x, i: (m.grad(f)(x, i) ** 2).sum()), in_axes=(0, None))
        xs = m.numpy.asarray(np.stack([X, 2 * X]))
        return m.vmap(mapped, in_axes=(None, 0))(xs, np.stack([ROWS, ROWS[::-1]]))

    in_both(run)


def test_update_programs_are_shared():
    scatter = lambda x: minijax.lax.scatter_add(
        x, ROWS, np.ones((2, 4), np.float32), places(minijax)
    )
    first, second = (minijax.make_jaxpr(scatter)(X).eqns[-1].params for _ in range(2))
    assert first["update_jaxpr"] is second["update_jaxpr"]
    assert_same(
        scatter(minijax.numpy.asarray(X)),
        jax.lax.scatter_add(X, ROWS, np.ones((2, 4), np.float32), places(jax)),
    )
