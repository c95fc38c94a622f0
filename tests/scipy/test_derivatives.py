"""Derivatives of distributions where a careless formula has none: at the ends of the support and outside.

Each function of a distribution is differentiated with respect to each of its arguments, at points
inside, at the ends, and outside of the support. Where upstream's derivative is finite, so is ours, with
the same value; exceptions are listed with their reasons, and fail when they are no longer needed.
"""

import importlib
import inspect

import jax
import numpy as np
import pytest

import minijax
from tests.harness.derivatives import check_exceptions, compare

BOTH = (jax, minijax)
FUNCTIONS = ("cdf", "logcdf", "sf", "logsf", "pdf", "logpdf", "pmf", "logpmf", "ppf", "isf")
INF, NAN = np.inf, np.nan
POINTS = (-INF, -2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 2 * np.pi, 7.0, INF, NAN)
COUNTS = (-INF, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, INF, NAN)
SHAPES = {
    "bernoulli": [(0.3,)],
    "beta": [(1.5, 2.5), (1.0, 1.0), (0.5, 2.0)],
    "betabinom": [(3.0, 1.5, 2.5)],
    "binom": [(3.0, 0.3)],
    "cauchy": [()],
    "chi2": [(1.5,), (2.0,), (3.5,)],
    "expon": [()],
    "gamma": [(1.5,), (1.0,), (0.5,)],
    "gennorm": [(1.0,), (1.5,), (2.0,)],
    "geom": [(0.3,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "laplace": [()],
    "logistic": [()],
    "nbinom": [(3.0, 0.3)],
    "norm": [()],
    "pareto": [(1.5,)],
    "poisson": [(1.5,)],
    "t": [(1.5,)],
    "truncnorm": [(0.5, 2.0), (-INF, 1.0), (-1.0, INF)],
    "uniform": [()],
    "vonmises": [(1.5,)],
    "wrapcauchy": [(0.4,)],
}

_FLOAT0 = "upstream multiplies by an array of float0"
_INFINITE = "infinite at probabilities 0 and 1"
EXCEPTIONS = {
    "betabinom": {
        r"by loc": "k is rounded down: neither k nor loc has a derivative",
        r"logpmf .*by [ab] at \(0.0, .*, 1.0\)": "below the support, where the probability is 0",
    },
    "cauchy": {
        r"(ppf|isf) .*by (q|loc|scale) at \([01]\.0,": _INFINITE,
        r"(ppf|isf) float32: .* at \(3\.0,": "no probability; upstream's tangent is rounded",
    },
    "gumbel_l": {r"raises": _FLOAT0},
    "gumbel_r": {r"raises": _FLOAT0},
    "norm": {r"(ppf|isf) .*by q at \([01]\.0,": _INFINITE},
}


def load(m, distribution, name):
    return getattr(importlib.import_module(f"{m.__name__}.scipy.stats.{distribution}"), name)


def arguments(name, parameters, shapes):
    """A row of arguments for each point, shape, shift and scale."""
    is_count = parameters[0] == "k"
    places = {"loc": (0.0, 1.0 if is_count else 0.5), "scale": (1.0, 2.0)}
    moves = list(zip(*[places[p] for p in parameters if p in places], strict=True)) or [()]
    points = COUNTS if is_count else POINTS
    loc, scale = 0.0, 1.0
    for shape in shapes:
        for move in moves:
            if move and name not in ("ppf", "isf"):
                loc, scale = (*move, 1.0)[:2]
            for z in points:
                yield (z * scale + loc, *shape, *move)


@pytest.mark.parametrize("distribution", SHAPES)
def test_distributions(distribution):
    lines = []
    for name in FUNCTIONS:
        try:
            functions = [load(m, distribution, name) for m in BOTH]
        except AttributeError:
            continue
        parameters = list(inspect.signature(functions[0]).parameters)
        rows = list(arguments(name, parameters, SHAPES[distribution]))
        if distribution == "beta" and "pdf" not in name:  # betainc has no derivative by a and b
            parameters[1:3] = None, None
        for dtype in (np.float32, np.float64):
            kinds = ["reverse", "forward" if dtype == np.float32 else "second"]
            if kinds[1] == "second" and "pdf" not in name:
                kinds.pop()
            lines += compare(BOTH, name, functions, parameters, rows, dtype, kinds)
    check_exceptions(lines, EXCEPTIONS.get(distribution, {}))


VECTORS = {
    "dirichlet": lambda f, s: lambda x, y, a, b: f(s([x, y]), s([a, b])),
    "multivariate_normal": lambda f, s: lambda x, y, a, b: f(s([x, y]), s([a, b]), COVARIANCE),
}
COVARIANCE = np.asarray([[1.0, 0.5], [0.5, 2.0]], np.float32)
PLACES = [(0.3, 0.7), (0.0, 1.0), (1.0, 0.0), (-0.5, 1.5), (0.5, 0.2), (INF, 0.0), (NAN, 0.5)]


@pytest.mark.parametrize("distribution", VECTORS)
def test_distributions_of_vectors(distribution):
    rows = [(*x, *y) for x in PLACES for y in ((1.5, 2.5), (1.0, 1.0), (0.5, 1.0))]
    for name in ("pdf", "logpdf"):
        functions = []
        for m in BOTH:
            whole, stack = load(m, distribution, name), m.numpy.stack
            functions.append(VECTORS[distribution](whole, stack))
        given = functions, ["x", "y", "a", "b"], rows, np.float32, ["reverse"]
        check_exceptions(compare(BOTH, name, *given), {})


@pytest.mark.parametrize("counts", [(1, 2), (0, 3), (3, 0), (-1, 4), (1, 1)])
def test_multinomial(counts):
    """Counts that are impossible have no derivative; upstream's negative ones have one."""
    for name in ("pmf", "logpmf"):
        functions = [
            lambda p, q, f=load(m, "multinomial", name), s=m.numpy.stack: f(
                np.asarray(counts), 3, s([p, q])
            )
            for m in BOTH
        ]
        if counts[0] < 0:
            grads = [minijax.grad(functions[1], (0, 1))(*x) for x in ((0.3, 0.7), (0.0, 1.0))]
            assert not np.any(grads)
        else:
            given = functions, ["p", "q"], PLACES, np.float32, ["reverse"]
            check_exceptions(compare(BOTH, name, *given), {})


ENDS = (-INF, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 20.0, INF, NAN)
PAIRS = [
    (x, y) for x in ENDS[2:14:2] + (0.0, 1.0, INF) for y in (-1.0, 0.0, 0.5, 1.0, 2.0, INF, NAN)
]
ANGLES = [(x, y) for x in (-1.0, 0.0, 0.5, np.pi / 2, np.pi) for y in (-1.0, 0.0, 1.0, np.pi)]
ONE_NUMBER = """entr(x) log_ndtr(x) ndtr(x) ndtri(x) logit(x) expit(x) erf(x) erfc(x) erfinv(x) digamma(x)
gammaln(x) gamma(x) factorial(x) i0(x) i0e(x) i1(x) i1e(x) exp1(x) expi(x) spence(x) expn(0,x)
expn(1,x) expn(2,x) polygamma(0,x) polygamma(1,x) multigammaln(x,2) betainc(1.5,2.5,x)
betainc(1.0,1.0,x) bessel_jn(x,v=3)[2]"""
TWO_NUMBERS = """xlogy(x,y) xlog1py(x,y) rel_entr(x,y) kl_div(x,y)
gammainc(x,y) gammaincc(x,y) zeta(x,y) beta(x,y) betaln(x,y) poch(x,y) boxcox(x,y) boxcox1p(x,y)
sph_harm_y(TWO,ONE,x[None],y[None],n_max=2)[0].real"""
CONSTANTS = {"ONE": np.asarray([1]), "TWO": np.asarray([2])}
SPECIAL_EXCEPTIONS = {
    1: {
        r"^ndtri": "infinite at the probabilities 0 and 1",
        r"^spence.* at \((0|1)\.0\)": "log(x) / (1 - x), which is -1 at 1, and infinite at 0",
    },
    2: {},
}


@pytest.mark.parametrize("table", [ONE_NUMBER, TWO_NUMBERS], ids=["one", "two"])
def test_special_functions(table):
    lines = []
    for text in table.split():
        names = ["x"] if table is ONE_NUMBER else ["x", "y"]
        rows = ANGLES if "sph" in text else [(x,) for x in ENDS] if len(names) == 1 else PAIRS
        load = lambda m: vars(importlib.import_module(f"{m.__name__}.scipy.special"))
        source = f"lambda {', '.join(names)}: {text}"
        functions = [eval(source, {**load(m), **CONSTANTS}) for m in BOTH]
        # Neither library has the second derivatives of incomplete gamma functions.
        kinds = ["reverse"] if text.startswith("gammainc") else ["reverse", "second"]
        if text.startswith("zeta"):  # nor those of zeta by its exponent
            names[0] = None
        lines += compare(BOTH, text, functions, names, rows, np.float32, kinds)
    check_exceptions(lines, SPECIAL_EXCEPTIONS[len(names)])
