"""`extend.pallas`: compilers of kernels that libraries bring for a platform."""

from __future__ import annotations

from collections.abc import Callable

from minijax.features.mlir_rules import BoundRule
from minijax.lax.pallas.call import compilers, pallas_call_p
from minijax.lax.pallas.mapping import GridMapping

__all__ = ["GridMapping", "register_lowering_rule"]


def register_lowering_rule(params_cls: type, rule: Callable, platform: str) -> None:
    """Have `rule` lower kernels that are given compiler params of this class and not interpreted.

    - `rule`: called as `rule(ctx, *operands, jaxpr=, grid_mapping=, ...)`, it builds operations with
      MLIR's Python bindings and gives the results
    - `platform`: "tpu" or "gpu"; lowering for another raises ValueError
    """
    compilers[params_cls] = platform, BoundRule(pallas_call_p, rule)
