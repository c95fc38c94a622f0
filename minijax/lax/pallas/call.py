"""`pallas_call_p`: a kernel over a grid of blocks, with all of its rules.

The kernel is a program of references: to scalars, to a block of each input and output, and to
scratch. Differentiating makes a kernel with references to tangents too; mapping adds a dimension to
the grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.features.references.cells import AbstractRef
from minijax.features.references.discharge import without_refs
from minijax.features.references.effects import RefEffect
from minijax.lax import refs
from minijax.lax.checks import pass_on_elements
from minijax.lax.control_flow.scan import map as map_
from minijax.lax.pallas.interpret import interpreted_jaxpr
from minijax.lax.pallas.mapping import GridMapping
from minijax.transforms.batching import to_front
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import Zero, spread_tangents

__all__ = ["compilers", "pallas_call_p"]

# What `extend.pallas` registers: for a class of compiler params, a platform and what lowers for it.
compilers: dict[type, tuple[str, Callable]] = {}

pallas_call_p = Primitive("pallas_call", multiple_results=True, holds_programs=True)
pass_on_elements(pallas_call_p)  # kernels leave NaN where they write nothing


@pallas_call_p.shape_rule
def _(*avals, out_avals, **params):
    return list(out_avals)


@pallas_call_p.effects_rule
def _(*, jaxpr, **params):
    return frozenset(e for e in jaxpr.effects if not isinstance(e, RefEffect))


@pallas_call_p.lower
def _(b, *operands, jaxpr, grid_mapping, input_output_aliases, interpret, **params):
    if not interpret:
        compiler = _compiler(b.platform, type(params["compiler_params"]))
        return compiler(
            b, *operands, jaxpr=jaxpr.jaxpr, grid_mapping=grid_mapping, interpret=interpret,
            input_output_aliases=input_output_aliases, **params,
        )  # fmt: skip
    avals = [x.aval for x in operands]
    key = local.context.key
    closed = interpreted_jaxpr(jaxpr, grid_mapping, input_output_aliases, avals, key)
    return b.closed_jaxpr(closed, *operands)


def _compiler(platform: str, params_cls: type) -> Callable:
    """Return what lowers kernels that are not interpreted, given compiler params of this class."""
    if platform == "cpu":
        raise ValueError(
            "Only interpret mode is supported on CPU backend. Call pallas_call with interpret=True."
        )
    if params_cls not in compilers:
        raise NotImplementedError(
            f"minijax runs kernels in interpret mode only, also on {platform}: call pallas_call "
            "with interpret=True."
        )
    own, compiler = compilers[params_cls]
    kind = "gpu" if platform in ("cuda", "rocm") else platform
    if own != kind:
        raise ValueError(f"Compiler params for platform {own} cannot be used for {kind} lowering.")
    return compiler


# -- mapped ---------------------------------------------------------------------------------------


@pallas_call_p.batch_axis
def _(axis, args, dims, *, grid_mapping, input_output_aliases, out_avals, **params):
    mapping, size = grid_mapping, axis.size
    count = mapping.num_dynamic + mapping.num_index_operands
    if any(dim is not None for dim in dims[:count]):
        same = dict(params, input_output_aliases=input_output_aliases, out_avals=out_avals)
        return _one_by_one(size, args, dims, dict(same, grid_mapping=mapping))
    args, dims = list(args), list(dims)
    for operand, _ in input_output_aliases:  # what becomes an output has the axis in front
        place = operand + mapping.num_dynamic
        args[place], dims[place] = to_front(args[place], dims[place], size), 0
    places = [*dims[count:], *[0] * len(out_avals)]
    blocks = [
        m.mapped(dim, size) for m, dim in zip(mapping.block_mappings, places, strict=True)
    ]  # fmt: skip
    made = dataclasses.replace(
        mapping,
        grid=(size, *mapping.grid),
        block_mappings=tuple(blocks),
        vmapped=mapping.vmapped + 1,
    )
    outs = pallas_call_p.bind(
        *args, grid_mapping=made, input_output_aliases=input_output_aliases,
        out_avals=tuple([aval.with_axis(0, size, None) for aval in out_avals]), **params,
    )  # fmt: skip
    return outs, [0] * len(outs)


def _one_by_one(size: int, args: Sequence[Any], dims: Sequence[int | None], params: dict) -> tuple:
    """Batch one element after the other, where the sizes of the grid, or what decides on blocks,
    differ.
    """
    mapped = [to_front(x, d, size) for x, d in zip(args, dims, strict=True) if d is not None]

    def one(values):
        rest = iter(values)
        given = [x if d is None else next(rest) for x, d in zip(args, dims, strict=True)]
        return pallas_call_p.bind(*given, **params)

    outs = map_(one, mapped)
    return outs, [0] * len(outs)


# -- differentiated -------------------------------------------------------------------------------


def _is_float(aval: Any) -> bool:
    return not isinstance(aval.dtype, dtypes.ExtendedDType) and dtypes.issubdtype(
        aval.dtype, np.inexact
    )


class _Jvp:
    """A kernel with tangents, and which operands and which results have some."""

    __slots__ = ("aliases", "inputs", "kernel", "mapping", "outputs")


def _with_tangents(
    kernel: ClosedJaxpr, mapping: GridMapping, aliases: tuple, flags: tuple[bool, ...]
) -> _Jvp:
    """The kernel for inputs of which those flagged have tangents."""
    made = _Jvp()
    scalars, inputs = mapping.num_index_operands, mapping.num_inputs
    blocks = mapping.block_mappings
    avals = kernel.in_avals
    pure = without_refs(kernel, range(len(avals)), avals)
    changed = [x is not y for x, y in zip(pure.jaxpr.invars, pure.jaxpr.outvars, strict=True)]
    floats = [_is_float(aval) for aval in avals]
    first, end = scalars, scalars + inputs
    aliased = {operand - scalars for operand, _ in aliases}
    made.inputs = [
        flag or (floats[first + n] and (changed[first + n] or n in aliased))
        for n, flag in enumerate(flags)
    ]
    made.outputs = floats[end : scalars + len(blocks)]
    nonzeros = [False] * scalars + made.inputs + floats[end:]
    program, found = jvp_jaxpr(pure, nonzeros, nonzeros)

    # The order of references: scalars, inputs, their tangents, outputs, theirs, scratch, its.
    groups = [(0, first), (first, end), (end, scalars + len(blocks)), (scalars + len(blocks), None)]
    order: list[tuple[int, bool]] = []
    for start, stop in groups:
        places = range(len(avals))[start:stop]
        order += [(n, False) for n in places] + [(n, True) for n in places if nonzeros[n]]

    def flat(*given):
        named = dict(zip(order, given, strict=True))
        primals = [refs.get(named[n, False]) for n in range(len(avals))]
        tangents = [refs.get(named[n, True]) for n, flag in enumerate(nonzeros) if flag]
        outs = eval_jaxpr(program.jaxpr, program.consts, *primals, *tangents)
        rest = iter(outs[len(avals) :])
        dots = [next(rest) if flag else None for flag in found]
        for n in range(len(avals)):
            if changed[n]:
                refs.set(named[n, False], None, outs[n])
                if nonzeros[n]:
                    refs.set(named[n, True], None, dots[n])
        return []

    types = [_tangent_ref(avals[n]) if dot else avals[n] for n, dot in order]
    made.kernel = trace_to_jaxpr(flat, types, kernel.jaxpr.debug_info)
    ins, outs = blocks[:inputs], blocks[inputs:]
    made.mapping = dataclasses.replace(
        mapping,
        block_mappings=(
            *ins, *[m for m, flag in zip(ins, made.inputs, strict=True) if flag],
            *outs, *[m for m, flag in zip(outs, made.outputs, strict=True) if flag],
        ),
        num_inputs=inputs + sum(made.inputs),
    )  # fmt: skip
    made.aliases = (*aliases, *_tangent_aliases(made, aliases, scalars, inputs, len(outs)))
    return made


def _tangent_ref(aval: AbstractRef) -> AbstractRef:
    return AbstractRef(aval.inner_aval.to_tangent_aval(), aval.memory_space)


def _tangent_aliases(made: _Jvp, aliases, scalars: int, inputs: int, outputs: int) -> list:
    """The tangent of an output that is an input starts as that input's."""
    found = []
    for operand, out in aliases:
        n = operand - scalars
        if n >= 0 and made.inputs[n]:
            dot_in = scalars + inputs + sum(made.inputs[:n])
            found.append((dot_in, outputs + sum(made.outputs[:out])))
    return found


