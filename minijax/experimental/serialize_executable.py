"""`minijax.experimental.serialize_executable`: compiled functions as bytes.

Such bytes hold code of the machine, which is run when the function is called: they are to come from
whom one trusts. Nothing else in them runs code (see `runtime.saved`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.arrays.dispatch import Lowered as LoweredProgram
from minijax.arrays.dispatch import Program
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.features.stages.stages import Compiled
from minijax.runtime import partitioners, platforms, saved
from minijax.tracebacks import public

__all__ = ["deserialize_and_load", "serialize"]

# What is not written: what is made anew, and what belongs to the process.
_NOT_OF_SPEC = {"closed", "consts", "in_tree", "out_tree", "signatures"}
_NOT_OF_PROGRAM = {"callbacks", "effects", "keepalives"}


def _fields(obj: Any, others: set[str]) -> dict[str, Any]:
    names = [name for name in type(obj).__slots__ if name not in others]
    return {name: getattr(obj, name) for name in names if hasattr(obj, name)}


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, and the trees of its arguments and results.

    Those are no part of the bytes: they may hold classes of the user's. ValueError for a function
    that refers to this process: that calls back to Python, or closes over references.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize takes a compiled function, got {compiled!r} of type {type(compiled)}: "
            "jit(f).lower(*args).compile() gives one."
        )
    spec, program = compiled._spec, compiled._program
    lowered = program.lowered
    kept = [x for x in lowered.keepalives if not isinstance(x, partitioners.Entry)]
    if kept or lowered.callbacks or lowered.effects or spec.consts:
        raise ValueError(
            f"{spec.name} cannot be serialized: it calls back to Python, or changes references, of "
            "this process."
        )
    payload = getattr(compiled, "_payload", None) or saved.save_executable(
        program.executable, lowered.text, lowered.devices, lowered.place.spmd, lowered.options
    )
    about = {
        "spec": _fields(spec, _NOT_OF_SPEC),
        "program": _fields(lowered, _NOT_OF_PROGRAM),
        "out_avals": spec.closed.out_avals,
        "executable": payload,
    }
    about["spec"]["arg_names"] = list(spec.arg_names) if spec.arg_names else None
    ids = [device.id for device in lowered.devices]
    kind = lowered.devices[0].device_kind
    return saved.sealed(saved.save((ids, kind, saved.save(about)))), spec.in_tree, spec.out_tree


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:  # fmt: skip
    """The compiled function of these bytes.

    It runs on `execution_devices`, in the order of those that it was compiled for; or on those
    with the same numbers of a platform (its name, or a client). ValueError for another number of
    devices, and for bytes that `serialize` did not give, or that are damaged; JaxRuntimeError for
    devices of a kind that cannot run it, or that are described and not attached.
    """
    ids, kind, data = saved.load(saved.unsealed(bytes(memoryview(serialized))), {})
    if execution_devices is None:
        found = backend if hasattr(backend, "devices") else platforms.backend(backend)
        numbered = {device.id: device for device in found.devices()}
        execution_devices = [numbered[number] for number in ids if number in numbered]
    if len(execution_devices) != len(ids):
        raise ValueError(
            f"the program was compiled for {len(ids)} devices of the kind {kind!r}, numbered {ids}; "
            f"it was given {len(execution_devices)} to run on: give them as execution_devices."
        )
    about = saved.load(data, dict(zip(ids, execution_devices, strict=True)))
    lowered = LoweredProgram()
    for name, value in about["program"].items():
        setattr(lowered, name, value)
    lowered.callbacks, lowered.keepalives, lowered.effects = [], [], frozenset()
    executable = saved.load_executable(
        about["executable"],
        lowered.devices,
        spmd=lowered.place.spmd,
        made_for=kind,
    )
    spec = Compiled.Spec()
    for name, value in about["spec"].items():
        setattr(spec, name, value)
    outvars = [Var(aval) for aval in about["out_avals"]]
    spec.closed, spec.consts, spec.signatures = ClosedJaxpr(Jaxpr([], [], outvars, [])), [], []
    spec.in_tree, spec.out_tree = in_tree, out_tree
    compiled = Compiled(spec, Program(lowered, executable))
    compiled._payload = about["executable"]  # XLA does not write in full what it has read
    return compiled


__dir__ = public(__name__)
