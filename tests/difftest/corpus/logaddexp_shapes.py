"""error: logaddexp_shapes

Verdict: minijax. It was minijax that differed; it is fixed.
minijax: raised IncompatibleShapes: Incompatible shapes for broadcasting: shapes=[(2,), (3,)]. Sizes must agree along each axis, counted from the last, or be 1.
upstream: raised TypeError: max got incompatible shapes for broadcasting: (2,), (3,).


Run it alone: it prints what both libraries give, and ends with a status of 1 while they differ. With
`--library minijax` or `--library jax` it prints that library's result only.
"""
# ruff: noqa
# fmt: off

import importlib
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import ml_dtypes  # noqa: F401
import numpy as np
from numpy import array, inf, nan  # noqa: F401

KIND = 'error'
X64 = False
MODE = 'abstract'
OPERATIONS = ('logaddexp_shapes',)
EVIDENCE = ()


def program(jax, v0, v1):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jnp.logaddexp(v0, v1)


ARGUMENTS = (np.zeros((2,), "float32"), np.zeros((3,), "float32"))


def load(name):
    """Return a library, with the submodules that programs use."""
    library = importlib.import_module(name)
    for sub in ('scipy.special', 'scipy.linalg', 'scipy.stats', 'scipy.signal', 'scipy.ndimage', 'scipy.fft', 'scipy.integrate', 'scipy.interpolate', 'image', 'ops', 'nn.initializers', 'flatten_util', 'scipy.cluster.vq', 'custom_batching'):
        importlib.import_module(f"{name}.{sub}")
    return library


def result(name):
    library = load(name)
    try:
        with library.enable_x64(X64):
            how = library.eval_shape if MODE == "abstract" else (lambda f, *a: library.jit(f)(*a))
            return how(lambda *args: program(library, *args), *ARGUMENTS)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}".splitlines()[0]


if __name__ == "__main__":
    if "--library" in sys.argv:
        print(result(sys.argv[-1]))
    else:
        for name in ("minijax", "jax"):
            print(f"{name}: {result(name)}")
        print(*EVIDENCE, sep="\n")
        from minijax import difftest

        sys.exit(difftest.replayed(__file__))
