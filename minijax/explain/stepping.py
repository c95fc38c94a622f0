"""Running a program equation by equation, forward and back, with its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, random
from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, eval_jaxpr
from minijax.explain.programs import called, on_arrays, place_named, traced, values_of
from minijax.explain.strictness import outside
from minijax.explain.tables import Report, Table
from minijax.features.printing import letters
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
    return outside(eqn.primitive, stepper.inputs, eqn.params, eqn.source) is not None


def faulty(stepper: Stepper) -> bool:
    """Say whether the last equation gave a NaN or an infinity, or indexed out of bounds."""
    return nonfinite(stepper) or out_of_bounds(stepper)


class _EnoughError(Exception):
    """Raised within a loop that turns for too long."""


class _Frame:
    """A program that is being run: its variables so far, and the equation that is next."""

    def __init__(self, closed: ClosedJaxpr, args: Sequence[Any], runs: list, turn: int):
        closed = on_arrays(closed)
        self.jaxpr = closed.jaxpr
        self.index, self.runs, self.turn = 0, runs, turn
        self.env = dict(zip(self.jaxpr.constvars, closed.consts, strict=True))
        self.env.update(zip(self.jaxpr.invars, args, strict=True))
        variables = [*self.env, *(v for eqn in self.jaxpr.eqns for v in eqn.outvars)]
        self.names = {var: letters(number) for number, var in enumerate(variables)}

    def read(self, atoms: Sequence[Any]) -> list[Any]:
        return [v.value() if type(v) is Literal else self.env[v] for v in atoms]

    def run(self) -> list[Any]:
        """Compute the results of the next equation, unless they have been computed before."""
        eqn = self.jaxpr.eqns[self.index]
        if not all(v in self.env for v in eqn.outvars):
            context = local.context
            saved, context.source = context.source, eqn.source or context.source
            try:
                kept = {"donated_invars": ()} if eqn.primitive is jit_p else {}  # for steps back
                out = eqn.primitive.bind(*self.read(eqn.invars), **(eqn.params | kept))
            finally:
                context.source = saved
            outs = out if eqn.primitive.multiple_results else [out]
            self.env.update(zip(eqn.outvars, outs, strict=True))
        self.index += 1
        return [self.env[v] for v in eqn.outvars]


class Stepper(Report):
    """A program that stands between two equations; made by `step`.

    Moves give the stepper itself. Steps back keep the values computed, so that they cost nothing,
    nor do the same steps forward again.
    """

    def __init__(self, closed: ClosedJaxpr, args: Sequence[Any], out_tree: Any):
        self._frames = [_Frame(closed, args, [(closed, args)], 0)]
        self._out_tree = out_tree
        self.last: JaxprEqn | None = None
        self.inputs: list[Any] = []  # of the last equation
        self.outputs: list[Any] = []

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
    def values(self) -> dict[str, Any]:
        """The variables that have a value here, by the letters that the jaxpr is printed with."""
        frame = self._frames[-1]
        later = {v for eqn in frame.jaxpr.eqns[frame.index :] for v in eqn.outvars}
        return {frame.names[v]: x for v, x in frame.env.items() if v not in later}

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
            self.last = frame.jaxpr.eqns[frame.index]
            self.inputs, self.outputs = frame.read(self.last.invars), frame.run()
            self._leave_finished()
        return self

    def back(self) -> Stepper:
        """Undo one step; from the beginning of a body to the turn before, or outside."""
        frame = self._frames[-1]
        if frame.index:
            frame.index -= 1
        elif frame.turn:
            before = self._enter(frame.runs, frame.turn - 1)
            while before.index < len(before.jaxpr.eqns) - 1:
                before.run()
            self._frames[-1] = before
        elif len(self._frames) > 1:
            self._frames.pop()
        else:
            raise ValueError("This is the beginning of the program.")
        frame = self._frames[-1]
        self.last = frame.jaxpr.eqns[frame.index - 1] if frame.index else None
        self.inputs = frame.read(self.last.invars) if self.last else []
        self.outputs = frame.read(self.last.outvars) if self.last else []
        return self

    def into(self) -> Stepper:
        """Enter the body of the next equation: a scan, while, cond, or a call of a program.

        ValueError where the equation has none.
        """
        runs = self._runs()
        if not runs:
            raise ValueError(f"{self.eqn and self.eqn.primitive} has no body to step into.")
        self._frames.append(self._enter(runs, 0))
        self.last, self.inputs, self.outputs = None, [], []
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
        return eqn is not None and (eqn.primitive.rule_steps is not None or called(eqn) is not None)

    def _runs(self) -> list[tuple[ClosedJaxpr, Sequence[Any]]]:
        """The programs that the next equation runs one after the other, each with its operands."""
        eqn, frame = self.eqn, self._frames[-1]
        if eqn is None or not self._has_body():
            return []
        args = frame.read(eqn.invars)
        if eqn.primitive.rule_steps is None:
            return [(called(eqn), args)]
        found: list[tuple[ClosedJaxpr, Sequence[Any]]] = []

        def run(program, *args):
            if len(found) == _MOST_TURNS:
                raise _EnoughError
            found.append((program, args))
            return eval_jaxpr(program.jaxpr, program.consts, *args)

        try:
            eqn.primitive.rule_steps(run, *args, **eqn.params)
        except _EnoughError:
            pass
        return found

    def _enter(self, runs: list, turn: int) -> _Frame:
        return _Frame(*runs[turn], runs, turn)

    def _leave_finished(self) -> None:
        """Go on to the next turn of a loop whose body has run, or behind the loop."""
        while len(self._frames) > 1:
            frame = self._frames[-1]
            if frame.index < len(frame.jaxpr.eqns):
                return
            if frame.turn + 1 < len(frame.runs):
                self._frames[-1] = self._enter(frame.runs, frame.turn + 1)
                continue
            self._frames.pop()
            self._frames[-1].run()

    def tables(self) -> list[Table]:
        """Return the place and the variables there."""
        place = f"turn {self.turn}, " if self.turn else ""
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
    TypeError where `f` cannot be traced. Source: the jaxpr, run as `eval_jaxpr` does.

    >>> explain.step(lambda x: jnp.log(x - x), 1.0).run_to().last.primitive
    log
    """
    stage = traced(f, args, kwargs)
    return Stepper(stage.jaxpr, values_of(f, args, kwargs), stage.out_tree)
