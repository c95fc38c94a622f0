"""Loops, conditionals and solvers: every program under every transformation, against upstream."""

import re

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same

X = np.array([0.5, -1.25, 2.0], np.float32)
MATRIX = np.array([[0.5, 0.25, -0.5], [1.0, -0.5, 0.25], [0.0, 0.75, 0.5]], np.float32)


def compare(make, *args, **how):
    """The same function of both libraries on the same arguments."""
    ours = make(minijax)(*args)
    theirs = make(jax)(*args)
    assert_same(ours, theirs, **how)


# -- programs of one vector ---------------------------------------------------------------------

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def scan_carry_and_outputs(m):
    return lambda x: m.lax.scan(lambda c, a: (c * a + 1.0, m.numpy.sin(c) * a), x.sum(), x)


@program
def scan_reverse(m):
    return lambda x: m.lax.scan(lambda c, a: (c + m.numpy.sin(a * c), c), 0.5, x, reverse=True)


@program
def scan_unroll(m):
    return lambda x: m.lax.scan(lambda c, a: (c * a, c - a), 1.5, x, unroll=2)


@program
def scan_unroll_all(m):
    return lambda x: m.lax.scan(lambda c, a: (c * a, c - a), 1.5, x, unroll=True, reverse=True)


@program
def scan_of_length(m):
    return lambda x: m.lax.scan(lambda c, _: (m.numpy.sin(c) * x, None), x, None, length=4)


@program
def scan_of_jit_with_a_constant_result(m):
    def body(x):
        both = m.jit(lambda c, w: (c * w, m.numpy.sin(w) * w))

        def step(c, _):
            y, k = both(c, x)
            return m.numpy.sin(y) * k, k * c

        return step

    return lambda x: m.lax.scan(body(x), x, None, length=3)


@program
def scan_empty(m):
    return lambda x: m.lax.scan(lambda c, _: (m.numpy.sin(c) * x, c * 2), x, None, length=0)


@program
def scan_matrix_closure(m):
    w = m.numpy.asarray(MATRIX)
    return lambda x: m.lax.scan(lambda c, _: (m.numpy.tanh(w @ c + x), c), x, None, length=3)


@program
def scan_passes_on(m):
    def step(c, a):
        return (c[0] + c[1] * a, c[1]), (a, c[1], c[0])

    return lambda x: m.lax.scan(step, (x[0], x[1]), x)


@program
def scan_swap(m):
    return lambda x: m.lax.scan(lambda c, a: ((c[1], c[0] * a), c[0]), (x[0], x[1]), x)


@program
def scan_late_dependence(m):
    # The tangent reaches the last carried value after as many steps as there are values.
    def step(c, a):
        return (c[0] * a, c[0] + c[1], c[1] * c[2], m.numpy.sin(c[2])), c[3]

    return lambda x: m.lax.scan(step, (x[0], 1.0, 2.0, 3.0), np.arange(4, dtype=np.float32))


@program
def scan_counter(m):
    def step(c, a):
        i, v = c
        return (i + 1, v * a + i), m.lax.stop_gradient(v) * i

    return lambda x: m.lax.scan(step, (0, 1.0), x)


@program
def scan_constant_work(m):
    # sin(x) is the same in each step: its residuals are not stacked.
    return lambda x: m.lax.scan(lambda c, a: (m.numpy.sin(x) * c, None), x * 2, x)[0]


@program
def scan_dtypes(m):
    def step(c, a):
        return (c[0] + a.astype(np.int32), c[1] * a.astype(np.float16)), c[1] > 0

    return lambda x: m.lax.scan(step, (np.int32(1), np.float16(0.5)), x)


@program
def scan_weak_carry(m):
    return lambda x: m.lax.scan(lambda c, a: (c + a, c), 0, x)


@program
def scan_nested(m):
    def outer(c, a):
        inner = m.lax.scan(lambda d, b: (d * b + a, d * x0), c, np.arange(1, 3, dtype=np.float32))
        return inner[0], inner[1]

    x0 = np.float32(0.5)
    return lambda x: m.lax.scan(outer, x[0], x)


@program
def scan_of_cond(m):
    def step(c, a):
        return m.lax.cond(a > 0, lambda v: m.numpy.sin(v * a), lambda v: v + 2.0, c), c

    return lambda x: m.lax.scan(step, x.sum(), x)


