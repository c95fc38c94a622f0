"""Signals and sampled functions: convolve, diff, gradient, interp, unwrap, trapezoid, windows.

May import the floors below and most of `numpy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.lax import arithmetic, compare
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.special import bessel_i0e, bessel_i1e
from minijax.numpy import reductions, ufuncs
from minijax.numpy.cumulative import cumsum
from minijax.numpy.division import divide, remainder
from minijax.numpy.joining import joined
from minijax.numpy.logic import not_equal
from minijax.numpy.promotion import (
    axes_of,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    converted,
    known_count,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_one_inexact,
    to_array,
)
from minijax.numpy.ranges import arange
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import flip, moveaxis, ravel, reshaped
from minijax.numpy.sorting import argsort, searchsorted
from minijax.transforms.library import library

__all__ = [
    "bartlett", "blackman", "convolve", "correlate", "diff", "ediff1d", "gradient", "hamming",
    "hanning", "i0", "interp", "kaiser", "trapezoid", "unwrap",
]  # fmt: skip

# -- convolution ------------------------------------------------------------------------------


def _convolve(name, a, v, mode, is_correlation, precision, preferred) -> Any:
    check_arraylike(name, a, v)
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    a, v = promote_dtypes_inexact(to_array(name, a), to_array(name, v))
    if not a.aval.size or not v.aval.size:
        raise ValueError(
            f"{name}: inputs cannot be empty, got shapes {a.aval.shape} and {v.aval.shape}."
        )
    if is_correlation:
        v = ufuncs.conj(v)
    swapped = a.aval.shape[0] < v.aval.shape[0]
    if swapped:
        a, v = v, a
    length = v.aval.shape[0]
    # The operation of XLA correlates: it does not turn its window around.
    if not is_correlation:
        v = flip(v)
    padding = {
        "valid": (0, 0),
        "same": (length // 2, length - length // 2 - 1),
        "full": (length - 1, length - 1),
    }.get(mode)
    if padding is None:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    if is_correlation and swapped:
        padding = padding[::-1]
    out = conv_general_dilated(
        reshaped(a, (1, 1, a.aval.shape[0])), reshaped(v, (1, 1, length)), (1,), [padding],
        precision=precision, preferred_element_type=preferred,
    )  # fmt: skip
    out = reshaped(out, (out.aval.shape[2],))
    return flip(out) if is_correlation and swapped else out


_CONV = ("mode", "precision", "preferred_element_type")


@library(static=_CONV)
def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """The convolution of two vectors; `mode` is "full", "same" or "valid". Source: numpy.convolve."""
    return _convolve("convolve", a, v, mode, False, precision, preferred_element_type)


@library(static=_CONV)
def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """The correlation of two vectors; `mode` is "full", "same" or "valid". Source: numpy.correlate."""
    return _convolve("correlate", a, v, mode, True, precision, preferred_element_type)


# -- differences ------------------------------------------------------------------------------


@library(static=("n", "axis"))
def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis, `n` times. Source: numpy.diff."""
    a = to_array("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not a.aval.ndim:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a!r}")
    axis = axis_of(axis, a.aval.ndim)
    parts = []
    for edge in (prepend, a, append):
        if edge is None:
            continue
        edge = to_array("diff", edge)
        if not edge.aval.ndim:
            sizes = list(a.aval.shape)
            sizes[axis] = 1
            edge = broadcast_to_shape(edge, tuple(sizes))
        parts.append(edge)
    a = joined("diff", parts, axis)
    minus = not_equal if a.aval.dtype == dtypes.bool_ else ufuncs.subtract
    before = (slice(None),) * axis
    for _ in range(n):
        a = minus(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


@library
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array, with ends put on. Source: numpy.ediff1d."""
    ary = ravel(to_array("ediff1d", ary))
    out = ufuncs.subtract(ary[1:], ary[:-1])
    parts = [ravel(converted(to_array("ediff1d", x), out.aval.dtype)) if x is not None else None
             for x in (to_begin, to_end)]  # fmt: skip
    return joined("ediff1d", [x for x in (parts[0], out, parts[1]) if x is not None], 0)


@library(static=("axis", "edge_order"))
def gradient(f, *varargs, axis=None, edge_order=None):
    """Central differences along axes, one-sided at the ends. Source: numpy.gradient.

    `varargs`: the spacing, as one number, one for each axis, or coordinates.
    """
    if edge_order is not None:
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is not supported: leave it out."
        )
    check_arraylike("gradient", f, *varargs)
    f, *spacings = promote_dtypes_inexact(to_array("gradient", f), *varargs)
    axes = axes_of(axis, f.aval.ndim)
    if not axes:
        return []
    if any(f.aval.shape[i] < 2 for i in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are "
            f"required: {f.aval.shape}."
        )
    if not spacings:
        steps = [1.0] * len(axes)
    elif len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        steps = spacings * len(axes)
    elif len(spacings) == len(axes):
        steps = spacings
    else:
        raise TypeError(f"Invalid number of spacing arguments {len(spacings)} for axis={axis}")
    out = [_gradient_along(f, i, step) for i, step in zip(axes, steps, strict=True)]
    return out[0] if len(axes) == 1 else out


def _gradient_along(f: Any, axis: int, step: Any) -> Any:
    lead = (slice(None),) * axis

    def part(start, stop):
        return f[(*lead, slice(start, stop))]

    if np.ndim(step) == 0:
        inner = divide(ufuncs.subtract(part(2, None), part(None, -2)), ufuncs.multiply(2, step))
        first = divide(ufuncs.subtract(part(1, 2), part(0, 1)), step)
        last = divide(ufuncs.subtract(part(-1, None), part(-2, -1)), step)
        return joined("gradient", [first, inner, last], axis)
    steps = diff(to_array("gradient", step))
    if np.ndim(step) != 1 or steps.aval.shape[0] + 1 != f.aval.shape[axis]:
        raise ValueError(
            "Spacing arrays must have the same length as the dimension along which the gradient is "
            "calculated, and be 1D: got shape "
            f"{np.shape(step)} for axis {axis} of {f.aval.shape}."
        )
    grow = (slice(None), *[None] * (f.aval.ndim - axis - 1))
    near, far = steps[:-1][grow], steps[1:][grow]
    a = divide(-far, near * (near + far))
    b = divide(far - near, near * far)
    c = divide(near, far * (near + far))
    inner = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
    first = divide(ufuncs.subtract(part(1, 2), part(0, 1)), steps[0])
    last = divide(ufuncs.subtract(part(-1, None), part(-2, -1)), steps[-1])
    return joined("gradient", [first, inner, last], axis)


@library(static=("axis",))
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoid rule. Source: numpy.trapezoid."""
    if x is None:
        (y,) = promote_dtypes_inexact(to_array("trapezoid", y))
        y = moveaxis(y, axis, -1)
        step = dx
    else:
        y, x = promote_dtypes_inexact(to_array("trapezoid", y), to_array("trapezoid", x, 1))
        if x.aval.ndim == 1:
            step = diff(x)
        else:
            step = moveaxis(diff(x, axis=axis), axis, -1)
        y = moveaxis(y, axis, -1)
    if not np.ndim(step):  # the ends count half
        ends = ufuncs.multiply(0.5, ufuncs.add(y[..., 0], y[..., -1]))
        return ufuncs.multiply(step, ufuncs.subtract(reductions.sum(y, axis=-1), ends))
    total = reductions.sum(ufuncs.multiply(step, ufuncs.add(y[..., 1:], y[..., :-1])), axis=-1)
    return ufuncs.multiply(0.5, total)


@library(static=("axis",))
def unwrap(p, discont=None, axis=-1, period=2 * np.pi):
    """With jumps of more than half a period taken back. Source: numpy.unwrap."""
    p = to_array("unwrap", p)
    if p.aval.dtype.kind == "c":
        raise ValueError("jnp.unwrap does not support complex inputs: unwrap jnp.angle(p).")
    p, _ = promote_dtypes(p, period)
    if discont is None:
        discont = divide(period, 2)
    if dtypes.issubdtype(p.aval.dtype, np.integer):
        interval = period // 2 if isinstance(period, int) else ufuncs.floor(divide(period, 2))
        interval = converted(interval, p.aval.dtype)
    else:
        interval = divide(period, 2)
    axis = axis_of(axis, p.aval.ndim)
    steps = diff(p, axis=axis)
    turned = ufuncs.subtract(remainder(ufuncs.add(steps, interval), period), interval)
    at_edge = compare.and_p.bind(
        compare.eq_p.bind(*_aligned(turned, ufuncs.negative(interval))),
        compare.gt_p.bind(*_aligned(steps, 0)),
    )
    turned = choose_where(at_edge, interval, turned)
    correction = ufuncs.subtract(turned, steps)
    small = compare.lt_p.bind(*_aligned(ufuncs.abs(steps), discont))
    correction = choose_where(small, 0, correction)
    lead = (slice(None),) * axis
    rest = ufuncs.add(p[(*lead, slice(1, None))], cumsum(correction, axis=axis))
    first = p[(*lead, slice(None, 1))]
    return converted(joined("unwrap", [first, rest], axis), p.aval.dtype)


def _aligned(x: Any, y: Any) -> list[Any]:
    return promote_dtypes(x, y)


# -- interpolation ----------------------------------------------------------------------------


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """A function given by points, straight between them. Source: numpy.interp.

    Beyond the points `left` and `right` are given, by default the end values; "extrapolate" follows
    the last straight line. With `period` the points repeat.
    """
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        raise ValueError(
            f"xp and fp must be one-dimensional arrays of equal size: got shapes {np.shape(xp)} "
            f"and {np.shape(fp)}."
        )
    kinds = []
    for name, edge in (("left", left), ("right", right)):
        if isinstance(edge, str) and edge != "extrapolate":
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: {edge!r}"
            )
        kinds.append("extrapolate" if isinstance(edge, str) else None)
    left, right = (None if isinstance(edge, str) else edge for edge in (left, right))
    return _interp(x, xp, fp, left, right, period, tuple(kinds))


