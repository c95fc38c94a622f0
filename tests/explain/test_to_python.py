"""`minijax.explain`: programs as Python source."""

import importlib
import pkgutil
import re
import sys
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.extend.core.primitives
import jax.numpy
import numpy as np
import pytest

import minijax
import minijax.experimental.sparse
import minijax.export
import minijax.numpy
from minijax import explain
from minijax.core.primitive import Primitive
from minijax.explain.calls import OPAQUE
from minijax.explain.python import is_written
from tests.cases.loop_programs import PROGRAMS as LOOPS
from tests.cases.platform_programs import MESHED
from tests.cases.programs import PROGRAMS
from tests.cases.written_programs import OURS
from tests.cases.written_programs import PROGRAMS as OF_ALL_KINDS
from tests.on_gpu import PROGRAMS as ON_PLATFORMS
from tests.on_gpu import arguments

X = np.array([0.3, -0.7, 1.9], np.float32)
IMAGE = np.sin(np.arange(32, dtype=np.float32)).reshape(1, 2, 4, 4)
KERNEL = np.cos(np.arange(54, dtype=np.float32)).reshape(3, 2, 3, 3)
MATRIX = np.array([[2.0, 0.5, 0.1], [0.4, 3.0, -0.2], [0.0, 0.3, 1.0]], np.float32)

CASES = {}  # name: (function of a library that makes a function, arguments)


def case(*args):
    def add(make):
        CASES[make.__name__.strip("_")] = make, args
        return make

    return add


def _total(f):
    """The sum of the float leaves of a program's results."""

    def total(m, x):
        leaves = m.tree.leaves(f(x))
        return sum(y.sum() for y in leaves if m.numpy.issubdtype(y.dtype, m.numpy.floating))

    return total


FORWARD = [
    "trigonometry",
    "polynomial",
    "where",
    "clip",
    "mean_and_variance",
    "argmax",
    "cumulative",
    "sort",
    "gathering",
    "scatter_add",
    "dynamic_slice",
    "dynamic_update",
    "einsum",
    "convolution",
    "conversion",
    "complex_parts",
    "tree_output",
    "integer_output",
    "closure_constant",
    "padding",
]
for _name in FORWARD:
    CASES[_name] = PROGRAMS[_name], (X,)
GRADIENTS = [
    "switch",
    "cond",
    "scan",
    "scan_with_constants",
    "reversed_scan",
    "mapping",
    "inner_jit",
    "custom_jvp",
    "custom_vjp",
    "checkpointed",
    "loop_of_conditionals",
    "layered_network",
    "fori_loop",
    "while_loop",
]
for _name in GRADIENTS:
    CASES[_name] = (
        (
            lambda m, make=PROGRAMS[_name]: (
                lambda x: (
                    make(m)(x),
                    m.grad(partial(_total(make(m)), m))(x),
                )
            )
        ),
        (X,),
    )
for _name in ("within_all", "carried"):
    CASES[f"loop_{_name}"] = (
        (lambda m, f=LOOPS[_name]: m.vmap(m.value_and_grad(partial(f, m)))),
        (np.arange(16, dtype=np.float32).reshape(2, 8) / 8,),
    )


@case({"w": MATRIX, "b": (X, X)}, X)
def trees(m):
    return lambda p, x: {"y": m.nn.relu(p["w"] @ x + p["b"][0]), "rest": [p["b"][1] * 2, (x,)]}


