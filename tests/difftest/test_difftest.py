"""The differential tester: its programs, its judgement, and planted faults that it must find."""

import ast
import collections
import contextlib
import dataclasses
import functools
import importlib.util
import inspect
import json
import operator
import os
import pathlib
import runpy
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest

import minijax
from minijax import difftest
from minijax import numpy as jnp
from minijax.core.primitive import all_primitives
from minijax.difftest import coverage, faults, known, report, signatures, witness
from minijax.difftest.comparing import Difference, Tolerance, compare
from minijax.difftest.differences import Differences
from minijax.difftest.fuzzing import variables
from minijax.difftest.programs import Call, Function, Type, Value
from minijax.difftest.running import Leaf, Outcome, library
from minijax.difftest.scripts import read
from minijax.difftest.triage import triaged
from tests.harness import difftest_worker

ROOT = pathlib.Path(__file__).resolve().parents[2]

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


SPACE = {"np": np, "array": np.array, "inf": np.inf, "nan": np.nan}


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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_a_sign_differs_in_every_dtype(dtype):
    x = np.array([0.5, 1.0], dtype)
    assert compare(leaf(x), leaf(-x)).kind == "value"
    assert compare(leaf(x), leaf(x * x.dtype.type(1.02))) is None or dtype[-2:] != "16"


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


def test_steps_of_what_a_program_computes_are_no_difference():
    """No input is a float: what moves is the result of a call."""
    lines = ["v1 = jnp.linspace(0.0, 3.0, 4)", "v2 = jnp.floor(v1)", "return v2 + v0"]
    program = handmade(lines, '(array(1, "int32"),)')
    ours = difftest.run(program, "minijax")
    lower = np.float32([0, 1, 0, 0])
    theirs = dataclasses.replace(
        ours, leaves=(dataclasses.replace(ours.leaves[0], array=ours.leaves[0].array - lower),)
    )
    finding = difftest.Finding(program, compare(ours, theirs), ours, theirs)
    assert triaged(finding, Tolerance(), quick=True).verdict == "ill-conditioned"


def test_the_hunt_finds_listed_faults():
    first = {f.primitive: f for f in reversed(faults.faults())}
    rows = [first[name] for name in ("mul", "dot_general", "or")]
    rows.append(faults.Fault("mul", "jvp", "conjugate"))
    only = (
        "jnp.multiply", "jnp.dot", "jnp.logical_or", "grad", "vmap", "jit", "jvp_complex",
    )  # fmt: skip
    for score in faults.hunt(rows, count=150, profile=difftest.Profile(only=only)):
        assert score.finding is not None and 1 <= score.reached <= score.tried <= 150, score


def test_faults_are_of_rules_that_exist():
    rows = faults.faults()
    assert len(rows) == len(set(rows)) >= 120
    for row in rows:
        assert callable(faults.wrong(row)), row


def test_coverage_of_the_layouts_of_explicit_meshes():
    program = calls(
        (
            'jnp.cumsum(jax.device_put(A, jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))), 0)',
            "jnp.cumsum",
        )
    )
    cells = coverage.cells_of(program)
    assert ("cumsum", "layout") in cells and ("sin", "layout") not in cells


def test_programs_run_collectives_over_a_mesh():
    """In a process with the devices that a worker has."""
    program = (
        "from minijax import difftest; from minijax.difftest import coverage\n"
        "p = difftest.Profile(only=('shard_map', 'psum', 'jnp.sin', 'grad'), focused=(1, 2), direct=0.0)\n"
        "ran = [coverage.cells_of(difftest.generate(0, n, profile=p)) for n in range(8)]\n"
        "assert {('shard_map', 'transpose'), ('psum_invariant', 'lower')} <= set().union(*ran)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | variables())


def test_text_is_compared_as_it_is():
    a, b = leaf("[1 2]"), leaf("[1 3]")
    assert compare(a, a) is None and compare(a, b).kind == "integer"


def test_one_call_under_transforms():
    """Programs about single calls, whose results all come of derivatives or maps of these."""
    only = ("jnp.tanh", "jvp_of", "vjp_of", "jvp_of_vjp_of", "vjp_of_jvp_of", "grad")
    profile = difftest.Profile(only=only, direct=1.0, focused=(1,))
    made = [difftest.generate(0, number, profile=profile) for number in range(8)]
    assert {program.main.body[0].operation for program in made} <= set(only[1:])
    with faults.planted(faults.Fault("tanh", "jvp", "negate")):
        found = [difftest.judge(program, True) for program in made]
    assert sum(finding is not None for finding in found) >= 6


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


def test_check_of_a_cancelling_function():
    """The second derivative is 0 but for rounding, which differs with every order of the operations."""

    def normalized(a):
        return (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5)

    report = difftest.check(normalized, np.random.RandomState(3).rand(2, 3).astype("float32"))
    assert report, report


def test_check_of_a_wrong_rule():
    @minijax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * jnp.sin(primals[0])))
    report = difftest.check(lambda x: 2 * f(x), np.float32(0.3))
    found = {(c.transform, c.oracle) for c in report.findings}
    assert not report and {("jvp", "finite differences"), ("vjp", "upstream")} <= found
    assert "DIFFERS" in str(report) and "differs" in report._repr_html_()


