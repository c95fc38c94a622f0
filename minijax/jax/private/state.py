"""Counterparts of upstream's private functions on references; `names` says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.features.references.cells import AbstractRef, discharge
from minijax.features.references.discharge import on_values
from minijax.features.references.effects import RefEffect
from minijax.lax import broadcast_shapes
from minijax.lax.dynamic_slices import Slice
from minijax.lax.ref_views import recast

StateEffect = RefEffect

# -- programs without references -------------------------------------------------------------------


def discharge_state(
    closed_jaxpr: ClosedJaxpr, *, should_discharge: bool | Sequence[bool] = True, lower: bool = True
) -> ClosedJaxpr:
    """The program on values in the places of references, whose last values follow its results.

    `should_discharge` says for each input, or for all, whether it is to be a value.
    """
    inputs = len(closed_jaxpr.in_avals)
    if isinstance(should_discharge, bool):
        should_discharge = [should_discharge] * inputs
    if len(should_discharge) != inputs:
        raise ValueError(
            f"should_discharge has {len(should_discharge)} entries for {inputs} inputs: give one for "
            "each, or one bool for all."
        )
    return on_values(closed_jaxpr, should_discharge)


def register_discharge_rule(prim: Primitive) -> Callable[[Callable], Callable]:
    """Decorator: how a primitive that takes references is applied to their values.

    `rule(in_avals, out_avals, *values, **params)` gives for each operand its new value, None where it
    stays, and the results.
    """

    def register(rule: Callable) -> Callable:
        @discharge(prim)
        def _(args: Sequence[Any], params: dict) -> Any:
            in_avals = [get_aval(x) for x in args]
            refs = [isinstance(aval, AbstractRef) for aval in in_avals]
            out_avals = prim.out_avals(tuple(in_avals), params)
            given = [x._value if ref else x for x, ref in zip(args, refs, strict=True)]
            last, out = rule(
                in_avals, out_avals if prim.multiple_results else [out_avals], *given, **params
            )
            for x, ref, value in zip(args, refs, last, strict=True):
                if ref and value is not None:
                    x.replace(value)
            return out

        return rule

    return register


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """The function of arrays that gives what `f`, which is given references to them, leaves there."""

    def run(args: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        avals = [AbstractRef(get_aval(x)) for x in leaves]
        closed = trace_to_jaxpr(lambda *refs: _nothing(f(tree.unflatten(refs))), avals)
        pure = on_values(closed)
        return tree.unflatten(eval_jaxpr(pure.jaxpr, pure.consts, *leaves))

    return run


def _nothing(out: Any) -> list[Any]:
    if tree_util.tree_leaves(out):
        raise ValueError(
            f"a function of state gives nothing, but leaves it in references: {out!r}."
        )
    return []


run_state_reference = run_state


def get_ref_aval_from_value(x: Any) -> tuple[AbstractRef, Any]:
    """The type of a reference that holds a value, and the value."""
    return AbstractRef(get_aval(x)), x


def hoist_consts_to_refs(
    jaxpr: Jaxpr, *, index: int = 0, make_abstract_ref: Callable[[Any], AbstractRef] = AbstractRef
) -> Jaxpr:
    """The program with references to its constants among its inputs, from `index` on."""
    count = len(jaxpr.constvars)
    refs = [make_abstract_ref(v.aval) for v in jaxpr.constvars]

    def run(*args: Any) -> list[Any]:
        consts = [ref[...] for ref in args[index : index + count]]
        return eval_jaxpr(jaxpr, consts, *args[:index], *args[index + count :])

    avals = jaxpr.in_avals
    return trace_to_jaxpr(run, [*avals[:index], *refs, *avals[index:]], jaxpr.debug_info).jaxpr


def bitcast(x: Any, dtype: Any) -> Any:
    """The bits of an array in another dtype, whose width changes the axis before the last."""
    return recast(x, dtypes.canonicalize_dtype(dtype))


def eval_bitcast_shape(x: Any, dtype: Any) -> tuple[int, ...]:
    """The shape that `bitcast` gives."""
    return trace_to_jaxpr(lambda x: [bitcast(x, dtype)], [get_aval(x)]).out_avals[0].shape


# -- indices ---------------------------------------------------------------------------------------


@dataclass
class NDIndexer:
    """An index of an array: a `Slice`, an integer or an array of integers for each axis.

    Integers that are arrays broadcast to `int_indexer_shape`.
    """

    indices: tuple[Any, ...]
    shape: tuple[int, ...]
    int_indexer_shape: tuple[int, ...]
    validate: bool = False

    @classmethod
    def from_indices_shape(cls, indices: Any, shape: tuple[int, ...]) -> NDIndexer:
        """The index that entries name: `...` and missing ones are whole axes.

        ValueError for more entries than axes, and for integers that are out of bounds.
        """
        entries = list(indices) if isinstance(indices, tuple) else [indices]
        at = next((n for n, e in enumerate(entries) if e is Ellipsis), None)
        if at is not None:
            entries[at : at + 1] = [slice(None)] * (len(shape) - len(entries) + 1)
        if len(entries) > len(shape):
            raise ValueError(
                f"`indices` must not be longer than `shape`: indices={indices}, shape={shape}."
            )
        entries += [slice(None)] * (len(shape) - len(entries))
        found = tuple(_entry(e, size) for e, size in zip(entries, shape, strict=True))
        arrays = [getattr(e, "shape", ()) for e in found if not isinstance(e, Slice)]
        return cls(found, tuple(shape), broadcast_shapes(*arrays) if arrays else (), True)

    @classmethod
    def make_trivial_indexer(cls, shape: tuple[int, ...]) -> NDIndexer:
        """The index of everything."""
        return cls.from_indices_shape(..., shape)

    @property
    def is_dynamic_size(self) -> bool:
        return any(isinstance(e, Slice) and e.is_dynamic_size for e in self.indices)

    def get_indexer_shape(self) -> tuple[int, ...]:
        """The shape of what it names."""
        return (*self.int_indexer_shape, *[e.size for e in self.indices if isinstance(e, Slice)])

    def tree_flatten(self) -> tuple[tuple, tuple]:
        leaves, tree = tree_util.tree_flatten(self.indices)
        return tuple(leaves), (tree, self.shape, self.int_indexer_shape)

    @classmethod
    def tree_unflatten(cls, static: tuple, leaves: Any) -> NDIndexer:
        tree, shape, whole = static
        return cls(tree.unflatten(leaves), shape, whole)


tree_util.register_pytree_node(NDIndexer, NDIndexer.tree_flatten, NDIndexer.tree_unflatten)


def _entry(entry: Any, size: int) -> Any:
    if isinstance(entry, slice):
        return Slice.from_slice(entry, size)
    if isinstance(entry, (int, np.integer)) and not -size <= entry < size:
        raise ValueError(f"Out of bound indexer: idx={entry}, dim={size}.")
    if not isinstance(entry, Slice):
        get_aval(entry)  # an error for what is no number or array
    elif isinstance(entry.start, int) and isinstance(entry.size, int):
        if entry.start + entry.size > size:
            raise ValueError(f"Out of bound slice: {entry}, dim={size}.")
    return entry


def shapeof(x: Any) -> tuple[int, ...]:
    """The shape of an array-like."""
    return get_aval(x).shape
