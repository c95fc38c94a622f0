"""Where a NaN comes from: the first equation that made one which reaches a result."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import named_after
from minijax.config import local, override
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.core.source import joined
from minijax.core.trace import Tracer
from minijax.explain.origins import Origins, watched
from minijax.explain.parts import PartsTrace, on_device, run_steps
from minijax.explain.programs import (
    called,
    expression_at,
    file_name,
    line_of,
    on_arrays,
    place_named,
    short,
    sub_programs,
    traced,
    values_of,
)
from minijax.lax.compare import select_n_p
from minijax.lax.shard_map import shard_map_p

__all__ = ["NanError", "Run", "has_nan", "nan", "nan_error", "search", "tell_nan"]

_MOST_TURNS = 100_000  # of a loop that is looked into
_MODULES = ("jax", "jnp", "lax", "nn", "np")
_CHOOSING = re.compile(r"where|select|piecewise|choose|cond|switch")


class NanError(FloatingPointError):
    """A NaN, with where it arose.

    `line` is the user's line (a file and a number), `primitive` the name of the operation, `index`
    the place in its result, `turns` those of the loops around it, outermost first; `backward` says
    whether it arose in the gradient, `masked` whether a `where` was to hide it.
    """

    line: tuple[str, int]
    primitive: str
    index: tuple[int, ...]
    turns: tuple[int, ...]
    backward: bool
    masked: bool


def nan(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that gives the results of `f`, or names the line where a NaN arose.

    - `f`: function of pytrees of arrays, also under `jit`, `grad`, `vmap` and in loops

    Where a result is NaN, the function raises `FloatingPointError` with the user's line of the
    operation that made it from operands without NaN, in which turn of which loop, whether in the
    gradient, and what to write where a `where` was to hide it. A NaN that reaches no result is none.
    Source: the jaxpr, run equation by equation.

    >>> explain.nan(jax.grad(jnp.sqrt))(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """

    @functools.wraps(f, updated=())
    def checked(*args, **kwargs):
        before = values_of(f, args, kwargs, donated=True)
        results = f(*args, **kwargs)
        if any(map(has_nan, tree_util.tree_leaves(results))):
            raise _found(f, args, kwargs, before)
        return results

    return named_after(f, checked)


def _found(f: Callable, args: tuple, kwargs: dict, leaves: list[Any]) -> NanError:
    for number, x in enumerate(leaves):
        if has_nan(x):
            return _of_argument(number, x)
    stage, seen = watched(lambda: traced(f, args, kwargs))
    run = Run(stage.jaxpr, leaves)
    origin = search(run, [n for n, v in enumerate(run.results) if has_nan(v)], ())
    if origin is None and any(map(has_nan, run.results)):
        return NanError("A result is NaN: it is a constant of the program.")
    if origin is None:  # only the compiled program makes one
        return NanError("A result of the compiled program is NaN, and none if run step by step.")
    return nan_error(origin, seen, stage.jaxpr)


def _of_argument(number: int, x: Any) -> NanError:
    error = NanError(
        f"Argument {number} is NaN already, at index {_index(x)} of shape {np.shape(x)}."
    )
    error.line, error.primitive, error.index = ("", 0), "", _index(x)
    error.turns, error.backward, error.masked = (), False, False
    return error


