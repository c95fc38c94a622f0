"""Operations on pytrees and what holds them, in programs that are written as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.experimental import boxes, sparse
from minijax.explain.literals import literal
from minijax.features.sharding.memory_layouts import asked_place_p
from minijax.lax.checks import check_p
from minijax.lax.sparse.todense import todense_p

__all__ = ["RULES"]


def _new_box(body, eqn, operands, *, treedef):
    return "boxes.new_box()"


def _box_set(body, eqn, operands, *, treedef):
    box, *leaves = operands
    return f"{box}.set({body.module.tree(treedef, leaves)})"


def _box_get(body, eqn, operands, *, avals):
    return f"jax.tree.leaves({operands[0]}.get())"


def _check(body, eqn, operands, *, message, debug):
    pred, *values = operands
    if not hasattr(message, "template"):
        named = body.module.callback(lambda pred, *xs: check_p.bind(
            pred, *xs, message=message, debug=debug), "check")  # fmt: skip
        return f"{named}({', '.join(operands)})"
    given = [pred, repr(message.template), *body.module.arguments(message.tree, values)]
    return f"checkify.{'debug_check' if debug else 'check'}({', '.join(given)})"


def _todense(body, eqn, operands, *, tree):
    return f"sparse.todense({_sparse(tree, operands)})"


def _sparse(tree: Any, operands: list[str]) -> str:
    made = tree.unflatten([0] * len(operands))
    if not isinstance(made, sparse.JAXSparse):
        return operands[0]
    fields = {"shape": made.shape}
    for name in ("indices_sorted", "unique_indices", "rows_sorted", "cols_sorted"):
        if getattr(made, name, False):
            fields[name] = True
    rest = "".join(f", {name}={literal(value)}" for name, value in fields.items())
    return f"sparse.{type(made).__name__}(({', '.join(operands)}){rest})"


RULES: dict[Primitive, Callable] = {
    # A jit says where its arguments and results are to lie (see `python`).
    asked_place_p: lambda body, eqn, operands, **params: operands[0],
    boxes._box_get_p: _box_get,
    boxes._box_set_p: _box_set,
    boxes._new_box_p: _new_box,
    check_p: _check,
    todense_p: _todense,
}
