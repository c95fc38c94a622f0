"""`minijax.experimental.colocated_python`: Python functions beside the devices of their arguments.

Devices of this process are beside it already, so that a function is simply called; those of other
processes are refused.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.array import Array
from minijax.features.sharding.transfer import device_put
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.runtime import platforms
from minijax.runtime.mesh import Mesh
from minijax.tracebacks import public

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices beside these devices, in their order; for a mesh, a mesh of those.

    ValueError if the process has fewer CPU devices than such devices.
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        found = np.array(colocated_cpu_devices(tuple(mesh.devices.flat)), dtype=object)
        return Mesh(found.reshape(mesh.devices.shape), mesh.axis_names, mesh.axis_types)
    devices = tuple(devices_or_mesh)
    if all(device.platform == "cpu" for device in devices):
        return list(devices)
    cpus = [d for d in platforms.devices("cpu") if d.process_index == devices[0].process_index]
    places = [d.client.local_devices().index(d) for d in devices]
    if max(places) >= len(cpus):
        raise ValueError(
            f"{len(cpus)} CPU devices are beside {len(devices)} devices: ask for more with "
            "minijax.config.update('jax_num_cpu_devices', n)."
        )
    return [cpus[place] for place in places]


class _Function:
    """A function of arrays, and where it runs: on the devices of its arguments, or those given."""

    def __init__(
        self, fun: Callable, in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None
    ):
        functools.update_wrapper(self, fun)
        self._fun, self._specs = fun, (in_specs, out_specs_fn, devices)

    def specialize(
        self, in_specs: Any = None, out_specs_fn: Callable | None = None,
        devices: Sequence[Any] | None = None,
    ) -> _Function:  # fmt: skip
        """The function with some of this fixed, each once: ValueError if it is already.

        - `in_specs`: the types of the arguments, as a pair of positional and keyword ones
        - `out_specs_fn`: gives the types of the results, from those of the arguments
        - `devices`: where it runs if it has no arguments
        """
        names, chosen = ("in_specs", "out_specs_fn", "devices"), []
        for name, own, new in zip(
            names, self._specs, (in_specs, out_specs_fn, devices), strict=True
        ):
            if own is not None and new is not None:
                raise ValueError(f"{name} already specified")
            chosen.append(own if new is None else new)
        return _Function(self._fun, *chosen)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _, out_specs_fn, devices = self._specs
        leaves = tree_util.tree_leaves((args, kwargs))
        self._check(leaves, devices)
        outs = self._fun(*args, **kwargs)
        for x in tree_util.tree_leaves(outs):
            if not isinstance(x, Array):
                raise ValueError(
                    f"colocated_python only supports jax.Array as input and output, but got {type(x)}."
                )
        if out_specs_fn is None:
            return outs
        specs = out_specs_fn(*tree_util.tree_map(_spec, args), **tree_util.tree_map(_spec, kwargs))
        return tree_util.tree_map(lambda x, spec: device_put(x, spec.sharding), outs, specs)

    def _check(self, leaves: Sequence[Any], devices: Any) -> None:
        """ValueError unless the devices are the same for all, and of this process."""
        for x in leaves:
            if not isinstance(x, Array):
                raise ValueError(
                    f"colocated_python only supports jax.Array as input and output, but got {type(x)}."
                )
        lists = {x.sharding._device_assignment for x in leaves}
        if len(lists) > 1:
            raise ValueError(
                "All arguments must use the same device list, but got multiple device lists: "
                f"{lists}."
            )
        found = next(iter(lists), None) or tuple(devices or ())
        if not found:
            raise ValueError(
                "No devices found. colocated_python function without input arguments must be first "
                "specialized with devices."
            )
        process = platforms.process_index()
        if any(device.process_index != process for device in found):
            raise NotImplementedError(
                "colocated_python runs functions in this process only, and some of the devices are of "
                f"others: {found}."
            )


def _spec(x: ArrayImpl) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


def colocated_python(fun: Callable[..., Any]) -> _Function:
    """Decorator: a Python function of arrays, run on the host of the devices where they are.

    It takes and gives trees of arrays, and may do there what Python can. ValueError for arguments on
    different devices, and for other values than arrays.
    """
    return _Function(fun)


def colocated_python_class(cls: type) -> type:
    """Decorator: a class whose objects live on the host of the devices that its methods are given.

    An object is made when a method is first called, and goes with the wrapper. Methods without an
    underscore are there; attributes are not. TypeError for what is no class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class takes a class; got {cls!r}.")

    class Wrapped:
        def __init__(self, *args: Any, **kwargs: Any):
            self._make, self._object = lambda: cls(*args, **kwargs), None

        def _there(self) -> Any:
            if self._object is None:
                self._object = self._make()
            return self._object

    for name, method in inspect.getmembers(cls, callable):
        if not name.startswith("_"):
            setattr(Wrapped, name, property(functools.partial(_method, name=name, method=method)))
    functools.update_wrapper(Wrapped, cls, updated=())
    return Wrapped


def _method(wrapper: Any, name: str, method: Callable) -> _Function:
    @functools.wraps(method)
    def call(*args, **kwargs):
        return getattr(wrapper._there(), name)(*args, **kwargs)

    return _Function(call)


__dir__ = public(__name__)
