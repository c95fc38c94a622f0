"""Exported programs as bytes: a header in JSON, and the modules that it tells of.

The layout, numbers little-endian: the eight bytes `MINIJAX\\x01`, the CRC-32 of all that
follows them and it (4 bytes), the length of the header (8), the header, the modules one after the
other: that of the function, of its derivative, and so on. Reading runs no code.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.core.effects import Effect
from minijax.export.bytecode import check_module
from minijax.export.symbolic import SymbolicScope
from minijax.export.trees import read_tree, write_tree
from minijax.features.queries import is_dim
from minijax.lax.prng import key_type
from minijax.lowering.types import physical
from minijax.runtime.mesh import (
    UNCONSTRAINED,
    AbstractDevice,
    AbstractMesh,
    AxisType,
    PartitionSpec,
)
from minijax.runtime.named_sharding import NamedSharding
from minijax.tracebacks import boundary

__all__ = ["deserializer", "serialize"]

_MAGIC = b"MINIJAX\x01"
_HEAD = struct.Struct("<8sIQ")
_WANTED = "give the bytes that Exported.serialize gave, whole."
_PLAIN = (
    "fun_name", "nr_devices", "platforms", "calling_convention_version", "module_kept_var_idx",
    "uses_global_constants",
)  # fmt: skip


# -- writing ---------------------------------------------------------------------------------------


def serialize(exported: Any, vjp_order: int) -> bytearray:
    """The bytes of an exported function and of its first `vjp_order` derivatives."""
    orders = [exported]
    while vjp_order > 0 and len(orders) <= vjp_order:
        orders.append(orders[-1].vjp())
    header = json.dumps([_header(one) for one in orders], separators=(",", ":")).encode()
    body = b"".join([header, *(one.mlir_module_serialized for one in orders)])
    length = struct.pack("<Q", len(header))
    return bytearray(_MAGIC + struct.pack("<I", zlib.crc32(length + body)) + length + body)


def _header(one: Any) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in _PLAIN},
        "in_tree": write_tree(one.in_tree),
        "out_tree": write_tree(one.out_tree),
        "in_avals": list(map(_written_aval, one.in_avals)),
        "out_avals": list(map(_written_aval, one.out_avals)),
        "in_shardings": list(map(_written_sharding, one._in_named_shardings)),
        "out_shardings": list(map(_written_sharding, one._out_named_shardings)),
        "ordered_effects": list(map(_written_effect, one.ordered_effects)),
        "unordered_effects": list(map(_written_effect, one.unordered_effects)),
        "constraints": _written_scope(one),
        "disabled_checks": [repr(check) for check in one.disabled_safety_checks],
        "module": len(one.mlir_module_serialized),
    }


def _written_scope(one: Any) -> list[str]:
    """Return the constraints on the dimension variables, as they were written."""
    sizes = [size for aval in one.in_avals for size in aval.shape if is_dim(size)]
    return [text for text in sizes[0].scope.written] if sizes else []


def _written_dtype(dtype: Any) -> Any:
    if dtype == dtypes.float0:
        return "float0"
    return {"key": dtype._impl.name} if isinstance(dtype, dtypes.ExtendedDType) else dtype.name


def _written_aval(aval: ShapedArray) -> list[Any]:
    """Shape, dtype and sharding; what was read from bytes has no weak type."""
    shape = [str(size) if is_dim(size) else size for size in aval.shape]
    return [shape, _written_dtype(aval.dtype), _written_sharding(aval.explicit)]


def _written_sharding(where: NamedSharding | None) -> Any:
    if where is None:
        return None
    mesh, spec = where.mesh.abstract_mesh, where.spec
    kind = mesh.abstract_device
    parts = [
        "?" if p is UNCONSTRAINED else list(p) if isinstance(p, tuple) else p and [p]
        for p in spec.partitions
    ]
    return {
        "axes": [list(pair) for pair in mesh.shape_tuple],
        "types": [axis.name for axis in mesh.axis_types],
        "device": kind and list(kind._fields()),
        "spec": parts,
        "unreduced": sorted(spec.unreduced),
        "reduced": sorted(spec.reduced),
        "memory_kind": where.memory_kind,
    }


def _written_effect(effect: Effect) -> str:
    """The class of an effect, all of whose instances must be alike."""
    kind = type(effect)
    try:
        alike = kind() == kind() or not vars(effect)
    except TypeError:
        alike = False
    if not alike:
        raise NotImplementedError(
            f"Effect {effect} of type {kind} must have a nullary class constructor and "
            "must be equal to what that makes, to be kept in an exported program."
        )
    return f"{kind.__module__}.{kind.__qualname__}"


# -- reading ---------------------------------------------------------------------------------------


def deserializer(exported: type, check: type) -> Callable[[bytes | bytearray], Any]:
    """The function that reads exported functions of these classes."""

    @boundary
    def deserialize(blob: bytes | bytearray) -> Any:
        """The `Exported` that `serialize` wrote. ValueError for bytes that are not such, or damaged."""
        if not isinstance(blob, (bytes, bytearray, memoryview)):
            raise TypeError(f"deserialize takes bytes; got {blob!r} of type {type(blob)}.")
        headers, modules = _opened(bytes(blob))
        try:
            _check(headers, modules)
            return next(_chain(exported, check, headers, modules))
        except ValueError:
            raise
        except Exception as error:  # of another's making: whatever reading its header meets
            raise ValueError(
                f"an exported function of {len(blob)} bytes has a header that makes no sense "
                f"({type(error).__name__}: {error}): {_WANTED}"
            ) from None

    return deserialize


def _opened(blob: bytes) -> tuple[list[dict], bytes]:
    """The headers, and the modules."""
    if len(blob) < _HEAD.size or blob[:7] != _MAGIC[:7]:
        raise ValueError(f"these {len(blob)} bytes are no function exported by minijax: {_WANTED}")
    magic, checksum, length = _HEAD.unpack_from(blob)
    if magic != _MAGIC:
        raise ValueError(
            f"this function was exported in version {magic[7]} of the format, and this minijax reads "
            f"version {_MAGIC[7]}: export it again."
        )
    if zlib.crc32(blob[12:]) != checksum:
        raise ValueError(f"an exported function of {len(blob)} bytes is damaged: {_WANTED}")
    start = _HEAD.size + length
    try:
        return json.loads(blob[_HEAD.size : start]), blob[start:]
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"an exported function of {len(blob)} bytes has a header that cannot be read ({error}): "
            f"{_WANTED}"
        ) from None


_KINDS = {
    "fun_name": str, "nr_devices": int, "platforms": list, "calling_convention_version": int,
    "module_kept_var_idx": list, "uses_global_constants": bool, "in_avals": list, "out_avals": list,
    "in_shardings": list, "out_shardings": list, "ordered_effects": list,
    "unordered_effects": list, "constraints": list, "disabled_checks": list, "module": int,
}  # fmt: skip


def _check(headers: Any, modules: bytes) -> None:
    """Refuse headers whose parts do not fit each other, or the modules. ValueError."""
    sizes = 0
    for head in headers:
        wrong = [name for name, kind in _KINDS.items() if type(head[name]) is not kind]
        count = len(head["in_avals"])
        counts = (count, len(head["out_avals"]))
        placed = tuple([len(head[f"{name}_shardings"]) for name in ("in", "out")])
        leaves = tuple([read_tree(head[f"{name}_tree"]).num_leaves for name in ("in", "out")])
        kept = head["module_kept_var_idx"]
        if (
            wrong or placed != counts or leaves != counts or head["module"] < 0 or head["nr_devices"] < 1
            or any(type(i) is not int or not 0 <= i < count for i in kept)
            or any(type(name) is not str for name in head["platforms"])
        ):  # fmt: skip
            raise ValueError(f"the header of an exported function makes no sense: {_WANTED}")
        try:
            check_module(modules[sizes : sizes + head["module"]])
        except ValueError as error:
            raise ValueError(
                f"the module of an exported function is damaged ({error}): {_WANTED}"
            ) from None
        sizes += head["module"]
    if not headers or sizes != len(modules):
        raise ValueError(f"the modules of an exported function are not whole: {_WANTED}")


def _chain(exported: type, check: type, headers: list[dict], modules: bytes) -> Iterator[Any]:
    """The function; what makes its derivative is the rest of the chain."""
    head, rest = headers[0], headers[1:]
    ins = tuple(map(_read_sharding, head["in_shardings"]))
    outs = tuple(map(_read_sharding, head["out_shardings"]))
    scope = SymbolicScope(head["constraints"])
    in_avals, out_avals = (
        tuple([_read_aval(written, scope) for written in head[name]])
        for name in ("in_avals", "out_avals")
    )
    size = head["module"]
    derivative = None
    if rest:
        derivative = lambda _: next(_chain(exported, check, rest, modules[size:]))
    plain = {name: _tuples(head[name]) for name in _PLAIN}
    yield exported(
        **plain,
        in_tree=read_tree(head["in_tree"]),
        in_avals=in_avals,
        out_tree=read_tree(head["out_tree"]),
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=ins,
        _out_named_shardings=outs,
        in_shardings_hlo=tuple(map(_as_hlo, ins, in_avals)),
        out_shardings_hlo=tuple(map(_as_hlo, outs, out_avals)),
        ordered_effects=tuple(map(_read_effect, head["ordered_effects"])),
        unordered_effects=tuple(map(_read_effect, head["unordered_effects"])),
        disabled_safety_checks=tuple(map(check, head["disabled_checks"])),
        mlir_module_serialized=modules[:size],
        _get_vjp=derivative,
    )


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _as_hlo(where: NamedSharding | None, aval: ShapedArray) -> Any:
    return None if where is None else where._to_xla_hlo_sharding(physical(aval).ndim)


def _read_aval(written: list[Any], scope: SymbolicScope) -> ShapedArray:
    sizes, name, where = written
    shape = tuple([scope.read(size)[0] if isinstance(size, str) else size for size in sizes])
    if name == "float0":
        dtype: Any = dtypes.float0
    elif isinstance(name, dict):
        dtype = key_type(name["key"])
    else:
        dtype = np.dtype(name)
    return ShapedArray(shape, dtype, sharding=_read_sharding(where))


def _read_sharding(written: Any) -> NamedSharding | None:
    if written is None:
        return None
    names, sizes = [n for n, _ in written["axes"]], [s for _, s in written["axes"]]
    kind = written["device"]
    mesh = AbstractMesh(
        sizes, names, tuple(AxisType[name] for name in written["types"]),
        abstract_device=kind and AbstractDevice(*kind),
    )  # fmt: skip
    parts = [UNCONSTRAINED if p == "?" else p and tuple(p) for p in written["spec"]]
    spec = PartitionSpec(
        *parts, unreduced=frozenset(written["unreduced"]), reduced=frozenset(written["reduced"])
    )
    return NamedSharding(mesh, spec, written["memory_kind"])


def _kinds(kind: type[Effect]) -> Iterator[type[Effect]]:
    for other in kind.__subclasses__():
        yield other
        yield from _kinds(other)


@functools.cache
def _read_effect(name: str) -> Effect:
    for kind in _kinds(Effect):
        if f"{kind.__module__}.{kind.__qualname__}" == name:
            return kind()
    raise ValueError(
        f"an exported program has the effect {name}, of a class that this process has not: import "
        "the module that defines it."
    )