@program
def scan_of_jit(m):
    step = m.jit(lambda c, a: (c * a, m.numpy.cos(c)))
    return lambda x: m.lax.scan(step, x.sum(), x)


@program
def scan_tree(m):
    def step(c, a):
        new = {"u": c["u"] * a["p"], "v": (c["v"][0] + a["q"],)}
        return new, [c["v"][0], None, a["p"]]

    return lambda x: m.lax.scan(step, {"u": x[0], "v": (x[1],)}, {"p": x, "q": x * 2})


@program
def cond_simple(m):
    return lambda x: m.lax.cond(x[0] > 0, lambda v: m.numpy.sin(v), lambda v: v * v, x)


@program
def cond_other_way(m):
    return lambda x: m.lax.cond(x[0] < 0, lambda v: (m.numpy.sin(v), v), lambda v: (v * v, v), x)


@program
def cond_closure(m):
    return lambda x: m.lax.cond(x[1] > 0, lambda: x * 2.0, lambda: m.numpy.exp(x) * x[0])


@program
def cond_one_constant(m):
    return lambda x: m.lax.cond(x[0] > 0, lambda v: (v[0] * v[1], 1.0), lambda v: (3.0, v[2]), x)


@program
def cond_no_float(m):
    return lambda x: m.lax.cond(x[0] > 0, lambda v: (v, 1), lambda v: (v * 2, 2), x)


@program
def cond_nested(m):
    def inner(v):
        return m.lax.cond(v[1] > 0, lambda u: u * v[0], lambda u: m.numpy.sin(u), v)

    return lambda x: m.lax.cond(x[0] > 0, inner, lambda v: v * 3.0, x)


@program
def cond_of_scan(m):
    def loop(v):
        return m.lax.scan(lambda c, a: (c * a + v[0], c), 1.0, v)

    return lambda x: m.lax.cond(x[0] > 0, loop, lambda v: (v.sum(), v), x)


@program
def switch_three(m):
    branches = [lambda v: v, lambda v: m.numpy.sin(v) * v, lambda v: v + v[0] * 2.0]
    return lambda x: m.lax.switch(x[2].astype(np.int32) - 1, branches, x)


@program
def switch_clamped(m):
    branches = [lambda v: v * 3.0, lambda v: m.numpy.sin(v), lambda v: v + 1.0]
    return lambda x: [m.lax.switch(i, branches, x) for i in (-2, 1, 7)]


@program
def fori_static(m):
    return lambda x: m.lax.fori_loop(0, 4, lambda i, v: m.numpy.sin(v) * x + i, x)


@program
def fori_unroll(m):
    return lambda x: m.lax.fori_loop(1, 6, lambda i, v: v * x[0] + i, x, unroll=3)


@program
def fori_tree(m):
    def body(i, v):
        return {"a": v["a"] * v["b"], "b": v["b"] + i}

    return lambda x: m.lax.fori_loop(0, 3, body, {"a": x, "b": x[0]})


@program
def mapped(m):
    return lambda x: m.lax.map(lambda a: (a * x, m.numpy.sin(a)), x)


@program
def mapped_in_batches(m):
    return lambda x: m.lax.map(lambda a: a * m.numpy.sin(x), x, batch_size=2)


@program
def associative(m):
    return lambda x: m.lax.associative_scan(lambda a, b: a * b, x)


@program
def associative_reverse_tree(m):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lambda x: m.lax.associative_scan(combine, (x, m.numpy.sin(x)), reverse=True)


@program
def barrier(m):
    return lambda x: m.lax.optimization_barrier((x * 2.0, m.numpy.sin(x)))


@program
def by_platform(m):
    return lambda x: m.lax.platform_dependent(
        x, cpu=lambda v: v * v, cuda=lambda v: v * v, default=lambda v: v
    )


@program
def cube_root(m):
    def newton(f, x0):
        slope = m.grad(lambda v: f(v).sum())
        return m.lax.fori_loop(0, 20, lambda _, v: v - f(v) / slope(v), x0)

    def root(x):
        f = lambda v: v * v * v - (x * x + 1.0)
        return m.lax.custom_root(f, m.numpy.asarray(np.ones(3, np.float32)), newton, solve)

    def solve(g, y):
        return y / g(m.numpy.asarray(np.ones(3, np.float32)))

    return root


