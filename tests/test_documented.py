"""Examples of upstream's public documentation whose results say more than a table of calls
would.
"""

import importlib
import io

import jax
import numpy as np
import pytest

import minijax
import minijax.ad
from tests.harness.differential import assert_same

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


def _layer(j):
    w, x = j.numpy.asarray(ROWS[:, :2], "f"), j.numpy.ones((3, 2))
    return w, x, lambda w, x: j.numpy.tanh(x @ w / 9)


def _halves_of_a_gradient(j):
    """Forward and backward passes as two compiled programs, and the values that join them."""
    w, x, layer = _layer(j)
    y, pullback = j.jit(lambda w, x: j.vjp(layer, w, x))(w, x)
    gradients = j.jit(lambda pullback, ct: pullback(ct))(pullback, y)
    kept = [pullback.args_res, j.vjp(j.numpy.sin, x)[1].args_res]
    pullback.args_res[0] = 2 * w
    return gradients, pullback(y), str(kept)


def _gradients_into_references(j):
    w, x, layer = _layer(j)
    value, skip = j.ad.GradValue(), j.ad.DontWant()
    total = j.new_ref(j.numpy.ones_like(w))
    y, pullback = j.vjp(layer, w, x)
    found = pullback.with_refs(total, value)(y), pullback.with_refs(skip, skip)(y)
    loop = lambda w: j.lax.scan(lambda c, r: (j.numpy.sin(c * r), c), x[0], w)[0].sum()
    step = lambda _, v: (None, j.vjp(loop, v * w)[1].with_refs(total)(1.0))
    j.lax.scan(step, None, j.numpy.arange(3.0))
    return str(found[0][0]), found[0][1], str(found[1]), total[...]


def _gradients_of_a_tree(j):
    value, skip, total = j.ad.GradValue(), j.ad.DontWant(), j.new_ref(1.0)
    pullback = j.vjp(lambda d, n, z: d["a"] * z * n + z, {"a": 2.0, "b": 3.0}, 2, 5.0)[1]
    found = pullback.with_refs({"a": total, "b": value}, skip, total)(1.0)
    texts = str(found[1:]), str(found[0]["a"])
    return texts, found[0]["b"], float(total[...]), len(j.tree.leaves(skip))


def _dots_of_a_backward_pass(j):
    w, x, layer = _layer(j)
    y, pullback = j.vjp(layer, w, x)
    chosen = pullback.with_refs(j.ad.GradValue(), j.ad.DontWant())
    return [str(j.make_jaxpr(f)(y)).count("dot_general") for f in (pullback, chosen)]


def _texts_of_arrays(j):
    """Where the line of an array's text breaks before its dtype."""
    texts = [
        repr(j.numpy.full(shape, 1).astype(d))
        for d in ("int8", "float32", "bfloat16", "bool", "complex64")
        for m in range(5, 25) for shape in ((m,), (2, m))
    ]  # fmt: skip
    with np.printoptions(linewidth=60, precision=3):
        return [*texts, *[repr(j.numpy.arange(m) * 1.37) for m in range(30)]]


def _checked_twice(j):
    checkify = importlib.import_module(f"{j.__name__}.experimental.checkify")
    low = j.numpy.asarray(-5)
    error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "{x} is low", x=x))(low)
    again, _ = checkify.checkify(lambda: checkify.check_error(error))()
    return str(error), again.get()


EXAMPLES = {
    "halves of a gradient": _halves_of_a_gradient,
    "gradients into references": _gradients_into_references,
    "gradients of a tree": _gradients_of_a_tree,
    "dots of a backward pass": _dots_of_a_backward_pass,
    "texts of arrays": _texts_of_arrays,
    "checked twice": _checked_twice,
    "like": lambda j: [
        str(j.ShapeDtypeStruct.like(x))
        for x in (j.numpy.ones(3), 1.0, 2, ROWS, j.random.key(0), j.ShapeDtypeStruct((2,), "i4"))
    ],
    "like in jit": lambda j: j.jit(
        lambda x: j.numpy.full_like(j.ShapeDtypeStruct.like(x), 2.0))(ROWS[0]),
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


def _apart(j, result):
    """Arrays and numbers; and the texts, the structure of the whole among them."""
    leaves, tree = j.tree.flatten(result)
    texts = [x for x in leaves if isinstance(x, str)]
    return [x for x in leaves if not isinstance(x, str)], [*texts, str(tree)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    (ours, told), (theirs, expected) = (_apart(j, EXAMPLES[name](j)) for j in (minijax, jax))
    assert told == expected
    assert_same(ours, theirs)


def test_results_that_are_not_mapped_are_as_they_came():
    for j in (minijax, jax):
        f = j.vmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None), out_axes=(0, None))
        assert f(np.arange(2.0), 4.0)[1] == 8.0 and type(f(np.arange(2.0), 4.0)[1]) is float
