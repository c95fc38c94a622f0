"""Spectra of segments of a signal: stft, istft, welch, csd."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.arguments.values import known_count, known_index
from minijax.core.array import Array
from minijax.features.library import library
from minijax.namespace import user_stacklevel
from minijax.numpy import fft
from minijax.numpy.promotion import axis_of, check_arraylike, promote_dtypes_inexact, to_array
from minijax.scipy.signal.trends import detrend as without_trend
from minijax.scipy.signal.windows import get_window
from minijax.transforms.vmap import vmap
from minijax.typing import ArrayLike

__all__ = ["csd", "istft", "stft", "welch"]

_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


class _Plan(NamedTuple):
    """All that is known of a spectrum before the values: sizes and choices."""

    size: int  # of a segment
    step: int  # from one segment to the next
    nfft: int
    detrend: Any
    one_sided: bool
    boundary: str | None
    padded: bool
    axis: int
    kind: str  # "stft", "density" or "spectrum"
    cross: bool  # of two signals, which may be the same


def _is_named(window: Any) -> bool:
    return isinstance(window, (str, tuple))


def _sizes(x_size, window, nperseg, noverlap, nfft) -> tuple[int, int, int]:
    """The size of segments, the step between them and the size of the transform."""
    if nperseg is not None:
        nperseg = known_count(nperseg, "nperseg of windowed-FFT")
        if nperseg < 1:
            raise ValueError(f"nperseg must be a positive integer; got {nperseg}.")
    if _is_named(window):
        if nperseg is not None and nperseg > x_size:
            warnings.warn(
                f"nperseg={nperseg} is greater than input_length={x_size}, using nperseg={x_size}",
                stacklevel=user_stacklevel(),
            )
        size = min(256 if nperseg is None else nperseg, x_size)
    else:
        if np.ndim(window) != 1:
            raise ValueError(f"window must be 1-D; got shape {np.shape(window)}.")
        size = np.shape(window)[0]
        if nperseg is not None and nperseg != size:
            raise ValueError(
                "value specified for nperseg is different from length of window: "
                f"{nperseg} and {size}."
            )
        if size > x_size:
            raise ValueError(f"window is longer than input signal: {size} and {x_size} elements.")
    return size, *_step_and_nfft(size, noverlap, nfft)


def _step_and_nfft(size: int, noverlap: Any, nfft: Any) -> tuple[int, int]:
    nfft = size if nfft is None else known_count(nfft, "nfft of windowed-FFT")
    if nfft < size:
        raise ValueError(f"nfft must be greater than or equal to nperseg; got {nfft} and {size}.")
    noverlap = size // 2 if noverlap is None else known_count(noverlap, "noverlap of windowed-FFT")
    if size and noverlap >= size:
        raise ValueError(f"noverlap must be less than nperseg. Got {noverlap} and {size}.")
    return size - noverlap, nfft


def _spectrum(name, x, y, fs, window, nperseg, noverlap, nfft, options: dict) -> tuple:
    """Frequencies, times and the spectra of segments, along a new last axis."""
    check_arraylike(name, x, *([] if y is None else [y]))
    x = to_array(name, x)
    y = None if y is None else to_array(name, y, 1)
    if y is not None and x.ndim != y.ndim:
        raise ValueError(
            f"two-arguments must have the same rank: {name} got shapes {x.shape} and {y.shape}."
        )
    if options["boundary"] not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option {options['boundary']!r}, must be one of: {list(_BOUNDARIES)}"
        )
    axis = axis_of(known_index(options["axis"], "axis of windowed-FFT"), x.ndim)
    if not x.size or (y is not None and not y.size):
        return _empty(x, y, axis)
    length = x.shape[axis] if y is None else max(x.shape[axis], y.shape[axis])
    size, step, nfft = _sizes(length, window, nperseg, noverlap, nfft)
    is_complex = any(a is not None and a.dtype.kind == "c" for a in (x, y))
    if is_complex and options["one_sided"]:
        warnings.warn(
            "Input data is complex, switching to return_onesided=False",
            stacklevel=user_stacklevel(),
        )
    one_sided = options["one_sided"] and not is_complex
    plan = _Plan(
        **{**options, "axis": axis, "one_sided": one_sided}, size=size, step=step, nfft=nfft,
        cross=y is not None,
    )  # fmt: skip
    y = None if y is x else y
    if _is_named(window):
        return _measure(x, y, fs, None, plan, window)
    return _measure(x, y, fs, jnp.asarray(window), plan, None)


def _empty(x: Any, y: Any, axis: int) -> tuple:
    shape = x.shape
    if y is not None:
        rest = jnp.broadcast_shapes(*[np.delete(a.shape, axis).tolist() for a in (x, y)])
        shape = (*rest, min(x.shape[axis], y.shape[axis]))
    x, *_ = promote_dtypes_inexact(x, *([] if y is None else [y]))
    real = jnp.zeros(shape, dtypes.to_real_dtype(x.dtype))
    return real, real, real.astype(dtypes.to_complex_dtype(x.dtype))


@library(static=("plan", "name"), converted=("plan",))
def _measure(x, y, fs, window, plan, name):
    x, *others = promote_dtypes_inexact(x, *([] if y is None else [y]))
    real = dtypes.to_real_dtype(x.dtype)
    window = get_window(name, plan.size).astype(real) if window is None else window.astype(real)
    signals = [jnp.moveaxis(a, plan.axis, -1) for a in (x, *others)]
    length = max(a.shape[-1] for a in signals)
    signals = [_lengthened(_filled(a, length), plan) for a in signals]
    length = signals[0].shape[-1]

    transforms = [_transformed(a, window, plan) for a in signals]
    first, last = transforms[0], transforms[-1]
    density = jnp.sum(window * window) * fs
    scale = 1 / (density if plan.kind == "density" else jnp.sum(window) ** 2)
    if plan.kind == "stft":
        out = first * jnp.sqrt(scale).astype(real)
    else:
        out = jnp.conj(first) * last if plan.cross else jnp.square(jnp.abs(first))
        # A spectrum of one side has the power of both.
        twice = np.ones(out.shape[-1])
        if plan.one_sided:
            twice[1 : None if plan.nfft % 2 else -1] = 2
        out = out * (twice.astype(real) * scale.astype(real))
    return *_places_of(plan, length, fs, real), jnp.moveaxis(out, -1, plan.axis)


def _filled(x: Any, length: int) -> Any:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _lengthened(x: Any, plan: _Plan) -> Any:
    """`x` carried on at both ends, and filled up to whole segments."""
    half = plan.size // 2
    sides = [(0, 0)] * (x.ndim - 1) + [(half, half)]
    if plan.boundary == "zeros":
        x = jnp.pad(x, sides)
    elif plan.boundary == "constant":
        x = jnp.pad(x, sides, mode="edge")
    elif plan.boundary is not None:
        x = jnp.pad(x, sides, mode="reflect", reflect_type=plan.boundary)
    if not plan.padded:
        return x
    more = (-(x.shape[-1] - plan.size) % plan.step) % plan.size
    return _filled(x, x.shape[-1] + more)


def _transformed(x: Any, window: Any, plan: _Plan) -> Any:
    """The transforms of segments: [..., segments, frequencies]."""
    count = (x.shape[-1] - plan.size) // plan.step + 1
    segment = lambda start: lax.dynamic_slice_in_dim(x, start, plan.size, axis=-1)
    parts = vmap(segment, out_axes=-2)(plan.step * jnp.arange(count, dtype=np.int32))
    if callable(plan.detrend):
        parts = jnp.moveaxis(plan.detrend(jnp.moveaxis(parts, -1, plan.axis)), plan.axis, -1)
    elif plan.detrend:
        parts = without_trend(parts, type=plan.detrend)
    return (fft.rfft if plan.one_sided else fft.fft)(parts * window, plan.nfft)


def _places_of(plan: _Plan, length: int, fs: Any, dtype: Any) -> tuple[Any, Any]:
    wide = np.float32 if dtypes.bit_width(dtype) < 32 else dtype
    frequencies = (fft.rfftfreq if plan.one_sided else fft.fftfreq)(plan.nfft, 1 / fs, dtype=wide)
    half = plan.size / 2
    times = np.arange(half, length - half + 1, plan.step)
    times = (times - half if plan.boundary is not None else times).astype(wide)
    return frequencies, (times / fs).astype(wide)


def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str | Callable[..., Any] = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the spectra of overlapping segments of a signal.

    - `x`: signal along `axis`; `fs`: sampling frequency
    - `window`: name, tuple of a name and parameters, or array of `nperseg` elements
    - `nperseg`, `noverlap`: sizes of segments and of their overlap, by default half of a segment
    - `nfft`: size of the transform; `detrend`: as in `signal.detrend`, or False
    - `boundary`: continuation at the ends: "zeros", "even", "odd", "constant" or None
    - `padded`: whether to pad the signal to whole segments

    The result is frequencies, times, and complex spectra of shape (..., frequencies, times).
    ValueError for sizes that do not fit. Source: SciPy's `signal.stft`.

    >>> [x.shape for x in jax.scipy.signal.stft(jnp.ones(16), nperseg=8)]
    [(5,), (5,), (5, 5)]
    """
    options = {"detrend": detrend, "one_sided": return_onesided, "boundary": boundary,
               "padded": padded, "axis": axis, "kind": "stft"}  # fmt: skip
    return _spectrum("stft", x, None, fs, window, nperseg, noverlap, nfft, options)


