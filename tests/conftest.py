"""Settings of all tests: how XLA compiles, and that programs do not outlive a file of tests."""

import gc
import os
from importlib.metadata import version

# Thousands of programs are compiled to run once: code that is made quickly does it. Where XLA's flags are
# given, as an empty text in a part of CI, programs are compiled as users' are. Set before a client starts,
# for the processes that tests start too.
_QUICK = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
if version("jaxlib").startswith("0.10."):  # newer ones have no other emitters
    _QUICK += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", _QUICK)
# A run's programs take 0.8 GB: two versions of the library do not fit into the 1 GiB that users' are kept in,
# and the next run would not find those that it asks for first.
os.environ.setdefault("MINIJAX_COMPILATION_CACHE_MAX_SIZE", str(4 << 30))
# Threads of OpenBLAS wait busily, and two processes run tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax  # noqa: E402
import pytest  # noqa: E402
from _pytest.runner import runtestprotocol  # noqa: E402

import minijax  # noqa: E402
from tests.harness.upstream import compiling, run_many  # noqa: E402

_drop_contexts = run_many()

# Files that take minutes begin first, so that no process is left with one at the end.
_LONG = (
    "test_difftest", "test_everywhere", "test_nesting", "test_devices", "test_random", "test_scipy",
    "test_many_steps", "test_platforms",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in _LONG)


if "PYTEST_XDIST_WORKER" in os.environ:
    # Five messages to the main process for each test take longer than many a test: of set-up and
    # teardown, only what failed, skipped or took long is reported.
    def pytest_runtest_protocol(item, nextitem):
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed or report.duration > 0.5:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def pytest_collection_finish():
    gc.freeze()  # libraries, and tens of thousands of tests


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory():
    yield
    minijax.clear_caches()
    jax.clear_caches()
    _drop_contexts()
    gc.collect()


@pytest.fixture
def compiled_upstream():
    with compiling():
        yield