def _jvp_arguments(primals, tangents, params) -> tuple[list[Any], dict, _Jvp]:
    mapping, kernel = params["grid_mapping"], params["jaxpr"]
    aliases = params["input_output_aliases"]
    count = mapping.num_dynamic + mapping.num_index_operands
    flags = tuple([type(t) is not Zero for t in tangents[count:]])
    key = ("tangents", mapping, aliases, flags, local.context.key)
    made = kernel.derive(key, lambda: _with_tangents(kernel, mapping, aliases, flags))
    dots = [instantiate(t) for t, flag in zip(tangents[count:], made.inputs, strict=True) if flag]
    avals = params["out_avals"]
    more = [a.to_tangent_aval() for a, flag in zip(avals, made.outputs, strict=True) if flag]
    new = dict(
        params, jaxpr=made.kernel, grid_mapping=made.mapping, input_output_aliases=made.aliases,
        out_avals=(*avals, *more),
    )  # fmt: skip
    return [*primals, *dots], new, made


@pallas_call_p.jvp
def _(primals, tangents, **params):
    args, new, made = _jvp_arguments(primals, tangents, params)
    outs = pallas_call_p.bind(*args, **new)
    avals = params["out_avals"]
    return outs[: len(avals)], spread_tangents(outs[len(avals) :], made.outputs, avals)


@pallas_call_p.linearize
def _(trace, primals, tangents, **params):
    # A kernel keeps nothing of a step but what it writes: the linear part runs it again, on pairs.
    # It can be applied, not transposed.
    outs = pallas_call_p.bind(*primals, **params)
    args, new, made = _jvp_arguments(primals, tangents, params)
    pairs = trace.record(pallas_call_p, args, new)
    return outs, spread_tangents(pairs[len(outs) :], made.outputs, params["out_avals"])


@pallas_call_p.transpose
def _(cts, *args, **params):
    raise ValueError(
        "Reverse-mode differentiation does not work through pallas_call: a kernel keeps nothing of "
        "its steps. Give the function around it a derivative, with custom_vjp, or use forward mode."
    )
