"""`cond`, `switch` and `platform_dependent`: a choice of functions, on pytrees.

The primitive and its rules stand in `cond_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import fun_name
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.core.trace import Tracer
from minijax.features.sharding.types import explicit_of
from minijax.lax.compare import clamp_p, ne_p
from minijax.lax.control_flow.common import (
    check_callables,
    difference,
    listed,
    plain,
    program_of,
    same_type,
    splits_as,
    varying_hint,
)
from minijax.lax.control_flow.cond_rules import cond_p, platform_index_p
from minijax.lax.convert import to_dtype
from minijax.tracebacks import boundary
from minijax.transforms.tracing import Traced

__all__ = ["cond", "platform_dependent", "switch"]

T = TypeVar("T")

# -- from the traced branches to the equation -----------------------------------------------------


class _Plan:
    """The plan by which traced branches become an equation.

    An output that is the same operand in all branches is no output of the equation: `passed` has
    for each output the number of the operand, or None.
    """

    __slots__ = ("branches", "consts", "passed")


def _make_plan(traced: Sequence[Traced]) -> _Plan:
    plan = _Plan()
    plan.consts, position = [], {}
    for each in traced:
        for c in each.consts:
            if id(c) not in position:
                position[id(c)] = len(plan.consts)
                plan.consts.append(c)
    jaxprs = []
    for each in traced:
        jaxpr = each.closed.jaxpr
        count = len(each.consts)
        own = {position[id(c)]: v for c, v in zip(each.consts, jaxpr.invars, strict=False)}
        consts = [own.get(k) or Var(get_aval(c)) for k, c in enumerate(plan.consts)]
        jaxprs.append(jaxpr.replace(invars=[*consts, *jaxpr.invars[count:]]))
    plan.passed = _passed_on(jaxprs)
    left = [k for k, place in enumerate(plan.passed) if place is None]
    whole = not plan.consts and len(left) == len(plan.passed)
    plan.branches = tuple(
        each.closed
        if whole
        else ClosedJaxpr(jaxpr.replace(outvars=[jaxpr.outvars[k] for k in left]))
        for each, jaxpr in zip(traced, jaxprs, strict=True)
    )
    return plan


def _passed_on(jaxprs: Sequence[Jaxpr]) -> list[int | None]:
    """Number, for each output, the input that it is in all of these programs; None if none is."""
    numbers = [{id(var): k for k, var in enumerate(jaxpr.invars)} for jaxpr in jaxprs]
    passed: list[int | None] = []
    for outs in zip(*[jaxpr.outvars for jaxpr in jaxprs], strict=True):
        found = {known.get(id(var)) for known, var in zip(numbers, outs, strict=True)}
        passed.append(found.pop() if len(found) == 1 else None)
    return passed


def _choose(
    name: str,
    index: Any,
    branches: Sequence[Callable],
    labels: Sequence[str],
    operands: tuple,
    platforms: tuple | None = None,
) -> Any:
    """Trace the branches, check that they agree, and bind `cond_p`. Those of `cond` come as the
    user gives them, the one for True first.
    """
    leaves, tree = tree_util.flatten(operands)
    trees = tuple(tree.children())
    avals = tuple([get_aval(x) for x in leaves])
    traced = tuple([program_of(name, f, trees, avals) for f in branches])
    key = (name, traced[1:])
    plan = traced[0].plans.get(key)
    if plan is None:
        alike = [
            program_of(name, f, trees, avals, splits=splits) if splits else branch
            for f, branch, splits in zip(branches, traced, _splits(traced), strict=True)
        ]
        _check_agreement(name, alike, branches, labels)
        ordered = alike[::-1] if name == "cond" else alike
        plan = traced[0].plans[key] = _make_plan(ordered)
    args = [*plan.consts, *leaves]
    outs = []
    if None in plan.passed or any(branch.effects for branch in plan.branches):
        params = {} if platforms is None else {"branches_platforms": platforms}
        if any(branch.effects for branch in plan.branches):
            hooks.check_arguments(name, leaves, branches[0], tree_util.flatten((operands, {}))[1])
        outs = cond_p.bind(index, *args, branches=plan.branches, **params)
    if len(outs) != len(plan.passed):
        rest = iter(outs)
        outs = [next(rest) if k is None else as_value(args[k]) for k in plan.passed]
    return traced[0].out_tree.unflatten(outs)


def _splits(traced: Sequence[Traced]) -> list[tuple[Any, ...]]:
    """Return for each branch how its results are to be split: as another branch splits them."""
    columns = zip(*[branch.closed.out_avals for branch in traced], strict=False)
    first = [next((x for x in column if explicit_of(x)), column[0]) for column in columns]
    return [splits_as(first, branch.closed.out_avals) for branch in traced]


def _check_agreement(name, traced, branches, labels) -> None:
    first = traced[0]
    for other, f, label in zip(traced[1:], branches[1:], labels[1:], strict=True):
        named = f"{labels[0]} is {_where(branches[0])}\n{label} is {_where(f)}\n\n"
        both = f"{labels[0]} and/or {label}"
        if first.out_tree != other.out_tree:
            found = listed(
                f"{labels[0]} output{_at(path)} is a {x} but {label} output{_at(path)} is a {y}, so "
                f"{reason}"
                for path, x, y, reason in tree_util.differences(first.out_tree, other.out_tree)
            )
            raise TypeError(
                f"{name} branch outputs must have the same pytree structure, but they differ:\n\n"
                f"{named}{found}\n\nRevise {both} so that they have the same pytree structure."
            )
        lines, hint = _type_differences(first, other, labels[0], label)
        if lines:
            raise TypeError(
                f"{name} branches must have equal output types but they differ.\n\n"
                f"{named}{listed(lines)}{hint}\n\nRevise {both} so that all output types match (for "
                "instance with .astype on a result)."
            )


def _at(path: Any) -> str:
    return f" at path {tree_util.keystr(path)}" if path else ""


def _where(fun: Callable) -> str:
    """A function by name and, if it is written in Python, by its line."""
    code = getattr(fun, "__code__", None)
    place = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{fun_name(fun)}{place}"


def _type_differences(first, other, label, other_label) -> tuple[list[str], str]:
    """Return how the results of two branches differ, and what makes them vary over the same axes."""
    pairs = list(zip(first.closed.out_avals, other.closed.out_avals, strict=True))
    if all(same_type(x, y) for x, y in pairs):
        return [], ""
    tree = first.out_tree
    paths = tree_util.generate_key_paths(tree.unflatten(list(range(tree.num_leaves))))
    differing = [
        (_at(path), x, y)
        for (path, _), (x, y) in zip(paths, pairs, strict=True)
        if not same_type(x, y)
    ]
    lines = [
        f"the output of {label}{at} has type {plain(x)} but the corresponding output of "
        f"{other_label} has type {plain(y)}, so {difference(x, y)}"
        for at, x, y in differing
    ]
    hint = varying_hint(
        [
            (given, wanted, f" to the output of {which}{at}")
            for at, x, y in differing
            for given, wanted, which in ((x, y, label), (y, x, other_label))
        ]
    )
    return lines, hint


# -- cond and switch ------------------------------------------------------------------------------

_UNSET = object()


@boundary
def cond(*args: Any, **kwargs: Any) -> Any:
    """Apply one of two functions, by a condition: `cond(pred, true_fun, false_fun, *operands)`.

    - `pred`: boolean scalar, or a number that counts as true unless it is zero
    - `true_fun`, `false_fun`: functions of `operands`; both are traced, one is run (under `vmap`
      over `pred`, both are)
    - `operands`: pytrees of arrays; also `operand=x`, or `cond(pred, x, true_fun, y, false_fun)`

    The result has the structure, shapes and dtypes of the functions' results, which must agree:
    TypeError otherwise, and unless `pred` is a scalar. Source: the StableHLO operation
    `stablehlo.case`.

    >>> lax.cond(True, lambda x: x + 1, lambda x: -x, jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if len(args) == 5 and not kwargs and callable(args[2]) and callable(args[4]):
        if not callable(args[1]):
            return _cond_of_two(*args)
    elif "true_operand" in kwargs or "false_operand" in kwargs:
        return _cond_of_two(*args, **kwargs)
    return _cond(*args, **kwargs)


def _cond_of_two(pred, true_operand, true_fun, false_operand, false_fun):
    check_callables(
        "lax.cond: true_fun and false_fun arguments should be callable.", true_fun, false_fun
    )
    return _cond(
        pred, lambda x, y: true_fun(x), lambda x, y: false_fun(y), true_operand, false_operand
    )


def _cond(pred, true_fun, false_fun, *operands, operand=_UNSET):
    if operand is not _UNSET:
        if operands:
            raise TypeError(
                "if 'operand' keyword is passed then no positional operands can be passed, got "
                f"operand={operand!r} and positional operands {operands}: pass all by position."
            )
        operands = (operand,)
    check_callables(
        "lax.cond: true_fun and false_fun arguments should be callable.", true_fun, false_fun
    )
    if pred is None:
        raise TypeError("cond predicate is None: pass a boolean scalar.")
    known = _predicate(pred)
    if local.context.settings.disable_jit and not isinstance(known, Tracer):
        return (true_fun if known else false_fun)(*operands)
    if isinstance(known, Array):
        index = to_dtype(known, _INT32, False)
    else:
        index = _INDICES[known]
    return _choose("cond", index, (true_fun, false_fun), ("true_fun", "false_fun"), operands)


_cond.__qualname__ = "cond"  # which errors about its arguments name


_INT32 = np.dtype(np.int32)
_INDICES = {False: np.int32(0), True: np.int32(1)}


def _predicate(pred: Any) -> Any:
    """The predicate as a bool, or an array of booleans; TypeError for what is none."""
    if type(pred) in (bool, int, float):
        return bool(pred)
    try:
        aval = get_aval(pred)
    except TypeError:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of type {type(pred)}: pass a boolean scalar."
        ) from None
    if aval.shape:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of shape {aval.shape}. Reduce it with .any() or "
            ".all(); for a choice in each element use minijax.numpy.where."
        )
    if aval.dtype == np.bool_:
        return pred if isinstance(pred, Array) else bool(pred)
    if aval.dtype.kind == "c" or not dtypes.issubdtype(aval.dtype, np.number):
        raise TypeError(
            f"Pred type must be either boolean or number, got {aval.dtype.name}. Compare it first."
        )
    if not isinstance(pred, Array):
        return bool(pred)
    return ne_p.bind(pred, np.zeros((), aval.dtype)[()])


