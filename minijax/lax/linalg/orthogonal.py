"""`qr`, and products with the Householder reflectors that LAPACK keeps it as."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.features.library import library
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import batched
from minijax.lax.arithmetic import add_p, mul_p, real_p, sub_p
from minijax.lax.creation import full, iota
from minijax.lax.joining import concatenate_p
from minijax.lax.linalg.common import (
    INT32,
    adjoint,
    as_complex,
    batch_in_front,
    check_operands,
    decomposition,
    eye,
    is_complex,
    lapack,
    matmul,
    mT,
    part,
    spread,
    take_lower,
    take_upper,
    widen,
)
from minijax.lax.linalg.elimination import lu_p, solve_with_lu, take_rows
from minijax.lax.linalg.triangular import triangular_solve_p
from minijax.lax.shapes import as_value
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, zero_like

__all__ = [
    "geqp3_p", "geqrf_p", "householder_product", "householder_product_p", "ormqr", "ormqr_p", "qr",
    "qr_p",
]  # fmt: skip

_REFLECTORS = "Differentiation rule for {!r} not implemented: differentiate `qr` itself."


def _no_derivatives(p: Primitive) -> None:
    p.rule_jvp = no_rule(_REFLECTORS.format(p.name))
    p.rule_transpose = no_rule("it is not linear in all of its operands")


# -- the reflectors of a factorization -------------------------------------------------------------

geqrf_p = Primitive("geqrf", multiple_results=True)
set_layout(geqrf_p, parts=batched("geqrf", 2))
geqp3_p = Primitive("geqp3", multiple_results=True)
set_layout(geqp3_p, parts=batched("geqp3", 2))


def _taus(x: ShapedArray) -> ShapedArray:
    return x.update(shape=(*x.shape[:-2], min(x.shape[-2:])))


@geqrf_p.shape_rule
def _(a):
    check_operands("geqrf", (a,), (2,))
    return [a, _taus(a)]


@geqrf_p.lower
def _(b, a):
    if 0 in a.shape:
        return [b.full(0, out) for out in b.outs]
    return lapack(b, "geqrf", (a,), b.outs, len(a.shape) - 2, aliased=(0,))


@geqp3_p.shape_rule
def _(a, pivots, *, use_magma):
    lead = check_operands("geqp3", (a,), (2,))
    if pivots.shape != (*lead, a.shape[-1]):
        raise ValueError(
            f"geqp3 takes a pivot for each column: got shapes {a.shape} and {pivots.shape}."
        )
    return [a, pivots.update(dtype=INT32), _taus(a)]


@geqp3_p.lower
def _(b, a, pivots, *, use_magma):
    if 0 in a.shape:
        _, places, _ = b.outs
        first = b.op("stablehlo.iota", (), places, f"iota_dimension = {places.ndim - 1} : i64")
        counted = b.op("stablehlo.add", (first, b.full(1, places)), places)
        return [b.full(0, b.outs[0]), counted, b.full(0, b.outs[2])]
    return lapack(b, "geqp3", (a, pivots), b.outs, len(a.shape) - 2, aliased=(0, 1))


for _p in (geqrf_p, geqp3_p):
    _no_derivatives(_p)
    batch_in_front(_p)

# -- products of reflectors -------------------------------------------------------------------------

householder_product_p = Primitive("householder_product")
set_layout(householder_product_p, parts=batched("householder_product", 2))


@householder_product_p.shape_rule
def _(a, taus):
    check_operands("householder_product", (a, taus), (2, 1))
    rows, columns = a.shape[-2:]
    if rows < columns:
        raise ValueError(
            "The first argument to householder_product must have at least as many rows as columns, "
            f"got shape {a.shape}."
        )
    if taus.shape[-1] > columns:
        raise ValueError(
            "The second argument to householder_product must not have more rows than the minimum "
            f"of the first argument's rows and columns. Got shapes {a.shape} and {taus.shape}."
        )
    return ShapedArray(a.shape, a.dtype, a.weak_type and taus.weak_type)


_no_derivatives(householder_product_p)
batch_in_front(householder_product_p)


@householder_product_p.lower
def _(b, a, taus):
    if 0 in a.shape:
        return b.full(0, b.out)
    names = ("orgqr", "ungqr")
    return lapack(b, names, (a, taus), [b.out], len(a.shape) - 2, aliased=(0,))[0]


@library
def householder_product(a: Array, taus: Array) -> Array:
    """Multiply reflectors `I - taus[i] v v^H`, whose `v` are the columns of `a` below the diagonal.

    - `a`: floating-point or complex array of shape (..., m, n) with m >= n
    - `taus`: array of shape (..., k) with k <= n

    The result has the shape and dtype of `a`. ValueError for other shapes, TypeError for other
    dtypes.
    Source: LAPACK's `orgqr` and `ungqr`.

    >>> lax.linalg.householder_product(jnp.ones((3, 2)), jnp.zeros(2)).shape
    (3, 2)
    """
    return householder_product_p.bind(as_value(a), as_value(taus))


ormqr_p = Primitive("ormqr")
set_layout(ormqr_p, parts=batched("ormqr", 2))


@ormqr_p.shape_rule
def _(a, taus, c, *, left, transpose):
    check_operands("ormqr", (a, taus, c), (2, 1, 2))
    along = c.shape[-2 if left else -1]
    if along != a.shape[-2]:
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of "
            f"{'rows' if left else 'columns'} as the Householder matrix a has rows. Got a shape "
            f"{a.shape} and c shape {c.shape}."
        )
    weak = a.weak_type and taus.weak_type and c.weak_type
    return ShapedArray(c.shape, c.dtype, weak)


_no_derivatives(ormqr_p)
batch_in_front(ormqr_p)


@ormqr_p.lower
def _(b, a, taus, c, *, left, transpose):
    if 0 in c.shape:
        return b.full(0, b.out)
    if 0 in taus.shape:
        return c
    return lapack(
        b,
        ("ormqr", "unmqr"),
        (a, taus, c),
        [b.out],
        len(a.shape) - 2,
        aliased=(2,),
        left=left,
        transpose=transpose,
    )[0]


@library(static=("left", "transpose"), converted=("left", "transpose"))
def ormqr(a: Array, taus: Array, c: Array, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply by a product of reflectors: `q @ c`, or `c @ q` if not `left`.

    - `a`, `taus`: reflectors as for `householder_product`, of shapes (..., m, n) and (..., k)
    - `c`: array of shape (..., m, p), or (..., p, m) if not `left`
    - `transpose`: whether to multiply by the adjoint of `q`

    The result has the shape and dtype of `c`. ValueError for other shapes, TypeError for other
    dtypes.
    Source: LAPACK's `ormqr` and `unmqr`.

    >>> lax.linalg.ormqr(jnp.eye(2), jnp.zeros(2), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    operands = (as_value(a), as_value(taus), as_value(c))
    return ormqr_p.bind(*operands, left=bool(left), transpose=bool(transpose))


# -- qr -----------------------------------------------------------------------------------------

qr_p = decomposition("qr")


@qr_p.shape_rule
def _(x, *, pivoting, full_matrices, use_magma):
    lead = check_operands("qr", (x,), (2,))
    rows, columns = x.shape[-2:]
    k = rows if full_matrices else min(rows, columns)
    outs = [x.update(shape=(*lead, rows, k)), x.update(shape=(*lead, k, columns))]
    if pivoting:
        outs.append(x.update(shape=(*lead, columns), dtype=INT32))
    return outs


@qr_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    outs = qr_p.bind(x, **params)
    if type(t) is Zero:
        return outs, list(map(zero_like, outs))
    q, r = outs[:2]
    if params["pivoting"]:
        t = mT(take_rows(mT(t), outs[2]))
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    thin = part(q, (0, rows), (0, k))
    square = part(r, (0, k), (0, k))
    t_q, t_r = _thin_tangents(thin, square, part(t, (0, rows), (0, k)))
    if columns > k:  # the rest of r is q^H times the rest of x
        rest, t_rest = part(x, (0, rows), (k, columns)), part(t, (0, rows), (k, columns))
        if params["pivoting"]:
            rest = part(mT(take_rows(mT(x), outs[2])), (0, rows), (k, columns))
        moved = add_p.bind(matmul(adjoint(t_q), rest), matmul(adjoint(thin), t_rest))
        t_r = concatenate_p.bind(t_r, moved, dimension=t_r.ndim - 1)
    if q.shape[-1] > k:
        t_q, t_r = _full_tangents(q, t_q, t_r, k)
    return outs, [t_q, t_r, *map(zero_like, outs[2:])]


def _thin_tangents(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    """The tangents of `q` (of orthonormal columns) and `r` (square) in `x = q r`.

    With w = q^H t r^-1 = q^H dq + dr r^-1, where the first is skew and the second upper triangular:
    the strictly lower triangle of w gives the skew part, whose diagonal is that of w less its real
    part. Source: Walter and Lehmann, arXiv:1009.6112.
    """
    tr = triangular_solve_p.bind(
        r,
        t,
        left_side=False,
        lower=False,
        transpose_a=False,
        conjugate_a=False,
        unit_diagonal=False,
    )
    w = matmul(adjoint(q), tr)
    below = take_lower(w, -1)
    skew = sub_p.bind(below, adjoint(below))
    if is_complex(w):
        turns = sub_p.bind(w, as_complex(real_p.bind(w)))
        skew = add_p.bind(skew, mul_p.bind(spread(eye(w.shape[-1], w.dtype), w.shape[:-2]), turns))
    t_q = add_p.bind(matmul(q, sub_p.bind(skew, w)), tr)
    return t_q, matmul(sub_p.bind(w, skew), r)


def _full_tangents(q: Any, t_q: Any, t_r: Any, k: int) -> tuple[Any, Any]:
    """The tangents of the columns that complete `q` to a square matrix.

    Reflectors give q = I - y t y^H. Of its first k columns q1, with top and bottom, this makes the
    others q2 = e2 + (q1 - e1) w^H, where w = bottom (top - I)^-1; its tangent is
    dq1 w^H - (q1 + q2 w) (d bottom - w d top)^H.
    """
    rows = q.shape[-2]
    first, second = part(q, (0, rows), (0, k)), part(q, (0, rows), (k, rows))
    top, bottom = part(first, (0, k), (0, k)), part(first, (k, rows), (0, k))
    shifted = sub_p.bind(top, spread(eye(k, q.dtype), q.shape[:-2]))
    factors, _, permutation = lu_p.bind(shifted)
    w_adjoint = solve_with_lu(factors, permutation, adjoint(bottom), 2)
    w = adjoint(w_adjoint)
    t_top, t_bottom = part(t_q, (0, k), (0, k)), part(t_q, (k, rows), (0, k))
    change = adjoint(sub_p.bind(t_bottom, matmul(w, t_top)))
    towards = add_p.bind(first, matmul(second, w))
    t_second = sub_p.bind(matmul(t_q, w_adjoint), matmul(towards, change))
    t_q = concatenate_p.bind(t_q, t_second, dimension=t_q.ndim - 1)
    return t_q, widen(t_r, rows, t_r.shape[-1])


def _factor(x, *, pivoting, full_matrices, use_magma):
    rows, columns = x.shape[-2:]
    if 0 in x.shape:
        return _factor_nothing(x, pivoting, rows if full_matrices else min(rows, columns))
    if pivoting:
        zeros = full((*x.shape[:-2], columns), np.int32(0))
        r, places, taus = geqp3_p.bind(x, zeros, use_magma=use_magma)
        places = [sub_p.bind(places, np.int32(1))]  # Fortran counts from 1
    else:
        (r, taus), places = geqrf_p.bind(x), []
    if rows < columns:
        q = householder_product_p.bind(part(r, (0, rows), (0, rows)), taus)
    elif full_matrices:
        q = householder_product_p.bind(widen(r, rows, rows), taus)
    else:
        q = householder_product_p.bind(r, taus)
        r = part(r, (0, columns), (0, columns))
    return [q, take_upper(r), *places]


def _factor_nothing(x: Any, pivoting: bool, k: int) -> list[Any]:
    *lead, rows, columns = x.shape
    q = spread(eye(rows, x.dtype, k), lead)
    places = [spread(iota(INT32, columns), lead)] if pivoting else []
    return [q, full((*lead, k, columns), np.zeros((), x.dtype)[()]), *places]


qr_p.lower(lower_by(_factor))


@overload
def qr(
    x: Array,
    *,
    pivoting: Literal[False] = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array]: ...
@overload
def qr(
    x: Array, *, pivoting: Literal[True], full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    x: Array, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
@library(static=("pivoting", "full_matrices", "use_magma"), converted=("pivoting", "full_matrices"))
def qr(
    x: Array, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """Factor matrices: `x = q @ r` with orthonormal columns of `q` and upper triangular `r`.

    - `x`: floating-point or complex array of shape (..., m, n)
    - `full_matrices`: whether `q` and `r` have shapes (..., m, m) and (..., m, n); otherwise (...,
      m, k) and (..., k, n) with k = min(m, n)
    - `pivoting`: whether to return the int32 order of columns too, with `x[..., order] = q @ r`, so
      that the diagonal of `r` falls in size; `use_magma`: whether to use MAGMA on GPU

    TypeError for other dtypes or fewer than two dimensions. Source: LAPACK's `geqrf`, `geqp3` and
    `orgqr`.

    >>> [x.shape for x in lax.linalg.qr(jnp.ones((3, 2)), full_matrices=False)]
    [(3, 2), (2, 2)]
    """
    return tuple(
        qr_p.bind(
            as_value(x),
            pivoting=bool(pivoting),
            full_matrices=bool(full_matrices),
            use_magma=use_magma,
        )
    )
