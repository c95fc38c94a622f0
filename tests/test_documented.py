"""Examples of upstream's public documentation whose results say more than a table of calls would."""

import io

import jax
import numpy as np
import pytest

import minijax
from tests.differential import assert_same

ROWS = np.array([[5, 3, 4], [6, 9, 2]])


def _loaded(j):
    file = io.BytesIO()
    j.numpy.save(file, j.numpy.array([2, 4, 6, 8], dtype="bfloat16"))
    file.seek(0)
    return j.numpy.load(file)


def _mapped_rule_under_vjp(j):
    f = j.custom_vjp(j.custom_batching.custom_vmap(lambda x, y: j.numpy.sin(x) * y))
    f.def_vmap(lambda size, batched, xs, ys: (j.numpy.cos(xs) * ys, True))
    f.defvjp(lambda x, y: (f(x, y), (j.numpy.cos(x), y)), lambda res, g: (res[0] * g, res[1] * g))
    one = np.float32(1)
    return j.vmap(f)(np.zeros(3, "f"), np.ones(3, "f")), j.grad(f)(0 * one, one)


EXAMPLES = {
    "byteswap": lambda j: [j.numpy.asarray(ROWS.astype(d)).byteswap() for d in ("i4", "c8", "u1")],
    "linear_transpose": lambda j: j.linear_transpose(
        lambda x, y: 0.5 * x - 0.5 * y, *[j.ShapeDtypeStruct((), np.float32)] * 2
    )(1.0),
    "angle": lambda j: [j.numpy.angle(2 + 3j, deg=d) for d in (False, True)],
    "c_": lambda j: (j.numpy.c_["0,2", [1, 2], [4, 5]], j.numpy.c_["r", [1, 2], [4, 5]]),
    "r_": lambda j: [j.numpy.r_[d, [1, 2], [4, 5]] for d in ("r", "c", "0,2,-2", "0,2", "1,2,0")],
    "polyadd": lambda j: (
        j.numpy.polyadd(ROWS[:1], ROWS), j.numpy.polyadd(ROWS, ROWS[0, :1]),
        j.numpy.polysub(ROWS[:1], ROWS), j.numpy.polysub(ROWS[0], ROWS[1, :2]),
    ),
    "sort_complex": lambda j: j.numpy.sort_complex(ROWS),
    "load": _loaded,
    "custom_vmap": _mapped_rule_under_vjp,
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    assert_same(EXAMPLES[name](minijax), EXAMPLES[name](jax))


def test_results_that_are_not_mapped_are_as_they_came():
    for j in (minijax, jax):
        f = j.vmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None), out_axes=(0, None))
        assert f(np.arange(2.0), 4.0)[1] == 8.0 and type(f(np.arange(2.0), 4.0)[1]) is float
