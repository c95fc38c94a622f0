"""`minijax.experimental.compilation_cache`: the folder where compiled programs are kept."""

from minijax.experimental.compilation_cache import compilation_cache
from minijax.tracebacks import public

__all__ = ["compilation_cache"]

__dir__ = public(__name__)
