"""`minijax.scipy.interpolate`: values between the points of a grid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import check_arraylike
from minijax.tracebacks import public

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Function given by its values on a grid of increasing coordinates.

    - `points`: for each axis, a vector of coordinates
    - `values`: array of shape (*sizes of these, ...)
    - `method`: "linear" or "nearest"
    - `bounds_error`: must be False
    - `fill_value`: value outside of the grid; None to extrapolate

    Calling it with points of shape (..., axes) interpolates. ValueError for another method or sizes
    that do not fit, NotImplementedError for `bounds_error`.
    Source: SciPy's `interpolate.RegularGridInterpolator`.

    >>> grid, values = jnp.array([0.0, 1.0]), jnp.array([0.0, 10.0])
    >>> jax.scipy.interpolate.RegularGridInterpolator((grid,), values)(jnp.array([[0.5]]))
    Array([5.], dtype=float32)
    """

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "`bounds_error` takes no effect under JIT: leave it out; see `fill_value`."
            )
        check_arraylike("RegularGridInterpolator", values)
        if len(points) > np.ndim(values):
            raise ValueError(
                f"there are {len(points)} point arrays, but values has {np.ndim(values)} dimensions"
            )
        values = jnp.asarray(values)
        if not dtypes.issubdtype(values.dtype, np.inexact):
            values = values.astype(dtypes.to_inexact_dtype(values.dtype))
        grid = []
        for i, place in enumerate(points):
            check_arraylike("RegularGridInterpolator", place)
            if np.ndim(place) != 1:
                raise ValueError(f"the points in dimension {i} must be 1-dimensional")
            if np.shape(place)[0] != values.shape[i]:
                raise ValueError(
                    f"there are {np.shape(place)[0]} points and {values.shape[i]} values in "
                    f"dimension {i}"
                )
            grid.append(jnp.asarray(place))
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if fill_value.dtype.kind == "c" and values.dtype.kind != "c":
                raise ValueError(
                    "fill_value must be either 'None' or of a type compatible with values; got "
                    f"{fill_value.dtype.name} for {values.dtype.name}."
                )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self.grid, self.values = tuple(grid), values

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at points: [..., axes], or a tuple of coordinates."""
        method = self.method if method is None else method
        _check_method(method)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, xi)), axis=-1)
        else:
            check_arraylike("_ndim_coords_from_arrays", xi)
            xi = jnp.asarray(xi)
            xi = xi[:, None] if xi.ndim == 1 and len(self.grid) == 1 else jnp.atleast_2d(xi)
        count = len(self.grid)
        if not xi.ndim or xi.shape[-1] != count:
            raise ValueError(
                f"the requested sample points xi have dimension {xi.shape[-1] if xi.ndim else ()}, but this "
                f"RegularGridInterpolator has dimension {count}"
            )
        lead, xi = xi.shape[:-1], xi.reshape(-1, count)
        cells = [_cell(grid, xi[:, i]) for i, grid in enumerate(self.grid)]
        out = _linear(self.values, cells) if method == "linear" else _nearest(self.values, cells)
        if self.fill_value is not None:
            beyond = jnp.zeros(xi.shape[0], bool)
            for i, grid in enumerate(self.grid):
                beyond = beyond | (xi[:, i] < grid[0]) | (xi[:, i] > grid[-1])
            beyond = beyond.reshape(-1, *[1] * (out.ndim - 1))
            out = jnp.where(beyond, self.fill_value, out)
        return out.reshape(*lead, *self.values.shape[count:])


def _flatten(x: RegularGridInterpolator) -> tuple:
    return (x.grid, x.values, x.fill_value), (x.method, x.bounds_error)


def _unflatten(aux: tuple, children: Any) -> RegularGridInterpolator:
    """Rebuild without the checks: the children may be placeholders."""
    made = object.__new__(RegularGridInterpolator)
    (made.grid, made.values, made.fill_value), (made.method, made.bounds_error) = children, aux
    return made


tree_util.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)


def _check_method(method: str) -> None:
    if method not in ("linear", "nearest"):
        raise ValueError(f"method {method!r} is not defined: give 'linear' or 'nearest'.")


def _cell(grid: Any, x: Any) -> tuple[Any, Any]:
    """The cells in which coordinates lie, and how far through them."""
    index = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, grid.size - 2)
    below = grid[index]
    width = grid[index + 1] - below
    return index, jnp.where(width == 0, 0, (x - below) / jnp.where(width == 0, 1, width))


def _linear(values: Any, cells: list) -> Any:
    rest = (1,) * (values.ndim - len(cells))
    total = 0
    for corner in itertools.product((0, 1), repeat=len(cells)):
        weight, index = 1, []
        for side, (place, part) in zip(corner, cells, strict=True):
            weight = weight * (part if side else 1 - part)
            index.append(place + side)
        total = total + values[tuple(index)] * weight.reshape(-1, *rest)
    return total


def _nearest(values: Any, cells: list) -> Any:
    return values[tuple([jnp.where(part <= 0.5, place, place + 1) for place, part in cells])]


__dir__ = public(__name__)
