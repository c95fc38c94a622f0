"""Names are data: whatever they contain, a program has the operations of one with plain names."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jax as upstream
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

import minijax
from minijax.runtime import escape
from minijax.runtime.mlir_modules import shared_context
from tests.names import HALF, HOSTILE, PLACES

pytestmark = pytest.mark.both_ends

ROOT = Path(minijax.__file__).parent
# Names of operations, which are ours, and one in a message.
OWN = {("lowering/module.py", "name"), ("lax/prng.py", "name")}


@pytest.fixture(scope="module")
def outcomes():
    """Outcome by place and of the run of Unicode names, from a process that has four devices."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.names"], capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["where"]: line["problem"] for line in lines}


@pytest.mark.parametrize("where", PLACES)
def test_a_hostile_name_changes_no_operation(where, outcomes):
    assert outcomes[where] is None, outcomes[where]


def test_unicode_names_go_through_everything(outcomes):
    assert outcomes["unicode"] is None, outcomes["unicode"]


def _rendered(node):
    return node.value if isinstance(node, ast.Constant) else ""


def test_no_other_line_of_the_package_quotes_text_of_modules():
    """A value between quotation marks or after @ in an f-string is a name that was not escaped."""
    found = []
    own = ROOT / "runtime" / "escape.py"
    folders = (
        "lowering",
        "lax",
        "transforms",
        "arrays",
        "export",
        "runtime",
        "interpreters",
        "jax/private",
    )
    for path in (p for folder in folders for p in (ROOT / folder).rglob("*.py") if p != own):
        tree = ast.parse(path.read_text())
        spoken = {id(n) for r in ast.walk(tree) if isinstance(r, ast.Raise) for n in ast.walk(r)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr) or id(node) in spoken:
                continue
            for before, hole in zip(node.values, node.values[1:], strict=False):
                text = _rendered(before)
                # error text, and an address: `... @{name}_p.lower` stands in a message
                marked = text.endswith(('"', " @", "<@", "=@", '%"')) and isinstance(
                    hole, ast.FormattedValue
                )
                where = str(path.relative_to(ROOT))
                if marked and (where, ast.unparse(hole.value)) not in OWN:
                    found.append(f"{where}:{node.lineno}: {ast.unparse(node)[:90]}")
    assert set(found) == set(), "pass names through minijax.runtime.escape"


texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_escapes_are_undone_by_the_parser(text):
    with shared_context():
        written = escape.label(text)
        assert written.isascii() and not set(written[1:-1]) & set('"{}()<>[]:,=@#%\n')
        assert ir.Attribute.parse(written).value == escape.utf8(text)
        if text == escape.utf8(text):
            assert escape.quoted(text) == written
        else:
            with pytest.raises(TypeError):
                escape.quoted(text)
        reference = ir.FlatSymbolRefAttr(ir.Attribute.parse(escape.symbol(text or "_")))
        assert reference.value == escape.utf8(text or "_")
        assert ir.Attribute.parse(f"{{{escape.key(escape.utf8(text) or 'k')} = 1}}") is not None


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_axes_that_differ_are_written_differently(one, other):
    assert (escape.axis(one) == escape.axis(other)) == (one == other)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["f", "f_0", "f_1", "f_0_0", "main", "main_0", "", "_", HALF, "\\ud800"])
    )
)
def test_functions_never_share_a_name(names):
    from minijax.lowering.module import Module

    module = Module("m", "cpu")
    chosen = [module.unique(name) for name in names]
    assert len({*chosen, "main"}) == len(chosen) + 1


@pytest.mark.parametrize("name", [name for name in HOSTILE if HALF not in name])
def test_modules_and_their_functions_have_upstreams_names(name):
    def names(jax):
        def g(x):
            inner = [jax.jit(function_of(jax, n))(x) for n in (name, name, "f", "f_0", "main")]
            return sum(inner)

        outer = function_of(jax, name)
        head = jax.jit(outer).lower(1.0).as_text().split(" attributes")[0]
        text = jax.jit(g).lower(1.0).as_text()
        return head, re.findall(r'func private @("[^"]*"|[^(]*)', text)

    (head, functions), (wanted, wanted_functions) = names(minijax), names(upstream)
    assert head == wanted
    if name:  # upstream gives the function an invalid, empty name
        assert sorted(functions) == sorted(wanted_functions)


def function_of(jax, name):
    def f(x):
        return jax.numpy.sin(x)

    f.__name__ = name
    return f


@pytest.mark.parametrize("name", [b"bytes", 3, object(), 1.5])
def test_names_of_functions_are_strings(name):
    for jax in (upstream, minijax):
        with pytest.raises(TypeError):
            jax.jit(function_of(jax, name) if jax is upstream else _named(name))(1.0)


def _named(name):
    class Call:
        def __call__(self, x):
            return x

    made = Call()
    made.__name__ = name
    return made


@pytest.mark.parametrize("name", [3, (), object()])
def test_names_within_programs_are_strings(name):
    for jax in (upstream, minijax):
        with pytest.raises(TypeError):
            jax.named_scope(name).__enter__()
        kind = jax.ShapeDtypeStruct((), np.float32)
        with pytest.raises(TypeError):
            jax.jit(lambda x, jax=jax, kind=kind: jax.ffi.ffi_call(name, kind)(x)).lower(1.0)
        with pytest.raises(TypeError):
            jax.jit(jax.lax.composite(lambda x: x, name)).lower(1.0)
        with pytest.raises(ValueError):
            jax.export.symbolic_shape(name)
