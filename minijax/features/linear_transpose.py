"""`linear_transpose`: the adjoint of a function that is linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.derivatives import no_reduce_axes
from minijax.arguments.functions import check_callable
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.staging import PartialTrace
from minijax.transforms.grad import FlatFunction
from minijax.transforms.linear_maps import Pullback, short_type
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import UndefinedPrimal, Zero
from minijax.transforms.transpose import backward_pass

__all__ = ["linear_transpose"]


def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """Transpose a linear function.

    - `fun`: function that is linear in `primals`
    - `primals`: arrays, or objects with `shape` and `dtype`: values are not used
    - `reduce_axes`: must be empty

    The result is a function from a cotangent of the output to a tuple of cotangents of the primals'
    shapes and dtypes. TypeError where `fun` is not linear.
    Source: the adjoint of a linear map.

    >>> jax.linear_transpose(lambda x: 2 * x, jnp.ones(2))(jnp.array([1.0, 3.0]))
    (Array([2., 6.], dtype=float32),)
    """
    check_callable(fun)
    no_reduce_axes("linear_transpose", reduce_axes)
    leaves, in_tree = tree_util.flatten(primals)
    in_avals = [_type_of(x) for x in leaves]
    context = local.context
    outer = context.trace
    trace = PartialTrace(outer)
    flat = FlatFunction(fun, in_tree, False, "linear_transpose")
    context.trace = trace
    try:
        outs = flat(*[trace.new_arg(aval) for aval in in_avals])
        out_avals = [get_aval(x) for x in outs]
        closed = trace.closed([x for x in outs if trace.is_unknown(x)])
        live = [trace.is_unknown(x) for x in outs]
    finally:
        trace.end()
        context.trace = outer
    kinds = {_differentiable_kind(aval.dtype) for aval in [*in_avals, *out_avals]}
    if len(kinds) > 1 or kinds - {"f", "i"}:
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and "
            f"integer -> integer functions, but got {[a.str_short() for a in in_avals]} -> "
            f"{[a.str_short() for a in out_avals]}."
        )
    program = closed.jaxpr, closed.consts, live, in_avals, out_avals, in_tree, flat.out_tree
    return _Transposed(*program)


class _Transposed(Pullback):
    """The linear map that `linear_transpose` gives: cotangents of the results in, of the primals out."""

    def _refuse_tree(self, tree) -> None:
        raise TypeError(
            f"cotangent tree does not match function output, expected {self.out_tree} but got "
            f"{tree}."
        )

    def _check(self, aval, ct) -> None:
        if np.shape(ct) != aval.shape or get_aval(ct).dtype != aval.dtype:
            raise TypeError(
                "cotangent type does not match function output, expected "
                f"({aval!r},) but got [{ct!r}]. It is of type {short_type(ct)}."
            )

    def pull(self, given: Sequence[Any]) -> list[Any]:
        jaxpr = self.jaxpr
        args = [UndefinedPrimal(var.aval) for var in jaxpr.invars]
        cts = [  # numbers have the type of what they are cotangents of
            ct if not isinstance(ct, (bool, int, float, complex))
            else as_value(ct) if var.aval.weak_type else np.asarray(ct, var.aval.dtype)
            for ct, var in zip(given, jaxpr.outvars, strict=True)
        ]  # fmt: skip
        found = backward_pass(jaxpr, self.consts, args, cts, outermost=True)
        return [
            instantiate(Zero(aval) if type(ct) is Zero else ct)
            for ct, aval in zip(found, self.in_avals, strict=True)
        ]


def _type_of(x: Any) -> Any:
    if isinstance(x, ShapedArray):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        return get_aval(np.broadcast_to(np.zeros((), x.dtype), x.shape))
    return get_aval(x)


def _differentiable_kind(dtype: Any) -> str:
    if dtypes.issubdtype(dtype, np.inexact):
        return "f"
    return "i" if dtypes.issubdtype(dtype, np.integer) else "b"
