"""What a user sees of an error: their own lines, and few of the library's."""

import functools
import importlib
import inspect
import os
import traceback
import warnings

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.config import override
from minijax.scipy.signal import csd
from tests.test_namespace import MODULES

pytestmark = pytest.mark.both_ends

HOME = os.path.dirname(minijax.__file__)
X = np.ones(3, np.float32)


def wrong(x):
    return x + jnp.ones(4)


CALLS = {
    "eager": lambda: wrong(jnp.asarray(X)),
    "jit": lambda: minijax.jit(wrong)(X),
    "grad": lambda: minijax.grad(wrong)(X),
    "vmap": lambda: minijax.vmap(wrong)(np.ones((2, 3))),
    "scan": lambda: minijax.lax.scan(lambda c, x: (wrong(c), x), X, X),
    "nested": lambda: minijax.jit(minijax.vmap(minijax.grad(wrong)))(np.ones((2, 3))),
}


def frames(call):
    with pytest.raises(TypeError) as caught:
        call()
    error = caught.value
    assert error.__context__ is None
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return names, error


@pytest.mark.parametrize("name", CALLS)
def test_the_user_sees_the_lines_of_the_user(name):
    names, error = frames(CALLS[name])
    assert sum(name.startswith(HOME) for name in names) <= 1
    assert names.count(__file__) >= 3
    assert "traceback_filtering" in error.__notes__[0]


def test_all_frames_are_shown_on_request():
    with override("traceback_filtering", "off"):
        names, error = frames(CALLS["nested"])
    assert len(names) > 10
    assert not hasattr(error, "__notes__")


def adds(x):
    return x + jnp.ones(4)


# Each call of a user's raises an error that has no frame of the library.
BARE = {
    "x[1, 2]": lambda x: x[1, 2],
    "x[3.5]": lambda x: x[3.5],
    "x + y": adds,
    "y + x": lambda x: np.ones(4) + x,
    "x.at[]": lambda x: x.at[1.5].set(1),
    "reshape": lambda x: x.reshape(4, 4),
    "astype": lambda x: x.astype("no dtype"),
    "sum": lambda x: x.sum(3),
    "jnp.sin": lambda x: jnp.sin("a"),
    "jnp.concatenate": lambda x: jnp.concatenate(x, x),
    "jit": lambda x: minijax.jit(adds)(x),
    "jit, bool": lambda x: minijax.jit(lambda x: x if x.sum() > 0 else -x)(x),
    "jit, NumPy": lambda x: minijax.jit(np.sin)(x),
    "jit, result": lambda x: minijax.jit(lambda x: "a")(x),
    "jit, argument": lambda x: minijax.jit(adds)("a"),
    "jit, static": lambda x: minijax.jit(lambda x, n: x, static_argnums=1)(x, [1]),
    "jit in jit": lambda x: minijax.jit(lambda x: minijax.jit(adds)(x))(x),
    "lower": lambda x: minijax.jit(adds).lower(x),
    "trace": lambda x: minijax.jit(adds).trace(x),
    "jit.eval_shape": lambda x: minijax.jit(adds).eval_shape(x),
    "eval_shape": lambda x: minijax.eval_shape(adds, x),
    "make_jaxpr": lambda x: minijax.make_jaxpr(adds)(x),
    "grad": lambda x: minijax.grad(adds)(x),
    "vmap": lambda x: minijax.vmap(adds)(x[None]),
    "jvp": lambda x: minijax.jvp(adds, (x,), (x,)),
    "vjp": lambda x: minijax.vjp(adds, x),
    "vjp's function": lambda x: minijax.vjp(jnp.sin, x)[1](1),
    "linearize": lambda x: minijax.linearize(adds, x),
    "checkpoint": lambda x: minijax.checkpoint(adds)(x),
    "custom_vjp": lambda x: minijax.custom_vjp(adds)(x),
    "scan": lambda x: minijax.lax.scan(lambda c, a: (c, adds(a)), x, x[None]),
    "while_loop": lambda x: minijax.lax.while_loop(lambda x: x, lambda x: x, x),
    "cond": lambda x: minijax.lax.cond(True, lambda: x, lambda: 1),
    "bool": lambda x: bool(x),
    "float": lambda x: float(x),
    "int of complex": lambda x: int(x[0] * 1j),
    "index": lambda x: [1, 2][x],
}


def of_library(error):
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [name for name in names if name.startswith(HOME)]


