"""`composite`: an operation with a name of its own, which a compiler may know or take apart.

The decomposition is a program that is called; its attributes are written into the module beside the
name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.caches import kept_with
from minijax.core.primitive import Primitive, Programs, no_rule
from minijax.core.trace import Tracer
from minijax.errors import UnexpectedTracerError
from minijax.lowering.module import write_function
from minijax.lowering.types import dense, element_type
from minijax.runtime import escape
from minijax.runtime.escape import quoted, symbol
from minijax.transforms.tracing import any_constant, trace_function

__all__ = ["composite", "composite_p"]

composite_p = Primitive("composite", programs=Programs(jaxpr=(0,)))
composite_p.rule_jvp = no_rule(
    "JVP rule for composite not implemented. You can use `custom_jvp` to add support: what it wraps "
    "may call the composite, and its derivative need not.",
    ValueError,
)
composite_p.rule_transpose = no_rule("it is not known to be linear in its operands")
composite_p.rule_batch = no_rule(
    "Batching rule for 'composite' not implemented: map the decomposition, or use `custom_vmap`."
)

_NAME = r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+"


@composite_p.lower
def _(b, *operands, jaxpr, name, attributes, version):
    if not isinstance(name, str):
        raise TypeError(f"composite: name must be a string, got {name!r} of type {type(name)}.")
    if not re.fullmatch(_NAME, name):
        raise ValueError(
            f"composite: name must be a valid namespaced op name, of the form namespace.operation, "
            f"such as 'my_namespace.my_op'; got {name!r}."
        )
    function = b.module.function(
        ("composite", id(jaxpr)),
        name,
        lambda chosen: write_function(b.module, chosen, jaxpr),
    )
    parts = [
        f"name = {quoted(name)}",
        f"decomposition = {symbol(function)}",
        f"version = {index(version)} : i32",
    ]
    if attributes:
        entries = [(key, tree.unflatten(leaves)) for key, leaves, tree in attributes]
        parts.append(f"composite_attributes = {_dictionary(name, entries)}")
    return b.op_n("stablehlo.composite", operands, jaxpr.out_avals, ", ".join(parts))


def _dictionary(name: str, entries: Sequence[tuple[str, Any]]) -> str:
    return (
        "{"
        + ", ".join([f"{escape.key(k)} = {_attribute(name, value)}" for k, value in entries])
        + "}"
    )


def _attribute(name: str, value: Any) -> str:
    """A value as MLIR writes attributes."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return f"{int(value)} : i64"
    if isinstance(value, float):
        return f"0x{np.float64(value).tobytes()[::-1].hex().upper()} : f64"
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if isinstance(value, np.generic):
            return f"{value.item()} : {element_type(array.dtype)}"
        dims = "".join([f"{size}x" for size in array.shape])
        return f"{dense(array)} : tensor<{dims}{element_type(array.dtype)}>"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join([_attribute(name, item) for item in value]) + "]"
    if isinstance(value, dict):
        return _dictionary(name, list(value.items()))
    raise TypeError(
        f"composite {name!r}: no attribute can hold a value of type {type(value)}, {value!r}: pass "
        "a number, a string, a NumPy dtype or array, or a tuple or dict of them."
    )


# -- the program of a decomposition ---------------------------------------------------------------


def _program(decomposition: Callable, name: str, in_tree: Any, avals: tuple, attributes: dict):
    """The decomposition for operands of these types, and the structure of its results.

    One is kept for each function, type and set of attributes that can be compared.
    """
    key = (in_tree, avals, tuple((k, type(v), v) for k, v in attributes.items()))
    return kept_with(decomposition, ("composite", name)).find(
        key,
        lambda: trace_function(
            "composite",
            decomposition,
            in_tree,
            avals,
            statics=attributes.items(),
            hoisted=any_constant,
        ),
    )


def _check_known(values: Sequence[Any], kind: type, name: str, what: str, note: str = "") -> None:
    if any(isinstance(x, kind) for x in values):
        raise UnexpectedTracerError(
            f"Found a JAX Tracer as {what} in the decomposition for the composite op {name!r}. Any "
            "values that aren't explicitly known at compile time must be explicitly passed as "
            f"positional arguments to the composite.{note}"
        )


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """Make a function that appears in the compiled module as one named operation.

    - `decomposition`: function that computes it, of pytrees of arrays of any shape and dtype
    - `name`: string of the form "namespace.operation"; `version`: integer

    The result takes operands as positional and attributes as keyword arguments; those that are None
    are left out. A compiler that knows name and version may replace it. UnexpectedTracerError if it
    refers to traced values, or if an attribute is a JAX array.
    Source: the StableHLO operation `stablehlo.composite`.

    >>> lax.composite(lambda x: x + 1, "my.increment")(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """

    @wraps(decomposition)
    def call(*args, **kwargs):
        leaves, in_tree = tree_util.flatten((args, {}))
        attributes = []
        for key, value in kwargs.items():
            parts, tree = tree_util.flatten(value)
            note = " If you are passing jax arrays as attributes, use numpy arrays instead."
            _check_known(parts, Array, name, "an attribute", note)
            if value is not None:
                attributes.append((key, tuple(parts), tree))
        avals = tuple([get_aval(x) for x in leaves])
        traced = _program(decomposition, name, in_tree, avals, kwargs)
        _check_known(traced.consts, Tracer, name, "a constant")
        outs = composite_p.bind(
            *traced.consts,
            *leaves,
            name=name,
            jaxpr=traced.closed,
            attributes=tuple(attributes),
            version=version,
        )
        return traced.out_tree.unflatten(outs)

    return call
