"""Sums of exponentials, normalizations along axes and one-hot rows.

Maxima are subtracted before exponentials are taken, so that none overflows; they are constants to
differentiation, since the result does not depend on them.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.arguments.values import known_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.namespace import user_stacklevel
from minijax.numpy.promotion import (
    axes_of,
    axis_of,
    check_arraylike,
    check_ranks,
    promote_dtypes_inexact,
)
from minijax.numpy.reductions import names_of
from minijax.typing import ArrayLike

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]

_AXIS = ("axis",)


@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]: ...
@library(static=("axis", "keepdims", "return_sign"), converted=("axis", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Compute `log(sum(b * exp(a)))` along axes, without overflow.

    - `a`, `b`: arrays that broadcast together; `b` is 1 by default
    - `axis`: axis or axes, by default all; `keepdims`: whether they stay, with size 1
    - `return_sign`: whether to return the logarithm of the absolute value, and the sign of the sum;
      without it a negative sum gives NaN
    - `where`: boolean array; elements where it is False do not count

    The result has a floating-point or complex dtype and the shape without the axes. ValueError for
    an axis out of range. Source: SciPy's `special.logsumexp`.

    >>> nn.logsumexp(jnp.array([0.0, -jnp.inf]))
    Array(0., dtype=float32)
    """
    if b is None:
        check_arraylike("logsumexp", a)
    else:
        check_arraylike("logsumexp", a, b)
        check_ranks("logsumexp", a, b)
    if where is not None:  # before the dtype is chosen: a boolean array becomes one of integers
        a = jnp.where(where, a, 0)
    if b is None:
        (a,) = promote_dtypes_inexact(a)
    else:
        a, b = promote_dtypes_inexact(a, b)
    a = jnp.asarray(a)
    if b is not None:
        a = jnp.where(b != 0, a, -np.inf)
    names, rest = names_of(axis)
    axes = axes_of(rest, a.ndim)
    sizes = lax.real(a) if dtypes.issubdtype(a.dtype, np.complexfloating) else a
    sizes = lax.stop_gradient(sizes) if names else sizes  # a maximum over devices has no derivative
    every = (*axes, *names)
    top = jnp.max(sizes, axis=every, keepdims=keepdims, where=where, initial=-np.inf)
    top = lax.stop_gradient(lax.select(lax.is_finite(top), top, lax.full_like(top, 0)))
    wide = top if keepdims else jnp.expand_dims(top, axes)
    terms = lax.exp(lax.sub(a, wide.astype(a.dtype)))
    if b is not None:
        terms = lax.mul(terms, jnp.broadcast_to(b, terms.shape))
    total = jnp.sum(terms, axis=every, keepdims=keepdims, where=where)
    sign = lax.stop_gradient(lax.sign(total))
    if return_sign or not dtypes.issubdtype(total.dtype, np.complexfloating):
        total = lax.abs(total)
    out = lax.add(lax.log(total), top.astype(total.dtype))
    if return_sign:
        return out, sign
    if b is not None and not dtypes.issubdtype(out.dtype, np.complexfloating):
        out = jnp.where(sign < 0, np.asarray(np.nan, out.dtype), out)
    return out


