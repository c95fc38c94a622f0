"""Control flow: loops, conditionals, solvers."""

from minijax.lax.control_flow.associative import associative_scan
from minijax.lax.control_flow.cond_rules import cond_p, platform_index_p
from minijax.lax.control_flow.conditionals import cond, platform_dependent, switch
from minijax.lax.control_flow.loops import fori_loop, while_loop, while_p
from minijax.lax.control_flow.scan import map, scan
from minijax.lax.control_flow.scan_rules import scan_p
from minijax.lax.control_flow.solves import (
    custom_linear_solve,
    custom_root,
    linear_solve_p,
    optimization_barrier,
    optimization_barrier_p,
)

__all__ = [
    "associative_scan", "cond", "cond_p", "custom_linear_solve", "custom_root", "fori_loop",
    "linear_solve_p", "map", "optimization_barrier", "optimization_barrier_p",
    "platform_dependent", "platform_index_p", "scan", "scan_p", "switch", "while_loop", "while_p",
]  # fmt: skip
