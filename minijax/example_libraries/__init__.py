"""`minijax.example_libraries`: small libraries that older programs use."""

from minijax.tracebacks import public

__all__: list[str] = []

__dir__ = public(__name__)
