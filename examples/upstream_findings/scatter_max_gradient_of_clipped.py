"""value: scatter_max_gradient_of_clipped

Verdict: upstream. 0.0 is not 1.0 at [2] (8.39e+06 units)
An index beyond the end is clipped to the last element, whose maximum is the update: so one difference quotient in float64 says 0 for the element and 1 for the update.
minijax: [0]: float32[3] [0.0, 1.0, 0.0]
[1]: float32[2] [1.0, 1.0]
upstream: [0]: float32[3] [0.0, 1.0, 1.0]
[1]: float32[2] [1.0, inf]
Holds for upstream 0.10.2; 0.12.0.1 gives the right gradient.


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
OPERATIONS = ('scatter_max_gradient_of_clipped',)
EVIDENCE = ('An index beyond the end is clipped to the last element, whose maximum is the update: so one difference quotient in float64 says 0 for the element and 1 for the update.',)


def program(jax, v0, v1):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    f = lambda x, y: lax.scatter_max(x, array([[0], [3]]), y, lax.ScatterDimensionNumbers((), (0,), (0,)), mode="clip")
    return jax.grad(lambda x, y: jnp.sum(f(x, y)), argnums=(0, 1))(v0, v1)



ARGUMENTS = (array([1.0, -1.0, -2.0], "float32"), array([1.5, -1.5], "float32"))


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
