"""Gather and scatter: the primitives behind indexing with arrays, and the functions on them.

The dimension numbers are described in `lax.index_numbers`. Reading windows and adding to them are
each other's transposes, which is why they stand in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any, Protocol

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.caches import ProgramCache, kept_with
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import Tracer
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.memory import of_first
from minijax.features.sharding.sharding_rules import ambiguous, parts_of
from minijax.lax.arithmetic import add_p, div_p, max_p, min_p, mul_p, neg_p, sub_p
from minijax.lax.compare import eq_p, select_n_p
from minijax.lax.creation import broadcasted_iota
from minijax.lax.index_lowering import lower_gather, lower_scatter
from minijax.lax.index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_scatter,
    gather_shape,
    window_to_gather,
)
from minijax.lax.rules import same_dtypes
from minijax.lax.shapes import canonical_shape, reshape
from minijax.transforms.batching import mapped_size, to_front
from minijax.transforms.primitives import add_tangents, full_like_aval, instantiate, moveaxis
from minijax.transforms.tangents import Summed, Zero, is_undefined, zero_like
from minijax.typing import ArrayLike, Shape

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather", "gather_p",
    "scatter", "scatter_add", "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p",
    "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub",
    "scatter_sub_p",
]  # fmt: skip

_CLIP = GatherScatterMode.CLIP
_FILL = GatherScatterMode.FILL_OR_DROP


def _up(dims: Sequence[int]) -> tuple[int, ...]:
    """Axes of an array that gets one more in front."""
    return tuple([d + 1 for d in dims])


# -- gather ------------------------------------------------------------------------------------------

gather_p = Primitive("gather")


@gather_p.shape_rule
def _(operand, indices, *, dimension_numbers, slice_sizes, mode, **params):
    shape = gather_shape(operand, indices, dimension_numbers, slice_sizes)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


@layout(gather_p, "parts")
def _(avals, out, *, dimension_numbers, slice_sizes, **params):
    operand, indices = avals
    parts, rest = parts_of(operand), parts_of(indices)[:-1]
    offsets, collapsed, _, ob, ib = dimension_numbers
    if any(part for axis, part in enumerate(rest) if axis not in ib):
        raise ambiguous("gather", GATHER_SPLIT, avals)
    window = []
    for axis, (part, size) in enumerate(zip(parts, slice_sizes, strict=True)):
        if axis in ob:
            place = ib[ob.index(axis)]
            if None not in (part, rest[place]) and part != rest[place]:
                raise ambiguous("gather", GATHER_SPLIT, avals)
            rest[place] = rest[place] or part
        elif part is not None and size != operand.shape[axis]:
            raise ambiguous("gather", GATHER_SPLIT, avals)
        elif axis not in collapsed:
            window.append(part)
    others, places = iter(rest), dict(zip(offsets, window, strict=True))
    return [places[axis] if axis in places else next(others) for axis in range(out.ndim)]


GATHER_SPLIT, SCATTER_SPLIT = (
    f"Use `.at[...].{form}(out_sharding=)` to provide output PartitionSpec for the {what} as out "
    "sharding could not be resolved unambiguously (or would require collectives on inputs)"
    for form, what in (("get", "gather indexing"), ("set/add/mul/...", "scatter update"))
)


@gather_p.jvp
def _(primals, tangents, *, fill_value, **params):
    (operand, indices), (t, _) = primals, tangents
    out = gather_p.bind(operand, indices, fill_value=fill_value, **params)
    if type(t) is Zero:
        return out, zero_like(out)
    if params["mode"] is _FILL:
        fill_value = 0
    return out, gather_p.bind(t, indices, fill_value=fill_value, **params)


@gather_p.transpose
def _(ct, operand, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
    assert is_undefined(operand)
    numbers = ScatterDimensionNumbers(
        update_window_dims=dimension_numbers.offset_dims,
        inserted_window_dims=dimension_numbers.collapsed_slice_dims,
        scatter_dims_to_operand_dims=dimension_numbers.start_index_map,
        operand_batching_dims=dimension_numbers.operand_batching_dims,
        scatter_indices_batching_dims=dimension_numbers.start_indices_batching_dims,
    )
    if operand.sum is None:
        zeros = full_like_aval(0, operand.aval.update(weak_type=False))
        return [_bind_scatter(scatter_add_p, zeros, indices, ct, numbers, **params), None]
    total = _bind_scatter(scatter_add_p, operand.sum, indices, ct, numbers, **params)
    return [Summed(total), None]


@gather_p.batch
def _(args, dims, *, dimension_numbers, slice_sizes, unique_indices, indices_are_sorted, **params):
    (operand, indices), (od, id_) = args, dims
    offsets, collapsed, index_map, ob, ib = dimension_numbers
    if od is not None:
        operand = moveaxis(operand, od, 0)
        collapsed, index_map, ob = _up(collapsed), _up(index_map), _up(ob)
    if id_ is None:
        size = operand.shape[0]
        offsets, slice_sizes = (0, *_up(offsets)), (size, *slice_sizes)
    else:
        indices = moveaxis(indices, id_, 0)
        offsets, ib = _up(offsets), _up(ib)
        if od is None:
            # Indices that are unique or sorted in each row need not be so in all together.
            unique_indices = indices_are_sorted = False
        else:
            ob, ib = (0, *ob), (0, *ib)
            slice_sizes = (min(1, operand.shape[0]), *slice_sizes)
    out = gather_p.bind(
        operand,
        indices,
        dimension_numbers=GatherDimensionNumbers(offsets, collapsed, index_map, ob, ib),
        slice_sizes=slice_sizes,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        **params,
    )
    return out, 0


gather_p.lower(lower_gather)


def _default_fill(dtype: Any) -> Any:
    """Return the fill of a gather for windows that are not within the operand, unless told
    otherwise.
    """
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    if dtype == np.bool_:
        return True
    if dtypes.is_extended(dtype):
        return 2**32 - 1  # of each word of a random key
    raise ValueError(f"gather: there is no fill value for dtype {dtype.name}: give fill_value.")


def _checked_fill(fill_value: Any, dtype: Any) -> Any:
    if isinstance(fill_value, Array) or np.ndim(fill_value):
        raise TypeError(
            f"gather: fill_value must be a number, got {fill_value!r}: pass a Python or NumPy "
            "scalar, or mask the result with minijax.numpy.where."
        )
    if isinstance(fill_value, str) or (
        isinstance(fill_value, (complex, np.complexfloating))
        and not dtypes.issubdtype(dtype, np.complexfloating)
    ):
        raise TypeError(f"gather: fill_value {fill_value!r} has no value of dtype {dtype.name}.")
    # One object stands for every NaN: they are not equal, and parameters are compared.
    return np.nan if fill_value != fill_value else fill_value


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Cut windows out of an array, one at each row of indices.

    - `operand`: array; `start_indices`: integer array of index vectors along its last axis
    - `dimension_numbers`: a `GatherDimensionNumbers`; `slice_sizes`: shape of a window
    - `mode`: a `GatherScatterMode` or its name, by default a promise that windows lie within
    - `fill_value`: scalar for mode "fill"; by default NaN, the least signed or greatest unsigned
      integer

    TypeError if the dimension numbers do not fit; ValueError for another dtype of indices or mode.
    Source: the StableHLO operation `stablehlo.gather`.

    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(jnp.array([5, 6, 7]), jnp.array([[2], [0]]), numbers, (1,))
    Array([7, 5], dtype=int32)
    """
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    dtype = get_aval(operand).dtype
    if fill_value is not None:
        fill_value = _checked_fill(fill_value, dtype)
    elif mode is _FILL:
        fill_value = _default_fill(dtype)
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        slice_sizes=canonical_shape(slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value,
    )


