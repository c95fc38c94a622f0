"""`pallas_call`: a function of references, run over a grid of blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import fun_name
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Var
from minijax.core.staging import trace_to_jaxpr
from minijax.errors import shape_error
from minijax.features.queries import is_ref
from minijax.features.references.cells import AbstractRef, Ref
from minijax.lax import refs
from minijax.lax.pallas.call import pallas_call_p
from minijax.lax.pallas.grid import in_kernel
from minijax.lax.pallas.mapping import (
    DYNAMIC,
    BlockMapping,
    GridMapping,
    block_mapping,
    named,
    spec_leaves,
)
from minijax.lax.pallas.specs import BlockSpec, CostEstimate, GridSpec, no_block_spec
from minijax.transforms.jit import jit

__all__ = ["pallas_call"]


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays that runs `kernel` on references to their blocks.

    - `kernel`: takes a reference to a block of each argument, then of each output, then to scratch,
      writes the outputs, and gives None. It may not close over arrays
    - `out_shape`: what the outputs are, a tree of things with a shape and a dtype
    - `grid`: how many steps there are along each dimension; the last goes fastest
    - `in_specs`, `out_specs`: a `BlockSpec` for each array; the whole of it by default
    - `scratch_shapes`: memory that stays from step to step, such as `ANY(shape, dtype)`
    - `input_output_aliases`: from the number of an argument to that of the output that starts as it
    - `grid_spec`: these in one, in place of them
    - `interpret`: has to be true, or `tpu.InterpretParams`: the kernel is run as a loop of XLA's. ValueError on a CPU otherwise

    What a kernel does not write is NaN, or the least integer. Forward-mode differentiation, and
    `vmap`, which adds a dimension to the grid, are as of other functions; reverse mode raises
    ValueError, as do specs that do not fit the arrays.
    """
    spec = _one_spec(grid_spec, grid, in_specs, out_specs, scratch_shapes)
    outputs = _Outputs(out_shape)
    aliases = tuple(input_output_aliases.items())
    params = {
        "debug": debug, "interpret": interpret, "name": name,
        "compiler_params": compiler_params, "cost_estimate": cost_estimate, "mesh": None,
        "metadata": None if metadata is None else tuple(sorted(metadata.items())),
    }  # fmt: skip

    def wrapped(*args):
        leaves, tree = tree_util.flatten(args)
        avals = [get_aval(x) for x in leaves]
        if any(map(is_ref, avals)):
            raise TypeError(
                f"The function that pallas_call makes of {named(kernel)} takes arrays, and was given "
                "a reference: pass what it holds, as in ref[...]."
            )
        traced = _trace(kernel, spec, outputs, tree, avals, aliases)
        if debug:
            print(f"The kernel jaxpr for pallas_call {named(kernel)}:\n{traced.closed}")
        bounds = [size for size in spec.grid if isinstance(size, Array)]
        known = [refs.get(ref) for ref in traced.captured]
        count, first = len(outputs.avals), len(leaves)
        outs = pallas_call_p.bind(
            *bounds, *leaves, *known, jaxpr=traced.closed, grid_mapping=traced.mapping,
            out_avals=(*outputs.avals, *[ref.aval.inner_aval for ref in traced.captured]),
            input_output_aliases=(
                *aliases, *[(first + n, count + n) for n in range(len(known))]
            ), **params,
        )  # fmt: skip
        for ref, value in zip(traced.captured, outs[count:], strict=True):
            refs.set(ref, None, value)
        return outputs.tree.unflatten(outs[:count])

    return jit(wrapped, inline=True)


def _one_spec(grid_spec, grid, in_specs, out_specs, scratch_shapes) -> GridSpec:
    if grid_spec is None:
        return GridSpec(grid, in_specs, out_specs, scratch_shapes)
    asked = (
        ("grid", grid, (), grid == ()), ("in_specs", in_specs, "no_block_spec", in_specs is no_block_spec),
        ("out_specs", out_specs, "no_block_spec", out_specs is no_block_spec),
        ("scratch_shapes", scratch_shapes, (), scratch_shapes == ()),
    )  # fmt: skip
    for name, value, default, absent in asked:
        if not absent:
            raise ValueError(
                f"If `grid_spec` is specified, then `{name}` must be `{default}`. It is {value}"
            )
    return grid_spec


