"""Library functions of many operations or loops, in transforms whose operations run at once."""

import itertools

import jax
import numpy as np
import pytest

import minijax
from minijax.jax.testing import counts
from tests.harness.differential import assert_same

X = np.array([[0.3, 0.9, 1.4], [0.1, 1.2, 2.5]], np.float32)
N = np.array([[12, 18, 7], [5, 10, 0]], np.int32)
A = X[:, :, None] * X[:, None, :] + 2 * np.eye(3, dtype=np.float32)

# On a row of `X`, `N` or `A`; the name of a function says which has a gradient.
OF_X = {
    "searchsorted": lambda m, x: m.numpy.searchsorted(x, 1.0),
    "digitize": lambda m, x: m.numpy.digitize(1.0, x, right=True),
    "interp": lambda m, x: m.numpy.interp(x, np.arange(3.0), x),
    "interp by a period": lambda m, x: m.numpy.interp(x, np.arange(3.0), x, period=2.0),
    "histogram": lambda m, x: m.numpy.histogram(x, bins=3)[0],
    "histogramdd": lambda m, x: m.numpy.histogramdd(x[:, None], bins=3)[0],
    "bincount": lambda m, x: m.numpy.bincount(np.array([0, 2, 2]), x, length=3),
    "ldexp": lambda m, x: m.numpy.ldexp(x, np.array([1, -2, 3])),
    "gradient": lambda m, x: m.numpy.gradient(x),
    "unwrap": lambda m, x: m.numpy.unwrap(4 * x),
    "quantile": lambda m, x: m.numpy.quantile(x, 0.3),
    "median": lambda m, x: m.numpy.median(x),
    "poly": lambda m, x: m.numpy.poly(x),
    "polyfit": lambda m, x: m.numpy.polyfit(x, x * x, 1),
    "polyval": lambda m, x: m.numpy.polyval(x, 2.0),
    "expi": lambda m, x: m.scipy.special.expi(x),
    "exp1": lambda m, x: m.scipy.special.exp1(x),
    "expn": lambda m, x: m.scipy.special.expn(3, x),
    "hyp1f1": lambda m, x: m.scipy.special.hyp1f1(0.5, 1.5, x),
    "hyp2f1": lambda m, x: m.scipy.special.hyp2f1(0.5, 1.5, 2.5, x / 5),
    "bessel_jn": lambda m, x: m.scipy.special.bessel_jn(x + 5, v=2),
    "lpmn_values": lambda m, x: m.scipy.special.lpmn_values(2, 2, x / 5, True),
    "sph_harm_y": lambda m, x: m.scipy.special.sph_harm_y(
        np.array([1]), np.array([1]), x[:1], x[1:2], n_max=2
    ).real,
    "eigh_tridiagonal": lambda m, x: m.scipy.linalg.eigh_tridiagonal(x, x[1:], eigvals_only=True),
}  # fmt: skip
OF_N = {
    "gcd": lambda m, n: m.numpy.gcd(n, 12),
    "power": lambda m, n: m.numpy.power(n, n),
    "setxor1d": lambda m, n: m.numpy.setxor1d(n, n + 7, size=4),
    "lcm": lambda m, n: m.numpy.lcm(n, 12),
    "poisson": lambda m, n: m.random.poisson(m.random.key(n[0]), 3.0, (3,)),
    "binomial": lambda m, n: m.random.binomial(m.random.key(n[0]), 9.0, 0.3, (3,)),
    "ball": lambda m, n: m.random.ball(m.random.key(n[0]), 3),
    "multinomial": lambda m, n: m.random.multinomial(m.random.key(n[0]), 9.0, X[0] / X[0].sum()),
}
OF_A = {
    "inv": lambda m, a: m.numpy.linalg.inv(a),
    "solve": lambda m, a: m.numpy.linalg.solve(a, a[0]),
    "slogdet": lambda m, a: m.numpy.linalg.slogdet(a)[1],
    "lstsq": lambda m, a: m.numpy.linalg.lstsq(a, a[0])[0],
    "expm": lambda m, a: m.scipy.linalg.expm(a),
    "expm_frechet": lambda m, a: m.scipy.linalg.expm_frechet(a / 9, a / 9)[1],
    "sqrtm": lambda m, a: m.scipy.linalg.sqrtm(a).real,
    "funm": lambda m, a: m.scipy.linalg.funm(a, m.numpy.exp, disp=False)[0].real,
    "solve_sylvester": lambda m, a: m.scipy.linalg.solve_sylvester(a, a, a),
    "rsf2csf": lambda m, a: m.scipy.linalg.rsf2csf(m.numpy.triu(a), m.numpy.eye(3))[0].real,
}
CALLS = [(f, array) for fs, array in ((OF_X, X), (OF_N, N), (OF_A, A)) for f in fs.items()]
DIFFERENTIATED = [
    (name, OF_X.get(name) or OF_A[name], (X if name in OF_X else A)[0])
    for name in (
        "searchsorted", "interp", "bincount", "exp1", "expi", "expn", "hyp1f1", "hyp2f1",
        "lpmn_values", "ldexp", "gradient", "unwrap", "quantile", "median", "poly", "polyfit",
        "polyval", "inv", "solve", "slogdet", "lstsq", "expm", "expm_frechet",
    )
]  # fmt: skip


