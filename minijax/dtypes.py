"""Data types: every dtype an array may have, their categories, canonical widths, and promotion.

Imports NumPy, ml_dtypes, `config` and `errors`, nothing else.

A dtype is an `np.dtype` or an `ExtendedDType` (random keys). The lower-case constants here
(`float32`, `int8`, `int4`, ...) are `np.dtype` objects, so they can be compared and looked up
in tables. With 64-bit mode off, 64-bit dtypes become 32-bit ones: "canonical" means that here.

Promotion follows JEP 9263: the least upper bound in a lattice whose nodes are the dtypes and three
weak categories (`i*`, `f*`, `c*`) that Python scalars and weakly typed arrays belong to.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    Union,
    overload,
    runtime_checkable,
)

import ml_dtypes
import numpy as np

from minijax.config import ExplicitX64Mode, local
from minijax.errors import TypePromotionError, float0_error
from minijax.namespace import shown, user_stacklevel

if TYPE_CHECKING:  # ml_dtypes has no types

    class finfo(np.finfo[Any]):
        def __new__(cls, dtype: Any) -> finfo: ...

    class iinfo(np.iinfo[Any]):
        def __new__(cls, int_type: Any) -> iinfo: ...

else:
    from ml_dtypes import finfo, iinfo

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip


@runtime_checkable
class _HasDType(Protocol):
    """Anything with a `dtype`."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


# The names of a dtype; None, where it is allowed, is the default one. Users' annotations join names of
# types in quotes to a Union, not to a `|` of types.
DTypeLike: TypeAlias = Union[str, type[Any], np.dtype[Any], _HasDType]  # noqa: UP007


# Extended dtypes


class extended(np.generic):
    """Scalar category of every extended dtype. Never instantiated."""


class prng_key(extended):
    """Scalar category of random key dtypes, such as `key<fry>`. Never instantiated."""


class ExtendedDType:
    """A dtype whose elements are themselves arrays of a base dtype, such as a random key.

    Abstract: a subclass gives the attributes below, equality and hash. Libraries define some of their
    own, by rules: functions of the dtype that say what its elements are stored as
    (`physical_element_aval`), which dtypes they are converted from and to (`convert_to(other, dtype)`,
    `convert_from(dtype, other)`), and, if they have tangents, of which dtype (`tangent_dtype`) and
    how these are added and what is zero (`add(dtype, x, y)`, `zero(dtype)`).
    """

    __slots__ = ()

    name: str  # as printed
    type: type  # its scalar category, `extended` or below
    kind = "K"  # NumPy has no such letter: it belongs to no category of numbers
    _rules: Any  # what the array modules ask of it

    @property
    def physical_element_aval(self) -> Any:
        """The type of what one element is stored as."""
        return self._rules.physical_element_aval(self)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        stored = self.physical_element_aval
        return stored.size * stored.dtype.itemsize

    def rule(self, name: str) -> Any:
        """One of the rules that a library gave it; None if it has none of that name."""
        return getattr(getattr(self, "_rules", None), name, None)


def stored_dtype(dtype: Any) -> Any:
    """The dtype of what is in memory."""
    return dtype.physical_element_aval.dtype if isinstance(dtype, ExtendedDType) else dtype


def is_convertible(old: Any, new: Any) -> bool:
    """Whether the rules of an extended dtype, which one of the two is, let values be converted."""
    if isinstance(old, ExtendedDType) and old != new:
        rule = old.rule("convert_from")
        return rule is not None and bool(rule(old, new))
    if isinstance(new, ExtendedDType) and old != new:
        rule = new.rule("convert_to")
        return rule is not None and bool(rule(old, new))
    return True


DType = np.dtype | ExtendedDType


def is_extended(dtype: Any) -> bool:
    """Whether `dtype` is an extended dtype, such as that of random keys."""
    return isinstance(dtype, ExtendedDType)


# The dtypes

float0 = np.dtype([("float0", np.void, 0)])  # tangents of integers and booleans
bool_ = np.dtype(np.bool_)

