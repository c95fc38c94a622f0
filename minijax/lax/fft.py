"""`fft`, the discrete Fourier transform over the last axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive
from minijax.features.library import library
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import as_operand
from minijax.features.sharding.unreduced import first_reduced
from minijax.lax.arithmetic import conj_p, mul_p
from minijax.lax.convert import to_dtype
from minijax.lax.rules import linear, scalar_like
from minijax.lax.shapes import as_value
from minijax.lowering.module import i64_array
from minijax.transforms.jit import jit
from minijax.transforms.primitives import moveaxis

__all__ = ["FftType", "fft", "fft_p"]


class FftType(enum.IntEnum):
    """Kinds of discrete Fourier transform: complex or real input, and their inverses, by dtype.

    Source: the StableHLO attribute `fft_type`.

    >>> lax.FftType.RFFT.name
    'RFFT'
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


fft_p = Primitive("fft")
set_layout(fft_p, parts=as_operand, sums=first_reduced)


@fft_p.shape_rule
def _(x, *, fft_type, fft_lengths):
    real_input = fft_type == FftType.RFFT
    accepted = (np.float32, np.float64) if real_input else (np.complex64, np.complex128)
    if x.dtype not in accepted:
        names = " or ".join(np.dtype(dtype).name for dtype in accepted)
        raise ValueError(
            f"{'FFT' if fft_type == FftType.IFFT else fft_type.name} input must be {names}, got {x.dtype.name} (operand "
            f"{x.str_short()})."
        )
    count = len(fft_lengths)
    if not 1 <= count <= 3 or count > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths "
            f"{fft_lengths}. There may be one to three of these: transform some axes after the others."
        )
    expected = list(fft_lengths)
    if fft_type == FftType.IRFFT:
        expected[-1] = fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else x.shape[-1]
    if expected != list(x.shape[-count:]):
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to fft_lengths "
            f"{fft_lengths}: wanted {tuple(expected)}."
        )
    if real_input:
        last, dtype = fft_lengths[-1] // 2 + 1, dtypes.to_complex_dtype(x.dtype)
    elif fft_type == FftType.IRFFT:
        last, dtype = fft_lengths[-1], dtypes.to_real_dtype(x.dtype)
    else:
        last, dtype = x.shape[-1], x.dtype
    return ShapedArray((*x.shape[:-1], last), dtype)


def _counts(length: int, ndim: int, dtype: np.dtype) -> np.ndarray:
    """Return how often each term of a halved spectrum stands in the whole one: twice but at its
    ends.
    """
    counts = np.full(length // 2 + 1, 2.0)
    counts[0] = 1.0
    if length % 2 == 0:
        counts[-1] = 1.0
    return counts.reshape((1,) * (ndim - 1) + (-1,)).astype(dtype)


def _transpose(ct, aval, *, fft_type, fft_lengths):
    if fft_type in (FftType.FFT, FftType.IFFT):
        return fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    size, length = prod(fft_lengths), fft_lengths[-1]
    if fft_type == FftType.RFFT:
        weights = 1.0 / _counts(length, aval.ndim, ct.dtype)
        ct = mul_p.bind(_conj(ct), weights)
        out = fft_p.bind(ct, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
        return mul_p.bind(out, scalar_like(size, out))
    out = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
    weights = _counts(length, aval.ndim, aval.dtype) / max(size, 1)
    return _conj(mul_p.bind(out, weights))


def _conj(x: Any) -> Any:
    return conj_p.bind(x, input_dtype=x.dtype)


linear(fft_p, _transpose)


@fft_p.batch
def _(args, dims, *, fft_type, fft_lengths):
    (x,), (dim,) = args, dims
    if dim >= x.ndim - len(fft_lengths):
        x, dim = moveaxis(x, dim, 0), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), dim


@fft_p.lower
def _(b, x, *, fft_type, fft_lengths):
    if prod(x.shape) == 0 or prod(b.out.shape) == 0:
        return b.full(0, b.out)
    attributes = (
        f"fft_type = #stablehlo<fft_type {fft_type.name}>, fft_length = {i64_array(fft_lengths)}"
    )
    return b.op("stablehlo.fft", (x,), b.out, attributes)


@library(static=("fft_type", "fft_lengths"))
@partial(jit, static_argnums=(1, 2))
def fft(x: Array, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Compute a discrete Fourier transform over the last axes.

    - `x`: floating-point or complex array; it is converted to the precision of float32 or float64
    - `fft_type`: "FFT", "IFFT" (divided by the number of elements), "RFFT" (real input; n // 2 + 1
      terms along the last axis) or "IRFFT" (its inverse), or an `FftType`
    - `fft_lengths`: sizes of one to three axes; of the result for IRFFT

    The result is complex, or real for IRFFT, and has the shape that the lengths give. ValueError
    for another type, sizes that do not fit, more than three axes, or complex input of RFFT.
    Source: the StableHLO operation `stablehlo.fft`.

    >>> lax.fft(jnp.ones(4), "RFFT", (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    kind = _fft_type(fft_type)
    lengths = tuple(fft_lengths)
    dtype = get_aval(x).dtype
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    if kind == FftType.RFFT:
        if is_complex:
            raise ValueError(
                f"only real valued inputs supported for rfft: got dtype {dtype.name}. Use FFT, or "
                "x.real."
            )
        is_float = dtypes.issubdtype(dtype, np.floating)
        wanted = dtype if is_float else dtypes.to_real_dtype(dtypes.to_complex_dtype(dtype))
    else:
        wanted = dtypes.to_complex_dtype(dtype)
    x = to_dtype(x, wanted)
    if not lengths:
        return as_value(x)
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)


def _fft_type(kind: Any) -> FftType:
    if isinstance(kind, FftType):
        return kind
    if isinstance(kind, str) and kind.upper() in FftType.__members__:
        return FftType[kind.upper()]
    if isinstance(kind, str):
        raise ValueError(f"Unknown FFT type '{kind}': give FFT, IFFT, RFFT or IRFFT.")
    raise TypeError(f"Unknown FFT type value '{kind}': give a lax.FftType, or its name.")
