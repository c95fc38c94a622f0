"""Vectorizing: the interpreter behind vmap. A `BatchTracer` holds a value with one axis more than
it shows, and says which. `BatchTrace` applies the batching rule of each primitive, with its
parent as the current trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from minijax.arguments.axes import is_axis
from minijax.arrays.array import as_array
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, get_aval, opaque_types
from minijax.core.effects import NamedAxisEffect
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import NoRule, checked_pair, wrong_result
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import Trace, Tracer, check_alive
from minijax.transforms.primitives import broadcast_batch, moveaxis

__all__ = [
    "AxisData", "BatchTrace", "BatchTracer", "all_to_front", "batch_flat", "batch_jaxpr", "bind_axis",
    "mapped_size", "to_axis", "to_front",
]  # fmt: skip


class AxisData:
    """The axis that is mapped: its name (or None), its size, and the mesh axes it is sharded over,
    as XLA is told (`spmd_name`) or as the types of the arguments say (`split`).
    """

    __slots__ = ("name", "size", "split", "spmd_name")

    def __init__(self, name: Hashable, size: int, spmd_name: Any = None, split: Any = None):
        self.name = name
        self.size = size
        self.spmd_name = spmd_name
        self.split = split

    def __eq__(self, other):
        return isinstance(other, AxisData) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self.name, self.size, self.spmd_name, self.split


class BatchTracer(Tracer):
    """A value with a batch axis at `dim`."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: BatchTrace, aval: AbstractValue, value: Any, dim: int):
        self._trace = trace
        self.aval = aval.without_axis(dim)
        self.value = value
        self.dim = dim

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={get_aval(self.value)})"


hooks.fill(batch_tracer=BatchTracer)


class BatchTrace(Trace):
    """Maps every operation over one axis."""

    __slots__ = ("axis", "effect")
    maps = True
    adjective, other = "vmapped", "an unbatched"

    def __init__(self, parent: Trace, axis: AxisData):
        super().__init__(parent)
        self.axis = axis
        self.effect = None if axis.name is None else NamedAxisEffect(axis.name)

    def process(self, primitive, args, params):
        values, dims, active = [], [], False
        for a in args:
            if isinstance(a, BatchTracer):
                if a._trace is self:
                    values.append(a.value)
                    dims.append(a.dim)
                    active = True
                    continue
                check_alive(a)
            values.append(a)
            dims.append(None)
        context = local.context
        context.trace = self.parent
        try:
            if not active and not self._named_by(primitive, args, params):
                return self.parent.process(primitive, args, params)
            return self.apply(primitive, values, dims, params)
        finally:
            context.trace = self

    def _named_by(self, primitive, args, params) -> bool:
        if self.effect is None or primitive.rule_effects is None:
            return False
        return self.effect in primitive.effects_of(params, map(get_aval, args))

    def apply(self, primitive, values, dims, params):
        if primitive.user_rules:
            values, dims = tuple(values), tuple(dims)
        rule = primitive.rule_batch_axis
        if rule is not None:
            found = rule(self.axis, values, dims, **params)
        else:
            rule = primitive.rule_batch
            if rule is None:
                raise NotImplementedError(
                    f"Batching rule for {primitive.name!r} not implemented: give it one with "
                    f"@{primitive.name}_p.batch, or wrap the call in custom_vmap."
                )
            if type(rule) is NoRule:
                raise rule.error(rule.reason)
            found = rule(values, dims, **params)
        if type(found) is not tuple:
            found = checked_pair(primitive, "batch", "results and batch dimensions", found)
        out, out_dims = found
        if not primitive.multiple_results:
            try:
                return out if out_dims is None else self.tracer(out, out_dims)
            except TypeError as error:
                if isinstance(out_dims, (list, tuple)):  # of all operands, perhaps
                    wanted = "a result and its batch dimension"
                    raise wrong_result(primitive, "batch", wanted, found) from error
                raise
        if not isinstance(out_dims, (list, tuple)):
            out_dims = [out_dims] * len(out)
        return [
            x if dim is None else self.tracer(x, dim) for x, dim in zip(out, out_dims, strict=True)
        ]

    def tracer(self, x: Any, dim: Any) -> Any:
        """Return the tracer of a value with a batch axis, of the class that its type asks for."""
        if isinstance(x, Array):
            aval = x.aval
        else:
            # Of NumPy: from a library's implementation of its own primitive.
            x = x if type(x) in opaque_types else as_array(x)
            aval = get_aval(x)
        return aval.batch_tracer(self, aval, x, dim)


