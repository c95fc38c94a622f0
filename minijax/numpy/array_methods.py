"""The operators and methods of `Array`, attached to it once, at import.

May import the floors below and the rest of `numpy`. This is the one place that ties the array class
of the core to the functions of this floor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array, attach
from minijax.core.avals import is_ref
from minijax.lax import ref_views, refs
from minijax.lax.arithmetic import complex as complex_
from minijax.lax.convert import bitcast_convert_type
from minijax.lax.joining import stack_p, unstack_p
from minijax.numpy import (
    array_api,
    creation,
    cumulative,
    division,
    indexing,
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
from minijax.transforms.transfer import device_put

__all__ = ["install"]

# Types of operands that were found to be arrays or numbers.
_known: set[type] = {bool, int, float, complex, np.ndarray}


def _accepts(other: Any) -> bool:
    if is_arraylike(other):
        _known.add(type(other))
        return True
    return False


def _refuse(self: Any, other: Any, symbol: str) -> Any:
    """What an operator gives for an operand that is no array: the other side may know better."""
    if isinstance(other, (list, tuple, dict, set)) and not hasattr(other, "__jax_array__"):
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: {type(self).__name__!r} and "
            f"{type(other).__name__!r}: convert it with minijax.numpy.asarray(...)."
        )
    return NotImplemented


def _operator(function: Callable, symbol: str) -> Callable:
    def method(self, other):
        if type(other) in _known or _accepts(other):
            return function(self, other)
        return _refuse(self, other, symbol)

    return method


def _reflected(function: Callable, symbol: str) -> Callable:
    def method(self, other):
        if type(other) in _known or _accepts(other):
            return function(other, self)
        return _refuse(self, other, symbol)

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


def _method(function: Callable) -> Callable:
    """A function as a method: a second one of the same code, since the array is its first argument."""
    method = FunctionType(
        function.__code__, function.__globals__, closure=function.__closure__,
        argdefs=function.__defaults__,
    )  # fmt: skip
    method.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(method, function)


# -- methods that are not a function of the same arguments ------------------------------------


def _getitem(self, index):
    if is_ref(self.aval):
        return refs.get(self, index)
    return indexing.getitem(self, index)


def _at(self):
    return ref_views.views_of(self) if is_ref(self.aval) else indexing.IndexHelper(self)


def _setitem(self, index, value):
    if is_ref(self.aval):
        return refs.set(self, index, value)
    shown = _shown_index(index)
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment: x"
        f"[{shown}] = y. Instead of x[{shown}] = y, use x = x.at[{shown}].set(y) or another .at[] "
        "method."
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


def _iter(self):
    if not self.ndim:
        raise TypeError("iteration over a 0-d array: use x[None]")
    return iter(unstack_p.bind(self, axis=0)) if self.shape[0] else iter(())


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
    """The elements in another shape; see `minijax.numpy.reshape`."""
    if is_ref(self.aval):
        return ref_views.view_of(self).reshape(*args)
    sizes = args[0] if len(args) == 1 else args
    return shapes.reshape(self, sizes, order=order, out_sharding=out_sharding)


def _transpose(self, *args):
    """The axes in another order; see `minijax.numpy.transpose`."""
    if not args:
        return shapes.transpose(self)
    axes = args[0] if len(args) == 1 else args
    if isinstance(axes, int):
        axes = (axes,)
    return shapes.transpose(self, None if axes is None else tuple(axes))


def _astype(self, dtype, copy=False, device=None):
    """The elements converted to another dtype; see `minijax.numpy.astype`."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _round(self, ndigits=None):
    if ndigits is None:
        return creation.astype(ufuncs.round(self), dtypes.int_())
    return ufuncs.round(self, ndigits)


