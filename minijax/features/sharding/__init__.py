"""Where values lie: placements in types, programs and arrays over several devices, transfers."""

from minijax.features.sharding import (
    array_members,
    asked,
    explicit,
    lowering,
    parts,
    program_placement,
    transform_rules,
)
