"""Calls of one jitted function made often, whose structure jit writes out: the same results as
those
of the first call, and calls of other structures in between."""

import collections

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

_MANY = 70  # more than twice as often as a structure must be met to be written out
Pair = collections.namedtuple("Pair", "first second")


class Node:
    """A container that was registered."""

    def __init__(self, value, label):
        self.value, self.label = value, label


for library in (jax, minijax):
    library.tree_util.register_pytree_node(
        Node, lambda n: ((n.value,), n.label), lambda label, values: Node(values[0], label)
    )


def _containers(children):
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("zyxw"), children, max_size=3),
        st.dictionaries(st.integers(0, 3), children, max_size=2),
        st.builds(Pair, children, children),
        st.dictionaries(st.sampled_from("ba"), children, max_size=2).map(collections.OrderedDict),
        st.builds(Node, children, st.sampled_from(("left", "right"))),
    )


_leaves = st.sampled_from(((), (1,), (2,), (0, 3), None))
_trees = st.recursive(_leaves, _containers, max_leaves=6)


def _arrays(m, tree):
    """The tree with an array for each shape; the arrays differ."""
    count = iter(range(100))

    def array(shape):
        return m.numpy.full(shape, next(count), m.numpy.float32)

    return m.tree_util.tree_map(array, tree, is_leaf=_is_shape)


def _is_shape(x):
    return type(x) is tuple and all(type(n) is int for n in x) and x in ((), (1,), (2,), (0, 3))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(_trees, max_size=3), st.dictionaries(st.sampled_from("pq"), _trees, max_size=2))
def test_structures(args, kwargs):
    def double(*args, **kwargs):
        return minijax.tree_util.tree_map(lambda x: x * 2, (kwargs, args))

    f = minijax.jit(double)
    args, kwargs = _arrays(minijax, args), _arrays(minijax, kwargs)
    leaves, tree = minijax.tree_util.tree_flatten(double(*args, **kwargs))
    for _ in range(_MANY):
        found, structure = minijax.tree_util.tree_flatten(f(*args, **kwargs))
        assert structure == tree
        assert [x.aval for x in found] == [x.aval for x in leaves]
        assert [x.tolist() for x in found] == [x.tolist() for x in leaves]


def _called_often(m):
    """A jitted function whose calls with a dictionary of two arrays are written out."""
    f = m.jit(lambda t: m.tree_util.tree_map(lambda x: x + 1, t))
    for _ in range(_MANY):
        f({"a": m.numpy.zeros(2), "b": m.numpy.ones(3)})
    return f


