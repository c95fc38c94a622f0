"""Meshes of devices with named axes, and which of them is in force.

Data: which devices, which axes; a `PartitionSpec` says which dimension of an array is split over
which of them.
"""

from __future__ import annotations

import enum
import functools
import math
import numbers
import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np

from minijax.config import local
from minijax.namespace import hiding, user_stacklevel
from minijax.runtime import platforms
from minijax.runtime.platforms import Device

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "DuplicateSpecError", "Mesh", "PartitionSpec",
    "UNCONSTRAINED", "axes_of", "constraint_mesh", "device_mesh", "entered_mesh", "get_abstract_mesh", "get_mesh", "make_mesh", "set_mesh",
    "use_abstract_mesh",
]  # fmt: skip


class AxisType(enum.Enum):
    """Who decides how arrays are split over an axis: XLA, the types of arrays, or the program."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class DuplicateSpecError(Exception):
    """A sharding splits two dimensions over one axis."""


class _Unconstrained:
    """The entry of a PartitionSpec for a dimension that may be split in any way."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


_NO_AXIS: frozenset = frozenset()
_MOST_AXES = 65  # of a mesh that is looked at: one more than NumPy's arrays have


class PartitionSpec:
    """Partition specification: for each dimension of a shape the mesh axis, or axes, that split it.

    - `partitions`: names of mesh axes, tuples of them, or None for a dimension that is not split
    - `unreduced`: set of explicit mesh axes over which the array is a sum still to be taken
    - `reduced`: set of explicit mesh axes over which it is whole, and its cotangent such a sum

    TypeError if these are not sets; ValueError for an axis named twice.
    Source: Shardy's `DimensionShardingAttr`.

    >>> jax.P("data", None)
    P('data', None)
    """

    __slots__ = ("__weakref__", "_partitions", "_reduced", "_unreduced")
    __dir__ = hiding("split_axes", "sums")

    UNCONSTRAINED = UNCONSTRAINED

    def __new__(
        cls, *partitions: Any, unreduced: Any = _NO_AXIS, reduced: Any = _NO_AXIS
    ) -> PartitionSpec:
        self = super().__new__(cls)
        self._partitions = tuple([_canonical(part) for part in partitions])
        self._unreduced, self._reduced = unreduced, reduced
        if unreduced is not _NO_AXIS or reduced is not _NO_AXIS:
            self._check_sums()
        return self

    def _check_sums(self) -> None:
        used = self.split_axes
        for kind in ("unreduced", "reduced"):
            axes = getattr(self, kind)
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(
                    f"{kind} argument of PartitionSpec should of type `frozenset` or `set`. Got "
                    f"type {axes}. It is of {type(axes)}: write {kind}={{'x'}}."
                )
            if None in axes:
                raise ValueError(
                    f"{kind} cannot contain None. All elements in {kind} should refer to the mesh "
                    "axes. Leave it out."
                )
            if used & axes:
                raise ValueError(
                    f"partitions cannot overlap with {kind} axes passed to PartitionSpec. Got "
                    f"partitions: {self._partitions} and {kind} axes: {frozenset(axes)}. Name each "
                    "axis once."
                )
            setattr(self, f"_{kind}", frozenset(axes) if axes else _NO_AXIS)
        if self.unreduced & self.reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
                f"{self.unreduced} and reduced: {self.reduced}: name each axis once."
            )

    partitions = property(attrgetter("_partitions"))
    unreduced = property(attrgetter("_unreduced"))
    reduced = property(attrgetter("_reduced"))

    @property
    def split_axes(self) -> frozenset[Any]:
        """The mesh axes that some dimension is split over."""
        return frozenset(name for part in self._partitions for name in axes_of(part))

    @property
    def sums(self) -> bool:
        """Whether it names axes that an array is, or was, summed over."""
        return bool(self.unreduced or self.reduced)

    def _plain(self, how: str) -> tuple:
        if self.unreduced or self.reduced:
            raise ValueError(
                f"Using {how.format('pspec')} is dangerous when PartitionSpec has non-empty "
                f"unreduced/reduced set. Please use {how.format('spec.partitions')}: got {self}."
            )
        return self._partitions

    def to_tangent_spec(self) -> PartitionSpec:
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """Return the spec of the cotangent: reduced axes become unreduced, and the reverse."""
        if not self.sums:
            return self
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **changes: Any) -> PartitionSpec:
        partitions = changes.pop("partitions", self._partitions)
        changes = {"unreduced": self.unreduced, "reduced": self.reduced, **changes}
        return PartitionSpec(*partitions, **changes)

    def index(self, value: Any) -> int:
        return self._partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        return self._partitions.count(_canonical(value))

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Any:
        return iter(self._plain("*{}"))

    def __getitem__(self, index: Any) -> Any:
        return self._plain("{}[...]")[index]

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self._partitions,
                *other._partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            self._check_tuple(other, "__add__")
            return PartitionSpec(*self._partitions, *other)
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        self._check_tuple(other, "__radd__")
        return PartitionSpec(*other, *self._partitions)

    def _check_tuple(self, other: tuple, method: str) -> None:
        for kind in ("unreduced", "reduced"):
            if getattr(self, kind):
                raise TypeError(
                    f"other {other} cannot be of instance `tuple` when self {self} has {kind} in "
                    f"`{method}` of PartitionSpec: write P(*{other})."
                )

    def _fields(self):
        return self._partitions, self.unreduced, self.reduced

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, PartitionSpec) and self._fields() == other._fields()

    def __hash__(self) -> Any:
        return hash((PartitionSpec, self._fields()))

    def __repr__(self) -> str:
        extra = [
            f"{name}={_shown_set(getattr(self, name))}"
            for name in ("unreduced", "reduced")
            if getattr(self, name)
        ]
        if extra:
            return f"P({', '.join([*map(repr, self._partitions), *extra])})"
        return f"P{self._partitions!r}"

    def __reduce__(self) -> Any:
        return _unpickle_spec, self._fields()