@case(IMAGE, KERNEL)
def network_of_convolutions(m):
    def loss(image, kernel):
        y = m.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")
        y = m.lax.reduce_window(y, -np.inf, m.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        y = m.lax.reduce_window(y, 0.0, m.lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "SAME")
        return m.nn.logsumexp(y)

    return m.grad(loss, (0, 1))


@case(X)
def windows_of_small_numbers(m):
    def run(x):
        kinds = m.numpy.int8, m.numpy.bool_, m.numpy.float8_e4m3fn  # the last has no infinity
        starts = np.int8(127), np.True_, np.array(448, m.numpy.float8_e4m3fn)
        return [
            m.lax.reduce_window(x.astype(kind), most, m.lax.min, (2,), (1,), "SAME")
            for kind, most in zip(kinds, starts, strict=True)
        ]

    return run


@case()
def random_numbers(m):
    def draw():
        keys = m.random.split(m.random.fold_in(m.random.key(3), 4), 3)
        many = m.vmap(lambda k: m.random.uniform(k, (2,)))(keys)
        return m.random.normal(keys[0], (3,)), m.random.randint(keys[1], (4,), 0, 9), many

    return draw


@case(np.uint32([1, 2]))
def raw_key(m):
    return lambda key: m.random.permutation(m.random.wrap_key_data(key), 5)


@case(MATRIX)
def linear_algebra(m):
    def run(a):
        s = a @ a.T + m.numpy.eye(3)
        la = m.numpy.linalg
        return (
            la.cholesky(s),
            la.solve(a, a[0]),
            tuple(la.eigh(s)),
            la.qr(a)[1],
            tuple(la.svd(s)),
            la.det(a),
        )

    return run


@case(X)
def large_constant(m):
    table = np.linspace(0, 1, 300, dtype=np.float32).reshape(3, 100)
    return lambda x: x @ table


@case(X)
def low_precision(m):
    half = np.array([1.5, -0.0, np.inf]).astype(m.numpy.bfloat16)
    return lambda x: (x.astype(m.numpy.bfloat16) * half + 0.5, x > 0, m.numpy.isnan(x * np.nan))


@case(X)
def own_reduction(m):
    return lambda x: (m.lax.reduce(x, 1.0, lambda a, b: a * b + a, (0,)), m.lax.top_k(x, 2))


@case(X)
def spectrum(m):
    return lambda x: m.numpy.abs(m.numpy.fft.fft(x))


@case(X)
def named_residuals(m):
    keep = m.checkpoint_policies.dots_saveable
    return lambda x: m.checkpoint(lambda y: m.numpy.sin(y) * y, policy=keep)(x)


@case(np.arange(8, dtype=np.float32).reshape(4, 2))
def across_devices(m):
    mesh = m.sharding.Mesh(np.array(m.devices()[:2]), ("i",))
    count = mesh.size
    spec = m.sharding.PartitionSpec("i")

    def per_shard(x):
        total = m.lax.psum(x, "i") * m.lax.axis_index("i")
        shifted = m.lax.ppermute(x, "i", [(i, (i + 1) % count) for i in range(count)])
        every = m.lax.all_gather(x, "i", tiled=True).sum(0)
        return total + shifted + every + m.lax.pmax(m.lax.stop_gradient(x), "i")

    f = m.shard_map(per_shard, mesh=mesh, in_specs=spec, out_specs=spec)
    return m.value_and_grad(lambda x: (f(x) ** 2).sum())


@case(MATRIX, np.int32(1))
def references(m):
    def run(x, i):
        ref, other = m.new_ref(x), m.ref.empty_ref(m.ShapeDtypeStruct((3,), x.dtype))
        ref[i] += 1
        ref[1:3, 0] = x[:2, 1]
        ref[np.array([0, 2]), i] = x[0, :2]
        other[...] = ref[2, ::1]
        m.ref.addupdate(ref, (i,), other[...])
        before = m.ref.swap(ref, (slice(0, 2),), ref[:2] * 2)
        return before, m.ref.freeze(ref), m.ref.freeze(other)

    return run


@case(MATRIX)
def references_in_loops(m):
    def run(x):
        total, last = m.new_ref(x[0] * 0), m.new_ref(m.numpy.int32(0))

        def turn(i, c):
            total[...] += x[i] * c
            m.lax.cond(i > 0, lambda: m.ref.set(last, (), i), lambda: None)
            return c + total[0]

        c = m.lax.fori_loop(0, 3, turn, 1.0)
        c = m.lax.while_loop(lambda c: c < 90, lambda c: c + total[0], c)
        return c, total[...], last[...]

    return run


@case(np.arange(12, dtype=np.float32), np.int32(1))
def windows_of_references(m):
    ds = importlib.import_module(f"{m.__name__}.experimental.pallas").ds

    def run(x, i):
        ref = m.new_ref(x.reshape(6, 2))
        ref[ds(i, 2)] = ref[ds(i * 2, 2)] * 3
        return ref[ds(0, 2, 2)], ref[...]

    return run


@case(MATRIX, MATRIX[0], MATRIX[1], X)
def arguments_with_names_of_the_text(m):
    def run(xs, carry, consts, x):
        def turn(c, i):
            return c + xs[i] * carry + consts, c * carry

        ys = m.lax.scan(turn, x, m.numpy.arange(3))
        zs = m.lax.while_loop(lambda c: (c < x + 9).any(), lambda c: c + carry * consts + 1, x)
        each = m.vmap(lambda c, d: m.lax.while_loop(lambda c: c < d, lambda c: c + carry[0], c))
        solved = m.numpy.linalg.solve(xs, x), m.vmap(m.numpy.linalg.solve, (None, 0))(xs, xs)
        return ys, zs, each(consts, consts + carry), solved

    return run


def _same(found, wanted, ulp=0):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if ulp and a.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=ulp * np.finfo(a.dtype).eps, atol=1e-6)
        else:
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_source_runs_to_the_same_results(name):
    """Bitwise under minijax; under upstream as far as the two compute the same."""
    make, args = CASES[name]
    f = make(minijax)
    source = explain.to_python(f, *args)
    made = source.function()
    found, wanted = minijax.jit(made)(*args), minijax.jit(f)(*args)
    assert minijax.tree.structure(found) == minijax.tree.structure(wanted)
    _same(minijax.tree.leaves(found), minijax.tree.leaves(wanted))
    theirs = jax.jit(source.under("jax").function())(*args)
    _same(jax.tree.leaves(theirs), minijax.tree.leaves(wanted), ulp=16)


