"""`minijax.strict()`: silent faults are errors with the user's line; nothing else is one."""

import os
import re
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, random

X = np.arange(3, dtype=np.float32)
I = np.int32(7)
BYTES, UNSIGNED, HALVES = jnp.zeros(3, "int8"), jnp.zeros(3, "uint8"), jnp.zeros(3, "float16")
WIDE, LARGE = jnp.asarray(300), np.float64(1e300)


# fmt: off
OUT_OF_BOUNDS = {
    "number": lambda x: x[10],
    "negative": lambda x: x[-5],
    "several axes": lambda x: jnp.ones((3, 4))[1, 4],
    "array": lambda x: x[jnp.array([0, 7])],
    "traced": lambda x: jax.jit(lambda x, i: x[i])(x, I),
    "set": lambda x: x.at[5].set(1.0),
    "add": lambda x: x.at[jnp.array([1, 3])].add(1.0),
    "get": lambda x: x.at[-4].get(),
    "take": lambda x: jnp.take(x, 7),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.array([7]), 0),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (2,), (2,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2], (2,)),
    "under vmap": lambda x: jax.vmap(lambda i: x[i])(jnp.arange(5)),
    "under grad": lambda x: jax.grad(lambda x: x[I])(x),
    "in scan": lambda x: lax.scan(lambda c, i: (c + x[i], c), 0.0, jnp.arange(5))[0],
    "in fori_loop": lambda x: lax.fori_loop(0, 4, lambda i, c: c.at[i].add(1.0), x),
    "in while and cond": lambda x: lax.while_loop(
        lambda i: i < 5, lambda i: lax.cond(i > 2, lambda i: i + (x[i] > 9), lambda i: i, i) + 1, 0),
    "tuple of arrays": lambda x: jnp.ones((3, 4))[jnp.array([0, 1]), jnp.array([3, 4])],
    "of a new axis": lambda x: x[None, 3],
    "behind an ellipsis": lambda x: jnp.ones((2, 3))[..., 3],
    "NumPy's integer": lambda x: x[np.int64(3)],
    "multiply": lambda x: x.at[3].multiply(2.0),
    "min": lambda x: x.at[jnp.array([-4])].min(2.0),
    "max in jit": lambda x: jax.jit(lambda x, i: x.at[i].max(2.0))(x, I),
    "apply": lambda x: x.at[4].apply(jnp.sin),
    "row of a matrix": lambda x: jnp.ones((2, 3)).at[2].set(0.0),
    "method take": lambda x: x.take(jnp.array([1, 3])),
    "dynamic_index_in_dim": lambda x: lax.dynamic_index_in_dim(x, 3),
    "dynamic_slice_in_dim": lambda x: lax.dynamic_slice_in_dim(x, 2, 2),
    "in jit of jit": lambda x: jax.jit(lambda i: jax.jit(lambda i: x[i] * 2)(i))(I),
    "jvp of vmap": lambda x: jax.jvp(jax.vmap(lambda i, y: y * x[i], (0, None)), (jnp.arange(4), 1.0), (np.zeros(4, jax.dtypes.float0), 1.0)),
}
NARROWED = {
    "integers of the host": lambda x: jnp.sin(np.array([2**40])),
    "array of integers": lambda x: jnp.array(np.array([2**40])),
    "argument of a jit": lambda x: jax.jit(lambda y: y + 1)(np.array([2**40])),
    "floats": lambda x: x + np.array([1e300]),
    "written to int8": lambda x: jnp.zeros(3, jnp.int8).at[0].set(300),
    "negative, to unsigned": lambda x: UNSIGNED.at[0].set(-WIDE),
    "float to integers": lambda x: BYTES.at[1].set(x[1] + 0.5),
    "added to int8": lambda x: BYTES.at[0].add(WIDE),
    "float16": lambda x: HALVES.at[0].set(x[2] * 1e30),
    "in jit": lambda x: jax.jit(lambda y: BYTES.at[0].set(y))(WIDE),
    "scalar of the host": lambda x: x[0] + LARGE,
    "number of Python": lambda x: x + 1e300,
    "integers of device_put": lambda x: jax.device_put(np.array([2**40])),
    "unsigned": lambda x: jnp.asarray(np.array([2**63], np.uint64)),
    "stacked": lambda x: jnp.stack([np.array([2**40]), np.array([1])]),
}
KEYS = {
    "two calls": lambda k: random.normal(k) + random.uniform(k),
    "in jit": lambda k: jax.jit(lambda k: random.normal(k) + random.uniform(k))(k),
    "in two jits": lambda k: (jax.jit(random.normal)(k), jax.jit(random.normal)(k)),
    "after a split": lambda k: (random.split(k), random.normal(k)),
    "split twice": lambda k: (random.split(k), random.split(k)),
    "of an array of keys": lambda k: (s := random.split(k), random.normal(s[0]), random.normal(s[0])),
    "in scan": lambda k: lax.scan(lambda c, _: (c + random.normal(k), None), 0.0, None, length=3),
    "in fori_loop": lambda k: lax.fori_loop(0, 3, lambda i, c: c + random.normal(k), 0.0),
    "in a branch": lambda k: (random.normal(k), lax.cond(True, random.normal, random.uniform, k)),
    "under vmap": lambda k: jax.vmap(lambda k: random.normal(k) + random.uniform(k))(random.split(k)),
    "under grad": lambda k: jax.grad(lambda x: x * random.normal(k) * random.normal(k))(1.0),
    "split after its use": lambda k: (random.normal(k), random.split(k)),
    "fold_in": lambda k: (random.fold_in(k, 1), random.bits(k), random.bits(k)),
    "of an array of keys, in a branch": lambda k: (
        s := random.split(k), random.normal(s[1]), lax.cond(True, lambda s: random.normal(s[1]), lambda s: 0.0, s)),
    "of an array of keys, in a loop": lambda k: (
        s := random.split(k), lax.fori_loop(0, 3, lambda i, c: c + random.normal(s[1]), 0.0)),
    "bits": lambda k: (random.bits(k), random.randint(k, (), 0, 9)),
}
LEAKS = {
    "jit": lambda x, keep: jax.jit(lambda x: keep(x * 2))(x),
    "argument": lambda x, keep: jax.jit(lambda x: keep(x))(x),
    "jit of jit": lambda x, keep: jax.jit(lambda x: jax.jit(lambda x: keep(x + 1))(x))(x),
    "grad": lambda x, keep: jax.grad(lambda x: keep(x * 2))(1.0),
    "value_and_grad": lambda x, keep: jax.value_and_grad(lambda x: keep(jnp.sum(x)))(x),
    "vjp": lambda x, keep: jax.vjp(lambda x: keep(jnp.sin(x)), x)[0],
    "linearize": lambda x, keep: jax.linearize(lambda x: keep(x * 2), x)[0],
    "vmap in jit": lambda x, keep: jax.jit(jax.vmap(lambda x: keep(x * 2)))(x),
    "grad of vmap in jit": lambda x, keep: jax.jit(jax.vmap(jax.grad(lambda x: keep(x * 2))))(x),
    "scan": lambda x, keep: lax.scan(lambda c, x: (keep(c + x), x), 0.0, x),
    "while_loop": lambda x, keep: lax.while_loop(lambda c: c < 3, lambda c: keep(c + 1), 0),
    "fori_loop": lambda x, keep: lax.fori_loop(0, 3, lambda i, c: keep(c * 2), x),
    "cond": lambda x, keep: lax.cond(True, lambda x: keep(x * 2), lambda x: x, x),
    "checkpoint": lambda x, keep: jax.grad(jax.checkpoint(lambda x: keep(x * 2)))(1.0),
    "eval_shape": lambda x, keep: jax.eval_shape(lambda x: keep(x * 2), x),
}
OTHERS = {
    "float64": (ValueError, lambda x: jnp.zeros(3, "float64")),
    "astype": (ValueError, lambda x: x.astype("float64")),
    "nan": (FloatingPointError, lambda x: jnp.log(x - 2)),
    "nan in jit": (FloatingPointError, lambda x: jax.jit(lambda x: jnp.log(x - 2) * 2)(x)),
    "nan of a library function": (FloatingPointError, lambda x: jax.scipy.special.spence(-x)),
    "nan of one under jvp": (FloatingPointError, lambda x: jax.jvp(jnp.sqrt, (x,), (0 * x,))),
    "nan of one under vmap": (FloatingPointError, lambda x: jax.vmap(jnp.arccos)(x)),
    "nan of one of a function": (FloatingPointError, lambda x: jnp.vectorize(lambda x: jnp.log(x))(-x)),
    "nan of a gradient": (
        FloatingPointError,
        lambda x: jax.grad(lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), 0).sum())(x)),
}
SOUND = {
    "last": lambda x: x[-1],
    "slice beyond the end": lambda x: x[1:9],
    "mode": lambda x: (x.at[5].set(1.0, mode="drop"), x.at[7].get(mode="clip"),
                       jnp.take(x, 7, mode="fill")),
    "mask": lambda x: x[x > 1],
    "nonzero": lambda x: jnp.nonzero(x > 1, size=3),
    "dropped segments": lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 9]), 2),
    "roll, sort, interp": lambda x: (jnp.roll(x, 5), jnp.sort(x), jnp.interp(9.0, x, x)),
    "mapped": lambda x: jax.vmap(lambda i: x[i])(jnp.arange(3)),
    "rounding": lambda x: x + np.array([0.1]),
    "explicit conversions": lambda x: (jnp.asarray(300).astype(jnp.int8), jnp.float16(7)),
    "masked nan": lambda x: jax.jit(lambda x: jnp.where(x > 1, jnp.log(x - 1), 0))(x),
    "nan masked by the library": lambda x: (
        jax.scipy.special.entr(-x), jax.scipy.special.gamma(jnp.inf), jax.scipy.stats.pareto.logcdf(x / 4, 0.5)),
    "nan masked under transforms": lambda x: (
        jax.vmap(jax.scipy.special.entr)(-x), jax.jvp(jax.scipy.special.entr, (-x - 1,), (x,))),
    "split keys": lambda x: [random.normal(k) for k in random.split(random.key(0), 2)],
    "loops that end apart": lambda x: jax.vmap(
        lambda k, x: lax.while_loop(lambda c: c[1] < 5, lambda c: (random.split(c[0])[0], c[1] * 2 + 1), (k, x))[1]
    )(random.split(random.key(0), 3), x),
    "loops of two axes that end apart": lambda x: jax.vmap(jax.vmap(
        lambda x, y: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + y, y), (x, y)), (0, None)))(
        jnp.stack([x, x + 1]), jnp.array([2.0, 1.0])),
    "gradient": lambda x: jax.value_and_grad(lambda x: jnp.sum(x[jnp.array([0, 2])] ** 2))(x),
    "solve": lambda x: jnp.linalg.solve(jnp.eye(3) + x, x),
}
# fmt: on


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_indices_out_of_bounds(name):
    f = OUT_OF_BOUNDS[name]
    f(jnp.asarray(X))  # silent otherwise
    with jax.strict(), pytest.raises(IndexError, match="out of bounds for axis") as caught:
        f(jnp.asarray(X))
    first = f.__code__.co_firstlineno
    assert any(f"{__file__}:{line}:" in str(caught.value) for line in (first, first + 1))
    with jax.strict(indices=False):
        f(jnp.asarray(X))


