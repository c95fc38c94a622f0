"""Programs to be transformed: each takes a library (upstream or minijax) and gives a function.

The functions take float vectors of three elements and are smooth where they are sampled, so that
every transform applies, in any order.
"""

import numpy as np

MATRIX = np.array([[1.0, 0.5, -0.3], [0.2, 0.9, 0.1], [-0.4, 0.3, 1.2]])
INDICES = np.array([2, 0, 1, 1])

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def simple(**functions):
    """Programs of one expression in `np` (jax.numpy), `lax` and `x`."""
    for name, function in functions.items():
        PROGRAMS[name] = lambda m, f=function: lambda x: f(m.numpy, m.lax, x)


simple(
    identity=lambda np_, lax, x: x,
    constant=lambda np_, lax, x: np_.ones(2) * 3.0,
    affine=lambda np_, lax, x: 2.0 * x + 1.0,
    python_scalars=lambda np_, lax, x: (x + 1) * 2 - 3 / (x * x + 2),
    polynomial=lambda np_, lax, x: x**3 - 2 * x**2 + x,
    power=lambda np_, lax, x: (x * x + 1.0) ** 1.5,
    trigonometry=lambda np_, lax, x: np_.sin(x) * np_.cos(x) + np_.tan(0.3 * x),
    hyperbolic=lambda np_, lax, x: np_.tanh(x) + np_.sinh(x) / np_.cosh(x),
    inverse_trig=lambda np_, lax, x: (
        np_.arctan(x) + np_.arcsin(0.2 * x) + np_.arctan2(x, x * x + 1)
    ),
    exponentials=lambda np_, lax, x: (
        np_.exp(x) + np_.log(x * x + 1) + np_.expm1(x) + np_.log1p(x * x)
    ),
    roots=lambda np_, lax, x: np_.sqrt(x * x + 1) + lax.rsqrt(x * x + 2) + np_.cbrt(x * x + 1),
    logistic=lambda np_, lax, x: lax.logistic(x) * 1.0 / (1.0 + np_.exp(-x)),
    error_function=lambda np_, lax, x: lax.erf(x) + lax.erfc(x) * 0.5,
    absolute=lambda np_, lax, x: np_.abs(x + 10) + np_.sign(x),
    minmax=lambda np_, lax, x: np_.maximum(x, 0.1) + np_.minimum(x, 0.2),
    where=lambda np_, lax, x: np_.where(x > 0, np_.sin(x), x * 2),
    clip=lambda np_, lax, x: np_.clip(x, -0.5, 0.5) * x,
    rounding=lambda np_, lax, x: np_.floor(x) + np_.round(x) + x,
    summation=lambda np_, lax, x: np_.sum(x * x),
    mean_and_variance=lambda np_, lax, x: (np_.mean(x), np_.var(x)),
    product=lambda np_, lax, x: np_.prod(x + 2),
    maximum=lambda np_, lax, x: np_.max(x) + np_.min(x * 2),
    argmax=lambda np_, lax, x: x[np_.argmax(x)] + np_.argmin(x),
    cumulative=lambda np_, lax, x: np_.cumsum(x) * np_.cumprod(x),
    sort=lambda np_, lax, x: np_.sort(x) * np_.arange(3.0),
    logsumexp=lambda np_, lax, x: np_.log(np_.sum(np_.exp(x - np_.max(x)))),
    reshape=lambda np_, lax, x: np_.reshape(np_.concatenate([x, x]), (2, 3)).T,
    transpose=lambda np_, lax, x: np_.transpose(np_.outer(x, x)) @ x,
    stack=lambda np_, lax, x: np_.stack([x, 2 * x])[1],
    broadcasting=lambda np_, lax, x: x[:, None] * x[None, :] + x,
    padding=lambda np_, lax, x: np_.pad(x, 1) * 2,
    reverse=lambda np_, lax, x: x[::-1] * x,
    slicing=lambda np_, lax, x: x[1:] * x[:-1],
    indexing=lambda np_, lax, x: x[0] * x[-1],
    gathering=lambda np_, lax, x: x[INDICES] * np_.arange(4.0),
    scatter_set=lambda np_, lax, x: x.at[1].set(x[0] * 2),
    scatter_add=lambda np_, lax, x: np_.zeros(3, x.dtype).at[INDICES].add(x[INDICES]),
    dynamic_slice=lambda np_, lax, x: lax.dynamic_slice(x, (np_.argmax(x),), (2,)),
    dynamic_update=lambda np_, lax, x: lax.dynamic_update_slice(x, x[:1] * 3, (1,)),
    matrix_vector=lambda np_, lax, x: MATRIX.astype(x.dtype) @ x,
    quadratic_form=lambda np_, lax, x: x @ (MATRIX.astype(x.dtype) @ x),
    einsum=lambda np_, lax, x: np_.einsum("i,ij,j->i", x, MATRIX.astype(x.dtype), x),
    dot_general=lambda np_, lax, x: lax.dot_general(
        np_.outer(x, x), np_.outer(x, x), (((0,), (1,)), ((), ()))
    ),
    convolution=lambda np_, lax, x: lax.conv_general_dilated(
        np_.outer(x, x)[None, None], np_.outer(x, x)[None, None, :2, :2], (1, 1), "SAME"
    ),
    conversion=lambda np_, lax, x: x.astype(np_.float16).astype(x.dtype) + x.astype(np_.int32),
    complex_parts=lambda np_, lax, x: np_.real((x + 1j * x) ** 2) + np_.imag(np_.exp(1j * x)),
    stop_gradient=lambda np_, lax, x: x * lax.stop_gradient(x),
    select_n=lambda np_, lax, x: lax.select_n(x > 0, x, x * x),
    softmax=lambda np_, lax, x: np_.exp(x) / np_.sum(np_.exp(x)),
    closure_constant=lambda np_, lax, x: x * np_.asarray(MATRIX[0], x.dtype),
    integer_output=lambda np_, lax, x: (x, np_.argmax(x), x > 0),
    tree_output=lambda np_, lax, x: {"a": x * 2, "b": [np_.sin(x), (x.sum(),)]},
    select_loop=lambda np_, lax, x: sum(x[i] * (i + 1) for i in range(3)),
)


