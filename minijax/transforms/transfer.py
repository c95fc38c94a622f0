"""Moving arrays between host and devices: device_put, device_get, block_until_ready.

May import the floors below and the `transforms` basics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl, Signature, array_from_numpy, as_array
from minijax.arrays.dispatch import moved
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive, in_shape_rule
from minijax.core.trace import Tracer
from minijax.runtime import buffers, platforms
from minijax.runtime import sharding as shardings
from minijax.runtime.mesh import AbstractMesh, PartitionSpec, get_mesh
from minijax.runtime.named import NamedSharding, sharding_of

__all__ = [
    "block_until_ready", "copy_to_host_async", "device_get", "device_put", "device_put_p",
]  # fmt: skip

device_put_p = Primitive("device_put", multiple_results=True)


device_put_p.sharding(in_shape_rule)


@device_put_p.shape_rule
def _(*avals, devices, **params):
    return [
        aval.update(sharding=where) if isinstance(where, shardings.Sharding) else aval
        for aval, where in zip(avals, devices, strict=True)
    ]


@device_put_p.impl
def _(*args, devices, srcs, copy_semantics):
    return [
        put_array(x, where, copy=how == "copy")
        for x, where, how in zip(args, devices, copy_semantics, strict=True)
    ]


@device_put_p.lower
def _(b, *operands, **params):
    return list(operands)


@device_put_p.jvp
def _(primals, tangents, **params):
    return device_put_p.bind(*primals, **params), tangents


@device_put_p.transpose
def _(cts, *args, **params):
    return list(cts)


@device_put_p.batch
def _(args, dims, **params):
    return device_put_p.bind(*args, **params), list(dims)


def put_array(x: Any, where: Any, *, copy: bool = False, donate: bool = False) -> ArrayImpl:
    """A concrete array on a device or sharding; committed to it if one is given."""
    if where is None:
        if isinstance(x, (np.ndarray, np.generic)):
            return array_from_numpy(np.asarray(x), explicit=True)
        found = as_array(x)
        return found.__copy__() if copy else found
    target = as_sharding(where)
    aval = get_aval(x)
    if isinstance(x, ArrayImpl):
        x._check_deleted()
        signature = Signature(aval, target, True)
        if x.signature is signature and not copy:
            return x
        there = ArrayImpl(moved(x, target, copy=copy)._buffer, signature)
        if donate and x.signature.sharding != target:
            x.delete()
        return there
    return array_from_numpy(np.asarray(x, aval.dtype), aval, target, True, explicit=True)


def as_sharding(where: Any) -> Any:
    """The sharding that a device, a platform's name or a sharding stands for."""
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
        "device_put device specification must be a tree prefix of the corresponding value: a "
        f"Device, a Sharding, or None; got {where!r} of type {type(where)}."
    )


def _on_devices(where: shardings.Sharding) -> shardings.Sharding:
    """A sharding over the axes of a mesh is one over the devices of the mesh in force."""
    if not isinstance(where, NamedSharding) or not isinstance(where.mesh, AbstractMesh):
        return where
    mesh = get_mesh()
    if mesh.empty or mesh.abstract_mesh != where.mesh:
        raise ValueError(
            f"The sharding {where} is over an AbstractMesh, which has no devices, and the mesh in "
            "force is another: give a sharding over a Mesh, or set it with minijax.set_mesh(mesh)."
        )
    return NamedSharding(mesh, where.spec, memory_kind=where.memory_kind)


def _is_default_kind(where: shardings.SingleDeviceSharding) -> bool:
    return where.memory_kind == where.device.default_memory().kind


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Transfer a tree of arrays to a device or sharding (or a tree of these, a prefix of `x`).

    The result is committed to it: operations with arrays committed elsewhere are errors. Without
    `device` values become uncommitted arrays on the default device. `donate=True` frees the source
    where it had to be copied; `may_alias=False` copies always.
    """
    leaves, tree = tree_util.flatten(x)
    for leaf in leaves:
        get_aval(leaf)
    is_place = lambda d: d is None or not isinstance(d, (tuple, list, dict))
    places = (
        [device] * len(leaves)
        if is_place(device)
        else tree_util.broadcast_prefix(device, x, is_leaf=is_place)
    )
    targets = [None if place is None else as_sharding(place) for place in places]
    donations = [donate] * len(leaves) if isinstance(donate, bool) else tree_util.broadcast_prefix(
        donate, x
    )  # fmt: skip
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        how = "copy" if may_alias is False else "alias"
        outs = device_put_p.bind(
            *leaves,
            devices=tuple(targets),
            srcs=(src,) * len(leaves),
            copy_semantics=(how,) * len(leaves),
        )
    else:
        outs = [
            put_array(leaf, target, copy=may_alias is False, donate=gift)
            for leaf, target, gift in zip(leaves, targets, donations, strict=True)
        ]
    return tree.unflatten(outs)


def device_get(x: Any) -> Any:
    """Transfer a tree of arrays to the host: a tree of NumPy arrays.

    Leaves that are no arrays, and tracers, are unchanged.
    """
    return tree_util.tree_map(_to_host, x)


def _to_host(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return x._value
    return np.asarray(x) if isinstance(x, np.generic) else x


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a tree are computed; gives the tree."""
    pending: Sequence[ArrayImpl] = [a for a in tree_util.tree_leaves(x) if isinstance(a, ArrayImpl)]
    for array in pending:
        array._check_deleted()
    if len(pending) == 1:
        pending[0]._buffer.block_until_ready()
    elif pending:
        buffers.block_until_ready([a._buffer for a in pending])
    return x


def copy_to_host_async(x: Any) -> Any:
    """Begin copies to the host of all arrays of a tree; gives the tree."""
    for array in tree_util.tree_leaves(x):
        if hasattr(array, "copy_to_host_async"):
            array.copy_to_host_async()
    return x
