"""The vocabulary of kernels, beside operations on arrays: control, memory, semaphores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import contextmanager
from functools import wraps
from operator import index
from string import Formatter
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.features.references.cells import Ref
from minijax.lax import refs
from minijax.lax.arithmetic import add_p, mul_p
from minijax.lax.control_flow.conditionals import cond
from minijax.lax.control_flow.loops import fori_loop
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.debug_callbacks import debug_print as print_values
from minijax.lax.pallas.interpret import uninitialized
from minijax.lax.pallas.specs import DeviceIdType
from minijax.lax.ref_views import view_of
from minijax.lax.shapes import broadcast_in_dim
from minijax.transforms.jit import jit
from minijax.typing import ArrayLike

__all__ = [
    "align_to", "broadcast_to", "cdiv", "debug_print", "empty", "empty_like", "empty_ref_like",
    "debug_checks_enabled", "enable_debug_checks", "loop", "lower_as_mlir", "multiple_of", "next_power_of_2", "reciprocal",
    "run_scoped", "run_state", "semaphore_read", "semaphore_signal", "semaphore_wait",
    "strides_from_shape", "when", "with_scoped",
]  # fmt: skip

# -- control --------------------------------------------------------------------------------------


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Decorator: call a function, for what it writes, where `condition` holds."""

    def decorate(body: Callable[[], None]) -> None:
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                body()
        else:
            cond(condition, body, lambda: None)

    return decorate


