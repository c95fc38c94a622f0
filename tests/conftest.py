"""What holds for all tests: how XLA compiles, and that programs do not outlive a file of tests."""

import gc
import os
from importlib.metadata import version

# Tests compare what programs compute, thousands of them once each: code that is made quickly does
# it. Set before a client starts, for the processes that tests start too.
_FLAGS = ["--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]
if version("jaxlib").startswith("0.10."):  # XLA refuses flags that it does not know
    _FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(_FLAGS))

import jax  # noqa: E402
import pytest  # noqa: E402

import minijax  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory():
    yield
    minijax.clear_caches()
    jax.clear_caches()
    gc.collect()