@library(static=("kinds",))
def _interp(x, xp, fp, left, right, period, kinds):
    check_arraylike("interp", x, xp, fp)
    x, xp = promote_dtypes_inexact(x, xp)
    (fp,) = promote_dtypes_inexact(fp)
    if dtypes.dtype(x).kind == "c":
        raise ValueError("jnp.interp: complex x values not supported.")
    x, xp, fp = (to_array("interp", value) for value in (x, xp, fp))
    if period is not None:
        if np.ndim(period):
            raise ValueError(f"period must be a scalar; got {period}")
        period = ufuncs.abs(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = joined("interp", [xp[-1:] - period, xp, xp[:1] + period], 0)
        fp = joined("interp", [fp[-1:], fp, fp[:1]], 0)
    place = ufuncs.clip(searchsorted(xp, x, side="right"), 1, xp.aval.shape[0] - 1)
    rise = fp[place] - fp[place - 1]
    run = xp[place] - xp[place - 1]
    ahead = x - xp[place - 1]
    tiny = np.spacing(dtypes.finfo(xp.aval.dtype).eps).item()
    flat = ufuncs.abs(run) <= tiny
    safe = choose_where(flat, 1, run)
    out = choose_where(flat, fp[place - 1], fp[place - 1] + (ahead / safe) * rise)
    if period is not None:
        return out
    if kinds[0] is None:
        out = choose_where(x < xp[0], fp[0] if left is None else left, out)
    if kinds[1] is None:
        out = choose_where(x > xp[-1], fp[-1] if right is None else right, out)
    return out


# -- windows ----------------------------------------------------------------------------------


@library
def i0(x):
    """The modified Bessel function of order zero. ValueError for complex. Source: numpy.i0."""
    x = promote_one_inexact("i0", x)
    if not dtypes.issubdtype(x.aval.dtype, np.floating):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {x.aval.dtype}")
    return _i0(x)


@custom_jvp
def _i0(x):
    size = arithmetic.abs(x)
    return arithmetic.mul_p.bind(ufuncs.exp(size), bessel_i0e(size))


@_i0.defjvp
def _(primals, tangents):  # by the chain rule the corner of abs would show at zero
    (x,), (t,) = primals, tangents
    slope = arithmetic.mul_p.bind(ufuncs.exp(arithmetic.abs(x)), bessel_i1e(x))
    return _i0(x), arithmetic.mul_p.bind(t, slope)


def _window(name: str, count: Any) -> tuple[Array, int]:
    count = known_count(count, f"M of {name}")
    if count < 0:
        raise TypeError(f"{name}: the number of points must be nonnegative, got M={count}.")
    if count <= 1:
        return broadcast_to_shape(np.ones((), dtypes.float_())[()], (count,)), count
    return arange(count, dtype=dtypes.float_()), count


def bartlett(M: int) -> Array:
    """The triangular window of M points. Source: numpy.bartlett."""
    n, count = _window("bartlett", M)
    if count <= 1:
        return n
    return 1 - ufuncs.abs(2 * n + 1 - count) / (count - 1)


def _cosines(name: str, count: Any, weights: Sequence[float]) -> Array:
    n, count = _window(name, count)
    if count <= 1:
        return n
    out = weights[0]
    for i, weight in enumerate(weights[1:], 1):
        out = out + weight * ufuncs.cos(2 * i * np.pi * n / (count - 1))
    return out


def blackman(M: int) -> Array:
    """The Blackman window of M points. Source: numpy.blackman."""
    return _cosines("blackman", M, (0.42, -0.5, 0.08))


def hamming(M: int) -> Array:
    """The Hamming window of M points. Source: numpy.hamming."""
    return _cosines("hamming", M, (0.54, -0.46))


def hanning(M: int) -> Array:
    """The Hann window of M points. Source: numpy.hanning."""
    return _cosines("hanning", M, (0.5, -0.5))


def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of M points with parameter beta. Source: numpy.kaiser."""
    n, count = _window("kaiser", M)
    if count <= 1:
        return n
    alpha = 0.5 * (count - 1)
    root = ufuncs.sqrt(1 - ((n - alpha) / alpha) ** 2.0)
    return i0(beta * root) / i0(beta)
