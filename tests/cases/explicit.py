"""Programs whose types say how arrays are split, over eight CPU devices: run by `tests.cases.devices`.

Within `set_mesh` of a mesh with Explicit axes. Results must have upstream's types, shardings and
values; programs that are ambiguous must raise upstream's error. Of sums over mesh axes that are
still to be taken (`unreduced`) the values are compared when they have been.
"""

import importlib.metadata
import itertools

import numpy as np

A = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
EXPLICIT = {}
TAKEN = {}  # programs of many functions, none of which is refused
RECORDED = {}  # jaxprs, which may move no more arrays than upstream's do


def programs(table):
    EXPLICIT.update(table)


class Split:
    """A library within a mesh whose axes are Explicit."""

    def __init__(self, m, sharding):
        self.m, self.jnp, self.lax, self.P = m, m.numpy, m.lax, sharding.PartitionSpec
        self.sharding = sharding
        self.mesh = m.make_mesh((4, 2), ("x", "y"))

    def on(self, *spec, value=A, **sums):
        return self.m.sharding.reshard(value, self.P(*spec, **sums))

    w = property(lambda self: self.on("x", "y"))
    v = property(lambda self: self.on("y", "x"))
    u = property(lambda self: self.on(None, "y"))
    rows = property(lambda self: self.on("x", None))
    plain = property(lambda self: self.jnp.asarray(A))
    kept = property(lambda self: self.on(reduced={"x"}))

    def dot(self, a, b, *spec, **sums):
        return self.jnp.dot(a, b, out_sharding=self.P(*spec, **sums))

    @property
    def part(self):
        """A product of which each place along an axis has a summand."""
        return self.dot(self.on(None, "x"), self.rows, unreduced={"x"})

    stack = property(lambda self: self.on("x", "y", None, value=np.stack([A, A + 1, A + 2, A + 3])))


# -- products of batches that are split in several ways ----------------------------------------------

BATCHES = np.sin(np.arange(8 * 8 * 8, dtype=np.float32)).reshape(8, 8, 8)
AT_FIRST = importlib.metadata.version("jax") == "0.10.2"  # later ones refuse more of einsum
BATCHED = {
    "matmul": lambda t, a, b: a @ b,
    "einsum": lambda t, a, b: t.jnp.einsum("bij,bkj->bik", a, b),
    "einsum of elements": lambda t, a, b: t.jnp.einsum("bij,bij->bi", a, b),
    "grad of einsum": lambda t, a, b: t.m.grad(
        lambda a, b: (t.jnp.einsum("bij,bij->bi", a, b) ** 2).sum(), argnums=(0, 1)
    )(a, b),
    "reduction of two": lambda t, a, b: t.lax.reduce(
        (a, b), (0.0, 0.0), lambda x, y: (x[0] + y[0], x[1] + y[1]), (1,)
    ),
}
programs({
    f"{name} of batches {first} and {second}": lambda t, f=f, specs=(first, second): f(
        t, *(t.on(*spec, value=BATCHES) for spec in specs)
    )
    for name, f in BATCHED.items()
    for first, second in itertools.product([(), ("x",), (None, "x"), ("x", None, "y")], repeat=2)
    if AT_FIRST or "einsum" not in name or (*first, None, None)[:2] == (*second, None, None)[:2]
})  # fmt: skip


# -- windows over split space ---------------------------------------------------------------------

IMAGES = np.sin(np.arange(8 * 4 * 8 * 8, dtype=np.float32)).reshape(8, 4, 8, 8)
KERNELS = np.cos(np.arange(4 * 4 * 3 * 3, dtype=np.float32)).reshape(4, 4, 3, 3)


def _conv(t, images, kernels, strides, padding, **options):
    arrays = t.on(*images, value=IMAGES), t.on(*kernels, value=KERNELS)
    return t.lax.conv_general_dilated(*arrays, strides, padding, **options)


def _pool(t, spec, combine, dims, strides, padding):
    init = -np.inf if combine == "max" else np.float32(0)
    return t.lax.reduce_window(t.on(*spec), init, getattr(t.lax, combine), dims, strides, padding)


def _several(f, cases):
    """The results of all cases in one program, and which of them are refused."""

    def run(t):
        refused = []

        def results():
            found = []
            for index, case in enumerate(cases):
                try:
                    found.append(f(t, *case))
                except Exception as error:
                    if type(error).__name__ != "ShardingTypeError":
                        raise
                    refused.append(index)
            return found

        return t.m.jit(results)(), t.jnp.asarray(refused)

    return run


