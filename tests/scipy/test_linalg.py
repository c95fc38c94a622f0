"""`scipy.linalg`: every public function against upstream."""

import warnings

import jax
import numpy as np
import pytest

import minijax
import minijax.scipy.linalg
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

T, R, W = matrix(3, 3), matrix(4, 3), matrix(2, 3)
TB, RB = matrix(2, 3, 3), matrix(2, 4, 3)
V, VB = matrix(3), matrix(2, 3)
row = table_row(lambda m: m.scipy.linalg)
PIVOTS = given([2, 1, 2], np.int32)
values = {"kinds": "fd", "grad": "", "batch": ""}
fc = {"kinds": "fc", "batch": ""}
no_grad = {"grad": "", "batch": ""}


def spread_out(dtype):
    """A matrix whose eigenvalues are well apart."""
    return matrix(4, 4, seed=3)(dtype) * 0.2 + np.diag([1, 3, 6, 10]).astype(dtype)


TRIANGLE = "" if NEWER else "fc"  # where one triangle is read
SCIPY = [
    row("block_diag", T, V, matrix(), **fc),
    row("block_diag", label="_none", kinds="f", **no_grad),
    row(("cho_factor", lambda la, x: la.cho_factor(x)[0]), definite(3, 3), kinds="fc",
        grad=TRIANGLE),
    row(("cho_solve", lambda la, c, b: la.cho_solve((c, True), b)), T, V, kinds="fcz"),
    row(("cho_solve", lambda la, c, b: la.cho_solve((c, False), b)), T, TB, label="_upper"),
    row("cholesky", T, label="_fails", kinds="f", grad=""),
    row("cholesky", definite(2, 3, 3), with_={"lower": True}, grad=TRIANGLE),
    row("circulant", VB, **fc),
    row("companion", VB, **fc),
    row("companion", given([1, 2, 4]), label="_int", **values),
    row("convolution_matrix", VB, with_={"n": 5}, **fc),
    row("convolution_matrix", V, label="_same", with_={"n": 4, "mode": "same"}, kinds="f"),
    row("convolution_matrix", V, label="_valid", with_={"n": 2, "mode": "valid"}, kinds="f"),
    row("det", T, kinds="f"),
    row("dft", with_={"n": 5}, **values),
    row("dft", label="_sqrtn", with_={"n": 4, "scale": "sqrtn"}, **values),
    row("eigh", definite(3, 3), kinds="fc"),
    row("eigh", definite(3, 3), label="_values", with_={"eigvals_only": True}, kinds="f"),
    row("eigh_tridiagonal", matrix(5), matrix(4), with_={"eigvals_only": True}, **values),
    row("eigh_tridiagonal", matrix(5), matrix(4), label="_some", **values,
           with_={"eigvals_only": True, "select": "i", "select_range": (1, 3)}),
    row(("eigh_tridiagonal", lambda la, d, e: abs(la.eigh_tridiagonal(d, e)[1])), matrix(5),
           matrix(4), label="_vectors", ulps=500, **values),
    row("expm", T, kinds="fcz", batch=""),
    row("expm", lambda d: 20 * TB(d) - 30 * np.eye(3, dtype=d), label="_large", kinds="fz", ulps=100, **no_grad),
    row("expm", lambda d: 0.01 * np.triu(T(d)), label="_triangular", kinds="fz", batch="",
           with_={"upper_triangular": True}),
    row("expm", lambda d: 1e4 * T(d), label="_many", with_={"max_squarings": 3}, **values),
    row("expm", lambda d: np.ones((2, 2), d), label="_degrees", kinds="d", **no_grad),
    row("expm_frechet", T, matrix(3, 3, seed=4), kinds="fz", **no_grad),
    row("fiedler", VB, kinds="f"),
    row("fiedler_companion", matrix(2, 6), **fc),
    row("fiedler_companion", matrix(1), label="_1", kinds="f", **no_grad),
    row("fiedler_companion", matrix(2), label="_2", kinds="f", **no_grad),
    row(("funm", lambda la, x: la.funm(x, abs, disp=False)), spread_out, kinds="fz", ulps=500, **no_grad),
    row("hadamard", with_={"n": 8}, **values),
    row("hadamard", label="_dtype", with_={"n": 4, "dtype": "float32"}, **values),
    row("hankel", VB, matrix(4), **fc),
    row("hankel", V, label="_one", kinds="f"),
    row("helmert", with_={"n": 5}, **values),
    row("helmert", label="_full", with_={"n": 3, "full": True}, **values),
    row("hessenberg", matrix(2, 4, 4), with_={"calc_q": True}, kinds="fz", **no_grad),
    row("hilbert", with_={"n": 4}, **values),
    row("inv", T, kinds="f"),
    row("invhilbert", with_={"n": 6}, ulps=500, **values),
    row("invpascal", with_={"n": 5}, **values),
    row("invpascal", label="_lower", with_={"n": 4, "kind": "lower"}, **values),
    row("leslie", VB, matrix(2), **fc),
    row("lu", R, kinds="fcdz"),
    row("lu", W, label="_wide", with_={"permute_l": True}, kinds="fc"),
    row("lu_factor", TB, kinds="fc"),
    *[
        row(("lu_solve", lambda la, x, p, b, trans=trans: la.lu_solve((x, p), b, trans)),
               T, PIVOTS, matrix(3, 2), label=f"_{trans}", **fc)
        for trans in (0, 1, 2)
    ],
    row("pascal", with_={"n": 5}, kinds="f", **no_grad),
    row("pascal", label="_wide", with_={"n": 5}, kinds="d", ulps=1e11, **no_grad),
    row("pascal", label="_upper", with_={"n": 5, "kind": "upper"}, kinds="f", **no_grad),
    row("polar", R, kinds="fz", **no_grad),
    row("polar", W, label="_left", with_={"side": "left"}, kinds="z", **no_grad),
    row("polar", R, label="_svd", with_={"method": "svd", "side": "left"}, kinds="fc", batch=""),
    row("polar", TB, label="_batch", kinds="f", **no_grad),
    row("qr", R, kinds="fc"),
    row("qr", R, label="_r", with_={"mode": "r"}, **fc),
    row("qr", R, label="_economic", with_={"mode": "economic", "pivoting": True}, **fc),
    row("qr_multiply", R, matrix(2, 4), kinds="fc", **no_grad),
    row("qr_multiply", R, matrix(3, 2), label="_left", with_={"mode": "left"}, kinds="fc",
           **no_grad),
    row("qr_multiply", R, V, label="_vector", kinds="fc", **no_grad,
           with_={"mode": "left", "pivoting": True, "conjugate": True}),
    row(("rsf2csf", lambda la, x: la.rsf2csf(*la.schur(x))), matrix(2, 4, 4), kinds="d",
           **no_grad),
    row("schur", T, with_={"output": "complex"}, **no_grad),
    row("solve", definite(2, 3, 3), matrix(2, 3, 2), with_={"assume_a": "pos"}, kinds="fz", grad="f",
        batch=""),
    row("solve", T, V, label="_general", with_={"assume_a": "sym"}, kinds="f"),
    row("solve_sylvester", spread_out, T, matrix(4, 3), kinds="fz", **no_grad),
    row("solve_sylvester", spread_out, T, matrix(4, 3), label="_eigen", **no_grad,
           with_={"method": "eigen"}, kinds="d"),
    row("solve_sylvester", T, lambda d: -T(d), T, label="_singular", kinds="f", **no_grad,
           with_={"tol": 1.0}),
    row("solve_triangular", T, V, with_={"lower": True, "trans": 2}),
    row("solve_triangular", TB, V, label="_one", with_={"trans": "T"}, kinds="f"),
    row("sqrtm", spread_out, kinds="fz", **no_grad),
    row("sqrtm", lambda d: np.diag([1, 0, 4]).astype(d), label="_zero", **values),
    row("svd", R, with_={"full_matrices": False}, kinds="fc"),
    row("toeplitz", VB, matrix(4), **fc),
    row("toeplitz", V, label="_one", kinds="fc"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), **cases(SCIPY))
