"""Counterparts of upstream's private functions on types, sizes and programs; `names` says which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from minijax import errors
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    dce_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
)
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import eval_trace, set_trace
from minijax.export.symbolic import is_symbolic_dim
from minijax.extend.linear_util import wrap_init
from minijax.features.queries import certain
from minijax.interpreters.ad import Zero
from minijax.interpreters.partial_eval import PartialVal, trace_to_jaxpr_nounits
from minijax.lax.shapes import canonical_shape
from minijax.transforms import batching, transpose
from minijax.transforms.batching import AxisData, bind_axis

# -- sizes ---------------------------------------------------------------------------------------------


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number."""
    return not is_symbolic_dim(d)


def is_dim(v: Any) -> bool:
    """Whether a value may be a size: an integer, or an expression in variables."""
    return is_symbolic_dim(v) or hasattr(type(v), "__index__")


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether all sizes are numbers."""
    return all(map(is_constant_dim, s))


def definitely_equal(x: Any, y: Any) -> bool:
    """Whether two sizes are equal for all values of the variables in them."""
    return x is y or certain(lambda: x == y)


def definitely_equal_shape(s1: Sequence[Any], s2: Sequence[Any]) -> bool:
    return len(s1) == len(s2) and all(map(definitely_equal, s1, s2))


def is_empty_shape(s: Sequence[Any]) -> bool:
    """Whether an array of this shape has no elements, whatever the variables are."""
    return any(definitely_equal(d, 0) for d in s)


def divide_shape_sizes(s1: Sequence[Any], s2: Sequence[Any]) -> Any:
    """Return how many arrays of shape `s2` have as many elements as one of `s1`; an error unless
    whole.
    """
    one, other = 1, 1
    for size in s1:
        one = one * size
    for size in s2:
        other = other * size
    if definitely_equal(one, other):
        return 1
    quotient, rest = divmod(one, other) if not definitely_equal(other, 0) else (0, 1)
    if not definitely_equal(rest, 0):
        raise errors.InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(s1)} and {tuple(s2)}"
        )
    return quotient


def dilate_dim(d: Any, dilation: Any) -> Any:
    """The size of `d` elements with `dilation - 1` places between each two."""
    if definitely_equal(dilation, 1) or definitely_equal(d, 0):
        return d
    return 1 + dilation * (d - 1)


def stride_dim(d: Any, window_size: Any, window_stride: Any) -> Any:
    """Return how many windows of this size fit, each `window_stride` places from the one before."""
    return max((d - window_size) // window_stride + 1, 0)


def dimension_as_value(d: Any) -> Any:
    """A size as something to compute with."""
    return d if isinstance(d, (int, Array)) or is_symbolic_dim(d) else int(d)


canonicalize_shape = canonical_shape

# -- types ---------------------------------------------------------------------------------------------


def typematch(t1: AbstractValue, t2: AbstractValue, no_dtype_check: bool = False) -> bool:
    """Whether two types are equal but for weak types (and dtypes, if those do not matter)."""
    if getattr(t1, "shape", None) != getattr(t2, "shape", None):
        return False
    return no_dtype_check or getattr(t1, "dtype", None) == getattr(t2, "dtype", None)


typecompat = typematch


def typecheck(aval: AbstractValue, x: Any) -> bool:
    """Whether a value has a type."""
    return typematch(aval, get_aval(x))


def join_effects(*effects: Iterable[Any]) -> frozenset:
    """The union."""
    return frozenset().union(*effects)


@contextmanager
def extend_axis_env_nd(name_size_pairs: Iterable[tuple[Any, int]]) -> Iterator[None]:
    """Within, collectives may name these axes, of these sizes."""
    with ExitStack() as stack:
        for name, size in name_size_pairs:
            stack.enter_context(bind_axis(AxisData(name, size)))
        yield


# -- programs ------------------------------------------------------------------------------------------


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program whose constants are its first inputs."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def convert_invars_to_constvars(jaxpr: Jaxpr, n: int) -> Jaxpr:
    """The program whose first `n` inputs are its constants."""
    return jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:])


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants, closed."""
    return ClosedJaxpr(jaxpr, [])


