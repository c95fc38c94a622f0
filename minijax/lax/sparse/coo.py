"""The primitives of COO: matrices as values, rows and columns."""

from __future__ import annotations

from typing import NamedTuple

from minijax.lax.convert import convert_element_type
from minijax.lax.sparse.matrices import matrix_format

__all__ = ["COOInfo", "coo_fromdense_p", "coo_matmat_p", "coo_matvec_p", "coo_todense_p"]


class COOInfo(NamedTuple):
    """The static fields of a COO matrix, beside its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def _converted(row, column, real, rows, dtype):
    return [convert_element_type(x, dtype) for x in (row, column)]


coo_fromdense_p, coo_todense_p, coo_matvec_p, coo_matmat_p = matrix_format(
    "coo",
    places=_converted,
    lengths=lambda nse, rows: (nse, nse),
    coordinates=lambda row, column: (row, column),
    shape_of=lambda params: params["spinfo"].shape,
)
