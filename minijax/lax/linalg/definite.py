"""`cholesky`, its rank-1 update, and symmetric products."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.features.library import library
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import batched
from minijax.lax.arithmetic import abs_p, add_p, div_p, max_p, mul_p, neg_p, sqrt_p, sub_p
from minijax.lax.compare import eq_p, select_n_p
from minijax.lax.control_flow.loops import fori_loop
from minijax.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from minijax.lax.linalg.common import (
    batch_in_front,
    check_operands,
    check_square,
    checked,
    decomposition,
    eye,
    lapack,
    matmul,
    mT,
    spread,
    symmetrized,
    take_lower,
    unbatched_avals,
)
from minijax.lax.linalg.triangular import triangular_solve_p
from minijax.lax.rules import FLOAT, scalar_like
from minijax.lax.shapes import as_value
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, zero_like
from minijax.transforms.vmap import vmap

__all__ = [
    "cholesky", "cholesky_p", "cholesky_update", "cholesky_update_p", "symmetric_product",
    "symmetric_product_p",
]  # fmt: skip

# -- cholesky ---------------------------------------------------------------------------------

cholesky_p = decomposition("cholesky", False)


@cholesky_p.shape_rule
def _(x):
    check_operands("cholesky", (x,), (2,))
    check_square("cholesky", x)
    return x


@cholesky_p.jvp
def _(primals, tangents):
    # With l the factor and dl its tangent, l^-1 dx l^-H = l^-1 dl + (l^-1 dl)^H: the first of them
    # is the lower triangle, with half of the diagonal.
    (x,), (t,) = primals, tangents
    factor = take_lower(cholesky_p.bind(x))
    if type(t) is Zero:
        return factor, zero_like(factor)

    def solve(y, left_side, transpose_a):
        return triangular_solve_p.bind(
            factor,
            y,
            left_side=left_side,
            lower=True,
            transpose_a=transpose_a,
            conjugate_a=transpose_a and factor.dtype.kind == "c",
            unit_diagonal=False,
        )

    inner = take_lower(solve(solve(t, False, True), True, False))
    halves = add_p.bind(scalar_like(1, inner), eye(x.shape[-1], inner.dtype))
    return factor, matmul(factor, div_p.bind(inner, spread(halves, inner.shape[:-2])))


@cholesky_p.lower
def _(b, x):
    if 0 in x.shape:
        return b.full(0, b.out)
    lead = x.shape[:-2]
    outs = [b.out, ShapedArray(lead, np.int32)]
    factor, info = lapack(b, "potrf", (x,), outs, len(lead), aliased=(0,), uplo="L")
    return checked(b, info, [factor])[0]


@library(static=("symmetrize_input",), converted=("symmetrize_input",))
def cholesky(x: Array, *, symmetrize_input: bool = True) -> Array:
    """Factor Hermitian positive definite matrices: `x = l @ l^H` with `l` lower triangular.

    - `x`: array of shape (..., n, n)
    - `symmetrize_input`: whether to factor `(x + x^H) / 2`, so that derivatives are symmetric too;
      if False, only the lower triangle is read

    The result has shape (..., n, n) and an inexact dtype, and is NaN where a matrix is not positive
    definite. TypeError unless matrices are square.
    Source: LAPACK's `potrf`; the StableHLO operation `stablehlo.cholesky`.

    >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    if symmetrize_input:
        x = symmetrized(x)
    return take_lower(cholesky_p.bind(as_value(x)))


# -- the update of a factor ---------------------------------------------------------------------

cholesky_update_p = Primitive("cholesky_update")
set_layout(cholesky_update_p, parts=batched("cholesky_update", 2))


@cholesky_update_p.shape_rule
def _(r, w):
    check_operands("cholesky_update", (r, w), (2, 1), FLOAT)
    if r.ndim != 2:
        raise TypeError(
            f"Input 0 to cholesky_update must have a rank of exactly 2, but got shape={r.shape}: "
            "use minijax.vmap for a batch."
        )
    if r.shape != (w.shape[0], w.shape[0]):
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got shapes {r.shape} and {w.shape} instead."
        )
    return ShapedArray(r.shape, r.dtype, r.weak_type and w.weak_type)


def _rotation(x: Any, y: Any) -> tuple[Any, Any]:
    """The cosine and sine of the Givens rotation that makes `y` zero against `x`."""
    one, zero = scalar_like(1, x), scalar_like(0, x)
    nothing = eq_p.bind(y, zero)
    largest = max_p.bind(abs_p.bind(x), abs_p.bind(y))
    x, y = div_p.bind(x, largest), div_p.bind(y, largest)
    length = sqrt_p.bind(add_p.bind(mul_p.bind(x, x), mul_p.bind(y, y)))
    scale = div_p.bind(one, length)
    cosine = select_n_p.bind(nothing, mul_p.bind(x, scale), one)
    return cosine, select_n_p.bind(nothing, mul_p.bind(neg_p.bind(y), scale), zero)


