"""`qdwh`: the polar decomposition by dynamically weighted Halley iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.arithmetic import abs_p, add_p, mul_p, rsqrt_p, sqrt_p, sub_p
from minijax.lax.compare import and_p, eq_p, gt_p, lt_p, not_p, select_n_p
from minijax.lax.control_flow.loops import fori_loop, while_loop
from minijax.lax.convert import to_dtype
from minijax.lax.creation import iota_p
from minijax.lax.dynamic_slicing import dynamic_index_in_dim
from minijax.lax.joining import concatenate_p
from minijax.lax.linalg.common import INT32, adjoint, eye, masked, matmul, part, symmetrized
from minijax.lax.linalg.definite import cholesky
from minijax.lax.linalg.orthogonal import qr_p
from minijax.lax.linalg.triangular import triangular_solve
from minijax.lax.reductions import reduce_max_p
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import as_value
from minijax.transforms.primitives import reduce_sum_p

__all__ = ["qdwh"]

_BY_QR_ABOVE = 100.0  # where the weight is larger than this, Cholesky would lose accuracy
_MOST_WEIGHTS = 20


def _weights(eps: float) -> list[tuple[float, float, float]]:
    """The weights of the iterations that bring singular values from `eps` or more up to 1.

    Source: Nakatsukasa and Higham, "Stable and efficient spectral divide and conquer algorithms"
    (2013), section 3.
    """
    if not eps > 0:
        raise ValueError(f"polar: eps must be positive; got {eps}.")
    least, found = eps, []
    while least + 5 * eps < 1 and len(found) < _MOST_WEIGHTS:
        square = least * least
        d = np.cbrt(4 * (1 / square - 1) / square)
        root = np.sqrt(1 + d)
        a = root + np.sqrt(2 - d + 2 * (2 - square) / (square * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        least = least * (a + b * square) / (1 + c * square)
        found.append((float(a), float(b), float(c)))
    return found


def _scaled(factor: Any, x: Any) -> Any:
    if isinstance(factor, float):
        return mul_p.bind(scalar_like(factor, x), x)
    return mul_p.bind(to_dtype(factor, x.dtype), x)


def _factors(a: float, b: float, c: float) -> tuple[float, ...]:
    """The factors of an iteration: `u` stacked or in the Gram matrix, the old `u`, and the new."""
    if c > _BY_QR_ABOVE:
        return float(np.sqrt(c)), b / c, (a - b / c) / float(np.sqrt(c))
    return c, b / c, a - b / c


def _by_qr(u: Any, root: Any, old: Any, new: Any) -> Any:
    """One iteration by the QR factorization of `[sqrt(c) u; I]`."""
    rows, columns = u.shape
    stacked = concatenate_p.bind(_scaled(root, u), eye(columns, u.dtype), dimension=0)
    q, _ = qr_p.bind(stacked, pivoting=False, full_matrices=False, use_magma=None)
    upper, lower = part(q, (0, rows), (0, columns)), part(q, (rows, rows + columns), (0, columns))
    product = matmul(upper, adjoint(lower))
    return add_p.bind(_scaled(old, u), _scaled(new, product))


def _by_cholesky(u: Any, c: Any, old: Any, new: Any) -> Any:
    """One iteration by the Cholesky factorization of `I + c u^H u`."""
    gram = _scaled(c, matmul(adjoint(u), u))
    factor = cholesky(add_p.bind(gram, eye(u.shape[1], u.dtype)), symmetrize_input=False)
    y = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
    y = triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return add_p.bind(_scaled(old, u), _scaled(new, adjoint(y)))


def _unconverged(new: Any, old: Any, tolerance: float) -> Any:
    """Whether the Frobenius norm of a step is above the tolerance."""
    size = abs_p.bind(sub_p.bind(new, old))
    total = reduce_sum_p.bind(mul_p.bind(size, size), axes=(0, 1), out_sharding=None)
    return gt_p.bind(sqrt_p.bind(total), scalar_like(tolerance, total))


def _largest_sum(x: Any, axis: int) -> Any:
    sums = reduce_sum_p.bind(abs_p.bind(x), axes=(axis,), out_sharding=None)
    if not sums.shape[0]:
        return np.zeros((), sums.dtype)[()]
    return reduce_max_p.bind(sums, axes=(0,))


def _normalized(x: Any) -> Any:
    """`x` divided by a bound of its largest singular value: the mean of its 1- and inf-norms."""
    one, inf = _largest_sum(x, 0), _largest_sum(x, 1)
    scale = mul_p.bind(rsqrt_p.bind(one), rsqrt_p.bind(inf))
    is_zero = eq_p.bind(one, scalar_like(0, one))
    scale = select_n_p.bind(is_zero, scale, scalar_like(1, one))
    return mul_p.bind(x, to_dtype(scale, x.dtype))


def _within(x: Any, rows: Any, columns: Any) -> Any:
    """`x` with zeros outside of its first rows and columns, whose numbers may be traced."""
    inside = None
    for axis, count in enumerate((rows, columns)):
        place = iota_p.bind(dtype=INT32, shape=x.shape, dimension=axis, sharding=None)
        found = lt_p.bind(place, to_dtype(count, INT32))
        inside = found if inside is None else and_p.bind(inside, found)
    return masked(x, inside)


@library(static=("is_hermitian", "max_iterations", "eps"), whole=True)
def qdwh(
    x: Array,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Compute the polar decomposition `x = u @ h` of a matrix.

    - `x`: floating-point or complex array of shape (m, n) with m >= n
    - `max_iterations`: 10 by default; `is_hermitian` changes nothing
    - `eps`: precision sought, by default the dtype's; the last step is below `(5 * eps) ** (1 / 3)`
    - `dynamic_shape`: numbers of rows and columns of a matrix padded to (m, n); they may be traced

    The result is `u` with orthonormal columns, the positive semidefinite `h`, the number of
    iterations, and whether they converged. ValueError if m < n or for other dtypes.
    Source: Nakatsukasa and Higham (2013).

    >>> [x.shape for x in lax.linalg.qdwh(jnp.ones((3, 2)))]
    [(3, 2), (2, 2), (), ()]
    """
    x = as_value(x)
    rows, columns = x.shape
    if rows < columns:
        raise ValueError(
            f"The input matrix of shape M x N must have M >= N; qdwh got shape {x.shape}: decompose "
            "its adjoint."
        )
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise ValueError(f"qdwh: the data type {x.dtype.name} is not inexact: convert x to float.")
    most = 10 if max_iterations is None else max_iterations
    eps = float(dtypes.finfo(x.dtype).eps if eps is None else eps)
    x = x if dynamic_shape is None else _within(x, *dynamic_shape)
    u, count, unconverged = _iterate(_normalized(x), most, eps)
    # One step of Newton and Schulz makes the columns orthonormal to the last bits.
    cubic = matmul(_scaled(0.5, u), matmul(adjoint(u), u))
    u = sub_p.bind(_scaled(1.5, u), cubic)
    h = symmetrized(matmul(adjoint(u), x))
    return u, h, count, not_p.bind(unconverged)


