"""Slots of features, which `lax` and libraries fill: see `core.hooks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.hooks import Slots

__all__ = ["FeatureSlots", "slots"]


class FeatureSlots(Slots):
    """The slots that features call."""

    # -- references: lax.refs --------------------------------------------------------------------------

    def ref_get(self, ref: Any, index: Any) -> Any:
        """Return `ref[index]`."""
        raise NotImplementedError("Nothing reads references: import minijax.lax.refs.")

    def ref_set(self, ref: Any, index: Any, value: Any) -> None:
        """Write `ref[index] = value`."""
        raise NotImplementedError("Nothing writes references: import minijax.lax.refs.")

    def ref_add(self, ref: Any, value: Any, idx: Any = None) -> None:
        """Add to a part of what a reference holds."""
        raise NotImplementedError("Nothing writes references: import minijax.lax.refs.")

    def ref_member(self, ref: Any, name: str) -> Any:
        """Return a member of a tracer of a reference that arrays have as well, such as `at`."""
        raise NotImplementedError("Nothing views references: import minijax.lax.ref_views.")

    def bind_checkpointed(self, primitive: Any, /, *args: Any, **params: Any) -> Any:
        """Apply `checkpoint`'s primitive to operands that may be references; its method `bind`."""
        raise NotImplementedError  # until the slot is filled, the class has the method of calls

    def on_values(self, closed: Any) -> Any:
        """Return a program on values in the places of references, which gives their last values."""
        raise NotImplementedError(
            "Nothing replaces references: import minijax.features.references."
        )

    def keep_in_refs(self, args: Any, outs: Any, count: int) -> Any:
        """Give references among arguments the values behind `count` results; return the results."""
        raise NotImplementedError(
            "Nothing replaces references: import minijax.features.references."
        )

    def check_unmapped_operands(self, args: Any) -> None:
        """Refuse references that vmap maps as operands of a call with derivative rules."""

    def outside_refs(self, args: Any) -> tuple[Any, Any]:
        """Return operands with references that outlive the forward pass, and those they stand for."""
        return args, ()

    # -- operands without values: features.stages -------------------------------------------------------

    def without_unread(self, primitive: Any, args: Any, params: dict) -> tuple[Any, dict]:
        """Return the operands and params of a call, less the operands that it makes no use of."""
        return args, params

    # -- symbolic sizes: lax.dims, export.symbolic -------------------------------------------------------

    def extreme(self, name: str, x: Any, y: Any) -> Any:
        """Return the larger ("max") or smaller ("min") of two sizes, one of them an expression."""
        raise NotImplementedError("Nothing compares sizes: import minijax.features.symbolic.")

    def dim_as_array(self, dim: Any) -> Any:
        """Return a symbolic size as an array, while a program is traced."""
        raise NotImplementedError("Nothing computes symbolic sizes: import minijax.lax.dims.")

    def read_shape(self, text: str, scope: Any) -> tuple[Any, ...]:
        """Return the symbolic sizes that a text stands for."""
        raise NotImplementedError("Nothing reads symbolic sizes: import minijax.export.")

    # -- tools: explain.nans, explain.strictness ---------------------------------------------------------

    def tell_nan(self, closed: Any, args: Any) -> None:
        """Raise the error that says which operation of a program made the NaN of its results."""

    def call_library(self, fun: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a library function for the user, where calls are noted (`Context.in_library`)."""
        return fun(*args, **kwargs)

    def made_at(self, value: Any) -> Any:
        """Return the place in the user's program that made an array, where that is known."""
        return None

    # -- exported modules: features.export --------------------------------------------------------------

    def for_platforms(self, texts: Any, platforms: Any) -> str:
        """Return one module that chooses among those of several platforms when it runs."""
        raise NotImplementedError("Nothing joins modules: import minijax.features.export.")


slots = FeatureSlots()
