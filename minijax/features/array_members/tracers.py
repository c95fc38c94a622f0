"""Members of tracers: errors where a value is needed, that say what asked; and what libraries ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax import errors
from minijax.arguments.values import needs_value
from minijax.core.array import attach, attach_class
from minijax.core.hooks import hooks
from minijax.core.trace import Trace, Tracer
from minijax.transforms.batching import BatchTracer
from minijax.transforms.jvp import JVPTracer

__all__ = ["unknown_value"]

# By who asks for the value: the class of the error, which begins with upstream's sentence (libraries'
# tests look for it), what is said of the one who asks, and the remedy.
_ASKED: dict[str, tuple[type[Exception], str, str]] = {
    "bool": (
        errors.TracerBoolConversionError, "",
        "An `if`, `while`, `and`, `or`, `not` or `assert` asks for the truth value. Use "
        "minijax.lax.cond, minijax.lax.while_loop or minijax.numpy.where, and logical_and, "
        "logical_or and logical_not of minijax.numpy for `and`, `or` and `not`; or, if the "
        "argument need not be traced, mark it static (static_argnums, static_argnames).",
    ),
    "index": (
        errors.TracerIntegerConversionError, "",
        "An index of a list, a shape and `range` need Python integers. Mark the argument static "
        "(static_argnums, static_argnames), or index with an array: minijax.numpy.asarray(x)[i].",
    ),
    "__array__": (
        errors.TracerArrayConversionError, "",
        "A NumPy function or `numpy.asarray` does that: call the function of the same name in "
        "minijax.numpy, or compute this outside of the transformed function.",
    ),
}  # fmt: skip
for _kind in ("int", "float", "complex"):
    _ASKED[_kind] = (
        errors.ConcretizationTypeError,
        f"The problem arose with the `{_kind}` function. If trying to convert the data type of a "
        f"value, try using `x.astype({_kind})` or `jnp.array(x, {_kind})` instead.",
        "Or mark the argument static (static_argnums, static_argnames).",
    )
for _kind, _said in {
    "item": "This occurred in the item() method of jax.Array",
    "tolist": "The tolist() method was called on it.",
}.items():
    _ASKED[_kind] = (
        errors.ConcretizationTypeError,
        _said,
        "Return it and convert it outside of the traced program, or mark the argument static "
        "(static_argnums, static_argnames).",
    )


def unknown_value(tracer: Tracer, asked: str) -> Exception:
    """Return the error for a tracer whose value was asked for, and is not known."""
    aval = tracer.aval
    if asked == "bool" and aval.size != 1:
        return ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() "
            f"or a.all(). Got {tracer.described()}."
        )
    if asked == "index" and (aval.ndim or aval.dtype.kind not in "iu"):
        return TypeError(
            f"Only integer scalar arrays can be converted to a scalar index. Got {tracer.described()}."
        )
    if asked in ("int", "float", "complex") and aval.ndim:
        return TypeError(
            "Only scalar arrays can be converted to Python scalars; got "
            f"arr.ndim={aval.ndim}: {tracer.described()}. Index it first."
        )
    kind, *sentences = _ASKED[asked]
    return kind(tracer, *sentences)


hooks.fill(unknown_value=unknown_value)


def _only_concrete(name: str, asked: str) -> Callable:
    def refuse(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        shape = f"traced array with shape {self.aval.str_short()}."
        raise needs_value(self, f"{asked} {shape}", "Only concrete arrays hold a buffer.")

    refuse.__name__ = name
    return refuse


def _not_available(name: str) -> property:
    def refuse(self: Tracer) -> Any:
        refused = f"The {name!r} method is not available on"
        raise AttributeError(
            errors.about_tracer(self, refused, ".", remedy="Ask it of the results.")
        )

    return property(refuse)


def _sharding(self: Tracer) -> Any:
    raise AttributeError(
        f"The 'sharding' attribute is not available on traced array with shape "
        f"{self.aval.str_short()}. To query sharding information on tracers, use minijax.typeof(x): "
        "the rest is known once the program runs."
    )


_METHODS = (
    "delete", "devices", "is_deleted", "on_device_size_in_bytes", "unsafe_buffer_pointer",
    "__reduce__", "addressable_data", "__dlpack__", "tobytes",
)  # fmt: skip
_ATTRIBUTES = (
    "addressable_shards", "committed", "global_shards", "is_fully_addressable",
    "is_fully_replicated", "traceback",
)  # fmt: skip
attach(
    {
        **{name: _only_concrete(name, f"The {name}() method was called on") for name in _METHODS},
        **{
            name: property(_only_concrete(name, f"The {name!r} attribute is not available on"))
            for name in _ATTRIBUTES
        },
        **{name: _not_available(name) for name in ("block_until_ready", "copy_to_host_async")},
        "sharding": property(_sharding),
    },
    Tracer,
)


# -- members that libraries override in tracers and traces of their own, and ask of ours ---------------


def _referent_in(name: str) -> Callable:
    def get_referent(self: Tracer) -> Any:
        inner = getattr(self, name)
        return inner.get_referent() if isinstance(inner, Tracer) else inner

    return get_referent


attach(
    {
        "full_lower": lambda self: self,
        "get_referent": lambda self: self,
        "to_concrete_value": lambda self: self.concrete(),
    },
    Tracer,
)
attach(
    {
        "get_referent": _referent_in("value"),
        "val": property(lambda self: self.value),
        "batch_dim": property(lambda self: self.dim),
    },
    BatchTracer,
)
attach({"get_referent": _referent_in("primal")}, JVPTracer)


class _OfTraces(Trace):
    """Members that traces of libraries inherit."""

    __slots__ = ()
    requires_low = True
    main = property(lambda self: self)  # by which libraries tell levels apart

    def stage_value(self, val: Any) -> Any:
        raise NotImplementedError("must override")

    def process_call(self, call_primitive: Any, f: Any, tracers: Any, params: Any, /) -> Any:
        raise NotImplementedError("must override")

    def full_raise(self, x: Any) -> Any:
        return x

    def is_valid(self) -> bool:
        return self.alive

    def invalidate(self) -> None:
        self.end()


attach_class(_OfTraces, Trace)

# -- members of concrete arrays ------------------------------------------------------------------------


def _of_concrete(name: str) -> property:
    def declared(self: Any) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return property(declared, doc="Attribute of concrete arrays; AttributeError for tracers.")


# Declared for what asks the class `Array` which members arrays have.
_DECLARED = (
    "__copy__", "__deepcopy__", "addressable_data", "addressable_shards", "committed",
    "copy_to_host_async", "device", "global_shards", "is_fully_addressable",
    "is_fully_replicated", "item", "sharding",
)  # fmt: skip
_REMOVED = {
    "device_buffer": "arr.device_buffer has been deprecated. Use arr.addressable_data(0)",
    "device_buffers": (
        "arr.device_buffers has been deprecated. Use [x.data for x in arr.addressable_shards]"
    ),
}


def _removed(message: str) -> property:
    def refuse(self: Any) -> Any:
        raise AttributeError(message)

    return property(refuse, doc="Removed attribute: raises AttributeError.")


attach({name: _of_concrete(name) for name in _DECLARED})
attach({name: _removed(message) for name, message in _REMOVED.items()})
