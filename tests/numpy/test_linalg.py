"""`numpy.linalg`: every public function against upstream."""

import numpy as np
import pytest

import minijax
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
row = table_row(lambda m: m.numpy.linalg)
I3 = given(np.arange(9).reshape(3, 3) + 5 * np.eye(3, dtype=int))
F4 = matrix(4, 4)


NUMPY = [
    row("cholesky", definite(3, 3)),
    row("cholesky", definite(2, 3, 3), label="_upper", with_={"upper": True}, batch=""),
    row("cholesky", matrix(3, 3), label="_upper_raw", grad="", batch="",
            with_={"upper": True, "symmetrize_input": False}),
    row("cholesky", lambda d: I3(d) @ I3(d).T, label="_int", kinds="fd", batch=""),
    row("cross", T, T, with_={"axis": 0}),
    row("det", T),
    row("det", matrix(2, 2, 2), label="_2"),
    row("det", matrix(1, 1), label="_1", kinds="fc"),
    row("det", matrix(0, 0), label="_0", kinds="f", grad=""),
    row("det", matrix(2, 4, 4), label="_4"),
    row("diagonal", RB, with_={"offset": -1}, kinds="f"),
    row("eig", T, grad=""),
    row("eigh", definite(3, 3), with_={"UPLO": "U", "symmetrize_input": False}),
    row("eigvals", TB),
    row("eigvalsh", definite(2, 3, 3)),
    row("eigvalsh", I3, label="_int", kinds="fd", batch=""),
    row("inv", TB),
    row("inv", I3, label="_int", kinds="fd", batch=""),
    row("lstsq", R, matrix(4, 2), batch=""),
    row("lstsq", W, matrix(2), label="_wide", batch="f", with_={"rcond": 1e-3}),
    row("lstsq", R, matrix(4), label="_cut", grad="", with_={"rcond": 0.5}),
    row("lstsq", matrix(0, 3), matrix(0, 2), label="_empty", kinds="f", grad="", batch=""),
    row("matmul", TB, T, kinds="f"),
    row("matrix_power", T, with_={"n": 5}),
    row("matrix_power", TB, label="_-2", with_={"n": -2}, kinds="f", batch=""),
    row("matrix_power", I3, label="_0", with_={"n": 0}, kinds="f"),
    row("matrix_rank", RB),
    row("matrix_rank", V, label="_vector", kinds="f"),
    row("matrix_rank", definite(3, 3), label="_hermitian", kinds="f", with_={"hermitian": True}),
    row("matrix_transpose", RB, kinds="f"),
    row(("multi_dot", lambda la, *xs: la.multi_dot(xs)), matrix(4), matrix(4, 2), W, V),
    row(("multi_dot", lambda la, *xs: la.multi_dot(xs)), R, T, label="_two", kinds="f"),
    row("outer", V, matrix(2), kinds="fc"),
    row("pinv", R),
    row("pinv", W, label="_wide"),
    row("pinv", definite(2, 3, 3), label="_hermitian", with_={"hermitian": True}, kinds="fcz", batch=""),
    row("pinv", RB, label="_rtol", kinds="f", with_={"rtol": 0.3}, grad=""),
    row("pinv", matrix(0, 3), label="_empty", kinds="f", grad=""),
    row("qr", R),
    row("qr", R, label="_complete", with_={"mode": "complete"}, kinds="fc", grad="", batch=""),
    row("qr", RB, label="_r", with_={"mode": "r"}, kinds="fd", batch=""),
    row("qr", RB, label="_raw", with_={"mode": "raw"}, grad="", batch=""),
    row("slogdet", TB),
    row("slogdet", T, label="_qr", with_={"method": "qr"}, kinds="fd"),
    row("slogdet", lambda d: np.ones((3, 3), d), label="_singular", grad=""),
    row("slogdet", matrix(0, 0), label="_empty", kinds="f", grad=""),
    row("solve", T, V),
    row("solve", TB, matrix(3, 2), label="_one_right"),
    row("solve", T, matrix(2, 3, 2), label="_one_left", batch=""),
    row("solve", I3, V, label="_int", kinds="fd", batch=""),
    row("svd", R, with_={"full_matrices": False}),
    row("svd", definite(3, 3), label="_hermitian", with_={"hermitian": True}, kinds="fcz", batch=""),
    row("svd", T, label="_hermitian_values", grad="", batch="",
            with_={"hermitian": True, "compute_uv": False}),
    row("svdvals", RB),
    row("tensordot", T, T, with_={"axes": 1}, kinds="f"),
    row("tensorinv", matrix(2, 3, 6), kinds="fc"),
    row("tensorsolve", matrix(2, 3, 6), matrix(2, 3), kinds="fc"),
    row(
        "tensorsolve", matrix(2, 6, 3), matrix(2, 3), label="_axes", kinds="f", with_={"axes": (1,)}
    ),
    row("trace", RB, with_={"offset": 1}, kinds="fc"),
    row("vecdot", R, R, with_={"axis": 0}, kinds="fc"),
    row("vector_norm", RB, with_={"axis": (0, 2), "keepdims": True, "ord": 3}, kinds="fcd"),
    row("vector_norm", RB, label="_all", kinds="fc"),
    row("matrix_norm", RB, kinds="fc"),
    row("matrix_norm", RB, label="_nuc", with_={"ord": "nuc", "keepdims": True}, kinds="fz"),
    row("cond", T),
    row("cond", RB, label="_-2", with_={"p": -2}, kinds="fc"),
    row("cond", TB, label="_1", with_={"p": 1}, kinds="fz", batch=""),
    row("norm", RB, label="_all", kinds="fcdz"),
    row("norm", I3, label="_int", kinds="f"),
    *[
        row("norm", RB, label=f"_matrix_{order}", kinds="fz", batch="",
                with_={"ord": order, "axis": (2, 0), "keepdims": order in (-1, 2)})
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    *[
        row("norm", R, label=f"_vector_{order}", kinds="fz", batch="",
                with_={"ord": order, "axis": 0})
        for order in (0, 1, -1, 2, 3, 0.5, np.inf, -np.inf)
    ],
    row("norm", matrix(3, 0), label="_empty", kinds="f", with_={"ord": -np.inf, "axis": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), **cases(NUMPY))
def test_numpy(row, kind):
    with x64(kind in "dz"):
        run(row, kind)


@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_derivatives_of_singular_determinants(zeros):
    """The determinant is a polynomial: it has derivatives where the inverse has none."""
    x = F4(np.complex128) @ np.diag([1, 2, 0, 3] if zeros < 3 else [1, 0, 0, 3])
    x = x if zeros == 2 else x @ F4(np.complex128)
    step = matrix(4, 4, seed=5)(np.complex128)
    with x64(True):
        found = minijax.jvp(minijax.numpy.linalg.det, (x,), (step,))[1]
    expected = (np.linalg.det(x + 1e-5 * step) - np.linalg.det(x - 1e-5 * step)) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


BAD_NUMPY = [
    ("cholesky", [[[1.0]]], {}),
    *([] if NEWER else [("cholesky", [np.ones((3, 3), np.float16)], {})]),
    ("eigh", [np.ones((3, 3), np.float32)], {"UPLO": "X"}),
    ("inv", [np.ones((3, 2), np.float32)], {}),
    ("det", [np.ones(3, np.float32)], {}),
    ("slogdet", [np.ones((2, 3), np.float32)], {}),
    ("slogdet", [np.ones((3, 3), np.float32)], {"method": "x"}),
    ("slogdet", [np.ones((3, 3), np.complex64)], {"method": "qr"}),
    ("solve", [np.ones((2, 3, 3), np.float32), np.ones((2, 3), np.float32)], {}),
    ("solve", [np.ones((3, 3), np.float32), np.float32(1)], {}),
    ("solve", [np.ones((3, 2), np.float32), np.ones(3, np.float32)], {}),
    ("lstsq", [np.ones((2, 3, 3), np.float32), np.ones((2, 3), np.float32)], {}),
    ("lstsq", [np.ones((3, 3), np.float32), np.ones(2, np.float32)], {}),
    ("matrix_power", [np.ones((3, 3), np.float32), 1.5], {}),
    ("matrix_power", [np.ones((3, 2), np.float32), 2], {}),
    ("matrix_rank", [np.ones((3, 3), np.float32)], {"rtol": 0.1, "tol": 0.1}),
    ("pinv", [np.ones((3, 3), np.float32)], {"rtol": 0.1, "rcond": 0.1}),
    ("pinv", [np.ones(3, np.float32)], {}),
    ("qr", [np.ones((3, 3), np.float32)], {"mode": "x"}),
    ("norm", [np.ones((3, 3), np.float32)], {"ord": "x"}),
    ("norm", [np.ones(3, np.float32)], {"ord": "fro"}),
    ("norm", [np.ones((3, 3, 3), np.float32)], {"ord": 2}),
    ("norm", [[1.0, 2.0]], {}),
    ("cond", [np.ones(3, np.float32)], {}),
    ("cond", [np.ones((0, 3), np.float32)], {}),
    ("cross", [np.ones((3, 2), np.float32), np.ones((3, 2), np.float32)], {}),
    ("outer", [np.ones((3, 2), np.float32), np.ones(3, np.float32)], {}),
    ("trace", [np.ones(3, np.float32)], {}),
    ("diagonal", [np.ones(3, np.float32)], {}),
    ("multi_dot", [[np.ones((3, 2), np.float32)]], {}),
    ("multi_dot", [[np.ones((3, 2), np.float32)] * 3], {}),
    ("tensorinv", [np.ones((3, 2), np.float32)], {"ind": 0}),
    ("tensorinv", [np.ones((3, 2), np.float32)], {"ind": 1}),
    ("tensorsolve", [np.ones((3, 4, 5), np.float32), np.ones((3, 4), np.float32)], {}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BAD_NUMPY)))
def test_errors_of_numpy(place):
    name, args, keywords = BAD_NUMPY[place]
    in_both(lambda m: getattr(m.numpy.linalg, name)(*args, **keywords))


def test_every_name_has_a_row():
    check_names(minijax.numpy.linalg, NUMPY)


@pytest.mark.parametrize("shape", [(3, 3), (0, 0), (3, 4), (0, 3), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("offset", [0, 1, -5])
def test_weak_types_of_diagonals(shape, offset):
    in_both(lambda m: m.numpy.diagonal(m.lax.full(shape, 1.0), offset))
    in_both(lambda m: m.numpy.linalg.diagonal(m.lax.full(shape, 1.0), offset=offset))


@pytest.mark.parametrize(
    ("name", "n"), [("det", 1), ("det", 2), ("det", 3), ("slogdet", 1), ("slogdet", 2)]
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_determinants_of_narrow_floats(dtype, name, n):
    """Those of few rows need no LAPACK, which has no such dtypes."""
    a = np.eye(n) + np.arange(n * n).reshape(n, n) / 8
    in_both(lambda m: getattr(m.numpy.linalg, name)(m.numpy.asarray(a, dtype)))


EXTREME = {
    "small": np.diag([1e-30, 1e-30]), "large": np.diag([1e30, -1e30]), "one": [[-2e-38]],
    "mixed": np.diag([1e30, 1e-30]), "rows": [[1e30, 2e30], [3.0, 4.0]], "zero": np.zeros((2, 2)),
    "singular": np.ones((2, 2)), "three": np.diag([1e30, -1e30, 1e20]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREME)
def test_slogdet_of_extreme_rows(name):
    """NumPy's answer, where upstream's products overflow or vanish."""
    sign, size = minijax.numpy.linalg.slogdet(np.asarray(EXTREME[name], np.float32))
    wanted_sign, wanted = np.linalg.slogdet(np.asarray(EXTREME[name], np.float64))
    assert sign == wanted_sign
    np.testing.assert_allclose(size, wanted, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_slogdet_without_a_value(n, value):
    """NaN, and gradients by what is singular."""
    a = np.full((n, n), value, np.float32)
    in_both(lambda m: m.value_and_grad(lambda a: m.numpy.linalg.slogdet(a)[1])(a))
    in_both(lambda m: m.numpy.linalg.slogdet(a))
