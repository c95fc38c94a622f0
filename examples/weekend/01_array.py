# %% [markdown]
# # 1. An array and its dispatch
#
# *Why is the first `jnp.sin(x)` so much slower than the second?*
#
# NumPy calls a function that was compiled years ago. Here there is no such function: the first
# call writes a program for this operation, this shape and this dtype, hands it to the compiler
# XLA, and keeps the result. The second call finds it. (Compiled programs are kept on disk, too:
# when this chapter runs for the second time, the first call is faster.)

# %%
import time

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax


def seconds(call):
    start = time.perf_counter()
    call().block_until_ready()
    return time.perf_counter() - start


x = jnp.arange(7.0)  # a size that nothing else in this session has
first, second = seconds(lambda: lax.sin(x)), seconds(lambda: lax.sin(x))
print(f"first call: {first * 1e3:.2f} ms, second call: {second * 1e3:.2f} ms")

# %% [markdown]
# ## What an array is
#
# An array holds two things: a buffer, which belongs to XLA and lies in the memory of a device, and
# a *signature*. The signature is everything that a compiled program may depend on: the type (the
# *aval*, for abstract value), the place, and whether the array must stay there. The text below is
# read from the source that runs, at the moment this cell runs.

# %%
place = explain.where("minijax.arrays.array.Signature")
print(place, place.source, sep="\n")

# %%
print(x.signature)
print("aval:", x.aval, "- shape:", x.aval.shape, "- dtype:", x.aval.dtype)

# %% [markdown]
# Signatures are *interned*: two arrays of one type in one place share one signature object. Asking
# whether a program fits an argument is then a comparison of two pointers, not of shapes.

# %%
y = jnp.ones(7)
print(x.signature is y.signature, x.signature is jnp.ones(8).signature)

# %% [markdown]
# ## How an operation runs
#
# `lax.sin` is a call of `bind` on the primitive `sin`. `bind` asks the current *trace* what the
# primitive means. Outside of all transforms that is the evaluation trace, and it comes to this
# function:

# %%
place = explain.where("minijax.arrays.dispatch.run_primitive")
print(place, place.source, sep="\n")

# %% [markdown]
# The key of the table is the primitive, the signatures of the operands and the parameters. If
# the table has no program under that key, one is made. To the compiler a single operation is
# nothing special: it is a program of one equation.

# %%
place = explain.where("minijax.arrays.dispatch._compile_primitive")
print(place, place.source, sep="\n")

# %% [markdown]
# `explain` shows that program at every stage. Here is the text that XLA was given for the call
# above.

# %%
print(explain(lax.sin, x, compile=False)["StableHLO"].text)

# %% [markdown]
# ## A Python number is weakly typed
#
# `2.0` has no precision of its own. Its aval is marked *weak*, and in `x * 2.0` it takes the dtype
# of `x`. The mark is part of the type, so that it also decides which compiled program is used.

# %%
half = jnp.ones(3, "float16")
print(jax.typeof(jnp.asarray(2.0)), "->", (half * 2.0).dtype, (half * np.float32(2.0)).dtype)
print(jnp.asarray(2.0).weak_type, jnp.float32(2.0).weak_type)

# %% [markdown]
# ## Exercise 1
#
# Which of these share one compiled program of `cos`: `a = jnp.zeros(3)`, `b = jnp.ones(3)`,
# `c = jnp.zeros(3, "float16")`, `d = jnp.zeros((3, 1))`? Answer with the number of programs, then
# check it by the signatures, which are the part of the key that differs.

# %%
arrays = [jnp.zeros(3), jnp.ones(3), jnp.zeros(3, "float16"), jnp.zeros((3, 1))]
answer = 3  # a and b share one
assert len({array.signature for array in arrays}) == answer

# %% [markdown]
# ## Exercise 2
#
# Arrays cannot be changed in place, yet `x.at[0].set(5.0)` is how one element is set. What does it
# give, and what happens to `x`?

# %%
changed = x.at[0].set(5.0)
assert changed[0] == 5.0 and x[0] == 0.0  # a new array; the old one is as it was

try:
    x[0] = 5.0
except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# ## Exercise 3
#
# A call returns before the device has computed the result: XLA is told to run the program, and the
# array that you get stands for a result to come. Which operation has to wait?

# %%
later = jnp.ones((200, 200)) @ jnp.ones((200, 200))  # need not be ready
assert later.block_until_ready() is later  # waits; so do printing it and np.asarray
assert np.asarray(later)[0, 0] == 200.0

# %% [markdown]
# ## Read on
#
# `arrays/array.py` has the array and the ways in which a value of the host becomes one;
# `arrays/dispatch.py` goes on below `run_primitive` with what a compiled program does when it is
# called. `core/avals.py` defines the type. Chapter 2 asks how `bind` knows which trace is current.
