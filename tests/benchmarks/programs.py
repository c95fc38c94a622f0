"""Rows of tracing, lowering and growth, and whole models: trace, lower, compile, run."""

import gc
import time

import jax
import numpy as np

import minijax
from minijax.config import override
from tests.benchmarks.timing import compare

BOTH = (minijax, jax)


def chain(m, length):
    def f(x):
        for index in range(length // 4):
            x = m.numpy.sin(x) * 2.0 + x - index
        return x

    return f


def lax_chain(m, length):
    def f(x):
        for _ in range(length // 2):
            x = m.lax.mul(m.lax.sin(x), x)
        return x

    return f


def mixed(m):
    jnp = m.numpy

    def f(x):
        y = jnp.where(x > 0, x, jnp.exp(x)) @ x.T
        y = jnp.concatenate([y, y * 2], axis=0).reshape(-1)
        y = jnp.clip(y - jnp.mean(y), -1.0, 1.0) / jnp.std(y)
        return jnp.einsum("i,j->ij", y[:3], y[3:5]).sum(axis=1) + y[jnp.array([0, 1, 2])]

    return f


def mlp(m):
    jnp = m.numpy

    def loss(params, x):
        for w, b in params:
            x = jnp.maximum(x @ w + b, 0.0)
        return jnp.mean(x**2)

    params = [(np.ones((64, 64), np.float32) * 0.01, np.zeros(64, np.float32)) for _ in range(4)]
    return loss, (params, np.ones((32, 64), np.float32))


def convolution_net(m):
    def loss(params, x):
        for w in params:
            x = m.lax.conv_general_dilated(
                x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = m.numpy.maximum(x, 0.0)
        return m.numpy.mean(x**2)

    params = [np.ones((3, 3, a, b), np.float32) * 0.05 for a, b in ((3, 16), (16, 32), (32, 32))]
    return loss, (params, np.ones((8, 32, 32, 3), np.float32))


def lstm(m):
    jnp = m.numpy

    def sigmoid(x):
        return 1.0 / (1.0 + jnp.exp(-x))

    def loss(params, xs):
        w, u = params

        def step(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ w + h @ u, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((16, 64))
        return jnp.mean(m.lax.scan(step, (zeros, zeros), xs)[1] ** 2)

    params = (np.ones((32, 256), np.float32) * 0.01, np.ones((64, 256), np.float32) * 0.01)
    return loss, (params, np.ones((20, 16, 32), np.float32))


def transformer(m):
    jnp = m.numpy

    def norm(x):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5)

    def block(x, layer):
        heads, width = 4, x.shape[-1] // 4
        q, k, v = jnp.split(norm(x) @ layer["qkv"], 3, axis=-1)
        q, k, v = (a.reshape(*a.shape[:-1], heads, width) for a in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(width))
        scores = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        weights = scores / jnp.sum(scores, axis=-1, keepdims=True)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ layer["out"]
        return x + jnp.maximum(norm(x) @ layer["up"], 0.0) @ layer["down"]

    def loss(params, x):
        for layer in params:
            x = block(x, layer)
        return jnp.mean(x**2)

    shapes = {"qkv": (64, 192), "out": (64, 64), "up": (64, 256), "down": (256, 64)}
    rng = np.random.RandomState(0)
    params = [
        {name: rng.randn(*shape).astype(np.float32) * 0.05 for name, shape in shapes.items()}
        for _ in range(12)
    ]
    return loss, (params, rng.randn(4, 16, 64).astype(np.float32))


MODELS = {
    "MLP": mlp, "convolution net": convolution_net, "LSTM": lstm, "12-layer transformer": transformer,
}  # fmt: skip


def fresh(f):
    """A function of its own, so that no cache of traces knows it."""
    return lambda *args: f(*args)


def trace_rows():
    x = np.linspace(0.1, 1, 16, dtype=np.float32).reshape(4, 4)
    for label, make in (("lax, 200 operations", lambda m: lax_chain(m, 200)),
                        ("jnp, 200 operations", lambda m: chain(m, 200)),
                        ("jnp, mixed", mixed)):  # fmt: skip
        ours, theirs = ((lambda m=m, f=make(m): m.make_jaxpr(fresh(f))(x)) for m in BOTH)
        yield (label, *compare(ours, theirs))


def transform_trace_rows():
    x = np.linspace(0.1, 1, 4, dtype=np.float32)
    stacked = np.stack([x, x])

    def forms(m):
        f = chain(m, 100)
        total = lambda x: m.numpy.sum(f(x))
        return {
            "grad": (m.grad(total), x),
            "vmap": (m.vmap(f), stacked),
            "jvp": (lambda x: m.jvp(f, (x,), (x,)), x),
            "vmap of grad": (m.vmap(m.grad(total)), stacked),
            "grad of grad": (m.grad(lambda x: m.numpy.sum(m.grad(total)(x))), x),
            "jvp of vmap": (lambda x: m.jvp(m.vmap(f), (x,), (x,)), stacked),
        }

    ours, theirs = forms(minijax), forms(jax)
    for label in ours:
        calls = [
            (lambda m=m, f=found[label][0], a=found[label][1]: m.make_jaxpr(fresh(f))(a))
            for m, found in zip(BOTH, (ours, theirs), strict=True)
        ]
        yield (label, *compare(*calls))


def lowering_rows():
    x = np.ones((4, 4), np.float32)
    for length in (100, 1000):
        times = ([], [])
        for _ in range(7):
            for m, found in zip(BOTH, times, strict=True):
                traced = m.jit(chain(m, length)).trace(x)  # anew: both keep what they lowered
                found.append(timed_once(traced.lower)[1])
        yield (f"jnp chain of {length}", *map(min, times))


def timed_once(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def growth():
    print("\n== growth: cost per operation, microseconds (trace, lower)")
    x = np.ones(4, np.float32)
    gc.collect()
    gc.freeze()  # what earlier rows left is not to be walked again and again
    for length in (500, 5_000, 50_000):
        cells = []
        for m in BOTH:
            m.clear_caches()
            traced, trace_time = timed_once(lambda m=m: m.jit(lax_chain(m, length)).trace(x))
            _, lower_time = timed_once(traced.lower)
            cells.append(f"{trace_time / length * 1e6:7.2f} {lower_time / length * 1e6:7.2f}")
        print(f"  {length:6d} operations   minijax {cells[0]}   upstream {cells[1]}")
    for fold in (4, 8, 12, 16, 20):
        times = []
        for m in BOTH:
            if m is jax and fold > 12:
                times.append("      -")
                continue
            f = m.numpy.sin
            for _ in range(fold):
                f = m.grad(f)
            times.append(f"{timed_once(lambda m=m, f=f: m.make_jaxpr(f)(1.0))[1] * 1e3:7.1f}")
        print(f"  {fold:2d}-fold grad of sin   minijax {times[0]} ms   upstream {times[1]} ms")


def stages_of(m, make):
    """The seconds that each stage of a model's training step takes, and the compiled step."""
    loss, args = make(m)
    args = m.tree_util.tree_map(m.numpy.asarray, args)
    m.clear_caches()
    traced, t_trace = timed_once(lambda: m.jit(m.value_and_grad(loss)).trace(*args))
    lowered, t_lower = timed_once(traced.lower)
    with override("enable_compilation_cache", False):
        program, t_compile = timed_once(lowered.compile)
    return (t_trace, t_lower, t_compile), (program, args)


def model_rows(table, rounds=3):
    stages = {"trace": [], "lower": [], "compile": [], "run": []}
    costs = []
    for name, make in MODELS.items():
        times, compiled = ([], []), [None, None]
        for _ in range(rounds):
            for index, m in enumerate(BOTH):
                found, compiled[index] = stages_of(m, make)
                times[index].append(found)
        steps = [tuple(map(min, zip(*found, strict=True))) for found in times]
        for index, stage in enumerate(("trace", "lower", "compile")):
            stages[stage].append((name, steps[0][index], steps[1][index]))
        calls = [
            (lambda p=p, a=a, m=m: m.block_until_ready(p(*a)))
            for (p, a), m in zip(compiled, BOTH, strict=True)
        ]
        stages["run"].append((name, *compare(*calls, seconds=0.2)))
        costs.append((name, *(analysis(program) for program, _ in compiled)))
    budgets = {"trace": None, "lower": None, "compile": 1.0, "run": 1.0}
    for stage, found in stages.items():
        table.section(f"models: {stage}", found, budgets[stage])
    for what in ("flops", "bytes", "temporary memory"):
        found = [
            (name, max(ours[what], 1.0) * 1e-6, max(theirs[what], 1.0) * 1e-6)
            for name, ours, theirs in costs
        ]
        table.section(f"models: {what} (shown as if microseconds)", found, 1.0)


def analysis(program):
    cost = program.cost_analysis()
    memory = program.memory_analysis()
    return {
        "flops": cost.get("flops", 0.0),
        "bytes": cost.get("bytes accessed", 0.0),
        "temporary memory": float(memory.temp_size_in_bytes),
    }


def rows(table):
    table.section("tracing", trace_rows(), 0.35)
    table.section("jaxpr to StableHLO", lowering_rows(), 0.4)
    table.section("tracing grad, vmap and nestings", transform_trace_rows(), 0.3)
    model_rows(table)
    growth()
