"""`explain(f, *args)`: stages, text and page."""

import contextlib
import io
import re
import subprocess
import sys
import threading
import types
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax

W = np.full((3, 3), 0.1, np.float32)
X = np.ones((4, 3), np.float32)


def _step(w, x):
    def loss(w, x):
        return jax.vmap(lambda x: jnp.sum(jnp.tanh(x @ w)))(x).sum()

    return w - jax.grad(loss)(w, x)


@pytest.fixture(scope="module")
def step():
    return explain(_step, W, X, values=True)


def test_stages_are_the_programs_before_and_after_each_transform(step):
    names = [stage.name for stage in step.stages]
    assert names == [
        "source", "before vmap of <lambda>", "after vmap of <lambda>", "before grad of loss",
        "after grad of loss", "jaxpr", "StableHLO", "optimised HLO",
    ]  # fmt: skip
    before = [line.text for line in step["before vmap"].lines]
    assert any(":f32[] = reduce_sum" in line for line in before)
    after = [line.text for line in step["after vmap"].lines]
    assert any(":f32[4] = reduce_sum" in line for line in after)
    tanh = next(line for line in step["jaxpr"].lines if " tanh " in line.text)
    assert tanh.made == "jvp of tanh ← vmap of tanh"
    first = _step.__code__.co_firstlineno
    assert tanh.where == f"test_stages.py:{first + 2}"
    assert tanh.value.startswith("0.2913")  # tanh(0.3)
    place, _, lines = tanh.place.rpartition(":")
    with open(explain.where("minijax").file.replace("minijax/__init__.py", place)) as file:
        assert "tanh" in "".join(file.readlines()[int(lines.split("-")[0]) - 1 :][:12])
    for name in ("StableHLO", "optimised HLO"):
        found = {line.where for line in step[name].lines if "tanh" in line.text}
        assert tanh.where in found
    assert step.cost.flops > 0
    with pytest.raises(KeyError, match="no stage 'HLO'"):
        step["HLO"]


def test_text_has_the_width_and_colors_asked_for(step):
    plain = step.text(width=110, color=False)
    assert max(map(len, plain.split("\n"))) <= 110
    assert "\033[" not in plain
    assert "transpose of dot_general" in plain
    assert max(map(len, step.text(width=60, color=False).split("\n"))) <= 60
    assert "\033[35m" in step.text(width=110, color=True)


_KEPT = {  # functions whose programs calls on several lines share
    "fft": jnp.fft.fft,
    "sort": lambda x: jnp.sort(x, axis=0),
    "solve": lambda x: jnp.linalg.solve(x, x[0]),
    "searchsorted": lambda x: jnp.searchsorted(x[0], x[1]),
    "normal": lambda x: jax.random.normal(jax.random.key(0), x.shape) + x,
    "bincount": lambda x: jnp.bincount(x[0].astype(int), length=4),
}


@pytest.mark.parametrize("name", _KEPT)
def test_programs_that_calls_share_have_the_lines_of_each(name):
    f = _KEPT[name]

    def twice(x):
        first = f(x)
        second = f(x + 1)
        return first, second

    start = twice.__code__.co_firstlineno
    inside = f.__code__.co_firstlineno if f.__code__.co_filename == __file__ else 0
    found = explain(jax.vmap(twice), np.stack([np.eye(3, dtype=np.float32) * 2] * 2))
    lines = [int(line.where.split(":")[1]) for line in found["jaxpr"].lines if line.made]
    assert set(lines) <= {start + 1, start + 2, inside}
    if not inside:
        assert {lines.count(start + n) > 1 for n in (1, 2)} == {True}
    assert all(line.where for line in found["StableHLO"].lines if " stablehlo.fft" in line.text)


def test_a_platform_that_has_no_program_says_why():
    """The stages before are shown."""
    found = explain(lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.JACOBI)[1], W)
    (line,) = found["jaxpr"].lines[1:2]
    assert line.text.startswith("b:f32[3]") and line.where.startswith("test_stages.py:")
    for stage in ("StableHLO", "optimised HLO"):
        assert found[stage].lines[0].text.startswith("NotImplementedError: The SVD Jacobi")


