"""Rows of cached calls over eight CPU devices, in a process that has them.

Each call waits for its result: with many steps under way XLA's own rendezvous starves on few cores.
"""

import json
import os
import subprocess
import sys

_FLAG = "--xla_force_host_platform_device_count=8"


def calls(m, sharding):
    """What is timed, by its label, with one of the libraries."""
    import numpy as np

    spec, host = sharding.PartitionSpec, np.ones((64, 64), np.float32)
    mesh = sharding.Mesh(np.array(m.devices()), ("x",))
    rows, columns = (sharding.NamedSharding(mesh, s) for s in (spec("x"), spec(None, "x")))
    x = m.device_put(host, rows)
    one = m.device_put(host, m.devices()[0])
    double = m.jit(lambda a: a * 2)
    each = m.jit(lambda *arrays: [a + 1 for a in arrays])
    mapped = m.pmap(lambda a: a * 2)
    spread = mapped(host[:8])
    return {
        "jit, 1 array": lambda: double(x),
        "jit, 10 arrays": lambda: each(*[x] * 10),
        "pmap, array": lambda: mapped(spread),
        "pmap, from the host": lambda: mapped(host[:8]),
        "device_put, from the host": lambda: m.device_put(host, rows),
        "device_put, from one device": lambda: m.device_put(one, rows),
        "device_put, other parts": lambda: m.device_put(x, columns),
        "device_put, there already": lambda: m.device_put(x, rows),
        "x * 2 eagerly": lambda: x * 2,
    }


def waiting(call):
    def wait():
        out = call()
        (out[0] if isinstance(out, list) else out).block_until_ready()

    return wait


def rows(table, processes=9):
    """Each row as the process measured it whose ratio is the median: they differ by 10 %."""
    found = {}
    for _ in range(processes):
        run = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.devices"],
            env={**os.environ, "XLA_FLAGS": _FLAG}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for line in run.stdout.splitlines():
            if line.startswith("["):
                label, *times = json.loads(line)
                found.setdefault(label, []).append(times)
    typical = [
        (label, *sorted(times, key=lambda pair: pair[0] / pair[1])[processes // 2])
        for label, times in found.items()
    ]
    table.section("cached calls over 8 devices", typical, budget=1.05, worst=1.05)


def main():
    import jax

    import minijax
    import minijax.sharding
    from tests.benchmarks.timing import compare_typical

    ours, theirs = calls(minijax, minijax.sharding), calls(jax, jax.sharding)
    for label, call in ours.items():
        times = compare_typical(waiting(call), waiting(theirs[label]))
        print(json.dumps([label, *times]), flush=True)


if __name__ == "__main__":
    main()
