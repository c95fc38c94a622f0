"""`debug_callback` and `debug_print`: looking into a running program.

They change nothing of what a program computes: derivatives pass them by, and under `vmap` they run
once for each element.
"""

from __future__ import annotations

import logging
import string
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.arrays.dispatch import concrete
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.effects import ordered_types
from minijax.core.primitive import Primitive
from minijax.core.source import Source, capture
from minijax.core.trace import Tracer, eval_trace, set_trace
from minijax.features.effects.kinds import DebugEffect, OrderedDebugEffect, check_shardable
from minijax.features.sharding.constraints import with_types
from minijax.lax.callbacks import lower_callback
from minijax.lax.collective_lowering import once
from minijax.lax.rules import zero_derivative
from minijax.lax.slicing import index_in_dim
from minijax.runtime import executables, platforms, sharding
from minijax.runtime.escape import raw
from minijax.runtime.mesh import AxisType, Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, named_of_hlo
from minijax.runtime.sharding import Sharding
from minijax.tracebacks import boundary

__all__ = [
    "debug_callback", "debug_callback_p", "debug_log", "debug_print", "debug_print_p", "inspect_array_sharding",
    "inspect_sharding_p",
]  # fmt: skip

_log = logging.getLogger("minijax")
LOGGED = "minijax.debug.log"  # the name of its records
_DEBUG, _ORDERED = DebugEffect(), OrderedDebugEffect()


def _looking(p: Primitive, run_of: Callable, effect_of: Callable) -> None:
    """The rules of a primitive that shows its operands and has no results."""

    @p.shape_rule
    def _(*avals, **params):
        return []

    @p.effects_rule
    def _(**params):
        return frozenset((effect_of(params),))

    @p.impl
    def _(*args, **params):
        arrays = [concrete(x) for x in args]
        with set_trace(eval_trace):
            run_of(params)(*arrays)
        return []

    zero_derivative(p)

    @p.transpose
    def _(cts, *args, **params):
        return [None] * len(args)

    @p.batch_axis
    def _(axis, args, dims, **params):
        for i in range(axis.size):
            row = [
                x if d is None else index_in_dim(x, i, d, keepdims=False)
                for x, d in zip(args, dims, strict=True)
            ]
            p.bind(*row, **params)
        return [], []

    @p.lower
    def _(b, *operands, **params):
        run, effect = run_of(params), effect_of(params)

        def called(*arrays):
            run(*arrays)
            return ()

        if ordered_types.contains(effect):
            check_shardable(effect, b.module.devices)
            return lower_callback(b, operands, called, effect=effect)
        if params.get("partitioned") and b.module.manual is None:
            return lower_callback(b, operands, called, effect=effect, outs=(), partitioned=True)
        once(
            b,
            operands,
            lambda inner, *xs: lower_callback(inner, xs, called, effect=effect, outs=()),
        )
        return []


def _logged(name: str, run: Callable) -> Callable:
    def call(*arrays):
        try:
            run(*arrays)
        except Exception:
            _log.exception("jax.debug.%s failed", name)
            raise

    return call


def _take_apart(args: tuple, kwargs: dict) -> tuple[list, list, Any]:
    """The arrays among the leaves, the others with their places, and the tree."""
    leaves, tree = tree_util.flatten((args, kwargs))
    arrays, statics = [], []
    for place, leaf in enumerate(leaves):
        if _is_array(leaf):
            arrays.append(leaf)
        else:
            statics.append((place, leaf))
    return arrays, statics, tree


def _is_array(x: Any) -> bool:
    """Whether a value is an array; TypeError for a scalar or a struct that is none and looks like one."""
    scalar = isinstance(x, np.generic) and not isinstance(x, np.character)
    other = not isinstance(x, (Array, type, np.ndarray))
    if scalar or (other and hasattr(x, "shape") and hasattr(x, "dtype")):
        as_array(x)
        return True
    if isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        try:
            get_aval(x)
        except TypeError:
            return False
        return True
    return False


def _put_together(arrays: Sequence[Any], statics: Sequence[tuple[int, Any]], tree: Any) -> Any:
    leaves = list(arrays)
    for place, value in statics:
        leaves.insert(place, value)
    return tree.unflatten(leaves)


# -- debug.callback -------------------------------------------------------------------------------

debug_callback_p = Primitive("debug_callback", multiple_results=True, memoize=False)
_looking(
    debug_callback_p,
    lambda params: _logged("callback", params["callback"]),
    lambda params: params["effect"],
)


