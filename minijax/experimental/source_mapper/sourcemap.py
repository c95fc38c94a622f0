"""Source maps: which place of a source each place of a generated text comes from.

Imports the standard library. Source: ECMA-426, https://tc39.es/source-map/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["MappingsGenerator", "SourceMap", "sourcemap_of"]

Segment = tuple[
    int, ...
]  # column; source, line, column there; name: each relative to the one before
Mappings = Sequence[Sequence[Segment]]  # by lines of the generated text
Place = tuple[int, str, int, int]  # column; file, line from one, column there

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(number: int) -> str:
    """A number in digits of five bits, the sign in the lowest."""
    rest, text = (abs(number) << 1) | (number < 0), ""
    while True:
        digit, rest = rest & 31, rest >> 5
        text += _DIGITS[digit | (32 if rest else 0)]
        if not rest:
            return text


def _decoded(text: str) -> Iterator[int]:
    value = shift = 0
    for char in text:
        digit = _DIGITS.index(char)
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            yield -(value >> 1) if value & 1 else value >> 1
            value = shift = 0


@dataclass(frozen=True)
class SourceMap:
    """The sources of a generated text, and what comes from where."""

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    def to_json(self) -> str:
        lines = [",".join(["".join(map(_encoded, seg)) for seg in line]) for line in self.mappings]
        return json.dumps({
            "version": self.version, "sources": self.sources, "sourcesContent": self.sources_content,
            "names": self.names, "mappings": ";".join(lines),
        })  # fmt: skip

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """The map of a text that `to_json` gave. KeyError for a field that is missing."""
        found = json.loads(json_data)
        mappings = [
            [tuple(_decoded(segment)) for segment in line.split(",") if segment]
            for line in found["mappings"].split(";")
        ]
        return cls(
            version=found["version"], sources=found["sources"],
            sources_content=found["sourcesContent"], names=found["names"], mappings=mappings,
        )  # fmt: skip


class MappingsGenerator:
    """Builds mappings from segments that are given with absolute numbers."""

    def __init__(self):
        self._mappings: list[list[Segment]] = []
        self._last = [0] * 5

    def new_group(self) -> None:
        """Begin a line of the generated text."""
        self._last[0] = 0
        self._mappings.append([])

    def new_segment(self, *seg: int) -> None:
        """A place on this line, and where it comes from. RuntimeError before the first line."""
        if not self._mappings:
            raise RuntimeError("No current group. Forgot to call new_group()?")
        self._mappings[-1].append(
            tuple([n - last for n, last in zip(seg, self._last, strict=False)])
        )
        self._last[: len(seg)] = seg

    def mappings(self) -> Mappings:
        """The segments of each line."""
        return self._mappings


def sourcemap_of(lines: Sequence[Sequence[Place]]) -> SourceMap:
    """The map of a text, from the places that each of its lines comes from."""
    files = list(dict.fromkeys(file for line in lines for _, file, _, _ in line))
    made = MappingsGenerator()
    for line in lines:
        made.new_group()
        for column, file, number, at in line:
            made.new_segment(column, files.index(file), number - 1, at)
    return SourceMap(3, files, [""] * len(files), [], made.mappings())
