"""Kinds of calls for the tests of memory: each runs a program on fresh arrays and lets everything
go.

`python -m tests.cases.memory_calls [rounds]` runs all of them with Python's collector off, and prints those
after which there are more live buffers than before.
"""

import contextlib
import functools
import gc
import io
import sys
import time

import numpy as np

import minijax
import minijax.custom_batching
import minijax.export
from minijax import lax, random
from minijax import numpy as jnp
from minijax.experimental import checkify, io_callback
from minijax.experimental.ode import odeint
from minijax.runtime.released import collect
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

CALLS = {}


def call(fun):
    """Register a kind of call under the name of the function that makes it."""
    CALLS[fun.__name__.replace("_", " ").strip()] = fun
    return fun


def x():
    """A fresh vector."""
    return jnp.asarray(np.linspace(0.1, 1.0, 5, dtype=np.float32))


def matrix():
    """A fresh symmetric positive definite matrix."""
    return jnp.asarray(np.eye(4, dtype=np.float32) * 4 + 1)


def f(a):
    """Sum of a nonlinear function that closes over an array of its own."""
    return (jnp.sin(a) * jnp.exp(a * jnp.asarray(np.full(5, 0.5, np.float32)))).sum()


def g(a):
    """Elementwise counterpart of `f`."""
    return jnp.sin(a) * jnp.cos(a)


def families():
    """Transforms of one function, applied alone and two at a time."""
    one = {
        "jit": lambda h: minijax.jit(h),
        "grad": lambda h: minijax.grad(lambda a: h(a).sum()),
        "jacfwd": lambda h: lambda a: minijax.jacfwd(h)(a).sum(-1),
        "jacrev": lambda h: lambda a: minijax.jacrev(h)(a).sum(-1),
        "vmap": lambda h: lambda a: minijax.vmap(h)(jnp.stack([a, a]))[0],
        "jvp": lambda h: lambda a: minijax.jvp(h, (a,), (a,))[1],
        "vjp": lambda h: lambda a: minijax.vjp(h, a)[1](a)[0],
        "linearize": lambda h: lambda a: minijax.linearize(h, a)[1](a),
        "checkpoint": lambda h: minijax.checkpoint(h),
        "custom_jvp": _custom_jvp,
        "custom_vjp": _custom_vjp,
        "transpose": lambda h: lambda a: minijax.linear_transpose(lambda b: b * 2, a)(h(a))[0],
    }
    for outer in one:
        yield outer, lambda outer=outer: one[outer](lambda a: g(a))(x())
        for inner in one:
            if inner == "custom_vjp" and outer in ("jacfwd", "jvp", "linearize"):
                continue  # which has no forward mode
            yield (
                f"{outer} of {inner}",
                lambda outer=outer, inner=inner: one[outer](one[inner](lambda a: g(a)))(x()),
            )


def _custom_jvp(h):
    @minijax.custom_jvp
    def fun(a):
        return h(a)

    fun.defjvp(lambda p, t: (fun(*p), t[0] * p[0]))
    return fun


def _custom_vjp(h):
    @minijax.custom_vjp
    def fun(a):
        return h(a)

    fun.defvjp(lambda a: (fun(a), a), lambda res, ct: (ct * res,))
    return fun


CALLS.update(families())


@call
def hessian():
    return minijax.hessian(f)(x())


@call
def jitted_hessian():
    return minijax.jit(minijax.hessian(lambda a: f(a)))(x())


@call
def grad_with_auxiliary():
    return minijax.grad(lambda a: (f(a), a * 2), has_aux=True)(x())


@call
def third_derivative():
    return minijax.grad(minijax.grad(minijax.grad(lambda s: jnp.sin(s) * s)))(jnp.float32(0.3))


