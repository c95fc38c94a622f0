"""Where a program runs, and how its arguments and results lie there.

Arguments that are committed decide; the others follow. A program over several devices has a mesh,
from its arguments, from the shardings asked for, or from the constraints within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import FEW_BYTES, ArrayImpl, Signature, kept_number
from minijax.arrays.dispatch import made_program
from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.caches import ProgramCache
from minijax.core.effects import observable
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params
from minijax.core.source import summarize
from minijax.dtypes import ExtendedDType
from minijax.features.diagnostics.execution import ArgumentError
from minijax.features.sharding.constraints import reshard_p, sharding_constraint_p
from minijax.features.sharding.lowering import ShardedModule
from minijax.features.sharding.memory import HOST_KIND, MemorySpace
from minijax.features.sharding.memory_layouts import ProgramLayouts, asked_place_p, asked_places
from minijax.features.sharding.transfer import device_put_p
from minijax.features.sharding.types import check_size, explicit_of, space_of_type
from minijax.lowering.types import physical
from minijax.runtime import buffers, executables, platforms, sharding
from minijax.runtime import mesh as meshes
from minijax.runtime.escape import quoted
from minijax.runtime.layouts import Format, sharding_in
from minijax.runtime.named_sharding import NamedSharding, named_of_hlo, replicated, sums_open
from minijax.runtime.topologies import placeholders

__all__ = ["ProgramPlacement", "check_memory", "meshes_in", "moved", "over_devices", "place"]


class ProgramPlacement:
    """The devices of a program, and the shardings and layouts of its arguments and results.

    `mesh` is None for one device; `outs` has None where XLA is to choose; `layouts` is None where all
    arrays lie as the devices prefer.
    """

    __slots__ = (
        "args", "committed", "decisive", "default", "devices", "layouts", "mesh", "open", "outs",
        "ranks", "typed",
    )  # fmt: skip

    def __init__(self, default: Any, committed: bool, mesh: Any):
        self.default = default  # of arguments that say nothing
        self.decisive = default  # of the first that says something
        self.devices = tuple(default._device_assignment)
        self.committed = committed
        self.mesh = mesh
        self.args: list[Any] = []
        self.open: list[int] = []  # arguments of which XLA chooses how they are split
        self.ranks: list[int] = []  # of the arguments
        self.outs: list[Any] = []
        self.typed = False  # whether types say, over explicit axes, how results lie
        self.layouts: ProgramLayouts | None = None

    @property
    def spmd(self) -> bool:
        return len(self.devices) > 1

    def home(self, value: ArrayImpl) -> Any:
        """Return where a constant lies that is an argument: as its type says, or whole on every
        device.
        """
        own = value.signature.sharding
        if explicit_of(value.aval) is not None and own._device_assignment == self.devices:
            return own
        return self.default

    def attributes(
        self, module: ShardedModule, jaxpr: Jaxpr, args: Sequence[Any], donations: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return what is said of arguments and results: donation, memory, layout and sharding."""
        kinds = self.kinds([v.aval for v in jaxpr.outvars])
        of_args = [
            _also(text, f"mhlo.memory_kind = {quoted(HOST_KIND)}")
            if arg.memory_kind == HOST_KIND
            else text
            for text, arg in zip(donations, args, strict=True)
        ]
        module.untyped_host = any(
            arg.memory_kind == HOST_KIND and space_of_type(var.aval) is not MemorySpace.Host
            for arg, var in zip(args, jaxpr.invars, strict=True)
        )
        of_outs = [f" {{mhlo.memory_kind = {quoted(kind)}}}" if kind else "" for kind in kinds]
        if self.layouts is not None:
            modes = self.layouts.modes(len(args) - len(self.args))
            of_args, of_outs = [
                [
                    _also(text, f"mhlo.layout_mode = {quoted(mode)}") if mode else text
                    for text, mode in zip(texts, each, strict=True)
                ]
                for texts, each in zip((of_args, of_outs), modes, strict=True)
            ]
        if self.spmd:
            first = len(args) - len(self.args)
            self.open = [
                index
                for index in self.open
                if not (donations[first + index] or module.exported or self.layouts)
            ]
            told = [None if at - first in self.open else arg for at, arg in enumerate(args)]
            of_args = module.with_shardings(of_args, told, jaxpr.invars)
            of_outs = module.with_shardings(of_outs, self.outs, jaxpr.outvars)
        return of_args, of_outs

    def checked(self, execute: Callable, lent: dict[int, ShapedArray]) -> Callable:
        """Return what executes a program and refuses operands that it cannot lend."""
        if self.spmd:
            execute = _apart(execute, lent)
        few = [n for n, aval in lent.items() if aval.size * aval.dtype.itemsize <= FEW_BYTES]
        return _owning(execute, few) if few else execute

    def memories(self, avals: Sequence[Any]) -> list[str]:
        """The kinds of memory that results are to be in."""
        own = sharding.default_memory_kind(self.devices[0])
        found = []
        for where, aval in zip(self.outs, avals, strict=True):
            on_host = space_of_type(aval) is MemorySpace.Host
            found.append(where.memory_kind if where is not None else HOST_KIND if on_host else own)
        return found

    def kinds(self, avals: Sequence[Any]) -> list[str | None]:
        """The kinds of memory of results where it is not the device's own."""
        memory = self.default.memory_kind
        own = sharding.default_memory_kind(self.devices[0])
        return [kind if kind != own or memory != own else None for kind in self.memories(avals)]

    def places(self, avals: Sequence[Any], executable: Any) -> tuple[list[Any], list[Any]]:
        """Return the places of the arguments and of the results, which have these types.

        They are as asked for, else as the compiled program has them.
        """
        if self.open:
            self.args = self._taken(executable)
        outs = self._outs(avals, executable)
        if self.layouts is None:
            return self.args, outs
        return self.layouts.places(self.args, outs, avals, executable)

    def _taken(self, executable: Any) -> list[Any]:
        """The shardings of the arguments: of those that are open, as the compiled program has them."""
        hlos = executables.argument_shardings(executable)[-len(self.args) :]  # behind constants
        return [
            self._by_name(hlos[index], self.ranks[index]) if hlos and index in self.open else where
            for index, where in enumerate(self.args)
        ]

    def _outs(self, avals: Sequence[Any], executable: Any) -> list[Any]:
        """The shardings of the results: as asked for, else as the compiled program has them."""
        found = self._chosen([aval.ndim for aval in avals], executable)
        return [
            where if where.memory_kind == kind else where.with_memory_kind(kind)
            for where, kind in zip(found, self.memories(avals), strict=True)
        ]

    def _chosen(self, ndims: Sequence[int], executable: Any) -> list[Any]:
        if not self.spmd:
            return [
                self._on_one(ndim) if where is None else where
                for where, ndim in zip(self.outs, ndims, strict=True)
            ]
        found = self.outs
        if any(where is None for where in found):
            hlos = executables.result_shardings(executable)
            found = [
                self._of_rank(self._by_name(hlo, ndim), ndim) if where is None else where
                for where, hlo, ndim in zip(found, hlos, ndims, strict=True)
            ]
        return found

    def _of_rank(self, where: Any, ndim: int) -> Any:
        """Return a layout that XLA chose; one that types say, with a part for each dimension."""
        if not self.typed or not isinstance(where, NamedSharding):
            return where
        parts, explicit = where.spec.partitions, where.mesh.explicit_axes
        if any(name not in explicit for part in parts for name in meshes.axes_of(part)):
            return where
        return where.with_parts([*parts, *[None] * (ndim - len(parts))])

    def _on_one(self, ndim: int) -> Any:
        """Return the layout of a result on one device, where all layouts are one.

        It is a NamedSharding if the first committed argument has one: that of the first argument,
        if its rank is the same, else over none of the axes.
        """
        if not isinstance(self.decisive, NamedSharding):
            return self.decisive
        if self.args and isinstance(self.args[0], NamedSharding) and self.ranks[0] == ndim:
            return self.args[0]
        return self.default

    def _by_name(self, hlo: Any, ndim: int) -> Any:
        """Return the name of a layout that XLA chose: that of an argument that has it, if there is
        one.
        """
        for where, rank in dict.fromkeys(zip(self.args, self.ranks, strict=True)):
            known = where.spec if isinstance(where, NamedSharding) else hasattr(where, "named")
            if known and rank == ndim and where._to_xla_hlo_sharding(ndim) == hlo:
                return where
        return named_of_hlo(hlo, self.mesh, ndim) or self.default


