"""custom_jvp, custom_vjp, custom_vmap and their kin, against upstream.

A case is a function of a library; it must give the same tree of values in both, or raise an error of
the same name.
"""

import functools

import jax
import jax.custom_batching
import jax.custom_derivatives
import numpy as np
import pytest

import minijax
import minijax.custom_batching
import minijax.custom_derivatives
from tests.harness.differential import BFLOAT16, BOTH, assert_same, x64

pytestmark = pytest.mark.both_ends

CASES = {}
F0 = jax.dtypes.float0


def case(fun):
    CASES[fun.__name__] = fun
    return fun


def cases(**functions):
    CASES.update(functions)


def outcome(fun, m):
    try:
        return fun(m), None
    except Exception as error:
        return None, error


def error_name(error):
    return None if error is None else type(error).__name__


# -- functions to test with -----------------------------------------------------------------------


def vec(n=3):
    return np.linspace(0.3, 1.7, n).astype(np.float32)


def with_jvp(m, fun, rule, *, symbolic_zeros=False, **options):
    f = m.custom_jvp(fun, **options)
    f.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return f


def with_vjp(m, fun, fwd, bwd, *, symbolic_zeros=False, optimize_remat=False, **options):
    f = m.custom_vjp(fun, **options)
    f.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros, optimize_remat=optimize_remat)
    return f


def sine_j(m):
    """sin(x) * y, whose rule has a factor 3, to be told from the true derivative."""

    def my_fun(x, y):
        return m.lax.sin(x) * y

    def my_rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), 3.0 * m.lax.cos(x) * y * tx + m.lax.sin(x) * ty

    f = with_jvp(m, my_fun, my_rule)
    return f


def sine_v(m):
    def my_fun(x, y):
        return m.lax.sin(x) * y

    def my_fwd(x, y):
        return f(x, y), (x, y)

    def my_bwd(residuals, ct):
        x, y = residuals
        return 3.0 * m.lax.cos(x) * y * ct, m.lax.sin(x) * ct

    f = with_vjp(m, my_fun, my_fwd, my_bwd)
    return f


def array(m, x):
    return m.lax.add(np.asarray(x), np.zeros_like(x))


# -- each rule under the transforms and their nestings --------------------------------------------

KINDS = {"jvp": sine_j, "vjp": sine_v}
SCALAR = (np.float32(0.7), np.float32(1.3))

TRANSFORMS = {
    "eager": lambda m, f: f(*SCALAR),
    "kwargs": lambda m, f: f(y=SCALAR[1], x=SCALAR[0]),
    "jit": lambda m, f: m.jit(f)(*SCALAR),
    "grad": lambda m, f: m.grad(f, (0, 1))(*SCALAR),
    "grad of one": lambda m, f: m.grad(f, 1)(*SCALAR),
    "grad by keyword": lambda m, f: m.grad(lambda x: f(x, y=SCALAR[1]))(SCALAR[0]),
    "grad jit": lambda m, f: m.grad(m.jit(f), (0, 1))(*SCALAR),
    "jit grad": lambda m, f: m.jit(m.grad(f, (0, 1)))(*SCALAR),
    "grad grad": lambda m, f: m.grad(m.grad(f))(*SCALAR),
    "grad grad grad": lambda m, f: m.grad(m.grad(m.grad(f)))(*SCALAR),
    "grad jit grad": lambda m, f: m.grad(m.jit(m.grad(f)))(*SCALAR),
    "vmap": lambda m, f: m.vmap(f)(vec(), vec()),
    "vmap one": lambda m, f: m.vmap(f, (0, None))(vec(), SCALAR[1]),
    "vmap axis": lambda m, f: m.vmap(f, (1, None), 1)(np.ones((2, 3), np.float32), vec(2)),
    "vmap vmap": lambda m, f: m.vmap(m.vmap(f, (0, None)), (None, 0))(vec(), vec(2)),
    "vmap jit": lambda m, f: m.vmap(m.jit(f), (0, None))(vec(), SCALAR[1]),
    "jit vmap": lambda m, f: m.jit(m.vmap(f, (0, None)))(vec(), SCALAR[1]),
    "vmap grad": lambda m, f: m.vmap(m.grad(f, (0, 1)), (0, None))(vec(), SCALAR[1]),
    "vmap grad jit": lambda m, f: m.vmap(m.grad(m.jit(f), (0, 1)), (0, None))(vec(), SCALAR[1]),
    "grad vmap": lambda m, f: m.grad(total(m, m.vmap(f, (0, None))), (0, 1))(vec(), SCALAR[1]),
    "grad vmap jit": lambda m, f: m.grad(total(m, m.vmap(m.jit(f), (0, None))), (0, 1))(
        vec(), SCALAR[1]
    ),
    "grad jit vmap": lambda m, f: m.grad(total(m, m.jit(m.vmap(f, (0, None)))), (0, 1))(
        vec(), SCALAR[1]
    ),
    "grad vmap vmap": lambda m, f: m.grad(
        total(m, m.vmap(m.vmap(f, (0, None)), (None, 0))), (0, 1)
    )(vec(), vec(2)),
    "grad vmap grad": lambda m, f: m.grad(total(m, m.vmap(m.grad(f), (0, None))), (0, 1))(
        vec(), SCALAR[1]
    ),
    "vjp": lambda m, f: m.vjp(f, *SCALAR)[1](SCALAR[0]),
    "jacrev": lambda m, f: m.jacrev(f)(vec(), vec()),
    "jvp": lambda m, f: m.jvp(f, SCALAR, SCALAR),
    "jvp jit": lambda m, f: m.jvp(m.jit(f), SCALAR, SCALAR),
    "jit jvp": lambda m, f: m.jit(lambda x, y: m.jvp(f, (x, y), (x, y)))(*SCALAR),
    "jacfwd": lambda m, f: m.jacfwd(f)(vec(), vec()),
    "linearize": lambda m, f: m.linearize(f, *SCALAR)[1](*SCALAR),
    "jvp grad": lambda m, f: m.jvp(m.grad(f), SCALAR, SCALAR),
    "vmap jvp": lambda m, f: m.vmap(lambda x: m.jvp(f, (x, x), (x, x)))(vec()),
    "jvp vmap": lambda m, f: m.jvp(m.vmap(f), (vec(), vec()), (vec(), vec())),
    "linear_transpose": lambda m, f: m.linear_transpose(lambda y: f(SCALAR[0], y), SCALAR[1])(
        SCALAR[0]
    ),
}


