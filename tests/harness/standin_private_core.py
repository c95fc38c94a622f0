"""Names of `jax._src` on programs, references and lowering at work: run by `test_standin_private`.

As `standin_private`: a line for each case, which must be the same on upstream and on the stand-in;
errors by their class alone.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import core, dispatch, effects, pjit, source_info_util, traceback_util
from jax._src import mesh as mesh_lib
from jax._src import pretty_printer as pp
from jax._src import sharding_impls as si
from jax._src import state as st
from jax._src.export import shape_poly
from jax._src.interpreters import ad, batching, mlir, pxla
from jax._src.interpreters import partial_eval as pe
from jax._src.lib.mlir import ir
from jax._src.state.discharge import (
    discharge_state,
    register_discharge_rule,
    run_state,
    run_state_reference,
)
from jax._src.state.indexing import NDIndexer, ds
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from standin_lines import case

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
KEY = jax.random.key(0).dtype
(a,) = jax.export.symbolic_shape("a")
x32 = core.ShapedArray((2,), np.float32)
program = jax.make_jaxpr(lambda x, y: (jnp.sin(x), x * y, y + 1))(1.0, 2.0)
values = lambda closed, *xs: [float(x) for x in core.jaxpr_as_fun(closed)(*xs)]

# -- references ----------------------------------------------------------------------------------------

one, two = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.ones(3))


def both(r, q):
    q[0] = r[1]
    r.addupdate(q[...])


def looped(r, q):
    return lax.while_loop(lambda c: c < 3, lambda c: (q.__setitem__(0, 1.0), c + 1)[1], r[0])


def chosen(r, q):
    return lax.cond(r[0] > 0, lambda: r[...], lambda: q[...])


def scanned(r, q):
    return lax.fori_loop(0, 3, lambda i, c: c + r[0], 1.0)


for f in (both, looped, chosen, scanned, jax.jit(both), lambda r, q: jax.new_ref(r[...])[0]):
    touched = jax.make_jaxpr(f)(one, two)
    case("effects", lambda: sorted(
        (type(e).__name__, touched.jaxpr.invars.index(e.input)) for e in touched.effects
        if isinstance(e, st.types.RefEffect)))  # fmt: skip
case("by number", lambda: sorted(map(str, core.positional_effects(jax.make_jaxpr(both)(one, two)))))
case("same", lambda: (st.types.ReadEffect(1) == st.types.ReadEffect(1), st.types.AccumEffect(2)))
case("shown", lambda: "Write<b>" in jax.make_jaxpr(both)(one, two).pretty_print(print_effects=True))
for which in (True, [True, False], [False, True], False):
    touched = jax.make_jaxpr(lambda r, q: r.addupdate(q[...]))(one, two)
    case("pure", lambda: discharge_state(touched, should_discharge=which))
case("too few", lambda: discharge_state(touched, should_discharge=[True]))


def of_state(refs):
    x, y = refs
    y[...] = x[...] * 2
    x[0] = 5.0


state = (jnp.ones(3), jnp.zeros(3))
for run in (run_state, run_state_reference):
    case("state", lambda: run(of_state)(state))
    case("jvp", lambda: jax.jvp(run(of_state), (state,), (state,)))
    case("jit", lambda: jax.jit(run(of_state))(state))
case("gives", lambda: run_state(lambda r: r[...])(jnp.ones(3)))
twice_p = core.Primitive("twice_ref")
twice_p.multiple_results = True
twice_p.def_effectful_abstract_eval(
    lambda r: ([], {st.types.ReadEffect(0), st.types.WriteEffect(0)})
)
case("no rule", lambda: run_state(lambda r: twice_p.bind(r) and None)(jnp.ones(3)))
register_discharge_rule(twice_p)(lambda ins, outs, x: ((x * 2,), []))
case("rule", lambda: run_state(lambda r: twice_p.bind(r) and None)(jnp.ones(3)))
case("in jit", lambda: (jax.jit(lambda r: twice_p.bind(r) and None)(two), two[...])[1])
for index in (
    (),
    (0, ds(1, 2)),
    (slice(1, 5, 2), ..., 3),
    (np.array([1, 2]), 0),
    (9,),
    (0,) * 4,
    (ds(3, 3),),
):
    case("indexer", lambda: NDIndexer.from_indices_shape(index, (4, 5, 6)).get_indexer_shape())
case("everything", lambda: NDIndexer.make_trivial_indexer((2, 3)))

hoisted = jax.make_jaxpr(lambda x: x + np.arange(3, dtype=np.float32))(np.ones(3, np.float32))
for place in (0, 1):
    case("hoisted", lambda: st.utils.hoist_consts_to_refs(hoisted.jaxpr, index=place).in_avals)
for dtype in (np.int32, np.int8, np.int16):
    case("bits", lambda: st.utils.eval_bitcast_shape(jnp.ones((2, 4), np.float32), dtype))
case("bits", lambda: st.utils.bitcast(jnp.ones((4, 2), np.int8), np.int32))

# -- what tracers stand for ----------------------------------------------------------------------------


def looked_at(x, *others):
    for y in (x * 1.0, x, *others):
        found = y.full_lower(), y.get_referent(), y.to_concrete_value()
        case("members", lambda: [(v is y, v is None, isinstance(v, core.Tracer)) for v in found])
        case("functions", lambda: [
            core.full_lower(y) is found[0], core.get_referent(y) is found[1],
            core.to_concrete_value(y) is found[2], core.same_referent(x, y),
            [v is x for v in core.dedup_referents([x, y, x])],
        ])  # fmt: skip
    return x * 1.0


mapped = lambda x: jax.vmap(lambda y: looked_at(y, x))(x)
for f in (
    looked_at, jax.grad(looked_at), lambda x: jax.jvp(looked_at, (x,), (x,)),
    lambda x: jax.linearize(looked_at, x)[1](x), jax.grad(jax.grad(looked_at)),
    lambda x: jax.vmap(looked_at)(x[None]), lambda x: jax.vmap(jax.grad(looked_at))(x[None]),
    lambda x: jax.jvp(mapped, (x[None],), (x[None],)), jax.grad(lambda x: mapped(x[None])[0]),
):  # fmt: skip
    if f is not looked_at:
        case("eager", lambda: f(jnp.float32(1)))
    case("jit", lambda: jax.jit(f)(jnp.float32(1)))
for ask in (
    lambda t: t.requires_low, lambda t: t.stage_value(1.0),
    lambda t: t.process_call(program, None, [], {}),
):  # fmt: skip
    case("inherited", lambda: ask(type("Empty", (core.Trace,), {})()))

# -- results -------------------------------------------------------------------------------------------


def about(x):
    return type(x).__name__, x.shape, x.dtype, x.committed, x.sharding, x.weak_type, x.tolist()


one, two = (jax.sharding.SingleDeviceSharding(d) for d in jax.devices()[:2])
split = [NamedSharding(MESH, spec) for spec in (P("x"), P(), P("y", "x"))]
for where in (two, *split):
    whole = jax.device_put(jnp.arange(16.0).reshape(4, 4), where)
    parts = [shard.data for shard in whole.addressable_shards]
    for weak, committed in ((False, True), (True, False)):
        aval = core.ShapedArray((4, 4), np.float32, weak_type=weak)
        for make in (pxla.global_aval_to_result_handler, pxla.global_result_handlers[type(aval)]):
            for given in (parts, whole, parts[:0]):
                case("result", lambda: about(make(aval, where, committed)(given)))
        make = pxla.global_avals_to_results_handler([aval] * 2, [where] * 2, committed)
        case("members", lambda: (len(make.handlers), make.out_avals, make.out_shardings))
        for given in ([parts, whole], [parts], [parts] * 3):
            case("results", lambda: [about(x) for x in make(given)])
key = jax.random.key(3)
for aval, given in (
    (core.ShapedArray((), key.dtype), jax.random.key_data(key)),
    (core.ShapedArray((), key.dtype), [jax.random.key_data(key)]),
    (core.abstract_token, [jnp.zeros(0, bool)]), (core.AbstractValue(), []),
):  # fmt: skip
    case("other", lambda: pxla.global_aval_to_result_handler(aval, one, True)(given).shape)

# -- programs as text ----------------------------------------------------------------------------------

names, settings = core.JaxprPpContext(), core.JaxprPpSettings()
for f in (
    core.pp_jaxpr,
    lambda j, c, s: core.pp_eqns(j.eqns, c, s),
    lambda j, c, s: core.pp_eqn(j.eqns[1], c, s),
):
    case("text", lambda: f(program.jaxpr, names, settings).format())
    case(
        "bare",
        lambda: f(
            program.jaxpr, core.JaxprPpContext(), settings._replace(print_shapes=False)
        ).format(),
    )
case("vars", lambda: core.pp_vars(program.jaxpr.invars, names, separator=",", print_shapes=True))
case("params", lambda: core.pp_kv_pairs([("a", 3), ("b", program)], names, settings).format())
case("top", lambda: core.pp_toplevel_jaxpr(program.jaxpr, print_effects=True).format(width=40))
case(
    "document",
    lambda: pp.group(pp.nest(2, pp.join(pp.brk(), [pp.text("abc")] * 5))).format(width=9),
)
shown_p = core.Primitive("shown")
shown_p.def_abstract_eval(lambda x, **params: x)
core.pp_eqn_rules[shown_p] = lambda eqn, context, settings: pp.concat(
    [pp.text("show "), core.pp_vars(eqn.invars, context), pp.text(f" as {eqn.params['k']}")]
)
case("own rule", lambda: jax.make_jaxpr(lambda x: shown_p.bind(x * 2, k=3))(1.0))

# -- more of core --------------------------------------------------------------------------------------

last = core.last_used(program.jaxpr)
case("last", lambda: [e and e.primitive.name for e in last.values()])
env = dict.fromkeys(program.jaxpr.invars, 1)
case("dead", lambda: [(core.clean_up_dead_vars(e, env, last), len(env))[1] for e in program.eqns])
case("equation", lambda: core.check_eqn(lax.sin_p, [x32], {"accuracy": None})[0])
for given, size in ((slice(None), 5), (slice(4, 1, -1), 5), (slice(None, None, -2), 5), (slice(1, 20, 3), 7),
                    (slice(5, 1), 7), (slice(0, 3, 0), 3), (slice(1, None), a + 2), (slice(None, a), 2 * a)):  # fmt: skip
    case("slice", lambda: core.canonicalize_slice(given, size))
for d in (3, np.int64(2), 2.5, a, "x", None):
    case("size", lambda: core.canonicalize_dim(d))
    case("number", lambda: core.concrete_dim_or_error(d))
case("as value", lambda: (core.dim_value_aval(), core.dim_constant(3).dtype))
case("one of", lambda: [core.definitely_equal_one_of_dim(a, ds) for ds in ([3, a], [3])])


def scope(x):
    env = core.get_axis_env()
    print(core.unsafe_get_axis_names(), core.unsafe_am_i_under_a_jit(), core.unsafe_am_i_under_a_vmap(),
          env.axis_exists("i"), core.trace_ctx.is_top_level(), core.to_concrete_value(x))  # fmt: skip
    case("axis", lambda: env.axis_size("i"))
    if isinstance(x, core.Tracer):
        case("convert", lambda: core.concretization_function_error(float)(None, x))
    return x


scope(1.0)
case("in jit", lambda: jax.jit(scope)(1.0))
case("in vmap", lambda: jax.jit(jax.vmap(scope, axis_name="i"))(jnp.ones(3)))
case("clean", core.reset_trace_state)
case(
    "literals",
    lambda: [
        core.is_literalable(x) for x in (1, np.float32(1), np.ones(()), np.ones(2), "a", None)
    ],
)
for f in (core.check_bool_conversion, core.check_integer_conversion, core.check_scalar_conversion):
    for x in (jnp.ones(()), jnp.ones(1), jnp.ones(2), jnp.ones(0), jnp.ones((), int)):
        case("convertible", lambda: f(x))
along = jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 2)])(1.0)
case(
    "without",
    lambda: [len(core.remove_named_axis_effects(along.jaxpr, (n,)).effects) for n in "ij"],
)
case("key", lambda: (core.physical_element_aval(KEY), core.physical_shape((2, 3), KEY)))
case("memory", lambda: [core.mem_kind_to_space(k) for k in ("device", "pinned_host", None)])
mixed = jax.make_mesh(
    (2, 2, 2), ("x", "y", "z"), axis_types=(AxisType.Auto, AxisType.Explicit, AxisType.Manual)
)
for spec in (P(), P("x"), P("y"), P("z", "y"), P(("x", "y")), P(None, ("y", "x"))):
    case("explicit", lambda: core.modify_spec_for_auto_manual(spec, mixed.abstract_mesh))
case("order", lambda: core.order_wrt_mesh(mixed, {"z", "x"}))
case("leading", lambda: (core.mapped_leading_aval(2, x32), core.unmapped_leading_aval(3, x32)))
case("unequal", lambda: core.mapped_leading_aval(3, x32))

# -- more of derivatives, batching, splitting ----------------------------------------------------------

linear = jax.make_jaxpr(lambda y, x: (x * y, x))(2.0, 1.0)
scalar = core.ShapedArray((), np.float32)
case(
    "backward",
    lambda: ad.closed_backward_pass(linear, False, [2.0, ad.UndefinedPrimal(scalar)], [1.0, 1.0])[
        1
    ],
)
total = ad.ValAccum(scalar)
case(
    "into",
    lambda: (ad.backward_pass3(linear.jaxpr, False, [], [2.0, total], [1.0, 1.0]), total.freeze()),
)
case("nothing", lambda: ad.NullAccum(scalar).freeze())
for nonzeros in ([True, False], [True, True]):
    for options in ((False, True), (False, False)):
        case(
            "linearize", lambda: ad.linearize_jaxpr(program, nonzeros, *options, is_vjp=False)[1:4]
        )
times_p = core.Primitive("times")
times_p.def_impl(lambda x, y: x * y)
times_p.def_abstract_eval(lambda x, y: x)
ad.primitive_jvps[times_p] = lambda ps, ts: (
    times_p.bind(*ps),
    times_p.bind(ad.instantiate_zeros(ts[0]), ps[1]),
)
ad.fancy_transposes[times_p] = lambda ct, x, y: x.accum(ct * y)
case("fancy", lambda: jax.grad(lambda x: times_p.bind(x, jnp.float32(4.0)) * 3.0)(jnp.float32(1.0)))
rules = [lambda t, x, y: t * y, lambda t, x, y: t * x]
case("standard", lambda: ad.standard_jvp(rules, lax.mul_p, (2.0, 3.0), (1.0, 1.0)))
case("linear", lambda: ad.linear_jvp(lax.neg_p, (2.0,), (3.0,)))
axis = batching.AxisData(None, 3, None, None)
case("mapped", lambda: batching.batch_jaxpr2(program, axis, (0, None))[1])
for dests in ((0, 0, 0), (0, None, None), (0, 0, None)):
    case("to axes", lambda: batching.batch_jaxpr_axes(program, axis, (0, None), dests)[1])
case(
    "broadcast",
    lambda: batching.broadcast_batcher(
        lax.add_p, axis, (jnp.ones((2, 3)), jnp.ones((3, 2))), (1, 0)
    ),
)
case(
    "reduce",
    lambda: batching.reducer_batcher(
        lax.reduce_sum_p, axis, (jnp.ones((2, 3, 4)),), (1,), (0,), out_sharding=None
    ),
)


def elements(x, *specs):
    """What `to_elt` makes of an array within `vmap`, for each of these axes."""
    found = []

    def seen(y):
        for spec in specs:
            made = batching.to_elt(y._trace, lambda: 0, x, spec)
            found.append((type(made).__name__, made.shape, getattr(made, "batch_dim", None)))
        return y

    jax.vmap(seen)(x)
    return found


def with_another_input(x):
    """A traced function that asks its trace for one more input."""
    trace = core.trace_ctx.trace
    other = trace.new_arg(jax.typeof(x), source_info=source_info_util.current())
    return x * other


def frames_of_users():
    try:
        jax.jit(lambda x: x.missing)(1.0)
    except AttributeError as error:
        found = traceback_util.filter_traceback(error.__traceback__)
    names = []
    while found is not None:
        names.append(found.tb_frame.f_code.co_name)
        found = found.tb_next
    return names


case("one more input", lambda: jax.make_jaxpr(with_another_input)(1.0))
case("frames", frames_of_users)
case("settings", lambda: core.JaxprEqnContext().threefry_partitionable)
case("to elements", lambda: elements(jnp.ones((2, 3)), 0, 1, -1, None))
case("to elements of no axis", lambda: elements(jnp.ones((2, 3)), "a"))
case("iota", lambda: batching.make_iota(3).tolist())
case("each", lambda: batching.vectorized_batcher(lax.neg_p, axis, (jnp.ones((2, 3)),), (1,)))
case(
    "expand",
    lambda: batching.expand_dims_batcher(lax.add_p, (jnp.ones((2, 3)), jnp.ones(2)), (1, None)),
)
for src, dst in ((0, 1), (None, 0), (0, None), (1, 1)):
    case("match", lambda: batching.matchaxis(axis, src, dst, jnp.ones((3, 2))).shape)
chain = jax.make_jaxpr(lambda x, y: jnp.sin(jnp.sin(x)) * y)(1.0, 2.0).jaxpr
for unknown in ((False, True), (False, False), (True, True)):
    for saves in (True, False):
        for there in (True, False):
            case("custom", lambda: pe.partial_eval_jaxpr_custom(
                chain, unknown, there, False, False, lambda *_, **__: saves))  # fmt: skip
case("words", lambda: (pe.ensure_enum(True) is pe.Saveable, pe.ensure_enum(False) is pe.Recompute))
case("no word", lambda: pe.ensure_enum(3))
case(
    "forwarded",
    lambda: [
        pe.partial_eval_jaxpr_nounits_fwd(program, [False, True], False, f)[2:]
        for f in (True, False)
    ],
)
case("moved", lambda: values(pe.move_outvars_to_back(program, [True, False, False]), 1.0, 2.0))
case("less", lambda: pe.prune_jaxpr_outputs(program.jaxpr, [False, True, False]))
case(
    "unread",
    lambda: pxla.prune_unused_inputs(jax.make_jaxpr(lambda x, y: y * 2)(1.0, 2.0).jaxpr)[1:],
)

# -- orders of devices, and running --------------------------------------------------------------------

cube = np.arange(24).reshape(2, 3, 4)
for order in (cube, cube.transpose(2, 0, 1), cube.transpose(1, 0, 2), np.array([1, 0])):
    case("dims", lambda: [tuple(map(int, d)) for d in si.unflatten_superdims(order.ravel())])
    case("names", lambda: si.unflatten_array({"x": 2, "y": 3, "z": 4}, order.ravel()))
case("exploded", lambda: si.explode_superdims([2, 3, 4], [(4, 1), (6, 4)]))
case("strides", lambda: list(map(int, si.strides_for_sizes((2, 3, 4)))))
on_keys = si.physical_sharding(core.ShapedArray((4,), KEY), NamedSharding(MESH, P("x")))
case("of keys", lambda: (on_keys.spec, si.logical_sharding((4,), KEY, on_keys).spec))
case("of axes", lambda: dict(si.get_array_mapping(P("x", None, ("y",)))))
case("processes", lambda: si.get_process_index_and_count(on_keys, 0, 2))
for given in (P("x"), (P("x"), None), 3, P("x", "x")):
    case("resources", lambda: si.prepare_axis_resources(given, "a"))
case("environment", lambda: (mesh_lib.EMPTY_ENV, mesh_lib.ResourceEnv(MESH).shape))
case(
    "types",
    lambda: (
        mesh_lib.all_axis_types_match(MESH.axis_types, AxisType.Auto),
        mesh_lib.show_axes("xy"),
    ),
)
case(
    "tokens", lambda: (dispatch.runtime_tokens.clear(), dispatch.runtime_tokens.block_until_ready())
)
case("argument", lambda: dispatch.check_arg("a"))
with jax.debug_nans(True):
    case(
        "special",
        lambda: (dispatch.needs_check_special(), dispatch.check_special("f", [jnp.ones(2)])),
    )
case("callable", lambda: dispatch.xla_primitive_callable(lax.add_p)(jnp.ones(2), jnp.ones(2)))
case("spec", lambda: (pxla.batch_spec(P("x"), 0, None), pxla.batch_spec(P(), 1, "y")))

# -- building operations -------------------------------------------------------------------------------


class Kind:
    pass


class Kind2:
    pass


SQUARE = jnp.arange(6.0).reshape(2, 3)


def built(rule, shape, *xs, dtype=np.float32):
    p = core.Primitive("built")
    p.def_abstract_eval(lambda *avals: core.ShapedArray(shape, dtype))
    mlir.register_lowering(p, lambda ctx, *values: [rule(ctx, ctx.avals_out[0], *values)])
    case("built", lambda: jax.jit(lambda *values: p.bind(*values))(*xs))


def over_devices(name, rule):
    """A rule under explicit axes, at two places of a program that names the mesh itself too."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    p = core.Primitive("over_devices")
    p.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(p, lambda ctx, x: [rule(ctx, ctx.avals_out[0], x)])
    with jax.set_mesh(mesh):
        for spec in (P("x", "y"), P(None, ("x", "y")), P()):
            x = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, spec))
            for f in (lambda x: p.bind(p.bind(x)), lambda x: p.bind(x * 2).T, lambda x: p.bind(x)):
                out = jax.jit(f)(x)
                case(name, lambda: (out.sharding.spec, np.asarray(out).tolist()))
                case("type", lambda: jax.make_jaxpr(f)(x).out_avals)


