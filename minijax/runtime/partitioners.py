"""Operations that Python splits over devices while XLA's partitioner runs.

A custom call names its entry in a table by number; the entry is asked for the program of one
device, for the shardings that were chosen.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from minijax.runtime import plugins
from minijax.runtime.versions import HloSharding, xla_client

__all__ = ["TARGET", "Entry", "register"]

TARGET = "MinijaxCustomPartitioning"  # upstream's, in the same process, has another name

Rule = Callable[[Sequence[Any], Any], tuple[str, Sequence[Any], Sequence[Any]]]
_rules: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_known: set[str] = set()


class Entry:
    """Lives as long as a program that refers to it."""

    __slots__ = ("__weakref__", "number", "rule")


def register(rule: Rule) -> tuple[int, Any]:
    """The number of a new entry, and what must live as long as programs that name it.

    `rule(operand shardings, result shardings)` gives the text of the program of one device, and the
    shardings that it is for.
    """
    for key, table in [("", None), *plugins.tables.items()]:
        _make_known(key, table)
    entry = Entry()
    entry.number, entry.rule = next(_numbers), rule
    _rules[entry.number] = entry
    return entry.number, entry


def _make_known(key: str, table: Any) -> None:
    """Register the target with jaxlib's own XLA, or with that of a plug-in, once."""
    if key not in _known:
        _known.add(key)
        options = {"can_side_effecting_have_replicated_sharding": True, "c_api": table}
        xla_client.register_custom_call_partitioner(
            TARGET, _propagate, _partition, _infer, **options
        )


def _partition(in_shapes, in_shardings, out_shape, out_sharding, config) -> tuple:
    entry = _rules[int(config)]
    outs = out_sharding.tuple_elements() if out_shape.is_tuple() else [out_sharding]
    text, ins, outs = entry.rule(list(in_shardings), list(outs))
    many = HloSharding.tuple_sharding(out_shape, outs) if out_shape.is_tuple() else outs[0]
    return text.encode(), list(ins), many


def _propagate(sharding: Any, shape: Any, config: bytes) -> Any:
    """Shardy has chosen all shardings before, by the rule in the module."""
    return sharding


def _infer(in_shapes, in_shardings, out_shape, config) -> Any:
    return None
