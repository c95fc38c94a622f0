"""Ranges, grids and matrices of zeros and ones: arange, linspace, eye, meshgrid, tril, mgrid,
...
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.arrays.array import array_from_numpy
from minijax.config import local, promoting_freely
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.trace import Tracer, eval_trace
from minijax.errors import ConcretizationTypeError
from minijax.features.array_members.tracers import unknown_value_said
from minijax.features.queries import is_dim, max_dim
from minijax.lax import arithmetic, compare, creation
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
    check_ranks,
    converted,
    known_index,
    number_like,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import broadcast_arrays, broadcast_to, expanded, moveaxis, ravel
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.transforms.arguments import check_at_most
from minijax.transforms.library import library
from minijax.typing import ArrayLike, DimSize, DTypeLike

__all__ = [
    "arange", "band", "c_", "diag_indices", "diag_indices_from", "eye", "geomspace", "identity",
    "index_exp", "indices", "ix_", "linspace", "logspace", "meshgrid", "mgrid",
    "ogrid", "r_", "s_", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip

# -- arange -----------------------------------------------------------------------------------

_ON_HOST = 1 << 16  # shorter ranges are made on the host when nothing is traced


def arange(
    start: ArrayLike | DimSize,
    stop: ArrayLike | DimSize | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return evenly spaced numbers in a half-open interval.

    - `start`, `stop`: real scalars; with one of them alone, numbers go from 0 up to it, exclusive.
    - `step`: real scalar, 1 by default.
    - `dtype`: dtype of the result; by default that of the arguments.
    - `device` or `out_sharding`: placement of the result.

    Returns an array of shape (ceil((stop - start) / step),), at least (0,). ConcretizationTypeError
    if an argument is traced, ValueError for complex ones, ZeroDivisionError if `step` is zero.
    Source: NumPy's `arange`.

    >>> jnp.arange(2, 8, 2)
    Array([2, 4, 6], dtype=int32)
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
                f"{unknown_value_said(x)} It arose in the jnp.arange argument '{name}': {x!r}. The length of a "
                "range must be known: mark the argument static, or use lax.fori_loop."
            )
        x = np.asarray(concrete)
    if np.ndim(x):
        check_arraylike("arange", x)
        raise ValueError(
            f"jax.numpy.arange: arguments must be scalars; got {name}={x}, of shape {np.shape(x)}."
        )
    check_arraylike("arange", x)
    return x.item() if isinstance(x, np.ndarray) else x


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    """A range of integers whose length depends on dimension variables."""
    start, stop = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    length = max_dim((stop - start + by - (1 if by > 0 else -1)) // by, 0)
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
                return array_from_numpy(made, ShapedArray(made.shape, dtype), explicit=None)
    return _iota_range(start, step, length, dtype)


@library(static=("length", "dtype"))
def _iota_range(start, step, length, dtype):
    out = creation.iota(dtype, length)
    if step is not None:
        out = mul_p.bind(converted(step, dtype), out)
    if start is not None:
        out = add_p.bind(converted(start, dtype), out)
    return out


# -- linspace and its kin ---------------------------------------------------------------------


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Device | Sharding | None = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Any:
    """Return `num` evenly spaced numbers over an interval.

    - `start`, `stop`: arrays that broadcast, the ends of the interval.
    - `num`: an int, 50 by default; `endpoint`: include `stop`, True by default.
    - `retstep`: also return the spacing.
    - `dtype`: dtype of the result, by default an inexact one; integers are rounded down.
    - `axis`: position of the new axis if `start` and `stop` are no scalars.

    Returns an array of shape (num,), or with an axis of size num added, or a pair of it and the
    step. ValueError if `num` is negative. Source: NumPy's `linspace`.

    >>> jnp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
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
    check_ranks("linspace", start, stop)
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
        fractions = creation.iota(real, inner)
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
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return numbers that are evenly spaced on a logarithmic scale.

    - `start`, `stop`: arrays that broadcast; the first number is base**start, the last base**stop.
    - `num`, `endpoint`, `dtype`, `axis`: as in `linspace`.
    - `base`: scalar, 10 by default.

    Returns an array of shape (num,), or with an axis of size num added. ValueError if `num` is
    negative. Source: NumPy's `logspace`.

    >>> jnp.logspace(0, 3, 4, base=2).round()
    Array([1., 2., 4., 8.], dtype=float32)
    """
    num = _count("logspace", num)
    return _logspace(start, stop, base, num, bool(endpoint), as_dtype(dtype, "logspace"), axis)


@library(static=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, base, num, endpoint, dtype, axis):
    check_arraylike("logspace", start, stop, base)
    check_ranks("logspace", start, stop)
    exponents = _linspace(start, stop, num, endpoint, False, None, axis)
    out = power(base, exponents)
    return converted(out, out.aval.dtype if dtype is None else dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return numbers in geometric progression.

    - `start`, `stop`: arrays that broadcast, the first and the last number; not zero.
    - `num`, `endpoint`, `dtype`, `axis`: as in `linspace`.

    Returns an array of shape (num,), or with an axis of size num added. ValueError if `num` is
    negative. Source: NumPy's `geomspace`.

    >>> jnp.geomspace(1, 8, 4).round()
    Array([1., 2., 4., 8.], dtype=float32)
    """
    num = _count("geomspace", num)
    return _geomspace(start, stop, num, bool(endpoint), as_dtype(dtype, "geomspace"), axis)


