"""Programs on large arrays, for their peaks of memory: `python -m tests.cases.memory_peaks LIBRARY NAME`.

Prints the greatest resident size of the process, in MB, from before a first call to after a second one.
"""

import contextlib
import importlib
import subprocess
import sys

import numpy as np

SIZE = 24 * 1024 * 1024  # 96 MB of float32
SIDE = 1024


def _mlp(j, weights, x):
    for w in weights:
        x = j.numpy.tanh(x @ w)
    return (x**2).mean()


def _weights(j):
    return [j.numpy.ones((SIDE, SIDE)) for _ in range(4)], j.numpy.ones((4 * SIDE, SIDE))


def _donation(j):
    step, state = j.jit(lambda x: x + 1, donate_argnums=0), [j.numpy.ones(SIZE)]

    def run():
        state[0] = step(state[0])
        return state[0]

    return run


def _jacfwd(j):
    a, x = j.numpy.ones((1500, 1500)), j.numpy.ones(1500)
    return lambda: j.jacfwd(lambda x: j.numpy.sin(a @ x) * x)(x)


def _of(make, apply):
    """A program that applies a function to an argument made beforehand."""

    def program(j):
        x = make(j)
        return lambda: apply(j, x)

    return program


def _large(j):
    return j.numpy.ones(SIZE)


def _wide(j):
    return np.ones(SIZE, np.float64)


def _jitted(j):
    f = j.jit(lambda x: x.at[3].set(1.0))
    x = _large(j)
    return lambda: f(x)


PROGRAMS = {
    "jacfwd": _jacfwd,
    "hessian": _of(
        lambda j: j.numpy.ones(1000),
        lambda j, x: j.hessian(lambda y: (j.numpy.sin(y) * y**2).sum() ** 2)(x),
    ),
    "at set": _of(_large, lambda j, x: x.at[3].set(1.0)),
    "at set, jitted": _jitted,
    "asarray of float64": _of(_wide, lambda j, x: j.numpy.asarray(x)),
    "jit of float64": _of(_wide, lambda j, x: j.jit(lambda y: y.sum())(x)),
    "sum of float64": _of(_wide, lambda j, x: j.numpy.sum(x)),
    "np.asarray": _of(_large, lambda j, x: np.asarray(x)),
    "device_put": _of(lambda j: np.ones(SIZE, np.float32), lambda j, x: j.device_put(x)),
    "concatenate": _of(_large, lambda j, x: j.numpy.concatenate([x, x])),
    "sort": _of(lambda j: j.numpy.ones(SIZE // 4), lambda j, x: j.numpy.sort(x)),
    "matmul": _of(lambda j: j.numpy.ones((3000, 3000)), lambda j, x: x @ x),
    "grad of an MLP": _of(_weights, lambda j, w: j.grad(lambda p: _mlp(j, p, w[1]))(w[0])),
    "scan": _of(
        lambda j: j.numpy.ones((200, 100_000)),
        lambda j, x: j.lax.scan(lambda c, a: (c + a, c * a), x[0], x),
    ),
    "donation": _donation,
    "cumsum": _of(_large, lambda j, x: j.numpy.cumsum(x)),
    "fft": _of(lambda j: j.numpy.ones(2**22), lambda j, x: j.numpy.fft.fft(x)),
    "take": _of(_large, lambda j, x: j.numpy.take(x, j.numpy.arange(SIZE // 4))),
    "where": _of(_large, lambda j, x: j.numpy.where(x > 0, x, 2.0)),
}


def peak_in_child(library, name):
    """The peak of a program in a process of its own, in MB."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.memory_peaks", library, name],
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


def _status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def main(library, name):
    j = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    run = PROGRAMS[name](j)
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")  # the peak from here on
    for _ in range(2):
        j.block_until_ready(run())
    print(_status("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])
