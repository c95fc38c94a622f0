"""Caches of traced and compiled programs.

A program depends on the settings, so a `ProgramCache` has a table of its own for each state of these
(`Context.key`): no key can leave them out. `clear_caches` empties all caches that there are.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any

from minijax.config import local

__all__ = ["ProgramCache", "also_cleared", "clear_caches", "kept_with"]


class ProgramCache:
    """Programs by the settings and a key; a fast path reads `tables[context.key][key]`."""

    __slots__ = ("__weakref__", "locks", "tables")

    def __init__(self) -> None:
        self.tables: dict[Any, dict] = {}
        self.locks: dict[Any, Any] = {}
        _caches.add(self)

    def table(self) -> dict:
        """Return the programs for the current settings."""
        return self.tables.setdefault(local.context.key, {})

    def get(self, key: Any) -> Any:
        """Return the program for a key; None if there is none."""
        return self.table().get(key)

    def __setitem__(self, key: Any, program: Any) -> None:
        self.table()[key] = program

    def items(self) -> list[tuple[Any, Any, Any]]:
        """Return settings, key and program of all entries."""
        return [(when, *item) for when, table in self.tables.items() for item in table.items()]

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    def find(
        self, key: Any, make: Callable[[], Any], keep: Callable[[Any], bool] | None = None
    ) -> Any:
        """Return the program for a key, made at most once, also where several threads ask for it.

        One that `keep` refuses is made again, as is one whose key cannot be hashed.
        """
        settings = local.context.key
        table = self.tables.setdefault(settings, {})
        try:
            found = table.get(key)
        except TypeError:  # the key cannot be hashed
            return make()
        if found is None:
            with self.locks.setdefault((settings, key), RLock()):
                found = table.get(key)
                if found is None:
                    found = make()
                    if keep is None or keep(found):
                        table[key] = found
            self.locks.pop((settings, key), None)
        return found

    def clear(self) -> None:
        self.tables.clear()


_caches: weakref.WeakSet[ProgramCache] = weakref.WeakSet()
_by_function: weakref.WeakKeyDictionary[Any, dict] = weakref.WeakKeyDictionary()
also_cleared: list[Callable[[], None]] = []  # called by `clear_caches`, to empty other tables


def kept_with(fun: Any, kind: Any, make: Callable[[], Any] = ProgramCache) -> Any:
    """Return the cache of one kind that lives as long as a function, or another object.

    It is a new one each time for what cannot be hashed, or referred to weakly.
    """
    try:
        kinds = _by_function.get(fun)
        if kinds is None:
            kinds = _by_function[fun] = {}
    except TypeError:
        return make()
    found = kinds.get(kind)
    return kinds.setdefault(kind, make()) if found is None else found


def clear_caches() -> None:
    """Forget every traced and compiled program.

    The next calls trace and compile anew.
    Source: the caches of `jit` and of operations.

    >>> jax.clear_caches()
    """
    for cache in list(_caches):
        cache.clear()
    for empty in also_cleared:
        empty()
