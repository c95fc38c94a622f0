"""A GPU, beside upstream on the same GPU: placement, memory, callbacks, exchange (values: `tests.on_gpu`).

Skipped where there is none. Both libraries have a client of their own in one process, neither of which
takes the GPU's memory beforehand.
"""

import functools
import glob
import importlib
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample

if not glob.glob("/dev/nvidia[0-9]*") or os.environ.get("JAX_PLATFORMS", "cuda") == "cpu":
    pytest.skip("there is no GPU here, or it is not to be used", allow_module_level=True)

BOTH = (minijax, jax)


# -- devices, memories, transfers ------------------------------------------------------------------


def described(m):
    device = m.devices()[0]
    return {
        "backend": m.default_backend(), "count": m.device_count(), "str": str(device),
        "repr": repr(device), "kind": device.device_kind, "platform": device.platform,
        "id": device.id, "process": device.process_index, "hardware": device.local_hardware_id,
        "memories": sorted(x.kind for x in device.addressable_memories()),
        "default memory": device.default_memory().kind, "statistics": sorted(device.memory_stats()),
        "capability": getattr(device, "compute_capability", None),
        "cores": getattr(device, "core_count", None),
        "cpu": str(m.devices("cpu")[:1]), "gpu": str(m.devices("gpu")), "cuda": str(m.devices("cuda")),
        "limit": device.memory_stats()["bytes_limit"],
        "array": repr(m.numpy.ones(3)), "device": str(m.numpy.ones(3).device),
        "sharding": repr(m.numpy.ones(3).sharding),
    }  # fmt: skip


def test_devices():
    ours, theirs = map(described, BOTH)
    assert ours == theirs


TRANSFERS = {
    "to the CPU": lambda m, x: m.device_put(x, m.devices("cpu")[0]),
    "and back": lambda m, x: m.device_put(m.device_put(x, m.devices("cpu")[0]), m.devices()[0]),
    "jit of what lies on the CPU": lambda m, x: m.jit(lambda x: x + 1)(m.device_put(x, m.devices("cpu")[0])),
    "eager beside uncommitted": lambda m, x: m.device_put(x, m.devices("cpu")[0]) + m.numpy.ones(4),
    "beside the other": lambda m, x: m.device_put(x, m.devices("cpu")[0]) + m.device_put(x, m.devices()[0]),
    "jit on the CPU": lambda m, x: m.jit(lambda x: x * 2, device=m.devices("cpu")[0])(x),
    "default device": lambda m, x: _with_default(m, x),
    "pinned": lambda m, x: _host(m, x, "pinned_host"),
    "unpinned": lambda m, x: _host(m, x, "unpinned_host"),
    "moved within jit": lambda m, x: m.jit(
        lambda x: m.device_put(m.device_put(x * 2, m.memory.Space.Host), m.memory.Space.Device) + 1)(x),
    "result in host memory": lambda m, x: m.jit(lambda x: x * 2, out_shardings=_place(m, "pinned_host"))(x),
    "argument in host memory": lambda m, x: m.jit(
        lambda x: m.device_put(x, m.memory.Space.Device) * 2)(_host(m, x, "pinned_host")),
    "mesh of one": lambda m, x: m.jit(m.shard_map(
        lambda x: m.lax.psum(x, "i"), mesh=m.make_mesh((1,), ("i",)), in_specs=m.P("i"), out_specs=m.P()))(x),
    "pmap": lambda m, x: m.pmap(lambda x: m.lax.pmean(x, "i"), axis_name="i")(x[None]),
    "integers as indices": lambda m, x: x.at[m.numpy.array([3, 0, 9, -1])].add(1.0),
}  # fmt: skip


def _place(m, kind):
    return m.sharding.SingleDeviceSharding(m.devices()[0], memory_kind=kind)


def _host(m, x, kind):
    return m.device_put(x, _place(m, kind))


def _with_default(m, x):
    with m.default_device(m.devices("cpu")[0]):
        return m.numpy.sin(x) + m.numpy.ones(4)


@pytest.mark.parametrize("name", TRANSFERS)
def test_transfers(name):
    found = []
    for m in BOTH:
        try:
            y = TRANSFERS[name](m, np.arange(4.0, dtype=np.float32))
            found.append((np.asarray(y).tolist(), str(y.sharding), str(y.devices()), y.committed))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]


def test_back_from_host_memory():
    """Upstream leaves the array's memory as it was, and refuses what it has made then."""
    x = _host(minijax, np.arange(4.0, dtype=np.float32), "pinned_host")
    y = minijax.device_put(x, minijax.devices()[0])
    assert y.sharding.memory_kind == "device" and y.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_donation():
    for m in BOTH:
        x = m.numpy.ones((1024, 1024))
        pointer = x.unsafe_buffer_pointer()
        y = m.jit(lambda x: x + 1, donate_argnums=0)(x)
        assert x.is_deleted() and y.unsafe_buffer_pointer() == pointer


