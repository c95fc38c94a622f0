"""Inputs for tests written for JAX: groups of dtypes, shapes, random arrays.

`testing` shows these names as those of `jax._src.test_util`; the same seeds give the same inputs as
there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import minijax
from minijax import dtypes as _dtypes
from minijax import tree_util

__all__ = [
    "NUMPY_SCALAR_SHAPE", "NotPresent", "PYTHON_SCALAR_SHAPE", "ScalarShape",
    "complex_plane_sample", "dtype_str", "dtypes", "format_shape_dtype_string", "is_sequence",
    "is_valid_shape", "num_float_bits", "rand_bool", "rand_default", "rand_fullrange",
    "rand_indices_unique_along_axis", "rand_int", "rand_like", "rand_nonzero", "rand_not_small",
    "rand_positive", "rand_small", "rand_small_positive", "rand_some_equal", "rand_some_inf",
    "rand_some_inf_and_nan", "rand_some_nan", "rand_some_zero", "rand_uniform", "rand_unique_int",
    "supported_dtypes", "to_default_dtype", "with_jax_dtype_defaults",
]  # fmt: skip

Generator = Callable[..., Any]


# Shapes.


class ScalarShape:
    """A shape that says which kind of scalar is meant; it has no axes."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, i: Any) -> int:
        raise IndexError(f"index {i} out of range: a scalar has no axes.")


class _NumpyScalar(ScalarShape):
    pass


class _PythonScalar(ScalarShape):
    pass


class NotPresent:
    """Stands in place of an argument that is not given."""

    def __repr__(self) -> str:
        return "<not present>"


NUMPY_SCALAR_SHAPE = _NumpyScalar()
PYTHON_SCALAR_SHAPE = _PythonScalar()


def _dims_of_shape(shape: Any) -> Any:
    """The axes of a shape; a number stands for one axis."""
    if isinstance(shape, ScalarShape):
        return ()
    if isinstance(shape, (tuple, list)):
        return shape
    return (shape,)


def _cast_to_shape(value: Any, shape: Any, dtype: Any) -> Any:
    """`value` as the kind of value that `shape` stands for."""
    if shape is NUMPY_SCALAR_SHAPE:
        return np.dtype(dtype).type(value)
    if shape is PYTHON_SCALAR_SHAPE:
        return np.asarray(value).item() if np.dtype(dtype).kind != "V" else _python(value, dtype)
    dims = tuple(_dims_of_shape(shape))
    if np.shape(value) != dims:
        raise AssertionError(f"a value of shape {np.shape(value)} is no {dims}")
    return value


def _python(value: Any, dtype: Any) -> Any:
    kind = int if _dtypes.issubdtype(dtype, np.integer) else float
    return kind(np.asarray(value).astype(np.float64))


def is_valid_shape(shape: Any, dtype: Any) -> bool:
    """Whether there are such values: a Python scalar is only of Python's own three or four types."""
    return shape is not PYTHON_SCALAR_SHAPE or dtype in (bool, int, float, complex) or (
        dtype is not None and np.dtype(dtype).type in (np.bool_, np.int_, np.float64, np.complex128)
    )  # fmt: skip


def dtype_str(dtype: Any) -> str:
    """The name of a dtype."""
    return np.dtype(dtype).name


def format_shape_dtype_string(shape: Any, dtype: Any) -> str:
    """A shape and dtype for the name of a test, as `float32[2,3]`, `float32`, or `pyfloat32`."""
    if isinstance(dtype, (tuple, list)):
        hash(dtype)  # TypeError, as upstream
    name = dtype_str(dtype)
    if shape is NUMPY_SCALAR_SHAPE:
        return name
    if shape is PYTHON_SCALAR_SHAPE:
        return "py" + name
    return f"{name}[{','.join(str(d) for d in _dims_of_shape(shape))}]"


