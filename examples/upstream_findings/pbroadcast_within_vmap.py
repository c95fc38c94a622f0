"""refusal: pbroadcast

Verdict: upstream. minijax gave a result, upstream raised TypeError
within vmap pbroadcast takes with a list of indices, which take refuses; with an axis whose name is longer than a letter it asks shard_map for the letters.
Witness: the definition: every row is row 1, [2, 2, 2].
minijax: result: float32[3] [2.0, 2.0, 2.0]
upstream: raised TypeError: take requires ndarray or scalar arguments, got <class 'list'> at position 1.
Holds for upstream 0.10.2.


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
MODE = 'single'
OPERATIONS = ('pbroadcast',)
EVIDENCE = ('within vmap pbroadcast takes with a list of indices, which take refuses; with an axis whose name is longer than a letter it asks shard_map for the letters.', 'Witness: the definition: every row is row 1, [2, 2, 2].')


def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    return jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(v0)


ARGUMENTS = (array([1.0, 2.0, 3.0], "float32"),)


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
