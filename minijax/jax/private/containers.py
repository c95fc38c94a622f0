"""Counterparts of upstream's `FrozenDict` and `HashableArray`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["FrozenDict", "HashableArray"]


class FrozenDict(Mapping):
    """A dictionary that cannot be changed, and has a hash if its values do.

    It is equal to others of its kind with the same entries, in any order. AttributeError for what is
    no mapping.
    """

    def __init__(self, d: Mapping):
        self._d = dict(d.items())

    def __getitem__(self, key: Any) -> Any:
        return self._d[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._d)

    def __len__(self) -> int:
        return len(self._d)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, FrozenDict) and self._d == other._d

    def __hash__(self) -> int:
        return hash(frozenset(self._d.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({self._d!r})"


class HashableArray:
    """A NumPy array that cannot be changed, with a hash; equal to one of the same shape and values."""

    __slots__ = ("val",)

    def __init__(self, val: Any):
        self.val = np.array(val)
        self.val.setflags(write=False)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, HashableArray) or self.val.dtype != other.val.dtype:
            return False
        return np.array_equal(self.val, other.val)

    def __hash__(self) -> int:
        return hash((self.val.shape, self.val.dtype, self.val.tobytes()))

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"

    def __str__(self) -> str:
        return f"HashableArray({self.val})"
