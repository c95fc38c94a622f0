"""`minijax.experimental.compute_on`: on which part of a machine operations run. Re-exports."""

from minijax.lax.compute_on import compute_on, compute_on2

__all__ = ["compute_on", "compute_on2"]
