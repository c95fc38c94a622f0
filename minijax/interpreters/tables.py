"""One kind of rule, of all primitives, as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from minijax.core.primitive import NoRule, Primitive, all_primitives

__all__ = ["RuleTable"]


class RuleTable(MutableMapping):
    """A view: `table[p] = rule` sets the rule on the primitive, `table[p]` reads it there.

    A primitive without such a rule is not in the table, whatever the stated reason.
    """

    def __init__(self, slot: str, instead_of: str | None = None):
        self._slot = slot
        self._instead_of = instead_of  # the other slot for the same interpreter

    def __getitem__(self, primitive: Primitive) -> Callable:
        rule = getattr(primitive, self._slot)
        if rule is None or type(rule) is NoRule:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Callable) -> None:
        setattr(primitive, self._slot, rule)
        primitive.user_rules = True
        if self._instead_of is not None:
            setattr(primitive, self._instead_of, None)

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        setattr(primitive, self._slot, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter([p for p in all_primitives.values() if p in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"RuleTable({self._slot!r}, {len(self)} primitives)"
