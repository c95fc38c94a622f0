"""`minijax.experimental.sparse`: BCOO arrays, against upstream.

Each row of the tables runs over layouts (shape, batch and dense dimensions), eagerly, compiled,
mapped and differentiated with respect to the data.
"""

import re
import warnings

import jax
import jax.experimental.sparse as their_sparse
import numpy as np
import pytest

import minijax
import minijax.experimental.sparse as our_sparse
from tests.harness.differential import assert_same, sample, x64
from tests.harness.rules import all_in_both, in_both, in_both_as_one, like, outcome

SPARSE = {jax: their_sparse, minijax: our_sparse}
LAYOUTS = [
    ((5,), 0, 0), ((3, 4), 0, 0), ((2, 3, 4), 0, 0), ((3, 4), 1, 0), ((3, 4), 0, 1),
    ((2, 3, 4), 1, 0), ((2, 3, 4), 1, 1), ((2, 3, 4), 2, 0), ((2, 3, 4), 0, 2), ((2, 3), 2, 0),
    ((2, 3), 1, 1),
]  # fmt: skip
LAYOUT_IDS = ["{}-{}-{}".format("x".join(map(str, s)), b, d) for s, b, d in LAYOUTS]


def buffers(shape, n_batch, n_dense, nse=5, dtype="float32", seed=0, ones=False):
    """Values at places that occur twice, and out of bounds; batch sizes of 1 if `ones`."""
    rng = np.random.RandomState(seed)
    sparse = shape[n_batch : len(shape) - n_dense]
    batch = shape[:n_batch]
    data = sample((*batch, nse, *shape[len(shape) - n_dense :]), dtype, seed)
    rows = tuple(1 for _ in batch) if ones else batch
    columns = [rng.randint(0, size + 1, (*rows, nse)) for size in sparse]
    indices = np.stack(columns, -1) if sparse else np.zeros((*rows, nse, 0))
    bounds = np.asarray(sparse, int)
    inside = np.broadcast_to((indices < bounds).all(-1), data.shape[: n_batch + 1])
    data = np.where(inside.reshape(*inside.shape, *[1] * n_dense), data, 0).astype(data.dtype)
    return data, indices.astype("int32")


def of(m, parts, shape, **known):
    data, indices = parts
    return SPARSE[m].BCOO((m.numpy.asarray(data), m.numpy.asarray(indices)), shape=shape, **known)


def all_ways(op, parts, shape, *dense, ways=("jit", "vmap", "derivatives"), label=""):
    """Runs by name, for `all_in_both`, of `op(library, sparse, mat, *dense)`.

    Compiled, mapped, and derivatives of the data.
    """
    data, indices = parts
    floats = data.dtype.kind in "fc"

    def run(m, data, indices, *others):
        return op(m, SPARSE[m], SPARSE[m].BCOO((data, indices), shape=shape), *others)

    def values(m, *given):
        return [m.numpy.asarray(x) for x in given]

    runs = {}
    if "jit" in ways:
        runs[f"jit{label}"] = lambda m: m.jit(lambda *xs: run(m, *xs))(
            *values(m, data, indices, *dense)
        )
    if "vmap" in ways:
        stacked = np.stack([data, 2 * data])
        both = np.stack([indices, indices[..., ::-1, :]])
        for of_what, rows, axes in (("data", indices, (0, None)), ("both", both, (0, 0))):
            axes = (*axes, *[None] * len(dense))
            runs[f"vmap of {of_what}{label}"] = lambda m, rows=rows, axes=axes: m.vmap(
                lambda *xs: bufs(run(m, *xs)), in_axes=axes
            )(*values(m, stacked, rows, *dense))
    if "derivatives" in ways and floats:

        def derivatives(m):
            fun = lambda data, *xs: bufs(run(m, data, m.numpy.asarray(indices), *xs))[0]
            primals = values(m, data, *dense)
            tangents = values(m, *[like(x, 7) for x in (data, *dense)])
            out, pullback = m.vjp(fun, *primals)
            return m.jvp(fun, primals, tangents), pullback(m.numpy.asarray(like(out, 8)))

        runs[f"derivatives{label}"] = derivatives
    return runs


