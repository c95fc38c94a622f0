"""The differential tester: its programs, its judgement, and planted faults that it must find."""

import dataclasses
import functools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import minijax
from minijax import difftest
from minijax import numpy as jnp
from minijax.core.primitive import all_primitives
from minijax.difftest import coverage, faults, signatures
from minijax.difftest.comparing import Tolerance, compare
from minijax.difftest.programs import Call, Function, Type, Value
from minijax.difftest.running import Leaf, Outcome, library
from minijax.difftest.scripts import read
from minijax.difftest.triage import triaged

ROOT = pathlib.Path(__file__).resolve().parent.parent

FIRST = """\
def program(jax, v0):
    jnp, lax, P = jax.numpy, jax.lax, jax.P
"""


def handmade(lines, arguments, mode="composed", operations=("handmade",)):
    """A program that is given as text."""
    body = FIRST.replace("v0", ", ".join(f"v{i}" for i in range(len(eval(arguments, SPACE)))))
    text = body + "".join(f"    {line}\n" for line in lines)
    main = difftest.generate(0, 0).main
    return difftest.Program(main, (), mode=mode, source=(text, arguments, operations))


SPACE = {"np": np, "array": np.array}


def calls(*rows, values=((3,),)):
    """A program of generated form: a chain of calls, each of the one before."""
    inputs = tuple((f"v{i}", Type(shape, "float32")) for i, shape in enumerate(values))
    data = tuple(
        Value(kind, tuple(str(0.5 + 0.25 * i) for i in range(kind.size))) for _, kind in inputs
    )
    body = []
    last = "v0"
    for number, row in enumerate(rows, len(values)):
        template, operation, functions = (*row, ())[:3]
        kind = Type(values[0], "float32")
        body.append(
            Call(f"v{number}", template, (last,), functions, operation, ((f"v{number}", kind),))
        )
        last = f"v{number}"
    return difftest.Program(Function("program", inputs, tuple(body), (last,)), data)


def test_a_seed_names_a_program_in_every_process():
    program = "from minijax import difftest as d; " + "; ".join(
        f"p = d.generate({seed}, {number}, {mode!r}); print(d.text(p), d.arguments_text(p), p.x64)"
        for seed, number, mode in ((0, 3, "composed"), (7, 5, "single"), (1, 2, "abstract"))
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1 and "def program" in texts.pop()


def test_upstream_is_imported_when_it_is_asked_for():
    program = (
        "import sys; from minijax import difftest; p = difftest.generate(0, 1)\n"
        "difftest.run(p, 'minijax', 'abstract'); assert 'jax' not in sys.modules\n"
        "difftest.run(p, 'jax', 'abstract'); assert 'jax' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_signatures_name_public_functions():
    names = [row.operation for row in signatures.functions()]
    assert len(names) == len(set(names)) and len(names) >= 500
    heads = {"jnp": minijax.numpy, "lax": minijax.lax, "jax": library("minijax")}
    for name in names:
        head, *rest = name.split(".")
        assert not rest or callable(functools.reduce(getattr, rest, heads[head])), name


def leaf(array, weak=False):
    array = np.asarray(array)
    return Outcome((Leaf("", array.shape, str(array.dtype), weak, array),), "*")


ONE = np.float32(1)


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (leaf([1.0]), leaf([1.0]), None),
        (leaf([1.0]), leaf([[1.0]]), "shape"),
        (leaf([1.0]), leaf(np.float32([1.0])), "dtype"),
        (leaf(ONE, True), leaf(ONE), "weak type"),
        (leaf([1, 2]), leaf([1, 3]), "integer"),
        (leaf(ONE), leaf(ONE + 2 * np.finfo("float32").eps), None),
        (leaf(ONE), leaf(ONE + 9 * np.finfo("float32").eps), "value"),
        (leaf([np.nan]), leaf([np.nan]), None),
        (leaf([np.inf]), leaf([-np.inf]), "special"),
        (Outcome(error=("TypeError",)), leaf(1), "refusal"),
        (Outcome(error=("TypeError",)), Outcome(error=("ValueError",)), "error"),
        (Outcome(error=("My", "TypeError")), Outcome(error=("TypeError", "Exception")), None),
    ],
)
def test_comparing(ours, theirs, kind):
    found = compare(ours, theirs, Tolerance(ulps=4.0, elementwise=True))
    assert (found and found.kind) == kind


# -- planted faults --------------------------------------------------------------------------------


def wrong(rule, change):
    return lambda *args, **params: change(rule(*args, **params))


