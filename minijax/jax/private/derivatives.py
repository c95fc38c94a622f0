"""Counterparts of upstream's private functions on derivatives; `modules` says for which modules.

Where upstream hands its transpose rules objects that sum up cotangents, a rule here gives
cotangents; the objects stand at that border.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.primitive import Primitive
from minijax.interpreters.ad import UndefinedPrimal, Zero, add_tangents, is_undefined_primal
from minijax.interpreters.tables import RuleTable
from minijax.transforms import linearize, transpose

# -- what sums up cotangents -----------------------------------------------------------------------


class GradAccum:
    """Sums up the cotangents of one value."""

    aval: Any

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        raise NotImplementedError

    def freeze(self) -> Any:
        """The sum, a `Zero` if nothing was added."""
        raise NotImplementedError


class ValAccum(GradAccum):
    """Keeps the sum itself."""

    def __init__(self, aval: Any, val: Any = None):
        self.aval = aval
        self.val = Zero(aval) if val is None else val

    def accum(self, x: Any) -> None:
        if x is not None:
            self.val = add_tangents(self.val, x)

    def freeze(self) -> Any:
        return self.val


class NullAccum(GradAccum):
    """The accumulator of a value whose cotangent is not asked for."""

    def __init__(self, aval: Any):
        self.aval = aval

    def accum(self, x: Any) -> None:
        pass

    def freeze(self) -> Any:
        raise AssertionError("nothing is kept of a cotangent that was not asked for")


def accum_typeof(x: Any) -> Any:
    """The type of a value, or of that whose cotangents are summed up."""
    return x.aval if isinstance(x, GradAccum) else get_aval(x)


class _WithAccums(RuleTable):
    """Rules `rule(cotangent(s), *args, **params)`, with a `GradAccum` for each linear argument."""

    def __setitem__(self, primitive: Primitive, rule: Callable) -> None:
        def transposed(ct: Any, *args: Any, **params: Any) -> list[Any]:
            given = [ValAccum(x.aval) if is_undefined_primal(x) else x for x in args]
            rule(ct, *given, **params)
            return [x.freeze() if isinstance(x, ValAccum) else None for x in given]

        super().__setitem__(primitive, transposed)


fancy_transposes = _WithAccums("rule_transpose")


# -- programs --------------------------------------------------------------------------------------


def backward_pass3(
    jaxpr: Jaxpr, transform_stack: bool, consts: Sequence[Any], primals_in: Sequence[Any],
    cotangents_in: Sequence[Any],
) -> None:  # fmt: skip
    """Add the cotangents of the linear inputs of a program to the `GradAccum`s in their places."""
    linear = [isinstance(x, GradAccum) for x in primals_in]
    args = [UndefinedPrimal(x.aval) if is_acc else x for x, is_acc in zip(primals_in, linear)]
    found = transpose.backward_pass(jaxpr, consts, args, cotangents_in)
    for x, ct, is_accum in zip(primals_in, found, linear, strict=True):
        if is_accum:
            x.accum(ct)


def closed_backward_pass(
    jaxpr: ClosedJaxpr,
    transform_stack: bool,
    primals_in: Sequence[Any],
    cotangents_in: Sequence[Any],
) -> list[Any]:
    """The cotangents of the inputs of a linear program; those that are known have a `Zero`."""
    found = transpose.backward_pass(jaxpr.jaxpr, jaxpr.consts, primals_in, cotangents_in)
    return [
        Zero(aval.to_tangent_aval()) if ct is None else ct
        for ct, aval in zip(found, jaxpr.in_avals, strict=True)
    ]


def linearize_jaxpr(
    jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool] = False,
    allow_fwds: bool | Sequence[bool] = True, *, is_vjp: bool,
) -> tuple[ClosedJaxpr, int, list[bool], list[int | None], ClosedJaxpr]:  # fmt: skip
    """Split a program into its values and the linear program on tangents.

    Gives `(*inputs) -> (*results, *residuals)`, how many residuals those are, which results have a
    tangent, for each residual the input that it is (None if it is among those), and
    `(*residuals, *tangents) -> (*tangents)`. `allow_fwds` says which inputs may serve as residuals.
    """
    made = linearize.linearize_jaxpr(jaxpr, nonzeros, instantiate)
    primal, count = made.primal.jaxpr, len(jaxpr.out_avals)
    inputs = len(primal.invars)
    allowed = [allow_fwds] * inputs if isinstance(allow_fwds, bool) else list(allow_fwds)
    pool = [*primal.invars, *primal.outvars[count:]]
    forwarded = [n if n < inputs and allowed[n] else None for n in made.residual_sources]
    kept = [pool[n] for n, fwd in zip(made.residual_sources, forwarded, strict=True) if fwd is None]
    values = ClosedJaxpr(
        primal.replace(outvars=[*primal.outvars[:count], *kept]), made.primal.consts
    )
    return values, len(kept), list(made.out_nonzeros), forwarded, made.linear


def rearrange_binders(
    jaxpr: ClosedJaxpr, primals_in: Sequence[int], tangents_in: Sequence[int],
    primals_out: Sequence[int], tangents_out: Sequence[int],
) -> ClosedJaxpr:  # fmt: skip
    """A program of values, then tangents, with both at the places given, in inputs and results."""
    ordered = lambda xs, one, other: [x for _, x in sorted(zip([*one, *other], xs), key=_place)]
    invars = ordered(jaxpr.jaxpr.invars, primals_in, tangents_in)
    outvars = ordered(jaxpr.jaxpr.outvars, primals_out, tangents_out)
    return ClosedJaxpr(jaxpr.jaxpr.replace(invars=invars, outvars=outvars), jaxpr.consts)


def _place(pair: tuple[int, Any]) -> int:
    return pair[0]
