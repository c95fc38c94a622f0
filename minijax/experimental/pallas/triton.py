"""`experimental.pallas.triton`: what kernels for GPUs that go through Triton name.

Interpreted, steps run one after the other: each update is atomic, and a barrier waits for nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import minijax.numpy as jnp
from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.lax import dot_general, tanh
from minijax.lax.pallas import specs
from minijax.lax.ref_views import view_of
from minijax.lax.refs import checked_value
from minijax.namespace import shown

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot",
    "elementwise_inline_asm", "load", "max_contiguous", "store",
]  # fmt: skip

__dir__ = shown(__name__)


@dataclasses.dataclass(frozen=True)
class CompilerParams(specs.CompilerParams):
    """Options of the compiler for GPUs; without effect where kernels are interpreted."""

    num_warps: int | None = None
    num_stages: int | None = None


# -- reading and writing references ---------------------------------------------------------------


def load(
    ref: Any,
    *,
    mask: Array | None = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """Load the value of a reference, and `other` where `mask` is false.

    Without `other`, elements that are masked are unspecified. The remaining options say how a GPU
    caches them. ValueError for a mask that does not broadcast to the reference.
    """
    value = view_of(ref).get()
    mask = _mask(mask, value.shape)
    if mask is None or other is None:
        return value
    return jnp.where(mask, value, other)


def store(
    ref: Any, val: Array, *, mask: Array | None = None, eviction_policy: str | None = None
) -> None:
    """Write to a reference, where `mask` is true."""
    view = view_of(ref)
    val, mask = checked_value("swap", view.aval, val), _mask(mask, view.shape)
    view.set(val if mask is None else jnp.where(mask, val, view.get()))


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    if mask is None:
        return None
    given = np.shape(mask)
    sizes = shape[len(shape) - len(given) :]
    if len(given) > len(shape) or any(m not in (1, n) for m, n in zip(given, sizes, strict=True)):
        raise ValueError(f"Cannot broadcast mask shape {given} to load shape {shape}")
    return mask


# -- updates --------------------------------------------------------------------------------------


def _update(ref: Any, idx: Any, val: Any, mask: Any, change: Callable) -> Array:
    """Write what `change` makes of the elements at an index and `val`; return what they were."""
    part = view_of(ref).at[idx]
    old = part.get()
    val, mask = checked_value("swap", old.aval, val), _mask(mask, old.shape)
    new = change(old, val)
    part.set(new if mask is None else jnp.where(mask, new, old))
    return old


def atomic_add(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Add to the elements at an index where `mask` is true; return what they were."""
    return _update(x_ref_or_view, idx, val, mask, jnp.add)


def atomic_and(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Keep the bits that `val` has at an index where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, jnp.bitwise_and)


def atomic_max(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Write the greater of an element and `val` where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, jnp.maximum)


def atomic_min(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Write the lesser of an element and `val` where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, jnp.minimum)


def atomic_or(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Set the bits that `val` has at an index where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, jnp.bitwise_or)


def atomic_xchg(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Write `val` at an index where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, lambda old, val: val)


def atomic_xor(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Flip the bits that `val` has at an index where `mask` is true; return what was there."""
    return _update(x_ref_or_view, idx, val, mask, jnp.bitwise_xor)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Array:
    """Write `val` if a reference to a scalar holds `cmp`; return what it held."""
    if view_of(ref).shape:
        raise ValueError(f"ref must be scalar, got one of shape {view_of(ref).shape}.")
    return _update(ref, ..., val, None, lambda old, val: jnp.where(old == cmp, val, old))


def debug_barrier() -> None:
    """Wait for the other threads of a step; interpreted, there are none."""


# -- arithmetic and hints -------------------------------------------------------------------------


def approx_tanh(x: Array) -> Array:
    """`tanh` of a floating-point array, which a GPU may approximate. TypeError for another."""
    dtype = get_aval(x).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"approx_tanh does not accept {dtype.name} arrays")
    return tanh(x)


def dot(
    a: Array,
    b: Array,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Array:
    """Return the product of two matrices, either of which may be transposed, in float32 or int32.

    `allow_tf32` says in place of `precision` whether a GPU may round float32 to tf32.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(
            f"`a` and `b` must be 2D arrays, got shapes {tuple(a.shape)} and {tuple(b.shape)}."
        )
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = "high" if allow_tf32 else "highest"
    exact = dtypes.issubdtype(a.dtype, np.integer)
    return dot_general(
        a,
        b,
        (([0 if trans_a else 1], [1 if trans_b else 0]), ([], [])),
        precision=precision,
        preferred_element_type=np.int32 if exact else np.float32,
    )


def max_contiguous(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, of which a compiler may believe that so many elements along each axis are neighbours."""
    return x


def elementwise_inline_asm(
    asm: str,
    *,
    args: Sequence[Array],
    constraints: str,
    pack: int,
    result_shape_dtypes: Sequence[Any],
) -> NoReturn:
    """Raise NotImplementedError: the assembly code is a GPU's, and kernels are interpreted."""
    raise NotImplementedError(
        "elementwise_inline_asm runs code of a GPU's, and minijax interprets kernels: compute its "
        f"results with functions of arrays in place of {asm!r}."
    )