def without_jit(runs):
    return [name for name in runs if not name.startswith("jit")]


def bufs(out):
    """The arrays of a result, which may be sparse."""
    return (out.data, out.indices) if hasattr(out, "indices") else (out,)


# -- one operand --------------------------------------------------------------------------------

UNARY = {
    "todense": lambda m, s, x: x.todense(),
    "sort_indices": lambda m, s, x: x.sort_indices(),
    "sum_duplicates": lambda m, s, x: x.sum_duplicates(nse=6, remove_zeros=False),
    "sum_duplicates_few": lambda m, s, x: s.bcoo_sum_duplicates(x, nse=2),
    "eliminate_zeros": lambda m, s, x: x.sum_duplicates(nse=5),
    "astype": lambda m, s, x: x.astype("float16"),
    "transpose": lambda m, s, x: x.T,
    "no_batch": lambda m, s, x: x.update_layout(n_batch=0),
    "no_dense": lambda m, s, x: x.update_layout(n_dense=0),
    "plain": lambda m, s, x: x.update_layout(n_batch=0, n_dense=0),
    "batch": lambda m, s, x: x.update_layout(n_batch=1, on_inefficient=None),
    "batch_2": lambda m, s, x: x.update_layout(n_batch=2, n_dense=0, on_inefficient=None),
    "dense": lambda m, s, x: x.update_layout(n_dense=1, on_inefficient=None),
    "too_much": lambda m, s, x: x.update_layout(n_batch=2),
    "reduce_sum_0": lambda m, s, x: s.bcoo_reduce_sum(x, axes=(0,)),
    "reduce_sum_last": lambda m, s, x: s.bcoo_reduce_sum(x, axes=(x.ndim - 1,)),
    "reduce_sum_all": lambda m, s, x: s.bcoo_reduce_sum(x, axes=tuple(range(x.ndim))),
    "rev": lambda m, s, x: s.bcoo_rev(x, (0, x.ndim - 1)[: x.ndim]),
    "concatenate_0": lambda m, s, x: s.bcoo_concatenate([x, x], dimension=0),
    "concatenate_1": lambda m, s, x: s.bcoo_concatenate([x, x, x], dimension=1),
    "slice": lambda m, s, x: s.bcoo_slice(
        x, start_indices=(1,) * x.ndim, limit_indices=x.shape
    ),
    "slice_strides": lambda m, s, x: s.bcoo_slice(
        x, start_indices=(0,) * x.ndim, limit_indices=x.shape, strides=(2,) * x.ndim
    ),
    "dynamic_slice": lambda m, s, x: s.bcoo_dynamic_slice(x, (-1,) * x.ndim, (2,) * x.ndim),
    "dynamic_slice_one": lambda m, s, x: s.bcoo_dynamic_slice(
        x, tuple(range(x.ndim)), (1, *x.shape[1:])
    ),
    "broadcast_before": lambda m, s, x: s.bcoo_broadcast_in_dim(
        x, shape=(2, *x.shape), broadcast_dimensions=tuple(range(1, x.ndim + 1))
    ),
    "broadcast_after": lambda m, s, x: s.bcoo_broadcast_in_dim(
        x, shape=(*x.shape, 1), broadcast_dimensions=tuple(range(x.ndim))
    ),
    "reshape_ones": lambda m, s, x: s.bcoo_reshape(x, new_sizes=(*x.shape, 1)),
    "multiply_self": lambda m, s, x: s.bcoo_multiply_sparse(x, x),
}  # fmt: skip


