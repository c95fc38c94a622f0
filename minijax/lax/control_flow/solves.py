"""Solvers with derivatives of their own: `custom_root`, `custom_linear_solve`; and a barrier.

What solves an equation is not differentiated: the derivative of its solution follows from the
equation, by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import dtypes, tree_util
from minijax.core.avals import get_aval
from minijax.core.effects import NamedAxisEffect
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.linear_transpose import linear_transpose
from minijax.lax.arithmetic import neg_p
from minijax.lax.control_flow.common import check_callables, program_of, run_inline
from minijax.lax.control_flow.dependence import reached, split_list
from minijax.tracebacks import boundary
from minijax.transforms.batching import batch_jaxpr, to_front
from minijax.transforms.grad import linearize
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.primitives import add_tangents, instantiate
from minijax.transforms.tangents import Zero, is_undefined, zero_like

__all__ = ["custom_linear_solve", "custom_root", "linear_solve_p"]

_T = TypeVar("_T")

# -- custom_linear_solve: the primitive -----------------------------------------------------------


class _LinearSolveTuple(NamedTuple):
    """Something for each of the four functions."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> _LinearSolveTuple:
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


# Operands: the constants of the four programs, then the right-hand side. The results are the
# solution, of the types of the right-hand side, and whatever else `solve` gives.
linear_solve_p = Primitive("custom_linear_solve", multiple_results=True, holds_programs=True)


def _split(args: Sequence[Any], const_lengths: _LinearSolveTuple) -> tuple:
    *consts, b = split_list(args, *const_lengths)
    return _LinearSolveTuple(*consts), b


@linear_solve_p.shape_rule
def _(*avals, const_lengths, jaxprs):
    return jaxprs.solve.out_avals


@linear_solve_p.effects_rule
def _(*, jaxprs, **params):
    return jaxprs.solve.effects


@linear_solve_p.lower
def _(b, *args, const_lengths, jaxprs):
    consts, rhs = _split(args, const_lengths)
    return b.closed_jaxpr(jaxprs.solve, *consts.solve, *rhs)


@linear_solve_p.impl
def _(*args, const_lengths, jaxprs):
    # Its functions are traced anew at every call, while their operations are mostly compiled already.
    consts, rhs = _split(args, const_lengths)
    return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *consts.solve, *rhs)


@linear_solve_p.jvp
def _(primals, tangents, *, const_lengths, jaxprs):
    # A x = b, so A dx = db - dA x: the same solver with another right-hand side.
    outs = linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    consts, b = _split(primals, const_lengths)
    consts_dot, b_dot = _split(tangents, const_lengths)
    x = outs[: len(b)]
    rhs = list(b_dot)
    if any(type(t) is not Zero for t in consts_dot.matvec):
        matvec = jaxprs.matvec
        _, moved = jvp_flat(
            lambda *args: eval_jaxpr(matvec.jaxpr, matvec.consts, *args),
            [*consts.matvec, *x],
            [*consts_dot.matvec, *map(zero_like, x)],
        )
        rhs = [
            db if type(t) is Zero else add_tangents(db, neg_p.bind(t))
            for db, t in zip(b_dot, moved, strict=True)
        ]
    if all(type(t) is Zero for t in rhs):
        return outs, list(map(zero_like, outs))
    rhs = [instantiate(t) for t in rhs]
    dots = linear_solve_p.bind(
        *primals[: len(primals) - len(b)], *rhs, const_lengths=const_lengths, jaxprs=jaxprs
    )
    return outs, [*dots[: len(b)], *(zero_like(y) for y in outs[len(b) :])]


@linear_solve_p.transpose
def _(cts, *args, const_lengths, jaxprs):
    consts, b = _split(args, const_lengths)
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve: give transpose_solve, or symmetric=True if the matrix is."
        )
    cts = [instantiate(ct) for ct in cts[: len(b)]]
    outs = linear_solve_p.bind(
        *(c for group in consts.transposed() for c in group),
        *cts,
        const_lengths=const_lengths.transposed(),
        jaxprs=jaxprs.transposed(),
    )
    found = [ct if is_undefined(x) else None for ct, x in zip(outs, b, strict=False)]
    return [*[None] * (len(args) - len(b)), *found]


