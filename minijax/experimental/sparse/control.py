"""Calls and control flow of programs with sparse values: the rules of `sparsify` for them.

A loop or a conditional carries the buffers of sparse values, whose number and shapes must stay the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax, tree_util
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.experimental.sparse.transform import (
    Value,
    aval_of,
    bcoo_rules,
    bcsr_rules,
    eval_sparse,
    fresh,
    plain,
)
from minijax.features.custom_rules.custom_jvp import custom_jvp_call_p
from minijax.lax.control_flow.cond_rules import cond_p
from minijax.lax.control_flow.loops import while_p
from minijax.lax.control_flow.scan_rules import scan_p
from minijax.transforms.jit import jit_p

__all__: list[str] = []


def _buffers(values: Sequence[Any]) -> tuple[list[Any], Any]:
    """The arrays that sparse values are made of, and what makes them again."""
    return tree_util.tree_flatten([plain(x) for x in values])


def _run(closed: ClosedJaxpr, tree: Any, bufs: Sequence[Any]) -> tuple[list[Any], Any]:
    """A program on sparse values, given and giving their arrays."""
    return _buffers(eval_sparse(closed, [fresh(x) for x in tree.unflatten(bufs)]))


def _made(tree: Any, bufs: Sequence[Any]) -> list[Any]:
    return [fresh(x) for x in tree.unflatten(bufs)]


def _jit(*values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_sparse(jaxpr, values)


def _custom_jvp(*values: Any, call_jaxpr: Any, **params: Any) -> list[Any]:
    if type(call_jaxpr) is not ClosedJaxpr:  # a function that nothing has recorded yet
        avals = tuple([aval_of(plain(x)) for x in values])
        call_jaxpr = trace_to_jaxpr(call_jaxpr, avals)
    return eval_sparse(call_jaxpr, values)


def _cond(index: Any, *operands: Any, branches: Sequence[ClosedJaxpr], **params: Any) -> list[Any]:
    if type(index) is Value:
        raise NotImplementedError(
            "sparse rule for cond with a sparse predicate: use sparse.todense() for it."
        )
    bufs, tree = _buffers(operands)
    trees: list[Any] = []

    def of(closed: ClosedJaxpr) -> Callable:
        def branch(*bufs: Any) -> list[Any]:
            outs, out_tree = _run(closed, tree, bufs)
            trees.append(out_tree)
            if out_tree != trees[0]:
                raise TypeError(
                    "sparsified true_fun output must have same type structure as sparsified "
                    f"false_fun output, but there are differences: {trees[0]} and {out_tree}."
                )
            return outs

        return branch

    outs = lax.switch(index, [of(closed) for closed in branches], *bufs)
    return _made(trees[0], outs)


def _while(
    *values: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
) -> list[Any]:  # fmt: skip
    of_cond, rest = values[:cond_nconsts], values[cond_nconsts:]
    of_body, init = rest[:body_nconsts], rest[body_nconsts:]
    bufs, tree = _buffers(init)

    def go_on(bufs: Any) -> Any:
        return eval_sparse(cond_jaxpr, [*of_cond, *_made(tree, bufs)])[0]

    def body(bufs: Any) -> Any:
        outs, out_tree = _buffers(eval_sparse(body_jaxpr, [*of_body, *_made(tree, bufs)]))
        _check_carry("while_loop", tree, out_tree)
        return outs

    return _made(tree, lax.while_loop(go_on, body, bufs))


def _check_carry(name: str, tree: Any, out_tree: Any) -> None:
    if out_tree.num_leaves != tree.num_leaves:
        raise ValueError(
            f"sparsified {name}: the body must give what it carries in the formats that it got: "
            f"{tree}, and gives {out_tree}."
        )


def _scan(
    *values: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, reverse: bool,
    unroll: Any, **params: Any,
) -> list[Any]:  # fmt: skip
    consts, init = values[:num_consts], values[num_consts : num_consts + num_carry]
    if len(values) > num_consts + num_carry:
        raise NotImplementedError("sparse rule for scan with x values.")
    if len(jaxpr.out_avals) > num_carry:
        raise ValueError("sparse rule for scan with y values: give None for what is stacked.")
    bufs, tree = _buffers(init)

    def body(bufs: Any, _: Any) -> Any:
        outs, out_tree = _buffers(eval_sparse(jaxpr, [*consts, *_made(tree, bufs)]))
        _check_carry("scan", tree, out_tree)
        return outs, None

    outs, _ = lax.scan(body, bufs, None, length=length, reverse=reverse, unroll=unroll)
    return _made(tree, outs)


bcoo_rules.update({
    cond_p: _cond, custom_jvp_call_p: _custom_jvp, jit_p: _jit, scan_p: _scan, while_p: _while,
})  # fmt: skip
bcsr_rules.update({custom_jvp_call_p: _custom_jvp, jit_p: _jit})
