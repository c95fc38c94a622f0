"""Source maps of a function, for stages of compiling it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from minijax.experimental.source_mapper.common import Pass, SourceMapDump
from minijax.namespace import shown

__all__ = ["generate_sourcemaps"]

__dir__ = shown(__name__)


def generate_sourcemaps(
    f: Callable, passes: Sequence[Pass], **pass_kwargs: Any
) -> Callable[..., Sequence[SourceMapDump]]:
    """A function that gives, for arguments of `f`, the text of each stage and its source map.

    `pass_kwargs` are for the stages.
    """

    def wrapper(*args, **kwargs):
        found = []
        for each in passes:
            with tempfile.TemporaryDirectory() as folder:
                made = each.compile_fn(folder, f, args, kwargs, **pass_kwargs)
                found.append(each.generate_dump(made, **pass_kwargs))
        return found

    return wrapper