def test_lines_are_not_those_of_decorators_within_the_library():
    """`pinv` has a function that a context manager decorates."""
    lines = [line.where for line in explain(jnp.linalg.pinv, W, compile=False)["jaxpr"].lines]
    found = explain(lambda w: jnp.linalg.pinv(w) * 2, W, compile=False)["jaxpr"].lines
    assert not [line for line in lines if line.startswith("contextlib")]
    assert {line.where.split(":")[0] for line in found if line.made} == {"test_stages.py"}


def test_what_has_no_line_has_the_first_of_the_function():
    def product(x):
        return x @ x

    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    f = jax.shard_map(product, mesh=mesh, in_specs=spec, out_specs=spec)
    first = product.__code__.co_firstlineno
    (outer, inner) = [line.where for line in explain(f, W)["jaxpr"].lines if line.made]
    assert (outer, inner) == (f"test_stages.py:{first}", f"test_stages.py:{first + 1}")
    lines = set(explain.cost(f, W).by_line())
    assert (__file__, first + 1) in lines and "<unknown>" not in {file for file, _ in lines}


def _twice(x):
    y = jnp.sin(x)
    return y, y


_TWICE = {
    "vjp": lambda x: jax.vjp(_twice, x)[1]((x, x)),
    "jit": lambda x: jax.grad(lambda x: jnp.stack(jax.jit(_twice)(x)).sum())(x),
    "scan": lambda x: jax.grad(
        lambda x: sum(y.sum() for y in lax.scan(lambda c, _: _twice(c), x, None, length=3))
    )(x),
    "cond": lambda x: jax.grad(
        lambda x: jnp.stack(lax.cond(x > 0, _twice, lambda x: (x, x), x)).sum()
    )(x),
}


@pytest.mark.parametrize("name", _TWICE)
def test_sums_of_cotangents_of_a_result_that_comes_out_twice(name):
    found = explain(_TWICE[name], 1.0, compile=False)["jaxpr"].lines
    sums = [line for line in found if "add_any" in line.text]
    place = f"test_stages.py:{_twice.__code__.co_firstlineno + 1}"
    assert [line.where for line in sums].count(place) == 1
    assert all(
        line.made.startswith("sum of cotangents of ") for line in sums if line.where == place
    )


def test_values_are_shown_where_the_text_is_cut():
    f = lambda x: lax.scatter_add(
        x, jnp.array([[0]]), jnp.ones(1), lax.ScatterDimensionNumbers((), (0,), (0,))
    )
    text = explain(f, np.zeros(3, np.float32), values=True).text(width=100, color=False)
    (line,) = [line for line in text.split("\n") if "= scatter-add[" in line]
    assert "…   # 0 … 1" in line and len(line) <= 100


