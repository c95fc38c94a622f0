"""What stands for `jax._src.lax_reference` and `lax_test_util`: NumPy's answers, and minijax's.

Each operation of `lax` must give what its reference does: that proves both. Where results are made
of shapes, slices and sums, upstream's `lax` must give it too.
"""

import inspect
import sys

import jax
import ml_dtypes
import numpy as np
import pytest
from jax._src import lax_reference as upstream_reference
from jax._src.internal_test_util import lax_test_util as upstream_operations

import minijax
from tests.harness.differential import sample, x64

pytest.importorskip("absl")
pytest.importorskip("scipy")

from minijax.jax import modules
from minijax.jax.testing import checks, operations, reference, reference_shapes, reference_windows

BF16, F8, I4, U4 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4
F16, F32, C64, I8, I32, U8, U32 = (
    np.float16, np.float32, np.complex64, np.int8, np.int32, np.uint8, np.uint32,
)  # fmt: skip
WIDE = {F32: np.float64, C64: np.complex128, I32: np.int64, U32: np.uint64}
MODULES = (reference, reference_shapes, reference_windows)
OPS = operations.lax_ops()
REDUCERS = operations.lax_reduce_ops()


def reference_of(name):
    return next(vars(module)[name] for module in MODULES if name in module.__all__)


def near(found, wanted, tol=None, where=""):
    """Equal dtypes and shapes, and values within the tolerance of the dtype."""
    found = np.asarray(found)
    assert isinstance(wanted, np.ndarray), where
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), where
    bound = checks.tolerance(found.dtype, tol)
    checks._assert_numpy_allclose(found, wanted, atol=bound, rtol=bound, err_msg=where)


def draw(record, dtype, shapes, seed):
    make = record.rng_factory(np.random.RandomState(seed))
    return [make(shape, dtype) for shape in shapes]


# Operations on elements.


def check_record(record, dtype, shapes=((3, 40),)):
    function, wanted = getattr(minijax.lax, record.op), getattr(reference, record.op)
    for seed, shape in enumerate(shapes):
        args = draw(record, dtype, [shape] * record.nargs, seed)
        where = f"{record.op} of {np.dtype(dtype).name}{shape}"
        near(function(*args), wanted(*args), record.tol, where)


@pytest.mark.parametrize("record", OPS, ids=lambda record: record.op)
def test_elements(record):
    for dtype in record.dtypes:
        check_record(record, dtype)
    check_record(record, record.dtypes[-1], [(), (0, 2)])


@pytest.mark.parametrize("record", OPS, ids=lambda record: record.op)
def test_elements_of_64_bits(record):
    with x64(True):
        for dtype in filter(None, map(WIDE.get, record.dtypes)):
            check_record(record, dtype)


