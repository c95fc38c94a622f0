"""Ragged exchanges, sending and receiving: `python -m tests.lax.test_exchange` runs over eight devices.

Upstream's CPU does not run them: values are compared with a NumPy model, and with upstream's what it
can say here: jaxprs, the text for other platforms, and errors.
"""

import json
import os
import re
import subprocess
import sys
import traceback

from tests.harness import upstream

if __name__ == "__main__":
    os.environ |= upstream.devices(8)

import jax
import numpy as np
import pytest

import minijax

pytestmark = pytest.mark.both_ends

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def test_programs_over_eight_devices():
    run = subprocess.run(
        [sys.executable, "-m", "tests.lax.test_exchange"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    results = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(results) >= 20
    wrong = {r["program"]: r["problem"] for r in results if r["problem"]}
    assert not wrong, "\n\n".join(f"{name}: {problem}" for name, problem in wrong.items())


# -- the model -----------------------------------------------------------------------------------------


class Problem:
    """Random slices between the positions of an axis; `arrays` are stacked by position."""

    def __init__(self, size, slices=2, row=(), dtype=np.float32, kind=np.int32, seed=0):
        rng = np.random.RandomState(seed)
        count = size * slices
        self.size, self.sizes = size, rng.randint(0, 4, (size, count))
        gaps = rng.randint(0, 2, (2, size, count))
        order = np.stack([rng.permutation(count) for _ in range(size)])
        # Slices lie apart at the sender, in any order, and at the receiver.
        self.starts = np.zeros((size, count), int)
        for sender in range(size):
            at = 0
            for k in order[sender]:
                self.starts[sender, k] = at
                at += self.sizes[sender, k] + gaps[0, sender, k]
        self.places = np.zeros((size, count), int)
        received = np.zeros((size, count), int)
        for receiver in range(size):
            at = 0
            for k in range(count):
                sender, here = k // slices, receiver * slices + k % slices
                self.places[sender, here] = at
                received[receiver, k] = self.sizes[sender, here]
                at += self.sizes[sender, here] + gaps[1, sender, here]
        self.slices = slices
        rows = 4 * count + 1
        values = lambda n: np.asarray(rng.randint(-3, 4, (size, n, *row))).astype(dtype)
        indices = (self.starts, self.sizes, self.places, received)
        self.arrays = [values(rows), values(rows + 3), *[x.astype(kind) for x in indices]]

    def result(self, operand, output):
        """What every position has afterwards."""
        out = np.array(output)
        for sender in range(self.size):
            for k, n in enumerate(self.sizes[sender]):
                to, at = self.places[sender, k], self.starts[sender, k]
                out[k // self.slices, to : to + n] = operand[sender, at : at + n]
        return out


def flat(x):
    return np.asarray(x).reshape(np.shape(x)[0] * np.shape(x)[1], *np.shape(x)[2:])


def exchange(m, axis="x", shape=(8,), names=("x",), **options):
    spec = m.sharding.PartitionSpec
    mesh = m.sharding.Mesh(np.array(m.devices()).reshape(shape), names)
    inner = lambda *args: m.lax.ragged_all_to_all(*args, axis_name=axis, **options)
    return m.shard_map(inner, mesh=mesh, in_specs=(spec(names),) * 6, out_specs=spec(names))


def check(problem, got):
    wanted = flat(problem.result(*problem.arrays[:2]))
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(np.asarray(got), wanted)


# -- values --------------------------------------------------------------------------------------------

_DTYPES = (
    np.float32, np.bool_, np.int8, np.complex64, "bfloat16", "float8_e4m3fn", "int4",
)  # fmt: skip
for _dtype in _DTYPES:

    def _(dtype=_dtype):
        problem = Problem(8, dtype=minijax.numpy.dtype(dtype), row=(3,), slices=1)
        check(problem, minijax.jit(exchange(minijax))(*map(flat, problem.arrays)))

    PROGRAMS[f"values {np.dtype(minijax.numpy.dtype(_dtype))}"] = _

for _label, _options in {
    "scalars": {},
    "one slice each": {"slices": 1},
    "matrices": {"row": (2, 3), "slices": 3},
    "unsigned places": {"kind": np.uint32},
    "small places": {"kind": np.int16},
    "empty rows": {"row": (0,)},
}.items():

    def _(options=_options):
        problem = Problem(8, **options)
        check(problem, minijax.jit(exchange(minijax))(*map(flat, problem.arrays)))

    PROGRAMS[f"values {_label}"] = _


@program
def wide_places():
    with minijax.enable_x64(True):
        problem = Problem(8, kind=np.int64, dtype=np.float64)
        check(problem, exchange(minijax)(*map(flat, problem.arrays)))


@program
def two_axes():
    problem = Problem(8)
    both = exchange(minijax, ("a", "b"), (4, 2), ("a", "b"))
    check(problem, minijax.jit(both)(*map(flat, problem.arrays)))


@program
def one_of_two_axes():
    """Pairs exchange among themselves; groups of positions do too."""
    parts = [Problem(2, slices=4, seed=seed) for seed in range(4)]
    arrays = [flat(np.concatenate(x)) for x in zip(*[p.arrays for p in parts], strict=True)]
    wanted = flat(np.concatenate([p.result(*p.arrays[:2]) for p in parts]))
    pairs = exchange(minijax, "b", (4, 2), ("a", "b"))
    np.testing.assert_array_equal(np.asarray(pairs(*arrays)), wanted)
    groups = exchange(minijax, axis_index_groups=[[0, 1], [2, 3], [4, 5], [6, 7]])
    np.testing.assert_array_equal(np.asarray(groups(*arrays)), wanted)


@program
def no_rows():
    problem = Problem(8, row=(2,))
    arrays = list(map(flat, problem.arrays))
    out = exchange(minijax)(arrays[0], arrays[1][:0], *arrays[2:])
    assert out.shape == (0, 2)
    nothing = [np.zeros_like(x) for x in arrays[2:]]
    out = exchange(minijax)(arrays[0][:0], arrays[1], *nothing)
    np.testing.assert_array_equal(np.asarray(out), arrays[1])


@program
def derivatives():
    problem = Problem(8, row=(2,))
    operand, output, *indices = map(flat, problem.arrays)
    rng = np.random.RandomState(1)
    move, shift = rng.randn(*operand.shape), rng.randn(*output.shape)
    weights = np.asarray(rng.randn(*output.shape), np.float32)
    f = lambda a, b: exchange(minijax)(a, b, *indices)
    tangents = [np.asarray(x, np.float32) for x in (move, shift)]
    _, moved = minijax.jvp(f, (operand, output), tuple(tangents))
    split = [x.reshape(8, -1, 2) for x in tangents]
    np.testing.assert_array_equal(np.asarray(moved), flat(problem.result(*split)))
    for run in (lambda g: g, minijax.jit):
        loss = run(minijax.grad(lambda a, b: (f(a, b) * weights).sum(), (0, 1)))
        found = loss(operand, output)
        inner = sum((np.asarray(g) * t).sum() for g, t in zip(found, tangents, strict=True))
        np.testing.assert_allclose(inner, (np.asarray(moved) * weights).sum(), rtol=1e-3)
    alone = minijax.grad(lambda a: (f(a, output) * weights).sum())(operand)
    np.testing.assert_array_equal(np.asarray(alone), np.asarray(found[0]))
    alone = minijax.grad(lambda b: (f(operand, b) * weights).sum())(output)
    np.testing.assert_array_equal(np.asarray(alone), np.asarray(found[1]))


@program
def batches():
    parts = [Problem(8, seed=seed) for seed in range(3)]
    arrays = [np.stack([flat(p.arrays[i]) for p in parts]) for i in range(6)]
    wanted = np.stack([flat(p.result(*p.arrays[:2])) for p in parts])
    got = minijax.vmap(exchange(minijax))(*arrays)
    np.testing.assert_array_equal(np.asarray(got), wanted)
    last = [np.moveaxis(x, 0, -1) for x in arrays]
    got = minijax.vmap(exchange(minijax), in_axes=-1, out_axes=1)(*last)
    np.testing.assert_array_equal(np.asarray(got), np.moveaxis(wanted, 0, 1))
    same = [flat(x) for x in parts[0].arrays]
    for place in range(6):  # upstream does not batch one operand alone
        axes = [0 if i == place else None for i in range(6)]
        some = [np.stack([x, x]) if i == place else x for i, x in enumerate(same)]
        got = minijax.vmap(exchange(minijax), in_axes=axes)(*some)
        np.testing.assert_array_equal(np.asarray(got), np.stack([wanted[0], wanted[0]]))


# -- against upstream ------------------------------------------------------------------------------


def arrays_of(m):
    return [m.numpy.asarray(flat(x)) for x in Problem(8, row=(3,)).arrays]


@program
def jaxprs():
    for options in ({}, {"axis_index_groups": [[0, 1, 2, 3], [4, 5, 6, 7]]}):
        ours, theirs = (
            str(m.make_jaxpr(exchange(m, **options))(*arrays_of(m))) for m in (minijax, jax)
        )
        assert ours == theirs, (ours, theirs)
    moved = lambda m: m.make_jaxpr(
        lambda a, b, *rest: m.jvp(lambda a, b: exchange(m)(a, b, *rest), (a, b), (a, b))
    )(*arrays_of(m))
    assert str(moved(minijax)) == str(moved(jax))


def calls(m, f, args, platform, words):
    lowered = m.jit(f).trace(*args).lower(lowering_platforms=(platform,))
    return [
        re.sub(r"%[\w#]+", "%", line.strip())
        for line in lowered.as_text().splitlines()
        if any(word in line for word in words)
    ]


@program
def texts():
    for platform in ("tpu", "cuda"):
        for options in ({}, {"axis_index_groups": [[0, 1, 2, 3], [4, 5, 6, 7]]}):
            ours, theirs = (
                calls(m, exchange(m, **options), arrays_of(m), platform, ["custom_call"])
                for m in (minijax, jax)
            )
            assert ours == theirs and len(ours) == 1, (ours, theirs)


RING = [(i, (i + 1) % 8) for i in range(8)]


def ring(m, perm=RING, ends=True):
    spec = m.sharding.PartitionSpec("x")
    mesh = m.sharding.Mesh(np.array(m.devices()), ("x",))

    def part(x):
        token = m.lax.psend(x, "x", perm)
        out = m.lax.precv(token, m.ShapeDtypeStruct(x.shape, x.dtype), "x", perm)
        return m.lax.add(x, out)

    return m.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=ends)


@program
def sending():
    x = np.arange(16, dtype=np.float32)
    for perm in (RING, [(0, 1)], [(0, 1), (2, 3)]):
        for ends in (True, False):
            ours, theirs = (str(m.make_jaxpr(ring(m, perm, ends))(x)) for m in (minijax, jax))
            assert ours == theirs, (ours, theirs)
        words = ["stablehlo.send", "stablehlo.recv", "create_token"]
        ours, theirs = (calls(m, ring(m, perm), (x,), "cuda", words) for m in (minijax, jax))
        assert len(ours) == 3
        shown = [re.sub(r"handle = \d+", "", line) for line in ours]
        assert shown == [re.sub(r"handle = \d+", "", line) for line in theirs], (ours, theirs)


REFUSED = {
    "send on a CPU": lambda m: m.jit(ring(m)).lower(np.ones(8)),
    "send on a TPU": lambda m: m.jit(ring(m)).trace(np.ones(8)).lower(lowering_platforms=("tpu",)),
    "derivative of send": lambda m: m.jvp(ring(m), (np.ones(8),), (np.ones(8),)),
    "send, unbound": lambda m: m.lax.psend(np.ones(8), "x", RING),
    "receive without a token": lambda m: m.lax.precv(None, np.ones(2), "x", RING),
    "receive a tree": lambda m: m.vmap(
        lambda x: m.lax.precv(m.lax.create_token(), {"a": x}, "x", RING), axis_name="x"
    )(np.ones(8)),
    "exchange, unbound": lambda m: m.lax.ragged_all_to_all(*arrays_of(m), axis_name="x"),
    "exchange in vmap": lambda m: m.vmap(
        lambda *args: m.lax.ragged_all_to_all(*args, axis_name="x"), axis_name="x"
    )(*[x.reshape(8, -1, *x.shape[1:]) for x in arrays_of(m)]),
    "float offsets": lambda m: with_place(m, 2, lambda x: x.astype("float32")),
    "boolean sizes": lambda m: with_place(m, 3, lambda x: x > 0),
    "offsets of a matrix": lambda m: with_place(m, 4, lambda x: x[:, None]),
    "no sizes": lambda m: with_place(m, 5, lambda x: x[:0]),
    "a list": lambda m: with_place(m, 0, lambda x: [1.0, 2.0]),
}


def with_place(m, place, change):
    arrays = arrays_of(m)
    arrays[place] = change(arrays[place])
    return m.make_jaxpr(exchange(m))(*arrays)


@program
def refusals():
    for name, call in REFUSED.items():
        kinds = []
        for m in (minijax, jax):
            try:
                call(m)
                kinds.append(None)
            except Exception as error:
                kinds.append(next(k for k in type(error).__mro__ if k.__module__ == "builtins"))
        assert kinds[0] is not None and issubclass(kinds[0], kinds[1]), (name, kinds)


@program
def clearer_refusals():
    """What upstream leaves to the compiler is refused where it is written."""
    rows = arrays_of(minijax)
    for place, change in ((0, lambda x: x[:, :2]), (1, lambda x: x.astype("int32"))):
        with pytest.raises(ValueError, match="must be alike"):
            with_place(minijax, place, change)
    with pytest.raises(ValueError, match="of one length"):
        exchange(minijax)(*rows[:5], np.zeros(8, np.int32))


def test_an_abstract_mesh_is_lowered_for_the_devices_that_there_are():
    """A program over four devices, lowered where there is one, keeps its parts."""

    def text(m):
        mesh = m.sharding.AbstractMesh((4,), ("i",), axis_types=(m.sharding.AxisType.Auto,))
        spec = m.sharding.PartitionSpec
        f = m.shard_map(
            lambda x: m.lax.psum(x, "i"), mesh=mesh, in_specs=spec("i"), out_specs=spec()
        )
        lowered = m.jit(f).lower(np.ones((8, 2), np.float32)).as_text()
        parts = [line.strip() for line in lowered.splitlines() if "manual" in line]
        return parts, lowered.count("stablehlo.all_reduce")

    assert text(minijax) == text(jax)


def main(chosen):
    for name, run in PROGRAMS.items():
        if chosen not in name:
            continue
        try:
            run()
            problem = None
        except Exception:
            problem = traceback.format_exc(limit=4)
        print(json.dumps({"program": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
