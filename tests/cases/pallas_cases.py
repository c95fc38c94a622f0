"""Kernels for the tests of Pallas: each takes the library and its `pallas`.

Those of `KERNELS` give a function of one array of 8; those of `OTHERS` results.
"""

from importlib import import_module

import jax
import numpy as np

X = np.arange(8, dtype=np.float32)
M = np.arange(24, dtype=np.float32).reshape(4, 6)
N = np.arange(8, dtype=np.int32)


def pallas(m):
    return import_module(f"{m.__name__}.experimental.pallas")


def tpu(m):
    return import_module(f"{m.__name__}.experimental.pallas.tpu")


def triton(m):
    return import_module(f"{m.__name__}.experimental.pallas.triton")


def out(m, *shape, dtype=np.float32):
    return m.ShapeDtypeStruct(shape, dtype)


def rows(pl, size, axis=0, ndim=1):
    """A block of `size` along one axis, for a grid of one dimension."""
    shape = [1] * ndim
    shape[axis] = size
    return pl.BlockSpec(tuple(shape), lambda i: tuple(i if n == axis else 0 for n in range(ndim)))


def halves(pl):
    return {"grid": (4,), "in_specs": [rows(pl, 2)], "out_specs": rows(pl, 2), "interpret": True}


# -- kernels of one array of 8 --------------------------------------------------------------------


def _sin(m, pl):
    def kernel(x, o):
        o[...] = m.numpy.sin(x[...]) * 2

    return pl.pallas_call(kernel, out(m, 8), **halves(pl))


def _whole(m, pl):
    return pl.pallas_call(lambda x, o: o.__setitem__(..., x[...] ** 2), out(m, 8), interpret=True)


def _edges(m, pl):
    def kernel(x, o):
        o[0, :] = x[...]

    specs = {"in_specs": [rows(pl, 3)], "out_specs": pl.BlockSpec((1, 3), lambda i: (i, 0))}
    return pl.pallas_call(kernel, out(m, 3, 3), grid=(3,), interpret=True, **specs)


def _edges_out(m, pl):
    specs = {"in_specs": [rows(pl, 3)], "out_specs": pl.BlockSpec((3,), lambda i: 2 - i)}
    copy = lambda x, o: o.__setitem__(..., x[...])
    return pl.pallas_call(copy, out(m, 8), grid=(3,), interpret=True, **specs)


def _beyond(m, pl):
    """Block indices that are too large or negative: both are moved to where there are blocks."""
    specs = {
        "in_specs": [pl.BlockSpec((3,), lambda i: i + 2)],
        "out_specs": pl.BlockSpec((3,), lambda i: i - 2),
    }
    add = lambda x, o: o.__setitem__(..., x[...] + 1)
    return pl.pallas_call(add, out(m, 10), grid=(4,), interpret=True, **specs)


def _unwritten(m, pl):
    """What is not written is NaN."""
    return pl.pallas_call(lambda x, o: o.__setitem__(2, x[0]), out(m, 8), interpret=True)


