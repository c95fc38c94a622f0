"""Arguments and results of differentiated functions: checks, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import as_ints, fun_name
from minijax.core.avals import ShapedArray, get_aval

__all__ = [
    "check_given", "check_input", "check_pair", "check_scalar_output", "check_tangent", "chosen_numbers", "is_int",
    "jvp_leaves", "no_reduce_axes", "positions",
]  # fmt: skip


def chosen_numbers(argnums: Any) -> tuple[int, ...]:
    """The numbers of the arguments to differentiate with respect to: at least one."""
    numbers = as_ints("argnums", argnums)
    if argnums is None or not numbers:
        kind = TypeError if argnums is None else ValueError
        raise kind(f"argnums must be an integer or a nonempty sequence of them; got {argnums!r}.")
    return numbers


def check_given(argnums: Any, numbers: Sequence[int], count: int) -> None:
    """TypeError if a call has too few positional arguments."""
    needed = max(numbers) + 1
    if needed > count:
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least {needed} "
            f"positional arguments to be passed by the caller, but got only {count} positional "
            "arguments. Keyword arguments have no number."
        )


def positions(numbers: Sequence[int], count: int) -> list[int]:
    """Argument numbers counted from the front. ValueError if one is out of range."""
    for n in numbers:
        if not -count <= n < count:
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater "
                f"than or equal to -len(args) and less than len(args), but got value {n} for "
                f"len(args) == {count}: what is differentiated is passed by position."
            )
    return [n % count for n in numbers]


def is_int(x: Any) -> bool:
    try:
        x.__index__()
    except (AttributeError, TypeError):
        return False
    return True


def check_pair(out: Any, fun: Callable, transform: str) -> None:
    """TypeError unless a function with `has_aux=True` returned a pair."""
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise TypeError(
            "expected function with aux output to return a two-element tuple, but got "
            f"type {type(out)} with value {out} from {fun_name(fun)}: {transform} with has_aux=True "
            "takes the pair (output, auxiliary data)."
        )


def jvp_leaves(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of primals and tangents, and their structure; TypeError if these differ."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}. For one argument write "
            "jvp(f, (x,), (t,))."
        )
    leaves, in_tree = tree_util.flatten(primals)
    tangent_leaves, tangent_tree = tree_util.flatten(tangents)
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; "
            f"primals have tree structure {in_tree} whereas tangents have tree structure "
            f"{tangent_tree}."
        )
    return leaves, tangent_leaves, in_tree


def check_tangent(x: Any, t: Any) -> bool:
    """TypeError or ValueError unless a tangent fits its primal; whether it is of dtype float0."""
    aval = get_aval(x)
    wanted = aval.to_tangent_aval()
    if not isinstance(wanted, ShapedArray):
        wanted.check_differentiated("jvp")
        return False
    if getattr(t, "dtype", None) != dtypes.float0 and hasattr(aval, "check_tangent"):
        return aval.check_tangent(t)  # of a reference
    found = dtypes.float0 if getattr(t, "dtype", None) == dtypes.float0 else get_aval(t).dtype
    if found != wanted.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{aval.dtype.name} and so expected tangent dtype {_dtype_name(wanted.dtype)}, but got "
            f"tangent dtype {_dtype_name(found)} instead."
        )
    if np.shape(t) != aval.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes;Got primal shape "
            f"{aval.shape} and tangent shape as {np.shape(t)}. Give each tangent its primal's shape."
        )
    return found == dtypes.float0


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == dtypes.float0 else dtype.name


def check_input(x: Any, holomorphic: bool, allow_int: bool, transform: str) -> None:
    """TypeError for an argument that is not differentiated."""
    aval = get_aval(x)
    if not isinstance(aval, ShapedArray):
        aval.check_differentiated(transform)
        return
    dtype = aval.dtype
    if dtypes.issubdtype(dtype, dtypes.extended):
        if allow_int and not holomorphic:
            return
        raise TypeError(
            f"{transform} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
            f"of np.inexact), but got {dtype.name}. If you want to use Boolean- or "
            f"integer-valued inputs, use vjp or set allow_int to True. {aval.str_short()} is none: leave "
            "it out of argnums."
        )
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{transform} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name}."
            )
    elif not dtypes.issubdtype(dtype, np.inexact) and dtype != dtypes.float0:
        if not allow_int:
            raise TypeError(
                f"{transform} requires real- or complex-valued inputs (input dtype that is a "
                f"sub-dtype of np.inexact), but got {dtype.name}. If you want to use Boolean- or "
                "integer-valued inputs, use vjp or set allow_int to True."
            )


def check_scalar_output(
    outs: list,
    out_tree: Any,
    holomorphic: bool,
) -> None:
    """TypeError unless the output of a function is a scalar that has a gradient."""
    if len(outs) != 1 or not tree_util.treedef_is_leaf(out_tree):
        shown = out_tree.unflatten(outs)
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {shown}. If the "
            "function also returns other data, use has_aux=True."
        )
    aval = get_aval(outs[0])
    if not isinstance(aval, ShapedArray):
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had abstract value {aval}. "
            "Return a number that is computed of it."
        )
    if aval.shape != ():
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}. Reduce it (for example by .sum()), or use jacobian or vjp."
        )
    if holomorphic:
        if not dtypes.issubdtype(aval.dtype, np.complexfloating):
            raise TypeError(
                "grad with holomorphic=True requires outputs with complex dtype, but got "
                f"{aval.dtype.name}."
            )
    elif dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise TypeError(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {aval.dtype.name}. For holomorphic differentiation, pass "
            "holomorphic=True. For differentiation of non-holomorphic functions involving complex "
            "outputs, use jax.vjp directly."
        )
    elif not dtypes.issubdtype(aval.dtype, np.floating):
        raise TypeError(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {aval.dtype.name}. For differentiation of functions with "
            "integer outputs, use jax.vjp directly."
        )


def no_reduce_axes(name: str, reduce_axes: Sequence) -> None:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")
