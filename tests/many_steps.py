"""Long loops over several CPU devices, none of which may hang: `test_many_steps` runs a part of
them.

    python -m tests.many_steps STEPS [DEVICES ...] [--threads N ...] [--runs N] [--kinds NAME ...]
                               [--upstream]

Each count of devices and of threads is a process of its own, stopped when a kind of loop makes no
progress for `PATIENCE` seconds. Prints a line for each kind, with its time; the last line counts
those that hung or gave a wrong value.
"""

import argparse
import faulthandler
import importlib
import os
import subprocess
import sys
import threading
import time

from tests.harness import upstream

PATIENCE = 30
KINDS = {}


def kind(make):
    """Register `make(setting)`, which gives a first value and a step that any value can take."""
    KINDS[make.__name__] = make
    return make


class Setting:
    """A library, and its names for what the loops use."""

    def __init__(self, library, count):
        import numpy

        m = importlib.import_module(library)
        self.m, self.lax, self.np = m, m.lax, importlib.import_module(f"{library}.numpy")
        sharding = importlib.import_module(f"{library}.sharding")
        self.P, self.Mesh, self.Named = (
            sharding.PartitionSpec,
            sharding.Mesh,
            sharding.NamedSharding,
        )
        self.numpy, self.count = numpy, count
        self.devices = m.devices()[:count]
        self.mesh = self.mesh_of(self.devices)
        self.start = self.on(self.mesh)

    def mesh_of(self, devices):
        return self.Mesh(self.numpy.array(devices), ("i",))

    def on(self, mesh):
        x = self.numpy.arange(8.0 * mesh.size * mesh.size, dtype=self.numpy.float32)
        return self.m.device_put(x.reshape(-1, 8), self.Named(mesh, self.P("i")))

    def mapped(self, body, mesh=None):
        spec = self.P("i")
        return self.m.jit(
            self.m.shard_map(body, mesh=mesh or self.mesh, in_specs=spec, out_specs=spec)
        )


def simple(name, body):
    """A loop of one collective over all devices, which keeps the shape."""

    def make(s):
        step = s.mapped(lambda x: body(s, x) * 0.01 + 1)
        return s.start, lambda x: step(x) * 0.5

    KINDS[name] = make


