"""Names of `jax._src` at work: run by `test_standin_private` on upstream and on the stand-in.

Prints a line for each case, which must be the same in both; errors by their class alone.
"""

import collections
import io
import unittest

import jax
import jax.experimental.sparse.test_util as sptu
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import config, core, dispatch, dtypes, effects, monitoring, xla_bridge
from jax._src import linear_util as lu
from jax._src.interpreters import ad
from jax._src.interpreters import partial_eval as pe
from jax._src.lib import check_jaxlib_version, gpu_sparse, lapack
from jax._src.named_sharding import DuplicateSpecError
from jax._src.sharding_impls import (
    UNSPECIFIED,
    GSPMDSharding,
    NamedSharding,
    SdyArray,
    SdyDim,
    array_mapping_to_axis_resources,
    device_replica_id_map,
    flatten_spec,
    local_to_global_shape,
    num_addressable_indices,
    parse_flatten_op_sharding,
)
from jax._src.tree_util import _registry as registry
from jax.experimental import sparse
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from standin_lines import case

# -- shardings -----------------------------------------------------------------------------------------

DEVICES = jax.devices()
MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
ARRAY = np.arange(128.0).reshape(8, 16)
SPECS = (
    P(), P("x"), P(None, "y"), P(("x", "y")), P(("y", "x")), P("y", "x"), P("x", "y"), P(None, ("x", "y")),
)  # fmt: skip
for spec in SPECS:
    named = NamedSharding(MESH, spec)
    hlo = named._to_xla_hlo_sharding(2)
    where = GSPMDSharding(DEVICES, hlo)
    case(f"{spec}", lambda: (where, where.is_fully_replicated, where.shard_shape((8, 16))))
    case("indices", lambda: list(map(str, where.devices_indices_map((8, 16)).values())))
    case("equal", lambda: (where == GSPMDSharding(list(DEVICES), hlo), where == named))
    case("equivalent", lambda: (where.is_equivalent_to(named, 2), named.is_equivalent_to(where, 2)))
    case("put", lambda: jax.device_put(ARRAY, where).sharding == where)
    double = jax.jit(lambda x: x * 2, in_shardings=where, out_shardings=where)
    case("jit", lambda: double(ARRAY).sharding.is_equivalent_to(named, 2))
    case("constraint", lambda: jax.jit(lambda x: lax.with_sharding_constraint(x * 2, where))(
        ARRAY).sharding.is_equivalent_to(named, 2))  # fmt: skip
    case("parsed", lambda: parse_flatten_op_sharding(hlo, MESH))
    case("sizes", lambda: [num_addressable_indices(where, dim, (8, 16)) for dim in (0, 1)])
    case("whole", lambda: local_to_global_shape(where, (8, 16)))
    case("replicas", lambda: list(device_replica_id_map(where, (8, 16)).values()))
    case("flat", lambda: flatten_spec(spec))
case("replicated", lambda: GSPMDSharding.get_replicated(DEVICES))
case("libraries", lambda: (gpu_sparse.__name__, lapack.__name__))
case("rank", lambda: GSPMDSharding(DEVICES, hlo).check_compatible_aval((8,)))
case("mapping", lambda: array_mapping_to_axis_resources({"x": 0, "y": 2, "z": 2}))
case("dims", lambda: SdyDim(axes=("x",), is_open=True) == SdyDim(axes=("x",), is_open=True))
case("array", lambda: SdyArray(mesh_shape=(("x", 2),), dim_shardings=()).mesh_shape)
case(
    "twice", lambda: issubclass(DuplicateSpecError, Exception) and NamedSharding(MESH, P("x", "x"))
)
case("unspecified", lambda: jax.jit(lambda x: x, out_shardings=UNSPECIFIED)(1.0))

# -- sizes and types -----------------------------------------------------------------------------------

(a, b) = jax.export.symbolic_shape("a, b")
for d in (3, a, 2 * a + 1, a * b):
    case(f"{d}", lambda: (core.is_constant_dim(d), core.is_dim(d), core.is_symbolic_dim(d)))
    case("dilated", lambda: [core.dilate_dim(d, n) for n in (1, 3)])
    case("equal", lambda: (core.definitely_equal(d, a), core.definitely_equal(d, 3)))
