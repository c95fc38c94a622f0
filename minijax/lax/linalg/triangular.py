"""`triangular_solve`: systems of equations whose matrix is triangular."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.features.library import library
from minijax.features.sharding.layouts import layout
from minijax.features.sharding.sharding_rules import ambiguous, leading_parts, parts_of
from minijax.lax.arithmetic import conj_p, neg_p
from minijax.lax.linalg.common import (
    adjoint,
    check_operands,
    check_square,
    column,
    is_complex,
    lapack,
    matmul,
    mT,
    row,
    take_lower,
    take_upper,
)
from minijax.lax.shapes import as_value, reshaped, squeeze_p
from minijax.runtime.mesh import PartitionSpec
from minijax.transforms.batching import to_front
from minijax.transforms.primitives import add_tangents, moveaxis
from minijax.transforms.tangents import Zero, is_undefined, zero_like, zero_tangent

__all__ = ["triangular_solve", "triangular_solve_p"]

triangular_solve_p = Primitive("triangular_solve")


@layout(triangular_solve_p, "parts")
def _(avals, out, *, left_side, transpose_a, **params):
    """The solution is split as the rows of one operand and the columns of the other."""
    parts = leading_parts("triangular_solve", avals, 2)
    # Along which of its last two dimensions each operand is contracted, which must be whole.
    contracted = (left_side != transpose_a, not left_side)
    kept = []
    for name, aval, dim in zip("ab", avals, contracted, strict=True):
        matrix = parts_of(aval)[-2:]
        if matrix[dim]:
            raise ambiguous(
                "triangular_solve",
                f"triangular solve input `{name}` must be unsharded on the contracting axis, but got "
                f"{PartitionSpec(*parts_of(aval))} with {left_side=} and {transpose_a=}",
                avals,
            )
        kept.append(matrix[not dim])
    return [*parts, *(kept if left_side else reversed(kept))]


@triangular_solve_p.shape_rule
def _(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    check_operands("triangular_solve", (a, b), (2, 2))
    check_square("triangular_solve", a, "The first input")
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}. With "
            f"left_side={left_side}, the matrices of the second must have {a.shape[-1]} "
            f"{'rows' if left_side else 'columns'}."
        )
    return ShapedArray(b.shape, b.dtype, a.weak_type and b.weak_type)


def _operator(a: Any, transpose_a: bool, conjugate_a: bool) -> Any:
    """The matrix that the system is solved with."""
    if transpose_a:
        return adjoint(a) if conjugate_a else mT(a)
    return conj_p.bind(a, input_dtype=a.dtype) if conjugate_a and is_complex(a) else a


def _from_matrix(ta, x, a, params):
    """The tangent of `x = op(a)^-1 b` that comes from that of `a`: -op(a)^-1 op(ta) x."""
    offset = (-1 if params["lower"] else 1) if params["unit_diagonal"] else 0
    ta = (take_lower if params["lower"] else take_upper)(ta, offset)
    ta = _operator(neg_p.bind(ta), params["transpose_a"], params["conjugate_a"])
    left = params["left_side"]

    def solve(y):
        return triangular_solve_p.bind(a, y, **params)

    size, count = a.shape[-1], x.shape[-1 if left else -2]
    if count >= size:  # solve for the smaller matrix
        return matmul(solve(ta), x) if left else matmul(x, solve(ta))
    return solve(matmul(ta, x) if left else matmul(x, ta))


@triangular_solve_p.jvp
def _(primals, tangents, **params):
    (a, b), (ta, tb) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    total = zero_like(x)
    if type(ta) is not Zero:
        total = _from_matrix(ta, x, a, params)
    if type(tb) is not Zero:
        total = add_tangents(total, triangular_solve_p.bind(a, tb, **params))
    return x, total


@triangular_solve_p.transpose
def _(ct, a, b, *, transpose_a, **params):
    assert is_undefined(b) and not is_undefined(a), "triangular_solve is linear in `b` only"
    if type(ct) is Zero:
        return [None, zero_tangent(b.aval)]
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


@triangular_solve_p.batch
def _(args, dims, *, left_side, **params):
    (a, b), (da, db) = args, dims
    if da is None:
        # One matrix, many right sides: they stand side by side in one system.
        place = b.ndim - (2 if left_side else 3)
        b = moveaxis(b, db, place)
        lead, (x, y, z) = b.shape[:-3], b.shape[-3:]
        shape = (*lead, x, y * z) if left_side else (*lead, x * y, z)
        out = triangular_solve_p.bind(a, reshaped(b, shape), left_side=left_side, **params)
        return reshaped(out, b.shape), place
    size = a.shape[da]
    a, b = to_front(a, da, size), to_front(b, db, size)
    return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0


_LAPACK = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


@triangular_solve_p.lower
def _(b, a, y, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if b.platform != "cpu" or a.dtype not in _LAPACK:
        kind = "NO_TRANSPOSE"
        if transpose_a:
            kind = "ADJOINT" if conjugate_a else "TRANSPOSE"
        elif conjugate_a:
            a = _conjugate(b, a)
        words = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
        attributes = [f"{name} = {str(bool(value)).lower()}" for name, value in words.items()]
        attributes.append(f"transpose_a = #stablehlo<transpose {kind}>")
        return b.op("stablehlo.triangular_solve", (a, y), b.out, ", ".join(attributes))
    if 0 in y.shape:
        return b.full(0, b.out)
    if conjugate_a and not transpose_a:
        a = _conjugate(b, a)
    return lapack(
        b,
        "trsm",
        (a, y),
        [b.out],
        len(y.shape) - 2,
        aliased=(1,),
        diag="U" if unit_diagonal else "N",
        side="L" if left_side else "R",
        trans_x=("C" if conjugate_a else "T") if transpose_a else "N",
        uplo="L" if lower else "U",
    )[0]


def _conjugate(b, x):
    if x.dtype.kind != "c":
        return x
    return b.op("chlo.conj", (x,), x.aval)


@library(
    static=("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"),
    converted=("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"),
)
def triangular_solve(
    a: Array,
    b: Array,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve `op(a) @ x = b`, or `x @ op(a) = b` if not `left_side`, for triangular matrices.

    - `a`: floating-point or complex array of shape (..., n, n); the triangle that `lower` does not
      name is not read, nor the diagonal if `unit_diagonal`
    - `b`: array of shape (..., n, m) or (..., m, n), or of one dimension less than `a`
    - `transpose_a`, `conjugate_a`: what `op` does

    The result has the shape and dtype of `b`. ValueError for other shapes, TypeError for other
    dtypes.
    Source: BLAS's `trsm`; the StableHLO operation `stablehlo.triangular_solve`.

    >>> a, b = jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 3.0])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([2., 1.], dtype=float32)
    """
    conjugate_a = conjugate_a and is_complex(a)
    vector = np.ndim(b) == np.ndim(a) - 1
    if vector:
        b = column(as_value(b)) if left_side else row(as_value(b))
    x = triangular_solve_p.bind(
        a,
        b,
        left_side=left_side,
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a,
        unit_diagonal=bool(unit_diagonal),
    )
    if vector:
        x = squeeze_p.bind(x, dimensions=(x.ndim - (1 if left_side else 2),))
    return x
