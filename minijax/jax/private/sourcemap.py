"""Numbers and segments of source maps as text: a counterpart of upstream's `sourcemap`.

Source: ECMA-426, https://tc39.es/source-map/. A number is digits of five bits in base 64, the
lowest first, the sign in the lowest bit of all; a sixth bit says that more follow. A segment is one
number, four or five. Text that ends within one is StopIteration, a character that is no digit
TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from minijax.experimental.source_mapper.sourcemap import (
    _DIGITS,
    Mappings,
    MappingsGenerator,
    Segment,
    SourceMap,
    _encoded,
)

__all__ = [
    "VLQ_ALPHABET", "VLQ_DECODE_TABLE", "VLQ_MORE_MASK", "VLQ_SIGN_MASK", "VLQ_VALUE_BITWIDTH",
    "VLQ_VALUE_MASK", "MappingsGenerator", "SourceMap", "decode_segment", "decode_vlq",
    "deserialize_mappings", "encode_segment", "encode_vlq", "make_vlq_decode_table",
    "serialize_mappings",
]  # fmt: skip

VLQ_SIGN_MASK = 1
VLQ_MORE_MASK = 32
VLQ_VALUE_MASK = 31
VLQ_VALUE_BITWIDTH = 5
VLQ_ALPHABET = list(_DIGITS.encode())


def make_vlq_decode_table() -> list[int | None]:
    """Return by character the digit that it stands for, or None."""
    table: list[int | None] = [None] * 256
    for digit, char in enumerate(VLQ_ALPHABET):
        table[char] = digit
    return table


VLQ_DECODE_TABLE = make_vlq_decode_table()


def encode_vlq(value: int) -> bytes:
    """A number as text."""
    return _encoded(value).encode()


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
