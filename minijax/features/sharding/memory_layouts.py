"""The order in which the dimensions of arrays lie in memory: of arguments, results and values within.

An argument is compiled for as it lies, a result lies as its device prefers, unless `jit` is asked for
a `Layout`, or for `Layout.AUTO`, with which XLA chooses. A module says so of its arguments and results
as `mhlo.layout_mode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.arrays.array import ArrayImpl, Signature
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Jaxpr
from minijax.core.primitive import Primitive
from minijax.dtypes import is_extended
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.lowering.types import physical
from minijax.runtime.layouts import Format, Layout, placed, preferred
from minijax.runtime.mesh import axes_of
from minijax.transforms.batching import BatchTrace

__all__ = [
    "ProgramLayouts", "asked_place_p", "asked_places", "check_layout", "layout_constraint_p",
    "layout_of",
]  # fmt: skip


def layout_of(place: Any) -> Any:
    """Return the layout that a place says; None if it is a sharding alone."""
    return place.layout if isinstance(place, Format) else None


def check_layout(what: str, layout: Any, shape: Sequence[int]) -> None:
    """ValueError for a `Layout` of another number of dimensions; `what` it is of is said."""
    if isinstance(layout, Layout):
        try:
            layout.check_compatible_aval(shape)
        except ValueError as error:
            raise ValueError(
                f"One of {what} is incompatible with its layout annotation {layout}: {error}"
            ) from None


class ProgramLayouts:
    """The layouts that the arguments and results of a program are to have.

    Each is a `Layout`, `Layout.AUTO`, or None, which is the one that the device prefers.
    """

    __slots__ = ("_avals", "ins", "outs")

    def __init__(
        self, jaxpr: Jaxpr, signatures: Sequence[Signature], places: Sequence[Any],
        asked_in: Sequence[Any], asked_out: Sequence[Any], identities: Sequence[Primitive],
    ) -> None:  # fmt: skip
        self._avals = [signature.aval for signature in signatures]
        self.ins = list(map(_of_argument, signatures, places, asked_in))
        constrained = _constrained(jaxpr, identities)
        self.outs = [
            Layout.AUTO
            if var in constrained and layout_of(asked) is None
            else _asked(var.aval, asked)
            for var, asked in zip(jaxpr.outvars, asked_out, strict=True)
        ]

    @property
    def are_default(self) -> bool:
        return all(layout is None for layout in (*self.ins, *self.outs))

    def modes(self, hidden: int) -> tuple[list[str], list[str]]:
        """Return what is said of arguments, the first of which are hidden, and results in a module."""
        return [""] * hidden + list(map(_mode, self.ins)), list(map(_mode, self.outs))

    def places(
        self, ins: Sequence[Any], outs: Sequence[Any], out_avals: Sequence[Any], executable: Any
    ) -> tuple[list[Any], list[Any]]:
        """Return the places of arguments and results, from their shardings and the executable."""
        found = executable.get_parameter_layouts()
        found = found[len(found) - len(ins) :]
        avals = list(map(physical, self._avals))
        return (
            list(map(_place, self.ins, found, ins, avals)),
            list(map(_place, self.outs, executable.get_output_layouts(), outs, out_avals)),
        )


def _constrained(jaxpr: Jaxpr, identities: Sequence[Primitive]) -> set[Any]:
    """Return the variables that have a layout constraint, also where `identities` follow it."""
    found: set[Any] = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive is layout_constraint_p or (
            found and eqn.primitive in identities and not found.isdisjoint(eqn.invars)
        ):
            found.update(eqn.outvars)
    return found


def _asked(aval: Any, asked: Any) -> Any:
    """Return the layout that is asked for; None for what is no array of numbers."""
    return None if is_extended(getattr(aval, "dtype", None)) else layout_of(asked)


def _of_argument(signature: Signature, where: Any, asked: Any) -> Any:
    """Return the layout of an argument: as asked for, else as it lies if it stays where it is.

    That of a type may be open, `Layout.AUTO`.
    """
    own, aval = layout_of(signature.place), signature.aval
    wanted = _asked(aval, asked)
    if wanted is None:
        return own if where == signature.sharding and own is not Layout.AUTO else None
    if not signature.committed or own is Layout.AUTO:
        return wanted
    lies = own or preferred(where, physical(aval))
    if wanted is Layout.AUTO:
        raise ValueError(
            _mismatch(wanted, lies, aval)
            + " The layout given to `jax.jit` is `Layout.AUTO` but the corresponding argument passed "
            "is a `jax.Array` with a concrete layout. Consider passing a `jax.ShapeDtypeStruct` "
            "instead of `jax.Array` as an argument to the jitted function when using `Layout.AUTO`."
        )
    if (
        wanted.major_to_minor != lies.major_to_minor
        or (wanted.tiling or lies.tiling) != lies.tiling
    ):
        raise ValueError(
            _mismatch(wanted, lies, aval)
            + " Put it there with minijax.device_put(x, Format(layout, sharding))."
        )
    return wanted


def _mismatch(wanted: Any, own: Any, aval: Any) -> str:
    return (
        "Layout passed to jit does not match the layout on the respective arg. Got jit layout: "
        f"{wanted},\narg layout: {own} for arg type: {aval.str_short()}."
    )


def _mode(layout: Any) -> str:
    """Return a layout as a module says it."""
    if layout is None:
        return ""
    return "auto" if layout is Layout.AUTO else layout.as_xla()


def _place(layout: Any, found: Any, where: Any, aval: Any) -> Any:
    return where if layout is None else placed(found, where, aval)


# -- what a jit is asked for, in its program -------------------------------------------------------


class _AskedPlace(Primitive):
    """The identity, which says where an argument or a `result` of a jit is to lie."""

    __slots__ = ()

    def bind(self, x, *, place, result):
        if layout_of(place) is not None and type(local.context.trace) is BatchTrace:
            raise NotImplementedError(
                "Concrete layouts are not supported for vmap(jit). Apply vmap to the function inside, "
                "as in jit(vmap(f), in_shardings=...), with a layout of all dimensions."
            )
        return super().bind(x, place=place, result=result)


def _says_where(name: str, kind: type[Primitive] = Primitive) -> Primitive:
    """A primitive that says of its operand where it lies; derivatives lie there too."""
    p = kind(name)
    p.shape_rule(lambda x, **params: x)

    @p.jvp
    def _(primals, tangents, **params):
        (x,), (t,) = primals, tangents
        return p.bind(x, **params), p.bind(t, **params)

    @p.transpose
    def _(ct, x, **params):
        return [p.bind(ct, **params)]

    return p


asked_place_p = _says_where("asked_place", _AskedPlace)
asked_place_p.impl(lambda x, **params: x)
set_layout(asked_place_p, parts=in_shape_rule)


@asked_place_p.lower
def _(b, x, *, place, result):
    return b.split(x, place) if hasattr(place, "mesh") else x


@asked_place_p.batch_axis
def _(axis, args, dims, *, place, result):
    (x,), (dim,) = args, dims
    if hasattr(place, "mesh"):
        parts, split = [*place.spec.partitions], axes_of(axis.spmd_name or axis.split)
        parts += [None] * (x.ndim - 1 - len(parts))
        parts.insert(dim, split if place.spec.split_axes.isdisjoint(split) else None)
        place = place.with_parts(parts)
    return asked_place_p.bind(x, place=place, result=result), dim


@asked_place_p.transpose
def _(ct, x, *, place, result):
    return [asked_place_p.bind(ct, place=place, result=not result)]


def asked_places(jaxpr: Jaxpr) -> tuple[list[Any], list[Any]]:
    """Return the places that a program is asked for, of its arguments and of its results; or None.

    Those over the Auto axes of a mesh are constraints within it.
    """
    ins, outs = {}, {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is asked_place_p:
            found, var = (outs, eqn.outvars[0]) if eqn.params["result"] else (ins, eqn.invars[0])
            found[var] = eqn.params["place"]
    return [ins.get(var) for var in jaxpr.invars], [outs.get(var) for var in jaxpr.outvars]


# -- values within a program -----------------------------------------------------------------------

layout_constraint_p = _says_where("layout_constraint")


@layout_constraint_p.impl
def _(x, *, layout):
    there = hooks.moved(x, Format(layout, x.sharding), False)
    return ArrayImpl(there._buffer, Signature(x.aval, there.signature.place, True))


@layout_constraint_p.batch
def _(args, dims, *, layout):
    # The batch dimension varies slowest, so that each element lies as was asked.
    (x,), (dim,) = args, dims
    order = (dim, *[d + (d >= dim) for d in layout.major_to_minor])
    return layout_constraint_p.bind(x, layout=layout.update(major_to_minor=order)), dim


@layout_constraint_p.lower
def _(b, x, *, layout):
    rank, given = physical(x.aval).ndim, layout.major_to_minor
    if sorted(given) != list(range(len(given))):
        raise ValueError(
            f"with_layout_constraint: major_to_minor={given} is no permutation of the dimensions 0 to "
            f"{len(given) - 1} of a value of shape {x.aval.shape}."
        )
    order = (*given, *range(len(given), rank))[::-1]
    return b.custom_call(
        "LayoutConstraint", (x,), b.outs, config='""', api_version=1, layouts=([order], [order])
    )[0]