def _policies():
    policies = minijax.checkpoint_policies
    plain = ("everything_saveable", "nothing_saveable", "dots_saveable",
             "dots_with_no_batch_dims_saveable", "checkpoint_dots")  # fmt: skip
    made = {name: getattr(policies, name) for name in plain if hasattr(policies, name)}
    made["save_only_these_names"] = policies.save_only_these_names("kept")
    made["offload"] = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["kept"],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip
    for name, policy in made.items():

        def run(policy=policy):
            from minijax.ad_checkpoint import checkpoint_name

            h = minijax.checkpoint(
                lambda a: jnp.sin(checkpoint_name(a @ matrix(), "kept")), policy=policy
            )
            return minijax.grad(lambda a: h(a).sum())(matrix())

        yield f"checkpoint with {name}", run


CALLS.update(_policies())


@call
def scan():
    return lax.scan(lambda c, a: (c + a, c * a), jnp.float32(0), x())


@call
def grad_of_scan():
    w = x()
    return minijax.grad(lambda a: lax.scan(lambda c, b: (c * b + w.sum(), c), a[0], a)[0])(x())


@call
def grad_of_checkpointed_scan():
    body = minijax.checkpoint(lambda c, b: (jnp.sin(c * b), c))
    return minijax.grad(lambda a: lax.scan(body, a[0], a)[0])(x())


@call
def vmap_of_scan():
    h = lambda a: lax.scan(lambda c, b: (c * b, c), a, jnp.arange(3.0))[0]
    return minijax.vmap(h)(x())


@call
def hessian_of_scan():
    return minijax.hessian(lambda a: lax.scan(lambda c, b: (c * b, c), a[0], a)[0])(x())


@call
def while_loop():
    return lax.while_loop(lambda a: a.sum() < 10, lambda a: a * 1.5, x())


@call
def jvp_of_while_loop():
    h = lambda a: lax.while_loop(lambda b: b.sum() < 10, lambda b: b * 1.5, a)
    return minijax.jvp(h, (x(),), (x(),))


@call
def fori_loop():
    w = x()
    return lax.fori_loop(0, 3, lambda i, a: a * w + i, x())


@call
def grad_of_fori_loop():
    return minijax.grad(lambda a: lax.fori_loop(0, 3, lambda i, b: jnp.sin(b), a).sum())(x())


@call
def cond():
    a = x()
    return lax.cond(a[0] > 0, lambda b: b * 2, lambda b: b - a, a)


@call
def grad_of_cond():
    w = x()
    return minijax.grad(
        lambda a: lax.cond(a[0] > 0, lambda b: (b * w).sum(), lambda b: b.sum(), a)
    )(x())


@call
def switch():
    return minijax.vmap(lambda i: lax.switch(i, [jnp.sin, jnp.cos], 1.0))(jnp.array([0, 1]))


@call
def map_():
    return lax.map(lambda a: jnp.sin(a), x(), batch_size=2)


@call
def associative_scan():
    return minijax.grad(lambda a: lax.associative_scan(jnp.multiply, a).sum())(x())


@call
def custom_root():
    solve = lambda h, a: lax.fori_loop(0, 5, lambda i, b: b - h(b) / (2 * b), a)
    root = lambda c: lax.custom_root(lambda a: a * a - c, c, solve, lambda h, y: y / h(1.0))
    return minijax.grad(root)(jnp.float32(2.0))


@call
def custom_linear_solve():
    m = matrix()
    solve = lambda b: lax.custom_linear_solve(
        lambda v: m @ v, b, lambda mv, v: jnp.linalg.solve(m, v), symmetric=True
    )
    return minijax.grad(lambda b: solve(b).sum())(jnp.ones(4))


@call
def conjugate_gradients():
    m = matrix()
    return minijax.scipy.sparse.linalg.cg(lambda v: m @ v, jnp.ones(4))


@call
def custom_vjp_with_static_argument():
    @functools.partial(minijax.custom_vjp, nondiff_argnums=(0,))
    def apply(h, a):
        return h(a)

    apply.defvjp(lambda h, a: (h(a), a), lambda h, res, ct: (ct * jnp.cos(res),))
    w = x()
    return minijax.grad(lambda a: apply(lambda b: jnp.sin(b) * w, a).sum())(x())