def total(m, f):
    return lambda *args: m.numpy.sum(f(*args))


for _kind, _make in KINDS.items():
    for _name, _run in TRANSFORMS.items():
        CASES[f"{_kind}: {_name}"] = lambda m, make=_make, run=_run: run(m, make(m))


PRINTED = {
    "eager": lambda m, f: m.make_jaxpr(f)(*SCALAR),
    "grad": lambda m, f: m.make_jaxpr(m.grad(f))(*SCALAR),
    "vmap": lambda m, f: m.make_jaxpr(m.vmap(f))(vec(), vec()),
    "vmap one": lambda m, f: m.make_jaxpr(m.vmap(f, (None, 0)))(1.0, vec()),
    "vmap vmap": lambda m, f: m.make_jaxpr(m.vmap(m.vmap(f)))(vec()[None], vec()[None]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRINTED)
def test_programs_print_alike(kind, name):
    ours, theirs = (str(PRINTED[name](m, KINDS[kind](m))) for m in (minijax, jax))
    for text in ("custom_", "name=my_fun", "=my_", "symbolic_zeros=False"):
        assert ours.count(text) == theirs.count(text)
    assert ours.count(f"custom_{kind}_call[") == 1


def test_printed_custom_jvp():
    def text(m):
        f = with_jvp(m, lambda x, y: m.lax.sin(x), lambda p, t: (f(*p), t[0]))
        return str(m.make_jaxpr(m.grad(f))(1.0, 2.0))

    assert text(minijax) == text(jax)


def test_printed_custom_vjp():
    def text(m):
        def bwd(r, ct):
            return ct * r, None

        f = with_vjp(m, lambda x, y: m.lax.sin(x), lambda x, y: (f(x, y), x), bwd)
        return str(m.make_jaxpr(m.grad(f))(*SCALAR)) + str(
            m.make_jaxpr(lambda x: m.jvp(f, (x, x), (x, x)))(SCALAR[0])
        )

    assert text(minijax) == text(jax)


# -- custom_jvp: arguments, rules, errors ---------------------------------------------------------


def jvp_rule(rule, jit=False, fun=None):
    """The gradient of a function whose rule is the one given."""

    def run(m):
        f = with_jvp(m, fun or (lambda x, y: m.lax.sin(x) * y), functools.partial(rule, m))
        return m.grad(m.jit(f) if jit else f)(1.0, 2.0)

    return run


BAD_RULES = {
    "not a pair": lambda m, p, t: p[0],
    "triple": lambda m, p, t: (p[0], t[0], t[0]),
    "list": lambda m, p, t: [p[0] * 1.0, t[0]],
    "tangent tree": lambda m, p, t: (p[0], (t[0],)),
    "tangent None": lambda m, p, t: (p[0], None),
    "primal tree": lambda m, p, t: ((p[0],), (t[0],)),
    "primal shape": lambda m, p, t: (np.ones(3, np.float32), np.ones(3, np.float32)),
    "primal dtype": lambda m, p, t: (np.float16(1.0), np.float16(1.0)),
    "tangent shape": lambda m, p, t: (p[0], np.ones(3, np.float32)),
    "tangent dtype": lambda m, p, t: (p[0], np.float16(1.0)),
    "tangent int": lambda m, p, t: (p[0], 1),
    "tangent number": lambda m, p, t: (p[0], 1.0),
    "string": lambda m, p, t: ("a", t[0]),
}
for _name, _rule in BAD_RULES.items():
    CASES[f"jvp rule: {_name}"] = jvp_rule(_rule)
    if _name not in ("primal tree", "string"):
        CASES[f"jvp rule in jit: {_name}"] = jvp_rule(_rule, jit=True)


def test_rule_errors_name_functions():
    def my_fun(x):
        return x

    def my_rule(primals, tangents):
        return primals[0]

    f = minijax.custom_jvp(my_fun)
    f.defjvp(my_rule)
    with pytest.raises(TypeError, match=r"my_rule for function my_fun must produce a pair"):
        minijax.grad(f)(1.0)
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function my_fun"):
        minijax.custom_jvp(my_fun)(1.0)
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function my_fun"):
        minijax.custom_vjp(my_fun)(1.0)


def simple_j(m, **options):
    return with_jvp(m, lambda x, y=3.0: x * y, lambda p, t: (p[0] * p[1], t[0]), **options)


cases(
    jvp_no_rule=lambda m: m.custom_jvp(lambda x: x)(1.0),
    jvp_no_rule_jit=lambda m: m.jit(m.custom_jvp(lambda x: x))(1.0),
    jvp_no_rule_grad=lambda m: m.grad(m.custom_jvp(lambda x: x))(1.0),
    jvp_string=lambda m: simple_j(m)("a"),
    jvp_default=lambda m: m.grad(simple_j(m))(1.0),
    jvp_too_few=lambda m: simple_j(m)(),
    jvp_too_many=lambda m: simple_j(m)(1.0, 2.0, 3.0),
    jvp_unknown_keyword=lambda m: simple_j(m)(1.0, z=2.0),
    jvp_keyword_only=lambda m: with_jvp(m, lambda x, *, y: x * y, None)(1.0, y=2.0),
    jvp_keyword_only_default=lambda m: with_jvp(m, lambda x, *, y=2.0: x * y, abs)(1.0),
    jvp_var_keyword=lambda m: with_jvp(m, lambda x, **k: x * k["y"], abs)(1.0, y=2.0),
    jvp_var_positional=lambda m: m.grad(
        with_jvp(m, lambda *a: a[0] * 2, lambda p, t: (p[0] * 2, t[0] * len(p)))
    )(1.0, 2.0),
    jvp_returns_rule=lambda m: simple_j(m).defjvp(abs) is abs,
    jvp_tree=lambda m: m.grad(
        lambda d: with_jvp(
            m,
            lambda d: {"s": d["a"] * d["b"]},
            lambda p, t: ({"s": p[0]["a"] * p[0]["b"]}, {"s": t[0]["a"] * 5.0}),
        )(d)["s"]
    )({"a": 1.0, "b": 2.0}),
    jvp_control_flow=lambda m: m.grad(
        with_jvp(
            m,
            lambda x: x if x > 0 else -x,
            lambda p, t: (p[0], t[0]) if p[0] > 0 else (-p[0], -2.0 * t[0]),
        )
    )(-1.5),
    jvp_identity_number=lambda m: m.jit(with_jvp(m, lambda x: x, lambda p, t: (p[0], t[0])))(1.0),
    jvp_linear_transpose=lambda m: m.linear_transpose(
        with_jvp(m, lambda x: x * 2.0, lambda p, t: (p[0] * 2, t[0] * 2)), 1.0
    )(3.0),
    jvp_linear_transpose_jit=lambda m: m.linear_transpose(
        m.jit(with_jvp(m, lambda x: x * 2.0, lambda p, t: (p[0] * 2, t[0] * 2))), 1.0
    )(3.0),
    jvp_int_output=lambda m: m.jit(
        lambda x: m.jvp(
            with_jvp(
                m, lambda x: (x, 3), lambda p, t: ((p[0], 3), (t[0], np.zeros((), F0)))
            ), (x,), (x,)
        )[1][0]
    )(1.0),
    jvp_int_output_wrong=lambda m: m.jvp(
        with_jvp(m, lambda x: (x, 3), lambda p, t: ((p[0], 3), (t[0], 0))), (1.0,), (1.0,)
    ),
)  # fmt: skip


def tangents_seen(symbolic_zeros, *args, jit=False):
    """What a rule sees: kinds, shapes and dtypes of its tangents."""

    def run(m):
        seen = []

        def rule(p, t):
            for x in t:
                symbolic = isinstance(x, m.custom_derivatives.SymbolicZero)
                seen.append((int(symbolic), list(np.shape(x)), str(x.dtype)))
            return p[0] * 1.0, t[0]

        f = with_jvp(m, lambda x, y: x * 1.0, rule, symbolic_zeros=symbolic_zeros)
        found = m.grad(m.jit(f) if jit else f)(1.0, *args)
        return found, [int(s[0]) for s in seen], [s[1] for s in seen], [hash(s[2]) for s in seen]

    return run


for _symbolic in (False, True):
    for _jit in (False, True):
        for _arg in (2, 2.0, np.arange(2), np.ones(2, np.float32)):
            CASES[f"tangents seen: {_symbolic} {_jit} {_arg}"] = tangents_seen(
                _symbolic, _arg, jit=_jit
            )


@case
def symbolic_zero_returned(m):
    f = with_jvp(m, lambda x, n: x * 1.0, lambda p, t: (p[0] * 1.0, t[1]), symbolic_zeros=True)
    return m.grad(f)(1.0, 2.0), m.vmap(m.grad(f))(vec(), vec()), m.grad(m.jit(f))(1.0, 2.0)


def sums(*rules):
    def run(m):
        f = m.custom_jvp(lambda x, y: x * m.lax.sin(y))
        f.defjvps(*[functools.partial(r, m) if r else r for r in rules])
        return m.grad(f, (0, 1))(2.0, 3.0), m.vmap(m.grad(f))(vec(), vec())

    return run


cases(
    defjvps_both=sums(
        lambda m, t, out, x, y: t * m.lax.sin(y), lambda m, t, out, x, y: t * x * out
    ),
    defjvps_one=sums(lambda m, t, out, x, y: t * m.lax.sin(y), None),
    defjvps_too_few=sums(None),
    defjvps_nondiff=lambda m: m.custom_jvp(lambda x, n: x, nondiff_argnums=(1,)).defjvps(None),
)


# -- arguments that rules are not about -----------------------------------------------------------


def apply_j(m):
    f = m.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    f.defjvp(lambda f, p, t: (f(p[0]), 3.0 * t[0]))
    return f


def apply_v(m):
    f = m.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
    f.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (3.0 * ct * f(x),))
    return f


