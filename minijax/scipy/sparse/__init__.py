"""`minijax.scipy.sparse`: the module `linalg`."""

from minijax.namespace import shown
from minijax.scipy.sparse import linalg

__all__ = ["linalg"]

__dir__ = shown(__name__)