@boundary
def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call a Python function with values of a program, for what it shows; its result is ignored.

    With `ordered`, calls happen in the order of the program. With `partitioned`, each device of a
    compiled program calls it with its own shards, unless the calls are ordered; else one does, with
    whole arrays. Under `vmap` it is called for each element. Without `callback` it gives a function
    that takes it and its arguments. TypeError unless `callback` is callable.
    """
    if callback is None:
        return lambda callback, *args, **kwargs: debug_callback(
            callback, *args, ordered=ordered, partitioned=partitioned, **kwargs
        )
    if not callable(callback):
        raise TypeError(
            "first argument to jax.debug.callback must be callable, but got an object of type "
            f"{type(callback)}"
        )
    arrays, statics, tree = _take_apart(args, kwargs)

    def _flat_callback(*leaves):
        given, named = _put_together(leaves, statics, tree)
        callback(*given, **named)

    _flat_callback.__wrapped__ = callback
    debug_callback_p.bind(
        *arrays, callback=_flat_callback, effect=_ORDERED if ordered else _DEBUG,
        partitioned=partitioned,
    )  # fmt: skip
    return None


# -- debug.print ----------------------------------------------------------------------------------


def _run_print(params: dict) -> Callable:
    fmt, tree, statics = params["fmt"], params["in_tree"], params["static_args"]
    options = dict(params["np_printoptions"])
    place = params["logging_record"]

    def run(*arrays):
        args, kwargs = _put_together(arrays, statics, tree)
        with np.printoptions(**options):
            text = fmt.format(*args, **kwargs) if params["has_placeholders"] else fmt
        if place is None:
            sys.stdout.write(text + "\n")
        else:  # upstream's are for the handlers whatever the level of the logger
            _log.handle(
                logging.LogRecord(LOGGED, logging.INFO, *place, text, args=(), exc_info=None)
            )

    return _logged("print", run)


def _place_of_user() -> tuple[str, int]:
    """The file and line of the call of `debug.log`."""
    found = capture()
    return (found[0].co_filename, Source(*found).position[0] or 0) if found else ("<unknown>", 0)


debug_print_p = Primitive("debug_print", multiple_results=True)
_looking(debug_print_p, _run_print, lambda params: _ORDERED if params["ordered"] else _DEBUG)


class _Formatter(string.Formatter):
    """Refuses arguments that the format does not use."""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for place, arg in enumerate(args) if place not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        unused = [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {unused}. You may be passing an "
                'f-string (i.e, `f"{x}"`) into `jax.debug.print` and instead should pass in a '
                "regular string."
            )

    def format_field(self, value, format_spec):
        return "" if isinstance(value, Tracer) else super().format_field(value, format_spec)

    def convert_field(self, value, conversion):
        return value if isinstance(value, Tracer) else super().convert_field(value, conversion)


_formatter = _Formatter()


@boundary
def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print values of a program while it runs: `fmt.format(*args, **kwargs)`.

    With `ordered`, lines appear in the order of the program. With `partitioned`, each device of a
    compiled program prints its own shards, unless the lines are ordered. Under `vmap` it prints once
    for each element. ValueError for arguments that the format does not use (`skip_format_check`
    leaves the check out), KeyError or IndexError for one that it lacks.
    """
    if fmt is None:
        if args or kwargs:
            raise TypeError(
                "debug_print received unexpected arguments in the two-call form: "
                f"{args=} {kwargs=}. Give the values with the format, in the second call."
            )
        return lambda fmt, *args, **kwargs: debug_print(
            fmt, *args, ordered=ordered, partitioned=partitioned,
            skip_format_check=skip_format_check, _use_logging=_use_logging, **kwargs,
        )  # fmt: skip
    if not skip_format_check:
        _formatter.format(fmt, *args, **kwargs)
    arrays, statics, tree = _take_apart(args, kwargs)
    debug_print_p.bind(
        *arrays,
        fmt=fmt,
        # What has none is printed as it stands, doubled braces and all, as upstream does.
        has_placeholders=any(field is not None for _, field, _, _ in _formatter.parse(fmt)),
        in_tree=tree,
        logging_record=_place_of_user() if _use_logging else None,
        np_printoptions=tuple(np.get_printoptions().items()),
        ordered=bool(ordered),
        partitioned=partitioned,
        static_args=tuple(statics),
    )
    return None


@boundary
def debug_log(fmt: str | None = None, *args: Any, **kwargs: Any) -> Callable[..., None] | None:
    """Print as `debug_print`, to the logger "minijax" at the level INFO instead of standard output."""
    return debug_print(fmt, *args, **{"_use_logging": True, **kwargs})


# -- how an array is spread -------------------------------------------------------------------------

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, memoize=False)
_looking(inspect_sharding_p, lambda params: lambda x: params["callback"](x.sharding),
         lambda params: _DEBUG)  # fmt: skip


@inspect_sharding_p.batch_axis
def _(axis, args, dims, **params):
    """The array with all its elements is spread over devices, not each of them: one call tells of it."""
    inspect_sharding_p.bind(*args, **params)
    return [], []


@inspect_sharding_p.lower
def _(b, x, *, callback):
    """XLA's partitioner calls back when it has chosen, in the terms of its own shardings."""
    mesh = next((mesh for mesh in b.module.meshes if isinstance(mesh, Mesh)), None)
    if mesh is None or b.module.manual:
        callback(sharding.single_device(platforms.default_device()))
        return []

    mesh = with_types(mesh, mesh.axis_names, AxisType.Auto)
    if mesh.size == 1:  # there is nothing to partition
        callback(NamedSharding(mesh, PartitionSpec()))
        return []

    def tell(hlo):
        callback(named_of_hlo(hlo, mesh, x.aval.ndim) or hlo)

    code, kept = executables.inspecting(tell)
    b.module.keepalives.append(kept)
    b.custom_call(
        "InspectSharding", (x,), [x.aval], config=raw(code), api_version=1, side_effect=True
    )
    return []


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback` with the sharding of an array: at once, or when a traced one is compiled.

    Under `vmap` it is called once, with the sharding of the array of all elements.
    """
    for leaf in tree_util.tree_leaves(value):
        inspect_sharding_p.bind(leaf, callback=callback)