# Those whose results for elements out of bounds that are not zero differ from upstream's.
ONLY_VALUES = ("concatenate_0", "concatenate_1", "eliminate_zeros")


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    place, runs = list(UNARY).index(name), {}
    for count, layout in enumerate(LAYOUTS):
        if (count + place) % 5:
            continue
        shape, n_batch, n_dense = layout
        if name == "reshape_ones" and n_batch and n_dense:
            continue  # upstream's own reshape fails
        ways = ("jit", "vmap", "derivatives") if (count + place) % 10 == 0 else ("jit",)
        ways = ("jit",) if name in ONLY_VALUES else ways
        label = f" of {LAYOUT_IDS[count]}"
        runs |= all_ways(UNARY[name], buffers(*layout), shape, ways=ways, label=label)
    all_in_both(runs, eager=without_jit(runs) if place % 4 == 0 else ())


# -- dense arrays -------------------------------------------------------------------------------

DTYPES = ["int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn"]


@pytest.mark.parametrize("layout", LAYOUTS, ids=LAYOUT_IDS)
def test_fromdense(layout):
    shape, n_batch, n_dense = layout
    dense = np.where(sample(shape, "float32") > 0, sample(shape, "float32"), 0)
    known = {"n_batch": n_batch, "n_dense": n_dense}

    def made(m, nse=None):
        mat = SPARSE[m].BCOO.fromdense(m.numpy.asarray(dense), nse=nse, **known)
        return mat, SPARSE[m].bcoo_extract(mat, m.numpy.asarray(dense))

    ours = made(minijax)
    kept = (dense != 0).any(tuple(range(len(shape) - n_dense, len(shape))))
    nse = int(np.max(kept.sum(tuple(range(n_batch, kept.ndim)))))
    assert ours[0].nse == nse
    # Upstream's counts without `jit` only, where it compiles every operation.
    theirs = made(jax) if n_batch == n_dense else jax.jit(lambda: made(jax, nse))()
    assert theirs[0].nse == nse
    assert_same(ours, theirs)
    assert repr(ours[0]) == repr(theirs[0])
    assert (ours[0].n_batch, ours[0].n_sparse, ours[0].n_dense) == (
        theirs[0].n_batch, theirs[0].n_sparse, theirs[0].n_dense)  # fmt: skip

    def traced(m):
        make = lambda x: bufs(SPARSE[m].BCOO.fromdense(x, nse=4, index_dtype="int16", **known))
        x = m.numpy.asarray(dense)
        if n_batch + n_dense == len(shape):  # upstream's derivative is that of other elements
            return m.jit(make)(x)
        out, pullback = m.vjp(lambda x: make(x)[0], x)
        return m.jit(make)(x), pullback(m.numpy.asarray(like(out, 2))), m.vmap(make)(x[None])

    in_both_as_one(traced)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    shape = (3, 4)
    parts = buffers(shape, 0, 0, dtype=dtype)

    def run(m, data, indices):
        mat = SPARSE[m].BCOO((data, indices), shape=shape)
        return mat.todense(), bufs(mat.sort_indices()), bufs(mat.sum_duplicates(nse=3))

    in_both(lambda m: m.jit(lambda *xs: run(m, *xs))(*map(m.numpy.asarray, parts)))


BOOLEANS = {
    "itself": lambda s, x: x,
    "sum": lambda s, x: x.sum(0),
    "duplicates": lambda s, x: (x + x).sum_duplicates(nse=4),
    "product": lambda s, x: x @ x,
    "transposed": lambda s, x: x.T,
    "row": lambda s, x: x[0],
    "negative": lambda s, x: -x,
    "BCSR": lambda s, x: s.BCSR.from_bcoo(x),
}


@pytest.mark.parametrize("enabled", [False, True])
def test_booleans_are_stored_as_integers(enabled):
    dense = np.array([[True, False], [True, True]])

    def run(m):
        s = SPARSE[m]
        made = [
            s.BCOO.fromdense(dense),
            s.BCSR.fromdense(dense),
            s.BCOO.fromdense(dense, n_batch=1),
        ]
        found = [fun(s, made[0]) for fun in BOOLEANS.values()]
        return [(str(x.dtype), np.asarray(x.todense())) for x in made + found]

    with x64(enabled):
        for (ours, mine), (theirs, wanted) in zip(run(minijax), run(jax), strict=True):
            assert ours == theirs and np.array_equal(mine, wanted)
        for make in (SPARSE[minijax].COO, SPARSE[minijax].CSR, SPARSE[minijax].CSC):
            assert np.array_equal(make.fromdense(dense).todense(), dense)


