"""Dtypes that libraries define, by rules of their own, against upstream: conversion and
tangents.
"""

import dataclasses
from functools import partial

import jax
import jax.experimental
import numpy as np
import pytest
from jax._src.interpreters import pxla

import minijax
import minijax.experimental
from tests.harness.differential import assert_same

V = np.array([1.0, 3.0, 2.0], np.float32)
N = np.arange(3, dtype=np.int8)


def greatest(j):
    """A dtype of float32 whose cotangents are added by taking the greater."""

    class Rules:
        @staticmethod
        def physical_element_aval(dtype):
            return j.core.ShapedArray((), dtype.float_dtype)

        @staticmethod
        def replicate_trailing_dims(ctx, val, aval):
            return val

        @staticmethod
        def logical_sharding(aval, phys_sharding):
            return phys_sharding

        @staticmethod
        def physical_sharding(aval, sharding):
            return sharding

        @staticmethod
        def convert_from(dtype, other):
            return dtype.float_dtype == other

        @staticmethod
        def convert_to(other, dtype):
            return dtype.float_dtype == other

        @staticmethod
        def add(dtype, x, y):
            to, back = (
                partial(j.lax.convert_element_type, new_dtype=d) for d in (dtype, np.float32)
            )
            return to(j.lax.max(back(x), back(y)))

        @staticmethod
        def zero(dtype):
            return j.lax.convert_element_type(np.float32(-np.inf), dtype)

        @staticmethod
        def tangent_dtype(dtype):
            return dtype

    kind = type("Greatest", (j.dtypes.extended,), {})
    extended = minijax.dtypes.ExtendedDType if j is minijax else jax._src.dtypes.ExtendedDType

    @dataclasses.dataclass(frozen=True)
    class DType(extended):
        float_dtype: np.dtype
        _rules: type = Rules
        type: type = kind
        name: str = "greatest"

    return DType(np.dtype("float32"))


def _used(j, x, dtype, times):
    """A loss that reads a value of the dtype several times, each with a factor of its own."""
    held = j.lax.convert_element_type(x, dtype)
    return sum((k * j.lax.convert_element_type(held, np.float32)).sum() for k in range(1, times))


RULED = {
    "there and back": lambda j, d: j.jit(
        lambda x: j.lax.convert_element_type(j.lax.convert_element_type(x, d), np.float32)
    )(V),
    "cotangents": lambda j, d: j.jit(j.grad(lambda x: _used(j, x, d, 4)))(V),
    "wrong": lambda j, d: j.lax.convert_element_type(N, d),
    "wrong back": lambda j, d: j.jit(
        lambda x: j.lax.convert_element_type(j.lax.convert_element_type(x, d), np.int32)
    )(V),
    "moved": lambda j, d: j.jit(
        lambda x: j.lax.convert_element_type(
            j.lax.convert_element_type(x, d)[1:].reshape(2, 1), np.float32
        )
    )(V),
    "in a scan": lambda j, d: j.jit(
        j.grad(
            lambda x: (
                lambda held: j.lax.scan(
                    lambda c, k: (c + (k * j.lax.convert_element_type(held, np.float32)).sum(), None),
                    0.0, V,
                )[0]
            )(j.lax.convert_element_type(x, d))
        )
    )(V),
}  # fmt: skip


@pytest.mark.parametrize("name", ["there and back", "wrong", "wrong back", "moved"])
def test_dtypes_with_rules(name):
    _same(lambda j: RULED[name](j, greatest(j)))


@pytest.mark.parametrize("name", ["cotangents", "in a scan"])
def test_cotangents(name):
    """They are added by the rule: upstream can do it for functions with custom rules only."""
    found = RULED[name](minijax, greatest(minijax))
    assert_same(found, jax.numpy.full(3, 3.0, np.float32), weak=False)