programs({
    "conv of images split in several ways": _several(_conv, list(itertools.product(
        [("x",), (None, "x"), ("x", None, "y"), ("y", None, None, "x")],
        [(), ("x",), (None, None, "y")], [(1, 1), (2, 1)], ["SAME", "VALID"],
    ))),
    "windows of arrays split in several ways": _several(_pool, list(itertools.product(
        [("x",), ("x", "y")], ["add", "max"], [(1, 1), (2, 3)], [(1, 1), (2, 2)], ["SAME", "VALID"]
    ))),
    "conv of a split kernel": lambda t: _conv(t, (), ("x",), (1, 1), "SAME"),
    "windows that leave an odd size": lambda t: _pool(t, ("x",), "max", (2, 3), (1, 1), "VALID"),
    "conv of split channels with out_sharding": lambda t: _conv(
        t, (None, "x"), ("y",), (1, 1), "SAME", out_sharding=t.P("x", "y")
    ),
    "grads of conv": lambda t: t.m.grad(
        lambda x, y: t.jnp.sin(t.lax.conv(x, y, (1, 1), "SAME")).sum(), (0, 1)
    )(t.on("x", None, "y", value=IMAGES), t.jnp.asarray(KERNELS)),
    "tangent of windows": lambda t: t.m.jvp(
        lambda x: t.lax.reduce_window(x, -np.inf, t.lax.max, (2, 3), (2, 1), "SAME"),
        (t.rows,), (t.rows,),
    ),
    "windows of two arrays": lambda t: t.lax.reduce_window(
        (t.rows, t.plain), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]),
        (2, 2), (1, 1), "SAME",
    ),
})  # fmt: skip

# -- sizes that are no multiple of the parts ----------------------------------------------------------

SIX = np.arange(6.0, dtype=np.float32)


def _six(t):
    return SIX, t.sharding.NamedSharding(t.mesh, t.P("x"))


programs({
    f"six elements, {name}": lambda t, f=f: f(t, *_six(t))
    for name, f in {
        "device_put": lambda t, x, s: t.m.device_put(x, s),
        "device_put of an array": lambda t, x, s: t.m.device_put(t.jnp.asarray(x), s),
        "device_put in jit": lambda t, x, s: t.m.jit(lambda x: t.m.device_put(x, s))(x),
        "reshard": lambda t, x, s: t.m.sharding.reshard(x, s),
        "reshard in jit": lambda t, x, s: t.m.jit(lambda x: t.m.sharding.reshard(x, s))(x),
        "in_shardings": lambda t, x, s: t.m.jit(lambda x: x, in_shardings=s)(x),
        "in_shardings, placed otherwise": lambda t, x, s: t.m.jit(lambda x: x, in_shardings=s)(
            t.m.device_put(x, s.update(spec=t.P()))
        ),
        "out_shardings": lambda t, x, s: t.m.jit(lambda x: x, out_shardings=s)(x),
        "constraint": lambda t, x, s: t.lax.with_sharding_constraint(x, s),
        "lower": lambda t, x, s: t.m.jit(lambda x: x).lower(
            t.m.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
        ),
        "eval_shape": lambda t, x, s: t.m.eval_shape(
            lambda x: x, t.m.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
        ),
        "zeros": lambda t, x, s: t.jnp.zeros(6, out_sharding=s),
        "broadcast": lambda t, x, s: t.lax.broadcast_in_dim(1.0, (6,), (), out_sharding=s.spec),
        "einsum": lambda t, x, s: t.jnp.einsum(
            "ab,bc->ac", np.ones((6, 4)), np.ones((4, 4)), out_sharding=s.spec
        ),
    }.items()
})  # fmt: skip

# -- functions of one array: eagerly of one, under jit of all, and their gradients -----------------

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
# Those that are refused, each of which is a program of its own.
REFUSED = {
    "u": {"flat", "sort last", "cumsum", "top_k", "cholesky"},
    "rows": {"sort", "slice 3", "pad", "map", "cholesky", "gather"},
    "stack": {"sort", "slice 3", "pad", "map", "cholesky", "gather", "auto"},
}
_ROUGH = {"sort", "sort last", "argmax", "top_k", "fft", "zeros_like", "astype", "max"}
_SMOOTH = {name: f for name, f in ONE.items() if name not in _ROUGH}


def _gradient(t, f):
    return t.m.grad(lambda a: t.jnp.sum(t.m.sharding.reshard(f(t, a), t.P()) ** 2))


def _together(kind, functions, refused, array, made=lambda t, f: lambda a: f(t, a)):
    """Functions of an array: one program of all that are taken, and one of each that is refused."""

    def of(names):
        return lambda t: t.m.jit(lambda a: {name: made(t, functions[name])(a) for name in names})(
            getattr(t, array)
        )

    TAKEN[f"{kind} of {array}"] = of([name for name in functions if name not in refused])
    programs({f"{kind} {name} of {array}": of([name]) for name in functions if name in refused})


