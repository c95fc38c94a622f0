"""Initial weights: functions `(key, shape, dtype) -> Array`. May import the floors below, `numpy`
and `random`. The numbers are upstream's, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from minijax import dtypes, lax, random
from minijax import numpy as jnp
from minijax.core.array import Array

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip


class Initializer(Protocol):
    """What the functions here give: `(key, shape, dtype=float32, out_sharding=None) -> Array`."""

    def __call__(
        self, key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _dtype(given: Any, default: Any) -> np.dtype:
    return dtypes.canonicalize_dtype(
        given if given is not None else np.float64 if default is None else default
    )


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Zeros; the key is not looked at."""
    return jnp.zeros(shape, _dtype(dtype, None))


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Ones; the key is not looked at."""
    return jnp.ones(shape, _dtype(dtype, None))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Arrays filled with `value`, a number or an array that broadcasts to the shape."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        return jnp.full(shape, value, dtype=_dtype(dtype, None))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform on [0, scale)."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        return random.uniform(key, shape, dtype) * jnp.asarray(scale, dtype)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal with mean zero and this standard deviation."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        return random.normal(key, shape, dtype) * jnp.asarray(stddev, dtype)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """A standard normal distribution cut to [lower, upper], then multiplied by `stddev`."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        drawn = random.truncated_normal(key, lower, upper, shape, dtype)
        return drawn * jnp.asarray(stddev, dtype)

    return init


# -- scaled by the sizes of a layer ----------------------------------------------------------------

_Axes = int | Sequence[int]


def _fans(
    shape: Sequence[int], in_axis: _Axes, out_axis: _Axes, batch_axis: _Axes
) -> tuple[float, float]:
    """How many inputs an output has, and outputs an input."""
    if len(shape) <= 1:
        for name, axis, default in (("in_axis", in_axis, -2), ("out_axis", out_axis, -1)):
            if len(shape) + (axis if isinstance(axis, int) else 0) < 0 and axis == default:
                raise ValueError(
                    f"Can't compute input and output sizes of a {len(shape)}-dimensional weights "
                    f"tensor with default {name}. Must be at least 2D or specify {name} explicitly."
                )
    size = lambda axes: shape[axes] if isinstance(axes, int) else prod(shape[i] for i in axes)
    into, out, batch = size(in_axis), size(out_axis), size(batch_axis)
    field = prod(shape) / into / out / batch
    return into * field, out * field


_MODES = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}
# The standard deviation of the normal distribution cut at two, and of the complex one.
_CUT_AT_TWO = 0.87962566103423978
_CUT_AT_TWO_COMPLEX = 0.95311164380491208


def _complex_uniform(key: Any, shape: Sequence[int], dtype: np.dtype) -> Array:
    """Uniform on the unit disk, by its radius and angle."""
    radius_key, angle_key = random.split(key)
    real = dtypes.to_real_dtype(dtype)
    radius = jnp.sqrt(2 * random.uniform(radius_key, shape, real)).astype(dtype)
    angle = 2 * np.pi * random.uniform(angle_key, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _complex_truncated_normal(key: Any, upper: Any, shape: Sequence[int], dtype: np.dtype) -> Array:
    """A standard complex normal distribution, cut to the disk of this radius."""
    radius_key, angle_key = random.split(key)
    real = dtypes.to_real_dtype(dtype)
    inside = 1 - jnp.exp(jnp.asarray(-(upper**2), dtype))
    drawn = inside * random.uniform(radius_key, shape, real).astype(dtype)
    radius = jnp.sqrt(-jnp.log(1 - drawn))
    angle = 2 * np.pi * random.uniform(angle_key, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _draw(key: Any, shape: Sequence[int], dtype: np.dtype, distribution: str, variance: Any) -> Any:
    is_real = dtypes.issubdtype(dtype, np.floating)
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform":
        if is_real:
            drawn = random.uniform(key, shape, dtype, -1)
            return drawn * jnp.sqrt(jnp.asarray(3, dtype) * variance)
        return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
    if is_real:
        stddev = jnp.sqrt(variance) / jnp.asarray(_CUT_AT_TWO, dtype)
        return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
    stddev = jnp.sqrt(variance) / jnp.asarray(_CUT_AT_TWO_COMPLEX, dtype)
    return _complex_truncated_normal(key, 2, shape, dtype) * stddev


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Weights of variance scale / n, where n counts the inputs or outputs of a unit.

    - `mode`: n is "fan_in", "fan_out", or their mean "fan_avg" or geometric mean "fan_geo_avg"
    - `distribution`: "normal", "truncated_normal" (cut at two standard deviations) or "uniform"
    - `in_axis`, `out_axis`, `batch_axis`: which axes of the shape are inputs, outputs and neither;
      the remaining ones are a receptive field

    ValueError for another mode or distribution, or a shape of fewer than two axes.
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        shape = tuple(shape)
        fans = _fans(shape, in_axis, out_axis, batch_axis)
        if mode not in _MODES:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode}; give one of {[*_MODES]}."
            )
        if distribution not in ("normal", "truncated_normal", "uniform"):
            raise ValueError(
                f"invalid distribution for variance scaling initializer: {distribution}; give "
                "'normal', 'truncated_normal' or 'uniform'."
            )
        variance = jnp.asarray(scale / _MODES[mode](*fans), dtype=dtype)
        return _draw(key, shape, dtype, distribution, variance)

    return init


def _named(name: str, scale: float, mode: str, distribution: str, about: str) -> Any:
    def make(
        in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{about}: `variance_scaling({scale}, {mode!r}, {distribution!r})`."
    return make


_GLOROT = "Glorot and Bengio 2010"
_LECUN = "LeCun et al. 1998, Klambauer et al. 2017"
_HE = "He et al. 2015"
glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# -- orthogonal ------------------------------------------------------------------------------------


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Uniformly distributed orthogonal matrices, times `scale` (Saxe et al. 2013, arXiv:1312.6120).

    The columns lie along `column_axis`, and the rows along the other axes together; if there are more
    columns than rows, the rows are orthonormal. ValueError for fewer than two axes.
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(
                f"orthogonal initializer requires at least a 2D shape; got shape={shape}."
            )
        columns = shape[column_axis]
        rows = prod(shape) // columns if columns else 0
        matrix = _orthogonal(key, rows, columns, dtype)
        others = tuple(np.delete(shape, column_axis))
        matrix = jnp.reshape(matrix, (*(int(size) for size in others), columns))
        return jnp.asarray(scale, dtype) * jnp.moveaxis(matrix, -1, column_axis)

    return init


def _orthogonal(key: Any, rows: int, columns: int, dtype: np.dtype) -> Any:
    drawn = random.normal(key, (max(rows, columns), min(rows, columns)), dtype)
    q, r = jnp.linalg.qr(drawn)
    # The signs of the diagonal make the distribution uniform (Mezzadri 2006, math-ph/0609050).
    q = q * jnp.expand_dims(lax.sign(jnp.diagonal(r)), 0)
    return q if rows >= columns else jnp.transpose(q)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Kernels of convolutions that are orthogonal at their centre and zero elsewhere.

    For shapes (*window, inputs, outputs) of three to five axes, with no more inputs than outputs;
    ValueError for others. Source: Xiao et al. 2018, arXiv:1806.05393.
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape; got shape={shape}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`; got shape={shape}.")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        centre = tuple((size - 1) // 2 for size in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return init
