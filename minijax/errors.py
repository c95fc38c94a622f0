"""The error classes of minijax, named as upstream names them. Imports nothing.

Each message is in three parts: what was written, what was seen, what to do.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from minijax.namespace import shown

__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError",
]  # fmt: skip


_F = TypeVar("_F", bound=Callable[..., Any])


def about_tracer(
    tracer: Any, words: str, stop: str = "", context: str = "", remedy: str = ""
) -> str:
    """Return lines on what a tracer cannot do: what for, where it comes from, and what to do."""
    shown = f"{words} traced array with shape {tracer.aval.str_short()}{stop}"
    return "\n".join(filter(None, (shown, context, tracer.origin(), remedy)))


class _WithPage(Exception):
    """An error that is made of its message, or of the tracer at fault; ends with its page's address."""

    _words, _stop = "", ""  # what is said of a tracer, before and after its type

    def __init__(self, given: Any, context: str = "", remedy: str = ""):
        text = given if isinstance(given, str) else self._about(given, context, remedy)
        page = f"See https://docs.jax.dev/en/latest/errors.html#jax.errors.{type(self).__name__}"
        super().__init__(text if page in text else f"{text}\n{page}")

    def _about(self, given: Any, context: str, remedy: str) -> str:
        if not self._words or not hasattr(given, "origin"):
            return f"{self._words} {given}".strip()
        return about_tracer(given, self._words, self._stop, context, remedy)


class JAXTypeError(_WithPage, TypeError):
    """A TypeError with a tracer or a key in it."""


class JAXIndexError(_WithPage, IndexError):
    """An IndexError with a tracer in it."""


class ConcretizationTypeError(JAXTypeError):
    """A tracer stood where a known value is needed."""

    _words = "Abstract tracer value encountered where concrete value is expected:"


class TracerArrayConversionError(JAXTypeError):
    """A tracer was to become a NumPy array."""

    _words = "The numpy.ndarray conversion method __array__() was called on"


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was asked whether it is true: an `if`, a `while`, `and`, `or`, `assert`."""

    _words, _stop = "Attempted boolean conversion of", "."


class TracerIntegerConversionError(JAXTypeError):
    """A tracer was to become a Python integer: an index, a shape, `range(x)`."""

    _words = "The __index__() method was called on"


class NonConcreteBooleanIndexError(JAXIndexError):
    """A boolean mask that is a tracer was used as an index: the result's shape is unknown."""

    def _about(self, given: Any, context: str, remedy: str) -> str:
        return f"Array boolean indices must be concrete; got {given}\n{context}"


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


class DeletedError(RuntimeError, ValueError):
    """A deleted array was used; upstream raises the one class or the other, by where it is seen."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic sizes that has no one answer."""


if TYPE_CHECKING:

    class JaxRuntimeError(RuntimeError):
        """An error of XLA's; jaxlib's class, which `runtime.executables` puts here."""


class RefOperandError(ValueError, TypeError):
    """A reference was given to an operation on arrays."""

    def __init__(self, primitive: Any, aval: Any):
        super().__init__(
            f"Attempting to pass a Ref {aval.str_short()} to a primitive: {primitive.name} -- did you "
            "forget to unpack ([...]) the ref? Operations take what it holds: read it, as in ref[...]."
        )


class Float0Error(TypeError, ValueError):
    """An array of float0 was used as numbers; upstream's class depends on which check meets it."""


def float0_error(name: object, position: int | None = None) -> Float0Error:
    """Return the error for an array of float0 given to a function, or to a primitive at a position."""
    given = "array" if position is None else f"at position {position}"
    return Float0Error(
        f"Called {name} with a float0 {given}. float0s do not support any operations by design, because "
        "they are not compatible with non-trivial vector spaces. They are the tangents of integers: "
        "make ordinary zeros with np.zeros_like(x, dtype=float), or do not differentiate with respect "
        "to integers."
    )


def invalid_value(message: str, value: Any) -> TypeError:
    """Return the error for a value that no primitive takes; `say_where` says where it stood."""
    error: Any = TypeError(message)
    error.invalid_value = value
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


def length_of(shape: Sequence[Any]) -> Any:
    """The length of an array of this shape. TypeError for that of a scalar."""
    if not shape:
        raise TypeError("len() of unsized object: a scalar has no length; x.size is 1")
    return shape[0]


def shape_error(sizes: Sequence[Any] | str, name: str = "") -> TypeError:
    """Return the error for an argument that is no shape."""
    lines = [f"Shapes must be 1D sequences of concrete values of integer type, got {sizes}."]
    if name:
        lines.append(f"It is the argument {name}.")
    traced = [x for x in sizes if hasattr(x, "origin")]
    if traced:
        lines += [
            "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
            *(x.origin() for x in traced),
        ]
    return TypeError("\n".join(lines))


def shortened(x: Any, text_of: Callable[[Any], str] = repr) -> str:
    """The text of a value for a message."""
    text = text_of(x)
    return text if len(text) <= 80 else text[:77] + "..."


_ACCIDENTS = (AttributeError, KeyError, IndexError)


def arguments_checked(fun: _F) -> _F:
    """Decorator: an error inside that a wrong argument caused is a TypeError that names the argument.

    An argument is wrong if the classes of its annotation, where this names classes, are not its own.
    Nothing is looked at before an error.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except _ACCIDENTS:
            wrong = _wrong_argument(fun, args, kwargs)
            if wrong is None:
                raise
        raise TypeError(wrong)  # outside of the handler: the accident is not its context

    return cast(_F, call)


def check_arguments_of(namespace: dict[str, Any]) -> None:
    """Let all public functions of a module be `arguments_checked`."""
    for name in namespace["__all__"]:
        if inspect.isfunction(namespace[name]):
            namespace[name] = arguments_checked(namespace[name])


def _wrong_argument(fun: Callable, args: tuple, kwargs: dict) -> str | None:
    try:
        given = inspect.signature(fun).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    for name, value in given.items():
        written = fun.__annotations__.get(name)
        try:
            kind = eval(written, fun.__globals__) if isinstance(written, str) else written
        except Exception:  # a name that only type checkers know
            continue
        if not _is_of(kind, value):
            return (
                f"{fun.__name__}: the argument {name} must be of type {written}; got "
                f"{str(value)[:80]} of type {type(value).__name__}."
            )
    return None


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value is what an annotation says; True where that is not told by classes."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(one, value) for one in inner)
    if kind in (int, float, complex):
        return isinstance(value, numbers.Number) or hasattr(value, "dtype")
    if kind is None or kind is type(None):
        return value is None
    if origin is collections.abc.Sequence:
        if isinstance(value, (list, tuple)):
            return all(_is_of(inner[0], item) for item in value)
        return hasattr(value, "__getitem__")
    if getattr(kind, "__name__", "") in ("Array", "ndarray"):  # told by what they have
        return hasattr(value, "dtype") or isinstance(value, numbers.Number)
    return not isinstance(kind, type) or isinstance(value, kind)


__dir__ = shown(__name__)
