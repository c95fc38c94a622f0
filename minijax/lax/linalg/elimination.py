"""`lu`, the factorization by Gaussian elimination, and solving with it."""

from __future__ import annotations

from math import prod
from typing import Any

from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.features.library import library
from minijax.lax.arithmetic import add_p
from minijax.lax.control_flow.loops import fori_loop
from minijax.lax.control_flow.solves import custom_linear_solve
from minijax.lax.convert import stop_gradient
from minijax.lax.creation import iota
from minijax.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from minijax.lax.index_numbers import GatherDimensionNumbers, GatherScatterMode
from minijax.lax.indexing import gather_p
from minijax.lax.linalg.common import (
    INT32,
    batch_in_front,
    check_operands,
    checked,
    decomposition,
    eye,
    lapack,
    matmul,
    part,
    spread,
    take_lower,
    take_upper,
    widen,
)
from minijax.lax.linalg.triangular import triangular_solve_p
from minijax.lax.rules import zero_derivative
from minijax.lax.shapes import as_value, reshaped
from minijax.lax.sorting import sort_p
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, zero_like
from minijax.transforms.vmap import vmap

__all__ = [
    "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "solve_general",
    "solve_with_lu", "take_rows",
]  # fmt: skip

# -- the rows of matrices ---------------------------------------------------------------------


