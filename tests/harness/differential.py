"""Comparing minijax with upstream in one process: shared by the tests."""

import contextlib
import warnings

import jax
import ml_dtypes
import numpy as np

import minijax
from minijax import config as _  # noqa: F401

BOTH = (jax, minijax)


@contextlib.contextmanager
def x64(enabled: bool):
    """64-bit mode on or off in both libraries."""
    with jax.enable_x64(enabled), minijax.enable_x64(enabled):
        yield


def is_key(x):
    return hasattr(x, "dtype") and "key" in str(x.dtype)


def ulps_of(dtype) -> int:
    """The units in the last place by which values of a dtype may differ, unless a test says more."""
    info = ml_dtypes.finfo(dtype)
    if info.bits <= 8:
        return int(info.eps < 0.3)  # of those with one bit or none, a unit is half of the value
    return 4 if info.bits == 16 else 128


def is_inexact(dtype) -> bool:
    return jax.numpy.issubdtype(dtype, np.inexact)


def assert_same(ours, theirs, *, ulps=None, size=None, weak=True, where=""):
    """The same tree of arrays: structure, shapes, dtypes, weak types, and values.

    Numbers may differ by `ulps` units in the last place of their own, and by as many of `size`:
    the largest of the array, but at most 1, if that is None.
    """
    our_leaves, our_tree = minijax.tree_util.tree_flatten(ours)
    their_leaves, their_tree = jax.tree_util.tree_flatten(theirs)
    assert str(our_tree) == str(their_tree), f"{where}: {our_tree} is not {their_tree}"
    for a, b in zip(our_leaves, their_leaves, strict=True):
        assert_same_array(a, b, ulps=ulps, size=size, weak=weak, where=where)


def assert_same_array(a, b, *, ulps=None, size=None, weak=True, where=""):
    if is_key(b):
        assert str(a.dtype) == str(b.dtype)
        a, b = minijax.random.key_data(a), jax.random.key_data(b)
    if isinstance(b, jax.Array):
        assert isinstance(a, minijax.Array), f"{where}: {type(a)}"
    x, y = np.asarray(a), np.asarray(b)
    assert x.shape == y.shape, f"{where}: shape {x.shape} is not {y.shape}"
    assert x.dtype == y.dtype, f"{where}: dtype {x.dtype} is not {y.dtype}"
    if weak and isinstance(b, jax.Array):
        assert a.weak_type == b.weak_type, f"{where}: weak_type {a.weak_type} is not {b.weak_type}"
    if not is_inexact(x.dtype) or x.size == 0:
        np.testing.assert_array_equal(x, y, err_msg=where)
        return
    bound = float(ml_dtypes.finfo(x.dtype).eps) * (ulps_of(x.dtype) if ulps is None else ulps)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    if size is None:
        size = min(np.max(np.abs(y), where=np.isfinite(y), initial=0.0), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(x, y, rtol=bound, atol=bound * size, err_msg=where)


def sample(shape, dtype, seed=0):
    """Well-conditioned values of any dtype."""
    rng = np.random.RandomState(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.asarray(rng.rand(*shape) > 0.5)
    if dtype.kind in "iu" or dtype.name in ("int4", "uint4", "int2", "uint2"):
        low = 0 if dtype.name.startswith("u") else -3
        return np.asarray(rng.randint(low, 4, shape)).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(rng.randn(*shape) + 1j * rng.randn(*shape)).astype(dtype)
    return np.asarray(rng.randn(*shape)).astype(dtype)


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
