"""`buffer_callback`: calling Python on the buffers of a program, which it writes in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.lax.callbacks import VMAP_METHODS, map_call, rows_layouts
from minijax.lax.ffi_calls import FfiEffect, aliases_of
from minijax.runtime.callbacks import buffer_target

__all__ = ["buffer_callback", "buffer_callback_p"]

buffer_callback_p = Primitive("buffer_callback", multiple_results=True)
set_layout(buffer_callback_p, parts=in_shape_rule)
_effects = frozenset([FfiEffect()])


@buffer_callback_p.shape_rule
def _(*avals, result_avals, **params):
    return list(result_avals)


buffer_callback_p.effects_rule(
    lambda *, has_side_effect, **params: _effects if has_side_effect else frozenset()
)
buffer_callback_p.rule_jvp = no_rule(
    "Buffer callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
    "gradients.",
    ValueError,
)
buffer_callback_p.rule_transpose = no_rule(
    "Buffer callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while "
    "taking gradients.",
    ValueError,
)


@buffer_callback_p.batch_axis
def _(axis, args, dims, *, result_avals, vmap_method, **params):
    if vmap_method not in (None, *VMAP_METHODS):
        raise NotImplementedError(
            "vmap is only supported for the buffer_callback primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method={vmap_method!r}."
        )
    return map_call(buffer_callback_p, axis, args, dims, result_avals, vmap_method, params)


@buffer_callback_p.lower
def _(
    b, *operands, callback, in_tree, out_tree, has_side_effect, input_output_aliases, **params,
):  # fmt: skip
    if len(b.module.devices) > 1 and b.module.manual is None:
        raise NotImplementedError(
            "buffer_callback works on the buffers of one device: over several, call it within shard_map."
        )

    def called(context, *buffers):
        count = len(operands)
        args, kwargs = in_tree.unflatten(buffers[:count])
        callback(context, out_tree.unflatten(buffers[count:]), *args, **kwargs)

    module = b.module
    index = len(module.host_callbacks)
    module.host_callbacks.append(called)
    return b.custom_call(
        buffer_target(b.platform), operands, b.outs, config=f"{{index = {index} : ui64}}",
        side_effect=has_side_effect, aliases=input_output_aliases,
        layouts=(rows_layouts([x.aval for x in operands]), rows_layouts(b.outs)),
    )  # fmt: skip


def buffer_callback(
    callback: Callable[..., None], result_shape_dtypes: Any, *, has_side_effect: bool = False,
    vmap_method: str | None = None, input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that calls `callback(context, out, *args, **kwargs)` with buffers.

    - `callback` writes its results into `out`, a buffer or a tree of them; NumPy sees one by
      `numpy.asarray`, others by DLPack. Arguments are not to be written, unless they are aliased
    - `result_shape_dtypes`: the shape and dtype of the result, or a tree of those
    - `has_side_effect`: run it even where nothing reads its results
    - `vmap_method`: what happens under `vmap`, as for `pure_callback`
    - `input_output_aliases`: which results take the memory of which arguments, by number
    - `command_buffer_compatible`: whether a GPU may record it into a command buffer

    ValueError under differentiation, and for aliases of different types; NotImplementedError for
    platforms other than CPUs and GPUs.
    """
    declared, out_tree = tree_util.flatten(result_shape_dtypes)
    results = tuple([ShapedArray(tuple(x.shape), np.dtype(x.dtype)) for x in declared])

    @wraps(callback)
    def wrapped_callback(*args, **kwargs):
        leaves, in_tree = tree_util.flatten((args, kwargs))
        values = [x if isinstance(x, Array) else as_value(x) for x in leaves]
        avals = [get_aval(x) for x in values]
        layouts = [tuple(range(a.ndim)) for a in avals], [tuple(range(a.ndim)) for a in results]
        outs = buffer_callback_p.bind(
            *values, callback=callback, result_avals=results, in_tree=in_tree, out_tree=out_tree,
            has_side_effect=has_side_effect, vmap_method=vmap_method,
            input_output_aliases=aliases_of(input_output_aliases, *layouts, avals, results),
            command_buffer_compatible=command_buffer_compatible,
        )  # fmt: skip
        return out_tree.unflatten(outs)

    return wrapped_callback