@call
def custom_gradient():
    return minijax.grad(minijax.custom_gradient(lambda a: (a**2, lambda ct: (ct * a,))))(2.0)


@call
def custom_vmap():
    @minijax.custom_batching.custom_vmap
    def h(a):
        return jnp.sin(a)

    h.def_vmap(lambda size, batched, a: (jnp.sin(a), batched[0]))
    return minijax.vmap(h)(x())


@call
def closure_convert():
    w = x()
    h, consts = minijax.closure_convert(lambda a: a * w, x())
    return h(x(), *consts)


@call
def updates():
    a = matrix()
    a = a.at[0].set(1.0).at[:, 1].add(2.0).at[1, 2].multiply(3.0).at[np.array([0, 1])].max(0.0)
    return a.at[a > 1].set(0.0)


@call
def reads():
    a = matrix()
    return a[0], a[1:, ::2], a[np.array([0, 2])], a[a > 1], a.at[9].get(mode="fill"), list(a)


@call
def grad_of_update():
    return minijax.grad(lambda a: (a.at[1].set(3.0) * a).sum())(x())


@call
def vjp_functions_dropped():
    kept, pull = minijax.vjp(lambda a: jnp.sin(a) @ matrix(), matrix())
    del pull
    return kept


@call
def linearize_and_forget():
    y, linear = minijax.linearize(f, x())
    linear(x())
    return y


@call
def vjp_with_auxiliary():
    y, pull, aux = minijax.vjp(lambda a: (f(a), a), x(), has_aux=True)
    return pull(y), aux


@call
def linear_algebra():
    m = matrix()
    return (
        jnp.linalg.inv(m), jnp.linalg.eigh(m), jnp.linalg.svd(m), jnp.linalg.qr(m), jnp.linalg.det(m),
        minijax.scipy.linalg.expm(m), minijax.scipy.linalg.cho_factor(m),
    )  # fmt: skip


@call
def grad_of_linear_algebra():
    return minijax.grad(lambda m: jnp.linalg.inv(m).sum() + jnp.linalg.eigvalsh(m).sum())(matrix())


@call
def library_functions():
    a = x()
    return (
        jnp.var(a), jnp.sort(a), jnp.concatenate([a, a]), jnp.einsum("i,j->ij", a, a), jnp.unique(a),
        jnp.interp(a, a, a), jnp.fft.fft(a), jnp.cumsum(a), jnp.where(a > 0.5), jnp.histogram(a),
        jnp.median(a), jnp.convolve(a, a), jnp.polyfit(a, a, 2), jnp.piecewise(a, [a > 0], [1, 2]),
    )  # fmt: skip


@call
def vectorize():
    return jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(matrix(), matrix())


@call
def apply_along_axis():
    return jnp.apply_along_axis(jnp.cumsum, 0, matrix())


@call
def neural():
    a = x()
    return minijax.nn.softmax(a), minijax.nn.gelu(a), minijax.nn.logsumexp(a), minijax.nn.relu(a)


@call
def grad_of_neural():
    return minijax.grad(lambda a: minijax.nn.softmax(minijax.nn.relu(a) @ matrix())[0].sum())(
        matrix()
    )


@call
def special_functions():
    a = x()
    s = minijax.scipy.special
    return s.gammaln(a), s.erf(a), s.betainc(a, a, a), minijax.grad(lambda b: s.i0(b).sum())(a)


@call
def random_numbers():
    key = random.key(3)
    keys = random.split(key, 3)
    return (
        random.normal(keys[0], (3,)), random.permutation(keys[1], x()), random.choice(keys[2], x()),
        random.gamma(key, x()), random.categorical(key, x()), random.bits(random.PRNGKey(1)),
    )  # fmt: skip


@call
def grad_of_random_gamma():
    return minijax.grad(lambda a: random.gamma(random.key(0), a).sum())(x())


