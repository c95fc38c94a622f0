"""Preparing the arguments of the functions of `minijax.numpy`.

They check that these are arrays, bring them to one dtype (JEP 9263) and to one rank. Two tracers of
one type pass through with a comparison and nothing else.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_index, needs_value
from minijax.arrays.array import ArrayImpl, as_array, as_typed, as_value, canonicalizers
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.trace import Tracer
from minijax.errors import float0_error, shape_error
from minijax.features.queries import is_dim
from minijax.features.sharding.types import explicit_of
from minijax.lax.convert import convert_element_type_p, to_dtype, warn_if_complex
from minijax.lax.creation import varying_as
from minijax.lax.shapes import MOST_AXES, items_of
from minijax.namespace import user_stacklevel
from minijax.transforms.primitives import full_like_aval, to_shape

__all__ = [
    "as_dtype", "axes_of", "axis_of", "broadcast_shapes", "broadcast_to_shape", "canonical_shape", "cast",
    "check_arraylike", "check_dtypes", "check_no_out", "check_ranks", "common_dtype", "converted",
    "filled_like", "is_arraylike", "known_size", "number_like", "promote",
    "promote_dtypes",
    "promote_dtypes_inexact", "promote_dtypes_numeric", "promote_inexact", "promote_one",
    "promote_one_inexact", "promote_pair", "promote_pair_inexact", "promote_shapes", "settled",
    "to_array", "typed_as", "unwrapped", "weakened",
]  # fmt: skip

_NUMBERS = dtypes.python_scalar_dtypes
_ARRAYS = (Array, np.ndarray, np.generic, bool, int, float, complex)


def is_arraylike(x: Any) -> bool:
    """Whether `x` may stand where a function takes an array."""
    return isinstance(x, _ARRAYS) or hasattr(x, "__jax_array__") or type(x) in canonicalizers


def check_arraylike(name: str, *args: Any) -> None:
    """TypeError unless every argument is an array, a NumPy array or a number."""
    for position, x in enumerate(args):
        if not is_arraylike(x):
            shown = repr(x)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}. It is {shown}; convert it with minijax.numpy.asarray(...)."
            )


def to_array(name: str, x: Any, position: int = 0) -> Any:
    """`x` as an array of ours (concrete or traced); TypeError if it is none."""
    if isinstance(x, Array):
        return x
    if not is_arraylike(x):
        check_arraylike(name, *[0] * position, x)
    if hasattr(x, "__jax_array__"):
        return to_array(name, x.__jax_array__(), position)
    return as_value(x)


def unwrapped(x: Any) -> Any:
    """The array that an object becomes by its `__jax_array__`; another value as it is."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def check_no_out(name: str, out: Any) -> None:
    """NotImplementedError if `out` was given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported. Arrays are immutable: leave it "
            "out and use the result."
        )


# -- dtypes -----------------------------------------------------------------------------------


def as_dtype(dtype: Any, name: str) -> Any:
    """The canonical dtype of a `dtype=` argument; None stays None."""
    return None if dtype is None else dtypes.check_user_dtype_supported(dtype, name)


class IncompatibleShapes(ValueError, TypeError):
    """Shapes that do not fit: operations of `lax` raise TypeError, functions ValueError.

    Functions that are composed of both raise what the first of their operations does upstream, so
    that either may be expected.
    """


def converted(x: Any, dtype: Any, weak: bool = False) -> Any:
    """An array or number in another dtype; it is not touched if it has that one already."""
    if isinstance(x, Array):  # others may have an `aval` too
        aval = x.aval
        if aval.dtype == dtype and (weak or not aval.weak_type):
            return x
    elif type(x) in _NUMBERS:
        return _number(x, dtype, weak)
    elif hasattr(x, "__jax_array__"):
        return converted(x.__jax_array__(), dtype, weak)
    elif isinstance(x, np.generic):
        if x.dtype != dtype:
            x = hooks.converted(np.asarray(x), dtype)[()]
        return weakened(as_value(x)) if weak else as_typed(x)
    else:
        x = as_value(x) if getattr(x, "ndim", 0) else as_array(x)
        if x.aval.dtype == dtype:
            return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak, sharding=None)


def cast(x: Any, dtype: Any) -> Any:
    """Convert as `converted`, where the dtype was asked for: warns if imaginary parts are lost."""
    warn_if_complex(get_aval(x).dtype, dtype)
    return converted(x, dtype)


_default_kinds = {"f": float, "i": int, "c": complex}
_LARGE = 1 << 31  # integers that the default dtype may not hold


def _number(x: Any, dtype: Any, weak: bool) -> Any:
    """A Python number as an operand of a primitive: of this dtype, and weak only if all are."""
    kind = dtype.kind
    if kind in _default_kinds and not (type(x) is int and abs(x) >= _LARGE):
        plain = _default_kinds[kind]
        if dtypes.canonicalize_dtype(_NUMBERS[plain]) == dtype and (weak or type(x) is not bool):
            return plain(x)
    default = dtypes.canonicalize_dtype(_NUMBERS[type(x)])
    try:
        value = np.asarray(x, default)
    except OverflowError:
        raise OverflowError(
            f"Python int {x} too large to convert to {default.name}: give it as an array of a "
            "wider dtype, with enable_x64 for 64 bits."
        ) from None
    with np.errstate(all="ignore"):
        value = as_typed(value.astype(dtype)[()])
    return weakened(as_value(value)) if weak else value


def number_like(x: Any, value: Any) -> Any:
    """A Python number as the other operand of an operation on the array or number `x`.

    Beside an array with axes it has the array's dtype, and does not leave the result weakly typed.
    """
    aval = get_aval(x)
    if aval.weak_type and aval.ndim:
        return as_typed(np.asarray(value).astype(aval.dtype)[()])
    return _number(value, aval.dtype, aval.weak_type)


def filled_like(x: Any, value: Any) -> Any:
    """An array of the type of `x`, filled with a number."""
    aval = get_aval(x)
    if dtypes.is_extended(aval.dtype):  # each has a zero of its own
        return full_like_aval(value, aval)
    if explicit_of(aval) is not None:
        return varying_as(full_like_aval(value, aval), x)
    if aval.weak_type:
        scalar = _number(value, aval.dtype, True)
    else:
        scalar = as_typed(np.asarray(value).astype(aval.dtype)[()])
    return varying_as(broadcast_to_shape(scalar, aval.shape), x)


def weakened(x: Any) -> Any:
    """The array, weakly typed."""
    return to_dtype(x, x.aval.dtype, True)


def typed_as(out: Any, *args: Any) -> Any:
    """A result that is weakly typed just if the arguments promote to a weak type."""
    weak = dtypes.promote(tuple([_pair_of(x) for x in args]))[1]
    return weakened(out) if weak else converted(out, out.aval.dtype)


def settled(out: Any) -> Any:
    """Return a result whose type is weak only if it is a scalar."""
    return converted(out, out.dtype) if out.aval.weak_type and out.aval.ndim else out


def _pair_of(x: Any) -> tuple[Any, bool]:
    """The dtype and weak type with which an argument enters promotion."""
    aval = x.aval if isinstance(x, Array) else None  # others may have one too
    if aval is not None:
        return aval.dtype, aval.weak_type
    kind = type(x)
    if kind in _NUMBERS:
        return _NUMBERS[kind], kind is not bool
    if isinstance(x, np.generic) and x.dtype.kind in "mMV" and not dtypes.is_supported(x.dtype):
        raise _NoNumberError(
            f"dtype={x.dtype!r} is not a valid dtype for JAX type promotion. Convert {x!r} to a number."
        )
    aval = get_aval(unwrapped(x))
    return aval.dtype, aval.weak_type


def _unify(args: Sequence[Any], dtype: Any, weak: bool) -> list[Any]:
    """The arguments in one dtype, and weak only if the result is to be."""
    return [converted(x, dtype, weak) for x in args]


def promote_dtypes(*args: Any, name: str = "") -> list[Any]:
    """The arguments in the dtype that they promote to; `name` is that of the function."""
    return _unify(args, *common_dtype(args, name))


def common_dtype(args: Sequence[Any], name: str = "") -> tuple[Any, bool]:
    """The dtype that arguments promote to, and whether it is weak."""
    pairs = tuple([_pair_of(x) for x in args])
    try:
        return dtypes.promote(pairs)
    except ValueError as error:
        if any(dtypes.is_extended(dtype) for dtype, _ in pairs):
            kinds = [d if dtypes.is_extended(d) else dtypes.canonicalize_dtype(d) for d, _ in pairs]
            named = ", ".join(dtype.name for dtype in kinds)
            extended = next(dtype for dtype, _ in pairs if dtypes.is_extended(dtype)).name
            refused = f"{name} does not accept dtypes {named}. " if name else ""
            raise ExtendedDtypeError(
                f"{refused}dtype={extended} is not a valid dtype for JAX type promotion. Random keys "
                "are no numbers; minijax.random.key_data(key) gives their words."
            ) from error
        if any(dtype == dtypes.float0 for dtype, _ in pairs):
            raise float0_error(name or "an operation of arithmetic") from error
        raise


class _NoNumberError(TypeError, ValueError):
    """A date or a record among numbers: ValueError by upstream's functions, TypeError by some."""


