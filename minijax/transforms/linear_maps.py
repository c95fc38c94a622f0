"""The linear maps that `linearize`, `vjp` and `linear_transpose` give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, as_value
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Jaxpr, Var, eval_jaxpr
from minijax.core.trace import Tracer, eval_trace
from minijax.tracebacks import boundary
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import UndefinedPrimal, Zero, float0_zeros, is_float0
from minijax.transforms.transpose import backward_pass

__all__ = [
    "LinearFunction", "LinearMap", "Pullback", "as_result", "short_type",
    "tangent_dtype",
]  # fmt: skip


def as_result(x: Any) -> Any:
    """Return a result as the user gets it: numbers become arrays."""
    if type(x) is ArrayImpl or isinstance(x, Tracer):
        return x
    if getattr(x, "dtype", None) == dtypes.float0:
        return np.asarray(x)
    if local.context.trace is eval_trace or isinstance(x, (np.generic, int, float, complex)):
        return as_value(x)
    return x


def tangent_dtype(t: Any) -> Any:
    """The dtype of a tangent or cotangent, float0 among them."""
    found = getattr(t, "dtype", None)
    return found if found == dtypes.float0 else getattr(get_aval(t), "dtype", None)


def short_type(x: Any) -> str:
    """The type of a tangent or cotangent, for messages."""
    return f"float0{np.shape(x)}" if tangent_dtype(x) == dtypes.float0 else get_aval(x).str_short()


class LinearMap:
    """A linear program on tangents, with its residuals; `live` marks the outputs that it computes.

    The other outputs are zero. Subclasses are pytrees whose leaves are the residuals, so that a jitted
    function may return them.
    """

    def __init__(self, jaxpr: Jaxpr, consts, live, in_avals, out_avals, in_tree, out_tree):
        self.jaxpr, self.consts, self.live = jaxpr, consts, live
        self.in_avals, self.out_avals = in_avals, out_avals
        self.in_tree, self.out_tree = in_tree, out_tree

    def __init_subclass__(cls) -> None:
        tree_util.register_pytree_node(cls, cls._flatten, cls._unflatten)

    def _flatten(self) -> tuple[Any, tuple]:
        avals = tuple(self.in_avals), tuple(self.out_avals)
        return self.consts, (self.jaxpr, tuple(self.live), *avals, self.in_tree, self.out_tree)

    @classmethod
    def _unflatten(cls, aux: tuple, consts: Any) -> LinearMap:
        return cls(aux[0], consts, *aux[1:])


class LinearFunction(LinearMap):
    """The linear map that `linearize` gives: tangents in, tangents out."""

    def __repr__(self) -> str:
        """The program, and the residuals, which are its constants."""
        return f"LinearFunction({self.jaxpr}, residuals={list(self.consts)})"

    def __call__(self, *tangents):
        leaves, tree = tree_util.flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(
                f"expected {self.in_tree}, got {tree}: the function that linearize returned takes "
                "tangents with the tree structure of the primals."
            )
        given = []
        for aval, t in zip(self.in_avals, leaves, strict=True):
            wanted = aval.to_tangent_aval()
            agrees = np.shape(t) == wanted.shape and tangent_dtype(t) == wanted.dtype
            if getattr(getattr(t, "aval", None), "placement", None) is not wanted.placement:
                agrees = agrees and hooks.is_cotangent_of(t, wanted)
            if not agrees:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values:\nGot tangent aval {short_type(t)} for primal aval "
                    f"{aval.str_short()} but expected {wanted.str_short()}. Give tangents of the "
                    "types of the primals."
                )
            if wanted.dtype != dtypes.float0:
                given.append(t)
        outs = iter(eval_jaxpr(self.jaxpr, self.consts, *given))
        zero = lambda aval: instantiate(Zero(aval.to_tangent_aval()))
        pairs = zip(self.live, self.out_avals, strict=True)
        found = [as_result(next(outs) if live else zero(aval)) for live, aval in pairs]
        return self.out_tree.unflatten(found)


class Pullback(LinearMap):
    """A linear map, applied backwards: cotangents of the outputs in, of the inputs out."""

    @boundary
    def __call__(self, *cotangents):
        return self.in_tree.unflatten([as_result(ct) for ct in self.pull(self.given(cotangents))])

    def given(self, cotangents: tuple) -> list[Any]:
        """The cotangents of the outputs that depend on the inputs, checked."""
        if len(cotangents) != 1:
            raise TypeError(
                f"The function returned by `jax.vjp` was called with {len(cotangents)} "
                "arguments, but functions returned by `jax.vjp` must be called with a single "
                "argument corresponding to the single value returned by the function being "
                "differentiated: one tuple where that returns a tuple."
            )
        leaves, tree = tree_util.flatten(cotangents[0])
        if tree != self.out_tree:
            self._refuse_tree(tree)
        for aval, ct in zip(self.out_avals, leaves, strict=True):
            self._check(aval, ct)
        return [ct for ct, live in zip(leaves, self.live, strict=True) if live]

    def _refuse_tree(self, tree) -> None:
        found = "\n".join(
            f"  * out{tree_util.keystr(path)} was a {wanted} in the original output, but a {given} "
            f"here, so {why}."
            for path, wanted, given, why in tree_util.differences(self.out_tree, tree)
        )
        raise ValueError(
            "unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` "
            "must match the pytree\nstructure of the result of the differentiated function.\n\n"
            f"But the tree structures differ:\n{found}"
        )

    def _check(self, aval, ct) -> None:
        wanted = aval.to_cotangent_aval()
        if not isinstance(wanted, ShapedArray):
            wanted.check_differentiated("vjp")
            return
        # Of an integer result a cotangent of any dtype is taken, and means nothing.
        agrees = wanted.dtype in (dtypes.float0, tangent_dtype(ct))
        placement = getattr(getattr(ct, "aval", None), "placement", None)
        if placement is not wanted.placement and wanted.dtype != dtypes.float0:
            agrees = agrees and hooks.is_cotangent_of(ct, wanted)
        if np.shape(ct) != wanted.shape or not agrees:
            raise ValueError(
                f"unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{short_type(ct)}, but expected {wanted.str_short()} because "
                "the corresponding output of the differentiated function had JAX type "
                f"{aval.str_short()}."
            )

    def residuals(self) -> Sequence[Any]:
        """The values of the constants of the program."""
        return self.consts

    def pull(self, given: Sequence[Any]) -> list[Any]:
        """Cotangents of all inputs from those of the outputs that depend on them."""
        return [instantiate(ct) for ct in self.cotangents(given)]

    def cotangents(self, given: Sequence[Any], **places: Mapping[Var, Any]) -> list[Any]:
        """Cotangents of all inputs, `Zero`s among them; `places` are as `backward_pass` takes them."""
        jaxpr = self.jaxpr
        args = [UndefinedPrimal(var.aval) for var in jaxpr.invars]
        found = iter(backward_pass(jaxpr, self.residuals(), args, given, outermost=True, **places))
        return [
            float0_zeros(aval.shape) if is_float0(aval.to_tangent_aval()) else next(found)
            for aval in self.in_avals
        ]
