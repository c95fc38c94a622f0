"""`minijax.scipy` against upstream: every public name that stands has a row."""

import importlib

import jax
import numpy as np
import pytest

import minijax
from tests.differential import sample
from tests.libraries import Row, both, check_row, check_wide, ids, missing

X = sample((3, 4), np.float32) * 2
POSITIVE = np.abs(X) + 0.3
UNIT = (1 / (1 + np.exp(-X))).astype(np.float32)
EDGES = np.asarray([-2.5, -1.0, 0.0, 0.5, 1.0, 40.0, np.inf, np.nan], np.float32)


def special(name, *args, label="", **options):
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.special")
    given = {k: options.pop(k) for k in list(options) if k in KEYWORDS}
    options = {"rtol": 2e-4, "wide_rtol": 1e-9, **options}
    return Row(name, lambda m, *xs: getattr(module(m), name)(*xs, **given), *args, label=label,
               **options)  # fmt: skip


KEYWORDS = ("axis", "d", "n", "repetition", "exact", "series_order", "return_sign")
ONE = {
    **dict.fromkeys(
        ["digamma", "erf", "erfc", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr",
         "softmax", "log_softmax", "logsumexp"], X),
    **dict.fromkeys(["entr", "gamma", "loggamma", "gammasgn", "factorial"], POSITIVE),
    **dict.fromkeys(["logit", "ndtri"], UNIT),
    "erfinv": 2 * UNIT - 1,
}  # fmt: skip
TWO = {
    **dict.fromkeys(["beta", "betaln", "gammainc", "gammaincc", "rel_entr", "kl_div", "xlogy",
                     "xlog1py", "boxcox", "boxcox1p", "comb", "poch"], (POSITIVE + 1, POSITIVE[0])),
    "zeta": (POSITIVE + 1.5, POSITIVE[0]),
}  # fmt: skip
SPECIAL = [
    *[special(name, x) for name, x in ONE.items()],
    *[special(name, *args) for name, args in TWO.items()],
    *[special(name, EDGES, label="edges", grad=False) for name in ONE if name not in
      ("softmax", "log_softmax", "logsumexp", "factorial", "digamma")],
    *[special(name, np.asarray(EDGES[:6]), np.float32(2), label="edges", grad=False)
      for name in ("rel_entr", "kl_div", "xlogy", "xlog1py", "boxcox", "comb")],
    special("polygamma", np.asarray([0, 1, 2, 3]), POSITIVE, grad=False),
    special("polygamma", np.float32(1), POSITIVE, grad=False, label="float order"),
    special("betainc", POSITIVE, POSITIVE[0], UNIT, grad=False),
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


@pytest.mark.parametrize("row", SPECIAL[:34], ids=ids(SPECIAL[:34]))
def test_special_in_64_bits(row):
    check_wide(row)


UNFINISHED = {
    "bernoulli", "bessel_jn", "dawsn", "erfcx", "exp1", "expi", "expn", "fresnel", "hyp1f1",
    "hyp2f1", "owens_t", "sici", "spence", "sph_harm_y", "wofz",
}  # fmt: skip


def test_every_special_function_has_a_row():
    theirs = importlib.import_module("jax.scipy.special")
    assert not missing(theirs, SPECIAL, UNFINISHED)
    ours = importlib.import_module("minijax.scipy.special")
    assert {*ours.__all__, *UNFINISHED} == {n for n in dir(theirs) if not n.startswith("_")}


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


def distribution(name, function):
    x, shape = SHAPES[name]
    if function in ("ppf", "isf"):
        x = UNIT
    args = shape if function == "entropy" else (x, *shape)
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats.{name}")
    call = lambda m, *xs: getattr(module(m), function)(*xs)
    # Upstream cannot differentiate these with respect to what is a number in its formula.
    grad = f"{name}.{function}" not in ("gumbel_l.ppf", "gumbel_r.ppf")
    return Row(f"{name}.{function}", call, *args, grad=grad, rtol=3e-4, wide_rtol=1e-8)


def public(name):
    module = importlib.import_module(f"jax.scipy.stats.{name}")
    return [n for n in dir(module) if not n.startswith("_")]


STATS = [
    distribution(name, function)
    for name in SHAPES
    for function in public(name)
    if (name, function) != ("poisson", "entropy")  # not there yet
]


@pytest.mark.parametrize("row", STATS, ids=ids(STATS))
def test_distribution(row):
    check_row(row)


MOVED = [name for name, (_, shape) in SHAPES.items() if name not in ("vonmises", "wrapcauchy")]


@pytest.mark.parametrize("name", MOVED)
def test_distribution_moved(name):
    x, shape = SHAPES[name]
    module = lambda m: importlib.import_module(f"{m.__name__}.scipy.stats.{name}")
    function = "logpdf" if "logpdf" in public(name) else "logpmf"
    both(lambda m: getattr(module(m), function)(x, *shape, 1), rtol=3e-4, atol=1e-5)
    if function == "logpdf":
        both(lambda m: module(m).logpdf(x, *shape, loc=0.5, scale=2), rtol=3e-4, atol=1e-5)
    both(lambda m: getattr(module(m), function)([1.0], *shape))


def test_modules():
    for name in ("special", "stats", "integrate"):
        assert getattr(minijax.scipy, name).__name__ == f"minijax.scipy.{name}"
    both(lambda m: importlib.import_module(f"{m.__name__}.scipy.integrate").trapezoid(X))
    assert jax.scipy is not None
