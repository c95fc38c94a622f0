"""Comparisons, operations on bits, and choosing: primitives with their rules, and their functions.

May import the floors below and `lax.rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.core.sums import alike, refused
from minijax.lax.rules import (
    BITS,
    FLOAT,
    INTEGER,
    ORDERED,
    add_any_broadcast,
    broadcasting_lower,
    elementwise,
    expand_to,
    merged,
    ndim_of,
    same_dtypes,
    scalar_like,
    shape_of,
)
from minijax.lowering.module import i64_array
from minijax.lowering.types import physical
from minijax.transforms.primitives import (
    broadcast_in_dim_p,
    full_like_aval,
    instantiate,
    moveaxis,
)
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent

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


def eq(x: Any, y: Any) -> Any:
    """Elementwise `x == y`: a boolean array. StableHLO `compare`.

    Operands have one dtype, and shapes that are equal or scalar, or have ones where the other has
    not: TypeError otherwise. This holds for all functions of two operands in `minijax.lax`.
    """
    return eq_p.bind(x, y)


def ne(x: Any, y: Any) -> Any:
    """Elementwise `x != y`. StableHLO `compare`."""
    return ne_p.bind(x, y)


def ge(x: Any, y: Any) -> Any:
    """Elementwise `x >= y`; not for complex numbers. StableHLO `compare`."""
    return ge_p.bind(x, y)


def gt(x: Any, y: Any) -> Any:
    """Elementwise `x > y`; not for complex numbers. StableHLO `compare`."""
    return gt_p.bind(x, y)


def le(x: Any, y: Any) -> Any:
    """Elementwise `x <= y`; not for complex numbers. StableHLO `compare`."""
    return le_p.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """Elementwise `x < y`; not for complex numbers. StableHLO `compare`."""
    return lt_p.bind(x, y)


def is_finite(x: Any) -> Any:
    """Whether each element of a floating array is neither infinite nor NaN. StableHLO op."""
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


def bitwise_not(x: Any) -> Any:
    """Elementwise `~x` for integers and booleans. StableHLO `not`."""
    return not_p.bind(x)


def bitwise_and(x: Any, y: Any) -> Any:
    """Elementwise `x & y` for integers and booleans. StableHLO `and`."""
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """Elementwise `x | y` for integers and booleans. StableHLO `or`."""
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """Elementwise `x ^ y` for integers and booleans. StableHLO `xor`."""
    return xor_p.bind(x, y)


def population_count(x: Any) -> Any:
    """How many bits of each integer are set. StableHLO `popcnt`."""
    return population_count_p.bind(x)


def clz(x: Any) -> Any:
    """How many leading bits of each integer are zero. StableHLO `count_leading_zeros`."""
    return clz_p.bind(x)


def shift_left(x: Any, y: Any) -> Any:
    """Elementwise `x << y`; zero where `y` is the width or more. StableHLO op."""
    return shift_left_p.bind(x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """Elementwise `x >> y`, zeros shifted in. StableHLO op."""
    return shift_right_logical_p.bind(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """Elementwise `x >> y`, copies of the sign bit shifted in. StableHLO op."""
    return shift_right_arithmetic_p.bind(x, y)


# -- select_n -------------------------------------------------------------------------------------

select_n_p = Primitive("select_n")
select_n_p.sums(alike(1))


@select_n_p.shape_rule
def _(which, *cases):
    if not cases:
        raise ValueError("select_n(which, *cases) must have at least one case; none was given.")
    if not any(dtypes.issubdtype(which.dtype, kind) for kind in BITS):
        raise TypeError(
            f"select `which` must be boolean or integer type, got {which.dtype.name}: compare it "
            "with something, or convert it."
        )
    if which.dtype == _BOOL and len(cases) > 2:
        raise TypeError(
            f"select with boolean `which` cannot have > 2 cases; got {len(cases)}. Give an int32 "
            "`which`."
        )
    if any(case.shape != cases[0].shape for case in cases):
        raise TypeError(
            "select cases must have the same shapes, got "
            f"[{', '.join(str(case.shape) for case in cases)}]: broadcast them first."
        )
    if which.shape and which.shape != cases[0].shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {cases[0].shape}."
        )
    same_dtypes("select", cases)
    out = merged(cases, cases[0].shape, cases[0].dtype)
    return out.update(vma=out.vma | which.vma) if which.vma else out


@select_n_p.jvp
def _(primals, tangents):
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(type(t) is Zero for t in tangents[1:]):
        return out, zero_tangent(get_aval(out))
    return out, select_n_p.bind(which, *[instantiate(t) for t in tangents[1:]])


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
    ndim = max(ndim_of(x) - (d is not None) for x, d in zip(cases, dims[1:], strict=True))
    place = next((d for d in dims[1:] if d is not None), 0)
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    cases = [_with_axis(x, d, size, place) for x, d in zip(cases, dims[1:], strict=True)]
    if dims[0] is not None and which.ndim != ndim + 1:  # one choice for each element of the batch
        which = broadcast_in_dim_p.bind(
            which, shape=cases[0].shape, broadcast_dimensions=(place,), sharding=None
        )
    elif dims[0] is not None or ndim_of(which):
        which = _with_axis(which, dims[0], size, place)
    return select_n_p.bind(which, *cases), place


def _with_axis(x: Any, dim: int | None, size: int, place: int) -> Any:
    """An operand with its batch axis at `place`: moved there, or repeated along a new one."""
    if dim is not None:
        return moveaxis(x, dim, place)
    shape = shape_of(x)
    kept = tuple([axis for axis in range(len(shape) + 1) if axis != place])
    shape = (*shape[:place], size, *shape[place:])
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept, sharding=None)


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


def select_n(which: Any, *cases: Any) -> Any:
    """For each element, that of the case whose number `which` gives.

    `which` is boolean (then there are one or two cases) or an integer, and a scalar or of the shape
    of the cases, which have one shape and dtype. TypeError otherwise; ValueError without cases.
    """
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of `on_true` where `pred` holds and of `on_false` elsewhere. StableHLO `select`."""
    return select_n_p.bind(pred, on_false, on_true)


