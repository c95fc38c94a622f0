"""Convolutions and Fourier transforms, against upstream: values, jaxprs, derivatives, errors."""

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample, x64

pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")

NHWC = ("NHWC", "HWIO", "NHWC")
LHS, RHS = (2, 4, 7, 8), (6, 4, 3, 2)
CASES = {
    "same": (LHS, RHS, (1, 1), "SAME", {}),
    "valid strided": (LHS, RHS, (2, 3), "VALID", {}),
    "same lower": (LHS, RHS, (1, 2), "SAME_LOWER", {}),
    "dilated": (LHS, RHS, (2, 3), [(1, 2), (3, 0)], {"lhs_dilation": (2, 1), "rhs_dilation": (1, 3)}),
    "negative padding": (LHS, RHS, (2, 1), [(-1, 2), (3, -2)], {}),
    "nhwc": ((2, 7, 8, 4), (3, 2, 4, 6), (2, 1), "SAME", {"dimension_numbers": NHWC}),
    "odd layout": (
        (2, 8, 7, 4), (2, 3, 6, 4), (1, 2), "SAME", {"dimension_numbers": ("NWHC", "WHOI", "CHWN")}
    ),
    "feature groups": ((2, 8, 7, 8), RHS, (2, 3), "SAME", {"feature_group_count": 2}),
    "depthwise": (LHS, (8, 1, 3, 2), (1, 1), "SAME", {"feature_group_count": 4}),
    "feature groups nhwc": (
        (2, 7, 8, 8), (3, 2, 4, 6), (2, 1), "SAME",
        {"feature_group_count": 2, "dimension_numbers": NHWC},
    ),
    "batch groups": (LHS, RHS, (2, 3), "SAME", {"batch_group_count": 2}),
    "batch groups nhwc": (
        (2, 7, 8, 4), (3, 2, 4, 6), (2, 1), "SAME",
        {"batch_group_count": 2, "dimension_numbers": NHWC},
    ),
    "one dimension": ((2, 3, 9), (4, 3, 3), (2,), "SAME", {}),
    "three dimensions": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 1), (1, 2, 1), "SAME", {}),
    "no dimension": ((2, 3), (4, 3), (), (), {}),
    "empty batch": ((0, 4, 7, 8), RHS, (1, 1), "SAME", {}),
    "empty space": ((2, 4, 0, 8), RHS, (1, 1), "SAME", {}),
    "empty result": ((2, 4, 2, 8), RHS, (1, 1), "VALID", {}),
}  # fmt: skip


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return type(error)


def same_outcome(ours, theirs, where=""):
    if isinstance(theirs, type) or isinstance(ours, type):
        assert issubclass(ours, theirs), f"{where}: {ours} is not {theirs}"
    else:
        assert_same(ours, theirs, where=where)


def arguments(name, dtype="float32"):
    left, right, *_ = CASES[name]
    return sample(left, dtype, 1), sample(right, dtype, 2)


def convolution(m, name, **more):
    *_, strides, padding, options = CASES[name]
    return lambda x, y: m.lax.conv_general_dilated(x, y, strides, padding, **options, **more)


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    x, y = arguments(name)

    def both(m):
        f = convolution(m, name)
        out, pullback = m.vjp(f, x, y)
        return out, pullback(m.numpy.cos(out)), m.jvp(f, (x, y), (x, y))

    assert_same(both(minijax), both(jax))


@pytest.mark.parametrize("name", CASES)
def test_jaxprs(name):
    x, y = arguments(name)

    def texts(m):
        f = convolution(m, name, precision="high")
        gradients = lambda x, y, ct: m.vjp(f, x, y)[1](ct)
        ct = np.ones(f(x, y).shape, np.float32)
        return str(m.make_jaxpr(f)(x, y)), str(m.make_jaxpr(gradients)(x, y, ct))

    ours, theirs = texts(minijax), texts(jax)
    assert ours[0] == theirs[0]
    if "empty" not in name:  # zeros stay symbolic here
        assert ours[1] == theirs[1]


@pytest.mark.parametrize(
    "name", ["same", "nhwc", "feature groups", "batch groups", "feature groups nhwc",
             "batch groups nhwc", "odd layout"],
)  # fmt: skip
def test_batching(name):
    x, y = arguments(name)
    for i in (None, 0, 2, -1):
        for j in (None, 0, 1, -1):
            if i is None and j is None:
                continue
            xs = x if i is None else np.stack([x, 2 * x, -x], i)
            ys = y if j is None else np.stack([y, 2 * y, -y], j)

            def both(m, i=i, j=j, xs=xs, ys=ys):
                f = m.vmap(convolution(m, name), (i, j))
                return f(xs, ys), str(m.make_jaxpr(f)(xs, ys))

            (ours, our_text), (theirs, their_text) = both(minijax), both(jax)
            assert_same(ours, theirs, where=f"{i} {j}")
            assert our_text == their_text


