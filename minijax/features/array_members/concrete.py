"""Members of concrete arrays: their values as Python objects and text, copies, pickles, memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, array_from_numpy
from minijax.arrays.dispatch import moved
from minijax.core.array import attach_class
from minijax.core.avals import ShapedArray
from minijax.namespace import user_stacklevel
from minijax.runtime import buffers
from minijax.runtime.named_sharding import sums_open
from minijax.runtime.released import released
from minijax.tracebacks import boundary, hide_frames

__all__: list[str] = []


def _conversion(kind: type) -> Callable[[Any], Any]:
    """Return the method of arrays of one number that makes a Python number of them."""

    def convert(self):
        try:  # costs nothing, unlike a call of a boundary
            value = self._value
            if value.ndim == 0:
                return kind(value.item())
            raise TypeError(
                f"Only scalar arrays can be converted to Python scalars; got arr.ndim={value.ndim}. An "
                f"array of shape {self.shape} was given to {kind.__name__}(): pick one element, or use "
                ".astype."
            )
        except Exception as error:
            hide_frames(error)
            raise

    convert.__name__ = f"__{kind.__name__}__"
    return convert


class _OfNumbers:
    """Descriptor: a method that arrays of random keys do not have."""

    def __init__(self, method: Callable):
        self.method = method

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.method
        if instance.signature.aval.dtype.kind == "K":
            raise AttributeError(
                f"'PRNGKeyArray' object has no attribute {self.method.__name__!r}: use the array that "
                "random.key_data gives."
            )
        return MethodType(self.method, instance)


class _Members(ArrayImpl):
    """Members that concrete arrays are given."""

    __slots__ = ()

    @property
    def traceback(self) -> Any:
        """The frames in which the buffer was made, as jaxlib recorded them."""
        return self._buffer.traceback

    def is_deleted(self) -> bool:
        """Return a bool: whether the memory was freed or donated. Source: PJRT buffers.

        >>> jnp.ones(3).is_deleted()
        False
        """
        return self._buffer.is_deleted()

    def delete(self) -> None:
        """Free the memory of the array now.

        Reading it later raises RuntimeError; shape and dtype stay known. Source: PJRT buffers.

        >>> x = jnp.ones(3)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        self._buffer.delete()

    @_OfNumbers
    def is_ready(self) -> bool:
        """Return a bool: whether the values have been computed.

        RuntimeError if the array was deleted. Source: PJRT buffers.

        >>> jnp.ones(3).block_until_ready().is_ready()
        True
        """
        next(released)
        self._check_deleted()  # of which jaxlib's answer is a segmentation fault
        return self._buffer.is_ready()

    def copy_to_host_async(self) -> None:
        """Start a copy of the array from its device to host memory without waiting for it.

        RuntimeError if the array was deleted. Source: PJRT buffers.

        >>> jnp.ones(3).copy_to_host_async()
        """
        self._check_deleted()

    def item(self, *args: Any) -> Any:
        """Return the only element, or the one at an index, as a Python number.

        - `*args`: an int, an index into the flattened array, or one for each dimension.

        ValueError if there is no index and not exactly one element. Source: NumPy's `ndarray.item`.

        >>> jnp.array([5, 7]).item(1)
        7
        """
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise NotImplementedError(
                "Cannot call abstract method item: use the words that random.key_data gives."
            )
        try:
            return self._value.item(*args)
        except IndexError as error:
            raise IndexError(f"{error}: the array has shape {self.shape}.") from None

    @_OfNumbers
    def tolist(self) -> Any:
        """Return the elements as Python numbers in nested lists. Source: NumPy's `ndarray.tolist`.

        >>> jnp.array([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self._value.tolist()

    @_OfNumbers
    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements in row-major order, or column-major if `order` is "F".

        Source: NumPy's `ndarray.tobytes`.

        >>> jnp.array([1, 2], jnp.uint8).tobytes() == bytes([1, 2])
        True
        """
        return self._value.tobytes(order)

    def __bytes__(self) -> bytes:
        return bytes(self._value)

    def __bool__(self) -> bool:
        try:
            if isinstance(self.aval.dtype, dtypes.ExtendedDType):
                raise TypeError(
                    "key array cannot be converted to boolean. Compare keys with ==, or their words "
                    "that random.key_data gives."
                )
            if self.aval.size == 1:
                return bool(self._value.item())
            if self.aval.size == 0:
                raise ValueError(
                    "The truth value of an empty array is ambiguous. Use `array.size > 0` to ask "
                    "whether an array is not empty."
                )
            raise ValueError(
                f"The truth value of an array with more than one element is ambiguous. Use a.any() or "
                f"a.all(). Its shape is {self.shape}."
            )
        except Exception as error:
            hide_frames(error)
            raise

    __int__ = _conversion(int)  # which refuses complex numbers
    __float__ = _conversion(float)
    __complex__ = _conversion(complex)

    def __index__(self) -> int:
        try:
            if self.aval.shape != () or not dtypes.issubdtype(self.dtype, np.integer):
                raise TypeError(
                    "Only integer scalar arrays can be converted to a scalar index. Got "
                    f"{self.aval.str_short()}; convert it with int(x), or .astype(int)."
                )
            return int(self._value[()])
        except Exception as error:
            hide_frames(error)
            raise

    def __reversed__(self) -> Any:
        if self.aval.ndim == 0:
            raise TypeError("reversed() of a 0-d array")
        return (self[index] for index in range(self.aval.shape[0] - 1, -1, -1))

    @boundary
    def __format__(self, spec: str) -> str:
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            return object.__format__(self, spec)
        if self.aval.ndim:
            return format(self._value, spec) if spec else str(self)
        return format(self._value[()], spec)

    def __repr__(self) -> str:
        if self._buffer.is_deleted():
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, deleted)"
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._stored}"
        if sums_open(self.sharding):  # no device has a part of the value
            name = self.dtype.name
            return f"Array(shape={self.shape}, dtype={name}, sharding={self.sharding})"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        suffix = f"dtype={self.dtype.name}{weak})"
        if self.aval.size == 0:
            body = f"[], shape={self.shape}"
        else:
            body = np.array2string(self._value, separator=", ", prefix="Array(", suffix=",")
        last = len(body) - (body.rfind("\n") + 1) + len(",")
        wide = last + 1 + len(suffix) >= np.get_printoptions()["linewidth"]
        return f"Array({body},{' ' * len('Array(') if wide else ' '}{suffix}"

    def __str__(self) -> str:
        if isinstance(self.aval.dtype, dtypes.ExtendedDType) or sums_open(self.sharding):
            return repr(self)
        return str(self._value)

    @property
    def __numpy_dtype__(self) -> Any:
        """The dtype, for `numpy.dtype(array)` of NumPy 2.4 and newer."""
        warnings.warn(
            "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use "
            "dtype=arr.dtype. In the future this will result in an error.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
        return self.dtype

    @property
    def __buffer__(self) -> Callable[[int], memoryview]:
        """jaxlib's method that gives the memory of the array. Asked for from Python 3.12 on.

        A property, so that no bytecode runs after the wait for the array: NumPy drops the errors of
        this protocol, and would drop the KeyboardInterrupt of a wait in Python.
        """
        if self.signature.viewed and not self._buffer.is_deleted():
            return self._buffer.__buffer__  # in 0.2 us less than by the tests that follow
        dtype = self.aval.dtype
        if getattr(dtype, "isbuiltin", 0) != 1:
            raise BufferError(f"The buffer protocol knows no arrays of {dtype}: use np.asarray(x).")
        self._check_deleted()
        if self._buffer.is_ready():  # if the program failed, this raises its error
            self._buffer.block_until_ready()
        return self._buffer.__buffer__

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return self.__copy__()

    @_OfNumbers
    def clone(self) -> ArrayImpl:
        """Return a copy of the array in memory of its own, on the same devices.

        Source: PJRT buffers.

        >>> jnp.array([1, 2]).clone()
        Array([1, 2], dtype=int32)
        """
        return self.__copy__()

    def __copy__(self) -> ArrayImpl:
        self._check_deleted()
        if self.signature.place is not self.signature.sharding:
            return moved(self, self.signature.sharding)
        buffer = buffers.move(self._buffer, self.signature.sharding, copy=True)
        return ArrayImpl(buffer, self.signature)

    def __reduce__(self) -> Any:
        return _unpickle, (np.array(self._stored), self.shape, self.dtype, self.aval.weak_type)


def _unpickle(value: np.ndarray, shape: tuple, dtype: Any, weak_type: bool) -> ArrayImpl:
    return array_from_numpy(value, ShapedArray(shape, dtype, weak_type))


attach_class(_Members, ArrayImpl)
