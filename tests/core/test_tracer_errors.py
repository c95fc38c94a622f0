"""Errors of functions that need a value that is traced: ours say what upstream's say, and more.

Each line of upstream's message is a line of ours, in the same order.
"""

import functools

import jax
import numpy as np
import pytest

import minijax


def seven(a, b, c, d, e, f, g):
    return bool(a + b + c + d + e + f + g)


def scanned(j, x):
    def body(carry, y):
        return bool(carry + x), y

    return j.lax.scan(body, x, j.numpy.ones(3))


def random_sum(j, x):
    total = 0
    for seed in range(3):
        total = total + j.random.normal(j.random.key(seed))
    return bool(total)


# By name: from a library to a function, and the arguments with which it is traced.
PROGRAMS = {
    "bool": (lambda j: lambda x: bool(x > 0), 1.0),
    "if": (lambda j: lambda x: 1 if x else 0, 1.0),
    "two arguments": (lambda j: lambda x, y: bool(x + y), 1, 2),
    "some arguments": (lambda j: lambda x, y, z: bool(x * z), 1, 2, 3),
    "seven arguments": (lambda j: seven, 1, 2, 3, 4, 5, 6, 7),
    "partial": (lambda j: functools.partial(seven, 1), 2, 3, 4, 5, 6, 7),
    "variadic arguments": (lambda j: lambda *args: bool(args[0] + args[1]), 1, 2),
    "nested arguments": (
        lambda j: lambda d: bool(d["a"]["b"] > d["c"][0]), {"a": {"b": 1}, "c": [2, 3]},
    ),
    "no argument": (lambda j: lambda x: random_sum(j, x), 1),
    "int": (lambda j: lambda x: int(x), 1.0),
    "float": (lambda j: lambda x: float(x), 1.0),
    "complex": (lambda j: lambda x: complex(x), 1.0),
    "list index": (lambda j: lambda x: [1, 2][x], 1),
    "range": (lambda j: lambda x: range(x), 1),
    "hex": (lambda j: lambda x: hex(x), 1),
    "item": (lambda j: lambda x: x.item(), 1),
    "asarray": (lambda j: lambda x: np.asarray(x * 2), np.ones(2)),
    "arange": (lambda j: lambda x: j.numpy.arange(x), 3),
    "arange start": (lambda j: lambda x: j.numpy.arange(x, 5), 3),
    "axis": (lambda j: lambda x: j.numpy.sum(j.numpy.ones(3), axis=x), 0),
    "repeats": (lambda j: lambda x: j.numpy.repeat(j.numpy.ones(2), x), np.array([1, 2])),
    "mask": (lambda j: lambda x: j.numpy.ones(1)[x > 0], np.ones(1)),
    "scan": (lambda j: lambda x: scanned(j, x), 1),
    "cond": (
        lambda j: lambda x: j.lax.cond(x > 0, lambda u: bool(u + x), lambda u: True, x), 1,
    ),
    "while": (
        lambda j: lambda x: j.lax.while_loop(lambda c: c < 3 and True, lambda c: c + 1, x), 0,
    ),
    "jit in jit": (lambda j: lambda x: j.jit(lambda y: bool(y + 1))(x), 1),
    "block_until_ready": (lambda j: lambda x: x.block_until_ready(), 1.0),
    "devices": (lambda j: lambda x: x.devices(), 1.0),
    "addressable_shards": (lambda j: lambda x: x.addressable_shards, 1.0),
}  # fmt: skip
SHAPES = {
    "zeros": (lambda j: lambda x: j.numpy.zeros(x), 3),
    "reshape": (lambda j: lambda x: j.numpy.ones(4).reshape(x, 2), 2),
    "full": (lambda j: lambda x: j.numpy.full((x,), 1.0), 2),
    "broadcast_to": (lambda j: lambda x: j.numpy.broadcast_to(1.0, (x,)), 2),
    "normal": (lambda j: lambda x: j.random.normal(j.random.key(0), (x,)), 2),
    "lax.reshape": (lambda j: lambda x: j.lax.reshape(j.numpy.ones(4), (x, 2)), 2),
}
STATIC = {
    "list": (lambda j: j.jit(lambda x, n: x, static_argnums=1), 1, [1]),
    "keyword": (lambda j: functools.partial(j.jit(lambda x, n: x, static_argnames="n"), n={}), 1),
    "pmap": (lambda j: j.pmap(lambda x, n: x, static_broadcasted_argnums=1), np.ones(1), [1]),
}


def refusal(library, make, *args):
    """The names of the class of a program's error and of its bases, and its text."""
    with pytest.raises(Exception) as caught:
        make(library)(*args)
    return [kind.__name__ for kind in caught.type.__mro__], str(caught.value)


def lines(text):
    """The lines that say the same in each run: no class of ours, no variable of a program."""
    kept = [line.strip().rstrip(".") for line in text.splitlines()]
    known = dict.fromkeys(kept)  # upstream says some lines twice
    return [line for line in known if line and not line.startswith(("operation", "from line"))]


@pytest.mark.parametrize(
    ("make", "args"),
    [
        *[
            pytest.param(lambda j, make=make: j.jit(make(j)), args, id=name)
            for name, (make, *args) in (PROGRAMS | SHAPES).items()
        ],
        *[pytest.param(make, args, id=f"static {name}") for name, (make, *args) in STATIC.items()],
    ],
)
def test_message(make, args):
    (their_class, *_), theirs = refusal(jax, make, *args)
    our_classes, ours = refusal(minijax, make, *args)
    assert their_class in our_classes
    found = iter(ours.splitlines())
    for line in lines(theirs):
        assert any(line in each for each in found), f"{line!r} is not in, or not in order:\n{ours}"
