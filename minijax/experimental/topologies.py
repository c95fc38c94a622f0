"""`minijax.experimental.topologies`: devices to compile for, whether or not they are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.experimental.mesh_utils import create_device_mesh
from minijax.runtime import platforms, topologies
from minijax.runtime.mesh import Mesh
from minijax.tracebacks import public

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """The devices of a machine."""

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are here, of the default platform or of another."""
    return TopologyDescription(list(platforms.backend(platform).devices()))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """The devices of a machine that is described by name, as a platform's plug-in knows it.

    For TPUs such as "v4:2x2x1". `kwargs` are options of the plug-in: text, numbers or sequences of
    integers. NotImplementedError for platforms that know none; RuntimeError if the plug-in of the
    platform is not here; ValueError, with the names that it knows, for a machine that it does not.
    """
    return TopologyDescription(topologies.described(topology_name, platform or "tpu", kwargs))


def make_mesh(
    topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
    contiguous_submeshes: bool = False,
) -> Mesh:  # fmt: skip
    """A mesh of the devices of a machine, laid out as `create_device_mesh` does."""
    if not hasattr(topo, "devices"):
        raise TypeError(
            f"make_mesh takes the description of a topology, got {topo!r} of type {type(topo)}: "
            "get_topology_desc gives one."
        )
    devices = create_device_mesh(
        mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(devices, axis_names)


__dir__ = public(__name__)
