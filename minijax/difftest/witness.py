"""A third opinion: NumPy and SciPy for single calls; float64 and differences for composed ones."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import threading
import types
import warnings
from typing import Any

import numpy as np

from minijax.difftest import programs
from minijax.difftest.comparing import Tolerance, distance
from minijax.difftest.differences import Differences
from minijax.difftest.programs import Program, Value, kind_of
from minijax.difftest.running import Outcome, attempted, outcome
from minijax.difftest.subjects import run
from minijax.difftest.triage import gaps

__all__ = ["opinion", "witnessed"]

_WIDER = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "complex64": "complex128",
}
_ACCURATE = 32.0  # units; two results this near to the witness differ by rounding
_CLEARLY = 4.0  # how many times nearer to the witness the better result must be
_ROUNDED = 2048.0  # units; two that are about as far from the witness, and this near, do so too
_DIFFERENCES = "central differences"
_COARSE = {"float64": "float32", "complex128": "complex64"}  # what differences are precise to
_COARSELY = 1024.0  # units of these
_NEAR = 1e-4  # relative to what is at least one: two that are as far from the witness differ by rounding
_PATIENCE = 5.0  # seconds for what is not ours to stop: SciPy sums series of any length


def witnessed(finding):
    """Return a finding with the verdict and the evidence of a third witness, where there is one.

    Elements in which both libraries agree exactly are left out: they are not what the finding is about.
    """
    for name, witness in opinion(finding):
        if witness.error or len(witness.leaves) != len(finding.ours.leaves):
            continue
        single = finding.program.mode == "single"
        witness = _where_they_differ(finding, witness)
        sides = (finding.ours, finding.theirs)
        if name == _DIFFERENCES:
            sides = [_narrowed(s, [_COARSE.get(x.dtype, x.dtype) for x in s.leaves]) for s in sides]
        ours, theirs = (_error(side, witness, single) for side in sides)
        if ours is None or theirs is None:
            continue
        said = f"{name} gives {witness}: minijax is {ours:.3g} units away, upstream {theirs:.3g}"
        finding = dataclasses.replace(finding, evidence=(*finding.evidence, said))
        verdict = _verdict(name, finding.difference.kind, single, ours, theirs)
        if verdict == "open" and name != "interpreter" and _as_far(finding, witness, ours, theirs):
            verdict = "ill-conditioned"
        if verdict != "open":
            return dataclasses.replace(finding, verdict=verdict)
    return _unwitnessed(finding)


def _where_they_differ(finding, witness: Outcome) -> Outcome:
    """Return a witness that says what both libraries say of the elements in which they agree."""
    leaves = []
    for ours, theirs, leaf in zip(
        finding.ours.leaves, finding.theirs.leaves, witness.leaves, strict=True
    ):
        if leaf.array.shape == ours.array.shape == theirs.array.shape:
            agreed = _agreed(ours.array, theirs.array)
            same = ours.array.astype(leaf.array.dtype)
            leaf = dataclasses.replace(leaf, array=np.where(agreed, same, leaf.array))
        leaves.append(leaf)
    return dataclasses.replace(witness, leaves=tuple(leaves))


def _agreed(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return (ours == theirs) | ((ours != ours) & (theirs != theirs))


def _unwitnessed(finding):
    """A small difference of a single call for which there is no exact value is taken for rounding."""
    if finding.program.mode != "single" or finding.difference.kind != "value":
        return finding
    apart = _error(finding.ours, finding.theirs, True)
    if apart is None or apart > _ACCURATE:
        return finding
    said = f"{apart:.3g} units apart, without a witness that is more precise"
    evidence = (*finding.evidence, said)
    return dataclasses.replace(finding, verdict="ill-conditioned", evidence=evidence)


def _verdict(name: str, kind: str, single: bool, ours: float, theirs: float) -> str:
    """Return whose fault it is, by how far both are from a witness."""
    if name == "interpreter":  # runs the module that minijax makes: XLA has compiled it wrongly
        return "xla" if ours > _ACCURATE else "open"
    if single and kind == "value" and max(ours, theirs) <= _ACCURATE:
        return "ill-conditioned"
    least = _COARSELY if name == _DIFFERENCES else 1.0
    if ours > _CLEARLY * max(theirs, least):
        return "minijax"
    if theirs > _CLEARLY * max(ours, least):
        return "upstream"
    rounded = single and name != "float64" and kind == "value" and max(ours, theirs) <= _ROUNDED
    return "ill-conditioned" if rounded else "open"


def _as_far(finding: Any, witness: Outcome, ours: float, theirs: float) -> bool:
    """Whether both results of a composed program are about as far from a witness, and not far."""
    if finding.program.mode == "single" or max(ours, theirs) > _CLEARLY * min(ours, theirs):
        return False
    sizes = [float(np.max(np.abs(x.array), initial=1.0)) for x in witness.leaves]
    return all(
        gap <= _NEAR * size
        for side in (finding.ours, finding.theirs)
        for gap, size in zip(gaps(side, witness), sizes, strict=True)
    )


def opinion(finding):
    """Yield names and outcomes of witnesses of a program, those that know most first."""
    program = finding.program
    if program.mode == "single":
        yield "mpmath", _patiently(_mpmath, finding)
        yield "NumPy", _patiently(_numpy, program)
    if finding.difference.kind == "value":
        wide, arguments = widened(program), widened_arguments(program)
        if _texts(wide) != _texts(program):
            ours, theirs = (run(wide, name, arguments=arguments) for name in ("minijax", "jax"))
            if _agree(ours, theirs, finding.ours):  # what differs is rounding
                yield "float64", theirs
        if program.mode == "composed":
            yield _DIFFERENCES, _differences(program)
    yield "interpreter", run(program, "interpreter")


def _agree(ours: Outcome, theirs: Outcome, narrow: Outcome) -> bool:
    """Whether outcomes in 64 bits are the same to the precision of a narrower one."""
    if ours.error or theirs.error or len(ours.leaves) != len(narrow.leaves):
        return False
    apart = _error(_narrowed(ours, [leaf.dtype for leaf in narrow.leaves]), theirs, False)
    return apart is not None and apart <= _ACCURATE


def _narrowed(outcome: Outcome, dtypes: list[str]) -> Outcome:
    with np.errstate(all="ignore"):
        leaves = tuple(
            dataclasses.replace(leaf, dtype=dtype, array=leaf.array.astype(dtype))
            for leaf, dtype in zip(outcome.leaves, dtypes, strict=True)
        )
    return dataclasses.replace(outcome, leaves=leaves)


def _differences(program: Program) -> Outcome:
    """Run a program in 64 bits with central differences in the place of derivatives."""
    wide = widened(program)
    call = lambda module, _, args: programs.compiled(wide, Differences(module))(*args)
    return attempted(wide, "minijax", call, widened_arguments(program))


def _patiently(witness, *args) -> Outcome:
    """Return what a witness says; an error if it takes long."""
    said: list[Outcome] = []
    thread = threading.Thread(target=lambda: said.append(witness(*args)), daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return said[0] if said else Outcome(error=("TimeoutError",), message="no answer in time")


def _lower_gamma(m: Any, a: Any, x: Any) -> Any:
    return m.gammainc(a, 0, x, regularized=True)


def _upper_gamma(m: Any, a: Any, x: Any) -> Any:
    return m.gammainc(a, x, m.inf, regularized=True)


def _scaled_bessel(order: int, m: Any, x: Any) -> Any:
    return m.besseli(order, x) * m.exp(-abs(x))


_MPMATH = {  # functions of mpmath by the last part of ours
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "gammaln": "loggamma", "lgamma": "loggamma", "erf_inv": "erfinv",
    "pow": "power", "expi": "ei", "exp1": "e1", "arctan2": "atan2", "float_power": "power",
    "poch": "rf",
}  # fmt: skip
_MPMATH |= {name: name for name in (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "cbrt", "erf",
    "erfc", "erfinv", "digamma", "beta", "zeta", "atan2", "hypot", "asin", "acos", "atan", "asinh",
    "acosh", "atanh", "power", "factorial", "hyp1f1",
)}  # fmt: skip
_OWN = {  # and in terms of them
    "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)), "expit": lambda m, x: 1 / (1 + m.exp(-x)),
    "exp2": lambda m, x: m.mpf(2) ** x, "rsqrt": lambda m, x: 1 / m.sqrt(x),
    "softplus": lambda m, x: m.log1p(m.exp(x)), "log2": lambda m, x: m.log(x, 2),
    "log10": lambda m, x: m.log(x, 10), "sinc": lambda m, x: m.sincpi(x), "ndtr": lambda m, x: m.ncdf(x),
    "logaddexp": lambda m, x, y: m.log(m.exp(x) + m.exp(y)), "gamma": lambda m, x: m.gamma(x),
    "xlogy": lambda m, x, y: x * m.log(y), "erfcx": lambda m, x: m.exp(x * x) * m.erfc(x),
    "norm.cdf": lambda m, x, a, b: m.ncdf((x - a) / b), "betaln": lambda m, x, y: m.log(m.beta(x, y)),
    "igamma_grad_a": lambda m, a, x: m.diff(lambda s: _lower_gamma(m, s, x), a),
    "random_gamma_grad": lambda m, a, x: -m.diff(lambda s: _lower_gamma(m, s, x), a)
    * m.gamma(a) * m.exp(x) * x ** (1 - a),
    "betainc": lambda m, a, b, x: m.betainc(a, b, 0, x, regularized=True),
    "polygamma": lambda m, n, x: m.psi(int(n), x), "expn": lambda m, n, x: m.expint(n, x),
    "i0": lambda m, x: m.besseli(0, x), "i1": lambda m, x: m.besseli(1, x),
    "hyp2f1": lambda m, a, b, c, x=0.25: m.hyp2f1(a, b, c, x),  # which `functions.txt` gives itself
    "logit": lambda m, x: m.log(x / (1 - x)), "spence": lambda m, x: m.polylog(2, 1 - x),
    "log_ndtr": lambda m, x: m.log(m.ncdf(x)), "ndtri": lambda m, p: m.sqrt(2) * m.erfinv(2 * p - 1),
    "xlog1py": lambda m, x, y: x * m.log1p(y), "rel_entr": lambda m, x, y: x * m.log(x / y),
    "kl_div": lambda m, x, y: x * m.log(x / y) - x + y, "entr": lambda m, x: -x * m.log(x),
}  # fmt: skip
_OWN |= dict.fromkeys(("gammainc", "igamma"), _lower_gamma)
_OWN |= dict.fromkeys(("gammaincc", "igammac"), _upper_gamma)
_OWN |= dict.fromkeys(("i0e", "bessel_i0e"), functools.partial(_scaled_bessel, 0))
_OWN |= dict.fromkeys(("i1e", "bessel_i1e"), functools.partial(_scaled_bessel, 1))


def _mpmath(finding: Any) -> Outcome:
    """Return a function of real elements in 50 digits, where the libraries differ; an error without mpmath."""
    program = finding.program
    try:
        mpmath = importlib.import_module("mpmath")
        (operation,) = program.operations()
        *_, family, word = operation.split(".")
        own = _OWN.get(f"{family}.{word}") or _OWN.get(word)
        function = own or (lambda m, *xs: getattr(m, _MPMATH[word])(*xs))
        ((leaf,), (other,)) = finding.ours.leaves, finding.theirs.leaves
        arrays = np.broadcast_arrays(*programs.arguments(program))
        number = lambda z: float(z.real) if not z.imag else np.nan
        each = lambda *xs: number(function(mpmath, *(mpmath.mpf(float(x)) for x in xs)))
        array = leaf.array.astype("float64")
        with mpmath.workdps(50):
            for index in map(tuple, np.argwhere(~_agreed(leaf.array, other.array))):
                array[index] = each(*(x[index] for x in arrays))
        return Outcome((dataclasses.replace(leaf, dtype="float64", array=array),))
    except Exception as error:
        return Outcome(error=(type(error).__name__,), message=str(error))


def _error(side: Outcome, witness: Outcome, elementwise: bool) -> float | None:
    """Return how far an outcome is from the witness, in units of its own dtypes."""
    worst = 0.0
    for a, b in zip(side.leaves, witness.leaves, strict=True):
        if a.shape != b.shape:
            return None
        if kind_of(a.dtype) not in "fc":
            worst = max(worst, 0.0 if np.array_equal(a.array, b.array) else np.inf)
            continue
        with np.errstate(all="ignore"):
            there = b.array.astype(a.array.dtype)
            x, y = np.asarray(a.array, np.complex128), np.asarray(there, np.complex128)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            wrong = (~np.isfinite(x) | ~np.isfinite(y)) & ~same
        if wrong.any():
            return np.inf
        if a.array.size:
            units = distance(a.array, there, a.dtype, Tolerance(elementwise=elementwise))
            worst = max(worst, float(np.max(units)))
    return worst


def widened(program: Program) -> Program:
    """Return a program with every float dtype, in inputs and text, made the widest."""
    word = lambda text: re.sub(r"\b(" + "|".join(_WIDER) + r")\b", lambda m: _WIDER[m[0]], text)

    def function(f):
        body = tuple(
            dataclasses.replace(
                c, template=word(c.template), functions=tuple(map(function, c.functions))
            )
            for c in f.body
        )
        return dataclasses.replace(f, body=body)

    values = tuple(
        Value(dataclasses.replace(v.type, dtype=_WIDER.get(v.type.dtype, v.type.dtype)), v.elements)
        for v in program.values
    )
    source = program.source and (*map(word, program.source[:2]), program.source[2])
    main = function(program.main)
    return dataclasses.replace(program, main=main, values=values, x64=True, source=source)


def widened_arguments(program: Program) -> tuple:
    """Return the inputs of a program, as they are in its dtypes, in the widest ones."""

    def wide(x):
        name = _WIDER.get(str(getattr(x, "dtype", "")))
        return x if name is None else x.astype(name)

    return tuple(map(wide, programs.arguments(program)))


def _texts(program: Program) -> tuple[str, str]:
    return programs.text(program), programs.arguments_text(program)


def _numpy(program: Program) -> Outcome:
    """Run a program with NumPy and SciPy in the place of the library, in 64-bit floats."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wide = widened(program)
            module = _as_library()
            return outcome(
                importlib.import_module("minijax"),
                programs.compiled(wide, module)(*widened_arguments(program)),
            )
    except Exception as error:
        return Outcome(error=(type(error).__name__,), message=str(error))


_LAX = {  # functions of `lax` by NumPy's name; those that are not here bear the same
    "neg": "negative", "sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum",
    "min": "minimum", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "rem": "fmod", "pow": "power", "is_finite": "isfinite",
    "shift_left": "left_shift", "shift_right_arithmetic": "right_shift", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "population_count": "bitwise_count",
}  # fmt: skip
_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erf_inv": "erfinv", "lgamma": "gammaln", "digamma": "digamma",
    "igamma": "gammainc", "igammac": "gammaincc", "zeta": "zeta", "betainc": "betainc",
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "logistic": "expit",
}  # fmt: skip


def _as_library():
    """Return an object with the attributes of `jax` that NumPy and SciPy have."""
    scipy = importlib.import_module("scipy")
    for name in ("special", "stats", "linalg", "signal", "fft"):
        importlib.import_module(f"scipy.{name}")
    lax = types.SimpleNamespace()
    for name in dir(np):
        setattr(lax, name, getattr(np, name))
    for name, there in _LAX.items():
        setattr(lax, name, getattr(np, there))
    for name, there in _SPECIAL.items():
        setattr(lax, name, getattr(scipy.special, there))
    return types.SimpleNamespace(numpy=np, scipy=scipy, lax=lax, P=None)
