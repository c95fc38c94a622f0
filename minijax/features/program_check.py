"""Whether a jaxpr fits together."""

from __future__ import annotations

from minijax.core.avals import AbstractValue
from minijax.core.jaxpr import Jaxpr, Literal, jaxprs_in_params
from minijax.errors import JaxprTypeError

__all__ = ["check_jaxpr"]


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """JaxprTypeError unless each variable is defined once, before it is read, with its own type."""
    defined = set()

    def define(var, where):
        if var in defined:
            raise JaxprTypeError(f"Variable {var} is defined twice; again {where}, in\n{jaxpr}")
        defined.add(var)

    def read(atom, where):
        if type(atom) is not Literal and atom not in defined:
            raise JaxprTypeError(f"Variable {atom} is not defined, and read {where}, in\n{jaxpr}")

    for var in (*jaxpr.constvars, *jaxpr.invars):
        define(var, "as an input")
    for number, eqn in enumerate(jaxpr.eqns):
        where = f"by equation {number}, {eqn.primitive}"
        for atom in eqn.invars:
            read(atom, where)
        wanted = eqn.primitive.out_avals(tuple([a.aval for a in eqn.invars]), eqn.params)
        wanted = list(wanted) if eqn.primitive.multiple_results else [wanted]
        for var, aval in zip(eqn.outvars, wanted, strict=True):
            if not _agree(var.aval.of_values(), aval.of_values()):
                raise JaxprTypeError(
                    f"A result of equation {number}, {eqn.primitive}, has type "
                    f"{var.aval.str_short()}; its operands make it {aval.str_short()}, in\n{jaxpr}"
                )
            define(var, where)
        for inner in jaxprs_in_params(eqn.params):
            check_jaxpr(inner)
    for atom in jaxpr.outvars:
        read(atom, "as a result")


def _agree(x: AbstractValue, y: AbstractValue) -> bool:
    """Whether two types are the same up to weak types."""
    return x == y if x.is_high or y.is_high else (x.shape, x.dtype) == (y.shape, y.dtype)
