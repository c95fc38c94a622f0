"""`minijax.scipy.special`: special functions, as in `jax.scipy.special`. Only re-exports."""

from typing import Any

from minijax.deprecated import moved as _moved
from minijax.nn import logsumexp
from minijax.scipy.special.entropies import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from minijax.scipy.special.errors import dawsn, erfcx, fresnel, owens_t, wofz
from minijax.scipy.special.exponentials import exp1, expi, expn, sici
from minijax.scipy.special.families import (
    bernoulli,
    bessel_jn,
    hyp1f1,
    hyp2f1,
    spence,
    sph_harm_y,
)
from minijax.scipy.special.gammas import (
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from minijax.scipy.special.normals import (
    erf,
    erfc,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    ndtr,
    ndtri,
)
from minijax.tracebacks import public

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn",
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn",
    "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1",
    "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "rel_entr",
    "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return _moved(__name__, name)


__dir__ = public(__name__)
