"""The place of an equation, and its settings, as libraries see them, who evaluate equations themselves."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from minijax.config import local
from minijax.core.hooks import hooks
from minijax.runtime.mesh import get_abstract_mesh

__all__ = ["NameStack", "Settings", "SourceInfo"]


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

    def replace(self, *, traceback: Any = None, name_stack: Any = None) -> SourceInfo:
        return SourceInfo(traceback or self.where, name_stack or self.name_stack)


class Settings(NamedTuple):
    """The settings for an equation: those in force now, as its parameters say what it depends on."""

    compute_type: str | None
    threefry_partitionable: bool
    cur_abstract_mesh: Any
    xla_metadata: dict[str, Any] | None

    manager = property(lambda self: contextlib.nullcontext())

    @classmethod
    def of(cls, eqn: Any) -> Settings:
        partitionable = local.context.settings.threefry_partitionable
        return cls(None, partitionable, get_abstract_mesh(), None)


hooks.fill(
    source_info=lambda eqn: SourceInfo(eqn.source, NameStack.of(eqn.scope)),
    settings_of=Settings.of,
)
