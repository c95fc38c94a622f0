"""`minijax.numpy.fft`: discrete Fourier transforms. May import the floors below and `numpy`.

The names and arguments are NumPy's; the work is `lax.fft`'s, which takes up to three axes at once.
Results are complex64 or float32, or their 64-bit counterparts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.lax import fft as lax_fft
from minijax.lax.fft import FftType
from minijax.lax.slicing import pad_p, slice_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import axis_of, check_arraylike, converted, to_array
from minijax.numpy.shapes import moveaxis, roll
from minijax.transforms.library import library

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = (None, "backward", "ortho", "forward")


def _scale(norm: str | None, sizes: Sequence[int], is_forward: bool) -> float:
    """What a transform that divides in the inverse only is to be multiplied with."""
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


def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """The transform over several axes."""
    if norm not in _NORMS:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward": {name}.'
        )
    full_name = f"jax.numpy.fft.{name}"
    check_arraylike(full_name, a)
    a = to_array(full_name, a)
    if s is not None:
        s = tuple([index(size) for size in s])
        if any(size <= 0 for size in s):
            raise ValueError(f"Shape should be positive: {full_name} got {s}.")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {full_name} got {s} and {axes}.")
    if axes is None:
        axes = tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{full_name} does not support repeated axes. Got axes {axes}.")
    if len(axes) > a.ndim:
        raise ValueError(
            f"FFT input shape {a.shape} must have at least as many input dimensions as "
            f"fft_lengths {s}: {full_name}."
        )
    axes = tuple([axis_of(axis, a.ndim) for axis in axes])
    if not axes:
        return _nothing(kind, a)
    sizes = s if s is not None else _default_sizes(kind, a, axes)
    if kind == FftType.RFFT and dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(f"only real valued inputs supported for rfft: {full_name} got {a.dtype}.")
    last = tuple(range(a.ndim - len(axes), a.ndim))
    a = moveaxis(a, axes, last)
    if s is not None:
        wanted = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == FftType.IRFFT else sizes
        a = resized(a, wanted, last)
    out = _over_last(kind, a, sizes)
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


def _over_one(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """The transform over one axis."""
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis!r}."
        )
    axes = None if axis is None else (axis,)
    return _transform(name, kind, a, None if n is None else (index(n),), axes, norm)


_ONE = ("n", "axis", "norm")
_MANY = ("s", "axes", "norm")


@library(static=_ONE)
def fft(a, n=None, axis=-1, norm=None):
    """The transform along one axis, cut or padded to `n` elements. Source: numpy.fft.fft.

    `norm`: where to divide by the number of elements: "backward" (the default) in the inverse,
    "forward" in the transform, "ortho" by its root in both.
    """
    return _over_one("fft", FftType.FFT, a, n, axis, norm)


@library(static=_ONE)
def ifft(a, n=None, axis=-1, norm=None):
    """The inverse of `fft`. Source: numpy.fft.ifft."""
    return _over_one("ifft", FftType.IFFT, a, n, axis, norm)


@library(static=_ONE)
def rfft(a, n=None, axis=-1, norm=None):
    """`fft` of real input: the first n // 2 + 1 terms. Source: numpy.fft.rfft."""
    return _over_one("rfft", FftType.RFFT, a, n, axis, norm)


