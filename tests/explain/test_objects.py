"""Objects that show themselves: arrays, trees, shardings, keys, programs, and through Treescope."""

import base64
import collections
import os
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.showing_trees import register_treescope


def test_arrays_and_programs():
    array = jnp.linspace(0.0, 1.0, 400).reshape(20, 20).at[3, 3].set(jnp.nan)
    array.block_until_ready()
    shown = explain.html_of(array)
    assert "float32[20,20]" in shown
    assert "0 … 1 1 NaN" in shown
    data = base64.b64decode(re.search(r"base64,([^\"]*)", shown)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    rows = zlib.decompress(data[data.index(b"IDAT") + 4 : -16])
    pixels = np.frombuffer(rows, np.uint8).reshape(20, 61)[:, 1:].reshape(20, 20, 3)
    assert pixels[3, 3].tolist() == [255, 0, 0]
    assert pixels[0, 0].tolist() == [0, 0, 0]
    assert pixels[19, 19].tolist() == [255, 255, 255]
    assert "img" not in explain.html_of(jnp.zeros(1 << 21))
    assert "[1, 2]" in explain.html_of(jnp.array([1, 2]))
    for dtype in (bool, jnp.int8, jnp.bfloat16, jnp.complex64):
        assert "img" in explain.html_of(jnp.ones((5, 5), dtype))
    f = jax.jit(lambda x: jnp.sin(x) * 2)
    f(1.0)
    assert "1 traced" in explain.html_of(f)
    assert "sin" in explain.html_of(jax.make_jaxpr(f)(1.0))
    assert ">f32[]<" in explain.html_of(f.lower(1.0))
    assert explain.html_of("text") is None


def test_keys_show_their_words():
    shown = explain.html_of(jax.block_until_ready(jax.random.key(1)))
    assert "key&lt;fry&gt;[]" in shown
    assert "00000000 00000001" in shown
    assert explain.html_of(jax.random.split(jax.random.key(1), 9)).count("\n") == 4


Pair = collections.namedtuple("Pair", ["w", "b"])
TREE = {"layers": [Pair(jnp.ones((3, 4)), np.ones(4)), Pair(2.5, None)], "name": "<x>" * 60}


def test_trees_fold_and_no_value_is_fetched(monkeypatch):
    monkeypatch.setattr(type(TREE["layers"][0].w), "__array__", None)
    shown = explain.html_of(TREE)
    assert shown.count("<details") == shown.count("</details>") == 4
    assert "float32[3,4]" in shown
    assert "np float64[4]" in shown
    assert "[&#x27;layers&#x27;]" in shown
    assert "<x>" not in shown
    many = explain.html_of([[jnp.float32(1)] * 50] * 300)
    assert "… 200 more" in many
    assert len(many) < 200_000


def test_what_is_still_computed_is_not_waited_for(monkeypatch):
    array = jnp.ones(20)
    monkeypatch.setattr(type(array), "is_ready", lambda self: False)
    assert "being computed" in explain.html_of(array)


_SHARDED = """
import minijax as jax, minijax.numpy as jnp
from minijax import explain
mesh = jax.make_mesh((4, 2), ("x", "y"))
sharding = jax.NamedSharding(mesh, jax.P("x", None))
shown = explain.html_of(jax.device_put(jnp.ones((8, 6)), sharding))
assert shown.count("<td") == 4 and ">2, 3<" in shown, shown
assert explain.html_of(mesh).count("<td") == 8
assert "x: 4, y: 2" in explain.html_of(sharding)
across = jax.NamedSharding(mesh, jax.P(None, ("x", "y")))
shown = explain.html_of(jax.device_put(jnp.ones((3, 8, 2)), across))
assert (shown.count("<tr"), shown.count("<td")) == (1, 8), shown
"""


def test_stages_are_shown_by_their_types_and_what_shows_itself_is_left_alone():
    traced = jax.jit(lambda p, x: {"y": p["w"] @ x}).trace({"w": jnp.ones((2, 2))}, jnp.ones(2))
    for stage in (traced, traced.lower(), traced.lower().compile()):
        shown = explain.html_of(stage)
        assert "f32[2,2], f32[2]<" in shown and ">f32[2]<" in shown
    place = explain.where(jnp.clip)
    assert explain.html_of(place) is None and place._repr_html_()


def test_shardings_are_drawn():
    options = "--xla_force_host_platform_device_count=8"
    command = [sys.executable, "-c", _SHARDED]
    env = {**os.environ, "XLA_FLAGS": options}
    ran = subprocess.run(command, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_treescope_shows_arrays_and_fetches_their_edges_only(monkeypatch):
    treescope = pytest.importorskip("treescope")
    register_treescope()
    assert "w=<float32[3,4]>" in treescope.render_to_text(TREE)
    fetched = []
    array = type(TREE["layers"][0].w)
    fetch = array.__array__
    monkeypatch.setattr(
        array,
        "__array__",
        lambda self, *args, **kw: fetched.append(self.size) or fetch(self, *args, **kw),
    )
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        page = treescope.render_to_html(
            [jnp.zeros((3000, 2000)), jax.random.key(0)], compressed=False
        )
    assert "float32[3000,2000]" in page
    assert "key&lt;fry&gt;[]" in page or "key<fry>[]" in page
    assert max(fetched, default=0) < 100_000
