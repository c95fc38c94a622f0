"""Programs compiled ahead of time for chips that are not here, by minijax and by upstream,
compared.

    python -m tests.accelerators TARGET [--part K/N] [--match REGEX] [--out FILE.json]

TARGET is `tpu` (a v5e of four chips), `tpu-v5p`, or `cuda` (four H100, described in the file that
ACCELERATOR_CONFIG names). It needs libtpu, or NVIDIA's plug-in and compiler: `make accelerators`
installs them. Each library runs in a process of its own. A file that `--out` names keeps what was
measured, so that parts which are run one by one end in the table of all.
"""

import argparse
import collections
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
import warnings

import numpy as np

from tests.cases.platform_programs import ROWS, grad_of, mapped, types_of

TOPOLOGIES = {
    "tpu": {"platform": "tpu", "topology_name": "v5e:2x2"},
    "tpu-v5p": {"platform": "tpu", "topology_name": "v5p:2x2x1"},
    "cuda": {"platform": "cuda", "topology_name": "", "topology": "1x1x4"},
}
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "TPU_STDERR_LOG_LEVEL": "4", "TF_CPP_MIN_LOG_LEVEL": "3",
}  # fmt: skip
COLLECTIVE = re.compile(
    r" (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)(?:-start)?\("
)
MEASURES = ("flops", "bytes accessed", "temporaries", "optimal_seconds")

# Why a program costs more than 1.1 of upstream's, or has no counterpart: a target, a pattern of names.
REASONS = [
    ("tpu-v5p", "debug.callback ordered",
     "one copy of three numbers more, whose token upstream takes as an argument"),
    ("tpu.*", "lu_pivots_to_permutation", "one gather where upstream has two, of a few numbers"),
    ("tpu.*", "numpy.linalg.slogdet", "eleven operations more on scalars of each matrix"),
    ("tpu.*", "lu grad c64",
     "0.90 of upstream's FLOPs, but that both products compute the sign which they multiply by"),
    ("tpu.*", "betainc", "0.53 of upstream's bytes and of its estimated time"),
    ("tpu.*", "random.randint", "equal FLOPs and bytes, and one more buffer of two numbers, of 31.5 KiB"),
    ("tpu.*", "tridiagonal_solve", "no more FLOPs and bytes, and three small buffers of 31.5 KiB each"),
    ("tpu.*", "eigh c64.300", "0.84 of upstream's FLOPs and 0.81 of its bytes, for 1.6 MiB more"),
    ("tpu.*", "svd.*f32.0,4", "nothing is computed: an identity of four rows is written"),
    ("tpu-v5p", r"4x layer grad (f32|bf16) \('-x', '(x-|--)'\)",
     "fewer bytes and less estimated time; a product and the result do not share memory"),
    ("tpu-v5p", "(numpy.linalg.)?qr.* f32.5,4", "fewer FLOPs, and three small buffers of 32 KiB each"),
    ("tpu-v5p", "qr grad c64", "0.97 of upstream's bytes"),
    ("tpu-v5p", "BCSR todense", "one small buffer more, of 42 KiB"),
    ("tpu-v5p", "cholesky grad c64", "0.97 of upstream's bytes, 0.92 of its temporaries"),
    ("tpu-v5p", "eigh grad|numpy.linalg.inv", "fewer FLOPs and bytes, and one or two buffers of 32 KiB"),
    ("tpu-v5p", "eigh vmap f32.2,300,300", "0.84 of upstream's FLOPs and of its bytes"),
    ("tpu.*", "igamma|random_gamma_grad", "the expansion from 1e4 on, beside loops of which one step is counted"),
    ("tpu.*", "sign c64", "two divisions by the length, which gradients of abs share: 0.49 of those FLOPs"),
    ("tpu", "stft", "no more FLOPs and bytes, and one more buffer of 32 KiB"),
    ("tpu.*", "while vmap", "the predicate is carried: computed once a step, where upstream's is twice"),
    ("cuda", "max pool jvp bf16|tridiagonal_solve.*f32.2,3", "528 and 2,817 bytes"),
    ("cuda", "while vmap", "the predicate is carried, computed once a step: 784 bytes in all"),
]  # fmt: skip

# -- programs of derivatives, loops and branches, which no platform has a kernel for -----------------