@linear_solve_p.batch_axis
def _(axis, args, dims, *, const_lengths, jaxprs):
    _, b = _split(args, const_lengths)
    const_dims, b_dims = _split(dims, const_lengths)
    effect = None if axis.name is None else NamedAxisEffect(axis.name)
    batched = [dim is not None for dim in b_dims]
    while True:  # the solution and the right-hand side are batched in the same places
        grown = batched
        for closed, group in zip(jaxprs, const_dims, strict=True):
            if closed is not None:
                flags = [*(dim is not None for dim in group), *grown]
                found = reached(closed.jaxpr, flags, effect=effect)
                grown = [a or new for a, new in zip(grown, found, strict=False)]
        if grown == batched:
            break
        batched = grown
    in_dims = [0 if flag else None for flag in batched]
    made, out_dims = [], []
    for closed, group in zip(jaxprs, const_dims, strict=True):
        if closed is None:
            made.append(None)
            continue
        front = [*batched, *[False] * (len(closed.out_avals) - len(b))]
        new, found = batch_jaxpr(closed, axis, [*group, *in_dims], front)
        made.append(new)
        out_dims.append(found)
    b = [
        to_front(x, dim, axis.size) if flag else x
        for x, dim, flag in zip(b, b_dims, batched, strict=True)
    ]
    outs = linear_solve_p.bind(
        *args[: len(args) - len(b)], *b,
        const_lengths=const_lengths, jaxprs=_LinearSolveTuple(*made),
    )  # fmt: skip
    return outs, out_dims[2 if made[1] is not None else 1]


# -- custom_linear_solve: the function ------------------------------------------------------------


