"""Counterparts of private parts of upstream's `jnp`: what is at `x.at`, and steps of `vectorize`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from minijax.numpy.indexing import IndexHelper, IndexRef
from minijax.numpy.promotion import broadcast_shapes
from minijax.numpy.vectorizing import _checked, _note_sizes, _parse

__all__: list[str] = []

_IndexUpdateHelper, _IndexUpdateRef = IndexHelper, IndexRef
_parse_gufunc_signature = _parse


def _check_output_dims(
    func: Callable[..., Any],
    dim_sizes: dict[str, int],
    expected_output_core_dims: Sequence[tuple[str, ...]],
    error_context: str = "",
) -> Callable[..., Any]:
    """Return the function with its results compared to the sizes that core dimensions have."""
    return _checked(func, [*expected_output_core_dims], dim_sizes, error_context)


def _apply_excluded(
    func: Callable[..., Any], excluded: Collection[int | str], args: Sequence[Any], kwargs: dict
) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """Return the function with excluded arguments filled in, and the arguments that are left."""
    if not excluded:
        return func, args, kwargs
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}

    def filled(*values: Any, **options: Any) -> Any:
        rest = iter(values)
        positional = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        return func(*positional, **options, **named)

    left = [x for i, x in enumerate(args) if i not in fixed]
    return filled, left, {name: x for name, x in kwargs.items() if name not in named}


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: Sequence[tuple[str, ...]], error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the shape to which the other dimensions broadcast, and the sizes of core dimensions."""
    if len(args) != len(input_core_dims):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(input_core_dims)}, got {len(args)} "
            f"{error_context}"
        )
    sizes: dict[str, int] = {}
    leads = []
    for x, core in zip(args, input_core_dims, strict=True):
        cut = x.ndim - len(core)
        if cut < 0:
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core "
                f"dimensions {core} {error_context}"
            )
        leads.append(x.shape[:cut])
        _note_sizes(sizes, core, x.shape[cut:], error_context)
    try:
        return broadcast_shapes(*leads), sizes
    except ValueError as error:
        raise ValueError(f"{error} {error_context}") from None
