"""Small counterparts of upstream's private functions that tests use; `names` says which.

Floor 7: may import all of minijax.
"""

from __future__ import annotations

from typing import Any

import jaxlib
import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.core.trace import Tracer
from minijax.lax.convert import convert_element_type
from minijax.numpy.promotion import (
    check_arraylike,
    converted,
    promote,
    promote_inexact,
    to_array,
)

__all__ = [
    "check_and_canonicalize_user_dtype", "coerce_to_array", "const", "convert",
    "default_complex_dtype", "default_float_dtype", "default_int_dtype", "default_uint_dtype",
    "ensure_arraylike", "is_concrete", "is_weakly_typed", "jaxlib_version", "jaxlib_version_str",
    "promote_args", "promote_args_inexact", "python_scalar_types", "safe_to_cast", "short_dtype_name",
    "weak_types",
]  # fmt: skip

jaxlib_version_str: str = jaxlib.__version__
jaxlib_version = tuple(int(part) for part in jaxlib_version_str.split(".")[:3] if part.isdigit())
python_scalar_types = {bool, int, float, complex}
weak_types = [int, float, complex]


def default_int_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.int64)


def default_uint_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.uint64)


def default_float_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.float64)


def default_complex_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.complex128)


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


def short_dtype_name(dtype: Any) -> str:
    """A dtype's name as jaxprs print it."""
    return dtypes.short_name(dtype)


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether promotion of the two gives the second: nothing is lost by a cast to it."""
    given, weak = dtypes.lattice_result_type(input_dtype_or_value)
    wanted = dtypes.dtype(output_dtype_or_value)
    return dtypes.promote_types(given, wanted) == wanted or (weak and given == wanted)


def is_concrete(x: Any) -> bool:
    """Whether a value is known: no tracer."""
    return not isinstance(x, Tracer)


def const(example: Any, val: Any) -> Any:
    """A number of the dtype and weak type of `example`."""
    aval = get_aval(example)
    if type(val) in python_scalar_types and aval.weak_type:
        return val
    return np.asarray(val, aval.dtype)


def convert(
    operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None,
    warn_on_complex_to_real_cast: bool = True,
) -> Any:  # fmt: skip
    """`convert_element_type`, whose result may be weakly typed."""
    wanted = get_aval(operand).dtype if new_dtype is None else dtypes.canonicalize_dtype(new_dtype)
    return converted(convert_element_type(operand, wanted), wanted, weak_type)


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """Arrays of one dtype and rank, as `jax.numpy` promotes operands."""
    check_arraylike(fun_name, *args)
    return list(promote(fun_name, *args))


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """The same, of an inexact dtype."""
    check_arraylike(fun_name, *args)
    return list(promote_inexact(fun_name, *args))


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Arrays of what is array-like; one alone, several as a tuple."""
    check_arraylike(fun_name, *args)
    found = tuple(to_array(fun_name, x, position) for position, x in enumerate(args))
    return found[0] if len(found) == 1 else found
