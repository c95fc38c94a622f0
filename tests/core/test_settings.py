"""Settings: what counts as true, and context managers that are entered again."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import minijax

FLAGS = (
    "enable_x64", "debug_nans", "debug_infs", "log_compiles", "check_tracer_leaks", "enable_checks",
    "debug_key_reuse", "threefry_partitionable", "enable_custom_prng", "softmax_custom_jvp",
)  # fmt: skip
VALUES = {
    repr(value): value
    for value in (None, True, False, 0, 1, 2.5, "", (), (1,), np.True_, np.False_, np.int8(1), np.zeros(1))
}  # fmt: skip


def _within(m, name, value):
    with getattr(m, name)(value):
        return bool(getattr(m.config, f"jax_{name}"))


def _updated(m, name, value):
    option = f"jax_{name}"
    before = getattr(m.config, option)
    m.config.update(option, value)
    try:
        return bool(getattr(m.config, option))
    finally:
        m.config.update(option, before)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("set_to", [_within, _updated])
@pytest.mark.parametrize("name", FLAGS)
def test_truth(name, set_to, value):
    assert set_to(minijax, name, value) == set_to(jax, name, value) == bool(value)


def _dtype(m):
    return m.numpy.arange(3.0).dtype.name


def _again(m):
    context = m.enable_x64(True)
    found = []
    for _ in range(2):
        with context:
            found.append(_dtype(m))
        found.append(_dtype(m))
    return found


def _within_itself(m):
    context = m.enable_x64(True)
    with context:
        with m.enable_x64(False), context:
            inner = _dtype(m)
        return [inner, _dtype(m)]


def _decorator(m):
    function = m.enable_x64(True)(lambda: _dtype(m))
    return [function(), _dtype(m), function()]


def _threads(m):
    """One object, entered in four threads at once."""
    context, found, all_in = m.enable_x64(True), [], threading.Barrier(4)

    def run():
        with context:
            all_in.wait()
            inner = _dtype(m)
            all_in.wait()
        found.append((inner, _dtype(m)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [*found, _dtype(m)]


def _global_meanwhile(m):
    with m.default_matmul_precision("highest"):
        m.config.update("jax_enable_x64", True)
        found = [m.config.jax_enable_x64]
    found += [_dtype(m), m.config.jax_default_matmul_precision]
    m.config.update("jax_enable_x64", False)
    return [*found, _dtype(m)]


def _error_within(m):
    with pytest.raises(ZeroDivisionError), m.enable_x64(True):
        raise ZeroDivisionError
    return _dtype(m)


@pytest.mark.parametrize(
    "use", [_again, _within_itself, _decorator, _threads, _global_meanwhile, _error_within]
)
def test_one_context(use):
    """Each in a thread of its own: upstream's keeps a value set where a context is within itself."""
    with ThreadPoolExecutor(1) as ours, ThreadPoolExecutor(1) as theirs:
        assert ours.submit(use, minijax).result() == theirs.submit(use, jax).result()


@pytest.mark.parametrize("name", ["jax_foo", "foo", "jax_eager_pmap"])
def test_unknown_option(name):
    def told(m):
        assert getattr(m.config, name, 3) == 3
        with pytest.raises(AttributeError) as raised:
            getattr(m.config, name)
        return str(raised.value)

    assert told(minijax).startswith(told(jax))
