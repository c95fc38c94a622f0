"""Programs of functions, without their calls: one list of equations, each with the user's line."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.config import override
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, dce_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.source import Source, joined, summarize
from minijax.features.queries import is_ref
from minijax.features.references.cells import Ref
from minijax.features.references.discharge import on_values
from minijax.lax.convert import copy_p
from minijax.stages import Traced
from minijax.transforms.jit import PjitFunction, jit

__all__ = [
    "Flat", "bytes_of", "called", "expression_at", "file_name", "inlined", "is_backward", "line_of",
    "on_arrays", "place_named", "placed", "short", "start_of", "sub_programs", "traced", "values_of",
]  # fmt: skip


def traced(
    f: Callable, args: Sequence[Any], kwargs: dict[str, Any], name: str | None = None
) -> Traced:
    """Trace a function anew, whatever has been traced of it. What has no line has its first one.

    Static arguments of a jitted function stay static.
    """

    def fresh(*args, **kwargs):
        return f(*args, **kwargs)

    fresh.__name__ = name or getattr(f, "__name__", "f")
    static = f._marks if isinstance(f, PjitFunction) and f._marks.has_static else None
    numbers, names = (static.static_argnums, static.static_argnames) if static else ((), ())
    with override("check_tracer_leaks", False):  # tools hold what they look at
        jitted = jit(fresh, static_argnums=numbers, static_argnames=names)
        stage = jitted.trace(*args, **kwargs)
    closed = placed(stage.jaxpr, start_of(f))
    return stage if closed is stage.jaxpr else stage.with_jaxpr(closed)


def start_of(f: Callable) -> Any:
    """Return the place where a function is defined, as equations have it; None if it is not known."""
    f = inspect.unwrap(f)
    while isinstance(f, functools.partial):
        f = inspect.unwrap(f.func)
    code = getattr(f, "__code__", None)
    if code is None:
        return None
    lines = [line for line, *_ in code.co_positions()]  # the first ones of a closure have none
    return code, 2 * lines.index(next(filter(None, lines), None))


def placed(program: Any, source: Any) -> Any:
    """Return a program whose equations have this place where they have none of their own.

    Those of the library's functions have none, since calls on several lines share them; nor has what
    transforms themselves make of the outermost function, as zeros.
    """
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    if source is None or all(eqn.source is not None for eqn in jaxpr.eqns):
        return program
    jaxpr = jaxpr.replace(eqns=[eqn.replace(source=eqn.source or source) for eqn in jaxpr.eqns])
    return ClosedJaxpr(jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else jaxpr


def values_of(f: Callable, args: tuple, kwargs: dict[str, Any], donated: bool = False) -> list[Any]:
    """Return the leaves of arguments that are not static, with values in the places of references.

    With `donated`, those that a call of `f` deletes are copied.
    """
    if not isinstance(f, PjitFunction):
        leaves, gone = tree_util.tree_leaves((args, kwargs)), ()
    else:
        call = f._marks.split(args, kwargs)
        leaves, gone = call.leaves, call.donated if donated else ()
    leaves = [x[...] if isinstance(x, Ref) else x for x in leaves]
    return [copy_p.bind(x) if lost else x for x, lost in zip_longest(leaves, gone)]


def on_arrays(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program on the values of references, which gives their last ones after its results.

    It is the same one where it has none. What is run in part, or again, must change nothing.
    """
    return on_values(closed) if _has_references(closed) else closed


def _has_references(closed: ClosedJaxpr) -> bool:
    made = (v.aval for eqn in closed.eqns for v in eqn.outvars)
    inner = (program for eqn in closed.eqns for program in sub_programs(eqn))
    return any(map(is_ref, (*closed.in_avals, *made))) or any(map(_has_references, inner))


class Flat(NamedTuple):
    """A program whose calls are replaced by the programs that they call."""

    constants: list[tuple[Var, Any]]
    invars: list[Var]
    eqns: list[JaxprEqn]
    outvars: list[Any]


