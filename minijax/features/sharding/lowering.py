"""Writing modules for several devices: meshes, and how values are split over them.

`ShardedModule` and `ShardedBuilder` stand for the classes of `lowering.module`; the partitioner is
told how the values of each equation are split where their types say it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minijax.core.hooks import hooks
from minijax.core.jaxpr import Jaxpr, JaxprEqn
from minijax.features.operations import OperationBuilder
from minijax.features.sharding.layouts import in_shape_rule
from minijax.features.sharding.shardy import sdy_mesh, sdy_sharding
from minijax.features.sharding.types import NO_AXES, explicit_of, vma_of
from minijax.features.sharding.unreduced import any_sums, sums_of
from minijax.lowering.module import Builder, Module, Value
from minijax.lowering.types import physical
from minijax.runtime.escape import symbol
from minijax.runtime.mesh import AbstractMesh, Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, same_mesh

__all__ = ["ShardedBuilder", "ShardedModule"]


class ShardedModule(Module):
    """A module whose partitions are devices."""

    def __init__(self, name: str, platform: str, *, devices: tuple = (None,)):
        super().__init__(name, platform, devices=devices)
        self.meshes: dict[Any, str] = {}
        self.own_meshes: dict[int | None, str] = {}  # of one partition; of all of them, None
        # Whether arguments are in the host's memory that no type tells of.
        self.untyped_host = False

    @property
    def manual(self) -> Any:
        """The mesh of the shard_map that is being written."""
        return self.within

    @manual.setter
    def manual(self, mesh: Any) -> None:
        self.within = mesh

    def share_meshes(self, other: ShardedModule) -> None:
        """Name meshes as another module does, of which this one becomes a part."""
        self.meshes, self.own_meshes = other.meshes, other.own_meshes
        self.untyped_host = other.untyped_host

    def mesh_name(self, mesh: Any) -> str:
        """The name that a mesh has in the module; equal ones have the same."""
        same = next((other for other in self.meshes if same_mesh(other, mesh)), None)
        if same is None:
            count = len(self.meshes)
            self.meshes[mesh] = f"mesh_{count}" if count else "mesh"
        elif isinstance(same, AbstractMesh) and isinstance(mesh, Mesh):
            self.meshes[mesh] = self.meshes.pop(same)  # the one that says which devices
        else:
            mesh = same
        return self.meshes[mesh]

    def on_one(self, partition: int, count: int) -> str:
        """The sharding of an operation with `count` results that one partition does for all."""
        name = self.own_meshes.setdefault(partition, f"maximal_mesh_{partition}")
        each = f"<{symbol(name)}, []>"
        return f"#sdy.sharding_per_value<[{', '.join([each] * max(count, 1))}]>"

    def on_all(self, ndim: int) -> str:
        """The sharding of an array that every partition has whole."""
        name = self.own_meshes.setdefault(None, "all_devices")
        return sdy_sharding(name, [None] * ndim)

    def sharding(self, where: Any, ndim: int, *, open_: bool = False) -> str:
        """A sharding of an array of this rank, as Shardy's dialect writes it."""
        parts = [*where.spec.partitions, *[None] * (ndim - len(where.spec))]
        sums = [name for name in where.mesh.axis_names if name in where.spec.unreduced]
        return sdy_sharding(self.mesh_name(where.mesh), parts, sums, open_=open_)

    def constraint(self, aval: Any, operands: Sequence[Any]) -> Any:
        """The sharding that the type of a result states, or None if no type states any."""
        own = found = explicit_of(aval)
        if found is None and hasattr(aval, "shape"):
            found = next(filter(None, map(explicit_of, operands)), None)
            found = found and found.with_spec([None] * aval.ndim)
        if found is not None and found.mesh.auto_axes:  # over those XLA splits it as it likes
            found = None if own is None else found
        return found

    def with_shardings(self, attributes: Any, places: Sequence[Any], values: Any) -> list[str]:
        """The attributes of arguments or results, with those shardings that are given."""
        out = []
        for index, (where, value) in enumerate(zip(places, values, strict=True)):
            given = (
                attributes[index].strip()[1:-1].strip() if attributes and attributes[index] else ""
            )
            where = getattr(where, "named", where)
            if isinstance(where, NamedSharding):
                shown = self.sharding(where, physical(value.aval).ndim)
                given += (", " if given else "") + f"sdy.sharding = #sdy.sharding{shown}"
            out.append(f" {{{given}}}" if given else "")
        return out

    def declarations(self) -> list[str]:
        meshes = [sdy_mesh(name, mesh, self.devices) for mesh, name in self.meshes.items()]
        for partition, name in self.own_meshes.items():
            one = f"[], device_ids=[{partition}]"
            every = f'["all"={len(self.devices)}]'
            meshes.append(f"sdy.mesh {symbol(name)} = <{every if partition is None else one}>")
        return meshes