def _module(m, name):
    return importlib.import_module(f"{m.__name__}.{name}")


def _toeplitz(m, c, x):
    return _module(m, "scipy.linalg").toeplitz(c) @ x


def _until_large(m, x):
    return m.vmap(lambda x: m.lax.while_loop(lambda y: y.sum() < 99, lambda y: 2 * y + 1, x))(x)


def _branches(m, x):
    return m.lax.cond(x.sum() > 0, lambda x: m.numpy.sin(x) * m.numpy.cos(x), lambda x: x**2, x)


def _layers(m, w, x):
    return m.lax.scan(lambda h, w: (m.numpy.tanh(w @ h), h), x, w)[0]


TRANSFORMED = [
    ("toeplitz product", _toeplitz, "f32[64] f32[64,8]"),
    ("while vmap", _until_large, "f32[8,16]"),
    ("cond grad", grad_of(_branches), "f32[300]"),
    ("cond vmap", mapped(_branches), "f32[8,300]"),
    ("cond vmap grad", grad_of(mapped(_branches)), "f32[8,300]"),
    ("scan grad", grad_of(_layers), "f32[5,64,64] f32[64]"),
    ("scan vmap grad", grad_of(mapped(_layers)), "f32[8,5,64,64] f32[8,64]"),
    ("hessian", lambda m, w, x: m.hessian(lambda x: (m.numpy.tanh(w @ x) ** 2).sum())(x),
     "f32[64,64] f32[64]"),
    ("median", lambda m, x: m.numpy.median(x, 1), "f32[64,256]"),
    ("median bf16", lambda m, x: m.numpy.median(x, 1), "bf16[64,256]"),
    ("stft", lambda m, x: _module(m, "scipy.signal").stft(x)[2], "f32[4096]"),
    ("logical reductions", lambda m, x: [
        getattr(m.lax, f"reduce_{op}")(x > 0, (0,)) for op in ("and", "or", "xor")], "f32[64,64]"),
]  # fmt: skip

# -- programs over four devices --------------------------------------------------------------------


def _mapped(f, ins, outs, check=True):
    """A function of a mesh's axis `x`, within shard_map; specs are strings of axes, `-` for none."""

    def run(m, mesh, *xs):
        return m.shard_map(
            lambda *xs: f(m, *xs), mesh=mesh, in_specs=tuple(_spec(m, s) for s in ins),
            out_specs=_spec(m, outs), check_vma=check,
        )(*xs)  # fmt: skip

    return run


def _spec(m, text):
    return m.sharding.PartitionSpec(*[None if c == "-" else c for c in text])


def _auto(f):
    return lambda m, mesh, *xs: f(m, *xs)


def _grad(f):
    return lambda m, mesh, *xs: m.grad(lambda *ys: f(m, mesh, *ys).sum())(*xs)


def _layer(m, x, w):
    return m.nn.softmax(m.numpy.tanh(x @ w))


SHARDED = []
for _kind in ("f32", "bf16"):
    for _specs in (
        ("x-", "--"),
        ("--", "-x"),
        ("-x", "x-"),
        ("x-", "x-"),
        ("x-", "-x"),
        ("-x", "--"),
    ):
        _types = f"{_kind}[256,512] {_kind}[512,128]"
        SHARDED.append((f"matmul {_kind} {_specs}", _auto(lambda m, x, w: x @ w), _types, _specs))
        SHARDED.append((f"layer {_kind} {_specs}", _auto(_layer), _types, _specs))
        SHARDED.append((f"layer grad {_kind} {_specs}", _grad(_auto(_layer)), _types, _specs))
for _name, _f in {
    "sum": lambda m, x: x.sum(), "mean 0": lambda m, x: x.mean(0), "sort": lambda m, x: m.numpy.sort(x, 0),
    "cumsum": lambda m, x: m.numpy.cumsum(x, 0), "transpose": lambda m, x: x.T * 2,
    "argmax": lambda m, x: m.numpy.argmax(x, 0), "roll": lambda m, x: m.numpy.roll(x, 1, 0),
    "cholesky": lambda m, x: m.numpy.linalg.cholesky(x @ x.T + 300 * m.numpy.eye(256)),
    "batched cholesky": lambda m, x: m.lax.linalg.cholesky(x.reshape(16, 64, 64)),
    "batched qr": lambda m, x: m.numpy.linalg.qr(x.reshape(16, 64, 64)),
    "batched lu": lambda m, x: m.lax.linalg.lu(x.reshape(16, 64, 64)),
}.items():  # fmt: skip
    SHARDED.append((f"auto {_name}", _auto(_f), "f32[256,256]", ("x-",)))