@pytest.mark.parametrize("name", NARROWED)
@pytest.mark.filterwarnings("ignore")
def test_values_that_do_not_fit(name):
    f = NARROWED[name]
    f(jnp.asarray(X))
    with jax.strict(), pytest.raises(OverflowError) as caught:
        f(jnp.asarray(X))
    assert f"{__file__}:{f.__code__.co_firstlineno}:" in str(caught.value)
    with jax.strict(narrowing=False):
        f(jnp.asarray(X))


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_are_used_twice(name):
    f = KEYS[name]
    f(random.key(0))
    with jax.strict(), pytest.raises(jax.errors.KeyReuseError) as caught:
        f(random.key(0))
    first = f.__code__.co_firstlineno
    assert any(f"{__file__}:{line}:" in str(caught.value) for line in (first, first + 1))
    with jax.strict(keys=False):
        f(random.key(0))


def _drawn(k):
    return random.normal(k)


def _drawn_twice(x, k):
    first = x * random.normal(k)
    return first + random.uniform(k)


def _twice(f):
    return lambda k: f(k) + f(k)


_INNER = {
    "checkpoint": lambda k: jax.checkpoint(_drawn_twice)(1.0, k),
    "gradient of a checkpoint": lambda k: jax.grad(jax.checkpoint(_drawn_twice))(1.0, k),
    "in jit": lambda k: jax.jit(jax.grad(jax.checkpoint(_drawn_twice)))(1.0, k),
    "checkpoint in vmap": lambda k: jax.vmap(jax.checkpoint(_drawn_twice), (0, None))(
        jnp.ones(2), k
    ),
    "checkpoint called twice": _twice(jax.checkpoint(_drawn)),
    "jit called twice": _twice(jax.jit(_drawn)),
    "jit called twice in jit": jax.jit(_twice(jax.jit(_drawn))),
    "jit in a jit that is called twice": _twice(jax.jit(lambda k: jax.jit(_drawn)(k) + 0)),
    "jit in a checkpoint": _twice(jax.checkpoint(jax.jit(_drawn))),
}


