"""`random_gamma`: samples of the gamma distribution, which can be differentiated in its parameter.

It is a primitive because its derivative is no derivative of the steps that draw a sample: those
throw samples away until one is accepted. Source: Marsaglia and Tsang, "A simple method for
generating gamma variables", 2000; for the derivative, see `special.random_gamma_grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.core.caches import ProgramCache
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.features.sharding.types import without_placement
from minijax.lax.arithmetic import add, div, mul, neg, sqrt, sub
from minijax.lax.compare import bitwise_and, bitwise_or, eq, ge, le, select
from minijax.lax.control_flow.loops import while_loop
from minijax.lax.control_flow.scan import map as lax_map
from minijax.lax.prng import KeyType, random_split_p
from minijax.lax.random_floats import exponential_of, keys_from, normal_of, unit_uniform
from minijax.lax.reductions import reduce_or
from minijax.lax.rules import scalar_like
from minijax.lax.shapes import reshape
from minijax.lax.special import random_gamma_grad
from minijax.lax.transcendental import exp, log, pow
from minijax.transforms.batching import all_to_front
from minijax.transforms.primitives import full_like_aval
from minijax.transforms.tangents import Zero, zero_like

__all__ = ["random_gamma_p"]

random_gamma_p = Primitive("random_gamma")
random_gamma_p.rule_transpose = no_rule("it is not linear in its operands")


@random_gamma_p.shape_rule
def _(keys, a, *, log_space):
    if type(keys.dtype) is not KeyType or not dtypes.issubdtype(a.dtype, np.floating):
        raise TypeError(
            "random_gamma takes random keys and an array of floats, got "
            f"{keys.str_short()} and {a.str_short()}: see random.gamma."
        )
    if a.shape[: keys.ndim] != keys.shape:
        raise TypeError(
            f"random_gamma takes one key for each leading row of its parameter, got keys of shape "
            f"{keys.shape} for a parameter of shape {a.shape}."
        )
    return a


@random_gamma_p.jvp
def _(primals, tangents, *, log_space):
    keys, a = primals
    out = random_gamma_p.bind(keys, a, log_space=log_space)
    t = tangents[1]
    if type(t) is Zero:
        return out, zero_like(out)
    if not log_space:
        return out, mul(t, random_gamma_grad(a, out))
    # The derivative of the logarithm, where a sample so small that it is zero counts as the smallest.
    sample = exp(out)
    tiny = full_like_aval(float(dtypes.finfo(out.dtype).tiny), get_aval(out))
    sample = select(eq(sample, scalar_like(0, sample)), tiny, sample)
    return out, mul(t, div(random_gamma_grad(a, sample), sample))


@random_gamma_p.batch
def _(args, dims, *, log_space):
    return random_gamma_p.bind(*all_to_front(args, dims), log_space=log_space), 0


_traced = ProgramCache()


@random_gamma_p.lower
def _(b, keys, a, *, log_space):
    # A function of its own: XLA then treats a parameter that is a constant like any other, so that
    # the samples are the same bits.
    avals = without_placement((keys.aval, a.aval))
    key = (*avals, log_space)
    closed = _traced.get(key)
    if closed is None:
        closed = _traced[key] = trace_to_jaxpr(
            lambda keys, a: [_samples(keys, a, log_space)], avals
        )
    return b.call_jaxpr(closed, "random_gamma", keys, a)[0]


# -- drawing --------------------------------------------------------------------------------------


def _samples(keys: Any, a: Any, log_space: bool) -> Any:
    """A sample for each element of `a`, each from its own key."""
    shape, count = a.shape, prod(keys.shape)
    each = prod(shape[keys.ndim :])
    lanes = random_split_p.bind(reshape(keys, (count,)), shape=(each,))
    lanes, a = reshape(lanes, (a.size,)), reshape(a, (a.size,))
    if keys.dtype._impl.name == "threefry2x32":
        return reshape(_samples_of_lanes(lanes, a, log_space), shape)
    # XLA's own generators make bits for many keys at once from the first of them alone, so that
    # lanes that are drawn together would depend on each other: one after the other, then.
    return reshape(lax_map(lambda lane: _sample(*lane, log_space), (lanes, a)), shape)


def _sample(key: Any, a: Any, log_space: bool) -> Any:
    """A sample of one lane."""
    return reshape(_samples_of_lanes(reshape(key, (1,)), reshape(a, (1,)), log_space), ())


def _samples_of_lanes(keys: Any, a: Any, log_space: bool) -> Any:
    """A sample of shape parameter `a` below 1 is one of `a + 1`, times a power of a uniform one."""
    dtype = a.dtype
    one, third = dtype.type(1), dtype.type(1 / 3)
    large = ge(a, one)
    d = sub(select(large, a, add(a, one)), third)
    c = div(third, sqrt(d))
    keys, boost_keys = keys_from(keys, 2)
    cube = _accepted(keys, d, c)
    power = div(one, a)
    if not log_space:
        boost = pow(sub(one, unit_uniform(boost_keys, (), dtype)), power)
        return mul(mul(d, cube), select(large, full_like_aval(1.0, a.aval), boost))
    boost = neg(exponential_of(boost_keys, (), dtype))
    none = bitwise_or(large, eq(boost, dtype.type(0)))
    boost = select(none, full_like_aval(0.0, a.aval), mul(boost, power))
    return add(add(log(d), log(cube)), boost)


def _accepted(keys: Any, d: Any, c: Any) -> Any:
    """Cubes v of 1 + c times a normal sample, of which d * v is a gamma sample."""
    dtype = d.dtype
    one, half, squeeze = (dtype.type(x) for x in (1, 0.5, 0.0331))

    def rejected(_keys, square, cube, u):
        beyond = ge(u, sub(one, mul(squeeze, mul(square, square))))
        bound = add(mul(square, half), mul(d, add(sub(one, cube), log(cube))))
        return bitwise_and(beyond, ge(log(u), bound))

    def draw(keys, _square, _cube, _u):
        keys, normal_keys, uniform_keys = keys_from(keys, 3)
        x, v = _above_zero(normal_keys, c)
        return keys, mul(x, x), mul(mul(v, v), v), unit_uniform(uniform_keys, (), dtype)

    start = [full_like_aval(value, d.aval) for value in (0.0, 1.0, 2.0)]
    return _lane_loop(rejected, draw, (keys, *start))[2]


def _above_zero(keys: Any, c: Any) -> tuple[Any, Any]:
    """Normal samples x, and 1 + c * x, drawn until that is above zero."""
    dtype = c.dtype
    zero, one = dtype.type(0), dtype.type(1)

    def draw(keys, _x, _v):
        keys, subkeys = keys_from(keys, 2)
        x = normal_of(subkeys, (), dtype)
        return keys, x, add(one, mul(x, c))

    start = [full_like_aval(value, c.aval) for value in (0.0, -1.0)]
    return _lane_loop(lambda _keys, _x, v: le(v, zero), draw, (keys, *start))[1:]


def _lane_loop(again: Callable, step: Callable, state: Sequence[Any]) -> Sequence[Any]:
    """Repeat a step on each lane of the state for as long as `again` says of that lane."""

    def body(state):
        active = again(*state)
        pairs = zip(step(*state), state, strict=True)
        return tuple([select(active, new, old) for new, old in pairs])

    return while_loop(lambda state: reduce_or(again(*state), (0,)), body, tuple(state))
