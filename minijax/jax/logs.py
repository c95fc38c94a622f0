"""Log records under upstream's names: programs and test suites filter and set levels of its
loggers.

A record of minijax's is handed to the logger that upstream's own would come from.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from minijax import accepted_options
from minijax.lax.debug_callbacks import LOGGED

__all__ = ["OPTIONS", "forward", "update_debug_log_modules", "update_logging_level_global"]

# By the module of minijax that writes the record, upstream's logger.
_LOGGERS = {
    "callbacks": "jax._src.callback",
    "debug_callbacks": "jax._src.debugging",  # where a callback fails
    "monitoring": "jax._src.dispatch",
    "executables": "jax._src.compiler",
    "platforms": "jax._src.xla_bridge",
    "cache_misses": "jax._src.interpreters.partial_eval",
    "saved_residuals": "jax._src.ad_checkpoint",
}
# By how it begins, where that depends on the message.
_BY_WORD = {
    "Compiling": "jax._src.interpreters.pxla",
    "Writing": "jax._src.compilation_cache",
}


def _hand_on(record: logging.LogRecord) -> bool:
    """A filter of the logger "minijax": false, since another logger has the record now."""
    if record.name == LOGGED:  # by a program, with its file and line
        record.name = _LOGGERS["debug_callbacks"]
        logging.getLogger(record.name).handle(record)
        return False
    name = _LOGGERS.get(record.module, "jax")
    record.name = _BY_WORD.get(str(record.msg).partition(" ")[0], name)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
    return False


def forward() -> None:
    """Send the records of minijax to upstream's loggers from here on."""
    logger = logging.getLogger("minijax")
    logger.parent = logging.getLogger("jax")
    logger.setLevel(1)  # those of upstream's loggers count
    logger.addFilter(_hand_on)
    for name, show in OPTIONS.items():
        if accepted_options.is_changed(name):  # by the environment
            show(accepted_options.read(name))


# -- the settings `jax_logging_level` and `jax_debug_log_modules` ----------------------------------------

_LEVELS = ("CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG")
_FORMAT = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")
_global: list[tuple[logging.Logger, logging.Handler]] = []
_modules: list[tuple[logging.Logger, logging.Handler, int]] = []


def _shown(level: int) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)
    handler.setFormatter(_FORMAT)
    return handler


def _beside_others(record: logging.LogRecord) -> bool:
    """Whether the logger "jax" leaves something to the handlers of single modules."""
    return logging.getLogger("jax").level > logging.DEBUG


def update_logging_level_global(logging_level: str | None) -> None:
    """Show records from this level up on stderr; none for None or "NOTSET". ValueError for another."""
    if logging_level not in (None, "NOTSET", *_LEVELS):
        raise ValueError(
            f'Attempting to set log level "{logging_level}" which isn\'t one of the supported: '
            f"{list(_LEVELS)}."
        )
    while _global:
        logger, handler = _global.pop()
        logger.removeHandler(handler)
    if logging_level is None:
        return
    for name in ("jax", "jaxlib"):
        logger = logging.getLogger(name)
        logger.setLevel(logging_level)
        if logging_level != "NOTSET":
            handler = _shown(logging.NOTSET)
            logger.addHandler(handler)
            _global.append((logger, handler))


def update_debug_log_modules(module_names_str: str | None) -> None:
    """Show all records of these modules, with commas between their names; those named before no
    more.

    The logger "jax" shows them itself unless it has a level above DEBUG.
    """
    while _modules:
        logger, handler, level = _modules.pop()
        logger.removeHandler(handler)
        logger.setLevel(level)
    for name in dict.fromkeys(filter(None, (module_names_str or "").split(","))):
        logger, handler = logging.getLogger(name), _shown(logging.DEBUG)
        handler.addFilter(_beside_others)
        logger.addHandler(handler)
        _modules.append((logger, handler, logger.level))
        logger.setLevel(logging.DEBUG)


# By the name of an option, what setting it does.
OPTIONS: dict[str, Callable[[str | None], None]] = {
    "jax_debug_log_modules": update_debug_log_modules,
    "jax_logging_level": update_logging_level_global,
}
