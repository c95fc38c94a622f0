"""`minijax.scipy` against upstream: every public name that stands has a row."""

import importlib
import itertools
import math
import re
from fractions import Fraction

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

import minijax
from tests.harness.differential import assert_same, sample, x64
from tests.harness.libraries import Row, both, check_row, check_wide, ids, missing

X = sample((3, 4), np.float32) * 2
POSITIVE = np.abs(X) + 0.3
UNIT = (1 / (1 + np.exp(-X))).astype(np.float32)
EDGES = np.asarray([-2.5, -1.0, 0.0, 0.5, 1.0, 40.0, np.inf, np.nan], np.float32)


def special(name, *args, label="", **options):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.special")
    given = {k: options.pop(k) for k in list(options) if k in KEYWORDS}
    options = {"ulps": 256, "wide_ulps": 2**13, **options}
    return Row(name, lambda m, *xs: getattr(module(m), name)(*xs, **given), *args, label=label,
               **options)  # fmt: skip


KEYWORDS = (
    "axis", "d", "n", "repetition", "exact", "series_order", "return_sign", "v", "n_iter", "n_max",
)  # fmt: skip
ONE = {
    **dict.fromkeys(
        ["digamma", "erf", "erfc", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr",
         "softmax", "log_softmax", "logsumexp"], X),
    **dict.fromkeys(["dawsn", "erfcx", "fresnel", "wofz"], X),
    **dict.fromkeys(["entr", "gamma", "loggamma", "gammasgn", "factorial", "exp1", "expi", "sici",
                     "spence"], POSITIVE),
    **dict.fromkeys(["logit", "ndtri"], UNIT),
    "erfinv": 2 * UNIT - 1,
}  # fmt: skip
TWO = {
    **dict.fromkeys(["beta", "betaln", "gammainc", "gammaincc", "rel_entr", "kl_div", "xlogy",
                     "xlog1py", "boxcox", "boxcox1p", "comb", "poch"], (POSITIVE + 1, POSITIVE[0])),
    "zeta": (POSITIVE + 1.5, POSITIVE[0]),
}  # fmt: skip
# Functions whose programs take upstream seconds to compile: their values alone are compared.
SLOW = {"betainc", "gammainc", "gammaincc", "polygamma", "zeta", "hyp1f1", "hyp2f1"}
QUICK = {"grad": False, "vmap": False}
EDGELESS = {  # upstream has NaN for some infinities here, or is slow
    "softmax", "log_softmax", "logsumexp", "factorial", "digamma", "dawsn", "erfcx", "exp1", "expi",
    "spence", "wofz",
}  # fmt: skip
N, M = np.asarray([0, 2, 5, 3]), np.asarray([0, -1, 3, 2])
SPECIAL = [
    # Upstream's derivative of Spence's function is NaN where its series change.
    *[special(name, x, grad=name != "spence") for name, x in ONE.items()],
    *[special(name, *args, **(QUICK if name in SLOW else {})) for name, args in TWO.items()],
    *[special(name, EDGES, label="edges", **QUICK) for name in ONE if name not in EDGELESS],
    *[special(name, np.asarray(EDGES[:6]), np.float32(2), label="edges", **QUICK)
      for name in ("rel_entr", "kl_div", "xlogy", "xlog1py", "boxcox", "comb")],
    special("dawsn", X * 8, label="far"),
    *[special(name, (X * 3 - 1j * X[::-1]).astype(np.complex64), label="complex", ulps=64,
              grad=False) for name in ("gamma", "loggamma")],
    special("erfcx", X * 2 + 1j * X[::-1], label="complex", **QUICK),
    special("wofz", X * 2 + 1j * X[::-1], label="complex", **QUICK),
    special("expi", -POSITIVE, label="negative"),
    special("sici", 3 * X, label="far"),
    special("fresnel", 2 * X, label="far"),
    special("spence", 3 * POSITIVE, label="far", **QUICK),
    special("expn", np.asarray([[0], [1], [4]]) + np.zeros((3, 4), int), POSITIVE, label="many"),
    special("expn", np.asarray([1.0, 60], np.float32), np.asarray([0.5, 8], np.float32), **QUICK),
    special("hyp1f1", POSITIVE, POSITIVE[1], X),
    special("hyp2f1", POSITIVE, POSITIVE[1], POSITIVE[2], UNIT * 0.9, **QUICK),
    special("owens_t", X, X[0]),
    special("bessel_jn", POSITIVE + 1, v=3, n_iter=22),
    special("sph_harm_y", N, M, UNIT[0] * 3, X[0], n_max=5),
    special("polygamma", np.asarray([0, 1, 2, 3]), POSITIVE, **QUICK),
    special("polygamma", np.float32(1), POSITIVE, label="float order", **QUICK),
    special("betainc", POSITIVE, POSITIVE[0], UNIT, **QUICK),
    special("betaln", np.asarray([1, 20, 1e4], np.float32), np.asarray([30, 9, 0.5], np.float32)),
    special("multigammaln", POSITIVE + 3, d=3),
    special("comb", POSITIVE + 1, POSITIVE[0], repetition=True, label="repetition"),
    special("factorial", np.arange(5)),
    special("factorial", np.arange(5), exact=True, label="exact", grad=False, vmap=False),
    special("softmax", X, axis=1, label="axis"),
    special("log_softmax", X, axis=0, label="axis"),
    special("log_ndtr", X * 10, label="far"),
    special("log_ndtr", X, series_order=31, label="order"),
    special("ndtr", np.arange(3), label="integers"),
    special("ndtri", np.asarray([1e-10, 1e-4, 0.1, 0.999], np.float32), label="ends"),
    special("zeta", POSITIVE, label="no q"),
    special("erf", np.arange(3), label="integers"),
    special("xlogy", np.zeros(3, np.float32), np.zeros(3, np.float32), label="zeros", grad=False),
]  # fmt: skip


