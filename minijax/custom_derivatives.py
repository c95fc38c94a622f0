"""`minijax.custom_derivatives`: functions with derivative rules of their own. Only re-exports."""

from minijax.transforms.closures import closure_convert, custom_gradient, linear_call
from minijax.transforms.custom_jvp import custom_jvp, custom_jvp_call_p
from minijax.transforms.custom_rules import SymbolicZero
from minijax.transforms.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_call_p,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from minijax.transforms.remat_opt import remat_opt_p

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
    "linear_call", "remat_opt_p", "zero_from_primal",
]  # fmt: skip
