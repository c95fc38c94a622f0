"""The primitives of CSR: matrices as values, columns, and where each row starts.

CSC is the same of the transpose. They have no batching rule: BCSR is the format with batch
dimensions.
"""

from __future__ import annotations

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.compare import select_n
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.rules import linear_in
from minijax.lax.sparse.coo import check_product, no_batch
from minijax.lax.sparse.places import (
    add_at,
    bilinear,
    extract,
    nonzero_places,
    pointers,
    product,
    row_numbers,
    take_at,
)
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent

__all__ = ["csr_fromdense_p", "csr_matmat_p", "csr_matvec_p", "csr_rows", "csr_todense_p"]


def csr_rows(indices, indptr):
    """The row of each element."""
    return row_numbers(indptr, indices.shape[0], indices.dtype)


# -- from dense and back ------------------------------------------------------------------------

csr_fromdense_p = Primitive("csr_fromdense", multiple_results=True)


@csr_fromdense_p.shape_rule
def _(x, *, nse, index_dtype):
    index_dtype = np.dtype(index_dtype)
    return [
        ShapedArray((nse,), x.dtype),
        ShapedArray((nse,), index_dtype),
        ShapedArray((x.shape[0] + 1,), index_dtype),
    ]


@csr_fromdense_p.lower
@lower_by
def _(matrix, *, nse, index_dtype):
    data, row, column, real = nonzero_places(matrix, nse)
    rows = matrix.shape[0]
    row = select_n(real, full(row.shape, rows, row.dtype), row)
    return [data, convert_element_type(column, index_dtype), pointers(row, rows, index_dtype)]


@csr_fromdense_p.jvp
def _(primals, tangents, **params):
    (t,) = tangents
    data, *places = csr_fromdense_p.bind(*primals, **params)
    if type(t) is Zero:
        t_data = zero_tangent(get_aval(data))
    else:
        t_data = take_at(t, (csr_rows(*places), places[0]))
    return [data, *places], [t_data, *[zero_tangent(get_aval(x)) for x in places]]


csr_fromdense_p.rule_transpose = no_rule("its derivative is a gather, which has its own")
no_batch(csr_fromdense_p)

csr_todense_p = Primitive("csr_todense")


@csr_todense_p.shape_rule
def _(data, indices, indptr, *, shape):
    return ShapedArray(shape, data.dtype)


@csr_todense_p.lower
@lower_by
def _(data, indices, indptr, *, shape):
    return add_at(shape, (csr_rows(indices, indptr), indices), data)


linear_in(csr_todense_p, 0)


@csr_todense_p.transpose
def _(ct, data, indices, indptr, *, shape):
    assert is_undefined(data)
    return [take_at(ct, (csr_rows(indices, indptr), indices)), None, None]


no_batch(csr_todense_p)

# -- products -----------------------------------------------------------------------------------


def _product(name: str, ndim: int) -> Primitive:
    p = Primitive(name)

    @p.shape_rule
    def _(data, indices, indptr, other, *, shape, transpose):
        out = check_product(name, data, other, shape, transpose, ndim)
        return ShapedArray(out, data.dtype)

    @p.lower
    @lower_by
    def _(data, indices, indptr, other, *, shape, transpose):
        row, column = csr_rows(indices, indptr), indices
        if transpose:
            row, column = column, row
        return product(data, row, column, other, shape[1 if transpose else 0])

    def of_data(ct, indices, indptr, other, *, shape, transpose):
        row, column = csr_rows(indices, indptr), indices
        return extract(*((column, row) if transpose else (row, column)), ct, other)

    bilinear(p, of_data)
    return p


csr_matvec_p = _product("csr_matvec", 1)
csr_matmat_p = _product("csr_matmat", 2)
