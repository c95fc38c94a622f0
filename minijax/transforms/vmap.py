"""`vmap`, on pytrees. The work is done on flat values by `transforms.batching`; here stand the axes
and the checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import tree_util
from minijax.core.avals import get_aval, is_array_type
from minijax.core.hooks import hooks
from minijax.core.source import named_scope
from minijax.tracebacks import boundary
from minijax.transforms.arguments import argument_names, check_callable, fun_name, named_after
from minijax.transforms.batching import AxisData, batch_flat, is_axis, to_front
from minijax.transforms.grad import as_result
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import Zero

__all__ = ["flat_axes", "mapped_size", "vmap"]


_F = TypeVar("_F", bound=Callable)


def vmap(
    fun: _F,
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> _F:
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
    _check_axes(in_axes, out_axes)

    def batched(*args, **kwargs):
        call = _Call(fun, in_axes, out_axes, axis_size, args, kwargs)
        leaves, dims = call.leaves, call.dims
        split = hooks.mapped_axis(leaves, dims)
        axis = AxisData(axis_name, call.size, spmd_axis_name, split)
        with named_scope("vmap()"):
            outs, found = batch_flat(call, axis, leaves, dims)
        return call.results(outs, found, axis_name)

    return named_after(fun, boundary(batched))


class _Call:
    """A call of a mapped function, on flat values: those of the user's tree, and what replaces them.

    Types of the user's that say themselves how they are mapped give their `elements`; what the
    function may change (`cells`) is read before, and written after.
    """

    __slots__ = (
        "cells", "dims", "elements", "fun", "in_tree", "leaves", "out_axes", "out_tree", "size",
        "wholes",
    )  # fmt: skip

    def __init__(self, fun, in_axes, out_axes, axis_size, args, kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got {len(in_axes)=}, "
                f"{len(args)=}"
            )
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
        if self.elements is not None:
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
            _check_results(outs)
        else:
            outs = self.wholes.leaves
        return outs if self.cells is None else [*outs, *self.cells.last()]

    def _out_axes(self) -> list[Any]:
        return flat_axes("vmap out_axes", self.out_tree, self.out_axes)

    def results(self, outs: Sequence[Any], found: Sequence[int | None], axis_name: Any) -> Any:
        """The results as the user's tree, each with its mapped axis where `out_axes` wants it."""
        if self.cells is not None:
            place = lambda x, dim, wanted: _at(x, dim, wanted, self.size)
            outs, found = self.cells.keep(outs, found, self.dims, place)
        tree, wholes = self.out_tree, self.wholes
        wanted = self._out_axes() if wholes is None else wholes.axes
        for index, (dim, out) in enumerate(zip(found, wanted, strict=True)):
            if dim is not None and out is None:
                _refuse_unmapped(self.fun, axis_name, index, dim, tree, wholes)
        # A symbolic zero, which a jvp rule that is mapped gives, is one whatever the axis.
        results = [
            x if out is None or type(x) is Zero else as_result(_at(x, dim, out, self.size))
            for x, dim, out in zip(outs, found, wanted, strict=True)
        ]
        return tree.unflatten(results if wholes is None else wholes.made(results))