@pytest.mark.parametrize("enabled", [False, True])
def test_made(enabled):
    def eyes(m, n_dense):
        make = lambda k, b: SPARSE[m].BCOO._eye(3, 4, k, n_batch=b, n_dense=n_dense)
        return [make(k, b) for k in (0, 1, -2, 5) for b in (0, 1)]

    def empty(m):
        return SPARSE[m].BCOO._empty((2, 3, 4), n_batch=1, n_dense=1, nse=2, dtype="int8")

    with x64(enabled):
        in_both_as_one(lambda m: (empty(m), eyes(m, 0)))
        in_both(lambda m: eyes(m, 1))  # upstream's cannot be compiled


# -- products -----------------------------------------------------------------------------------

# Layout of the sparse operand, shape of the dense one, dimension numbers.
DOTS = [
    (((3, 4), 0, 0), (4, 5), (((1,), (0,)), ((), ()))),
    (((3, 4), 0, 0), (4,), (((1,), (0,)), ((), ()))),
    (((3, 4), 0, 0), (5, 3), (((0,), (1,)), ((), ()))),
    (((3, 4), 0, 0), (3, 4), (((0, 1), (0, 1)), ((), ()))),
    (((3, 4), 0, 0), (2,), (((), ()), ((), ()))),
    (((2, 3, 4), 1, 0), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    (((2, 3, 4), 1, 0), (4, 2, 5), (((2,), (0,)), ((0,), (1,)))),
    (((2, 3, 4), 1, 0), (2, 5), (((0,), (0,)), ((), ()))),
    (((2, 3, 4), 1, 0), (4, 5), (((2,), (0,)), ((), ()))),
    (((2, 3, 4), 1, 1), (3, 2), (((1,), (0,)), ((0,), (1,)))),
    (((2, 3, 4), 0, 1), (3, 5), (((1,), (0,)), ((), ()))),
    (((2, 3, 4), 2, 0), (3, 2, 4), (((2,), (2,)), ((1, 0), (0, 1)))),
    (((2, 3, 4), 0, 0), (4, 2), (((2, 0), (0, 1)), ((), ()))),
    (((2, 3, 4), 0, 1), (4, 5), (((2,), (0,)), ((), ()))),
    (((2, 3, 4), 0, 0), (2, 4), (((2,), (1,)), ((0,), (0,)))),
    (((3, 4), 0, 0), (5, 5), (((1,), (0,)), ((), ()))),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(DOTS)))
def test_dot_general(place):
    layout, shape, numbers = DOTS[place]
    dense = sample(shape, "float32", 5)
    ways = ("jit", "vmap", "derivatives") if place % 3 == 0 else ("jit", "derivatives")
    if layout[2]:
        ways = ("jit",)  # upstream has no reverse mode for dense dimensions

    def product(m, s, x, y):
        return s.bcoo_dot_general(x, y, dimension_numbers=numbers)

    runs = all_ways(product, buffers(*layout), layout[0], dense, ways=ways)
    (lc, rc), (lb, rb) = numbers
    swapped = (rc, lc), (rb, lb)
    runs |= all_ways(
        lambda m, s, x, y: s.bcoo_dot_general(y, x, dimension_numbers=swapped),
        buffers(*layout), layout[0], dense, ways=("jit",), label=" swapped",
    )  # fmt: skip
    all_in_both(runs, eager=without_jit(runs) if place % 6 == 0 else ())


