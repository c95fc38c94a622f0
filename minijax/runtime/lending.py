"""Memory of the host that is lent to one call after another, as the buffers of its operands.

To make a buffer of a small array and to free it takes longer than most programs on it: jaxlib needs 8 us
for it, and copying into memory that is a buffer already takes 0.3. So a call of `jit` with a NumPy array
takes 12 us instead of 19. CPUs only: elsewhere buffers do not lie in the host's memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.runtime import sharding as shardings
from minijax.runtime.versions import _jax

__all__ = ["MOST", "Lender", "LentSharding", "NumberLender", "give_back"]

MOST = 1 << 16  # bytes, of an array that is copied, and of the memory kept for arrays of one type
_ALIGNMENT = 64  # bytes, which XLA's programs for CPUs may rely on


class LentSharding(shardings.SingleDeviceSharding):
    """The place of a buffer that only calls see: no array that a user made."""


class _Lent:
    """Memory for one array, and the operand that lies in it."""

    __slots__ = ("buffer", "host", "lender", "operand")

    def __init__(self, lender: Lender, host: np.ndarray, buffer: Any):
        self.lender, self.host, self.buffer = lender, host, buffer
        self.operand = lender.wrap(buffer)


class Lender:
    """Lends memory for arrays of one type on one device; `wrap` makes operands of buffers."""

    def __init__(self, aval: Any, sharding: Any, wrap: Callable[[Any], Any]):
        self.aval, self.device, self.wrap = aval, sharding.device, wrap
        self.free: list[_Lent] = []
        # Of NumPy's own types: XLA may pack others.
        fits = self.device.platform == "cpu" and aval.dtype.isbuiltin == 1
        self.most = MOST // (aval.size * aval.dtype.itemsize) if fits else 0

    def lend(self, x: Any, lent: list[_Lent]) -> Any:
        """An operand with the values of `x`, noted in `lent`; None where there is no such memory."""
        one = self.free.pop() if self.free else self._new()
        if one is None:
            return None
        one.host[...] = x
        lent.append(one)
        return one.operand

    def _new(self) -> _Lent | None:
        if not self.most:
            return None
        aval, device = self.aval, self.device
        size = aval.size * aval.dtype.itemsize
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        host = memory[start : start + size].view(aval.dtype).reshape(aval.shape)
        where = LentSharding(device)
        buffer = _jax.batched_device_put(aval, where, [host], [device], enable_x64=True)
        # Not by `unsafe_buffer_pointer`, which imports upstream where that is installed.
        if np.asarray(memoryview(buffer)).ctypes.data != host.ctypes.data:
            self.most = 0
            return None
        return _Lent(self, host, buffer)


_MOST_MET = 2048


class NumberLender:
    """Operands for Python numbers: those met before are kept, others are lent memory.

    Most numbers of a loop are met once: a new one takes 7 us of a call of `jit`, not 14. `kept` has
    arrays by the class of a number, the number and settings, `keep` makes and keeps one, and `wrap`
    makes one of a buffer and a signature.
    """

    def __init__(self, kept: dict, keep: Callable[[Any], Any], wrap: Callable[[Any, Any], Any]):
        self.kept, self.keep, self.wrap = kept, keep, wrap
        self.lenders: dict[tuple, Lender] = {}
        self.met: set[tuple] = set()

    def operand(self, x: Any, context: Any) -> Any:
        """An operand of the call that this thread is about to make, as `Lender.lend` gives."""
        settings = context.numbers_key
        key = (type(x), x, settings)
        found = self.kept.get(key)
        if found is not None and not found._buffer.is_deleted():
            return found
        if type(x) not in (float, int) or settings is not context.key or not 0 < abs(x) < 1e38:
            return self.keep(x)  # transfers are guarded, or it is a zero, a NaN, or may overflow
        if key in self.met:
            return self.keep(x)
        lender = self.lenders.get((type(x), settings))
        if lender is None:
            made = self.keep(x)
            wrap = functools.partial(self.wrap, signature=made.signature)
            self.lenders[type(x), settings] = Lender(made.aval, made.sharding, wrap)
            return made
        if len(self.met) >= _MOST_MET:
            self.met.clear()
        self.met.add(key)
        operand = lender.lend(x, context.lent)
        return self.keep(x) if operand is None else operand

    def clear(self) -> None:
        self.lenders.clear()
        self.met.clear()


def give_back(lent: list[_Lent], operands: list, results: list) -> None:
    """Have what was lent to a call be lent again, if the call is done.

    If it is not, or if the call was another (one that a finalizer made), the memory stays that of its
    buffer, and goes with it.
    """
    if results and results[0].is_ready():
        given = set(map(id, operands))
        for one in lent:
            lender = one.lender
            if id(one.buffer) in given and len(lender.free) < lender.most:
                if not one.buffer.is_deleted():
                    lender.free.append(one)
    lent.clear()