def test_batch_of_nothing():
    x, y = arguments("feature groups")
    for i, j in ((0, 0), (0, None), (None, 0)):
        xs = x if i is None else np.zeros((0, *x.shape), x.dtype)
        ys = y if j is None else np.zeros((0, *y.shape), y.dtype)
        ours, theirs = (
            m.vmap(convolution(m, "feature groups"), (i, j))(xs, ys) for m in (minijax, jax)
        )
        assert_same(ours, theirs)


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float16", "int32", "int8", "uint8", "bool", "complex64", "int4",
     "float8_e4m3fn", "float64", "complex128"],
)  # fmt: skip
def test_dtypes(dtype):
    with x64("64" in dtype or "128" in dtype):
        x, y = arguments("same", dtype)
        for preferred in (None, "float32", "int32", "bfloat16", "complex64", "float64", "int16"):
            same_outcome(
                *(
                    outcome(convolution(m, "same", preferred_element_type=preferred), x, y)
                    for m in (minijax, jax)
                ),
                where=f"{dtype} {preferred}",
            )


def test_derivatives_with_preferred_element_type():
    for name in ("same", "feature groups", "batch groups"):
        x, y = arguments(name, "bfloat16")

        def both(m, name=name, x=x, y=y):
            f = convolution(m, name, preferred_element_type="float32")
            out, pullback = m.vjp(f, x, y)
            return pullback(m.numpy.ones_like(out))

        assert_same(both(minijax), both(jax), where=name)


def test_complex_derivatives():
    x, y = arguments("valid strided", "complex64")

    def both(m):
        out, pullback = m.vjp(convolution(m, "valid strided"), x, y)
        return pullback(out)

    assert_same(both(minijax), both(jax))


def test_second_derivatives():
    x, y = arguments("dilated")

    def both(m):
        f = convolution(m, "dilated")
        loss = lambda y: m.numpy.sum(m.numpy.sin(f(x, y)))
        return m.grad(lambda y: m.numpy.sum(m.lax.square(m.grad(loss)(y))))(y)

    assert_same(both(minijax), both(jax))


BAD = {
    "rank": ((2, 4, 9), RHS, (1, 1), "SAME", {}),
    "strides": (LHS, RHS, (1,), "SAME", {}),
    "features": ((2, 5, 7, 8), RHS, (1, 1), "SAME", {}),
    "pads": (LHS, RHS, (1, 1), [(0, 0)], {}),
    "pad name": (LHS, RHS, (1, 1), "OTHER", {}),
    "pad none": (LHS, RHS, (1, 1), None, {}),
    "pad ints": (LHS, RHS, (1, 1), (1, 1), {}),
    "pad triple": (LHS, RHS, (1, 1), ((1, 2, 3), (1, 1)), {}),
    "pad away": (LHS, RHS, (1, 1), ((-5, -5), (0, 0)), {}),
    "named with dilation": (LHS, RHS, (1, 1), "SAME", {"lhs_dilation": (2, 1)}),
    "no window dilation": (LHS, RHS, (1, 1), "VALID", {"rhs_dilation": (0, 1)}),
    "no groups": (LHS, RHS, (1, 1), "SAME", {"feature_group_count": 0}),
    "groups of features": (LHS, RHS, (1, 1), "SAME", {"feature_group_count": 3}),
    "groups of outputs": ((2, 8, 7, 8), (5, 4, 3, 2), (1, 1), "SAME", {"feature_group_count": 2}),
    "groups of batch": (LHS, RHS, (1, 1), "SAME", {"batch_group_count": 3}),
    "both groups": (
        (2, 8, 7, 8), RHS, (1, 1), "SAME", {"feature_group_count": 2, "batch_group_count": 2}
    ),
    "two specs": (LHS, RHS, (1, 1), "SAME", {"dimension_numbers": ("NCHW", "OIHW")}),
    "letters": (LHS, RHS, (1, 1), "SAME", {"dimension_numbers": ("NCHX", "OIHW", "NCHW")}),
    "short spec": (LHS, RHS, (1, 1), "SAME", {"dimension_numbers": ("NCHW", "OIHW", "NCH")}),
    "one string": (LHS, RHS, (1, 1), "SAME", {"dimension_numbers": "NCHW"}),
    "precision": (LHS, RHS, (1, 1), "SAME", {"precision": "no such"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    left, right, strides, padding, options = BAD[name]
    x, y = np.ones(left, np.float32), np.ones(right, np.float32)
    ours, theirs = (
        outcome(m.lax.conv_general_dilated, x, y, strides, padding, **options)
        for m in (minijax, jax)
    )
    assert isinstance(theirs, type)
    assert ours is theirs


def test_different_dtypes_are_refused():
    x, y = np.ones(LHS, np.float32), np.ones(RHS, np.int32)
    ours, theirs = (outcome(m.lax.conv, x, y, (1, 1), "SAME") for m in (minijax, jax))
    assert ours is theirs is TypeError


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (0, 1))])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
def test_conv_transpose(padding, strides):
    x = sample((2, 5, 6, 4), "float32", 1)
    for options in (
        {},
        {"rhs_dilation": (2, 3)},
        {"transpose_kernel": True},
        {"use_consistent_padding": True},
        {"rhs_dilation": (2, 1), "use_consistent_padding": True, "transpose_kernel": True},
    ):
        shape = (3, 2, 6, 4) if "transpose_kernel" in options else (3, 2, 4, 6)
        y = sample(shape, "float32", 2)
        ours, theirs = (
            m.lax.conv_transpose(x, y, strides, padding, **options) for m in (minijax, jax)
        )
        assert_same(ours, theirs, where=str(options))


