"""Exchanges of ragged parts over a named axis, and sending and receiving apart.

`ragged_all_to_all` is an operation of XLA's on GPU and TPU; on a CPU, where XLA has none, it is
written with an `all_gather` and a choice of rows. `psend` and `precv` are for GPU only, as
upstream's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.config import local
from minijax.core.avals import ShapedArray, abstract_token, get_aval
from minijax.core.effects import NamedAxisEffect
from minijax.core.primitive import no_rule, not_differentiable
from minijax.features.sharding.layouts import CollectivePrimitive, layout
from minijax.lax import collective_lowering
from minijax.lax.arithmetic import add, div, max, mul, sub
from minijax.lax.casts import as_names
from minijax.lax.collective_movement import all_to_all_p
from minijax.lax.compare import bitwise_and, ge, lt, select
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota, full, iota
from minijax.lax.cumulative import cumsum
from minijax.lax.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter_add,
)
from minijax.lax.named_axes import axis_size
from minijax.lax.reductions import reduce_max
from minijax.lax.rules import linear_together
from minijax.lax.shapes import broadcast_in_dim, reshape
from minijax.lax.slicing import slice_in_dim
from minijax.lowering.module import lower_by
from minijax.transforms.batching import to_front
from minijax.transforms.primitives import instantiate, moveaxis
from minijax.transforms.tangents import UndefinedPrimal, Zero

__all__ = [
    "precv", "precv_p", "psend", "psend_p", "ragged_all_to_all", "ragged_all_to_all_p",
]  # fmt: skip

_INT32 = np.dtype(np.int32)


def _effects(axis_name: tuple, **params: Any) -> frozenset:
    return frozenset(NamedAxisEffect(name) for name in axis_name if not isinstance(name, int))


# -- ragged_all_to_all ---------------------------------------------------------------------------------

ragged_all_to_all_p = CollectivePrimitive("ragged_all_to_all")
ragged_all_to_all_p.rule_effects = _effects
_INDICES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


@ragged_all_to_all_p.shape_rule
def _(operand, output, *indices, axis_name, axis_index_groups):
    for name, aval in zip(_INDICES, indices, strict=True):
        if not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(
                f"ragged_all_to_all {name} must be integer type, and its dtype is {aval.dtype}."
            )
    for name, aval in zip(_INDICES, indices, strict=True):
        if aval.ndim != 1 or not aval.shape[0]:
            raise ValueError(
                f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got "
                f"shape {aval.shape}"
            )
    return output.update(weak_type=False)


@layout(ragged_all_to_all_p, "varying")
def _(axes, *, axis_name, axis_index_groups):
    axes |= frozenset(axis_name)
    return axes, axes


linear_together(ragged_all_to_all_p, stop=2)


@ragged_all_to_all_p.transpose
def _(ct, operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, **params):
    found: list[Any] = [None] * 6
    if type(ct) is Zero:
        return [
            Zero(x.aval) if type(x) is UndefinedPrimal else None for x in (operand, output)
        ] + found[2:]  # fmt: skip

    def arrived(x):
        return all_to_all_p.bind(x, split_axis=0, concat_axis=0, tiled=True, **params)

    places = arrived(output_offsets)  # here, of what arrived here
    if type(operand) is UndefinedPrimal:
        found[0] = ragged_all_to_all_p.bind(
            ct, instantiate(Zero(operand.aval)), places, recv_sizes, arrived(input_offsets),
            send_sizes, **params,
        )  # fmt: skip
    if type(output) is UndefinedPrimal:
        written = _written(places, recv_sizes, ct.shape[0])
        mask = broadcast_in_dim(written, ct.shape, (0,))
        found[1] = select(mask, full(ct.shape, 0, ct.dtype), ct)
    return found


def _written(starts: Any, sizes: Any, length: int) -> Any:
    """Return which of `length` rows lie in one of the slices."""
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    starts, sizes = (convert_element_type(x, _INT32) for x in (starts, sizes))
    steps = full((length + 1,), 0, _INT32)
    for rows, step in ((starts, 1), (add(starts, sizes), -1)):
        steps = scatter_add(
            steps, reshape(rows, (*rows.shape, 1)), full(rows.shape, step, _INT32), numbers,
            mode="drop",
        )  # fmt: skip
    counts = cumsum(steps)
    return lt(full((length,), 0, _INT32), slice_in_dim(counts, 0, length))


def _rows(x: Any, rows: Any) -> Any:
    """The rows of these numbers, which are clipped to those there are."""
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    return gather(x, reshape(rows, (*rows.shape, 1)), numbers, (1, *x.shape[1:]), mode="clip")


@ragged_all_to_all_p.batch_axis
def _(axis, args, dims, *, axis_name, axis_index_groups):
    if axis.name in axis_name:
        raise NotImplementedError(
            f"ragged_all_to_all over the axis {axis.name!r} of a vmap is not implemented: use it "
            "within shard_map."
        )
    # The batch goes along the rows: each element's slices become slices of one longer array.
    operand, output = (to_front(x, d, axis.size) for x, d in zip(args[:2], dims[:2], strict=True))
    indices = [
        moveaxis(to_front(x, d, axis.size), 0, 1) for x, d in zip(args[2:], dims[2:], strict=True)
    ]
    for place, rows in ((0, operand.shape[1]), (2, output.shape[1])):
        x = indices[place]
        shift = mul(iota(x.dtype, axis.size), full((axis.size,), rows, x.dtype))
        indices[place] = add(x, broadcast_in_dim(shift, x.shape, (1,)))
    longer = [reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])) for x in (operand, output)]
    flat = [reshape(x, (x.shape[0] * x.shape[1],)) for x in indices]
    out = ragged_all_to_all_p.bind(
        *longer, *flat, axis_name=axis_name, axis_index_groups=axis_index_groups
    )
    return reshape(out, output.shape), 0


@ragged_all_to_all_p.lower
def _(b, operand, output, *indices, axis_name, axis_index_groups):
    rows = collective_lowering.partitions(b, axis_name, axis_index_groups)
    if b.platform != "cpu":
        return collective_lowering.ragged_all_to_all(b, rows, (operand, output, *indices))
    if 0 in operand.shape or 0 in output.shape:
        return output
    count = rows.shape[1]
    everything = collective_lowering.gathered(b, rows, operand)
    starts, sizes, places, _ = indices
    arrived = [collective_lowering.exchanged(b, rows, x) for x in (starts, sizes, places)]
    return lower_by(_place)(b, everything, output, *arrived, count=count)[0]


def _place(everything: Any, output: Any, starts: Any, sizes: Any, places: Any, *, count: int):
    """`output` with the rows that are sent here, out of those of all of `count` senders.

    Slice k comes from sender `k // (slices a sender)`: `sizes[k]` rows of its operand from
    `starts[k]` on, to `places[k]`. Of slices that overlap the last is kept.
    """
    length, slices = output.shape[0], starts.shape[0]
    kind = np.dtype(np.int64) if starts.dtype.itemsize == 8 else _INT32
    starts, sizes, places = (convert_element_type(x, kind) for x in (starts, sizes, places))
    rows = everything.shape[0] // count
    sender = div(iota(kind, slices), full((slices,), slices // count, kind))
    starts = add(starts, mul(sender, full((slices,), rows, kind)))
    grid = (length, slices)
    row = broadcasted_iota(kind, grid, 0)
    first, last = (broadcast_in_dim(x, grid, (1,)) for x in (places, add(places, sizes)))
    inside = bitwise_and(ge(row, first), lt(row, last))
    chosen = reduce_max(select(inside, broadcasted_iota(kind, grid, 1), full(grid, -1, kind)), (1,))
    shift = _rows(sub(starts, places), max(chosen, full((length,), 0, kind)))
    moved = _rows(everything, add(shift, iota(kind, length)))
    here = ge(chosen, full((length,), 0, kind))
    return select(broadcast_in_dim(here, output.shape, (0,)), moved, output)


def ragged_all_to_all(
    operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any,
    recv_sizes: Any, *, axis_name: Any, axis_index_groups: Any = None,
) -> Any:  # fmt: skip
    """Exchange slices of rows of different lengths over a named axis; return the new `output`.

    - `operand`, `output`: arrays of one dtype, of shapes (rows, ...) and (output rows, ...)
    - `input_offsets`, `send_sizes`, `output_offsets`: integer vectors of K entries: rows
      `operand[input_offsets[k]:][:send_sizes[k]]` go to the receiver's `output` from
      `output_offsets[k]` on; each position of the axis of size A is sent K / A slices in turn
    - `recv_sizes`: sizes of the slices that arrive

    ValueError for misfits; RuntimeError if the axis is unbound. Source: XLA's `ragged-all-to-all`.

    >>> f = lambda x, y, k: lax.ragged_all_to_all(x, y, k, k, k, k, axis_name="i")
    >>> k = np.array([0, 1])
    >>> jax.make_jaxpr(f, axis_env=[("i", 2)])(np.ones(4), np.ones(5), k).out_avals
    [ShapedArray(float32[5])]
    """
    names = as_names(axis_name)
    bound = dict(local.context.axes)
    if any(name not in bound for name in names):
        raise RuntimeError(
            "ragged_all_to_all must be used within a mapped context like vmap or shard_map: there "
            f"is no axis {axis_name!r}, only {sorted(map(str, bound))}."
        )
    groups = tuple(map(tuple, axis_index_groups)) if axis_index_groups is not None else None
    indices = (input_offsets, send_sizes, output_offsets, recv_sizes)
    out = ragged_all_to_all_p.bind(
        operand, output, *indices, axis_name=names, axis_index_groups=groups
    )
    size = axis_size(names) if groups is None else len(groups[0])
    _check_rows(get_aval(operand), get_aval(output), [get_aval(x) for x in indices], size)
    return out


def _check_rows(operand: ShapedArray, output: ShapedArray, indices: Sequence[Any], size: int):
    if (operand.dtype, operand.shape[1:]) != (output.dtype, output.shape[1:]):
        raise ValueError(
            "ragged_all_to_all moves rows of operand to output, which must be alike: they are "
            f"{operand.str_short()} and {output.str_short()}."
        )
    lengths = {aval.shape[0] for aval in indices}
    if len(lengths) > 1 or min(lengths) % size:
        given = ", ".join(f"{n} {a.shape}" for n, a in zip(_INDICES, indices, strict=True))
        raise ValueError(
            "ragged_all_to_all takes offsets and sizes of one length, which the size of the axis, "
            f"{size}, divides: they are {given}."
        )


# -- psend and precv -----------------------------------------------------------------------------------

psend_p = CollectivePrimitive("psend")
precv_p = CollectivePrimitive("precv")
for _p in (psend_p, precv_p):
    _p.rule_effects = _effects
    _p.rule_jvp = not_differentiable(f"Differentiation rule for {_p.name!r} not implemented")
    _p.rule_transpose = no_rule("it is not differentiated")
    _p.rule_batch = no_rule("a token has no axis: send and receive outside of vmap")


@psend_p.shape_rule
def _(x, *, axis_name, perm):
    return abstract_token


@layout(psend_p, "varying")
def _(axes, *, axis_name, perm):
    return axes | frozenset(axis_name), frozenset()


@precv_p.shape_rule
def _(token, *, out_shape, axis_name, perm):
    return out_shape


@layout(precv_p, "varying")
def _(axes, *, out_shape, axis_name, perm):
    return axes, frozenset()


def _on_gpu(b: Any, name: str) -> None:
    if b.platform not in ("gpu", "cuda", "rocm"):
        raise NotImplementedError(
            f"{name} is currently only implemented on GPU: use ppermute on {b.platform!r}."
        )


@psend_p.lower
def _(b, x, *, axis_name, perm):
    _on_gpu(b, "psend")
    token = b.op("stablehlo.create_token", (), abstract_token)
    return b.op(
        "stablehlo.send", (x, token), abstract_token, collective_lowering.pairs(b, axis_name, perm)
    )


@precv_p.lower
def _(b, token, *, out_shape, axis_name, perm):
    _on_gpu(b, "precv")
    attributes = collective_lowering.pairs(b, axis_name, perm)
    return b.op_n("stablehlo.recv", (token,), [b.out, abstract_token], attributes, ())[0]


def _pairs(function: str, axis_name: Any, perm: Sequence[tuple[int, int]]) -> tuple[tuple, tuple]:
    names = as_names(axis_name)
    bound = dict(local.context.axes)
    for name in names:
        if name not in bound:
            raise NameError(
                f"Found an unbound axis name: {name}. To fix this, please call {function} under "
                "`shard_map`."
            )
    return names, tuple((int(src), int(dst)) for src, dst in perm)


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along a named axis; `precv` receives them.

    - `x`: pytree of arrays of any shape and dtype
    - `axis_name`: name of a mesh axis; `perm`: pairs (source, destination)

    The result is a token for each array. NameError if the axis is unbound; NotImplementedError when
    lowered for another platform than GPU.
    Source: the StableHLO operation `stablehlo.send`.

    >>> send = lambda x: lax.psend(x, "i", [(0, 1)])
    >>> jax.make_jaxpr(send, axis_env=[("i", 2)])(1.0).eqns[0].primitive.name
    'psend'
    """
    names, perm = _pairs("psend", axis_name, perm)
    return tree_util.tree_map(lambda leaf: psend_p.bind(leaf, axis_name=names, perm=perm), x)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Receive an array along a named axis, after what a token stands for.

    - `token`: token; `out_shape`: array or `ShapeDtypeStruct` of the shape and dtype to receive
    - `axis_name`: name of a mesh axis; `perm`: the sender's pairs (source, destination)

    Positions that receive nothing get zeros. TypeError unless `token` is one; NotImplementedError
    when lowered for another platform than GPU.
    Source: the StableHLO operation `stablehlo.recv`.

    >>> receive = lambda x: lax.precv(lax.create_token(), x, "i", [(0, 1)])
    >>> jax.make_jaxpr(receive, axis_env=[("i", 2)])(1.0).out_avals
    [ShapedArray(float32[])]
    """
    aval = get_aval(token)
    if aval is not abstract_token:
        raise TypeError(
            "Error interpreting argument to precv as a token: it has the type "
            f"{aval.str_short()}. Pass what psend or create_token gives."
        )
    names, perm = _pairs("precv", axis_name, perm)
    result = ShapedArray(tuple(out_shape.shape), np.dtype(out_shape.dtype))
    return precv_p.bind(token, out_shape=result, axis_name=names, perm=perm)
