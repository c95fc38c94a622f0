"""Abstract values: what is known of an array while its program is traced.

Avals are interned: equal avals are the same object, so they hash and compare by identity, and a
shape rule or a compiled program is found by one dict lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax import dtypes, errors
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.namespace import named

__all__ = [
    "AbstractToken", "AbstractValue", "ShapedArray", "abstract", "abstract_token", "aval_makers",
    "get_aval", "opaque_types", "raised", "typeof",
]  # fmt: skip

Shape = tuple[int, ...]


class AbstractValue:
    """The base class of all avals.

    The classes of the tracers that stand for a value of a type are attributes of it: `staged_tracer`,
    `jvp_tracer` and `batch_tracer`, set at the end of this module from the slots of these names.

    The methods return what holds for arrays. Other types, such as those of references, override them.
    """

    __slots__ = ()
    is_high = False  # whether a value of this type is made of several arrays
    placement: Any = None
    # `zero()` and `add(x, y)` for tangents of a type that is no array's; None for arrays
    vspace_zero: Callable[[], Any] | None = None
    vspace_add: Callable[[Any, Any], Any] | None = None

    if TYPE_CHECKING:  # attributes of one type only, or that follow from the placement

        def __getattr__(self, name: str) -> Any: ...

    def strip_weak_type(self) -> AbstractValue:
        return self

    def for_constant(self, value: Any) -> AbstractValue:
        """Return the type of the variable that stands for `value` as a constant of a program."""
        return self

    def for_argument(self, value: Any) -> AbstractValue:
        """Return the type of the variable that stands for `value` as an argument of a program."""
        return self

    def of_values(self) -> AbstractValue:
        """Return the type that all values of it share, without what it says of a single one."""
        return self

    def check_differentiated(self, transform: str) -> None:
        """Raise an error if values of this type, which is no array's, are not differentiated."""

    def check_constant(self, value: Any) -> None:
        """Raise an error if a value of this type cannot be a constant of a compiled program."""

    def check_result(self, fun: Callable, transform: str, out_tree: Any, index: int) -> None:
        """Raise an error if values of this type are no results of a traced function."""

    # The types of the arrays that a value is made of, and the value as these arrays.
    def lo_ty(self) -> list[AbstractValue]:
        return [self]

    def lower_val(self, value: Any) -> list[Any]:
        return [value]

    def raise_val(self, value: Any) -> Any:
        return value

    def normalize(self) -> AbstractValue:
        return self.strip_weak_type()

    def update(self, **changes: Any) -> AbstractValue:
        raise NotImplementedError(f"{type(self).__name__} has nothing to update")


class TokenTypeError(TypeError, AttributeError):
    """A token was used as an array. It is an AttributeError as well, so that `hasattr` is False."""


class AbstractToken(AbstractValue):
    """The type of a token, which orders effects."""

    __slots__ = ()
    weak_type = False
    shape = ()

    @property
    def dtype(self) -> Any:
        raise TokenTypeError(
            "a token has no dtype: it orders effects within one program, and cannot be an argument or "
            "a result of a compiled or differentiated function. Make it there with create_token()."
        )

    ndim = dtype

    def check_differentiated(self, transform: str) -> None:
        assert self.dtype  # raises

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"

    def to_tangent_aval(self) -> AbstractToken:
        return self

    to_cotangent_aval = to_ct_aval = to_tangent_aval


abstract_token = AbstractToken()


