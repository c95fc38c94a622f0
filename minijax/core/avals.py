"""Abstract values: what is known of an array while its program is traced.

Avals are interned: equal avals are the same object, so they hash and compare by identity, and a
shape rule or a compiled program is found by one dict lookup.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.memory import MemorySpace
from minijax.namespace import named

__all__ = [
    "AbstractToken",
    "AbstractValue",
    "ManualAxisType",
    "ShapedArray",
    "abstract_token",
    "aval_makers",
    "get_aval",
    "max_dim",
    "min_dim",
    "shaped_abstractify",
    "typeof",
    "without_varying",
]

Shape = tuple[int, ...]


class AbstractValue:
    """The base class of all avals."""

    __slots__ = ()
    is_high = False  # whether it is a type that a library defined (`core.hitypes`)
    has_qdd = False

    def strip_weak_type(self) -> AbstractValue:
        return self

    # A type of the core's is made of itself, where one that a library defined is made of several.
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

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"

    __repr__ = str_short

    def to_tangent_aval(self) -> AbstractToken:
        return self

    to_cotangent_aval = to_ct_aval = to_tangent_aval


abstract_token = AbstractToken()


class _Axes(NamedTuple):
    varying: frozenset[Any]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]


class ManualAxisType(_Axes):
    """Over which manual mesh axes a value varies, is a sum still to be taken, or was summed.

    ValueError for an axis in two of them.
    """

    __slots__ = ()

    def __new__(
        cls, *, varying: Any = frozenset(), unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> Any:
        made = super().__new__(cls, frozenset(varying), frozenset(unreduced), frozenset(reduced))
        for first, second in itertools.combinations(cls._fields, 2):
            if getattr(made, first) & getattr(made, second):
                raise ValueError(
                    f"{first} and {second} cannot have common mesh axes. Got {first}="
                    f"{set(getattr(made, first))} and {second}={set(getattr(made, second))}"
                )
        return made

    def __repr__(self) -> str:
        return f"ManualAxisType({', '.join(f'{n}={getattr(self, n)!r}' for n in self._fields)})"


def is_ref(aval: Any) -> bool:
    """Whether it is the type of a reference (`core.refs`), and not of a value."""
    return getattr(aval, "inner_aval", None) is not None


class ShapedArray(AbstractValue):
    """Shape, dtype, weak type; and, of arrays over meshes, explicit sharding and varying axes.

    `explicit` is the sharding as far as it is part of the type: over the explicit axes of a mesh,
    and None if no dimension is split over those and it is no sum over any. `vma` is the set of
    manual mesh axes over which the value varies; those that it is or was summed over are in
    `explicit` too.
    """

    __slots__ = (
        "__dict__", "dtype", "explicit", "memory_space", "ndim", "shape", "size", "vma", "weak_type",
    )  # fmt: skip

    split_seen = False  # whether this process has types that are split, or of the host, at all
    host_seen = False

    # Set by the module of shardings: that of a type whose dimensions are not split.
    unsplit: Callable[[int], Any] = staticmethod(lambda ndim: None)

    shape: Shape
    dtype: np.dtype[Any]
    weak_type: bool

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: Any = False,
        *,
        sharding: Any = None,
        vma: Any = frozenset(),
        memory_space: Any = MemorySpace.Device,
    ) -> Any:
        key = (shape, dtype, weak_type, sharding, vma)
        if memory_space is not MemorySpace.Device:
            key += (memory_space,)
        try:
            return _interned[key]
        except (KeyError, TypeError):
            return _intern(cls, shape, dtype, weak_type, sharding, vma, memory_space)

    @property
    def sharding(self) -> Any:
        """How the type says that its dimensions are split over a mesh."""
        return hooks.unsplit(self.ndim) if self.explicit is None else self.explicit

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """Over which manual mesh axes the value varies, or is or was summed."""
        if self.explicit is None:
            return ManualAxisType(varying=self.vma)
        manual, spec = frozenset(self.explicit.mesh.manual_axes), self.explicit.spec
        sums = {"unreduced": spec.unreduced & manual, "reduced": spec.reduced & manual}
        return ManualAxisType(varying=self.vma, **sums)

    mat = manual_axis_type

    def update(self, **changes: Any) -> ShapedArray:
        """The same with some fields changed; of another shape it is split only if that says how."""
        shape = changes.pop("shape", self.shape)
        dtype = changes.pop("dtype", self.dtype)
        weak_type = changes.pop("weak_type", self.weak_type)
        if shape == self.shape:
            changes.setdefault("sharding", self.explicit)
        changes.setdefault("vma", self.vma)
        changes.setdefault("memory_space", self.memory_space)
        return ShapedArray(shape, dtype, weak_type, **changes)

    def without_axis(self, axis: int) -> ShapedArray:
        """The type of one slice along an axis."""
        shape, explicit = self.shape, self.explicit
        if explicit is not None:
            parts = explicit.spec.partitions
            explicit = explicit.with_parts([*parts[:axis], *parts[axis + 1 :]])
        return self.update(shape=shape[:axis] + shape[axis + 1 :], sharding=explicit)

    def with_axis(self, axis: int, size: int, split: Any = None) -> ShapedArray:
        """The type of `size` such values stacked along a new axis; `split` is what splits that."""
        shape, where = self.shape, self.explicit
        if split is not None or where is not None:
            where = where or self.sharding
            parts = where.spec.partitions
            where = where.with_parts([*parts[:axis], split, *parts[axis:]])
        return self.update(shape=(*shape[:axis], size, *shape[axis:]), sharding=where)

    # What a library's own type of several arrays says of each of them (`HiType`); None is no axis.
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
                dtypes.ExtendedDType.has_tangents = True
                tangent = self.update(dtype=rule(self.dtype))
            elif dtypes.issubdtype(self.dtype, np.inexact):
                tangent = self
            else:
                tangent = ShapedArray(self.shape, dtypes.float0)
            self.__dict__["tangent"] = tangent
        return tangent

    at_least_vspace = to_tangent_aval

    def to_cotangent_aval(self) -> ShapedArray:
        """The type of a cotangent: a sum still to be taken where this was summed, and the reverse."""
        if self.explicit is None or not self.explicit.spec.sums:
            return self.to_tangent_aval()
        spec = self.explicit.spec.to_ct_spec()
        return self.to_tangent_aval().update(sharding=self.explicit.with_spec(spec))

    to_ct_aval = to_cotangent_aval

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        if self.dtype == dtypes.float0:
            name = "float0"
        sizes = map(str, self.shape) if self.explicit is None else self._split_sizes()
        space = "<host>" if self.memory_space is MemorySpace.Host else ""
        text = f"{name}{space}[{','.join(sizes)}]"
        if self.vma or self.explicit is not None:
            text += self._over_axes()
        if mesh_axis_types:
            text += self._kinds_of_axes()
        return text

    def _split_sizes(self) -> list[str]:
        return [
            str(size) if part is None else f"{size}@{_shown_axes(part)}"
            for size, part in zip(self.shape, self.explicit.spec.partitions, strict=True)
        ]

    def _over_axes(self) -> str:
        kinds = {"V": self.vma}
        if self.explicit is not None:
            kinds |= {"U": self.explicit.spec.unreduced, "R": self.explicit.spec.reduced}
        shown = [f"{kind}:{_shown_axes(sorted(axes))}" for kind, axes in kinds.items() if axes]
        return f"{{{', '.join(shown)}}}" if shown else ""

    def _kinds_of_axes(self) -> str:
        mesh, kinds = self.sharding.mesh, {}
        for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True):
            kinds.setdefault(kind.name, []).append(name)
        shown = [f"{kind}: {tuple(names)}" for kind, names in kinds.items()]
        return f"({{{', '.join(shown)}}})"

    def __str__(self) -> str:
        return f"~{self.str_short()}" if self.weak_type else self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a scalar has no length; x.size is 1")
        return self.shape[0]

    def __reduce__(self) -> Any:
        return _unpickle, (self.shape, self.dtype, self.weak_type)


hooks.method("shard_aval", ShapedArray, "shard")
hooks.method("unshard_aval", ShapedArray, "unshard")


def _shown_axes(part: Any) -> str:
    """One mesh axis by its name, several as a list."""
    if isinstance(part, (tuple, list)):
        return str(part[0]) if len(part) == 1 else f"({','.join(map(str, part))})"
    return str(part)


def _unpickle(shape, dtype, weak_type):
    return ShapedArray(shape, dtype, weak_type)


_interned: dict[tuple, ShapedArray] = {}


def without_varying(avals: Iterable[Any]) -> tuple[Any, ...]:
    """Return types that vary over no mesh axis, for programs that are traced to be lowered.

    Lowering has no mesh in force, over whose axes the carries of their loops would have to vary.
    """
    return tuple([a.update(vma=frozenset()) if getattr(a, "vma", None) else a for a in avals])


def _intern(cls, shape, dtype, weak_type, sharding, vma, memory_space) -> ShapedArray:
    """Canonicalize the fields and make the one aval that has them."""
    shape = tuple(
        size if isinstance(size, int) or hooks.is_expression(size) else int(size) for size in shape
    )
    if not isinstance(dtype, dtypes.ExtendedDType):
        dtype = np.dtype(dtype)
    if sharding is not None and not hasattr(sharding, "explicit_part"):
        raise TypeError(f"the sharding of a ShapedArray must be a NamedSharding; got {sharding!r}.")
    explicit = None if sharding is None else sharding.explicit_part(len(shape))
    fields = (shape, dtype, bool(weak_type), explicit, frozenset(vma))
    on_host = memory_space is MemorySpace.Host
    key = (*fields, memory_space) if memory_space is not MemorySpace.Device else fields
    aval = _interned.get(key)
    if aval is None:
        ShapedArray.split_seen |= explicit is not None or on_host
        ShapedArray.host_seen |= on_host
        aval = object.__new__(cls)
        aval.shape, aval.dtype, aval.weak_type, aval.explicit, aval.vma = fields
        aval.memory_space = memory_space
        aval.ndim = len(shape)
        size = 1
        for extent in shape:
            size *= extent
        aval.size = size
        aval = _interned.setdefault(key, aval)
    return aval


# From the type of a value to the function that gives its aval; the layers above add their own.
aval_makers: dict[type, Callable[[Any], AbstractValue]] = {}
hi_makers: dict[type, Callable[[Any], AbstractValue]] = {}  # of classes that libraries registered


def get_aval(x: Any) -> AbstractValue:
    """Return the type of an array or number: shape, dtype, weak type and sharding.

    - `x`: array, tracer, NumPy array or number

    The result is an abstract value, such as `ShapedArray`. TypeError for other objects.
    Source: the types of StableHLO's tensors.

    >>> jax.typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    if hi_makers:
        maker = hi_makers.get(type(x))
        if maker is not None:
            return maker(x)
    try:
        return x.aval
    except AttributeError:
        pass
    for kind in type(x).__mro__:
        maker = aval_makers.get(kind)
        if maker is not None:
            return maker(x)
    if hasattr(x, "__jax_array__"):
        return get_aval(x.__jax_array__())
    raise _invalid(
        f"Argument {_shortened(x)!s} of type {type(x)} is not a valid JAX type: "
        "pass an array or a Python number, or mark the argument as static.",
        x,
    )