def scale_j(m):
    f = m.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defjvp(lambda n, p, t: (n * p[0], 3.0 * t[0]))
    return f


def scale_v(m, **options):
    f = m.custom_vjp(lambda x, n: n * x, **(options or {"nondiff_argnums": (1,)}))
    f.defvjp(lambda x, n: (n * x, x), lambda n, r, ct: (3.0 * ct * n,))
    return f


for _name, _make in {"j": apply_j, "v": apply_v}.items():
    for _kind, _run in {
        "eager": lambda m, q: q(m.lax.sin, 1.0),
        "grad": lambda m, q: m.grad(lambda x: q(m.lax.sin, x))(1.0),
        "grad grad": lambda m, q: m.grad(m.grad(lambda x: q(m.lax.sin, x)))(1.0),
        "jit grad": lambda m, q: m.jit(m.grad(lambda x: q(m.lax.sin, x)))(1.0),
        "grad jit": lambda m, q: m.grad(m.jit(lambda x: q(m.lax.sin, x)))(1.0),
        "keyword": lambda m, q: m.grad(lambda x: q(x=x, f=m.lax.sin))(1.0),
        "vmap": lambda m, q: m.vmap(lambda x: q(m.lax.sin, x))(vec()),
        "vmap grad": lambda m, q: m.vmap(m.grad(lambda x: q(m.lax.sin, x)))(vec()),
        "closes over": lambda m, q: m.grad(lambda x: q(lambda y: x * y, x))(2.0),
        "closes over jit": lambda m, q: m.jit(m.grad(lambda x: q(lambda y: x * y, x)))(2.0),
        "jit closes over": lambda m, q: m.jit(lambda x: q(lambda y: x * y, x))(2.0),
        "vmap closes over": lambda m, q: m.vmap(lambda x: q(lambda y: x * y, x))(vec()),
    }.items():
        CASES[f"nondiff {_name}: {_kind}"] = lambda m, make=_make, run=_run: run(m, make(m))

