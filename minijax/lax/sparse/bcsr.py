"""The primitives of BCSR: going to and fro between dense arrays and batches of CSR matrices.

Of an array of shape (batch..., rows, columns, dense...) there are the `data`, (batch..., nse,
dense...), the columns `indices`, (batch..., nse), and `indptr`, (batch..., rows + 1): where rows
start. Each program is that of BCOO, with the rows counted from `indptr`. Source: the format CSR,
batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.convert import convert_element_type
from minijax.lax.dot import batched_dot, dot_general_p
from minijax.lax.joining import concatenate
from minijax.lax.rules import linear_in
from minijax.lax.shapes import expand_dims, squeeze
from minijax.lax.slicing import slice_in_dim
from minijax.lax.sparse.bcoo import bcoo_extract_p, bcoo_fromdense_p, bcoo_todense_p, front, of_ones
from minijax.lax.sparse.bcoo_axes import over_batch
from minijax.lax.sparse.bcoo_dot import bcoo_dot_general_p
from minijax.lax.sparse.places import pointers, row_numbers, values_taken
from minijax.lowering.module import lower_by
from minijax.transforms.batching import all_to_front
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import is_undefined

__all__ = [
    "BCSRProperties", "bcoo_to_bcsr", "bcsr_dot_general_p", "bcsr_extract_p", "bcsr_fromdense_p", "bcsr_to_bcoo",
    "bcsr_todense_p", "check_bcsr", "check_bcsr_indices",
]  # fmt: skip


class BCSRProperties(NamedTuple):
    """The numbers of batch and dense dimensions, and of specified elements."""

    n_batch: int
    n_dense: int
    nse: int


def check_bcsr_indices(indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """Return the sizes that the indices of a BCSR array have for this shape.

    AssertionError if they are no integers or have no place in the shape, ValueError if sizes do not
    fit: the classes are upstream's.
    """
    shape = tuple(shape)
    n_batch = indices.ndim - 1
    n_dense = len(shape) - n_batch - 2
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise AssertionError(f"BCSR {name} must be integers; got dtype {x.dtype.name}.")
    if n_dense < 0 or indptr.ndim != n_batch + 1 or n_batch < 0:
        raise AssertionError(
            f"Invalid indices.shape={indices.shape} and indptr.shape={indptr.shape} for {shape=}: "
            "they are (batch..., nse) and (batch..., rows + 1)."
        )
    for name, x in (("indices", indices), ("indptr", indptr)):
        if any(n not in (1, size) for n, size in zip(x.shape[:-1], shape, strict=False)):
            raise ValueError(
                f"{name} batch dimensions not compatible for {x.shape=}, {shape=}: each must be "
                "the same, or 1."
            )
    if indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError(
            f"indptr shape must match the matrix shape plus 1: got {indptr.shape=} for {shape=}."
        )
    return BCSRProperties(n_batch, n_dense, indices.shape[-1])


def check_bcsr(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """Return the sizes that the buffers of a BCSR array have for this shape; errors as
    `check_bcsr_indices`.
    """
    props = check_bcsr_indices(indices, indptr, shape)
    n_batch, n_dense, nse = props
    wanted = (nse, *shape[n_batch + 2 :])
    if data.ndim != n_batch + 1 + n_dense or tuple(data.shape[n_batch:]) != wanted:
        raise ValueError(
            f"Invalid data.shape={tuple(data.shape)} for {nse=}, {n_batch=}, {n_dense=}: of an "
            f"array of shape {tuple(shape)} it is (batch..., nse, dense...)."
        )
    if any(n not in (1, size) for n, size in zip(data.shape[:n_batch], shape, strict=False)):
        raise ValueError(
            f"data batch dimensions not compatible for {data.shape=}, {shape=}: each must be the "
            "same, or 1."
        )
    return props


# -- rows, from where they start --------------------------------------------------------------------


def bcsr_to_bcoo(indices: Any, indptr: Any) -> Any:
    """The indices of the same array as BCOO: (batch..., nse, 2)."""

    def single(indices, indptr):
        rows = row_numbers(indptr, indices.shape[0], indices.dtype)
        return concatenate([expand_dims(rows, (1,)), expand_dims(indices, (1,))], 1)

    return over_batch(single, indices.ndim - 1, indices, indptr)


def bcoo_to_bcsr(indices: Any, rows: int, index_dtype: Any) -> tuple[Any, Any]:
    """`indices` and `indptr` of an array of which the indices as BCOO are in order."""
    n_batch = indices.ndim - 2
    row, column = (
        squeeze(slice_in_dim(indices, axis, axis + 1, axis=n_batch + 1), (n_batch + 1,))
        for axis in range(2)
    )
    indptr = over_batch(lambda row: pointers(row, rows, np.dtype(index_dtype)), n_batch, row)
    return convert_element_type(column, np.dtype(index_dtype)), indptr


# -- bcsr_fromdense -------------------------------------------------------------------------------

bcsr_fromdense_p = Primitive("bcsr_fromdense", multiple_results=True)


@bcsr_fromdense_p.shape_rule
def _(mat, *, nse, n_batch, n_dense, index_dtype):
    rows = mat.shape[n_batch]
    batch, dense = mat.shape[:n_batch], mat.shape[n_batch + 2 :]
    dtype = np.dtype(index_dtype)
    return [
        ShapedArray((*batch, nse, *dense), mat.dtype),
        ShapedArray((*batch, nse), dtype),
        ShapedArray((*batch, rows + 1), dtype),
    ]


@bcsr_fromdense_p.lower
@lower_by
def _(mat, *, nse, n_batch, n_dense, index_dtype):
    data, indices = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
    )
    return data, *bcoo_to_bcsr(indices, mat.shape[n_batch], index_dtype)


values_taken(bcsr_fromdense_p, lambda t, data, *places, **_: bcsr_extract_p.bind(*places, t))
bcsr_fromdense_p.rule_transpose = no_rule("its tangents are those of bcsr_extract")


@bcsr_fromdense_p.batch
def _(args, dims, *, n_batch, **params):
    mat = moveaxis(args[0], dims[0], 0)
    return bcsr_fromdense_p.bind(mat, n_batch=n_batch + 1, **params), [0, 0, 0]


# -- bcsr_todense and bcsr_extract: transposes of each other ------------------------------------------

bcsr_todense_p = Primitive("bcsr_todense")


@bcsr_todense_p.shape_rule
def _(data, indices, indptr, *, spinfo):
    check_bcsr(data, indices, indptr, spinfo.shape)
    return ShapedArray(spinfo.shape, data.dtype)


@bcsr_todense_p.lower
@lower_by
def _(data, indices, indptr, *, spinfo):
    return bcoo_todense_p.bind(data, bcsr_to_bcoo(indices, indptr), spinfo=spinfo)


linear_in(bcsr_todense_p, 0)


@bcsr_todense_p.transpose
def _(ct, data, indices, indptr, *, spinfo):
    assert is_undefined(data)
    return [of_ones(bcsr_extract_p.bind(indices, indptr, ct), data.aval.shape), None, None]


@bcsr_todense_p.batch
def _(args, dims, *, spinfo):
    size, args = front(args, dims)
    return bcsr_todense_p.bind(*args, spinfo=spinfo.deeper(size)), 0


bcsr_extract_p = Primitive("bcsr_extract")


@bcsr_extract_p.shape_rule
def _(indices, indptr, mat):
    n_batch, _, nse = check_bcsr_indices(indices, indptr, mat.shape)
    shape = (*mat.shape[:n_batch], nse, *mat.shape[n_batch + 2 :])
    return ShapedArray(shape, mat.dtype)


@bcsr_extract_p.lower
@lower_by
def _(indices, indptr, mat):
    return bcoo_extract_p.bind(bcsr_to_bcoo(indices, indptr), mat, assume_unique=True)


linear_in(bcsr_extract_p, 2)


@bcsr_extract_p.transpose
def _(ct, indices, indptr, mat):
    assert is_undefined(mat)
    places = bcsr_to_bcoo(indices, indptr)
    return [None, None, bcoo_extract_p.rule_transpose(ct, places, mat, assume_unique=True)[1]]


@bcsr_extract_p.batch
def _(args, dims):
    size, (indices, indptr, mat) = front(args, dims)
    if mat.shape[0] != size:
        mat = squeeze(mat, (0,))
        found = over_batch(lambda *places: bcsr_extract_p.bind(*places, mat), 1, indices, indptr)
        return found, 0
    return bcsr_extract_p.bind(indices, indptr, mat), 0


# -- bcsr_dot_general -----------------------------------------------------------------------------

bcsr_dot_general_p = Primitive("bcsr_dot_general")


@bcsr_dot_general_p.shape_rule
def _(data, indices, indptr, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    n_batch, _, _ = check_bcsr(data, indices, indptr, lhs_spinfo.shape)
    out = dot_general_p.rule_shape(
        ShapedArray(lhs_spinfo.shape, data.dtype), ShapedArray(rhs.shape, rhs.dtype),
        dimension_numbers=dimension_numbers, precision=None,
        preferred_element_type=preferred_element_type, out_sharding=None,
    )  # fmt: skip
    (contract, _), (batch, _) = dimension_numbers
    if any(d >= n_batch for d in batch):
        raise NotImplementedError(
            "bcsr_dot_general: batch dimensions of the product must be among the batch dimensions "
            f"in the sparse lhs: got {dimension_numbers=} with {n_batch=}."
        )
    if any(d >= n_batch + 2 for d in contract):
        raise NotImplementedError("bcsr_dot_general: contracting over dense dimensions.")
    return ShapedArray(out.shape, out.dtype)


@bcsr_dot_general_p.lower
@lower_by
def _(data, indices, indptr, rhs, **params):
    return bcoo_dot_general_p.bind(data, bcsr_to_bcoo(indices, indptr), rhs, **params)


linear_in(bcsr_dot_general_p, 0, 3)


@bcsr_dot_general_p.transpose
def _(ct, data, indices, indptr, rhs, **params):
    places = bcsr_to_bcoo(indices, indptr)
    of_data, _, of_rhs = bcoo_dot_general_p.rule_transpose(ct, data, places, rhs, **params)
    return [of_data, None, None, of_rhs]


@bcsr_dot_general_p.batch
def _(args, dims, *, dimension_numbers, lhs_spinfo, **params):
    args = all_to_front(args, dims)
    lhs_spinfo = lhs_spinfo.deeper(args[0].shape[0])
    ndims = len(lhs_spinfo.shape), args[3].ndim
    numbers, _ = batched_dot(0, 0, *ndims, dimension_numbers)
    out = bcsr_dot_general_p.bind(*args, dimension_numbers=numbers, lhs_spinfo=lhs_spinfo, **params)
    return out, 0
