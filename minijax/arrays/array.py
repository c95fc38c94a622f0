"""The concrete array: a jaxlib buffer with a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, errors
from minijax.config import local, override
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, aval_makers, get_aval, opaque_types
from minijax.core.caches import also_cleared
from minijax.core.hooks import hooks
from minijax.core.staging import recording_trace
from minijax.core.trace import eval_trace
from minijax.lowering.types import physical
from minijax.runtime import buffers, lending, platforms, sharding
from minijax.runtime.guards import check_read, check_transfer
from minijax.runtime.layouts import sharding_in
from minijax.runtime.released import released

__all__ = [
    "FEW_BYTES", "ArrayImpl", "Signature", "array_from_numpy", "as_array", "as_operand", "keep",
    "kept_number", "operand_from_host", "operand_from_number", "scalar_array", "small_array",
]  # fmt: skip


_LARGE = 2**20  # bytes


class Signature:
    """Everything about a concrete argument that a compiled program may depend on.

    That is its aval, its place, and whether it is `committed` to it. The place is its `sharding`, or a
    `Format` if the order of its dimensions in memory is another than the device's own. `viewed` says
    whether NumPy can read its memory at once: jaxlib ends the process where there was none for a
    large array, so that those are waited for first. Signatures are interned: they compare by identity.
    """

    __slots__ = ("aval", "committed", "place", "sharding", "viewed")

    def __new__(cls, aval: ShapedArray, where: Any, committed: bool) -> Any:
        key = (aval, where, committed)
        found = _signatures.get(key)
        if found is None:
            found = object.__new__(cls)
            _, found.place, found.committed = key
            found.sharding = where = sharding_in(where)
            found.aval = hooks.type_at(aval, where)
            found.viewed = (
                found.place is where
                and getattr(aval.dtype, "isbuiltin", 0) == 1
                and not hooks.is_expression(aval.size)
                and aval.size * aval.dtype.itemsize < _LARGE
                and buffers.is_on_cpu(where)
            )
            found = _signatures.setdefault(key, found)
        return found

    def __repr__(self) -> str:
        return f"Signature({self.aval}, {self.place}, committed={self.committed})"


_signatures: dict[tuple, Signature] = {}


class ArrayImpl(Array):
    """Array whose values are in the memory of one or several devices.

    It has a shape, a dtype and a sharding; the functions of `jnp` return it outside of tracing.
    Source: NumPy's `ndarray`, on PJRT buffers.

    >>> jnp.array([1, 2])
    Array([1, 2], dtype=int32)
    """

    __slots__ = ("__dict__", "_buffer", "_in_numpy", "signature")

    def __init__(self, buffer: Any, signature: Signature) -> None:
        self._buffer = buffer
        self._in_numpy = None
        self.signature = signature

    @property
    def aval(self) -> ShapedArray:
        return self.signature.aval

    # As those of every array, in one step.
    shape = property(lambda self: self.signature.aval.shape, doc=Array.shape.__doc__)
    dtype = property(lambda self: self.signature.aval.dtype, doc=Array.dtype.__doc__)

    @property
    def sharding(self) -> Any:
        return self.signature.sharding

    @property
    def committed(self) -> bool:
        return self.signature.committed

    _committed = committed

    def block_until_ready(self) -> ArrayImpl:
        """Wait until the values have been computed.

        Returns the array itself, of unchanged shape and dtype. An error of the computation is
        raised here; RuntimeError if the array was deleted. Source: PJRT buffers.

        >>> jnp.array([1, 2]).block_until_ready()
        Array([1, 2], dtype=int32)
        """
        next(released)
        try:
            self._buffer.block_until_ready()
        except Exception:
            self._check_deleted()
            raise
        return self

    def _check_deleted(self) -> None:
        if self._buffer.is_deleted():
            raise errors.DeletedError(
                f"Array has been deleted with shape={self.aval.str_short()}. Its buffer has "
                "been deleted or donated: it was donated to a jitted function (donate_argnums) or "
                "`delete()` was called on it; keep using the result instead, or do not donate it."
            )

    @property
    def _value(self) -> np.ndarray:
        """The value in host memory; read-only, and not copied on a CPU."""
        if self.signature.viewed:
            value = _view(self._buffer)
            if value.dtype is self.aval.dtype:  # else deleted, or its program failed
                return value
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                "jax.random.key_data(arr) if you wish to extract the underlying integer array. "
                f"Got {self.aval.str_short()}."
            )
        return self._stored

    @property
    def _stored(self) -> np.ndarray:
        """Return the value as NumPy's; of random keys, their words."""
        self._check_deleted()
        if self.aval.dtype == dtypes.float0:
            return np.zeros(self.aval.shape, dtypes.float0)
        stored, place, where = physical(self.aval), self.signature.place, self.signature.sharding
        if place is not where and not buffers.has_strides(place, stored.dtype):
            return hooks.moved(self, where, False)._stored
        check_read(stored, where)
        value = buffers.to_numpy(self._buffer, stored, place)
        value.flags.writeable = False  # also of what had to be copied, as sub-byte dtypes are
        return value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        signature = self.signature
        if signature.viewed and dtype is None and not copy:
            kept, buffer = self._in_numpy, self._buffer  # None, then False, then a copy
            if kept and not buffer.is_deleted():
                return kept[0]
            value = _view(buffer)
            if value.dtype is signature.aval.dtype:
                # Read again, a small array is copied: the next reads take 0.2 us, not 0.8. (A view
                # that is kept would keep the buffer from being donated.)
                if kept is None:
                    self._in_numpy = False
                elif value.nbytes <= 4096:
                    self._in_numpy = (np.ndarray(value.shape, value.dtype, value.tobytes()),)
                return value
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"a copy is needed to convert {value.dtype} to {dtype}")
            return value.astype(dtype)
        return value.copy(order="K") if copy else value


