"""Donated arguments in every kind of memory and layout: run by `test_donation` in child
processes.
"""

import importlib
import warnings

import numpy as np

from tests.harness import survivors

X = np.arange(16, dtype=np.float32).reshape(8, 2)
BIG = np.ones((64, 64), np.float32)
PROGRAMS = {}


def shown(m, result):
    """The values of results, and where they lie."""
    found = []
    for leaf in m.tree_util.tree_leaves(result):
        if not hasattr(leaf, "sharding"):
            found.append(str(leaf))
            continue
        value = m.random.key_data(leaf) if "key" in str(leaf.dtype) else leaf
        value = np.asarray(value).astype(np.float64)
        spec = getattr(leaf.sharding, "spec", None)
        found.append([value.tolist(), str(leaf.dtype), leaf.sharding.memory_kind, str(spec)])
    return found


def program(name, f):
    def run(m):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = shown(m, f(m))
        said = [str(w.message).split(".")[0].replace("<host>", "") for w in caught]
        told = [text for text in said if "Some donated buffers were not usable" in text]
        return [result, told]

    PROGRAMS[name] = run


class Places:
    """A library, and arrays and shardings in one kind of memory or the other."""

    def __init__(self, m, host, spec):
        self.m, self.host = m, self.place(m, host, spec)
        self.device = self.place(m, "device", spec)
        self.p, self.s = m.device_put(X, self.device), m.device_put(X + 5, self.host)

    @staticmethod
    def place(m, kind, spec):
        if spec is None:
            return m.sharding.SingleDeviceSharding(m.devices()[0], memory_kind=kind)
        mesh = m.sharding.Mesh(np.array(m.devices()), ("x",))
        return m.sharding.NamedSharding(mesh, m.P(*spec), memory_kind=kind)

    def up(self, x):
        return self.m.device_put(x, self.device)

    def down(self, x):
        return self.m.device_put(x, self.host)

    def step(self, c):
        return c[0] + 1, self.down(self.up(c[1]) + 1)

    def run(self, f, *args, donate=(0,), **options):
        return self.m.jit(f, donate_argnums=donate, **options)(*args)


KINDS = {
    "first": lambda t: t.run(
        lambda p, s: (p + 1, t.up(s) + 1), t.p, t.s, out_shardings=(t.device, t.host)),
    "mirror": lambda t: t.run(
        lambda p, s: (p + 1, t.up(s) + 1), t.p, t.s, donate=(1,), out_shardings=(t.device, t.host)),
    "unstated": lambda t: t.run(lambda p, s: (p + 1, t.up(s) + 1), t.p, t.s, donate=(1,)),
    "down": lambda t: t.run(lambda p: p + 1, t.p, out_shardings=t.host),
    "down unstated": lambda t: t.run(t.down, t.p),
    "up": lambda t: t.run(lambda s: t.up(s) + 1, t.s, out_shardings=t.device),
    "up unstated": lambda t: t.run(lambda s: t.up(s) + 1, t.s),
    "host to host": lambda t: t.run(lambda s: t.down(t.up(s) + 1), t.s, out_shardings=t.host),
    "unchanged": lambda t: t.run(lambda s: s, t.s, out_shardings=t.host),
    "exchanged": lambda t: t.run(
        lambda p, s: (t.down(p + 1), t.up(s) + 1), t.p, t.s, donate=(0, 1),
        out_shardings=(t.host, t.device)),
    "exchanged unstated": lambda t: t.run(
        lambda p, s: (t.up(s) + 1, t.down(p + 1)), t.p, t.s, donate=(0, 1)),
    "in_shardings": lambda t: t.run(
        lambda s: t.up(s) + 1, X, in_shardings=t.host, out_shardings=t.device),
    "scan": lambda t: t.run(lambda p, s: t.m.lax.scan(
        lambda c, _: (t.step(c), None), (p, s), None, length=3)[0], t.p, t.s, donate=(0, 1)),
    "scan, exchanged": lambda t: t.run(lambda p, s: t.m.lax.scan(
        lambda c, _: (t.step(c), None), (p, s), None, length=3)[0][::-1], t.p, t.s),
    "while": lambda t: t.run(lambda p, s: t.m.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, t.step(c[1])), (0, (p, s)))[1],
        t.p, t.s, donate=(0, 1)),
    "spaces": lambda t: t.run(
        lambda p, s: (t.m.device_put(p, t.m.memory.Space.Host), s + 1), t.p, t.up(t.s)),
    "twice": lambda t: t.run(
        lambda p, s: (t.up(p) + 1, t.up(s) + 2), t.s, t.s, donate=(0, 1),
        out_shardings=(t.device, t.device)),
}  # fmt: skip
for _host in ("pinned_host", "unpinned_host"):
    for _spec in (None, ("x",), ()):
        for _name, _f in KINDS.items():
            program(
                f"{_name}: {_host} {_spec}",
                lambda m, f=_f, host=_host, spec=_spec: f(Places(m, host, spec)),
            )


