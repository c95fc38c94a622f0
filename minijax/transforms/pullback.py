"""What `vjp` gives: the linear map of cotangents, its residuals, and where gradients are to go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, as_value
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Jaxpr
from minijax.core.trace import Tracer, eval_trace
from minijax.core.tracebacks import boundary
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import UndefinedPrimal, float0_zeros, is_float0
from minijax.transforms.transpose import UNWANTED, backward_pass

__all__ = [
    "VJP", "DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded", "Pullback", "as_result",
    "short_type", "tangent_dtype",
]  # fmt: skip


def as_result(x: Any) -> Any:
    """A value as a function gives it to its user: numbers become arrays."""
    if type(x) is ArrayImpl or isinstance(x, Tracer):
        return x
    if getattr(x, "dtype", None) == dtypes.float0:
        return np.asarray(x)
    if local.context.trace is eval_trace or isinstance(x, (np.generic, int, float, complex)):
        return as_value(x)
    return x


def tangent_dtype(t: Any) -> Any:
    """The dtype of a tangent or cotangent, float0 among them."""
    return dtypes.float0 if getattr(t, "dtype", None) == dtypes.float0 else get_aval(t).dtype


def short_type(x: Any) -> str:
    """The type of a tangent or cotangent, for messages."""
    return f"float0{np.shape(x)}" if tangent_dtype(x) == dtypes.float0 else get_aval(x).str_short()


# -- marks in place of values ---------------------------------------------------------------------


class _Mark:
    """A value without content: all of one class are equal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """To `with_refs`: give the gradient of this argument as a value."""

    __slots__ = ()


class DontWant(_Mark):
    """To `with_refs`: the gradient of this argument is not to be computed."""

    __slots__ = ()


class GradRef(_Mark):
    """In place of a gradient: it has been added to the reference that was given."""

    __slots__ = ()


class DidntWant(_Mark):
    """In place of a gradient that was not wanted."""

    __slots__ = ()


class NotNeeded(_Mark):
    """In place of an argument whose value the backward pass does not need."""

    __slots__ = ()


for _kind in (GradRef, DidntWant, NotNeeded):  # what is not there has no leaves
    tree_util.register_pytree_node(_kind, lambda x: ((), type(x)), lambda kind, children: kind())


# -- the linear map -------------------------------------------------------------------------------


