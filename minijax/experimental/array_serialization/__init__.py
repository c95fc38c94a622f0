"""`minijax.experimental.array_serialization`: arrays in files, by TensorStore."""

from minijax.namespace import shown

__all__: list[str] = []

__dir__ = shown(__name__)
