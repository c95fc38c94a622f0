"""`minijax.experimental.pjit`: the older name of `jit`, from before it took shardings."""

from typing import TYPE_CHECKING, Any

from minijax.deprecated import moved
from minijax.namespace import shown

__all__ = ["pjit"]

if TYPE_CHECKING:
    from minijax.transforms.jit import jit as pjit
else:

    def __getattr__(name: str) -> Any:
        return moved(__name__, name)


__dir__ = shown(__name__)
