"""`minijax.debug`: printing from compiled programs, breakpoints, and pictures of shardings.

Only re-exports.
"""

from minijax.debug.breakpoints import breakpoint
from minijax.debug.shardings import visualize_array_sharding, visualize_sharding
from minijax.features.effects.kinds import DebugEffect, OrderedDebugEffect
from minijax.lax.debug_callbacks import debug_callback as callback
from minijax.lax.debug_callbacks import debug_log as log
from minijax.lax.debug_callbacks import debug_print as print
from minijax.lax.debug_callbacks import inspect_array_sharding
from minijax.tracebacks import public

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip

__dir__ = public(__name__)