class ShardedBuilder(OperationBuilder):
    """Writes the operations of a function that may run on several devices."""

    __slots__ = ()

    def size(self, x: Any) -> Value:
        """Refuse a symbolic size, which no argument of the function tells."""
        raise x.unexpected("Programs that run have numbers for sizes: give these.")

    def enter(self, jaxpr: Jaxpr, env: dict[Any, Value]) -> None:
        """Split the sums among the inputs of regions and calls: the partitioner is not told otherwise."""
        if any_sums([v.aval for v in jaxpr.invars]) and not self.module.manual:
            for var in jaxpr.invars:
                if sums_of(var.aval)[0]:
                    (env[var],) = self.split(env[var], explicit_of(var.aval))

    def eqn(self, eqn: JaxprEqn, operands: Sequence[Value]) -> Sequence[Value]:
        """Lower one equation; its results are split as their types say."""
        for var in (*eqn.invars, *eqn.outvars):
            if var.aval.placement is not None:
                break
        else:
            return super().eqn(eqn, operands)
        if self.module.manual:
            return super().eqn(eqn, operands)
        sums = [explicit_of(v.aval) for v in eqn.invars if sums_of(v.aval)[0]]
        if sums and not eqn.primitive.holds_programs:
            pairs = zip(operands, eqn.invars, strict=True)
            inner = self.summing({x.name for x, v in pairs if sums_of(v.aval)[0]}, sums[0])
            results = Builder.eqn(inner, eqn, operands)
        else:
            results = super().eqn(eqn, operands)
        return self.constrained(eqn, results) if len(self.module.devices) > 1 else results

    def constrained(self, eqn: JaxprEqn, results: Sequence[Value]) -> Sequence[Value]:
        """Return the results, split as their types say."""
        operands = [v.aval for v in eqn.invars]
        rule = eqn.primitive.rule_layout
        if rule is not None and rule.parts is in_shape_rule:
            return results
        if not any(explicit_of(v.aval) for v in (*eqn.invars, *eqn.outvars)):
            return results
        out, location = [], self.location
        if eqn.scope or eqn.source is not None:  # what the partitioner adds is of this equation
            scope = f"{self.scope}{eqn.scope}/" if eqn.scope else self.scope
            self.location = self.place(scope + eqn.primitive.name)
        for var, value in zip(eqn.outvars, results, strict=True):
            where = self.module.constraint(var.aval, operands)
            if where is not None:
                (value,) = self.split(value, where, open_=bool(where.mesh.auto_axes))
            out.append(value)
        self.location = location
        return out

    def summing(self, names: set[str], where: Any) -> SummingBuilder:
        """Return what writes on, where the values of these names are sums over mesh axes."""
        inner = _summing(type(self))(self.module, self)
        inner.lines, inner.tokens, inner.location = self.lines, self.tokens, self.location
        inner.ins, inner.out, inner.outs = self.ins, self.out, self.outs
        inner.summed = names, where
        return inner

    def custom_call(
        self, target: str, operands: Sequence[Value], outs: Sequence[Any], *,
        partition: int | None = None, **options: Any,
    ) -> list[Value]:  # fmt: skip
        """A custom call; `partition` is the one that makes it, where not all of them do."""
        if partition is None:
            return super().custom_call(target, operands, outs, **options)
        options["extra"] = f"sdy.sharding = {self.module.on_one(partition, len(outs))}"
        return [self.whole(x) for x in super().custom_call(target, operands, outs, **options)]

    def split(self, x: Value, where: Any, *, open_: bool = False) -> list[Value]:
        """The value, which the partitioner is to split as a sharding says; further if `open_`."""
        shown = self.module.sharding(where, physical(x.aval).ndim, open_=open_)
        return self.statements(f"sdy.sharding_constraint {x.name} {shown} : {x.type}", [x.aval])

    def summands(self, x: Value, where: Any) -> list[Value]:
        """The value, as a sum over mesh axes that is still to be taken.

        It is split first: what makes it is not to make summands at once, each of which were whole.
        """
        if where.spec.unreduced - sums_of(x.aval)[0]:
            own = explicit_of(x.aval) or where.with_spec(where.spec.partitions)
            (x,) = self.split(x, own, open_=bool(own.mesh.auto_axes))
        return self.split(x, where)

    def whole(self, x: Value) -> Value:
        """The value on every partition; tokens stay where they are."""
        if not hasattr(x.aval, "dtype"):
            return x
        shown = self.module.on_all(physical(x.aval).ndim)
        return self.statements(f"sdy.sharding_constraint {x.name} {shown} : {x.type}", [x.aval])[0]


