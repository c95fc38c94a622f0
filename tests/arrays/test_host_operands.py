"""Arrays of the host as operands: small ones are copied into memory that one call after another uses."""

import gc
import threading

import jax as upstream
import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.arrays.array import operand_from_host
from minijax.config import local
from minijax.runtime.lending import give_back

pytestmark = pytest.mark.both_ends

ROUNDS = 24  # enough for memory to be used again, and for `jit` to generate code for its calls
DTYPES = [
    bool, np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64,
    np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip


def values(dtype, shape=(5, 7), rounds=ROUNDS):
    """Return arrays of one type, each with other values."""
    size = int(np.prod(shape))
    return [((np.arange(size) * 3 + n) % 7).reshape(shape).astype(dtype) for n in range(rounds)]


def _doubled(x):
    return x + x if x.dtype != bool else ~x


WAYS = {
    "jit": lambda: jax.jit(_doubled),
    "several results": lambda: jax.jit(lambda x: (_doubled(x), {"same": x})),
    "itself": lambda: jax.jit(lambda x: x),
    "reshaped": lambda: jax.jit(lambda x: x.reshape(-1)),
    "compiled": lambda: jax.jit(_doubled),
    "keyword": lambda: (lambda f: lambda x: f(x=x))(jax.jit(_doubled)),
    "tree": lambda: (lambda f: lambda x: f({"a": [x, x]}))(
        jax.jit(lambda t: (t["a"][0], t["a"][1]))
    ),
    "donated": lambda: jax.jit(_doubled, donate_argnums=0),
    "eager": lambda: jnp.transpose,
    "eager, two": lambda: lambda x: jnp.equal(x, x),
    "eager, static": lambda: lambda x: jnp.roll(x, 2, axis=1),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("way", WAYS)
def test_each_call_has_its_own_values(way, dtype):
    """Results are kept while later calls are made, and the arguments are overwritten after each."""
    f = WAYS[way]()
    given = values(dtype)
    if way == "compiled":
        f = f.lower(jnp.asarray(given[0])).compile()
    expected = [jax.tree.map(np.asarray, f(jnp.asarray(x))) for x in given]
    got = []
    for x in given:
        x = x.copy()
        got.append(f(x))
        jax.block_until_ready(got[-1])
        x[...] = 0
    for one, other in zip(expected, got, strict=True):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, np.asarray(b))


NUMBERS = {
    "floats": [n / 7 - 1 for n in range(ROUNDS)],
    "integers": list(range(-5, ROUNDS)),
    "twice": [n // 2 + 0.5 for n in range(ROUNDS)],
    "special": [0.0, -0.0, np.nan, np.inf, 1e-40, -0.0, float("nan"), np.nan, 1e300, 0.0, 2.0**100],
    "classes": [1, 1.0, True, 1 + 0j, 2.0, 2, False, 0, 0.0, 3, 3.0, 3j, 3, 3.0, True, 1, 1.0],
    "wide": [2**31 - 1, -(2**31), 2**31 - 2, 7, -7],
}
WITH_NUMBERS = {
    "jit": lambda m: m.jit(lambda n: (n, n + 1, m.numpy.float32(2) * n)),
    "beside an array": lambda m: (lambda f: lambda n: f(m.numpy.ones(2), n=n))(m.jit(lambda x, n: x * n)),
    "donated": lambda m: m.jit(lambda n: n * 2, donate_argnums=0),
    "tree": lambda m: (lambda f: lambda n: f({"a": [n, n]}))(m.jit(lambda t: t["a"])),
    "compiled": lambda m: m.jit(lambda n: n - 1).lower(1.5).compile(),
    "eager": lambda m: lambda n: m.numpy.multiply(m.numpy.ones(2), n),
    "operator": lambda m: lambda n: (m.numpy.ones(2) - n, n / m.numpy.ones(2)),
    "gradient": lambda m: lambda n: m.grad(m.jit(lambda x: (x * n * x).real))(0.5),
}  # fmt: skip


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("way", WITH_NUMBERS)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_each_call_has_its_own_number(numbers, way, x64):
    """Numbers are lent memory when they are first met, and kept when they are met again."""

    def run(m):
        with m.enable_x64(x64):
            f = WITH_NUMBERS[way](m)
            kind = float if way == "compiled" else lambda n: n
            given = [
                kind(n) for n in NUMBERS[numbers] if kind is not float or type(n) is not complex
            ]
            results = [f(n) for n in given]
            return [(x.weak_type, np.asarray(x)) for x in m.tree.leaves(results)]

    for (weak, one), (other_weak, other) in zip(run(jax), run(upstream), strict=True):
        assert (one.dtype, one.shape, weak) == (other.dtype, other.shape, other_weak)
        if one.dtype.kind == "f":
            np.testing.assert_array_max_ulp(one, other, 2)
        else:
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one.real), np.signbit(other.real))


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x[::2, ::-1],
        lambda x: x.T,
        lambda x: np.asfortranarray(x),
        lambda x: np.broadcast_to(x[0], (4, 7)),
        lambda x: x[:0],
        lambda x: x[0, 0].reshape(()),
        lambda x: np.frombuffer(bytes(4) + x.tobytes(), x.dtype),
    ],
    ids=["strided", "transposed", "fortran", "broadcast", "empty", "scalar", "read-only"],
)
def test_any_memory_is_read(made):
    f = jax.jit(lambda x: x * 2)
    for x in values(np.float32):
        x = made(x)
        np.testing.assert_array_equal(np.asarray(f(x)), x * 2)
        np.testing.assert_array_equal(np.asarray(jnp.negative(x)), -x)