def _last_wins(m, pl):
    specs = {"in_specs": [rows(pl, 2)], "out_specs": pl.BlockSpec((2,), lambda i: i // 2)}
    copy = lambda x, o: o.__setitem__(..., x[...])
    return pl.pallas_call(copy, out(m, 8), grid=(4,), interpret=True, **specs)


def _element(m, pl):
    specs = {
        "in_specs": [pl.BlockSpec((pl.Element(4, (1, 2)),), lambda i: i * 2)],
        "out_specs": pl.BlockSpec((pl.Squeezed(), 4), lambda i: (i, 0)),
    }
    copy = lambda x, o: o.__setitem__(..., x[...])
    return pl.pallas_call(copy, out(m, 4, 4), grid=(4,), interpret=True, **specs)


def _element_beyond(m, pl):
    specs = {
        "in_specs": [pl.BlockSpec((pl.Element(4),), lambda i: i * 2)],
        "out_specs": pl.BlockSpec((None, pl.Blocked(4)), lambda i: (i, 0)),
    }
    copy = lambda x, o: o.__setitem__(..., x[...])
    return pl.pallas_call(copy, out(m, 4, 4), grid=(4,), interpret=True, **specs)


def _large_block(m, pl):
    spec = pl.BlockSpec((10,), lambda i: i)
    copy = lambda x, o: o.__setitem__(..., x[...][:8])
    return pl.pallas_call(copy, out(m, 8), grid=(1,), in_specs=[spec], interpret=True)


def _no_index_map(m, pl):
    copy = lambda x, o: o.__setitem__(pl.ds(0, 4), x[...])
    specs = {"in_specs": [pl.BlockSpec((4,))], "out_specs": pl.no_block_spec}
    return pl.pallas_call(copy, out(m, 8), grid=(2,), interpret=True, **specs)


def _twice(m, pl):
    """A kernel in a kernel."""
    inner = pl.pallas_call(lambda x, o: o.__setitem__(..., x[...] + 1), out(m, 2), interpret=True)
    return pl.pallas_call(lambda x, o: o.__setitem__(..., inner(x[...])), out(m, 8), **halves(pl))


def _derived(m, pl):
    """Transforms in a kernel."""

    def kernel(x, o):
        v = x[...]
        o[...] = m.grad(lambda v: (v**3).sum())(v) + m.vmap(m.numpy.cos)(v) + m.jit(m.numpy.sin)(v)

    return pl.pallas_call(kernel, out(m, 8), **halves(pl))


def _loops(m, pl):
    def kernel(x, o):
        o[...] = x[...]

        def double(i, total):
            o[pl.ds(i, 1)] = o[pl.ds(i, 1)] * 2
            return total + x[i]

        o[0] = m.lax.fori_loop(0, 8, double, 0.0)
        m.lax.scan(lambda c, _: (c + 1, o.__setitem__(c, x[c] + o[c])), 1, None, length=3)

    return pl.pallas_call(kernel, out(m, 8), interpret=True)


def _branches(m, pl):
    def kernel(x, o):
        o[...] = x[...]
        m.lax.cond(x[1] > 0, lambda: o.__setitem__(0, x[3]), lambda: o.__setitem__(1, x[4]))
        o[2] = m.lax.cond(x[1] > 5, lambda: x[1] * 5, lambda: x[2] * 7)
        m.lax.switch(1, [lambda: None, lambda: o.__setitem__(3, x[3] * x[3])])
        pl.when(x[2] > 100)(lambda: o.__setitem__(4, x[0]))
        pl.when(True)(lambda: o.__setitem__(5, x[0]))

    return pl.pallas_call(kernel, out(m, 8), interpret=True)


def _pl_loop(m, pl):
    def kernel(x, o):
        o[...] = x[...]

        @pl.loop(1, 8, step=3)
        def _(i):
            o[i] = -x[i]

        @pl.loop(0, 4, init_carry=x[0])
        def total(i, carry):
            return carry + x[i]

        o[0] = total

    return pl.pallas_call(kernel, out(m, 8), interpret=True)


# What upstream differentiates (forward) and maps, and the values of which are the same.
KERNELS = {
    f.__name__.strip("_"): f
    for f in (
        _sin, _whole, _edges, _edges_out, _beyond, _unwritten, _last_wins, _element,
        _element_beyond, _large_block, _no_index_map, _twice, _derived, _loops, _branches, _pl_loop,
    )
}  # fmt: skip


# -- kernels of other arguments -------------------------------------------------------------------


def _grid(m, pl):
    def kernel(o):
        i, j = pl.program_id(0), pl.program_id(-1)
        o[...] = m.numpy.full(o.shape, i * 100 + j * 10 + pl.num_programs(1))

    spec = pl.BlockSpec((2, 2), lambda i, j: (i, j))
    kinds = out(m, 4, 6, dtype=np.int32)
    return pl.pallas_call(kernel, kinds, grid=(2, 3), out_specs=spec, interpret=True)()


def _matmul(m, pl):
    def kernel(x, y, o, acc):
        k = pl.program_id(2)
        pl.when(k == 0)(lambda: acc.__setitem__(..., m.numpy.zeros_like(acc)))
        acc[...] += x[...] @ y[...]
        o[...] = acc[...]

    specs = {
        "in_specs": [
            pl.BlockSpec((2, 3), lambda i, j, k: (i, k)),
            pl.BlockSpec((3, 2), lambda i, j, k: (k, j)),
        ],
        "out_specs": pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
        "scratch_shapes": [pl.ANY((2, 2), np.float32)],
    }
    f = pl.pallas_call(kernel, out(m, 4, 4), grid=(2, 2, 2), interpret=True, **specs)
    x = m.numpy.asarray(M)
    return f(x, x.T), m.vmap(f, in_axes=(0, None))(m.numpy.stack([x, x * 2]), x.T)


def _pytrees(m, pl):
    def kernel(ins, nothing, o):
        o["a"][...] = ins["x"][...]
        o["b"][...] = ins["y"][0][...] + 1

    x = m.numpy.asarray(X)
    outs = {"a": out(m, 8), "b": x}
    whole = pl.BlockSpec()
    f = pl.pallas_call(kernel, outs, interpret=True)
    given = {"in_specs": [{"x": whole, "y": [whole]}, None], "out_specs": {"a": whole, "b": whole}}
    g = pl.pallas_call(kernel, outs, grid=(1,), interpret=True, **given)
    args = {"x": x, "y": [x]}, None
    return f(*args), g(*args)


def _several(m, pl):
    def kernel(x, a, b):
        a[...], b[...] = x[...], x[...] * 2

    return pl.pallas_call(kernel, [out(m, 8), out(m, 8)], interpret=True)(X)


def _alias(m, pl):
    def kernel(x, o):
        o[...] = o[...] + 1 + x[...]

    f = pl.pallas_call(kernel, out(m, 8), input_output_aliases={0: 0}, **halves(pl))
    x = m.numpy.asarray(X)
    return f(x), m.vmap(f)(m.numpy.stack([x, x])), x


def _alias_partial(m, pl):
    """Inputs are seen as they were, outputs as they are."""
    specs = {"in_specs": [pl.BlockSpec((2,), lambda i: m.numpy.maximum(i - 1, 0))]}
    f = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...] + 1), out(m, 8), grid=(3,), interpret=True,
        out_specs=rows(pl, 2), input_output_aliases={0: 0}, **specs,
    )  # fmt: skip
    return f(m.numpy.asarray(X))


