"""`minijax.api_util`: functions on trees as functions on flat values. For libraries that write
transformations with `extend.linear_util`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments import functions
from minijax.core.avals import AbstractValue, abstract
from minijax.core.jaxpr import DebugInfo
from minijax.extend import linear_util as lu
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.namespace import shown
from minijax.tree_util import flatten_axes

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip


@lu.transformation_with_aux2
def flatten_fun(f: Callable, store: Any, in_tree: Any, *leaves: Any) -> list[Any]:
    """`flatten_fun(fun, in_tree)`: the function on the leaves of `(args, kwargs)`, giving leaves.

    Returned with a function that gives the structure of the results once it has been called.
    """
    args, kwargs = in_tree.unflatten(leaves)
    outs, out_tree = tree_util.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@lu.transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store: Any, in_tree: Any, *leaves: Any) -> list[Any]:
    """Wrap a function that takes no keyword arguments as `flatten_fun` does: `in_tree` is that of
    `args`.
    """
    outs, out_tree = tree_util.flatten(f(*in_tree.unflatten(leaves)))
    store.store(out_tree)
    return outs


def shaped_abstractify(x: Any) -> AbstractValue:
    """Return the type of an array, a number, or any object with a `dtype` and perhaps a `shape`.

    A type is returned as it is. TypeError for other objects.
    """
    if isinstance(x, AbstractValue):
        return x
    if hasattr(x, "dtype") and not hasattr(x, "shape"):
        return abstract(ShapeDtypeStruct((), x.dtype, weak_type=getattr(x, "weak_type", False)))
    return abstract(x)


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
) -> DebugInfo:
    """Return what error messages say of a function that is traced for these arguments."""
    return functions.debug_info(traced_for, fun, tree_util.tree_structure((tuple(args), kwargs)))


def argnums_partial(
    f: lu.WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[lu.WrappedFun, tuple]:
    """The function of the arguments at `dyn_argnums` alone, and those arguments."""
    chosen = tuple(n % len(args) for n in functions.as_ints("dyn_argnums", dyn_argnums))
    fixed = tuple(None if n in chosen else x for n, x in enumerate(args))
    if require_static_args_hashable:
        for n, x in enumerate(fixed):
            try:
                hash(x)
            except TypeError:
                raise ValueError(
                    f"Argument number {n} is static and cannot be hashed: {x!r} of type {type(x)}."
                ) from None

    def layer(inner, *given, **kwargs):
        full = list(fixed)
        for n, x in zip(chosen, given, strict=True):
            full[n] = x
        return inner(*full, **kwargs)

    return f.wrap(layer, (), None), tuple(args[n] for n in chosen)


def donation_vector(
    donate_argnums: Any, donate_argnames: Any, in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Return for each leaf of `(args, kwargs)`, or of `args`, whether it is donated."""
    numbers = functions.as_ints("donate_argnums", donate_argnums)
    names = functions.as_names("donate_argnames", donate_argnames)
    args, kwargs = in_tree.unflatten(range(in_tree.num_leaves)), {}
    if kws:
        args, kwargs = args
    given = [(x, n in numbers) for n, x in enumerate(args)]
    given += [(kwargs[name], name in names) for name in sorted(kwargs)]
    return tuple(donated for x, donated in given for _ in tree_util.tree_leaves(x))


def rebase_donate_argnums(donate_argnums: Any, static_argnums: Any) -> tuple[int, ...]:
    """The numbers of donated arguments, counted without the static ones."""
    donated = functions.as_ints("donate_argnums", donate_argnums)
    static = functions.as_ints("static_argnums", static_argnums)
    if both := sorted({*donated} & {*static}):
        raise ValueError(f"Arguments {both} are both static and donated: choose one for each.")
    return tuple(sorted(n - sum(s < n for s in static) for n in donated))


def safe_map(f: Callable, *sequences: Sequence[Any]) -> list[Any]:
    """`list(map(f, ...))`; ValueError where the sequences differ in length."""
    return [f(*items) for items in zip(*map(list, sequences), strict=True)]


__dir__ = shown(__name__)
