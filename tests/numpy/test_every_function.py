"""Every public callable of `jax.numpy` has rows: eager, compiled, mapped, and differentiated."""

import collections
import re

import jax
import numpy as np
import pytest

import minijax
from tests.cases.numpy_breadth import DERIVED, ELSEWHERE, MAPPED, UNMAPPED
from tests.cases.numpy_cases import CASES, EAGER_CASES, ERROR_CASES, GRAD_CASES, lines
from tests.harness.differential import assert_same, x64
from tests.harness.rules import in_both
from tests.numpy.test_expressions import run_text
from tests.numpy.test_ufuncs import FUNCTIONS

_SCALAR = type(jax.numpy.float32)
_OTHER_CLASSES = {"ComplexWarning", "dtype", "finfo", "iinfo", "ndarray", "printoptions", "ufunc"}
CLASSES = [
    name
    for name in sorted({*minijax.numpy.__all__} - _OTHER_CLASSES)
    if isinstance(getattr(jax.numpy, name), (type, _SCALAR))
]
# StableHLO has no such types; upstream computes with booleans instead.
_NO_ARRAYS = {"int1", "uint1"}


def functions():
    names = {name for name in minijax.numpy.__all__ if callable(getattr(minijax.numpy, name))}
    return names - {*CLASSES} - ELSEWHERE


def named(*texts):
    return set(re.findall(r"jnp\.(\w+)", "\n".join(texts)))


def test_every_function_has_a_row():
    assert not functions() - named(CASES, EAGER_CASES, ERROR_CASES) - FUNCTIONS


def test_every_function_is_mapped_or_differentiated():
    excused = {name for names in UNMAPPED.values() for name in names.split()}
    found = named(DERIVED, MAPPED, GRAD_CASES)
    assert not functions() - found - excused
    assert not excused - functions(), "excused, but not there"


def gradient(library, fun):
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
        grad = library.grad(total, argnums=tuple(range(len(args))))
        return (jax.jit(grad) if library is jax else grad)(*args)  # one program is made faster

    return run


def mapped(library, fun):
    """The function mapped over copies of its arguments that differ a little."""

    def run(*args):
        stacked = [library.numpy.stack([x, x * 2, x + 1]) for x in args]
        return library.jit(library.vmap(fun))(*stacked)

    return run


@pytest.mark.parametrize("text", lines(GRAD_CASES) + lines(DERIVED))
def test_grad(text):
    ours, theirs = (run_text(text, library, gradient) for library in (minijax, jax))
    assert_same(ours, theirs, where=text)


def pushed(library, fun):
    """The function and its derivative along itself, compiled."""

    def run(*args):
        return library.jit(lambda *xs: library.jvp(fun, xs, xs))(*args)

    return run


@pytest.mark.parametrize("text", lines(DERIVED))
def test_jvp_with_x64(text):
    with x64(True):
        ours, theirs = (run_text(text, library, pushed) for library in (minijax, jax))
        assert_same(ours, theirs, where=text)


@pytest.mark.parametrize("text", lines(GRAD_CASES) + lines(DERIVED) + lines(MAPPED))
def test_vmap(text):
    ours, theirs = (run_text(text, library, mapped) for library in (minijax, jax))
    assert_same(ours, theirs, where=text)


@pytest.mark.filterwarnings("ignore:Explicitly requested")
@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    ours, theirs = getattr(minijax.numpy, name), getattr(jax.numpy, name)
    assert ours.__name__ == theirs.__name__
    if not isinstance(theirs, _SCALAR):
        assert ours is theirs  # NumPy's own kinds of types
        return
    for enabled in (False, True):
        with x64(enabled):
            assert np.dtype(ours) == np.dtype(theirs)
            assert ours == theirs.dtype and hash(ours) == hash(theirs)
            for x in (1, 0.0, np.array([1, 0])):
                if name not in _NO_ARRAYS:
                    in_both(lambda m, x=x: getattr(m.numpy, name)(x))


@pytest.mark.parametrize("name", sorted(_NO_ARRAYS))
def test_classes_that_no_program_knows(name):
    with pytest.raises(NotImplementedError, match="StableHLO has no element type"):
        minijax.numpy.zeros(2, name) + 1


def test_files(tmp_path):
    for library, folder in ((minijax, tmp_path / "a"), (jax, tmp_path / "b")):
        folder.mkdir()
        library.numpy.save(folder / "one.npy", library.numpy.arange(3.0))
        library.numpy.savez(folder / "two.npz", x=library.numpy.arange(3), y=np.ones(2))
    for name in ("one.npy", "two.npz"):
        ours, theirs = (
            library.numpy.load(tmp_path / folder / name)
            for library, folder in ((minijax, "b"), (jax, "a"))
        )
        assert_same(dict(ours) if name == "two.npz" else ours,
                    dict(theirs) if name == "two.npz" else theirs)  # fmt: skip


