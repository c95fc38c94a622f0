"""Many threads at once: mixed transforms, no error, and no buffer left behind."""

import gc
import threading
import time

import numpy as np

import minijax
import minijax.numpy as jnp

SECONDS = 12
THREADS = 8


def work(index, deadline, errors, counts):
    rng = np.random.RandomState(index)
    shared = SHARED
    try:
        while time.monotonic() < deadline:
            size = int(rng.randint(1, 6))
            x = jnp.asarray(rng.randn(size).astype(np.float32))
            value, gradient = shared["value_and_grad"](x)
            np.testing.assert_allclose(gradient, np.cos(x) * x + np.sin(x), rtol=1e-4, atol=1e-5)
            rows = shared["vmap"](jnp.stack([x, x]))
            np.testing.assert_allclose(rows[0], gradient, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(shared["scan"](x)[-1], np.sum(x), rtol=1e-4, atol=1e-5)
            fresh = minijax.jit(lambda a, k=size: a * k)
            np.testing.assert_allclose(fresh(x), x * size, rtol=1e-6)
            with minijax.enable_x64(index % 2 == 0):
                assert jnp.arange(2.0).dtype == (np.float64 if index % 2 == 0 else np.float32)
            counts[index] += 1
            del value
    except BaseException as error:
        errors.append(error)


def loss(x):
    return jnp.sum(jnp.sin(x) * x)


SHARED = {
    "value_and_grad": minijax.jit(minijax.value_and_grad(loss)),
    "vmap": minijax.jit(minijax.vmap(minijax.grad(loss))),
    "scan": minijax.jit(lambda x: minijax.lax.scan(lambda c, a: (c + a, c + a), 0.0, x)[1]),
}


def run_threads(seconds):
    errors, counts = [], [0] * THREADS
    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(target=work, args=(index, deadline, errors, counts))
        for index in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=seconds + 60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return counts


def live():
    gc.collect()
    return len(minijax.live_arrays())


def test_threads_leave_nothing_behind():
    run_threads(SECONDS / 3)
    before = live()
    counts = run_threads(SECONDS)
    assert min(counts) > 0, counts
    assert live() <= before + THREADS, (before, live())


def test_two_threads_compile_once():
    traces = []

    @minijax.jit
    def f(x):
        traces.append(1)
        time.sleep(0.2)
        return x + 1

    threads = [threading.Thread(target=f, args=(jnp.ones(3),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == 1