def _invalid(message: str, value: Any) -> TypeError:
    error = TypeError(message)
    error.invalid_value = value  # so that the primitive that was given it says where it stood
    return error


def say_where(error: TypeError, name: str, args: tuple) -> None:
    """Put the primitive and the position of the value that it does not take before the message."""
    value = error.__dict__.pop("invalid_value", error)
    place = next((place for place, x in enumerate(args) if x is value), None)
    if place is not None:
        error.args = (
            f"Error interpreting argument to {name} as a JAX value. The problematic value is of "
            f"type {type(value)} and was passed to {name} at position {place}. {error}",
        )


def _shortened(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 80 else text[:77] + "..."


def is_array_type(x: Any) -> bool:
    """Whether `x` is a value that a primitive may take."""
    if hasattr(x, "aval") or type(x) in hi_makers:
        return True
    return any(kind in aval_makers for kind in type(x).__mro__)


shaped_abstractify = named(get_aval, "shaped_abstractify", __name__)
typeof = named(get_aval, "typeof", __name__)
pytype_aval_mappings = aval_makers  # upstream's name of it

# Of sizes that may be symbolic, which the built-in functions cannot always compare.


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger one of two sizes."""
    return hooks.max_dim(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller one of two sizes."""
    return hooks.min_dim(d1, d2)


def _array_aval(x: np.ndarray | np.generic) -> ShapedArray:
    dtype = x.dtype
    if not dtypes.is_supported(dtype):
        raise _invalid(
            f"A NumPy array of dtype {dtype} is not a valid JAX type: "
            "convert it to a boolean or numeric dtype, in the machine's byte order.",
            x,
        )
    if type(x) is not np.ndarray and isinstance(x, np.ndarray):
        _check_unmasked(x)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(dtype))


def check_fits(x: int, aval: AbstractValue) -> None:
    """OverflowError for an integer that its dtype does not hold."""
    try:
        np.asarray(x, aval.dtype)
    except OverflowError:
        raise OverflowError(
            f"Python int {x} too large to convert to {aval.dtype.name}: give it as an array of a "
            "wider dtype, with enable_x64 for 64 bits."
        ) from None


def _check_unmasked(x: np.ndarray) -> None:
    """ValueError for a masked array, whose mask would be lost."""
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions: "
            "x.filled() makes an ordinary array of one."
        )


_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def _scalar_aval_maker(kind: type) -> Callable[[Any], ShapedArray]:
    def make(x: Any) -> ShapedArray:
        key = (kind, local.context.settings.enable_x64)
        aval = _scalar_avals.get(key)
        if aval is None:
            dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[kind])
            aval = _scalar_avals[key] = ShapedArray((), dtype, kind is not bool)
        return aval

    return make


aval_makers[np.ndarray] = aval_makers[np.generic] = _array_aval
for _kind in (bool, int, float, complex):
    aval_makers[_kind] = _scalar_aval_maker(_kind)
