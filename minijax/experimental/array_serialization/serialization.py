"""Checkpoints of arrays that are written while the program goes on.

A manager writes one checkpoint at a time, in a thread; what goes wrong there is raised by the next
call.
"""

from __future__ import annotations

import abc
import asyncio
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from minijax.experimental.array_serialization import tensorstore_impl
from minijax.experimental.array_serialization.tensorstore_impl import (
    async_deserialize,
    async_serialize,
    is_remote_storage,
    run_deserialization,
    run_serialization,
)
from minijax.runtime.distributed import state
from minijax.runtime.platforms import process_count, process_index
from minijax.tracebacks import public

__all__ = [
    "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage", "run_deserialization", "run_serialization",
]  # fmt: skip

# Upstream's layout of files: the spec's own defaults are another.
get_tensorstore_spec = functools.partial(
    tensorstore_impl.get_tensorstore_spec, driver="zarr", ocdbt=False
)

_numbers = itertools.count()  # of checkpoints: the same in all processes


class BarrierTimeoutError(Exception):
    """Not all processes have written their parts in time."""


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of managers of checkpoints."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what went wrong in the thread that writes; does not wait for it."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until the last checkpoint is written; raises what went wrong."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *,
        on_commit_callback: Callable[[], None],
    ) -> None:  # fmt: skip
        """Write arrays."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
        global_shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Read arrays."""


class AsyncManager:
    """Waits for what is written in a thread, and for the other processes."""

    def __init__(self, timeout_secs: int = 300):
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def _start(self, pending: Sequence[Any], done: Callable[[], None] | None) -> None:
        key = f"array_serialization_{next(_numbers)}"

        def run() -> None:
            try:
                for future in pending:
                    future.result()
                self._meet(f"{key}_written")
                if done is not None and process_index() == 0:
                    done()
                self._meet(f"{key}_committed")
            except Exception as error:
                self._error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def _meet(self, name: str) -> None:
        """Wait for the other processes."""
        if process_count() == 1:
            return
        try:
            state.client.wait_at_barrier(name, self._timeout * 1000)
        except Exception as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            raise BarrierTimeoutError(
                f"Suggestions for possible fixes: not all processes came to {name} within "
                f"{self._timeout} seconds: see whether one of them failed, or give a larger "
                "timeout_secs."
            ) from error

    def check_for_errors(self) -> None:
        """Raise what went wrong in the thread that writes; does not wait for it."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until the last checkpoint is written; raises what went wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays by TensorStore while the program goes on; one checkpoint at a time."""

    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:  # fmt: skip
        """Write arrays: returns once they are copied. The callback is called, by the process
        numbered 0, when all processes have written theirs.
        """
        self.wait_until_finished()
        pending: list[Any] = []

        async def run() -> None:
            await asyncio.gather(
                *[
                    async_serialize(x, spec, commit_future=pending, transaction=transaction)
                    for x, spec in zip(arrays, tensorstore_specs, strict=True)
                ]
            )

        asyncio.run(run())
        self._start(pending, on_commit_callback)

    def serialize_with_paths(
        self, arrays: Sequence[Any], paths: Sequence[str], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:  # fmt: skip
        """Write arrays to the files at these paths; see `serialize`."""
        specs = list(map(get_tensorstore_spec, paths))
        self.serialize(
            arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction
        )

    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
        global_shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:  # fmt: skip
        """Read arrays, once those that are being written are; see `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(
            shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb
        )

    def deserialize_with_paths(
        self, shardings: Sequence[Any], paths: Sequence[str],
        global_shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:  # fmt: skip
        """Read arrays from the files at these paths."""
        specs = list(map(get_tensorstore_spec, paths))
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


__dir__ = public(__name__)
