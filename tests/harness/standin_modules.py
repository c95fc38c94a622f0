"""Modules of `jax._src` that suites import at their head: run by `test_standin_private` on upstream
and on the stand-in.

Prints a line for each case, which must be the same in both; errors by their class alone.
"""

import gzip
import io
import logging
import os
import tempfile
from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import parameterized
from jax import lax
from jax._src import (
    compilation_cache,
    compute_on,
    core,
    hardware_utils,
    jaxpr_util,
    lazy_loader,
    literals,
    logging_config,
    pickle_util,
    sourcemap,
    tree_util,
    typing,
    util,
    xla_transform,
)
from jax._src.debugger import cli_debugger
from jax._src.debugger import core as debugger_core
from jax._src.frozen_dict import FrozenDict
from jax._src.hashable_array import HashableArray
from jax._src.internal_test_util import deprecation_module, lazy_loader_module
from jax._src.internal_test_util import test_harnesses as harnesses
from jax._src.lax import scaled_dot
from jax._src.lax import utils as lax_utils
from jax._src.lru_cache import LRUCache
from jax._src.numpy import array_methods, index_tricks, vectorize
from jax._src.numpy import util as jnp_util
from jax._src.scipy.stats._core import ModeResult
from jax._src.third_party.scipy.special import fresnel
from standin_lines import case

DEVICES = jax.devices()

# -- equations -----------------------------------------------------------------------------------------


def nested(x, unused):
    y = jnp.sin(x) * TABLE
    inner = jax.jit(lambda v: jnp.cos(v) + v)
    out, _ = lax.scan(lambda c, a: (inner(c) * a, c), y, jnp.ones((2, 3)))
    return out, y


TABLE = jnp.arange(3.0)
found = jax.make_jaxpr(nested)(jnp.ones(3), 1.0).jaxpr
names_of = lambda eqns: [eqn if eqn is None else eqn.primitive.name for eqn in eqns]
case("all", lambda: names_of(eqn for _, eqn in jaxpr_util.all_eqns(found)))
case("once", lambda: len(list(jaxpr_util.all_eqns(found, revisit_inner_jaxprs=False))))
for count in ("primitives", "primitives_by_shape", "primitives_by_source", "source_locations"):
    case(count, lambda: getattr(jaxpr_util, count)(found))
case("histogram", lambda: jaxpr_util.histogram(found, lambda e: len(e.invars), str))
case("collected", lambda: {
    k: names_of(v) for k, v in jaxpr_util.collect_eqns(found, lambda e: len(e.outvars)).items()
})  # fmt: skip
for var in (*found.constvars, *found.invars, *found.eqns[0].outvars, *found.eqns[1].outvars):
    case("using", lambda: names_of(jaxpr_util.eqns_using_var(found, var)))
    case("index", lambda: [
        (e.primitive.name, i) for e, i in jaxpr_util.eqns_using_var_with_invar_index(found, var)
    ])  # fmt: skip
case("binder", lambda: list(jaxpr_util.jaxpr_and_binder_in_params(found.eqns[-1].params, 9)))


def shown(defs):
    if isinstance(defs, list):
        return [shown(each) for each in defs]
    return [(str(v.aval), names_of([eqn]), names_of(refs)) for v, eqn, refs in defs[1]]


case("variables", lambda: shown(jaxpr_util.var_defs_and_refs(found)))
case("profile", lambda: gzip.decompress(jaxpr_util.pprof_equation_profile(found))[:40])
case("dumped", lambda: jaxpr_util.maybe_dump_jaxpr_to_file("nested", found))
with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_dump_ir_to", folder)
    for mode in ("stablehlo", "jaxpr,eqn_count_pprof", "jaxpr_html"):
        jax.config.update("jax_dump_ir_modes", mode)
        case(mode, lambda: jaxpr_util.maybe_dump_jaxpr_to_file("nested", found))
        case("files", lambda: sorted(os.listdir(folder)))

# -- harnesses -----------------------------------------------------------------------------------------

rng = np.random.RandomState(0)
hard = harnesses.Limitation("hard", devices="tpu", dtypes=[np.float16])
off = harnesses.Limitation("off", enabled=False)
for limit in (hard, off, harnesses.Limitation("skip", skip_run=True)):
    case(limit, lambda: [
        limit.filter(device=p, dtype=t) for p in (None, "cpu", "tpu") for t in (None, np.float16, int)
    ])  # fmt: skip
