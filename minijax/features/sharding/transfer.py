"""Moving arrays between host and devices: device_put, device_get, block_until_ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, Signature, array_from_numpy, as_array
from minijax.arrays.dispatch import moved
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive
from minijax.core.staging import recording_trace
from minijax.core.trace import Tracer
from minijax.dtypes import is_extended
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.features.sharding.memory import HOST_KIND, MemorySpace, space_of
from minijax.features.sharding.memory_layouts import check_layout
from minijax.features.sharding.types import check_manual
from minijax.features.sharding.unreduced import sums_of
from minijax.lowering.module import Value
from minijax.runtime import buffers, platforms
from minijax.runtime import sharding as shardings
from minijax.runtime.escape import quoted
from minijax.runtime.guards import asked_for
from minijax.runtime.layouts import AutoLayout, Format
from minijax.runtime.mesh import AbstractMesh, PartitionSpec, device_mesh
from minijax.runtime.named_sharding import NamedSharding, check_rank, sharding_of
from minijax.transforms.tangents import Zero, is_undefined
from minijax.typing import Array, ArrayLike

__all__ = [
    "block_until_ready", "copy_to_host_async", "device_get", "device_put", "device_put_p",
]  # fmt: skip

device_put_p = Primitive("device_put", multiple_results=True)
_REUSE = buffers.CopySemantics.REUSE_INPUT


set_layout(device_put_p, parts=in_shape_rule)


@device_put_p.shape_rule
def _(*avals, devices, **params):
    return [_typed(aval, where) for aval, where in zip(avals, devices, strict=True)]


_T = TypeVar("_T")


def _typed(aval: Any, where: Any) -> Any:
    """The type of a value that is put there."""
    if isinstance(where, MemorySpace):
        return aval.update(memory_space=where)
    if not isinstance(where, shardings.Sharding):
        return aval
    return aval.update(sharding=where, memory_space=space_of(where.memory_kind))


@device_put_p.impl
def _(*args, devices, srcs, copy_semantics):
    return [
        put_array(x, where, copy=how is not _REUSE)
        for x, where, how in zip(args, devices, copy_semantics, strict=True)
    ]


@device_put_p.lower
def _(b, *operands, devices, **params):
    found = [
        x
        if out.memory_space is x.aval.memory_space and not (where and b.module.untyped_host)
        else annotated(b, x, out)
        for x, out, where in zip(operands, b.outs, devices, strict=True)
    ]
    if len(b.module.devices) == 1 or b.module.manual:
        return found
    return [
        b.summands(x, out.explicit)[0] if sums_of(out)[0] else x
        for x, out in zip(found, b.outs, strict=True)
    ]


def annotated(b: Any, x: Value, out: Any) -> Value:
    """The value, which XLA is to put into the memory of its type; within a program a CPU has one."""
    value = Value(b._name(), out)
    if b.platform == "cpu":
        value.name = x.name
        return value
    kind = HOST_KIND if out.memory_space is MemorySpace.Host else "device"
    b.lines.append(
        f'{value.name} = "stablehlo.custom_call"({x.name}) <{{call_target_name = '
        f'"annotate_device_placement", api_version = 1 : i32, has_side_effect = true}}> '
        f"{{mhlo.frontend_attributes = {{_xla_buffer_placement = {quoted(kind)}}}}} : "
        f"({x.type}) -> {value.type}"
    )
    return value


@device_put_p.jvp
def _(primals, tangents, **params):
    outs = device_put_p.bind(*primals, **params)
    return outs, _put_some(tangents, [type(t) is not Zero for t in tangents], params)


def _put_some(values: Sequence[Any], chosen: Sequence[bool], params: dict) -> list[Any]:
    """Put the chosen ones of the values, and leave the others as they are."""
    picked = [i for i, chosen in enumerate(chosen) if chosen]
    some = {name: tuple([value[i] for i in picked]) for name, value in params.items()}
    outs = list(values)
    for i, out in zip(picked, device_put_p.bind(*[values[i] for i in picked], **some), strict=True):
        outs[i] = out
    return outs


@device_put_p.transpose
def _(cts, *args, devices, srcs, **params):
    """Put cotangents where the values came from, or into the memory of their types."""
    chosen = [is_undefined(x) and type(ct) is not Zero for ct, x in zip(cts, args, strict=True)]
    homes = [
        _space_apart(ct, x.aval) if back and src is None else src
        for back, src, ct, x in zip(chosen, srcs, cts, args, strict=True)
    ]
    how = (buffers.CopySemantics.ALWAYS_COPY,) * len(cts)
    back = {"devices": tuple(homes), "srcs": devices, "copy_semantics": how}
    return _put_some(cts, chosen, back)


def _space_apart(x: Any, aval: Any) -> MemorySpace | None:
    """Return the memory of a type, if a value is in another one."""
    space = aval.memory_space
    return None if get_aval(x).memory_space is space else space


def _source(x: Any) -> Any:
    """Return where the array lies that a leaf is, or stands for, if that is known."""
    known = x.concrete() if isinstance(x, Tracer) else x
    return known.sharding if type(known) is ArrayImpl else None


@device_put_p.batch
def _(args, dims, **params):
    return device_put_p.bind(*args, **params), list(dims)


def put_array(
    x: Any, where: Any, *, copy: bool = False, donate: bool = False, alias: bool = False
) -> ArrayImpl:
    """A concrete array on a device, sharding or `Format`; committed to it if one is given.

    An array of the host is copied, unless it is to be an `alias` or donated, or nobody can write to it.

    A `Format` without a layout is that which the device prefers; a sharding alone leaves an array that
    is moved as a whole in its layout.
    """
    if where is None:
        if isinstance(x, (np.ndarray, np.generic)):
            shared = alias or donate or (not copy and buffers.is_constant(x))
            return array_from_numpy(np.asarray(x), explicit=True, copy=not shared)
        if isinstance(x, (int, float, complex)) and local.context.numbers_key != local.context.key:
            aval = get_aval(x)  # transfers are guarded, and the user asks for this one
            return array_from_numpy(dtypes.number_as(x, aval.dtype), aval, explicit=True)
        found = as_array(x)
        return found.__copy__() if copy else found
    aval = get_aval(x)
    keeps, layout = not isinstance(where, (Format, MemorySpace)), None
    if isinstance(where, Format):
        where, layout = where.sharding, where.layout
    target = _in_space(x, where) if isinstance(where, MemorySpace) else as_sharding(where)
    place = target if layout is None else Format(layout, target)
    space = space_of(target.memory_kind)
    if aval.memory_space is not space:
        aval = aval.update(memory_space=space)
    if isinstance(x, ArrayImpl):
        x._check_deleted()
        if keeps and x.signature.place is not x.signature.sharding:
            place = _in_same_layout(x, target)
        signature = Signature(aval, place, True)
        copy = copy or isinstance(where, MemorySpace)
        if x.signature is signature and not copy:
            return x
        there = moved(x, place, copy=copy)
        if place is not target:
            signature = Signature(aval, there.signature.place, True)
        there = ArrayImpl(there._buffer, signature)
        alike = x.signature.place is x.sharding and place is target
        if donate and not (alike and _share_memory(x.sharding, target, x.shape)):
            x.delete()
        return there
    shared = alias or donate or (not copy and buffers.is_constant(x))
    value = np.asarray(x, aval.dtype)
    there = array_from_numpy(value, aval, target, True, explicit=True, copy=not shared)
    return there if place is target else moved(there, place)


def _in_same_layout(x: ArrayImpl, target: Any) -> Any:
    """Return the place of an array with another sharding.

    In the same kind of memory it keeps its layout if it stays split as it is, or is copied as a whole.
    """
    own = x.signature.sharding
    if own.memory_kind != target.memory_kind:
        return target
    whole = len(own._device_assignment) == 1 and target.is_fully_replicated
    same = own._device_assignment == target._device_assignment
    if whole or (same and target.is_equivalent_to(own, x.ndim)):
        return Format(x.signature.place.layout, target)
    return target


def _share_memory(own: Any, target: Any, shape: tuple[int, ...]) -> bool:
    """Whether an array that is moved has the buffers of its source."""
    if own.memory_kind != target.memory_kind:
        return False
    return own.devices_indices_map(shape) == target.devices_indices_map(shape)


def as_sharding(where: Any) -> Any:
    """The sharding that a device, a platform's name or a sharding stands for; or a memory."""
    if isinstance(where, MemorySpace):
        return where
    if isinstance(where, platforms.Device):
        return shardings.single_device(where)
    if isinstance(where, shardings.SingleDeviceSharding):
        return shardings.single_device(where.device) if _is_default_kind(where) else where
    if isinstance(where, (shardings.Sharding, PartitionSpec)):
        return _on_devices(sharding_of(where, "device_put"))
    device = getattr(where, "_device", None)
    if device is not None:
        return shardings.single_device(device)
    raise ValueError(
        "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, "
        "`jax.memory.Space` or a pytree of these values. Received invalid value: "
        f"{where} of type {type(where)}."
    )


