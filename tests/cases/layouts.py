"""Expressions about layouts in memory, over eight devices: run by `test_memory_layouts` in child
processes. Each is evaluated with the names of `names`, and told by `shown`.
"""

import contextlib
import copy
import importlib
import pickle
import warnings
from functools import partial

import numpy as np

from tests.harness import survivors

TEXT = """
y()
y() + 1, y().T, jnp.sin(y()), y().reshape(3, 2), y()[0], y()[:, 1], y() @ y().T, -y()
y().astype("int32"), y().ravel(), y().sum(0), jnp.cumsum(y(), 1), jnp.sort(y(), axis=0)
y().copy(), jnp.array(y()), jnp.copy(y()), jnp.asarray(y()), copy.copy(y()), copy.deepcopy(y())
jnp.add(y(), y()), jnp.add(x, y()), jnp.where(y() > 2, y(), x), y().at[0, 1].set(9)
jnp.concatenate([y(), x]), jnp.stack([y(), y()]), jnp.einsum("ij->ji", y()), [r for r in y()]
jnp.zeros_like(y()), jnp.full_like(y(), 2), jnp.split(y(), 2), jnp.linalg.qr(y())[1].shape
lax.cond(True, lambda a: a, lambda a: a + 1, y()), lax.fori_loop(0, 3, lambda i, a: a + 1, y())
lax.while_loop(lambda a: a[0, 0] < 3, lambda a: a + 1, y()), lax.scan(lambda c, r: (c, r + 1), 0., y())[1]
m.vmap(lambda a: a)(y()), m.vmap(jnp.sin)(y()), m.grad(lambda a: (a * a).sum())(y())
m.jvp(jnp.sin, (y(),), (y(),)), m.linearize(jnp.sin, y())[0], jit(m.grad(lambda a: jnp.sin(a).sum()))(y())
jit(lambda a: a * 2)(y()), jit(lambda a: a)(y()), jit(lambda a: (a, a.T))(y())
jit(lambda a, b: a @ b)(y(), y().T), jit(lambda a, b: a @ b)(y(), put(np.ones((3, 4), "f"), 1, 0))
m.checkpoint(lambda a: jnp.sin(a))(y()), pickle.loads(pickle.dumps(y())), m.device_get(y()).tolist()
np.asarray(y()).strides, np.array(y()).strides, np.asarray(y(), order="C").strides, y().tolist()
np.asarray(y()).flags.f_contiguous, np.asarray(y()).flags.writeable, np.asarray(y(), "float64").strides
repr(y()), y().nbytes, y()[1, 2].item(), len(y()), y().on_device_size_in_bytes()
np.from_dlpack(y()).strides, np.from_dlpack(y()).tolist(), jnp.from_dlpack(y()), jnp.from_dlpack(y()) + 1
m.pure_callback(lambda a: np.asarray(a) * 2, m.ShapeDtypeStruct((2, 3), "float32"), y()).tolist()
y().addressable_data(0), y().addressable_shards[0].data, y().global_shards[0].data, y().view("int32")
order(deleted(y()).format), deleted(y()).format.layout
put(np.arange(24, dtype="f").reshape(2, 3, 4), 2, 0, 1), put(np.arange(24, dtype="f").reshape(2, 3, 4), 1, 2, 0) + 1
put(jnp.zeros((0, 3)), 1, 0), put(jnp.ones((1, 3)), 1, 0), put(jnp.float32(3)), put(3.0), put(True), put(jnp.arange(3), 0)
put(x.astype("bfloat16"), 1, 0), put(x.astype("bfloat16"), 1, 0) + 1
put(x.astype("float16"), 1, 0), put(x.astype("float16"), 1, 0) + 1, put(x.astype("bool"), 1, 0)
put(x.astype("int4"), 1, 0), put(x.astype("int4"), 1, 0) * 2, put(x.astype("uint2"), 1, 0)
put(x.astype("float8_e4m3fn"), 1, 0), put(x.astype("complex64"), 1, 0).T, put(x.astype("int8"), 1, 0) * 3
wide(lambda: put(np.arange(6.0).reshape(2, 3), 1, 0)), wide(lambda: put(np.arange(6).reshape(2, 3), 1, 0) + 1)
wide(lambda: put(np.ones((2, 3), complex), 1, 0)), put(x, 1, 0).weak_type
put(x, 1, 0), put(n, 1, 0), put(x, 0, 1), put(n, 0, 1), put(xc, 0, 1), put(y(), 0, 1), put(y(), 1, 0)
put(x, 1, 0, where=s1), put(n, 1, 0, where=s1), put(x, 1, 0, where=s1) + 1, put(x, 1, 0, where=s1) + x
m.device_put(y(), s), m.device_put(y(), s1), m.device_put(y()), m.device_put(y(), m.devices()[0])
m.device_put(y(), m.memory.Space.Device), m.device_put(y(), m.memory.Space.Host), m.device_put(y(), on_host()), put(x, 1, 0, where=on_host())
m.device_put(n, Format(None, s)), m.device_put(n, Format()), m.device_put(y(), Format(None, s))
m.device_put({"a": n, "b": [n, n]}, {"a": fmt(1, 0), "b": fmt(0, 1)}), y().to_device(fmt(1, 0))
m.device_put(x, fmt(1, 0), may_alias=False), m.device_put(y(), s) is not None
gone(lambda a: m.device_put(a, fmt(0, 1), donate=True), y()), gone(lambda a: m.device_put(a, fmt(1, 0), donate=True), x + 0)
m.device_put(n, Format(Layout.AUTO, s))
m.device_put(x, Layout((1, 0)))
m.device_put(n, fmt(0, 2))
m.device_put(n, fmt(0, 0))
m.device_put(n, fmt(0, -1))
m.device_put(n, fmt(0, 1, 2))
m.device_put({"a": n, "b": np.ones(3)}, fmt(1, 0))
m.device_put(x, [fmt(1, 0)])
m.device_put("a", fmt(1, 0))
m.random.key_data(m.device_put(keys(), fmt(1, 0))).tolist()
m.device_put(keys(), fmt(1, 0, 2))
m.random.key_data(jit(lambda k: k, out_shardings=fmt(1, 0))(keys())).tolist()
jit(m.random.key_data, in_shardings=auto, out_shardings=auto)(keys()).shape
jit(lambda a: m.device_put(a, fmt(1, 0)))(x), jit(lambda a: m.device_put(a, Format(Layout.AUTO, s)))(x)
put(w, 1, 0, where=ns), put(w, 1, 0, where=ns) + 1, jit(lambda a: a * 2)(put(w, 1, 0, where=ns))
put(n, 1, 0, where=nr), put(n, 1, 0, where=nr).T, put(n, 1, 0, where=nr).copy(), np.asarray(put(n, 1, 0, where=nr)).strides
m.device_put(put(w, 1, 0, where=ns), nr), put(put(w, 1, 0, where=ns), 1, 0, where=nr)
put(put(w, 1, 0, where=ns), 0, 1, where=ns), m.device_put(put(w, 1, 0, where=ns), s), m.device_put(y(), nr)
m.device_put(put(w, 1, 0, where=ns), over(8, "j")), m.device_put(put(w, 1, 0, where=ns), over(4, "k"))
put(w, 1, 0, where=ns).addressable_shards[1].data, put(w, 1, 0, where=ns).addressable_data(2)
m.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(put(w, 1, 0, where=ns))
m.pmap(lambda a: a * 2)(put(w[:4], 1, 0, where=ns)).tolist()
put(w, 1, 0, where=m.NamedSharding(mesh, P(None, "i")))
jit(lambda a: a.T * 2, in_shardings=fmt(1, 0, where=ns), out_shardings=fmt(1, 0, where=split))(w)
jit(lambda a: a.T * 2, in_shardings=fmt(1, 0, where=ns))(put(w, 1, 0, where=ns)), jit(lambda a: a.T, in_shardings=ns)(put(w, 1, 0, where=ns))
jit(lambda a: a.T * 2, in_shardings=fmt(1, 0, where=ns))(m.device_put(w, ns))
jit(lambda a: a.T * 2, in_shardings=Format(Layout.AUTO, ns), out_shardings=Format(Layout.AUTO, ns))(np.ones((8, 4), "f"))
jit(lambda a: a.T, out_shardings=auto)(put(w, 1, 0, where=ns)), jit(lambda a: a.T, out_shardings=auto)(m.device_put(w, ns))
formats(jit(lambda a: a.T, in_shardings=fmt(1, 0, where=ns), out_shardings=fmt(1, 0, where=split)).lower(w).compile())
formats(jit(lambda a: a + 1).lower(m.ShapeDtypeStruct((8, 3), "float32", sharding=fmt(1, 0, where=ns))).compile())
m.make_array_from_callback((2, 3), fmt(1, 0), lambda i: n[i]), m.make_array_from_callback((2, 3), Format(None, s), lambda i: n[i])
m.make_array_from_callback((8, 3), fmt(1, 0, where=ns), lambda i: np.asarray(w)[i]) + 1
m.make_array_from_callback((8, 3), fmt(1, 0, where=ns), lambda i: np.asarray(w)[i])
m.make_array_from_callback((2, 3), Format(Layout.AUTO, s), lambda i: n[i])
m.make_array_from_process_local_data(fmt(1, 0), n)
m.make_array_from_single_device_arrays((2, 3), s, [y()]), m.make_array_from_single_device_arrays((2, 3), s, [y()]) + 1
m.make_array_from_single_device_arrays((8, 3), ns, parts()), m.make_array_from_single_device_arrays((8, 3), ns, parts()) + 1
jit(lambda a: a.T, in_shardings=fmt(1, 0), out_shardings=Format(Layout.AUTO, s))(n), jit(lambda a: a.T, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))(y())
jit(lambda a: a.T, in_shardings=fmt(0, 1))(xc), jit(lambda a: a.T, in_shardings=fmt(0, 1))(x), jit(lambda a: a.T, in_shardings=s)(y())
jit(lambda a: a.T, in_shardings=Format(None, s))(y()), jit(lambda a: a.T, in_shardings=auto, out_shardings=auto)(n)
jit(lambda a: a.T, out_shardings=auto)(x), jit(lambda a: a.T, out_shardings=auto)(y()), jit(lambda a: a.T, out_shardings=auto)(xc)
jit(lambda a: a.T, out_shardings=fmt(1, 0))(x), jit(lambda a: a.T, out_shardings=fmt(1, 0))(n), jit(lambda a: a.T, out_shardings=fmt(0, 1))(y())
jit(lambda a: (a.T, a, a.sum()), out_shardings=(fmt(1, 0), fmt(1, 0), None))(x), jit(lambda a: (a.T, a), out_shardings=fmt(1, 0))(y())
jit(lambda a: (a.T, a.sum(), a > 2), out_shardings=auto)(x), jit(lambda: jnp.ones((2, 3)), out_shardings=fmt(1, 0))()
jit(lambda a, b: a + b, in_shardings=(None, fmt(1, 0)))(xc, x), jit(lambda a, b: a + b, in_shardings=(fmt(1, 0), None))(y(), xc)
jit(lambda t: t["a"].T, in_shardings=({"a": fmt(1, 0), "b": None},), out_shardings=fmt(1, 0))({"a": x, "b": y()})
jit(lambda a, k: a * k, static_argnums=1, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))(x, 2), jit(lambda a, **k: a + k["b"], out_shardings=auto)(x, b=x)
jit(lambda a: a + 1, in_shardings=y().format, out_shardings=y().format)(x), jit(lambda a: a + 1, in_shardings=auto)(x)
jit(lambda a: a, out_shardings=Format(Layout((1, 0), ((2, 2),)), s))(jnp.arange(35.0).reshape(5, 7)), jit(lambda a: a, out_shardings=Format(Layout((1, 0), ((2, 2),)), s))(x) + 1
jit(lambda a: a.T, in_shardings=fmt(1, 0))(xc)
jit(lambda a: a.T, in_shardings=fmt(0, 1))(y())
jit(lambda a: a.T, in_shardings=auto)(xc)
jit(lambda a: a.T, in_shardings=auto).lower(y())
jit(lambda a: a.T, in_shardings=auto).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)))
jit(lambda a: a.T, in_shardings=fmt(0, 1)).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)))
jit(lambda a: (a.T, a.sum()), out_shardings=fmt(1, 0))(x)
jit(lambda a: a, in_shardings=Layout((1, 0)))
jit(lambda a: a, out_shardings=Layout.AUTO)
jit(lambda a: a, in_shardings=fmt(1, 0, 2))(x)
jit(lambda a: a, out_shardings=fmt(0))(x)
jit(lambda a: a, in_shardings=fmt(0, 2))(x)
jit(lambda a: a, in_shardings=(auto, auto))(x)
jit(lambda a: a, out_shardings=(auto, auto))(x)
jit(lambda a: a, in_shardings=fmt(1, 0, where=ns))(x)
jit(lambda a: a, in_shardings=fmt(1, 0), backend="cpu")(x)
formats(jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(x).compile()), formats(jit(lambda a: a.T).lower(y()).compile())
formats(jit(lambda a: a.T, in_shardings=fmt(1, 0)).lower(m.ShapeDtypeStruct((2, 3), "float32")).compile())
formats(jit(lambda a: jnp.einsum("bij,bkj->kib", a, a), in_shardings=auto, out_shardings=auto).lower(m.ShapeDtypeStruct((4, 16, 8), "float32")).compile())
formats(jit(lambda a, b: a.T, in_shardings=(fmt(1, 0), auto)).lower(x, x).compile()), formats(jit(lambda a, b: a.T, in_shardings=(fmt(1, 0), auto), keep_unused=True).lower(x, x).compile())
jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(x).compile()(xc), jit(lambda a: a.T).lower(y()).compile()(y())
jit(lambda a: a.T).lower(y()).compile()(x), jit(lambda a: a.T).lower(y()).compile()(n), jit(lambda a: a.T, in_shardings=fmt(1, 0)).lower(x).compile()(x)
jit(lambda a: a.T).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0))).compile()(y())
jit(lambda a: a.T).lower(y()).compile()(xc)
jit(lambda a: a.T).lower(x).compile()(y())
jit(lambda a, b: (a.T, b)).lower(y(), y()).compile()(xc, xc)
jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(x).compile()(y())
"{0,1}" in jit(lambda a: a.T).lower(y()).as_text(), "layout_mode" in jit(lambda a: a.T).lower(xc).as_text(), "(f32[2,3]{0,1})->f32[3,2]{1,0}" in jit(lambda a: a.T).lower(y()).compile().as_text()
gone(jit(lambda a: a * 2, donate_argnums=0, out_shardings=fmt(1, 0)), y()), gone(jit(lambda a: a * 2, donate_argnums=0), y())
gone(jit(lambda a: a * 2, donate_argnums=0, out_shardings=fmt(1, 0)), x + 0), gone(jit(lambda a: a * 2, donate_argnums=0, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0)), x + 0)
gone(jit(lambda a: a * 2, donate_argnums=0, in_shardings=auto, out_shardings=auto), x + 0), gone(jit(lambda a: a.T * 2, donate_argnums=0, out_shardings=fmt(1, 0)), y())
gone(jit(lambda a: (a * 2).reshape(3, 2), donate_argnums=0, out_shardings=fmt(1, 0)), y()), gone(jit(lambda a: a.sum(), donate_argnums=0, in_shardings=auto), x + 0)
jit(lambda a: a * 2, donate_argnums=0, out_shardings=auto)(y())
jit(lambda a: a * 2, donate_argnums=0, out_shardings=auto)(x + 0)
jit(lambda a: a * 2, donate_argnums=0, in_shardings=auto)(x + 0)
jit(lambda a: a * 2, donate_argnums=0, in_shardings=auto, out_shardings=fmt(1, 0))(x + 0)
[str(m.ShapeDtypeStruct((2, 3), "float32", sharding=f)) for f in (Format(None, s), Format(), s)]
order(m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)).format), m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)).sharding == s
order(m.ShapeDtypeStruct((2, 3), "float32", sharding=s).update(sharding=fmt(1, 0)).format), m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)).update(sharding=None).sharding
m.ShapeDtypeStruct((2, 3), "float32", sharding=s).format == Format(None, s), m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)) == m.ShapeDtypeStruct((2, 3), "float32", sharding=s)
order(jit(lambda a: a.T, out_shardings=fmt(1, 0)).eval_shape(x).format), m.eval_shape(lambda a: a, y()).sharding
order(jit(lambda a: a, out_shardings=fmt(1, 0)).lower(x).out_info.format), order(jit(lambda a: a, out_shardings=fmt(1, 0)).lower(x).compile().out_info.format)
order(jit(lambda a: a).lower(x).compile().out_info.format), jit(lambda a: a, out_shardings=auto).lower(x).out_info.format.layout
m.ShapeDtypeStruct((2, 3), "float32", sharding=Format(Layout.AUTO, s))
m.ShapeDtypeStruct((2, 3), "float32", sharding=fmt(1, 0)).update(sharding=s)
lax.with_sharding_constraint(x, fmt(1, 0)), lax.with_sharding_constraint(y(), s), lax.with_sharding_constraint(y(), fmt(0, 1))
jit(lambda a: lax.with_sharding_constraint(a, fmt(1, 0, where=ns)))(w)
lax.with_sharding_constraint(x, fmt(1, 0, 2))
constrained(x, Layout((1, 0))), constrained(y(), Layout((0, 1))), jit(lambda a: constrained(a, Layout((1, 0))))(x)
jit(lambda a: constrained(a, Layout((1, 0))) * 2)(x), jit(lambda a: constrained(a, Layout((1, 0))) * 2)(y()), jit(lambda a: constrained(a, Layout((0, 1))))(y())
jit(lambda a: constrained({"a": a, "b": a}, {"a": Layout((1, 0)), "b": Layout((0, 1))}))(x), jit(lambda a: constrained([a, a], Layout((1, 0))))(x)
jit(lambda a: (constrained(a, Layout((1, 0))), a))(x), jit(lambda a: constrained(a, Layout((1, 0))), out_shardings=s)(x), jit(lambda a: jit(lambda b: constrained(b, Layout((1, 0))))(a))(x)
m.grad(lambda a: jnp.sin(constrained(a, Layout((1, 0)))).sum())(x), jit(m.grad(lambda a: jnp.sin(constrained(a, Layout((1, 0)))).sum()))(x)
m.vmap(lambda a: constrained(a, Layout((1, 0))))(jnp.ones((2, 2, 2))), jit(m.vmap(lambda a: constrained(a, Layout((1, 0)))))(jnp.ones((2, 2, 2)))
m.jvp(lambda a: constrained(a, Layout((1, 0))), (x,), (x,)), m.checkpoint(lambda a: constrained(a, Layout((1, 0))))(x), lax.map(lambda a: constrained(a, Layout((1, 0))), jnp.ones((4, 2, 3)))
m.hessian(lambda a: (constrained(a, Layout((1, 0))) ** 3).sum())(x).tolist(), lax.cond(True, lambda a: constrained(a, Layout((1, 0))), lambda a: a, x)
constrained(n, Layout((1, 0)))
constrained(x, fmt(1, 0))
constrained(x, Layout.AUTO)
constrained(x, None)
constrained(x, Layout((1, 0, 2)))
constrained([x, 1.0], Layout((1, 0)))
constrained({"a": x, "b": x}, {"a": Layout((1, 0))})
jit(lambda a: constrained(a, Layout((1, 1))))(x)
fmt(1, 0) == fmt(1, 0), fmt(1, 0) == fmt(0, 1), hash(fmt(1, 0)) == hash(fmt(1, 0)), Layout([1, 0]) == Layout((1, 0)), Layout((1, 0)) == Layout((1, 0), ())
[str(l) for l in (Layout((1, 0)), Layout((1, 0), ((2, 2),)), Layout((1, 0)).update(tiling=[[2]]), Layout.AUTO)], Layout.AUTO is Layout.AUTO, auto == Format(Layout.AUTO)
str(Format()), str(auto), Layout((1, 0)).check_compatible_aval((2, 3)), pickle.loads(pickle.dumps(Layout((1, 0)))) == Layout((1, 0))
Format(3)
Format(Layout((0, 1)), 3)
Format(None, P("i"))
Format(Layout((0, 1)), m.devices()[0])
Format(Layout((1, 0)))
Layout((1, 0)).check_compatible_aval((2,))
Layout()
Layout(3)
Layout((1, 0), tiling=3)
jnp.array(n, device=fmt(1, 0))
formats(jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=s)).compile()), formats(jit(lambda a: a.T, in_shardings=fmt(1, 0)).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=s)).compile())
formats(jit(lambda a: a.T, in_shardings=Format(Layout.AUTO, ns), out_shardings=auto).lower(m.ShapeDtypeStruct((8, 3), "float32", sharding=ns)).compile())
jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(m.ShapeDtypeStruct((2, 3), "float32", sharding=s)).compile()(xc)
jit(lambda a: a + 1).lower(xc).compile()(put(w[:2], 1, 0, where=nr))
jit(lambda a: a + 1).lower(y()).compile()(put(x, 1, 0, where=s1))
jit(lambda a: {"a": a, "b": None, "c": (a.T,)}, out_shardings=auto)(x), jit(lambda a: constrained(a, Layout((1, 0))) * 1, out_shardings=auto)(x)
lax.optimization_barrier(y()), lax.stop_gradient(y()), jit(lambda a: lax.optimization_barrier(constrained(a, Layout((1, 0)))))(x)
jit(lambda a, b: a + b, in_shardings=[fmt(1, 0), fmt(1, 0)])(x, x), gone(jit(lambda a: a, donate_argnums=0, out_shardings=fmt(1, 0)), y())
over_and_over(jit(lambda a: a * 2, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))), over_and_over(jit(lambda a: a * 2, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0)).lower(x).compile())
exported_over(jit(lambda a: a * 2, in_shardings=fmt(1, 0, where=ns), out_shardings=fmt(1, 0, where=ns)), w), exported_over(jit(lambda a: a * 2), put(w, 1, 0, where=ns))
exported(jit(lambda a: a.T, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0)), x), exported(jit(lambda a: a.T), y()), exported(jit(lambda a: a.T, in_shardings=auto, out_shardings=auto), x)
called(jit(lambda a: a.T, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0)))
jit(lambda: y() + 1)().tolist(), jit(lambda a: a + big())(1.0).sum().item(), jit(lambda: big().sum())().item()
changed(y())
off(lambda: jit(lambda a: a * 2, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))(x).tolist()), off(lambda: jit(lambda a: a * 2)(y()).tolist())
set_mesh(lambda: put(np.ones((8, 4), "f"), 1, 0, where=ns) + 1), set_mesh(lambda: jit(lambda a: constrained(a, Layout((1, 0))))(np.ones((8, 4), "f")))
m.vmap(jit(lambda a: a * 2, in_shardings=s))(y()).tolist(), m.grad(lambda a: jit(lambda b: b * 2, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))(a).sum())(x).tolist()
m.jvp(both(), (x,), (x,)), m.jvp(jit(lambda a: a * a, in_shardings=fmt(1, 0)), (x,), (x,)), m.jvp(jit(lambda a: a * a, out_shardings=fmt(1, 0)), (x,), (x,))
m.grad(lambda a: both()(a).sum())(x), jit(m.grad(lambda a: both()(a).sum()))(x), m.value_and_grad(lambda a: both()(a).sum())(x)
m.grad(lambda a: jit(jnp.sin, in_shardings=fmt(1, 0))(a).sum())(x), m.grad(lambda a: jit(jnp.sin, out_shardings=fmt(1, 0))(a).sum())(x)
m.vjp(both(), x)[0], m.vjp(both(), x)[1](x), m.linearize(both(), x)[0], m.linearize(both(), x)[1](x), m.linear_transpose(jit(lambda a: 2 * a, in_shardings=fmt(1, 0)), x)(x)
m.grad(jit(lambda a: a.sum(), in_shardings=auto))(x), m.checkpoint(both())(x), m.grad(lambda a: m.checkpoint(both())(a).sum())(x), lax.cond(True, both(), both(), x)
jit(lambda a: m.jvp(both(), (a,), (a,)))(x), jit(both())(xc), lax.scan(lambda c, a: (c, both()(a)), 0.0, x[None])[1], m.grad(lambda a: both()(a).sum())(y())
m.jvp(both(), (xc,), (xc,))
m.grad(lambda a: both()(a).sum())(xc)
m.vmap(both())(x[None])
m.vmap(jit(lambda a: a * 2, in_shardings=fmt(1, 0)), in_axes=2)(x[..., None])
m.vmap(jit(lambda a: a * 2, out_shardings=fmt(1, 0)))(x[None])
m.vmap(jit(lambda a: a * 2, in_shardings=auto))(x[None])
m.vmap(jit(lambda a: a * 2, out_shardings=auto))(x[None])
jit(m.vmap(both()))(x[None])
m.vmap(m.grad(lambda a: both()(a).sum()))(x[None])
m.hessian(lambda a: both()(a).sum())(x)
m.jacfwd(both())(x)
m.jacrev(both())(x)
m.eval_shape(m.vmap(both()), x[None])
m.new_ref(y())[...], m.freeze(m.new_ref(y())), order(m.new_ref(y()).format), stored(xc, y()), stored(y(), y())
"""