PAIRS = {
    "there and back": lambda j, d: j.jit(lambda x: _to(j, _to(j, x, d), np.int8))(N),
    "wrong": lambda j, d: j.jit(lambda x: _to(j, _to(j, x, d), np.float32))(N),
    "wrong from": lambda j, d: _to(j, V, d),
    "added": lambda j, d: j.jit(lambda x: _to(j, x, d) + _to(j, x, d))(N),
    "vjp": lambda j, d: j.jit(
        lambda x: j.vjp(lambda q: _read(j, q) + 2 * _read(j, q), _to(j, x, d))[1](j.numpy.ones(3))
    )(N),
    "moved": lambda j, d: j.jit(lambda x: _to(j, _to(j, x, d)[1:].reshape(2, 1), np.int8))(N),
}


def _to(j, x, dtype):
    return j.lax.convert_element_type(x, dtype)


def _read(j, q):
    """A float32 of an int8 whose tangents are of float32."""
    read = j.custom_vjp(lambda q: _to(j, _to(j, q, np.int8), np.float32))
    read.defvjp(lambda q: (read(q), None), lambda _, ct: (ct,))
    return read(q)


@pytest.mark.parametrize("name", PAIRS)
def test_primal_tangent_dtype(name):
    _same(lambda j: PAIRS[name](j, j.experimental.primal_tangent_dtype(np.int8, np.float32)))


def test_primal_tangent_dtype_shown():
    shown = []
    for j in (jax, minijax):
        make = j.experimental.primal_tangent_dtype
        d, named = make(np.int8, np.float32), make(np.int8, np.float32, name="mine")
        shown.append((repr(d), str(named), d == make(np.int8, np.float32), d == named))
        assert hash(d) == hash(make(np.int8, np.float32))
    assert shown[0] == shown[1]


def _same(run):
    outcomes = []
    for j in (minijax, jax):
        try:
            outcomes.append((run(j), None))
        except Exception as error:
            outcomes.append((None, error))
    (ours, our_error), (theirs, their_error) = outcomes
    assert type(our_error).__name__ == type(their_error).__name__, (our_error, their_error)
    if their_error is None:
        assert_same(ours, theirs, weak=False)


def in_upstream(aval, *where):
    """What upstream asks a dtype's rules for, to make its arrays."""
    stored = jax._src.core.physical_aval(aval)
    make = pxla.global_result_handlers[jax.core.ShapedArray](stored, *where)
    return lambda buffers: jax.experimental.EArray(aval, make(buffers))


AS_ARRAYS = {
    "itself": lambda j, x: x,
    "jit": lambda j, x: j.jit(lambda x: x)(x),
    "put": lambda j, x: j.device_put(x),
    "moved": lambda j, x: j.device_put(x, j.devices()[0]),
    "copied": lambda j, x: x.copy(),
    "waited for": lambda j, x: x.block_until_ready(),
    "in a tree": lambda j, x: j.jit(lambda t: {"a": t["b"]})({"b": x})["a"],
}


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
@pytest.mark.parametrize("name", AS_ARRAYS)
def test_arrays_of_extended_dtypes(name, shape):
    def run(j):
        EArray, dtype = j.experimental.EArray, greatest(j)
        dtype._rules.global_sharded_result_handler = in_upstream
        data = j.numpy.full(shape, 2.5, np.float32)
        x = AS_ARRAYS[name](j, EArray(j.core.ShapedArray(shape, dtype), data))
        back = j.jit(lambda x: j.lax.convert_element_type(x, np.float32))(x)
        kinds = [isinstance(v, EArray) for v in (x, data, j.random.key(0), shape)]
        known = [x.shape, x.ndim, x.size, x.dtype == dtype, j.typeof(x).shape]
        return str([kinds, known, isinstance(x, j.Array), issubclass(EArray, j.Array)]), back

    ours, theirs = run(minijax), run(jax)
    assert ours[0] == theirs[0]
    assert_same(ours[1], theirs[1])


def test_arrays_of_extended_dtypes_hold_memory():
    @minijax.jit
    def f(x):
        dtype = greatest(minijax)
        return minijax.experimental.EArray(minijax.core.ShapedArray(x.shape, dtype), x)

    with pytest.raises(TypeError, match="must be a concrete array; got JitTracer"):
        f(V)