def test_conv_transpose_layouts():
    for left, right, strides, numbers in (
        ((2, 5, 4), (3, 4, 6), (2,), None),
        ((2, 3, 4, 5, 4), (3, 3, 3, 4, 6), (2, 1, 1), None),
        ((2, 4), (4, 6), (), None),
        (LHS, RHS, (2, 3), ("NCHW", "OIHW", "NCHW")),
        ((2, 2, 2, 2, 2, 4), (1, 1, 1, 1, 4, 6), (1,) * 4, None),
    ):
        x, y = sample(left, "float32", 1), sample(right, "float32", 2)
        ours, theirs = (
            outcome(m.lax.conv_transpose, x, y, strides, "SAME", dimension_numbers=numbers)
            for m in (minijax, jax)
        )
        same_outcome(ours, theirs, where=str(left))


def test_other_functions():
    x, y = arguments("same")
    dilations = (2, 1), (1, 2)
    local = sample((6, 24, 7, 4), "float32", 3)
    for call in (
        lambda lax: lax.conv(x, y, (1, 2), "SAME"),
        lambda lax: lax.conv_with_general_padding(x, y, (1, 2), ((1, 2), (3, 4)), *dilations),
        lambda lax: lax.conv_general_dilated_patches(x, (3, 2), (1, 2), ((0, 0), (1, 1))),
        lambda lax: lax.conv_general_dilated_patches(
            x, (3, 2), (1, 2), ((0, 0), (1, 1)), *dilations
        ),
        lambda lax: lax.conv_general_dilated_patches(
            np.moveaxis(x, 1, -1), (3, 2), (1, 2), "SAME", dimension_numbers=NHWC
        ),
        lambda lax: lax.conv_general_dilated_patches(x.astype("int32"), (2, 2), (1, 1), "VALID"),
        lambda lax: lax.conv_general_dilated_local(x, local, (1, 2), "SAME", (3, 2)),
        lambda lax: lax.conv_general_dilated_local(
            np.moveaxis(x, 1, -1), local.transpose(2, 3, 1, 0), (1, 2), "SAME", (3, 2),
            dimension_numbers=NHWC, precision="high",
        ),
    ):  # fmt: skip
        assert_same(*(call(m.lax) for m in (minijax, jax)))


