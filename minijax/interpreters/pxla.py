"""`minijax.interpreters.pxla`: a name that libraries import; nothing of it has a counterpart."""

__all__: list[str] = []
