# %% [markdown]
# # 8. Loops and branches
#
# *Why are there `lax.scan` and `lax.cond`, when Python has `for` and `if`?*
#
# Because Python's run while the program is recorded. A `for` of a thousand steps records a thousand
# copies of its body, and an `if` needs a value that is not there yet. A `scan` or `cond` is one
# equation that holds its body as a jaxpr, and runs on the device.

# %%
import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax


def unrolled(x):
    for _ in range(100):
        x = jnp.cos(x)
    return x


def looped(x):
    return lax.fori_loop(0, 100, lambda i, x: jnp.cos(x), x)


for f in (unrolled, looped):
    print(f.__name__, len(jax.make_jaxpr(f)(1.0).jaxpr.eqns), "equations")
print(jax.make_jaxpr(looped)(1.0))

# %% [markdown]
# ## scan
#
# The `fori_loop` became a `scan`, since its number of steps is known. A `scan` carries a state along an
# array: `carry, y = body(carry, x)` for each row `x`, with the
# rows `y` stacked. Its equation holds the body, and says how many operands are constants and how many
# are carried.


# %%
def running(xs):
    def body(total, x):
        total = total + x
        return total, total * x

    return lax.scan(body, 0.0, xs)


xs = jnp.arange(1.0, 5.0)
print(running(xs))
print(jax.make_jaxpr(running)(xs))

# %% [markdown]
# ## The rules of scan
#
# Each interpreter transforms the body and makes a loop of the result. The primitive says which of its
# operands are constants, carried, or read in slices. Rules that `while` has as well follow from that.
# In forward mode a loop carries tangents beside its values; most of the work is to find out which
# tangents are zero, and stay zero from one step to the next.

# %%
for row in explain.primitive("scan").rows:
    if row.column in ("jvp", "batch_axis", "linearize", "transpose"):
        print(row.column.ljust(12), row.place)
place = explain.where("minijax.lax.control_flow.scan_rules.scan_p")
print(place, place.source, sep="\n")
place = explain.where("minijax.lax.control_flow.loop_rules.loops")
print(place, place.source, sep="\n")
place = explain.where("minijax.lax.control_flow.loop_rules.with_tangents")
print(place, place.source, sep="\n")

# %% [markdown]
# Reverse mode runs two loops. The first computes the values and stacks the residuals of each step.
# The second is the transposed linear part, and runs from the last step to the first.

# %%
gradient = jax.grad(lambda xs: running(xs)[1].sum())
scans = [eqn for eqn in jax.make_jaxpr(gradient)(xs).jaxpr.eqns if eqn.primitive.name == "scan"]
for eqn in scans:
    print("reverse" if eqn.params["reverse"] else "forward", [str(v.aval) for v in eqn.outvars])
print(gradient(xs))

# %% [markdown]
# ## while
#
# The number of iterations of a `while_loop` may depend on the data. So the residuals of its steps
# have no shape that is known in advance, and reverse mode is refused. The rule says so:

# %%
try:
    jax.grad(lambda x: lax.while_loop(lambda x: x < 10.0, lambda x: x * 2.0, x))(1.0)
except ValueError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# In StableHLO there is one loop only, and both `scan` and `while_loop` are written by the same function:

# %%
place = explain.where("minijax.lax.control_flow.loop_lowering.while_op")
print(place, place.source, sep="\n")

# %% [markdown]
# ## cond
#
# A `cond` holds one jaxpr for each branch, and runs one of them. The rules of chapters 4 to 6 transform
# each branch, and choose among the results by the same predicate.


# %%
def damped(x):
    return lax.cond(x > 1.0, lambda x: 1.0 + jnp.log(x), lambda x: x, x)


print(jax.make_jaxpr(damped)(2.0))
print(jax.grad(damped)(2.0), jax.grad(damped)(0.5))

# %% [markdown]
# ## Exercise 1
#
# Write Newton's method for the square root of `a` in two ways: with a fixed number of steps, which can
# be differentiated, and with a `while_loop` that stops once the step is small. Compare both with
# `jnp.sqrt`.


# %%
def fixed(a):
    return lax.fori_loop(0, 8, lambda i, x: 0.5 * (x + a / x), a)


def until(a):
    def far(state):
        return jnp.abs(state[0] - state[1]) > 1e-6 * state[0]

    def step(state):
        x, _ = state
        return 0.5 * (x + a / x), x

    return lax.while_loop(far, step, (a, 2.0 * a))[0]


assert jnp.allclose(jnp.array([fixed(5.0), until(5.0)]), jnp.sqrt(5.0))
assert jnp.allclose(jax.grad(fixed)(5.0), jax.grad(jnp.sqrt)(5.0))

# %% [markdown]
# ## Exercise 2
#
# Sum the rows of a matrix with `scan`, then find the shape of the residuals that the gradient of the
# sum of squares stacks.


# %%
def squares(m):
    return lax.scan(lambda total, row: (total + jnp.sum(row**2), None), 0.0, m)[0]


m = jnp.ones((5, 3))
assert squares(m) == 15.0 and (jax.grad(squares)(m) == 2 * m).all()
_, linear = jax.linearize(squares, m)
shapes = {c.shape for c in jax.make_jaxpr(linear)(m).consts}
print(shapes)
assert (5, 3) in shapes  # one row for each step

# %% [markdown]
# ## Exercise 3
#
# `vmap` of a `while_loop` runs until the last example has finished. What happens to the others
# meanwhile?

# %%
halved = jax.vmap(lambda x: lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x))
assert (halved(jnp.array([1.0, 8.0, 3.0])) == jnp.array([1.0, 1.0, 0.75])).all()
# Their new values are computed too, and not taken: the result is that of each loop alone.

# %% [markdown]
# ## Read on
#
# `lax/control_flow/scan.py` and `lax/control_flow/scan_rules.py`; `lax/control_flow/loops.py` for
# `while`; `lax/control_flow/cond_rules.py` for branches. How a loop is written as StableHLO is in
# `lax/control_flow/loop_lowering.py`.
