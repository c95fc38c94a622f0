"""`minijax.distributed`: programs of several processes. Only re-exports."""

from minijax.runtime.distributed import initialize, is_initialized, shutdown
from minijax.tracebacks import public

__all__ = ["initialize", "is_initialized", "shutdown"]

__dir__ = public(__name__)
