"""custom_vmap, custom_gradient, closure_convert and linear_call, against upstream."""

import functools

import jax
import numpy as np
import pytest

import minijax
import minijax.custom_batching
import minijax.custom_derivatives
from tests.features.test_custom_rules import array, check, vec, with_vjp
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

CASES = {}


def cases(**functions):
    CASES.update(functions)


# -- custom_gradient, closure_convert, linear_call ------------------------------------------------

SQUARE = lambda m, x: (x * x, lambda g: (g * x * 7.0,))


def gradient(fun):
    def run(m):
        return m.custom_gradient(functools.partial(fun, m))

    return run


def product(m):
    return m.custom_gradient(lambda x, y: (x * y, lambda g: (g * y * 7.0, g)))


cases(
    gradient_grad=lambda m: m.grad(gradient(SQUARE)(m))(3.0),
    gradient_eager=lambda m: gradient(SQUARE)(m)(array(m, 3.0)),
    gradient_jit=lambda m: m.jit(m.grad(gradient(SQUARE)(m)))(3.0),
    gradient_grad_jit=lambda m: m.grad(m.jit(gradient(SQUARE)(m)))(3.0),
    gradient_twice=lambda m: m.grad(m.grad(gradient(SQUARE)(m)))(3.0),
    gradient_vmap=lambda m: m.vmap(m.grad(gradient(SQUARE)(m)))(vec()),
    gradient_no_tuple=lambda m: m.grad(m.custom_gradient(lambda x: (x * x, lambda g: g * x)))(3.0),
    gradient_two=lambda m: m.grad(product(m), (0, 1))(3.0, 2.0),
    gradient_vmap_grad=lambda m: m.vmap(m.grad(product(m), (0, 1)), (0, None))(vec(), 2.0),
    gradient_grad_vmap=lambda m: m.grad(
        lambda x, y: m.numpy.sum(m.vmap(product(m), (0, None))(x, y)), (0, 1)
    )(vec(), 2.0),
    gradient_short=lambda m: m.grad(m.custom_gradient(lambda x, y: (x * y, lambda g: g)))(3.0, 2.0),
    gradient_tree=lambda m: m.grad(
        lambda *a: m.custom_gradient(
            lambda x, y: ({"a": x * y, "b": x}, lambda g: (g["a"] * 2, g["b"]))
        )(*a)["a"], (0, 1)
    )(3.0, 2.0),
    gradient_keyword=lambda m: m.grad(lambda x: product(m)(x, y=4.0))(3.0),
    gradient_no_pair=lambda m: m.custom_gradient(lambda x: x * 2)(array(m, 3.0)),
    gradient_shape=lambda m: m.grad(
        m.custom_gradient(lambda x: (x * 2, lambda g: (np.ones(3, np.float32),)))
    )(1.0),
    gradient_jvp=lambda m: m.jvp(gradient(SQUARE)(m), (1.0,), (1.0,)),
)  # fmt: skip


def converted(m, seen=None):
    def run(x):
        c = np.arange(3.0, dtype=np.float32)
        g, consts = m.closure_convert(lambda y: m.numpy.sum(x * y * c), array(m, np.float32(1.0)))
        if seen is not None:
            seen.append(len(consts))
        return g(array(m, np.float32(2.0)), *consts)

    return run


def constants_of(transform, *args):
    def run(m):
        seen = []
        return transform(m, converted(m, seen))(*args), seen

    return run


cases(
    convert_eager=constants_of(lambda m, f: f, np.float32(1.0)),
    convert_grad=constants_of(lambda m, f: m.grad(f), 1.0),
    convert_vmap=constants_of(lambda m, f: m.vmap(f), vec()),
    convert_jit=constants_of(lambda m, f: m.jit(f), 1.0),
    convert_jit_int=constants_of(lambda m, f: m.jit(f), 1),
    convert_jit_grad=constants_of(lambda m, f: m.jit(m.grad(f)), 1.0),
    convert_vmap_grad=constants_of(lambda m, f: m.vmap(m.grad(f)), vec()),
    convert_tree=lambda m: m.closure_convert(lambda d: {"r": d["a"] * 2}, {"a": 1.0})[0](
        {"a": array(m, np.float32(3.0))}
    ),
    convert_wrong_tree=lambda m: m.closure_convert(lambda d: d["a"] * 2, {"a": 1.0})[0](3.0),
    convert_more=lambda m: m.closure_convert(lambda d: d * 2.0, 1.0)[0](3.0, 1.0),
)


def linear(m):
    call = m.custom_derivatives.linear_call
    return lambda r, x: call(lambda r, x: x * r, lambda r, ct: ct * r * 10.0, r, x)


