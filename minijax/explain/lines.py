"""Programs as lines: one for each equation, with the user's line, the transform and the rule."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from minijax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from minijax.core.primitive import ByPlatform, Primitive
from minijax.core.source import joined
from minijax.explain.origins import Origins
from minijax.explain.programs import file_name, line_of, placed, short
from minijax.explain.rule_tables import Place, place_of_rule, where
from minijax.features.printing import letters
from minijax.transforms.primitives import add_tangents

__all__ = ["Book", "Line", "Span", "Stage", "rule_place", "sources"]

_COLUMNS = {
    "jvp": ("jvp", "linearize"),
    "vmap": ("batch_axis", "batch"),
    "transpose": ("transpose",),
}
_LONGEST = 96  # characters of a param that are shown
_MOST_VALUES = 3  # of the results of an equation
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Line(NamedTuple):
    """A line of a stage: its text, how deep it stands, and what it belongs to.

    `kin` is the number of the user's line, 0 for none; `made` says which transform and rule made an
    equation, `place` where that rule stands; `opens` and `closes` are around what can be folded.
    """

    text: str
    depth: int = 0
    kin: int = 0
    where: str = ""
    made: str = ""
    place: str = ""
    transform: str = ""
    value: str = ""
    opens: bool = False
    closes: bool = False


class Stage(NamedTuple):
    """One stage: its name, the kind of its text, its lines, and a program where it is one."""

    name: str
    kind: str
    lines: list[Line]
    jaxpr: ClosedJaxpr | None = None

    @property
    def text(self) -> str:
        """The lines with their indents."""
        return "\n".join("  " * line.depth + line.text for line in self.lines)


@functools.lru_cache(4096)
def rule_place(transform: str, primitive: Primitive) -> Place | None:
    """The lines of the data of a rule."""
    if transform not in _COLUMNS:
        return where(add_tangents)
    for column in _COLUMNS[transform]:
        rule = getattr(primitive, f"rule_{column}")
        if isinstance(rule, ByPlatform):
            rule = rule.default
        if rule is not None:
            return place_of_rule(primitive, rule)
    return None


class _Names(dict):
    """Letters of variables, in the order in which they are asked for, and texts with them.

    Primitives with a notation of their own take it for a printer of jaxprs.
    """

    def __missing__(self, var: Var) -> str:
        self[var] = letters(len(self))
        return self[var]

    def name(self, var: Var) -> str:
        return "_" if type(var) is DropVar else self[var]

    def binder(self, var: Var) -> str:
        return f"{self.name(var)}:{var.aval.str_short(True)}"

    def atom(self, atom: Any) -> str:
        if type(atom) is not Literal:
            return self[atom]
        value = atom.val.item() if isinstance(atom.val, np.generic) else atom.val
        return f"{value}:{atom.aval.str_short(True)}"


class Book:
    """Numbers of the user's lines, and programs written with them."""

    def __init__(self, origins: Origins):
        self.origins = origins
        self.kin: dict[tuple[str, int], int] = {}
        self.codes: dict[CodeType, None] = {}
        self.values: dict[Any, Span] = {}  # by variable, what is known of values

    def number(self, eqn: JaxprEqn) -> int:
        """The number of the user's line of an equation."""
        if eqn.source is None:
            return 0
        self.codes.setdefault(eqn.source[0])
        return self.kin.setdefault(line_of(eqn), len(self.kin) + 1)

    # -- equations ---------------------------------------------------------------------------------

    def made(self, eqn: JaxprEqn) -> tuple[str, str, str]:
        """Return the origin of an equation: transforms and rules, the place of the last, and its
        transform.
        """
        rules = self.origins.rules(eqn)
        if not rules:
            transform = next((t for t in ("transpose", "jvp", "vmap") if f"{t}(" in eqn.scope), "")
            if not transform:
                return "written", "", "written"
            rules = [(transform, eqn.primitive)]
        text = " ← ".join(f"{transform} of {p.name}" for transform, p in rules)
        place = rule_place(*rules[0])
        return text, str(place or ""), rules[0][0].split()[0]

    def program(self, closed: ClosedJaxpr | Jaxpr) -> list[Line]:
        """The lines of a program and of all within it."""
        jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
        return list(self._program(jaxpr, _Names(), 0, ""))

    def _program(self, jaxpr: Jaxpr, names: _Names, depth: int, label: str) -> Iterator[Line]:
        head, inputs = (" ".join(map(names.binder, vs)) for vs in (jaxpr.constvars, jaxpr.invars))
        yield Line(f"{label}{{ lambda {head}; {inputs}. let", depth, opens=True)
        for eqn in jaxpr.eqns:
            yield self._equation(eqn, names, depth + 1)
            for name, program in _programs(eqn):
                if name == "update_jaxpr":  # kept from the first scatter of its kind, on any line
                    here = [e.replace(source=eqn.source) for e in program.eqns]
                    program = program.replace(eqns=here)
                within = placed(program, eqn.source)
                yield from self._program(within, names, depth + 2, f"{name}=")
        results = ", ".join(map(names.atom, jaxpr.outvars))
        yield Line(f"in ({results}) }}", depth, closes=True)

    def _equation(self, eqn: JaxprEqn, names: _Names, depth: int) -> Line:
        if eqn.primitive.shown is not None:
            text = eqn.primitive.shown(names, eqn)
        else:
            ins, params = " ".join(map(names.atom, eqn.invars)), " ".join(_params(eqn))
            outs = ["_" if type(v) is DropVar else names.binder(v) for v in eqn.outvars]
            text = f"{' '.join(outs)} = " if outs else ""
            text += eqn.primitive.name + f"[{params}]" * bool(params) + f" {ins}" * bool(ins)
        made, place, transform = self.made(eqn)
        number = self.number(eqn)
        shown = [v for v in eqn.outvars if eqn.primitive.shown is None or type(v) is not DropVar]
        spans = [str(self.values[var]) for var in shown if var in self.values]
        value = ", ".join(list(filter(None, spans))[:_MOST_VALUES])
        line = short(line_of(eqn)) if number else ""
        return Line(text, depth, number, line, made, place, transform, value)

    # -- texts of modules --------------------------------------------------------------------------

    def marked(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """A copy of a program whose operations carry the numbers of their lines in their names."""

        def within(value: Any, eqn: JaxprEqn) -> Any:
            if isinstance(value, ClosedJaxpr):
                return self.marked(placed(value, eqn.source))
            if isinstance(value, Jaxpr):
                return within(ClosedJaxpr(value), eqn).jaxpr if not value.constvars else value
            if isinstance(value, tuple) and any(isinstance(x, (ClosedJaxpr, Jaxpr)) for x in value):
                held = [within(x, eqn) for x in value]
                return type(value)(*held) if hasattr(value, "_fields") else tuple(held)
            return value

        eqns = [
            eqn.replace(
                params={name: within(value, eqn) for name, value in eqn.params.items()},
                scope=joined(eqn.scope, f"_k{self.number(eqn)}{self.made(eqn)[2][:1]}_"),
            )
            for eqn in closed.jaxpr.eqns
        ]
        return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)

    def module(self, text: str) -> list[Line]:
        """The lines of a StableHLO or HLO module, by the marks in it."""
        places = {name: found for name, found in _ALIAS.findall(text)}
        lines = []
        for line in text.splitlines():
            if line.startswith("#loc") or not line.strip():
                continue
            named = line
            for alias in _USES.findall(line):
                named += places.get(alias, "")
            marks = _MARK.findall(named)
            clean = _METADATA.sub("", _LOCATION.sub("", line)).rstrip()
            depth = (len(clean) - len(clean.lstrip())) // 2
            opens = clean.endswith("{") and depth + (clean[:1] in "%E") > 0
            kin, initial = (int(marks[-1][0]), marks[-1][1]) if marks and not opens else (0, "")
            written = next((short(x) for x, n in self.kin.items() if n == kin), "") if kin else ""
            closes = clean.strip().startswith("}") and not clean.endswith("{")
            transform = _INITIALS.get(initial, "")
            found = Line(clean.lstrip(), depth, kin, written, transform=transform)
            lines.append(found._replace(opens=opens, closes=closes))
        return _balanced(lines)


