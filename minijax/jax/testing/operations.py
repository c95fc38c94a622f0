"""A stand-in for `jax._src.internal_test_util.lax_test_util`: the operations of `lax` as data.

A suite takes each record's name from `lax` and from `lax_reference`, draws operands by
`rng_factory`, and compares the two within `tol`. How many operands an operation has, and of which
dtypes, `lax` is asked; where its operands are drawn from and how near the results come stand here.
Those of its operations that no reference has are left out.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import minijax
from minijax import lax
from minijax.jax.testing import inputs, reference, reference_windows
from minijax.jax.testing.widening import kind_of

__all__ = [
    "NamedReducerOpRecord", "OpRecord", "ReducerOpRecord", "add_bdim", "all_bdims", "all_dtypes",
    "args_slicer", "bool_dtypes", "compatible_shapes", "complex_dtypes", "complex_elem_dtypes",
    "default_dtypes", "float_dtypes", "inexact_dtypes", "int_dtypes", "lax_named_reduce_ops",
    "lax_ops", "lax_out_dtype_ops", "lax_reduce_ops", "number_dtypes", "op_record",
    "python_scalar_types", "slicer", "uint_dtypes",
]  # fmt: skip

# Shapes that broadcast against each other, by group; a case takes one from a group for each operand.
compatible_shapes = [[(4,)], [(2, 3), (2, 1), (1, 3)], [(3, 2, 4), (3, 1, 4)]]

# Groups of dtypes, of the widths that are supported.
float_dtypes = inputs.dtypes.all_floating
complex_elem_dtypes = inputs.dtypes.floating
complex_dtypes = inputs.dtypes.complex
inexact_dtypes = float_dtypes + complex_dtypes
int_dtypes = inputs.dtypes.all_integer
uint_dtypes = inputs.dtypes.all_unsigned
bool_dtypes = inputs.dtypes.boolean
default_dtypes = float_dtypes + int_dtypes
number_dtypes = inexact_dtypes + int_dtypes + uint_dtypes
all_dtypes = number_dtypes + bool_dtypes
python_scalar_types = [bool, int, float, complex]


class OpRecord(NamedTuple):
    """An operation on elements, by name; `tol` is None where results come as near as they may."""

    op: str
    nargs: int
    dtypes: list[Any]
    rng_factory: Callable[[np.random.RandomState], Callable]
    tol: dict[Any, float] | float | None


class NamedReducerOpRecord(NamedTuple):
    """A reduction of `lax` with a name of its own, and NumPy's: both of an array and axes."""

    op: Callable
    reference_op: Callable
    dtypes: list[Any]


class ReducerOpRecord(NamedTuple):
    """A function that `lax.reduce` takes: NumPy's counterpart, its identity, and its primitive."""

    op: Callable
    reference_op: Callable
    init_val: Any
    dtypes: list[Any]
    primitive: Any


def op_record(
    op: str, nargs: int, dtypes: list[Any], rng_factory: Callable, tol: Any = None
) -> OpRecord:
    """A record of an operation on elements."""
    return OpRecord(op, nargs, dtypes, rng_factory, tol)


# Where operands are drawn from. One maker draws all of an operation's operands.

_unit = partial(inputs.rand_uniform, low=-0.9, high=0.9)
_shares = partial(inputs.rand_uniform, low=0.1, high=0.9)  # both shapes and the place of betainc
_moderate = partial(inputs.rand_default, scale=1)  # exponentials of these have no infinities
_orders = partial(inputs.rand_int, low=1, high=5)
_MAKERS: dict[str, Callable] = {
    name: maker
    for names, maker in (
        ("abs neg square floor ceil round sign real imag conj complex", inputs.rand_default),
        ("add sub mul max min nextafter", inputs.rand_default),
        ("is_finite", inputs.rand_some_inf_and_nan),
        ("eq ne ge gt le lt", inputs.rand_some_zero),  # many are equal
        ("div rem reciprocal", inputs.rand_nonzero),
        ("sin cos tan atan asinh tanh atan2 cbrt", inputs.rand_default),
        ("logistic erf erfc bessel_i0e bessel_i1e", inputs.rand_default),
        ("exp exp2 expm1 sinh cosh", _moderate),
        ("sqrt rsqrt log log1p acosh pow", inputs.rand_positive),
        ("lgamma digamma igamma igammac", inputs.rand_positive),
        ("asin acos atanh erf_inv", _unit),
        ("betainc", _shares),
        ("polygamma", _orders),
        ("zeta", partial(inputs.rand_uniform, low=1.5, high=5.0)),
        ("bitwise_and bitwise_or bitwise_xor bitwise_not", inputs.rand_fullrange),
        ("population_count clz mulhi", inputs.rand_fullrange),
        ("shift_left shift_right_arithmetic shift_right_logical", inputs.rand_default),
    )
    for name in names.split()
}
# How far the results of XLA on a CPU may be from the true ones, where that is more than others may.
_HALVES = {ml_dtypes.bfloat16: 2e-2, np.float16: 3e-3}  # computed within the narrow dtype
_COMPLEX = {np.complex64: 5e-6, np.complex128: 1e-14}
_TOLERANCES: dict[str, dict[Any, float]] = {
    name: bounds
    for names, bounds in (
        ("acos acosh asin asinh", _HALVES),
        ("atanh", {**_HALVES, np.float64: 3e-14}),
        ("exp2", {ml_dtypes.bfloat16: 6e-2, np.float16: 8e-3}),
        ("sin cos tan sinh cosh tanh expm1 logistic atan2 div pow", _COMPLEX),
        ("betainc digamma igamma igammac lgamma", {np.float32: 1e-5, np.float64: 3e-14}),
        ("polygamma zeta erf_inv bessel_i0e bessel_i1e", {np.float32: 5e-6, np.float64: 1e-14}),
    )
    for name in names.split()
}


