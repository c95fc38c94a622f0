"""`minijax.experimental.ode`: `odeint`, for initial value problems, with gradients by the adjoint
method.

The fifth-order method of Dormand and Prince with its embedded error estimate and dense output
(Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I, II.4 to II.6); gradients
integrate the adjoint equation backward in time (Pontryagin; Chen et al., Neural ODEs, 2018), so
that memory does not grow with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax, tree_util
from minijax import numpy as jnp
from minijax.core.avals import get_aval
from minijax.core.jaxpr import eval_jaxpr
from minijax.core.trace import Tracer
from minijax.dtypes import issubdtype
from minijax.features.custom_rules.closures import closure_convert
from minijax.features.custom_rules.custom_vjp import custom_vjp
from minijax.flatten_util import ravel_pytree
from minijax.lax.casts import varying_alike
from minijax.lax.control_flow.common import program_of
from minijax.tracebacks import public
from minijax.transforms.grad import vjp
from minijax.transforms.jit import jit

__all__ = ["odeint", "ravel_pytree"]

# The tableau: times, weights of the stages, of the solution, of the error and of the dense output.
_C = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_A = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_E = (
    71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip
_D = (
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip


def _norm(x: Any) -> Any:
    """The root of the mean square."""
    return jnp.sqrt(jnp.mean(jnp.real(x * jnp.conj(x))))


def _first_step(fun, t, y, f, rtol, atol) -> Any:
    """A step that an explicit Euler step's error suggests (Hairer et al., II.4)."""
    scale = atol + jnp.abs(y) * rtol
    d0, d1 = _norm(y / scale), _norm(f / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = _norm((fun(y + h0 * f, t + h0) - f) / scale) / h0
    largest = jnp.maximum(d1, d2)
    h1 = jnp.where(largest <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / largest) ** 0.2)
    return jnp.minimum(100.0 * h0, h1)


def _weighted(weights: Any, stages: Any) -> Any:
    """The sum of the stages, the first axis, by these weights."""
    weights = jnp.asarray(weights, jnp.real(stages).dtype)
    return jnp.tensordot(weights, stages, 1, precision=lax.Precision.HIGHEST)


def _step(fun, y, f, t, h) -> tuple[Any, Any, Any]:
    """The solution after a step, the derivatives at all stages, and the estimate of the error."""
    stages = [f]
    for c, row in zip(_C, _A, strict=True):
        there = y + h * _weighted(row, jnp.stack(stages))
        stages.append(fun(there, t + c * h))
    k = jnp.stack(stages)
    return there, k, h * _weighted(_E, k)


def _between(s: Any, h: Any, y0: Any, y1: Any, k: Any) -> Any:
    """The dense output, at the fraction `s` of a step."""
    change = y1 - y0
    bend = h * k[0] - change
    fourth = h * _weighted(_D, k)
    rest = change - h * k[-1] - bend
    return y0 + s * (change + (1 - s) * (bend + s * (rest + (1 - s) * fourth)))


def _integrate(fun, rtol, atol, mxstep, hmax, y0, ts) -> Any:
    """The flat solution at each of the times."""
    f0 = fun(y0, ts[0])
    h0 = jnp.clip(_first_step(fun, ts[0], y0, f0, rtol, atol), 0.0, hmax)
    k0 = jnp.stack([f0] * 7)

    def to_target(state, target):
        def unfinished(loop):
            count, (_, _, t, h, *_) = loop
            return (t < target) & (count < mxstep) & (h > 0)

        def advance(loop):
            count, (y, f, t, h, *last) = loop
            new, k, error = _step(fun, y, f, t, h)
            ratio = _norm(error / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))))
            least = jnp.where(ratio < 1, 1.0, 0.2)
            factor = jnp.clip(0.9 * ratio**-0.2, least, 10.0)
            following = jnp.where(ratio == 0, h * 10.0, h * factor)
            following = jnp.clip(following, 0.0, hmax)
            taken = (new, k[-1], t + h, following, t, h, y, new, k)
            refused = (y, f, t, following, *last)
            chosen = tree_util.tree_map(partial(jnp.where, ratio <= 1), taken, refused)
            return count + 1, chosen

        _, state = lax.while_loop(unfinished, advance, (0, state))
        *_, start, h, before, after, k = state
        s = jnp.where(h > 0, (target - start) / jnp.where(h > 0, h, 1), 0)
        found = jnp.where(target < start, jnp.nan, _between(s, h, before, after, k))
        return state, found.astype(y0.dtype)

    zero = jnp.zeros((), ts.dtype)
    state = (y0, f0, ts[0], h0.astype(ts.dtype), ts[0], zero, y0, y0, k0)
    _, ys = lax.scan(to_target, state, ts[1:])
    return jnp.concatenate([y0[None], ys])


class _Equation:
    """A right-hand side without free variables to differentiate, with its compiled solvers.

    They live as long as it does: static arguments of one solver for all would outlive their calls.
    """

    __slots__ = ("rhs", "solvers")

    def __init__(self, rhs: Callable):
        self.rhs = rhs
        self.solvers: dict[tuple, Callable] = {}

    def compiled(self, solver: Callable, *options: Any) -> Callable:
        found = self.solvers.get((solver, *options))
        if found is None:
            found = jit(partial(solver, self.rhs, *options))
            self.solvers[solver, *options] = found
        return found


