"""What is wrong with the specs of a `shard_map`: each check names all places that fail, by path."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.features.sharding.parts import pieces
from minijax.runtime.mesh import PartitionSpec, axes_of

__all__ = ["Specs", "check_divisible", "check_ranks", "check_specs", "not_replicated"]


class Specs:
    """The specs of arguments or of results, with their paths.

    - `what`: `in_specs` or `out_specs`
    - `given`: the pytree of specs as the user wrote it
    - `flat`, `avals`: a spec and a type for each leaf of `tree`
    """

    def __init__(
        self, what: str, given: Any, tree: Any, flat: Sequence[Any], avals: Sequence[Any],
        is_spec: Callable[[Any], bool],
    ) -> None:  # fmt: skip
        self.what, self.given, self.tree = what, given, tree
        self.flat, self.avals, self._is_spec = flat, avals, is_spec

    def of_arrays(self) -> list[tuple[int, Any, Any]]:
        """The (index, spec, type) of each leaf that is an array, and no value of a library's type."""
        pairs = enumerate(zip(self.flat, self.avals, strict=True))
        return [(index, spec, aval) for index, (spec, aval) in pairs if not aval.is_high]

    def paths(self) -> list[str]:
        """Return where the spec of each leaf stands, such as `in_specs[0]['a']`."""
        named = tree_util.tree_map_with_path(
            lambda path, _: self.what + tree_util.keystr(path), self.given, is_leaf=self._is_spec
        )
        return tree_util.broadcast_prefix(named, self.tree.unflatten([0] * self.tree.num_leaves))

    def values(self, root: str) -> list[str]:
        """Return where each leaf stands, below `root`."""
        full = self.tree.unflatten([0] * self.tree.num_leaves)
        return [root + tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(full)]


def _listed(found: Sequence[str]) -> str:
    return "\n\n".join([f"* {one}" for one in found] if len(found) > 1 else found)


def _shown(aval: Any) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def _mesh_said(mesh: Any) -> str:
    sizes = tuple(mesh.shape.values())
    return f"The mesh given has shape {sizes} with corresponding axis names {mesh.axis_names}."


# -- the specs alone -------------------------------------------------------------------------------


def check_specs(what: str, given: Any, is_spec: Callable[[Any], bool], manual: frozenset) -> None:
    """TypeError for leaves of a tree of specs that are none; ValueError for axes not in `manual`."""

    def outside_of(spec: Any) -> list[Any]:
        parts = spec.partitions if isinstance(spec, PartitionSpec) else ()
        return [axis for part in parts for axis in axes_of(part) if axis not in manual]

    if all(is_spec(x) and not outside_of(x) for x in tree_util.tree_leaves(given, is_leaf=is_spec)):
        return
    leaves = tree_util.tree_leaves_with_path(given, is_leaf=is_spec)
    named = [(what + tree_util.keystr(path), spec) for path, spec in leaves]
    wrong = [
        f"{path} is {spec} of type {type(spec).__name__}, "
        for path, spec in named
        if not is_spec(spec)
    ]
    if wrong:
        raise TypeError(
            f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, "
            f"{_to_check(what, wrong)}"
        )
    outside = [f"{path} refers to {axis!r}" for path, spec in named for axis in outside_of(spec)]
    raise ValueError(
        f"shard_map {what} argument must refer to an axis marked as manual ({manual}), "
        f"{_to_check(what, outside)}"
    )


def _to_check(what: str, found: Sequence[str]) -> str:
    lines = "".join(f"  {one}\n\n" for one in dict.fromkeys(found))
    return f"but:\n\n{lines}Check the {what} values passed to shard_map."


# -- specs and types -------------------------------------------------------------------------------