for _name, _f in ONE.items():
    EXPLICIT[f"{_name} of w"] = lambda t, f=_f: f(t, t.w)
for _array, _names in REFUSED.items():
    _together("jit", ONE, _names, _array)
    for _name in sorted(_names):
        EXPLICIT[f"{_name} of {_array}"] = lambda t, f=ONE[_name], a=_array: f(t, getattr(t, a))
_together("grad", _SMOOTH, REFUSED["rows"], "rows", _gradient)
for _name in ("sin", "softmax", "get"):
    EXPLICIT[f"grad {_name}"] = lambda t, f=ONE[_name]: _gradient(t, f)(t.rows)

# -- operands that are broadcast: neither they nor their cotangents are gathered -----------------------

BROADCASTING = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: b - a,
    "add and mul": lambda t, a, b: a + 0.5 * (b - a) * b,
    "max": lambda t, a, b: t.jnp.maximum(a, b),
    "logaddexp": lambda t, a, b: t.jnp.logaddexp(a, b),
    "where": lambda t, a, b: t.jnp.where(a > 0.5, a, b),
    "where of condition": lambda t, a, b: t.jnp.where(b > 0.5, a, b),
    "select": lambda t, a, b: t.jnp.select([a > 0.5, b > 0.5], [a, b], 2.0),
    "clip": lambda t, a, b: t.jnp.clip(a, b, 2.0),
    "softmax": lambda t, a, b: t.m.nn.softmax(a + b),
    "centred": lambda t, a, b: a - a.mean() + b,
    "standardized": lambda t, a, b: t.m.nn.standardize(a) * b + b,
}
# Two cotangents of one operand are added when each has been gathered.
_TWICE = {("add and mul", "whole row"), ("standardized", "whole row")}
_SMALL = {"row": ("y", None), "column": ("x", 1), "whole row": (None, None), "number": None}


def _small(t, axis, place):
    return t.on(
        *([axis] if place is None else [axis, None]), value=A[0] if place is None else A[:, :1]
    )


def _summed(t, f):
    return t.m.grad(lambda a, b: (t.jnp.cos(f(t, a, b)) * a).sum(), (0, 1))


for _name, _small_at in _SMALL.items():
    _b = (lambda t: t.on(value=A[2, 3])) if _small_at is None else (
        lambda t, where=_small_at: _small(t, *where))  # fmt: skip
    TAKEN[f"grad beside a {_name}"] = lambda t, b=_b: t.m.jit(
        lambda *xs: {name: _summed(t, f)(*xs) for name, f in BROADCASTING.items()}
    )(t.w, b(t))
    for _op, _f in BROADCASTING.items():
        if (_op, _name) in _TWICE:
            continue
        RECORDED[f"grad {_op} beside a {_name}"] = lambda t, f=_f, b=_b: t.m.make_jaxpr(
            _summed(t, f))(t.w, b(t))  # fmt: skip

# -- operations on several -------------------------------------------------------------------------