for _name, _f, _outs in (
    ("psum", lambda m, x: m.lax.psum(x, "x"), "--"), ("pmax", lambda m, x: m.lax.pmax(x, "x"), "--"),
    ("all_gather", lambda m, x: m.lax.all_gather(x, "x", tiled=True), "x-"),
    ("psum_scatter", lambda m, x: m.lax.psum_scatter(x, "x", tiled=True), "x-"),
    ("ppermute", lambda m, x: m.lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]), "x-"),
    ("all_to_all", lambda m, x: m.lax.all_to_all(x, "x", 1, 0, tiled=True), "x-"),
    ("axis_index", lambda m, x: x + m.lax.axis_index("x"), "x-"),
    ("array within", lambda m, x: x * m.numpy.array([1.0, 2.0] * 128), "x-"),
    ("cond", lambda m, x: m.lax.cond(m.lax.axis_index("x") == 0, lambda x: x * 2, m.numpy.sin, x), "x-"),
    ("qr within", lambda m, x: m.numpy.linalg.qr(x)[1], "x-"),
    ("eigh within", lambda m, x: m.numpy.linalg.eigh(x[:, :64])[0], "x"),
):  # fmt: skip
    SHARDED.append((f"shard_map {_name}", _mapped(_f, ("x-",), _outs), "f32[256,256]", ("x-",)))
    if _name in ("psum", "ppermute", "psum_scatter", "all_to_all", "cond"):
        _g = _grad(_mapped(lambda m, x, f=_f: m.numpy.sin(f(m, x)), ("x-",), _outs))
        SHARDED.append((f"shard_map {_name} grad", _g, "f32[256,256]", ("x-",)))

# -- one library -------------------------------------------------------------------------------------


def _temporaries(executable):
    stats = executable.memory_analysis()
    return None if stats is None else stats.temp_size_in_bytes


def _measured(m, jitted, args):
    began = time.perf_counter()
    try:
        lowered = jitted.lower(*args)
        compiled = lowered.compile()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    text = compiled.as_text()
    found = compiled.cost_analysis() or {}
    return {
        "seconds": time.perf_counter() - began,
        "collectives": sorted(COLLECTIVE.findall(text)),
        "calls": sorted(re.findall(r'custom_call_target="([^"]+)"', text)),
        "temporaries": _temporaries(compiled),
        **{name: found.get(name) for name in MEASURES if name != "temporaries"},
    }


def work(library, target, part, match, skip):
    """Compile the programs, and print a line of JSON for each."""
    m = __import__(library)
    topologies = __import__(f"{library}.experimental.topologies", fromlist=["make_mesh"])
    options = dict(TOPOLOGIES[target])
    if target == "cuda":
        with open(os.environ["ACCELERATOR_CONFIG"]) as file:
            options["target_config"] = file.read()
    topology = topologies.get_topology_desc(**options)
    one = m.sharding.SingleDeviceSharding(topology.devices[0])
    mesh = topologies.make_mesh(topology, (4,), ("x",))
    warnings.simplefilter("ignore")

    def struct(spec, where):
        return m.ShapeDtypeStruct(*spec, sharding=where)

    programs = []
    for name, function, types in ROWS + TRANSFORMED:
        args = [struct(spec, one) for spec in types_of(types)]
        programs.append((name, lambda *xs, f=function: f(m, *xs), args))
    for name, function, types, specs in SHARDED:
        args = [
            struct(spec, m.sharding.NamedSharding(mesh, _spec(m, axes)))
            for spec, axes in zip(types_of(types), specs, strict=True)
        ]
        programs.append((f"4x {name}", lambda *xs, f=function: f(m, mesh, *xs), args))
    which, parts = map(int, part.split("/"))
    chosen = [row for row in programs[which - 1 :: parts] if re.search(match, row[0])]
    for name, function, args in chosen[skip:]:
        print(json.dumps({"began": name}), flush=True)
        print(json.dumps({"name": name, **_measured(m, m.jit(function), args)}), flush=True)