class ShapedArray(AbstractValue):
    """Shape, dtype, weak type, and placement: what the type says of sharding and memory.

    A placement is hashable and opaque here, and None if nothing is said. `hooks.placement` makes it
    from further keyword arguments.
    """

    __slots__ = (
        "__dict__", "__weakref__", "dtype", "ndim", "placement", "shape", "size", "weak_type",
    )  # fmt: skip

    shape: Shape
    dtype: np.dtype[Any]
    weak_type: bool

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: Any = False, placement: Any = None, **stated: Any
    ) -> Any:
        if stated:
            shape = tuple(shape)
            placement = hooks.placement(None, shape, stated)
        try:
            return _interned[shape, dtype, weak_type, placement]
        except (KeyError, TypeError):
            return _intern(cls, shape, dtype, weak_type, placement)

    def update(self, **changes: Any) -> ShapedArray:
        """Return the type with some fields changed; a change of shape may change the placement."""
        shape = changes.pop("shape", self.shape)
        dtype = changes.pop("dtype", self.dtype)
        weak_type = changes.pop("weak_type", self.weak_type)
        placement = self.placement
        if changes or placement is not None:
            placement = hooks.placement(self, shape, changes)
        return ShapedArray(shape, dtype, weak_type, placement)

    def without_axis(self, axis: int) -> ShapedArray:
        """Return the type of one slice along an axis."""
        if self.placement is not None:
            return hooks.without_axis(self, axis)
        shape = self.shape
        return ShapedArray(shape[:axis] + shape[axis + 1 :], self.dtype, self.weak_type)

    def with_axis(self, axis: int, size: int, split: Any = None) -> ShapedArray:
        """Return the type of `size` values stacked along a new axis, sharded over `split`."""
        if split is not None or self.placement is not None:
            return hooks.with_axis(self, axis, size, split)
        shape = self.shape
        return ShapedArray((*shape[:axis], size, *shape[axis:]), self.dtype, self.weak_type)

    # Of an array within a value of a library's own type (`HiType`); a `spec` of None is no axis.
    def dec_rank(self, size: int, spec: int | None) -> ShapedArray:
        if spec is None:
            return self
        assert 0 <= spec < self.ndim and self.shape[spec] == size, (size, spec, self)
        return self.without_axis(spec)

    def inc_rank(self, size: int, spec: int | None) -> ShapedArray:
        if spec is None:
            return self
        assert 0 <= spec <= self.ndim, (size, spec, self)
        return self.with_axis(spec, size)

    def leading_axis_spec(self) -> int:
        return 0

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of a tangent to a value of this type: float0 where the dtype has none."""
        tangent = self.__dict__.get("tangent")
        if tangent is None:
            rule = self.dtype.rule("tangent_dtype") if dtypes.is_extended(self.dtype) else None
            if rule is not None:
                tangent = self.update(dtype=rule(self.dtype))
            elif dtypes.issubdtype(self.dtype, np.inexact):
                tangent = self
            else:
                tangent = ShapedArray(self.shape, dtypes.float0)
            self.__dict__["tangent"] = tangent
        return tangent

    at_least_vspace = to_tangent_aval

    def to_cotangent_aval(self) -> ShapedArray:
        """Return the type of a cotangent of a value of this type."""
        return self.to_tangent_aval() if self.placement is None else hooks.cotangent_type(self)

    to_ct_aval = to_cotangent_aval

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        if self.dtype == dtypes.float0:
            name = "float0"
        if self.placement is None and not mesh_axis_types:
            return f"{name}[{','.join(map(str, self.shape))}]"
        sizes, before, behind = hooks.shown_placement(self, mesh_axis_types)
        return f"{name}{before}[{','.join(sizes)}]{behind}"

    def __str__(self) -> str:
        return f"~{self.str_short()}" if self.weak_type else self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __reduce__(self) -> Any:
        return _unpickle, (self.shape, self.dtype, self.weak_type)


hooks.method("member_of_type", ShapedArray, "__getattr__")
for _name in ("staged_tracer", "jvp_tracer", "batch_tracer"):
    hooks.method(_name, AbstractValue, _name)


def _unpickle(shape, dtype, weak_type):
    return ShapedArray(shape, dtype, weak_type)


_interned: dict[tuple, ShapedArray] = {}


def _intern(cls, shape, dtype, weak_type, placement) -> ShapedArray:
    """Canonicalize the fields and make the one aval that has them."""
    try:
        shape = tuple([
            size if isinstance(size, int) or hooks.is_expression(size) else index(size)
            for size in shape
        ])  # fmt: skip
    except TypeError:
        raise errors.shape_error(shape if isinstance(shape, Iterable) else (shape,)) from None
    if not isinstance(dtype, dtypes.ExtendedDType):
        dtype = np.dtype(dtype)
    key = (shape, dtype, bool(weak_type), placement)
    aval = _interned.get(key)
    if aval is None:
        aval = object.__new__(cls)
        aval.shape, aval.dtype, aval.weak_type, aval.placement = key
        aval.ndim = len(shape)
        size = 1
        for extent in shape:
            size *= extent
        aval.size = size
        aval = _interned.setdefault(key, aval)
    return aval


# From the type of a value to the function that gives its aval; the layers above add their own.
aval_makers: dict[type, Callable[[Any], AbstractValue]] = {}
# Classes of values that are no arrays, and that primitives are given as they are.
opaque_types: set[type] = set()


def get_aval(x: Any) -> AbstractValue:
    """Return the type of an array or number: shape, dtype, weak type and sharding.

    - `x`: array, tracer, NumPy array or number

    The result is an abstract value, such as `ShapedArray`. TypeError for other objects.
    Source: the types of StableHLO's tensors.

    >>> jax.typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    if type(x) in opaque_types and type(x) in aval_makers:
        return aval_makers[type(x)](x)  # its attributes are its own
    aval = getattr(x, "aval", None)
    if aval is not None and not callable(aval):  # it is a method of some library's classes
        return aval
    for kind in type(x).__mro__:
        maker = aval_makers.get(kind)
        if maker is not None:
            return maker(x)
    if hasattr(x, "__jax_array__"):
        if hooks.is_expression(x):
            return get_aval(x.__jax_array__())
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer supported. To avoid "
            "this error, either explicitly convert your object using jax.numpy.array(), or "
            f"register your object as a pytree. The object is of type {type(x)}."
        )
    raise errors.invalid_value(
        f"Argument '{errors.shortened(x, str)}' of type {type(x)} is not a valid JAX type. "
        "Pass an array or a Python number, or mark the argument as static.",
        x,
    )