def check_ranks(specs: Specs, f: Callable) -> None:
    """ValueError for specs that are longer than what they are for has dimensions."""
    long = [(i, spec, aval) for i, spec, aval in specs.of_arrays() if len(spec) > aval.ndim]
    if not long:
        return
    name, paths, entering = fun_name(f), specs.paths(), specs.what == "in_specs"
    values = specs.values("args" if entering else f"{name}(*args)")
    if entering:
        values = [f"the passed {value}{_bound(value, f)}" for value in values]
    found = [
        f"{paths[i]} is {spec} which has length {len(spec)}, but {values[i]} has shape "
        f"{_shown(aval)}, which has rank {aval.ndim} (and {aval.ndim} < {len(spec)})"
        for i, spec, aval in long
    ]
    side = "input" if entering else "output"
    hint = f"Shorten the spec, or give {name} {side}s of more dimensions."
    if not entering and any(aval.ndim == 0 for _, _, aval in long):
        hint += " The spec of a scalar is P(); one that differs between devices needs a dimension."
    raise ValueError(
        f"shard_map applied to the function '{name}' was given an {specs.what} entry which is too "
        f"long to be compatible with the corresponding {side} value from the function:\n\n"
        f"{_listed(found)}\n\n{hint}"
    )


def check_divisible(specs: Specs, f: Callable, mesh: Any) -> None:
    """ValueError for arguments of which a dimension cannot be split evenly."""
    uneven = [
        (i, spec, aval, *dims[0])
        for i, spec, aval in specs.of_arrays()
        if (dims := _uneven(mesh, spec, aval))
    ]
    if not uneven:
        return
    paths, values = specs.paths(), specs.values("args")
    found = []
    for i, spec, aval, dim, count in uneven:
        axes = spec.partitions[dim]
        many = isinstance(axes, tuple)
        found.append(
            f"the passed {values[i]} of shape {_shown(aval)}{_bound(values[i], f)} corresponds "
            f"to {paths[i]} of value {spec}, which maps array axis {dim} (of size "
            f"{aval.shape[dim]}) to mesh ax{'es' if many else 'is'} {axes!r} (of "
            f"{'total ' * many}size {count}), but {count} does not evenly divide {aval.shape[dim]}"
        )
    raise ValueError(
        f"shard_map applied to the function '{fun_name(f)}' was given argument arrays with axis "
        "sizes that are not evenly divisible by the corresponding mesh axis sizes:\n\n"
        f"{_mesh_said(mesh)}\n\n{_listed(found)}\n\nPad the arrays, or split other axes of them."
    )


def _uneven(mesh: Any, spec: Any, aval: Any) -> list[tuple[int, int]]:
    """The dimensions that cannot be split evenly, each with the number of its parts."""
    counts = enumerate(pieces(mesh, spec, aval.ndim))
    return [(dim, count) for dim, count in counts if aval.shape[dim] % count]


def _bound(value: str, f: Callable) -> str:
    """Say which parameter of the function `args[0]`, or a leaf of it, is bound to."""
    index = int(value[len("args[") : value.index("]")])
    name = fun_name(f)
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return ""
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    simple = [p for p in parameters if p.kind in by_position]
    if index < len(simple):
        return f", where args[{index}] is bound to {name}'s parameter '{simple[index].name}',"
    for p in parameters:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            return (
                f", where args[{index}] is the index {index - len(simple)} component of {name}'s "
                f"varargs parameter '{p.name}',"
            )
    return ""


def not_replicated(
    specs: Specs, f: Callable, mesh: Any, found: Sequence[tuple[int, frozenset]]
) -> ValueError:
    """Return the error for results that may vary over axes of which their specs say nothing.

    `found` are the numbers of the results, and the axes over which each may vary.
    """
    shown = lambda axes: f"{{{','.join(str(axis) for axis in mesh.axis_names if axis in axes)}}}"
    paths, lines = specs.paths(), []
    for index, varying in found:
        spec = specs.flat[index]
        unsaid = [axis for axis in mesh.axis_names if axis not in spec.split_axes]
        if len(unsaid) == 1:
            said = (
                f"is replicated across mesh axis {unsaid[0]!r}, but could not infer replication over "
                "any axes"
            )
        else:
            said = (
                f"is only varying across mesh axes {shown(spec.split_axes)} and not "
                f"{shown(varying - spec.split_axes)}, but it was inferred to be possibly varying "
                f"over {shown(varying)}"
            )
        lines.append(
            f"{paths[index]} is {spec} which implies that the corresponding output value {said}"
        )
    return ValueError(
        f"shard_map applied to the function '{fun_name(f)}' was given out_specs which require "
        "replication which can't be statically inferred given the mesh:\n\n"
        f"{_mesh_said(mesh)}\n\n{_listed(lines)}\n\nReduce the results over these axes (lax.psum, "
        "...), name the axes in out_specs, or pass check_vma=False to say that they are equal."
    )
