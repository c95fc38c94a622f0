"""Source maps of StableHLO and of XLA's HLO, before and after its passes.

Modules are written without places, which nothing reads else; here they are written with the place
of each equation.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

from minijax.experimental.source_mapper.common import Pass, SourceMapDump, register_pass
from minijax.experimental.source_mapper.jaxpr import compile_jaxpr
from minijax.experimental.source_mapper.mlir import create_mlir_sourcemap
from minijax.experimental.source_mapper.sourcemap import SourceMap, sourcemap_of
from minijax.features.diagnostics.places import located_text
from minijax.namespace import shown
from minijax.runtime import executables, platforms
from minijax.runtime.mlir_modules import as_hlo, pretty

__all__ = [
    "HloPass", "optimized_generate_dump", "original_hlo_generate_dump", "parse_hlo_dump",
    "stable_hlo_generate_dump", "trace_and_lower",
]  # fmt: skip

__dir__ = shown(__name__)


class HloPass(enum.Enum):
    STABLE_HLO = "hlo:stable-hlo"
    ORIGINAL = "hlo:original"
    OPTIMIZED = "hlo:optimized"


def trace_and_lower(work_dir: str, f: Callable, f_args: Any, f_kwargs: Any, **_: Any) -> tuple:
    """The text of a function's module, and the folder."""
    name = getattr(f, "__name__", "f")
    closed = compile_jaxpr(work_dir, f, f_args, f_kwargs)
    return located_text(closed, name, platforms.default_device()), work_dir


def stable_hlo_generate_dump(args: tuple[Any, str], **_: Any) -> SourceMapDump:
    text = pretty(args[0], debug_info=True)
    return SourceMapDump(create_mlir_sourcemap(text), text, HloPass.STABLE_HLO.value)


def original_hlo_generate_dump(args: tuple[Any, str], **_: Any) -> SourceMapDump:
    text = as_hlo(args[0]).as_hlo_module().to_string()
    return SourceMapDump(parse_hlo_dump(text), text, HloPass.ORIGINAL.value)


def optimized_generate_dump(
    args: tuple[Any, str], xla_compiler_flags: dict[str, Any] | None = None, **_: Any
) -> SourceMapDump:
    device = platforms.default_device()
    compiled = executables.compile_module(args[0], (device,), overrides=xla_compiler_flags)
    text = "\n\n".join([module.to_string() for module in compiled.hlo_modules()])
    return SourceMapDump(parse_hlo_dump(text), text, HloPass.OPTIMIZED.value)


_ROW = re.compile(r'(\d+) (?:"(.*)"|\{(.*)\})$')
_FRAME = re.compile(r"metadata=\{.*stack_frame_id=(\d+)")
_LINE = re.compile(r'metadata=\{.*source_file="(?P<file>[^"]*)" source_line=(?P<line>\d+)')
_TABLES = ("FileNames", "FileLocations", "StackFrames")


def _tables(lines: list[str]) -> dict[str, dict[int, Any]]:
    """The tables of files, places and calls that the text begins with."""
    found: dict[str, dict[int, Any]] = {name: {} for name in _TABLES}
    rows: dict[int, Any] = {}
    for line in lines:
        row = _ROW.match(line)
        if row is None:
            rows = found.get(line.strip(), {})
        else:
            pairs = dict(pair.split("=") for pair in (row[3] or "").split() if "=" in pair)
            rows[int(row[1])] = row[2] if row[3] is None else {k: int(v) for k, v in pairs.items()}
    return found


def parse_hlo_dump(text: str) -> SourceMap:
    """Return for each line of HLO with an instruction, where that was made."""
    lines = text.split("\n")
    tables = _tables(lines)
    places = []
    for line in lines:
        column = len(line) - len(line.lstrip())
        found = _place(line, tables)
        places.append([(column, *found)] if found else [])
    return sourcemap_of(places)


def _place(line: str, tables: dict[str, dict[int, Any]]) -> tuple[str, int, int] | None:
    frame, named = _FRAME.search(line), _LINE.search(line)
    if named:
        return None if named["file"] == "-" else (named["file"], int(named["line"]), 0)
    call = frame and tables["StackFrames"].get(int(frame[1]))
    if not call:
        return None
    place = tables["FileLocations"][call["file_location_id"]]
    file = tables["FileNames"][place["file_name_id"]]
    return None if file == "-" else (file, place["line"], place["column"])


for _name, _dump in (
    (HloPass.STABLE_HLO, stable_hlo_generate_dump),
    (HloPass.ORIGINAL, original_hlo_generate_dump),
    (HloPass.OPTIMIZED, optimized_generate_dump),
):
    register_pass(Pass(_name.value, trace_and_lower, _dump))