@library(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num, endpoint, dtype, axis):
    check_arraylike("geomspace", start, stop)
    check_ranks("geomspace", start, stop)
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
    # The ends are exact, whatever the logarithms lost; but no end stands in a sequence that is none.
    if num:
        places = broadcast_in(creation.iota(np.int32, num), (num,) + (1,) * start.aval.ndim)
        known = compare.eq_p.bind(out, out)
        for n, end in ((0, start), (num - 1, stop)) if endpoint and num > 1 else ((0, start),):
            end = choose_where(known, end, out)
            out = choose_where(compare.eq_p.bind(places, np.int32(n)), end, out)
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
    row = creation.broadcasted_iota(np.int32, sizes, len(lead))
    column = creation.broadcasted_iota(np.int32, sizes, len(lead) + 1)
    if not (isinstance(k, int) and k == 0):
        row = add_p.bind(row, converted(k, dtypes.int32))
    return compare_p.bind(row, column)


def eye(
    N: DimSize,
    M: DimSize | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    - `N`, `M`: ints, the numbers of rows and columns; M is N by default.
    - `k`: an int, the diagonal: 0 is the main one, positive ones lie above it.
    - `dtype`: dtype of the result, the default float unless given; `device`: its placement.

    Returns an array of shape (N, M). ValueError for negative sizes. Source: NumPy's `eye`.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
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


def identity(n: DimSize, dtype: DTypeLike | None = None) -> Array:
    """Return an identity matrix.

    - `n`: an int; `dtype`: dtype of the result, the default float unless given.

    Returns an array of shape (n, n). ValueError if `n` is negative. Source: NumPy's `identity`.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on and below a diagonal and zeros above it.

    - `N`, `M`: ints, the numbers of rows and columns; M is N by default.
    - `k`: an int, the diagonal; `dtype`: dtype of the result, float32 unless given.

    Returns an array of shape (N, M). TypeError if `k` is not an int, or a size is negative. Source:
    NumPy's `tri`.

    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    rows, columns = _rows_and_columns("iota", N, M)
    found = dtypes.float32 if dtype is None else dtypes.check_user_dtype_supported(dtype, "tri")
    if isinstance(k, Tracer) and not k.aval.shape and k.aval.dtype.kind in "iu":
        return converted(band(rows, columns, k, compare.ge_p), found)
    return _tri(rows, columns, _offset("tri", k), found)


@library(static=("rows", "columns", "k", "dtype"))
def _tri(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.ge_p), dtype)


def _rows_and_columns(name: str, n: Any, m: Any) -> tuple[Any, Any]:
    """The sizes of a matrix; TypeError for negative ones, as for a shape of `lax`."""
    n = n if is_dim(n) else known_index(n, "n")
    m = n if m is None else m if is_dim(m) else known_index(m, "m")
    if any(size < 0 for size in (n, m) if not is_dim(size)):
        raise TypeError(
            f"{name} shape must have every element be nonnegative, got ({n}, {m}): give the numbers "
            "of rows and columns."
        )
    return n, m


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
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the lower triangle of matrices, with zeros above it.

    - `m`: array of shape (..., rows, columns).
    - `k`: an int, the last diagonal to keep; 0 is the main one, positive ones lie above it.

    Returns an array of the shape and dtype of `m`. ValueError below two dimensions. Source: NumPy's
    `tril`.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@library(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the upper triangle of matrices, with zeros below it.

    - `m`: array of shape (..., rows, columns).
    - `k`: an int, the first diagonal to keep; 0 is the main one, positive ones lie above it.

    Returns an array of the shape and dtype of `m`. ValueError below two dimensions. Source: NumPy's
    `triu`.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def _indices_of(mask: np.ndarray) -> tuple[Array, ...]:
    return tuple([asarray(part) for part in np.nonzero(mask)])


def _lower(n: Any, m: Any, k: int) -> np.ndarray:
    """Where a matrix lies below a diagonal."""
    rows, columns = _rows_and_columns("broadcast_in_dim", n, m)
    check_at_most("the number of elements of the matrix", rows * columns, 1 << 32)
    return np.tri(rows, columns, k, dtype=bool)


def tril_indices(n: DimSize, k: DimSize = 0, m: DimSize | None = None) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix.

    - `n`, `m`: ints, the numbers of rows and columns; m is n by default.
    - `k`: an int, the last diagonal to include.

    Returns a pair of integer arrays of shape (count,): rows and columns. TypeError if a size is
    negative. Source: NumPy's `tril_indices`.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices_of(_lower(n, m, known_index(k, "k")))


def triu_indices(n: DimSize, k: DimSize = 0, m: DimSize | None = None) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix.

    - `n`, `m`: ints, the numbers of rows and columns; m is n by default.
    - `k`: an int, the first diagonal to include.

    Returns a pair of integer arrays of shape (count,): rows and columns. TypeError if a size is
    negative. Source: NumPy's `triu_indices`.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _indices_of(~_lower(n, m, known_index(k, "k") - 1))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    if len(np.shape(arr)) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by {name}; got shape {np.shape(arr)}.")
    return tuple(np.shape(arr))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a given matrix.

    - `arr`: array of shape (n, m); `k`: an int, the last diagonal to include.

    Returns a pair of integer arrays of shape (count,). ValueError unless `arr` is two-dimensional.
    Source: NumPy's `tril_indices_from`.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    check_arraylike("tril_indices_from", arr)
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a given matrix.

    - `arr`: array of shape (n, m); `k`: an int, the first diagonal to include.

    Returns a pair of integer arrays of shape (count,). ValueError unless `arr` is two-dimensional.
    Source: NumPy's `triu_indices_from`.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    check_arraylike("triu_indices_from", arr)
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array.

    - `n`: an int, the size of each axis; `ndim`: an int, the number of axes, 2 by default.

    Returns a tuple of ndim integer arrays of shape (n,). ValueError if `n` or `ndim` is negative.
    Source: NumPy's `diag_indices`.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = known_index(n, "n"), known_index(ndim, "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(
            f"{'n' if n < 0 else 'ndim'} argument to diag_indices must be nonnegative, got "
            f"{n if n < 0 else ndim}."
        )
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of a given array.

    - `arr`: array of shape (n, ..., n), of at least two dimensions.

    Returns a tuple of arr.ndim integer arrays of shape (n,). ValueError for other shapes. Source:
    NumPy's `diag_indices_from`.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
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
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return a Vandermonde matrix: powers of a vector's elements as columns.

    - `x`: numeric array of shape (n,).
    - `N`: an int, the number of columns, n by default.
    - `increasing`: order of the powers, from N - 1 down to 0 by default.

    Returns an array of shape (n, N) and of the dtype of `x`. ValueError if `x` is not
    one-dimensional or `N` is negative, TypeError for booleans. Source: NumPy's `vander`.

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = to_array("vander", x)
    if x.aval.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array; vander got shape {x.aval.shape}.")
    columns = x.aval.shape[0] if N is None else operator.index(N)
    if columns < 0:
        raise ValueError(f"N must be nonnegative; vander got {columns}.")
    dtype = x.aval.dtype
    if dtype == dtypes.bool_:
        raise TypeError("vander does not accept dtype bool: convert it with .astype(int).")
    exponents = creation.iota(dtype if dtype.kind in "iu" else np.int32, columns)
    if not increasing:
        exponents = arithmetic.sub(number_like(exponents, columns - 1), exponents)
    return power(expanded(x, (1,)), expanded(exponents, (0,)))


# -- grids ------------------------------------------------------------------------------------


@library(static=("copy", "sparse", "indexing"))
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Return coordinate matrices from coordinate vectors.

    - `*xi`: arrays of shapes (n1,), (n2,), ...
    - `indexing`: "xy" (the default) gives shape (n2, n1, ...), "ij" gives (n1, n2, ...).
    - `sparse`: give each result size 1 along all axes but its own.

    Returns a list of arrays, each of its own dtype. ValueError if an argument is not
    one-dimensional, for an unknown `indexing`, or if `copy` is False. Source: NumPy's `meshgrid`.

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([5]), indexing="ij")
    [Array([[1],
           [2]], dtype=int32), Array([[5],
           [5]], dtype=int32)]
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True; leave it out.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    vectors = [to_array("meshgrid", x) for x in xi]
    if any(x.aval.ndim != 1 for x in vectors):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
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


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return the indices of a grid.

    - `dimensions`: sequence of ints, the shape of the grid.
    - `dtype`: dtype of the result, the default integer unless given.
    - `sparse`: return a tuple of arrays of size 1 along all axes but their own.

    Returns an array of shape (len(dimensions), *dimensions). Source: NumPy's `indices`.

    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
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


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Reshape vectors so that together they index the grid of their values.

    - `*args`: n integer arrays of one dimension.

    Returns a tuple of n arrays of n dimensions; the sizes of each are 1 except along its own axis.
    ValueError if an argument is not one-dimensional, NotImplementedError for boolean ones. Source:
    NumPy's `ix_`.

    >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3, 4]))]
    [(2, 1), (1, 3)]
    """
    check_arraylike("ix_", *args)
    out = []
    for place, x in enumerate(args):
        x = to_array("ix_", x)
        if x.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}"
            )
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
    """Make grids of coordinates by slicing: `mgrid` full ones, `ogrid` ones that broadcast.

    Indexed by one slice or a tuple of slices `start:stop:step`, of real numbers; an imaginary step
    counts the points, from start to stop inclusive. `mgrid` returns one array of shape (axes, ...),
    `ogrid` a list of arrays; the dtypes of the slices promote. ValueError if a slice has no stop.
    Source: NumPy's `mgrid` and `ogrid`.

    >>> jnp.mgrid[0:2, 0:3].shape
    (2, 2, 3)
    >>> [x.shape for x in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self._sparse = name, sparse

    @promoting_freely()
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
    """Join arrays, scalars and slices that are written as an index.

    `r_` joins along the first axis, `c_` along the last after turning vectors into columns. A slice
    stands for `arange`, or for `linspace` if its step is imaginary. A leading string
    "axis,ndim,start" gives the axis, the least number of dimensions and where vectors are placed in
    these. Returns an array of the promoted dtype and of the joined shape. ValueError for other
    strings. Source: NumPy's `r_` and `c_`.

    >>> jnp.r_[1:3, 7, jnp.array([8, 9])]
    Array([1, 2, 7, 8, 9], dtype=int32)
    >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
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
    """Return an index expression as an object that can index an array of fitting shape later.

    `s_` returns it as it stands, `index_exp` always as a tuple. Source: NumPy's `s_` and
    `index_exp`.

    >>> jnp.arange(5)[jnp.s_[1:3]]
    Array([1, 2], dtype=int32)
    >>> jnp.index_exp[1:3]
    (slice(1, 3, None),)
    """

    def __init__(self, always_tuple: bool) -> None:
        self._always_tuple = always_tuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self._always_tuple and not isinstance(item, tuple) else item


s_ = _IndexExpression(False)
index_exp = _IndexExpression(True)
