"""Shardings by name: dimensions of an array split over the axes of a mesh.

A position of the mesh, in the order of its devices, is a partition of XLA's; `sdy` writes a
sharding for Shardy, `spec_of` reads what XLA chose.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from minijax.runtime.mesh import (
    UNCONSTRAINED,
    AbstractMesh,
    AxisType,
    DuplicateSpecError,
    Mesh,
    PartitionSpec,
    axes_of,
    constraint_mesh,
    device_mesh,
    get_abstract_mesh,
)
from minijax.runtime.sharding import Sharding, check_memory_kind, default_memory_kind, device_list
from minijax.runtime.versions import HloSharding, xla_client

__all__ = [
    "NamedSharding",
    "check_not_empty",
    "check_rank",
    "is_empty",
    "named_of_hlo",
    "out_sharding_of",
    "replicated",
    "same_mesh",
    "sharding_of",
    "sums_open",
]

Shape = tuple[int, ...]


# What equal shardings have found out, by the shape or rank of arrays: users make many equal ones.
_memos: dict[tuple, tuple[dict, dict, dict]] = {}


class IndivisibleError(ValueError):
    """Raised where a dimension is no multiple of the number of its parts."""


class NamedSharding(Sharding):
    """Sharding that splits the dimensions of an array over the axes of a mesh.

    - `mesh`: a `Mesh`, or an `AbstractMesh` without devices
    - `spec`: a `PartitionSpec`: for each dimension of the shape its mesh axes
    - `memory_kind`: kind of memory, by default the devices' default one

    ValueError for an axis that the mesh does not have.
    Source: Shardy's `TensorShardingAttr`.

    >>> jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i", None)).shard_shape((4, 2))
    (4, 2)
    """

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: Any = None
    ) -> None:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding takes a PartitionSpec, got {spec!r} of {type(spec)}: write P(...)."
            )
        if not hasattr(mesh, "shape_tuple"):
            raise AttributeError(
                f"NamedSharding takes a mesh, got {mesh!r}: {type(mesh).__name__!r} object has no "
                "attribute 'shape_tuple'."
            )
        super().__init__()
        self._mesh, self._spec = mesh, spec
        _check_spec(mesh, spec)
        if isinstance(mesh, Mesh):
            devices = mesh.flat_devices
            self._device_assignment = devices
            self._internal_device_list = device_list(devices)
            if memory_kind is None:
                memory_kind = default_memory_kind(devices[0])
            else:
                check_memory_kind(devices[0], memory_kind)
        self._memory_kind = memory_kind
        key = (mesh, spec, memory_kind)
        self._hash = hash(key)
        self._indices, self._local, self._hlo = _memos.setdefault(key, ({}, {}, {}))

    mesh = property(attrgetter("_mesh"))
    spec = property(attrgetter("_spec"))
    memory_kind = property(attrgetter("_memory_kind"))

    @property
    def device(self) -> Any:
        """The first of the devices; that of a mesh of one."""
        return self._device_assignment[0]

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes over which arrays are neither split nor sums."""
        spec = self.spec
        return frozenset(self.mesh.axis_names) - spec.split_axes - spec.unreduced - spec.reduced

    def _parts(self, ndim: int) -> list[tuple]:
        """Return for each dimension the mesh axes that it is split over."""
        if len(self.spec) > ndim:
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but "
                f"was applied to a value of rank {ndim}: shorten the PartitionSpec."
            )
        parts = self.spec.partitions
        if ndim > 1 << 16:
            raise ValueError(f"No array has {ndim} dimensions.")
        return [axes_of(part) for part in parts] + [()] * (ndim - len(parts))

    def _pieces(self, ndim: int) -> list[int]:
        """Into how many parts each dimension is split."""
        sizes = self.mesh.shape
        return [math.prod([sizes[name] for name in part]) for part in self._parts(ndim)]

    @functools.cached_property
    def is_fully_replicated(self) -> bool:
        if self._open_sums():
            return False
        return all(pieces == 1 for pieces in self._pieces(len(self.spec)))

    def _open_sums(self) -> tuple:
        """The axes over which arrays are sums still to be taken, in the order of the mesh."""
        axes = self.spec.unreduced
        sizes = self.mesh.shape_tuple
        return tuple([name for name, size in sizes if name in axes and size > 1]) if axes else ()

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """ValueError unless arrays of this rank can be split so."""
        self._parts(len(shape))

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """The shape of the part that one device holds."""
        pieces = self._pieces(len(global_shape))
        try:
            for axis, (size, count) in enumerate(zip(global_shape, pieces, strict=True)):
                if size % count:
                    raise IndivisibleError(
                        f"Sharding {self} implies that array axis {axis} is partitioned {count} "
                        f"times, but the dimension size is {size} (full shape: "
                        f"{tuple(global_shape)}, per-dimension tiling factors: {pieces} should "
                        "evenly divide the shape). Pad it to a multiple, or split another dimension."
                    )
            return tuple(s // n for s, n in zip(global_shape, pieces, strict=True))
        except TypeError:
            raise TypeError(f"A shape is a sequence of integers; got {global_shape!r}.") from None

    def _index_list(self, global_shape: Shape) -> list[tuple[slice, ...]]:
        """Return for each device, in the order of the mesh, the part of an array that it holds."""
        global_shape = tuple(global_shape)
        found = self._indices.get(global_shape)
        if found is None:
            sizes, parts = self.mesh.shape, self._parts(len(global_shape))
            steps = self.shard_shape(global_shape)
            found = []
            for place in itertools.product(*map(range, self.mesh.axis_sizes)):
                at = dict(zip(self.mesh.axis_names, place, strict=True))
                index = []
                for part, step in zip(parts, steps, strict=True):
                    number = 0
                    for name in part:
                        number = number * sizes[name] + at[name]
                    whole = all(sizes[name] == 1 for name in part)
                    index.append(
                        slice(None) if whole else slice(number * step, (number + 1) * step)
                    )
                found.append(tuple(index))
            self._indices[global_shape] = found
        return found

    def local_parts(self, global_shape: Shape) -> tuple[list[Any], list[Any], bool]:
        found = self._local.get(global_shape)
        if found is None:
            found = self._local[global_shape] = super().local_parts(global_shape)
        return found

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[str, Any]:
        if self._open_sums():
            raise NotImplementedError(
                f"device_indices_map doesn't work with unreduced: of an array with {self.spec} each "
                "device holds a summand. Take the sum with minijax.reshard(x, P(...)) first."
            )
        self._assigned("_device_assignment")
        return self.parts_by_device(global_shape)

    def parts_by_device(self, global_shape: Sequence[int]) -> dict[str, Any]:
        indices = self._index_list(tuple(global_shape))
        return dict(zip(self._device_assignment, indices, strict=True))

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both put the same parts of an array of this rank on the same devices."""
        if isinstance(other, NamedSharding) and self.mesh == other.mesh:
            ndim = max(ndim, len(self.spec), len(other.spec))
            sums = self.spec.unreduced == other.spec.unreduced
            return sums and self._parts(ndim) == other._parts(ndim)
        if not hasattr(other, "_device_assignment"):
            raise TypeError(
                f"Expected a sharding to compare with; got {other!r} of type {type(other).__name__}."
            )
        return (
            self._device_assignment == other._device_assignment
            and self.memory_kind == other.memory_kind
            and self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
        )

    def explicit_part(self, ndim: int) -> NamedSharding | None:
        """The split over axes that are Explicit, by names alone; None if no dimension has one.

        Axes that an array is or was summed over belong to it too.
        """
        names, spec = self.mesh.explicit_axes, self.spec
        if not names and not spec.sums:
            return None
        kept = [tuple([name for name in part if name in names]) for part in self._parts(ndim)]
        if spec.sums:
            spec = PartitionSpec(*kept, unreduced=spec.unreduced, reduced=spec.reduced)
            return NamedSharding(self.mesh.abstract_mesh, spec)
        if not any(kept):
            return None
        return NamedSharding(self.mesh.abstract_mesh, PartitionSpec(*kept))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, kind)

    def with_spec(self, spec: Any) -> NamedSharding:
        """Return the sharding of another spec over the mesh; parts alone say nothing of sums over
        mesh axes.
        """
        spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        return NamedSharding(self.mesh, spec, self._memory_kind)

    def with_parts(self, parts: Sequence[Any]) -> NamedSharding:
        """Return the sharding with the dimensions split otherwise; mesh and sums stay."""
        return self.with_spec(self.spec.update(partitions=parts))

    def update(self, **changes: Any) -> NamedSharding:
        names = ("mesh", "spec", "memory_kind")
        stated = {name: changes.get(name, getattr(self, name)) for name in names}
        if not isinstance(stated["spec"], PartitionSpec):  # the parts alone
            stated["spec"] = PartitionSpec(*stated["spec"])
        return NamedSharding(**stated)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """Return XLA's own sharding; jaxlib asks for it whenever it puts an array somewhere."""
        found = self._hlo.get(num_dimensions)
        if found is None:
            found = self._hlo[num_dimensions] = self._as_hlo(num_dimensions)
        return found

    def _as_hlo(self, num_dimensions: int) -> Any:
        parts = self._parts(num_dimensions)
        pieces = self._pieces(num_dimensions)
        sums = self._open_sums()
        if all(count == 1 for count in pieces) and not sums:
            return HloSharding.replicate()
        names = self.mesh.axis_names
        used = [name for part in parts for name in part]
        rest = [name for name in names if name not in used and name not in sums]
        order = [names.index(name) for name in [*used, *sums, *rest]]
        types = xla_client.OpSharding.Type
        groups = [(sums, types.UNREDUCED), (rest, types.REPLICATED)]
        counts = [math.prod([self.mesh.shape[name] for name in group]) for group, _ in groups]
        kinds = [kind for (_, kind), count in zip(groups, counts, strict=True) if count > 1]
        return HloSharding.iota_tile(
            dims=[*pieces, *[count for count in counts if count > 1]],
            reshape_dims=self.mesh.axis_sizes,
            transpose_perm=order,
            subgroup_types=kinds,
        )

    def _fields(self):
        return self.mesh, self.spec, self._memory_kind

    def __eq__(self, other: Any) -> Any:
        return self is other or (
            isinstance(other, NamedSharding) and self._fields() == other._fields()
        )

    def __hash__(self) -> Any:
        return self._hash

    def __reduce__(self) -> Any:
        return NamedSharding, (self.mesh, self.spec, self._memory_kind)

    def __repr__(self) -> str:
        memory = f", memory_kind={self._memory_kind}" if self._memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"


def _check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    names = [name for part in spec.partitions for name in axes_of(part)]
    if spec.sums:
        _check_sums(mesh, spec)
    if UNCONSTRAINED in spec.partitions and mesh.axis_names and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh "
            f"axis_types: {mesh.axis_types}"
        )
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}."
            )
        if names.count(name) > 1:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for `{name}`"
            )


