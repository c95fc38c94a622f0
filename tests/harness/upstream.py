"""How upstream and XLA are run where thousands of small programs are: in tests, and in processes they start."""

import contextlib
import functools
import gc
import importlib
import os
import threading


def devices(count):
    """XLA's flags of this process and so many devices: the variables of a process that has them."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    return {"XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}


def run_many():
    """Make thousands of small programs fast, in this process; return a function that frees memory."""
    collect_rarely()
    keep_programs()
    keep_tracebacks()
    return share_contexts()


def collect_rarely():
    """Tracing allocates much that is not garbage: collections took a tenth of the time."""
    gc.set_threshold(20_000, 20, 20)


def share_contexts():
    """Let upstream lower into one MLIR context in each thread; return a function that drops them.

    Upstream before 0.11 makes a context for each module, in a quarter of the time that it takes to lower,
    compile and run a small program (21 ms of a 2 GHz core; 16 with one context), and much of its memory
    stays: 3.3 GB after 2,200 programs, 0.8 with one context.
    """
    lowering = importlib.import_module("jax._src.interpreters.mlir")
    make = lowering.make_ir_context
    contexts = functools.cache(lambda thread: make())
    lowering.make_ir_context = lambda: contexts(threading.get_ident())
    return contexts.cache_clear


def keep_tracebacks():
    """Let upstream leave the tracebacks of its errors as they are; tens of thousands are expected.

    To shorten one takes 8 ms. With that off, each function that an error passes still reads the
    stack, in 0.6 ms, and under some transforms asks the file system of each frame's file, in 46 ms.
    """
    jax = importlib.import_module("jax")
    jax.config.update("jax_traceback_filtering", "off")
    frames = importlib.import_module("jax._src.traceback_util")
    is_shortened = frames._is_under_reraiser
    frames._is_under_reraiser = lambda error: (
        jax.config.jax_traceback_filtering == "off" or is_shortened(error)
    )
    frames._path_starts_with = functools.cache(frames._path_starts_with)


def keep_programs():
    """Let upstream keep compiled programs on disk as we do: most are the same in many files of tests.

    For every test, and for processes that compile the same program for one function after another.
    """
    jax = importlib.import_module("jax")
    folder = importlib.import_module("minijax.runtime.cache").default_folder()
    jax.config.update("jax_compilation_cache_dir", str(folder / "upstream-in-tests"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@contextlib.contextmanager
def compiling():
    """Upstream compiles its programs: what it loads from its disk cache cannot be serialized again."""
    jax = importlib.import_module("jax")
    cache = importlib.import_module("jax.experimental.compilation_cache.compilation_cache")
    jax.config.update("jax_enable_compilation_cache", False)
    cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        cache.reset_cache()
