"""Passes of one's own in XLA's compiler. XLA keeps them for the whole process: programs of every
library in it are compiled with them. What is compiled while there are any is not kept on disk.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from jaxlib import _xla

from minijax.runtime import executables

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]


class PipelineStage(enum.Enum):
    """The time at which a pass runs: before or after the instructions are scheduled."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def _check(stage: PipelineStage, platforms: Sequence[str] | str | None) -> None:
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"stage must be a PipelineStage enum, got {type(stage)}")
    named = [platforms] if isinstance(platforms, str) else platforms or ()
    others = [name for name in named if name != "cpu"]
    if others:
        raise NotImplementedError(f"passes can be registered for 'cpu' here, not for {others}.")


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None], *, name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:  # fmt: skip
    """Have XLA call `callback` on each module that it compiles, a serialized HloModuleProto.

    It gives the module to go on with, serialized, or None to leave it. Several at one stage run in
    the order they were registered. TypeError for a stage that is no `PipelineStage`.
    """
    _check(stage, platforms)
    _xla.register_xla_transform(name, stage.value, callback)
    executables.transformations.add((name, stage))
    executables.clear_executables()


def clear_hlo_module_transformation(
    name: str, stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> bool:  # fmt: skip
    """Take a pass away; whether there was one of this name at this stage."""
    _check(stage, platforms)
    executables.transformations.discard((name, stage))
    executables.clear_executables()
    return _xla.clear_xla_transform(name, stage.value)
