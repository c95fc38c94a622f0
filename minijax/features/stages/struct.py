"""The types of arrays as users write them, `ShapeDtypeStruct`, and of results, `eval_shape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from minijax import dtypes, errors, tree_util
from minijax.arguments.functions import avals_of, check_callable
from minijax.arrays.array import ArrayImpl, Signature, as_array
from minijax.config import local
from minijax.core.avals import (
    ShapedArray,
    abstract,
    aval_makers,
    get_aval,
    opaque_types,
)
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.core.trace import Tracer
from minijax.features.queries import Reference
from minijax.features.sharding.memory import MemorySpace, space_of, within
from minijax.features.sharding.types import ManualAxisType
from minijax.features.slots import slots
from minijax.runtime import platforms
from minijax.runtime.layouts import AutoLayout, Format, sharding_in
from minijax.runtime.mesh import PartitionSpec, device_mesh, get_abstract_mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.sharding import Sharding, single_device
from minijax.tracebacks import boundary
from minijax.transforms.jit import PjitFunction
from minijax.transforms.make_jaxpr import stage

__all__ = ["ShapeDtypeStruct", "eval_shape", "shape_struct"]


def _mesh_in_force() -> Any:
    mesh = device_mesh()
    return get_abstract_mesh() if mesh.empty else mesh


class ShapeDtypeStruct:
    """Shape, dtype and other static properties of an array, without its value.

    - `shape`, `dtype`: tuple of integers and dtype
    - `sharding`, `weak_type`, `manual_axis_type`, `is_ref`: further properties of the type

    ValueError without a dtype, TypeError for a shape that is not a sequence, and for a
    `manual_axis_type` that is no `jax.sharding.ManualAxisType`.
    Source: the types of StableHLO's tensors.

    >>> jax.ShapeDtypeStruct((2, 3), jnp.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("_given", "dtype", "is_ref", "manual_axis_type", "shape", "weak_type")

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: Any = False,
        manual_axis_type: Any = None,
        is_ref: Any = False,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if not (sharding is None or isinstance(sharding, (Sharding, PartitionSpec, Format))):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, "
                "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                f"{sharding} of type {type(sharding)}."
            )
        if not isinstance(manual_axis_type, (ManualAxisType, type(None))):
            raise TypeError(
                "`manual_axis_type` argument passed to ShapeDtypeStruct should be of type "
                f"`jax.sharding.ManualAxisType`. Got type {type(manual_axis_type)}"
            )
        layout = sharding.layout if isinstance(sharding, Format) else None
        if isinstance(layout, AutoLayout):
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout in a "
                f"`ShapeDtypeStruct`. Got {sharding}: give a Layout, or its sharding only."
            )
        if layout is None:
            sharding = sharding_in(sharding)
        rank = len(tuple(shape))
        if isinstance(sharding, PartitionSpec) and len(sharding) > rank:
            raise ValueError(
                f"PartitionSpec {sharding!r} is only valid for values of rank at least "
                f"{len(sharding)}, but was applied to a value of rank {rank}."
            )
        if len(getattr(sharding_in(sharding), "spec", ())) > rank:
            sharding_in(sharding).check_compatible_aval(tuple(shape))  # raises
        is_extended = dtypes.issubdtype(dtype, dtypes.extended)
        fields = (
            sharding, dtype if is_extended else dtypes.dtype(dtype), is_ref, manual_axis_type,
            tuple(shape), weak_type
        )  # fmt: skip
        for name, value in zip(ShapeDtypeStruct.__slots__, fields, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(
            f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects: make a new "
            f"one with x.update({name}=...)."
        )

    def __reduce__(self) -> Any:
        return _struct, tuple(getattr(self, name) for name in ShapeDtypeStruct.__slots__)

    @property
    def sharding(self) -> Any:
        """The sharding that was given; of a PartitionSpec, that over the mesh in force."""
        if not isinstance(self._given, PartitionSpec):
            return sharding_in(self._given)
        mesh = _mesh_in_force()
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be "
                f"empty. Please use `jax.set_mesh` to set the mesh context. Got {self._given}."
            )
        return NamedSharding(mesh, self._given)

    @property
    def format(self) -> Format:
        """The layout that was given, or None, and the sharding."""
        return self._given if isinstance(self._given, Format) else Format(None, self.sharding)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a scalar has no length; x.size is 1")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Return the struct with some fields changed; names other than its own are ignored."""
        given = {name: getattr(self, name) for name in ShapeDtypeStruct.__slots__}
        given["_given"] = new = changes.get("sharding", self._given)
        if isinstance(self._given, Format) and not (new is None or isinstance(new, Format)):
            raise ValueError(
                f"You are updating ShapeDtypeStruct with a {type(new)} when the original "
                f"ShapeDtypeStruct had a concrete layout {self._given}. This might lead to bugs. If you "
                "want to do this, create a new ShapeDtypeStruct via the constructor."
            )
        return _struct(
            *(given | {name: x for name, x in changes.items() if name in given}).values()
        )

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array, a number or another struct, with its sharding if it has been put."""
        if isinstance(x, ShapeDtypeStruct):
            return x
        made = shape_struct(get_aval(x))
        put = not isinstance(x, Tracer) and getattr(x, "committed", False)
        return made.update(sharding=getattr(x, "format", x.sharding)) if put else made

    def _fields(self):
        return (
            self.shape, self.dtype, self._given, self.weak_type, self.is_ref, self.manual_axis_type
        )  # fmt: skip

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, ShapeDtypeStruct) and self._fields() == other._fields()

    def __hash__(self) -> Any:
        return hash(self._fields())

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        unplaced = isinstance(self._given, PartitionSpec) and _mesh_in_force().empty
        given = self._given if unplaced else self.sharding
        manual = self.manual_axis_type
        manual = f", manual_axis_type={manual}" if manual is not None else ""
        sharding = f", sharding={sharding_in(given)}" if given is not None else ""
        if isinstance(self._given, Format):
            sharding += f", format={self._given.layout}"
        ref = ", is_ref=True" if self.is_ref else ""
        more = f"{sharding}{weak}{manual}{ref}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{more})"

    __str__ = __repr__


def _struct(sharding, dtype, is_ref, manual_axis_type, shape, weak_type) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(
        shape,
        dtype,
        sharding=sharding,
        weak_type=weak_type,
        manual_axis_type=manual_axis_type,
        is_ref=is_ref,
    )


def _aval_of(x: ShapeDtypeStruct) -> ShapedArray:
    dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
    where = x.sharding
    aval = ShapedArray(x.shape, dtype, x.weak_type, sharding=where)
    if isinstance(where, NamedSharding) and space_of(where.memory_kind) is MemorySpace.Host:
        aval = within(aval, MemorySpace.Host)
    if x.manual_axis_type is None:
        return aval
    return aval.update(vma=x.manual_axis_type.varying & local.context.varying)


aval_makers[ShapeDtypeStruct] = _aval_of
opaque_types.add(ShapeDtypeStruct)  # a function may be given one that it makes no use of


class _NoValue:
    """Stands for the buffer of an operand that has no value."""

    __slots__ = ("struct",)

    def __init__(self, struct: ShapeDtypeStruct) -> None:
        self.struct = struct

    def is_deleted(self) -> bool:
        raise TypeError(
            f"Argument of shape {get_aval(self.struct).str_short()} of type {type(self.struct)} is "
            "not a valid JAX type. A ShapeDtypeStruct has no value: give an array, or use "
            "jax.eval_shape, jax.make_jaxpr or the method `lower` of a jitted function."
        )


def unvalued(x: Any, primitive: Any) -> ArrayImpl:
    """See `core.hooks`. The array can only be given to programs that make no use of it."""
    if isinstance(x, Reference) and primitive is not None:
        raise errors.RefOperandError(primitive, x.aval)
    if type(x) is not ShapeDtypeStruct:
        return as_array(x)
    place = single_device(platforms.default_device())
    return ArrayImpl(_NoValue(x), Signature(get_aval(x), place, False))


def without_unread(primitive: Any, args: Any, params: dict) -> tuple[Any, dict]:
    """See `features.slots`: of a call that is given structs, as far as its rule finds them."""
    structs = any(type(x) is ShapeDtypeStruct for x in args)
    if not structs or primitive.rule_dce is None or params.get("keep_unused"):
        return args, params
    avals = tuple(map(get_aval, args))
    in_vars, out_vars = map(Var, avals), map(Var, primitive.out_avals(avals, params))
    effects = primitive.effects_of(params, avals)
    used, reduced = _reduced(JaxprEqn([*in_vars], [*out_vars], primitive, params, effects))
    return [x for x, keep in zip(args, used, strict=True) if keep], reduced.params


def _reduced(eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn]:
    """Return flags of the operands that an equation reads, and the equation on those alone.

    Eliminating dead code leaves a call as it is whose results are all used.
    """
    if eqn.primitive.rule_dce is None:
        return [True] * len(eqn.invars), eqn
    params = {name: _reading_less(value) for name, value in eqn.params.items()}
    used = [True] * len(eqn.outvars)
    flags, reduced = eqn.primitive.rule_dce(used, eqn.replace(params=params))
    return ([True] * len(eqn.invars), eqn) if reduced is None else (flags, reduced)


def _reading_less(value: Any) -> Any:
    """A param of a call: programs are given without operands of inner calls that are not read."""
    if type(value) is tuple:
        return tuple(map(_reading_less, value))
    if type(value) is not ClosedJaxpr:
        return value
    old = value.jaxpr
    eqns = [_reduced(eqn)[1] for eqn in old.eqns]
    jaxpr = Jaxpr(old.constvars, old.invars, old.outvars, eqns, old.effects, old.debug_info)
    return ClosedJaxpr(jaxpr, value.consts)


def without_structs(closed: ClosedJaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A program and its leading inputs, less those that are structs and that it does not read."""
    consts = list(consts)
    if not any(type(c) is ShapeDtypeStruct for c in consts):
        return closed, consts
    old = _reading_less(closed).jaxpr
    read = {*old.outvars, *[v for eqn in old.eqns for v in eqn.invars if type(v) is Var]}
    left = [
        type(c) is not ShapeDtypeStruct or v in read
        for v, c in zip(old.invars, consts, strict=False)
    ]
    invars = [*compress(old.invars, left), *old.invars[len(consts) :]]
    jaxpr = Jaxpr(old.constvars, invars, old.outvars, old.eqns, old.effects, old.debug_info)
    return ClosedJaxpr(jaxpr, closed.consts), [*compress(consts, left)]


