"""`svd`: singular values and vectors."""

from __future__ import annotations

import enum
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.features.library import library
from minijax.features.queries import min_dim
from minijax.lax.arithmetic import add_p, div_p, mul_p, real_p, sub_p
from minijax.lax.compare import eq_p
from minijax.lax.convert import to_dtype
from minijax.lax.linalg.common import (
    adjoint,
    check_operands,
    checked,
    checked_subset,
    column,
    decomposition,
    diagonal_of,
    each_matrix,
    eye,
    is_complex,
    lapack,
    matmul,
    row,
    spread,
)
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import as_value
from minijax.transforms.tangents import Zero, zero_like

__all__ = ["SvdAlgorithm", "svd", "svd_p"]


class SvdAlgorithm(enum.Enum):
    """Algorithms of `svd`, for all its dtypes; on CPU the default divides and conquers.

    Source: LAPACK's `gesdd` and `gesvd`, cuSOLVER's `gesvdj`.

    >>> lax.linalg.SvdAlgorithm.QR.name
    'QR'
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


svd_p = decomposition("svd")


@svd_p.shape_rule
def _(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    check_operands("svd", (x,), (2,))
    rows, columns = x.shape[-2:]
    k = min_dim(rows, columns)
    if subset_by_index is not None and subset_by_index != (0, k):
        if full_matrices:
            raise ValueError(
                "full_matrices and subset_by_index cannot both be set: give full_matrices=False."
            )
        k = min(k, subset_by_index[1] - subset_by_index[0])
        if k < 0:
            raise ValueError(
                f"svd: subset_by_index must be a pair (start, end) with start <= end; got "
                f"{subset_by_index}."
            )
    values = each_matrix(x, k, dtype=dtypes.to_real_dtype(x.dtype))
    if not compute_uv:
        return [values]
    left, right = (rows, columns) if full_matrices else (k, k)
    return [values, each_matrix(x, rows, left), each_matrix(x, right, columns)]


@svd_p.jvp
def _(primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (x,), (t,) = primals, tangents
    rows, columns = x.shape[-2:]
    params = {"subset_by_index": subset_by_index, "algorithm": algorithm}
    if type(t) is Zero:
        params["full_matrices"] = full_matrices
        outs = svd_p.bind(x, compute_uv=compute_uv, **params)
        return outs, list(map(zero_like, outs))
    if compute_uv and full_matrices and rows != columns:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices: the vectors that "
            "complete a basis are not determined. Pass full_matrices=False."
        )
    s, u, vh = svd_p.bind(x, compute_uv=True, full_matrices=False, **params)
    if s.shape[-1] != min(rows, columns):
        raise NotImplementedError(
            "Derivatives not defined for a part of the singular values: leave subset_by_index out."
        )
    v = adjoint(vh)
    c = matmul(matmul(adjoint(u), t), v)
    t_s = diagonal_of(real_p.bind(c) if is_complex(c) else c)
    if not compute_uv:
        return [s], [t_s]
    t_u, t_v = _vector_tangents(s, u, v, c)
    if rows > columns:
        t_u = add_p.bind(t_u, _outside(u, s, matmul(t, v)))
    if rows < columns:
        t_v = add_p.bind(t_v, _outside(v, s, matmul(adjoint(t), u)))
    return [s, u, vh], [t_s, t_u, adjoint(t_v)]


def _vector_tangents(s: Any, u: Any, v: Any, c: Any) -> tuple[Any, Any]:
    """The parts of the tangents of `u` and `v` within their own spaces; `c` is u^H dx v.

    Source: Townsend, "Differentiating the singular value decomposition" (2016). Repeated singular
    values give infinities; a zero one leaves its phase as it is.
    """
    across, down = row(s), column(s)
    ones = spread(eye(s.shape[-1], s.dtype), s.shape[:-1])
    gaps = mul_p.bind(add_p.bind(across, down), sub_p.bind(across, down))
    gaps = sub_p.bind(div_p.bind(scalar_like(1, gaps), add_p.bind(gaps, ones)), ones)
    nothing = to_dtype(eq_p.bind(s, scalar_like(0, s)), s.dtype)
    inverse = div_p.bind(scalar_like(1, s), add_p.bind(s, nothing))
    inverse = mul_p.bind(ones, row(sub_p.bind(inverse, nothing)))
    gaps, across, down, inverse = (to_dtype(x, c.dtype) for x in (gaps, across, down, inverse))
    right, left = mul_p.bind(across, c), mul_p.bind(down, c)
    skew = mul_p.bind(scalar_like(0.5, c), sub_p.bind(c, adjoint(c)))
    turn_u = mul_p.bind(gaps, add_p.bind(right, adjoint(right)))
    turn_u = add_p.bind(turn_u, mul_p.bind(skew, inverse))
    turn_v = mul_p.bind(gaps, add_p.bind(left, adjoint(left)))
    return matmul(u, turn_u), matmul(v, turn_v)


def _outside(u: Any, s: Any, moved: Any) -> Any:
    """The part of the tangent of `u` outside of the space of its columns."""
    rest = sub_p.bind(moved, matmul(u, matmul(adjoint(u), moved)))
    return div_p.bind(rest, to_dtype(row(s), rest.dtype))


@svd_p.lower
def _(b, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    rows, columns = x.shape[-2:]
    k = min_dim(rows, columns)
    if 0 in x.shape:
        return [b.full(0, b.outs[0]), *[_identity(b, out) for out in b.outs[1:]]]
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError(
            "The SVD Jacobi and Polar algorithms are not implemented on CPU: leave `algorithm` out."
        )
    if subset_by_index is not None and subset_by_index != (0, k):
        raise NotImplementedError(
            "subset_by_index not implemented for CPU and GPU: take a slice of the results."
        )
    lead = x.shape[:-2]
    left, right = (rows, columns) if full_matrices else (k, k)
    aval = x.aval
    outs = [aval, b.outs[0], each_matrix(aval, rows, left), each_matrix(aval, right, columns)]
    outs.append(ShapedArray(lead, np.int32))
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    _, *found, info = lapack(b, routine, (x,), outs, len(lead), aliased=(0,), mode=mode)
    return checked(b, info, found[: len(b.outs)])


def _identity(b, out: ShapedArray):
    """Return identities: the vectors of matrices without elements."""
    square = each_matrix(out, *out.shape[-2:]).update(shape=out.shape[-2:])
    return b.broadcast(b.constant(np.eye(*square.shape, dtype=out.dtype), square), out.shape)


@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array: ...
@overload
def svd(
    x: Array,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]: ...
@library(
    static=("full_matrices", "compute_uv", "subset_by_index", "algorithm"),
    converted=("full_matrices", "compute_uv"),
)
def svd(
    x: Array,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Compute singular values and vectors: `x = (u * s) @ vh`.

    - `x`: floating-point or complex array of shape (..., m, n)
    - `full_matrices`: whether `u` and `vh` have shapes (..., m, m) and (..., n, n); otherwise (...,
      m, k) and (..., k, n) with k = min(m, n)
    - `compute_uv`: if False, only `s` is returned
    - `subset_by_index`: range of singular values, on TPU only; `algorithm`: a `SvdAlgorithm`

    The result is `u`, the falling `s` of shape (..., k), and `vh`; NaN where LAPACK fails.
    TypeError for other dtypes or fewer than two dimensions. Source: LAPACK's `gesdd` and `gesvd`.

    >>> lax.linalg.svd(jnp.diag(jnp.array([2.0, 3.0])), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    outs = svd_p.bind(
        as_value(x),
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=checked_subset("svd", subset_by_index),
        algorithm=algorithm,
    )
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh
