"""Arrays that no device can hold, found before XLA ends the process over them. XLA counts the bytes
of an array in 63 bits, and aborts where that is not enough. It does not get so far with
constants that it folds: `zeros(2**62)[:3]` is an array of three zeros.
"""

from __future__ import annotations

import math
import re
from typing import Any

from minijax import errors
from minijax.core.hooks import hooks
from minijax.runtime import mlir_modules as modules
from minijax.runtime.platforms import memory_said

__all__ = ["check_module", "check_sizes"]

# 2**63 bytes are at least 2**59 elements, the product of whose sizes is written in 19 characters.
_LARGE_TYPES = r"tensor<([0-9x]{19,})([^>]+)>"
_FOLDED = {  # operations that XLA folds where their operands are constants
    f"stablehlo.{name}"
    for name in (
        "add", "broadcast_in_dim", "constant", "convert", "multiply", "reshape", "subtract", "transpose",
    )
}  # fmt: skip
_TAKING = {"stablehlo.slice", "stablehlo.dynamic_slice"}


def check_sizes(text: str, device: Any) -> None:
    """Raise JaxRuntimeError if the program of this text needs an array of 2**63 bytes."""
    if re.search(_LARGE_TYPES, text) is None:
        return
    for found in re.finditer(_LARGE_TYPES, text):
        if max(map(int, found[1].rstrip("x").split("x"))) >= 2**63:  # no module has such a type
            raise _error(found[0], device)
    for function in modules.parse(text).body.operations:
        _check_regions(function.operation, device)


def _check_regions(operation: Any, device: Any) -> None:
    for region in operation.regions:
        for block in region.blocks:
            _check([argument.type for argument in block.arguments], device)
            for inner in block.operations:
                _check_regions(inner.operation, device)
                if not _is_folded(inner.operation):
                    values = [*inner.operation.results, *inner.operation.operands]
                    _check([value.type for value in values], device)


def _is_folded(operation: Any) -> bool:
    """Whether XLA does without the large arrays among the operands and the results."""
    if operation.name in _TAKING:
        return not any(map(_is_large, operation.results))
    return operation.name in _FOLDED and all(
        not _is_uncounted(value) and (_is_large(value) or _is_constant(value))
        for value in [*operation.operands, *operation.results]
    )


def _is_large(value: Any) -> bool:
    return _bytes_of(str(value.type)) >= 2**63


def _is_constant(value: Any) -> bool:
    return getattr(value.owner, "name", "") == "stablehlo.constant"


def _is_uncounted(value: Any) -> bool:
    """Whether XLA counts the elements before it folds the array."""
    written = str(value.type)
    return "complex" in written or _bytes_of(written) >= 2**66


def _check(types: list[Any], device: Any) -> None:
    for written in map(str, types):
        if _bytes_of(written) >= 2**63:
            raise _error(written, device)


def _bytes_of(written: str) -> int:
    """The bytes that XLA counts for an array of a type; of others 0."""
    found = re.match(_LARGE_TYPES, written)
    if found is None:
        return 0
    sizes = [int(size) for size in found[1].rstrip("x").split("x")]
    if 0 in sizes:  # the sizes alone are multiplied
        return math.prod(size for size in sizes if size)
    bits = max([8, *map(int, re.findall(r"(?<=[if])\d+", found[2])[:1])])
    return math.prod(sizes) * bits * (2 if "complex" in found[2] else 1) // 8


def _error(written: str, device: Any) -> Exception:
    sizes = tuple(map(int, re.match(_LARGE_TYPES, written)[1].rstrip("x").split("x")))
    return errors.JaxRuntimeError(
        f"RESOURCE_EXHAUSTED: Out of memory allocating {_bytes_of(written)} bytes, for an array of "
        f"shape {sizes}: {memory_said(device)}"
    )


_NOT_ON_CPUS = r"tensor<[0-9x?]*f6E(2M3|3M2)FN>"


def check_module(lowered: Any) -> None:
    """Raise an error for a module over which XLA would end the process."""
    if lowered.devices[0].platform == "cpu" and re.search(_NOT_ON_CPUS, lowered.text):
        raise NotImplementedError(  # XLA would end the process
            f"{lowered.name} has arrays of a float6 dtype, for which XLA compiles nothing on CPUs: "
            "convert them to float8_e4m3fn or a wider dtype."
        )
    check_sizes(lowered.text, lowered.devices[0])


hooks.fill(check_module=check_module)