def merged(ctx, out, x):
    """A call of a module of its own, in which another mesh has the name that the program's has."""
    kind = x.type
    constraint = f'%0 = sdy.sharding_constraint %arg0 <@mesh, [{{"a"}}, {{}}]> : {kind}'
    own = ir.Module.parse(
        f'sdy.mesh @mesh = <["a"=8]> func.func public @main(%arg0: {kind}) -> {kind}'
        f" {{ {constraint} return %0 : {kind} }}"
    )
    name = mlir.merge_mlir_modules(ctx.module_context.module, "part", own)
    return mlir.func_dialect.CallOp([kind], ir.FlatSymbolRefAttr.get(name), [x]).result


over_devices("split", lambda c, o, x: mlir.lower_with_sharding_in_types(c, x, o))
over_devices("split", lambda c, o, x: mlir.lower_with_sharding_in_types(c, mlir.hlo.add(x, x), o))
over_devices("called", lambda c, o, x: mlir.core_call_lowering(
    c, x, name="called", call_jaxpr=jax.make_jaxpr(lambda x: jnp.sin(x) * x)(o))[0])  # fmt: skip
over_devices("merged", merged)

start = jnp.int32(1)
built(lambda c, o, x: mlir.reshape(c, x, o), (3, 2), SQUARE)
built(
    lambda c, o, x: mlir.broadcast_in_dim(c, x, o, broadcast_dimensions=(1, 2)), (2, 2, 3), SQUARE
)
built(lambda c, o, x: mlir.iota(c, o, dimension=1), (2, 3), SQUARE)
built(
    lambda c, o, x: mlir.pad(c, o, x, mlir.full_like_aval(c, 7, scalar), (1, 0), (1, 0), (0, 0)),
    (4, 3),
    SQUARE,
)
built(
    lambda c, o, x: mlir.slice_op(
        c, x, o, start_indices=(1, 0), limit_indices=(2, 3), strides=(1, 2)
    ),
    (1, 2),
    SQUARE,
)
built(lambda c, o, x, i: mlir.dynamic_slice(c, o, x, start_indices=[i, i]), (1, 2), SQUARE, start)
built(
    lambda c, o, x, u, i: mlir.dynamic_update_slice(c, o, x, u, start_indices=[i, i]),
    (2, 3),
    SQUARE,
    SQUARE[:1, :2],
    start,
)
built(lambda c, o, x: mlir.compare_hlo(x, x, "GE"), (2, 3), SQUARE, dtype=bool)
built(lambda c, o, x: mlir.convert_hlo(c, x, c.avals_in[0], o), (2, 3), SQUARE, dtype=bool)
built(
    lambda c, o, x, y: mlir.max_hlo(x, y),
    (2,),
    jnp.array([1 + 2j, 3]),
    jnp.array([1 + 1j, 4]),
    dtype=np.complex64,
)
built(
    lambda c, o, x, y: mlir.min_hlo(
        *mlir.multi_broadcast_in_dim(c, [x, y], c.avals_in, (2, 3), None)
    ),
    (2, 3),
    SQUARE,
    jnp.float32(2),
)
built(
    lambda c, o, x: mlir.delegate_lowering(c, mlir.lower_fun(jnp.sin, multiple_results=False), x)[
        0
    ],
    (2, 3),
    SQUARE,
)
built(
    lambda c, o, x: mlir.custom_call("Sharding", result_types=[x.type], operands=[x]).result,
    (2, 3),
    SQUARE,
)
case("sanitized", lambda: [mlir.sanitize_name(s) for s in ("a b", "<lambda>", "f(x)", "a-b.c_d")])
with mlir.make_ir_context(), ir.Location.unknown():
    case(
        "handler",
        lambda: (
            mlir.register_attribute_handler(Kind, lambda v: ir.StringAttr.get("t")),
            mlir.ir_attribute(Kind()),
        ),
    )
    case("no handler", lambda: mlir.get_attribute_handler(Kind2))
    case("no constant", lambda: mlir.get_constant_handler(Kind2))

