# %% [markdown]
# # 2. Slow, wrong or out of memory
#
# *The program runs, but it is slow, or NaN comes out, or it does not fit. Where do I look?*
#
# | what you see | ask |
# |---|---|
# | each call takes as long as the first | `explain.recompiles()` |
# | one call takes long | `explain.cost(f, *args)` |
# | out of memory | `explain.memory(f, *args)` |
# | NaN | `explain.nan(f)(*args)` |
# | numbers that cannot be right | `explain.step(f, *args)`, `minijax.strict()` |
#
# All of them answer with lines of your own source. They are loaded when you ask for them.

# %%
import linecache

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax


def text_of(line):
    """The source of a line that a report names: a file and a number."""
    return linecache.getline(*line).strip()


# %% [markdown]
# ## Slow: compiled again and again
#
# A program is compiled for the shapes and dtypes of its arguments. Where these change from call to
# call, you pay for the compilation each time. Here the batches have whatever length is left.


# %%
@jax.jit
def total(batch):
    return jnp.sum(batch**2)


for length in (5, 6, 7):
    total(jnp.ones(length))
report = explain.recompiles(total)
print(report)
print(total.explain_cache())

# %% [markdown]
# The report says which argument changed, from what to what, and what to write instead. On a
# terminal or in a notebook you are told without asking, from the third time on. Here the remedy is
# to pad: one size for all, and a mask for the rows that count.


# %%
@jax.jit
def padded_total(batch, length):
    return jnp.sum(jnp.where(jnp.arange(8) < length, batch, 0.0) ** 2)


for length in (5, 6, 7):
    batch = jnp.pad(jnp.ones(length), (0, 8 - length))
    assert padded_total(batch, length) == total(jnp.ones(length))
assert {change.cause for change in report.changes} == {"shape"}
assert len(padded_total.explain_cache()) == 1

# %% [markdown]
# ## Slow: too much work
#
# `cost` counts operations and bytes by line. It needs the shapes only, so that you can ask about a
# size that you would not wait for. FLOP/B says whether a line computes much or mostly moves data.


# %%
def apply(a, b, v):
    both = a @ b
    return both @ v


n = 1000
shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((n, n), (n, n), (n,))]
work = explain.cost(apply, *shapes, compile=False)
print(work.tables()[0])
dearest = next(iter(work.by_line()))
print("most of the work:", text_of(dearest))

# %% [markdown]
# A matrix times a matrix costs `2 n**3` operations, a matrix times a vector `2 n**2`. Other
# parentheses make it a thousand times cheaper:

# %%
better = explain.cost(lambda a, b, v: a @ (b @ v), *shapes, compile=False)
print(f"{work.flops:.3g} operations, then {better.flops:.3g}")
assert text_of(dearest) == "both = a @ b" and work.flops > 400 * better.flops

# %% [markdown]
# ## Out of memory
#
# A gradient needs values of the forward pass, the *residuals*, and they live until the backward
# pass has read them. `memory` compiles the program and reads XLA's own buffers: which lines take the
# memory at the peak, which residuals they keep, and by how much a `checkpoint` around a line lowers
# the peak. It also works from shapes; nothing is allocated.


# %%
def layer(h, w):
    wide = jnp.tanh(h @ w)
    return jnp.sin(wide) @ w.T


def deep(ws, h, layer):
    h, _ = lax.scan(lambda h, w: (layer(h, w), None), h, ws)
    return jnp.sum(h)


ws = jax.ShapeDtypeStruct((8, 32, 512), jnp.float32)  # eight layers
h = jax.ShapeDtypeStruct((256, 32), jnp.float32)
plain = explain.memory(jax.grad(lambda ws, h: deep(ws, h, layer)), ws, h)
for table in plain.tables()[:2]:
    print(table)

# %% [markdown]
# The wide values of all layers are what is kept. Under `checkpoint` a layer keeps its operands
# only, and the backward pass computes the rest again: less memory for more work.

# %%
saving = explain.memory(jax.grad(lambda ws, h: deep(ws, h, jax.checkpoint(layer))), ws, h)
kept = lambda report: sum(residual.bytes for residual in report.residuals)
print(f"peak {plain.peak / 1e6:.1f} MB, then {saving.peak / 1e6:.1f} MB")
print(f"kept {kept(plain) / 1e6:.1f} MB, then {kept(saving) / 1e6:.1f} MB")
assert saving.peak < plain.peak / 4 and kept(saving) < kept(plain) / 20

# %% [markdown]
# ## Wrong: NaN
#
# `nan` runs the function, and, if a result is NaN, names the line where the first NaN that reaches
# it arose: also in a gradient, in a loop or under `vmap`. This one is the most frequent of all.
# The values are right, since the `where` chooses 0; the gradient is not.


