"""`minijax.interpreters.pxla`: compiling for several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.deprecated import moved
from minijax.namespace import shown
from minijax.runtime import executables

__all__ = ["create_compile_options"]


def create_compile_options(
    computation: Any,
    tuple_args: bool,
    allow_prop_to_inputs: Sequence[bool],
    allow_prop_to_outputs: Sequence[bool],
    backend: Any,
    np_dev: np.ndarray,
    compiler_options: dict[str, Any] | None,
) -> Any:
    """XLA's options for a module over the devices of an array: jaxlib's `CompileOptions`.

    One partition a device; `allow_prop_...` say of which arguments and results XLA may choose the
    sharding. `computation` and `backend` are what upstream takes, and are not read.
    """
    devices = tuple(np.asarray(np_dev, object).ravel())
    options = executables.compile_options(
        devices, spmd=len(devices) > 1, overrides=compiler_options
    )
    options.parameter_is_tupled_arguments = tuple_args
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return options


def __getattr__(name: str) -> Any:
    return moved(__name__, name)


__dir__ = shown(__name__)