# -- scatter: what its kinds share ------------------------------------------------------------------

_combiners = ProgramCache()


def _combiner(p: Primitive, dtype: Any) -> ClosedJaxpr:
    """The program of a binary operation on scalars, as the `update_jaxpr` of a scatter."""
    key = (p, dtype)
    found = _combiners.get(key)
    if found is None:
        scalar = ShapedArray((), dtype)
        found = _combiners[key] = trace_to_jaxpr(lambda x, y: [p.bind(x, y)], (scalar, scalar))
    return found


def _bind_scatter(p: Primitive, operand, indices, updates, numbers, **params):
    """Bind a scatter with the combiner that belongs to its primitive."""
    op = _OPERATIONS.get(p)
    params["update_jaxpr"] = None if op is None else _combiner(op, get_aval(operand).dtype)
    params |= {"update_consts": (), "dimension_numbers": numbers}
    return p.bind(operand, indices, updates, **params)


def _scatter_batch(p: Primitive) -> Callable:
    def batch(args, dims, *, dimension_numbers, **params):
        size = mapped_size(args, dims)
        (operand, indices, updates), (od, id_, ud) = args, dims
        operand, updates = to_front(operand, od, size), to_front(updates, ud, size)
        window, inserted, index_map, ob, ib = dimension_numbers
        window, inserted, index_map, ob = _up(window), _up(inserted), _up(index_map), _up(ob)
        if id_ is None:
            window = (0, *window)
        else:
            indices = moveaxis(indices, id_, 0)
            ob, ib = (0, *ob), (0, *_up(ib))
        numbers = ScatterDimensionNumbers(window, inserted, index_map, ob, ib)
        return p.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0

    return batch


