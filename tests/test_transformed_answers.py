"""Answers within transforms beside upstream's: values, dtypes, weak types, structures, and errors.

Each line is an expression, or several: `{{a|b}}` stands for `a` in one and for `b` in another.
"""

import math
import operator

import numpy as np
import pytest

from tests.harness.differential import BOTH
from tests.test_library_answers import answer, difference, expressions

ANSWERS = {
    # A Python number has no derivative: those that a program differentiates would lose it.
    "Python numbers": """
        {{grad|jvp|linearize|nested|vmapped}}(lambda v: {{float(v)|complex(v).real|math.sin(v)|v.tolist()|math.floor(v)|int(v)|bool(v)|v.item()}} * v)
        {{grad|jvp|linearize|nested}}(lambda v: {{float|complex|int|operator.index}}(v.astype(int)).real * v)
        {{grad|jvp|linearize}}(lambda v: {{float(lax.stop_gradient(v))|v.astype(int).tolist()}} * v)
    """,
}


def space(m):
    jnp = m.numpy
    one = lambda fun: m.grad(fun)(2.5)
    return {
        "m": m, "jnp": jnp, "lax": m.lax, "np": np, "math": math, "operator": operator,
        "grad": one, "jvp": lambda fun: m.jvp(fun, (2.5,), (1.0,)),
        "linearize": lambda fun: m.linearize(fun, 2.5)[1](1.0),
        "nested": lambda fun: one(m.grad(fun)), "vmapped": lambda fun: m.vmap(fun)(jnp.ones(2)),
    }  # fmt: skip


@pytest.mark.parametrize("area", ANSWERS)
def test_answers_within_transforms(area):
    names = {m: space(m) for m in BOTH}
    found = [
        difference(text, *[answer(m, text, names[m]) for m in BOTH])
        for text in expressions(ANSWERS[area])
    ]
    assert not any(found), "\n".join(filter(None, found))
