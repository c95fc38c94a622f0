# %% [markdown]
# # 9. Your own rules
#
# *The function is right but its gradient is NaN. Can I give the derivative myself?*
#
# Yes. `custom_jvp` and `custom_vjp` replace what the machine would derive. The usual reasons are
# numbers that overflow on the way, a solver whose derivative has a formula of its own, and a
# gradient that is to be something else, such as one that is clipped.

# %%
import minijax as jax
import minijax.numpy as jnp
from minijax import explain


def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


print(log1pexp(3.0), jax.grad(log1pexp)(3.0), jax.grad(log1pexp)(100.0))

# %% [markdown]
# Where does the NaN come from? `explain.nan` runs the gradient equation by equation and names the
# line.

# %%
try:
    explain.nan(jax.grad(log1pexp))(100.0)
except FloatingPointError as error:
    print(error)

# %% [markdown]
# `exp(100)` overflows to infinity. The derivative of the logarithm is then 0, that of `exp` is
# infinite, and their product is NaN. Written as `1 - 1 / (1 + exp(x))` the derivative is right at any
# `x`. (The value overflows too; `jnp.logaddexp(x, 0.0)` does not. Here we mend the gradient alone.)


# %%
@jax.custom_jvp
def softplus(x):
    return jnp.log(1.0 + jnp.exp(x))


@softplus.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * t


print(jax.grad(softplus)(3.0), jax.grad(softplus)(100.0))

# %% [markdown]
# ## How it works
#
# A call of such a function is an equation that holds the function and the rule. All interpreters but
# one look at the function. The one that differentiates calls the rule:

# %%
print(jax.make_jaxpr(softplus)(3.0))
for row in explain.primitive("custom_jvp_call").rows:
    if row.column == "jvp":
        print(row.place, row.place.source, sep="\n")

place = explain.where("minijax.features.custom_rules.custom_jvp.FlatJVP.__call__")
print(place, place.source, sep="\n")

# %% [markdown]
# The rule is an ordinary function in the trace further out, so it is differentiated for second
# derivatives, and it works under `vmap` and `jit`.

# %%
print(jax.grad(jax.grad(softplus))(0.0), jax.vmap(jax.grad(softplus))(jnp.array([0.0, 100.0])))
for line in explain(jax.grad(softplus), 3.0, compile=False)["jaxpr"].lines:
    print(line.text.ljust(34), line.made)

# %% [markdown]
# ## custom_vjp
#
# `custom_vjp` gives reverse mode alone, in two parts: a forward function that also returns
# residuals, and a backward function from residuals and cotangents to cotangents. Here the value passes
# unchanged and the gradient is clipped:


# %%
@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
print(jax.grad(lambda x: 100.0 * clipped(x))(2.0))

# %% [markdown]
# Forward mode has no rule to use, and says so:

# %%
try:
    jax.jvp(clipped, (1.0,), (1.0,))
except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# ## Exercise 1
#
# Round to the nearest integer, with the gradient of the identity (the *straight-through estimator*).
# Do it once with `custom_jvp` and once without any rule, with `lax.stop_gradient`.


# %%
@jax.custom_jvp
def rounded(x):
    return jnp.round(x)


rounded.defjvps(lambda t, out, x: t)


def rounded_without(x):
    return x + jax.lax.stop_gradient(jnp.round(x) - x)


assert rounded(2.7) == rounded_without(2.7) == 3.0
assert jax.grad(rounded)(2.7) == jax.grad(rounded_without)(2.7) == 1.0

# %% [markdown]
# ## Exercise 2
#
# A rule may be wrong, and nothing notices but a test. `check_grads` compares a rule with finite
# differences. Let it find the mistake.


# %%
@jax.custom_jvp
def cube(x):
    return x**3


cube.defjvps(lambda t, out, x: 2 * x**2 * t)  # wrong: it is 3 * x**2

from minijax.test_util import check_grads  # noqa: E402

try:
    check_grads(cube, (1.5,), order=1, modes=["fwd"])
    noticed = False
except AssertionError:
    noticed = True
assert noticed

cube.defjvps(lambda t, out, x: 3 * x**2 * t)
check_grads(cube, (1.5,), order=1, modes=["fwd", "rev"], atol=0.01, rtol=0.01)

# %% [markdown]
# ## Exercise 3
#
# The result x of a fixed point x = cos(a x) satisfies an equation. Differentiate that equation with
# respect to `a` and give the answer as a rule, so that the `while_loop` (chapter 8: no reverse mode)
# can be differentiated.


# %%
@jax.custom_jvp
def fixed_point(a):
    def far(state):
        return jnp.abs(state[0] - state[1]) > 1e-6

    return jax.lax.while_loop(far, lambda s: (jnp.cos(a * s[0]), s[0]), (1.0, 0.0))[0]


@fixed_point.defjvp
def _(primals, tangents):
    (a,), (t,) = primals, tangents
    x = fixed_point(a)
    s = jnp.sin(a * x)
    return x, -s * x / (1.0 + s * a) * t


step = 1e-2
numeric = (fixed_point(0.8 + step) - fixed_point(0.8 - step)) / (2 * step)
assert jnp.allclose(jax.grad(fixed_point)(0.8), numeric, atol=1e-3)

# %% [markdown]
# ## Read on
#
# `features/custom_rules/custom_jvp.py`, then `features/custom_rules/custom_vjp.py` and
# `features/custom_rules/custom_batching.py`, which gives `vmap` a rule of your own. None of them is
# part of the core: they register primitives as anybody can. Chapter 10 does so.
