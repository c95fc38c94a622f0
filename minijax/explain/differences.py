"""The differences of two programs, equation by equation; names of variables do not count."""

from __future__ import annotations

import difflib
import html
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from minijax.explain.programs import traced
from minijax.features.printing import letters

__all__ = ["Difference", "Pair", "diff"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SCALAR = re.compile(r"\bnp\.\w+\(([^()]*)\)")  # of NumPy, as its `repr` writes it
_PLACEMENT = {  # params of calls in which the libraries differ, and which change no value
    "ctx_mesh", "donated_invars", "in_layouts", "in_shardings", "inline", "keep_unused",
    "out_layouts", "out_shardings", "compiler_options_kvs", "device",
}  # fmt: skip


class _Item(NamedTuple):
    """A line of a program that can be compared with one of another library's."""

    depth: int
    kind: tuple
    params: dict[str, str]
    ins: list[Any]
    outs: list[Any]


class Pair(NamedTuple):
    """A line of each program: `mark` is " " for equal ones, "~" changed, "-" and "+" for one alone."""

    mark: str
    left: str
    right: str


class Difference:
    """The result of `diff`: pairs of lines."""

    def __init__(self, pairs: list[Pair]):
        self.pairs = pairs

    @property
    def same(self) -> bool:
        """Whether the two programs are equal but for names."""
        return all(pair.mark == " " for pair in self.pairs)

    def __bool__(self) -> bool:
        return not self.same

    def __repr__(self) -> str:
        lines = []
        for mark, left, right in self.pairs:
            if mark == "~" and left != right:
                lines += [f"- {left}", f"+ {right}"]
            else:
                lines.append(f"{mark} {left or right}")
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        colors = {" ": "", "~": "#fff3bf66", "-": "#ffc9c966", "+": "#b2f2bb66"}
        cell = '<td style="text-align: left; white-space: pre; font-family: monospace">'
        rows = "".join(
            f'<tr style="background: {colors[mark]}"><td>{mark}</td>{cell}{html.escape(left)}</td>'
            f"{cell}{html.escape(right)}</td></tr>"
            for mark, left, right in self.pairs
        )
        return f"<table><tbody>{rows}</tbody></table>"


def diff(f: Any, g: Any, *args: Any, **kwargs: Any) -> Difference:
    """Compare the programs of two functions, equation by equation.

    - `f`, `g`: functions, or jaxprs, of this library or of upstream
    - `args`, `kwargs`: arrays and pytrees as both take them, or `ShapeDtypeStruct`s

    The result is true where the programs differ, shows the lines of both, and has `.pairs` of them.
    Equations are equal where primitives, types, params and the operands are; names of variables do
    not count. TypeError where a function cannot be traced. Source: longest common subsequences.

    >>> print(explain.diff(lambda x: jnp.sin(x) * 2, lambda x: jnp.cos(x) * 2, 1.0))
      { lambda ; a:f32[]. let
    -   b:f32[] = sin a
    +   b:f32[] = cos a
        c:f32[] = mul b 2.0:f32[]
      in (c) }
    """
    left, right = (_items(_program(x, args, kwargs)) for x in (f, g))
    return Difference(list(_compared(left, right)))


def _program(x: Any, args: Any, kwargs: Any) -> Any:
    """The open jaxpr of a function or of a jaxpr, of whichever library."""
    if not hasattr(x, "eqns"):
        try:
            x = traced(x, args, kwargs).jaxpr
        except TypeError:  # upstream does not know our tracers
            upstream = sys.modules.get("jax")
            if upstream is None:
                raise
            x = upstream.make_jaxpr(x)(*args, **kwargs)
    return getattr(x, "jaxpr", x)


def _held(params: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in sorted(params):
        value = params[name]
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(item, "eqns"):
                yield name, getattr(item, "jaxpr", item)


def _items(jaxpr: Any, depth: int = 0, label: str = "") -> list[_Item]:
    types = tuple(_type(v) for v in jaxpr.invars)
    consts = list(jaxpr.constvars)
    found = [_Item(depth, ("lambda", label, types), {}, [], [*consts, *jaxpr.invars])]
    for eqn in jaxpr.eqns:
        held = list(_held(eqn.params))
        names = {name for name, _ in held} | _PLACEMENT
        params = {
            name: " ".join(_SCALAR.sub(r"\1", _ADDRESS.sub("", str(value))).split())
            for name, value in eqn.params.items()
            if name not in names and value is not None and not callable(value)
        }
        kind = (str(eqn.primitive), *map(_type, eqn.outvars))
        found.append(_Item(depth + 1, kind, params, list(eqn.invars), list(eqn.outvars)))
        for name, inner in held:
            found += _items(inner, depth + 2, f"{name}=")
    found.append(_Item(depth, ("in", *map(_type, jaxpr.outvars)), {}, list(jaxpr.outvars), []))
    return found


def _type(atom: Any) -> str:
    aval = atom.aval
    return aval.str_short(short_dtypes=True) if hasattr(aval, "str_short") else str(aval)


class _Side:
    """The variables of one program, each with what it is known by, which gives it a letter."""

    def __init__(self, names: dict[Any, str]) -> None:
        self.names = names
        self.known: dict[int, Any] = {}

    def identity(self, atom: Any) -> Any:
        if hasattr(atom, "val"):
            value = atom.val
            return str(int(value) if isinstance(value, int) and value is not True else value)
        return self.known.get(id(_base(atom)), id(_base(atom)))

    def name(self, atom: Any) -> str:
        known = self.identity(atom)
        if hasattr(atom, "val"):
            return f"{known}:{_type(atom)}"
        return self.names.setdefault(known, letters(len(self.names)))

    def text(self, item: _Item) -> str:
        indent, kind = "  " * item.depth, item.kind
        outs = " ".join(f"{self.name(v)}:{_type(v)}" for v in item.outs)
        ins = " ".join(map(self.name, item.ins))
        if kind[0] == "lambda":
            return f"{indent}{kind[1]}{{ lambda ; {outs}. let"
        if kind[0] == "in":
            return f"{indent}in ({ins.replace(' ', ', ')}) }}"
        params = " ".join(f"{n}={v[:60]}" for n, v in item.params.items() if v != "False")
        params = f"[{params}]" if params else ""
        return f"{indent}{outs} = {kind[0]}{params} {ins}".rstrip()


def _base(var: Any) -> Any:
    return getattr(var, "var", var)


def _compared(left: list[_Item], right: list[_Item]) -> Iterator[Pair]:
    keys = [[(x.depth, x.kind) for x in side] for side in (left, right)]
    matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
    names: dict[Any, str] = {}
    a, b = _Side(names), _Side(names)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag != "equal" and not _stand_for(left[a0:a1], right[b0:b1]):
            yield from (Pair("-", a.text(x), "") for x in left[a0:a1])
            yield from (Pair("+", "", b.text(x)) for x in right[b0:b1])
            continue
        for x, y in zip(left[a0:a1], right[b0:b1], strict=True):
            equal = tag == "equal" and _is_equal(x, y, a, b)
            for number, (v, w) in enumerate(zip(x.outs, y.outs, strict=False)):
                a.known[id(_base(v))] = b.known[id(_base(w))] = (id(x), number)
            yield Pair(" " if equal else "~", a.text(x), b.text(y))


def _stand_for(left: list[_Item], right: list[_Item]) -> bool:
    """Whether equations of one program stand for as many of the other, with results of their types."""
    types = [
        [(x.depth, x.kind[0] in ("lambda", "in"), x.kind[1:]) for x in s] for s in (left, right)
    ]
    return types[0] == types[1]


def _is_equal(x: _Item, y: _Item, a: _Side, b: _Side) -> bool:
    if len(x.outs) != len(y.outs) or [a.identity(v) for v in x.ins] != [
        b.identity(v) for v in y.ins
    ]:
        return False
    return all(y.params.get(name, value) == value for name, value in x.params.items())