def test_scipy(row, kind):
    with x64(kind in "dz"):
        run(row, kind)


X3 = np.eye(3, dtype=np.float32)
BAD_SCIPY = [
    ("cholesky", [np.ones((3, 2), np.float32)], {}),
    *([] if NEWER else [("eigh", [X3, X3], {}), ("eigh", [X3], {"type": 2})]),
    ("expm", [np.ones((3, 2), np.float32)], {}),
    ("expm", [np.ones((3, 3), np.float16)], {}),
    ("expm_frechet", [X3, np.ones((3, 2), np.float32)], {}),
    ("funm", [np.ones((3, 2), np.float32), np.exp], {}),
    ("hadamard", [3], {}),
    ("hilbert", [-1], {}),
    ("hilbert", [2.5], {}),
    ("helmert", [0], {}),
    ("pascal", [4, "x"], {}),
    ("dft", [4, "x"], {}),
    ("dft", [4], {"dtype": np.float32}),
    ("toeplitz", [[1.0, 2.0]], {}),
    ("hankel", [np.float32(1)], {}),
    ("companion", [np.ones(1, np.float32)], {}),
    ("convolution_matrix", [np.ones(3, np.float32), 0], {}),
    ("convolution_matrix", [np.ones(3, np.float32), 2, "x"], {}),
    ("leslie", [np.ones(3, np.float32), np.ones(3, np.float32)], {}),
    ("block_diag", [np.ones((2, 3, 3), np.float32)], {}),
    ("lu_solve", [(X3, np.arange(3, dtype=np.int32)), np.ones(2, np.float32)], {}),
    ("lu_solve", [(X3, np.arange(3, dtype=np.int32)), np.ones(3, np.float32), 3], {}),
    ("cho_solve", [(X3, True), np.ones(2, np.float32)], {}),
    ("solve_triangular", [X3, np.ones(3, np.float32), "x"], {}),
    ("solve", [X3, np.ones(3, np.float32)], {"assume_a": "x"}),
    ("polar", [X3], {"side": "x"}),
    ("polar", [X3], {"method": "x"}),
    ("polar", [np.ones((2, 3), np.float32)], {}),
    ("qr", [X3], {"mode": "raw"}),
    ("qr_multiply", [X3, X3], {"mode": "x"}),
    ("qr_multiply", [np.ones((4, 2), np.float32), np.ones((4, 2), np.float32)], {}),
    ("schur", [X3], {"output": "x"}),
    ("rsf2csf", [X3, np.ones((3, 2), np.float32)], {}),
    ("sqrtm", [X3], {"blocksize": 2}),
    ("solve_sylvester", [X3, X3, np.ones((3, 2), np.float32)], {}),
    ("solve_sylvester", [X3, X3, X3], {"method": "x"}),
    ("eigh_tridiagonal", [np.ones(3, np.float32), np.ones(3, np.float32)], {}),
    ("eigh_tridiagonal", [np.ones(3, np.int32), np.ones(2, np.int32)], {}),
    ("eigh_tridiagonal", [np.ones(3, np.float32), np.ones(2, np.float32)], {"select": "v"}),
    ("eigh_tridiagonal", [np.ones(3, np.float32), np.ones(2, np.float32)], {"select": "i"}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BAD_SCIPY)))
