"""What tests written for JAX count and catch: traces, compilations, transfers, warnings.

`testing` shows these names as those of `jax._src.test_util`. A counting context gives a function;
it may be called within the context and after it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from absl.testing import absltest

from minijax import monitoring
from minijax.arrays import dispatch
from minijax.features.stages import stages as _stages
from minijax.runtime import buffers
from minijax.transforms.jit import PjitFunction

__all__ = [
    "JaxTestLoader", "assert_num_jit_and_pmap_compilations", "capture_stderr", "capture_stdout",
    "collect_lowered_jaxprs", "count_aot_jit_cpp_cache_miss",
    "count_compilation_after_persistent_cache_miss", "count_device_put",
    "count_jit_and_pmap_lowerings", "count_jit_compilation_cache_miss",
    "count_jit_tracing_cache_miss", "count_pjit_cpp_cache_miss", "count_primitive_compiles",
    "count_subjaxpr_to_hlo_conversion", "ignore_warning", "raise_on_warnings", "record_warnings",
    "register_event_duration_listener", "thread_unsafe_test", "thread_unsafe_test_class",
]  # fmt: skip

Count = Callable[[], int]


@contextlib.contextmanager
def register_event_duration_listener(callback: Callable) -> Iterator[None]:
    """`callback(event, duration, **kwargs)` is called for durations while the context lasts."""
    monitoring.register_event_duration_secs_listener(callback)
    try:
        yield
    finally:
        monitoring.unregister_event_duration_listener(callback)


@contextlib.contextmanager
def _durations(event: str) -> Iterator[Count]:
    """Count how often a duration of this name is recorded by this thread."""
    seen, thread = [0], threading.get_ident()

    def listen(name, duration, **kwargs):
        seen[0] += name == event and threading.get_ident() == thread

    with register_event_duration_listener(listen):
        yield lambda: seen[0]


@contextlib.contextmanager
def _wrapped(places: list[tuple[Any, str]], after: Callable[[tuple, Any], None]) -> Iterator[None]:
    """While the context lasts, `after(args, result)` is told of each call of functions of ours."""
    thread = threading.get_ident()
    saved = [(owner, name, getattr(owner, name)) for owner, name in places]

    def watched(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            if threading.get_ident() == thread:
                after(args, result)
            return result

        return call

    for owner, name, function in saved:
        setattr(owner, name, watched(function))
    try:
        yield
    finally:
        for owner, name, function in saved:
            setattr(owner, name, function)


@contextlib.contextmanager
def _calls(*places: tuple[Any, str]) -> Iterator[Count]:
    seen = [0]

    def after(args, result):
        seen[0] += 1

    with _wrapped(list(places), after):
        yield lambda: seen[0]


def count_jit_tracing_cache_miss() -> Any:
    """Count how often a jitted function is traced."""
    return _durations(monitoring.TRACED)


def count_jit_and_pmap_lowerings() -> Any:
    """Return how many modules are written."""
    return _durations(monitoring.LOWERED)


def count_jit_compilation_cache_miss() -> Any:
    """Return how many programs are compiled, or loaded from the cache on disk."""
    return _durations(monitoring.COMPILED)


def count_compilation_after_persistent_cache_miss() -> Any:
    """Count compilations; tests use no cache on disk, so each is one."""
    return _durations(monitoring.COMPILED)


def count_pjit_cpp_cache_miss() -> Any:
    """Return how many calls of jitted functions find no program ready: new ones, and those within
    traces.
    """
    return _calls((PjitFunction, "_compile"), (PjitFunction, "_bind"))


def count_primitive_compiles() -> Any:
    """Return how many programs of single primitives are compiled, for eager operations."""
    return _calls((dispatch, "_compile_primitive"))


def count_device_put() -> Any:
    """Return how many arrays are put on devices from the host."""
    return _calls((buffers, "put"))


@contextlib.contextmanager
def count_aot_jit_cpp_cache_miss() -> Iterator[Count]:
    """Return how many programs compiled ahead of time are called for the first time in the context."""
    seen: dict[int, Any] = {}

    def after(args, result):
        seen[id(args[0])] = args[0]

    with _wrapped([(_stages.Compiled, "__call__")], after):
        yield lambda: len(seen)


_LOWERINGS = [(dispatch, "lower_program"), (_stages, "lower_program")]


@contextlib.contextmanager
def count_subjaxpr_to_hlo_conversion(fun_name: str) -> Iterator[Count]:
    """Return how many functions of the modules written are of the function of this name."""
    seen = [0]
    pattern = re.compile(rf"func\.func private @{re.escape(fun_name)}(_\d+)?\(")

    def after(args, lowered):
        seen[0] += len(pattern.findall(lowered.text))

    with _wrapped(_LOWERINGS, after):
        yield lambda: seen[0]


@contextlib.contextmanager
def collect_lowered_jaxprs() -> Iterator[list[tuple[Any, Any]]]:
    """The pairs `(jaxpr, module)` that are lowered while the context lasts."""
    pairs: list[tuple[Any, Any]] = []

    def after(args, lowered):
        pairs.append((args[0], dispatch.parse(lowered.text)))

    with _wrapped(_LOWERINGS, after):
        yield pairs


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """AssertionError unless exactly this many modules are written while the context lasts."""
    with count_jit_and_pmap_lowerings() as count:
        yield
    if count() != times:
        raise AssertionError(f"Expected exactly {times} XLA compilations, but executed {count()}")


# Warnings and output.


@contextlib.contextmanager
def raise_on_warnings() -> Iterator[None]:
    """Every warning is an error while the context lasts."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Every warning goes into the list that the context gives."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


@contextlib.contextmanager
def ignore_warning(*, message: str | None = None, category: type = Warning) -> Iterator[None]:
    """Context or decorator: warnings of this category, which match `message`, are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message or "", category=category)
        yield


@contextlib.contextmanager
def _capture_output(fp: TextIO) -> Iterator[Callable[[], str]]:
    """Capture what is written to a file, by Python or native code; to be asked for after the
    context.
    """
    captured: list[str] = []

    def get_output() -> str:
        if not captured:
            raise ValueError("get_output() called while the context is active.")
        return captured[0]

    try:
        number = fp.fileno()
    except OSError as error:
        raise RuntimeError(
            f"{fp} is no file of the system's: its output is not captured"
        ) from error
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as file:
        saved = os.dup(number)
        fp.flush()
        os.dup2(file.fileno(), number)
        try:
            yield get_output
        finally:
            fp.flush()
            os.dup2(saved, number)
            os.close(saved)
            file.seek(0)
            captured.append(file.read())


def capture_stdout() -> Any:
    """Context that captures standard output; it gives a function to call after it."""
    return _capture_output(sys.stdout)


def capture_stderr() -> Any:
    """Context that captures standard error; it gives a function to call after it."""
    return _capture_output(sys.stderr)


# Tests run one after another here: what must not run beside others needs nothing more.


@contextlib.contextmanager
def thread_unsafe_test(condition: bool = True) -> Iterator[None]:
    """Context or decorator of a test that may not run beside others; here none do."""
    yield


def thread_unsafe_test_class(condition: bool = True) -> Callable[[type], type]:
    """Decorator of a class of such tests."""
    return lambda cls: cls


class JaxTestLoader(absltest.TestLoader):
    """The loader for `absltest.main(testLoader=jtu.JaxTestLoader())`: tests in order, one thread."""
