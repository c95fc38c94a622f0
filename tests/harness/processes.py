"""One process of several, in tests and by hand: `python -m tests.harness.processes NAMES COUNT NUMBER
PORT`.

Each program runs in every process at once and raises where something is not as it should be.
"""

import os
import sys
import tempfile
import time

from tests.harness import upstream

os.environ |= upstream.devices(2)

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.experimental import multihost_utils
from minijax.runtime import distributed
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

PROGRAMS = {}


def _program(function):
    PROGRAMS[function.__name__] = function
    return function


def mesh():
    return Mesh(np.array(minijax.devices()), ("d",))


@_program
def training(count, number):
    """Data-parallel training gives what one process computes with all of the data."""
    rng = np.random.RandomState(0)
    data = rng.randn(4 * count, 3).astype(np.float32)
    target = data @ np.array([1.0, -2.0, 0.5], np.float32)
    whole = NamedSharding(mesh(), P("d"))
    mine = slice(4 * number, 4 * number + 4)
    x = minijax.make_array_from_process_local_data(whole, data[mine])
    y = minijax.make_array_from_process_local_data(whole, target[mine])

    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    step = minijax.jit(lambda w, x, y: w - 0.1 * minijax.grad(loss)(w, x, y))
    w, alone = jnp.zeros(3), np.zeros(3, np.float32)
    for _ in range(5):
        w = step(w, x, y)
        alone = alone - 0.1 * 2 / len(data) * data.T @ (data @ alone - target)
    np.testing.assert_allclose(np.asarray(w), alone, rtol=1e-4)


@_program
def resharding(count, number):
    size = 2 * count
    x = minijax.make_array_from_callback(
        (size, size),
        NamedSharding(mesh(), P("d")),
        lambda index: np.arange(size * size, dtype=np.float32).reshape(size, size)[index],
    )
    y = minijax.jit(lambda a: a, out_shardings=NamedSharding(mesh(), P(None, "d")))(x)
    for shard in y.addressable_shards:
        whole = np.arange(size * size, dtype=np.float32).reshape(size, size)
        np.testing.assert_array_equal(np.asarray(shard.data), whole[shard.index])
    gathered = multihost_utils.process_allgather(y, tiled=True)
    np.testing.assert_array_equal(gathered, whole)
    shards = minijax.device_put(np.ones(3), NamedSharding(mesh(), P())).global_shards
    assert [shard.replica_id for shard in shards] == list(range(size))  # of all processes
    mine = [shard.data is not None for shard in shards]
    assert mine == [shard.device.process_index == number for shard in shards]


@_program
def collectives(count, number):
    size = 2 * count
    x = np.arange(float(size * size), dtype=np.float32).reshape(size, size)
    where = mesh()

    def run(f, out=P("d")):
        mapped = minijax.shard_map(f, mesh=where, in_specs=P("d"), out_specs=out)
        whole = minijax.make_array_from_callback(
            x.shape, NamedSharding(where, P("d")), lambda i: x[i]
        )
        return multihost_utils.process_allgather(minijax.jit(mapped)(whole), tiled=True)

    lax = minijax.lax
    np.testing.assert_allclose(run(lambda a: lax.psum(a, "d"), P()), x.sum(0, keepdims=True))
    np.testing.assert_allclose(run(lambda a: lax.pmax(a, "d"), P()), x.max(0, keepdims=True))
    np.testing.assert_allclose(run(lambda a: lax.all_gather(a, "d", tiled=True))[:size], x)
    ring = [(i, (i + 1) % size) for i in range(size)]
    np.testing.assert_allclose(run(lambda a: lax.ppermute(a, "d", ring)), np.roll(x, 1, 0))
    np.testing.assert_allclose(run(lambda a: lax.all_to_all(a, "d", 1, 1, tiled=True)), x.T)
    parts = run(lambda a: lax.psum_scatter(a, "d", scatter_dimension=1, tiled=True))
    np.testing.assert_allclose(parts[:, 0], x.sum(0))


