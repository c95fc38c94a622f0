"""Names that the calls of `wrong_calls.txt` use, in the library that they are made in.

The file has one call a line. Under a heading "# otherwise: ..." stand those whose message begins with
other words than upstream's, with the reason.
"""

import contextlib
import copy
import dataclasses
import importlib
import math
import pathlib
import pickle

import numpy as np

X = np.arange(3.0, dtype=np.float32)

MODULES = (
    "core", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack", "export",
    "experimental.checkify", "experimental.jet", "experimental.multihost_utils", "experimental.ode",
    "experimental.sparse",
    "extend.core", "ffi", "flatten_util", "image", "interpreters.xla", "lax.linalg", "monitoring",
    "nn.initializers", "ops", "profiler", "ref", "scipy.cluster.vq", "scipy.fft", "scipy.integrate",
    "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse.linalg", "scipy.spatial.transform", "scipy.special", "scipy.stats", "test_util",
    "tree",
)  # fmt: skip


def calls():
    """The calls with the reasons why their messages begin otherwise, None where they do not."""
    found, reason = {}, None
    for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("# otherwise: ") if "otherwise: " in line else None
        elif line:
            found[line] = reason
    return found


class Odd:
    pass


@dataclasses.dataclass
class DC:
    a: int
    b: int


def cjvp(jax, rule):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return f


def cvjp(jax, fwd, bwd):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    return f


def cvmap(jax, rule):
    f = jax.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return f


def _kept(through, x):
    """What leaks from a function under a transform."""
    kept = []
    through(lambda x: (kept.append(x), x)[1])(x)
    return kept[0]


def sleak(jax):
    kept = []
    jax.lax.scan(lambda c, x: (kept.append(c), (c, x))[1], 0.0, X)
    return kept[0]


def within(context, f):
    with context:
        return f()


def sym(jax, f):
    (size,) = jax.export.symbolic_shape("n")
    return jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct((size,), "float32"))


def thrown(jax, f, *args, errors="user_checks"):
    checkify = jax.experimental.checkify
    error, _ = checkify.checkify(f, errors=getattr(checkify, errors))(*args)
    error.throw()


def assert_(x):
    assert x


def mesh(jax):
    return jax.make_mesh((1,), ("a",), devices=jax.devices()[:1])


def names(jax):
    """All that the text of a call may name."""
    for module in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{jax.__name__}.{module}")
    jnp = jax.numpy
    y, complexes = np.ones((2, 3), np.float32), X.astype(np.complex64)
    key = jax.random.key(0)
    return {
        "jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, "copy": copy, "math": math, "pickle": pickle,
        "X": X, "Y": y, "S": np.eye(3, dtype=np.float32), "I3": np.arange(3, dtype=np.int32), "B": X > 0,
        "C": complexes, "IMG": np.ones((1, 2, 4, 4), np.float32), "KER": np.ones((2, 2, 3, 3), np.float32),
        "Q": np.ones((1, 2, 2, 4), np.float32), "X3": jnp.array(X), "Y3": jnp.array(y),
        "B3": jnp.array(X > 0), "C3": jnp.array(complexes), "k": key, "ks": jax.random.split(key),
        "P": jax.P, "NS": lambda spec: jax.NamedSharding(mesh(jax), spec), "sds": jax.ShapeDtypeStruct,
        "GN": jax.lax.GatherDimensionNumbers, "SN": jax.lax.ScatterDimensionNumbers,
        "gleak": lambda jax: _kept(jax.grad, 1.0), "leak": lambda jax: _kept(jax.jit, 1.0),
        "vleak": lambda jax: _kept(jax.vmap, X),
        "strict_dtype": lambda f: within(jax.numpy_dtype_promotion("strict"), f),
        "strict_rank": lambda f: within(jax.numpy_rank_promotion("raise"), f),
        "nans": lambda f: within(jax.debug_nans(True), f),
        "infs": lambda f: within(jax.debug_infs(True), f),
        **{f.__name__: f for f in (DC, Odd, assert_, cjvp, cvjp, cvmap, mesh, sleak, sym, thrown)},
    }  # fmt: skip
