"""Conversions: between dtypes, of bits, of precision; copies; and values without a derivative.

May import the floors below and `lax.rules`.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import StagedTracer
from minijax.core.sums import first, refused
from minijax.lax.rules import FLOAT, elementwise, linear
from minijax.lowering.module import Value
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent

__all__ = [
    "bitcast_convert_type", "bitcast_convert_type_p", "convert_element_type",
    "convert_element_type_p", "copy_p", "dtype", "reduce_precision", "reduce_precision_p", "stage",
    "stage_p", "stop_gradient", "stop_gradient_p",
]  # fmt: skip

_BOOL = dtypes.bool_


def _same_batch(p: Primitive) -> None:
    """The batching rule of an operation on elements with one operand."""

    @p.batch
    def _(args, dims, **params):
        return p.bind(*args, **params), dims[0]


# -- convert_element_type -------------------------------------------------------------------------

convert_element_type_p = Primitive("convert_element_type")
convert_element_type_p.sums(first)
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
        return out, zero_tangent(get_aval(out))
    return out, _as_typed(t, wanted)


@convert_element_type_p.transpose
def _(ct, x, **params):
    assert is_undefined(x)
    return [_as_typed(ct, x.aval)]


def _as_typed(t, aval):
    """A tangent or cotangent in the dtype, and with the weak type, of what it belongs to."""
    found = get_aval(t)
    if found.dtype == aval.dtype and found.weak_type == aval.weak_type:
        return t
    return convert_element_type_p.bind(
        t, new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=None
    )


_same_batch(convert_element_type_p)


@convert_element_type_p.stage
def _(trace, args, params):
    """A number in a program is converted at once, and stays a number."""
    x = args[0]
    outside = type(x) is StagedTracer and x._trace is not trace  # a value that is closed over
    literal = None if outside else trace.known(x)
    if literal is None or params["weak_type"] or not _both_numeric(literal.aval.dtype, params):
        return trace.record(convert_element_type_p, args, params)
    with np.errstate(all="ignore"):
        return trace.literal(
            np.asarray(literal.val, literal.aval.dtype).astype(params["new_dtype"])[()]
        )


def _both_numeric(old: Any, params: dict) -> bool:
    """Neither keys nor what has no values; nor complex numbers, of which XLA takes the real part."""
    kinds = (old, params["new_dtype"])
    return not any(isinstance(d, dtypes.ExtendedDType) or d == dtypes.float0 for d in kinds) and (
        old.kind != "c" or params["new_dtype"].kind == "c"
    )


@convert_element_type_p.lower
def _(b, x, **params):
    old, out = dtypes.stored_dtype(x.dtype), b.out
    new = dtypes.stored_dtype(out.dtype)
    if old == new or dtypes.float0 in (old, new):
        return x if x.dtype == out.dtype else Value(x.name, out)
    if dtypes.issubdtype(old, np.complexfloating) and not dtypes.issubdtype(
        new, np.complexfloating
    ):
        x = b.op("stablehlo.real", (x,), x.aval.update(dtype=dtypes.to_real_dtype(old)))
        if x.dtype == new:
            return x
    if new == _BOOL:
        return b.compare(x, b.full(0, x.aval), "NE")
    return b.op("stablehlo.convert", (x,), out)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """The array with elements converted to `new_dtype`; strongly typed, of any shape.

    Floats become integers by truncation, complex numbers lose their imaginary part, and then
    anything but zero becomes True. With 64-bit mode off, 64-bit dtypes mean their 32-bit ones.
    ValueError without a dtype, TypeError for what is no array or no dtype. StableHLO `convert`.
    """
    if new_dtype is None:
        raise ValueError(
            "convert_element_type(operand, new_dtype): dtype must be specified; got None."
        )
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
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
            stacklevel=3,
        )


def _as_operand(x: Any, new_dtype: Any) -> Any:
    """A value that is no array of ours; Python numbers are converted at once."""
    if type(x) in dtypes.python_scalar_dtypes and not isinstance(new_dtype, dtypes.ExtendedDType):
        x = _number(x, new_dtype)
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
bitcast_convert_type_p.sums(refused)


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
            f"and destination types match; got operand {x.str_short()} and new_dtype "
            f"{new_dtype.name}: use the array's .view() method."
        )
    return x.update(shape=shape, dtype=new_dtype, weak_type=False)


@bitcast_convert_type_p.jvp
def _(primals, tangents, *, new_dtype):
    out = bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype)
    return out, zero_tangent(get_aval(out))


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


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of an array read as another dtype.

    Where that is narrower, a last dimension is added for the parts; where it is wider, the last
    dimension holds them and goes. ValueError if it has not their number, TypeError for booleans and
    complex numbers. StableHLO `bitcast_convert`.
    """
    new_dtype = dtypes.canonicalize_dtype(new_dtype)
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


# -- reduce_precision -----------------------------------------------------------------------------


def _lower_reduce_precision(b, x, *, exponent_bits, mantissa_bits):
    attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return b.op("stablehlo.reduce_precision", (x,), b.out, attributes)


reduce_precision_p = elementwise("reduce_precision", _lower_reduce_precision, [FLOAT])
linear(reduce_precision_p, lambda ct, aval, **params: reduce_precision_p.bind(ct, **params))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats rounded to what a format of these widths can hold; the dtype stays.

    ValueError for an exponent of less than one bit or a mantissa of less than none. StableHLO
    `reduce_precision`.
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    for name, bits, least in (("exponent", exponent_bits, 1), ("mantissa", mantissa_bits, 0)):
        if bits < least:
            raise ValueError(f"reduce_precision: {name}_bits must be at least {least}; got {bits}.")
    return reduce_precision_p.bind(
        operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )


# -- copies of a value ----------------------------------------------------------------------------


def _identity(name: str) -> Primitive:
    p = Primitive(name)
    p.shape_rule(lambda x: x)
    p.lower(lambda b, x: x)
    _same_batch(p)
    return p


copy_p = _identity("copy")
copy_p.sums(first)
linear(copy_p, lambda ct, aval: copy_p.bind(ct))

stop_gradient_p = _identity("stop_gradient")
stop_gradient_p.sums(first)
stop_gradient_p.rule_transpose = no_rule("its derivative is zero")
stop_gradient_p.impl(as_value)


@stop_gradient_p.jvp
def _(primals, tangents):
    out = stop_gradient_p.bind(*primals)
    return out, zero_tangent(get_aval(out))


def stop_gradient(x: Any) -> Any:
    """The same value, treated as a constant by differentiation. `x` is a pytree of arrays."""
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


def stage(x: Any, /) -> Any:
    """Lift a number or NumPy array into the trace at work; outside of any, an array."""
    return stage_p.bind(x)


def dtype(x: Any) -> Any:
    """The dtype that a value, a dtype or a Python type has in the current mode.

    ValueError for None; TypeError for what has no dtype, or one that no array can have.
    """
    return dtypes.dtype(x, canonicalize=True)