def is_sequence(x: Any) -> bool:
    """Whether it can be iterated over."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


# Dtypes.


def supported_dtypes() -> set[Any]:
    """The dtypes of arrays on this platform that tests walk through, under the current x64 mode."""
    kinds = {
        np.bool_, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.float16,
        np.float32, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4,
    }  # fmt: skip
    if minijax.config.jax_enable_x64:
        kinds |= {np.int64, np.uint64, np.float64, np.complex128}
    return kinds


class _LazyDtypes:
    """Lists of the supported dtypes, made when they are first asked for."""

    def supported(self, dtypes: Sequence[Any]) -> list[Any]:
        """Return those of `dtypes` that the platform has."""
        found = supported_dtypes()
        return [dtype for dtype in dtypes if dtype in found]


_GROUPS: dict[str, tuple] = {
    "custom_floats": (ml_dtypes.bfloat16,),
    "floating": (np.float32, np.float64),
    "all_floating": (ml_dtypes.bfloat16, np.float16, np.float32, np.float64),
    "integer": (np.int32, np.int64),
    "all_integer": (np.int8, np.int16, np.int32, np.int64),
    "unsigned": (np.uint32, np.uint64),
    "all_unsigned": (np.uint8, np.uint16, np.uint32, np.uint64),
    "complex": (np.complex64, np.complex128),
    "boolean": (np.bool_,),
}
_UNIONS = {
    "inexact": ("floating", "complex"),
    "all_inexact": ("all_floating", "complex"),
    "numeric": ("floating", "integer", "unsigned", "complex"),
    "all": ("all_floating", "all_integer", "all_unsigned", "complex", "boolean"),
}


def _group(name: str) -> functools.cached_property:
    names = _UNIONS.get(name, (name,))
    found = functools.cached_property(
        lambda self: self.supported([kind for part in names for kind in _GROUPS[part]])
    )
    found.__set_name__(_LazyDtypes, name)
    return found


for _name in (*_GROUPS, *_UNIONS):
    setattr(_LazyDtypes, _name, _group(_name))
dtypes: Any = _LazyDtypes()


def num_float_bits(dtype: Any) -> int:
    """The width of a float, or of a part of a complex dtype."""
    return int(_dtypes.finfo(_dtypes.canonicalize_dtype(dtype)).bits)


_DEFAULTS = {
    np.signedinteger: np.int64, np.unsignedinteger: np.uint64,
    np.floating: np.float64, np.complexfloating: np.complex128,
}  # fmt: skip


def to_default_dtype(arr: Any) -> np.ndarray:
    """A NumPy array of the dtype that JAX takes by default for this kind of number."""
    value = np.asarray(arr)
    wide = next((v for k, v in _DEFAULTS.items() if np.issubdtype(value.dtype, k)), None)
    return value if wide is None else value.astype(_dtypes.canonicalize_dtype(wide))


def with_jax_dtype_defaults(func: Callable[..., Any], use_defaults: Any = True) -> Callable:
    """`func` with results as `to_default_dtype` gives them, where `use_defaults` says so."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        result = func(*args, **kwargs)
        if isinstance(use_defaults, bool):
            return tree_util.tree_map(to_default_dtype, result) if use_defaults else result
        return tree_util.tree_map(
            lambda value, wanted: to_default_dtype(value) if wanted else value, result, use_defaults
        )

    return wrapped


# Random arrays. Each maker takes a RandomState and gives a function of a shape and a dtype.


def _rand_dtype(
    rand: Callable, shape: Any, dtype: Any, scale: float = 1.0, post: Callable = lambda x: x
) -> Any:
    """Draws of `rand`, scaled, of the dtype (two draws make a complex number), and through `post`."""
    kind = np.dtype(dtype)

    def draw():
        value = np.asarray(scale * rand(*_dims_of_shape(shape)))
        if _dtypes.issubdtype(kind, np.unsignedinteger):
            value = np.abs(value)
        return value

    value = draw()
    if kind.kind == "c":
        value = value + 1j * draw()
    value = np.asarray(post(np.asarray(value).astype(kind))).astype(kind)
    return _cast_to_shape(value, shape, kind)


def rand_fullrange(rng: np.random.RandomState, standardize_nans: bool = False) -> Generator:
    """Any bits at all; `standardize_nans` gives every NaN the same ones."""

    def gen(shape, dtype, post=lambda x: x):
        kind, dims = np.dtype(dtype), tuple(_dims_of_shape(shape))
        size = math.prod(dims) * kind.itemsize
        bits = rng.randint(0, np.iinfo(np.uint8).max, size=size, dtype=np.uint8)
        if kind == np.bool_:
            value = bits.astype(np.bool_).reshape(dims)
        else:
            value = bits.view(kind).reshape(dims)
        if standardize_nans and _dtypes.issubdtype(kind, np.inexact):
            value = np.where(np.isnan(value), np.asarray(np.nan, kind), value)
        return _cast_to_shape(post(value), shape, kind)

    return gen


