"""`minijax.experimental.pjit`: the older name of `jit`, from before it took shardings."""

from minijax.transforms.jit import jit as pjit

__all__ = ["pjit"]
