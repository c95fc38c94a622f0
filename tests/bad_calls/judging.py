"""Judging our outcome of a wrong call beside upstream's."""

import re

from tests.bad_calls.generate import TWICE
from tests.bad_calls.reasons import REASONS

# Classes that Python raises where a program did not look at what it was given.
ACCIDENTS = {
    "AttributeError", "KeyError", "IndexError", "ZeroDivisionError", "AssertionError",
    "RecursionError", "UnboundLocalError", "NameError", "StopIteration", "SystemError",
}  # fmt: skip
_PARSER = re.compile(
    r"loc\(|\d: error: |MLIR|Unable to parse|stablehlo\.|INVALID_ARGUMENT|INTERNAL: (?!CpuCallback|Error dispatching computation: Out of memory)|Failed to parse"
    r"|UNIMPLEMENTED|mhlo|expected attribute|custom op"
)
GRAVE = ("abort", "hang", "internal", "parser", "bare")
MILD = ("class", "accepted", "refused")


def judge(call, ours, theirs=None):
    """The category of what is wrong with our outcome, or None; `theirs` is upstream's, if asked for."""
    found = _grave(ours, theirs) or (theirs and _beside(call, ours, theirs))
    return found if found and not excused(call, found, ours, theirs) else None


def _grave(ours, theirs):
    if "abort" in ours or "hang" in ours:
        return "abort" if "abort" in ours else "hang"
    if "ok" in ours:
        return None
    if not ours["user"] and not ours["raised"] and ours["error"] in ACCIDENTS:
        if "/minijax/" in ours["where"]:
            return "internal"
        beneath = ours["through"] and theirs and theirs.get("error") != ours["error"]
        return "internal" if beneath else None
    if _PARSER.search(ours["text"]) and not (theirs and _PARSER.search(theirs.get("text", ""))):
        return "parser"
    return "bare" if not ours["text"].strip() and "/minijax/" in ours["where"] else None


def _beside(call, ours, theirs):
    if "abort" in theirs or "hang" in theirs:
        return None  # an error, or a result, is better
    if "ok" in ours:
        return "accepted" if "error" in theirs else None
    if "ok" in theirs:
        return "refused"
    if theirs["error"] in ours["kinds"] or theirs["error"] in ("JaxRuntimeError", "SystemExit"):
        return None
    if call.endswith(TWICE):
        return None
    accident = theirs["error"] in ACCIDENTS and not theirs["user"]
    return None if accident else "class"  # upstream's own accidents are not to be repeated


def excused(call, category, ours, theirs):
    """The reason why such a difference is meant, if the table has one."""
    for reason in REASONS:
        if category in reason.categories and reason.matches(call, ours, theirs or {}):
            return reason.text
    return None
