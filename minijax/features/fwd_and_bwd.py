"""`fwd_and_bwd`: the two passes of a reverse-mode derivative as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.arguments.functions import as_ints
from minijax.transforms.grad import check_callable, vjp
from minijax.transforms.jit import jit

__all__ = ["fwd_and_bwd"]


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make the forward and the backward pass of a function, each compiled once.

    - `fun`: function of pytrees of arrays; with `has_aux` it returns `(out, aux)`
    - `argnums`: positional arguments to differentiate, an integer or a sequence
    - `jitted`: whether the passes are compiled

    `fwd(*args)` returns `(out, residuals)`, and aux; `bwd(residuals, cotangent)` cotangents of the
    arguments' shapes and dtypes: one for an integer, else a tuple. ValueError for an argument that
    is not given.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> fwd, bwd = jax.fwd_and_bwd(lambda x: x * x, 0)
    >>> out, residuals = fwd(3.0)
    >>> bwd(residuals, 1.0)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    single = not isinstance(argnums, (tuple, list))
    numbers = as_ints("argnums", argnums)

    def fwd(*args):
        count = len(args)
        for number in numbers:
            if not -count <= number < count:
                raise ValueError(
                    "Positional argument indices, e.g. for `static_argnums`, must have value greater "
                    f"than or equal to -len(args) and less than len(args), but got value {number} for "
                    f"len(args) == {count}: it is one of argnums, which are passed by position."
                )
        chosen = [number % count for number in numbers]

        def on_chosen(*given):
            full = list(args)
            for number, x in zip(chosen, given, strict=True):
                full[number] = x
            return fun(*full)

        return vjp(on_chosen, *[args[number] for number in chosen], has_aux=has_aux)

    def bwd(residuals, cotangent):
        cotangents = residuals(cotangent)
        return cotangents[0] if single else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
