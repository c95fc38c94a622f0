"""Student's t distribution. Source: scipy.stats.t."""

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["logpdf", "pdf"]


@located("log density", "df")
def logpdf(z, df):
    """The logarithm of the density."""
    half = (df + 1) / 2
    norm = -special.betaln(0.5, df / 2) - 0.5 * jnp.log(df)
    return norm - half * jnp.log1p(z * z / df)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
