"""Counterparts of private parts of upstream's `jnp`: what is at `x.at`, and steps of `vectorize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.numpy.indexing import IndexHelper, IndexRef
from minijax.numpy.promotion import broadcast_shapes
from minijax.numpy.vectorizing import (
    _checked,
    _parse,
    apply_excluded,
    check_count,
    leads_and_sizes,
)

__all__: list[str] = []

_IndexUpdateHelper, _IndexUpdateRef = IndexHelper, IndexRef
_apply_excluded, _parse_gufunc_signature = apply_excluded, _parse


def _check_output_dims(
    func: Callable[..., Any],
    dim_sizes: dict[str, int],
    expected_output_core_dims: Sequence[tuple[str, ...]],
    error_context: str = "",
) -> Callable[..., Any]:
    """Return the function with its results compared to the sizes that core dimensions have."""
    return _checked(func, [*expected_output_core_dims], dim_sizes, error_context)


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: Sequence[tuple[str, ...]], error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the shape to which the other dimensions broadcast, and the sizes of core dimensions."""
    check_count(args, input_core_dims, error_context)
    leads, sizes = leads_and_sizes(args, input_core_dims, error_context)
    try:
        return broadcast_shapes(*leads), sizes
    except ValueError as error:
        raise ValueError(f"{error} {error_context}") from None
