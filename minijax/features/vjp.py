"""The result of `vjp`: a linear map whose residuals can be inspected and changed, and whose
gradients can be added to references.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Var
from minijax.namespace import hiding
from minijax.transforms.linear_maps import Pullback, as_result
from minijax.transforms.linearize import linearize_flat
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import Zero, is_float0
from minijax.transforms.transpose import UNWANTED

__all__ = ["VJP", "DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded"]

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
    """Asks `with_refs` to give the gradient of this argument as a value."""

    __slots__ = ()


class DontWant(_Mark):
    """Tells `with_refs` that the gradient of this argument is not to be computed."""

    __slots__ = ()


class GradRef(_Mark):
    """The result in place of a gradient that has been added to the reference that was given."""

    __slots__ = ()


class DidntWant(_Mark):
    """The result in place of a gradient that was not wanted."""

    __slots__ = ()


class NotNeeded(_Mark):
    """The residual in place of an argument whose value the backward pass does not need."""

    __slots__ = ()


for _kind in (GradRef, DidntWant, NotNeeded):  # what is not there has no leaves
    tree_util.register_pytree_node(_kind, lambda x: ((), type(x)), lambda kind, children: kind())


def _adder(ref: Any):
    return lambda ct: ref.addupdate(instantiate(ct), Ellipsis)


def _left(ct: Any, place: Any) -> Any:
    """Return the value that stands in the place of a gradient."""
    if type(place) is GradValue:
        return instantiate(ct)
    return DidntWant() if type(place) is DontWant else GradRef()


# -- the linear map -------------------------------------------------------------------------------


class VJP(Pullback):
    """The linear map that `vjp` gives: cotangents of the outputs in, of the inputs out.

    A pytree of what the forward pass saved: `args_res` holds those values that are arguments, in
    their order and structure (as tuples), `NotNeeded()` standing for the others;
    `opaque_residuals` holds the rest. Both may be changed before the map is applied.
    """

    __dir__ = hiding(
        "check_places",
        "final_cotangents",
        "consts",
        "cotangents",
        "given",
        "in_avals",
        "live",
        "out_avals",
        "pull",
        "residuals",
    )

    def __init__(self, *program, primals=None):
        super().__init__(*program)
        self._refs: tuple[bool, ...] = ()  # which arguments are references that are differentiated
        self._finals: tuple[bool, ...] = ()  # which of these end with a value that has a tangent
        if primals is not None:  # until the residuals are sorted; others are to be freed
            saved = set(map(id, self.consts))
            primals = [x if id(x) in saved else None for x in primals]
        self._primals = primals
        self._places: tuple[tuple[bool, int], ...] | None = None

    def __repr__(self) -> str:
        """The linear program that is transposed, its trees, and what was saved for it."""
        return (
            f"VJP(jaxpr={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
            f"args_res={self.args_res}, opaque_residuals={self.opaque_residuals})"
        )

    def _sort(self) -> None:
        """Say which of the residuals are arguments, and the number of each among its kind."""
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

    def pull(self, given: Sequence[Any]) -> list[Any]:
        self.check_places([None] * len(self.in_avals))
        return super().pull(given)

    def check_places(self, places: Sequence[Any]) -> None:
        """Raise a ValueError for a reference whose gradient is given no reference to go to."""
        for aval, place, is_ref in zip(self.in_avals, places, self._refs, strict=False):
            if is_ref and not (hasattr(place, "addupdate") or type(place) is DontWant):
                raise ValueError(
                    f"Expected cotangent type Ref{{{aval.str_short()}}} but got {aval.str_short()}: "
                    "the gradient of a reference must be accumulated into a reference of its type. "
                    "Bind one before the call, as in f_vjp.with_refs(grad_ref)(cotangent), or "
                    "jax.ad.DontWant()."
                )

    def final_cotangents(self, places: Sequence[Any]) -> list[Any]:
        """Cotangents of what the references hold at the end: what their gradients' hold before."""
        refs = [
            (a, x) for a, x, flag in zip(self.in_avals, places, self._refs, strict=False) if flag
        ]
        return [
            instantiate(Zero(aval.to_cotangent_aval())) if type(place) is DontWant else place[...]
            for (aval, place), live in zip(refs, self._finals, strict=True)
            if live
        ]

    def _flatten(self) -> tuple[Any, tuple]:
        children = self.args_res, self.opaque_residuals
        avals = tuple(self.in_avals), tuple(self.out_avals)
        live = tuple(self.live)
        return children, (
            self.jaxpr, live, *avals, self.in_tree, self.out_tree,
            self._places, self._refs, self._finals,
        )  # fmt: skip

    @classmethod
    def _unflatten(cls, aux: tuple, children: Any) -> VJP:
        jaxpr, *rest, places, refs, finals = aux
        made = cls(jaxpr, None, *rest)
        made._refs, made._finals = refs, finals
        made._restore(places, *children)
        return made

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
    """Pull cotangents back to the places of gradients that `with_refs` was given."""
    vjp.check_places(places)
    finals, of_refs = vjp.final_cotangents(places), [None] * len(places)
    for n, flag in enumerate(vjp._refs):
        if flag and type(places[n]) is not DontWant:  # its gradient has what the reference held
            of_refs[n], places = places[n], [*places[:n], GradValue(), *places[n + 1 :]]
    none = [is_float0(aval.to_tangent_aval()) for aval in vjp.in_avals]
    inputs = [place for place, dead in zip(places, none, strict=True) if not dead]
    pairs = list(zip(vjp.jaxpr.invars, inputs, strict=True))
    carried = _carried(vjp, pairs)
    sums = {var: place[...] for var, place in carried.items()}
    sinks = {
        var: UNWANTED if type(place) is DontWant else _adder(place)
        for var, place in pairs
        if type(place) is not GradValue and var not in sums
    }
    results = vjp.cotangents([*vjp.given(cotangents), *finals], sinks=sinks, sums=sums)
    wanted = iter(vjp.jaxpr.invars)
    for ct, dead in zip(results, none, strict=True):
        var = None if dead else next(wanted)
        if var in carried and ct is not sums[var]:
            carried[var][...] = ct
    found = [_left(ct, place) for ct, place in zip(results, places, strict=True)]
    for n, ref in enumerate(of_refs):
        if ref is not None:
            ref[...], found[n] = found[n], GradRef()
    return vjp.in_tree.unflatten([x if isinstance(x, _Mark) else as_result(x) for x in found])


