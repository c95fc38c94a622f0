"""`minijax.scipy.sparse`: the module `linalg`."""

from minijax.scipy.sparse import linalg

__all__ = ["linalg"]
