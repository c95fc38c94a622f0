"""`minijax.experimental.sparse.api`: functions for sparse arrays of any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.core.array import Array
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.bcoo import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.experimental.sparse.coo import COO
from minijax.experimental.sparse.csr import CSC, CSR
from minijax.lax.sparse.todense import todense_p
from minijax.tracebacks import public
from minijax.typing import DTypeLike

__all__ = ["empty", "eye", "todense", "todense_p"]


def todense(arr: JAXSparse | Array) -> Array:
    """The dense array; what is dense already is given back."""
    if arr is None or isinstance(arr, (list, tuple, dict)):
        raise TypeError(f"todense takes an array, sparse or dense; got {arr!r}.")
    bufs, tree = tree_util.tree_flatten(arr)
    bufs = [x if isinstance(x, Array) else as_array(x) for x in bufs]
    return todense_p.bind(*bufs, tree=tree)


_FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> JAXSparse:  # fmt: skip
    """Zeros, of which nothing is stored.

    - `sparse_format`: "bcoo", "bcsr", "coo", "csr" or "csc"; ValueError for another
    - `kwds`: what the format takes beside: `nse`, `n_batch` and `n_dense` of BCOO and BCSR
    """
    if sparse_format not in _FORMATS:
        raise ValueError(f"{sparse_format=} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[sparse_format]._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> JAXSparse:  # fmt: skip
    """Ones on the diagonal `k` of a matrix of `N` rows and `M` columns, `N` by default.

    - `sparse_format`: "bcoo", "coo", "csr" or "csc"; KeyError for another
    - `kwds`: what the format takes beside: `n_batch` and `n_dense` of BCOO
    """
    formats = {name: cls for name, cls in _FORMATS.items() if name != "bcsr"}
    if sparse_format not in formats:
        raise KeyError(f"{sparse_format!r}: must be one of {list(formats)}")
    made = formats[sparse_format]._eye
    M = N if M is None else M
    return made(int(N), int(M), int(k), dtype=dtype, index_dtype=index_dtype, **kwds)


__dir__ = public(__name__)
