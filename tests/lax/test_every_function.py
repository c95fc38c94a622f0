"""Every function of `lax`: eagerly, compiled, mapped and differentiated, as upstream has them.

The rows stand in `lax_cases`; the files `test_lax_*` go into the depth of each family.
"""

import jax
import numpy as np
import pytest

import minijax
from tests.benchmarks import cost_rows
from tests.cases import lax_cases
from tests.harness.differential import assert_same, x64
from tests.harness.rules import is_float, like

ROWS = [
    pytest.param(name.partition("@")[0], function, args, name.partition("@")[2],
                 id=f"{family}-{name.partition('@')[0]}-{number}")
    for family, rows in lax_cases.ROWS_OF.items()
    for number, (name, function, args) in enumerate(rows)
]  # fmt: skip
MODES = pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
WIDER = {np.float32: np.float64, np.complex64: np.complex128, np.int32: np.int64}


def test_every_name_has_a_row():
    public = {name for name in dir(jax.lax) if not name.startswith("_") and not name.endswith("_p")}
    tested = {row.values[0] for row in ROWS} | {name for name, _ in lax_cases.STATIC}
    assert not public - tested - set(lax_cases.ELSEWHERE) - lax_cases.ALIASES
    assert not tested - public
    missing = [
        name for name in dir(jax.lax) if name.endswith("_p") and not hasattr(minijax.lax, name)
    ]
    assert set(missing) <= {"ragged_all_to_all_p", "sharding_constraint_p"}


def test_every_name_has_a_row_in_the_table_of_compiled_cost():
    assert not cost_rows.unnamed("minijax")


def widened(x):
    return x.astype(WIDER.get(x.dtype.type, x.dtype.type))


def stacked(x):
    return np.stack([x, np.roll(x, 1, -1) if x.ndim else x])


def program(m, function, args, left_out):
    """A function of nothing but arrays that gives all of it."""
    chosen = [i for i, x in enumerate(args) if is_float(x)]
    tangents = [like(args[i], 7) for i in chosen]

    def run(arrays, batches):
        f = lambda *xs: function(m, *xs)
        out = {"value": f(*arrays)}
        if batches:
            out["batch"] = m.vmap(f)(*batches)
        if "g" in left_out or not chosen:
            return out

        def of_floats(*xs):
            full = list(arrays)
            for i, x in zip(chosen, xs, strict=True):
                full[i] = x
            return [y for y in m.tree_util.tree_leaves(f(*full)) if y.dtype.kind in "fc"]

        primals = [arrays[i] for i in chosen]
        _, out["tangent"] = m.jvp(of_floats, primals, [m.numpy.asarray(t) for t in tangents])
        values, pullback = m.vjp(of_floats, *primals)
        cotangents = [like(np.ones(y.shape, y.dtype), 8) for y in values]
        out["cotangent"] = pullback([m.numpy.asarray(ct) for ct in cotangents])
        return out

    batches = [stacked(x) for x in args] if "b" not in left_out and args else []
    return run, list(args), batches


def compiled(m, run, *args):
    return m.jit(run)(*args)


def types(m, run, *args):
    """The tree of the results, and their types, by tracing alone."""
    leaves, tree = m.tree_util.tree_flatten(m.eval_shape(run, *args))
    return str(tree), [(x.shape, x.dtype, x.weak_type) for x in leaves]


@MODES
@pytest.mark.parametrize(("name", "function", "args", "left_out"), ROWS)
def test_function(name, function, args, left_out, wide):
    with x64(wide):
        if wide:
            args = [widened(x) for x in args]
        ours, theirs = (function(m, *[m.numpy.asarray(x) for x in args]) for m in (minijax, jax))
        if "v" in left_out:
            one, other = [(y.shape, y.dtype, y.weak_type) for y in (ours, theirs)]
            assert one == other
            return
        assert_same(ours, theirs, where=name)
        if wide:  # types only: values differ from those in 32 bits in nothing but digits
            ours, theirs = (types(m, *program(m, function, args, left_out)) for m in (minijax, jax))
            assert ours == theirs
            return
        ours, theirs = (compiled(m, *program(m, function, args, left_out)) for m in (minijax, jax))
        assert_same(ours, theirs, where=name)


@MODES
@pytest.mark.parametrize(
    ("name", "function"), lax_cases.STATIC, ids=[n for n, _ in lax_cases.STATIC]
)
def test_static(name, function, wide):
    with x64(wide):
        assert function(minijax.lax) == function(jax.lax)


@MODES
@pytest.mark.parametrize("name", [*lax_cases.UNARY, *lax_cases.BINARY])
def test_python_numbers(name, wide):
    """They are weakly typed, and so are the values and tangents that come of them alone."""
    args = (2.4, 0.6) if name in lax_cases.BINARY else (0.4,)

    def run(m):
        f = getattr(m.lax, name)
        if name in ("igamma", "igammac", "zeta"):
            return f(*args), f(np.float32(2.4), np.float32(0.6))
        out = m.jvp(f, args, tuple(1.0 for _ in args))
        mixed = f(args[0], m.numpy.asarray(0.6)) if len(args) > 1 else f(m.numpy.asarray(0.4))
        return out, mixed

    with x64(wide):
        assert_same(run(minijax), run(jax), where=name)
