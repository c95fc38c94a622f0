"""Code for calls that are made often, generated for one structure of arguments or of results.

Loops over the leaves, the hash of a tree and its building cost a call of ten arrays as much again
as finding its program; the same steps as lines of Python cost half. To make the source takes some
50 us for each leaf, so `jit` asks for it after some calls only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl, operand_from_host
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.transforms.cached_calls import NUMBERS, operand_of

__all__ = ["builder", "reader"]

_MOST = 200  # nodes of a tree; the source for a larger one takes long to make
_BUILT_IN = (dict, list, tuple)


ARRAY, HOST, STATIC = "array", "host", "static"


class _Static:
    """Stands for a static argument among the leaves of a call."""


_STATIC = _Static()
_KINDS = {ArrayImpl: ARRAY, np.ndarray: HOST, **dict.fromkeys(NUMBERS, HOST), _Static: STATIC}


def _operand(x: Any) -> tuple:
    """The signature and the buffer of a value of the host, as an operand of a call."""
    context = local.context
    if type(x) is np.ndarray and context.numbers_key is context.key:  # the most frequent
        x = operand_from_host(x, context)
    else:
        x = operand_of(x, context)
    return x.signature, x._buffer


def call_reader(
    readers: dict, args: tuple, kwargs: dict, statics: Sequence[int], static_names: Sequence[str]
) -> Callable | None:
    """`reader` of the structure of a call, kept in `readers`; None for leaves of other types."""
    leaves, tree = tree_util.flatten(
        (
            tuple([_STATIC if n in statics else x for n, x in enumerate(args)]),
            {n: _STATIC if n in static_names else x for n, x in kwargs.items()},
        )
    )
    kinds = tuple([_KINDS.get(type(x)) for x in leaves])
    if None in kinds:
        return None
    if (tree, kinds) not in readers:
        readers[tree, kinds] = reader(tree, kinds, _operand)
    return readers[tree, kinds]


def reader(
    tree: Any, kinds: Sequence[str] | None = None, operand: Callable[[Any], tuple] | None = None
) -> Callable[[tuple, dict], tuple[tuple, list]] | None:
    """`read(args, kwargs)` for calls of this structure, that of `(args, kwargs)`.

    It gives the key of a call and its operands. The leaves are arrays, or what `kinds` says of each:
    values of the host, of which `operand` gives signature and buffer, or static. For any other call it raises
    LookupError, AttributeError, TypeError or ValueError. None if the tree is too large.
    """
    if tree.num_nodes > _MOST:
        return None
    source = _Source(
        "args, kwargs", flatten=tree_util.flatten, ArrayImpl=ArrayImpl, operand=operand
    )
    leaves = [
        leaf
        for part, name in zip(tree.children(), ("args", "kwargs"), strict=True)
        for leaf in source.taken_apart(part, name)
    ]
    key, operands = "", []
    for leaf, kind in zip(leaves, kinds or [ARRAY] * len(leaves), strict=True):
        if kind is STATIC:
            key += f"type({leaf}), {leaf}, "
            continue
        signature, buffer = f"{leaf}.signature", f"{leaf}._buffer"
        if kind is HOST:
            found = f"({signature}, {buffer}) if type({leaf}) is ArrayImpl else operand({leaf})"
            signature, buffer = source.names(2)
            source.line(f"{signature}, {buffer} = {found}")
        key += f"{signature}, "
        operands.append(buffer)
    # One object stands for the tree, whose hash would walk it.
    mark = source.constant(object())
    source.line(f"return ({mark}, {key}), [{', '.join(operands)}]")
    return source.function()


def builder(tree: Any, signatures: Sequence) -> Callable[[Sequence], Any] | None:
    """`build(buffers)`, the pytree of arrays of these types; None if it is too large."""
    if tree.num_nodes > _MOST:
        return None
    source = _Source("buffers", new=object.__new__, ArrayImpl=ArrayImpl, signatures=signatures)
    leaves = source.names(tree.num_leaves)
    for leaf in leaves:
        source.line(f"{leaf} = new(ArrayImpl)")
        source.line(f"{leaf}._in_numpy = None")
    source.line(f"[{', '.join(f'{leaf}._buffer' for leaf in leaves)}] = buffers")
    source.line(f"[{', '.join(f'{leaf}.signature' for leaf in leaves)}] = signatures")
    source.line(f"return {source.put_together(tree, iter(leaves))}")
    return source.function()


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    """Equal structures have equal source, whatever their constants."""
    return compile(source, "<written for one structure>", "exec")


class _Source:
    """The lines of a function, and the constants that they name."""

    def __init__(self, parameters: str, **constants: Any):
        self.lines = [f"def written({parameters}):"]
        self.constants = constants
        self.count = 0

    def function(self) -> Callable:
        exec(_compiled("\n".join(self.lines)), self.constants)
        return self.constants.pop("written")  # no cycle: it is freed with its last caller

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def names(self, count: int) -> list[str]:
        """New names of variables."""
        self.count += count
        return [f"x{n}" for n in range(self.count - count, self.count)]

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def taken_apart(self, tree: Any, value: str) -> list[str]:
        """Lines that take `value` apart, if it has the structure `tree`; the names of its leaves."""
        if tree.node_data() is None:
            return [value]
        kind, keys = tree.node_data()
        children = tree.children()
        if kind is type(None):
            self.line(f"if {value} is not None: raise LookupError")
            return []
        if kind not in _BUILT_IN and not _is_namedtuple(tree):
            leaves, (found, structure) = self.names(tree.num_leaves), self.names(2)
            self.line(f"{found}, {structure} = flatten({value})")
            self.line(f"if {structure} != {self.constant(tree)}: raise LookupError")
            self.line(f"[{', '.join(leaves)}] = {found}")
            return leaves
        self.line(f"if type({value}) is not {self.constant(kind)}: raise LookupError")
        parts = self.names(len(children))
        if kind is dict:
            self.line(f"if len({value}) != {len(parts)}: raise LookupError")
            for part, key in zip(parts, keys, strict=True):
                self.line(f"{part} = {value}[{self.constant(key)}]")
        else:
            self.line(f"[{', '.join(parts)}] = {value}")
        return [
            leaf
            for part, child in zip(parts, children, strict=True)
            for leaf in self.taken_apart(child, part)
        ]

    def put_together(self, tree: Any, leaves: Iterator[str]) -> str:
        """Lines that put the next leaves together as `tree`; the expression for it."""
        if tree.node_data() is None:
            return next(leaves)
        kind, keys = tree.node_data()
        if kind is type(None):
            return "None"
        if kind not in _BUILT_IN and not _is_namedtuple(tree):
            parts = [next(leaves) for _ in range(tree.num_leaves)]
            return f"{self.constant(tree.unflatten)}(({''.join(f'{part}, ' for part in parts)}))"
        parts = [self.put_together(child, leaves) for child in tree.children()]
        (made,) = self.names(1)
        if kind is dict:
            pairs = [f"{self.constant(k)}: {part}" for k, part in zip(keys, parts, strict=True)]
            self.line(f"{made} = {{{', '.join(pairs)}}}")
        elif kind is list:
            self.line(f"{made} = [{', '.join(parts)}]")
        else:
            made_of = "" if kind is tuple else self.constant(kind)
            parts = "".join(f"{part}, " for part in parts)
            self.line(f"{made} = {made_of}({parts})")
        return made


def _is_namedtuple(tree: Any) -> bool:
    """Whether a node is what its class says, and not what someone registered for the class."""
    return str(tree).startswith("PyTreeDef(CustomNode(namedtuple[")


hooks.fill(call_reader=call_reader, result_builder=builder)
