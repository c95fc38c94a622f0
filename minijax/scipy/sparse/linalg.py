"""`minijax.scipy.sparse.linalg`: linear systems by iteration.

An operator is a function of a pytree of arrays, or a matrix. Derivatives are those of the solution:
one more system (`lax.custom_linear_solve`), not those of the iteration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.flatten_util import ravel_pytree
from minijax.tracebacks import public

__all__ = ["bicgstab", "cg", "gmres"]

_dot = functools.partial(jnp.vdot, precision=lax.Precision.HIGHEST)
_product = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def _operator(A: Any, name: str) -> Callable:
    if callable(A):
        return A
    if not hasattr(A, "__matmul__") or not hasattr(A, "shape"):
        raise TypeError(f"linear operator must be either a function or ndarray: {name} is {A!r}")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(
            f"linear operator must be a square matrix, but has shape: {A.shape}: it is {name}."
        )
    if isinstance(A, (Array, np.ndarray)):
        return functools.partial(_product, A)
    return lambda x: A @ x


def _solve(name: str, iterate: Callable, A, b, x0, M, maxiter, default) -> tuple[Any, None]:
    """`iterate(A, b, x0, M, maxiter)`, on vectors, as the solution of a system of pytrees."""
    b = tree_util.tree_map(_inexact, b)
    x0 = tree_util.tree_map(jnp.zeros_like, b) if x0 is None else tree_util.tree_map(_inexact, x0)
    if tree_util.tree_structure(x0) != tree_util.tree_structure(b):
        raise ValueError(
            "x0 and b must have matching tree structure: "
            f"{tree_util.tree_structure(x0)} vs {tree_util.tree_structure(b)}"
        )
    shapes = [[np.shape(x) for x in tree_util.tree_leaves(tree)] for tree in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}"
        )
    apply, precondition = _operator(A, "A"), (lambda x: x) if M is None else _operator(M, "M")
    flat, unravel = ravel_pytree(b)
    start, _ = ravel_pytree(x0)
    maxiter = default(flat.size) if maxiter is None else maxiter

    def vectors(function, name):
        def on_vectors(x):
            out = function(unravel(x))
            _check_like(name, out, b)
            flat = ravel_pytree(out)[0]
            if jnp.iscomplexobj(flat) and not jnp.iscomplexobj(x):
                raise TypeError(
                    f"{name}() gives {flat.dtype} for vectors of {x.dtype}: make b complex."
                )
            return flat.astype(x.dtype)

        return on_vectors

    def solve(matvec, right):
        # The system of a derivative starts from the given place as well, and ends where it must.
        return iterate(
            matvec, right, start.astype(right.dtype), vectors(precondition, "M"), maxiter
        )

    found = lax.custom_linear_solve(vectors(apply, "matvec"), flat, solve, solve)
    return unravel(found), None


def _check_like(name: str, out: Any, b: Any) -> None:
    """Check that the result of a linear function is a pytree like the right-hand side."""
    shapes = [[np.shape(x) for x in tree_util.tree_leaves(tree)] for tree in (out, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}() output shapes must match b, got {shapes[0]} and {shapes[1]}.")
    found, wanted = map(tree_util.tree_structure, (out, b))
    if found != wanted:
        raise TypeError(f"{name}() output pytree structure must match b, got {found} and {wanted}.")


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact_dtype(x.dtype))


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.real(_dot(x, x)))


def _goal(b: Any, tol: Any, atol: Any) -> Any:
    return jnp.maximum(tol * _norm(b), atol)


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]:  # fmt: skip
    """Solve `A x = b` for Hermitian positive definite `A`, by conjugate gradients.

    - `A`: matrix, or linear function; `M`: approximation of its inverse
    - `b`, `x0`: pytrees of arrays; `x0` is the start, by default zeros
    - `tol`, `atol`: the residual is at most max(tol * |b|, atol), in `maxiter` steps

    The result is the solution, of the structure and shapes of `b`, and None. TypeError or
    ValueError where structures or shapes differ.
    Source: SciPy's `sparse.linalg.cg`; Hestenes and Stiefel (1952).

    >>> jax.scipy.sparse.linalg.cg(lambda x: 2 * x, jnp.array([2.0, 4.0]))[0]
    Array([1., 2.], dtype=float32)
    """

    def iterate(A, b, x, M, maxiter):
        goal = _goal(b, tol, atol) ** 2

        def go_on(carry):
            _, r, *_, k = carry
            return (jnp.real(_dot(r, r)) > goal) & (k < maxiter)

        def step(carry):
            x, r, rho, p, k = carry
            image = A(p)
            alpha = rho / _dot(p, image)
            x, r = x + alpha * p, r - alpha * image
            z = M(r)
            new = _dot(r, z)
            return x, r, new, z + new / rho * p, k + 1

        r = b - A(x)
        z = M(r)
        return lax.while_loop(go_on, step, (x, r, _dot(r, z), z, 0))[0]

    return _solve("cg", iterate, A, b, x0, M, maxiter, lambda size: 10 * size)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]:  # fmt: skip
    """Solve `A x = b` by stabilized biconjugate gradients.

    - `A`: matrix, or linear function; `M`: approximation of its inverse
    - `b`, `x0`: pytrees of arrays; `x0` is the start, by default zeros
    - `tol`, `atol`: the residual is at most max(tol * |b|, atol), in `maxiter` steps

    The result is the solution, of the structure and shapes of `b`, and None. TypeError or
    ValueError where structures or shapes differ.
    Source: SciPy's `sparse.linalg.bicgstab`; van der Vorst (1992).

    >>> jax.scipy.sparse.linalg.bicgstab(lambda x: 2 * x, jnp.array([2.0, 4.0]))[0].shape
    (2,)
    """

    def iterate(A, b, x, M, maxiter):
        goal = _goal(b, tol, atol)

        def go_on(carry):
            _, r, *_, k = carry
            return (_norm(r) > goal) & (k < maxiter) & (k >= 0)

        def step(carry):
            x, r, first, alpha, omega, rho, p, q, k = carry
            new = _dot(first, r)
            p = r + new / rho * alpha / omega * (p - omega * q)
            near = M(p)
            q = A(near)
            alpha = new / _dot(first, q)
            s = r - alpha * q
            is_done = _norm(s) < goal
            fixed = M(s)
            t = A(fixed)
            size = _dot(t, t)
            omega = _dot(t, s) / jnp.where(size == 0, 1, size)
            x = x + alpha * near + jnp.where(is_done, 0, omega) * fixed
            r = jnp.where(is_done, s, s - omega * t)
            # It has broken down where a divisor is zero.
            is_lost = ~is_done & ((omega == 0) | (alpha == 0))
            return x, r, first, alpha, omega, new, p, q, jnp.where(is_lost, -11, k + 1)

        r = b - A(x)
        one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)
        start = (x, r, r, one, one, one, zero, zero, jnp.zeros((), np.int32))
        return lax.while_loop(go_on, step, start)[0]

    return _solve("bicgstab", iterate, A, b, x0, M, maxiter, lambda size: 10 * size)


def gmres(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, restart: int = 20,
    maxiter: Any = None, M: Any = None, solve_method: str = "batched",
) -> tuple[Any, Any]:  # fmt: skip
    """Solve `A x = b` by generalized minimal residuals.

    - `A`, `b`, `x0`, `tol`, `atol`, `M`: as in `cg`
    - `restart`: number of directions kept before a restart; `maxiter`: number of restarts
    - `solve_method`: "batched", or "incremental", which can stop before a restart

    The result is the solution, of the structure and shapes of `b`, and 0, or -1 if it is NaN.
    ValueError for another `solve_method`, TypeError or ValueError where structures or shapes
    differ.
    Source: SciPy's `sparse.linalg.gmres`; Saad and Schultz (1986).

    >>> jax.scipy.sparse.linalg.gmres(lambda x: 2 * x, jnp.array([2.0, 4.0]))[0].shape
    (2,)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )
    stops_early = solve_method == "incremental"

    def iterate(A, b, x, M, maxiter):
        count = min(restart, b.size)
        goal = _goal(M(b), tol, atol)

        def go_on(carry):
            _, _, size, k = carry
            return (size > goal) & (k < maxiter)

        def step(carry):
            x, r, size, k = carry
            x = x + _correction(A, M, r, size, count, goal if stops_early else None)
            r = M(b - A(x))
            return x, r, _norm(r), k + 1

        r = M(b - A(x))
        return lax.while_loop(go_on, step, (x, r, _norm(r), 0))[0]

    x, _ = _solve("gmres", iterate, A, b, x0, M, maxiter, lambda size: 10 * size)
    is_lost = jnp.isnan(_norm(ravel_pytree(x)[0]))
    return x, jnp.where(is_lost, -1, 0)