def halves(s):
    whole = list(range(s.count))
    return [whole[: s.count // 2], whole[s.count // 2 :]]


simple("psum", lambda s, x: x + s.lax.psum(2 * x, "i"))
simple("pmax", lambda s, x: x + s.lax.pmax(x, "i"))
simple("pmean", lambda s, x: x + s.lax.pmean(x, "i"))
simple("all_gather", lambda s, x: x + s.lax.all_gather(x, "i", tiled=True).sum(0))
simple(
    "psum_scatter",
    lambda s, x: x + s.lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True).sum(0),
)
simple("all_to_all", lambda s, x: s.lax.all_to_all(x, "i", 0, 0, tiled=True))
simple(
    "ppermute",
    lambda s, x: s.lax.ppermute(x, "i", [(i, (i + 1) % s.count) for i in range(s.count)]),
)
simple(
    "all_to_all_and_permutation",
    lambda s, x: s.lax.pshuffle(
        s.lax.all_to_all(x, "i", 0, 0, tiled=True), "i", range(s.count)[::-1]
    ),
)
simple("several", lambda s, x: s.lax.psum(x, "i") + s.lax.pmax(s.lax.pmin(x, "i") * x, "i"))
simple(
    "repeated", lambda s, x: s.lax.fori_loop(0, 3, lambda _, y: y + 0.1 * s.lax.pmean(y, "i"), x)
)


@kind
def groups(s):
    psum = s.m.pmap(
        lambda x: s.lax.psum(x, "i", axis_index_groups=halves(s)) * 0.01 + 1, "i", devices=s.devices
    )
    return psum(s.numpy.ones((s.count, 8), s.numpy.float32)), psum


@kind
def pmap(s):
    step = s.m.pmap(lambda x: x + s.lax.pmean(x, "i") * -0.5, "i", devices=s.devices)
    return step(s.numpy.ones((s.count, 8), s.numpy.float32)), step


@kind
def inserted(s):
    """Collectives that XLA inserts for shardings; the argument is donated."""
    where = s.Named(s.mesh, s.P("i"))
    step = s.m.jit(
        lambda x: (x - x.mean(0)) * 0.5 + x[::-1] * 0.1, out_shardings=where, donate_argnums=0
    )
    return step(s.start + 0), step


@kind
def resharded(s):
    across = s.Named(s.mesh, s.P(None, "i"))
    along = s.Named(s.mesh, s.P("i"))
    x = s.m.device_put(s.numpy.ones((64, 2048), s.numpy.float32), along)
    return x, lambda x: s.m.device_put(s.m.device_put(x, across), along) * 0.5


@kind
def submeshes(s):
    """Two disjoint meshes and one that overlaps both, in turn."""
    half = s.count // 2
    parts = [s.devices[:half], s.devices[half:], s.devices[half // 2 : half // 2 + half], s.devices]
    meshes = [s.mesh_of(part) for part in parts]
    steps = [s.mapped(lambda x: x * 0.5 + s.lax.pmean(x, "i"), mesh) for mesh in meshes]
    start = tuple(map(s.on, meshes))
    return start, lambda xs: tuple(step(x) * 0.5 for step, x in zip(steps, xs, strict=True))


@kind
def mixed(s):
    """Collectives between programs on one device, whose results they take, and callbacks."""
    called = s.mapped(
        lambda x: s.lax.pmean(s.m.pure_callback(lambda v: v * s.numpy.float32(0.5), x, x), "i") + 1
    )
    along = s.Named(s.mesh, s.P("i"))
    one = s.m.jit(lambda x: s.np.tanh(x @ x.T @ x))

    def step(x):
        x = called(x)
        parts = [shard.data for shard in x.addressable_shards]
        for _ in range(3):
            parts[0] = one(parts[0])
        return s.m.make_array_from_single_device_arrays(x.shape, along, parts)

    return s.start, step


@kind
def backlog(s):
    """As many programs on a device as XLA lets it have, which wait for a collective before one."""

    def slow(x):
        a = s.np.ones((60, 60), x.dtype) + x[0, 0]
        a = s.lax.fori_loop(0, 30, lambda _, a: s.np.tanh(a @ a * 0.01), a)
        return s.lax.pmean(x, "i") * 0.5 + a[0, 0]

    first, last = s.mapped(slow), s.mapped(lambda x: x * 0.5 + s.lax.pmean(x, "i"))
    one = s.m.jit(lambda x: s.np.tanh(x) + 1)

    def step(x):
        x = first(x)
        part = x.addressable_shards[0].data
        for _ in range(31):
            part = one(part)
        return last(x)

    return s.start, step


def loop(start, step, steps, alive):
    value = start
    for _ in range(steps):
        value = step(value)
        alive()
    return value


def leaves(value):
    return value if isinstance(value, tuple) else (value,)


def child(library, count, threads, steps, kinds):
    """Run the kinds of loops one after the other in this process."""
    s = Setting(library, count)
    wrong = 0
    for name in kinds or KINDS:
        start, step = KINDS[name](s)
        if name == "inserted":  # the start is donated: each thread has its own
            first = s.numpy.asarray(start)
            begin = lambda: s.m.device_put(first, s.Named(s.mesh, s.P("i")))
        else:
            begin = lambda: start

        def alive():
            faulthandler.dump_traceback_later(PATIENCE, exit=True)

        alive()
        expected = begin()
        few = min(steps, 40)
        for _ in range(few):  # the loops converge: their values stay what waiting steps give
            expected = step(expected)
            for x in leaves(expected):
                x.block_until_ready()
        found = [None] * threads
        rest = max(steps // threads, few)

        def run(number, begin=begin, step=step, rest=rest, found=found):
            value = loop(begin(), step, few, alive)
            checked = [s.numpy.asarray(x) for x in leaves(value)]
            value = loop(value, step, rest - few, alive)
            for x in leaves(value):
                x.block_until_ready()
            found[number] = checked

        began = time.perf_counter()
        workers = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        took = time.perf_counter() - began
        same = all(
            value is not None
            and all(
                s.numpy.allclose(a, s.numpy.asarray(b), rtol=1e-5)
                for a, b in zip(value, leaves(expected), strict=True)
            )
            for value in found
        )
        wrong += not same
        print(
            f"{library} {count} devices {threads} threads {name}: {took:.2f} s for {rest * threads}"
            f" steps{'' if same else ': WRONG'}",
            flush=True,
        )
    faulthandler.cancel_dump_traceback_later()
    return wrong


def run_child(library, count, threads, steps, kinds, **options):
    """A process that runs the loops; its status is not 0 if one hung."""
    command = [sys.executable, "-m", "tests.many_steps", str(steps), str(count), "--child"]
    command += ["--threads", str(threads), *(["--kinds", *kinds] if kinds else [])]
    command += ["--upstream"] if library == "jax" else []
    return subprocess.run(
        command, text=True, check=False, **options,
        env=os.environ | upstream.devices(count) | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int)
    parser.add_argument("devices", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=[])
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--child", action="store_true")
    asked = parser.parse_args()
    library = "jax" if asked.upstream else "minijax"
    if asked.child:
        sys.exit(child(library, asked.devices[0], asked.threads[0], asked.steps, asked.kinds))
    failed = 0
    for _ in range(asked.runs):
        for count in asked.devices:
            for threads in asked.threads:
                done = run_child(library, count, threads, asked.steps, asked.kinds)
                if done.returncode:
                    failed += 1
                    print(f"{library} {count} devices {threads} threads: FAILED", flush=True)
    print(f"{failed} processes failed")


if __name__ == "__main__":
    main()