# -- clamp ----------------------------------------------------------------------------------------

clamp_p = Primitive("clamp")
clamp_p.sums(refused)


@clamp_p.shape_rule
def _(low, x, high):
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={bound.shape}, operand.shape={x.shape}: broadcast it first."
            )
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
    return out, zero_tangent(get_aval(out)) if total is None else total


clamp_p.rule_transpose = no_rule("it is not linear in its operands")


@clamp_p.batch
def _(args, dims):
    place = 0 if dims[1] is None else dims[1]
    ndim = ndim_of(args[1]) - (dims[1] is not None)
    size = next(v.shape[d] for v, d in zip(args, dims, strict=True) if d is not None)
    x = _with_axis(args[1], dims[1], size, place)
    bounds = []
    for bound, d in ((args[0], dims[0]), (args[2], dims[2])):
        if d is None and ndim_of(bound) == 0:
            bounds.append(bound)
        elif d is None or bound.ndim == ndim + 1:
            bounds.append(_with_axis(bound, d, size, place))
        else:  # one bound for each element of the batch
            bounds.append(
                broadcast_in_dim_p.bind(
                    bound, shape=x.shape, broadcast_dimensions=(place,), sharding=None
                )
            )
    return clamp_p.bind(bounds[0], x, bounds[1]), place


@clamp_p.lower
def _(b, low, x, high):
    return b.op("stablehlo.clamp", (low, x, high), b.out)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """`x` within bounds: `min` where it is below, `max` where it is above. StableHLO `clamp`.

    The bounds have the dtype of `x`, and are scalars or of its shape; TypeError otherwise.
    """
    return clamp_p.bind(min, x, max)
