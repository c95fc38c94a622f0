"""Windows by name, as `scipy.signal.get_window` gives them. Uses NumPy alone: they are constants.

Source: F. J. Harris, "On the use of windows for harmonic analysis" (1978); SciPy's documentation.
Every window is the first `size` points of a symmetric one of `size + 1`: it repeats with its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["get_window"]


def _cosines(*weights: float) -> Any:
    """A sum of cosines with falling weights, that alternate in sign."""

    def window(size):
        angles = 2 * np.pi * np.arange(size) / max(size - 1, 1)
        return sum((-1) ** k * a * np.cos(k * angles) for k, a in enumerate(weights))

    return window


def _general_cosine(size, weights):
    angles = np.linspace(-np.pi, np.pi, size)
    return sum(a * np.cos(k * angles) for k, a in enumerate(weights))


def _places(size):
    return np.arange(size) - (size - 1) / 2


def _triang(size):
    n = np.arange(1, (size + 1) // 2 + 1)
    if size % 2:
        half = 2 * n / (size + 1)
        return np.concatenate([half, half[-2::-1]])
    half = (2 * n - 1) / size
    return np.concatenate([half, half[::-1]])


def _parzen(size):
    x = np.abs(_places(size)) / (size / 2)
    near = 1 - 6 * x**2 + 6 * x**3
    return np.where(np.abs(_places(size)) <= (size - 1) / 4, near, 2 * (1 - x) ** 3)


def _bohman(size):
    x = np.abs(np.linspace(-1, 1, size))
    out = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    out[[0, -1]] = 0
    return out


def _lanczos(size):
    return np.sinc(2 * np.arange(size) / max(size - 1, 1) - 1)


def _tukey(size, alpha=0.5):
    if alpha <= 0:
        return np.ones(size)
    x = np.minimum(np.arange(size), size - 1 - np.arange(size)) / (size - 1)
    return np.where(x < alpha / 2, 0.5 * (1 - np.cos(2 * np.pi * x / min(alpha, 1))), 1.0)


def _exponential(size, center=None, tau=1.0):
    if center is not None:
        raise ValueError("If sym==True, center must be None: leave the center of the window out.")
    return np.exp(-np.abs(_places(size)) / tau)


def _gaussian(size, std):
    return np.exp(-((_places(size) / std) ** 2) / 2)


def _general_gaussian(size, p, sig):
    return np.exp(-0.5 * np.abs(_places(size) / sig) ** (2 * p))


_BLACKMAN_HARRIS = _cosines(0.35875, 0.48829, 0.14128, 0.01168)
_NUTTALL = _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)
_FLATTOP = _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)

# The function of the size and the parameters, and how many of these have no default.
_WINDOWS = {
    ("boxcar", "box", "ones", "rect", "rectangular"): (np.ones, 0),
    ("hann", "han"): (_cosines(0.5, 0.5), 0),
    ("hamming", "hamm", "ham"): (_cosines(0.54, 0.46), 0),
    ("blackman", "black", "blk"): (_cosines(0.42, 0.5, 0.08), 0),
    ("blackmanharris", "blackharr", "bkh"): (_BLACKMAN_HARRIS, 0),
    ("nuttall", "nutl", "nut"): (_NUTTALL, 0),
    ("flattop", "flat", "flt"): (_FLATTOP, 0),
    ("bartlett", "bart", "brt"): (np.bartlett, 0),
    ("triangle", "triang", "tri"): (_triang, 0),
    ("cosine", "halfcosine"): (lambda size: np.sin(np.pi / size * (np.arange(size) + 0.5)), 0),
    ("parzen", "parz", "par"): (_parzen, 0),
    ("bohman", "bman", "bmn"): (_bohman, 0),
    ("lanczos", "sinc"): (_lanczos, 0),
    ("tukey", "tuk"): (_tukey, 0),
    ("exponential", "poisson"): (_exponential, 0),
    ("kaiser", "ksr"): (np.kaiser, 1),
    ("gaussian", "gauss", "gss"): (_gaussian, 1),
    ("general gaussian", "general_gaussian", "general gauss", "general_gauss", "ggs"):
        (_general_gaussian, 2),
    ("general cosine", "general_cosine"): (_general_cosine, 1),
    ("general hamming", "general_hamming"):
        (lambda size, alpha: _cosines(alpha, 1 - alpha)(size), 1),
}  # fmt: skip
_BY_NAME = {name: found for names, found in _WINDOWS.items() for name in names}


def get_window(window: Any, size: int) -> np.ndarray:
    """The window of a name, or of a tuple of a name and parameters.

    ValueError for a name that is not known, or without parameters that it needs.
    """
    name, *parameters = window if isinstance(window, tuple) else (window,)
    if name not in _BY_NAME:
        known = ", ".join(names[0] for names in _WINDOWS)
        raise ValueError(
            f"Invalid window name {name!r} in parameter window={window!r}! Known: {known}."
        )
    function, needed = _BY_NAME[name]
    if len(parameters) < needed:
        raise ValueError(
            f"The {name!r} window needs one or more parameters: pass a tuple, ({name!r}, ...)."
        )
    if size <= 1:
        return np.ones(size)
    return function(size + 1, *parameters)[:size]
