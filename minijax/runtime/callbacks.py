"""Python functions that compiled programs call. jaxlib registers one target a platform for the
typed FFI; a call says by number which of the functions given to the compiler it means.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from minijax.runtime.executables import is_compile_only
from minijax.runtime.versions import _jax, xla_client

__all__ = [
    "HOST_TRANSFERS", "Buffer", "ExecutionContext", "ExecutionStage", "buffer_target",
    "callback_error", "callback_target", "host_transfers",
]  # fmt: skip

Buffer = _jax.ffi.Buffer
ExecutionContext = _jax.ffi.ExecutionContext
ExecutionStage = _jax.ffi.ExecutionStage

_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "gpu": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}


def callback_target(platform: str, *, partitioned: bool = False) -> str:
    """The name under which a platform knows calls of Python. NotImplementedError if it has none.

    XLA's partitioner leaves a `partitioned` call to every device, with its own shards.
    """
    try:
        target = _TARGETS[platform]
        return target.replace("_python_", "_partitioned_python_") if partitioned else target
    except KeyError:
        raise NotImplementedError(
            f"Python callbacks are not supported on platform {platform!r}: run the program on one "
            f"of {sorted(_TARGETS)}."
        ) from None


def buffer_target(platform: str) -> str:
    """The name under which a platform knows calls of Python on its buffers, as `callback_target`."""
    return callback_target(platform).replace("xla_ffi_python", "xla_buffer_python")


HOST_TRANSFERS = "pjrt_rendezvous"  # which part of the runtime takes part in the transfers


def host_transfers(
    devices: tuple,
    called: Callable,
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    sends: Sequence[int],
    receives: Sequence[int],
) -> Any:
    """A call of Python by transfers over these channels, to be given to the compiler.

    None for devices that are only described. ValueError if they are not TPUs.
    """
    platform = getattr(devices[0], "platform", "cpu")
    if platform != "tpu":
        raise ValueError(
            f"the platform for the specified backend {platform} is different from the lowering "
            "platform tpu: a program that calls Python by transfers is lowered for the devices that "
            "it runs on."
        )
    if is_compile_only(devices):
        return None
    shape_of = xla_client.Shape.array_shape
    shapes = [[shape_of(aval.dtype, aval.shape) for aval in part] for part in (in_avals, out_avals)]
    return devices[0].client.make_python_callback_from_host_send_and_recv(
        called, *shapes, list(sends), list(receives), pickle.dumps
    )


def callback_error(error: Exception) -> Exception:
    """Return the error that a program raises for a callback's `error`, for calls that need no
    program.
    """
    told = "".join(traceback.format_exception(error))
    return _jax.JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {told}")
