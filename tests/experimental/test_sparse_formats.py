"""COO, CSR, CSC and BCSR, functions of any format, `sparsify`, derivatives and solvers: as
upstream's.
"""

import importlib
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, x64
from tests.harness.rules import outcome

MATRICES = {
    "plain": np.array([[0, 1, 2], [3, 0, 0], [0, 0, 4], [0, 0, 0]], np.float32),
    "empty": np.zeros((2, 3), np.float32),
    "no_rows": np.zeros((0, 3), np.float32),
}
PLAIN = MATRICES["plain"]
STACK = np.stack([PLAIN, 2 * PLAIN])
FORMATS = ("COO", "CSR", "CSC", "BCSR")


def sparse_of(m):
    return importlib.import_module(f"{m.__name__}.experimental.sparse")


def compare(run):
    """`run(library, its sparse module)` gives the same in both, or an error of the same class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, error = outcome(lambda m: run(m, sparse_of(m)), jax)
        ours, our_error = outcome(lambda m: run(m, sparse_of(m)), minijax)
    if error is not None:
        names = [cls.__name__ for cls in type(our_error).__mro__]
        seen = f"upstream raises {error!r}, minijax {our_error!r}"
        assert type(error).__name__ in names, seen
        return
    assert our_error is None, repr(our_error)
    assert texts_of(ours) == texts_of(theirs)
    is_text = lambda x: isinstance(x, str)
    ours, theirs = (
        m.tree_util.tree_map(lambda x: 0 if is_text(x) else x, tree, is_leaf=is_text)
        for m, tree in ((minijax, ours), (jax, theirs))
    )
    assert_same(ours, theirs, weak=False)


def texts_of(tree):
    """The texts in a tree, and those of its sparse arrays."""
    chosen = lambda x: hasattr(x, "todense") or isinstance(x, str)
    leaves = minijax.tree_util.tree_leaves(tree, is_leaf=chosen)
    return [str(x) for x in leaves if chosen(x)]


def rows(**table):
    return [pytest.param(run, id=name) for name, run in table.items()]


# -- making arrays, and going back ---------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("nse", [None, 2, 9])
def test_fromdense(format, name, nse):
    def run(m, s):
        mat = getattr(s, format).fromdense(m.numpy.asarray(MATRICES[name]), nse=nse)
        return mat, mat.todense(), mat.nse, str(mat.dtype), mat.shape, mat.ndim, mat.size

    if name == "no_rows" and nse:
        pytest.skip("upstream reads what is not there")
    compare(run)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("dtype", "index_dtype"),
    [("int8", "int8"), ("bfloat16", "uint32"), ("complex64", "int64"), ("float64", "int32")],
)
def test_dtypes(format, dtype, index_dtype):
    def run(m, s):
        mat = getattr(s, format).fromdense(
            m.numpy.asarray(PLAIN).astype(dtype), index_dtype=index_dtype
        )
        vector = m.numpy.arange(3).astype(dtype)
        return mat, mat.todense(), mat @ vector, mat @ m.numpy.ones((3, 2), dtype)

    with x64(True):
        compare(run)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "operand",
    [
        np.arange(3.0, dtype=np.float32), np.arange(3), np.ones((3, 2), np.float32),
        np.ones((3, 0), np.float32), np.ones(3, np.float16),
        np.ones(4, np.float32), np.ones((4, 2), np.float32), np.ones((), np.float32),
    ],
    ids=lambda x: f"{x.dtype.name}{list(x.shape)}",
)  # fmt: skip
def test_products(format, operand):
    def run(m, s):
        mat = getattr(s, format).fromdense(m.numpy.asarray(PLAIN), nse=6)
        product = lambda mat, x: mat @ x
        x = m.numpy.asarray(operand)
        return product(mat, x), m.jit(product)(mat, x)

    compare(run)


@pytest.mark.parametrize("format", FORMATS[:3])
@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("transpose", [False, True])
def test_derivatives_of_products(format, ndim, transpose):
    if (format == "CSC") != (transpose and format != "COO"):
        pytest.skip("upstream's cotangents of a transposed product are those of the plain one")

    def run(m, s):
        mat = getattr(s, format).fromdense(m.numpy.asarray(PLAIN))
        mat = mat.T if transpose else mat
        bufs, tree = m.tree_util.tree_flatten(mat)
        x = m.numpy.arange(1.0, mat.shape[1] + 1)
        x = x if ndim == 1 else m.numpy.stack([x, -x], axis=1)
        loss = lambda data, x: ((tree.unflatten([data, *bufs[1:]]) @ x) ** 2).sum()
        dense = lambda data: (tree.unflatten([data, *bufs[1:]]).todense() ** 2).sum()
        tangents = bufs[0] * 3, x * 2
        back = lambda y: (getattr(s, format).fromdense(y, nse=5).todense() ** 3).sum()
        return (
            m.grad(loss, (0, 1))(bufs[0], x), m.jvp(loss, (bufs[0], x), tangents),
            m.grad(dense)(bufs[0]),
            m.grad(back)(m.numpy.asarray(PLAIN)), m.jit(m.grad(loss))(bufs[0], x),
        )  # fmt: skip

    compare(run)


@pytest.mark.parametrize("format", FORMATS)
def test_gradient_is_that_of_dense(format):
    """By the values of a matrix, and of its transpose: what the dense gradient has there."""
    m, s = minijax, sparse_of(minijax)
    for transpose in (False, format != "BCSR"):
        mat = getattr(s, format).fromdense(m.numpy.asarray(PLAIN))
        mat = mat.T if transpose else mat
        (data, *places), tree = m.tree_util.tree_flatten(mat)
        v = m.numpy.arange(1.0, mat.shape[1] + 1)
        found = m.grad(lambda d: ((tree.unflatten([d, *places]) @ v) ** 2).sum())(data)
        dense = m.grad(lambda x: ((x @ v) ** 2).sum())(mat.todense())
        wanted = np.where(np.asarray(mat.todense()) != 0, dense, 0)
        np.testing.assert_allclose(tree.unflatten([found, *places]).todense(), wanted, rtol=1e-5)


OF_FORMATS = rows(
    transpose=lambda m, s, mat: mat.T,
    transpose_axes=lambda m, s, mat: mat.transpose((1, 0)),
    length=lambda m, s, mat: len(mat),
    through_jit=lambda m, s, mat: m.jit(lambda x: x)(mat),
    structure=lambda m, s, mat: str(m.tree_util.tree_structure(mat)),
    hash=lambda m, s, mat: hash(mat),
    times_sparse=lambda m, s, mat: mat @ mat,
    times_list=lambda m, s, mat: mat @ [1, 2, 3],
    scaled=lambda m, s, mat: mat * 2,
    added=lambda m, s, mat: mat + mat,
    negated=lambda m, s, mat: -mat,
    summed=lambda m, s, mat: mat.sum(),
    indexed=lambda m, s, mat: mat[0],
    from_the_left=lambda m, s, mat: m.numpy.ones((2, 4)) @ mat,
    in_an_operation=lambda m, s, mat: m.numpy.sin(mat),
    bad_aux=lambda m, s, mat: type(mat).tree_unflatten({}, (1, 2, 3)),
    traced=lambda m, s, mat: m.jit(type(mat).fromdense)(mat.todense()),
    traced_nse=lambda m, s, mat: m.jit(lambda x: type(mat).fromdense(x, nse=3))(mat.todense()),
    mapped=lambda m, s, mat: m.vmap(lambda x: mat @ x)(m.numpy.ones((2, 3))),
    vector=lambda m, s, mat: type(mat).fromdense(m.numpy.ones(3)),
    todense=lambda m, s, mat: s.todense(mat),
    todense_jit=lambda m, s, mat: m.jit(s.todense)(mat),
    todense_jaxpr=lambda m, s, mat: str(m.make_jaxpr(s.todense)(mat)),
    jaxpr=lambda m, s, mat: str(m.make_jaxpr(lambda mat, x: mat @ x)(mat, m.numpy.arange(3.0))),
    to_dense_jaxpr=lambda m, s, mat: str(m.make_jaxpr(lambda mat: mat.todense())(mat)),
    gradient=lambda m, s, mat: s.grad(lambda mat, x: (mat @ x).sum(), (0, 1))(
        mat, m.numpy.arange(3.0)
    ),
)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("run", OF_FORMATS)
def test_of_each_format(format, run, request):
    if format == "CSC" and "gradient" in request.node.name:
        pytest.skip("see test_derivatives_of_products")
    compare(lambda m, s: run(m, s, getattr(s, format).fromdense(m.numpy.asarray(PLAIN))))


@pytest.mark.parametrize("format", ["bcoo", "bcsr", "coo", "csr", "csc", "other"])
@pytest.mark.parametrize(
    "run",
    rows(
        empty=lambda s, f: s.empty((2, 3), sparse_format=f),
        empty_int=lambda s, f: s.empty((2, 3), dtype="int8", index_dtype="int16", sparse_format=f),
        empty_vector=lambda s, f: s.empty((2,), sparse_format=f),
        eye=lambda s, f: s.eye(3, sparse_format=f),
        above=lambda s, f: s.eye(3, 4, k=1, dtype="int8", index_dtype="int16", sparse_format=f),
        below=lambda s, f: s.eye(4, 3, k=-2, sparse_format=f),
        outside=lambda s, f: s.eye(2, 3, k=7, sparse_format=f),
    ),
)
def test_empty_and_eye(format, run):
    if format == "bcoo" and run is not None:
        pytest.importorskip("minijax.experimental.sparse")
    compare(lambda m, s: (lambda mat: (mat, s.todense(mat)))(run(s, format)))


# -- BCSR -------------------------------------------------------------------------------------------


def bcsr(m, s, n_batch=0, n_dense=0, nse=None):
    x = STACK if n_batch else PLAIN
    x = np.stack([x, x * 2], axis=-1) if n_dense else x
    return s.BCSR.fromdense(m.numpy.asarray(x), nse=nse, n_batch=n_batch, n_dense=n_dense)


def repeated(m, s):
    """Two elements at one place, and a zero."""
    bufs = [m.numpy.arange(4.0), m.numpy.array([1, 1, 0, 2]), m.numpy.array([0, 2, 3, 4, 4])]
    return s.BCSR(bufs, shape=(4, 3))


BCSR_ROWS = rows(
    to_bcoo=lambda m, s, mat: mat.to_bcoo(),
    from_bcoo=lambda m, s, mat: s.BCSR.from_bcoo(mat.to_bcoo()),
    todense=lambda m, s, mat: mat.todense(),
    counts=lambda m, s, mat: (mat.n_batch, mat.n_sparse, mat.n_dense, mat.nse, mat.shape),
    sum_duplicates=lambda m, s, mat: mat.sum_duplicates(),
    sum_duplicates_nse=lambda m, s, mat: mat.sum_duplicates(nse=6),
    sum_duplicates_jit=lambda m, s, mat: m.jit(lambda x: x.sum_duplicates(nse=3))(mat),
    sum_duplicates_traced=lambda m, s, mat: m.jit(lambda x: x.sum_duplicates())(mat),
    extract=lambda m, s, mat: s.bcsr_extract(mat.indices, mat.indptr, mat.todense()),
    concatenate_0=lambda m, s, mat: s.bcsr_concatenate([mat, mat], dimension=0),
    concatenate_1=lambda m, s, mat: s.bcsr_concatenate([mat, mat], dimension=1),
    concatenate_2=lambda m, s, mat: s.bcsr_concatenate([mat, mat], dimension=2),
    concatenate_none=lambda m, s, mat: s.bcsr_concatenate([], dimension=0),
    broadcast=lambda m, s, mat: s.bcsr_broadcast_in_dim(
        mat, shape=(5, *mat.shape), broadcast_dimensions=tuple(range(1, mat.ndim + 1))
    ),
    broadcast_sparse=lambda m, s, mat: s.bcsr_broadcast_in_dim(
        mat, shape=(*mat.shape, 2), broadcast_dimensions=tuple(range(mat.ndim))
    ),
    times=lambda m, s, mat: mat @ m.numpy.arange(3.0),
    times_matrix=lambda m, s, mat: mat @ m.numpy.arange(6.0).reshape(3, 2),
    mapped=lambda m, s, mat: m.vmap(lambda x: x.todense())(mat),
    mapped_product=lambda m, s, mat: m.vmap(lambda x, v: x @ v)(
        mat, m.numpy.arange(6.0).reshape(2, 3)
    ),
    mapped_out=lambda m, s, mat: m.vmap(lambda x: x, out_axes=1)(mat),
    mapped_in=lambda m, s, mat: m.vmap(lambda x: x, in_axes=1)(mat),
    transpose=lambda m, s, mat: mat.T,
    gradient=lambda m, s, mat: m.grad(
        lambda data, x: ((type(mat)((data, mat.indices, mat.indptr), shape=mat.shape) @ x) ** 2)
        .sum(), (0, 1)
    )(mat.data, m.numpy.arange(3.0)),
    gradient_of_dense=lambda m, s, mat: m.grad(
        lambda x: (s.bcsr_extract(mat.indices, mat.indptr, x) ** 2).sum()
    )(mat.todense()),
)  # fmt: skip
LAYOUTS = {
    "plain": bcsr, "padded": lambda m, s: bcsr(m, s, nse=6), "repeated": repeated,
    "batched": lambda m, s: bcsr(m, s, n_batch=1), "dense": lambda m, s: bcsr(m, s, n_dense=1),
    "both": lambda m, s: bcsr(m, s, n_batch=1, n_dense=1),
}  # fmt: skip


OF_LAYOUTS = {"plain": slice(None), "both": slice(0, None, 2), "padded": slice(0, None, 3)}
OF_LAYOUTS |= {"repeated": slice(1, None, 3), "batched": slice(2, None, 3)}


@pytest.mark.parametrize(
    ("layout", "run"),
    [
        pytest.param(layout, *row.values, id=f"{layout}-{row.id}")
        for layout, chosen in OF_LAYOUTS.items()
        for row in BCSR_ROWS[chosen]
    ],
)
def test_bcsr(layout, run, request):
    if layout == "padded" and "concatenate" in request.node.name:
        pytest.skip("upstream's padding then stands within the result")
    compare(lambda m, s: run(m, s, LAYOUTS[layout](m, s)))


@pytest.mark.parametrize(
    ("bufs", "shape"),
    [
        (((2,), (2,), (4,)), (3, 4)), (((2,), (2,), (5,)), (3, 4)), (((2,), (3,), (4,)), (3, 4)),
        (((2, 3), (2,), (4,)), (3, 4)), (((2,), (2,), (4,)), (3,)),
        (((2, 2), (2, 2), (4,)), (3, 4)), (((1, 2), (1, 2), (1, 4)), (5, 3, 4)),
    ],
)  # fmt: skip
def test_bcsr_buffers(bufs, shape):
    def run(m, s):
        data, indices, indptr = bufs
        zeros = [m.numpy.zeros(size, "int32") for size in (indices, indptr)]
        mat = s.BCSR((m.numpy.ones(data), *zeros), shape=shape)
        return mat, mat.todense()

    compare(run)


def test_from_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    for cls in (scipy_sparse.csr_matrix, scipy_sparse.coo_matrix, scipy_sparse.csc_matrix):
        for index_dtype in (None, "int16"):
            compare(
                lambda m, s, x=cls(PLAIN), d=index_dtype: s.BCSR.from_scipy_sparse(x, index_dtype=d)
            )


# -- random arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((3, 4), {}), ((3, 4), {"nse": 0.5}), ((3, 4), {"nse": 5, "sorted_indices": True}),
        ((3, 4), {"nse": 5, "unique_indices": False}), ((2, 3, 4), {"nse": 3, "n_batch": 2}),
        ((2, 3, 4, 5), {"nse": 3, "n_batch": 1, "n_dense": 1}), ((3, 4), {"nse": 100}),
        ((3, 4), {"nse": 12}), ((3, 4), {"nse": 0}), ((3, 4), {"nse": 1.0}), ((), {"nse": 1}),
        ((3, 4), {"n_batch": 3}), ((3, 4), {"indices_dtype": "int8"}), ((0, 4), {}),
        ((3, 4), {"minval": 2, "maxval": 3}),
    ],
    ids=str,
)  # fmt: skip
def test_random_bcoo(shape, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the dtype of the indices is not one that was asked for
        compare(lambda m, s: s.random_bcoo(m.random.key(3), shape, dtype="float32", **options))


# -- derivatives ------------------------------------------------------------------------------------

AD_ROWS = rows(
    grad=lambda m, s, a, v: s.grad(lambda a, v: ((a @ v) ** 2).sum())(a, v),
    grad_dense=lambda m, s, a, v: s.grad(lambda a, v: ((a @ v) ** 2).sum(), 1)(a, v),
    value=lambda m, s, a, v: s.value_and_grad(lambda a, v: (a @ v).sum(), (0, 1))(a, v),
    aux=lambda m, s, a, v: s.grad(lambda a, v: ((a @ v).sum(), a), has_aux=True)(a, v),
    tree=lambda m, s, a, v: s.grad(lambda d, v: (d["a"] @ v).sum())({"a": a}, v),
    jacfwd=lambda m, s, a, v: s.jacfwd(lambda a, v: a @ v)(a, v),
    jacrev=lambda m, s, a, v: s.jacrev(lambda a, v: a @ v)(a, v),
    jacobian=lambda m, s, a, v: s.jacobian(lambda a, v: a @ v, (0, 1))(a, v),
    jac_aux=lambda m, s, a, v: s.jacfwd(lambda a, v: (a @ v, a @ v), (0, 1), has_aux=True)(a, v),
    jac_dense=lambda m, s, a, v: s.jacrev(lambda a: a.todense())(a),
    not_there=lambda m, s, a, v: s.grad(lambda a, v: (a @ v).sum(), 2)(a, v),
    no_argnums=lambda m, s, a, v: s.grad(lambda a, v: (a @ v).sum(), ())(a, v),
    ints=lambda m, s, a, v: s.grad(lambda a, v: (a @ v).sum(), 1)(a, v.astype(int)),
    no_scalar=lambda m, s, a, v: s.grad(lambda a, v: a @ v)(a, v),
)


@pytest.mark.parametrize("format", ["BCOO", "BCSR"])
@pytest.mark.parametrize("run", AD_ROWS)
def test_derivatives(format, run):
    compare(
        lambda m, s: run(
            m, s, getattr(s, format).fromdense(m.numpy.asarray(PLAIN)), m.numpy.arange(3.0)
        )
    )


# -- sparsify ---------------------------------------------------------------------------------------


def _custom(m):
    doubled = m.custom_jvp(lambda x: x * 2)
    doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 2))
    return doubled


_UNARY = (
    "abs", "sin", "tan", "sinh", "tanh", "arcsinh", "arctan", "expm1", "log1p", "sqrt", "sign",
    "negative", "square", "real", "cos", "exp", "log", "floor", "cosh", "isfinite",
)  # fmt: skip
SPARSIFY_ROWS = rows(
    **{name: (lambda m, x, name=name: getattr(m.numpy, name)(x)) for name in _UNARY},
    square_pow=lambda m, x: x**2,
    pow_zero=lambda m, x: m.lax.integer_pow(x, 0),
    pow_float=lambda m, x: x**2.5,
    add=lambda m, x: x + x,
    add_scaled=lambda m, x: x + 3 * x,
    sub=lambda m, x: x - 2 * x,
    mul=lambda m, x: x * x,
    mul_number=lambda m, x: x * 2,
    mul_dense=lambda m, x: x * m.numpy.arange(3.0),
    div=lambda m, x: x / 2,
    div_dense=lambda m, x: x / m.numpy.arange(1.0, 4),
    div_sparse=lambda m, x: 2 / x,
    add_dense=lambda m, x: x + m.numpy.ones(x.shape),
    add_number=lambda m, x: x + 2,
    sub_dense=lambda m, x: x - m.numpy.ones(x.shape),
    compare=lambda m, x: x > 0,
    matvec=lambda m, x: x @ m.numpy.arange(3.0),
    matmat=lambda m, x: x @ m.numpy.ones((3, 2)),
    from_left=lambda m, x: m.numpy.ones((2, 4)) @ x,
    sparse_product=lambda m, x: x.T @ x,
    sum=lambda m, x: x.sum(),
    sum_axis=lambda m, x: x.sum(0),
    mean=lambda m, x: x.mean(),
    max=lambda m, x: x.max(),
    transpose=lambda m, x: x.T,
    reshape=lambda m, x: x.reshape(2, -1),
    expand=lambda m, x: x[:, None],
    broadcast=lambda m, x: m.numpy.broadcast_to(x, (2, *x.shape)),
    concatenate=lambda m, x: m.numpy.concatenate([x, x]),
    concatenate_1=lambda m, x: m.numpy.concatenate([x, x], axis=1),
    stack=lambda m, x: m.numpy.stack([x, x]),
    slice=lambda m, x: x[1:3],
    strided=lambda m, x: x[::2, 1:],
    index=lambda m, x: x[0],
    last=lambda m, x: x[-1],
    element=lambda m, x: x[0, 1],
    dynamic=lambda m, x: m.lax.dynamic_slice(x, (1, 0), (2, 3)),
    gather=lambda m, x: x[m.numpy.array([0, 2])],
    rev=lambda m, x: m.numpy.flip(x, 1),
    pad=lambda m, x: m.numpy.pad(x, 1),
    convert=lambda m, x: x.astype("float16"),
    convert_int=lambda m, x: x.astype("int32"),
    copy=lambda m, x: m.numpy.array(x),
    todense=lambda m, x: sparse_of(m).todense(x),
    convolve=lambda m, x: m.numpy.convolve(x[0], m.numpy.ones(2)),
    scatter=lambda m, x: x.at[0].set(1.0),
    cond=lambda m, x: m.lax.cond(True, lambda y: y * 2, lambda y: y + y, x),
    cond_mixed=lambda m, x: m.lax.cond(x.sum() > 0, lambda y: y.sum(), lambda y: 0.0 * y.sum(), x),
    switch=lambda m, x: m.lax.switch(1, [lambda y: y, lambda y: y * 2], x),
    while_loop=lambda m, x: m.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)
    ),
    while_sum=lambda m, x: m.lax.while_loop(lambda c: c.sum() < 300, lambda c: c * 2, x),
    fori_loop=lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c * 2, x),
    scan=lambda m, x: m.lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0],
    scan_closed=lambda m, x: m.lax.scan(
        lambda c, _: (c + x @ m.numpy.arange(3.0), None), m.numpy.zeros(4), None, length=3
    )[0],
    scan_xs=lambda m, x: m.lax.scan(lambda c, a: (c * 2, a), x, m.numpy.arange(3.0)),
    custom_jvp=lambda m, x: _custom(m)(x),
    jit_twice=lambda m, x: m.jit(lambda y: (y * 2, y.sum()))(x),
    remat=lambda m, x: m.checkpoint(lambda y: y * 2)(x),
    tree=lambda m, x: {"a": x, "b": (x * 2, 3, m.numpy.ones(2))},
)
INPUTS = {
    "bcoo": lambda m, s: s.BCOO.fromdense(m.numpy.asarray(PLAIN)),
    "padded": lambda m, s: s.BCOO.fromdense(m.numpy.asarray(PLAIN), nse=6),
    "dense_rows": lambda m, s: s.BCOO.fromdense(m.numpy.asarray(PLAIN), n_dense=1),
    "bcsr": lambda m, s: s.BCSR.fromdense(m.numpy.asarray(PLAIN)),
}


OF_INPUTS = [("bcoo", SPARSIFY_ROWS), ("bcsr", SPARSIFY_ROWS[::6])]
OF_INPUTS += [("padded", SPARSIFY_ROWS[1::12]), ("dense_rows", SPARSIFY_ROWS[2::12])]
NOT_COMPARED = {
    "padded-concatenate",  # upstream's padding then stands within the result
    "padded-concatenate_1",
    "dense_rows-gather",  # upstream's program is not valid
}


@pytest.mark.parametrize(
    ("name", "run"),
    [
        pytest.param(name, *row.values, id=f"{name}-{row.id}")
        for name, chosen in OF_INPUTS
        for row in chosen
        if f"{name}-{row.id}" not in NOT_COMPARED
    ],
)
def test_sparsify(name, run):
    compare(lambda m, s: s.sparsify(lambda x: run(m, x))(INPUTS[name](m, s)))


@pytest.mark.parametrize("run", SPARSIFY_ROWS[::12])
def test_sparsify_with_tracers(run):
    compare(lambda m, s: s.sparsify(lambda x: run(m, x), use_tracer=True)(INPUTS["bcoo"](m, s)))


TRANSFORMED = rows(
    jit=lambda m, s, a, v: m.jit(s.sparsify(lambda a, v: a @ v + v[0]))(a, v),
    jit_inside=lambda m, s, a, v: s.sparsify(m.jit(lambda a, v: a * v))(a, v),
    grad=lambda m, s, a, v: m.grad(s.sparsify(lambda a, v: (a @ v).sum()), 1)(a, v),
    grad_inside=lambda m, s, a, v: s.sparsify(m.grad(lambda a, v: (a @ v).sum(), 1))(a, v),
    jvp_inside=lambda m, s, a, v: s.sparsify(lambda a: m.jvp(lambda a: a * 2, (a,), (a,)))(a),
    vmap=lambda m, s, a, v: m.vmap(s.sparsify(lambda a, v: a @ v), (None, 0))(
        a, m.numpy.stack([v, v])
    ),
    keywords=lambda m, s, a, v: s.sparsify(lambda a, *, k: a * k)(a, k=2),
    other_formats=lambda m, s, a, v: s.sparsify(lambda a, v: a @ v)(
        s.CSR.fromdense(a.todense()), v
    ),
    two=lambda m, s, a, v: s.sparsify(lambda a, b: a + b)(a, a),
    operators=lambda m, s, a, v: (a + a, a - a, a * a, 2 * a, a / 2, a**2, -a, +a, abs(a), a * v),
    indexing=lambda m, s, a, v: (a[0], a[1:, ::2], a[:, None], a[-1], a[0, 1], list(a)),
    methods=lambda m, s, a, v: (a.sum(), a.sum(0), a.reshape(12), a.astype("float16")),
    equal=lambda m, s, a, v: a == a,
    modulo=lambda m, s, a, v: a % 2,
)


@pytest.mark.parametrize("run", TRANSFORMED)
def test_transforms(run):
    compare(lambda m, s: run(m, s, INPUTS["bcoo"](m, s), m.numpy.arange(3.0)))


# -- solvers ----------------------------------------------------------------------------------------

SYSTEM = np.array([[4, 1, 0], [1, 3, 0.5], [0, 0.5, 2]], np.float32)
SOLVES = rows(
    solve=lambda m, f, d, b: f(d, b),
    jit=lambda m, f, d, b: m.jit(f)(d, b),
    grad=lambda m, f, d, b: m.grad(lambda d, b: f(d, b).sum(), (0, 1))(d, b),
    jvp=lambda m, f, d, b: m.jvp(f, (d, b), (d * 2, b)),
    vmap=lambda m, f, d, b: m.vmap(f, (None, 0))(d, m.numpy.stack([b, b])),
    complex=lambda m, f, d, b: f(d + 0j, b * 1j),
    matrix=lambda m, f, d, b: f(d, b[:, None]),
    size=lambda m, f, d, b: f(d, m.numpy.ones(4)),
    dtypes=lambda m, f, d, b: f(d.astype("float16"), b),
    reorder=lambda m, f, d, b: f(d, b, reorder=7),
)


@pytest.mark.parametrize("run", SOLVES)
def test_spsolve(run):
    pytest.importorskip("scipy.sparse.linalg")

    def with_matrix(m, s):
        linalg = importlib.import_module(f"{s.__name__}.linalg")
        mat = s.CSR.fromdense(m.numpy.asarray(SYSTEM))
        solve = lambda d, b, **k: linalg.spsolve(d, mat.indices, mat.indptr, b, **k)
        return run(m, solve, mat.data, m.numpy.arange(1.0, 4))

    compare(with_matrix)


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_lobpcg(steps):
    matrix = (np.diag(np.arange(1.0, 31)) + 0.01).astype(np.float32)
    start = np.random.RandomState(0).randn(30, 3).astype(np.float32)

    def run(m, apply=False):
        linalg = importlib.import_module(f"{m.__name__}.experimental.sparse.linalg")
        a = m.numpy.asarray(matrix)
        given = (lambda x: a @ x) if apply else a
        return linalg.lobpcg_standard(given, m.numpy.asarray(start), steps)

    theirs = run(jax)
    for apply in (False, True):
        theta, vectors, count = run(minijax, apply)
        np.testing.assert_allclose(theta, theirs[0], rtol=1e-4)
        np.testing.assert_allclose(np.abs(vectors), np.abs(theirs[1]), atol=2e-2)
        assert abs(int(count) - int(theirs[2])) <= 2


@pytest.mark.parametrize(
    "run",
    rows(
        vector=lambda m, f, a, x: f(a, x[:, 0]),
        many=lambda m, f, a, x: f(a[:10, :10], x[:10]),
        dtypes=lambda m, f, a, x: f(a, x.astype("int32")),
        shape=lambda m, f, a, x: f(lambda v: (a @ v)[0], x),
    ),
)
def test_lobpcg_errors(run):
    def of(m, s):
        linalg = importlib.import_module(f"{s.__name__}.linalg")
        return run(m, linalg.lobpcg_standard, m.numpy.eye(20), m.numpy.ones((20, 3)))

    compare(of)


@pytest.mark.parametrize("form", [*FORMATS, "BCOO"])
def test_shapes_of_arrays(form):
    """Sizes may be concrete arrays: results of other functions."""

    def run(m, sparse):
        given = getattr(sparse, form).fromdense(m.numpy.asarray(PLAIN))
        buffers, jnp = m.tree.leaves(given), m.numpy
        x = type(given)(buffers, shape=(jnp.max(jnp.arange(5)), jnp.asarray(3)))
        summed = sparse.bcoo_reduce_sum(x, axes=(1,)) if form == "BCOO" else x
        return x.todense(), x @ jnp.ones(3), m.jit(lambda x: x.todense())(x), summed.todense()

    compare(run)


_OF_A_MATRIX = {
    "todense": lambda s: lambda x: x.todense(),
    "transposed": lambda s: lambda x: x.transpose((0, *range(x.ndim - 1, 0, -1))),
    "multiplied": lambda s: lambda x: (x * 2.0, -x, s.jnp.sin(x.data)),
    "sorted": lambda s: lambda x: (x.sort_indices(), s.sparse.bcoo_sum_duplicates(x, nse=5)),
    "sums": lambda s: lambda x: (x.sum(), s.sparse.bcoo_reduce_sum(x, axes=(0,))),
    "by a dense one": lambda s: lambda x: x * s.jnp.ones(x.shape),
    "by a row": lambda s: lambda x: x * s.jnp.ones((1, x.shape[-1])),
    "product": lambda s: lambda x: (x @ s.jnp.ones((x.shape[-1], 2)), x @ s.jnp.ones(x.shape[-1])),
    "added": lambda s: lambda x: x + x,
    "no batch": lambda s: lambda x: s.sparse.bcoo_update_layout(x, n_batch=0),
    "joined": lambda s: lambda x: s.sparse.bcoo_concatenate([x, x], dimension=x.ndim - 2),
    "turned": lambda s: lambda x: s.sparse.bcoo_rev(x, dimensions=(x.ndim - 1,)),
    "turned rows": lambda s: lambda x: s.sparse.bcoo_rev(x, dimensions=(x.ndim - 2,)),
    "sliced": lambda s: lambda x: s.sparse.bcoo_dynamic_slice(x, [0] * x.ndim, [1] * x.ndim),
    "rows": lambda s: lambda x: s.sparse.BCSR.from_bcoo(x),
    "extracted": lambda s: lambda x: s.sparse.bcoo_extract(x, s.jnp.ones(x.shape)),
    "sparsified": lambda s: lambda x: s.sparse.sparsify(s.jnp.sin)(x),
}
_SYMBOLIC = {  # shape, elements, batch and dense dimensions
    "rows": (("a", 3), 4, 0, 0),
    "elements": (("a", 3), "b", 0, 0),
    "columns": ((3, "a"), "b", 0, 0),
    "stack": (("a", 4, 3), 5, 1, 0),
    "stack of elements": (("a", 4, 3), "b", 1, 0),
    "dense rows": (("a", 3), "b", 0, 1),
}


class _Sparse:
    def __init__(self, m):
        self.sparse, self.jnp = sparse_of(m), m.numpy
        self.export = importlib.import_module(f"{m.__name__}.export")

    def given(self, shape, nse, n_batch, n_dense, sizes):
        """Data and indices, as arrays or types, and the shape."""
        of = lambda n: sizes.get(n, n)
        shape, nse = tuple(map(of, shape)), of(nse)
        count = len(shape) - n_batch - n_dense
        data = (*shape[:n_batch], nse, *shape[len(shape) - n_dense :])
        return data, (*shape[:n_batch], nse, count), shape


@pytest.mark.parametrize("kind", _SYMBOLIC)
@pytest.mark.parametrize("name", _OF_A_MATRIX)
def test_symbolic_sizes(name, kind):
    """Types are upstream's, where it gives any."""

    def buffers(s, **sizes):
        data, indices, shape = s.given(*_SYMBOLIC[kind], sizes)
        fun = lambda x, i: _OF_A_MATRIX[name](s)(s.sparse.BCOO((x, i), shape=shape))
        return fun, data, indices

    def typed(m):
        s = _Sparse(m)
        a, b = s.export.symbolic_shape("a, b")
        fun, data, indices = buffers(s, a=a, b=b)
        struct = m.ShapeDtypeStruct
        args = struct(data, np.float32), struct(indices, np.int32)
        out = m.eval_shape(fun, *args)
        return [(str(x.shape), str(x.dtype)) for x in m.tree.leaves(out)]

    theirs, error = outcome(typed, jax)
    if error is None:  # with jax 0.10.2 in 87 cases of 102
        assert typed(minijax) == theirs


@pytest.mark.parametrize("name", ["by a dense one", "by a row", "turned", "turned rows"])
def test_exported_for_any_sizes(name):
    s = _Sparse(minijax)
    a, b = s.export.symbolic_shape("a, b")

    def fun(x, i, rows):
        out = _OF_A_MATRIX[name](s)(s.sparse.BCOO((x, i), shape=(rows.shape[0], 3)))
        return [each.todense() for each in (out if isinstance(out, tuple) else (out,))]

    struct = minijax.ShapeDtypeStruct
    types = struct((b,), np.float32), struct((b, 2), np.int32), struct((a,), np.float32)
    exported = s.export.export(minijax.jit(fun))(*types)
    data, indices = np.arange(1, 4, dtype=np.float32), np.array([[0, 1], [6, 2], [2, 0]], np.int32)
    theirs = _Sparse(jax)
    out = _OF_A_MATRIX[name](theirs)(theirs.sparse.BCOO((data, indices), shape=(7, 3)))
    found = exported.call(data, indices, np.zeros(7, np.float32))
    for x, y in zip(found, out if isinstance(out, tuple) else (out,), strict=True):
        np.testing.assert_array_equal(x, y.todense())