case("no dtypes", lambda: harnesses.Limitation("", dtypes=np.float32))
described = [
    harnesses.RandArg((2,), np.float32), harnesses.StaticArg(3),
    harnesses.CustomArg(lambda rng: rng.randn(1)), 7,
]  # fmt: skip
made = harnesses.Harness(
    "a group", "n=1", lambda *args: args, described, dtype=np.float32, jax_unimplemented=[hard],
    axis=2,
)  # fmt: skip
case("harness", lambda: (str(made), made.group_name, made.name, made.params, made.dtype))
case("arguments", lambda: (made.args_maker(rng), made.dyn_args_maker(rng)))
case("dynamic", lambda: made.dyn_fun(1, 2, 4))
case(
    "filter",
    lambda: [made.filter(p, one_containing=n) for p in ("cpu", "tpu") for n in (None, "n_", "z")],
)
case("defined", lambda: harnesses.define("g", "new", len, [], dtype=int))
case("last", lambda: str(harnesses.all_harnesses[-1]))
for types in ([], ["int8", "bool"], [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]):
    case("types", lambda: (
        harnesses.dtypes_to_str(types), harnesses.dtypes_to_str(types, empty_means_all=True)
    ))  # fmt: skip
case("none has it", lambda: harnesses.parameterized([made], one_containing="zz")(print))


class HarnessTest(parameterized.TestCase):
    @harnesses.parameterized([made, harnesses.Harness("g", "x", len, [], dtype=int)])
    def test_each(self, harness):
        print("harness", harness.fullname, self._testMethodName)

    @harnesses.parameterized([made], one_containing="n_1")
    def test_one(self, harness):
        print("one", harness.fullname, self._testMethodName)

    @harnesses.parameterized([])
    def test_none(self, harness):
        print("never")


for name in ("test_each_a_group_n_1", "test_each_g_x", "test_one", "test_none"):
    HarnessTest(name).run()

# -- small values, late modules, source maps, caches ---------------------------------------------------

frozen = FrozenDict({"b": 1, "a": 2})
case("frozen", lambda: (frozen, frozen == FrozenDict({"a": 2, "b": 1}), frozen == {"b": 1, "a": 2}))
case(
    "entries",
    lambda: (dict(frozen), frozen.get("c"), hash(frozen) == hash(FrozenDict(dict(frozen)))),
)
case("not frozen", lambda: FrozenDict([("a", 1)]))
case("lists", lambda: hash(FrozenDict({"a": []})))
kept = HashableArray(np.arange(3))
for other in (np.arange(3), np.arange(3.0), np.arange(4)):
    case(
        "hashable", lambda: (kept == HashableArray(other), kept == other, str(HashableArray(other)))
    )
case(
    "hash",
    lambda: (hash(kept) == hash(HashableArray(np.arange(3))), kept, kept.val.flags.writeable),
)
case("before", lambda: (lazy_loader_module.__all__, dir(lazy_loader_module)))
case("late", lambda: lazy_loader_module.lazy_test_submodule.a_function())
case("never", lambda: lazy_loader_module.other)
case("attached", lambda: lazy_loader.attach("os", ["path"])[0]("path") is os.path)
case("nameless", lambda: exec("attach('os', [])", {"attach": lazy_loader.attach}))
case("deprecated", lambda: (deprecation_module.x, deprecation_module.y))
case("gone", lambda: deprecation_module.z)
case("pickled", lambda: pickle_util.loads(pickle_util.dumps({"a": 1})))
case("machine", lambda: [
    hardware_utils.has_visible_nvidia_gpu(), hardware_utils.num_available_amd_gpus(stop_at=1),
    hardware_utils.num_available_tpu_chips_and_device_id(), hardware_utils.get_shm_size_in_mb(),
    hardware_utils.transparent_hugepages_enabled(), hardware_utils.TpuVersion.v4,
])  # fmt: skip
logger = logging.getLogger("jax")
for level in ("DEBUG", "INFO", None, "NOTSET", "loud"):
    case(level, lambda: logging_config.update_logging_level_global(level))
    case("level", lambda: (logger.level, len(logger.handlers)))
for modules in ("jax._src.a,b.c", "b.c", None):
    logging_config.update_debug_log_modules(modules)
    case(modules, lambda: [
        (logging.getLogger(n).level, len(logging.getLogger(n).handlers)) for n in ("jax._src.a", "b.c")
    ])  # fmt: skip
for number in (0, -1, 15, 16, -123456789):
    case(number, lambda: (text := sourcemap.encode_vlq(number), sourcemap.decode_vlq(text)))
for segment in ((0,), (1, -2, 3, 4), (1, 2, 3, 4, 5), (1, 2)):
    case(segment, lambda: sourcemap.decode_segment(sourcemap.encode_segment(segment)))
