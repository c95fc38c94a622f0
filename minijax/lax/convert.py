"""Conversions: between dtypes, of bits, of precision; copies; and values without a derivative."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.values import known_index
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import StagedTracer
from minijax.dtypes import ExtendedDType
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import parts_of
from minijax.features.sharding.unreduced import first, refused
from minijax.lax.rules import FLOAT, broadcasting_batch, elementwise, linear, zero_derivative
from minijax.lowering.module import Value
from minijax.namespace import user_stacklevel
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "bitcast_convert_type", "bitcast_convert_type_p", "convert_element_type",
    "convert_element_type_p", "copy_p", "dtype", "lower_conversion", "reduce_precision", "reduce_precision_p", "stage",
    "stage_p", "stop_gradient", "stop_gradient_p", "to_dtype", "to_type",
]  # fmt: skip

_T = TypeVar("_T")

_BOOL = dtypes.bool_


# -- convert_element_type -------------------------------------------------------------------------

convert_element_type_p = Primitive("convert_element_type")
set_layout(convert_element_type_p, sums=first)
convert_element_type_p.printed = lambda params: {
    name: value for name, value in params.items() if not (name == "sharding" and value is None)
}


@convert_element_type_p.shape_rule
def _(x, *, new_dtype, weak_type, sharding=None):
    if not dtypes.is_convertible(x.dtype, new_dtype):
        raise ValueError(
            f"Cannot convert_element_type from {x.dtype.name} to {new_dtype.name}: elements of "
            "extended dtypes are no numbers, unless their rules say so."
        )
    changes = {} if sharding is None else {"sharding": sharding}
    return x.update(dtype=new_dtype, weak_type=bool(weak_type), **changes)


@convert_element_type_p.jvp
def _(primals, tangents, *, new_dtype, **params):
    (x,), (t,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, **params)
    wanted = get_aval(out).to_tangent_aval()
    if type(t) is Zero or wanted.dtype == dtypes.float0:
        return out, zero_like(out)
    return out, to_type(t, wanted)


@convert_element_type_p.transpose
def _(ct, x, **params):
    assert is_undefined(x)
    return [to_type(ct, x.aval)]


def to_dtype(x: Any, dtype: Any, weak_type: bool | None = None) -> Any:
    """`x` converted to a dtype if it has another one; or, unless None, another weak type."""
    found = get_aval(x)
    if found.dtype == dtype and weak_type in (None, found.weak_type):
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=bool(weak_type), sharding=None)


def to_type(x: Any, aval: ShapedArray) -> Any:
    """`x` in the dtype, and with the weak type, of a type."""
    return to_dtype(x, aval.dtype, aval.weak_type)


convert_element_type_p.rule_batch = broadcasting_batch(convert_element_type_p)


@convert_element_type_p.stage
def _(trace, args, params):
    """A number in a program is converted at once, and stays a number."""
    x = args[0]
    outside = type(x) is StagedTracer and x._trace is not trace  # a value that is closed over
    literal = None if outside else trace.literal_of(x)
    if literal is None or params["weak_type"] or not _both_numeric(literal.aval.dtype, params):
        return trace.record(convert_element_type_p, args, params)
    with np.errstate(all="ignore"):
        number = np.asarray(literal.val, literal.aval.dtype).astype(params["new_dtype"])[()]
    return trace.literal(number, ShapedArray((), number.dtype))


def _both_numeric(old: Any, params: dict) -> bool:
    """Neither keys nor what has no values; nor complex numbers, of which XLA takes the real part."""
    kinds = (old, params["new_dtype"])
    return not any(isinstance(d, dtypes.ExtendedDType) or d == dtypes.float0 for d in kinds) and (
        old.kind != "c" or params["new_dtype"].kind == "c"
    )


@convert_element_type_p.lower
def _(b, x, **params):
    return lower_conversion(b, x, b.out)


def lower_conversion(b: Any, x: Value, out: ShapedArray) -> Value:
    """Write the conversion of a value to a type of the same shape."""
    old = dtypes.stored_dtype(x.dtype)
    new = dtypes.stored_dtype(out.dtype)
    if old == new:
        return x if x.dtype == out.dtype else Value(x.name, out)
    if dtypes.float0 in (old, new):
        return b.full(0, out)
    if dtypes.issubdtype(old, np.complexfloating) and not dtypes.issubdtype(
        new, np.complexfloating
    ):
        x = b.op("stablehlo.real", (x,), x.aval.update(dtype=dtypes.to_real_dtype(old)))
        old = x.dtype
        if old == new:
            return x
    if new == _BOOL:
        return b.compare(x, b.full(0, x.aval), "NE")
    if b.platform == "tpu" and np.complex128 in (old, new):  # its compiler would end the process
        part = out.update(dtype=dtypes.to_real_dtype(new), weak_type=False)
        if old.kind != "c":
            return b.op("stablehlo.complex", (lower_conversion(b, x, part), b.full(0, part)), out)
        own = x.aval.update(dtype=dtypes.to_real_dtype(old))
        parts = [b.op(f"stablehlo.{name}", (x,), own) for name in ("real", "imag")]
        return b.op("stablehlo.complex", [lower_conversion(b, each, part) for each in parts], out)
    return b.op("stablehlo.convert", (x,), out)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike | ExtendedDType) -> Array:
    """Convert an array to another dtype.

    - `operand`: array of any shape and dtype
    - `new_dtype`: dtype; 64-bit ones mean their 32-bit counterparts unless 64-bit mode is on

    The result has the shape of `operand`. Floats are truncated to integers, complex numbers lose
    their imaginary part, nonzero numbers become True. ValueError without a dtype, TypeError for
    other objects.
    Source: the StableHLO operation `stablehlo.convert`.

    >>> lax.convert_element_type(jnp.array([1.5, -1.5]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError(
            "dtype must be specified. convert_element_type(operand, new_dtype) got None."
        )
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    if new_dtype is dtypes.float0:
        return np.zeros(get_aval(operand).shape, new_dtype)
    if not isinstance(operand, Array):
        operand = _as_operand(operand, new_dtype)
    aval = operand.aval if hasattr(operand, "aval") else get_aval(operand)
    if aval.dtype == new_dtype and not aval.weak_type:
        return operand
    warn_if_complex(aval.dtype, new_dtype)
    return convert_element_type_p.bind(operand, new_dtype=new_dtype, weak_type=False, sharding=None)


def warn_if_complex(old: Any, new: Any) -> None:
    """ComplexWarning where a conversion that was asked for loses imaginary parts."""
    if dtypes.issubdtype(old, np.complexfloating) and not dtypes.issubdtype(
        new, np.complexfloating
    ):
        warnings.warn(
            "Casting complex values to real discards the imaginary part: take the real part first.",
            np.exceptions.ComplexWarning,
            stacklevel=user_stacklevel(),
        )


def _as_operand(x: Any, new_dtype: Any) -> Any:
    """A value that is no array of ours; Python numbers are converted at once."""
    if type(x) in dtypes.python_scalar_dtypes and not isinstance(new_dtype, dtypes.ExtendedDType):
        x = _number(x, new_dtype)
    elif hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    return as_value(x)


def _number(x: Any, dtype: np.dtype) -> np.generic:
    """A Python number in a dtype: integers wrap, floats go to the nearest integer there is."""
    if dtypes.issubdtype(dtype, np.integer):
        if type(x) is int:
            return np.asarray(x).astype(dtype)[()]
        if type(x) is float:
            info = dtypes.iinfo(dtype)
            x = 0 if x != x else int(min(max(x, info.min), info.max))
    with np.errstate(all="ignore"):
        return np.asarray(x, dtype)[()]


# -- bitcast_convert_type -------------------------------------------------------------------------

bitcast_convert_type_p = Primitive("bitcast_convert_type")
set_layout(
    bitcast_convert_type_p, sums=refused,
    parts=lambda avals, out, **_: [*parts_of(avals[0]), None][: out.ndim],
)  # fmt: skip


@bitcast_convert_type_p.shape_rule
def _(x, *, new_dtype):
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(new_dtype)
    shape = x.shape
    if old > new:
        shape = (*shape, old // new)
    elif old < new:
        if not shape or shape[-1] * old != new:
            raise ValueError(
                f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of size {old} "
                f"bits to {new_dtype.name} of size {new}, bits but {shape[-1] if shape else 1} * "
                f"{old} != {new}: its last dimension must be {new // old}."
            )
        shape = shape[:-1]
    opaque = (np.complexfloating, np.bool_)
    if x.dtype != new_dtype and any(
        dtypes.issubdtype(dtype, kind) for dtype in (x.dtype, new_dtype) for kind in opaque
    ):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand "
            f"and destination types match. Got operand dtype={x.dtype.name}, {new_dtype=}. "
            "Consider using the arr.view() method instead."
        )
    return x.update(shape=shape, dtype=new_dtype, weak_type=False)


zero_derivative(bitcast_convert_type_p)


bitcast_convert_type_p.rule_transpose = no_rule("bits have no derivative")


@bitcast_convert_type_p.batch
def _(args, dims, *, new_dtype):
    (x,), (dim,) = args, dims
    if dim == x.ndim - 1:  # the last axis may hold the parts of an element
        x, dim = moveaxis(x, dim, 0), 0
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), dim


@bitcast_convert_type_p.lower
def _(b, x, *, new_dtype):
    return x if x.dtype == new_dtype else b.op("stablehlo.bitcast_convert", (x,), b.out)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits of an array as another dtype.

    - `operand`: array; if the new dtype is wider, its last dimension holds the parts of an element
    - `new_dtype`: dtype; if it is narrower, a last dimension is added for the parts

    The result has shape and dtype accordingly. ValueError if the last dimension has not the number
    of parts; TypeError for booleans and complex numbers, unless the dtype stays.
    Source: the StableHLO operation `stablehlo.bitcast_convert`.

    >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.uint32)
    Array(1065353216, dtype=uint32)
    """
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


# -- reduce_precision -----------------------------------------------------------------------------


def _lower_reduce_precision(b, x, *, exponent_bits, mantissa_bits):
    attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return b.op("stablehlo.reduce_precision", (x,), b.out, attributes)


reduce_precision_p = elementwise("reduce_precision", _lower_reduce_precision, [FLOAT])
linear(reduce_precision_p, lambda ct, aval, **params: reduce_precision_p.bind(ct, **params))


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round each element to the precision of a narrower format.

    - `operand`: floating-point array of any shape
    - `exponent_bits`, `mantissa_bits`: widths of the format, at least 1 and 0

    The result has the shape and dtype of `operand`. ValueError for other widths, TypeError for
    other dtypes.
    Source: the StableHLO operation `stablehlo.reduce_precision`.

    >>> lax.reduce_precision(jnp.array([1.3]), 5, 2)
    Array([1.25], dtype=float32)
    """
    exponent_bits = known_index(exponent_bits, "exponent_bits argument of lax.reduce_precision")
    mantissa_bits = known_index(mantissa_bits, "mantissa_bits argument of lax.reduce_precision")
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    if max(exponent_bits, mantissa_bits) >= 2**31:
        raise ValueError(
            f"reduce_precision: widths must be less than 2**31; got {exponent_bits} and "
            f"{mantissa_bits}."
        )
    return reduce_precision_p.bind(
        operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )


