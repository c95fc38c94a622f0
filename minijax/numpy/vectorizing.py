"""`vectorize`, `apply_along_axis`, `apply_over_axes`: functions of a part, mapped over an array."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.array import Array
from minijax.lax.shapes import squeeze_p
from minijax.numpy.creation import asarray
from minijax.numpy.creation import copy as copied
from minijax.numpy.promotion import (
    axis_of,
    broadcast_shapes,
    check_arraylike,
    check_ranks,
    to_array,
)
from minijax.numpy.shapes import expand_dims
from minijax.tracebacks import boundary
from minijax.transforms.vmap import vmap
from minijax.typing import ArrayLike

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]

_NAME = r"\w+"
_CORE = rf"\(\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*,?\s*\)"
_LIST = rf"{_CORE}(?:\s*,\s*{_CORE})*"
_SIGNATURE = rf"^\s*({_LIST})\s*->\s*({_LIST})\s*$"

_Cores = list[tuple[str, ...]]


def _parse(signature: str) -> tuple[_Cores, _Cores]:
    """The core dimensions of the arguments and results that a signature names."""
    found = re.match(_SIGNATURE, signature)
    if not found:
        raise ValueError(f"not a valid gufunc signature: {signature}, unlike '(m,n),(n)->(m)'.")
    return tuple([
        [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, part or "")]
        for part in found.groups()
    ])  # fmt: skip  # type: ignore[return-value]


def vectorize(
    pyfunc: Callable[..., Any] | None = None,
    *,
    excluded: Any = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Make a function that maps another one over the leading axes of its arguments.

    - `pyfunc`: function of arrays; None to use `vectorize` as a decorator with arguments.
    - `signature`: core dimensions of arguments and results, as "(m,n),(n)->(m)"; by default all are
      scalars.
    - `excluded`: positions or names of arguments that are passed on as they are.

    Returns a function whose arguments are arrays of shape (..., core dimensions); the leading axes
    broadcast. TypeError if `excluded` holds other objects. Calls raise ValueError for a wrong
    signature, or if the shapes do not fit it. Source: NumPy's `vectorize`.

    >>> dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    >>> dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    if any(not isinstance(item, (str, int)) for item in excluded):
        raise TypeError(
            f"jax.numpy.vectorize can only exclude integer or string arguments, but {excluded=}."
        )
    if any(isinstance(item, int) and item < 0 for item in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")

    @boundary
    @functools.wraps(pyfunc)
    def wrapped(*args, **kwargs):
        error_context = (
            f"on vectorized function with excluded={excluded!r} and signature={signature!r}"
        )
        fun, args, kwargs = apply_excluded(pyfunc, excluded, args, kwargs)
        fun, args = _by_position(fun, args, kwargs) if kwargs else (fun, args)
        if signature is None:
            inputs, outputs = [()] * len(args), None
        else:
            inputs, outputs = _parse(signature)
            check_count(args, inputs, error_context)
        missing = {i for i, x in enumerate(args) if x is None}
        if missing and signature is not None:
            raise ValueError(
                f"Cannot pass None at locations {missing} with {signature=}: name them in excluded."
            )
        arrays = [None if x is None else asarray(x) for x in args]
        out = _map(fun, arrays, inputs, outputs, error_context)
        # Arguments that it gives back are copied, to outlive them.
        own = lambda x: copied(x) if any(x is a for a in arrays) and type(x) is ArrayImpl else x
        return tree_util.tree_map(own, out)

    return wrapped


def check_count(args: Sequence[Any], inputs: Sequence[Any], context: str) -> None:
    """TypeError unless a signature has as many inputs as there are arguments."""
    if len(inputs) != len(args):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {len(args)} {context}"
        )


def apply_excluded(
    fun: Callable[..., Any], excluded: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """Return the function with excluded arguments filled in, and the arguments that are left."""
    if not excluded:
        return fun, args, kwargs
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}
    count = len(args)

    def filled(*values, **options):
        rest = iter(values)
        positional = [fixed[i] if i in fixed else next(rest) for i in range(count)]
        return fun(*positional, **options, **named)

    left = [x for i, x in enumerate(args) if i not in fixed]
    return filled, left, {name: x for name, x in kwargs.items() if name not in named}


def _by_position(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple:
    """The function of the values alone, and these in the order in which it takes them."""
    count, names = len(args), list(kwargs)

    def positional(*values):
        return fun(*values[:count], **dict(zip(names, values[count:], strict=False)))

    return positional, [*args, *kwargs.values()]


def _map(fun, arrays, inputs, outputs, context) -> Any:
    """Apply a function of core dimensions over the broadcast leading axes."""
    leads, sizes = leads_and_sizes(arrays, inputs, context)
    try:
        shape = broadcast_shapes(*leads) if leads else ()
        check_ranks(
            "vectorize",
            *arrays,
            core=[len(c) for c, x in zip(inputs, arrays, strict=True) if x is not None],
        )
    except ValueError as error:
        raise ValueError(f"{error} {context}") from None
    checked = fun if outputs is None else _checked(fun, outputs, sizes, context)
    return _nested(checked, arrays, leads, shape)(*[x for x in arrays if x is not None])


def leads_and_sizes(
    arrays: Sequence[Any], inputs: Sequence[Sequence[str]], context: str
) -> tuple[list[tuple[int, ...]], dict[str, int]]:
    """Return the leading dimensions of each array, and the sizes of core dimensions."""
    sizes: dict[str, int] = {}
    leads = []
    for x, core in zip(arrays, inputs, strict=True):
        if x is None:
            leads.append(())
            continue
        if x.ndim < len(core):
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core "
                f"dimensions {core} {context}"
            )
        cut = x.ndim - len(core)
        leads.append(x.shape[:cut])
        _note_sizes(sizes, core, x.shape[cut:], context)
    return leads, sizes


def _note_sizes(sizes: dict, core: Sequence[str], shape: Sequence[int], context: str) -> None:
    for name, size in zip(core, shape, strict=True):
        known = sizes.setdefault(name, size)
        if known != size:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {size} vs {known} {context}"
            )


def _nested(fun: Callable, arrays: list, leads: list, shape: tuple[int, ...]) -> Callable:
    """One vmap for each leading axis; an axis of size one, or missing, is not mapped over."""
    present = [lead for x, lead in zip(arrays, leads, strict=True) if x is not None]

    def inner(*given):
        rest = iter(given)
        return fun(*[None if x is None else next(rest) for x in arrays])

    mapped = inner
    rank = len(shape)
    for place in range(rank - 1, -1, -1):
        axes = tuple([
            None if place < rank - len(lead) or (lead[place - rank] == 1 != shape[place]) else 0
            for lead in present
        ])  # fmt: skip
        if any(axis is not None for axis in axes):
            mapped = vmap(mapped, in_axes=axes)

    def start(*given):
        squeezed = []
        for x, lead in zip(given, present, strict=True):
            ones = tuple([
                i
                for i, size in enumerate(lead)
                if size == 1 and shape[rank - len(lead) + i] != 1
            ])  # fmt: skip
            squeezed.append(squeeze_p.bind(x, dimensions=ones) if ones else x)
        return mapped(*squeezed)

    return start


def _checked(fun: Callable, outputs: _Cores, sizes: dict[str, int], context: str) -> Callable:
    """The function with its results compared to the signature."""

    def wrapped(*args):
        out = fun(*args)
        single = len(outputs) == 1 and not isinstance(out, tuple)
        results = (out,) if single else out
        if not isinstance(results, tuple):
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {out!r} {context}"
            )
        if len(results) != len(outputs):
            raise TypeError(
                f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} "
                f"{context}"
            )
        known = dict(sizes)
        for x, core in zip(results, outputs, strict=True):
            shape = np.shape(x)
            if len(shape) != len(core):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {core} {context}"
                )
            _note_sizes(known, core, shape, context)
        return out

    return wrapped


# -- apply ------------------------------------------------------------------------------------


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Apply a function to the vectors along an axis.

    - `func1d`: function of an array of shape (n,).
    - `axis`: an int; `arr`: array of shape (..., n, ...).
    - `*args`, `**kwargs`: further arguments of `func1d`.

    Returns an array with the shape of the function's result in place of the axis. ValueError if
    `axis` is out of range. Source: NumPy's `apply_along_axis`.

    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.array([[1, 2], [3, 4]]))
    Array([3, 7], dtype=int32)
    """
    arr = to_array("apply_along_axis", arr)
    rank = arr.ndim
    axis = axis_of(axis, rank)

    def apply(vector):
        return tree_util.tree_map(asarray, func1d(vector, *args, **kwargs))

    for place in range(1, rank - axis):
        apply = vmap(apply, in_axes=1, out_axes=-place)
    for _ in range(axis):
        apply = vmap(apply, in_axes=0, out_axes=0)
    return apply(arr)


def apply_over_axes(func: Callable[..., Any], a: ArrayLike, axes: Sequence[int]) -> Array:
    """Apply a function over several axes in turn.

    - `func`: function func(a, axis) that keeps the number of dimensions or removes the axis.
    - `a`: array of any shape; `axes`: sequence of ints.

    Returns an array of as many dimensions as `a`. ValueError if `func` returns another shape.
    Source: NumPy's `apply_over_axes`.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    check_arraylike("apply_over_axes", a)
    out = asarray(a)
    for axis in axes:
        found = to_array("apply_over_axes", func(out, axis))
        if found.ndim == out.ndim:
            out = found
        elif found.ndim == out.ndim - 1:
            out = expand_dims(found, axis)
        else:
            raise ValueError(
                "function is not returning an array of the correct shape: apply_over_axes got "
                f"{found.shape} from {out.shape}."
            )
    return out
