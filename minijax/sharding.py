"""`minijax.sharding`: where the parts of an array lie. Only re-exports."""

from minijax.features.sharding.explicit import auto_axes, explicit_axes, reshard
from minijax.features.sharding.types import ManualAxisType
from minijax.runtime.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.sharding import Sharding, SingleDeviceSharding
from minijax.tracebacks import public

make_single_device_sharding = SingleDeviceSharding

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes",
    "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard", "set_mesh",
    "use_abstract_mesh",
]  # fmt: skip

__dir__ = public(__name__)
