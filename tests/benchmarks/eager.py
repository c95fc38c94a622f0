"""Rows of over a hundred functions called eagerly on small arrays."""

import jax
import numpy as np

import minijax
from tests.benchmarks.dispatch import arrays
from tests.benchmarks.timing import compare

UNARY = [
    "abs", "absolute", "acos", "acosh", "angle", "any", "all", "amax", "amin", "argmax",
    "argmin", "argsort", "around", "asin", "asinh", "atan", "atanh", "average", "cbrt", "ceil",
    "conj", "copy", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "deg2rad", "diagonal",
    "diff", "exp", "exp2", "expm1", "fabs", "fliplr", "flipud", "floor", "i0", "imag",
    "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "max", "mean", "median",
    "min", "nan_to_num", "nanmax", "nanmean", "nanmin", "nansum", "negative", "ones_like",
    "positive", "prod", "ptp", "rad2deg", "ravel", "real", "reciprocal", "rint", "rot90",
    "round", "sign", "signbit", "sin", "sinc", "sinh", "sort", "sqrt", "square", "squeeze",
    "std", "sum", "tan", "tanh", "trace", "transpose", "tril", "triu", "trunc", "var",
    "zeros_like",
]  # fmt: skip
BINARY = [
    "add", "allclose", "append", "arctan2", "array_equal", "copysign", "divide", "dot", "equal",
    "float_power", "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal",
    "heaviside", "hypot", "inner", "isclose", "kron", "less", "less_equal", "logaddexp",
    "logaddexp2", "logical_and", "logical_or", "logical_xor", "matmul", "maximum", "minimum",
    "mod", "multiply", "nextafter", "not_equal", "outer", "power", "remainder", "subtract",
    "tensordot", "true_divide", "vdot",
]  # fmt: skip
OTHERS = {
    "full": lambda m, x, y: m.numpy.full((4, 4), 2.0),
    "eye": lambda m, x, y: m.numpy.eye(4),
    "linspace": lambda m, x, y: m.numpy.linspace(0.0, 1.0, 5),
    "tile": lambda m, x, y: m.numpy.tile(x, (2, 1)),
    "repeat": lambda m, x, y: m.numpy.repeat(x, 2, axis=0),
    "roll": lambda m, x, y: m.numpy.roll(x, 1, axis=0),
    "pad": lambda m, x, y: m.numpy.pad(x, 1),
    "swapaxes": lambda m, x, y: m.numpy.swapaxes(x, 0, 1),
    "expand_dims": lambda m, x, y: m.numpy.expand_dims(x, 0),
    "split": lambda m, x, y: m.numpy.split(x, 2),
    "vstack": lambda m, x, y: m.numpy.vstack([x, y]),
    "hstack": lambda m, x, y: m.numpy.hstack([x, y]),
    "searchsorted": lambda m, x, y: m.numpy.searchsorted(x[0], y),
    "relu": lambda m, x, y: m.nn.relu(x),
    "softmax": lambda m, x, y: m.nn.softmax(x),
    "gelu": lambda m, x, y: m.nn.gelu(x),
    "logsumexp": lambda m, x, y: m.nn.logsumexp(x),
    "one_hot": lambda m, x, y: m.nn.one_hot(np.array([0, 1]), 4),
    "linalg.norm": lambda m, x, y: m.numpy.linalg.norm(x),
    "lax.exp": lambda m, x, y: m.lax.exp(x),
    "lax.top_k": lambda m, x, y: m.lax.top_k(x, 2),
}


def cases():
    for name in UNARY:
        yield name, lambda m, x, y, name=name: getattr(m.numpy, name)(x)
    for name in BINARY:
        yield name, lambda m, x, y, name=name: getattr(m.numpy, name)(x, y)
    yield from OTHERS.items()


def rows(table):
    ours, theirs = arrays(minijax), arrays(jax)
    found = []
    for name, call in cases():
        times = compare(
            lambda: call(minijax, *ours), lambda: call(jax, *theirs), rounds=3, seconds=0.02
        )
        found.append((name, *times))
    table.section(f"eager, {len(found)} functions", found, budget=0.5, worst=1.0)