case("no digit", lambda: sourcemap.decode_vlq(b"!"))
case("ends", lambda: sourcemap.decode_vlq(b"g"))
lines = [[(0, 0, 0, 0), (4, 0, 1, 2)], [], [(1, 0, 2, -3, 1)]]
case("mappings", lambda: sourcemap.serialize_mappings(lines))
case("same", lambda: sourcemap.deserialize_mappings(sourcemap.serialize_mappings(lines)) == lines)
with tempfile.TemporaryDirectory() as folder:
    cached = LRUCache(folder, max_size=-1)
    case("nothing", lambda: cached.get("a"))
    case("kept", lambda: (cached.put("a", b"12"), cached.put("a", b"3"), cached.get("a")))
    case("empty key", lambda: cached.put("", b"1"))
    case("file", lambda: sorted(os.listdir(folder)))
case("entry", lambda: compilation_cache.combine_executable_and_time(b"abc", 5))
case("parts", lambda: compilation_cache.extract_executable_and_time(b"\0\0\1\0abc"))
case("no entry", lambda: compilation_cache.get_executable_and_time(
    "none", None, DEVICES[0].client, DEVICES))  # fmt: skip
case("scaled", lambda: scaled_dot is lax.scaled_dot)
case("places", lambda: [
    compute_on.compute_on.__name__, ModeResult(1, 2), fresnel is jax.scipy.special.fresnel,
    [stage.name for stage in xla_transform.PipelineStage],
])  # fmt: skip

# -- the debugger --------------------------------------------------------------------------------------

ORDERS = "p y\npp (x, y)\np missing\np 1 /\nu\nd\nd\nbt\nl\ny.sum()\nhelp\nc\n"


def stopped(backend=None, orders=ORDERS, **options):
    out = io.StringIO()

    def f(x):
        y = x + 1
        jax.debug.breakpoint(backend=backend, stdin=io.StringIO(orders), stdout=out, num_frames=1)
        return y

    jax.jit(f)(jnp.ones(2))
    jax.effects_barrier()
    return out.getvalue()


case("console", stopped)
case("another", lambda: stopped(backend="unknown", orders="p x\nc\n"))
seen = []
case(
    "register",
    lambda: debugger_core.register_debugger("list", lambda *args, **kw: seen.append(args), -9),
)
case("again", lambda: debugger_core.register_debugger("list", print, 1))
case("get", lambda: debugger_core.get_debugger("list") is debugger_core.get_debugger())
case("frames", lambda: stopped(backend="list"))
case("seen", lambda: [(f.lineno, f.locals["y"], f.offset, f.globals) for f in seen[0][0]])
stub = debugger_core.DebuggerFrame(
    filename="f", locals={"a": 1}, globals={}, code_context=None, source=list("abcdefgh"),
    lineno=9, offset=4,
)  # fmt: skip
for orders in ("a\nu\nw\nl\ncontinue\n", "quit\n", "EOF"):
    told = io.StringIO()
    case(
        "run",
        lambda: cli_debugger.run_debugger([stub, stub], 0, stdin=io.StringIO(orders), stdout=told),
    )
    case("told", told.getvalue)

# -- trees, lists, types -------------------------------------------------------------------------------

