"""Comparisons, operations on bits, and choosing: primitives with their rules, and their
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import of_cases, parts_of
from minijax.features.sharding.unreduced import alike, refused
from minijax.lax.rules import (
    BITS,
    FLOAT,
    INEXACT,
    INTEGER,
    ORDERED,
    add_any_broadcast,
    broadcasting_lower,
    check_dtype,
    elementwise,
    expand_to,
    linear_together,
    merged,
    ndim_of,
    same_dtypes,
    scalar_like,
)
from minijax.lowering.module import i64_array
from minijax.lowering.types import physical
from minijax.transforms.batching import mapped_size, to_axis
from minijax.transforms.primitives import full_like_aval, to_shape
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.typing import Array, ArrayLike

__all__ = [
    "and_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clamp", "clamp_p", "clz",
    "clz_p", "eq", "eq_p", "eq_to_p", "ge", "ge_p", "gt", "gt_p", "is_finite", "is_finite_p", "le",
    "le_p", "le_to_p", "lt", "lt_p", "lt_to_p", "ne", "ne_p", "not_p", "or_p", "population_count",
    "population_count_p", "select", "select_n", "select_n_p", "shift_left", "shift_left_p",
    "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "xor_p",
]  # fmt: skip

_BOOL = dtypes.bool_


def _to_bool(dtype: np.dtype) -> np.dtype:
    return _BOOL


# -- comparisons ----------------------------------------------------------------------------------


def _comparison(name: str, direction: str, accepts: Sequence[type], kind: str | None = None):
    @broadcasting_lower
    def lower(b, x, y):
        total = kind if dtypes.issubdtype(x.dtype, np.floating) else None
        return b.compare(x, y, direction, total)

    return elementwise(name, lower, [accepts] * 2, result=_to_bool)


_ANYTHING = (np.number, np.bool_, dtypes.extended)
eq_p = _comparison("eq", "EQ", _ANYTHING)
ne_p = _comparison("ne", "NE", _ANYTHING)
ge_p = _comparison("ge", "GE", ORDERED)
gt_p = _comparison("gt", "GT", ORDERED)
le_p = _comparison("le", "LE", ORDERED)
lt_p = _comparison("lt", "LT", ORDERED)
# The IEEE total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
eq_to_p = _comparison("eq_to", "EQ", ORDERED, "TOTALORDER")
le_to_p = _comparison("le_to", "LE", ORDERED, "TOTALORDER")
lt_to_p = _comparison("lt_to", "LT", ORDERED, "TOTALORDER")


def _comparing_keys(p: Primitive, op: str, start: bool) -> None:
    """Compare elements that are rows of words, such as random keys: word by word, then all."""
    plain = p.rule_lower

    @p.lower
    def _(b, x, y):
        out = b.out
        if not isinstance(x.aval.dtype, dtypes.ExtendedDType):
            return plain(b, x, y)
        x, y = (b.broadcast(v, out.shape, None if v.shape else ()) for v in (x, y))
        words = physical(x.aval)
        attributes = (
            "compare_type = #stablehlo<comparison_type UNSIGNED>, "
            f"comparison_direction = #stablehlo<comparison_direction {p.name.upper()}>"
        )
        same = b.op("stablehlo.compare", (x, y), words.update(dtype=_BOOL), attributes)
        scalar = out.update(shape=())
        body = b.region([scalar, scalar], lambda r, p, q: [r.op(op, (p, q), scalar)])
        axes = range(out.ndim, words.ndim)
        return b.op_n(
            "stablehlo.reduce",
            (same, b.constant(start, scalar)),
            [out],
            f"dimensions = {i64_array(list(axes))}",
            [body],
        )[0]


_comparing_keys(eq_p, "stablehlo.and", True)
_comparing_keys(ne_p, "stablehlo.or", False)

is_finite_p = elementwise("is_finite", "stablehlo.is_finite", [FLOAT], result=_to_bool)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x == y`.

    - `x`, `y`: arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result is a boolean array of their shape. TypeError where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.eq(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([False,  True, False], dtype=bool)
    """
    return eq_p.bind(x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x != y`.

    - `x`, `y`: arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result is a boolean array of their shape. TypeError where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.ne(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([ True, False,  True], dtype=bool)
    """
    return ne_p.bind(x, y)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x >= y`.

    - `x`, `y`: integer, floating-point or boolean arrays of one dtype and shape; scalars and sizes
      of 1 are broadcast

    The result is a boolean array of their shape. TypeError for complex numbers, and where dtypes or
    shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.ge(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([False,  True,  True], dtype=bool)
    """
    return ge_p.bind(x, y)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x > y`.

    - `x`, `y`: integer, floating-point or boolean arrays of one dtype and shape; scalars and sizes
      of 1 are broadcast

    The result is a boolean array of their shape. TypeError for complex numbers, and where dtypes or
    shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.gt(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([False, False,  True], dtype=bool)
    """
    return gt_p.bind(x, y)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x <= y`.

    - `x`, `y`: integer, floating-point or boolean arrays of one dtype and shape; scalars and sizes
      of 1 are broadcast

    The result is a boolean array of their shape. TypeError for complex numbers, and where dtypes or
    shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.le(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([ True,  True, False], dtype=bool)
    """
    return le_p.bind(x, y)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Compare two arrays elementwise: `x < y`.

    - `x`, `y`: integer, floating-point or boolean arrays of one dtype and shape; scalars and sizes
      of 1 are broadcast

    The result is a boolean array of their shape. TypeError for complex numbers, and where dtypes or
    shapes differ.
    Source: the StableHLO operation `stablehlo.compare`.

    >>> lax.lt(jnp.array([1, 2, 3]), jnp.array([2, 2, 2]))
    Array([ True, False, False], dtype=bool)
    """
    return lt_p.bind(x, y)


def is_finite(x: ArrayLike) -> Array:
    """Test whether each element is neither infinite nor NaN.

    - `x`: floating-point array of any shape

    The result is a boolean array of the shape of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.is_finite`.

    >>> lax.is_finite(jnp.array([1.0, jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return is_finite_p.bind(x)


# -- bits -----------------------------------------------------------------------------------------

not_p = elementwise("not", "stablehlo.not", [BITS])
and_p = elementwise("and", "stablehlo.and", [BITS, BITS])
or_p = elementwise("or", "stablehlo.or", [BITS, BITS])
xor_p = elementwise("xor", "stablehlo.xor", [BITS, BITS])
population_count_p = elementwise("population_count", "stablehlo.popcnt", [INTEGER])
clz_p = elementwise("clz", "stablehlo.count_leading_zeros", [INTEGER])
shift_left_p = elementwise("shift_left", "stablehlo.shift_left", [INTEGER, INTEGER])
shift_right_logical_p = elementwise(
    "shift_right_logical", "stablehlo.shift_right_logical", [INTEGER, INTEGER]
)
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", [INTEGER, INTEGER]
)


def bitwise_not(x: ArrayLike) -> Array:
    """Invert the bits of each element, or the truth value of booleans.

    - `x`: integer or boolean array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.not`.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return not_p.bind(x)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Combine the bits of two arrays elementwise: `x & y`.

    - `x`, `y`: integer or boolean arrays of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.and`.

    >>> lax.bitwise_and(jnp.array([6]), jnp.array([3]))
    Array([2], dtype=int32)
    """
    return and_p.bind(x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Combine the bits of two arrays elementwise: `x | y`.

    - `x`, `y`: integer or boolean arrays of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.or`.

    >>> lax.bitwise_or(jnp.array([6]), jnp.array([3]))
    Array([7], dtype=int32)
    """
    return or_p.bind(x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Combine the bits of two arrays elementwise: `x ^ y`.

    - `x`, `y`: integer or boolean arrays of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.xor`.

    >>> lax.bitwise_xor(jnp.array([6]), jnp.array([3]))
    Array([5], dtype=int32)
    """
    return xor_p.bind(x, y)


def population_count(x: ArrayLike) -> Array:
    """Count the bits of each element that are set.

    - `x`: integer array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.popcnt`.

    >>> lax.population_count(jnp.array([0, 5, 7]))
    Array([0, 2, 3], dtype=int32)
    """
    return population_count_p.bind(x)


def clz(x: ArrayLike) -> Array:
    """Count the leading zero bits of each element.

    - `x`: integer array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.count_leading_zeros`.

    >>> lax.clz(jnp.array([0, 1, -1]))
    Array([32, 31,  0], dtype=int32)
    """
    return clz_p.bind(x)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of each element left: `x << y`.

    - `x`, `y`: integer arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    It is 0 where `y` is negative or not less than the width. The result has their shape and dtype.
    TypeError for other dtypes, and where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.shift_left`.

    >>> lax.shift_left(jnp.array([1, 3]), jnp.array([4, 40]))
    Array([16,  0], dtype=int32)
    """
    return shift_left_p.bind(x, y)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of each element right, filling with zeros.

    - `x`, `y`: integer arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.shift_right_logical`.

    >>> lax.shift_right_logical(jnp.array([16, -1]), jnp.array([2, 28]))
    Array([ 4, 15], dtype=int32)
    """
    return shift_right_logical_p.bind(x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of each element right, filling with the sign bit.

    - `x`, `y`: integer arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.shift_right_arithmetic`.

    >>> lax.shift_right_arithmetic(jnp.array([16, -16]), jnp.array([2, 2]))
    Array([ 4, -4], dtype=int32)
    """
    return shift_right_arithmetic_p.bind(x, y)


# -- select_n -------------------------------------------------------------------------------------

select_n_p = Primitive("select_n")
set_layout(select_n_p, parts=of_cases, sums=alike(1))


@select_n_p.shape_rule
def _(which, *cases):
    if not cases:
        raise ValueError(
            "select_n() must have at least one case: it takes select_n(which, *cases)."
        )
    if not any(dtypes.issubdtype(which.dtype, kind) for kind in BITS):
        raise TypeError(
            f"select `which` must be boolean or integer type, got {which.dtype.name}. Compare it "
            "with something, or convert it."
        )
    if which.dtype == _BOOL and len(cases) > 2:
        raise TypeError(
            f"select with boolean `which` cannot have > 2 cases. Got {len(cases)}: give an int32 "
            "`which`."
        )
    if any(case.shape != cases[0].shape for case in cases):
        raise TypeError(
            "select cases must have the same shapes, got "
            f"[{', '.join(str(case.shape) for case in cases)}]. Broadcast them first."
        )
    if which.shape and which.shape != cases[0].shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {cases[0].shape}."
        )
    same_dtypes("select", cases)
    return merged(cases, cases[0].shape, cases[0].dtype)


linear_together(select_n_p, 1)


@select_n_p.transpose
def _(ct, which, *cases):
    zeros = full_like_aval(0, get_aval(ct))
    boolean = get_aval(which).dtype == _BOOL
    cts: list[Any] = [None]
    for index, case in enumerate(cases):
        if not is_undefined(case):
            cts.append(None)
        elif len(cases) == 1:
            cts.append(ct)
        elif boolean:
            pair = [zeros, zeros]
            pair[index] = ct
            cts.append(select_n_p.bind(which, *pair))
        else:  # the first and the last case are also those of what is out of range
            test = le_p if index == 0 else ge_p if index == len(cases) - 1 else eq_p
            chosen = test.bind(which, scalar_like(index, which))
            cts.append(select_n_p.bind(chosen, zeros, ct))
    return cts


@select_n_p.batch
def _(args, dims):
    which, *cases = args
    if not any(map(ndim_of, cases)) and all(d is None for d in dims[1:]):
        # A choice between numbers is one for each element of `which`, whatever its rank.
        cases = [to_shape(case, which.shape, ()) for case in cases]
        return select_n_p.bind(which, *cases), dims[0]
    ndim = max(ndim_of(x) - (d is not None) for x, d in zip(cases, dims[1:], strict=True))
    place = next((d for d in dims[1:] if d is not None), 0)
    size = mapped_size(args, dims)
    cases = [to_axis(x, d, size, place) for x, d in zip(cases, dims[1:], strict=True)]
    if dims[0] is not None and which.ndim != ndim + 1:  # one choice for each element of the batch
        which = to_shape(which, cases[0].shape, (place,))
    elif dims[0] is not None or ndim_of(which):
        which = to_axis(which, dims[0], size, place)
    return select_n_p.bind(which, *cases), place


@select_n_p.lower
def _(b, which, *cases):
    out = b.out
    if which.dtype == _BOOL:
        return _choose(b, which, *cases, out) if len(cases) == 2 else cases[0]

    # A tree of choices; what is out of range takes the nearest case.
    def tree(start: int, cases):
        if len(cases) == 1:
            return cases[0]
        middle = len(cases) // 2
        bound = b.full(start + middle, which.aval)
        low = b.compare(which, bound, "LT")
        right = tree(start + middle, cases[middle:])
        return _choose(b, low, right, tree(start, cases[:middle]), out)

    return tree(0, cases)


def _choose(b, which, when_false, when_true, out: ShapedArray):
    words = physical(out)
    if which.shape and words.ndim != out.ndim:  # random keys are rows of words
        which = b.broadcast(which, words.shape, range(out.ndim))
    return b.op("stablehlo.select", (which, when_true, when_false), out)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Select each element from the case whose number `which` gives.

    - `which`: boolean array (for at most two cases) or int32 array: a scalar, or of the shape of
      the cases
    - `cases`: arrays of one shape and dtype

    The result has their shape and dtype. ValueError without cases; TypeError where shapes or dtypes
    differ, and for another dtype of `which`.
    Source: the StableHLO operation `stablehlo.select`.

    >>> lax.select_n(jnp.array([0, 2]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Select elements of `on_true` where `pred` is true, and of `on_false` elsewhere.

    - `pred`: boolean array: a scalar, or of the shape of the cases
    - `on_true`, `on_false`: arrays of one shape and dtype

    The result has their shape and dtype. TypeError where shapes or dtypes differ.
    Source: the StableHLO operation `stablehlo.select`.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n_p.bind(pred, on_false, on_true)


# -- clamp ----------------------------------------------------------------------------------------

clamp_p = Primitive("clamp")
set_layout(clamp_p, parts=lambda avals, out: parts_of(avals[1]), sums=refused)


@clamp_p.shape_rule
def _(low, x, high):
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={bound.shape}, operand.shape={x.shape}. Broadcast it first."
            )
    for position, aval in enumerate((low, x, high)):
        check_dtype("clamp", aval, (*BITS, *INEXACT), position)
    same_dtypes("clamp", (low, x, high))
    return merged((low, x, high), x.shape, x.dtype)


@clamp_p.jvp
def _(primals, tangents):
    low, x, high = primals
    out = clamp_p.bind(low, x, high)
    conditions = (
        lambda: and_p.bind(gt_p.bind(low, x), lt_p.bind(low, high)),
        lambda: and_p.bind(gt_p.bind(x, low), lt_p.bind(x, high)),
        lambda: lt_p.bind(high, x),
    )
    total = None
    shape = get_aval(out).shape
    for holds, t in zip(conditions, tangents, strict=True):
        if type(t) is not Zero:
            t = expand_to(t, shape)
            zeros = full_like_aval(0, get_aval(t))
            part = select_n_p.bind(expand_to(holds(), shape), zeros, t)
            total = part if total is None else add_any_broadcast(total, part)
    return out, zero_like(out) if total is None else total


clamp_p.rule_transpose = no_rule("it is not linear in its operands")


@clamp_p.batch
def _(args, dims):
    place = 0 if dims[1] is None else dims[1]
    ndim = ndim_of(args[1]) - (dims[1] is not None)
    size = next(v.shape[d] for v, d in zip(args, dims, strict=True) if d is not None)
    x = to_axis(args[1], dims[1], size, place)
    bounds = []
    for bound, d in ((args[0], dims[0]), (args[2], dims[2])):
        if d is None and ndim_of(bound) == 0:
            bounds.append(bound)
        elif d is None or bound.ndim == ndim + 1:
            bounds.append(to_axis(bound, d, size, place))
        else:  # one bound for each element of the batch
            bounds.append(to_shape(bound, x.shape, (place,)))
    return clamp_p.bind(bounds[0], x, bounds[1]), place


@clamp_p.lower
def _(b, low, x, high):
    return b.op("stablehlo.clamp", (low, x, high), b.out)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit each element to an interval: `min` where it is below, `max` where it is above.

    - `x`: array of any shape
    - `min`, `max`: bounds of the dtype of `x`: scalars, or arrays of its shape

    The result has the shape and dtype of `x`. TypeError where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.clamp`.

    >>> lax.clamp(0, jnp.array([-5, 2, 9]), 3)
    Array([0, 2, 3], dtype=int32)
    """
    return clamp_p.bind(min, x, max)
