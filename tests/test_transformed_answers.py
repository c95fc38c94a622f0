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
    "settings": """
        given("{{enable_x64|debug_nans}}", {{True|0|None|np.True_|jnp.array(True)}})
        given("default_device", {{None|jnp.array(True)|np.array(True)|object|[]|1|"cpu"|"cpu:1"|b"cpu"}})
        given("numpy_rank_promotion", {{None|1|[]|"no"}})
        given("allow_f16_reductions", {{True|False}}, lambda: jnp.{{sum|prod|mean|var|cumsum}}(h)) | given("allow_f16_reductions", False, lambda: jnp.sum(h, dtype={{"float16"|"float32"|"bfloat16"}}))
        given("allow_f16_reductions", {{True|False}}, lambda: lax.{{reduce_sum(h, (0,))|reduce_sum(h, ())|reduce_max(h, (0,))|reduce(h, jnp.float16(0), lax.add, (0,))|cumsum(h)}})
        given("allow_f16_reductions", {{True|False}}, lambda: m.{{vmap(lambda v: lax.psum(v, "i"), axis_name="i")(h)|grad(lambda v: v.sum().astype("float32"))(h)}})
        given("no_execution", True, {{lambda: ahead(1.5)|lambda: ahead(2.0)|lambda: m.jit(line)(1.5)}}) | ahead(2.0)
        given("no_execution", True, lambda: m.jit(line).lower(1.5).compile())({{1.5|2.0}})
        m.config.jax_{{softmax_custom_jvp|allow_f16_reductions|debug_nans|threefry_partitionable}}
    """,
}


def space(m):
    jnp = m.numpy
    one = lambda fun: m.grad(fun)(2.5)

    def line(x):
        return 2 * x + 1

    def given(name, value, fun=None):
        with getattr(m, name)(value):
            return fun() if fun else str(getattr(m.config, "jax_" + name))

    return {
        "m": m, "jnp": jnp, "lax": m.lax, "np": np, "math": math, "operator": operator,
        "grad": one, "jvp": lambda fun: m.jvp(fun, (2.5,), (1.0,)),
        "given": given, "line": line, "ahead": m.jit(line).lower(1.5).compile(), "h": jnp.array([1.0, 2049.0, 3.0], "float16"),
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
