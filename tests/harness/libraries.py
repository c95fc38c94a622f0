"""Rows of library functions compared with upstream under every transform: shared by the tests.

A row is a function of a library `m` (upstream or minijax) and arrays, and the arrays themselves. All
that is asked of a row is compiled as one program in each library, since compiling is what costs.
"""

import jax
import ml_dtypes
import numpy as np

from tests.harness.differential import sample, x64
from tests.harness.rules import arrays, compare, outcome

LOW = (ml_dtypes.bfloat16, np.float16)


class Row:
    """One call of a public function: `name` is what it covers, `call(m, *args)` what is run."""

    def __init__(
        self, name, call, *args, label="", grad=True, vmap=True, low=True, wide=True, ulps=None,
        size=None, jit=True, wide_ulps=None, apart=False,
    ):  # fmt: skip
        self.name, self.call, self.args, self.label = name, call, args, label
        self.grad, self.vmap, self.low, self.wide, self.jit = grad, vmap, low, wide, jit
        self.ulps, self.size, self.wide_ulps = ulps, size, wide_ulps
        self.apart = apart  # transforms run operation by operation: XLA takes long to compile them

    def __repr__(self):
        return f"{self.name}{'-' + self.label if self.label else ''}"


def ids(rows):
    """Ids that are the same in every process."""
    return [f"{index}-{row!r}" for index, row in enumerate(rows)]


def both(run, row=None, jit=False, **bounds):
    """`run(library)` agrees, or raises an error of the same class; upstream's is compiled if `jit`."""
    if row is not None:
        bounds = {"ulps": row.ulps, "size": row.size, **bounds}
    theirs = (lambda m: m.jit(lambda: run(m))()) if jit else run
    compare(run, *outcome(theirs, jax), **bounds)


def program(m, row, grad, vmap):
    """All that is asked of a row, as one function of its arguments."""

    def run(*args):
        outs = [row.call(m, *args)]
        if grad:
            outs.append(derivatives(m, row.call, args))
        if vmap:
            outs += batches(m, row.call, args)
        return outs

    run.__name__ = row.name.rpartition(".")[2]  # compiled once, if it is all of a jitted function
    return run


def is_inexact(x):
    return np.dtype(x.dtype).kind in "fc" or x.dtype.name == "bfloat16"


def derivatives(m, call, args):
    """Forward and reverse mode along fixed random directions."""
    chosen = [i for i, x in enumerate(args) if is_inexact(x)]
    if not chosen:
        return ()

    def f(*xs):
        full = list(args)
        for place, x in zip(chosen, xs, strict=True):
            full[place] = x
        return [x for x in m.tree_util.tree_leaves(call(m, *full)) if is_inexact(x)]

    primals = [args[place] for place in chosen]
    outs, tangents = m.jvp(f, primals, [sample(x.shape, x.dtype, 7) for x in primals])
    _, pullback = m.vjp(f, *primals)
    return tangents, pullback([m.numpy.asarray(sample(x.shape, x.dtype, 8)) for x in outs])


def batches(m, call, args):
    """Mapped over all arguments, and over the first alone."""
    if not args:
        return []
    stack = lambda x: m.numpy.stack([x, m.numpy.flip(x), x])
    f = lambda *xs: call(m, *xs)
    outs = [m.vmap(f)(*map(stack, args))]
    if len(args) > 1:
        axes = (0, *[None] * (len(args) - 1))
        outs.append(m.vmap(f, in_axes=axes)(stack(args[0]), *args[1:]))
    return outs


def check(row, grad, vmap, eager=False, **bounds):
    """Compare the row's program; where upstream refuses a transform of it, what is left without it too."""
    bounds = {"ulps": row.ulps, "size": row.size, **bounds}
    made = lambda m: program(m, row, grad, vmap)

    def compiled(m):
        apart = row.apart and (grad or vmap or m is not jax)
        with m.disable_jit(apart):
            return (m.jit(made(m)) if row.jit else made(m))(*arrays(m, row.args))

    theirs, their_error = outcome(compiled, jax)
    compare(compiled, theirs, their_error, **bounds)
    if their_error is not None and (grad or vmap):
        check(row, False, grad and vmap, eager, **bounds)
    elif eager:
        first = None if their_error else theirs[0]
        compare(lambda m: row.call(m, *arrays(m, row.args)), first, their_error, **bounds)


def check_row(row):
    """Eager, jitted, differentiated both ways, and mapped."""
    check(row, row.grad, row.vmap, eager=True)


def converted(row, dtype):
    """The row with its floating arguments in another dtype."""
    args = [np.asarray(x).astype(dtype) if np.asarray(x).dtype.kind == "f" else x for x in row.args]
    return Row(row.name, row.call, *args, label=row.label, ulps=row.ulps, size=row.size)


def check_dtype(row, dtype, **bounds):
    """Values only, for a dtype of low precision."""
    made = converted(row, dtype)
    made.ulps = None
    check(made, False, False, **bounds)


def check_wide(row):
    """Values and derivatives in 64-bit mode."""
    with x64(True):
        made = converted(row, np.float64)
        made.ulps = row.wide_ulps
        check(made, row.grad, False)


def missing(module, rows, skip=()):
    """Public names of upstream's module that have no row."""
    named = {row.name for row in rows}
    public = [name for name in dir(module) if not name.startswith("_")]
    return sorted(set(public) - named - set(skip))
