"""Whether XLA's two ways to make kernels give the same bits; run as a program, with XLA's own flags.

Prints which programs differ, and how many were compared; then whether `tan` and sums of products, which
are left out, do differ, and whether it is the older way that a small program is compiled.
"""

import functools

import ml_dtypes
import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax, random
from minijax.runtime.versions import OLDER_EMITTERS
from minijax.scipy.special import betainc

OLDER, NEWER = OLDER_EMITTERS, dict.fromkeys(OLDER_EMITTERS, True)
DTYPES = ("bool", "int8", "uint32", "int64", "bfloat16", "float32", "float64")
UNARY = """
    abs acos acosh asin asinh atanh bessel_i0e bessel_i1e ceil cos cosh digamma erf erf_inv erfc exp
    exp2 expm1 floor is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt square tanh
    bitwise_not population_count clz
"""
BINARY = """
    add sub mul div rem pow max min nextafter eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor
    shift_left shift_right_logical shift_right_arithmetic
"""


def _normalized(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1)


OTHERS = {
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(1),
    "max": jnp.max,
    "argmin": lambda x: x.argmin(1),
    "transpose": lambda x: x.T,
    "matmul": lambda x: x @ x,
    "where": lambda x: jnp.where(x > 0, x, 1),
    "take": lambda x: x[::-1, 1:],
    "concatenate": lambda x: jnp.concatenate([x, x], 0),
    "polynomial": lambda x: x * x * 3 + x * 2 - 1,
    "softmax": lambda x: minijax.nn.softmax(x.astype("float32")),
    "gelu": lambda x: minijax.nn.gelu(x.astype("float32")),
    "normalized": lambda x: _normalized(x),
    "normalized five times": lambda x: functools.reduce(lambda x, _: _normalized(x), range(5), x),
    "products": lambda x: functools.reduce(lambda x, _: x @ x.T / 64, range(6), x),
    "normal": lambda x: x * random.normal(random.key(0), x.shape),
    "gumbel": lambda x: x + random.gumbel(random.key(1), x.shape),
    "betainc": lambda x: betainc(jnp.exp(x % 3), x % 5 + 1, jnp.exp(-(x % 7))),
    **{
        f"to {to}": lambda x, to=to: x.astype(to)
        for to in ("float32", "float64", "bfloat16", "int8", "uint32", "int64", "bool")
    },
}


def values(dtype, shape=(16, 16)):
    rng = np.random.default_rng(0)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    small = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    found = rng.normal(size=shape) * np.exp(rng.normal(size=shape) * 10)
    found.flat[:12] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -2, small, -small, 88]
    return found.astype(dtype)


def agree(found, wanted):
    """Whether all bits are equal, but those of NaNs."""
    both_nan = (found != found) & (wanted != wanted)
    found, wanted = (np.where(both_nan, np.zeros_like(a), a) for a in (found, wanted))
    return found.tobytes() == wanted.tobytes()


def results(lowered, args):
    for options in (OLDER, NEWER):
        yield np.asarray(lowered.compile(compiler_options=options)(*args))


def main():
    minijax.config.update("jax_enable_x64", True)
    compared, different = 0, []
    for dtype in DTYPES:
        x = jnp.asarray(values(np.dtype(dtype)))
        programs = [
            *[(name, getattr(lax, name), (x,)) for name in UNARY.split()],
            *[(name, getattr(lax, name), (x, x[::-1].T)) for name in BINARY.split()],
            *[(name, fun, (x,)) for name, fun in OTHERS.items()],
        ]
        for name, fun, args in programs:
            try:
                lowered = minijax.jit(fun).lower(*args)
            except TypeError:  # no operation on this dtype
                continue
            compared += 1
            if not agree(*results(lowered, args)):
                different.append(f"{name} of {dtype}")
    print(f"different: {different}\ncompared: {compared}")
    x = jnp.asarray(values(np.dtype("float32")))
    print("tan differs:", not agree(*results(minijax.jit(jnp.tan).lower(x), (x,))))
    a, b, t = np.float32(-3), np.float32(3), jnp.arange(199, dtype="float32") / 199
    between = minijax.jit(lambda a, b, t: a * (1 - t) + b * t).lower(a, b, t)
    print("a sum of products differs:", not agree(*results(between, (a, b, t))))
    lowered = minijax.jit(jnp.sin).lower(x)
    chosen, older, newer = (
        lowered.compile(compiler_options=options).as_text() for options in (None, OLDER, NEWER)
    )
    print("the older is chosen:", chosen == older != newer)


if __name__ == "__main__":
    main()
