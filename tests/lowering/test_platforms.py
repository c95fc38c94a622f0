"""Lowering for GPUs and TPUs, on a machine with neither: against upstream, which lowers for any.

Every program is traced once, with and without 64 bits, and lowered for each platform.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.experimental import buffer_callback, io_callback, topologies
from minijax.lax.linalg import hermitian, orthogonal, spectral, three_diagonals, tpu
from minijax.runtime import executables, plugins
from minijax.runtime import topologies as runtime_topologies
from tests.cases.platform_programs import MESHED, ROWS
from tests.harness import upstream
from tests.harness.differential import x64
from tests.harness.platform_lowering import compare

PLATFORMS = ("cuda", "rocm", "tpu")
PARTS = 8

# What differs, and why: a platform, a pattern of names and a part of the difference.
_NO_GPU = "upstream asks cuDNN or cuSPARSE for sizes of workspaces, with no GPU to ask"
DIFFERENCES = [
    (".*", "cholesky_update vmap", "upstream fails: NotImplementedError", "ours has a batching rule"),
    (".*", "(pure_|io_|debug.)(callback|print)", "the platform for the specified backend cpu",
     "upstream writes no callbacks for a platform that is not the process's own"),
    (".*", "lstm", "upstream fails: AttributeError", _NO_GPU),
    ("tpu", "eig.*0,0", "upstream fails: NotImplementedError", "nothing is to be computed"),
    ("tpu", "eigh.*(257|300|600)|svd.*300,300", "\\A.*(\nonly upstream's: 2 x .'(Qr|Product).*)+\\Z",
     "upstream divides by the projector or by its complement, each with factorizations of its own"),
    ("tpu", "svd (large )?values|svd POLAR.*compute_uv=False|rank|cond|svdvals", "Householder",
     "the columns that complete a basis are not made where no vectors are asked for"),
    ("rocm|tpu", "scaled_(matmul|dot_general)", "upstream fails: NotImplementedError",
     "ours computes it from the scaled values"),
    ("cuda|rocm", "CSR|COO", "upstream fails: AttributeError: 'NoneType' .* 'build_", _NO_GPU),
    ("rocm|tpu", "spsolve", "upstream.*MLIR translation rule for primitive 'spsolve' not found",
     "ours asks SciPy, on the host"),
    ("cuda", "spsolve grad", "differ:\nonly upstream's: 1 x .'cusolver_csrlsvqr_ffi.*\\Z", "one fewer"),
    ("tpu", "pbroadcast", "upstream fails: NotImplementedError", "ours gathers, and takes a part"),
]  # fmt: skip


def _accepted(platform, name, why):
    return any(
        re.fullmatch(platforms, platform) and re.match(names, name) and re.search(part, why)
        for platforms, names, part, _ in DIFFERENCES
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
def test_same_custom_calls(wide, part):
    wrong = [
        f"{platform}, {row[0]}: {why}"
        for row in (ROWS + MESHED)[part::PARTS]
        for platform, why in compare(row, PLATFORMS, wide)
        if why and not _accepted(platform, row[0], why)
    ]
    assert not wrong, "\n".join(wrong)


def test_enough_programs():
    assert len(ROWS) >= 350
    assert all(reason for *_, reason in DIFFERENCES)


def test_several_platforms_in_one_module():
    def f(x):
        chosen = minijax.lax.platform_dependent(
            x, cpu=lambda x: x + 1, tpu=lambda x: x * 2, default=lambda x: x - 3
        )
        return minijax.lax.linalg.cholesky(chosen)

    traced = minijax.jit(f).trace(minijax.ShapeDtypeStruct((4, 4), np.float32))
    text = traced.lower(lowering_platforms=("cpu", "cuda", "rocm", "tpu")).as_text()
    for found in ("@lapack_spotrf_ffi", "@cusolver_potrf_ffi", "@hipsolver_potrf_ffi"):
        assert found in text
    assert "stablehlo.cholesky" in text and '"_platform_index"' in text
    exported = minijax.export.export(minijax.jit(f), platforms=("cpu", "cuda", "rocm", "tpu"))(
        minijax.ShapeDtypeStruct((4, 4), np.float32)
    )
    assert "@cusolver_potrf_ffi" in exported.mlir_module()
    x = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(exported.call(x), minijax.jit(f)(x))


# -- the programs that stand for kernels on TPUs, computed on the CPU --------------------------------


def _matrix(rows, columns, dtype, rank=None):
    rng = np.random.default_rng(rows * columns)
    parts = [rng.standard_normal((rows, columns)) for _ in range(2)]
    x = parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]
    if rank is not None:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        s[rank:] = 0
        x = (u * s) @ vh
    return x.astype(dtype)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize(
    ("shape", "rank"), [((6, 6), None), ((9, 5), None), ((4, 7), None), ((6, 6), 3), ((7, 4), 2)]
)
def test_polar_svd(shape, rank, dtype, full):
    with x64(True):
        x = _matrix(*shape, dtype, rank)
        svd = minijax.jit(lambda x: tpu._svd(x, full=full, vectors=True, subset=None))
        s, u, vh = map(np.asarray, svd(jnp.asarray(x)))
        eps = np.finfo(dtype).eps
        k = min(shape)
        np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), rtol=0, atol=300 * eps)
        np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], x, rtol=0, atol=300 * eps)
        for q in (u, vh.conj().T):
            np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), rtol=0, atol=300 * eps)


def _by_lapack(a, inside):
    """A kernel of spectral division; LAPACK sorts, so what is outside is made the largest."""
    outside = jnp.where(inside, 0, jnp.abs(a).sum() + 1).astype(a.dtype)
    return hermitian.eigh_p.bind(
        a + jnp.diag(outside), lower=True, sort_eigenvalues=False, subset_by_index=None,
        algorithm=None,
    )  # fmt: skip


def _hermitian(values, dtype):
    q = np.linalg.qr(_matrix(len(values), len(values), dtype))[0]
    x = (q * values) @ q.conj().T
    return ((x + x.conj().T) / 2).astype(dtype)


_GAUSSIAN = np.random.default_rng(1).standard_normal(40)
_IN_FIVE_ROWS = np.eye(40) - np.outer(np.arange(40) < 5, np.arange(40) < 5) * 0.3
MATRICES = {
    "real": _hermitian(_GAUSSIAN, "float64"), "complex": _hermitian(_GAUSSIAN, "complex128"),
    "float32": _hermitian(_GAUSSIAN, "float32"), "zero": np.zeros((40, 40)),
    "identity": np.eye(40), "two clusters": _hermitian(np.repeat([1.0, 2.0], [25, 15]), "float64"),
    "low rank": _hermitian(np.repeat([1.0, 0.0], [3, 37]), "float64"),
    "median is the largest": _IN_FIVE_ROWS, "median is the least": -_IN_FIVE_ROWS,
    "graded": _hermitian(np.logspace(-14, 0, 40), "float64"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "subset"), [*((name, None) for name in MATRICES), ("real", (3, 9)), ("real", (30, 40))]
)
def test_spectral_division(name, subset):
    x = MATRICES[name]
    with x64(True):
        divide = minijax.jit(
            lambda x: spectral.eigh_by_division(x, kernel=_by_lapack, base=8, subset=subset)
        )
        v, w = map(np.asarray, divide(jnp.asarray(x)))
    chosen = slice(*(subset or (None,)))
    v, w, wanted = v[:, chosen], w[chosen], np.linalg.eigvalsh(x)[chosen]
    atol = 100 * np.finfo(x.dtype).eps * max(np.linalg.norm(x, 2), 1)
    np.testing.assert_allclose(w, wanted, rtol=0, atol=atol)
    np.testing.assert_allclose(x @ v, v * w, rtol=0, atol=atol)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(len(w)), rtol=0, atol=atol)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_reflectors_one_by_one(dtype, transpose, left):
    with x64(True):
        x = _matrix(6, 4, dtype)
        a, taus = orthogonal.geqrf_p.bind(jnp.asarray(x))
        c = _matrix(6, 3, dtype) if left else _matrix(3, 6, dtype)
        apply = minijax.jit(
            lambda a, t, c: tpu._apply_reflectors(a, t, c, left=left, transpose=transpose)
        )
        wanted = minijax.lax.linalg.ormqr(a, taus, jnp.asarray(c), left=left, transpose=transpose)
        np.testing.assert_allclose(apply(a, taus, jnp.asarray(c)), wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_elimination_of_three_diagonals(lead):
    with x64(True):
        rng = np.random.default_rng(0)
        dl, du = rng.standard_normal((2, *lead, 5))
        d = 4 + rng.standard_normal((*lead, 5))
        b = rng.standard_normal((*lead, 5, 3))
        solve = minijax.jit(three_diagonals.solve_by_elimination)
        found = solve(*map(jnp.asarray, (dl, d, du, b)))
        wanted = minijax.lax.linalg.tridiagonal_solve(*map(jnp.asarray, (dl, d, du, b)))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


def test_kernels_take_parts_of_a_batch():
    """Over four devices, no collective is written around a kernel for each matrix of a batch."""
    environment = os.environ | upstream.devices(4)
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.batched_kernels"],
        capture_output=True, text=True, env=environment, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for name, (ours, theirs) in json.loads(done.stdout.splitlines()[-1]).items():
        assert len(ours) <= len(theirs), (name, ours, theirs)


def _products():
    """Products of which one side is complex, a truth value or an integer and the other is not."""
    pairs = [(a, "float32") for a in ("complex64", "bool", "int8", "int32")]
    pairs += [(a, "complex64") for a in ("float32", "bool", "int8", "bfloat16")]
    pairs += [("complex64", "int32"), ("complex128", "float64"), ("float32", "bool")]
    pairs += [("bfloat16", "bool"), ("complex64", "float64"), ("float64", "complex128")]
    for operand, result in pairs:
        yield (
            f"{operand} to {result}",
            lambda x, y, r=result: minijax.lax.dot(x, y, preferred_element_type=r),
            [operand] * 2,
        )
    yield "float32 and complex128", minijax.lax.dot, ["float32", "complex128"]
    for operand in ("complex64", "float32", "int32"):
        yield f"{operand} as complex128", lambda x, y: x.astype("complex128") @ y, [operand] * 2


@pytest.mark.parametrize("platform", PLATFORMS)
def test_products_that_end_a_compiler(platform):
    """As they are written for accelerators, they have the value that they have on the CPU."""
    mixed = re.compile(
        r'"stablehlo.(dot_general|convert)".*: \(tensor<(.*)>(?:, .*)?\) -> tensor<(.*)>'
    )
    with x64(True):
        for name, function, kinds in _products():
            factors = [1 + 2j if kind[0] == "c" else 1 for kind in kinds]
            numbers = [np.arange(-4, 5).reshape(3, 3), np.arange(9).reshape(3, 3) % 4]
            args = [
                jnp.asarray(x * factor).astype(kind)
                for x, factor, kind in zip(numbers, factors, kinds, strict=True)
            ]
            x, y = (np.asarray(x).astype("complex128") for x in args)
            kind = minijax.eval_shape(function, *args).dtype
            wanted = (x @ y if kind.kind == "c" else (x @ y).real).astype(kind)
            lowered = minijax.jit(function).trace(*args).lower(lowering_platforms=(platform,))
            np.testing.assert_array_equal(lowered.compile()(*args), wanted, name)
            for operation, operand, result in mixed.findall(lowered._made.text):
                if operation == "dot_general":
                    assert ("complex" in operand) == ("complex" in result), name
                elif platform == "tpu":
                    assert "complex<f64>" not in operand + result, name


@pytest.mark.parametrize(("platform", "dtype", "batched", "kept"), [
    ("tpu", "complex64", False, False), ("cuda", "complex64", True, False),
    ("tpu", "float32", False, True), ("tpu", "float32", True, False), ("cuda", "float32", True, True),
])  # fmt: skip
def test_ragged_products(platform, dtype, batched, kept):
    """They are dense where the platform's compiler refuses them."""
    args = (jnp.ones((8, 4), dtype), jnp.ones((3, 4, 5), dtype), jnp.array([3, 1, 4]))
    function = minijax.lax.ragged_dot
    if batched:
        function, args = minijax.vmap(function), [jnp.stack([x, x]) for x in args]
    traced = minijax.jit(function).trace(*args)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert ("chlo.ragged_dot" in text) == kept
    assert ("dot_general" in text) != kept