def test_calls_that_are_not_done_keep_their_operands():
    """Programs with loops run in the background, where they read their operands late."""

    @jax.jit
    def late(x):
        y = jax.lax.fori_loop(0, 200, lambda i, m: jnp.tanh(m @ m), jnp.ones((64, 64)))
        return x + 0 * y[0, 0]

    given = values(np.float32, (8,), 40)
    got = [late(x) for x in given]
    for x, y in zip(given, got, strict=True):
        np.testing.assert_array_equal(np.asarray(y), x)


def test_threads_have_their_own_memory():
    f = jax.jit(lambda x, y: x - y)
    wrong = []

    def work(n):
        x = np.full(6, n, np.float32)
        for k in range(300):
            out = np.asarray(f(x, np.full(6, k, np.float32)))
            if not (out == n - k).all():
                wrong.append((n, k, out))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("callback", ["debug", "pure", "io"])
def test_callbacks_keep_what_they_saw(callback):
    seen = []

    def f(x):
        if callback == "debug":
            jax.debug.callback(seen.append, x)
            return x + 1
        if callback == "pure":
            return jax.pure_callback(lambda v: seen.append(v) or v, x, x)
        return jax.experimental.io_callback(lambda v: seen.append(v) or v, x, x)

    f = jax.jit(f)
    given = values(np.float32, rounds=8)
    for x in given:
        f(x)
    jax.effects_barrier()
    assert len(seen) == len(given)
    for x in given:
        assert any(np.array_equal(np.asarray(v), x) for v in seen)


def test_calls_within_a_call_do_not_share_its_memory():
    """A finalizer may make calls while the operands of another are being gathered."""
    f = jax.jit(lambda x: x + 1)
    given = values(np.float32)
    for x in given:
        f(x)
    before = operand_from_host(given[0], local.context)
    give_back(local.context.lent, [before._buffer], [before._buffer])
    outer = operand_from_host(given[0], local.context)
    assert outer is before  # the memory is used again
    for x in given:
        np.testing.assert_array_equal(np.asarray(f(x)), x + 1)
    np.testing.assert_array_equal(np.asarray(outer), given[0])


def test_memory_is_counted_as_no_array():
    f = jax.jit(lambda x: x.sum())
    given = values(np.float32, (3, 1, 11))
    for x in given:
        f(x)
    gc.collect()
    assert not [x for x in jax.live_arrays() if x.shape == (3, 1, 11)]


def test_errors_leave_nothing_behind():
    f = jax.jit(lambda x: jnp.log(x))
    with jax.debug_nans(True):
        for x in values(np.float32, (3,), 6):
            with pytest.raises(FloatingPointError):
                f(x - 100)
    with pytest.raises(TypeError):
        f(np.ones(3, np.float32), np.ones(3, np.float32))
    for x in values(np.float32, (3,)):
        np.testing.assert_allclose(np.asarray(f(x + 1)), np.log(x + 1), rtol=1e-6)


READ = [values(dtype, (2, 3), 1)[0] for dtype in DTYPES]
READ += [np.float32(1.5), np.zeros((0, 3), "float32"), np.arange(1025, dtype="float32")]


