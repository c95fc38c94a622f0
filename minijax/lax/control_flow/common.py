"""The parts that control-flow functions share: tracing their arguments, and checking results.

A traced function is remembered while the function lives, so that an eager loop that is called again
is neither traced nor compiled again.
"""

from __future__ import annotations

import functools
import itertools
import operator
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
from minijax.runtime.mesh import get_abstract_mesh
from minijax.transforms.jit import jit_p
from minijax.transforms.tracing import Traced, any_constant, positional, trace_function

__all__ = [
    "check_callables", "check_carry", "difference", "listed", "plain",
    "program_of", "run_inline", "same_type", "traced_body", "splits_as", "varying_hint",
]  # fmt: skip

# -- tracing the functions that a user gives ----------------------------------------------------

_TRACED_FOR = {"while_loop": "while_body"}  # what errors say, beside the condition's while_cond


def program_of(
    name: str,
    fun: Callable,
    trees: tuple[Any, ...],
    avals: Sequence[AbstractValue],
    kind: Any = None,
    adapt: Callable[[Callable], Callable] | None = None,
    splits: tuple[Any, ...] = (),
) -> Traced:
    """Record `fun` on arguments of these tree structures, whose leaves have these avals.

    All that it closes over is an argument of the program. `adapt` makes from `fun` the function that
    is recorded; `kind` is a key that stands for it. `splits` says how its first results are to be
    split, as `splits_as` gives it.
    """
    avals = tuple(avals)

    def make() -> Traced:
        split = _split_results(fun, splits) if splits else fun
        traced = trace_function(
            _TRACED_FOR.get(name, name),
            split if adapt is None else adapt(split),
            positional(trees),
            avals,
            hoisted=any_constant,
            checked=name,
        )
        if traced.closed.effects:
            check_allowed(control_flow_allowed, traced.closed.effects, f"`{name}`")
        return traced

    # A bound method is a new object at each access, and may read a state that changes.
    if hasattr(fun, "__self__"):
        return make()
    return kept_with(fun, "control flow").find(
        (kind, trees, avals, splits), make, Traced.is_lasting
    )


def _split_results(fun: Callable, splits: Sequence[Any]) -> Callable:
    @functools.wraps(fun)
    def split(*args: Any) -> Any:
        leaves, tree = tree_util.flatten(fun(*args))
        pairs = itertools.zip_longest(leaves, splits[: len(leaves)])
        return tree.unflatten([split_as(x, where) for x, where in pairs])

    return split


def splits_as(avals: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    """Return how values of types `others` have to be split for them to be of types `avals`.

    Where no mesh is in force, what is not split may be on no mesh at all, and goes with what is
    split. An empty tuple says that there is nothing to do.
    """
    if not get_abstract_mesh().empty:
        return ()
    splits = [
        where if where and explicit_of(y) is None and x.shape == getattr(y, "shape", None) else None
        for x, y in zip(avals, others, strict=False)
        for where in [explicit_of(x)]
    ]
    return tuple(splits) if any(splits) else ()


def traced_body(
    fun: Callable,
    traced: Traced,
    leaves: Sequence[Any],
    avals: Sequence[Any],
    trace: Callable[..., Traced],
    carry_of: Callable[[Traced], Sequence[Any]],
) -> tuple[Traced, Sequence[Any], Sequence[Any]]:
    """Trace the body of a loop on a carry of types that it keeps, if there are such.

    - `traced`: its program for the types `avals` of the initial values `leaves`
    - `trace`: makes the program for other types, with `splits` as `program_of` takes them
    - `carry_of`: gives the types of the carry that a program returns

    The result is the program, the initial values and the types of the carry.
    """
    while (changed := _promoted(fun, leaves, avals, carry_of(traced))) is not None:
        leaves, avals = changed
        traced = trace(avals)
    splits = splits_as(avals, carry_of(traced))
    return trace(avals, splits=splits) if splits else traced, leaves, avals


def _promoted(
    fun: Callable, leaves: Sequence[Any], in_avals: Sequence[Any], out_avals: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """The initial values and types of a loop that its body keeps, as far as can be seen from one step.

    Weakly typed values are converted to what the body makes of them. What it splits over a mesh that
    is not in force is so from the start; where it is a library's, values that it makes vary over mesh
    axes, or splits over them, do and are so too.
    None if nothing has to be changed. `out_avals` are those of the carry that the body returns.
    """
    if len(in_avals) != len(out_avals):
        return None
    found, types = list(leaves), list(in_avals)
    for index, (given, made) in enumerate(zip(in_avals, out_avals, strict=True)):
        if given is made:
            continue
        more, where = vma_of(made) - vma_of(given), explicit_of(made)
        splits = where is not None and explicit_of(given) is None and given.shape == made.shape
        if splits and get_abstract_mesh().empty:
            types[index] = given.update(sharding=where)
        elif (more or splits) and written_in(fun).startswith("minijax."):
            found[index] = split_as(vary(leaves[index], more), where if splits else None)
            types[index] = get_aval(found[index])
        elif given.weak_type and given.dtype != made.dtype:
            joined, _ = dtypes.promote(((given.dtype, True), (made.dtype, made.weak_type)))
            if joined == made.dtype:
                found[index] = convert_element_type(leaves[index], joined)
                types[index] = get_aval(found[index])
    return None if all(map(operator.is_, types, in_avals)) else (found, types)


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
    differing = [
        (
            given,
            made,
            f"the input carry {'component ' if path else ''}{base}{tree_util.keystr(path)}",
        )
        for (path, _), given, made in zip(paths, in_avals, out_avals, strict=True)
        if not same_type(given, made)
    ]
    text = listed(
        f"{which} has type {plain(given)} but the corresponding output carry component has type "
        f"{plain(made)}, so {difference(given, made)}"
        for given, made, which in differing
    )
    hint = varying_hint(
        [(given, made, f", to the initial carry value corresponding to {which}")
         for given, made, which in differing]
    )  # fmt: skip
    raise TypeError(
        f"{what} body function carry input and carry output must have equal types, but they "
        f"differ:\n\n{text}{hint}\n\nRevise the function so that all output types match the "
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
    names = {"dtype": "dtypes", "shape": "shapes", "vma": "manual axis types"}
    differing = [
        f"the {what} do not match"
        for name, what in names.items()
        if getattr(x, name, None) != getattr(y, name, None)
    ]
    return ", and ".join(differing) or "the shardings do not match"


def varying_hint(pairs: Sequence[tuple[Any, Any, str]]) -> str:
    """Return how to make values vary over the mesh axes that others vary over; "" if that is no help.

    Each is a type, the one that it has to be, and to which value this applies.
    """
    hints = [
        f"applying `jax.lax.pcast(..., {_missing(given, wanted)}, to='varying')`{what}"
        for given, wanted, what in pairs
        if _missing(given, wanted)
    ]
    if not hints:
        return ""
    head = "This might be fixed by"
    lines = ";\n".join(f"  * {hint}" for hint in hints)
    return f"\n\n{head} {hints[0]}." if len(hints) == 1 else f"\n\n{head}:\n{lines}."


def _missing(given: Any, wanted: Any) -> tuple:
    """The mesh axes over which values of the one type vary, and of the other do not."""
    varying, fewer = (frozenset(getattr(aval, "vma", ())) for aval in (wanted, given))
    return tuple(sorted(varying - fewer, key=str))


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