# -- programs over meshes without devices ------------------------------------------------------------


def _without_devices(m, size=64):
    """Programs, their arguments and options, over a mesh of so many devices of no machine."""
    mesh = m.sharding.AbstractMesh((size,), ("x",))
    where = m.sharding.NamedSharding(mesh, m.P("x"))
    free, split = (m.ShapeDtypeStruct((size, 4), np.float32, sharding=s) for s in (None, where))
    total = m.shard_map(lambda x: m.lax.psum(x, "x"), mesh=mesh, in_specs=m.P("x"), out_specs=m.P())
    return {
        "argument": (lambda x: m.numpy.sin(x @ x.T).sum(0), split, {}),
        "asked for": (m.numpy.sin, free, {"in_shardings": where}),
        "asked for of the result": (m.numpy.sin, free, {"out_shardings": where}),
        "collective": (total, split, {}),
    }


@pytest.mark.parametrize("name", _without_devices(minijax))
def test_lowering_over_a_mesh_without_devices(name):
    texts = []
    for m in (minijax, jax):
        function, x, options = _without_devices(m)[name]
        traced = m.jit(function, **options).trace(x)
        with pytest.raises(
            ValueError, match=r"AbstractMesh exists in a|only AbstractMesh exists in th"
        ):
            traced.lower()
        lowered = traced.lower(lowering_platforms=("tpu",))
        with pytest.raises(RuntimeError, match="device_assignment cannot be `None` during compil"):
            lowered.compile()
        text = lowered.as_text()
        shown = (
            r"num_partitions = \d+|sdy.mesh @\w+ = <\[.*?\]|sharding<@mesh, \[\{.x.*?>|all_reduce"
        )
        texts.append(re.findall(shown, text))
        exported = m.export.export(m.jit(function, **options), platforms=("tpu",))(x)
        assert exported.nr_devices == 64
    assert texts[0] == texts[1] and "num_partitions = 64" in texts[0]


