"""`conv_general_dilated` with all of its rules, and the functions on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive
from minijax.features.checkpoint.decisions import batched_product
from minijax.features.sharding.layouts import layout
from minijax.features.sharding.sharding_rules import ambiguous, cotangent_sharding, parts_of
from minijax.features.sharding.types import explicit_of
from minijax.lax.conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    Ints,
    Pairs,
    as_size,
    conv_dimension_numbers,
    conv_shape_tuple,
    padtype_to_pads,
    transpose_dimension_numbers,
    transpose_padding,
)
from minijax.lax.convert import to_dtype
from minijax.lax.dot import check_preferred, dot_general, preferred_dtype
from minijax.lax.precision import Precision, PrecisionLike, canonical_precision, precision_config
from minijax.lax.rules import linear_in
from minijax.lax.shapes import items_of, reshape_p, reshaped, rev_p
from minijax.lax.window_rules import depends, dilated, lower_padding
from minijax.lowering.module import i64_array
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.primitives import full_like_aval, to_shape, transpose_p
from minijax.transforms.tangents import Zero, is_undefined
from minijax.typing import DTypeLike

__all__ = [
    "conv", "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_p",
    "conv_general_dilated_patches", "conv_transpose", "conv_with_general_padding",
]  # fmt: skip

conv_general_dilated_p = Primitive("conv_general_dilated")
batched_product(conv_general_dilated_p)(lambda params: True)

# -- shapes and dtypes ----------------------------------------------------------------------------

_KINDS = ((np.integer, np.integer), (np.integer, np.floating), (np.floating, np.floating),
          (np.complexfloating, np.complexfloating))  # fmt: skip


def _check_groups(x: Ints, y: Ints, feature_group_count: int, batch_group_count: int) -> None:
    """ValueError unless sizes (in the default layout) and numbers of groups go together."""
    for name, count in (("feature", feature_group_count), ("batch", batch_group_count)):
        if count < 1:
            raise ValueError(
                f"conv_general_dilated {name}_group_count must be a positive integer, got {count}."
            )
    if x[1] % feature_group_count:
        raise ValueError(
            "conv_general_dilated feature_group_count must divide lhs feature dimension size, but "
            f"{feature_group_count} does not divide {x[1]}."
        )
    if x[1] // feature_group_count != y[1]:
        raise ValueError(
            "conv_general_dilated lhs feature dimension size divided by feature_group_count must "
            "equal the rhs input feature dimension size, but "
            f"{x[1]} // {feature_group_count} != {y[1]}."
        )
    if x[0] % batch_group_count:
        raise ValueError(
            "conv_general_dilated batch_group_count must divide lhs batch dimension size, but "
            f"{batch_group_count} does not divide {x[0]}."
        )
    for name, count in (("feature", feature_group_count), ("batch", batch_group_count)):
        if y[0] % count:
            raise ValueError(
                f"conv_general_dilated rhs output feature dimension size must be a multiple of "
                f"{name}_group_count, but {y[0]} is not a multiple of {count}."
            )
    if feature_group_count > 1 and batch_group_count > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_group_count} and feature_group_count={feature_group_count}"
        )


def _check_lengths(ndim: int, **given: Sequence) -> None:
    for name, items in given.items():
        if len(items) != ndim:
            raise ValueError(
                f"conv_general_dilated window and {name} must have the same number of dimensions, "
                f"but got {ndim} and {len(items)}: {items}. Give one for each spatial dimension."
            )
        if any(item < 1 for item in items):
            error, what = (
                (ValueError, "window strides")
                if name == "window_strides"
                else (TypeError, "dilations")
            )
            raise error(
                f"All {what} must be positive, got {items}. They are the {name} of "
                "conv_general_dilated."
            )


def _conv_dtype(x: ShapedArray, y: ShapedArray, preferred: np.dtype | None) -> np.dtype:
    if x.dtype != y.dtype:
        raise TypeError(
            "lax.conv_general_dilated requires arguments to have the same dtypes, got "
            f"{x.dtype.name}, {y.dtype.name}. Convert one with .astype(...)."
        )
    if dtypes.is_extended(x.dtype):
        raise TypeError(f"conv_general_dilated does not accept dtype {x.dtype.name}.")
    if preferred is None or preferred == x.dtype:
        return x.dtype
    if x.dtype != dtypes.bool_:
        if not any(
            dtypes.issubdtype(x.dtype, old) and dtypes.issubdtype(preferred, new)
            for old, new in _KINDS
        ):
            raise TypeError(
                "Input type is incompatible with `preferred_element_type`: conv_general_dilated got "
                f"{x.dtype.name} and {preferred.name}. The compatible combinations of (input_type, "
                "preferred_element_type) are (integral, integral), (integral, floating), "
                "(floating, floating), (complex, complex)."
            )
        check_preferred("conv_general_dilated", x.dtype, preferred, also_floats=True)
    return preferred


@conv_general_dilated_p.shape_rule
def _(
    x,
    y,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
    out_sharding,
):
    dtype = _conv_dtype(x, y, preferred_element_type)
    lhs, rhs, out = dimension_numbers
    left, right = [x.shape[d] for d in lhs], [y.shape[d] for d in rhs]
    _check_groups(left, right, feature_group_count, batch_group_count)
    _check_lengths(
        len(left) - 2,
        window_strides=window_strides,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
    )
    left[2:] = map(dilated, left[2:], lhs_dilation)
    right[2:] = map(dilated, right[2:], rhs_dilation)
    sizes = conv_shape_tuple(left, right, window_strides, padding, batch_group_count)
    shape = [0] * len(sizes)
    for size, axis in zip(sizes, out, strict=True):
        shape[axis] = size
    return ShapedArray(tuple(shape), dtype, x.weak_type and y.weak_type)


@layout(conv_general_dilated_p, "parts")
def _(avals, out, *, dimension_numbers, **params):
    x, y = avals
    lhs, _, places = dimension_numbers
    left = [parts_of(x)[d] for d in lhs]
    kernel = explicit_of(y)
    if left[1] or not (kernel is None or kernel.is_fully_replicated):
        raise ambiguous(
            "conv_general_dilated",
            "Please specify the output sharding via `out_sharding` parameter of "
            "`conv_general_dilated`: otherwise only batch and space of lhs may be split",
            avals,
        )
    parts: list[Any] = [None] * out.ndim
    for place, part in zip(places, left, strict=True):
        parts[place] = part
    return parts


# -- derivatives ----------------------------------------------------------------------------------


linear_in(conv_general_dilated_p, 0, 1)


@conv_general_dilated_p.transpose
def _(ct, x, y, **params):
    if is_undefined(x):
        params["out_sharding"] = cotangent_sharding(x.aval, range(x.aval.ndim), ct, y)
        return [_cotangent_of_lhs(ct, x.aval, y, **params), None]
    params["out_sharding"] = cotangent_sharding(y.aval, range(y.aval.ndim), ct, x)
    return [None, _cotangent_of_rhs(ct, x, y.aval, **params)]


def _sizes(shape: Ints, spec: Ints, dilation: Ints) -> list[int]:
    """The spatial sizes of an operand, dilated."""
    return [dilated(shape[axis], by) for axis, by in zip(spec[2:], dilation, strict=True)]


def _swapped(spec: Ints) -> Ints:
    return (spec[1], spec[0], *spec[2:])


def _cotangent_of_lhs(
    ct,
    aval,
    y,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    **params,
):
    """The cotangent, dilated as the windows were strided, convolved with the reversed filter."""
    lhs, rhs, out = dimension_numbers
    groups = max(feature_group_count, batch_group_count)
    sizes = _sizes(aval.shape, lhs, lhs_dilation)
    windows = _sizes(y.shape, rhs, rhs_dilation)
    counts = _sizes(ct.shape, out, window_strides)
    pads = []
    for size, window, count, (low, _) in zip(sizes, windows, counts, padding, strict=True):
        before = window - low - 1
        pads.append((before, size + window - 1 - count - before))
    if groups > 1:
        y = _merge(_split(y, rhs[0], groups), rhs[0], rhs[1])
    y = rev_p.bind(y, dimensions=tuple(rhs[2:]))
    result = conv_general_dilated_p.bind(
        ct,
        to_dtype(y, ct.dtype),
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out, _swapped(rhs), lhs),
        feature_group_count=groups,
        batch_group_count=1,
        **params,
    )
    result = to_dtype(result, aval.dtype)
    if batch_group_count > 1:
        result = _merge(_split(result, lhs[1], groups), lhs[1], lhs[0])
    return result


def _cotangent_of_rhs(
    ct,
    x,
    aval,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    **params,
):
    """The input convolved with the cotangent: features are the batch, strides are dilations."""
    if prod(x.shape) == 0 or prod(ct.shape) == 0:
        return Zero(aval)
    lhs, rhs, out = dimension_numbers
    sizes = _sizes(x.shape, lhs, lhs_dilation)
    windows = _sizes(aval.shape, rhs, rhs_dilation)
    counts = _sizes(ct.shape, out, window_strides)
    pads = [
        (low, count + window - 1 - size - low)
        for size, window, count, (low, _) in zip(sizes, windows, counts, padding, strict=True)
    ]
    result = conv_general_dilated_p.bind(
        to_dtype(x, ct.dtype),
        ct,
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(_swapped(lhs), _swapped(out), _swapped(rhs)),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        **params,
    )
    return to_dtype(result, aval.dtype)


# -- batching -------------------------------------------------------------------------------------


def _merge(x: Any, source: int, into: int) -> Any:
    """Make one axis of two: `source` is the slower. `into` counts without `source`."""
    order = [axis for axis in range(x.ndim) if axis != source]
    shape = [x.shape[axis] for axis in order]
    shape[into] *= x.shape[source]
    order.insert(into, source)
    dimensions = None if order == list(range(x.ndim)) else tuple(order)
    return reshape_p.bind(x, new_sizes=tuple(shape), dimensions=dimensions, sharding=None)


def _split(x: Any, axis: int, count: int) -> Any:
    """Make two axes of one, the first of size `count`."""
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    return reshaped(x, shape)


@conv_general_dilated_p.batch
def _(args, dims, **params):
    (x, y), (x_dim, y_dim) = args, dims
    size = x.shape[x_dim] if x_dim is not None else y.shape[y_dim]
    if size == 0:
        return _batched_by_nothing(args, dims, params)
    numbers = params["dimension_numbers"]
    if y_dim is None:
        x = _into_batch(x, x_dim, numbers.lhs_spec[0], params["batch_group_count"])
        out = conv_general_dilated_p.bind(x, y, **params)
        return _split(out, numbers.out_spec[0], size), numbers.out_spec[0]
    place = numbers.out_spec[1]
    if x_dim is None:
        groups = max(params["feature_group_count"], params["batch_group_count"])
        y = _into_batch(y, y_dim, numbers.rhs_spec[0], groups)
        out = conv_general_dilated_p.bind(x, y, **params)
        if groups == 1:
            return _split(out, place, size), place
        out = _split(_split(out, place, groups), place + 1, size)
        return _merge(out, place, place + 1), place
    # Both: each element of the batch is one more group.
    kind = "batch_group_count" if params["batch_group_count"] > 1 else "feature_group_count"
    x = _merge(x, x_dim, numbers.lhs_spec[0 if kind == "batch_group_count" else 1])
    y = _merge(y, y_dim, numbers.rhs_spec[0])
    params[kind] *= size
    out = conv_general_dilated_p.bind(x, y, **params)
    return _split(out, place, size), place


def _into_batch(x: Any, dim: int, axis: int, groups: int) -> Any:
    """Merge the batch axis into an axis of the operand, within each of its groups."""
    if groups == 1:
        return _merge(x, dim, axis)
    place = axis + (axis >= dim)
    x = _split(x, place, groups)
    x = _merge(x, dim + (dim > place), axis + 1)
    return _merge(x, axis, axis)


def _batched_by_nothing(args, dims, params):
    avals = []
    for x, dim in zip(args, dims, strict=True):
        aval = get_aval(x)
        if dim is not None:
            aval = aval.update(shape=(*aval.shape[:dim], *aval.shape[dim + 1 :]))
        avals.append(aval)
    out = conv_general_dilated_p.out_avals(tuple(avals), params)
    return full_like_aval(0, out.update(shape=(0, *out.shape))), 0


# -- lowering -------------------------------------------------------------------------------------


def _layout(spec: Ints, first: str, second: str) -> str:
    names: list[Any] = [first] * len(spec)
    names[spec[1]] = second
    for number, axis in enumerate(spec[2:]):
        names[axis] = number
    return f"[{', '.join(map(str, names))}]"


def _pairs_text(pairs: Pairs) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in pairs])
    return f"dense<[{rows}]> : tensor<{len(pairs)}x2xi64>" if pairs else "dense<> : tensor<0x2xi64>"


@conv_general_dilated_p.lower
def _(
    b,
    x,
    y,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
    out_sharding,
):
    lhs, rhs, out = dimension_numbers
    if depends(padding):
        pads, holes = [(0, 0)] * x.aval.ndim, [1] * x.aval.ndim
        for axis, pair, by in zip(lhs[2:], padding, lhs_dilation, strict=True):
            pads[axis], holes[axis] = pair, by
        zero = b.constant(np.zeros((), x.dtype), x.aval.update(shape=()))
        x = lower_padding(b, x, zero, pads, holes)
        padding, lhs_dilation = ((0, 0),) * len(padding), (1,) * len(padding)
    layouts = f"{_layout(lhs, 'b', 'f')}x{_layout(rhs, 'o', 'i')}->{_layout(out, 'b', 'f')}"
    attributes = (
        f"window_strides = {i64_array(window_strides)}, padding = {_pairs_text(padding)}, "
        f"lhs_dilation = {i64_array(lhs_dilation)}, rhs_dilation = {i64_array(rhs_dilation)}, "
        f"dimension_numbers = #stablehlo.conv<{layouts}>, "
        f"feature_group_count = {int(feature_group_count)} : i64, "
        f"batch_group_count = {int(batch_group_count)} : i64, {precision_config(precision)}"
    )
    if b.platform != "tpu" and dtypes.issubdtype(x.dtype, np.complexfloating):
        return _lower_complex(b, x, y, b.out, attributes)
    return b.op("stablehlo.convolution", (x, y), b.out, attributes)


def _lower_complex(b, x, y, out, attributes):
    """A product of complex numbers by three real ones (Gauss)."""
    part, total = dtypes.to_real_dtype(x.dtype), out.update(dtype=dtypes.to_real_dtype(out.dtype))
    (xr, xi), (yr, yi) = (
        [b.op(f"stablehlo.{name}", (v,), v.aval.update(dtype=part)) for name in ("real", "imag")]
        for v in (x, y)
    )

    def add(u, v, op="add"):
        return b.op(f"stablehlo.{op}", (u, v), u.aval)

    def convolve(u, v):
        return b.op("stablehlo.convolution", (u, v), total, attributes)

    first = convolve(add(xr, xi), yr)
    second = convolve(xr, add(yi, yr, "subtract"))
    third = convolve(xi, add(yr, yi))
    real, imag = add(first, third, "subtract"), add(first, second)
    return b.op("stablehlo.complex", (real, imag), out)


# -- the functions --------------------------------------------------------------------------------


def _frozen(x: Any) -> Any:
    """An argument of nested sequences of integers as nested tuples."""
    if x is None or isinstance(x, str):
        return x
    if isinstance(x, ConvDimensionNumbers):
        return ConvDimensionNumbers(*map(_frozen, x))
    if isinstance(x, np.matrix):  # whose items are matrices
        x = np.asarray(x)
    try:
        return tuple([_frozen(item) for item in items_of(x)])
    except TypeError:
        return as_size(x)


@lru_cache(maxsize=1024)
def _canonical(x_shape, y_shape, strides, padding, lhs_dilation, rhs_dilation, numbers) -> tuple:
    """The arguments of a convolution in the form that the primitive has them."""
    numbers = conv_dimension_numbers(x_shape, y_shape, numbers)
    lhs, rhs, _ = numbers = ConvDimensionNumbers(*map(tuple, numbers))
    if not len(lhs) == len(rhs) == len(x_shape) == len(y_shape):
        raise TypeError(
            f"conv_general_dilated: lhs of shape {x_shape}, rhs of shape {y_shape} and "
            f"dimension_numbers {numbers} must be of one rank."
        )
    count = len(x_shape) - 2
    strides = _frozen(strides)
    try:
        padding = _frozen(padding)
    except TypeError:
        pass  # refused below
    lhs_dilation = (1,) * count if lhs_dilation is None else _frozen(lhs_dilation)
    rhs_dilation = (1,) * count if rhs_dilation is None else _frozen(rhs_dilation)
    _check_lengths(
        count, window_strides=strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation
    )
    if isinstance(padding, str):
        if any(by != 1 for by in lhs_dilation):
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op. Please "
                "either exactly specify the required padding or use conv_transpose. Got "
                f"{padding=} and {lhs_dilation=}."
            )
        sizes = [x_shape[d] for d in lhs[2:]]
        padding = tuple(
            padtype_to_pads(sizes, _sizes(y_shape, rhs, rhs_dilation), strides, padding)
        )
    elif not isinstance(padding, tuple) or not all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in padding
    ):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, "
            f"high) pairs, got {list(padding) if isinstance(padding, tuple) else padding}: one for each "
            "spatial dimension."
        )
    return strides, padding, lhs_dilation, rhs_dilation, numbers


def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Convolve an array with filters, not reversed, in any number of spatial dimensions.

    - `lhs`, `rhs`: arrays of one dtype, by default of shapes (batch, features, *spatial) and
      (output features, features, *window); `dimension_numbers` gives other layouts: ("NHWC",
      "HWIO", "NHWC")
    - `padding`: "SAME", "VALID", "SAME_LOWER" or a pair of integers for each spatial dimension
    - `lhs_dilation`, `rhs_dilation`: distances between elements; `feature_group_count`,
      `batch_group_count`: numbers of groups convolved separately

    The result's dtype is `preferred_element_type` or the operands'. TypeError or ValueError for
    misfits. Source: the StableHLO operation `stablehlo.convolution`.

    >>> lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (2,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
    """
    shapes = np.shape(lhs), np.shape(rhs)
    given = window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    try:
        chosen = _canonical(*shapes, *given)
    except TypeError:  # lists and arrays are not hashable
        chosen = _canonical(*shapes, *map(_frozen, given))
    strides, padding, lhs_dilation, rhs_dilation, numbers = chosen
    if preferred_element_type is not None:
        preferred_element_type = preferred_dtype("conv_general_dilated", preferred_element_type)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding_of(out_sharding, "conv_general_dilated"),
    )


