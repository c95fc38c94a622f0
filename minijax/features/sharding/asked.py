"""The shardings that `jit` is asked for, of its arguments and of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.staging import recording_trace
from minijax.features.sharding.constraints import (
    check_asked,
    check_ranks,
    constrained,
    flat_places,
)
from minijax.features.sharding.memory_layouts import asked_place_p, check_layout, layout_of
from minijax.features.sharding.program_placement import check_memory
from minijax.runtime.layouts import sharding_in
from minijax.runtime.mesh import Mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.transforms.batching import BatchTracer
from minijax.transforms.jvp import JVPTracer

__all__ = ["AskedShardings"]

_LEAF = tree_util.tree_structure(0)


class AskedShardings:
    """Trees of shardings and `Format`s, prefixes of those of arguments and results; part of a key."""

    __slots__ = ("elsewhere", "ins", "key", "outs")

    def __init__(self, ins: Any, outs: Any):
        check_asked("jit in_shardings", ins)
        check_asked("jit out_shardings", outs)
        self.ins, self.outs = tuple(ins) if isinstance(ins, list) else ins, outs
        self.key = _hashable(ins), _hashable(outs)
        kinds = {getattr(sharding_in(x), "memory_kind", None) for x in tree_util.tree_leaves(ins)}
        # Whether an argument is asked for in another memory than that of its device.
        self.elsewhere = bool(kinds - {None, "device"})

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AskedShardings) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def params(self, call: Any, out_tree: Any) -> dict[str, tuple | None]:
        """Return what is asked for, one for each leaf of the arguments and of the results."""
        return {
            "in_shardings": self.arguments(call),
            "out_shardings": self.results(out_tree),
        }

    def arguments(self, call: Any) -> tuple | None:
        """Return the sharding of each leaf of the arguments of a call; ValueError for named ones."""
        if self.ins is None:
            return None
        if call.named:
            raise ValueError(
                "pjit does not support kwargs when in_shardings is specified: they would have no "
                f"sharding. {call.name} was given {call.named}; pass them by position."
            )
        self._check_arguments(len(call.in_tree.children()[0].children()))
        return _flat("in_shardings", (self.ins, None), call.in_tree, kws=True)

    def _check_arguments(self, count: int) -> None:
        """ValueError unless there is one sharding for all arguments, or one entry for each."""
        if tree_util.treedef_is_leaf(tree_util.tree_structure(self.ins)):
            return
        if not isinstance(self.ins, tuple):
            wrong = f"is not a tuple: got {type(self.ins)} instead"
        elif len(self.ins) != count:
            wrong = (
                f"is the wrong length: got a tuple or list of length {len(self.ins)} for an args "
                f"tuple of length {count}"
            )
        else:
            return
        raise ValueError(
            "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. "
            "In particular, pjit in_shardings must either be a Sharding, a PartitionSpec, or a tuple "
            f"of length equal to the number of positional arguments. But pjit in_shardings {wrong}."
        )

    def results(self, out_tree: Any) -> tuple | None:
        """Return the sharding of each leaf of the results."""
        if self.outs is None:
            return None
        return _flat("out_shardings", self.outs, out_tree)

    def check(self, call: Any) -> None:
        """ValueError for arrays in other memory than is asked for; values of the host are put there."""
        if self.elsewhere and recording_trace() is None:
            for x, place in zip(call.leaves, self.arguments(call), strict=True):
                for array in _held(x) if place is not None else ():
                    check_memory(array.signature, sharding_in(place))

    def constrain(self, call: Any, run: Callable, trees: list) -> Callable:
        """Return `run`, a function on leaves, with arguments and results constrained as asked.

        It leaves the structure of the results at the end of `trees`.
        """

        def constrained_run(*leaves):
            outs = run(*self.constrain_arguments(leaves, call))
            return self.constrain_results(outs, trees[-1])

        return constrained_run

    def constrain_arguments(self, leaves: Sequence[Any], call: Any) -> Sequence[Any]:
        """Return the leaves of the arguments of a call, constrained as asked."""
        asked = self.arguments(call)
        if asked is None:
            return leaves
        info = getattr(getattr(leaves[0], "_trace", None), "debug_info", None) if leaves else None
        _check(leaves, asked, "argument", info and info.arg_names)
        return [
            _constrained(_marked(x, place, False), place)
            for x, place in zip(leaves, asked, strict=True)
        ]

    def constrain_results(self, outs: Sequence[Any], out_tree: Any) -> Sequence[Any]:
        """Return the leaves of the results, constrained as asked."""
        asked = self.results(out_tree)
        if asked is None:
            return outs
        paths = tree_util.generate_key_paths(out_tree.unflatten(range(len(outs))))
        names = ["result" + tree_util.keystr(path) for path, _ in paths]
        _check(outs, asked, "output", names)
        return [
            _marked(_constrained(x, place), place, True)
            for x, place in zip(outs, asked, strict=True)
        ]


def _held(x: Any) -> Iterator[ArrayImpl]:
    """Yield the arrays that an argument is, or that it holds under transforms that run now."""
    if type(x) is ArrayImpl:
        yield x
    elif isinstance(x, JVPTracer):
        yield from _held(x.primal)
        yield from _held(x.tangent)
    elif isinstance(x, BatchTracer) and getattr(x.value, "committed", True):
        yield from _held(x.value)  # others may be of NumPy


def _check(
    values: Sequence[Any], asked: Sequence[Any], what: str, names: Sequence[str] | None
) -> None:
    """ValueError for shardings or layouts that do not fit the values."""
    check_ranks(f"pjit {what}s", list(map(sharding_in, asked)), values, names)
    for index, (value, place) in enumerate(zip(values, asked, strict=True)):
        name = f"jit {what}s with pytree key path {names[index] if names else index}"
        check_layout(name, layout_of(place), np.shape(value))


def _constrained(x: Any, place: Any) -> Any:
    """Return a value with a constraint to the sharding asked for; none to that of one device."""
    where = sharding_in(place)
    if not isinstance(where, NamedSharding):
        return x
    return x if _is_marked(where) else constrained(x, where)


def _is_marked(where: NamedSharding) -> bool:
    """Whether a constraint would say of the type how a value is split: a jit says it of arrays alone."""
    return bool(where.mesh.explicit_axes) and not where.spec.sums


def _marked(x: Any, place: Any, result: bool) -> Any:
    """Return an argument or a result, marked with what no constraint says of its place."""
    if layout_of(place) is None:
        place = sharding_in(place)
    named = isinstance(place, NamedSharding) and isinstance(place.mesh, Mesh)
    if place is None or (named and not _is_marked(place)) or not hasattr(get_aval(x), "shape"):
        return x
    return asked_place_p.bind(x, place=place, result=result)


def _flat(which: str, given: Any, tree: Any, **options: bool) -> tuple:
    return tuple(flat_places(f"jit {which}", given, tree, named=f"pjit {which}", **options))


def _hashable(shardings: Any) -> Any:
    """A tree of shardings as part of a key."""
    if isinstance(shardings, (list, tuple)):
        return (type(shardings), *map(_hashable, shardings))
    if isinstance(shardings, dict):
        return (dict, *[(key, _hashable(shardings[key])) for key in sorted(shardings, key=str)])
    leaves, tree = tree_util.flatten(shardings)
    return shardings if tree == _LEAF else (tree, *leaves)


hooks.fill(
    asked_shardings=lambda ins, outs: None if ins is outs is None else AskedShardings(ins, outs)
)