class _Blocks:
    """An object that is iterated over by index, such as the block arrays of SCICO."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, place):
        return self.arrays[place]


class _Iterable:
    def __init__(self, arrays):
        self.arrays = arrays

    def __iter__(self):
        return iter(self.arrays)


@pytest.mark.parametrize("kind", [_Blocks, _Iterable, collections.deque, collections.UserList])
@pytest.mark.parametrize(
    "name", ["concatenate", "concat", "stack", "vstack", "hstack", "dstack", "column_stack"]
)
def test_joins_of_the_arrays_in_any_iterable(name, kind):
    if name == "stack" and kind is _Iterable:
        pytest.skip("upstream asks for its length")
    results = []
    for library in (jax, minijax):
        jnp = library.numpy
        join = getattr(jnp, name)
        arrays = [jnp.arange(6.0).reshape(2, 3), jnp.ones((2, 3), jnp.int32)]
        results.append(join(kind(arrays)))
        traced = library.jit(lambda a, b, join=join: join(kind([a, b])))(*arrays)
        np.testing.assert_array_equal(traced, results[-1])
    theirs, ours = results
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("arrays", [3, None])
def test_joins_of_no_iterable(arrays):
    for library in (jax, minijax):
        with pytest.raises(TypeError):
            library.numpy.concatenate(arrays)


_TAKERS = {
    "lax.concatenate": lambda m, arrays: m.lax.concatenate(arrays, 0),
    "lexsort": lambda m, arrays: m.numpy.lexsort(arrays),
    "piecewise": lambda m, arrays: m.numpy.piecewise(m.numpy.ones(2), arrays, [1, 2]),
    "ravel_multi_index": lambda m, arrays: m.numpy.ravel_multi_index(arrays, (2, 2)),
    **{
        name: lambda m, arrays, name=name: getattr(m.numpy, name)(arrays)
        for name in ("concatenate", "stack", "vstack", "dstack", "column_stack")
    },
}


@pytest.mark.parametrize("iterator", [iter, reversed, lambda arrays: map(abs, arrays)])
@pytest.mark.parametrize("name", _TAKERS)
def test_iterators_of_arrays_are_refused(name, iterator):
    errors = []
    for library in (jax, minijax):
        arrays = [library.numpy.ones(2, int), library.numpy.zeros(2, int)]
        with pytest.raises((TypeError, ValueError)) as caught:
            _TAKERS[name](library, iterator(arrays))
        errors.append(caught.value)
    theirs, ours = errors
    assert isinstance(ours, type(theirs))
    if isinstance(theirs, ValueError) or "no len()" in str(theirs):
        assert str(ours).startswith(str(theirs).rstrip("."))


@pytest.mark.parametrize(
    "shape",
    [{2: 0, 4: 0}, {2: 0, 4: 0}.keys(), (np.int64(2), np.int16(4)), np.array([2, 4], np.int8), (2.0, 4),
     (1.5, 2.5), (True, 4), np.int32(4), np.float16(4), (np.int8(2), 4), [], "array", "array of one",
     "generator"],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize(
    "index", [3, np.int8(3), np.array([1, -1, 9])], ids=["int", "int8", "array"]
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_sizes_of_unravel_index(index, shape, compiled):
    results = []
    for library in (jax, minijax):
        made = {"array": library.numpy.array([2, 4], "int16"),
                "array of one": (library.numpy.int32(2), 4), "generator": (n for n in (2, 4))}  # fmt: skip
        sizes = made[shape] if isinstance(shape, str) else shape
        call = lambda i, m=library, sizes=sizes: m.numpy.unravel_index(i, sizes)
        results.append((library.jit(call) if compiled else call)(index))
    assert len(results[0]) == len(results[1])
    for theirs, ours in zip(*results, strict=True):
        assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "dtype", ["int32", "bool", "int4", "uint8", "bfloat16", "complex64", np.float16]
)
@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_dtypes_of_covariances(name, dtype):
    x = np.array([[1, 2, 4], [3, 1, 1]])
    outcomes = []
    for library in (jax, minijax):
        try:
            outcomes.append(str(getattr(library.numpy, name)(x, dtype=dtype).dtype))
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[1].startswith(outcomes[0])
