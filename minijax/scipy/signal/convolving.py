"""Convolution and correlation over all axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from minijax import numpy as jnp
from minijax.arguments.values import known_axes
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.precision import PrecisionLike
from minijax.numpy import fft
from minijax.numpy.promotion import axes_of, check_arraylike, promote_dtypes_inexact, to_array
from minijax.typing import ArrayLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

Mode: TypeAlias = Literal["full", "same", "valid"]

_MODES = ("full", "same", "valid")


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}; got {mode!r}.")


def _arrays(name: str, in1: Any, in2: Any) -> list[Any]:
    check_arraylike(name, in1, in2)
    a, b = promote_dtypes_inexact(to_array(name, in1), to_array(name, in2, 1))
    if a.ndim != b.ndim:
        raise ValueError(
            f"in1 and in2 {'should' if name == 'fftconvolve' else 'must'} have the same "
            f"{'dimensionality' if name == 'fftconvolve' else 'number of dimensions'}. {name} got shapes {a.shape} and {b.shape}."
        )
    return [a, b]


def _is_larger(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether the sizes `a` hold `b`; ValueError if neither holds the other."""
    if all(m >= n for m, n in zip(a, b, strict=True)):
        return True
    if all(m <= n for m, n in zip(a, b, strict=True)):
        return False
    raise ValueError(
        "One input must be smaller than the other in every dimension, unless mode='full'; got "
        f"shapes {tuple(a)} and {tuple(b)}."
    )


