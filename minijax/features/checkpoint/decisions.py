"""What a policy of `checkpoint` decides, and what it decides by. A policy is called with the primitive of an
equation, the types of its operands and its parameters, and says whether its results may be saved
for the backward pass: True or `Saveable`, False or `Recompute`, or an `Offloadable` that names the
memory to keep them in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.core.primitive import Primitive, RuleColumn

__all__ = [
    "Offloadable", "Policy", "Recompute", "Saveable", "batched_product", "checkpoint_name", "decide",
    "name_p", "nothing_saveable",
]  # fmt: skip

Policy = Callable[..., Any]

# Rules `params -> bool` of matrix products and convolutions: whether one counts as batched.
batched_product = RuleColumn("batched product")


class _Decision:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


Saveable = _Decision("Saveable")
Recompute = _Decision("Recompute")


class Offloadable(NamedTuple):
    """Save results in another memory: from `src`, such as "device", to `dst`, "pinned_host"."""

    src: str
    dst: str


def decide(policy: Policy, primitive: Primitive, avals: tuple, params: dict) -> Any:
    """The decision of a policy on one equation: False, True or an `Offloadable`."""
    found = policy(primitive, *avals, **params)
    if found is True or found is Saveable:
        return True
    if found is False or found is Recompute:
        return False
    if type(found) is Offloadable:
        return found
    raise TypeError(
        "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
        f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {found} of type "
        f"{type(found)} from the policy {policy} for an equation of {primitive}."
    )


# -- naming values for policies -------------------------------------------------------------------

name_p = Primitive("name")


@name_p.shape_rule
def _(x, *, name):
    return x


@name_p.impl
def _(x, *, name):
    return as_array(x)


@name_p.jvp
def _(primals, tangents, *, name):
    return name_p.bind(*primals, name=name), tangents[0]


@name_p.transpose
def _(ct, x, *, name):
    return [ct]


@name_p.batch
def _(args, dims, *, name):
    return name_p.bind(*args, name=name), dims[0]


@name_p.lower
def _(b, x, *, name):
    return x


def checkpoint_name(x: Any, name: str) -> Any:
    """The values of a tree, unchanged, with a name that policies of `checkpoint` refer to."""
    return tree_util.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save nothing but the arguments: as `checkpoint` without a policy."""
    return False
