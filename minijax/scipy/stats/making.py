"""How the functions of a distribution are made from formulas on standard arguments.

A formula is told of `z = (x - loc) / scale` and the parameters of the shape; `located` gives it
arguments of one dtype, moves and scales, and evaluates it in the distribution's support alone.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import converted, promote_inexact
from minijax.typing import Array, ArrayLike

__all__ = ["discrete", "exponential", "located", "real_arguments", "settled"]

# Values below and above the support.
_OUTSIDE = {
    "logpdf": (-np.inf, -np.inf),
    "cdf": (0, 1),
    "logcdf": (-np.inf, 0),
    "sf": (1, 0),
    "logsf": (0, -np.inf),
    "ppf": (np.nan, np.nan),
}

_COMPLEX = ("norm", "cauchy", "logistic", "beta")  # their formulas compare no arguments


def real_arguments(name: str, *args: Any) -> list[Any]:
    """Arguments in one floating dtype. TypeError for complex ones, but of a few distributions."""
    args = promote_inexact(name, *args)
    if args[0].dtype.kind == "c" and name.split(".")[0] not in _COMPLEX:
        raise TypeError(f"{name} does not accept dtype {args[0].dtype.name}: give real parts.")
    return args


# Functions whose result is weakly typed only where, besides, an argument has no axes: the first,
# `loc`, or `scale`. In the others it is so where all arguments are.
_BY_FIRST = re.compile(
    r"(bernoulli|beta|betabinom|cauchy|chi2|geom|laplace|nbinom|t)\.|gamma\.(log)?[cp]df|poisson\.cdf"
    r"|gumbel_r\.sf|logistic\.(isf|ppf|(log)?pdf)|norm\.(log)?pdf|pareto\.(?!logcdf)"
)
_BY_LOC = re.compile(r"betabinom\.|logistic\.(log)?pdf")
_BY_SCALE = re.compile(r"chi2\.(log)?[cs]|logistic\.(log)?pdf")


def settled(name: str, out: Any, first: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The result of a function of a distribution, with the weak type that upstream gives it."""
    by = ((_BY_FIRST, first), (_BY_LOC, loc), (_BY_SCALE, scale))
    strong = any(np.ndim(x) and pattern.match(name) for pattern, x in by)
    return converted(out, out.dtype) if strong else out


def _end(bound: Any, dtype: Any) -> Any:
    """An end of a support: the largest number if it is infinite and the dtype has no infinity."""
    if not isinstance(bound, float) or not np.isinf(bound):
        return bound
    has_infinity = np.isinf(np.asarray(bound).astype(dtype))
    return bound if has_infinity else math.copysign(float(dtypes.finfo(dtype).max), bound)


def located(
    kind: str,
    signature: str = "",
    *,
    argument: str = "x",
    support: tuple[float, float, float] | Callable[..., tuple] | None = None,
    ends: bool = True,
    valid: Callable[..., Any] | None = None,
    check: Callable[[Any], object] = lambda x: None,
) -> Callable[[Callable[..., Any]], Callable[..., Array]]:
    """Decorator: a formula of z and the shape, as a function of x, the shape, loc and scale.

    - `kind`: "log density", "probability", or "quantile": the formula then gives the z of a
      probability
    - `signature`: the names of the parameters of the shape, with blanks between
    - `support`: the least z (or probability), one between at which the formula has a finite
      derivative, and the greatest, or a function of the shape that returns them; None where the
      formula holds everywhere
    - `ends`: whether the formula holds at the ends of the support; otherwise they count as outside
    - `valid`: a condition on the shape without which the result is NaN
    - `check`: raises for a first argument, as it was given, of a dtype that is refused
    """
    names = signature.split()

    def supported(run, x, scale, shape, name):
        # A derivative that is not finite outside would not vanish in a selection of the results
        # alone: infinity times zero is NaN. So the arguments are selected too.
        low, middle, high = support(*shape) if callable(support) else support
        z = x if scale is None else x / scale
        low, high = _end(low, z.dtype), _end(high, z.dtype)
        is_inside = (z >= low) & (z <= high) if ends else (z > low) & (z < high)
        x = jnp.where(is_inside, x, middle)
        out = run(x if scale is None else x / jnp.where(is_inside, scale, 1))
        below, above = _OUTSIDE[name]
        rest = jnp.where(z <= low, below, jnp.where(z >= high, above, np.nan))
        return jnp.where(is_inside, out, rest)

    def decorate(formula: Callable) -> Callable:
        def run(name, x, shape, loc, scale):
            check(x)
            x, *shape, loc, scale = real_arguments(name, x, *shape, loc, scale)
            if kind == "quantile":
                run, x, unit = lambda q: formula(q, *shape) * scale + loc, x, None
            elif kind == "log density":
                run, x, unit = lambda z: formula(z, *shape) - jnp.log(scale), x - loc, scale
            else:
                run, x, unit = lambda z: formula(z, *shape), x - loc, scale
            if support is None:
                out = run(x if unit is None else x / unit)
            else:
                out = supported(run, x, unit, shape, formula.__name__)
            return out if valid is None else jnp.where(valid(*shape), out, np.nan)

        return _with_names(formula, run, [argument, *names], ["loc=0", "scale=1"])

    return decorate