def _correction(A: Callable, M: Callable, r: Any, size: Any, count: int, goal: Any) -> Any:
    """Return the correction that makes the residual least among `count` directions: Arnoldi's, made
    orthogonal twice.
    """
    eps = dtypes.finfo(r.dtype).eps
    basis = jnp.zeros((count + 1, r.size), r.dtype)
    basis = basis.at[0].set(r / jnp.where(size == 0, 1, size))
    table = jnp.zeros((count + 1, count), r.dtype)

    def go_on(carry):
        _, _, k, left = carry
        return (k < count) & (left > (0 if goal is None else goal))

    def step(carry):
        basis, table, k, _ = carry
        v = M(A(basis[k]))
        length = _norm(v)
        total = jnp.zeros(count + 1, r.dtype)
        for _ in range(2):
            parts = _product(jnp.conj(basis), v)
            v, total = v - _product(parts, basis), total + parts
        rest = _norm(v)
        is_new = rest > eps * length
        basis = basis.at[k + 1].set(jnp.where(is_new, v / jnp.where(is_new, rest, 1), 0))
        total = total.at[k + 1].set(jnp.where(is_new, rest, 0).astype(r.dtype))
        table = table.at[:, k].set(total)
        left = jnp.where(is_new, jnp.ones_like(size), 0)
        if goal is not None:
            left = jnp.where(is_new, _fitted(table, size)[1], 0)
        return basis, table, k + 1, left

    carry = (basis, table, 0, jnp.full_like(size, np.inf))
    basis, table, *_ = lax.while_loop(go_on, step, carry)
    return _product(_fitted(table, size)[0], basis[:-1])


def _fitted(table: Any, size: Any) -> tuple[Any, Any]:
    """The combination of directions of the least residual, and its size."""
    right = jnp.zeros(table.shape[0], table.dtype).at[0].set(size.astype(table.dtype))
    y = jnp.linalg.lstsq(table, right)[0]
    return y, _norm(right - _product(table, y))


__dir__ = public(__name__)
