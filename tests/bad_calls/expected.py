"""Upstream's outcomes of a part of the sweep, kept in `upstream.txt`: a line for each valid call.

A line has a letter for each wrong call that is made of it, the checksum of these calls, and the valid
call. `python -m tests.bad_calls --write` makes it.
"""

import pathlib
import zlib

from tests.bad_calls.generate import TWICE, rounds
from tests.bad_calls.judging import judge

FILE = pathlib.Path(__file__).with_name("upstream.txt")
ROUNDS = 6  # wrong calls of each valid one in the part that the tests make
_LETTERS = {
    ".": "ok", "T": "TypeError", "V": "ValueError", "O": "OverflowError", "I": "IndexError",
    "N": "NotImplementedError", "X": "AxisError", "C": "ConcretizationTypeError",
    "A": "TracerArrayConversionError", "B": "TracerBoolConversionError",
    "D": "TracerIntegerConversionError", "R": "RuntimeError", "E": "NameError",
}  # fmt: skip
ANY, DIFFERS = "*", "?"  # not compared, for a reason in `reasons.py`; not explained yet
_NAMES = {name: letter for letter, name in _LETTERS.items()}


def _checksum(calls):
    return f"{zlib.crc32(repr(calls).encode()):08x}"


def letter(call, ours, theirs):
    """What is kept of upstream's outcome: its class, if ours has to have the same."""
    found = judge(call, ours, theirs)
    if found:
        return DIFFERS
    name = theirs.get("error") or ("ok" if "ok" in theirs else None)
    same = name in ours.get("kinds", ()) or (name == "ok" and "ok" in ours)
    return _NAMES.get(name, ANY) if same and not call.endswith(TWICE) else ANY


def write(made, outcome_of):
    """Write the file: `made` as of `rounds`, `outcome_of` a pair of outcomes for each call."""
    lines = []
    for valid, calls in made.items():
        letters = "".join(letter(call, *outcome_of[call]) for call in calls)
        lines.append(f"{letters} {_checksum(calls)} {valid}\n")
    FILE.write_text("".join(lines))


def read():
    """The wrong calls of the part by their valid one, and the letters of those that are known."""
    known = {}
    for line in FILE.read_text().splitlines():
        letters, checksum, valid = line.split(" ", 2)
        known[valid] = letters, checksum
    made = rounds(ROUNDS)
    unknown = ANY * ROUNDS, ""
    letters = {}
    for valid, calls in made.items():
        found, checksum = known.get(valid, unknown)
        letters[valid] = found if checksum == _checksum(calls) else unknown[0]
    return made, letters


def unlike(expected, ours):
    """Whether an outcome is none of the class that a letter stands for."""
    if expected in (ANY, DIFFERS):
        return False
    name = _LETTERS[expected]
    return "error" in ours if name == "ok" else name not in ours.get("kinds", ())
