"""`minijax.experimental.array_serialization`: arrays in files, by TensorStore."""

from minijax.tracebacks import public

__all__: list[str] = []

__dir__ = public(__name__)
