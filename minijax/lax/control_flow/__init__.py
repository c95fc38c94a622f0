"""Control flow: loops and conditionals; solvers are imported when they are first asked for."""

from minijax.lax.control_flow.associative import associative_scan
from minijax.lax.control_flow.cond_rules import cond_p, platform_index_p
from minijax.lax.control_flow.conditionals import cond, platform_dependent, switch
from minijax.lax.control_flow.loops import fori_loop, while_loop, while_p
from minijax.lax.control_flow.scan import map, scan
from minijax.lax.control_flow.scan_rules import scan_p

__all__ = [
    "associative_scan", "cond", "cond_p", "fori_loop", "map", "platform_dependent",
    "platform_index_p", "scan", "scan_p", "switch", "while_loop", "while_p",
]  # fmt: skip
