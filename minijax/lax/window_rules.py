"""The parts that operations on sliding windows share: shapes, batching, `stablehlo.reduce_window`.

A window is described by five parameters with one entry for each axis, as in StableHLO:
`window_dimensions`, `window_strides`, `padding` (pairs), `base_dilation` and `window_dilation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.arguments.functions import check_at_most
from minijax.core.avals import ShapedArray
from minijax.features.queries import is_dim, max_dim
from minijax.lax.slicing import lower_pad
from minijax.lowering.module import i64_array
from minijax.transforms.batching import all_to_front

__all__ = ["reduce_window_shape_tuple"]


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with `dilation - 1` holes between its elements."""
    out = 0 if size == 0 else (size - 1) * dilation + 1
    if not is_dim(out):
        check_at_most("the size of a dilated axis", out, 2**63 - 1)
    return out


def window_count(size: int, window: int, stride: int) -> int:
    """Return how many windows fit."""
    return max_dim((size - window) // stride + 1, 0)


def reduce_window_shape_tuple(
    operand_shape: Any,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> tuple[int, ...]:
    """Return the number of windows along each axis: the shape of `reduce_window`.

    - `operand_shape`, `window_dimensions`: shapes of the operand and of a window
    - `window_strides`, `base_dilation`, `window_dilation`: integers, one for each axis
    - `padding`: pairs (before, after), one for each axis

    The result is a tuple. ValueError if the lengths differ.
    Source: the StableHLO operation `stablehlo.reduce_window`.

    >>> lax.reduce_window_shape_tuple((4,), (2,), (1,), [(0, 0)])
    (3,)
    """
    ones = (1,) * len(operand_shape)
    shape = []
    for size, width, stride, (low, high), base, step in zip(
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation or ones,
        window_dilation or ones,
        strict=True,
    ):
        shape.append(window_count(low + dilated(size, base) + high, dilated(width, step), stride))
    return tuple(shape)


def window_shape(name: str, x: ShapedArray, window: dict) -> tuple[int, ...]:
    """The shape of the result of a windowed reduction. TypeError if the window does not fit."""
    width = window["window_dimensions"]
    if len(width) != x.ndim:
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape "
            f"{x.shape} with window_dimensions {width}: give one for each axis."
        )
    for key in ("window_strides", "base_dilation", "window_dilation", "padding"):
        if len(window.get(key, width)) != len(width):
            raise (ValueError if key == "padding" else TypeError)(
                f"{name} got inconsistent {key} and window_dimensions: got {key} {window[key]} and "
                f"window_dimensions {width}: give one entry for each axis."
            )
    for key in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
        if any(size <= 0 for size in window.get(key, width)):
            raise TypeError(
                f"{name} {key} must have every element be strictly positive, got {window[key]}."
            )
    return reduce_window_shape_tuple(x.shape, **window)


_NEUTRAL = {
    "window_dimensions": 1, "window_strides": 1, "padding": (0, 0), "base_dilation": 1,
    "window_dilation": 1,
}  # fmt: skip


def with_axis(params: dict, axis: int) -> dict:
    """The params for operands that have one axis more, each element of which stands alone."""
    return {
        key: (*value[:axis], _NEUTRAL[key], *value[axis:]) if key in _NEUTRAL else value
        for key, value in params.items()
    }


def batch_windows(bind: Callable) -> Callable:
    """The batching rule of an operation whose operands all have the axes that windows run over."""

    def batch(args, dims, **params):
        place = next(d for d in dims if d is not None)
        if any(d != place for d in dims):
            args = all_to_front(args, dims)
            place = 0
        return bind(*args, **with_axis(params, place)), place

    return batch


def lower_window(b, operands, inits, body: Callable, outs: Sequence[ShapedArray], window: dict):
    """`stablehlo.reduce_window`; `body(builder, *accumulated, *values)` gives what it returns."""
    padding = window["padding"]
    if depends(padding):
        base = window.get("base_dilation", (1,) * len(padding))
        operands = [
            lower_padding(b, x, init, padding, base)
            for x, init in zip(operands, inits, strict=True)
        ]
        window = {**window, "base_dilation": (1,) * len(base), "padding": ((0, 0),) * len(base)}
    scalars = [x.aval.update(shape=()) for x in operands]
    region = b.region(scalars * 2, body)
    ones = (1,) * len(window["window_dimensions"])
    lists = {
        "window_dimensions": window["window_dimensions"],
        "window_strides": window["window_strides"],
        "base_dilations": window.get("base_dilation", ones),
        "window_dilations": window.get("window_dilation", ones),
    }
    attributes = ", ".join([f"{key} = {i64_array(value)}" for key, value in lists.items()])
    attributes += f", padding = {pairs(window['padding'])}"
    return b.op_n("stablehlo.reduce_window", (*operands, *inits), outs, attributes, [region])


def depends(padding: Sequence[tuple[Any, Any]]) -> bool:
    """Whether some padding depends on dimension variables."""
    return any(is_dim(end) for pair in padding for end in pair)


def lower_padding(b, x, value, padding: Sequence[tuple[Any, Any]], dilation: Sequence[int]):
    """`stablehlo.pad`, with holes: the attributes of windows take numbers only."""
    shape = [
        low + dilated(size, by) + high
        for size, (low, high), by in zip(x.aval.shape, padding, dilation, strict=True)
    ]
    config = [(low, high, by - 1) for (low, high), by in zip(padding, dilation, strict=True)]
    return lower_pad(b, x, value, config, x.aval.update(shape=tuple(shape)))


def pairs(padding: Sequence[tuple[int, int]]) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
    return f"dense<{f'[{rows}]' if padding else ''}> : tensor<{len(padding)}x2xi64>"
