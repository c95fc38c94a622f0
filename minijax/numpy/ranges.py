"""Ranges, grids and matrices of zeros and ones: arange, linspace, eye, meshgrid, tril, mgrid, ...

May import the floors below, `promotion`, `creation` and `shapes`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import array_from_numpy
from minijax.config import local
from minijax.core.array import Array
from minijax.core.dims import dim_max, is_dim
from minijax.core.trace import eval_trace, unknown_value
from minijax.errors import ConcretizationTypeError
from minijax.lax import arithmetic, compare, filling
from minijax.lax.arithmetic import add_p, mul_p
from minijax.lax.joining import concatenate_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray, placed, spread
from minijax.numpy.division import divide, power
from minijax.numpy.joining import joined, stack
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    converted,
    known_index,
    number_like,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import broadcast_arrays, broadcast_to, expanded, moveaxis, ravel
from minijax.transforms.library import library

__all__ = [
    "arange", "band", "c_", "diag_indices", "diag_indices_from", "eye", "geomspace", "identity",
    "index_exp", "indices", "ix_", "linspace", "logspace", "meshgrid", "mgrid",
    "ogrid", "r_", "s_", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip

# -- arange -----------------------------------------------------------------------------------

_ON_HOST = 1 << 16  # shorter ranges are made on the host when nothing is traced


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Numbers from `start` (0 if only one is given) up to `stop`, by `step`. Source: numpy.arange.

    The bounds must be known: TypeError or ConcretizationTypeError for traced ones.
    """
    if type(start) is int and 0 < start <= _ON_HOST and stop is step is dtype is device is None:
        context = local.context
        if out_sharding is None and context.trace is eval_trace and context.mesh is None:
            return array_from_numpy(np.arange(start, dtype=dtypes.int_()), explicit=None)
    dtype = as_dtype(dtype, "arange")
    if is_dim(start) or is_dim(stop) or is_dim(step):
        return spread(_symbolic_range(start, stop, step, dtype), device, out_sharding)
    if any(np.iscomplexobj(x) for x in (start, stop, step)):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported; got "
            f"{start!r}, {stop!r}, {step!r}: make the range of real numbers, and convert it."
        )
    first = "stop" if stop is None else "start"
    bounds = [_known(x, name) for x, name in ((start, first), (stop, "stop"), (step, "step"))]
    if stop is None and step is None:
        bounds = [None, bounds[0], None]
    elif stop is None:
        bounds = [None, bounds[0], bounds[2]]
    if dtype is None:
        dtype = dtypes.lattice_result_type(*[x for x in (start, stop, step) if x is not None])[0]
    if dtype == dtypes.bool_:
        raise TypeError(
            "arange does not accept dtype bool, in which nothing is counted: give a numeric dtype, "
            "and convert the result."
        )
    return spread(_range(*bounds, dtype), device, out_sharding)


