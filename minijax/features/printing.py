"""Jaxprs as text. A jaxpr becomes a document: text, places where a line may break, and groups,
which stand on one line if they fit and are broken at all of their places if not. Widths are
computed as the document is built, so that laying it out takes one pass. Programs that are long
or used more than once are named in front: `let f = {...} in`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core import source
from minijax.core.effects import Effect
from minijax.core.hooks import hooks
from minijax.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from minijax.transforms.jit import jit_p

__all__ = ["Doc", "format_eqn", "format_jaxpr", "letters"]

_INLINE_EQUATIONS = 10  # a longer program is named in front of the one that calls it
_ADDRESS = r" at 0x[0-9a-fA-F]+"

# -- documents ------------------------------------------------------------------------------------


class _Break(NamedTuple):
    """A place where a line may break; `flat` is written where it does not."""

    flat: str = " "


class _Note(NamedTuple):
    """A comment on the line it falls on, set in a column to the right of the text."""

    text: str


class Doc:
    """Parts in a row. A group breaks as a whole or not; `indent` is that of lines within."""

    __slots__ = ("group", "indent", "parts", "width")

    def __init__(self, parts: Sequence[Any], indent: int = 0, *, group: bool = False):
        self.parts = parts
        self.indent = indent
        self.group = group
        width = 0
        for part in parts:
            kind = type(part)
            if kind is str:
                width += len(part)
            elif kind is Doc:
                width += part.width
            elif kind is _Break:
                width += len(part.flat)
        self.width = width

    def format(self, width: int = 80, **how: Any) -> str:
        """Its text, on lines of at most `width` columns where it can be; without colors."""
        return _render(self, width)

    def __str__(self) -> str:
        return self.format()


_SPACE = _Break()
_EMPTY = _Break("")
_FILL = Doc([_SPACE], group=True)  # breaks only where it stands, so that lines are filled


def _joined(separator: Any, items: Iterable[Any]) -> list[Any]:
    parts: list[Any] = []
    for item in items:
        if parts:
            parts.append(separator)
        parts.append(item)
    return parts


def _bracketed(opening: str, items: Iterable[Any], closing: str) -> Doc:
    inner = [_EMPTY, *_joined(_SPACE, items)]
    return Doc([opening, Doc(inner, 2), _EMPTY, closing], group=True)


def _render(doc: Doc, limit: int) -> str:
    """Lay a document out on lines of at most `limit` columns, where it can be."""
    lines: list[tuple[str, list[str]]] = []
    line: list[str] = []
    notes: list[str] = []
    column = 0
    todo: list[tuple[Any, int, bool]] = [(doc, 0, True)]
    while todo:
        item, indent, broken = todo.pop()
        kind = type(item)
        if kind is str:
            line.append(item)
            column += len(item)
        elif kind is Doc:
            if item.group:
                broken = broken and column + item.width > limit
            indent += item.indent
            todo.extend([(part, indent, broken) for part in reversed(item.parts)])
        elif kind is _Note:
            notes.append(item.text)
        elif broken:
            lines.append(("".join(line), notes))
            line, notes, column = [" " * indent], [], indent
        else:
            line.append(item.flat)
            column += len(item.flat)
    lines.append(("".join(line), notes))
    return "\n".join(_with_notes(lines))


def _with_notes(lines: list[tuple[str, list[str]]]) -> list[str]:
    """The lines, with their comments beside and below them in one column."""
    place = max(len(text) for text, _ in lines)
    out = []
    for text, notes in lines:
        out.append(f"{text:<{place}} # {notes[0]}" if notes else text)
        out.extend(f"{'':<{place}} # {note}" for note in notes[1:])
    return out


# -- names ----------------------------------------------------------------------------------------


def letters(number: int) -> str:
    """a, b, ..., z, ba, bb, ...: the number with letters for digits."""
    text = ""
    while not text or number:
        number, digit = divmod(number, 26)
        text = chr(ord("a") + digit) + text
    return text


class _Printer:
    """The names given so far, and what is to be shown."""

    def __init__(self, options: _Options):
        self.options = options
        self.var_names: dict[Var, str] = {}
        self.taken: set[str] = set()
        self.next = 0
        self.shared: dict[Jaxpr, str] = {}

    def name(self, var: Var) -> str:
        name = self.var_names.get(var)
        if name is None:
            while (name := letters(self.next)) in self.taken:
                self.next += 1
            self.next += 1
            self.var_names[var] = name
        return name

    def atom(self, atom: Var | Literal, typed: bool = True) -> str:
        if type(atom) is not Literal:
            return self.name(atom)
        value = atom.val
        if isinstance(value, np.generic):
            kind = value.dtype
            if kind.isbuiltin == 1:
                value = value.item()
            elif dtypes.issubdtype(kind, np.integer):
                value = int(value)
            elif kind != dtypes.float0:
                value = float(value)
        return f"{value}:{atom.aval.str_short(True)}" if typed else str(value)

    def operand(self, atom: Var | Literal) -> str:
        """An operand of an operation whose dtype a Python number takes, and is rounded to."""
        if type(atom) is Literal and type(atom.val) in (float, complex):
            atom = Literal(atom.aval.dtype.type(atom.val), atom.aval)
        return self.atom(atom)

    def binder(self, var: Var) -> str:
        name = self.name(var)
        return f"{name}:{var.aval.str_short(True)}" if self.options.print_shapes else name

    # -- programs -------------------------------------------------------------------------------

    def name_shared(self, jaxpr: Jaxpr) -> None:
        """Choose the sub-programs that are named in front, and their names."""
        counts = _count_uses(jaxpr, self.options.rules)
        used: Counter[str] = Counter()
        for each, (count, name) in counts.items():
            if count > 1 or len(each.eqns) > _INLINE_EQUATIONS:
                number = used[name]
                chosen = f"{name}{number}" if number else name
                used[name] += 1
                if chosen != name:
                    used[chosen] += 1
                self.shared[each] = chosen
        self.taken.update(self.shared.values())

    def program(self, jaxpr: Jaxpr) -> Doc:
        """The definitions of shared sub-programs, then the program itself."""
        self.name_shared(jaxpr)
        parts: list[Any] = []
        for each, name in self.shared.items():
            parts += [f"let {name} = ", self.jaxpr(each), " in", _SPACE]
        self.drop_unread(jaxpr)
        parts.append(self.jaxpr(jaxpr))
        return Doc(parts)

    def jaxpr(self, jaxpr: Jaxpr) -> Doc:
        head = ["lambda ", *_joined(_FILL, map(self.binder, jaxpr.constvars)), "; "]
        head += [*_joined(_FILL, map(self.binder, jaxpr.invars)), ". let"]
        eqns = Doc([_SPACE, *_joined(_Break("; "), map(self.eqn, jaxpr.eqns))], 4)
        outs = [self.atom(v) for v in jaxpr.outvars]
        if len(outs) == 1:
            results: list[Any] = [outs[0], ","]
        else:
            results = _joined(_FILL, [*(f"{out}," for out in outs[:-1]), *outs[-1:]])
        end: list[Any] = [")"]
        if self.options.print_effects:
            names = ", ".join(sorted(map(self.effect, jaxpr.effects)))
            end.append(f" : {{ {names} }}")
        body = ["{ ", Doc(head, 4), eqns, Doc([_SPACE], 2), "in (", Doc(results, 4), *end, " }"]
        return Doc(body, group=True)

    def effect(self, effect: Effect) -> str:
        return effect.shown(self.atom) if isinstance(effect, Effect) else str(effect)

    def drop_unread(self, jaxpr: Jaxpr) -> None:
        """Name `_` the results of equations that nothing reads; so is done at the top only."""
        read = {v for eqn in jaxpr.eqns for v in eqn.invars}
        read.update(jaxpr.outvars)
        for eqn in jaxpr.eqns:
            for var in eqn.outvars:
                if var not in read:
                    self.var_names[var] = "_"

    # -- equations ------------------------------------------------------------------------------

    def eqn(self, eqn: JaxprEqn) -> Doc:
        if self.options.rules and eqn.primitive is jit_p:  # written with the names of its caller
            self.share_names(eqn)
        parts: list[Any] = self.notes(eqn)
        if eqn.primitive.shown is not None and self.options.rules:
            return Doc([*parts, eqn.primitive.shown(self, eqn)])
        if eqn.outvars:
            parts += [Doc(_joined(_FILL, map(self.binder, eqn.outvars)), 2), " = "]
        parts.append(eqn.primitive.name)
        params = self.params(eqn)
        if params:
            parts.append(_bracketed("[", params, "]"))
        weak = all(getattr(v.aval, "weak_type", True) for v in eqn.invars)
        shown = self.atom if weak or eqn.primitive.programs is not None else self.operand
        parts += [" ", Doc(_joined(_FILL, map(shown, eqn.invars)), 2)]
        return Doc(parts)

    def notes(self, eqn: JaxprEqn) -> list[Any]:
        notes: list[Any] = []
        if self.options.source_info:
            notes.append(_Note(source.summarize(eqn.source)))
        if self.options.name_stack:
            notes.append(_Note(f"[{eqn.scope}]"))
        return notes

    def share_names(self, eqn: JaxprEqn) -> None:
        """Give the variables of the sub-program of a call the names of those it is called with."""
        inner = _as_jaxpr(eqn.params["jaxpr"])
        if inner in self.shared:
            return
        seen: set[str] = set()
        renamed: set[Var] = set()
        for var, atom in zip(inner.invars, eqn.invars, strict=True):
            if type(atom) is not Literal and (name := self.name(atom)) not in seen:
                self.var_names[var] = name
                seen.add(name)
                renamed.add(var)
        for var, outer in zip(inner.outvars, eqn.outvars, strict=True):
            if type(var) is not Literal and var not in renamed:
                self.var_names[var] = self.name(outer)
                renamed.add(var)

    def params(self, eqn: JaxprEqn) -> list[Doc]:
        rule = eqn.primitive.printed if self.options.rules else None
        shown = rule(eqn.params) if rule is not None else eqn.params
        # An operation that says what is printed of it is introduced by its name, if it has one.
        first = "name" if rule is not None else None
        names = sorted(shown, key=lambda name: (name != first, name))
        return [Doc([f"{name}=", self.value(shown[name])]) for name in names]

    def value(self, value: Any) -> Any:
        if isinstance(value, (Jaxpr, ClosedJaxpr)):
            return self.subprogram(value)
        if _all_programs(value):
            return _bracketed("(", map(self.subprogram, value), ")")
        if isinstance(value, np.dtype):
            return value.name
        return re.sub(_ADDRESS, " at 0xXXXXXXXXXXXX", str(value))

    def subprogram(self, value: Jaxpr | ClosedJaxpr) -> Any:
        jaxpr = _as_jaxpr(value)
        return self.shared.get(jaxpr) or self.jaxpr(jaxpr)


def _as_jaxpr(value: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return value.jaxpr if isinstance(value, ClosedJaxpr) else value


def _all_programs(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) > 0
        and all(isinstance(item, (Jaxpr, ClosedJaxpr)) for item in value)
    )


def _count_uses(jaxpr: Jaxpr, rules: bool) -> dict[Jaxpr, tuple[int, str]]:
    """Return how often each sub-program is used, and its name, those nearest to the top first.

    A use within a program that is itself used twice counts as two; nothing is counted past two, so
    that each program is visited at most twice.
    """
    uses: dict[Jaxpr, tuple[int, str]] = {}
    todo = deque([jaxpr])
    while todo:
        for eqn in todo.popleft().eqns:
            rule = eqn.primitive.printed if rules else None
            params = eqn.params
            for each in jaxprs_in_params(rule(params) if rule is not None else params):
                count, name = uses.get(each, (0, ""))
                if count == 0:
                    name = str(params.get("name", "jaxpr")).strip("<>")
                if count < 2:
                    uses[each] = (count + 1, name)
                    todo.append(each)
    return uses


# -- what `str` and `pretty_print` do -------------------------------------------------------------


class _Options(NamedTuple):
    source_info: bool = False
    name_stack: bool = False
    print_shapes: bool = True
    print_effects: bool = False
    rules: bool = True


def _options(
    *,
    source_info: bool = False,
    name_stack: bool = False,
    print_shapes: bool = True,
    print_effects: bool = False,
    custom_pp_eqn_rules: bool = True,
) -> _Options:
    return _Options(source_info, name_stack, print_shapes, print_effects, custom_pp_eqn_rules)


def format_jaxpr(
    jaxpr: Jaxpr | ClosedJaxpr, *, width: int = 80, use_color: bool = False, **options: bool
) -> str:
    """The text of a program.

    `source_info` and `name_stack` add where each equation was made and its named scopes;
    `print_shapes=False` leaves types out; `print_effects` adds the effects at the end;
    `custom_pp_eqn_rules=False` shows all parameters of every equation. Text has no colors:
    `use_color` is accepted for compatibility.
    """
    return _render(_Printer(_options(**options)).program(_as_jaxpr(jaxpr)), width)


def format_eqn(eqn: JaxprEqn, *, width: int = 80, **options: bool) -> str:
    """The text of one equation, with names of its own."""
    return _render(_Printer(_options(**options)).eqn(eqn), width)


hooks.fill(format_jaxpr=format_jaxpr, format_eqn=format_eqn)