def conv(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve in the default layout, with named padding.

    - `lhs`: array of shape (batch, features, *spatial)
    - `rhs`: array of shape (output features, features, *window), of the dtype of `lhs`
    - `window_strides`: step of the window along each spatial dimension
    - `padding`: "SAME", "VALID" or "SAME_LOWER"
    - `precision`, `preferred_element_type`: as in `conv_general_dilated`

    The result has shape (batch, output features, *spatial). TypeError for dtypes that differ,
    ValueError or TypeError for shapes that do not fit.
    Source: the StableHLO operation `stablehlo.convolution`.

    >>> lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve in the default layout, with padding and dilations.

    - `lhs`: array of shape (batch, features, *spatial)
    - `rhs`: array of shape (output features, features, *window), of the dtype of `lhs`
    - other arguments: as in `conv_general_dilated`

    The result has shape (batch, output features, *spatial). TypeError for dtypes that differ,
    ValueError or TypeError for shapes that do not fit.
    Source: the StableHLO operation `stablehlo.convolution`.

    >>> x, w = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2))
    >>> lax.conv_with_general_padding(x, w, (1,), [(1, 0)], None, None)
    Array([[[1., 2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: Array,
    rhs: Array,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolve with fractional strides: lhs is dilated by `strides`.

    - `lhs`, `rhs`: arrays of one dtype; layouts default to features last ("NHWC", "HWIO", "NHWC")
    - `padding`: the name of the padding of the convolution of which this is the transpose, or
      pairs, which are applied as given, or with `use_consistent_padding` are also those of the
      convolution
    - `transpose_kernel`: whether to reverse the filter and swap its features, as in the derivative

    The result has the layout's shape and the operands' dtype. RuntimeError for another name;
    ValueError for more than three spatial dimensions without `dimension_numbers`.
    Source: Dumoulin and Visin, A Guide to Convolution Arithmetic (2016).

    >>> lax.conv_transpose(jnp.ones((1, 4, 1)), jnp.ones((2, 1, 1)), (2,), "SAME").shape
    (1, 8, 1)
    """
    x_shape, y_shape = np.shape(lhs), np.shape(rhs)
    if len(x_shape) <= 2 and dimension_numbers is None and len(x_shape) != 2:
        raise ValueError(
            f"conv_transpose takes operands of at least two dimensions; got lhs of shape {x_shape}."
        )
    if dimension_numbers is None:
        dimension_numbers = transpose_dimension_numbers(len(x_shape))
    numbers = conv_dimension_numbers(x_shape, y_shape, dimension_numbers)
    strides = _frozen(strides)
    spec = numbers.rhs_spec
    rhs_dilation = (1,) * (len(y_shape) - 2) if rhs_dilation is None else _frozen(rhs_dilation)
    windows = _sizes(y_shape, spec, rhs_dilation)
    if isinstance(padding, str):
        pads = [transpose_padding(k, s, padding) for k, s in zip(windows, strides, strict=True)]
    elif use_consistent_padding:
        pads = [
            (k - 1 - low, k - 1 - high)
            for k, (low, high) in zip(windows, _frozen(padding), strict=True)
        ]
    else:
        pads = padding
    if transpose_kernel:
        if len(spec) > 2:
            rhs = rev_p.bind(rhs, dimensions=tuple(sorted(spec[2:])))
        order = list(range(len(spec)))
        order[spec[0]], order[spec[1]] = order[spec[1]], order[spec[0]]
        rhs = transpose_p.bind(rhs, permutation=tuple(order))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(strides),
        _frozen(pads),
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Array,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Extract the windows that a convolution reads, flattened along the feature dimension.

    - `lhs`: array of shape (batch, features, *spatial)
    - `filter_shape`: shape of the window; other arguments as in `conv_general_dilated`

    The result has shape (batch, features * window size, *spatial) and the dtype of `lhs`. TypeError
    or ValueError where arguments do not fit. Source: the StableHLO operation
    `stablehlo.convolution`.

    >>> lax.conv_general_dilated_patches(jnp.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID")
    Array([[[1., 2.],
            [2., 3.]]], dtype=float32)
    """
    window = _frozen(filter_shape)
    shape = np.shape(lhs)
    numbers = conv_dimension_numbers(shape, (1, 1, *window), dimension_numbers)
    features, size = shape[numbers.lhs_spec[1]], prod(window)
    one_hot = to_shape(np.eye(size, dtype=get_aval(lhs).dtype), (features, size, size), (1, 2))
    filters = reshape_p.bind(
        one_hot, new_sizes=(features * size, 1, *window), dimensions=None, sharding=None
    )
    order = tuple([int(axis) for axis in np.argsort(numbers.rhs_spec)])
    if order != tuple(range(len(order))):
        filters = transpose_p.bind(filters, permutation=order)
    if precision is not None:
        chosen = canonical_precision(precision)
        precision = (chosen[0], Precision.DEFAULT) if isinstance(chosen, tuple) else chosen
    return conv_general_dilated(
        lhs,
        filters,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike | None = None,
) -> Array:
    """Convolve with a separate filter at each position of the result ("locally connected").

    - `lhs`: array of shape (batch, features, *spatial)
    - `rhs`: array of shape (output features, features * window size, *spatial shape of the result)
    - `filter_shape`: shape of the window; other arguments as in `conv_general_dilated`

    The result has shape (batch, output features, *spatial) and the operands' dtype. TypeError where
    shapes do not fit. Source: the StableHLO operation `stablehlo.dot_general`.

    >>> x, w = jnp.ones((1, 1, 3)), jnp.ones((1, 2, 2))
    >>> lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,))
    Array([[[2., 2.]]], dtype=float32)
    """
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        precision,
    )
    _, rhs_spec, out = numbers
    out_dims = ((out[1],), (rhs_spec[1],)), (tuple(out[2:]), tuple(rhs_spec[2:]))
    product = dot_general(patches, rhs, out_dims, precision)
    spatial = len(out) - 2
    order = [0] * len(out)
    order[out[0]], order[out[1]] = spatial, spatial + 1
    for place, axis in enumerate(out[2:]):
        order[axis] = place
    return transpose_p.bind(product, permutation=tuple(order))
