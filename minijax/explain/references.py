"""References in programs that are written as Python: `jax.new_ref`, reads and writes of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.jaxpr import DropVar
from minijax.core.primitive import Primitive
from minijax.explain.literals import dtype_text, literal
from minijax.lax import refs

__all__ = ["RULES"]


def _place(index: tuple, operands: Sequence[str]) -> str:
    """The text of an index within brackets; arrays among its entries are operands."""
    return ", ".join(map(_entry, refs.joined_index(index, operands))) or "..."


def _entry(entry: Any) -> str:
    if isinstance(entry, slice):
        start, stop, step = (
            "" if x is None else str(x) for x in (entry.start, entry.stop, entry.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if hasattr(entry, "stride"):
        return (
            f"pl.ds({entry.start}, {entry.size}" + f", {entry.stride}" * (entry.stride != 1) + ")"
        )
    return "..." if entry is Ellipsis else str(entry)


def _new(body, eqn, operands, *, kind, memory_space):
    return f"jax.new_ref({operands[0]}" + (f", kind={kind!r}" if kind else "") + ")"


def _empty(body, eqn, operands, *, ty, memory_space):
    return f"jax.ref.empty_ref(jax.ShapeDtypeStruct({literal(ty.shape)}, {dtype_text(ty.dtype)}))"


def _get(body, eqn, operands, *, index):
    return f"{operands[0]}[{_place(index, operands[1:])}]"


def _swap(body, eqn, operands, *, index):
    ref, value, *rest = operands
    function = "set" if type(eqn.outvars[0]) is DropVar else "swap"
    return f"jax.ref.{function}({ref}, np.s_[{_place(index, rest)}], {value})"


def _add(body, eqn, operands, *, index):
    ref, value, *rest = operands
    return f"jax.ref.addupdate({ref}, np.s_[{_place(index, rest)}], {value})"


RULES: dict[Primitive, Callable] = {
    refs.addupdate_p: _add,
    refs.empty_ref_p: _empty,
    refs.free_ref_p: lambda body, eqn, operands: f"jax.ref.free_ref({operands[0]})",
    refs.freeze_p: lambda body, eqn, operands: f"jax.ref.freeze({operands[0]})",
    refs.get_p: _get,
    refs.ref_p: _new,
    refs.swap_p: _swap,
}
