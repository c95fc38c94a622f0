"""Programs whose types say how arrays are split, over eight CPU devices: run by `tests.devices`.

Within `set_mesh` of a mesh with Explicit axes. Results must have upstream's types, shardings and
values; programs that are ambiguous must raise upstream's error.
"""

import numpy as np

A = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
EXPLICIT = {}


def programs(table):
    EXPLICIT.update(table)


class Split:
    """A library within a mesh whose axes are Explicit."""

    def __init__(self, m, sharding):
        self.m, self.jnp, self.lax, self.P = m, m.numpy, m.lax, sharding.PartitionSpec
        self.sharding = sharding
        self.mesh = m.make_mesh((4, 2), ("x", "y"))

    def on(self, *spec, value=A):
        return self.m.sharding.reshard(value, self.P(*spec))

    w = property(lambda self: self.on("x", "y"))
    v = property(lambda self: self.on("y", "x"))
    u = property(lambda self: self.on(None, "y"))
    rows = property(lambda self: self.on("x", None))
    plain = property(lambda self: self.jnp.asarray(A))
    stack = property(lambda self: self.on("x", "y", None, value=np.stack([A, A + 1, A + 2, A + 3])))


# -- operations on one array, eagerly, under jit, and their gradients ------------------------------

ARRAYS = ("w", "u", "rows", "stack")
ONE = {
    "sin": lambda t, a: t.jnp.sin(a),
    "twice": lambda t, a: a * 2 + 1,
    "square": lambda t, a: a * a,
    "sum 0": lambda t, a: a.sum(0),
    "sum -1": lambda t, a: a.sum(-1),
    "sum": lambda t, a: a.sum(),
    "mean": lambda t, a: a.mean(-1, keepdims=True),
    "max": lambda t, a: a.max(0),
    "var": lambda t, a: a.var(1),
    "transpose": lambda t, a: a.T,
    "swap": lambda t, a: t.jnp.swapaxes(a, 0, 1),
    "expand": lambda t, a: a[:, None],
    "broadcast": lambda t, a: t.jnp.broadcast_to(a, (3, *a.shape)),
    "flat": lambda t, a: a.reshape(-1),
    "split last": lambda t, a: a.reshape(*a.shape[:-1], 2, 4),
    "split first": lambda t, a: a.reshape(4, -1, *a.shape[1:]),
    "one more": lambda t, a: a.reshape(1, *a.shape),
    "astype": lambda t, a: a.astype("bfloat16"),
    "where": lambda t, a: t.jnp.where(a > 0, a, 0.0),
    "clip": lambda t, a: t.jnp.clip(a, -0.5, 0.5),
    "softmax": lambda t, a: t.m.nn.softmax(a),
    "logsumexp": lambda t, a: t.m.nn.logsumexp(a, -1),
    "relu": lambda t, a: t.m.nn.relu(a),
    "norm": lambda t, a: (a - a.mean(-1, keepdims=True)) / t.jnp.sqrt(a.var(-1, keepdims=True) + 1),
    "concatenate": lambda t, a: t.jnp.concatenate([a, a], 0),
    "concatenate last": lambda t, a: t.jnp.concatenate([a, a], -1),
    "stack": lambda t, a: t.jnp.stack([a, a]),
    "rev": lambda t, a: t.lax.rev(a, (0,)),
    "sort": lambda t, a: t.jnp.sort(a, 0),
    "sort last": lambda t, a: t.jnp.sort(a, -1),
    "cumsum": lambda t, a: t.jnp.cumsum(a, -1),
    "argmax": lambda t, a: t.jnp.argmax(a, 0),
    "top_k": lambda t, a: t.lax.top_k(a, 2)[0],
    "slice": lambda t, a: t.lax.slice_in_dim(a, 0, 4, axis=0),
    "slice 3": lambda t, a: t.lax.slice_in_dim(a, 0, 3, axis=0),
    "dynamic slice": lambda t, a: t.lax.dynamic_slice_in_dim(a, 0, 4, 1),
    "pad": lambda t, a: t.jnp.pad(a, ((1, 1), *[(0, 0)] * (a.ndim - 1))),
    "fft": lambda t, a: t.jnp.fft.fft(a),
    "zeros_like": lambda t, a: t.jnp.zeros_like(a),
    "vmap": lambda t, a: t.m.vmap(t.jnp.sin)(a),
    "vmap sum": lambda t, a: t.m.vmap(t.jnp.sum, in_axes=1)(a),
    "map": lambda t, a: t.lax.map(t.jnp.sin, a),
    "cond": lambda t, a: t.lax.cond(True, lambda a: a * 2, lambda a: a, a),
    "fori": lambda t, a: t.lax.fori_loop(0, 3, lambda i, a: a * 2, a),
    "checkpoint": lambda t, a: t.m.checkpoint(t.jnp.sin)(a),
    "cholesky": lambda t, a: t.jnp.linalg.cholesky(a @ t.jnp.swapaxes(a, -1, -2) + 9),
    "reshard": lambda t, a: t.m.sharding.reshard(a, t.P("y")),
    "gather": lambda t, a: a[t.jnp.array([0, 1])],
    "get": lambda t, a: a.at[t.jnp.array([0, 1, 2, 3])].get(out_sharding=t.P("x")),
    "auto": lambda t, a: t.sharding.auto_axes(lambda a: a @ a.T, out_sharding=t.P("x", "y"))(a),
}
_ROUGH = {"sort", "sort last", "argmax", "top_k", "fft", "zeros_like", "astype", "max"}
for _array in ARRAYS:
    for _name, _f in ONE.items():
        EXPLICIT[f"{_name} of {_array}"] = lambda t, f=_f, a=_array: f(t, getattr(t, a))