class _Page(HTMLParser):
    """The elements of a page, checked to be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.kin, self.sections, self.links = [], [], {}, [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)
        if tag == "section":
            self.sections.append(attrs["id"])
        if "data-k" in attrs:
            self.kin.setdefault(attrs["data-k"], set()).add(self.sections[-1])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_stands_alone_and_kin_are_in_all_panes(step, tmp_path):
    text = step.save(tmp_path / "page.html").read_text(encoding="utf-8")
    page = _Page(text)
    assert page.links == []
    assert "http" not in text
    assert len(page.sections) == len(step.stages) + 1
    assert page.tags.count("details") > len(step.stages)
    all_panes = {f"s{n}" for n in range(len(step.stages))}
    assert any(panes == all_panes for panes in page.kin.values())
    assert "prefers-color-scheme" in text
    assert len(text) < 200_000
    framed = step._repr_html_()
    assert framed.startswith("<iframe")
    assert "srcdoc" in framed


def test_page_of_a_large_program_is_below_two_megabytes():
    def f(x):
        for _ in range(400):
            x = jnp.sin(x) * 2
        return x.sum()

    found = explain(jax.grad(lambda x: f(x * jnp.ones(3))), 1.0, compile=False)
    text = found.html()
    _Page(text)
    assert 500_000 < len(text.encode()) < 2_000_000
    assert "more lines" in text


def test_nothing_is_found_that_was_cached_and_nothing_stays_on():
    f = jax.jit(lambda x: jax.vmap(jnp.sin)(x))
    jax.grad(lambda x: f(x).sum())(np.ones(3, np.float32))
    profile = sys.getprofile()
    found = explain(jax.grad(lambda x: f(x).sum()), np.ones(3, np.float32), compile=False)
    assert sys.getprofile() is profile
    assert found["before vmap of sin"]
    assert any(line.made.startswith("jvp of sin") for line in found["jaxpr"].lines)
    with pytest.raises(TypeError):
        explain(lambda x: x, "text")
    assert sys.getprofile() is profile


def test_command_line(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(
        "import minijax as jax, minijax.numpy as jnp\n"
        "def loss(x):\n    return jnp.sum(jnp.sin(x))\n"
        "class Model:\n    gradient = jax.grad(loss)\n"
    )
    command = [sys.executable, "-m", "minijax.explain", f"{script}:Model.gradient"]
    run = subprocess.run(
        [*command, "--args", "jnp.ones(3)", "--save", str(tmp_path / "p.html")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == str(tmp_path / "p.html")
    assert "jvp of sin" in (tmp_path / "p.html").read_text()


class _Shell:
    """As much of a shell of IPython as the magics use."""

    def __init__(self, **names):
        self.user_ns, self.magics, self.shown = names, {}, {}
        self.showtraceback = None
        self.display_formatter = types.SimpleNamespace(formatters={"text/html": self})

    def for_type(self, kind, show):
        self.shown[kind] = show

    def register_magic_function(self, function, kind, name):
        self.magics[kind, name] = function

    def run_cell(self, cell):
        exec(cell, self.user_ns)
        return self

    def raise_error(self):
        pass


def test_magics_of_notebooks():
    shell = _Shell(jnp=jnp, x=jnp.arange(3))
    explain.load_ipython_extension(shell)
    found = shell.magics["line", "explain"]("jnp.add(x, x)")
    assert "add" in found["jaxpr"].text
    run = shell.magics["line_cell", "strict"]
    run("", "y = x[2]")
    with pytest.raises(IndexError):
        run("", "y = x[3]")
    run("indices=False", "y = x[3]")
    assert shell.user_ns["y"] == 2
    run("on")
    with pytest.raises(IndexError):
        shell.run_cell("y = x[3]")
    run("off")
    shell.run_cell("y = x[3]")
    assert "<b>int32[3]</b>" in shell.shown[type(jnp.arange(3))](jnp.arange(3))


def _told(f, file):
    """The turns in each line that is written while a function runs, which may fail."""
    file.seek(0)
    file.truncate()
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.block_until_ready(f())
        jax.effects_barrier()
    return [line.split()[1] for line in re.split("[\\r\\n]+", file.getvalue()) if line]


def test_progress_of_loops():
    file = io.StringIO()
    body = explain.progress(lambda c, x: (c + x, c), 50, name="sums", file=file)
    total = jax.jit(lambda xs: lax.scan(body, 0, xs)[0])
    for _ in range(2):
        assert _told(lambda: total(jnp.arange(50)), file) == ["50/50"]
    assert "(100 %)" in file.getvalue()


_XS = np.arange(10, dtype=np.float32)
LOOPS = {
    "scan": lambda body: lambda x: lax.scan(body, x, _XS)[0],
    "body within another": lambda body: lambda x: lax.scan(lambda c, i: body(c, i), x, _XS)[0],
    "fori_loop": lambda body: lambda x: lax.fori_loop(0, 10, lambda i, c: body(c, i)[0], x),
    "while_loop": lambda body: (
        lambda x: lax.while_loop(
            lambda c: c[1] < 10, lambda c: (body(c[0], c[1])[0], c[1] + 1), (x, 0)
        )[0]
    ),
    "map": lambda body: lambda x: lax.map(lambda i: body(x, i)[0], _XS).sum(),
    "checkpoint": lambda body: jax.checkpoint(lambda x: lax.scan(body, x, _XS)[0]),
}
NESTS = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
}


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("loop", LOOPS)
def test_progress_after_an_aborted_run(loop, nest, monkeypatch):
    monkeypatch.setattr("minijax.explain.progressing._EVERY", -1.0)
    if loop == "while_loop" and "grad" in nest:
        pytest.skip("has no reverse derivative")
    file, at = io.StringIO(), []

    def fail(i):
        if i in at:
            raise ValueError("as asked for")

    def body(c, i):
        jax.debug.callback(fail, i)
        return c * 1.5, None

    f = NESTS[nest](LOOPS[loop](explain.progress(body, 10, file=file)))
    first = _told(lambda: f(1.0), file)
    assert first[-1] == "10/10"
    at.append(6)
    assert "10/10" not in _told(lambda: f(1.0), file)
    at.clear()
    assert _told(lambda: f(1.0), file) == first


def test_progress_of_a_loop_within_another_and_of_several_at_once(monkeypatch):
    monkeypatch.setattr("minijax.explain.progressing._EVERY", -1.0)
    outer, inner = io.StringIO(), io.StringIO()
    body = explain.progress(lambda c, x: (c + x, None), file=inner)
    turn = explain.progress(lambda c, x: (lax.scan(body, c, _XS)[0], None), 7, file=outer)
    f = jax.jit(lambda x: lax.scan(turn, x, None, length=7)[0])
    assert _told(lambda: f(0.0), outer) == [f"{n}/7" for n in range(2, 8)]
    assert Counter(_told(lambda: f(0.0), inner)) == {f"{n},": 7 for n in range(2, 11)}
    assert "\n" not in inner.getvalue()

    def at_once():
        threads = [threading.Thread(target=lambda: jax.block_until_ready(f(1.0))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert Counter(_told(at_once, outer)) == {f"{n}/7": 4 for n in range(2, 8)}
    assert outer.getvalue().count("\n") == 4


def _ranges(f, *args):
    """The ranges of values by the first operation of each name, within loops and branches too."""
    found = {}
    for line in explain(f, *args, values=True, compile=False)["jaxpr"].lines:
        if " = " in line.text and "{ lambda" not in line.text:
            name = line.text.split(" = ")[1].split("[")[0].split()[0]
            found.setdefault(name, line.value)
    return found


def test_ranges_within_loops_and_branches():
    def body(c, x):
        c = lax.cond(x > 2, lambda c: c + 0.5, lambda c: c * 0.25, c)
        return c, jnp.sqrt(x - c)

    def f(xs):
        c, ys = lax.scan(body, -1.0, xs)
        return lax.fori_loop(0, 3, lambda i, c: c - 2.0**i, c) + ys.sum()

    xs = np.arange(-2, 5, dtype=np.float32)
    found, carry, roots, added, scaled = _ranges(f, xs), -1.0, [], [], []
    for x in xs:
        (added if x > 2 else scaled).append(carry := carry + 0.5 if x > 2 else carry * 0.25)
        with np.errstate(invalid="ignore"):
            roots.append(np.sqrt(x - carry))
    told = f"{np.nanmin(roots):.4g} … {np.nanmax(roots):.4g} {np.isnan(roots).sum()} NaN"
    assert found["sqrt"] == told
    assert found["scan"] == f"{carry:.4g}, {told}"
    assert found["gt"] == "0 … 1"
    lines = explain(f, xs, values=True, compile=False)["jaxpr"].lines
    values = {line.text.split(" = ")[1]: line.value for line in lines if " = " in line.text}
    (branch,) = (
        value for text, value in values.items() if text.startswith("add ") and "0.5" in text
    )
    assert branch == f"{min(added):.4g} … {max(added):.4g}"
    (other,) = (
        value for text, value in values.items() if text.startswith("mul ") and "0.25" in text
    )
    assert other == f"{min(scaled):.4g} … {max(scaled):.4g}"
    assert found["pow"] == "1 … 4"


def test_ranges_of_keys_complex_numbers_and_very_long_loops():
    def f(key, z):
        n = lax.while_loop(lambda n: n < 5000, lambda n: n + 1, 0)
        return jax.random.split(key), jnp.exp(z), n

    found = _ranges(f, jax.random.key(0), np.zeros(2, np.complex64))
    assert found["random_split"] == found["exp"] == ""
    assert found["while"] == "5000"
    assert found["add"].startswith("1 … ") and found["add"].endswith(" in the first turns")
    calls = []

    def told(x):
        return lax.scan(lambda c, x: (jax.debug.callback(calls.append, x), (c + x, c))[1], 0.0, x)[
            0
        ]

    assert _ranges(told, jnp.arange(3.0))["scan"] == "3, 0 … 1"
    jax.effects_barrier()
    assert len(calls) == 3