int1, int2, int4 = map(np.dtype, (ml_dtypes.int1, ml_dtypes.int2, ml_dtypes.int4))
int8, int16, int32, int64 = map(np.dtype, (np.int8, np.int16, np.int32, np.int64))
uint1, uint2, uint4 = map(np.dtype, (ml_dtypes.uint1, ml_dtypes.uint2, ml_dtypes.uint4))
uint8, uint16, uint32, uint64 = map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64))

float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = np.dtype(ml_dtypes.float6_e3m2fn)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
bfloat16 = ml_dtypes.bfloat16  # the type of its scalars: upstream's name, and no dtype there
float16, float32, float64 = map(np.dtype, (np.float16, np.float32, np.float64))
complex64, complex128 = map(np.dtype, (np.complex64, np.complex128))
string = np.dtypes.StringDType()  # of arrays that only hold values: no program takes them

_TINY_INTS = (int1, int2, int4, uint1, uint2, uint4)
_SIGNED = (int1, int2, int4, int8, int16, int32, int64)
_UNSIGNED = (uint1, uint2, uint4, uint8, uint16, uint32, uint64)
_TINY_FLOATS = (
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz,
    float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip
_FLOATS = (*_TINY_FLOATS, BFLOAT16, float16, float32, float64)
_COMPLEX = (complex64, complex128)
_NUMERIC = (*_SIGNED, *_UNSIGNED, *_FLOATS, *_COMPLEX)
_SUPPORTED = frozenset((bool_, *_NUMERIC, float0, string))

# NumPy's class tree does not know the ml_dtypes classes: the category each belongs to.
_CATEGORY: dict[type, type] = {
    **{d.type: np.signedinteger for d in _SIGNED},
    **{d.type: np.unsignedinteger for d in _UNSIGNED},
    **{d.type: np.floating for d in _FLOATS},
    string.type: np.str_,
}

_BITS: dict[np.dtype, int] = {
    bool_: 8,
    **{d: iinfo(d).bits for d in _SIGNED + _UNSIGNED},
    **{d: finfo(d).bits for d in _FLOATS},
    complex64: 64,
    complex128: 128,
}

_SHORT_NAMES: dict[np.dtype, str] = {
    float0: "float0",
    bool_: "bool",
    **{d: f"i{_BITS[d]}" for d in _SIGNED},
    **{d: f"u{_BITS[d]}" for d in _UNSIGNED},
    **{d: d.name.replace("float", "f") for d in _FLOATS},
    **{d: d.name.replace("complex", "c") for d in _COMPLEX},
}

_NARROWED = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}

python_scalar_dtypes: dict[type, np.dtype] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


# From what users write to a canonical dtype

_interned: dict[Any, np.dtype] = {}  # what `np.dtype` gave for classes and strings
_canonical: tuple[dict[Any, np.dtype], ...] = ({}, {})  # the same, canonical, x64 off and on


def _as_dtype(dtype: Any) -> np.dtype:
    """`np.dtype(dtype)`, memoised for the classes and names that stand in programs."""
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, (type, str)):
        found = _interned.get(dtype)
        if found is None:
            found = None if isinstance(dtype, str) else getattr(dtype, "dtype", None)
            if not isinstance(found, np.dtype):  # a NumPy class has a descriptor there
                found = _numpy_dtype(dtype)
            _interned[dtype] = found
        return found
    return _numpy_dtype(dtype)


def _numpy_dtype(name: Any) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError as error:
        raise TypeError(
            f"{error}: {name!r} is no dtype. Give one such as jnp.float32, 'bfloat16' or x.dtype."
        ) from None


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """The dtype arrays get for `dtype` in the current mode: 64-bit ones narrow when x64 is off.

    Raises ValueError for an extended dtype unless `allow_extended_dtype`, and TypeError for what is
    no dtype.
    """
    memo = _canonical[local.context.settings.enable_x64]
    try:
        return memo[dtype]
    except (KeyError, TypeError):  # new, or an array, which has no hash
        pass
    if isinstance(dtype, ExtendedDType):
        if allow_extended_dtype:
            return dtype
        raise ValueError(
            f"Internal: canonicalize_dtype called on extended dtype {dtype.name} with "
            "allow_extended_dtype=False. Pass True to let it through."
        )
    found = _as_dtype(dtype)
    if not local.context.settings.enable_x64:
        found = _NARROWED.get(found, found)
    if isinstance(dtype, (np.dtype, type, str)):
        memo[dtype] = found
    return found


