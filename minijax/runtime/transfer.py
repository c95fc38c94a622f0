"""Servers that hand arrays from one process to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.runtime.versions import _jax

__all__ = ["offer", "pull", "start"]


def start(client: Any, **options: Any) -> Any:
    """A server of a client's arrays. NotImplementedError where jaxlib was built without."""
    if not hasattr(_jax, "start_transfer_server"):
        raise NotImplementedError("this jaxlib has no transfer server: it was built without.")
    return _jax.start_transfer_server(client, **options)


def offer(server: Any, uuid: int, arrays: Sequence[Any], timeout: Any) -> None:
    server._await_pull_flat(uuid, arrays, timeout)


def pull(connection: Any, uuid: int, client: Any, types: Sequence[Any], timeout: Any) -> list[Any]:
    return connection._pull_flat(uuid, client, types, timeout)