def test_errors_of_scipy(place):
    name, args, keywords = BAD_SCIPY[place]
    in_both(lambda m: getattr(m.scipy.linalg, name)(*args, **keywords))


SOLVES = {
    "cho_solve": lambda la, a, b: la.cho_solve((a, True), b),
    "lu_solve": lambda la, a, b: la.lu_solve((a, np.zeros(a.shape[:-1], np.int32)), b),
    "solve_triangular": lambda la, a, b: la.solve_triangular(a, b, lower=True),
    "solve": lambda la, a, b: la.solve(a, b, assume_a="pos"),
}


VECTORS, MATRICES = [(3,), (2, 3)], [(3, 3), (2, 3, 1)]


@pytest.mark.parametrize(
    ("name", "shape"),
    [(n, b) for n in SOLVES for b in (VECTORS if n == "solve" else VECTORS + MATRICES)],
)
def test_warnings_of_vectors(name, shape):
    """Several vectors without an axis for them are to become a matrix of right sides."""
    a, b = np.eye(3, dtype=np.float32), np.ones(shape, np.float32)
    a = a if shape[0] == 3 else np.stack([a, a])

    def said(m):
        m.clear_caches()  # upstream warns as it traces
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FutureWarning)
            SOLVES[name](m.scipy.linalg, a, b)
        return [str(w.message).partition(" solve.")[0] for w in caught]

    assert said(minijax) == said(jax)


def test_every_name_has_a_row():
    check_names(minijax.scipy.linalg, SCIPY)


@pytest.mark.parametrize(("size", "some"), [(1, None), (4, None), (4, (1, 2))])
def test_derivatives_of_tridiagonal_eigenvectors(size, some):
    """Upstream has none: its own, of the same matrices written out in full."""
    rng = np.random.RandomState(0)
    d, e = rng.randn(2, size), rng.randn(2, size - 1)
    weights, places = (
        rng.randn(size, size),
        slice(None) if some is None else slice(some[0], some[1] + 1),
    )
    chosen = {} if some is None else {"select": "i", "select_range": some}

    def loss(values, vectors):
        return (values * weights[0, places]).sum() + (vectors * vectors * weights[:, places]).sum()

    def ours(d, e):
        values = minijax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True, **chosen)
        return values.sum() + loss(*minijax.scipy.linalg.eigh_tridiagonal(d, e, **chosen))

    def theirs(d, e):
        full = jax.numpy.diag(d) + jax.numpy.diag(e, 1) + jax.numpy.diag(e, -1)
        values, vectors = jax.numpy.linalg.eigh(full)
        return values[places].sum() + loss(values[places], vectors[:, places])

    with x64(True):
        for transform in ("grad", "hessian"):
            found, wanted = (
                m.tree_util.tree_leaves(m.jit(m.vmap(getattr(m, transform)(f, (0, 1))))(d, e))
                for m, f in ((minijax, ours), (jax, theirs))
            )
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
