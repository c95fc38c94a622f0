"""Values as Python expressions in the names `jax`, `lax`, `jnp` and `np`."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core.primitive import Primitive
from minijax.features.queries import is_dim
from minijax.features.sharding.memory import MemorySpace
from minijax.lax.linalg import EighImplementation, EigImplementation, SvdAlgorithm
from minijax.lax.pallas import specs
from minijax.lax.prng import PRNGImpl
from minijax.lax.sparse.info import SparseInfo
from minijax.lax.sparse.matrices import COOInfo
from minijax.runtime.layouts import Format, Layout
from minijax.runtime.platforms import Device
from minijax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
    get_abstract_mesh,
)

# Classes whose public names are not those of `lax`.
_PUBLIC: dict[type, str] = {
    COOInfo: "sparse.coo.COOInfo",
    EigImplementation: "lax.linalg.EigImplementation",
    EighImplementation: "lax.linalg.EighImplementation",
    Format: "Format",
    Layout: "Layout",
    MemorySpace: "jax.memory.Space",
    specs.Blocked: "pl.Blocked",
    specs.BoundedSlice: "pl.BoundedSlice",
    specs.CostEstimate: "pl.CostEstimate",
    specs.Element: "pl.Element",
    specs.MemorySpace: "pl.MemorySpace",
    SparseInfo: "sparse.util.SparseInfo",
    SvdAlgorithm: "lax.linalg.SvdAlgorithm",
}

__all__ = [
    "Operand", "Text", "array_text", "dtype_text", "in_force", "literal", "operand", "struct_text",
    "tree_text", "tuple_text",
]  # fmt: skip

MOST_ELEMENTS = 64  # of an array that is written out


class Text:
    """A value to be written; items and slices of it can be asked for in a template."""

    def __init__(self, items: Any, write: Any = None):
        self.items = items
        self.write = write or literal

    def __getitem__(self, key: str) -> Text:
        if key == "1:" or key == "2:":
            return Text(self.items[int(key[0]) :], self.write)
        return Text(self.items[int(key)], self.write)

    def __str__(self) -> str:
        return self.write(self.items)


def tuple_text(items: Any) -> str:
    items = list(items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def tree_text(tree: Any, write: Callable[[Any], str]) -> str:
    """The text of dicts, lists and tuples, whose leaves `write` writes.

    It is given other containers as well, and is to raise an error for them.
    """
    if tree is None:
        return "None"
    if type(tree) is tuple:
        return tuple_text([tree_text(x, write) for x in tree])
    if type(tree) is list:
        return f"[{', '.join(tree_text(x, write) for x in tree)}]"
    if type(tree) is dict:
        found = {k: tree_text(tree[k], write) for k in sorted(tree)}
        return "{" + ", ".join(f"{literal(k)}: {found[k]}" for k in tree) + "}"
    return write(tree)


class Operand(str):
    """The text of a leaf of a tree."""


def operand(leaf: Any) -> str:
    """The text of a leaf that is an `Operand`; TypeError for another container."""
    if type(leaf) is not Operand:
        raise TypeError(type(leaf))
    return leaf


def struct_text(aval: Any) -> str:
    return f"jax.ShapeDtypeStruct({literal(aval.shape)}, {dtype_text(aval.dtype)})"


def dtype_text(dtype: Any) -> str:
    if dtype == dtypes.float0:
        return "jax.dtypes.float0"
    return "jnp.bool_" if dtype.name == "bool" else f"jnp.{dtype.name}"


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def array_text(value: np.ndarray, named: str) -> str | None:
    """The text of a small array of numbers; None if it is to be given in another way."""
    if value.size > MOST_ELEMENTS or value.dtype.kind not in "biufcV":
        return None
    if value.dtype == dtypes.float0:
        return f"np.zeros({value.shape}, {named})"
    kind = value.dtype
    if kind.kind == "V" or kind.isbuiltin != 1:
        wide = np.int64 if dtypes.issubdtype(kind, np.integer) else np.float64
        value = value.astype(wide)
    if not value.ndim:
        return f"np.array({_number(value.item())}, {named})"
    flat = ", ".join(_number(x) for x in value.ravel().tolist())
    text = f"np.array([{flat}], {named})"
    return text if value.ndim == 1 else f"{text}.reshape({value.shape})"


def _fields(value: Any) -> dict[str, Any] | None:
    if hasattr(value, "_fields"):
        return value._asdict()
    if not dataclasses.is_dataclass(value):
        return None
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _public(kind: type) -> str | None:
    """The public name of a class."""
    own = f"lax.{kind.__name__}" if getattr(lax, kind.__name__, None) is kind else None
    if kind.__module__ == "minijax.experimental.pallas.tpu":
        return f"pltpu.{kind.__name__}"
    return _PUBLIC.get(kind, own)


def in_force(mesh: Any) -> bool:
    """Whether a mesh is that of the `shard_map` around, or that of `set_mesh`, within which the text is
    to run as the program is.
    """
    if not isinstance(mesh, AbstractMesh) or mesh.empty:
        return False
    return AxisType.Manual in mesh.axis_types or mesh == get_abstract_mesh()


def _device(device: Any) -> str:
    return f"jax.devices()[{device.id}]"


def _mesh(mesh: Any) -> str:
    types = tuple_text(f"jax.sharding.AxisType.{kind.name}" for kind in mesh.axis_types)
    if isinstance(mesh, AbstractMesh):
        return (
            f"jax.sharding.AbstractMesh({mesh.axis_sizes}, {mesh.axis_names}, axis_types={types})"
        )
    devices = ", ".join(_device(d) for d in mesh.devices.flat)
    grid = f"np.array([{devices}]).reshape({mesh.devices.shape})"
    return f"jax.sharding.Mesh({grid}, {mesh.axis_names}, axis_types={types})"


def _spec(spec: PartitionSpec) -> str:
    parts = [literal(part) for part in spec.partitions]
    parts += [
        f"{name}={literal(getattr(spec, name))}"
        for name in ("unreduced", "reduced")
        if getattr(spec, name, None)
    ]
    return f"jax.sharding.PartitionSpec({', '.join(parts)})"


def literal(value: Any) -> str:
    """Return an expression for a value of a param; TypeError if there is none."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, enum.Enum)):
        return repr(value)
    if is_dim(value):  # in the names of the dimension variables
        return re.sub(r"\b(floordiv|mod)\(", r"operator.\1(", str(value).replace("^", "**"))
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        return _number(value)
    if isinstance(value, enum.Enum) and _public(type(value)):
        return f"{_public(type(value))}.{value.name}"
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, type) and issubclass(value, np.generic):
        return dtype_text(np.dtype(value))
    if isinstance(value, np.generic) and value.dtype.isbuiltin == 1 and value.dtype.kind in "biufc":
        return f"np.{value.dtype.name}({_number(value.item())})"
    if isinstance(value, (np.generic, np.ndarray)):
        return array_text(np.asarray(value), dtype_text(value.dtype)) or _refuse(value)
    if isinstance(value, PRNGImpl):
        return repr(value.name)
    if isinstance(value, Primitive):
        return f"primitives.{value.name.replace('-', '_')}_p"
    if isinstance(value, PartitionSpec):
        return _spec(value)
    if isinstance(value, NamedSharding) and in_force(value.mesh):
        return _spec(value.spec)
    if isinstance(value, NamedSharding):
        return f"jax.sharding.NamedSharding({_mesh(value.mesh)}, {_spec(value.spec)})"
    if isinstance(value, (Mesh, AbstractMesh)):
        return _mesh(value)
    if value is Layout.AUTO:
        return "Layout.AUTO"
    if isinstance(value, SingleDeviceSharding):
        return f"jax.sharding.SingleDeviceSharding({_device(next(iter(value.device_set)))})"
    if isinstance(value, Device):
        return _device(value)
    fields = _fields(value)
    if fields is not None and _public(type(value)):
        inner = ", ".join(f"{name}={literal(x)}" for name, x in fields.items())
        return f"{_public(type(value))}({inner})"
    if isinstance(value, (tuple, list)):
        return tuple_text(map(literal, value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(literal, value))) + "}" if value else "frozenset()"
    return _refuse(value)


def _refuse(value: Any) -> Any:
    raise TypeError(f"to_python has no literal for {type(value).__name__} {value!r}.")