def rand_default(rng: np.random.RandomState, scale: float = 3) -> Generator:
    """Normal, of standard deviation `scale`."""
    return functools.partial(_rand_dtype, rng.randn, scale=scale)


def rand_nonzero(rng: np.random.RandomState) -> Generator:
    """Normal, with ones in place of zeros."""
    return functools.partial(
        _rand_dtype, rng.randn, scale=3, post=lambda x: np.where(x == 0, np.array(1, x.dtype), x)
    )


def rand_positive(rng: np.random.RandomState) -> Generator:
    """Uniform between 1 and 3."""
    return functools.partial(
        _rand_dtype, rng.rand, scale=2, post=lambda x: x + np.ones((), x.dtype)
    )


def rand_small(rng: np.random.RandomState) -> Generator:
    """Normal, near zero."""
    return functools.partial(_rand_dtype, rng.randn, scale=1e-3)


def rand_not_small(rng: np.random.RandomState, offset: float = 10.0) -> Generator:
    """Normal, moved away from zero by `offset`."""

    def post(x):
        if x.dtype == np.bool_:
            return x
        step = np.array(offset, x.dtype)
        return np.where(x > 0, x + step, x - step)

    return functools.partial(_rand_dtype, rng.randn, scale=3.0, post=post)


def rand_small_positive(rng: np.random.RandomState) -> Generator:
    """Uniform between 0 and 2e-5."""
    return functools.partial(_rand_dtype, rng.rand, scale=2e-5)


def rand_uniform(rng: np.random.RandomState, low: float = 0.0, high: float = 1.0) -> Generator:
    """Uniform between `low` and `high`."""

    def post(x):
        return x if x.dtype == np.bool_ else x * (high - low) + low

    return functools.partial(_rand_dtype, rng.rand, post=post)


def rand_bool(rng: np.random.RandomState) -> Generator:
    """Zeros and ones."""

    def gen(shape, dtype):
        value = np.asarray(rng.rand(*_dims_of_shape(shape)) < 0.5)
        return _cast_to_shape(value.astype(np.dtype(dtype)), shape, dtype)

    return gen


def rand_some_equal(rng: np.random.RandomState) -> Generator:
    """Normal and wide; about half of the elements equal the first."""

    def post(x):
        same = rng.rand(*x.shape) < 0.5
        return np.where(same, x.ravel()[0], x) if x.size else x

    return functools.partial(_rand_dtype, rng.randn, scale=100.0, post=post)


def _special(
    rng: np.random.RandomState, shares: Sequence[tuple[float, float]], complexes: bool = False
) -> Generator:
    """Normal values, with special ones in their shares; integers and bools have none."""
    base = rand_default(rng)

    def draw(shape, kind):
        dims = _dims_of_shape(shape)
        masks = [(np.asarray(rng.rand(*dims)) < share, value) for share, value in shares]
        found = np.asarray(base(tuple(dims), kind))
        for mask, value in masks:
            if len(masks) == 1:  # NaNs alone are of either sign
                value = np.where(np.asarray(rng.rand(*dims)) < 0.5, value, -value)
            found = np.where(mask, np.asarray(value, kind), found)
        return found

    def gen(shape, dtype):
        kind = np.dtype(dtype)
        if kind.kind == "c" and complexes:
            part = np.dtype(np.float32 if kind == np.complex64 else np.float64)
            value = draw(shape, part) + np.array(1j, kind) * draw(shape, part)
        elif _dtypes.issubdtype(kind, np.floating):
            value = draw(shape, kind)
        else:
            return base(shape, kind)
        return _cast_to_shape(np.asarray(value, kind), shape, kind)

    return gen


def rand_some_inf(rng: np.random.RandomState) -> Generator:
    """Normal, with some infinities of either sign."""
    return _special(rng, [(0.1, np.inf), (0.1, -np.inf)])


def rand_some_nan(rng: np.random.RandomState) -> Generator:
    """Normal, with some NaNs."""
    return _special(rng, [(0.1, np.nan)], complexes=True)


def rand_some_inf_and_nan(rng: np.random.RandomState) -> Generator:
    """Normal, with some infinities and NaNs."""
    return _special(rng, [(0.1, np.inf), (0.1, -np.inf), (0.1, np.nan)])