def _known(x: Any, name: str) -> Any:
    """A bound as a NumPy scalar or Python number."""
    if x is None:
        return None
    if isinstance(x, Array):
        concrete = x.concrete() if hasattr(x, "concrete") else x
        if concrete is None:
            raise ConcretizationTypeError(
                f"{unknown_value(x)} It arose in the jnp.arange argument '{name}': {x!r}. The length of a "
                "range must be known: mark the argument static, or use lax.fori_loop."
            )
        x = np.asarray(concrete)
    if np.ndim(x):
        raise ValueError(
            f"jax.numpy.arange: arguments must be scalars; got {name}={x}, of shape {np.shape(x)}."
        )
    check_arraylike("arange", x)
    return x.item() if isinstance(x, np.ndarray) else x


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    """A range of integers whose length depends on dimension variables."""
    start, stop = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    length = dim_max((stop - start + by - (1 if by > 0 else -1)) // by, 0)
    kind = dtypes.int_() if dtype is None else dtype
    return _iota_range(None if isinstance(start, int) and start == 0 else start, step, length, kind)


def _range(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    if step is not None and step == 0:
        raise ZeroDivisionError("arange: step is zero; give another one.")
    distance = stop if start is None else stop - start
    length = max(0, int(np.ceil(distance if step is None else distance / step)))
    if isinstance(distance, int) and isinstance(step, int):
        length = max(0, -(-distance // step))
    eager = local.context.trace is eval_trace
    if dtypes.issubdtype(dtype, np.integer) and eager and length <= _ON_HOST:
        first, by = start or 0, 1 if step is None else step
        if isinstance(first, (int, np.integer)) and isinstance(by, (int, np.integer)):
            last = int(first) + int(by) * length
            if abs(last) < 1 << 62:
                made = np.arange(int(first), last, int(by)).astype(dtype)
                return array_from_numpy(made, explicit=None)
    return _iota_range(start, step, length, dtype)


@library(static=("length", "dtype"))
def _iota_range(start, step, length, dtype):
    out = filling.iota(dtype, length)
    if step is not None:
        out = mul_p.bind(converted(step, dtype), out)
    if start is not None:
        out = add_p.bind(converted(start, dtype), out)
    return out


# -- linspace and its kin ---------------------------------------------------------------------


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`. Source: numpy.linspace."""
    num = _count("linspace", num)
    dtype = as_dtype(dtype, "linspace")
    out = _linspace(start, stop, num, bool(endpoint), bool(retstep), dtype, axis)
    if retstep:
        return placed(out[0], device), out[1]
    return placed(out, device)


def _count(name: str, num: Any) -> int:
    num = known_index(num, "num")
    if num < 0:
        raise ValueError(
            f"Number of samples, {num}, must be non-negative: the argument num of {name}."
        )
    return num


@library(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start, stop, num, endpoint, retstep, dtype, axis):
    check_arraylike("linspace", start, stop)
    start, stop = broadcast_arrays(start, stop)
    start, stop = promote_dtypes_inexact(start, stop)
    working = start.aval.dtype
    if dtype is None:
        dtype = working
    start, stop = converted(start, working), converted(stop, working)
    rank = start.aval.ndim
    axis = axis_of(axis, rank + 1)
    parts = num - 1 if endpoint else num
    span = arithmetic.sub(stop, start)
    step = arithmetic.div_p.bind(span, number_like(span, parts)) if parts > 0 else None
    real = dtypes.to_real_dtype(working)
    if num > 1:
        inner = parts if endpoint else num
        fractions = filling.iota(real, inner)
        fractions = arithmetic.div_p.bind(fractions, number_like(fractions, parts))
        shape = (inner,) + (1,) * rank
        f = converted(broadcast_in(fractions, shape), working)
        one_less = arithmetic.sub_p.bind(number_like(f, 1), f)
        first, last = expanded(start, (0,)), expanded(stop, (0,))
        out = add_p.bind(mul_p.bind(first, one_less), mul_p.bind(last, f))
        if endpoint:
            out = concatenate_p.bind(out, last, dimension=0)
    else:
        out = broadcast_to(expanded(start, (0,)), (num, *start.aval.shape))
    if axis:
        out = moveaxis(out, 0, axis)
    if dtypes.issubdtype(dtype, np.integer) and not dtypes.issubdtype(working, np.integer):
        out = arithmetic.floor(arithmetic.real(out) if working.kind == "c" else out)
    out = converted(out, dtype)
    if not retstep:
        return out
    if step is None:
        step = broadcast_to_shape(np.asarray(np.nan, working)[()], start.aval.shape)
    return out, step


def broadcast_in(x: Any, shape: tuple[int, ...]) -> Any:
    """A vector along the first axis of a shape whose others are one."""
    return expanded(x, range(1, len(shape))) if len(shape) > 1 else x


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Powers of `base` with evenly spaced exponents. Source: numpy.logspace."""
    num = _count("logspace", num)
    return _logspace(start, stop, base, num, bool(endpoint), as_dtype(dtype, "logspace"), axis)


@library(static=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, base, num, endpoint, dtype, axis):
    check_arraylike("logspace", start, stop, base)
    exponents = _linspace(start, stop, num, endpoint, False, None, axis)
    out = power(base, exponents)
    return converted(out, out.aval.dtype if dtype is None else dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """Numbers in geometric progression from `start` to `stop`. Source: numpy.geomspace."""
    num = _count("geomspace", num)
    return _geomspace(start, stop, num, bool(endpoint), as_dtype(dtype, "geomspace"), axis)


@library(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num, endpoint, dtype, axis):
    check_arraylike("geomspace", start, stop)
    start, stop = broadcast_arrays(start, stop)
    start, stop = promote_dtypes_inexact(start, stop)
    working = start.aval.dtype
    start, stop = converted(start, working), converted(stop, working)
    sign = arithmetic.sign(start)
    out = power(
        10.0,
        _linspace(
            ufuncs.log10(divide(start, sign)), ufuncs.log10(divide(stop, sign)),
            num, endpoint, False, None, 0,
        ),
    )  # fmt: skip
    out = ufuncs.multiply(out, expanded(sign, (0,)))
    # The ends are exact, whatever the logarithms lost.
    if num:
        places = broadcast_in(filling.iota(np.int32, num), (num,) + (1,) * start.aval.ndim)
        out = choose_where(compare.eq_p.bind(places, np.int32(0)), start, out)
        if endpoint and num > 1:
            out = choose_where(compare.eq_p.bind(places, np.int32(num - 1)), stop, out)
    axis = axis_of(axis, out.aval.ndim)
    out = moveaxis(out, 0, axis) if axis else out
    return converted(out, working if dtype is None else dtype)


# -- matrices of zeros and ones ---------------------------------------------------------------


def _size(x: Any, name: str) -> int:
    if is_dim(x):
        return x
    try:
        size = operator.index(x)
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {(x,)}: the "
            f"argument {name} must be a known integer."
        ) from None
    if size < 0:
        raise ValueError(f"negative dimensions are not allowed, got {name}={size}")
    return size


def band(rows: int, columns: int, k: Any, compare_p: Any, lead: tuple[int, ...] = ()) -> Any:
    """Compares row + k with column."""
    sizes = (*lead, rows, columns)
    row = filling.broadcasted_iota(np.int32, sizes, len(lead))
    column = filling.broadcasted_iota(np.int32, sizes, len(lead) + 1)
    if not (isinstance(k, int) and k == 0):
        row = add_p.bind(row, converted(k, dtypes.int32))
    return compare_p.bind(row, column)


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Ones on a diagonal, zeros elsewhere. Source: numpy.eye."""
    rows = _size(N, "N")
    columns = rows if M is None else _size(M, "M")
    found = dtypes.check_user_dtype_supported(dtype, "eye")
    k = operator.index(k) if isinstance(k, np.integer) else k
    if type(k) is not int and not dtypes.issubdtype(getattr(k, "dtype", bool), np.integer):
        raise ValueError(f"k must be a scalar integer; got {k!r}: the number of a diagonal.")
    if isinstance(k, int):
        return placed(_eye(rows, columns, k, found), device)
    return placed(_eye_at(rows, columns, k, found), device)


@library(static=("rows", "columns", "k", "dtype"))
def _eye(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.eq_p), dtype)


@library(static=("rows", "columns", "dtype"))
def _eye_at(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.eq_p), dtype)


def identity(n: Any, dtype: Any = None) -> Array:
    """The identity matrix. Source: numpy.identity."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below a diagonal, zeros above. Source: numpy.tri."""
    rows = _size(N, "N")
    found = dtypes.float32 if dtype is None else dtypes.check_user_dtype_supported(dtype, "tri")
    return _tri(rows, rows if M is None else _size(M, "M"), _offset("tri", k), found)


@library(static=("rows", "columns", "k", "dtype"))
def _tri(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.ge_p), dtype)


def _offset(name: str, k: Any) -> int:
    if isinstance(k, bool):
        raise TypeError(f"{name}: offset must be an integer, got k={k}: the number of a diagonal.")
    return operator.index(k)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m, k = to_array(name, m), _offset(name, k)
    if m.aval.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D; got {m.aval.shape}.")
    *lead, rows, columns = m.aval.shape
    zero = converted(0, m.aval.dtype, m.aval.weak_type)
    if lower:
        return choose_where(band(rows, columns, k, compare.ge_p, tuple(lead)), m, zero)
    below = band(rows, columns, k - 1, compare.ge_p, tuple(lead))
    return choose_where(below, zero, m)


@library(static=("k",))
def tril(m, k=0):
    """The elements on and below a diagonal, the others zero. Source: numpy.tril."""
    return _triangle("tril", m, k, True)


@library(static=("k",))
def triu(m, k=0):
    """The elements on and above a diagonal, the others zero. Source: numpy.triu."""
    return _triangle("triu", m, k, False)


def _indices_of(mask: np.ndarray) -> tuple[Array, ...]:
    return tuple([asarray(part) for part in np.nonzero(mask)])


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix of n rows. Source: numpy.tril_indices."""
    rows = _size(n, "n")
    return _indices_of(np.tri(rows, rows if m is None else _size(m, "m"), known_index(k, "k")))


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix of n rows. Source: numpy.triu_indices."""
    rows = _size(n, "n")
    below = np.tri(rows, rows if m is None else _size(m, "m"), known_index(k, "k") - 1, dtype=bool)
    return _indices_of(~below)


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    if len(np.shape(arr)) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by {name}; got shape {np.shape(arr)}.")
    return tuple(np.shape(arr))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix. Source: numpy.tril_indices_from."""
    check_arraylike("tril_indices_from", arr)
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix. Source: numpy.triu_indices_from."""
    check_arraylike("triu_indices_from", arr)
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal. Source: numpy.diag_indices."""
    n, ndim = known_index(n, "n"), known_index(ndim, "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(
            f"{'n' if n < 0 else 'ndim'} argument to diag_indices must be nonnegative, got "
            f"{n if n < 0 else ndim}."
        )
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array. Source: numpy.diag_indices_from."""
    check_arraylike("diag_indices_from", arr)
    sizes = np.shape(arr)
    if len(sizes) < 2:
        raise ValueError(f"input array must be at least 2-d; got shape {sizes}.")
    if len(set(sizes)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length; got shape {sizes}.")
    return diag_indices(sizes[0], len(sizes))


def mask_indices_of(mask: Any) -> tuple[Array, ...]:
    return _indices_of(np.asarray(mask))


@library(static=("N", "increasing"))
def vander(x, N=None, increasing=False):
    """Powers of the elements of a vector, as columns. Source: numpy.vander."""
    x = to_array("vander", x)
    if x.aval.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array; vander got shape {x.aval.shape}.")
    columns = x.aval.shape[0] if N is None else operator.index(N)
    if columns < 0:
        raise ValueError(f"N must be nonnegative; vander got {columns}.")
    dtype = x.aval.dtype
    if dtype == dtypes.bool_:
        raise TypeError("vander does not accept dtype bool: convert it with .astype(int).")
    exponents = filling.iota(dtype if dtype.kind in "iu" else np.int32, columns)
    if not increasing:
        exponents = arithmetic.sub(number_like(exponents, columns - 1), exponents)
    return power(expanded(x, (1,)), expanded(exponents, (0,)))


# -- grids ------------------------------------------------------------------------------------


@library(static=("copy", "sparse", "indexing"))
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Matrices of coordinates from vectors of them. Source: numpy.meshgrid."""
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True; leave it out.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    vectors = [to_array("meshgrid", x) for x in xi]
    if any(x.aval.ndim != 1 for x in vectors):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes: "
                         f"{[x.aval.shape for x in vectors]}.")  # fmt: skip
    count = len(vectors)
    places = list(range(count))
    if indexing == "xy" and count >= 2:
        places[:2] = [1, 0]
    sizes = [0] * count
    for x, place in zip(vectors, places, strict=True):
        sizes[place] = x.aval.shape[0]
    out = []
    for x, place in zip(vectors, places, strict=True):
        grown = expanded(x, [i for i in range(count) if i != place]) if count > 1 else x
        out.append(grown if sparse else broadcast_to_shape(grown, tuple(sizes)))
    return out


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index of each element along each axis. Source: numpy.indices."""
    sizes = tuple([known_index(size, "dimensions") for size in dimensions])
    found = as_dtype(dtype, "indices") or dtypes.int_()
    parts = [
        broadcast_to_shape(_along(_iota_range(None, None, n, found), i, len(sizes)), ())
        if not sizes
        else _along(_iota_range(None, None, n, found), i, len(sizes))
        for i, n in enumerate(sizes)
    ]
    if sparse:
        return tuple(parts)
    if not parts:
        return asarray(np.zeros((0,), found))
    return stack([broadcast_to(part, sizes) for part in parts])


def _along(x: Any, axis: int, rank: int) -> Any:
    return expanded(x, [i for i in range(rank) if i != axis]) if rank > 1 else x


def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors shaped so that they index a grid together. Source: numpy.ix_."""
    check_arraylike("ix_", *args)
    out = []
    for place, x in enumerate(args):
        x = to_array("ix_", x)
        if x.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got {x.shape}.")
        if x.dtype == dtypes.bool_:
            raise NotImplementedError(
                "Boolean arguments to jax.numpy.ix_ are not implemented: give jnp.nonzero(x)[0]."
            )
        if not x.size:  # as NumPy has it
            x = asarray(np.zeros((0,), dtypes.int_()))
        out.append(_along(x, place, len(args)))
    return tuple(out)


def _axis_of_slice(s: slice, name: str) -> Array:
    """The numbers a slice stands for in a grid: with a complex step, that many."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if s.stop is None:
        raise ValueError(f"jnp.{name}: each slice must have a stop; got {s}.")
    if isinstance(step, complex) or (hasattr(step, "dtype") and np.iscomplexobj(step)):
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


class _Grid:
    """`mgrid` and `ogrid`: grids of coordinates from slices."""

    def __init__(self, name: str, sparse: bool):
        self.name, self._sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_of_slice(key, self.name)
        axes = [_axis_of_slice(s, self.name) for s in key]
        dtype = dtypes.lattice_result_type(*axes)[0]
        axes = [asarray(x, dtype=dtype) for x in axes]
        if not axes:
            return [] if self._sparse else asarray(np.zeros((0,), int))
        grids = meshgrid(*axes, indexing="ij", sparse=self._sparse)
        return list(grids) if self._sparse else stack(grids)

    def __repr__(self) -> str:
        return f"<minijax.numpy.{self.name}>"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _AxisJoiner:
    """`r_` and `c_`: arrays joined by writing them as an index."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int):
        self.name, self._default = name, (axis, ndmin, trans1d)

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._default
        matrix = None
        if items and isinstance(items[0], str):
            text = items.pop(0)
            if text in ("r", "c"):  # vectors become a row, or a column
                matrix = 0 if text == "r" else 1
            else:
                axis, ndmin, trans1d = self._directive(text)
        parts = [self._part(item, ndmin, trans1d) for item in items]
        out = joined(self.name, parts, axis)
        return expanded(out, (matrix,)) if matrix is not None and out.ndim == 1 else out

    def _directive(self, text: str) -> tuple[int, int, int]:
        """The axis, least rank and place of vectors that a leading string asks for."""
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(
                f"could not understand directive {text!r} in jnp.{self.name}."
            ) from None
        return (*numbers, *self._default[len(numbers) :])  # type: ignore[return-value]

    def _part(self, item: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(item, slice):
            x = _axis_of_slice(item, self.name)
        else:
            x = asarray(item)
        rank = x.ndim
        x = x if rank else ravel(x)
        missing = ndmin - max(rank, 1 if not rank else rank)
        if missing <= 0:
            return x
        place = trans1d if trans1d >= 0 else trans1d + missing + 1
        place = min(max(place, 0), missing)
        return expanded(x, [i for i in range(ndmin) if not place <= i < place + x.ndim])

    def __repr__(self) -> str:
        return f"<minijax.numpy.{self.name}>"


r_ = _AxisJoiner("r_", 0, 1, -1)
c_ = _AxisJoiner("c_", -1, 2, 0)


class _IndexExpression:
    """`s_` and `index_exp`: an index as an object."""

    def __init__(self, always_tuple: bool):
        self._always_tuple = always_tuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self._always_tuple and not isinstance(item, tuple) else item


s_ = _IndexExpression(False)
index_exp = _IndexExpression(True)