# Upstream takes arrays that are not committed, copies on other devices, and parts in several layouts,
# for row-major ones, and numbers the dimensions of a mapped constraint otherwise, or refuses: here the
# values are NumPy's.
HERE = """
equal(u(), n.T), equal(u() + 1, n.T + 1), equal(jit(lambda a: a + 1)(u()), n.T + 1), equal(u().T @ u(), n @ n.T)
equal(jit(lambda a: a + 1, in_shardings=fmt(0, 1))(u()), n.T + 1), equal(jit(lambda a: a + 1, in_shardings=fmt(1, 0))(u()), n.T + 1)
equal(jit(lambda a: a + 1, in_shardings=auto)(u()), n.T + 1), equal(jit(lambda a: a + 1).lower(u()).compile()(u()), n.T + 1)
equal(jit(lambda a: a + 1).lower(jnp.ones((3, 2))).compile()(u()), n.T + 1), equal(jit(lambda a: a + 1).lower(u()).compile()(jnp.ones((3, 2))), 2)
equal(put(u(), 0, 1), n.T), equal(put(u(), 1, 0, where=s1), n.T), equal(put(u(), 0, 1, where=s1) + 1, n.T + 1), equal(u() + m.device_put(n.T, s1), 2 * n.T)
equal(m.device_put(y(), s1) + 1, n + 1), equal(put(y(), 1, 0, where=s1) + 1, n + 1), equal(m.device_put(y(), nr) * 2, 2 * n)
equal(m.device_put(put(w, 1, 0, where=ns), over(4, "k")) + 1, np.asarray(w) + 1), equal(m.device_put(put(w, 1, 0, where=ns), s1) + 1, np.asarray(w) + 1)
equal(m.make_array_from_single_device_arrays((8, 3), ns, mixed()) + 1, np.asarray(w) + 1), equal(m.make_array_from_single_device_arrays((8, 3), ns, mixed()), w)
equal(m.vmap(lambda a: constrained(a, Layout((1, 0))) * 2, in_axes=1)(jnp.ones((4, 2, 3))), 2)
order(m.vmap(lambda a: constrained(a, Layout((1, 0))), in_axes=1, out_axes=1)(jnp.ones((4, 2, 3))).format) == (1, 2, 0)
order(jit(lambda a: constrained(a, Layout((1, 0))), out_shardings=fmt(0, 1))(x).format) == (0, 1)
symbolic(jit(lambda a: a * 2), fmt(1, 0)), symbolic(jit(lambda a: a * 2, in_shardings=fmt(0, 1), out_shardings=fmt(1, 0)), s)
equal(m.jit(m.grad(lambda a: jnp.sum(jit(jnp.sin, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))(a) ** 2)))(y()), m.grad(lambda a: jnp.sum(jnp.sin(a) ** 2))(x))
copy.deepcopy(auto) == auto, pickle.loads(pickle.dumps(auto)) == auto, pickle.loads(pickle.dumps(fmt(1, 0))) == fmt(1, 0)
"""


