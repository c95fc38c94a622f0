"""Tools that show programs, and what the transforms did.

    explain(f, *args)             every stage of a program, from the source to what XLA runs
    explain.graph(f, *args)       a picture of a program
    explain.diff(f, g, *args)     what two programs differ in
    explain.to_python(f, *args)   runnable source of the jaxpr of `f`
    explain.recompiles()          why functions were traced again
    explain.memory(f, *args)      bytes in use by XLA's program, the peak, residuals, by line
    explain.cost(f, *args)        operations and bytes by line; times to trace, lower and compile
    explain.nan(f)(*args)         the line of the first NaN
    explain.step(f, *args)        the program run equation by equation, forward and back
    explain.strict()              silent faults are errors; also minijax.strict()
    explain.progress(body, n)     a loop that tells how far it is
    explain.rules("jvp")          the rules of one interpreter
    explain.primitive("sin")      the rules of one primitive
    explain.where(obj)            the source of anything public

Nothing here is part of tracing: `import minijax` does not load this package, and each tool is loaded
when it is first asked for.
"""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any

_HOMES = {
    "Source": "python", "to_python": "python", "memory": "memory_use", "cost": "work",
    "step": "stepping", "primitive": "rule_tables", "rules": "rule_tables",
    "recompiles": "retracing", "nan": "nans", "NanError": "nans",
    "strict": "strictness", "progress": "progressing", "html_of": "showing_objects", "where": "rule_tables", "graph": "graphs", "diff": "differences",
}  # fmt: skip

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """Add the magics of `%load_ext minijax.explain`: `%strict`, `%%strict`, `%explain f(x)`."""
    _import_module(f"{__name__}.magics").load(shell)


class _Explain(_ModuleType):
    """The package, which can be called: `explain(f, *args)`."""

    def __call__(self, f: Any, *args: Any, **options: Any) -> Any:
        return _import_module(f"{__name__}.showing").explain(f, *args, **options)


_sys.modules[__name__].__class__ = _Explain