case("shapes", lambda: [core.definitely_equal_shape(s, (a, 3)) for s in ((a, 3), (a,), (3, a))])
case("empty", lambda: [core.is_empty_shape(s) for s in ((), (0, a), (a,), (3, 0))])
case("divided", lambda: core.divide_shape_sizes((a, 6), (a, 3)))
case("divided evenly", lambda: core.divide_shape_sizes((4, 6), (5, 3)))
case("of zero", lambda: core.divide_shape_sizes((0, 6), (3, 0)))
case("strided", lambda: [core.stride_dim(n, 3, 2) for n in (2, 3, 8)])
case("shape", lambda: core.canonicalize_shape((np.int64(2), 3)))
case("no shape", lambda: core.canonicalize_shape((2.5,)))
x32, weak = core.ShapedArray((2,), np.float32), core.ShapedArray((2,), np.float32, weak_type=True)
case("match", lambda: (core.typematch(x32, weak), core.typecompat(x32, weak)))
case("check", lambda: [core.typecheck(x32, x) for x in (np.ones(2, np.float32), np.ones(3), 1.0)])
case("dtypes", lambda: [sorted(map(str, t)) for t in (
    dtypes._jax_types, dtypes._float_types, dtypes._int_types, dtypes._intn_dtypes)])  # fmt: skip
case("default", lambda: {k: str(f()) for k, f in dtypes.default_types.items()})
case("scalar", lambda: [str(dtypes.scalar_type_to_dtype(t)) for t in (bool, int, float, complex)])


def _with_axes():
    with core.extend_axis_env_nd([("i", 3), ("j", 2)]):
        return jax.make_jaxpr(lambda x: lax.psum(x, ("i", "j")))(1.0).out_avals


case("axes", _with_axes)


# -- programs ------------------------------------------------------------------------------------------

program = jax.make_jaxpr(lambda x, y: (jnp.sin(x), x * y, y + 1))(1.0, 2.0)
for unknown in ((False, True), (True, False), (True, True), (False, False)):
    for want in (False, True):

        def split(unknown=unknown, want=want):
            first, rest, outs, residuals = pe.partial_eval_jaxpr_nounits(program, unknown, want)
            given = [x for x, u in zip((1.0, 2.0), unknown) if not u]
            found = core.jaxpr_as_fun(first)(*given)
            known = len(found) - len(residuals)
            others = [x for x, u in zip((1.0, 2.0), unknown) if u]
            rest = core.jaxpr_as_fun(rest)(*found[known:], *others)
            return outs, [float(x) for x in found[:known]], [float(x) for x in rest]

        case(f"split {unknown} {want}", split)
values = lambda closed, *xs: [float(x) for x in core.jaxpr_as_fun(closed)(*xs)]
case("front", lambda: values(pe.move_binders_to_front(program, [False, True]), 2.0, 1.0))
case("back", lambda: values(pe.move_binders_to_back(program, [True, False]), 2.0, 1.0))
case("pruned", lambda: values(
    pe.prune_closed_jaxpr_outputs(program, [False, True, False]), 1.0, 2.0))  # fmt: skip
case("jvp", lambda: (lambda made, out: (values(made, 1.0, 2.0, 3.0), out))(
    *ad.jvp_jaxpr(program, [True, False], False)))  # fmt: skip
case("closed", lambda: values(pe.close_jaxpr(pe.convert_constvars_jaxpr(program.jaxpr)), 1.0, 2.0))
case("has", lambda: [dispatch.jaxpr_has_primitive(program.jaxpr, n) for n in ("sin", "cos")])
case("apply", lambda: dispatch.apply_primitive(lax.neg_p, jnp.ones(2)))
case("zero", lambda: type(ad.zero_jvp(lax.floor_p, (1.5,), (1.0,))[1]).__name__)
case("debug info", lambda: lu.DebugInfo.__name__)
case("no effects", lambda: effects.no_effects)


class Ticks(effects.Effect):
    pass


ticks = effects.EffectTypeSet()
case("outside", lambda: (ticks.contains(Ticks()), len(ticks.filter_not_in([Ticks()]))))
ticks.add_type(Ticks)
case("inside", lambda: (ticks.contains(Ticks()), len(ticks.filter_in([Ticks()]))))
case("joined", lambda: core.join_effects({1}, {2}, set()) == {1, 2})

