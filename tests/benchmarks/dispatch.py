"""Rows of cached calls: jitted functions, eager operations, un-jitted transforms."""

import functools

import jax
import numpy as np

import minijax
from tests.benchmarks.timing import compare, compare_quick

EAGER = {
    "x + y": lambda m, x, y: x + y,
    "x * 2.0": lambda m, x, y: x * 2.0,
    "x - y": lambda m, x, y: x - y,
    "x / y": lambda m, x, y: x / y,
    "x ** 2": lambda m, x, y: x**2,
    "-x": lambda m, x, y: -x,
    "x > y": lambda m, x, y: x > y,
    "x @ y": lambda m, x, y: x @ y,
    "x[0]": lambda m, x, y: x[0],
    "x[1:3]": lambda m, x, y: x[1:3],
    "x.at[0].set(1.)": lambda m, x, y: x.at[0].set(1.0),
    "x.T": lambda m, x, y: x.T,
    "x.sum()": lambda m, x, y: x.sum(),
    "x.mean(axis=0)": lambda m, x, y: x.mean(axis=0),
    "x.max()": lambda m, x, y: x.max(),
    "x.reshape(-1)": lambda m, x, y: x.reshape(-1),
    "x.astype(int32)": lambda m, x, y: x.astype(np.int32),
    "jnp.sin": lambda m, x, y: m.numpy.sin(x),
    "jnp.exp": lambda m, x, y: m.numpy.exp(x),
    "jnp.where": lambda m, x, y: m.numpy.where(x > 0, x, y),
    "jnp.maximum": lambda m, x, y: m.numpy.maximum(x, y),
    "jnp.dot": lambda m, x, y: m.numpy.dot(x, y),
    "jnp.einsum": lambda m, x, y: m.numpy.einsum("ij,jk->ik", x, y),
    "jnp.concatenate": lambda m, x, y: m.numpy.concatenate([x, y]),
    "jnp.stack": lambda m, x, y: m.numpy.stack([x, y]),
    "jnp.transpose": lambda m, x, y: m.numpy.transpose(x),
    "jnp.zeros": lambda m, x, y: m.numpy.zeros((4, 4)),
    "jnp.arange": lambda m, x, y: m.numpy.arange(4),
    "jnp.var": lambda m, x, y: m.numpy.var(x),
    "jnp.cumsum": lambda m, x, y: m.numpy.cumsum(x, axis=0),
    "jnp.sort": lambda m, x, y: m.numpy.sort(x),
    "jnp.argmax": lambda m, x, y: m.numpy.argmax(x),
    "jnp.clip": lambda m, x, y: m.numpy.clip(x, 0.0, 1.0),
    "jnp.take": lambda m, x, y: m.numpy.take(x, np.array([0, 1]), axis=0),
    "lax.add": lambda m, x, y: m.lax.add(x, y),
}

SMALL = {
    "grad": lambda m, f: m.grad(f),
    "value_and_grad": lambda m, f: m.value_and_grad(f),
    "vmap": lambda m, f: m.vmap(f),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (x,)),
    "vmap of grad": lambda m, f: m.vmap(m.grad(f)),
}


def arrays(m):
    x = m.numpy.asarray(np.linspace(0.1, 1.0, 16, dtype=np.float32).reshape(4, 4))
    return x, x * 0.5 + 0.1


def calls(make):
    """The same call for both libraries."""
    return make(minijax), make(jax)


def jitted_rows():
    def one(m):
        f, x = m.jit(lambda x: x + 1.0), arrays(m)[0]
        return lambda: f(x)

    def two(m):
        f, (x, y) = m.jit(lambda x, y: x + y), arrays(m)
        return lambda: f(x, y)

    def many(count, m):
        f = m.jit(lambda *xs: tuple(x + 1.0 for x in xs))
        xs = [arrays(m)[0] + i for i in range(count)]
        return lambda: f(*xs)

    def tree(m):
        x = arrays(m)[0]
        params = {f"layer{i}": {"w": x + i, "b": x[0]} for i in range(8)}
        f = m.jit(lambda p: m.tree_util.tree_map(lambda a: a * 2.0, p))
        return lambda: f(params)

    small = [
        ("one argument", *compare_quick(*calls(one))),
        ("two arguments", *compare_quick(*calls(two))),
    ]
    large = [
        (f"{n} arguments and outputs", *compare_quick(*calls(functools.partial(many, n))))
        for n in (10, 50)
    ]
    return small, [*large, ("a tree of 16 arrays", *compare_quick(*calls(tree)))]


def eager_rows():
    for name, op in EAGER.items():

        def make(m, op=op):
            x, y = arrays(m)
            return lambda: op(m, x, y)

        yield (name, *compare_quick(*calls(make)))


def small_transform_rows():
    for name, transform in SMALL.items():

        def make(m, transform=transform):
            f = transform(m, lambda x: m.numpy.sum(m.numpy.sin(x) * x + m.numpy.tanh(x)))
            x = arrays(m)[0]
            return lambda: f(x) if "vmap" in name else f(x[0])

        yield (name, *compare(*calls(make)))


def rows(table):
    small, large = jitted_rows()
    table.section("cached jit call, 1 or 2 arguments", small, 1.2)
    table.section("cached jit call, 10 or more, pytrees", large, 1.0)
    table.section("eager operations", eager_rows(), 0.5, worst=1.0)
    table.section("un-jitted grad, vmap, jvp", small_transform_rows(), 0.3)
