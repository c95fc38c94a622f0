"""The hardware of the machine, from files of Linux: a counterpart of upstream's `hardware_utils`.

Sources: the kernel's documentation of sysfs (PCI
devices, KFD's topology, huge pages) and of NVIDIA's device files.
"""

from __future__ import annotations

import enum
import os
import re
from pathlib import Path

__all__ = [
    "TpuVersion", "get_shm_size_in_mb", "has_visible_nvidia_gpu", "num_available_amd_gpus",
    "num_available_tpu_chips_and_device_id", "transparent_hugepages_enabled",
]  # fmt: skip


class TpuVersion(enum.IntEnum):
    """Kinds of TPU, the older first."""

    v2 = 0
    v3 = 1
    plc = 2
    v4 = 3
    v5p = 4
    v5e = 5
    v6e = 6
    tpu7x = 7


_GOOGLE = "0x1ae0"  # the vendor's number on the PCI bus
_TPUS = {
    "0x0027": TpuVersion.v3, "0x0056": TpuVersion.plc, "0x005e": TpuVersion.v4,
    "0x0062": TpuVersion.v5p, "0x0063": TpuVersion.v5e, "0x006f": TpuVersion.v6e,
    "0x0076": TpuVersion.tpu7x,
}  # fmt: skip
_NVIDIA_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def num_available_tpu_chips_and_device_id() -> tuple[int, str | None]:
    """Return how many TPU chips are on the PCI bus, and the number of their kind; None if there are
    none.
    """
    chips, kind = 0, None
    for vendor in Path("/sys/bus/pci/devices").glob("*/vendor"):
        device = _read(vendor.with_name("device"))
        if _read(vendor) == _GOOGLE and device in _TPUS:
            chips, kind = chips + 1, device
    return chips, kind


def has_visible_nvidia_gpu() -> bool:
    """Whether there is a device file of an NVIDIA GPU."""
    return any(map(os.path.exists, _NVIDIA_FILES))


def num_available_amd_gpus(stop_at: int | None = None) -> int:
    """Return how many GPUs the driver for AMD's names, counting no further than `stop_at`; one
    under WSL.
    """
    if not os.path.exists("/dev/kfd"):
        return int(os.path.exists("/dev/dxg"))
    found = 0
    for node in Path("/sys/class/kfd/kfd/topology/nodes").glob("*/properties"):
        units = re.search(r"^simd_count (\d+)$", _read(node), re.MULTILINE)
        found += units is not None and int(units[1]) > 0  # a node without any is a processor
        if stop_at is not None and found >= stop_at:
            break
    return found


def transparent_hugepages_enabled() -> bool:
    """Whether the kernel gives huge pages without being asked."""
    return "[always]" in _read(Path("/sys/kernel/mm/transparent_hugepage/enabled"))


def get_shm_size_in_mb() -> float | None:
    """The size of shared memory in MiB; None if there is none."""
    try:
        found = os.statvfs("/dev/shm")
    except FileNotFoundError:
        return None
    except OSError:
        return 0
    return found.f_frsize * found.f_blocks / 2**20
