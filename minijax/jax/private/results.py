"""Counterparts of upstream's private functions that make arrays of what a program gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.array import Array
from minijax.core.avals import AbstractToken, AbstractValue, ShapedArray
from minijax.features.sharding.assembling import make_array_from_single_device_arrays
from minijax.jax.private.placing import physical_sharding
from minijax.lax.ordering import Token
from minijax.lowering.types import physical


def _array_handler(aval: ShapedArray, sharding: Any, committed: bool) -> Callable[[Any], ArrayImpl]:
    """Return a function from the parts of an array, one a device, or one array of all, to the array."""
    stored, where = physical(aval), physical_sharding(aval, sharding)
    signature = Signature(aval, sharding, committed)

    def handle(parts: Any) -> ArrayImpl:
        if not isinstance(parts, Array):
            (*_, last) = parts = list(parts)
            one = len(parts) == len(where.device_set) == 1
            parts = (
                last if one else make_array_from_single_device_arrays(stored.shape, where, parts)
            )
        return ArrayImpl(parts._buffer, signature)

    return handle


# By the class of a type: `make(aval, sharding, committed)`, which gives a function of the parts.
global_result_handlers: dict[type, Callable] = {
    ShapedArray: _array_handler,
    AbstractToken: lambda aval, sharding, committed: lambda parts: Token(),
}


def global_aval_to_result_handler(
    aval: AbstractValue, out_sharding: Any, committed: bool
) -> Callable[[Any], Any]:
    """Return a function that makes a result of this type of its parts."""
    if type(aval) not in global_result_handlers:
        raise TypeError(f"No result handler for type {type(aval)}: add one.")
    return global_result_handlers[type(aval)](aval, out_sharding, committed)


class ResultsHandler:
    """Makes the results of a program of their parts."""

    def __init__(self, handlers: Sequence, out_shardings: Sequence, out_avals: Sequence):
        self.handlers, self.out_shardings, self.out_avals = handlers, out_shardings, out_avals

    def __call__(self, out_bufs: Sequence[Any]) -> list[Any]:
        return [make(parts) for make, parts in zip(self.handlers, out_bufs, strict=True)]


def global_avals_to_results_handler(
    global_out_avals: Sequence[AbstractValue], shardings: Sequence[Any], committed: bool
) -> ResultsHandler:
    """Return a function that makes the results of a program, of these types and shardings."""
    handlers = [
        global_aval_to_result_handler(aval, sharding, committed)
        for aval, sharding in zip(global_out_avals, shardings, strict=True)
    ]
    return ResultsHandler(handlers, shardings, global_out_avals)
