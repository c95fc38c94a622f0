"""`associative_scan`: all prefixes under an associative operation, in parallel.

It is written with slices, so it needs no primitive of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import as_array, as_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.trace import eval_trace
from minijax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)
from minijax.features.queries import is_dim
from minijax.lax.arithmetic import add
from minijax.lax.compare import bitwise_or
from minijax.lax.control_flow.common import check_callables, program_of, run_inline
from minijax.lax.joining import concatenate
from minijax.lax.shapes import rev
from minijax.lax.slicing import pad, slice_in_dim
from minijax.tracebacks import boundary

__all__ = ["associative_scan"]


@boundary
def associative_scan(
    fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Compute all prefixes of an associative operation, in logarithmically many steps.

    - `fn`: associative function of two pytrees like `elems`; it works on any size along `axis`
    - `elems`: pytree of arrays of one size along `axis`
    - `reverse`: whether to begin at the end

    The result is a pytree of the structure, shapes and dtypes of `elems`. TypeError if `fn` is not
    callable; ValueError where sizes differ, `axis` is out of range, or `fn` changes the structure.
    Source: Blelloch, Prefix Sums and Their Applications (1990).

    >>> lax.associative_scan(lax.add, jnp.array([1, 2, 3, 4]))
    Array([ 1,  3,  6, 10], dtype=int32)
    """
    check_callables("lax.associative_scan: fn argument should be callable.", fn)
    leaves, tree = tree_util.flatten(elems)
    if not leaves:
        raise IndexError("associative_scan: elems holds no array: there is nothing to scan over.")
    for x in leaves:
        if not hasattr(x, "ndim"):
            raise AttributeError(
                f"{type(x).__name__!r} object has no attribute 'ndim': elems of associative_scan are "
                f"arrays; got {x!r}."
            )
    leaves = [x if isinstance(x, Array) else as_value(x) for x in leaves]
    axis = _axis(leaves, axis)
    if local.context.trace is eval_trace and not local.context.settings.disable_jit:
        avals = [get_aval(x) for x in leaves]
        try:
            traced = program_of(
                "associative_scan",
                fn,
                (tree,),
                avals,
                kind=("associative_scan", bool(reverse), axis),
                adapt=lambda f: lambda x: _Scan(f, tree, axis)(reverse, tree_util.flatten(x)[0]),
            )
        except _NEEDS_VALUES:
            pass  # `fn` is called with the values below
        else:
            outs = run_inline(traced.closed, "associative_scan", *traced.consts, *leaves)
            return tree.unflatten(outs)
    return tree.unflatten(_Scan(fn, tree, axis)(reverse, leaves))


_NEEDS_VALUES = (
    ConcretizationTypeError, TracerArrayConversionError, TracerIntegerConversionError,
)  # fmt: skip


def _axis(leaves: Sequence[Any], axis: int) -> int:
    ndim, axis = leaves[0].ndim, operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"axis {axis} is out of bounds for array of dimension {ndim} in associative_scan: the "
            f"first of elems has shape {leaves[0].shape}."
        )
    axis %= ndim
    shapes = [x.shape for x in leaves]
    if any(len(s) <= axis or s[axis] != shapes[0][axis] for s in shapes):
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw: "
            f"{shapes}): the same length along the axis scanned, {axis}."
        )
    if is_dim(shapes[0][axis]):
        raise NotImplementedError(
            f"associative scan over axis of non-constant size: {shapes[0][axis]}. Export with a "
            "constant size there, or use lax.scan."
        )
    return axis


class _Scan:
    """The operation on lists of leaves."""

    __slots__ = ("axis", "fn", "tree")

    def __init__(self, fn: Callable, tree: Any, axis: int):
        self.fn, self.tree, self.axis = fn, tree, axis

    def __call__(self, reverse: bool, leaves: Sequence[Any]) -> list[Any]:
        if not reverse:
            return self.prefixes(leaves)
        turned = [rev(x, (self.axis,)) for x in leaves]
        return [rev(x, (self.axis,)) for x in self.prefixes(turned)]

    def combine(self, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        outs, tree = tree_util.flatten(self.fn(self.tree.unflatten(a), self.tree.unflatten(b)))
        count = self.tree.num_leaves
        if len(outs) != count:  # containers may be others, such as tuples for named tuples
            found = f"few leaves for PyTreeDef; expected {count}, got {len(outs)}"
            if len(outs) > count:
                found = f"many leaves for PyTreeDef; expected {count}. Got {len(outs)}"
            raise ValueError(
                f"Too {found}: fn of associative_scan must return the leaves of elems, {self.tree}; "
                f"got {tree}."
            )
        outs = [x if isinstance(x, Array) else as_value(x) for x in outs]
        return [x if isinstance(x, Array) else as_array(x) for x in outs]  # a struct is refused

    def part(self, leaves: Sequence[Any], start: int, limit: int, stride: int = 1) -> list[Any]:
        return [slice_in_dim(x, start, limit, stride, self.axis) for x in leaves]

    def prefixes(self, leaves: Sequence[Any]) -> list[Any]:
        """Combine neighbours, scan those, and fill in the prefixes between them."""
        length = leaves[0].shape[self.axis]
        if length < 2:
            return list(leaves)
        pairs = self.combine(self.part(leaves, 0, length - 1, 2), self.part(leaves, 1, length, 2))
        odd = self.prefixes(pairs)
        first = self.part(leaves, 0, 1)
        if length == 2:
            even = first
        else:
            before = self.part(odd, 0, odd[0].shape[self.axis] - 1) if length % 2 == 0 else odd
            rest = self.combine(before, self.part(leaves, 2, length, 2))
            even = [concatenate([x, y], self.axis) for x, y in zip(first, rest, strict=True)]
        return [self.interleave(x, y) for x, y in zip(even, odd, strict=True)]

    def interleave(self, even: Any, odd: Any) -> Any:
        """Elements in turn from each: both are spread out with zeros, and added."""
        extra = even.shape[self.axis] == odd.shape[self.axis]
        zero = np.zeros((), even.dtype)[()]
        none = [(0, 0, 0)] * even.ndim
        wide_even, wide_odd = list(none), list(none)
        wide_even[self.axis] = (0, int(extra), 1)
        wide_odd[self.axis] = (1, int(not extra), 1)
        join = bitwise_or if even.dtype == np.bool_ else add
        return join(pad(even, zero, wide_even), pad(odd, zero, wide_odd))
