"""`tridiagonal_solve`: systems whose matrix has three diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.features.library import library
from minijax.lax.arithmetic import div_p, mul_p, neg_p, sub_p
from minijax.lax.control_flow.scan import scan
from minijax.lax.joining import concatenate_p
from minijax.lax.linalg.common import batch_in_front, check_operands, checked, column, lapack
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import as_value, reshaped
from minijax.lax.slicing import pad_p, slice_p
from minijax.transforms.primitives import add_tangents, to_shape, transpose_p
from minijax.transforms.tangents import Zero, is_undefined, zero_like, zero_tangent

__all__ = ["solve_by_elimination", "tridiagonal_solve", "tridiagonal_solve_p"]

tridiagonal_solve_p = Primitive("tridiagonal_solve")


@tridiagonal_solve_p.shape_rule
def _(dl, d, du, b, *, perturb_singular):
    avals = dl, d, du, b
    check_operands("tridiagonal_solve", avals, (1, 1, 1, 2))
    if not dl.shape == d.shape == du.shape:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same shape. Got "
            f"{dl.shape}, {d.shape} and {du.shape}: dl[0] and du[-1] are there, and not read."
        )
    if b.shape[:-1] != d.shape:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the "
            f"dimensions of the diagonal arguments. Got {b.shape} and {d.shape}."
        )
    return ShapedArray(b.shape, b.dtype, all(x.weak_type for x in avals))


def _shift(x: Any, by: int) -> Any:
    """Rows (or elements of the last axis, of vectors) moved down by one, or up; zero comes in."""
    config = [(0, 0, 0)] * x.ndim
    config[-2] = (by, -by, 0)
    return pad_p.bind(x, scalar_like(0, x), padding_config=tuple(config))


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """The matrix with these diagonals times `x`; a diagonal that is Zero counts for nothing."""
    total = zero_like(x)
    for diagonal, by in ((d, 0), (dl, 1), (du, -1)):
        if type(diagonal) is not Zero:
            moved = _shift(x, by) if by else x
            total = add_tangents(total, mul_p.bind(column(diagonal), moved))
    return total


@tridiagonal_solve_p.jvp
def _(primals, tangents, **params):
    *diagonals, b = primals
    *t_diagonals, t_b = tangents
    x = tridiagonal_solve_p.bind(*diagonals, b, **params)
    change = _product(*t_diagonals, x)
    if type(change) is not Zero:
        change = neg_p.bind(change)
    right = add_tangents(t_b, change)
    if type(right) is Zero:
        return x, zero_like(x)
    return x, tridiagonal_solve_p.bind(*diagonals, right, **params)


@tridiagonal_solve_p.transpose
def _(ct, dl, d, du, b, **params):
    assert is_undefined(b), "tridiagonal_solve is linear in `b` only"
    if type(ct) is Zero:
        return [None, None, None, zero_tangent(b.aval)]
    lower, upper = _moved(du, 1), _moved(dl, -1)
    return [None, None, None, tridiagonal_solve_p.bind(lower, d, upper, ct, **params)]


def _moved(x: Any, by: int) -> Any:
    config = (*((0, 0, 0),) * (x.ndim - 1), (by, -by, 0))
    return pad_p.bind(x, scalar_like(0, x), padding_config=config)


batch_in_front(tridiagonal_solve_p)


@tridiagonal_solve_p.lower
def _(b, dl, d, du, y, *, perturb_singular):
    if 0 in y.shape:
        return b.full(0, b.out)
    lead = y.shape[:-2]
    operands = (dl, d, du, y)
    if perturb_singular:
        return lapack(b, "tridiagonal_solve_perturbed_ffi", operands, [b.out], len(lead))[0]
    outs = [*[x.aval for x in operands[:3]], b.out, ShapedArray(lead, np.int32)]
    *_, x, info = lapack(b, "gtsv", operands, outs, len(lead), aliased=(0, 1, 2, 3))
    return checked(b, info, [x])[0]


_UNROLLED = 32  # rows of an elimination that are one step of the loop


def solve_by_elimination(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution by Thomas's algorithm: down the rows, then up; without pivots."""
    ndim = d.ndim
    rows_first = (ndim - 1, *range(ndim - 1))
    lower, main, upper = (transpose_p.bind(x, permutation=rows_first) for x in (dl, d, du))
    right = transpose_p.bind(b, permutation=(*rows_first, ndim))

    def down(carry, x):
        ratio, y = carry
        lower, main, upper, right = x
        pivot = sub_p.bind(main, mul_p.bind(lower, ratio))
        y = sub_p.bind(right, _times(lower, y))
        y = div_p.bind(y, _like(pivot, y))
        ratio = div_p.bind(upper, pivot)
        return [ratio, y], [ratio, y]

    def up(x, row):
        ratio, y = row
        x = sub_p.bind(y, _times(ratio, x))
        return x, x

    # Nothing is above the first row, and nothing below the last.
    rows = main.shape[0]
    pivot, above = _rows(main, 0, 1), _rows(right, 0, 1)
    first = div_p.bind(_rows(upper, 0, 1), pivot), div_p.bind(above, _like(pivot, above))
    rest = [_rows(x, 1, rows) for x in (lower, main, upper, right)]
    (_, last), found = scan(down, [reshaped(x, x.shape[1:]) for x in first], rest, unroll=_UNROLLED)
    ratios, ys = (_rows(_joined(x, y), 0, rows - 1) for x, y in zip(first, found, strict=True))
    _, x = scan(up, last, (ratios, ys), reverse=True, unroll=_UNROLLED)
    x = _joined(x, reshaped(last, (1, *last.shape)))
    return transpose_p.bind(x, permutation=(*range(1, ndim), 0, ndim))


def _rows(x: Any, start: int, stop: int) -> Any:
    zeros = (0,) * (x.ndim - 1)
    return slice_p.bind(
        x, start_indices=(start, *zeros), limit_indices=(stop, *x.shape[1:]), strides=None
    )


def _joined(x: Any, y: Any) -> Any:
    return concatenate_p.bind(x, y, dimension=0)


def _like(x: Any, y: Any) -> Any:
    """A number for each row of `y`, repeated along its last axis."""
    dims = tuple(range(x.ndim))
    return to_shape(x, y.shape, dims)


def _times(x: Any, y: Any) -> Any:
    return mul_p.bind(_like(x, y), y)


@library(static=("perturb_singular",), converted=("perturb_singular",))
def tridiagonal_solve(
    dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool = False
) -> Array:
    """Solve `a @ x = b` for tridiagonal matrices.

    - `dl`, `d`, `du`: floating-point or complex arrays of shape (..., m): the lower, main and upper
      diagonals; `dl[..., 0]` and `du[..., -1]` are not read
    - `b`: array of shape (..., m, k) and the same dtype
    - `perturb_singular`: whether to replace pivots that are nearly zero; otherwise they give NaN

    The result has the shape and dtype of `b`. TypeError for other shapes and dtypes.
    Source: LAPACK's `gtsv`.

    >>> d, b = jnp.array([2.0, 4.0]), jnp.array([[2.0], [4.0]])
    >>> lax.linalg.tridiagonal_solve(0 * d, d, 0 * d, b)
    Array([[1.],
           [1.]], dtype=float32)
    """
    operands = (as_value(dl), as_value(d), as_value(du), as_value(b))
    return tridiagonal_solve_p.bind(*operands, perturb_singular=bool(perturb_singular))
