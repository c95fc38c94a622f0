"""The states of values that change, followed through recorded calls. A program that is called has
variables of its own for the values it is given: what it makes of their states is, after the
call, what they are in.
"""

from __future__ import annotations

from typing import Any

from minijax.core.hooks import hooks
from minijax.core.jaxpr import JaxprEqn, jaxprs_in_params
from minijax.features.hijax.qdd import state_of
from minijax.features.hijax.types import AvalQDD, check_same_state

__all__ = ["follow_states"]


def follow_states(eqn: JaxprEqn) -> None:
    """After a call was recorded: the states of its operands, and of its results.

    TypeError if the body of a loop changes a state, or the branches of a choice differ in one.
    """
    if not eqn.primitive.holds_programs:
        return
    name, atoms, outvars, params = eqn.primitive.name, eqn.invars, eqn.outvars, eqn.params
    if not any(type(var.aval) is AvalQDD for var in (*atoms, *outvars)):
        return
    calls = eqn.primitive.programs
    looped = calls is not None and calls.carried is not None
    held = {calls.result: params[calls.result]} if looped else params
    programs = list(jaxprs_in_params(held))
    for jaxpr in programs[::-1]:
        given = atoms[len(atoms) - len(jaxpr.invars) :]
        for atom, var in zip(given, jaxpr.invars, strict=True):
            if type(var.aval) is AvalQDD:
                inner = state_of(var)
                if looped:
                    check_same_state(name, var.aval, AvalQDD(var.aval.aval, inner.cur_val))
                _follow(name, state_of(atom), inner, jaxpr is programs[-1])
        for out, var in zip(outvars, jaxpr.outvars, strict=False):
            if type(var.aval) is AvalQDD and not looped:
                state_of(out).update(state_of(var).cur_val)


def _follow(name: str, outer: Any, inner: Any, first: bool) -> None:
    if not first and outer.cur_val != inner.cur_val:
        raise TypeError(
            f"the functions given to {name} leave a value that they change in place in different "
            f"states, {inner.cur_val} and {outer.cur_val}: make them the same."
        )
    outer.update(inner.cur_val)


hooks.fill(recorded=follow_states)
