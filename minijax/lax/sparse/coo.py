"""The primitives of COO: matrices as values, rows and columns.

They have no batching rule: upstream's have none, and BCOO is the format with batch dimensions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.convert import convert_element_type
from minijax.lax.rules import linear_in
from minijax.lax.sparse.places import (
    add_at,
    bilinear,
    extract,
    nonzero_places,
    product,
    take_at,
)
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent

__all__ = [
    "COOInfo", "check_product", "coo_fromdense_p", "coo_matmat_p", "coo_matvec_p", "coo_todense_p",
]  # fmt: skip


class COOInfo(NamedTuple):
    """The static fields of a COO matrix, beside its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def no_batch(p: Primitive) -> None:
    """The reason for a cell of the table."""
    p.rule_batch = no_rule(f"Batching rule for {p.name!r} not implemented: use BCOO or BCSR.")


# -- from dense and back ------------------------------------------------------------------------

coo_fromdense_p = Primitive("coo_fromdense", multiple_results=True)


@coo_fromdense_p.shape_rule
def _(x, *, nse, index_dtype):
    places = ShapedArray((nse,), np.dtype(index_dtype))
    return [ShapedArray((nse,), x.dtype), places, places]


@coo_fromdense_p.lower
@lower_by
def _(matrix, *, nse, index_dtype):
    data, row, column, _ = nonzero_places(matrix, nse)
    return [data, *[convert_element_type(x, index_dtype) for x in (row, column)]]


@coo_fromdense_p.jvp
def _(primals, tangents, **params):
    (t,) = tangents
    data, row, column = coo_fromdense_p.bind(*primals, **params)
    t_data = zero_tangent(get_aval(data)) if type(t) is Zero else take_at(t, (row, column))
    return [data, row, column], [t_data, *[zero_tangent(get_aval(x)) for x in (row, column)]]


coo_fromdense_p.rule_transpose = no_rule("its derivative is a gather, which has its own")
no_batch(coo_fromdense_p)

coo_todense_p = Primitive("coo_todense")


@coo_todense_p.shape_rule
def _(data, row, column, *, spinfo):
    return ShapedArray(spinfo.shape, data.dtype)


@coo_todense_p.lower
@lower_by
def _(data, row, column, *, spinfo):
    return add_at(spinfo.shape, (row, column), data)


linear_in(coo_todense_p, 0)


@coo_todense_p.transpose
def _(ct, data, row, column, *, spinfo):
    assert is_undefined(data)
    return [take_at(ct, (row, column)), None, None]


no_batch(coo_todense_p)

# -- products -----------------------------------------------------------------------------------


def check_product(
    name: str, data: Any, other: Any, shape: tuple[int, ...], transpose: bool, ndim: int
) -> tuple[int, ...]:
    """The shape of a product; AssertionError, as upstream's, if its operands do not fit."""
    rows, columns = shape[::-1] if transpose else shape
    if other.ndim != ndim or other.shape[0] != columns:
        what = "a vector" if ndim == 1 else "a matrix"
        raise AssertionError(
            f"{name} of a sparse matrix of shape {(rows, columns)} got {other.str_short()}: give "
            f"{what} whose first dimension is {columns}."
        )
    if data.dtype != other.dtype:
        raise AssertionError(
            f"{name} requires operands of one dtype, got {data.dtype.name} and {other.dtype.name}: "
            "use the operator @, which promotes them."
        )
    return (rows, *other.shape[1:])


def _product(name: str, ndim: int) -> Primitive:
    p = Primitive(name)

    @p.shape_rule
    def _(data, row, column, other, *, spinfo, transpose):
        shape = check_product(name, data, other, spinfo.shape, transpose, ndim)
        return ShapedArray(shape, data.dtype)

    @p.lower
    @lower_by
    def _(data, row, column, other, *, spinfo, transpose):
        if transpose:
            row, column = column, row
        return product(data, row, column, other, spinfo.shape[1 if transpose else 0])

    def of_data(ct, row, column, other, *, spinfo, transpose):
        return extract(*((column, row) if transpose else (row, column)), ct, other)

    bilinear(p, of_data)
    return p


coo_matvec_p = _product("coo_matvec", 1)
coo_matmat_p = _product("coo_matmat", 2)
