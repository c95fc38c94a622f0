"""`minijax.experimental.fused`: a function as one operation. Re-exports."""

from minijax.lax.fused import fused, fused_p

__all__ = ["fused", "fused_p"]
