"""`minijax.scipy.optimize`: least values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.tracebacks import public
from minijax.transforms.grad import value_and_grad

__all__ = ["OptimizeResults", "minimize"]

_dot = functools.partial(jnp.dot, precision=lax.Precision.HIGHEST)


class OptimizeResults(NamedTuple):
    """Result of a minimization.

    - `x`, `fun`, `jac`: the point of shape (n,), the value and the gradient there
    - `hess_inv`: estimated inverse of the Hessian, of shape (n, n); None for L-BFGS
    - `success`; `status`: 0 converged, 1 too many iterations, 3 and 5 the line search failed; for
      L-BFGS 2 and 3 too many values or gradients, 4 too small a decrease, 5 the line search failed
    - `nfev`, `njev`, `nit`: numbers of values, gradients and iterations

    Source: SciPy's `optimize.OptimizeResult`.

    >>> jax.scipy.optimize.minimize(lambda x: x @ x, jnp.zeros(2), method="BFGS").success
    Array(True, dtype=bool)
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


def minimize(
    fun: Callable[..., Any],
    x0: Array,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimize a function near a vector.

    - `fun`: function `fun(x, *args)` to a scalar
    - `x0`: floating-point array of shape (n,); also complex for L-BFGS
    - `method`: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this"
    - `tol`: largest element of the gradient (option `gtol`, by default 1e-5)
    - `options`: `maxiter`, `gtol`, `norm` (order of the gradient's norm), `line_search_maxiter`; of
      L-BFGS also `maxcor` (pairs that are kept), `ftol`, `maxfun`, `maxgrad`, and `maxls` for the
      last

    The result is an `OptimizeResults`. ValueError for another method or shape.
    Source: SciPy's `optimize.minimize`; Nocedal and Wright, Numerical Optimization, chapters 3, 6
    and 7.

    >>> jax.scipy.optimize.minimize(lambda x: x @ x, jnp.ones(2), method="BFGS").x.shape
    (2,)
    """
    options = dict(options or {})
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    algorithm = _METHODS.get(str(method).lower())
    if algorithm is None:
        raise ValueError(f"Method {method} not recognized: give one of {list(_METHODS)}.")
    if tol is not None:
        options.setdefault("gtol", tol)
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ValueError(f"minimize takes a vector x0; got shape {x.shape}: flatten it.")
    return algorithm(lambda x: fun(x, *args), x, **options)


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    inverse: Any
    before: Any  # the value before the last step
    k: Any
    calls: Any
    converged: Any
    failed: Any


def minimize_bfgs(
    fun, x, maxiter=None, norm=np.inf, gtol=1e-5, line_search_maxiter=10
) -> OptimizeResults:
    maxiter = x.size * 200 if maxiter is None else maxiter
    both = value_and_grad(fun)
    value, slope = both(x)
    one = jnp.eye(x.size, dtype=x.dtype)
    start = _State(
        x, value, slope, one, value + jnp.linalg.norm(slope) / 2, 0, 1,
        jnp.linalg.norm(slope, norm) < gtol, 0,
    )  # fmt: skip

    def go_on(s):
        return ~s.converged & (s.failed == 0) & (s.k < maxiter)

    def step(s):
        direction = -_dot(s.inverse, s.slope)
        found = _line_search(both, s, direction, line_search_maxiter)
        move = found.rate * direction
        change = found.slope - s.slope
        product = _dot(change, move)
        # Without curvature there is nothing to learn.
        usable = product > 0
        rho = jnp.where(usable, 1 / jnp.where(usable, product, 1), 0)
        left = one - rho * jnp.outer(move, change)
        inverse = _dot(_dot(left, s.inverse), left.T) + rho * jnp.outer(move, move)
        return _State(
            s.x + move, found.value, found.slope, jnp.where(usable, inverse, s.inverse), s.value,
            s.k + 1, s.calls + found.calls, jnp.linalg.norm(found.slope, norm) < gtol, found.failed,
        )  # fmt: skip

    s = lax.while_loop(go_on, step, start)
    status = jnp.where(
        s.converged, 0, jnp.where(s.failed > 0, 2 + s.failed, jnp.where(s.k >= maxiter, 1, -1))
    )
    return OptimizeResults(
        s.x, s.converged, status, s.value, s.slope, s.inverse, s.calls, s.calls, s.k
    )


class _History(NamedTuple):
    x: Any
    value: Any
    slope: Any
    before: Any  # the value before the last step
    pairs: Any  # the last moves, changes of the slope and their products' inverses, the newest last
    scale: Any
    k: Any
    calls: Any
    status: Any  # as of `OptimizeResults`; -1 while it goes on


def _minimize_lbfgs(
    fun, x, maxiter=None, norm=np.inf, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-5,
    maxfun=None, maxgrad=None, maxls=20,
) -> OptimizeResults:  # fmt: skip
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        of_parts = lambda parts: fun(lax.complex(*jnp.split(parts, 2)))
        parts = jnp.concatenate([x.real, x.imag])
        found = _minimize_lbfgs(
            of_parts, parts, maxiter, norm, maxcor, ftol, gtol, maxfun, maxgrad, maxls
        )
        real, imag = jnp.split(found.jac, 2)
        return found._replace(x=lax.complex(*jnp.split(found.x, 2)), jac=lax.complex(real, -imag))
    both = value_and_grad(fun)
    value, slope = both(x)
    rows = jnp.zeros((maxcor, x.size), x.dtype)
    limits = ((maxiter, 1), (maxfun, 2), (maxgrad, 3))
    start = _History(
        x, value, slope, value + jnp.linalg.norm(slope) / 2, (rows, rows, rows[:, 0]),
        jnp.ones((), x.dtype), 0, 1, jnp.where(jnp.linalg.norm(slope, norm) < gtol, 0, -1),
    )  # fmt: skip

    def step(s):
        direction = _limited(s.slope, s.pairs, s.scale)
        found = _line_search(both, s, direction, maxls)
        move, change = found.rate * direction, found.slope - s.slope
        product = _dot(change, move)
        usable = product > 0
        rho = 1 / jnp.where(usable, product, 1)
        pairs = tuple([
            jnp.where(usable, jnp.concatenate([kept[1:], new[None]]), kept)
            for kept, new in zip(s.pairs, (move, change, rho), strict=True)
        ])  # fmt: skip
        size = _dot(change, change)
        scale = jnp.where(usable, product / jnp.where(usable, size, 1), s.scale)
        k, calls = s.k + 1, s.calls + found.calls
        least = ftol * jnp.maximum(jnp.maximum(abs(s.value), abs(found.value)), 1)
        status = jnp.where(s.value - found.value <= least, 4, -1)
        for (most, code), count in zip(limits, (k, calls, calls), strict=True):
            status = status if most is None else jnp.where(count >= most, code, status)
        status = jnp.where(found.failed > 0, 5, status)
        status = jnp.where(jnp.linalg.norm(found.slope, norm) < gtol, 0, status)
        return _History(
            s.x + move, found.value, found.slope, s.value, pairs, scale, k, calls, status
        )

    s = lax.while_loop(lambda s: s.status < 0, step, start)
    return OptimizeResults(
        s.x, (s.status == 0).astype(bool), s.status, s.value, s.slope, None, s.calls, s.calls, s.k
    )


def _limited(slope: Any, pairs: tuple[Any, Any, Any], scale: Any) -> Any:
    """Direction by the Hessian of the pairs (algorithm 7.4), of which those of zeros count as none."""

    def backward(rest, pair):
        move, change, rho = pair
        part = rho * _dot(move, rest)
        return rest - part * change, part

    def forward(found, row):
        (move, change, rho), part = row
        return found + (part - rho * _dot(change, found)) * move, None

    rest, parts = lax.scan(backward, slope, pairs, reverse=True)
    return -lax.scan(forward, scale * rest, (pairs, parts))[0]


_METHODS = {"bfgs": minimize_bfgs, "l-bfgs-experimental-do-not-rely-on-this": _minimize_lbfgs}


class _Search(NamedTuple):
    """A search along a line: first for a bracket, then within it."""

    low: Any  # rate, value and slope along the line at the better end
    low_value: Any
    low_slope: Any
    high: Any
    high_value: Any
    rate: Any  # the last one tried
    value: Any
    slope: Any
    calls: Any
    bracketed: Any
    done: Any
    failed: Any = 0


_ENOUGH, _FLAT = 1e-4, 0.9  # Wolfe's conditions


def _line_search(both: Callable, s: _State | _History, direction: Any, limit: int) -> _Search:
    """A rate that meets the strong conditions of Wolfe (algorithms 3.5 and 3.6)."""
    along = lambda slope: _dot(slope, direction)
    first = along(s.slope)
    zero = jnp.zeros_like(s.value)
    guess = 1.01 * 2 * (s.value - s.before) / jnp.where(first == 0, 1, first)
    guess = jnp.where((guess > 0) & (guess < 1), guess, 1)
    start = _Search(
        zero, s.value, first, zero, s.value, guess.astype(s.value.dtype), s.value, s.slope, 0,
        jnp.zeros((), bool), jnp.zeros((), bool),
    )  # fmt: skip

    def go_on(p):
        return ~p.done & (p.calls < 2 * limit)

    def step(p):
        rate = jnp.where(p.bracketed, _between(p), p.rate)
        value, slope = both(s.x + rate * direction)
        incline = along(slope)
        rises = (value > s.value + _ENOUGH * rate * first) | (value >= p.low_value) & (p.calls > 0)
        rises = rises | ~jnp.isfinite(value)
        done = ~rises & (jnp.abs(incline) <= -_FLAT * first)
        # Where it turns upward, the end that was better so far becomes the far one.
        turns = ~rises & jnp.where(p.bracketed, incline * (p.high - p.low) >= 0, incline >= 0)
        high = jnp.where(rises, rate, jnp.where(turns, p.low, p.high))
        high_value = jnp.where(rises, value, jnp.where(turns, p.low_value, p.high_value))
        low = jnp.where(rises, p.low, rate)
        low_value = jnp.where(rises, p.low_value, value)
        low_slope = jnp.where(rises, p.low_slope, incline)
        bracketed = p.bracketed | rises | turns
        following = jnp.where(bracketed | done, rate, 2 * rate)
        return _Search(
            low, low_value, low_slope, high, high_value, following, value, slope, p.calls + 1,
            bracketed, done,
        )  # fmt: skip

    p = lax.while_loop(go_on, step, start)
    # The best place that was found serves if it is lower, even where no rate met the conditions.
    rate = jnp.where(p.done, p.rate, p.low)
    value, slope = both(s.x + rate * direction)
    value = jnp.where(p.done, p.value, value)
    slope = jnp.where(p.done, p.slope, slope)
    failed = jnp.where(p.done | (p.low > 0), 0, jnp.where(p.bracketed, 1, 3))
    return p._replace(rate=rate, value=value, slope=slope, failed=failed)


def _between(p: _Search) -> Any:
    """The least point of the parabola of both values and one slope, kept off the ends."""
    width = p.high - p.low
    bend = p.high_value - p.low_value - p.low_slope * width
    at = -0.5 * p.low_slope * width * width / jnp.where(bend == 0, 1, bend)
    part = at / jnp.where(width == 0, 1, width)
    usable = jnp.isfinite(part) & (bend != 0) & (part > 0.1) & (part < 0.9)
    return p.low + width * jnp.where(usable, part, 0.5)


__dir__ = public(__name__)