def test_memory_is_given_back():
    """Of a hundred steps with donated parameters no more stays than of one."""
    step = minijax.jit(lambda w: minijax.numpy.tanh(w @ w), donate_argnums=0)
    w = step(minijax.numpy.ones((1024, 1024)))
    used = minijax.devices()[0].memory_stats()["bytes_in_use"]
    for _ in range(100):
        w = step(w)
    w.block_until_ready()
    assert minijax.devices()[0].memory_stats()["bytes_in_use"] <= used


@pytest.mark.parametrize("m", BOTH, ids=("minijax", "jax"))
def test_too_large(m):
    """What there is no memory for raises, and the process goes on."""
    with pytest.raises(Exception, match=r"RESOURCE_EXHAUSTED|[Oo]ut of memory"):
        m.numpy.zeros((1 << 20, 1 << 20), np.float32).block_until_ready()
    assert float(m.numpy.ones(3).sum()) == 3.0


# -- callbacks ---------------------------------------------------------------------------------------


def _pure(m, x):
    shape = m.ShapeDtypeStruct(x.shape, x.dtype)
    return m.pure_callback(lambda v: np.sin(v), shape, x, vmap_method="expand_dims")


def _io(m, x):
    return m.experimental.io_callback(
        lambda v: np.asarray(v) * 2, m.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True
    )


