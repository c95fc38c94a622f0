"""`minijax.experimental.xla_metadata`: attributes of operations for XLA. Re-exports."""

from minijax.lax.metadata import set_xla_metadata

__all__ = ["set_xla_metadata"]