def int_() -> np.dtype:
    """The dtype of a Python int: int64, or int32 when x64 is off."""
    return int64 if local.context.settings.enable_x64 else int32


def uint() -> np.dtype:
    """The default unsigned dtype: uint64, or uint32 when x64 is off."""
    return uint64 if local.context.settings.enable_x64 else uint32


def float_() -> np.dtype:
    """The dtype of a Python float: float64, or float32 when x64 is off."""
    return float64 if local.context.settings.enable_x64 else float32


def complex_() -> np.dtype:
    """The dtype of a Python complex: complex128, or complex64 when x64 is off."""
    return complex128 if local.context.settings.enable_x64 else complex64


def is_supported(dtype: DType) -> bool:
    """Whether arrays of `dtype` exist: a numeric, boolean, string, `float0` or extended dtype."""
    return dtype in _SUPPORTED or isinstance(dtype, ExtendedDType)


def unsupported(x: np.ndarray | np.generic) -> str:
    """The message of an error on a value of NumPy's that is no value of an array."""
    if isinstance(x, np.generic):
        return (
            f"Argument '{x}' of type {type(x)} is not a valid JAX type. Its dtype is {x.dtype}: "
            "convert to a boolean or numeric dtype."
        )
    return (
        f"Dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric types are supported by "
        "JAX: convert to a boolean or numeric dtype, in the machine's byte order."
    )


def no_element_type(dtype: np.dtype) -> Exception:
    """The error on a value of a dtype that no program computes with."""
    if dtype == string:
        return TypeError(
            "Argument of dtype StringDType128 is not a valid JAX type: string arrays are held and "
            "moved, no program computes with them. Convert to numbers in NumPy first."
        )
    return NotImplementedError(
        f"StableHLO has no element type for {dtype.name}, so that no program can compute with it: "
        "convert to a wider dtype, such as int2 or int8, before it becomes an array."
    )


def _is_array(x: Any) -> bool:
    return hasattr(x, "ndim") and hasattr(type(x), "__array__")


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> DType:
    """The canonical dtype for a `dtype=` argument a user wrote; None stands for the default float.

    A 64-bit dtype that is asked for by name while x64 is off is narrowed with a UserWarning, refused
    with a ValueError, or kept, as the setting `explicit_x64_dtypes` says. Python's own
    `int`, `float`, `complex` mean the default width and never warn. Raises TypeError for what is no
    dtype or not one of an array here, ValueError for an array. `fun_name` stands in the message.
    """
    if type(dtype) is type and dtype in python_scalar_dtypes:
        return canonicalize_dtype(python_scalar_dtypes[dtype])
    if dtype is None:
        return float_()
    if isinstance(dtype, ExtendedDType):
        return dtype
    where = f" in {fun_name}" if fun_name else ""
    if not isinstance(dtype, (np.dtype, type, np.generic)) and _is_array(dtype):
        raise (TypeError if isinstance(dtype, np.ndarray) else ValueError)(
            "Passing an array as a dtype argument is no longer supported; instead of dtype=arr use "
            f"dtype=arr.dtype. The array{where} has dtype {dtype.dtype} and shape {dtype.shape}."
        )
    wanted = _as_dtype(dtype)
    if wanted not in _SUPPORTED:
        raise TypeError(
            f"JAX only supports number, bool, and string dtypes, got dtype {dtype}{where}: pass a "
            "numeric or bool dtype, in the machine's byte order."
        )
    settings = local.context.settings
    if settings.enable_x64 or wanted not in _NARROWED:
        return wanted
    mode = settings.explicit_x64_dtypes
    asked = where and f" requested{where}"
    if mode is ExplicitX64Mode.ALLOW:
        return wanted
    if mode is ExplicitX64Mode.ERROR:
        raise ValueError(
            f"Explicitly requested dtype {wanted}{asked} is not available. To enable more "
            "dtypes, set jax_enable_x64, or jax_explicit_x64_dtypes to 'allow'; or ask for "
            f"{_NARROWED[wanted]}."
        )
    narrowed = _NARROWED[wanted]
    warnings.warn(
        f"Explicitly requested dtype {wanted}{asked} is not available, and will be "
        f"truncated to dtype {narrowed}, because 64-bit mode is off. Turn it on with the setting "
        f"jax_enable_x64 or the environment variable JAX_ENABLE_X64=1, or ask for {narrowed}.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
    return narrowed


# The dtype of a value


def is_python_scalar(x: Any) -> bool:
    """Whether `x` is a Python bool, int, float or complex (subclasses too, NumPy scalars not)."""
    if type(x) in python_scalar_dtypes:
        return True
    return isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)