CALLBACKS = {
    "pure": lambda m, x: m.jit(functools.partial(_pure, m))(x),
    "pure, vmap": lambda m, x: m.jit(m.vmap(functools.partial(_pure, m)))(x),
    "ordered": lambda m, x: m.jit(functools.partial(_io, m))(x),
    "in scan": lambda m, x: m.jit(lambda x: m.lax.scan(lambda c, v: (c + _io(m, v), c), 0.0, x))(x),
    "in while": lambda m, x: m.jit(lambda x: m.lax.fori_loop(0, 3, lambda i, c: _pure(m, c), x))(x),
    "in cond": lambda m, x: m.jit(lambda x: m.lax.cond(x[0] < 1, functools.partial(_pure, m), lambda x: x, x))(x),
    "eager": lambda m, x: _pure(m, x),
    "on the CPU": lambda m, x: _pure(m, m.device_put(x, m.devices("cpu")[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks(name):
    x = np.arange(4.0, dtype=np.float32)
    ours, theirs = (CALLBACKS[name](m, m.numpy.asarray(x)) for m in BOTH)
    assert_same(ours, theirs)


@pytest.mark.parametrize("ordered", [False, True])
def test_prints(ordered, capfd):
    shown = []
    for m in BOTH:
        f = m.jit(
            lambda x, m=m: [
                m.debug.print("{i} {x}", i=i, x=x + i, ordered=ordered) for i in range(3)
            ]
        )
        f(m.numpy.arange(2))
        m.effects_barrier()
        lines = capfd.readouterr().out.splitlines()
        shown.append(lines if ordered else sorted(lines))
    assert shown[0] == shown[1] and len(shown[0]) == 3


def test_callback_that_fails():
    def fail(x):
        raise ValueError("no number")

    x = minijax.numpy.ones(3)
    with pytest.raises(Exception, match="no number"):
        minijax.jit(
            lambda x: minijax.pure_callback(fail, minijax.ShapeDtypeStruct((3,), np.float32), x)
        )(x).block_until_ready()
    assert float(minijax.numpy.ones(3).sum()) == 3.0


# -- other libraries, files, profiles ----------------------------------------------------------------


def test_exchange_with_torch():
    torch = pytest.importorskip("torch")
    x = minijax.numpy.arange(6.0).reshape(2, 3)
    there = torch.utils.dlpack.from_dlpack(x)
    assert there.is_cuda and there.data_ptr() == x.unsafe_buffer_pointer()
    back = minijax.dlpack.from_dlpack(there * 2)
    assert back.devices() == x.devices()
    np.testing.assert_array_equal(np.asarray(back), 2 * np.asarray(x))
    interface = x.__cuda_array_interface__
    assert interface == jax.numpy.arange(6.0).reshape(2, 3).__cuda_array_interface__ | {
        "data": interface["data"]
    }


def test_exchange_with_upstream():
    x = jax.numpy.arange(6.0)
    y = minijax.dlpack.from_dlpack(x)
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert str(y.devices()) == str(x.devices())
    z = jax.dlpack.from_dlpack(y)
    np.testing.assert_array_equal(np.asarray(z), np.asarray(x))


def test_serialized_programs():
    from minijax.experimental import serialize_executable

    compiled = (
        minijax.jit(lambda x: minijax.numpy.sin(x) @ x.T)
        .lower(np.ones((4, 4), np.float32))
        .compile()
    )
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    x = sample((4, 4), "float32")
    np.testing.assert_array_equal(np.asarray(loaded(x)), np.asarray(compiled(x)))


ALONE = """
import os, sys, warnings
warnings.simplefilter("error")
import minijax, numpy as np
from minijax.experimental import serialize_executable
f = minijax.jit(lambda x: minijax.numpy.sin(x) @ x.T)
x = np.arange(16, dtype="float32").reshape(4, 4)
print(float(f(x).sum()), float(minijax.numpy.cumsum(minijax.numpy.ones(1000))[-1]))
compiled = f.lower(x).compile()
loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
print(float(loaded(x).sum()), minijax.default_backend())
assert "jax" not in sys.modules
"""
THEN_UPSTREAM = """
import jax
print(jax.default_backend(), float(jax.jit(lambda x: (x + 1).sum())(np.ones(3))))
print(float(minijax.numpy.sin(minijax.numpy.ones(3)).sum()) > 2)
"""


def test_programs_on_disk(tmp_path):
    """Read in a process that upstream is not in, or not yet: XLA asks for the plug-in by its name."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"}
    outs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            timeout=200,
        )
        for code in (ALONE, ALONE, ALONE + THEN_UPSTREAM)
    ]
    assert [out.returncode for out in outs] == [0, 0, 0], [out.stderr[-2000:] for out in outs]
    first, second, third = (out.stdout.splitlines() for out in outs)
    assert first == second == third[:2]
    assert third[2:] == ["gpu 6.0", "True"]


def test_exported_programs():
    exports = [
        m.export.export(m.jit(lambda x, m=m: m.numpy.linalg.cholesky(x @ x.T)), platforms=("cuda", "cpu"))(
            m.ShapeDtypeStruct((3, 3), np.float32))
        for m in BOTH
    ]  # fmt: skip
    x = sample((3, 3), "float32")
    ours, theirs = (e.call(x) for e in exports)
    assert_same(ours, theirs)
    again = minijax.export.deserialize(exports[0].serialize()).call(x)
    assert_same(again, theirs)


def test_compiled_facts():
    def facts(m):
        f = m.jit(lambda x: m.numpy.tanh(x @ x).sum())
        compiled = f.lower(m.ShapeDtypeStruct((64, 64), np.float32)).compile()
        stats = compiled.memory_analysis()
        return {
            "flops": compiled.cost_analysis()["flops"], "arguments": stats.argument_size_in_bytes,
            "temporaries": stats.temp_size_in_bytes, "output": stats.output_size_in_bytes,
        }  # fmt: skip

    ours, theirs = map(facts, BOTH)
    assert ours == theirs


def test_profile(tmp_path):
    with minijax.profiler.trace(str(tmp_path)), minijax.profiler.TraceAnnotation("products"):
        minijax.jit(lambda x: x @ x)(minijax.numpy.ones((512, 512))).block_until_ready()
    (file,) = pathlib.Path(tmp_path).rglob("*.xplane.pb")
    found = file.read_bytes()
    assert b"/device:GPU:0" in found and b"products" in found


@pytest.mark.parametrize("name", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_bits(name):
    def drawn(m):
        key = m.random.key(7, impl=name)
        with m.threefry_partitionable(False):
            old = m.random.normal(m.random.key(7), (5,))
        return [
            m.random.key_data(m.random.split(key, 3)), m.random.uniform(key, (7,)), m.random.bits(key, (5,), "uint8"),
            m.random.normal(key, (3, 3), "bfloat16"), m.random.permutation(key, 10), m.random.gamma(key, 2.0, (4,)), old,
        ]  # fmt: skip

    assert_same(*map(drawn, BOTH), ulps=4)


def checkpoint_name(m):
    return importlib.import_module(f"{m.__name__}.ad_checkpoint").checkpoint_name


def test_offloaded_residuals():
    def gradient(m):
        policy = m.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip

        def f(x):
            h = checkpoint_name(m)(m.numpy.sin(x @ x), "h")
            return m.numpy.tanh(h @ x).sum()

        g = m.jit(m.grad(m.checkpoint(f, policy=policy)))
        return g(np.full((16, 16), 0.1, np.float32)), "S(5)" in g.lower(
            np.full((16, 16), 0.1, np.float32)
        ).compile().as_text()

    (ours, moved), (theirs, wanted) = map(gradient, BOTH)
    assert_same(ours, theirs)
    assert moved == wanted
