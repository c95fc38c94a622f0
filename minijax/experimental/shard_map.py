"""`experimental.shard_map`: where `shard_map` stood before it was `minijax.shard_map`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from minijax.lax.shard_map import shard_map as _shard_map
from minijax.namespace import shown

__all__ = ["shard_map"]

__dir__ = shown(__name__)


def shard_map(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable:
    """`minijax.shard_map`, whose `check_vma` was called `check_rep`. Warns that it is deprecated."""
    warnings.warn(
        "minijax.experimental.shard_map is deprecated: use minijax.shard_map instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