NARROW = [
    *((name, (I4, U4)) for name in ("add", "sub", "mul", "max", "min", "div", "rem", "eq", "lt")),
    *((name, (I4, U4)) for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")),
    *((name, (I4, U4)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *((name, (F8,)) for name in ("add", "mul", "max", "eq", "lt")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtypes"), NARROW, ids=lambda x: x if isinstance(x, str) else "")
def test_narrow_elements(name, dtypes):
    for dtype in dtypes:
        numbers = np.arange(-8, 8).astype(dtype)
        args = [np.repeat(numbers, 16), np.tile(numbers, 16)]
        near(getattr(minijax.lax, name)(*args), getattr(reference, name)(*args), where=name)


EDGES = np.array([-128, -127, -3, -1, 0, 1, 2, 8, 9, 127], I8)
INTEGERS = [
    "div", "rem", "mul", "mulhi", "shift_left", "shift_right_arithmetic", "shift_right_logical",
]  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", [I8, U8, I32, U32])
def test_edges_of_integers(name, dtype):
    """Division by zero, of the lowest by -1; shifts by more bits than there are, and by less than 0."""
    edges = EDGES.view(U8) if dtype == U8 else EDGES.astype(dtype)
    if dtype == I32:
        edges[0] = np.iinfo(I32).min
    args = np.repeat(edges, 10), np.tile(edges, 10)
    found = getattr(reference, name)(*args)
    near(getattr(minijax.lax, name)(*args), found)
    near(getattr(jax.lax, name)(*args), found)


SPECIAL = [-np.inf, -2.5, -1.5, -0.5, -0.0, 0.0, 0.49999997, 0.5, 1.5, 2.5, np.inf, np.nan]


@pytest.mark.parametrize("name", ["round", "sign", "floor", "ceil", "logistic", "is_finite", "max"])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_edges_of_floats(name, dtype):
    x = np.array(SPECIAL, dtype)
    args = (x, x[::-1]) if name == "max" else (x,)
    found = getattr(reference, name)(*args)
    near(getattr(minijax.lax, name)(*args), found)
    near(getattr(jax.lax, name)(*args), found)
    if name in ("sign", "round"):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.asarray(jax.lax.sign(x))))


def test_operands():
    """Python's numbers take the arrays' dtype; the options of `lax` are there."""
    near(minijax.numpy.ones(2), reference.mul(np.full(2, 2, F32), 0.5))
    near(minijax.numpy.int32(-3), np.asarray(reference.div(7, np.int32(-2))))
    near(
        minijax.lax.round(np.array([0.5, 1.5], F32), 1),
        reference.round(np.array([0.5, 1.5], F32), 1),
    )
    x, y = np.array([100, -7], I8), np.array([3, 5], I8)
    for out in (I32, F32, BF16, C64):
        near(minijax.lax.mul(x, y, out_dtype=out), reference.mul(x, y, out_dtype=out))
    near(minijax.lax.pow(np.full(3, 2, BF16), y[1]), reference.pow(np.full(3, 2, BF16), y[1]))
    low, high = np.float32(-1), np.float32(1)
    x = sample((3, 4), F32)
    near(minijax.lax.clamp(low, x, high), reference.clamp(low, x, high))


def test_without_scipy(monkeypatch):
    """Only special functions need SciPy, and say so."""
    reference._special.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    near(np.zeros(2, F32), reference.sin(np.zeros(2, F32)))
    with pytest.raises(ImportError, match="pip install scipy"):
        reference.erf(np.zeros(2, F32))


# Conversions.

KINDS = (np.bool_, I8, U8, I32, U32, I4, U4, F16, BF16, F32, F8, C64)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda dtype: np.dtype(dtype).name)
def test_conversions(dtype):
    for kind in KINDS:
        if np.dtype(dtype) == C64 and np.dtype(kind) != C64:
            continue  # warns
        x = sample((40,), dtype)
        if np.dtype(dtype) == F32:
            x[:9] = [300, -300, 1e30, -1e30, np.inf, -np.inf, np.nan, 3.7, -3.7]
            x = x[7:] if np.dtype(kind).kind == "V" else x  # which of XLA's may be anything
        near(
            minijax.lax.convert_element_type(x, kind),
            reference_shapes.convert_element_type(x, kind),
        )


BITS = (I8, U8, I4, U4, np.int16, F16, BF16, I32, F32, F8)


@pytest.mark.parametrize("dtype", BITS, ids=lambda dtype: np.dtype(dtype).name)
def test_bits(dtype):
    width = reference_shapes.bit_width
    for kind in BITS:
        wider = max(width(kind) // width(dtype), 1)
        x = sample((3, wider) if wider > 1 else (3, 2), dtype)
        found = reference_shapes.bitcast_convert_type(x, kind)
        ours = np.asarray(minijax.lax.bitcast_convert_type(x, kind))
        assert (ours.dtype, ours.shape) == (found.dtype, found.shape)
        np.testing.assert_array_equal(ours.view(np.uint8), found.view(np.uint8))


# Everything else: `(name, arguments, options)`, the same for `lax` and the reference.


def floats(*shape, dtype=F32, seed=0):
    return sample(shape, dtype, seed)


X, V = floats(3, 4), np.array([3, 1, np.nan, 3, -np.inf, 1], F32)
ROWS = [
    ("broadcast", (X, (2, 1))), ("broadcast", (X, ())),
    ("broadcast_in_dim", (X, (2, 3, 4), (1, 2))), ("broadcast_in_dim", (X[:1], (3, 2, 4), (0, 2))),
    ("reshape", (X, (2, 6))), ("reshape", (X, (12,), (1, 0))),
    ("transpose", (floats(2, 3, 4), (2, 0, 1))), ("squeeze", (floats(1, 3, 1), (0,))),
    ("squeeze", (floats(1, 3, 1), (-1, 0))), ("rev", (X, (0, 1))), ("rev", (X, ())),
    ("concatenate", ([X, X[:, :1], X], 1)), ("concatenate", ([X, X[:0]], 0)),
    ("select", (X > 0, X, -X)), ("select", (np.True_, X, -X)),
    ("slice", (X, (1, 0), (3, 4))), ("slice", (X, (0, 1), (3, 4), (2, 2))),
    ("slice", (X[0, 0], (), ())), ("dynamic_slice", (X[0, 0], (), ())),
    ("dynamic_update_slice", (X[0, 0], X[1, 1], ())), ("pad", (X[0, 0], np.float32(9), ())),
    ("dynamic_slice", (X, (1, 2), (2, 2))), ("dynamic_slice", (X, (9, -3), (2, 2))),
    ("dynamic_slice", (X, (-9, 1), (1, 3))),
    ("dynamic_update_slice", (X, -X[:2, :2], (1, 1))),
    ("dynamic_update_slice", (X, -X[:2, :2], (9, -1))),
    ("pad", (X, np.float32(9), ((1, 2, 0), (0, 1, 2)))),
    ("pad", (X, np.float32(9), ((-1, 2, 1), (-1, -2, 1)))),
    ("pad", (X, np.float32(9), ((-2, -1, 0), (0, 0, 0)))),
    ("pad", (X[:0], np.float32(9), ((1, 1, 3), (0, -4, 0)))),
    ("sort", (V,)), ("sort", (X, 0)), ("sort", (V.astype(BF16),)), ("sort", (floats(9, dtype=C64),)),
    ("sort", (floats(4, 3, dtype=I8), 0)), ("sort", (floats(9, dtype=np.bool_),)),
    ("sort", ((np.array([2, 1, 2, 1], I32), np.array([3, 2, 1, 0], I32), X[0]),), {"num_keys": 2}),
    ("sort_key_val", (V, np.arange(6, dtype=I32))), ("sort_key_val", (X, -X, 0)),
    ("top_k", (V, 4)), ("top_k", (X, 2)), ("top_k", (X, 1), {"axis": 0}),
    ("top_k", (np.array([2, 255, 0, 255, 2], U8), 5)), ("top_k", (np.array([2, -128, 2], I8), 3)),
]  # fmt: skip


def convolution(shape, kernel, strides, padding, *rest, dtype=F32, **options):
    lhs, rhs = sample(shape, dtype, 1), sample(kernel, dtype, 2)
    return ("conv_general_dilated", (lhs, rhs, strides, padding, *rest), options)


NHWC = ("NHWC", "HWIO", "NHWC")
ROWS += [
    ("dot", (X, X.T)), ("dot", (X[0], X[1])), ("dot", (X, X[0])),
    ("dot", (floats(2, 3, dtype=I8), floats(3, 2, dtype=I8))),
    ("dot", (floats(2, 3, dtype=I8), floats(3, 2, dtype=I8)), {"preferred_element_type": I32}),
    ("dot", (floats(2, 3, dtype=C64), floats(3, 2, dtype=C64))),
    ("dot", (floats(2, 3, dtype=I4), floats(3, 2, dtype=I4))),
    ("dot", (np.full((2, 3), 200, U8), np.full((3, 2), 200, U8)), {"preferred_element_type": F32}),
    ("dot", (floats(2, 3, dtype=BF16), floats(3, 2, dtype=BF16)), {"preferred_element_type": F32}),
    ("dot_general", (floats(5, 2, 3), floats(3, 5, 4), (((2,), (0,)), ((0,), (1,))))),
    ("dot_general", (floats(5, 2, 3), floats(3, 5, 4), (((0, 2), (1, 0)), ((), ())))),
    ("dot_general", (floats(5, 2), floats(5, 2), (((), ()), ((0, 1), (0, 1))))),
    ("dot_general", (floats(0, 2), floats(0, 3), (((0,), (0,)), ((), ())))),
    ("ragged_dot", (floats(5, 3), floats(2, 3, 4), np.array([2, 3], I32))),
    ("ragged_dot", (floats(5, 3), floats(3, 3, 4), np.array([2, 0, 1], I32))),
    ("conv", (floats(2, 3, 5, 6), floats(4, 3, 2, 3), (1, 2), "SAME")),
    ("conv", (floats(2, 3, 5), floats(4, 3, 2), (2,), "VALID")),
    ("conv", (floats(2, 3), floats(4, 3), (), "VALID")),
    ("conv_with_general_padding",
     (floats(1, 2, 5, 4), floats(3, 2, 2, 2), (1, 2), [(1, 0), (-1, 2)], (2, 1), (1, 2))),
    convolution((2, 5, 6, 3), (2, 3, 3, 4), (1, 2), "SAME", (1, 1), (2, 1), NHWC),
    convolution((2, 5, 6, 3), (2, 3, 3, 4), (2, 1), "SAME_LOWER", None, None, NHWC),
    convolution((2, 5, 6, 3), (2, 3, 3, 4), (1, 1), [(3, -1), (0, 2)], (3, 2), (1, 2), NHWC),
    convolution((2, 5, 6, 3), (3, 2, 3, 4), (2, 1), "VALID", None, None, ("NHWC", "WHIO", "NWHC")),
    convolution((2, 4, 5), (6, 2, 3), (1,), "VALID", feature_group_count=2),
    convolution((4, 3, 5), (6, 3, 3), (1,), "VALID", batch_group_count=2),
    convolution((1, 1, 3), (1, 1, 5), (1,), "VALID"),
    convolution((0, 1, 3), (2, 1, 2), (1,), "SAME"),
    convolution((2, 2, 7), (3, 2, 2), (2,), "SAME", dtype=C64),
    convolution((2, 2, 7), (3, 2, 2), (2,), "SAME", dtype=I32),
    convolution((2, 2, 7), (3, 2, 2), (2,), "SAME", dtype=BF16),
]  # fmt: skip


def named(row):
    return row[0]


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_shapes_and_contractions(row):
    name, args, *options = row
    options = dict(*options)
    wanted = minijax.tree_util.tree_leaves(reference_of(name)(*args, **options))
    for lax in (minijax.lax, jax.lax):
        found = minijax.tree_util.tree_leaves(getattr(lax, name)(*args, **options))
        for one, other in zip(found, wanted, strict=True):
            near(one, other, {F32: 2e-6, C64: 2e-6}, where=f"{name} of {lax.__name__}")


def test_dimension_numbers():
    """As letters and as the axes that `lax` makes of them."""
    letters = ("NHWC", "WHIO", "NWHC")
    name, args, _ = convolution((2, 5, 6, 3), (3, 2, 3, 4), (2, 1), "VALID", None, None, letters)
    axes = minijax.lax.conv_dimension_numbers(args[0].shape, args[1].shape, letters)
    found = reference_windows.conv_general_dilated(*args[:-1], axes)
    np.testing.assert_array_equal(found, reference_windows.conv_general_dilated(*args))
    near(minijax.lax.conv_general_dilated(*args[:-1], axes), found, 2e-6, name)


# Reductions and windows.


def reducer_id(record):
    return f"{record.op.__name__}-{record.init_val}"


@pytest.mark.parametrize("record", REDUCERS, ids=reducer_id)
def test_reductions(record):
    for dtype in record.dtypes:
        x = sample((3, 4, 5), dtype)
        for axes in ((2, 0), (0, 1, 2)) if dtype in (F32, BF16, np.bool_) else ((1,),):
            init = np.asarray(record.init_val, dtype)
            wanted = reference_windows.reduce(x, init, record.reference_op, axes)
            tol = {F32: 1e-5, C64: 1e-5, BF16: 5e-2, F16: 1e-2}
            near(minijax.lax.reduce(x, init, record.op, axes), wanted, tol)
            general = reference_windows.reduce(
                x, init, lambda a, b: record.reference_op(a, b), axes
            )
            near(general, wanted, {**tol, BF16: 0.2, F16: 2e-2})
    jaxpr = minijax.make_jaxpr(lambda x: minijax.lax.reduce(x, init, record.op, (0,)))(x)
    assert [eqn.primitive for eqn in jaxpr.eqns] == [record.primitive]


@pytest.mark.parametrize(
    "record", operations.lax_named_reduce_ops(), ids=lambda record: record.op.__name__
)
def test_named_reductions(record):
    upstream = getattr(jax.lax, record.op.__name__)
    for dtype in record.dtypes:
        x = sample((3, 4, 5), dtype)
        for axes in ((1,), (0, 2), ()) if dtype in (BF16, I32) else ((2, 1),):
            wanted = record.reference_op(x, axes)
            for op in (record.op, upstream):
                near(op(x, axes), wanted, {F32: 1e-5, C64: 1e-5, BF16: 5e-2, F16: 1e-2})


def test_reductions_in_order():
    """A function that is not commutative, of NumPy's arrays or of upstream's; and without elements."""
    x = floats(5, 3)
    later = lambda a, b: b + 0 * a
    np.testing.assert_array_equal(reference_windows.reduce(x, 0, later, (0,)), x[-1])
    product = reference_windows.reduce(x, 1, lambda a, b: jax.lax.mul(a, b), (0,))
    near(jax.lax.reduce(x, np.float32(1), jax.lax.mul, (0,)), product)
    near(np.full(3, 7, F32), reference_windows.reduce(x[:0], 7.0, later, (0,)))
    near(np.asarray(x.sum(0)), reference_windows.sum(x, 0))


WINDOWS = [
    ((4, 6), (2, 3), (1, 2), "VALID"), ((4, 6), (2, 3), (2, 2), "SAME"),
    ((4, 6), (2, 2), (1, 1), [(1, 0), (0, 3)], (2, 1), (1, 2)), ((5,), (1,), (2,), "SAME_LOWER"),
    ((3,), (5,), (1,), "VALID"), ((2, 3, 4), (1, 2, 2), (1, 1, 1), "VALID", (1, 1, 1), (1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "window", "strides", "padding", "dilations"),
                         [(*row[:4], row[4:]) for row in WINDOWS])  # fmt: skip
@pytest.mark.parametrize("name", ["add", "max", "min", "mul"])
def test_windows(name, shape, window, strides, padding, dilations):
    identity = {"add": 0, "mul": 1, "max": -np.inf, "min": np.inf}[name]
    for dtype in (F32, BF16) if np.isinf(identity) else (F32, I32):
        x, init = sample(shape, dtype), np.asarray(identity, dtype)
        rest = (window, strides, padding, *dilations)
        wanted = reference_windows.reduce_window(x, init, getattr(reference, name), *rest)
        for lax in (minijax.lax, jax.lax):
            near(lax.reduce_window(x, init, getattr(lax, name), *rest), wanted, {F32: 2e-6})


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", "same", [(1, 2), (0, -1)]])
def test_pads(padding):
    args = ((5, 8), (2, 3), (2, 3), padding)
    found = reference_windows.padtype_to_pads(*args)
    if isinstance(padding, str):
        assert found == [
            tuple(map(int, pair)) for pair in upstream_reference.padtype_to_pads(*args)
        ]
    with pytest.raises(ValueError, match="NONE"):
        reference_windows.padtype_to_pads(*args[:3], "NONE")


# Names, records, batches.


def test_names():
    """Every function of upstream's references is there, and is one of `lax` but for `sum`."""
    theirs = {
        name for name in dir(upstream_reference)
        if name[0] != "_" and callable(getattr(upstream_reference, name)) and hasattr(minijax.lax, name)
    }  # fmt: skip
    ours = {name for module in MODULES for name in module.__all__}
    assert theirs <= ours
    assert {name for name in ours if not hasattr(minijax.lax, name)} == {"sum"}
    for name in ("OpRecord", "NamedReducerOpRecord", "ReducerOpRecord"):
        assert getattr(upstream_operations, name)._fields == getattr(operations, name)._fields
    groups = [name for name in operations.__all__ if name.endswith("_dtypes")]
    for name in groups:
        kinds = getattr(operations, name)
        assert list(map(np.dtype, kinds)) == list(map(np.dtype, getattr(upstream_operations, name)))
    assert operations.python_scalar_types == upstream_operations.python_scalar_types
    for name in ("op_record", "add_bdim", "all_bdims", "slicer", "args_slicer"):
        mine, other = (inspect.signature(vars(m)[name]) for m in (operations, upstream_operations))
        assert list(mine.parameters) == list(other.parameters)


def test_records():
    theirs = {
        record.op: record
        for record in upstream_operations.lax_ops()
        if hasattr(minijax.lax, record.op)  # newer upstreams have more
    }
    ours = {record.op: record for record in OPS}
    assert set(theirs) <= set(ours)
    for name, record in theirs.items():
        assert ours[name].nargs == record.nargs, name
        for dtype in ours[name].dtypes:
            shapes = [jax.ShapeDtypeStruct((), dtype)] * record.nargs
            jax.eval_shape(getattr(jax.lax, name), *shapes)
    assert [record.op for record in operations.lax_out_dtype_ops()] == ["mul"]
    for group in operations.compatible_shapes:
        np.broadcast_shapes(*group)


SHAPES = [(), (2,), (3, 2), (1, 2, 3)]


@pytest.mark.parametrize("shapes", [(), *[(s,) for s in SHAPES], ((2,), (3, 2)), ((), (2,), (1,))])
def test_batches(shapes):
    dims = list(operations.all_bdims(*shapes))
    assert dims == list(upstream_operations.all_bdims(*shapes))
    for choice in dims:
        wide = [operations.add_bdim(5, dim, s) for dim, s in zip(choice, shapes)]
        assert wide == [upstream_operations.add_bdim(5, dim, s) for dim, s in zip(choice, shapes)]
        arrays = [sample(shape, F32) for shape in wide]
        for i in (0, 4):
            found = operations.args_slicer(arrays, choice)(i)
            others = upstream_operations.args_slicer(arrays, choice)(i)
            for one, other in zip(found, others, strict=True):
                np.testing.assert_array_equal(one, other)


def test_modules():
    assert modules.modules_of("jax._src.lax_reference") == MODULES
    assert modules.modules_of("jax._src.internal_test_util.lax_test_util") == (operations,)