@program
def linear_solve(m):
    def solver(matvec, b):
        # Jacobi iterations: the matrix is dominated by its diagonal.
        return m.lax.fori_loop(0, 40, lambda _, v: v + (b - matvec(v)) * 0.2, b)

    def f(x):
        matrix = np.eye(3, dtype=np.float32) * 4 + x * MATRIX
        return m.lax.custom_linear_solve(lambda v: matrix @ v, x, solver, transpose_solve=solver)

    return f


@program
def symmetric_solve(m):
    def f(x):
        diagonal = x * x + 1.0
        return m.lax.custom_linear_solve(
            lambda v: diagonal * v, x, lambda _, b: b / diagonal, symmetric=True
        )

    return f


@program
def solve_with_tangents_of_jitted(m):
    """The matrix is a Hessian: a program within it computes both primal values and tangents."""
    power = m.numpy.float32(3.0)  # becomes a constant of a program within
    inner = m.jit(lambda y: m.numpy.where(y > 0, m.numpy.abs(y) ** power, m.numpy.sin(y) * y))
    twice = m.checkpoint(lambda y: inner(m.numpy.exp(inner(y))))

    def f(x):
        def matvec(v):
            loss = lambda y: m.numpy.sum(m.numpy.exp(0.1 * twice(y)) + 3 * y * y)
            return m.jvp(m.grad(loss), (0.1 * x,), (v,))[1]

        def solver(apply, b):
            return m.lax.fori_loop(0, 9, lambda _, v: v + (b - apply(v)) * 0.12, b)

        return m.lax.custom_linear_solve(matvec, x, solver, transpose_solve=solver)

    return f


@program
def solve_integers(m):
    def f(x):
        swap = lambda v: {"a": v["b"], "b": 3 * v["a"]}
        b = {"a": m.numpy.arange(3), "b": m.numpy.arange(3) * 6}
        solver = lambda apply, y: apply(apply(y))
        return m.lax.custom_linear_solve(swap, b, solver, transpose_solve=solver)["b"] * x

    return f


FORWARD_ONLY = {}


def forward_only(f):
    FORWARD_ONLY[f.__name__] = f
    return f


@forward_only
def while_simple(m):
    return lambda x: m.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 1.5 + 1, x)


@forward_only
def while_closure(m):
    def f(x):
        body = lambda c: (c[0] + 1, c[1] * x + m.numpy.sin(c[1]), c[2])
        return m.lax.while_loop(lambda c: c[0] < x[2] * 3, body, (0, x, x[1]))

    return f


@forward_only
def while_in_scan(m):
    def step(c, a):
        new = m.lax.while_loop(lambda v: v < 10, lambda v: v * 2 + m.numpy.abs(a), m.numpy.abs(c))
        return m.numpy.sin(new), new

    return lambda x: m.lax.scan(step, 1.0, x)


@forward_only
def fori_dynamic(m):
    return lambda x: m.lax.fori_loop(0, x[2].astype(np.int32) + 1, lambda i, v: v * x[0] + i, x)


@forward_only
def cond_of_while(m):
    def loop(v):
        return m.lax.while_loop(lambda c: c[0] < 20, lambda c: c + v * v + 3, v)

    return lambda x: m.lax.cond(x[0] > 0, loop, lambda v: v, x)


# -- transformations ------------------------------------------------------------------------------


def total(m, f):
    """A scalar of all floating results, that weighs them differently."""

    def scalar(*args):
        out = 0.0
        for k, leaf in enumerate(m.tree_util.tree_leaves(f(*args))):
            if np.issubdtype(leaf.dtype, np.floating):
                out = out + (leaf * leaf).sum().astype(np.float32) * (k + 1)
        return out

    return scalar


ROWS = np.stack([X, X * np.float32(-0.5), X[::-1]])