def place(
    jaxpr: Jaxpr,
    signatures: Sequence[Signature],
    *,
    device: Any = None,
    in_shardings: Sequence[Any] | None = None,
    out_shardings: Sequence[Any] | None = None,
    called: Callable[[int], str],
) -> ProgramPlacement:
    """Return where to run a program for arguments of these signatures, which are those that it
    reads; `called` gives what messages call them, by number.

    ValueError if committed arguments, or a sharding asked for, want different devices, and for
    layouts other than those of committed arguments.
    """
    ins, outs = asked_places(jaxpr)
    ins = (
        [given or own for given, own in zip(in_shardings, ins, strict=True)]
        if in_shardings
        else ins
    )
    outs = list(out_shardings or outs)
    asked_in, asked_out = list(map(sharding_in, ins)), list(map(sharding_in, outs))
    wants = [
        (index, signature.sharding)
        for index, signature in enumerate(signatures)
        if signature.committed and asked_in[index] is None
    ]
    wants += [("explicit input sharding", where) for where in asked_in if where is not None]
    wants += [("explicit output sharding", where) for where in asked_out if where is not None]
    told = lambda what: what if isinstance(what, str) else _told(called(what), signatures[what])
    if device is not None:
        default: Any = sharding.single_device(device)
        found = ProgramPlacement(default, True, None)
    else:
        placing = list(_placing(jaxpr))
        wants += _inner(jaxpr, placing)
        found = _agreed(wants, told)
        found.committed |= any(isinstance(w, MemorySpace) for eqn in placing for w in _named(eqn))
        for eqn in placing:
            for var in eqn.outvars:
                check_size(var.aval, found.devices)
    if found.spmd:
        for mesh in meshes_in(jaxpr, meshes.AbstractMesh):
            _check_size(mesh, found.devices)
    asked_in, asked_out = [
        [_over(where, found.devices) if _without_devices(where) else where for where in asked]
        for asked in (asked_in, asked_out)
    ]
    found.args = [
        _argument(found, index, signature, asked, told)
        for index, (signature, asked) in enumerate(zip(signatures, asked_in, strict=True))
    ]
    if found.spmd and not observable(jaxpr.effects):
        found.open = [
            index
            for index, (where, asked, signature) in enumerate(
                zip(found.args, asked_in, signatures, strict=True)
            )
            if asked is None and where is found.default and _may_be_split(signature)
        ]
    for where, asked, signature in zip(found.args, asked_in, signatures, strict=True):
        if asked is not None or signature.committed:
            found.decisive = where
            break
    found.ranks = [getattr(signature.aval, "ndim", 0) for signature in signatures]
    found.outs = list(asked_out)
    if found.mesh is not None and found.mesh.explicit_axes:
        lying = _untyped(jaxpr, found, signatures) if found.mesh.are_all_axes_explicit else {}
        found.typed = _has_types(jaxpr, signatures)
        for index, var in enumerate(jaxpr.outvars):
            if asked_out[index] is None and type(var) is Var and var in lying:
                found.outs[index] = lying[var]
            elif asked_out[index] is None and found.typed:
                found.outs[index] = _typed(found.mesh, var.aval)
    if found.spmd:
        for where, var in zip(
            [*found.args, *asked_out], [*jaxpr.invars, *jaxpr.outvars], strict=True
        ):
            if where is not None and hasattr(var.aval, "shape"):
                where.shard_shape(var.aval.shape)
    identities = (sharding_constraint_p, asked_place_p)
    layouts = ProgramLayouts(jaxpr, signatures, found.args, ins, outs, identities)
    found.layouts = None if layouts.are_default else layouts
    return found


