"""`minijax.experimental.layout`: the order of an array's dimensions in memory. Re-exports."""

from minijax.runtime.layouts import Format, Layout

__all__ = ["Format", "Layout"]