FORWARD = {
    "eager": lambda m, f: f(X),
    "jit": lambda m, f: m.jit(f)(X),
    "jvp": lambda m, f: m.jvp(f, (X,), (ROWS[1],)),
    "jit jvp": lambda m, f: m.jit(lambda x, t: m.jvp(f, (x,), (t,)))(X, ROWS[1]),
    "vmap": lambda m, f: m.vmap(f)(ROWS),
    "jit vmap": lambda m, f: m.jit(m.vmap(f))(ROWS),
    "vmap of columns": lambda m, f: m.vmap(f, in_axes=1, out_axes=-1)(ROWS),
    "vmap vmap": lambda m, f: m.vmap(m.vmap(f))(np.stack([ROWS, ROWS * np.float32(0.5)])),
    "vmap jvp": lambda m, f: m.vmap(lambda t: m.jvp(f, (X,), (t,)))(ROWS),
    "jvp vmap": lambda m, f: m.jvp(m.vmap(f), (ROWS,), (ROWS * np.float32(0.5),)),
    "jvp jvp": lambda m, f: m.jvp(lambda x: m.jvp(f, (x,), (ROWS[1],)), (X,), (ROWS[2],)),
    "linearize": lambda m, f: (lambda y, lin: (y, lin(ROWS[1])))(*m.linearize(f, X)),
    "jit linearize": lambda m, f: m.jit(lambda x, t: m.linearize(f, x)[1](t))(X, ROWS[1]),
}
REVERSE = {
    "grad": lambda m, f: m.grad(total(m, f))(X),
    "jit grad": lambda m, f: m.jit(m.grad(total(m, f)))(X),
    "grad jit": lambda m, f: m.grad(m.jit(total(m, f)))(X),
    "grad grad": lambda m, f: m.grad(lambda x: m.grad(total(m, f))(x).sum())(X),
    "vmap grad": lambda m, f: m.vmap(m.grad(total(m, f)))(ROWS),
    "grad vmap": lambda m, f: m.grad(total(m, m.vmap(f)))(ROWS),
    "jvp grad": lambda m, f: m.jvp(m.grad(total(m, f)), (X,), (ROWS[1],)),
    "grad jvp": lambda m, f: m.grad(lambda x: total(m, lambda y: m.jvp(f, (y,), (ROWS[1],))[0])(x))(
        X
    ),
}


# Every program goes through these; the rest is for those that have a bit of everything.
ALWAYS = ("eager", "vmap of columns", "linearize", "jit grad", "vmap grad", "grad grad")
THOROUGH = (
    "scan_carry_and_outputs", "scan_late_dependence", "scan_nested", "scan_of_cond", "cond_closure",
    "fori_tree", "linear_solve", "while_closure", "cond_of_while",
)  # fmt: skip


def cases():
    for name in (*PROGRAMS, *FORWARD_ONLY):
        for how in (*FORWARD, *REVERSE):
            if how in REVERSE and name in FORWARD_ONLY:
                continue
            if how in ALWAYS or name in THOROUGH:
                yield name, how


@pytest.mark.parametrize(("name", "how"), cases())
def test_program(name, how):
    make = PROGRAMS.get(name) or FORWARD_ONLY[name]
    transform = FORWARD.get(how) or REVERSE[how]
    weak = how in ("eager", "jit")
    ours = transform(minijax, _on_arrays(minijax, make(minijax)))
    theirs = transform(jax, _on_arrays(jax, make(jax)))
    assert_same(ours, theirs, weak=weak, where=f"{how} of {name}")


def _on_arrays(m, f):
    return lambda x: f(m.numpy.asarray(x))


# -- which carried values have a tangent -----------------------------------------------------------


def refusing(m):
    """The identity; whoever differentiates it is refused."""
    f = m.custom_jvp(lambda x: x)

    @f.defjvp
    def _(primals, tangents):
        raise RuntimeError("refused")

    return f


def hiding(m):
    """The identity, by its rule with no tangent at all."""
    f = m.custom_jvp(lambda x: x)

    def rule(primals, tangents):
        aval = m.typeof(primals[0]).to_tangent_aval()
        return primals[0], m.custom_derivatives.SymbolicZero(aval)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def _scanned(body):
    return lambda m, x, y: m.lax.scan(lambda c, _: (body(m, *c), None), (x, y), None, length=3)[0]


