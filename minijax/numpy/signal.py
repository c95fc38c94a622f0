"""Signals and sampled functions: convolve, diff, gradient, interp, unwrap, trapezoid, windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_count
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.features.library import library
from minijax.lax import arithmetic, compare
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.precision import PrecisionLike
from minijax.lax.special import bessel_i0e, bessel_i1e
from minijax.numpy import reductions, ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.cumulative import cumsum
from minijax.numpy.division import divide, remainder
from minijax.numpy.joining import joined
from minijax.numpy.logic import not_equal
from minijax.numpy.promotion import (
    axes_of,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_ranks,
    converted,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_one_inexact,
    to_array,
)
from minijax.numpy.ranges import arange
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import flip, moveaxis, ravel, reshaped
from minijax.numpy.sorting import argsort, searchsorted
from minijax.typing import ArrayLike, DTypeLike

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
    out = conv_general_dilated(
        reshaped(a, (1, 1, a.aval.shape[0])), reshaped(v, (1, 1, length)), (1,), [padding],
        precision=precision, preferred_element_type=preferred,
    )  # fmt: skip
    out = reshaped(out, (out.aval.shape[2],))
    return flip(out) if is_correlation and swapped else out


_CONV = ("mode", "precision", "preferred_element_type")


@library(static=_CONV)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve two vectors.

    - `a`, `v`: numeric arrays of shapes (m,) and (n,), not empty.
    - `mode`: "full" (the default), "same", or "valid" for complete overlap only.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns an array of shape (m + n - 1,), (max(m, n),) or (|m - n| + 1,), of an inexact dtype.
    ValueError for other dimensions, empty vectors or an unknown mode. Source: NumPy's `convolve`.

    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, False, precision, preferred_element_type)


@library(static=_CONV)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Correlate two vectors: convolve the first with the reversed conjugate of the second.

    - `a`, `v`: numeric arrays of shapes (m,) and (n,), not empty.
    - `mode`: "valid" (the default) for complete overlap only, "same", or "full".
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns an array of shape (|m - n| + 1,), (max(m, n),) or (m + n - 1,), of an inexact dtype.
    ValueError for other dimensions, empty vectors or an unknown mode. Source: NumPy's `correlate`.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
    Array([2., 3.], dtype=float32)
    """
    return _convolve("correlate", a, v, mode, True, precision, preferred_element_type)


# -- differences ------------------------------------------------------------------------------


