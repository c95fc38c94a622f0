"""`minijax.numpy.fft`: discrete Fourier transforms. The names and arguments are NumPy's; the work
is `lax.fft`'s, which takes up to three axes at once. Results are complex64 or float32, or their
64-bit counterparts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_count
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax import fft as lax_fft
from minijax.lax.creation import counted
from minijax.lax.fft import FftType
from minijax.lax.shapes import items_of
from minijax.lax.slicing import pad_p, slice_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import axis_of, cast, check_arraylike, converted, to_array
from minijax.numpy.shapes import moveaxis, roll
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.tracebacks import public
from minijax.typing import ArrayLike, DTypeLike, Shape

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = (None, "backward", "ortho", "forward")


def _scale(norm: str | None, sizes: Sequence[int], is_forward: bool) -> float:
    """Return the factor of a transform, relative to one that divides in the inverse only."""
    count = prod(sizes) or 1
    if norm in (None, "backward"):
        return 1.0
    power = {"ortho": 0.5, "forward": 1.0}[norm]
    return float(count) ** (-power if is_forward else power)


def resized(x: Any, sizes: Sequence[int], axes: Sequence[int]) -> Any:
    """`x` cut, or filled with zeros, to sizes along axes."""
    limits = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        limits[axis] = min(size, limits[axis])
    if tuple(limits) != x.shape:
        starts = (0,) * x.ndim
        x = slice_p.bind(x, start_indices=starts, limit_indices=tuple(limits), strides=None)
    config = [(0, 0, 0)] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):
        config[axis] = (0, size - x.shape[axis], 0)
    if any(after for _, after, _ in config):
        x = pad_p.bind(x, np.zeros((), x.dtype)[()], padding_config=tuple(config))
    return x


def _transform(
    name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any, conjugated: bool = False
) -> Any:
    """The transform over several axes. A conjugated one is scaled after the conjugation, which
    gives its real elements an imaginary part of +0 or -0 as upstream's.
    """
    if not isinstance(norm, str | None) or norm not in _NORMS:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward". It is an argument of {name}.'
        )
    full_name = f"jax.numpy.fft.{name}"
    check_arraylike(full_name, a)
    a = to_array(full_name, a)
    if s is not None:
        s = tuple([index(size) for size in items_of(s)])
        if any(size <= 0 for size in s):
            raise ValueError(f"Shape should be positive. {full_name} got {s}.")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"Shape and axes have different lengths. {full_name} got {s} and {axes}.")
    if axes is None:
        axes = tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))
    axes = tuple(items_of(axes))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{full_name} does not support repeated axes. Got axes {axes}.")
    if len(axes) > a.ndim and s is not None:
        raise ValueError(
            f"FFT input shape {a.shape} must have at least as many input dimensions as "
            f"fft_lengths {s}. It is an argument of {full_name}."
        )
    axes = tuple([axis_of(axis, a.ndim) for axis in axes])
    if not axes:
        return _nothing(kind, a)
    sizes = s if s is not None else _default_sizes(kind, a, axes)
    if kind == FftType.RFFT and dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(f"only real valued inputs supported for rfft: {full_name} got {a.dtype}.")
    last = tuple(range(a.ndim - len(axes), a.ndim))
    a = moveaxis(a, axes, last)
    if kind != FftType.RFFT and a.dtype == dtypes.float0:  # zeros, as of other integers
        a = converted(a, dtypes.complex64)
    if s is not None:
        wanted = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == FftType.IRFFT else sizes
        a = resized(a, wanted, last)
    out = _over_last(kind, a, sizes)
    if conjugated:
        out = ufuncs.conjugate(out)
    factor = _scale(norm, sizes, kind in (FftType.FFT, FftType.RFFT))
    if factor != 1.0:
        out = out * np.asarray(factor, dtypes.to_real_dtype(out.dtype))[()]
    return moveaxis(out, last, axes)


def _default_sizes(kind: FftType, a: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    sizes = [a.shape[axis] for axis in axes]
    if kind == FftType.IRFFT:
        sizes[-1] = max(0, 2 * (sizes[-1] - 1))
    return tuple(sizes)


def _nothing(kind: FftType, a: Any) -> Any:
    """The transform over no axis: only the dtype changes."""
    dtype = dtypes.to_inexact_dtype(a.dtype)
    return converted(a, dtype if kind == FftType.RFFT else dtypes.to_complex_dtype(dtype))


def _over_last(kind: FftType, a: Any, sizes: tuple[int, ...]) -> Any:
    """`lax.fft` over the last axes: three at a time, the last ones first for a real input."""
    if len(sizes) <= 3:
        return lax_fft(a, kind, sizes)
    complex_kind = FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT
    first, rest = sizes[:-3], sizes[-3:]
    count = len(first)
    to_end = tuple(range(a.ndim - len(sizes), a.ndim - 3))
    end = tuple(range(a.ndim - count, a.ndim))

    def outer(x):
        return moveaxis(_over_last(complex_kind, moveaxis(x, to_end, end), first), end, to_end)

    if kind == FftType.IRFFT:
        return lax_fft(outer(a), kind, rest)
    return outer(lax_fft(a, kind, rest))


def _over_one(
    name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: Any, conjugated: bool = False
) -> Any:
    """The transform over one axis."""
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis!r}."
        )
    axes = None if axis is None else (axis,)
    return _transform(name, kind, a, None if n is None else (index(n),), axes, norm, conjugated)


_ONE = ("n", "axis", "norm")
_MANY = ("s", "axes", "norm")


@library(static=_ONE, converted=_ONE)
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the discrete Fourier transform along one axis.

    - `a`: numeric array of shape (..., n, ...), in which integers become floats.
    - `n`: length to which the axis is cut or zero-padded; its size by default.
    - `axis`: an int, -1 by default.
    - `norm`: "backward" (the default) divides the inverse by n, "forward" the transform, "ortho"
      both by the root of n.

    Returns a complex array of the shape of `a` with size `n` along the axis. ValueError for an
    unknown `norm`, an axis out of range or several axes. Source: NumPy's `fft.fft`.

    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _over_one("fft", FftType.FFT, a, n, axis, norm)


@library(static=_ONE, converted=_ONE)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `fft` along one axis.

    - `a`: numeric array of shape (..., n, ...).
    - `n`, `axis`, `norm`: as in `fft`.

    Returns a complex array of the shape of `a` with size `n` along the axis. Errors are those of
    `fft`. Source: NumPy's `fft.ifft`.

    >>> jnp.fft.ifft(jnp.array([1.0, 1.0, 1.0, 1.0]))
    Array([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    return _over_one("ifft", FftType.IFFT, a, n, axis, norm)


@library(static=_ONE, converted=_ONE)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the Fourier transform of real input along one axis, without the redundant half.

    - `a`: real array of shape (..., n, ...).
    - `n`, `axis`, `norm`: as in `fft`.

    Returns a complex array with size n // 2 + 1 along the axis. ValueError for complex input, or as
    in `fft`. Source: NumPy's `fft.rfft`.

    >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _over_one("rfft", FftType.RFFT, a, n, axis, norm)


@library(static=_ONE, converted=_ONE)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `rfft` along one axis.

    - `a`: complex array of shape (..., m, ...), the nonnegative frequencies.
    - `n`: size of the axis in the result, 2 (m - 1) by default; give it for odd sizes.
    - `axis`, `norm`: as in `fft`.

    Returns a real array with size `n` along the axis. Errors are those of `fft`. Source: NumPy's
    `fft.irfft`.

    >>> jnp.fft.irfft(jnp.array([1.0, 1.0, 1.0]))
    Array([1., 0., 0., 0.], dtype=float32)
    """
    return _over_one("irfft", FftType.IRFFT, a, n, axis, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swapped(norm: Any) -> Any:
    return _SWAPPED.get(norm, norm)


@library(static=_ONE, converted=_ONE)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the Fourier transform of a signal with Hermitian symmetry, given its first half.

    - `a`: complex array of shape (..., m, ...).
    - `n`: size of the axis in the result, 2 (m - 1) by default; give it for odd sizes.
    - `axis`, `norm`: as in `fft`.

    Returns a real array with size `n` along the axis. Errors are those of `fft`. Source: NumPy's
    `fft.hfft`.

    >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    if isinstance(axis, (tuple, list)):
        return _over_one("hfft", FftType.IRFFT, a, n, axis, norm)
    a = ufuncs.conjugate(a)
    length = a.shape[axis_of(axis, a.ndim)]
    size = (length - 1) * 2 if n is None and length > 1 else n
    return _over_one("hfft", FftType.IRFFT, a, size, axis, _swapped(norm))


@library(static=_ONE, converted=_ONE)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `hfft`: the first half of a signal with Hermitian symmetry.

    - `a`: real array of shape (..., n, ...).
    - `n`, `axis`, `norm`: as in `fft`.

    Returns a complex array with size n // 2 + 1 along the axis. ValueError for complex input, or as
    in `fft`. Source: NumPy's `fft.ihfft`.

    >>> jnp.fft.ihfft(jnp.array([1.0, 1.0, 1.0, 1.0])).shape
    (3,)
    """
    if not isinstance(axis, (tuple, list)):
        a = asarray(a)
        n = a.shape[axis_of(axis, a.ndim)] or None if n is None else n
    return _over_one("ihfft", FftType.RFFT, a, n, axis, _swapped(norm), conjugated=True)


@library(static=_MANY, converted=_MANY)
def fftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Compute the discrete Fourier transform over several axes.

    - `a`: numeric array of any shape, in which integers become floats.
    - `s`: sizes to which the axes are cut or zero-padded.
    - `axes`: sequence of ints; by default all axes, or the last len(s).
    - `norm`: as in `fft`.

    Returns a complex array with sizes `s` along the axes. ValueError for an unknown `norm`,
    repeated axes, or if `s` and `axes` differ in length. Source: NumPy's `fft.fftn`.

    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def ifftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Compute the inverse of `fftn` over several axes.

    - `a`: numeric array of any shape.
    - `s`, `axes`, `norm`: as in `fftn`.

    Returns a complex array with sizes `s` along the axes. Errors are those of `fftn`. Source:
    NumPy's `fft.ifftn`.

    >>> jnp.fft.ifftn(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def rfftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Compute the Fourier transform of real input over several axes, without the redundant half.

    - `a`: real array of any shape.
    - `s`, `axes`, `norm`: as in `fftn`; the last of the axes is halved.

    Returns a complex array with size s[-1] // 2 + 1 along the last of the axes. ValueError for
    complex input, or as in `fftn`. Source: NumPy's `fft.rfftn`.

    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def irfftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Compute the inverse of `rfftn` over several axes.

    - `a`: complex array of any shape, the nonnegative frequencies along the last of the axes.
    - `s`: sizes of the result along the axes, by default those of `a` and, for the last one, 2 (m -
      1).
    - `axes`, `norm`: as in `fftn`.

    Returns a real array with sizes `s` along the axes. Errors are those of `fftn`. Source: NumPy's
    `fft.irfftn`.

    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def _over_two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if len(axes) != 2:
        raise ValueError(
            f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}: use {name[:-1]}n."
        )
    return _transform(name, kind, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def fft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Compute the discrete Fourier transform over two axes.

    - `a`: numeric array of at least two dimensions.
    - `s`, `norm`: as in `fftn`; `axes`: two ints, the last two axes by default.

    Returns a complex array with sizes `s` along the axes. ValueError for another number of axes, or
    as in `fftn`. Source: NumPy's `fft.fft2`.

    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _over_two("fft2", FftType.FFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def ifft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Compute the inverse of `fft2` over two axes.

    - `a`: numeric array of at least two dimensions.
    - `s`, `norm`: as in `fftn`; `axes`: two ints, the last two axes by default.

    Returns a complex array with sizes `s` along the axes. ValueError for another number of axes, or
    as in `fftn`. Source: NumPy's `fft.ifft2`.

    >>> jnp.fft.ifft2(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _over_two("ifft2", FftType.IFFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def rfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Compute the Fourier transform of real input over two axes, without the redundant half.

    - `a`: real array of at least two dimensions.
    - `s`, `norm`: as in `fftn`; `axes`: two ints, the last two axes by default; the last is halved.

    Returns a complex array with size s[-1] // 2 + 1 along the last of the axes. ValueError for
    complex input, another number of axes, or as in `fftn`. Source: NumPy's `fft.rfft2`.

    >>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _over_two("rfft2", FftType.RFFT, a, s, axes, norm)


@library(static=_MANY, converted=_MANY)
def irfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Compute the inverse of `rfft2` over two axes.

    - `a`: complex array of at least two dimensions.
    - `s`, `norm`: as in `irfftn`; `axes`: two ints, the last two axes by default.

    Returns a real array with sizes `s` along the axes. ValueError for another number of axes, or as
    in `fftn`. Source: NumPy's `fft.irfft2`.

    >>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _over_two("irfft2", FftType.IRFFT, a, s, axes, norm)


# -- frequencies ----------------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, dtype: Any, device: Any, places: Any) -> Array:
    full_name = f"jax.numpy.fft.{name}"
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of {full_name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of {full_name} only takes a single value. Got d = {list(d)}."
        )
    dtype = dtypes.canonicalize_dtype(
        np.float64 if dtype is None else dtypes.check_user_dtype_supported(dtype, name)
    )
    found = asarray(
        places(n if is_dim(n) else known_count(n, "It arose in the jnp.arange argument 'stop'")),
        dtype=dtype,
        device=device,
    )
    return found / asarray(d * n, dtype=dtype, device=device)


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | Sharding | None = None,
) -> Array:
    """Return the frequencies of the elements that `fft` returns.

    - `n`: an int, the number of samples; `d`: scalar, the distance of samples.
    - `dtype`: dtype of the result, the default float unless given; `device`: its placement.

    Returns an array of shape (n,): [0, 1, ..., -2, -1] / (n d). ValueError if `n` or `d` is a
    sequence. Source: NumPy's `fft.fftfreq`.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """

    def places(n):
        places = counted(n)
        return places - (places >= (n + 1) // 2) * n

    if dtype is None or dtypes.issubdtype(dtype, np.inexact):
        return _frequencies("fftfreq", n, d, dtype, device, places)
    dtype = dtypes.check_user_dtype_supported(dtype, "fftfreq")
    return cast(_frequencies("fftfreq", n, d, None, device, places), dtype)


def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | Sharding | None = None,
) -> Array:
    """Return the frequencies of the elements that `rfft` returns.

    - `n`: an int, the number of samples; `d`: scalar, the distance of samples.
    - `dtype`: dtype of the result, the default float unless given; `device`: its placement.

    Returns an array of shape (n // 2 + 1,): [0, 1, ...] / (n d). ValueError if `n` or `d` is a
    sequence. Source: NumPy's `fft.rfftfreq`.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: counted(n // 2 + 1))


def _shift(name: str, x: Any, axes: Any, amount: Any) -> Any:
    check_arraylike(name, x)
    x = to_array(name, x)
    if axes is None:
        axes = tuple(range(x.ndim))
    axes = [axis_of(axis, x.ndim) for axis in (axes if np.iterable(axes) else (axes,))]
    return roll(x, tuple([amount(x.shape[axis]) for axis in axes]), tuple(axes))


@library(static=("axes",), converted=("axes",))
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the middle of axes.

    - `x`: array of any shape.
    - `axes`: an int, a sequence of ints, or None for all axes.

    Returns an array of the shape and dtype of `x`. Source: NumPy's `fft.fftshift`.

    >>> jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shift("fftshift", x, axes, lambda size: size // 2)


@library(static=("axes",), converted=("axes",))
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency back to the beginning of axes, the inverse of `fftshift`.

    - `x`: array of any shape.
    - `axes`: an int, a sequence of ints, or None for all axes.

    Returns an array of the shape and dtype of `x`. Source: NumPy's `fft.ifftshift`.

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shift("ifftshift", x, axes, lambda size: -(size // 2))


__dir__ = public(__name__)
