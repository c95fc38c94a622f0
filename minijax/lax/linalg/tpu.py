"""Linear algebra on TPUs: operations that the TPU's compiler expands itself, and programs of
those.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.lax.arithmetic import abs_p, add_p, conj_p, max_p, mul_p, neg_p, sign_p, sub_p
from minijax.lax.compare import and_p, eq_p, gt_p, select_n_p
from minijax.lax.control_flow.loops import fori_loop, while_loop
from minijax.lax.control_flow.scan import map as map_rows
from minijax.lax.creation import full_like, iota
from minijax.lax.dynamic_slicing import dynamic_index_in_dim
from minijax.lax.joining import concatenate_p
from minijax.lax.linalg.common import (
    INT32,
    adjoint,
    diagonal_of,
    eye,
    is_complex,
    matmul,
    mT,
    part,
    spread,
    take_lower,
)
from minijax.lax.linalg.definite import cholesky_p
from minijax.lax.linalg.elimination import lu_p, take_rows
from minijax.lax.linalg.hermitian import EighImplementation, eigh_p
from minijax.lax.linalg.orthogonal import geqrf_p, householder_product_p, ormqr_p, qr_p
from minijax.lax.linalg.polar import qdwh
from minijax.lax.linalg.singular_values import SvdAlgorithm, svd_p
from minijax.lax.linalg.spectral import eigh_by_division
from minijax.lax.linalg.three_diagonals import solve_by_elimination, tridiagonal_solve_p
from minijax.lax.reductions import reduce_max_p
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import reshaped
from minijax.lax.slicing import slice_p
from minijax.lax.sorting import sort_p
from minijax.lowering.module import lower_by
from minijax.runtime.escape import quoted
from minijax.transforms.primitives import to_shape
from minijax.transforms.vmap import vmap

__all__: list[str] = []


@cholesky_p.lower_on("tpu")
def _(b, x):
    return b.op("stablehlo.cholesky", (x,), b.out, "lower = true")


def _call(b, target: str, *operands: Any, config: str = "", api_version: int = 1) -> list[Any]:
    return b.custom_call(target, operands, b.outs, config=quoted(config), api_version=api_version)


@lu_p.lower_on("tpu")
def _(b, x):
    return _call(b, "LuDecomposition", x, api_version=2)


@geqrf_p.lower_on("tpu")
def _(b, a):
    return _call(b, "Qr", a)


@householder_product_p.lower_on("tpu")
def _(b, a, taus):
    return _call(b, "ProductOfElementaryHouseholderReflectors", a, taus)[0]


def _apply_reflectors(a, taus, c, *, left, transpose):
    """The product with `q = h[0] h[1] ...` by one reflector after another: `c - tau v (v^H c)`."""
    rows, count = a.shape[-2], taus.shape[-1]
    unit = spread(eye(rows, a.dtype, a.shape[-1]), a.shape[:-2])
    vectors = add_p.bind(take_lower(a, -1), unit)
    taus = _conjugate(taus) if transpose else taus
    forward = left == transpose  # whether the first reflector is that which is applied first

    def step(i, c):
        i = i if forward else sub_p.bind(scalar_like(count - 1, i), i)
        v = dynamic_index_in_dim(vectors, i, vectors.ndim - 1)
        tau = dynamic_index_in_dim(taus, i, taus.ndim - 1)
        turned = mT(_conjugate(v))
        pair = [v, matmul(turned, c)] if left else [turned, matmul(c, v)]
        tau = to_shape(tau, pair[1].shape, range(tau.ndim))
        pair[1] = mul_p.bind(tau, pair[1])
        return sub_p.bind(c, mul_p.bind(*[to_shape(x, c.shape, range(c.ndim)) for x in pair]))

    return fori_loop(np.int32(0), np.int32(count), step, c)


def _conjugate(x: Any) -> Any:
    return conj_p.bind(x, input_dtype=x.dtype) if is_complex(x) else x


@ormqr_p.lower_on("tpu")
def _(b, a, taus, c, *, left, transpose):
    return lower_by(_apply_reflectors)(b, a, taus, c, left=left, transpose=transpose)


@tridiagonal_solve_p.lower_on("tpu")
def _(b, dl, d, du, y, *, perturb_singular):
    if perturb_singular:
        raise NotImplementedError("perturb_singular=True is not supported on this platform.")
    return lower_by(solve_by_elimination)(b, dl, d, du, y)


# -- eigenvalues ------------------------------------------------------------------------------

_SWEEPS, _TOLERANCE = 100, "1e-6"
_LARGEST = 256  # rows for which rotations are the fastest


def _eigh_call(b, x, outs, lower, sort):
    """The TPU's own decomposition, by Jacobi rotations."""
    config = f"{int(lower)},{int(sort)},{_SWEEPS},{_TOLERANCE}"
    return b.custom_call("Eigh", (x,), outs, config=quoted(config), api_version=1)