_MARK = re.compile(r"_k(\d+)([a-z])_")
_INITIALS = {"j": "jvp", "t": "transpose", "v": "vmap", "s": "sum"}
_ALIAS = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.M)
_USES = re.compile(r"loc\((#loc\d*)\)")
_LOCATION = re.compile(r"\s*loc\((?:#loc\d*|unknown|\"(?:[^\"\\]|\\.)*\"(?:\([^)]*\)|:\d+:\d+)?)\)")
_METADATA = re.compile(r", metadata=\{[^}]*\}")


def _balanced(lines: list[Line]) -> list[Line]:
    """Leave marks of folds only where each that is opened is closed, and the reverse."""
    stack: list[int] = []
    pairs: set[int] = set()
    for number, line in enumerate(lines):
        if line.closes and stack:
            pairs |= {stack.pop(), number}
        if line.opens:
            stack.append(number)
    return [
        line._replace(opens=line.opens and n in pairs, closes=line.closes and n in pairs)
        for n, line in enumerate(lines)
    ]


def _programs(eqn: JaxprEqn) -> Iterator[tuple[str, Jaxpr]]:
    for name, value in eqn.params.items():
        several = isinstance(value, (tuple, list))
        for number, item in enumerate(value if several else (value,)):
            if isinstance(item, (ClosedJaxpr, Jaxpr)):
                jaxpr = item.jaxpr if isinstance(item, ClosedJaxpr) else item
                yield (f"{name}[{number}]" if several else name), jaxpr


