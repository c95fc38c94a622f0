"""Control flow where it is easily got wrong: mixed programs, empty loops, NaN, keys, caches,
jaxprs.
"""

import collections
import gc
import weakref

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

X = np.array([0.5, -1.25, 2.0], np.float32)
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


# -- derivatives ------------------------------------------------------------------------------------


@case
def untaken_branch_has_no_nan(m):
    def f(x):
        root = lambda v: m.lax.cond(v > 0, lambda v: m.numpy.sqrt(v), lambda v: v * 0.0, v)
        return m.vmap(root)(x).sum()

    return m.grad(f)(m.numpy.asarray([0.0, 1.0, 4.0, -1.0]))


@case
def untaken_branch_has_no_nan_by_closure(m):
    def f(w):
        ratio = lambda v: m.lax.cond(v != 0, lambda: w / v, lambda: 0.0)
        return m.vmap(ratio)(m.numpy.asarray([0.0, 1.0, 4.0])).sum()

    return m.grad(f)(2.0)


@case
def transpose_of_loop_with_counter(m):
    return m.linear_transpose(lambda x: m.lax.fori_loop(0, 3, lambda i, v: v * (i + 1.0), x), X)(X)


@case
def transpose_of_scan_with_known_carry(m):
    def step(c, a):
        return (c[0] + 1, c[1] * c[0] + a * 2), c[1] * 3.0

    return m.linear_transpose(lambda x: m.lax.scan(step, (0.0, x[0]), x)[1], X)(X)


@case
def transpose_of_scan_of_checkpoint_with_known_carry(m):
    def step(c, a):
        return (c[0] + 1, c[1] * c[0] + a * 2), c[1] * 3.0

    step = m.checkpoint(step)
    return m.linear_transpose(lambda x: m.lax.scan(step, (0.0, x[0]), x)[1], X)(X)


@case
def transpose_of_cond(m):
    return m.linear_transpose(lambda x: m.lax.cond(True, lambda v: v * 2.0, lambda v: v + v, x), X)(
        X
    )


def with_rule(m, rule):
    f = m.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), rule(*primals, *tangents)))
    return f


@case
def rule_scans_primal_and_tangent_together(m):
    def rule(x, dx):
        def step(c, a):
            return (m.numpy.sin(c[0]) * a, c[1] * m.numpy.cos(c[0]) + dx), (c[0], c[1] * 2.0)

        (_, t), (_, ts) = m.lax.scan(step, (x, dx), X)
        return t + ts.sum() * x

    f = with_rule(m, rule)
    return m.grad(f)(1.5), m.jit(m.grad(f))(1.5), m.grad(m.grad(f))(1.5), m.vmap(m.grad(f))(X)


@case
def rule_chooses_primal_and_tangent_together(m):
    def rule(x, dx):
        up = lambda x, dx: (m.numpy.sin(x), m.numpy.cos(x) * dx)
        a, b = m.lax.cond(x > 0, up, lambda x, dx: (x, 2.0 * dx), x, dx)
        return a * b

    f = with_rule(m, rule)
    first = m.grad(f)
    return first(1.5), first(-1.5), m.jit(first)(1.5), m.grad(first)(1.5), m.vmap(first)(X)


@case
def rule_repeats_primal_and_tangent_together(m):
    def rule(x, dx):
        body = lambda c: (c[0] + 1, c[1] * 2.0, c[2] * c[1])
        return m.lax.while_loop(lambda c: c[0] < 3, body, (0, x, dx))[2]

    f = with_rule(m, rule)
    return m.jvp(f, (1.5,), (1.0,)), m.linearize(f, 1.5)[1](2.0)


@case
def hessians(m):
    def f(x):
        return m.lax.scan(lambda c, a: (m.numpy.sin(c * a) + x[1], c * x), x[0], x)[1].sum()

    return m.hessian(f)(X), m.jit(m.hessian(f))(X), m.jacrev(m.jacrev(f))(X)


