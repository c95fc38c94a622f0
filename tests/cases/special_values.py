"""Special values of every elementwise function: signed zeros, infinities, NaN, extremes of the dtypes.

A function is called once for each dtype, with all combinations of the values as its operands, and
what comes out is compared with upstream's in units of the last place: of the same operands, or of those
with zeros for subnormal numbers, which XLA may flush. Where they differ, NumPy or SciPy says in float64
who is right.
"""

import functools
import importlib
import inspect
import itertools
import re
import types
import warnings

import jax
import ml_dtypes
import numpy as np

import minijax

DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int32",
    "uint8",
    "uint32",
    "complex64",
    "int16",
    "uint16",
    "int64",
    "uint64",
    "complex128",
)
_STATS = """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r
    laplace logistic nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
"""
MODULES = ("numpy", "lax", "nn", "scipy.special", *(f"scipy.stats.{x}" for x in _STATS.split()))
# Functions of whole arrays, of what is not a number, and without values; exp1, expn, hyp1f1 and hyp2f1,
# where upstream's loops or SciPy's run for minutes on special values.
_EXCLUDED = """
    after_all create_token cumlogsumexp cummax cummin cumprod cumsum cumulative_prod cumulative_sum
    digitize dot_product_attention empty empty_like exp1 expn gradient hyp1f1 hyp2f1 interp log_softmax nancumprod nancumsum
    nanpercentile nanquantile percentile piecewise polyadd polysub polyval precv psend quantile roll searchsorted
    shape_as_value softmax stage standardize unravel_index unwrap
"""


def _floats(dtype, count):
    info = ml_dtypes.finfo(dtype)
    big, small, eps = float(info.max), float(info.smallest_normal), float(info.eps)
    least = float(info.smallest_subnormal)
    values = [
        0.0, -0.0, 1.0, np.inf, np.nan, 0.5, -1.0, -np.inf, big, small, 2.0, -0.5, -big, least, 1.5,
        -small, 3.0, -least, 1 + eps, 1 - eps / 2, -2.0, 10.0, eps, 88.5, -3.0, 1e-3, 1e4, 0.999,
        -88.5, 2.5, -1.5, 710.0, -1e4, 100.0, np.pi, 1e10, 0.1, 7.0, -10.0,
    ]  # fmt: skip
    with np.errstate(over="ignore"):
        return np.asarray(values[:count]).astype(dtype)