@call
def references():
    ref = minijax.new_ref(x())
    ref[...] += 1

    @minijax.jit
    def add(a):
        ref[...] += a
        return ref[0]

    return add(x()), ref[...]


@call
def grad_with_references():
    def h(a):
        ref = minijax.new_ref(a)
        ref[...] *= 2
        return ref[...].sum()

    return minijax.grad(h)(x())


@call
def pure_callback():
    return minijax.jit(
        lambda a: minijax.pure_callback(
            lambda b: np.asarray(b) * 2, minijax.ShapeDtypeStruct((5,), np.float32), a
        )
    )(x())


@call
def ordered_callback():
    out = minijax.jit(
        lambda a: io_callback(
            lambda b: np.asarray(b), minijax.ShapeDtypeStruct((5,), np.float32), a, ordered=True
        )
    )(x())
    minijax.effects_barrier()
    return out


@call
def debug_callback():
    minijax.jit(lambda a: minijax.debug.callback(lambda b: None, a))(x())
    minijax.effects_barrier()


@call
def callback_under_grad():
    def h(a):
        minijax.debug.callback(lambda b: None, a)
        return (a * a).sum()

    minijax.grad(h)(x())
    minijax.effects_barrier()


@call
def export():
    exported = minijax.export.export(minijax.jit(lambda a: a * matrix().sum()))(x())
    again = minijax.export.deserialize(exported.serialize())
    return exported.call(x()), again.call(x())


@call
def export_with_derivative():
    exported = minijax.export.export(minijax.jit(lambda a: jnp.sin(a)))(x())
    again = minijax.export.deserialize(exported.serialize(vjp_order=1))
    return minijax.grad(lambda a: again.call(a).sum())(x())


@call
def stages():
    lowered = minijax.jit(lambda a: a + jnp.asarray(np.arange(5))).lower(x())
    compiled = lowered.compile()
    return compiled(x()), lowered.as_text(), minijax.make_jaxpr(f)(x())


@call
def large_constant_in_jit():
    w = jnp.ones((64, 64))
    return minijax.jit(lambda a: a + w)(jnp.ones((64, 64)))


@call
def committed_constant_in_jit():
    w = minijax.device_put(x(), minijax.devices()[0])
    return minijax.jit(lambda a: a + w)(x())


@call
def grad_with_large_constant():
    w = jnp.ones((64, 64))
    return minijax.grad(lambda a: jnp.sin(a * w).sum())(jnp.ones((64, 64)))


class Model:
    def __init__(self):
        self.w = jnp.ones((64, 64))

    def apply(self, a):
        return a @ self.w

    @functools.partial(minijax.jit, static_argnums=0)
    def jitted(self, a):
        return a @ self.w

    @minijax.jit
    def __call__(self, a):
        return a


@call
def jit_of_bound_method():
    return minijax.jit(Model().apply)(jnp.ones((64, 64)))


@call
def grad_of_bound_method():
    model = Model()
    return minijax.grad(lambda a: minijax.checkpoint(model.apply)(a).sum())(jnp.ones((64, 64)))


@call
def jit_of_partial():
    return minijax.jit(functools.partial(jnp.matmul, jnp.ones((64, 64))))(jnp.ones((64, 64)))


@call
def static_arguments():
    h = minijax.jit(
        lambda a, n, *, flag: a * n if flag else a, static_argnums=1, static_argnames="flag"
    )
    return h(x(), 3, flag=True)


@call
def donation():
    step = minijax.jit(lambda p, d: {"w": p["w"] - d}, donate_argnums=0)
    p = {"w": x()}
    for _ in range(3):
        p = step(p, x())
    return p


@call
def pytrees():
    h = minijax.jit(lambda t: {"a": t["b"][0], "c": [t["b"][1], None]})
    return h({"b": (x(), x())})