SPARSE_DOTS = [
    (((3, 4), 0, 0), ((4, 5), 0, 0), (((1,), (0,)), ((), ()))),
    (((4,), 0, 0), ((4,), 0, 0), (((0,), (0,)), ((), ()))),
    (((2,), 0, 0), ((3,), 0, 0), (((), ()), ((), ()))),
    (((2, 3, 4), 1, 0), ((2, 4, 3), 1, 0), (((2,), (1,)), ((0,), (0,)))),
    (((2, 4), 1, 0), ((3, 4), 1, 0), (((1,), (1,)), ((), ()))),
    (((2, 4), 1, 0), ((4, 3), 0, 0), (((1,), (0,)), ((), ()))),
    (((3, 4), 0, 0), ((2, 4, 3), 1, 0), (((1,), (1,)), ((), ()))),
    (((2, 4), 0, 0), ((2, 4), 0, 0), (((1,), (1,)), ((0,), (0,)))),
    (((2, 4), 1, 0), ((2, 4), 1, 0), (((0,), (0,)), ((), ()))),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(SPARSE_DOTS)))
def test_sparse_dot_general(place):
    (left, right, numbers) = SPARSE_DOTS[place]

    def ways(m):
        parts = [*buffers(*left), *buffers(*right, nse=4, seed=2)]

        def product(ld, li, rd, ri):
            make = SPARSE[m].BCOO
            x, y = make((ld, li), shape=left[0]), make((rd, ri), shape=right[0])
            return SPARSE[m].bcoo_dot_general(x, y, dimension_numbers=numbers)

        ld, li, rd, ri = map(m.numpy.asarray, parts)
        data = lambda ld, rd: product(ld, li, rd, ri).data
        return {
            "jit": lambda: m.jit(product)(ld, li, rd, ri),
            "jvp": lambda: m.jvp(data, (ld, rd), (rd[..., :1] * 0 + 2 * ld, rd)),
        }

    runs = {way: lambda m, way=way: ways(m)[way]() for way in ("jit", "jvp")}
    all_in_both(runs, eager=["jvp"][place % 3 :])
    if place == 0:  # upstream's has no reverse mode: against the dense product
        x, y = (
            of(minijax, buffers(*part, seed=s), part[0]) for s, part in enumerate((left, right))
        )
        loss = lambda product: lambda d: (product(d) ** 2).sum()
        make = lambda d: type(x)((d, x.indices), shape=x.shape)
        sparse = loss(lambda d: our_sparse.bcoo_dot_general(
            make(d), y, dimension_numbers=numbers).todense())  # fmt: skip
        dense = loss(lambda d: make(d).todense() @ y.todense())
        np.testing.assert_allclose(
            *[minijax.jit(minijax.grad(loss))(x.data) for loss in (sparse, dense)], rtol=1e-5
        )


SAMPLED = [
    ((3, 5), (5, 4), ((3, 4), 0, 0), (((1,), (0,)), ((), ()))),
    ((2, 3, 5), (2, 5, 4), ((2, 3, 4), 1, 0), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 5), (2, 5, 4), ((2, 3, 4), 0, 0), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 5), (5, 4), ((2, 3, 4), 0, 1), (((2,), (0,)), ((), ()))),
    ((3, 5), (6, 4), ((3, 4), 0, 0), (((1,), (0,)), ((), ()))),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(SAMPLED)))
def test_dot_general_sampled(place):
    left, right, layout, numbers = SAMPLED[place]
    x, y, indices = sample(left, "float32"), sample(right, "float32", 1), buffers(*layout)[1]

    def run(m):
        at = m.numpy.asarray(indices)
        fun = lambda *xs: SPARSE[m].bcoo_dot_general_sampled(*xs, at, dimension_numbers=numbers)
        primals = [m.numpy.asarray(x), m.numpy.asarray(y)]
        out, pullback = m.vjp(fun, *primals)
        stacked = m.numpy.stack([primals[0]] * 2), primals[1]
        mapped = [] if place == 2 else m.vmap(fun, in_axes=(0, None))(*stacked)  # upstream refuses
        return m.jit(fun)(*primals), pullback(out), m.jvp(fun, primals, primals), mapped

    in_both_as_one(run)


