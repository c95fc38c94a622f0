"""The framing of MLIR bytecode, checked before jaxlib's reader gets it, which trusts much of it.

Imports the standard library only. Sections, strings and the offsets of attributes and types are
verified; the operations themselves are not. Source: the specification of the MLIR bytecode format.
"""

from __future__ import annotations

__all__ = ["check_module"]

_MAGIC = b"ML\xefR"
_LATEST = 6  # the version of the format whose sections are listed here
_STRINGS, _ATTRIBUTES, _OFFSETS, _PROPERTIES, _LAST = 0, 2, 3, 8, 8
_WITH_PROPERTIES = 5
_NEEDED = frozenset(range(5))
_MOST_ALIGNED = 4096


class _Reader:
    """A place in some of the bytes; ValueError past their end."""

    def __init__(self, data: bytes, start: int, end: int):
        self.data, self.at, self.end = data, start, end

    def take(self, count: int) -> int:
        """Go on by this many bytes; where they begin."""
        start = self.at
        self.at += count
        if self.at > self.end:
            raise ValueError("it ends too early")
        return start

    def number(self) -> int:
        """Read an integer, whose first byte says by its trailing zeros how many follow."""
        first = self.data[self.take(1)]
        if not first:
            start = self.take(8)
            return int.from_bytes(self.data[start : self.at], "little")
        count = (first & -first).bit_length()
        start = self.take(count - 1) - 1
        return int.from_bytes(self.data[start : self.at], "little") >> count


def check_module(data: bytes) -> None:
    """Raise ValueError unless the framing of a module is whole. Later formats are not looked into."""
    reader = _Reader(data, len(_MAGIC), len(data))
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it does not begin as MLIR bytecode does")
    version = reader.number()
    if version > _LATEST:
        return
    end = data.find(b"\0", reader.at)
    if end < 0:
        raise ValueError("its producer has no end")
    reader.at = end + 1
    sections = _sections(reader)
    needed = _NEEDED | {_PROPERTIES} if version >= _WITH_PROPERTIES else _NEEDED
    if not sections.keys() >= needed:
        raise ValueError("sections are missing")
    _check_strings(_Reader(data, *sections[_STRINGS]))
    start, end = sections[_ATTRIBUTES]
    _check_offsets(_Reader(data, *sections[_OFFSETS]), end - start)


def _sections(reader: _Reader) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    while reader.at < reader.end:
        kind = reader.data[reader.take(1)]
        size = reader.number()
        if kind & 0x80:
            alignment = reader.number()
            if not 0 < alignment <= _MOST_ALIGNED or alignment & (alignment - 1):
                raise ValueError(f"a section is aligned to {alignment} bytes")
            reader.take(-reader.at % alignment)
        kind &= 0x7F
        if kind > _LAST or kind in found:
            raise ValueError(f"section {kind} is unknown, or there twice")
        start = reader.take(size)
        found[kind] = start, reader.at
    return found


def _check_strings(reader: _Reader) -> None:
    """Their number, their sizes from the last to the first, and as many bytes, each with an end."""
    count = reader.number()
    if count > reader.end - reader.at:
        raise ValueError(f"it has no place for {count} strings")
    sizes = [reader.number() for _ in range(count)]
    for size in reversed(sizes):
        if not size or reader.data[reader.take(size) + size - 1]:
            raise ValueError("a string has no end")
    if reader.at != reader.end:
        raise ValueError("its strings are not all")


def _check_offsets(reader: _Reader, size: int) -> None:
    """Attributes and types, in groups by dialect: how long each is; together they fill a section."""
    left, total = reader.number() + reader.number(), 0
    while left > 0:
        reader.number()  # the dialect
        count = reader.number()
        if not 0 < count <= left:
            raise ValueError(f"a group has {count} attributes or types of {left}")
        total += sum(reader.number() >> 1 for _ in range(count))
        left -= count
    if total != size or reader.at != reader.end:
        raise ValueError("its attributes and types are not whole")
