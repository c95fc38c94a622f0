"""A module with deprecated names: what tests of `deprecation_getattr` look at."""

from minijax.jax.private.deprecations import deprecation_getattr

x = 42
deprecated_y = 101

_deprecations = {"y": ("Please use x", deprecated_y), "z": ("Please do not use z", None)}
__getattr__ = deprecation_getattr(__name__, _deprecations)
