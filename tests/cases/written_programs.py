"""Programs of primitives that calls with more than operands make, for `explain.to_python`.

A row is `name: (f, arguments)`, with `f(m, *arguments)` of one of the two libraries. Those of
`OURS` hold objects of minijax, or names that upstream does not export.
"""

import importlib
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

X = np.array([0.3, -0.7, 1.9], np.float32)
MATRIX = np.array([[2.0, 0.5, 0.1], [0.4, 3.0, -0.2], [0.0, 0.3, 1.0]], np.float32)
PROGRAMS: dict[str, tuple] = {}
OURS: set[str] = set()


def program(*args, ours=False):
    def add(f):
        name = f.__name__.strip("_")
        PROGRAMS[name] = f, args
        OURS.update([name] if ours else [])
        return f

    return add


def module(m, name):
    return importlib.import_module(f"{m.__name__}.{name}")


# -- sparse arrays ---------------------------------------------------------------------------------


@program(MATRIX, X)
def batched_coordinates(m, a, x):
    sparse = module(m, "experimental.sparse")
    a = sparse.BCOO.fromdense(a, nse=8)
    total = a.sum_duplicates(nse=8).T.sort_indices()
    product = a @ total
    return (
        a @ x, product.data, product.indices, sparse.bcoo_extract(total, m.numpy.ones((3, 3))).data,
        sparse.todense(total), sparse.todense(x), m.grad(lambda d: sparse.BCOO(
            (d, a.indices), shape=(3, 3)).todense().sum())(a.data),
        sparse.bcoo_dot_general_sampled(m.numpy.ones((3, 2)), m.numpy.ones((2, 3)), a.indices,
                                        dimension_numbers=(([1], [0]), ([], []))),
    )  # fmt: skip


@program(MATRIX, X)
def rows_and_columns(m, a, x):
    sparse = module(m, "experimental.sparse")
    rows = sparse.BCSR.fromdense(a, nse=8)
    found = [rows @ x, rows.todense(), sparse.bcsr_extract(rows.indices, rows.indptr, a)]
    for kind in (sparse.CSR, sparse.CSC, sparse.COO):
        made = kind.fromdense(a, nse=8)
        found += [made @ x, made @ a, made.todense(), sparse.todense(made)]
    return found


@program(MATRIX, X)
def sparse_system(m, a, x):
    sparse = module(m, "experimental.sparse")
    a = sparse.CSR.fromdense(a, nse=8)
    return module(m, "experimental.sparse.linalg").spsolve(a.data, a.indices, a.indptr, x)


# -- kernels ---------------------------------------------------------------------------------------


@program(X, np.int32(2))
def kernels(m, x, n):
    """Alone and mapped, which adds a dimension to the grid, and over a grid of unknown size."""
    pl, tpu = module(m, "experimental.pallas"), module(m, "experimental.pallas.tpu")

    def kernel(x, o, acc):
        pl.when(pl.program_id(0) == 0)(lambda: acc.__setitem__(..., acc[...] * 0))
        o[...] = x[...] + pl.program_id(0) * pl.num_programs(0)
        o[0] += 1

    one = pl.BlockSpec((1,), lambda i: (i,))
    call = partial(pl.pallas_call, kernel, m.ShapeDtypeStruct((3,), x.dtype), interpret=True,
                   out_specs=one, scratch_shapes=[tpu.VMEM((1,), np.float32)])  # fmt: skip
    f = call(grid=3, in_specs=[pl.BlockSpec((None, 1), lambda i: (0, 2 - i))])
    g = call(grid=(n,), in_specs=[one])
    moved = pl.pallas_call(
        lambda order, x, o: o.__setitem__(..., x[...] * order[0]), x, interpret=True,
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(3,), in_specs=[pl.BlockSpec((1,), lambda i, p: (p[i],))],
            out_specs=pl.BlockSpec((1,), lambda i, p: (i,)),
        ), input_output_aliases={1: 0},
    )  # fmt: skip
    y = m.numpy.stack([x, x * 2])[:, None]
    return f(y[0]), m.vmap(f)(y), g(x), moved(np.int32([2, 0, 1]), x)


