"""`minijax.experimental.roofline`: what a program computes, and what it moves, by its operations.

Re-exports. An estimate from the types of a program's values, without compiling it.
"""

from minijax.experimental.roofline import rooflines
from minijax.experimental.roofline.roofline import (
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    register_roofline,
    register_standard_roofline,
    roofline,
    roofline_and_grad,
)

__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
    "register_standard_roofline", "roofline", "roofline_and_grad", "rooflines",
]  # fmt: skip