# -- both --------------------------------------------------------------------------------------------


def run(library, options):
    """What a library made of each program; one that ends the compiler's process is an error."""
    found, skip = {}, 0
    while True:
        command = [sys.executable, "-m", "tests.accelerators", options.target]
        command += ["--library", library, "--part", options.part]
        command += ["--match", options.match, "--skip", str(skip)]
        done = subprocess.run(
            command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True,
            stderr=None if options.verbose else subprocess.DEVNULL,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        began = [line["began"] for line in lines if "began" in line]
        rows = [line for line in lines if "name" in line]
        found |= {row.pop("name"): row for row in rows}
        if not done.returncode or not began:
            return found
        if len(began) > len(rows):
            found[began[-1]] = {"error": f"ended the process with status {done.returncode}"}
        skip += len(began)


def reason(target, name):
    """Why a program may cost more than upstream's, None if nothing is known."""
    return next(
        (why for targets, names, why in REASONS
         if re.fullmatch(targets, target) and re.match(names, name)), None,
    )  # fmt: skip


def _more(a, b):
    """What a program costs above upstream's by more than a tenth, and what it has besides."""
    notes = []
    for measure in MEASURES:
        x, y = a[measure], b[measure]
        if (y or 0) >= 0 and (x or 0) > 1.1 * (y or 0):  # below zero: not estimated
            notes.append(f"{measure} {x / y:.2f}" if y else f"{measure} {x:g} from nothing")
    for what in ("collectives", "calls"):
        besides = collections.Counter(a[what]) - collections.Counter(b[what])
        besides.pop("AllocateBuffer", None)  # the compiler's own, in loops
        if besides:
            notes.append(f"{what} {sorted(besides.elements())} besides")
    return notes


def table(target, ours, theirs):
    """Print where ours is more than upstream's, with the reason, and the summary."""
    ratios = {name: [] for name in MEASURES}
    counts = dict.fromkeys(("both", "ours only", "upstream only", "neither"), 0)
    unexplained = 0
    for name in theirs:
        a, b = ours.get(name, {"error": "not reached"}), theirs[name]
        failed = ("error" in a, "error" in b)
        kind = {(False, False): "both", (False, True): "ours only", (True, False): "upstream only",
                (True, True): "neither"}[failed]  # fmt: skip
        counts[kind] += 1
        notes = _more(a, b) if kind == "both" else []
        if kind == "upstream only":
            notes = [a["error"].splitlines()[0][:200]]
        if notes:
            why = reason(target, name)
            unexplained += why is None
            print(f"{name}: {'; '.join(notes)[:300]} ({why or 'no reason is known'})")
        for measure in MEASURES:
            if kind == "both" and all(x[measure] and x[measure] > 0 for x in (a, b)):
                ratios[measure].append(a[measure] / b[measure])
    print(", ".join(f"{kind}: {count}" for kind, count in counts.items()))
    for measure, found in ratios.items():
        if found:
            mean = math.exp(np.mean(np.log(found)))
            print(f"{measure}: mean ratio {mean:.3f}, worst {max(found):.2f}, of {len(found)}")
    print(f"programs above 1.1 with no known reason: {unexplained}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TOPOLOGIES)
    parser.add_argument("--part", default="1/1", help="K/N: every Nth program, from the Kth on")
    parser.add_argument("--match", default="", help="a pattern of names")
    parser.add_argument("--library", help="compile with this one alone, and print JSON")
    parser.add_argument("--skip", type=int, default=0, help="programs that were compiled before")
    parser.add_argument(
        "--out", help="a file of everything that was measured, to which this is added"
    )
    parser.add_argument("--verbose", action="store_true", help="show what the compilers log")
    options = parser.parse_args()
    if options.library:
        return work(options.library, options.target, options.part, options.match, options.skip)
    found = {library: {} for library in ("minijax", "jax")}
    if options.out and os.path.exists(options.out):
        with open(options.out) as file:
            found = json.load(file)
    for library, rows in found.items():
        rows |= run(library, options)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(found, file)
    table(options.target, found["minijax"], found["jax"])


if __name__ == "__main__":
    main()