@library(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute `log(mean(exp(x)))` along axes, without overflow.

    - `x`: numeric array
    - `axis`: axis or axes, by default all; `keepdims`: whether they stay, with size 1
    - `where`: boolean array that broadcasts to `x`; elements where it is False do not count

    The result has a floating-point or complex dtype and the shape without the axes. ValueError for
    an axis out of range. Source: SciPy's `special.logsumexp`.

    >>> nn.logmeanexp(jnp.array([0.0, 0.0]))
    Array(0., dtype=float32)
    """
    check_arraylike("logmeanexp", x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    shape = np.shape(x)
    if where is None:
        count = np.prod([shape[i] for i in axes_of(axis, len(shape))], dtype=np.float64)
        return lax.sub(total, jnp.log(jnp.asarray(count, total.dtype)))
    count = jnp.sum(jnp.broadcast_to(where, shape), axis=axis, keepdims=keepdims, dtype=total.dtype)
    return lax.sub(total, lax.log(count))


def _masked(name: str, x: Any, where: Any) -> Any:
    """x as floats, -inf where it does not count; an integer becomes the default float with `where`."""
    check_arraylike(name, x)
    if where is not None:
        x = jnp.where(where, x, -np.inf)
    (x,) = promote_dtypes_inexact(x)
    return x


def _exponentials(x: Any, axis: Any, where: Any) -> tuple[Any, Any, Any]:
    """x less its maximum along axes, the exponentials of that, and their sum."""
    names, rest = names_of(axis)
    axes = (*axes_of(rest, np.ndim(x)), *names)
    sizes = lax.stop_gradient(x) if names else x
    top = jnp.max(sizes, axis=axes, where=where, initial=-np.inf, keepdims=True)
    shifted = x - lax.stop_gradient(top)
    terms = jnp.exp(shifted)
    return shifted, terms, jnp.sum(terms, axis=axes, where=where, keepdims=True)


@library(static=_AXIS)
def log_softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """Compute `log(softmax(x))` along axes, accurately.

    - `x`: array of real numbers
    - `axis`: axis or axes, None for all
    - `where`: boolean array that broadcasts to `x`; elements where it is False do not count and
      give -inf

    The result has the shape of `x` and a floating-point dtype. ValueError for an axis out of range.
    Source: SciPy's `special.log_softmax`.

    >>> nn.log_softmax(jnp.array([0.0, -jnp.inf]))
    Array([  0., -inf], dtype=float32)
    """
    x = _masked("log_softmax", x, where)
    shifted, _, total = _exponentials(x, axis, where)
    out = shifted - jnp.log(total)
    return out if where is None else jnp.where(where, out, -np.inf)


@library(static=_AXIS, converted=("axis",))
def softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """Compute `exp(x) / sum(exp(x))` along axes: positive numbers whose sum is 1.

    - `x`: array of real numbers
    - `axis`: axis or axes, None for all
    - `where`: boolean array that broadcasts to `x`; elements where it is False do not count and
      give 0

    The result has the shape of `x` and a floating-point dtype. ValueError for an axis out of range.
    Source: SciPy's `special.softmax`.

    >>> nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    x = _masked("softmax", x, where)
    chosen = _softmax_by_result if local.context.settings.softmax_custom_jvp else _softmax
    return chosen(x, where, axis)


def _softmax(x, where, axis):
    _, terms, total = _exponentials(x, axis, where)
    out = terms / total
    return out if where is None else jnp.where(where, out, 0)


_softmax_by_result = custom_jvp(_softmax, nondiff_argnums=(2,))


@_softmax_by_result.defjvp
def _(axis, primals, tangents):
    out, tangent = _softmax_by_result(*primals, axis), tangents[0]
    return out, out * (tangent - jnp.sum(out * tangent, axis=axis, keepdims=True))


@library(static=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Compute `(x - mean) / sqrt(variance + epsilon)` along axes.

    - `x`: numeric array
    - `axis`: axis or axes, by default the last
    - `mean`, `variance`: arrays that broadcast with `x`, by default computed along the axes
    - `where`: boolean array; elements where it is False do not count
    - `algorithm`: "fast" for a variance in one pass, mean(x**2) - mean(x)**2, or "stable" for two

    The result has the shape of `x` and a floating-point dtype. ValueError for another algorithm.
    Source: Ba, Kiros and Hinton, arXiv:1607.06450 (2016).

    >>> nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(
            f"standardize: Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'."
        )
    check_arraylike("standardize", x)
    given, (x,) = x, promote_dtypes_inexact(x)
    if mean is None:
        given = x
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            # The difference of two rounded numbers may come out negative.
            variance = jnp.clip(squares - jnp.square(mean), 0)
    return jnp.subtract(given, mean) * lax.rsqrt(jnp.asarray(variance + epsilon))


def one_hot(x: Any, num_classes: int, *, dtype: Any | None = None, axis: Any = -1) -> Array:
    """Return vectors of zeros with a one at given indices; all zeros for an index out of range.

    - `x`: array of indices
    - `num_classes`: size of the new axis
    - `dtype`: dtype of the result, by default the default floating one
    - `axis`: position of the new axis, by default the last, or the name of a mapped axis, over
      which the classes are spread

    TypeError for a `num_classes` that is not an integer, ValueError for an axis out of range.
    Source: rows of NumPy's `eye`.

    >>> nn.one_hot(jnp.array([0, 2]), 3, dtype=jnp.int32)
    Array([[1, 0, 0],
           [0, 0, 1]], dtype=int32)
    """
    size = _class_count(num_classes)
    dtype = dtypes.check_user_dtype_supported(dtype, "astype")
    x = jnp.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.integer):
        warnings.warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}. Convert it with "
            ".astype(int).",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
    return _one_hot(x, size, dtype=dtype, axis=axis)


def _class_count(num_classes: Any) -> int:
    if is_dim(num_classes):
        return num_classes
    known_value(num_classes, "The error arose in jax.nn.one_hot argument `num_classes`.")
    try:
        return operator.index(num_classes)
    except TypeError:
        raise TypeError(
            f"one_hot: num_classes is a size and must be an integer; got {num_classes!r} of type "
            f"{type(num_classes)}."
        ) from None


@library(static=("num_classes", "dtype", "axis"))
def _one_hot(x, num_classes, *, dtype, axis):
    if dtypes.issubdtype(x.dtype, np.bool_):
        raise TypeError("one_hot does not accept dtype bool for the places: give integers.")
    if num_classes < 0:
        raise TypeError(
            f"iota shape must have every element be nonnegative, got ({num_classes},). It is the "
            "num_classes of one_hot."
        )
    try:
        place = axis_of(axis, x.ndim + 1)
    except TypeError:
        return _spread_one_hot(x, num_classes, dtype, axis)
    shape = [1] * (x.ndim + 1)
    shape[place] = num_classes
    classes = lax.broadcasted_iota(x.dtype, shape, place)
    return lax.convert_element_type(jnp.expand_dims(x, place) == classes, dtype)


def _spread_one_hot(x: Any, num_classes: int, dtype: Any, axis: Any) -> Array:
    count = lax.axis_size(axis)
    if num_classes != count:
        raise ValueError(
            f"one_hot: expected num_classes to match the size of the axis {axis!r}; got "
            f"{num_classes} and {count}."
        )
    index = lax.axis_index(axis).astype(get_aval(x).dtype)
    return lax.convert_element_type(x == index, dtype)