def _written_input(m, pl):
    """What is written to an input stays from step to step, and is not given back."""

    def kernel(x, o):
        o[...] = x[...]
        x[...] = x[...] + 10

    f = pl.pallas_call(
        kernel, out(m, 8), grid=(4,), in_specs=[pl.BlockSpec((2,), lambda i: 0)],
        out_specs=rows(pl, 2), interpret=True,
    )  # fmt: skip
    x = m.numpy.asarray(X)
    return f(x), x


def _scratch(m, pl):
    def kernel(x, o, kept, count):
        pl.when(pl.program_id(0) == 0)(lambda: kept.__setitem__(..., m.numpy.zeros_like(kept)))
        kept[...] += x[...]
        o[...] = kept[...]

    places = {"kept": pl.ANY((2,), np.float32), "count": pl.MemorySpace.HOST((), np.int32)}
    spec = pl.GridSpec((4,), [rows(pl, 2)], rows(pl, 2), list(places.values()))
    f = pl.pallas_call(kernel, out(m, 8), grid_spec=spec, interpret=True)
    g = pl.pallas_call(kernel, out(m, 8), scratch_shapes=places, **halves(pl))
    return f(X), g(X)


def _scoped(m, pl):
    def kernel(x, o):
        def body(a, b):
            a[...] = x[...]
            b[...] = a[...] + 1
            return b[...]

        @pl.with_scoped(pl.ANY((8,), np.float32))
        def scaled(by, a):
            a[...] = x[...] * by
            return a[...]

        space = pl.ANY((8,), np.float32)
        o[...] = pl.run_scoped(body, space, b=space) + scaled(2.0)

    return pl.pallas_call(kernel, out(m, 8), interpret=True)(X)


def _unsized_grid(m, pl):
    def run(n, x, count=True):
        kernel = lambda x, o: o.__setitem__(..., x[...] + (pl.num_programs(0) if count else 1))
        f = pl.pallas_call(
            kernel, out(m, 8), grid=(n,), in_specs=[rows(pl, 2)], out_specs=rows(pl, 2),
            interpret=True,
        )  # fmt: skip
        return f(x)

    stacked = m.numpy.stack([X, X + 1])
    by_size = m.vmap(run, in_axes=(0, None))(m.numpy.arange(3), X)
    plain = lambda n, x: run(n, x, False)
    by_array = m.vmap(plain, in_axes=(None, 0))(m.numpy.int32(3), stacked)
    return m.jit(run)(3, X), run(m.numpy.int32(2), X), by_size, by_array


def _empty_grids(m, pl):
    copy = lambda o: o.__setitem__(..., m.numpy.ones(8))
    return [pl.pallas_call(copy, out(m, 8), grid=n, interpret=True)() for n in (0, (2, 0), -1, 3)]


def _no_outputs(m, pl):
    return pl.pallas_call(lambda x: None, (), interpret=True)(X)


def _scalars(m, pl):
    f = pl.pallas_call(lambda x, o: o.__setitem__((), x[()] + 1), out(m), interpret=True)
    return f(3.0), f(np.float32(2)), m.vmap(f)(m.numpy.asarray(X))