class Pullback:
    """A linear map that is transposed: cotangents of the outputs in, of the inputs out.

    Its kinds are pytrees whose leaves are the residuals: a jitted function may return them.
    """

    def __init__(self, jaxpr: Jaxpr, consts, live, in_avals, out_avals, in_tree, out_tree):
        self.jaxpr, self.consts, self.live = jaxpr, consts, live
        self.in_avals, self.out_avals = in_avals, out_avals
        self.in_tree, self.out_tree = in_tree, out_tree

    @boundary
    def __call__(self, *cotangents):
        return self.in_tree.unflatten([as_result(ct) for ct in self.pull(self.given(cotangents))])

    def given(self, cotangents: tuple) -> list[Any]:
        """The cotangents of the outputs that depend on the inputs, checked."""
        if len(cotangents) != 1:
            raise TypeError(
                f"The function returned by `minijax.vjp` was called with {len(cotangents)} "
                "arguments, but functions returned by `minijax.vjp` must be called with a single "
                "argument corresponding to the single value returned by the function being "
                "differentiated: one tuple where that returns a tuple."
            )
        (cotangents,) = cotangents
        leaves, tree = tree_util.flatten(cotangents)
        if tree != self.out_tree:
            self._refuse_tree(tree)
        for aval, ct in zip(self.out_avals, leaves, strict=True):
            self._check(aval, ct)
        return [ct for ct, live in zip(leaves, self.live, strict=True) if live]

    def _refuse_tree(self, tree) -> None:
        raise ValueError(
            "unexpected tree structure of the argument to a VJP function: it must match the pytree "
            f"structure of the output of the differentiated function, {self.out_tree}; got {tree}."
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
            agrees = agrees and hooks.is_cotangent_of(get_aval(ct), wanted)
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

    def pull(self, given: Sequence[Any], places: Sequence[Any] | None = None) -> list[Any]:
        """Cotangents of all inputs from those of the outputs that depend on them.

        `places` says of each input where its cotangent is to go, as `VJP.with_refs` does.
        """
        jaxpr = self.jaxpr
        args = [UndefinedPrimal(var.aval) for var in jaxpr.invars]
        dead = [is_float0(aval.to_tangent_aval()) for aval in self.in_avals]
        sinks = {}
        if places is not None:
            inputs = [p for p, none in zip(places, dead, strict=True) if not none]
            sinks = {
                var: UNWANTED if type(place) is DontWant else _adder(place)
                for var, place in zip(jaxpr.invars, inputs, strict=True)
                if type(place) is not GradValue
            }
        found = iter(
            backward_pass(jaxpr, self.residuals(), args, given, outermost=True, sinks=sinks)
        )
        results = [
            float0_zeros(aval.shape) if none else next(found)
            for aval, none in zip(self.in_avals, dead, strict=True)
        ]
        if places is None:
            return [instantiate(ct) for ct in results]
        return [_left(ct, place) for ct, place in zip(results, places, strict=True)]


def _adder(ref: Any):
    return lambda ct: ref.addupdate(instantiate(ct), Ellipsis)


def _left(ct: Any, place: Any) -> Any:
    """What stands in the place of a gradient."""
    if type(place) is GradValue:
        return instantiate(ct)
    return DidntWant() if type(place) is DontWant else GradRef()


# -- what vjp gives -------------------------------------------------------------------------------


class VJP(Pullback):
    """The linear map that `vjp` gives: cotangents of the outputs in, of the inputs out.

    A pytree of what the forward pass saved: `args_res` holds those values that are arguments, in
    their order and structure (as tuples), `NotNeeded()` standing for the others;
    `opaque_residuals` holds the rest. Both may be changed before the map is applied.
    """

    def __init__(self, *program, primals=None):
        super().__init__(*program)
        self._primals = primals  # until the residuals are sorted
        self._places: tuple[tuple[bool, int], ...] | None = None

    def __repr__(self) -> str:
        """The linear program that is transposed, its trees, and what was saved for it."""
        return (
            f"VJP(jaxpr={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
            f"args_res={self.args_res}, opaque_residuals={self.opaque_residuals})"
        )

    def _sort(self) -> None:
        """Which of the residuals are arguments, and the number of each among its kind."""
        numbers: dict[int, int] = {}
        for n, x in enumerate(self._primals):
            numbers.setdefault(id(x), n)
        opaque: list[Any] = []
        places = []
        kept = [NotNeeded()] * len(self._primals)
        for x in self.consts:
            n = numbers.get(id(x))
            places.append((n is not None, len(opaque) if n is None else n))
            if n is None:
                opaque.append(x)
            else:
                kept[n] = x
        leaves = iter(kept)
        arguments = [_as_tuples(tree, leaves) for tree in self.in_tree.children()]
        self._restore(tuple(places), arguments, opaque)

    def _restore(self, places: tuple, args_res: Any, opaque: Any) -> None:
        self._places, self._args_res, self._opaque = places, args_res, opaque
        self._primals = self.consts = None

    def _sorted(self) -> VJP:
        if self._places is None:
            self._sort()
        return self

    args_res = property(
        lambda self: self._sorted()._args_res,
        lambda self, value: setattr(self._sorted(), "_args_res", value),
    )
    opaque_residuals = property(
        lambda self: self._sorted()._opaque,
        lambda self, value: setattr(self._sorted(), "_opaque", value),
    )

    def residuals(self) -> Sequence[Any]:
        """The values of the constants of the program, as they stand in the two attributes now."""
        if self._places is None:
            return self.consts
        count = self.in_tree.num_leaves
        arguments = tree_util.tree_leaves(self._args_res, is_leaf=_is_not_needed)
        if len(arguments) != count:  # what has been taken out by writing None
            arguments = tree_util.tree_leaves(self._args_res, is_leaf=_is_missing)
        if len(arguments) != count:
            raise ValueError(
                f"args_res of a VJP function must have the structure of the arguments, {count} "
                f"leaves; it has {len(arguments)}: {self._args_res}."
            )
        missing = [n for own, n in self._places if own and _is_missing(arguments[n])]
        if missing:
            raise ValueError(
                "This VJP function needs argument values that are not in its args_res: of the "
                f"leaves of the arguments, number {', '.join(map(str, missing))}. Assign them to "
                "args_res before it is called."
            )
        return [arguments[n] if own else self._opaque[n] for own, n in self._places]

    def with_refs(self, *places: Any) -> tree_util.Partial:
        """This map with a place for each gradient: what is returned takes cotangents.

        For each leaf of the arguments `places` has a reference, to which the gradient is added,
        `GradValue()` for the value, or `DontWant()`. ValueError where the structure differs.
        """
        leaves, tree = tree_util.flatten(places)
        if tree != self.in_tree:
            raise ValueError(
                "with_refs takes an entry (a reference, GradValue() or DontWant()) for each leaf of "
                f"the arguments: expected the structure {self.in_tree}, got {tree}."
            )
        leaves = [
            x if hasattr(x, "addupdate") or type(x) is DontWant else GradValue() for x in leaves
        ]
        return tree_util.Partial(_pull_into, self, leaves)


def _pull_into(vjp: VJP, places: list[Any], *cotangents: Any) -> Any:
    found = vjp.pull(vjp.given(cotangents), places)
    return vjp.in_tree.unflatten([x if isinstance(x, _Mark) else as_result(x) for x in found])


def _is_not_needed(x: Any) -> bool:
    return type(x) is NotNeeded


def _is_missing(x: Any) -> bool:
    return x is None or type(x) is NotNeeded


def _as_tuples(tree: Any, leaves: Iterator[Any]) -> Any:
    if tree.num_nodes == tree.num_leaves == 1:
        return next(leaves)
    return tuple([_as_tuples(child, leaves) for child in tree.children()])


def _flatten(f: VJP):
    children = (f.args_res, f.opaque_residuals)
    return children, (
        f.jaxpr, tuple(f.live), tuple(f.in_avals), tuple(f.out_avals), f.in_tree, f.out_tree, f._places,
    )  # fmt: skip


def _unflatten(aux, children):
    jaxpr, *rest, places = aux
    made = VJP(jaxpr, None, *rest)
    made._restore(places, *children)
    return made


tree_util.register_pytree_node(VJP, _flatten, _unflatten)