def example(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / "examples" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAWS = np.random.RandomState(0)
X = DRAWS.randn(3).astype("float32")
LAYER = lambda *shape: {
    "w": DRAWS.randn(*shape).astype("float32") * 0.3,
    "b": DRAWS.rand(shape[-1]).astype("float32"),
}
PARAMS = {
    "conv1": LAYER(3, 3, 1, 2), "conv2": LAYER(3, 3, 2, 2), "dense": LAYER(2, 4), "out": LAYER(4, 3),
}  # fmt: skip
IMAGES = DRAWS.rand(2, 4, 4, 1).astype("float32")
EXAMPLES = {
    "quickstart.py": [
        ("selu", X), ("sum_logistic", X), ("conv", PARAMS["conv1"], IMAGES), ("logits", PARAMS, IMAGES),
        ("loss", PARAMS, IMAGES, np.array([0, 2])), ("accuracy", PARAMS, IMAGES, np.array([0, 2])),
    ],
    "seeds/introduction.py": [("f", X)],
    "seeds/quickstart.py": [("selu", X), ("sum_logistic", X), ("lambda x: hessian(sum_logistic)(x)", X)],
}  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES)
def test_check_of_examples(path):
    module = example(path)
    for name, *arguments in EXAMPLES[path]:
        report = difftest.check(eval(name, vars(module)), *arguments)
        assert report, f"{name}: {report}"


# -- other subjects --------------------------------------------------------------------------------


def test_the_interpreter_and_what_dies():
    lines = ["return jnp.sum(v0.astype('complex64') * v1), v2 & (v0 > 0), jnp.multiply(v3, v0)"]
    arguments = '(array([1.5, -2.0], "bfloat16"), array([1+2j, 3j], "complex64"), array([True, False]), 2.0)'
    program = handmade(lines, arguments)
    ours = difftest.run(program, "minijax")
    assert compare(ours, difftest.run(program, "interpreter"), Tolerance(ulps=4.0)) is None
    assert compare(ours, difftest.run(program, "minijax:eager"), Tolerance(ulps=4.0)) is None
    died = difftest.run(handmade(["import os; os._exit(3)"], "()"), "interpreter")
    assert died.error == ("Died",) and "status 3" in died.message
    assert compare(ours, difftest.run(program, "interpreter"), Tolerance(ulps=4.0)) is None


def test_another_python_runs_its_own_upstream():
    program = handmade(["return jnp.sin(v0) + 1"], '(array([0.5], "float16"),)')
    subject = sys.executable  # any path of a Python is a subject
    assert compare(difftest.run(program, "jax"), difftest.run(program, subject)) is None
    with pytest.raises(ValueError, match="no subject"):
        difftest.run(program, "jacks")


def test_algebra_finds_a_wrong_rule():
    program = calls(("jnp.tan(A)", "jnp.tan"))
    assert difftest.judge(program, subjects=("minijax", "algebra")) is None
    with faults.planted(faults.Fault("mul", "transpose", "double")):
        found = difftest.judge(program, subjects=("minijax", "algebra"))
    assert found.difference.kind == "algebra" and found.difference.where == "vjp"


def found(program, ours, theirs=np.inf):
    """A finding in which upstream has another number, everywhere or where it is an array's."""
    other = [dataclasses.replace(x, array=np.full_like(x.array, theirs)) for x in ours.leaves]
    difference = Difference("special", "", "")
    return difftest.Finding(program, difference, ours, Outcome(tuple(other)))


@pytest.mark.parametrize("name", ["lgamma", "logaddexp"])
def test_mpmath_is_a_witness(name):
    number = next(
        n for n in range(3000)
        if difftest.generate(0, n, "single").operations()[0].endswith(name)
    )  # fmt: skip
    program = difftest.generate(0, number, "single")
    ours = difftest.run(program, "minijax")
    name, exact = next(witness.opinion(found(program, ours)))
    assert name == "mpmath" and not exact.error


