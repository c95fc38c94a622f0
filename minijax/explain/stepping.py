"""Running a program equation by equation, forward and back, with its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, random
from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, eval_jaxpr
from minijax.explain.parts import PartsTrace, run_steps
from minijax.explain.programs import called, on_arrays, place_named, sub_programs, traced, values_of
from minijax.explain.strictness import outside
from minijax.explain.tables import Report, Table
from minijax.features.printing import letters
from minijax.lax.shard_map import shard_map_p
from minijax.transforms.jit import jit_p

__all__ = ["Stepper", "faulty", "nonfinite", "out_of_bounds", "step"]

_MOST_TURNS = 10_000  # of a loop that is looked into


def _is_nonfinite(value: Any) -> bool:
    dtype = getattr(value, "dtype", np.result_type(float))
    if not dtypes.issubdtype(dtype, np.inexact):
        return False
    found = np.asarray(value)
    return not np.isfinite(found.astype(np.float32) if found.dtype.kind == "V" else found).all()


def nonfinite(stepper: Stepper) -> bool:
    """Say whether the last equation gave a NaN or an infinity; a predicate of `run_to`."""
    return any(map(_is_nonfinite, stepper.outputs))


def out_of_bounds(stepper: Stepper) -> bool:
    """Say whether the last equation indexed out of bounds, as strict mode does; a predicate."""
    eqn = stepper.last
    if eqn is None:
        return False
    calls = zip(*stepper.inputs, strict=True) if stepper.ran_on else [stepper.inputs]
    return any(outside(eqn.primitive, x, eqn.params, eqn.source) is not None for x in calls)


def faulty(stepper: Stepper) -> bool:
    """Say whether the last equation gave a NaN or an infinity, or indexed out of bounds."""
    return nonfinite(stepper) or out_of_bounds(stepper)


class _EnoughError(Exception):
    """Raised within a loop that turns for too long."""


class _Call(NamedTuple):
    """A program with its operands, and within a `shard_map` the devices on which it runs."""

    program: ClosedJaxpr
    args: Sequence[Any]
    parts: PartsTrace | None = None
    active: Any = None

    def entered(self) -> AbstractContextManager:
        return self.parts.entered(self.active) if self.parts else nullcontext()


class _Frame:
    """A program that is being run: its variables so far, and the equation that is next."""

    def __init__(self, runs: Sequence[_Call], turn: int, outermost: bool = False):
        self.call = runs[turn]
        closed, args = on_arrays(self.call.program), self.call.args
        self.jaxpr = closed.jaxpr
        self.index, self.runs, self.turn = 0, runs, turn
        self.outermost, self.reached = outermost, 0
        self.env = dict(zip(self.jaxpr.constvars, closed.consts, strict=True))
        self.env.update(zip(self.jaxpr.invars, args, strict=True))
        variables = [*self.env, *(v for eqn in self.jaxpr.eqns for v in eqn.outvars)]
        self.names = {var: letters(number) for number, var in enumerate(variables)}

    def read(self, atoms: Sequence[Any]) -> list[Any]:
        return [v.value() if type(v) is Literal else self.env[v] for v in atoms]

    def run(self) -> None:
        """Compute the results of the next equation, unless they have been computed before."""
        eqn = self.jaxpr.eqns[self.index]
        # What has no results is run for its effects: once, and within bodies when these are left.
        new = self.outermost and self.index == self.reached and not eqn.outvars
        if new or not all(v in self.env for v in eqn.outvars):
            context = local.context
            saved, context.source = context.source, eqn.source or context.source
            try:
                kept = {"donated_invars": ()} if eqn.primitive is jit_p else {}  # for steps back
                with self.call.entered():
                    out = eqn.primitive.bind(*self.read(eqn.invars), **(eqn.params | kept))
            finally:
                context.source = saved
            outs = out if eqn.primitive.multiple_results else [out]
            self.env.update(zip(eqn.outvars, outs, strict=True))
        self.index += 1
        self.reached = max(self.reached, self.index)

    def places(self) -> list[dict[str, int]] | None:
        with self.call.entered():
            return self.call.parts and self.call.parts.places()

    def shown(self, values: Sequence[Any]) -> list[Any]:
        """Values as users see them: within a `shard_map` those of all devices."""
        if self.call.parts is None:
            return list(values)
        with self.call.entered():
            return list(map(self.call.parts.shown, values))


class Stepper(Report):
    """A program that stands between two equations; made by `step`.

    Moves give the stepper itself. Steps back keep the values computed, so that they cost nothing,
    nor do the same steps forward again.
    """

    def __init__(self, closed: ClosedJaxpr, args: Sequence[Any], out_tree: Any):
        self._frames = [_Frame([_Call(closed, args)], 0, outermost=True)]
        self._out_tree = out_tree
        self.last: JaxprEqn | None = None
        self.inputs: list[Any] = []  # of the last equation
        self.outputs: list[Any] = []
        self.ran_on: list[dict[str, int]] | None = None  # `places` of these

    # -- the place ---------------------------------------------------------------------------------

    @property
    def jaxpr(self) -> Jaxpr:
        """The program that is being run, of the innermost loop or call that was entered."""
        return self._frames[-1].jaxpr

    @property
    def eqn(self) -> JaxprEqn | None:
        """The equation that is next; None at the end of the whole program."""
        frame = self._frames[-1]
        return None if self.done else frame.jaxpr.eqns[frame.index]

    @property
    def line(self) -> str:
        """The user's line of the last equation, of the next one where none has run."""
        eqn = self.last or self.eqn
        return place_named(eqn.source if eqn is not None else None)

    @property
    def turn(self) -> tuple[int, ...]:
        """The turns of the loops that were entered, outermost first."""
        return tuple(frame.turn for frame in self._frames[1:])

    @property
    def places(self) -> list[dict[str, int]] | None:
        """Within a `shard_map`, the coordinates in the mesh of the devices that get there."""
        return self._frames[-1].places()

    @property
    def values(self) -> dict[str, Any]:
        """The variables that have a value here, by the letters that the jaxpr is printed with.

        Within a `shard_map` they have a leading axis, along which are those of the devices in
        `places`.
        """
        frame = self._frames[-1]
        later = {v for eqn in frame.jaxpr.eqns[frame.index :] for v in eqn.outvars}
        found = [v for v in frame.env if v not in later]
        shown = frame.shown([frame.env[v] for v in found])
        return {frame.names[v]: x for v, x in zip(found, shown, strict=True)}

    @property
    def done(self) -> bool:
        """Whether the whole program has run."""
        return len(self._frames) == 1 and self._frames[0].index == len(self._frames[0].jaxpr.eqns)

    @property
    def results(self) -> Any:
        """The results of the function. ValueError before the program has run to its end."""
        if not self.done:
            raise ValueError("The program has not run to its end: call .run_to(lambda s: False).")
        frame = self._frames[0]
        results = frame.read(frame.jaxpr.outvars)[: self._out_tree.num_leaves]
        return self._out_tree.unflatten(results)

    # -- moves -------------------------------------------------------------------------------------

    def next(self) -> Stepper:
        """Run one equation as a whole; at the end of a body go on to its next turn, or outside."""
        if self.done:
            raise ValueError("The program has run to its end: .back() goes back.")
        frame = self._frames[-1]
        if frame.index < len(frame.jaxpr.eqns):
            frame.run()
            self._look_back(frame)
            self._leave_finished()
        return self

    def back(self) -> Stepper:
        """Undo one step; from the beginning of a body to the turn before, or outside."""
        frame = self._frames[-1]
        if frame.index:
            frame.index -= 1
        elif frame.turn:
            before = _Frame(frame.runs, frame.turn - 1)
            while before.index < len(before.jaxpr.eqns) - 1:
                before.run()
            self._frames[-1] = before
        elif len(self._frames) > 1:
            self._frames.pop()
        else:
            raise ValueError("This is the beginning of the program.")
        self._look_back(self._frames[-1])
        return self

    def _look_back(self, frame: _Frame) -> None:
        """Note the equation before the place, with its values."""
        self.last = frame.jaxpr.eqns[frame.index - 1] if frame.index else None
        self.inputs = frame.shown(frame.read(self.last.invars)) if self.last else []
        self.outputs = frame.shown(frame.read(self.last.outvars)) if self.last else []
        self.ran_on = frame.places()

    def into(self) -> Stepper:
        """Enter the body of the next equation: a scan, while, cond, shard_map, or a call.

        ValueError where the equation has none.
        """
        runs = self._runs()
        if not runs:
            raise ValueError(f"{self.eqn and self.eqn.primitive} has no body to step into.")
        self._frames.append(_Frame(runs, 0))
        self._look_back(self._frames[-1])
        self._leave_finished()
        return self

    def out(self) -> Stepper:
        """Run the loop or call that was entered to its end, and stand behind it."""
        if len(self._frames) == 1:
            raise ValueError("No body has been entered.")
        self._frames.pop()
        return self.next()

    def run_to(self, predicate: Callable[[Stepper], Any] = faulty, *, into: bool = True):
        """Run until `predicate(stepper)` holds behind an equation, or to the end (see `.done`).

        - `predicate`: a function of the stepper, by default whether the equation gave a NaN or an
          infinity, or indexed out of bounds
        - `into`: whether bodies of loops, branches and calls are entered
        """
        while not self.done:
            if into and self._has_body():
                depth = len(self._frames)
                self.into()
                if len(self._frames) > depth:
                    continue
            else:
                self.next()
            if predicate(self):
                break
        return self

    # -- bodies ------------------------------------------------------------------------------------

    def _has_body(self) -> bool:
        eqn = self.eqn
        if eqn is None:
            return False
        runs = eqn.primitive is shard_map_p or eqn.primitive.rule_steps is not None
        return runs or called(eqn) is not None

    def _runs(self) -> list[_Call]:
        """The programs that the next equation runs one after the other, each with its operands."""
        eqn, frame = self.eqn, self._frames[-1]
        if eqn is None or not self._has_body():
            return []
        args, parts = frame.read(eqn.invars), frame.call.parts
        if eqn.primitive.rule_steps is None and eqn.primitive is not shard_map_p:
            return [frame.call._replace(program=called(eqn), args=args)]
        found: list[_Call] = []

        def run(program, *args):
            if len(found) == _MOST_TURNS:
                raise _EnoughError
            found.append(_Call(program, args, parts, parts and parts.active))
            if parts is not None:
                return parts.run(program, *args)
            return eval_jaxpr(program.jaxpr, program.consts, *args)

        with frame.call.entered():
            if eqn.primitive is shard_map_p:
                parts = PartsTrace(eqn)
                (program,) = sub_programs(eqn)
                with parts.entered():
                    found.append(_Call(program, parts.split(eqn, args), parts, parts.active))
                return found
            try:
                run_steps(eqn, args, run)
            except _EnoughError:
                pass
        return found

    def _leave_finished(self) -> None:
        """Go on to the next turn of a loop whose body has run, or behind the loop."""
        while len(self._frames) > 1:
            frame = self._frames[-1]
            if frame.index < len(frame.jaxpr.eqns):
                return
            if frame.turn + 1 < len(frame.runs):
                self._frames[-1] = _Frame(frame.runs, frame.turn + 1)
                continue
            self._frames.pop()
            self._frames[-1].run()

    def tables(self) -> list[Table]:
        """Return the place and the variables there."""
        place = f"turn {self.turn}, " if self.turn else ""
        if self.places is not None:
            place += f"on {len(self.places)} devices, "
        last = f"after {self.last.primitive}" if self.last else "at the beginning"
        following = f"next: {self.eqn.primitive}" if self.eqn else "the end"
        title = f"{last}, {following}, {place}{self.line}"
        rows = [[name, _described(x), _shown(x)] for name, x in self.values.items()]
        return [Table(title, ["name", "type", "value"], rows)]