for _name, _f in ONE.items():
    EXPLICIT[f"jit {_name}"] = lambda t, f=_f: t.m.jit(lambda a: f(t, a))(t.rows)
    if _name not in _ROUGH:
        EXPLICIT[f"grad {_name}"] = lambda t, f=_f: t.m.grad(
            lambda a: t.jnp.sum(t.m.sharding.reshard(f(t, a), t.P()) ** 2)
        )(t.rows)

# -- operations on several -------------------------------------------------------------------------

programs({
    "add": lambda t: t.w + t.u,
    "add plain": lambda t: t.w + t.plain,
    "add conflict": lambda t: t.w + t.v,
    "broadcasting": lambda t: t.w + t.on("y", value=A[0]),
    "matmul": lambda t: t.w @ t.plain,
    "plain matmul": lambda t: t.plain @ t.w,
    "matmul rows and columns": lambda t: t.rows @ t.u,
    "matmul ambiguous": lambda t: t.w @ t.v,
    "matmul inconsistent": lambda t: t.w @ t.w,
    "matmul illegal": lambda t: t.rows @ t.rows.T,
    "matmul asked": lambda t: t.jnp.dot(t.w, t.v, out_sharding=t.P("x", None)),
    "matmul asked whole": lambda t: t.jnp.matmul(t.w, t.v, out_sharding=t.P()),
    "einsum asked": lambda t: t.jnp.einsum("ij,jk->ik", t.w, t.v, out_sharding=t.P("x", "y")),
    "einsum transposed": lambda t: t.jnp.einsum("ij,jk->ki", t.w, t.v, out_sharding=t.P("y", "x")),
    "batched": lambda t: t.stack @ t.plain,
    "batched pair": lambda t: t.stack @ t.on("x", None, "y", value=np.stack([A] * 4)),
    "vector": lambda t: t.rows @ t.jnp.ones(8),
    "outer": lambda t: t.jnp.outer(t.jnp.ones(8), t.on("x", value=A[0])),
    "where of two": lambda t: t.jnp.where(t.w > 0, t.w, -t.w),
    "scan": lambda t: t.lax.scan(lambda c, a: (c + a, c * a), t.on("y", value=A[0]), t.u),
    "scan of split rows": lambda t: t.lax.scan(lambda c, a: (c, a), 0.0, t.w),
    "scan carry changes": lambda t: t.lax.scan(lambda c, a: (c + a, c), t.jnp.zeros(8), t.u),
    "vmap of two": lambda t: t.m.vmap(lambda a, b: a + b)(t.w, t.rows),
    "vmap conflict": lambda t: t.m.vmap(lambda a, b: a + b)(t.w, t.v),
    "vmap one": lambda t: t.m.vmap(lambda a, b: a @ b, (0, None))(t.rows, t.plain),
    "conv": lambda t: t.lax.conv(
        t.on("x", value=np.ones((8, 3, 8, 8), "f")), t.jnp.ones((4, 3, 3, 3)), (1, 1), "SAME"
    ),
    "embedding": lambda t: t.plain.at[t.on("x", value=np.arange(8))].get(out_sharding=t.P("x")),
    "one_hot": lambda t: t.m.nn.one_hot(t.on("x", value=np.arange(8)), 10),
    "take_along_axis": lambda t: t.jnp.take_along_axis(
        t.rows, t.on("x", None, value=np.zeros((8, 1), int)), axis=1
    ),
    "set column": lambda t: t.rows.at[:, 0].set(1.0),
    "arange": lambda t: t.jnp.arange(8, out_sharding=t.P("x")),
    "zeros": lambda t: t.jnp.zeros((8, 8), out_sharding=t.P("x")),
    "iota": lambda t: t.lax.broadcasted_iota("int32", (8, 8), 0, out_sharding=t.P("x")),
    "normal": lambda t: t.m.random.normal(t.m.random.key(0), (8, 8), out_sharding=t.P("x", "y")),
    "reshape asked": lambda t: t.lax.reshape(t.w, (64,), out_sharding=t.P("x")),
    "device_put": lambda t: t.m.device_put(t.w, t.P("y", "x")),
    "jit out": lambda t: t.m.jit(lambda a: a, out_shardings=t.P("y", "x"))(t.w),
    "jit in": lambda t: t.m.jit(lambda a: a, in_shardings=t.P("y", "x"))(t.w),
    "constraint": lambda t: t.lax.with_sharding_constraint(t.w, t.P("x", "y")),
    "constraint elsewhere": lambda t: t.lax.with_sharding_constraint(t.w, t.P("y", "x")),
    "not divisible": lambda t: t.m.sharding.reshard(np.ones(3), t.P("x")),
    "shard_map": lambda t: t.m.shard_map(
        lambda a: t.lax.psum(a * 2, "x"), in_specs=t.P("x", "y"), out_specs=t.P(None, "y")
    )(t.w),
    "shard_map of types": lambda t: t.m.shard_map(lambda a: a * 2, out_specs=t.P("x", "y"))(t.w),
    "shard_map elsewhere": lambda t: t.m.shard_map(
        lambda a: a, in_specs=t.P("x"), out_specs=t.P("x")
    )(t.w),
    "grad of shard_map": lambda t: t.m.grad(
        lambda a: t.m.shard_map(lambda a: a**3, out_specs=t.P("x", "y"))(a).sum()
    )(t.w),
    "grad of an asked product": lambda t: t.m.grad(
        lambda a, b: t.jnp.dot(a, b, out_sharding=t.P("x", None)).sum(), (0, 1)
    )(t.w, t.v),
    "grad of plain weights": lambda t: t.m.grad(
        lambda k, a: t.jnp.tanh(a @ k).sum(), (0, 1)
    )(t.plain, t.rows),
    "jvp": lambda t: t.m.jvp(t.jnp.sin, (t.w,), (t.w,)),
    "jacobian": lambda t: t.m.jacrev(lambda a: a * a)(t.on("x", value=A[0])),
    "hessian": lambda t: t.m.hessian(lambda a: (a**3).sum())(t.on("x", value=A[0])),
    "training": lambda t: _training(t),
    "explicit within auto": lambda t: t.m.jit(t.sharding.auto_axes(
        lambda a: t.sharding.explicit_axes(lambda b: b * 2, in_sharding=t.P("y"))(a),
        out_sharding=t.P("x"),
    ))(t.w),
    "shard_map over one axis": lambda t: t.m.shard_map(
        lambda a: t.lax.psum(a, "x"), in_specs=t.P("x", None), out_specs=t.P(None, None),
        axis_names={"x"},
    )(t.w),
    "linearize": lambda t: t.m.linearize(t.jnp.sin, t.w)[1](t.w),
    "attention": lambda t: t.m.nn.dot_product_attention(
        *[t.on("x", value=np.ones((4, 8, 2, 4), "f"))] * 3
    ),
    "cross entropy": lambda t: -(
        t.m.nn.log_softmax(t.rows) * t.m.nn.one_hot(t.on("x", value=np.arange(8)), 8)
    ).sum(-1).mean(),
    "while": lambda t: t.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, t.w + 2),
    "associative_scan": lambda t: t.lax.associative_scan(t.jnp.add, t.rows, axis=1),
    "max pool": lambda t: t.lax.reduce_window(
        t.on("x", value=np.ones((8, 4, 4, 3), "f")), -np.inf, t.lax.max, (1, 2, 2, 1),
        (1, 2, 2, 1), "VALID",
    ),
    "median": lambda t: t.jnp.median(t.rows, axis=1),
    "split": lambda t: t.jnp.split(t.rows, 2, axis=1),
    "tril": lambda t: t.jnp.tril(t.w),
    "keys": lambda t: t.m.vmap(lambda k: t.m.random.normal(k, (4,)))(
        t.m.sharding.reshard(t.m.random.split(t.m.random.key(0), 8), t.P("x"))
    ),
    "ahead of time": lambda t: t.m.jit(lambda a: a * 2).lower(t.m.ShapeDtypeStruct(
        (8, 8), "float32", sharding=t.sharding.NamedSharding(t.mesh, t.P("x"))
    )).compile()(t.rows),
    "a constraint where one axis is left to XLA": lambda t: _mixed(
        t, lambda a: t.lax.with_sharding_constraint(a, t.P("x", t.P.UNCONSTRAINED))
    ),
    "where one axis is left to XLA": lambda t: _mixed(t, lambda a: t.jnp.sin(a) @ a.T.sum(0)),
    "grad where one axis is left to XLA": lambda t: _mixed(
        t, t.m.grad(lambda a: (a * a).sum())
    ),
    "auto without out_sharding": lambda t: t.sharding.auto_axes(lambda a: a)(t.w),
    "grad of auto": lambda t: t.m.grad(lambda a: t.sharding.auto_axes(
        lambda a: a @ a, out_sharding=t.P("x", "y"))(a).sum()
    )(t.w),
})  # fmt: skip


