"""Functions in layers, as libraries that write traces or interpreters of their own take them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from minijax.core.jaxpr import DebugInfo

__all__ = ["Store", "StoreException", "WrappedFun", "wrap_init"]


class StoreException(Exception):
    """A result on the side was read before it was there, or written twice."""


_EMPTY = object()


class Store:
    """Holds one result on the side of a call."""

    __slots__ = ("_value",)

    def __init__(self):
        self._value = _EMPTY

    @property
    def val(self) -> Any:
        if self._value is _EMPTY:
            raise StoreException("Store empty: the function has not been called yet")
        return self._value

    def store(self, value: Any) -> None:
        if self._value is not _EMPTY:
            raise StoreException("Store occupied: the function has been called before")
        self._value = value

    def reset(self) -> None:
        self._value = _EMPTY

    def __bool__(self) -> bool:
        return self._value is not _EMPTY


class WrappedFun:
    """A function and the layers around it. Compares by function, layers and parameters."""

    __slots__ = (
        "__weakref__", "debug_info", "f", "f_transformed", "in_type", "params", "stores",
        "transforms",
    )  # fmt: skip

    def __init__(self, f, f_transformed, transforms, stores, params, in_type=None, debug_info=None):
        self.f: Callable = f
        self.f_transformed: Callable = f_transformed
        self.transforms: tuple[tuple[Callable, tuple[Hashable, ...]], ...] = transforms
        self.stores: tuple[Store | None, ...] = stores
        self.params: tuple[tuple[str, Any], ...] = params
        self.in_type = in_type
        self.debug_info = debug_info or DebugInfo("missing_debug_info", "<missing_debug_info>")

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrap(self, layer: Callable, args: tuple, store: Store | None) -> WrappedFun:
        """The function with one layer more: `layer(f, *args, *call arguments)`."""
        inner = self.f_transformed
        extra = args if store is None else (store, *args)
        return WrappedFun(
            self.f,
            functools.partial(layer, inner, *extra),
            ((layer, args), *self.transforms),
            (store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args, **kwargs) -> Any:
        """Call it, through all of its layers."""
        return self.f_transformed(*args, **kwargs)

    def _key(self):
        return self.f, self.transforms, self.params, self.in_type

    def __eq__(self, other):
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self) -> str:
        layers = [
            f"{index:<4}: {getattr(layer, '__name__', layer)}   {args}"
            for index, (layer, args) in enumerate(self.transforms)
        ]
        return "\n".join(["Wrapped function:", *layers, f"Core: {self.__name__}", ""])


def wrap_init(
    f: Callable[..., Any], params: Any = None, *, debug_info: DebugInfo | None = None
) -> WrappedFun:
    """A function without layers; `params` are keyword arguments that it is always given."""
    fixed = {} if params is None else dict(params)
    bound = functools.partial(f, **fixed) if fixed else f
    return WrappedFun(f, bound, (), (), tuple(sorted(fixed.items())), None, debug_info)
