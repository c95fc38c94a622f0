"""The costs of operations: the rules of `roofline`, by primitive. Those that XLA fuses cost an
operation for each element of the result, and their operands and results in bytes, if they are
not fused. Moving elements costs nothing, since it is fused with what reads them; a gather and a
scatter move what they take and give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.experimental.roofline.roofline import (
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    costs,
    unknown,
)
from minijax.lax.callbacks import io_callback_p, pure_callback_p
from minijax.lax.collective_movement import reduce_scatter_p
from minijax.lax.debug_callbacks import debug_callback_p, debug_print_p
from minijax.lax.gathers import all_gather_invariant_p
from minijax.lax.parallel import psum_invariant_p
from minijax.transforms.primitives import add_any_p

_ELEMENTS = (
    lax.abs_p, lax.acos_p, lax.add_p, add_any_p, lax.and_p, lax.asin_p, lax.atan_p,
    lax.bessel_i0e_p, lax.bessel_i1e_p, lax.cbrt_p, lax.ceil_p, lax.conj_p, lax.cos_p,
    lax.cosh_p, lax.digamma_p, lax.div_p, lax.eq_p, lax.erf_p, lax.erf_inv_p, lax.erfc_p,
    lax.exp_p, lax.expm1_p, lax.floor_p, lax.ge_p, lax.gt_p, lax.imag_p, lax.integer_pow_p,
    lax.is_finite_p, lax.le_p, lax.lgamma_p, lax.log_p, lax.log1p_p, lax.logistic_p, lax.lt_p,
    lax.max_p, lax.min_p, lax.mul_p, lax.ne_p, lax.neg_p, lax.not_p, lax.or_p, lax.real_p,
    lax.rem_p, lax.round_p, lax.rsqrt_p, lax.sign_p, lax.sin_p, lax.sinh_p, lax.sqrt_p,
    lax.square_p, lax.sub_p, lax.tan_p, lax.xor_p,
)  # fmt: skip


def _cost(ctx: RooflineRuleContext, flops: int, moved: int | None = None) -> RooflineResult:
    if moved is None:
        moved = RooflineShape.total_bytes([*ctx.avals_in, *ctx.avals_out])
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)


def _elements(ctx: RooflineRuleContext, *operands: Any, **params: Any) -> RooflineResult:
    return _cost(ctx, math.prod(ctx.avals_out[0].shape))


def _select(ctx, *operands, **params) -> RooflineResult:
    moved = RooflineShape.total_bytes([ctx.avals_in[0], *ctx.avals_out])  # one of the cases is read
    return _cost(ctx, math.prod(ctx.avals_out[0].shape), moved)


def _dot(ctx, lhs, rhs, *, dimension_numbers, **params) -> RooflineResult:
    (contracted, _), _ = dimension_numbers
    out = ctx.avals_out[0]
    flops = 2 * math.prod(out.shape) * math.prod([lhs.shape[d] for d in contracted])
    moved = 0 if ctx.pin_lhs_in_vmem else lhs.bytes + RooflineShape.from_aval(out).bytes
    moved += 0 if ctx.pin_rhs_in_vmem else rhs.bytes
    return RooflineResult(
        flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved
    )


def _reduce_sum(ctx, x, **params) -> RooflineResult:
    return _cost(ctx, x.size - math.prod(ctx.avals_out[0].shape))


def _cumulative(times: int) -> Callable:
    return lambda ctx, x, *, axis, **params: _cost(ctx, times * x.shape[axis])


def _gather(ctx, x, indices, **params) -> RooflineResult:
    return _cost(ctx, 0, 2 * RooflineShape.from_aval(ctx.avals_out[0]).bytes + indices.bytes)


def _scatter(combining: bool) -> Callable:
    def rule(ctx, x, indices, updates, **params):
        return _cost(ctx, updates.size if combining else 0, 3 * updates.bytes + indices.bytes)

    return rule


def _callback(ctx, *operands, **params) -> RooflineResult:
    return _cost(ctx, 0)


def _conv(
    ctx, lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
    feature_group_count, batch_group_count, **params,
) -> RooflineResult:  # fmt: skip
    """Two operations for each element of the kernel that lies on one of the operand."""
    numbers, out = dimension_numbers, ctx.avals_out[0]
    pairs = 1
    for place, (d, k, o) in enumerate(
        zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
    ):
        taps = np.arange(rhs.shape[k])[:, None] * rhs_dilation[place] - padding[place][0]
        at = taps + np.arange(out.shape[o]) * window_strides[place]
        end = (lhs.shape[d] - 1) * lhs_dilation[place]
        pairs *= int(((at >= 0) & (at <= end) & (at % lhs_dilation[place] == 0)).sum())
    batch = lhs.shape[numbers.lhs_spec[0]] // batch_group_count
    outs, ins = rhs.shape[numbers.rhs_spec[0]], rhs.shape[numbers.rhs_spec[1]]
    return _cost(ctx, 2 * batch * outs * ins * pairs)


# -- collectives -----------------------------------------------------------------------------------


def _over(ctx: RooflineRuleContext, names: Any, moved: int, steps: int) -> RooflineResult:
    return RooflineResult(
        ici_bytes=dict.fromkeys(names, moved), ici_latency=dict.fromkeys(names, steps)
    )


def _names(axes: Any) -> tuple:
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def _sizes(ctx: RooflineRuleContext, names: Sequence[Any]) -> list[int]:
    return [ctx.mesh.shape[name] for name in names]


def _ring(ctx: RooflineRuleContext, axes: Any, whole: int, groups: Any, times: int = 1):
    """Each device passes on all parts but one; several axes share the work."""
    if groups is not None:
        raise NotImplementedError("roofline knows collectives without axis_index_groups only.")
    names = _names(axes)
    count = math.prod(_sizes(ctx, names))
    moved = whole // count * (count - 1) // len(names)
    return _over(ctx, names, times * moved, times * count if count > 1 else 0)


def _psum(ctx, *xs, axes=None, axis_index_groups=None, **params) -> RooflineResult:
    """A reduce_scatter, and an all_gather."""
    total = RooflineResult()
    for x in xs:
        total += _ring(ctx, axes, x.bytes, axis_index_groups, 2)
    return total


def _pmax(ctx, *xs, axes=None, axis_index_groups=None, **params) -> RooflineResult:
    total = RooflineResult()
    for x in xs:
        count = math.prod(_sizes(ctx, _names(axes)))
        total += _ring(ctx, axes, x.dtype.itemsize * count, axis_index_groups)
    return total


def _all_gather(ctx, *xs, axis_name, axis_index_groups=None, **params) -> RooflineResult:
    whole = RooflineShape.total_bytes(ctx.avals_out)
    return _ring(ctx, axis_name, whole, axis_index_groups)


def _reduce_scatter(ctx, *xs, axis_name, axis_index_groups=None, **params) -> RooflineResult:
    whole = RooflineShape.total_bytes(ctx.avals_in)
    return _ring(ctx, axis_name, whole, axis_index_groups)


def _all_to_all(ctx, x, *, axis_name, axis_index_groups=None, **params) -> RooflineResult:
    """Halfway round a ring in both directions; two devices have one link."""
    names = _names(axis_name)
    sizes = _sizes(ctx, names)
    count = math.prod(sizes)
    if axis_index_groups is not None:
        raise NotImplementedError("roofline knows collectives without axis_index_groups only.")
    moved = 0 if count == 1 else x.bytes * count // (2 if count == 2 else 4)
    return _over(ctx, names, moved, sum([size // 2 for size in sizes]))


def _ppermute(ctx, x, *, axis_name, perm, **params) -> RooflineResult:
    """The bytes of the link that most go over, each by the shorter way round a ring."""
    names = _names(axis_name)
    count = math.prod(_sizes(ctx, names))
    loads, steps = [0] * count, 0
    for source, target in perm:
        ahead = (target - source) % count
        back = ahead > count - ahead
        hops = min(ahead, count - ahead)
        start = target if back else source
        for hop in range(hops):
            loads[(start + hop) % count] += 1
        steps = max(steps, hops)
    if count == 2:
        loads = [sum(loads)]
    return _over(ctx, names, x.bytes * max(loads), steps)


costs.update(dict.fromkeys(_ELEMENTS, _elements))
costs.update({
    lax.all_gather_p: _all_gather, all_gather_invariant_p: _all_gather,
    lax.all_to_all_p: _all_to_all, lax.axis_index_p: unknown,
    lax.conv_general_dilated_p: _conv, lax.cumlogsumexp_p: _cumulative(2),
    lax.cummax_p: _cumulative(1), lax.cummin_p: _cumulative(1), lax.cumprod_p: _cumulative(1),
    lax.cumsum_p: _cumulative(1), lax.dot_general_p: _dot, lax.gather_p: _gather,
    io_callback_p: _callback, lax.pmax_p: _pmax, lax.pmin_p: _pmax, lax.ppermute_p: _ppermute,
    lax.psum_p: _psum, psum_invariant_p: _psum, pure_callback_p: _callback,
    reduce_scatter_p: _reduce_scatter, lax.reduce_sum_p: _reduce_sum,
    lax.scatter_p: _scatter(False), lax.scatter_add_p: _scatter(True),
    lax.scatter_max_p: _scatter(True), lax.scatter_min_p: _scatter(True),
    lax.scatter_mul_p: _scatter(True), lax.scatter_sub_p: _scatter(True),
    lax.select_n_p: _select, debug_callback_p: unknown, debug_print_p: unknown,
})  # fmt: skip
