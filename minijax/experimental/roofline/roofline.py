"""Walking a program, and adding up what its operations cost. A rule of a primitive says what one
operation costs; see `rooflines`. Programs that are called count once, loops as one turn. Fused
numbers are those that no fusion saves: of matrix products.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.core.avals import abstract
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, dce_jaxpr
from minijax.core.primitive import Primitive, RuleColumn
from minijax.features.source_info import NameStack
from minijax.features.stages.struct import ShapeDtypeStruct, shape_struct
from minijax.lax.shard_map import shard_map, shard_map_p
from minijax.runtime.mesh import AbstractMesh, Mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.tracebacks import public
from minijax.transforms.grad import vjp
from minijax.transforms.tracing import trace_function

__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
    "register_standard_roofline", "roofline", "roofline_and_grad",
]  # fmt: skip

_log = logging.getLogger("minijax")


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflineShape:
    """The shape and dtype of an operand or result."""

    shape: tuple[int, ...]
    dtype: Any

    size = property(lambda self: math.prod(self.shape))
    bytes = property(lambda self: self.size * self.dtype.itemsize)

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        if not hasattr(aval, "shape"):
            raise TypeError(f"Expected ShapedArray, got {type(aval)}.")
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The size of several arrays in bytes."""
        return sum([cls.from_aval(aval).bytes for aval in avals if hasattr(aval, "shape")])


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflineRuleContext:
    """The operation that a rule is asked about: types, mesh, and options."""

    name_stack: Any
    primitive: Primitive
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any = None
    mesh: Any = None
    pin_lhs_in_vmem: bool = False
    pin_rhs_in_vmem: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflineResult:
    """The cost of a program on one device.

    - flops, hbm_bytes: operations, and bytes between chip and memory, if all that can be is fused
    - unfused_flops, unfused_hbm_bytes: the same if nothing is
    - ici_bytes, ici_latency: by mesh axis, bytes over its links, and steps from device to device
    - peak_hbm_bytes: the most memory that values take at a time
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        return cls()

    def _values(self) -> Iterator[tuple[str, Any]]:
        return ((f.name, getattr(self, f.name)) for f in fields(self))

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def added(name, one, two):
            if isinstance(one, dict):
                return {key: one.get(key, 0) + two.get(key, 0) for key in {**one, **two}}
            return max(one, two) if name == "peak_hbm_bytes" else one + two

        return RooflineResult(**{n: added(n, x, getattr(other, n)) for n, x in self._values()})

    def __mul__(self, constant: float) -> RooflineResult:
        def scaled(x):
            return {k: v * constant for k, v in x.items()} if isinstance(x, dict) else x * constant

        return RooflineResult(**{name: scaled(x) for name, x in self._values()})


# -- rules ------------------------------------------------------------------------------------------

Rule = Callable[..., RooflineResult]
costs = RuleColumn("roofline")


def roofline_rule(primitive: Primitive) -> Rule | None:
    """The rule of a primitive; None for those that libraries bring without one.

    This library's own that have none cost nothing, but those of which that is not known.
    """
    found = costs.rule(primitive)
    if found is None and getattr(primitive.rule_shape, "__module__", "").startswith("minijax."):
        return free
    return None if found is unknown else found


def unknown(ctx: RooflineRuleContext, *operands: Any, **params: Any) -> RooflineResult:
    """The rule of operations whose cost is not known; never called."""
    raise NotImplementedError


def free(ctx: RooflineRuleContext, *operands: Any, **params: Any) -> RooflineResult:
    """The rule of operations that cost nothing."""
    return RooflineResult()


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """Decorator: `rule(ctx, *operands, **params)` says what an operation of this primitive costs.

    Operands are `RooflineShape`s; it gives a `RooflineResult`.
    """
    return costs(prim)


def register_standard_roofline(prim: Primitive) -> None:
    """Say that an operation of this primitive costs nothing, as those that XLA fuses away."""
    costs.update({prim: free})


# -- walking a program ------------------------------------------------------------------------------


def _inner(eqn: Any) -> tuple[Any, Any] | None:
    """The program that an equation is counted by, and the mesh within it."""
    calls, params = eqn.primitive.programs, eqn.params
    if costs.rule(eqn.primitive) is not None:
        return None
    if eqn.primitive is shard_map_p:
        return params["jaxpr"], params["mesh"]
    held = [] if calls is None else calls.all(params)
    return (held[0], None) if len(held) == 1 else None


def _walk(program: Any, mesh: Any, pins: dict[str, bool]) -> RooflineResult:
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    total = RooflineResult(peak_hbm_bytes=_peak(jaxpr))
    for eqn in jaxpr.eqns:
        inner = _inner(eqn)
        if inner is not None:
            total += _walk(inner[0], inner[1] or mesh, pins)
            continue
        rule = roofline_rule(eqn.primitive)
        if rule is None:
            _log.warning("No roofline rule for %s, skipping...", eqn.primitive)
            continue
        ins, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
        context = RooflineRuleContext(
            name_stack=NameStack.of(eqn.scope), primitive=eqn.primitive, avals_in=ins,
            avals_out=outs, mesh=mesh, **pins,
        )  # fmt: skip
        operands = [RooflineShape.from_aval(a) if hasattr(a, "shape") else a for a in ins]
        total += rule(context, *operands, **eqn.params)
    return total


def _peak(jaxpr: Jaxpr) -> int:
    """The most bytes that are alive between two equations."""
    last = {v: n for n, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if type(v) is not Literal}
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if type(v) is not Literal})
    alive = {v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
    size = lambda variables: RooflineShape.total_bytes([v.aval for v in variables])
    now = peak = size(alive)
    for number, eqn in enumerate(jaxpr.eqns):
        made = {v for v in eqn.outvars if v in last}
        ended = {v for v in eqn.invars if type(v) is not Literal and last[v] == number}
        now += size(made) - size(ended)
        peak = max(peak, now)
    return peak


# -- functions --------------------------------------------------------------------------------------


def _program(fun: Callable, args: tuple, used: bool = True) -> tuple[ClosedJaxpr, Any]:
    """The program of a function for arguments of these types, and the tree of its results.

    Only what is `used` for the results is in it.
    """
    leaves, in_tree = tree_util.flatten((args, {}))
    avals = [abstract(x) for x in leaves]
    traced = trace_function("roofline", fun, in_tree, avals, hoisted=None)
    closed = traced.closed
    if used:
        jaxpr = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), instantiate=True)[0]
        closed = ClosedJaxpr(jaxpr, closed.consts)
    return closed, traced.out_tree


def _per_device(closed: ClosedJaxpr) -> ClosedJaxpr | Jaxpr:
    """The program that each device runs: the body of the one `shard_map`."""
    (eqn,) = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive is shard_map_p]
    return eqn.params["jaxpr"]


def _gradient(fun: Callable, args: tuple) -> ClosedJaxpr:
    """The program of the cotangents of `fun`, whose residuals are its constants."""
    found = []

    def run(*xs):
        outs, pull = vjp(fun, *xs)
        cts = tree_util.tree_map(lambda x: shape_struct(abstract(x)), outs)
        found.append(_program(pull, (cts,))[0])
        return outs

    _program(run, args)
    return found[0]


def _cotangents(f: Callable) -> Callable:
    """The cotangents of the arguments of `f`, for cotangents of one."""

    def pulled(*args):
        outs, pull = vjp(f, *args)
        return pull(tree_util.tree_map(lambda x: np.ones(x.shape, x.dtype), outs))

    return pulled


def roofline(
    f: Callable, mesh: Any = None, in_specs: Any = None, out_specs: Any = None, *,
    pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:  # fmt: skip
    """A function that gives the types of the results of `f`, and what computing them costs.

    Arguments are arrays, or anything with shape and dtype. With `mesh` and specs `f` is the body of a
    `shard_map`, and the costs are those of one device. With `vjp` the cotangents of the arguments are
    counted, too, and their types are given. `pin_lhs_in_vmem` and `pin_rhs_in_vmem` say that the operands of matrix products on
    that side lie on the chip already.
    """
    pins = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem}
    inside = mesh is not None and in_specs is not None

    def wrapped(*args):
        fun, outs = f, out_specs
        if vjp:
            fun, outs = _cotangents(f), in_specs if isinstance(in_specs, tuple) else (in_specs,)
        if inside:
            fun = shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=outs)
        closed, tree = _program(fun, args, used=not vjp)
        types = _types(closed, tree, mesh if inside else None, outs)
        program = _per_device(closed) if inside else closed
        if print_jaxpr:
            sys.stdout.write(f"{program}\n")
        return types, _walk(program, mesh, pins)

    return wrapped


def _types(closed: ClosedJaxpr, tree: Any, mesh: Any, specs: Any) -> Any:
    avals = closed.out_avals
    if mesh is None:
        return tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype) for a in avals])
    like = tree.unflatten(avals)
    found = tree_util.broadcast_prefix(specs, like, is_leaf=lambda x: x is None)
    pairs = zip(avals, found, strict=True)
    return tree.unflatten(
        [ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, s)) for a, s in pairs]
    )


def roofline_and_grad(
    f: Callable, mesh: Mesh | AbstractMesh, in_specs: Any, out_specs: Any, *,
    pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:  # fmt: skip
    """Compute the cost as `roofline`, and that of the cotangents of the arguments once results are
    there.
    """
    pins = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem}
    forward = roofline(f, mesh, in_specs, out_specs, print_jaxpr=print_jaxpr, **pins)

    def wrapped(*args):
        types, cost = forward(*args)
        fun = shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        backward = _per_device(_gradient(fun, args))
        if print_jaxpr:
            sys.stdout.write(f"{backward}\n")
        return types, cost, _walk(backward, mesh, pins)

    return wrapped


__dir__ = public(__name__)