def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str | Callable[..., Any] = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the cross power spectrum of two signals by Welch's method.

    - `x`, `y`: signals along `axis`; `y` may be None for `x`
    - `fs`: sampling frequency; `window`, `nperseg`, `noverlap`, `nfft`, `detrend`: as in `stft`
    - `scaling`: "density", power for each unit of frequency, or "spectrum", power
    - `average`: "mean" or "median" of the segments

    The result is frequencies, of shape (n,), and the spectrum, complex unless `y` is None.
    ValueError for another scaling or average.
    Source: SciPy's `signal.csd`; Welch (1967).

    >>> [x.shape for x in jax.scipy.signal.csd(jnp.ones(16), jnp.ones(16), nperseg=8)]
    [(5,), (5,)]
    """
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}; give 'density' or 'spectrum'.")
    options = {"detrend": detrend, "one_sided": return_onesided, "boundary": None,
               "padded": False, "axis": axis, "kind": scaling}  # fmt: skip
    frequencies, _, power = _spectrum(
        "spectral_helper", x, y, fs, window, nperseg, noverlap, nfft, options
    )
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    if not power.size:
        return frequencies, jnp.real(power) if y is None else power
    return frequencies, _averaged(power, average)


@library(static=("average",))
def _averaged(power, average):
    count = power.shape[-1]
    if count == 1:
        return power[..., 0]
    if average == "mean":
        return jnp.mean(power, axis=-1)
    if power.dtype.kind == "c":
        parts = [jnp.median(part, axis=-1) for part in (jnp.real(power), jnp.imag(power))]
        found = parts[0] + 1j * parts[1]
    else:
        found = jnp.median(power, axis=-1)
    # The median of a chi-squared distribution is less than its mean.
    even = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    return found / (1 + np.sum(1 / (even + 1) - 1 / even))


def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str | Callable[..., Any] = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the power spectrum of a signal by Welch's method.

    - `x`: signal along `axis`; `fs`: sampling frequency
    - other arguments: as in `csd`

    The result is frequencies, of shape (n,), and the real spectrum. ValueError for another scaling
    or average.
    Source: SciPy's `signal.welch`; Welch (1967).

    >>> [x.shape for x in jax.scipy.signal.welch(jnp.ones(16), nperseg=8)]
    [(5,), (5,)]
    """
    return csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip


