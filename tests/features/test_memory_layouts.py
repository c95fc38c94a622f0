"""Arrays whose dimensions lie in memory in another order than row-major, beside upstream and NumPy."""

import itertools
import json
import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.layout import Format, Layout, with_layout_constraint
from tests.cases.layouts import PROGRAMS, WITNESSED
from tests.harness.survivors import outcomes

pytestmark = pytest.mark.both_ends

# By the beginning of an expression: why it is another message, or another layout.
OTHERWISE = {
    "put(w, 1, 0, where=m.NamedSharding(mesh, P(None": "0.12 says of what",
    "jit(lambda a: a, in_shardings=fmt(1, 0, where=ns))(x)": "0.12 says of what",
    "m.device_put(y(), m.memory.Space.Device)": "0.12 keeps the layout in a memory that a sharding names",
    "jit(lambda a: a, out_shardings=(auto, auto))": "messages on trees of another structure differ",
    "jit(lambda a: m.device_put(a, fmt(1, 0)))(x)": "here the device of the format decides, not there",
    "jit(lambda a: constrained(a, Layout((1, 1))))": "upstream's message is the MLIR verifier's",
    'jit(lambda a: constrained({"a": a,': "upstream lays two constraints on one value out alike",
}


def _message(outcome):
    """Return how the message of an error begins, without classes, which have other names."""
    first = re.sub("<class .*", "", outcome[2].split("\n")[0])
    return first.split(": ")[0].split(" Got ")[0]


def _outcomes(library, programs):
    found = outcomes("layouts", library, programs)
    assert len(found) == len(programs)
    return json.loads(json.dumps(found).replace("AutoLayout", "AUTO"))  # its name in 0.12


def test_expressions():
    ours, theirs = (_outcomes(name, PROGRAMS) for name in ("minijax", "jax"))
    assert len(PROGRAMS) >= 160
    wrong = {}
    for name in PROGRAMS:
        mine, other = ours[name], theirs[name]
        otherwise = name.startswith(tuple(OTHERWISE))
        if other[:1] == ["raised"] == mine[:1]:
            same = other[1][0] in mine[1] and (otherwise or mine[2].startswith(_message(other)))
        else:
            same = mine == other or (otherwise and mine[:1] != ["raised"] != other[:1])
        if not same:
            wrong[name] = mine, other
    assert not wrong, "\n\n".join(f"{name}:\n{pair[0]}\n{pair[1]}" for name, pair in wrong.items())


def test_expressions_on_which_upstream_is_wrong():
    found = _outcomes("minijax", WITNESSED)
    wrong = {name: was for name, was in found.items() if was is not True and not all(was)}
    assert not wrong and "raised" not in str(found), found


HOME = jax.sharding.SingleDeviceSharding(jax.devices()[0])
ORDERS = [*itertools.permutations(range(3)), (1, 0), (0, 1), (0,), ()]
DTYPES = [
    "bool", "int2", "int4", "int8", "int16", "int32", "uint4", "uint8", "uint16", "uint32",
    "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "float32", "complex64",
]  # fmt: skip


def value_of(order, dtype):
    shape = (2, 3, 4)[: len(order)]
    return jnp.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5).astype(dtype)


def wide(x):
    return np.asarray(x).astype(complex)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_values_of_each_dtype_in_each_order(order, dtype):
    x = value_of(order, dtype)
    y = jax.device_put(x, Format(Layout(order), HOME))
    assert y.format.layout.major_to_minor == order
    assert y.dtype == x.dtype and y.weak_type == x.weak_type and y.sharding == HOME
    assert np.array_equal(wide(y), wide(x))
    back = jax.jit(lambda a: a.T, out_shardings=Format(Layout(order), HOME))(y)
    assert np.array_equal(wide(back), wide(x).T) and back.format.layout.major_to_minor == order
    for made in (jnp.where(y == y, y, x), y.copy(), jax.device_put(y, Format(None, HOME))):
        assert np.array_equal(wide(made), wide(x))
        assert made.format.layout.major_to_minor == tuple(range(len(order)))
    if order:
        assert all(np.array_equal(wide(row), wide(x)[k]) for k, row in enumerate(y))


@pytest.mark.parametrize("order", ORDERS[1:7], ids=str)
def test_derivatives_of_constraints(order):
    x = value_of(order, "float32")
    f = lambda a: jnp.sum(jnp.sin(with_layout_constraint(a, Layout(order))) ** 2)
    wanted = np.sin(2 * np.asarray(x))
    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.jacfwd(f)):
        assert np.allclose(g(x), wanted, atol=1e-6)
    mapped = jax.vmap(jax.grad(f), in_axes=1, out_axes=1)(jnp.stack([x, x + 1], 1))
    assert np.allclose(mapped[:, 0], wanted, atol=1e-6)


def test_a_program_is_found_again_by_its_layouts():
    x = jnp.arange(6.0).reshape(2, 3)
    f = jax.jit(lambda a: a.T * 2)
    for _ in range(2):  # compiled, then read from the disk
        for order in ((0, 1), (1, 0)):
            y = jax.device_put(x, Format(Layout(order), HOME))
            for _ in range(2):
                assert np.array_equal(f(y), np.asarray(x).T * 2)
            auto = Format(Layout.AUTO)
            made = jax.jit(lambda a: a.T, out_shardings=auto).lower(y).compile()
            assert made.input_formats[0][0].layout.major_to_minor == order
            assert made(y).format == made.output_formats
        jax.clear_caches()


def test_a_compiled_function_is_serialized_with_its_layouts():
    from minijax.experimental.serialize_executable import deserialize_and_load, serialize

    x, place = jnp.arange(6.0).reshape(2, 3), Format(Layout((1, 0)), HOME)
    for asked in (place, Format(Layout.AUTO)):
        f = jax.jit(lambda a: a.T, in_shardings=asked, out_shardings=asked)
        compiled = f.lower(x).compile()
        again = deserialize_and_load(*serialize(compiled))
        assert again.input_formats == compiled.input_formats
        assert again.output_formats == compiled.output_formats
        assert again(x).format == again.output_formats and np.array_equal(again(x), np.asarray(x).T)


def test_memory_shared_with_numpy():
    x = np.asfortranarray(np.arange(64 * 64, dtype=np.float32).reshape(64, 64))
    y = jax.dlpack.from_dlpack(x)
    assert (
        np.array_equal(y, x) and np.array_equal(y + 1, x + 1) and np.array_equal(y.T @ y, x.T @ x)
    )
    z = jax.device_put(x, Format(Layout((1, 0)), HOME))
    for made in (np.asarray(z), np.from_dlpack(z)):
        assert made.strides == x.strides and np.array_equal(made, x)
    assert np.array_equal(jax.dlpack.from_dlpack(z) + 1, x + 1)


def test_live_arrays_have_their_layouts():
    x = jax.device_put(np.arange(77.0).reshape(7, 11), Format(Layout((1, 0)), HOME))
    (same,) = (a for a in jax.live_arrays() if a.shape == (7, 11) and a.format == x.format)
    assert np.array_equal(same + 1, np.asarray(x) + 1)
