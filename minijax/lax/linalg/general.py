"""`eig` of general square matrices, and the forms on the way: `hessenberg` and `schur`."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import no_rule
from minijax.features.library import library
from minijax.lax.arithmetic import (
    abs_p,
    add_p,
    complex_p,
    conj_p,
    div_p,
    imag_p,
    mul_p,
    neg_p,
    real_p,
)
from minijax.lax.compare import eq_p
from minijax.lax.convert import to_dtype
from minijax.lax.creation import iota_p
from minijax.lax.linalg.common import (
    INT32,
    adjoint,
    as_complex,
    check_operands,
    check_square,
    checked,
    decomposition,
    diagonal_of,
    each_matrix,
    lapack,
    matmul,
    mT,
    row,
)
from minijax.lax.linalg.elimination import solve_general
from minijax.lax.linalg.hermitian import gap_inverses
from minijax.lax.reductions import argmax_p
from minijax.lax.shapes import as_value
from minijax.namespace import user_stacklevel
from minijax.transforms.primitives import reduce_sum_p
from minijax.transforms.tangents import Zero, zero_like

__all__ = [
    "EigImplementation", "eig", "eig_p", "hessenberg", "hessenberg_p", "schur", "schur_p",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Libraries that `eig` may use, for all its dtypes: LAPACK on CPU, others on GPU.

    Source: LAPACK, cuSOLVER and MAGMA.

    >>> lax.linalg.EigImplementation.LAPACK.name
    'LAPACK'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


eig_p = decomposition("eig")


@eig_p.shape_rule
def _(
    x,
    *,
    compute_left_eigenvectors,
    compute_right_eigenvectors,
    enable_eigvec_derivs,
    implementation,
):
    check_operands("eig", (x,), (2,))
    check_square("eig", x)
    n, dtype = x.shape[-1], dtypes.to_complex_dtype(x.dtype)
    count = bool(compute_left_eigenvectors) + bool(compute_right_eigenvectors)
    return [each_matrix(x, n, dtype=dtype), *[each_matrix(x, n, n, dtype=dtype)] * count]


_WHY_NO_VECTORS = (
    "Derivatives of non-symmetric eigenvectors are only valid where eigenvalues are distinct, which "
    "cannot be checked here, and depend on how the vectors are normalized. Pass "
    "enable_eigvec_derivs=True to lax.linalg.eig to have them nevertheless; those of eigenvalues "
    "alone need compute_left_eigenvectors=False and compute_right_eigenvectors=False."
)


@eig_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    if (left or right) and not params["enable_eigvec_derivs"]:
        raise NotImplementedError(_WHY_NO_VECTORS)
    if type(t) is Zero:
        outs = eig_p.bind(x, **params)
        return outs, list(map(zero_like, outs))
    params["compute_right_eigenvectors"] = True
    w, *vectors = eig_p.bind(x, **params)
    v = vectors[-1]
    t = as_complex(t)
    turned = solve_general(v, t)
    if not (left or right):  # the diagonal alone of v^-1 dx v
        product = mul_p.bind(turned, mT(v))
        return [w], [reduce_sum_p.bind(product, axes=(v.ndim - 1,), out_sharding=None)]
    c = matmul(turned, v)  # with x v = v w
    outs, t_outs = [w], [diagonal_of(c)]
    if left:
        # Those of the adjoint: x^H u = u conj(w).
        u = vectors[0]
        values = conj_p.bind(w, input_dtype=w.dtype)
        outs.append(u)
        t_outs.append(_vector_tangent(values, u, matmul(solve_general(u, adjoint(t)), u)))
    if right:
        outs.append(v)
        t_outs.append(_vector_tangent(w, v, c))
    return outs, t_outs


def _vector_tangent(w: Any, v: Any, c: Any) -> Any:
    """The tangents of eigenvectors, from `c = v^-1 dx v`, that keep LAPACK's normalization.

    It makes each vector of length 1, with its largest component real: what is added to a tangent is
    the vector times a number whose real part keeps the length and whose imaginary part the phase.
    """
    t = matmul(v, mul_p.bind(gap_inverses(w), c))
    axis = v.ndim - 2
    sizes = abs_p.bind(v)
    largest = argmax_p.bind(sizes, axes=(axis,), index_dtype=INT32)
    places = iota_p.bind(dtype=INT32, shape=v.shape, dimension=axis, sharding=None)
    chosen = to_dtype(eq_p.bind(places, row(largest)), v.dtype)

    def summed(x):
        return reduce_sum_p.bind(x, axes=(axis,), out_sharding=None)

    along = summed(mul_p.bind(conj_p.bind(v, input_dtype=v.dtype), t))
    slant = neg_p.bind(imag_p.bind(summed(mul_p.bind(chosen, t))))
    turn = div_p.bind(slant, real_p.bind(summed(mul_p.bind(chosen, v))))
    factor = complex_p.bind(neg_p.bind(real_p.bind(along)), turn)
    return add_p.bind(t, mul_p.bind(v, row(factor)))


@eig_p.lower
def _(
    b, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
    implementation,
):  # fmt: skip
    if b.platform == "cpu" and implementation not in (None, EigImplementation.LAPACK):
        raise ValueError("Only the lapack implementation is supported on CPU: leave it out.")
    if 0 in x.shape:
        return [b.full(0, out) for out in b.outs]
    values, *_ = b.outs
    lead = x.shape[:-2]
    vectors = each_matrix(x.aval, *x.shape[-2:], dtype=values.dtype)
    real = values.update(dtype=dtypes.to_real_dtype(values.dtype))
    is_real = x.dtype.kind != "c"
    outs = [*([real, real] if is_real else [values]), vectors, vectors]
    *w, left, right, info = lapack(
        b,
        "geev",
        (x,),
        [*outs, ShapedArray(lead, INT32)],
        len(lead),
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    w = b.op("stablehlo.complex", w, values) if is_real else w[0]
    found = [w, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]
    return checked(b, info, found)


def eig(
    x: Array,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Compute eigenvalues and eigenvectors: `x @ v = v * w` and `u^H @ x = w * u^H`.

    - `x`: floating-point or complex array of shape (..., n, n)
    - `compute_left_eigenvectors`, `compute_right_eigenvectors`: whether to return `u` and `v`
    - `enable_eigvec_derivs`: whether eigenvectors may be differentiated, as eigenvalues always may
    - `implementation`, `use_magma`: library to use on GPU

    The result is a list of `w` of shape (..., n), `u` and `v` of shape (..., n, n), all complex.
    Vectors have length 1 and a real largest component. ValueError unless matrices are square,
    TypeError for other dtypes.
    Source: LAPACK's `geev`.

    >>> lax.linalg.eig(jnp.diag(jnp.array([1.0, 2.0])))[0]
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    if use_magma is not None:
        warnings.warn(
            "use_magma is deprecated, please use implementation=EigImplementation.MAGMA instead.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
        if use_magma and implementation is None:
            implementation = EigImplementation.MAGMA
    return _eig(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


_FLAGS = (
    "compute_left_eigenvectors", "compute_right_eigenvectors", "enable_eigvec_derivs",
    "implementation",
)  # fmt: skip


@library(static=_FLAGS)
def _eig(
    x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
    implementation,
):  # fmt: skip
    return eig_p.bind(
        as_value(x),
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
    )


# -- hessenberg -----------------------------------------------------------------------------------

hessenberg_p = decomposition("hessenberg")


@hessenberg_p.shape_rule
def _(a):
    check_operands("hessenberg", (a,), (2,))
    n = a.shape[-1]
    if a.shape[-2] != n:
        raise ValueError(
            f"Argument to Hessenberg reduction must have shape [..., n, n], got shape {a.shape}."
        )
    return [a, each_matrix(a, max(n - 1, 0))]


hessenberg_p.rule_jvp = no_rule("Differentiation rule for 'hessenberg' not implemented.")


@hessenberg_p.lower
def _(b, a):
    if 0 in a.shape:
        return [b.full(0, out) for out in b.outs]
    lead = a.shape[:-2]
    outs = [*b.outs, ShapedArray(lead, np.int32)]
    reduced, taus, info = lapack(
        b, "gehrd", (a,), outs, len(lead), aliased=(0,), high=a.shape[-1], low=1
    )
    return checked(b, info, (reduced, taus))


@library
def hessenberg(a: Array) -> tuple[Array, Array]:
    """Reduce square matrices to upper Hessenberg form, which is zero below the first subdiagonal.

    - `a`: floating-point or complex array of shape (..., n, n)

    The result is the form, with the reflectors of the similarity below its subdiagonal, and their
    scalars of shape (..., n - 1); see `householder_product`. ValueError unless matrices are square,
    TypeError for other dtypes. Source: LAPACK's `gehrd`.

    >>> [x.shape for x in lax.linalg.hessenberg(jnp.ones((3, 3)))]
    [(3, 3), (2,)]
    """
    return hessenberg_p.bind(as_value(a))


# -- schur ----------------------------------------------------------------------------------------

schur_p = decomposition("schur")


@schur_p.shape_rule
def _(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    check_operands("schur", (x,), (2,))
    check_square("schur", x)
    return [x, x] if compute_schur_vectors else [x]


schur_p.rule_jvp = no_rule("Differentiation rule for 'schur' not implemented.")


@schur_p.lower
def _(b, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    if sort_eig_vals:
        raise NotImplementedError("The sort feature of LAPACK's gees routine is not implemented.")
    if 0 in x.shape:
        return [b.full(0, out) for out in b.outs]
    lead = x.shape[:-2]
    aval, values, count = x.aval, each_matrix(x.aval, x.shape[-1]), ShapedArray(lead, INT32)
    outs = [aval, aval, *[values] * (1 if x.dtype.kind == "c" else 2), count, count]
    mode = "V" if compute_schur_vectors else "N"
    form, vectors, *_, info = lapack(
        b, "gees", (x,), outs, len(lead), aliased=(0,), mode=mode, sort="N"
    )
    return checked(b, info, (form, vectors)[: len(b.outs)])


@library(
    static=("compute_schur_vectors", "sort_eig_vals", "select_callable"),
    converted=("compute_schur_vectors", "sort_eig_vals"),
)
def schur(
    x: Array,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Array, ...]:
    """Compute the Schur form of square matrices: `x = z @ t @ z^H` with `t` upper triangular.

    - `x`: floating-point or complex array of shape (..., n, n)
    - `compute_schur_vectors`: whether to return `z`
    - `sort_eig_vals`, `select_callable`: not supported (NotImplementedError)

    The result is `t`, and `z` if computed, of the shape and dtype of `x`; for real matrices `t` has
    blocks of two rows for complex pairs. ValueError unless matrices are square, TypeError for other
    dtypes.
    Source: LAPACK's `gees`.

    >>> lax.linalg.schur(jnp.diag(jnp.array([1.0, 2.0])))[0]
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    return schur_p.bind(
        as_value(x),
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )
