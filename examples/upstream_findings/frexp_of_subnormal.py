"""value: frexp_of_subnormal

Verdict: upstream. 0.54444885 is not 0.5 (6.85e+05 units)
frexp of a subnormal number loses its mantissa: 0.5 * 2 ** -149 is not 1e-40.
Witness: np.frexp(np.float32(1e-40)) gives (np.float32(0.54444885), np.int32(-132)).
minijax: [0]: float32[] 0.5444488525390625
[1]: int32[] -132
upstream: [0]: float32[] 0.5
[1]: int32[] -149
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

KIND = 'value'
X64 = False
MODE = 'single'
OPERATIONS = ('frexp_of_subnormal',)
EVIDENCE = ('frexp of a subnormal number loses its mantissa: 0.5 * 2 ** -149 is not 1e-40.', 'Witness: np.frexp(np.float32(1e-40)) gives (np.float32(0.54444885), np.int32(-132)).')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jnp.frexp(v0)


ARGUMENTS = (array(1e-40, "float32"),)


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