def _host(value: Any) -> np.ndarray | None:
    """The values as NumPy can look at them; None where there is no NaN among values of the type."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return np.asarray(value) if isinstance(value, (float, complex)) else None
    if not dtypes.issubdtype(dtype, np.inexact):
        return None
    found = np.asarray(value)
    return found.astype(np.float32) if found.dtype.kind == "V" else found


def has_nan(value: Any) -> bool:
    found = _host(value)
    return found is not None and bool(np.isnan(found).any())


def _has_infinity(value: Any) -> bool:
    found = _host(value)
    return found is not None and bool(np.isinf(found).any())


def _index(value: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(np.isnan(_host(value)))[0])


# -- running ---------------------------------------------------------------------------------------


class Run:
    """A program with the values of all variables, those within calls among them."""

    def __init__(self, closed: ClosedJaxpr, args: Sequence[Any]):
        closed = on_arrays(closed)
        self.values: dict[Any, Any] = {}
        self.same: dict[Var, Any] = {}  # variables of calls, and what stands for them outside
        self.eqns: list[JaxprEqn] = []
        self.maker: dict[Var, int] = {}
        self.outvars = list(closed.outvars)
        self.constants: set[Var] = set()
        self._bind(closed, args)
        self._run(closed)
        self.results = [self.read(v) for v in self.outvars]

    def _bind(self, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
        self.constants.update(closed.constvars)
        self.values.update(zip(closed.constvars, closed.consts, strict=True))
        self.values.update(zip(closed.invars, args, strict=True))

    def is_constant(self, atom: Any) -> bool:
        """Whether a value, as `base` gives it, stands in the program itself, or follows from such."""
        if type(atom) is Literal or atom in self.constants:
            return True
        operands = self.eqns[self.maker[atom]].invars if atom in self.maker else ()
        if not operands or not all(map(self.is_constant, map(self.base, operands))):
            return False
        self.constants.add(atom)
        return True

    def read(self, atom: Any) -> Any:
        return atom.value() if type(atom) is Literal else self.values[atom]

    def base(self, atom: Any) -> Any:
        while type(atom) is not Literal and atom in self.same:
            atom = self.same[atom]
        return atom

    def _run(self, closed: ClosedJaxpr) -> None:
        for eqn in closed.eqns:
            ins, inner = [self.read(v) for v in eqn.invars], called(eqn)
            if inner is not None:
                self._bind(inner, ins)
                self.same.update(zip(inner.invars, eqn.invars, strict=True))
                self._run(inner)
                outs = [self.read(v) for v in inner.outvars]
                self.same.update(zip(eqn.outvars, inner.outvars, strict=True))
            else:
                out = eqn.primitive.bind(*ins, **eqn.params)
                outs = out if eqn.primitive.multiple_results else [out]
                self.maker.update(dict.fromkeys(eqn.outvars, len(self.eqns)))
                self.eqns.append(eqn)
            self.values.update(zip(eqn.outvars, outs, strict=True))


class _Origin(NamedTuple):
    """An equation that makes NaN, in a run of a program, and the turns of the loops around it."""

    run: Run
    eqn: JaxprEqn
    place: int  # of the result
    turns: tuple[int, ...]


def search(run: Run, places: Sequence[int], turns: tuple[int, ...]) -> _Origin | None:
    """The first of the equations that made the NaN of these results, from operands without NaN or from
    a constant.
    """
    first = _first(run, [run.outvars[n] for n in places], has_nan, constants=True)
    if first is None:
        return None
    eqn, place = run.eqns[first[0]], first[1]
    return _within(run, eqn, turns) or _Origin(run, eqn, place, turns)


def _first(
    run: Run, atoms: Sequence[Any], bad: Callable, constants: bool = False
) -> tuple[int, int] | None:
    """The first equation that made `bad` values of others on the way to `atoms`, and its result.

    With `constants`, it may have made them of a constant, too.
    """
    todo = [run.base(atom) for atom in atoms]
    done: set[Var] = set()
    found: list[tuple[int, int]] = []
    constant: list[tuple[int, int]] = []  # where a constant is spread, which others then read
    while todo:
        var = todo.pop()
        if type(var) is Literal or var in done:
            continue
        done.add(var)
        number = run.maker.get(var)
        if number is None:
            continue
        operands = [v for v in map(run.base, run.eqns[number].invars) if bad(run.read(v))]
        todo += operands
        place = number, run.eqns[number].outvars.index(var)
        if not operands:
            found.append(place)
        elif constants and any(map(run.is_constant, operands)):
            (constant if run.is_constant(var) else found).append(place)
    return min(found or constant, default=None)


def _within(run: Run, eqn: JaxprEqn, turns: tuple[int, ...]) -> _Origin | None:
    """The origin within a loop, a branch or a shard_map; None elsewhere."""
    args = list(map(run.read, eqn.invars))
    if eqn.primitive is shard_map_p:
        return _within_parts(eqn, args, turns)
    if eqn.primitive.rule_steps is None:
        return None
    found: list[_Origin | None] = []
    count = 0

    def turn(program, *args):
        nonlocal count
        inner = Run(program, args)
        bad = [n for n, x in enumerate(inner.results) if has_nan(x)]
        if bad:
            looped = eqn.primitive.programs.carried is not None
            around = (*turns, count) if looped else turns
            found.append(search(inner, bad, around))
            raise _FoundError
        count += 1
        if count > _MOST_TURNS:
            raise _FoundError
        return inner.results

    try:
        run_steps(eqn, args, turn)
    except _FoundError:
        pass
    return found[0] if found else None


def _within_parts(eqn: JaxprEqn, args: Sequence[Any], turns: tuple[int, ...]) -> _Origin | None:
    """The origin within a `shard_map`, with the values on one of the devices where it arose."""
    (program,) = sub_programs(eqn)
    eqns = [each.replace(scope=joined(eqn.scope, each.scope)) for each in program.eqns]
    parts = PartsTrace(eqn)
    with parts.entered():
        program = ClosedJaxpr(program.jaxpr.replace(eqns=eqns), program.consts)
        run = Run(program, parts.split(eqn, args))
        origin = search(run, [n for n, x in enumerate(run.results) if has_nan(x)], turns)
        made = origin and origin.run.read(origin.eqn.outvars[origin.place])
        if isinstance(made, Tracer):  # as it is not where a `shard_map` within has been looked into
            row, values = _index(made)[0], origin.run.values
            values.update({var: on_device(x, row) for var, x in values.items()})
    return origin


class _FoundError(Exception):
    """Raised to leave a loop in which a NaN has been found."""


# -- telling ---------------------------------------------------------------------------------------


def nan_error(origin: _Origin, seen: Origins, program: ClosedJaxpr | None = None) -> NanError:
    run, eqn, place, turns = origin
    rules = seen.rules(eqn)
    backward = any(transform == "transpose" for transform, _ in rules) or "transpose(" in eqn.scope
    line, index = line_of(eqn), _index(run.read(eqn.outvars[place]))
    choice = None
    if backward or "jvp(" in eqn.scope or any(transform == "jvp" for transform, _ in rules):
        choice = _choice(run.eqns, line, run.base, lambda v: not has_nan(run.read(v)))
    if choice is None and program is not None and backward and _meets_zero(run, eqn, index):
        choice = _choice_within(program, line)  # of the forward loop
    masked = choice is not None
    made = f" ({' ← '.join(f'{t} of {p.name}' for t, p in rules)})" if rules else ""
    side = ", in the gradient" if backward else ""
    loops = f", in turn {', '.join(map(str, turns))} of the loop" if turns else ""
    written = linecache.getline(*line).strip()
    text = [
        f"the first NaN arose at {_named(line)}{side}{loops}:",
        f"    {written}",
        f"{eqn.primitive.name}{made} gave it at index {index} of {eqn.outvars[place].aval.str_short()}"
        f"{_operands(run, eqn, index)}{_constant(run, eqn)}.",
        *_infinity(run, eqn, index, line),
    ]
    if masked:
        text += list(_remedy(line, choice))
    error = NanError("\n".join(text))
    error.line, error.primitive, error.index, error.turns = line, eqn.primitive.name, index, turns
    error.backward, error.masked = backward, masked
    return error


def _named(line: tuple[str, int]) -> str:
    """The line with its whole path, which editors follow, or its cell of a notebook."""
    name = file_name(line[0])
    return f"{name if name.startswith('Cell ') else line[0]}:{line[1]}"


def tell_nan(closed: ClosedJaxpr, args: Sequence[Any]) -> None:
    """Raise the error of `debug_nans` for a program whose results have NaN, if it made them."""
    if not local.context.settings.debug_nans:
        return
    with override("debug_nans", False), override("debug_infs", False):
        run = Run(closed, args)
        bad = [n for n, x in enumerate(run.results) if has_nan(x)]
        origin = search(run, bad, ()) if bad else None
        if origin is None:
            return
        found = nan_error(origin, Origins())
    aval = origin.eqn.outvars[origin.place].aval.str_short()
    place = place_named(origin.eqn.source)
    begin = f"invalid value (nan) encountered in {found.primitive} at {place}, in a result of type {aval}"
    found.args = (f"{begin}: {found}",)
    raise found


def _operands(run: Run, eqn: JaxprEqn, index: tuple[int, ...]) -> str:
    """The operands at the place of the NaN, where they have one there."""
    shown = [f"{x:.6g}" for _, x in _elements(run, eqn, index)]
    return f", from {' and '.join(shown)}" if shown else ""


def _constant(run: Run, eqn: JaxprEqn) -> str:
    """The operand that is NaN, if the program has it as a constant."""
    given = (v for v in map(run.base, eqn.invars) if run.is_constant(v))
    return ": a constant of the program is NaN" if any(has_nan(run.read(v)) for v in given) else ""


def _elements(run: Run, eqn: JaxprEqn, index: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield the operands that have an element at the place of the NaN, and that."""
    shape = eqn.outvars[0].aval.shape
    for var in eqn.invars:
        value = _host(run.read(var))
        if value is not None and value.shape in (shape, ()):
            yield var, value[index if value.shape == shape else ()]


