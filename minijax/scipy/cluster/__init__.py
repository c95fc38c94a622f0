"""`minijax.scipy.cluster`: the module `vq`."""

from minijax.scipy.cluster import vq
from minijax.tracebacks import public

__all__ = ["vq"]

__dir__ = public(__name__)