def is_array_type(x: Any) -> bool:
    """Whether `x` is a value that a primitive may take."""
    if type(x) in aval_makers or hasattr(x, "aval"):
        return True
    return any(kind in aval_makers for kind in type(x).__mro__)


def raised(avals: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return values of these types, made of the arrays `values`."""
    rest = iter(values)
    return [aval.raise_val(*[next(rest) for _ in aval.lo_ty()]) for aval in avals]


typeof = named(get_aval, "typeof", __name__)
pytype_aval_mappings = aval_makers  # upstream's name of it


def _array_aval(x: np.ndarray | np.generic) -> ShapedArray:
    dtype = x.dtype
    if not dtypes.is_supported(dtype):
        raise errors.invalid_value(dtypes.unsupported(x), x)
    if type(x) is not np.ndarray and isinstance(x, np.ndarray):
        _check_unmasked(x)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(dtype))


def abstract(x: Any) -> ShapedArray:
    """Return the aval of an array, a number, or anything with a shape and a dtype."""
    if type(x) in opaque_types or isinstance(x, (np.ndarray, np.generic)):
        return get_aval(x)
    if hasattr(x, "shape") and hasattr(x, "dtype") and callable(getattr(x, "aval", len)):
        dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
        return ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False))
    aval = get_aval(x)
    if type(x) is int:
        dtypes.number_as(x, aval.dtype)
    return aval


def _check_unmasked(x: np.ndarray) -> None:
    """ValueError for a masked array, whose mask would be lost."""
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions: "
            "x.filled() makes an ordinary array of one."
        )


_MOST = 2**31  # integers from its negative on and below it are held by every default dtype
_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def _scalar_aval_maker(kind: type) -> Callable[[Any], ShapedArray]:
    def make(x: Any) -> ShapedArray:
        key = (kind, local.context.settings.enable_x64)
        aval = _scalar_avals.get(key)
        if aval is None:
            dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[kind])
            aval = _scalar_avals[key] = ShapedArray((), dtype, kind is not bool)
        if kind is int and not -_MOST <= x < _MOST:
            dtypes.number_as(x, aval.dtype)  # OverflowError if it does not hold it
        return aval

    return make


aval_makers[np.ndarray] = aval_makers[np.generic] = _array_aval
for _kind in (bool, int, float, complex):
    aval_makers[_kind] = _scalar_aval_maker(_kind)
