"""`minijax.test_util`: derivatives compared with differences. Source: central differences along
random directions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import check_at_most
from minijax.namespace import shown
from minijax.transforms.grad import jvp, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

MOST_ORDERS = 64  # the work doubles with each

# By the number of bits of a dtype's mantissa: the step of differences, and how near is near enough.
_STEPS = {52: 1e-4, 23: 1e-4, 10: 1e-1, 7: 2.5e-1}
_TOLERANCES = {52: 1e-5, 23: 2e-3, 10: 1e-1, 7: 2.5e-1}


def _coarsest(values: Any, table: dict[int, float]) -> float:
    """The entry for the least precise dtype among the leaves."""
    kinds = [dtypes.dtype(x) for x in tree_util.tree_leaves(values)]
    bits = [dtypes.finfo(kind).nmant for kind in kinds if dtypes.issubdtype(kind, np.inexact)]
    found = min(bits, default=23)
    return table.get(found, table[7])


def _wide(x: Any) -> np.ndarray:
    value = np.asarray(x)
    if value.dtype == dtypes.float0:
        return np.zeros(value.shape)
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _random_like(rng: np.random.RandomState, tree: Any) -> Any:
    def leaf(x):
        dtype, shape = dtypes.dtype(x), np.shape(x)
        if not dtypes.issubdtype(dtype, np.inexact):
            return np.zeros(shape, dtypes.float0)
        value = rng.standard_normal(shape)
        if dtypes.issubdtype(dtype, np.complexfloating):
            value = value + 1j * rng.standard_normal(shape)
        return np.asarray(value).astype(dtype)

    return tree_util.tree_map(leaf, tree)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    def leaf(x, t):
        if np.asarray(t).dtype == dtypes.float0:
            return x
        return (_wide(x) + step * _wide(t)).astype(dtypes.dtype(x))

    return tree_util.tree_map(leaf, args, tangents)


def _numerical_jvp(f: Callable, args: Any, tangents: Any, eps: float) -> Any:
    above, below = f(*_moved(args, tangents, eps)), f(*_moved(args, tangents, -eps))
    return tree_util.tree_map(lambda a, b: (_wide(a) - _wide(b)) / (2 * eps), above, below)


def _inner(xs: Any, ys: Any) -> Any:
    pairs = zip(tree_util.tree_leaves(xs), tree_util.tree_leaves(ys), strict=True)
    return sum(np.sum(_wide(x) * _wide(y)) for x, y in pairs)


def _assert_close(found: Any, wanted: Any, atol: float, rtol: float, message: str) -> None:
    if tree_util.tree_structure(found) != tree_util.tree_structure(wanted):
        raise AssertionError(
            f"{message}: the results are trees of different structures, "
            f"{tree_util.tree_structure(found)} and {tree_util.tree_structure(wanted)}."
        )
    pairs = zip(tree_util.tree_leaves(found), tree_util.tree_leaves(wanted), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(_wide(one), _wide(other), atol=atol, rtol=rtol, err_msg=message)


def _tolerances(args: Any, out: Any, *given: float | dict[Any, float] | None) -> list[float]:
    return [_tolerance((args, out), one) for one in given]


def _tolerance(values: Any, given: float | dict[Any, float] | None) -> float:
    """A tolerance that may be given by dtype: the one of the least precise dtype of the values."""
    if given is not None and not isinstance(given, dict):
        return given
    named = {dtypes.finfo(dtype).nmant: one for dtype, one in (given or {}).items()}
    return _coarsest(values, {**_TOLERANCES, **named})


def check_jvp(
    f: Callable, f_jvp: Callable, args: Sequence[Any], atol: float | dict | None = None,
    rtol: float | dict | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """AssertionError unless `f_jvp(args, tangents)` is near the differences of `f`.

    Tolerances, which can be given by dtype, and the step follow the least precise dtype.
    """
    args = tuple(args)
    eps = _coarsest(args, _STEPS) if eps is None else eps
    tangents = _random_like(np.random.RandomState(0), args)
    out, out_tangent = f_jvp(args, tangents)
    expected = f(*args)
    atol, rtol = _tolerances(args, expected, atol, rtol)
    message = f"{err_msg} in jvp".strip()
    _assert_close(out, expected, atol, rtol, f"{message}: primal")
    numerical = _numerical_jvp(f, args, tangents, eps)
    _assert_close(out_tangent, numerical, atol, rtol, f"{message}: tangent")


def check_vjp(
    f: Callable, f_vjp: Callable, args: Sequence[Any], atol: float | dict | None = None,
    rtol: float | dict | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Check `f_vjp(*args) -> out, pullback` by the inner products that must agree."""
    args = tuple(args)
    eps = _coarsest(args, _STEPS) if eps is None else eps
    rng = np.random.RandomState(0)
    out, pullback = f_vjp(*args)
    expected = f(*args)
    atol, rtol = _tolerances(args, expected, atol, rtol)
    message = f"{err_msg} in vjp".strip()
    _assert_close(out, expected, atol, rtol, f"{message}: primal")
    tangents, cotangents = _random_like(rng, args), _random_like(rng, out)
    numerical = _numerical_jvp(f, args, tangents, eps)
    ours = _inner(tangents, pullback(cotangents))
    theirs = _inner(numerical, cotangents)
    if isinstance(ours, np.complexfloating) or isinstance(theirs, np.complexfloating):
        ours, theirs = np.real(ours), np.real(theirs)
    np.testing.assert_allclose(ours, theirs, atol=atol, rtol=rtol, err_msg=message)


def check_grads(
    f: Callable, args: Sequence[Any], order: int, modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | dict | None = None, rtol: float | dict | None = None, eps: float | None = None,
) -> None:  # fmt: skip
    """AssertionError unless the derivatives of `f` up to this order are near its differences.

    `modes` are "fwd" (jvp) and "rev" (vjp), nested in every order.
    """
    check_at_most("order", order, MOST_ORDERS)
    args = tuple(args)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"modes are 'fwd' and 'rev'; got {sorted(unknown)}.")

    def visit(f, args, order, message):
        rng = np.random.RandomState(1)
        if "fwd" in modes:
            name = f"{message} jvp".strip()
            check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps, name)
            if order > 1:
                tangents = _random_like(rng, args)
                visit(lambda *xs: jvp(f, xs, tangents), args, order - 1, name)
        if "rev" in modes:
            name = f"{message} vjp".strip()
            check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, name)
            if order > 1:
                out, _ = vjp(f, *args)
                cotangents = _random_like(rng, out)
                visit(lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, name)

    visit(f, args, order, "")


__dir__ = shown(__name__)
