"""How the functions of a distribution are made from formulas on standard arguments.

May import the floors below and `numpy`. A formula is told of `z = (x - loc) / scale` and the
parameters of the shape; `located` gives it arguments of one dtype, moves and scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp
from minijax.numpy.promotion import promote_inexact
from minijax.transforms.library import library

__all__ = ["discrete", "exponential", "located"]

_SCALES = {
    "density": lambda out, scale: out / scale,
    "log density": lambda out, scale: out - jnp.log(scale),
    "probability": lambda out, scale: out,
}


def located(kind: str, signature: str = "", *, argument: str = "x") -> Callable:
    """Decorator: a formula of z and the shape, as a function of x, the shape, loc and scale.

    - `kind`: "density" (divided by the scale), "log density", "probability", or "quantile": the
      formula then gives the z of a probability
    - `signature`: the names of the parameters of the shape, with blanks between
    """
    names = signature.split()

    def decorate(formula: Callable) -> Callable:
        def run(name, x, shape, loc, scale):
            x, *shape, loc, scale = promote_inexact(name, x, *shape, loc, scale)
            if kind == "quantile":
                return formula(x, *shape) * scale + loc
            return _SCALES[kind](formula((x - loc) / scale, *shape), scale)

        return _with_names(formula, run, [argument, *names], ["loc=0", "scale=1"])

    return decorate


def discrete(signature: str = "", *, argument: str = "k") -> Callable:
    """Decorator: a formula of whole k and the shape, as a function of k, the shape and loc."""
    names = signature.split()

    def decorate(formula: Callable) -> Callable:
        def run(name, k, shape, loc):
            k, *shape, loc = promote_inexact(name, k, *shape, loc)
            return formula(k - loc, *shape)

        return _with_names(formula, run, [argument, *names], ["loc=0"])

    return decorate


def _with_names(formula: Callable, run: Callable, names: list[str], defaults: list[str]) -> Any:
    """A function whose parameters have the names that its distribution gives them."""
    rest = [part.split("=")[0] for part in defaults]
    shape = "".join(f"{name}, " for name in names[1:])
    label = f"{formula.__module__.rsplit('.', 1)[-1]}.{formula.__name__}"
    source = (
        f"def {formula.__name__}({', '.join([*names, *defaults])}):\n"
        f"    return run({label!r}, {names[0]}, ({shape}), {', '.join(rest)})\n"
    )
    space: dict[str, Any] = {"run": run}
    exec(source, space)
    made = space[formula.__name__]
    made.__doc__, made.__module__ = formula.__doc__, formula.__module__
    return library(made)


def exponential(log: Callable, doc: str) -> Callable:
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
    space: dict[str, Any] = {"log": log, "exp": jnp.exp}
    exec(f"def {kind}({', '.join(given)}):\n    return exp(log({', '.join(names)}))\n", space)
    made = space[kind]
    made.__doc__, made.__module__ = doc, log.__module__
    return library(made)