@pytest.mark.parametrize("row", SPECIAL, ids=ids(SPECIAL))
def test_special(row):
    check_row(row)


# What is computed here, not by a primitive.
WIDE = [
    row for row in SPECIAL if not row.label and row.name in
    ("dawsn", "erfcx", "fresnel", "wofz", "exp1", "expi", "sici", "spence", "owens_t", "hyp1f1",
     "sph_harm_y", "bessel_jn", "log_ndtr", "ndtri", "logsumexp")
]  # fmt: skip


@pytest.mark.parametrize("row", WIDE, ids=ids(WIDE))
def test_special_in_64_bits(row):
    check_wide(row)


@pytest.mark.parametrize("row", [row for row in SPECIAL if not row.label], ids=repr)
def test_special_without_jit(row):
    """Loops then run in Python, and their bodies get Python's numbers."""
    wanted = row.call(minijax, *row.args)
    with minijax.disable_jit():
        found = row.call(minijax, *row.args)
    assert_same(found, minijax.tree.map(np.asarray, wanted), weak=False, ulps=row.ulps)


def test_fresnel_far_from_zero():
    x = np.linspace(0, 40, 4001).astype(np.float32)
    expected = scipy.special.fresnel(x.astype(np.float64))
    np.testing.assert_allclose(minijax.scipy.special.fresnel(x), expected, rtol=4e-7)
    ends = np.asarray([1e10, 3e38, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(minijax.scipy.special.fresnel(ends), [[0.5] * 3 + [-0.5]] * 2)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 5e-7), (np.float64, 2e-15)])
