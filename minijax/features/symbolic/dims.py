"""Symbolic dimensions: sizes of arrays that are known when an exported program is called.

A `DimExpr` is a polynomial with integer coefficients over dimension variables, each at least 1, and
over `floordiv`, `mod`, `max` and `min` of such polynomials. It is no `int`: what needs its value
fails. Comparisons are decided for all values of the variables, or raise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from minijax.core.hooks import hooks
from minijax.errors import InconclusiveDimensionOperation
from minijax.features.queries import SizeExpression, is_dim, max_dim, min_dim
from minijax.features.slots import slots

__all__ = [
    "DimExpr",
    "Scope",
    "Term",
    "UnexpectedDimVar",
    "evaluate",
]

_INFINITY = math.inf
_HELP = """
This error arises for comparison operations with shapes that
are non-constant, and the result of the operation cannot be represented as
a boolean value for all values of the symbolic dimensions involved.

Please see https://docs.jax.dev/en/latest/export/shape_poly.html#comparison-of-symbolic-dimensions-is-partially-supported
for more details.
"""


def _inconclusive(message: str) -> InconclusiveDimensionOperation:
    """The error of a comparison that holds for some values of the variables, and not for others."""
    return InconclusiveDimensionOperation(message + _HELP)


class Term:
    """A dimension variable, or an operation on two expressions that is no polynomial."""

    __slots__ = ("key", "name", "operands", "size")

    def __init__(self, name: str, operands: tuple = ()):
        self.name, self.operands = name, operands
        self.size = 1 + sum(1 + _size(m) for x in operands for m, _ in _terms(x))
        self.key = (self.size, name, *[_order_of(x) for x in operands])

    def __eq__(self, other):
        return isinstance(other, Term) and self.key == other.key

    def __lt__(self, other):
        return self.key < other.key

    def __hash__(self):
        return hash(self.key)

    def __str__(self) -> str:
        return (
            f"{self.name}({', '.join(map(_shown, self.operands))})" if self.operands else self.name
        )


def _shown(x: Any) -> str:
    return f"- {-x}" if not is_dim(x) and x < 0 else str(x)


Monomial = tuple[tuple[Term, int], ...]  # factors with their powers, in order; () is the constant


def _size(monomial: Monomial) -> int:
    return sum(term.size * power + 1 for term, power in monomial)


def _order(monomial: Monomial) -> tuple:
    """Key of the order in which terms are written, from the last: by size, then by the last factor."""
    return _size(monomial), tuple((t.key, power) for t, power in reversed(monomial))


def _degree_order(item: tuple[Monomial, int]) -> tuple:
    """Key by which division finds the leading term: products keep the order by degree."""
    monomial, _ = item
    return sum(power for _, power in monomial), tuple((t.key, power) for t, power in monomial)


def _leading(x: Any) -> tuple[Monomial, int]:
    return max(_terms(x), key=_degree_order)


def _order_of(x: Any) -> tuple:
    return tuple((_order(monomial), count) for monomial, count in _terms(x))


class DimExpr(SizeExpression):
    """A size that depends on dimension variables. Equal only to what is the same for all of them."""

    __slots__ = ("_hash", "_terms", "scope")
    __array_priority__ = 100  # operators of NumPy's arrays leave it to these

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], scope: Scope):
        self._terms, self.scope = terms, scope
        self._hash = hash(("dim", terms))

    def __jax_array__(self) -> Any:
        return slots.dim_as_array(self)

    # -- arithmetic --------------------------------------------------------------------------------

    def _with(self, other: Any) -> Any:
        """The other operand, as an expression or a number; None if it is neither."""
        if type(other) is DimExpr:
            if other.scope is not self.scope:
                raise ValueError(
                    "Invalid mixing of symbolic scopes for linear combination.\n"
                    f"Expected '{self}' of scope {self.scope}\n"
                    f"and found '{other}' of scope {other.scope}: make both with one scope=."
                )
            return other
        if not hasattr(other, "__index__"):
            return None
        try:
            return index(other)
        except TypeError:
            return None

    def __add__(self, other):
        size = self._with(other)
        if size is None:
            return self.__jax_array__() + other
        return _sum(self.scope, [(self, 1), (size, 1)])

    __radd__ = __add__

    def __sub__(self, other):
        size = self._with(other)
        if size is None:
            return self.__jax_array__() - other
        return _sum(self.scope, [(self, 1), (size, -1)])

    def __rsub__(self, other):
        size = self._with(other)
        if size is None:
            return other - self.__jax_array__()
        return _sum(self.scope, [(size, 1), (self, -1)])

    def __neg__(self):
        return _sum(self.scope, [(self, -1)])

    def __mul__(self, other):
        size = self._with(other)
        if size is None:
            return self.__jax_array__() * other
        found: dict[Monomial, int] = {}
        for left, count in self._terms:
            for right, times in _terms(size):
                key = _product(left, right)
                found[key] = found.get(key, 0) + count * times
        return _made(self.scope, found)

    __rmul__ = __mul__

    def __pow__(self, power):
        if type(power) is DimExpr:
            return self.__jax_array__() ** power
        size = self._with(power)
        if size is None:
            if isinstance(power, float) and not power.is_integer():
                raise ValueError(
                    "Symbolic dimension cannot be raised to non-integer powers: "
                    f"'{self}' ** '{power}'. Make it an array first: jnp.asarray(size) ** power."
                )
            return self.__jax_array__() ** power
        if size < 0:
            raise ValueError(
                f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'. "
                "Make it an array first: jnp.asarray(size) ** power."
            )
        return math.prod([self] * size)

    def __rpow__(self, other):
        return other ** self.__jax_array__()

    def __truediv__(self, other):
        return self.__jax_array__() / other

    def __rtruediv__(self, other):
        return other / self.__jax_array__()

    def __divmod__(self, other):
        size = self._with(other)
        if size is None:
            return divmod(self.__jax_array__(), other)
        return _divided(self, size, self.scope)

    def __rdivmod__(self, other):
        size = self._with(other)
        if size is None:
            return divmod(other, self.__jax_array__())
        return _divided(size, self, self.scope)

    def __floordiv__(self, other):
        if self._with(other) is None:
            return self.__jax_array__() // other
        return divmod(self, other)[0]

    def __rfloordiv__(self, other):
        if self._with(other) is None:
            return other // self.__jax_array__()
        return divmod(other, self)[0]

    def __mod__(self, other):
        if self._with(other) is None:
            return self.__jax_array__() % other
        return divmod(self, other)[1]

    def __rmod__(self, other):
        if self._with(other) is None:
            return other % self.__jax_array__()
        return divmod(other, self)[1]

    # -- comparison --------------------------------------------------------------------------------

    def __eq__(self, other):
        return type(other) is DimExpr and self.scope is other.scope and self._terms == other._terms

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return self._hash

    def _compared(self, other: Any, sign: str, low: int, swap: bool) -> Any:
        """Whether the difference, turned round if `swap`, is at least `low`; raises if it may be."""
        given = self._with(other)
        if given is None:
            return NotImplemented
        difference = given - self if swap else self - given
        if type(difference) is not DimExpr:
            return difference >= low
        if _lower(difference) >= low:
            return True
        if -_lower(-difference) < low:
            return False
        raise _inconclusive(
            f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive."
        )

    def __ge__(self, other):
        return self._compared(other, ">=", 0, False)

    def __gt__(self, other):
        return self._compared(other, ">", 1, False)

    def __le__(self, other):
        return self._compared(other, "<=", 0, True)

    def __lt__(self, other):
        return self._compared(other, "<", 1, True)

    # -- what needs a value ------------------------------------------------------------------------

    def __int__(self):
        raise _inconclusive(
            f"Symbolic dimension '{self}' used in a context that requires a constant"
        )

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        out = ""
        for monomial, count in self._terms:
            factors = "*".join(f"{t}^{power}" if power > 1 else str(t) for t, power in monomial)
            size = abs(count)
            shown = (
                factors if size == 1 and factors else f"{size}*{factors}" if factors else f"{size}"
            )
            sign = "-" if count < 0 else "+"
            out += f" {sign} {shown}" if out else f"- {shown}" if count < 0 else shown
        return out

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def unexpected(self, what: str) -> UnexpectedDimVar:
        """Return the error of a program in which this size has no value."""
        return UnexpectedDimVar(min(self.variables()), what)

    @property
    def terms(self) -> tuple[tuple[Monomial, int], ...]:
        """Products of terms with their powers, and how often each is taken."""
        return self._terms

    def linear(self, name: str) -> tuple[str, int, Any] | None:
        """The variable, its factor and what is added, if it stands in one term by itself."""
        own = {((Term(name), 1),): count for m, count in self._terms if m == ((Term(name), 1),)}
        if not own:
            return None
        ((_, factor),) = own.items()
        rest = self - factor * self.scope.variable(name)
        return None if is_dim(rest) and name in rest.variables() else (name, factor, rest)

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        found: set[str] = set()
        for monomial, _ in self._terms:
            for term, _ in monomial:
                if term.operands:
                    found.update(*(x.variables() for x in term.operands if is_dim(x)))
                else:
                    found.add(term.name)
        return found


# -- making expressions ----------------------------------------------------------------------------


def _terms(x: Any) -> tuple:
    return x._terms if type(x) is DimExpr else ((((), x),) if x else ())


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers: dict[Term, int] = dict(left)
    for term, power in right:
        powers[term] = powers.get(term, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def _sum(scope: Scope, parts: Iterable[tuple[Any, int]]) -> Any:
    found: dict[Monomial, int] = {}
    for x, times in parts:
        for monomial, count in _terms(x):
            found[monomial] = found.get(monomial, 0) + count * times
    return _made(scope, found)


def _made(scope: Scope, found: dict[Monomial, int]) -> Any:
    """The expression with these terms, by the equations of the scope; a number if it is constant."""
    for monomial in [m for m, count in found.items() if count and m in scope.equal]:
        factor, value = scope.equal[monomial]
        times, rest = divmod(found.pop(monomial), factor)
        if rest:
            found[monomial] = times * factor + rest
            continue
        for other, count in _terms(value):
            found[other] = found.get(other, 0) + count * times
    kept = [(m, count) for m, count in found.items() if count]
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    kept.sort(key=lambda item: _order(item[0]), reverse=True)
    return DimExpr(tuple(kept), scope)


def _atom(scope: Scope, name: str, *operands: Any) -> Any:
    return _made(scope, {((Term(name, operands), 1),): 1})


def _divided(x: Any, y: Any, scope: Scope) -> tuple[Any, Any]:
    """Quotient and remainder, rounded down: by polynomial division where that comes out."""
    if type(y) is not DimExpr and y == 0:
        raise ZeroDivisionError(f"integer division or modulo by zero: of the size '{x}'")
    quotient, rest = 0, x
    lead, times = _leading(y)
    while _terms(rest):
        monomial, count = _leading(rest)
        factor = _quotient(monomial, lead)
        if factor is None or (count % times and (monomial or lead)):
            break
        if not monomial and not lead:  # numbers
            step = count // times
            return quotient + step, rest - step * y
        step = _made(scope, {factor: count // times})
        quotient, rest = quotient + step, rest - step * y
    if not _terms(rest):
        return quotient, 0
    return _atom(scope, "floordiv", x, y), _atom(scope, "mod", x, y)


def _quotient(monomial: Monomial, other: Monomial) -> Monomial | None:
    powers = dict(monomial)
    for term, power in other:
        powers[term] = powers.get(term, 0) - power
        if powers[term] < 0:
            return None
    return tuple(sorted(((t, p) for t, p in powers.items() if p), key=lambda item: item[0].key))


def _extreme(name: str, x: Any, y: Any) -> Any:
    """Return the larger or the smaller of two sizes, of which one is an expression at least."""
    try:
        above = x >= y
    except InconclusiveDimensionOperation:
        try:
            above = not y >= x
        except InconclusiveDimensionOperation:
            return _atom((x if is_dim(x) else y).scope, name, x, y)
    return x if above == (name == "max") else y


OPERATIONS = {
    "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "max": max_dim, "min": min_dim,
}  # fmt: skip


def evaluate(x: Any, values: dict[str, Any]) -> Any:
    """A size for these values of the variables, which may be sizes again."""
    if not is_dim(x):
        return x
    total: Any = 0
    for monomial, count in x._terms:
        product: Any = count
        for term, power in monomial:
            if term.operands:
                operands = [evaluate(y, values) for y in term.operands]
                value = OPERATIONS[term.name](*operands)
            else:
                value = values[term.name]
            product = product * math.prod([value] * power)
        total = total + product
    return total


# -- bounds ----------------------------------------------------------------------------------------


def _range(x: Any) -> tuple[float, float]:
    """An interval that has all values of an expression, each term by itself."""
    low = high = 0.0
    for monomial, count in _terms(x):
        a = b = 1.0
        for term, power in monomial:
            for _ in range(power):
                a, b = _times((a, b), _known_range(term, x.scope))
        a, b = _times((a, b), (count, count))
        low, high = low + a, high + b
    return low, high


def _times(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    found = [0.0 if 0 in (x, y) else x * y for x in one for y in other]
    return min(found), max(found)


def _known_range(term: Term, scope: Scope) -> tuple[float, float]:
    """The interval of one term, by what the user says of it alone."""
    low, high = _term_range(term)
    for known in scope.positive:  # count * term + rest >= 0
        terms = dict(_terms(known))
        count, rest = terms.pop(((term, 1),), 0), terms.pop((), 0)
        if count > 0 and not terms:
            low = max(low, float(-(rest // count)))
        elif count < 0 and not terms:
            high = min(high, float(rest // -count))
    return low, high


def _term_range(term: Term) -> tuple[float, float]:
    if not term.operands:
        return 1.0, _INFINITY
    (a, b), (c, d) = (_range(x) for x in term.operands)
    if term.name == "max":
        return max(a, c), max(b, d)
    if term.name == "min":
        return min(a, c), min(b, d)
    if term.name == "mod":
        return (0.0, d - 1) if c > 0 else (c + 1, 0.0) if d < 0 else (-_INFINITY, _INFINITY)
    if c <= 0:
        return -_INFINITY, _INFINITY
    ends = [_floor(x, y) for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _floor(x: float, y: float) -> float:
    if math.isinf(x):
        return x
    return (0.0 if x >= 0 else -1.0) if math.isinf(y) else float(x // y)


_DEPTH = 3


def _lower(x: Any, depth: int = _DEPTH) -> float:
    """A number that an expression is never below.

    Besides the intervals: what is known not to be negative, times a number, is taken away so that a
    term goes with it.
    """
    best = _range(x)[0]
    if depth == 0 or type(x) is not DimExpr:
        return best
    for monomial, count in x._terms:
        if not monomial:
            continue
        if monomial[0][0].name == ("max" if count < 0 else "min") and monomial[1:] == ():
            found = _either(x, monomial, count, depth)
            best = max(best, found)
            continue
        for known in x.scope.known(x):
            times = dict(_terms(known)).get(monomial, 0)
            if times * count <= 0:
                continue
            scale = abs(times) // math.gcd(times, count)
            rest = x * scale - known * (abs(count) // math.gcd(times, count))
            found = _lower(rest, depth - 1)
            best = max(best, found if math.isinf(found) else math.ceil(found / scale))
    return best


def _either(x: DimExpr, monomial: Monomial, count: int, depth: int) -> float:
    """The bound of an expression whose term is one of two, of which either may be the smaller."""
    ((term, power),) = monomial
    if not term.operands or power != 1:
        return -_INFINITY
    rest = x - count * _made(x.scope, {monomial: 1})
    return min(_lower(rest + count * operand, depth - 1) for operand in term.operands)


class UnexpectedDimVar(Exception):
    """A dimension variable has no value: it is in the type of no argument of the program."""

    def __init__(self, name: str, what: str):
        super().__init__(
            f"Encountered dimension variable '{name}' that is not appearing in the shapes of the "
            f"function arguments. {what}"
        )


class Scope:
    """Dimension variables that belong together, and what is known of them.

    `equal` has what a term stands for, `positive` expressions that are never negative.
    """

    def __init__(self) -> None:
        self.equal: dict[Monomial, tuple[int, Any]] = {}  # a number times the term, and that
        self.positive: list[Any] = []

    def read(self, text: str) -> tuple[Any, ...]:
        """The sizes that a text, as they are written, stands for."""
        return slots.read_shape(text, self)

    def variable(self, name: str) -> Any:
        return _made(self, {((Term(name), 1),): 1})

    def known(self, x: Any) -> list[Any]:
        """Expressions that are never negative: of the user, and of the operations in `x`."""
        return [one for one in [*self.positive, *self._of_operations(x)] if is_dim(one)]

    def _of_operations(self, x: Any) -> list[Any]:
        """Expressions that are never negative, from the operations in `x`."""
        found: list[Any] = []
        for monomial, _ in _terms(x):
            for term, _ in monomial:
                if term.operands:
                    found += _facts(term, DimExpr((((((term, 1),), 1)),), self))
        return found

    def require_positive(self, x: Any) -> None:
        """Note an inequality: `x` is never negative."""
        self.positive += [x, *self._of_operations(x)]

    def require_equal(self, left: Any, right: Any) -> None:
        """Note an equation: its left side, if a single term, is written as the right from now on."""
        both = [left - right, right - left]
        if len(_terms(left)) == 1 and _terms(left)[0][1] < 0:
            left, right = -left, -right
        if len(_terms(left)) == 1 and _terms(left)[0][1] > 0 and _terms(left)[0][0]:
            (monomial, times), term = _terms(left)[0], None
            if len(monomial) == 1 and monomial[0][1] == 1:
                term = monomial[0][0]
            self.equal[monomial] = times, right
            if term is not None and term.name == "mod" and right == 0:
                x, y = term.operands
                self.require_equal(y * (x // y), x)
            if term is not None and term.operands and times == 1:
                both += _facts(term, right)
        self.positive += both


def _facts(term: Term, own: Any) -> Sequence[Any]:
    x, y = term.operands
    if term.name == "max":
        return [own - x, own - y]
    if term.name == "min":
        return [x - own, y - own]
    if _range(y)[0] <= 0:
        return []
    if term.name == "mod":
        return [own, y - 1 - own]
    return [x - y * own, y * own + y - 1 - x]


hooks.fill(is_expression=is_dim)
slots.fill(extreme=_extreme)
