"""References given to `shard_map` and made within it, and nested `shard_map`s, over eight devices: run
by `test_refs` in a process of its own for each library.
"""

import numpy as np

from tests.harness import survivors

X = np.arange(8, dtype=np.float32)


def _put(r, value):
    r[...] = value


def _add(r, value):
    r[...] += value
    return r[...]


def _loop(m, x, r):
    return m.lax.scan(lambda c, _: (_put(r, r[...] + c), (c * 2, None))[1], x, None, length=3)[0]


# The function of (x, r), the specs of both, what r holds at first, and the spec of the result.
GIVEN = {
    "write": (lambda m, x, r: _put(r, 2 * x), "i", X, None),
    "read": (lambda m, x, r: x * r[...], "i", X, "i"),
    "add": (lambda m, x, r: _add(r, x), "i", X, "i"),
    "sum": (lambda m, x, r: _put(r, m.lax.psum(x, "i")), None, X[:1], None),
    "varying": (lambda m, x, r: _put(r, x), None, X[:1], None),
    "whole read": (lambda m, x, r: x + r[...], None, X[:1], "i"),
    "loop": (_loop, "i", X, "i"),
    "returned": (lambda m, x, r: r, "i", X, "i"),
    "uneven": (lambda m, x, r: x, "i", X[:5], "i"),
}


def _given(name, check=True, grad=False):
    def run(m):
        body, spec, value, out = GIVEN[name]
        of = lambda axis: m.P() if axis is None else m.P(axis)
        r = m.new_ref(m.numpy.asarray(value))
        f = m.jit(
            m.shard_map(
                lambda x, r: body(m, x, r), in_specs=(m.P("i"), of(spec)),
                out_specs=None if out is None else of(out), check_vma=check,
            )
        )  # fmt: skip
        if grad:
            y = m.grad(lambda x: m.numpy.sin(f(x, r)).sum())(m.numpy.asarray(X))
        else:
            y = f(m.numpy.asarray(X), r)
        y = y if y is None else np.asarray(y).round(4).tolist()
        return [y, np.asarray(r[...]).tolist()]

    return run


PROGRAMS = {name: _given(name) for name in GIVEN}
PROGRAMS |= {f"{name}, unchecked": _given(name, check=False) for name in ("write", "sum", "add")}
PROGRAMS |= {f"{name}, gradient": _given(name, grad=True) for name in ("read", "whole read")}


def _made(first):
    """After a program like it with types that fit; what is refused does not depend on that."""

    def run(m):
        out = None
        for value in (*([lambda x: m.lax.psum(x, "i")] if first else []), lambda x: x):

            def body(x, value=value):
                r = m.new_ref(m.numpy.zeros(1))
                _put(r, value(x))
                return r[...]

            f = m.shard_map(body, in_specs=m.P("i"), out_specs=m.P())
            out = m.jit(f)(m.numpy.asarray(X))
        return np.asarray(out).tolist()

    return run


PROGRAMS |= {"made within": _made(False), "made within, after another": _made(True)}


def _in_mesh(program):
    def run(m):
        with m.set_mesh(m.make_mesh((8,), ("i",), (m.sharding.AxisType.Auto,))):
            return program(m)

    return run


PROGRAMS = {name: _in_mesh(program) for name, program in PROGRAMS.items()}

if __name__ == "__main__":
    survivors.main(PROGRAMS)