def compiled_again(call):
    call(), call()
    with counts.count_primitive_compiles() as compiles:
        call()
    return compiles()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("f", "array"), [(f, array) for (_, f), array in CALLS], ids=[name for (name, _), _ in CALLS]
)
def test_a_batch_is_compiled_once(f, array):
    call = lambda m: m.vmap(lambda x: f(m, x))(m.numpy.asarray(array))
    assert compiled_again(lambda: call(minijax)) == 0
    assert_same(call(minijax), call(jax), size=10.0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("f", "array"), [row[1:] for row in DIFFERENTIATED], ids=[row[0] for row in DIFFERENTIATED]
)
def test_a_gradient_is_compiled_once(f, array):
    call = lambda m: m.grad(lambda x: (f(m, x) * 2.5).sum() + x.sum())(m.numpy.asarray(array))
    assert compiled_again(lambda: call(minijax)) == 0
    assert_same(call(minijax), call(jax), size=10.0)


MORE = {
    "truncnorm": lambda m, x: m.scipy.stats.truncnorm.sf(x, -2.0, 2.0),
    "betabinom": lambda m, x: m.scipy.stats.betabinom.pmf(2, 5, x, 2.0),
    "t": lambda m, x: m.scipy.stats.t.logpdf(x, 3.0),
    "rankdata": lambda m, x: m.scipy.stats.rankdata(x),
    "mode": lambda m, x: m.scipy.stats.mode(x).mode,
    "entropy": lambda m, x: m.scipy.stats.poisson.entropy(x),
    "sici": lambda m, x: m.scipy.special.sici(x),
    "poch": lambda m, x: m.scipy.special.poch(x, 2.5),
    "toeplitz": lambda m, x: m.scipy.linalg.toeplitz(x),
    "polar": lambda m, x: m.scipy.linalg.polar(m.numpy.outer(x, x), method="qdwh"),
    "det": lambda m, x: m.numpy.linalg.det(m.numpy.outer(x, x)),
    "cumprod": lambda m, x: m.numpy.cumprod(x),
    "frexp": lambda m, x: m.numpy.frexp(x),
    "resize": lambda m, x: m.image.resize(x, (9,), "cubic"),
    "map_coordinates": lambda m, x: m.scipy.ndimage.map_coordinates(x, [x], 1),
    "gamma": lambda m, x: m.random.gamma(m.random.key(0), x),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("f", "x"),
    [(f, array[0]) for (_, f), array in CALLS] + [(f, np.abs(X[0]) + 1) for f in MORE.values()],
    ids=[*[name for (name, _), _ in CALLS], *MORE],
)
def test_is_recorded_once(f, x):
    """Two calls within a trace are two equations of one program."""
    eqns = minijax.make_jaxpr(lambda x: [f(minijax, x), f(minijax, x)])(x).jaxpr.eqns
    inner = [e.params["call_jaxpr"].eqns for e in eqns if e.primitive.name == "custom_jvp_call"]
    eqns = [*eqns, *itertools.chain(*inner)]
    programs = [id(eqn.params["jaxpr"]) for eqn in eqns if eqn.primitive.name == "jit"]
    assert programs and all(programs.count(each) % 2 == 0 for each in programs)


def test_what_jit_does_not_take_is_refused_by_the_function():
    def refused(m):
        for call in (
            lambda x: m.numpy.searchsorted("a", x),
            lambda x: m.numpy.gcd([1, 2], x),
            lambda x: m.numpy.searchsorted(X[0], x, side=x),
            lambda x: m.random.poisson(m.random.key(0), x, shape=[2]),
        ):
            try:
                yield m.vmap(call)(m.numpy.arange(3)).shape
            except Exception as error:
                yield type(error).__name__

    assert [*refused(minijax)] == [*refused(jax)]


