"""value: jvp, lax_qr_pivoting

Verdict: upstream. 0.16 is not 0.0 at [0, 2]
the tangent of the columns that follow the square part of r leaves the pivots out.
Witness: central differences in float64 of SciPy's qr: [[-0.6, -0.256, 0.16], [0, 0.192, 0.48]].
minijax: result: float32[2, 3] [[-0.6, -0.256, 0.16], [0.0, 0.192, 0.48]]
upstream: result: float32[2, 3] [[-0.6, -0.256, 0.0], [0.0, 0.192, 0.8]]
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
MODE = 'composed'
OPERATIONS = ('jvp', 'lax_qr_pivoting')
EVIDENCE = ('the tangent of the columns that follow the square part of r leaves the pivots out.', "Witness: central differences in float64 of SciPy's qr: [[-0.6, -0.256, 0.16], [0, 0.192, 0.48]].")


def program(jax, v0, v1):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jax.jvp(lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False)[1], (v0,), (v1,))[1]


ARGUMENTS = (array([[2, 1, 3], [0, 3, 4]], "float32"), array([[0, 0, 1], [0, 0, 0]], "float32"))


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
