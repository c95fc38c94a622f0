"""`make_jaxpr`: the program of a function, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.calls import Static
from minijax.arguments.functions import (
    avals_of,
    check_callable,
    fun_name,
    named_after,
    resolve_static,
)
from minijax.core.avals import abstract
from minijax.core.caches import kept_with
from minijax.core.hooks import hooks
from minijax.tracebacks import boundary
from minijax.transforms.batching import AxisData, bind_axis
from minijax.transforms.tracing import Traced, trace_function

__all__ = ["make_jaxpr"]


def stage(
    transform: str, fun: Callable, in_tree: Any, avals: Sequence[Any], statics: tuple = ()
) -> Traced:
    """The program of a function of pytrees, kept with it.

    `statics` are pairs of a position or name and a `Static`, to be put among the arguments.
    """
    given = [(position, static.value) for position, static in statics]
    return kept_with(fun, transform).find(
        (in_tree, tuple(avals), statics),
        lambda: trace_function("jit", fun, in_tree, avals, statics=given, hoisted=None),
        Traced.is_lasting,
    )


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

    @boundary
    def program(*args, **kwargs):
        numbers, names = resolve_static(fun, static_argnums, None, "static")
        count = len(args)  # an argument that is left to its default is no input
        chosen = {number % count for number in numbers if -count <= number < count}
        dynamic = tuple(x for n, x in enumerate(args) if n not in chosen)
        statics = tuple(
            [(n, Static(args[n], f"number {n}", fun_name(fun))) for n in sorted(chosen)]
            + [(n, Static(kwargs.pop(n), n, fun_name(fun))) for n in names if n in kwargs]
        )
        leaves, in_tree = tree_util.flatten((dynamic, kwargs))
        avals = avals_of("make_jaxpr", fun, leaves, in_tree, statics, abstract)
        traced = _in_axes(
            list(axis_env or ()), lambda: stage("make_jaxpr", fun, in_tree, avals, statics)
        )
        closed = traced.closed
        if return_shape:
            return closed, traced.out_tree.unflatten(
                [hooks.shape_struct(a) for a in closed.out_avals]
            )
        return closed

    program = named_after(fun, program, f"make_jaxpr({fun_name(fun)})")
    program.__module__ = "minijax"
    return program


def _in_axes(axes: list, run: Callable):
    if not axes:
        return run()
    name, size = axes[0]
    with bind_axis(AxisData(name, size)):
        return _in_axes(axes[1:], run)