def _canonical(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        for inner in part:
            if isinstance(inner, (tuple, list)):
                raise ValueError(
                    "A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: "
                    f"{part} and the nested tuple: {inner}"
                )
        part = tuple(part)
        return None if not part else part[0] if len(part) == 1 else part
    return part


def axes_of(part: Any) -> tuple:
    """The mesh axes that one entry of a PartitionSpec names, the major one first."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def _shown_set(axes: frozenset) -> str:
    return f"{{{', '.join(map(repr, sorted(axes, key=str)))}}}"


def _unpickle_spec(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


class _Axes:
    """The part that all meshes share: named axes with sizes and types."""

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[Any, ...]
    axis_types: tuple[Any, ...]

    @property
    def shape(self) -> OrderedDict:
        """Return the sizes of axes by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[Any, ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        return int(np.prod(self.axis_sizes)) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _all(self, kind: AxisType) -> bool:
        return all(found is kind for found in self.axis_types)

    def _named(self, kind: AxisType) -> tuple:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, found in pairs if found is kind)

    are_all_axes_auto = property(lambda self: self._all(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._all(AxisType.Explicit))
    are_all_axes_manual = property(lambda self: self._all(AxisType.Manual))
    auto_axes = property(lambda self: self._named(AxisType.Auto))
    explicit_axes = property(lambda self: self._named(AxisType.Explicit))
    manual_axes = property(lambda self: self._named(AxisType.Manual))

    def _described(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{axes or '()'}, axis_types={self.axis_types}"


def _axis_types(mesh: type, given: Any, names: tuple) -> tuple[AxisType, ...]:
    if given is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(given) if isinstance(given, Sequence) else (given,)
    if not all(isinstance(kind, AxisType) for kind in types):
        raise TypeError(
            f"axis_types passed to {mesh.__name__} must be of type `jax.sharding.AxisType`. Got "
            f"{types} of type {tuple([type(kind) for kind in types])}"
        )
    if len(types) != len(names):
        raise ValueError(
            "Number of axis names should match the number of axis_types. Got axis_names="
            f"{names} and axis_types={types}"
        )
    return types


_known: dict[Any, Any] = {}


class _Interned:
    """A mesh of which equal ones are one object, which nobody may change."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}: make a mesh with update()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete field {name!r}")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        return self


PartitionSpec.__name__ = PartitionSpec.__qualname__ = "P"
P = PartitionSpec  # by which pickles find it


class AbstractDevice:
    """The kind of the devices of an abstract mesh."""

    __slots__ = ("device_kind", "num_cores", "platform")

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def _fields(self):
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, AbstractDevice) and self._fields() == other._fields()

    def __hash__(self) -> Any:
        return hash(self._fields())

    def __repr__(self) -> str:
        names = ("device_kind", "num_cores", "platform")
        shown = ", ".join(f"{n}={v}" for n, v in zip(names, self._fields(), strict=True))
        return f"AbstractDevice({shown})"


def _of_devices(name: str) -> Any:
    """A property that a mesh without devices does not have."""

    def refuse(self):
        raise ValueError(f"AbstractMesh does not implement {name}")

    return property(refuse)


def _unpickle_axes(sizes, names, types, device):
    return AbstractMesh(sizes, names, types, abstract_device=device)


class AbstractMesh(_Interned, _Axes):
    """A mesh without its devices: enough to write a program for it."""

    abstract_device: AbstractDevice | None

    def __new__(
        cls,
        axis_sizes: Any,
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: Any = None,
    ) -> AbstractMesh:
        self = super().__new__(cls)
        own = vars(self)
        own["axis_sizes"] = tuple(axis_sizes)
        own["axis_names"] = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh: {len(self.axis_sizes)} sizes for axes named {self.axis_names}."
            )
        own["axis_types"] = _axis_types(cls, axis_types, self.axis_names)
        if abstract_device is not None and not isinstance(abstract_device, AbstractDevice):
            raise TypeError(f"abstract_device must be an AbstractDevice; got {abstract_device!r}.")
        own["abstract_device"] = abstract_device
        return _known.setdefault(self, self)

    def __reduce__(self) -> Any:
        return _unpickle_axes, self._fields()

    abstract_mesh = property(lambda self: self)
    devices, device_ids, local_devices, local_mesh, is_multi_process = map(
        _of_devices, ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process")
    )

    def update_axis_types(self, name_to_type: dict[str, AxisType]) -> AbstractMesh:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, kind) for name, kind in pairs))

    def update(self, **changes: Any) -> AbstractMesh:
        names = ("axis_sizes", "axis_names", "axis_types", "abstract_device")
        return AbstractMesh(**{name: getattr(self, name) for name in names} | changes)

    def _fields(self):
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, AbstractMesh) and self._fields() == other._fields()

    def __hash__(self) -> Any:
        return hash(self._fields())

    def __repr__(self) -> str:
        device = self.abstract_device
        kind = ""
        if device is not None:
            kind = (
                f", device_kind={device.device_kind}, num_cores={device.num_cores}, "
                f"platform={device.platform}"
            )
        return f"AbstractMesh({self._described()}{kind})"


class _Entered(threading.local):
    """The meshes in force before each `with mesh:` of this thread."""

    def __init__(self) -> None:
        self.before: list[Any] = []


_entered = _Entered()


class Mesh(_Interned, _Axes):
    """An array of devices whose axes have names."""

    __dir__ = hiding("flat_devices", "made")
    made = False  # whether this process uses meshes at all: without, nobody looks for them

    devices: np.ndarray

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        self = super().__new__(cls)
        own = vars(self)
        own["devices"] = np.array(devices, dtype=object)
        self.devices.flags.writeable = False
        own["axis_names"] = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if None in self.axis_names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {self.axis_names}")
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                "its second argument (`axis_names`), but got devices.ndim == "
                f"{self.devices.ndim} and len(axis_names) == {len(self.axis_names)}."
            )
        own["axis_types"] = _axis_types(cls, axis_types, self.axis_names)
        Mesh.made = True
        return _known.setdefault(self, self)

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    axis_sizes = property(lambda self: self.devices.shape if self.axis_names else ())
    local_mesh = property(lambda self: self)

    @property
    def device_ids(self) -> np.ndarray:
        ids = [device.id for device in self.devices.flat]
        return np.array(ids, dtype=int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        return [d for d in self.devices.flat if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self) -> bool:
        return len(self.local_devices) != self.devices.size

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        device = next(iter(self.devices.flat), None)
        kind = None
        if device is not None and self.axis_names:
            cores = getattr(device, "num_cores", None)
            kind = AbstractDevice(device.device_kind, cores, device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def update(self, **changes: Any) -> Mesh:
        names = ("devices", "axis_names", "axis_types")
        return Mesh(**{name: getattr(self, name) for name in names} | changes)

    @functools.cached_property
    def flat_devices(self) -> tuple[Any, ...]:
        """The devices in the order of the mesh."""
        return tuple(self.devices.flat)

    @functools.cached_property
    def _fields(self) -> tuple:
        return self.flat_devices, self.devices.shape, self.axis_names, self.axis_types

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: Any) -> Any:
        return self is other or (isinstance(other, Mesh) and self._fields == other._fields)

    def __hash__(self) -> Any:
        return self._hash

    def __repr__(self) -> str:
        if self.devices.shape == () and self.devices[()] is None:
            return "Mesh(axis_sizes=(), axis_names=())"
        types = f", axis_types={self.axis_types}"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return f"Mesh({self._described()})"

    def __enter__(self) -> Mesh:
        """Have `with_sharding_constraint` and `pjit` take PartitionSpecs; commits nothing to it."""
        context = local.context
        if context.settings.disallow_mesh_context_manager:
            raise RuntimeError(
                "Mesh context manager is disabled. The setting jax_disallow_mesh_context_manager says so: "
                "use set_mesh(mesh)."
            )
        warnings.warn(
            "`with mesh:` context manager has been deprecated. Please use `with jax.set_mesh(mesh):` "
            "instead.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
        _entered.before.append(context.constraint_mesh)
        context.constraint_mesh = self
        context.refresh_key()
        return self

    def __exit__(self, *exc: Any) -> Any:
        local.context.constraint_mesh = _entered.before.pop()
        local.context.refresh_key()


def mesh_of(mesh: Mesh | AbstractMesh, devices: Sequence[Any] = ()) -> Mesh | AbstractMesh:
    """A mesh of devices with these axes: that in force if it has them, else one of these devices.

    `mesh` itself if they are not as many as it has places.
    """
    if isinstance(mesh, Mesh):
        return mesh
    current = local.context.mesh
    if isinstance(current, Mesh) and current.shape_tuple == mesh.shape_tuple:
        return current.update(axis_types=mesh.axis_types)
    if mesh.empty or len(devices) != mesh.size:
        return mesh
    array = np.array(devices, dtype=object).reshape(mesh.axis_sizes)
    return Mesh(array, mesh.axis_names, mesh.axis_types)


# -- The mesh that is in force -----------------------------------------------------------------

_NO_MESH = Mesh(np.empty((), dtype=object), ())
Mesh.made = False
_NO_AXES = AbstractMesh((), ())


class entered_mesh:
    """Put a mesh in force at once, with devices or without; in a context, until the block ends."""

    def __init__(self, mesh: Mesh | AbstractMesh | None) -> None:
        context = local.context
        self._before = context.mesh
        context.mesh = mesh
        context.refresh_key()

    def __enter__(self) -> Any:
        return local.context.mesh

    def __exit__(self, *exc: Any) -> Any:
        local.context.mesh = self._before
        local.context.refresh_key()


def _check_not_tracing(name: str, instead: str = "") -> None:
    if not local.context.trace.eager:
        raise ValueError(f"`{name}` can only be used outside of `jax.jit`.{instead}")


class set_mesh(entered_mesh):
    """Put a mesh in force at once; as a context manager, until the block ends.

    - `mesh`: a `Mesh`, or None

    A `PartitionSpec` then refers to it, and the type of arrays names it beside shape and dtype.
    ValueError for another object, and in a function that is being transformed.
    Source: Shardy's mesh symbols.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
    ...     jax.typeof(jnp.ones(2)).shape
    (2,)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if not (mesh is None or isinstance(mesh, Mesh)):
            raise ValueError(
                f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}: make one with "
                "make_mesh."
            )
        _check_not_tracing("set_mesh")
        super().__init__(mesh)


class use_abstract_mesh(entered_mesh):
    """Set a mesh without devices within the context. ValueError for one of another size."""

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}"
            )
        self._mesh = mesh

    def __enter__(self) -> Any:
        mesh, before = self._mesh, get_abstract_mesh()
        if not (mesh.empty or before.empty) and mesh.size != before.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {mesh} with "
                f"size={mesh.size} and prev mesh: {before} with size={before.size}"
            )
        super().__init__(mesh)
        return mesh