class SummingBuilder(ShardedBuilder):
    """Writes operations on sums over mesh axes that are still to be taken: their results are sums."""

    __slots__ = ()
    summed: tuple[set[str], Any] | None  # names of values that are sums, over what

    def __init__(self, module: Module, outer: Builder | None = None, *, isolated: bool = False):
        super().__init__(module, outer, isolated=isolated)
        self.summed = None

    def op(self, name: str, operands: Sequence[Value], out: Any, attributes: str = "") -> Value:
        value = super().op(name, operands, out, attributes)
        return value if self.summed is None else self._kept(operands, value)

    def op_n(self, name: str, operands: Sequence[Value], *args: Any, **options: Any) -> list[Value]:
        values = super().op_n(name, operands, *args, **options)
        return values if self.summed is None else [self._kept(operands, x) for x in values]

    def broadcast(self, x: Value, shape: Sequence[int], dims: Sequence[int] | None = None) -> Value:
        """`broadcast_in_dim`; XLA takes the sum of what is repeated along a dimension of one."""
        if self.summed is not None:
            if dims is None:
                dims = range(len(shape) - len(x.shape), len(shape))
            kept = [axis for axis, d in enumerate(dims) if x.shape[axis] == shape[d]]
            dims = [dims[axis] for axis in kept]
            x = self.reshape(x, [x.shape[axis] for axis in kept])
        return super().broadcast(x, shape, dims)

    def _kept(self, operands: Sequence[Value], value: Value) -> Value:
        """Mark a value made of a sum over mesh axes that is still to be taken as such a sum, for
        XLA.
        """
        names, where = self.summed
        if not any(x.name in names for x in operands):
            return value
        typed = next((explicit_of(out) for out in self.outs if out.shape == value.shape), None)
        spec = PartitionSpec(unreduced=where.spec.unreduced)
        (value,) = self.split(value, typed or where.with_spec(spec))
        names.add(value.name)
        return value


@functools.cache
def _summing(builder: type[ShardedBuilder]) -> type:
    """Return a class of builders as one that keeps sums."""
    if issubclass(builder, SummingBuilder):
        return builder
    return type(f"Summing{builder.__name__}", (SummingBuilder, builder), {"__slots__": ("summed",)})


ShardedModule.builder = ShardedBuilder
hooks.fill(
    lowered_type=lambda aval: aval.update(vma=NO_AXES) if vma_of(aval) else aval,
    make_module=ShardedModule,
)
