"""`vmap`, on pytrees. The work is done on flat values by `transforms.batching`; here stand the axes
and the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import tree_util
from minijax.arguments.axes import (
    check_count,
    check_mapped_results,
    check_vmap_axes,
    flat_axes,
    is_axis,
    mapped_size,
    refuse_unmapped,
)
from minijax.arguments.functions import check_callable, named_after
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.source import named_scope
from minijax.tracebacks import boundary
from minijax.transforms.batching import AxisData, batch_flat, to_front
from minijax.transforms.linear_maps import as_result
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import Zero

__all__ = ["MappedCall", "vmap"]


_F = TypeVar("_F", bound=Callable)


def vmap(
    fun: _F, in_axes: int | Sequence[Any] | None = 0, out_axes: Any = 0,
    axis_name: Hashable | None = None, axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None, sum_match: bool = False,
) -> _F:  # fmt: skip
    """Map a function over an axis of its arguments.

    - `fun`: function of pytrees of arrays
    - `in_axes`: for each positional argument an integer, None (not mapped), or a pytree of these
      that is a prefix of the argument; one integer for all. Keyword arguments are mapped over axis
      0
    - `out_axes`: position of the mapped axis in the results' shapes; None for results without it
    - `axis_name`: name for collectives; `axis_size`: needed if no argument is mapped

    TypeError unless `fun` is callable; ValueError where axes and arguments do not match, or sizes
    differ.
    Source: Blelloch and Sabot, Compiling collection-oriented languages (1990).

    >>> jax.vmap(jnp.dot, in_axes=(0, None))(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    check_vmap_axes(in_axes, out_axes)

    def batched(*args, **kwargs):
        call = MappedCall(fun, in_axes, out_axes, axis_size, args, kwargs)
        leaves, dims = call.leaves, call.dims
        split = hooks.mapped_axis(leaves, dims, spmd_axis_name)
        axis = AxisData(axis_name, call.size, spmd_axis_name, split)
        with named_scope("vmap()"):
            outs, found = batch_flat(call, axis, leaves, dims)
        return call.results(outs, found, axis)

    return named_after(fun, boundary(batched))


class MappedCall:
    """A call of a mapped function on flat values.

    Three slots of `core.hooks` replace leaves, and are None where arguments and results are arrays:
    `elements` and `wholes` for containers that say themselves how they are mapped, which are taken
    apart into arrays and made again, and `cells` for references, which are read before the call and
    written after it.
    """

    __slots__ = (
        "cells", "dims", "elements", "fun", "in_tree", "leaves", "out_axes", "out_tree", "size",
        "wholes",
    )  # fmt: skip

    def __init__(self, fun, in_axes, out_axes, axis_size, args, kwargs):
        check_count(in_axes, args)
        self.fun, self.out_axes = fun, out_axes
        leaves, self.in_tree = hooks.flatten_mapped((args, kwargs))
        dims = flat_axes("vmap in_axes", self.in_tree, (in_axes, 0))
        self.elements, shown = hooks.elements(leaves, dims), self.in_tree
        if self.elements is not None:
            leaves, dims = self.elements.leaves, self.elements.axes
            shown = tree_util.tree_structure((tuple(leaves), {}))
        self.size = mapped_size("vmap", fun, shown, leaves, dims, axis_size)
        dims = [
            d + get_aval(x).ndim if is_axis(d) and d < 0 else d
            for x, d in zip(leaves, dims, strict=True)
        ]
        if self.elements is not None:  # whose functions may ask for the index of an element
            leaves, dims = [*leaves, np.arange(self.size, dtype=np.int32)], [*dims, 0]
        self.cells = hooks.mapped_cells(leaves, dims)
        self.leaves = leaves if self.cells is None else self.cells.read(leaves)
        self.dims = dims

    def __call__(self, *values):
        if self.cells is not None:
            values = self.cells.within(values)
        if self.elements is not None:
            values = self.elements.made(values[:-1], lambda: values[-1])
        given, named = self.in_tree.unflatten(values)
        outs, self.out_tree = hooks.flatten_mapped(self.fun(*given, **named))
        self.wholes = hooks.wholes(outs, self._out_axes, self.size)
        if self.wholes is None:
            check_mapped_results(outs)
        else:
            outs = self.wholes.leaves
        return outs if self.cells is None else [*outs, *self.cells.last()]

    def _out_axes(self) -> list[Any]:
        return flat_axes("vmap out_axes", self.out_tree, self.out_axes)

    def results(self, outs: Sequence[Any], found: Sequence[int | None], axis: AxisData) -> Any:
        """Return the results as a pytree, each with its mapped axis where `out_axes` asks for it."""
        if self.cells is not None:
            place = lambda x, dim, wanted: _at(x, dim, wanted, axis)
            outs, found = self.cells.keep(outs, found, self.dims, place)
        tree, wholes = self.out_tree, self.wholes
        wanted = self._out_axes() if wholes is None else wholes.axes
        for index, (dim, out) in enumerate(zip(found, wanted, strict=True)):
            if dim is not None and out is None:
                refuse_unmapped(self.fun, axis.name, index, dim, tree, wholes)
        # A symbolic zero, which a jvp rule that is mapped gives, is one whatever the axis.
        results = [
            x if out is None or type(x) is Zero else as_result(_at(x, dim, out, axis))
            for x, dim, out in zip(outs, found, wanted, strict=True)
        ]
        return tree.unflatten(results if wholes is None else wholes.made(results))


def _at(x: Any, dim: int | None, wanted: int | None, axis: AxisData) -> Any:
    """Return a result with its mapped axis moved to `wanted`."""
    if wanted is None or (not is_axis(wanted) and dim == wanted):
        return x
    if not (is_axis(wanted) and (dim is None or is_axis(dim))):
        raise ValueError(
            f"vmap out_axes asks for a result mapped as {wanted}, but it is mapped as {dim}: give "
            "what the rules of its type say."
        )
    if dim is None:
        one, x, dim = get_aval(x), to_front(x, None, axis.size), 0
        if axis.split is not None:
            x = hooks.as_primal_placed(x, one.with_axis(0, axis.size, axis.split))
    ndim = get_aval(x).ndim
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: vmap out_axes of a "
            f"result of shape {get_aval(x).shape}, with the mapped dimension."
        )
    return moveaxis(x, dim, wanted % ndim)
