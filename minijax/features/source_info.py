"""The place of an equation, and its settings, as libraries see them, who evaluate equations themselves."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from minijax.config import local
from minijax.core.hooks import hooks
from minijax.features.frontend_attributes import MarkedScope, marks_of
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


class Settings:
    """The settings for an equation: its metadata, and for the rest those that are in force now.

    The parameters of an equation say what else it depends on.
    """

    __slots__ = ("compute_type", "cur_abstract_mesh", "threefry_partitionable", "xla_metadata")

    def __init__(self, scope: str = ""):
        self.compute_type, self.xla_metadata = None, marks_of(scope) or None
        self.threefry_partitionable = local.context.settings.threefry_partitionable
        self.cur_abstract_mesh = get_abstract_mesh()

    manager = property(lambda self: contextlib.nullcontext())


def _where(info: Any, settings: Any) -> tuple[Any, str]:
    place, scope = (info.where, str(info.name_stack)) if type(info) is SourceInfo else (info, "")
    metadata = getattr(settings, "xla_metadata", None)
    return place, MarkedScope(scope, metadata) if metadata else scope


hooks.fill(
    source_info=lambda eqn: SourceInfo(eqn.source, NameStack.of(eqn.scope)),
    settings_of=lambda eqn: Settings(eqn.scope),
    where=_where,
)