# -- callbacks: `f(m, tell)` of a library, and what is told of what the program calls ---------------


def _calls(m, tell):
    def scaled(x, by=1.0, tree=None):
        return np.asarray(x) * np.asarray(by) + (0 if tree is None else np.asarray(tree["b"][0]))

    def two(x):
        return {"sum": np.asarray(x).sum(), "all": np.asarray(x) + 1}

    def run(x):
        like = m.ShapeDtypeStruct(x.shape, x.dtype)
        one = m.ShapeDtypeStruct((), x.dtype)
        y = m.pure_callback(scaled, like, x, by=x[0], tree={"b": [x, (x[1],)], "a": None})
        both = m.pure_callback(two, {"sum": one, "all": like}, y)
        return y, both, m.pure_callback(lambda: np.int32(7), m.ShapeDtypeStruct((), np.int32))

    return run


def _mapped_calls(method):
    def make(m, tell):
        def summed(x, y):
            return (np.asarray(x) * np.asarray(y)).sum(-1).astype(np.float32)

        def run(x):
            one = m.ShapeDtypeStruct((), x.dtype)
            call = lambda r, y: m.pure_callback(summed, one, r, y, vmap_method=method)
            return m.vmap(call, in_axes=(0, None))(x[:, None] * x, x)

        return run

    return make


def _ordered(m, tell):
    io_callback = importlib.import_module(f"{m.__name__}.experimental").io_callback
    like = m.ShapeDtypeStruct((), np.float32)

    def counted(x):
        tell("counted", np.asarray(x).tolist())
        return np.float32(x) + 1

    def run(x):
        def turn(c, row):
            c = io_callback(counted, like, c + row, ordered=True)
            m.lax.cond(
                c > 2,
                lambda c: m.debug.callback(lambda c: tell("large", float(c)), c),
                lambda c: None,
                c,
            )
            return c, c

        c, cs = m.lax.scan(turn, np.float32(0), x)
        io_callback(lambda *xs: tell("none", len(xs)), None, c, cs, ordered=True)
        return (
            c,
            cs,
            m.lax.while_loop(lambda c: c < 9, lambda c: io_callback(counted, like, c * 2), c),
        )

    return run


class _Pair(NamedTuple):
    first: Any
    second: Any