def _keys(m, pl):
    def kernel(key, o):
        o[...] = m.random.uniform(key[...], (8,))

    return pl.pallas_call(kernel, out(m, 8), interpret=True)(m.random.key(0))


def _captured_ref(m, pl):
    def run(x):
        ref = m.new_ref(x)

        def kernel(x, o):
            o[...] = x[...] + ref[...]

        return pl.pallas_call(kernel, out(m, 8), interpret=True)(x), ref[...]

    return m.jit(run)(m.numpy.asarray(X))


def _prefetched(m, pl):
    def kernel(order, x, o):
        o[...] = x[...] + order[pl.program_id(0)]

    spec = tpu(m).PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((2,), lambda i, p: p[i])],
        out_specs=pl.BlockSpec((2,), lambda i, p: i),
    )  # fmt: skip
    f = pl.pallas_call(kernel, out(m, 8), grid_spec=spec, interpret=True)
    order = m.numpy.array([3, 2, 1, 0])
    orders = m.numpy.stack([order, order[::-1]])
    stacked = m.numpy.stack([X, X + 1])
    return f(order, X), m.vmap(f, (None, 0))(order, stacked), m.vmap(f, (0, 0))(orders, stacked)


def _memories(m, pl):
    pltpu = tpu(m)

    def kernel(x, o, s):
        s[...] = x[...]
        o[...] = s[...]

    kinds = [pltpu.VMEM, pltpu.SMEM, pltpu.HBM, pltpu.CMEM, pltpu.VMEM_SHARED]
    found = []
    for kind in kinds:
        f = pl.pallas_call(
            kernel, out(m, 8), scratch_shapes=[kind((8,), np.float32)], interpret=True,
            in_specs=[pl.BlockSpec(memory_space=kind)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )  # fmt: skip
        found.append(f(X))
    return found


def _semaphores(m, pl):
    pltpu = tpu(m)

    def kernel(x, o, one, many):
        pl.semaphore_signal(one, 5)
        pl.semaphore_wait(one, 2)
        pl.semaphore_signal(many.at[1], 3)
        pl.semaphore_wait(many.at[1], 1)
        pl.semaphore_wait(one, 1, decrement=False)
        o[...] = x[...] + pl.semaphore_read(one) + pl.semaphore_read(many.at[1])

    kinds = [pltpu.SemaphoreType.REGULAR, pltpu.SemaphoreType.REGULAR((2,))]
    return pl.pallas_call(kernel, out(m, 8), scratch_shapes=kinds, interpret=True)(X)


def _copies(m, pl):
    pltpu = tpu(m)

    def kernel(x, o, p, sem):
        pltpu.async_copy(x, o, sem).wait()
        pltpu.sync_copy(o.at[pl.ds(0, 4)], p.at[pl.ds(4, 4)])
        pltpu.store(p.at[pl.ds(0, 4)], pltpu.load(x.at[pl.ds(1, 4)]), mask=x[0:4] > 1)
        pltpu.store(o, pltpu.roll(x[...], 3, 0))

    kinds = [pltpu.SemaphoreType.DMA]
    return pl.pallas_call(kernel, [out(m, 8)] * 2, scratch_shapes=kinds, interpret=True)(X)


def _cores(m, pl):
    mesh = tpu(m).create_tensorcore_mesh("core", num_cores=1)

    def body(a, b, s):
        s[...] = a[...]
        b[...] = s[...] + 1

    space = [tpu(m).VMEM((8,), np.float32)]
    f = pl.kernel(body, out(m, 8), mesh=mesh, scratch_types=space, interpret=True)
    g = pl.kernel(out_type=out(m, 8), mesh=mesh, scratch_types=space, interpret=True)(body)
    return f(X), g(X)


def _states(m, pl):
    def body(refs):
        a, b = refs
        b[...] = a[...] * 2

    f = pl.run_state(body)
    x = m.numpy.asarray(X)
    return f((x, x)), m.jit(f)((x, x)), m.jvp(lambda x: f((x, x)), (x,), (x,))


def _helpers(m, pl):
    def kernel(x, o):
        start = pl.multiple_of(pl.program_id(0) * 4, 4)
        o[...] = x[pl.ds(start, 4)] + pl.broadcast_to(x[1], (4,)) + pl.reciprocal(x[4:] + 1)
        o[0] += pl.empty_like(x)[0] + pl.empty((2,), np.float32)[1]

    f = pl.pallas_call(kernel, out(m, 8), grid=(2,), out_specs=rows(pl, 4), interpret=True)
    return f(X)


def _within(m, pl):
    """Kernels in loops, branches, custom rules, checkpoints, and spread over a mesh."""
    f, x = _sin(m, pl), m.numpy.asarray(X)
    ruled = m.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * m.numpy.cos(x),))
    mesh = m.make_mesh((1,), ("a",), (m.sharding.AxisType.Auto,))
    spec = m.sharding.PartitionSpec("a")
    spread = m.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    summed = lambda x: f(m.lax.psum(x, "i") + m.lax.axis_index("i"))
    return (
        m.lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3),
        m.lax.while_loop(lambda c: c.sum() < 100, lambda c: f(c) + c + 10, x),
        m.lax.cond(x[0] < 1, f, lambda x: x, x),
        m.checkpoint(f)(x),
        m.vmap(m.grad(lambda x: ruled(x).sum()))(m.numpy.stack([x, x])),
        spread(x),
        m.vmap(summed, axis_name="i")(m.numpy.stack([x, x])),
        m.eval_shape(f, x).shape,
    )