def loop(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    init_carry: Any = None,
    step: ArrayLike = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: call `body(i)` for `i` from `lower` up to, and not with, `upper`, by `step`.

    With an `init_carry` it is `carry = body(i, carry)`, and gives the last carry.
    """

    def decorate(body: Callable[..., Any]) -> Any:
        def one(n, carry):
            i = n
            if not (isinstance(step, int) and step == 1):
                i = mul_p.bind(n, _like(step, n))
            if not (isinstance(lower, int) and lower == 0):
                i = add_p.bind(i, _like(lower, i))
            if carry is None:
                body(i)
                return None
            return body(i, carry)

        trips = cdiv(upper - lower, step)
        start = 0 if isinstance(trips, int) else _like(0, trips)
        return fori_loop(start, trips, one, init_carry, unroll=unroll)

    return decorate


def _like(x: Any, like: Any) -> Any:
    """A number, or scalar, in the dtype of another."""
    aval = get_aval(like)
    if isinstance(x, int) and not isinstance(x, bool):
        return x if aval.weak_type else np.asarray(x, aval.dtype)[()]
    return convert_element_type(x, aval.dtype) if get_aval(x).dtype != aval.dtype else x


# -- memory ---------------------------------------------------------------------------------------


def _allocated(what: Any) -> Any:
    """References to places in memory that nobody wrote."""
    leaves, tree = tree_util.flatten(what)
    types = [x.get_ref_aval() for x in leaves]
    made = [
        refs.new_ref(uninitialized(t, t.memory_space), memory_space=t.memory_space) for t in types
    ]
    return tree.unflatten(made)


def run_scoped(f: Callable, *types: Any, collective_axes: Hashable = (), **kw_types: Any) -> Any:
    """`f` of references to new memory of these types, such as `ANY(shape, dtype)`.

    The memory is there while `f` runs; it may give values, and not references.
    """
    if collective_axes != ():
        raise NotImplementedError("run_scoped: collective_axes are for devices of several cores.")
    found = f(*_allocated(types), **_allocated(kw_types))
    if any(isinstance(x, Ref) for x in tree_util.tree_leaves(found)):
        raise ValueError(
            "run_scoped: the function returned a reference to memory that is gone: return its value."
        )
    return found


def with_scoped(*types: Any, collective_axes: Hashable = (), **kw_types: Any) -> Callable:
    """Decorator: a function that is given references to new memory after its other arguments."""

    def decorate(f: Callable) -> Callable:
        @wraps(f)
        def inner(*args, **kwargs):
            scoped = lambda *made, **named: f(*args, *made, **kwargs, **named)
            return run_scoped(scoped, *types, collective_axes=collective_axes, **kw_types)

        return inner

    return decorate


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """A function of a tree of arrays: what references that start as these hold once `f` has run."""

    def wrapped(init):
        leaves, tree = tree_util.flatten(init)
        made = [refs.new_ref(x) for x in leaves]
        if f(tree.unflatten(made)) is not None:
            raise ValueError("run_state: the function should return None: write to its references.")
        return tree.unflatten([refs.freeze(ref) for ref in made])

    return jit(wrapped, inline=True)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array whose elements are of no particular value: zeros."""
    return full(shape, 0, dtype, sharding=out_sharding)


def empty_like(x: Any) -> Any:
    """Return empty arrays for each leaf of a tree of objects with a shape and a dtype."""
    return tree_util.tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """References to memory that nobody wrote, for each leaf of a tree."""

    def make(leaf):
        space = getattr(leaf, "memory_space", None)
        aval = ShapedArray(tuple(leaf.shape), dtypes.canonicalize_dtype(leaf.dtype))
        return refs.new_ref(uninitialized(aval, space))

    return tree_util.tree_map(make, x)


# -- semaphores: counters, since steps run one after the other ------------------------------------


def semaphore_signal(
    sem_or_view: Any,
    inc: int | Array = 1,
    *,
    device_id: Any = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: int | Array | None = None,
) -> None:
    """Add to a semaphore. NotImplementedError for one of another device."""
    if device_id is not None:
        raise NotImplementedError("Remote signal not implemented: interpreted kernels run alone.")
    _add(sem_or_view, inc)


def semaphore_wait(sem_or_view: Any, value: int | Array = 1, *, decrement: bool = True) -> None:
    """Take from a semaphore, where a device would wait until it has so much."""
    if decrement:
        _add(sem_or_view, -value)


def _add(ref: Any, amount: Any) -> None:
    view = view_of(ref)
    amount = convert_element_type(amount, view.dtype)
    view.addupdate(broadcast_to(amount, view.shape))


def semaphore_read(sem_or_view: Any) -> Array:
    """Return the count of a semaphore."""
    return view_of(sem_or_view).get()


# -- hints, printing, checks ----------------------------------------------------------------------


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, of which a compiler may believe that it is a multiple of `values`."""
    return x


def debug_print(fmt: str, *args: Any) -> None:
    """Print values while a kernel runs: `fmt` has `{}` for each, or is what stands before them."""
    fields = sum(field is not None for _, field, _, _ in Formatter().parse(fmt))
    if args and not fields:
        fmt, fields = " ".join([fmt, *["{}"] * len(args)]), len(args)
    print_values(fmt, *args[:fields])


class _Switch(threading.local):
    """A setting of this thread: `value`, and called, a context in which it is another."""

    value = False

    @contextmanager
    def __call__(self, new_val: bool = True):
        saved, self.value = self.value, bool(new_val)
        try:
            yield
        finally:
            self.value = saved


enable_debug_checks = _Switch()


def debug_checks_enabled() -> bool:
    """Whether kernels are recorded with their checks."""
    return enable_debug_checks.value


# -- arithmetic -----------------------------------------------------------------------------------


def cdiv(a: Any, b: Any) -> Any:
    """`a / b` rounded up, of integers."""
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"cdiv divides {a} by zero.")
        return (a + b - 1) // b
    for x in (a, b):
        if get_aval(x).dtype.kind not in "iu":
            raise TypeError(f"cdiv divides integers, got {get_aval(x).str_short()}: use jnp.ceil.")
    b = _like(b, a) if not isinstance(a, int) else b
    return (a + (b - 1)) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of `alignment` that is not below `a`."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below `x`; ValueError if it is negative."""
    x = index(x)
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements apart neighbours along each axis are, in row-major order."""
    strides, size = [], 1
    for n in reversed(tuple(shape)):
        strides.append(size)
        size *= index(n)
    return tuple(reversed(strides))


def broadcast_to(a: Array, shape: Sequence[int]) -> Array:
    """`a` repeated to a shape. ValueError if it does not broadcast."""
    aval, shape = get_aval(a), tuple(shape)
    lead = len(shape) - aval.ndim
    if aval.shape == shape:
        return a
    if lead < 0 or any(n not in (1, m) for n, m in zip(aval.shape, shape[lead:], strict=True)):
        kind = f"{aval.dtype.name}[{','.join(map(str, shape))}]"
        raise ValueError(
            f"Incompatible types for broadcasting: input type={aval.str_short()} and requested "
            f"type={kind}"
        )
    return broadcast_in_dim(a, shape, tuple(range(lead, len(shape))))


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Array:
    """`1 / x`. Devices may compute it approximately if asked to."""
    return 1 / x


# -- programs -------------------------------------------------------------------------------------


def lower_as_mlir(
    f: Callable,
    *args: Any,
    dynamic_shapes: bool = False,
    device: Any = None,
    static_argnames: Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    **kwargs: Any,
) -> str:
    """The text of the module that a function is compiled from, for arguments like these."""
    if dynamic_shapes:
        raise NotImplementedError("lower_as_mlir: give known sizes, or use minijax.export.")
    lowered = jit(f, device=device, static_argnames=static_argnames).trace(*args, **kwargs)
    return lowered.lower(lowering_platforms=platforms).as_text()
