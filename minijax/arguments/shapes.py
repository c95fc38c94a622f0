"""Operands and axes of the primitives of `transforms.primitives`: checks, and their errors."""

from __future__ import annotations

from collections.abc import Sequence

from minijax.core.avals import ShapedArray

__all__ = ["check_broadcast", "check_permutation", "check_reduced"]


def check_broadcast(
    x: ShapedArray, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> None:
    """TypeError unless an operand can be laid along these dimensions of a shape."""
    dims = broadcast_dimensions
    if len(dims) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {tuple(dims)} for operand ndim {x.ndim}. Its shape is {x.shape}."
        )
    if any(not 0 <= d < len(shape) for d in dims) or len(set(dims)) != len(dims):
        raise TypeError(_wrong_dims(x, tuple(shape), tuple(dims)))
    if any(size < 0 for size in shape if isinstance(size, int)):
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got {tuple(shape)}."
        )
    for axis, d in enumerate(dims):
        if x.shape[axis] not in (1, shape[d]):
            raise TypeError(
                "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
                "corresponding dimensions in the target broadcast shape; got operand of shape "
                f"{x.shape}, target broadcast shape {tuple(shape)}, broadcast_dimensions "
                f"{tuple(dims)}: dimension {axis} of the operand must be 1 or {shape[d]}."
            )


def _wrong_dims(x: ShapedArray, shape: tuple, dims: tuple) -> str:
    """Return what is wrong with the dimensions of a result that an operand is to be laid along."""
    if x.ndim > len(shape):
        return (
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand "
            f"shape; got operand ndim {x.ndim} and target broadcast ndim {len(shape)}. The "
            f"operand has shape {x.shape}."
        )
    if min(dims) < 0:
        return (
            "broadcast_in_dim broadcast_dimensions must have every element be nonnegative, got "
            f"{dims}. Dimensions of the result, of shape {shape}, count from 0."
        )
    if max(dims) >= len(shape):
        return (
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{dims} for operand ndim {x.ndim} and shape {shape}."
        )
    return (
        f"broadcast_in_dim broadcast_dimensions must be unique, got {dims} for operand ndim "
        f"{x.ndim}. The shape asked for is {shape}."
    )


def check_reduced(name: str, x: ShapedArray, axes: Sequence[int]) -> None:
    """ValueError unless the axes of a reduction are different and exist."""
    if any(not 0 <= axis < x.ndim for axis in axes):
        raise ValueError(
            f"reduction axes {tuple(axes)} contains out-of-bounds indices for {x.str_short()}. The axes "
            f"of {name} count from 0."
        )
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {tuple(axes)}, by {name}.")


def check_permutation(x: ShapedArray, permutation: Sequence[int]) -> None:
    """TypeError unless it names each axis once."""
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{tuple(permutation)} for operand shape {x.shape}. Name each of its axes once."
        )