OTHERS = {
    "other order": lambda m: {"b": m.numpy.ones(3), "a": m.numpy.zeros(2)},
    "other shapes": lambda m: {"a": m.numpy.zeros((3, 1)), "b": m.numpy.ones(())},
    "other dtype": lambda m: {"a": m.numpy.zeros(2, int), "b": m.numpy.ones(3)},
    "other keys": lambda m: {"a": m.numpy.zeros(2), "c": m.numpy.ones(3)},
    "fewer": lambda m: {"a": m.numpy.zeros(2)},
    "more": lambda m: {"a": m.numpy.zeros(2), "b": m.numpy.ones(3), "c": m.numpy.ones(3)},
    "another type": lambda m: collections.OrderedDict(b=m.numpy.zeros(2), a=m.numpy.ones(3)),
    "a tuple": lambda m: (m.numpy.zeros(2), m.numpy.ones(3)),
    "a leaf": lambda m: m.numpy.zeros(2),
    "none": lambda m: {"a": m.numpy.zeros(2), "b": None},
    "deeper": lambda m: {"a": m.numpy.zeros(2), "b": [m.numpy.ones(3)]},
    "numbers": lambda m: {"a": 1, "b": 2.5},
    "of NumPy": lambda m: {"a": np.zeros(2, np.float32), "b": np.int8(3)},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_structure(name):
    ours, theirs = _called_often(minijax), _called_often(jax)
    for _ in range(3):
        assert_same(ours(OTHERS[name](minijax)), theirs(OTHERS[name](jax)))
    with minijax.enable_x64(True), jax.enable_x64(True):
        assert_same(ours(OTHERS[name](minijax)), theirs(OTHERS[name](jax)))


def test_structures_by_turns():
    f = minijax.jit(lambda *a, **k: (sum(a), k))
    x = minijax.numpy.arange(3.0)
    for _ in range(_MANY):
        assert f(x, x)[0].tolist() == [0, 2, 4]
        assert f(x, x, x)[0].tolist() == [0, 3, 6]
        assert f(x, y={"z": x})[1]["y"]["z"].tolist() == [0, 1, 2]
        assert f(x, 1)[0].tolist() == [1, 2, 3]


def test_under_transforms():
    f = _called_often(minijax)
    tree = {"a": minijax.numpy.zeros((4, 2)), "b": minijax.numpy.ones((4, 3))}
    assert minijax.vmap(f)(tree)["b"].tolist() == [[2.0] * 3] * 4
    grad = minijax.grad(lambda t: f(t)["a"].sum())(tree)
    assert grad["a"].tolist() == [[1.0] * 2] * 4
    assert grad["b"].tolist() == [[0.0] * 3] * 4


def test_no_leaves():
    f = minijax.jit(lambda *args: {"none": None, "args": args})
    for _ in range(_MANY):
        assert f((), [{}], None) == {"none": None, "args": ((), [{}], None)}


def test_deleted():
    f = _called_often(minijax)
    x = minijax.numpy.zeros(2)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f({"a": x, "b": minijax.numpy.ones(3)})


def test_donated():
    f = minijax.jit(lambda t, x: (t["a"] + x, x), donate_argnums=0)
    x = minijax.numpy.ones(5)
    t = {"a": minijax.numpy.zeros(5)}
    for _ in range(_MANY):
        given = t["a"]
        t = {"a": f(t, x)[0]}
        assert given.is_deleted()
    assert t["a"].tolist() == [_MANY] * 5


def test_large_trees():
    f = minijax.jit(lambda *args: args[::-1])
    args = [minijax.numpy.float32(n) for n in range(300)]
    for _ in range(_MANY):
        out = f(*args)
    assert [float(x) for x in out] == list(range(300))[::-1]


def _static(m):
    f = m.jit(
        lambda x, n, *, mode: (x + len(str(n)), mode == "up"),
        static_argnums=1,
        static_argnames="mode",
    )
    x = m.numpy.ones(3)

    def calls():
        for n in (1, True, 1.0, "one", None, (1, 2), 2):
            yield f(x, n, mode="up"), f(x, n, mode=1), f(np.ones(3, np.float32), n, mode="down")

    return calls


def _from_the_host(m):
    f = m.jit(lambda x, y: (x * 2, y))
    values = [
        np.float32([1.5, 2]), np.array([1, 2]), np.array([3, 4]), np.array(5), 6, 2.5, True, 1j, np.int8(7),
        np.arange(3) > 1, np.arange(40.0).reshape(8, 5).T, np.zeros((0, 2)), m.numpy.ones(2),
        np.arange(1 << 15, dtype=np.float32), np.arange(1 << 16, dtype=np.float32)[::-2],
    ]  # fmt: skip

    def calls():
        for x in values:
            yield f(x, values[0])

    return calls


@pytest.mark.parametrize("make", [_static, _from_the_host])
def test_static_and_host_values(make):
    ours, theirs = make(minijax), make(jax)
    expected = list(theirs())
    for _ in range(_MANY // 7 * 2):
        found = list(ours())
    assert_same(found, expected)
    with minijax.enable_x64(True), jax.enable_x64(True):
        assert_same(list(ours()), list(theirs()))


def test_a_static_value_that_cannot_be_hashed_among_others():
    f = minijax.jit(lambda x, n: x + n, static_argnums=1)
    for _ in range(_MANY):
        f(minijax.numpy.ones(3), 1)
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(minijax.numpy.ones(3), [1])


def _aligned(size):
    """An array that XLA reads where it lies."""
    raw = np.ones(size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + size]


@pytest.mark.parametrize("donated", [(), (0,)])
def test_large_arrays_of_the_host(donated):
    """Are not written to, not part of results, and live until the results are there."""
    f = minijax.jit(lambda x: (x, x * 2), donate_argnums=donated)
    for n in range(_MANY):
        x = _aligned(1 << 18)
        x[:] = n
        same, double = minijax.block_until_ready(f(x))
        assert (x == n).all()
        x[:] = -1
        assert (np.asarray(same) == n).all() and (np.asarray(double) == 2 * n).all()
        results = f(np.full(1 << 18, n, np.float32))  # which nothing here holds
        assert [float(r[-1]) for r in results] == [n, 2 * n]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 16, 17, 40, 257])
def test_rows(size):
    whole = np.arange(size * 2, dtype=np.int32).reshape(size, 2)
    x = minijax.numpy.asarray(whole)
    for _ in range(7):
        rows = list(x)
        assert [type(row) for row in rows] == [type(x)] * size
        assert [row.aval for row in rows] == [x.aval.update(shape=(2,))] * size
        np.testing.assert_array_equal(np.array(rows).reshape(size, 2), whole)
