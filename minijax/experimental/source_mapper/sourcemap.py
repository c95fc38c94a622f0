"""Source maps: which place of a source each place of a generated text comes from.

Source: ECMA-426, https://tc39.es/source-map/. As text a number is digits of five bits in base 64, the
lowest first, the sign in the lowest bit of all; a sixth bit says that more follow. A segment is one
number, four or five. Text that ends within one is StopIteration, a character that is no digit
TypeError.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

__all__ = [
    "VLQ_ALPHABET", "VLQ_DECODE_TABLE", "VLQ_MORE_MASK", "VLQ_SIGN_MASK", "VLQ_VALUE_BITWIDTH",
    "VLQ_VALUE_MASK", "MappingsGenerator", "SourceMap", "decode_segment", "decode_vlq",
    "deserialize_mappings", "encode_segment", "encode_vlq", "make_vlq_decode_table",
    "serialize_mappings", "sourcemap_of",
]  # fmt: skip

Segment = tuple[
    int, ...
]  # column; source, line, column there; name: each relative to the one before
Mappings = Sequence[Sequence[Segment]]  # by lines of the generated text
Place = tuple[int, str, int, int]  # column; file, line from one, column there

VLQ_SIGN_MASK = 1
VLQ_MORE_MASK = 32
VLQ_VALUE_MASK = 31
VLQ_VALUE_BITWIDTH = 5
VLQ_ALPHABET = list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def make_vlq_decode_table() -> list[int | None]:
    """Return by character the digit that it stands for, or None."""
    table: list[int | None] = [None] * 256
    for digit, char in enumerate(VLQ_ALPHABET):
        table[char] = digit
    return table


VLQ_DECODE_TABLE = make_vlq_decode_table()


def encode_vlq(value: int) -> bytes:
    """A number as text."""
    rest, text = (abs(value) << 1) | (value < 0), bytearray()
    while True:
        digit, rest = rest & VLQ_VALUE_MASK, rest >> VLQ_VALUE_BITWIDTH
        text.append(VLQ_ALPHABET[digit | (VLQ_MORE_MASK if rest else 0)])
        if not rest:
            return bytes(text)


def decode_vlq(enc: Iterable[int]) -> int:
    """The number that a text begins with; an iterator is left where it ends."""
    chars, value, shift = iter(enc), 0, 0
    while True:
        char = next(chars)
        digit = VLQ_DECODE_TABLE[char]
        if digit is None:
            raise TypeError(f"{chr(char)!r} is no digit of base 64 in a source map")
        value |= (digit & VLQ_VALUE_MASK) << shift
        shift += VLQ_VALUE_BITWIDTH
        if not digit & VLQ_MORE_MASK:
            return -(value >> 1) if value & VLQ_SIGN_MASK else value >> 1


def encode_segment(seg: Segment) -> bytes:
    """A segment as text."""
    return b"".join(map(encode_vlq, seg))


def decode_segment(enc: Iterable[int]) -> Segment:
    """The segment of a text."""
    chars: Iterator[int] = iter(enc)
    found = [decode_vlq(chars)]
    for more in (3, 1):
        head = next(chars, None)
        if head is None:
            break
        chars = chain((head,), chars)
        found += [decode_vlq(chars) for _ in range(more)]
    return tuple(found)


def serialize_mappings(mappings: Mappings) -> str:
    """The segments of each line as text."""
    return ";".join(b",".join(map(encode_segment, line)).decode() for line in mappings)


def deserialize_mappings(mappings_str: str) -> Mappings:
    """The segments of each line."""
    return [
        [decode_segment(segment.encode()) for segment in line.split(",") if segment]
        for line in mappings_str.split(";")
    ]


@dataclass(frozen=True)
class SourceMap:
    """The sources of a generated text, and what comes from where."""

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    def to_json(self) -> str:
        return json.dumps({
            "version": self.version, "sources": self.sources, "sourcesContent": self.sources_content,
            "names": self.names, "mappings": serialize_mappings(self.mappings),
        })  # fmt: skip

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """The map of a text that `to_json` gave. KeyError for a field that is missing."""
        found = json.loads(json_data)
        mappings = deserialize_mappings(found["mappings"])
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