def names(m):
    """The names that an expression may use, for one of the two libraries."""
    jnp, lax = m.numpy, m.lax
    layout = importlib.import_module(f"{m.__name__}.experimental.layout")
    Format, Layout = layout.Format, layout.Layout
    s, s1 = (m.sharding.SingleDeviceSharding(device) for device in m.devices()[:2])
    kind, P, jit = m.sharding.AxisType.Auto, m.sharding.PartitionSpec, m.jit
    mesh = m.make_mesh((4,), ("i",), axis_types=(kind,))
    ns, nr = m.NamedSharding(mesh, P("i")), m.NamedSharding(mesh, P())
    split = m.NamedSharding(mesh, P(None, "i"))
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    x, w = jnp.asarray(n), jnp.arange(24.0).reshape(8, 3)
    xc, auto, constrained = m.device_put(x, s), Format(Layout.AUTO), layout.with_layout_constraint
    fmt = lambda *order, where=s: Format(Layout(order), where)
    put = lambda x, *order, where=s: m.device_put(x, fmt(*order, where=where))
    y = lambda: put(x, 1, 0)
    order = lambda given: given.layout and given.layout.major_to_minor
    keys = lambda: m.random.split(m.random.key(0), (2, 3))
    big = lambda: put(jnp.arange(6000.0).reshape(2, 3000), 1, 0)

    def over(count, name):
        return m.NamedSharding(m.make_mesh((count,), (name,), axis_types=(kind,)), P(name))

    def on_host():
        return m.sharding.SingleDeviceSharding(m.devices()[0], memory_kind="unpinned_host")

    def parts():
        homes = map(m.sharding.SingleDeviceSharding, m.devices()[:4])
        return [put(w[2 * k : 2 * k + 2], 1, 0, where=home) for k, home in enumerate(homes)]

    def mixed():
        return [part if k % 2 else part.copy() for k, part in enumerate(parts())]

    def u():
        return jit(lambda a: a.T, out_shardings=auto)(x)

    def equal(array, wanted):
        return bool(np.array_equal(np.asarray(array), np.broadcast_to(wanted, array.shape)))

    def symbolic(f, place):
        export = importlib.import_module(f"{m.__name__}.export")
        sizes = export.symbolic_shape("a, b")
        made = export.export(f)(m.ShapeDtypeStruct(sizes, "float32", sharding=place))
        return equal(made.call(x), 2 * n) and equal(made.call(y()), 2 * n)

    def deleted(array):
        array.delete()
        return array

    def gone(f, array):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = f(array)
        return result, array.is_deleted(), len(caught)

    def formats(compiled):
        given, made = compiled.input_formats, compiled.output_formats
        return [order(one) for one in given[0]], order(made)

    def exported(f, array):
        made = importlib.import_module(f"{m.__name__}.export").export(f)(array)
        return made.call(x).tolist(), made.call(y()).tolist(), jit(made.call)(x).tolist()

    def exported_over(f, array):
        made = importlib.import_module(f"{m.__name__}.export").export(f)(array)
        return made.nr_devices, jit(made.call, in_shardings=ns)(w).tolist()

    def over_and_over(f):
        array = y()
        for _ in range(5):
            array = f(array)
        return array

    def called(f):
        compiled = f.lower(x).compile()
        return compiled(x), compiled(y()), formats(compiled)

    def both():
        return jit(lambda a: a * a, in_shardings=fmt(1, 0), out_shardings=fmt(1, 0))

    def stored(first, last):
        ref = m.new_ref(first)
        return m.ref.swap(ref, ..., last), ref[...]

    def changed(array):
        ref = m.new_ref(array)
        ref[...] = ref[...] + 1
        jit(lambda r: r.__setitem__(..., r[...] * 2))(ref)
        return ref[...].tolist()

    def wide(f):
        with m.enable_x64(True):
            return f()

    def within(context, f):
        with context:
            return f()

    off = lambda f: within(m.disable_jit(), f)
    set_mesh = lambda f: within(m.set_mesh(mesh), f)
    return locals() | {"copy": copy, "np": np, "pickle": pickle, "partial": partial}


def shown(result):
    """A result as JSON: of arrays the layout, the place and the values."""
    if isinstance(result, dict):
        return {name: shown(value) for name, value in result.items()}
    if isinstance(result, (list, tuple)):
        return list(map(shown, result))
    if not hasattr(result, "format") or isinstance(result, str):
        return result if isinstance(result, (int, float, str, type(None))) else str(type(result))
    values = np.asarray(result)
    with contextlib.suppress(TypeError):
        values = values.astype(complex if values.dtype.kind == "c" else float)
    where = getattr(result.sharding, "spec", None)
    where = [d.id for d in result.devices()] if where is None else [*map(str, where)]
    layout, weak = result.format.layout, result.weak_type
    return [
        layout.major_to_minor, str(result.dtype), weak, result.committed, sorted(where, key=str),
        str(values.tolist()),
    ]  # fmt: skip


def _run(expression, m):
    return shown(eval(expression, names(m)))


PROGRAMS, WITNESSED = (
    {line: partial(_run, line) for line in text.strip().splitlines()} for text in (TEXT, HERE)
)

if __name__ == "__main__":
    survivors.main(PROGRAMS | WITNESSED)
