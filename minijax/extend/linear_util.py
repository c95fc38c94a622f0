"""`minijax.extend.linear_util`: functions wrapped in layers, each with results on the side.

A `WrappedFun` is a function and the transformations around it, outermost last. minijax's own
transforms are written with plain closures; this is for libraries that speak it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from minijax.core.caches import ProgramCache, kept_with
from minijax.features.wrapped_functions import Store, StoreException, WrappedFun, wrap_init
from minijax.namespace import shown

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip


def transformation2(layer: Callable, fun: Any = None, *args: Hashable) -> Any:
    """Decorator: `layer(f, *args, *call arguments)` becomes a layer that functions can be given."""
    if fun is None:
        return functools.partial(transformation2, layer)
    return fun.wrap(layer, args, None)


def transformation_with_aux2(
    layer: Callable, fun: Any = None, *args: Hashable, use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any:  # fmt: skip
    """Wrap a function by `layer(f, store, *args, *call_args)`, which stores a result on the side.

    Giving it a function returns the wrapped one and a function that reads the result.
    """
    if fun is None:
        return functools.partial(
            transformation_with_aux2, layer, use_eq_store=use_eq_store, unk_names=unk_names
        )
    store = Store()
    return fun.wrap(layer, args, store), lambda: store.val


def _run(generator: Callable, f: Callable, args: tuple, kwargs: dict) -> Any:
    """Drive a layer written as a generator: it yields a call, is sent its result, yields its own."""
    steps = generator(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    result = steps.send(f(*inner_args, **inner_kwargs))
    steps.close()
    return result


def transformation(generator: Callable, fun: Any = None, *args: Hashable) -> Any:
    """Decorator: a generator `(*args, *call arguments)` as a layer.

    It yields `(args, kwargs)` for the function inside, receives the result, and yields its own.
    """
    if fun is None:
        return functools.partial(transformation, generator)

    @functools.wraps(generator)
    def layer(f, *given, **kwargs):
        return _run(generator, f, given, kwargs)

    return fun.wrap(layer, args, None)


def transformation_with_aux(generator: Callable, fun: Any = None, *args: Hashable) -> Any:
    """Wrap a function by a generator that yields `(result, result on the side)` at the end."""
    if fun is None:
        return functools.partial(transformation_with_aux, generator)

    @functools.wraps(generator)
    def layer(f, store, *given, **kwargs):
        result, aside = _run(generator, f, given, kwargs)
        store.store(aside)
        return result

    store = Store()
    return fun.wrap(layer, args, store), lambda: store.val


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the one of two results on the side that is there: `(it is the first, the result)`."""
    found = []
    for aux in (aux1, aux2):
        try:
            found.append((True, aux()))
        except StoreException:
            found.append((False, None))
    (has1, out1), (has2, out2) = found
    if has1 == has2:
        raise StoreException("both stores occupied" if has1 else "neither store occupied")
    return (True, out1) if has1 else (False, out2)


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """`call(fun, *args)` remembered for each function, while it lives and settings stay the same."""
    caches: weakref.WeakSet[ProgramCache] = weakref.WeakSet()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args):
        cache = kept_with(fun.f, call)
        caches.add(cache)
        key = (fun.transforms, fun.params, fun.in_type, args)
        known = cache.get(key)
        if known is not None:
            result, stores = known
            for store, value in zip(fun.stores, stores, strict=True):
                if store is not None and not store:
                    store.store(value)
            return result
        result = call(fun, *args)
        cache[key] = result, [store.val if store else None for store in fun.stores]
        return result

    remembered.cache_clear = lambda: [cache.clear() for cache in caches]
    return remembered


__dir__ = shown(__name__)
