"""`minijax.experimental.custom_partitioning`: functions that say how they are split. Re-exports."""

from minijax.lax.custom_partitioning import custom_partitioning, custom_partitioning_p
from minijax.lax.sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule
from minijax.tracebacks import public

__all__ = [
    "ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
    "custom_partitioning_p",
]  # fmt: skip

__dir__ = public(__name__)
