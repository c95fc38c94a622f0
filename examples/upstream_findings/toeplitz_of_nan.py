"""special: toeplitz_of_nan

Verdict: upstream. 0.0 is not nan at [0, 0]
a NaN in the first column or row spreads over whole rows of the result: elements are selected by products with zeros and ones.
Witness: scipy.linalg.toeplitz: [[0, nan], [nan, 0]].
minijax: result: float32[2, 2] [[0.0, nan], [nan, 0.0]]
upstream: result: float32[2, 2] [[nan, nan], [nan, nan]]
Holds for upstream 0.10.2 and 0.12.0.1.


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

KIND = 'special'
X64 = False
MODE = 'single'
OPERATIONS = ('toeplitz_of_nan',)
EVIDENCE = ('a NaN in the first column or row spreads over whole rows of the result.', 'Witness: scipy.linalg.toeplitz: [[0, nan], [nan, 0]].')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jax.scipy.linalg.toeplitz(v0)


ARGUMENTS = (array([0, nan], "float32"),)


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