SPECS = [
    None, NHWC, ("NWHC", "HWIO", "NHCW"), ("NCHW", "OIWH", "WHNC"), ("NCHW", "OHIW", "NCHW"),
    ("NHHC", "HWIO", "NHWC"), ("NHWN", "HWIO", "NHWC"), ("NHWC", "HWOO", "NHWC"), list(NHWC),
    ("0BF1", "0IO1", "BF01"), "NHWC", ((0, 1, 2, 3),) * 3,
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
def test_dimension_numbers(spec):
    left, right = (2, 9, 10, 4), (3, 2, 4, 6)
    ours, theirs = (
        outcome(m.lax.conv_dimension_numbers, left, right, spec) for m in (minijax, jax)
    )
    assert ours == theirs
    if not isinstance(spec, (tuple, list)) or not isinstance(spec[0], str):
        return
    ours, theirs = (outcome(m.lax.conv_general_permutations, spec) for m in (minijax, jax))
    assert ours == theirs
    for padding in ("SAME", "VALID", ((1, 1), (0, 1))):
        for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
            ours, theirs = (
                outcome(getattr(m.lax, name), left, right, (1, 2), padding, spec)
                for m in (minijax, jax)
            )
            assert ours == theirs, (name, padding)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", "same", "other", None])
def test_named_padding(padding):
    ours, theirs = (
        outcome(m.lax.padtype_to_pads, (9, 10, 0), (3, 2, 4), (1, 2, 3), padding)
        for m in (minijax, jax)
    )
    assert ours == theirs
    assert minijax.lax.conv_shape_tuple(LHS, RHS, (1, 2), "SAME", 2) == (
        jax.lax.conv_shape_tuple(LHS, RHS, (1, 2), "SAME", 2)
    )


# -- Fourier transforms ---------------------------------------------------------------------------

TRANSFORMS = [
    ("FFT", (6,), (3, 4, 6)), ("IFFT", (4, 6), (3, 4, 6)), ("FFT", (3, 4, 6), (3, 4, 6)),
    ("RFFT", (6,), (3, 4, 6)), ("RFFT", (5,), (3, 5)), ("rfft", (4, 6), (3, 4, 6)),
    ("IRFFT", (6,), (3, 4)), ("IRFFT", (7,), (3, 4)), ("IRFFT", (4, 6), (2, 4, 4)),
    ("IRFFT", (1,), (3, 1)), ("RFFT", (1,), (3, 1)), ("FFT", (), (3,)), ("FFT", (0,), (3, 0)),
    ("IRFFT", (0,), (3, 1)), ("RFFT", (2, 3), (0, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lengths", "shape"), TRANSFORMS)
def test_fft(kind, lengths, shape):
    for dtype in ("float32", "complex64", "int32", "int8", "bool", "float16"):
        x = sample(shape, dtype)
        ours, theirs = (outcome(m.lax.fft, x, kind, lengths) for m in (minijax, jax))
        same_outcome(ours, theirs, where=dtype)
    with x64(True):
        for dtype in ("float64", "complex128", "int32", "int64"):
            x = sample(shape, dtype)
            ours, theirs = (outcome(m.lax.fft, x, kind, lengths) for m in (minijax, jax))
            same_outcome(ours, theirs, where=dtype)


@pytest.mark.parametrize(
    ("kind", "lengths", "shape"), [t for t in TRANSFORMS if t[1] and 0 not in (*t[1], *t[2])]
)
def test_fft_transforms(kind, lengths, shape):
    x = sample(shape, "float32" if kind.upper() == "RFFT" else "complex64")

    def both(m):
        f = lambda x: m.lax.fft(x, kind, lengths)
        out, pullback = m.vjp(f, x)
        ct = sample(out.shape, np.dtype(out.dtype).name, 5)
        batched = [m.vmap(f, axis)(np.stack([x, 2 * x], axis)) for axis in range(x.ndim)]
        return pullback(ct), m.jvp(f, (x,), (x,)), batched

    assert_same(both(minijax), both(jax))


@pytest.mark.parametrize("split", [(), ("x",)], ids=["whole", "split"])
@pytest.mark.parametrize("axis", range(4))
def test_a_kernel_over_mesh_axes_of_size_one_is_whole(axis, split):
    """Types and splits of the result and the gradients; `split` is that of lhs."""

    def both(m):
        explicit = (m.sharding.AxisType.Explicit,) * 2
        mesh = m.make_mesh((1, 1), ("x", "y"), explicit, devices=m.devices()[:1])
        specs = m.P(*split), m.P(*[None] * axis, "y")
        with m.set_mesh(mesh):
            args = [
                m.ShapeDtypeStruct(shape, "float32", sharding=m.sharding.NamedSharding(mesh, spec))
                for shape, spec in zip((LHS, RHS), specs, strict=True)
            ]
            f = lambda x, y: m.lax.conv_general_dilated(x, y, (1, 1), "SAME")
            total = lambda x, y: f(x, y).sum()
            found = m.eval_shape(lambda *xs: (f(*xs), m.grad(total, (0, 1))(*xs)), *args)
        return [(leaf.shape, str(leaf.sharding.spec)) for leaf in m.tree_util.tree_leaves(found)]

    assert both(minijax) == both(jax)


def test_fft_errors():
    x = np.ones((3, 6), np.float32)
    for kind, lengths in (("OTHER", (6,)), ("FFT", (5,)), ("RFFT", (4,)), ("FFT", (1, 3, 6)),
                          (1, (6,)), ("FFT", 6), ("FFT", [6])):  # fmt: skip
        ours, theirs = (
            outcome(m.make_jaxpr(lambda x, m=m: m.lax.fft(x, kind, lengths)), x)
            for m in (minijax, jax)
        )
        same_outcome(ours, theirs, where=f"{kind} {lengths}")
    ours, theirs = (outcome(m.lax.fft, np.ones(6) + 0j, "RFFT", (6,)) for m in (minijax, jax))
    assert ours is theirs is ValueError
    for member in jax.lax.FftType:
        assert minijax.lax.FftType[member.name] == member.value
