"""`jax.export` against upstream: what an exported function says of itself, gives, and refuses."""

import collections
import os
import re
import subprocess
import sys

import jax
import jax.export
import numpy as np
import pytest

import minijax
import minijax.export
from tests.harness import upstream
from tests.harness.differential import BOTH, assert_same, x64
from tests.harness.rules import in_both, outcome

pytestmark = pytest.mark.both_ends

SINGLE = np.float32(1.5)
ROW = np.arange(3, dtype=np.float32)
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def devices(j, count=4, first=0):
    found = np.array(j.devices()[first : first + count])
    return j.sharding.Mesh(found, ("x",))


def split(j, mesh, *parts):
    return j.sharding.NamedSharding(mesh, j.P(*parts))


# Each makes, of a library, a jitted function and the arguments to export it for.
PROGRAMS = {
    "elements": lambda j: (j.jit(lambda x: j.numpy.sin(x) + 1), (ROW,), {}),
    "weak": lambda j: (j.jit(lambda x, y: x * y), (1.0, 2), {}),
    "tree": lambda j: (j.jit(lambda d: {"b": d["a"][0], "c": None}), ({"a": [ROW, (TABLE,)]},), {}),
    "keywords": lambda j: (j.jit(lambda x, *, y: x - y), (ROW,), {"y": SINGLE}),
    "integers": lambda j: (j.jit(lambda x, n: (x * n, n)), (ROW, np.int32(3)), {}),
    "nothing": lambda j: (j.jit(lambda: j.numpy.ones(2)), (), {}),
    "no result": lambda j: (j.jit(lambda x: None), (ROW,), {}),
    "unused": lambda j: (j.jit(lambda x, y: x * 2), (ROW, TABLE), {}),
    "unused kept": lambda j: (j.jit(lambda x, y: x * 2, keep_unused=True), (ROW, TABLE), {}),
    "empty": lambda j: (j.jit(lambda x: (x, x.sum(0))), (np.ones((0, 3), np.float32),), {}),
    "large constant": lambda j: (j.jit(lambda x: x + np.arange(9999.0)), (SINGLE,), {}),
    "loop": lambda j: (
        j.jit(lambda x: j.lax.fori_loop(0, 5, lambda i, c: c * 2 + i, x)), (ROW,), {}
    ),
    "solve": lambda j: (j.jit(j.numpy.linalg.solve), (TABLE[:, :2] + np.eye(2, dtype=np.float32), TABLE), {}),
    "custom rule": lambda j: (j.jit(j.nn.relu), (ROW - 1,), {}),
    "remat": lambda j: (j.jit(j.checkpoint(lambda x: j.numpy.sin(j.numpy.sin(x)))), (ROW,), {}),
    "types": lambda j: (j.jit(lambda x: x @ x.T), (j.ShapeDtypeStruct((2, 3), np.float32),), {}),
    "sorting": lambda j: (j.jit(lambda x: j.lax.top_k(x, 2)), (ROW,), {}),
    "bfloat16": lambda j: (j.jit(lambda x: x * 2), (ROW.astype(j.numpy.bfloat16),), {}),
    "complex": lambda j: (j.jit(lambda x: x * 2j), (ROW.astype(np.complex64),), {}),
    "bool": lambda j: (j.jit(lambda x: ~x), (ROW > 1,), {}),
}  # fmt: skip

SAID = (
    "fun_name", "nr_devices", "platforms", "module_kept_var_idx", "uses_global_constants",
    "calling_convention_version", "ordered_effects", "unordered_effects", "disabled_safety_checks",
    "in_shardings_hlo", "out_shardings_hlo", "_in_named_shardings", "_out_named_shardings",
)  # fmt: skip


def exported(j, name, **options):
    fun, args, kwargs = PROGRAMS[name](j)
    return j.export.export(fun, **options)(*args, **kwargs)


def said(one):
    """What can be compared of an exported function between the libraries."""
    trees = [str(one.in_tree), str(one.out_tree)]
    avals = [
        [(a.str_short().lstrip("~"), a.weak_type) for a in avals]
        for avals in (one.in_avals, one.out_avals)
    ]
    return {name: str(getattr(one, name)) for name in SAID}, trees, avals, str(one), one.has_vjp()


def values(args, kwargs):
    filled = lambda x: np.ones(x.shape, x.dtype) if not isinstance(x, (float, int)) else x
    fill = lambda x: filled(x) if hasattr(x, "aval") or hasattr(x, "sharding") else x
    return minijax.tree.map(fill, (args, kwargs))


