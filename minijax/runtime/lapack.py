"""LAPACK as jaxlib brings it: kernels that programs on CPU call by name.

The kernels are registered with XLA, and pointed at SciPy's LAPACK, the first time that a program is
written that calls one: importing them costs 50 ms. Upstream may have registered the same kernels in
this process, or may do so later: neither minds.
"""

from __future__ import annotations

import functools
import importlib

from minijax.runtime.versions import xla_client

__all__ = ["prepare_lapack"]

_TYPED_FFI = 1


@functools.cache
def prepare_lapack() -> frozenset[str]:
    """Make the kernels known to XLA, once; gives their names."""
    kernels = importlib.import_module("jaxlib.cpu._lapack")
    targets = kernels.registrations()
    for name, capsule in targets.items():
        xla_client.register_custom_call_target(
            name, capsule, platform="cpu", api_version=_TYPED_FFI
        )
    kernels.initialize()
    return frozenset(targets)
