"""`minijax.ad`: where the gradients of a VJP function go, and what stands in their place.

Only re-exports. `GradValue()` and `DontWant()` are entries for `with_refs` of what `vjp` gives;
`GradRef()` and `DidntWant()` are what it then returns for references and for what is not wanted.
"""

from minijax.features.vjp import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
