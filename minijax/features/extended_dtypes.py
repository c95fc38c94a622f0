"""Dtypes whose tangents are of a dtype of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray

__all__ = ["PrimalTangentDType", "primal_tangent_dtype"]


class PrimalTangentDType(dtypes.ExtendedDType):
    """The dtype of values that are stored as one dtype, and have tangents of another."""

    __slots__ = ("name", "primal_dtype", "tangent")

    type = dtypes.extended

    def __init__(self, primal_dtype: Any, tangent: Any, name: str | None):
        self.primal_dtype, self.tangent = np.dtype(primal_dtype), np.dtype(tangent)
        pair = "/".join(map(dtypes.short_name, (self.primal_dtype, self.tangent)))
        self.name = name or f"PrimalTangentDType{{{pair}}}"

    def _key(self) -> tuple:
        return self.primal_dtype, self.tangent, self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is PrimalTangentDType and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return self.name

    class _rules:
        @staticmethod
        def physical_element_aval(dtype: PrimalTangentDType) -> ShapedArray:
            return ShapedArray((), dtype.primal_dtype)

        @staticmethod
        def tangent_dtype(dtype: PrimalTangentDType) -> np.dtype:
            return dtype.tangent

        @staticmethod
        def convert_from(dtype: PrimalTangentDType, other: Any) -> bool:
            return dtype.primal_dtype == other

        @staticmethod
        def convert_to(other: Any, dtype: PrimalTangentDType) -> bool:
            return dtype.primal_dtype == other


def primal_tangent_dtype(
    primal_dtype: Any, tangent_dtype: Any, name: str | None = None
) -> PrimalTangentDType:
    """A dtype of values stored as `primal_dtype`, whose tangents are of `tangent_dtype`.

    `lax.convert_element_type` gives values of it from those of `primal_dtype`, and the reverse; what
    computes with them has a derivative by a custom rule.
    """
    return PrimalTangentDType(primal_dtype, tangent_dtype, name)
