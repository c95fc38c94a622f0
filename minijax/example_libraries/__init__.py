"""`minijax.example_libraries`: small libraries that older programs use."""

from minijax.namespace import shown

__all__: list[str] = []

__dir__ = shown(__name__)
