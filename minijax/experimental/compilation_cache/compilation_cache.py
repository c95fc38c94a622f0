"""Where compiled programs are kept on disk; see the setting `compilation_cache_dir`."""

from __future__ import annotations

import os

from minijax.config import config
from minijax.runtime import cache
from minijax.tracebacks import public

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike) -> None:
    """Keep compiled programs in this folder, and look there before compiling.

    Loading a program runs its code: only you should be able to write to the folder.
    """
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Forget what is known of the folder, so that it is looked at anew."""
    cache.reset_cache()


__dir__ = public(__name__)