cases(
    linear_eager=lambda m: linear(m)(2.0, 3.0),
    linear_transposed=lambda m: m.linear_transpose(lambda x: linear(m)(2.0, x), 3.0)(1.0),
    linear_transposed_twice=lambda m: m.linear_transpose(
        lambda c: m.linear_transpose(lambda x: linear(m)(2.0, x), 3.0)(c), 1.0
    )((1.0,)),
    linear_grad=lambda m: m.grad(linear(m), 1)(2.0, 3.0),
    linear_grad_grad=lambda m: m.grad(m.grad(linear(m), 1), 1)(2.0, 3.0),
    linear_jit=lambda m: m.jit(m.grad(linear(m), 1))(2.0, 3.0),
    linear_grad_jit=lambda m: m.grad(m.jit(linear(m)), 1)(2.0, 3.0),
    linear_tree=lambda m: m.grad(
        lambda x: m.custom_derivatives.linear_call(
            lambda r, x: {"o": x["a"] * r}, lambda r, c: {"a": c["o"] * r}, 2.0, {"a": x}
        )["o"]
    )(3.0),
    linear_bad_tree=lambda m: m.grad(
        lambda x: m.custom_derivatives.linear_call(
            lambda r, x: x * r, lambda r, c: (c, c), 2.0, x
        )
    )(3.0),
    linear_bad_shape=lambda m: m.grad(
        lambda x: m.custom_derivatives.linear_call(
            lambda r, x: x * r, lambda r, c: np.ones(3, np.float32), 2.0, x
        )
    )(3.0),
)  # fmt: skip


def test_linear_call_beyond_upstream():
    """Mapped, and differentiated with respect to residuals: upstream refuses both."""
    f = linear(minijax)
    x = vec()
    np.testing.assert_allclose(minijax.vmap(f)(x, x), x * x, rtol=1e-6)
    np.testing.assert_allclose(minijax.vmap(minijax.grad(f, 1))(x, x), 10 * x, rtol=1e-6)
    pulled = minijax.grad(lambda r, x: minijax.numpy.sum(minijax.vmap(f)(r, x)), (0, 1))(x, x)
    np.testing.assert_allclose(pulled[1], 10 * x, rtol=1e-6)
    np.testing.assert_allclose(pulled[0], x, rtol=1e-6)
    np.testing.assert_allclose(minijax.jvp(f, (2.0, 3.0), (1.0, 1.0))[1], 5.0, rtol=1e-6)


# -- custom_vmap ----------------------------------------------------------------------------------


def mapped(m, rule=None, fun=None):
    f = m.custom_batching.custom_vmap(fun or (lambda x, y: m.lax.sin(x) * y))
    f.def_vmap(functools.partial(rule, m) if rule else lambda n, b, x, y: (m.lax.cos(x) * y, True))
    return f


VMAP_RULES = {
    "unmapped": lambda m, n, b, x, y: (m.numpy.sum(x), False),
    "tree of flags": lambda m, n, b, x, y: (m.lax.cos(x), (True,)),
    "tree of results": lambda m, n, b, x, y: ((m.lax.cos(x),), (True,)),
    "list": lambda m, n, b, x, y: [x * 1.0, True],
    "no pair": lambda m, n, b, x, y: m.lax.cos(x),
    "size": lambda m, n, b, x, y: (x * float(n), True),
}
for _name, _rule in VMAP_RULES.items():
    CASES[f"vmap rule: {_name}"] = lambda m, r=_rule: m.vmap(mapped(m, r))(vec(), vec())
    CASES[f"vmap rule in jit: {_name}"] = lambda m, r=_rule: m.jit(m.vmap(mapped(m, r)))(
        vec(), vec()
    )