def _equation(func: Callable, *args: Any) -> tuple[_Equation, list[Any]]:
    """The equation of a function, and what it closes over that may be differentiated."""
    leaves, trees = zip(*map(tree_util.tree_flatten, args), strict=True)
    avals = [get_aval(leaf) for part in leaves for leaf in part]
    traced = program_of("odeint", func, trees, avals)
    if any(isinstance(x, Tracer) for x in traced.consts):
        converted, constants = closure_convert(func, *args)
        return _Equation(converted), constants
    if "odeint" not in traced.plans:
        # Not of `traced` itself, which would refer to itself through its plans.
        closed, consts, out_tree = traced.closed, traced.consts, traced.out_tree
        rhs = lambda *args: out_tree.unflatten(
            eval_jaxpr(closed.jaxpr, (), *consts, *tree_util.tree_leaves(args))
        )
        traced.plans["odeint"] = _Equation(rhs)
    return traced.plans["odeint"], []


def _solve(rhs, rtol, atol, mxstep, hmax, y0, ts, *args):
    flat, unravel = ravel_pytree(y0)
    if issubdtype(flat.dtype, np.floating) and flat.dtype.itemsize < 4:
        raise TypeError(
            f"odeint: a state of dtype {flat.dtype.name} is too coarse for an estimate of the error; "
            "convert it with .astype('float32')."
        )
    fun = lambda y, t: ravel_pytree(rhs(unravel(y), t, *args))[0]
    if not ts.shape[0]:
        raise IndexError("odeint takes at least one time, the one where y0 is given; got none.")
    rows = _integrate(fun, rtol, atol, mxstep, hmax, flat, ts)
    leaves, tree = tree_util.tree_flatten(y0)
    found, start = [], 0
    for x in leaves:
        size = int(np.prod(jnp.shape(x)))
        part = rows[:, start : start + size].reshape(rows.shape[0], *jnp.shape(x))
        found.append(part.astype(jnp.result_type(x)))
        start += size
    return tree.unflatten(found)


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(equation, rtol, atol, mxstep, hmax, y0, ts, *args):
    return equation.compiled(_solve, rtol, atol, mxstep, hmax)(y0, ts, *args)


def _forward(equation, rtol, atol, mxstep, hmax, y0, ts, *args):
    ys = _odeint(equation, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(equation, rtol, atol, mxstep, hmax, saved, cts):
    return equation.compiled(_solve_back, rtol, atol, mxstep, hmax)(*saved, cts)


def _solve_back(rhs, rtol, atol, mxstep, hmax, ys, ts, args, cts):
    """The adjoint equation, from each time back to the one before."""

    def derivatives(state, minus_t, *args):
        """Return the derivatives of the state, its cotangent, and those of the time and the
        arguments, in -t.
        """
        y, y_bar, *_ = state
        dy, pull = vjp(rhs, y, -minus_t, *args)
        y_dot, t_dot, *args_dot = pull(y_bar)
        return tree_util.tree_map(jnp.negative, dy), y_dot, t_dot, tuple(args_dot)

    adjoint = _Equation(derivatives)
    at = lambda tree, n: tree_util.tree_map(lambda x: x[n], tree)
    dot = lambda a, b: sum(
        jnp.vdot(jnp.conj(x), y, precision=lax.Precision.HIGHEST).real.astype(ts.dtype)
        for x, y in zip(tree_util.tree_leaves(a), tree_util.tree_leaves(b), strict=True)
    )

    def back(carry, n):
        y_bar, t0_bar, args_bar = carry
        t_bar = dot(rhs(at(ys, n), ts[n], *args), at(cts, n))
        start = (at(ys, n), y_bar, t0_bar - t_bar, args_bar)
        times = jnp.stack([-ts[n], -ts[n - 1]])
        out = _odeint(adjoint, rtol, atol, mxstep, hmax, start, times, *args)
        _, y_bar, t0_bar, args_bar = at(out, 1)
        y_bar = tree_util.tree_map(jnp.add, y_bar, at(cts, n - 1))
        return (y_bar, t0_bar, args_bar), t_bar

    zeros = tree_util.tree_map(jnp.zeros_like, args)
    first = (at(cts, -1), jnp.zeros((), ts.dtype), zeros)
    (y_bar, t0_bar, args_bar), rest = lax.scan(back, first, jnp.arange(len(ts) - 1, 0, -1))
    return (y_bar, jnp.concatenate([t0_bar[None], rest[::-1]]), *args_bar)


_odeint.defvjp(_forward, _backward)


def odeint(
    func: Callable, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
    mxstep: float = np.inf, hmax: float = np.inf,
) -> Any:  # fmt: skip
    """The solution of `dy/dt = func(y, t, *args)` with `y = y0` at the first of the times `t`.

    - `y0`: an array, or a pytree of arrays; `func` gives the same structure
    - `t`: increasing times, floats of shape (n,); results have a new leading axis of that length
    - `args`: further arguments of `func`: pytrees of arrays
    - `rtol`, `atol`: the local error allowed, relative and absolute; `mxstep`: the most steps from one
      time to the next (beyond that the solution is extrapolated); `hmax`: the longest step

    Differentiable in reverse mode, in `y0`, `t` and `args`, by the adjoint equation: gradients have
    the accuracy of the tolerances. Times that decrease give NaN. TypeError unless `t` and the leaves of `args` are arrays or
    numbers, `t` of floats. Source: the method of Dormand and Prince.
    """
    for leaf in tree_util.tree_leaves(args):
        if not isinstance(leaf, (int, float, complex)) and not hasattr(leaf, "dtype"):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {leaf!r}."
            )
    if not hasattr(t, "dtype") or not issubdtype(t.dtype, np.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    if not issubdtype(jnp.result_type(*tree_util.tree_leaves(y0)), np.inexact):
        raise TypeError(f"y0 must hold floats or complex numbers, but got {y0}.")
    t = jnp.asarray(t)
    equation, constants = _equation(func, y0, t[0], *args)
    operands = varying_alike((y0, t, *args, *constants))
    return _odeint(equation, rtol, atol, mxstep, hmax, *operands)


__dir__ = public(__name__)