def _infinity(
    run: Run, eqn: JaxprEqn, index: tuple[int, ...], line: tuple[str, int]
) -> Iterator[str]:
    """Yield which line made an operand of the NaN that is infinite."""
    for var, x in _elements(run, eqn, index):
        first = _first(run, [var], _has_infinity) if np.isinf(x) else None
        if first is not None:
            made = run.eqns[first[0]]
            place = line_of(made)
            if place != line:
                yield f"{x:.6g} was made at {_named(place)}, by {made.primitive.name}:"
                yield f"    {linecache.getline(*place).strip()}"
            else:
                yield f"{x:.6g} was made on the same line, by {made.primitive.name}."
            return


def _choice(
    eqns: Sequence[JaxprEqn], line: tuple[str, int], base: Callable, hides: Callable
) -> tuple[str, int] | None:
    """The line of a `where` that chooses between the value that was made on a line and another."""
    reached: set[Any] = set()
    for eqn in eqns:
        if "transpose(" in eqn.scope:
            continue
        if line_of(eqn) == line and eqn.primitive is not select_n_p:
            reached.update(eqn.outvars)
            continue
        if not any(base(v) in reached for v in eqn.invars if type(v) is not Literal):
            continue
        if eqn.primitive is select_n_p and _is_written(eqn) and hides(eqn.outvars[0]):
            return line_of(eqn)
        reached.update(eqn.outvars)
    return None