@boundary
def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _UNSET
) -> Any:
    """Apply one of several functions, by an index: `branches[index](*operands)`.

    - `index`: integer scalar, clamped to the branches that exist
    - `branches`: functions of `operands`; under `vmap` over the index all are run
    - `operands`: pytrees of arrays

    The result has the structure, shapes and dtypes of the functions' results, which must agree:
    TypeError otherwise, and unless `index` is an integer scalar. ValueError for an empty sequence.
    Source: the StableHLO operation `stablehlo.case`.

    >>> lax.switch(1, [lambda x: x, lambda x: -x], jnp.array([1, 2]))
    Array([-1, -2], dtype=int32)
    """
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if operand is not _UNSET:
        if operands:
            raise TypeError(
                "if 'operand' keyword is passed then no positional operands can be passed, got "
                f"operand={operand!r} and positional operands {operands}: pass all by position."
            )
        operands = (operand,)
    index = _index(index)
    branches = tuple(branches)
    if not branches:
        raise ValueError("Empty branch sequence: lax.switch needs at least one function.")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if isinstance(index, Array):
        if local.context.settings.disable_jit and not isinstance(index, Tracer):
            return branches[min(max(int(index), 0), last)](*operands)
        index = to_dtype(index, _INT32, False)
        index = clamp_p.bind(np.int32(0), index, np.int32(last))
    else:
        place = min(max(int(index), 0), last)
        if local.context.settings.disable_jit:
            return branches[place](*operands)
        index = np.int32(place)
    labels = ["branch 0", *(f"branch{k}" for k in range(1, len(branches)))]
    return _choose("switch", index, branches, labels, operands)