@pytest.mark.parametrize("value", READ, ids=lambda value: f"{value.dtype}{value.shape}")
def test_arrays_that_numpy_reads_again(value):
    for array in (jnp.asarray(value), jax.jit(lambda x: x)(value)):
        expected = value.astype(array.dtype)
        reads = [np.asarray(array) for _ in range(4)]
        for read in reads:
            assert read.dtype == expected.dtype and read.shape == expected.shape
            assert read.tobytes() == expected.tobytes() and read.strides == reads[0].strides
            assert not read.flags.writeable
        if array.dtype.kind in "biufc":  # NumPy's own: the others are copied at each read
            with pytest.raises(ValueError, match="WRITEABLE"):
                reads[3].flags.writeable = True
            if not hasattr(value, "__buffer__"):  # from Python 3.12 on, NumPy asks for the buffer
                assert (reads[3] is reads[2]) == (value.nbytes <= 4096)
        assert np.array(array).flags.writeable
        assert np.asarray(array, "complex64").dtype == "complex64"
        del reads, read
        jax.jit(_doubled, donate_argnums=0)(array)
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(array)


DONATED = [0.0, 1, True, 2j, np.float32(1.5), np.int8(3), np.array(2.0), np.array([1, 2])]
MAKERS = {
    "asarray": lambda m, x: m.numpy.asarray(x),
    "array": lambda m, x: m.numpy.array(x),
    "copy": lambda m, x: m.numpy.copy(x),
    "zeros": lambda m, x: m.numpy.zeros((), m.dtypes.canonicalize_dtype(np.result_type(x))),
    "full": lambda m, x: m.numpy.full(np.shape(x), x),
    "squeeze": lambda m, x: m.numpy.squeeze(x),
    "stop_gradient": lambda m, x: m.lax.stop_gradient(m.numpy.asarray(x)),
    "device_put": lambda m, x: m.device_put(x),
    "device_put, placed": lambda m, x: m.device_put(x, m.devices()[0]),
    "jit": lambda m, x: m.jit(lambda x: x)(x),
    "vjp": lambda m, x: m.vjp(lambda x: x, x)[0],
    "scan of nothing": lambda m, x: m.lax.scan(lambda c, _: (c, None), x, None, length=0)[0],
}


@pytest.mark.parametrize("made", MAKERS)
def test_numbers_become_arrays_of_their_own(made):
    """Two arrays of one number share no memory: one may be donated or deleted, not both."""
    for x in DONATED:
        for module in (jax, upstream):
            one, other = MAKERS[made](module, x), MAKERS[made](module, x)
            if module is upstream and not isinstance(one, module.Array):
                continue  # a number of a class of its own
            assert one is not other
            one.delete()
            assert not other.is_deleted()
            np.testing.assert_array_equal(np.asarray(MAKERS[made](module, x)), np.asarray(other))


@pytest.mark.parametrize("x", DONATED, ids=repr)
def test_numbers_are_donated_several_times(x):
    for module in (jax, upstream):
        both = module.jit(lambda x, y: (x * 3, {"two": y * 2}), donate_argnums=(0, 1))
        for _ in range(3):  # the first is recorded, and the last is the fast path
            out, more = both(x, x)
            np.testing.assert_array_equal(np.asarray(out), np.asarray(x * 3))
            np.testing.assert_array_equal(np.asarray(more["two"]), np.asarray(x * 2))
        array = module.numpy.asarray(x) + 0
        with pytest.raises(Exception, match="INVALID_ARGUMENT: Attempt to"):
            both(array, array)


def _aligned(count):
    """A writable array at the alignment that jaxlib asks of memory that it shares."""
    memory = np.zeros(count + 64, np.float32)
    start = -memory.ctypes.data % 64 // memory.itemsize
    return memory[start : start + count]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("options", "shows"),
    [
        ({}, False),
        ({"may_alias": False}, False),
        ({"may_alias": True}, True),
        ({"donate": True}, True),
    ],
    ids=str,
)
def test_device_put_shares_memory_if_asked(options, shows, named):
    """Upstream shares it always, so that a loader that fills one buffer changes earlier batches."""
    x = _aligned(100_000)
    y = jax.device_put(x, jax.devices()[0] if named else None, **options)
    x[0] = 7
    assert float(y[0]) == (7 if shows else 0)
    doubled = jax.jit(lambda a: a + 1, donate_argnums=0)(y)
    assert (float(doubled[0]), float(x[0])) == ((8, 7) if shows else (1, 7))


def test_device_put_of_what_nobody_writes_to():
    first = jax.numpy.arange(100_000.0)
    read = jax.device_get(first)
    second = jax.device_put(read)
    assert second.unsafe_buffer_pointer() == first.unsafe_buffer_pointer()
    third = jax.jit(lambda a: a * 2, donate_argnums=0)(second)
    first.delete()
    assert (read[3], float(third[3])) == (3, 6)
    copied = jax.device_put(read, may_alias=False)
    assert copied.unsafe_buffer_pointer() != read.ctypes.data
    view = np.zeros(100_000, np.float32)[:]
    view.flags.writeable = False  # but not its base
    y = jax.device_put(view)
    view.base[0] = 1
    assert float(y[0]) == 0