def dtype(x: Any, *, canonicalize: bool = False) -> DType:
    """The dtype of an array, scalar or dtype-like `x`; of a Python scalar, its 64-bit default.

    With `canonicalize`, in the current mode. Raises ValueError for None, TypeError for what has no
    dtype or one no array can have.
    """
    if x is None:
        raise ValueError("dtype(x): x is None, which has no dtype. Pass an array or a dtype.")
    found = _raw_dtype(x)
    return canonicalize_dtype(found, allow_extended_dtype=True) if canonicalize else found


def _raw_dtype(x: Any) -> DType:
    kind = type(x)
    if kind in python_scalar_dtypes:
        return python_scalar_dtypes[kind]
    if isinstance(x, (type, str, np.dtype)):
        found = _as_dtype(x)
    else:
        found = getattr(x, "dtype", None)
        if isinstance(found, ExtendedDType):
            return found
        if not isinstance(found, np.dtype):
            if is_python_scalar(x):
                return next(d for t, d in python_scalar_dtypes.items() if isinstance(x, t))
            raise TypeError(
                f"Cannot determine dtype of {x!r}. It is of type {kind.__name__}: pass an array, a "
                "Python scalar, or a NumPy dtype."
            )
    if found not in _SUPPORTED:
        raise TypeError(
            f"Value '{x}' with dtype {found} is not a valid JAX array type. Only arrays of numeric "
            "types are supported by JAX: pass numbers or booleans, in the machine's byte order."
        )
    return found


def dtype_and_weak_type(x: Any) -> tuple[DType, bool]:
    """The dtype (not canonicalised) and weak type with which `x` enters promotion.

    Python scalars, and `int`, `float`, `complex` as dtypes, are weak; anything with an `aval` says
    so there; the rest is strong. `None` is the default float.
    """
    kind = type(x)
    if kind in python_scalar_dtypes:
        return python_scalar_dtypes[kind], kind is not bool
    if kind is np.ndarray and x.dtype in _SUPPORTED:
        return x.dtype, False
    aval = getattr(x, "aval", None)
    if hasattr(aval, "weak_type"):  # some libraries have a method of this name
        return aval.dtype, aval.weak_type
    if kind is type and x in python_scalar_dtypes:
        return python_scalar_dtypes[x], x is not bool
    if x is None:
        return float64, False
    if not hasattr(x, "dtype") and hasattr(x, "__jax_array__"):
        return dtype_and_weak_type(x.__jax_array__())
    weak = not isinstance(x, bool) and is_python_scalar(x)
    return _raw_dtype(x), weak


def scalar_type_of(x: Any) -> type:
    """The Python type (bool, int, float or complex) that the values of array or dtype `x` have.

    Raises TypeError where there is none (`float0`, keys), ValueError for None.
    """
    found = dtype(x)
    for category, scalar in (
        (np.bool_, bool),
        (np.integer, int),
        (np.floating, float),
        (np.complexfloating, complex),
    ):
        if issubdtype(found, category):
            return scalar
    raise TypeError(
        f"scalar_type_of(x): x has dtype {short_name(found)}, whose values are no Python scalars. "
        "Pass a bool, integer, floating or complex array or dtype."
    )


