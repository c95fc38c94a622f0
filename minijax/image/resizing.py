"""Resampling arrays along axes. Each axis is a product with a matrix of weights: column `j` says
how much of each input place the output place `j` is made of, by a kernel around the point from
which it comes. Places are the centres of pixels: output `j` lies at `j + 1/2`. With
antialiasing, kernels are widened when a picture shrinks.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.queries import certain, is_dim
from minijax.numpy.promotion import axis_of, canonical_shape, promote_dtypes_inexact

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """Interpolation by which `resize` and `scale_and_translate` compute an image of another shape.

    Source: Keys (1981) for CUBIC; Duchon (1979) for LANCZOS3 and LANCZOS5.

    >>> jax.image.ResizeMethod.from_string("bicubic").name
    'CUBIC'
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name. ValueError if there is none."""
        try:
            return _NAMES[s]
        except (KeyError, TypeError):
            raise ValueError(
                f'Unknown resize method "{s}": give one of {", ".join(_NAMES)}.'
            ) from None


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}

# -- kernels, of the distance from the point ----------------------------------------------------------


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _keys(a: float) -> Callable:
    """Cubic convolution (Keys 1981, "Cubic convolution interpolation for digital image processing")."""

    def kernel(x):
        near = ((a + 2) * x - (a + 3)) * x * x + 1.0
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2.0, 0.0, jnp.where(x >= 1.0, far, near))

    return kernel


def _lanczos(radius: float) -> Callable:
    """A sinc under the main lobe of a wider one (Duchon 1979)."""

    def kernel(x):
        bell = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
        safe = jnp.where(x != 0, np.pi**2 * x**2, 1)
        return jnp.where(x > radius, 0.0, jnp.where(x > 1e-3, bell / safe, 1.0))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.75),
}

# -- weights ------------------------------------------------------------------------------------------


def _weights(
    size: int, out_size: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """Return how much of each place goes to each: a matrix of shape (size, out_size)."""
    dtype = jnp.result_type(scale, translation)
    inverse = 1.0 / scale
    places = jnp.arange(out_size, dtype=dtype)
    if method is ResizeMethod.AREA:
        start = places * inverse - translation * inverse
        return _overlaps(size, start, inverse, dtype)
    source = (places + 0.5) * inverse - translation * inverse - 0.5
    # What comes from outside of the picture is zero.
    inside = jnp.logical_and(source >= -0.5, source <= size - 0.5)[None, :]
    if method is ResizeMethod.CUBIC_PYTORCH:
        if not antialias:
            return jnp.where(inside, _with_edges(size, source, _KERNELS[method]), 0)
        method = ResizeMethod.CUBIC
    width = jnp.maximum(inverse, 1.0) if antialias else 1.0
    far = jnp.abs(source[None, :] - jnp.arange(size, dtype=dtype)[:, None]) / width
    weights = _KERNELS[method](far)
    total = jnp.sum(weights, axis=0, keepdims=True)
    weights = jnp.where(
        jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps),
        weights / jnp.where(total != 0, total, 1),
        0,
    )
    return jnp.where(inside, weights, 0)


def _with_edges(size: int, source: Any, kernel: Callable) -> Any:
    """Weights of a kernel of radius two, where the first and last pixels go on for ever."""
    places = jnp.arange(-2, size + 2, dtype=source.dtype)
    weights = kernel(jnp.abs(source[None, :] - places[:, None]))
    before, after = jnp.sum(weights[:2], axis=0), jnp.sum(weights[-2:], axis=0)
    return weights[2:-2].at[0].add(before).at[-1].add(after)


def _overlaps(size: int, start: Any, width: Any, dtype: Any) -> Any:
    """Shares of the pixels in the interval from which each output place comes."""
    low = jnp.arange(size, dtype=dtype)[:, None]
    ends = jnp.minimum(low + 1, (start + width)[None, :])
    covered = jnp.maximum(ends - jnp.maximum(low, start[None, :]), 0)
    total = jnp.sum(covered, axis=0, keepdims=True)
    return jnp.where(total > 0, covered / jnp.where(total != 0, total, 1), 0)


def _scale(size: Any, old: Any, dtype: np.dtype) -> Any:
    """Return how much larger an axis is to be: a number, unless sizes depend on dimension variables."""
    ratio = size / old if is_dim(size) or size else 1.0
    return ratio.astype(dtype) if isinstance(ratio, Array) else np.asarray(ratio, dtype)


def _resampled(
    x: Any, shape: tuple[int, ...], axes: Sequence[int], scales: Sequence[Any],
    translations: Sequence[Any], method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    # The axes that grow most come last, so that the products before them are small.
    growth = [
        0.0 if is_dim(new) or is_dim(old) else new / max(old, 1)
        for new, old in ((shape[axis], x.shape[axis]) for axis in axes)
    ]
    order = sorted(range(len(axes)), key=growth.__getitem__)
    for axis, scale, translation in [(axes[k], scales[k], translations[k]) for k in order]:
        weights = _weights(x.shape[axis], shape[axis], scale, translation, method, antialias)
        moved = jnp.tensordot(x, weights.astype(x.dtype), ((axis,), (0,)), precision=precision)
        x = jnp.moveaxis(moved, -1, axis)
    return x


def _method_of(method: Any) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"method must be a string or a ResizeMethod; got {method!r}.")
    return method


def _check_shape(image: Any, shape: tuple[int, ...]) -> None:
    if len(shape) != np.ndim(image):
        raise ValueError(
            "shape must have length equal to the number of dimensions of x;  "
            f"{shape} vs {np.shape(image)}"
        )


@library(
    static=("shape", "spatial_dims", "method", "antialias", "precision"),
    converted=("spatial_dims", "antialias"),
)
def _scale_and_translate(
    image, shape, spatial_dims, scale, translation, method, antialias, precision
):
    _check_shape(image, shape)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "Nearest neighbor resampling is not currently supported for scale_and_translate."
        )
    axes = [axis_of(axis, np.ndim(image)) for axis in spatial_dims]
    for name, given in (("scale", scale), ("translation", translation)):
        if np.shape(given) != (len(axes),):
            raise AssertionError(
                f"scale_and_translate: {name} must have one entry for each of spatial_dims, "
                f"{tuple(spatial_dims)}; got shape {np.shape(given)}."
            )
    scale, translation = promote_dtypes_inexact(scale, translation)
    (image,) = promote_dtypes_inexact(image)
    scales = [scale[i] for i in range(len(axes))]
    translations = [translation[i] for i in range(len(axes))]
    return _resampled(image, shape, axes, scales, translations, method, antialias, precision)


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Scale an image, then move it, along some axes, on a canvas of a given shape.

    - `image`: array; `shape`: shape of the result, of its rank
    - `spatial_dims`: axes
    - `scale`, `translation`: arrays with an entry for each of these; position x goes to `scale * x
      + translation`. They may be traced and differentiated
    - `method`, `antialias`, `precision`: as in `resize`, without "nearest"

    The result has a floating-point dtype and is zero outside of the image. ValueError for another
    method or a shape of another rank.
    Source: Keys, Cubic convolution interpolation (1981); Duchon, Lanczos filtering (1979).

    >>> scale, translation = jnp.array([2.0]), jnp.array([0.0])
    >>> jax.image.scale_and_translate(jnp.ones(3), (6,), (0,), scale, translation, "linear").shape
    (6,)
    """
    return _scale_and_translate(
        image, canonical_shape(shape), tuple(spatial_dims), scale, translation, _method_of(method),
        antialias, precision,
    )  # fmt: skip