def unbatch(trace: BatchTrace, x: Any) -> tuple[Any, int | None]:
    """Return the value of a result, and its batch axis or None if it does not depend on that."""
    if isinstance(x, BatchTracer) and x._trace is trace:
        return x.value, x.dim
    return x, None


class bind_axis:
    """Context manager: a named axis of this size is in scope."""

    __slots__ = ("axis", "saved")

    def __init__(self, axis: AxisData):
        self.axis = axis

    def __enter__(self):
        context = local.context
        self.saved = context.axes
        if self.axis.name is not None:
            context.axes = (*self.saved, (self.axis.name, self.axis.size))
            try:
                context.refresh_key()
            except TypeError:  # a name that cannot be hashed
                context.axes = self.saved
                raise

    def __exit__(self, *exc):
        if self.axis.name is not None:
            context = local.context
            context.axes = self.saved
            context.refresh_key()


def batch_flat(
    fun: Callable[..., Sequence[Any]],
    axis: AxisData,
    args: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """Return the results of a function on flat values, mapped over `dims`, and their batch axes."""
    context = local.context
    parent = context.trace
    trace = BatchTrace(parent, axis)
    context.trace = trace
    try:
        with bind_axis(axis):
            tracers = [
                x if dim is None else trace.tracer(x, dim)
                for x, dim in zip(args, dims, strict=True)
            ]
            outs = fun(*tracers)
        pairs = [unbatch(trace, out) for out in outs]
    finally:
        trace.end()
        context.trace = parent
    check = hooks.watch_leaks(trace)
    del trace, tracers, outs
    check()
    return [value for value, _ in pairs], [dim for _, dim in pairs]


def to_front(x: Any, dim: int | None, size: int) -> Any:
    """Return `x` with its batch axis in front, repeated along a new one if it has none.

    A value of a type that says itself how it is mapped, not by a number, stays as it is.
    """
    if dim is None:
        return broadcast_batch(x, size)
    return moveaxis(x, dim, 0) if is_axis(dim) else x


def to_axis(x: Any, dim: int | None, size: int, axis: int) -> Any:
    """`x` with its batch axis at `axis`; repeated along a new one if it has none."""
    return broadcast_batch(x, size, axis) if dim is None else moveaxis(x, dim, axis)


def mapped_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The size of the batch axis."""
    return next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)


def all_to_front(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Arguments of which each has its batch axis in front."""
    size = mapped_size(args, dims)
    return [to_front(x, d, size) for x, d in zip(args, dims, strict=True)]


def batch_jaxpr(
    closed: ClosedJaxpr,
    axis: AxisData,
    dims: Sequence[int | None],
    front: Sequence[bool] | bool = False,
) -> tuple[ClosedJaxpr, list[int | None]]:
    """Return the program mapped over one axis, and the batch axes of its results.

    Results that `front` marks have the axis in front, whether or not they depend on it.
    """
    dims = tuple(dims)
    if isinstance(front, bool):
        front = (front,) * len(closed.out_avals)
    key = ("batch", axis, dims, tuple(front))
    return closed.derive(key, lambda: _make_batched(closed, axis, dims, front))


def _make_batched(closed, axis, dims, front):
    out_dims: list[int | None] = []

    def fun(*args):
        outs, found = batch_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), axis, args, dims
        )
        outs = [
            to_front(x, dim, axis.size) if want else x
            for x, dim, want in zip(outs, found, front, strict=True)
        ]
        out_dims.extend(0 if want else dim for dim, want in zip(found, front, strict=True))
        return outs

    avals = [
        aval if dim is None else aval.with_axis(dim, axis.size, axis.split)
        for aval, dim in zip(closed.in_avals, dims, strict=True)
    ]
    return trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info), out_dims
