"""Density estimates from samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, random
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact
from minijax.scipy import special
from minijax.scipy.linalg import cholesky, solve_triangular
from minijax.tree_util import register_pytree_node_class

__all__ = ["gaussian_kde"]


def _factor(method: Any, estimate: Any) -> Any:
    """Return the factor by which the spread of the samples is multiplied."""
    count, size = estimate.neff, estimate.d
    if method is None or method == "scott":
        return jnp.power(count, -1.0 / (size + 4))
    if isinstance(method, str) and method == "silverman":
        return jnp.power(count * (size + 2) / 4.0, -1.0 / (size + 4))
    if np.isscalar(method) and not isinstance(method, str):
        return method
    if isinstance(method, (Array, np.ndarray)) and method.ndim == 0:
        return method
    if callable(method):
        return method(estimate)
    raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")


@register_pytree_node_class
class gaussian_kde:
    """Density estimated from samples, with a normal distribution around each.

    - `dataset`: real array of shape (samples,) or (dimensions, samples)
    - `bw_method`: width of the distributions: "scott" (the default), "silverman", a number, or a
      function of the estimate
    - `weights`: weights of the samples, of shape (samples,)

    The estimate is a pytree of its arrays; calling it evaluates the density. ValueError for weights
    of another shape, NotImplementedError for complex samples.
    Source: SciPy's `stats.gaussian_kde`.

    >>> jax.scipy.stats.gaussian_kde(jnp.array([0.0, 1.0, 3.0]))(jnp.array([0.5])).shape
    (1,)
    """

    neff: Any = None
    dataset: Any = None
    weights: Any = None
    covariance: Any = None
    inv_cov: Any = None

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        check_arraylike("gaussian_kde", dataset)
        dataset = jnp.atleast_2d(dataset)
        if dtypes.issubdtype(dataset.dtype, np.complexfloating):
            raise NotImplementedError(
                "gaussian_kde does not support complex data: give real parts."
            )
        if not dataset.size > 1:
            raise ValueError(
                f"`dataset` input should have multiple elements. Got shape {dataset.shape}."
            )
        (dataset,) = promote_dtypes_inexact(dataset)
        count = dataset.shape[1]
        if weights is None:
            weights = jnp.full(count, 1.0 / count, dtype=dataset.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            dataset, weights = promote_dtypes_inexact(dataset, weights)
            weights = jnp.atleast_1d(weights)
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(weights) != count:
                raise ValueError(
                    f"`weights` input should be of length n: {count}; got {len(weights)}."
                )
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / jnp.sum(weights**2)
        factor = _factor(bw_method, self)
        spread = jnp.atleast_2d(jnp.cov(dataset, rowvar=1, bias=False, aweights=weights))
        inverse = jnp.linalg.inv(spread) / factor**2
        self.covariance, self.inv_cov = spread * factor**2, inverse

    def __repr__(self) -> str:
        fields = ("neff", "dataset", "weights", "covariance", "inv_cov")
        return f"gaussian_kde({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"

    def tree_flatten(self) -> tuple[Any, ...]:
        """The arrays, and nothing besides."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """An estimate of given arrays."""
        del aux_data
        made = cls.__new__(cls)
        made.neff, made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: Any) -> Array:
        """The density at points: [points] or [dimensions, points]."""
        return self._sums(points, False)

    def __call__(self, points: Any) -> Array:
        """Evaluate the density; see `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Array:
        """Evaluate the density; see `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density."""
        return self._sums(x, True)

    def _sums(self, points: Any, in_logarithms: bool) -> Array:
        check_arraylike("evaluate", points)
        return _density(
            self.dataset, self.weights, self._points(points), self.covariance, in_logarithms
        )

    def _points(self, points: Any) -> Any:
        points = jnp.atleast_2d(points)
        size, count = points.shape
        if size != self.d and size == 1 and count == self.d:
            return points.reshape(self.d, 1)
        if size != self.d:
            raise ValueError(f"points have dimension {size}, dataset has dimension {self.d}")
        return points

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the density times that of a normal distribution."""
        check_arraylike("integrate_gaussian", mean, cov)
        mean = jnp.atleast_1d(jnp.squeeze(mean))
        cov = jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        total = cov + self.covariance
        return _density(self.dataset, self.weights, mean[:, None], total, False)[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The integral of the density of numbers from `low` to `high`."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if np.ndim(low) or np.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        width = jnp.squeeze(jnp.sqrt(self.covariance))
        below, above = (
            special.ndtr(jnp.squeeze(limit - self.dataset, 0) / width) for limit in (low, high)
        )
        return jnp.sum(self.weights * (above - below))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another estimate."""
        if not isinstance(other, gaussian_kde):
            raise TypeError(
                f"integrate_kde takes a gaussian_kde, got {other!r} of type {type(other)}."
            )
        if other.d != self.d:
            raise ValueError(f"KDEs are not the same dimensionality: {self.d} and {other.d}.")
        total = self.covariance + other.covariance
        sums = _density(self.dataset, self.weights, other.dataset, total, False)
        return jnp.sum(sums * other.weights)

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Array:
        """Random points of the density: [dimensions, *shape]."""
        first, second = random.split(key)
        chosen = random.choice(first, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(
            second, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape,
            dtype=self.dataset.dtype,
        )  # fmt: skip
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not supported."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Callable[..., Any] | None = None) -> Any:
        """Not supported."""
        raise NotImplementedError(
            "dynamically changing the bandwidth method is not supported: make a new gaussian_kde."
        )


@library(static=("in_logarithms",))
def _density(centers, weights, points, covariance, in_logarithms):
    """Sums of normal densities of one covariance around centers, at points."""
    dtype = jnp.result_type(centers, points, covariance)
    centers, points = (x.astype(dtype) for x in (centers, points))
    middle = jnp.mean(centers, axis=1, keepdims=True)  # far from which the differences are rounded
    root = cholesky(covariance.astype(dtype), lower=True)
    centers, points = (solve_triangular(root, x - middle, lower=True) for x in (centers, points))
    apart = points.T[:, :, None] - centers  # in this order XLA sums 13 times faster than in others
    energies = 0.5 * jnp.sum(jnp.square(apart), axis=1)
    log_norm = jnp.sum(jnp.log(np.sqrt(2 * np.pi).astype(dtype) * jnp.diag(root)))
    if in_logarithms:
        return special.logsumexp(-energies, axis=1, b=weights) - log_norm
    return jnp.sum(weights * jnp.exp(-energies), axis=1) * jnp.exp(-log_norm)