def _update(r, w):
    """Row by row, a rotation of the row and the vector clears an element of the vector."""

    def step(k, carry):
        r, w = carry
        line = dynamic_index_in_dim(r, k, 0, keepdims=False)
        x = dynamic_index_in_dim(line, k, 0, keepdims=False)
        y = dynamic_index_in_dim(w, k, 0, keepdims=False)
        c, s = _rotation(x, y)
        turned = sub_p.bind(mul_p.bind(c, line), mul_p.bind(s, w))
        w = add_p.bind(mul_p.bind(s, line), mul_p.bind(c, w))
        return dynamic_update_index_in_dim(r, turned, k, 0), w

    return fori_loop(0, w.shape[0], step, (r, w))[0]


cholesky_update_p.rule_jvp = no_rule(
    "Differentiation rule for 'cholesky_update' not implemented: differentiate `cholesky` of the "
    "updated matrix."
)
cholesky_update_p.rule_transpose = no_rule("it is not linear in its operands")
cholesky_update_p.lower(lower_by(_update))


@cholesky_update_p.batch_axis
def _(axis, args, dims):
    cholesky_update_p.out_avals(unbatched_avals(args, dims), {})
    out = vmap(_update, in_axes=tuple(dims), axis_size=axis.size)(*args)
    return out, 0


@library
def cholesky_update(r_matrix: Array, w_vector: Array) -> Array:
    """Compute the upper triangular factor of `r^T @ r + w w^T` from `r` and `w`, in O(n^2).

    - `r_matrix`: real floating-point array of shape (n, n), upper triangular
    - `w_vector`: array of shape (n,) and the same dtype

    The result has the shape and dtype of `r_matrix`. ValueError for other shapes, TypeError for
    other dtypes.
    Source: Givens rotations (Golub and Van Loan, Matrix Computations, 6.5.4).

    >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    r_matrix, w_vector = as_value(r_matrix), as_value(w_vector)
    if r_matrix.shape == (0, 0) and w_vector.shape == (0,):
        return r_matrix
    return cholesky_update_p.bind(r_matrix, w_vector)


# -- symmetric products -------------------------------------------------------------------------

symmetric_product_p = Primitive("symmetric_product")
set_layout(symmetric_product_p, parts=batched("symmetric_product", 2))


@symmetric_product_p.shape_rule
def _(a, c, *, alpha, beta):
    check_operands("symmetric_product", (a, c), (2, 2), FLOAT)
    rows = a.shape[-2]
    if c.shape[-2:] != (rows, rows):
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of "
            f"shape (m, m). Got shapes {a.shape} and {c.shape}."
        )
    return ShapedArray(c.shape, c.dtype, a.weak_type and c.weak_type)


def _product(a, c, *, alpha, beta):
    product = matmul(a, mT(a))
    scaled = mul_p.bind(scalar_like(alpha, product), product)
    return add_p.bind(scaled, mul_p.bind(scalar_like(beta, c), c))


symmetric_product_p.rule_jvp = no_rule(
    "Differentiation rule for 'symmetric_product' not implemented: write it as "
    "alpha * a @ a.mT + beta * c."
)
symmetric_product_p.rule_transpose = no_rule("it is not linear in its operands")
batch_in_front(symmetric_product_p)
symmetric_product_p.lower(lower_by(_product))


@library(
    static=("alpha", "beta", "symmetrize_output"), converted=("alpha", "beta", "symmetrize_output")
)
def symmetric_product(
    a_matrix: Array,
    c_matrix: Array,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute `alpha * a @ a^T + beta * c` for a symmetric `c`.

    - `a_matrix`, `c_matrix`: real floating-point arrays of shapes (..., n, k) and (..., n, n)
    - `alpha`, `beta`: Python floats
    - `symmetrize_output`: whether to copy the lower triangle over the upper one, which is otherwise
      undefined

    The result has the shape and dtype of `c_matrix`. ValueError for other shapes, TypeError for
    other dtypes.
    Source: BLAS's `syrk`.

    >>> c = jnp.zeros((1, 1))
    >>> lax.linalg.symmetric_product(jnp.array([[1.0, 2.0]]), c, symmetrize_output=True)
    Array([[5.]], dtype=float32)
    """
    alpha, beta = float(alpha), float(beta)
    out = symmetric_product_p.bind(as_value(a_matrix), as_value(c_matrix), alpha=alpha, beta=beta)
    if symmetrize_output:
        out = add_p.bind(take_lower(out), mT(take_lower(out, -1)))
    return out