def _nearest(x: Any, shape: tuple[int, ...]) -> Any:
    for axis in range(x.ndim):
        size, out_size = x.shape[axis], shape[axis]
        if size != out_size:
            m = jnp if is_dim(size) or is_dim(out_size) else np
            real = [m.asarray(n, np.float32) for n in (size, out_size)]
            centres = (m.arange(out_size, dtype=np.float32) + np.float32(0.5)) * real[0]
            places = m.floor(centres / real[1]).astype(np.int32)
            x = jnp.take(x, places, axis=axis, mode="clip")
    return x


@library(static=("shape", "method", "antialias", "precision"), whole=True)
def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Resize an image; axes whose size stays are left alone.

    - `image`: array
    - `shape`: shape of the result
    - `method`: "nearest", "linear" (also "bilinear", "trilinear", "triangle"), "cubic" (also
      "bicubic", "tricubic"), "lanczos3", "lanczos5", "area", or a `ResizeMethod`
    - `antialias`: whether to widen the kernel where the image shrinks
    - `precision`: of the products

    Integers become floats, but for "nearest". ValueError for an unknown method or a shape of
    another rank.
    Source: Keys, Cubic convolution interpolation (1981); Duchon, Lanczos filtering (1979).

    >>> jax.image.resize(jnp.array([1, 2]), (4,), "nearest")
    Array([1, 1, 2, 2], dtype=int32)
    """
    if not isinstance(image, (Array, np.ndarray, np.generic, int, float, complex)):
        raise AttributeError(
            f"{type(image).__name__!r} object has no attribute 'ndim': resize takes an array; got "
            f"{image!r}."
        )
    image = jnp.asarray(image) if isinstance(image, (int, float, complex)) else image
    shape, method = canonical_shape(shape), _method_of(method)
    _check_shape(image, shape)
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape)
    (image,) = promote_dtypes_inexact(image)
    axes = [axis for axis in range(image.ndim) if image.shape[axis] != shape[axis]]
    real = np.dtype(np.float64) if image.dtype.itemsize > 8 else np.dtype(np.float32)
    if not dtypes.issubdtype(image.dtype, np.complexfloating):
        real = image.dtype
    dtype = real if dtypes.bit_width(real) >= 32 else np.dtype(np.float32)
    scales = [_scale(shape[axis], image.shape[axis], dtype) for axis in axes]
    zeros = [np.zeros((), dtype)] * len(axes)
    shrinks = not all(certain(lambda i=axis: shape[i] >= image.shape[i]) for axis in axes)
    # Only PyTorch's kernel is another one with antialiasing where nothing shrinks.
    wider = antialias and (shrinks or method is ResizeMethod.CUBIC_PYTORCH)
    return _resampled(image, shape, axes, scales, zeros, method, wider, precision)