def _may_be_split(signature: Signature) -> bool:
    """Whether an argument may lie as XLA likes: an array that nobody has put anywhere."""
    aval = signature.aval
    plain = type(aval) is ShapedArray and not isinstance(aval.dtype, ExtendedDType)
    return plain and aval.ndim > 0 and not signature.committed


def _untyped(jaxpr: Jaxpr, found: ProgramPlacement, signatures: Sequence[Signature]) -> dict:
    """Return where arguments lie over the mesh whose types do not say it, for results that are these."""
    lying = {
        var: where
        for var, where, own in zip(jaxpr.invars, found.args, signatures, strict=True)
        if getattr(where, "mesh", None) is found.mesh and not own.committed
    }
    for eqn in jaxpr.eqns:
        if eqn.primitive is asked_place_p and not eqn.params["result"] and eqn.invars[0] in lying:
            lying[eqn.outvars[0]] = lying[eqn.invars[0]]
    return lying


def _has_types(jaxpr: Jaxpr, signatures: Sequence[Signature]) -> bool:
    """Whether types of a program say how its values lie: by the mesh in force, or its arguments'."""
    return (
        not meshes.get_abstract_mesh().empty
        or any(_is_explicit(signature.sharding) for signature in signatures)
        or any(explicit_of(var.aval) is not None for var in jaxpr.outvars)
    )


