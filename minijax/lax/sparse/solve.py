"""`spsolve`: solving a sparse system of equations, by a direct solver.

On NVIDIA's GPUs that is cuSOLVER's, by QR; elsewhere the host's: SciPy's (SuperLU), which is imported
when it is called first: minijax itself does not need SciPy.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.lax.arithmetic import neg
from minijax.lax.callbacks import pure_callback
from minijax.lax.sorting import sort
from minijax.lax.sparse.matrices import csr_matvec_p, csr_rows
from minijax.lax.sparse.places import pointers
from minijax.lowering.module import lower_by
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Zero, is_undefined, zero_like

__all__ = ["spsolve_p"]

spsolve_p = Primitive("spsolve")
_REORDERINGS = (0, 1, 2, 3)


@spsolve_p.shape_rule
def _(data, indices, indptr, b, *, tol, reorder):
    shapes = f"{data.shape=} {indices.shape=} {indptr.shape=}"
    if any(x.ndim != 1 for x in (data, indices, indptr, b)):
        raise ValueError(f"Arrays must be one-dimensional. Got {shapes} {b.shape=}")
    if indptr.shape[0] != b.shape[0] + 1 or data.shape != indices.shape:
        raise ValueError(f"Invalid CSR buffer sizes: {shapes} for {b.shape=}")
    if reorder not in _REORDERINGS:
        raise ValueError(f"{reorder=} not valid, must be one of {list(_REORDERINGS)}")
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: {data.dtype=} {b.dtype=}: convert one.")
    if data.dtype.kind not in "fc":
        raise ValueError(f"spsolve takes floats, got {data.dtype=}: convert it with .astype(...).")
    return ShapedArray(b.shape, b.dtype)


def _on_host(data: Any, indices: Any, indptr: Any, b: Any) -> np.ndarray:
    scipy_sparse = importlib.import_module("scipy.sparse")  # only this asks for SciPy
    solver = importlib.import_module("scipy.sparse.linalg")
    data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
    matrix = scipy_sparse.csr_matrix((data, indices, indptr), shape=(b.size, b.size))
    return solver.spsolve(matrix, b).astype(b.dtype)


@spsolve_p.lower
@lower_by
def _(data, indices, indptr, b, *, tol, reorder):
    return pure_callback(_on_host, ShapeDtypeStruct(b.shape, b.dtype), data, indices, indptr, b)


@spsolve_p.lower_on("cuda")
def _(b, *operands, tol, reorder):
    config = f"{{reorder = {reorder} : i32, tol = {float(tol):.16e} : f64}}"
    layouts = [(0,)] * len(operands), [(0,)]
    return b.custom_call("cusolver_csrlsvqr_ffi", operands, [b.out], config=config, layouts=layouts)


@spsolve_p.jvp
def _(primals, tangents, **params):
    """Differentiate `a x = b`: `da x + a dx = db`."""
    data, indices, indptr, b = primals
    t_data, _, _, t_b = tangents
    out = spsolve_p.bind(*primals, **params)
    total: Any = zero_like(out)
    if type(t_b) is not Zero:
        total = spsolve_p.bind(data, indices, indptr, t_b, **params)
    if type(t_data) is not Zero:
        size = get_aval(b).shape[0]
        change = csr_matvec_p.bind(
            t_data, indices, indptr, out, shape=(size, size), transpose=False
        )
        part = spsolve_p.bind(data, indices, indptr, neg(change), **params)
        total = add_tangents(total, part)
    return out, total


@spsolve_p.transpose
def _(ct, data, indices, indptr, b, **params):
    if is_undefined(data):
        raise NotImplementedError("spsolve transpose with respect to data: it is not linear in it.")
    rows = csr_rows(indices, indptr)
    columns, rows, data = sort((indices, rows, data), num_keys=2)
    turned = pointers(columns, ct.shape[0], indptr.dtype)
    return [None, None, None, spsolve_p.bind(data, rows, turned, ct, **params)]


spsolve_p.rule_batch = no_rule(
    "Batching rule for 'spsolve' not implemented: use lax.map over the systems."
)