@call
def flattened_pytrees():
    from minijax.flatten_util import ravel_pytree

    flat, back = ravel_pytree({"a": x(), "b": matrix()})
    return back(minijax.grad(lambda v: (back(v)["a"] ** 2).sum())(flat))


@call
def training_step():
    def loss(p, a):
        return ((jnp.tanh(a @ p[0]) @ p[1]) ** 2).mean()

    step = minijax.jit(lambda p, a: [w - 0.1 * d for w, d in zip(p, minijax.grad(loss)(p, a))])
    p = [matrix(), matrix()]
    for _ in range(3):
        p = step(p, matrix())
    return minijax.value_and_grad(loss)(p, matrix())


@call
def error_in_tracing():
    def h(a):
        b = a * 2
        raise KeyError(b.shape)

    for transform in (minijax.jit, minijax.grad, minijax.vmap, minijax.jacfwd, minijax.checkpoint):
        with contextlib.suppress(KeyError):
            transform(h)(x())


@call
def error_of_concretization():
    for transform in (minijax.jit, minijax.vmap):
        with contextlib.suppress(Exception):
            transform(lambda a: a if (a > 0).all() else -a)(x())


@call
def error_of_type():
    for wrong in (
        lambda: minijax.grad(g)(x()),
        lambda: x() + matrix()[:3],
        lambda: minijax.jit(lambda a: a @ matrix())(x()),
        lambda: x().at[None, 9, 9].set(x()),
        lambda: lax.scan(lambda c, a: (c.astype(int), a), x(), x()),
        lambda: lax.cond(True, lambda a: a, lambda a: a[0], x()),
        lambda: minijax.vmap(lambda a: a)(x()[0]),
        lambda: minijax.jit(lambda a: a, donate_argnums=7)(x(), x(), x()),
        lambda: jnp.concatenate([x(), matrix()]),
        lambda: int(x()),
    ):
        with contextlib.suppress(Exception):
            wrong()


@call
def error_in_callback():
    def fails(a):
        raise RuntimeError("no")

    h = minijax.jit(
        lambda a: minijax.pure_callback(fails, minijax.ShapeDtypeStruct((5,), np.float32), a)
    )
    with contextlib.suppress(Exception):
        h(x()).block_until_ready()


@call
def error_of_nan():
    quiet = contextlib.redirect_stdout(io.StringIO())  # it says that it runs the operations
    with quiet, minijax.debug_nans(True), contextlib.suppress(FloatingPointError):
        minijax.jit(lambda a: jnp.log(a - 2))(x())


@call
def leaked_tracer():
    leaked = []
    minijax.jit(lambda a: leaked.append(a))(x())
    with contextlib.suppress(Exception):
        jnp.sin(leaked[0])
    minijax.grad(lambda a: leaked.append(a) or f(a))(x())


@call
def checked_function():
    def h(a):
        checkify.check(a[0] > 0, "negative {a}", a=a[0])
        return jnp.log(a)

    error, out = checkify.checkify(minijax.jit(h), errors=checkify.all_checks)(x())
    return error.get(), out


@call
def jet():
    from minijax.experimental.jet import jet as taylor

    return taylor(jnp.sin, (x(),), ((x(), x()),))


@call
def sparse():
    from minijax.experimental import sparse

    m = sparse.BCOO.fromdense(matrix())
    return (m @ jnp.ones(4)).sum(), sparse.grad(lambda a: (a @ jnp.ones(4)).sum())(m)


@call
def minimize():
    from minijax.scipy.optimize import minimize as find

    return find(lambda a: ((a - 1) ** 2).sum(), x(), method="BFGS").x


def mesh(n=None):
    devices = minijax.devices()
    return Mesh(np.array(devices if n is None else devices[:n]), ("i",))


@call
def shard_map():
    n = len(minijax.devices())
    h = minijax.shard_map(
        lambda a: a + lax.psum(a, "i"), mesh=mesh(), in_specs=PartitionSpec("i"),
        out_specs=PartitionSpec("i"),
    )  # fmt: skip
    a = jnp.arange(4.0 * n)
    return h(a), minijax.jit(h)(a), minijax.grad(lambda b: h(b).sum())(a)