CARRIED = {
    "not y": _scanned(lambda m, x, y: (x + refusing(m)(y), y + 1)),
    "not y, of a branch": _scanned(lambda m, x, y: m.lax.cond(
        x < 9, lambda: (x + refusing(m)(y), y + 1), lambda: (x, y))),
    "not y, of a loop": _scanned(lambda m, x, y: m.lax.fori_loop(
        0, 2, lambda i, c: (c[0] + refusing(m)(c[1]), c[1] + 1), (x, y))),
    "not y, stopped": _scanned(
        lambda m, x, y: (x + refusing(m)(y), y + m.lax.stop_gradient(x))),
    "not y, hidden": _scanned(lambda m, x, y: (x + refusing(m)(y), y + hiding(m)(x))),
    "not y, hidden in a loop": _scanned(lambda m, x, y: m.lax.fori_loop(
        0, 2, lambda i, c: (c[0] + refusing(m)(c[1]), c[1] + hiding(m)(c[0])), (x, y))),
    "y too": _scanned(lambda m, x, y: (x + refusing(m)(y), y + x)),
    "a while loop": lambda m, x, y: m.lax.while_loop(
        lambda c: c[0] < 9, lambda c: (c[0] + refusing(m)(c[1]), c[1] + hiding(m)(c[0])), (x, y)),
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIED)
def test_carried_tangents(name):
    """A rule of a user's is asked only where there is a tangent."""

    def run(m):
        f = lambda x: CARRIED[name](m, x, m.numpy.float32(0.5))[0]
        transforms = [lambda x: m.jvp(f, (x,), (x,)), m.jit(lambda x: m.jvp(f, (x,), (x,))[1])]
        if name != "a while loop":
            transforms += [m.grad(f), lambda x: m.vmap(m.grad(f))(m.numpy.ones(2) * x)]
        try:
            return [transform(m.numpy.float32(1.5)) for transform in transforms]
        except RuntimeError as error:
            return [str(error).startswith("refused")]

    assert_same(run(minijax), run(jax))


# -- errors ---------------------------------------------------------------------------------------

