"""`minijax.image` against upstream."""

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import sample
from tests.harness.libraries import LOW, Row, both, check_dtype, check_row, check_wide, ids, missing

X = sample((5, 6), np.float32)
METHODS = [
    "nearest", "linear", "bilinear", "trilinear", "triangle", "cubic", "bicubic", "tricubic",
    "lanczos3", "lanczos5", "CUBIC_PYTORCH", "AREA",
]  # fmt: skip


def named(m, method):
    return getattr(m.image.ResizeMethod, method) if method.isupper() else method


def resized(shape, method, x=X, label="", **options):
    call = lambda m, x: m.image.resize(x, shape, named(m, method), **options)
    return Row("resize", call, x, label=f"{method}-{label}", size=1.0)


def moved(method, shape=(7, 4), axes=(0, 1), scale=(2.0, 0.5), shift=(1.0, -0.5), **options):
    def call(m, x, scale, shift):
        return m.image.scale_and_translate(
            x, shape, axes, scale, shift, named(m, method), **options
        )

    given = np.asarray(scale, np.float32), np.asarray(shift, np.float32)
    return Row("scale_and_translate", call, X, *given, label=method, size=1.0)


ROWS = [
    *[resized((7, 4), method) for method in METHODS],
    *[resized((2, 9), method, label="plain", antialias=False) for method in METHODS],
    resized((5, 12), "linear", label="one axis"),
    resized((5, 6), "cubic", label="no axis"),
    resized((0, 6), "linear", label="to nothing"),
    resized((3, 3), "linear", X.astype(np.int32), "integers"),
    resized((3, 3), "nearest", X.astype(np.int32), "integers"),
    resized((2, 3, 2), "linear", sample((3, 2, 4), np.float32), "three axes"),
    resized((3, 4), "linear", sample((5, 6), np.complex64), "complex"),
    resized((3,), "linear", label="rank"),
    resized((3, 4), "other", label="unknown"),
    *[moved(method) for method in METHODS if method != "nearest"],
    moved("nearest"),
    moved("linear", (5, 9), (1,), (1.7,), (0.3,)),
    moved("cubic", (5, 9), (-1,), (1.7,), (0.3,), antialias=False),
    moved("linear", (5, 9), (2,), (1.7,), (0.3,)),
    moved("linear", (5,), (1,), (1.7,), (0.3,)),
    *[resized(shape, method, label="grows") for method in METHODS for shape in ((9, 12), (7, 9))],
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_row(row):
    check_row(row)


@pytest.mark.parametrize("row", ROWS[:6:2], ids=ids(ROWS[:6:2]))
def test_row_in_other_widths(row):
    check_wide(row)
    for dtype in LOW:
        check_dtype(row, dtype, size=1.0)


def test_what_is_no_array_is_refused():
    both(lambda m: m.image.resize([[1.0]], (2, 2), "linear"))


def test_every_name_has_a_row():
    assert not missing(jax.image, ROWS, {"ResizeMethod"})
    assert [x.name for x in minijax.image.ResizeMethod] == [x.name for x in jax.image.ResizeMethod]
