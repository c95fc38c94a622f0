"""Cached calls: keys, operands and results of calls whose program is known.

`jit`, compiled functions and library functions keep an entry for each program: a tuple of the function
that executes it, the handlers of its results, the signature of its only result, and the function that
makes a pytree of several. Their fast paths are made from one template by `cached_call`; each gives the
lines that find the key and the operands. Functions in place of these lines take 0.1 us (2 %) more for
an eager `sin(x)`, of 4.4 us.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any, NoReturn

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, as_operand, operand_from_host, operand_from_number
from minijax.arrays.dispatch import Program
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.trace import eval_trace
from minijax.runtime.lending import give_back
from minijax.runtime.released import released
from minijax.tracebacks import hide_frames

__all__ = [
    "CACHE_MISS_ERRORS", "LEAF", "NUMBERS", "cached_call", "entry_of", "gather", "new_array",
    "operand_of",
]  # fmt: skip

NUMBERS = dtypes.python_scalar_dtypes
# Raised by the lookup of a cached call where the general path is to be taken.
CACHE_MISS_ERRORS = (
    LookupError, AttributeError, TypeError, ValueError, OverflowError,
    SystemError,  # of jaxlib, for containers that are nested too deeply
)  # fmt: skip

_CONTAINERS = frozenset((dict, list, tuple))
LEAF = tree_util.tree_structure(0)
_FEW = 16  # results, for which a function is made by `hooks.result_builder`, in 0.3 ms
new_array = object.__new__  # faster than `ArrayImpl(...)`: the caller sets its attributes


_TEMPLATE = """
def {name}({parameters}):
    context = local.context
    if context.trace is not eval_trace:
{traced}
    try:
{lookup}
        execute, handlers, signature, many = {tables}[context.key][{key}]
    except CACHE_MISS_ERRORS:
        pass
    else:
        try:
            next(released)
            results = execute({operands}).consume_with_handlers(handlers)
            if context.lent:
                give_back(context.lent, {operands}, results)
        except Exception as error:
            refuse({given}, error)
        if many is not None:
            return many(results)
        out = new_array(ArrayImpl)
        (out._buffer,) = results
        out._in_numpy = None
        out.signature = signature
        return out
    {forgotten} = None
    try:  # not within the handler, whose exception would be the context of errors from here on
        return {missed}
    except Exception as error:
        hide_frames(error)
        raise
"""


def cached_call(
    name: str, parameters: str, *, traced: str, lookup: str, tables: str, given: str, missed: str,
    key: str = "key", operands: str = "operands", forgotten: str = "operands",
    factory: str | None = None, **constants: Any,
) -> Callable:  # fmt: skip
    """Make the function of a fast path from source text.

    - `traced`: statements for calls under a trace
    - `lookup`: statements that set `key` and `operands`, or raise one of CACHE_MISS_ERRORS
    - `tables`: expression for the entries, by settings and key
    - `given`: expression for the arguments, for the error on one that was deleted
    - `missed`: expression for calls without an entry
    - `forgotten`: variables set to None before that, which may hold copies of large arrays
    - `factory`: parameters of a function that makes the function, which closes over them
    """
    traced, lookup = [indent(dedent(lines).strip(), " " * 8) for lines in (traced, lookup)]
    source = _TEMPLATE.format(
        name=name, parameters=parameters, traced=traced, lookup=lookup,
        tables=tables, key=key, operands=operands, given=given, forgotten=forgotten, missed=missed,
    )  # fmt: skip
    if factory is not None:
        source = f"def make({factory}):{indent(source, '    ')}\n    return {name}\n"
    file = os.path.join(os.path.dirname(__file__), f"<cached call: {name}>")
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = {**_NAMES, **constants}
    exec(compile(source, file, "exec"), names)
    return names[name if factory is None else "make"]


def _refuse(given: Any, error: Exception) -> NoReturn:
    """Raise the error of a program that could not be executed, as users know it."""
    try:
        hooks.check_executed(tree_util.tree_leaves(given), error)
        raise error
    except Exception as known:
        hide_frames(known)
        raise


def entry_of(
    program: Program, out_tree: Any, execute: Callable | None = None, often: bool = False
) -> tuple:
    """Return the entry for a program: a simple one, or one that `execute` runs on the operands.

    An `out_tree` of None is that of one array. Of a program that is called `often`, the function that
    makes the results may be slow to make.
    """
    signatures, many = tuple(program.out_signatures), None
    if out_tree is not None and out_tree != LEAF:
        if often or len(signatures) <= _FEW:
            many = hooks.result_builder(out_tree, signatures)
        many = many or (lambda results: out_tree.unflatten(map(ArrayImpl, results, signatures)))
    return execute or program.execute, program.handlers, signatures[0] if signatures else None, many


def gather(x: Any, key: list, operands: list, context: Any) -> None:
    """Append an argument that is not static to the key of its call and the operands of the program.

    Raises one of `CACHE_MISS_ERRORS` for what cannot be an operand as it is.
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
    """Return a number or a NumPy array on the device, for one call; TypeError for anything else."""
    kind = type(x)
    if kind in NUMBERS:
        return operand_from_number(x, context)
    if context.numbers_key is context.key:  # no transfer is guarded
        if kind is np.ndarray:
            return operand_from_host(x, context)
        if isinstance(x, np.generic):
            return as_operand(x)
    raise TypeError


_NAMES = {  # the globals of functions made by `cached_call`
    "__name__": __name__,  # so that warnings know them as the package's
    "ArrayImpl": ArrayImpl, "CACHE_MISS_ERRORS": CACHE_MISS_ERRORS, "eval_trace": eval_trace,
    "give_back": give_back, "hide_frames": hide_frames, "local": local, "new_array": new_array,
    "operand_of": operand_of, "refuse": _refuse, "released": released,
}  # fmt: skip
