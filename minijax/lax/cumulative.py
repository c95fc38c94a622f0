"""Cumulative sums, products, extrema and log-sum-exps along an axis.

On CPU a long axis is cut into blocks of about equal number and length; a loop runs through all blocks
at once, and what comes before each block, found in the same way, is combined with it. That is one
operation an element and level, where a window as long as the axis costs XLA about 17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.queries import is_dim
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import along
from minijax.lax.arithmetic import (
    abs_p,
    add_p,
    complex_p,
    imag_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    real_p,
    rem_p,
    sub_p,
)
from minijax.lax.compare import eq_p, lt_p, ne_p, select_n_p
from minijax.lax.control_flow.associative import associative_scan
from minijax.lax.reductions import combine_by, greatest, least, one, zero
from minijax.lax.rules import INEXACT, NUMBER, check_dtype, elementwise, linear, scalar_like
from minijax.lax.slicing import lower_pad
from minijax.lax.transcendental import exp_p, log1p_p
from minijax.lax.window_rules import lower_window
from minijax.lowering.module import i64_array, lower_by
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.primitives import full_like_aval
from minijax.typing import Array

__all__ = [
    "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod",
    "cumprod_p", "cumsum", "cumsum_p",
]  # fmt: skip

_INT32 = np.dtype(np.int32)

# -- lowering -------------------------------------------------------------------------------------------

_UNROLLED = 8  # up to this length, each element has its own operation
# Of more elements in all only pairs have: XLA computes what leads to an element again for each sum that
# it is in, and the cumulative sum of a remainder of shape (6, 80000) took 35 ms where it takes 6.
_MANY = 4097
_LOOPED = 64  # up to this length, one loop runs through the axis


class _Scan:
    """Writes a cumulative operation along one axis: the operation, its identity, the direction."""

    def __init__(self, b, combine: Callable, identity: np.generic, axis: int, reverse: bool):
        self.b, self.combine, self.identity = b, combine, identity
        self.axis, self.reverse = axis, reverse

    def run(self, x):
        size = x.shape[self.axis]
        if is_dim(size):
            return self.looped(x, self.axis)
        many = type(x.aval.size) is not int or x.aval.size >= _MANY
        if size <= (2 if many else _UNROLLED):
            return self.unrolled(x)
        return self.looped(x, self.axis) if size <= _LOOPED else self.blocked(x)

    def slice(self, x, axis: int, start: int, limit: int):
        starts, limits = [0] * len(x.shape), list(x.shape)
        starts[axis], limits[axis] = start, limit
        attributes = (
            f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
            f"strides = {i64_array([1] * len(starts))}"
        )
        return self.b.op("stablehlo.slice", (x,), _resized(x, axis, limit - start), attributes)

    def pad(self, x, low: int, high: int):
        """Add identities before and after along the axis, or take elements away."""
        axis, config = self.axis, [(0, 0, 0)] * len(x.shape)
        config[axis] = (low, high, 0)
        fill = self.b.constant(self.identity, x.aval.update(shape=()))
        out = _resized(x, axis, x.shape[axis] + low + high)
        return lower_pad(self.b, x, fill, config, out)

    def unrolled(self, x):
        size = x.shape[self.axis]
        parts = [self.slice(x, self.axis, i, i + 1) for i in range(size)]
        order = range(size - 1, -1, -1) if self.reverse else range(size)
        if dtypes.issubdtype(
            x.dtype, np.complexfloating
        ):  # the first angle is brought to the circle
            start = self.b.full(self.identity, parts[0].aval)
            parts[order[0]] = self.combine(self.b, start, parts[order[0]])
        for before, i in pairwise(order):
            parts[i] = self.combine(self.b, parts[before], parts[i])
        attributes = f"dimension = {self.axis} : i64"
        return self.b.op("stablehlo.concatenate", parts, x.aval, attributes)

    def looped(self, x, axis: int):
        """A loop that overwrites each slice with what has come together up to it."""
        size, index = x.shape[axis], ShapedArray((), _INT32)
        carried = _resized(x, axis, 1)
        start = self.b.full(self.identity, carried)
        state = [index, carried, x.aval]

        def number(r, n):
            return r.size(n) if is_dim(n) else r.constant(n, index)

        def condition(r, i, total, xs):
            return [r.compare(i, number(r, size), "LT")]

        def body(r, i, total, xs):
            at = i
            if self.reverse:
                at = r.op("stablehlo.subtract", (number(r, size - 1), i), index)
            starts = [r.constant(0, index)] * len(x.shape)
            starts[axis] = at
            sizes = f"slice_sizes = {i64_array(carried.shape)}"
            part = r.op("stablehlo.dynamic_slice", (xs, *starts), carried, sizes)
            total = self.combine(r, total, part)
            xs = r.op("stablehlo.dynamic_update_slice", (xs, total, *starts), x.aval)
            return [r.op("stablehlo.add", (i, r.constant(1, index)), index), total, xs]

        regions = [self.b.region(state, condition), self.b.region(state, body)]
        operands = (self.b.constant(0, index), start, x)
        return self.b.op_n("stablehlo.while", operands, state, "", regions)[2]

    def blocked(self, x):
        b, axis, size = self.b, self.axis, x.shape[self.axis]
        levels = 2
        while size > 100**levels:
            levels += 1
        length = int(np.ceil(size ** (1 / levels)))
        count = -(-size // length)
        extra = count * length - size
        padded = self.pad(x, extra, 0) if self.reverse else self.pad(x, 0, extra)
        shape = x.shape
        blocks = b.reshape(padded, (*shape[:axis], count, length, *shape[axis + 1 :]))
        blocks = self.looped(blocks, axis + 1)
        last = 0 if self.reverse else length - 1
        totals = self.slice(blocks, axis + 1, last, last + 1)
        totals = self.run(b.reshape(totals, (*shape[:axis], count, *shape[axis + 1 :])))
        before = self.pad(totals, -1, 1) if self.reverse else self.pad(totals, 1, -1)
        dims = [d for d in range(len(blocks.shape)) if d != axis + 1]
        whole = self.combine(b, b.broadcast(before, blocks.shape, dims), blocks)
        whole = b.reshape(whole, padded.shape)
        if not extra:
            return whole
        start = extra if self.reverse else 0
        return self.slice(whole, axis, start, start + size)


def _resized(x, axis: int, size: int) -> ShapedArray:
    return x.aval.update(shape=(*x.shape[:axis], size, *x.shape[axis + 1 :]))


def _as_window(b, x, combine: Callable, identity: np.generic, axis: int, reverse: bool):
    """Write a reduction over windows that reach to the end: efficient on accelerators."""
    ndim, size, out = len(x.shape), x.shape[axis], b.out
    width, padding = [1] * ndim, [(0, 0)] * ndim
    width[axis] = size
    padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
    window = {
        "window_dimensions": width, "window_strides": [1] * ndim, "padding": padding,
    }  # fmt: skip
    init = b.constant(identity, x.aval.update(shape=()))
    body = lambda r, p, q: [combine(r, p, q)]
    return lower_window(b, [x], [init], body, [out], window)[0]


# -- the primitives -------------------------------------------------------------------------------------


def _cumulative(
    name: str,
    combine: Callable,
    identity: Callable[[Any], np.generic],
    accepts: Sequence[type] = NUMBER,
    rounds: bool = True,
) -> Primitive:
    """A cumulative operation with its shape, batching and lowering rules.

    `rounds` is false of operations whose results are exact.
    """
    p = Primitive(name)
    why = "Input should be unsharded over the axis being reduced. Got input type={type} and axis={axis}"
    set_layout(p, parts=along(name, lambda x, *, axis, **params: (axis,), why))

    @p.shape_rule
    def _(x, *, axis, reverse):
        check_dtype(name, x, accepts)
        if axis < 0:
            raise ValueError(
                f"XLA operations do not allow negative axes. {name} got {axis} for an operand of shape "
                f"{x.shape}: give {axis + x.ndim}."
            )
        if axis >= x.ndim:
            raise ValueError(
                f"axis {axis} is out of bounds for array of shape {x.shape}, by {name}."
            )
        return x

    @p.batch
    def _(args, dims, *, axis, reverse):
        (x,), (dim,) = args, dims
        return p.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    @p.lower
    def _(b, x, *, axis, reverse):
        if x.aval.size == 0:
            return x
        # The loop slices within bytes, which XLA does not do for what is narrower than one.
        if b.platform == "cpu" and dtypes.bit_width(x.dtype) >= 8:
            # Rounding each of the many partial results to 16 bits would lose most of them.
            narrow = x.dtype.itemsize < 4 and dtypes.issubdtype(x.dtype, np.floating)
            wide = np.dtype(np.float32) if narrow and rounds else x.dtype
            run = _Scan(b, combine, identity(wide), axis, reverse).run
            return run(x) if wide is x.dtype else b.convert(run(b.convert(x, wide)), x.dtype)
        start = identity(x.dtype)
        return _as_window(b, x, combine, start, axis, reverse)

    return p


def _by(p: Primitive) -> Callable:
    return lambda b, x, y: combine_by(p, b, x, y)


def _logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, not overflowing; the sum where the difference is not a number."""
    complex_valued = dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)
    greater = max_p.bind(x, y)
    if complex_valued:
        difference = sub_p.bind(min_p.bind(x, y), greater)
        total = add_p.bind(greater, log1p_p.bind(exp_p.bind(difference)))
    else:
        difference = sub_p.bind(x, y)
        small = exp_p.bind(neg_p.bind(abs_p.bind(difference)))
        total = add_p.bind(greater, log1p_p.bind(small))
    undefined = ne_p.bind(difference, difference)
    total = select_n_p.bind(undefined, total, add_p.bind(x, y))
    return _with_small_angle(total) if complex_valued else total


