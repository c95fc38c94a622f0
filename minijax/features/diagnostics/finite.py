"""`debug_nans` and `debug_infs`: results are looked at, and the operation at fault is found.

Where a NaN of a compiled program comes from is told by `explain.nan`, where that is installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.config import local
from minijax.core import source
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.features.slots import slots

__all__ = ["FiniteCheck", "check_finite"]


class FiniteCheck:
    """Called with the arguments and the results of each run of a program."""

    __slots__ = ("closed", "name")

    def __init__(self, name: str):
        self.name = name
        self.closed: ClosedJaxpr | None = None  # if it has parts

    def specialize(self, closed: ClosedJaxpr) -> None:
        """Told the program, which may have parts to run one by one."""
        eqns = closed.jaxpr.eqns
        only = eqns[0].primitive if len(eqns) == 1 else None
        if eqns and (only is None or only.name != self.name or only.rule_steps is not None):
            self.closed = closed

    def __call__(self, args: Sequence[ArrayImpl], outs: Sequence[ArrayImpl]) -> None:
        """Check results; the operations one by one say which of them is at fault."""
        with contextlib.suppress(FloatingPointError):
            check_finite(outs, self.name)
            return
        # Outside of the handler: the error of an operation has no other as context. Not kept in a
        # variable: a frame that holds its own error is a cycle, which keeps the arguments alive.
        if self.closed is not None and not any(a.is_deleted() for a in args):
            self.search(self.closed, args)
        check_finite(outs, self.name)

    def search(self, closed: ClosedJaxpr, args: Sequence[ArrayImpl]) -> None:
        """Run the operations one by one, each of which is checked."""
        eqn = closed.jaxpr.eqns[0]
        if eqn.primitive.rule_steps is not None and eqn.primitive.name == self.name:
            slots.tell_nan(closed, args)
            eqn.primitive.rule_steps(_run_by_operations, *args, **eqn.params)
            return
        kind = "nan" if local.context.settings.debug_nans else "inf"
        print(
            f"Invalid {kind} value encountered in the output of a jax.jit function. Calling the "
            "de-optimized version."
        )
        slots.tell_nan(closed, args)
        eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _run_by_operations(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def check_finite(outs: Sequence[ArrayImpl], name: str) -> None:
    """FloatingPointError where debug_nans or debug_infs is on and a result has such a value."""
    settings = local.context.settings
    for out in outs:
        if type(out) is not ArrayImpl or out.aval.dtype.kind not in "fcV" or out.aval.size == 0:
            continue
        value = np.asarray(out)
        if value.dtype.kind == "V":
            value = value.astype(np.float32)
        for wanted, test, label in (
            (settings.debug_nans, np.isnan, "nan"),
            (settings.debug_infs, np.isinf, "inf"),
        ):
            if wanted and test(value).any():
                place = local.context.source  # set while a program is run by operations
                where = f" at {source.summarize(place)}" if place else ""
                raise FloatingPointError(
                    f"invalid value ({label}) encountered in {name}{where}, in a result of type "
                    f"{out.aval.str_short()}. Run it under minijax.disable_jit() to stop there, or "
                    "explain.nan(f)(...) of minijax.explain to see what led to it."
                )


def _result_check(name: str) -> FiniteCheck | None:
    settings = local.context.settings
    return FiniteCheck(name) if settings.debug_nans or settings.debug_infs else None


hooks.fill(result_check=_result_check)
