"""How a sharding of the operands of an operation relates to one of its results, for Shardy.

A rule names the factors that dimensions consist of: those with the same name are split in the same
way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "parse_rule"]

BATCHING = "…"  # any number of leading dimensions
_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


def _check_factor(name: str) -> None:
    if not name[0].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{name[0]}'")


class CompoundFactor(tuple):
    """The factors of which one dimension is the product, from the one that varies slowest."""

    def __new__(cls, *factors: str):
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(
                    f"Each element of CompoundFactor must be a str, but got {type(factor)}"
                )
            if factor == BATCHING:
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The factors of the dimensions of an operand or result: a name each, or a CompoundFactor.

    BATCHING may stand first, for leading dimensions of any number.
    """

    def __new__(cls, *dim_mappings: str | CompoundFactor):
        for place, dim in enumerate(dim_mappings):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError(
                    f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(dim)}"
                )
            if dim == BATCHING:
                if place:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            elif isinstance(dim, str):
                _check_factor(dim)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A rule: a mapping for each operand and each result.

    A factor of a whole dimension has its size; others are given theirs by keyword. Factors are passed
    through unless they are named as `reduction_factors` (the results are sums over them),
    `need_replication_factors` (not to be split) or `permutation_factors` (splitting them costs an
    exchange). ValueError for names that the mappings do not have, and for sizes that are wanting.
    Source: Shardy's `op_sharding_rule`.
    """

    def __init__(
        self, operand_mappings: Sequence[Any], result_mappings: Sequence[Any], *,
        reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (), **factor_sizes: int,
    ):  # fmt: skip
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
        self.special = (reduction_factors, need_replication_factors, permutation_factors)
        self._check_sizes()
        self._check_special()

    def _mappings(self) -> Iterator[Any]:
        return chain.from_iterable([*self.operand_mappings, *self.result_mappings])

    def _check_sizes(self) -> None:
        dims = list(self._mappings())
        whole = {dim for dim in dims if isinstance(dim, str)}
        parts = {name for dim in dims if not isinstance(dim, str) for name in dim}
        for name in self.factor_sizes:
            if name in whole:
                raise ValueError(
                    f"Factor {name} represents a whole dimension; do not specify its size"
                )
            if name not in parts:
                raise ValueError(f"Factor {name} is not used in the rule, but size is provided")
        for dim in dims:
            for name in () if isinstance(dim, str) else dim:
                if name not in whole and name not in self.factor_sizes:
                    raise ValueError(
                        f"Factor {name} is only used in compound factors; must specify its size"
                    )

    def _check_special(self) -> None:
        used = {n for dim in self._mappings() for n in ((dim,) if isinstance(dim, str) else dim)}
        seen: set[str] = set()
        for kind, names in zip(_KINDS, self.special, strict=True):
            if not isinstance(names, tuple):
                raise ValueError(f"{kind} must be a tuple of factors")
            for name in names:
                if name not in used:
                    raise ValueError(f"Factor {name} in {kind} is not used in the rule")
                if name in seen:
                    raise ValueError(
                        f"Factor {name} can only be in one of the reduction, need replication, or "
                        "permutation factor sets."
                    )
                seen.add(name)

    def __str__(self) -> str:
        kinds = zip(_KINDS, self.special, strict=True)
        special = "".join([f" {kind}={names}" for kind, names in kinds if names])
        mappings = f"{self.operand_mappings}, {self.result_mappings}"
        return f"SdyShardingRule({mappings}, {self.factor_sizes}{special})"

    __repr__ = __str__

    def text(self, in_shapes: Sequence[tuple], out_shapes: Sequence[tuple]) -> str:
        """The rule for arrays of these shapes, as Shardy's dialect writes it.

        ValueError for another number of operands or results, or of their dimensions.
        """
        naming = _Naming(self.factor_sizes)
        parts = [
            naming.mappings(what, given, shapes)
            for what, given, shapes in (
                ("operand", self.operand_mappings, in_shapes),
                ("result", self.result_mappings, out_shapes),
            )
        ]
        names = zip(("reduction", "need_replication", "permutation"), self.special, strict=True)
        special = [f" {kind}={{{naming.listed(chosen)}}}" for kind, chosen in names if chosen]
        sizes = ", ".join([f"{name}={size}" for name, size in naming.sizes()])
        return (
            f"#sdy.op_sharding_rule<([{'], ['.join(parts[0])}])->([{'], ['.join(parts[1])}]) "
            f"{{{sizes}}}{''.join(special)}, custom>"
        )


class _Naming:
    """The letters that stand for factors in the text of a rule, and their sizes."""

    def __init__(self, sizes: dict[str, int]):
        self._known = dict(sizes)
        self._factors: dict[str, int] = {}
        self._batch: tuple[int, ...] | None = None

    def _name(self, factor: str) -> str:
        return _letters(list(self._factors).index(factor))

    def _add(self, factor: str, size: int) -> str:
        if self._factors.setdefault(factor, size) != size:
            raise ValueError(
                f"Sharding rule factor {factor} has size {self._factors[factor]} in one place and "
                f"{size} in another: dimensions with one name have one size."
            )
        return self._name(factor)

    def mappings(self, what: str, given: Sequence[Any], shapes: Sequence[tuple]) -> list[str]:
        if len(given) != len(shapes):
            raise ValueError(
                f"Sharding rule has {len(given)} {what}s, but the operation has {len(shapes)} {what}s"
            )
        return [
            self._mapping(f"{place}th {what}", mapping, shape)
            for place, (mapping, shape) in enumerate(zip(given, shapes, strict=True))
        ]

    def _mapping(self, what: str, mapping: Sequence[Any], shape: tuple) -> str:
        dims = list(mapping)
        if dims and dims[0] == BATCHING:
            dims = dims[1:]
            leading = shape[: max(len(shape) - len(dims), 0)]
            if self._batch not in (None, leading):
                raise ValueError(
                    f"Sharding rule {what} has batch dimensions {leading}, and another array has "
                    f"{self._batch}: they are the same for all."
                )
            self._batch = leading
            dims = [*[f"{BATCHING}{n}" for n in range(len(leading))], *dims]
        if len(dims) != len(shape):
            raise ValueError(
                f"Sharding rule {what} has rank {len(dims)}, but the operation {what} has rank "
                f"{len(shape)}"
            )
        return ", ".join([self._dim(d, size) for d, size in zip(dims, shape, strict=True)])

    def _dim(self, dim: Any, size: int) -> str:
        if isinstance(dim, str):
            return self._add(dim, size)
        return "".join([self._part(factor) for factor in dim])

    def _part(self, factor: str) -> str:
        size = self._known.get(factor, self._factors.get(factor))
        if size is None:
            raise ValueError(
                f"Sharding rule factor {factor} is a part of a dimension before it is a whole one: "
                "give its size by keyword."
            )
        return self._add(factor, size)

    def listed(self, factors: Sequence[str]) -> str:
        return ", ".join(sorted([self._name(factor) for factor in factors]))

    def sizes(self) -> list[tuple[str, int]]:
        return [(_letters(n), size) for n, size in enumerate(self._factors.values())]


def _letters(number: int) -> str:
    """i to z, and then with numbers, as Shardy names factors."""
    count = ord("z") - ord("i") + 1
    return chr(ord("i") + number) if number < count else f"z_{number - count + 1}"


def parse_rule(text: Any, **options: Any) -> SdyShardingRule:
    """The rule that a string like "... i k, k j -> ... i j" stands for; `(i j)` is a compound factor."""
    if not isinstance(text, str):
        raise TypeError(f"rule must be a str, but got {type(text)}")
    sides = text.replace("...", BATCHING).split("->")
    if "." in "".join(sides):
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{text}'")
    operands, results = [
        tuple([_parse_mapping(part, text) for part in side.split(",")]) for side in sides
    ]
    return SdyShardingRule(operands, results, **options)


def _parse_mapping(part: str, rule: str) -> ArrayMapping:
    for mark in ("(", ")", BATCHING):
        part = part.replace(mark, f" {mark} ")
    dims: list[Any] = []
    compound: list[str] | None = None
    for word in part.split():
        if word in "()":
            if (word == "(") != (compound is None):
                raise ValueError(f"Brackets are not balanced in rule: '{rule}'")
            if compound is None:
                compound = []
                continue
            if len(compound) < 2:
                raise ValueError("Brackets should contain at least two factors")
            dims.append(CompoundFactor(*compound))
            compound = None
        else:
            (dims if compound is None else compound).append(word)
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{rule}'")
    return ArrayMapping(*dims)
