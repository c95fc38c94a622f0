"""`minijax.interpreters.xla`: running one primitive. May import the floors below."""

from __future__ import annotations

from typing import Any

from minijax.arrays.dispatch import run_primitive
from minijax.core.primitive import Primitive
from minijax.core.trace import eval_trace
from minijax.runtime.versions import Client as Backend

__all__ = ["Backend", "apply_primitive"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile and run one equation: what a primitive's `impl` may be, given its lowering rule."""
    return run_primitive(eval_trace, prim, args, params, use_impl=False)