@_program
def helpers(count, number):
    multihost_utils.sync_global_devices("start")
    assert minijax.process_count() == count and minijax.process_index() == number
    assert len(minijax.devices()) == 2 * count and len(minijax.local_devices()) == 2
    np.testing.assert_array_equal(
        multihost_utils.process_allgather(np.int32(number)), np.arange(count)
    )
    np.testing.assert_array_equal(
        multihost_utils.broadcast_one_to_all(np.arange(3) + number), np.arange(3)
    )
    x = minijax.make_array_from_process_local_data(NamedSharding(mesh(), P("d")), np.ones(2))
    with pytest.raises(RuntimeError, match="process_allgather"):
        np.asarray(x)


@_program
def checkpoint(count, number):
    """Each process keeps the parts that it has, and a later run goes on from them."""
    whole = NamedSharding(mesh(), P("d"))
    step = minijax.jit(lambda a: a * 2 + a.sum(), out_shardings=whole)
    start = np.arange(4.0 * count, dtype=np.float32)
    mine = slice(4 * number, 4 * number + 4)
    x = step(minijax.make_array_from_process_local_data(whole, start[mine]))
    with tempfile.TemporaryDirectory() as folder:
        parts = sorted(x.addressable_shards, key=lambda shard: shard.index[0].start)
        np.save(f"{folder}/{number}.npy", np.concatenate([shard.data for shard in parts]))
        kept = np.load(f"{folder}/{number}.npy")
    again = minijax.make_array_from_process_local_data(whole, kept)
    once = start * 2 + start.sum()
    np.testing.assert_allclose(
        multihost_utils.process_allgather(step(again), tiled=True), once * 2 + once.sum()
    )


@_program
def killed(count, number):
    """The last process ends without a word in the midst of a step; the others must end too."""
    whole = NamedSharding(mesh(), P("d"))
    x = minijax.make_array_from_process_local_data(whole, np.ones(2, np.float32))
    step = minijax.jit(lambda a: a + a.sum(), out_shardings=whole)
    for _ in range(3):
        x = step(x).block_until_ready()
    if number == count - 1:
        os._exit(17)
    step(x).block_until_ready()
    multihost_utils.sync_global_devices("never")


@_program
def mismatched(count, number):
    """Processes that run different programs are told, instead of waiting for each other."""
    x = minijax.make_array_from_process_local_data(NamedSharding(mesh(), P("d")), np.ones(2))
    multihost_utils.sync_global_devices("start")
    if number:
        distributed.state.client.wait_at_barrier("first", 30_000)
        with pytest.raises(RuntimeError, match="mismatched programs: process 1 compiles 'other'"):
            minijax.jit(other)(x)
    else:
        minijax.jit(one).lower(x).compile()
        distributed.state.client.wait_at_barrier("first", 30_000)


@_program
def many_steps(count, number):
    """Steps that nobody waits for take their turn in every process, whatever runs between them."""
    whole = NamedSharding(mesh(), P("d"))
    x = minijax.device_put(np.ones(8 * count, np.float32), whole)
    mean = minijax.jit(
        minijax.shard_map(
            lambda x: 0.5 * x + 0.5 * minijax.lax.pmean(x, "d"),
            mesh=mesh(), in_specs=P("d"), out_specs=P("d"),
        )
    )  # fmt: skip
    turned = minijax.jit(lambda x: x[::-1] + 0, out_shardings=whole)
    alone = minijax.jit(lambda x: jnp.tanh(x @ x))
    own = jnp.ones((50, 50))
    for _ in range(int(os.environ.get("MINIJAX_MANY_STEPS", "160"))):
        x = turned(mean(x))
        if number:
            own = alone(own)
    np.testing.assert_allclose(x.addressable_shards[0].data, 1, rtol=1e-5)


def one(x):
    return (x * 2).sum()


def other(x):
    return (x * 3).sum()


@_program
def late(count, number):
    """The last process comes when the first no longer waits: it is not reached."""


def main(name, count, number, port):
    options = {"initialization_timeout": 60}
    if name == "late":  # the others have given up by then
        options["initialization_timeout"] = 3
        time.sleep(12 * number)
    if name == "killed":
        options["heartbeat_timeout_seconds"] = 10
    minijax.distributed.initialize(f"127.0.0.1:{port}", count, number, **options)
    for program in name.split(","):
        print(program, flush=True)
        PROGRAMS[program](count, number)
    minijax.distributed.shutdown()
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