# Categories and widths


def issubdtype(a: DTypeLike | ExtendedDType | None, b: DTypeLike | ExtendedDType | None) -> bool:
    """Test whether a dtype lies under another one in the hierarchy of dtypes.

    - `a`, `b`: dtypes or scalar classes, such as `float32` and `jnp.floating`; types of narrow and
      extended dtypes are known too.

    Returns a bool. Source: NumPy's `issubdtype`.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype(jnp.int4, jnp.floating)
    (True, False)
    """
    try:
        return _subtypes[a, b]
    except (KeyError, TypeError):  # new, or an array, which has no hash
        pass
    lower, upper = _scalar_class(a), _scalar_class(b)
    if isinstance(b, ExtendedDType):  # a leaf: only itself lies under it
        return a == b
    result = issubclass(lower, upper) or issubclass(_CATEGORY.get(lower, lower), upper)
    if isinstance(a, (np.dtype, type)) and isinstance(b, (np.dtype, type)):
        _subtypes[a, b] = result
    return result


_subtypes: dict[tuple[Any, Any], bool] = {}  # what `issubdtype` gave for dtypes and classes


def _scalar_class(dtype: Any) -> type:
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype.type
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    return _as_dtype(dtype).type


_KINDS: dict[str, frozenset[np.dtype]] = {
    "bool": frozenset((bool_,)),
    "signed integer": frozenset(_SIGNED),
    "unsigned integer": frozenset(_UNSIGNED),
    "integral": frozenset(_SIGNED + _UNSIGNED),
    "real floating": frozenset(_FLOATS),
    "complex floating": frozenset(_COMPLEX),
    "numeric": frozenset(_NUMERIC),
}


