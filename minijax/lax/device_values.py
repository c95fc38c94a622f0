"""Values within a `shard_map` that is called un-jitted: for printing, and for Python's control
flow.

The body is recorded and compiled whole, as under jit; when the text or truth of one of its tracers
is asked for, what has been recorded up to there is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from minijax.core.staging import StagedTracer
from minijax.lax.shapes import reshape
from minijax.runtime.mesh import Mesh, PartitionSpec

__all__ = ["DeviceValues"]


class DeviceValues:
    """The values of the tracers of one recording on each device. `used` says whether any was asked
    for.
    """

    def __init__(self, mesh: Mesh, args: Sequence[Any], run: Callable):
        self.mesh, self.args, self.run, self.used = mesh, args, run, False
        context = local.context
        self.outside = context.trace, context.axes, context.varying, context.mesh

    def text(self, tracer: StagedTracer) -> str | None:
        """Device by device; None for what has no text of its own."""
        if isinstance(tracer.aval.dtype, dtypes.ExtendedDType):
            return None
        values = self._values(tracer)
        axes = f"({', '.join(map(str, self.mesh.axis_names))},)"
        return "\n".join(
            f"On {device} at mesh coordinates {axes} = {index}:\n{values[index]}\n"
            for index, device in np.ndenumerate(self.mesh.devices)
        )

    def value(self, tracer: StagedTracer) -> Any:
        """The value, where the type says that it is the same everywhere; None elsewhere."""
        if tracer.aval.vma or not local.context.varying:
            return None
        return self._values(tracer)[(0,) * self.mesh.devices.ndim]

    def _values(self, tracer: StagedTracer) -> np.ndarray:
        """The parts of all devices, with leading dimensions of the mesh."""
        self.used = True
        program = _program_of(tracer)
        ones = (1,) * self.mesh.devices.ndim

        def part(*args):
            (out,) = eval_jaxpr(program.jaxpr, program.consts, *args)
            return reshape(out, (*ones, *np.shape(out)))

        context = local.context
        inside = context.trace, context.axes, context.varying, context.mesh
        source, scope = context.source, context.scope
        context.trace, context.axes, context.varying, context.mesh = self.outside
        context.source, context.scope = None, ""
        context.refresh_key()
        try:
            return np.asarray(self.run(part, PartitionSpec(*self.mesh.axis_names))(*self.args))
        finally:
            context.trace, context.axes, context.varying, context.mesh = inside
            context.source, context.scope = source, scope
            context.refresh_key()


def _program_of(tracer: StagedTracer) -> ClosedJaxpr:
    """Return the recorded equations that the tracer depends on; effects are left out."""
    trace, atom = tracer._trace, tracer._var
    wanted: set[Var] = set() if type(atom) is Literal else {atom}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(trace.eqns):
        if not wanted.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            wanted.update(var for var in eqn.invars if type(var) is not Literal)
    constants = [(var, x) for var, x in trace.constants.values() if var in wanted]
    variables = [var for var, _ in constants]
    jaxpr = Jaxpr(variables, trace.in_vars, [atom], eqns[::-1], frozenset(), DebugInfo())
    return ClosedJaxpr(jaxpr, [x for _, x in constants])