def _buffers(m, tell):
    module = importlib.import_module(f"{m.__name__}.experimental.buffer_callback")
    like = lambda *shape: m.ShapeDtypeStruct(shape, np.float32)

    def call(f, results, **options):
        return module.buffer_callback(f, results, **options)

    def two(context, out, x, *, by):
        tell("two", np.asarray(by[0]).tolist())
        np.asarray(out["sum"])[...] = np.asarray(x).sum()
        np.asarray(out["all"][0])[...] = np.asarray(x) * np.asarray(by[0])

    def doubled(context, out, x):
        tell("doubled", np.asarray(x).tolist())
        np.asarray(out)[...] = np.asarray(x) * 2

    def exchanged(context, out, pair):
        np.asarray(out.first)[...] = np.asarray(pair.second)
        np.asarray(out.second)[...] = np.asarray(pair.first)

    def increased(context, out, x):
        np.asarray(out)[...] += 1

    def run(x):
        y = call(two, {"sum": like(), "all": (like(*x.shape),)})(x, by=[x[0]])
        pair = call(exchanged, _Pair(like(*x.shape), like()))(_Pair(y["sum"], y["all"][0]))
        call(doubled, like(*x.shape), has_side_effect=True)(pair.first)
        written = call(increased, like(*x.shape), input_output_aliases={0: 0})(x + 1)
        mapped = [
            m.vmap(call(doubled, like(), vmap_method=method))(x)
            for method in ("sequential", "broadcast_all")
        ]
        return y, pair, written, mapped

    return run


def _gradient(m, tell):
    @m.custom_jvp
    def f(x):
        return m.pure_callback(
            lambda x: np.sin(np.asarray(x)), m.ShapeDtypeStruct(x.shape, x.dtype), x
        )

    f.defjvp(lambda xs, ts: (f(*xs), m.numpy.cos(xs[0]) * ts[0]))

    def run(x):
        def loss(x):
            m.debug.print("loss at {}", x, ordered=True)
            m.debug.callback(
                lambda x, name, *, by: tell(name, np.asarray(by[0]).tolist()), x, "by", by=[x]
            )
            return f(x * 2).sum()

        return m.value_and_grad(loss)(x)

    return run


def _prints(m, tell):
    def run(x):
        say = partial(m.debug.print, ordered=True)
        say("x={x} {} {{}} {:.3f} {s}", x[:1], x[1], x=x, s="text")
        say("nothing {{}}")
        say("{0} {1[a]} {0}", x[0], {"a": x[1]})
        say("unused {0}", x[0], x[1], skip_format_check=True)
        with np.printoptions(precision=2, suppress=True):
            say("rounded {x}", x=x)
        m.lax.fori_loop(0, 2, lambda i, c: (say("turn {i} {c}", i=i, c=c), c * 2)[1], x[0])
        m.vmap(lambda r: m.debug.print("row {}", r) or r)(x)
        return x

    return run