@call
def pmap():
    a = jnp.ones((len(minijax.devices()), 3))
    h = minijax.pmap(lambda b: lax.pmean(b, "i"), axis_name="i")
    return h(a), minijax.grad(lambda b: h(b).sum())(a)


@call
def sharded_arrays():
    n = len(minijax.devices())
    where = NamedSharding(mesh(), PartitionSpec("i"))
    a = minijax.device_put(jnp.arange(4.0 * n), where)
    b = minijax.jit(lambda c: c * 2, out_shardings=where)(a)
    made = minijax.make_array_from_callback((n,), where, lambda i: np.ones(n)[i])
    return a + b, np.asarray(b), b.addressable_shards[0].data, made


@call
def transfers():
    a = x()
    b = minijax.device_put(a, minijax.devices()[-1])
    return b, np.asarray(b), np.from_dlpack(a), jnp.from_dlpack(np.ones(3)), minijax.device_get(b)


@call
def copies():
    import copy
    import pickle

    a = x()
    return copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.astype(jnp.bfloat16).tolist(), repr(a)


@call
def dtypes():
    a = x()
    return [
        np.asarray(a.astype(d)) for d in ("int4", "bfloat16", "float8_e4m3fn", "bool", "complex64")
    ]


@call
def evaluated_shapes():
    return minijax.eval_shape(f, x())


@call
def named_arrays():
    return minijax.jit(minijax.named_call(lambda a: a * 2, name="twice"))(x())


@call
def disabled_jit():
    with minijax.disable_jit():
        return lax.scan(minijax.jit(lambda c, a: (c + a, c)), jnp.float32(0), x())


@call
def wide_types():
    with minijax.enable_x64(True):
        return minijax.hessian(lambda a: jnp.sin(a).sum())(jnp.ones(3))


@call
def iterators():
    return next(iter(x())), [float(a) for a in x()], min(x())


@call
def pmap_of_bound_method():
    return minijax.pmap(Model().apply)(jnp.ones((len(minijax.devices()), 64, 64)))


@call
def solutions_of_equations():
    rate, times = x(), jnp.linspace(0.0, 1.0, 3)
    of = lambda y: odeint(lambda y, t: -rate * y, y, times)[-1].sum()
    return of(x()), minijax.grad(of)(x())


@call
def callback_of_closure():
    w = np.ones(5, np.float32)
    m = Model()
    return minijax.jit(
        lambda a: minijax.pure_callback(
            lambda b: b * w * m.w[0, 0], minijax.ShapeDtypeStruct((5,), np.float32), a
        )
    )(x())


def live():
    minijax.effects_barrier()
    collect()
    return len(minijax.live_arrays())


def settled():
    """The number of live buffers, once it has not changed for 50 ms."""
    count, same = live(), 0
    while same < 5:
        time.sleep(0.01)
        last, count = count, live()
        same = same + 1 if count == last else 0
    return count


def at_most(limit):
    """The number of live buffers, for which XLA's threads have a minute to let go of theirs."""
    until = time.monotonic() + 60
    while (count := live()) > limit and time.monotonic() < until:
        time.sleep(0.01)
    return count


def remaining(rounds=1):
    """Kinds of calls after which buffers remain: name, those in cycles, and those kept for good."""
    for name, run in CALLS.items():
        run()
        gc.collect()
        gc.disable()
        try:
            before = settled()
            for _ in range(rounds):
                run()
            after = at_most(before)
            gc.collect()
            kept = at_most(before) - before
        finally:
            gc.enable()
        if after > before or kept > 0:
            yield name, after - before - kept, kept


if __name__ == "__main__":
    for name, in_cycles, kept in remaining(*map(int, sys.argv[1:])):
        print(f"{name}: {in_cycles} in cycles, {kept} kept")
    print(f"{len(CALLS)} kinds of calls")
