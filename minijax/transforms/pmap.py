"""pmap: a function mapped over the leading axis of its arguments, one element a device.

May import the floors below. All elements run on the default device so far, which gives the same
values; the axis may not be longer than there are devices, as upstream asks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from minijax import tree_util
from minijax.runtime import platforms
from minijax.transforms.arguments import as_ints
from minijax.transforms.grad import check_callable
from minijax.transforms.jit import jit
from minijax.transforms.vmap import vmap

__all__ = ["pmap"]


def pmap(
    fun: Callable,
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable:
    """`fun` mapped in parallel: a compiled `vmap` whose axis is spread over devices.

    Collectives (`lax.psum`, ...) reach over `axis_name`. `static_broadcasted_argnums` are compile-time
    constants, the same for all. ValueError where the axis is longer than there are devices.
    """
    check_callable(fun)
    static = frozenset(as_ints("static_broadcasted_argnums", static_broadcasted_argnums))
    name = axis_name if axis_name is not None else object()
    axes = in_axes if isinstance(in_axes, int) or in_axes is None else tuple(in_axes)

    def mapped(*args, **kwargs):
        dynamic = [x for n, x in enumerate(args) if n not in static]

        def call(*given, **named):
            rest = iter(given)
            full = [x if n in static else next(rest) for n, x in enumerate(args)]
            return fun(*full, **named)

        chosen = axes
        if isinstance(axes, tuple) and len(axes) == len(args):
            chosen = tuple(axis for n, axis in enumerate(axes) if n not in static)
        return vmap(call, chosen, out_axes, axis_name=name, axis_size=axis_size)(*dynamic, **kwargs)

    compiled = jit(
        functools.wraps(fun)(mapped), static_argnums=tuple(static), donate_argnums=donate_argnums
    )

    @functools.wraps(fun)
    def parallel(*args, **kwargs):
        _check_size(fun, args, axes, static, devices, backend, axis_size)
        return compiled(*args, **kwargs)

    parallel.lower = compiled.lower
    parallel.trace = compiled.trace
    return parallel


def _check_size(fun, args, axes, static, devices, backend, axis_size) -> None:
    if axis_size is None and isinstance(axes, int):
        leaves = tree_util.tree_leaves([x for n, x in enumerate(args) if n not in static])
        shapes = [x.shape for x in leaves if getattr(x, "ndim", 0) > axes]
        axis_size = shapes[0][axes] if shapes else None
    count = len(devices) if devices is not None else platforms.local_device_count(backend)
    if axis_size is not None and axis_size > count:
        raise ValueError(
            f"compiling computation that requires {axis_size} logical devices, but only {count} "
            f"XLA devices are available: the mapped axis of {getattr(fun, '__name__', fun)} has "
            "size "
            f"{axis_size}."
        )