def test_sine_and_cosine_integrals_are_exact(dtype, atol):
    x = np.linspace(0.01, 60, 4001).astype(dtype)
    with x64(dtype is np.float64):
        found = minijax.scipy.special.sici(x)
    expected = scipy.special.sici(x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_derivatives_of_bessel_jn():
    # SciPy's: upstream's are NaN or far off where so many steps overflow.
    x = np.linspace(-12, 12, 101).astype(np.float32)
    orders = lambda z: minijax.scipy.special.bessel_jn(z, v=3, n_iter=60)
    expected = np.stack([scipy.special.jvp(k, x.astype(np.float64)) for k in range(4)], axis=-1)
    for derivative in (minijax.jacfwd, minijax.jacrev):
        found = minijax.vmap(derivative(orders))(x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_bernoulli():
    for n in (0, 1, 2, 24):
        both(lambda m: importlib.import_module(f"{m.__name__}.scipy.special").bernoulli(n))
    both(lambda m: importlib.import_module(f"{m.__name__}.scipy.special").bernoulli(-1))
    both(lambda m: importlib.import_module(f"{m.__name__}.scipy.special").bernoulli(2.0))


OF_NUMBERS = {
    **{name: (0.3,) for name in ONE if name not in ("softmax", "log_softmax", "factorial")},
    **dict.fromkeys(["owens_t", "poch", "xlogy", "xlog1py", "rel_entr", "kl_div"], (0.3, 0.4)),
    "expn": (2, 0.3), "zeta": (2.5, 0.4), "hyp1f1": (0.3, 0.4, 0.5), "log1mexp": (0.3,),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_derivatives_for_python_numbers(name):
    """The rules of derivatives are given numbers, and not arrays, where `jvp` is."""
    args, place = OF_NUMBERS[name], len(OF_NUMBERS[name]) - 1
    before = args[:place]

    def run(m, of):
        home = "nn" if name == "log1mexp" else "scipy.special"
        fun = getattr(importlib.import_module(f"{m.__name__}.{home}"), name)
        at, along = of(args[place]), of(1.0)
        return m.tree_util.tree_leaves(m.jvp(lambda x: fun(*before, x), (at,), (along,)))

    compiled = lambda m: m.jit(lambda: run(m, np.float32))()
    numbers, arrays = run(minijax, float), compiled(minijax)
    assert all(isinstance(x, minijax.Array) for x in numbers)
    theirs = compiled(jax) if hasattr(jax.scipy.special, name) or name == "log1mexp" else arrays
    for ours, same, expected in zip(numbers, arrays, theirs, strict=True):
        np.testing.assert_allclose(ours, same, rtol=1e-6)
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "transform"),
    [
        (name, transform)
        for name in [*OF_NUMBERS, "fresnel", "sici"]
        for transform in ("jvp", "grad", "jit of grad")
        if hasattr(jax.scipy.special, name) and name != "wofz"  # which is complex
        if transform != "jvp" or name not in ("rel_entr", "kl_div")  # strong, as those of xlogy
    ],
)
def test_weak_types_of_derivatives(name, transform):
    """By a Python number, derivatives have upstream's weak type."""
    args = OF_NUMBERS.get(name, (0.3,))
    place = len(args) - 1

    def run(m):
        fun = getattr(importlib.import_module(f"{m.__name__}.scipy.special"), name)

        def of(x):
            return fun(*args[:place], x)

        if transform == "jvp":
            out = m.jvp(of, (args[place],), (1.0,))[1]
        else:
            out = m.grad(lambda x: sum(m.tree.leaves(of(x))))
            out = (m.jit(out) if transform == "jit of grad" else out)(args[place])
        return [(x.dtype, x.weak_type) for x in map(m.numpy.asarray, m.tree.leaves(out))]

    wanted = []
    jax.eval_shape(lambda: wanted.extend(run(jax)))
    assert run(minijax) == wanted


def test_every_special_function_has_a_row():
    theirs = importlib.import_module("jax.scipy.special")
    assert not missing(theirs, SPECIAL, {"bernoulli"})
    ours = importlib.import_module("minijax.scipy.special")
    assert {*ours.__all__} == {n for n in dir(theirs) if not n.startswith("_")}


# -- distributions ----------------------------------------------------------------------------------

K = np.asarray([0, 1, 2, 5], np.float32)
SHAPES = {  # for each distribution: points, and the parameters of its shape
    "bernoulli": (np.asarray([0, 1, 1, 2], np.float32), (np.float32(0.3),)),
    "beta": (UNIT, (np.float32(2.5), np.float32(1.5))),
    "betabinom": (K, (np.float32(6), np.float32(2.5), np.float32(1.5))),
    "binom": (K, (np.float32(6), np.float32(0.3))),
    "cauchy": (X, ()),
    "chi2": (POSITIVE, (np.float32(3),)),
    "expon": (POSITIVE, ()),
    "gamma": (POSITIVE, (np.float32(2.5),)),
    "gennorm": (X, (np.float32(1.5),)),
    "geom": (K + 1, (np.float32(0.3),)),
    "gumbel_l": (X, ()),
    "gumbel_r": (X, ()),
    "laplace": (X, ()),
    "logistic": (X, ()),
    "nbinom": (K, (np.float32(6), np.float32(0.3))),
    "norm": (X, ()),
    "pareto": (POSITIVE + 1, (np.float32(2.5),)),
    "poisson": (K, (np.float32(2.5),)),
    "t": (X, (np.float32(3),)),
    "truncnorm": (X, (np.float32(-1.5), np.float32(2))),
    "uniform": (UNIT * 2, ()),
    "vonmises": (X, (np.float32(2),)),
    "wrapcauchy": (POSITIVE, (np.float32(0.4),)),
}


# Those that hold a loop of an incomplete gamma or beta function, and those made of them.
SLOW_STATS = {
    f"{name}.{function}"
    for name in ("gamma", "chi2", "beta", "poisson", "truncnorm")
    for function in ("cdf", "logcdf", "sf", "logsf", "ppf", "pdf", "pmf")
}


# Large programs, of which XLA takes long to compile the derivatives.
LARGE = {"beta", "betabinom", "binom", "gennorm", "nbinom", "t", "truncnorm"}


def distribution(name, function):
    x, shape = SHAPES[name]
    if function in ("ppf", "isf"):
        x = UNIT
    args = shape if function == "entropy" else (x, *shape)
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats.{name}")
    call = lambda m, *xs: getattr(module(m), function)(*xs)
    # Upstream cannot differentiate these with respect to what is a number in its formula.
    grad = f"{name}.{function}" not in ("gumbel_l.ppf", "gumbel_r.ppf", "poisson.entropy")
    # The others are made of these.
    is_whole = function in ("logpdf", "logpmf", "cdf", "logcdf", "ppf", "entropy")
    is_slow = f"{name}.{function}" in SLOW_STATS or not is_whole
    more = QUICK if is_slow else {"grad": grad}
    return Row(f"{name}.{function}", call, *args, ulps=128, apart=name in LARGE, **more)


def public(name):
    module = importlib.import_module(f"jax.scipy.stats.{name}")
    return [n for n in dir(module) if not n.startswith("_")]


STATS = [distribution(name, function) for name in SHAPES for function in public(name)]


@pytest.mark.parametrize("row", STATS, ids=ids(STATS))
def test_distribution(row):
    check_row(row)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["norm", "laplace", "cauchy", "chi2", "wrapcauchy"])