# %%
def root_sum(x):
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))


at_zero = jnp.array([4.0, 0.0])
print(root_sum(at_zero), jax.grad(root_sum)(at_zero))
try:
    explain.nan(jax.grad(root_sum))(at_zero)
except FloatingPointError as error:
    found = error
    print(found)
assert found.backward and found.masked and "jnp.sqrt(x)" in text_of(found.line)


# %% [markdown]
# The last line of the message can be copied:


# %%
def safe_root_sum(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(safe), 0.0))


assert (explain.nan(jax.grad(safe_root_sum))(at_zero) == jnp.array([0.25, 0.0])).all()

# %% [markdown]
# ## Wrong: look at the values
#
# `step` runs the program equation by equation. `run_to` stops where something holds, by default
# where a value is NaN or infinite, and `back` goes back. The softmax below overflows; the stepper
# stands behind the equation that did it, with its values at hand.


# %%
def softmax(x):
    unnormalised = jnp.exp(x)
    return unnormalised / jnp.sum(unnormalised)


stepper = explain.step(softmax, jnp.array([1.0, 2.0, 100.0])).run_to()
print(stepper)
assert stepper.last.primitive.name == "exp" and bool(jnp.isinf(stepper.outputs[0][2]))
stepper.back()
print("next again:", stepper.eqn.primitive, "- of", stepper.values["a"])

# %% [markdown]
# ## Wrong, and no message at all
#
# A compiled program cannot raise an error, so an index out of bounds is clamped: the last element
# is read. A key that is used twice gives the same numbers twice. In strict mode both are errors
# that name your line. It runs operation by operation, so use it to look for a fault, not all the
# time.


# %%
def pick(table, i):
    return table[i]


table = jnp.arange(3.0)
print("without strict mode:", jax.jit(pick)(table, 3))
try:
    with jax.strict():
        jax.jit(pick)(table, 3)
except IndexError as error:
    found = error
    print(found)
assert isinstance(found, IndexError) and "index 3 is out of bounds" in str(found)

# %%
key = jax.random.key(0)
try:
    with jax.strict():
        same = jax.random.bits(key) == jax.random.bits(key)  # always
except Exception as error:
    reused = error
    print(type(error).__name__)
assert type(reused).__name__ == "KeyReuseError"

# %% [markdown]
# The entry of strict mode shows how it is done: a trace of its own sees each operation. Outside of
# it there is no such trace, and so it costs nothing.

# %%
place = explain.where("minijax.explain.strictness.StrictTrace.process")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Exercise 1
#
# This function is jitted inside the loop. How often is it traced, and what does the report say?

# %%
for scale in (1.0, 2.0, 3.0):
    scaled = jax.jit(lambda x: x * scale)
    scaled(jnp.ones(3))
again = explain.recompiles(scaled)
print(again)
assert again.records[0].count >= 3  # functions that are defined anew on one line count as one

once = jax.jit(lambda x, scale: x * scale)
for scale in (1.0, 2.0, 3.0):
    once(jnp.ones(3), scale)
assert explain.recompiles(once).records == []

# %% [markdown]
# ## Exercise 2
#
# Where does this gradient become NaN at `[0, 0]`, and how is the function to be written? Is a value
# masked?


# %%
def length(v):
    return jnp.sqrt(jnp.sum(v**2))


try:
    explain.nan(jax.grad(length))(jnp.zeros(2))
except FloatingPointError as error:
    found = error
assert found.backward and not found.masked and text_of(found.line).startswith("return jnp.sqrt")


def safe_length(v):
    square = jnp.sum(v**2)
    zero = square == 0.0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, square)))


assert (jax.grad(safe_length)(jnp.zeros(2)) == 0.0).all()
assert jnp.allclose(jax.grad(safe_length)(jnp.array([3.0, 4.0])), jnp.array([0.6, 0.8]))

# %% [markdown]
# ## Exercise 3
#
# Stop a program where a value first exceeds 100, in a loop. After how many turns is that?


# %%
def doubled(x):
    return lax.fori_loop(0, 10, lambda i, x: x * 2.0, x)


def exceeds(stepper):
    return any(bool(jnp.any(value > 100.0)) for value in stepper.outputs)


stepper = explain.step(doubled, 1.0).run_to(exceeds)
print(stepper.turn, stepper.outputs)
assert stepper.turn == (7,)  # seven are done, and the stepper stands before the next: 2**7 is 128

# %% [markdown]
# ## Read on
#
# `explain/retracing.py` and `features/diagnostics/recompilations.py`; `explain/work.py` and
# `explain/memory_use.py`, which says what it assumes of XLA; `explain/nans.py`,
# `explain/stepping.py` and `explain/strictness.py`. `explain(f, *args)` shows all the stages of a
# program (chapter 7 of the weekend book).