def _with_small_angle(x: Any) -> Any:
    """Complex numbers whose imaginary part is brought to the circle from -pi to pi."""
    angle = imag_p.bind(x)
    pi, circle = scalar_like(np.pi, angle), scalar_like(2 * np.pi, angle)
    rest = rem_p.bind(sub_p.bind(pi, angle), circle)
    low = lt_p.bind(rest, scalar_like(0, rest))
    rest = select_n_p.bind(low, rest, add_p.bind(rest, circle))
    return complex_p.bind(real_p.bind(x), sub_p.bind(pi, rest))


def _logaddexp_weight(x: Any, out: Any) -> Any:
    """The derivative by an operand, `exp(x - out)`; infinities cancel."""
    infinity, nothing = scalar_like(np.inf, out), full_like_aval(0, get_aval(out))
    x, out = (select_n_p.bind(eq_p.bind(v, infinity), v, nothing) for v in (x, out))
    return exp_p.bind(sub_p.bind(x, out))


_lower_logaddexp = lower_by(_logaddexp)

# A primitive, for the derivative is not that of its parts: where operands are equal, those have kinks.
logaddexp_p = elementwise(
    "logaddexp",
    lambda b, x, y: _lower_logaddexp(b, x, y)[0],
    [INEXACT, INEXACT],
    jvp=[
        lambda t, out, x, y: mul_p.bind(t, _logaddexp_weight(x, out)),
        lambda t, out, x, y: mul_p.bind(t, _logaddexp_weight(y, out)),
    ],
)

