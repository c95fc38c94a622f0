"""refusal: at_divide

Verdict: open. minijax gave a result, upstream raised IndexError
minijax: result: float32[0]
upstream: raised IndexError: index is out of bounds for axis 0 with size 0
Program: abstract 201/67


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

KIND = 'refusal'
X64 = False
MODE = 'abstract'
OPERATIONS = ('at_divide',)
EVIDENCE = ()


def program(jax, v0, v1, v2):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    v3 = v0.at[v1].divide(v2)
    return v3


ARGUMENTS = (np.zeros((0,), "float32"), array(0, "int8"), array(0, "float32"),)


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
