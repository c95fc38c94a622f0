"""Orders in which `einsum` contracts its operands: the strategies that the documentation of
opt_einsum describes, under its names.

Each strategy takes the labels of the operands and of the result as frozen sets, and the size of
each label. It returns pairs of operands by number, where every result gets the next free number.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.features.queries import is_dim

__all__ = ["UNKNOWN_SIZE", "contraction_path"]

UNKNOWN_SIZE = 32  # by which operations are counted where a size depends on variables

_Labels = frozenset[str]
_Pair = tuple[int, ...]


def contraction_path(
    inputs: Sequence[str], output: str, sizes: Mapping[str, int], optimize: Any
) -> list[_Pair]:
    """Return the positions of the operands of each contraction.

    The operands of a contraction are taken out of the list and the result is put at its end.
    `optimize` names a strategy, is True, None or False, or is a path already.
    """
    count = len(inputs)
    if optimize is False:
        return [(0, 1)] * (count - 1) or [(0,)]
    if not isinstance(optimize, (str, bool, type(None))):
        return [tuple(step) for step in optimize]
    if count <= 2:
        return [tuple(range(count))]
    name = "auto" if optimize in (True, None) else optimize
    if name not in _STRATEGIES:
        raise KeyError(f"Path optimizer '{name}' not found, valid options are {set(_STRATEGIES)}.")
    labels = [frozenset(labels) for labels in inputs]
    sizes = {label: UNKNOWN_SIZE if is_dim(size) else size for label, size in sizes.items()}
    return _positions(_STRATEGIES[name](labels, frozenset(output), sizes))


def _positions(pairs: Iterable[_Pair]) -> list[_Pair]:
    """Positions in the list of remaining operands, for operands given by number."""
    pairs = list(pairs)
    remaining = list(range(1 + len(pairs)))
    path = []
    for number, pair in enumerate(pairs, len(remaining)):
        step = tuple(sorted([remaining.index(operand) for operand in pair]))
        for position in reversed(step):
            del remaining[position]
        remaining.append(number)
        path.append(step)
    return path


def size_of(labels: Iterable[str], sizes: Mapping[str, int]) -> int:
    return math.prod([sizes[label] for label in labels])


def operations(labels: Iterable[str], sums: bool, terms: int, sizes: Mapping[str, int]) -> int:
    """Number of multiplications and additions of a product over `labels`."""
    return size_of(labels, sizes) * (max(1, terms - 1) + sums)


class _Products:
    """The labels of the product of each pair of operands, and its operations.

    A product is looked up by the labels of its operands, so one that was met before, where other
    operands remained, counts as it did then. Sums over the labels of one operand alone are free.
    """

    def __init__(self, inputs: Sequence[_Labels], output: _Labels, sizes: Mapping[str, int]):
        self.operands, self.output, self.sizes = list(inputs), output, sizes
        self._known: dict[tuple[_Labels, _Labels], tuple[_Labels, int]] = {}

    def of(self, one: int, two: int, remaining: set[int]) -> tuple[_Labels, int]:
        left, right = self.operands[one], self.operands[two]
        known = self._known.get((left, right))
        if known is None:
            others = [self.operands[i] for i in remaining - {one, two}]
            either, needed = left | right, self.output.union(*others)
            cost = operations(either, not left & right <= needed, 2, self.sizes)
            known = self._known[left, right] = (either & needed, cost)
        return known

    def after(self, pair: tuple[int, int], remaining: set[int]) -> set[int]:
        """The operands that remain after `pair`, whose product is the last of all."""
        return remaining - set(pair) | {len(self.operands) - 1}


def _pairs(remaining: set[int]) -> list[tuple[int, int]]:
    """Pairs of operands. Orders that cost the same are tried in the order of the set."""
    return [(min(pair), max(pair)) for pair in itertools.combinations(remaining, 2)]


# -- searches ---------------------------------------------------------------------------------


def _optimal(inputs, output, sizes):
    """The fewest operations among all orders, by a depth-first search."""
    best: tuple[float, Any] = (math.inf, None)
    products = _Products(inputs, output, sizes)

    def search(pairs, remaining, total):
        nonlocal best
        if len(remaining) == 1:
            best = (total, pairs)
            return
        for pair in _pairs(remaining):
            kept, operations = products.of(*pair, remaining)
            if total + operations < best[0]:
                products.operands.append(kept)
                search((*pairs, pair), products.after(pair, remaining), total + operations)
                products.operands.pop()

    search((), set(range(len(inputs))), 0)
    return best[1]


class _Candidate(NamedTuple):
    """A contraction that a search may try next: the one that frees the most memory comes first."""

    growth: int
    operations: int
    total: int
    largest: int
    pair: tuple[int, int]
    kept: _Labels


def _branch(width: int | None, inputs, output, sizes):
    """The best of the `width` most promising contractions at each step, of all if None.

    Operands without a common label are multiplied only where no others are left. An order that
    needs more than four times the operations of the best one, at an equal depth, is given up.
    """
    best: tuple[float, float, Any] = (math.inf, math.inf, None)
    least_at: dict[int, float] = {}
    products = _Products(inputs, output, sizes)
    operands = products.operands

    def candidates(remaining, total, largest, with_common_labels):
        found = []
        for pair in _pairs(remaining):
            one, two = [operands[i] for i in pair]
            if with_common_labels == one.isdisjoint(two):
                continue
            kept, operations = products.of(*pair, remaining)
            size = size_of(kept, sizes)
            cost, most = total + operations, max(largest, size)
            if (cost, most) >= best[:2]:
                continue
            least = least_at.get(len(operands), math.inf)
            if cost < least:
                least_at[len(operands)] = cost
            elif cost > 4 * least:
                continue
            growth = size - size_of(one, sizes) - size_of(two, sizes)
            found.append(_Candidate(growth, operations, cost, most, pair, kept))
        return sorted(found, key=lambda candidate: candidate[:-1])

    def search(pairs, remaining, total, largest):
        nonlocal best
        if len(remaining) == 1:
            best = (total, largest, pairs)
            return
        found = candidates(remaining, total, largest, True)
        found = found or candidates(remaining, total, largest, False)
        for candidate in found[:width]:
            operands.append(candidate.kept)
            rest = products.after(candidate.pair, remaining)
            search((*pairs, candidate.pair), rest, candidate.total, candidate.largest)
            operands.pop()

    search((), set(range(len(inputs))), 0, 0)
    return best[2]


def _greedy(inputs, output, sizes):
    """At each step the contraction of operands with a common label that frees the most memory.

    Operands with equal labels are multiplied first, and operands without a common label last, from
    the smallest.
    """
    pairs: list[_Pair] = []
    numbers: dict[_Labels, int] = {}  # the one operand of each set of labels
    queue: list[Any] = []
    ties = itertools.count()

    def multiply(one, two):
        pairs.append((min(one, two), max(one, two)))
        return len(inputs) + len(pairs) - 1

    def add(labels, number):
        earlier = numbers.pop(labels, None)
        numbers[labels] = number if earlier is None else multiply(earlier, number)

    def candidate(one, two):
        growth = size_of(one, sizes) + size_of(two, sizes)
        needed = output.union(*[labels for labels in numbers if labels not in (one, two)])
        kept = (one | two) & needed
        first, second = sorted([numbers[one], numbers[two]])
        return size_of(kept, sizes) - growth, second, first, next(ties), one, two, kept

    def push(one, others):
        if others:
            heapq.heappush(queue, min([candidate(one, two) for two in others]))

    for number, labels in enumerate(inputs):
        add(labels, number)
    ordered = sorted(numbers, key=numbers.__getitem__)
    for label in frozenset().union(*inputs) - output:
        holders = [labels for labels in ordered if label in labels]
        for i, one in enumerate(holders):
            push(one, holders[i + 1 :])
    while queue:
        *_, one, two, kept = heapq.heappop(queue)
        if one in numbers and two in numbers:
            add(kept, multiply(numbers.pop(one), numbers.pop(two)))
            push(kept, [other for other in numbers if other != kept and (kept & other) - output])
    rest = [(size_of(labels & output, sizes), number, labels) for labels, number in numbers.items()]
    heapq.heapify(rest)
    while len(rest) > 1:
        (_, one, left), (_, two, right) = heapq.heappop(rest), heapq.heappop(rest)
        kept = (left | right) & output
        heapq.heappush(rest, (size_of(kept, sizes), multiply(one, two), kept))
    return pairs


def _by_count(limits: Sequence[tuple[float, Callable[..., Any]]], inputs, output, sizes):
    """The first strategy whose limit the number of operands does not exceed."""
    strategy = next(strategy for limit, strategy in limits if len(inputs) <= limit)
    return strategy(inputs, output, sizes)


_branch_all, _branch_2, _branch_1 = [functools.partial(_branch, n) for n in (None, 2, 1)]
_auto = functools.partial(
    _by_count,
    [(4, _optimal), (6, _branch_all), (8, _branch_2), (14, _branch_1), (math.inf, _greedy)],
)
_few = functools.partial(_by_count, [(6, _branch_all), (math.inf, _branch_2)])
_STRATEGIES: Mapping[str, Callable[..., Any]] = {
    "auto": _auto,
    "auto-hq": functools.partial(_by_count, [(5, _optimal), (16, _few), (math.inf, _greedy)]),
    "optimal": _optimal,
    "branch-all": _branch_all,
    "branch-2": _branch_2,
    "branch-1": _branch_1,
    "greedy": _greedy,
    "eager": _greedy,
    "opportunistic": _greedy,
    "dp": _few,
    "dynamic-programming": _few,
    "random-greedy": _greedy,
    "random-greedy-128": _greedy,
}


# -- the table of a path ----------------------------------------------------------------------


class Contraction(NamedTuple):
    """One step of a path: positions from the last, labels summed away, and the labels around it."""

    positions: tuple[int, ...]
    summed: _Labels
    inputs: tuple[str, ...]
    result: str
    remaining: tuple[str, ...]


def contractions(inputs: Sequence[str], output: str, path: Sequence[_Pair]) -> list[Contraction]:
    """The steps of `path`, with the labels of each result in the order of its operands'."""
    remaining = list(inputs)
    steps = []
    for number, positions in enumerate(path, 1):
        positions = tuple(sorted(positions, reverse=True))
        taken = tuple([remaining.pop(position) for position in positions])
        joined = "".join(taken)
        needed = set(output).union(*remaining)
        kept = [label for label in dict.fromkeys(joined) if label in needed]
        result = output if number == len(path) else "".join(kept)
        remaining.append(result)
        summed = frozenset(joined) - needed
        steps.append(Contraction(positions, summed, taken, result, tuple(remaining)))
    if len(remaining) > 1:
        raise ValueError(f"The path {list(path)} leaves {len(remaining)} operands, not one.")
    return steps
