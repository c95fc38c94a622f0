"""`x[...]`, `x.at[...]`, `take` and their kin, against upstream: values, jaxprs, errors."""

import itertools
import re

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax.numpy import indexing
from tests.harness.differential import assert_same, sample, x64
from tests.harness.rules import in_both, in_both_as_one

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


class Operand:
    """A part of an index that is an array, or a tracer."""

    def __init__(self, value, dtype=np.int32):
        self.value = np.asarray(value, dtype)


I, NEGATIVE, FAR = Operand(1), Operand(-1), Operand(9)
II, JJ, COLUMN = Operand([0, 2]), Operand([-1, 1]), Operand([[0], [2]])
NOTHING = Operand(np.zeros(0))
ALL = slice(None)
MASK = np.array([True, False, True])
MASK4 = np.array([True, False, True, True])
PLANE = sample((3, 4), np.bool_)

BASIC = [
    0, -1, (0, 1), (0, 1, 2), (-1, -2), slice(1, 3), ALL, slice(None, None, -1),
    slice(None, None, 2), slice(None, None, -2), slice(2, 0, -1), slice(0, 0), slice(5, 9),
    (slice(1, 3), slice(None, None, -1)), None, (None, 0), (0, None, slice(1, 3), None), ..., (),
    (..., 0), (..., slice(1, 3)), (0, ..., 1), (None, ..., None), (ALL, 0), (ALL, ALL, slice(4, 0, -3)),
    (slice(1, 2), 2, slice(None, None, 3)), (0, slice(None, None, -1)), (0, slice(None, None, 2)),
    np.int64(1), (np.int8(1), np.int16(-1)),
]  # fmt: skip
TRACED = [
    I, NEGATIVE, FAR, Operand(-9), (I, 0), (I, I), (I, slice(1, 3)), (I, slice(None, None, 2)),
    (I, None), (I, slice(None, None, -1), slice(1, 3)), (slice(1, 1), I), (I, -1), (I, 7),
    (Operand(1, np.uint8), 0), (Operand(-1, np.int8), 0), (I, slice(1, 3), II), II, JJ, (II, JJ),
    (II, ALL, JJ), (ALL, II), (ALL, II, JJ), (II, 0), (0, II), (0, ALL, II), (ALL, 0, II),
    (II, None, JJ), (ALL, II, None, JJ), (None, II, 0), (COLUMN, II), (COLUMN, ALL, II),
    (ALL, COLUMN, II), COLUMN, Operand([1, 0], np.uint8), Operand([1, -1], np.int16), (COLUMN, I),
    (I, II), (II, slice(None, None, 2)), (II, slice(None, None, -1)), (slice(None, None, -1), II),
    (slice(1, 3), II), (slice(None, None, -1), II, slice(1, 3)),
    (slice(None, None, 2), II, slice(None, None, 2)), NOTHING, (NOTHING, 0),
]  # fmt: skip
# Constants: upstream computes with them in the program, minijax before it. Jaxprs differ.
KNOWN = [
    II.value, JJ.value, (II.value, JJ.value), (np.array([[0], [2]]), np.array([1, 2])), ([0, 1],),
    ([0, 1], [2, 3]), (ALL, [0, 1]), MASK, PLANE, X > 30, (ALL, MASK4), (MASK, 0), (0, MASK4),
    (MASK, II), (PLANE, II), (None, MASK), (ALL, MASK4, 0), True, False, (True, 0), (0, True),
    (True, MASK), np.array(1), np.array(-1), 3, -4, (0, 9), (ALL, -9),
]  # fmt: skip
WRONG = [
    1.0, "a", [0, 1], (0, 0, 0, 0), (..., ...), np.ones(2, bool), np.ones((3, 3), bool),
    (ALL, np.ones(3, bool)), Operand([1.0], np.float32), object(), slice(1.0, 2),
    slice(None, None, 0), (0, "a"), (1j,), np.array([1.0, 2.0]), [True, False, True], {},
    slice("a", "b"),
]  # fmt: skip


def spelled(index):
    """How an index is written, in short; traced parts are in angles. Names the cases."""
    if isinstance(index, Operand):
        return f"<{spelled(index.value)}>"
    if isinstance(index, tuple):
        return f"({', '.join(map(spelled, index))})"
    if isinstance(index, slice):
        parts = [index.start, index.stop, *[index.step] * (index.step is not None)]
        return ":".join("" if part is None else str(part) for part in parts)
    if isinstance(index, np.ndarray):
        values = str(index.tolist()) if index.size < 7 else f"of shape {index.shape}"
        return f"{index.dtype} {values}"
    return "..." if index is Ellipsis else repr(index)