cases(
    nondiff_traced_grad=lambda m: m.grad(lambda x: scale_j(m)(x, x))(2.0),
    nondiff_traced_jit=lambda m: m.jit(lambda x: scale_j(m)(x, x))(2.0),
    nondiff_traced_jit_grad=lambda m: m.jit(m.grad(lambda x: scale_j(m)(x, x)))(2.0),
    nondiff_traced_jit_of_grad=lambda m: m.jit(
        lambda x: m.grad(lambda y: scale_j(m)(x, y))(1.0)
    )(2.0),
    nondiff_traced_vmap=lambda m: m.vmap(lambda x: scale_j(m)(x, x))(vec()),
    nondiff_traced_vmap_grad=lambda m: m.vmap(
        lambda x: m.grad(lambda y: scale_j(m)(x, y))(x)
    )(vec()),
    nondiff_traced_v_grad=lambda m: m.grad(lambda x: scale_v(m)(x, x))(2.0),
    nondiff_traced_v_jit=lambda m: m.jit(lambda x: scale_v(m)(x, x))(2.0),
    nondiff_traced_v_vmap=lambda m: m.vmap(lambda x: scale_v(m)(x, x))(vec()),
    nondiff_array_v=lambda m: m.grad(lambda x: scale_v(m)(x, array(m, 2.0)))(1.0),
    nondiff_negative=lambda m: m.grad(
        lambda x: with_jvp(
            m, lambda x, n: x * n, lambda n, p, t: (p[0] * n, t[0] * 5.0), nondiff_argnums=(-1,)
        )(x, 3)
    )(1.0),
    nondiff_names=lambda m: m.grad(lambda x: scale_v(m, nondiff_argnames=("n",))(x, 3))(1.0),
    nondiff_both=lambda m: list(
        m.custom_jvp(lambda a, n, k: a, nondiff_argnums=(2,), nondiff_argnames="n").nondiff_argnums
    ),
    nondiff_not_iterable=lambda m: m.custom_jvp(lambda x, n: n * x, nondiff_argnums=1),
    nondiff_number=lambda m: [m.grad(lambda x: scale_v(m)(x, n))(1.0) for n in (2, 2.0, True)],
)  # fmt: skip


