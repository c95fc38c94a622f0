"""The primitives of CSR: matrices as values, columns, and where each row starts.

CSC is the same of the transpose.
"""

from __future__ import annotations

from minijax.lax.compare import select_n
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.sparse.matrices import matrix_format
from minijax.lax.sparse.places import pointers, row_numbers

__all__ = ["csr_fromdense_p", "csr_matmat_p", "csr_matvec_p", "csr_rows", "csr_todense_p"]


def csr_rows(indices, indptr):
    """The row of each element."""
    return row_numbers(indptr, indices.shape[0], indices.dtype)


def _compressed(row, column, real, rows, dtype):
    row = select_n(real, full(row.shape, rows, row.dtype), row)
    return [convert_element_type(column, dtype), pointers(row, rows, dtype)]


csr_fromdense_p, csr_todense_p, csr_matvec_p, csr_matmat_p = matrix_format(
    "csr",
    places=_compressed,
    lengths=lambda nse, rows: (nse, rows + 1),
    coordinates=lambda indices, indptr: (csr_rows(indices, indptr), indices),
    shape_of=lambda params: params["shape"],
)
