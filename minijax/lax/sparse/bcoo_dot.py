"""`bcoo_dot_general`, `bcoo_dot_general_sampled` and `bcoo_spdot_general`: products.

The product with a dense array gathers its rows at the contracting indices, multiplies, and adds at
the other indices; the sampled one gathers the rows of two dense arrays. The product of two sparse
arrays goes through all pairs of their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.arithmetic import add, div, mul, rem
from minijax.lax.arithmetic import max as max_
from minijax.lax.compare import bitwise_or, ge, lt, ne, select
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota, full
from minijax.lax.dot import batched_dot, dot_general, dot_general_p
from minijax.lax.indexing import GatherScatterMode, ScatterDimensionNumbers, scatter_add
from minijax.lax.joining import concatenate
from minijax.lax.reductions import reduce_max
from minijax.lax.rules import linear_in
from minijax.lax.shapes import broadcast_in_dim, expand_dims, reshape, squeeze, transpose
from minijax.lax.slicing import slice_in_dim
from minijax.lax.sparse.bcoo import bcoo_extract_p
from minijax.lax.sparse.bcoo_axes import (
    NSE,
    Named,
    add_at,
    contract,
    front,
    named,
    of_ones,
    ordered,
    over_batch,
    take_at,
)
from minijax.lax.sparse.bcoo_order import groups, rows_of
from minijax.lax.sparse.info import SparseInfo, as_row, check_buffers, check_indices
from minijax.lowering.module import lower_by
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.transforms.vmap import vmap

__all__ = [
    "bcoo_dot_general_p", "bcoo_dot_general_sampled_p", "bcoo_spdot_general_p", "checked_numbers",
    "product_shape",
]  # fmt: skip


def checked_numbers(dimension_numbers: Any) -> tuple:
    """Dimension numbers as tuples of integers."""
    (lc, rc), (lb, rb) = dimension_numbers
    lc, rc, lb, rb = (tuple(int(d) for d in dims) for dims in (lc, rc, lb, rb))
    return (lc, rc), (lb, rb)


def product_shape(lhs: Sequence[int], rhs: Sequence[int], numbers: Any) -> tuple[int, ...]:
    """The shape of `dot_general`, whose errors are those for numbers that do not fit."""
    operands = [ShapedArray(tuple(shape), np.dtype(np.float32)) for shape in (lhs, rhs)]
    params = {"precision": None, "preferred_element_type": None, "out_sharding": None}
    return dot_general_p.out_avals(tuple(operands), {"dimension_numbers": numbers, **params}).shape


def _rest(ndim: int, *dims: Sequence[int]) -> list[int]:
    """The dimensions that are neither contracted nor batch dimensions."""
    taken = {d for chosen in dims for d in chosen}
    return [d for d in range(ndim) if d not in taken]


def _taken(indices: Any, columns: Sequence[int]) -> Any:
    """The indices of these columns only."""
    last = indices.ndim - 1
    if tuple(columns) == tuple(range(indices.shape[last])):
        return indices
    if not columns:
        return full((*indices.shape[:last], 0), 0, indices.dtype)
    return concatenate([slice_in_dim(indices, c, c + 1, axis=last) for c in columns], last)


# -- bcoo_dot_general -------------------------------------------------------------------------------

bcoo_dot_general_p = Primitive("bcoo_dot_general")


@bcoo_dot_general_p.shape_rule
def _(data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    n_batch, n_sparse, _, _ = check_buffers(data, indices, lhs_spinfo.shape)
    shape = product_shape(lhs_spinfo.shape, rhs.shape, dimension_numbers)
    (lc, _), (lb, _) = dimension_numbers
    if any(d >= n_batch for d in lb):
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse "
            f"representation.\ngot lhs_batch={lb}, n_batch={n_batch}: change it by update_layout."
        )
    if any(d >= n_batch + n_sparse for d in lc):
        raise NotImplementedError(
            "bcoo_dot_general: contracting over dense dimensions. Change n_dense by update_layout."
        )
    dtype = _result_dtype(preferred_element_type, data, rhs)
    return ShapedArray(shape, dtype)


def _result_dtype(preferred: Any, x: Any, y: Any) -> np.dtype:
    """The dtype of the result: the preferred one, or that to which the operands promote."""
    return dtypes.promote_types(x.dtype, y.dtype) if preferred is None else np.dtype(preferred)


def _computed(preferred: Any, x: Any, y: Any) -> list[Any]:
    """The operands in the dtype that the product is computed in."""
    dtype = dtypes.promote_types(x.dtype, y.dtype)
    if preferred is not None:
        dtype = dtypes.promote_types(dtype, np.dtype(preferred))
    return [convert_element_type(a, dtype) for a in (x, y)]


def _right_labels(ndim: int, numbers: Any) -> tuple:
    """Labels of the axes of the right operand: those of the left one where they go together."""
    (lc, rc), (lb, rb) = numbers
    pairs = dict(zip((*rc, *rb), (*lc, *lb), strict=True))
    return tuple(pairs.get(d, ("right", d)) for d in range(ndim))


def _product(data, indices, rhs, numbers, spinfo):
    """The product of a sparse and a dense array, over dimensions of any kind."""
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    dims = tuple(range(len(spinfo.shape)))
    (lc, rc), (lb, rb) = numbers
    sparse = dims[n_batch : n_batch + n_sparse]
    gathered, added = [d for d in sparse if d in (*lc, *lb)], [d for d in sparse if d not in lc]
    values = named(data, (*dims[:n_batch], NSE, *dims[n_batch + n_sparse :]), n_batch)
    places = (*dims[:n_batch], NSE)
    read = named(_taken(indices, [d - n_batch for d in gathered]), places, n_batch)
    right = take_at(Named(rhs, _right_labels(rhs.ndim, numbers)), read, gathered)
    free = [("right", d) for d in _rest(rhs.ndim, rc, rb)]
    labels = (*lb, *_rest(len(dims), lc, lb), *free)
    shape = product_shape(spinfo.shape, rhs.shape, numbers)
    if not added:
        return ordered(contract(values, right, labels), labels, shape)
    put = named(_taken(indices, [d - n_batch for d in added]), places, n_batch)
    out = contract(values, right, (*labels, *put.labels))
    return add_at(out, put, added, labels, shape)


@bcoo_dot_general_p.lower
@lower_by
def _(data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    dtype = _result_dtype(preferred_element_type, data, rhs)
    data, rhs = _computed(preferred_element_type, data, rhs)
    out = _product(data, indices, rhs, dimension_numbers, lhs_spinfo)
    return convert_element_type(out, dtype)


linear_in(bcoo_dot_general_p, 0, 2)


@bcoo_dot_general_p.transpose
def _(ct, data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    if is_undefined(rhs):
        return [None, None, _of_right(ct, data, indices, rhs.aval, dimension_numbers, lhs_spinfo)]
    found = _of_data(ct, indices, rhs, dimension_numbers, lhs_spinfo)
    found = of_ones(found, data.aval.shape)
    return [convert_element_type(found, data.aval.dtype), None, None]


def _of_right(ct, data, indices, aval, numbers, spinfo):
    """The cotangent of the dense operand: the left one times that of the result."""
    (lc, rc), (lb, rb) = numbers
    ndim = len(spinfo.shape)
    free = _rest(ndim, lc, lb)
    n_dense = data.ndim - indices.ndim + 1
    places = tuple(range(len(lb), len(lb) + len(free)))
    contracted = (tuple(free), places), (lb, tuple(range(len(lb))))
    order = (*rb, *[r for _, r in sorted(zip(lc, rc, strict=True))], *_rest(aval.ndim, rc, rb))
    if any(d >= ndim - n_dense for d in free):
        out = _product(data, indices, ct, contracted, spinfo)
    else:
        out = bcoo_dot_general_p.bind(
            data,
            indices,
            ct,
            dimension_numbers=contracted,
            preferred_element_type=aval.dtype,
            lhs_spinfo=spinfo,
        )
    out = transpose(out, np.argsort(order).tolist())
    return convert_element_type(out, aval.dtype)


def _of_data(ct, indices, rhs, numbers, spinfo):
    """The cotangent of the data: the product of that of the result and the dense operand, sampled."""
    (lc, rc), (lb, rb) = numbers
    ndim, n_batch, n_sparse = len(spinfo.shape), indices.ndim - 2, indices.shape[-1]
    free = _rest(ndim, lc, lb)
    right = _rest(rhs.ndim, rc, rb)
    start = len(lb) + len(free)
    contracted = tuple(range(start, start + len(right)))
    sampled = (contracted, tuple(right)), (tuple(range(len(lb))), rb)
    # The dimensions of that product, by those of the sparse array.
    order = (*lb, *free, *[left for _, left in sorted(zip(rc, lc, strict=True))])
    dense = order[n_batch + n_sparse :]
    if order[:n_batch] == tuple(range(n_batch)) and dense == tuple(range(n_batch + n_sparse, ndim)):
        columns = [d - n_batch for d in order[n_batch : n_batch + n_sparse]]
        return bcoo_dot_general_sampled_p.bind(
            ct, rhs, _taken(indices, columns), dimension_numbers=sampled
        )
    whole = dot_general(ct, rhs, sampled, precision="highest")
    whole = transpose(whole, np.argsort(order).tolist())
    return bcoo_extract_p.bind(indices, whole, assume_unique=True)


@bcoo_dot_general_p.batch
def _(args, dims, *, dimension_numbers, lhs_spinfo, **params):
    (data, indices, rhs), right, ndim = args, dims[2], len(lhs_spinfo.shape)
    left = None if dims[0] is dims[1] is None else 0
    if left is not None:
        size, (data, indices) = front(args[:2], dims[:2])
        lhs_spinfo = lhs_spinfo.deeper(size)
        ndim += 1
    numbers, place = batched_dot(left, right, ndim, rhs.ndim, dimension_numbers)
    out = bcoo_dot_general_p.bind(
        data, indices, rhs, dimension_numbers=numbers, lhs_spinfo=lhs_spinfo, **params
    )
    return out, place


# -- bcoo_dot_general_sampled -----------------------------------------------------------------------

bcoo_dot_general_sampled_p = Primitive("bcoo_dot_general_sampled")


@bcoo_dot_general_sampled_p.shape_rule
def _(lhs, rhs, indices, *, dimension_numbers):
    shape = product_shape(lhs.shape, rhs.shape, dimension_numbers)
    n_batch, n_sparse, _, nse = check_indices(indices, shape)
    out = (*shape[:n_batch], nse, *shape[n_batch + n_sparse :])
    return ShapedArray(out, dtypes.promote_types(lhs.dtype, rhs.dtype))


def _sampled(lhs, rhs, indices, *, dimension_numbers):
    (lc, rc), (lb, rb) = dimension_numbers
    shape = product_shape(lhs.shape, rhs.shape, dimension_numbers)
    n_batch, n_sparse, _, nse = check_indices(indices, shape)
    lhs, rhs = _computed(None, lhs, rhs)
    # Labels are the dimensions of the product, and pairs for what is contracted.
    of_lhs = {d: ("sum", i) for i, d in enumerate(lc)}
    of_rhs = {d: ("sum", i) for i, d in enumerate(rc)}
    left, right = _rest(lhs.ndim, lc, lb), _rest(rhs.ndim, rc, rb)
    of_lhs |= {d: i for i, d in enumerate((*lb, *left))}
    of_rhs |= {d: i for i, d in enumerate(rb)}
    of_rhs |= {d: i + len(lb) + len(left) for i, d in enumerate(right)}
    sparse = range(n_batch, n_batch + n_sparse)
    read = []
    for x, of in ((lhs, of_lhs), (rhs, of_rhs)):
        columns = [d for d in sparse if d in of.values()]
        at = _taken(indices, [d - n_batch for d in columns])
        places = named(at, (*range(n_batch), NSE), n_batch)
        read.append(take_at(Named(x, tuple(of[d] for d in range(x.ndim))), places, columns))
    dense = range(n_batch + n_sparse, len(shape))
    labels = (*range(n_batch), NSE, *dense)
    sizes = (*shape[:n_batch], nse, *[shape[d] for d in dense])
    return ordered(contract(*read, labels), labels, sizes)


bcoo_dot_general_sampled_p.lower(lower_by(_sampled))


linear_in(bcoo_dot_general_sampled_p, 0, 1)


@bcoo_dot_general_sampled_p.transpose
def _(ct, lhs, rhs, indices, *, dimension_numbers):
    (lc, rc), (lb, rb) = dimension_numbers
    shape = product_shape(lhs.shape, rhs.shape, dimension_numbers)
    spinfo = SparseInfo(shape)
    left, right = _rest(len(lhs.shape), lc, lb), _rest(len(rhs.shape), rc, rb)
    batch = tuple(range(len(lb)))
    rows = tuple(range(len(lb), len(lb) + len(left)))
    columns = tuple(range(len(lb) + len(left), len(shape)))
    if is_undefined(lhs):
        numbers = (columns, tuple(right)), (batch, rb)
        out = _product(ct, indices, rhs, numbers, spinfo)
        order = (*lb, *left, *[a for _, a in sorted(zip(rc, lc, strict=True))])
        return [_placed(out, order, lhs.aval), None, None]
    numbers = (rows, tuple(left)), (batch, lb)
    out = _product(ct, indices, lhs, numbers, spinfo)
    order = (*rb, *right, *[b for _, b in sorted(zip(lc, rc, strict=True))])
    return [None, _placed(out, order, rhs.aval), None]


def _placed(out, order, aval):
    return convert_element_type(transpose(out, np.argsort(order).tolist()), aval.dtype)


@bcoo_dot_general_sampled_p.batch
def _(args, dims, *, dimension_numbers):
    if dims[0] is None or dims[1] is None:
        apply = lambda *parts: _sampled(*parts, dimension_numbers=dimension_numbers)
        return vmap(apply, in_axes=tuple(dims))(*args), 0
    _, (lhs, rhs, indices) = front(args, dims)
    numbers, _ = batched_dot(0, 0, lhs.ndim, rhs.ndim, dimension_numbers)
    return bcoo_dot_general_sampled_p.bind(lhs, rhs, indices, dimension_numbers=numbers), 0


# -- bcoo_spdot_general -----------------------------------------------------------------------------

bcoo_spdot_general_p = Primitive("bcoo_spdot_general", multiple_results=True)


def _pair_shapes(ld, li, rd, ri, numbers, lhs_spinfo, rhs_spinfo) -> tuple[tuple, int, int]:
    """The shape of the product, how many batch dimensions it has, and its specified elements."""
    left = check_buffers(ld, li, lhs_spinfo.shape)
    right = check_buffers(rd, ri, rhs_spinfo.shape)
    (lc, rc), (lb, rb) = numbers
    shape = product_shape(lhs_spinfo.shape, rhs_spinfo.shape, numbers)
    if left.n_dense or right.n_dense:
        raise NotImplementedError(
            "bcoo_spdot_general: the operands have dense dimensions; got n_dense="
            f"{left.n_dense} and {right.n_dense}. Remove them by update_layout(n_dense=0)."
        )
    if any(d >= left.n_batch for d in lb) or any(d >= right.n_batch for d in rb):
        raise NotImplementedError(
            "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse "
            f"representation; got {lb} and {rb} for n_batch={left.n_batch} and {right.n_batch}."
        )
    if any(d < left.n_batch for d in lc) or any(d < right.n_batch for d in rc):
        raise NotImplementedError(
            "bcoo_spdot_general only supports contraction of sparse indices; got "
            f"{lc} and {rc} for n_batch={left.n_batch} and {right.n_batch}."
        )
    if right.n_batch > len(rb) and left.n_sparse > len(lc):
        raise ValueError(
            "bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on "
            "lhs. Exchange the operands, or change n_batch by update_layout."
        )
    n_batch = left.n_batch + right.n_batch - len(lb)
    return shape, n_batch, min(left.nse * right.nse, prod(shape[n_batch:]))


@bcoo_spdot_general_p.shape_rule
def _(ld, li, rd, ri, *, dimension_numbers, preferred_element_type, lhs_spinfo, rhs_spinfo):
    shape, n_batch, nse = _pair_shapes(ld, li, rd, ri, dimension_numbers, lhs_spinfo, rhs_spinfo)
    batch = shape[:n_batch]
    index_dtype = dtypes.promote_types(li.dtype, ri.dtype)
    return [
        ShapedArray((*batch, nse), _result_dtype(preferred_element_type, ld, rd)),
        ShapedArray((*batch, nse, len(shape) - n_batch), index_dtype),
    ]


def _count(group: Any, outside: Any) -> Any:
    """Return how many groups there are in bounds."""
    one, zero = np.int32(1), full(group.shape, 0, np.int32)
    return reduce_max(select(outside, zero, add(group, full(group.shape, one))), (0,))


def _pairs(li, ri, contracted, lhs_sizes, rhs_sizes, nse: int) -> tuple[Any, Any]:
    """Return for each pair of elements its place in the product, `nse` if it has none; and the
    indices.

    The free indices that occur on the two sides, each once and in order, make the rows of the
    product in order: all pairs of them.
    """
    lc, rc = contracted
    l_free, r_free = _rest(li.shape[1], lc), _rest(ri.shape[1], rc)
    rows, l_group, l_out = groups(_taken(li, l_free), [lhs_sizes[c] for c in l_free], li.shape[0])
    cols, r_group, r_out = groups(_taken(ri, r_free), [rhs_sizes[c] for c in r_free], ri.shape[0])
    shape = (li.shape[0], ri.shape[0])
    wide = lambda x, axis: broadcast_in_dim(x, shape, (axis,))
    l_count, r_count = _count(l_group, l_out), _count(r_group, r_out)
    place = add(mul(wide(l_group, 0), broadcast_in_dim(r_count, shape, ())), wide(r_group, 1))
    apart = bitwise_or(wide(l_out, 0), wide(r_out, 1))
    for left, right in zip(lc, rc, strict=True):
        x, y = (squeeze(_taken(i, [c]), (1,)) for i, c in ((li, left), (ri, right)))
        beyond = ge(x, full(x.shape, lhs_sizes[left], x.dtype))
        apart = bitwise_or(apart, bitwise_or(ne(wide(x, 0), wide(y, 1)), wide(beyond, 0)))
    place = select(apart, full(shape, nse, np.int32), place)
    return place, _rows_of_pairs(rows, cols, l_count, r_count, nse, lhs_sizes, rhs_sizes, lc, rc)


def _rows_of_pairs(rows, cols, l_count, r_count, nse, lhs_sizes, rhs_sizes, lc, rc):
    """The first `nse` pairs of rows, those of the second fastest, and then the sizes."""
    free = [lhs_sizes[c] for c in _rest(len(lhs_sizes), lc)]
    free += [rhs_sizes[c] for c in _rest(len(rhs_sizes), rc)]
    dtype = rows.dtype
    missing = broadcast_in_dim(as_row(free, dtype), (nse, len(free)), (1,))
    if not nse or not free:
        return missing
    at = broadcasted_iota(np.int32, (nse,), 0)
    whole = lambda x: broadcast_in_dim(x, (nse,), ())
    divisor = whole(max_(r_count, np.int32(1)))
    chosen = [rows_of(rows, div(at, divisor)), rows_of(cols, rem(at, divisor))]
    held = lt(at, whole(mul(l_count, r_count)))
    held = broadcast_in_dim(held, missing.shape, (0,))
    return select(held, concatenate(chosen, 1), missing)


def _pair_sums(ld: Any, rd: Any, place: Any, nse: int) -> Any:
    """The products of all pairs, added at their places."""
    out = full((nse,), 0, ld.dtype)
    if not nse or 0 in place.shape:
        return out
    wide = lambda x, axis: broadcast_in_dim(x, place.shape, (axis,))
    values = mul(wide(ld, 0), wide(rd, 1))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    places = expand_dims(place, (2,))
    return scatter_add(out, places, values, numbers, mode=GatherScatterMode.FILL_OR_DROP)


def _lined_up(x: Any, n_batch: int, batch: Sequence[int], before: int, after: int) -> Any:
    """A buffer with the dot's batch dimensions first, and ones for those of the other operand."""
    others = [d for d in range(n_batch) if d not in batch]
    x = transpose(x, (*batch, *others, *range(n_batch, x.ndim)))
    k = len(batch)
    sizes = x.shape
    return reshape(
        x, (*sizes[:k], *[1] * before, *sizes[k:n_batch], *[1] * after, *sizes[n_batch:])
    )