def _direct(a: Any, b: Any, mode: str, precision: Any, is_late: bool = False) -> Any:
    """Convolve by the operation of XLA. `is_late`: of two middles, "same" is the later one."""
    if not a.ndim:
        return a * b
    if not a.size or not b.size:
        raise ValueError(
            f"zero-size arrays not supported in convolutions, got shapes {a.shape} and {b.shape}."
        )
    if mode != "full" and not _is_larger(a.shape, b.shape) and mode == "valid":
        a, b = b, a
    padding = {
        "valid": [(0, 0) for _ in b.shape],
        "same": [(n // 2, (n - 1) // 2)[:: -1 if is_late else 1] for n in b.shape],
        "full": [(n - 1, n - 1) for n in b.shape],
    }[mode]
    # The operation of XLA correlates: it does not turn its window around.
    out = conv_general_dilated(
        a[None, None], jnp.flip(b)[None, None], (1,) * a.ndim, padding, precision=precision
    )
    return out[0, 0]


def _by_method(name, in1, in2, mode, method, precision, is_correlation) -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    _check_mode(mode)
    a, b = _arrays(name, in1, in2)
    if is_correlation:
        b = jnp.flip(jnp.conj(b))
    if method == "fft":
        return _by_fft(a, b, mode, None)
    return _direct(a, b, mode, precision, name == "correlate2d")


_STATIC = ("mode", "method", "precision")


@library(static=_STATIC)
def convolve(
    in1: Array,
    in2: Array,
    mode: Mode = "full",
    method: str = "auto",
    precision: PrecisionLike | None = None,
) -> Array:
    """Convolve arrays of one rank over all axes.

    - `in1`, `in2`: numeric arrays of one rank
    - `mode`: "full"; "same", its middle, of the shape of `in1`; or "valid", where both overlap
      wholly
    - `method`: "auto", "direct" or "fft"
    - `precision`: as in `lax.dot_general`

    The result has an inexact dtype. ValueError for another mode or method, or different ranks.
    Source: SciPy's `signal.convolve`.

    >>> jax.scipy.signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    return _by_method("convolve", in1, in2, mode, method, precision, False)


@library(static=_STATIC)
def correlate(
    in1: Array,
    in2: Array,
    mode: Mode = "full",
    method: str = "auto",
    precision: PrecisionLike | None = None,
) -> Array:
    """Correlate arrays of one rank: `convolve` with the reversed conjugate of `in2`.

    - `in1`, `in2`: numeric arrays of one rank
    - `mode`, `method`, `precision`: as in `convolve`

    The result has an inexact dtype. ValueError for another mode or method, or different ranks.
    Source: SciPy's `signal.correlate`.

    >>> jax.scipy.signal.correlate(jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([1., 2., 0.], dtype=float32)
    """
    return _by_method("correlate", in1, in2, mode, method, precision, True)


def _of_two(name, in1, in2, mode, boundary, fillvalue, precision, is_correlation) -> Any:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0; got {boundary!r} and "
            f"{fillvalue!r}: pad in1 with jnp.pad first, and take mode='valid'."
        )
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(
            f"{name}() only supports 2-dimensional inputs. Got shapes {np.shape(in1)} and "
            f"{np.shape(in2)}."
        )
    return _by_method(name, in1, in2, mode, "direct", precision, is_correlation)


_STATIC_OF_TWO = ("mode", "boundary", "fillvalue", "precision")


@library(static=_STATIC_OF_TWO, converted=("fillvalue",))
def convolve2d(
    in1: Array,
    in2: Array,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike | None = None,
) -> Array:
    """Convolve matrices, which are zero outside of their elements.

    - `in1`, `in2`: numeric arrays of shapes (m, n) and (k, l)
    - `mode`: "full", "same" or "valid", as in `convolve`
    - `boundary`, `fillvalue`: must be "fill" and 0
    - `precision`: as in `lax.dot_general`

    The result has an inexact dtype. ValueError for other ranks or mode; NotImplementedError for
    another boundary.
    Source: SciPy's `signal.convolve2d`.

    >>> jax.scipy.signal.convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="valid")
    Array([[4.]], dtype=float32)
    """
    return _of_two("convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


@library(static=_STATIC_OF_TWO, converted=("fillvalue",))
def correlate2d(
    in1: Array,
    in2: Array,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike | None = None,
) -> Array:
    """Correlate matrices, which are zero outside of their elements.

    - `in1`, `in2`: numeric arrays of shapes (m, n) and (k, l)
    - `mode`: "full", "same" or "valid", as in `convolve`
    - `boundary`, `fillvalue`: must be "fill" and 0
    - `precision`: as in `lax.dot_general`

    The result has an inexact dtype. ValueError for other ranks or mode; NotImplementedError for
    another boundary.
    Source: SciPy's `signal.correlate2d`.

    >>> jax.scipy.signal.correlate2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="valid")
    Array([[4.]], dtype=float32)
    """
    return _of_two("correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)


def _by_fft(a: Any, b: Any, mode: str, axes: tuple[int, ...] | None) -> Any:
    axes = tuple(sorted(set(axes_of(axes, a.ndim))))
    kept = [i for i in range(a.ndim) if i not in axes]
    if any(a.shape[i] != b.shape[i] for i in kept):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={a.shape} in2.shape={b.shape} "
            f"axes={axes}"
        )
    if mode == "valid" and not _is_larger(a.shape, b.shape):
        a, b = b, a
    if not axes:
        return a * b
    long = tuple([i for i in axes if 1 not in (a.shape[i], b.shape[i])])
    sizes = [a.shape[i] + b.shape[i] - 1 for i in long]
    if not long:
        out = a * b
    elif a.dtype.kind == "c":
        out = fft.ifftn(fft.fftn(a, sizes, long) * fft.fftn(b, sizes, long), sizes, long)
    else:
        out = fft.irfftn(fft.rfftn(a, sizes, long) * fft.rfftn(b, sizes, long), sizes, long)
    cut = [slice(None)] * a.ndim
    for i in axes:
        full = out.shape[i]
        size = {"full": full, "same": a.shape[i], "valid": a.shape[i] - b.shape[i] + 1}[mode]
        start = (full - size) // 2
        cut[i] = slice(start, start + size)
    return out[tuple(cut)]


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Convolve arrays by Fourier transforms.

    - `in1`, `in2`: arrays of one rank; float32, float64 or complex
    - `mode`: "full", "same" or "valid", as in `convolve`
    - `axes`: axes, by default all; the sizes of the others must agree or be 1

    The result has their common dtype. ValueError for another mode, different ranks or sizes.
    Source: SciPy's `signal.fftconvolve`.

    >>> jax.scipy.signal.fftconvolve(jnp.ones(3), jnp.ones(2)).shape
    (4,)
    """
    axes = tuple(axes) if isinstance(axes, list) else known_axes(axes)
    return _fftconvolve(in1, in2, mode, axes)


@library(static=("mode", "axes"))
def _fftconvolve(in1, in2, mode, axes):
    _check_mode(mode)
    a, b = _arrays("fftconvolve", in1, in2)
    axes = None if axes is None else axes_of(axes if isinstance(axes, int) else set(axes), a.ndim)
    return _by_fft(a, b, mode, axes)
