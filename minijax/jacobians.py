"""Jacobians and Hessians: derivative functions mapped over a basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.derivatives import check_input, chosen_numbers, is_int, positions
from minijax.arguments.functions import check_callable
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.trace import eval_trace
from minijax.lax.compare import eq
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.creation import broadcasted_iota
from minijax.lax.shapes import reshape
from minijax.lax.slicing import slice_in_dim
from minijax.namespace import named
from minijax.transforms.batching import AxisData, batch_flat, to_front
from minijax.transforms.grad import (
    FlatFunction,
    OneArgument,
    documented,
    pullback_of,
    with_arguments,
)
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.linear_maps import as_result
from minijax.transforms.primitives import instantiate, moveaxis
from minijax.transforms.tangents import float0_zeros

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]

_P = ParamSpec("_P")


def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]:
    """Make a function that returns the Jacobian of `fun`, column by column in forward mode.

    - `fun`: function of pytrees of floating-point arrays, by `argnums`, an integer or a sequence
    - `has_aux`: whether `fun` returns `(out, aux)`; `holomorphic`: whether it is complex

    For an output of shape s and an input of shape t the Jacobian has shape (*s, *t). It costs less
    than `jacrev` if the input is the smaller one. TypeError for integer inputs.
    Source: forward-mode automatic differentiation (Wengert, 1964).

    >>> jax.jacfwd(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, False, "jacfwd")


