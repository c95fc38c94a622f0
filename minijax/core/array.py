"""`Array`: the base class of concrete arrays and of tracers. It stands in the core and knows no
operation: `minijax.numpy` attaches the operators and methods once, at import (`attach`), so that
`isinstance(x, Array)` is plain inheritance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minijax.array_members import ArrayMembers as _Members  # their types
else:
    _Members = object

__all__ = ["Array", "attach"]


class Array(_Members):
    """Array: either a concrete one, or a tracer that stands for one while a function is traced.

    Arrays have a shape and a dtype and are immutable; `x.at[index].set(y)` returns an updated copy.
    They are made by functions such as `jnp.array`; TypeError if the class is called. Source:
    NumPy's `ndarray`.

    >>> isinstance(jnp.ones(3), jax.Array)
    True
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    aval: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "Array cannot be made directly: use minijax.numpy.array(...) or asarray(...)"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions, a tuple of ints."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Data type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """True if the dtype yields to those of other operands, as that of a Python number does."""
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def device_buffer(self) -> Any:
        """Removed attribute: raises AttributeError."""
        raise AttributeError("arr.device_buffer has been deprecated. Use arr.addressable_data(0)")

    @property
    def device_buffers(self) -> Any:
        """Removed attribute: raises AttributeError."""
        raise AttributeError(
            "arr.device_buffers has been deprecated. Use [x.data for x in arr.addressable_shards]"
        )

    def __len__(self) -> int:
        return len(self.aval)

    def __hash__(self) -> int:
        raise TypeError(
            f"unhashable type: {type(self).__name__!r}: use its values as a key, as in x.item() or "
            "x.tobytes(), or do not mark the argument static."
        )


def _of_concrete(name: str) -> property:
    def declared(self) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return property(declared, doc="Attribute of concrete arrays; AttributeError for tracers.")


# Declared here for what asks the class which members arrays have.
for _name in (
    "__copy__", "__deepcopy__", "addressable_data", "addressable_shards", "committed",
    "copy_to_host_async", "device", "global_shards", "is_fully_addressable",
    "is_fully_replicated", "item", "sharding",
):  # fmt: skip
    setattr(Array, _name, _of_concrete(_name))


def attach(members: dict[str, Callable | property]) -> None:
    """Give `Array` its operators and methods; called once by `minijax.numpy`."""
    for name, member in members.items():
        setattr(Array, name, member)
