"""`eigh`: eigenvalues and eigenvectors of Hermitian matrices; and `tridiagonal`, its first half."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import no_rule
from minijax.features.library import library
from minijax.lax.arithmetic import add_p, div_p, mul_p, real_p, sub_p
from minijax.lax.linalg.common import (
    adjoint,
    as_complex,
    check_operands,
    check_square,
    checked,
    checked_subset,
    column,
    decomposition,
    diagonal_of,
    each_matrix,
    eye,
    is_complex,
    lapack,
    matmul,
    row,
    spread,
    symmetrized,
)
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import as_value
from minijax.transforms.tangents import Zero, zero_like

__all__ = [
    "EighImplementation", "eigh", "eigh_p", "gap_inverses", "tridiagonal", "tridiagonal_p",
]  # fmt: skip


class EighImplementation(enum.Enum):
    """Algorithms of `eigh`, for all its dtypes: QR on every platform, Jacobi on GPU, QDWH on TPU.

    Source: LAPACK's `syevd`, cuSOLVER's `syevj`; Nakatsukasa and Higham (2013).

    >>> lax.linalg.EighImplementation.QR.name
    'QR'
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


eigh_p = decomposition("eigh")


@eigh_p.shape_rule
def _(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    check_operands("eigh", (x,), (2,))
    check_square("eigh", x)
    n = x.shape[-1]
    count = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    if count < 0:
        raise ValueError(
            f"eigh: subset_by_index must be a pair (start, end) with start <= end; got "
            f"{subset_by_index}."
        )
    return [
        each_matrix(x, n, count),
        each_matrix(x, count, dtype=dtypes.to_real_dtype(x.dtype)),
    ]


def gap_inverses(values: Any) -> Any:
    """`1 / (w[j] - w[i])` off the diagonal, and zero on it; infinite where eigenvalues repeat."""
    n = values.shape[-1]
    ones = spread(eye(n, values.dtype), values.shape[:-1])
    gaps = sub_p.bind(add_p.bind(ones, row(values)), column(values))
    return sub_p.bind(div_p.bind(scalar_like(1, gaps), gaps), ones)


@eigh_p.jvp
def _(primals, tangents, **params):
    # With x v = v w: dw is the diagonal of c = v^H dx v, and dv = v (c / gaps).
    (x,), (t,) = primals, tangents
    if type(t) is Zero:
        outs = eigh_p.bind(x, **params)
        return outs, list(map(zero_like, outs))
    v, w = outs = eigh_p.bind(symmetrized(x), **params)
    if w.shape[-1] != x.shape[-1]:
        raise NotImplementedError(
            "Derivatives not defined for partial eigen decomposition: leave subset_by_index out."
        )
    gaps = gap_inverses(as_complex(w) if is_complex(v) else w)
    c = matmul(matmul(adjoint(v), t), v)
    t_v = matmul(v, mul_p.bind(gaps, c))
    t_w = diagonal_of(real_p.bind(c) if is_complex(c) else c)
    return outs, [t_v, t_w]


@eigh_p.lower
def _(b, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    vectors, values = b.outs
    if algorithm in (EighImplementation.JACOBI, EighImplementation.QDWH):
        of_jacobi = algorithm is EighImplementation.JACOBI
        which = "Jacobi implementation is not supported on CPU"
        which = which if of_jacobi else "QDWH implementation is only supported on TPU"
        raise NotImplementedError(f"{which}: leave `implementation` of eigh out, or give QR.")
    if subset_by_index is not None and subset_by_index != (0, x.shape[-1]):
        raise NotImplementedError(
            "subset_by_index not supported on CPU and GPU: take a slice of the results."
        )
    if 0 in x.shape:
        return [b.full(0, vectors), b.full(0, values)]
    lead = x.shape[:-2]
    outs = [vectors, values, ShapedArray(lead, np.int32)]
    uplo = "L" if lower else "U"
    v, w, info = lapack(
        b, ("syevd", "heevd"), (x,), outs, len(lead), aliased=(0,), mode="V", uplo=uplo
    )
    return checked(b, info, (v, w))


@library(
    static=("lower", "symmetrize_input", "sort_eigenvalues", "subset_by_index", "implementation"),
    converted=("lower", "symmetrize_input", "sort_eigenvalues"),
)
def eigh(
    x: Array,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Compute eigenvalues and eigenvectors of Hermitian matrices: `x @ v = v * w`.

    - `x`: array of shape (..., n, n)
    - `symmetrize_input`: whether to decompose `(x + x^H) / 2`; if False, only the triangle that
      `lower` names is read
    - `sort_eigenvalues`: whether to sort on accelerators; on CPU they are always sorted
    - `subset_by_index`: range of eigenvalues, on TPU (NotImplementedError elsewhere)

    The result is `v` of shape (..., n, n) and the rising `w` of shape (..., n). TypeError unless
    matrices are square. Source: LAPACK's `syevd` and `heevd`.

    >>> lax.linalg.eigh(jnp.diag(jnp.array([2.0, 1.0])))[1]
    Array([1., 2.], dtype=float32)
    """
    if symmetrize_input:
        x = symmetrized(x)
    v, w = eigh_p.bind(
        as_value(x),
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=checked_subset("eigh", subset_by_index),
        algorithm=implementation,
    )
    return v, w


# -- tridiagonal --------------------------------------------------------------------------------

tridiagonal_p = decomposition("tridiagonal")


@tridiagonal_p.shape_rule
def _(x, *, lower):
    check_operands("tridiagonal", (x,), (2,))
    check_square("tridiagonal", x)
    n = x.shape[-1]
    if not n:
        raise ValueError(f"tridiagonal takes matrices with at least one row: got shape {x.shape}.")
    real = dtypes.to_real_dtype(x.dtype)
    return [
        x,
        each_matrix(x, n, dtype=real),
        each_matrix(x, n - 1, dtype=real),
        each_matrix(x, n - 1),
    ]


tridiagonal_p.rule_jvp = no_rule(
    "Differentiation rule for 'tridiagonal' not implemented: differentiate `eigh`."
)


@tridiagonal_p.lower
def _(b, x, *, lower):
    if 0 in x.shape:
        return [b.full(0, out) for out in b.outs]
    lead = x.shape[:-2]
    outs = [*b.outs, ShapedArray(lead, np.int32)]
    uplo = "L" if lower else "U"
    *found, info = lapack(b, ("sytrd", "hetrd"), (x,), outs, len(lead), aliased=(0,), uplo=uplo)
    return checked(b, info, found)


@library(static=("lower",), converted=("lower",))
def tridiagonal(a: Array, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce Hermitian matrices to real tridiagonal form.

    - `a`: floating-point or complex array of shape (..., n, n), of which one triangle is read
    - `lower`: whether it is the lower one

    The result is a list: the form with the reflectors of the similarity, its diagonal of shape
    (..., n), its off-diagonal and the reflectors' scalars, of shape (..., n - 1). ValueError unless
    matrices are square, TypeError for other dtypes.
    Source: LAPACK's `sytrd` and `hetrd`.

    >>> [x.shape for x in lax.linalg.tridiagonal(jnp.eye(3))]
    [(3, 3), (3,), (2,), (2,)]
    """
    return tridiagonal_p.bind(as_value(a), lower=bool(lower))
