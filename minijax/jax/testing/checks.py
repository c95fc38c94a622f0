"""Comparisons of numbers for tests written for JAX: how near is near, and derivatives.

`testing` shows these names as those of `jax._src.test_util`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import minijax
from minijax import dtypes as _dtypes
from minijax import tree_util
from minijax.test_util import check_grads, check_jvp, check_vjp

# ruff: noqa: PT017 (these are for tests of unittest's kind)

__all__ = [
    "check_close", "check_eq", "check_grads", "check_jvp", "check_raises", "check_raises_regexp",
    "check_vjp", "default_gradient_tolerance", "default_tolerance", "join_tolerance", "tolerance",
]  # fmt: skip

_INTEGERS = (
    "int1", "uint1", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16",
    "int32", "uint32", "int64", "uint64", "bool",
)  # fmt: skip
# By dtype: how far values, and derivatives, may be apart.
_FLOATS = {
    "float4_e2m1fn": (1.0, 1.0), "float8_e8m0fnu": (1.0, 1.0), "float8_e3m4": (0.1, 0.1),
    "float8_e4m3": (0.1, 0.1), "float8_e4m3b11fnuz": (0.1, 0.1), "float8_e4m3fn": (0.1, 0.1),
    "float8_e4m3fnuz": (0.1, 0.1), "float8_e5m2": (0.1, 0.1), "float8_e5m2fnuz": (0.1, 0.1),
    "bfloat16": (1e-2, 1e-1), "float16": (1e-3, 1e-2), "float32": (1e-6, 2e-3),
    "float64": (1e-15, 1e-5), "complex64": (1e-6, 1e-3), "complex128": (1e-15, 1e-5),
}  # fmt: skip


def _known(name: str) -> np.dtype | None:
    if hasattr(ml_dtypes, name):
        return np.dtype(getattr(ml_dtypes, name))
    try:
        return np.dtype(name)
    except TypeError:
        return None


_default_tolerance = {np.dtype(_dtypes.float0): 0}
_default_tolerance |= {kind: 0 for kind in map(_known, _INTEGERS) if kind is not None}
_default_tolerance |= {
    kind: values[0] for name, values in _FLOATS.items() if (kind := _known(name)) is not None
}
default_gradient_tolerance = {
    kind: values[1] for name, values in _FLOATS.items() if (kind := _known(name)) is not None
}
_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def default_tolerance() -> dict[np.dtype, float]:
    """Return how far values of each dtype may be apart."""
    return _default_tolerance


def _dtype(x: Any) -> Any:
    """The dtype of an array, or of a number as NumPy has it."""
    found = getattr(x, "dtype", None)
    return np.asarray(x).dtype if found is None else found


def canonical(kind: Any) -> Any:
    """A dtype as arrays have it under the current x64 mode; what is no dtype of arrays stays."""
    if not isinstance(kind, np.dtype) or minijax.config.jax_enable_x64:
        return kind
    return np.dtype(_NARROW.get(kind.name, kind))


def _normalize_tolerance(tol: Any) -> dict[np.dtype, float]:
    if isinstance(tol, dict):
        return {np.dtype(kind): value for kind, value in tol.items()}
    return dict.fromkeys(_default_tolerance, 0 if tol is None else tol)


def tolerance(dtype: Any, tol: Any = None) -> float:
    """The tolerance for a dtype: `tol`, its entry there, or the default."""
    if tol is not None and not isinstance(tol, dict):
        return tol
    given = _normalize_tolerance(tol) if tol else {}
    kind = canonical(np.dtype(dtype))
    return given.get(kind, _default_tolerance[kind])


def join_tolerance(tol1: Any, tol2: Any) -> dict[np.dtype, float]:
    """The larger of two tolerances, dtype by dtype."""
    joined, other = _normalize_tolerance(tol1), _normalize_tolerance(tol2)
    for kind, value in other.items():
        joined[kind] = max(value, joined.get(kind, 0))
    return joined


def _assert_numpy_allclose(
    a: Any, b: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = ""
) -> None:
    """NumPy's comparison, for every dtype there is."""
    if _dtypes.float0 in (_dtype(a), _dtype(b)):
        if _dtype(a) != _dtype(b):
            raise AssertionError(f"{_dtype(a)} and {_dtype(b)} are different dtypes. {err_msg}")
        return

    def widened(x):
        value = np.asarray(x)
        return value if value.dtype.isbuiltin == 1 else value.astype(np.float32)

    given = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value}
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(widened(a), widened(b), **given, err_msg=err_msg)


def _check_dtypes_match(xs: Any, ys: Any) -> None:
    def check(x, y):
        assert canonical(_dtype(x)) == canonical(_dtype(y)), f"{_dtype(x)} is not {_dtype(y)}"

    tree_util.tree_map(check, xs, ys)


def check_close(
    xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = ""
) -> None:  # fmt: skip
    """AssertionError unless two trees are near each other, leaf by leaf.

    The tolerances are multiplied by the number of elements of a leaf, as `check_grads` does.
    """

    def check(x, y):
        assert np.shape(x) == np.shape(y), f"the shape is {np.shape(x)}, not {np.shape(y)}"
        kinds = (_dtype(x), _dtype(y))
        within = (np.size(x) * max(tolerance(kind, tol) for kind in kinds) for tol in (atol, rtol))
        _assert_numpy_allclose(x, y, *within, err_msg)

    tree_util.tree_map(check, xs, ys)


def check_eq(xs: Any, ys: Any, err_msg: str = "") -> None:
    """AssertionError unless two trees of arrays are equal, leaf by leaf."""
    assert_equal = functools.partial(_assert_numpy_allclose, err_msg=err_msg)
    tree_util.tree_map(assert_equal, xs, ys)


def check_raises(thunk: Callable[[], Any], err_type: type, msg: str) -> None:
    """AssertionError unless `thunk()` raises this error, with a text that begins with `msg`."""
    try:
        thunk()
    except err_type as error:
        assert str(error).startswith(msg), f"\n{error}\n\n{msg}\n"
    else:
        raise AssertionError(f"{err_type.__name__} was not raised")


def check_raises_regexp(thunk: Callable[[], Any], err_type: type, pattern: str) -> None:
    """AssertionError unless `thunk()` raises this error, with a text that matches from its start."""
    try:
        thunk()
    except err_type as error:
        assert re.match(pattern, str(error)), f"{error}\n\n{pattern}\n"
    else:
        raise AssertionError(f"{err_type.__name__} was not raised")
