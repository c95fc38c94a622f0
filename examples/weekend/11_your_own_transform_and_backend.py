# %% [markdown]
# # 11. Your own transform and your own backend
#
# *Can I write something like `grad` or `vmap` myself, and does it work together with theirs?*
#
# A transform is a trace, a tracer and a table of rules, as chapters 2, 4 and 6 have shown. This chapter
# adds one, without touching the package: interval arithmetic. Given bounds of the inputs, it computes
# bounds of the results. After that it adds a backend: jaxprs as NumPy code.

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax
from minijax.core.avals import get_aval
from minijax.core.primitive import RuleColumn
from minijax.core.trace import Trace, Tracer, current, set_trace

# %% [markdown]
# ## A column of rules
#
# The rules that every primitive has are attributes of `Primitive`. A new interpreter brings a column
# of its own:

# %%
place = explain.where("minijax.core.primitive.RuleColumn")
print(place, place.source, sep="\n")

# %% [markdown]
# A rule here takes a pair of bounds for each operand and returns a pair. For a function that only
# increases, the bounds of the result are the function of the bounds.

# %%
interval = RuleColumn("interval")


def increasing(primitive):
    interval.update({primitive: lambda x, **params: [primitive.bind(b, **params) for b in x]})


for primitive in (lax.exp_p, lax.log_p, lax.convert_element_type_p):
    increasing(primitive)


@interval(lax.neg_p)
def _(x):
    return lax.neg(x[1]), lax.neg(x[0])


@interval(lax.sub_p)
def _(x, y):
    return lax.sub(x[0], y[1]), lax.sub(x[1], y[0])


@interval(lax.mul_p)
def _(x, y):
    a, b, c, d = [lax.mul(p, q) for p in x for q in y]
    return lax.min(lax.min(a, b), lax.min(c, d)), lax.max(lax.max(a, b), lax.max(c, d))


def sum_of_bounds(x, y):
    return lax.add(x[0], y[0]), lax.add(x[1], y[1])


for primitive in (lax.add_p, jax.interpreters.ad.add_jaxvals_p):
    interval.update({primitive: sum_of_bounds})

# %% [markdown]
# ## The tracer and the trace
#
# The tracer holds the bounds. The trace does what `JVPTrace` and `BatchTrace` do: it takes its own
# tracers apart, makes its parent current, applies the rule, and wraps the result.


# %%
class IntervalTracer(Tracer):
    def __init__(self, trace, low, high):
        super().__init__(trace, get_aval(low))
        self.low, self.high = low, high


class IntervalTrace(Trace):
    def process(self, primitive, args, params):
        mine = [isinstance(a, IntervalTracer) and a._trace is self for a in args]
        if not any(mine):
            return self.pass_to_parent(primitive, args, params)
        rule = interval.rule(primitive)
        if rule is None:
            raise NotImplementedError(f"{primitive} has no rule for intervals")
        pairs = [(a.low, a.high) if own else (a, a) for a, own in zip(args, mine)]
        with set_trace(self.parent):
            low, high = rule(*pairs, **params)
        return IntervalTracer(self, low, high)


def bounds(f):
    def bounded(low, high):
        trace = IntervalTrace(current())
        with set_trace(trace):
            out = f(IntervalTracer(trace, jnp.asarray(low), jnp.asarray(high)))
        trace.end()
        return out.low, out.high

    return bounded


def f(x):
    return x * jnp.exp(-x)


low, high = bounds(f)(2.0, 3.0)
print("bounds:", float(low), float(high), "- values at the ends:", f(2.0), f(3.0))

# %% [markdown]
# The bounds hold (apart from rounding), but they are wide: the rule of multiplication does not know
# that both factors come from one `x`.
#
# ## Together with the others
#
# Nothing was said about `grad`, `jit` or `vmap`. They work, on either side, because each trace leaves
# to its parent what it does not do itself. Bounds of the derivative of `f` on [2, 3]:

# %%
low, high = bounds(jax.grad(f))(2.0, 3.0)
print(float(low), float(high))

# %% [markdown]
# The upper bound is above zero, so this does not yet say whether `f` decreases there. Bounds get closer
# as the interval gets smaller. In two halves, compiled, and both at once:

# %%
ends = jnp.array([2.0, 2.5, 3.0])
low, high = jax.jit(jax.vmap(bounds(jax.grad(f))))(ends[:-1], ends[1:])
print(low, high)
assert (high < 0).all()

