"""Transfers that a setting watches: `transfer_guard` and its three kin."""

from __future__ import annotations

import logging
from typing import Any

from minijax.config import local
from minijax.runtime.versions import _jax

__all__ = ["check_transfer"]

_log = logging.getLogger("minijax")


def check_transfer(direction: str, aval: Any, where: Any, *, explicit: bool | None) -> None:
    """JaxRuntimeError, or a line in the log, for a transfer that is guarded.

    `direction` is host_to_device, device_to_device or device_to_host; `explicit` says whether the
    user asked for it (`device_put`), which only the levels `log_explicit` and `disallow_explicit`
    regard; None that the value is no user's.
    """
    if explicit is None:
        return
    settings = local.context.settings
    level = getattr(settings, f"transfer_guard_{direction}") or settings.transfer_guard
    if level in (None, "allow") or (explicit and not level.endswith("_explicit")):
        return
    name = direction.replace("_", "-")
    told = f"{name} transfer: aval={aval!r}, dst_sharding={where!r}"
    if level.startswith("log"):
        _log.warning(told)
        return
    raise _jax.JaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {told}. Put the value there with minijax.device_put first, "
        f'or allow it: with minijax.transfer_guard("allow").'
    )
