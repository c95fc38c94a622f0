"""Counterparts of upstream's private functions on traces, axes in scope, sizes and types."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax import errors
from minijax.config import local
from minijax.core.avals import AbstractToken, AbstractValue, ShapedArray, get_aval
from minijax.core.effects import EffectTypes, NamedAxisEffect
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.core.primitive import Primitive
from minijax.core.trace import Trace, Tracer, current, eval_trace
from minijax.dtypes import ExtendedDType
from minijax.extend import core as extended
from minijax.features import program_check as checking
from minijax.features.diagnostics.leaks import leaked
from minijax.features.effects.inputs import JaxprInputEffect
from minijax.features.effects.kinds import DebugEffect, OrderedDebugEffect
from minijax.features.queries import is_dim, is_negative, max_dim, min_dim
from minijax.features.references.effects import RefEffect
from minijax.features.sharding.memory import HOST_KIND, MemorySpace, space_of
from minijax.features.symbolic.dims import evaluate
from minijax.jax.private.programs import definitely_equal
from minijax.lax.shapes import canonical_shape
from minijax.lowering.types import physical
from minijax.sharding import AxisType, NamedSharding, PartitionSpec

InputType = OutputType = tuple[AbstractValue, ...]

# -- traces and axes in scope ----------------------------------------------------------------------


class AxisEnv:
    """The named axes in scope, with their sizes."""

    def __init__(self, axis_sizes: dict[Any, int] | None = None):
        self.axis_sizes = dict(axis_sizes or {})

    def axis_size(self, axis_name: Any) -> int:
        """The size of an axis, or of several; NameError for one that is not in scope."""
        if axis_name not in self.axis_sizes:
            raise NameError(f"unbound axis name: {axis_name}. In scope are {self.axis_names()}.")
        return self.axis_sizes[axis_name]

    def axis_exists(self, axis_name: Any) -> bool:
        return axis_name in self.axis_sizes

    def axis_names(self) -> tuple[Any, ...]:
        return tuple(self.axis_sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxisEnv) and self.axis_sizes == other.axis_sizes

    def __hash__(self) -> int:
        return hash(tuple(self.axis_sizes.items()))


top_axis_env = AxisEnv()


def get_axis_env() -> AxisEnv:
    """The named axes in scope."""
    return AxisEnv({name: size for name, size in local.context.axes if name is not None})


def axis_frame(axis_name: Any) -> int:
    """The size of an axis in scope."""
    return get_axis_env().axis_size(axis_name)


class _TracingContext:
    """The current trace and the axes in scope."""

    trace = property(lambda self: current())
    axis_env = property(lambda self: get_axis_env())

    def is_top_level(self) -> bool:
        return current() is eval_trace and not local.context.axes


trace_ctx = _TracingContext()
unsafe_am_i_under_a_jit = extended.unsafe_am_i_under_a_jit_DO_NOT_USE
unsafe_am_i_under_a_vmap = extended.unsafe_am_i_under_a_vmap_DO_NOT_USE
nonempty_axis_env = extended.nonempty_axis_env_DO_NOT_USE
unsafe_get_current_trace = current


def unsafe_get_axis_names() -> list[Any]:
    return list(get_axis_env().axis_names())


def unsafe_get_trace_stack(trace: Trace | None) -> list[Trace]:
    """The traces around this one, the outermost first."""
    found: list[Trace] = []
    while trace is not None:
        found.insert(0, trace)
        trace = trace.parent
    return found


def reset_trace_state() -> bool:
    """Leave all transformations, as after an error in one; whether there were none."""
    if trace_ctx.is_top_level():
        return True
    local.context.trace, local.context.axes = eval_trace, ()
    return False


@contextmanager
def ensure_no_leaks(trace: Trace):
    """Context: an Exception if tracers of the trace outlive it, where leaks are looked for."""
    check = hooks.watch_leaks(trace)
    yield
    del trace
    check()


maybe_find_leaked_tracers = leaked

# -- values ----------------------------------------------------------------------------------------


def identity(x: Any) -> Any:
    return x


def full_lower(val: Any) -> Any:
    """The simplest value that stands for the same."""
    return val.full_lower() if isinstance(val, Tracer) else val


def to_concrete_value(x: Any) -> Any:
    """The value of a tracer, None if it is not known; other values as they are."""
    return x.to_concrete_value() if isinstance(x, Tracer) else x


def get_referent(x: Any) -> Any:
    """Return the value that a tracer stands for beneath the transforms; any other value itself."""
    return x.get_referent() if isinstance(x, Tracer) else x


def same_referent(x: Any, y: Any) -> bool:
    return get_referent(x) is get_referent(y)


def dedup_referents(itr: Iterable[Any]) -> list[Any]:
    """The last of the values that stand for the same, in the order of the first."""
    return list({id(get_referent(x)): x for x in itr}.values())


def is_literalable(x: Any, for_ad: bool = False) -> bool:
    """Whether a value may stand in an equation: a number, or a NumPy array without dimensions."""
    if type(x) in (bool, int, float, complex) or isinstance(x, np.generic):
        return True
    return type(x) is np.ndarray and x.ndim == 0


def check_bool_conversion(arr: Any) -> None:
    """ValueError unless an array has one element."""
    if arr.size == 0:
        raise ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
            "array is not empty."
        )
    if arr.size > 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or "
            f"a.all(). Its shape is {arr.shape}."
        )


def check_integer_conversion(arr: Any) -> None:
    """TypeError unless an array is one integer."""
    if arr.shape != () or not np.issubdtype(arr.dtype, np.integer):
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index. Got "
            f"{get_aval(arr).str_short()}."
        )


def check_scalar_conversion(arr: Any) -> None:
    """TypeError unless an array has no dimensions."""
    if arr.ndim > 0:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got arr.ndim={arr.ndim}"
        )


def escaped_tracer_error(tracer: Tracer, detail: str | None = None) -> Exception:
    """The error for a tracer that outlived its trace."""
    told = filter(None, (f"Encountered an unexpected tracer: {tracer.described()}.", detail))
    return errors.UnexpectedTracerError(" ".join((*told, tracer.origin())))


# -- programs --------------------------------------------------------------------------------------


def last_used(jaxpr: Jaxpr) -> dict[Var, JaxprEqn | None]:
    """Return for each variable that is read, the last equation to do so; None for results."""
    found: dict[Var, JaxprEqn | None] = {v: None for v in jaxpr.outvars if type(v) is not Literal}
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.invars:
            if type(v) is not Literal:
                found.setdefault(v, eqn)
    return found


def clean_up_dead_vars(
    eqn: JaxprEqn, env: dict[Var, Any], last_used: dict[Var, JaxprEqn | None]
) -> None:
    """Forget the values that no later equation reads."""
    for v in {v for v in eqn.invars if type(v) is not Literal}:
        if last_used[v] is eqn:
            env.pop(v, None)


def check_eqn(prim: Primitive, in_avals: Sequence[Any], params: dict) -> tuple[list, frozenset]:
    """The types of the results, and the effects, of an equation; an error if it does not fit."""
    out = prim.out_avals(tuple(in_avals), params)
    for inner in checking.jaxprs_in_params(params):
        checking.check_jaxpr(inner)
    return list(out) if prim.multiple_results else [out], prim.effects_of(params, in_avals)


def filter_named_axis_effects(effects: Iterable[Any], names: Collection[Any]) -> set[Any]:
    """The effects but those of communicating over these axes."""
    return {e for e in effects if not (isinstance(e, NamedAxisEffect) and e.name in names)}


def remove_named_axis_effects(jaxpr: Jaxpr, names: Collection[Any]) -> Jaxpr:
    if not names or not jaxpr.effects:
        return jaxpr
    return jaxpr.replace(effects=frozenset(filter_named_axis_effects(jaxpr.effects, names)))


def replace_jaxpr_effects(jaxpr: ClosedJaxpr, effects: Iterable[Any]) -> ClosedJaxpr:
    """The program with other effects."""
    return ClosedJaxpr(jaxpr.jaxpr.replace(effects=frozenset(effects)), jaxpr.consts)


def subst_input_effects(effs: Iterable[Any], env: dict[Any, Any]) -> set[Any]:
    """Effects on inputs, with other inputs."""
    return {
        e.replace(input=env.get(e.input, e.input)) if isinstance(e, JaxprInputEffect) else e
        for e in effs
    }


def positional_effects(jaxpr: Jaxpr | ClosedJaxpr) -> set[Any]:
    """The effects, those on inputs by their number."""
    return subst_input_effects(jaxpr.effects, {v: n for n, v in enumerate(jaxpr.invars)})


def resolve_input_effects(effs: Iterable[Any], invars: Sequence[Any]) -> set[Any]:
    """The inverse of `positional_effects`."""
    return subst_input_effects(effs, dict(enumerate(invars)))


# What libraries add their effects to, beside the sets that `core.effects` and
# `features.effects.kinds` read: custom rules and splitting take all effects here, as they come.
_shown = (DebugEffect, OrderedDebugEffect)
custom_derivatives_allowed_effects = EffectTypes(*_shown, NamedAxisEffect, RefEffect)
partial_eval_kept_effects = EffectTypes(*_shown, RefEffect)

# -- sizes -----------------------------------------------------------------------------------------


def concrete_dim_or_error(val: Any, context: str = "") -> Any:
    """A size as an integer, or an expression in variables as it is."""
    return val if is_dim(val) else extended.concrete_or_error(operator.index, val, context)


def canonicalize_dim(d: Any, context: str = "") -> Any:
    """A size that a user gives; TypeError unless it is an integer."""
    return canonical_shape((d,))[0]


def dim_value_dtype() -> np.dtype:
    """The dtype of sizes as values."""
    return get_aval(0).dtype


def dim_value_aval() -> ShapedArray:
    """The type of sizes as values."""
    return ShapedArray((), dim_value_dtype(), weak_type=True)


def dim_constant(ct: int) -> np.generic:
    """A size as a value."""
    return dim_value_dtype().type(ct)


def definitely_equal_one_of_dim(d1: Any, dlist: Sequence[Any]) -> bool:
    """Whether a size is equal to one of several, for all values of the variables in them."""
    return any(definitely_equal(d1, d) for d in dlist)


def evaluate_shape(shape: Sequence[Any], dim_vars: Sequence[str], *dim_values: Any) -> tuple:
    """A shape with the variables replaced by values."""
    values = dict(zip(dim_vars, dim_values, strict=True))
    return tuple([evaluate(d, values) if is_dim(d) else d for d in shape])


def canonicalize_slice(s: slice, axis_size: Any) -> tuple[Any, Any, Any]:
    """The first place that `x[s]` reads, the step, and how many places it reads."""
    step = 1 if s.step is None else operator.index(s.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    back = step < 0
    low, high = (-1, axis_size - 1) if back else (0, axis_size)

    def place(given: Any, default: Any) -> Any:
        if given is None:
            return default
        given = given if is_dim(given) else operator.index(given)
        given = given + axis_size if is_negative(given) else given
        return max_dim(low, min_dim(given, high))

    start = place(s.start, high if back else low)
    stop = place(s.stop, low if back else high)
    gap = start - stop if back else stop - start
    return start, step, max_dim(0, (gap + abs(step) - 1) // abs(step))


# -- types -----------------------------------------------------------------------------------------


def mapped_leading_aval(size: int, aval: Any) -> Any:
    """The type of one element along the first axis, of this size."""
    return aval if isinstance(aval, AbstractToken) else extended.mapped_aval(size, 0, aval)


def unmapped_leading_aval(size: int, aval: Any) -> Any:
    """The type of values stacked along a new first axis."""
    return aval if isinstance(aval, AbstractToken) else extended.unmapped_aval(size, 0, aval)


def physical_element_aval(edtype: ExtendedDType) -> ShapedArray:
    """The type of what one element of an extended dtype is in memory."""
    return physical(ShapedArray((), edtype))


def physical_shape(logical_shape: Sequence[int], dtype: ExtendedDType) -> tuple[int, ...]:
    return (*logical_shape, *physical_element_aval(dtype).shape)


def get_token_aval() -> ShapedArray:
    """The type of what stands for a token in compiled programs' signatures."""
    return ShapedArray((0,), np.dtype(bool))


