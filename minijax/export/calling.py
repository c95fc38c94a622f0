"""Calling an exported function: its arguments are checked, and its derivative is found.

A call is a `custom_vjp` around one `call_exported`, whose backward rule calls the exported
derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
            f"   - {where} is a {given} in the invocation and a {wanted} when exported, so {why}.\n"
            for where, given, wanted, why in tree_util.call_differences(
                tree,
                exported.in_tree,
                leaf=str(int),  # upstream's stand-in for a leaf
            )
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
