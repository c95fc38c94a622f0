"""How a sharding of the operands of an operation relates to one of its results, for Shardy.

A rule names the factors that dimensions consist of: those with the same name are split in the same
way.
"""

from __future__ import annotations

import math
import re
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
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self._check_sizes()
        self._check_special()

    @property
    def special(self) -> tuple[tuple[str, ...], ...]:
        """The factors that are not passed through, of each kind."""
        return self.reduction_factors, self.need_replication_factors, self.permutation_factors

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
            if len(set(names)) < len(names):
                raise ValueError(f"{kind} contains duplicated factors")
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
        sides = (
            ("operand", self.operand_mappings, in_shapes),
            ("result", self.result_mappings, out_shapes),
        )
        for what, mappings, shapes in sides:
            if len(mappings) != len(shapes):
                raise ValueError(
                    f"Sharding rule has {len(mappings)} {what}s, but the operation has "
                    f"{len(shapes)} {what}s"
                )
        naming = _Naming()
        expanded = [
            [naming.expand(f"{n}th {what}", *each) for n, each in enumerate(zip(maps, shapes, strict=True))]
            for what, maps, shapes in sides
        ]  # fmt: skip
        naming.add_sizes(self.factor_sizes)
        parts = [
            ", ".join(
                [f"[{naming.mapping(f'{n}th {what}', *each)}]" for n, each in enumerate(side)]
            )
            for (what, _, _), side in zip(sides, expanded, strict=True)
        ]
        names = zip(("reduction", "need_replication", "permutation"), self.special, strict=True)
        special = [f" {kind}={{{naming.listed(chosen)}}}" for kind, chosen in names if chosen]
        sizes = ", ".join([f"{_letters(n)}={size}" for n, size in enumerate(naming.sizes.values())])
        sizes = f" {{{sizes}}}" if sizes else ""
        return f"#sdy.op_sharding_rule<({parts[0]})->({parts[1]}){sizes}{''.join(special)}, custom>"


class _Naming:
    """The letters that stand for factors in the text of a rule, and their sizes.

    A factor has the least of the sizes of the dimensions that it is the whole of.
    """

    def __init__(self):
        self.sizes: dict[str, int | None] = {}
        self._leading: int | None = None

    def expand(self, what: str, mapping: Sequence[Any], shape: tuple) -> tuple[list[Any], tuple]:
        """The mapping with a factor for each leading dimension; keeps the sizes of its factors."""
        dims = list(mapping)
        if dims and dims[0] == BATCHING:
            leading = max(len(shape) - len(dims) + 1, 0)
            if self._leading not in (None, leading):
                raise ValueError(
                    "Ellipsis represents different number of leading dimensions "
                    f"{self._leading} and {leading}"
                )
            self._leading = leading
            dims[:1] = [f"{BATCHING}{n}" for n in range(leading)]
        if len(dims) != len(shape):
            raise ValueError(
                f"Sharding rule {what} has rank {len(dims)}, but the operation {what} has rank "
                f"{len(shape)}"
            )
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str):
                self._add_whole(dim, size)
            else:
                for factor in dim:
                    self.sizes.setdefault(factor, None)
        return dims, shape

    def _add_whole(self, factor: str, size: int) -> None:
        known = self.sizes.get(factor)
        if factor[0] == BATCHING and known not in (None, size):
            raise ValueError(
                f"Batching dimension {factor[1:]} corresponds to two sizes: {known} and {size}"
            )
        self.sizes[factor] = size if known is None else min(known, size)

    def add_sizes(self, given: dict[str, int]) -> None:
        self.sizes.update({k: v for k, v in given.items() if k in self.sizes})

    def mapping(self, what: str, dims: Sequence[Any], shape: tuple) -> str:
        """The letters of the factors of each dimension; ValueError for a product of another size."""
        for dim, size in zip(dims, shape, strict=True):
            if not isinstance(dim, str):
                product = math.prod([self.sizes[factor] for factor in dim])
                if product != size:
                    raise ValueError(
                        f"{what} actual size {size} doesn't match the size {product} derived from "
                        f"the compound factors {tuple(dim)}"
                    )
        return ", ".join(
            ["".join(map(self._name, (d,) if isinstance(d, str) else d)) for d in dims]
        )

    def _name(self, factor: str) -> str:
        return _letters(list(self.sizes).index(factor))

    def listed(self, factors: Sequence[str]) -> str:
        order = list(self.sizes)
        return ", ".join(map(self._name, sorted(factors, key=order.index)))


def _letters(number: int) -> str:
    """i to z, and then with numbers, as Shardy names factors."""
    count = ord("z") - ord("i") + 1
    return chr(ord("i") + number) if number < count else f"z_{number - count + 1}"


def parse_rule(text: Any, **options: Any) -> SdyShardingRule:
    """The rule that a string like "... i k, k j -> ... i j" stands for; `(i j)` is a compound factor."""
    if not isinstance(text, str):
        raise TypeError(f"rule must be a str, but got {type(text)}")
    sizes = {name: size for name, size in options.items() if name not in _KINDS}
    if not all(isinstance(size, int) for size in sizes.values()):
        raise TypeError(f"factor_sizes must be a dict of str to int, but got {sizes}")
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{text}'")
    operands, results = [tuple(map(_parse_mapping, side.split(","))) for side in sides]
    return SdyShardingRule(operands, results, **options)


def _parse_mapping(text: str) -> ArrayMapping:
    dims: list[Any] = []
    compound: list[str] | None = None
    for word in re.findall(r"\.\.\.|\w+|\S", text):
        if word == "...":
            if dims or compound is not None:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            dims.append(BATCHING)
        elif word == "(":
            if compound is not None:
                raise ValueError(
                    "Compound factors should be one level, nested brackets are not allowed"
                )
            compound = []
        elif word == ")":
            if compound is None:
                raise ValueError("Brackets are not balanced")
            if len(compound) < 2:
                raise ValueError("Brackets should contain at least two factors")
            dims.append(CompoundFactor(*compound))
            compound = None
        elif word == ".":
            raise ValueError("Character '.' must be used inside ellipsis '...'")
        elif not re.match(r"\w", word):
            raise ValueError(f"Unknown character '{word}'")
        else:
            (dims if compound is None else compound).append(word)
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{text.strip()}'")
    return ArrayMapping(*dims)
