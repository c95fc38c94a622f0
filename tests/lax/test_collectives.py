"""Collectives over an axis that vmap names, under jit and grad, against upstream."""

import jax
import numpy as np
import pytest

import minijax
from tests.cases import groups
from tests.harness import survivors
from tests.harness.differential import assert_same, x64
from tests.harness.rules import in_both

pytestmark = pytest.mark.both_ends

X = np.arange(3.0, dtype=np.float32)
Y = np.arange(12.0, dtype=np.float32).reshape(3, 4)
S = Y[:, :3]
RING = [(0, 1), (1, 2), (2, 0)]


def named(m, f, x, **options):
    return m.vmap(f, axis_name="i", **options)(x)


def twice(m, f, x):
    return m.vmap(m.vmap(f, axis_name="j"), axis_name="i")(x)


def broadcast(m, x, names, source):
    """Upstream has no pbroadcast on a CPU, and none of several names."""
    if m is minijax:
        return m.lax.pbroadcast(x, names, source)
    rows = x
    for name in reversed(names):
        rows = m.lax.all_gather(rows, name)
    return rows.reshape(-1, *x.shape)[source]


CALLS = {
    "psum": lambda m: named(m, lambda x: m.lax.psum(x, "i"), X),
    "psum tree": lambda m: named(m, lambda x: m.lax.psum({"a": x, "b": 1}, "i"), X),
    "psum number": lambda m: named(m, lambda x: x * m.lax.psum(2, "i"), X),
    "psum bool": lambda m: named(m, lambda x: m.lax.psum(x > 0, "i"), X),
    "psum unmapped": lambda m: named(m, lambda x: m.lax.psum(m.numpy.float32(2), "i") + x, X),
    "psum two axes": lambda m: twice(m, lambda x: m.lax.psum(x, ("i", "j")), S),
    "psum outer axis": lambda m: twice(m, lambda x: m.lax.psum(x, "i"), S),
    "pmean": lambda m: named(m, lambda x: m.lax.pmean(x, "i"), X),
    "pmean integer": lambda m: named(m, lambda x: m.lax.pmean(x, "i"), np.arange(3)),
    "pmean number": lambda m: named(m, lambda x: m.lax.pmean(3, "i") * x, X),
    "pmax": lambda m: named(m, lambda x: m.lax.pmax(x, "i"), X),
    "pmin": lambda m: named(m, lambda x: m.lax.pmin(x, "i"), Y),
    "axis_index": lambda m: named(m, lambda x: x + m.lax.axis_index("i"), X),
    "axis_index two": lambda m: twice(m, lambda x: m.lax.axis_index(("i", "j")), S),
    "axis_size": lambda m: named(m, lambda x: x + m.lax.axis_size("i"), X),
    "ppermute": lambda m: named(m, lambda x: m.lax.ppermute(x, "i", RING), Y),
    "pshuffle": lambda m: named(m, lambda x: m.lax.pshuffle(x, "i", [1, 2, 0]), X),
    "pbroadcast": lambda m: named(m, lambda x: broadcast(m, x, "i", 2), Y),
    "pbroadcast of the last": lambda m: named(m, lambda x: broadcast(m, x, "i", -1), X),
    "pbroadcast of one of two": lambda m: twice(m, lambda x: broadcast(m, x, "i", 1), S),
    "pbroadcast two axes": lambda m: twice(m, lambda x: broadcast(m, x, ("j", "i"), 5), S),
    "all_gather": lambda m: named(m, lambda x: m.lax.all_gather(x, "i"), Y),
    "all_gather axis": lambda m: named(m, lambda x: m.lax.all_gather(x, "i", axis=1), Y),
    "all_gather tiled": lambda m: named(m, lambda x: m.lax.all_gather(x, "i", tiled=True), Y),
    "all_gather out": lambda m: named(m, lambda x: m.lax.all_gather(x, "i"), Y, out_axes=None),
    "all_to_all": lambda m: named(m, lambda x: m.lax.all_to_all(x, "i", 0, 0), S),
    "all_to_all axes": lambda m: named(
        m, lambda x: m.lax.all_to_all(x, "i", 0, 1), np.arange(18.0).reshape(3, 3, 2)
    ),
    "all_to_all tiled": lambda m: named(
        m, lambda x: m.lax.all_to_all(x, "i", 0, 1, tiled=True), np.arange(36.0).reshape(3, 6, 2)
    ),
    "all_to_all tiled back": lambda m: named(
        m, lambda x: m.lax.all_to_all(x, "i", 1, 0, tiled=True), np.arange(36.0).reshape(3, 2, 6)
    ),
    "pswapaxes": lambda m: named(m, lambda x: m.lax.pswapaxes(x, "i", 0), S),
    "psum_scatter": lambda m: named(m, lambda x: m.lax.psum_scatter(x, "i"), S),
    "psum_scatter tiled": lambda m: named(
        m, lambda x: m.lax.psum_scatter(x, "i", tiled=True), np.arange(18.0).reshape(3, 6)
    ),
    "in_axes 1": lambda m: named(m, lambda x: m.lax.psum(x, "i") + x, Y, in_axes=1, out_axes=1),
}