cases(
    mapped_eager=lambda m: mapped(m)(1.0, 2.0),
    mapped_keyword=lambda m: mapped(m)(1.0, y=2.0),
    mapped_no_rule=lambda m: m.custom_batching.custom_vmap(lambda x: x)(1.0),
    mapped_no_rule_vmap=lambda m: m.vmap(m.custom_batching.custom_vmap(lambda x: x))(vec()),
    mapped_returns_rule=lambda m: m.custom_batching.custom_vmap(abs).def_vmap(abs) is abs,
    mapped_both=lambda m: m.vmap(mapped(m))(vec(), vec()),
    mapped_one=lambda m: m.vmap(mapped(m), (0, None))(vec(), 2.0),
    mapped_axis=lambda m: m.vmap(mapped(m), (1, None))(np.ones((3, 2), np.float32), vec()),
    mapped_twice=lambda m: m.vmap(m.vmap(mapped(m)))(
        np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    ),
    mapped_outer=lambda m: m.vmap(m.vmap(mapped(m), (0, None)), (None, 0))(vec(), vec(2)),
    mapped_jit=lambda m: m.jit(m.vmap(mapped(m)))(vec(), vec()),
    mapped_of_jit=lambda m: m.vmap(m.jit(mapped(m)))(vec(), vec()),
    mapped_jvp=lambda m: m.jvp(mapped(m), (1.0, 2.0), (1.0, 0.5)),
    mapped_jvp_jit=lambda m: m.jvp(m.jit(mapped(m)), (1.0, 2.0), (1.0, 0.5)),
    mapped_vmap_jvp=lambda m: m.vmap(lambda x: m.jvp(mapped(m), (x, 2.0), (x, 0.5)))(vec()),
    mapped_vmap_jvp_jit=lambda m: m.vmap(
        m.jit(lambda x: m.jvp(mapped(m), (x, 2.0), (x, 0.5)))
    )(vec()),
    mapped_jvp_vmap=lambda m: m.jvp(m.vmap(mapped(m)), (vec(), vec()), (vec(), vec())),
    mapped_grad_vmap=lambda m: m.grad(lambda x: m.numpy.sum(m.vmap(mapped(m))(x, x)))(vec()),
    mapped_grad=lambda m: m.grad(mapped(m))(1.0, 2.0),
    mapped_grad_jit=lambda m: m.grad(m.jit(mapped(m)))(1.0, 2.0),
    mapped_vmap_grad=lambda m: m.vmap(m.grad(mapped(m)))(vec(), vec()),
    mapped_transposed=lambda m: m.linear_transpose(lambda y: mapped(m)(1.0, y), 1.0)(1.0),
    mapped_in_custom_vjp=lambda m: m.vmap(
        m.grad(
            with_vjp(
                m, mapped(m), lambda x, y: (mapped(m)(x, y), x), lambda r, ct: (ct * r, None)
            )
        )
    )(vec(), vec()),
    mapped_closing_jit=lambda m: m.jit(
        lambda x: m.vmap(mapped(m, fun=lambda a, b: a * x))(vec(), vec())
    )(2.0),
    mapped_closing_jvp=lambda m: m.jvp(
        lambda x: mapped(m, fun=lambda a, b: a * x)(x, 1.0), (2.0,), (1.0,)
    ),
    mapped_tree=lambda m: m.vmap(
        mapped(
            m,
            lambda m, n, b, d, y: (
                {"o": d["a"] * 2.0, "p": y}, {"o": True, "p": b[1]}
            ),
            lambda d, y: {"o": d["a"] * y, "p": y},
        ),
        ({"a": 0, "b": None}, None),
    )({"a": vec(), "b": 1.0}, 2.0),
)  # fmt: skip


def sequential(m):
    return m.custom_batching.sequential_vmap(lambda x, y: (x * y, y))


cases(
    sequential_one=lambda m: m.vmap(sequential(m), (0, None))(vec(), np.float32(2.0)),
    sequential_both=lambda m: m.vmap(sequential(m))(vec(), vec()),
    sequential_twice=lambda m: m.vmap(m.vmap(sequential(m), (0, None)), (None, 0))(vec(), vec(2)),
    sequential_jit=lambda m: m.jit(m.vmap(sequential(m)))(vec(), vec()),
)


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    check(CASES[name], name, False)


# Rules that read the axis by its name, and what they give: a value is the same at each position.
NAMED_RULES = {
    "sum": (lambda m, n, b, x, y: (m.lax.psum(x, "i") + y, True), lambda x, y: x * x.size + y),
    "mean": (lambda m, n, b, x, y: (m.lax.pmean(x * y, "i"), True), lambda x, y: x * y),
    "size": (lambda m, n, b, x, y: (x * m.lax.axis_size("i"), True), lambda x, y: x * x.size),
    "number": (lambda m, n, b, x, y: (x + m.lax.psum(1, "i"), True), lambda x, y: x + x.size),
    "largest": (lambda m, n, b, x, y: (x - m.lax.pmax(m.numpy.max(x), "i"), True),
                lambda x, y: x - x.max()),
    "mapped within": (lambda m, n, b, x, y: (
        m.vmap(lambda x: x * m.lax.psum(x, "i"), axis_name="i")(x), True
    ), lambda x, y: x * x.sum()),
    "nothing": (lambda m, n, b, x, y: (x * 2, True), lambda x, y: x * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED_RULES)
def test_rules_that_name_the_axis(name):
    rule, by_hand = NAMED_RULES[name]

    def call(m):
        return m.vmap(mapped(m, rule), (0, None), axis_name="i")

    x, y = minijax.numpy.asarray(vec()), np.float32(2.0)
    expected = by_hand(np.asarray(x), y)
    assert_same(call(minijax)(x, y), expected)
    assert_same(minijax.jit(call(minijax))(x, y), expected)
    rows = minijax.vmap(call(minijax), (0, None))(minijax.numpy.stack([x, x]), y)
    assert_same(rows, np.stack([expected, expected]))
    if name != "largest":  # upstream's have no maximum
        assert_same(call(minijax)(x, y), call(jax)(jax.numpy.asarray(vec()), y))


def test_a_rule_is_called_once_for_all_positions():
    rule = lambda m, n, b, x, y: (m.lax.axis_index("i") * x, True)
    with pytest.raises(ValueError, match="depends on the position along the axis 'i'"):
        minijax.vmap(mapped(minijax, rule), axis_name="i")(vec(), vec())