def _view(self, dtype=None):
    """The bits of the array read as another dtype, along the last axis where sizes differ."""
    if dtype is None:
        return self
    dtype = dtypes.check_user_dtype_supported(dtype, "view")
    old, new = dtypes.bit_width(self.dtype), dtypes.bit_width(dtype)
    if self.dtype == dtype:
        return self
    if not self.ndim and old != new:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if old < new and self.shape[-1] % (new // old):
        raise ValueError(
            f"When changing to a larger dtype, its size must be a divisor of the total size in "
            f"bytes of the last axis of the array: {self.aval.str_short()} to {dtype.name}."
        )
    return _bits_to(_bits_of(self), old, new, dtype)


def _bits_of(x: Any) -> Any:
    """Booleans and complex numbers as arrays of what they consist of."""
    if x.dtype == dtypes.bool_:
        return converted(x, dtypes.uint8)
    if x.dtype.kind != "c":
        return x
    parts = stack_p.bind(ufuncs.real(x), ufuncs.imag(x), axis=x.ndim)
    return shapes.reshape(parts, (*x.shape[:-1], -1)) if x.ndim else parts


def _bits_to(x: Any, old: int, new: int, dtype: Any) -> Any:
    if dtype.kind == "c":
        real = dtypes.to_real_dtype(dtype)
        if x.dtype != real:
            x = _regrouped(x, real)
        pairs = shapes.reshape(x, (*x.shape[:-1], -1, 2))
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
        out = shapes.reshape(out, (*x.shape[:-1], -1))
    return out


def _sort(self, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """A sorted copy; see `minijax.numpy.sort`."""
    return sorting.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _argsort(
    self, axis=-1, *, kind=None, order=None, stable=True, descending=False, dtype=None
):  # fmt: skip
    """The indices that sort the array; see `minijax.numpy.argsort`."""
    return sorting.argsort(
        self, axis, kind=kind, order=order, stable=stable, descending=descending, dtype=dtype
    )


def _dot(self, b, *, precision=None, preferred_element_type=None):
    """The product with `b`; see `minijax.numpy.dot`."""
    return linear_algebra.dot(
        self, b, precision=precision, preferred_element_type=preferred_element_type
    )


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """The slices for which a condition is true; see `minijax.numpy.compress`."""
    return searching.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def _flatten(self, order="C", *, out_sharding=None):
    """The elements in one dimension; see `minijax.numpy.ravel`."""
    return shapes.ravel(self, order, out_sharding=out_sharding)


def _copy(self):
    """A copy of the array."""
    return creation.array(self, copy=True)


def _to_device(self, device, *, stream=None):
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put(self, device)


def _flat(self):
    raise NotImplementedError(
        "JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead."
    )


def _byteswap(self, inplace=False):
    """The array with the bytes of each element in the other order."""
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
    "__round__": _round, "__array_namespace__": array_api.array_namespace, "reshape": _reshape, "transpose": _transpose, "astype": _astype,
    "view": _view, "sort": _sort, "argsort": _argsort, "dot": _dot, "flatten": _flatten,
    "compress": _compress,
    "copy": _copy, "to_device": _to_device, "byteswap": _byteswap, "flat": property(_flat),
    "at": property(_at),
    "T": property(shapes.transpose), "mT": property(shapes.matrix_transpose),
    "real": property(ufuncs.real), "imag": property(ufuncs.imag),
}  # fmt: skip


def install() -> None:
    """Attach all operators and methods to `Array`."""
    members: dict[str, Any] = dict(_OTHERS)
    for name, (function, symbol) in _BINARY.items():
        members[f"__{name}__"] = _operator(function, symbol)
        members[f"__r{name}__"] = _reflected(function, symbol)
    for name, (function, symbol) in _COMPARISONS.items():
        members[f"__{name}__"] = _operator(function, symbol)
    for name, function in _UNARY.items():
        members[f"__{name}__"] = _method(function)
    for function in _METHODS:
        members[function.__name__] = _method(function)
    members["conj"] = _method(ufuncs.conj)
    members["__hash__"] = Array.__hash__
    for name, member in members.items():
        if callable(member):
            member.__name__ = name
            member.__qualname__ = f"Array.{name}"
    attach(members)
    _known.add(Array)
