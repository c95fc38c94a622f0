"""A user's own function under all transforms that its types allow, by several oracles.

Oracles: upstream (the function made again by `rebinding`), and algebra within minijax: compiled against
eager, `vmap` against a loop, `linearize` against `jvp`, `vjp` against `jvp` as its transpose, and finite
differences in float64.
"""

from __future__ import annotations

import dataclasses
import html
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.difftest import triage
from minijax.difftest.comparing import Tolerance, compare, eps_of
from minijax.difftest.programs import kind_of
from minijax.difftest.rebinding import rebound
from minijax.difftest.running import Outcome, failure, library, outcome

__all__ = ["Check", "Report", "check"]


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison: the transform, the oracle, whether they agree, and what was seen."""

    transform: str
    oracle: str
    agrees: bool
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """The comparisons of one function; prints as a table, in a notebook too."""

    name: str
    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.agrees)

    def __bool__(self) -> bool:
        """Whether nothing differs."""
        return not self.findings

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.checks)} comparisons, {len(self.findings)} differ"]
        for c in self.checks:
            said = "same" if c.agrees else "DIFFERS"
            lines.append(f"  {said:8}{c.transform:14}{c.oracle:20}{c.detail}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = lambda c: ("same" if c.agrees else "differs", c.transform, c.oracle, c.detail)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in cells(c)) + "</tr>"
            for c in self.checks
        )
        return f"<b>{html.escape(str(self).splitlines()[0])}</b><table>{rows}</table>"


def check(
    f: Callable, *args: Any, tolerance: Tolerance = Tolerance(ulps=4096.0), upstream: bool = True,
    differences: bool = True,
) -> Report:  # fmt: skip
    """Compare a function under all transforms that its types allow, by all oracles.

    - `f`: written with minijax or with upstream
    - `args`: its arguments, pytrees of arrays; those of float dtypes are differentiated
    - `tolerance`: of floats
    - `upstream`, `differences`: whether upstream JAX and finite differences are among the oracles

    Returns a `Report`, which is true if nothing differs. Source: this package.

    >>> bool(difftest.check(lambda x: x * x, 2.0, upstream=False))
    True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Checking(f, args, tolerance, upstream).report(differences)


