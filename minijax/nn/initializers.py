"""Initial weights: functions `(key, shape, dtype) -> Array`. The numbers are upstream's, bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from minijax import dtypes, lax, random
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.sharding.explicit import split_as
from minijax.lax.shapes import items_of
from minijax.tracebacks import public
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip


class Initializer(Protocol):
    """Protocol of initializers: functions `(key, shape, dtype=None, out_sharding=None) -> Array`.

    Source: `typing.Protocol`.

    >>> init: nn.initializers.Initializer = nn.initializers.zeros
    >>> init(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """

    def __call__(
        self, key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _dtype(given: Any, name: str = "array") -> np.dtype:
    return dtypes.check_user_dtype_supported(given, name)


def zeros(
    key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Return zeros.

    - `key`: ignored
    - `shape`, `dtype`: shape and dtype of the result, by default the default floating dtype
    - `out_sharding`: how it is split over a mesh

    Source: NumPy's `zeros`.

    >>> nn.initializers.zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype, "zeros"), out_sharding=out_sharding)


def ones(
    key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Return ones.

    - `key`: ignored
    - `shape`, `dtype`: shape and dtype of the result, by default the default floating dtype
    - `out_sharding`: how it is split over a mesh

    Source: NumPy's `ones`.

    >>> nn.initializers.ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype, "ones"), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that fills arrays with a constant.

    - `value`: number, or array that broadcasts to the shape
    - `dtype`: dtype unless the initializer is given one

    The initializer raises ValueError if `value` does not broadcast.
    Source: NumPy's `full`.

    >>> nn.initializers.constant(2.0)(random.key(0), (2,))
    Array([2., 2.], dtype=float32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        return jnp.full(shape, value, dtype=_dtype(dtype, "full"), out_sharding=out_sharding)

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from the uniform distribution on [0, scale).

    - `scale`: upper bound, by default 0.01
    - `dtype`: floating-point dtype unless the initializer is given one

    The initializer raises ValueError for another dtype.
    Source: `random.uniform`.

    >>> nn.initializers.uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        drawn = random.uniform(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(scale, dtype)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from the normal distribution of mean 0.

    - `stddev`: standard deviation, by default 0.01
    - `dtype`: floating-point or complex dtype unless the initializer is given one

    The initializer raises ValueError for another dtype.
    Source: `random.normal`.

    >>> nn.initializers.normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        drawn = random.normal(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(stddev, dtype)

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Make an initializer that draws from the normal distribution cut to [lower, upper].

    - `stddev`: factor by which standard samples are multiplied, by default 0.01
    - `dtype`: floating-point or complex dtype unless the initializer is given one
    - `lower`, `upper`: bounds before the multiplication, by default -2 and 2

    The initializer raises ValueError for another dtype.
    Source: `random.truncated_normal`.

    >>> nn.initializers.truncated_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        drawn = random.truncated_normal(key, lower, upper, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(stddev, dtype)

    return init


# -- scaled by the sizes of a layer ----------------------------------------------------------------

_Axes = int | Sequence[int]


def _fans(
    shape: Sequence[int], in_axis: _Axes, out_axis: _Axes, batch_axis: _Axes
) -> tuple[float, float]:
    """Return how many inputs an output has, and outputs an input."""
    if len(shape) <= 1:
        for name, axis, default in (("in_axis", in_axis, -2), ("out_axis", out_axis, -1)):
            if len(shape) + (axis if isinstance(axis, int) else 0) < 0 and axis == default:
                raise ValueError(
                    f"Can't compute input and output sizes of a {len(shape)}-dimensional weights "
                    f"tensor with default {name}. Must be at least 2D or specify {name} explicitly."
                )
    size = lambda axes: shape[axes] if isinstance(axes, int) else prod(shape[i] for i in axes)
    into, out, batch = size(in_axis), size(out_axis), size(batch_axis)
    if not into * out * batch:
        raise ZeroDivisionError(
            f"Can't compute input and output sizes of weights of shape {tuple(shape)}."
        )
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
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Make an initializer of variance `scale / n`, where `n` counts inputs or outputs of a unit.

    - `mode`: whether `n` is "fan_in", "fan_out", or their mean "fan_avg" or geometric mean
      "fan_geo_avg"
    - `distribution`: "normal", "truncated_normal" (at two standard deviations) or "uniform"
    - `in_axis`, `out_axis`, `batch_axis`: axes of the shape that are inputs, outputs and neither;
      the others are a receptive field
    - `dtype`: inexact dtype unless the initializer is given one

    The initializer raises ValueError for another mode or distribution, or fewer than two axes.
    Source: He et al., arXiv:1502.01852 (2015).

    >>> nn.initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(items_of(shape))
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
        fan = _MODES[mode](*fans)
        if not fan:
            raise ValueError(
                f"weights of shape {shape} have no inputs or outputs, by which to scale."
            )
        variance = jnp.asarray(scale / fan, dtype=dtype)
        drawn = _draw(key, shape, dtype, distribution, variance)
        return split_as(drawn, out_sharding, "variance_scaling")

    return init


def _named(
    name: str, scale: float, mode: str, distribution: str, about: str
) -> Callable[..., Initializer]:
    def make(
        in_axis: _Axes = -2,
        out_axis: _Axes = -1,
        batch_axis: _Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Make the initializer `variance_scaling({scale}, {mode!r}, {distribution!r})`.

    - `in_axis`, `out_axis`, `batch_axis`: axes of the shape that are inputs, outputs and neither
    - `dtype`: inexact dtype unless the initializer is given one

    The initializer raises ValueError for shapes of fewer than two axes.
    Source: {about}.

    >>> nn.initializers.{name}()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


_GLOROT = "Glorot and Bengio, Understanding the Difficulty of Training Deep Networks (2010)"
_LECUN = "LeCun et al., Efficient BackProp (1998); Klambauer et al., arXiv:1706.02515 (2017)"
_HE = "He et al., arXiv:1502.01852 (2015)"
glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# -- orthogonal ------------------------------------------------------------------------------------


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer that draws uniformly distributed orthogonal matrices.

    - `scale`: factor
    - `column_axis`: axis of the columns; the other axes together are the rows. If there are more
      columns than rows, the rows are orthonormal
    - `dtype`: floating-point or complex dtype unless the initializer is given one

    The initializer raises ValueError for shapes of fewer than two axes.
    Source: Saxe et al., arXiv:1312.6120 (2013).

    >>> nn.initializers.orthogonal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        shape = tuple(items_of(shape))
        if len(shape) < 2:
            raise ValueError(
                f"orthogonal initializer requires at least a 2D shape; got shape={shape}."
            )
        columns = shape[column_axis]
        rows = prod(shape) // columns if columns else 0
        matrix = _orthogonal(key, rows, columns, dtype)
        others = tuple(np.delete(shape, column_axis))
        matrix = jnp.reshape(matrix, (*(int(size) for size in others), columns))
        scaled = jnp.asarray(scale, dtype) * jnp.moveaxis(matrix, -1, column_axis)
        return split_as(scaled, out_sharding, "orthogonal")

    return init


def _orthogonal(key: Any, rows: int, columns: int, dtype: np.dtype) -> Any:
    drawn = random.normal(key, (max(rows, columns), min(rows, columns)), dtype)
    q, r = jnp.linalg.qr(drawn)
    # The signs of the diagonal make the distribution uniform (Mezzadri 2006, math-ph/0609050).
    q = q * jnp.expand_dims(lax.sign(jnp.diagonal(r)), 0)
    return q if rows >= columns else jnp.transpose(q)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer of convolution filters, orthogonal at the centre and zero elsewhere.

    - `scale`: factor
    - `column_axis`: axis of the columns of the orthogonal matrix, by default the outputs
    - `dtype`: floating-point or complex dtype unless the initializer is given one

    Shapes are (*window, inputs, outputs) with three to five axes and no more inputs than outputs;
    the initializer raises ValueError for others.
    Source: Xiao et al., arXiv:1806.05393 (2018).

    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 4)).shape
    (3, 2, 4)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = _dtype(dtype)
        shape = tuple(items_of(shape))
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape. Got shape={shape}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`. Got shape={shape}.")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        centre = tuple((size - 1) // 2 for size in shape[:-2])
        return split_as(
            jnp.zeros(shape, dtype).at[centre].set(matrix), out_sharding, "delta_orthogonal"
        )

    return init


__dir__ = public(__name__)
