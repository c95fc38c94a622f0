"""Transfers that a setting watches: `transfer_guard` and its three kin."""

from __future__ import annotations

import logging
import threading
from typing import Any

from minijax.config import local
from minijax.runtime.layouts import sharding_in
from minijax.runtime.versions import _jax

__all__ = ["asked_for", "check_move", "check_read", "check_transfer"]

_log = logging.getLogger("minijax")


class _Asked(threading.local):
    explicit = False


_asked = _Asked()


class asked_for:
    """Count transfers within a `with` block as explicit: those of `device_put` and `device_get`."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, _asked.explicit = _asked.explicit, True

    def __exit__(self, *error: Any) -> None:
        _asked.explicit = self._before


def check_move(aval: Any, own: Any, target: Any, explicit: bool | None) -> None:
    """`check_transfer` of an array that goes to other devices than those that it lies on."""
    if sharding_in(own).device_set != sharding_in(target).device_set:
        check_transfer("device_to_device", aval, target, explicit=explicit)


def check_read(aval: Any, where: Any) -> None:
    """`check_transfer` of an array that is read; of a CPU's no values are transferred."""
    if where._device_assignment[0].platform != "cpu":
        check_transfer("device_to_host", aval, where)


def check_transfer(direction: str, aval: Any, where: Any, *, explicit: bool | None = False) -> None:
    """JaxRuntimeError, or a line in the log, for a transfer that is guarded.

    `direction` is host_to_device, device_to_device or device_to_host; `explicit` says whether the
    user asked for it, here or by `asked_for`, which only the levels `log_explicit` and
    `disallow_explicit` regard; None that the value is no user's.
    """
    settings = local.context.settings
    level = getattr(settings, f"transfer_guard_{direction}") or settings.transfer_guard
    if level in (None, "allow") or explicit is None:
        return
    if (explicit or _asked.explicit) and not level.endswith("_explicit"):
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