def check_no_structs(consts: Sequence[Any]) -> None:
    """TypeError if one of the values that a program closes over is a struct."""
    for c in consts:
        if type(c) is ShapeDtypeStruct:
            raise TypeError(
                "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a JAX "
                f"function: {c} is. Pass it as an argument of the function."
            )


def shape_struct(aval: Any) -> Any:
    """The struct of a type; a token, and a type that a library defined, stand for themselves.

    Within a mesh that has no Auto axes a whole array has a sharding too.
    Where types say over which axes values vary, so does the struct.
    """
    if not isinstance(aval, ShapedArray):
        return aval.of_values()
    where, mesh = hooks.stated_sharding(aval), get_abstract_mesh()
    if where is None and not (mesh.empty or mesh.auto_axes):
        if not dtypes.issubdtype(aval.dtype, dtypes.extended):
            where = NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim))
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        sharding=where,
        weak_type=aval.weak_type,
        manual_axis_type=aval.manual_axis_type if local.context.varying else None,
    )


@boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Compute the shapes and dtypes of the results of a function, without running it.

    - `fun`: function of pytrees of arrays
    - `args`, `kwargs`: arrays, or objects with `shape` and `dtype`

    The result is a pytree of `ShapeDtypeStruct`. TypeError unless `fun` is callable.
    Source: abstract interpretation (Cousot and Cousot, 1977).

    >>> jax.eval_shape(lambda x: x @ x.T, jnp.ones((2, 3)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun)
    if isinstance(fun, PjitFunction):  # it knows which of its arguments are static
        return fun.eval_shape(*args, **kwargs)
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals = avals_of("eval_shape", fun, leaves, in_tree, (), abstract)
    traced = stage("eval_shape", fun, in_tree, avals)
    return traced.out_tree.unflatten([shape_struct(aval) for aval in traced.closed.out_avals])


hooks.fill(shape_struct=shape_struct, unvalued=unvalued)
slots.fill(without_unread=without_unread)
