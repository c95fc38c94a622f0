"""`minijax.extend.core`: programs, primitives and traces, for libraries that extend the system.

Most of it is `minijax.core`, named as upstream names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

import numpy as np

from minijax.config import local
from minijax.core.avals import AbstractToken, ShapedArray, aval_makers, get_aval
from minijax.core.effects import Effect
from minijax.core.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxpr_as_fun,
    jaxprs_in_params,
    subjaxprs,
)
from minijax.core.primitive import Primitive, no_effects
from minijax.core.staging import JaxprTrace
from minijax.core.trace import Trace, Tracer, current, eval_trace
from minijax.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    JaxprTypeError,
)
from minijax.extend.core import primitives
from minijax.features.program_check import check_jaxpr
from minijax.lax.ordering import Token
from minijax.namespace import shown
from minijax.transforms.batching import BatchTrace

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive",
    "Token", "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr", "concrete_or_error",
    "find_top_trace", "gensym", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params",
    "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs",
    "take_current_trace", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

Effects = Set[Effect]

# The types of values that primitives take.
array_types = {kind for kind in aval_makers if kind not in (bool, int, float, complex)}


class CallPrimitive(Primitive):
    """A primitive that calls a function: it has any number of results."""

    def __init__(self, name: str):
        super().__init__(name, multiple_results=True, holds_programs=True)


class TraceTag:
    """Tells the traces of one transformation from those of another; compares by identity."""

    __slots__ = ("__weakref__",)


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a wrapped function at once."""
    return f.call_wrapped(*args)


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or `val` itself if `force` is None; ConcretizationTypeError if it is traced."""
    if isinstance(val, Tracer):
        known = val.concrete()
        if known is None:
            raise ConcretizationTypeError(val, context)
        val = known
    return val if force is None else force(val)


def gensym() -> Callable[[Any], Var]:
    """A function that makes new variables of given types."""
    return Var


def new_jaxpr_eqn(
    invars: Any, outvars: Any, primitive: Primitive, params: dict, effects: frozenset,
    source_info: Any = None, ctx: Any = None,
) -> JaxprEqn:  # fmt: skip
    """One equation."""
    effects = frozenset(effects)
    return JaxprEqn(list(invars), list(outvars), primitive, params, effects, source_info, ctx)


def mapped_aval(size: int, axis: int | None, aval: Any) -> Any:
    """The type of one element along an axis of this size; the same type if the axis is None."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise AssertionError(f"axis {axis} of {aval.str_short()} does not have size {size}")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of values stacked along a new axis; the same type if the axis is None."""
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> np.dtype:
    """The dtype of tangents to values of this one: float0 where it has none."""
    return ShapedArray((), primal_dtype).to_tangent_aval().dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether a primitive takes this value."""
    try:
        get_aval(x)
    except TypeError:
        return False
    return True


# -- Traces ----------------------------------------------------------------------------------


class OpaqueTraceState:
    """The transformation that is at work; equal exactly while it is the same."""

    __slots__ = ("_key",)

    def __init__(self, key: tuple):
        self._key = key

    def __eq__(self, other):
        if not isinstance(other, OpaqueTraceState):
            return False
        (trace, axes), (other_trace, other_axes) = self._key, other._key
        return trace is other_trace and axes == other_axes

    def __hash__(self):
        trace, axes = self._key
        return hash((id(trace), axes))


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """A mark of the current transformation, to compare with one taken later."""
    return OpaqueTraceState((current(), local.context.axes))


def find_top_trace(_: Any) -> Trace:
    """The current trace: the innermost one, whatever the values are."""
    return current()


class set_current_trace:
    """Context manager: `trace` is current.

    Only leaving the context restores the trace before it: libraries drop contexts that are held
    across a `yield` when the function around it fails, and the trace at that time is another's.
    """

    def __init__(self, trace: Trace, check_leaks: bool = False):
        self._trace = trace

    def __enter__(self) -> None:
        self._context = local.context
        self._saved, self._context.trace = self._context.trace, self._trace

    def __exit__(self, *exc: Any) -> None:
        self._context.trace = self._saved


class take_current_trace(set_current_trace):
    """Context manager: gives the current trace, and none is current within but the outermost."""

    def __init__(self):
        super().__init__(eval_trace)

    def __enter__(self) -> Trace:
        super().__enter__()
        return self._saved


def _traces() -> Iterator[Trace]:
    trace: Trace | None = current()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    return any(isinstance(trace, JaxprTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    return [name for name, _ in local.context.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    return bool(local.context.axes)


__dir__ = shown(__name__)
