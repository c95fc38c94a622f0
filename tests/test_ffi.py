"""Foreign functions: calls of the LAPACK kernels that jaxlib ships, by name, against upstream."""

import pickle
import re
import subprocess
import sys

import jax
import jax.extend
import numpy as np
import pytest
from jax.interpreters import mlir as their_mlir

import minijax
import minijax.ffi
from minijax.experimental import serialize_executable
from minijax.interpreters import mlir
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

A = np.float32([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]])
MANY = np.stack([A, A + np.eye(3, dtype=np.float32)])


@pytest.fixture(autouse=True)
def kernels():
    for j in (minijax, jax):
        j.numpy.linalg.cholesky(A)  # registers them


def _cholesky(j, x, **options):
    """The lower factor, and whether it failed: rows vary fastest, as LAPACK wants."""
    like = j.ShapeDtypeStruct
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    call = j.ffi.ffi_call(
        "lapack_spotrf_ffi",
        (like(x.shape, x.dtype), like(x.shape[:-2], np.int32)),
        input_layouts=[order],
        output_layouts=[order, range(x.ndim - 2)],
        **options,
    )
    factor, info = call(x, uplo=np.uint8(ord("L")))
    return j.numpy.tril(factor), info


CALLS = {
    "eager": lambda j: _cholesky(j, j.numpy.asarray(A)),
    "batch": lambda j: _cholesky(j, j.numpy.asarray(MANY)),
    "jit": lambda j: j.jit(lambda x: _cholesky(j, x, input_output_aliases={0: 0}))(A),
    "empty": lambda j: _cholesky(j, j.numpy.zeros((0, 3, 3), np.float32)),
    **{
        f"vmap {method}": lambda j, method=method: j.vmap(
            lambda x: _cholesky(j, x, vmap_method=method)
        )(MANY)
        for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")
    },
    "vmap of jit": lambda j: j.vmap(
        j.jit(lambda x: _cholesky(j, x, vmap_method="broadcast_all")), in_axes=2
    )(np.moveaxis(MANY, 0, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    assert_same(CALLS[name](minijax), CALLS[name](jax), weak=False)


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "plain"])
def test_printing(method):
    def shown(j):
        kind = j.ShapeDtypeStruct(A.shape[1:] if method != "plain" else A.shape, A.dtype)
        call = j.ffi.ffi_call("f", kind, vmap_method=None if method == "plain" else method)
        run = lambda x: call(x, b=np.float32(2), a="text")
        return str(j.make_jaxpr(run if method == "plain" else j.vmap(run))(A))

    assert shown(minijax) == shown(jax)


ATTRIBUTES = {
    "number": 3, "negative": -1, "real": 2.5, "yes": True, "text": 'a "b"\\', "none": np.int8(-2),
    "half": np.float16(0.5), "row": np.arange(3), "same": np.ones((2, 2), np.float32),
    "real64": np.float64(1e-300), "inner": {"x": 1, "y": "z"}, "unsigned": np.uint32(7),
    "bytes": b'x\x00\xff"', "kind": np.dtype("float32"), "least": -(2**63),
}  # fmt: skip


def test_attributes_are_written_as_upstream_writes_them():
    def written(j):
        kind = j.ShapeDtypeStruct(A.shape, A.dtype)
        run = j.jit(lambda x: j.ffi.ffi_call("f", kind, has_side_effect=True)(x, **ATTRIBUTES))
        (line,) = [s for s in run.lower(A).as_text().splitlines() if "custom_call" in s]
        return re.search(r"backend_config = (\{.*?\}), (has_side|operand)", line)[1]

    assert written(minijax) == written(jax)


def test_a_lowering_rule_of_a_target():
    def outcome(j, rules):
        p = j.extend.core.Primitive(f"spotrf of {j.__name__}")
        p.multiple_results = True
        p.def_abstract_eval(lambda x, **_: [x, x.update(shape=(), dtype=np.dtype("int32"))])
        rule = j.ffi.ffi_lowering(
            "lapack_spotrf_ffi", operand_layouts=[(0, 1)], result_layouts=[(0, 1), ()]
        )
        rules.register_lowering(p, rule)
        factor, info = j.jit(lambda x: p.bind(x, uplo=np.uint8(ord("L"))))(A)
        return j.numpy.tril(factor), info

    assert_same(outcome(minijax, mlir), outcome(jax, their_mlir))


def _lowered(j, value):
    return j.jit(lambda x: _call(j, x, _attributes={"a": value})).lower(A)


def _call(j, *args, _attributes=None, **options):
    kind = j.ShapeDtypeStruct(A.shape, A.dtype)
    return j.ffi.ffi_call("no such target", kind, **options)(*args, **(_attributes or {}))


BAD = {
    "unknown target": (RuntimeError, "no such target", lambda j: _call(j, A)),
    "vmap_method": (ValueError, "allowed methods", lambda j: _call(j, A, vmap_method="f")),
    "no vmap_method": (NotImplementedError, "vmap_method", lambda j: j.vmap(lambda x: _call(j, x))(A)),
    "derivative": (
        ValueError, "cannot be differentiated", lambda j: j.grad(lambda x: _call(j, x).sum())(A)
    ),
    "layouts": (
        ValueError, "number of input layouts", lambda j: _call(j, A, input_layouts=[[0, 1], [0]])
    ),
    "layout": (ValueError, "must be a permutation", lambda j: _call(j, A, input_layouts=[[0]])),
    "alias in": (ValueError, "input index 3", lambda j: _call(j, A, input_output_aliases={3: 0})),
    "alias out": (ValueError, "output index 3", lambda j: _call(j, A, input_output_aliases={0: 3})),
    "alias of another layout": (
        ValueError, "different layout",
        lambda j: _call(j, A, input_output_aliases={0: 0}, input_layouts=[[1, 0]]),
    ),
    "list": (TypeError, "Non-hashable", lambda j: _call(j, A, _attributes={"a": [1]})),
    "complex": (TypeError, "Unsupported scalar", lambda j: _lowered(j, np.complex64(1))),
    "large": (OverflowError, "Python int too large", lambda j: _lowered(j, 2**63)),
    "object": (TypeError, "No attribute handler", lambda j: _call(j, A, _attributes={"a": object()})),
    "legacy": (ValueError, "legacy_backend_config", lambda j: _call(j, A, legacy_backend_config="a")),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_misuse(name):
    error, words, call = BAD[name]
    for j in (minijax, jax):
        with pytest.raises(error, match=words):
            call(j)


FRESH = """
import pickle, sys
import numpy as np
import minijax
from minijax.experimental import serialize_executable
x, how, given = pickle.load(sys.stdin.buffer)
if how == "serialized":
    found = serialize_executable.deserialize_and_load(*given)(x)
elif how == "exported":
    found = minijax.export.deserialize(given).call(x)
else:
    like = minijax.ShapeDtypeStruct
    call = minijax.ffi.ffi_call(
        "lapack_spotrf_ffi", (like(x.shape, x.dtype), like((), "int32")),
        input_layouts=[(1, 0)], output_layouts=[(1, 0), ()])
    found = np.tril(call(x, uplo=np.uint8(ord("L")))[0])
sys.stdout.buffer.write(pickle.dumps(np.asarray(found)))
"""


@pytest.mark.parametrize("how", ["serialized", "exported", "called"])
def test_kernels_in_a_fresh_process(how):
    """Programs that no rule of this process has lowered find the kernels that they call."""
    jitted, given = minijax.jit(minijax.numpy.linalg.cholesky), None
    if how == "serialized":
        given = serialize_executable.serialize(jitted.lower(A).compile())
    elif how == "exported":
        given = minijax.export.export(jitted)(A).serialize()
    done = subprocess.run(
        [sys.executable, "-c", FRESH], input=pickle.dumps((A, how, given)), capture_output=True
    )
    assert not done.returncode, done.stderr.decode()[-2000:]
    np.testing.assert_allclose(pickle.loads(done.stdout), np.linalg.cholesky(A), rtol=1e-6)
