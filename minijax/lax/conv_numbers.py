"""The arguments of convolutions: dimension numbers, padding, and the shapes that they give.

May import the standard library, NumPy and `core.dims`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from operator import index
from typing import Any, NamedTuple

from minijax.core.dims import is_dim

__all__ = [
    "ConvDimensionNumbers", "conv_dimension_numbers",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose_shape_tuple", "padtype_to_pads",
]  # fmt: skip

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Where the dimensions of a convolution are.

    - `lhs_spec`: of lhs: batch, feature, then the spatial ones
    - `rhs_spec`: of rhs: output feature, input feature, then the spatial ones
    - `out_spec`: of the result: batch, feature, then the spatial ones
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


class PaddingType(Enum):
    """The ways of padding that have a name."""

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


# -- dimension numbers ----------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """The axes that three strings such as ("NHWC", "HWIO", "NHWC") name, as `ConvDimensionNumbers`
    orders them. The spatial letters come in the order that they have in the second string.

    TypeError if a string lacks one of its letters, repeats one, or has other spatial letters.
    """
    lhs, rhs, out = dimension_numbers
    for place, (spec, pair) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if spec.count(pair[0]) != 1 or spec.count(pair[1]) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{place}] must contain the characters "
                f"'{pair[0]}' and '{pair[1]}' exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{place}] cannot have duplicate characters, got "
                f"{spec}."
            )
    if not set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC"):
        raise TypeError(
            "dimension_numbers of a convolution must have the same spatial letters in each of the "
            f"three strings; got {(lhs, rhs, out)}."
        )
    spatial = [letter for letter in rhs if letter not in "OI"]
    return (
        tuple(map(lhs.index, ["N", "C", *spatial])),
        tuple(map(rhs.index, ["O", "I", *spatial])),
        tuple(map(out.index, ["N", "C", *spatial])),
    )


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """`dimension_numbers` of any form as `ConvDimensionNumbers`.

    It may be None (batch or output feature first, then feature, then the spatial dimensions), three
    strings, or already be what is wanted. TypeError if it does not fit operands of these shapes.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}: "
            f"their shapes are {tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        axes = tuple(range(ndim))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(
            f"convolution dimension_numbers must be tuple/list or None, got {type(dimension_numbers)}:"
            f" {dimension_numbers!r}. Give three strings or ConvDimensionNumbers."
        )
    if len(dimension_numbers) != 3 or not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, of strings, got "
            f"{len(dimension_numbers)}: {dimension_numbers!r}."
        )
    for place, spec in enumerate(dimension_numbers):
        if len(spec) != ndim:
            raise TypeError(
                f"convolution dimension_numbers[{place}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}: {spec!r}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


_TRANSPOSE_DEFAULTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def transpose_dimension_numbers(ndim: int) -> tuple[str, str, str]:
    """The default of `conv_transpose`: features last. ValueError above three dimensions."""
    if ndim not in _TRANSPOSE_DEFAULTS:
        raise ValueError(
            f"conv_transpose has default dimension_numbers for at most 3 spatial dimensions; got "
            f"operands of rank {ndim}: give dimension_numbers."
        )
    return _TRANSPOSE_DEFAULTS[ndim]


# -- sizes and padding ----------------------------------------------------------------------------


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with `dilation - 1` holes between its elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_count(size: int, window: int, stride: int) -> int:
    """How many windows fit."""
    return max((size - window) // stride + 1, 0)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """The padding in front and behind of each dimension that a name stands for.

    "VALID" is none; "SAME" gives `ceil(size / stride)` windows, with the larger half of the padding
    behind, "SAME_LOWER" with it in front. RuntimeError for another string, TypeError for what is
    no string.
    """
    if isinstance(padding, PaddingType):
        name = padding.name
    elif isinstance(padding, str):
        name = padding.upper()
    else:
        raise TypeError(f"Unknown padding type: {padding!r}. Give 'VALID', 'SAME' or 'SAME_LOWER'.")
    if name not in PaddingType.__members__:
        raise RuntimeError(
            f"Unrecognized padding type: got {padding!r}; give 'VALID', 'SAME' or 'SAME_LOWER'."
        )
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        count = -(-index(size) // index(stride))
        total = max((count - 1) * index(stride) + index(window) - index(size), 0)
        low = total // 2
        pads.append((low, total - low) if name == "SAME" else (total - low, low))
    return pads


def transpose_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding with which a convolution over dilated input is the transpose of one."""
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID' or 'SAME', got {padding}. conv_transpose "
            "takes one pair of integers for each spatial dimension too."
        )
    return low, total - low


# -- shapes ---------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Ints:
    """The shape of a convolution in the default layout; sizes are those after dilation.

    TypeError if there is not one pair of `pads` for each spatial dimension.
    """
    sizes, windows = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(sizes, windows, strides, pads)
    if len(pads) != len(sizes):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(sizes)}, got {len(pads)}: "
            f"{pads}. Give one pair for each spatial dimension."
        )
    padded = [index(size) + sum(map(index, pad)) for size, pad in zip(sizes, pads, strict=True)]
    if any(size < 0 for size in padded):
        raise ValueError(
            f"padding of a convolution takes away more than there is; got {pads} for spatial "
            f"dimensions of sizes {tuple(sizes)}."
        )
    counts = [
        window_count(size, index(window), index(stride))
        for size, window, stride in zip(padded, windows, strides, strict=True)
    ]
    batch = lhs_shape[0] if is_dim(lhs_shape[0]) else index(lhs_shape[0])
    return (batch // batch_group_count, index(rhs_shape[0]), *counts)


def _laid_out(shape: Sequence[int], permutation: Sequence[int]) -> Ints:
    """A shape in the default layout, put into the layout that a specification tells."""
    out = [0] * len(shape)
    for size, axis in zip(shape, permutation, strict=True):
        out[axis] = size
    return tuple(out)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Ints:
    """The shape of a convolution in the layout that three strings tell."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[d] for d in lhs], [rhs_shape[d] for d in rhs], window_strides, padding
    )
    return _laid_out(shape, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Ints:
    """The shape of `conv_transpose` in the layout that three strings tell."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    left, right = [lhs_shape[d] for d in lhs], [rhs_shape[d] for d in rhs]
    if isinstance(padding, str):
        padding = [
            transpose_padding(index(window), index(stride), padding)
            for window, stride in zip(right[2:], window_strides, strict=True)
        ]
    left[2:] = [
        dilated(index(size), index(stride))
        for size, stride in zip(left[2:], window_strides, strict=True)
    ]
    return _laid_out(conv_shape_tuple(left, right, [1] * len(window_strides), padding), out)