def test_compiling_what_was_lowered_over_a_mesh_without_devices():
    for m in (minijax, jax):
        function, x, _ = _without_devices(m, 1)["collective"]
        lowered = m.jit(function).trace(x).lower(lowering_platforms=("cpu",))
        device = m.devices()[0]
        compiled = lowered.compile(device_assignment=(device,))
        (where,), _ = compiled.input_shardings
        assert where.device_set == {device}
        np.testing.assert_array_equal(compiled(np.ones((1, 4), np.float32)), np.ones((1, 4)))
        with pytest.raises(
            ValueError, match=r"size of abstract mesh 1 in .* length of device assi"
        ):
            lowered.compile(device_assignment=(device, device))
        lowered = m.jit(m.numpy.sin).lower(1.0)
        lowered.compile(device_assignment=(device,))
        with pytest.raises(ValueError, match=r"device_assignment passed to `.compile` must match"):
            lowered.compile(device_assignment=(device, device))
    pair = [minijax.sharding.AbstractMesh((size,), ("x",)) for size in (2, 4)]
    pair = [minijax.sharding.NamedSharding(mesh, minijax.P("x")) for mesh in pair]
    args = [minijax.ShapeDtypeStruct((8,), np.float32, sharding=where) for where in pair]
    with pytest.raises(
        ValueError, match="AbstractMesh should be of the same size across all shard"
    ):
        minijax.jit(minijax.lax.add).trace(*args).lower(lowering_platforms=("tpu",))