@pytest.mark.parametrize(
    "guard", [jax.strict, lambda: jax.debug_key_reuse(True)], ids=["strict", "keys"]
)
@pytest.mark.parametrize("name", _INNER)
def test_the_lines_of_keys_within_functions(name, guard):
    with guard(), pytest.raises(jax.errors.KeyReuseError) as caught:
        _INNER[name](random.key(0))
    inner = _drawn if "twice" in name or "in a checkpoint" in name else _drawn_twice
    first = inner.__code__.co_firstlineno
    lines = [first + 1] if inner is _drawn else [first + 1, first + 2]
    assert [int(n) for n in re.findall(rf"{__file__}:(\d+):", str(caught.value))] == lines


@pytest.mark.parametrize("name", LEAKS)
def test_tracers_that_are_kept(name):
    f, kept = LEAKS[name], []
    keep = lambda x: (kept.append(x), x)[1]
    with jax.strict(leaks=False):
        f(jnp.asarray(X), keep)
    with jax.strict(), pytest.raises(Exception, match="Leaked tracer") as caught:
        f(jnp.asarray(X), keep)
    assert f"{__file__}:{f.__code__.co_firstlineno}" in str(caught.value)


HOLDERS = {
    "list": lambda places, x: places.kept.setdefault("all", []).append(x),
    "dictionary": lambda places, x: places.kept.update(all={"loss": (x, 1)}),
    "attribute": lambda places, x: setattr(places.model, "mean", x),
    "list of an object": lambda places, x: setattr(places.model, "seen", [x]),
    "attribute of a class": lambda places, x: setattr(places.Model, "shared", x),
    "global": lambda places, x: setattr(places, "last", x),
    "closure": lambda places, x: places.kept.update(f=lambda: x),
}
SAID = {
    "list": "the global `kept['all'][0]` of places",
    "dictionary": "the global `kept['all']['loss'][0]` of places",
    "attribute": "the attribute `mean` of Model",
    "list of an object": "the attribute `seen[0]` of Model",
    "attribute of a class": "the attribute `shared` of Model",
    "global": "the global `last` of places",
    "closure": f"`x`, which <lambda>.<locals>.<lambda> ({__file__}:{HOLDERS['closure'].__code__.co_firstlineno}) closes over",
}
TRANSFORMS = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "jvp of vmap": lambda f: lambda x: jax.jvp(jax.vmap(f), (x,), (x,)),
    "vmap of grad in jit": lambda f: jax.jit(jax.vmap(jax.grad(f))),
}


