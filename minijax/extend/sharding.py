"""`minijax.extend.sharding`: XLA's shardings as bytes and as objects. Re-exports."""

from minijax.runtime.gspmd import GSPMDSharding
from minijax.runtime.protos import hlo_sharding_from_bytes as get_hlo_sharding_from_serialized_proto
from minijax.runtime.protos import hlo_sharding_to_bytes as get_serialized_proto_from_hlo_sharding
from minijax.runtime.protos import op_sharding_from_bytes as get_op_sharding_from_serialized_proto

__all__ = [
    "GSPMDSharding",
    "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]  # fmt: skip
