"""Features: what tracing and interpreting can do that a first reader does not need.

Each extends the machine through `core.hooks`, or by rules of primitives of its own.
"""

from minijax.features import (
    array_members,
    compile_time,
    diagnostics,
    donation,
    effects,
    export,
    frontend_attributes,
    printing,
    references,
    sharding,
    stages,
    symbolic,
    vjp,
    vmappable,
)
