"""Modules of `experimental` over eight CPU devices, in both libraries: run by
`test_experimental_modules` in a process of its own. Prints a line of JSON for each program.
"""

import importlib
import json
import os
import re
import sys
import traceback

from tests.harness import upstream

os.environ |= upstream.devices(8)

import jax
import numpy as np

import minijax
import minijax.sharding

X = np.arange(32.0, dtype=np.float32).reshape(8, 4) / 8
W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


class Setting:
    """A library with a mesh of 4 x 2 devices, and short names."""

    def __init__(self, m, sharding):
        self.m, self.jnp, self.lax, self.P = m, m.numpy, m.lax, sharding.PartitionSpec
        auto = (sharding.AxisType.Auto,) * 2
        self.mesh = sharding.Mesh(np.array(m.devices()).reshape(4, 2), ("x", "y"), auto)
        self.sharding = sharding
        self.rules = self.module("experimental.custom_partitioning")

    def module(self, name):
        return importlib.import_module(f"{self.m.__name__}.{name}")

    def named(self, *spec):
        return self.sharding.NamedSharding(self.mesh, self.P(*spec))

    def put(self, *spec, value=X):
        return self.m.device_put(value, self.named(*spec))

    def partitioned(self, fun, rule, partition=None, static=(), **options):
        """A function whose parts are computed by the function itself, split as was chosen."""
        f = self.rules.custom_partitioning(fun, static_argnums=static)
        places = lambda tree: self.m.tree_util.tree_map(lambda x: x.sharding, tree)
        own = lambda mesh, args, result: (mesh, fun, places(result), places(args))
        f.def_partition(partition or own, sharding_rule=rule, **options)
        return f

    def rule_in(self, f, *args):
        """What stands in the module for a partitioned function; and whether devices exchange."""
        lowered = self.m.jit(f).lower(*args)
        rules = re.findall(r"sdy.sharding_rule = (#sdy[^>]*->[^>]*>)", lowered.as_text())
        text = lowered.compile().as_text()
        return rules, ["all-gather" in text, "all-reduce" in text], self.m.jit(f)(*args)


def _matmul(s):
    def partition(mesh, args, result):
        product = lambda a, b: s.lax.psum(a @ b, "y")
        return mesh, product, s.named("x", None), (s.named("x", "y"), s.named("y", None))

    rule = "i k, k j -> i j"
    f = s.partitioned(lambda a, b: a @ b, rule, partition, reduction_factors=("k",))
    return s.rule_in(f, s.put("x", "y"), s.put("y", None, value=W))


def _whole(s, shape):
    def partition(mesh, args, result):
        return mesh, lambda a: a.reshape(shape), s.named(), (s.named(),)

    return partition


def _seen(s, rule="i j -> i j", x=None, **options):
    seen = []

    def partition(*given):
        seen.append(str(given[-3:]))
        mesh, (a,), result = given[-3:]
        return mesh, s.jnp.sin, result.sharding, (a.sharding,)

    f = s.partitioned(s.jnp.sin, rule, partition, **options)
    where = () if rule is None else ("x", "y")
    return s.m.jit(f)(s.put(*where) if x is None else x), [
        re.sub(r"\{devices=\[4,2\][^}]*\}", "{..}", x) for x in seen
    ]


def _seen_of_explicit(s):
    """Whatever the axes of the mesh are, the parts are computed over those left to the compiler."""
    explicit = s.m.make_mesh((4, 2), ("x", "y"))
    seen = []

    def partition(mesh, args, result):
        seen.extend([str(mesh), str(result.sharding), str(args[0].sharding)])
        return mesh, s.jnp.sin, result.sharding, (args[0].sharding,)

    f = s.partitioned(s.jnp.sin, "i j -> i j", partition)
    x = s.m.device_put(X, s.sharding.NamedSharding(explicit, s.P("x", "y")))
    return s.m.jit(f)(x), seen


