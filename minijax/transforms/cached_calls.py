"""Cached calls: keys, operands and results of calls whose program is known.

`jit`, compiled functions and library functions keep entries, tuples of what executes the operands,
the handlers of the results, the signature of the only result, and what makes several; their fast
paths write the run out, since a call of a function counts there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, as_array, scalar_array, small_array
from minijax.arrays.dispatch import Program
from minijax.transforms.codegen_calls import builder

__all__ = ["LEAF", "NUMBERS", "CACHE_MISS_ERRORS", "entry_of", "gather", "new_array", "operand_of"]

NUMBERS = dtypes.python_scalar_dtypes
# Raised by the lookup of a cached call where the general path is to be taken.
CACHE_MISS_ERRORS = (LookupError, AttributeError, TypeError, ValueError, OverflowError)

_CONTAINERS = frozenset((dict, list, tuple))
LEAF = tree_util.tree_structure(0)
_FEW = 16  # results, for which lines are made in 0.3 ms
new_array = object.__new__  # with its two attributes set, `ArrayImpl(...)` in fewer steps


def entry_of(
    program: Program, out_tree: Any, execute: Callable | None = None, often: bool = False
) -> tuple:
    """The entry for a simple program, or for what executes the operands of another.

    An `out_tree` of None is that of one array. What is called `often` may take long to make.
    """
    signatures = tuple(program.out_signatures)
    many = None if out_tree is None or out_tree == LEAF else _made(out_tree, signatures, often)
    return execute or program.execute, program.handlers, signatures[0] if signatures else None, many


def _made(tree: Any, signatures: tuple, often: bool) -> Callable:
    """What makes the results of a call, a pytree, of the buffers of its program."""
    written = builder(tree, signatures) if often or len(signatures) <= _FEW else None
    return written or (lambda results: tree.unflatten(map(ArrayImpl, results, signatures)))


def gather(x: Any, key: list, operands: list, context: Any) -> None:
    """An argument that is not static, into the key of its call and the operands of its program.

    Raises one of `CACHE_MISS_ERRORS` for what is to take the general way.
    """
    kind = type(x)
    if kind is not ArrayImpl:
        if x is None:
            key.append(None)
            return
        if kind in _CONTAINERS or not (
            kind in NUMBERS or kind is np.ndarray or isinstance(x, np.generic)
        ):
            leaves, tree = tree_util.flatten(x)
            try:
                key += (tree, *[x.signature for x in leaves])
                operands += [x._buffer for x in leaves]
            except AttributeError:
                key.append(tree)
                for x in leaves:
                    if type(x) is not ArrayImpl:
                        x = operand_of(x, context)
                    key.append(x.signature)
                    operands.append(x._buffer)
            return
        x = operand_of(x, context)
    key.append(x.signature)
    operands.append(x._buffer)


def operand_of(x: Any, context: Any) -> ArrayImpl:
    """A number, or an array of the host, on the device. TypeError for anything else."""
    kind = type(x)
    if kind in NUMBERS:
        return scalar_array(x)
    if context.numbers_key is context.key:  # no transfer is guarded
        if kind is np.ndarray:
            return small_array(x)
        if isinstance(x, np.generic):
            return as_array(x)
    raise TypeError