def _iterate(u: Any, most: int, eps: float) -> tuple[Any, Any, Any]:
    """The known weights first, then steps of the limit (3, 1, 3) until one is small."""
    tolerance = float(np.cbrt(5 * eps))
    known = _weights(eps)[:most]
    by_qr = [_factors(*w) for w in known if w[2] > _BY_QR_ABOVE]
    others = [_factors(*w) for w in known if w[2] <= _BY_QR_ABOVE]
    u = _each(by_qr, lambda carry, *w: (_by_qr(carry[0], *w),), (u,))[0]

    def follow(carry, *w):
        new = _by_cholesky(carry[0], *w)
        return new, _unconverged(new, carry[0], tolerance)

    u, unconverged = _each(others, follow, (u, as_value(np.True_)))

    def more(carry):
        count, _, unconverged = carry
        return and_p.bind(unconverged, lt_p.bind(count, scalar_like(most, count)))

    def step(carry):
        count, u, _ = carry
        new = _by_cholesky(u, *_factors(3.0, 1.0, 3.0))
        return add_p.bind(count, 1), new, _unconverged(new, u, tolerance)

    count, u, unconverged = while_loop(more, step, (len(known), u, unconverged))
    return u, count, unconverged


def _each(factors: list[tuple[float, ...]], step: Any, carry: tuple) -> tuple:
    """Take a step with each row of factors, in a loop: what is in it is compiled once."""
    if not factors:
        return carry
    real = dtypes.to_real_dtype(carry[0].dtype)
    table = as_value(np.asarray(factors, real))

    def body(i, carry):
        return step(carry, *[_entry(table, i, place) for place in range(3)])

    return fori_loop(np.int32(0), np.int32(len(factors)), body, carry)


def _entry(table: Any, i: Any, place: int) -> Any:
    row = dynamic_index_in_dim(table, i, 0, keepdims=False)
    return dynamic_index_in_dim(row, np.int32(place), 0, keepdims=False)
