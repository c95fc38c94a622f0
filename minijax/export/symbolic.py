"""Symbolic shapes as users write them: `"a, 2*b, ..."`, scopes with constraints, types of
arguments.

The expressions themselves are `features.symbolic.dims`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.core.avals import abstract
from minijax.errors import InconclusiveDimensionOperation
from minijax.features.queries import is_dim
from minijax.features.slots import slots
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.features.symbolic.dims import OPERATIONS, Scope
from minijax.tree_util.prefix import broadcast_prefix
from minijax.typing import DimSize

__all__ = ["SymbolicScope", "is_symbolic_dim", "symbolic_args_specs", "symbolic_shape"]


class SymbolicScope(Scope):
    """Dimension variables that belong together, with what is known of them.

    Each constraint is an inequality `"a >= b"`, `"a <= b"`, or an equation `"a == 2*b"`, whose left
    side is written as the right from then on. ValueError for one that cannot be read, or that no
    values satisfy.
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        super().__init__()
        if isinstance(constraints_str, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}"
            )
        self.constraints: list[tuple[str, str, Any]] = []  # as written, "eq" or "geq", difference
        for text in constraints_str:
            if not isinstance(text, str):
                raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        self.written = tuple(constraints_str)
        for text in self.written:
            self._add(text)

    def _add(self, text: str) -> None:
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        sides = [_parse(part, None, self) for part in text.split(sign, 1)]
        if any(len(side) != 1 for side in sides):
            raise ValueError(
                f"Constraint parsing error: {text!r} must have one expression on each side of {sign}"
            )
        ((left,), (right,)) = sides
        difference = right - left if sign == "<=" else left - right
        ends = _ends(difference)
        if ends[0] is False or (sign == "==" and ends[1] is False):
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        if sign == "==" and left != right and not _is_term(left):
            raise ValueError(
                f"Invalid equality constraint: {left} == {right}. The left-hand-side must be of the "
                "form `term * coefficient`, which is written as the right side from then on."
            )
        for x, y in _multiples(left) if sign == "==" and right == 0 else ():
            whole = y * (x // y)
            self.constraints.append((f"{whole} == {x}", "eq", whole - x))
        self.constraints.append((text, "eq" if sign == "==" else "geq", difference))
        if sign == "==":
            self.require_equal(left, right)
        else:
            self.require_positive(difference)

    def __str__(self) -> str:
        shown = "".join(f"\n  {text}" for text, _, _ in self.constraints)
        return f"{id(self)}" + (f" with constraints:{shown}" if shown else "")

    __repr__ = __str__


def _is_term(size: Any) -> bool:
    """Whether a size is a product of variables and operations, times a number."""
    return is_dim(size) and len(size.terms) == 1 and bool(size.terms[0][0])


def _multiples(size: Any) -> list[tuple[Any, Any]]:
    """The operands of `mod`, if a size is no more than that."""
    ((monomial, count), *others) = size.terms if is_dim(size) else (((), 0),)
    if others or count != 1 or len(monomial) != 1 or monomial[0][1] != 1:
        return []
    term = monomial[0][0]
    return [term.operands] if term.name == "mod" and term.operands else []


def _ends(difference: Any) -> list[bool | None]:
    """Whether a size is never negative, and never positive; None where that cannot be said."""
    found: list[bool | None] = []
    for holds in (lambda: difference >= 0, lambda: difference <= 0):
        try:
            found.append(holds())
        except InconclusiveDimensionOperation:
            found.append(None)
    return found


def is_symbolic_dim(p: DimSize) -> bool:
    """Whether a size is an expression of dimension variables, and no number."""
    return is_dim(p)


# -- reading ---------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[ \t\n\r\f\v]*(?:([0-9]+)|((?!_(?!\w))[^\W\d]\w*)|(\.\.\.|_)|([-+*^(),]))")
_NAMES = {
    "+": "PLUS", "-": "MINUS", "*": "STAR", "^": "CIRCUMFLEX", "(": "LPAR", ")": "RPAR", ",": "COMMA",
    "/": "SLASH", "//": "DOUBLESLASH", "**": "DOUBLESTAR", "%": "PERCENT", "": "ENDMARKER",
}  # fmt: skip


class _Parser:
    """Reads sums of products of numbers, names with powers, and calls of the four operations."""

    def __init__(self, text: str, like: Sequence[int | None] | None, scope: Scope):
        self.text, self.like, self.scope = text, like, scope
        self.place = self.dimension = 0
        self.token = ""
        self.kind = ""
        self.before = 0  # where the token begins
        self.advance()

    def advance(self) -> None:
        rest = self.text[self.place :]
        self.before = self.place + len(rest) - len(rest.lstrip())
        found = _TOKEN.match(self.text, self.place)
        odd = re.match(r"\s*(//|\*\*)", rest)
        if odd is not None or found is None:
            token = odd[1] if odd else rest.strip()[:1]
            self.token, self.kind = token, _NAMES.get(token, "ERRORTOKEN")
            return
        kinds = ("NUMBER", "NAME", "PLACEHOLDER", "OP")
        index = next(i for i in range(4) if found[i + 1] is not None)
        self.token = found[index + 1]
        self.kind = _NAMES[self.token] if kinds[index] == "OP" else kinds[index]
        self.place = found.end()

    def fail(self, why: str) -> ValueError:
        return ValueError(
            f"syntax error in symbolic shape {self.text!r} in dimension {self.dimension}: {why}. "
            f"Parsed {self.text[: self.before]!r}, remaining {self.text[self.before :]!r}."
        )

    def take(self, *kinds: str) -> str:
        if self.kind not in kinds:
            raise self.fail(f"expecting one of {{{', '.join(kinds)}}} but found {self.kind}")
        token = self.token
        self.advance()
        return token

    def shape(self) -> tuple[Any, ...]:
        sizes: list[Any] = []
        if self.kind == "ENDMARKER":
            return ()
        while True:
            self.dimension = len(sizes)
            if self.kind == "PLACEHOLDER":
                if self.like is None:
                    raise self.fail("spec contains ... but no 'like' shape was given")
                if self.token == "...":
                    sizes += self.like[len(sizes) :]
                    self.advance()
                    break
                sizes.append(self.from_like())
                self.advance()
            else:
                sizes.append(self.checked(self.sum()))
            if self.kind != "COMMA":
                break
            self.advance()
            if self.kind == "ENDMARKER":
                break
        self.take("ENDMARKER")
        return tuple(sizes)

    def from_like(self) -> Any:
        if self.dimension >= len(self.like) or self.like[self.dimension] is None:
            raise self.fail(f"unexpected placeholder for unknown dimension; like={self.like}")
        return self.like[self.dimension]

    def checked(self, size: Any) -> Any:
        like = self.like
        if like is not None and self.dimension < len(like) and not is_dim(size):
            known = like[self.dimension]
            if isinstance(known, int) and known != size:
                raise self.fail(f"different size {size} for known dimension; like={like}")
        return size

    def sum(self) -> Any:
        total, times = 0, 1
        if self.kind in ("PLUS", "MINUS"):
            times = 1 if self.kind == "PLUS" else -1
            self.advance()
        while True:
            total = total + times * self.term()
            if self.kind not in ("PLUS", "MINUS"):
                return total
            times = 1 if self.kind == "PLUS" else -1
            self.advance()

    def term(self) -> Any:
        product = self.factor()
        while self.kind not in ("PLUS", "MINUS", "COMMA", "RPAR", "ENDMARKER"):
            self.take("STAR")
            product = product * self.factor()
        return product

    def factor(self) -> Any:
        if self.kind == "MINUS":
            self.advance()
            return -self.factor()
        number = self.kind == "NUMBER"
        name = self.take("NAME", "MINUS", "NUMBER")
        if number:
            value = int(name)
        elif name in OPERATIONS and self.kind == "LPAR":
            value = self.call(name)
        else:
            value = self.scope.variable(name)
        if self.kind == "CIRCUMFLEX":
            self.advance()
            value = value ** int(self.take("NUMBER"))
        return value

    def call(self, name: str) -> Any:
        self.take("LPAR")
        first = self.sum()
        self.take("COMMA")
        second = self.sum()
        self.take("RPAR")
        return OPERATIONS[name](first, second)


def _parse(text: str, like: Sequence[int | None] | None, scope: Scope) -> tuple[Any, ...]:
    if not isinstance(text, str):
        raise ValueError(
            f"polymorphic shape spec should be None or a string. Found {text!r} of type {type(text)}."
        )
    inner = text.strip(" \t\n\r\f\v")
    if inner.startswith("(") and inner.endswith(")") and inner.count("(") == inner.count(")") == 1:
        text = inner[1:-1]
    return _Parser(text, like, scope).shape()


slots.fill(read_shape=lambda text, scope: _Parser(text, None, scope).shape())


def _scope(scope: Any, constraints: Sequence[str], both: str) -> SymbolicScope:
    """The scope that is given, or one with the constraints; `both` is said of both."""
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError(both)
    if not isinstance(scope, SymbolicScope):
        raise TypeError(f"scope must be a SymbolicScope; got {scope!r}.")
    return scope


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> Sequence[DimSize]:
    """The shape that a text stands for, such as `"batch, 2*n, ..."`.

    - `constraints`, or a `scope` that has some: see `SymbolicScope`
    - `like`: the shape that `_` and `...`, or a text that is None, take sizes from

    ValueError for a text that cannot be read, or that has other sizes than `like`.
    """
    scope = _scope(scope, constraints, "Cannot specify both a `scope` and `constraints`.")
    return _parse("..." if shape_spec is None else shape_spec, like, scope)


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """The types of arguments, with the shapes that texts stand for.

    `shapes_specs` is a tree of texts that is a prefix of `args`; None is the shape of the argument.
    Constraints and scope are as for `symbolic_shape`. ValueError if it is no prefix.
    """
    scope = _scope(scope, constraints, "Cannot use both `scope` and `constraints`")
    leaves, tree = tree_util.flatten(args)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):
        shapes_specs = tuple(shapes_specs)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    made = []
    for x, spec in itertools.zip_longest(leaves, specs):
        shape = np.shape(x) if not hasattr(x, "shape") else tuple(x.shape)
        dtype = abstract(x).dtype
        made.append(ShapeDtypeStruct(symbolic_shape(spec, scope=scope, like=shape), dtype))
    return tree.unflatten(made)