def _is_explicit(where: Any) -> bool:
    mesh = getattr(where, "mesh", None)
    return mesh is not None and bool(mesh.explicit_axes)


def _typed(mesh: Any, aval: Any) -> Any:
    """Return how a result lies whose type says so; None where axes of the mesh are left to XLA."""
    if not mesh.are_all_axes_explicit or not hasattr(aval, "shape"):
        return None
    kind = HOST_KIND if space_of_type(aval) is MemorySpace.Host else None
    explicit = explicit_of(aval)
    if explicit is None:
        whole = meshes.PartitionSpec(*[None] * aval.ndim)
        return NamedSharding(mesh, whole, memory_kind=kind)
    own = explicit.mesh
    if own.shape_tuple != mesh.shape_tuple:  # the same devices under other names
        mesh = meshes.Mesh(mesh.devices.reshape(own.axis_sizes), own.axis_names, own.axis_types)
    return NamedSharding(mesh, explicit.spec, memory_kind=kind)


def over_devices(
    jaxpr: Jaxpr,
    signatures: Sequence[Signature],
    in_shardings: Sequence[Any] | None,
    out_shardings: Sequence[Any] | None,
    devices: Sequence[Any] = (),
) -> tuple[list[Signature], Sequence[Any] | None, Sequence[Any] | None]:
    """Return the placement of a program with devices in place of meshes that have none.

    ValueError for meshes of different sizes, and for another number of devices.
    """
    asked = [*(in_shardings or ()), *(out_shardings or ())]
    lying = [*(s.sharding for s in signatures if s.committed), *asked]
    unnamed = [where.mesh for where in map(sharding_in, lying) if _without_devices(where)]
    for mesh in unnamed:
        if mesh.size != unnamed[0].size:
            raise ValueError(
                "AbstractMesh should be of the same size across all shardings. Got "
                f"{unnamed[0]} and {mesh}: a program runs on one set of devices."
            )
    if not any(where is not None for where in lying):  # the program may name one
        mesh = next(meshes_in(jaxpr, meshes.AbstractMesh), None)
        if mesh is not None:
            whole = NamedSharding(mesh, meshes.PartitionSpec())
            signatures = [Signature(s.aval, whole, True) for s in signatures]

    def over(place: Any) -> Any:
        if isinstance(place, Format):
            return Format(place.layout, over(place.sharding))
        return _over(place, devices) if _without_devices(place) else place

    return (
        [Signature(s.aval, over(s.place), s.committed) for s in signatures],
        in_shardings and list(map(over, in_shardings)),
        out_shardings and list(map(over, out_shardings)),
    )


