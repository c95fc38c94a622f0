"""`minijax.scipy.sparse`: the module `linalg`."""

from minijax.scipy.sparse import linalg
from minijax.tracebacks import public

__all__ = ["linalg"]

__dir__ = public(__name__)