def _carried(vjp: VJP, pairs: Sequence[tuple]) -> dict[Any, Any]:
    """Return the references, by variable, whose values are carried through the backward pass.

    What programs within it (loops, `cond`, `jit`) contribute to these is then added to the value in
    place, where a gradient of its own would be as large as all of the argument. Not if anything else
    in the backward pass might write to the reference.
    """
    calls = [eqn for eqn in vjp.jaxpr.eqns if eqn.primitive.holds_programs]
    read = {var for eqn in calls for var in eqn.invars if type(var) is Var}
    refs = [place for _, place in pairs if hasattr(place, "addupdate")]
    others = [*map(id, refs), *map(id, vjp.residuals())]
    return {
        var: ref
        for var, ref in pairs
        if var in read and hasattr(ref, "addupdate") and others.count(id(ref)) == 1
        and _holds_sum(ref, var.aval.to_cotangent_aval())
    }  # fmt: skip


def _holds_sum(ref: Any, aval: Any) -> bool:
    """Whether a reference holds an array of the type of the cotangents that are added to it."""
    held = get_aval(ref).inner_aval
    return (held.shape, held.dtype, held.placement) == (aval.shape, aval.dtype, aval.placement)


def _is_not_needed(x: Any) -> bool:
    return type(x) is NotNeeded


def _is_missing(x: Any) -> bool:
    return x is None or type(x) is NotNeeded


def _as_tuples(tree: Any, leaves: Iterator[Any]) -> Any:
    if tree.num_nodes == tree.num_leaves == 1:
        return next(leaves)
    return tuple([_as_tuples(child, leaves) for child in tree.children()])


def _vjp_function(flat: Any, primals: Sequence[Any], in_tree: Any, pullback_of: Any) -> tuple:
    """See `core.hooks`."""
    if any(map(_is_differentiated_ref, primals)):
        return _of_refs(flat, primals, in_tree)
    outs, p = pullback_of(flat, primals, in_tree)
    program = p.jaxpr, p.consts, p.live, p.in_avals, p.out_avals, p.in_tree, p.out_tree
    return outs, VJP(*program, primals=primals)


def _is_differentiated_ref(x: Any) -> bool:
    if type(x) is ArrayImpl:
        return False
    held = getattr(getattr(x, "aval", None), "inner_aval", None)
    return held is not None and dtypes.issubdtype(held.dtype, np.inexact)


def _of_refs(flat: Any, leaves: Sequence[Any], in_tree: Any) -> tuple[list[Any], VJP]:
    """Differentiate with respect to what references hold at first.

    Within the function they are cells of the values; what these hold at the end, which the references
    get, are further results.
    """
    refs = {n: x for n, x in enumerate(leaves) if _is_differentiated_ref(x)}
    values = [refs[n][...] if n in refs else x for n, x in enumerate(leaves)]
    written: list[bool] = []

    def fun(*args):
        cells = {n: ref.aval.new_cell(iter([args[n]]), None) for n, ref in refs.items()}
        outs = flat(*[cells.get(n, x) for n, x in enumerate(args)])
        written[:] = [cell._written for cell in cells.values()]
        last = [cell._value for cell in cells.values()]
        return [*outs[: flat.count], *last, *outs[flat.count :]]

    outs, live, closed = linearize_flat(
        fun, values, count=lambda: flat.count + len(refs), kind="vjp"
    )
    count = flat.count
    for ref, value, changed in zip(refs.values(), outs[count:], written, strict=False):
        if changed:
            ref[...] = value
    outs = [*outs[:count], *outs[count + len(refs) :]]
    avals = [get_aval(x) for x in values], [get_aval(x) for x in outs[:count]]
    made = VJP(
        closed.jaxpr, closed.consts, live[:count], *avals, in_tree, flat.out_tree, primals=values
    )
    made._refs = tuple([n in refs for n in range(len(leaves))])
    made._finals = tuple(live[count:])
    return outs, made


hooks.fill(vjp_function=_vjp_function)
