"""Donated arguments: which results take their memory over."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from minijax.arrays.dispatch import Lowered
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Jaxpr
from minijax.lowering.types import physical
from minijax.namespace import user_stacklevel
from minijax.runtime.layouts import Layout

__all__ = ["donations"]


def donations(lowered: Lowered, jaxpr: Jaxpr, args: Sequence[Any]) -> list[str]:
    """The attributes of the arguments: a donated one lends its memory to a result like it.

    A result is like it if it has the type, the memory kind and the shape of the parts. Where XLA is
    to choose how results lie, and where only the number of elements is equal, it finds the result. It
    is also what finds out whether there is one if it chooses how results are split.
    """
    attributes = [""] * len(jaxpr.invars)
    if not any(lowered.donated):
        return attributes
    where, hidden = lowered.place, len(lowered.hidden)
    kinds = where.memories([var.aval for var in jaxpr.outvars])
    layouts = where.layouts
    of_ins = layouts.ins if layouts else [None] * len(lowered.donated)
    of_outs = layouts.outs if layouts else [None] * len(kinds)
    outs = [
        _Buffer(aval, place, kind, layout, where.spmd and place is None)
        for aval, place, kind, layout in zip(
            lowered.out_avals, where.outs, kinds, of_outs, strict=True
        )
    ]
    free = dict(enumerate(outs))
    donors = {
        index: _Buffer(
            jaxpr.invars[index].aval, args[index], args[index].memory_kind, layout, False
        )
        for index, (donated, layout) in enumerate(zip(lowered.donated, of_ins, strict=True), hidden)
        if donated
    }
    for index, donor in list(donors.items()):
        found = next((number for number, out in free.items() if out.key == donor.key), None)
        if found is not None:
            donor.check_layout(free[found])
            rows = donor.layout is free[found].layout is None  # else XLA finds out
            attributes[index] = f" {{tf.aliasing_output = {found} : i32}}" if rows else _DONOR
            del free[found], donors[index]
    unsplit = any(out.key is None for out in outs)
    for index, donor in list(donors.items()):
        found = next((number for number, out in free.items() if donor.may_become(out)), None)
        if found is not None or (unsplit and all(out.kind == donor.kind for out in outs)):
            attributes[index] = _DONOR
            free.pop(found, None)
            del donors[index]
    lowered.lent = {
        index: physical(jaxpr.invars[index].aval) for index, text in enumerate(attributes) if text
    }
    if donors:
        shown = ", ".join(d.aval.update(shape=d.part).str_short() for d in donors.values())
        warnings.warn(
            f"Some donated buffers were not usable: {shown}. No result has the same shape, dtype, "
            "memory kind and sharding, so their memory cannot be used again; leave them out of "
            "donate_argnums.",
            stacklevel=user_stacklevel(),
        )
    return attributes


_DONOR = " {jax.buffer_donor = true}"


class _Buffer:
    """An argument or a result as donation sees it: `key` is None if XLA chooses how it is split."""

    __slots__ = ("aval", "key", "kind", "layout", "part", "size")

    def __init__(self, aval: Any, where: Any, kind: str, layout: Any, chosen: bool):
        shape = getattr(aval, "shape", ())
        part = shape if where is None else where.shard_shape(shape)
        self.aval, self.part, self.kind, self.layout = aval, part, kind, layout
        self.key = None if chosen else (part, aval.dtype, kind)
        self.size = kind, math.prod(shape)

    def check_layout(self, out: _Buffer) -> None:
        """ValueError if XLA is to choose the layout of the argument, or of the result, alone."""
        if (self.layout is Layout.AUTO) == (out.layout is Layout.AUTO):
            return
        this, other = ("output", "output") if self.layout is Layout.AUTO else ("input", "input")
        raise ValueError(
            f"Input layout being donated was {self.layout} while output layout was {out.layout}. Did "
            f"you mean to set the **{this} layout** to **Layout.AUTO**?\nThis will allow for the input "
            f"and output layout to be chosen by XLA and not the layout of the {other} which might not "
            "be optimal."
        )

    def may_become(self, out: _Buffer) -> bool:
        """Whether XLA might find that the memory serves for this result."""
        known = self.key is not None and out.key is not None
        parts = math.prod(self.key[0]) == math.prod(out.key[0]) if known else True
        return parts and self.size == out.size


hooks.fill(donations=donations)
