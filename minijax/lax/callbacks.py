"""Calling Python from a program: `pure_callback`, `io_callback` and the primitives under them.

Eagerly the function is simply called. In a compiled program it is a StableHLO custom call, and on a TPU
transfers to the host and from it; ordered calls pass a token along, so that XLA keeps them in the order
of the program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import array_from_numpy
from minijax.arrays.dispatch import concrete
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, abstract_token, get_aval
from minijax.core.effects import ordered_types
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import eval_trace, set_trace
from minijax.errors import say_where
from minijax.features.effects.kinds import IOEffect, OrderedIOEffect
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.lax.callback_failures import STATUS, Failures
from minijax.lax.control_flow.scan import scan
from minijax.lowering.types import physical
from minijax.runtime.callbacks import (
    HOST_TRANSFERS,
    callback_error,
    callback_target,
    host_transfers,
)
from minijax.runtime.escape import quoted
from minijax.runtime.sharding import Sharding, SingleDeviceSharding
from minijax.transforms.primitives import insert_axes, moveaxis

__all__ = [
    "VMAP_METHODS", "io_callback", "io_callback_p", "lower_callback", "map_call", "pure_callback",
    "pure_callback_p", "rows_layouts",
]  # fmt: skip

_log = logging.getLogger("minijax")

# -- a call in a compiled program -----------------------------------------------------------------


def _check_sharding(sharding: Any) -> None:
    if not (sharding is None or isinstance(sharding, SingleDeviceSharding)):
        raise NotImplementedError(
            f"pure_callback only supports SingleDeviceSharding, but got {type(sharding)}."
        )


def lower_callback(
    b: Any,
    operands: Sequence[Any],
    run: Callable,
    *,
    effect: Any = None,
    pure: bool = False,
    outs: Sequence[Any] | None = None,
    sharding: Any = None,
    partitioned: bool = False,
) -> list[Any]:
    """A custom call of `run(*arrays) -> NumPy arrays`; in order if the effect is an ordered one.

    Its results are those of the equation at hand unless `outs` says otherwise. Of several devices,
    one makes the call with whole arrays: the first, or that of `sharding`. If `partitioned`, each
    makes it with its own shards (without results and not in order; not on a TPU).
    NotImplementedError for a sharding over several.
    """
    _check_sharding(sharding)
    outs = list(b.outs if outs is None else outs)
    in_avals = [x.aval for x in operands]
    chained = effect is not None and ordered_types.contains(effect)

    module = b.module
    if len(module.platforms) > 1:
        raise NotImplementedError(
            "multi-platform lowering for python_callback: a program that calls Python is lowered "
            f"for one platform, and not for {module.platforms}."
        )
    if b.platform == "tpu":
        return _lower_transfers(b, operands, outs, run, effect if chained else None, sharding)
    partition = None if partitioned else _partition(module, sharding)
    # One in order without results has no status: jaxlib 0.12 takes no more than its token from it.
    watched = partition is not None and (outs or not chained)
    failures = Failures(module.devices) if watched else None
    tokens = [b.tokens[effect]] if chained else []
    if failures is not None:
        run, outs = failures.catching(run, outs), [*outs, STATUS]
        if not chained:  # without it newer versions of XLA let all partitions make the call
            tokens = [b.op("stablehlo.create_token", (), abstract_token)]

    count = len(tokens)

    def called(*given):  # tokens are given back
        with set_trace(eval_trace):
            pairs = zip(given[count:], in_avals, strict=True)
            return (
                *given[:count],
                *run(*[_received(x, aval, partitioned=partitioned) for x, aval in pairs]),
            )

    index = len(module.host_callbacks)
    module.host_callbacks.append(called)
    operands, outs = [*tokens, *operands], [*[x.aval for x in tokens], *outs]
    results = b.custom_call(
        callback_target(b.platform, partitioned=partitioned),
        operands,
        outs,
        config=f"{{index = {index} : ui64}}",
        side_effect=not pure,
        layouts=(rows_layouts([x.aval for x in operands]), rows_layouts(outs)),
        partition=partition,
    )
    if chained:
        b.tokens[effect] = results[0]
    results = results[count:]
    return results if failures is None else failures.checked(b, results, pure)


_SEND, _RECEIVE = 2, 3  # types of channels: to the host, and from it


def _lower_transfers(
    b: Any, operands: Sequence[Any], outs: Sequence[Any], run: Callable, effect: Any, sharding: Any
) -> list[Any]:
    """A call by transfers to the host and from it, by which TPUs call Python.

    Something is received always, so that the program waits for the call; results without elements
    are not.
    """
    module, partition = b.module, _partition(b.module, sharding)
    in_avals = [x.aval for x in operands]
    received = [aval for aval in outs if aval.size] if outs else [_WAITED_FOR]
    channels = [module.channel() for _ in (*operands, *received)]

    def called(*given):
        with set_trace(eval_trace):
            arrays = [_received(x, aval) for x, aval in zip(given, in_avals, strict=True)]
            found = run(*arrays)
        return tuple(x for x in found if x.size) if outs else (np.zeros((), _WAITED_FOR.dtype),)

    def transfer(name: str, values: list, results: list, channel: int, kind: int) -> list:
        handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = {kind}>"
        parts = [
            "mhlo.frontend_attributes = {_xla_host_transfer_handler_name = "
            f"{quoted(HOST_TRANSFERS)}, _xla_host_transfer_rendezvous = {quoted(str(channel))}}}"
        ]
        if partition is not None:
            parts.append(f"sdy.sharding = {module.on_one(partition, len(results))}")
        attributes = f"{handle}, is_host_transfer = true"
        return b.op_n(f"stablehlo.{name}", values, results, attributes, (), ", ".join(parts))

    callback = host_transfers(
        module.devices, called, list(map(physical, in_avals)), list(map(physical, received)),
        channels[: len(operands)], channels[len(operands) :],
    )  # fmt: skip
    if callback is not None:
        module.host_callbacks.append(callback)
    token = (
        b.op("stablehlo.create_token", (), abstract_token) if effect is None else b.tokens[effect]
    )
    rest = iter(channels)
    for x in operands:
        (token,) = transfer("send", [x, token], [abstract_token], next(rest), _SEND)
    results = []
    for aval in received:
        found, token = transfer("recv", [token], [aval, abstract_token], next(rest), _RECEIVE)
        results.append(found if partition is None else b.whole(found))
    if effect is not None:
        b.tokens[effect] = token
    given = iter(results)
    return [next(given) if aval.size else b.full(0, aval) for aval in outs]


_WAITED_FOR = ShapedArray((), np.float32)


def _partition(module: Any, sharding: Any) -> int | None:
    """Return the partition that makes a call; None for the only one, and within shard_map, where
    all do.
    """
    if len(module.devices) == 1 or module.manual is not None:
        return None
    (device, *_) = getattr(sharding, "_device_assignment", None) or module.devices
    return module.devices.index(device) if device in module.devices else 0


def rows_layouts(avals: Sequence[Any]) -> list[range]:
    """The layouts in which rows vary slowest, which is how NumPy lays arrays out."""
    return [range(0 if a is abstract_token else physical(a).ndim)[::-1] for a in avals]


def _received(value: Any, aval: ShapedArray, *, partitioned: bool = False) -> Any:
    """An operand as the user's function sees it: an array of ours, with memory of its own.

    Of random keys it sees the words; where a call is partitioned, the shard of the device.
    """
    stored = physical(aval).strip_weak_type()
    value = np.asarray(value)
    if partitioned:
        stored = ShapedArray(value.shape, stored.dtype)
    if value.dtype != stored.dtype:
        value = value.view(stored.dtype) if value.dtype.kind == "V" else value.astype(stored.dtype)
    return array_from_numpy(value.reshape(stored.shape), stored, explicit=True)


def _known(value: Any) -> Any:
    """An operand of a call that is run at once, in the type that it has in a compiled one."""
    array = concrete(value)
    array._check_deleted()
    weak = getattr(array.aval, "weak_type", False)
    return _received(array, array.aval) if weak else array


def _results(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[np.ndarray]:
    """Return the results of the function in the dtypes that it was said to give."""
    if len(values) != len(avals):
        raise RuntimeError(
            f"Mismatched number of outputs from callback. Expected: {len(avals)}, Actual: "
            f"{len(values)}"
        )
    out = []
    for index, (value, aval) in enumerate(zip(values, avals, strict=True)):
        array = np.asarray(value)
        if array.shape != aval.shape:
            raise RuntimeError(
                f"Incorrect output shape for return value #{index}: Expected: {aval.shape}, "
                f"Actual: {array.shape}"
            )
        if dtypes.canonicalize_dtype(array.dtype) != aval.dtype:
            raise RuntimeError(
                f"Incorrect output dtype for return value #{index}: Expected: {aval.dtype.name}, "
                f"Actual: {array.dtype.name}"
            )
        out.append(np.ascontiguousarray(array.astype(aval.dtype)).reshape(aval.shape))
    return out


class _FlatCallback:
    """A function of a tree of arguments, on their leaves. Equal if it calls the same function."""

    __slots__ = ("callback_func", "in_tree")

    def __init__(self, callback_func: Callable, in_tree: Any):
        self.callback_func, self.in_tree = callback_func, in_tree

    def _key(self):
        return self.callback_func, self.in_tree

    def __eq__(self, other):
        return isinstance(other, _FlatCallback) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __call__(self, *leaves):
        args, kwargs = self.in_tree.unflatten(leaves)
        return tree_util.tree_leaves(self.callback_func(*args, **kwargs))

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func!r}, in_tree={self.in_tree})"


def _runner(name: str, callback: Callable, avals: Sequence[ShapedArray]) -> Callable:
    def run(*arrays):
        try:
            found = callback(*arrays)
        except Exception:
            _log.exception("jax.%s failed", name)
            raise
        return _results(found, avals)

    return run


def _impl(name: str) -> Callable:
    def impl(*args, callback, result_avals, sharding, **params):
        _check_sharding(sharding)
        arrays = [_known(x) for x in args]
        try:
            with set_trace(eval_trace):
                values = _runner(name, callback, result_avals)(*arrays)
        except Exception as error:
            raise callback_error(error) from error
        pairs = zip(values, result_avals, strict=True)
        return [array_from_numpy(x, a, explicit=True) for x, a in pairs]

    return impl


# -- pure_callback --------------------------------------------------------------------------------

VMAP_METHODS = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
)  # fmt: skip

pure_callback_p = Primitive("pure_callback", multiple_results=True, memoize=False)
set_layout(pure_callback_p, parts=in_shape_rule)
pure_callback_p.impl(_impl("pure_callback"))


@pure_callback_p.shape_rule
def _(*avals, callback, result_avals, sharding, vmap_method):
    return list(result_avals)


pure_callback_p.rule_jvp = no_rule(
    "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
    "gradients.",
    ValueError,
)
pure_callback_p.rule_transpose = no_rule(
    "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while "
    "taking gradients.",
    ValueError,
)


@pure_callback_p.batch_axis
def _(axis, args, dims, *, result_avals, vmap_method, **params):
    return map_call(pure_callback_p, axis, args, dims, result_avals, vmap_method, params)


def map_call(
    primitive: Primitive,
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[int | None],
    result_avals: tuple,
    vmap_method: str | None,
    params: dict,
    widened: Callable[[dict, list[bool]], dict] = lambda params, mapped: params,
) -> tuple[list[Any], list[int]]:
    """An opaque call, mapped in the way that was asked for; gives results and their axes.

    `widened` gives the params of a call on arrays of which some have a leading axis more.
    """
    params = dict(params, vmap_method=vmap_method)
    args = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = [d is not None for d in dims]
    if vmap_method in ("sequential", "sequential_unrolled"):
        unroll = axis.size if vmap_method == "sequential_unrolled" else 1
        outs = _one_by_one(primitive, args, mapped, axis.size, unroll, result_avals, params)
        return outs, [0] * len(outs)
    if vmap_method is None:
        raise NotImplementedError(
            f"vmap is only supported for the {primitive} primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS[:-1]))}, or {VMAP_METHODS[-1]!r}. Got "
            "vmap_method=None."
        )
    if vmap_method != "legacy_vectorized":
        size = 1 if vmap_method == "expand_dims" else axis.size
        args = [x if m else insert_axes(x, (0,), size) for x, m in zip(args, mapped, strict=True)]
        mapped = [True] * len(args)
    avals = tuple(aval.update(shape=(axis.size, *aval.shape)) for aval in result_avals)
    outs = primitive.bind(*args, result_avals=avals, **widened(params, mapped))
    return outs, [0] * len(outs)


def _one_by_one(primitive, args, mapped, size, unroll, result_avals, params) -> list[Any]:
    """The calls of a batch, one after the other."""
    xs = [x for x, m in zip(args, mapped, strict=True) if m]

    def body(carry, rows):
        rest = iter(rows)
        given = [next(rest) if m else x for x, m in zip(args, mapped, strict=True)]
        return carry, primitive.bind(*given, result_avals=result_avals, **params)

    return scan(body, (), xs, length=size, unroll=max(unroll, 1))[1]


@pure_callback_p.lower
def _(b, *operands, callback, result_avals, sharding, **params):
    run = _runner("pure_callback", callback, result_avals)
    return lower_callback(b, operands, run, pure=True, sharding=sharding)


def _declared(result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    """The types that a callback is said to give, and their tree."""
    leaves, tree = tree_util.flatten(result_shape_dtypes)
    avals = []
    for leaf in leaves:
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or not hasattr(leaf, "shape") or isinstance(leaf, type):
            raise (TypeError if isinstance(leaf, type) else AttributeError)(
                f"result_shape_dtypes holds {leaf!r} of type {type(leaf)}: give a ShapeDtypeStruct for "
                "each result of the callback."
            )
        if isinstance(dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"A callback cannot give random keys, as {leaf} asks: give their words, and make "
                "keys of them with minijax.random.wrap_key_data."
            )
        dtype = np.dtype(dtype)
        if not dtypes.is_supported(dtype):
            raise TypeError(
                f"No dtype_to_ir_type handler for dtype: {dtype}: {leaf!r} of result_shape_dtypes asks for "
                "it. Let the callback give numbers."
            )
        if dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled; "
                f"got {dtype.name}."
            )
        avals.append(ShapedArray(tuple(leaf.shape), dtype))
    return tuple(avals), tree


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects from a program.

    - `callback`: function of arrays that returns arrays of `result_shape_dtypes`, a pytree of
      objects with `shape` and `dtype`
    - `args`, `kwargs`: pytrees of arrays
    - `vmap_method`: "sequential" or "sequential_unrolled" (a call for each element), "expand_dims"
      or "broadcast_all" (one call, with a leading axis of size 1 or full size)

    It may run any number of times. JaxRuntimeError with the callback's exception; ValueError for an
    unknown `vmap_method`; ValueError under differentiation. Source: the StableHLO operation
    `stablehlo.custom_call`.

    >>> jax.pure_callback(np.negative, jax.ShapeDtypeStruct((2,), np.int32), jnp.array([1, 2]))
    Array([-1, -2], dtype=int32)
    """
    if vmap_method not in (None, *VMAP_METHODS):
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got: "
            f"{vmap_method}"
        )
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals, out_tree = _declared(result_shape_dtypes)
    _check_operands("pure_callback", leaves)
    outs = pure_callback_p.bind(
        *leaves, callback=_FlatCallback(callback, in_tree), result_avals=avals, sharding=sharding,
        vmap_method=vmap_method,
    )  # fmt: skip
    return out_tree.unflatten(outs)


