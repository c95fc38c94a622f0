"""`compute_on`: on which part of a machine operations run. XLA is told by attributes beside the
operations. `compute_on2` makes a part of programs of them, whose results lie in memories that it
names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from minijax import tree_util
from minijax.core.primitive import CallPrimitive
from minijax.features.frontend_attributes import marked, with_attributes
from minijax.features.sharding.memory import MemorySpace
from minijax.features.sharding.transfer import annotated
from minijax.lax.metadata import MarkedContext
from minijax.lax.programs import as_program, calls_placed_program

__all__ = ["compute_on", "compute_on2", "compute_on_p"]

_KINDS = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
_NOWHERE: dict[str, str | None] = {
    "_xla_compute_type": None, "_xla_stream_annotation": None, "inlineable": None,
}  # fmt: skip


def _marks(compute_type: Any) -> dict[str, str]:
    """Return the attributes that tell XLA. TypeError for what is no string, ValueError for an
    unknown place.
    """
    if not isinstance(compute_type, str):
        raise TypeError(
            f"`compute_on`'s compute_type argument must be a string: got {compute_type!r}."
        )
    if compute_type in _KINDS:
        return {"_xla_compute_type": _KINDS[compute_type]}
    stream = re.fullmatch(r"gpu_stream:(.*)", compute_type)
    if stream is None:
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
            "`device`, `tpu_sparsecore`, and `gpu_stream:#`."
        )
    return {"_xla_stream_annotation": stream[1], "inlineable": "false"}


def compute_on(compute_type: str) -> MarkedContext:
    """Context manager and decorator: operations within run there.

    `compute_type` is "device_host", "device", "tpu_sparsecore", or "gpu_stream:" and a number; the
    innermost one holds. ValueError for another. Where a machine has no such part, XLA takes no notice.
    """
    return MarkedContext({**_NOWHERE, **_marks(compute_type)})


# -- programs with places of their own ---------------------------------------------------------------


compute_on_p = CallPrimitive("compute_on")
calls_placed_program(compute_on_p, "out_memory_spaces")


@compute_on_p.lower
def _(b, *operands, jaxpr, out_memory_spaces, compute_type, compiler_options_json):
    outs = b.outs
    results = b.call_jaxpr(jaxpr, "compute_on", *operands)
    marks = _marks(compute_type)
    if compiler_options_json is not None:
        marks["backend_config"] = compiler_options_json
    b.lines[-1] = with_attributes(b.lines[-1], marks)
    return [annotated(b, x, out) for x, out in zip(results, outs, strict=True)]


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any,
    compiler_options: dict[str, Any] | None = None,
) -> Callable:  # fmt: skip
    """`f`, run on another part of the machine; its results lie in the memories named.

    `compute_type` is as for `compute_on`; `out_memory_spaces` a `memory.Space`, or a tree of them
    that is a prefix of the results. `compiler_options` are for that part. Without `f` it gives a
    decorator. ValueError for another compute type, or a tree that is no prefix.
    """
    if f is None:
        return lambda fun: compute_on2(
            fun, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )  # fmt: skip
    marks = {**_NOWHERE, **_marks(compute_type)}
    options = None if compiler_options is None else json.dumps(compiler_options, sort_keys=True)

    @wraps(f)
    def wrapped(*args, **kwargs):
        with marked(marks):
            call = as_program("compute_on", f, args, kwargs)
        spaces = _spaces(out_memory_spaces, call.out_tree)
        outs = compute_on_p.bind(
            *call.operands, jaxpr=call.closed, compute_type=compute_type,
            out_memory_spaces=spaces, compiler_options_json=options,
        )  # fmt: skip
        return call.results(outs)

    return wrapped


def _spaces(given: Any, out_tree: Any) -> tuple[MemorySpace, ...]:
    like = out_tree.unflatten([object()] * out_tree.num_leaves)
    is_leaf = lambda x: x is None
    try:
        found = tree_util.broadcast_prefix(given, like, is_leaf=is_leaf)
    except ValueError as error:
        raise ValueError(
            "compute_on out_memory_spaces specification must be a tree prefix of the corresponding "
            f"value; the results are {out_tree}: {error}"
        ) from None
    for space in found:
        if not isinstance(space, MemorySpace):
            raise TypeError(
                "compute_on out_memory_spaces takes minijax.memory.Space.Device or .Host, or a tree "
                f"of those; got {space!r}."
            )
    return tuple(found)
