"""The operators and methods of `Array`, attached to it once, at import.

This is the one place that ties the array class of the core to the functions of this layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_axes
from minijax.arrays.array import ArrayImpl, Signature, array_from_numpy
from minijax.core.array import Array, attach
from minijax.core.avals import ShapedArray
from minijax.features.library import as_method
from minijax.features.queries import is_ref
from minijax.features.sharding.transfer import device_put
from minijax.features.slots import slots
from minijax.lax.arithmetic import complex as complex_
from minijax.lax.convert import bitcast_convert_type
from minijax.lax.joining import stack_p, unstack_p
from minijax.numpy import (
    array_api,
    creation,
    cumulative,
    division,
    indexing,
    joining,
    linear_algebra,
    logic,
    reductions,
    repetition,
    searching,
    shapes,
    sorting,
    ufuncs,
)
from minijax.numpy.promotion import converted, is_arraylike
from minijax.tracebacks import boundary, hide_frames

__all__ = ["install"]

# Types of operands that were found to be arrays or numbers.
_known: set[type] = {bool, int, float, complex, np.ndarray}


_CONTAINERS = frozenset((list, tuple, dict, set))


def _accepts(other: Any) -> bool:
    if is_arraylike(other):
        _known.add(type(other))
        return True
    return False


def _refuse(self: Any, other: Any, symbol: str) -> Any:
    """Return the result of an operator for an operand that is no array: the other side may know
    better, unless it is one of Python's own containers.
    """
    if type(other) in _CONTAINERS:
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: {type(self).__name__!r} and "
            f"{type(other).__name__!r}: convert it with minijax.numpy.asarray(...)."
        )
    return NotImplemented


def _operator(function: Callable, symbol: str) -> Callable:
    def method(self, other):
        try:  # costs nothing, unlike a call of a boundary
            if type(other) in _known or _accepts(other):
                return function(self, other)
            return _refuse(self, other, symbol)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _reflected(function: Callable, symbol: str) -> Callable:
    def method(self, other):
        try:
            if type(other) in _known or _accepts(other):
                return function(other, self)
            return _refuse(self, other, symbol)
        except Exception as error:
            hide_frames(error)
            raise

    return method


_BINARY = {
    "add": (ufuncs.add, "+"),
    "sub": (ufuncs.subtract, "-"),
    "mul": (ufuncs.multiply, "*"),
    "truediv": (division.divide, "/"),
    "floordiv": (division.floor_divide, "//"),
    "mod": (division.remainder, "%"),
    "divmod": (division.divmod, "divmod()"),
    "pow": (division.power, "**"),
    "matmul": (linear_algebra.matmul, "@"),
    "and": (logic.bitwise_and, "&"),
    "or": (logic.bitwise_or, "|"),
    "xor": (logic.bitwise_xor, "^"),
    "lshift": (logic.left_shift, "<<"),
    "rshift": (logic.right_shift, ">>"),
}
_COMPARISONS = {
    "eq": (logic.equal, "=="),
    "ne": (logic.not_equal, "!="),
    "lt": (logic.less, "<"),
    "le": (logic.less_equal, "<="),
    "gt": (logic.greater, ">"),
    "ge": (logic.greater_equal, ">="),
}
_UNARY = {
    "neg": ufuncs.negative,
    "pos": ufuncs.positive,
    "abs": ufuncs.abs,
    "invert": logic.invert,
}
_METHODS = (
    reductions.all, reductions.any, reductions.argmax, reductions.argmin, sorting.argpartition,
    searching.choose, ufuncs.clip, ufuncs.conjugate,
    cumulative.cumprod, cumulative.cumsum, linear_algebra.diagonal, reductions.max,
    reductions.mean, reductions.min, searching.nonzero, reductions.prod, reductions.ptp,
    shapes.ravel, repetition.repeat, ufuncs.round, sorting.searchsorted, shapes.squeeze,
    reductions.std, reductions.sum, shapes.swapaxes, indexing.take, linear_algebra.trace,
    reductions.var,
)  # fmt: skip


# Members that arrays of random keys have; upstream's lack the others, also those that make sense.
_OF_KEYS = {
    "T", "at", "copy", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "take", "transpose",
}  # fmt: skip
_CHECK_THEMSELVES = {"argsort", "astype", "dot", "sort"}


def _of_numbers(name: str) -> Callable[[ArrayImpl], None]:
    """Return the check of a member of concrete arrays that arrays of random keys lack."""

    def check(self):
        if self.signature.aval.dtype.kind == "K":
            raise NotImplementedError(
                f"Cannot call abstract method {name}: arrays of random keys have no .{name}; use the "
                "function of jax.numpy, or the words that random.key_data gives."
            )

    return check


def _check_for(name: str) -> Callable[[ArrayImpl], None] | None:
    if name in _OF_KEYS or name in _CHECK_THEMSELVES:
        return None
    special = name.startswith("__") and name != "__array_namespace__"
    return None if special else _of_numbers(name)


_check_astype = _of_numbers("astype")
_sort_numbers = as_method(sorting.sort, _of_numbers("sort"))
_argsort_numbers = as_method(sorting.argsort, _of_numbers("argsort"))
_dot_numbers = as_method(linear_algebra.dot, _of_numbers("dot"))


# -- methods that are not a function of the same arguments ------------------------------------


def _getitem(self, index):
    try:
        if is_ref(self.aval):
            return slots.ref_get(self, index)
        return indexing.getitem(self, index)
    except Exception as error:
        hide_frames(error)
        raise


def _at(self):
    """Return `x.at`, for `x.at[index]`, whose methods read elements or update a copy of the array.

    Its methods are get, set, add, subtract, multiply, divide, power, min, max and apply; they
    return arrays of the dtype of `x`. Source: NumPy's indexing.

    >>> jnp.array([1, 2, 3]).at[0].set(9)
    Array([9, 2, 3], dtype=int32)
    """
    return slots.ref_member(self, "at") if is_ref(self.aval) else indexing.IndexHelper(self)


@boundary
def _setitem(self, index, value):
    if is_ref(self.aval):
        return slots.ref_set(self, index, value)
    shown = _shown_index(index)
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of "
        f"x[{shown}] = y, use x = x.at[{shown}].set(y) or another .at[] method: "
        "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"
    )


def _shown_index(index: Any) -> str:
    """An index as it was written, as far as it is short."""
    if isinstance(index, tuple):
        return ", ".join(map(_shown_index, index))
    if isinstance(index, slice):
        parts = ["" if part is None else repr(part) for part in (index.start, index.stop)]
        step = [] if index.step is None else [repr(index.step)]
        return ":".join(parts + step)
    if index is Ellipsis:
        return "..."
    text = repr(index)
    return text if len(text) <= 30 else "idx"


@boundary
def _iter(self):
    if not self.ndim:
        raise TypeError("iteration over a 0-d array: use x[None], or x.item() for its value")
    if type(self) is ArrayImpl:
        self._check_deleted()
        split = not self.signature.sharding.is_fully_replicated
        return _rows_on_host(self) if split else _rows(self, self.signature)
    return iter(unstack_p.bind(self, axis=0)) if self.shape[0] else iter(())


def _rows_on_host(x: ArrayImpl) -> Iterator[Array]:
    """The rows of an array that lies over several devices: from the host, on the default device."""
    row_type = ShapedArray(x.shape[1:], x.dtype)
    for row in x._stored:
        yield array_from_numpy(np.asarray(row), row_type, explicit=None)


_PART = 256  # rows at a time: indices below this are numbers that are kept
_FEW, _OFTEN, _TOGETHER = 4, 4, 16
_iterated: dict[Signature, int] = {}


def _rows(x: ArrayImpl, signature: Signature) -> Iterator[Array]:
    """The rows of an array; those of arrays that are few, or were gone through often, many at a
    time.

    16 rows by one program take 0.03 ms, one by one 0.15; but to compile the one takes 0.25 s, the
    other 0.03.
    """
    size = x.shape[0]
    times = _iterated[signature] = _iterated.get(signature, 0) + 1
    together = 0
    if len(signature.sharding._device_assignment) == 1 and (size <= _FEW or times > _OFTEN):
        together = size if size <= _TOGETHER else size - size % _TOGETHER
        for start in range(0, together, _TOGETHER):
            yield from joining.unstack(x if size <= _TOGETHER else x[start : start + _TOGETHER])
    for start in range(together, size, _PART):
        part = x[start : start + _PART] if size > _PART else x
        for index in range(start if part is x else 0, len(part)):
            yield part[index]


def _contains(self, value):
    if not is_arraylike(value):
        raise TypeError(
            f"Array.__contains__: unsupported operand type {type(value)}: give a number."
        )
    if self.ndim != 1 or np.ndim(value):
        raise ValueError(
            "Array.__contains__: search array must be one-dimensional, and the value sought a "
            f"scalar; got shapes {self.shape} and {np.shape(value)}. Use jnp.isin."
        )
    return bool(reductions.any(logic.equal(self, value)))


def _reversed(self):
    if not self.ndim:
        raise TypeError("reversed() of a 0-d array")
    return iter(list(_iter(self))[::-1])


def _reshape(self, *args, order="C", out_sharding=None):
    """Return an array of the same elements with another shape.

    - `*args`: an int, a sequence of ints, or several ints; one may be -1, and is then inferred.
    - `order`, `out_sharding`: as in `jnp.reshape`.

    Returns an array of the same dtype. TypeError if the number of elements differs. Source: NumPy's
    `ndarray.reshape`.

    >>> jnp.arange(6).reshape(2, -1)
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if is_ref(self.aval):
        return slots.ref_member(self, "reshape")(*args)
    sizes = args[0] if len(args) == 1 else args
    try:
        return shapes.reshape(self, sizes, order=order, out_sharding=out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


def _transpose(self, *args):
    """Permute the axes of the array.

    - `*args`: the permutation, as ints or one sequence of them; by default the order is reversed.

    Returns an array of the same dtype. TypeError or ValueError if it is no permutation. Source:
    NumPy's `ndarray.transpose`.

    >>> jnp.ones((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
    """
    if not args:
        return shapes.transpose(self)
    axes = known_axes(args[0]) if len(args) == 1 else args
    if isinstance(axes, int):
        axes = (axes,)
    return shapes.transpose(self, None if axes is None else tuple(axes))


def _astype(self, dtype, copy=False, device=None):
    """Convert the array to another dtype.

    - `dtype`: the dtype, or None for the default float.
    - `copy`: copy even where the dtype is right already; `device`: placement of the result.

    Returns an array of the same shape. Source: NumPy's `ndarray.astype`.

    >>> jnp.array([1.7, -1.7]).astype(jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    try:
        return creation.astype(self, dtype, copy=copy, device=device)
    except Exception as error:
        if type(self) is ArrayImpl:
            _check_astype(self)  # only now, since calls that return the array itself are short
        hide_frames(error)
        raise


def _round(self, ndigits=None):
    if ndigits is None:
        return creation.astype(ufuncs.round(self), dtypes.int_())
    return ufuncs.round(self, ndigits)


@boundary
def _view(self, dtype=None, type=None):
    """Read the bits of the array as another dtype.

    - `dtype`: None for the same one; where element sizes differ, the last axis shrinks or grows.

    Returns an array of that dtype. ValueError if the last axis does not hold whole elements, or for
    scalars if the sizes differ. Source: NumPy's `ndarray.view`.

    >>> jnp.array([1.0]).view(jnp.uint32)
    Array([1065353216], dtype=uint32)
    """
    if type is not None:
        raise NotImplementedError(
            "`type` argument of array.view() is not supported: see numpy.view."
        )
    if dtype is None:
        return self
    dtype = dtypes.check_user_dtype_supported(dtype, "view")
    old, new = dtypes.bit_width(self.dtype), dtypes.bit_width(dtype)
    if not self.ndim and old != new:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if not self.ndim:
        return shapes.squeeze(_view(shapes.expand_dims(self, 0), dtype), 0)
    if self.dtype == dtype:
        return self
    if old < new and self.shape[-1] % (new // old):
        raise ValueError(
            f"When changing to a larger dtype, its size must be a divisor of the total size in "
            f"bytes of the last axis of the array. Got {self.aval.str_short()} to {dtype.name}."
        )
    return _bits_to(_bits_of(self), old, new, dtype)


def _bits_of(x: Any) -> Any:
    """Booleans and complex numbers as arrays of what they consist of."""
    if x.dtype == dtypes.bool_:
        return converted(x, dtypes.uint8)
    if x.dtype.kind != "c":
        return x
    parts = stack_p.bind(ufuncs.real(x), ufuncs.imag(x), axis=x.ndim)
    return shapes.reshape(parts, (*x.shape[:-1], 2 * x.shape[-1])) if x.ndim else parts


def _bits_to(x: Any, old: int, new: int, dtype: Any) -> Any:
    if dtype.kind == "c":
        real = dtypes.to_real_dtype(dtype)
        if x.dtype != real:
            x = _regrouped(x, real)
        pairs = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        from_parts = ufuncs.add(pairs[..., 0], ufuncs.multiply(pairs[..., 1], 1j))
        return converted(from_parts, dtype)
    if dtype == dtypes.bool_:
        return logic.not_equal(_regrouped(x, dtypes.uint8), 0)
    return _regrouped(x, dtype)


def _regrouped(x: Any, dtype: Any) -> Any:
    """`bitcast_convert_type` as NumPy's `view`: the parts lie along the last axis."""
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
    if old < new:
        x = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    out = bitcast_convert_type(x, dtype)
    if old > new:
        out = shapes.reshape(out, (*x.shape[:-1], x.shape[-1] * old // new))
    return out


def _sort(self, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Return a sorted copy of the array.

    - `axis`, `kind`, `order`, `stable`, `descending`: as in `jnp.sort`.

    Returns an array of the same shape and dtype. Source: NumPy's `ndarray.sort`, out of place.

    >>> jnp.array([3, 1, 2]).sort()
    Array([1, 2, 3], dtype=int32)
    """
    return _sort_numbers(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _argsort(
    self, axis=-1, *, kind=None, order=None, stable=True, descending=False, dtype=None
):  # fmt: skip
    """Return the indices that sort the array.

    - `axis`, `kind`, `order`, `stable`, `descending`, `dtype`: as in `jnp.argsort`.

    Returns an integer array of the same shape. Source: NumPy's `ndarray.argsort`.

    >>> jnp.array([3, 1, 2]).argsort()
    Array([1, 2, 0], dtype=int32)
    """
    return _argsort_numbers(
        self, axis, kind=kind, order=order, stable=stable, descending=descending, dtype=dtype
    )


def _dot(self, b, *, precision=None, preferred_element_type=None):
    """Compute the product with `b`, as of vectors or matrices.

    - `b`: array or scalar; `precision`, `preferred_element_type`: as in `jnp.dot`.

    Returns an array of the promoted dtype. TypeError if the shapes do not fit. Source: NumPy's
    `ndarray.dot`.

    >>> jnp.array([1, 2]).dot(jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    return _dot_numbers(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """Select the slices along an axis where a condition is true.

    - `condition`: boolean array of shape (m,); `axis`, `size`, `fill_value`: as in `jnp.compress`.

    Returns an array of the same dtype. Source: NumPy's `ndarray.compress`.

    >>> jnp.array([1, 2, 3]).compress(jnp.array([True, False, True]))
    Array([1, 3], dtype=int32)
    """
    return searching.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def _flatten(self, order="C", *, out_sharding=None):
    """Return the elements in one dimension.

    - `order`: "C" for row-major order, "F" for column-major order; `out_sharding`: sharding of the
      result.

    Returns an array of shape (size,) and of the same dtype. Source: NumPy's `ndarray.flatten`.

    >>> jnp.array([[1, 2], [3, 4]]).flatten()
    Array([1, 2, 3, 4], dtype=int32)
    """
    return shapes.ravel(self, order, out_sharding=out_sharding)


def _copy(self):
    """Return a copy of the array, of its shape and dtype. Source: NumPy's `ndarray.copy`.

    >>> jnp.array([1, 2]).copy()
    Array([1, 2], dtype=int32)
    """
    return creation.array(self, copy=True)


def _to_device(self, device, *, stream=None):
    """Return the array on another device.

    - `device`: a device or a sharding; `stream`: must be None.

    Returns an array of the same shape and dtype. NotImplementedError if `stream` is given. Source:
    `to_device` of the array API standard.

    >>> jnp.array([1, 2]).to_device(jax.devices()[0])
    Array([1, 2], dtype=int32)
    """
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put(self, device)


def _flat(self):
    """Attribute of NumPy's arrays that is missing: raises NotImplementedError. Use `ravel`."""
    raise NotImplementedError(
        "JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead."
    )


def _byteswap(self, inplace=False):
    """Return the array with the bytes of each element in reverse order.

    - `inplace`: must be False, since arrays are immutable.

    Returns an array of the same shape and dtype. NotImplementedError if `inplace`. Source: NumPy's
    `ndarray.byteswap`.

    >>> jnp.array([1], jnp.int16).byteswap()
    Array([256], dtype=int16)
    """
    if inplace:
        raise NotImplementedError(
            "byteswap(inplace=True): arrays are immutable; use the array that byteswap() gives."
        )
    if self.dtype.kind == "c":  # of each part
        parts = bitcast_convert_type(self.real, np.uint8), bitcast_convert_type(self.imag, np.uint8)
        real, imag = (bitcast_convert_type(x[..., ::-1], self.real.dtype) for x in parts)
        return complex_(real, imag)
    if self.dtype.itemsize == 1:
        return self
    return bitcast_convert_type(bitcast_convert_type(self, np.uint8)[..., ::-1], self.dtype)


_OTHERS: dict[str, Any] = {
    "__getitem__": _getitem, "__setitem__": _setitem, "__iter__": _iter, "__reversed__": _reversed,
    "__contains__": _contains,
    "__round__": _round, "__array_namespace__": array_api.array_namespace,
    "__array_module__": array_api.array_module, "reshape": _reshape, "transpose": _transpose, "astype": _astype,
    "view": _view, "sort": _sort, "argsort": _argsort, "dot": _dot, "flatten": _flatten,
    "compress": _compress,
    "copy": _copy, "to_device": _to_device, "byteswap": _byteswap, "flat": property(_flat),
    "at": property(_at),
    "T": property(shapes.transpose), "mT": property(shapes.matrix_transpose),
    "real": property(ufuncs.real), "imag": property(ufuncs.imag),
}  # fmt: skip


def install() -> None:
    """Attach all operators and methods to `Array`."""
    members: dict[str, Any] = {}
    for name, (function, symbol) in _BINARY.items():
        members[f"__{name}__"] = _operator(function, symbol)
        members[f"__r{name}__"] = _reflected(function, symbol)
    for name, (function, symbol) in _COMPARISONS.items():
        members[f"__{name}__"] = _operator(function, symbol)
    for name, function in _UNARY.items():
        members[f"__{name}__"] = as_method(function)
    for name, function in {f.__name__: f for f in _METHODS}.items():
        members[name] = as_method(function, _check_for(name))
    members["conj"] = as_method(ufuncs.conj, _check_for("conj"))
    for name, member in _OTHERS.items():
        check = _check_for(name)
        if check is not None and isinstance(member, property):
            member = property(as_method(member.fget, check), doc=member.__doc__)
        elif check is not None:
            member = as_method(member, check)
        members[name] = member
    members["__hash__"] = Array.__hash__
    for name, member in members.items():
        if callable(member):
            member.__name__ = name
            member.__qualname__ = f"Array.{name}"
    attach(members)
    _known.add(Array)
