"""`minijax.random`: random numbers from explicit keys, bit for bit upstream's.

The names are upstream's. A key is made from a seed, split as often as wanted, and given to a sampler:
the same key gives the same numbers on every device and in every program. The samplers are called
with uint32 words (`PRNGKey`) as well.
"""

from minijax.lax.random_gamma import random_gamma_p
from minijax.random.choosing import categorical, choice, permutation
from minijax.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from minijax.random.counts import binomial, geometric, multinomial, poisson
from minijax.random.gammas import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)
from minijax.random.keys import (
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from minijax.random.matrices import multivariate_normal, orthogonal
from minijax.random.uniforms import bernoulli, rademacher, randint, uniform
from minijax.tracebacks import public

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype",
    "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "random_gamma_p", "rayleigh", "split", "t", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip

__dir__ = public(__name__)