def operands(index):
    parts = index if isinstance(index, tuple) else (index,)
    return [part.value for part in parts if isinstance(part, Operand)]


def filled(index, values):
    rest = iter(values)
    fill = lambda part: next(rest) if isinstance(part, Operand) else part
    return tuple(map(fill, index)) if isinstance(index, tuple) else fill(index)


def check(act, index, *, x=X, values=(), jaxpr=True, grad=True):
    """`act(x, index, *values)` eagerly, compiled, as a jaxpr, and differentiated."""
    given = operands(index)

    def eager(m):
        parts = [m.numpy.asarray(part) for part in given]
        return act(m.numpy.asarray(x), filled(index, parts), *values)

    traced = lambda x, *parts: act(x, filled(index, parts), *values)
    in_both(lambda m: m.jit(lambda *xs: traced(*xs))(x, *given), eager)
    if jaxpr:
        texts = [str(m.make_jaxpr(lambda *xs: traced(*xs))(x, *given)) for m in (minijax, jax)]
        assert texts[0] == texts[1]

    def derivative(m):
        parts = [m.numpy.asarray(part) for part in given]
        out, pullback = m.vjp(lambda x: act(x, filled(index, parts), *values), m.numpy.asarray(x))
        return pullback(m.numpy.asarray(sample(out.shape, np.float32)))

    if grad:
        in_both_as_one(derivative)


def read(x, index):
    return x[index]


@pytest.mark.parametrize("index", BASIC, ids=spelled)
def test_read_basic(index):
    check(read, index)


@pytest.mark.parametrize("index", TRACED, ids=spelled)
def test_read_traced(index):
    check(read, index)


@pytest.mark.parametrize("index", KNOWN, ids=spelled)
def test_read_known(index):
    check(read, index, jaxpr=False)


@pytest.mark.parametrize("index", WRONG, ids=range(len(WRONG)))
def test_wrong_indices(index):
    given = operands(index)
    with pytest.raises(Exception):  # noqa: B017
        jax.numpy.asarray(X)[filled(index, given)]
    in_both(lambda m: m.numpy.asarray(X)[filled(index, given)])
    in_both(lambda m: m.numpy.asarray(X).at[filled(index, given)].set(1.0))
    in_both(lambda m: m.jit(lambda x: x[filled(index, given)])(X))


def test_traced_indices_that_cannot_be():
    in_both(lambda m: m.jit(lambda x, mask: x[mask])(X, MASK))
    in_both(lambda m: m.jit(lambda x, mask: x.at[mask].set(0))(X, X > 3))
    in_both(lambda m: m.vmap(lambda x, mask: x[mask])(X, np.ones((3, 4), bool)))
    in_both(lambda m: m.jit(lambda x, i: x[i:])(X, 1))


@pytest.mark.parametrize("index", BASIC[::2] + TRACED[::3], ids=spelled)
def test_get_in_modes(index):
    for mode in ("fill", "clip", "promise_in_bounds"):
        check(lambda x, index, mode=mode: x.at[index].get(mode=mode), index, grad=False)
    check(lambda x, index: x.at[index].get(wrap_negative_indices=False), index, grad=False)


BEYOND = [
    9,
    -9,
    (1, 9),
    (ALL, -9),
    (9, slice(1, None)),
    (9, slice(None, None, 2)),
    (None, 9),
    (..., 9),
]


@pytest.mark.parametrize("index", BEYOND, ids=spelled)
def test_known_places_out_of_range_are_clipped(index):
    """Before they are read, so that the program, and `checkify`, knows a place within the array."""
    check(lambda x, index: x.at[index].get(mode="clip"), index, grad=False)


KINDS = ["set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"]


@pytest.mark.parametrize("index", BASIC[::2] + TRACED[::2], ids=spelled)
def test_write(index):
    for kind in ("set", "add"):
        check(lambda x, index, y, kind=kind: getattr(x.at[index], kind)(y), index, values=(2.5,))
    kind = "multiply" if isinstance(index, tuple) else "min"
    act = lambda x, index, y: getattr(x.at[index], kind)(y)
    check(act, index, values=(2.5,), grad=False)