# -- values closed over ---------------------------------------------------------------------------


def closing(m, where, kind, argument=None):
    """A function with a rule, of which one part reads `x` of the function around it."""

    def outer(x):
        a = {part: x if part in where else 2.0 for part in ("fun", "rule", "residual")}
        if kind == "jvp":
            f = with_jvp(m, lambda y: a["fun"] * y, lambda p, t: (f(*p), a["rule"] * t[0]))
        else:
            f = with_vjp(
                m,
                lambda y: a["fun"] * y,
                lambda y: (y * 2.0, a["residual"] * 1.0),
                lambda r, ct: (ct * r * a["rule"],),
            )
        return f(x if argument is None else argument)

    return outer


CLOSING = {
    "grad": lambda m, f: m.grad(f)(2.0),
    "jit": lambda m, f: m.jit(f)(2.0),
    "jit grad": lambda m, f: m.jit(m.grad(f))(2.0),
    "vmap": lambda m, f: m.vmap(f)(vec()),
    "jit vmap": lambda m, f: m.jit(m.vmap(f))(vec()),
    "vmap jit": lambda m, f: m.vmap(m.jit(f))(vec()),
    "vmap grad": lambda m, f: m.vmap(m.grad(f))(vec()),
    "grad vmap": lambda m, f: m.grad(lambda x: m.numpy.sum(m.vmap(f)(x)))(vec()),
}
for _where in ("fun", "rule", "residual"):
    for _kind in ("jvp", "vjp"):
        if (_where, _kind) == ("residual", "jvp"):
            continue
        for _name, _run in CLOSING.items():
            for _argument in (None, 3.0):
                CASES[f"closing: {_where} {_kind} {_name} {_argument}"] = (
                    lambda m, w=_where, k=_kind, run=_run, a=_argument: run(m, closing(m, w, k, a))
                )


def two_arguments(kind):
    """The function closes over a traced value of the jit around it."""

    def run(m):
        def outer(x, y):
            if kind == "jvp":
                f = with_jvp(m, lambda y: x * y, lambda p, t: (p[0], t[0] * 3))
            else:
                f = with_vjp(m, lambda y: x * y, lambda y: (y, None), lambda r, ct: (ct * 3,))
            return f(y)

        return [m.grad(m.jit(outer), n)(2.0, 3.0) for n in ((1,) if kind == "vjp" else (0, 1))]

    return run


cases(
    closing_gradjit_jvp=two_arguments("jvp"),
    closing_gradjit_vjp=two_arguments("vjp"),
    closing_gradjit_refused=lambda m: m.grad(m.jit(closing(m, ("fun",), "vjp")))(2.0),
)


# -- custom_vjp: rules and errors -----------------------------------------------------------------

BACKWARD = {
    "short": lambda m, r, c: (c,),
    "long": lambda m, r, c: (c, c, c),
    "list": lambda m, r, c: [c, c],
    "no tuple": lambda m, r, c: c,
    "shape": lambda m, r, c: (np.ones(3, np.float32), c),
    "none": lambda m, r, c: (None, c),
    "nones": lambda m, r, c: (None, None),
    "nothing": lambda m, r, c: None,
    "tree": lambda m, r, c: ((c,), c),
    "string": lambda m, r, c: ("a", c),
}
FORWARD = {
    "not a pair": lambda m, x, y: x,
    "triple": lambda m, x, y: (x, y, x),
    "list": lambda m, x, y: [x * y, (x, y)],
    "tree": lambda m, x, y: ((x,), (x, y)),
    "shape": lambda m, x, y: (np.ones(3, np.float32), (x, y)),
    "dtype": lambda m, x, y: (np.float16(1.0), (x, y)),
    "string": lambda m, x, y: (x * y, "a"),
    "object": lambda m, x, y: (x * y, object()),
}


def vjp_rules(fwd=None, bwd=None, jit=False, grad=True):
    def run(m):
        forward = functools.partial(fwd, m) if fwd else (lambda x, y: (x * y, (x, y)))
        backward = functools.partial(bwd, m) if bwd else (lambda r, c: (c, c))
        f = with_vjp(m, lambda x, y: m.lax.sin(x) * y, forward, backward)
        f = m.jit(f) if jit else f
        return m.grad(f, (0, 1))(1.0, 2.0) if grad else f(1.0, 2.0)

    return run


for _jit in (False, True):
    for _name, _rule in BACKWARD.items():
        CASES[f"bwd: {_name} {_jit}"] = vjp_rules(bwd=_rule, jit=_jit)
    for _name, _rule in FORWARD.items():
        CASES[f"fwd: {_name} {_jit}"] = vjp_rules(fwd=_rule, jit=_jit)
for _name, _rule in FORWARD.items():
    CASES[f"fwd unused: {_name}"] = vjp_rules(fwd=_rule, jit=True, grad=False)