def _pair_products(params: dict, li: Any, ri: Any, terms: Sequence[tuple]) -> list[Any]:
    """The sums of pairs of data, of each of the terms, and the indices of the product."""
    lhs, rhs = params["lhs_spinfo"], params["rhs_spinfo"]
    (lc, rc), (lb, rb) = numbers = params["dimension_numbers"]
    ld, rd = terms[0]
    shape, n_batch, nse = _pair_shapes(ld, li, rd, ri, numbers, lhs, rhs)
    l_batch, r_batch = li.ndim - 2, ri.ndim - 2
    left = lambda x: _lined_up(x, l_batch, lb, 0, r_batch - len(rb))
    right = lambda x: _lined_up(x, r_batch, rb, l_batch - len(lb), 0)
    index_dtype = dtypes.promote_types(li.dtype, ri.dtype)
    li, ri = (convert_element_type(i, index_dtype) for i in (li, ri))
    contracted = [d - l_batch for d in lc], [d - r_batch for d in rc]
    find = lambda li, ri: _pairs(li, ri, contracted, lhs.shape[l_batch:], rhs.shape[r_batch:], nse)
    place, indices = over_batch(find, n_batch, left(li), right(ri))
    sums = lambda *parts: _pair_sums(*parts, nse)
    outs = []
    for x, y in terms:
        dtype = _result_dtype(params["preferred_element_type"], x, y)
        x, y = _computed(params["preferred_element_type"], x, y)
        out = over_batch(sums, n_batch, left(x), right(y), place)
        outs.append(convert_element_type(out, dtype))
    full_shapes = [(*shape[:n_batch], *x.shape[n_batch:]) for x in (*outs, indices)]
    return [
        broadcast_in_dim(x, wanted, tuple(range(x.ndim)))
        for x, wanted in zip((*outs, indices), full_shapes, strict=True)
    ]


