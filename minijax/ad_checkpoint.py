"""`minijax.ad_checkpoint`: what rematerialization may save. Only re-exports."""

from typing import Any

from minijax.deprecated import moved
from minijax.features.checkpoint.decisions import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
)
from minijax.features.checkpoint.policies import checkpoint_policies
from minijax.features.checkpoint.saved_residuals import print_saved_residuals
from minijax.namespace import shown

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return moved(__name__, name)


__dir__ = shown(__name__)
