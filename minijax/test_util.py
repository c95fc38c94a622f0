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

_STEP = 1e-4

# How near is near enough, by dtype, for each element of the array; other numbers must be equal.
_TOLERANCES = {
    dtypes.float4_e2m1fn: 1.0, dtypes.float8_e8m0fnu: 1.0, dtypes.float8_e3m4: 1e-1,
    dtypes.float8_e4m3: 1e-1, dtypes.float8_e4m3b11fnuz: 1e-1, dtypes.float8_e4m3fn: 1e-1,
    dtypes.float8_e4m3fnuz: 1e-1, dtypes.float8_e5m2: 1e-1, dtypes.float8_e5m2fnuz: 1e-1,
    dtypes.bfloat16: 1e-1, np.float16: 1e-2, np.float32: 2e-3, np.float64: 1e-5,
    np.complex64: 1e-3, np.complex128: 1e-5,
}  # fmt: skip


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


def _conjugate(tree: Any) -> Any:
    def leaf(x):
        return np.conj(x) if np.asarray(x).dtype.kind == "c" else x

    return tree_util.tree_map(leaf, tree)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    def leaf(x, t):
        if np.asarray(t).dtype == dtypes.float0:
            return x
        return np.asarray(x) + np.asarray(step * t, dtypes.dtype(x))

    return tree_util.tree_map(leaf, args, tangents)


def _numerical_jvp(f: Callable, args: Any, tangents: Any, eps: float) -> Any:
    def slope(above, below):
        kind = dtypes.dtype(above)
        if not dtypes.issubdtype(kind, np.inexact):
            return np.zeros(np.shape(above), dtypes.float0)
        return np.asarray((np.asarray(above) - np.asarray(below)) / (2 * eps), kind)

    above, below = f(*_moved(args, tangents, eps)), f(*_moved(args, tangents, -eps))
    return tree_util.tree_map(slope, above, below)


def _inner(xs: Any, ys: Any) -> tuple[Any, np.dtype]:
    """The real part of the inner product of two trees, and the dtype that it is exact to."""
    pairs = [*zip(tree_util.tree_leaves(xs), tree_util.tree_leaves(ys), strict=True)]
    kinds = {dtypes.dtype(x) for pair in pairs for x in pair} - {np.dtype(dtypes.float0)}
    total = sum(np.sum(_wide(x) * _wide(y)) for x, y in pairs)
    kind = functools.reduce(np.promote_types, kinds, np.dtype(bool))
    return np.real(total), np.zeros((), kind).real.dtype


def _assert_close(found: Any, wanted: Any, given: Sequence[Any], what: str) -> None:
    """Compare trees of arrays: types exactly, numbers within the tolerances that are given."""
    trees = tree_util.tree_structure(found), tree_util.tree_structure(wanted)
    if trees[0] != trees[1]:
        raise ValueError(f"{what}: the results are trees of different structures, {trees}.")
    pairs = zip(tree_util.tree_leaves(found), tree_util.tree_leaves(wanted), strict=True)
    for one, other in pairs:
        kinds = [dtypes.canonicalize_dtype(dtypes.dtype(x)) for x in (one, other)]
        if kinds[0] != kinds[1] or np.shape(one) != np.shape(other):
            types = [f"{kind}{np.shape(x)}" for kind, x in zip(kinds, (one, other), strict=True)]
            raise AssertionError(f"{what}: got {types[0]}, which should be {types[1]}.")
        _within(_wide(one), _wide(other), kinds, given, what)


def _within(one: Any, other: Any, kinds: Sequence[Any], given: Sequence[Any], what):
    atol, rtol = (np.size(other) * _tolerance(kinds, tolerance) for tolerance in given)
    np.testing.assert_allclose(one, other, atol=atol, rtol=rtol, err_msg=what)


