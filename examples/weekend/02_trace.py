# %% [markdown]
# # 2. A trace
#
# *Why does `print(x)` inside a jitted function show no numbers, and why does `if x > 0` fail there?*
#
# Because `x` is no array there. It is a *tracer*: an object with a shape and a dtype that records
# what is done with it. The function runs once, in Python, on tracers; what they recorded is
# compiled. This chapter shows the machine that makes this possible. It has two parts: traces and
# tracers.

# %%
import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax
from minijax.core.trace import Trace, current, set_trace


def look(x):
    print("x is", x)
    return x * 2


look(jnp.float32(3.0))
jax.jit(look)(3.0)
jax.grad(look)(3.0)
_ = jax.vmap(look)(jnp.arange(3.0))

# %% [markdown]
# One function, four meanings. The transforms did not change `look`, and they did not read its
# source. They called it with different arguments.
#
# ## A trace gives meaning to a primitive
#
# Every operation ends in `bind`, and `bind` hands over to the current trace:

# %%
place = explain.where("minijax.core.primitive.Primitive.bind")
print(place, place.source, sep="\n")

# %% [markdown]
# A trace is an interpreter at work. It has one method that matters, `process`, and it knows the
# trace that was current when it was made, its *parent*.

# %%
place = explain.where("minijax.core.trace.Trace")
print(place, place.source, sep="\n")

# %% [markdown]
# ## A trace of our own
#
# That is enough to write one. This trace prints the name of each primitive and leaves the work to
# its parent. It needs no tracers, because it changes no value.


# %%
class Telling(Trace):
    def __init__(self, parent):
        super().__init__(parent)
        self.names = []

    def process(self, primitive, args, params):
        self.names.append(primitive.name)
        return self.pass_to_parent(primitive, args, params)


def f(x):
    return lax.sin(x) * x + 1.0


with set_trace(Telling(current())) as telling:
    f(jnp.float32(2.0))
print(telling.names)

# %% [markdown]
# `f` is ordinary code with operators of Python; each of them is a `bind`.
#
# ## A tracer stands for an array
#
# A trace that does more than watch has to attach something to values: a tangent, a batch axis, a
# variable of a program. A tracer is an array to the outside (it has the shape, the dtype and all
# operators) and carries that something inside.

# %%
place = explain.where("minijax.core.trace.Tracer")
print(place, place.source, sep="\n")

# %% [markdown]
# `__bool__` above answers the second half of the question. `if x > 0` asks a tracer for its truth
# value. A tracer that records a program has none to give, and the error says what to write instead.

# %%
try:
    jax.jit(lambda x: x if x > 0 else -x)(1.0)
except jax.errors.TracerBoolConversionError as error:
    print(str(error).splitlines()[0])

print(jax.grad(lambda x: x if x > 0 else -x)(-1.0))  # under grad alone the value is known

# %% [markdown]
# ## Traces nest
#
# There is no list of transforms anywhere. Each trace holds its parent. While it works, it makes
# the parent current, so that the operations of its rules come to the next trace further out.


# %%
def show(x):
    trace, chain = current(), []
    while trace is not None:
        chain.append(type(trace).__name__)
        trace = trace.parent
    print(" in ".join(chain))
    return x * 1.0


jax.grad(show)(1.0)
jax.jit(jax.grad(show))(1.0)
_ = jax.vmap(jax.grad(show))(jnp.arange(3.0))

# %% [markdown]
# The second line reads from left to right: differentiate; record the operations on tangents; record
# the rest for `jit`; and outside of all, evaluate.
#
# ## Exercise 1
#
# Write a trace that counts multiplications. How many does `x ** 3 * y` cost?


# %%
class Counting(Trace):
    def __init__(self, parent):
        super().__init__(parent)
        self.count = 0

    def process(self, primitive, args, params):
        self.count += primitive.name == "mul"
        return self.pass_to_parent(primitive, args, params)


with set_trace(Counting(current())) as counting:
    result = jnp.float32(2.0) ** 3 * jnp.float32(5.0)
assert result == 40.0
assert counting.count == 1  # the power with a whole exponent is one primitive, integer_pow

# %% [markdown]
# ## Exercise 2
#
# A tracer that is kept after its function has returned is of no use: its trace has ended. Provoke
# the error, and see which line of the source raises it.

# %%
kept = []
jax.jit(lambda x: kept.append(x))(1.0)
try:
    kept[0] + 1
    failed = False
except jax.errors.UnexpectedTracerError:
    failed = True
assert failed and not kept[0]._trace.alive

place = explain.where("minijax.core.trace.check_alive")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Read on
#
# `core/trace.py` is short and worth reading whole; then the upper half of `core/primitive.py`. All
# interpreters of the next chapters are subclasses of `Trace` with a `process` of some twenty lines.
