"""Tokens and sinks: `create_token`, `after_all` and `dce_sink`.

A token is a value without data that says "after this"; a sink keeps what it is given in the
program. Neither changes what a program computes.
"""

from __future__ import annotations

from typing import Any

from minijax import tree_util
from minijax.core.avals import abstract_token, get_aval
from minijax.core.effects import Effect, control_flow_allowed, lowerable
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.rules import zero_derivative

__all__ = [
    "Token", "after_all", "after_all_p", "create_token", "create_token_p", "dce_sink", "dce_sink_p",
]  # fmt: skip


class Token:
    """A token outside of a program. What it stands for has happened: operations run in order."""

    __slots__ = ()
    aval = abstract_token

    def block_until_ready(self) -> None:
        """Return at once."""


create_token_p = Primitive("create_token")
after_all_p = Primitive("after_all")

_NO_TANGENT = "a token has no tangent: differentiate the function without it"
for _p in (create_token_p, after_all_p):
    _p.rule_jvp = no_rule(_NO_TANGENT)
    _p.rule_transpose = no_rule(_NO_TANGENT)
    _p.impl(lambda *tokens: Token())


@create_token_p.shape_rule
def _():
    return abstract_token


@create_token_p.lower
def _(b):
    return b.op("stablehlo.create_token", (), abstract_token)


create_token_p.rule_batch = no_rule("it has no operands, so nothing that it takes is batched")


@after_all_p.shape_rule
def _(*tokens):
    if any(aval is not abstract_token for aval in tokens):
        given = ", ".join(aval.str_short() for aval in tokens)
        raise TypeError(
            f"Arguments to after_all must be tokens; got {given}: make them with create_token()."
        )
    return abstract_token


@after_all_p.lower
def _(b, *tokens):
    return b.op("stablehlo.after_all", tokens, abstract_token)


after_all_p.rule_batch = no_rule("a token has no axis, so nothing that it takes is batched")


def create_token(_: Any = None) -> Any:
    """Make a token that waits for nothing.

    The argument is ignored. The result is a token, which has neither shape nor dtype: it orders
    effects.
    Source: the StableHLO operation `stablehlo.create_token`.

    >>> token = lax.create_token()
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """Make a token that comes after all of the given tokens.

    - `operands`: tokens, which have neither shape nor dtype

    The result is a token. TypeError for anything but tokens.
    Source: the StableHLO operation `stablehlo.after_all`.

    >>> token = lax.after_all(lax.create_token(), lax.create_token())
    """
    for token in operands:
        if get_aval(token) is not abstract_token:
            raise TypeError(
                "Arguments to after_all must be tokens; got "
                f"{get_aval(token).str_short()}: make them with create_token()."
            )
    return after_all_p.bind(*operands)


# -- sinks ----------------------------------------------------------------------------------------

dce_sink_p = Primitive("dce_sink", multiple_results=True)


class NoDCEEffect(Effect):
    """The equation is kept although nothing reads its results."""

    def __repr__(self) -> str:
        return "NoDCE"


_KEPT = frozenset((NoDCEEffect(),))
lowerable.add_type(NoDCEEffect)
control_flow_allowed.add_type(NoDCEEffect)


@dce_sink_p.shape_rule
def _(x, *, prevent_mlir_dce):
    return []


@dce_sink_p.effects_rule
def _(*, prevent_mlir_dce):
    return _KEPT


@dce_sink_p.impl
def _(x, *, prevent_mlir_dce):
    return []


zero_derivative(dce_sink_p)


dce_sink_p.rule_transpose = no_rule("it has no results, so no cotangent comes back")


@dce_sink_p.batch
def _(args, dims, **params):
    return dce_sink_p.bind(*args, **params), []


@dce_sink_p.lower
def _(b, x, *, prevent_mlir_dce):
    if prevent_mlir_dce:
        b.custom_call("dce_sink", (x,), (), config='""', api_version=1, side_effect=True)
    return []


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep arrays in a traced program although nothing reads them.

    - `val`: pytree of arrays of any shape and dtype
    - `prevent_mlir_dce`: whether to keep them in the compiled module too, as operands of a custom
      call

    Returns None. TypeError for leaves that are not arrays or numbers.
    Source: the StableHLO operation `stablehlo.custom_call`.

    >>> lax.dce_sink(jnp.ones(3))
    """
    for leaf in tree_util.tree_leaves(val):
        get_aval(leaf)
        dce_sink_p.bind(leaf, prevent_mlir_dce=bool(prevent_mlir_dce))
