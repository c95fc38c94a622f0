"""Errors of jaxlib about the arguments of a program, in the words of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax import errors
from minijax.arrays.array import ArrayImpl
from minijax.core.hooks import hooks
from minijax.runtime import executables, platforms

__all__ = ["ArgumentError", "check_executed"]


class ArgumentError(executables.JaxRuntimeError, ValueError):
    """XLA refused the arguments of a program."""


def check_executed(args: Sequence[Any], error: Exception) -> None:
    """Raise what users know for what jaxlib said of arguments that it would not take."""
    text = str(error)
    refused = text.startswith("INVALID_ARGUMENT")
    if refused or not isinstance(error, executables.JaxRuntimeError):
        for a in args:  # a program that ran, and failed, has consumed what was donated to it
            if type(a) is ArrayImpl:
                a._check_deleted()
    if not isinstance(error, executables.JaxRuntimeError):
        return
    if "Out of memory" in text:
        found = next((a for a in args if type(a) is ArrayImpl), None)
        device = (
            found.signature.sharding._device_assignment[0]
            if found is not None
            else platforms.devices()[0]
        )
        raise executables.JaxRuntimeError(
            f"{text.rstrip('.')}: {platforms.memory_said(device)}"
        ) from None
    if refused:
        if any(said in text for said in _DELETED):  # no argument is, so a constant must be
            raise errors.DeletedError(
                "Array has been deleted: an array that the function closes over was donated to a "
                "jitted function (donate_argnums), or `delete()` was called on it. Keep it, or pass "
                "it as an argument."
            ) from None
        raise ArgumentError(text) from None


_DELETED = ("Buffer has been deleted or donated", "Expected args to execute_sharded_on_local")


hooks.fill(check_executed=check_executed)