def _in_space(x: Any, space: MemorySpace) -> Any:
    """Return where an array lies, in another memory."""
    if space is MemorySpace.Any:
        raise ValueError("device_put takes MemorySpace.Device or MemorySpace.Host; got Any.")
    own = getattr(x, "sharding", None) or shardings.single_device(platforms.default_device())
    default = shardings.default_memory_kind(own._device_assignment[0])
    return as_sharding(own.with_memory_kind(HOST_KIND if space is MemorySpace.Host else default))


def _target(place: Any, x: Any, traced: bool) -> Any:
    """The sharding or format that a value is to have; a traced one has no layout."""
    if isinstance(place, Format):
        aval = get_aval(x)
        if traced or place.sharding is None:
            place = place.sharding
        elif isinstance(place.layout, AutoLayout):
            raise ValueError(
                "sharding and layout in `Layout` instance should be concrete. Got layout: "
                f"{place} for input {aval.str_short()}: compile a function with Layout.AUTO, and "
                "take the layout from its `input_formats`."
            )
        else:
            check_layout("jit outputs with pytree key path result", place.layout, aval.shape)
            layout = None if is_extended(aval.dtype) else place.layout
            return Format(layout, as_sharding(place.sharding))
    if traced and isinstance(getattr(place, "mesh", None), AbstractMesh):
        return place
    if traced and isinstance(place, platforms.Device):
        return place  # a program runs where its arguments lie
    return None if place is None else as_sharding(place)