def test_density_keeps_the_dtype(name, dtype):
    shape = {"chi2": (3.0,), "wrapcauchy": (0.3,)}.get(name, ())
    stats = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats.{name}")
    both(lambda m: stats(m).logpdf(m.numpy.asarray(UNIT, dtype), *shape), size=1.0, jit=True)


@pytest.mark.parametrize(
    ("name", "args"),
    [("gamma", (2.5,)), ("entr", (2,)), ("loggamma", (3,)), ("multigammaln", (4, 3))],
)
def test_numbers_under_jit(name, args):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.special")
    both(lambda m: m.jit(lambda: getattr(module(m), name)(*args))())


MOVED = [name for name in SHAPES if name not in ("vonmises", "wrapcauchy")]


@pytest.mark.parametrize("name", MOVED)
def test_distribution_moved(name):
    x, shape = SHAPES[name]
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats.{name}")
    function = "logpdf" if "logpdf" in public(name) else "logpmf"
    if function == "logpdf":
        both(lambda m: module(m).logpdf(x, *shape, loc=0.5, scale=2), ulps=64, size=1.0, jit=True)
    else:
        both(lambda m: module(m).logpmf(x, *shape, 1), ulps=64, size=1.0, jit=True)
    both(lambda m: getattr(module(m), function)([1.0], *shape), jit=True)


CONCENTRATIONS = [
    [1.0, 1.0], [0.5, 2.0], [0.0, 1.0], [-1.0, 2.0], [np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0]
]  # fmt: skip


@pytest.mark.parametrize(
    "x", [[0.5, 0.5], [0.5, 0.6], [0.0, 1.0], [-0.1, 1.1], [np.nan, 0.5]], ids=str
)
@pytest.mark.parametrize("alpha", CONCENTRATIONS, ids=str)
@pytest.mark.parametrize("name", ["logpdf", "pdf"])
def test_dirichlet_of_special_values(name, alpha, x):
    both(
        lambda m: getattr(importlib.import_module(f"{m.__name__}.scipy.stats").dirichlet, name)(
            np.float32(x), np.float32(alpha)
        )
    )


def _counts():
    """Numbers of trials, those that count, chances, and parameters of beta distributions."""
    rng = np.random.RandomState(0)
    n = np.floor(10 ** rng.uniform(0, 3, 400))
    k = np.floor((n + 1) * rng.rand(400))
    mean = k * 10 ** rng.uniform(-0.3, 0.3, 400) + 0.1
    a, b = 10 ** rng.uniform(-2, 2, (2, 400))
    return [x.astype(np.float32) for x in (k, n, rng.rand(400), mean, a, b)]


# Arguments by `_counts`, and the units of the last place that logarithms and probabilities may lose;
# the direct formulas lose a thousand and more.
NEAR = {"binom": ((0, 1, 2), 64), "poisson": ((0, 3), 64), "betabinom": ((0, 1, 4, 5), 128)}


@pytest.mark.parametrize("name", NEAR)
def test_probabilities_of_counts(name):
    places, bound = NEAR[name]
    args = [_counts()[place] for place in places]
    eps = np.finfo(np.float32).eps
    ours = importlib.import_module(f"minijax.scipy.stats.{name}")
    logs, chances = np.asarray(ours.logpmf(*args)), np.asarray(ours.pmf(*args))
    wanted = getattr(scipy.stats, name).logpmf(*[x.astype(np.float64) for x in args])
    seen = wanted > -60
    np.testing.assert_allclose(logs[seen], wanted[seen], rtol=bound * eps, atol=8 * bound * eps)
    np.testing.assert_allclose(chances[seen], np.exp(wanted[seen]), rtol=8 * bound * eps)


