"""value: ref_write_of_mapped_axis

Verdict: upstream. 3.0 is not 2.0
what is written to a reference that vmap maps over axis 1 is not transposed.
Witness: the definition: row i is column i of the input.
minijax: result: float32[2, 2] [[1.0, 3.0], [2.0, 4.0]]
upstream: result: float32[2, 2] [[1.0, 2.0], [3.0, 4.0]]
Holds for upstream 0.10.2; 0.12.0.1 gives the right result.


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
OPERATIONS = ('ref_write_of_mapped_axis',)
EVIDENCE = ('what is written to a reference that vmap maps over axis 1 is not transposed.', 'Witness: the definition: row i is column i of the input.')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    def f(x):
        r = jax.new_ref(x)
        r[...] = jnp.concatenate([r[...][:1], r[...][1:]])
        return r[...]
    return jax.vmap(f, in_axes=1)(v0)


ARGUMENTS = (array([[1.0, 2.0], [3.0, 4.0]], "float32"),)


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
