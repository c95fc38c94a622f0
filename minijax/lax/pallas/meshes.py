"""Kernels over the cores of a device: `kernel` and `core_map`.

Interpreted, cores run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.lax.pallas.kernels import pallas_call
from minijax.lax.pallas.specs import BlockSpec, CostEstimate, MemorySpace

__all__ = ["TensorCoreMesh", "core_map", "kernel"]


class TensorCoreMesh:
    """Some cores of a device, under one name."""

    default_memory_space = MemorySpace.ANY

    def __init__(self, axis_name: str, num_cores: int):
        self.axis_names = (axis_name,)
        self.num_cores = num_cores

    @property
    def shape(self) -> dict[str, int]:
        return {self.axis_names[0]: self.num_cores}

    def __eq__(self, other: Any) -> bool:
        same = type(other) is TensorCoreMesh and self.shape == other.shape
        return same

    def __hash__(self) -> int:
        return hash((self.axis_names, self.num_cores))

    def __repr__(self) -> str:
        return f"TensorCoreMesh(num_cores={self.num_cores}, axis_names={self.axis_names})"


def _cores(mesh: Any) -> int:
    if not isinstance(mesh, TensorCoreMesh):
        raise AttributeError(
            f"{type(mesh).__name__!r} object has no attribute 'default_memory_space': a kernel takes "
            "the cores of a device, as pallas.tpu.create_tensorcore_mesh gives them."
        )
    return mesh.num_cores


_ABSENT: Any = object()


def kernel(
    body: Callable[..., None] = _ABSENT,
    out_type: Any = (),
    *,
    mesh: TensorCoreMesh,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Any:
    """A function of arrays that runs `body` on references to all of them, on each core of a mesh.

    `body` takes references to the arguments, to outputs of the types `out_type`, and to scratch. A
    decorator if `body` is not given. Interpreted only; see `pallas_call`.
    """
    cores = _cores(mesh)

    def decorate(function: Callable[..., None]) -> Callable[..., Any]:
        return pallas_call(
            function, out_type, grid=() if cores == 1 else (cores,), scratch_shapes=scratch_types,
            out_specs=_whole(out_type), interpret=interpret, cost_estimate=cost_estimate,
            debug=debug, name=name, compiler_params=compiler_params, metadata=metadata,
        )  # fmt: skip

    return decorate if body is _ABSENT else decorate(body)


def _whole(out_type: Any) -> Any:
    spec = BlockSpec(memory_space=MemorySpace.ANY)
    if isinstance(out_type, (tuple, list)):
        return tuple([_whole(x) for x in out_type])
    if isinstance(out_type, dict):
        return {key: _whole(x) for key, x in out_type.items()}
    return spec


def core_map(
    mesh: TensorCoreMesh,
    *,
    compiler_params: Any = None,
    interpret: bool = False,
    debug: bool = False,
    cost_estimate: CostEstimate | None = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[[], None]], None]:
    """Decorator: run a function, for what it writes to references, on each core of a mesh."""
    cores = _cores(mesh)
    if not interpret:
        raise ValueError("Only interpret mode is supported on CPU backend.")
    if scratch_shapes != ():
        raise NotImplementedError("core_map: take scratch with run_scoped, within the function.")

    def decorate(function: Callable[[], None]) -> None:
        for _ in range(cores):
            function()

    return decorate