class _Checking:
    """The comparisons of one function."""

    def __init__(self, f, args, tolerance, upstream):
        self.f, self.tolerance, self.upstream = f, tolerance, upstream
        self.mj = library("minijax")
        leaves, self.tree = self.mj.tree_util.tree_flatten(args)
        self.leaves = [x if isinstance(x, int | float | complex) else np.asarray(x) for x in leaves]
        kinds = [kind_of(str(np.asarray(x).dtype)) for x in self.leaves]
        self.where = [i for i, kind in enumerate(kinds) if kind == "f"]
        self.real = "c" not in kinds
        self.checks: list[Check] = []

    def flat(self, name: str) -> Callable:
        """Return the function of one library, of the float leaves, giving a list of arrays."""
        module = library(name)
        function = rebound(self.f, name)

        def run(*floats):
            leaves = list(self.leaves)
            for i, x in zip(self.where, floats, strict=True):
                leaves[i] = x
            result = function(*module.tree_util.tree_unflatten(self._tree(module), leaves))
            return module.tree_util.tree_leaves(result)

        return run

    def _tree(self, module):
        if module is self.mj:
            return self.tree
        filled = self.mj.tree_util.tree_unflatten(self.tree, list(range(len(self.leaves))))
        return module.tree_util.tree_structure(filled)

    def report(self, differences: bool) -> Report:
        floats = [self.leaves[i] for i in self.where]
        ways = self.ways(floats)
        ours = {name: self.outcome("minijax", way) for name, way in ways.items()}
        if self.upstream:
            for name, way in ways.items():
                theirs = self.outcome("jax", way)
                found = compare(ours[name], theirs, self.tolerance)
                spread = ()
                if found is not None and found.kind == "value":  # does it move as far by rounding?
                    moved = self.ways([_moved(x) for x in floats])[name]
                    spread = triage.spread(self.outcome("minijax", moved), ours[name])
                self.compare(name, "upstream", ours[name], theirs, absolute=spread)
        if not ours["call"].error:
            self.algebra(ours)
            if differences and self.where:
                self.differences(floats)
        return Report(getattr(self.f, "__name__", str(self.f)), tuple(self.checks))

    def ways(self, floats) -> dict[str, Callable]:
        """Return by transform a function of a library and the flat function."""
        ways: dict[str, Callable] = {
            "call": lambda m, f: f(*floats),
            "jit": lambda m, f: m.jit(f)(*floats),
        }
        if not floats:
            return ways
        rng = np.random.RandomState(0)
        like = lambda x: np.asarray(rng.randn(*np.shape(x))).astype(np.asarray(x).dtype)
        moved = [like(x) for x in floats]
        batch = [np.stack([np.asarray(x), np.asarray(x) * 0.5]) for x in floats]
        arrays = [np.asarray(x) for x in floats]
        self.moved, self.batch = moved, batch

        def inexact(m, f):
            return lambda *xs: [
                y for y in f(*xs) if m.numpy.issubdtype(m.numpy.result_type(y), m.numpy.inexact)
            ]

        def pulled(m, f):
            ys, pull = m.vjp(inexact(m, f), *arrays)
            return pull(
                [m.numpy.cos(m.numpy.arange(y.size, dtype=y.dtype)).reshape(y.shape) for y in ys]
            )

        ways["vmap"] = lambda m, f: m.vmap(f)(*batch)
        ways["jvp"] = lambda m, f: m.jvp(inexact(m, f), arrays, moved)[1]
        ways["linearize"] = lambda m, f: m.linearize(inexact(m, f), *arrays)[1](*moved)
        ways["vjp"] = pulled
        ways["jit of vjp"] = lambda m, f: m.jit(lambda: pulled(m, f))()
        ways["vmap of jvp"] = lambda m, f: m.vmap(
            lambda *xs: m.jvp(inexact(m, f), xs, tuple(moved))[1]
        )(*batch)
        ways["jvp of vjp"] = lambda m, f: m.jvp(
            lambda *xs: m.vjp(lambda *zs: sum(m.numpy.sum(y) for y in inexact(m, f)(*zs)), *xs)[1](
                m.numpy.ones_like(sum(m.numpy.sum(y) for y in inexact(m, f)(*xs)))
            ), arrays, moved,
        )[1]  # fmt: skip
        return ways

    def outcome(self, name: str, way: Callable) -> Outcome:
        module = library(name)
        try:
            return outcome(module, way(module, self.flat(name)))
        except Exception as error:
            return failure(error)

    def compare(
        self, transform: str, oracle: str, ours: Outcome, theirs: Outcome, **tolerance
    ) -> None:
        found = compare(ours, theirs, dataclasses.replace(self.tolerance, **tolerance))
        self.checks.append(Check(transform, oracle, found is None, found.detail if found else ""))

    def algebra(self, ours: dict[str, Outcome]) -> None:
        """Compare what must be equal within minijax."""
        self.compare("jit", "eager", _unweak(ours["jit"]), _unweak(ours["call"]))
        if not self.where:
            return
        if not ours["vmap"].error:
            module, f = self.mj, self.flat("minijax")
            rows = [f(*(b[i] for b in self.batch)) for i in range(2)]
            stacked = [module.numpy.stack(row) for row in zip(*rows, strict=True)]
            self.compare("vmap", "loop", _unweak(ours["vmap"]), _unweak(outcome(module, stacked)))
        if ours["jvp"].error or ours["vjp"].error:
            return
        self.compare("linearize", "jvp", ours["linearize"], ours["jvp"])
        leaves = ours["jvp"].leaves
        if not self.real or any(kind_of(x.dtype) != "f" for x in leaves):
            return
        terms = [np.cos(np.arange(x.array.size)).reshape(x.shape) * x.array for x in leaves]
        pulled = zip(self.moved, ours["vjp"].leaves, strict=True)
        gap = abs(float(sum(map(np.sum, terms)) - sum(np.sum(v * x.array) for v, x in pulled)))
        size = max(float(sum(np.sum(np.abs(term)) for term in terms)), 1.0)
        wide = (eps_of(x.dtype) for x in leaves if x.dtype in ("float32", "float64"))
        good = gap <= self.tolerance.ulps * max(wide, default=1e-2) * size or not np.isfinite(gap)
        detail = "" if good else f"{gap:.3g} apart"
        self.checks.append(Check("vjp", "jvp transposed", bool(good), detail))

    def differences(self, floats) -> None:
        """Compare `jvp` with central differences, both in float64."""
        step = 1e-6
        with self.mj.enable_x64(True):
            f = self.flat("minijax")
            wide = [np.asarray(x, np.float64) for x in floats]
            moved = [np.asarray(v, np.float64) for v in self.moved]
            at = lambda s: [
                np.asarray(y) for y in f(*(x + s * v for x, v in zip(wide, moved, strict=True)))
            ]
            try:
                ahead, behind = at(step), at(-step)
                exact = self.mj.jvp(
                    lambda *xs: [self.mj.numpy.asarray(y) for y in f(*xs)], wide, moved
                )[1]
            except Exception:
                return  # a function that fixes its dtypes
        for number, (a, b, t) in enumerate(zip(ahead, behind, exact, strict=True)):
            if a.dtype != np.float64:
                continue
            slope, tangent = (a - b) / (2 * step), np.asarray(t)
            finite = np.isfinite(slope) & np.isfinite(tangent)
            scale = float(np.max(np.abs(slope), where=finite, initial=1.0))
            gap = float(np.max(np.abs(slope - tangent), where=finite, initial=0.0))
            good = gap <= 1e-4 * scale
            detail = "" if good else f"result {number}: {gap:.3g} apart"
            self.checks.append(Check("jvp", "finite differences", good, detail))


def _moved(x: Any) -> np.ndarray:
    """Return an array of floats, each moved by one unit in the last place."""
    array = np.asarray(x)
    return (array * (1 + eps_of(array.dtype.name) * np.resize([1, -1], array.shape))).astype(
        array.dtype
    )


def _unweak(result: Outcome) -> Outcome:
    """Return an outcome without weak types: eager Python scalars and stacks have others."""
    return dataclasses.replace(
        result, leaves=tuple(dataclasses.replace(leaf, weak=False) for leaf in result.leaves)
    )