_CATEGORIES = frozenset((
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating, np.flexible, np.character, extended, prng_key,
))  # fmt: skip


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Test whether a dtype is of a kind.

    - `dtype`: a dtype.
    - `kind`: a dtype, or "bool", "signed integer", "unsigned integer", "integral", "real floating",
      "complex floating" or "numeric"; or a tuple of these.

    Returns a bool. ValueError for another name, TypeError for another object. Source: NumPy's
    `isdtype`, of the array API standard.

    >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int8, ("bool", "numeric"))
    (True, True)
    """
    dtype = _as_dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = [_is_of_kind(dtype, one) for one in kinds]  # all are checked
    return any(found)


def _is_of_kind(dtype: np.dtype, kind: Any) -> bool:
    if isinstance(kind, str):
        if kind in _KINDS:
            return dtype in _KINDS[kind]
        try:
            return dtype == np.dtype(kind)
        except TypeError:
            raise ValueError(
                f"Unrecognized {kind=} expected one of {list(_KINDS)}, or a compatible input for "
                "jnp.dtype()"
            ) from None
    if not isinstance(kind, (type, np.generic, np.ndarray)):  # an array, or a description of one
        kind = getattr(kind, "dtype", kind)
    if not (kind is None or isinstance(kind, (type, np.dtype))) or kind in _CATEGORIES:
        raise TypeError(f"Expected kind to be a dtype, string, or tuple; got {kind=}")
    return dtype == _as_dtype(kind)


def itemsize_bits(dtype: DTypeLike) -> int:
    """Bits of one element of `dtype`: 4 for int4, 8 for bool, 64 for `float`.

    Raises ValueError for None and for dtypes without a width (`float0`, keys, strings).
    """
    if dtype is None:
        raise ValueError("itemsize_bits(dtype): dtype is None. Pass a dtype.")
    found = dtype if isinstance(dtype, ExtendedDType) else _as_dtype(dtype)
    bits = _BITS.get(found)
    if bits is None:
        raise ValueError(
            f"itemsize_bits(dtype): dtype is {dtype!r}, which has no width in bits. "
            "Pass a bool, integer, floating or complex dtype."
        )
    return bits


bit_width = itemsize_bits


def supports_inf(dtype: Any) -> bool:
    """Whether `dtype` is a floating or complex one with infinities (the `fn` formats have none)."""
    dtype = _as_dtype(dtype)
    return issubdtype(dtype, np.inexact) and not dtype.name.endswith(("fn", "fnuz", "fnu"))


def short_name(dtype: DType) -> str:
    """The name of `dtype` in printed jaxprs: 'f32', 'bf16', 'i4', 'f8_e4m3fn', 'key<fry>'."""
    return _SHORT_NAMES.get(dtype) or dtype.name


# From one dtype to its relative of another category

_TO_INEXACT = {
    **dict.fromkeys((bool_, *_SIGNED, *_UNSIGNED), float32),
    int64: float64,
    uint64: float64,
}
_TO_REAL = {complex64: float32, complex128: float64}
_TO_COMPLEX = {
    **dict.fromkeys((bool_, *_SIGNED, *_UNSIGNED, *_FLOATS), complex64),
    int64: complex128,
    uint64: complex128,
    float64: complex128,
}


def to_inexact_dtype(dtype: Any) -> DType:
    """The floating dtype that functions such as `sin` compute in; inexact dtypes stay."""
    dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    if isinstance(dtype, ExtendedDType):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type of numbers: key_data(key) gives the words of a "
            "random key."
        )
    if dtype == float0:
        raise float0_error("a function of numbers")
    return _TO_INEXACT.get(dtype, dtype)


def to_numeric_dtype(dtype: Any) -> DType:
    """int32 for bool; other dtypes stay."""
    dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    return int32 if dtype == bool_ else dtype


def to_real_dtype(dtype: Any) -> DType:
    """The dtype of the real part: float32 for complex64; real dtypes stay.

    That of an array is not narrowed: those of 64 bits may be used when x64 is disabled.
    """
    if not isinstance(dtype, np.dtype):
        dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    return _TO_REAL.get(dtype, dtype)


def to_floating_dtype(dtype: Any) -> DType:
    """The real floating dtype: of the real part for complex, as `to_inexact_dtype` for integers."""
    return to_real_dtype(to_inexact_dtype(dtype))


def to_complex_dtype(dtype: Any) -> DType:
    """The complex dtype: complex128 for 64-bit dtypes, complex64 for the other real ones."""
    if not isinstance(dtype, np.dtype):
        dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    return _TO_COMPLEX.get(dtype, dtype)


# Promotion

_Node = np.dtype | str
_Pairs = tuple[tuple[DType, bool], ...]

# Each node with those directly above it, for the standard and for the strict lattice.
_STANDARD: dict[_Node, tuple[_Node, ...]] = {
    bool_: ("i*",),
    "i*": (uint8, int8, *_TINY_INTS),
    uint8: (int16, uint16),
    int8: (int16,),
    uint16: (int32, uint32),
    int16: (int32,),
    uint32: (int64, uint64),
    int32: (int64,),
    uint64: ("f*",),
    int64: ("f*",),
    "f*": ("c*", BFLOAT16, float16, *_TINY_FLOATS),
    BFLOAT16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    "c*": (complex64,),
    complex64: (complex128,),
}
_STRICT: dict[_Node, tuple[_Node, ...]] = {
    "i*": ("f*", *_SIGNED, *_UNSIGNED),
    "f*": ("c*", *_FLOATS),
    "c*": _COMPLEX,
}


def _upper_sets(above: dict[_Node, tuple[_Node, ...]]) -> dict[_Node, frozenset[_Node]]:
    """Return for each node, itself and all that lies above it."""

    @functools.cache
    def upper(node: _Node) -> frozenset[_Node]:
        return frozenset((node,)).union(*map(upper, above.get(node, ())))

    return {node: upper(node) for node in ("i*", "f*", "c*", bool_, *_NUMERIC)}


_UPPER = {"standard": _upper_sets(_STANDARD), "strict": _upper_sets(_STRICT)}
# The node at which a weakly typed value of a dtype enters the lattice.
_WEAK_NODE: dict[np.dtype, _Node] = {
    bool_: bool_,
    **dict.fromkeys(_SIGNED + _UNSIGNED, "i*"),
    **dict.fromkeys(_FLOATS, "f*"),
    **dict.fromkeys(_COMPLEX, "c*"),
}

# The widest dtype of the kind of a weak one, which numbers have. Booleans are never weak.
_WEAK_RESULT: dict[_Node, tuple[np.dtype, bool]] = {
    **dict.fromkeys(("i*", *_SIGNED), (int64, True)),
    **dict.fromkeys(_UNSIGNED, (uint64, True)),
    **dict.fromkeys(("f*", *_FLOATS), (float64, True)),
    **dict.fromkeys(("c*", *_COMPLEX), (complex128, True)),
}
_TINY_NODES = frozenset(_TINY_INTS)
_WEAK_NAMES = {"i*": "int (weak)", "f*": "float (weak)", "c*": "complex (weak)"}


def _join(nodes: tuple[_Node, ...], mode: str) -> _Node:
    """The least upper bound of `nodes`. Raises TypePromotionError where there is none."""
    upper = _UPPER[mode]
    common = frozenset.intersection(*[upper[node] for node in nodes])
    for node in common:
        if common <= upper[node]:
            return node
    seen = ", ".join(repr(_WEAK_NAMES.get(node) or node.name) for node in nodes)
    path = " when jax_numpy_dtype_promotion=strict" if mode == "strict" else ""
    if mode == "strict":
        hint = (
            "Try explicitly casting inputs to the desired output type, or set "
            "jax_numpy_dtype_promotion=standard: 'strict' mixes a dtype with Python scalars of its "
            "kind only. Cast with x.astype(dtype)."
        )
    elif _TINY_NODES.intersection(nodes):
        hint = (
            "To avoid unintended promotion, integers below 8 bits do not support implicit "
            "promotion. Cast explicitly, for example with x.astype('int32')."
        )
    else:
        hint = (
            "To avoid unintended promotion, 8-bit floats do not support implicit promotion, nor do "
            "smaller ones. Cast explicitly, for example with x.astype('float32')."
        )
    raise TypePromotionError(
        f"Input dtypes ({seen}) have no available implicit dtype promotion path{path}. {hint}"
    )


@functools.lru_cache(maxsize=4096)
def _resolve(pairs: _Pairs, mode: str) -> tuple[DType, bool]:
    """Promotion proper, on dtypes already in the mode's width; the result may be wider."""
    first = pairs[0][0]
    if first not in _BITS and all(found == first for found, _ in pairs):
        return first, False  # float0 and keys go only with themselves
    for found, _ in pairs:
        if found not in _BITS:
            raise _unpromotable(found, [other for other, _ in pairs])
    # Values that are all weak are joined as if they were not.
    as_weak = all(weak for _, weak in pairs) and (len(pairs) == 1 or mode == "standard")
    nodes = [_WEAK_NODE[found] if weak and not as_weak else found for found, weak in pairs]
    node = _join(tuple(dict.fromkeys(nodes)), mode)
    return _WEAK_RESULT[node] if isinstance(node, str) else (node, as_weak and node != bool_)


