"""Features: what tracing and interpreting can do that a first reader does not need.

Each extends the machine through `core.hooks`, or by rules of primitives of its own. The package
works without the folders of `references` and `symbolic`; `hijax` is imported by who asks for it.
"""

from minijax.features import (
    array_members,
    codegen_calls,
    compile_time,
    constants,
    diagnostics,
    donation,
    effects,
    export,
    frontend_attributes,
    pickling,
    printing,
    sharding,
    source_info,
    stages,
    vjp,
    vmappable,
)
from minijax.namespace import is_present

if is_present("minijax.features.references"):
    from minijax.features import references
if is_present("minijax.features.symbolic"):
    from minijax.features import symbolic