def test_hypergeometric_functions_of_large_parameters():
    """Values of mpmath, to 32 units: of series that alternate, Euler's transformation has fewer signs."""
    points = np.array([
        (2.39, -88.5, 3.37, 0.25, 0.0016688158145512237), (0.3, -40.25, 3.37, 0.7, 0.4839744675787345),
        (-20.5, -0.6, 1.5, 0.8, 4.743055469688585), (1.5, -30.25, 2.5, 0.5, 0.021269121678680135),
        (90.5, 1.5, 2.25, 0.25, 20023134714.651356), (40.5, 30.2, 1.5, 0.6, 3.089771180854728e42),
        (2.9, -88.5, -0.7, 0.7, -0.0001288429812775598),
    ])  # fmt: skip
    with x64(True):
        out = minijax.scipy.special.hyp2f1(*points[:, :4].T)
        np.testing.assert_array_max_ulp(out, points[:, 4], 32)


def test_hypergeometric_functions_at_poles():
    """Parameters that are whole, zero or negative, and arguments of either sign and zero."""
    ends = (-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0)
    cases = itertools.product(
        ends, ends, (-2.0, -1.0, -0.5, -0.0, 0.0, 1.0), (-0.5, -0.0, 0.0, 0.5)
    )
    # The product is one whatever the parameters are, NaN among them, where the argument is zero.
    cases = np.asarray(
        [*cases, (np.nan, 1, 1, 0), (1, np.nan, 1, 0), (1, 1, np.nan, 0)], np.float32
    )
    ours, theirs = (
        m.jit(importlib.import_module(f"{m.__name__}.scipy.special").hyp2f1)(*cases.T)
        for m in (minijax, jax)
    )
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)
    a, b, x = np.float32([0.5, 0.5, 0.5]), np.float32(np.inf), np.float32([-0.3, 0.3, 200])
    assert np.all(minijax.scipy.special.hyp1f1(a, b, x) == scipy.special.hyp1f1(a, b, x))


def _exact_binom(k, n, p):
    return math.comb(n, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (n - k)


def _exact_betabinom(k, n, a, b):
    """The ratio of products that the gamma functions of the probability make."""
    rising = lambda x, count: math.prod(Fraction(x) + j for j in range(count))
    return math.comb(n, k) * rising(a, k) * rising(b, n - k) / rising(Fraction(a) + b, n)


@pytest.mark.parametrize(
    ("name", "exact", "parameters"),
    [("binom", _exact_binom, [(0.3,), (0.75,)]),
     ("betabinom", _exact_betabinom, [(1.67, 2.0), (0.5, 12.25), (30.0, 3.5)])],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_few_counts(name, exact, parameters, dtype):
    """Against exact fractions: where all arguments are small, SciPy itself loses some units."""
    cases = [(k, n, *[float(dtype(x)) for x in more])
             for n in (1, 2, 5, 14, 40) for k in range(n + 1) for more in parameters]  # fmt: skip
    with x64(dtype == np.float64):
        pmf = minijax.jit(getattr(minijax.scipy.stats, name).pmf)
        got = np.asarray(pmf(*np.asarray(cases, dtype).T))
    wanted = np.asarray([float(exact(*case)) for case in cases])
    # The exponential of a logarithm, itself rounded.
    bound = np.finfo(dtype).eps * (8 + 2 * np.abs(np.log(wanted)))
    assert np.all(np.abs(got - wanted) <= bound * wanted), np.max(np.abs(got / wanted - 1) / bound)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 5.0])
def test_generalized_normal_distribution(beta):
    x = np.float32([-9, -3, -1.5, -0.5, -1e-30, -0.0, 0.0, 1e-3, 0.5, 2, 40, np.inf, -np.inf])
    ours = minijax.scipy.stats.gennorm
    wanted = scipy.stats.gennorm.cdf(x.astype(np.float64), beta)
    np.testing.assert_allclose(ours.cdf(x, beta), wanted, rtol=1e-5, atol=1e-37)
    by_x, by_beta = minijax.vmap(minijax.grad(ours.cdf, (0, 1)), (0, None))(x, np.float32(beta))
    density = scipy.stats.gennorm.pdf(x.astype(np.float64), beta)
    np.testing.assert_allclose(by_x, density, rtol=2e-5, atol=1e-37)
    step = 1e-5
    moved = [scipy.stats.gennorm.cdf(x.astype(np.float64), beta + s) for s in (step, -step)]
    np.testing.assert_allclose(by_beta, (moved[0] - moved[1]) / (2 * step), rtol=1e-3, atol=1e-6)