# -- sizes in variables --------------------------------------------------------------------------------

b = jax.export.symbolic_shape("b", scope=a.scope)[0]
symbolic = [core.ShapedArray(s, np.float32) for s in ((a, b), (a + b,))]
of_args = jax.tree.structure(((1, {"k": 2}), {}))
case("variables", lambda: shape_poly.all_dim_vars(symbolic))
for at in (None, 1):
    case("leaf", lambda: shape_poly.pretty_print_dimension_descriptor(of_args, 1, at))
for size in (5, 6):
    case("solved", lambda: list(map(int, shape_poly.compute_dim_vars_from_arg_shapes(
        symbolic, jnp.ones((2, 3)), jnp.ones(size), args_kwargs_tree=of_args))))  # fmt: skip
evaluator = shape_poly.ShapeEvaluator({"a": 2})
for size in (a * a - 1, 3, a + b):
    case("evaluated", lambda: int(evaluator.evaluate(size)))
for size in (a + 1, 3 - a, a - b, a * b + 2, a // 2):
    case("bounds", lambda: shape_poly._bounds_decision(size, shape_poly.BoundsPrecision.BEST))
for x in (jnp.ones((2, 3)), 1.0, jax.ShapeDtypeStruct((a, 2), np.float32)):
    case("typed", lambda: shape_poly.shape_and_dtype_jax_array(x))
case("tree", lambda: pjit.hashable_pytree((1, {"a": 2})) == pjit.hashable_pytree((1, {"a": 2})))
case("free", lambda: pjit.get_unconstrained_dims(NamedSharding(MESH, P(P.UNCONSTRAINED, "x"))))

# -- effects on inputs ---------------------------------------------------------------------------------


class Touches(effects.JaxprInputEffect):
    pass


effects.control_flow_allowed_effects.add_type(Touches)
touch_p = core.Primitive("touch")
touch_p.multiple_results = True
touch_p.def_effectful_abstract_eval(lambda *avals, index: ([], {Touches(index)}))


def touch(*xs, index=0):
    touch_p.bind(*xs, index=index)
    return xs[0]


def looping(x, y, z):
    return lax.while_loop(lambda c: touch(z) + c < 3.0, lambda c: touch(y) + c, x)


def branching(x, y, z):
    return lax.cond(x > 0, lambda u, v: touch(u, v), lambda u, v: touch(u, v, index=1), y, z)


for f in (
    touch,
    jax.jit(lambda x, y, z: touch(z, y, index=1)),
    jax.checkpoint(lambda x, y, z: touch(y)),
    lambda x, y, z: lax.fori_loop(0, 3, lambda i, c: c + touch(y), x),
    looping,
    branching,
    lambda x, y, z: touch(1.0),
    lambda x, y, z: touch(jnp.sin(x)),
    lambda x, y, z: touch(x, index=5),
):
    case(
        "touched",
        lambda: sorted(map(str, core.positional_effects(jax.make_jaxpr(f)(1.0, 2.0, 3.0)))),
    )

# -- keys, and names that come with others -------------------------------------------------------------

from jax._src.random import threefry2x32 as threefry  # noqa: E402

for seed in (0, 3, np.int8(-1), np.uint32(2**32 - 1)):
    key = threefry.threefry_seed(jnp.asarray(seed))
    case("seed", lambda: (key.dtype, key))
    case("split", lambda: [threefry.threefry_split(key, shape) for shape in ((2,), (), (0, 2))])
    case("fold in", lambda: threefry.threefry_fold_in(key, jnp.uint32(7)))
    for width in (8, 16, 32, 64, 5):
        case(f"{width} bits", lambda: threefry.threefry_random_bits(key, width, (3, 2)))
case("mapped", lambda: jax.vmap(lambda s: threefry.threefry_seed(s))(jnp.arange(3)))
case("zip", lambda: (core.safe_zip([1], [2]), core.safe_map(abs, [-1]), core.safe_zip([1], [])))
case("parted", lambda: core.partition_list([True, False, True], [1, 2, 3]))
