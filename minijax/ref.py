"""`minijax.ref`: references to arrays that change in place. Only re-exports."""

from minijax.features.references.cells import AbstractRef, Ref
from minijax.lax.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from minijax.tracebacks import public

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip

__dir__ = public(__name__)
