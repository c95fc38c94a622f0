"""Looking at programs without running them: make_jaxpr and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from minijax import tree_util
from minijax.config import local, override
from minijax.core.avals import abstract
from minijax.core.hooks import hooks
from minijax.core.source import named_scope
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import is_constant
from minijax.tracebacks import boundary
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
from minijax.transforms.jit import Static, cache_for, check_results

__all__ = [
    "disable_jit", "make_jaxpr", "named_call",
]  # fmt: skip


def stage(transform: str, fun: Callable, in_tree: Any, avals: Sequence[Any], statics: tuple = ()):
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
    if key is not None and all(map(is_constant, found[0].consts)):
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
        check_results(outs, fun, tree, "jit")
        return outs

    closed = trace_to_jaxpr(flat, avals, debug_info(transform, fun, in_tree))
    return closed, trees[0]


def avals_of(transform: str, fun: Callable, leaves: Sequence[Any], in_tree: Any) -> list[Any]:
    return [
        aval_of_argument(x, fun, in_tree, i, transform, abstract).for_argument(x)
        for i, x in enumerate(leaves)
    ]


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Make a function that returns the jaxpr of `fun` for given arguments.

    - `fun`: function of pytrees of arrays
    - `static_argnums`: arguments that are constants
    - `axis_env`: pairs of names and sizes of axes, for collectives
    - `return_shape`: whether to return the results' pytree of `ShapeDtypeStruct` too

    The result is a `ClosedJaxpr`, with the shape and dtype of every value. TypeError unless `fun`
    is callable.
    Source: Frostig, Johnson and Leary, Compiling machine learning programs via high-level tracing
    (2018).

    >>> jax.make_jaxpr(lambda x: x + 1)(jnp.array([1, 2]))
    { lambda ; a:i32[2]. let b:i32[2] = add a 1:i32[] in (b,) }
    """
    check_callable(fun)
    numbers = as_ints("static_argnums", static_argnums)

    @boundary
    def traced(*args, **kwargs):
        chosen = set(canonical_argnums("make_jaxpr", numbers, len(args), fun))
        dynamic = tuple(x for n, x in enumerate(args) if n not in chosen)
        for n in sorted(chosen):
            Static(args[n], f"number {n}", fun_name(fun))
        statics = tuple((n, args[n]) for n in sorted(chosen))
        leaves, in_tree = tree_util.flatten((dynamic, kwargs))
        avals = avals_of("make_jaxpr", fun, leaves, in_tree)
        closed, out_tree = _in_axes(
            list(axis_env or ()), lambda: stage("make_jaxpr", fun, in_tree, avals, statics)
        )
        if return_shape:
            return closed, out_tree.unflatten([hooks.shape_struct(a) for a in closed.out_avals])
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


def disable_jit(disable: bool = True) -> Any:
    """Run jitted functions operation by operation within a `with` block.

    - `disable`: whether to do so, by default True

    Values, shapes and dtypes are the same, and Python code sees concrete arrays. Source: the
    setting `jax_disable_jit`.

    >>> with jax.disable_jit():
    ...     jax.jit(lambda x: x + 1)(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    return override("disable_jit", disable)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Name the operations of a function in compiled programs and profiles.

    - `fun`: function; values, shapes and dtypes of its results do not change
    - `name`: name, by default the function's

    TypeError unless the name is a string.
    Source: the locations of StableHLO operations.

    >>> jax.named_call(lambda x: x + 1, name="increment")(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function; got {fun!r} of type {type(fun)}.")
    label = fun_name(fun) if name is None else name

    @wraps(fun)
    def call(*args, **kwargs):
        with named_scope(label):
            return fun(*args, **kwargs)

    return call