@pytest.mark.parametrize("index", KNOWN[::2], ids=spelled)
def test_write_known(index):
    check(lambda x, index: x.at[index].set(2.5), index, jaxpr=False, grad=False)
    check(lambda x, index: x.at[index].add(2.5, mode="clip"), index, jaxpr=False, grad=False)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_updates(kind):
    for index in (0, slice(1, 3), II, (ALL, I), (..., None, JJ)):
        parts = filled(index, operands(index))
        shape = X[parts].shape
        y = sample(shape if isinstance(index, tuple) else shape[-1:], np.float32)
        act = lambda x, index, y=y: getattr(x.at[index], kind)(y)
        check(act, index, x=X + 1, jaxpr=False, grad=False)


def test_apply():
    square = lambda v: v * v
    for index in (0, II, (ALL, I), slice(None, None, 2)):
        check(lambda x, index: x.at[index].apply(square), index, grad=False)


DTYPES = [
    np.int32, np.int8, np.bool_, np.float16, ml_dtypes.bfloat16, np.complex64, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_dtypes_of_updates(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    updates = (1, 2.5, True, np.float32(2), np.int8(3), np.float16(1.5), np.uint8(200))
    for number, y in enumerate(updates):
        for kind in ("set", ("add", "multiply", "max")[number % 3]):
            act = lambda m, y=y, kind=kind: getattr(m.numpy.asarray(x).at[1], kind)(y)
            in_both(act)
        in_both(lambda m, y=y: m.numpy.asarray(x).at[np.array([0, 1])].set(y))


def test_lossy_updates_warn():
    for m in (jax, minijax):
        with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
            m.numpy.arange(3).at[0].set(1.5)


def test_weak_types():
    def run(m):
        weak = m.lax.full((3,), 1.0)
        return [
            weak[0], weak[1:], weak[np.array([0, 1])], weak.at[0].set(2), weak.at[0].set(np.float32(2)),
            weak.at[np.array([0])].add(2.0), weak[None], weak[np.array([True, False, True])],
        ]  # fmt: skip

    in_both(run)
    in_both(lambda m: m.jit(lambda: run(m))())


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0)], ids=str)
def test_small_arrays(shape):
    x = np.ones(shape, np.float32)
    for index in (
        (),
        ...,
        None,
        0,
        True,
        ALL,
        (ALL, 0),
        np.zeros(0, int),
        np.array([0]),
        slice(1, 2),
    ):
        in_both(lambda m, index=index: m.numpy.asarray(x)[index])
        in_both(lambda m, index=index: m.numpy.asarray(x).at[index].set(2.0))


def test_updates_that_do_not_fit():
    for y in (np.ones(3), np.ones((1, 4, 5)), "a", None, {}, object()):
        in_both(lambda m, y=y: m.numpy.asarray(X).at[0].set(y))
    in_both(lambda m: m.numpy.asarray(X).at[0].set([1, 2, 3, 4, 5]))
    for mode in ("wrap", "raise", 3):
        in_both(lambda m, mode=mode: m.numpy.asarray(X).at[0].set(1.0, mode=mode))
        in_both(lambda m, mode=mode: m.numpy.asarray(X).at[0].get(mode=mode))


def test_fill_values():
    for dtype in (np.float32, np.int32, np.uint8, np.bool_, np.complex64):
        for fill_value in (None, 3, 2.5, np.float32(3), *[np.nan] * (dtype == np.float32)):
            for index in (np.array([0, 9]), 9, 1):
                in_both(
                    lambda m, a=(dtype, fill_value, index): m.numpy.asarray(X, a[0])
                    .at[a[2]].get(mode="fill", fill_value=a[1])
                )  # fmt: skip


@pytest.mark.parametrize("index", BASIC[::3] + TRACED[::2], ids=spelled)
def test_mapped(index):
    xs = np.stack([X, X * 2], 1)
    parts = [np.stack([part, part]) for part in operands(index)]
    for act in (read, lambda x, index: x.at[index].add(2.5)):
        for axis in (None, 0):
            given = parts if axis == 0 else operands(index)
            in_both(
                lambda m, act=act, axis=axis, given=given: m.vmap(
                    lambda x, *p: act(x, filled(index, p)), in_axes=(1, *[axis] * len(given))
                )(xs, *given)
            )


@pytest.mark.parametrize("index", TRACED[::4] + KNOWN[::5], ids=spelled)
def test_with_64_bits(index):
    with x64(True):
        check(read, index, jaxpr=any(index is known for known in TRACED), grad=False)
        check(
            lambda x, i: x.at[i].set(2.5),
            index,
            jaxpr=any(index is known for known in TRACED),
            grad=False,
        )