def over(m, *spec):
    return Places.place(m, None, spec)


def donate(m, f, *args, at=0, **options):
    return m.jit(f, donate_argnums=at, **options)(*args)


def _format(m):
    layout = importlib.import_module(f"{m.__name__}.experimental.layout")
    return layout.Format(layout.Layout((0, 1)), over(m))


def _freed(m, f, *args):
    result = donate(m, f, *args)
    return result, [a.is_deleted() for a in args]


def _closed_over(m, end):
    """A function that closes over a large array, after the array has gone."""
    c = m.numpy.ones((64, 64))
    f = m.jit(lambda a: a + c)
    f(m.numpy.ones(()))
    end(c)
    return f(m.numpy.ones((64, 1)))


def _ahead(m, f, *args):
    return m.jit(f, donate_argnums=0).lower(*args).compile()(*args)


def two(a, b):
    return a + 1, b + 2


CROSSED = (np.ones((8, 8), np.float32), np.full((8, 8), 2, np.float32))
for _name, _f in {
    "split to whole": lambda m: donate(
        m, lambda a: a + 1, m.device_put(X, over(m, "x")), out_shardings=over(m)),
    "whole to split": lambda m: donate(
        m, lambda a: a + 1, m.device_put(X, over(m)), out_shardings=over(m, "x")),
    "rows to columns": lambda m: donate(
        m, lambda a: a + 1, m.device_put(CROSSED[0], over(m, "x")),
        out_shardings=over(m, None, "x")),
    "rows and columns": lambda m: donate(
        m, lambda a, b: (b + 1, a + 2), m.device_put(CROSSED[0], over(m, "x")),
        m.device_put(CROSSED[1], over(m, None, "x")), at=(0, 1)),
    "rows and columns, stated": lambda m: donate(
        m, lambda a, b: (b + 1, a + 2), m.device_put(CROSSED[0], over(m, "x")),
        m.device_put(CROSSED[1], over(m, None, "x")), at=(0, 1),
        out_shardings=(over(m, None, "x"), over(m, "x"))),
    "one sharding stated": lambda m: donate(
        m, two, m.device_put(X, over(m, "x")), m.device_put(X, over(m, "x")), at=(0, 1),
        out_shardings=(None, over(m, "x"))),
    "a sum over devices": lambda m: _freed(m, lambda k: k.sum(), m.device_put(X, over(m, "x"))),
    "a sum over devices, stated": lambda m: donate(
        m, lambda k: k.sum(), m.device_put(X, over(m, "x")), out_shardings=over(m)),
    "two for one": lambda m: donate(m, lambda a, b: a + b, m.device_put(X, over(m, "x")),
        m.device_put(X, over(m, "x")), at=(0, 1)),
    "kept over devices": lambda m: donate(
        m, lambda a: 1.0, m.device_put(X, over(m, "x")), keep_unused=True),
    "put twice": lambda m: (lambda x: m.device_put([x, x], m.devices()[3], donate=True))(
        m.device_put(X)),
    "put here and there": lambda m: (lambda x: m.device_put(
        [x, x], m.devices()[:2], donate=True))(m.device_put(X, m.devices()[0])),
    "donated twice": lambda m: (lambda x: donate(m, two, x, x, at=(0, 1)))(m.device_put(X)),
    "donated and not": lambda m: (lambda x: donate(m, two, x, x))(m.device_put(X)),
    "donated and not, over devices": lambda m: (lambda x: donate(m, two, x, x))(
        m.device_put(X, over(m, "x"))),
    "twice in a tree": lambda m: (lambda x: donate(
        m, lambda t: two(t["a"], t["b"]), {"a": x, "b": x}))(m.device_put(X)),
    "donated, unused": lambda m: (lambda x: donate(m, lambda a, b: b + 2, x, x))(m.device_put(X)),
    "given away twice": lambda m: (lambda f, x: (f(x), f(x)))(
        m.jit(lambda a: a + 1, donate_argnums=0), m.device_put(X)),
    "an alias": lambda m: (lambda x: donate(m, two, x, x.addressable_shards[0].data))(
        m.device_put(X)),
    "keep_unused": lambda m: donate(
        m, lambda a, b: b + 1, m.device_put(X), m.device_put(X), at=(0, 1), keep_unused=True),
    "by name": lambda m: m.jit(lambda a, b: b + 1, donate_argnames="b")(
        m.device_put(X), b=m.device_put(X)),
    "NumPy": lambda m: donate(m, lambda a: a + 1, X.copy()),
    "a number": lambda m: donate(m, lambda a: a + 1, 3.0),
    "NumPy over devices": lambda m: donate(m, lambda a: a + 1, X, in_shardings=over(m, "x")),
    "a view of NumPy": lambda m: (lambda n: (donate(m, lambda a: a + 1, m.numpy.asarray(n)), n))(
        BIG.copy()),
    "a view in NumPy": lambda m: (lambda x: (np.asarray(x), *_freed(m, lambda a: a + 1, x)))(
        m.numpy.ones((64, 64))),
    "constants": lambda m: (lambda c: donate(m, lambda a: (a + c, c * 2), m.device_put(BIG)))(
        m.device_put(BIG)),
    "a constant returned": lambda m: (lambda c: (donate(
        m, lambda a: (c, a + 1), m.device_put(BIG)), c + 1))(m.device_put(BIG)),
    "a constant donated": lambda m: _closed_over(m, lambda c: donate(m, lambda a: a + 1, c)),
    "a constant deleted": lambda m: _closed_over(m, lambda c: c.delete()),
    "a constant and an argument": lambda m: (lambda c: donate(m, lambda a: a + c, c))(
        m.device_put(BIG)),
    "effects": lambda m: donate(
        m, lambda a: (m.debug.callback(lambda v: None, a), a + 1)[1], m.device_put(X)),
    "ordered effects": lambda m: donate(m, lambda a: (
        m.debug.callback(lambda v: None, a, ordered=True), a + 1)[1], m.device_put(X)),
    "passed on": lambda m: donate(m, lambda a, b: (a, b, a), m.device_put(X), m.device_put(X)),
    "swapped": lambda m: donate(
        m, lambda a, b: (b, a), m.device_put(X), m.device_put(X + 1), at=(0, 1)),
    "keys": lambda m: donate(m, lambda k: m.random.split(k, 1)[0], m.random.key(0)),
    "keys and data": lambda m: donate(
        m, lambda k, u: (m.random.key_data(k), k), m.random.key(0),
        m.numpy.zeros(2, np.uint32), at=(0, 1)),
    "int4": lambda m: donate(m, lambda k: k + k, m.numpy.ones(8, m.numpy.int4)),
    "nothing": lambda m: donate(m, lambda k: k + k, m.numpy.ones((0, 3))),
    "another dtype": lambda m: _freed(m, lambda k: k.astype(np.int32), m.device_put(X)),
    "another shape": lambda m: _freed(m, lambda k: k.reshape(-1), m.device_put(X)),
    "a narrower dtype": lambda m: _freed(m, lambda k: k > 0, m.device_put(X)),
    "a part": lambda m: _freed(m, lambda k: k[:4], m.device_put(X)),
    "a sum": lambda m: _freed(m, lambda k: k.sum(), m.device_put(X)),
    "another device": lambda m: donate(
        m, lambda a, b: a + b, m.device_put(X), m.device_put(X, m.devices()[3])),
    "pmap": lambda m: (lambda f, x: (f(x), x.is_deleted()))(
        m.pmap(lambda a: a + 1, donate_argnums=0), m.pmap(lambda a: a + 1)(X)),
    "nested": lambda m: donate(m, lambda a: m.jit(
        lambda b: b + 1, donate_argnums=0)(a * 2) + a, m.device_put(X)),
    "vmap": lambda m: m.vmap(m.jit(lambda b: b * b, donate_argnums=0))(m.device_put(X)),
    "grad": lambda m: m.grad(lambda a: m.jit(lambda b: (b * b).sum(), donate_argnums=0)(a))(
        m.device_put(X)),
    "device_put": lambda m: m.device_put(m.device_put(X), over(m, "x"), donate=True),
    "ahead of time": lambda m: _ahead(m, lambda a: a + 1, m.device_put(X)),
    "ahead of time, twice": lambda m: (lambda x: _ahead(m, two, x, x))(m.device_put(X)),
    "shard_map": lambda m: donate(m, m.shard_map(
        lambda a: a + m.lax.psum(a, "x"), mesh=over(m).mesh, in_specs=m.P("x"),
        out_specs=m.P("x")), m.device_put(X, over(m, "x"))),
    "a layout": lambda m: donate(
        m, lambda a: a + 1, m.device_put(CROSSED[0], over(m)), out_shardings=_format(m)),
}.items():  # fmt: skip
    program(_name, _f)

if __name__ == "__main__":
    survivors.main(PROGRAMS)
