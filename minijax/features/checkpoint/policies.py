"""The policies of `checkpoint` that have names."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

from minijax.features.checkpoint.decisions import (
    Offloadable,
    Policy,
    Recompute,
    Saveable,
    batched_product,
    name_p,
    nothing_saveable,
)

__all__ = ["checkpoint_policies"]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save all results: as without `checkpoint`."""
    return True


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
