"""Meshes and shardings as Shardy's dialect writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.runtime.escape import axis, symbol
from minijax.runtime.mesh import UNCONSTRAINED, AbstractMesh, Mesh, axes_of

__all__ = ["axis_list", "sdy_mesh", "sdy_sharding"]


def axis_list(names: Sequence[Any], *free: str) -> str:
    """`{"x", "y"}`, and what is to follow the names."""
    return f"{{{', '.join([*map(axis, names), *free])}}}"


def sdy_mesh(name: str, mesh: Mesh | AbstractMesh, order: Sequence[Any]) -> str:
    """The declaration of a mesh in a module whose partitions are the devices in this order."""
    axes = ", ".join(f"{axis(n)}={size}" for n, size in mesh.shape_tuple)
    ids = ""
    if isinstance(mesh, Mesh):
        devices = tuple(mesh.devices.flat)
        if devices != tuple(order):
            ids = f", device_ids={[order.index(device) for device in devices]}"
    return f"sdy.mesh {symbol(name)} = <[{axes}]{ids}>"


def sdy_sharding(
    name: str, parts: Sequence[Any], unreduced: Sequence[Any] = (), *, open_: bool = False,
    free: str = "?",
) -> str:  # fmt: skip
    """`<@mesh, [{"x"}, {}]>`: the entries of a PartitionSpec, one for each dimension.

    Dimensions of an open one, and those that are UNCONSTRAINED, may be split further: `free` follows
    their axes. Axes that are still to be summed over, in the order of the mesh, are
    `unreduced={"y"}`.
    """
    shown = [axis_list(axes_of(part), *[free] * (open_ or part is UNCONSTRAINED)) for part in parts]
    sums = f", unreduced={axis_list(unreduced)}" if unreduced else ""
    return f"<{symbol(name)}, [{', '.join(shown)}]{sums}>"