@library(static=("n", "axis"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Compute the differences of neighbouring elements along an axis.

    - `a`: array of at least one dimension.
    - `n`: an int, how often, 1 by default; `axis`: an int, -1 by default.
    - `prepend`, `append`: scalars or arrays to put before and after `a` along the axis first.

    Returns an array whose axis is n elements shorter; boolean for booleans. ValueError for scalars
    or negative `n`. Source: NumPy's `diff`.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
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
    for _ in range(min(n, a.aval.shape[axis] or 1)):  # none is left after as many
        a = minus(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


@library
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Compute the differences of neighbouring elements of a flattened array.

    - `ary`: numeric array of any shape.
    - `to_begin`, `to_end`: arrays to put before and after the differences.

    Returns an array of shape (count,) and of the dtype of `ary`. Source: NumPy's `ediff1d`.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=jnp.array([0]))
    Array([0, 3, 5], dtype=int32)
    """
    ary = ravel(to_array("ediff1d", ary))
    out = ufuncs.subtract(ary[1:], ary[:-1])
    parts = [ravel(converted(to_array("ediff1d", x), out.aval.dtype)) if x is not None else None
             for x in (to_begin, to_end)]  # fmt: skip
    return joined("ediff1d", [x for x in (parts[0], out, parts[1]) if x is not None], 0)


@library(static=("axis", "edge_order"), whole=True)
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """Compute derivatives along axes by central differences, one-sided at the ends.

    - `f`: array with at least two elements along each axis.
    - `*varargs`: spacing of the points: one scalar for all axes, or for each axis a scalar or a
      vector of coordinates.
    - `axis`: an int, a sequence of ints, or None for all axes; `edge_order`: must be None.

    Returns an array of the shape of `f`, or a list of them for several axes, in an inexact dtype.
    ValueError if an axis is too short, TypeError for another number of spacings,
    NotImplementedError for an `edge_order`. Source: NumPy's `gradient`.

    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is not supported. Leave it out."
        )
    check_arraylike("gradient", f, *varargs)
    f, *spacings = promote_dtypes_inexact(to_array("gradient", f), *varargs)
    given = axis if isinstance(axis, (tuple, list)) else [axis]
    axes = tuple(itertools.chain.from_iterable([axes_of(i, f.aval.ndim) for i in given]))
    if not axes:
        return []
    if any(f.aval.shape[i] < 2 for i in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are "
            f"required. Its shape is {f.aval.shape}."
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
            f"calculated. They must be 1D; got shape {np.shape(step)} for axis {axis} of {f.aval.shape}."
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
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate along an axis by the trapezoid rule.

    - `y`: numeric array of shape (..., n, ...).
    - `x`: array of shape (n,) or of the shape of `y`, the points; `dx`: their distance otherwise.
    - `axis`: an int, -1 by default.

    Returns an array of the shape of `y` without the axis, of an inexact dtype. Source: NumPy's
    `trapezoid`.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 4.0]))
    Array(4.5, dtype=float32)
    """
    if x is None:
        (y,) = promote_dtypes_inexact(to_array("trapezoid", y))
        y = moveaxis(y, axis, -1)
        step = asarray(dx)
    else:
        y, x = promote_dtypes_inexact(to_array("trapezoid", y), to_array("trapezoid", x, 1))
        if x.aval.ndim == 1:
            step = diff(x)
        else:
            step = moveaxis(diff(x, axis=axis), axis, -1)
        y = moveaxis(y, axis, -1)
        check_ranks("trapezoid", step, y)
    if not np.ndim(step):  # the ends count half
        ends = ufuncs.multiply(0.5, ufuncs.add(y[..., 0], y[..., -1]))
        return ufuncs.multiply(step, ufuncs.subtract(reductions.sum(y, axis=-1), ends))
    total = reductions.sum(ufuncs.multiply(step, ufuncs.add(y[..., 1:], y[..., :-1])), axis=-1)
    return ufuncs.multiply(0.5, total)


@library(static=("axis",), whole=True)
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi
) -> Array:
    """Undo jumps of more than half a period along an axis by adding multiples of the period.

    - `p`: real array of shape (..., n, ...).
    - `discont`: least jump to undo, half a period by default.
    - `axis`: an int, -1 by default; `period`: scalar, 2 pi by default.

    Returns an array of the shape of `p`. ValueError for complex input. Source: NumPy's `unwrap`.

    >>> jnp.unwrap(jnp.array([0, 3, 1]), period=4)
    Array([ 0, -1, -3], dtype=int32)
    """
    p = to_array("unwrap", p)
    if p.aval.dtype.kind == "c":
        raise ValueError("jnp.unwrap does not support complex inputs. Unwrap jnp.angle(p).")
    p, _ = promote_dtypes(p, period)
    if discont is None:
        discont = divide(period, 2)
    if dtypes.issubdtype(p.aval.dtype, np.integer):
        interval = period // 2 if isinstance(period, int) else ufuncs.floor(divide(period, 2))
        interval = converted(interval, p.aval.dtype)
    else:
        interval = divide(period, 2)
    axis = axis_of(axis, p.aval.ndim)
    if not p.aval.shape[axis]:
        return p
    steps = diff(p, axis=axis)
    turned = ufuncs.subtract(remainder(ufuncs.add(steps, interval), period), interval)
    at_edge = compare.and_p.bind(
        compare.eq_p.bind(*promote_dtypes(turned, ufuncs.negative(interval))),
        compare.gt_p.bind(*promote_dtypes(steps, 0)),
    )
    turned = choose_where(at_edge, interval, turned)
    correction = ufuncs.subtract(turned, steps)
    small = compare.lt_p.bind(*promote_dtypes(ufuncs.abs(steps), discont))
    correction = choose_where(small, 0, correction)
    lead = (slice(None),) * axis
    rest = ufuncs.add(p[(*lead, slice(1, None))], cumsum(correction, axis=axis))
    first = p[(*lead, slice(None, 1))]
    return converted(joined("unwrap", [first, rest], axis), p.aval.dtype)


# -- interpolation ----------------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between given points.

    - `x`: real array of any shape, where to evaluate.
    - `xp`, `fp`: arrays of shape (n,), the points; `xp` in ascending order unless `period` is
      given.
    - `left`, `right`: values beyond the points, by default those at the ends; or "extrapolate".
    - `period`: scalar, the period of `xp`.

    Returns an array of the shape of `x`, of an inexact dtype. ValueError if `xp` and `fp` do not
    have one such shape, for complex `x` or `xp`, or for other strings. Source: NumPy's `interp`.

    >>> jnp.interp(jnp.array([0.5, 9.0]), jnp.array([0.0, 1.0]), jnp.array([10.0, 20.0]))
    Array([15., 20.], dtype=float32)
    """
    check_arraylike("interp", x, xp, fp)
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