def tree_v(backward, *args, argnums=0):
    def run(m):
        f = with_vjp(
            m, lambda d, *e: m.tree_util.tree_leaves(d)[0] * 2.0,
            lambda d, *e: (m.tree_util.tree_leaves(d)[0] * 2.0, None), lambda r, c: backward(c),
        )  # fmt: skip
        return m.grad(f, argnums)(*args)

    return run


D = {"a": 1.0, "b": 3.0}
cases(
    bwd_none_for_dict=tree_v(lambda c: (None,), D),
    bwd_none_in_dict=tree_v(lambda c: ({"a": c, "b": None},), D),
    bwd_missing_key=tree_v(lambda c: ({"a": c},), D),
    bwd_none_for_tuple=tree_v(lambda c: ((c, c), None), (1.0, 3.0), (2.0, 2.0), argnums=(0, 1)),
    bwd_list_for_tuple=tree_v(lambda c: ([c, c], None), (1.0, 3.0), (2.0, 2.0), argnums=(0, 1)),
    bwd_none_in_input=tree_v(lambda c: ((c, None),), (1.0, None)),
    vjp_no_rule=lambda m: m.custom_vjp(lambda x: x)(1.0),
    vjp_no_rule_grad=lambda m: m.grad(m.custom_vjp(lambda x: x))(1.0),
    vjp_string=lambda m: sine_v(m)("a", 1.0),
    vjp_one_rule=lambda m: m.custom_vjp(lambda x: x).defvjp(abs),
    vjp_returns_none=lambda m: m.custom_vjp(lambda x: x).defvjp(abs, abs),
    vjp_keyword_only=lambda m: with_vjp(m, lambda x, *, y: x * y, abs, abs)(1.0, y=2.0),
    vjp_optimize_and_symbolic=lambda m: with_vjp(
        m, abs, abs, abs, symbolic_zeros=True, optimize_remat=True
    ),
    vjp_hessian=lambda m: m.hessian(
        with_vjp(m, lambda x: m.lax.sin(x), lambda x: (m.lax.sin(x), x), lambda r, c: (c * r * r,))
    )(0.7),
)


def int_argument(cotangent, jit=False):
    def run(m):
        f = with_vjp(
            m, lambda x, n: x * n, lambda x, n: (x * n, n), lambda n, c: (c * n, cotangent)
        )
        return m.grad(m.jit(f) if jit else f)(1.0, array(m, np.int32(2))), m.vmap(
            m.grad(f), (0, None)
        )(vec(), 2)

    return run


for _ct in (None, 3.0, 3, np.zeros((), F0)):
    CASES[f"int argument: {_ct}"] = int_argument(_ct)
    CASES[f"int argument in jit: {_ct}"] = int_argument(_ct, jit=True)


@case
def int_output(m):
    seen = []

    def bwd(r, ct):
        seen.append([str(c.dtype) == str(np.dtype(F0)) for c in ct])
        return (ct[0] * 1.0,)

    make = lambda x: (x, m.lax.add(np.int32(3), np.int32(1)), np.arange(2, dtype=np.int32))
    f = with_vjp(m, make, lambda x: (make(x), None), bwd)
    return m.grad(lambda x: f(x)[0])(1.0), m.grad(lambda x: m.jit(f)(x)[0])(1.0), [
        int(x) for x in np.ravel(seen)
    ]  # fmt: skip


def seen_by_rules(transform):
    """What rules with symbolic zeros see."""

    def run(m):
        seen = []

        def fwd(x, y):
            seen.extend([int(x.perturbed), *(int(leaf.perturbed) for leaf in y)])
            return (x.value * 1.0, x.value * 2.0), None

        def bwd(residuals, cts):
            kind = m.custom_derivatives.SymbolicZero
            seen.extend([int(isinstance(ct, kind)) for ct in cts])
            seen.extend([len(ct.shape) for ct in cts])
            return cts[0], (None, cts[1] if isinstance(cts[1], kind) else None)

        f = with_vjp(m, lambda x, y: (x * 1.0, x * 2.0), fwd, bwd, symbolic_zeros=True)
        return transform(m, f), seen

    return run


PAIR = (2.0, 3)
cases(
    symbolic_grad=seen_by_rules(lambda m, f: m.grad(lambda x: f(x, PAIR)[0])(1.0)),
    symbolic_grad_both=seen_by_rules(
        lambda m, f: m.grad(lambda x, y: f(x, y)[0], (0, 1), allow_int=True)(1.0, (2.0, 3.0))
    ),
    symbolic_jit=seen_by_rules(lambda m, f: m.grad(lambda x: m.jit(f)(x, PAIR)[0])(1.0)),
    symbolic_vmap_grad=seen_by_rules(
        lambda m, f: m.vmap(m.grad(lambda x: f(x, PAIR)[0]))(vec())
    ),
    symbolic_grad_vmap=seen_by_rules(
        lambda m, f: m.grad(lambda x: m.numpy.sum(m.vmap(lambda x: f(x, PAIR)[0])(x)))(vec())
    ),
)  # fmt: skip


