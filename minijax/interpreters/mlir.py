"""`minijax.interpreters.mlir`: lowering rules, registered upstream's way.

May import the floors below. minijax writes modules as text, so a rule here is what `lower_fun` makes
from a function written with other primitives, or a function `rule(builder, *values, **params)` that
writes operations with a `minijax.lowering.module.Builder`; upstream's rules, which build operations
with MLIR's Python bindings, do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.lowering.module import Builder as LoweringRuleContext
from minijax.lowering.module import Module as ModuleContext
from minijax.lowering.module import Value

__all__ = ["LoweringRuleContext", "ModuleContext", "Value", "lower_fun", "register_lowering"]

_ALIASES = {"gpu": ("gpu", "cuda", "rocm"), "cuda": ("cuda", "gpu"), "rocm": ("rocm",)}


class _ByPlatform:
    """A lowering rule that is chosen by the platform that the module is for."""

    __slots__ = ("default", "rules")

    def __init__(self, default: Callable | None):
        self.default = default
        self.rules: dict[str, Callable] = {}

    def __call__(self, builder: LoweringRuleContext, *operands: Value, **params: Any) -> Any:
        rule = self.rules.get(builder.platform, self.default)
        if rule is None:
            raise NotImplementedError(
                f"No lowering rule for platform {builder.platform!r}, only for "
                f"{sorted(self.rules)}: register one with platform=None for all."
            )
        return rule(builder, *operands, **params)


def register_lowering(
    prim: Primitive, rule: Callable, platform: str | None = None, inline: bool = True,
    cacheable: bool = True,
) -> None:  # fmt: skip
    """Set the lowering rule of a primitive, for one platform or for all that have none."""
    known = prim.rule_lower
    if platform is None:
        if type(known) is _ByPlatform:
            known.default = rule
        else:
            prim.rule_lower = rule
        return
    if type(known) is not _ByPlatform:
        known = prim.rule_lower = _ByPlatform(known)
    for name in _ALIASES.get(platform, (platform,)):
        known.rules[name] = rule


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A lowering rule from a function of arrays: it is traced, and its program lowered in place."""

    def rule(builder: LoweringRuleContext, *operands: Value, **params: Any) -> list[Value]:
        def flat(*args):
            out = fun(*args, **params)
            return list(out) if multiple_results else [out]

        closed = trace_to_jaxpr(flat, tuple([x.aval for x in operands]))
        return builder.closed_jaxpr(closed, *operands)

    return rule