def _check_placed(x: Any, where: NamedSharding) -> None:
    """ValueError unless a value can be split so; whole parts are asked of tracers here."""
    aval = get_aval(x)
    if hasattr(aval, "shape"):
        check_rank("device_put args", where, len(aval.shape))
        check_manual(aval, where)
        if where.mesh.explicit_axes:
            aval.update(sharding=where)  # the type that it would have
        if isinstance(x, Tracer) and all(isinstance(size, int) for size in aval.shape):
            where.shard_shape(aval.shape)


def _on_devices(where: shardings.Sharding) -> shardings.Sharding:
    """A sharding over the axes of a mesh is one over the devices of the mesh in force."""
    if not isinstance(where, NamedSharding) or not isinstance(where.mesh, AbstractMesh):
        return where
    mesh = device_mesh()
    if mesh.empty or mesh.abstract_mesh != where.mesh:
        raise ValueError(
            "is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`. The sharding "
            f"{where} has no devices, and the mesh in force is another: give a sharding over a Mesh, "
            "or set it with minijax.set_mesh(mesh)."
        )
    return NamedSharding(mesh, where.spec, memory_kind=where.memory_kind)


def _is_default_kind(where: shardings.SingleDeviceSharding) -> bool:
    return where.memory_kind == shardings.default_memory_kind(where.device)


def _is_place(where: Any) -> bool:
    return where is None or not isinstance(where, (tuple, list, dict))