def test_loops_over_indices_compile_once():
    x = minijax.numpy.asarray(X)
    actions = [
        lambda i: x[i],
        lambda i: x[i : i + 2],
        lambda i: x[:, i, i : i + 1],
        lambda i: x.at[i].set(1.0),
        lambda i: x.at[i : i + 2].add(1.0),
        lambda i: x[minijax.numpy.asarray([i, 0])],
    ]
    for act in actions:
        act(0)
        before = len(indexing._programs)
        act(1)
        assert len(indexing._programs) == before


def test_derivatives_of_loops_compile_once():
    from minijax.arrays import dispatch

    x = minijax.numpy.asarray(X)
    for act in (lambda x, i: x[i, i], lambda x, i: x[i : i + 2], lambda x, i: x.at[i].set(2.0)):
        gradient = lambda i, act=act: minijax.grad(lambda x: (act(x, i) ** 2).sum())(x)
        mapped = lambda i, act=act: minijax.vmap(lambda x: act(x, i))(x)
        gradient(0), mapped(0)
        before = len(dispatch._programs) + len(indexing._programs)
        gradient(1), mapped(1)
        assert len(dispatch._programs) + len(indexing._programs) == before


def test_masks_need_no_program():
    x = minijax.numpy.asarray(X[0, 0])
    before = len(indexing._programs)
    for count in range(5):
        mask = np.arange(5) < count
        assert_same(x[minijax.numpy.asarray(mask)], jax.numpy.asarray(X[0, 0])[mask])
    assert len(indexing._programs) == before


def test_places():
    x = minijax.numpy.arange(3)
    assert repr(x.at) == "_IndexUpdateHelper(Array([0, 1, 2], dtype=int32))"
    assert repr(x.at[0]) == "_IndexUpdateRef(Array([0, 1, 2], dtype=int32), 0)"
    assert x[...] is x
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1
    assert [int(a) for a in x] == [0, 1, 2]


def test_with_jit_disabled():
    with minijax.disable_jit():
        x = minijax.numpy.asarray(X)
        ours = [x[0], x[1:], x[II.value], x.at[0].set(1.0), x.at[II.value].add(1.0)]
    x = jax.numpy.asarray(X)
    assert_same(ours, [x[0], x[1:], x[II.value], x.at[0].set(1.0), x.at[II.value].add(1.0)])


# -- take, put and their kin -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap"])
def test_take(mode):
    for axis in (None, 0, 1, -1):
        for places in (II, Operand([[0, -1, 7]]), I):

            def run(m, axis=axis, places=places):
                take = lambda x, i: m.numpy.take(x, i, axis=axis, mode=mode)
                return (take if axis == 1 else m.jit(take))(X, places.value)

            in_both(run)
    in_both(lambda m: m.grad(lambda x: (m.numpy.take(x, II.value, 1, mode=mode) ** 2).sum())(X))


def test_take_errors():
    for act in (
        lambda np_: np_.take(X, [0, 1]),
        lambda np_: np_.take(X, 1.0, 0),
        lambda np_: np_.take(X, 0, 5),
        lambda np_: np_.take(X, 0, 0, mode="raise"),
        lambda np_: np_.take(X, 0, 0, mode="foo"),
        lambda np_: np_.take(X, 0, 0, out=X),
        lambda np_: np_.take(X[:0], II.value, 0),
        lambda np_: np_.take_along_axis(X, II.value, 0),
        lambda np_: np_.take_along_axis(X, X, 0),
        lambda np_: np_.take_along_axis(X, np.zeros((2, 2, 2), int), 0),
        lambda np_: np_.put(X, 0, 1),
        lambda np_: np_.put(X, 0, 1, mode="raise", inplace=False),
        lambda np_: np_.put_along_axis(X, II.value, 1, 0, inplace=False),
        lambda np_: np_.put_along_axis(X, II.value, 1, 0),
    ):
        with pytest.raises(Exception):  # noqa: B017
            act(jax.numpy)
        in_both(lambda m, act=act: act(m.numpy))