def _inspected(s):
    explicit = s.m.make_mesh((4, 2), ("x", "y"))
    x = s.m.device_put(X, s.sharding.NamedSharding(explicit, s.P("x", "y")))
    seen = []

    def f(x):
        s.module("debug").inspect_array_sharding(x * 2, callback=lambda y: seen.append(str(y)))
        return x

    return s.m.jit(f)(x), seen


def _part(s):
    utilities = s.module("experimental.multihost_utils")
    x = utilities.global_array_to_host_local_array(s.put("x"), s.mesh, s.P("x"))
    return x, str(x.sharding)


def _mesh(make):
    def run(s):
        try:
            return str(make(s.m, s.module("experimental.mesh_utils")))
        except ValueError as error:
            return str(error).partition(": ")[0]

    return run


def _static(s):
    def partition(n, mesh, args, result):
        places = tuple(a.sharding for a in args)
        return mesh, lambda x, y: x * n + y, result.sharding, places

    f = s.partitioned(
        lambda x, n, y: x * n + y, lambda n, mesh, ins, outs: "i j, i j -> i j", partition, (1,)
    )
    return s.rule_in(lambda x: f(x, 3, x), s.put("x", "y"))


def _rule_of(rule, in_shapes, out_shapes, **options):
    """The rule that stands in the module for arrays of these shapes, or the message."""

    def run(s):
        def fun(*args):
            return [s.jnp.zeros(shape) + args[0].sum() for shape in out_shapes]

        f = s.rules.custom_partitioning(fun)
        args = [s.m.ShapeDtypeStruct(x, "float32", sharding=s.named()) for x in in_shapes]
        try:
            f.def_partition(lambda *a: a, sharding_rule=rule, **options)
            text = s.m.jit(f).lower(*args).as_text()
        except (TypeError, ValueError) as error:
            return type(error), str(error)
        return re.findall(r"sdy.sharding_rule = (#sdy.*custom>)", text)

    return run


RULES = [
    ("i j -> j i", [(4, 6)], [(4, 6)]), ("i, i -> i", [(5,), (6,)], [(4,)]),
    ("i, i -> i", [(5,), (0,)], [(1,)]), ("(i j) k -> i j k", [(4, 6)], [(2, 2, 6)]),
    ("(i j) k -> i j k", [(4, 6)], [(2, 3, 6)]), ("(i j), i j -> i", [(6,), (2, 3)], [(2,)]),
    ("... (j k) -> ... k j", [(2, 2, 12)], [(2, 2, 3, 4)]),
    ("i (j k) -> (i j) k", [(2, 12)], [(6, 4)], {"j": 3}),
    ("i (j k) -> (i j) k", [(2, 12)], [(6, 4)], {"j": "3"}),
    ("... i, ... j -> ... i j", [(2, 3, 4), (3, 5)], [(2, 3, 4, 5)]), ("->", [()], [()]),
    (" ".join("abcdefghijklmnopqrstuvwxyzABC") + " -> a", [(1,) * 29], [(1,)],
     {"reduction_factors": tuple("zBC")}),
    ("i j -> i", [(3, 4)], [(3,)], {"reduction_factors": ("j", "j")}),
    *((rule, [(4, 6)], [(4, 6)]) for rule in (
        "i; j -> i", "i' j -> i' j", "i + j -> i", "((i j)) k -> i k", "(i j k -> i j k", "i) j -> i",
        "(... i) j -> i j", "\u2026 i -> i", "i - j -> i", "i. j -> i j",
    )),
    (lambda *a: 3, [(4,)], [(4,)]), (None, [(4,)], [(4,)]),
]  # fmt: skip


def _wide(s):
    """Upstream's partition does not see the settings of the thread that compiles."""
    with s.m.enable_x64(True):
        f = lambda x: s.jnp.sin(x) * s.jnp.ones(x.shape[1])
        f = f if s.m is jax else s.partitioned(f, "i j -> i j")
        return s.m.jit(f)(s.put("x", value=X.astype(np.float64)))


