"""Python functions that compiled programs call. May import the ground floor and `runtime.versions`.

jaxlib registers one target a platform for the typed FFI; a call says by number which of the
functions given to the compiler it means.
"""

from __future__ import annotations

import traceback

from minijax.runtime.versions import _jax

__all__ = [
    "Buffer", "ExecutionContext", "ExecutionStage", "buffer_target", "callback_error",
    "callback_target",
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


def callback_target(platform: str) -> str:
    """The name under which a platform knows calls of Python. NotImplementedError if it has none."""
    try:
        return _TARGETS[platform]
    except KeyError:
        raise NotImplementedError(
            f"Python callbacks are not supported on platform {platform!r}: run the program on one "
            f"of {sorted(_TARGETS)}."
        ) from None


def buffer_target(platform: str) -> str:
    """The name under which a platform knows calls of Python on its buffers, as `callback_target`."""
    return callback_target(platform).replace("xla_ffi_python", "xla_buffer_python")


def callback_error(error: Exception) -> Exception:
    """What a program raises when a callback raised `error`, for calls that need no program."""
    told = "".join(traceback.format_exception(error))
    return _jax.JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {told}")
