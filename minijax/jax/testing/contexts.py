"""Settings, environment, programs and meshes for tests written for JAX.

`testing` shows these names as those of `jax._src.test_util`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import unittest
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import dtypes as _dtypes
from minijax import sharding as shardings
from minijax import tree_util
from minijax.core.jaxpr import jaxprs_in_params
from minijax.jax.settings import config

__all__ = [
    "MeshSpec", "assert_dot_precision", "assert_dot_preferred_element_type",
    "assert_global_configs_unchanged", "create_mesh", "fwd_bwd_jaxprs", "global_config_context",
    "iter_eqns", "promote_like_jnp", "set_env", "strict_promotion_if_dtypes_match",
    "thread_local_config_context", "with_explicit_mesh", "with_mesh", "with_mesh_from_kwargs",
]  # fmt: skip

MeshSpec = list[tuple[str, int]]


@contextlib.contextmanager
def thread_local_config_context(**kwds: Any) -> Iterator[None]:
    """Settings for this thread while the context lasts."""
    with contextlib.ExitStack() as stack:
        for name, value in kwds.items():
            stack.enter_context(config.override(name, value))
        yield


@contextlib.contextmanager
def global_config_context(**kwds: Any) -> Iterator[None]:
    """Settings for the process while the context lasts."""
    saved = {name: config.values[name] if name in config.values else config.read(name)
             for name in kwds}  # fmt: skip
    try:
        for name, value in kwds.items():
            config.update(name, value)
        yield
    finally:
        for name, value in saved.items():
            config.update(name, value)


@contextlib.contextmanager
def assert_global_configs_unchanged() -> Iterator[None]:
    """AssertionError if settings of the process change while the context lasts."""
    before = dict(config.values)
    yield
    after = dict(config.values)
    changed = {name: (before.get(name), value) for name, value in after.items()
               if before.get(name) != value}  # fmt: skip
    if changed:
        raise AssertionError(
            f"Test changed global config values. Differing values are: {changed}"
        )  # fmt: skip


def strict_promotion_if_dtypes_match(dtypes: Sequence[Any]) -> Any:
    """Context: strict promotion if all these dtypes are one, the usual promotion otherwise."""
    same = len({np.dtype(dtype) for dtype in dtypes}) <= 1
    return config.override("jax_numpy_dtype_promotion", "strict" if same else "standard")


@contextlib.contextmanager
def set_env(**kwargs: str | None) -> Iterator[None]:
    """Environment variables while the context lasts; None takes one away."""
    saved = {name: os.environ.get(name) for name in kwargs}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    try:
        put(kwargs)
        yield
    finally:
        put(saved)


# Programs.


def iter_eqns(jaxpr: Any) -> Iterator[Any]:
    """Every equation of a jaxpr, and then those of the jaxprs within."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    yield from jaxpr.eqns
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            yield from iter_eqns(inner)


def _dots(fun: Callable, args: tuple, kwargs: dict | None = None) -> list[dict]:
    jaxpr = minijax.make_jaxpr(functools.partial(fun, **(kwargs or {})))(*args)
    return [eqn.params for eqn in iter_eqns(jaxpr) if eqn.primitive is minijax.lax.dot_general_p]


def assert_dot_precision(expected_precision: Any, fun: Callable, *args: Any) -> None:
    """AssertionError if a product in `fun` is of another precision, for either operand."""
    for params in _dots(fun, args):
        found = params["precision"]
        for precision in found if isinstance(found, tuple) else (found,):
            if precision != expected_precision:
                raise AssertionError(f"Unexpected precision: {expected_precision} != {found}")


def assert_dot_preferred_element_type(expected: Any, fun: Callable, *args: Any, **kwargs: Any):
    """AssertionError if a product in `fun` accumulates in another dtype."""
    for params in _dots(fun, args, kwargs):
        found = params["preferred_element_type"]
        if found != np.dtype(expected):
            raise AssertionError(f"Unexpected preferred_element_type: {expected} != {found}")


def fwd_bwd_jaxprs(f: Callable, *example_args: Any) -> tuple[Any, Any]:
    """The programs of the forward and of the backward pass of `vjp`."""
    forward, (out, pullback) = minijax.make_jaxpr(
        lambda *args: minijax.vjp(f, *args), return_shape=True
    )(*example_args)
    return forward, minijax.make_jaxpr(lambda back, ct: back(ct))(pullback, out)


def promote_like_jnp(fun: Callable, inexact: bool = False) -> Callable:
    """`fun` of NumPy arrays whose arguments are first promoted as `jax.numpy` promotes them."""

    def to_numpy(x, wanted):
        return np.asarray(x).astype(wanted)

    def wrapper(*args, **kwargs):
        leaves, tree = tree_util.tree_flatten(args)
        wanted = jnp.result_type(*leaves)
        if inexact and not _dtypes.issubdtype(wanted, np.inexact):
            wanted = _dtypes.canonicalize_dtype(np.float64)
        leaves = [to_numpy(x, wanted) for x in leaves]
        return fun(*tree_util.tree_unflatten(tree, leaves), **kwargs)

    return wrapper


# Meshes.


def _devices(count: int) -> list[Any]:
    devices = minijax.devices()
    if len(devices) < count:
        raise unittest.SkipTest(
            f"Test requires {count} global devices and found {len(devices)}."
        )  # fmt: skip
    return devices[:count]


def create_mesh(
    mesh_shape: Sequence[int], axis_names: Any, iota_order: bool = False, axis_types: Any = None
) -> shardings.Mesh:
    """A mesh, of Auto axes unless said; `iota_order` takes the devices by number. May skip the test."""
    names = axis_names if isinstance(axis_names, tuple) else tuple(axis_names)
    axis_types = axis_types or (shardings.AxisType.Auto,) * len(mesh_shape)
    devices = _devices(int(np.prod(mesh_shape)))
    if iota_order:
        ordered = np.array(sorted(devices, key=lambda d: d.id)).reshape(mesh_shape)
        return shardings.Mesh(ordered, names, axis_types=axis_types)
    return minijax.make_mesh(mesh_shape, names, axis_types=axis_types, devices=devices)


@contextlib.contextmanager
def with_mesh(named_shape: Sequence[tuple[str, int]]) -> Iterator[None]:
    """Context: a mesh of `[(name, size), ...]` is entered. May skip the test."""
    if not named_shape:
        yield
        return
    names, sizes = zip(*named_shape, strict=True)
    with create_mesh(sizes, names, iota_order=True):
        yield


def with_mesh_from_kwargs(f: Callable) -> Callable:
    """`f` run within `with_mesh(mesh)` of its keyword `mesh`."""

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        with with_mesh(kwargs["mesh"]):
            return f(*args, **kwargs)

    return wrapped


def with_explicit_mesh(
    sizes: Sequence[int], names: Any, axis_types: Any = None, iota_order: bool = False
) -> Callable:
    """Decorator of a test: a mesh of Explicit axes is set, and given as the argument `mesh`."""
    axis_types = axis_types or (shardings.AxisType.Explicit,) * len(sizes)

    def decorate(test):
        # Not `wraps`: the test runner is not to see a parameter `mesh`.
        def mesh_fn(*args, **kwargs):
            mesh = create_mesh(sizes, names, iota_order, axis_types=axis_types)
            with minijax.set_mesh(mesh):
                return test(*args, **kwargs, mesh=mesh)

        return mesh_fn

    return decorate