CALLBACKS = {
    "buffers": _buffers, "values": _calls, "in order": _ordered, "under grad": _gradient, "prints": _prints,
    **{f"mapped {method}": _mapped_calls(method) for method in
       ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_are_called_as_by_the_program(name, capsys):
    told = []

    def outcome(m, f):
        told.clear()
        results = m.jit(f)(X)
        m.effects_barrier()
        leaves = [np.asarray(x) for x in m.tree.leaves(results)]
        return leaves, sorted(map(str, told)), sorted(capsys.readouterr().out.splitlines())

    f = CALLBACKS[name](minijax, lambda *what: told.append(what))
    wanted, said, printed = outcome(minijax, f)
    source = explain.to_python(f, X)
    for m in (minijax, jax):
        found, says, prints = outcome(m, source.under(m.__name__).function())
        _same(found, wanted, ulp=0 if m is minijax else 16)
        assert (says, prints) == (said, printed)
    assert bool(source.callbacks) == ("callbacks[" in source)


def test_callbacks_that_are_given_take_the_place_of_those_of_the_program():
    def doubled(x):
        return np.asarray(x) * 2

    f = lambda x: minijax.pure_callback(doubled, minijax.ShapeDtypeStruct(x.shape, x.dtype), x)
    source = explain.to_python(f, X)
    assert source.callbacks == {"doubled": doubled}
    np.testing.assert_array_equal(source.function()(X), X * 2)
    given = source.function({"doubled": lambda x: np.asarray(x) * 3})
    np.testing.assert_array_equal(given(X), X * np.float32(3))


# -- all primitives ----------------------------------------------------------------------------------


def test_every_primitive_is_written_or_has_a_reason():
    for found in pkgutil.walk_packages(minijax.__path__, "minijax."):
        if not re.search(r"__main__|^minijax\.(jax|difftest)\b", found.name):
            importlib.import_module(found.name)
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("minijax.")]
    known = {p for m in modules for p in vars(m).values() if isinstance(p, Primitive)}
    assert len(known) > 250
    assert not {p.name for p in known if not is_written(p)} - {p.name for p in OPAQUE}
    assert not [p for p in OPAQUE if is_written(p)]


def _text(jaxpr):
    """A jaxpr but for what the text may write otherwise: sums of cotangents, and names."""
    text = re.sub(r"\badd_any\b", "add", re.sub(r"0x[0-9a-f]+", "", str(jaxpr)))
    return re.sub(r"\b(name|bwd|fwd|jvp\w*)=\S+|\blet \w+ =", "", text)


def _primitives(jaxpr, found):
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        found.add(eqn.primitive.name)
        for program in eqn.primitive.programs.all(eqn.params) if eqn.primitive.programs else ():
            _primitives(program, found)
    return found


def _types(jaxpr):
    return [(a.shape, str(a.dtype), a.weak_type) for a in jaxpr.out_avals]


def test_programs_of_all_platforms_are_written():
    """Each has the types of the program; where its jaxpr is another one and has a primitive that was
    not compared before, it is run for its bits.
    """
    compiled, wrong, count = set(), [], 0
    with minijax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function, types in [*ON_PLATFORMS, *MESHED]:
            f, args = partial(function, minijax), arguments(name, types)
            try:
                jaxpr = minijax.make_jaxpr(f)(*args)
            except (RuntimeError, TypeError):  # what this platform, or any, refuses
                continue
            count += 1
            made = explain.to_python(f, *args).function()
            again = minijax.make_jaxpr(made)(*args)
            same = _types(jaxpr) == _types(again)
            if same and _text(jaxpr) != _text(again):
                new = _primitives(jaxpr, set()) - compiled
                if new:
                    compiled |= new
                    same = _bits(f, args) == _bits(made, args)
            wrong += [] if same else [name]
    assert not wrong
    assert count > 850


def _bits(f, args):
    return [np.asarray(x).tobytes() for x in minijax.tree.leaves(minijax.jit(f)(*args))]


@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_calls_of_all_kinds_are_written(name):
    """Types and bits are the program's; under upstream the types."""
    function, args = OF_ALL_KINDS[name]
    f = partial(function, minijax)
    jaxpr = minijax.make_jaxpr(f)(*args)
    source = explain.to_python(f, *args)
    made = source.function()
    assert _types(minijax.make_jaxpr(made)(*args)) == _types(jaxpr)
    if name != "foreign":
        assert _bits(made, args) == _bits(f, args)
    if name not in OURS:
        assert _types(jax.make_jaxpr(source.under("jax").function())(*args)) == _types(jaxpr)


def test_the_mesh_of_a_shard_map_is_in_force_within_it():
    mesh = minijax.sharding.Mesh(
        np.array(minijax.devices()[:1]), ("i",), axis_types=(minijax.sharding.AxisType.Explicit,)
    )
    spec = minijax.sharding.PartitionSpec

    def squares(x):
        gathered = minijax.lax.all_gather(x * x, "i", tiled=True, to="reduced")
        return gathered.sum()

    def f(x):
        total = minijax.shard_map(squares, in_specs=spec("i"), out_specs=spec(reduced={"i"}))
        return minijax.grad(total)(minijax.sharding.reshard(x, spec("i")))

    with minijax.set_mesh(mesh):
        source = explain.to_python(f, X)
        np.testing.assert_array_equal(minijax.jit(source.function())(X), X * 2)
    assert "reduced={'i'}" in source and "AbstractMesh" not in source
