"""`minijax.ad_checkpoint`: what rematerialization may save. Only re-exports."""

from minijax.features.checkpoint.policies import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    checkpoint_policies,
)
from minijax.features.checkpoint.saved_residuals import print_saved_residuals
from minijax.namespace import shown

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals",
]  # fmt: skip

__dir__ = shown(__name__)
