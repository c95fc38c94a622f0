"""`minijax.memory`: the memories that `device_put` and types tell apart. Only a re-export."""

from minijax.features.sharding.memory import MemorySpace as Space

__all__ = ["Space"]