class ExtendedDtypeError(TypeError, ValueError):
    """Random keys among numbers: operators of upstream say TypeError, some functions ValueError."""


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """The arguments in the floating or complex dtype that they promote to."""
    dtype, weak = common_dtype(args)
    return _unify(args, dtypes.to_inexact_dtype(dtype), weak)


def promote_dtypes_numeric(*args: Any) -> list[Any]:
    """The arguments in the dtype that they promote to; int32 if that is bool."""
    dtype, weak = common_dtype(args)
    return _unify(args, dtypes.to_numeric_dtype(dtype), weak)


def check_dtypes(*args: Any) -> None:
    """Refuse operands whose dtypes do not promote as the user's settings are.

    For functions that leave promotion to others, which promote freely: see `features.library`.
    """
    if not local.context.promotes_freely:
        common_dtype([x for x in args if x is not None])


# -- shapes -----------------------------------------------------------------------------------


def _shape_given(shape: Any) -> tuple[int, ...]:
    single = isinstance(shape, int) or getattr(shape, "shape", None) == ()
    found = (shape,) if single else tuple(items_of(shape))
    check_at_most("the number of axes", len(found), MOST_AXES)
    arrays = (ArrayImpl, np.ndarray)
    found = tuple([operator.index(size) if isinstance(size, arrays) else size for size in found])
    for size in found:
        if type(size) is int and size >= 0:
            continue
        if is_dim(size):
            continue
        if not isinstance(size, (int, np.integer)):
            raise shape_error(found)
        if size < 0:
            raise TypeError(
                "Only non-negative indices are allowed when broadcasting static shapes, but got "
                f"shape {found!r}."
            )
    return found


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    - `*shapes`: tuples of ints, or ints.

    Returns a tuple of ints. ValueError if the shapes do not broadcast. Source: NumPy's
    `broadcast_shapes`.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    shapes = tuple(map(_shape_given, shapes))
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    out = []
    for sizes in zip(*padded, strict=True):
        chosen = {size for size in sizes if size != 1}
        if len(chosen) > 1:
            raise IncompatibleShapes(
                f"Incompatible shapes for broadcasting: shapes={list(shapes)}. "
                "Sizes must agree along each axis, counted from the last, or be 1."
            )
        out.append(chosen.pop() if chosen else 1)
    return tuple(out)


