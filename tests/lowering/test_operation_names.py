"""The names of operations in compiled programs, by which profiles show them, are upstream's."""

import os
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import minijax

X = np.arange(1, 4, dtype=np.float32)


def product(j):
    return lambda x: j.lax.sin(x) * x


def scoped(j):
    @j.jit
    def f(x):
        with j.named_scope("foo"):
            y = j.lax.sin(x)
            with j.named_scope("bar"):
                return y * j.lax.cos(x)

    return f


def within(name, make):
    """A program within a scope."""

    def scoped_program(j):
        f = make(j)

        def g(x):
            with j.named_scope(name):
                return f(x)

        return g

    return scoped_program


def custom(j):
    f = j.custom_jvp(lambda x: j.lax.sin(x))
    f.defjvp(lambda p, t: (f(p[0]), t[0] * j.lax.cos(p[0])))
    return f


def loop(j):
    return lambda x: j.lax.while_loop(lambda c: c < 30, lambda c: j.lax.sin(c) + 2, x)


def branches(j):
    return lambda x: j.lax.cond(x > 0, j.lax.sin, j.lax.cos, x)


def switch(j):
    return lambda x: j.lax.switch(x.astype(int), [j.lax.sin, j.lax.cos, lambda y: y * 2], x)


PROGRAMS = {
    "jit": product,
    "grad": lambda j: j.grad(product(j)),
    "vmap of grad": lambda j: lambda x: j.vmap(j.grad(product(j)))(x + j.numpy.ones(3)),
    "jvp": lambda j: lambda x: j.jvp(product(j), (x,), (x,)),
    "linearize": lambda j: lambda x: j.linearize(product(j), x)[1](x),
    "jit in jit": lambda j: j.jit(product(j)),
    "scopes": scoped,
    "grad of scopes": lambda j: j.grad(scoped(j)),
    "vmap of scopes": lambda j: lambda x: j.vmap(scoped(j))(x + j.numpy.ones(3)),
    "jit in a scope": within("a", scoped),
    "grad in a scope": within("a", lambda j: j.grad(product(j))),
    "grad of jit in a scope": within("a", lambda j: j.grad(scoped(j))),
    "while_loop": loop,
    "while_loop in a scope": within("a", loop),
    "cond": branches,
    "grad of cond": lambda j: j.grad(branches(j)),
    "switch": switch,
    "checkpoint": lambda j: j.checkpoint(product(j)),
    "custom_jvp": custom,
    "grad of custom_jvp": lambda j: j.grad(custom(j)),
    "einsum": lambda j: lambda x: j.numpy.einsum("i,j->ij", x + X, j.numpy.sin(x + X)),
    "grad of einsum": lambda j: j.grad(
        lambda x: j.numpy.einsum("ij,jk", x * np.eye(3), j.numpy.sin(x * np.eye(3))).sum()
    ),
    "vmap of einsum": lambda j: (
        lambda x: j.vmap(lambda y: j.numpy.einsum("i, i->", y, y))(x + np.ones((2, 3), np.float32))
    ),
    "einsum in a scope": within("a", lambda j: lambda x: j.numpy.einsum("i->", x + X)),
}


def names(library, make, called):
    """The names of the operations of a compiled program, but for those of its arguments.

    Programs that differ in these names alone are one in a cache: each has a name of its own.
    """
    f = make(library)

    def program(x):
        return f(x)

    program.__name__ = re.sub(r"\W", "_", called)
    text = library.jit(program).lower(np.float32(1.0)).compile().as_text()
    # XLA itself names some instructions of upstream's loops `.../while/while`.
    found = re.findall(r'op_name="([^"]*)"', text)
    return {name for name in found if name.startswith("jit(") and "while/while" not in name}


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_in_compiled_programs(name):
    make = PROGRAMS[name]
    ours, theirs = names(minijax, make, name), names(jax, make, name)
    assert ours
    assert ours == theirs


def test_the_steps_of_a_scan_are_those_of_a_loop():
    def make(j):
        return lambda x: j.lax.scan(lambda c, a: (j.lax.sin(c) * a, c), x, X)

    ours, theirs = names(minijax, make, "scan"), names(jax, make, "scan")
    assert {"jit(scan)/while/body/sin", "jit(scan)/while/body/mul"} <= ours
    # Upstream's steps are calls of a function of their own.
    assert {re.sub("closed_call/", "", name) for name in theirs} >= ours


@pytest.mark.parametrize("name", ["mean", "logsumexp", "tanh", "sum"])
def test_names_where_a_library_function_is_compiled_by_itself(name):
    def found(j):
        f = getattr(j.nn if name == "logsumexp" else j.numpy, name)
        text = j.jit(f).lower(X).as_text(debug_info=True)
        return set(re.findall(rf'"(jit\({name}\)/[^"]*)"', text))

    assert found(minijax) == found(jax) != set()


def test_collectives_have_the_names_of_what_they_are_for():
    """A sum over a mesh axis that is taken late is that of the operation that takes it."""
    program = """
import re, sys
import {0} as j
j.set_mesh(j.make_mesh((2,), ("X",)))
a = j.device_put(j.numpy.ones((4, 8)), j.P(None, "X"))
open_ = j.P(None, None, unreduced={{"X"}})
f = lambda a: j.reshard(j.numpy.einsum("ij,kj->ik", a, a, out_sharding=open_), j.P(None, None))
text = j.jit(f).lower(a).compile().as_text()
lines = [line for line in text.splitlines() if "all-reduce(" in line]
print([re.search('op_name="([^"]*)"', line)[1] for line in lines])
"""
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    ours, theirs = (
        subprocess.run(
            [sys.executable, "-c", program.format(library)],
            env=flags,
            capture_output=True,
            text=True,
        ).stdout
        for library in ("minijax", "jax")
    )
    assert ours == theirs and "einsum" not in ours and "dot_general" in ours
