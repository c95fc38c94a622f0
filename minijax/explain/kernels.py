"""Kernels in programs that are written as Python: `pl.pallas_call` of a function of references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.jaxpr import Literal
from minijax.core.primitive import Primitive
from minijax.explain.literals import dtype_text, literal, struct_text, tuple_text
from minijax.lax.pallas.call import pallas_call_p
from minijax.lax.pallas.grid import num_programs_p, program_id_p
from minijax.lax.pallas.mapping import DYNAMIC, BlockMapping
from minijax.lax.pallas.specs import Blocked, MemorySpace, Semaphores, Squeezed

__all__ = ["RULES"]

_LETTERS = "ijklmnpq"


def _list(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _dim(dim: Any) -> str:
    if isinstance(dim, Squeezed):
        return "None"
    return str(dim.block_size) if isinstance(dim, Blocked) else f"pl.{dim!r}"


def _index_map(module: Any, block: BlockMapping) -> str:
    """The function from the indices of the grid to those of a block; "" if they are all zero."""
    jaxpr = block.index_map.jaxpr
    if not jaxpr.eqns and len(jaxpr.invars) <= len(_LETTERS):
        names = dict(zip(jaxpr.invars, _LETTERS, strict=False))
        outs = [str(int(v.val)) if type(v) is Literal else names[v] for v in jaxpr.outvars]
        return f"lambda {', '.join(names.values())}: {tuple_text(outs)}" if outs else ""
    return module.function(block.index_map, "index_map")


def _spec(module: Any, block: BlockMapping) -> str:
    shape, index_map = tuple_text(map(_dim, block.block_shape)), _index_map(module, block)
    whole = all(type(v) is Literal and not v.val for v in block.index_map.jaxpr.outvars)
    given = [shape, index_map]
    if whole and shape == literal(tuple(block.array_aval.shape)):
        given = []
    if block.memory_space not in (None, MemorySpace.DEFAULT):
        given.append(f"memory_space={literal(block.memory_space)}")
    return f"pl.BlockSpec({', '.join(filter(None, given))})"


def _scratch(aval: Any) -> str:
    inner, space = aval.inner_aval, aval.memory_space
    if isinstance(space, Semaphores):
        return f"pltpu.SemaphoreType.REGULAR({inner.shape})"
    named = "pl.ANY" if space is None else literal(space)
    return f"{named}({inner.shape}, {dtype_text(inner.dtype)})"


def _pallas_call(
    body, eqn, operands, *, jaxpr, grid_mapping, out_avals, input_output_aliases, **params
):
    module, mapping = body.module, grid_mapping
    bounds = iter(f"jnp.asarray({x})" for x in operands[: mapping.num_dynamic])
    rest = operands[mapping.num_dynamic :]
    outer, module.outer_grid = module.outer_grid, mapping.vmapped
    kernel = module.function(jaxpr, params["name"] or "kernel", results=0)
    module.outer_grid = outer
    first = mapping.num_index_operands + len(mapping.block_mappings)
    ins, outs = ([_spec(module, b) for b in side] for side in (mapping.inputs, mapping.outputs))
    given = {
        "grid": tuple_text(next(bounds) if n is DYNAMIC else str(n) for n in mapping.grid),
        "in_specs": _list(ins),
        "out_specs": _list(outs),
        "scratch_shapes": _list(list(map(_scratch, jaxpr.in_avals[first:]))),
    }
    whole = set(ins) == set(outs) == {"pl.BlockSpec()"}
    given = {k: v for k, v in given.items() if v not in ("()", "[]") or k == "in_specs"}
    if whole and not mapping.grid:
        del given["in_specs"], given["out_specs"]
    if mapping.num_index_operands:
        inner = "".join(f", {name}={text}" for name, text in given.items())
        counted = f"num_scalar_prefetch={mapping.num_index_operands}"
        given = {"grid_spec": f"pltpu.PrefetchScalarGridSpec({counted}{inner})"}
    if input_output_aliases:
        given["input_output_aliases"] = literal(dict(input_output_aliases))
    for name in ("interpret", "debug", "compiler_params", "cost_estimate"):
        if params[name] is not None and params[name] is not False:
            given[name] = literal(params[name])
    if params["metadata"]:
        given["metadata"] = literal(dict(params["metadata"]))
    results = _list(list(map(struct_text, out_avals)))
    options = "".join(f", {name}={text}" for name, text in given.items())
    return f"pl.pallas_call({kernel}, {results}{options})({', '.join(rest)})"


def _grid_index(function: str) -> Callable[..., str]:
    """An axis is counted behind those that a map has put in front."""
    return lambda body, eqn, operands, *, axis: f"{function}({axis + body.module.outer_grid})"


RULES: dict[Primitive, Callable] = {
    num_programs_p: _grid_index("pl.num_programs"),
    pallas_call_p: _pallas_call,
    program_id_p: _grid_index("pl.program_id"),
}
