"""`experimental.pallas`: kernels on references, run over a grid of blocks, in interpret mode.

Kernels run as loops of XLA's, on any platform; the compilers for
GPUs and TPUs that upstream has are not here, nor are names that mean something to them only.
"""

from __future__ import annotations

from typing import Any

from minijax.deprecated import moved as _moved
from minijax.experimental.checkify import debug_check as _checked
from minijax.lax.dynamic_slices import Slice
from minijax.lax.dynamic_slices import dslice as ds
from minijax.lax.dynamic_slices import dslice as dslice
from minijax.lax.pallas.call import pallas_call_p
from minijax.lax.pallas.costs import estimate_cost
from minijax.lax.pallas.grid import num_programs, program_id
from minijax.lax.pallas.kernels import pallas_call
from minijax.lax.pallas.language import (
    align_to,
    broadcast_to,
    cdiv,
    debug_print,
    empty,
    empty_like,
    empty_ref_like,
    enable_debug_checks,
    loop,
    lower_as_mlir,
    multiple_of,
    next_power_of_2,
    reciprocal,
    run_scoped,
    run_state,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    strides_from_shape,
    when,
    with_scoped,
)
from minijax.lax.pallas.meshes import core_map, kernel
from minijax.lax.pallas.specs import (
    ANY,
    HOST,
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    DeviceIdType,
    Element,
    GridSpec,
    MemoryRef,
    MemorySpace,
    RevisitMode,
    Squeezed,
    no_block_spec,
    semaphore,
    squeezed,
)
from minijax.namespace import shown

__all__ = [
    "ANY", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams",
    "CostEstimate", "DeviceIdType", "Element", "GridSpec", "HOST", "MemoryRef", "MemorySpace",
    "RevisitMode", "Slice", "Squeezed", "align_to", "broadcast_to", "cdiv", "core_map",
    "debug_check", "debug_print", "ds", "dslice", "empty", "empty_like", "empty_ref_like",
    "enable_debug_checks", "estimate_cost", "kernel", "loop", "lower_as_mlir", "multiple_of",
    "next_power_of_2", "no_block_spec", "num_programs", "pallas_call", "pallas_call_p",
    "program_id", "reciprocal", "run_scoped", "run_state", "semaphore", "semaphore_read",
    "semaphore_signal", "semaphore_wait", "squeezed", "strides_from_shape", "when", "with_scoped",
]  # fmt: skip

__dir__ = shown(__name__)


def debug_check(condition: Any, message: str) -> None:
    """Within `enable_debug_checks(True)`: a check that `checkify` makes an error of."""
    if enable_debug_checks.value:
        _checked(condition, message)


def __getattr__(name: str) -> Any:
    absent = (
        f"minijax has no 'experimental.pallas.{name}': kernels are interpreted, and have what that "
        "gives a meaning."
    )
    return _moved(__name__, name, absent)
