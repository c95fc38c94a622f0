"""`minijax.experimental.transfer`: arrays from one process to another, by servers.

A process starts a server and offers arrays under a number; another one connects to its address, and
pulls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax import tree_util
from minijax.arrays.array import ArrayImpl, Signature, as_array
from minijax.arrays.dispatch import moved
from minijax.core.avals import ShapedArray
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.runtime import transfer
from minijax.tracebacks import public

__all__ = ["TransferConnection", "TransferServer", "start_transfer_server"]


class TransferConnection:
    """A connection to the server of another process."""

    def __init__(self, connection: Any, client: Any):
        self._connection, self._client = connection, client

    def pull(self, uuid: int, xs: Any, timeout: Any = None) -> Any:
        """The arrays that were offered under a number.

        `xs` is a tree of their types, as `ShapeDtypeStruct`s with shardings; `timeout` the time, a
        `datetime`, to wait for.
        """
        leaves, tree = tree_util.flatten(xs)
        avals = [ShapedArray(tuple(x.shape), x.dtype) for x in leaves]
        signatures = [Signature(a, x.sharding, True) for a, x in zip(avals, leaves, strict=True)]
        types = [
            ShapeDtypeStruct(s.aval.shape, s.aval.dtype, sharding=s.sharding) for s in signatures
        ]
        buffers = transfer.pull(self._connection, uuid, self._client, types, timeout)
        return tree.unflatten(map(ArrayImpl, buffers, signatures))


class TransferServer:
    """Offers arrays of this process to others; made by `start_transfer_server`."""

    def __init__(self, server: Any, client: Any):
        self._server, self._client = server, client

    def address(self) -> str:
        """Return the address at which it listens."""
        return self._server.address()

    def await_pull(self, uuid: int, arrays: Any, timeout: Any = None) -> None:
        """Offer the arrays of a tree under a number, until they are pulled."""
        offered = map(as_array, tree_util.tree_leaves(arrays))
        buffers = [moved(x, x.sharding)._buffer for x in offered]  # in the devices' own layout
        transfer.offer(self._server, uuid, buffers, timeout)

    def connect(self, address: str) -> TransferConnection:
        """A connection to the server at an address."""
        return TransferConnection(self._server.connect(address), self._client)


def start_transfer_server(
    client: Any, address: str = "[::]:0", transport_addresses: Sequence[str] = (),
    max_num_parallel_copies: int = 8, transfer_size: int = 256 * 1024 * 1024,
    supports_pinned_allocator: bool = False, use_raw_buffers: bool = False,
) -> TransferServer:  # fmt: skip
    """A server of the arrays of a client, such as `minijax.devices()[0].client`.

    `address` is where it listens, at any port by default; what else there is goes to jaxlib.
    """
    server = transfer.start(
        client, address=address, transport_addresses=list(transport_addresses),
        max_num_parallel_copies=max_num_parallel_copies, transfer_size=transfer_size,
        supports_pinned_allocator=supports_pinned_allocator, use_raw_buffers=use_raw_buffers,
    )  # fmt: skip
    return TransferServer(server, client)


__dir__ = public(__name__)
