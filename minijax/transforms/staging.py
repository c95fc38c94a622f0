"""Looking at programs without running them: make_jaxpr, eval_shape, and their kin.

May import the floors below and `transforms.jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from minijax import tree_util
from minijax.config import local, override
from minijax.core.hitypes import is_hi_value
from minijax.core.lowered import stated
from minijax.core.refs import Ref
from minijax.core.source import named_scope
from minijax.core.staging import trace_to_jaxpr
from minijax.core.struct import ShapeDtypeStruct, abstract, shape_struct
from minijax.core.trace import Tracer, ensure_compile_time_eval
from minijax.transforms.arguments import (
    as_ints,
    aval_of_argument,
    canonical_argnums,
    check_callable,
    debug_info,
    fun_name,
    named_after,
)
from minijax.transforms.batching import AxisData, bind_axis
from minijax.transforms.jit import PjitFunction, Static, cache_for, check_results

__all__ = [
    "ShapeDtypeStruct", "disable_jit", "ensure_compile_time_eval", "eval_shape", "make_jaxpr",
    "named_call",
]  # fmt: skip


def _stage(transform: str, fun: Callable, in_tree: Any, avals: Sequence[Any], statics: tuple = ()):
    """The program of a function on trees, and the structure of its results; kept with `fun`.

    `statics` are pairs of a position and a value, to be put among the positional arguments.
    """
    key = (local.context.key, in_tree, tuple(avals), statics)
    kept = cache_for(fun, (transform,)).fast
    try:
        if key in kept:
            return kept[key]
    except TypeError:  # a static value that cannot be hashed
        key = None
    found = _trace(transform, fun, in_tree, avals, statics)
    if key is not None and not any(
        isinstance(c, (Tracer, Ref)) or is_hi_value(c) for c in found[0].consts
    ):
        kept[key] = found
    return found


def _trace(transform, fun, in_tree, avals, statics):
    trees = []

    def flat(*leaves):
        args, kwargs = in_tree.unflatten(leaves)
        args = list(args)
        for position, value in statics:
            args.insert(position, value)
        outs, tree = tree_util.flatten(fun(*args, **kwargs))
        trees.append(tree)
        check_results(outs, fun, tree, transform)
        return outs

    closed = trace_to_jaxpr(flat, avals, debug_info(transform, fun, in_tree))
    return closed, trees[0]


def _avals(transform: str, fun: Callable, leaves: Sequence[Any], in_tree: Any) -> list[Any]:
    return [
        stated(x, aval_of_argument(x, fun, in_tree, i, transform, abstract))
        for i, x in enumerate(leaves)
    ]


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of what `fun` would return, without computing it.

    Arguments may be arrays or anything with `shape` and `dtype`. Gives a tree of
    `ShapeDtypeStruct`.
    """
    check_callable(fun)
    if isinstance(fun, PjitFunction):  # it knows which of its arguments are static
        return fun.eval_shape(*args, **kwargs)
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals = _avals("eval_shape", fun, leaves, in_tree)
    closed, out_tree = _stage("eval_shape", fun, in_tree, avals)
    return out_tree.unflatten([shape_struct(aval) for aval in closed.out_avals])


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable:
    """A function that gives the jaxpr of `fun` for its arguments, as a `ClosedJaxpr`.

    With `return_shape` it gives a pair: the jaxpr, and the results' tree of `ShapeDtypeStruct`.
    `axis_env` names axes and their sizes for collectives.
    """
    check_callable(fun)
    numbers = as_ints("static_argnums", static_argnums)

    def traced(*args, **kwargs):
        chosen = set(canonical_argnums("make_jaxpr", numbers, len(args), fun))
        dynamic = tuple(x for n, x in enumerate(args) if n not in chosen)
        for n in sorted(chosen):
            Static(args[n], f"number {n}", fun_name(fun))
        statics = tuple((n, args[n]) for n in sorted(chosen))
        leaves, in_tree = tree_util.flatten((dynamic, kwargs))
        avals = _avals("make_jaxpr", fun, leaves, in_tree)
        closed, out_tree = _in_axes(
            list(axis_env or ()), lambda: _stage("make_jaxpr", fun, in_tree, avals, statics)
        )
        if return_shape:
            return closed, out_tree.unflatten([shape_struct(a) for a in closed.out_avals])
        return closed

    traced = named_after(fun, traced, f"make_jaxpr({fun_name(fun)})")
    traced.__module__ = "minijax"
    return traced


def _in_axes(axes: list, run: Callable):
    if not axes:
        return run()
    name, size = axes[0]
    with bind_axis(AxisData(name, size)):
        return _in_axes(axes[1:], run)


def disable_jit(disable: bool = True):
    """Context manager: run jitted functions operation by operation, as plain Python."""
    return override("disable_jit", disable)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun` with its operations named `name/...` in compiled programs and profiles."""
    label = fun_name(fun) if name is None else name

    @wraps(fun)
    def call(*args, **kwargs):
        with named_scope(label):
            return fun(*args, **kwargs)

    return call