_view = np.asarray
aval_makers[ArrayImpl] = lambda x: x.aval


def array_from_numpy(
    value: np.ndarray, aval: ShapedArray | None = None, where: Any = None, committed: bool = False,
    *, copy: bool = True, explicit: bool | None = False,
) -> ArrayImpl:  # fmt: skip
    """Return a NumPy array on a device: the default one, unless a sharding is given.

    - `aval`: its type, if that is not the array's own: that of random keys, for their words
    - `explicit`: whether the user asked for it; None for constants of programs, and the library's own
    """
    if aval is None:
        aval = get_aval(value)
    stored = physical(aval)
    if value.dtype == dtypes.float0:  # programs take booleans for it
        value = np.zeros(value.shape, bool)
        stored = stored.update(dtype=value.dtype)
    elif value.dtype != stored.dtype:
        value = hooks.converted(value, stored.dtype)
    if where is None:
        where = sharding.single_device(platforms.default_device())
    check_transfer("host_to_device", aval, where, explicit=explicit)
    signature = Signature(aval, where, committed)
    return ArrayImpl(buffers.put(value, stored, where, committed, copy=copy), signature)


_scalars: dict[tuple, ArrayImpl] = {}
_copies: dict[int, tuple[ArrayImpl, dict]] = {}  # by buffer: a scalar, its copies by sharding
_MOST_SCALARS = 2048
_COMPLEX = frozenset((complex, np.complex64, np.complex128))


def scalar_array(x: Any) -> ArrayImpl:
    """Return a number as an array; these are kept, since programs use few different ones."""
    kind = type(x)
    # Zeros have signs that comparing does not tell apart.
    key = (kind, x if x and kind not in _COMPLEX else repr(x), local.context.numbers_key)
    found = _scalars.get(key)
    if found is None and x != x:  # a NaN, which equals no key
        key = (kind, repr(x), local.context.numbers_key)
        found = _scalars.get(key)
    if found is None or found._buffer.is_deleted():
        aval = get_aval(x)
        found = keep(key, array_from_numpy(dtypes.number_as(x, aval.dtype), aval))
    return found


_numbers = lending.NumberLender(_scalars, scalar_array, ArrayImpl)
operand_from_number = _numbers.operand


def keep(key: tuple, made: ArrayImpl) -> ArrayImpl:
    if len(_scalars) >= _MOST_SCALARS:
        clear_scalars()
    _scalars[key], _copies[id(made._buffer)] = made, (made, {})
    return made


def kept_number(buffer: Any) -> tuple[ArrayImpl, dict[Any, ArrayImpl]] | None:
    """Return the array with this buffer, if it is kept, and its copies on other devices by sharding."""
    entry = _copies.get(id(buffer))
    return entry if entry is not None and entry[0]._buffer is buffer else None


FEW_BYTES = 64


def small_array(x: np.ndarray) -> ArrayImpl:
    """Return an operand from the host, for one call only.

    A few integers, mostly indices, are kept as numbers are. A large array is the memory of `x`, as in
    upstream's calls, so that writing to `x` before the results are ready may change them: 4 us
    instead of 55 for 1 MB.
    """
    found = _host_types.get((x.dtype, x.shape, local.context.numbers_key))
    if found is not None and found[1] is not None:
        return ArrayImpl(found[1](x), found[0])
    if x.nbytes > FEW_BYTES or x.dtype.kind not in "iu":
        return _host_array(x)
    key = (x.dtype, x.shape, x.tobytes(), local.context.numbers_key)
    found = _scalars.get(key)
    return keep(key, as_array(x)) if found is None or found._buffer.is_deleted() else found