@case
def rematerialized(m):
    step = lambda c, a: (m.numpy.sin(c * a), c)
    whole = m.checkpoint(lambda x: m.lax.scan(step, x[0], x)[0])
    steps = lambda x: m.lax.scan(m.checkpoint(step), x[0], x)[0]
    return [g(X) for f in (whole, steps) for g in (m.grad(f), m.jit(m.grad(f)))]


@case
def results_that_nobody_reads(m):
    def f(x):
        def step(c, a):
            return (c[0] * a, c[1] + 1.0, c[0] + c[2]), (c[0], c[1] * 2.0)

        return m.lax.scan(step, (x[0], 1.0, 2.0), x)[1][1]

    g = lambda x: m.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2, c[2] + c[1]), (0, x, x)
    )[1]
    h = lambda x: m.lax.cond(x[0] > 0, lambda x: (x, m.numpy.sin(x)), lambda x: (x * 2, x), x)[1]
    grads = [m.grad(lambda x, f=f: f(x).sum())(X) for f in (f, h)]
    return m.jit(f)(X), m.jit(g)(X), m.jit(h)(X), m.jvp(g, (X,), (X,)), grads


@case
def root_with_auxiliary_data(m):
    def newton(f, x0):
        step = lambda x: x - f(x) / m.grad(f)(x)
        return m.lax.while_loop(lambda x: m.numpy.abs(f(x)) > 1e-3, step, x0), {"steps": x0 * 2}

    def root(y):
        return m.lax.custom_root(lambda x: x**3 - y, 1.0, newton, lambda g, y: y / g(1.0), True)

    g = lambda y: root(y)[0]
    cubes = np.array([8.0, 27.0], np.float32)
    return root(8.0), m.grad(g)(8.0), m.grad(m.grad(g))(8.0), m.vmap(m.grad(g))(cubes)


@case
def linear_solves(m):
    a, b = m.numpy.asarray([[4.0, 1.0], [0.0, 3.0]]), m.numpy.asarray([1.0, 2.0])
    rows, matrices = m.numpy.stack([b, b + 1]), m.numpy.stack([a, a + 1])
    solver = lambda f, b: m.lax.fori_loop(0, 60, lambda _, v: v + (b - f(v)) * 0.25, b)
    noted = lambda f, b: (solver(f, b), {"twice": b * 2})
    solve = lambda a, b: m.lax.custom_linear_solve(lambda v: a @ v, b, solver, solver)
    aux = lambda a, b: m.lax.custom_linear_solve(lambda v: a @ v, b, noted, noted, has_aux=True)
    both = m.grad(lambda a, b: solve(a, b).sum(), (0, 1))
    square = lambda a: m.grad(lambda b: (solve(a, b) ** 2).sum())(b).sum()
    return [
        solve(a, b), m.jvp(solve, (a, b), (a, b)), both(a, b), m.vmap(solve, (None, 0))(a, rows),
        m.vmap(solve, (0, None))(matrices, b), m.vmap(both)(matrices, rows), m.grad(square)(a),
        aux(a, b), m.jvp(aux, (a, b), (a, b)), m.vmap(aux, (0, None))(matrices, b),
        m.grad(lambda a: aux(a, b)[0].sum())(a),
    ]  # fmt: skip


# -- values and types -------------------------------------------------------------------------------


@case
def random_keys(m):
    key = m.random.key(0)

    def step(k, _):
        k, s = m.random.split(k)
        return k, m.random.uniform(s, (2,))

    return [
        m.lax.scan(step, key, None, length=3),
        m.lax.scan(step, key, None, length=3, unroll=True),
        m.lax.scan(lambda c, k: (c + 1, m.random.split(k)), 0, m.random.split(key, 3)),
        m.lax.cond(True, lambda k: m.random.split(k)[0], lambda k: k, key),
        m.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, m.random.split(s[1])[0]), (0, key)
        ),
        m.vmap(lambda k: m.lax.scan(step, k, None, length=2))(m.random.split(key, 3)),
    ]