def sub_programs(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """Yield the programs among the params of an equation, with their constants."""
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield placed(item, eqn.source)
            elif isinstance(item, Jaxpr) and not item.constvars:
                yield ClosedJaxpr(placed(item, eqn.source))


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The one program that an equation runs once on its operands, if it is such a call."""
    calls = eqn.primitive.programs
    if calls is None or calls.counts:
        return None
    (program,) = calls.all(eqn.params)
    program = ClosedJaxpr(program) if isinstance(program, Jaxpr) else program
    return placed(program, eqn.source) if isinstance(program, ClosedJaxpr) else None


def inlined(closed: ClosedJaxpr, keeping: Primitive | None = None) -> Flat:
    """Replace calls by the equations of what they call; leave out what no result needs.

    Calls that the primitive `keeping` makes stay.
    """
    names: dict[Any, Any] = {}
    constants = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    read = lambda v: v if type(v) is Literal else names.get(v, v)

    def walk(jaxpr: Jaxpr, scope: str, made: list[JaxprEqn]) -> None:
        for eqn in jaxpr.eqns:
            ins, within = [read(v) for v in eqn.invars], joined(scope, eqn.scope)
            program = None if eqn.primitive is keeping else called(eqn)
            if program is None:
                outs = [Var(v.aval) for v in eqn.outvars]
                names.update(zip(eqn.outvars, outs, strict=True))
                made.append(eqn.replace(invars=ins, outvars=outs, scope=within))
                continue
            for var, value in zip(program.constvars, program.consts, strict=True):
                names[var] = Var(var.aval)
                constants.append((names[var], value))
            names.update(zip(program.invars, ins, strict=True))
            walk(program.jaxpr, within, made)
            outs = [read(v) for v in program.outvars]
            names.update(zip(eqn.outvars, outs, strict=True))

    eqns: list[JaxprEqn] = []
    walk(closed.jaxpr, "", eqns)
    outvars = [read(v) for v in closed.outvars]
    whole = Jaxpr([v for v, _ in constants], closed.invars, outvars, eqns)
    kept = dce_jaxpr(whole, [True] * len(outvars), instantiate=True)[0]
    return Flat(constants, list(closed.invars), kept.eqns, list(kept.outvars))


def bytes_of(var: Any) -> int:
    """The size of the array that a variable stands for; none of references and tokens."""
    aval = var.aval
    dtype = getattr(aval, "dtype", None)
    if dtype is None or not hasattr(aval, "shape"):
        return 0
    size = 1
    for length in aval.shape:
        size *= length
    return size * getattr(dtype, "itemsize", 8)


def is_backward(eqn: JaxprEqn) -> bool:
    """Whether an equation was made by transposing one of the linear program of a derivative."""
    return "transpose(" in str(eqn.scope)


def line_of(eqn: JaxprEqn, otherwise: Any = None) -> tuple[str, int]:
    """The file and the line in the user's program that an equation comes from."""
    source = eqn.source or otherwise
    if source is None:
        return "<unknown>", 0
    place = Source(*source)
    return place.code.co_filename, place.position[0] or 0


def expression_at(place: Any) -> str:
    """Return the user's expression at a place, or nothing where its source is not known."""
    if place is None:
        return ""
    code, offset = place[0], place[1]
    positions = list(code.co_positions())
    first, last, start, end = positions[offset // 2] if offset // 2 < len(positions) else [None] * 4
    if first is None or last is None:
        return ""
    lines = [linecache.getline(code.co_filename, n).rstrip("\n") for n in range(first, last + 1)]
    if not any(lines):
        return ""
    if start is not None and end is not None:
        lines[-1] = lines[-1].encode()[:end].decode(errors="ignore")
        lines[0] = lines[0].encode()[start:].decode(errors="ignore")
    return "\n".join(lines)


def file_name(path: str) -> str:
    """Return a file as users know it: a cell of a notebook, or a path relative to here if shorter."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda path: None)(path)
    if named is not None:
        return " ".join(named)
    try:
        return min(path, os.path.relpath(path), key=len)
    except ValueError:  # on another drive
        return path


def place_named(place: Any) -> str:
    """Write a place as `file.py:3:4 (f)`, with the file's whole path or the cell of a notebook."""
    text = summarize(place)
    if place is None:
        return text
    path = place[0].co_filename
    name = file_name(path)
    return text.replace(path, name, 1) if name.startswith("Cell ") else text


def short(line: tuple[str, int]) -> str:
    """Write a line as `file.py:3`; what has no number, as `<compiler>`, without one."""
    name = os.path.basename(file_name(line[0]))
    return f"{name}:{line[1]}" if line[1] else name
