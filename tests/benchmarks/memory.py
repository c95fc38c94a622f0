"""Memory: 500,000 calls of each kind in each setting, buffers that remain, and peaks beside
upstream's.

`python -m tests.benchmarks memory`, by name only: it takes an hour. `MINIJAX_MEMORY_CALLS` gives another
number of calls.
"""

import gc
import importlib
import itertools
import os
import subprocess
import sys
import threading

CALLS = int(os.environ.get("MINIJAX_MEMORY_CALLS", 500_000))
MOST = 2 << 20  # bytes more after all of them
PEAK = 1.05  # of upstream's

DEPTHS, COLLECTOR, THREADS, UPSTREAM = (0, 40), ("on", "off"), (1, 4), ("no", "before", "after")
SETTINGS = list(itertools.product(DEPTHS, COLLECTOR, THREADS, UPSTREAM))


def kinds():
    """Calls made in a loop, by name."""
    import numpy as np

    import minijax
    from minijax import numpy as jnp

    x, scalar = jnp.ones(4), jnp.float32(3.0)
    double = minijax.jit(lambda a: a * 2)
    gradient = minijax.jit(minijax.grad(lambda p: (p * p).sum()))
    compiled = double.lower(x).compile()
    return {
        "cached call": lambda: double(x),
        "eager call": lambda: x + x,
        "training step": lambda: x - 0.1 * gradient(x),
        "compiled": lambda: compiled(x),
        "wait": lambda: double(x).block_until_ready(),
        "is_ready": lambda: x.is_ready(),
        "index": lambda: x[1],
        "np.asarray": lambda: np.asarray(double(x)),
        "float": lambda: float(double(scalar)),
        "DLPack": lambda: np.from_dlpack(double(x)),
    }


def at_depth(depth, run):
    """Run a function with so many more frames on the stack."""
    return at_depth(depth - 1, run) if depth else run()


def growth(call, calls, depth, collector, threads, held):
    """The increase of `held()` over so many calls, made by so many threads at a stack depth."""

    def loop(count):
        for _ in range(count):
            call()

    def start(count):
        workers = [
            threading.Thread(target=at_depth, args=(depth, lambda: loop(count // threads)))
            for _ in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    run = (lambda count: at_depth(depth, lambda: loop(count))) if threads == 1 else start
    was = gc.isenabled()
    (gc.enable if collector == "on" else gc.disable)()
    try:
        run(2000)
        before = held()
        run(calls)
        return held() - before
    finally:
        (gc.enable if was else gc.disable)()


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def child(upstream, calls, *chosen):
    """Print the growth of each kind of call in each setting, with upstream imported or not."""
    if upstream == "before":
        importlib.import_module("jax")
    found = kinds()
    if upstream == "after":
        importlib.import_module("jax")
    for depth, collector, threads in itertools.product(DEPTHS, COLLECTOR, THREADS):
        for name in chosen or found:
            more = growth(found[name], int(calls), depth, collector, threads, resident)
            mark = "  <-- over" if more > MOST else ""
            print(
                f"  {name:15s} depth {depth:2d}, collector {collector:3s}, {threads} threads, "
                f"upstream {upstream:6s} {more / 2**20:8.2f} MB{mark}",
                flush=True,
            )


def rows(table):
    from tests.cases.memory_peaks import PROGRAMS, peak_in_child

    print(f"\n== growth over {CALLS} calls")
    for upstream in UPSTREAM:
        subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.memory", upstream, str(CALLS)], check=True
        )
    print("\n== buffers that remain, collector off")
    flags = "--xla_force_host_platform_device_count=4"
    subprocess.run(
        [sys.executable, "-m", "tests.cases.memory_calls", "3"],
        check=True, env=dict(os.environ, XLA_FLAGS=flags), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    print("\n== peaks, MB")
    for name in PROGRAMS:
        ours, theirs = (peak_in_child(library, name) for library in ("minijax", "jax"))
        mark = "  <-- over" if ours > PEAK * theirs else ""
        print(f"  {name:20s} {ours:8.0f} {theirs:8.0f}  {ours / theirs:6.3f}{mark}", flush=True)


if __name__ == "__main__":
    child(*sys.argv[1:])
