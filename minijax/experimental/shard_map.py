"""`experimental.shard_map`: where `shard_map` stood before it was `minijax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minijax.deprecated import moved
from minijax.lax.shard_map import shard_map as _by_name
from minijax.tracebacks import boundary, public

__all__ = ["shard_map"]


@boundary
def shard_map(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable:
    """`minijax.shard_map`, whose `check_vma` was called `check_rep`."""
    return _by_name(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


if not TYPE_CHECKING:
    _shard_map = globals().pop("shard_map")  # asked for by its name, it warns

    def __getattr__(name: str) -> Any:
        return moved(__name__, name)


__dir__ = public(__name__)