def _wrong(s, lower):
    def partition(mesh, args, result):
        return mesh, lower, result.sharding, (args[0].sharding,)

    try:
        s.m.jit(s.partitioned(s.jnp.sin, "i j -> i j", partition))(s.put("x", "y"))
    except Exception as error:
        return type(error).__name__, "Mismatch in result shapes" in str(error)


def _refused(s, rule, **options):
    f = s.partitioned(s.jnp.sin, rule, **options)
    try:
        s.m.jit(f).lower(s.put("x", "y"))
    except Exception as error:
        return type(error).__name__


def _gspmd(s):
    make = s.module("extend.sharding").GSPMDSharding
    split = s.named("x", "y")
    g = make(s.m.devices(), split._to_xla_hlo_sharding(2))
    put = s.m.device_put(X, g)
    found = [g.shard_shape((8, 4)), g.is_fully_replicated, g.num_devices, g == put.sharding]
    found += [g.is_equivalent_to(split, 2), split.is_equivalent_to(g, 2), g == split]
    found += [str(sorted((d.id, str(i)) for d, i in g.devices_indices_map((8, 4)).items()))]
    whole = make.get_replicated(s.m.devices())
    found += [whole.is_fully_replicated, whole.shard_shape((8, 4)), whole == g]
    out = s.m.jit(lambda x: x * 2, in_shardings=g, out_shardings=g)(X)
    found += [type(out.sharding) is make, out.sharding == g]
    found += [s.m.jit(lambda x: x * 2)(put).sharding == g]
    for shape in ((7, 4), (8, 3)):
        try:
            found.append(g.shard_shape(shape))
        except ValueError:
            found.append("ValueError")
    return put, out, found


def _serialized(s):
    saved = s.module("experimental.serialize_executable")
    x = s.put("x", "y")
    with upstream.compiling():
        compiled = s.m.jit(lambda x: (x * 2, x.sum(0))).lower(x).compile()
    loaded = saved.deserialize_and_load(*saved.serialize(compiled))
    return loaded(x), loaded(X)


def _ahead(s):
    topologies = s.module("experimental.topologies")
    topology = topologies.get_attached_topology()
    mesh = topologies.make_mesh(topology, (4, 2), ("x", "y"))
    split = s.sharding.NamedSharding(mesh, s.P("x"))
    spec = s.m.ShapeDtypeStruct((8, 4), "float32")
    compiled = s.m.jit(lambda x: x * 2, in_shardings=split).lower(spec).compile()
    try:
        topologies.make_mesh(topology, (3, 2), ("x", "y"))
    except ValueError:
        return len(topology.devices), mesh.shape, compiled(s.m.device_put(X, split))


def _roofline(name, f, ins, outs, n=1, **options):
    def run(s):
        r = s.module("experimental.roofline")
        specs = [s.m.ShapeDtypeStruct((8, 16), "bfloat16")] * n
        make = r.roofline_and_grad if name.startswith("and gradient") else r.roofline
        mapped = make(lambda *xs: f(s, *xs), s.mesh, ins(s), outs(s), **options)
        types, *found = mapped(*specs)
        shown = [
            re.sub(r"\{[^}]*\}", lambda d: str(sorted(eval(d[0]).items())), str(x)) for x in found
        ]
        return [str(x.sharding.spec) for x in s.m.tree_util.tree_leaves(types)], shown

    return run


def _alike(s):
    alike = s.module("experimental.shard_alike").shard_alike
    both = s.m.jit(lambda x: alike(x * 2, s.jnp.zeros((8, 4))))(s.put("x", "y"))
    mapped = s.m.jit(lambda x: s.m.vmap(alike)(x, s.jnp.ones((8, 4))))(s.put("x", "y"))
    return both, mapped


