"""`lax.linalg`: every public function against upstream."""

import numpy as np
import pytest

import minijax
import minijax.lax.linalg
from tests.cases.linear_cases import (
    NEWER,
    cases,
    check_names,
    definite,
    given,
    matrix,
    run,
    table_row,
)
from tests.harness.differential import x64
from tests.harness.rules import in_both

pytestmark = pytest.mark.both_ends

T, R, W = matrix(3, 3), matrix(4, 3), matrix(2, 3)
TB, RB = matrix(2, 3, 3), matrix(2, 4, 3)
V, VB = matrix(3), matrix(2, 3)
none = {"grad": "", "batch": "f"}
row = table_row(lambda m: m.lax.linalg)

LAX = [
    row("cholesky", definite(4, 4)),
    row(
        "cholesky", definite(2, 3, 3), label="_raw", with_={"symmetrize_input": False},
        grad="" if NEWER else "fc",
    ),
    row("cholesky", matrix(3, 3), label="_fails", grad=""),
    row("cholesky", matrix(0, 0), label="_empty", kinds="f"),
    row("cholesky_update", lambda d: np.triu(R(d)[:3]), V, kinds="fd", grad="", batch=""),
    row("cholesky_update", lambda d: np.diag([0, 1, 0]).astype(d), lambda d: np.zeros(3, d),
        kinds="fd", grad="", batch=""),
    row("cholesky_update", lambda d: np.diag([0, 1, 0]).astype(d), lambda d: np.eye(3)[0].astype(d),
        kinds="fd", grad="", batch=""),
    row(
        "symmetric_product", RB, matrix(2, 4, 4), kinds="fd", **none,
        with_={"alpha": 2.0, "beta": 0.5, "symmetrize_output": True},
    ),
    row("triangular_solve", T, matrix(3, 2), with_={"left_side": True, "lower": True}),
    row(
        "triangular_solve", T, matrix(5, 3), label="_right",
        with_={"transpose_a": True, "conjugate_a": True},
    ),
    row(
        "triangular_solve", TB, matrix(2, 3, 2), label="_unit", batch="c",
        with_={"left_side": True, "conjugate_a": True, "unit_diagonal": True},
    ),
    row("triangular_solve", T, V, label="_vector", with_={"left_side": True}),
    row("eigh", definite(4, 4)),
    row(
        "eigh", definite(2, 3, 3), label="_raw", with_={"symmetrize_input": False, "lower": False}
    ),
    row("eigh", matrix(0, 0), label="_empty", kinds="f"),
    row("tridiagonal", definite(2, 4, 4), **none),
    row("tridiagonal", definite(3, 3), label="_upper", with_={"lower": False}, **none),
    row("svd", T),
    row("svd", R, label="_thin", with_={"full_matrices": False}),
    row("svd", W, label="_wide", with_={"full_matrices": False}),
    row("svd", RB, label="_values", with_={"compute_uv": False}),
    row("svd", R, label="_full", grad=""),
    row("svd", matrix(3, 0), label="_empty", kinds="f", grad=""),
    row("qr", R),
    row("qr", RB, label="_thin", with_={"full_matrices": False}),
    row("qr", W, label="_wide"),
    row("qr", R, label="_pivoting", with_={"pivoting": True, "full_matrices": False}),
    row("qr", matrix(3, 0), label="_empty", kinds="f", grad=""),
    row("householder_product", RB, matrix(2, 3), **none),
    row("ormqr", RB, matrix(2, 3), matrix(2, 4, 2), with_={"transpose": True}, **none),
    row("ormqr", RB, VB, matrix(2, 5, 4), label="_right", with_={"left": False}, **none),
    row("lu", T),
    row("lu", RB, label="_tall"),
    row("lu", W, label="_wide"),
    row("lu", matrix(3, 0), label="_empty", kinds="f", grad=""),
    row(
        "lu_pivots_to_permutation", given([[1, 2, 2], [2, 1, 2]], np.int32), kinds="fd",
        with_={"permutation_size": 4},
    ),
    row("eig", T, grad="", label="_vectors"),
    row("eig", T, with_={"enable_eigvec_derivs": True}),
    row(
        "eig", TB, label="_values",
        with_={"compute_left_eigenvectors": False, "compute_right_eigenvectors": False},
    ),
    row("hessenberg", matrix(2, 4, 4), **none),
    row("schur", matrix(2, 4, 4), **none),
    row("schur", T, label="_form", with_={"compute_schur_vectors": False}, **none),
    row("tridiagonal_solve", V, lambda d: 5 + V(d), V, matrix(3, 2)),
    row(
        "tridiagonal_solve", VB, lambda d: 0 * VB(d), VB, matrix(2, 3, 2), label="_perturbed",
        with_={"perturb_singular": True}, grad="",
    ),
    row("qdwh", R, batch=""),
    row("qdwh", R, label="_padded", with_={"dynamic_shape": (3, 2)}, grad="", batch=""),
]  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), **cases(LAX))
def test_lax(row, kind):
    with x64(kind in "dz"):
        run(row, kind)


BAD = [
    ("cholesky", [np.ones((3, 2), np.float32)]),
    ("cholesky", [np.ones(3, np.float32)]),
    ("eigh", [np.ones((2, 3), np.float32)]),
    ("eig", [np.ones((2, 3), np.float32)]),
    ("eig", [np.ones((3, 3), np.int32)]),
    ("svd", [np.ones(3, np.float32)]),
    ("svd", [np.ones((3, 3), np.float16)]),
    ("qr", [np.ones((3, 3), bool)]),
    ("lu", [[[1.0, 2.0], [2.0, 5.0]]]),
    ("triangular_solve", [np.ones((3, 3), np.float32), np.ones((2, 2), np.float32)]),
    ("triangular_solve", [np.ones((3, 3), np.float32), np.ones((3, 3), np.complex64)]),
    ("triangular_solve", [np.ones((3, 3), np.float32), np.ones((2, 3, 3), np.float32)]),
    ("lu_pivots_to_permutation", [np.zeros(3, np.int32), 2]),
    ("lu_pivots_to_permutation", [np.zeros(3, np.float32), 4]),
    ("householder_product", [np.ones((2, 3), np.float32), np.ones(2, np.float32)]),
    ("ormqr", [np.ones((3, 3), np.float32), np.ones(3, np.float32), np.ones((2, 3), np.float32)]),
    ("tridiagonal", [np.ones((0, 0), np.float32)]),
    ("tridiagonal_solve", [np.ones(3, np.float32)] * 4),
    ("cholesky_update", [np.ones((3, 3), np.complex64), np.ones(3, np.complex64)]),
    ("symmetric_product", [np.ones((3, 2), np.float32), np.ones((2, 2), np.float32)]),
    ("qdwh", [np.ones((2, 3), np.float32)]),
]  # fmt: skip


_CHANGED = (0, 1, 2, 6)  # raise errors of other classes in later releases


@pytest.mark.parametrize("place", [i for i in range(len(BAD)) if not NEWER or i not in _CHANGED])
def test_errors_of_lax(place):
    name, args = BAD[place]
    in_both(lambda m: getattr(m.lax.linalg, name)(*args))


def test_every_name_has_a_row():
    check_names(minijax.lax.linalg, LAX)


@pytest.mark.parametrize("algorithm", ["DEFAULT", "QR", "JACOBI", "POLAR"])
def test_svd_of_nothing_by_each_algorithm(algorithm):
    def run(m):
        chosen = getattr(m.lax.linalg.SvdAlgorithm, algorithm)
        return m.lax.linalg.svd(np.zeros((2, 0, 3), np.float32), algorithm=chosen)

    in_both(run)
