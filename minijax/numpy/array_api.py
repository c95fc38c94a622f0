"""The answers of `minijax.numpy` to the array API standard: its version, dtypes and devices.

Source: https://data-apis.org/array-api/2024.12/, "Inspection".
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.runtime.platforms import devices

__all__ = ["ArrayNamespaceInfo", "array_module", "array_namespace"]

VERSION = "2024.12"

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class ArrayNamespaceInfo:
    """Information about `minijax.numpy` as a namespace of the array API standard.

    Its methods return dtypes, devices and capabilities. Source: the standard, "Inspection".

    >>> jnp.__array_namespace_info__().default_device() is None
    True
    """

    def capabilities(self) -> dict[str, Any]:
        """Return a dict of optional behaviours; none has shapes that depend on values.

        Source: the array API standard.

        >>> jnp.__array_namespace_info__().capabilities()["data-dependent shapes"]
        False
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return the device of new arrays: None, which stands for the first one.

        Source: the array API standard.

        >>> jnp.__array_namespace_info__().default_device() is None
        True
        """
        return None

    def devices(self) -> list[Any]:
        """Return the list of devices that functions take. Source: the array API standard.

        >>> jax.devices()[0] in jnp.__array_namespace_info__().devices()
        True
        """
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the default dtype of each kind, of 64 bits if these are enabled.

        Source: the array API standard.

        >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
        dtype('int32')
        """
        return {
            "real floating": dtypes.float_(),
            "complex floating": dtypes.complex_(),
            "integral": dtypes.int_(),
            "indexing": dtypes.int_(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of a kind, or of several kinds, by name.

        - `kind`: None for all, a name as `isdtype` takes, or a tuple of these.

        KeyError for an unknown kind. Source: the array API standard.

        >>> sorted(jnp.__array_namespace_info__().dtypes(kind="bool"))
        ['bool']
        """
        if kind is None:
            kind = ("bool", "numeric")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = [name for kind in kinds for name in _KINDS[kind]]
        found = {name: np.dtype(name) for name in names}
        return {n: dtype for n, dtype in found.items() if dtypes.canonicalize_dtype(dtype) == dtype}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Return information about the namespace: its dtypes, devices and capabilities.

    Source: the array API standard, "Inspection".

    >>> jnp.__array_namespace_info__().default_device() is None
    True
    """
    return ArrayNamespaceInfo()


def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array's functions, `minijax.numpy`.

    - `api_version`: None, or the version of the array API standard that is supported.

    ValueError for another version. Source: the array API standard.

    >>> jnp.ones(3).__array_namespace__() is jnp
    True
    """
    if api_version is not None and api_version != VERSION:
        raise ValueError(
            f"api_version={api_version!r} is not available; available versions are: {[VERSION]}"
        )
    return sys.modules["minijax.numpy"]


def array_module(self: Array, types: Iterable[type]) -> Any:
    """Return the namespace for operands of these classes, or NotImplemented where one is no array's.

    Source: NumPy enhancement proposal 37.

    >>> jnp.ones(3).__array_module__([np.ndarray]) is jnp
    True
    """
    if all(issubclass(kind, (Array, np.ndarray)) for kind in types):
        return sys.modules["minijax.numpy"]
    return NotImplemented