GRADS = [
    "psum", "pmean", "ppermute", "pbroadcast", "all_gather", "all_gather tiled", "all_to_all", "psum_scatter",
    "psum_scatter tiled", "all_to_all tiled",
]  # fmt: skip


# Axes that are numbers of dimensions, alone and beside names, in any order.
DIMENSIONS = {
    "one": lambda m, f: f(m.numpy.asarray(Y), 0),
    "of integers": lambda m, f: f(np.arange(6).reshape(2, 3), (1,)),
    "of booleans": lambda m, f: f(m.numpy.asarray(Y > 3), (1,)),
    "two": lambda m, f: f(m.numpy.asarray(Y), (1, 0)),
    "of a tree": lambda m, f: f({"a": Y, "b": X}, 0),
    "of nothing": lambda m, f: f(m.numpy.ones((0, 2)), 0),
    "of none": lambda m, f: f(m.numpy.asarray(Y), ()),
    "mapped": lambda m, f: m.vmap(lambda x: f(x, 0), in_axes=1)(Y),
    "with a name": lambda m, f: named(m, lambda x: f(x, (0, "i")), Y),
    "with a name, last": lambda m, f: named(m, lambda x: f(x, ("i", 0)), Y, in_axes=1),
    "with one of two": lambda m, f: twice(m, lambda x: f(x, ("i", 0)), np.ones((2, 3, 4))),
    "with a name, unmapped": lambda m, f: named(m, lambda x: f(x, (0, "i")), Y, out_axes=None),
}


@pytest.mark.parametrize("function", ["psum", "pmax", "pmin"])
@pytest.mark.parametrize("name", DIMENSIONS)
def test_over_dimensions(name, function):
    in_both(lambda m: DIMENSIONS[name](m, getattr(m.lax, function)))
    in_both(lambda m: m.jit(lambda: DIMENSIONS[name](m, getattr(m.lax, function)))())


def test_sum_over_dimensions_is_linear():
    def found(m):
        total = lambda x: (m.lax.psum(x, (0, "i")) * np.arange(3)).sum()
        return m.grad(lambda x: named(m, total, x).sum())(np.ones((2, 4, 3), np.float32))

    in_both(found)


@pytest.mark.parametrize("axis", [-1, (0, -1)])
def test_dimensions_counted_from_the_end(axis):
    in_both(lambda m: m.lax.psum(Y, axis))
    same = tuple([int(n) % 2 for n in np.atleast_1d(axis)])
    for function in (minijax.lax.pmax, minijax.lax.pmin):  # upstream counts for sums only
        assert_same(function(Y, axis), function(Y, same))


def test_index_along_no_axis():
    in_both(lambda m: m.lax.axis_index(()))


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    assert_same(CALLS[name](minijax), CALLS[name](jax))
    assert_same(minijax.jit(lambda: CALLS[name](minijax))(), jax.jit(lambda: CALLS[name](jax))())


def test_positions_of_pbroadcast():
    for source in (3, -4):
        with pytest.raises(IndexError, match=f"source {source} is not a position of 3 along"):
            named(minijax, lambda x: minijax.lax.pbroadcast(x, "i", source), X)


@pytest.mark.parametrize("wide", [False, True])
def test_sums_of_booleans(wide):
    with x64(wide):
        for m in (minijax, jax):
            assert named(m, lambda x: m.lax.psum(x > 0, "i"), X).dtype == np.int32


