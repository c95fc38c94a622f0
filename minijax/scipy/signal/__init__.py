"""`minijax.scipy.signal`: convolution and spectra, as in `jax.scipy.signal`. Only re-exports."""

from minijax.scipy.signal.convolving import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
)
from minijax.scipy.signal.spectra import csd, istft, stft, welch
from minijax.scipy.signal.trends import detrend
from minijax.tracebacks import public

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
    "stft", "welch",
]  # fmt: skip

__dir__ = public(__name__)