@case
def named_axes(m):
    index = lambda: m.lax.axis_index("i")
    rows = np.stack([X, X + 1])
    sums = lambda x: m.lax.scan(lambda c, a: (c + m.lax.psum(a, "i"), index()), 0.0, x)
    carries = lambda x: m.lax.scan(lambda c, _: (c + index(), c), 0, None, length=3)
    ends = lambda x: m.lax.while_loop(
        lambda c: c[0] < index() + 1, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0)
    )
    return [m.vmap(f, axis_name="i")(rows) for f in (sums, carries, ends)]


@case
def lengths(m):
    step = lambda c, a: (c + a, (c, a))
    return [
        m.lax.scan(step, 0.0, np.zeros((0,), np.float32)),
        m.lax.scan(step, 0.0, np.zeros((1,), np.float32)),
        m.lax.scan(step, np.zeros((0, 2), np.float32), np.zeros((3, 0, 2), np.float32)),
        m.lax.scan(step, 0.0, X, unroll=5),
        m.lax.scan(step, 0.0, X, unroll=0),
        m.lax.scan(lambda c, a: (1, c), np.int32(3), X),
        m.lax.map(lambda x: x * 2, np.zeros((0, 3), np.float32)),
        m.lax.map(lambda x: x * 2, np.zeros((0, 3), np.float32), batch_size=2),
        m.lax.map(lambda x: x * 2, X, batch_size=10),
        m.lax.fori_loop(3, 0, lambda i, c: c + 1, X),
        m.lax.fori_loop(0, np.int8(3), lambda i, c: i, 1),
        m.lax.fori_loop(0, m.numpy.int32(3), lambda i, c: i + c, 1),
        m.lax.fori_loop(0.5, 3.0, lambda i, c: i + c, 1),
        m.lax.fori_loop(np.float32(0), 2.7, lambda i, c: i + c, 1),
        m.lax.fori_loop(0.0, -1.5, lambda i, c: i + c, 1),
        m.lax.fori_loop(m.numpy.bfloat16(0), m.numpy.bfloat16(2), lambda i, c: i + c, 1.0),
        m.jit(lambda n: m.lax.fori_loop(0.5, n, lambda i, c: c + i, 1.0))(3.0),
        m.jit(lambda n: m.lax.fori_loop(n, n + 2, lambda i, c: c + i, n))(np.float16(3)),
        m.jit(lambda n: m.lax.fori_loop(np.int8(0), n, lambda i, c: c + i, np.int8(1)))(3),
    ]


@case
def many_dtypes(m):
    out = []
    names = ("bool", "int4", "bfloat16", "float8_e4m3fn", "complex64")
    picks = np.array([1, 0, 1, 1, 0], bool)
    for name in names:
        x = m.numpy.asarray(np.array([0, 1, 1, 0, 1])).astype(name)
        out += [
            m.lax.scan(lambda c, a: (a, (c, a)), x[0], x, reverse=True),
            m.lax.cond(True, lambda a: a, lambda a: a[::-1], x),
            m.vmap(lambda p, a, x=x: m.lax.cond(p, lambda a: a, lambda a: x[0], a))(picks, x),
            m.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1][::-1]), (0, x)),
        ]
        if name in ("bfloat16", "complex64"):
            out.append(m.lax.associative_scan(lambda a, b: a + b, x))
    flags = m.numpy.asarray(np.array([1, 1, 0, 1], bool))
    return [*out, m.lax.associative_scan(lambda a, b: a & b, flags)]


@case
def older_forms_of_cond(m):
    one, two = lambda x: x, lambda x: x + 1
    return [
        m.lax.cond(True, 1.0, two, 3.0, one),
        m.lax.cond(False, 1.0, two, 3.0, two),
        m.lax.cond(True, one, two, operand=3.0),
        m.lax.cond(pred=False, true_fun=one, false_fun=two, operand=3.0),
        m.lax.cond(False, lambda x: 1, lambda x: 2, operand=None),
        m.lax.switch(0, [one, two], operand=np.float32(1)),
        m.lax.cond(np.float16(2.0), lambda: 1.0, lambda: m.numpy.float32(2)),
        m.lax.cond(m.numpy.asarray(0), lambda: 1.0, lambda: 2.0),
        m.lax.switch(np.uint8(1), [one, two], 1.0),
    ]