def take_rows(x: Any, places: Any) -> Any:
    """The rows of each matrix, at places that exist: `x[..., places, :]`."""
    ndim = x.ndim
    if not x.shape[-2]:  # nothing to take a row of
        return x
    lead = tuple(range(ndim - 2))
    return gather_p.bind(
        x,
        reshaped(places, (*places.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((ndim - 1,), (ndim - 2,), (ndim - 2,), lead, lead),
        slice_sizes=(*(min(1, size) for size in x.shape[:-2]), 1, x.shape[-1]),
        indices_are_sorted=False,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _inverse_permutation(places: Any) -> Any:
    """Return where each number of a permutation stands."""
    counted = spread(iota(INT32, places.shape[-1]), places.shape[:-1])
    return sort_p.bind(places, counted, dimension=places.ndim - 1, is_stable=True, num_keys=1)[1]


# -- pivots -----------------------------------------------------------------------------------

lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")


@lu_pivots_to_permutation_p.shape_rule
def _(pivots, *, permutation_size):
    name = "lu_pivots_to_permutation"
    if pivots.dtype != INT32:
        raise TypeError(
            f"{name} does not accept dtype {pivots.dtype.name} at position 0. Accepted dtypes at "
            "position 0 are int32: convert them with .astype('int32')."
        )
    if pivots.ndim < 1:
        raise TypeError(
            f"Input 0 to {name} must have rank at least 1, but got shape={pivots.shape}."
        )
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of "
            f"the pivots. Got pivots size {pivots.shape[-1]}."
        )
    return pivots.update(shape=(*pivots.shape[:-1], permutation_size))


def _permutation(pivots, *, permutation_size):
    """Swap each element with that at its pivot, in turn."""

    def one(swaps):
        def step(i, order):
            j = dynamic_index_in_dim(swaps, i, 0, keepdims=False)
            x = dynamic_index_in_dim(order, i, 0, keepdims=False)
            y = dynamic_index_in_dim(order, j, 0, keepdims=False)
            order = dynamic_update_index_in_dim(order, y, i, 0)
            return dynamic_update_index_in_dim(order, x, j, 0)

        return fori_loop(0, swaps.shape[0], step, iota(INT32, permutation_size))

    lead, count = pivots.shape[:-1], pivots.shape[-1]
    if not lead:
        return one(pivots)
    rows = prod(lead)
    out = vmap(one, axis_size=rows)(reshaped(pivots, (rows, count)))
    return reshaped(out, (*lead, permutation_size))


zero_derivative(lu_pivots_to_permutation_p)


_lower_permutation = lower_by(_permutation)
lu_pivots_to_permutation_p.rule_transpose = no_rule("a permutation of integers has no derivative")
batch_in_front(lu_pivots_to_permutation_p)


@lu_pivots_to_permutation_p.lower
def _(b, pivots, *, permutation_size):
    if 0 in pivots.shape:  # nothing is swapped
        counted = b.out.ndim - 1
        return b.op("stablehlo.iota", (), b.out, f"iota_dimension = {counted} : i64")
    return _lower_permutation(b, pivots, permutation_size=permutation_size)


@library(static=("permutation_size",), converted=("permutation_size",))
def lu_pivots_to_permutation(pivots: Array, permutation_size: int) -> Array:
    """Convert a sequence of row swaps to a permutation.

    - `pivots`: int32 array of shape (..., k): `pivots[..., i]` is the row that row `i` is swapped
      with
    - `permutation_size`: number of rows

    The result has shape (..., permutation_size) and dtype int32. ValueError if there are more
    pivots than rows, TypeError for other dtypes.
    Source: LAPACK's `laswp`.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1]), 2)
    Array([1, 0], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(as_value(pivots), permutation_size=permutation_size)


# -- lu -----------------------------------------------------------------------------------------

lu_p = decomposition("lu")


@lu_p.shape_rule
def _(x):
    lead = check_operands("lu", (x,), (2,))
    rows, columns = x.shape[-2:]
    return [
        x,
        x.update(shape=(*lead, min(rows, columns)), dtype=INT32),
        x.update(shape=(*lead, rows), dtype=INT32),
    ]


@lu_p.jvp
def _(primals, tangents):
    # With p x = l u: l^-1 p dx u^-1 = l^-1 dl + du u^-1, of which the first is strictly lower
    # triangular, and the second upper.
    (x,), (t,) = primals, tangents
    out, pivots, permutation = outs = lu_p.bind(x)
    if type(t) is Zero:
        return outs, list(map(zero_like, outs))
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    dtype = out.dtype
    lower = widen(take_lower(part(out, (0, rows), (0, k)), -1), rows, rows)
    lower = add_p.bind(lower, spread(eye(rows, dtype), out.shape[:-2]))
    upper = widen(take_upper(part(out, (0, k), (0, columns))), columns, columns)
    if columns > k:  # a one on each diagonal place that there is no row for
        ones = widen(eye(columns - k, dtype), columns, columns, k)
        upper = add_p.bind(upper, spread(ones, out.shape[:-2]))
    inner = _triangular(lower, take_rows(t, permutation), True, True, unit_diagonal=True)
    inner = _triangular(upper, inner, False, False)
    t_lower = matmul(lower, take_lower(inner, -1))
    t_upper = matmul(take_upper(inner), upper)
    return outs, [add_p.bind(t_lower, t_upper), *map(zero_like, (pivots, permutation))]


def _triangular(
    a, y, left_side, lower, *, transpose_a=False, conjugate_a=False, unit_diagonal=False
):
    return triangular_solve_p.bind(
        a,
        y,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


@lu_p.lower
def _(b, x):
    out, pivots, permutation = b.outs
    if 0 in x.shape:
        last = permutation.ndim - 1
        counted = b.op("stablehlo.iota", (), permutation, f"iota_dimension = {last} : i64")
        return [b.full(0, out), b.full(0, pivots), counted]
    lead = x.shape[:-2]
    outs = [out, pivots, ShapedArray(lead, INT32)]
    factors, swaps, info = lapack(b, "getrf", (x,), outs, len(lead), aliased=(0,))
    swaps = b.op("stablehlo.subtract", (swaps, b.full(1, pivots)), pivots)  # Fortran counts from 1
    (factors,) = checked(b, info, [factors], "GE")
    (order,) = _lower_permutation(b, swaps, permutation_size=permutation.shape[-1])
    return [factors, swaps, order]


@library
def lu(x: Array) -> tuple[Array, Array, Array]:
    """Factor matrices with partial pivoting: `x[..., permutation, :] = l @ u`.

    - `x`: floating-point or complex array of shape (..., m, n)

    The result is both factors in one array (the diagonal of `l` is 1), the pivots of the row swaps,
    of shape (..., min(m, n)), and the permutation of rows, of shape (..., m), both int32. TypeError
    for other dtypes or fewer than two dimensions.
    Source: LAPACK's `getrf`.

    >>> lax.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    return lu_p.bind(as_value(x))


# -- solving ------------------------------------------------------------------------------------


def solve_with_lu(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The solution of `op(a) x = b` for matrices `b`, from the factors of `a`.

    `trans`: 0 for `a`, 1 for its transpose, 2 for its adjoint.
    """
    if trans == 0:
        x = take_rows(b, permutation)
        x = _triangular(factors, x, True, True, unit_diagonal=True)
        return _triangular(factors, x, True, False)
    conjugate = trans == 2 and factors.dtype.kind == "c"
    both = {"transpose_a": True, "conjugate_a": conjugate}
    x = _triangular(factors, b, True, False, **both)
    x = _triangular(factors, x, True, True, unit_diagonal=True, **both)
    return take_rows(x, _inverse_permutation(permutation))


def solve_general(a: Any, b: Any) -> Any:
    """The solution of `a x = b` for square matrices, differentiable in both.

    The derivative is that of the equation, not of the elimination: it needs one more solution with
    the same factors.
    """
    factors, _, permutation = lu_p.bind(stop_gradient(a))
    return custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        solve=lambda _, y: solve_with_lu(factors, permutation, y, 0),
        transpose_solve=lambda _, y: solve_with_lu(factors, permutation, y, 1),
    )
