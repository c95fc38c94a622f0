"""Bytes from elsewhere: what is damaged or made by others is refused before it runs."""

import hashlib
import os
import pickle
import random
import struct
import zlib

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import export
from minijax.experimental import serialize_executable
from minijax.export.bytecode import check_module
from minijax.runtime import saved

pytestmark = pytest.mark.both_ends

X = jnp.arange(4.0)


@pytest.fixture(scope="module")
def program():
    return serialize_executable.serialize(
        minijax.jit(lambda x: {"y": jnp.sin(x)}).lower(X).compile()
    )


def _sealed_elsewhere(data):
    return b"minijax executable 2\n" + hashlib.sha256(data).digest() + data


class _Runs:
    """A class whose unpickling would leave a mark."""

    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


@pytest.mark.parametrize("kind", ["bare", "sealed", "inner"])
@pytest.mark.parametrize("call", [os.mkdir, eval, exec, getattr, np.load, pickle.loads])
def test_serialized_programs_name_no_other_classes(tmp_path, program, kind, call):
    mark = tmp_path / "ran"
    argument = {eval: f"__import__('os').mkdir({str(mark)!r})"}.get(call, str(mark))
    data = pickle.dumps(_Runs(call, argument))
    if kind == "inner":
        data = pickle.dumps(([0], data))
    data = data if kind == "bare" else _sealed_elsewhere(data)
    with pytest.raises(ValueError, match=r"no part of a compiled program|no program that"):
        serialize_executable.deserialize_and_load(data, *program[1:])
    assert not mark.exists()


def test_damaged_programs_are_refused(program):
    data, *trees = program
    rng = random.Random(0)
    for _ in range(200):
        other = bytearray(data)
        for _ in range(rng.choice([1, 1, 3])):
            other[rng.randrange(len(other))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del other[rng.randrange(len(other)) :]
        with pytest.raises(ValueError, match=r"no program that|is damaged"):
            serialize_executable.deserialize_and_load(bytes(other), *trees)
    for other in (b"", b"x", pickle.dumps(1)):
        with pytest.raises(ValueError, match=r"no program that"):
            serialize_executable.deserialize_and_load(other, *trees)
    out = serialize_executable.deserialize_and_load(data, *trees)(X)
    assert np.array_equal(out["y"], jnp.sin(X))


def test_only_what_can_be_read_is_written():
    with pytest.raises(ValueError, match=r"has a part that cannot be serialized: builtins.eval"):
        saved.save({"x": _Runs(eval, "1")})


def _with_header(blob, change):
    """An exported function with another header, and the checksum that fits it."""
    length = struct.unpack_from("<8sIQ", blob)[2]
    header = change(bytes(blob[20 : 20 + length]))
    rest = struct.pack("<Q", len(header)) + header + bytes(blob[20 + length :])
    return bytes(blob[:8]) + struct.pack("<I", zlib.crc32(rest)) + rest


def test_headers_of_exports_are_checked():
    """Damage under a checksum that fits is a ValueError, whatever part of the header it meets."""
    sizes = export.symbolic_shape("b")
    blob = export.export(minijax.jit(lambda x: {"y": jnp.sin(x)}))(
        minijax.ShapeDtypeStruct((sizes[0], 4), jnp.float32)
    ).serialize(vjp_order=1)
    rng = random.Random(1)

    def change(header):
        header = bytearray(header)
        for _ in range(rng.choice([1, 1, 2])):
            header[rng.randrange(len(header))] = rng.choice(b'0123456789[]{}",:-*xnul\xff')
        return bytes(header)

    for _ in range(400):
        try:
            found = export.deserialize(_with_header(blob, change))
        except ValueError:
            continue
        assert isinstance(found, export.Exported)


def test_the_framing_of_modules_is_checked():
    """A module whose sections, strings or offsets do not fit is refused before jaxlib reads it."""
    data = export.export(minijax.jit(jnp.sin))(X).mlir_module_serialized
    check_module(data)
    for end in range(len(data)):
        with pytest.raises(ValueError):
            check_module(data[:end])
    for other in (data + b"x", data + data[data.index(b"\0") + 1 :], b"ML" + data, b""):
        with pytest.raises(ValueError):
            check_module(other)
