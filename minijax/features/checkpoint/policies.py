"""Policies of `checkpoint`: what may be saved. A policy is called with the primitive of an
equation, the types of its operands and its parameters, and says whether its results may be saved
for the backward pass: True or `Saveable`, False or `Recompute`, or an `Offloadable` that names the
memory to keep them in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.core.primitive import Primitive, RuleColumn

__all__ = [
    "Offloadable", "Policy", "Recompute", "Saveable", "batched_product", "checkpoint_name",
    "checkpoint_policies", "decide", "name_p",
]  # fmt: skip

Policy = Callable[..., Any]


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


# -- the policies ---------------------------------------------------------------------------------


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save all results: as without `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save nothing but the arguments: as `checkpoint` without a policy."""
    return False


# Rules `params -> bool` of matrix products and convolutions: whether one counts as batched.
batched_product = RuleColumn("batched product")


def _is_dot(primitive: Any, params: dict, batch: bool) -> bool:
    rule = batched_product.rule(primitive)
    return rule is not None and (batch or not rule(params))


@dataclasses.dataclass(frozen=True)
class DotsSaveable:
    """Save the results of matrix products (and convolutions, unless `only_if_no_batch_dims`)."""

    only_if_no_batch_dims: bool

    def __call__(self, prim, *_, **params) -> bool:
        return _is_dot(prim, params, not self.only_if_no_batch_dims)


@dataclasses.dataclass(frozen=True)
class OffloadDots:
    """Offload the results of matrix products without batch dimensions."""

    offload_src: str
    offload_dst: str

    def __call__(self, prim, *_, **params) -> Any:
        if _is_dot(prim, params, False):
            return Offloadable(self.offload_src, self.offload_dst)
        return Recompute


def _name_in(primitive: Any, params: dict) -> Any:
    return params["name"] if primitive is name_p else None


@dataclasses.dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Save the values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim, *_, **params) -> bool:
        return _name_in(prim, params) in self.saveable_names


@dataclasses.dataclass(frozen=True)
class SaveNamesExcept:
    """Save the values that `checkpoint_name` gave a name, except these; or all other values too."""

    names: frozenset[str]
    unnamed: bool

    def __call__(self, prim, *_, **params) -> bool:
        if prim is not name_p:
            return self.unnamed
        return params["name"] not in self.names


@dataclasses.dataclass(frozen=True)
class SaveAndOffloadNames:
    """Save values of some names, and offload those of others."""

    saved: frozenset[str]
    offloaded: frozenset[str]
    offloadable: Offloadable

    def __call__(self, prim, *_, **params) -> Any:
        name = _name_in(prim, params)
        if name in self.saved:
            return Saveable
        return self.offloadable if name in self.offloaded else Recompute


@dataclasses.dataclass(frozen=True)
class SaveFromBoth:
    """Save what either policy saves."""

    policy_1: Policy
    policy_2: Policy

    def __call__(self, prim, *avals, **params) -> bool:
        found = [policy(prim, *avals, **params) for policy in (self.policy_1, self.policy_2)]
        if not all(isinstance(each, bool) for each in found):
            raise ValueError(
                "The return value of the policies should be a boolean. Got: "
                f"{found[0]} and {found[1]}. Please write a custom policy function directly, "
                "rather than using save_from_both_policies."
            )
        return found[0] or found[1]


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save only values that `checkpoint_name` gave one of these names."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save values that `checkpoint_name` gave a name, except these."""
    return SaveNamesExcept(frozenset(names_not_to_save), False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all values, except those that `checkpoint_name` gave one of these names."""
    return SaveNamesExcept(frozenset(names_not_to_save), True)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Any,
    names_which_can_be_offloaded: Any,
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save values of some names and offload those of others. ValueError if a name is in both."""
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in `names_which_can_be_saved` "
            f"and `names_which_can_be_offloaded`. Got names_which_can_be_saved={set(saved)}, "
            f"names_which_can_be_offloaded={set(offloaded)} and the intersection="
            f"{set(saved & offloaded)}"
        )
    return SaveAndOffloadNames(saved, offloaded, Offloadable(offload_src, offload_dst))


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Offload the results of matrix products without batch dimensions."""
    return OffloadDots(offload_src, offload_dst)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what either policy saves. Both must give booleans (ValueError)."""
    return SaveFromBoth(policy_1, policy_2)


dots_saveable = DotsSaveable(False)
dots_with_no_batch_dims_saveable = DotsSaveable(True)

checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