def _rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Warn or raise, if the setting asks for it, where an array gets more axes than it has."""
    setting = local.context.settings.numpy_rank_promotion
    if setting == "allow":
        return
    listed = " ".join(str(shape) for shape in shapes if shape)
    if setting == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {listed} and with the "
            "config option jax_numpy_rank_promotion='raise'. Add the axes with x[None, ...]."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {listed}. Add the axes "
        "with x[None, ...], or set jax_numpy_rank_promotion to 'allow'.",
        stacklevel=user_stacklevel(),
    )


def check_ranks(name: str, *args: Any, core: Sequence[int] | None = None) -> None:
    """Refuse operands of several ranks, beyond their `core` axes, if the user's settings say so.

    For functions that leave promotion to others, which promote freely: see `features.library`.
    """
    if local.context.promotes_freely:
        return
    shapes = [np.shape(x) for x in args if x is not None]
    cores = core or [0] * len(shapes)
    ranks = {len(shape) - own for shape, own in zip(shapes, cores, strict=True) if shape}
    if len(ranks) > 1:
        _rank_promotion(name, shapes)


def _at_rank(x: Any, shape: tuple[int, ...], ndim: int) -> Any:
    lead = ndim - len(shape)
    return to_shape(x, (1,) * lead + shape, range(lead, ndim))


def promote_shapes(name: str, *args: Any) -> Sequence[Any]:
    """The arguments with axes of size one in front, so that all but the scalars have one rank."""
    shapes = [np.shape(x) for x in args]
    ranks = {len(shape) for shape in shapes if shape}
    if len(ranks) < 2:
        return args
    broadcast_shapes(*shapes)
    _rank_promotion(name, shapes)
    ndim = max(ranks)
    return [
        _at_rank(x, shape, ndim) if 0 < len(shape) < ndim else x
        for x, shape in zip(args, shapes, strict=True)
    ]


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """An array or number broadcast to a shape that it is known to fit."""
    found = np.shape(x)
    if found == shape:
        return x if isinstance(x, Array) else as_value(x)
    lead = len(shape) - len(found)
    return to_shape(x, shape, range(lead, len(shape)))


# -- both -------------------------------------------------------------------------------------


def promote_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two arguments, checked, in one dtype and at one rank."""
    if isinstance(x, Array) and isinstance(y, Array):  # others may have an `aval` too
        a, b = x.aval, y.aval
        if a is b and not a.weak_type:
            return x, y
        same = a.dtype == b.dtype and a.weak_type == b.weak_type
        if same and a.weak_type:  # a comparison's is strong here, and a wide one is narrowed
            same = a.dtype != dtypes.bool_ and a.dtype == dtypes.canonicalize_dtype(a.dtype)
        if same and (a.ndim == b.ndim or not a.ndim or not b.ndim):
            return x, y
    check_arraylike(name, x, y)
    x, y = promote_dtypes(x, y, name=name)
    if np.ndim(x) == np.ndim(y):
        return x, y
    return promote_shapes(name, x, y)


