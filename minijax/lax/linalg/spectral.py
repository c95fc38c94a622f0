"""Eigenvalues of Hermitian matrices too large for a platform's kernel, by spectral division.

Source: Nakatsukasa and Higham, "Stable and efficient spectral divide and conquer algorithms for the
symmetric eigenvalue decomposition and the SVD" (2013). The unitary polar factor of a matrix less a
shift has the eigenvalues -1 and 1, so it gives the projector onto the vectors of all eigenvalues
below the shift. In a basis of that subspace and its complement the matrix has two blocks, which are
divided again until the kernel takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.lax.arithmetic import RoundingMethod, abs_p, add, div, mul, neg_p, round_p, sqrt_p, sub
from minijax.lax.compare import and_p, clamp, eq, ge, gt, le, lt, select_n_p
from minijax.lax.control_flow.conditionals import cond, switch
from minijax.lax.control_flow.loops import while_loop
from minijax.lax.convert import to_dtype
from minijax.lax.creation import full_like, iota
from minijax.lax.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
)
from minijax.lax.linalg.common import (
    INT32,
    adjoint,
    column,
    diagonal_of,
    eye,
    masked,
    matmul,
    mT,
    part,
    row,
    symmetrized,
    widen,
)
from minijax.lax.linalg.elimination import take_rows
from minijax.lax.linalg.orthogonal import qr_p
from minijax.lax.linalg.polar import qdwh
from minijax.lax.reductions import reduce_max_p
from minijax.lax.rules import scalar_like
from minijax.lax.sorting import sort_p
from minijax.transforms.primitives import reduce_sum_p

__all__ = ["eigh_by_division"]

_MOST_TURNS = 10  # of the basis of a subspace: one or two are enough, but for clusters


class _State(NamedTuple):
    """A matrix that is divided from its first rows to its last.

    `sizes` holds the size of each block at its first row; `values` the eigenvalues of the blocks
    that are done, and infinity. The rows and columns of zeros behind the matrix let a slice of the
    kernel's size start in each row.
    """

    first: Any
    sizes: Any
    matrix: Any
    vectors: Any
    values: Any


def _squares(x: Any, axes: tuple[int, ...]) -> Any:
    size = abs_p.bind(x)
    return reduce_sum_p.bind(mul(size, size), axes=axes, out_sharding=None)


def _times(x: Any, factor: float) -> Any:
    return mul(x, scalar_like(factor, x))


def _norm(x: Any) -> Any:
    return sqrt_p.bind(_squares(x, (0, 1)))


def _between(size: int, first: Any, last: Any) -> Any:
    places = iota(INT32, size)
    return and_p.bind(ge(places, first), lt(places, last))


def _both(rows: Any, columns: Any) -> Any:
    return and_p.bind(column(rows), row(columns))


def _on_diagonal(values: Any) -> Any:
    return mul(row(values), eye(values.shape[0], values.dtype))


def _real_diagonal(x: Any) -> Any:
    return to_dtype(diagonal_of(x), dtypes.to_real_dtype(x.dtype))


def _columns_at(x: Any, places: Any) -> Any:
    return mT(take_rows(mT(x), places))


def _sizes(n: int, base: int) -> list[int]:
    """The sizes at which a division is compiled: a block is divided at the least that holds it."""
    found, half = [n], n // 2
    while base < (size := (half // 32 + 1) * 32) < found[-1]:
        found.append(size)
        half //= 2
    return found[::-1]


def _shift(diagonal: Any, inside: Any, count: Any, away: Any) -> Any:
    """The median of the diagonal, moved so that it is no eigenvalue and has some on either side."""
    infinite = full_like(diagonal, np.inf)
    falling = select_n_p.bind(inside, infinite, neg_p.bind(diagonal))
    rising = select_n_p.bind(inside, infinite, diagonal)
    (rising,) = sort_p.bind(rising, dimension=0, is_stable=False, num_keys=1)
    half = div(sub(count, np.int32(1)), np.int32(2))
    middle = dynamic_index_in_dim(rising, half, 0, keepdims=False)
    least = dynamic_index_in_dim(rising, np.int32(0), 0, keepdims=False)
    largest = neg_p.bind(_least(falling))
    below = ge(sub(middle, least), sub(largest, middle))
    return select_n_p.bind(below, add(middle, away), sub(middle, away))


def _least(x: Any) -> Any:
    return neg_p.bind(reduce_max_p.bind(neg_p.bind(x), axes=(0,)))


def _basis(a: Any, projector: Any, inside: Any, first: Any, cut: Any, eps: float) -> tuple:
    """A unitary matrix whose columns from `first` to `cut` span the range of a projector, and `a`
    in it, which has no elements between those and the others but for rounding."""
    size = a.shape[0]
    chosen, others = _between(size, first, cut), and_p.bind(inside, ge(iota(INT32, size), cut))
    every = full_like(inside, True)
    coupled = _both(others, chosen)
    enough = _times(_norm(a), 10 * eps)

    def turned(columns):
        kept = masked(columns, _both(every, chosen))
        q, _ = qr_p.bind(kept, pivoting=False, full_matrices=False, use_magma=None)
        found = matmul(matmul(adjoint(q), a), q)
        return q, found, _norm(masked(found, coupled))

    def unlike(carry):
        count, (_, _, error) = carry
        return and_p.bind(gt(error, enough), lt(count, np.int32(_MOST_TURNS)))

    def turn(carry):
        count, (q, _, _) = carry
        return add(count, np.int32(1)), turned(matmul(projector, q))

    # The longest columns of the projector, in the places of the first of the block.
    length = neg_p.bind(_squares(projector, (0,)))
    before = lt(iota(INT32, size), first)
    length = select_n_p.bind(before, length, full_like(length, -np.inf))
    keys = [length, iota(INT32, size)]
    _, order = sort_p.bind(*keys, dimension=0, is_stable=True, num_keys=1)
    start = turned(_columns_at(projector, order))
    return while_loop(unlike, turn, (np.int32(1), start))[1][:2]


def _divide(state: _State, count: Any, size: int, tiny: Any, eps: float) -> _State:
    """Divide the block of `count` rows at the first row, or take its diagonal if it has no more."""
    n = state.matrix.shape[0]
    start = clamp(np.int32(0), state.first, np.int32(n - size))
    first = sub(state.first, start)
    last = add(first, count)
    inside = _between(size, first, last)
    block = dynamic_slice(state.matrix, (start, start), (size, size))
    a = masked(block, _both(inside, inside))
    diagonal = _real_diagonal(a)
    rest = _norm(sub(a, _on_diagonal(to_dtype(diagonal, a.dtype))))

    def take(state):
        return _done(state, start, inside, add(diagonal, sub(rest, rest)), count)

    def divide(state):
        away = _times(_norm(a), 10 * eps)
        shift = _shift(diagonal, inside, count, away)
        shifts = select_n_p.bind(inside, full_like(diagonal, 0), full_like(diagonal, 1))
        ones = _on_diagonal(to_dtype(shifts, a.dtype))
        u, *_ = qdwh(sub(a, mul(ones, to_dtype(shift, a.dtype))))
        projector = _times(sub(ones, u), 0.5)
        trace = reduce_sum_p.bind(_real_diagonal(projector), axes=(0,), out_sharding=None)
        nearest = round_p.bind(trace, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
        rank = clamp(np.int32(1), to_dtype(nearest, INT32), sub(count, np.int32(1)))
        cut = add(first, rank)
        q, found = _basis(a, projector, inside, first, cut, eps)
        low = lt(iota(INT32, size), cut)
        kept = eq(column(low), row(low))
        found = masked(symmetrized(found), and_p.bind(kept, _both(inside, inside)))
        found = select_n_p.bind(_both(inside, inside), block, found)
        rows = state.vectors.shape[0]
        turned = dynamic_slice(state.vectors, (np.int32(0), start), (rows, size))
        sizes = dynamic_update_index_in_dim(state.sizes, rank, state.first, 0)
        sizes = dynamic_update_index_in_dim(sizes, sub(count, rank), add(state.first, rank), 0)
        return _State(
            state.first,
            sizes,
            dynamic_update_slice(state.matrix, found, (start, start)),
            dynamic_update_slice(state.vectors, matmul(turned, q), (np.int32(0), start)),
            state.values,
        )

    # What is no number has nothing to divide either.
    return cond(gt(rest, tiny), divide, take, state)


def _done(state: _State, start: Any, inside: Any, values: Any, count: Any) -> _State:
    known = dynamic_slice(state.values, (start,), inside.shape)
    values = dynamic_update_slice(state.values, select_n_p.bind(inside, known, values), (start,))
    return state._replace(first=add(state.first, count), values=values)


def _finish(state: _State, count: Any, base: int, kernel: Callable) -> _State:
    """Decompose a block that is small enough for the kernel."""
    first, rows = state.first, state.vectors.shape[0]
    inside = _between(base, np.int32(0), count)
    block = dynamic_slice(state.matrix, (first, first), (base, base))
    v, w = kernel(masked(block, _both(inside, inside)), inside)
    v = select_n_p.bind(_both(inside, inside), eye(base, v.dtype), v)
    turned = dynamic_slice(state.vectors, (np.int32(0), first), (rows, base))
    vectors = dynamic_update_slice(state.vectors, matmul(turned, v), (np.int32(0), first))
    return _done(state._replace(vectors=vectors), first, inside, w, count)


def _skip(state: _State, count: Any) -> _State:
    """Leave a block whose eigenvalues are all below those that are asked for."""
    inside = _between(state.values.shape[0], state.first, add(state.first, count))
    return _done(state, np.int32(0), inside, full_like(state.values, -np.inf), count)


def eigh_by_division(
    x: Any, *, kernel: Callable, base: int, sort: bool = True, subset: tuple[int, int] | None = None
) -> list[Any]:
    """The eigenvectors and eigenvalues of one Hermitian matrix.

    `kernel(a, inside)` decomposes a matrix of `base` rows, of which those that are inside, the first
    ones, are not zero: it gives their vectors and values in the first places. The values of `subset`
    are those with such places in rising order.
    """
    n = x.shape[0]
    start, stop = (0, n) if subset is None else subset
    real = dtypes.to_real_dtype(x.dtype)
    eps = float(dtypes.finfo(real).eps)
    tiny = _times(_norm(x), eps)
    sizes = _sizes(n, base)
    state = _State(
        np.int32(0),
        dynamic_update_index_in_dim(full_like(iota(INT32, n + 1), 0), np.int32(n), np.int32(0), 0),
        widen(x, n + base, n + base),
        widen(eye(n, x.dtype), n, n + base),
        full_like(iota(real, n + base), np.inf),
    )
    steps = [lambda state, count: _finish(state, count, base, kernel)]
    steps += [
        lambda state, count, size=size: _divide(state, count, size, tiny, eps) for size in sizes
    ]
    if start:
        steps.append(_skip)

    def step(state):
        count = dynamic_index_in_dim(state.sizes, state.first, 0, keepdims=False)
        bounds = np.asarray([base, *sizes[:-1]], INT32)
        larger = to_dtype(gt(count, bounds), INT32)
        which = reduce_sum_p.bind(larger, axes=(0,), out_sharding=None)
        if start:
            below = le(add(state.first, count), np.int32(start))
            which = select_n_p.bind(below, which, np.int32(len(steps) - 1))
        return switch(which, steps, state, count)

    state = while_loop(lambda state: lt(state.first, np.int32(stop)), step, state)
    v = part(state.vectors, (0, n), (0, n))
    w = dynamic_slice(state.values, (np.int32(0),), (n,))
    if sort or subset is not None:
        keys = [w, iota(INT32, n)]
        w, order = sort_p.bind(*keys, dimension=0, is_stable=True, num_keys=1)
        v = _columns_at(v, order)
    return [v, w]