@case
def associative_along_axes(m):
    y = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4) / 7
    product, maximum = lambda a, b: a * b, lambda a, b: m.lax.max(a, b)
    scan = m.lax.associative_scan
    return [
        *(scan(product, y, axis=axis, reverse=r) for axis in range(3) for r in (False, True)),
        scan(product, y, axis=-1),
        scan(product, np.zeros((0, 3), np.float32)),
        scan(product, np.ones((1, 3), np.float32)),
        scan(maximum, np.array([1, 5, 3, 7, 2, 9, 1])),
        m.jit(lambda y: scan(product, y, axis=1))(y),
    ]


@case
def associative_of_known_values(m):
    """Outside of `jit` the function is called with values: NumPy and Python may read them."""
    y = np.arange(5, dtype=np.float32)
    scan = m.lax.associative_scan
    return [
        scan(np.add, np.arange(7)),
        scan(np.maximum, y, reverse=True),
        scan(lambda a, b: a + b if float(a.sum()) >= 0 else a - b, y),
        scan(lambda a, b: a[: len(range(int(b.size)))] * b, m.numpy.asarray(y)),
    ]


class _Body:
    """Methods as bodies of loops, which note when they are called."""

    def __init__(self):
        self.calls = 0

    def step(self, carry, x):
        self.calls += 1
        return carry + x, carry

    def next(self, *args):
        self.calls += 1
        return args[-1] + 1

    def goes_on(self, carry):
        return carry < 3


@case
def methods_are_traced_once(m):
    x, bodies = m.numpy.arange(3.0), [_Body() for _ in range(3)]
    one, two, three = bodies
    results = [
        m.lax.scan(one.step, 0.0, x),
        m.lax.while_loop(two.goes_on, two.next, 0),
        m.lax.fori_loop(0, 3, three.next, 0),
    ]
    return results, [body.calls for body in bodies]


Pair = collections.namedtuple("Pair", "a b")


@case
def associative_into_other_containers(m):
    """Leaves are taken in order: the function may return a tuple for a named tuple."""
    y, scan = np.arange(5, dtype=np.float32), m.lax.associative_scan
    out = [
        scan(lambda a, b: (a.a + b.a, a.b * b.b), Pair(y, y + 1), reverse=True),
        scan(lambda a, b: [a[0] + b[0], b[1]], (y, y + 1)),
        scan(lambda a, b: (a + b,), y),
    ]
    for fun in (lambda a, b: (a[0],), lambda a, b: (*a, b[0])):
        try:
            scan(fun, (y, y))
        except ValueError as error:
            out.append(str(error).startswith("Too few") * 1.0)
    assert isinstance(out[0], Pair)
    return out


@case
def without_jit(m):
    x = m.numpy.asarray(X)
    with m.disable_jit():
        return [
            m.lax.scan(lambda c, a: (c + 1, a * 2), 0, x),
            m.lax.scan(lambda c, a: (c + 1.5, a), 0, x, reverse=True),
            m.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0),
            m.lax.cond(True, lambda c: (c, c), lambda c: c + 1, x),
            m.lax.switch(7, [lambda c: (c, c), lambda c: c + 1], x),
            m.lax.fori_loop(0, 3, lambda i, c: c + i, x),
            m.lax.map(lambda a: a * 2, x),
            m.lax.associative_scan(lambda a, b: a + b, x),
            m.vmap(lambda n: m.lax.while_loop(lambda c: c < n, lambda c: c + 1, 0))(
                m.numpy.arange(3)
            ),
            m.grad(lambda v: m.lax.scan(lambda c, a: (c * a, a), v, x)[0])(2.0),
        ]


@case
def wide(m):
    with m.enable_x64(True):
        return [
            m.lax.scan(lambda c, x: (c + x, c), 0.0, np.arange(3.0)),
            m.lax.fori_loop(0, 3, lambda i, c: c + i, 0),
            m.lax.fori_loop(np.int32(0), np.int32(3), lambda i, c: c + i, 0),
            m.lax.cond(True, lambda: 1, lambda: 2),
            m.lax.while_loop(lambda c: c < 3, lambda c: c * 2.0, 1.0),
            m.grad(lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * i + x, x))(1.5),
        ]


