"""Attributes that operations carry into the compiled program: `set_xla_metadata` and its kin.

Around operations they are part of the scope that is recorded with each (`core.source`); of one
value they are an equation, whose lowering writes them beside the operation that made it; a program
that is called may carry some, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import wraps
from typing import Any

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.core.array import Array
from minijax.core.primitive import CallPrimitive, Primitive
from minijax.features.frontend_attributes import marked, with_attributes
from minijax.lax.programs import as_program
from minijax.lax.rules import broadcasting_batch, linear
from minijax.lowering.module import Value
from minijax.transforms.call_rules import calls_program

__all__ = [
    "MarkedContext", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call_p",
    "xla_metadata_value_p",
]  # fmt: skip

xla_metadata_value_p = Primitive("xla_metadata_value")


@xla_metadata_value_p.shape_rule
def _(x, *, xla_metadata_kvs):
    return x


@xla_metadata_value_p.impl
def _(x, *, xla_metadata_kvs):
    return as_array(x)


linear(xla_metadata_value_p, lambda ct, aval, **params: ct)
xla_metadata_value_p.rule_batch = broadcasting_batch(xla_metadata_value_p)


@xla_metadata_value_p.lower
def _(b, x, *, xla_metadata_kvs):
    mark(b, x, {name: _text(value) for name, value in xla_metadata_kvs})
    return Value(x.name, b.out)


def mark(b: Any, x: Value, attributes: dict[str, str]) -> None:
    """Write attributes beside the operation that makes a value, if one does."""
    name = x.name.partition("#")[0]
    for index in range(len(b.lines) - 1, -1, -1):
        if b.lines[index].startswith((f"{name} = ", f"{name}:")):
            b.lines[index] = with_attributes(b.lines[index], attributes)
            return


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class MarkedContext(ContextDecorator):
    """A context manager, and a decorator: operations within carry these attributes."""

    def __init__(self, marks: dict[str, str | None]):
        self._marks, self._open = marks, []

    def _recreate_cm(self) -> MarkedContext:
        return MarkedContext(self._marks)  # for each call of what it decorates, in any thread

    def __call__(self, fun: Callable) -> Callable:
        """`fun` called within; a jitted function is traced and lowered within, too."""
        decorated = super().__call__(fun)
        for stage in ("trace", "lower", "eval_shape"):
            if callable(getattr(fun, stage, None)):
                setattr(decorated, stage, super().__call__(getattr(fun, stage)))
        return decorated

    def __enter__(self) -> None:
        context = marked(self._marks)
        context.__enter__()
        self._open.append(context)

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Attributes for XLA, by name, of what makes the arrays `x`, or of all operations of a context.

    Without `x` it gives a context manager that is a decorator, too; there None takes the attribute of
    an outer one away. Values are written as strings. With `x`, a tree of arrays, it gives the same
    arrays; what they are made by has the attributes, except those that it has already. TypeError for
    values that cannot be hashed. Source: XLA's frontend attributes.
    """
    for value in kwargs.values():
        hash(value)
    if x is None:
        return MarkedContext({k: None if v is None else _text(v) for k, v in kwargs.items()})
    pairs = tuple(sorted(kwargs.items()))
    return tree_util.tree_map(
        lambda leaf: xla_metadata_value_p.bind(_checked(leaf), xla_metadata_kvs=pairs), x
    )


def _checked(x: Any) -> Any:
    if not isinstance(x, Array):
        try:
            as_array(x)
        except TypeError:
            raise TypeError(
                "Error interpreting argument to xla_metadata_value as a JAX value. The problematic "
                f"value is of type {type(x)} and was passed to xla_metadata_value at position 0. "
                "Give arrays, or a tree of them; a function is decorated by set_xla_metadata(name=...)."
            ) from None
    return x


# -- programs that carry attributes ----------------------------------------------------------------

xla_metadata_call_p = CallPrimitive("xla_metadata_call")
calls_program(xla_metadata_call_p)


@xla_metadata_call_p.lower
def _(b, *operands, jaxpr, **meta):
    results = b.call_jaxpr(jaxpr, "xla_metadata_call", *operands)
    wrong = next((v for v in meta.values() if not isinstance(v, str)), None)
    if wrong is not None or None in meta.values():
        raise NotImplementedError(
            f"mlir attr handler for type(x)={type(wrong)}: xla_metadata_call takes strings, got {meta}."
        )
    b.lines[-1] = with_attributes(b.lines[-1], meta)
    return results


def xla_metadata_call(f: Callable | None = None, **meta: str) -> Callable:
    """`f` as a part of programs of its own, whose call carries attributes for XLA: strings by name.

    Without `f` it gives a decorator. What is differentiated of it is such a part, too.
    NotImplementedError, when it is compiled, for values that are no strings.
    """
    if f is None:
        return lambda fun: xla_metadata_call(fun, **meta)

    @wraps(f)
    def wrapped(*args, **kwargs):
        call = as_program("xla_metadata_call", f, args, kwargs)
        return call.results(xla_metadata_call_p.bind(*call.operands, jaxpr=call.closed, **meta))

    return wrapped
