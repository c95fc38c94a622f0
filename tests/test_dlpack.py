"""Arrays that come from other libraries, or leave for them, by the DLPack protocol."""

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import BFLOAT16, x64


def aligned(a):
    """The array in memory that begins at a multiple of 64 bytes."""
    raw = np.empty(a.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def odd(a):
    """The array in memory that begins at no multiple of 64 bytes."""
    raw = aligned(np.zeros(a.size + 1, a.dtype))[1:].reshape(a.shape)
    raw[...] = a
    return raw


VALUES = {
    **{
        f"{make.__name__} {dtype}": lambda m, make=make, dtype=dtype: make(np.arange(1, 7).astype(dtype))
        for make in (aligned, odd)
        for dtype in ("float64", "int64", "bool", "float32", "int8", "uint64", "complex64", "complex128", "float16")
    },
    "a scalar": lambda m: aligned(np.ones((), np.float32)),
    "empty": lambda m: aligned(np.ones((0, 2), np.float32)),
    "transposed": lambda m: aligned(np.arange(6, dtype=np.float32).reshape(2, 3)).T,
    "strided": lambda m: np.ones(6, np.float32)[::2],
    "read-only": lambda m: np.broadcast_to(np.float32(1), (3,)),
    "swapped": lambda m: np.ones(3, ">f4"),
    "bfloat16 of NumPy's": lambda m: np.ones(3, BFLOAT16),
    "an array": lambda m: m.numpy.ones(3),
    "an array of bfloat16": lambda m: m.numpy.ones(3, "bfloat16"),
    "a weak one": lambda m: m.numpy.asarray(2.0),
    "keys": lambda m: m.random.key(0),
    "a number": lambda m: 3,
    "a scalar of NumPy's": lambda m: np.float32(2),
    "a list": lambda m: [1.0],
}  # fmt: skip
KEYWORDS = {
    "": lambda m: {},
    "copy": lambda m: {"copy": True},
    "no copy": lambda m: {"copy": False},
    "device": lambda m: {"device": m.devices()[0]},
    "sharding": lambda m: {"device": m.sharding.SingleDeviceSharding(m.devices()[0])},
}


def pointer(x):
    return x.ctypes.data if isinstance(x, np.ndarray) else x.unsafe_buffer_pointer()


def imported(m, value, keywords, traced):
    x, given = VALUES[value](m), KEYWORDS[keywords](m)
    found = []
    for f in (m.numpy.from_dlpack, m.dlpack.from_dlpack):
        try:
            y = m.jit(lambda x, f=f: f(x, **given))(x) if traced else f(x, **given)
        except Exception as error:
            found.append(type(error).__name__)
            continue
        shared = None if given.get("copy") else pointer(x) == pointer(y)
        devices = sorted(d.id for d in y.devices())
        found.append(
            (y.dtype, y.shape, y.committed, y.weak_type, y.tolist(), devices, shared, y is x)
        )
    return found


@pytest.mark.parametrize("wide", [False, True], ids=["", "x64"])
@pytest.mark.parametrize("keywords", KEYWORDS)
@pytest.mark.parametrize("value", VALUES)
def test_import(value, keywords, wide):
    with x64(wide):
        ours, theirs = (imported(m, value, keywords, traced=False) for m in (minijax, jax))
    assert ours == theirs


@pytest.mark.parametrize("value", ["an array", "aligned float32", "a number"])
def test_import_of_a_tracer_is_refused(value):
    ours, theirs = (imported(m, value, "", traced=True) for m in (minijax, jax))
    assert ours == theirs == ["TypeError"] * 2


@pytest.mark.parametrize("copy", [None, True, False])
def test_copies(copy):
    """Memory is shared where it is aligned, unless a copy is asked for (upstream shares it then)."""
    x = aligned(np.arange(5, dtype=np.float32))
    for f in (minijax.numpy.from_dlpack, minijax.dlpack.from_dlpack):
        assert (pointer(f(x, copy=copy)) == pointer(x)) is (copy is not True)


EXPORTS = {
    "device": lambda m, x: x.__dlpack_device__(),
    "capsule": lambda m, x: type(x.__dlpack__()).__name__,
    "of a kind": lambda m, x: type(x.__dlpack__(dl_device=(1, 0))).__name__,
    "of another kind": lambda m, x: x.__dlpack__(dl_device=(9, 0)),
    "of a version": lambda m, x: type(x.__dlpack__(max_version=(1, 0))).__name__,
    "copied": lambda m, x: type(x.__dlpack__(copy=True)).__name__,
    "NumPy": lambda m, x: np.from_dlpack(x).tolist(),
    "of a tracer": lambda m, x: m.jit(np.from_dlpack)(x),
}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("value", ["an array", "an array of bfloat16", "a weak one", "keys"])
def test_export(value, export):
    def run(m):
        try:
            return EXPORTS[export](m, VALUES[value](m))
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]

    ours, theirs = run(minijax), run(jax)
    if isinstance(theirs, tuple) and isinstance(theirs[-1], str) and theirs[0] != "AttributeError":
        assert ours[0] == theirs[0]
        assert ours[1].startswith(theirs[1].rstrip(".")), (ours, theirs)
    elif isinstance(theirs, tuple) and theirs[0] == "AttributeError":
        assert ours[0] == theirs[0]
    else:
        assert ours == theirs