def promote_pair_inexact(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two arguments, checked, in one floating or complex dtype and at one rank."""
    if isinstance(x, Array) and isinstance(y, Array):
        a = x.aval
        if a is y.aval and a.dtype.kind in "fc":
            return x, y
    check_arraylike(name, x, y)
    x, y = promote_dtypes_inexact(x, y)
    if np.ndim(x) == np.ndim(y):
        return x, y
    return promote_shapes(name, x, y)


def promote(name: str, *args: Any) -> Sequence[Any]:
    """Arguments, checked, in one dtype and at one rank."""
    check_arraylike(name, *args)
    return promote_shapes(name, *promote_dtypes(*args, name=name))


def promote_inexact(name: str, *args: Any) -> Sequence[Any]:
    """Arguments, checked, in one floating or complex dtype and at one rank."""
    check_arraylike(name, *args)
    args = promote_dtypes_inexact(*args)  # formulas ask the results for their dtype
    args = [as_array(x) if type(x) in _NUMBERS else x for x in args]
    return promote_shapes(name, *args)


def promote_one(name: str, x: Any) -> Any:
    """One argument, checked."""
    return x if isinstance(x, Array) else to_array(name, x)


def promote_one_inexact(name: str, x: Any) -> Any:
    """One argument, checked, in a floating or complex dtype."""
    if not isinstance(x, Array):
        x = to_array(name, x)
    aval = x.aval
    if aval.dtype.kind in "fc":
        return x
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    weak = aval.weak_type and aval.dtype != dtypes.bool_
    return x if dtype == aval.dtype else converted(x, dtype, weak)


# -- axes and sizes ---------------------------------------------------------------------------


def known_size(size: Any, context: str) -> Any:
    """Return the number of results that a known argument asks for. TypeError if it is negative.

    One that depends on dimension variables is returned as it is.
    """
    if is_dim(size):
        return size
    size = known_index(size, context)
    if size < 0:
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got ({size},): size is "
            "the number of results."
        )
    return size


def axis_of(axis: Any, ndim: int, name: str = "axis") -> int:
    """An axis counted from the front. AxisError, a ValueError and IndexError, if there is none."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(
            f"{name} {index} is out of bounds for array of dimension {ndim}: "
            + (f"give one from {-ndim} to {ndim - 1}." if ndim else "a scalar has no axes.")
        )
    return index + ndim if index < 0 else index


def axes_of(
    axis: Any, ndim: int, name: str = "axis", repeated: type[Exception] = ValueError
) -> tuple[int, ...]:
    """Axes counted from the front; None stands for all. `repeated` is raised if one is given twice."""
    if axis is None:
        return tuple(range(ndim))
    try:
        return (axis_of(axis, ndim, name),)
    except TypeError:
        if isinstance(axis, Tracer):
            raise needs_value(axis, f"The {name} argument must be known statically.") from None
    axes = tuple([axis_of(a, ndim, name) for a in axis])
    if len(set(axes)) != len(axes):
        raise repeated(f"duplicate value in {name!r}: {tuple(axis)}, for {ndim} dimensions.")
    return axes


def canonical_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """A size or a sequence of sizes as a tuple of Python ints. TypeError for anything else."""
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int:
                break
        else:
            check_at_most("the number of axes", len(shape), MOST_AXES)
            return shape
    try:
        if not isinstance(shape, (list, tuple, range)) and np.ndim(shape) == 0:
            return (operator.index(shape),)
        sizes = tuple(map(operator.index, items_of(shape)))
        check_at_most("the number of axes", len(sizes), MOST_AXES)
        return sizes
    except TypeError:
        shown = shape if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
        if any(map(is_dim, shown)):
            return tuple([size if is_dim(size) else operator.index(size) for size in shown])
        raise shape_error(shown, name) from None