def _is_written(choice: JaxprEqn) -> bool:
    """Whether a choice is the user's: rules and library functions choose among values as well."""
    text = expression_at(choice.source).partition("(")[0]
    return not text or _CHOOSING.search(text) is not None


def _choice_within(program: ClosedJaxpr, line: tuple[str, int]) -> tuple[str, int] | None:
    """The first such `where` in a program or in those of its loops, branches and calls."""
    inner = [p for eqn in program.eqns for p in sub_programs(eqn)]
    found = _choice(program.eqns, line, lambda v: v, lambda v: True)
    return found or next(filter(None, (_choice_within(p, line) for p in inner)), None)


def _meets_zero(run: Run, eqn: JaxprEqn, index: tuple[int, ...]) -> bool:
    """Whether an operand, as the derivative of what a `where` has not chosen, is zero there."""
    shape = eqn.outvars[0].aval.shape
    values = [_host(run.read(v)) for v in eqn.invars]
    return any(v is not None and v.shape == shape and v[index] == 0 for v in values)


def _remedy(line: tuple[str, int], choice: tuple[str, int]) -> Iterator[str]:
    """Return how to write a masked value, with the user's own expressions where they are on one
    line.
    """
    where = "there" if choice == line else f"at {short(choice)}"
    yield (
        f"The where {where} does not hide it: both of its values are computed, and the derivative of "
        "the one not chosen is 0 times what is not finite. Give that one a harmless operand first:"
    )
    written = _rewritten(choice, _assigned(line))
    yield f"    {written or 'safe = jnp.where(mask, x, 1.0); jnp.where(mask, f(safe), other)'}"


def _assigned(line: tuple[str, int]) -> str:
    """The variable that a line assigns, or nothing."""
    return linecache.getline(*line).partition("=")[0].strip()


def _rewritten(line: tuple[str, int], made: str) -> str | None:
    """A `where` of the user's with the operand of the function within replaced by a harmless one.

    Where it chooses a variable that is `made` on another line, that one is to be computed so.
    """
    text = linecache.getline(*line).strip()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 3:
            continue
        name = ast.unparse(node.func)
        if name.rpartition(".")[2] != "where":
            continue
        mask = ast.unparse(node.args[0])
        used = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
        used -= {*_MODULES, name.partition(".")[0]}
        for branch, safe in ((1, (mask, "{}", "1.0")), (2, (mask, "1.0", "{}"))):
            inner = node.args[branch]
            operands = [n.id for n in ast.walk(inner) if isinstance(n, ast.Name) and n.id in used]
            if isinstance(inner, ast.Name):
                operands = sorted(used) if inner.id == made and len(used) == 1 else []
            if not operands:
                continue
            operand = operands[0]
            chosen = ", ".join(part.format(operand) for part in safe)
            if isinstance(inner, ast.Name):
                return (
                    f"safe = {name}({chosen}), and {made} computed from safe instead of {operand}"
                )
            return f"safe = {name}({chosen}); {_renamed(node, branch, operand)}"
    return None


def _renamed(node: ast.Call, branch: int, operand: str) -> str:
    parts = [ast.unparse(x) for x in node.args]
    inner = ast.parse(parts[branch], mode="eval")
    for name in ast.walk(inner):
        if isinstance(name, ast.Name) and name.id == operand:
            name.id = "safe"
    parts[branch] = ast.unparse(inner)
    return f"{ast.unparse(node.func)}({', '.join(parts)})"
