"""Rules of primitives, and the source of anything public."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from types import CellType, ModuleType
from typing import Any, NamedTuple

from minijax.core.primitive import ByPlatform, NoRule, Primitive, RuleColumn, all_primitives
from minijax.explain.tables import Report, Table
from minijax.namespace import names_so_far
from minijax.tracebacks import as_defined

__all__ = ["Place", "RulesReport", "RuleRow", "place_of_rule", "primitive", "rules", "where"]

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
COLUMNS = tuple(slot.removeprefix("rule_") for slot in Primitive.__slots__ if slot[:5] == "rule_")


class Place(NamedTuple):
    """Lines of a source file, and the names of the definitions before and behind them."""

    file: str
    first: int
    last: int
    before: str = ""
    behind: str = ""

    @property
    def source(self) -> str:
        """The text of the lines."""
        with open(self.file, encoding="utf-8") as file:
            return "".join(file.readlines()[self.first - 1 : self.last])

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.file.removeprefix(_ROOT)}:{lines}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return Table(
            str(self), ["source"], [[line] for line in self.source.split("\n")]
        )._repr_html_()


class RuleRow(NamedTuple):
    """One rule: of which primitive, for which interpreter; its data; the reason where there is none."""

    primitive: Primitive
    column: str
    rule: Any
    place: Place | None
    reason: str


class RulesReport(Report):
    """The result of `rules` and `primitive`."""

    def __init__(self, title: str, rows: list[RuleRow], named: str):
        self.title, self.rows, self.named = title, rows, named

    def tables(self) -> list[Table]:
        """Return one table: the primitive or the interpreter, and the place or the reason."""
        cells = [[getattr(r, self.named), r.place or "", r.reason] for r in self.rows]
        return [Table(self.title, [self.named, "rule", "none because"], cells)]


def rules(column: str | RuleColumn) -> RulesReport:
    """List the rules that one interpreter has, over all primitives.

    - `column`: string, as `"jvp"`, `"transpose"`, `"batch"`, `"lower"`: a rule that `Primitive` has;
      or a `RuleColumn` of another interpreter

    The report has `.rows`, by primitive: the rule, the file and lines of its data, and the reason
    where a primitive has none on purpose. ValueError for an unknown name. Source: the primitives'
    own slots.

    >>> len(explain.rules("jvp").rows) > 100
    True
    """
    name = column.name if isinstance(column, RuleColumn) else column
    if not isinstance(column, RuleColumn) and column not in COLUMNS:
        raise ValueError(f"No interpreter has rules named {column!r}: there are {sorted(COLUMNS)}.")
    found = [row for p in _primitives() for row in _rows(p, column)]
    return RulesReport(f"rules of {name}: {len(found)}", found, "primitive")


def primitive(name: str | Primitive) -> RulesReport:
    """List the rules that one primitive has, over all interpreters.

    - `name`: string, as `"sin"`, or a `Primitive`

    The report has `.rows`, by interpreter: the rule, the file and lines of its data (of the function
    that differentiates `sin`, not of a closure that all such rules share), and the reason where
    there is none on purpose. ValueError for an unknown name. Source: the primitive's own slots.

    >>> [row.column for row in explain.primitive("sin").rows if row.reason]
    ['transpose']
    """
    if isinstance(name, str):
        known = {p.name: p for p in _primitives()}
        if name not in known:
            near = [other for other in sorted(known) if name in other or other in name]
            raise ValueError(f"No primitive is named {name!r}. Near it: {near or sorted(known)}.")
        name = known[name]
    found = [row for column in COLUMNS for row in _rows(name, column)]
    return RulesReport(f"rules of {name.name}, defined at {_definition(name)}", found, "column")


def _primitives() -> list[Primitive]:
    """Return the package's primitives and others by name; of two with a name, the last."""
    named = [name for name in all_primitives if isinstance(name, str)]  # users may name theirs 3
    return [all_primitives[name] for name in sorted(named)]


def _rows(p: Primitive, column: str | RuleColumn) -> Iterator[RuleRow]:
    if isinstance(column, RuleColumn):
        name, rule = column.name, column.rule(p)
    else:
        name, rule = column, getattr(p, f"rule_{column}")
    each = {"": rule}
    if isinstance(rule, ByPlatform):
        each = {"": rule.default, **{f" on {on}": one for on, one in rule.rules.items()}}
    for on, one in each.items():
        if isinstance(one, NoRule):
            yield RuleRow(p, name + on, one, None, one.reason)
        elif one is not None:
            yield RuleRow(p, name + on, one, place_of_rule(p, one), "")


def place_of_rule(p: Primitive, rule: Any) -> Place | None:
    """The lines of a rule: of its data, where its code is shared by the rules of many primitives."""
    function = inspect.unwrap(getattr(rule, "__func__", rule))
    code = getattr(function, "__code__", None)
    if code is None:
        return _definition(p) or _of_object(type(rule))
    if "<locals>" not in code.co_qualname:
        return _of_object(function)
    data = [f for f in _functions_within(function) if "<locals>" not in f.__code__.co_qualname]
    return (_of_object(data[0]) if data else None) or _definition(p) or _of_object(function)