# What `lax` is asked.


def _takes(function: Callable, *shapes: tuple[int, ...]) -> Callable[[Any], bool]:
    """Whether a function of `lax` takes arrays of a dtype."""

    def asked(dtype: Any) -> bool:
        try:
            minijax.eval_shape(function, *(minijax.ShapeDtypeStruct(s, dtype) for s in shapes))
        except TypeError:
            return False
        return True

    return asked


def _count(function: Callable) -> int:
    """Return how many arguments a function must be given."""
    parameters = inspect.signature(function).parameters.values()
    return sum(parameter.default is parameter.empty for parameter in parameters)


def lax_ops() -> list[OpRecord]:
    """A record of each operation on elements."""
    found = []
    for name, maker in sorted(_MAKERS.items()):
        function = getattr(lax, name)
        nargs = _count(function)
        taken = list(filter(_takes(function, *[()] * nargs), all_dtypes))
        found.append(op_record(name, nargs, taken, maker, _TOLERANCES.get(name)))
    return found


def lax_out_dtype_ops() -> list[OpRecord]:
    """Records of the operations whose result may be asked for in another dtype, by `out_dtype`."""
    return [
        record
        for record in lax_ops()
        if "out_dtype" in inspect.signature(getattr(lax, record.op)).parameters
    ]


# Reductions.


def _lowest(kind: np.dtype) -> Any:
    if kind_of(kind) in "iu":
        return int(ml_dtypes.iinfo(kind).min)
    return False if kind == np.bool_ else -math.inf


def _highest(kind: np.dtype) -> Any:
    if kind_of(kind) in "iu":
        return int(ml_dtypes.iinfo(kind).max)
    return True if kind == np.bool_ else math.inf


def _all_bits(kind: np.dtype) -> Any:
    return _highest(kind) if kind_of(kind) in "bu" else -1


# The name of the function, of the reduction, and the number that changes nothing, by dtype.
_REDUCERS: list[tuple[str, str, Callable[[np.dtype], Any]]] = [
    ("add", "reduce_sum", lambda kind: 0),
    ("mul", "reduce_prod", lambda kind: 1),
    ("max", "reduce_max", _lowest),
    ("min", "reduce_min", _highest),
    ("bitwise_and", "reduce_and", _all_bits),
    ("bitwise_or", "reduce_or", lambda kind: 0),
    ("bitwise_xor", "reduce_xor", lambda kind: 0),
]


def lax_reduce_ops() -> list[ReducerOpRecord]:
    """Records of what `lax.reduce` may be given, one for each identity."""
    found = []
    for name, reduction, identity in _REDUCERS:
        op, primitive = getattr(lax, name), getattr(lax, reduction + "_p")
        by_identity: dict[Any, list[Any]] = {}
        for dtype in filter(_takes(op, (), ()), all_dtypes):
            value = identity(np.dtype(dtype))
            by_identity.setdefault((type(value), value), []).append(dtype)
        found += [
            ReducerOpRecord(op, getattr(reference, name), value, taken, primitive)
            for (_, value), taken in by_identity.items()
        ]
    return found


def _reference(name: str, identity: Callable) -> Callable:
    def reduced(operand, axis):
        x = np.asarray(operand)
        axes = (axis,) if isinstance(axis, int) else axis
        return reference_windows.reduce(x, identity(x.dtype), getattr(reference, name), axes)

    return reduced


def lax_named_reduce_ops() -> list[NamedReducerOpRecord]:
    """Records of `lax.reduce_sum` and its like."""
    found = []
    for name, reduction, identity in _REDUCERS:
        op = getattr(lax, reduction)
        taken = list(filter(_takes(lambda x, op=op: op(x, (0,)), (2,)), all_dtypes))
        found.append(NamedReducerOpRecord(op, _reference(name, identity), taken))
    return found


# Batched operands: an axis of the batch at every place, or none.


def add_bdim(bdim_size: int, bdim: int | None, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with an axis of this size at a place; None is no place."""
    sizes = list(shape)
    if bdim is not None:
        sizes.insert(bdim, bdim_size)
    return tuple(sizes)


def all_bdims(*shapes: Sequence[int]) -> Iterator[tuple[int | None, ...]]:
    """All choices of a place, or None, for each shape, but for that of None for all of them."""
    places = ([None, *range(len(shape) + 1)] for shape in shapes)
    return (dims for dims in itertools.product(*places) if any(dim is not None for dim in dims))


def slicer(x: Any, bdim: int | None) -> Callable[[int], Any]:
    """The function of `i` that gives the element `i` of a batch; all of `x` where there is none."""
    if bdim is None:
        return lambda i: x
    before = (slice(None),) * (bdim % np.ndim(x))
    return lambda i: x[(*before, i)]


def args_slicer(args: Sequence[Any], bdims: Sequence[int | None]) -> Callable[[int], list[Any]]:
    """`slicer` of several operands."""
    slicers = [slicer(x, bdim) for x, bdim in zip(args, bdims, strict=True)]
    return lambda i: [one(i) for one in slicers]