def _unpromotable(dtype: DType, given: Iterable[Any]) -> ValueError:
    return ValueError(
        f"dtype={dtype!r} is not a valid dtype for JAX type promotion. Got "
        f"({', '.join(map(str, given))}): convert to a bool, integer, floating or complex dtype first."
    )


# Results by mode and by x64 (off, on, off with explicit wide dtypes allowed).
_promoted: dict[str, tuple[dict[_Pairs, tuple[DType, bool]], ...]] = {
    mode: ({}, {}, {}) for mode in _UPPER
}


def promote(pairs: _Pairs) -> tuple[DType, bool]:
    """The dtype and weak type that inputs with these (dtype, weak type) pairs promote to.

    Canonical in the current mode whether the inputs are or not. Raises TypePromotionError where the
    dtypes have no common type, ValueError for `float0` or a key mixed with something else.
    """
    settings = local.context.settings
    kept = not settings.enable_x64 and settings.explicit_x64_dtypes is ExplicitX64Mode.ALLOW
    memo = _promoted[settings.numpy_dtype_promotion][2 if kept else settings.enable_x64]
    try:
        return memo[pairs]
    except KeyError:
        pass
    if not pairs:
        raise ValueError("at least one array or dtype is required: none was given.")
    narrowed = {} if settings.enable_x64 else _NARROWED
    canonical = tuple(
        [
            (found if kept and not weak else narrowed.get(found, found), weak)
            for found, weak in pairs
        ]
    )
    found, weak = _resolve(canonical, settings.numpy_dtype_promotion)
    if not (kept and any(given in _NARROWED for given, _ in canonical)):
        found = narrowed.get(found, found)
    result = memo[pairs] = (found, weak)
    return result


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """Return the dtype to which two dtypes promote.

    - `a`, `b`: dtypes, scalar types, or Python's `int`, `float`, `complex`, which are weakly typed.

    Returns a dtype; narrower dtypes do not promote to 64 bits unless these are enabled.
    TypePromotionError where there is no common dtype, ValueError for dtypes that do not promote.
    Source: NumPy's `promote_types`; JEP 9263.

    >>> jnp.promote_types(jnp.int32, jnp.bfloat16)
    dtype(bfloat16)
    """
    settings = local.context.settings
    try:
        return _promote_types(a, b, settings.numpy_dtype_promotion, settings.enable_x64)
    except TypeError:  # for what has no hash too
        return _promote_types.__wrapped__(a, b, settings.numpy_dtype_promotion, settings.enable_x64)


