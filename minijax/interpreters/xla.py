"""`minijax.interpreters.xla`: running one primitive, and values of types that libraries define.

May import the floors below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import canonicalizers
from minijax.arrays.dispatch import run_primitive
from minijax.core.primitive import Primitive
from minijax.core.trace import eval_trace
from minijax.runtime.versions import Client as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

# From a type to a function that makes an array, or a NumPy array, of its values: with an entry in
# `core.pytype_aval_mappings` too, they are arguments of functions under jit.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = canonicalizers


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile and run one equation: what a primitive's `impl` may be, given its lowering rule."""
    return run_primitive(eval_trace, prim, args, params, use_impl=False)