# By the type of an array of the host: its signature, the functions that make a buffer of it, for one
# call only (None for a few integers, see `small_array`) and with a copy, and a lender for one call.
_host_types: dict[tuple, tuple[Signature, Callable | None, Callable, lending.Lender | None]] = {}


def operand_from_host(x: np.ndarray, context: Any) -> ArrayImpl:
    """Return an operand of the call that this thread is about to make, and of no other.

    The call ends with `give_back(context.lent, ...)`.
    """
    key = (x.dtype, x.shape, context.numbers_key)
    signature, view, _, lender = _host_types.get(key) or (None, None, None, None)
    if lender is None:
        return small_array(x) if view is None else ArrayImpl(view(x), signature)
    operand = lender.lend(x, context.lent)
    return small_array(x) if operand is None else operand


def _host_array(x: np.ndarray) -> ArrayImpl:
    """Return an array of the host on the default device."""
    context = local.context
    key = (x.dtype, x.shape, context.numbers_key)
    found = _host_types.get(key)
    if found is not None:
        signature, _, put, _ = found
        return ArrayImpl(put(x), signature)
    aval = get_aval(x)
    made = array_from_numpy(x, aval, explicit=None if recording_trace() else False)
    if context.numbers_key is context.key and x.dtype != dtypes.float0:  # no transfer is guarded
        if len(_host_types) >= _MOST_SCALARS:
            _host_types.clear()
        dtype = None if x.dtype == aval.dtype else aval.dtype
        put = buffers.putter(aval, made.sharding, dtype, copy=True)
        view = put if dtype else buffers.putter(aval, made.sharding, copy=False)
        few = x.nbytes <= FEW_BYTES and x.dtype.kind in "iu"
        signature, lender = made.signature, None
        if not few and 0 < x.nbytes <= lending.MOST:
            lender = lending.Lender(aval, made.sharding, lambda b: ArrayImpl(b, signature))
        _host_types[key] = signature, None if few else view, put, lender
    if context.numbers_key is not context.key:
        made._of_host = True  # as an operand it goes from the host to where its program runs
    return made


# From a class of a library to the function that makes an array of its instances.
canonicalizers: dict[type, Callable[[Any], Any]] = {}


_scalar_types: set[type] = set()  # NumPy's, of which a value was valid


def as_operand(x: Any) -> ArrayImpl:
    """Return `as_array(x)` for a call that does not return its operands: a number is a kept array."""
    kind = type(x)
    if kind is ArrayImpl:
        return x
    if kind in (float, int, bool, complex):
        return scalar_array(x)
    if kind is np.ndarray:
        return _host_array(x)
    if kind in _scalar_types:
        return scalar_array(x)
    if isinstance(x, np.generic) and kind is not np.void:
        get_aval(x)
        _scalar_types.add(kind)
        return scalar_array(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return array_from_numpy(np.asarray(x), get_aval(x))
    for base in (bool, int, float, complex):
        if isinstance(x, base):
            return scalar_array(base(x))
    get_aval(x)
    if hooks.is_expression(x):
        return as_operand(x.__jax_array__())
    for base in kind.__mro__:
        if base in canonicalizers:
            return as_operand(canonicalizers[base](x))
    raise TypeError(f"{x!r} of type {kind} cannot become an array")


def as_array(x: Any) -> ArrayImpl:
    """Return any value that a primitive may take as a concrete array: a new one for a number."""
    found = as_operand(x)
    if found is x or kept_number(found._buffer) is None:
        return found
    value, aval = found._value, found.aval  # the user may donate or delete what is returned
    return ArrayImpl(buffers.put(value, aval, found.sharding, found.committed), found.signature)


def as_value(x: Any) -> Any:
    """Return a value as an array or a tracer: a number is a literal of the program being recorded."""
    if isinstance(x, Array) or type(x) in opaque_types:
        return x
    if local.context.trace is not eval_trace and (
        isinstance(x, (int, float, complex, np.generic)) or (type(x) is np.ndarray and x.ndim == 0)
    ):
        trace = recording_trace()
        if trace is not None:
            get_aval(x)
            return trace.literal(x)
    return hooks.shared_constant(x) if getattr(x, "nbytes", 0) > lending.MOST else as_array(x)


def array_of(number: Any, x64: bool) -> Any:
    """Return `as_value(number)` with 64-bit dtypes on, or off, whatever the current mode is."""
    with override("enable_x64", x64):
        return as_value(number)


def as_typed(x: Any) -> Any:
    """Return a NumPy value in its own dtype: itself, or an array if the current mode narrows it."""
    return x if get_aval(x).dtype == x.dtype else array_of(x, x64=True)


hooks.fill(array_of=array_of)


def clear_scalars() -> None:
    _scalars.clear()
    _copies.clear()
    _host_types.clear()
    _numbers.clear()


also_cleared.append(clear_scalars)
