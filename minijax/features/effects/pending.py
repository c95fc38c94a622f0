"""Programs with effects that are under way: their order, and waiting for them."""

from __future__ import annotations

import threading
from typing import Any

from minijax.arrays.dispatch import Program
from minijax.core.effects import ordered
from minijax.core.hooks import hooks

__all__ = ["effects_barrier"]


class _Pending(threading.local):
    """The programs of a thread whose effects may still be under way, by their tokens."""

    def __init__(self):
        self.ordered: Any = None
        self.tokens: list[Any] = []

    def run(self, program: Program, operands: list[Any]) -> list[Any]:
        """Run a program with effects; ordered ones start when those before are done."""
        if ordered(program.effects) and self.ordered is not None:
            before, self.ordered = self.ordered, None
            before.block_until_ready()
        running = program.execute(operands, with_tokens=True)
        token = running.consume_token()
        results = running.consume_with_handlers(program.handlers)
        if ordered(program.effects):
            self.ordered = token
        if len(self.tokens) >= _MOST_PENDING:
            self.tokens.pop(0).block_until_ready()
        self.tokens.append(token)
        return results

    def wait(self) -> None:
        tokens, self.tokens, self.ordered = self.tokens, [], None
        for token in tokens:
            token.block_until_ready()


_MOST_PENDING = 32
_pending = _Pending()


def effects_barrier() -> None:
    """Wait until the effects of all programs that this thread started are done.

    An exception of a callback is raised here if it was not raised before.
    Source: PJRT's events.

    >>> jax.effects_barrier()
    """
    _pending.wait()


hooks.fill(run_with_effects=_pending.run)
