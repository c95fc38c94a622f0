"""Signatures: what calls can be made, read from the tables `functions.txt` and `transforms.txt`.

A row is `names | arguments | operands | functions`, under a section `[prefix flags]`:

    sin cos tan     | A                                | fc
    matmul          | A, B                             | n[m,k] n[k,n]
    |               | lax.select(A, B, C)              | b n[...] =[...]
    grad            | jax.grad(F)(A)                   | f         | F(A)->scalar

- without a prefix the arguments are the whole expression, and the name only names the operation
- letters `A` to `E` are operands, `F` to `H` functions; `%axis`, `%bool`, ... are parameters drawn by
  `STATICS`, and `{x;y}` is a choice
- an operand is `kinds[dimensions]/domain`: kinds are letters of `KINDS`, `=` (the dtype of `A`) or a
  dtype's name; dimensions are numbers, symbols (equal where they repeat) and `...`; without brackets
  the first operand has any shape and the others one that broadcasts with it
- a function is `F(parameters)->result`: parameters are operands, `A-0` without its axis 0, `A/2` with
  half of its axis 0; results are `any`, `float`, `inexact`, `scalar` (a float), the type of an operand, or `F`

Flags of a section: `same` (other operands have the shape of the first), `elementwise` (judged element by
element), `primitive` (each is about one primitive, and programs are about it more often), `random`, `closed`
(functions use nothing of outer ones), and those of `transforms.txt` that `generating` asks for.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import re

__all__ = ["KINDS", "Operand", "Row", "Slot", "functions", "transforms"]

KINDS = {"n": "fciu", "r": "fiu", "*": "fciub", "z": "iu", "x": "fc"}

_OPERAND = re.compile(r"(?P<kinds>[^\[/]+)(\[(?P<dims>[^\]]*)\])?(/(?P<domain>\w+))?$")
_SLOT = re.compile(r"(?P<name>[F-H])\((?P<parameters>[^)]*)\)(@(?P<axis>\w))?->(?P<result>\w+)")


@dataclasses.dataclass(frozen=True)
class Operand:
    """Kinds of dtypes, dimensions (None: any that broadcast) and domain of one operand."""

    kinds: str
    dims: tuple[str, ...] | None
    domain: str


@dataclasses.dataclass(frozen=True)
class Slot:
    """Parameters, result and mapped axis of one nested function."""

    parameters: tuple[str, ...]
    result: str
    axis: str


@dataclasses.dataclass(frozen=True)
class Row:
    """One kind of call: its operation, template, operands, nested functions and flags."""

    operation: str
    template: str
    operands: tuple[Operand, ...]
    slots: tuple[Slot, ...]
    flags: frozenset[str]


def _operand(text: str, index: int, flags: frozenset[str]) -> Operand:
    found = _OPERAND.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no operand: see minijax.difftest.signatures.")
    kinds = found["kinds"]
    if all(letter in "fciubenr*zx" for letter in kinds) and len(kinds) < 6:
        kinds = "".join(KINDS.get(letter, letter) for letter in kinds)
    dims = found["dims"]
    if dims is None:
        return Operand(
            kinds, ("...",) if index == 0 or "same" in flags else None, found["domain"] or ""
        )
    return Operand(kinds, tuple(dims.split(",")) if dims else (), found["domain"] or "")


def _rows(table: str):
    prefix, flags = "", frozenset()
    for line in table.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            head, *rest = line[1:-1].split()
            prefix, flags = ("" if head == "-" else head + "."), frozenset(rest)
            continue
        names, arguments, operands, slots = ([part.strip() for part in line.split("|")] + ["", ""])[
            :4
        ]
        specs = tuple(_operand(s, i, flags) for i, s in enumerate(operands.split()))
        nested = tuple(
            Slot(tuple(p.strip() for p in f["parameters"].split(",")), f["result"], f["axis"] or "")
            for f in _SLOT.finditer(slots)
        )
        for name in names.split():
            template = f"{prefix}{name}({arguments})" if prefix else arguments.replace(r"\n", "\n")
            yield Row(prefix + name, template, specs, nested, flags)


def _table(name: str) -> tuple[Row, ...]:
    return tuple(_rows((importlib.resources.files("minijax.difftest") / name).read_text()))


@functools.cache
def functions() -> tuple[Row, ...]:
    """Return the calls of public functions, in the order of their table."""
    return _table("functions.txt")


@functools.cache
def transforms() -> tuple[Row, ...]:
    """Return the calls that take functions, in the order of their table."""
    return _table("transforms.txt")