# -- linear algebra --------------------------------------------------------------------------------


@program(MATRIX)
def orthogonal_factors(m, a):
    return m.numpy.linalg.qr(a, mode="raw"), m.scipy.linalg.qr_multiply(a, a[0])


@program(MATRIX, ours=True)
def pivoted_factors(m, a):
    return m.scipy.linalg.qr_multiply(a, a[0], pivoting=True)


@program(np.arange(16, dtype=np.float32).reshape(4, 4) % 5)
def chosen_by_windows(m, x):
    primitives = module(m, "extend.core.primitives")
    one = np.float32(0)
    compared = m.make_jaxpr(m.lax.ge)(one, one).jaxpr
    added = m.make_jaxpr(m.lax.add)(one, one).jaxpr
    return primitives.select_and_scatter_p.bind(
        x, x[:2, :2], one, select_jaxpr=compared, select_consts=(), scatter_jaxpr=added,
        scatter_consts=(), window_dimensions=(2, 2), window_strides=(2, 2), padding=((0, 0),) * 2,
    )  # fmt: skip


# -- calls -----------------------------------------------------------------------------------------


@program(X)
def composites(m, x):
    def scaled(x, *, by, kinds=None):
        return m.numpy.sin(x) * by

    f = m.lax.composite(scaled, "my.scaled", version=2)
    return f(x, by=2.0, kinds=("a", 3)), m.lax.composite(lambda x, y: (x + y, y), "my.sum")(x, x)


@program(X)
def elsewhere(m, x):
    compute_on2 = module(m, "experimental.compute_on").compute_on2
    space = m.memory.Space.Device
    return compute_on2(lambda x: (x + 1, x), compute_type="device_host", out_memory_spaces=space)(x)


@program(X)
def fusions(m, x):
    fused = module(m, "experimental.fused").fused
    spaces = (m.memory.Space.Device, m.memory.Space.Device)
    return fused(out_spaces=spaces)(lambda x, y: (x + y, x))(x, x)


@program(X)
def marks(m, x):
    mark = module(m, "experimental.xla_metadata").set_xla_metadata
    group = module(m, "experimental.scheduling_groups").xla_metadata_call
    return mark(m.numpy.sin(x), a="b", count=3), group(lambda x: x * 2, kind="c")(x)


@program(MATRIX)
def places(m, a):
    layout = module(m, "experimental.layout")
    one = m.sharding.SingleDeviceSharding(m.devices()[0])
    turned = layout.Format(layout.Layout((1, 0)), one)
    kept = m.jit(lambda a: a * 2, in_shardings=one, out_shardings=turned)(a)
    alike = module(m, "experimental.shard_alike").shard_alike
    laid = layout.with_layout_constraint(a + 1, layout.Layout((1, 0)))
    return kept, alike(laid, a), m.device_put(a, m.memory.Space.Device)


@program(X)
def linear_solves_with_more_results(m, x):
    def solve(_, b):
        return {"x": m.numpy.linalg.solve(MATRIX, b["x"])}, (b["x"].sum(), m.numpy.int32(3))

    def solved(x):
        product = lambda y: {"x": m.numpy.asarray(MATRIX) @ y["x"]}
        return m.lax.custom_linear_solve(
            product, {"x": x}, solve, transpose_solve=solve, has_aux=True
        )

    return solved(x), m.grad(lambda x: (solved(x)[0]["x"] ** 2).sum())(x)


@program(X)
def linear_calls(m, x):
    call = partial(m.custom_derivatives.linear_call, lambda r, x: r * x, lambda r, ct: ct * r)
    return m.value_and_grad(lambda x: call(x[0], x * 2).sum())(x)