def stats(name, *args, label="", **options):
    made = {k: options.pop(k) for k in list(options) if k in STATS_KEYWORDS}

    def call(m, *xs):
        found = importlib.import_module(f"{m.__name__}.scipy.stats")
        for part in name.split("."):
            found = getattr(found, part)
        return tuple(m.tree_util.tree_leaves(found(*xs, **made)))

    return Row(name, call, *args, label=label, **options)


def density(name, method, *args, **options):
    """A row of a method of an estimate from the first of the arguments."""
    kde = lambda m, x: importlib.import_module(f"{m.__name__}.scipy.stats").gaussian_kde(x)
    call = lambda m, x, *xs: getattr(kde(m, x), method)(*xs)
    return Row(name, call, *args, label=method, **options)


STATS_KEYWORDS = ("axis", "method", "keepdims", "nan_policy", "ddof")
MEAN, COV = np.asarray([0, 1], np.float32), np.asarray([[2, 0.5], [0.5, 1]], np.float32)
WITH_NAN = np.where(X > 2, np.nan, np.round(X)).astype(np.float32)
COUNTS, CHANCES = np.asarray([1, 2, 3]), np.asarray([0.2, 0.3, 0.5], np.float32)
ALPHA = np.asarray([2, 3, 0.5], np.float32)
SAMPLES, POINTS = sample((2, 9), np.float32), sample((2, 3), np.float32, 4)
OTHERS = [
    stats("mode", np.round(X), **QUICK),
    stats("mode", np.round(X), axis=None, label="all", **QUICK),
    stats("mode", WITH_NAN, axis=1, keepdims=True, label="kept", **QUICK),
    stats("mode", X > 0, label="bool", **QUICK),
    *[stats("rankdata", np.round(X), method=method, axis=1, label=method, **QUICK)
      for method in ("average", "min", "max", "dense", "ordinal", "bad")],
    stats("rankdata", WITH_NAN, axis=0, label="nan", **QUICK),
    stats("sem", X),
    stats("sem", WITH_NAN, axis=1, nan_policy="omit", label="omit", **QUICK),
    stats("sem", X, axis=None, ddof=0, keepdims=True, label="all", **QUICK),
    stats("dirichlet.logpdf", CHANCES, ALPHA),
    stats("dirichlet.pdf", CHANCES[:2], ALPHA, label="short", **QUICK),
    stats("dirichlet.logpdf", np.stack([CHANCES, 2 * CHANCES], 1), ALPHA, label="many", **QUICK),
    stats("dirichlet.logpdf", CHANCES, ALPHA[None], label="shape", **QUICK),
    stats("multinomial.logpmf", COUNTS, np.asarray(6), CHANCES, vmap=False),
    stats("multinomial.pmf", COUNTS, np.asarray(7), CHANCES, **QUICK),
    stats("multinomial.logpmf", CHANCES, np.asarray(6), CHANCES, label="floats", **QUICK),
    stats("multivariate_normal.logpdf", X[:, :2], MEAN, COV),
    stats("multivariate_normal.pdf", X[:, :2], MEAN, COV, **QUICK),
    stats("multivariate_normal.logpdf", X[0, :2], MEAN, np.stack([COV, 2 * COV]), label="many"),
    stats("multivariate_normal.logpdf", X[:, :2], MEAN, np.float32(2), label="round", **QUICK),
    stats("multivariate_normal.logpdf", X, np.float32(1), np.float32(2), label="one", **QUICK),
    stats("gaussian_kde", SAMPLES, **QUICK),
    density("gaussian_kde", "evaluate", SAMPLES, POINTS),
    density("gaussian_kde", "logpdf", SAMPLES, POINTS, vmap=False),
    density("gaussian_kde", "integrate_gaussian", SAMPLES, MEAN, COV, **QUICK),
    density("gaussian_kde", "evaluate", SAMPLES, POINTS[:1], **QUICK),
]  # fmt: skip


@pytest.mark.parametrize("row", OTHERS, ids=ids(OTHERS))
def test_statistics(row):
    check_row(row)


def test_estimate_of_numbers():
    def run(m):
        made = importlib.import_module(f"{m.__name__}.scipy.stats").gaussian_kde(
            SAMPLES[0], "silverman", np.arange(9.0)
        )
        drawn = made.resample(m.random.key(3), (4,))
        return made, made.integrate_box_1d(-1.0, 1.0), made.integrate_kde(made), drawn

    both(lambda m: m.tree_util.tree_leaves(run(m)), jit=True)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 5.0)])
