"""Derivatives at ties, kinks and the ends of domains: wherever upstream's is finite, ours is the same."""

import importlib
import re

import jax
import numpy as np
import pytest

import minijax
from tests.harness.derivatives import check_exceptions, compare

BOTH = (jax, minijax)
INF, NAN = np.inf, np.nan
ENDS = (-INF, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, INF, NAN)
SOME = (-INF, -2.0, -1.0, 0.0, 1.0, 2.0, INF, NAN)
TRIPLES = [
    (x, y, z) for x in (-INF, -1.0, 0.0, 1.0) for y in (0.0, 1.0, NAN) for z in (-1.0, 0.0, 1.0)
]
TRIPLES += [(v, v, v) for v in (-INF, 2.0, INF, NAN)]
ROWS = [[(x,) for x in ENDS], [(x, y) for x in SOME for y in SOME], TRIPLES]

# Expressions of x, of x and y, and of a vector v of three; w is a weighted sum.
NUMPY = (
    """abs(x) sign(x) sqrt(x) cbrt(x) log(x) log1p(x) sinc(x) arccos(x) arccosh(x) arctanh(x)
reciprocal(x) clip(x,-1,2) clip(x,0) clip(x,None,0) nan_to_num(x) x**0 x**0.5 x**1.5 x**-1""",
    """maximum(x,y) minimum(x,y) fmax(x,y) fmin(x,y) hypot(x,y) logaddexp(x,y) logaddexp2(x,y)
arctan2(x,y) power(x,y) float_power(x,y) remainder(x,y) fmod(x,y) floor_divide(x,y) divide(x,y)
where(x>y,x,y) heaviside(x,y) copysign(x,y) clip(x,y,1) clip(x,-1,y) clip(0,x,y)""",
    """max(v) min(v) nanmax(v) nanmin(v) ptp(v) prod(v) nanprod(v) nansum(v) nanmean(v) var(v) std(v)
nanvar(v) nanstd(v) median(v) nanmedian(v) quantile(v,0.25) nanquantile(v,0.75) max(v,initial=1)
w(sort(v)) w(cumprod(v)) w(cumsum(v)) w(nancumprod(v)) w(diff(v)) interp(v[0],v*0+2,v)
norm(v) norm(v,0) norm(v,1) norm(v,3) norm(v,inf)
norm(v,-inf) norm(v,0.5) norm(v,-1) average(v,weights=v)""",
)
LAX = (
    """rsqrt(x) logistic(x) lgamma(x) erf_inv(x) acosh(x) integer_pow(x,0) integer_pow(x,-1)""",
    """pow(x,y) max(x,y) min(x,y) rem(x,y) atan2(x,y) clamp(x,y,x) clamp(x,x,y)""",
    """w(cummax(v)) w(cummin(v))
w(cumprod(v)) w(cumlogsumexp(v)) w(cumlogsumexp(v,reverse=True)) w(top_k(v,2)[0])""",
)
NN = (
    """relu(x) relu6(x) elu(x) selu(x) celu(x) gelu(x) silu(x) log_sigmoid(x) softplus(x)
soft_sign(x) hard_tanh(x) hard_sigmoid(x) hard_silu(x) leaky_relu(x) mish(x) squareplus(x)
sparse_plus(x) sparse_sigmoid(x) log1mexp(x)""",
    """elu(x,y) celu(x,y) leaky_relu(x,y)""",
    """w(softmax(v)) w(log_softmax(v)) w(softmax(v,where=PART)) w(softmax(v,where=NONE)) logsumexp(v)
logsumexp(v,where=PART) w(standardize(v)) glu(v[:2])[0]""",
)
TABLES = {"numpy": NUMPY, "lax": LAX, "nn": NN}
EXCEPTIONS = {
    "numpy": {
        r"arccosh.* at \(-": "NaN as its value is; upstream's is that of another branch",
        r"arctanh.*second .* at \(-?inf\)": "NaN as its value is",
    },
    "lax": {r"acosh.* at \(-": "NaN as its value is; upstream's is that of another branch"},
    "nn": {},
}


def function(m, module, text, count):
    """A function of so many numbers from an expression."""
    jnp = m.numpy
    weights = np.asarray([0.7, -0.4, 1.3], np.float32)
    place = importlib.import_module(f"{m.__name__}.{module}")
    names = re.findall(r"\b[a-z]\w*", text)
    space = {
        **{name: getattr(place, name) for name in names if hasattr(place, name)},
        "w": lambda x: jnp.sum(x * weights[: x.shape[0]]),
        "norm": importlib.import_module(f"{m.__name__}.numpy.linalg").norm,
        "inf": INF,
        "PART": np.asarray([True, True, False]),
        "NONE": np.zeros(3, bool),
    }
    evaluate = eval(f"lambda x, y, v: {text}", space)
    if count == 3:
        return lambda x, y, z: evaluate(x, y, jnp.stack([x, y, z]))
    return (lambda x: evaluate(x, 0, 0)) if count == 1 else (lambda x, y: evaluate(x, y, 0))


@pytest.mark.parametrize("module", TABLES)
def test_derivatives(module):
    lines = []
    for count, (table, rows) in enumerate(zip(TABLES[module], ROWS, strict=True), start=1):
        for text in table.split():
            functions = [function(m, module, text, count) for m in BOTH]
            names = ["x", "y", "z"][:count]
            kinds = ("reverse", "second") if count < 3 else ("reverse",)
            lines += compare(BOTH, text, functions, names, rows, np.float32, kinds)
    check_exceptions(lines, EXCEPTIONS[module])