def _check_sums(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Axes of sums exist and are Explicit; or Manual, in a type within `shard_map`."""
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    allowed = (
        {AxisType.Explicit} if isinstance(mesh, Mesh) else {AxisType.Explicit, AxisType.Manual}
    )
    for kind, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in sorted(axes, key=str):
            if name not in types:
                raise ValueError(
                    f"{kind} axes {name} is not found in mesh.axis_names={mesh.axis_names}. Got "
                    f"pspec={spec}"
                )
            if types[name] not in allowed:
                raise ValueError(
                    f"{kind} axes can only refer to mesh axes that is of type `Explicit`. Got "
                    f"{kind.lower()} axes: {axes} and mesh: {mesh}. Make the mesh with "
                    "axis_types=(AxisType.Explicit, ...)."
                )


def sums_open(where: Any) -> bool:
    """Whether a sharding is of arrays of which each device holds a summand."""
    return isinstance(where, NamedSharding) and bool(where._open_sums())


def replicated(mesh: Mesh) -> NamedSharding:
    """Whole arrays on every device of a mesh."""
    return NamedSharding(mesh, PartitionSpec())


def check_rank(what: str, where: Any, ndim: int, path: str = "") -> None:
    """ValueError if the spec of a sharding is longer than the rank of the value that it is for."""
    if isinstance(where, NamedSharding) and len(where.spec) > ndim:
        try:
            where._parts(ndim)
        except ValueError as error:
            named = f" with pytree key path {path}" if path else ""
            raise ValueError(
                f"One of {what}{named} is incompatible with its sharding annotation {where}: {error}"
            ) from None


def sharding_of(where: Any, what: str) -> Any:
    """The sharding that a user gave, a PartitionSpec being over the mesh in force."""
    if where is None or isinstance(where, Sharding):
        return where
    if isinstance(where, PartitionSpec):
        function, _, parameter = what.partition(" ")
        mesh: Mesh | AbstractMesh = constraint_mesh() if parameter else device_mesh()
        mesh = get_abstract_mesh() if mesh.empty else mesh
        if mesh.empty:
            then = f"got {where}. Or give NamedSharding(mesh, spec)."
            if parameter:
                raise RuntimeError(
                    f"{function} requires a non-empty mesh in context if you are passing "
                    f"`PartitionSpec`s to {parameter}. You can define a context mesh via "
                    f"`jax.set_mesh(mesh)`: {then}"
                )
            if function == "device_put":
                raise ValueError(
                    "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to "
                    f"device_put: {then}"
                )
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not allowed. Please "
                "pass a NamedSharding instance or enter into a mesh context via `jax.set_mesh`: "
                f"{function} {then}"
            )
        return NamedSharding(mesh, where)
    raise no_sharding(where, what)


def is_empty(where: Any) -> bool:
    """Whether a sharding is over a mesh without axes, as that of a type that says nothing."""
    return isinstance(where, NamedSharding) and where.mesh.empty


def check_not_empty(where: Any, what: str) -> None:
    """ValueError for a sharding over a mesh without axes."""
    if is_empty(where):
        raise ValueError(
            f"One of {what.split()[-1]} leaf specifications got an empty NamedSharding: {where} which "
            "is not allowed. Leave it out, or give a sharding over a mesh."
        )


def no_sharding(where: Any, what: str) -> TypeError:
    """Return the error for what a user gave in place of a sharding."""
    return TypeError(
        f"{what.split()[-1]} leaf specifications are expected to be PartitionSpec instances or None, "
        f"but got {where} of type {type(where)}."
    )


def out_sharding_of(where: Any, what: str, new: bool = False) -> NamedSharding | None:
    """Return the sharding that a user gave as `out_sharding`, over the Explicit axes of a mesh.

    ValueError unless it is over the mesh in force, if there is one, but for `reshard`. If there is
    none, that of a `new` array does not say which devices a program is for, which has one.
    """
    if where is None or isinstance(where, (NamedSharding, PartitionSpec)):
        found = sharding_of(where, what)
        if found is None:
            return None
        context = get_abstract_mesh()
        if not (context.empty or found.mesh.empty or what == "reshard"):
            if found.mesh.abstract_mesh != context:
                raise ValueError(
                    f"Context mesh {context} should match the mesh of sharding "
                    f"{found.mesh.abstract_mesh} passed to {what}. Give a PartitionSpec, which is over "
                    "the mesh in force, or go to another mesh with jax.sharding.reshard."
                )
        _check_explicit(found, what)
        if new and context.empty and not (found.mesh.size == 1 and found.mesh.explicit_axes):
            return NamedSharding(found.mesh.abstract_mesh, found.spec)
        return found
    raise TypeError(
        f"`out_sharding` argument of {what} only supports instances of `NamedSharding` or "
        f"`PartitionSpec`. Got {where!r} of type {type(where)}: a device is given with `device`, or "
        "device_put."
    )


def _check_explicit(where: NamedSharding, what: str) -> None:
    """ValueError for a sharding over axes that types say nothing of."""
    types = dict(zip(where.mesh.axis_names, where.mesh.axis_types, strict=True))
    for part in where.spec.partitions:
        for name in part if isinstance(part, tuple) else (part,):
            if types.get(name, AxisType.Explicit) is not AxisType.Explicit:
                raise ValueError(
                    f"PartitionSpec passed to {what} cannot contain axis names that are of type Auto or "
                    f"Manual. Got PartitionSpec: {where.spec} with axis name: {name} of type: "
                    f"AxisType.{types[name].name}. Use with_sharding_constraint, or make the mesh with "
                    "axis_types=(AxisType.Explicit, ...)."
                )


# -- to and from the compiler ----------------------------------------------------------------------


def same_mesh(one: Mesh | AbstractMesh, other: Mesh | AbstractMesh) -> bool:
    """Whether two meshes have the same axes, and the same devices where both have any."""
    if one.shape_tuple != other.shape_tuple:
        return False
    if isinstance(one, Mesh) and isinstance(other, Mesh):
        return list(one.devices.flat) == list(other.devices.flat)
    return True


def named_of_hlo(hlo: Any, mesh: Mesh, ndim: int, memory_kind: str | None = None) -> Any:
    """The sharding by name that XLA's sharding is over a mesh; None if no axes give it."""
    if hlo.is_replicated() or mesh.size == 1:
        return NamedSharding(mesh, PartitionSpec(), memory_kind)
    if not hlo.is_tiled():
        return None
    sizes = list(hlo.tile_assignment_dimensions())
    grid = np.array(hlo.tile_assignment_devices()).reshape(sizes)
    where = np.empty((mesh.size, len(sizes)), int)  # the tile of each partition
    for tile, partition in np.ndenumerate(grid):
        where[partition] = tile
    where = where.reshape(*mesh.axis_sizes, len(sizes))
    steps = []  # how far a step along each mesh axis goes along each dimension
    for axis, size in enumerate(mesh.axis_sizes):
        step = np.take(where, 1, axis) - np.take(where, 0, axis) if size > 1 else None
        steps.append(None if step is None else step.reshape(-1, len(sizes))[0])
    parts: list[Any] = []
    for dim in range(ndim):
        found = [
            (int(step[dim]), name)
            for step, name in zip(steps, mesh.axis_names, strict=True)
            if step is not None and step[dim]
        ]
        names = tuple(name for _, name in sorted(found, key=lambda pair: -pair[0]))
        parts.append(names or None)
    while parts and parts[-1] is None:
        parts.pop()
    sharding = NamedSharding(mesh, PartitionSpec(*parts), memory_kind)
    return sharding if sharding._pieces(ndim) == sizes[:ndim] else None
