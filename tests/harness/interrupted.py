"""A session that Ctrl-C interrupts, run by `test_many_steps`: `python -m tests.harness.interrupted NAME`.

Sends itself SIGINT in the middle of one kind of work, and then works on.
"""

import os
import signal
import sys
import threading
import time

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

A = np.ones((150, 150), np.float32)


def slow(a):
    return jnp.tanh(a @ a * 0.01)


def scan():
    return minijax.jit(lambda a: lax.scan(lambda c, _: (slow(c), None), a, length=6000)[0])(A)


def eager_scan():
    return lax.scan(lambda c, _: (slow(c), None), A, length=6000)[0]


def fori_loop():
    return minijax.jit(lambda a: lax.fori_loop(0, 6000, lambda _, a: slow(a), a))(A)


def as_numpy():
    return np.asarray(fori_loop())


def tracing():
    def function(x):
        while True:
            x = x * 1.0001

    return minijax.jit(function)(1.0)


def tracing_nested():
    def body(c, x):
        while True:
            c = jnp.sin(c) * x

    def loss(x):
        return lax.scan(body, jnp.float32(1.0), x)[0].sum()

    return minijax.jit(minijax.vmap(minijax.grad(loss)))(jnp.ones((3, 4)))


def compiling():
    def function(x):
        for _ in range(150):
            x = jnp.sin(x) @ x
        return x

    return minijax.jit(function)(jnp.ones((3, 3)))


def over_devices():
    mesh = Mesh(np.array(minijax.devices()), ("i",))
    x = minijax.device_put(np.ones(16, np.float32), NamedSharding(mesh, P("i")))
    step = minijax.jit(
        minijax.shard_map(
            lambda x: x * 0.5 + 0.5 * lax.pmean(x, "i"),
            mesh=mesh,
            in_specs=P("i"),
            out_specs=P("i"),
        )
    )
    return step, x


def loop_over_devices():
    _, x = over_devices()
    body = lambda _, x: x * 0.5 + 0.5 * lax.pmean(x, "i")
    return minijax.jit(
        minijax.shard_map(
            lambda x: lax.fori_loop(0, 4000, body, x),
            mesh=x.sharding.mesh,
            in_specs=P("i"),
            out_specs=P("i"),
        )
    )(x)


def steps():
    step, x = over_devices()
    while True:
        x = step(x)


def steps_of_threads():
    over = []

    def run():
        step, x = over_devices()
        while not over:
            x = step(x)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        steps()
    finally:
        over.append(True)
        for thread in threads:
            thread.join()


WORK = [
    scan, eager_scan, fori_loop, as_numpy, tracing, tracing_nested, compiling, loop_over_devices,
    steps, steps_of_threads,
]  # fmt: skip


def main(name):
    work = globals()[name]
    step, x = over_devices()
    step(x).block_until_ready()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        minijax.block_until_ready(work())
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
    assert float(jnp.arange(5.0).sum()) == 10
    assert float(minijax.jit(lambda a: a * 3)(2.0)) == 6
    for _ in range(100):
        x = step(x)
    np.testing.assert_allclose(np.asarray(x), 1, rtol=1e-5)
    print("works")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    main(sys.argv[1])