@pytest.fixture
def places():
    """A module with a class, an object and a dictionary: the collector sees none that was frozen."""
    module = types.ModuleType("places")
    module.Model = type("Model", (), {})
    module.model, module.kept = module.Model(), {}
    return module


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", HOLDERS)
def test_what_keeps_a_tracer(name, transform, places):
    def f(x):
        y = x * 2
        HOLDERS[name](places, y)
        return y

    with jax.strict(), pytest.raises(Exception, match="Leaked tracer") as caught:
        TRANSFORMS[transform](f)(jnp.asarray(X))
    assert f"What keeps them is {SAID[name]}: return values instead." in str(caught.value)
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in str(caught.value)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_faults(name):
    kind, f = OTHERS[name]
    f_line = f.__code__.co_firstlineno
    with jax.strict(), pytest.raises(kind) as caught:
        f(jnp.asarray(X))
    if "nan" in name:
        assert f"{__file__}:{f_line}" in str(caught.value)
    with jax.strict(keys=False, narrowing=False, nans=False, leaks=False):
        f(jnp.asarray(X))


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_sound_gives_the_same(name):
    f = SOUND[name]
    with jax.strict():
        found = f(jnp.asarray(X))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(f(jnp.asarray(X))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_decorated_function_and_what_is_outside():
    checked = jax.strict()(lambda x, i: x[i])
    assert checked(jnp.asarray(X), 2) == 2
    with pytest.raises(IndexError):
        checked(jnp.asarray(X), 3)
    assert jnp.asarray(X)[3] == 2  # as upstream
    assert not jax.config.jax_debug_key_reuse


def _faults():
    """Return the names of the faults that strict mode tells in this thread."""
    calls = {
        "indices": lambda: jnp.asarray(X)[3], "narrowing": lambda: jnp.sin(np.array([2**40])),
        "keys": lambda: KEYS["two calls"](random.key(0)), "nans": lambda: jnp.log(X - 2),
        "leaks": lambda: LEAKS["jit"](jnp.asarray(X), lambda x: kept.append(x) or x),
        "in jit": lambda: OUT_OF_BOUNDS["traced"](jnp.asarray(X)),
    }  # fmt: skip
    kept, found = [], set()
    for name, call in calls.items():
        try:
            call()
        except Exception:
            found.add(name)
    return found


def _in_a_thread(call):
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


EVERY = {"indices", "narrowing", "keys", "nans", "leaks", "in jit"}


def test_the_setting():
    assert not jax.config.jax_strict
    jax.config.update("jax_strict", True)
    try:
        assert jax.config.jax_strict
        assert _faults() == _in_a_thread(_faults) == EVERY
        with jax.strict(nans=False, keys=False, leaks=False):
            assert _faults() == {"indices", "narrowing", "in jit"}
            assert _in_a_thread(_faults) == EVERY
        assert _faults() == EVERY
    finally:
        jax.config.update("jax_strict", False)
    assert _faults() == _in_a_thread(_faults) == set()
    assert not jax.config.jax_debug_key_reuse


def test_a_context_within_a_context():
    with jax.strict():
        with jax.strict(indices=False, leaks=False):
            assert _faults() == {"narrowing", "keys", "nans"}
        assert _faults() == EVERY
    with jax.debug_key_reuse(True), jax.strict(keys=False):
        assert _faults() == EVERY


@pytest.mark.parametrize("variable", ["MINIJAX_STRICT", "JAX_STRICT"])
def test_the_variable_of_the_environment(variable):
    code = (
        "import sys, minijax as jax, minijax.numpy as jnp\n"
        "try: jnp.arange(3)[3]\n"
        "except IndexError: print('told', jax.config.jax_strict)\n"
        "jax.config.update('jax_strict', False)\n"
        "print(jnp.arange(3)[3])"
    )
    for value, told in (("1", "told True\n2\n"), ("0", "2\n")):
        env = {**os.environ, variable: value}
        found = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True
        )
        assert found.stdout == told, found.stderr