def istft(
    Zxx: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Compute the signal of given spectra, by adding windowed segments: the inverse of `stft`.

    - `Zxx`: complex spectra of shape (..., frequencies, times)
    - other arguments: as given to `stft`; a `noverlap` of 0 means the default
    - `time_axis`, `freq_axis`: axes of `Zxx`

    The result is times, of shape (n,), and the signal. ValueError for sizes that do not fit.
    Source: SciPy's `signal.istft`; Griffin and Lim (1984).

    >>> spectra = jax.scipy.signal.stft(jnp.ones(16), nperseg=8)[2]
    >>> jax.scipy.signal.istft(spectra, nperseg=8)[1].shape
    (16,)
    """
    check_arraylike("istft", Zxx)
    Zxx = to_array("istft", Zxx)
    if Zxx.ndim < 2:
        raise ValueError(f"Input stft must be at least 2d! Got shape {Zxx.shape}.")
    freq_axis = axis_of(freq_axis, Zxx.ndim)
    time_axis = axis_of(time_axis, Zxx.ndim)
    if freq_axis == time_axis:
        raise ValueError(f"Must specify differing time and frequency axes! Both are {time_axis}.")
    terms = Zxx.shape[freq_axis]
    default = 2 * (terms - 1) if input_onesided else terms
    size = int(nperseg) if nperseg else default
    if nfft is None:
        nfft = size if input_onesided and size == default + 1 else default
    if nfft < size:
        raise ValueError(f"FFT length ({nfft}) must be longer than nperseg ({size}).")
    step, _ = _step_and_nfft(size, noverlap or None, None)
    if _is_named(window):
        window = get_window(window, size)
    elif np.ndim(window) != 1:
        raise ValueError(f"window must be 1-D; got shape {np.shape(window)}.")
    elif np.shape(window) != (size,):
        raise ValueError(f"window must have length of {size}; got shape {np.shape(window)}.")
    sizes = (size, step, int(nfft))
    return _inverse(
        Zxx, fs, jnp.asarray(window), sizes, bool(input_onesided), bool(boundary), time_axis,
        freq_axis,
    )  # fmt: skip


@library(static=("sizes", "one_sided", "boundary", "time_axis", "freq_axis"))
def _inverse(Zxx, fs, window, sizes, one_sided, boundary, time_axis, freq_axis):
    size, step, nfft = sizes
    Zxx = Zxx.astype(dtypes.to_complex_dtype(Zxx.dtype))
    window = window.astype(dtypes.to_real_dtype(Zxx.dtype))
    Zxx = jnp.moveaxis(Zxx, (time_axis, freq_axis), (-2, -1))
    parts = (fft.irfft if one_sided else fft.ifft)(Zxx, nfft)[..., :size]
    x = _added(parts * (window * jnp.sum(window)), step)
    norm = _added(jnp.broadcast_to(window * window, parts.shape[-2:]), step)
    half = size // 2
    if boundary and half:
        x, norm = x[..., half:-half], norm[half:-half]
    x = x / jnp.where(norm > 1e-10, norm, 1)
    if x.ndim > 1:
        x = jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    return jnp.arange(x.shape[0], dtype=window.dtype) / fs, x


def _added(parts: Any, step: int) -> Any:
    """The sum of segments, each `step` elements after the one before.

    Every segment is cut in pieces of `step` elements. With zeros behind, and read as rows one
    shorter, the j-th pieces stand j places later: what is to be added stands in one column.
    """
    *lead, count, size = parts.shape
    pieces = -(-size // step)
    parts = jnp.pad(parts, [(0, 0)] * (len(lead) + 1) + [(0, pieces * step - size)])
    parts = jnp.moveaxis(parts.reshape(*lead, count, pieces, step), -2, -3)
    parts = jnp.pad(parts, [(0, 0)] * (len(lead) + 1) + [(0, pieces), (0, 0)])
    flat = parts.reshape(*lead, pieces * (count + pieces), step)[..., :-pieces, :]
    out = jnp.sum(flat.reshape(*lead, pieces, count + pieces - 1, step), axis=-3)
    return out.reshape(*lead, -1)[..., : (count - 1) * step + size]