def get_mesh() -> Mesh:
    """The mesh of devices in force; an empty one if there is none.

    ValueError in a function that is being transformed.
    """
    _check_not_tracing("get_mesh", " Maybe you want `jax.sharding.get_abstract_mesh()`?")
    return device_mesh()


def device_mesh() -> Mesh:
    """The mesh of devices in force, whatever is being traced; an empty one if there is none."""
    mesh = local.context.mesh
    return mesh if isinstance(mesh, Mesh) else _NO_MESH


def constraint_mesh() -> Mesh:
    """The mesh of devices in force, or that of `with mesh:`; an empty one if there is none."""
    mesh = device_mesh()
    return mesh if not mesh.empty else local.context.constraint_mesh or _NO_MESH


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in force."""
    mesh = local.context.mesh
    return _NO_AXES if mesh is None else mesh.abstract_mesh


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Make a mesh of devices.

    - `axis_shapes`, `axis_names`: shape of the mesh and names of its axes
    - `axis_types`: an `AxisType` for each axis, by default Explicit
    - `devices`: devices, by default the first ones of the preferred platform

    ValueError for more devices than exist, or if the lengths differ.
    Source: Shardy's `MeshAttr`.

    >>> jax.make_mesh((1, 1), ("data", "model")).axis_names
    ('data', 'model')
    """
    devices = list(platforms.devices() if devices is None else devices)
    sizes = (axis_shapes,) if isinstance(axis_shapes, str) else islice(axis_shapes, _MOST_AXES)
    sizes = tuple(sizes)
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if not all(isinstance(size, numbers.Real) for size in sizes):
        raise ValueError(
            f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {axis_shapes}"
        )
    sizes = tuple(map(int, sizes))
    wanted = math.prod(sizes)
    if not 0 <= wanted <= len(devices):
        raise ValueError(
            f"Number of devices {len(devices)} must be >= the product of mesh_shape {sizes}"
        )
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(np.array(devices[:wanted]).reshape(sizes), names, types)
