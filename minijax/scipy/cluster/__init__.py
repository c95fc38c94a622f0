"""`minijax.scipy.cluster`: the module `vq`."""

from minijax.namespace import shown
from minijax.scipy.cluster import vq

__all__ = ["vq"]

__dir__ = shown(__name__)