def test_few_operations_are_recorded_as_they_are():
    jnp = minijax.numpy
    jaxpr = minijax.make_jaxpr(minijax.vmap(lambda x: jnp.hypot(x, jnp.mean(x)) + jnp.std(x)))(X)
    assert "jit" not in {str(equation.primitive) for equation in jaxpr.eqns}


V = np.linspace(0.1, 1, 40, dtype=np.float32)
M = V.reshape(5, 8)
OF_NUMBERS = {  # m is `numpy`, r is `random`, k a key, i another integer in each call
    "choice": lambda m, r, k, i: r.choice(k, i, (3,)),
    "randint": lambda m, r, k, i: r.randint(k, (3,), -i, i),
    "uniform": lambda m, r, k, i: r.uniform(k, (3,), minval=-i, maxval=i * 1.0),
    "gamma": lambda m, r, k, i: r.gamma(k, i * 1.0, (3,)),
    "poisson": lambda m, r, k, i: r.poisson(k, i * 1.0, (3,)),
    "bernoulli": lambda m, r, k, i: r.bernoulli(k, i / 100, (3,)),
    "truncated": lambda m, r, k, i: r.truncated_normal(k, -i, i * 1.0, (3,)),
    "fold_in": lambda m, r, k, i: r.fold_in(k, i),
    "key": lambda m, r, k, i: r.key(i),
    "add": lambda m, r, k, i: V + m.asarray(V) + i,
    "power": lambda m, r, k, i: m.asarray(V) ** (i + 0.5),
    "modulo": lambda m, r, k, i: m.asarray(V) % i,
    "clip": lambda m, r, k, i: m.clip(V, 0, i),
    "where": lambda m, r, k, i: m.where(V > 0.5, V, i),
    "full_like": lambda m, r, k, i: m.full_like(V, i),
    "row": lambda m, r, k, i: m.asarray(M)[i % 5],
    "element": lambda m, r, k, i: m.asarray(M)[i % 5, -(i % 8)],
    "slice": lambda m, r, k, i: m.asarray(V)[i : i + 3],
    "at": lambda m, r, k, i: m.asarray(V).at[i].add(1.5 * i),
    "at of a column": lambda m, r, k, i: m.asarray(M).at[:, i % 8].set(i),
    "take": lambda m, r, k, i: m.take(V, i),
    "linspace": lambda m, r, k, i: m.linspace(i * 0.1, i * 2.0, 5),
    "quantile": lambda m, r, k, i: m.quantile(V, i / 100),
    "isclose": lambda m, r, k, i: m.isclose(V, 0.5, atol=i * 0.01),
    "nan_to_num": lambda m, r, k, i: m.nan_to_num(V, nan=i * 1.0),
    "interp": lambda m, r, k, i: m.interp(i * 0.01, V, V, left=i * 1.0),
    "pad": lambda m, r, k, i: m.pad(V, 2, constant_values=i),
    "sum": lambda m, r, k, i: m.sum(V, initial=i),
    "insert": lambda m, r, k, i: m.insert(V, i, 1.0),
    "delete": lambda m, r, k, i: m.delete(V, i),
    "append": lambda m, r, k, i: m.append(V, i),
    "fill_diagonal": lambda m, r, k, i: m.fill_diagonal(m.asarray(M), i, inplace=False),
    "trapezoid": lambda m, r, k, i: m.trapezoid(V, dx=i * 0.1),
    "isin": lambda m, r, k, i: m.isin(V, i),
    "dynamic_slice": lambda m, r, k, i: minijax.lax.dynamic_slice(V, (i,), (3,)),
    "norm.logpdf": lambda m, r, k, i: minijax.scipy.stats.norm.logpdf(V, i * 0.1, i * 1.0),
    "betainc": lambda m, r, k, i: minijax.scipy.special.betainc(i * 1.0, 2.0, V),
    "elu": lambda m, r, k, i: minijax.nn.elu(V, i * 0.1),
    "vmap": lambda m, r, k, i: minijax.vmap(m.multiply, (0, None))(V, i),
    "grad": lambda m, r, k, i: minijax.grad(m.sin)(i * 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_another_number_is_no_other_program(name, caplog):
    """A loop over numbers compiles once, or for few kinds of them, as under upstream."""
    call = lambda i: OF_NUMBERS[name](minijax.numpy, minijax.random, minijax.random.key(0), i)
    for i in (3, 7, 6, 2, 5, 4, 17):
        call(i)
    with minijax.log_compiles(True):
        for i in (11, 13, 19, 23, 29):
            call(i)
    assert not [r for r in caplog.records if r.getMessage().startswith("Compiling")]