# -- what is said of chips that are not here, and of programs that cannot be compiled for them -------


class _PlugIn:
    """A plug-in that knows two machines."""

    JaxRuntimeError = minijax.errors.JaxRuntimeError
    pjrt_plugin_loaded = pjrt_plugin_initialized = staticmethod(lambda key: True)

    @staticmethod
    def get_default_c_api_topology(key, name, options):
        if name not in ("v5e:2x2", "v6e:2x2"):
            raise minijax.errors.JaxRuntimeError(f"INVALID_ARGUMENT: not {name}; try: v5e or v6e.")
        return types.SimpleNamespace(_make_compile_only_devices=lambda: [name] * 4)


def test_a_topology_without_its_plug_in(monkeypatch):
    monkeypatch.setattr(plugins, "candidates", {})
    monkeypatch.setattr(plugins, "discover", lambda: None)
    monkeypatch.setattr(_PlugIn, "pjrt_plugin_loaded", staticmethod(lambda key: False))
    monkeypatch.setattr(runtime_topologies, "_jax", _PlugIn)
    describe = topologies.get_topology_desc
    with pytest.raises(RuntimeError, match=r"run pip install 'minijax-xla\[cuda12\]'"):
        describe("", "cuda", topology="1x1x4")
    with pytest.raises(RuntimeError, match=r"run pip install 'minijax-xla\[tpu\]'"):
        describe("v5e:2x2", "tpu")
    for platform in ("metal", "cpu"):
        with pytest.raises(NotImplementedError, match=f"topology not implemented for {platform}"):
            describe("", platform)