@functools.lru_cache(maxsize=1024, typed=True)
def _promote_types(a: Any, b: Any, rules: str, x64: bool) -> np.dtype:
    pairs = tuple(
        (python_scalar_dtypes[one], one is not bool)
        if type(one) is type and one in python_scalar_dtypes
        else (_as_dtype(one), False)
        for one in (a, b)
    )
    for found, _ in pairs:
        if found not in _BITS:
            raise _unpromotable(found, (a, b))
    found, _ = _resolve(pairs, rules)
    if found == int64 and not x64 and all(given != int64 for given, _ in pairs):
        return int32  # uint32 with a signed dtype
    return found


def lattice_result_type(*args: Any) -> tuple[DType, bool]:
    """The dtype and weak type to which arrays, scalars and dtypes promote; see `promote`."""
    return promote(tuple([dtype_and_weak_type(arg) for arg in args]))


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> np.dtype[Any]: ...
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[np.dtype[Any], bool]: ...
def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype to which arrays, scalars and dtypes promote together.

    - `*args`: at least one array, scalar or dtype; Python numbers are weakly typed.
    - `return_weak_type_flag`: also return whether the result is weakly typed.

    Returns a dtype, of at most 32 bits unless 64-bit dtypes are enabled, or a pair of it and a
    bool. ValueError without arguments, TypePromotionError where there is no common dtype. Source:
    NumPy's `result_type`; JEP 9263.

    >>> jnp.result_type(jnp.ones(2, jnp.float16), 1.5)
    dtype('float16')
    """
    for arg in args:
        is_numpy_class = isinstance(arg, type) and issubclass(arg, np.generic)
        if is_numpy_class or isinstance(arg, (str, np.dtype)):
            check_user_dtype_supported(arg, "result_type")
    dtype, weak = lattice_result_type(*args)
    if weak:
        dtype = canonicalize_dtype(_WEAK_RESULT[dtype][0])
    return (dtype, weak) if return_weak_type_flag else dtype


__dir__ = shown(__name__)


def number_as(x: Any, dtype: Any) -> Any:
    """Return a number as a NumPy array of a dtype; OverflowError for an integer that it does not hold."""
    try:
        return np.asarray(x, dtype)
    except OverflowError:
        raise OverflowError(
            f"Python int {x} too large to convert to {dtype.name}: give it as an array of a "
            "wider dtype, with enable_x64 for 64 bits."
        ) from None