def discrete(
    signature: str = "", *, argument: str = "k"
) -> Callable[[Callable[..., Any]], Callable[..., Array]]:
    """Decorator: a formula of whole k and the shape, as a function of k, the shape and loc."""
    names = signature.split()

    def decorate(formula: Callable) -> Callable:
        def run(name, k, shape, loc):
            k, *shape, loc = real_arguments(name, k, *shape, loc)
            return formula(k - loc, *shape)

        return _with_names(formula, run, [argument, *names], ["loc=0"])

    return decorate


def _with_names(formula: Callable, run: Callable, names: list[str], defaults: list[str]) -> Any:
    """A function whose parameters have the names that its distribution gives them."""
    rest = [part.split("=")[0] for part in defaults]
    shape = "".join(f"{name}, " for name in names[1:])
    label = f"{formula.__module__.rsplit('.', 1)[-1]}.{formula.__name__}"
    typed = lambda name, first, shape, *rest: settled(
        name, run(name, first, shape, *rest), first, *rest
    )
    source = (
        f"def {formula.__name__}({', '.join([*names, *defaults])}):\n"
        f"    return run({label!r}, {names[0]}, ({shape}), {', '.join(rest)})\n"
    )
    space: dict[str, Any] = {"run": typed}
    exec(_compiled(source), space)
    made = space[formula.__name__]
    made.__module__ = formula.__module__
    made.__annotations__ = {**dict.fromkeys([*names, *rest], ArrayLike), "return": Array}
    made.__doc__ = _documented(made, formula.__doc__, [*names, *rest])
    return library(made, whole=True)


def _compiled(source: str) -> CodeType:
    """Code of this package, so that errors and equations name the line of its caller."""
    return compile(source, os.path.join(os.path.dirname(__file__), "<distribution>"), "exec")


def _documented(made: Callable, about: str | None, names: list[str]) -> str | None:
    """The docstring of a distribution's function, from the line on its formula and its parameters."""
    distribution, name = made.__module__.rsplit(".", 1)[-1], made.__name__
    title = sys.modules[made.__module__].__doc__
    if about is None or title is None:  # python -OO
        return None
    title = title.split(". Source", 1)[0].replace("The ", "the ")
    first, *shape = (f"`{x}`" for x in names if x not in ("loc", "scale"))
    parameters = f"\n    - {', '.join(shape)}: parameters of its shape" if shape else ""
    moved = " and ".join(f"`{x}`" for x in names if x in ("loc", "scale"))
    moved = f"\n    - {moved}: the distribution's shift{' and scale' if 'scale' in moved else ''}"
    example = ", ".join(["jnp.array([0.25, 0.5])", *["0.5"] * len(shape)])
    return f"""Compute {about[0].lower()}{about[1:].rstrip(".")} of {title}.

    - {first}: real array{parameters}{moved if "loc" in names else ""}

    All broadcast together; the result has their shape and a floating-point dtype. TypeError for what
    is not an array or number.
    Source: SciPy's `stats.{distribution}.{name}`.

    >>> jax.scipy.stats.{distribution}.{name}({example}).shape
    (2,)
    """


def exponential(log: Callable[..., Any], doc: str) -> Callable[..., Array]:
    """The exponential of one of the functions above, with the same parameters."""
    code = log.__wrapped__.__code__
    names = code.co_varnames[: code.co_argcount]
    kind = log.__name__.removeprefix("log")
    defaults = log.__wrapped__.__defaults__ or ()
    first = len(names) - len(defaults)
    given = [
        name if index < first else f"{name}={defaults[index - first]}"
        for index, name in enumerate(names)
    ]
    space: dict[str, Any] = {"log": log.__wrapped__, "exp": jnp.exp}
    space |= {"Array": Array, "ArrayLike": ArrayLike}  # which its annotations name
    source = f"def {kind}({', '.join(given)}):\n    return exp(log({', '.join(names)}))\n"
    exec(_compiled(source), space)
    made = space[kind]
    made.__module__ = log.__module__
    made.__annotations__ = log.__wrapped__.__annotations__
    made.__doc__ = _documented(made, doc, list(names)) if "\n" not in doc else doc
    return library(made, whole=True)
