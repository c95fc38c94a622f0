"""`minijax.scipy.cluster.vq`: codes of observations."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["vq"]


@library(static=("check_finite",))
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Assign each observation to the nearest code.

    - `obs`, `code_book`: arrays of shapes (m, n) and (k, n), or vectors of numbers
    - `check_finite`: ignored

    The result is int32 indices and distances, of shape (m,). TypeError or ValueError for other
    shapes.
    Source: SciPy's `cluster.vq.vq`.

    >>> jax.scipy.cluster.vq.vq(jnp.array([[0.0], [9.0]]), jnp.array([[1.0], [8.0]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
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
    return code, jnp.sqrt(jnp.min(squares, axis=-1, initial=np.inf))


__dir__ = public(__name__)