@program
def cond(m):
    return lambda x: m.lax.cond(x[0] > 0, lambda y: m.numpy.sin(y), lambda y: y * 3, x)


@program
def switch(m):
    branches = [lambda y: y * 2, lambda y: m.numpy.cos(y), lambda y: y**2]
    return lambda x: m.lax.switch(m.numpy.argmax(x), branches, x)


@program
def scan(m):
    def step(carry, a):
        return carry * 0.5 + m.numpy.sin(a), carry * a

    return lambda x: m.lax.scan(step, x[0] * 1.0, x)


@program
def scan_with_constants(m):
    def body(x):
        matrix = m.numpy.outer(x, x)
        return m.lax.scan(lambda c, _: (m.numpy.tanh(matrix @ c), c), x, None, length=3)[0]

    return body


@program
def reversed_scan(m):
    return lambda x: m.lax.scan(lambda c, a: (c + a * c, c), x.sum(), x, reverse=True)[1]


@program
def fori_loop(m):
    return lambda x: m.lax.fori_loop(0, 3, lambda i, c: m.numpy.sin(c) + i, x)


@program
def while_loop(m):
    def run(x):
        stopped = m.lax.stop_gradient(x)
        count = m.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5), (0, stopped)
        )[1]
        return x * count

    return run


@program
def mapping(m):
    return lambda x: m.lax.map(lambda a: m.numpy.sin(a) * a, x)


@program
def associative_scan(m):
    return lambda x: m.lax.associative_scan(m.numpy.multiply, x + 1)


@program
def inner_jit(m):
    inner = m.jit(lambda a, b: m.numpy.sin(a) * b)
    return lambda x: inner(x, inner(x, 2.0))


@program
def inner_grad(m):
    return lambda x: m.grad(lambda y: m.numpy.sum(m.numpy.sin(y) * x))(x)


@program
def inner_vmap(m):
    return lambda x: m.vmap(lambda a: a * m.numpy.sum(x))(x)


@program
def custom_jvp(m):
    @m.custom_jvp
    def f(x):
        return m.numpy.sin(x)

    f.defjvps(lambda t, out, x: 2.0 * m.numpy.cos(x) * t)
    return lambda x: f(x) * x


@program
def custom_vjp(m):
    @m.custom_vjp
    def f(x):
        return m.numpy.sin(x) * 2

    f.defvjp(lambda x: (f(x), m.numpy.cos(x)), lambda res, ct: (3.0 * res * ct,))
    return lambda x: f(x) * x


@program
def checkpointed(m):
    return lambda x: m.checkpoint(lambda y: m.numpy.sin(m.numpy.sin(y)) * y)(x)


@program
def loop_of_conditionals(m):
    def step(c, a):
        return m.lax.cond(a > 0, lambda v: v * 2.0, lambda v: m.numpy.sin(v), c), a

    return lambda x: m.lax.scan(step, x.sum(), x)


@program
def layered_network(m):
    def run(x):
        h = x
        for weight in (0.5, -0.7):
            h = m.numpy.tanh(m.numpy.outer(h, x) @ h * weight)
        return m.numpy.mean(h**2)

    return run
