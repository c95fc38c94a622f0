"""The place of an equation as libraries see it: a frame, and the names of the scopes there."""

from __future__ import annotations

from typing import Any, NamedTuple

from minijax.core.hooks import hooks

__all__ = ["NameStack", "SourceInfo"]


class NameStack(NamedTuple):
    """The scopes that operations are recorded under, outermost first."""

    stack: tuple[str, ...] = ()

    @classmethod
    def of(cls, scope: str) -> NameStack:
        return cls(tuple(scope.split("/")) if len(scope) else ())

    def extend(self, name: str) -> NameStack:
        return NameStack((*self.stack, name))

    def __str__(self) -> str:
        return "/".join(self.stack)


class SourceInfo(NamedTuple):
    """A place in a program and the scopes there."""

    where: Any
    name_stack: NameStack

    traceback = property(lambda self: self.where)  # upstream's name


hooks.fill(source_info=lambda eqn: SourceInfo(eqn.source, NameStack.of(eqn.scope)))
