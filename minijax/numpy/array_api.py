"""What `minijax.numpy` says of itself by the array API standard: its version, dtypes and devices.

May import the floors below. Source: https://data-apis.org/array-api/2024.12/, "Inspection".
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.runtime.platforms import devices

__all__ = ["ArrayNamespaceInfo", "array_namespace"]

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
    """What the array API standard wants to know of a namespace of arrays."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional behaviours there are: none whose shapes depend on values."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The device of new arrays: None, which stands for the first one."""
        return None

    def devices(self) -> list[Any]:
        """What may be given as `device`."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of results where none is asked for; they follow 64-bit mode."""
        return {
            "real floating": dtypes.float_(),
            "complex floating": dtypes.complex_(),
            "integral": dtypes.int_(),
            "indexing": dtypes.int_(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of the standard that there are in this mode, of a kind or of several.

        KeyError for a kind that the standard does not name.
        """
        if kind is None:
            kind = ("bool", "numeric")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = [name for kind in kinds for name in _KINDS[kind]]
        found = {name: np.dtype(name) for name in names}
        return {n: dtype for n, dtype in found.items() if dtypes.canonicalize_dtype(dtype) == dtype}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What the array API standard wants to know of `minijax.numpy`."""
    return ArrayNamespaceInfo()


def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The namespace of the functions for this array: `minijax.numpy`.

    ValueError for a version of the array API standard that it does not follow.
    """
    if api_version is not None and api_version != VERSION:
        raise ValueError(f"api_version={api_version!r} is not available; available: {[VERSION]}.")
    return sys.modules["minijax.numpy"]
