"""Small counterparts of upstream's private functions that tests use; `names` says which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

import minijax.numpy as jnp
from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.trace import Tracer
from minijax.errors import float0_error
from minijax.lax import eq
from minijax.lax.convert import convert_element_type, convert_element_type_p
from minijax.numpy import promotion
from minijax.numpy.promotion import (
    check_arraylike,
    promote,
    promote_inexact,
    promote_shapes,
    to_array,
)
from minijax.runtime.mesh import constraint_mesh
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.runtime.platforms import Device
from minijax.sharding import SingleDeviceSharding

python_scalar_types = {bool, int, float, complex}
weak_types = [int, float, complex]


def _dtypes(names: str) -> list[np.dtype]:
    return [np.dtype(getattr(ml_dtypes, name, name)) for name in names.split()]


bool_types = _dtypes("bool")
int_types = _dtypes(
    "uint1 uint2 uint4 uint8 uint16 uint32 uint64 int1 int2 int4 int8 int16 int32 int64"
)
float_types = _dtypes(
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e8m0fnu "
    "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz bfloat16 float16 "
    "float32 float64"
)
complex_types = _dtypes("complex64 complex128")
intn_dtypes = _dtypes("int2 uint2 int4 uint4 int1 uint1")
jax_types = bool_types + int_types + float_types + complex_types
jax_dtype_set = {*jax_types, dtypes.float0}


def scalar_type_to_dtype(typ: type, value: Any = None) -> Any:
    """The dtype that arrays of Python numbers of this type have; OverflowError for too large a one."""
    if typ is int and value is not None:
        get_aval(value)
    return dtypes.canonicalize_dtype(np.dtype(typ))


def default_int_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.int64)


def default_uint_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.uint64)


def default_float_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.float64)


def default_complex_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.complex128)


default_types = {
    "b": lambda: np.dtype(bool), "i": default_int_dtype, "u": default_uint_dtype,
    "f": default_float_dtype, "c": default_complex_dtype,
}  # fmt: skip


def is_weakly_typed(x: Any) -> bool:
    """Whether a value enters promotion as a Python scalar does."""
    return type(x) in weak_types or bool(getattr(getattr(x, "aval", x), "weak_type", False))


def coerce_to_array(x: Any, dtype: Any = None) -> np.ndarray:
    """A NumPy array, of the dtype that a Python scalar has by default unless one is given."""
    if dtype is None and type(x) in python_scalar_types:
        dtype = dtypes.canonicalize_dtype(np.asarray(x).dtype)
    return np.asarray(x, dtype)


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """A dtype that a user gives, as arrays have it; TypeError for what is none."""
    dtypes.check_user_dtype_supported(dtype, fun_name)
    return dtypes.canonicalize_dtype(dtype)


short_dtype_name = dtypes.short_name


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether promotion of the two gives the second: nothing is lost by a cast to it."""
    wanted = dtypes.dtype(output_dtype_or_value)
    return dtypes.lattice_result_type(input_dtype_or_value, wanted)[0] == wanted


def is_concrete(x: Any) -> bool:
    """Whether a value is known: it is no tracer, or one of a derivative that is not recorded."""
    return not isinstance(x, Tracer) or x.concrete() is not None


def const(example: Any, val: Any) -> Any:
    """A number of the dtype and weak type of `example`."""
    aval = get_aval(example)
    if type(val) in python_scalar_types and aval.weak_type:
        return dtypes.scalar_type_of(example)(val)
    return np.asarray(val, aval.dtype)


def equal_in_meet(a: Any, b: Any) -> Any:
    """Whether elements are equal, compared in the narrower of their dtypes."""
    one, other = get_aval(a).dtype, get_aval(b).dtype
    narrower = one if dtypes.promote_types(one, other) == other else other
    return eq(convert_element_type(a, narrower), convert_element_type(b, narrower))


def convert(
    operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None,
    warn_on_complex_to_real_cast: bool = True,
) -> Any:  # fmt: skip
    """`convert_element_type`, whose result may be weakly typed."""
    wanted = get_aval(operand).dtype if new_dtype is None else dtypes.canonicalize_dtype(new_dtype)
    out = convert_element_type(operand, wanted)
    if not weak_type:
        return out
    return convert_element_type_p.bind(out, new_dtype=wanted, weak_type=True, sharding=None)