@overload
def device_put(
    x: ArrayLike,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any | None = None,
) -> Array: ...
@overload
def device_put(
    x: _T,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any | None = None,
) -> _T: ...
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any | None = None,
) -> Any:
    """Transfer a pytree of arrays to a device or sharding.

    - `x`: pytree of arrays or numbers of any shape and dtype; strings of NumPy's `StringDType` are
      held on CPUs, which `device` has to name
    - `device`: device, sharding, or pytree of these that is a prefix of `x`; the result is
      committed to it. Without it values become uncommitted arrays on the default device
    - `donate`: whether to free a source that is copied; `may_alias`: False to copy always, True to
      share the memory of NumPy arrays, whose later changes may show then

    The result has the structure, shapes and dtypes of `x`. TypeError for leaves that are not
    arrays, ValueError for another `device`.
    Source: PJRT's transfers between memories.

    >>> jax.device_put(np.array([1, 2]), jax.devices()[0])
    Array([1, 2], dtype=int32)
    """
    if may_alias is True and donate is True:
        raise ValueError(
            "may_alias and donate cannot be True at the same time. What is donated is freed, and the "
            "result would share its memory."
        )
    leaves, tree = tree_util.flatten(x)
    for leaf in leaves:
        get_aval(leaf)
    spread = lambda name, given: (
        [given] * len(leaves)
        if _is_place(given)
        else tree_util.flatten_axes(f"device_put {name}", tree, given, is_leaf=_is_place)
    )
    places = spread("device", device)
    traced = recording_trace() is not None or any(isinstance(leaf, Tracer) for leaf in leaves)
    targets = [_target(place, leaf, traced) for place, leaf in zip(places, leaves, strict=True)]
    for leaf, target in zip(leaves, targets, strict=True):
        where = target.sharding if isinstance(target, Format) else target
        if isinstance(where, NamedSharding):
            _check_placed(leaf, where)
    donations = spread("donate", donate)
    aliases = spread("may_alias", may_alias)
    copies = [alias is False for alias in aliases]
    if traced:
        kinds = buffers.CopySemantics
        hows = [
            kinds.ALWAYS_COPY if copy else kinds.DONATE_INPUT if gift else _REUSE
            for copy, gift in zip(copies, donations, strict=True)
        ]
        outs = device_put_p.bind(
            *leaves,
            devices=tuple(targets),
            srcs=tuple([_source(leaf) if src is None else src for leaf in leaves]),
            copy_semantics=tuple(hows),
        )
    else:
        times = Counter(map(id, leaves))  # what is given twice is not freed after the first
        with asked_for():
            outs = [
                put_array(
                    leaf,
                    target,
                    copy=alias is False,
                    donate=gift and times[id(leaf)] == 1,
                    alias=alias is True,
                )
                for leaf, target, alias, gift in zip(
                    leaves, targets, aliases, donations, strict=True
                )
            ]
    return tree.unflatten(outs)


def device_get(x: Any) -> Any:
    """Transfer a pytree of arrays to the host.

    - `x`: pytree; leaves that are not arrays, arrays of keys, and tracers are unchanged

    The result has NumPy arrays of the same shapes and dtypes. An error of the computation is raised
    here.
    Source: PJRT's transfers to the host.

    >>> jax.device_get([jnp.array([1, 2])])
    [array([1, 2], dtype=int32)]
    """
    with asked_for():
        return tree_util.tree_map(_to_host, x)


def _to_host(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return x if is_extended(x.dtype) else x._value
    return np.asarray(x) if isinstance(x, np.generic) else x


def block_until_ready(x: _T) -> _T:
    """Wait until all arrays of a pytree are computed.

    - `x`: pytree; leaves that are not arrays are ignored

    The result is `x`. An error of the computation is raised here.
    Source: PJRT's buffer-ready events.

    >>> jax.block_until_ready(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    pending: Sequence[ArrayImpl] = [a for a in tree_util.tree_leaves(x) if isinstance(a, ArrayImpl)]
    try:
        buffers.block_until_ready([a._buffer for a in pending])
    except Exception:
        for array in pending:
            array._check_deleted()
        raise
    return x


def copy_to_host_async(x: Any) -> Any:
    """Begin copies to the host of all arrays of a pytree.

    - `x`: pytree of arrays of any shape and dtype

    The result is `x`; later conversions to NumPy do not have to begin a copy.
    Source: PJRT's asynchronous copies.

    >>> jax.copy_to_host_async(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    for array in tree_util.tree_leaves(x):
        if hasattr(array, "copy_to_host_async"):
            array.copy_to_host_async()
    return x