def rand_some_zero(rng: np.random.RandomState) -> Generator:
    """Normal; about half of the elements are zero."""
    base = rand_default(rng)

    def gen(shape, dtype):
        dims = tuple(_dims_of_shape(shape))
        zero = np.asarray(rng.rand(*dims)) < 0.5
        value = np.asarray(base(dims, dtype))
        return _cast_to_shape(np.where(zero, np.zeros((), value.dtype), value), shape, dtype)

    return gen


def rand_int(rng: np.random.RandomState, low: int = 0, high: int | None = None) -> Generator:
    """Integers from `low` up to, not with, `high`; of one number alone, from zero up to it."""

    def gen(shape, dtype):
        kind, below, above = np.dtype(dtype), low, high
        if above is None and below == 0:
            if not _dtypes.issubdtype(kind, np.integer):
                raise ValueError(
                    "rand_int requires an explicit `high` value for non-integer types: "
                    f"{kind.name} has no largest integer to go up to."
                )
            above = int(_dtypes.iinfo(kind).max)
        drawn = kind if kind.kind in "iu" else np.dtype(int)
        value = rng.randint(below, high=above, size=tuple(_dims_of_shape(shape)), dtype=drawn)
        return np.asarray(value).astype(kind)

    return gen


def rand_unique_int(rng: np.random.RandomState, high: int | None = None) -> Generator:
    """Integers from zero up to `high`, or as many as there are elements, none of them twice."""

    def gen(shape, dtype):
        dims = tuple(_dims_of_shape(shape))
        known = np.arange(high or math.prod(dims), dtype=dtype)
        return np.asarray(rng.choice(known, size=dims, replace=False))

    return gen


def rand_indices_unique_along_axis(rng: np.random.RandomState) -> Generator:
    """Indices into `dim` elements, none twice along `axis`; some of them count from the end."""

    def gen(dim, shape, axis, allow_negative=True):
        outer = tuple(n for i, n in enumerate(shape) if i != axis % len(shape))
        rows = [
            rng.choice(dim, size=shape[axis], replace=False) for _ in range(math.prod(outer))
        ]  # fmt: skip
        found = np.array(rows, dtype=np.int64).reshape(*outer, shape[axis])
        found = np.moveaxis(found, -1, axis)
        if allow_negative:
            found = np.where(rng.choice([False, True], size=found.shape), found - dim, found)
        return found

    return gen


def rand_like(rng: np.random.RandomState, x: Any) -> Any:
    """Normal values of the shape and dtype of `x`."""
    shape, kind = np.shape(x), np.dtype(_dtypes.dtype(x))
    if kind.kind == "c":
        parts = np.asarray(rng.randn(*shape) + 1j * rng.randn(*shape))
        return _scalar_or_array(parts.astype(kind), x)
    return _scalar_or_array(np.asarray(rng.randn(*shape)).astype(kind), x)


def _scalar_or_array(value: np.ndarray, like: Any) -> Any:
    if isinstance(like, (bool, int, float, complex)) and not isinstance(like, np.generic):
        return type(like)(value[()])
    return value if value.shape else value.dtype.type(value[()])


def complex_plane_sample(dtype: Any, size_re: int = 10, size_im: int | None = None) -> np.ndarray:
    """A grid over the complex plane: zero, both infinities, the extremes, and powers between them.

    Each axis has `2 * size + 3` points; imaginary parts grow by row, real parts by column.
    """
    size_im = size_re if size_im is None else size_im
    part = np.dtype(np.float32 if np.dtype(dtype) == np.complex64 else np.float64)

    def axis(size):
        info = np.finfo(part)
        low, high = float(info.tiny), float(info.max)
        points = np.zeros(0, part)
        if size:
            with np.errstate(over="ignore"):
                points = np.logspace(np.log10(low), np.log10(high), size, dtype=part)
            points[-1], points[0] = high, low  # exactly, whatever the powers round to
        ends = np.array([np.inf], part)
        return np.concatenate([-ends, -points[::-1], np.zeros(1, part), points, ends])

    found = np.empty((2 * size_im + 3, 2 * size_re + 3), dtype)
    found.real[:], found.imag[:] = axis(size_re), axis(size_im)[:, None]
    return found
