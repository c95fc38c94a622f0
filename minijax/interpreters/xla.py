"""`minijax.interpreters.xla`: running one primitive, and values of types that libraries define."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np

from minijax.arrays.array import canonicalizers
from minijax.arrays.dispatch import run_primitive
from minijax.core.primitive import Primitive
from minijax.core.trace import eval_trace
from minijax.namespace import shown
from minijax.runtime.versions import Client as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


class _Handlers(MutableMapping):
    """Functions that make an array, or a NumPy array, of values, by type; `asarray` for those
    whose type has none. With an entry in `core.pytype_aval_mappings` too, values of the type are
    arguments of functions under jit.
    """

    def __getitem__(self, kind: type) -> Callable[[Any], Any]:
        return canonicalizers.get(kind, np.asarray)

    def __setitem__(self, kind: type, handler: Callable[[Any], Any]) -> None:
        canonicalizers[kind] = handler

    def __delitem__(self, kind: type) -> None:
        del canonicalizers[kind]

    def __iter__(self) -> Iterator[type]:
        return iter(canonicalizers)

    def __len__(self) -> int:
        return len(canonicalizers)


canonicalize_dtype_handlers = _Handlers()


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile and run one equation: what a primitive's `impl` may be, given its lowering rule."""
    return run_primitive(eval_trace, prim, args, params, use_impl=False)


__dir__ = shown(__name__)