PAIRS = [
    (1, (1, 2)), ((1, 2), [1, 2]), ((1, 2), (1, 2, 3)), ({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": (1, 2)}, {"a": (1, (2, 3))}), (None, 1), ([1, (2,)], [(1,), 2]), ((), None), (1, 2),
    (OrderedDict(a=1), {"a": 1}),
]  # fmt: skip
told = lambda errors: [(tree_util.keystr(path), *rest) for path, *rest in errors]
for one, other in PAIRS:
    case("differ", lambda: told(tree_util.equality_errors(one, other)))
    both = map(tree_util.tree_structure, (one, other))
    case("structures", lambda: told(tree_util.equality_errors_pytreedef(*both)))
spread = lambda prefix, full: tree_util.broadcast_flattened_prefix_with_treedef(
    *tree_util.tree_flatten(prefix), tree_util.tree_structure(full)
)
case("spread", lambda: (spread(1, (1, 2)), spread(((1, 2), 3), ((1, [1, 1]), (2, 3)))))
case("no prefix", lambda: spread((1, 2), 1))
case("leaf", lambda: [
    tree_util.treedef_is_strict_leaf(tree_util.tree_structure(t)) for t in (1, None, (), (1,))
])  # fmt: skip
case("replaced", lambda: util.subs_list([None, 0, None, 1], ["x", "y"], ["a", "b"]))
case("two", lambda: util.subs_list2([None, 0, None], [1, None, None], ["x"], ["p", "q"], ["a"]))
case("too many", lambda: util.subs_list([0, 0], ["x"], ["a"]))
case("axis", lambda: [util.maybe_named_axis(a, lambda i: -i, str.upper) for a in (2, "x")])
case("unhashable", lambda: hash(util.Unhashable(3)))
case("fixed", lambda: setattr(util.immutable(type("Fixed", (), {}))(), "x", 1))
case("multi", lambda: util.multi_weakref_lru_cache(lambda a, b=1: (a, b))(2, b=3))
case("typing", lambda: (typing.DeprecatedArg(), isinstance(TABLE, typing.SupportsDType)))
case("index dtypes", lambda: [
    lax_utils.int_dtype_for_dim(n, signed=s).name
    for n in (1, 2**31 - 1, 2**31, 2**32) for s in (True, False)
])  # fmt: skip
case("shaped", lambda: lax_utils.ensure_shaped(core.ShapedArray((2,), np.dtype("float32"))))
case("not shaped", lambda: lax_utils.ensure_shaped(3))
case("arraylike", lambda: [
    jnp_util._arraylike(x) for x in (1, None, "s", [1], np.ones(2), TABLE, jax.random.key(0), object())
])  # fmt: skip
case("float0", lambda: jnp_util.check_no_float0s("f", np.zeros(2, jax.dtypes.float0)))
case("keys", lambda: jnp_util.check_for_prngkeys("f", jax.random.key(0), 1))
case("or none", lambda: jnp_util.check_arraylike_or_none("f", None, [1]))
case("tuple", lambda: jnp_util.ensure_arraylike_tuple("f", [1, np.ones(2)]))
case("complex", lambda: jnp_util.promote_args_complex("f", 1, np.ones(2, "float32")))
case("numeric", lambda: jnp_util.promote_args_numeric("f", True, np.ones(2, bool)))
case("device", lambda: [jnp_util.canonicalize_device_to_sharding(d) for d in (None, DEVICES[1])])
TYPED = (literals.TypedInt(3, np.dtype("int32")), literals.TypedFloat(2.0, np.dtype("float32")))
case("typed", lambda: [(repr(x), x + 1, x.dtype, jax.typeof(x), jnp.add(x, 1)) for x in TYPED])
case("typed array", lambda: jnp.sin(literals.TypedNdArray(np.ones(2, "float32"))))
case("typed kinds", lambda: [type(x) in literals.typed_scalar_types for x in (*TYPED, 3)])

# -- parts of jnp that libraries subclass and call -------------------------------------------------------


class Doubled(index_tricks.CClass):
    def __getitem__(self, key):
        return 2 * super().__getitem__(key)


class Places(array_methods._IndexUpdateRef):
    def set(self, values, **options):
        return super().set(values + 1, **options)


class Marked(array_methods._IndexUpdateHelper):
    def __getitem__(self, index):
        return Places(self.array, index)


KEEP = lambda *args, **kwargs: (args, sorted(kwargs.items()))


def excluded(which):
    fun, args, kwargs = vectorize._apply_excluded(KEEP, which, (1, 2), {"k": 3, "m": 4})
    return [*args], kwargs, fun(*args, **kwargs), fun is KEEP


case("columns", lambda: (Doubled()[TABLE[0], TABLE[1]], index_tricks.RClass()[1:3, 5]))
case("joiners", lambda: [isinstance(jnp.c_, index_tricks.CClass), isinstance(jnp.r_, Doubled)])
case("places", lambda: (Marked(jnp.ones(3))[1].set(4), Marked(jnp.ones(3))[0].add(1)))
for which in (set(), {0}, {1}, {"k"}, {0, "m"}, {0, 1}):
    case(f"excluded {sorted(map(str, which))}", lambda which=which: excluded(which))
for text in ("(m,n),(n)->(m)", "()->(),()", "(a,b)->()", "a->b", ""):
    case(f"signature {text}", lambda text=text: vectorize._parse_gufunc_signature(text))
for shapes in (
    ((2, 3, 4), (3, 4)),
    ((2, 3, 4), (4,)),
    ((3, 4), ()),
    ((1, 3, 4), (5, 4)),
    ((4, 3), (4,)),
):
    case(f"sizes {shapes}", lambda shapes=shapes: vectorize._parse_input_dimensions(
        tuple(map(np.ones, shapes)), [("m", "n"), ("n",)], "here"
    ))  # fmt: skip
for outs in ([("n",)], [("m",)], [("n", "n")], [("n",), ()]):
    case(f"results {outs}", lambda outs=outs: vectorize._check_output_dims(
        lambda x: x, {"n": 3}, outs, "here"
    )(jnp.ones(3)))  # fmt: skip
