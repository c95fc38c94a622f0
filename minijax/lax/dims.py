"""`dim_as_value`: a symbolic size as a number that a program computes with."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.features.slots import slots
from minijax.features.symbolic.dims import DimExpr

__all__ = ["dim_as_value_p"]

dim_as_value_p = Primitive("dim_as_value")


@dim_as_value_p.shape_rule
def _(*, dim):
    return ShapedArray((), dtypes.canonicalize_dtype(np.dtype(np.int64)), weak_type=True)


@dim_as_value_p.impl
def _(*, dim):
    raise NotImplementedError(
        "Evaluation rule for 'dim_as_value' is not implemented. It seems that you are using shape "
        f"polymorphism outside jax.export: the size '{dim}' has no value yet."
    )


dim_as_value_p.rule_jvp = no_rule("it has no operands")
dim_as_value_p.rule_transpose = no_rule("it has no operands")
dim_as_value_p.rule_batch = no_rule("it has no operands")


@dim_as_value_p.lower
def _(b, *, dim):
    return b.convert(b.size(dim), b.out.dtype)


def _as_array(dim: DimExpr) -> Any:
    return dim_as_value_p.bind(dim=dim)


slots.fill(dim_as_array=_as_array)
