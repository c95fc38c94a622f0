"""The error classes of minijax, named as upstream names them. Ground floor: imports nothing.

Each message is in three parts: what was written, what was seen, what to do.
"""

from __future__ import annotations

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]


class JAXTypeError(TypeError):
    """A TypeError with a tracer or a key in it."""


class JAXIndexError(IndexError):
    """An IndexError with a tracer in it."""


class ConcretizationTypeError(JAXTypeError):
    """A tracer stood where a known value is needed."""


class TracerArrayConversionError(JAXTypeError):
    """A tracer was to become a NumPy array."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was asked whether it is true: an `if`, a `while`, `and`, `or`, `assert`."""


class TracerIntegerConversionError(JAXTypeError):
    """A tracer was to become a Python integer: an index, a shape, `range(x)`."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A boolean mask that is a tracer was used as an index: the result's shape is unknown."""


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after its trace had ended: it leaked through a side effect."""


class ShardingTypeError(Exception):
    """Operands are split over explicit mesh axes in ways that do not say how the result is."""


class TypePromotionError(ValueError):
    """Two dtypes have no common type under the promotion rules in force."""


class KeyReuseError(JAXTypeError):
    """One random key was consumed twice."""


class JaxprTypeError(TypeError):
    """A jaxpr whose equations do not fit together: see `minijax.extend.core.check_jaxpr`."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic sizes that has no one answer."""