ERRORS = {
    "scan carry structure": lambda m: m.lax.scan(lambda c, a: (c[0], a), (1.0, 2.0), X),
    "scan carry structure 2": lambda m: m.lax.scan(lambda c, a: ((c, c), a), 1.0, X),
    "scan carry None": lambda m: m.lax.scan(lambda c, a: (None, a), 1.0, X),
    "scan carry dict": lambda m: m.lax.scan(lambda c, a: ({"a": c["a"], "b": (c["b"], 1)}, a), {"a": 1.0, "b": 2.0}, X),
    "scan carry len": lambda m: m.lax.scan(lambda c, a: ([c[0]], a), [1.0, 2.0], X),
    "scan carry dtype": lambda m: m.lax.scan(lambda c, a: (c.astype(np.int32), a), 1.0, X),
    "scan carry shape": lambda m: m.lax.scan(lambda c, a: (m.numpy.zeros((2,3)), a), m.numpy.zeros((2,2)), X),
    "scan carry path": lambda m: m.lax.scan(lambda c, a: ({"a": c["a"], "b": m.numpy.zeros(3), "c": (c["c"][0], 1.5)}, a), {"a": 1.0, "b": m.numpy.zeros(2), "c": (1, m.numpy.int32(1))}, X),
    "scan no pair": lambda m: m.lax.scan(lambda c, a: c, 1.0, X),
    "scan triple": lambda m: m.lax.scan(lambda c, a: (c, a, a), 1.0, X),
    "scan lengths": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, (X, X[:2])),
    "scan length": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, X, length=4),
    "scan scalar": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, 1.0),
    "scan nothing": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, None),
    "scan unroll": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, X, unroll=-1),
    "scan callable": lambda m: m.lax.scan(3, 1.0, X),
    "scan init str": lambda m: m.lax.scan(lambda c, a: (c, a), "a", X),
    "scan xs str": lambda m: m.lax.scan(lambda c, a: (c, a), 1.0, "a"),
    "scan y str": lambda m: m.lax.scan(lambda c, a: (c, "s"), 1.0, X),
    "scan c str": lambda m: m.lax.scan(lambda c, a: ("s", a), 1.0, X),
    "scan traced length": lambda m: m.jit(lambda n: m.lax.scan(lambda c, a: (c, a), 1.0, None, length=n))(3),
    "while structure": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: (c, c), 1.0),
    "while shape": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: m.numpy.zeros(3), 1.0),
    "while dtype": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: 1, 1.0),
    "while cond tree": lambda m: m.lax.while_loop(lambda c: (c < 3, c < 3), lambda c: c, 1.0),
    "while cond float": lambda m: m.lax.while_loop(lambda c: c, lambda c: c, 1.0),
    "while cond shape": lambda m: m.lax.while_loop(lambda c: m.numpy.asarray(X) < 3, lambda c: c, 1),
    "while callable": lambda m: m.lax.while_loop(3, lambda c: c, 1),
    "while grad": lambda m: m.grad(lambda y: m.lax.while_loop(lambda c: c < 3, lambda c: c * 2, y))(1.0),
    "while vjp": lambda m: m.vjp(lambda y: m.lax.while_loop(lambda c: c < 3, lambda c: c * 2, y), 1.0)[1](1.0),
    "fori grad": lambda m: m.grad(lambda y: m.jit(lambda n, y: m.lax.fori_loop(0, n, lambda i, c: c * 2, y))(3, y))(1.0),
    "fori types": lambda m: m.lax.fori_loop(0.0, 3, lambda i, c: c, 1),
    "fori types 2": lambda m: m.lax.fori_loop(np.int8(0), np.int16(3), lambda i, c: c, 1),
    "fori uint": lambda m: m.lax.fori_loop(np.uint32(0), 3, lambda i, c: c, 1),
    "fori bool": lambda m: m.lax.fori_loop(True, 3, lambda i, c: c, 1),
    "fori shape": lambda m: m.lax.fori_loop(0, X, lambda i, c: c, 1),
    "fori carry": lambda m: m.lax.fori_loop(0, 3, lambda i, c: (c, c), 1),
    "fori carry type": lambda m: m.lax.fori_loop(0, 3, lambda i, c: i, np.int8(1)),
    "fori callable": lambda m: m.lax.fori_loop(0, 3, 3, 1),
    "fori unroll": lambda m: m.jit(lambda n: m.lax.fori_loop(0, n, lambda i, c: c + 1, 1, unroll=2))(3),
    "fori str": lambda m: m.lax.fori_loop(0, "a", lambda i, c: c, 1),
    "cond shape": lambda m: m.lax.cond(X, lambda c: c, lambda c: c, 1.0),
    "cond str": lambda m: m.lax.cond("a", lambda c: c, lambda c: c, 1.0),
    "cond list": lambda m: m.lax.cond([True], lambda: 1, lambda: 2),
    "cond None": lambda m: m.lax.cond(None, lambda c: c, lambda c: c, 1.0),
    "cond complex": lambda m: m.lax.cond(1j, lambda c: c, lambda c: c, 1.0),
    "cond callable": lambda m: m.lax.cond(True, 3, lambda c: c, 1.0),
    "cond structure": lambda m: m.lax.cond(True, lambda c: c, lambda c: (c, c), 1.0),
    "cond None result": lambda m: m.lax.cond(True, lambda c: None, lambda c: 3, 1.0),
    "cond dtype": lambda m: m.lax.cond(True, lambda c: c, lambda c: c.astype(np.int32), 1.0),
    "cond weak dtype": lambda m: m.lax.cond(True, lambda: 1, lambda: 2.0),
    "cond path": lambda m: m.lax.cond(True, lambda c: {"a": c, "b": c}, lambda c: {"a": c, "b": m.numpy.zeros(2)}, 1.0),
    "cond str result": lambda m: m.lax.cond(True, lambda c: "a", lambda c: 3, 1.0),
    "cond operand twice": lambda m: m.lax.cond(True, lambda c: c, lambda c: c, 3.0, operand=3.0),
    "cond unknown keyword": lambda m: m.lax.cond(True, lambda c: c, lambda c: c, 3.0, foo=1),
    "cond str operand": lambda m: m.lax.cond(True, lambda c: c, lambda c: c, "a"),
    "cond too few operands": lambda m: m.lax.cond(True, lambda c: c, lambda c: c),
    "cond alone": lambda m: m.lax.cond(True),
    "switch float": lambda m: m.lax.switch(1.5, [lambda x: x, lambda x: x], 1.0),
    "switch bool": lambda m: m.lax.switch(True, [lambda x: x, lambda x: x], 1.0),
    "switch shape": lambda m: m.lax.switch(X, [lambda x: x, lambda x: x], 1.0),
    "switch empty": lambda m: m.lax.switch(0, [], 1.0),
    "switch callable": lambda m: m.lax.switch(0, [3, lambda x: x], 1.0),
    "switch str": lambda m: m.lax.switch("a", [lambda x: x], 1.0),
    "switch structure": lambda m: m.lax.switch(0, [lambda x: x, lambda x: (x, x)], 1.0),
    "switch type": lambda m: m.lax.switch(0, [lambda x: x, lambda x: x, lambda x: x.astype(np.int32)], 1.0),
    "map scalar": lambda m: m.lax.map(lambda x: x, 1.0),
    "map nothing": lambda m: m.lax.map(lambda x: x, ()),
    "map str": lambda m: m.lax.map(lambda x: (x, "a"), X),
    "map negative": lambda m: m.lax.map(lambda x: x, X, batch_size=-1),
    "associative callable": lambda m: m.lax.associative_scan(3, X),
    "associative empty": lambda m: m.lax.associative_scan(lambda x, y: x, ()),
    "associative axis": lambda m: m.lax.associative_scan(lambda x, y: x, X, axis=1),
    "associative lengths": lambda m: m.lax.associative_scan(lambda x, y: x, (X, X[:2])),
    "associative structure": lambda m: m.lax.associative_scan(lambda x, y: (x, y), X),
    "platform missing": lambda m: m.lax.platform_dependent(1.0, tpu=lambda x: x),
    "platform gpu": lambda m: m.lax.platform_dependent(1.0, gpu=lambda x: x, default=lambda x: x),
    "platform none": lambda m: m.lax.platform_dependent(1.0),
    "platform callable": lambda m: m.lax.platform_dependent(1.0, cpu=3, default=lambda x: x),
    "root f": lambda m: m.lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y),
    "root solve": lambda m: m.lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y),
    "root aux": lambda m: m.lax.custom_root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: y, has_aux=True),
    "root tangent": lambda m: m.grad(lambda a: m.lax.custom_root(lambda x: x - a, 1.0, lambda f, x: a, lambda g, y: (y, y)))(1.0),
    "solve matvec": lambda m: m.lax.custom_linear_solve(lambda v: (v, v), X, lambda f, b: b),
    "solve solve": lambda m: m.lax.custom_linear_solve(lambda v: v, X, lambda f, b: (b, b)),
    "solve shape": lambda m: m.lax.custom_linear_solve(lambda v: v[:1], X, lambda f, b: b),
    "solve aux": lambda m: m.lax.custom_linear_solve(lambda v: v, X, lambda f, b: b, has_aux=True),
    "solve no transpose": lambda m: m.grad(lambda b: m.lax.custom_linear_solve(lambda v: v, b, lambda f, b: b).sum())(X),
    "solve callable": lambda m: m.lax.custom_linear_solve(lambda v: v, X, 3),
}  # fmt: skip