def test_references_are_those_of_outside():
    outer = jax.new_ref(jnp.asarray(X))
    with jax.strict():
        inner = jax.new_ref(jnp.asarray(X))
        jax.jit(lambda i: inner.__setitem__(i, 5.0))(1)
        outer[0] = 3.0
        np.testing.assert_array_equal(jax.jit(lambda: inner[...] + outer[...])(), [3, 6, 4])
        with pytest.raises(IndexError):
            jax.jit(lambda i: inner[i])(3)
    inner[0] = 7.0
    np.testing.assert_array_equal(jax.jit(lambda: inner[...])(), [7, 5, 2])


def test_within_a_function_that_is_traced():
    def f(x):
        with jax.strict():
            return jnp.sin(x[1]) * 2

    np.testing.assert_allclose(jax.jit(jax.grad(f))(jnp.asarray(X))[1], 2 * np.cos(1.0), rtol=1e-6)


def test_meshes_in_force_are_no_fault():
    """Operations are run one by one, and yet nothing is traced."""
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    abstract, spec = mesh.abstract_mesh, jax.P("i")
    doubled = jax.shard_map(lambda x: 2 * x, in_specs=spec, out_specs=spec)

    def results():
        with jax.set_mesh(mesh):
            assert jax.sharding.get_abstract_mesh() == abstract
            yield doubled(X)
        yield jax.shard_map(lambda x: 2 * x, mesh=abstract, in_specs=spec, out_specs=spec)(
            jax.device_put(X, jax.NamedSharding(mesh, spec))
        )

    with jax.strict():
        within = list(results())
    try:
        jax.config.update("jax_strict", True)
        whole = list(results())
    finally:
        jax.config.update("jax_strict", False)
    for x in (*within, *whole):
        np.testing.assert_array_equal(x, 2 * X)
    with jax.strict(), pytest.raises(ValueError, match="can only be used outside"):
        jax.jit(lambda x: jax.set_mesh(mesh).__enter__() and x)(X)


