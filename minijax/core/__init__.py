"""The core: what is known of values, traces and tracers, programs. Knows no operation and no XLA.

The names that upstream shows as `jax.core` are given here, each taken from its module when first
asked for; features `show` theirs.
"""

from importlib import import_module as _import_module
from typing import Any

from minijax.deprecated import moved as _moved
from minijax.namespace import shown

_MODULES = {
    "avals": ("AbstractValue", "ShapedArray", "pytype_aval_mappings"),
    "jaxpr": ("Atom", "ParamDict", "Value", "eval_jaxpr"),
    "trace": ("Trace", "Tracer"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "max_dim", "min_dim",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    module = _PLACES.get(name)
    if module is None:
        return _moved(__name__, name)
    value = globals()[name] = getattr(_import_module(f"minijax.core.{module}"), name)
    return value


def show(**names: Any) -> None:
    """Give names of a feature here."""
    globals().update(names)


__dir__ = shown(__name__)