def cur_qdd(x: Any) -> Any:
    """Return what is known of the state of a value that changes."""
    return cur_aval_qdd(x).qdd


def cur_aval_qdd(x: Any) -> Any:
    """The type of a value that changes, with what is known of its state."""
    return get_aval(x).for_constant(x)


class QuasiDynamicData:
    """The base class of what is known of the state of a value that changes."""


def mem_space_to_kind(mem_space: MemorySpace) -> str:
    """Return the name that shardings have for a memory space."""
    if mem_space not in (MemorySpace.Device, MemorySpace.Host):
        raise AssertionError(f"no memory kind for {mem_space!r}: give MemorySpace.Device or .Host")
    return HOST_KIND if mem_space is MemorySpace.Host else "device"


mem_kind_to_space = space_of


# -- types that say how arrays are split -----------------------------------------------------------


def order_wrt_mesh(mesh: Any, x: Collection[Any]) -> tuple[Any, ...]:
    """Names of axes in the order of the mesh."""
    return tuple([name for name in mesh.axis_names if name in x])


def modify_spec_for_auto_manual(spec: PartitionSpec, mesh: Any) -> PartitionSpec:
    """A spec with the explicit axes only: those alone are in types."""
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    explicit = lambda name: kinds[name] is AxisType.Explicit
    entries: list[Any] = []
    for entry in spec:
        if isinstance(entry, tuple):
            kept = tuple(filter(explicit, entry))
            entries.append(kept[0] if len(kept) == 1 else kept or None)
        else:
            entries.append(entry if isinstance(entry, str) and explicit(entry) else None)
    sums = {
        "unreduced": frozenset(filter(explicit, spec.unreduced)),
        "reduced": frozenset(filter(explicit, spec.reduced)),
    }
    return PartitionSpec(*entries, **sums)


def primal_sharding_to_cotangent_sharding(sharding: NamedSharding) -> NamedSharding:
    """Return how the cotangent of a value is split: what is unreduced and what is reduced change
    places.
    """
    spec = sharding.spec
    turned = PartitionSpec(*spec.partitions, unreduced=spec.reduced, reduced=spec.unreduced)
    return sharding.update(spec=turned)


def getu(aval: Any) -> frozenset:
    """The mesh axes over which a type says that sums are still to be made."""
    return frozenset(aval.sharding.spec.unreduced)


def getr(aval: Any) -> frozenset:
    """The mesh axes over which a type says that sums have been made."""
    return frozenset(aval.sharding.spec.reduced)


def concretization_function_error(fun: Callable, suggest_astype: bool = False) -> Callable:
    """A function of a tracer that raises the error for taking its value with `fun`."""
    name = getattr(fun, "__name__", str(fun))

    def refuse(_: Any, arg: Any) -> Any:
        extended.concrete_or_error(fun, arg, f"The problem arose with the `{name}` function.")

    return refuse
