"""`minijax.interpreters.batching`: batching rules, registered upstream's way.

A rule is `rule(args, dims, **params) -> out, out dim`; `not_mapped` is the dim of what has no batch
axis. The rules of `fancy_primitive_batchers` are told the axis first; those of
`axis_primitive_batchers` its size and its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.deprecated import moved
from minijax.features.vmappable import register_vmappable, unregister_vmappable
from minijax.interpreters.tables import RuleTable
from minijax.lax import broadcast_in_dim, reduce_sum, reshape
from minijax.namespace import shown
from minijax.transforms.batching import AxisData, all_to_front, mapped_size, to_front
from minijax.transforms.primitives import moveaxis

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer",
    "defvectorized", "fancy_primitive_batchers", "primitive_batchers", "register_vmappable",
    "unregister_vmappable",
]  # fmt: skip

not_mapped = None
primitive_batchers = RuleTable("rule_batch", "rule_batch_axis")
fancy_primitive_batchers = RuleTable("rule_batch_axis")


class _AxisTable(RuleTable):
    """Rules `rule(size, name, None, args, dims, **params)`; None was once the class of a trace."""

    def __setitem__(self, primitive: Primitive, rule: Callable) -> None:
        @functools.wraps(rule)
        def told(axis, args, dims, **params):
            return rule(axis.size, axis.name, None, args, dims, **params)

        super().__setitem__(primitive, told)


axis_primitive_batchers = _AxisTable("rule_batch_axis")


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis of this size."""
    shape = (*x.shape[:axis], sz, *x.shape[axis:])
    kept = tuple(d for d in range(len(shape)) if d != axis)
    return broadcast_in_dim(x, shape, kept)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its batch axis in front; repeated along a new one if it has none."""
    return to_front(x, bdim, size)


def matchaxis(axis_data: AxisData, src: Any, dst: Any, x: Any, sum_match: bool = False) -> Any:
    """`x` with its batch axis, `src`, at `dst`; summed over, if that is None and `sum_match`.

    ValueError if it has a batch axis, is to have none, and is not to be summed.
    """
    if src == dst:
        return x
    if dst is None:
        if sum_match:
            return reduce_sum(x, (src,))
        raise ValueError(
            f"vmap has mapped output (axis_name={axis_data.name}) but out_axes is None: the output "
            f"varies over the axis, at {src}. Give the axis where it is to be."
        )
    return broadcast(x, axis_data.size, dst) if src is None else moveaxis(x, src, dst)


def _with_dims(prim: Primitive, out: Any, dim: Any) -> tuple[Any, Any]:
    return (out, [dim] * len(out)) if prim.multiple_results else (out, dim)


def vectorized_batcher(
    prim: Primitive, axis_data: AxisData, batched_args: Any, batch_dims: Any, **params: Any
) -> tuple[Any, Any]:
    """The rule that `defvectorized` gives."""
    return _with_dims(prim, prim.bind(*batched_args, **params), batch_dims[0])


def broadcast_batcher(
    prim: Primitive, axis_data: AxisData, args: Any, dims: Any, **params: Any
) -> tuple[Any, Any]:
    """The rule that `defbroadcasting` gives."""
    size = mapped_size(args, dims)
    rank = max(len(x.shape) - (d is not None) for x, d in zip(args, dims, strict=True))
    full = []
    for x, dim in zip(args, dims, strict=True):
        if dim is None:
            full.append(broadcast(x, size, 0) if len(x.shape) == rank else x)
        else:
            x = moveaxis(x, dim, 0)
            missing = rank + 1 - len(x.shape)
            full.append(reshape(x, (size, *(1,) * missing, *x.shape[1:])) if missing else x)
    return _with_dims(prim, prim.bind(*full, **params), 0)


def expand_dims_batcher(prim: Primitive, args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    """The rule of a primitive that takes a leading batch axis of all of its operands."""
    return _with_dims(prim, prim.bind(*all_to_front(args, dims), **params), 0)


def reducer_batcher(
    prim: Primitive, axis_data: AxisData, batched_args: Any, batch_dims: Any, axes: Any,
    **params: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The rule that `defreducer` gives."""
    ((x,), (dim,)) = batched_args, batch_dims
    moved = tuple(axis + (axis >= dim) for axis in axes)
    return prim.bind(x, axes=moved, **params), dim - sum(axis < dim for axis in moved)


def defvectorized(prim: Primitive) -> None:
    """The batching rule of a primitive that works element by element on one operand."""
    fancy_primitive_batchers[prim] = functools.partial(vectorized_batcher, prim)


def defbroadcasting(prim: Primitive) -> None:
    """The batching rule of a primitive that works element by element on operands of one shape."""
    fancy_primitive_batchers[prim] = functools.partial(broadcast_batcher, prim)


def defreducer(prim: Primitive) -> None:
    """The batching rule of a primitive that reduces over the axes of its param `axes`."""
    fancy_primitive_batchers[prim] = functools.partial(reducer_batcher, prim)


def __getattr__(name: str) -> Any:
    return moved(__name__, name)


__dir__ = shown(__name__)