def _index(index: Any) -> Any:
    """The index, checked to be an integer scalar."""
    if type(index) is int:  # of any size: it is clamped
        return index
    try:
        aval = get_aval(index)
    except TypeError:
        raise TypeError(f"Index type must be an integer, got {index}.") from None
    if aval.shape:
        raise TypeError(
            f"Branch index must be scalar, got {index} of shape {aval.shape}. Use vmap to choose "
            "for each of several."
        )
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"Index type must be an integer, got {index} as {aval.dtype.name}: convert it, or use "
            "lax.cond."
        )
    return index


def platform_dependent(
    *args: Any, default: Callable[..., T] | None = None, **per_platform: Callable[..., T]
) -> T:
    """Apply the function that is given for the platform the program is compiled for.

    - `args`: pytrees of arrays
    - `per_platform`: functions by keyword `cpu`, `cuda`, `rocm`, `tpu`, ...
    - `default`: function for other platforms

    The result is that of the function. In a program that is traced, their results must have one
    structure, the same shapes and dtypes (TypeError otherwise). NotImplementedError if there is no
    function for the platform.
    Source: the StableHLO operation `stablehlo.case`.

    >>> lax.platform_dependent(jnp.array([1, 2]), cpu=lambda x: x + 1, default=lambda x: x + 1)
    Array([2, 3], dtype=int32)
    """
    for name, f in per_platform.items():
        if name == "gpu":
            raise ValueError(
                "Use 'cuda' or 'rocm' for lax.platform_dependent. A branch was given for 'gpu'."
            )
        check_callables(
            f"lax.platform_dependent: the {name!r} branch must be a callable, got {f!r}.", f
        )
    if default is not None:
        check_callables(
            f"lax.platform_dependent: the default branch must be a callable, got {default!r}.",
            default,
        )
    platforms: tuple = tuple((name,) for name in per_platform)
    branches = list(per_platform.values())
    labels = [f"the {name!r} branch" for name in per_platform]
    if default is not None:
        platforms = (*platforms, None)
        branches.append(default)
        labels.append("the default branch")
    index = platform_index_p.bind(platforms=platforms)
    if not isinstance(index, Tracer):
        return branches[int(index)](*args)
    return _choose("platform_dependent", index, branches, labels, args, platforms)