def test_estimates_print_their_arrays(weights):
    made = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats").gaussian_kde(
        np.array([0.0, 1.0, 3.0, 7.0]), 0.5, weights
    )
    ours, theirs = repr(made(minijax)), repr(made(jax))
    digits = re.compile(r"\d+\.\d*")
    assert digits.sub("", ours) == digits.sub("", theirs)
    np.testing.assert_allclose(*[np.array(digits.findall(x), float) for x in (ours, theirs)], 1e-5)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_complex_numbers(name):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.special")
    both(lambda m: getattr(module(m), name)(5 + 1j), jit=True)


def test_every_statistic_has_a_row():
    theirs = importlib.import_module("jax.scipy.stats")
    named = {row.name.split(".")[0] for row in [*STATS, *OTHERS]}
    assert {n for n in dir(theirs) if not n.startswith("_")} <= named
    named = {row.name for row in [*STATS, *OTHERS]}
    for name in ("dirichlet", "multinomial", "multivariate_normal"):
        assert {f"{name}.{function}" for function in public(name)} <= named


# -- signals ----------------------------------------------------------------------------------------

A, B = sample((5, 6), np.float32), sample((3, 2), np.float32, 1)
WAVE = sample((2, 40), np.float32, 2)


def signal(name, *args, label="", grad=False, vmap=False, low=False, **given):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.signal")
    return Row(name, lambda m, *xs: getattr(module(m), name)(*xs, **given), *args, label=label,
               grad=grad, vmap=vmap, low=low)  # fmt: skip


