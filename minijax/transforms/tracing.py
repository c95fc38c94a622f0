"""Recording a function of pytrees as a program.

`trace_function` is how every transform that needs a program of a function gets one: `jit`,
`make_jaxpr`, library functions, control flow, checkpoint, custom rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import LaterArguments, check_results, debug_info
from minijax.core.avals import AbstractValue
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import is_constant

__all__ = ["Traced", "any_constant", "close_over", "positional", "trace_function"]


class Traced:
    """A function of pytrees as a program: `closed` takes `consts`, then the leaves of the arguments.

    `plans` is a table for its users, of what they derive from the program.
    """

    __slots__ = ("closed", "consts", "name", "out_tree", "plans")

    def __init__(self, closed: ClosedJaxpr, consts: Sequence[Any], out_tree: Any, name: str = ""):
        self.closed, self.consts = closed, list(consts)
        self.out_tree, self.name = out_tree, name
        self.plans: dict[Any, Any] = {}

    def is_lasting(self) -> bool:
        """Whether it can be kept for other calls: it closes over nothing that is being traced."""
        return all(map(is_constant, self.consts)) and all(map(is_constant, self.closed.consts))


def is_traced(x: Any) -> bool:
    """Whether a constant is a tracer of an outer trace, or no array."""
    return not is_constant(x)


def any_constant(x: Any) -> bool:
    """Return True: as `hoisted`, it makes arguments of all constants."""
    return True


def trace_function(
    what: str, fun: Callable, in_tree: Any, avals: Sequence[AbstractValue], *,
    statics: Iterable[tuple[int | str, Any]] = (),
    wrap: Callable[[Callable, list], Callable] | None = None,
    hoisted: Callable[[Any], bool] | None = is_traced, checked: str | None = None,
    values: Any = None,
) -> Traced:  # fmt: skip
    """Record `fun(*args, **kwargs)`, where `in_tree` is the structure of `(args, kwargs)`.

    - `what`: name of the transform, for error messages; `checked`: the name in those on results
    - `avals`: types of the leaves
    - `statics`: further arguments, by position or name, with their values
    - `wrap`: makes the function that is recorded of the one on leaves that calls `fun`, which returns
      the leaves of the results, and of the list at the end of which it leaves their structure
    - `hoisted`: which constants become leading arguments, by default those being traced
    - `values`: see `JaxprTrace`
    """
    found = []

    def call(*leaves):
        args, kwargs = in_tree.unflatten(leaves)
        if statics:
            args, kwargs = list(args), dict(kwargs)
            for where, value in statics:
                if isinstance(where, int):
                    args.insert(where, value)
                else:
                    kwargs[where] = value
        outs, out_tree = tree_util.flatten(fun(*args, **kwargs))
        check_results(outs, fun, out_tree, checked or what)
        found.append(out_tree)
        return outs

    run = call if wrap is None else wrap(call, found)
    info = debug_info(what, fun, in_tree, statics)
    closed = trace_to_jaxpr(run, avals, info, values)
    info.out_tree = found[-1]
    consts: Sequence[Any] = ()
    if hoisted is not None:
        closed, consts = close_over(closed, hoisted)
    return Traced(closed, consts, info.out_tree, info.func_name)


def positional(trees: Iterable[Any]) -> Any:
    """Return the structure of `(args, kwargs)` for positional arguments of these structures."""
    return tree_util.treedef_tuple([tree_util.treedef_tuple(trees), _NO_KEYWORDS])


_NO_KEYWORDS = tree_util.tree_structure({})


def close_over(closed: ClosedJaxpr, wanted: Callable[[Any], bool]) -> tuple[ClosedJaxpr, list[Any]]:
    """Make leading arguments of the constants that `wanted` picks; return these constants too."""
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    picked = [(v, c) for v, c in pairs if wanted(c)]
    if not picked:
        return closed, []
    others = [(v, c) for v, c in pairs if not wanted(c)]
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in others],
        invars=[*(v for v, _ in picked), *closed.jaxpr.invars],
        debug_info=LaterArguments(closed.jaxpr.debug_info, len(picked)),
    )
    return ClosedJaxpr(jaxpr, [c for _, c in others]), [c for _, c in picked]
