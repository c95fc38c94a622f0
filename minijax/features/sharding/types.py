"""Placements: what the type of an array says of where its values lie.

Over the explicit axes of a mesh it says how dimensions are split, over manual axes whether values
vary or are sums, and which memory they are in. `ShapedArray.placement` is None for the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minijax.core.avals import ShapedArray
from minijax.core.hooks import hooks
from minijax.features.sharding.memory import MemorySpace, space_of, within
from minijax.runtime.mesh import AxisType, PartitionSpec, get_abstract_mesh
from minijax.runtime.named_sharding import IndivisibleError, NamedSharding

__all__ = [
    "MEMBERS", "ManualAxisType", "Placement", "check_manual", "check_size", "explicit_of", "placed", "placement_of", "vma_of", "with_placement",
    "without_placement",
]  # fmt: skip

NO_AXES: frozenset = frozenset()


class Placement:
    """The place of the values of a type; equal ones are one object.

    `explicit` is the sharding as far as it is part of the type: over the explicit axes of a mesh,
    and None if no dimension is split over those and it is no sum over any. `vma` is the set of
    manual mesh axes over which the value varies; those that it is or was summed over are in
    `explicit` too.
    """

    __slots__ = ("explicit", "memory_space", "vma")

    def __init__(self, explicit: Any, vma: frozenset, memory_space: MemorySpace):
        self.explicit, self.vma, self.memory_space = explicit, vma, memory_space

    def __repr__(self) -> str:
        return f"Placement({self.explicit}, {set(self.vma)}, {self.memory_space})"


_interned: dict[tuple, Placement | None] = {(None, NO_AXES, MemorySpace.Device): None}


def placement_of(
    explicit: Any = None,
    vma: frozenset = NO_AXES,
    memory_space: MemorySpace = MemorySpace.Device,
) -> Placement | None:
    """Return the placement with these properties; None for arrays that say nothing."""
    key = (explicit, vma, memory_space)
    try:
        return _interned[key]
    except KeyError:
        return _interned.setdefault(key, Placement(*key))


def explicit_of(aval: Any) -> Any:
    """Return the sharding that a type states over explicit mesh axes, or None."""
    placement = getattr(aval, "placement", None)
    return None if placement is None else placement.explicit


def vma_of(aval: Any) -> frozenset:
    """Return the manual mesh axes over which a type says that values vary."""
    placement = getattr(aval, "placement", None)
    return NO_AXES if placement is None else placement.vma


def space_of_type(aval: Any) -> MemorySpace:
    """Return the memory that values of a type are in."""
    placement = getattr(aval, "placement", None)
    return MemorySpace.Device if placement is None else placement.memory_space


def placed(aval: ShapedArray | None, shape: Sequence[Any], stated: dict[str, Any]) -> Any:
    """Return the placement of a type of this shape, from the one it is made of and what is stated.

    One of another shape is split only if that is stated.
    """
    explicit, vma, space = None, NO_AXES, MemorySpace.Device
    if aval is not None and aval.placement is not None:
        own = aval.placement
        explicit, vma, space = own.explicit, own.vma, own.memory_space
        if shape != aval.shape:
            explicit = None
    for name, value in stated.items():
        if name == "sharding":
            if value is not None and not hasattr(value, "explicit_part"):
                raise TypeError(
                    f"the sharding of a ShapedArray must be a NamedSharding; got {value!r}."
                )
            explicit = None if value is None else value.explicit_part(len(shape))
            if explicit is not None:
                _check_divides(explicit, shape)
        elif name == "vma":
            vma = frozenset(value)
        elif name == "memory_space":
            space = value
        else:
            raise TypeError(f"a ShapedArray has no {name!r}")
    return placement_of(explicit, vma, space)


def _check_divides(where: Any, shape: Sequence[Any]) -> None:
    """IndivisibleError unless each split dimension is a multiple of the number of its parts."""
    for axis, (size, count) in enumerate(zip(shape, where._pieces(len(shape)), strict=True)):
        if isinstance(size, int) and size % count:
            part = where.spec[axis]
            raise IndivisibleError(
                f"Sharding spec {part if isinstance(part, tuple) else (part,)} implies that array "
                f"axis {axis} is partitioned {count} times, but does not evenly divide the dimension "
                f"size {size}. Got shape: {tuple(shape)} and sharding {where}: pad it to a multiple, "
                "or split another dimension."
            )


def with_placement(aval: ShapedArray, placement: Placement | None) -> ShapedArray:
    """Return the type with another placement."""
    if aval.placement is placement:
        return aval
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type, placement)


def without_placement(avals: Iterable[Any]) -> tuple[Any, ...]:
    """Return types that say nothing of meshes, for programs that are traced to be lowered.

    Lowering has no mesh in force, over whose axes the carries of their loops would have to vary, and
    the partitioner splits what a reshape of explicit axes would have to be told of.
    """
    return tuple([ShapedArray(a.shape, a.dtype, a.weak_type) if a.placement else a for a in avals])


# -- what types have as attributes -------------------------------------------------------------------


class _Axes(NamedTuple):
    varying: frozenset[Any]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]


class ManualAxisType(_Axes):
    """Over which manual mesh axes a value varies, is a sum still to be taken, or was summed.

    ValueError for an axis in two of them.
    """

    __slots__ = ()

    def __new__(
        cls, *, varying: Any = frozenset(), unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> Any:
        made = super().__new__(cls, frozenset(varying), frozenset(unreduced), frozenset(reduced))
        for first, second in itertools.combinations(cls._fields, 2):
            if getattr(made, first) & getattr(made, second):
                raise ValueError(
                    f"{first} and {second} cannot have common mesh axes. Got {first}="
                    f"{set(getattr(made, first))} and {second}={set(getattr(made, second))}"
                )
        return made

    def __repr__(self) -> str:
        return f"ManualAxisType({', '.join(f'{n}={getattr(self, n)!r}' for n in self._fields)})"


def _manual_axis_type(aval: ShapedArray) -> ManualAxisType:
    """Return over which manual mesh axes a value varies, or is or was summed."""
    explicit = explicit_of(aval)
    if explicit is None:
        return ManualAxisType(varying=vma_of(aval))
    manual, spec = frozenset(explicit.mesh.manual_axes), explicit.spec
    sums = {"unreduced": spec.unreduced & manual, "reduced": spec.reduced & manual}
    return ManualAxisType(varying=vma_of(aval), **sums)


def _sharding(aval: ShapedArray) -> Any:
    """Return how the type says that its dimensions are split over a mesh."""
    explicit = explicit_of(aval)
    if explicit is None:
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))
    return explicit


MEMBERS: dict[str, Callable[[ShapedArray], Any]] = {
    "array_abstraction_level": lambda aval: 2,
    "explicit": explicit_of,
    "has_qdd": lambda aval: False,
    "manual_axis_type": _manual_axis_type,
    "mat": _manual_axis_type,
    "memory_space": space_of_type,
    "sharding": _sharding,
    "update_weak_type": lambda aval: lambda weak_type: aval.update(weak_type=weak_type),
    "vma": vma_of,
}


def _member(aval: ShapedArray, name: str) -> Any:
    """Return an attribute that follows from the placement of a type."""
    found = MEMBERS.get(name)
    if found is None:
        raise AttributeError(f"{type(aval).__name__!r} object has no attribute {name!r}")
    return found(aval)


# -- the types of what is made of a value ----------------------------------------------------------------


def _without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    shape, explicit = aval.shape, explicit_of(aval)
    if explicit is not None:
        parts = explicit.spec.partitions
        explicit = explicit.with_parts([*parts[:axis], *parts[axis + 1 :]])
    return aval.update(shape=shape[:axis] + shape[axis + 1 :], sharding=explicit)


def _with_axis(aval: ShapedArray, axis: int, size: int, split: Any) -> ShapedArray:
    shape, where = aval.shape, explicit_of(aval)
    if split is not None or where is not None:
        where = where or _sharding(aval)
        parts = where.spec.partitions
        where = where.with_parts([*parts[:axis], split, *parts[axis:]])
    return aval.update(shape=(*shape[:axis], size, *shape[axis:]), sharding=where)


def _cotangent_type(aval: ShapedArray) -> ShapedArray:
    """Return the type of a cotangent: a sum still to be taken where this was one, and the reverse."""
    tangent, explicit = aval.to_tangent_aval(), explicit_of(aval)
    if explicit is None or not explicit.spec.sums:
        return tangent
    return tangent.update(sharding=explicit.with_spec(explicit.spec.to_ct_spec()))


def _at(aval: ShapedArray, where: Any) -> ShapedArray:
    """Return the type of an array that lies as a sharding says."""
    explicit = where.explicit_part(aval.ndim)
    aval = aval if explicit == explicit_of(aval) else aval.update(sharding=where)
    if isinstance(where, NamedSharding) and space_of(where.memory_kind) is MemorySpace.Host:
        return within(aval, MemorySpace.Host)
    return aval


def check_manual(aval: Any, where: Any) -> None:
    """ValueError for a sharding whose mesh does not say that the axes are manual over which a value
    varies, as that of a `shard_map` within it does.
    """
    kinds = dict(zip(where.mesh.axis_names, where.mesh.axis_types, strict=True))
    for name in sorted(vma_of(aval), key=str):
        if kinds.get(name, AxisType.Manual) is not AxisType.Manual:
            raise ValueError(
                "Axes mentioned in `manual_axis_type` field of ShapedArray should be of type `Manual`. "
                f"Got manual_axis_type=ManualAxisType(varying={vma_of(aval)}, unreduced=frozenset(), "
                f"reduced=frozenset()) with axis: {name} of type AxisType.{kinds[name].name}. Within "
                "shard_map give a PartitionSpec, or a sharding over jax.sharding.get_abstract_mesh()."
            )


def check_size(aval: Any, devices: Sequence[Any], mesh: Any = None) -> None:
    """ValueError unless a mesh, that of a type, has as many places as a program has devices."""
    if mesh is None and explicit_of(aval) is not None:
        mesh = explicit_of(aval).mesh
    size = len(devices) if mesh is None else mesh.size
    if size != len(devices):
        raise ValueError(
            f"Length of device assignment {len(devices)} is not equal to the size of the mesh {size} "
            f"of aval {aval.str_short(True, mesh_axis_types=True)}. Please enter your `jit` into a "
            "mesh context via `jax.set_mesh`."
        )


# -- how types are shown ---------------------------------------------------------------------------------


def _shown(aval: ShapedArray, mesh_axis_types: bool) -> tuple[Iterable[str], str, str]:
    """Return the sizes, and what a type shows before and behind them."""
    explicit, vma = explicit_of(aval), vma_of(aval)
    sizes: Iterable[str] = map(str, aval.shape)
    if explicit is not None:
        sizes = [
            str(size) if part is None else f"{size}@{_shown_axes(part)}"
            for size, part in zip(aval.shape, explicit.spec.partitions, strict=True)
        ]
    space = "<host>" if space_of_type(aval) is MemorySpace.Host else ""
    kinds = {"V": vma}
    if explicit is not None:
        kinds |= {"U": explicit.spec.unreduced, "R": explicit.spec.reduced}
    shown = [f"{kind}:{_shown_axes(sorted(axes))}" for kind, axes in kinds.items() if axes]
    text = f"{{{', '.join(shown)}}}" if shown else ""
    return sizes, space, text + (_kinds_of_axes(_sharding(aval).mesh) if mesh_axis_types else "")


def _kinds_of_axes(mesh: Any) -> str:
    kinds: dict[str, list] = {}
    for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True):
        kinds.setdefault(kind.name, []).append(name)
    shown = [f"{kind}: {tuple(names)}" for kind, names in kinds.items()]
    return f"({{{', '.join(shown)}}})"


def _shown_axes(part: Any) -> str:
    """One mesh axis by its name, several as a list."""
    if isinstance(part, (tuple, list)):
        return str(part[0]) if len(part) == 1 else f"({','.join(map(str, part))})"
    return str(part)


hooks.fill(
    cotangent_type=_cotangent_type,
    member_of_type=_member,
    placement=placed,
    shown_placement=_shown,
    stated_sharding=explicit_of,
    type_at=_at,
    with_axis=_with_axis,
    without_axis=_without_axis,
)