@pytest.mark.parametrize("name", BARE)
def test_no_frame_of_the_library(name):
    x = jnp.asarray(X)
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError)) as caught:
        BARE[name](x)
    assert not of_library(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_few_frames_of_functions_that_compute_at_once():
    for call in (lambda: minijax.lax.add(jnp.ones(3), jnp.ones(4)), lambda: minijax.lax.sin("a")):
        with pytest.raises(TypeError) as caught:
            call()
        assert len(of_library(caught.value)) <= 2


@pytest.mark.parametrize("use", [lambda y: y + 1, jnp.cos, lambda y: minijax.jit(jnp.sin)(y)])
@pytest.mark.parametrize("read", [True, False])
def test_a_leaked_tracer_says_where_it_was_made(use, read):
    kept = []

    def leaks(x):
        kept.append(jnp.sin(x))  # the line
        return kept[0] if read else x

    minijax.jit(leaks)(X)
    with pytest.raises(
        minijax.errors.UnexpectedTracerError, match=r"made by sin at .*leaks"
    ) as caught:
        use(kept[0])
    assert not of_library(caught.value)
    assert caught.value.__context__ is None


def test_concatenate_of_two_arrays_wants_a_list():
    with pytest.raises(
        ValueError, match=r"^Zero-dimensional arrays cannot be concat.*\(\[a, b\]\)"
    ):
        jnp.concatenate(jnp.ones(3), jnp.ones(3))


# Modules whose functions the library itself calls on its hot paths, those that change the process, and
# one whose functions are made by others.
OTHERWISE = {
    "jax.dtypes", "jax.tree", "jax.tree_util", "jax.profiler", "jax.distributed",
    "jax.example_libraries.stax", "jax.experimental.compilation_cache.compilation_cache",
    "jax.experimental.multihost_utils",
}  # fmt: skip


class NoArray:
    """An argument that no function takes."""


def functions(module):
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if isinstance(value, (type, functools.partial)) or not callable(value):
            continue
        if "register" in name:  # takes any function, and keeps it
            continue
        try:
            parameters = inspect.signature(value).parameters.values()
        except (TypeError, ValueError):
            continue
        count = sum(p.default is p.empty and p.kind in (0, 1) for p in parameters)
        if count:
            yield name, value, count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*MODULES} - OTHERWISE))
def test_errors_of_public_functions_end_at_the_users_line(name, capsys, monkeypatch, tmp_path):
    """Each function with arguments of no use: no frame of the library follows the user's."""
    monkeypatch.chdir(tmp_path)  # some write files
    module = importlib.import_module(f"mini{name}")
    if "public(__name__)" not in inspect.getsource(module):
        pytest.skip("its functions are for libraries")
    found = []
    for called, function, count in functions(module):
        for argument in (NoArray(), "a", 1):
            try:
                function(*[argument] * count)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                found += [
                    f"{called}: {f.filename}:{f.lineno}"
                    for f in frames
                    if f.filename.startswith(HOME)
                ]
    assert not found


OBJECTS = {
    "map": lambda: minijax.tree.map(lambda *x: x, [1], [1, 2]),
    "map_with_path": lambda: minijax.tree.map_with_path(lambda *x: x, [1], {"a": 2}),
    "add": lambda: jnp.add(1, "a"),
    "add.reduce": lambda: jnp.add.reduce("a"),
    "add.at": lambda: jnp.add.at(X, "a", 1, inplace=False),
    "add.outer": lambda: jnp.add.outer("a", 1),
    "out=": lambda: jnp.add(1, 2, out=X),
    "vectorize": lambda: jnp.vectorize(lambda x: x + "a")(X),
    "view": lambda: jnp.asarray(X).view("foo"),
    "format": lambda: format(jnp.asarray(X), "d"),
    "item": lambda: jnp.asarray(X).__setitem__(0, 1),
    "r_": lambda: jnp.r_["a":1],
    "c_": lambda: jnp.c_["a"],
    "mgrid": lambda: jnp.mgrid["a":1],
    "iter": lambda: iter(jnp.float32(1)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_errors_of_objects_end_at_the_users_line(name):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as caught:
        OBJECTS[name]()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [file for file in files if file.startswith(HOME)]


WARNINGS = {
    "dtype of numpy": lambda: jnp.zeros(2, "float64"),
    "dtype of random": lambda: minijax.random.normal(minijax.random.key(0), (2,), "float64"),
    "dtype of lax": lambda: minijax.lax.iota("int64", 3),
    "astype": lambda: jnp.asarray(X).astype("float64"),
    "complex": lambda: minijax.lax.convert_element_type(jnp.asarray(X) + 1j, "float32"),
    "scatter": lambda: jnp.zeros(2, "int8").at[0].set(1.5),
    "one-sided": lambda: csd(jnp.asarray(X) + 1j, jnp.asarray(X)),
    "donated": lambda: minijax.jit(lambda x: x[0], donate_argnums=0)(jnp.asarray(X)),
    "size": lambda: jnp.size("a"),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_point_at_the_users_line(name):
    with override("enable_x64", False), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        WARNINGS[name]()
    assert found
    assert {warning.filename for warning in found} == {__file__}