def called(j, name, wrap=lambda f: f, keep=False):
    fun, args, kwargs = PROGRAMS[name](j)
    one = j.export.export(fun)(*args, **kwargs)
    if keep:
        one = j.export.deserialize(one.serialize(vjp_order=1))
    args, kwargs = values(args, kwargs)
    return wrap(one.call)(*args, **kwargs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_it_says(name):
    ours, theirs = (said(exported(j, name)) for j in (minijax, jax))
    assert ours == theirs


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls(name):
    theirs = called(jax, name)
    assert_same(called(minijax, name), theirs)
    assert_same(called(minijax, name, minijax.jit), theirs)
    assert_same(called(minijax, name, keep=True), theirs, weak=False)


@pytest.mark.parametrize(
    "name", ["elements", "weak", "tree", "integers", "unused", "loop", "remat"]
)
def test_derivatives(name):
    assert said(exported(minijax, name).vjp()) == said(exported(jax, name).vjp())

    def pulled(j, keep=False):
        fun, args, kwargs = PROGRAMS[name](j)
        one = j.export.export(fun)(*args, **kwargs)
        if keep:
            one = j.export.deserialize(one.serialize(vjp_order=1))
        run = lambda *xs: j.tree.leaves(one.call(*xs))[0].sum()
        return j.grad(run)(*args), j.jit(j.grad(run))(*args)

    if name == "loop":
        assert_same(pulled(minijax), pulled(jax))
        return
    assert_same(pulled(minijax), pulled(jax))
    assert_same(pulled(minijax, keep=True), pulled(jax), weak=False)


def test_orders_of_derivatives():
    one = exported(minijax, "weak")
    kept = minijax.export.deserialize(one.serialize(vjp_order=2))
    twice = minijax.grad(minijax.grad(lambda x: kept.call(x, 2) ** 2))(3.0)
    np.testing.assert_allclose(twice, 8.0)
    assert kept.vjp().has_vjp() and not kept.vjp().vjp().has_vjp()
    for order in (0, -1):
        bare = minijax.export.deserialize(one.serialize(vjp_order=order))
        with pytest.raises(ValueError, match="No VJP is available"):
            bare.vjp()


def test_printing():
    def shown(j, wrap):
        one = exported(j, "integers")
        return str(j.make_jaxpr(wrap(j, lambda x: one.call(x, np.int32(2))[0].sum()))(ROW))

    for wrap in (lambda j, f: f, lambda j, f: j.grad(f)):
        assert shown(minijax, wrap) == shown(jax, wrap)


DTYPES = [
    "int4",
    "uint4",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "uint8",
    "int2",
    "float8_e8m0fnu",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept(dtype):
    x = minijax.numpy.ones(4, dtype)
    one = minijax.export.export(minijax.jit(lambda x: x.reshape(2, 2)))(x)
    out = minijax.export.deserialize(one.serialize()).call(x)
    assert out.dtype == x.dtype and out.shape == (2, 2)


def test_wide_numbers():
    with x64(True):
        in_both(lambda j: j.export.export(j.jit(lambda x: x * 2))(np.ones(2)).call(np.ones(2)))


def test_keys():
    def run(j):
        key = j.random.key(0)
        fun = j.jit(lambda k: (j.random.key_data(j.random.split(k)), j.random.uniform(k)))
        one = j.export.export(fun, platforms=("tpu", "cpu"))(key)
        if j is minijax:
            one = j.export.deserialize(one.serialize())
        return one.call(key)

    assert_same(run(minijax), run(jax))


# -- refusals --------------------------------------------------------------------------------------


def _foreign(j, **options):
    call = lambda x: j.ffi.ffi_call("foo_bar", j.ShapeDtypeStruct((), np.float32))(x)
    return j.export.export(j.jit(call), **options)(SINGLE)


REFUSED = {
    "no jit": lambda j: j.export.export(lambda x: x),
    "shape": lambda j: exported(j, "elements").call(TABLE[0, :2]),
    "shape in a tree": lambda j: exported(j, "tree").call({"a": [ROW, (TABLE.T,)]}),
    "shape by keyword": lambda j: exported(j, "keywords").call(ROW, y=ROW),
    "dtype": lambda j: exported(j, "elements").call(ROW.astype(np.int32)),
    "rank": lambda j: exported(j, "elements").call(SINGLE),
    "too few": lambda j: exported(j, "integers").call(ROW),
    "a list": lambda j: exported(j, "elements").call([ROW]),
    "another tree": lambda j: exported(j, "tree").call((ROW,)),
    "platform": lambda j: exported(j, "elements", platforms=("tpu",)).call(ROW),
    "platform, traced": lambda j: j.jit(exported(j, "elements", platforms=("tpu",)).call)(ROW),
    "platform, nested": lambda j: j.export.export(
        j.jit(exported(j, "elements").call), platforms=("cpu", "tpu")
    )(ROW),
    "no such platform here": lambda j: exported(j, "elements", platforms=("gpu",)),
    "vmap": lambda j: j.vmap(exported(j, "elements").call)(TABLE),
    "jvp": lambda j: j.jvp(exported(j, "elements").call, (ROW,), (ROW,)),
    "key of another kind": lambda j: j.export.export(j.jit(j.random.uniform))(j.random.key(0)).call(
        j.random.key(0, impl="rbg")
    ),
    "foreign function": _foreign,
    "foreign function, nested": lambda j: j.export.export(
        j.jit(
            _foreign(j, disabled_checks=[j.export.DisabledSafetyCheck.custom_call("foo_bar")]).call
        )
    )(SINGLE),
    "callback": lambda j: j.export.export(j.jit(lambda x: j.pure_callback(np.sin, x, x)))(ROW),
    "debug": lambda j: j.export.export(j.jit(lambda x: j.debug.print("{}", x)))(ROW),
    "reference": lambda j: j.export.export(j.jit(lambda r: r[...]))(j.new_ref(j.numpy.ones(2))),
    **{
        f"constraint {text}": lambda j, text=text: j.export.symbolic_shape("a", constraints=[text])
        for text in ("3 >= 4", "3 == 4", "4 <= 3", "a - a >= 1", "a > 1")
    },
    "set": lambda j: setattr(exported(j, "elements"), "fun_name", "a"),
    "static again": lambda j: j.export.export(j.jit(lambda x, n: x * n, static_argnums=1))(
        ROW, 3
    ).call(ROW, 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    """The same class of error, and upstream's words, in which addresses and places are left out."""
    check_refusal(REFUSED[name], name)


def check_refusal(run, name):
    ours, theirs = (outcome(run, j)[1] for j in (minijax, jax))
    assert theirs is not None and ours is not None, (theirs, ours)
    classes = [cls.__name__ for cls in type(ours).__mro__]
    assert type(theirs).__name__ in classes, (theirs, ours)
    if type(theirs) is not ValueError or "foreign" in name:
        return
    plain = lambda e: re.sub(r"0x[0-9a-f]+|https:\S+|\s+", "", str(e))
    assert plain(ours).startswith(plain(theirs)), (theirs, ours)


def test_checks_that_are_left_out():
    for j in BOTH:
        check = j.export.DisabledSafetyCheck
        one = exported(j, "elements", platforms=("tpu",), disabled_checks=[check.platform()])
        assert_same(one.call(ROW), np.sin(ROW) + 1)
        assert repr(check.platform()) == "platform" and check.platform() == check.platform()
        assert check.custom_call("f").is_custom_call() == "f"
        assert check.platform().is_custom_call() is None
    one = _foreign(minijax, disabled_checks=[check.custom_call("foo_bar")])
    kept = minijax.export.deserialize(one.serialize())
    assert kept.disabled_safety_checks == (check.custom_call("foo_bar"),)


TARGETS = [
    "lapack_sgetrf_ffi", "lapack_sormqr_ffi", "lapack_cgeqp3_ffi", "cusolver_syevd_ffi", "Sharding",
    "cusolver_syevj_ffi", "hipsolver_gesvd_ffi", "Eigh", "cu_threefry2x32", "tpu_custom_call",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_stable_targets(target):
    def run(j):
        shape = j.ShapeDtypeStruct((), np.float32)
        call = j.ffi.ffi_call(target, shape, custom_call_api_version=2)
        return str(j.export.export(j.jit(call))(SINGLE).platforms)

    ours, theirs = (outcome(run, j) for j in (minijax, jax))
    assert ours[0] == theirs[0] and type(ours[1]) is type(theirs[1])


_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)


def _places(text):
    """What a module calls arguments and results, and names of operations with their line and column."""
    aliases = dict(_ALIAS.findall(text))

    def line(where):
        found = re.search(r'"[^"]*\.py":(\d+:\d+)|#loc\d+', where)
        return found and (found[1] or line(aliases[found[0]]))

    named = re.compile(r'"(jit\([^"]*)"\((#loc\d+)\)')
    found = filter(None, map(named.fullmatch, aliases.values()))
    places = {(one[1], line(one[2])) for one in found}
    head = next(part for part in text.split("\n") if "@main(" in part)
    return (
        re.findall(r'loc\("([^"]*)"\)', head),
        re.findall('result_info = "([^"]*)"', head),
        places,
    )


@pytest.mark.parametrize("made", ["exported", "lowered"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_names_and_places(name, made):
    def run(j):
        if made == "exported":
            return _places(exported(j, name).mlir_module())
        fun, args, kwargs = PROGRAMS[name](j)
        return _places(fun.lower(*args, **kwargs).as_text(debug_info=True))

    ours, theirs = run(minijax), run(jax)
    if (name, made) == ("large constant", "lowered"):  # large ones are arguments of ours
        assert ours[0].pop(0) == "a constant"
    assert ours[:2] == theirs[:2]
    names = {operation for operation, _ in theirs[2]}
    # Upstream's bodies of loops are functions, whose operations are named from the body on.
    common = {one for one in ours[2] if one[0] in names and "/body/" not in one[0]}
    assert common <= theirs[2]
    assert common or name not in ("elements", "weak", "integers", "bool", "loop")


# -- platforms -------------------------------------------------------------------------------------


def test_platforms():
    def run(j):
        choose = lambda x: j.lax.platform_dependent(x, cpu=j.numpy.sin, default=j.numpy.cos)
        one = j.export.export(j.jit(choose), platforms=("tpu", "cpu", "cuda"))(ROW)
        nested = j.export.export(j.jit(lambda x: one.call(x) * 2), platforms=("cpu", "cuda"))(ROW)
        assert one.uses_global_constants and one.platforms == ("tpu", "cpu", "cuda")
        assert "_platform_index" in one.mlir_module()
        return one.call(ROW), nested.call(ROW), j.grad(lambda x: one.call(x).sum())(ROW)

    assert_same(run(minijax), run(jax))
    assert minijax.export.default_export_platform() == jax.export.default_export_platform()


@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "tpu")])
@pytest.mark.parametrize("shape", ["3", "a", "a, 3"])
def test_modules_say_whether_they_are_polymorphic(shape, platforms):
    def run(j):
        x = j.ShapeDtypeStruct(j.export.symbolic_shape(shape), np.float32)
        traced = j.jit(lambda x: x * 2)
        texts = (
            j.export.export(traced, platforms=platforms)(x).mlir_module(),
            traced.trace(ROW).lower(lowering_platforms=platforms).as_text(),
        )
        return [re.findall(r"jax\.uses_shape_polymorphism = \w+", text) for text in texts]

    assert run(minijax) == run(jax)


def test_platforms_of_a_function_without_arguments():
    def run(j):
        return j.export.export(j.jit(lambda: j.numpy.arange(3)), platforms=("cuda", "cpu"))().call()

    assert_same(run(minijax), run(jax))


def test_one_program_for_platforms_that_agree():
    text = exported(minijax, "elements", platforms=("cpu", "cuda", "tpu")).mlir_module()
    assert text.count("stablehlo.sine") == 1 and "stablehlo.case" not in text


@pytest.mark.parametrize("place", range(3))
def test_platforms_of_several_results_and_constants(place):
    platforms = ("tpu", "cuda", "cpu")[place:] + ("tpu", "cuda", "cpu")[:place]

    def run(j):
        cpu, other = lambda x, y: (x + 1, y["a"]), lambda x, y: (x * np.arange(3.0), y["a"] - 1)
        fun = j.jit(lambda x, y: j.lax.platform_dependent(x, y, cpu=cpu, default=other))
        return j.export.export(fun, platforms=platforms)(ROW, {"a": SINGLE}).call(
            ROW, {"a": SINGLE}
        )

    assert_same(run(minijax), run(jax))


# -- devices ---------------------------------------------------------------------------------------

many = pytest.mark.skipif(
    jax.device_count() < 8, reason="run by test_over_devices in a process of eight devices"
)


def test_over_devices():
    """What is marked `many`, in a process with as many devices."""
    names = "shardings or over_devices or on_many or manual"
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        f"({names}) and not test_over_devices",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env=os.environ | upstream.devices(8), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout


def _split(j, mesh=None):
    mesh = mesh or devices(j)
    places = {
        "in_shardings": (split(j, mesh, "x"), None),
        "out_shardings": (split(j, mesh, "x"), split(j, mesh)),
    }
    fun = j.jit(lambda a, b: (a * b, b.sum()), **places)
    shape = j.ShapeDtypeStruct((8,), np.float32)
    return j.export.export(fun)(shape, shape)


REFUSED_OVER_DEVICES = {
    "devices": lambda j: _split(j).call(ROW[:1]),
    "other devices": lambda j: _split(j).call(
        j.device_put(np.ones(8, np.float32), split(j, devices(j, 2), "x")),
        j.device_put(np.ones(8, np.float32), split(j, devices(j, 2), "x")),
    ),
    "another mesh": lambda j: _split(j).in_shardings_jax(devices(j, 2)),
}


@many
@pytest.mark.parametrize("name", REFUSED_OVER_DEVICES)
def test_refusals_over_devices(name):
    check_refusal(REFUSED_OVER_DEVICES[name], name)


@many
def test_shardings():
    ours, theirs = (said(_split(j)) for j in (minijax, jax))
    assert ours == theirs
    assert said(_split(minijax).vjp()) == said(_split(jax).vjp())

    def run(j, keep=False):
        one, mesh = _split(j), devices(j, 4, 4)
        if keep:
            one = j.export.deserialize(one.serialize(vjp_order=1))
        x = j.device_put(np.arange(8.0, dtype=np.float32), split(j, mesh, "x"))
        out = one.call(x, x)
        pulled = j.grad(lambda a: one.call(a, x)[0].sum())(x)
        places = [str(s) for s in (*one.in_shardings_jax(mesh), *one.out_shardings_jax(mesh))]
        return (out, pulled), [str(y.sharding) for y in out], places

    for keep in (False, True):
        (ours, *rest), (theirs, *others) = run(minijax, keep), run(jax)
        assert_same(ours, theirs)
        assert rest == others


@many
def test_shardings_of_arguments_decide():
    def run(j, where):
        given = j.ShapeDtypeStruct((8,), np.float32, sharding=where(j))
        return said(j.export.export(j.jit(lambda x: x * 2))(given))

    abstract = lambda j: split(j, j.sharding.AbstractMesh((4,), ("x",)), "x")
    for where in (lambda j: split(j, devices(j), "x"), abstract):
        assert run(minijax, where)[0]["nr_devices"] == run(jax, where)[0]["nr_devices"] == "4"


@many
def test_one_device_on_many():
    def run(j):
        x = j.device_put(np.arange(8.0, dtype=np.float32), split(j, devices(j), "x"))
        out = j.export.export(j.jit(lambda x: x * 2))(np.arange(8.0, dtype=np.float32)).call(x)
        return out, str(out.sharding)

    (ours, place), (theirs, other) = run(minijax), run(jax)
    assert_same(ours, theirs)
    assert place == other


@many
def test_manual_programs():
    def run(j, keep):
        mesh = devices(j)
        body = lambda x: j.lax.psum(x, "x")
        fun = j.jit(j.shard_map(body, mesh=mesh, in_specs=j.P("x"), out_specs=j.P()))
        x = j.device_put(np.arange(4.0, dtype=np.float32), split(j, mesh, "x"))
        one = j.export.export(fun)(x)
        return (j.export.deserialize(one.serialize()) if keep else one).call(x)

    assert_same(run(minijax, True), run(jax, False))


# -- bytes -----------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "x y")


class Named:
    def __init__(self, a, b):
        self.a, self.b = a, b


class Unknown:
    pass


minijax.tree_util.register_pytree_node(Named, lambda n: ((n.a,), n.b), lambda b, c: Named(c[0], b))


def test_classes_of_trees():
    e = minijax.export
    fun = minijax.jit(lambda p, n: (Pair(p.y, p.x), Named(n.a + 1, n.b)))
    one = e.export(fun)(Pair(1.0, 2), Named(ROW, "tag"))
    with pytest.raises(ValueError, match="Cannot serialize PyTreeDef containing an unregistered"):
        one.serialize()
    assert e.register_namedtuple_serialization(Pair, serialized_name="test.Pair") is Pair
    write, read = lambda b: b.encode(), lambda data: data.decode()
    options = {"serialize_auxdata": write, "deserialize_auxdata": read}
    e.register_pytree_node_serialization(Named, serialized_name="test.Named", **options)
    for again in (
        lambda: e.register_namedtuple_serialization(Pair, serialized_name="test.Other"),
        lambda: e.register_pytree_node_serialization(dict, serialized_name="test.Pair", **options),
        lambda: e.register_namedtuple_serialization(dict, serialized_name="test.dict"),
        lambda: e.register_pytree_node_serialization(Unknown, serialized_name="u", **options),
    ):
        with pytest.raises(ValueError):
            again()
    kept = e.deserialize(one.serialize())
    assert kept.in_tree == one.in_tree and kept.out_tree == one.out_tree
    pair, named = kept.call(Pair(1.0, 2), Named(ROW, "tag"))
    assert (pair.x, pair.y, named.b) == (2, 1.0, "tag")
    np.testing.assert_array_equal(named.a, ROW + 1)


@pytest.mark.parametrize("data", ["text", 3, None])
def test_metadata_is_written_as_bytes(data):
    class Node:
        pass

    minijax.tree_util.register_pytree_node(Node, lambda n: ((1.0,), 0), lambda aux, c: Node())
    minijax.export.register_pytree_node_serialization(
        Node, serialized_name=f"test.Node {data}", serialize_auxdata=lambda aux: data,
        deserialize_auxdata=lambda written: 0,
    )  # fmt: skip
    one = minijax.export.export(minijax.jit(lambda x: Node()))(ROW)
    with pytest.raises(ValueError, match="The custom serialization function for `node_type` must"):
        one.serialize()


TREES = {
    "nested": {"a": [1.0, (2.0, None)], "b": {}, "c": ()},
    "ordered": collections.OrderedDict(b=1.0, a=2.0),
    "none": None,
}


@pytest.mark.parametrize("name", TREES)
def test_trees_are_kept(name):
    one = minijax.export.export(minijax.jit(lambda x: x))(TREES[name])
    kept = minijax.export.deserialize(one.serialize())
    assert (kept.in_tree, kept.out_tree) == (one.in_tree, one.out_tree)


def test_trees_that_are_not_kept():
    with pytest.raises(TypeError, match="only for dictionaries with string keys"):
        minijax.export.export(minijax.jit(lambda x: x))({1: 2.0}).serialize()
    given = collections.defaultdict(list, a=1.0)
    with pytest.raises(ValueError, match="unregistered type"):
        minijax.export.export(minijax.jit(lambda x: x))(given).serialize()


@pytest.mark.parametrize("damage", ["cut", "changed", "other", "empty", "version"])
def test_damaged_bytes(damage):
    blob = exported(minijax, "elements").serialize()
    bad = {
        "cut": blob[:-5], "changed": blob[:40] + bytes([blob[40] ^ 1]) + blob[41:],
        "other": b"something else altogether", "empty": b"",
        "version": blob[:7] + b"\x09" + blob[8:],
    }[damage]  # fmt: skip
    with pytest.raises(ValueError):
        minijax.export.deserialize(bad)
    assert isinstance(blob, bytearray)


def test_bytes_are_the_same_each_time():
    blobs = [exported(minijax, "tree", platforms=("cpu", "tpu")).serialize(1) for _ in BOTH]
    assert blobs[0] == blobs[1]
    assert minijax.export.deserialize(blobs[0]).serialize(1) == blobs[0]


def test_effects_are_kept():
    check = minijax.export.DisabledSafetyCheck.custom_call("foo_bar")
    shape = minijax.ShapeDtypeStruct((), np.float32)
    fun = minijax.jit(minijax.ffi.ffi_call("foo_bar", shape, has_side_effect=True))
    one = minijax.export.export(fun, disabled_checks=[check])(SINGLE)
    kept = minijax.export.deserialize(one.serialize())
    assert str(kept.unordered_effects) == str(one.unordered_effects) == "(FfiEffect(),)"


def test_versions_and_names():
    for name in minijax.export.__all__:
        assert hasattr(jax.export, name)
    for name in ("minimum", "maximum"):
        name = f"{name}_supported_calling_convention_version"
        assert getattr(minijax.export, name) == getattr(jax.export, name)


@pytest.mark.parametrize("version", [8, 9, 10, 11])
def test_calling_convention_that_is_asked_for(version):
    option = "jax_export_calling_convention_version"

    def run(j):
        j.config.update(option, version)
        try:
            one = j.export.export(j.jit(lambda x: x + 1))(SINGLE)
            return one.calling_convention_version, one.vjp().calling_convention_version
        except ValueError as error:
            return str(error).split(":")[0]
        finally:
            j.config.update(option, 10)

    ours, theirs = [run(j) for j in BOTH]
    assert ours == theirs


def test_callbacks_are_for_one_platform():
    def f(x):
        minijax.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match="multi-platform lowering"):
        minijax.export.export(minijax.jit(f), platforms=("cpu", "tpu"))(SINGLE)
