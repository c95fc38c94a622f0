"""Choosing from sliding windows, and giving back to what was chosen: how extrema differentiate.

For the parameters of windows see `lax.window_rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import as_operand, parts_of
from minijax.lax.compare import ge_p
from minijax.lax.reductions import greatest, least
from minijax.lax.rules import ORDERED, check_dtype, linear_in, merged
from minijax.lax.slicing import lower_pad, pad_p, slice_p
from minijax.lax.window_rules import batch_windows, lower_window, pairs, window_shape, with_axis
from minijax.lowering.module import i64_array
from minijax.transforms.batching import to_front
from minijax.transforms.tangents import is_undefined

__all__ = ["select_and_gather_add_p", "select_and_scatter_add_p", "select_and_scatter_p"]

select_and_gather_add_p = Primitive("select_and_gather_add")
select_and_scatter_add_p = Primitive("select_and_scatter_add")
set_layout(select_and_gather_add_p, parts=as_operand)
set_layout(select_and_scatter_add_p, parts=lambda avals, out, **params: parts_of(avals[1]))


def _never_chosen(select: Primitive, dtype: Any) -> np.generic:
    return least(dtype) if select is ge_p else greatest(dtype)


@select_and_gather_add_p.shape_rule
def _(t, x, *, select_prim, **window):
    check_dtype("select_and_gather_add", x, ORDERED)
    shape = window_shape("select_and_gather_add", x, window)
    return ShapedArray(shape, t.dtype, t.weak_type)


linear_in(select_and_gather_add_p, 0)  # the choice does not change by an infinitesimal step


@select_and_gather_add_p.transpose
def _(ct, t, x, *, select_prim, base_dilation, window_dilation, **window):
    assert is_undefined(t)
    if any(step != 1 for step in window_dilation):
        raise NotImplementedError(
            "VJP not implemented for select_and_gather (MaxPool) with window dilation, got "
            f"window_dilation={window_dilation}: dilate the window by slicing the operand instead."
        )
    shape = x.shape
    spread = any(step != 1 for step in base_dilation)
    if spread:
        config = tuple([(0, 0, step - 1) for step in base_dilation])
        x = pad_p.bind(x, _never_chosen(select_prim, x.dtype), padding_config=config)
    out = select_and_scatter_add_p.bind(ct, x, select_prim=select_prim, **window)
    if spread:
        out = slice_p.bind(
            out, start_indices=(0,) * len(shape), limit_indices=out.shape, strides=base_dilation
        )
    return [out, None]


select_and_gather_add_p.rule_batch = batch_windows(select_and_gather_add_p.bind)


@select_and_gather_add_p.lower
def _(b, t, x, *, select_prim, **window):
    out = b.out
    if not window["window_dimensions"]:
        return t
    init = b.constant(_never_chosen(select_prim, x.dtype), x.aval.update(shape=()))
    nothing = b.constant(0, t.aval.update(shape=()))
    direction = select_prim.name.upper()

    def body(r, x1, t1, x2, t2):
        first = r.compare(x1, x2, direction)
        return [
            r.op("stablehlo.select", (first, x1, x2), x1.aval),
            r.op("stablehlo.select", (first, t1, t2), t1.aval),
        ]

    outs = [x.aval.update(shape=out.shape), out]
    return lower_window(b, [x, t], [init, nothing], body, outs, window)[1]


@select_and_scatter_add_p.shape_rule
def _(source, x, *, select_prim, **window):
    check_dtype("select_and_scatter_add", x, ORDERED)
    window_shape("select_and_scatter_add", x, window)
    return ShapedArray(x.shape, source.dtype, source.weak_type)


linear_in(select_and_scatter_add_p, 0)


@select_and_scatter_add_p.transpose
def _(ct, source, x, **params):
    assert is_undefined(source)
    ones = (1,) * ct.ndim
    out = select_and_gather_add_p.bind(ct, x, base_dilation=ones, window_dilation=ones, **params)
    return [out, None]


select_and_scatter_add_p.rule_batch = batch_windows(select_and_scatter_add_p.bind)


@select_and_scatter_add_p.lower
def _(b, source, x, *, select_prim, padding, **window):
    if not padding:
        return source
    out, scalar, direction = b.out, source.aval.update(shape=()), select_prim.name.upper()
    init = b.constant(_never_chosen(select_prim, x.dtype), x.aval.update(shape=()))
    return _padded_scatter(
        b,
        x,
        source,
        init,
        b.constant(0, scalar),
        lambda r, p, q: [r.compare(p, q, direction)],
        lambda r, p, q: [r.op("stablehlo.add", (p, q), scalar)],
        padding,
        window,
        out,
    )


def _padded_scatter(b, x, source, edge, start, select, scatter, padding, window, out):
    """`stablehlo.select_and_scatter`; the padding is made, for it may be chosen and be lost."""
    padded = x
    if any(low or high for low, high in padding):
        shape = [low + size + high for size, (low, high) in zip(x.shape, padding, strict=True)]
        config = [(*pair, 0) for pair in padding]
        padded = lower_pad(b, x, edge, config, x.aval.update(shape=tuple(shape)))
    element, given = x.aval.update(shape=()), source.aval.update(shape=())
    attributes = (
        f"window_dimensions = {i64_array(window['window_dimensions'])}, "
        f"window_strides = {i64_array(window['window_strides'])}, "
        f"padding = {pairs([(0, 0)] * len(padding))}"
    )
    scattered = b.op_n(
        "stablehlo.select_and_scatter",
        (padded, source, start),
        [out.update(shape=padded.shape)],
        attributes,
        [b.region([element, element], select), b.region([given, given], scatter)],
    )[0]
    if padded is x:
        return scattered
    # A padding below zero took elements away: they were in no window, so that they get nothing.
    return lower_pad(b, scattered, start, [(-low, -high, 0) for low, high in padding], out)


select_and_scatter_p = Primitive("select_and_scatter", holds_programs=True)


@select_and_scatter_p.shape_rule
def _(x, source, init, *, select_jaxpr, select_consts, scatter_jaxpr, scatter_consts, **window):
    shape = window_shape("select_and_scatter", x, window)
    if shape != source.shape:
        raise TypeError(
            f"select_and_scatter: the source must have one element for each window, shape {shape}; "
            f"it has shape {source.shape}."
        )
    return merged((x, source), x.shape, x.dtype)


select_and_scatter_p.rule_jvp = no_rule(
    "Differentiation rule for 'select_and_scatter' not implemented: its operations are not known. "
    "Use select_and_scatter_add_p."
)
select_and_scatter_p.rule_transpose = no_rule("it is not linear in its operands")


@select_and_scatter_p.batch
def _(args, dims, **params):
    (x, source, init), (dx, ds, di) = args, dims
    if di is not None:
        raise NotImplementedError(
            "select_and_scatter: batching is not implemented for initial values: use one value."
        )
    size = x.shape[dx] if dx is not None else source.shape[ds]
    x, source = to_front(x, dx, size), to_front(source, ds, size)
    return select_and_scatter_p.bind(x, source, init, **with_axis(params, 0)), 0


@select_and_scatter_p.lower
def _(
    b, x, source, init, *, select_jaxpr, select_consts, scatter_jaxpr, scatter_consts, padding,
    **window,
):  # fmt: skip
    def body(jaxpr, consts):
        closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, consts)
        return lambda r, *args: r.closed_jaxpr(closed, *args)

    return _padded_scatter(
        b, x, source, init, init, body(select_jaxpr, select_consts),
        body(scatter_jaxpr, scatter_consts), padding, window, b.out,
    )  # fmt: skip