def _scatter_primitive(name: str) -> Primitive:
    p = Primitive(name)
    # Programs have no constants here that print: they are written into the reducer.
    p.printed = lambda params: {
        **params, "update_jaxpr": params["update_jaxpr"] and params["update_jaxpr"].jaxpr
    }  # fmt: skip

    @p.shape_rule
    def _(operand, indices, updates, *, dimension_numbers, **params):
        same_dtypes("scatter", (operand, updates))
        check_scatter(operand, indices, updates, dimension_numbers)
        return operand

    @layout(p, "parts")
    def _(avals, out, *, dimension_numbers, **params):
        operand, indices, updates = avals
        parts, d = parts_of(operand), dimension_numbers
        spread = [
            part
            for axis, part in enumerate(parts_of(indices))
            if axis not in d.scatter_indices_batching_dims
        ]
        fixed = {*d.inserted_window_dims, *d.operand_batching_dims}
        window = [axis for axis in range(operand.ndim) if axis not in fixed]
        partly = [
            parts[axis]
            for axis, place in zip(window, d.update_window_dims, strict=True)
            if updates.shape[place] != operand.shape[axis]
        ]
        if any(spread) or any(partly) or any(parts[axis] for axis in d.inserted_window_dims):
            raise ambiguous(name, SCATTER_SPLIT, avals)
        return parts

    set_layout(p, memory=of_first)
    p.batch(_scatter_batch(p))
    p.lower(lower_scatter)
    return p


def _of_updates(ct: Any, operand_shape, indices, updates, params: dict) -> Any:
    """The windows of a cotangent that a scatter wrote."""
    numbers, sizes = window_to_gather(params["dimension_numbers"], operand_shape, updates.shape)
    mode = params["mode"]
    return gather_p.bind(
        ct,
        indices,
        dimension_numbers=numbers,
        slice_sizes=sizes,
        unique_indices=False,
        indices_are_sorted=params["indices_are_sorted"],
        mode=mode,
        fill_value=0 if mode is _FILL else None,
    )


# -- scatter-add and scatter-sub: linear in operand and updates ----------------------------------

scatter_add_p = _scatter_primitive("scatter-add")
scatter_sub_p = _scatter_primitive("scatter-sub")


