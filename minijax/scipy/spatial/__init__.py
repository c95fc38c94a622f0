"""`minijax.scipy.spatial`: the module `transform`."""

from minijax.scipy.spatial import transform

__all__ = ["transform"]
