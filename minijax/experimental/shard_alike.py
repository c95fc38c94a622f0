"""`minijax.experimental.shard_alike`: two arrays that are to be split in the same way.
Re-exports.
"""

from minijax.lax.shard_alike import shard_alike

__all__ = ["shard_alike"]