def _linear_scatter(p: Primitive) -> None:
    @p.jvp
    def _(primals, tangents, **params):
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = p.bind(operand, indices, updates, **params)
        if type(t_updates) is Zero:
            return out, t_operand
        return out, p.bind(instantiate(t_operand), indices, t_updates, **params)

    @p.transpose
    def _(ct, operand, indices, updates, **params):
        ct_updates = None
        if is_undefined(updates):
            ct_updates = _of_updates(ct, operand.shape, indices, updates, params)
            if p is scatter_sub_p:
                ct_updates = neg_p.bind(ct_updates)
        return [ct if is_undefined(operand) else None, None, ct_updates]


_linear_scatter(scatter_add_p)
_linear_scatter(scatter_sub_p)

# -- scatter-mul: linear in each, where no window is written twice --------------------------------

scatter_mul_p = _scatter_primitive("scatter-mul")


def _check_unique(params: dict, message: str) -> None:
    if not params["unique_indices"]:
        raise NotImplementedError(
            f"{message} only implemented if `unique_indices=True`: pass it, if no window is "
            "written twice."
        )


@scatter_mul_p.jvp
def _(primals, tangents, **params):
    (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
    out = scatter_mul_p.bind(operand, indices, updates, **params)
    total = None
    if type(t_operand) is not Zero:
        total = scatter_mul_p.bind(t_operand, indices, updates, **params)
    if type(t_updates) is not Zero:
        _check_unique(params, "scatter_mul gradients are")
        zeros = full_like_aval(0, get_aval(operand).to_tangent_aval())
        spread = _rebind(scatter_add_p, zeros, indices, t_updates, params)
        total = add_tangents(total, mul_p.bind(operand, spread))
    return out, zero_like(out) if total is None else total


def _rebind(p: Primitive, operand, indices, updates, params: dict) -> Any:
    """Another kind of scatter of the same windows."""
    return _bind_scatter(p, operand, indices, updates, params["dimension_numbers"], **params)


@scatter_mul_p.transpose
def _(ct, operand, indices, updates, **params):
    if is_undefined(operand):
        return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]
    ct = mul_p.bind(ct, operand)
    return [None, None, _of_updates(ct, operand.shape, indices, updates, params)]


# -- scatter-min and scatter-max -------------------------------------------------------------------

scatter_min_p = _scatter_primitive("scatter-min")
scatter_max_p = _scatter_primitive("scatter-max")


