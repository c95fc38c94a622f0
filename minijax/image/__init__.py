"""`minijax.image`: resizing and moving pictures, as in `jax.image`. Only re-exports."""

from minijax.image.resizing import ResizeMethod, resize, scale_and_translate
from minijax.tracebacks import public

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

__dir__ = public(__name__)