def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]:
    """Make a function that returns the Jacobian of `fun`, row by row in reverse mode.

    - `fun`: function of pytrees of floating-point arrays, by `argnums`, an integer or a sequence
    - `has_aux`: whether `fun` returns `(out, aux)`; `holomorphic`: whether it is complex
    - `allow_int`: whether inputs may be integers

    For an output of shape s and an input of shape t the Jacobian has shape (*s, *t). It costs less
    than `jacfwd` if the output is the smaller one. TypeError for integer inputs.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> jax.jacrev(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, "jacrev")


jacobian = named(jacrev, "jacobian", __name__)


def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]:
    """Make a function that returns the Hessian of `fun`: the forward-mode Jacobian of its gradient.

    - `fun`: function of pytrees of floating-point arrays, by `argnums`, an integer or a sequence
    - `has_aux`: whether `fun` returns `(out, aux)`; `holomorphic`: whether it is complex

    For an output of shape s and an input of shape t the Hessian has shape (*s, *t, *t). TypeError
    for integer inputs.
    Source: forward over reverse mode (Pearlmutter, 1994).

    >>> jax.hessian(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _jacobian(fun, argnums, has_aux, holomorphic, allow_int, transform):
    check_callable(fun)
    numbers = chosen_numbers(argnums)
    single = is_int(argnums)

    def jacobian_of(*args, **kwargs):
        count = len(args)
        chosen = positions(numbers, count)
        dynamic = args[chosen[0]] if single else tuple([args[n] for n in chosen])
        leaves, in_tree = tree_util.flatten(dynamic)
        for x in leaves:
            _check_jacobian_input(x, holomorphic, allow_int, transform)
        call = with_arguments(fun, args, kwargs, chosen, single)
        flat = FlatFunction(call, OneArgument(in_tree), has_aux, transform)
        build = _columns if transform == "jacfwd" else _rows
        blocks, outs = build(flat, leaves, holomorphic, transform)
        _, aux = flat.results(outs)
        rows = [in_tree.unflatten([as_result(b) for b in row]) for row in blocks]
        result = flat.out_tree.unflatten(rows)
        return (result, aux) if has_aux else result

    return documented(jacobian_of, fun, "Jacobian")


def _check_jacobian_input(x, holomorphic, allow_int, transform) -> None:
    dtype = get_aval(x).dtype
    real = dtypes.issubdtype(dtype, np.floating)
    if transform == "jacfwd" and not (holomorphic or real):
        raise TypeError(
            f"jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), "
            f"but got {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For "
            "differentiation of non-holomorphic functions involving complex inputs or integer "
            "inputs, use jax.jvp directly."
        )
    check_input(x, holomorphic, allow_int, transform)


def _check_jacobian_output(outs, holomorphic, transform) -> None:
    for x in outs:
        dtype = get_aval(x).dtype
        if holomorphic:
            if not dtypes.issubdtype(dtype, np.complexfloating):
                raise TypeError(
                    f"{transform} with holomorphic=True requires outputs with complex dtype, but "
                    f"got {dtype.name}."
                )
        elif transform == "jacrev" and not dtypes.issubdtype(dtype, np.floating):
            raise TypeError(
                f"jacrev requires real-valued outputs (output dtype that is a sub-dtype of "
                f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
                "holomorphic=True. For differentiation of non-holomorphic functions involving "
                "complex outputs, or of functions with integer outputs, use jax.vjp directly."
            )


def _basis(avals: Sequence[Any], transform: str) -> list[Any]:
    """Return for each aval the unit directions of all of them: together an identity matrix."""
    if not avals:
        what = "input" if transform == "jacfwd" else "output"
        raise ValueError(
            f"at least one array or dtype is required: {transform} was given a function whose {what} "
            "is a pytree without leaves."
        )
    total = sum(aval.size for aval in avals)
    start, parts = 0, []
    for aval in avals:
        part = _identity(total, aval.size, start, aval.dtype).reshape(total, *aval.shape)
        parts.append(to_dtype(part, part.dtype, True) if aval.weak_type else part)
        start += aval.size
    return parts


def _identity(rows: int, columns: int, start: int, dtype: Any) -> Any:
    """So many columns of an identity matrix, written in a program without a constant of its size."""
    if local.context.trace is eval_trace:
        return np.eye(rows, columns, -start, dtype)
    row, column = (broadcasted_iota(np.int32, (rows, columns), axis) for axis in (0, 1))
    return convert_element_type(eq(row, column + np.int32(start) if start else column), dtype)


def _columns(flat, leaves, holomorphic, transform):
    avals = [get_aval(x) for x in leaves]
    total = sum(aval.size for aval in avals)
    kept: list[Any] = []

    def push(*tangents):
        outs, dots = jvp_flat(flat, leaves, tangents)
        kept[:] = outs
        return [instantiate(t) for t in dots[: flat.count]]

    axis = AxisData(None, total)
    dots, dims = batch_flat(push, axis, _basis(avals, transform), [0] * len(avals))
    outs = kept
    _check_jacobian_output(outs[: flat.count], holomorphic, transform)
    blocks = []
    for out, dot, dim in zip(outs, dots, dims, strict=False):
        ndim = get_aval(out).ndim
        if getattr(dot, "dtype", None) == dtypes.float0:  # an integer output does not change
            shapes = [(*get_aval(out).shape, *aval.shape) for aval in avals]
            blocks.append([np.zeros(shape, get_aval(out).dtype) for shape in shapes])
            continue
        if get_aval(out).weak_type and not get_aval(dot).weak_type:
            dot = to_dtype(dot, dot.dtype, True)
        last = moveaxis(to_front(dot, dim, total), 0, ndim)
        blocks.append(_split(last, ndim, avals))
    return blocks, outs


def _rows(flat, leaves, holomorphic, transform):
    outs, pullback = pullback_of(flat, leaves, None)
    out_avals = [get_aval(x) for x in outs[: flat.count]]
    _check_jacobian_output(outs[: flat.count], holomorphic, transform)
    total = sum(aval.size for aval in out_avals)

    def pull(*cotangents):
        given = [ct for ct, live in zip(cotangents, pullback.live, strict=True) if live]
        return pullback.pull(given)

    axis = AxisData(None, total)
    cts, dims = batch_flat(pull, axis, _basis(out_avals, transform), [0] * len(out_avals))
    columns = [
        _split_row(ct, dim, total, out_avals, get_aval(leaf))
        for leaf, ct, dim in zip(leaves, cts, dims, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)], outs


def _split_row(ct: Any, dim: Any, total: int, out_avals: Sequence[Any], leaf: Any) -> list[Any]:
    if getattr(ct, "dtype", None) == dtypes.float0:  # no output changes with an integer, or a key
        shapes = [(*aval.shape, *ct.shape) for aval in out_avals]
        if dtypes.is_extended(leaf.dtype):
            return [float0_zeros(shape) for shape in shapes]
        zeros = [np.zeros(shape, leaf.dtype) for shape in shapes]
        return [to_dtype(x, x.dtype, True) for x in zeros] if leaf.weak_type else zeros
    if leaf.weak_type and not get_aval(ct).weak_type:
        ct = to_dtype(ct, ct.dtype, True)
    return _split(to_front(ct, dim, total), 0, out_avals)


def _split(x: Any, axis: int, avals: Sequence[Any]) -> list[Any]:
    """Cut the axis of directions into one block per aval, which takes the aval's own shape."""
    start, blocks = 0, []
    for aval in avals:
        part = x
        if len(avals) > 1:
            part = slice_in_dim(x, start, start + aval.size, axis=axis)
        shape = (*x.shape[:axis], *aval.shape, *x.shape[axis + 1 :])
        blocks.append(reshape(part, shape))
        start += aval.size
    return blocks
