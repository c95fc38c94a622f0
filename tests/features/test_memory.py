"""Memory spaces in types and of results on one device, against upstream."""

import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

X = np.linspace(-1, 1, 6, dtype=np.float32)


def _host(j):
    return j.sharding.SingleDeviceSharding(j.devices()[0], memory_kind="pinned_host")


def _there(j):
    return j.device_put(X, _host(j))


def _over_mesh(j, kind="Explicit"):
    mesh = j.make_mesh((1,), ("x",), axis_types=(getattr(j.sharding.AxisType, kind),))
    spec = j.sharding.PartitionSpec("x")
    return j.device_put(X, j.sharding.NamedSharding(mesh, spec, memory_kind="pinned_host"))


def _scattered(name, in_host, given):
    """A scatter whose operand, or whose updates, are in the memory of the host."""

    def run(j):
        numbers = j.lax.ScatterDimensionNumbers((), (0,), (0,))
        x, y = j.numpy.asarray(X), j.numpy.asarray(X[:1])
        x, y = (_there(j), y) if in_host else (x, _there(j)[:1])
        x = x if not given else j.device_put(x, j.memory.Space.Device)
        return getattr(j.lax, name)(x, j.numpy.array([[1]]), y, numbers)

    return run


PROGRAMS = {
    "set": lambda j: _there(j).at[0].set(1),
    "set slice": lambda j: _there(j).at[1:3].set(0.0),
    "set array": lambda j: _there(j).at[0].set(j.numpy.asarray(X)[1]),
    "set arrays": lambda j: _there(j).at[np.array([1, 2])].set(j.numpy.ones(2)),
    "add": lambda j: _there(j).at[0].add(1.5),
    "multiply": lambda j: _there(j).at[::2].mul(3),
    "set within jit": lambda j: j.jit(lambda a: a.at[0].set(1))(_there(j)),
    "set within vmap": lambda j: j.vmap(lambda a: a.at[0].set(1.0))(_there(j)[None]),
    "scatter": _scattered("scatter", True, False),
    "scatter updates": _scattered("scatter", False, False),
    "scatter_add": _scattered("scatter_add", True, False),
    "scatter_min updates": _scattered("scatter_min", False, True),
    "argsort": lambda j: j.numpy.argsort(_there(j)),
    "sort keys": lambda j: j.lax.sort((_there(j), j.numpy.asarray(X)), num_keys=1)[0],
    "sort values": lambda j: j.lax.sort((_there(j), j.numpy.asarray(X)), num_keys=1)[1],
    "barrier": lambda j: j.lax.optimization_barrier((_there(j), j.numpy.asarray(X)))[0],
    "barrier of the other": lambda j: j.lax.optimization_barrier((_there(j), X))[1],
    **{
        f"{name} over a mesh, {kind}": lambda j, f=f, kind=kind: f(j, _over_mesh(j, kind))
        for kind in ("Explicit", "Auto")
        for name, f in {
            "arithmetic": lambda j, x: x + 1,
            "sine": lambda j, x: j.numpy.sin(x),
            "identity": lambda j, x: j.jit(lambda x: x)(x),
            "jit": lambda j, x: j.jit(lambda x: x * 2)(x),
            "sum": lambda j, x: x.sum(),
        }.items()
    },
    "put": _there,
    "put in a space": lambda j: j.device_put(X, j.memory.Space.Host),
    "and back": lambda j: j.device_put(_there(j), j.memory.Space.Device),
    "unpinned": lambda j: j.device_put(
        X, j.sharding.SingleDeviceSharding(j.devices()[0], memory_kind="unpinned_host")
    ),
    "arithmetic": lambda j: j.numpy.sin(_there(j)) * 2 + 1,
    "sum": lambda j: _there(j).sum(),
    "index": lambda j: _there(j)[0],
    "sort": lambda j: j.numpy.sort(_there(j)),
    "joined": lambda j: j.numpy.concatenate([_there(j), _there(j)]),
    "jit": lambda j: j.jit(lambda a: a @ a)(_there(j)),
    "put within jit": lambda j: j.jit(lambda a: j.device_put(a * 2, _host(j)) * 3)(X),
    "back within jit": lambda j: j.jit(lambda a: j.device_put(a, j.memory.Space.Device) + 1)(
        _there(j)
    ),
    "vmap": lambda j: j.vmap(j.numpy.cos)(_there(j)),
    "cond": lambda j: j.jit(lambda a: j.lax.cond(a[0] > 0, lambda: a, lambda: a + 1))(_there(j)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_of_results(name):
    ours, theirs = PROGRAMS[name](minijax), PROGRAMS[name](jax)
    assert_same(ours, theirs)
    assert str(ours.sharding) == str(theirs.sharding)
    assert str(minijax.typeof(ours)) == str(jax.typeof(theirs))


@pytest.mark.parametrize(
    "f",
    [
        lambda j, a: j.device_put(a, j.memory.Space.Host) + 1,
        lambda j, a: (j.device_put(a, _host(j)) > 0).all(),
        lambda j, a: j.device_put(j.device_put(a, j.memory.Space.Host), j.memory.Space.Device) + a,
    ],
)
def test_types_are_shown(f):
    ours, theirs = (str(j.make_jaxpr(lambda a, j=j: f(j, a))(X)) for j in (minijax, jax))
    assert ours == theirs


BAD = {
    "no such kind": lambda j: _host(j).with_memory_kind("disk"),
    "sum of two memories": lambda j: _there(j) + j.numpy.asarray(X),
    "joined of two memories": lambda j: j.numpy.concatenate([_there(j), X]),
    "in_shardings elsewhere": lambda j: j.jit(
        lambda a: a, in_shardings=j.sharding.SingleDeviceSharding(j.devices()[0])
    )(_there(j)),
}


@pytest.mark.parametrize("name", BAD)
def test_misuse(name):
    messages = []
    for j in (minijax, jax):
        with pytest.raises(ValueError) as caught:
            BAD[name](j)
        messages.append(str(caught.value))
    assert messages[0].startswith(messages[1].rstrip("."))


def test_live_arrays():
    script = """
import importlib, sys
j = importlib.import_module(sys.argv[1])
x = j.jit(lambda: j.numpy.arange(6.0).reshape(2, 3))()
gone = j.numpy.ones(7)
gone.delete()
key = j.random.key(3)
for a in j.live_arrays():
    if a.size > 1:
        print(a.shape, a.dtype, a.sharding, a.committed, a.tolist())
"""
    found = {
        library: sorted(
            subprocess.check_output([sys.executable, "-c", script, library], text=True).splitlines()
        )
        for library in ("minijax", "jax")
    }
    assert found["minijax"] == found["jax"] != []


def test_gradients_come_back_to_the_memory_of_the_argument():
    f = lambda a: (minijax.device_put(minijax.numpy.sin(a), minijax.memory.Space.Host) ** 2).sum()
    found = minijax.grad(f)(X)
    np.testing.assert_allclose(found, np.sin(2 * X), rtol=1e-5, atol=1e-6)
    assert found.sharding.memory_kind == "device"
    assert minijax.grad(f)(_there(minijax)).sharding.memory_kind == "pinned_host"


def test_references_beside_arrays_on_the_host():
    def program(j):
        there = _there(j)
        ref = j.new_ref(j.numpy.zeros((2, 2)))
        ref[...] += 1
        ref[0] = j.numpy.full(2, 5.0)

        @j.jit
        def add(x):
            ref[...] += x

        add(ref[...])
        return ref[...] + j.device_put(there, j.memory.Space.Device).sum()

    assert_same(program(minijax), program(jax))


@pytest.mark.parametrize("where", [_host, lambda j: _over_mesh(j, "Auto").sharding])
@pytest.mark.parametrize(
    "f",
    [
        lambda j, x: j.device_put(x, j.memory.Space.Device) * 2,
        lambda j, x: j.lax.scan(
            lambda c, row: (c + j.device_put(row, j.memory.Space.Device), None),
            j.numpy.zeros(()),
            x,
        )[0],
        lambda j, x: x + 1,
        lambda j, x: x,
    ],
    ids=["put", "put within scan", "add", "identity"],
)
def test_struct_on_the_host(f, where):
    """A described argument in the host's memory is moved to the device where it is put there."""

    def lowered(j):
        struct = j.ShapeDtypeStruct(X.shape, X.dtype, sharding=where(j))
        traced = j.jit(lambda x: f(j, x)).trace(struct)
        text = traced.lower(lowering_platforms=("tpu",)).as_text()
        kinds = re.findall(r'(?:memory_kind|_placement) = "(\w+)"', text)
        return str(traced.jaxpr.in_avals), [kind for kind in kinds if kind != "device"], (
            text.count("annotate_device_placement")
        )  # fmt: skip

    assert lowered(minijax) == lowered(jax)
