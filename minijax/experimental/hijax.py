"""`minijax.experimental.hijax`: types and primitives that libraries define.

A type is a subclass of `HiType` (of `MutableHiType`, if its values change in place), and
`register_hitype` says which objects are its values; a primitive is a subclass of `VJPHiPrimitive`,
with a rule for each transform it is to go through, or of `HiPrimitive`. In a jaxpr such values are
single variables; in a compiled program they are the arrays they are made of.
"""

from __future__ import annotations

from minijax.core.avals import AbstractValue, ShapedArray
from minijax.core.effects import control_flow_allowed as control_flow_allowed_effects
from minijax.features.hijax.lowering import HiPrimitive
from minijax.features.hijax.primitives import VJPHiPrimitive
from minijax.features.hijax.types import (
    AvalMutableQDD,
    AvalQDD,
    HiPspec,
    HiType,
    MutableHiType,
    aval_method,
    aval_property,
    register_hitype,
)
from minijax.features.references.cells import AbstractRef
from minijax.features.vmappable import MappingSpec  # noqa: F401  not shown, as upstream's is not
from minijax.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal
from minijax.lax.ref_views import RefView as TransformedRef
from minijax.tracebacks import public

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType",
    "MutableHiType", "ShapedArray", "TransformedRef", "VJPHiPrimitive", "Zero", "aval_method",
    "aval_property", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]  # fmt: skip

__dir__ = public(__name__)
