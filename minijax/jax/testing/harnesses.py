"""Harnesses: a function with what makes its arguments, as suites that try many operations list
them.

The machinery alone: `all_harnesses` has what the program itself defines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl.testing import parameterized as absl_parameterized

import minijax.numpy as jnp
from minijax.jax.testing.cases import sanitize_test_name
from minijax.jax.testing.inputs import rand_default
from minijax.jax.testing.places import device_under_test

__all__ = [
    "CustomArg", "Harness", "Limitation", "RandArg", "StaticArg", "all_harnesses", "define",
    "dtypes_to_str", "parameterized",
]  # fmt: skip


class RandArg(NamedTuple):
    """An argument that is drawn at random: an array of this shape and dtype."""

    shape: tuple[int, ...]
    dtype: Any


class CustomArg(NamedTuple):
    """An argument that a function of the generator makes."""

    make: Callable[[np.random.RandomState], Any]


class StaticArg(NamedTuple):
    """An argument that is no array, and is the same in each call."""

    value: Any


class Limitation:
    """A case that does not work: on which devices, for which dtypes (all, if none is given).

    `skip_run`: it should not even be tried. AssertionError for a description that is no string, or
    dtypes that are no sequence.
    """

    def __init__(
        self, description: str, *, enabled: bool = True,
        devices: str | Sequence[str] = ("cpu", "gpu", "tpu"), dtypes: Sequence[Any] = (),
        skip_run: bool = False,
    ):  # fmt: skip
        assert isinstance(description, str), f"{description}"
        assert isinstance(dtypes, Iterable), f"dtypes must be a sequence: {dtypes}"
        self.description, self.enabled, self.skip_run = description, enabled, skip_run
        self.devices = (devices,) if isinstance(devices, str) else tuple(devices)
        self.dtypes = tuple(dtypes)

    def __str__(self) -> str:
        names = [np.dtype(dtype).name for dtype in self.dtypes]
        skip = " (skip_run) " if self.skip_run else ""
        return f'"{self.description}" devices={self.devices} dtypes={names}{skip}'

    __repr__ = __str__

    def filter(self, device: str | None = None, dtype: Any = None) -> bool:
        """Whether it holds on a device, or on any, for a dtype, or for any."""
        return (
            self.enabled
            and (device is None or device in self.devices)
            and (dtype is None or not self.dtypes or dtype in self.dtypes)
        )


class Harness:
    """A function, and for each of its arguments a value or what makes one.

    `params` are for the test to look at.
    """

    def __init__(
        self, group_name: str, name: str, fun: Callable, arg_descriptors: Sequence[Any], *,
        dtype: Any, rng_factory: Callable = rand_default,
        jax_unimplemented: Sequence[Limitation] = (), **params: Any,
    ):  # fmt: skip
        self.group_name, self.name = map(sanitize_test_name, (group_name, name))
        self.fullname = f"{self.group_name}_{self.name}"
        self.fun, self.arg_descriptors, self.dtype = fun, arg_descriptors, dtype
        self.rng_factory, self.jax_unimplemented = rng_factory, jax_unimplemented
        self.params = params

    def __str__(self) -> str:
        return self.fullname

    def _made(self, descriptor: Any, rng: np.random.RandomState) -> Any:
        match descriptor:
            case RandArg(shape, dtype):
                return self.rng_factory(rng)(shape, dtype)
            case CustomArg(make):
                return make(rng)
            case StaticArg(value):
                return value
        return descriptor

    def args_maker(self, rng: np.random.RandomState) -> list[Any]:
        """All arguments."""
        return [self._made(descriptor, rng) for descriptor in self.arg_descriptors]

    def dyn_args_maker(self, rng: np.random.RandomState) -> list[Any]:
        """The arguments that are not static."""
        found = self.arg_descriptors
        return [self._made(each, rng) for each in found if not isinstance(each, StaticArg)]

    def dyn_fun(self, *dyn_args: Any) -> Any:
        """Call `fun` on these arguments and the static ones."""
        rest = iter(dyn_args)
        return self.fun(
            *[d.value if isinstance(d, StaticArg) else next(rest) for d in self.arg_descriptors]
        )

    def filter(
        self, device_under_test: str, *, include_jax_unimpl: bool = False,
        one_containing: str | None = None,
    ) -> bool:  # fmt: skip
        """Whether to run it: it has a part of its name, and no limitation holds on this device."""
        if one_containing is not None and one_containing not in self.fullname:
            return False
        limits = () if include_jax_unimpl else self.jax_unimplemented
        return not any(limit.filter(device_under_test, self.dtype) for limit in limits)


all_harnesses: list[Harness] = []


def define(
    group_name: str, name: str, fun: Callable, arg_descriptors: Sequence[Any], *, dtype: Any,
    rng_factory: Callable = rand_default, jax_unimplemented: Sequence[Limitation] = (), **params: Any,
) -> None:  # fmt: skip
    """One more harness in `all_harnesses`."""
    options = {"rng_factory": rng_factory, "jax_unimplemented": jax_unimplemented, **params}
    all_harnesses.append(Harness(group_name, name, fun, arg_descriptors, dtype=dtype, **options))


# Names of sets of dtypes: a set goes by the widest that is wholly in it.
_SIGNED, _UNSIGNED = "int8 int16 int32 int64", "uint8 uint16 uint32 uint64"
_FLOATING, _COMPLEX = "bfloat16 float16 float32 float64", "complex64 complex128"
_SETS = (
    ("all", f"bool {_SIGNED} {_UNSIGNED} {_FLOATING} {_COMPLEX}"),
    ("integer", f"{_SIGNED} {_UNSIGNED}"),
    ("inexact", f"{_FLOATING} {_COMPLEX}"),
    ("signed", _SIGNED), ("unsigned", _UNSIGNED), ("floating", _FLOATING), ("complex", _COMPLEX),
)  # fmt: skip


def dtypes_to_str(dtype_list: Sequence[Any], empty_means_all: bool = False) -> str:
    """The names of dtypes, in order, of whole kinds by the name of the kind."""
    if not dtype_list and empty_means_all:
        return "all"
    left = {jnp.dtype(dtype).name for dtype in dtype_list}
    names = []
    for name, members in _SETS:
        if left.issuperset(members.split()):
            left.difference_update(members.split())
            names.append(name)
    return ", ".join(sorted([*names, *left]))


def _without_cases(test: Callable) -> Callable:
    return lambda self: self.skipTest("no harness runs on this device")


def parameterized(
    harnesses: Iterable[Harness], *, one_containing: str | None = None,
    include_jax_unimpl: bool = False,
) -> Callable:  # fmt: skip
    """Decorator: a test for each harness that runs on this device, which it is given as `harness`.

    `one_containing`, or the variable JAX_TEST_HARNESS_ONE_CONTAINING, leaves the first whose name
    has it, under the name of the test itself. ValueError if none has.
    """
    wanted = one_containing
    if wanted is None:
        wanted = os.environ.get("JAX_TEST_HARNESS_ONE_CONTAINING")
    device, harnesses = device_under_test(), list(harnesses)
    options = {"include_jax_unimpl": include_jax_unimpl, "one_containing": wanted}
    cases = [
        {"testcase_name": harness.fullname if wanted is None else "", "harness": harness}
        for harness in harnesses
        if harness.filter(device, **options)
    ]
    if wanted is None:
        return absl_parameterized.named_parameters(*cases) if cases else _without_cases
    if not cases:
        raise ValueError(
            f"No harness has {wanted!r} in its name; there are: "
            f"{', '.join(harness.fullname for harness in harnesses)}"
        )
    return absl_parameterized.named_parameters(cases[0])
