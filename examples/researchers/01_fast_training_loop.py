# %% [markdown]
# # 1. From a NumPy script to a fast training loop
#
# *My NumPy script works. What do I change so that it is fast and finds its own gradients?*
#
# Five things, one at a time, and each can be checked against the step before it: the import, the
# gradient, `jit`, a loop that runs on the device, and random keys. The script below fits a small
# network to a circle. Its gradient was derived by hand, as one does without JAX.

# %%
import time

import numpy as np

import minijax as jax  # from section 1 on
import minijax.numpy as jnp
from minijax import explain, lax


def numpy_loss_and_gradient(params, x, y):
    w, v = params
    hidden = np.tanh(x @ w)
    error = hidden @ v - y
    d_prediction = 2 * error / len(y)
    d_hidden = np.outer(d_prediction, v) * (1 - hidden**2)
    return np.mean(error**2), (x.T @ d_hidden, hidden.T @ d_prediction)


def numpy_train(params, x, y, steps, rate):
    losses = []
    for _ in range(steps):
        loss, gradient = numpy_loss_and_gradient(params, x, y)
        params = tuple(p - rate * g for p, g in zip(params, gradient, strict=True))
        losses.append(loss)
    return params, np.array(losses)


rng = np.random.RandomState(0)
points = rng.uniform(-1, 1, (64, 2)).astype(np.float32)
x = np.concatenate([points, np.ones((64, 1), np.float32)], axis=1)
y = np.where(np.sum(points**2, axis=1) < 0.6, 1, -1).astype(np.float32)
start = (rng.randn(3, 16).astype(np.float32), 0.3 * rng.randn(16).astype(np.float32))
STEPS, RATE = 100, 0.1

expected, numpy_losses = numpy_train(start, x, y, STEPS, RATE)
print(f"loss: first {numpy_losses[0]:.3f}, last {numpy_losses[-1]:.3f}")

# %% [markdown]
# ## 1. The import, and no gradient by hand
#
# `minijax.numpy` has NumPy's names. Only the loss is written; `value_and_grad` computes it together
# with the gradient, which has the structure of the parameters: here a tuple of two arrays.


# %%
def loss(params, x, y):
    w, v = params
    return jnp.mean((jnp.tanh(x @ w) @ v - y) ** 2)


value, gradient = jax.value_and_grad(loss)(start, x, y)
by_hand = numpy_loss_and_gradient(start, x, y)
np.testing.assert_allclose(value, by_hand[0], rtol=1e-4)
for ours, hand in zip(gradient, by_hand[1], strict=True):
    np.testing.assert_allclose(ours, hand, rtol=1e-3, atol=1e-5)
print("the gradient agrees with the one derived by hand")

# %% [markdown]
# ## 2. jit around a whole step
#
# Without `jit`, each operation is a program of its own, and between two of them Python decides
# what comes next. Put `jit` around as much as possible: around the step, not around the functions
# in it. `jax.tree.map` goes through the parameters whatever their structure is. A function under
# `jit` must be pure: it returns the new parameters and changes nothing.


# %%
def step(params, x, y, rate):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value


fast_step = jax.jit(step)


def loop(step, params, steps):
    losses = []
    for _ in range(steps):
        params, value = step(params, x_, y_, RATE)
        losses.append(value)  # an array: asking for float(value) here would wait for the device
    return params, losses


x_, y_ = jnp.asarray(x), jnp.asarray(y)  # brought to the device once, not in each step
begin = jax.tree.map(jnp.asarray, start)
params, losses = loop(fast_step, begin, STEPS)
np.testing.assert_allclose(jnp.stack(losses), numpy_losses, rtol=1e-2)

# %% [markdown]
# ## 3. The loop on the device
#
# A small step is over before Python has asked for the next one. `lax.scan` makes the loop a part of
# the program: one call runs all of the steps, and the losses come back as one array.


# %%
@jax.jit
def train(params, x, y, rate):
    return lax.scan(lambda params, _: step(params, x, y, rate), params, length=STEPS)


params, losses = train(begin, x_, y_, RATE)
np.testing.assert_allclose(losses, numpy_losses, rtol=1e-2)
for ours, hand in zip(params, expected, strict=True):
    np.testing.assert_allclose(ours, hand, rtol=1e-2, atol=1e-3)


