"""`minijax.scipy.fft`: cosine transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.features.library import library
from minijax.lax.shapes import items_of
from minijax.numpy import fft, ufuncs
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.promotion import (
    axis_of,
    check_arraylike,
    converted,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.shapes import flip, moveaxis
from minijax.tracebacks import public
from minijax.typing import Array

__all__ = ["dct", "dctn", "idct", "idctn"]


def _checked(name: str, x: Any, kind: int, norm: str | None) -> Any:
    check_arraylike(name, x)
    if kind != 2:
        raise NotImplementedError(f"Only DCT type 2 is implemented. {name} got type={kind!r}.")
    if not isinstance(norm, str | None) or norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    (x,) = promote_dtypes_inexact(to_array(name, x))
    if x.dtype.kind != "c" and dtypes.bit_width(x.dtype) < 32:
        x = converted(x, dtypes.float32)
    return converted(x, x.dtype)


def _spin(x: Any, sign: int, count: int, size: int) -> Any:
    """`x` times exp(sign * i * pi * k / (2 * size)) for k = 0, 1, ..., along the last axis."""
    turns = np.exp(sign * 0.5j * np.pi * np.arange(count) / size)
    return x * turns.astype(x.dtype)


def _orthonormal(size: int, dtype: Any) -> np.ndarray:
    """Return the factors that make the transform orthonormal."""
    scale = np.full(size, np.sqrt(0.5 / size))
    scale[0] = np.sqrt(0.25 / size)
    return scale.astype(dtype)


def _forward(x: Any) -> Any:
    """The transform of reals along the last axis, by a Fourier transform of the same size.

    Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980). Of the elements
    with even places, then those with odd places backwards, half of the spectrum gives all terms.
    """
    size = x.shape[-1]
    mixed = concatenate([x[..., ::2], flip(x[..., 1::2], -1)], axis=-1)
    terms = _spin(fft.rfft(mixed), -1, size // 2 + 1, size)
    first, rest = ufuncs.real(terms), ufuncs.imag(terms[..., 1 : (size + 1) // 2])
    return 2 * concatenate([first, flip(-rest, -1)], axis=-1)


def _backward(x: Any) -> Any:
    """The inverse of `_forward`."""
    size = x.shape[-1]
    count = size // 2 + 1
    mirrored = concatenate([0 * x[..., :1], flip(x[..., 1:], -1)], axis=-1)[..., :count]
    terms = lax.complex(x[..., :count] / 2, mirrored / -2)
    mixed = fft.irfft(_spin(terms, 1, count, size), n=size)
    half = (size + 1) // 2
    even, odd = mixed[..., :half], flip(mixed[..., half:], -1)
    if size % 2:
        odd = concatenate([odd, 0 * even[..., :1]], axis=-1)
    both = stack([even, odd], axis=-1)
    return both.reshape(*x.shape[:-1], 2 * half)[..., :size]


def _along(name: str, x: Any, n: int | None, axis: int, norm: Any, is_forward: bool) -> Any:
    axis = axis_of(axis, x.ndim)
    size = x.shape[axis] if n is None else n
    if size < 1:
        raise TypeError(f"{name} takes at least one element; got size {size} along axis {axis}.")
    x = moveaxis(fft.resized(x, (size,), (axis,)), axis, -1)
    transform = _forward if is_forward else _backward
    scale = None
    if norm == "ortho":
        scale = _orthonormal(size, dtypes.to_real_dtype(x.dtype))
        x = x if is_forward else x / scale
    if x.dtype.kind == "c":
        out = lax.complex(transform(ufuncs.real(x)), transform(ufuncs.imag(x)))
    else:
        out = transform(x)
    return moveaxis(out * scale if is_forward and scale is not None else out, -1, axis)


def _axes_and_sizes(x: Any, s: Any, axes: Any) -> list[tuple[int, int | None]]:
    if s is not None:
        s = s if isinstance(s, Sequence) else [s]
        if len(s) > x.ndim:
            raise ValueError(f"s must have at most x.ndim ({x.ndim}) elements, got {len(s)}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = list(items_of(axes)) if isinstance(axes, (Sequence, range)) else [axes]
    axes = [axis_of(axis, x.ndim) for axis in axes]
    if len(set(axes)) < len(axes):
        raise ValueError(f"repeated axis: {tuple(axes)}")
    sizes = [None] * len(axes) if s is None else s
    if len(sizes) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {s} and {axes}.")
    return list(zip(axes, sizes, strict=True))


def _along_several(name, x, kind, s, axes, norm, is_forward) -> Any:
    out = _checked(name, x, kind, norm)
    chosen = _axes_and_sizes(out, s, axes)
    for axis, size in chosen:
        out = _along(name, out, size, axis, norm, is_forward)
    return out if chosen else to_array(name, x)


@library(static=("type", "n", "axis", "norm"), converted=("type", "n", "axis"))
def dct(
    x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the cosine transform of the second kind along an axis.

    - `x`: real array
    - `type`: must be 2
    - `n`: size to which the axis is cut or padded
    - `norm`: None, or "ortho" to make the transform orthonormal

    The result has an inexact dtype; element k is `2 * sum(x[j] * cos(pi * k * (2 * j + 1) / (2 *
    n)))`. NotImplementedError for another type, ValueError for another norm.
    Source: SciPy's `fft.dct`; Makhoul (1980).

    >>> jax.scipy.fft.dct(jnp.ones(4)).shape
    (4,)
    """
    return _along("dct", _checked("dct", x, type, norm), n, axis, norm, True)


@library(static=("type", "n", "axis", "norm"), converted=("type", "n", "axis"))
def idct(
    x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the inverse of `dct` along an axis.

    - `x`: real array
    - `type`, `n`, `norm`: as in `dct`

    The result has an inexact dtype. NotImplementedError for another type.
    Source: SciPy's `fft.idct`.

    >>> jax.scipy.fft.idct(jnp.zeros(4)).shape
    (4,)
    """
    return _along("idct", _checked("idct", x, type, norm), n, axis, norm, False)


@library(static=("type", "s", "axes", "norm"), converted=("type",))
def dctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the cosine transform of the second kind along several axes.

    - `x`: real array
    - `type`: must be 2
    - `s`: sizes to which the axes are cut or padded
    - `axes`: axes, by default all
    - `norm`: as in `dct`

    The result has an inexact dtype. NotImplementedError for another type.
    Source: SciPy's `fft.dctn`.

    >>> jax.scipy.fft.dctn(jnp.ones((2, 4))).shape
    (2, 4)
    """
    return _along_several("dctn", x, type, s, axes, norm, True)


@library(static=("type", "s", "axes", "norm"), converted=("type", "s", "axes"))
def idctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the inverse of `dctn` along several axes.

    - `x`: real array
    - `type`, `s`, `axes`, `norm`: as in `dctn`

    The result has an inexact dtype. NotImplementedError for another type.
    Source: SciPy's `fft.idctn`.

    >>> jax.scipy.fft.idctn(jnp.zeros((2, 4))).shape
    (2, 4)
    """
    return _along_several("idctn", x, type, s, axes, norm, False)


__dir__ = public(__name__)