@case
def unmapped_results(m):
    """Results that do not depend on the mapped axis can stay unmapped."""
    g = with_jvp(m, lambda x, y: (x * 2, y * 2), lambda p, t: (g(*p), (2 * t[0], 2 * t[1])))
    h = with_vjp(
        m, lambda x, y: (x * 2, y * 2), lambda x, y: ((x * 2, y * 2), None), lambda r, c: c
    )
    out = []
    for f in (g, h, m.jit(g), m.jit(h)):
        mapped = m.vmap(f, (0, None), (0, None))
        out.append(m.jit(mapped)(vec(), 1.0))
        out.append(m.grad(lambda x, y: mapped(x, y)[1], 1)(vec(), 1.0))
        out.append(m.grad(lambda x, y: m.numpy.sum(mapped(x, y)[0]))(vec(), 1.0))
    return out


@case
def numbers_of_rules(m):
    """A rule under `jvp` is given numbers as numbers, and what it makes of them stays one."""
    seen = []

    def rule(p, t):
        seen.append(all(isinstance(x, float) for x in (*p, *t)))
        return p[0] ** 2, t[0] * 3

    out = []
    for symbolic in (False, True):
        f = with_jvp(m, lambda x: x**2, rule, symbolic_zeros=symbolic)
        for g in (f, lambda x: f(x) + 1, lambda x: x + 1, m.numpy.sin, m.jit(f), m.numpy.asarray):
            pair = m.jvp(g, (2.0,), (3.0,))
            out.append([(x, type(x) is float) for x in pair])
    return out, seen


@case
def residuals_of_any_axis(m):
    """Residuals that are not mapped, or mapped over another axis than the first."""
    f = with_vjp(
        m,
        lambda x, w: m.lax.sin(x) * w,
        lambda x, w: (m.lax.sin(x) * w, (m.lax.transpose(x, (1, 0)), w)),
        lambda r, ct: (ct * r[1] * m.lax.transpose(r[0], (1, 0)), ct),
    )
    x, w = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.ones((2, 3), np.float32)
    mapped = m.vmap(f, (2, None), 1)
    return m.grad(lambda x, w: m.numpy.sum(mapped(x, w) * 2.0), (0, 1))(x, w)


@case
def optimized_forward(m):
    """`fwd` is exact about the output only; where residuals are unread, `fun` is used."""

    def f(optimize):
        return with_vjp(
            m,
            lambda x: m.lax.sin(x),
            lambda x: (m.lax.sin(x), m.lax.cos(x)),
            lambda r, ct: (ct * r,),
            optimize_remat=optimize,
        )

    return [
        run(f(True))
        for run in (
            lambda g: g(0.7),
            lambda g: m.grad(g)(0.7),
            lambda g: m.jit(m.grad(g))(0.7),
            lambda g: m.grad(m.jit(g))(0.7),
            lambda g: m.vmap(m.grad(g))(vec()),
            lambda g: m.jit(m.vmap(m.grad(g)))(vec()),
            lambda g: m.jit(lambda x: m.grad(lambda x: m.numpy.sum(m.vmap(g)(x)))(x))(vec()),
            lambda g: m.jit(lambda x: m.vjp(g, x)[0])(0.7),
        )
    ]


def test_optimized_forward_twice():
    """Upstream refuses second derivatives here."""
    lax = minijax.lax
    f = with_vjp(
        minijax, lax.sin, lambda x: (lax.sin(x), lax.cos(x)), lambda r, ct: (ct * r,),
        optimize_remat=True,
    )  # fmt: skip
    for g in (minijax.grad(minijax.grad(f)), minijax.jit(minijax.grad(minijax.grad(f)))):
        np.testing.assert_allclose(g(0.7), -np.sin(0.7), rtol=1e-6)


def test_optimized_forward_gives_way():
    def text(m):
        f = with_vjp(
            m, m.lax.sin, lambda x: (m.lax.cos(x), x), lambda r, ct: (ct,), optimize_remat=True
        )
        return m.jit(lambda x: m.vjp(f, x)[0]).lower(0.7).as_text()

    for m in BOTH:
        assert "stablehlo.sine" in text(m)
        assert "stablehlo.cosine" not in text(m)


# -- depth ----------------------------------------------------------------------------------------


def test_many_derivatives_stay_cheap():
    """n-fold derivatives of a pair of functions whose rules call each other: no doubling."""
    calls = [0]

    @minijax.custom_jvp
    def sin(x):
        return minijax.lax.sin(x)

    @minijax.custom_jvp
    def cos(x):
        return minijax.lax.cos(x)

    @sin.defjvp
    def _(p, t):
        calls[0] += 1
        return sin(p[0]), cos(p[0]) * t[0]

    @cos.defjvp
    def _(p, t):
        calls[0] += 1
        return cos(p[0]), -(sin(p[0]) * t[0])

    f = sin
    for _ in range(12):
        f = minijax.grad(f)
    np.testing.assert_allclose(f(0.7), np.sin(0.7), rtol=1e-5)
    assert calls[0] < 500


# -- small things ---------------------------------------------------------------------------------


