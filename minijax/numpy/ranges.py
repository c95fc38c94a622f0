"""Numbers at even or geometric distances: arange, linspace, logspace, geomspace."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_index, needs_value
from minijax.arrays.array import array_from_numpy
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.trace import eval_trace
from minijax.features.library import library
from minijax.features.queries import is_dim, max_dim
from minijax.lax import arithmetic, compare, creation
from minijax.lax.arithmetic import add_p, mul_p
from minijax.lax.joining import concatenate_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import placed, spread
from minijax.numpy.division import divide, power
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    check_ranks,
    converted,
    number_like,
    promote_dtypes_inexact,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import broadcast_arrays, broadcast_to, expanded, moveaxis
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.typing import ArrayLike, DimSize, DTypeLike

__all__ = ["arange", "broadcast_in", "geomspace", "iota_range", "linspace", "logspace"]

# -- arange -----------------------------------------------------------------------------------

_INTEGERS = (int, np.integer)


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
    if type(start) is int and start > 0 and stop is step is dtype is device is out_sharding is None:
        context = local.context
        if context.trace is eval_trace and context.mesh is None and creation.made_on_host(start):
            return array_from_numpy(np.arange(start, dtype=dtypes.int_()), explicit=None)
    dtype = as_dtype(dtype, "arange")
    if is_dim(start) or is_dim(stop) or is_dim(step):
        return spread(_symbolic_range(start, stop, step, dtype), device, out_sharding, "jnp.arange")
    if any(np.iscomplexobj(x) for x in (start, stop, step)):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported starting in JAX "
            f"v0.10.0. Got {start!r}, {stop!r}, {step!r}: make the range of real numbers, and convert it."
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
            "iota does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, "
            "complexfloating. Give arange a numeric dtype, and convert the result."
        )
    return spread(_range(*bounds, dtype), device, out_sharding, "jnp.arange")


def _known(x: Any, name: str) -> Any:
    """A bound as a NumPy scalar or Python number."""
    if x is None:
        return None
    if isinstance(x, Array):
        concrete = x.concrete() if hasattr(x, "concrete") else x
        if concrete is None:
            raise needs_value(
                x,
                f"It arose in the jnp.arange argument '{name}'",
                "The length of a range must be known: mark the argument static, or use "
                "lax.fori_loop.",
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
    length = max_dim(0, (stop - start + by - (1 if by > 0 else -1)) // by)
    kind = dtypes.int_() if dtype is None else dtype
    return iota_range(None if isinstance(start, int) and start == 0 else start, step, length, kind)


def _range(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    if step is not None and step == 0:
        raise ZeroDivisionError("arange: step is zero; give another one.")
    distance = stop if start is None else stop - start
    length = max(0, int(np.ceil(distance if step is None else distance / step)))
    if isinstance(distance, int) and isinstance(step, int):
        length = max(0, -(-distance // step))
    if local.context.trace is eval_trace and creation.made_on_host(length):
        first, by = start or 0, 1 if step is None else step
        whole = dtypes.issubdtype(dtype, np.integer)
        whole = whole and isinstance(first, _INTEGERS) and isinstance(by, _INTEGERS)
        if whole or start is step is None:
            last = int(first) + int(by) * length
            if abs(last) < 1 << 62:
                made = np.arange(int(first), last, int(by)).astype(dtype)
                return array_from_numpy(made, ShapedArray(made.shape, dtype), explicit=None)
    return iota_range(start, step, length, dtype)


@library(static=("length", "dtype"))
def iota_range(start, step, length, dtype):
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
    axis = _axis("linspace", axis)
    out = _linspace(start, stop, num, bool(endpoint), bool(retstep), dtype, axis)
    if retstep:
        return placed(out[0], device), out[1]
    return placed(out, device)


def _count(name: str, num: Any) -> int:
    num = known_index(num, f"'num' argument of jnp.{name}")
    if num < 0:
        raise ValueError(
            f"Number of samples, {num}, must be non-negative. It is the argument num of {name}."
        )
    return num


def _axis(name: str, axis: Any) -> int:
    return known_index(axis, f"'axis' argument of jnp.{name}")


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
    num, axis = _count("logspace", num), _axis("logspace", axis)
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
    num, axis = _count("geomspace", num), _axis("geomspace", axis)
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
