# %% [markdown]
# # 3. Testing against upstream
#
# *How do I know that my program computes here what it computes under JAX?*
#
# minijax and upstream JAX share nothing but jaxlib, and both can be imported into one process: each
# is a test of the other. A fault of your own shows as well, since a derivative can be compared with
# differences and `vmap` with a loop. This notebook needs `pip install jax`.

# %%
import jax as upstream
import jax.numpy as unp
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import difftest, explain

print("upstream", upstream.__version__, "- minijax", jax.__version__)

# %% [markdown]
# ## By hand: one function, two libraries
#
# A function that is given its library as an argument runs under both. Arrays of the one go to the
# other through NumPy.


# %%
def attention(np_, q, k):
    weights = np_.exp(q @ k.T / np_.sqrt(q.shape[-1]))
    return weights / np_.sum(weights, axis=-1, keepdims=True)


q = np.random.RandomState(0).randn(4, 3).astype(np.float32)
ours, theirs = attention(jnp, jnp.asarray(q), q), attention(unp, unp.asarray(q), q)
np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)
print(jax.typeof(ours), "-", upstream.typeof(theirs))

# %% [markdown]
# Not only values are to agree. A dtype that is wider or a type that is weak changes what comes
# after, so compare types, too. And random bits are equal, not just their distribution:

# %%
for f in (lambda m: m.numpy.int8(3) * 2.5, lambda m: m.numpy.arange(3) / 2):
    assert str(jax.typeof(f(jax))) == str(upstream.typeof(f(upstream)))
    assert f(jax).weak_type == f(upstream).weak_type
bits = [m.random.bits(m.random.key(7), (4,)) for m in (jax, upstream)]
print(np.asarray(bits[0]))
assert (np.asarray(bits[0]) == np.asarray(bits[1])).all()

# %% [markdown]
# `explain.diff` puts two programs side by side, also one of each library. It is false where nothing
# differs but names.

# %%
difference = explain.diff(
    jax.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0),
    upstream.make_jaxpr(lambda x: unp.sin(x) * 2.0)(1.0),
)
print(difference)
assert not difference

# %% [markdown]
# ## difftest.check
#
# You need not write functions twice. `check` takes a function written with one of the libraries,
# makes it again for the other by replacing the modules that it names, and runs both under the
# transforms that its types allow. Beside upstream it asks *oracles* that need no second library:
# `jit` against eager, `vmap` against a loop, `vjp` as the transpose of `jvp`, and finite
# differences in float64.


# %%
def energy(x):
    return jnp.sum(x * jnp.tanh(x))


report = difftest.check(energy, np.float32([0.5, -1.0, 2.0]))
print(report)
assert report  # true if nothing differs

# %% [markdown]
# The transforms stand in one method. Each is a function of a library and of the function tested:

# %%
place = explain.where("minijax.difftest.checking._Checking.ways")
print(place, place.source, sep="\n")

# %% [markdown]
# ## A fault that it finds
#
# The derivative below is wrong by a factor of two. Everything agrees with everything else, since
# `jvp`, `vjp` and `linearize` follow the same rule. Only finite differences do not.


# %%
@jax.custom_jvp
def cube(x):
    return x**3


@cube.defjvp
def cube_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return cube(x), 6.0 * x**2 * t


report = difftest.check(cube, np.float32(1.5), upstream=False)
print(report)
assert [(c.transform, c.oracle) for c in report.findings] == [("jvp", "finite differences")]

# %% [markdown]
# ## In your tests
#
# With `pytest_plugins = ["minijax.difftest"]` in `conftest.py`, a test with a marker runs under
# both libraries, and what it returns is compared. The tolerance counts units in the last place
# (*ulps*).
#
# ```python
# @pytest.mark.differential(ulps=16)
# def test_softmax():
#     return jax.nn.softmax(X)
# ```
#
# Three commands do the same on a larger scale:
#
# ```
# pytest -p minijax.difftest SUITE              # a suite under both; tests that end differently
# python -m minijax.jax script.py               # an unmodified program, `import jax` being minijax
# python -m minijax.difftest fuzz --composed N  # N random programs
# ```
#
# ## Exercise 1
#
# Which tolerance does a sum of a thousand numbers need? Compare both libraries in ulps, then with
# NumPy in float64.

# %%
numbers = np.random.RandomState(1).rand(1000).astype(np.float32)
sums = [np.asarray(m.numpy.sum(numbers)) for m in (jax, upstream)]
exact = np.sum(numbers, dtype=np.float64)
ulp = np.spacing(np.float32(exact))
print("apart:", abs(sums[0] - sums[1]) / ulp, "ulps; from exact:", abs(sums[0] - exact) / ulp)
assert abs(sums[0] - sums[1]) <= 16 * ulp  # both are XLA's sum
assert abs(sums[0] - exact) <= 100 * ulp  # rounding errors add up

# %% [markdown]
# ## Exercise 2
#
# Mend the rule of `cube`, and have `check` agree.


# %%
@cube.defjvp
def mended(primals, tangents):
    (x,), (t,) = primals, tangents
    return cube(x), 3.0 * x**2 * t


assert difftest.check(cube, np.float32(1.5), upstream=False)

# %% [markdown]
# ## Exercise 3
#
# At which points is a check against finite differences bound to fail, though nobody made a mistake?

# %%
kink = difftest.check(jnp.abs, np.float32(0.0), upstream=False)
print(*kink.findings, sep="\n")
assert [c.oracle for c in kink.findings] == ["finite differences"]  # abs has no derivative at 0
assert difftest.check(jnp.abs, np.float32(0.5), upstream=False)

# %% [markdown]
# ## Read on
#
# `difftest/checking.py` has the oracles, `difftest/rebinding.py` makes a function again for the
# other library, and `difftest/comparing.py` decides what counts as equal. `difftest/generating.py`
# writes random programs, and `difftest/shrinking.py` makes the ones that differ small.