class _Outputs:
    """The types of the outputs, and how they are put together."""

    __slots__ = ("avals", "many", "tree")

    def __init__(self, out_shape: Any):
        if isinstance(out_shape, list):
            out_shape = tuple(out_shape)
        leaves, self.tree = tree_util.flatten(out_shape)
        self.avals = [_out_aval(x) for x in leaves]
        self.many = isinstance(out_shape, tuple)


def _out_aval(x: Any) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(
            f"Invalid out_shape type: {type(x)}: give something with a shape and a dtype, such as a "
            "ShapeDtypeStruct."
        )
    dtype = x.dtype if isinstance(x.dtype, dtypes.ExtendedDType) else None
    sizes = []
    for size in x.shape:
        if not isinstance(size, (int, np.integer)):
            raise shape_error(tuple(x.shape))
        sizes.append(int(size))
    return ShapedArray(tuple(sizes), dtype or dtypes.canonicalize_dtype(x.dtype))


# -- recording the kernel -------------------------------------------------------------------------


class _Traced(NamedTuple):
    """The program of a kernel, and the references that it closes over."""

    closed: ClosedJaxpr
    mapping: GridMapping
    captured: Sequence[Any]


def _paths(name: str, tree: Any) -> list[str]:
    """Return the names of the leaves of a tree in messages."""
    places = tree.unflatten(range(tree.num_leaves))
    pairs = tree_util.generate_key_paths(places)
    return [f"{name}{tree_util.keystr(path)}" for path, _ in pairs]


def _trace(kernel, spec: GridSpec, outputs: _Outputs, tree, avals, aliases) -> _Traced:
    count = spec.num_scalar_prefetch
    scalar_trees, input_trees = tree.children()[0:count], tree.children()[count:]
    if len(scalar_trees) < count:
        raise ValueError(
            f"{count} arguments are prefetched, as num_scalar_prefetch says, got {len(scalar_trees)}."
        )
    scalars = sum(child.num_leaves for child in scalar_trees)
    mapping = _mapping(spec, outputs, (scalar_trees, input_trees), avals, scalars)
    _check_aliases(aliases, avals, outputs.avals)
    scratch_leaves, scratch_tree = tree_util.flatten(spec.scratch_shapes)
    types = [_scalar_ref(spec, aval) for aval in avals[:scalars]]
    types += [m.ref_aval for m in mapping.block_mappings]
    types += [x.get_ref_aval() for x in scratch_leaves]
    trees = [*scalar_trees, *input_trees, outputs.tree, scratch_tree]
    grid = tuple([None if size is DYNAMIC else size for size in mapping.grid])

    def flat(*leaves):
        args = _parts(leaves, trees)
        *ins, outs, scratch = args
        many = [*ins, *outs] if outputs.many else [*ins, outs]
        named_scratch = scratch if isinstance(scratch, dict) else {}
        if not isinstance(scratch, (tuple, list, dict)):
            raise TypeError(
                f"scratch_shapes takes a tuple, a list or a dict of places in memory, got {scratch!r}."
            )
        with in_kernel(grid):
            result = kernel(*many, *([] if named_scratch else scratch), **named_scratch)
        if result is not None:
            found = tree_util.flatten(result)[1]
            raise ValueError(
                f"The kernel function in the pallas_call {named(kernel)} should return None. It "
                f"returns a PyTree: {found}: write results to the references of outputs."
            )
        return []

    closed = trace_to_jaxpr(flat, types, DebugInfo("pallas_call kernel", fun_name(kernel)))
    if closed.consts and all(isinstance(c, Ref) for c in closed.consts):
        return _with_captured(closed, mapping)
    if closed.consts:
        kinds = ", ".join([get_aval(c).str_short(True) for c in closed.consts])
        raise ValueError(
            f"The kernel function in the pallas_call {named(kernel)} captures constants [{kinds}]. "
            "You should pass them as inputs."
        )
    return _Traced(closed, mapping, ())