# -- copies of a value ----------------------------------------------------------------------------


def _identity(name: str) -> Primitive:
    p = Primitive(name)
    p.shape_rule(lambda x: x)
    p.lower(lambda b, x: x)
    p.rule_batch = broadcasting_batch(p)
    return p


copy_p = _identity("copy")
set_layout(copy_p, sums=first)
linear(copy_p, lambda ct, aval: copy_p.bind(ct))

stop_gradient_p = _identity("stop_gradient")
set_layout(stop_gradient_p, sums=first)
stop_gradient_p.rule_transpose = no_rule("its derivative is zero")
stop_gradient_p.impl(as_value)


zero_derivative(stop_gradient_p)


def stop_gradient(x: _T) -> _T:
    """Return a value that differentiation treats as a constant.

    - `x`: pytree of arrays of any shape and dtype

    The result has the structure, shapes and dtypes of `x`. Source: the chain rule with a zero
    derivative.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    if isinstance(x, Array):
        return stop_gradient_p.bind(x)
    leaves, tree = tree_util.flatten(x)
    for leaf in leaves:
        get_aval(leaf)
    return tree.unflatten([stop_gradient_p.bind(leaf) for leaf in leaves])


# `stage` records nothing: it turns a value from outside into one of the trace that is at work.
stage_p = _identity("stage")
linear(stage_p, lambda ct, aval: ct)
stage_p.impl(as_value)


@stage_p.stage
def _(trace, args, params):
    return trace.tracer_of(args[0])


def stage(x: ArrayLike, /) -> Array:
    """Convert a number or array to an array, within the current trace.

    - `x`: array, NumPy array or number of any shape and dtype

    The result is a tracer while tracing, and an array otherwise. TypeError for other objects.
    Source: NumPy's `asarray`.

    >>> lax.stage(np.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return stage_p.bind(x)


def dtype(x: Any) -> np.dtype[Any]:
    """Return the dtype of a value, a dtype or a Python type in the current mode.

    - `x`: array, number, dtype or type; 64-bit dtypes give 32-bit ones unless 64-bit mode is on

    The result is a NumPy dtype. ValueError for None; TypeError for what has no dtype.
    Source: NumPy's `dtype`.

    >>> lax.dtype(1.5)
    dtype('float32')
    """
    return dtypes.dtype(x, canonicalize=True)
