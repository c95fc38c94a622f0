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


def tolerance(dtype) -> float:
    dtype = np.dtype(dtype)
    if dtype.kind not in "fcV":
        return 0.0
    name = dtype.name
    known = {
        "float64": 1e-12, "complex128": 1e-12, "float32": 2e-5, "complex64": 2e-5,
        "float16": 4e-3, "bfloat16": 3e-2,
    }  # fmt: skip
    return known.get(name, 0.3)


def assert_same(ours, theirs, *, rtol=None, atol=None, weak=True, where=""):
    """The same tree of arrays: structure, shapes, dtypes, weak types, values to a few ulp."""
    our_leaves, our_tree = minijax.tree_util.tree_flatten(ours)
    their_leaves, their_tree = jax.tree_util.tree_flatten(theirs)
    assert str(our_tree) == str(their_tree), f"{where}: {our_tree} is not {their_tree}"
    for a, b in zip(our_leaves, their_leaves, strict=True):
        assert_same_array(a, b, rtol=rtol, atol=atol, weak=weak, where=where)


def assert_same_array(a, b, *, rtol=None, atol=None, weak=True, where=""):
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
    if x.dtype.kind in "biu" or x.size == 0 or x.dtype == jax.dtypes.float0:
        np.testing.assert_array_equal(x, y, err_msg=where)
        return
    bound = tolerance(x.dtype) if rtol is None else rtol
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    scale = np.max(np.abs(y), where=np.isfinite(y), initial=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        absolute = bound * min(scale, 1.0) if atol is None else atol
        np.testing.assert_allclose(x, y, rtol=bound, atol=absolute, err_msg=where)


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
