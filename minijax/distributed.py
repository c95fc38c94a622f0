"""`minijax.distributed`: programs of several processes. Only re-exports."""

from minijax.namespace import shown
from minijax.runtime.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]

__dir__ = shown(__name__)