# %% [markdown]
# Both upper bounds are negative, so `f` decreases everywhere between 2 and 3 (rounding aside). No number of
# samples could have shown that.
#
# What `bounds` records is an ordinary program, and `explain.rules` lists the rules of our column as it
# does those of the package:

# %%
print(jax.make_jaxpr(bounds(f))(2.0, 3.0))
print(explain.rules(interval))

# %% [markdown]
# ## A backend
#
# A transform may also read a whole jaxpr (chapter 3). A backend is an interpreter of jaxprs that
# writes another language. Ours writes NumPy, by one template for each primitive.

# %%
numpy_text = RuleColumn("numpy")
for primitive, text in {
    lax.add_p: "{} + {}", lax.sub_p: "{} - {}", lax.mul_p: "{} * {}", lax.neg_p: "-{}",
    lax.exp_p: "np.exp({})", lax.sin_p: "np.sin({})", lax.cos_p: "np.cos({})",
    jax.interpreters.ad.add_jaxvals_p: "{} + {}",
}.items():  # fmt: skip
    numpy_text.update({primitive: text.format})


def to_numpy(f, *args):
    """Return `f` as a function that runs in NumPy, with its source."""
    closed = jax.make_jaxpr(f)(*args)
    names = {var: f"x{i}" for i, var in enumerate(closed.jaxpr.invars)}

    def read(atom):
        return repr(float(atom.val)) if hasattr(atom, "val") else names[atom]

    lines = [f"def compiled({', '.join(names.values())}):"]
    for eqn in closed.jaxpr.eqns:
        text = numpy_text.rule(eqn.primitive)(*map(read, eqn.invars), **eqn.params)
        names[eqn.outvars[0]] = f"v{len(names)}"
        lines.append(f"    {names[eqn.outvars[0]]} = {text}")
    lines.append(f"    return {', '.join(map(read, closed.jaxpr.outvars))}")
    source = "\n".join(lines)
    space = {"np": np}
    exec(source, space)
    return space["compiled"], source


compiled, source = to_numpy(jax.grad(f), 2.0)
print(source)
print(compiled(2.0), jax.grad(f)(2.0))

# %% [markdown]
# This backend knows nothing of derivatives, and yet it runs one: `grad` was done when the jaxpr was
# recorded.
#
# XLA's own backends come by another door. A maker of hardware supplies a library with the PJRT
# interface, which takes StableHLO, and one call makes it known:

# %%
place = explain.where("minijax.runtime.plugins.register_plugin")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Exercise 1
#
# `integer_pow` with an even power is lowest at zero, if zero lies within the interval. Give it a rule
# that is closer than that of multiplication.


# %%
@interval(lax.integer_pow_p)
def _(x, *, y):
    ends = [lax.integer_pow(b, y) for b in x]
    low, high = lax.min(*ends), lax.max(*ends)
    if y % 2 == 0:
        within = (x[0] <= 0) & (x[1] >= 0)
        low = jnp.where(within, 0.0, low)
    return low, high


assert bounds(lambda x: x**2)(-1.0, 2.0) == (0.0, 4.0)
assert bounds(lambda x: x * x)(-1.0, 2.0) == (-2.0, 4.0)  # wider
assert bounds(lambda x: x**3)(-1.0, 2.0) == (-1.0, 8.0)

# %% [markdown]
# ## Exercise 2
#
# The upper bound is a function of the ends of the interval. Differentiate it with respect to the
# upper end. For which side is `grad` now?

# %%
slope = jax.grad(lambda high: bounds(jnp.exp)(0.0, high)[1])(1.0)
assert jnp.allclose(
    slope, jnp.exp(1.0)
)  # outside: its trace is the parent of that of the intervals

# %% [markdown]
# ## Exercise 3
#
# Teach the backend `tanh`, and check its gradient, which needs no other primitive than those it has.

# %%
numpy_text.update({lax.tanh_p: "np.tanh({})".format})
compiled, source = to_numpy(jax.grad(jnp.tanh), 0.5)
assert np.isclose(compiled(0.5), 1 - np.tanh(0.5) ** 2)

# %% [markdown]
# ## Read on
#
# `core/hooks.py`: all places at which the features of this package extend the core. An interpreter of
# the package that is built as ours was is `transforms/batching.py`. Backends begin in
# `runtime/plugins.py`.