def _tolerance(kinds: Sequence[Any], given: float | dict[Any, float] | None) -> float:
    """The tolerance for numbers of these dtypes: the larger one where it depends on the dtype."""
    if given is not None and not isinstance(given, dict):
        return given
    table = {np.dtype(dtype): one for dtype, one in {**_TOLERANCES, **(given or {})}.items()}
    return max(table.get(kind, 0.0) for kind in kinds)


def _differentiated(values: Any) -> Any:
    """The values as tangents or cotangents of themselves."""

    def leaf(x):
        kind = dtypes.dtype(x)
        return x if dtypes.issubdtype(kind, np.inexact) else np.zeros(np.shape(x), dtypes.float0)

    return tree_util.tree_map(leaf, values)


def _pulled_back(f: Callable, args: Sequence[Any]) -> Any:
    """The gradient of half the square of the result, for a real function."""
    out, pullback = vjp(f, *args)
    return pullback(_differentiated(out))


def check_jvp(
    f: Callable, f_jvp: Callable, args: Sequence[Any], atol: float | dict | None = None,
    rtol: float | dict | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """AssertionError unless `f_jvp(args, tangents)` is near the differences of `f`.

    Tolerances, which can be given by dtype, are multiplied by the number of elements of each result;
    the step `eps` is 1e-4. Results of other types are an AssertionError too, other trees a ValueError.
    """
    args = tuple(args)
    eps = _STEP if eps is None else eps
    tangents = _random_like(np.random.RandomState(0), args)
    out, out_tangent = f_jvp(args, tangents)
    expected = f(*args)
    _assert_close(out, expected, (atol, rtol), f"{err_msg} primal".strip())
    numerical = _numerical_jvp(f, args, tangents, eps)
    _assert_close(out_tangent, numerical, (atol, rtol), f"{err_msg} tangent".strip())


def check_vjp(
    f: Callable, f_vjp: Callable, args: Sequence[Any], atol: float | dict | None = None,
    rtol: float | dict | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Check `f_vjp(*args) -> out, pullback` by the inner products that must agree."""
    args = tuple(args)
    eps = _STEP if eps is None else eps
    rng = np.random.RandomState(0)
    out, pullback = f_vjp(*args)
    expected = f(*args)
    _assert_close(out, expected, (atol, rtol), f"{err_msg} primal".strip())
    tangents, cotangents = _random_like(rng, args), _conjugate(_random_like(rng, out))
    numerical = _numerical_jvp(f, args, tangents, eps)
    ours, ours_kind = _inner(tangents, pullback(cotangents))
    theirs, theirs_kind = _inner(numerical, cotangents)
    what = f"{err_msg} cotangent projection".strip()
    _within(ours, theirs, (ours_kind, theirs_kind), (atol, rtol), what)


def check_grads(
    f: Callable, args: Sequence[Any], order: int, modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | dict | None = None, rtol: float | dict | None = None, eps: float | None = None,
) -> None:  # fmt: skip
    """AssertionError unless the derivatives of `f` up to this order are near its differences.

    `modes` are "fwd" (jvp) and "rev" (vjp), nested in every order. Of the first order it is the
    derivative along a random direction that is compared; of the next, that of the derivative along
    the arguments themselves, and of the pullback of the result itself.
    """
    check_at_most("order", order, MOST_ORDERS)
    args = tuple(args)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"modes are 'fwd' and 'rev'; got {sorted(unknown)}.")

    def visit(f, args, order, message):
        if "fwd" in modes:
            name = f"JVP of {message}" if message else "JVP"
            check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps, name)
            if order > 1:
                along = _differentiated(args)
                visit(lambda xs, ts: jvp(f, xs, ts), (args, along), order - 1, name)
        if "rev" in modes:
            name = f"VJP of {message}" if message else "VJP"
            check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, name)
            if order > 1:
                visit(lambda *xs: _pulled_back(f, xs), args, order - 1, name)

    visit(f, args, order, "")


__dir__ = shown(__name__)