PROGRAMS = {
    "elements": lambda s: s.rule_in(s.partitioned(s.jnp.sin, "i j -> i j"), s.put("x", "y")),
    "two calls": lambda s: s.rule_in(
        lambda x, f=s.partitioned(s.jnp.sin, "i j -> i j"): f(f(x)), s.put("x", "y")
    ),
    "two results": lambda s: s.rule_in(
        s.partitioned(lambda x, y: (x + y, x * 2), "i j, i j -> i j, i j"), s.put("x"), s.put("x")
    ),
    "batch": lambda s: s.rule_in(
        s.partitioned(lambda x: s.jnp.cumsum(x, 1), "...i -> ...i", need_replication_factors=("i",)),
        s.put("x"),
    ),
    "matmul": _matmul,
    "a compound factor": lambda s: s.rule_in(
        s.partitioned(lambda a: a.reshape(32), "a b -> (a b)", _whole(s, 32)), s.put("x", "y")
    ),
    "another one": lambda s: s.rule_in(
        s.partitioned(lambda a: a.reshape(32), "i j -> (i j)", _whole(s, 32)), s.put(None, "y"),
    ),
    "permuted": lambda s: s.rule_in(
        s.partitioned(s.jnp.sin, "a b -> a b", permutation_factors=("a",)), s.put("x", "y")
    ),
    "a rule object": lambda s: s.rule_in(
        s.partitioned(s.jnp.sin, s.rules.SdyShardingRule(
            (s.rules.ArrayMapping(s.rules.BATCHING, "i"),),
            (s.rules.ArrayMapping(s.rules.BATCHING, "i"),),
        )), s.put("x", "y"),
    ),
    "a rule function": lambda s: s.rule_in(
        s.partitioned(s.jnp.sin, lambda mesh, ins, outs: (
            "i j -> i j" if ins[0].shape == [8, 4] and mesh.axis_names == ("x", "y") else None
        )), s.put("x", "y"),
    ),
    "what is asked": _seen,
    "what is asked, as XLA has it": lambda s: _seen(s, decode_shardings=False),
    "static": _static,
    "gathered": lambda s: s.rule_in(
        s.partitioned(s.jnp.sin, "i j -> i j", lambda mesh, args, result: (
            mesh, s.jnp.sin, s.named(), (s.named(),)
        )), s.put("x", "y"),
    ),
    "narrow": lambda s: s.rule_in(
        s.partitioned(s.jnp.sin, "i j -> i j"), s.put("x", value=X.astype("bfloat16"))
    ),
    "constants": lambda s: s.rule_in(
        s.partitioned(lambda x: x + s.jnp.arange(x.shape[1], dtype="float32") * 0, "i j -> i j"),
        s.put("x"),
    ),
    "64 bits": _wide,
    "eager": lambda s: s.partitioned(s.jnp.sin, "i j -> i j")(s.put("x", "y")),
    "in the mesh of shard_map": lambda s: s.m.jit(s.m.shard_map(
        s.partitioned(s.jnp.sin, "i j -> i j"), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
    ))(s.put("x")),
    "other shapes": lambda s: _wrong(s, lambda x: x[:1]),
    "other dtypes": lambda s: _wrong(s, lambda x: x.astype("int32")),
    "failing": lambda s: _wrong(s, lambda x: 1 / 0),
    **{f"rule {n}: {rule}": _rule_of(rule, ins, outs, **dict(*options))
       for n, (rule, ins, outs, *options) in enumerate(RULES)},
    "what is asked without a rule": lambda s: _seen(s, rule=None),
    "what is asked of a rank": lambda s: _seen(s, rule="... -> ...", x=s.put(None, "y", value=X[None])),
    "too few operands": lambda s: _refused(s, "i j, k -> i j"),
    "too few results": lambda s: _refused(s, "i j -> i j, k"),
    "another rank": lambda s: _refused(s, "i j k -> i j"),
    "no rule": lambda s: _refused(s, None, infer_sharding_from_operands=lambda *a: a),
    **({"alike": _alike} if jax.__version__ == "0.10.2" else {}),
    "shardings of XLA": _gspmd,
    "serialized": _serialized,
    "partition over an explicit mesh": _seen_of_explicit,
    "inspected within an explicit mesh": _inspected,
    "part of this process": _part,
    **{f"part of {name}": lambda s, make=make: s.module(
        "experimental.multihost_utils"
    ).global_array_to_host_local_array(make(s), s.mesh, s.P("x")) for name, make in {
        "an array of NumPy": lambda s: X, "another part": lambda s: s.put("x", "y"),
        "an array on one device": lambda s: s.jnp.asarray(X),
    }.items()},
    "mesh, a name": _mesh(lambda m, utils: m.make_mesh((8,), "x")),
    "mesh, a name of two letters": _mesh(lambda m, utils: m.make_mesh((4, 2), "xy")),
    "hybrid mesh": _mesh(lambda m, utils: utils.create_hybrid_device_mesh(
        (4, 2), (1, 1), process_is_granule=True)),
    "hybrid mesh of slices": _mesh(lambda m, utils: utils.create_hybrid_device_mesh((4, 2), (1, 1))),
    "hybrid mesh of two": _mesh(lambda m, utils: utils.create_hybrid_device_mesh(
        (2, 2), (2, 1), process_is_granule=True)),
    "ahead of time": _ahead,
    **{f"roofline, {name}": _roofline(name, f, ins, outs, *rest) for name, f, ins, outs, *rest in (
        ("psum", lambda s, x: s.lax.psum(x, "x"), lambda s: s.P("x"), lambda s: s.P()),
        ("psum of two", lambda s, x: s.lax.psum(x, ("x", "y")), lambda s: s.P("x", "y"), lambda s: s.P()),
        ("pmax", lambda s, x: s.lax.pmax(x, "x"), lambda s: s.P("x"), lambda s: s.P()),
        ("all_gather", lambda s, x: s.lax.all_gather(x, "x"), lambda s: s.P("x"), lambda s: s.P("x")),
        ("scatter", lambda s, x: s.lax.psum_scatter(x, "x", tiled=True), lambda s: s.P(), lambda s: s.P("x")),
        ("shift", lambda s, x: s.lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
         lambda s: s.P("x"), lambda s: s.P("x")),
        ("exchange", lambda s, x: s.lax.ppermute(x, "x", [(0, 3), (3, 0), (1, 3), (0, 2)][:2]),
         lambda s: s.P("x"), lambda s: s.P("x")),
        ("all_to_all", lambda s, x: s.lax.all_to_all(x, "x", 1, 0, tiled=True),
         lambda s: s.P("x"), lambda s: s.P(None, "x")),
        ("matmul", lambda s, x, y: s.lax.psum(x @ y.T, "y"), lambda s: (s.P("x", "y"), s.P(None, "y")),
         lambda s: s.P("x"), 2),
        ("and gradient", lambda s, x, y: s.lax.psum(x @ y.T, "y"),
         lambda s: (s.P("x", "y"), s.P(None, "y")), lambda s: s.P("x"), 2),
        ("and gradient of a sum", lambda s, x: s.lax.psum(s.jnp.sin(x).sum(), ("x", "y")),
         lambda s: (s.P("x", "y"),), lambda s: s.P()),
    )},
}  # fmt: skip


def described(m, out):
    """Values, shapes, dtypes and shardings, as text and numbers."""
    found = []
    for x in m.tree_util.tree_leaves(out):
        if isinstance(x, m.Array):
            where = getattr(x.sharding, "spec", None)
            value = np.asarray(x).astype(np.float64)
            found.append((str(where), x.shape, str(x.dtype), value))
        else:
            found.append(re.sub("minijax", "jax", str(x)))
    return found


def same(ours, theirs):
    assert len(ours) == len(theirs), (ours, theirs)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, tuple):
            assert one[:3] == other[:3], (one, other)
            np.testing.assert_allclose(one[3], other[3], rtol=2e-5, atol=1e-6)
        else:
            assert one == other, (one, other)


def main():
    ours = Setting(minijax, minijax.sharding)
    theirs = Setting(jax, jax.sharding)
    for name, run in PROGRAMS.items():
        try:
            same(described(minijax, run(ours)), described(jax, run(theirs)))
            error = None
        except Exception:
            error = traceback.format_exc()[-3000:]
        sys.stdout.write(json.dumps({"name": name, "error": error}) + "\n")


if __name__ == "__main__":
    upstream.run_many()
    main()
