"""Products of BCOO arrays: contractions, elementwise ones and convolutions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.errors import check_arguments_of
from minijax.experimental.sparse.bcoo_array import (
    BCOO,
    bcoo_fromdense,
    bcoo_transpose,
    bcoo_update_layout,
)
from minijax.features.library import library
from minijax.features.stages.struct import eval_shape
from minijax.lax.sparse.bcoo import bcoo_extract_p
from minijax.lax.sparse.bcoo_axes import NSE, named, ordered, over_batch, take_at
from minijax.lax.sparse.bcoo_dot import (
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_spdot_general_p,
    checked_numbers,
    product_shape,
)

__all__ = [
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_p",
    "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_spdot_general_p",
]  # fmt: skip


# -- contractions -------------------------------------------------------------------------------


def bcoo_dot_general(
    lhs: BCOO | Array, rhs: BCOO | Array, *, dimension_numbers: Any, precision: None = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> BCOO | Array:  # fmt: skip
    """The product of two arrays, summed over contracting dimensions; see `lax.dot_general`.

    The result is dense, and sparse if both operands are. Dot's batch dimensions must be batch
    dimensions of sparse operands, contracted ones batch or sparse dimensions (sparse, if both are):
    NotImplementedError for others. TypeError for dimensions that do not fit. `precision` is not
    used: products are of the highest.
    """
    numbers = checked_numbers(dimension_numbers)
    preferred = None if preferred_element_type is None else np.dtype(preferred_element_type)
    known = {"dimension_numbers": numbers, "preferred_element_type": preferred}
    sparse = isinstance(lhs, BCOO), isinstance(rhs, BCOO)
    if sparse == (False, False):
        return lax.dot_general(lhs, rhs, **known)
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    shape = product_shape(lhs.shape, rhs.shape, numbers)
    if sparse == (True, True):
        buffers = bcoo_spdot_general_p.bind(
            *lhs._bufs, *rhs._bufs, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info, **known
        )
        return BCOO(buffers, shape=shape)
    if sparse == (True, False):
        return bcoo_dot_general_p.bind(*lhs._bufs, rhs, lhs_spinfo=lhs._info, **known)
    (lc, rc), (lb, rb) = numbers
    known["dimension_numbers"] = (rc, lc), (rb, lb)
    out = bcoo_dot_general_p.bind(*rhs._bufs, lhs, lhs_spinfo=rhs._info, **known)
    batch, right = len(lb), rhs.ndim - len(rc) - len(rb)
    order = (*range(batch), *range(batch + right, len(shape)), *range(batch, batch + right))
    return lax.transpose(out, order)


def bcoo_dot_general_sampled(
    A: Array, B: Array, indices: Array, *, dimension_numbers: Any
) -> Array:
    """The product of two dense arrays at the indices of a sparse one: the data of that."""
    A, B, indices = map(jnp.asarray, (A, B, indices))
    numbers = checked_numbers(dimension_numbers)
    return bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=numbers)


# -- elementwise products -----------------------------------------------------------------------


def bcoo_multiply_dense(sp_mat: BCOO, v: Array) -> Array:
    """The data of the product of a sparse array with a dense one, which broadcasts to its shape.

    NotImplementedError for one of more dimensions. TypeError if dtypes differ where nothing
    broadcasts.
    """
    v = jnp.asarray(v)
    sp_mat_shape, shape = sp_mat.shape, v.shape
    if v.ndim == 0:
        return lax.mul(sp_mat.data, v)
    if shape == sp_mat_shape:
        found = bcoo_extract_p.bind(sp_mat.indices, v, assume_unique=True)
        return _product(sp_mat.data, found)
    if v.ndim > sp_mat.ndim or jnp.broadcast_shapes(shape, sp_mat_shape) != sp_mat_shape:
        jnp.broadcast_shapes(shape, sp_mat_shape)
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the "
            f"output shape matches the sparse matrix shape. Got shape={sp_mat_shape}, "
            f"v.shape={shape}"
        )
    return _multiply_broadcast(sp_mat, jnp.asarray(v))


def _product(data: Any, found: Any) -> Any:
    if data.dtype == found.dtype:
        shape = jnp.broadcast_shapes(data.shape, found.shape)
        data, found = (jnp.broadcast_to(x, shape) for x in (data, found))
    return lax.mul(data, found)


@library
def _multiply_broadcast(mat, v):
    n_batch, n_sparse, ndim = mat.n_batch, mat.n_sparse, mat.ndim
    v = v.reshape((*[1] * (ndim - v.ndim), *v.shape))
    held = [d for d in range(ndim) if v.shape[d] == mat.shape[d] != 1]
    v = lax.squeeze(v, [d for d in range(ndim) if d not in held])
    columns = [d for d in range(n_batch, n_batch + n_sparse) if d in held]
    dense = range(n_batch + n_sparse, ndim)
    at = mat.indices[..., np.asarray([d - n_batch for d in columns], np.int32)]
    places = named(at, (*range(n_batch), NSE), n_batch)
    found = take_at(named(v, held), places, columns)
    labels = (*range(n_batch), NSE, *dense)
    batch = jnp.broadcast_shapes(
        mat.data.shape[:n_batch],
        tuple(found.size(d) if d in found.labels else 1 for d in range(n_batch)),
    )
    shape = (*batch, *mat.data.shape[n_batch:])
    return jnp.multiply(jnp.broadcast_to(mat.data, shape), ordered(found, labels, shape))


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two sparse arrays of broadcastable shapes and as many dimensions.

    It has as many elements as there are pairs of theirs: those that meet come first. TypeError for
    other ranks, NotImplementedError if the numbers of dense dimensions differ.
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            "bcoo_multiply_sparse: arrays must have same number of dimensions, got "
            f"{lhs.shape}, {rhs.shape}"
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            "bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: "
            f"{lhs!r}, {rhs!r}. Change them by update_layout."
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    try:
        shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    except ValueError as error:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={[lhs.shape, rhs.shape]}"
        ) from error
    lhs, rhs = (bcoo_update_layout(mat, n_batch=n_batch) for mat in (lhs, rhs))
    return BCOO(_multiply_pairs(lhs, rhs), shape=shape)


@library
def _multiply_pairs(lhs, rhs):
    n_batch, n_sparse = lhs.n_batch, lhs.n_sparse
    sparse = range(n_batch, n_batch + n_sparse)
    sizes = [(lhs.shape[d], rhs.shape[d]) for d in sparse]
    same = [c for c, (m, n) in enumerate(sizes) if m == n]
    beyond = max((*lhs.shape[n_batch:], *rhs.shape[n_batch:]), default=0)

    def one(ld, li, rd, ri):
        count = (li.shape[0], ri.shape[0])
        meet = jnp.ones(count, bool)
        for c in same:
            meet &= li[:, c][:, None] == ri[:, c][None, :]
        left, right = jnp.nonzero(meet, size=count[0] * count[1], fill_value=count)
        known = {"mode": "fill"}
        data = ld.at[left].get(**known, fill_value=0) * rd.at[right].get(**known, fill_value=0)
        rows = [li.at[left].get(**known, fill_value=beyond),
                ri.at[right].get(**known, fill_value=beyond)]  # fmt: skip
        return data, jnp.maximum(*rows)

    return over_batch(one, n_batch, *lhs._bufs, *rhs._bufs)


# -- bcoo_conv_general_dilated ------------------------------------------------------------------


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:  # fmt: skip
    """The convolution along one dimension, of one feature; see `lax.conv_general_dilated`.

    The result has an element for each pair of theirs. NotImplementedError for strides, dilations,
    groups, and more features or batches. Dense operands are made sparse.
    """
    known = {
        "window_strides": window_strides, "padding": padding, "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation, "dimension_numbers": dimension_numbers,
        "feature_group_count": feature_group_count, "batch_group_count": batch_group_count,
        "precision": precision, "preferred_element_type": preferred_element_type,
    }  # fmt: skip
    mats = [x if isinstance(x, BCOO) else bcoo_fromdense(x) for x in (lhs, rhs)]
    avals = [ShapedArray(mat.shape, mat.dtype) for mat in mats]
    out = eval_shape(lambda x, y: lax.conv_general_dilated(x, y, **known), *avals)
    numbers = lax.conv_dimension_numbers(mats[0].shape, mats[1].shape, dimension_numbers)
    if len(out.shape) != 3:
        raise ValueError(
            "bcoo_conv_general_dilated: one spatial dimension expected, so that the operands have "
            f"three dimensions; got shapes {mats[0].shape} and {mats[1].shape}."
        )
    for name, given in (("window_strides", window_strides), ("lhs_dilation", lhs_dilation),
                        ("rhs_dilation", rhs_dilation)):  # fmt: skip
        if given is not None and any(n != 1 for n in given):
            kind = "non-unit window_strides" if name == "window_strides" else name
            raise NotImplementedError(f"bcoo convolution with {kind}.")
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo convolution with non-unit group counts.")
    lines = []
    for mat, spec in zip(mats, numbers[:2], strict=True):
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
        lines.append(bcoo_update_layout(bcoo_transpose(mat, permutation=spec), n_batch=2))
    width = out.shape[numbers.out_spec[2]]
    if isinstance(padding, str):
        sizes = [mat.shape[2] for mat in lines]
        padding = lax.padtype_to_pads(sizes[:1], sizes[1:], (1,), padding)
    before = operator.index(padding[0][0])
    data, indices = _convolve(lines[0], lines[1], before, out.dtype)
    made = BCOO((data, indices), shape=(1, 1, width))
    order = tuple(int(d) for d in np.argsort(numbers.out_spec))
    if order == (0, 1, 2):
        return made
    return bcoo_transpose(bcoo_update_layout(made, n_batch=0), permutation=order)


@library(static=("before", "dtype"))
def _convolve(lhs, rhs, before, dtype):
    count = lhs.nse * rhs.nse
    left, right = lhs.indices[0, 0, :, 0], rhs.indices[0, 0, :, 0]
    at = left[:, None] - right[None, :] + jnp.asarray(before, left.dtype)
    data = lhs.data[0, 0].astype(dtype)[:, None] * rhs.data[0, 0].astype(dtype)[None, :]
    data = jnp.where(at < 0, jnp.zeros_like(data, shape=()), data)
    at = jnp.where(at < 0, jnp.zeros_like(at, shape=()), at)
    return data.reshape(1, 1, count), at.reshape(1, 1, count, 1)


check_arguments_of(globals())