def _check_operands(name: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Array):
            try:
                get_aval(leaf)
            except TypeError as error:
                say_where(error, name, leaves)
                raise


# -- io_callback ----------------------------------------------------------------------------------

_EFFECTS = {False: IOEffect(), True: OrderedIOEffect()}

io_callback_p = Primitive("io_callback", multiple_results=True, memoize=False)
set_layout(io_callback_p, parts=in_shape_rule)
io_callback_p.impl(_impl("io_callback"))


@io_callback_p.shape_rule
def _(*avals, result_avals, **params):
    return list(result_avals)


@io_callback_p.effects_rule
def _(*, ordered, **params):
    return frozenset((_EFFECTS[ordered],))


io_callback_p.rule_jvp = no_rule("IO callbacks do not support JVP.", ValueError)
io_callback_p.rule_transpose = no_rule("IO callbacks do not support transpose.", ValueError)


@io_callback_p.batch_axis
def _(axis, args, dims, *, ordered, result_avals, **params):
    if ordered:
        raise ValueError(
            "Cannot `vmap` ordered IO callback. The elements of a batch have no order. Leave out "
            "ordered=True, or loop with lax.map."
        )
    args = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = [d is not None for d in dims]
    params = dict(params, ordered=ordered)
    outs = _one_by_one(io_callback_p, args, mapped, axis.size, 1, result_avals, params)
    return outs, [0] * len(outs)


@io_callback_p.lower
def _(b, *operands, callback, result_avals, ordered, sharding, **params):
    run = _runner("io_callback", callback, result_avals)
    return lower_callback(b, operands, run, effect=_EFFECTS[ordered], sharding=sharding)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function that may have side effects from a program.

    It is called exactly once each time the program gets there; with `ordered`, in the order of the
    program. Arguments and results are those of `pure_callback`. ValueError if it is differentiated,
    or if an ordered one is mapped by `vmap`.
    """
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals, out_tree = _declared(result_shape_dtypes)
    _check_operands("io_callback", leaves)
    outs = io_callback_p.bind(
        *leaves, callback=_FlatCallback(callback, in_tree), ordered=bool(ordered),
        result_avals=avals, sharding=sharding,
    )  # fmt: skip
    return out_tree.unflatten(outs)
