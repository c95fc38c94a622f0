"""`minijax.scipy.cluster`: the module `vq`."""

from minijax.scipy.cluster import vq

__all__ = ["vq"]