PAIRS = [("convolve", A, B), ("correlate", B, A), ("correlate", A + 1j, B - 2j)]
SPECTRA = {
    "plain": {}, "odd": {"nperseg": 7, "noverlap": 5}, "two sides": {"return_onesided": False},
    "line": {"detrend": "linear"}, "long": {"nfft": 16, "fs": 2.0}, "wide": {"nperseg": 50},
    "window": {"window": np.hanning(8)}, "kaiser": {"window": ("kaiser", 3.0)},
    "overlap": {"noverlap": 8}, "short": {"nfft": 4}, "name": {"window": "unknown"},
}  # fmt: skip
SIGNALS = [
    *[signal(name, a, b, mode=mode, method=method, label=f"{mode} {method}")
      for name, a, b in PAIRS for mode in ("full", "same", "valid") for method in ("auto", "fft")],
    signal("convolve", A, B, grad=True, vmap=True, label="derivatives"),
    signal("convolve", A, B[0], label="ranks"),
    signal("convolve", A, B, mode="unknown", label="mode"),
    signal("correlate", B, A, method="unknown", label="method"),
    signal("convolve", np.arange(3), np.arange(2), label="integers"),
    *[signal(name, *pair, mode=mode, label=mode) for mode in ("full", "same", "valid")
      for name, pair in (("convolve2d", (A, B)), ("correlate2d", (B, A)), ("correlate2d", (A, B)))],
    signal("convolve2d", A, B, boundary="wrap", label="boundary"),
    signal("fftconvolve", A, A[:, :2], axes=(1,), mode="same", label="axes"),
    signal("fftconvolve", A, B, grad=True, vmap=True),
    signal("fftconvolve", A, B, axes=[0], label="sizes"),
    signal("detrend", WAVE, grad=True, vmap=True),
    signal("detrend", WAVE, bp=[5, 20], label="pieces"),
    signal("detrend", WAVE.T, axis=0, type="constant", label="mean"),
    signal("detrend", WAVE, type="unknown", label="type"),
    signal("detrend", WAVE, bp=100, label="place"),
    *[signal(name, WAVE, label=label, **{"nperseg": 8, **given})
      for name in ("stft", "welch") for label, given in SPECTRA.items()],
    *[signal("stft", WAVE, nperseg=9, boundary=boundary, padded=False, label=f"{boundary}")
      for boundary in ("even", "odd", "constant", None, "unknown")],
    signal("stft", WAVE.T, nperseg=8, axis=0, grad=True, vmap=True, label="axis"),
    signal("welch", WAVE, nperseg=8, average="median", scaling="spectrum", label="median"),
    signal("csd", WAVE, WAVE[:1, ::-1], nperseg=8, grad=True, vmap=True),
    signal("csd", WAVE, 1j * WAVE[:, :33], nperseg=8, average="median", label="complex"),
    signal("csd", WAVE, WAVE[0], nperseg=8, label="ranks"),
    signal("welch", WAVE, nperseg=8, average="unknown", label="average"),
    signal("welch", WAVE, nperseg=8, scaling="unknown", label="scaling"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:nperseg=", "ignore:Input data is complex")
@pytest.mark.parametrize("row", SIGNALS, ids=ids(SIGNALS))
def test_signal(row):
    check_row(row)


@pytest.mark.parametrize("noverlap", [0, 4, 6, 7])
def test_inverse_of_spectra(noverlap):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.signal")
    spectra = np.asarray(
        jax.jit(lambda: module(jax).stft(WAVE, nperseg=8, noverlap=noverlap or None)[2])()
    )
    given = {"nperseg": 8, "noverlap": noverlap}
    check_row(signal("istft", spectra, label="plain", grad=noverlap == 6, **given))
    check_row(signal("istft", spectra, boundary=False, window="hamming", **given))
    moved = np.moveaxis(spectra, (1, 2), (2, 0))
    check_row(signal("istft", moved, time_axis=0, freq_axis=2, **given))
    both(lambda m: module(m).istft(spectra, noverlap=9))


def test_every_signal_function_has_a_row():
    theirs = importlib.import_module("jax.scipy.signal")
    assert not missing(theirs, SIGNALS, {"istft"})


_SIZES = np.asarray([2.0**-126, 0.3, 1.0, 3.0, 7.9, 8.0, 10.0, 31.0, 100.0])


@pytest.mark.parametrize(("dtype", "ulp"), [(np.float32, 12), (np.float64, 64)])
def test_beta_of_all_sizes(dtype, ulp):
    """By SciPy in float64: upstream's loses digits where both arguments are above 8."""
    with x64(dtype is np.float64):
        a, b = (x.astype(dtype) for x in np.meshgrid(_SIZES, _SIZES))
        known = scipy.special.betaln(a.astype(float), b.astype(float))
        ours = np.asarray(minijax.scipy.special.betaln(a, b))
        units = np.abs(ours - known) / np.spacing(np.maximum(np.abs(known), 1).astype(dtype))
        assert units.max() <= ulp


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_betainc_of_the_smallest_parameters(dtype):
    with x64(dtype is np.float64):
        tiny = np.finfo(dtype).tiny
        cases = [(tiny, 1, tiny), (tiny, 0.5, tiny), (tiny, tiny, 0.5), (tiny, tiny, tiny),
                 (tiny, 2, tiny), (3, tiny, 0.5), (1, 1, tiny)]  # fmt: skip
        args = np.asarray(cases, dtype).T
        known = scipy.special.betainc(*args.astype(float))
        known[2:4] = 0.5  # by symmetry, and SciPy's is 0 in float64
        ours = minijax.scipy.special.betainc(*args)
        np.testing.assert_allclose(ours, known, rtol=1e-5, atol=2 * float(tiny))


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 4e-4), (np.float64, 1e-12)])
def test_betainc_of_large_parameters(dtype, rtol):
    """By SciPy in float64: with logarithms of large factorials, float32 was off by 4e-2."""
    rng = np.random.default_rng(0)
    a, b = (10 ** rng.uniform(-2, 3, 4000)).reshape(2, -1).astype(dtype)
    n = a.astype(float) + b
    deviation = np.sqrt(a / n * b / n / (n + 1))
    x = np.clip(a / n + 3 * deviation * rng.normal(size=a.shape), 1e-6, 1 - 1e-6).astype(dtype)
    known = scipy.special.betainc(a.astype(float), b.astype(float), x.astype(float))
    with x64(dtype is np.float64):
        ours = minijax.scipy.special.betainc(a, b, x)
    kept = known > 1e-25  # a small value that is 1 less one near it has lost digits, hence `rtol`
    np.testing.assert_allclose(np.asarray(ours)[kept], known[kept], rtol=rtol, atol=0)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_comb_compares_integers_as_such(dtype):
    largest = np.iinfo(dtype).max
    n, k = np.asarray([[largest - 1, largest], [largest - 2, largest - 1], [5, 2]], dtype).T
    both(lambda m: m.scipy.special.comb(n, k))


def test_densities_of_samples_far_from_zero():
    """Against SciPy in float64: differences are taken before anything is rounded to the distance."""
    rng = np.random.default_rng(0)
    samples, points = (
        (rng.normal(size=(2, n)) * [[1], [0.01]] + [[3], [5]]).astype(np.float32) for n in (50, 200)
    )
    want = scipy.stats.gaussian_kde(samples.astype(np.float64))(points.astype(np.float64))
    np.testing.assert_allclose(minijax.scipy.stats.gaussian_kde(samples)(points), want, rtol=1e-5)


def test_modules():
    for name in ("special", "stats", "integrate", "signal"):
        assert getattr(minijax.scipy, name).__name__ == f"minijax.scipy.{name}"
    both(lambda m: importlib.import_module(f"{m.__name__}.scipy.integrate").trapezoid(X))
    assert jax.scipy is not None