@pytest.mark.parametrize("name", GRADS)
def test_gradients(name):
    def inside(m, x):
        shape = {"psum_scatter": (3, 3), "all_to_all": (3, 3)}.get(name)
        x = x if shape is None else x[:, :3]
        if "tiled" in name and name != "all_gather tiled":
            x = np.arange(36.0, dtype=np.float32).reshape(3, 6, 2)
        per_example = {
            "psum": lambda x: m.lax.psum(x, "i"),
            "pmean": lambda x: m.lax.pmean(x, "i"),
            "ppermute": lambda x: m.lax.ppermute(x, "i", RING),
            "pbroadcast": lambda x: broadcast(m, x, "i", 1),
            "all_gather": lambda x: m.lax.all_gather(x, "i"),
            "all_gather tiled": lambda x: m.lax.all_gather(x, "i", tiled=True),
            "all_to_all": lambda x: m.lax.all_to_all(x, "i", 0, 0),
            "all_to_all tiled": lambda x: m.lax.all_to_all(x, "i", 0, 1, tiled=True),
            "psum_scatter": lambda x: m.lax.psum_scatter(x, "i"),
            "psum_scatter tiled": lambda x: m.lax.psum_scatter(x, "i", tiled=True),
        }[name]

        def loss(x):
            out = per_example(x) ** 2
            return m.numpy.sum(out * np.arange(1.0, out.size + 1).reshape(out.shape))

        within = m.vmap(m.grad(loss), axis_name="i")(x)
        around = m.grad(lambda x: m.numpy.sum(m.vmap(loss, axis_name="i")(x)))(x)
        return within, around

    assert_same(inside(minijax, Y), inside(jax, Y))


# Functions of jnp whose `axis` may name mapped axes; those that refuse to.
OVER_NAMES = {
    **{name: lambda m, x, name=name, **k: getattr(m.numpy, name)(x, **k) for name in (
        "sum", "max", "min", "mean", "var", "std", "nansum", "nanmean", "nanvar", "ptp",
        "count_nonzero", "prod", "any",
    )},
    "logsumexp": lambda m, x, **k: m.nn.logsumexp(x, **k),
    "softmax": lambda m, x, keepdims=False, **k: m.nn.softmax(x, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", OVER_NAMES)
def test_reductions_over_names(name):
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 2, 3)

    def outcome(m, axis, keepdims):
        f = lambda v: OVER_NAMES[name](m, v, axis=axis, keepdims=keepdims)
        try:
            return m.vmap(f, axis_name="i")(x)
        except NotImplementedError as error:
            return str(error)[:40]

    for axis in ("i", ("i", 0), (0, "i", -1)):
        for keepdims in (False, True):
            ours, theirs = outcome(minijax, axis, keepdims), outcome(jax, axis, keepdims)
            if isinstance(theirs, str):
                assert ours == theirs
            else:
                assert_same(ours, theirs)
    if name in ("mean", "var"):
        masked = lambda m: m.vmap(
            lambda v: OVER_NAMES[name](m, v, axis=("i", 0), where=v > 0.2), axis_name="i"
        )(x)
        assert_same(masked(minijax), masked(jax))
        loss = lambda m: (
            lambda x: m.vmap(lambda v: OVER_NAMES[name](m, v, axis=("i", 1)), axis_name="i")(
                x
            ).sum()
        )
        assert_same(minijax.grad(loss(minijax))(x), jax.grad(loss(jax))(x))
    with pytest.raises(NameError if name not in ("prod", "any") else NotImplementedError):
        OVER_NAMES[name](minijax, x, axis="i")


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "all_gather"])
def test_programs_over_a_mesh_read_as_upstreams(name, check_vma):
    def program(m):
        mesh = m.make_mesh((1,), ("i",), axis_types=(m.sharding.AxisType.Auto,))
        split = m.sharding.PartitionSpec("i")
        f = m.shard_map(
            lambda x: x + getattr(m.lax, name)(x, "i").sum(),
            mesh=mesh, in_specs=split, out_specs=split, check_vma=check_vma,
        )  # fmt: skip
        return str(m.make_jaxpr(f)(X))

    assert program(minijax) == program(jax)


def within_a_context_mesh(m, context, given, names, outer):
    """What a shard_map over some axes of a mesh gives within `set_mesh`, or within another shard_map."""
    kinds = m.sharding.AxisType
    meshes = {
        "auto": m.make_mesh((1, 1), ("a", "b"), (kinds.Auto,) * 2),
        "explicit": m.make_mesh((1, 1), ("a", "b"), (kinds.Explicit,) * 2),
        "other": m.make_mesh((1, 1), ("a", "c"), (kinds.Auto,) * 2),
        "none": None,
    }
    spec = m.P(names[-1])
    double = lambda x: 2 * x
    inner = lambda x: m.shard_map(
        double, mesh=meshes[given], in_specs=spec, out_specs=spec, axis_names=set(names)
    )(x)
    try:
        if outer:
            over = m.shard_map(
                inner, mesh=meshes[context], in_specs=m.P("a"), out_specs=m.P("a"), axis_names={"a"}
            )
            return m.eval_shape(over, X).shape
        with m.set_mesh(meshes[context]):
            return m.jit(inner)(X).shape
    except ValueError as error:
        return str(error).partition(" should match the mesh passed to shard_map Mesh(")[:2]


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("names", ["ab", "b", "ac"])
@pytest.mark.parametrize("given", ["auto", "explicit", "other", "none"])
def test_the_mesh_of_shard_map_is_the_context_mesh(given, names, outer):
    names = names if given != "other" else names.replace("b", "c")
    ours, theirs = (within_a_context_mesh(m, "auto", given, names, outer) for m in (minijax, jax))
    matches = lambda found: found[1:] == (" should match the mesh passed to shard_map Mesh(",)
    assert matches(ours) == matches(theirs) and (not matches(ours) or ours[0] == theirs[0])
    assert isinstance(ours, tuple) == isinstance(theirs, tuple)


