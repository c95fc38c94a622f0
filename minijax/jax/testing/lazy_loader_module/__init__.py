"""A package whose one submodule is imported when it is used: what tests of `attach` look at."""

from minijax.jax.private.loading import attach

__getattr__, __dir__, __all__ = attach(__name__, ["lazy_test_submodule"])
