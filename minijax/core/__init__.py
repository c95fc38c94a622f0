"""The core: what is known of values, traces and tracers, programs. Knows no operation and no XLA.

May import the ground floor. The rooms are this package's modules; the names that upstream shows as
`jax.core` are given here, each taken from its room when first asked for.
"""

from importlib import import_module as _import_module
from typing import Any

from minijax.deprecated import moved as _moved

_ROOMS = {
    "avals": ("AbstractValue", "ShapedArray", "max_dim", "min_dim", "pytype_aval_mappings"),
    "jaxpr": ("Atom", "ParamDict", "Value", "eval_jaxpr"),
    "trace": ("Trace", "Tracer", "ensure_compile_time_eval", "eval_context"),
}
_PLACES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    room = _PLACES.get(name)
    if room is None:
        return _moved(__name__, name)
    value = globals()[name] = getattr(_import_module(f"minijax.core.{room}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
