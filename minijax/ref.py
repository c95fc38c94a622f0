"""`minijax.ref`: references to arrays that change in place. Only re-exports."""

from minijax.features.references.cells import AbstractRef, Ref
from minijax.lax.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from minijax.namespace import shown

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip

__dir__ = shown(__name__)