@pytest.mark.parametrize("m", [jax, minijax], ids=lambda m: m.__name__)
def test_cond_is_named_in_errors_about_its_arguments(m):
    with pytest.raises(TypeError, match=r"^cond\(\) got an unexpected keyword argument 'linear'"):
        m.lax.cond(True, lambda x: x, lambda x: x, 1.0, linear=(False,))


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    """The class of upstream's error."""
    with pytest.raises(Exception) as theirs:
        ERRORS[name](jax)
    with pytest.raises(Exception) as ours:
        ERRORS[name](minijax)
    assert ours.type.__name__ == theirs.type.__name__


def test_error_names_the_place():
    def body(carry, x):
        return {"a": carry["a"], "b": (carry["b"][0], minijax.numpy.zeros((2, 3)))}, x

    init = {"a": 1.0, "b": (2.0, np.zeros((2, 2), np.float32))}
    with pytest.raises(TypeError, match=r"carry\['b'\]\[1\] has type float32\[2,2\]") as error:
        minijax.lax.scan(body, init, X)
    assert "float32[2,3]" in str(error.value)
    with pytest.raises(TypeError, match=r"true_fun at path \['b'\] has type float32\[\]"):
        minijax.lax.cond(
            True, lambda: {"b": minijax.numpy.float32(1)}, lambda: {"b": minijax.numpy.zeros(2)}
        )


