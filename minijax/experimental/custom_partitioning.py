"""`minijax.experimental.custom_partitioning`: functions that say how they are split. Re-exports."""

from minijax.lax.custom_partitioning import custom_partitioning, custom_partitioning_p
from minijax.lax.sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule

__all__ = [
    "BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
    "custom_partitioning_p",
]  # fmt: skip
