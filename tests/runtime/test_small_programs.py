"""Small programs are compiled by XLA's older emitters: which those are, and that the bits agree."""

import os
import subprocess
import sys

import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.runtime.small_programs import is_small
from minijax.runtime.versions import OLDER_EMITTERS

PROGRAMS = {
    # name: function, shape of its argument, dtype, whether it is small
    "sin": (jnp.sin, (8,), "float32", True),
    "a scalar": (lambda x: x + 1, (), "float32", True),
    "empty": (lambda x: x * 2, (0, 4), "float32", True),
    "4096 elements": (jnp.sin, (64, 64), "float32", True),
    "more elements": (jnp.sin, (65, 64), "float32", False),
    "a large result": (lambda x: jnp.broadcast_to(x, (1000, 8)), (8,), "float32", False),
    "bfloat16": (jnp.exp, (8,), "bfloat16", True),
    "float16": (jnp.exp, (8,), "float16", False),
    "complex64": (jnp.exp, (8,), "complex64", False),
    "float8": (lambda x: x, (8,), "float8_e4m3fn", False),
    "tan": (jnp.tan, (8,), "float32", False),
    "atan2": (lambda x: jnp.arctan2(x, 2), (8,), "float32", False),
    "cbrt": (jnp.cbrt, (8,), "float32", False),
    "a polynomial": (lambda x: (x * x + 1) * x + 2, (8,), "float32", True),
    "a sum of products": (lambda x: x * x + x * 2, (8,), "float32", False),
    "a difference of products": (lambda x: 3 * x[0] - x * x, (8,), "float32", False),
    "a sum of a product and another's negative": (
        lambda x: x * x + -(x * 2)[:, None], (8,), "float32", False,
    ),
    "tanh": (jnp.tanh, (8,), "float32", True),
    "a short loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), (8,), "float32", True,
    ),
    "a loop of more elements": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), (65,), "float32", False,
    ),
    "a custom call": (jnp.linalg.cholesky, (3, 3), "float32", False),
    "many operations": (
        lambda x: [jnp.sin(x * i) for i in range(200)], (8,), "float32", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_are_small(name):
    fun, shape, dtype, small = PROGRAMS[name]
    lowered = minijax.jit(fun).lower(jnp.ones(shape, dtype))
    generic = str(lowered.compiler_ir().operation.get_asm(print_generic_op_form=True))
    assert [is_small(text) for text in (lowered.as_text(), generic)] == [small, small]


def test_programs_of_several_devices_are_not_small():
    text = minijax.jit(jnp.sin).trace(jnp.ones(8)).lower().as_text()
    assert not is_small(text.replace("num_partitions = 1 ", "num_partitions = 2 "))


@pytest.mark.skipif(not OLDER_EMITTERS, reason="this jaxlib has one way to make kernels")
def test_the_same_bits():
    own_flags = {**os.environ, "XLA_FLAGS": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.cases.emitters"],
        capture_output=True,
        text=True,
        env=own_flags,
    )
    assert ran.stdout.splitlines() == [
        "different: []",
        "compared: 408",
        "tan differs: True",
        "a sum of products differs: True",
        "the older is chosen: True",
    ], ran.stderr


COLLECTOR = """
import gc
{before}
import minijax
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("", "True False"),
        ("gc.disable()", "False False"),
        ("gc.freeze()", "True True"),
    ],
)
def test_the_import_leaves_the_collector_as_it_was(before, said):
    program = COLLECTOR.format(before=before)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == said


def test_a_failed_import_leaves_the_collector_on():
    program = (
        "import sys, gc\nsys.modules['jaxlib'] = None\n"
        "try:\n    import minijax\nexcept ImportError:\n    print(gc.isenabled())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "True"