NESTED = {
    "the axes that are left": lambda m, f: (("i",), m.P("j"), {}),
    "none is left": lambda m, f: (("i", "j"), m.P(), {}),
    "none is left, by name": lambda m, f: (("i", "j"), m.P(), {"axis_names": {"i"}}),
    "by name": lambda m, f: (("i",), m.P("j"), {"axis_names": {"j"}}),
}


@pytest.mark.parametrize("case", NESTED)
def test_nested_shard_maps_split_over_the_axes_that_are_left(case):
    def run(m):
        names, spec, options = NESTED[case](m, None)
        mesh = m.make_mesh((1, 1), ("i", "j"), (m.sharding.AxisType.Auto,) * 2)
        seen = []

        def inner(x):
            seen.append(m.typeof(x).str_short())
            return x * 2

        outer = lambda x: m.shard_map(inner, in_specs=spec, out_specs=spec, **options)(x)
        with m.set_mesh(mesh):
            whole = m.shard_map(outer, in_specs=m.P("i"), out_specs=m.P("i"), axis_names={*names})
            return m.jit(whole)(X).tolist(), seen[:1]

    assert run(minijax) == run(jax)


def test_nested_shard_maps_do_not_split_over_an_axis_twice():
    mesh = minijax.make_mesh((1, 1), ("i", "j"), (minijax.sharding.AxisType.Auto,) * 2)
    spec = minijax.P("i")
    inner = lambda x: minijax.shard_map(lambda x: x, in_specs=spec, out_specs=spec)(x)
    with minijax.set_mesh(mesh), pytest.raises(ValueError, match="axis marked as manual"):
        minijax.shard_map(inner, in_specs=spec, out_specs=spec)(X)


def test_constraints_over_axes_that_shard_map_splits_are_refused():
    told = []
    for m in (minijax, jax):
        mesh = m.make_mesh((1, 1), ("i", "j"), (m.sharding.AxisType.Auto,) * 2)
        f = lambda x, m=m: m.lax.with_sharding_constraint(x, m.P("i"))
        with m.set_mesh(mesh), pytest.raises(ValueError) as caught:
            m.shard_map(f, in_specs=m.P("i"), out_specs=m.P("i"))(X)
        told.append(str(caught.value).partition(" Got spec")[0])
    assert told[0] == told[1]


def structs_within(m, kinds, names, check_vma):
    """What `eval_shape` says within a shard_map over some axes of a mesh, and what is made like it."""
    mesh = m.make_mesh((1, 1), ("a", "b"), tuple(getattr(m.sharding.AxisType, k) for k in kinds))
    found = []

    def f(p, x):
        double = lambda x: 2 * x
        structs = [
            m.eval_shape(double, x), m.eval_shape(double, p), m.jit(double).eval_shape(x),
            m.eval_shape(lambda x: m.numpy.ones((2, 2)), x),
            m.eval_shape(lambda x: m.random.key(0), x),
        ]  # fmt: skip
        found.append([(str(s.sharding), s.manual_axis_type, str(s)) for s in structs])
        if "Auto" not in kinds or set(names) == {"a", "b"}:  # upstream has no answer to the others
            again = m.eval_shape(double, structs[0])
            assert again == structs[0]
            found.append([m.typeof(made) for made in (
                m.numpy.zeros_like(again), m.numpy.full_like(again, 2), m.lax.full_like(again, 2),
                m.numpy.ones_like(again, dtype=int), m.numpy.empty_like(again, shape=(5,)),
                m.numpy.zeros_like(structs[1]),
            )])  # fmt: skip
        return x

    specs = {"in_specs": (m.P(), m.P(names[0])), "out_specs": m.P(names[0])}
    over = m.shard_map(f, mesh=mesh, axis_names=set(names), check_vma=check_vma, **specs)
    with m.set_mesh(mesh):
        place = m.P(names[0]) if kinds[0] == "Explicit" else m.P()
        m.jit(over)(X, m.device_put(X, m.NamedSharding(mesh, place)))
    return [[str(part) for part in parts] for parts in found]