def test_symbolic_zero():
    zero = minijax.custom_derivatives.zero_from_primal(
        np.ones((2, 3), np.float32), symbolic_zeros=True
    )
    assert (zero.shape, zero.dtype, zero.ndim, zero.size) == ((2, 3), np.float32, 2, 6)
    assert repr(zero) == "SymbolicZero"
    with pytest.raises(TypeError):
        zero + 1
    with pytest.raises(TypeError):
        minijax.lax.sin(zero)


@case
def zeros_of_primals(m):
    zeros = m.custom_derivatives.zero_from_primal((array(m, np.float32(1.0)), np.arange(2)))
    primal = m.custom_derivatives.CustomVJPPrimal
    values = m.custom_derivatives.custom_vjp_primal_tree_values(
        (primal(1.0, True), [primal(2.0, False)])
    )
    return zeros, values


def test_wrapped():
    def my_fun(x):
        """Doc."""

    for make in (minijax.custom_jvp, minijax.custom_vjp, minijax.custom_batching.custom_vmap):
        f = make(my_fun)
        assert (f.__name__, f.__doc__, f.__wrapped__) == ("my_fun", "Doc.", my_fun)


def check(fun, where, weak):
    """The same values from both libraries, or errors of the same name."""
    (theirs, their_error), (ours, our_error) = (outcome(fun, m) for m in BOTH)
    if our_error is not None and their_error is None:
        raise our_error
    assert error_name(our_error) == error_name(their_error), f"{our_error!r}, {their_error!r}"
    if their_error is None:
        assert_same(ours, theirs, where=where, weak=weak)


@pytest.mark.parametrize("kind", [*KINDS, "checkpoint"])
@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float64", "complex64", "complex128"])
def test_dtypes(kind, dtype):
    def run(m):
        f = m.checkpoint(lambda x, y: m.lax.sin(x) * y) if kind == "checkpoint" else KINDS[kind](m)
        x = vec().astype(dtype)
        return [g(x, x) for g in (f, m.jit(m.vmap(f)))] + [
            m.vjp(g, x, x)[1](x) for g in (f, m.jit(f), m.vmap(f))
        ]

    with x64(True):
        assert_same(run(minijax), run(jax), where=f"{kind} {dtype}")


GIVEN = {  # how a function with a custom rule is called, with a second argument
    "directly": lambda m, f, v: f(1.0, v),
    "of a tree": lambda m, f, v: f([np.ones(2), 1], v),
    "grad": lambda m, f, v: m.grad(f)(1.0, v),
    "grad of NumPy's": lambda m, f, v: m.grad(f)(np.float64(1), v),
    "grad of an array": lambda m, f, v: m.grad(lambda x: f(m.numpy.asarray(x), v))(1.0),
    "grad of an array, NumPy's": lambda m, f, v: m.grad(lambda x: f(m.numpy.asarray(x), v))(np.float64(1)),
    "jvp of an array": lambda m, f, v: m.jvp(lambda x: f(m.numpy.asarray(x), v), (1.0,), (1.0,)),
    "grad of jit": lambda m, f, v: m.grad(m.jit(lambda x: f(x, 0.5)))(1.0),
    "vmap": lambda m, f, v: m.vmap(lambda x: f(x, v))(np.ones(2)),
    "nested grad": lambda m, f, v: m.grad(m.grad(lambda x: f(m.numpy.asarray(x), v)))(1.0),
}  # fmt: skip
SECOND = [
    True,
    2,
    2.0,
    2j,
    np.float64(2),
    np.ones(2),
    np.ones(2, np.int8),
    np.int64(3),
    np.ones(2, BFLOAT16),
    2**40,
]


def seen(m, leaves):
    """What a user's function may ask of each of its arguments."""
    kinds = {"tracer": m.core.Tracer, "array": m.Array, "NumPy's": (np.ndarray, np.generic)}
    kinds |= {kind.__name__: kind for kind in (bool, int, float, complex)}
    return [
        (
            next((name for name, kind in kinds.items() if isinstance(x, kind)), "NumPy's"),
            str(getattr(x, "dtype", None)),
            getattr(x, "shape", None),
        )
        for x in leaves
    ]


@pytest.mark.parametrize("wide", [False, True], ids=["", "x64"])
@pytest.mark.parametrize("second", SECOND, ids=repr)
@pytest.mark.parametrize("call", GIVEN)
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_arguments_of_users_functions(kind, call, second, wide):
    """Numbers stay numbers and have dtypes; NumPy's values have those of programs."""

    def run(m):
        found = []

        def tell(what, *args):
            found.append((what, seen(m, m.tree.leaves(args))))

        f = getattr(m, kind)(lambda x, n: tell("function", x, n) or x)
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: tell("rule", *p) or (p[0], t[0]))
        else:
            f.defvjp(lambda x, n: tell("rule", x, n) or (x, None), lambda r, g: (g, None))
        try:
            GIVEN[call](m, f, second)
        except (OverflowError, TypeError) as error:
            found.append(error_name(error))
        return found

    with x64(wide):
        assert run(minijax) == run(jax)


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    # Weak types are compared where arguments are strongly typed.
    check(CASES[name], name, name.startswith(("jvp: ", "vjp: ")))
