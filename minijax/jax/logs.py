"""Log records under upstream's names: programs and test suites filter and set levels of its loggers.

Floor 7. A record of minijax's is handed to the logger that upstream's own would come from.
"""

from __future__ import annotations

import logging

__all__ = ["forward"]

# By the module of minijax that writes the record, upstream's logger.
_LOGGERS = {
    "callbacks": "jax._src.callback",
    "debug_callbacks": "jax._src.debugging",
    "dispatch": "jax._src.dispatch",
    "cache_misses": "jax._src.interpreters.partial_eval",
}
_COMPILING = "jax._src.interpreters.pxla"  # says that a compilation begins


def _hand_on(record: logging.LogRecord) -> bool:
    """A filter of the logger "minijax": false, since another logger has the record now."""
    name = _LOGGERS.get(record.module, "jax")
    record.name = _COMPILING if str(record.msg).startswith("Compiling ") else name
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
    return False


def forward() -> None:
    """From here on records of minijax's are those of upstream's loggers."""
    logger = logging.getLogger("minijax")
    logger.parent = logging.getLogger("jax")  # whose level counts
    logger.addFilter(_hand_on)
