"""XLA's shardings as bytes and as objects."""

from __future__ import annotations

from typing import Any

from minijax.runtime.versions import HloSharding, xla_client

__all__ = ["hlo_sharding_from_bytes", "hlo_sharding_to_bytes", "op_sharding_from_bytes"]


def op_sharding_from_bytes(sharding: bytes) -> Any:
    """The OpSharding message that was serialized."""
    message = xla_client.OpSharding()
    message.ParseFromString(sharding)
    return message


def hlo_sharding_from_bytes(sharding: bytes) -> Any:
    """The HloSharding of a serialized OpSharding message."""
    return HloSharding.from_proto(op_sharding_from_bytes(sharding))


def hlo_sharding_to_bytes(sharding: Any) -> bytes:
    """The OpSharding message of an HloSharding, serialized."""
    return sharding.to_proto().SerializeToString()
