"""`explain.graph` and `explain.diff`: pictures of programs, and their differences."""

import re
import xml.etree.ElementTree as ET

import jax as upstream
import jax.numpy
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax
from minijax.explain.graphs import _Layout

W = np.full((3, 3), 0.1, np.float32)
X = np.ones((4, 3), np.float32)


def _loss(w, x):
    def body(h, x):
        return jnp.tanh(h @ w + x), None

    return jnp.sum(lax.scan(body, x[0], x)[0] * 3.0)


@pytest.fixture(scope="module")
def picture():
    return explain.graph(jax.grad(_loss), W, X)


def test_graph_has_the_equations_and_their_operands(picture):
    kinds = [node.kind for node in picture.nodes]
    assert kinds.count("input") == 2
    assert kinds.count("output") == 1
    assert {"jvp", "transpose"} <= set(kinds)
    assert any(re.match(r"scan ×4 \{\d+ equations\}", node.label) for node in picture.nodes)
    names = {node.name for node in picture.nodes}
    assert {e.start for e in picture.edges} | {e.end for e in picture.edges} <= names
    result = next(node.name for node in picture.nodes if node.kind == "output")
    assert [e.type for e in picture.edges if e.end == result] == ["f32[3,3]"]


def test_nodes_of_the_picture_do_not_overlap_and_edges_go_down(picture):
    layout = _Layout(picture)
    for layer in layout.layers:
        for left, right in zip(layer, layer[1:], strict=False):
            between = layout.x[right] - layout.x[left]
            assert between >= (layout.width[left] + layout.width[right]) / 2
    for edge in picture.edges:
        assert layout.y(edge.start) < layout.y(edge.end)


def test_formats(picture, tmp_path):
    root = ET.fromstring(picture.svg())
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}g")) == len(picture.nodes)
    assert len(root.findall(f"{space}path")) == len(picture.edges)
    dot, mermaid = picture.dot(), picture.mermaid()
    assert dot.count(" -> ") == mermaid.count(" -->") == len(picture.edges)
    assert dot.count('[label="') == len(picture.nodes) + len(picture.edges)
    for suffix in ("svg", "dot", "mmd", "html"):
        assert picture.save(tmp_path / f"p.{suffix}").stat().st_size > 100
    with pytest.raises(ValueError, match="suffix 'png'"):
        picture.save(tmp_path / "p.png")


def test_graph_of_many_layers_takes_no_long_time():
    def f(x):
        for _ in range(100):
            x = jnp.sin(x) * x
        return x

    found = explain.graph(jax.grad(f), 1.0)
    assert ET.fromstring(found.svg()) is not None
    assert len(found.nodes) > 400


def _both(make, *args):
    """The difference between our program and upstream's."""
    ours, theirs = make(jax, jnp), upstream.make_jaxpr(make(upstream, upstream.numpy))(*args)
    return explain.diff(ours, theirs, *args)


def test_equal_programs_have_no_difference():
    f = lambda x: jnp.sin(x) * 2 + x
    assert explain.diff(f, lambda y: jnp.sin(y) * 2 + y, X).same
    assert explain.diff(f, jax.make_jaxpr(f)(X), X).same
    make = lambda m, np: lambda x: m.lax.fori_loop(0, 3, lambda i, x: np.sin(x) @ x.T @ x, x)
    assert _both(make, X).same
    assert not _both(lambda m, np: m.grad(lambda x: np.sum(np.exp(x) * x)), X)


@pytest.mark.parametrize("transform", ["", "jit", "grad", "vmap"])
def test_functions_of_upstream(transform):
    def make(m):
        f = lambda x: m.numpy.sum(m.nn.softmax(x @ x.T, axis=-1) ** 2)
        return getattr(m, transform)(f) if transform else f

    x = X[None] if transform == "vmap" else X
    told = str(explain.diff(make(jax), make(upstream), x))
    assert told == str(explain.diff(make(jax), upstream.make_jaxpr(make(upstream))(x), x))
    assert "np.int64" not in told
    with pytest.raises(TypeError, match="contracting dimensions"):
        explain.diff(lambda x: x @ x, lambda x: x @ x, X)


@pytest.mark.parametrize(
    ("g", "marks"),
    [
        (lambda x: jnp.cos(x) * 2 + x, ["~"]),
        (lambda x: jnp.sin(x) * 3 + x, ["~"]),
        (lambda x: jnp.sin(x) * 2, ["-", "~"]),
        (lambda x: jnp.abs(jnp.sin(x)) * 2 + x, ["+", "~"]),
        (lambda x: jnp.sin(x) * 2 + jnp.float32(1) * x, None),
    ],
    ids=["primitive", "literal", "one less", "one more", "another operand"],
)
def test_differences_are_marked_where_they_are(g, marks):
    found = explain.diff(lambda x: jnp.sin(x) * 2 + x, g, X)
    assert found
    assert marks is None or sorted({p.mark for p in found.pairs} - {" "}) == sorted(set(marks))
    assert "background" in found._repr_html_()


def test_params_and_bodies_differ():
    loop = lambda n: lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=n)[0]
    found = explain.diff(loop(3), loop(4), X)
    assert [p.mark for p in found.pairs if p.mark != " "] == ["~"]
    assert "length=3" in str(found)
    assert "length=4" in str(found)
    body = lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]
    found = explain.diff(body(jnp.sin), body(jnp.cos), X)
    assert [(p.left.split()[2], p.right.split()[2]) for p in found.pairs if p.mark == "~"] == [
        ("sin", "cos")
    ]
