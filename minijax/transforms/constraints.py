"""Sharding constraints: where an intermediate value is to lie.

May import the floors below and the `transforms` basics. A constraint is the identity; XLA's
partitioner (Shardy) splits the value as it says. Applied to a concrete array it moves it.
"""

from __future__ import annotations

from typing import Any

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive
from minijax.lowering.types import physical
from minijax.runtime.mesh import (
    UNCONSTRAINED,
    AbstractMesh,
    Mesh,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
)
from minijax.runtime.named import NamedSharding
from minijax.runtime.sharding import Sharding
from minijax.transforms.transfer import put_array

__all__ = ["constrained", "sharding_constraint_p", "sharding_of", "with_sharding_constraint"]

sharding_constraint_p = Primitive("sharding_constraint")


@sharding_constraint_p.shape_rule
def _(x, *, sharding):
    sharding.shard_shape(x.shape)
    return x


@sharding_constraint_p.impl
def _(x, *, sharding):
    if isinstance(sharding, NamedSharding) and UNCONSTRAINED in sharding.spec:
        return x
    return put_array(as_array(x), sharding)


@sharding_constraint_p.jvp
def _(primals, tangents, *, sharding):
    (x,), (t,) = primals, tangents
    return sharding_constraint_p.bind(x, sharding=sharding), constrained(t, sharding)


@sharding_constraint_p.transpose
def _(ct, x, *, sharding):
    return [constrained(ct, sharding)]


@sharding_constraint_p.batch_axis
def _(axis, args, dims, *, sharding):
    """The mapped dimension is split over `spmd_axis_name`, or as XLA likes."""
    (x,), (dim,) = args, dims
    if not isinstance(sharding, NamedSharding):
        return x, dim
    parts = [*sharding.spec, *[None] * (x.ndim - 1 - len(sharding.spec))]
    parts.insert(dim, UNCONSTRAINED if axis.spmd_name is None else axis.spmd_name)
    sharding = NamedSharding(sharding.mesh, PartitionSpec(*parts))
    return sharding_constraint_p.bind(x, sharding=sharding), dim


@sharding_constraint_p.lower
def _(b, x, *, sharding):
    if not isinstance(sharding, NamedSharding):
        return x
    where = b.module.sharding(sharding, physical(x.aval).ndim)
    text = f"sdy.sharding_constraint {x.name} {where} : {x.type}"
    return b.statements(text, [x.aval])


def constrained(x: Any, sharding: Any) -> Any:
    """`x` with a constraint; None asks for none, and what has no elements that matter needs none."""
    if sharding is None or not hasattr(get_aval(x), "shape") or get_aval(x).dtype.kind == "V":
        return x
    return sharding_constraint_p.bind(x, sharding=sharding)


def sharding_of(where: Any, what: str) -> Any:
    """The sharding that a user gave, a PartitionSpec being over the mesh in force."""
    if where is None or isinstance(where, Sharding):
        return where
    if isinstance(where, PartitionSpec):
        mesh: Mesh | AbstractMesh = get_mesh()
        mesh = get_abstract_mesh() if mesh.empty else mesh
        if mesh.empty:
            raise RuntimeError(
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s: "
                f"got {where}. Set one with minijax.set_mesh(mesh), or give NamedSharding(mesh, "
                "spec)."
            )
        return NamedSharding(mesh, where)
    raise TypeError(
        f"{what} takes shardings and PartitionSpecs; got {where!r} of type {type(where)}."
    )


def flat_shardings(what: str, given: Any, tree: Any) -> list[Any]:
    """One sharding, or None, for each leaf, from a tree of them that is a prefix."""
    is_leaf = lambda x: x is None or isinstance(x, (Sharding, PartitionSpec))
    spread = tree_util.broadcast_prefix(
        given, tree.unflatten([0] * tree.num_leaves), is_leaf=is_leaf
    )
    return [sharding_of(where, what) for where in spread]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """A tree of arrays, each laid out as a sharding says; values do not change.

    `shardings`: one for all, or a tree of them that is a prefix of `x`; a PartitionSpec is over the
    mesh in force (`set_mesh`). ValueError where a dimension cannot be split so.
    """
    leaves, tree = tree_util.flatten(x)
    places = flat_shardings("with_sharding_constraint", shardings, tree)
    return tree.unflatten([constrained(leaf, p) for leaf, p in zip(leaves, places, strict=True)])