def _moved(closed: ClosedJaxpr, flags: Sequence[bool], first: bool) -> ClosedJaxpr:
    pairs = list(zip(closed.jaxpr.invars, flags, strict=True))
    order = [v for v, flag in pairs if flag is first] + [
        v for v, flag in pairs if flag is not first
    ]
    return ClosedJaxpr(closed.jaxpr.replace(invars=order), closed.consts)


def move_binders_to_front(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with those inputs first."""
    return _moved(closed_jaxpr, [bool(flag) for flag in to_move], True)


def move_binders_to_back(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with those inputs last."""
    return _moved(closed_jaxpr, [bool(flag) for flag in to_move], False)


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """The program that gives only these results, of the same inputs."""
    made, _ = dce_jaxpr(jaxpr.jaxpr, list(used_outputs), instantiate=True)
    return ClosedJaxpr(made, jaxpr.consts)


def has_effects(eqn: JaxprEqn) -> bool:
    """Whether an equation does more than compute its results."""
    return any(not getattr(effect, "pure", False) for effect in eqn.effects)


def abstract_eval_fun(fun: Callable, *avals: AbstractValue, debug_info: Any = None, **params: Any):
    """The types of the results of a function with these params, for inputs of these types."""
    return trace_to_jaxpr(lambda *xs: fun(*xs, **params), avals).out_avals


def partial_eval_jaxpr_nounits(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[AbstractValue]]:
    """Split a program of which some inputs are unknown.

    Gives `(*known inputs) -> (*known results, *residuals)`, `(*residuals, *unknown inputs) ->
    (*unknown results)`, which results are unknown, and the types of the residuals.
    """
    known_avals = [a for a, unknown in zip(jaxpr.in_avals, unknowns, strict=True) if not unknown]
    found: dict[str, Any] = {}

    def known(*values: Any) -> list[Any]:
        rest = iter(values)
        pvals = [
            PartialVal.unknown(aval) if unknown else PartialVal.known(next(rest))
            for aval, unknown in zip(jaxpr.in_avals, unknowns, strict=True)
        ]
        fun = wrap_init(jaxpr_as_fun(jaxpr), debug_info=jaxpr.jaxpr.debug_info)
        found["jaxpr"], outs, residuals = trace_to_jaxpr_nounits(fun, pvals, instantiate)
        found["unknown"] = [not out.is_known() for out in outs]
        found["residuals"] = [get_aval(x) for x in residuals]
        return [out.get_known() for out in outs if out.is_known()] + list(residuals)

    first = trace_to_jaxpr(known, known_avals, jaxpr.jaxpr.debug_info)
    rest = close_jaxpr(convert_constvars_jaxpr(found["jaxpr"]))
    return first, rest, found["unknown"], found["residuals"]


def backward_pass(
    jaxpr: Jaxpr, transform_stack: bool, consts: Sequence[Any], primals_in: Sequence[Any],
    cts_in: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """The cotangents of the undefined inputs of a linear program; None for the others."""
    return transpose.backward_pass(jaxpr, consts, primals_in, cts_in)


def batch_jaxpr(
    closed_jaxpr: ClosedJaxpr, axis_data: AxisData, in_batched: Sequence[bool],
    instantiate: bool | Sequence[bool],
) -> tuple[ClosedJaxpr, list[bool]]:  # fmt: skip
    """The program mapped over the first axis of these inputs; which results have one, in front."""
    dims = [0 if batched else None for batched in in_batched]
    _, out_dims = batching.batch_jaxpr(closed_jaxpr, axis_data, dims)
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(out_dims)
    front = [d is not None or want for d, want in zip(out_dims, instantiate, strict=True)]
    made, _ = batching.batch_jaxpr(closed_jaxpr, axis_data, dims, front)
    return made, front


# -- primitives ----------------------------------------------------------------------------------------


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """The operation run at once."""
    with set_trace(eval_trace):
        return prim.bind(*args, **params)


def jaxpr_has_primitive(jaxpr: Jaxpr, prim_name: str) -> bool:
    """Whether an equation of a program, or of one within it, has a primitive of a name like this."""
    return any(
        prim_name in eqn.primitive.name
        or any(jaxpr_has_primitive(inner, prim_name) for inner in jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )


def zero_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Zero]:
    """The rule of an operation that has no derivative: its tangent is zero."""
    out = primitive.bind(*primals, **params)
    return out, Zero(get_aval(out).to_tangent_aval())