@pytest.mark.skipif(jax.__version__ != "0.10.2", reason="newer ones show structs otherwise")
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("names", ["ab", "a"])
@pytest.mark.parametrize(
    "kinds", [("Auto", "Auto"), ("Explicit", "Explicit"), ("Explicit", "Auto")]
)
def test_structs_within_a_shard_map(kinds, names, check_vma):
    ours, theirs = (structs_within(m, kinds, names, check_vma) for m in (minijax, jax))
    assert ours == theirs


def test_manual_axis_types():
    for j in (minijax, jax):
        kind = j.sharding.ManualAxisType
        assert kind(varying={"x"}) == kind(varying=frozenset({"x"})) != kind()
        assert str(kind(varying={"x"}, reduced={"y"})).startswith(
            "ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), "
            "reduced=frozenset({'y'})"
        )
        assert j.typeof(j.numpy.ones(2)).mat == kind()
        with pytest.raises(ValueError, match="cannot have common mesh axes"):
            kind(varying={"x"}, unreduced={"x"})


# Upstream's own failures, where ours has a value: transposing with two axes, vmap of an exchange.
_NOT_UPSTREAM = ("all_to_all, 0 to 1", "pmap of vmap")
_REFUSED = ("uneven", "missing", "repeated", "too large", "negative", "none")


def test_groups_of_positions():
    ours = survivors.outcomes("groups", "minijax", groups.PROGRAMS)
    theirs = survivors.outcomes("groups", "jax", groups.PROGRAMS)
    wrong = {}
    for name in groups.PROGRAMS:
        mine, other = ours[name], theirs[name]
        if other[0] == "died":  # and not for a reason of the program
            other = ["raised", ["ValueError"], "ended"]
        if mine[0] == "died":
            wrong[name] = mine
        elif other[0] == "raised":
            refused = any(part in name for part in _REFUSED)
            if mine[0] != "raised":
                known = "NotImplementedError" in other[1] and "shard_map" in name
                if not known and not any(part in name for part in _NOT_UPSTREAM):
                    wrong[name] = mine[0], other
            elif mine[1][0] not in ("ValueError", *(() if refused else other[1])):
                wrong[name] = mine, other
        elif mine[0] == "raised":  # upstream sums a number over groups that do not cover the axis
            if "of a number, missing" not in name:
                wrong[name] = mine, other[0]
        elif mine[0] != other[0] or not np.allclose(mine[1], other[1], rtol=1e-4, atol=1e-3):
            wrong[name] = mine, other
    assert not wrong, "\n".join(f"{name}: {str(pair)[:400]}" for name, pair in wrong.items())


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64"])
@pytest.mark.parametrize("name", ["psum", "psum_scatter", "all_gather"])
def test_dtypes_over_a_mesh(name, dtype):
    def run(m):
        mesh = m.make_mesh((1,), ("i",), (m.sharding.AxisType.Auto,))
        spec = m.sharding.PartitionSpec("i")
        f = m.shard_map(
            lambda x: getattr(m.lax, name)(x, "i"), mesh=mesh, in_specs=spec, out_specs=spec,
            check_vma=False,
        )  # fmt: skip
        return f(m.numpy.ones((1, 2), dtype))

    in_both(run)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["all_gather", "psum_scatter"])
def test_parts_without_elements_over_a_mesh(name, axis):
    """StableHLO has no such collectives, and upstream refuses them; vmap gives the shapes."""
    x = np.zeros((0, 3) if axis == 0 else (3, 0), np.float32)
    where = "axis" if name == "all_gather" else "scatter_dimension"
    options = {"tiled": True, where: axis}
    call = lambda y: getattr(minijax.lax, name)(y, "i", **options)
    mesh = minijax.make_mesh((1,), ("i",), (minijax.sharding.AxisType.Auto,))
    specs = {"mesh": mesh, "in_specs": minijax.P(), "out_specs": minijax.P(), "check_vma": False}
    over_mesh = minijax.jit(minijax.shard_map(call, **specs))
    wanted = minijax.vmap(call, axis_name="i")(x[None])[0]
    assert_same(over_mesh(x), wanted)
    assert_same(minijax.grad(lambda y: over_mesh(y).sum())(x), np.zeros_like(x))
