"""`minijax.strict()`: silent faults are errors with the user's line; nothing else is one."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, random

X = np.arange(3, dtype=np.float32)
I = np.int32(7)


def _leak(x):
    kept = []
    jax.jit(lambda x: (kept.append(x), x)[1])(x)
    return kept


def _twice(key):
    return random.normal(key) + random.uniform(key)


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
}
NARROWED = {
    "integers of the host": lambda x: jnp.sin(np.array([2**40])),
    "array of integers": lambda x: jnp.array(np.array([2**40])),
    "argument of a jit": lambda x: jax.jit(lambda y: y + 1)(np.array([2**40])),
    "floats": lambda x: x + np.array([1e300]),
    "written to int8": lambda x: jnp.zeros(3, jnp.int8).at[0].set(300),
}
OTHERS = {
    "float64": (ValueError, lambda x: jnp.zeros(3, "float64")),
    "astype": (ValueError, lambda x: x.astype("float64")),
    "key": (Exception, lambda x: _twice(random.key(0))),
    "key in jit": (Exception, lambda x: jax.jit(_twice)(random.key(0))),
    "nan": (FloatingPointError, lambda x: jnp.log(x - 2)),
    "nan in jit": (FloatingPointError, lambda x: jax.jit(lambda x: jnp.log(x - 2) * 2)(x)),
    "nan of a gradient": (
        FloatingPointError,
        lambda x: jax.grad(lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), 0).sum())(x)),
    "leak": (Exception, _leak),
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
    "split keys": lambda x: [random.normal(k) for k in random.split(random.key(0), 2)],
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


def test_within_a_function_that_is_traced():
    def f(x):
        with jax.strict():
            return jnp.sin(x[1]) * 2

    np.testing.assert_allclose(jax.jit(jax.grad(f))(jnp.asarray(X))[1], 2 * np.cos(1.0), rtol=1e-6)