def test_take_of_little():
    in_both(lambda m: m.numpy.take(X, np.zeros(0, int), 0))
    in_both(lambda m: m.numpy.take(np.float32(3), 0))
    in_both(lambda m: m.numpy.take(X.astype(int), np.array([0, 99])))
    in_both(lambda m: m.numpy.take(X, II.value, 0, fill_value=3, unique_indices=True))
    in_both(lambda m: m.numpy.take_along_axis(X[:, :0], np.zeros((3, 2, 5), int), 1))


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 1), (1, 1, 1), (3, 4, 1)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(shape, axis):
    indices = np.array(np.random.RandomState(0).randint(-7, 8, shape), np.int32)
    indices = np.take(indices, [0, 0], axis)
    for x in (X, np.take(X, [0], 0), np.take(X, [1], 2)):
        act = lambda m, x, i: m.numpy.take_along_axis(x, i, axis)
        in_both(lambda m, x=x: act(m, x, indices))
        in_both(lambda m, x=x: m.grad(lambda x: m.numpy.nansum(act(m, x, indices)))(x))
    for mode in ("clip", "promise_in_bounds"):
        in_both(lambda m, mode=mode: m.numpy.take_along_axis(X, abs(indices) % 3, axis, mode=mode))


def test_put():
    places = np.array([99, -1, -70, 3])
    for mode in (None, "clip", "wrap"):
        for y in (5.0, np.arange(2.0), np.arange(9.0)):
            in_both(lambda m, a=(mode, y): m.numpy.put(X, places, a[1], a[0], inplace=False))
    in_both(lambda m: m.numpy.put(X, places, np.zeros(0), inplace=False))
    rows = np.zeros((3, 2, 5), int)
    in_both(lambda m: m.numpy.put_along_axis(X, rows, 5.0, 1, inplace=False))
    in_both(lambda m: m.numpy.put_along_axis(X, rows[:1] + 9, 5.0, 1, inplace=False, mode="clip"))
    in_both(lambda m: m.numpy.put_along_axis(X, np.array([0, 7]), 5.0, None, inplace=False))


@pytest.mark.parametrize("shape", [(3,), (0,), (2, 3), (0, 3), (3, 0), (1, 3), (2, 1, 2)], ids=str)
def test_insert(shape):
    """As NumPy's, or as upstream's where that takes no lists, or places out of bounds."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    sizes = [(), (1,), (2,), (3,), (0,), (1, 2), (2, 1), (2, 3)]
    places = [0, 1, [0], np.array([0]), np.array([1]), np.array([-1]), np.array([0, 1])]
    places += [slice(0, 1), slice(0, 2)]
    for size, place, axis in itertools.product(sizes, places, (None, *range(len(shape)))):
        values = -1 - np.arange(np.prod(size), dtype=np.float32).reshape(size)

        def inserted(m, x=x, place=place, values=values, axis=axis):
            try:
                made = m.insert(x, place, values, axis=axis)
            except (TypeError, ValueError, IndexError) as error:
                return isinstance(error, TypeError)
            return np.shape(made), np.asarray(made).tolist()

        found = inserted(minijax.numpy)
        given = (size, place, axis, found)
        assert found == inserted(np) or found == inserted(jax.numpy), given


@pytest.mark.parametrize(
    "index",
    [
        lambda i: (..., slice(i, None)),
        lambda i: (..., slice(i, None), 0),
        lambda i: (None, ..., slice(i, None)),
        lambda i: (None, 0, slice(i, None)),
        lambda i: (slice(None), slice(None), slice(i, None)),
        lambda i: (..., slice(None, i), slice(0, i)),
    ],
)
def test_position_of_a_refused_entry_counts_an_ellipsis_as_one(index):
    """The position is the place in the index as it was written."""

    def position(m):
        with pytest.raises(IndexError) as info:
            m.jit(lambda i: m.numpy.ones((2, 3, 4))[index(i)])(1)
        return re.search(r"at position \d", str(info.value))[0]

    assert position(minijax) == position(jax)


@pytest.mark.parametrize("place", [(..., 5), (..., 5, 0), (None, 0, 5)])
def test_position_of_a_mask_of_another_shape(place):
    """A mask whose shape does not fit is named by its place in the index as it was written."""
    found = []
    for m in (minijax, jax):
        index = tuple(np.ones(5, bool) if item == 5 else item for item in place)
        with pytest.raises(IndexError) as info:
            m.numpy.ones((2, 3, 4))[index]
        found.append(re.findall(r"in index \d: got \S+ expected \[\d\]", str(info.value)))
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "index", [slice(0.5, None), slice(None, None, 2.0), (0, slice(np.float32(1), None)), (0, 0, 1)]
)
def test_message_of_a_refused_entry_begins_with_upstreams(index):
    """A slice's entry that is no integer, and an element of an empty axis."""
    messages = []
    for m in (minijax, jax):
        with pytest.raises((TypeError, IndexError)) as info:
            m.numpy.ones((2, 3, 0))[index]
        messages.append(str(info.value))
    assert messages[0].startswith(messages[1].rstrip("."))