def _arrays(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The arrays that a rule of promotion gives, where it may leave Python numbers as they are."""
    return lambda *args: [jnp.asarray(x) for x in function(*args)]


promote_args = _arrays(promote)
promote_args_inexact = _arrays(promote_inexact)
promote_dtypes = _arrays(promotion.promote_dtypes)
promote_dtypes_inexact = _arrays(promotion.promote_dtypes_inexact)
promote_dtypes_numeric = _arrays(promotion.promote_dtypes_numeric)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """The arguments as arrays of the complex dtype that they promote to."""
    arrays = promote_dtypes_inexact(*args)
    wanted = dtypes.to_complex_dtype(arrays[0].dtype)
    weak = all(map(is_weakly_typed, args))
    return [convert(x, wanted, weak_type=weak) for x in arrays]


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Arrays of what is array-like; one alone, several as a tuple."""
    check_arraylike(fun_name, *args)
    found = tuple(to_array(fun_name, x, position) for position, x in enumerate(args))
    return found[0] if len(found) == 1 else found


def ensure_arraylike_tuple(fun_name: str, tup: Iterable[Any]) -> tuple[Any, ...]:
    """Arrays of what is array-like, as a tuple."""
    return tuple(to_array(fun_name, x, position) for position, x in enumerate(tup))


def promote_args_complex(fun_name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of the complex dtype that they promote to, of one rank."""
    check_arraylike(fun_name, *args)
    return promote_dtypes_complex(*promote_shapes(fun_name, *args))


def promote_args_numeric(fun_name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of the dtype that they promote to, no booleans, of one rank."""
    check_arraylike(fun_name, *args)
    return promote_dtypes_numeric(*promote_shapes(fun_name, *args))


def arraylike(x: Any) -> bool:
    """Whether a value is an array, a NumPy or Python scalar, or makes an array of itself."""
    return isinstance(x, (np.ndarray, Array)) or np.isscalar(x) or hasattr(x, "__jax_array__")


def arraylike_asarray(x: Any) -> Any:
    """An array of what is array-like; TypeError for anything else."""
    return to_array("asarray", x)


def check_arraylike_or_none(fun_name: str, *args: Any) -> None:
    """TypeError unless each argument is None or `_arraylike`."""
    for position, x in enumerate(args):
        if x is not None and not arraylike(x):
            raise TypeError(
                f"{fun_name} requires ndarray, scalar, or None arguments, got {type(x)} at position "
                f"{position}."
            )


def check_no_float0s(fun_name: str, *args: Any) -> None:
    """TypeError for arrays of float0."""
    if any(getattr(x, "dtype", None) == dtypes.float0 for x in args):
        raise TypeError(str(float0_error(fun_name)))  # callers ask for its very class


def check_for_prngkeys(fun_name: str, *args: Any) -> None:
    """TypeError for random keys among arrays of other dtypes."""
    found = [get_aval(x).dtype for x in args]
    if any(dtypes.is_extended(d) for d in found) and any(d != found[0] for d in found):
        names = ", ".join(getattr(d, "name", str(d)) for d in found)
        raise TypeError(f"{fun_name} does not accept dtypes {names}.")


def canonicalize_device_to_sharding(device: Any) -> Any:
    """The sharding of a device; anything else as it is."""
    return SingleDeviceSharding(device) if isinstance(device, Device) else device


def canonicalize_sharding(
    sharding: Any, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """The sharding that `out_sharding` of the function `api_name` stands for, without devices."""
    found = out_sharding_of(sharding, api_name)
    return None if found is None else found.update(mesh=found.mesh.abstract_mesh)


class _ResourceEnv:
    """The mesh in force, as one asks for that of `with mesh:`."""

    @property
    def physical_mesh(self) -> Any:
        return constraint_mesh()

    @property
    def empty(self) -> bool:
        return constraint_mesh().empty


class _ThreadResources:
    env = _ResourceEnv()


thread_resources = _ThreadResources()
