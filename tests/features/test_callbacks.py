"""Callbacks and `minijax.debug` against upstream: values, what is printed, and errors."""

import contextlib
import importlib
import io
import logging
import sys
import typing

import jax
import numpy as np
import pytest

import minijax
from minijax import lax
from tests.harness.differential import BOTH, assert_same, x64
from tests.harness.rules import outcome

pytestmark = pytest.mark.both_ends

X = np.arange(3, dtype=np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


def io_of(m):
    return importlib.import_module(f"{m.__name__}.experimental").io_callback


def like(m, x):
    return m.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def shown(run, m):
    """What `run(m)` gives, and what is printed meanwhile."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = run(m)
        m.effects_barrier()
    return result, out.getvalue()


def agree(run, ordered=True):
    (theirs, told), (ours, our_told) = shown(run, jax), shown(run, minijax)
    assert_same(ours, theirs)
    lines = told.splitlines(), our_told.splitlines()
    assert lines[0] == lines[1] if ordered else sorted(lines[0]) == sorted(lines[1])


def pure(m, x, y, method=None, seen=None):
    def callback(a, b):
        if seen is not None:
            seen.append((np.shape(a), np.shape(b)))
        return (np.asarray(a) * np.sin(np.asarray(b))).astype(np.float32)

    return m.pure_callback(callback, like(m, X), x, y, vmap_method=method)


# -- pure_callback --------------------------------------------------------------------------------

PROGRAMS = {
    "eager": lambda m: pure(m, X, X),
    "jit": lambda m: m.jit(lambda x: pure(m, x, x) + 1)(X),
    "nested jit": lambda m: m.jit(lambda x: m.jit(lambda y: pure(m, y, x))(x) * 2)(X),
    "scan": lambda m: m.lax.scan(lambda c, x: (pure(m, c, x), c), X, ROWS),
    "while": lambda m: m.lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, pure(m, c[1], c[1])), (0, X)
    ),
    "cond": lambda m: m.lax.cond(X[1] > 0, lambda x: pure(m, x, x), lambda x: x, X),
    "kwargs": lambda m: m.pure_callback(lambda a, b: a - b, like(m, X), X, b=ROWS[1]),
    "tree": lambda m: m.pure_callback(
        lambda t: {"a": t[0] + 1, "b": (t[1]["c"],)}, {"a": like(m, X), "b": (like(m, np.float32(0)),)},
        (X, {"c": np.float64(2)}),
    ),
    "nothing": lambda m: m.pure_callback(lambda a: None, None, X),
    "dtype": lambda m: m.pure_callback(lambda a: np.arange(3), m.ShapeDtypeStruct((3,), np.int32), X),
    "number": lambda m: m.pure_callback(lambda a: a, m.ShapeDtypeStruct((), np.float32), 1.0),
    "empty": lambda m: m.jit(
        lambda x: m.pure_callback(lambda a: a, m.ShapeDtypeStruct((0, 2), np.float32), x)
    )(np.zeros((0, 2), np.float32)),
    "matrix": lambda m: m.jit(lambda x: m.pure_callback(np.asarray, like(m, ROWS), x))(ROWS),
    "transposed": lambda m: m.jit(lambda x: m.pure_callback(np.asarray, like(m, ROWS), x.T))(ROWS.T),
    "constant gradient": lambda m: m.grad(
        lambda x: (x * m.pure_callback(lambda: X, like(m, X))).sum()
    )(X),
    "bf16": lambda m: m.jit(lambda x: m.pure_callback(
        lambda a: np.asarray(a), m.ShapeDtypeStruct((3,), m.numpy.bfloat16), x))(
            m.numpy.asarray(X, m.numpy.bfloat16)),
    "bool": lambda m: m.jit(lambda x: m.pure_callback(
        lambda a: ~np.asarray(a), m.ShapeDtypeStruct((3,), bool), x))(X > 0),
    "complex": lambda m: m.jit(lambda x: m.pure_callback(
        lambda a: np.asarray(a) * 1j, m.ShapeDtypeStruct((3,), np.complex64), x))(X),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_pure_callback(name):
    assert_same(PROGRAMS[name](minijax), PROGRAMS[name](jax))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("compiled", [False, True])
def test_pure_callback_under_vmap(method, compiled):
    def run(m):
        seen = []
        f = m.vmap(lambda x, y: pure(m, x, y, method, seen), in_axes=(0, None))
        f = m.jit(f) if compiled else f
        return f(ROWS, X), m.vmap(lambda x, y: pure(m, x, y, method), (1, 0))(ROWS.T, ROWS), seen

    ours, theirs = run(minijax), run(jax)
    assert_same(ours[:2], theirs[:2])
    assert ours[2] == theirs[2]


@pytest.mark.parametrize("how", ["eager", "jit", "vmap"])
def test_types_that_are_seen(how):
    """A callback sees no weak types, but for one for debugging that is run at once."""

    def run(m):
        seen = []

        def note(*args):
            seen.append([getattr(x, "weak_type", False) for x in args])
            return np.float32(0)

        calls = (
            lambda *xs: m.pure_callback(
                note, like(m, np.float32(0)), *xs, vmap_method="sequential"
            ),
            lambda *xs: io_of(m)(note, like(m, np.float32(0)), *xs),
            lambda *xs: m.debug.callback(lambda *ys: (note(*ys), None)[1], *xs),
        )
        for f in calls:
            args = (1.0, m.numpy.array(2.0), m.numpy.float32(3), 4)
            if how == "vmap":
                f, args = m.vmap(f), [m.numpy.asarray(x)[None] for x in args]
            (m.jit(f) if how == "jit" else f)(*args)
            m.effects_barrier()
        return seen

    assert run(minijax) == run(jax)


def test_pure_callback_with_a_rule_of_its_own():
    def run(m):
        @m.custom_jvp
        def f(x):
            return m.pure_callback(np.sin, x, x, vmap_method="expand_dims")

        @f.defjvp
        def _(primals, tangents):
            (x,), (t,) = primals, tangents
            cos = m.pure_callback(np.cos, x, x, vmap_method="expand_dims")
            return f(x), t * cos

        g = m.grad(lambda x: f(x).sum())
        return g(X), m.jit(g)(X), m.vmap(g)(ROWS), m.jit(m.grad(lambda x: x @ f(x)))(X)

    assert_same(run(minijax), run(jax))


def raising(*_):
    raise ValueError("boom")


ERRORS = {
    "raises": lambda m: m.pure_callback(raising, like(m, X), X),
    "raises in jit": lambda m: m.jit(lambda x: m.pure_callback(raising, like(m, X), x))(X),
    "io raises": lambda m: io_of(m)(raising, like(m, X), X),
    "io raises in jit": lambda m: m.jit(lambda x: io_of(m)(raising, like(m, X), x, ordered=True))(X),
    "shape": lambda m: m.pure_callback(lambda a: np.zeros(4), like(m, X), X),
    "shape in jit": lambda m: m.jit(
        lambda x: m.pure_callback(lambda a: np.zeros(4), like(m, X), x))(X),
    "no function": lambda m: m.pure_callback(3, like(m, X), X),
    "no type": lambda m: m.pure_callback(lambda a: a, 3, X),
    "dtype": lambda m: m.pure_callback(
        lambda a: np.arange(3), m.ShapeDtypeStruct((3,), np.int8), X),
    "64 bits": lambda m: m.pure_callback(lambda a: a, m.ShapeDtypeStruct((3,), np.float64), X),
    "key": lambda m: m.pure_callback(
        lambda a: a, m.ShapeDtypeStruct((), m.random.key(0).dtype), m.random.key(0)),
    "method": lambda m: pure(m, X, X, "other"),
    "vmap": lambda m: m.vmap(lambda x: pure(m, x, x))(ROWS),
    "vmap ordered": lambda m: m.vmap(lambda x: io_of(m)(np.sin, like(m, X), x, ordered=True))(ROWS),
    "grad": lambda m: m.grad(lambda x: pure(m, x, x).sum())(X),
    "io grad": lambda m: m.grad(lambda x: io_of(m)(np.sin, like(m, X), x).sum())(X),
    "debug raises": lambda m: (m.debug.callback(raising, X), m.effects_barrier()),
    "debug raises in jit": lambda m: (
        m.jit(lambda x: m.debug.callback(raising, x))(X), m.effects_barrier()),
    "debug raises in order": lambda m: (
        m.jit(lambda x: m.debug.callback(raising, x, ordered=True))(X), m.effects_barrier()),
    "print lacks": lambda m: m.debug.print("{x}", y=1),
    "print lacks place": lambda m: m.debug.print("{} {}", 1),
    "print unused": lambda m: m.debug.print("x", y=1),
    "print unused place": lambda m: m.debug.print("x", 1),
    "callback": lambda m: m.debug.callback(3),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, caplog):
    logged = []

    def run(m):
        out = ERRORS[name](m)
        return m.block_until_ready(out)

    def told():
        logged.append([r.getMessage() for r in caplog.records if "failed" in r.getMessage()])
        caplog.clear()

    _, theirs = outcome(run, jax)
    told()
    _, ours = outcome(run, minijax)
    told()
    assert (
        logged[0] == logged[1]
    )  # that a function raised, and not that its results are of other types
    assert theirs is not None
    seen = f"upstream raises {theirs!r}, minijax {ours!r}"
    assert type(theirs).__name__ in [c.__name__ for c in type(ours).__mro__], seen
    if "boom" in str(theirs):
        assert "boom" in str(ours)
    assert_same(minijax.jit(lambda x: x + 1)(X), jax.jit(lambda x: x + 1)(X))


# -- effects ----------------------------------------------------------------------------------------


def counted(m, program):
    """What the io callbacks of a program were given, in order."""
    seen = []

    def note(x):
        seen.append(np.asarray(x).tolist())
        return np.asarray(x) + 1

    out = program(m, lambda x, **options: io_of(m)(note, like(m, np.float32(0)), x, **options))
    m.block_until_ready(out)
    m.effects_barrier()
    return out, seen


IO = {
    "eager": lambda m, f: f(np.float32(1)),
    "jit": lambda m, f: m.jit(lambda x: f(x) + f(x + 1))(np.float32(1)),
    "scan": lambda m, f: m.lax.scan(lambda c, x: (f(c, ordered=True), x), np.float32(0), X),
    "unrolled scan": lambda m, f: m.lax.scan(
        lambda c, x: (f(c, ordered=True), x), np.float32(0), X, unroll=2),
    "fori": lambda m, f: m.lax.fori_loop(
        0, 3, lambda i, c: m.jit(lambda c: f(c, ordered=True))(c), np.float32(0)),
    "while": lambda m, f: m.lax.while_loop(
        lambda c: f(c, ordered=True) < 3, lambda c: f(c, ordered=True), np.float32(0)),
    "cond": lambda m, f: m.jit(lambda p: m.lax.cond(
        p, lambda: f(np.float32(1), ordered=True), lambda: f(np.float32(5), ordered=True)))(True),
    "vmap": lambda m, f: m.vmap(f)(X),
    "unused": lambda m, f: m.jit(lambda x: (f(x), x)[1])(np.float32(1)),
    "two programs": lambda m, f: [
        m.jit(lambda x, i=i: f(x + i, ordered=True))(np.float32(i)) for i in range(4)],
    "pmap": lambda m, f: m.pmap(f)(X[:1]),
    "pmap ordered": lambda m, f: m.pmap(lambda x: f(f(x, ordered=True), ordered=True))(X[:1]),
    "shard_map": lambda m, f: m.jit(m.shard_map(
        lambda x: f(x[0], ordered=True)[None], mesh=m.make_mesh((1,), "x"), in_specs=m.P(),
        out_specs=m.P(), check_vma=False))(X),
    "again": lambda m, f: (lambda g: [g(np.float32(i)) for i in range(4)])(
        m.jit(lambda x: f(x, ordered=True))),
}  # fmt: skip


@pytest.mark.parametrize("name", IO)
def test_io_callback(name):
    (ours, seen), (theirs, expected) = counted(minijax, IO[name]), counted(jax, IO[name])
    assert_same(ours, theirs)
    assert seen == expected if name != "jit" else sorted(seen) == sorted(expected)


def say(m, text="{}", ordered=False):
    def f(x):
        m.debug.print(text, x, ordered=ordered)
        return x * 2

    return f


PRINTS = {
    "eager": lambda m: say(m)(m.numpy.asarray(X)),
    "jit": lambda m: m.jit(say(m))(X),
    "grad": lambda m: m.grad(lambda x: say(m)(x).sum())(X),
    "jit grad": lambda m: m.jit(m.grad(lambda x: say(m)(x).sum()))(X),
    "grad jit": lambda m: m.grad(lambda x: m.jit(say(m))(x).sum())(X),
    "jvp": lambda m: m.jvp(say(m), (X,), (X,)),
    "vmap": lambda m: m.vmap(say(m))(ROWS),
    "vmap ordered": lambda m: m.jit(m.vmap(say(m, ordered=True)))(ROWS),
    "scan": lambda m: m.lax.scan(lambda c, x: (say(m, ordered=True)(x), c), X[0], X),
    "grad scan": lambda m: m.grad(
        lambda x: m.lax.scan(lambda c, _: (say(m, ordered=True)(c), None), x, None, length=2)[0]
    )(np.float32(1)),
    "while": lambda m: m.lax.while_loop(
        lambda c: c < 5, lambda c: say(m, "c={}", True)(c), np.int32(1)),
    "vmap while": lambda m: m.vmap(lambda x: m.lax.while_loop(
        lambda c: c < 5, lambda c: say(m, "c={}")(c), x))(np.asarray([1, 2])),
    "cond": lambda m: m.jit(lambda x: m.lax.cond(x > 0, say(m, "a{}"), say(m, "b{}"), x))(X[0]),
    "vmap cond": lambda m: m.vmap(
        lambda x: m.lax.cond(x > 0, say(m, "a{}"), say(m, "b{}"), x))(X),
    "checkpoint": lambda m: m.grad(m.checkpoint(lambda x: m.numpy.sin(say(m)(x))))(np.float32(1)),
    "formats": lambda m: m.debug.print("{:.3f} {{}} {x!r:>5} {y}", np.float32(1.5), x="s", y=2),
    "formats in jit": lambda m: m.jit(
        lambda x: m.debug.print("{:.3f} {:>4d} {b!s} {x[1]}", x[0], 3, b=x > 1, x=x))(X),
    "no arguments": lambda m: m.debug.print("plain"),
    "trees": lambda m: m.debug.print("{y}", y={"a": "str", "b": [1.5, None]}),
    "static in jit": lambda m: m.jit(lambda x: m.debug.print("{} {}", "s", x))(X),
    "decorator": lambda m: m.debug.print(ordered=True)("{}", X),
    "callback": lambda m: m.jit(lambda x: m.debug.callback(lambda a, b: print(a, b), x, "s"))(X),
    "callback decorator": lambda m: m.debug.callback(ordered=True)(print, X),
    "numbers": lambda m: m.debug.print("{} {} {}", 1, True, 2.5),
    "key": lambda m: m.jit(lambda k: m.debug.print("{}", k))(m.random.key(0)),
    "options": lambda m: printed_shortly(m),
}  # fmt: skip


def printed_shortly(m):
    with np.printoptions(precision=2):
        return m.jit(lambda x: m.debug.print("{}", m.numpy.sin(x)))(X)


@pytest.mark.parametrize("name", PRINTS)
def test_debug_print(name):
    agree(PRINTS[name], ordered="vmap" not in name)


@pytest.mark.parametrize("name", ["eager", "jit", "vmap", "grad"])
def test_jaxprs(name):
    f = {
        "eager": lambda m, x: (m.debug.print("{x}", x=x), x)[1],
        "jit": lambda m, x: m.jit(lambda x: (m.debug.print("{}", x, ordered=True), x)[1])(x),
        "vmap": lambda m, x: m.vmap(lambda x: (m.debug.print("{}", x), x)[1])(x),
        "grad": lambda m, x: m.grad(lambda x: (m.debug.print("{}", x), m.numpy.sum(x * 2))[1])(x),
    }[name]
    ours, theirs = (str(m.make_jaxpr(lambda x, m=m: f(m, x))(X)) for m in (minijax, jax))
    assert ours == theirs


def test_x64():
    with x64(True):
        wide = X.astype(np.float64)
        f = lambda m: m.jit(lambda x: m.pure_callback(np.sin, like(m, wide), x))(wide)
        assert_same(f(minijax), f(jax))


def test_equal_modules_call_their_own_functions():
    f = lambda k: minijax.jit(
        lambda x: minijax.pure_callback(lambda a: np.asarray(a) * k, like(minijax, X), x)
    )
    for k in (2, 3, 2):
        np.testing.assert_array_equal(f(k)(X), X * k)


def test_programs_with_callbacks_are_not_kept_on_disk(monkeypatch):
    from minijax.runtime import executables

    def refuse():
        raise AssertionError("the disk cache was asked")

    monkeypatch.setattr(executables, "disk_cache", refuse)
    f = minijax.jit(lambda x: minijax.pure_callback(np.sin, like(minijax, X), x) * 7)
    np.testing.assert_allclose(f(X), np.sin(X) * 7, rtol=1e-6)


def test_breakpoint():
    out = io.StringIO()
    orders = io.StringIO("p x + 1\nbt\nu\nd\nl\np missing\nc\n")

    def f(x):
        minijax.debug.breakpoint(stdin=orders, stdout=out, num_frames=2)
        return x * 2

    np.testing.assert_array_equal(minijax.jit(f)(X), X * 2)
    minijax.effects_barrier()
    told = out.getvalue()
    assert "Entering jdb:" in told and "test_callbacks.py" in told
    assert "[1., 2., 3.]" in told and "NameError" in told


def test_shardings():
    seen = []
    for m in BOTH:
        m.debug.inspect_array_sharding(m.numpy.asarray(X), callback=seen.append)
    assert [type(x).__name__ for x in seen] == ["SingleDeviceSharding"] * 2
    minijax.jit(lambda x: minijax.debug.inspect_array_sharding(x, callback=seen.append))(X)
    assert len(seen) == 3


@pytest.mark.parametrize("compiled", ["call", "lower"])
@pytest.mark.parametrize("axes", [("i",), ("i", "j")])
def test_sharding_over_a_mesh_of_one_device(axes, compiled):
    told = []
    for m, sharding in ((jax, jax.sharding), (minijax, minijax.sharding)):
        mesh = sharding.Mesh(np.array(m.devices()[:1]).reshape([1] * len(axes)), axes)
        where, seen = sharding.NamedSharding(mesh, sharding.PartitionSpec("i")), []

        def f(x, m=m, seen=seen):
            m.debug.inspect_array_sharding(m.numpy.sin(x), callback=lambda s: seen.append(str(s)))
            return x

        f = m.jit(f, in_shardings=where)
        f(X) if compiled == "call" else f.lower(X).compile()
        told.append(seen)
    assert told[0] == told[1] and len(told[1]) == 1


class Device(typing.NamedTuple):
    """A device as far as pictures of shardings ask for it."""

    id: int
    platform: str = "cpu"


class Grid:
    """A sharding of two axes over devices, each part held by the devices of one cell."""

    def __init__(self, cells):
        self.cells = cells
        self.device_set = {Device(n) for row in cells for cell in row for n in cell}

    def devices_indices_map(self, shape):
        sizes = len(self.cells), len(self.cells[0])
        steps = [max(size // count, 1) for size, count in zip(shape, sizes, strict=True)]
        return {
            Device(n): tuple(
                slice(None) if count == 1 else slice(i * step, (i + 1) * step)
                for i, step, count in zip(place, steps, sizes, strict=True)
            )
            for place in np.ndindex(sizes)
            for n in self.cells[place[0]][place[1]]
        }


GRIDS = [
    [[[0]]], [[[0, 1, 2, 3, 4, 5, 6, 7]]], [[[0], [1]], [[2], [3]]], [[[0, 2], [1, 3]]],
    [[[0]], [[1]], [[2]], [[3]]], [[[0], [1], [2], [3]], [[4], [5], [6], [7]]],
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"scale": 1.5}, {"min_width": 20}, {"max_width": 30}])
@pytest.mark.parametrize("shape", [(8, 8), (16, 8), (4, 16), (12, 20), (4, 400)])
def test_pictures_of_shardings(shape, options):
    pytest.importorskip("rich")
    for cells in GRIDS:
        drawn = []
        for m in BOTH:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                m.debug.visualize_sharding(shape, Grid(cells), **options)
            drawn.append(out.getvalue())
        assert drawn[0] == drawn[1]


def test_pictures_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        minijax.debug.visualize_array_sharding(minijax.numpy.asarray(ROWS))
    assert out.getvalue().splitlines()[1].strip("| ") == "CPU 0"


def test_pictures_of_more_axes_are_refused():
    with pytest.raises(ValueError, match="only works for shapes with 1 and 2 dimensions"):
        minijax.debug.visualize_array_sharding(minijax.numpy.zeros((2, 2, 2)))


def test_every_name_is_there():
    assert {n for n in dir(jax.debug) if not n.startswith("_")} == set(minijax.debug.__all__)
    assert lax.add_p is not None and minijax.debug.DebugEffect() is not None


@pytest.mark.parametrize("level", [logging.NOTSET, logging.WARNING])
@pytest.mark.parametrize("wrap", ["eager", "jit", "vmap"])
def test_debug_log_is_handled_whatever_the_level(wrap, level):
    def records(m):
        kept = logging.Handler()
        kept.emit = seen.append
        logger = logging.getLogger(m.__name__)
        logger.addHandler(kept)
        logger.setLevel(level)
        try:
            f = lambda x: m.debug.log("{} and {y}", x, y=2)
            {"eager": lambda: f(1), "jit": lambda: m.jit(f)(1), "vmap": lambda: m.vmap(f)(X)}[
                wrap
            ]()
            m.effects_barrier()
        finally:
            logger.removeHandler(kept)
            logger.setLevel(logging.NOTSET)
        told = [(r.levelname, r.getMessage(), r.pathname, r.lineno) for r in seen]
        seen.clear()
        return told

    X, seen = np.arange(2), []
    ours = records(minijax)
    assert ours and ours == records(jax)


@pytest.mark.parametrize("start", [0, np.int32(1), np.array([0, 3, 1], np.int32)], ids=str)
def test_the_condition_of_a_loop_that_the_compiler_can_count(start):
    def run(m):
        def go_on(count):
            m.debug.print("count {}", count, ordered=True)
            return m.numpy.sum(count) < 9

        looped = m.jit(lambda: m.lax.while_loop(go_on, lambda count: count + 1, start))()
        m.effects_barrier()
        return looped

    agree(run)
