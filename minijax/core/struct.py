"""`ShapeDtypeStruct`: the type of an array as users write it. May import the ground and `core`."""

from __future__ import annotations

from typing import Any

from minijax import dtypes
from minijax.core.avals import ShapedArray, aval_makers, get_aval

__all__ = ["ShapeDtypeStruct", "abstract", "shape_struct"]


class ShapeDtypeStruct:
    """The shape, dtype and other static properties of an array, without its value."""

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape, dtype, *, sharding=None, weak_type=False, vma=None, is_ref=False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(shape)
        is_extended = dtypes.issubdtype(dtype, dtypes.extended)
        self.dtype = dtype if is_extended else dtypes.dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a scalar has no length; x.size is 1")
        return self.shape[0]

    def update(self, **changes) -> ShapeDtypeStruct:
        fields = {name: changes.pop(name, getattr(self, name)) for name in self.__slots__}
        shape, dtype = fields.pop("shape"), fields.pop("dtype")
        return ShapeDtypeStruct(shape, dtype, **fields, **changes)

    def _fields(self):
        return self.shape, self.dtype, self.sharding, self.weak_type

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._fields() == other._fields()

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"

    __str__ = __repr__


aval_makers[ShapeDtypeStruct] = lambda x: ShapedArray(
    x.shape, x.dtype, x.weak_type, sharding=x.sharding
)


def abstract(x: Any) -> ShapedArray:
    """The aval of an array, a number, or anything with a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
        where = getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
        return ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False), sharding=where)
    return get_aval(x)


def shape_struct(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=aval.explicit, weak_type=aval.weak_type
    )
