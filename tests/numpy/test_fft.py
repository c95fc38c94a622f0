"""`numpy.fft` and `scipy.fft` against upstream."""

import numpy as np
import pytest

import minijax
import minijax.scipy.fft
from tests.cases.linear_cases import Row, cases, check_names, given, matrix, run
from tests.harness.differential import assert_same, x64
from tests.harness.rules import in_both


def row(name, *args, label="", module="numpy", **options):
    keywords = options.pop("with_", {})
    return Row(
        f"{name}{label}", lambda m, *xs: getattr(getattr(m, module).fft, name)(*xs, **keywords),
        *args, **options,
    )  # fmt: skip


A, B = matrix(3, 5), matrix(2, 4, 3)
REAL = {"kinds": "fd"}
ROWS = {
    "numpy": [
        row("fft", A),
        row("fft", A, label="_ortho", with_={"norm": "ortho", "axis": 0}, batch=""),
        row("fft", A, label="_cut", with_={"n": 3, "norm": "forward"}, kinds="fc", batch=""),
        row("fft", A, label="_padded", with_={"n": 8, "axis": 0}, kinds="fc", batch=""),
        row("fft", given(np.arange(6)), label="_int", kinds="fd"),
        row("fft", matrix(3, 0), label="_empty", kinds="f", grad=""),
        row("ifft", A, with_={"norm": "ortho"}),
        row("rfft", A, **REAL),
        row("rfft", A, label="_padded", with_={"n": 6, "axis": 0, "norm": "forward"}, **REAL),
        row("irfft", A),
        row("irfft", A, label="_odd", with_={"n": 5, "norm": "ortho"}),
        row("hfft", A),
        row("hfft", A, label="_odd", with_={"n": 5, "norm": "ortho", "axis": 0}, batch=""),
        row("ihfft", A, **REAL),
        row("ihfft", A, label="_forward", with_={"norm": "forward", "n": 4}, batch="", **REAL),
        row("fft2", B),
        row("fft2", B, label="_sizes", with_={"s": (3, 5), "axes": (0, 1)}, kinds="fc"),
        row("ifft2", B, with_={"norm": "forward"}),
        row("rfft2", B, **REAL),
        row("irfft2", B),
        row("fftn", B),
        row("fftn", matrix(2, 2, 3, 2), label="_four", kinds="fc", batch=""),
        row("ifftn", B, with_={"s": (5,), "norm": "ortho"}, kinds="fc"),
        row("rfftn", B, with_={"axes": (2, 0)}, **REAL),
        row("rfftn", matrix(2, 2, 3, 4), label="_four", kinds="f", batch=""),
        row("irfftn", B, with_={"s": (3, 4)}),
        row("irfftn", matrix(2, 2, 3, 4), label="_four", kinds="fc", batch=""),
        row("rfftn", A, label="_none", with_={"axes": ()}, kinds="f", batch=""),
        row("fftshift", A),
        row("ifftshift", A, with_={"axes": 1}),
        row("fftshift", B, label="_axes", with_={"axes": (0, -1)}, kinds="f"),
    ],
    "scipy": [
        row("dct", A, module="scipy"),
        row("dct", A, label="_ortho", module="scipy", with_={"norm": "ortho", "n": 4, "axis": 0}),
        row("idct", A, module="scipy"),
        row("idct", A, label="_ortho", module="scipy", with_={"norm": "ortho", "n": 6}, batch=""),
        row("dctn", B, module="scipy", kinds="fcd"),
        row("dctn", B, label="_sizes", module="scipy", with_={"s": (3, 2), "norm": "ortho"}, batch=""),
        row("idctn", B, module="scipy", with_={"axes": (0, 2)}, kinds="fcd"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), **cases(ROWS["numpy"]))
def test_numpy(row, kind):
    with x64(kind in "dz"):
        run(row, kind)


@pytest.mark.parametrize(("row", "kind"), **cases(ROWS["scipy"]))
def test_scipy(row, kind):
    with x64(kind in "dz"):
        run(row, kind)


FREQUENCIES = [
    ("fftfreq", (5,), {}), ("fftfreq", (4, 0.1), {}), ("fftfreq", (0,), {}),
    ("fftfreq", (6,), {"dtype": "float16"}), ("rfftfreq", (5, 2), {}), ("rfftfreq", (8,), {}),
    ("fftfreq", ([2],), {}), ("fftfreq", (3, [1.0, 2.0]), {}), ("rfftfreq", (4, None), {}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(FREQUENCIES)))
@pytest.mark.parametrize("wide", [False, True])
def test_frequencies(place, wide):
    name, args, keywords = FREQUENCIES[place]
    with x64(wide):
        in_both(lambda m: getattr(m.numpy.fft, name)(*args, **keywords))


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_signs_of_zero(norm):
    """An imaginary part of zero is printed with its sign."""
    x = np.array([[1, 3, 5, 7], [-2, 0, 1, 0]], np.float32)
    in_both(lambda m: repr(m.numpy.fft.ihfft(x, norm=norm)))


X = np.ones((4, 4), np.float32)
BAD = [
    ("fft", X, {"norm": "x"}), ("fft", X, {"n": 0}), ("fft", X, {"n": 2.0}),
    ("fft", X, {"axis": 5}), ("fft", X, {"axis": (0, 1)}), ("fft", [1.0], {}),
    ("fft", np.float32(1), {}), ("rfft", X + 0j, {}), ("rfft", X.astype(np.float16), {}),
    ("fftn", X, {"axes": (0, 0)}), ("fftn", X, {"s": (3, 3, 3)}), ("fftn", X, {"axes": 0}),
    ("fft2", X, {"axes": (0,)}), ("ifft2", X, {"s": (1, 2, 3)}), ("irfftn", X, {"s": (3, None)}),
    ("hfft", X, {"axis": 5}), ("ihfft", X, {"axis": (0,)}), ("ifftshift", X, {"axes": 3}),
    ("fftshift", [1.0], {}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BAD)))
def test_errors(place):
    name, x, keywords = BAD[place]
    in_both(lambda m: getattr(m.numpy.fft, name)(x, **keywords))


BAD_SCIPY = [
    ("dct", X, {"type": 3}), ("idct", X, {"norm": "x"}), ("dct", X, {"axis": 3}),
    ("dct", [1.0], {}), ("dct", X, {"n": 0}), ("idctn", X, {"type": 1}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BAD_SCIPY)))
def test_errors_of_scipy(place):
    name, x, keywords = BAD_SCIPY[place]
    in_both(lambda m: getattr(m.scipy.fft, name)(x, **keywords))


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "int8"])
def test_narrow_dtypes(dtype):
    for name in ("fft", "irfft"):
        in_both(lambda m, name=name: getattr(m.numpy.fft, name)(m.numpy.asarray(X, dtype)))
    x = np.arange(6).astype(minijax.numpy.dtype(dtype))
    ours, theirs = [], []
    in_both(lambda m: (ours if m is minijax else theirs).append(m.scipy.fft.dct(x)) or ())
    assert_same(ours, theirs, size=1.0)


def test_every_name_has_a_row():
    check_names(minijax.numpy.fft, ROWS["numpy"], [name for name, *_ in FREQUENCIES])
    check_names(minijax.scipy.fft, ROWS["scipy"])
