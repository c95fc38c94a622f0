"""Python functions that fail where one device of several calls them for all.

If that device alone gave up, the others would wait for it at the next collective, until XLA ends the
process. It goes on instead, with zeros and a status; every device reads the status, and all give up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.lax.collective_lowering import computation
from minijax.lowering.types import physical
from minijax.runtime.callbacks import callback_target

__all__ = ["STATUS", "Failures"]

STATUS = ShapedArray((), np.dtype(np.int32))  # of a call: 0, or 1 if it failed


class Failures:
    """The errors of one call in a program over `devices`, until each has raised them."""

    def __init__(self, devices: Sequence[Any]):
        self.devices, self.errors = devices, []

    def catching(self, call: Callable, outs: Sequence[Any]) -> Callable:
        """`call`, which gives arrays of the types `outs`, and zeros if it fails; then the status."""

        def caught(*arrays):
            try:
                return (*call(*arrays), np.int32(0))
            except Exception as error:
                here = [d for d in self.devices if d.process_index == d.client.process_index()]
                self.errors.extend([error] * len(here))
                return (*_zeros(outs), np.int32(1))

        return caught

    def checked(self, b: Any, results: Sequence[Any], pure: bool) -> list[Any]:
        """The results without the status, which every device has looked at."""
        avals = [x.aval for x in results]
        outs = avals[:-1]
        index = len(b.module.host_callbacks)
        b.module.host_callbacks.append(lambda status: self._raise(status, outs))

        def body(inner, *parts):
            *given, status = parts

            def failed(branch):
                return branch.custom_call(
                    callback_target(b.platform), [status], outs, side_effect=not pure,
                    config=f"{{index = {index} : ui64}}",
                    layouts=([range(0)], [range(physical(aval).ndim)[::-1] for aval in outs]),
                )  # fmt: skip

            some = inner.compare(status, inner.constant(np.int32(0)), "NE")
            branches = (failed, lambda branch: given)
            regions = [inner.region((), branch, isolated=False) for branch in branches]
            return inner.op_n("stablehlo.if", (some,), outs, "", regions)

        *whole, one = [b.module.on_all(physical(aval).ndim) for aval in avals]
        return computation(
            b, results, avals, outs, body, axes=["all"], ins=", ".join([*whole, one]),
            whole=", ".join(whole),
        )  # fmt: skip

    def _raise(self, status: Any, outs: Sequence[Any]) -> tuple:
        if not status:
            return tuple(_zeros(outs))
        if self.errors:
            raise self.errors.pop()
        raise RuntimeError("A callback failed in another process: see what that one has logged.")


def _zeros(avals: Sequence[Any]) -> list[np.ndarray]:
    return [np.zeros(physical(aval).shape, physical(aval).dtype) for aval in avals]
