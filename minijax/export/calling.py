"""Calling an exported function: its arguments are checked, and its derivative is found.

A call is a `custom_vjp` around one `call_exported`, whose backward rule calls the exported
derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax import tree_util
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.export.sizes import argument_names, check_sizes
from minijax.features.custom_rules.custom_vjp import custom_vjp
from minijax.features.queries import is_dim
from minijax.lax.exported import call_exported_p

__all__ = ["call"]


def call(exported: Any, args: tuple, kwargs: dict) -> Any:
    """The result of an exported function for these arguments. ValueError unless they fit."""
    leaves, tree = tree_util.flatten((args, kwargs))
    if tree != exported.in_tree:
        found = "".join(
            f"   - {where} is {given} in the invocation and {wanted} when exported, so {why}.\n"
            for where, given, wanted, why in _differences(tree, exported.in_tree)
        )
        raise ValueError(
            "The invocation args and kwargs must have the same pytree structure as when the function "
            f"'{exported.fun_name}' was exported, but they have the following structural "
            f"differences:\n{found}"
        )
    _check(exported, leaves)
    outs = _flat(exported)(*[x if isinstance(x, Array) else as_value(x) for x in leaves])
    return exported.out_tree.unflatten(outs)


def _flat(exported: Any) -> Callable[..., tuple]:
    """The function on flat values, with its derivative. Made for each call: kept, it would keep
    what was exported, and the arrays of the function that was.
    """

    @custom_vjp
    def f_flat(*args):
        return tuple(call_exported_p.bind(*args, exported=exported))

    def f_flat_vjp_fwd(*args):
        return _flat(exported)(*args), args  # a function that names itself would be a cycle

    def f_flat_vjp_bwd(residuals, cts):
        return tuple(exported.vjp().call(*residuals, *cts))

    f_flat.defvjp(f_flat_vjp_fwd, f_flat_vjp_bwd)
    return f_flat


# -- what is refused -------------------------------------------------------------------------------


def _check(exported: Any, leaves: Sequence[Any]) -> None:
    avals = [get_aval(leaf) for leaf in leaves]
    for index, (wanted, aval) in enumerate(zip(exported.in_avals, avals, strict=True)):
        if aval.shape == wanted.shape and aval.dtype == wanted.dtype:
            continue
        where = argument_names(exported.in_tree)[index]
        if len(aval.shape) != len(wanted.shape):
            raise ValueError(
                f"Rank mismatch for {where}: expected {wanted.shape} and called with {aval.shape}"
            )
        if aval.dtype != wanted.dtype:
            raise ValueError(
                f"Dtype mismatch for {where}: expected {wanted.dtype} and called with {aval.dtype}"
            )
        pairs = zip(aval.shape, wanted.shape, strict=True)
        axis = next(
            (i for i, (given, size) in enumerate(pairs) if not is_dim(size) and given != size), None
        )
        if axis is None:
            continue
        raise ValueError(
            f"Shape mismatch for {where}.shape[{axis}] (expected same constant): expected "
            f"{wanted.shape} and called with {aval.shape}"
        )
    check_sizes(exported, avals)


def _differences(given: Any, wanted: Any) -> Iterator[tuple[str, str, str, str]]:
    """Return where two structures of `(args, kwargs)` differ: the place, what each is there, and
    why.
    """
    for name, one, other in zip(
        ("args", "kwargs"), given.children(), wanted.children(), strict=True
    ):
        yield from _between(name, one, other)


def _between(where: str, one: Any, other: Any) -> Iterator[tuple[str, str, str, str]]:
    if one == other:
        return
    (kind, aux), (wanted, wanted_aux) = _node(one), _node(other)
    if kind is not wanted:
        yield where, f"a {kind}", f"a {wanted}", "their Python types differ"
        return
    children, others = one.children(), other.children()
    if kind in (tuple, list) and len(children) != len(others):
        shown = [f"a {kind.__name__} of length {len(part)}" for part in (children, others)]
        yield where, *shown, "the lengths do not match"
        return
    if len(children) != len(others):
        shown = [f"a {kind} with {_count(len(part))}" for part in (children, others)]
        yield where, *shown, f"the numbers of children do not match{_keys(kind, aux, wanted_aux)}"
        return
    if kind not in (tuple, list) and aux != wanted_aux:
        shown = [f"a {kind} with pytree metadata {part}" for part in (aux, wanted_aux)]
        yield (
            where,
            *shown,
            f"the pytree node metadata does not match{_keys(kind, aux, wanted_aux)}",
        )
        return
    for key, *pair in zip(_steps(one), children, others, strict=True):
        yield from _between(where + key, *pair)


def _node(tree: Any) -> tuple[type, Any]:
    """The class of a node; leaves are all alike, as `int`s."""
    return tree.node_data() or (int, None)


def _count(count: int) -> str:
    return f"{count} child" if count < 2 else f"{count} children"


def _keys(kind: type, one: Any, other: Any) -> str:
    if not issubclass(kind, dict):
        return ""
    keys = sorted(map(repr, set(one) ^ set(other)))
    return f", with the symmetric difference of key sets: {{{' '.join(keys)}}}"


def _steps(tree: Any) -> list[str]:
    """Return how the children of a node are reached from it."""
    kept = tree.unflatten(range(tree.num_leaves))
    try:
        pairs, _ = tree_util.flatten_one_level_with_keys(kept)
    except ValueError:
        return [f"[{i}]" for i in range(len(tree.children()))]
    return [str(key) for key, _ in pairs]
