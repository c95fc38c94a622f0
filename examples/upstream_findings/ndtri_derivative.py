"""special: ndtri_derivative

Verdict: upstream. inf is not 0.0
the derivative of the quantile function of a normal variable is taken for zero at the probabilities 0 and 1, where it is infinite (that of erfinv is infinite upstream too).
Witness: differences in float64 of SciPy, from 1 - 2 h to 1 - h, for h of 1e-4, 1e-8, 1e-12: 1.8e3, 1.2e7, 9.7e10.
minijax: result: float32[] inf
upstream: result: float32[] 0.0
Holds for upstream 0.10.2; 0.12.0.1 gives the right derivative.


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
MODE = 'composed'
OPERATIONS = ('ndtri_derivative',)
EVIDENCE = ('the derivative of the quantile function of a normal variable is taken for zero at the probabilities 0 and 1, where it is infinite (that of erfinv is infinite upstream too).', 'Witness: differences in float64 of SciPy, from 1 - 2 h to 1 - h, for h of 1e-4, 1e-8, 1e-12: 1.8e3, 1.2e7, 9.7e10.')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jax.grad(jax.scipy.special.ndtri)(v0)


ARGUMENTS = (array(1.0, "float32"),)


def load(name):
    """Return a library, with the submodules that programs use."""
    library = importlib.import_module(name)
    for sub in ('scipy.special', 'scipy.linalg', 'scipy.stats', 'scipy.signal', 'scipy.ndimage', 'scipy.fft', 'scipy.integrate', 'scipy.interpolate', 'image', 'ops', 'nn.initializers', 'flatten_util', 'scipy.cluster.vq', 'custom_batching', 'ad_checkpoint', 'custom_derivatives', 'ref', 'experimental', 'lax.linalg'):
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