def _with_captured(closed: ClosedJaxpr, mapping: GridMapping) -> _Traced:
    """The kernel with the references that it closes over as outputs, which start as inputs."""
    jaxpr, captured = closed.jaxpr, closed.consts
    split = mapping.num_index_operands + mapping.num_inputs
    end = mapping.num_index_operands + len(mapping.block_mappings)
    known = tree_util.tree_structure(tuple(range(mapping.num_index_operands)))
    scalars = (known, closed.in_avals[: mapping.num_index_operands])
    blocks = [
        block_mapping(BlockSpec(), c.aval.inner_aval, "a reference", len(mapping.grid), scalars)
        for c in captured
    ]
    unused = [Var(c.aval) for c in captured]
    invars = jaxpr.invars
    invars = [*invars[:split], *unused, *invars[split:end], *jaxpr.constvars, *invars[end:]]
    made = dataclasses.replace(
        mapping,
        block_mappings=(*mapping.inputs, *blocks, *mapping.outputs, *blocks),
        num_inputs=mapping.num_inputs + len(blocks),
    )
    return _Traced(ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars)), made, captured)


def _parts(leaves: Sequence[Any], trees: Sequence[Any]) -> list[Any]:
    start, parts = 0, []
    for tree in trees:
        parts.append(tree.unflatten(leaves[start : start + tree.num_leaves]))
        start += tree.num_leaves
    return parts


def _scalar_ref(spec: GridSpec, aval: ShapedArray) -> AbstractRef:
    return AbstractRef(ShapedArray(aval.shape, aval.dtype), getattr(spec, "scalar_space", None))


def _mapping(spec: GridSpec, outputs: _Outputs, trees: tuple, avals, scalars: int) -> GridMapping:
    scalar_trees, input_trees = trees
    dummies = [t.unflatten(range(t.num_leaves)) for t in scalar_trees]
    known = tree_util.tree_structure(tuple(dummies))
    types = [_scalar_ref(spec, aval) for aval in avals[:scalars]]
    places = [t.unflatten(range(t.num_leaves)) for t in input_trees]
    in_tree = tree_util.tree_structure(tuple(places))
    groups = (
        ("in_specs", "inputs", "args", spec.in_specs, in_tree, avals[scalars:]),
        ("out_specs", "out_shape", "outputs", spec.out_specs, outputs.tree, outputs.avals),
    )
    blocks: list[BlockMapping] = []
    for name, other, origin, specs, tree, arrays in groups:
        leaves = spec_leaves(name, specs, tree, other)
        for leaf, aval, where in zip(leaves, arrays, _paths(origin, tree), strict=True):
            blocks.append(block_mapping(leaf, aval, where, len(spec.grid), (known, types)))
    grid = tuple([DYNAMIC if isinstance(size, Array) else size for size in spec.grid])
    return GridMapping(grid, tuple(blocks), scalars, len(avals) - scalars)


def _check_aliases(aliases: tuple, avals: Sequence[Any], out_avals: Sequence[Any]) -> None:
    """ValueError unless each alias is from an input to an output of its type."""
    for operand, out in aliases:
        kinds = (("input", operand, len(avals)), ("output", out, len(out_avals)))
        for kind, number, count in kinds:
            if not 0 <= number < count:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{operand}:{out}' with {kind} index "
                    f"{number} outside the range [0, {count})"
                )
        given, made = avals[operand], out_avals[out]
        if (given.shape, given.dtype) != (made.shape, made.dtype):
            raise ValueError(
                f"input_output_aliases contains the mapping '{operand}:{out}' referring to "
                f"input[{operand}] with abstract value {given.str_short()} and to output with a "
                f"different abstract value {made.str_short()}."
            )