def test_scan_gives_a_pair_as_its_body_does():
    for j in (minijax, jax):
        as_list = j.lax.scan(lambda c, x: [c + x, x], 0.0, np.arange(3.0))
        as_tuple = j.lax.scan(lambda c, x: (c + x, [x, None]), 0.0, np.arange(3.0))
        assert [type(x) for x in (as_list, as_tuple, as_tuple[1])] == [list, tuple, list]


CHOSEN = {
    "other type": lambda m, x: m.lax.platform_dependent(
        x, cpu=lambda x: x * 2, tpu=lambda x: x[:2]
    ),
    "default": lambda m, x: m.lax.platform_dependent(x, tpu=lambda x: x[:2], default=lambda x: x),
    "tree": lambda m, x: m.lax.platform_dependent(x, [1, 2.0], cpu=lambda x, y: (x, y)),
    "number": lambda m, x: m.lax.platform_dependent(cpu=lambda: 1, tpu=lambda: 2),
}


@pytest.mark.parametrize("transform", ["eager", "jvp", "vmap", "jit"])
@pytest.mark.parametrize("name", CHOSEN)
def test_the_function_of_the_platform_is_called(name, transform):
    """Outside of a program the others are not traced."""
    found = []
    for m in (minijax, jax):
        fun = lambda x, m=m: CHOSEN[name](m, x)
        x = m.numpy.arange(4.0)
        try:
            if transform == "jvp":
                found.append(m.jvp(fun, (x,), (x,)))
            elif transform == "vmap":
                found.append(m.vmap(fun)(x[None]))
            else:
                found.append((m.jit(fun) if transform == "jit" else fun)(x))
        except TypeError as error:
            found.append(type(error).__name__)
    ours, theirs = found
    if isinstance(theirs, (str, int)):
        assert ours == theirs and type(ours) is type(theirs)
    else:
        assert_same(ours, theirs)


def _swapped(m, x, y):
    return m.lax.scan(lambda c, _: ((c[1], c[0]), None), (x, y), None, length=2)[0][0]


VARYING = {
    "swapped": _swapped,
    "scan": lambda m, x, y: m.lax.scan(lambda c, _: (c + x, None), y, None, length=2)[0],
    "two": lambda m, x, y: m.lax.scan(
        lambda c, _: ({"a": c["a"] + x, "b": c["b"] * x}, None), {"a": y, "b": y}, None, length=2
    )[0]["a"],
    "while": lambda m, x, y: m.lax.while_loop(lambda c: c.sum() < 3, lambda c: c + x, y),
    "dtype too": lambda m, x, y: m.lax.scan(
        lambda c, _: (c + x, None), y.astype("bfloat16"), None, length=2
    )[0],
    "no cast helps": lambda m, x, y: m.lax.scan(lambda c, _: (y, None), x, None, length=2)[0],
    "dtype and shape": lambda m, x, y: m.lax.scan(
        lambda c, _: (m.numpy.ones((3, 2), "int32"), None), y, None, length=2
    )[0],
    "cond": lambda m, x, y: m.lax.cond(True, lambda: x, lambda: y),
}


@pytest.mark.parametrize("name", VARYING)
def test_messages_say_which_cast_makes_types_agree(name):
    """Values that vary over a mesh axis, and do not: the message is upstream's, with the cast."""
    messages = []
    for m in (minijax, jax):
        mesh = m.sharding.Mesh(m.devices()[:1], "i")
        run = m.shard_map(
            lambda x, y, m=m: VARYING[name](m, x, y),
            mesh=mesh, in_specs=(m.P("i"), m.P()), out_specs=m.P("i"),
        )  # fmt: skip
        with pytest.raises(TypeError) as caught:
            run(np.ones((2, 2), "f"), np.ones((2, 2), "f"))
        kept = re.sub(
            r"\nSee https\S+ for more information\.| \(for instance[^)]*\)", "", str(caught.value)
        )
        messages.append(kept.split("\n\nRevise")[0])
    ours, theirs = messages
    if name == "cond":  # upstream casts the one that varies already, over no axis
        theirs = theirs.replace(
            "(..., (), to='varying')` to the output of true_fun",
            "(..., ('i',), to='varying')` to the output of false_fun",
        )
    assert ours == theirs