def _described(value: Any) -> str:
    aval = getattr(value, "aval", None)
    return aval.str_short(True) if aval is not None else type(value).__name__


def _shown(value: Any) -> str:
    if getattr(value, "size", 1) > 1000:
        return "..."
    if dtypes.issubdtype(getattr(value, "dtype", None), dtypes.prng_key):
        value = random.key_data(value)
    text = (
        np.array2string(np.asarray(value), threshold=6, precision=4)
        if hasattr(value, "dtype")
        else str(value)
    )
    return " ".join(text.split())[:60]


def step(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Stepper:
    """Run a function equation by equation, forward and back, with its values.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them

    The result stands before the first equation: `.next()`, `.back()`, `.into()` a loop or call,
    `.out()`, and `.run_to(predicate)`, which by default stops at NaN, infinity and indices out of
    bounds, move it; `.values`, `.inputs`, `.outputs`, `.eqn`, `.line`, `.turn` say where it is.
    Within a `shard_map` values have a leading axis, along which are those of the devices that get
    there: `.places` says which, `.ran_on` those of `.inputs` and `.outputs`. TypeError where `f`
    cannot be traced. Source: the jaxpr, run as `eval_jaxpr` does.

    >>> explain.step(lambda x: jnp.log(x - x), 1.0).run_to().last.primitive
    log
    """
    stage = traced(f, args, kwargs)
    return Stepper(stage.jaxpr, values_of(f, args, kwargs), stage.out_tree)
