"""Random numbers, bit for bit upstream's: keys of both kinds, every sampler, jit and vmap."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.differential import assert_same, x64

LOGITS = np.array([[0.1, 2.0, -1.0, 0.5], [1.0, 0.0, 3.0, -2.0]], np.float32)
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
ITEMS = np.arange(12.0, dtype=np.float32).reshape(4, 3)
BF16 = ml_dtypes.bfloat16

SAMPLERS = {
    "split": lambda r, k: r.split(k, 3),
    "split shape": lambda r, k: r.split(k, (2, 2)),
    "fold_in": lambda r, k: r.fold_in(k, 7),
    "bits": lambda r, k: r.bits(k, (5,)),
    "bits 8": lambda r, k: r.bits(k, (5,), np.uint8),
    "bits 16": lambda r, k: r.bits(k, (2, 3), np.uint16),
    "uniform": lambda r, k: r.uniform(k, (3, 2)),
    "uniform bounds": lambda r, k: r.uniform(k, (4,), minval=-2.0, maxval=3.0),
    "uniform bfloat16": lambda r, k: r.uniform(k, (4,), BF16),
    "uniform float16": lambda r, k: r.uniform(k, (4,), np.float16),
    "normal": lambda r, k: r.normal(k, (3, 2)),
    "normal scalar": lambda r, k: r.normal(k),
    "normal empty": lambda r, k: r.normal(k, (0, 2)),
    "normal bfloat16": lambda r, k: r.normal(k, (4,), BF16),
    "normal float16": lambda r, k: r.normal(k, (4,), np.float16),
    "normal complex": lambda r, k: r.normal(k, (4,), np.complex64),
    "randint": lambda r, k: r.randint(k, (5,), 0, 10),
    "randint negative": lambda r, k: r.randint(k, (5,), -100, 1000),
    "randint uint8": lambda r, k: r.randint(k, (5,), 0, 256, np.uint8),
    "randint int8": lambda r, k: r.randint(k, (5,), -128, 127, np.int8),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (6,)),
    "bernoulli p": lambda r, k: r.bernoulli(k, P),
    "permutation": lambda r, k: r.permutation(k, 10),
    "permutation array": lambda r, k: r.permutation(k, ITEMS),
    "permutation axis": lambda r, k: r.permutation(k, ITEMS, axis=1),
    "permutation independent": lambda r, k: r.permutation(k, ITEMS, axis=0, independent=True),
    "choice": lambda r, k: r.choice(k, 5, (4,)),
    "choice array": lambda r, k: r.choice(k, ITEMS, (2,)),
    "choice axis": lambda r, k: r.choice(k, ITEMS, (2, 2), axis=1),
    "choice without replacement": lambda r, k: r.choice(k, 5, (3,), replace=False),
    "choice p": lambda r, k: r.choice(k, 4, (6,), p=P),
    "choice p without replacement": lambda r, k: r.choice(k, 4, (3,), replace=False, p=P),
    "categorical": lambda r, k: r.categorical(k, LOGITS),
    "categorical shape": lambda r, k: r.categorical(k, LOGITS, shape=(3, 2)),
    "categorical axis": lambda r, k: r.categorical(k, LOGITS, axis=0),
    "categorical without replacement": lambda r, k: r.categorical(
        k, LOGITS, shape=(3, 2), replace=False
    ),
    "gumbel": lambda r, k: r.gumbel(k, (4,)),
    "rademacher": lambda r, k: r.rademacher(k, (5,)),
}
WIDE = {
    "normal": lambda r, k: r.normal(k, (3,)),
    "uniform": lambda r, k: r.uniform(k, (3,), minval=1, maxval=4),
    "randint": lambda r, k: r.randint(k, (5,), 0, 1 << 40),
    "bits": lambda r, k: r.bits(k, (3,), np.uint64),
    "permutation": lambda r, k: r.permutation(k, 9),
    "choice": lambda r, k: r.choice(k, 5, (4,)),
    "categorical": lambda r, k: r.categorical(k, LOGITS.astype(np.float64)),
    "complex": lambda r, k: r.normal(k, (3,), np.complex128),
}


def exactly(ours, theirs):
    assert_same(ours, theirs, rtol=1e-6, atol=1e-6)
    if getattr(theirs, "dtype", None) is not None and np.dtype(np.int32) == theirs.dtype:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    sample = SAMPLERS[name]
    for seed in (0, 1701):
        exactly(
            sample(minijax.random, minijax.random.key(seed)),
            sample(jax.random, jax.random.key(seed)),
        )
    raw = (
        sample(minijax.random, minijax.random.PRNGKey(3)),
        sample(jax.random, jax.random.PRNGKey(3)),
    )
    exactly(*raw)
    jitted = [m.jit(lambda k, m=m: sample(m.random, k))(m.random.key(5)) for m in (minijax, jax)]
    exactly(*jitted)
    mapped = [
        m.vmap(lambda k, m=m: sample(m.random, k))(m.random.split(m.random.key(6), 3))
        for m in (minijax, jax)
    ]
    exactly(*mapped)


@pytest.mark.parametrize("name", WIDE)
def test_wide(name):
    with x64(True):
        ours, theirs = (WIDE[name](m.random, m.random.key(11)) for m in (minijax, jax))
        assert_same(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31, 2**32 - 1, np.int64(5), np.uint32(7)])
def test_seeds(seed):
    for make in ("key", "PRNGKey"):
        ours, theirs = (getattr(m.random, make)(seed) for m in (minijax, jax))
        assert_same(ours, theirs)
    with x64(True):
        assert_same(minijax.random.key(seed), jax.random.key(seed))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_implementations(impl):
    found = []
    for m in (minijax, jax):
        key = m.random.key(9, impl=impl)
        found.append(
            [m.random.bits(key, (4,)), m.random.split(key, 2), m.random.fold_in(key, 3),
             m.random.normal(key, (3,)), m.random.key_data(key)]
        )  # fmt: skip
    assert_same(*found)
    assert str(minijax.random.key(9, impl=impl).dtype) == str(jax.random.key(9, impl=impl).dtype)


def test_keys_are_arrays():
    for m in (minijax, jax):
        keys = m.random.split(m.random.key(0), 6)
        assert keys.shape == (6,) and keys.ndim == 1
        assert keys[2].shape == () and keys.reshape(2, 3).shape == (2, 3)
        carry, out = m.lax.scan(
            lambda k, x: (m.random.fold_in(k, 1), m.random.normal(k) + x), keys[0], np.ones(3)
        )
        assert out.shape == (3,) and carry.dtype == keys.dtype
    ours, theirs = (m.random.split(m.random.key(0), 6) for m in (minijax, jax))
    assert_same(ours[3], theirs[3])
    assert_same(ours[::2], theirs[::2])
    assert_same(ours.reshape(2, 3)[1], theirs.reshape(2, 3)[1])
    assert repr(minijax.random.key(0)) == repr(jax.random.key(0))


def test_gradient_of_a_sample():
    found = [
        m.grad(lambda s, m=m: m.numpy.sum(m.random.normal(m.random.key(0), (3,)) * s))(2.0)
        for m in (minijax, jax)
    ]
    assert_same(*found)
