"""`minijax.ad_checkpoint`: what rematerialization may save. Only re-exports."""

from minijax.transforms.checkpoint import checkpoint, checkpoint_name, remat
from minijax.transforms.policies import Offloadable, Recompute, Saveable, checkpoint_policies
from minijax.transforms.residuals import print_saved_residuals, saved_residuals

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip
