"""`Array`: the base class of concrete arrays and of tracers. It stands in the core and knows no
operation: `minijax.numpy` attaches the operators and methods once, at import (`attach`), so that
`isinstance(x, Array)` is plain inheritance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minijax.errors import length_of
from minijax.namespace import hiding

if TYPE_CHECKING:
    import numpy as np

    from minijax.array_members import ArrayMembers as _Members  # their types
else:
    _Members = object

__all__ = ["Array", "attach", "attach_class"]


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
    __dir__ = hiding("concrete", "described", "origin", "signature", "value_for")
    aval: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("Array cannot be made directly: use minijax.numpy.array or asarray")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions, a tuple of ints."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
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

    def __len__(self) -> int:
        return length_of(self.aval.shape)

    __hash__ = None  # type: ignore[assignment]  # so that `isinstance(x, Hashable)` is False


def attach(members: dict[str, Callable | property], owner: type = Array) -> None:
    """Set operators and methods of `Array`, or of another class; called once for each."""
    for name, member in members.items():
        setattr(owner, name, member)


def attach_class(members: type, owner: type) -> None:
    """Set the members of another class as members of a class."""
    of_classes = {"__module__", "__doc__", "__slots__", "__dict__", "__weakref__"}
    attach({name: x for name, x in vars(members).items() if name not in of_classes}, owner)
