"""`fwd_and_bwd`: the two passes of a reverse-mode derivative as two functions.

May import the floors below and the interpreters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minijax.transforms.arguments import as_ints
from minijax.transforms.grad import check_callable, vjp
from minijax.transforms.jit import jit

__all__ = ["fwd_and_bwd"]


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of `fun`, each compiled once and used many times.

    `fwd(*args)` gives `(out, residuals)`, with auxiliary data last if `has_aux`; the residuals are a
    pytree. `bwd(residuals, cotangent)` gives the cotangents of the arguments that `argnums` names: a
    tuple of them, or one if it is an integer. Unless `jitted`, neither is compiled as a whole.
    ValueError if an argument that `argnums` names is not given.
    """
    check_callable(fun)
    single = not isinstance(argnums, (tuple, list))
    numbers = as_ints("argnums", argnums)

    def fwd(*args):
        count = len(args)
        for number in numbers:
            if not -count <= number < count:
                raise ValueError(
                    f"Positional argument indices must have value greater than or equal to "
                    f"-len(args) and less than len(args), but argnums has {number} for len(args) == "
                    f"{count}: arguments to differentiate are passed by position."
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