programs({
    "add": lambda t: t.w + t.u,
    "add plain": lambda t: t.w + t.plain,
    "add conflict": lambda t: t.w + t.v,
    "broadcasting": lambda t: t.w + t.on("y", value=A[0]),
    "broadcast_arrays": lambda t: t.jnp.broadcast_arrays(t.w, t.on("y", value=A[0]), A[:1]),
    "broadcast_arrays whole": lambda t: t.jnp.broadcast_arrays(t.plain, t.on(value=A[0]), 2.0),
    "broadcast_like": lambda t: t.lax.broadcast_like(t.on(value=A[0]), t.w),
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
    "where conflict": lambda t: t.jnp.where(t.w > 0, t.w, t.v),
    "where mask conflict": lambda t: t.jnp.where(t.rows > 0, t.w, t.w),
    "where broadcast": lambda t: t.jnp.where(t.on("x", value=A[0]) > 0, t.on("y"), 0.0),
    "where broadcast conflict": lambda t: t.jnp.where(t.rows > 0, t.on("x", value=A[0]), t.on("y")),
    "where broadcast illegal": lambda t: t.jnp.where(t.on("x", value=A[0]) > 0, t.rows, 0.0),
    **{
        f"{name} of split {where}{how}": lambda t, f=f, where=where, how=how: (
            t.m.jit(f, static_argnums=1) if how else f
        )(t.rows if where == "rows" else t.on(None, "y"), t.jnp)
        for where in ("rows", "columns")
        for how in ("", " in jit")
        for name, f in {
            "[:4]": lambda a, _: a[:4],
            "[::2]": lambda a, _: a[::2],
            "[::-1]": lambda a, _: a[::-1],
            "[-1]": lambda a, _: a[-1],
            "[None, :, 2:4]": lambda a, _: a[None, :, 2:4],
            "at[:4].get": lambda a, _: a.at[:4].get(),
            "at[:4].set": lambda a, _: a.at[:4].set(0.0),
            "at[:, 2].add": lambda a, _: a.at[:, 2].add(1.0),
            "at[:].multiply": lambda a, _: a.at[:].multiply(2.0),
            "repeat": lambda a, jnp: jnp.repeat(a, 2, axis=0),
            "repeat flat": lambda a, jnp: jnp.repeat(a, 2),
            "repeat by array": lambda a, jnp: jnp.repeat(a, np.arange(8), axis=-1),
            "array_split": lambda a, jnp: jnp.array_split(a, 3),
        }.items()
    },
    "[:0] of split rows": lambda t: t.rows[:0],
    "[3, 2] of split rows": lambda t: t.rows[3, 2],
    "select_n": lambda t: t.lax.select_n(t.jnp.sum(t.w) > 0, t.rows, t.rows),
    "select_n conflict": lambda t: t.lax.select_n(t.jnp.sum(t.w) > 0, t.rows, t.u),
    "select of several": lambda t: t.jnp.select([t.rows > 0, t.on(None, "y") > 1], [t.rows, t.on(None, "y")]),
    "select conflict": lambda t: t.jnp.select([t.w > 0, t.v > 1], [t.w, t.w]),
    "clamp": lambda t: t.lax.clamp(t.rows, t.u, t.rows + 1),
    "clamp whole": lambda t: t.lax.clamp(t.rows, t.plain, t.rows + 1),
    "copysign conflict": lambda t: t.jnp.copysign(t.w, t.v),
    "maximum where conflict": lambda t: t.jnp.max(t.rows, where=t.on("y") > 0, initial=0),
    **{
        f"{name} at split indices": lambda t, f=f: f(t, t.on("x", value=np.arange(8)))
        for name, f in {
            "get": lambda t, i: t.plain[i],
            "get kept": lambda t, i: t.on(None, "y")[i],
            "get illegal": lambda t, i: t.on(None, "x")[i],
            "get columns illegal": lambda t, i: t.w[:, i],
            "set": lambda t, i: t.plain.at[i].set(0.0),
            "add illegal": lambda t, i: t.rows.at[:, i].add(1.0),
            "mapped": lambda t, i: t.m.vmap(lambda i: t.plain[i])(i),
            "mapped alike": lambda t, i: t.m.vmap(lambda i, a: a[i])(i, t.rows),
            "take": lambda t, i: t.jnp.take(t.plain, i, axis=0),
            "segment_sum": lambda t, i: t.m.ops.segment_sum(t.rows, i, 8),
            "bincount": lambda t, i: t.jnp.bincount(i, length=8),
        }.items()
    },
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
    "gamma": lambda t: [
        t.m.random.gamma(t.m.random.key(0), a) for a in (t.w**2, t.on("x", value=A[0] ** 2))
    ],
    "dirichlet": lambda t: [t.m.random.dirichlet(t.m.random.key(0), a**2 + 1) for a in (t.rows, t.u)],
    "vectors": lambda t: [
        t.m.random.multivariate_normal(t.m.random.key(0), t.rows, np.eye(8, dtype="float32"), shape)
        for shape in (None, (8,))
    ],
    "reshape of a dimension over two axes": lambda t: [
        t.jnp.reshape(t.on(("x", "y"), value=A.ravel()), sizes)
        for sizes in ((4, 16), (4, 2, 8), (4, 1, 4, 4), (8, 8), (1, 64))
    ],
    "no reshape over two axes": lambda t: t.on(("x", "y"), value=A.ravel()).reshape(2, 32),
    "isin": lambda t: [t.jnp.isin(t.w, A[0]), t.jnp.isin(A[0], t.on("x", value=A[1]))],
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
    "diag": lambda t: t.jnp.diag(t.on("x", value=np.arange(8.0))),
    "diag below": lambda t: t.jnp.diag(t.on("x", value=np.arange(8.0)), -8),
    "diag above": lambda t: t.jnp.diag(t.on("x", value=np.arange(8.0)), 8),
    "keys": lambda t: t.m.vmap(lambda k: t.m.random.normal(k, (4,)))(
        t.m.sharding.reshard(t.m.random.split(t.m.random.key(0), 8), t.P("x"))
    ),
    "ahead of time": lambda t: t.m.jit(lambda a: a * 2).lower(t.m.ShapeDtypeStruct(
        (8, 8), "float32", sharding=t.sharding.NamedSharding(t.mesh, t.P("x"))
    )).compile()(t.rows),
    "ahead of time, of a spec": lambda t: t.m.jit(lambda a: a * 2).lower(
        t.m.ShapeDtypeStruct((8, 8), "float32", sharding=t.P("x"))
    ).compile()(t.rows),
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


# -- sums over mesh axes that are still to be taken -----------------------------------------------------

OF_SUMS = {
    "add": lambda t, a: a + a,
    "add number": lambda t, a: a + 1.0,
    "add whole": lambda t, a: a + t.on(),
    "sub": lambda t, a: a - a,
    "neg": lambda t, a: -a,
    "mul": lambda t, a: a * a,
    "twice": lambda t, a: a * 2.0,
    "mul whole": lambda t, a: t.on() * a,
    "mul reduced": lambda t, a: a * t.kept,
    "mul reduced elsewhere": lambda t, a: a * t.on(reduced={"y"}),
    "sin": lambda t, a: t.jnp.sin(a),
    "div": lambda t, a: a / 2.0,
    "less": lambda t, a: a < 1,
    "square": lambda t, a: a**2,
    "sum": lambda t, a: a.sum(),
    "sum 0": lambda t, a: a.sum(0),
    "transpose": lambda t, a: a.T,
    "expand": lambda t, a: a[None],
    "broadcast": lambda t, a: t.jnp.broadcast_to(a, (3, 8, 8)),
    "split first": lambda t, a: a.reshape(2, 4, 8),
    "astype": lambda t, a: a.astype("bfloat16"),
    "concatenate": lambda t, a: t.jnp.concatenate([a, a]),
    "concatenate whole": lambda t, a: t.jnp.concatenate([a, t.on()]),
    "stack": lambda t, a: t.jnp.stack([a, a]),
    "slice": lambda t, a: t.lax.slice(a, (0, 0), (4, 8)),
    "dynamic slice": lambda t, a: t.lax.dynamic_slice(a, (0, 0), (4, 4)),
    "pad": lambda t, a: t.jnp.pad(a, 1),
    "where": lambda t, a: t.jnp.where(t.on() > 0, a, a),
    "rev": lambda t, a: t.lax.rev(a, (0,)),
    "barrier": lambda t, a: t.lax.optimization_barrier(a),
    "clamp": lambda t, a: t.lax.clamp(0.0, a, 1.0),
    "dot": lambda t, a: t.rows @ a,
    "dot of two": lambda t, a: a @ a,
    "scan": lambda t, a: t.lax.scan(lambda c, _: (c + a, None), a, None, length=3)[0],
    "cond": lambda t, a: t.lax.cond(True, lambda: a, lambda: a + a),
    "fori": lambda t, a: t.lax.fori_loop(0, 2, lambda i, c: c + c, a),
    "checkpoint": lambda t, a: t.m.checkpoint(lambda a: a + a)(a),
    "copy": lambda t, a: t.jnp.copy(a),
    "to whole": lambda t, a: t.m.sharding.reshard(a, t.P()),
    "to rows": lambda t, a: t.m.sharding.reshard(a, t.P("x")),
    "to both": lambda t, a: t.m.sharding.reshard(a, t.P("y", "x")),
    "to reduced": lambda t, a: t.m.sharding.reshard(a, t.P(reduced={"x"})),
    "to summands": lambda t, a: t.m.sharding.reshard(a, t.P("y", unreduced={"x"})),
    "auto": lambda t, a: t.sharding.auto_axes(lambda a: a * 2, out_sharding=t.P("x"))(a),
}
# Of some upstream's values are other multiples of the sum; some later versions of it take, or refuse
# with another class.
_APART = ("scan", "stack", "sub", "neg", "sin", "div", "less")
_REFUSED = {
    "add whole",
    "mul whole",
    "mul reduced elsewhere",
    "square",
    "concatenate whole",
    "rev",
    "clamp",
}
_REFUSED_OF_PARTS = {"add number", "mul", "twice", "dynamic slice", "dot", "dot of two"}
_OF_PARTS = {name: f for name, f in OF_SUMS.items() if name not in _APART}
_together("sums", _OF_PARTS, _REFUSED | _REFUSED_OF_PARTS, "part")
_together("sums", OF_SUMS, _REFUSED, "kept")
for _name in ("add", "sum 0", "transpose", "mul reduced", "twice", "to rows", "to reduced"):
    EXPLICIT[f"{_name} of part"] = lambda t, f=OF_SUMS[_name]: f(t, t.part)

# Of functions of what is reduced the cotangents are sums, and the reverse.
_LINEAR = (
    "add", "twice", "sum 0", "transpose", "broadcast", "split first", "astype", "concatenate", "pad",
    "where", "sin", "square", "cond", "checkpoint", "mul", "mul reduced", "barrier",
)  # fmt: skip


def _pulled(t, f):
    """The cotangent of what is reduced, from one that is a sum."""

    def pulled(a):
        out = t.m.eval_shape(lambda a: f(t, a), a)
        ct = t.on(unreduced={"x"}, value=t.on(value=np.ones(out.shape, out.dtype)))
        return t.m.vjp(lambda a: f(t, a), a)[1](ct)[0]

    return pulled


_together("vjp", {name: OF_SUMS[name] for name in _LINEAR}, {"square"}, "kept", _pulled)


def _weighted(t, w):
    return (t.jnp.tanh(t.rows @ w) ** 2).sum()


programs({
    "spec": lambda t: t.m.device_put(A, t.sharding.NamedSharding(t.mesh, t.P("x", reduced={"y"}))),
    "spec of no set": lambda t: t.P(unreduced="x"),
    "spec of None": lambda t: t.P(reduced={None}),
    "spec of both": lambda t: t.P(unreduced={"x"}, reduced={"x"}),
    "spec used twice": lambda t: t.P("x", unreduced={"x"}),
    "spec unpacked": lambda t: t.P(*t.P("x", unreduced={"y"})),
    "spec and tuple": lambda t: t.P("x", unreduced={"y"}) + ("z",),
    "spec of no axis": lambda t: t.on(unreduced={"z"}),
    "spec over an Auto axis": lambda t: t.sharding.NamedSharding(
        t.m.make_mesh((8,), ("x",), axis_types=(t.sharding.AxisType.Auto,)), t.P(reduced={"x"})
    ),
    "value of a sum": lambda t: np.asarray(t.part),
    "dot left": lambda t: t.dot(t.on(None, "x"), t.rows, unreduced={"x"}),
    "dot left of blocks": lambda t: t.dot(t.v, t.rows, "y", unreduced={"x"}),
    "dot left of two axes": lambda t: t.jnp.einsum(
        "ab,ab->", t.w, t.w, out_sharding=t.P(unreduced={"x", "y"})
    ),
    "dot left of one of two": lambda t: t.jnp.einsum(
        "ab,ab->", t.w, t.w, out_sharding=t.P(unreduced={"x"})
    ),
    "dot left elsewhere": lambda t: t.dot(t.on(None, "x"), t.rows, unreduced={"y"}),
    "dot left of one side": lambda t: t.dot(t.on(None, "x"), t.on(), unreduced={"x"}),
    "dot left of wholes": lambda t: t.dot(t.on(), t.on(), unreduced={"x"}),
    "sum left": lambda t: t.lax.reduce_sum(t.w, (0,), out_sharding=t.P("y", unreduced={"x"})),
    "sum left elsewhere": lambda t: t.lax.reduce_sum(
        t.rows, (1,), out_sharding=t.P(None, unreduced={"x"})
    ),
    "reshard to a sum": lambda t: t.on(unreduced={"x"}, value=t.rows),
    "nested jit of a sum": lambda t: t.m.jit(lambda a: t.m.jit(lambda a: (a + a).T)(a) + a)(t.part),
    "nested programs of a sum": lambda t: t.m.jit(lambda k, a: t.m.checkpoint(
        lambda c: t.lax.cond(k > 0, lambda c: c + c, lambda c: c + a, c))(a))(t.on()[0, 1], t.part),
    "reshard made to a sum": lambda t: t.m.jit(
        lambda a: t.m.sharding.reshard(t.jnp.sin(a), t.P("y", unreduced={"x"}))
    )(t.on()),
    "out_shardings of a sum": lambda t: t.m.jit(
        lambda a: t.jnp.sin(a), out_shardings=t.P(unreduced={"x"})
    )(t.on()),
    "out_shardings take a sum": lambda t: t.m.jit(lambda a: a, out_shardings=t.P("x"))(t.part),
    "in_shardings of a sum": lambda t: t.m.jit(lambda a: a + a, in_shardings=t.P(unreduced={"x"}))(
        t.part
    ),
    "in_shardings of no sum": lambda t: t.m.jit(
        lambda a: a + a, in_shardings=t.P(unreduced={"x"})
    )(t.on()),
    "device_put of a sum": lambda t: t.m.jit(
        lambda a: t.m.device_put(t.jnp.sin(a), t.P(unreduced={"x"}))
    )(t.on()),
    "auto to a sum": lambda t: t.sharding.auto_axes(
        t.jnp.sin, out_sharding=t.P(unreduced={"x"})
    )(t.on()),
    "grad of reduced weights": lambda t: t.m.grad(lambda w: _weighted(t, w))(t.kept),
    "grad of weights made reduced": lambda t: t.m.jit(t.m.grad(
        lambda w: _weighted(t, t.m.sharding.reshard(w, t.P(reduced={"x"})))
    ))(t.on()),
    "grad of rows made reduced": lambda t: t.m.grad(
        lambda w: _weighted(t, t.m.sharding.reshard(w, t.P(reduced={"x"})))
    )(t.rows),
    "grad of a reduced sum": lambda t: t.m.grad(lambda a: t.jnp.sin(a).sum())(t.kept),
    "grad of a sum left": lambda t: t.m.grad(lambda a: a.sum())(t.part),
    "grad of what leaves a sum": lambda t: t.m.grad(
        lambda a, b: (t.m.sharding.reshard(t.dot(a, b, unreduced={"x"}), t.P("x")) ** 2).sum(), (0, 1)
    )(t.on(None, "x"), t.rows),
    "grad of a scalar beside reduced": lambda t: t.m.grad(lambda s: (t.rows @ (t.kept * s)).sum())(
        t.jnp.float32(2)
    ),
    "grad reduced elsewhere": lambda t: t.m.grad(lambda w: (t.on("y", None) @ w).sum())(t.kept),
    "grad of lookups": lambda t: t.m.grad(
        lambda w: (w.at[t.on("x", value=np.arange(8))].get(out_sharding=t.P("x")) ** 2).sum()
    )(t.kept),
    "grad in scan": lambda t: t.m.grad(lambda w: t.lax.scan(
        lambda c, k: (c + (t.rows * k @ w).sum(), None), t.jnp.float32(0), t.jnp.arange(3.0)
    )[0])(t.kept),
    "grad of scan over reduced": lambda t: t.m.grad(lambda w: t.lax.scan(
        lambda c, row: (c + (row * row).sum(), None), t.on(reduced={"x"}, value=np.float32(0)), w
    )[0])(t.kept),
    "vjp of another type": lambda t: t.m.vjp(lambda a: a + a, t.kept)[1](t.on()),
    "jvp of reduced": lambda t: t.m.jvp(t.jnp.sin, (t.kept,), (t.kept,)),
})  # fmt: skip


def _cast(t, *states, spec=("x", None), out=None, **sums):
    """Within shard_map: casts one after the other, and the result as its spec says."""

    def f(a):
        for to in states:
            a = t.lax.psum(a, "x") if to == "psum" else t.lax.pcast(a, "x", to=to)
        return a

    out = t.P(*(out or ()), **sums)
    return t.m.jit(t.m.shard_map(f, in_specs=t.P(*spec), out_specs=out))(t.on(*spec))


def _inside(t, f, *specs, out, **options):
    """`f` of the library and its parts, within shard_map; specs are those of the arguments."""
    ins = tuple(t.P(*spec[0], **spec[1]) for spec in specs)
    args = [t.on(*spec[0], **spec[1]) for spec in specs]
    out = t.P(*out[0], **out[1])
    return t.m.shard_map(lambda *a: f(t, *a), in_specs=ins, out_specs=out, **options)(*args)


_ROWS, _WHOLE, _KEPT = (("x", None), {}), ((None, None), {}), ((None, None), {"reduced": {"x"}})
_SUM, _SPLIT = ((), {"unreduced": {"x"}}), (("x",), {})


def _to(t, a, to):
    return t.lax.pcast(a, "x", to=to)


programs({
    "pcast to a sum": lambda t: _cast(t, "unreduced", unreduced={"x"}),
    "pcast and psum": lambda t: _cast(t, "unreduced", "psum"),
    "pcast to reduced": lambda t: _cast(t, "reduced", spec=(None, None), reduced={"x"}),
    "pcast from reduced": lambda t: _cast(t, "reduced", "varying", spec=(None, None), out=("x",)),
    "pcast whole to a sum": lambda t: _cast(t, "unreduced", spec=(None, None), unreduced={"x"}),
    "pcast varying to reduced": lambda t: _cast(t, "reduced", reduced={"x"}),
    "pcast a sum to varying": lambda t: _cast(t, "unreduced", "varying", out=("x",)),
    "pcast to nothing known": lambda t: _cast(t, "invarying"),
    "pcast to reduced, said whole": lambda t: _cast(t, "reduced", spec=(None, None)),
    "pcast to a sum, said whole": lambda t: _cast(t, "unreduced"),
    "pcast to a sum, said split": lambda t: _cast(t, "unreduced", out=("x",)),
    "whole, said to be a sum": lambda t: _cast(t, spec=(None, None), unreduced={"x"}),
    "whole, said to be reduced": lambda t: _cast(t, spec=(None, None), reduced={"x"}),
    "psum of reduced": lambda t: _cast(t, "reduced", "psum", spec=(None, None)),
    "shard_map of reduced": lambda t: _inside(
        t, lambda t, w, a: t.jnp.tanh(a @ w), _KEPT, _ROWS, out=_SPLIT
    ),
    "shard_map of whole said reduced": lambda t: t.m.shard_map(
        lambda a: a, in_specs=t.P(reduced={"x"}), out_specs=t.P(reduced={"x"})
    )(t.on()),
    "shard_map of a sum": lambda t: t.m.shard_map(
        lambda a: t.lax.psum(a + a, "x"), out_specs=t.P()
    )(t.part),
    "shard_map without types of sums": lambda t: t.m.shard_map(
        lambda a: t.lax.psum(a, "x"), in_specs=t.P(unreduced={"x"}), out_specs=t.P(),
        check_vma=False,
    )(t.part),
    "reduced beside varying": lambda t: _inside(
        t, lambda t, w, a: _to(t, w, "reduced")[:2] * a, _WHOLE, _ROWS, out=_SPLIT
    ),
    "reduced beside whole": lambda t: _inside(
        t, lambda t, w: _to(t, w, "reduced") + w, _WHOLE, out=_KEPT
    ),
    "sum beside varying": lambda t: _inside(
        t, lambda t, a: _to(t, a, "unreduced") + a, _ROWS, out=_SUM
    ),
    "sum of a sum": lambda t: _inside(
        t, lambda t, a: t.lax.psum(_to(t, a, "unreduced").sum(), "x"), _ROWS, out=((), {})
    ),
    "psum_scatter of a sum": lambda t: _inside(
        t, lambda t, a: t.lax.psum_scatter(
            _to(t, a, "unreduced"), "x", scatter_dimension=1, tiled=True
        ), _ROWS, out=((None, "x"), {}),
    ),
    "all_gather of a sum": lambda t: _inside(
        t, lambda t, a: t.lax.all_gather(_to(t, a, "unreduced"), "x"), _ROWS, out=_SPLIT
    ),
    "all_gather to reduced": lambda t: _inside(
        t, lambda t, a: t.lax.all_gather(a, "x", tiled=True, to="reduced"), _ROWS, out=_KEPT
    ),
    "all_gather to invarying": lambda t: _inside(
        t, lambda t, a: t.lax.all_gather(a, "x", axis=1, to="invarying"), _ROWS, out=((), {})
    ),
    "all_gather to nothing known": lambda t: _inside(
        t, lambda t, a: t.lax.all_gather(a, "x", to="unreduced"), _ROWS, out=_SPLIT
    ),
    "grad of shard_map of reduced": lambda t: t.m.grad(lambda w: (t.m.shard_map(
        lambda w, a: t.jnp.tanh(a @ t.jnp.sin(w)), in_specs=(t.P(reduced={"x"}), t.P("x")),
        out_specs=t.P("x"),
    )(w, t.rows) ** 2).sum())(t.kept),
    "grad of weights cast in shard_map": lambda t: t.m.grad(lambda w: t.m.shard_map(
        lambda w, a: t.jnp.tanh(a @ _to(t, w, "reduced")), in_specs=(t.P(), t.P("x")),
        out_specs=t.P("x"),
    )(w, t.rows).sum())(t.on()),
    "grad of a sum from shard_map": lambda t: t.m.grad(lambda a: t.m.sharding.reshard(t.m.shard_map(
        lambda a: _to(t, a * a, "unreduced"), in_specs=t.P("x"), out_specs=t.P(unreduced={"x"})
    )(a), t.P()).sum())(t.rows),
    "grad of all_gather to reduced": lambda t: t.m.grad(lambda a: t.m.shard_map(
        lambda a: t.lax.all_gather(a * a, "x", tiled=True, to="reduced").sum(),
        in_specs=t.P("x"), out_specs=t.P(reduced={"x"}),
    )(a))(t.rows),
    "grad of all_gather to invarying": lambda t: t.m.grad(lambda a: t.m.shard_map(
        lambda a: (t.lax.all_gather(a * a, "x", tiled=True, to="invarying") ** 2).sum(),
        in_specs=t.P("x"), out_specs=t.P(),
    )(a))(t.rows),
    "grad within shard_map": lambda t: _inside(
        t, lambda t, w, a: t.lax.psum(t.m.grad(
            lambda w: t.jnp.tanh(a @ w).sum()
        )(_to(t, w, "reduced")), "x"), _WHOLE, _ROWS, out=((), {}),
    ),
})  # fmt: skip


def type_of(m, x):
    return str(m.typeof(x))
