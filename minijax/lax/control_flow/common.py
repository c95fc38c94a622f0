"""The parts that control-flow functions share: tracing their arguments, and checking results.

A traced function is remembered while the function lives, so that an eager loop that is called again
is neither traced nor compiled again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax import dtypes, tree_util
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.caches import kept_with
from minijax.core.effects import check_allowed, control_flow_allowed
from minijax.core.jaxpr import ClosedJaxpr
from minijax.features.sharding.explicit import split_as
from minijax.features.sharding.types import explicit_of, vma_of
from minijax.lax.casts import vary
from minijax.lax.convert import convert_element_type
from minijax.namespace import written_in
from minijax.transforms.jit import jit_p
from minijax.transforms.tracing import Traced, any_constant, positional, trace_function

__all__ = [
    "check_callables", "check_carry", "difference", "listed", "plain",
    "program_of", "promoted", "run_inline", "same_type",
]  # fmt: skip

# -- tracing the functions that a user gives ----------------------------------------------------


def program_of(
    name: str,
    fun: Callable,
    trees: tuple[Any, ...],
    avals: Sequence[AbstractValue],
    kind: Any = None,
    adapt: Callable[[Callable], Callable] | None = None,
) -> Traced:
    """Record `fun` on arguments of these tree structures, whose leaves have these avals.

    All that it closes over is an argument of the program. `adapt` makes from `fun` the function that
    is recorded; `kind` is a key that stands for it.
    """
    avals = tuple(avals)

    def make() -> Traced:
        traced = trace_function(
            name,
            fun if adapt is None else adapt(fun),
            positional(trees),
            avals,
            hoisted=any_constant,
        )
        if traced.closed.effects:
            check_allowed(control_flow_allowed, traced.closed.effects, f"`{name}`")
        return traced

    # A bound method is a new object at each access, and may read a state that changes.
    if hasattr(fun, "__self__"):
        return make()
    return kept_with(fun, "control flow").find((kind, trees, avals), make, Traced.is_lasting)


def promoted(
    fun: Callable, leaves: Sequence[Any], in_avals: Sequence[Any], out_avals: Sequence[Any]
) -> list[Any] | None:
    """The initial values of a loop with weakly typed ones converted to what the body makes of them.

    Where the body is a library's, values that it makes vary over mesh axes, or splits over them, do
    and are so from the start.
    None if none has to be converted. `out_avals` are those of the carry that the body returns.
    """
    if len(in_avals) != len(out_avals):
        return None
    found, changed = list(leaves), False
    for index, (given, made) in enumerate(zip(in_avals, out_avals, strict=True)):
        if given is made:
            continue
        more, where = vma_of(made) - vma_of(given), explicit_of(made)
        splits = where is not None and explicit_of(given) is None and given.shape == made.shape
        if (more or splits) and written_in(fun).startswith("minijax."):
            found[index] = split_as(vary(leaves[index], more), where if splits else None)
            changed = changed or get_aval(found[index]) is not given
        elif given.weak_type and given.dtype != made.dtype:
            joined, _ = dtypes.promote(((given.dtype, True), (made.dtype, made.weak_type)))
            if joined == made.dtype:
                found[index] = convert_element_type(leaves[index], joined)
                changed = True
    return found if changed else None


def check_callables(message: str, *functions: Any) -> None:
    """TypeError with the message unless all of them can be called."""
    if not all(map(callable, functions)):
        raise TypeError(message)


def run_inline(closed: ClosedJaxpr, name: str, *args: Any) -> list[Any]:
    """Evaluate a program: as one compiled program when eager, equation by equation when traced."""
    return jit_p.bind(
        *args, jaxpr=closed, name=name, donated_invars=(), keep_unused=False, inline=True,
        compiler_options_kvs=(), device=None,
    )  # fmt: skip


# -- checking what a loop carries -----------------------------------------------------------------


def check_carry(
    what: str, fun: Callable, argument: int, in_tree: Any, in_avals: Sequence[Any],
    out_tree: Any, out_avals: Sequence[Any], default: str = "loop_carry",
) -> None:  # fmt: skip
    """TypeError unless the carry that a body returns has the structure and types of its input."""
    if in_tree != out_tree:
        base = _carry_name(fun, argument, default)
        raise TypeError(
            f"{what} body function carry input and carry output must have the same pytree "
            f"structure, but they differ:\n\n{_tree_differences(base, in_tree, out_tree)}\n\n"
            "Revise the function so that the carry output has the same pytree structure as the "
            "carry input."
        )
    for given, made in zip(in_avals, out_avals, strict=True):
        if given is not made and not same_type(given, made):
            break
    else:
        return
    base = _carry_name(fun, argument, default)
    paths = tree_util.generate_key_paths(in_tree.unflatten(list(range(in_tree.num_leaves))))
    text = listed(
        f"the input carry {'component ' if path else ''}{base}{tree_util.keystr(path)} has type "
        f"{plain(given)} but the corresponding output carry component has type {plain(made)}, so "
        f"{difference(given, made)}"
        for (path, _), given, made in zip(paths, in_avals, out_avals, strict=True)
        if not same_type(given, made)
    )
    raise TypeError(
        f"{what} body function carry input and carry output must have equal types, but they "
        f"differ:\n\n{text}\n\nRevise the function so that all output types match the "
        "corresponding input types (for instance with .astype on the result, or by giving the "
        "initial value the type that the body returns)."
    )


def same_type(x: AbstractValue, y: AbstractValue) -> bool:
    """Whether two avals are equal up to weak types."""
    return x is y or x.strip_weak_type() is y.strip_weak_type() or (x.is_high and x == y)


def plain(aval: AbstractValue) -> str:
    return aval.strip_weak_type().str_short()


def difference(x: Any, y: Any) -> str:
    """Return a description of how two types differ."""
    if getattr(x, "shape", None) != getattr(y, "shape", None):
        also = " and the dtypes do not match" if x.dtype != y.dtype else ""
        return f"the shapes do not match{also}"
    if getattr(x, "dtype", None) != getattr(y, "dtype", None):
        return "the dtypes do not match"
    if getattr(x, "vma", None) != getattr(y, "vma", None):
        return "the varying manual axes do not match"
    return "the shardings do not match"


def _carry_name(fun: Callable, argument: int, default: str) -> str:
    code = getattr(fun, "__code__", None)
    if code is None or argument >= code.co_argcount:
        return default
    return code.co_varnames[argument]


def _tree_differences(base: str, in_tree: Any, out_tree: Any) -> str:
    return listed(
        f"the input carry {'component ' if path else ''}{base}{tree_util.keystr(path)} is a {given} "
        f"but the corresponding component of the carry output is a {made}, so {reason}"
        for path, given, made, reason in tree_util.differences(in_tree, out_tree)
    )


def listed(found: Iterable[str]) -> str:
    """Return one finding as a sentence, several as a list."""
    lines = list(found)
    if len(lines) == 1:
        return f"{re.sub('^the ', 'The ', lines[0])}."
    return ";\n".join(f"  * {line}" for line in lines) + "."
