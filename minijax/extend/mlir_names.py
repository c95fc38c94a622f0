"""The modules of jaxlib's MLIR bindings under other names.

They are the same module objects, loaded when first asked for.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import Any

__all__ = ["make_known"]

_DIALECTS = (
    "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor",
    "stablehlo", "vector",
)  # fmt: skip
_NAMES = frozenset(("ir", "passmanager", "dialects", *[f"dialects.{name}" for name in _DIALECTS]))


class _Finder:
    """Answers for the modules under a prefix, and for nothing else."""

    def __init__(self, prefix: str):
        self.prefix = prefix

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        name = fullname.removeprefix(self.prefix)
        if name == fullname:
            return None
        if name not in _NAMES:  # or it were loaded a second time, from jaxlib's folder
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return ModuleSpec(fullname, self, loader_state=name)

    def create_module(self, spec: ModuleSpec) -> Any:
        module = importlib.import_module(f"jaxlib.mlir.{spec.loader_state}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = module.__spec__.loader_state  # it keeps its own


def make_known(package: str) -> None:
    """Have `package.ir`, `package.passmanager` and `package.dialects` be jaxlib's modules."""
    sys.meta_path.insert(0, _Finder(package + "."))