def _attention(m, pl):
    def kernel(q, k, v, o):
        def body(j, carry):
            top, total, acc = carry
            s = q[...] @ k[pl.ds(j * 4, 4), :].T
            new = m.numpy.maximum(top, s.max(-1))
            p, scale = m.numpy.exp(s - new[:, None]), m.numpy.exp(top - new)
            acc = acc * scale[:, None] + p @ v[pl.ds(j * 4, 4), :]
            return new, total * scale + p.sum(-1), acc

        zeros = m.numpy.zeros
        start = m.numpy.full((4,), -m.numpy.inf), zeros(4), zeros((4, 8))
        _, total, acc = m.lax.fori_loop(0, 4, body, start)
        o[...] = acc / total[:, None]

    block = pl.BlockSpec((None, 4, 8), lambda h, i: (h, i, 0))
    whole = pl.BlockSpec((None, 16, 8), lambda h, i: (h, 0, 0))
    f = pl.pallas_call(
        kernel, out(m, 3, 16, 8), grid=(3, 4), in_specs=[block, whole, whole], out_specs=block,
        interpret=True,
    )  # fmt: skip
    q = m.numpy.sin(m.numpy.arange(3 * 16 * 8.0)).reshape(3, 16, 8)
    mapped = m.vmap(f, in_axes=(0, None, 0))(m.numpy.stack([q, -q]), q, m.numpy.stack([q, q]))
    return f(q, q, q), m.jvp(f, (q, q, q), (q, q, q)), mapped


def _histogram(m, pl):
    def kernel(i, o):
        pl.when(pl.program_id(0) == 0)(lambda: o.__setitem__(..., m.numpy.zeros_like(o)))
        o[i[0]] += 1

    f = pl.pallas_call(
        kernel, out(m, 4, dtype=np.int32), grid=(8,), in_specs=[rows(pl, 1)],
        out_specs=pl.BlockSpec((4,), lambda i: 0), interpret=True,
    )  # fmt: skip
    return f(np.array([0, 1, 1, 3, 3, 3, 0, 2], np.int32))


def _equations(m, pl):
    pltpu = tpu(m)

    def run(x):
        return (
            pltpu.einshape("a(bc)->b(ac)", x, b=2), pltpu.einshape("(ab)c->bac", x, a=2, b=2),
            pltpu.bitcast(x, np.int16), pltpu.roll(x, 1, 1, stride=2, stride_axis=0),
        )  # fmt: skip

    return m.jit(run)(m.numpy.asarray(M))


def _imitated_tpu(m, pl):
    """Kernels with `interpret=tpu.InterpretParams()`."""
    chips = tpu(m)
    chips.reset_tpu_interpret_mode_state()

    def kernel(x, o):
        o[...] = x[...] * 2

    ways = [chips.InterpretParams(), chips.InterpretParams(dma_execution_mode="eager")]
    calls = [
        pl.pallas_call(kernel, out_shape=out(m, 8), **halves(pl) | {"interpret": way})
        for way in ways
    ]
    shown = "" if jax.__version_info__ >= (0, 11) else str(ways[0])  # newer ones say more
    return shown, [call(m.numpy.asarray(X)) for call in calls]


OTHERS = {
    f.__name__.strip("_"): f
    for f in (
        _grid, _matmul, _pytrees, _several, _alias, _alias_partial, _written_input, _scratch,
        _scoped, _unsized_grid, _empty_grids, _no_outputs, _scalars, _keys, _captured_ref,
        _prefetched, _memories, _semaphores, _copies, _cores, _states, _helpers, _within,
        _attention, _histogram, _equations, _imitated_tpu,
    )
}  # fmt: skip