def _check_axes(in_axes: Any, out_axes: Any) -> None:
    """TypeError for what is no axis, nor a tree of axes."""
    single = isinstance(in_axes, (int, tuple)) or hasattr(in_axes, "__index__")
    if not (in_axes is None or single or hooks.is_axis_spec(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    check_axes("vmap", in_axes, out_axes)


def check_axes(transform: str, in_axes: Any, out_axes: Any) -> None:
    """TypeError for a leaf of the trees of axes that is no axis."""
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for leaf in tree_util.tree_leaves(axes):
            if (type(leaf) is bool or not isinstance(leaf, int)) and not hooks.is_axis_spec(leaf):
                raise TypeError(
                    f"{transform} {name} must be an int, None, or (nested) container with those "
                    f"types as leaves, but got {axes}."
                )


def _check_results(outs: Sequence[Any]) -> None:
    for x in outs:
        if not (is_array_type(x) or hasattr(x, "__jax_array__")):
            raise TypeError(
                f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type: "
                "return arrays and numbers only."
            )


def _refuse_unmapped(
    fun: Callable, axis_name: Any, index: int, dim: int, tree: Any, wholes: Any
) -> None:
    """ValueError for a result that depends on the mapped axis where `out_axes` has None."""
    path = ""
    if wholes is None:
        paths = tree_util.generate_key_paths(tree.unflatten([0] * tree.num_leaves))
        path = tree_util.keystr(list(paths)[index][0])
    named = "" if axis_name is None else f" (axis_name={axis_name})"
    raise ValueError(
        f"at vmap out_axes{path}, got axis spec None but output was batched on axis {dim}: vmap has "
        f"mapped output{named} but out_axes is None. What {fun_name(fun)} gives there depends on "
        "the mapped axis: give an axis in out_axes, or reduce over it."
    )


def _at(x: Any, dim: int | None, wanted: int | None, size: int) -> Any:
    """A result with its mapped axis where `out_axes` wants it."""
    if wanted is None or (not is_axis(wanted) and dim == wanted):
        return x
    if not (is_axis(wanted) and (dim is None or is_axis(dim))):
        raise ValueError(
            f"vmap out_axes asks for a result mapped as {wanted}, but it is mapped as {dim}: give "
            "what the rules of its type say."
        )
    if dim is None:
        x, dim = to_front(x, None, size), 0
    ndim = get_aval(x).ndim
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis {wanted} is out of bounds for array of dimension {ndim}: vmap out_axes of a "
            f"result of shape {get_aval(x).shape}, with the mapped dimension."
        )
    return moveaxis(x, dim, wanted % ndim)


def flat_axes(name: str, tree: Any, axes: Any) -> list[int | None]:
    """One axis for each leaf, from a tree of axes that is a prefix of the tree."""
    return tree_util.flatten_axes(name, tree, axes, kws=name.endswith("in_axes"))


def mapped_size(
    transform: str, fun: Callable, in_tree: Any, leaves: Sequence[Any], dims: Sequence[int | None],
    given: int | None,
) -> int:  # fmt: skip
    """The size of the mapped axis. ValueError if it is unknown or not the same everywhere."""
    sizes = []
    for x, dim in zip(leaves, dims, strict=True):
        if not is_axis(dim):  # not mapped, or in its own way
            continue
        shape = get_aval(x).shape
        try:
            sizes.append(shape[dim])
        except IndexError:
            which = _name_of(fun, in_tree, leaves, x)
            raise ValueError(
                f"{transform} was requested to map its argument along axis {dim}, which implies "
                f"that its rank should be at least {dim + 1 if dim >= 0 else -dim}, but is only "
                f"{len(shape)} (its shape is {shape}): {which} of {fun_name(fun)}. Use None for an "
                "argument that is not mapped."
            ) from None
    distinct = set(sizes)
    if given is not None:
        distinct.add(given)
    if len(distinct) == 1:
        return distinct.pop()
    if not distinct:
        if not leaves:
            args, kwargs = in_tree.unflatten(leaves)
            raise ValueError(
                f"{transform} wrapped function must be passed at least one argument containing an "
                f"array or axis_size must be specified, got empty *args={args} "
                f"and **kwargs={kwargs}"
            )
        raise ValueError(
            f"{transform} must have at least one non-None value in in_axes or axis_size must be "
            f"specified: no argument of {fun_name(fun)} is mapped."
        )
    raise ValueError(_mismatch(transform, fun, in_tree, leaves, dims, sizes, given))


def _name_of(fun, in_tree, leaves, x) -> str:
    names = argument_names(fun, in_tree) or []
    for name, leaf in zip(names, leaves, strict=False):
        if leaf is x:
            return f"argument {name}"
    return "an argument"


def _mismatch(transform, fun, in_tree, leaves, dims, sizes, given) -> str:
    names = argument_names(fun, in_tree) or [f"number {i}" for i in range(len(leaves))]
    mapped = [(n, x, d) for n, x, d in zip(names, leaves, dims, strict=True) if d is not None]
    common = Counter(sizes).most_common(1)[0][0] if given is None else given
    lines = []
    for (name, x, dim), size in zip(mapped, sizes, strict=True):
        mark = "" if size == common else "   <-- differs"
        lines.append(
            f"  * one axis had size {size}: axis {dim} of argument {name} of type "
            f"{get_aval(x).str_short()}{mark}"
        )
    asked = "" if given is None else f" (axis_size={given})"
    return (
        f"{transform} got inconsistent sizes for array axes to be mapped{asked}:\n"
        + "\n".join(lines)
        + f"\nMake them equal, or give None in in_axes for what {fun_name(fun)} takes whole."
    )
