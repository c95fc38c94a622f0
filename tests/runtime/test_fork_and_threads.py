"""Processes that fork, and tracers on other threads: errors, and no waiting for ever."""

import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import minijax

pytestmark = pytest.mark.both_ends

_AFTER_USE = """
import gc, os, signal, subprocess, sys, warnings
import numpy as np, minijax, minijax.numpy as jnp
x, f = jnp.arange(3.0), minijax.jit(lambda a: a * 2)
compiled = f.lower(x).compile()
f(x), x + 1, jnp.sum(x), jnp.sin(x), minijax.random.key(0)
uses = {
    "new": lambda: jnp.ones(3), "cached jit": lambda: f(x), "eager": lambda: x + 1,
    "library": lambda: jnp.sum(x), "unary": lambda: jnp.sin(x), "grad": lambda: minijax.grad(jnp.sum)(x),
    "another jit": lambda: minijax.jit(lambda a: a - 1)(x), "key": lambda: minijax.random.key(0),
    "devices": lambda: minijax.devices(), "device_put": lambda: minijax.device_put(np.ones(2)) + 1,
    "vmap": lambda: minijax.vmap(jnp.sin)(x), "index": lambda: x[0], "repr": lambda: repr(x[1:]),
}
for name, use in uses.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        gc.collect()
        try:
            use()
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 2)
        except BaseException as error:
            print(name, type(error), error, flush=True)
            os._exit(3)
        os._exit(4)
    status = os.waitpid(child, 0)[1]
    told = [w for w in caught if "os.fork() was called" in str(w.message)]
    print(name, status, [w.category.__name__ for w in told], flush=True)
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = np.asarray(x).tolist() == [0, 1, 2]
    os.execv(sys.executable, [sys.executable, "-c", f"raise SystemExit({int(not same)})"])
print("exec", os.waitpid(child, 0)[1], ["RuntimeWarning"], flush=True)
print("parent", int(f(x).sum()) - 6, ["RuntimeWarning"])
"""

_BEFORE_USE = """
import multiprocessing, warnings
import minijax, minijax.numpy as jnp
warnings.simplefilter("error")

def work(n):
    return float(minijax.jit(lambda a: a * 2)(jnp.ones(n)).sum())

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
    print(work(4))
"""


def _run(program):
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        timeout=500,
    )
    print(run.stderr[-4000:])  # where a child crashed, if one did
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    return run.stdout.splitlines()


def test_fork_after_use():
    lines = _run(_AFTER_USE)
    assert len(lines) == 15, lines
    wrong = [line for line in lines if not line.endswith(" 0 ['RuntimeWarning']")]
    assert not wrong, wrong


_WHILE_LAUNCHING = """
import gc, os, signal, threading, warnings
import numpy as np, minijax
from minijax.runtime import launches
from minijax.sharding import NamedSharding, PartitionSpec
warnings.simplefilter("ignore")
mesh = minijax.make_mesh((2,), ("i",))
x = minijax.device_put(np.arange(4.0), NamedSharding(mesh, PartitionSpec("i")))
f = minijax.jit(lambda a: a + a.sum())
compiled = f.lower(x).compile()
f(x), compiled(x)
held, free = threading.Event(), threading.Event()

def hold():
    (queue,) = launches._queues.values()
    with queue.lock:
        held.set()
        free.wait()

threading.Thread(target=hold).start()
held.wait()
for use in (lambda: f(x), lambda: compiled(x)):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        gc.collect()
        try:
            use()
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(3)
    print(os.waitpid(child, 0)[1], flush=True)
free.set()
print(np.asarray(compiled(x))[0])
"""


def test_fork_while_another_thread_launches(monkeypatch):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert _run(_WHILE_LAUNCHING) == ["0", "0", "6.0"]


def test_fork_before_use():
    assert _run(_BEFORE_USE) == ["[2.0, 4.0, 6.0]", "8.0"]


TRANSFORMS = {
    "jit": lambda m, f: m.jit(f)(1.0),
    "vmap": lambda m, f: m.vmap(f)(m.numpy.arange(3.0)),
    "grad": lambda m, f: m.grad(f)(1.0),
    "jvp": lambda m, f: m.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda m, f: m.linearize(f, 1.0),
    "scan": lambda m, f: m.lax.scan(lambda c, x: (c, f(x)), 0.0, m.numpy.arange(3.0)),
    "cond": lambda m, f: m.lax.cond(True, f, lambda x: x, 1.0),
    "checkpoint": lambda m, f: m.grad(m.checkpoint(f))(1.0),
    "make_jaxpr": lambda m, f: m.make_jaxpr(f)(1.0),
}
USES = {
    "jnp": lambda m, x: m.numpy.sin(x),
    "lax": lambda m, x: m.lax.add(x, x),
    "operator": lambda m, x: x * 2,
    "jit": lambda m, x: m.jit(lambda y: y * 2)(x),
    "closed over by jit": lambda m, x: m.jit(lambda y: y * x)(2.0),
    "closed over by vmap": lambda m, x: m.vmap(lambda y: y * x)(np.ones(2)).sum(),
    "closed over by grad": lambda m, x: m.grad(lambda y: y * x)(1.0),
    "cond": lambda m, x: m.lax.cond(x > 0, lambda: x, lambda: x * 2),
    "scan": lambda m, x: m.lax.scan(lambda c, _: (c * x, None), 1.0, None, length=2)[0],
    "where": lambda m, x: m.numpy.where(x > 0, x, 1.0),
    "stack": lambda m, x: m.numpy.stack([x, x])[0],
}


def _elsewhere(f):
    found = []

    def run():
        try:
            found.append(f())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it waits for ever"
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("use", USES)
def test_tracer_on_another_thread(transform, use):
    for m in (jax, minijax):
        with pytest.raises(m.errors.UnexpectedTracerError):
            TRANSFORMS[transform](m, lambda x, m=m: _elsewhere(lambda: USES[use](m, x)))


_STARTED = """
import concurrent.futures, multiprocessing, sys
import jax, jax.numpy as jnp

def doubled(x):
    return jax.numpy is sys.modules["minijax.numpy"], (x * 2).tolist()

def in_another(method, function, *args):
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *args).result()

if __name__ == "__main__":
    method, x = sys.argv[1], jnp.arange(3.0)
    print(in_another(method, doubled, x), in_another(method, in_another, "spawn", doubled, x))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_a_program_starts_have_the_stand_in_too(tmp_path, method):
    (tmp_path / "program.py").write_text(_STARTED)
    done = subprocess.run(
        [sys.executable, "-m", "minijax.jax", str(tmp_path / "program.py"), method],
        capture_output=True, text=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "(True, [0.0, 2.0, 4.0]) (True, [0.0, 2.0, 4.0])\n", done.stderr[-3000:]


_INSTALLED = """
import multiprocessing.spawn, sys

if __name__ == "__main__":
    import minijax.jax
    minijax.jax.install()

import jax

def is_ours(_):
    return jax.numpy is sys.modules["minijax.numpy"]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(is_ours, [None]))
"""


def test_multiprocessing_may_be_imported_before_the_stand_in_is_installed(tmp_path):
    (tmp_path / "program.py").write_text(_INSTALLED)
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.stdout == "[True]\n", done.stderr[-3000:]