def _functions_within(value: Any, depth: int = 3) -> Iterator[Callable]:
    """Yield the functions that a closure, or a tuple or list in it, holds."""
    if isinstance(value, (tuple, list)):
        inner = list(value)
    else:
        cells = getattr(value, "__closure__", None) or ()
        inner = [cell.cell_contents for cell in cells if cell != CellType()]
    for item in inner:
        if inspect.isfunction(item):
            yield item
        if depth and (isinstance(item, (tuple, list)) or hasattr(item, "__closure__")):
            yield from _functions_within(item, depth - 1)


def where(obj: Any) -> Place:
    """Find the source of anything public: a function, class, module, primitive or transform.

    - `obj`: the object, or its dotted name as a string, as `"minijax.numpy.sin"`

    The result has `.file`, the lines `.first` to `.last`, their text as `.source`, and the names of
    the neighbours `.before` and `.behind`. TypeError where an object has no source. Source:
    `inspect` and the module's syntax tree.

    >>> str(explain.where(jax.grad)).startswith("minijax/transforms/grad.py:")
    True
    """
    if isinstance(obj, str):
        obj = _named(obj)
    defined = as_defined(obj)
    code = getattr(defined, "__code__", None)
    made = code is not None and "<locals>" in code.co_qualname
    made = made and defined.__module__.startswith("minijax.")
    place = None if made or isinstance(obj, Primitive) else _of_object(obj)
    if place is None:
        data = [f for f in _functions_within(defined) if "<locals>" not in f.__qualname__]
        place = _definition(obj) or _of_object(data[0] if data else obj)
    if place is None:  # a class that a call made, for one
        place = _definition(obj)
    if place is None and not isinstance(obj, (type, ModuleType)):
        place = _of_object(getattr(obj, "_fun", None) or getattr(obj, "__wrapped__", type(obj)))
    if place is None:
        raise TypeError(f"{obj!r} has no Python source.")
    return place


def _named(name: str) -> Any:
    """The object of a dotted name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[count:], found)
    raise ValueError(f"There is no module {parts[0]!r}.")


def _of_object(obj: Any) -> Place | None:
    """The lines of a function, class or module."""
    if isinstance(obj, ModuleType):
        file = getattr(obj, "__file__", None)
        return None if file is None else Place(file, 1, _statements(file)[1])
    obj = inspect.unwrap(getattr(obj, "__func__", obj))
    code = getattr(obj, "__code__", None)
    try:
        file = inspect.getsourcefile(obj)
        lines, first = ([], code.co_firstlineno) if code else inspect.getsourcelines(obj)
    except (OSError, TypeError):
        return None
    if file is None or not os.path.exists(file):
        return None
    last = first + len(lines) - 1
    if code is not None:
        last = max([line for *_, line in code.co_lines() if line] + [first])
        last = _ends(file).get(first, last)
    return _with_neighbours(file, first, last)


@functools.lru_cache(256)
def _statements(file: str) -> tuple[list[tuple[str, int, int]], int]:
    """The definitions of a file, each with its name and lines, and the file's number of lines."""
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    found = []
    for node in ast.parse(text).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append((node.name, first, node.end_lineno or first))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (n.id for target in targets for n in ast.walk(target) if type(n) is ast.Name)
            found += [(name, first, node.end_lineno or first) for name in names]
    return found, text.count("\n")


@functools.lru_cache(256)
def _ends(file: str) -> dict[int, int]:
    """The last line of each function and class of a file, by its first, methods included."""
    with open(file, encoding="utf-8") as opened:
        tree = ast.parse(opened.read())
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return {min([n.lineno, *(d.lineno for d in n.decorator_list)]): n.end_lineno for n in found}


def _with_neighbours(file: str, first: int, last: int) -> Place:
    """Lines of a file with the definitions around them; a whole one is given all of its lines."""
    before = behind = ""
    for name, start, end in _statements(file)[0]:
        if end < first:
            before = name
        elif start > last:
            behind = name
            break
        elif start == first:
            last = max(last, end)
    return Place(file, first, last, before, behind)


def _definition(p: Any) -> Place | None:
    """The statement of the package that defines a primitive, or another object that has a name; or one
    that it is a copy of, with another name.
    """
    inner = getattr(p, "__wrapped__", None)
    copies = lambda value: inner is not None and getattr(value, "__wrapped__", None) is inner
    return _statement(lambda value: value is p) or _statement(copies)


def _statement(wanted: Callable[[Any], bool]) -> Place | None:
    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] != "minijax" or getattr(module, "__file__", None) is None:
            continue
        for name, value in list(names_so_far(module).items()):
            if wanted(value):
                for defined, first, last in _statements(module.__file__)[0]:
                    if defined == name:
                        return _with_neighbours(module.__file__, first, last)
    return None