# -- settings, listeners, platforms --------------------------------------------------------------------

flag = config.bool_state(name="jax_of_this_test", default=False, help="nothing")
case("flag", lambda: (flag.value, jax.config.jax_of_this_test))
with flag(True):
    case("set", lambda: flag.value)
case("defined twice", lambda: config.bool_state(name="jax_of_this_test", default=False, help=""))
choice = config.enum_state(name="jax_choice", enum_values=["a", "b"], default="a", help="")
with choice("b"):
    case("chosen", lambda: choice.value)
case("no choice", lambda: jax.config.update("jax_choice", "c"))
case("wrong default", lambda: config.int_state(name="jax_number", default="a", help=""))
case("wrong value", lambda: config.int_state(name="jax_count", default=1, help="")("x").__enter__())
case(
    "hint",
    lambda: (jax.config.update("jax_pgle_profiling_runs", 5), config.pgle_profiling_runs.value),
)
heard = lambda *args, **kwargs: None
monitoring.register_event_listener(heard)
case("listeners", lambda: heard in monitoring.get_event_listeners())
case("aliases", lambda: [xla_bridge.expand_platform_alias(p) for p in ("cpu", "gpu")])
case("known", lambda: [xla_bridge.is_known_platform(p) for p in ("cpu", "tpu", "gpu", "abacus")])
case("canonical", lambda: xla_bridge.canonicalize_platform("cpu"))
case("not here", lambda: xla_bridge.canonicalize_platform("abacus"))
for versions in (
    ("0.10.2", "0.10.2", "0.10.0"),
    ("0.10.2", "0.9.1", "0.10.0"),
    ("0.9", "0.10", "0.8"),
):
    case("versions", lambda: check_jaxlib_version(*versions))
case("plug-in", xla_bridge.using_pjrt_c_api)

# -- sparse suites -------------------------------------------------------------------------------------


class SparseTest(sptu.SparseTestCase):
    def runTest(self):
        rng, product = self.rng(), lambda x, y: x @ y
        double = lambda x, y: 2 * (x @ y)
        one = sparse.BCOO.fromdense(jnp.array([[1.0, 0], [0, 2]]))
        make = lambda: [one, jnp.ones((2, 3))]
        maker = lambda: [sptu.rand_bcoo(rng)((3, 4), np.float32), rng.randn(4, 2).astype("float32")]
        case("dims", lambda: self._random_bdims(2, 3, 0))
        case("same", lambda: self.assertSparseArraysEquivalent(one, one))
        case("other", lambda: self.assertSparseArraysEquivalent(one, one.sum_duplicates(nse=3)))
        case("dense", lambda: self.assertSparseArraysEquivalent(one, one.todense()))
        for name, dense in (("right", product), ("wrong", double)):
            ours = sparse.sparsify(product)
            case(name, lambda: self._CheckAgainstDense(dense, ours, make))
            case("grads", lambda: self._CheckGradsSparse(dense, ours, make))
            case(
                "one", lambda: self._CheckGradsSparse(dense, ours, make, argnums=[1], modes=["rev"])
            )
            case("batch", lambda: self._CheckBatchingSparse(dense, ours, maker, bdims=[0, 1]))


unittest.TextTestRunner(stream=io.StringIO()).run(SparseTest())

# -- pytree classes ------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "x y")
NODES = (
    (1, 2), [1], {"b": 1, "a": 2}, None, collections.OrderedDict(b=1, a=2),
    collections.defaultdict(int, a=1), jax.tree_util.Partial(max, 1, default=2),
)  # fmt: skip
for node in NODES:
    kind = type(node)

    def again(entry, node):
        children, data = entry.to_iter(node)
        return tuple(children), data, entry.from_iter(data, tuple(children))

    case(f"node {kind.__name__}", lambda: again(registry[kind], node))
case("nodes", lambda: [kind in registry for kind in (list, int, Pair, jax.tree_util.Partial)])
case("no node", lambda: registry[int])
case("maybe a node", lambda: (registry.get(int), registry.get(list) is None))