def test_shard_map_over_one_device_is_no_fault():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("i")
    f = jax.shard_map(lambda x: x / lax.psum(x, "i"), mesh=mesh, in_specs=spec, out_specs=spec)
    with jax.strict():
        np.testing.assert_array_equal(f(jnp.ones(3)), np.ones(3))


_PAIR = lambda x: (jnp.sum(x**2), {"twice": x * 2, "kind": "pair"})
AUXILIARY = {
    "grad": lambda x: jax.grad(_PAIR, has_aux=True)(x),
    "value_and_grad in jit": lambda x: jax.jit(
        lambda x: jax.value_and_grad(_PAIR, has_aux=True)(x)[0][1]["twice"]
    )(x),
    "vjp": lambda x: jax.vjp(_PAIR, x, has_aux=True),
    "jvp": lambda x: jax.jvp(_PAIR, (x,), (x,), has_aux=True),
    "linearize": lambda x: jax.linearize(_PAIR, x, has_aux=True),
    "jacfwd": lambda x: jax.jacfwd(_PAIR, has_aux=True)(x),
    "hessian": lambda x: jax.hessian(_PAIR, has_aux=True)(x),
    "of a rule under vmap": lambda x: jax.jit(jax.grad(lambda x: jax.vmap(jax.nn.relu)(x).sum()))(
        x
    ),
    "vmap of grad": lambda x: jax.vmap(jax.grad(lambda x: (jnp.sum(x**2), x * 2), has_aux=True))(
        jnp.stack([x, x])
    ),
}


@pytest.mark.parametrize("name", AUXILIARY)
def test_auxiliary_data_and_rules_leak_nothing(name):
    with jax.checking_leaks():
        AUXILIARY[name](jnp.asarray(X))


_OUTSIDE = {
    "from the end": (lambda x, i: x[i - 11], "index -6 (which is -1 from the beginning) is out"),
    "far from the end": (lambda x, i: x[i - 18], "index -13 (which is -8 from the beginning) is out"),
    "written": (lambda x, i: x.at[i].set(0.0), "index 5 is out of bounds for axis 0 of size 5"),
    "slice": (lambda x, i: lax.dynamic_slice(x, (i - 2,), (3,)), "a slice of 3 from index 3 on is"),
    "update": (
        lambda x, i: lax.dynamic_update_slice(x, x[:2], (i - 1,)), "a slice of 2 from index 4 on is",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _OUTSIDE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_what_is_out_of_bounds_is_told_as_it_was_written(name, wrap):
    f, told = _OUTSIDE[name]
    with jax.strict(), pytest.raises(IndexError) as caught:
        wrap(f)(jnp.arange(5.0), jnp.array(5))
    assert told in str(caught.value), str(caught.value)
