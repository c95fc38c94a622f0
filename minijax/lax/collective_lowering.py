"""How collectives over the axes of a mesh are written in StableHLO, within `shard_map`.

A group is the partitions that differ only in the axes named; each partition has its place in the
mesh in force (`module.manual`), row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.features.sharding.shardy import axis_list, sdy_sharding
from minijax.lowering.module import Value
from minijax.lowering.types import physical

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "axis_index", "collective_broadcast",
    "collective_permute", "computation", "exchanged", "gathered", "groups_of", "once", "pairs",
    "partitions", "ragged_all_to_all", "reduce_scatter",
]  # fmt: skip

_INT32 = np.dtype(np.int32)


def _mesh(b: Any, names: Sequence[Any]) -> Any:
    mesh = b.module.manual
    missing = [name for name in names if mesh is None or name not in mesh.axis_names]
    if missing:
        raise NameError(
            f"Found an unbound axis name: {missing[0]}. A collective runs within the axis that it "
            "names: bind it by vmap(..., axis_name=...), pmap or shard_map."
        )
    if mesh is None:
        raise NotImplementedError(
            "A collective over no axes must be used within a mapped context like vmap or shard_map: "
            "it has no devices that it could run on."
        )
    return mesh


def groups_of(mesh: Any, names: Sequence[Any], index_groups: Any = None) -> np.ndarray:
    """The partitions of each group, in the order of the named axes; one row a group.

    `index_groups` cuts the named axes further: lists of positions along them.
    """
    places = np.arange(int(np.prod(mesh.axis_sizes))).reshape(mesh.axis_sizes)
    axes = [mesh.axis_names.index(name) for name in names]
    rest = [axis for axis in range(places.ndim) if axis not in axes]
    size = int(np.prod([mesh.axis_sizes[axis] for axis in axes]))
    rows = places.transpose(*rest, *axes).reshape(-1, size)
    if index_groups is None:
        return rows
    longest = max(map(len, index_groups))
    filled = [[*group, *[size] * (longest - len(group))] for group in index_groups]
    rows = np.concatenate([rows, np.full((len(rows), 1), -1)], axis=1)  # -1 fills a shorter group
    return np.concatenate([rows[:, group] for group in filled])


def _dense(rows: np.ndarray) -> str:
    shown = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in rows.tolist())
    shown = f"[{shown}]" if shown else ""
    return f"dense<{shown}> : tensor<{rows.shape[0]}x{rows.shape[1]}xi64>"


def _channel(b: Any) -> str:
    return f"channel_handle = #stablehlo.channel_handle<handle = {b.module.channel()}, type = 1>"


def _grouped(b: Any, names: Sequence[Any], index_groups: Any) -> str:
    rows = groups_of(_mesh(b, names), names, index_groups)
    return f"{_channel(b)}, replica_groups = {_dense(rows)}, use_global_device_ids"


def _reducer(b: Any, op: str, aval: ShapedArray) -> str:
    scalar = aval.update(shape=())
    return b.region((scalar, scalar), lambda r, x, y: [r.op(op, (x, y), scalar)])


def _unfolded(b: Any, x: Value) -> Value:
    """An operand that XLA does not fold: it ends the process at sums of complex constants."""
    if x.aval.dtype.kind != "c":
        return x
    return b.op("stablehlo.optimization_barrier", (x,), x.aval)


def all_reduce(op: str) -> Callable:
    """The lowering rule of a collective that reduces by a StableHLO operation."""

    def rule(b, x, *, axes, axis_index_groups):
        if not axes:
            return x
        x = _unfolded(b, x)
        attributes = _grouped(b, axes, axis_index_groups)
        region = _reducer(b, op, x.aval)
        return b.op_n("stablehlo.all_reduce", (x,), [b.out], attributes, [region])

    return rule


def all_gather(
    b, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled
):  # fmt: skip
    where, out = all_gather_dimension, b.out
    if not tiled:
        x = b.reshape(x, (*x.shape[:where], 1, *x.shape[where:]))
    if x.shape[where] == 0:  # StableHLO gathers no parts without elements
        return b.reshape(x, out.shape)
    attributes = f"all_gather_dim = {where} : i64, {_grouped(b, axis_name, axis_index_groups)}"
    return b.op("stablehlo.all_gather", (x,), out, attributes)


def reduce_scatter(
    b, x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled
):  # fmt: skip
    if x.aval.dtype == np.bool_:
        raise TypeError(
            "add does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of "
            "integer, floating, complexfloating. psum_scatter adds: convert its operand to integers."
        )
    where, out = scatter_dimension, b.out
    if x.shape[where] == 0:  # nor does it scatter them
        return b.reshape(x, out.shape)
    shape = list(x.shape)
    shape[where] //= axis_size
    attributes = f"scatter_dimension = {where} : i64, {_grouped(b, axis_name, axis_index_groups)}"
    region = _reducer(b, "stablehlo.add", x.aval)
    part = x.aval.update(shape=tuple(shape))
    (x,) = b.op_n("stablehlo.reduce_scatter", (_unfolded(b, x),), [part], attributes, [region])
    return b.reshape(x, out.shape)


def pairs(b: Any, axis_name: Sequence[Any], perm: Sequence[tuple[int, int]]) -> str:
    """The attributes that say which partition sends to which."""
    rows = groups_of(_mesh(b, axis_name), axis_name)
    found = np.array([[row[src], row[dst]] for row in rows for src, dst in perm], int)
    return f"{_channel(b)}, source_target_pairs = {_dense(found.reshape(-1, 2))}"


def collective_permute(b, x, *, axis_name, perm):
    attributes = pairs(b, axis_name, perm)
    return b.op("stablehlo.collective_permute", (x,), b.out, attributes)


def collective_broadcast(b, x, *, axis_name, axis_size, source):
    rows = groups_of(_mesh(b, axis_name), axis_name)
    rows = np.concatenate([rows[:, [source]], np.delete(rows, source, axis=1)], axis=1)
    attributes = f"{_channel(b)}, replica_groups = {_dense(rows)}"  # the first of each group sends
    return b.op("stablehlo.collective_broadcast", (x,), b.out, attributes)


def all_to_all(b, x, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    rows = groups_of(_mesh(b, names), names, axis_index_groups)
    count, out = rows.shape[1], b.out
    if not tiled:  # the parts go along a new dimension, where they arrive
        shape = [size for axis, size in enumerate(x.shape) if axis != split_axis]
        order = [split_axis, *[axis for axis in range(len(x.shape)) if axis != split_axis]]
        x = b.transpose(x, order)
        x = b.op(
            "stablehlo.all_to_all", (x,), x.aval, _exchange(b, 0, 0, count, rows)
        )  # fmt: skip
        back = list(range(1, len(shape) + 1))
        back.insert(concat_axis, 0)
        return b.transpose(x, back)
    return b.op(
        "stablehlo.all_to_all", (x,), out, _exchange(b, split_axis, concat_axis, count, rows)
    )


def _exchange(b: Any, split: int, concat: int, count: int, rows: np.ndarray) -> str:
    return (
        f"split_dimension = {split} : i64, concat_dimension = {concat} : i64, "
        f"split_count = {count} : i64, {_channel(b)}, replica_groups = {_dense(rows)}"
    )


def axis_index(b, *, axis_name):
    mesh = _mesh(b, (axis_name,))
    index = _all_manual(b, (), [b.out], lambda inner: [_axis_index(inner, mesh, axis_name)])
    return index[0]


def _axis_index(b: Any, mesh: Any, axis_name: Any) -> Any:
    place = mesh.axis_names.index(axis_name)
    unsigned = ShapedArray((), np.dtype(np.uint32))
    index = b.op("stablehlo.partition_id", (), unsigned)
    stride = int(np.prod(mesh.axis_sizes[place + 1 :]))
    if stride > 1:
        index = b.op("stablehlo.divide", (index, b.constant(np.uint32(stride))), unsigned)
    if place:
        size = b.constant(np.uint32(mesh.axis_sizes[place]))
        index = b.op("stablehlo.remainder", (index, size), unsigned)
    return b.convert(index, _INT32)


def computation(
    b: Any, operands: Sequence[Any], part_avals: Sequence[Any], outs: Sequence[Any], body: Callable,
    *, axes: Sequence[Any], ins: str, whole: str,
) -> list[Any]:  # fmt: skip
    """`body(builder, *parts)` as a manual computation over `axes` of a mesh.

    `ins` and `whole` say how operands and results are split into parts.
    """
    inner = type(b)(b.module, b, isolated=True)
    parts = [Value(f"%r{inner._name()[1:]}", aval) for aval in part_avals]
    results = body(inner, *parts)
    header = ", ".join(f"{x.name}: {x.type}" for x in parts)
    end = "sdy.return" + (
        f" {', '.join(r.name for r in results)} : {', '.join(r.type for r in results)}"
        if results
        else ""
    )
    lines = "\n".join([*inner.prologue, *inner.lines, end])
    types = ", ".join(x.type for x in operands)
    return b.statements(
        f"sdy.manual_computation({', '.join(x.name for x in operands)}) in_shardings=[{ins}] "
        f"out_shardings=[{whole}] manual_axes={axis_list(axes)} ({header}) {{\n{lines}\n}} : "
        f"({types}) -> ({', '.join(Value('', aval).type for aval in outs)})",
        outs,
    )


def _free(b: Any) -> list[Any]:
    """The axes over which XLA still decides."""
    mesh = b.module.manual
    if mesh is None or len(b.module.devices) == 1:
        return []
    return [name for name in mesh.axis_names if name not in mesh.manual_axes]


def _all_manual(b: Any, operands: Sequence[Any], outs: Sequence[Any], body: Callable) -> list[Any]:
    """`body(builder, *operands)` where all axes are manual: over those that are free, of wholes."""
    free = _free(b)
    if not free:
        return body(b, *operands)
    name, avals = b.module.mesh_name(b.module.manual), [x.aval for x in operands]
    ins, whole = (
        ", ".join([sdy_sharding(name, [None] * physical(aval).ndim) for aval in each])
        for each in (avals, outs)
    )
    return computation(b, operands, avals, outs, body, axes=free, ins=ins, whole=whole)


def once(b: Any, operands: Sequence[Any], body: Callable) -> None:
    """`body(builder, *operands)`, which has no results, at one place along the axes that are free."""
    free, mesh = _free(b), b.module.manual

    def guarded(inner, *xs):
        if not free:
            return body(inner, *xs)
        place = None
        for name in free:
            index = _axis_index(inner, mesh, name)
            place = (
                index if place is None else inner.op("stablehlo.add", (place, index), index.aval)
            )
        first = inner.compare(place, inner.constant(np.int32(0)), "EQ")
        regions = [
            inner.region((), lambda r, run=run: run(r, *xs), isolated=False)
            for run in (body, lambda r, *xs: [])
        ]
        return inner.op_n("stablehlo.if", (first,), (), "", regions)

    _all_manual(b, operands, (), guarded)


# -- for exchanges of ragged parts ---------------------------------------------------------------------


def partitions(b: Any, names: Sequence[Any], index_groups: Any) -> np.ndarray:
    """`groups_of` in the mesh in force; NameError if it has no such axes."""
    return groups_of(_mesh(b, names), names, index_groups)


def gathered(b: Any, rows: np.ndarray, x: Any) -> Any:
    """The rows of `x` of all partitions of a group, one after the other."""
    if x.shape[0] == 0:
        return x
    out = x.aval.update(shape=(x.shape[0] * rows.shape[1], *x.shape[1:]))
    attributes = (
        f"all_gather_dim = 0 : i64, {_channel(b)}, replica_groups = {_dense(rows)}, "
        "use_global_device_ids"
    )
    return b.op("stablehlo.all_gather", (x,), out, attributes)


def exchanged(b: Any, rows: np.ndarray, x: Any) -> Any:
    """The parts of `x` that all partitions of a group have for this one."""
    return b.op("stablehlo.all_to_all", (x,), x.aval, _exchange(b, 0, 0, rows.shape[1], rows))


def ragged_all_to_all(b: Any, rows: np.ndarray, operands: Sequence[Any]) -> Any:
    """XLA's own operation, on platforms that have it."""
    config = f"{{channel_id = {b.module.channel()} : i64, replica_groups = {_dense(rows)}}}"
    attributes = (
        f'api_version = 4 : i32, call_target_name = "ragged_all_to_all", backend_config = {config}'
    )
    return b.op("stablehlo.custom_call", operands, b.out, attributes)
