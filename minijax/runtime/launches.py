"""Launching programs that run on several CPU devices, so that none of them waits for ever.

XLA's CPU client runs each device's part of a program on one pool of threads. A collective keeps a
thread until the parts on all its devices have arrived, and a launch keeps one while a device has
its fill of unfinished programs (32). Launches from several threads at once, or many launches ahead
of their results, can so occupy every thread while the part that all of them wait for has none.
Hence such programs are launched one at a time, and few are unfinished.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.runtime.versions import _jax

__all__ = ["abandon", "launcher", "threads_for"]

_MOST_UNFINISHED = 4  # far below 32: programs on one device count as well


class _Queue:
    """The latest launches over a client's devices, oldest first."""

    def __init__(self):
        self.lock = threading.Lock()
        self.tokens: collections.deque = collections.deque()

    def await_oldest(self) -> None:
        """Wait until the oldest launch is done. Its results tell of an error, if there was one."""
        with contextlib.suppress(_jax.JaxRuntimeError):
            self.tokens[0].block_until_ready()
        self.tokens.popleft()


_queues: weakref.WeakKeyDictionary[Any, _Queue] = weakref.WeakKeyDictionary()


_refuse: Callable[[], None] | None = None


def abandon(refuse: Callable[[], None]) -> None:
    """Have `refuse` raise an error at each launch: in a forked child, where a lock may be held."""
    global _refuse
    _refuse = refuse


class _Results:
    """Results whose token has been taken out already."""

    __slots__ = ("consume_with_handlers", "token")

    def __init__(self, results: Any, token: Any):
        self.consume_with_handlers = results.consume_with_handlers
        self.token = token

    def consume_token(self) -> Any:
        return self.token


def launcher(executable: Any, devices: Sequence[Any]) -> Callable:
    """Return `execute(buffers, with_tokens=False)`, which launches a program on its devices.

    One that runs on a single device is launched by jaxlib's own method, which raises an error for a
    buffer that was donated; on several devices it would end the process.
    """
    launch = executable.execute_sharded
    if len(devices) == 1:
        return launch
    if devices[0].platform != "cpu":
        return lambda buffers, *with_tokens: launch(_kept(buffers), *with_tokens)
    client = devices[0].client
    queue = _queues.setdefault(client, _Queue())
    lock, tokens = queue.lock, queue.tokens
    # Collectives between processes match by the order in which each process runs its programs, and
    # the client keeps that order only for programs with several devices in this process.
    here = client.process_index()
    most = _MOST_UNFINISHED if all(d.process_index == here for d in devices) else 1

    def execute(buffers: Sequence[Any], with_tokens: bool = False) -> Any:
        if _refuse is not None:
            _refuse()
        _kept(buffers)
        with lock:
            while len(tokens) >= most:
                queue.await_oldest()
            results = launch(buffers, True)
            token = results.consume_token()
            tokens.append(token)
        return _Results(results, token) if with_tokens else results

    return execute


def _kept(buffers: Sequence[Any]) -> Sequence[Any]:
    """Return the buffers; JaxRuntimeError, as on a single device, if one was deleted or donated."""
    for index, buffer in enumerate(buffers):
        if buffer.is_deleted():
            raise _jax.JaxRuntimeError(
                f"INVALID_ARGUMENT: Invalid buffer passed to Execute() as argument {index}: Buffer has "
                "been deleted or donated."
            )
    return buffers


@contextlib.contextmanager
def threads_for(devices: int) -> Iterator[None]:
    """A context in which the CPU client is given threads for programs over this many devices.

    As many may wait in a launch as in a collective, and then single-device programs and callbacks
    must still find one. XLA takes the number from the environment variable NPROC.
    """
    before = os.environ.get("NPROC")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = 2 * devices + (cores or 1)
    if devices == 1 or ((before or "").isdecimal() and int(before or 0) >= wanted):
        yield
        return
    os.environ["NPROC"] = str(wanted)
    try:
        yield
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before