def test_a_witness_is_asked_where_the_libraries_differ():
    """Elements in which both are as wrong, or NaN, do not hide which one is right in the others."""
    program = handmade(
        ["return jax.scipy.special.gamma(v0)"],
        "(array([0.5, nan, 2.5]),)",
        "single",
        ("jax.scipy.special.gamma",),
    )
    program = dataclasses.replace(program, x64=True)
    ours = Outcome(
        (Leaf("", (3,), "float64", False, np.array([7.0, np.nan, 1.329340388179137])),), "*"
    )
    judged = witness.witnessed(found(program, ours, [7.0, np.nan, 1.5]))
    assert judged.verdict == "upstream" and "mpmath" in judged.evidence[0], judged


def test_programs_that_upstream_does_not_end_are_not_run():
    """Rows of the kind "hang": of `lcm` of the least integer, of `hyp2f1` of extremes or four times."""

    def row(arguments, mode="single", path="jnp.lcm"):
        return known.hanging(handmade([f"return {path}(v0, v0)"], arguments, mode, (path,)))

    assert row('(array([-128, 3], "int8"),)').verdict == "upstream"
    assert row('(array([-2147483648], "int32"),)') is not None
    for arguments in ('(array([-128], "int16"),)', '(array([-127], "int8"),)'):
        assert row(arguments) is None
    assert row('(array([-128], "int8"),)', path="jnp.gcd") is None
    assert row('(array([-128], "int8"),)', mode="abstract") is None
    gauss = "jax.scipy.special.hyp2f1"
    for extreme in ("inf", "-inf", "3.4028234663852886e+38", "-65504.0"):
        assert row(f'(array([1.5, {extreme}], "float32"),)', path=gauss).verdict == "upstream"
    assert row('(array([1.5], "float32"),)', path=gauss) is None
    for calls in (3, 4):
        lines = [f"v{n} = jnp.isinf({gauss}(v0, v0, v0, 0.25))" for n in range(1, calls + 1)]
        program = handmade([*lines, "return v1"], '(array([1.5], "float32"),)', "single", (gauss,))
        assert (known.hanging(program) is None) == (calls == 3)


POINTS = {  # where a function is not asked about 0.3, 0.7, 0.4
    "acosh": (1.7,), "arccosh": (1.7,), "polygamma": (2, 0.7), "expn": (2, 0.7),
    "zeta": (2.5, 0.7), "factorial": (0.3,), "log_ndtr": (0.3,), "rsqrt": (0.3,),
    "logaddexp": (0.3, 0.7), "hyp2f1": (0.3, 0.7, 0.4, 0.25),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*witness._OWN, *witness._MPMATH}))
def test_functions_of_mpmath_are_those_of_their_names(name):
    """Each agrees with ours at a point, by the way that a finding is witnessed."""
    modules = ("jax.scipy.special", "jax.scipy.stats", "jnp", "lax", "jax.nn")
    space = {"jax": minijax, "jnp": minijax.numpy, "lax": minijax.lax}
    for module in modules:
        with contextlib.suppress(AttributeError):
            function = operator.attrgetter(name)(eval(module, space))
            break
    else:
        pytest.fail(f"no public function is called {name}")
    count = 3 if name == "norm.cdf" else len(inspect.signature(function).parameters)
    point = POINTS.get(name, (0.3, 0.7, 0.4)[:count])
    arguments = ", ".join(f"np.{np.asarray(x).dtype}({x})" for x in point)
    names = ", ".join(f"v{i}" for i in range(len(point)))
    path = f"{module}.{name}"
    program = handmade([f"return {path}({names})"], f"({arguments},)", "single", (path,))
    program = dataclasses.replace(program, x64=True)
    ours = difftest.run(program, "minijax")
    name, exact = next(witness.opinion(found(program, ours)))
    assert name == "mpmath" and not exact.error, exact
    np.testing.assert_allclose(ours.leaves[0].array, exact.leaves[0].array, rtol=1e-13)


