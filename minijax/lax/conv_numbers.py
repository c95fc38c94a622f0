"""The arguments of convolutions: dimension numbers, padding, and the shapes that they give."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from operator import index
from typing import Any, NamedTuple, Union

from minijax.features.queries import is_dim, max_dim
from minijax.lax.window_rules import dilated, window_count

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv_dimension_numbers",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose_shape_tuple", "padtype_to_pads",
]  # fmt: skip

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Positions of the batch, feature and spatial dimensions in the shapes of a convolution.

    - `lhs_spec`: positions in lhs of the batch, the feature and the spatial dimensions
    - `rhs_spec`: positions in rhs of the output feature, the input feature and the spatial
      dimensions
    - `out_spec`: positions in the result of the batch, the feature and the spatial dimensions

    Source: the StableHLO attribute `conv`.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = Union[  # noqa: UP007
    None, ConvDimensionNumbers, tuple[str, str, str]
]


class PaddingType(Enum):
    """The ways of padding that have a name."""

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


# -- dimension numbers ----------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Return the axes that three strings such as ("NHWC", "HWIO", "NHWC") name.

    - `dimension_numbers`: layouts of the shapes of lhs, rhs and result; spatial letters are ordered
      as in the second string

    The result is three tuples in the order of `ConvDimensionNumbers`. TypeError if a string lacks
    or repeats one of its letters, or has other spatial letters.
    Source: the StableHLO attribute `conv`.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for place, (spec, pair) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if not isinstance(spec, (str, tuple, list)):
            raise TypeError(
                f"convolution dimension_numbers[{place}] must be a string such as 'NCHW', got "
                f"{spec!r} of type {type(spec).__name__}."
            )
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
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {(lhs, rhs, out)}."
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
    """Convert dimension numbers of any form to `ConvDimensionNumbers`.

    - `lhs_shape`, `rhs_shape`: shapes of the operands
    - `dimension_numbers`: None (batch or output feature first, then feature, then spatial
      dimensions), three strings, or `ConvDimensionNumbers`

    TypeError if they do not fit operands of these shapes.
    Source: the StableHLO attribute `conv`.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}. "
            f"Their shapes are {lhs_shape} and {rhs_shape}."
        )
    if dimension_numbers is None:
        axes = tuple(range(ndim))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(
            f"convolution dimension_numbers must be tuple/list or None, got {type(dimension_numbers)}."
            f" It is {dimension_numbers!r}; give three strings or ConvDimensionNumbers."
        )
    if len(dimension_numbers) != 3 or not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}. They are strings: got {dimension_numbers!r}."
        )
    for place, spec in enumerate(dimension_numbers):
        if len(spec) != ndim:
            raise TypeError(
                f"convolution dimension_numbers[{place}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}. It is {spec!r}."
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


def as_size(size: Any) -> Any:
    """A size as an integer, unless it depends on dimension variables."""
    return size if is_dim(size) else index(size)


def _positive(strides: Sequence[int], ndim: int) -> Ints:
    strides = tuple(map(index, strides))
    if len(strides) != ndim or any(stride < 1 for stride in strides):
        raise ValueError(
            f"window strides must be positive, one for each of {ndim} dimensions; got {strides}."
        )
    return strides


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return the padding that a name stands for.

    - `in_shape`, `window_shape`, `window_strides`: shape of the operand, of the window, and its
      steps
    - `padding`: "VALID" (none), "SAME" (`ceil(size / stride)` windows, the larger half of the
      padding after) or "SAME_LOWER" (the larger half before)

    The result is a list of pairs (before, after). RuntimeError for another string, TypeError for
    another object. Source: the StableHLO operation `stablehlo.reduce_window`.

    >>> lax.padtype_to_pads((5,), (2,), (2,), "SAME")
    [(0, 1)]
    """
    if isinstance(padding, PaddingType):
        name = padding.name
    elif isinstance(padding, str):
        name = padding.upper()
    else:
        raise TypeError(f"Unknown padding type: {padding!r}. Give 'VALID', 'SAME' or 'SAME_LOWER'.")
    if name not in PaddingType.__members__:
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}."
        )
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    strides = _positive(window_strides, len(in_shape))
    for size, window, stride in zip(in_shape, window_shape, strides, strict=True):
        size = as_size(size)
        count = -(-size // stride)
        total = max_dim((count - 1) * stride + index(window) - size, 0)
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
    """Return the shape of a convolution in the default layout.

    - `lhs_shape`, `rhs_shape`: shapes of the operands, after dilation
    - `strides`: step along each spatial dimension; `pads`: name, or pairs of integers
    - `batch_group_count`: number of groups of the batch

    The result is a tuple. TypeError if there is not one pair of `pads` for each spatial dimension.
    Source: the StableHLO operation `stablehlo.convolution`.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), [(0, 0), (1, 1)])
    (1, 4, 6, 8)
    """
    lhs_shape, rhs_shape = tuple(lhs_shape), tuple(rhs_shape)
    sizes, windows = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(sizes, windows, strides, pads)
    if len(pads) != len(sizes):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(sizes)}, got {len(pads)}: "
            f"{pads}. Give one pair for each spatial dimension."
        )
    padded = [sum(map(as_size, pad), as_size(size)) for size, pad in zip(sizes, pads, strict=True)]
    if any(not is_dim(size) and size < 0 for size in padded):
        raise ValueError(
            f"padding of a convolution takes away more than there is; got {pads} for spatial "
            f"dimensions of sizes {tuple(sizes)}."
        )
    strides = _positive(strides, len(sizes))
    counts = [
        window_count(size, as_size(window), stride)
        for size, window, stride in zip(padded, windows, strides, strict=True)
    ]
    return (as_size(lhs_shape[0]) // batch_group_count, as_size(rhs_shape[0]), *counts)


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
    """Return the shape of a convolution in the layout that three strings give.

    - `lhs_shape`, `rhs_shape`: shapes of the operands
    - `window_strides`: step along each spatial dimension; `padding`: name, or pairs of integers
    - `dimension_numbers`: three strings

    The result is a tuple. TypeError or ValueError where arguments do not fit.
    Source: the StableHLO operation `stablehlo.convolution`.

    >>> dims = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (1, 1), "VALID", dims)
    (1, 6, 6, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    if len(lhs_shape) != len(lhs) or len(rhs_shape) != len(rhs):
        raise ValueError(
            f"The shapes must have as many sizes as dimension_numbers have letters, got "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)} for {dimension_numbers}."
        )
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
    """Return the shape of `conv_transpose` in the layout that three strings give.

    - `lhs_shape`, `rhs_shape`: shapes of the operands
    - `window_strides`: strides; `padding`: name, or pairs of integers
    - `dimension_numbers`: three strings

    The result is a tuple. TypeError or ValueError where arguments do not fit.
    Source: the StableHLO operation `stablehlo.convolution`.

    >>> dims = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((1, 4, 4, 3), (2, 2, 3, 5), (2, 2), "SAME", dims)
    (1, 8, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    for name, given in (("lhs_shape", lhs_shape), ("rhs_shape", rhs_shape)):
        if not hasattr(given, "__len__") or len(given) != len(lhs):
            raise TypeError(
                f"{name} must have {len(lhs)} sizes, as dimension_numbers; got {given}."
            )
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