def test_a_machine_that_a_plug_in_does_not_know(monkeypatch):
    monkeypatch.setattr(plugins, "candidates", {})
    monkeypatch.setattr(plugins, "discover", lambda: None)
    monkeypatch.setattr(runtime_topologies, "_jax", _PlugIn)
    describe = topologies.get_topology_desc
    assert describe("v5e:2x2", "tpu").devices == ["v5e:2x2"] * 4
    said = (
        "INVALID_ARGUMENT: not v9z:2x2; try: v5e or v6e. The plug-in of 'tpu' does not describe a "
        "machine named 'v9z:2x2' with the options []: it knows v5e:2x2, v6e:2x2, and larger"
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        describe("v9z:2x2", "tpu")
    with pytest.raises(
        minijax.errors.JaxRuntimeError, match="for GPUs the name is empty, with targ"
    ):
        describe("h100", "cuda")
    for name, options in ((None, {}), ("v5e:2x2", {"wrap": {}})):
        with pytest.raises(TypeError, match="describes a machine by text, a number or integers"):
            describe(name, "tpu", **options)


FAILURES = {
    "by its line": "INVALID_ARGUMENT: No such type\n\t\n\nSuspected Python Code Location:\n  -:{line}",
    "in a frame": "INVALID_ARGUMENT: No such type\n\t\n\nSuspected Python Code Location:\n  -:{line} "
    "[xla::PythonStackTrace='']",
    "with metadata": 'INVALID_ARGUMENT: No such type, metadata={{source_file="-" '
    "source_line={line} source_column=6}}",
}
PROGRAMS = {
    "operation": (lambda x: jnp.fft.fft(jnp.sin(x)), "stablehlo.fft", "'fft'"),
    "function": (lambda x: jnp.fft.fft(jnp.sin(x) + 1), "stablehlo.fft", "'fft'"),
    "loop": (lambda x: minijax.lax.fori_loop(0, 3, lambda i, y: jnp.fft.fft(y).real, x), "stablehlo.fft", "'fft'"),
    "jit": (lambda x: minijax.jit(lambda y: jnp.fft.fft(y).real)(x) + 1, "stablehlo.fft", "'fft'"),
    "scope": (minijax.named_scope("layer")(lambda x: jnp.sort(x) + 1), "stablehlo.sort", "'jit(<lambda>)/layer/sort'"),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_operation_that_is_not_compiled(monkeypatch, name, failure):
    """A compiler names a line of the module, as those of TPUs and GPUs do; the user is told theirs."""
    function, operation, shown = PROGRAMS[name]

    def fail(text, *args, **kwargs):
        line = next(i for i, each in enumerate(text.splitlines(), 1) if operation in each)
        raise minijax.errors.JaxRuntimeError(FAILURES[failure].format(line=line))

    x = np.ones(4, np.float32)
    minijax.jit(lambda x: jnp.sort(jnp.fft.fft(x).real))(x)  # they are kept as they are called here
    lowered = minijax.jit(function).lower(x)
    monkeypatch.setattr(executables, "compile_module", fail)
    line = getattr(function, "__wrapped__", function).__code__.co_firstlineno
    said = f"INVALID_ARGUMENT: No such type. XLA cannot compile the operation {shown} at {__file__}:{line}:"
    for run in (lowered.compile, lambda: minijax.jit(function)(x)):
        with pytest.raises(minijax.errors.JaxRuntimeError, match=re.escape(said)) as caught:
            run()
        assert "source_file" not in str(caught.value) and "-:" not in str(caught.value)


NOT_LOWERED = {
    "schur": (lambda x: minijax.lax.linalg.schur(x), "LAPACK routine 'gees' not found for platform tpu"),
    "buffer_callback": (
        lambda x: buffer_callback.buffer_callback(print, x)(x),
        "Python callbacks are not supp",
    ),
    "hessenberg": (
        lambda x: minijax.lax.cond(x.sum() > 0, lambda x: minijax.lax.linalg.hessenberg(x)[0], lambda x: x, x),
        "LAPACK routine 'gehrd' not found for platform tpu",
    ),
    "tridiagonal_solve": (
        lambda x: minijax.lax.linalg.tridiagonal_solve(x, x, x, x[..., None], perturb_singular=True),
        "perturb_singular=True is not supported on this platform.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_LOWERED)
def test_the_operation_that_is_not_lowered(name):
    function, begins = NOT_LOWERED[name]
    traced = minijax.jit(function).trace(np.eye(4, dtype=np.float32))
    with pytest.raises(NotImplementedError, match=re.escape(begins)) as caught:
        traced.lower(lowering_platforms=("tpu",))
    place = re.search(r"the operation '(\w+)' at (\S+):(\d+):\d+ \(", str(caught.value))
    assert place[1] == name and place[2] == __file__, caught.value
    assert abs(int(place[3]) - function.__code__.co_firstlineno) < 2


def test_functions_of_the_package_that_are_not_compiled(monkeypatch):
    """No line of the user's made their operations: these are named alone."""
    traced = minijax.jit(minijax.lax.linalg.schur).trace(np.eye(4, dtype=np.float32))
    with pytest.raises(NotImplementedError, match=r"This is for the operation 'schur'\.$"):
        traced.lower(lowering_platforms=("tpu",))

    def fail(text, *args, **kwargs):
        line = next(i for i, each in enumerate(text.splitlines(), 1) if "stablehlo.fft" in each)
        raise minijax.errors.JaxRuntimeError(FAILURES["by its line"].format(line=line))

    lowered = minijax.jit(jnp.fft.fft).lower(np.ones(4, np.float32))
    monkeypatch.setattr(executables, "compile_module", fail)
    said = r"cannot compile the operation 'fft' of jit\(fft\) for"
    with pytest.raises(minijax.errors.JaxRuntimeError, match=said):
        lowered.compile()


def test_a_kernel_that_is_not_there():
    call = minijax.ffi.ffi_call("no_such_kernel", minijax.ShapeDtypeStruct((4,), np.float32))
    said = rf"no kernel 'no_such_kernel'.*cannot compile the operation 'jit\(<lambda>\)/ffi_call' at {__file__}"
    with pytest.raises(minijax.errors.JaxRuntimeError, match=said):
        minijax.jit(lambda x: call(x + 1))(np.ones(4, np.float32))


_WITH_LIBTPU = """
import minijax as m, numpy as np
from minijax.experimental import serialize_executable, topologies
try:
    topologies.get_topology_desc("v9z:2x2", "tpu")
except ValueError as error:
    print(error)
devices = topologies.get_topology_desc("v5e:2x2", "tpu").devices
where = m.sharding.SingleDeviceSharding(devices[0])
def lowered(f, *shapes, dtype="float32"):
    return m.jit(f).lower(*[m.ShapeDtypeStruct(s, dtype, sharding=where) for s in shapes])
product = lambda x, y: m.lax.dot(x, y, preferred_element_type="float32")
print(lowered(product, (3, 4), (4, 5), dtype="complex64").compile().out_info)
for put in (lambda: m.device_put(np.ones(4), where), lambda: m.numpy.zeros(4, device=devices[0])):
    try:
        put()
    except m.errors.JaxRuntimeError as error:
        print(error)
call = m.ffi.ffi_call("no_such_kernel", m.ShapeDtypeStruct((4,), "float32"))
try:
    lowered(lambda x: call(x), (4,)).compile()
except m.errors.JaxRuntimeError as error:
    print(error)
kept = serialize_executable.serialize(lowered(m.numpy.sin, (4,)).compile())
for options in ({}, {"execution_devices": devices[:1]}):
    try:
        serialize_executable.deserialize_and_load(*kept, **options)
    except m.errors.JaxRuntimeError as error:
        print(error)
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_with_the_compiler_of_tpus(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(_WITH_LIBTPU)
    own = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_PLATFORMS": "cpu"}
    paths = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, env={**os.environ, **own, "PYTHONPATH": paths}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for part in (
        "Invalid TPU external name: TPU v9z", "it knows v2:2x2", "(3, 5)",
        f"XLA cannot compile the operation 'ffi_call' at {script}:21:22 for 'TPU v5 lite'",
        "compiled for 'TPU v5 lite' and is loaded for 'cpu': load it where devices of the kind",
        "is loaded for 'TPU v5 lite' that is described and not attached",
    ):  # fmt: skip
        assert part in done.stdout
    assert done.stdout.count("no array can be put on 'TPU v5 lite'") == 2


def _three(x):
    kinds = [
        minijax.ShapeDtypeStruct(*kind)
        for kind in (((3,), np.float32), ((), bool), ((0,), np.int8))
    ]
    return minijax.pure_callback(print, kinds, x, x > 0)


def _in_order(x):
    minijax.debug.print("{}", x, ordered=True)
    return io_callback(np.asarray, x, x, ordered=True)


# What is sent and received, in order, and how many chains of tokens there are.
TRANSFERS = {
    "pure_callback": (_three, "send send recv recv", 1),
    "nothing": (lambda x: minijax.pure_callback(print, x[:0], x), "send", 1),
    "debug.print": (lambda x: (minijax.debug.print("{}", x), x)[1], "send recv", 1),
    "ordered": (_in_order, "send recv send recv", 2),  # debug and IO have a chain each
}


@pytest.mark.parametrize("name", TRANSFERS)
def test_calls_of_python_from_tpus(name, monkeypatch):
    """By transfers with the host, each over a channel of its own, as upstream's programs for TPUs."""
    function, wanted, chains = TRANSFERS[name]
    made = []
    monkeypatch.setattr(minijax.lax.callbacks, "host_transfers", lambda *about: made.append(about))
    lowered = minijax.jit(function).trace(np.ones(3, np.float32)).lower(lowering_platforms=("tpu",))
    text = lowered.as_text()
    lowered.compiler_ir()  # which reads it
    found = re.findall(
        r'"stablehlo.(send|recv)".*handle = (\d+), type = (\d)>, is_host_transfer = true', text
    )
    assert " ".join(kind for kind, _, _ in found) == wanted
    assert all(number == {"send": "2", "recv": "3"}[kind] for kind, _, number in found)
    channels = [channel for _, channel, _ in found]
    assert len(set(channels)) == len(channels)
    assert re.findall(r'rendezvous = "(\d+)"', text) == channels
    assert text.count("stablehlo.create_token") == chains
    told = [str(n) for about in made for n in (*about[4], *about[5])]
    assert told == channels


def test_calls_of_python_are_lowered_for_devices_that_make_them():
    traced = minijax.jit(lambda x: minijax.pure_callback(np.asarray, x, x)).trace(1.0)
    with pytest.raises(ValueError, match="the platform for the specified backend cpu is different"):
        traced.lower(lowering_platforms=("tpu",))


def test_ordered_calls_pass_a_token_along():
    text = minijax.jit(_in_order).lower(np.ones(3, np.float32)).as_text()
    calls = [line for line in text.splitlines() if "_cpu_callback" in line]
    assert len(calls) == 2 and all("(!stablehlo.token, " in line for line in calls)
