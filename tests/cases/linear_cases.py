"""Shared by the tests of linear algebra and Fourier transforms: rows of a table, and how to run
one.
"""

import jax
import numpy as np

from tests.harness.differential import assert_same
from tests.harness.rules import arrays, in_both, like

# Later releases differentiate one triangle alone where input is not symmetrized, and raise other errors.
NEWER = jax.__version_info__ >= (0, 11)
KINDS = {"f": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


class Row:
    """A function of a library and arrays, what it is called with, and what is checked of it.

    - `kinds`: the dtypes it runs in: f and c without x64, d and z with it
    - `grad`: the dtypes in which derivatives are compared; `batch`: those in which it is mapped
    - `ulps`: how many units in the last place, of numbers of size 1, results may differ by
    """

    def __init__(self, name, f, *args, kinds="fcdz", grad="fc", batch="f", ulps=50):
        self.name, self.f, self.args = name, f, args
        self.kinds, self.grad, self.batch, self.ulps = kinds, grad, batch, ulps


def table_row(module_of):
    """A maker of rows: `call` is a name of the module, or a name and `f(module, *arrays)`."""

    def row(call, *args, label="", with_=None, **options):
        name, f = call if isinstance(call, tuple) else (call, None)

        def called(m, *xs):
            module = module_of(m)
            return getattr(module, name)(*xs, **(with_ or {})) if f is None else f(module, *xs)

        return Row(f"{name}{label}", called, *args, **options)

    return row


def check_names(module, rows, more=()):
    """Every public function of a module has a row, whose name begins with its own."""
    names = [row.name for row in rows] + list(more)
    for name in module.__all__:
        found = getattr(module, name)
        if callable(found) and not isinstance(found, type):
            rows_of = [row for row in names if row == name or row.startswith(f"{name}_")]
            assert rows_of, f"no row for {module.__name__}.{name}"


def matrix(*shape, seed=1):
    """General matrices of a dtype."""

    def make(dtype):
        rng = np.random.RandomState(seed)
        x = rng.randn(*shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.randn(*shape)
        return np.asarray(x).astype(dtype)

    return make


def definite(*shape, seed=2):
    """Hermitian positive definite matrices of a dtype."""

    def make(dtype):
        x = matrix(*shape, seed=seed)(dtype)
        return (x @ np.swapaxes(x.conj(), -1, -2) + np.eye(shape[-1])).astype(dtype)

    return make


def given(value, dtype=None):
    """An array whatever the dtype of the row is."""
    return lambda kind: np.asarray(value) if dtype is None else np.asarray(value, dtype)


def cases(rows):
    """Parameters of a test and their ids: each row in each of its dtypes."""
    pairs = [(row, kind) for row in rows for kind in row.kinds]
    return {"argvalues": pairs, "ids": [f"{row.name}-{kind}" for row, kind in pairs]}


def run(row, kind):
    """Values called eagerly; in one compiled program, values, derivatives and mapped calls.

    To save time the first is left out for complex64, the others for 64-bit dtypes.
    """
    args = [make(KINDS[kind]) for make in row.args]

    def same(function):
        from_both = []

        def keep(m):
            from_both.append((m.__name__, function(m)))
            return ()

        in_both(keep)
        results = dict(from_both)
        if len(results) == 2:
            assert_same(results["minijax"], results["jax"], ulps=row.ulps, size=1.0, where=row.name)

    if kind != "c":
        same(lambda m: row.f(m, *arrays(m, args)))
    if kind in "fc":
        same(lambda m: m.jit(lambda *xs: _all_of(m, row, kind, args, xs))(*arrays(m, args)))


def _all_of(m, row, kind, args, xs):
    found = {"values": row.f(m, *xs)}
    floats = [i for i, x in enumerate(args) if x.dtype.kind in "fc"]
    if kind in row.grad and floats:
        found["derivatives"] = _derivatives(m, row, args, xs, floats)
    if kind in row.batch:
        for place in range(len(xs)):
            axis = place % (args[place].ndim + 1)
            stacked = m.numpy.stack([xs[place], xs[place]], axis)
            axes = tuple(axis if i == place else None for i in range(len(xs)))
            mapped = m.vmap(lambda *ys: row.f(m, *ys), in_axes=axes)
            found[f"mapped {place}"] = mapped(*xs[:place], stacked, *xs[place + 1 :])
    return found


def _derivatives(m, row, args, xs, floats):
    def f(*chosen):
        full = list(xs)
        for place, x in zip(floats, chosen, strict=True):
            full[place] = x
        return row.f(m, *full)

    primals = [xs[i] for i in floats]
    tangents = arrays(m, [like(args[i], 7) for i in floats])
    out, pullback = m.vjp(f, *primals)
    cotangents = m.tree_util.tree_map(_cotangent(m), out)
    return m.jvp(f, primals, tangents)[1], pullback(cotangents)


def _cotangent(m):
    def make(x):
        if m.numpy.issubdtype(x.dtype, m.numpy.inexact):
            rng = np.random.RandomState(8)
            values = rng.randn(*x.shape)
            if np.dtype(x.dtype).kind == "c":
                values = values + 1j * rng.randn(*x.shape)
            return m.numpy.asarray(values, x.dtype)
        return np.zeros(x.shape, m.dtypes.float0)

    return make
