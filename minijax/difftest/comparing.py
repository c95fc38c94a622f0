"""Differences between two outcomes: exact for everything but floats, which have a tolerance.

Single calls are judged element by element in units of the last place, composed programs by the largest
element of each array. A difference has a kind, one of `KINDS`, which shrinking keeps fixed.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from minijax.difftest.programs import kind_of
from minijax.difftest.running import Leaf, Outcome

__all__ = ["KINDS", "Difference", "Tolerance", "bases", "compare", "distance", "eps_of"]

KINDS = (
    "crash", "hang", "refusal", "error", "tree", "shape", "dtype", "weak type", "sharding",
    "integer", "value", "special", "algebra",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Difference:
    """A kind of `KINDS`, the leaf that differs, and a sentence."""

    kind: str
    where: str
    detail: str


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The differences that floats may have.

    - `ulps`: in units of the last place (of `eps`, if given, else of the leaf's dtype)
    - `elementwise`: of each element; otherwise of the largest
    - `absolute`: per leaf, a spread of values that is no difference
    - `share`: but never further than this share of the magnitude, whatever the dtype
    """

    ulps: float = 256.0
    elementwise: bool = False
    eps: float = 0.0
    absolute: tuple[float, ...] = ()
    share: float = 0.3


def compare(
    ours: Outcome, theirs: Outcome, tolerance: Tolerance = Tolerance()
) -> Difference | None:
    """Return the first difference between two outcomes, or None.

    - `ours`, `theirs`: outcomes of `run`
    - `tolerance`: of floats

    Returns a `Difference` or None: structure, shapes, dtypes, weak types and integers are exact, errors
    compare by the built-in classes that they derive from. Source: this package.

    >>> difftest.compare(difftest.Outcome(), difftest.Outcome(error=("TypeError",))).kind
    'refusal'
    """
    if bool(ours.error) != bool(theirs.error):
        first = f"raised {ours.error[0]}" if ours.error else "gave a result"
        second = f"raised {theirs.error[0]}" if theirs.error else "gave a result"
        return Difference("refusal", "", f"minijax {first}, upstream {second}")
    if ours.error:
        if set(bases(ours.error)) & set(bases(theirs.error)):
            return None
        return Difference(
            "error", "", f"minijax raised {ours.error[0]}, upstream {theirs.error[0]}"
        )
    if ours.tree != theirs.tree:
        return Difference("tree", "", f"{ours.tree} is not {theirs.tree}")
    for index, (a, b) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        for kind, x, y in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if x != y:
                return Difference(kind, a.path, f"{kind} {x} is not {y}")
        if a.weak != b.weak:
            return Difference("weak type", a.path, f"weak_type {a.weak} is not {b.weak}")
        if a.sharding != b.sharding:
            return Difference("sharding", a.path, f"sharding {a.sharding} is not {b.sharding}")
        if a.array is not None and b.array is not None:
            found = _values(a, b, tolerance, index)
            if found is not None:
                return found
    return None


def bases(classes: Sequence[str]) -> list[str]:
    """Return the built-in error classes among the bases, but for those that all errors have."""
    too_general = ("Exception", "BaseException", "object")
    found = [name for name in classes if hasattr(builtins, name) and name not in too_general]
    return found or list(classes[:1])


def _values(a: Leaf, b: Leaf, tolerance: Tolerance, index: int) -> Difference | None:
    if a.array.size == 0 or a.dtype.startswith("[("):  # float0
        return None
    if kind_of(a.dtype) not in "fc":
        if np.array_equal(a.array, b.array):
            return None
        return Difference("integer", a.path, _first(a.array, b.array, a.array != b.array))
    x, y = _wide(a.array), _wide(b.array)
    if kind_of(a.dtype) == "c":
        # An infinite complex number has an infinite part; the other part is not determined.
        bad_x, bad_y = ~np.isfinite(x), ~np.isfinite(y)
        different = bad_x != bad_y
        if tolerance.elementwise:
            different |= np.isinf(x) != np.isinf(y)
    else:
        bad_x = ~np.isfinite(x)
        with np.errstate(invalid="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
        different = (bad_x | ~np.isfinite(y)) & ~same
    if different.any():
        return Difference("special", a.path, _first(a.array, b.array, different))
    excess = distance(a.array, b.array, a.dtype, tolerance)
    spread = tolerance.absolute[index] if index < len(tolerance.absolute) else 0.0
    with np.errstate(invalid="ignore"):
        gap = np.abs(x - y)
    limit = min(tolerance.ulps, tolerance.share / max(eps_of(a.dtype), tolerance.eps))
    wrong = (excess > limit) & ~(gap <= spread)
    if wrong.any():
        worst = float(np.max(excess[wrong]))
        return Difference("value", a.path, f"{_first(a.array, b.array, wrong)} ({worst:.3g} units)")
    return None


def distance(a, b, dtype: str, tolerance: Tolerance) -> np.ndarray:
    """Return by element how many units of the last place two arrays are apart."""
    x, y = _wide(a), _wide(b)
    finite = np.isfinite(x) & np.isfinite(y)
    with np.errstate(all="ignore"):
        gap = np.where(finite, np.abs(x - y), 0.0)
        magnitude = np.where(finite, np.maximum(np.abs(x), np.abs(y)), 0.0)
    info = ml_dtypes.finfo(_real(dtype))
    gap = np.where(magnitude <= float(info.tiny), 0.0, gap)  # subnormals may be flushed
    if not tolerance.elementwise:
        magnitude = np.full(magnitude.shape, magnitude.max(initial=0.0))
    floor = float(info.tiny) if tolerance.elementwise else max(float(info.tiny), 1e-30)
    unit = max(float(info.eps), tolerance.eps) * np.maximum(magnitude, floor)
    return gap / unit


def eps_of(dtype: str) -> float:
    """Return the spacing at 1 of a float or complex dtype, 0 for others."""
    return float(ml_dtypes.finfo(_real(dtype)).eps) if kind_of(dtype) in "fc" else 0.0


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _wide(array) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _first(a, b, where) -> str:
    index = tuple(int(i) for i in np.argwhere(where)[0])
    place = f" at {list(index)}" if index else ""
    return f"{a[index]!s} is not {b[index]!s}{place}"
