"""special: bessel_jn_at_zero

Verdict: upstream. 1.0 is not nan at [0, 0]
bessel_jn at 0 is NaN: J0(0) is 1, J1(0) is 0.
Witness: scipy.special.jv([0, 1], 0.0) gives [1. 0.].
minijax: result: float32[2, 1] [[1.0], [0.0]]
upstream: result: float32[2, 1] [[nan], [nan]]
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
OPERATIONS = ('bessel_jn_at_zero',)
EVIDENCE = ('bessel_jn at 0 is NaN: J0(0) is 1, J1(0) is 0.', 'Witness: scipy.special.jv([0, 1], 0.0) gives [1. 0.].')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jax.scipy.special.bessel_jn(v0, v=1, n_iter=50)


ARGUMENTS = (array([0.0], "float32"),)


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
