"""Values on all devices within a `shard_map`, whose program tools run equation by equation.

Each equation is one `shard_map` of its own, on what its operands are on every device, so that
collectives work. Loops and branches run on those devices that get there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from minijax import dtypes, lax, random
from minijax.arrays.array import array_from_numpy
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, eval_jaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import Trace, Tracer, set_trace
from minijax.features.sharding.unreduced import sums_of
from minijax.lax.shard_map import shard_map_p, within_axes
from minijax.sharding import PartitionSpec
from minijax.transforms.primitives import insert_axes

__all__ = ["PartsTrace", "on_device", "run_steps"]


class PartsTracer(Tracer):
    """A value within a `shard_map`: one on each device.

    `stacked` has them along a leading axis, once for all devices that share one by its type. Only
    those of the devices that are `active` where it is made have a meaning.
    """

    __slots__ = ("active", "stacked")

    def __init__(self, trace: PartsTrace, aval: Any, stacked: Any):
        super().__init__(trace, aval)
        self.stacked, self.active = stacked, trace.active

    def rows(self) -> np.ndarray:
        """The values on all devices, along a leading axis."""
        trace = self._trace
        varying = trace.varying(self.aval)
        inner = self.stacked
        found = inner.rows() if type(inner) is PartsTracer else np.asarray(inner)[None]
        shape = found.shape[2:]
        parts = [size if name in varying else 1 for name, size in trace.sizes.items()]
        found = found.reshape(len(found), *parts, *shape)
        whole = np.broadcast_to(found, (len(found), *trace.sizes.values(), *shape))
        return whole.reshape(-1, *shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The values on the devices that are active, along a leading axis."""
        return np.asarray(self.rows()[self.active], dtype)

    def concrete(self) -> Any:
        """The value, where it is the same on all devices that are active; else None."""
        found = np.asarray(self)
        return found[0] if len(found) and (found == found[:1]).all() else None