@boundary
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[[Callable[..., Any], Any], Any],
    transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` by `solve(matvec, b)`, differentiable by implicit differentiation.

    - `matvec`: linear function from a pytree of arrays of the shapes and dtypes of `b` to such a
      pytree
    - `transpose_solve(vecmat, b)`: solver of the transpose, for reverse mode unless `symmetric`
    - `has_aux`: whether the solvers return `(x, aux)`, as this function then does

    The result has the structure and shapes of `b`. Neither solver is differentiated. TypeError for
    what is not callable, and in reverse mode without `transpose_solve`; ValueError where shapes
    differ.
    Source: Blondel et al., Efficient and Modular Implicit Differentiation (2022).

    >>> lax.custom_linear_solve(lambda x: 2 * x, jnp.array([4.0]), lambda mv, b: b / 2)
    Array([2.], dtype=float32)
    """
    given = (matvec, solve) if transpose_solve is None else (matvec, solve, transpose_solve)
    check_callables(
        "custom_linear_solve: the first argument must be callable, and so must the solvers.", *given
    )
    leaves, tree = tree_util.flatten(b)
    avals = [get_aval(x) for x in leaves]

    def trace(name, f):
        return program_of(name, f, (tree,), avals)

    traced = trace("matvec", matvec)
    _same_shapes("matvec", traced.closed.out_avals, avals)
    _same_structure("matvec", traced.out_tree, tree)
    solved = trace("solve", lambda b: solve(matvec, b))
    out_tree, aux_tree = _solution_trees(solved, tree, avals, has_aux, "solve")
    vecmat = back = None
    if symmetric:
        vecmat, back = traced, solved
    elif transpose_solve is not None:
        vecmat = _transposed(traced)
        flat = lambda y: out_tree.unflatten(
            run_inline(vecmat.closed, "vecmat", *vecmat.consts, *tree_util.flatten(y)[0])
        )
        back = trace("transpose_solve", lambda b: transpose_solve(flat, b))
        _solution_trees(back, tree, avals, has_aux, "transpose_solve")
    four = (traced, vecmat, solved, back)
    outs = linear_solve_p.bind(
        *(c for each in four if each is not None for c in each.consts),
        *leaves,
        const_lengths=_LinearSolveTuple(*(len(each.consts) if each else 0 for each in four)),
        jaxprs=_LinearSolveTuple(*(each and each.closed for each in four)),
    )
    x = tree.unflatten(outs[: len(leaves)])
    return (x, aux_tree.unflatten(outs[len(leaves) :])) if has_aux else x


def _solution_trees(solved, tree, avals, has_aux: bool, name: str) -> tuple[Any, Any]:
    """The structures of a solution and of the auxiliary data."""
    out_tree, aux_tree = _without_aux(name, solved.out_tree, has_aux)
    _same_shapes(name, solved.closed.out_avals[: out_tree.num_leaves], avals)
    _same_structure(name, out_tree, tree)
    return out_tree, aux_tree


def _without_aux(name: str, out_tree: Any, has_aux: bool) -> tuple[Any, Any]:
    """The structures of a result and of the auxiliary data beside it, None if there is none."""
    if not has_aux:
        return out_tree, None
    children = out_tree.children()
    if len(children) != 2:
        raise ValueError(
            f"{name}() produced a pytree with structure {out_tree}, but a pytree tuple with "
            "auxiliary output was expected because has_aux was set to True."
        )
    return children


def _same_structure(name: str, found: Any, wanted: Any, of: str = "b") -> None:
    if found != wanted:
        raise TypeError(
            f"{name}() output pytree structure must match {of}, got {found} and {wanted}."
        )


def _same_shapes(name: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    shapes = [[aval.shape for aval in avals] for avals in (found, wanted)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}() output shapes must match b, got {shapes[0]} and {shapes[1]}.")


class _Transposed:
    """The transpose of a traced linear function: the same constants, another program."""

    __slots__ = ("closed", "consts")

    def __init__(self, closed: ClosedJaxpr, consts: Sequence[Any]):
        self.closed, self.consts = closed, consts


def _transposed(matvec) -> _Transposed:
    closed, count = matvec.closed, len(matvec.consts)
    avals = closed.in_avals[count:]

    def vecmat(*args):
        # What does not depend on `x` is evaluated first, also within programs of which a part
        # depends on it: the function may be the tangent of a jitted one.
        back = linear_transpose(
            lambda *x: eval_jaxpr(closed.jaxpr, closed.consts, *args[:count], *x), *avals
        )
        return back(list(args[count:]))

    cts = [  # a map of integers has a transpose, while they have no cotangents
        aval if dtypes.issubdtype(aval.dtype, np.integer) else aval.to_cotangent_aval()
        for aval in closed.out_avals
    ]
    given = [*closed.in_avals[:count], *cts]
    make = lambda: trace_to_jaxpr(vecmat, given, closed.jaxpr.debug_info)
    return _Transposed(closed.derive("vecmat", make), matvec.consts)


# -- custom_root ----------------------------------------------------------------------------------


@boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[[Callable[..., Any], Any], Any],
    tangent_solve: Callable[[Callable[..., Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of `f` by `solve(f, initial_guess)`, differentiable by implicit differentiation.

    - `f`: function from a pytree like `initial_guess` to one of the same shapes and dtypes
    - `tangent_solve(g, y)`: solver of `g(x) = y` for a linear function `g`
    - `has_aux`: whether `solve` returns `(x, aux)`, as this function then does; aux has no
      derivative

    The result has the structure and shapes of `initial_guess`; neither `solve` nor the guess is
    differentiated. TypeError where structures differ.
    Source: Blondel et al., Efficient and Modular Implicit Differentiation (2022).

    >>> lax.custom_root(lambda x: x - 3, 0.0, lambda f, x: x - f(x), lambda g, y: y / g(1.0))
    Array(3., dtype=float32, weak_type=True)
    """
    leaves, tree = tree_util.flatten(initial_guess)
    avals = [get_aval(x) for x in leaves]
    f_traced = program_of("custom_root", f, (tree,), avals)
    _same_structure("f", f_traced.out_tree, tree, "initial_guess")
    solved = program_of("custom_root solve", lambda x: solve(f, x), (tree,), avals)
    out_tree, aux_tree = _without_aux("solve", solved.out_tree, has_aux)
    _same_structure("solve", out_tree, tree, "initial_guess")
    root_avals = solved.closed.out_avals[: tree.num_leaves]

    def step(x, y):
        _, linear = linearize(f, x)
        return tangent_solve(linear, y)

    stepped = program_of(
        "custom_root tangent_solve", step, (tree, tree),
        [*root_avals, *(a.to_tangent_aval() for a in f_traced.closed.out_avals)],
    )  # fmt: skip
    _same_structure("tangent_solve", stepped.out_tree, tree, "x")
    run = _root_function(f_traced.closed, solved.closed, stepped.closed, tree.num_leaves)
    outs = run(f_traced.consts, solved.consts, stepped.consts, leaves)
    x = out_tree.unflatten(outs[: tree.num_leaves])
    return (x, aux_tree.unflatten(outs[tree.num_leaves :])) if has_aux else x


def _root_function(f: ClosedJaxpr, solve: ClosedJaxpr, step: ClosedJaxpr, size: int) -> custom_jvp:
    """The function of all constants and the guess, with the derivative that `f` implies."""

    @custom_jvp
    def _custom_root(f_consts, solve_consts, step_consts, guess):
        return run_inline(solve, "solve", *solve_consts, *guess)

    @_custom_root.defjvp
    def _root_jvp(primals, tangents):
        f_consts, _, step_consts, _ = primals
        # A new function with this rule, since one that names itself would be a cycle.
        outs = _root_function(f, solve, step, size)(*primals)
        x = outs[:size]
        _, moved = jvp_flat(
            lambda *args: eval_jaxpr(f.jaxpr, f.consts, *args),
            [*f_consts, *x],
            [*map(_symbolic, f_consts, tangents[0]), *map(zero_like, x)],
        )
        aux = [instantiate(zero_like(y)) for y in outs[size:]]
        if all(type(t) is Zero for t in moved):
            return outs, [*(instantiate(zero_like(y)) for y in x), *aux]
        moved = [instantiate(t) for t in moved]
        dots = run_inline(step, "tangent_solve", *step_consts, *x, *moved)
        return outs, [*(neg_p.bind(t) for t in dots), *aux]

    return _custom_root


def _symbolic(primal: Any, tangent: Any) -> Any:
    """A tangent as a transform takes it: zero where the primal is no number to differentiate."""
    inexact = dtypes.issubdtype(get_aval(primal).dtype, np.inexact)
    return tangent if inexact else zero_like(primal)
