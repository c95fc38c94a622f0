"""What the control-flow functions share: tracing what they are given, and checking what it returns.

A traced function is remembered while the function lives, so that an eager loop that is called again
is neither traced nor compiled again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from minijax import dtypes, tree_util
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.effects import check_allowed, control_flow_allowed
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import is_constant
from minijax.lax.casts import vary
from minijax.lax.convert import convert_element_type
from minijax.namespace import written_in
from minijax.transforms.arguments import argument_names, fun_name
from minijax.transforms.caches import also_cleared
from minijax.transforms.jit import check_results, jit_p

__all__ = [
    "TracedFunction", "arrayed", "check_callables", "check_carry", "difference", "plain",
    "promoted", "run_inline", "same_type", "trace_function",
]  # fmt: skip

# -- tracing the functions that a user gives ----------------------------------------------------


class TracedFunction:
    """A function as a program: `closed` takes `consts`, then the leaves of the arguments."""

    __slots__ = ("closed", "consts", "out_tree", "plans")

    def __init__(self, closed: ClosedJaxpr, consts: list[Any], out_tree: Any):
        self.closed = closed
        self.consts = consts
        self.out_tree = out_tree
        self.plans: dict[Any, Any] = {}  # how the functions on the primitives use it


_memos: weakref.WeakKeyDictionary[Callable, dict] = weakref.WeakKeyDictionary()


def _memo_of(fun: Callable) -> dict | None:
    """Where the programs of a function are kept; None if it cannot be kept by identity."""
    try:
        memo = _memos.get(fun)
        if memo is None:
            # A bound method is a new object at each access, and may read a state that changes.
            if hasattr(fun, "__self__"):
                return None
            memo = _memos[fun] = {}
        return memo
    except TypeError:
        return None


class _WeakDebugInfo(DebugInfo):
    """Names of the arguments on demand. It must not keep the function, whose memo it lies in."""

    __slots__ = ("_fun", "_tree")

    def __init__(self, traced_for: str, fun: Callable, trees: Sequence[Any]):
        super().__init__(traced_for, fun_name(fun))
        try:
            self._fun = weakref.ref(fun)
        except TypeError:
            self._fun = lambda: None
        self._tree = trees

    @property
    def arg_names(self):
        fun = self._fun()
        return None if fun is None else argument_names(fun, _args_tree(self._tree))


def _args_tree(trees: Sequence[Any]) -> Any:
    leaves = iter(range(sum(tree.num_leaves for tree in trees)))
    args = tuple([tree.unflatten([next(leaves) for _ in range(tree.num_leaves)]) for tree in trees])
    return tree_util.tree_structure((args, {}))


def trace_function(
    name: str,
    fun: Callable,
    trees: tuple[Any, ...],
    avals: Sequence[AbstractValue],
    kind: Any = None,
    adapt: Callable[[Callable], Callable] | None = None,
) -> TracedFunction:
    """Record `fun` on arguments of these tree structures, whose leaves have these avals.

    `adapt` makes from `fun` the function that is recorded; `kind` is a key that stands for it.
    """
    avals = tuple(avals)
    key = (kind, local.context.key, trees, avals)
    memo = _memo_of(fun)
    if memo is not None:
        found = memo.get(key)
        if found is not None:
            return found
    traced = _trace(name, fun, trees, avals, adapt)
    kept = not any(not is_constant(c) for c in traced.consts)
    if memo is not None and kept:
        memo[key] = traced
    return traced


def _trace(name, fun, trees, avals, adapt) -> TracedFunction:
    call = fun if adapt is None else adapt(fun)
    out_trees = []

    def flat(*leaves):
        start, args = 0, []
        for tree in trees:
            stop = start + tree.num_leaves
            args.append(tree.unflatten(leaves[start:stop]))
            start = stop
        outs, out_tree = tree_util.flatten(call(*args))
        out_trees.append(out_tree)
        check_results(outs, fun, out_tree, name)
        return outs

    closed = trace_to_jaxpr(flat, avals, _WeakDebugInfo(name, fun, trees))
    if closed.effects:
        check_allowed(control_flow_allowed, closed.effects, f"`{name}`")
    consts = closed.consts
    if consts:
        jaxpr = closed.jaxpr
        jaxpr = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        closed = ClosedJaxpr(jaxpr)
    return TracedFunction(closed, consts, out_trees[0])


def promoted(
    fun: Callable, leaves: Sequence[Any], in_avals: Sequence[Any], out_avals: Sequence[Any]
) -> list[Any] | None:
    """The initial values of a loop with weakly typed ones converted to what the body makes of them.

    Where the body is a library's, values that it makes vary over mesh axes vary from the start.
    None if none has to be converted. `out_avals` are those of the carry that the body returns.
    """
    if len(in_avals) != len(out_avals):
        return None
    found, changed = list(leaves), False
    for index, (given, made) in enumerate(zip(in_avals, out_avals, strict=True)):
        if given is made:
            continue
        more = getattr(made, "vma", frozenset()) - getattr(given, "vma", frozenset())
        if more and written_in(fun).startswith("minijax."):
            found[index] = vary(leaves[index], more)
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


def arrayed(x: Any) -> Any:
    """A result that is an argument passed on: numbers become arrays."""
    return as_value(x)


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
    lines = []
    for (path, _), given, made in zip(paths, in_avals, out_avals, strict=True):
        if not same_type(given, made):
            where = tree_util.keystr(path)
            lines.append(
                f"The input carry {'component ' if where else ''}{base}{where} has type "
                f"{plain(given)} but the corresponding output carry component has type "
                f"{plain(made)}, so {difference(given, made)}."
            )
    text = lines[0] if len(lines) == 1 else "\n".join(f"  * {line}" for line in lines)
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
    """In words, in what two types differ."""
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
    lines = [
        f"The input carry {'component ' if where else ''}{base}{where} is {given} but the "
        f"corresponding component of the carry output is {made}, so {reason}."
        for where, given, made, reason in tree_differences(in_tree, out_tree)
    ]
    return "\n".join(lines) or f"{in_tree} and {out_tree}."


def tree_differences(first: Any, second: Any, where: str = "") -> list[tuple[str, str, str, str]]:
    """Where two tree structures differ: the path, what stands there in each, and in what."""
    x, y = first.node_data(), second.node_data()
    if x is None or y is None or x[0] is not y[0]:
        kinds = _node(x, first), _node(y, second)
        return [] if kinds[0] == kinds[1] else [(where, *kinds, "their Python types differ")]
    children = first.children(), second.children()
    if len(children[0]) != len(children[1]):
        name = x[0].__name__
        kinds = [f"a {name} with {len(c)} children" for c in children]
        return [(where, *kinds, "the numbers of children differ")]
    if x[1] != y[1]:
        kinds = [f"a {data[0].__name__} with pytree metadata {data[1]}" for data in (x, y)]
        return [(where, *kinds, "the pytree node metadata does not match")]
    keys = _child_names(first, x, len(children[0]))
    found = []
    for key, one, two in zip(keys, *children, strict=True):
        found += tree_differences(one, two, where + key)
    return found


def _node(data: Any, tree: Any) -> str:
    if data is not None:
        return f"a {data[0]}"
    return "a pytree leaf" if tree.num_leaves else "a <class 'NoneType'>"


def _child_names(tree: Any, data: Any, count: int) -> list[str]:
    try:
        node = tree.unflatten(list(range(tree.num_leaves)))
        children, _ = tree_util.flatten_one_level_with_keys(node)
        return [tree_util.keystr((key,)) for key, _ in children]
    except Exception:  # a node class that takes no integers: say at least which child
        return [f"[{index}]" for index in range(count)]


also_cleared.append(_memos.clear)
