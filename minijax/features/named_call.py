"""`named_call` and `disable_jit`: how functions are named, and whether they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from minijax.arguments.functions import fun_name
from minijax.config import override
from minijax.core.source import named_scope

__all__ = ["disable_jit", "named_call"]


def disable_jit(disable: bool = True) -> Any:
    """Run jitted functions operation by operation within a `with` block.

    - `disable`: whether to do so, by default True

    Values, shapes and dtypes are the same, and Python code sees concrete arrays. Source: the
    setting `jax_disable_jit`.

    >>> with jax.disable_jit():
    ...     jax.jit(lambda x: x + 1)(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    return override("disable_jit", disable)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Name the operations of a function in compiled programs and profiles.

    - `fun`: function; values, shapes and dtypes of its results do not change
    - `name`: name, by default the function's

    TypeError unless the name is a string.
    Source: the locations of StableHLO operations.

    >>> jax.named_call(lambda x: x + 1, name="increment")(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function; got {fun!r} of type {type(fun)}.")
    label = fun_name(fun) if name is None else name

    @wraps(fun)
    def call(*args, **kwargs):
        with named_scope(label):
            return fun(*args, **kwargs)

    return call
