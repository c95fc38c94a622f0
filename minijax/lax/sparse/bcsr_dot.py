"""`bcsr_dot_general`: the product of a BCSR array and a dense one.

Its program, and the transposes, are those of BCOO, with the rows counted from where they start.
"""

from __future__ import annotations

from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.lax.dot import batched_dot, dot_general_p
from minijax.lax.rules import linear_in
from minijax.lax.sparse.bcoo_dot import bcoo_dot_general_p
from minijax.lax.sparse.bcsr import bcsr_to_bcoo, check_bcsr
from minijax.lowering.module import lower_by
from minijax.transforms.batching import all_to_front

__all__ = ["bcsr_dot_general_p"]

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
