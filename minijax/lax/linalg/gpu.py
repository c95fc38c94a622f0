"""Linear algebra on GPUs: calls of cuSOLVER, cuSPARSE and MAGMA, and of AMD's counterparts.

Each rule here stands for the platforms "cuda" and "rocm", whose kernels differ by the first letters
of their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.lax.linalg.common import INT32, adjoint, checked, each_matrix, kernel, part
from minijax.lax.linalg.definite import cholesky_p, cholesky_update_p, symmetric_product_p
from minijax.lax.linalg.elimination import lu_p, lu_pivots_to_permutation_p
from minijax.lax.linalg.general import EigImplementation, eig_p
from minijax.lax.linalg.hermitian import EighImplementation, eigh_p, tridiagonal_p
from minijax.lax.linalg.orthogonal import geqp3_p, geqrf_p, householder_product_p, ormqr_p
from minijax.lax.linalg.singular_values import SvdAlgorithm, svd_p
from minijax.lax.linalg.three_diagonals import solve_by_elimination, tridiagonal_solve_p
from minijax.lowering.module import lower_by

__all__: list[str] = []

_GPUS = ("cuda", "rocm")
_PREFIX = {"cuda": "cu", "rocm": "hip"}


def _name(b: Any, rest: str) -> str:
    return f"{_PREFIX[b.platform]}{rest}"


def _counts(lead: tuple[int, ...]) -> ShapedArray:
    """Return the type of the status of each matrix of a batch."""
    return ShapedArray(lead, INT32)


# -- definite and general matrices ------------------------------------------------------------


@cholesky_p.lower_on(*_GPUS)
def _(b, x):
    lead = x.shape[:-2]
    outs = [b.out, _counts(lead)]
    factor, info = kernel(
        b, _name(b, "solver_potrf_ffi"), (x,), outs, len(lead), aliased=(0,), lower=True
    )
    return checked(b, info, [factor])[0]


def _by_rows(avals: Any) -> list[list[int]]:
    return [list(range(x.ndim))[::-1] for x in avals]


@cholesky_update_p.lower_on("cuda")
def _(b, r, w):
    layouts = tuple([_by_rows((r.aval, w.aval))] * 2)
    outs, aliases = (b.out, w.aval), ((0, 0), (1, 1))
    return b.custom_call(
        "cu_cholesky_update_ffi", (r, w), outs, config="{}", layouts=layouts, aliases=aliases
    )[0]


@symmetric_product_p.lower_on("cuda")
def _(b, a, c, *, alpha, beta):
    scalar = a.aval.update(shape=())
    operands = (a, c, b.constant(alpha, scalar), b.constant(beta, scalar))
    layouts = _by_rows([x.aval for x in operands]), _by_rows([b.out])
    return b.custom_call(
        "cusolver_syrk_ffi", operands, [b.out], config="{transpose = false}", layouts=layouts,
        aliases=((1, 0),),
    )[0]  # fmt: skip


@lu_pivots_to_permutation_p.lower_on(*_GPUS)
def _(b, pivots, *, permutation_size):
    lead = len(pivots.shape) - 1
    return kernel(b, _name(b, "_lu_pivots_to_permutation"), (pivots,), [b.out], lead)[0]


@lu_p.lower_on(*_GPUS)
def _(b, x):
    out, pivots, permutation = b.outs
    lead = x.shape[:-2]
    outs = [out, pivots, _counts(lead)]
    factors, swaps, info = kernel(
        b, _name(b, "solver_getrf_ffi"), (x,), outs, len(lead), aliased=(0,)
    )
    swaps = b.op("stablehlo.subtract", (swaps, b.full(1, pivots)), pivots)  # counted from 1
    (factors,) = checked(b, info, [factors], "GE")
    name = _name(b, "_lu_pivots_to_permutation")
    return [factors, swaps, kernel(b, name, (swaps,), [permutation], len(lead))[0]]


# -- orthogonal factors -----------------------------------------------------------------------


@geqrf_p.lower_on(*_GPUS)
def _(b, a):
    return kernel(b, _name(b, "solver_geqrf_ffi"), (a,), b.outs, len(a.shape) - 2, aliased=(0,))


_MAGMA = {None: "auto", True: "on", False: "off"}


@geqp3_p.lower_on(*_GPUS)
def _(b, a, pivots, *, use_magma):
    return kernel(
        b, _name(b, "hybrid_geqp3"), (a, pivots), b.outs, len(a.shape) - 2, aliased=(0, 1),
        magma=_MAGMA[use_magma],
    )  # fmt: skip


@householder_product_p.lower_on(*_GPUS)
def _(b, a, taus):
    name = _name(b, "solver_orgqr_ffi")
    return kernel(b, name, (a, taus), [b.out], len(a.shape) - 2, aliased=(0,))[0]


@ormqr_p.lower_on(*_GPUS)
def _(b, a, taus, c, *, left, transpose):
    return kernel(
        b, _name(b, "solver_ormqr_ffi"), (a, taus, c), [b.out], len(a.shape) - 2, aliased=(2,),
        left=left, transpose=transpose,
    )[0]  # fmt: skip


# -- eigenvalues ------------------------------------------------------------------------------

_EIGH = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


@eigh_p.lower_on(*_GPUS)
def _(b, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    if algorithm not in _EIGH:
        raise NotImplementedError(
            f"{algorithm.name} algorithm is not supported on GPU: leave `implementation` out, or "
            "give QR or JACOBI."
        )
    if subset_by_index is not None and subset_by_index != (0, x.shape[-1]):
        raise NotImplementedError(
            "subset_by_index not supported on CPU and GPU: take a slice of the results."
        )
    lead = x.shape[:-2]
    outs = [*b.outs, _counts(lead)]
    v, w, info = kernel(
        b, _name(b, "solver_syevd_ffi"), (x,), outs, len(lead), aliased=(0,),
        algorithm=np.uint8(_EIGH[algorithm]), lower=lower,
    )  # fmt: skip
    return checked(b, info, (v, w))


@tridiagonal_p.lower_on(*_GPUS)
def _(b, x, *, lower):
    lead = x.shape[:-2]
    outs = [*b.outs, _counts(lead)]
    name = _name(b, "solver_sytrd_ffi")
    *found, info = kernel(b, name, (x,), outs, len(lead), aliased=(0,), lower=lower)
    return checked(b, info, found)


_EIG = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}


@eig_p.lower_on(*_GPUS)
def _(
    b, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
    implementation,
):  # fmt: skip
    if implementation not in _EIG:
        raise RuntimeError(
            "Nonsymmetric eigendecomposition requires cusolver 11.7.1 or newer, which minijax does "
            "not call: leave `implementation` out, or give MAGMA or LAPACK."
        )
    values = b.outs[0]
    lead, is_real = x.shape[:-2], x.dtype.kind != "c"
    vectors = each_matrix(x.aval, *x.shape[-2:], dtype=values.dtype)
    real = values.update(dtype=dtypes.to_real_dtype(values.dtype))
    outs = [*([real, real] if is_real else [values]), vectors, vectors, _counts(lead)]
    *w, left, right, info = kernel(
        b, _name(b, f"hybrid_eig_{'real' if is_real else 'comp'}"), (x,), outs, len(lead),
        left=bool(compute_left_eigenvectors), magma=_EIG[implementation],
        right=bool(compute_right_eigenvectors),
    )  # fmt: skip
    w = b.op("stablehlo.complex", w, values) if is_real else w[0]
    found = [w, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]
    return checked(b, info, found)


# -- singular values --------------------------------------------------------------------------

_MOST_IN_BATCH = 32
_MOST_BY_JACOBI = 1024  # rows and columns that cuSOLVER's one-sided Jacobi is chosen for


@svd_p.lower_on(*_GPUS)
def _(b, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    rows, columns = x.shape[-2:]
    if subset_by_index is not None and subset_by_index != (0, min(rows, columns)):
        raise NotImplementedError(
            "subset_by_index not implemented for CPU and GPU: take a slice of the results."
        )
    if 0 in (rows, columns):
        return svd_p.rule_lower.default(
            b, x, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=None,
            subset_by_index=None,
        )  # fmt: skip
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        small = rows <= _MOST_BY_JACOBI and columns <= _MOST_BY_JACOBI
        algorithm = SvdAlgorithm.JACOBI if small else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and b.platform == "cuda":
        raise NotImplementedError(
            "Divide-and-conquer SVD (DIVIDE_AND_CONQUER) is only supported on AMD (ROCm) GPUs, not "
            "on NVIDIA CUDA: leave `algorithm` out."
        )
    s, u, vh, info = _SVD[algorithm](b, x, full_matrices, compute_uv)
    return checked(b, info, ((s, u, vh) if compute_uv else (s,)))


def _decomposed(b, routine, x, shapes, **flags):
    """Call a kernel whose results are the operand, the values, two of `shapes` and its success."""
    lead = x.shape[:-2]
    real = dtypes.to_real_dtype(x.dtype)
    values = each_matrix(x.aval, min(x.shape[-2:]), dtype=real)
    vectors = [
        each_matrix(x.aval, *shape) if shape else x.aval.update(shape=()) for shape in shapes
    ]
    outs = [x.aval, values, *vectors, _counts(lead)]
    return kernel(b, _name(b, routine), (x,), outs, len(lead), aliased=(0,), **flags)[1:]


def _adjoint(b, x):
    return lower_by(adjoint)(b, x)[0]


def _by_jacobi(b, x, full_matrices, compute_uv):
    """The batched kernel, which is for few rows or columns, gives all vectors of the bases."""
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    whole = full_matrices or not compute_uv or k <= _MOST_IN_BATCH
    left, right = (rows, columns) if whole else (k, k)
    s, u, v, info = _decomposed(
        b, "solver_gesvdj_ffi", x, ((rows, left), (columns, right)), compute_uv=compute_uv,
        full_matrices=whole,
    )  # fmt: skip
    if not compute_uv:
        return s, u, v, info
    v = _adjoint(b, v)
    if whole and not full_matrices:
        u, v = _block(b, u, rows, k), _block(b, v, k, columns)
    return s, u, v, info


def _block(b, x, rows, columns):
    return lower_by(_leading)(b, x, rows=rows, columns=columns)[0]


def _leading(x, *, rows, columns):
    return part(x, (0, rows), (0, columns))


def _by_polar(b, x, full_matrices, compute_uv):
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (k, k)
    s, u, v, info = _decomposed(
        b, "solver_gesvdp_ffi", x, ((rows, left), (columns, right)), compute_uv=compute_uv,
        full_matrices=full_matrices,
    )  # fmt: skip
    return s, u, _adjoint(b, v) if compute_uv else v, info


def _by_qr(b, x, full_matrices, compute_uv, routine="solver_gesvd_ffi", turns=True):
    """LAPACK's `gesvd` takes tall matrices: a wide one is its transpose where it is read by rows."""
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (k, k)
    shapes: tuple = ((rows, left), (right, columns))
    turned = turns and rows < columns
    if turned:
        shapes = shapes[::-1]
    s, u, vh, info = _decomposed(
        b, routine, x, shapes if compute_uv else ((), ()), compute_uv=compute_uv,
        full_matrices=full_matrices, transposed=turned, by_columns=not turned,
    )  # fmt: skip
    return (s, vh, u, info) if turned else (s, u, vh, info)


def _by_dividing(b, x, full_matrices, compute_uv):
    return _by_qr(b, x, full_matrices, compute_uv, "solver_gesdd_ffi", turns=False)


_SVD = {
    SvdAlgorithm.JACOBI: _by_jacobi,
    SvdAlgorithm.POLAR: _by_polar,
    SvdAlgorithm.QR: _by_qr,
    SvdAlgorithm.DIVIDE_AND_CONQUER: _by_dividing,
}

# -- three diagonals --------------------------------------------------------------------------

_LEAST_ROWS = 3  # of cuSPARSE's solver


@tridiagonal_solve_p.lower_on(*_GPUS)
def _(b, dl, d, du, y, *, perturb_singular):
    operands, lead = (dl, d, du, y), len(y.shape) - 2
    if perturb_singular:
        return kernel(b, _name(b, "_tridiagonal_solve_perturbed"), operands, [b.out], lead)[0]
    if y.shape[-2] < _LEAST_ROWS:
        return lower_by(solve_by_elimination)(b, *operands)
    return kernel(b, _name(b, "sparse_gtsv2_ffi"), operands, [b.out], lead, aliased=(3,))[0]