def _check_size(mesh: Any, devices: Sequence[Any]) -> None:
    """ValueError unless a mesh without devices has as many places as a program has devices."""
    if mesh.size != len(devices):
        raise ValueError(
            f"AbstractMesh size: {mesh.size} does not match the device assignment size: "
            f"{len(devices)}. Name a mesh of {len(devices)} devices in {mesh}'s place."
        )


def _over(where: NamedSharding, devices: Sequence[Any]) -> NamedSharding:
    mesh = where.mesh
    chosen = tuple(devices) or placeholders(mesh.size)
    if len(chosen) != mesh.size:
        raise ValueError(
            f"The size of abstract mesh {mesh.size} in {where} must match the length of device "
            f"assignment: {len(chosen)}. Give as many devices to compile(device_assignment=)."
        )
    array = np.array(chosen, dtype=object).reshape(mesh.axis_sizes)
    made = meshes.Mesh(array, mesh.axis_names, mesh.axis_types)
    return NamedSharding(made, where.spec, where.memory_kind)


def _without_devices(where: Any) -> bool:
    return isinstance(where, NamedSharding) and not isinstance(where.mesh, meshes.Mesh)


def _told(called: str, signature: Signature) -> str:
    return f"{called} with shape {signature.aval.str_short()} and"


def _inner(jaxpr: Jaxpr, placing: Sequence[JaxprEqn]) -> Iterator[tuple[str | JaxprEqn, Any]]:
    """Yield what places values and where, meshes that the program names, and that of `set_mesh`.

    The meshes without devices are those that the jits within it are asked for.
    """
    places: dict[Any, JaxprEqn] = {}
    for eqn in placing:
        for where in _named(eqn):
            if isinstance(where, sharding.SingleDeviceSharding):
                places.setdefault(sharding.single_device(where._device), eqn)
            elif isinstance(where, NamedSharding) and isinstance(where.mesh, meshes.Mesh):
                places.setdefault(replicated(where.mesh), eqn)
    if meshes.Mesh.made:
        for whole in map(replicated, meshes_in(jaxpr)):
            yield places.pop(whole, "a mesh inside jit"), whole
        context = local.context.mesh
        if isinstance(context, meshes.Mesh) and context.size:
            yield "jit's context mesh", replicated(context)
    for where, eqn in places.items():
        yield "a sharding inside jit" if eqn.primitive is asked_place_p else eqn, where
    asked = [eqn.params["place"] for eqn in placing if eqn.primitive is asked_place_p]
    for where in filter(_without_devices, map(sharding_in, asked)):
        yield "a jit inside jit", where


_PLACING = frozenset((asked_place_p, device_put_p, reshard_p, sharding_constraint_p))


