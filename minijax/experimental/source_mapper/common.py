"""The stages of compiling that source maps can be made of."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from minijax.config import config
from minijax.experimental.source_mapper.sourcemap import SourceMap
from minijax.namespace import shown

__all__ = [
    "Pass", "SourceMapDump", "all_passes", "compile_with_env", "filter_passes", "flag_env",
    "register_pass",
]  # fmt: skip

__dir__ = shown(__name__)


@dataclass(frozen=True)
class SourceMapDump:
    """A text that was generated, and its source map."""

    source_map: SourceMap
    generated_code: str
    pass_name: str


@dataclass(frozen=True)
class Pass:
    """A stage: `compile_fn(work_dir, f, args, kwargs, **options)`, and `generate_dump` of that."""

    name: str
    compile_fn: Callable[..., Any]
    generate_dump: Callable[..., SourceMapDump]


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Make a stage known. ValueError if one has its name."""
    if pass_.name in _passes:
        raise ValueError(f"Pass {pass_.name} already registered")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """The stages, in order."""
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The stages whose names begin with what the regular expression matches."""
    return [each for each in _passes.values() if re.match(regex, each.name)]


@contextmanager
def flag_env(**kwargs: Any) -> Iterator[None]:
    """Context manager: settings of this library, for the process."""
    saved = {name: config.read(name) for name in kwargs}
    try:
        for name, value in kwargs.items():
            config.update(name, value)
        yield
    finally:
        for name, value in saved.items():
            config.update(name, value)


def compile_with_env(
    f: Callable, f_args: Sequence[Any], f_kwargs: dict[str, Any], env_flags: dict[str, str],
    compiler_flags: dict[str, Any],
) -> Any:  # fmt: skip
    """The lowered function, made under variables of the environment and settings."""
    saved = dict(os.environ)
    os.environ.update(env_flags)
    try:
        with flag_env(**compiler_flags):
            return f.lower(*f_args, **f_kwargs)
    finally:
        os.environ.clear()
        os.environ.update(saved)
