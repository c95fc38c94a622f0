"""`tridiagonal_solve`: systems whose matrix has three diagonals.

May import the floors below, the files of `lax` on elements and shapes, and `linalg.common`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.lax.arithmetic import mul_p, neg_p
from minijax.lax.linalg.common import (
    batch_in_front,
    check_operands,
    column,
    failed_is_nan,
    lapack,
    succeeded,
)
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import as_value
from minijax.lax.slicing import pad_p
from minijax.transforms.library import library
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Zero, is_undefined, zero_like, zero_tangent

__all__ = ["tridiagonal_solve", "tridiagonal_solve_p"]

tridiagonal_solve_p = Primitive("tridiagonal_solve")


@tridiagonal_solve_p.shape_rule
def _(dl, d, du, b, *, perturb_singular):
    avals = dl, d, du, b
    check_operands("tridiagonal_solve", avals, (1, 1, 1, 2))
    if not dl.shape == d.shape == du.shape:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same shape; got "
            f"{dl.shape}, {d.shape} and {du.shape}: dl[0] and du[-1] are there, and not read."
        )
    if b.shape[:-1] != d.shape:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the "
            f"dimensions of the diagonal arguments; got {b.shape} and {d.shape}."
        )
    vma = dl.vma | d.vma | du.vma | b.vma
    return ShapedArray(b.shape, b.dtype, all(x.weak_type for x in avals), vma=vma)


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
    return failed_is_nan(b, succeeded(b, info), x)


@library(static=("perturb_singular",))
def tridiagonal_solve(
    dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool = False
) -> Array:
    """The solution of `a @ x = b`, where `a` is zero but for three diagonals.

    - `dl`: below the main diagonal, `[..., m]`; `dl[..., 0]` is not read
    - `d`: the main diagonal, `[..., m]`
    - `du`: above it, `[..., m]`; `du[..., -1]` is not read
    - `b`: `[..., m, k]`
    - `perturb_singular`: replace pivots that are nearly zero, for inverse iteration; else a singular
      matrix gives NaN

    LAPACK: `gtsv`.
    """
    operands = (as_value(dl), as_value(d), as_value(du), as_value(b))
    return tridiagonal_solve_p.bind(*operands, perturb_singular=bool(perturb_singular))