@bcoo_spdot_general_p.lower
@lower_by
def _(ld, li, rd, ri, **params):
    return _pair_products(params, li, ri, [(ld, rd)])


@bcoo_spdot_general_p.jvp
def _(primals, tangents, **params):
    ld, li, rd, ri = primals
    terms = [(ld, rd)]
    if type(tangents[0]) is not Zero:
        terms.append((tangents[0], rd))
    if type(tangents[2]) is not Zero:
        terms.append((ld, tangents[2]))
    if len(terms) == 1:
        outs = bcoo_spdot_general_p.bind(*primals, **params)
        return outs, list(map(zero_like, outs))
    data, *parts, indices = _pair_products(params, li, ri, terms)
    t = parts[0] if len(parts) == 1 else add_tangents(*parts)
    return [data, indices], [t, zero_like(indices)]


bcoo_spdot_general_p.rule_transpose = no_rule("its tangents are scatters of products")


@bcoo_spdot_general_p.batch
def _(args, dims, *, dimension_numbers, lhs_spinfo, rhs_spinfo, **params):
    size, args = front(args, dims)
    lhs_spinfo, rhs_spinfo = lhs_spinfo.deeper(size), rhs_spinfo.deeper(size)
    ndims = len(lhs_spinfo.shape), len(rhs_spinfo.shape)
    outs = bcoo_spdot_general_p.bind(
        *args, dimension_numbers=batched_dot(0, 0, *ndims, dimension_numbers)[0],
        lhs_spinfo=lhs_spinfo, rhs_spinfo=rhs_spinfo, **params,
    )  # fmt: skip
    return outs, [0, 0]