def _placing(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Yield the equations that place values."""
    for eqn in jaxpr.eqns:
        if eqn.primitive in _PLACING:
            yield eqn
        elif eqn.primitive.holds_programs:
            for inner in jaxprs_in_params(eqn.params):
                yield from _placing(inner)


def _named(eqn: JaxprEqn) -> Iterator[Any]:
    """Yield the places that an equation names: shardings and memories, among others."""
    if eqn.primitive is device_put_p:
        yield from eqn.params["devices"]
        return
    for value in eqn.params.values():
        for one in value if type(value) is tuple else (value,):
            yield sharding_in(one) if eqn.primitive is asked_place_p else one


def meshes_in(jaxpr: Jaxpr, kind: type = meshes.Mesh) -> Iterator[Any]:
    """The meshes, of devices by default, that the parameters of its equations refer to."""
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for one in value if type(value) is tuple else (value,):
                mesh = getattr(one, "mesh", one)
                if isinstance(mesh, kind) and mesh.size:
                    yield mesh
        for inner in jaxprs_in_params(eqn.params):
            yield from meshes_in(inner, kind)


def _agreed(wants: Sequence[tuple[Any, Any]], told: Callable[[Any], str]) -> ProgramPlacement:
    """One place for all; a mesh if anyone has one. `told` gives what messages say of who wants it."""
    if not wants:
        return ProgramPlacement(sharding.single_device(platforms.default_device()), False, None)
    placed = [(what, where) for what, where in wants if not _without_devices(where)]
    if not placed:
        where = wants[0][1]
        raise ValueError(
            "Passing lowering_platforms via jax.export or "
            "jit(f).trace(*args).lower(lowering_platforms=...) is required when only AbstractMesh "
            f"exists in a jitted computation. Got context mesh: {meshes.device_mesh()}. "
            f"There are no devices to compile for, since {where} names none. Give a sharding over a Mesh, "
            "or set one with minijax.set_mesh(mesh)."
        )
    for _, where in wants:
        if _without_devices(where):
            _check_size(where.mesh, placed[0][1]._device_assignment)
    first, where = placed[0]
    devices, order = where.device_set, tuple(where._device_assignment)
    for other, another in placed:
        if another is not where and (
            another.device_set != devices or tuple(another._device_assignment) != order
        ):
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got "
                f"{_wanting(first, where, told)} and {_wanting(other, another, told)}. Move one of them "
                "with minijax.device_put(x, device)."
            )
    for _, another in placed:
        named = getattr(another, "named", another)
        if isinstance(named, NamedSharding) and isinstance(named.mesh, meshes.Mesh):
            return ProgramPlacement(replicated(named.mesh), True, named.mesh)
    return ProgramPlacement(where, True, None)


def _wanting(what: Any, where: Any, told: Callable[[Any], str]) -> str:
    if isinstance(what, JaxprEqn):
        at = summarize(what.source)
        return f"{what.primitive.name} inside jit with {device_ids(where)} at {at}"
    return f"{told(what)} with {device_ids(where)}"


def _argument(
    found: ProgramPlacement, index: int, signature: Signature, asked: Any, told: Callable
) -> Any:
    """Return how an argument lies when the program starts."""
    own = signature.sharding
    if asked is None:
        inside = found.spmd and len(own._device_assignment) > 1
        if found.mesh is not None and not found.spmd:
            named = signature.committed or isinstance(own, NamedSharding)
            inside = named and own.device_set == set(found.devices)
        if inside or own == found.default:
            return own
        # An argument in another memory of the device stays there: its type says that it does.
        moves = own.device_set != set(found.devices) or own.memory_kind == found.default.memory_kind
        return found.default if moves else found.default.with_memory_kind(own.memory_kind)
    if signature.committed:
        check_memory(signature, asked)
    ndim = signature.aval.ndim
    if signature.committed and not _split_alike(own, asked, ndim):
        asked.shard_shape(signature.aval.shape)  # an error of its own comes first
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. Got "
            f"sharding {asked}, and {told(index)} has {own}: put it there with minijax.device_put, or "
            "leave it out of in_shardings."
        )
    return asked


def check_memory(signature: Signature, asked: Any) -> None:
    """ValueError unless an argument is in the kind of memory that is asked for."""
    own = signature.sharding.memory_kind
    if own != asked.memory_kind:
        raise ValueError(
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got "
            f"jit memory kind: {asked.memory_kind}, arg memory kind: {own} for arg type: "
            f"{signature.aval.str_short()}: put it there with minijax.device_put, or leave it out of "
            "in_shardings."
        )


def _split_alike(one: Any, other: Any, ndim: int) -> bool:
    """Whether the devices of two shardings, which may be others, have the same parts of an array."""
    if one.is_equivalent_to(other, ndim) or sums_open(one) or sums_open(other):
        return one.is_equivalent_to(other, ndim)
    return (one.is_fully_replicated and other.is_fully_replicated) or (
        one._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
    )


def device_ids(where: Any) -> str:
    devices = where._device_assignment
    return f"device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


def _also(attributes: str, another: str) -> str:
    """The attributes of an argument with another one."""
    inner = attributes.strip()[1:-1]
    return f" {{{inner}, {another}}}" if inner else f" {{{another}}}"


def _owning(execute: Callable, few: Sequence[int]) -> Callable:
    """Copy numbers that are kept for other calls before they are donated."""

    def run(operands, **options):
        for index in few:
            kept = kept_number(operands[index])
            if kept is not None:
                operands = [*operands]
                operands[index] = moved(kept[0], kept[0].signature.place, True)._buffer
        return execute(operands, **options)

    return run


def _apart(execute: Callable, lent: dict[int, ShapedArray]) -> Callable:
    """Refuse a donated buffer that is another operand too: over devices, jaxlib would crash."""

    def run(operands, **options):
        names = list(map(id, operands))
        for index in lent:
            if names.count(names[index]) > 1:
                raise ArgumentError(
                    "INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute(), or to "
                    "use a buffer that is donated in the same call: an array that is donated must "
                    "not be another argument too. Pass x.copy() for one of them."
                )
        return execute(operands, **options)

    return run


# -- arrays that lie elsewhere -------------------------------------------------------------------------


def moved(value: ArrayImpl, target: Any, copy: bool) -> ArrayImpl:
    """Return an array, laid out as another sharding, or a `Format`, says."""
    own = value.signature.sharding
    if value.signature.place is not own or isinstance(target, Format):
        return _in_layout(value, target)
    aval = value.aval
    signature = Signature(aval, target, value.committed)
    devices, wanted = own._device_assignment, target._device_assignment
    if sums_open(own) or sums_open(target):  # no device has a part of the value
        return _resharded(value, target)
    if len(devices) == len(wanted) == 1 or (own == target and own.is_fully_addressable):
        return ArrayImpl(buffers.move(value._buffer, target, copy=copy), signature)
    same_devices = devices == wanted or own.device_set == target.device_set
    if same_devices and own.memory_kind == target.memory_kind:
        if devices == wanted and target.is_equivalent_to(own, physical(aval).ndim):
            return ArrayImpl(buffers.retyped(value._buffer, physical(aval), target), signature)
        if devices[0].platform != "cpu" or not own.is_fully_addressable or _is_large(value):
            return _resharded(value, target)
    stored = buffers.to_numpy(value._buffer, physical(aval), own)
    return ArrayImpl(buffers.put(stored, physical(aval), target, value.committed), signature)


def _in_layout(value: ArrayImpl, target: Any) -> ArrayImpl:
    """Return an array at another place, where one of the two has a layout of its own.

    jaxlib's copies to other devices have the layout of the source by name only.
    """
    own, where = value.signature.sharding, sharding_in(target)
    if own._device_assignment == where._device_assignment:
        return _resharded(value, target)
    rows = _resharded(value, own) if value.signature.place is not own else value
    there = moved(rows, where, False)
    return _resharded(there, target) if target is not where else there


def _is_large(value: ArrayImpl) -> bool:
    """Whether devices that share the host's memory exchange parts faster than the host copies them."""
    return value.aval.size * value.aval.dtype.itemsize > 1 << 18


_programs = ProgramCache()  # that change how their argument lies


def _resharded(value: ArrayImpl, target: Any) -> ArrayImpl:
    """Return an array at another place, by a program that changes nothing else."""
    var = Var(value.aval)
    key = (value.signature, target)
    program = _programs.get(key)
    if program is None:
        closed = ClosedJaxpr(Jaxpr([], [var], [var], []))
        where = Signature(value.aval, value.signature.place, True)
        program = _programs[key] = made_program(
            closed, "reshard", [where], keep_unused=True, out_shardings=[target]
        )
    (made,) = program([value])
    return ArrayImpl(made._buffer, Signature(value.aval, made.signature.place, value.committed))


hooks.fill(moved=moved, place=place)