SLOPES = {
    "jvp": lambda m, f, x: m.jvp(f, (x,), (2 * x,)),
    "jvp of jvp": lambda m, f, x: m.jvp(lambda y: m.jvp(f, (y,), (x,))[1], (x,), (x,)),
    "linearize": lambda m, f, x: m.linearize(f, x)[1](x),
    "vjp": lambda m, f, x: m.vjp(f, x)[1](f(x)),
    "grad": lambda m, f, x: m.grad(lambda y, n: m.numpy.sum(f(y) * n).real)(x, 3),
    "value_and_grad": lambda m, f, x: m.value_and_grad(
        lambda y, z: (m.numpy.sum(f(y) * z).real, y), argnums=(0, 1), has_aux=True
    )(x, x),
    "jvp of vjp": lambda m, f, x: m.jvp(lambda y: m.vjp(f, y)[1](x)[0], (x,), (x,)),
    "within": lambda m, f, x: m.lax.map(lambda y: m.jvp(f, (y,), (y,)), x),
}
OF_REAL = {
    "jacrev": lambda m, f, x: m.jacrev(f)(x), "hessian": lambda m, f, x: m.hessian(f)(x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("way", [*SLOPES, *OF_REAL])
def test_central_differences_are_derivatives(way, dtype):
    if way in OF_REAL and dtype == "complex128":
        pytest.skip("derivatives of real functions")
    with minijax.enable_x64(True):
        x = jnp.asarray([0.5, -1.25, 2.0], dtype) * (1 if dtype == "float64" else 1 - 0.5j)
        f = lambda y: jnp.sin(y) * y[..., ::-1] if jnp.ndim(y) else jnp.sin(y) * y
        of = (SLOPES | OF_REAL)[way]
        given, wanted = of(Differences(minijax), f, x), of(minijax, f, x)
    assert minijax.tree.structure(given) == minijax.tree.structure(wanted)
    for a, b in zip(minijax.tree.leaves(given), minijax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_upstream_in_float64_is_a_witness_of_rounding_only():
    program, _ = read(ROOT / "examples" / "upstream_findings" / "qr_pivoting_of_wide.py")
    ours, theirs = difftest.run(program, "minijax"), difftest.run(program, "jax")
    found = difftest.Finding(program, compare(ours, theirs), ours, theirs)
    found = witness.witnessed(found)
    assert found.verdict == "upstream" and found.evidence[-1].startswith("central differences")


@pytest.mark.parametrize(("units", "verdict"), [(10, "ill-conditioned"), (100, "open")])
def test_small_differences_without_a_witness_are_rounding(units, verdict):
    """`random_gamma_grad` has no counterpart in NumPy, and float64 none that is wider."""
    line = "return jax.lax.random_gamma_grad(v0, v0)"
    program = handmade([line], '(array([1.5], "float64"),)', "single", ("lax.random_gamma_grad",))
    program = dataclasses.replace(program, x64=True)
    ours = difftest.run(program, "minijax")
    (leaf,) = ours.leaves
    moved = leaf.array * (1 + units * np.finfo("float64").eps)
    theirs = dataclasses.replace(ours, leaves=(dataclasses.replace(leaf, array=moved),))
    found = difftest.Finding(program, compare(ours, theirs, Tolerance(4.0)), ours, theirs)
    assert witness.witnessed(found).verdict == verdict


def test_a_witness_is_given_the_inputs_as_they_are_rounded():
    program = handmade(["return v0"], '(array(-1.77, "float16"), 3, array([2], "int8"))')
    x, *rest = witness.widened_arguments(program)
    assert x.dtype == "float64" and x == np.float16(-1.77)
    assert rest[0] == 3 and rest[1].dtype == "int8"


@pytest.mark.parametrize(
    ("off", "verdict"), [(1e-7, "ill-conditioned"), (1e-2, "xla"), (0.0, "upstream")]
)
def test_results_on_both_sides_of_a_witness_are_rounding(off, verdict):
    """A result that is exactly zero, from which both libraries are off."""
    program = handmade(["return jax.numpy.sin(v0)"], '(array([0.0], "float32"),)')
    right = difftest.run(program, "minijax")
    moved = [
        dataclasses.replace(right, leaves=(dataclasses.replace(right.leaves[0], array=x),))
        for x in (np.float32([-off]), np.float32([off or 1e-2]))
    ]
    found = difftest.Finding(program, compare(*moved, Tolerance(4.0)), *moved)
    assert witness.witnessed(found).verdict == verdict


# -- pytest ------------------------------------------------------------------------------------------

SUITE = """
import jax, pytest
import jax.numpy as jnp

def test_both():
    assert float(jax.grad(jnp.sin)(0.0)) == 1.0

def test_refused():
    jnp.reshape(jnp.ones(3), (7,))

def test_of_one_library():
    assert jax.__file__.rpartition("site-packages")[1]

@pytest.mark.differential(ulps=16)
@pytest.mark.parametrize("n", [1, 2])
def test_marked(n):
    return jax.nn.softmax(jnp.arange(3.0 * n)), {"n": n}

@pytest.mark.differential
def test_index():
    return jnp.arange(300)[jnp.int8(-1)]
"""


def test_a_suite_under_both_libraries(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "minijax.difftest", "test_suite.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    said = done.stdout
    assert done.returncode == 1, said + done.stderr
    assert "6 tests under both libraries, 2 differ" in said
    assert "test_of_one_library: upstream passed; minijax failed" in said
    assert (
        "AssertionError: integer: 299 is not 43" in said
    )  # the marked test, which fails under one


# -- files and processes ---------------------------------------------------------------------------


def test_a_script_runs_alone_and_is_read_back(tmp_path):
    program = calls(("jnp.reshape(A, (7,))", "jnp.reshape"))
    ours, theirs = difftest.run(program, "minijax"), Outcome()
    finding = difftest.Finding(program, compare(ours, theirs), ours, theirs)
    path = tmp_path / "finding.py"
    path.write_text(difftest.script(finding))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("minijax: raised IncompatibleShapes: cannot reshape")
    assert "no difference" in done.stdout
    assert difftest.replayed(path) == 0


FINDINGS = sorted((ROOT / "examples" / "upstream_findings").glob("*.py"))
FIXED = sorted(pathlib.Path(__file__).with_name("corpus").glob("*.py"))


@pytest.mark.parametrize("path", FINDINGS + FIXED, ids=lambda path: path.stem)
def test_corpus(path):
    """What is upstream's still differs in the same kind; what was ours does not."""
    program, kind = read(path)
    found = difftest.judge(program, True)
    if path in FIXED:
        assert found is None, found
    else:
        assert found is not None and found.difference.kind == kind, found


def test_scripts_are_short_and_run_alone():
    """The median has at most five calls; each gives a result, or the program's error, under both."""
    lengths = []
    for path in FINDINGS + FIXED:
        names = runpy.run_path(str(path))
        for name in ("minijax", "jax"):
            names["result"](name)
        calls = (x for x in ast.walk(ast.parse(read(path)[0].source[0])) if isinstance(x, ast.Call))
        lengths.append(sum(1 for _ in calls))
    assert statistics.median(lengths) <= 5


def test_fuzzing_resumes_from_its_journal(tmp_path):
    plan = difftest.Plan(
        {"abstract": 2}, seed=3, shrinking=1.0, budget=1
    )  # a child for each program
    first = difftest.fuzz(plan, tmp_path)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert sorted(json.loads(line)["number"] for line in lines) == [0, 1]
    journal.write_text(lines[0] + '\n{"mode": "abs')  # killed while it wrote
    again = difftest.fuzz(plan, tmp_path)
    assert sum(again.done.values()) == 2 and again.done.keys() == first.done.keys()


def stub(path):
    return (str(ROOT / "tests" / "harness" / "difftest_worker.py"), str(path))


def test_what_ends_a_child_costs_its_program_alone(tmp_path):
    """One group of four, of which one crashes, one hangs, one takes memory; another group after it.

    Of that, one ends a child as it is shrunk: it is judged without.
    """
    plan = difftest.Plan(
        {"abstract": 7}, seed=1, patience=2.0, memory=400 << 20, worker=stub(tmp_path)
    )
    progress = difftest.fuzz(plan, tmp_path)
    statuses = {"same": 4, "crash": 2, "hang": 1}
    assert progress.done == {("abstract", status): n for status, n in statuses.items()}
    told = {entry["number"]: entry["detail"] for entry in progress.findings.values()}
    assert told == {
        difftest_worker.CRASHES: f"status {difftest_worker.STATUS}",
        difftest_worker.HANGS: "patience",
        difftest_worker.EATS: "memory",
    }
    verdicts = {entry["number"]: entry["verdict"] for entry in progress.findings.values()}
    assert verdicts == {  # the first two end a child under each of the two libraries
        difftest_worker.CRASHES: "xla", difftest_worker.HANGS: "xla", difftest_worker.EATS: "open",
    }  # fmt: skip
    for file in progress.findings:
        assert "def program(jax" in (tmp_path / "findings" / file).read_text()


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    """Killed while a program waits: those before it are not run again, and the child ends too."""
    go, journal = tmp_path / "go", tmp_path / "journal.jsonl"
    plan = difftest.Plan({"single": 8}, seed=1, worker=stub(go))
    numbers = lambda: [json.loads(line)["number"] for line in journal.read_text().splitlines()]
    code = f"from minijax import difftest; difftest.fuzz(difftest.{plan!r}, {str(tmp_path)!r})"
    skipped = {difftest_worker.CRASHES, difftest_worker.HANGS, difftest_worker.EATS}
    journal.write_text(
        "".join(
            json.dumps({"mode": "single", "seed": 1, "number": n, "status": "same", "cpu": 0})
            + "\n"
            for n in skipped
        )
    )
    run = subprocess.Popen([sys.executable, "-c", code])
    while len(numbers()) < difftest_worker.WAITS:
        assert run.poll() is None
        time.sleep(0.1)
    run.kill()
    run.wait()
    assert sorted(numbers()) == list(range(difftest_worker.WAITS))
    go.write_text("")
    again = difftest.fuzz(plan, tmp_path)
    assert sorted(numbers()) == list(range(8)) and again.done == {("single", "same"): 8}


def test_programs_judged_together_are_judged_as_alone():
    """A planted fault in one of a group, one that both refuse, and one that does not compile."""
    alike = [calls((f"jnp.{name}(A)", f"jnp.{name}")) for name in ("sin", "exp", "floor")]
    refused = calls(("jnp.reshape(A, (7,))", "jnp.reshape"))
    unlowered = handmade(
        ["return jnp.linalg.qr(v0)[1]"], '(np.ones((2, 2), "bfloat16"),)'
    )  # its types are found, and then neither library compiles it
    group = [*alike, refused, unlowered]
    assert difftest.judge_all(group) == [None] * 5
    with faults.planted(faults.Fault("sin", "lower", "as cos")):
        found = difftest.judge_all(group)
    assert [f and f.difference.kind for f in found] == ["value", None, None, None, None]


def test_the_report_is_one_file(tmp_path):
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "a.py").write_text("x < 1")
    rows = [
        {"mode": "single", "seed": 1, "number": n, "status": status, "cpu": 0.5, "memory": 9 << 20}
        for n, status in enumerate(("same", "different", "repeated"))
    ]
    key = ["value", "jnp.sin"]
    rows[1] |= {
        "key": key,
        "file": "a.py",
        "verdict": "open",
        "detail": "1 is not 2",
        "evidence": ["<b>"],
    }
    rows[2] |= {"key": key}
    (tmp_path / "journal.jsonl").write_text("\n".join(map(json.dumps, rows)))
    page = report.page(tmp_path, programs=3, calls=300)
    assert "1 is not 2 (2 programs)" in page and "x &lt; 1" in page and "&lt;b&gt;" in page
    assert 'class="never"' in page and "subnormal" in page and "<script" not in page


def test_classes_of_values():
    given = {
        ("-0.0", "float32"): "-0", ("complex(1.5, nan)", "complex64"): "nan", ("127", "int8"): "largest",
        ("-inf", "float16"): "-inf", (repr(2.0**-24), "float16"): "subnormal", ("2.5", "float64"): "plain",
        ("True", "bool"): "plain",
    }  # fmt: skip
    assert {key: coverage.class_of(*key) for key in given} == given
    counts = coverage.values(difftest.generate(0, number, "single") for number in range(300))
    assert len({name for name, _, _ in counts}) > 150
    assert {word for _, _, word in counts} == set(coverage.VALUES)


def test_programs_of_this_commit(tmp_path):
    """Programs and calls at a seed of the commit: nothing hangs, and few differ in value."""
    counts = {"composed": 400, "single": 500, "abstract": 9500}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    seed = int(head.stdout[:8] or "0", 16)
    # A third of the usual patience: some functions of upstream do not end at some inputs.
    progress = difftest.fuzz(difftest.Plan(counts, seed, patience=20.0, shrinking=0.0), tmp_path)
    assert sum(progress.done.values()) == sum(counts.values())
    kinds = collections.Counter(
        entry["key"][0]
        for entry in progress.findings.values()
        if entry["verdict"] not in ("upstream", "xla")
    )
    assert not kinds["hang"], progress.findings
    # XLA's partitioner ends the process at some operations, which one library may have left out as dead.
    assert kinds["crash"] <= 1, progress.findings
    assert sum(kinds[kind] for kind in ("value", "special", "integer", "tree")) <= 2, (
        progress.findings
    )
    print(progress)
