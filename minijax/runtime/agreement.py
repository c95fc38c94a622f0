"""Whether the processes of a run compile the same programs.

A program over devices of several processes runs when all of them start it; were they different
ones, they would wait for each other, or exchange each other's parts. So each process tells the
distributed service what it compiles, and compares with what others have told: who comes later finds
out. Nobody waits.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from minijax.runtime import distributed
from minijax.runtime.digests import sha256

__all__ = ["check_agreement"]

_compiled: Counter = Counter()  # programs over these processes


def check_agreement(text: str, devices: tuple) -> None:
    """RuntimeError if another process compiles a different program at this point of the run."""
    client = distributed.state.client
    processes = tuple(sorted({device.process_index for device in devices}))
    if client is None or len(processes) < 2:
        return
    number = _compiled[processes]
    _compiled[processes] += 1
    name = text.split(maxsplit=2)[1]
    mine = f"{name} {sha256(text.encode()).hexdigest()}"
    own = distributed.state.process_id
    place = f"minijax/programs/{'-'.join(map(str, processes))}/{number}"
    client.key_value_set(f"{place}/{own}", mine)
    for key, told in client.key_value_dir_get(place):
        if told != mine:
            raise RuntimeError(
                f"mismatched programs: process {own} compiles {_shown(name)} as program {number} "
                f"over processes {list(processes)}, and process {key.rpartition('/')[2]} "
                f"{_shown(told.split()[0])}"
                + (", which differs" if told.split()[0] == name else "")
                + ". Every process must run the same jitted functions, on arguments of the same "
                "types, in the same order."
            )


def _shown(name: Any) -> str:
    return repr(name.removeprefix("@jit_"))
