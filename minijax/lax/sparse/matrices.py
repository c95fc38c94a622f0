"""The primitives of COO and CSR, which differ in how they hold rows and columns of elements.

CSC is CSR of the transpose. They have no batching rule: upstream's have none, and BCOO and BCSR
are the formats with batch dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.arithmetic import mul
from minijax.lax.compare import select_n
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.reductions import reduce_sum
from minijax.lax.rules import linear_in
from minijax.lax.shapes import broadcast_in_dim
from minijax.lax.sparse.places import (
    add_at,
    nonzero_places,
    pointers,
    row_numbers,
    take_at,
    values_taken,
)
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import is_undefined

__all__ = [
    "COOInfo", "coo_fromdense_p", "coo_matmat_p", "coo_matvec_p", "coo_todense_p",
    "csr_fromdense_p", "csr_matmat_p", "csr_matvec_p", "csr_rows", "csr_todense_p",
]  # fmt: skip


def _format(
    name: str,
    *,
    places: Callable,
    lengths: Callable[[int, int], Sequence[int]],
    coordinates: Callable,
    shape_of: Callable[[dict[str, Any]], tuple[int, ...]],
) -> tuple[Primitive, Primitive, Primitive, Primitive]:
    """The primitives of a format: from dense, to dense, and the products with vectors and matrices.

    - `places(row, column, real, rows, dtype)`: the buffers beside the data, from the rows and columns
      of elements, and whether each is one of the matrix
    - `lengths(nse, rows)`: the lengths of these buffers
    - `coordinates(*places)`: the rows and columns of elements, from these buffers
    - `shape_of(params)`: the shape of a matrix, from the parameters of an equation
    """
    from_dense = Primitive(f"{name}_fromdense", multiple_results=True)

    @from_dense.shape_rule
    def _(x, *, nse, index_dtype):
        held = [ShapedArray((n,), np.dtype(index_dtype)) for n in lengths(nse, x.shape[0])]
        return [ShapedArray((nse,), x.dtype), *held]

    @from_dense.lower
    @lower_by
    def _(matrix, *, nse, index_dtype):
        data, row, column, real = nonzero_places(matrix, nse)
        return [data, *places(row, column, real, matrix.shape[0], index_dtype)]

    values_taken(from_dense, lambda t, data, *held, **params: take_at(t, coordinates(*held)))
    from_dense.rule_transpose = no_rule("its derivative is a gather, which has its own")
    _no_batch(from_dense)

    to_dense = Primitive(f"{name}_todense")
    to_dense.shape_rule(lambda data, *held, **params: ShapedArray(shape_of(params), data.dtype))
    linear_in(to_dense, 0)
    _no_batch(to_dense)

    @to_dense.lower
    @lower_by
    def _(data, *held, **params):
        return add_at(shape_of(params), coordinates(*held), data)

    @to_dense.transpose
    def _(ct, data, *held, **params):
        assert is_undefined(data)
        return [take_at(ct, coordinates(*held)), *[None] * len(held)]

    product = lambda ending, ndim: _product_with(f"{name}_{ending}", ndim, coordinates, shape_of)
    return from_dense, to_dense, product("matvec", 1), product("matmat", 2)


def _no_batch(p: Primitive) -> None:
    p.rule_batch = no_rule(f"Batching rule for {p.name!r} not implemented: use BCOO or BCSR.")


# -- products -------------------------------------------------------------------------------------


def _product_with(name: str, ndim: int, coordinates: Callable, shape_of: Callable) -> Primitive:
    """The product `p(data, *places, other)` with an array of `ndim` dimensions."""
    p = Primitive(name)
    linear_in(p, 0, 3)
    _no_batch(p)

    def turned(held, transpose):
        row, column = coordinates(*held)
        return (column, row) if transpose else (row, column)

    @p.shape_rule
    def _(data, *others, transpose, **params):
        shape = _product_shape(name, data, others[-1], shape_of(params), transpose, ndim)
        return ShapedArray(shape, data.dtype)

    @p.lower
    @lower_by
    def _(data, *others, transpose, **params):
        *held, other = others
        return _product(data, *turned(held, transpose), other, shape_of(params)[bool(transpose)])

    @p.transpose
    def _(ct, data, *others, transpose, **params):
        *held, other = others
        nothing = [None] * len(held)
        if is_undefined(data):
            return [_sampled(*turned(held, transpose), ct, other), *nothing, None]
        return [None, *nothing, p.bind(data, *held, ct, transpose=not transpose, **params)]

    return p


def _product_shape(
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


def _product(data: Any, rows: Any, columns: Any, other: Any, size: int) -> Any:
    """The matrix of `size` rows with these elements, times a vector or a matrix."""
    terms = take_at(other, (columns,))
    return add_at((size, *other.shape[1:]), (rows,), mul(_spread_rows(data, terms), terms))


def _spread_rows(data: Any, like: Any) -> Any:
    """A vector, repeated along the axes that `like` has beyond its first."""
    return data if data.shape == like.shape else broadcast_in_dim(data, like.shape, (0,))


def _sampled(rows: Any, columns: Any, ct: Any, other: Any) -> Any:
    """Return the elements of `ct @ other^T` at given indices: the cotangent of a product's factor."""
    terms = mul(take_at(ct, (rows,)), take_at(other, (columns,)))
    return terms if terms.ndim == 1 else reduce_sum(terms, tuple(range(1, terms.ndim)))


# -- the formats ----------------------------------------------------------------------------------


class COOInfo(NamedTuple):
    """The static fields of a COO matrix, beside its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def _converted(row, column, real, rows, dtype):
    return [convert_element_type(x, dtype) for x in (row, column)]


coo_fromdense_p, coo_todense_p, coo_matvec_p, coo_matmat_p = _format(
    "coo",
    places=_converted,
    lengths=lambda nse, rows: (nse, nse),
    coordinates=lambda row, column: (row, column),
    shape_of=lambda params: params["spinfo"].shape,
)


def csr_rows(indices, indptr):
    """The row of each element."""
    return row_numbers(indptr, indices.shape[0], indices.dtype)


def _compressed(row, column, real, rows, dtype):
    row = select_n(real, full(row.shape, rows, row.dtype), row)
    return [convert_element_type(column, dtype), pointers(row, rows, dtype)]


csr_fromdense_p, csr_todense_p, csr_matvec_p, csr_matmat_p = _format(
    "csr",
    places=_compressed,
    lengths=lambda nse, rows: (nse, rows + 1),
    coordinates=lambda indices, indptr: (csr_rows(indices, indptr), indices),
    shape_of=lambda params: params["shape"],
)