@program(X)
def mapped_by_rule(m, x):
    @m.custom_batching.custom_vmap
    def f(x, y):
        return m.numpy.sin(x) + y, y

    @f.def_vmap
    def _(size, batched, x, y):
        return (x * 10 + y, y), (True, batched[1])

    return f(x[0], x[1]), f(x[1], x[0]), m.jvp(f, (x[0], x[1]), (x[1], x[0]))


@program(X)
def forward_rules_that_give_way(m, x):
    f = m.custom_vjp(lambda x: m.numpy.sin(x).sum())
    f.defvjp(lambda x: (f(x), m.numpy.cos(x)), lambda c, ct: (ct * c,), optimize_remat=True)
    return m.value_and_grad(f)(x)


@program(X)
def partitioned(m, x):
    custom_partitioning = module(m, "experimental.custom_partitioning").custom_partitioning

    @partial(custom_partitioning, static_argnums=(1,))
    def f(x, by):
        return x * by

    def partition(by, mesh, arg_shapes, result_shape):
        place = arg_shapes[0].sharding
        return mesh, lambda x: x * by, place, (place,)

    f.def_partition(partition, sharding_rule="i -> i")
    return f(x, 2.0)


@program(X)
def foreign(m, x):
    like = m.ShapeDtypeStruct(x.shape, x.dtype)
    call = m.ffi.ffi_call(
        "some_target", [like, like], has_side_effect=True, vmap_method="sequential"
    )
    old = m.ffi.ffi_call("other", like, input_output_aliases={0: 0}, custom_call_api_version=2,
                         legacy_backend_config="text")  # fmt: skip
    return call(x, count=np.int32(3), name="a"), old(x)


@program(X, ours=True)  # upstream asks for another package
def exported(m, x):
    f = module(m, "export").export(m.jit(lambda x, k: {"y": x * k[0]}))(x, [x])
    return f.call(x, [x + 1])


@program(X)
def checks(m, x):
    checkify = module(m, "experimental.checkify")

    def f(x):
        checkify.check(x[0] > 1, "{} is small, {k}", x[0], k=x)
        checkify.debug_check(x[1] > 1, "never seen")
        return x

    return m.jit(checkify.checkify(m.jit(f)))(x)[1]


class Pair(NamedTuple):
    first: Any
    second: Any


@program(X, ours=True)
def prints_of_own_containers(m, x):
    m.debug.print("{} {k.second}", Pair(x[0], x[1]), k=Pair(x, 2))
    return x


# -- what only minijax can run -----------------------------------------------------------------------


@program(X, ours=True)
def boxes(m, x):
    box = module(m, "experimental.boxes").Box()
    box.set({"a": x, "b": (x[0],)})
    m.jit(lambda: box.set({"a": box.get()["a"] * 2}))()
    return box.get()["a"]


@program(X, ours=True)
def primitives_of_a_library(m, x):
    hijax = module(m, "experimental.hijax")

    class Scaled(hijax.VJPHiPrimitive):
        def __init__(self, aval, by):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {"by": by}
            super().__init__()

        def expand(self, x):
            return x * self.by

        def vjp_fwd(self, nonzeros, x):
            return self(x), None

        def vjp_bwd_retval(self, residuals, ct):
            return (ct * self.by,)

    f = lambda x: Scaled(m.typeof(x), 3.0)(x).sum()
    return m.jit(m.value_and_grad(f))(x)


@program(X, ours=True)
def own_primitive(m, x):
    p = module(m, "extend.core").Primitive("own")
    p.def_impl(lambda x, by, kind: x * by)
    p.def_abstract_eval(lambda x, by, kind: x)
    module(m, "interpreters.mlir").register_lowering(
        p, module(m, "interpreters.mlir").lower_fun(lambda x, by, kind: x * by, False)
    )
    return p.bind(x, by=2.0, kind=object())


if jax.__version_info__ >= (0, 11):  # which has neither `compute_on2` nor `shard_alike`
    OURS.update(("elsewhere", "places"))