class PartsTrace(Trace):
    """Runs the operations within a `shard_map`, given by its equation, on all devices.

    It is to be the current trace within `entered()`. `active` are the devices that get to the
    operations at hand, which are all of them outside of loops and branches.
    """

    __slots__ = ("active", "check", "manual", "mesh", "outside", "programs", "sizes")

    def __init__(self, eqn: JaxprEqn):
        context = local.context
        super().__init__(context.trace)
        self.outside = context.axes, context.varying, context.mesh
        self.mesh, self.manual = eqn.params["mesh"], eqn.params["newly_manual_axes"]
        self.check = eqn.params["check_vma"]
        self.sizes = {n: size for n, size in self.mesh.shape.items() if n in self.manual}
        around = self.outer.active if self.outer else np.ones(1, bool)
        self.active = np.repeat(around, math.prod(self.sizes.values()))
        self.programs: dict[Any, Any] = {}

    @property
    def outer(self) -> PartsTrace | None:
        """The trace of the `shard_map` around this one."""
        return self.parent if type(self.parent) is PartsTrace else None

    @contextmanager
    def entered(self, active: Any = None) -> Iterator[None]:
        """Have operations run here while the context lasts, on some of the devices."""
        saved, self.active = self.active, self.active if active is None else active
        try:
            with (
                self.outer.entered() if self.outer else nullcontext(),
                within_axes(self.mesh, self.manual, self.check),
                set_trace(self),
            ):
                yield
        finally:
            self.active = saved

    def varying(self, aval: Any) -> tuple:
        """The axes over which values of a type may differ."""
        axes = self.manual & (aval.vma | sums_of(aval)[0]) if self.check else self.manual
        return tuple(name for name in self.sizes if name in axes)

    def places(self) -> list[dict[str, int]]:
        """The coordinates in the mesh of the devices that are active, in the order of values."""
        around = self.outer._all_places() if self.outer else [{}]
        return [p for p, used in zip(self._all_places(around), self.active, strict=True) if used]

    def _all_places(self, around: Sequence[dict] = ({},)) -> list[dict[str, int]]:
        own = [
            dict(zip(self.sizes, index, strict=True)) for index in np.ndindex(*self.sizes.values())
        ]
        return [{**outer, **inner} for outer in around for inner in own]

    # -- operations --------------------------------------------------------------------------------

    def split(self, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
        """The parts of the operands of a `shard_map`, whose equation this trace is made of."""
        found = []
        for x, spec, aval in zip(args, eqn.params["in_specs"], _inputs(eqn), strict=True):
            expand = lambda x: [insert_axes(x, (0,))]
            found.append(self._mapped(("split", aval), expand, [aval], [x], [spec], [aval])[0])
        return found

    def process(self, primitive, args, params):
        def fun(*xs):
            outs = primitive.bind(*xs, **params)
            return outs if primitive.multiple_results else [outs]

        outs = self._apply((primitive, *params.items()), fun, args)
        return outs if primitive.multiple_results else outs[0]

    def run(self, program: ClosedJaxpr, *args: Any) -> list[Any]:
        """The results of a whole program."""
        return self._apply(
            (program,), lambda *xs: eval_jaxpr(program.jaxpr, program.consts, *xs), args
        )

    def _apply(self, key: tuple, fun: Callable, args: Sequence[Any]) -> list[Any]:
        own = [type(x) is PartsTracer and x._trace is self for x in args]
        avals = [get_aval(x) for x in args]
        specs = [
            self._spec(aval) if inside else PartitionSpec()
            for aval, inside in zip(avals, own, strict=True)
        ]
        ins = [
            get_aval(x) if not inside else x.aval.update(shape=(1, *x.aval.shape))
            for x, inside in zip(args, own, strict=True)
        ]
        made: list[Any] = []

        def on_parts(*xs):
            outs = fun(*[lax.squeeze(x, (0,)) if i else x for x, i in zip(xs, own, strict=True)])
            made[:] = [get_aval(x) for x in outs]
            return [insert_axes(x, (0,)) for x in outs]

        given = [x.stacked if inside else x for x, inside in zip(args, own, strict=True)]
        return self._mapped((*key, *avals, *own), on_parts, ins, given, specs, made)

    def _spec(self, aval: Any) -> PartitionSpec:
        return PartitionSpec(self.varying(aval) or None)

    def _mapped(self, key, fun, ins, args, specs, made) -> list[Any]:
        """Call `fun` of parts, which gives them with a leading axis, in the trace outside."""
        key = (key, local.context.key)
        try:
            found = self.programs.get(key)
        except TypeError:  # a param that has no hash
            key, found = object(), None
        if found is None:
            found = self.programs[key] = trace_to_jaxpr(fun, ins), tuple(made)
        program, avals = found
        context = local.context
        saved = context.trace, context.axes, context.varying, context.mesh
        context.trace, (context.axes, context.varying, context.mesh) = self.parent, self.outside
        context.refresh_key()
        try:
            outs = shard_map_p.bind(
                *args, jaxpr=program, mesh=self.mesh, in_specs=tuple(specs),
                out_specs=tuple(map(self._spec, avals)), newly_manual_axes=self.manual,
                check_vma=self.check,
            )  # fmt: skip
        finally:
            context.trace, context.axes, context.varying, context.mesh = saved
            context.refresh_key()
        return [PartsTracer(self, aval, x) for aval, x in zip(avals, outs, strict=True)]

    # -- loops and branches ------------------------------------------------------------------------

    def steps(self, eqn: JaxprEqn, args: Sequence[Any], run: Callable) -> None:
        """Run the programs of a loop or branch, each on the devices that get there."""
        everywhere = self.active
        try:
            if eqn.primitive is lax.cond_p:
                index, *operands = args
                branches = eqn.params["branches"]
                numbers = np.clip(_rows(index, everywhere), 0, len(branches) - 1)
                for number in np.unique(numbers[everywhere]):
                    self.active = everywhere & (numbers == number)
                    run(branches[number], *map(self._here, operands))
            else:
                turn = self._turns(eqn, run) if eqn.primitive is lax.while_p else run
                eqn.primitive.rule_steps(turn, *args, **eqn.params)
        finally:
            self.active = everywhere

    def _turns(self, eqn: JaxprEqn, run: Callable) -> Callable:
        """Run the programs of a `while`, whose condition may hold on some devices only."""
        everywhere, going = self.active, None

        def turn(program, *args):
            nonlocal going
            outs = run(program, *map(self._here, args))
            if program is eqn.params["cond_jaxpr"]:
                (going,) = outs
                goes = _rows(going, everywhere)
                self.active = everywhere & goes.reshape(len(goes), -1).any(1)
                return outs
            self.active, partly = everywhere, (self.active != everywhere).any()
            if partly and not going.ndim:
                before = args[len(args) - len(outs) :]
                outs = [lax.select_n(going, *pair) for pair in zip(before, outs, strict=True)]
            return outs

        return turn

    def _here(self, x: Any) -> Any:
        """A value, of which only those on the devices that are active now have a meaning."""
        own = type(x) is PartsTracer and x._trace is self
        return PartsTracer(self, x.aval, x.stacked) if own else x

    # -- for readers -------------------------------------------------------------------------------

    def shown(self, x: Any) -> Any:
        """An array of the values on the devices that are active, along a leading axis."""
        aval = get_aval(x)
        words = random.key_data(x) if dtypes.issubdtype(aval.dtype, dtypes.prng_key) else x
        found = np.ascontiguousarray(_rows(words, self.active)[self.active])
        return array_from_numpy(
            found, ShapedArray((len(found), *aval.shape), aval.dtype, aval.weak_type)
        )


def _inputs(eqn: JaxprEqn) -> Sequence[Any]:
    return [var.aval for var in eqn.params["jaxpr"].invars]


def _rows(x: Any, devices: np.ndarray) -> np.ndarray:
    """The values on all devices."""
    if type(x) is PartsTracer:
        return x.rows()
    return np.broadcast_to(np.asarray(x), (len(devices), *np.shape(x)))


def on_device(value: Any, row: int) -> Any:
    """The value on one device, by its place among those that are active."""
    return np.asarray(value)[row] if type(value) is PartsTracer else value


def run_steps(eqn: JaxprEqn, args: Sequence[Any], run: Callable) -> None:
    """Run the programs of a loop or branch one after the other, each by `run(program, *args)`."""
    trace = local.context.trace
    if type(trace) is PartsTrace:
        trace.steps(eqn, args, run)
    else:
        eqn.primitive.rule_steps(run, *args, **eqn.params)