def _params(eqn: JaxprEqn) -> Iterator[str]:
    held = {name.partition("[")[0] for name, _ in _programs(eqn)}
    rule = eqn.primitive.printed
    shown = rule(eqn.params) if rule is not None else eqn.params
    for name in sorted(shown):
        value = shown[name]
        if name in held or value is None or value is False:
            continue
        text = " ".join(_ADDRESS.sub("", str(value)).split())
        yield f"{name}={text if len(text) < _LONGEST else text[:_LONGEST] + '…'}"


# -- the user's source -----------------------------------------------------------------------------


def sources(book: Book, fun: Any) -> list[Line]:
    """The lines of the user's functions that equations come from, file by file."""
    fun = inspect.unwrap(fun)
    if hasattr(fun, "__code__"):
        book.codes.setdefault(fun.__code__)
    files: dict[str, set[int]] = {}
    for code in book.codes:
        if code.co_name == "<module>":  # of a script, only what made equations
            continue
        lines = [line for *_, line in code.co_lines() if line]
        first, last = min([code.co_firstlineno, *lines]), max([code.co_firstlineno, *lines])
        files.setdefault(code.co_filename, set()).update(range(max(1, first), last + 1))
    for file, line in book.kin:
        files.setdefault(file, set()).add(line)
    found = []
    for file, numbers in files.items():
        found.append(Line(f"# {file_name(file)}", opens=True))
        before = 0
        for number in sorted(numbers):
            text = linecache.getline(file, number).rstrip("\n")
            if before and number > before + 1:
                found.append(Line("…"))
            before = number
            found.append(Line(f"{number:4} {text}", 0, book.kin.get((file, number), 0)))
        found.append(Line("", closes=True))
    return found


class Span:
    """The range of values, and how many of them are NaN; nothing for keys and complex numbers."""

    def __init__(self, *values: Any):
        self.bad = 0
        self.low = self.high = None
        self.is_part = False  # of a loop, whose later turns are not looked at
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        """Have the range hold the elements of one more array."""
        if not getattr(value, "size", 0) or not isinstance(value.dtype, np.dtype):
            return
        found = np.asarray(value)
        if found.dtype.kind == "V":
            found = found.astype(np.float32)
        if found.dtype.kind not in "fiub":
            return
        bad = np.isnan(found) if found.dtype.kind == "f" else np.zeros((), bool)
        self.bad += int(bad.sum())
        good = found[~bad] if bad.any() else found
        if good.size:
            low, high = good.min(), good.max()
            self.low = low if self.low is None else min(low, self.low)
            self.high = high if self.high is None else max(high, self.high)

    def __str__(self) -> str:
        text = "" if self.low is None else f"{self.low:.4g}"
        if self.low != self.high:
            text += f" … {self.high:.4g}"
        text += f" {self.bad} NaN" if self.bad else ""
        return text.strip() + (" in the first turns" if text and self.is_part else "")