def arrays(m, tree):
    """Some results are numbers upstream, where they are arguments passed on."""
    is_key = lambda x: "key" in str(getattr(x, "dtype", ""))
    return m.tree_util.tree_map(lambda x: x if is_key(x) else m.numpy.asarray(x), tree)


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    ours = arrays(minijax, CASES[name](minijax))
    theirs = arrays(jax, CASES[name](jax))
    assert_same(ours, theirs, weak=name != "root_with_auxiliary_data", where=name)


# -- jaxprs -------------------------------------------------------------------------------------------

FIXED = {m: m.numpy.asarray(X) for m in (jax, minijax)}
JAXPRS = {
    "scan": (lambda m: lambda c: m.lax.scan(lambda c, a: (c + a, c), c, FIXED[m]), 1.0),
    "scan options": (
        lambda m: lambda c: m.lax.scan(
            lambda c, a: (c + a, c), c, FIXED[m], reverse=True, unroll=2
        ), 1.0,
    ),
    "scan constants": (
        lambda m: lambda c: m.lax.scan(
            lambda c, a: (c + a * m.numpy.sum(FIXED[m]), c), c, FIXED[m]
        ), 1.0,
    ),
    "scan without xs": (
        lambda m: lambda c: m.lax.scan(lambda c, _: (c + 1, None), c, None, length=3), 1.0,
    ),
    "scan passes on": (
        lambda m: lambda a, b: m.lax.scan(
            lambda c, x: ((c[0] + c[1], c[1]), (x, c[1], b)), (a, b), FIXED[m]
        ), 1.0, 2.0,
    ),
    "while": (
        lambda m: lambda c: m.lax.while_loop(lambda c: c < 10, lambda c: c + FIXED[m].sum(), c), 1.0,
    ),
    "while passes on": (
        lambda m: lambda a: m.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, a)),
        1.0,
    ),
    "while promotes": (
        lambda m: lambda c: m.lax.while_loop(lambda c: c < 3, lambda c: c + FIXED[m][0], c), 1,
    ),
    "fori": (lambda m: lambda c: m.lax.fori_loop(0, 10, lambda i, c: c + i, c), 1.0),
    "fori unroll": (
        lambda m: lambda c: m.lax.fori_loop(0, 3, lambda i, c: c + 1, c, unroll=True), 1.0,
    ),
    "fori dynamic": (lambda m: lambda n, c: m.lax.fori_loop(0, n, lambda i, c: c + i, c), 3, 1.0),
    "fori int8": (
        lambda m: lambda n, c: m.lax.fori_loop(np.int8(0), n, lambda i, c: c + 1, c), 3, 1.0,
    ),
    "cond": (
        lambda m: lambda p, c: m.lax.cond(p, lambda c: c + FIXED[m].sum(), lambda c: c * 2, c),
        True, 1.0,
    ),
    "cond int": (lambda m: lambda p, c: m.lax.cond(p, lambda c: c + 1, lambda c: c * 2, c), 1, 1.0),
    "cond known": (
        lambda m: lambda c: m.lax.cond(True, lambda c: c + 1, lambda c: c * 2, c), 1.0,
    ),
    "cond passes on": (
        lambda m: lambda p, a, b: m.lax.cond(p, lambda a: (a, b, a), lambda a: (a + 1, b, a), a),
        True, 1.0, 2.0,
    ),
    "switch": (
        lambda m: lambda i, c: m.lax.switch(i, [lambda c: c * 3, lambda c: c * 2, lambda c: c + i], c),
        1, 1.0,
    ),
    "switch of one": (lambda m: lambda i, c: m.lax.switch(i, [lambda c: c + 1], c), 1, 1.0),
    "map": (lambda m: lambda c: m.lax.map(lambda x: x * c, FIXED[m]), 1.0),
    "platform": (
        lambda m: lambda x: m.lax.platform_dependent(
            x, cpu=lambda x: x + 1, tpu=lambda x: x * 2, default=lambda x: x
        ), X,
    ),
    "barrier": (lambda m: lambda x: m.lax.optimization_barrier((x, {"a": x + 1})), X),
    "root": (
        lambda m: lambda c: m.lax.custom_root(
            lambda x: x * x - c, 1.0, lambda f, x: x, lambda g, y: y / g(1.0)
        ), 2.0,
    ),
    "jvp of while": (
        lambda m: lambda x: m.jvp(
            lambda x: m.lax.while_loop(lambda c: c < 10, lambda c: c * x, x), (x,), (1.0,)
        ), 2.0,
    ),
    "jvp of cond": (
        lambda m: lambda x: m.jvp(
            lambda x: m.lax.cond(x > 1, lambda c: c * x, lambda x: 1.0, x), (x,), (1.0,)
        ), 2.0,
    ),
    "vmap of cond": (
        lambda m: m.vmap(lambda p, x: m.lax.cond(p, lambda x: x * 3.0, lambda x: x * 2.0, x)),
        np.ones(3, bool), X,
    ),
    "vmap of while": (
        lambda m: m.vmap(lambda n, x: m.lax.fori_loop(0, n, lambda i, x: x * 2.0, x)),
        np.ones(3, np.int32), X,
    ),
    "vmap of scan": (
        lambda m: m.vmap(lambda c, x: m.lax.scan(lambda c, x: (c + x, c), c, x), (0, None)),
        X, np.arange(4, dtype=np.float32),
    ),
}  # fmt: skip