# %% [markdown]
# To measure, call once before (the first call compiles), and wait for the result: a call returns
# before the device has finished. On a program as small as this one, most of the time of the first
# two rows goes to Python; a large model gains less, since its operations take the time.


# %%
def microseconds(call):
    jax.block_until_ready(call())
    start = time.perf_counter()
    jax.block_until_ready(call())
    return (time.perf_counter() - start) / STEPS * 1e6


rows = {
    "NumPy": lambda: numpy_train(start, x, y, STEPS, RATE),
    "a jitted step": lambda: loop(fast_step, begin, STEPS),
    "a jitted loop": lambda: train(begin, x_, y_, RATE),
}
for name, call in rows.items():
    print(f"{name:15}{microseconds(call):8.1f} us a step")

# %% [markdown]
# The signature of `scan` is all there is to know: a state that is carried, a row of inputs in, a
# row of outputs out. The types of the state must stay as they are, so that one program fits every
# step.

# %%
place = explain.where("minijax.lax.scan")
print(place, *place.source.splitlines()[:12], sep="\n")

# %% [markdown]
# ## 4. Random numbers by keys
#
# NumPy's generator has a hidden state, which a pure function cannot have. A key is that state made
# visible: the same key gives the same numbers, and `split` makes new ones. Never use a key twice.


# %%
@jax.jit
def initial(key):
    first, second = jax.random.split(key)
    return jax.random.normal(first, (3, 16)), 0.3 * jax.random.normal(second, (16,))


key = jax.random.key(0)
again = initial(key)
assert all(bool((a == b).all()) for a, b in zip(initial(key), again, strict=True))

# %% [markdown]
# ## 5. Many runs at once
#
# A run is a function of its key. `vmap` makes of it a function of ten keys, and one program trains
# all ten networks side by side.

# %%
seeds = jax.random.split(key, 10)
_, curves = jax.jit(jax.vmap(lambda key: train(initial(key), x_, y_, RATE)))(seeds)
last = curves[:, -1]
print(f"losses: {curves.shape}; the last ones from {last.min():.3f} to {last.max():.3f}")

# %% [markdown]
# ## Exercise 1
#
# Train with five learning rates at once, and check one of them against a run of its own.

# %%
rates = jnp.array([0.01, 0.03, 0.1, 0.2, 0.3])
_, curves = jax.vmap(train, in_axes=(None, None, None, 0))(begin, x_, y_, rates)
assert curves.shape == (5, STEPS)
assert jnp.allclose(curves[2], losses, rtol=1e-2)
print("best rate:", rates[jnp.argmin(curves[:, -1])])

# %% [markdown]
# ## Exercise 2
#
# Add momentum: `m = 0.9 * m + g`, `p = p - rate * m`. Where does `m` go?


# %%
@jax.jit
def train_with_momentum(params, decay):
    def step(state, _):
        params, m = state
        value, gradient = jax.value_and_grad(loss)(params, x_, y_)
        m = jax.tree.map(lambda m, g: decay * m + g, m, gradient)
        return (jax.tree.map(lambda p, m: p - RATE * m, params, m), m), value

    zeros = jax.tree.map(jnp.zeros_like, params)
    (params, _), losses = lax.scan(step, (params, zeros), length=STEPS)  # into the carried state
    return params, losses


faster = train_with_momentum(begin, 0.9)[1]
assert faster[-1] < losses[-1]
assert jnp.allclose(train_with_momentum(begin, 0.0)[1], losses, rtol=1e-2)

# %% [markdown]
# ## Exercise 3
#
# Train on minibatches of 16: permute the rows anew in each epoch, and scan over the batches, then
# over the keys of the epochs.


# %%
@jax.jit
def train_on_batches(params, keys):
    def epoch(params, key):
        order = jax.random.permutation(key, len(y_)).reshape(-1, 16)
        return lax.scan(lambda params, rows: step(params, x_[rows], y_[rows], RATE), params, order)

    return lax.scan(epoch, params, keys)


_, by_batch = train_on_batches(begin, jax.random.split(key, 25))
assert by_batch.shape == (25, 4)  # four batches in each epoch
assert by_batch[-1].mean() < by_batch[0].mean()

# %% [markdown]
# ## Read on
#
# `transforms/grad.py` has `value_and_grad`, and `transforms/jit.py` and
# `transforms/cached_calls.py` what a jitted call does. `lax/control_flow/scan.py` is the loop. The
# next notebook is for the day on which the loop is slow, gives NaN, or does not fit into memory.