@pytest.mark.parametrize("layout", LAYOUTS[1:7], ids=LAYOUT_IDS[1:7])
def test_multiply_dense(layout):
    shape, runs = layout[0], {}
    for kind in (shape, shape[-1:], (*shape[:-1], 1), (2, *shape)):
        runs |= all_ways(
            lambda m, s, x, v: s.bcoo_multiply_dense(x, v),
            buffers(*layout), shape, sample(kind, "float32", 3), ways=("jit",), label=f" {kind}",
        )  # fmt: skip
    all_in_both(runs)


# -- what refuses -------------------------------------------------------------------------------

REFUSED = {
    "data": lambda m, s, x: s.BCOO((x.data[:2], x.indices), shape=x.shape),
    "batch": lambda m, s, x: s.BCOO((m.numpy.ones((3, 3)), m.numpy.zeros((2, 3, 1), int)), shape=(2, 4)),
    "permutation": lambda m, s, x: x.transpose((0, 0)),
    "too_short": lambda m, s, x: x.transpose((0,)),
    "negative": lambda m, s, x: x.update_layout(n_batch=-1),
    "layout": lambda m, s, x: x.update_layout(n_batch=3),
    "inefficient": lambda m, s, x: x.update_layout(n_batch=1),
    "choice": lambda m, s, x: x.update_layout(n_batch=1, on_inefficient="x"),
    "traced": lambda m, s, x: m.jit(s.BCOO.fromdense)(m.numpy.eye(2)),
    "traced_sum": lambda m, s, x: m.jit(lambda x: x.sum_duplicates().data)(x),
    "mapped": lambda m, s, x: m.vmap(lambda x: x.todense())(x),
    "extract": lambda m, s, x: s.bcoo_extract(x, m.numpy.ones((2, 2))),
    "extract_of": lambda m, s, x: s.bcoo_extract(x.data, x.data),
    "joined": lambda m, s, x: s.bcoo_concatenate([], dimension=0),
    "joined_kinds": lambda m, s, x: s.bcoo_concatenate([x, x.update_layout(n_dense=1, on_inefficient=None)], dimension=0),
    "reshaped": lambda m, s, x: s.bcoo_reshape(x, new_sizes=(5, 5)),
    "sliced": lambda m, s, x: s.bcoo_slice(x, start_indices=(2, 0), limit_indices=(1, 1)),
    "squeezed": lambda m, s, x: s.bcoo_squeeze(x, dimensions=(0,)),
    "scipy": lambda m, s, x: s.BCOO.from_scipy_sparse(None, n_batch=1),
    "hashed": lambda m, s, x: hash(x),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    def run(m):
        return REFUSED[name](m, SPARSE[m], of(m, buffers((3, 4), 0, 0), (3, 4)))

    assert outcome(run, jax)[1] is not None
    in_both(run)


def test_mapped_arrays():
    dense = sample((2, 3, 4), "float32")

    def run(m):
        mat = SPARSE[m].BCOO.fromdense(m.numpy.asarray(dense), n_batch=2)
        twice = m.vmap(m.vmap(lambda x: x.todense()))(mat)
        moved = m.vmap(lambda x: x, out_axes=1)(mat)
        pair = m.vmap(lambda x, y: x["a"].todense() + y, in_axes=(None, 0))(
            {"a": mat}, mat.data[:, 0, 0]
        )
        return twice, moved, pair

    in_both(run)


def test_warning():
    def warned(m):
        mat = of(m, buffers((3, 4), 0, 0), (3, 4))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            mat.update_layout(n_batch=1, on_inefficient="warn")
            mat.update_layout(n_batch=1, n_dense=1, on_inefficient="warn")
        assert [w.category for w in seen] == 3 * [SPARSE[m].SparseEfficiencyWarning]
        return [re.search("n_batch|n_dense", str(w.message))[0] for w in seen]

    assert warned(minijax) == warned(jax)