@eigh_p.lower_on("tpu")
def _(b, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    if algorithm is EighImplementation.QR:
        raise NotImplementedError(
            "QR algorithm is not supported on TPU: leave `implementation` out, or give JACOBI."
        )
    n = x.shape[-1]
    if not n:
        return [b.full(0, out) for out in b.outs]
    if n > _LARGEST and algorithm is not EighImplementation.JACOBI:
        rule = lower_by(_large_eigh)
        return rule(b, x, lower=lower, sort=sort_eigenvalues, subset=subset_by_index)
    values = b.outs[1]
    whole = [x.aval, values.update(shape=(*values.shape[:-1], n))]
    v, w = _eigh_call(b, x, whole, lower, sort_eigenvalues or subset_by_index is not None)
    if subset_by_index is None or subset_by_index == (0, n):
        return [v, w]
    start, stop = subset_by_index
    return [
        *lower_by(_columns)(b, v, start=start, stop=stop),
        *lower_by(_elements)(b, w, start=start, stop=stop),
    ]


def _large_eigh(x, *, lower, sort, subset):
    """Each matrix is divided until the TPU's own decomposition takes what is left."""
    n = x.shape[-1]
    x = x if lower else adjoint(x)
    whole = add_p.bind(take_lower(x), adjoint(take_lower(x, -1)))

    def one(x):
        v, w = eigh_by_division(x, kernel=_small_eigh, base=_LARGEST, sort=sort, subset=subset)
        if subset is None or subset == (0, n):
            return [v, w]
        return [
            _columns(v, start=subset[0], stop=subset[1]),
            _elements(w, start=subset[0], stop=subset[1]),
        ]

    # One after the other: under vmap each would take both sides of every choice.
    lead = x.shape[:-2]
    if not lead:
        return one(whole)
    found = map_rows(one, reshaped(whole, (math.prod(lead), n, n)))
    return [reshaped(y, (*lead, *y.shape[1:])) for y in found]


def _small_eigh(a, inside):
    return eigh_p.bind(a, lower=True, sort_eigenvalues=False, subset_by_index=None, algorithm=None)


def _columns(x, *, start, stop):
    return part(x, (0, x.shape[-2]), (start, stop))


def _elements(x, *, start, stop):
    lead = x.shape[:-1]
    return slice_p.bind(
        x, start_indices=(*[0] * len(lead), start), limit_indices=(*lead, stop), strides=None
    )


# -- singular values --------------------------------------------------------------------------


@svd_p.lower_on("tpu")
def _(b, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.POLAR):
        raise NotImplementedError(
            "Only the POLAR (which is also DEFAULT on TPU) SVD algorithm is supported on TPU: leave "
            "`algorithm` out."
        )
    if 0 in x.shape:
        return svd_p.rule_lower.default(
            b, x, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=None,
            subset_by_index=None,
        )  # fmt: skip
    rule = lower_by(_svd)
    return rule(b, x, full=full_matrices, vectors=compute_uv, subset=subset_by_index)


def _svd(x, *, full, vectors, subset):
    """The singular value decomposition of each matrix, by its polar decomposition."""
    one = functools.partial(_svd_of_one, full=full, vectors=vectors, subset=subset)
    for size in reversed(x.shape[:-2]):
        one = vmap(one, axis_size=size)
    return one(x)


def _svd_of_one(x, *, full, vectors, subset):
    rows, columns = x.shape
    if rows < columns:
        found = _svd_of_one(adjoint(x), full=full, vectors=vectors, subset=subset)
        return found if not vectors else [found[0], adjoint(found[2]), adjoint(found[1])]
    subset = None if subset == (0, columns) else subset
    if rows == columns:
        return _svd_of_square(x, vectors, subset)
    q, r = qr_p.bind(x, pivoting=False, full_matrices=full and vectors, use_magma=None)
    s, *rest = _svd_of_square(part(r, (0, columns), (0, columns)), vectors, subset)
    return [s, *([_put_into(q, rest[0]), rest[1]] if vectors else [])]


def _put_into(q, u):
    """`q` times `u`, which concerns its first columns; the others stay as they are."""
    rows, columns, k = *q.shape, u.shape[0]
    product = matmul(part(q, (0, rows), (0, k)), u)
    if columns == k:
        return product
    return concatenate_p.bind(product, part(q, (0, rows), (k, columns)), dimension=1)


def _svd_of_square(x, vectors, subset):
    """`x = p h`, `h = v w v^H`, so that the singular values are those of `h`, and `u = p v`.

    Source: Higham and Papadimitriou, "A parallel algorithm for computing the polar decomposition"
    (1994).
    """
    p, h, _, _ = qdwh(x)
    n = x.shape[0]
    rising = None if subset is None else (n - subset[1], n - subset[0])
    v, w = eigh_p.bind(
        h, lower=True, sort_eigenvalues=subset is not None, subset_by_index=rising, algorithm=None
    )
    places = iota(INT32, w.shape[0])
    falling, order = sort_p.bind(neg_p.bind(w), places, dimension=0, is_stable=True, num_keys=1)
    s = max_p.bind(neg_p.bind(falling), scalar_like(0, w))
    if not vectors:
        return [s]
    v = mT(take_rows(mT(v), order))
    return [s, _orthonormal(matmul(p, v)), adjoint(v)]


def _orthonormal(u):
    """`u` with those columns replaced that belong to singular values of zero, which come last."""
    n = u.shape[1]
    one = eye(n, u.dtype)
    tolerance = 10 * u.shape[0] * float(dtypes.finfo(u.dtype).eps)

    def off(carry):
        error = abs_p.bind(sub_p.bind(matmul(adjoint(carry[0]), carry[0]), one))
        largest = reduce_max_p.bind(error, axes=(0, 1))
        wrong = gt_p.bind(largest, scalar_like(tolerance, largest))
        return and_p.bind(wrong, carry[1])

    def complete(carry):
        q, r = qr_p.bind(carry[0], pivoting=False, full_matrices=False, use_magma=None)
        signs = sign_p.bind(diagonal_of(r))
        nothing = eq_p.bind(signs, scalar_like(0, signs))
        ones = full_like(signs, 1)
        return mul_p.bind(q, spread(select_n_p.bind(nothing, signs, ones), (u.shape[0],))), False

    return while_loop(off, complete, (u, True))[0]