def _integers(dtype, count):
    info = np.iinfo(dtype)
    values = [0, 1, info.max, info.min, -1, 2, 3, info.bits - 1, info.bits, info.max - 1]
    values += [info.min + 1, -2, -3, 7, 10, info.max // 2, -info.bits]
    return np.asarray([v for v in values if info.min <= v <= info.max][:count], dtype)


def _complexes(dtype, count):
    parts = [0.0, -0.0, 1.0, np.inf, np.nan, -1.0, -np.inf, 0.5, -2.0, 1e30, 1e-30]
    pairs = itertools.product(parts[: int(count**0.5) + 1], repeat=2)
    return np.asarray([complex(*pair) for pair in pairs], dtype)[:count]


# How many values each of one, two, three, four operands takes.
_COUNTS = (39, 24, 12, 7)


# Where upstream's loops run for minutes, or do not end: on huge operands, on infinite and least ones.
_MODERATE = re.compile(r"igamma|gammainc|random_gamma|stats.(gamma|chi2|poisson)|expi$")
_FINITE = re.compile(r"complex\d+: .*loggamma")
_NOT_SMALL = re.compile(r"float64: .*expi$")


def operands(path, dtype):
    """All combinations of the special values of a dtype, as vectors."""
    count = functions()[path]
    most = _COUNTS[count - 1]
    if dtype.startswith("complex"):
        values = _complexes(dtype, 121 if count == 1 else most)
    elif "float" in dtype:
        values = _floats(np.dtype(getattr(ml_dtypes, dtype, dtype)), most)
    else:
        values = _integers(np.dtype(dtype), most)
    if _MODERATE.search(path) and values.dtype.kind != "c":
        sizes = np.abs(values.astype(np.float64))
        values = values[~(np.isfinite(sizes) & (sizes > 1e4))]
    if _FINITE.search(f"{dtype}: {path}"):
        values = values[np.isfinite(values)]
    if _NOT_SMALL.search(f"{dtype}: {path}"):
        values = values[(values == 0) | ~(abs(values) < 1e-300)]
    if re.search(r"numpy\.(gcd|lcm)$", path) and values.dtype.kind in "iu":
        # Upstream's loops do not end, or the division traps, at the least and the largest numbers.
        values = values[(values >= 0) & (values < np.iinfo(values.dtype).max // 2)]
    grid = np.indices((len(values),) * count).reshape(count, -1)
    return [values[index] for index in grid]


@functools.cache
def functions():
    """Path and number of operands of each public function of vectors whose results are such."""
    found = {}
    for module in MODULES:
        theirs = importlib.import_module(f"jax.{module}")
        ours = importlib.import_module(f"minijax.{module}")
        for name in dir(ours):
            function = getattr(theirs, name, None)
            if name[0] == "_" or not callable(function) or isinstance(function, type):
                continue
            if name.endswith("_p") or name in _EXCLUDED.split():
                continue
            count = _operand_count(function)
            if count:
                found[f"{module}.{name}"] = count
    return found


def _operand_count(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    needed = [
        p for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    ufunc = getattr(function, "nin", None)
    for count in [ufunc] if ufunc else [len(needed)] if needed else [1, 2]:
        for dtype in (np.float32, np.int32):
            args = [jax.ShapeDtypeStruct((5,), dtype)] * count
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    out = jax.eval_shape(lambda *a: function(*a), *args)
            except Exception:
                continue
            leaves = jax.tree_util.tree_leaves(out)
            if count <= 4 and leaves and all(getattr(x, "shape", ()) == (5,) for x in leaves):
                return count
    return 0


def find(library, path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(f"{library.__name__}.{module}"), name)


def outcome(library, path, *several):
    """The leaves of the results as NumPy arrays, for each tuple of operands; an error as itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function = find(library, path)
            jitted = library.jit(lambda *a: function(*a))
            leaves = [library.tree_util.tree_leaves(jitted(*args)) for args in several]
            return [[np.asarray(x) for x in found] for found in leaves]
        except Exception as error:
            return error


def _ordered(x):
    """Flushed floats as integers in the same order, so that neighbours differ by one."""
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    lowest = np.int64(-(2 ** (8 * x.dtype.itemsize - 1)))
    least = np.int64(2 ** ml_dtypes.finfo(x.dtype).nmant - 1)  # subnormal numbers are no neighbours
    sizes = np.where(bits < 0, bits - lowest, bits)
    return np.where(bits < 0, -1, 1) * np.maximum(sizes - least, 0)


def flushed(x):
    """Zeros of the same sign for subnormal numbers."""
    if x.dtype.kind in "biuc":
        return x
    small = float(ml_dtypes.finfo(x.dtype).smallest_normal)
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < small, np.copysign(x * 0, x), x).astype(x.dtype)


def distance(x, y):
    """Units of the last place between floats of one dtype: infinite where one of them is special.

    NaN is NaN, and all subnormal numbers are zero, whose sign counts.
    """
    if x.dtype.kind == "c":
        part = np.finfo(x.dtype).dtype
        pairs = [a.view(part).reshape(*a.shape, 2) for a in (x, y)]
        return distance(*pairs).max(axis=-1)
    if x.dtype.kind in "biu":
        return np.where(x == y, 0.0, np.inf)
    with np.errstate(all="ignore"):
        x, y = flushed(x), flushed(y)
        apart = np.abs((_ordered(x) - _ordered(y)).astype(float))
    nan = np.isnan(x), np.isnan(y)
    apart = np.where(nan[0] & nan[1], 0, np.where(nan[0] | nan[1], np.inf, apart))
    signs = (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    return np.where(signs, np.inf, np.where(np.isinf(x) != np.isinf(y), np.inf, apart))


_WITNESSES = ("numpy", "scipy.special")
_NAMES = {
    "igamma": "gammainc", "igammac": "gammaincc", "lgamma": "gammaln", "erf_inv": "erfinv",
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "digamma": "psi", "logistic": "expit",
    "sigmoid": "expit", "rem": "fmod", "div": "divide", "pow": "power", "sub": "subtract",
    "mul": "multiply", "neg": "negative", "max": "maximum", "min": "minimum", "atan2": "arctan2",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "bessel_i0": "i0",
}  # fmt: skip


def witness(path, args):
    """What NumPy or SciPy give in float64, as leaves, or None."""
    module, name = path.rsplit(".", 1)
    wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in args]
    if args[0].dtype.kind in "biu":
        wide = args
    if module.startswith("scipy.stats"):
        if args[0].dtype.kind == "c":
            return None
        wide = [x.astype(np.float64) for x in args]  # SciPy adds to integers
        kind = module.rsplit(".", 1)[1]
        places = [getattr(importlib.import_module("scipy.stats"), kind, None)]
    else:
        places = [importlib.import_module(place) for place in _WITNESSES]
        if module == "scipy.special":
            places.reverse()
    for place in places:
        function = getattr(place, _NAMES.get(name, name), None)
        if function is not None:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    out = function(*wide)
                except Exception:
                    try:
                        out = _one_by_one(function, wide)
                    except Exception:
                        continue
                return [np.asarray(x) for x in (out if isinstance(out, tuple) else (out,))]
    return None


def _one_by_one(function, args):
    """The values of a witness that fails for some operands only, and None for those."""
    if not isinstance(function, (np.ufunc, types.MethodType)):
        raise TypeError("not elementwise")
    results = []
    for row in zip(*args, strict=True):
        try:
            results.append(function(*row))
        except (ArithmeticError, ValueError):
            results.append(None)
    if all(x is None for x in results):
        raise ValueError("no value at all")
    return np.array(results, object)


def nearer(ours, theirs, true, bound):
    """Where ours is as near to what a witness says as theirs, or nearer, or within the bound of it.

    Complex numbers are near by their distance, not by each of their parts.
    """
    if true.shape != ours.shape:
        return np.zeros(ours.shape, bool)
    known = np.array([x is not None for x in true.ravel()]).reshape(true.shape)
    with np.errstate(all="ignore"):
        true = np.where(known, true, 0).astype(ours.dtype)
        far = distance(ours, true)
        found = (far <= distance(theirs, true)) | (far <= bound)
        if ours.dtype.kind == "c":
            error, unit = abs(ours - true), abs(true) * np.finfo(ours.dtype).eps
            found |= (error <= abs(theirs - true)) | (error <= bound * unit)
    return known & found


def compare(path, dtype, bound, excused):
    """Lines of what differs by more than `bound` units, where no witness agrees with ours better.

    `excused` is asked of each, as "dtype: path(operands)".
    """
    args = operands(path, dtype)
    wide = dtype in ("float64", "int64", "uint64", "complex128")
    with jax.enable_x64(wide), minijax.enable_x64(wide):
        theirs = outcome(jax, path, args, [flushed(x) for x in args])
        if isinstance(theirs, Exception):
            return []
        ours = outcome(minijax, path, args)
    if isinstance(ours, Exception):
        return [f"{path} {dtype}: {type(ours).__name__}: {str(ours)[:120]}"]
    (ours,), (theirs, without) = ours, theirs
    true = witness(path, args)
    plain = witness(path, [flushed(x) for x in args])
    lines = []
    for leaf, (x, y, flat) in enumerate(zip(ours, theirs, without, strict=True)):
        if x.dtype != y.dtype or x.shape != y.shape:
            lines.append(f"{path} {dtype}: {x.dtype}{x.shape} is not {y.dtype}{y.shape}")
            continue
        apart = np.minimum(distance(x, y), distance(x, flat))
        wrong = apart > bound
        if wrong.any() and true is not None and leaf < len(true):
            wrong &= ~nearer(x, y, true[leaf], bound) & ~nearer(x, flat, plain[leaf], bound)
        given = {n: ", ".join(str(a[n].item()) for a in args) for n in np.flatnonzero(wrong)}
        given = {n: text for n, text in given.items() if not excused(f"{dtype}: {path}({text})")}
        if given:
            most = max((u for u in apart[[*given]] if np.isfinite(u)), default=0)
            lines.append(f"{path} {dtype}: {len(given)} of {x.size}, {most:.0f} ulp")
        for n, text in list(given.items())[:6]:
            fits = true is not None and leaf < len(true) and true[leaf].shape == x.shape
            known = true[leaf][n] if fits else "?"
            lines.append(f"    ({text}): ours {x[n]!r}, upstream {y[n]!r}, witness {known}")
    return lines
