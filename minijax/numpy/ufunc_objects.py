"""`ufunc`: functions on elements as objects, with reduce, accumulate, at, outer and reduceat.

The functions themselves stand in `ufuncs`, `logic` and `floats`; here they get the methods of
NumPy's universal functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.stages.struct import eval_shape
from minijax.lax.control_flow import associative_scan, scan
from minijax.namespace import pickled_by_name
from minijax.numpy import cumulative, float_parts, logic, reductions, ufuncs
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.joining import joined
from minijax.numpy.promotion import (
    as_dtype,
    axes_of,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    converted,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import broadcast_to, expanded, moveaxis, reshaped
from minijax.numpy.taking import take
from minijax.numpy.vectorizing import vectorize
from minijax.tracebacks import boundary, hide_frames
from minijax.typing import ArrayLike

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "subtract", "ufunc",
]  # fmt: skip


class ufunc:
    """Universal function: a function of elements with methods that reduce, accumulate and scatter.

    - `func`: function of `nin` scalars that returns `nout` scalars; it is mapped over arrays.
    - `identity`: scalar that leaves elements as they are; `call`: function to use for arrays.
    - `reduce`, `accumulate`, `at`, `reduceat`: functions that replace the general methods.

    Calls take arrays that broadcast and return arrays of the broadcast shape; NotImplementedError
    if `out` or `where` is given. Source: NumPy's `ufunc`.

    >>> jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)(jnp.array([1, 2]), 3)
    Array([4, 7], dtype=int32)
    >>> jnp.add.reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """

    def __init__(
        self,
        func: Callable,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable | None = None,
        reduce: Callable | None = None,
        accumulate: Callable | None = None,
        at: Callable | None = None,
        reduceat: Callable | None = None,
    ):
        self.nin = operator.index(nin)
        self.nout = operator.index(nout)
        self.nargs = self.nin if nargs is None else operator.index(nargs)
        self.identity = identity
        self._func = func
        self._call = call if call is not None else vectorize(func)
        self._shortcuts = {
            "reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat,
        }  # fmt: skip
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "ufunc")
        self.__doc__ = func.__doc__

    __module__ = "minijax.numpy"
    __reduce_ex__ = pickled_by_name

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self._func, self.nin, self.nout, self.__name__))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ufunc) and (
            (self._func, self.nin, self.nout, self.identity, self.__name__)
            == (other._func, other.nin, other.nout, other.identity, other.__name__)
        )

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        try:
            if out is not None or where is not None:
                self._refuse("out" if out is not None else "where")
            return self._call(*args)
        except Exception as error:  # as of a `boundary`, of which no frame is paid for here
            hide_frames(error)
            raise

    def _dtype_of(self, *args: Any) -> Any:
        """The dtype of the result for elements of these arrays."""
        return eval_shape(self._call, *[x.aval.update(shape=()) for x in args]).dtype

    def _refuse(self, argument: str) -> None:
        raise NotImplementedError(
            f"{argument} argument of {self}: arrays are immutable. Use the result, or "
            "minijax.numpy.where."
        )

    def _binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs: {self} takes {self.nin}.")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value.")

    @boundary
    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Reduce an array along axes by the function.

        - `a`: array of any shape.
        - `axis`: an int, 0 by default; None or a tuple of ints for functions whose order does not
          matter.
        - `dtype`: dtype of the computation; `keepdims`: keep reduced axes with size 1.
        - `initial`: scalar to start from; `where`: boolean array, broadcast to `a`, of elements to
          include.

        Returns an array of the shape of `a` without the axes. ValueError unless the function takes
        two arguments, or if nothing is reduced without an identity. Source: NumPy's `ufunc.reduce`.

        >>> jnp.multiply.reduce(jnp.array([[1, 2], [3, 4]]))
        Array([3, 8], dtype=int32)
        """
        self._binary("reduce")
        if out is not None:
            self._refuse("out")
        if initial is not None:
            check_arraylike(f"{self.__name__}.reduce", initial)
        if where is not None:
            check_arraylike(f"{self.__name__}.reduce", where)
            if self.identity is None and initial is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                    "where mask one has to specify 'initial'."
                )
        shortcut = self._shortcuts["reduce"]
        if shortcut is not None:
            return shortcut(
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        a = to_array(f"{self.__name__}.reduce", a)
        if axis is None or isinstance(axis, (tuple, list)):
            axes = axes_of(axis, a.ndim)
            if axis is not None and len(axes) > 1 and not self._is_commutative():
                raise NotImplementedError(
                    f"tuple of axes: {self.__name__}.reduce takes one axis, as the order matters; "
                    f"got {axis}."
                )
        else:
            axes = (axis_of(axis, a.ndim),)
        dtype = as_dtype(dtype, self.__name__)
        return _reduced(a, initial, where, self, axes, dtype, bool(keepdims))

    def _reduce_by_scan(self, a, initial, where, axes, dtype, keepdims) -> Any:
        kept = [i for i in range(a.ndim) if i not in axes]
        rows = moveaxis(a, axes, range(len(axes))) if axes else expanded(a, (0,))
        rest = tuple([a.shape[i] for i in kept])
        count = int(np.prod([a.shape[i] for i in axes], dtype=np.int64)) if axes else 1
        rows = reshaped(rows, (count, *rest))
        mask = None
        if where is not None:
            where = broadcast_to(to_array("where", where), a.shape)
            mask = moveaxis(where, axes, range(len(axes))) if axes else expanded(where, (0,))
            mask = reshaped(mask, (count, *rest))
        out = self._fold(rows, mask, initial, dtype)
        return expanded(out, axes) if keepdims and axes else out

    def _is_commutative(self) -> bool:
        return self.identity is not None or self.__name__ in ("maximum", "minimum")

    def _fold(self, rows: Any, mask: Any, initial: Any, dtype: Any) -> Any:
        """The rows of an array joined from the first to the last."""
        shape = rows.shape[1:]
        if initial is None:
            initial = self.identity
        element = rows[0] if rows.shape[0] else None
        if dtype is None:
            probe = broadcast_to_shape(np.zeros((), rows.dtype)[()], shape)
            dtype = self(probe, probe).dtype
        rows = converted(rows, dtype)
        if initial is not None:
            start = broadcast_to_shape(converted(initial, dtype), shape)
            start = converted(start, dtype)
        elif element is None:
            raise ValueError(
                f"zero-size array to reduction operation {self.__name__} which has no identity: "
                "give 'initial'."
            )
        else:
            start, rows = rows[0], rows[1:]

        def step(total, row):
            if mask is None:
                return converted(self(total, row), dtype), None
            row, chosen = row
            return choose_where(chosen, converted(self(total, row), dtype), total), None

        return scan(step, start, rows if mask is None else (rows, mask))[0]

    @boundary
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Accumulate the results of the function along an axis.

        - `a`: array of at least one dimension.
        - `axis`: an int, 0 by default; `dtype`: dtype of the computation.

        Returns an array of the shape of `a`. ValueError unless the function takes two arguments and
        returns one. Source: NumPy's `ufunc.accumulate`.

        >>> jnp.maximum.accumulate(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
        """
        self._binary("accumulate")
        if out is not None:
            self._refuse("out")
        shortcut = self._shortcuts["accumulate"]
        if shortcut is not None:
            return shortcut(a, axis=axis, dtype=dtype)
        a = to_array(f"{self.__name__}.accumulate", a)
        if axis is None:
            if a.ndim != 1:
                raise ValueError("accumulate does not allow multiple axes: give one.")
            axis = 0
        axis = axis_of(axis, a.ndim)
        if not a.shape[axis]:
            return a
        return _accumulated(a, self, axis, as_dtype(dtype, self.__name__))

    def _accumulate_by_scan(self, a: Any, axis: int, dtype: Any) -> Any:
        rows = moveaxis(a, axis, 0)
        if dtype is None:
            dtype = self(rows[0], rows[0]).dtype
        rows = converted(rows, dtype)

        def combined(total, row):
            return converted(self(total, row), dtype)

        if self._is_commutative():
            return moveaxis(associative_scan(combined, rows), 0, axis)

        def step(total, row):
            total = combined(total, row)
            return total, total

        _, rest = scan(step, rows[0], rows[1:])
        out = joined("accumulate", [expanded(rows[0], (0,)), rest], 0)
        return moveaxis(out, 0, axis)

    @boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Return a copy of an array with the function applied to elements at indices.

        - `a`: array; `indices`: index of `a`, in which elements may repeat.
        - `b`: second operand, which broadcasts to the indexed shape; absent for functions of one
          argument.
        - `inplace`: must be False, since arrays are immutable.

        Returns an array of the shape and dtype of `a`. NotImplementedError unless `inplace` is
        False. Source: NumPy's `ufunc.at`.

        >>> jnp.add.at(jnp.array([0, 0, 0]), jnp.array([0, 2, 2]), 1, inplace=False)
        Array([1, 0, 2], dtype=int32)
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like "
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g. "
                f"arr = jnp.{self.__name__}.at(arr, ind, val, inplace=False)"
            )
        shortcut = self._shortcuts["at"]
        if shortcut is not None:
            return shortcut(a, indices, b) if b is not None else shortcut(a, indices)
        a = to_array(f"{self.__name__}.at", a)
        return self._at_by_scan(a, indices, b)

    def _at_by_scan(self, a: Any, indices: Any, b: Any) -> Any:
        """One place after the other, since a place may be named twice."""
        index = indices if isinstance(indices, tuple) else (indices,)
        probe = IndexHelper(_flat_places(a))[index].get()
        shape = probe.shape
        others = () if b is None else (to_array(f"{self.__name__}.at", b),)
        flat = reshaped(converted(a, self._dtype_of(a, *others)), (a.size,))

        def step(flat, row):
            place, *values = row
            new = converted(self(flat[place], *values), flat.dtype)
            return IndexHelper(flat)[place].set(new), None

        rows = [
            reshaped(x, (probe.size,)) for x in (probe, *[broadcast_to(b, shape) for b in others])
        ]
        return reshaped(scan(step, flat, rows)[0], a.shape)

    @boundary
    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Reduce slices of an array that begin at given indices.

        - `a`: array of at least one dimension.
        - `indices`: integer array of shape (k,); slice i goes from indices[i] to indices[i + 1].
        - `axis`: an int, 0 by default; `dtype`: dtype of the computation.

        Returns an array with size k along the axis. ValueError unless the function takes two
        arguments and returns one, and `axis` is an int; TypeError if the result does not fit the
        dtype of `a`. Source: NumPy's `ufunc.reduceat`.

        >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
        Array([3, 7], dtype=int32)
        """
        self._binary("reduceat")
        if out is not None:
            self._refuse("out")
        shortcut = self._shortcuts["reduceat"]
        if shortcut is not None:
            return shortcut(a, indices, axis=axis, dtype=dtype)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        a = to_array(f"{self.__name__}.reduceat", a)
        indices = to_array(f"{self.__name__}.reduceat", indices, 1)
        if indices.ndim != 1:
            raise ValueError(
                f"reduceat: indices must be one-dimensional, got indices.shape={indices.shape}"
            )
        if not dtypes.issubdtype(indices.dtype, np.integer):
            raise ValueError(
                f"indices must have an integer type; {self.__name__}.reduceat got "
                f"{indices.dtype.name}."
            )
        return _slices_reduced(
            a, indices, self, axis_of(axis, a.ndim), as_dtype(dtype, self.__name__)
        )

    def _reduceat_by_scan(self, a: Any, indices: Any, axis: int, dtype: Any) -> Any:
        rows = moveaxis(a, axis, 0)
        if dtype is not None:
            rows = converted(rows, dtype)
        length = rows.shape[0]
        places = np.arange(length, dtype=dtypes.int_())
        ends = joined("reduceat", [indices[1:], to_array("", np.asarray([length]))], 0)
        start = take(rows, indices, axis=0)
        found = self._dtype_of(rows, rows)
        if dtypes.promote_types(found, rows.dtype) != rows.dtype:
            raise TypeError(f"{self.__name__}.reduceat of {rows.dtype.name} gives {found.name}: "
                            f"convert the array to {found.name} first.")  # fmt: skip
        grow = (slice(None), *[None] * (rows.ndim - 1))

        def step(total, pair):
            place, row = pair
            inside = (place > indices) & (place < ends)
            joined_ = converted(self(total, row), total.dtype)
            return choose_where(inside[grow], joined_, total), None

        result, _ = scan(step, start, (to_array("", places), rows))
        return moveaxis(result, 0, axis)

    @boundary
    def outer(self, A: Any, B: Any, /) -> Array:
        """Apply the function to all pairs of elements of two arrays.

        - `A`, `B`: arrays of any shape.

        Returns an array of shape A.shape + B.shape. ValueError unless the function takes two
        arguments and returns one. Source: NumPy's `ufunc.outer`.

        >>> jnp.add.outer(jnp.array([1, 2]), jnp.array([10, 20]))
        Array([[11, 21],
               [12, 22]], dtype=int32)
        """
        self._binary("outer")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return _of_pairs(A, B, self)


# Called eagerly, each is one program; a loop would be traced in every call.


@library(static=("of", "axes", "dtype", "keepdims"))
def _reduced(a, initial, where, of, axes, dtype, keepdims):
    return of._reduce_by_scan(a, initial, where, axes, dtype, keepdims)


@library(static=("of", "axis", "dtype"))
def _accumulated(a, of, axis, dtype):
    return of._accumulate_by_scan(a, axis, dtype)


@library(static=("of", "axis", "dtype"))
def _slices_reduced(a, indices, of, axis, dtype):
    return of._reduceat_by_scan(a, indices, axis, dtype)


@library(static=("of",))
def _of_pairs(a, b, of):
    check_dtypes(a, b)
    a, b = to_array("outer", a), to_array("outer", b, 1)
    grown = expanded(a, range(a.ndim, a.ndim + b.ndim)) if b.ndim else a
    return of(grown, expanded(b, range(a.ndim)) if a.ndim else b)


def _flat_places(a: Any) -> Any:
    """Return for each element of an array its place in the flattened one."""
    return to_array("at", np.arange(a.size, dtype=dtypes.int_()).reshape(a.shape))


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make a universal function of a function of scalars.

    - `func`: function of `nin` scalars that returns `nout` scalars.
    - `identity`: scalar that leaves elements as they are, for `reduce`; None if there is none.

    Returns a `ufunc`, which takes arrays that broadcast and returns arrays of the broadcast shape.
    TypeError if `func` is not callable, or `nin` or `nout` is not an int. Source: NumPy's
    `frompyfunc`.

    >>> jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)(jnp.array([1, 2]), 3)
    Array([4, 7], dtype=int32)
    """
    try:
        nin, nout = operator.index(nin), operator.index(nout)
    except TypeError:
        raise TypeError(
            f"nin and nout must be integers; frompyfunc got {nin!r} and {nout!r}."
        ) from None
    if not callable(func):
        raise TypeError(f"frompyfunc takes a function; got {func!r} of type {type(func)}.")
    return ufunc(func, nin, nout, identity=identity)


# -- the functions of NumPy ------------------------------------------------------------------


def _reduction(function: Callable, takes_dtype: bool) -> Callable:
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        more = {"dtype": dtype} if takes_dtype else {}
        out = function(
            a if takes_dtype or dtype is None else converted(to_array("reduce", a), dtype),
            axis=axis, keepdims=keepdims, initial=initial, where=where, **more,
        )  # fmt: skip
        return out

    return reduce


def _truth(function: Callable) -> Callable:
    """logical_and and logical_or by `all` and `any`."""

    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        out = function(a, axis=axis, keepdims=keepdims, where=where)
        if initial is not None:
            join = logic.logical_and if function is reductions.all else logic.logical_or
            out = join(out, initial)
        return out if dtype is None else converted(out, as_dtype(dtype, "reduce"))

    return reduce


def _running(function: Callable) -> Callable:
    return lambda a, axis=0, dtype=None: function(a, axis=axis, dtype=dtype)


def _updating(kind: str) -> Callable:
    def at(a, indices, b):
        return getattr(IndexHelper(to_array("at", a))[indices], kind)(b)

    return at


def _made(function: Callable, identity: Any = None, nin: int = 2, **shortcuts: Any) -> ufunc:
    return ufunc(
        function, nin, 1, name=function.__name__, identity=identity, call=function, **shortcuts
    )


add = _made(
    ufuncs.add, 0, reduce=_reduction(reductions.sum, True),
    accumulate=_running(cumulative.cumsum), at=_updating("add"),
)  # fmt: skip
subtract = _made(ufuncs.subtract, at=_updating("subtract"))
multiply = _made(
    ufuncs.multiply, 1, reduce=_reduction(reductions.prod, True),
    accumulate=_running(cumulative.cumprod), at=_updating("multiply"),
)  # fmt: skip
negative = _made(ufuncs.negative, nin=1)
maximum = _made(ufuncs.maximum, reduce=_reduction(reductions.max, False))
minimum = _made(ufuncs.minimum, reduce=_reduction(reductions.min, False))
logaddexp = _made(float_parts.logaddexp, -np.inf)
logaddexp2 = _made(float_parts.logaddexp2, -np.inf)
logical_and = _made(logic.logical_and, True, reduce=_truth(reductions.all))
logical_or = _made(logic.logical_or, False, reduce=_truth(reductions.any))
logical_xor = _made(logic.logical_xor, False)
bitwise_and = _made(logic.bitwise_and, -1)
bitwise_or = _made(logic.bitwise_or, 0)
bitwise_xor = _made(logic.bitwise_xor, 0)