FAULTS = {
    "a sign in a derivative": (
        "sin", "rule_jvp", lambda out: (out[0], minijax.lax.neg(out[1])),
        [("jnp.sin(A)", "jnp.sin"), ("jax.vmap(jax.grad(jnp.cos))(A)", "vmap"),
         ("jax.jvp(jnp.sin, (A,), (jnp.ones_like(A),))[1]", "jvp"), ("jnp.exp(A)", "jnp.exp")],
        "value", "jvp",
    ),
    "a dtype": (
        "floor", "rule_shape", lambda aval: aval.update(dtype=np.dtype("float16")),
        [("jnp.sin(A)", "jnp.sin"), ("jax.jit(jnp.floor)(A)", "jit"), ("A.mT", "mT")][:2],
        "dtype", "jit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found_and_shrunk(name, monkeypatch):
    primitive, slot, change, rows, kind, operation = FAULTS[name]
    program = calls(*rows)
    assert difftest.judge(program) is None
    primitive = all_primitives[primitive]
    monkeypatch.setattr(primitive, slot, wrong(getattr(primitive, slot), change))
    minijax.clear_caches()
    try:
        found = difftest.judge(program)
        assert found is not None and found.difference.kind == kind, found
        small = difftest.shrink(found)
        assert small.program.operations() == (operation,)
        assert sum(1 for _ in small.program.main.calls()) == 1
    finally:
        monkeypatch.undo()
        minijax.clear_caches()
    assert difftest.judge(small.program) is None


def test_a_wrong_error_is_found(monkeypatch):
    program = calls(("jnp.reshape(A, (7,))", "jnp.reshape"))
    assert difftest.judge(program) is None

    def refuse(*args, **params):
        raise RuntimeError("no")

    monkeypatch.setattr(minijax.numpy, "reshape", refuse)
    found = difftest.judge(program)
    assert found.difference.kind == "error" and "RuntimeError" in found.difference.detail


def test_an_ill_conditioned_program_is_no_difference():
    lines = ["v1 = jnp.sum(jnp.sin(1e6 * v0)) - 1.0", "return v1 * 1e3"]
    program = handmade(lines, '(array([1.2345, 2.5], "float32"),)')
    ours = difftest.run(program, "minijax")
    moved = dataclasses.replace(
        ours.leaves[0], array=ours.leaves[0].array * np.float32(1.05) + np.float32(3)
    )
    theirs = dataclasses.replace(ours, leaves=(moved,))
    difference = compare(ours, theirs)
    assert difference.kind == "value"
    finding = difftest.Finding(program, difference, ours, theirs)
    assert triaged(finding, Tolerance()).verdict == "ill-conditioned"


def test_the_hunt_finds_listed_faults():
    first = {f.primitive: f for f in reversed(faults.faults())}
    rows = [first[name] for name in ("mul", "dot_general", "and")]
    only = ("jnp.multiply", "jnp.dot", "jnp.logical_and", "grad", "vmap", "jit")
    for score in faults.hunt(rows, count=150, profile=difftest.Profile(only=only)):
        assert score.finding is not None and 1 <= score.reached <= score.tried <= 150, score


def test_faults_are_of_rules_that_exist():
    rows = faults.faults()
    assert len(rows) == len(set(rows)) >= 120
    for row in rows:
        assert callable(faults.wrong(row)), row


def test_coverage_tells_the_rules_that_ran():
    program = calls(("jax.vmap(jax.grad(jnp.sin))(A)", "vmap"))
    cells = coverage.cells_of(program)
    assert {("sin", "shape"), ("sin", "jvp"), ("mul", "transpose"), ("cos", "lower")} <= cells
    table = coverage.Table([cells])
    assert table.counts["sin", "jvp"] == 1 and ("tan", "jvp") in table.never()
    assert "sin" in str(table)


# -- functions of users ----------------------------------------------------------------------------

SCALE = jnp.arange(3.0)


@minijax.jit
def scaled(x):
    return jnp.tanh(SCALE * x)


def network(tree, count):
    x = minijax.lax.fori_loop(0, 2, lambda i, c: scaled(c) + 0.1 * i, tree["x"])
    return {"x": x, "loss": jnp.sum(x * x), "count": count + 1}


def test_check_of_a_good_function():
    report = difftest.check(network, {"x": np.float32([0.1, 0.2, 0.3])}, np.int32(1))
    assert report and {c.oracle for c in report.checks} >= {
        "upstream", "eager", "loop", "jvp", "jvp transposed", "finite differences",
    }, report  # fmt: skip


def test_check_of_a_wrong_rule():
    @minijax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * jnp.sin(primals[0])))
    report = difftest.check(lambda x: 2 * f(x), np.float32(0.3))
    found = {(c.transform, c.oracle) for c in report.findings}
    assert not report and {("jvp", "finite differences"), ("vjp", "upstream")} <= found
    assert "DIFFERS" in str(report) and "differs" in report._repr_html_()


# -- files and processes ---------------------------------------------------------------------------


def test_a_script_runs_alone_and_is_read_back(tmp_path):
    program = calls(("jnp.reshape(A, (7,))", "jnp.reshape"))
    ours, theirs = difftest.run(program, "minijax"), Outcome()
    finding = difftest.Finding(program, compare(ours, theirs), ours, theirs)
    path = tmp_path / "finding.py"
    path.write_text(difftest.script(finding))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("minijax: raised TypeError") and "no difference" in done.stdout
    assert difftest.replayed(path) == 0


FINDINGS = sorted((ROOT / "examples" / "upstream_findings").glob("*.py"))
FIXED = sorted((ROOT / "tests" / "difftest_corpus").glob("*.py"))


@pytest.mark.parametrize("path", FINDINGS + FIXED, ids=lambda path: path.stem)
def test_corpus(path):
    """What is upstream's still differs in the same kind; what was ours does not."""
    program, kind = read(path)
    found = difftest.judge(program, True)
    if path in FIXED:
        assert found is None, found
    else:
        assert found is not None and found.difference.kind == kind, found


def test_fuzzing_resumes_from_its_journal(tmp_path):
    plan = difftest.Plan({"abstract": 4}, seed=3, shrinking=1.0)
    first = difftest.fuzz(plan, tmp_path)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert sorted(json.loads(line)["number"] for line in lines) == [0, 1, 2, 3]
    journal.write_text("\n".join(lines[:3]) + '\n{"mode": "abs')  # killed while it wrote
    again = difftest.fuzz(plan, tmp_path)
    assert sum(again.done.values()) == 4 and again.done.keys() == first.done.keys()