cumsum_p = _cumulative("cumsum", _by(add_p), zero)
cumprod_p = _cumulative("cumprod", _by(mul_p), one)
cummax_p = _cumulative("cummax", _by(max_p), least, rounds=False)
cummin_p = _cumulative("cummin", _by(min_p), greatest, rounds=False)
cumlogsumexp_p = _cumulative("cumlogsumexp", _by(logaddexp_p), least, INEXACT)
linear(
    cumsum_p,
    lambda ct, aval, *, axis, reverse: cumsum_p.bind(ct, axis=axis, reverse=not reverse),
)


# -- derivatives ----------------------------------------------------------------------------------------


def _differentiable(p: Primitive, combine: Callable) -> None:
    """Give a cumulative operation its derivative, and the value beside it, by an associative scan.

    Where extrema are equal the shares depend on the order in which elements come together, which is
    why it is this one and not a recurrence.
    """
    p.rule_transpose = no_rule("it is not linear in its operand")

    @p.jvp
    def _(primals, tangents, *, axis, reverse):
        (out,), (t,) = jvp_flat(
            lambda x: [associative_scan(combine, x, reverse, axis)], primals, tangents
        )
        return out, t


for _p, _combine in (
    (cumprod_p, mul_p), (cummax_p, max_p), (cummin_p, min_p), (cumlogsumexp_p, logaddexp_p)
):  # fmt: skip
    _differentiable(_p, _combine.bind)

# -- the functions --------------------------------------------------------------------------------------


def cumsum(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Compute cumulative sums along an axis.

    - `operand`: numeric array
    - `axis`: nonnegative axis; `reverse`: whether to begin at its end

    The result has the shape and dtype of `operand`. ValueError for an axis out of range, TypeError
    for booleans. Source: NumPy's `cumsum`.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return cumsum_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cumprod(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Compute cumulative products along an axis.

    - `operand`: numeric array
    - `axis`: nonnegative axis; `reverse`: whether to begin at its end

    The result has the shape and dtype of `operand`. ValueError for an axis out of range, TypeError
    for booleans. Source: NumPy's `cumprod`.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return cumprod_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cummax(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Compute cumulative maxima along an axis.

    - `operand`: numeric array
    - `axis`: nonnegative axis; `reverse`: whether to begin at its end

    The result has the shape and dtype of `operand`. ValueError for an axis out of range, TypeError
    for booleans. Source: NumPy's `maximum.accumulate`.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return cummax_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cummin(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Compute cumulative minima along an axis.

    - `operand`: numeric array
    - `axis`: nonnegative axis; `reverse`: whether to begin at its end

    The result has the shape and dtype of `operand`. ValueError for an axis out of range, TypeError
    for booleans. Source: NumPy's `minimum.accumulate`.

    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return cummin_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cumlogsumexp(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Compute the logarithms of cumulative sums of exponentials along an axis, without overflow.

    - `operand`: floating-point or complex array
    - `axis`: nonnegative axis; `reverse`: whether to begin at its end

    The result has the shape and dtype of `operand`. ValueError for an axis out of range, TypeError
    for other dtypes. Source: NumPy's `logaddexp.accumulate`.

    >>> lax.cumlogsumexp(jnp.array([0.0, -jnp.inf]))
    Array([0., 0.], dtype=float32)
    """
    return cumlogsumexp_p.bind(operand, axis=int(axis), reverse=bool(reverse))
