"""One function under every transform, in both libraries: shared by the tests of primitives."""

import jax
import numpy as np

import minijax
from tests.harness.differential import assert_same
from tests.harness.expected_errors import expect


def is_float(x):
    return np.asarray(x).dtype.kind in "fc"


def like(x, seed):
    """Random numbers of the shape and dtype of an array, which may be traced."""
    rng = np.random.RandomState(seed)
    shape, dtype = np.shape(x), getattr(x, "dtype", np.dtype(float))
    values = rng.randn(*shape)
    if dtype.kind == "c":
        values = values + 1j * rng.randn(*shape)
    return np.asarray(values).astype(dtype)


def outcome(run, library):
    """What `run(library)` gives, and the error that it raises."""
    try:
        return run(library), None
    except Exception as error:
        return None, error


def in_both(run, *ways):
    """`run(library)` gives the same in both libraries, or raises an error of the same class.

    Other `ways` to the same are run here alone.
    """
    theirs = outcome(run, jax)
    for way in (run, *ways):
        compare(way, *theirs)


def in_both_as_one(run):
    """`in_both` with upstream's made as one program, which takes a fraction of the time."""
    theirs, error = outcome(lambda m: m.jit(lambda: run(m))(), jax)
    compare(run, *((theirs, error) if error is None else outcome(run, jax)))


def all_in_both(runs, eager=()):
    """`in_both` for each of many, by name, which are one program; those named `eager` are not, here."""
    theirs = outcomes(jax, runs)
    compiled = {name: run for name, run in runs.items() if name not in eager}
    ours = outcomes(minijax, compiled)
    for name in runs:
        made = lambda m: returned(*ours[name], name)
        compare(made if name in ours else runs[name], *theirs[name], where=name)


def outcomes(m, runs, *args):
    """The outcome of each of `runs` on the library and `args`, compiled together if they can be."""
    errors = {}

    def program(*args):
        found = {}
        for name, run in runs.items():
            found[name], errors[name] = outcome(lambda m: run(m, *args), m)
        return found

    found, error = outcome(lambda m: m.jit(program)(*args), m)
    if error is None:
        return {name: (found[name], errors[name]) for name in runs}
    if len(runs) == 1:
        return dict.fromkeys(runs, (None, error))
    return {name: outcomes(m, {name: run}, *args)[name] for name, run in runs.items()}


def returned(result, error, name):
    if error is not None:
        error.add_note(f"in {name}")
        raise error
    return result


def compare(run, theirs, their_error, where="", **bounds):
    """`run(minijax)` gives what upstream gave, or raises an error of the same, listed class."""
    if their_error is None:
        assert_same(run(minijax), theirs, where=where, **bounds)
        return
    expect(their_error)
    _, error = outcome(run, minijax)
    classes = [cls.__name__ for cls in type(error).__mro__]
    seen = f"{where}: upstream raises {their_error!r}, minijax {error!r}"
    assert type(their_error).__name__ in classes, seen


def arrays(m, args):
    return [m.numpy.asarray(x) for x in args]


def check(function, *args, jaxpr=True, grad=True, batch=True):
    """`function(library, *arrays)`: its values, jaxpr, derivatives, and mapped over each argument."""
    in_both(
        lambda m: m.jit(lambda *xs: function(m, *xs))(*arrays(m, args)),
        lambda m: function(m, *arrays(m, args)),
    )
    if jaxpr:
        ours, theirs = (
            str(m.make_jaxpr(lambda *xs, m=m: function(m, *xs))(*args)) for m in (minijax, jax)
        )
        assert ours == theirs
    floats = [i for i, x in enumerate(args) if is_float(x)]
    if grad and floats:
        check_derivatives(function, args, floats)
    if batch:
        for place in range(len(args)):
            check_batched(function, args, [place], bool(grad and place in floats))
        if len(args) > 1:
            check_batched(function, args, list(range(len(args))), False)


def check_derivatives(function, args, chosen):
    def run(m):
        given = arrays(m, args)

        def f(*xs):
            full = list(given)
            for place, x in zip(chosen, xs, strict=True):
                full[place] = x
            return function(m, *full)

        primals = [given[place] for place in chosen]
        tangents = arrays(m, [like(args[place], 7) for place in chosen])
        out, pullback = m.vjp(f, *primals)
        cotangents = m.tree_util.tree_map(lambda x: m.numpy.asarray(like(x, 8)), out)
        return m.jvp(f, primals, tangents), pullback(cotangents)

    in_both_as_one(run)


def check_batched(function, args, places, grad):
    axes: list = [None] * len(args)
    stacked = list(args)
    for count, place in enumerate(places):
        x = np.asarray(args[place])
        axes[place] = (count + place) % (x.ndim + 1)
        other = like(x, 9) if is_float(x) else np.roll(x, 1)
        stacked[place] = np.stack([x, other, x], axes[place])

    def run(m):
        return m.vmap(lambda *xs: function(m, *xs), in_axes=tuple(axes))(*arrays(m, stacked))

    def run_grad(m):
        (place,) = places

        def one(*xs):
            f = lambda x: function(m, *xs[:place], x, *xs[place + 1 :])
            out, pullback = m.vjp(f, xs[place])
            return pullback(out)

        return m.vmap(one, in_axes=tuple(axes))(*arrays(m, stacked))

    in_both_as_one(run)
    if grad:
        in_both_as_one(run_grad)
