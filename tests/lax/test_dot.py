"""Products: `dot_general` and its kin, against upstream: values, dtypes, jaxprs, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample, x64

pytestmark = [
    pytest.mark.both_ends,
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype"),
]

MATRICES = (((1,), (0,)), ((), ()))
SHAPES = {
    "matrices": ((2, 3), (3, 4), MATRICES),
    "vectors": ((3,), (3,), (((0,), (0,)), ((), ()))),
    "outer": ((2,), (3,), (((), ()), ((), ()))),
    "scalars": ((), (), (((), ()), ((), ()))),
    "batch": ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    "mixed order": ((2, 3, 4, 5, 6), (6, 2, 4, 3, 7), (((4, 1), (0, 3)), ((2, 0), (2, 1)))),
    "empty contraction": ((2, 0), (0, 4), MATRICES),
    "empty result": ((0, 3), (3, 4), MATRICES),
}
DTYPES = ["float32", "bfloat16", "float16", "int8", "int32", "uint8", "bool", "complex64",
          "float8_e4m3fn", "float8_e5m2", "int4"]  # fmt: skip


def outcome(f, *args):
    """The result of a call, or the class of the error."""
    try:
        return f(*args)
    except Exception as error:
        return type(error)


def same_outcome(ours, theirs, where=""):
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours is theirs, f"{where}: {ours} is not {theirs}"
    else:
        assert_same(ours, theirs, where=where)


def operands(name, dtype="float32", other=None):
    left, right, numbers = SHAPES[name]
    return sample(left, dtype, 1), sample(right, other or dtype, 2), numbers


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(name, dtype):
    x, y, numbers = operands(name, dtype)
    assert_same(minijax.lax.dot_general(x, y, numbers), jax.lax.dot_general(x, y, numbers))


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, "float64", "complex128", "int64"])
def test_preferred_element_type(dtype, enabled):
    with x64(enabled):
        x, y, numbers = operands("matrices", dtype)
        for preferred in ("float32", "bfloat16", "int32", "int8", "complex64", "bool", "float64"):
            same_outcome(
                *(
                    outcome(
                        lambda m=m, p=preferred: m.lax.dot_general(
                            x, y, numbers, preferred_element_type=p
                        )
                    )
                    for m in (minijax, jax)
                ),
                where=f"{dtype} {preferred}",
            )


def test_mixed_dtypes():
    names = [
        "bool", "int4", "uint4", "int8", "uint8", "int32", "uint32", "float8_e3m4",
        "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16", "float16", "float32",
        "complex64",
    ]  # fmt: skip
    for left in names:
        for right in names:
            struct = jax.ShapeDtypeStruct((2, 3), left), jax.ShapeDtypeStruct((3, 4), right)
            theirs = jax.eval_shape(lambda x, y: jax.lax.dot_general(x, y, MATRICES), *struct)
            ours = minijax.eval_shape(lambda x, y: minijax.lax.dot_general(x, y, MATRICES), *struct)
            assert str(ours.dtype) == str(theirs.dtype), (left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [("int32", "float32"), ("bfloat16", "float32"), ("bool", "float32"), ("complex64", "float32"),
     ("float8_e4m3fn", "float8_e5m2"), ("int4", "int8"), ("float16", "bfloat16")],
)  # fmt: skip
def test_mixed_values(left, right):
    x, y, numbers = operands("matrices", left, right)
    assert_same(minijax.lax.dot_general(x, y, numbers), jax.lax.dot_general(x, y, numbers))


def test_weak_types():
    numbers = SHAPES["scalars"][2]
    for args in ((1.0, 2), (1.0, np.float32(2)), (np.float32(1), np.float32(2))):
        assert_same(*(jit(m)(numbers, *args) for m in (minijax, jax)))


def jit(m):
    return lambda numbers, x, y: m.jit(lambda x, y: m.lax.dot_general(x, y, numbers))(x, y)


PRECISIONS = [
    None, "default", "high", "highest", "float32", "tensorfloat32", "bfloat16_3x", "fastest",
    ("high", "default"), "F32_F32_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F16_F16_F16",
    "F64_F64_F64", "TF32_TF32_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "DEFAULT", "no such", 3,
    ("high",), (None, None),
]  # fmt: skip


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_precision(precision, dtype):
    x, y, numbers = operands("matrices", dtype)
    for preferred in (None, "float32", "bfloat16"):
        same_outcome(
            *(
                outcome(lambda m=m, p=preferred: m.lax.dot_general(x, y, numbers, precision, p))
                for m in (minijax, jax)
            ),
            where=f"{precision} {preferred}",
        )


def test_precision_enums():
    for kind in ("Precision", "DotAlgorithmPreset"):
        ours, theirs = getattr(minijax.lax, kind), getattr(jax.lax, kind)
        assert [(p.name, p.value, repr(p), str(p)) for p in ours] == [
            (p.name, p.value, repr(p), str(p)) for p in theirs
        ]
    for name in (None, "default", "high", "highest", "float32", "fastest", "HIGH", "other", 1):
        values = [outcome(m.lax.Precision, name) for m in (minijax, jax)]
        assert str(values[0]) == str(values[1])
    for preset in jax.lax.DotAlgorithmPreset:
        ours = minijax.lax.DotAlgorithmPreset[preset.name]
        for attribute in ("supported_lhs_types", "supported_rhs_types", "accumulation_type"):
            assert getattr(ours, attribute) == getattr(preset, attribute)
        for pair in (("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16")):
            given = [np.dtype(jnp.dtype(name)) for name in pair]
            assert ours.supported_output_types(*given) == preset.supported_output_types(*given)
    arguments = (np.float32, np.float32, np.float32, 1, 2, 3, True)
    assert repr(minijax.lax.DotAlgorithm(*arguments)) == repr(jax.lax.DotAlgorithm(*arguments))


@pytest.mark.parametrize("precision", ["high", "bfloat16", "F32_F32_F32"])
def test_default_precision_setting(precision):
    x, y, numbers = operands("matrices")
    texts = []
    for m in (minijax, jax):
        with m.default_matmul_precision(precision):
            f = lambda x, y, m=m: m.lax.dot_general(x, y, numbers)
            texts.append(str(m.make_jaxpr(f)(x, y)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives(name):
    x, y, numbers = operands(name)

    def both(m):
        f = lambda x, y: m.lax.dot_general(x, y, numbers, "high")
        out, pullback = m.vjp(f, x, y)
        return out, pullback(m.numpy.ones_like(out)), m.jvp(f, (x, y), (x, y)), m.jvp(
            lambda y: f(x, y), (y,), (y,)
        )  # fmt: skip

    assert_same(both(minijax), both(jax))


@pytest.mark.parametrize("name", [n for n in SHAPES if "empty" not in n])
def test_jaxprs(name):
    x, y, numbers = operands(name)

    def texts(m):
        f = lambda x, y: m.lax.dot_general(x, y, numbers, ("high", "highest"))
        gradients = lambda x, y, ct: m.vjp(f, x, y)[1](ct)
        ct = np.ones(jax.eval_shape(f, x, y).shape if m is jax else f(x, y).shape, np.float32)
        return [
            str(m.make_jaxpr(f)(x, y)),
            str(m.make_jaxpr(lambda x, y: m.jvp(f, (x, y), (x, y)))(x, y)),
            str(m.make_jaxpr(gradients)(x, y, ct)),
        ]

    assert texts(minijax) == texts(jax)


@pytest.mark.parametrize(
    ("left", "right", "preferred"),
    [("bfloat16", "bfloat16", "float32"), ("float32", "float32", "bfloat16"),
     ("float32", "bfloat16", None), ("float32", "complex64", None)],
)  # fmt: skip
def test_derivatives_of_mixed_dtypes(left, right, preferred):
    x, y, numbers = operands("matrices", left, right)

    def both(m):
        f = lambda x, y: m.lax.dot_general(x, y, numbers, preferred_element_type=preferred)
        out, pullback = m.vjp(f, x, y)
        return pullback(m.numpy.ones_like(out))

    assert_same(both(minijax), both(jax))


@pytest.mark.parametrize("name", ["matrices", "batch", "mixed order", "outer"])
def test_batching(name):
    x, y, numbers = operands(name)
    places = (None, 0, 1, -1)
    for i in places:
        for j in places:
            if i is None and j is None:
                continue
            xs = x if i is None else np.stack([x, 2 * x], i)
            ys = y if j is None else np.stack([y, 2 * y], j)

            def both(m, i=i, j=j, xs=xs, ys=ys):
                f = m.vmap(lambda x, y: m.lax.dot_general(x, y, numbers), (i, j))
                return f(xs, ys), str(m.make_jaxpr(f)(xs, ys))

            (ours, our_text), (theirs, their_text) = both(minijax), both(jax)
            assert_same(ours, theirs, where=f"{i} {j}")
            assert our_text == their_text


def test_one_product_however_nested():
    x, y = sample((4, 5, 3), "float32"), sample((6, 3, 2), "float32")
    f = minijax.vmap(minijax.vmap(minijax.lax.dot, (None, 0)), (0, None))
    jaxpr = minijax.make_jaxpr(f)(x, y)
    assert [eqn.primitive.name for eqn in jaxpr.eqns].count("dot_general") == 1


@pytest.mark.parametrize(
    ("left", "right", "numbers"),
    [
        ((2, 3), (3, 4), (((1,), (1,)), ((), ()))),
        ((2, 3), (3, 4), (((1,), (0,)), ((0,), (0,)))),
        ((2, 3), (3, 4), (((1,), (0,)), ((0,), ()))),
        ((2, 3), (3, 4), (((1, 1), (0, 0)), ((), ()))),
        ((2, 3), (3, 4), (((2,), (0,)), ((), ()))),
        ((2, 3), (3, 4), (((-1,), (0,)), ((), ()))),
        ((2, 3), (3, 4), (((1, 0), (0,)), ((), ()))),
        ((2, 3), (3, 4), (((1,), (0,)), ((0,), (1,)))),
        ((), (3, 4), MATRICES),
        ((2, 3), (3, 4), (((1,), (0,)),)),
    ],
)
def test_errors(left, right, numbers):
    x, y = np.ones(left, np.float32), np.ones(right, np.float32)
    ours, theirs = (outcome(m.lax.dot_general, x, y, numbers) for m in (minijax, jax))
    assert ours is theirs


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((), (3,)),
     ((2, 3), (2, 3)), ((2, 3, 4), (2, 4, 5))],
)  # fmt: skip
def test_dot_and_batch_matmul(shapes):
    x, y = sample(shapes[0], "float32", 1), sample(shapes[1], "float32", 2)
    for name in ("dot", "batch_matmul"):
        ours, theirs = (outcome(getattr(m.lax, name), x, y) for m in (minijax, jax))
        same_outcome(ours, theirs, where=name)


# -- ragged and scaled products -------------------------------------------------------------------

RAGGED = {
    "basic": (((((1,), (1,)), ((), ())), (0,), (0,)), (6, 3), (2, 3, 4), [(2,)]),
    "batch": (((((2,), (2,)), ((0,), (0,))), (1,), (1,)), (7, 6, 3), (7, 2, 3, 4), [(2,), (7, 2)]),
    "two free": (((((2,), (1,)), ((), ())), (1,), (0,)), (2, 4, 5), (3, 5, 6), [(3,), (2, 3)]),
    "contracted": (((((0,), (0,)), ((), ())), (0,), ()), (6, 3), (6, 4), [(2,)]),
    "contracted two": (
        ((((0, 1), (0, 1)), ((), ())), (1,), ()), (2, 4, 5), (2, 4, 6), [(3,), (2, 3)]
    ),
    "contracted batch": (
        ((((1,), (2,)), ((0,), (0,))), (1,), ()), (7, 6, 3), (7, 4, 6), [(2,), (7, 2)]
    ),
    "ragged batch": (((((1,), (1,)), ((0,), (0,))), (0,), ()), (6, 3, 5), (6, 3, 4), [(2,)]),
}  # fmt: skip


def ragged(m, name):
    numbers = m.lax.RaggedDotDimensionNumbers(*RAGGED[name][0])
    return lambda x, y, sizes: m.lax.ragged_dot_general(x, y, sizes, numbers)


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_dot(name):
    _, left, right, sizes_shapes = RAGGED[name]
    x, y = sample(left, "float32", 1), sample(right, "float32", 2)
    for shape in sizes_shapes:
        sizes = np.random.RandomState(0).randint(0, 3, shape).astype(np.int32)
        assert_same(ragged(minijax, name)(x, y, sizes), ragged(jax, name)(x, y, sizes))
        f = ragged(minijax, name)
        out, pullback = minijax.vjp(lambda x, y: f(x, y, sizes), x, y)
        ct = sample(out.shape, "float32", 3)
        gradients = pullback(ct)
        for place, gradient in enumerate(gradients):
            moved = [x, y]
            moved[place] = sample(moved[place].shape, "float32", 4)
            expected = np.vdot(ragged(jax, name)(*moved, sizes), ct)
            np.testing.assert_allclose(np.vdot(gradient, moved[place]), expected, rtol=1e-4)
        for dims in [(0, None, None), (None, 1, None), (None, None, 0), (1, 0, 0)]:
            args = [
                a if d is None else np.stack([a, np.roll(a, 1, -1)], d)
                for a, d in zip((x, y, sizes), dims, strict=True)
            ]
            each = [
                ragged(jax, name)(
                    *(a if d is None else np.take(a, i, d) for a, d in zip(args, dims, strict=True))
                )
                for i in range(2)
            ]
            assert_same(minijax.vmap(f, dims)(*args), jnp.stack(each), where=str(dims))


def test_scaled_dot():
    x, y = sample((2, 6, 64), "float8_e4m3fn", 1), sample((2, 64, 4), "float8_e4m3fn", 2)
    scales = [
        (2.0 ** sample(shape, "int32", 3)).astype(jnp.float8_e8m0fnu)
        for shape in ((2, 6, 2), (2, 2, 4))
    ]
    for preferred in (None, "float32"):
        ours, theirs = (
            m.lax.scaled_dot(
                x, y, lhs_scale=scales[0], rhs_scale=scales[1], preferred_element_type=preferred
            )
            for m in (minijax, jax)
        )
        assert_same(ours, theirs)
    assert_same(*(m.lax.scaled_dot(x[0], y[0]) for m in (minijax, jax)))
    assert_same(*(m.vmap(m.lax.scaled_dot)(x, y) for m in (minijax, jax)))
    for shapes in (((6, 3), (2, 4)), ((5, 2), (2, 4)), ((6, 64), (64, 4))):
        left, right = (np.ones(shape, np.float32) for shape in shapes)
        ours, theirs = (
            outcome(lambda m=m: m.lax.scaled_dot(x[0], y[0], lhs_scale=left, rhs_scale=right))
            for m in (minijax, jax)
        )
        assert ours is theirs