@pytest.mark.skipif(
    not jax.__version__.startswith("0.10"), reason="later releases print loops in another way"
)
@pytest.mark.parametrize("name", JAXPRS)
def test_jaxpr(name):
    make, *args = JAXPRS[name]
    assert str(minijax.make_jaxpr(make(minijax))(*args)) == str(jax.make_jaxpr(make(jax))(*args))


# -- caches -------------------------------------------------------------------------------------------


def test_an_eager_loop_is_traced_once():
    count = [0]

    def body(carry, x):
        count[0] += 1
        return minijax.numpy.sin(carry) * x, carry

    for _ in range(3):
        minijax.lax.scan(body, np.float32(1), X)
        minijax.grad(lambda c: minijax.lax.scan(body, c, X)[0])(np.float32(1))
        minijax.vmap(lambda c: minijax.lax.scan(body, c, X)[0])(X)
    assert count == [1]


def test_derivative_of_a_loop_traces_its_body_once():
    """Whatever the number of carried values that the tangent reaches late."""
    count = [0]

    def body(carry, x):
        count[0] += 1
        return (carry[0] * x, carry[0] + carry[1], carry[1] + carry[2], carry[2] * carry[3]), None

    def f(x):
        return minijax.lax.scan(body, (x, 1.0, 1.0, 1.0), X)[0][3]

    minijax.make_jaxpr(minijax.grad(f))(2.0)
    assert count == [1]


def test_traced_functions_are_let_go():
    def run():
        functions = [
            lambda c, a: (minijax.numpy.sin(c) * a, c), lambda i, c: c + i, lambda c: c < 3,
            lambda c: c + 1, lambda: 1.0, lambda: 2.0, lambda a, b: a * b,
        ]  # fmt: skip
        f, g, h, k, p, q, r = functions
        minijax.grad(lambda y: minijax.lax.scan(f, y, X)[0])(1.0)
        minijax.lax.fori_loop(0, 3, g, 0)
        minijax.lax.while_loop(h, k, 0.0)
        minijax.lax.cond(True, p, q)
        minijax.lax.associative_scan(r, X)
        return [weakref.ref(f) for f in functions]

    refs = run()
    gc.collect()
    assert all(ref() is None for ref in refs)


def test_loop_invariant_residuals_are_not_stacked():
    def f(x):
        return minijax.lax.scan(
            lambda c, a: (minijax.numpy.sin(x) * c + a, None), x, minijax.numpy.ones((7, 3))
        )[0].sum()

    text = str(minijax.make_jaxpr(minijax.grad(f))(X))
    assert "f32[7,3]" in text  # the carry is a residual of each step
    first = text.split("= scan[")[0].splitlines()[-1]
    assert first.count("f32[7,3]") == 1, first
