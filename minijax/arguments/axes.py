"""The axes of mapped functions: checks of `in_axes`, `out_axes` and sizes, and their errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import argument_names, fun_name
from minijax.core.avals import get_aval, is_array_type
from minijax.core.hooks import hooks

__all__ = [
    "check_axes", "check_count", "check_mapped_results", "check_vmap_axes", "flat_axes", "is_axis",
    "mapped_size", "refuse_unmapped",
]  # fmt: skip


def is_axis(dim: Any) -> bool:
    """Whether it is the number of an axis: None is none, and values of no arrays have specs."""
    return hasattr(dim, "__index__")


def check_count(in_axes: Any, args: Sequence[Any]) -> None:
    """ValueError unless a tuple of axes has one for each argument."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {len(in_axes)=}, "
            f"{len(args)=}: {in_axes=} has to have one entry for each of them, None for one that is "
            "not mapped."
        )


def check_vmap_axes(in_axes: Any, out_axes: Any) -> None:
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


def check_mapped_results(outs: Sequence[Any]) -> None:
    for x in outs:
        if hasattr(x, "__jax_array__"):
            get_aval(x)
        elif not is_array_type(x):
            raise TypeError(
                f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type: "
                "return arrays and numbers only."
            )


def refuse_unmapped(
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
        aval = None if type(x) is int else get_aval(x)
        shape = () if aval is None or aval.is_high else aval.shape
        try:
            sizes.append(shape[dim])
        except IndexError:
            for other in leaves:  # what is no array at all is said first
                get_aval(other)
            which = _name_of(fun, in_tree, leaves, x)
            raise ValueError(
                f"{transform} was requested to map its argument along axis {dim}, which implies "
                f"that its rank should be at least {dim + 1 if dim >= 0 else -dim}, but is only "
                f"{len(shape)} (its shape is {shape}): {which} of {fun_name(fun)}. Use None for an "
                "argument that is not mapped."
            ) from None
    distinct = list(dict.fromkeys(sizes))
    if given is not None and not _is_among(given, distinct):
        distinct.append(given)
    if len(distinct) == 1:
        return distinct[0]
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


def _is_among(size: Any, sizes: Sequence[Any]) -> bool:
    try:
        return size in sizes
    except (TypeError, ValueError):  # it cannot be compared with a number
        return False


def _name_of(fun, in_tree, leaves, x) -> str:
    names = argument_names(fun, in_tree) or []
    for name, leaf in zip(names, leaves, strict=False):
        if leaf is x:
            return f"argument {name}"
    return "an argument"


def _mismatch(transform, fun, in_tree, leaves, dims, sizes, given) -> str:
    names = argument_names(fun, in_tree) or [f"number {i}" for i in range(len(leaves))]
    mapped = [one for one in zip(names, leaves, dims, strict=True) if is_axis(one[2])]
    lines = [] if given is None else [f"  * the `axis_size` argument was {given}"]
    for place, (size, count) in enumerate(Counter(sizes).most_common()):
        name, x, dim = mapped[sizes.index(size)]
        axes, such_as = "one axis had", ":"
        if count > 1:
            axes, such_as = f"{'some' if place else 'most'} axes ({count} of them) had", ", e.g."
        lines.append(
            f"  * {axes} size {size}{such_as} axis {dim} of argument {name} of type "
            f"{get_aval(x).str_short()}"
        )
    return (
        f"{transform} got inconsistent sizes for array axes to be mapped:\n"
        + ";\n".join(lines)
        + f"\nMake them equal, or give None in in_axes for what {fun_name(fun)} takes whole."
    )