@library(static=_ONE)
def irfft(a, n=None, axis=-1, norm=None):
    """The inverse of `rfft`; `n` is the size of the result, even by default.

    Source: numpy.fft.irfft.
    """
    return _over_one("irfft", FftType.IRFFT, a, n, axis, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swapped(norm: Any) -> Any:
    return _SWAPPED.get(norm, norm)


@library(static=_ONE)
def hfft(a, n=None, axis=-1, norm=None):
    """The transform of a signal with Hermitian symmetry, of which one half is given.

    Source: numpy.fft.hfft.
    """
    if isinstance(axis, (tuple, list)):
        return _over_one("hfft", FftType.IRFFT, a, n, axis, norm)
    a = ufuncs.conjugate(a)
    size = (a.shape[axis] - 1) * 2 if n is None and a.shape[axis] > 1 else n
    return _over_one("hfft", FftType.IRFFT, a, size, axis, _swapped(norm))


@library(static=_ONE)
def ihfft(a, n=None, axis=-1, norm=None):
    """The inverse of `hfft`: the first half of the transform. Source: numpy.fft.ihfft."""
    if not isinstance(axis, (tuple, list)):
        a = asarray(a)
        n = a.shape[axis] or None if n is None else n
    return ufuncs.conjugate(_over_one("ihfft", FftType.RFFT, a, n, axis, _swapped(norm)))


@library(static=_MANY)
def fftn(a, s=None, axes=None, norm=None):
    """The transform over several axes, all by default, cut or padded to sizes `s`.

    Source: numpy.fft.fftn.
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


@library(static=_MANY)
def ifftn(a, s=None, axes=None, norm=None):
    """The inverse of `fftn`. Source: numpy.fft.ifftn."""
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


@library(static=_MANY)
def rfftn(a, s=None, axes=None, norm=None):
    """`fftn` of real input: one half of the last of the axes. Source: numpy.fft.rfftn."""
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


@library(static=_MANY)
def irfftn(a, s=None, axes=None, norm=None):
    """The inverse of `rfftn`. Source: numpy.fft.irfftn."""
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def _over_two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if len(axes) != 2:
        raise ValueError(
            f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}: use {name[:-1]}n."
        )
    return _transform(name, kind, a, s, axes, norm)


@library(static=_MANY)
def fft2(a, s=None, axes=(-2, -1), norm=None):
    """The transform over two axes. Source: numpy.fft.fft2."""
    return _over_two("fft2", FftType.FFT, a, s, axes, norm)


@library(static=_MANY)
def ifft2(a, s=None, axes=(-2, -1), norm=None):
    """The inverse of `fft2`. Source: numpy.fft.ifft2."""
    return _over_two("ifft2", FftType.IFFT, a, s, axes, norm)


@library(static=_MANY)
def rfft2(a, s=None, axes=(-2, -1), norm=None):
    """`fft2` of real input: one half of the last axis. Source: numpy.fft.rfft2."""
    return _over_two("rfft2", FftType.RFFT, a, s, axes, norm)


@library(static=_MANY)
def irfft2(a, s=None, axes=(-2, -1), norm=None):
    """The inverse of `rfft2`. Source: numpy.fft.irfft2."""
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
    found = asarray(places(int(n)), dtype=dtype, device=device)
    return found / asarray(d * n, dtype=dtype, device=device)


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the terms of `fft`, for `n` samples at intervals `d`.

    Source: numpy.fft.fftfreq.
    """

    def places(n):
        counted = np.arange(max(n, 0))
        return np.where(counted < (n + 1) // 2, counted, counted - n)

    return _frequencies("fftfreq", n, d, dtype, device, places)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the terms of `rfft`. Source: numpy.fft.rfftfreq."""
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: np.arange(max(n // 2 + 1, 0)))


def _shift(name: str, x: Any, axes: Any, amount: Any) -> Any:
    check_arraylike(name, x)
    x = to_array(name, x)
    if axes is None:
        axes = tuple(range(x.ndim))
    elif not isinstance(axes, (tuple, list)):
        return roll(x, amount(x.shape[axes]), axes)
    return roll(x, tuple([amount(x.shape[axis]) for axis in axes]), tuple(axes))


@library(static=("axes",))
def fftshift(x, axes=None):
    """The zero frequency moved to the middle of axes, all by default. Source: numpy.fft.fftshift."""
    return _shift("fftshift", x, axes, lambda size: size // 2)


@library(static=("axes",))
def ifftshift(x, axes=None):
    """The inverse of `fftshift`. Source: numpy.fft.ifftshift."""
    return _shift("ifftshift", x, axes, lambda size: -(size // 2))