def _extremal_scatter(p: Primitive) -> None:
    p.rule_transpose = no_rule("it is not linear in its operands")

    @p.jvp
    def _(primals, tangents, **params):
        (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
        out = p.bind(operand, indices, updates, **params)
        if type(t_operand) is Zero and type(t_updates) is Zero:
            return out, zero_like(out)
        t_operand, t_updates = instantiate(t_operand), instantiate(t_updates)
        tangent = _extremal_tangent(operand, indices, updates, out, t_operand, t_updates, params)
        return out, tangent


def _reading(params: dict) -> dict:
    """Return how the windows of a scatter are read back; what is read beyond the operand does not
    matter.
    """
    mode = params["mode"]
    if mode is not GatherScatterMode.CLIP:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return {**params, "mode": mode, "indices_are_sorted": False}


def _extremal_tangent(operand, indices, updates, out, t_operand, t_updates, params):
    """The tangent of what won at each place; of those that tie, their mean.

    A place won by k updates has the tangent (t_1 + ... + t_k + t) / (k + 1) if the operand's
    value there, of tangent t, is among the winners, and the same without t over k if not.
    """
    read = _reading(params)

    def at_windows(x):
        return _of_updates(x, operand.shape, indices, updates, read)

    def spread(x):
        return _rebind(scatter_add_p, full_like_aval(0, get_aval(operand)), indices, x, params)

    aval = get_aval(updates)
    zero, one = full_like_aval(0, aval), full_like_aval(1, aval)
    won, kept = eq_p.bind(updates, at_windows(out)), eq_p.bind(at_windows(operand), at_windows(out))
    winners = at_windows(spread(select_n_p.bind(won, zero, one)))
    writers = at_windows(spread(one))
    shared = div_p.bind(one, add_p.bind(winners, one))
    of_update = select_n_p.bind(kept, div_p.bind(one, winners), shared)
    of_update = select_n_p.bind(won, zero, of_update)
    # What the operand's tangent loses is taken from it in equal parts by those that write there.
    of_operand = sub_p.bind(select_n_p.bind(kept, zero, shared), one)
    of_operand = div_p.bind(of_operand, writers)
    change = add_p.bind(
        mul_p.bind(at_windows(t_operand), of_operand), mul_p.bind(t_updates, of_update)
    )
    return _rebind(scatter_add_p, t_operand, indices, change, params)


_extremal_scatter(scatter_min_p)
_extremal_scatter(scatter_max_p)

# -- scatter: updates replace what was there -----------------------------------------------------

scatter_p = _scatter_primitive("scatter")

_OPERATIONS = {
    scatter_add_p: add_p,
    scatter_sub_p: sub_p,
    scatter_mul_p: mul_p,
    scatter_min_p: min_p,
    scatter_max_p: max_p,
}


@scatter_p.jvp
def _(primals, tangents, **params):
    (operand, indices, updates), (t_operand, _, t_updates) = primals, tangents
    if params["update_jaxpr"] is not None:
        raise NotImplementedError(
            "scatter_apply JVP not implemented: apply the function to x.at[...].get() and write "
            "the result with x.at[...].set()."
        )
    if type(t_operand) is Zero and type(t_updates) is Zero:
        out = scatter_p.bind(operand, indices, updates, **params)
        return out, zero_like(out)
    t_operand, t_updates = instantiate(t_operand), instantiate(t_updates)
    if params["unique_indices"]:
        out = scatter_p.bind(operand, indices, updates, **params)
        return out, scatter_p.bind(t_operand, indices, t_updates, **params)
    # Which of several updates of one element stays is not defined: number them, see which number
    # stays, and keep that update and that tangent.
    untouched, stays = _winners(operand, indices, updates, params)

    def written(x, new):
        x = select_n_p.bind(untouched, full_like_aval(0, get_aval(x)), x)
        new = select_n_p.bind(stays, full_like_aval(0, get_aval(new)), new)
        return _rebind(scatter_add_p, x, indices, new, params)

    return written(operand, updates), written(t_operand, t_updates)


def _winners(operand, indices, updates, params: dict) -> tuple[Any, Any]:
    """Masks of the elements of the operand that stay, and of the updates that do."""
    number = np.dtype(np.uint32)
    rows = np.shape(indices)[:-1]
    window = params["dimension_numbers"].update_window_dims
    ids = broadcasted_iota(number, (prod(rows),), 0)
    rest = iter(rows)
    ids = reshape(ids, [1 if d in window else next(rest) for d in range(updates.ndim)])
    ones = full_like_aval(1, ShapedArray(updates.shape, number))
    ids = add_p.bind(ids, ones)
    none = full_like_aval(0, ShapedArray(operand.shape, number))
    written = _rebind(scatter_p, none, indices, ids, params)
    read = _reading(params)
    found = _of_updates(written, operand.shape, indices, updates, read)
    return eq_p.bind(written, none), eq_p.bind(ids, found)


@scatter_p.transpose
def _(ct, operand, indices, updates, **params):
    _check_unique(params, "scatter transpose is")
    ct_operand = ct_updates = None
    if is_undefined(operand):
        zeros = full_like_aval(0, get_aval(updates))
        ct_operand = scatter_p.bind(ct, indices, zeros, **params)
    if is_undefined(updates):
        ct_updates = _of_updates(ct, operand.shape, indices, updates, params)
    return [ct_operand, None, ct_updates]


# -- the functions ---------------------------------------------------------------------------------


class _Scatter(Protocol):
    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array: ...


def _scatter_function(p: Primitive, doing: str, example: str) -> _Scatter:
    name = p.name.replace("-", "_")

    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return _bind_scatter(
            p,
            operand,
            scatter_indices,
            updates,
            ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doing} an array by windows of updates, one at each row of indices.

    - `operand`, `updates`: arrays of one dtype; `scatter_indices`: integer array of index vectors
    - `dimension_numbers`: a `ScatterDimensionNumbers`
    - `mode`: a `GatherScatterMode` or its name; windows outside the operand are left out by default
    - `indices_are_sorted`, `unique_indices`: promises about the indices

    The result has the shape and dtype of `operand`. TypeError if the dimension numbers do not fit or
    dtypes differ; ValueError for another dtype of indices or an unknown mode.
    Source: the StableHLO operation `stablehlo.scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.{name}(jnp.array([3, 4]), jnp.array([[0]]), jnp.array([5]), numbers)
    Array([{example}], dtype=int32)
    """
    return function


scatter = _scatter_function(scatter_p, "Replace parts of", "5, 4")
scatter_add = _scatter_function(scatter_add_p, "Increase", "8, 4")
scatter_sub = _scatter_function(scatter_sub_p, "Decrease", "-2,  4")
scatter_mul = _scatter_function(scatter_mul_p, "Multiply", "15,  4")
scatter_min = _scatter_function(scatter_min_p, "Limit from above", "3, 4")
scatter_max = _scatter_function(scatter_max_p, "Limit from below", "5, 4")


def _checked(out: Any) -> Any:
    if not isinstance(out, (Array, np.generic, np.ndarray, bool, int, float, complex)):
        raise ValueError(
            f"Invalid return type from reduction function: {type(out)}. Reduction functions should "
            f"only return an array; the function of scatter_apply gave {out!r}."
        )
    return out


def _applied_program(func: Callable, dtype: Any) -> ClosedJaxpr:
    """The program `(old, unused) -> func(old)` on scalars; one for each function and dtype."""
    known = kept_with(func, "scatter_apply").table()
    if dtype not in known:
        scalar = ShapedArray((), dtype)
        closed = trace_to_jaxpr(lambda x, _: [_checked(func(x))], (scalar, scalar))
        (out,) = closed.out_avals
        if any(isinstance(c, Tracer) for c in closed.consts):
            raise NotImplementedError(
                "scatter_apply: the function refers to a traced array: apply it to "
                "x.at[...].get() and write the result with x.at[...].set()."
            )
        if out.shape or out.dtype != dtype:
            raise ValueError(
                f"scatter_apply: the function must give {scalar.str_short()} for "
                f"{scalar.str_short()}; it gave {out.str_short()}."
            )
        known[dtype] = closed
    return known[dtype]


def scatter_apply(
    operand: Array,
    scatter_indices: Array,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function to the elements in a window at each row of indices.

    - `operand`: array; `scatter_indices`: integer array; `dimension_numbers`: as in `scatter`
    - `func`: function from a scalar to one of its dtype; applied repeatedly where windows overlap
    - `update_shape`: shape that updates of these windows would have
    - other arguments: as in `scatter`

    The result has the shape and dtype of `operand`, and no derivative. TypeError and ValueError as
    in `scatter`. Source: the StableHLO operation `stablehlo.scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.array([1, 2]), jnp.array([1]), lambda x: 10 * x, numbers)
    Array([ 1, 20], dtype=int32)
    """
    dtype = get_aval(operand).dtype
    unused = full_like_aval(0, ShapedArray(tuple(map(index, update_shape)), dtype))
    return scatter_p.bind(
        operand,
        scatter_indices,
        unused,
        dimension_numbers=ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=_applied_program(func, dtype),
        update_consts=(),
    )