def _smap(t, f, *args, **axes):
    return t.m.smap(lambda *a: f(t, *a), **{"axis_name": "x", "out_axes": 0, **axes})(*args)


programs({
    "smap": lambda t: _smap(t, lambda t, a: a * 2, t.w, in_axes=0),
    "smap inferred": lambda t: _smap(t, lambda t, a: a * 2, t.w),
    "smap of several": lambda t: _smap(t, lambda t, a, b: a + b, t.rows, t.rows, in_axes=(0, 0)),
    "smap sum": lambda t: _smap(t, lambda t, a: t.lax.psum(a, "x"), t.w, out_axes=None),
    "smap no axis": lambda t: _smap(t, lambda t, a: a, t.w, axis_name="z"),
})  # fmt: skip


def _doubled(t, a, spec):
    return t.m.shard_map(lambda a: a * 2, in_specs=spec, out_specs=spec)(a)


programs(
    {
        "shard_map as typed": lambda t: _doubled(t, t.w, t.P("x", "y")),
        "shard_map of other parts": lambda t: _doubled(t, t.w, t.P("y", "x")),
        "shard_map of a whole array": lambda t: _doubled(t, t.plain, t.P("x", "y")),
        "shard_map of NumPy": lambda t: t.m.jit(lambda: _doubled(t, A, t.P("x")))(),
        "shard_map in part": lambda t: _mixed(t, lambda a: _doubled(t, a, t.P("y", "x"))),
    }
)


def _mixed(t, f):
    kinds = (t.sharding.AxisType.Auto, t.sharding.AxisType.Explicit)
    mesh = t.m.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    with t.m.set_mesh(mesh):
        return t.m.jit(f)(t.m.device_put(A, t.sharding.NamedSharding(mesh, t.P("x", "y"))))


def _training(t):
    """Two layers, the batch over one axis and the hidden units over the other."""

    def loss(params, x, y):
        hidden = t.jnp.tanh(t.jnp.dot(x, params[0]))
        out = t.jnp.dot(hidden, params[1], out_sharding=t.P("x", None))
        return ((out - y) ** 2).mean()

    @t.m.jit
    def step(params, x, y):
        value, grads = t.m.value_and_grad(loss)(params, x, y)
        return t.m.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = (t.on(None, "y"), t.on("y", None))
    for _ in range(3):
        params, value = step(params, t.rows, t.on("x", None, value=A + 1))
    return params, value


def types(m, out):
    return [str(m.typeof(x)) for x in m.tree.leaves(out)]
