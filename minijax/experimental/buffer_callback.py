"""`minijax.experimental.buffer_callback`: calling Python on the buffers of a program.
Re-exports.
"""

from minijax.lax.buffer_callbacks import buffer_callback
from minijax.runtime.callbacks import Buffer, ExecutionContext, ExecutionStage

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