@library(static=("kinds",), whole=True)
def _interp(x, xp, fp, left, right, period, kinds):
    check_arraylike("interp", x, xp, fp)
    x, xp = promote_dtypes_inexact(x, xp)
    (fp,) = promote_dtypes_inexact(fp)
    check_dtypes(x, fp)
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
def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, of order zero.

    - `x`: real array of any shape.

    Returns a floating-point array of the shape of `x`. ValueError for complex input. Source:
    NumPy's `i0`.

    >>> jnp.i0(jnp.array([0.0])).round()
    Array([1.], dtype=float32)
    """
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
    count = known_count(count, f"M argument of jnp.{name}")
    if count < 0:
        raise TypeError(f"{name}: the number of points must be nonnegative, got M={count}.")
    if count <= 1:
        return broadcast_to_shape(np.ones((), dtypes.float_())[()], (count,)), count
    return arange(count, dtype=dtypes.float_()), count


def bartlett(M: int) -> Array:
    """Return the triangular window.

    - `M`: an int, the number of points.

    Returns a float array of shape (M,) that begins and ends with zero. TypeError if `M` is
    negative. Source: NumPy's `bartlett`.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
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
    """Return the Blackman window.

    - `M`: an int, the number of points.

    Returns a float array of shape (M,) that begins and ends near zero. TypeError if `M` is
    negative. Source: NumPy's `blackman`.

    >>> jnp.abs(jnp.blackman(3)).round()
    Array([0., 1., 0.], dtype=float32)
    """
    return _cosines("blackman", M, (0.42, -0.5, 0.08))


def hamming(M: int) -> Array:
    """Return the Hamming window.

    - `M`: an int, the number of points.

    Returns a float array of shape (M,) that begins and ends with 0.08. TypeError if `M` is
    negative. Source: NumPy's `hamming`.

    >>> jnp.hamming(3)[1].round()
    Array(1., dtype=float32)
    """
    return _cosines("hamming", M, (0.54, -0.46))


def hanning(M: int) -> Array:
    """Return the Hann window.

    - `M`: an int, the number of points.

    Returns a float array of shape (M,) that begins and ends with zero. TypeError if `M` is
    negative. Source: NumPy's `hanning`.

    >>> jnp.hanning(3).round()
    Array([0., 1., 0.], dtype=float32)
    """
    return _cosines("hanning", M, (0.5, -0.5))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return the Kaiser window.

    - `M`: an int, the number of points.
    - `beta`: scalar, the shape parameter; 0 gives ones.

    Returns a float array of shape (M,). TypeError if `M` is negative. Source: NumPy's `kaiser`.

    >>> jnp.kaiser(3, 0.0).round()
    Array([1., 1., 1.], dtype=float32)
    """
    n, count = _window("kaiser", M)
    if count <= 1:
        return n
    alpha = 0.5 * (count - 1)
    root = ufuncs.sqrt(1 - ((n - alpha) / alpha) ** 2.0)
    return i0(beta * root) / i0(beta)
