"""`minijax.scipy.cluster.vq`: codes of observations. May import the floors below and `numpy`."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact
from minijax.transforms.library import library

__all__ = ["vq"]


@library(static=("check_finite",))
def vq(obs, code_book, check_finite=True):
    """The index of the nearest code of each observation, and the distance to it.

    Rows are observations and codes; of vectors, each number is one. `check_finite` changes nothing.
    ValueError if shapes do not fit. Source: scipy.cluster.vq.vq.
    """
    del check_finite
    check_arraylike("scipy.cluster.vq.vq", obs, code_book)
    obs, code_book = promote_dtypes_inexact(jnp.asarray(obs), jnp.asarray(code_book))
    if obs.ndim != code_book.ndim:
        raise ValueError(
            "Observation and code_book should have the same rank; got shapes "
            f"{obs.shape} and {code_book.shape}."
        )
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise ValueError(f"ndim different than 1 or 2 are not supported; got shape {obs.shape}.")
    apart = obs[:, None] - code_book[None]
    squares = jnp.sum(jnp.real(apart * jnp.conj(apart)), axis=-1)
    code = jnp.argmin(squares, axis=-1)
    return code, jnp.sqrt(jnp.min(squares, axis=-1, initial=np.inf)).astype(obs.dtype)
