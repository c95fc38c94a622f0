"""`pmap`: a function mapped over an axis of its arguments, one element a device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import tree_util
from minijax.arguments.axes import check_axes, flat_axes, mapped_size
from minijax.arguments.functions import as_ints, fun_name
from minijax.arrays.array import array_from_numpy
from minijax.config import local
from minijax.core.avals import get_aval, opaque_types
from minijax.core.caches import ProgramCache
from minijax.core.trace import Tracer, eval_trace
from minijax.features.sharding.transfer import put_array
from minijax.lax.shapes import expand_dims, squeeze
from minijax.lax.shard_map import shard_map
from minijax.runtime import platforms
from minijax.runtime.mesh import Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.platforms import Device
from minijax.tracebacks import boundary
from minijax.transforms.grad import check_callable
from minijax.transforms.jit import jit

__all__ = ["pmap"]

_F = TypeVar("_F", bound=Callable[..., Any])


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class _Call:
    """A mapped call for arguments of one structure: the compiled function and how arguments lie."""

    __slots__ = ("compiled", "mesh", "places", "specs", "tree")


class _Pmapped:
    """A function with what `pmap` was told of it, and the calls that were prepared."""

    def __init__(self, fun, axis_name, in_axes, out_axes, static, devices, axis_size, donated):
        self.fun, self.in_axes, self.out_axes = fun, in_axes, out_axes
        self.name = "_internal_pmap_axis_name" if axis_name is None else axis_name
        self.static, self.donated = static, donated
        self.devices, self.axis_size = devices, axis_size
        self.calls = ProgramCache()
        self.placed = ProgramCache()  # for arguments that lie as they have to

    def prepare(self, args: tuple, kwargs: dict) -> tuple[_Call, list[Any]]:
        """The call for arguments like these, and their leaves."""
        if any(n >= len(args) for n in self.static):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={tuple(sorted(self.static))} but "
                f"was called with only {len(args)} positional argument{'s' * (len(args) != 1)}. All static broadcasted "
                "arguments must be passed positionally."
            )
        places = {n % len(args) for n in self.static} if args else set()
        dynamic = tuple([x for n, x in enumerate(args) if n not in places])
        fixed = tuple([(n, args[n]) for n in sorted(places)])
        leaves, tree = tree_util.flatten((dynamic, kwargs))
        shapes = tuple([getattr(x, "shape", ()) for x in leaves])
        key = (tree, fixed, shapes)
        try:
            call = self.calls.get(key)
        except TypeError:
            index, value = next(pair for pair in fixed if not _is_hashable(pair[1]))
            raise ValueError(
                "Non-hashable static arguments are not supported, as this can lead to unexpected "
                f"cache-misses. Static argument (index {index}) of type {type(value)} for function "
                f"{fun_name(self.fun)} is non-hashable. Pass tuples for lists, or do not name them "
                "in static_broadcasted_argnums."
            ) from None
        if call is None:
            dims = flat_axes("pmap in_axes", tree, (self._axes_of(args, places), 0))
            mapped = [x for x, dim in zip(leaves, dims, strict=True) if dim is not None]
            if not any(hasattr(x, "shape") for x in mapped):
                raise ValueError(
                    "pmap requires at least one argument with a mapped axis. See in_axes."
                )
            size = mapped_size("pmap", self.fun, tree, leaves, dims, None)
            if self.axis_size not in (None, size):
                raise ValueError(
                    f"Specified axis_size {self.axis_size} doesn't match received axis_size {size}."
                )
            dims = [d if d is None else d % len(s) for d, s in zip(dims, shapes, strict=True)]
            call = self.calls[key] = self._prepared(size, dims, tree, fixed)
        return call, leaves

    def _axes_of(self, args: tuple, static: set[int]) -> Any:
        """`in_axes` of the arguments that are not static."""
        axes = self.in_axes
        if not isinstance(axes, (tuple, list)):
            return axes
        if len(axes) != len(args):
            raise ValueError(
                f"pmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got len(in_axes)={len(axes)}, "
                f"len(args)={len(args)}"
            )
        return tuple([axis for n, axis in enumerate(axes) if n not in static])

    def _prepared(self, size: int, dims: list, tree: Any, fixed: tuple) -> _Call:
        out_trees: list[Any] = []
        out_dims: list[list] = []

        # Of `self` and `call` only what they need: a compiled function that refers to what keeps it
        # would be a cycle.
        fun, name, out_axes = self.fun, self.name, self.out_axes

        def part(*leaves):
            """The function on the one element of each mapped argument that a device has."""
            leaves = [
                x if dim is None else squeeze(x, (dim,))
                for x, dim in zip(leaves, dims, strict=True)
            ]
            dynamic, kwargs = tree.unflatten(leaves)
            args = list(dynamic)
            for number, value in fixed:
                args.insert(number, value)
            outs, out_tree = tree_util.flatten(fun(*args, **kwargs))
            wanted = flat_axes("pmap out_axes", out_tree, out_axes)
            ndims = [get_aval(x).ndim + 1 for x in outs]
            places = [_checked(d, n, fun) for d, n in zip(wanted, ndims, strict=True)]
            out_trees.append(out_tree)
            out_dims.append(places)
            return [
                x if dim is None else expand_dims(x, (dim,))
                for x, dim in zip(outs, places, strict=True)
            ]

        if not size:
            raise ValueError(
                f"pmap of {self.fun} got mapped axes of size 0, which lie on no device: give one "
                "element to each device."
            )
        call = _Call()
        call.tree = tree
        call.mesh = Mesh(np.array(_devices(size, *self.devices)), (self.name,))
        call.specs = [_along(self.name, dim) for dim in dims]
        call.places = [NamedSharding(call.mesh, spec) for spec in call.specs]

        mesh, specs = call.mesh, tuple(call.specs)

        def whole(*leaves):
            mapped = shard_map(
                part,
                mesh=mesh,
                in_specs=specs,
                out_specs=lambda: [_along(name, dim) for dim in out_dims[-1]],
                check_vma=False,
            )
            results = mapped(*leaves)
            return out_trees[-1].unflatten(results)

        call.compiled = jit(
            functools.wraps(self.fun)(whole),
            in_shardings=tuple(call.places),
            donate_argnums=self._donated_leaves(tree),
        )
        return call

    def _donated_leaves(self, tree: Any) -> tuple[int, ...]:
        numbers, first = [], 0
        (children, _) = tree.children()
        for n, child in enumerate(children.children()):
            if n in self.donated:
                numbers += range(first, first + child.num_leaves)
            first += child.num_leaves
        return tuple(numbers)

    @boundary
    def call(self, args: tuple, kwargs: dict) -> Any:
        """The general way, which puts the arguments where they have to lie."""
        call, leaves = self.prepare(args, kwargs)
        if local.context.trace is eval_trace and not any(isinstance(x, Tracer) for x in leaves):
            put = [
                array_from_numpy(x, where=place, committed=True)
                if type(x) is np.ndarray
                else x
                if type(x) in opaque_types
                else put_array(x, place)
                for x, place in zip(leaves, call.places, strict=True)
            ]
            if not (kwargs or self.static) and all(a is b for a, b in zip(args, put, strict=False)):
                if len(args) == len(put):  # each of them an array
                    self.placed[tuple([a.signature for a in args])] = call.compiled
            leaves = put
        return call.compiled(*leaves)


def pmap(
    fun: _F,
    axis_name: Hashable | None = None,
    *,
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> _F:
    """Map a function in parallel over an axis of its arguments, one element on each device.

    - `fun`: function of pytrees of arrays; `axis_name`: name of the axis for collectives
    - `in_axes`, `out_axes`: mapped dimensions, as in `vmap`; None for what is not mapped
    - `static_broadcasted_argnums`: arguments that are compile-time constants
    - `devices`, `backend`: devices to use, or their platform; `axis_size`: number of elements
    - `donate_argnums`: arguments whose memory the results may take over

    The results' shapes have the mapped axis at `out_axes`. ValueError where sizes differ or exceed
    the number of devices. Source: single program, multiple data (Darema, 2001).

    >>> jax.pmap(lambda x: x + 1)(jnp.array([[1, 2]]))
    Array([[2, 3]], dtype=int32)
    """
    check_callable(fun)
    check_axes("pmap", in_axes, out_axes)
    static = frozenset(as_ints("static_broadcasted_argnums", static_broadcasted_argnums))
    donated = frozenset(as_ints("donate_argnums", donate_argnums))
    if static & donated:
        raise ValueError(
            f"`static_argnums` {sorted(static)} and `donate_argnums` {sorted(donated)} cannot "
            "intersect."
        )
    mapped = _Pmapped(
        fun, axis_name, in_axes, out_axes, static, (devices, backend), axis_size, donated
    )
    placed = mapped.placed.tables

    def parallel(*args, **kwargs):
        context = local.context
        if context.trace is eval_trace and not kwargs:
            try:
                compiled = placed[context.key][tuple([a.signature for a in args])]
            except (KeyError, AttributeError, TypeError):
                pass
            else:
                return compiled(*args)
        return mapped.call(args, kwargs)

    def lower(*args, **kwargs):
        call, leaves = mapped.prepare(args, kwargs)
        return call.compiled.lower(*leaves).called_with(call.tree)

    try:
        parallel = functools.wraps(fun)(parallel)
    except Exception:
        pass
    parallel.lower = lower
    return parallel


def _devices(size: int, devices: Sequence[Any] | None, backend: str | None) -> list[Any]:
    found = list(devices) if devices is not None else platforms.local_devices(backend=backend)
    if not found:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    if size > len(found):
        raise ValueError(
            f"compiling computation that requires {size} logical devices, but only {len(found)} "
            f"XLA devices are available (num_replicas={size}): map a shorter axis, or make more "
            "with XLA_FLAGS=--xla_force_host_platform_device_count."
        )
    if devices is not None and len(found) != size:
        raise ValueError(
            f"Leading axis size of input to pmapped function must equal the number of local devices "
            f"passed to pmap. Got axis_size={size}, num_local_devices={len(found)}."
        )
    return found[:size]


def _checked(dim: int | None, ndim: int, fun: Callable) -> int | None:
    if dim is None:
        return None
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"axis {dim} is out of bounds for array of dimension {ndim}: pmap out_axes, for a result "
            f"of {fun_name(fun)}, the mapped dimension included."
        )
    return dim % ndim


def _along(name: Hashable, dim: int | None) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, name)
