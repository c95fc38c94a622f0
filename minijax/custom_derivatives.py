"""`minijax.custom_derivatives`: functions with derivative rules of their own. Only re-exports."""

from minijax.features.custom_rules.closures import closure_convert, custom_gradient, linear_call
from minijax.features.custom_rules.common import SymbolicZero
from minijax.features.custom_rules.custom_jvp import custom_jvp, custom_jvp_call_p
from minijax.features.custom_rules.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_call_p,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from minijax.features.custom_rules.optimize_remat import remat_opt_p
from minijax.namespace import shown

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
    "linear_call", "remat_opt_p", "zero_from_primal",
]  # fmt: skip

__dir__ = shown(__name__)
