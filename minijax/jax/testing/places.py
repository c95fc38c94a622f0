"""Questions of tests written for JAX about their machine, and how they leave themselves out.

`testing` shows these names as those of `jax._src.test_util`.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
import unittest
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import minijax
from minijax.jax.settings import config
from minijax.runtime import platforms, versions

__all__ = [
    "CudaArchSpecificTest", "device_kind_match", "device_supports_buffer_donation",
    "device_under_test", "get_tpu_version", "is_asan", "is_cloud_tpu", "is_cloud_tpu_at_least",
    "is_cuda_compute_capability_at_least", "is_cuda_compute_capability_equal",
    "is_cuda_version_at_least", "is_device_cuda", "is_device_rocm", "is_device_tpu",
    "is_device_tpu_at_least", "is_gil_disabled", "is_msan", "is_optimized_build",
    "is_running_under_pytest", "is_sanitized", "is_test_rbe", "is_tsan", "jaxlib_version",
    "numpy_version", "parse_version", "pattern_search", "pjrt_c_api_version_at_least",
    "pytest_mark_if_available", "request_cpu_devices", "run_on_devices", "runtime_environment",
    "skip_on_devices", "skip_on_flag", "skip_under_pytest", "stablehlo_version_at_least",
    "test_device_matches",
]  # fmt: skip

running_in_cloud_tpu_vm = False


def device_under_test() -> str:
    """The platform that tests run on: JAX_TEST_DUT, or the default one (gpu for cuda and rocm)."""
    return os.environ.get("JAX_TEST_DUT") or minijax.default_backend()


def _version_text() -> str:
    return str(getattr(minijax.devices()[0].client, "platform_version", ""))


def is_device_rocm() -> bool:
    return device_under_test() == "gpu" and "rocm" in _version_text()


def is_device_cuda() -> bool:
    return device_under_test() == "gpu" and not is_device_rocm()


def _get_device_tags() -> set[str]:
    """The platform's name and, for a GPU, that of its maker's platform."""
    name = device_under_test()
    if name == "gpu":
        return {name, "rocm" if is_device_rocm() else "cuda"}
    return {name}


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Whether tests run on one of these platforms."""
    assert not isinstance(device_types, str), "takes several names, as in ['cpu', 'gpu']"
    return not _get_device_tags().isdisjoint(device_types)


test_device_matches.__test__ = False  # type: ignore[attr-defined]  # it is no test


def pattern_search(patterns: str | Sequence[str], string: str) -> str | None:
    """The first pattern that is found in `string`."""
    patterns = (patterns,) if isinstance(patterns, str) else patterns
    return next((pattern for pattern in patterns if re.search(pattern, string)), None)


def device_kind_match(device_patterns: str | Sequence[str]) -> str | None:
    """The first pattern that is found in the kind of the device."""
    return pattern_search(device_patterns, minijax.devices()[0].device_kind)


def get_tpu_version() -> int:
    """The generation of the TPU; ValueError if there is none."""
    if device_under_test() != "tpu":
        raise ValueError("Device is not TPU")
    found = re.search(r"\d+", minijax.devices()[0].device_kind)
    if found is None:
        raise ValueError(f"no version in the kind {minijax.devices()[0].device_kind!r}")
    return int(found[0])


def is_device_tpu(version: int | None = None, variant: str = "") -> bool:
    if device_under_test() != "tpu":
        return False
    return version is None or f"v{version}{variant}" in minijax.devices()[0].device_kind


def is_device_tpu_at_least(version: int) -> bool:
    return device_under_test() == "tpu" and get_tpu_version() >= version


def is_cloud_tpu() -> bool:
    return running_in_cloud_tpu_vm


def is_cloud_tpu_at_least(year: int, month: int, day: int) -> bool:
    """True where there is no cloud TPU: nothing is too old."""
    return True


def _capability() -> tuple[int, ...] | None:
    text = getattr(minijax.devices()[0], "compute_capability", None) if is_device_cuda() else None
    return parse_version(str(text)) if text else None


def is_cuda_compute_capability_at_least(capability: str) -> bool:
    found = _capability()
    return found is not None and found >= parse_version(capability)


def is_cuda_compute_capability_equal(capability: str) -> bool:
    return _capability() == parse_version(capability)


def is_cuda_version_at_least(major: int, minor: int) -> bool:
    found = re.search(r"cuda (\d+)", _version_text()) if is_device_cuda() else None
    return found is not None and int(found[1]) >= major * 1000 + minor * 10


def pjrt_c_api_version_at_least(major_version: int, minor_version: int) -> bool:
    """Whether the platform's plug-in is so new; a platform without plug-in is new enough."""
    found = getattr(minijax.devices()[0].client, "pjrt_c_api_major_version", None)
    return found is None or found >= major_version


def stablehlo_version_at_least(required_version: str) -> bool:
    """Whether the platform reads this version of StableHLO; one without plug-in reads its own."""
    return True


def parse_version(v: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", v)
    if found is None:
        raise ValueError(f"no version: {v!r}")
    return tuple(int(part) for part in found[0].split("."))


def jaxlib_version() -> tuple[int, ...]:
    return versions.jaxlib_version


def numpy_version() -> tuple[int, ...]:
    return parse_version(np.__version__)


# How Python and the libraries are built, and who runs the tests.


def is_gil_disabled() -> bool:
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def is_optimized_build() -> bool:
    return True


def is_asan() -> bool:
    return False


is_msan = is_tsan = is_sanitized = is_test_rbe = is_asan


def is_running_under_pytest() -> bool:
    return "PYTEST_CURRENT_TEST" in os.environ


def runtime_environment() -> str | None:
    """`pytest` where pytest is imported, else None."""
    return "pytest" if "pytest" in sys.modules else None


def request_cpu_devices(nr_devices: int) -> None:
    """Ask for so many CPU devices; nothing happens once the platform has started."""
    if not platforms.started() and config.jax_num_cpu_devices < nr_devices:
        config.update("jax_num_cpu_devices", nr_devices)


# Decorators of tests.


def _unless(skips: Callable[[], bool], reason: Callable[[Any], str]) -> Callable:
    def decorate(test):
        @functools.wraps(test)
        def checked(self, *args, **kwargs):
            if skips():
                raise unittest.SkipTest(reason(self))
            return test(self, *args, **kwargs)

        return checked

    return decorate


def _device_filter(predicate: Callable[[], bool], skip_reason: str | None = None) -> Callable:
    def told(self):
        name = getattr(self, "_testMethodName", "the test")
        return skip_reason or f"{name} not supported on device with tags {_get_device_tags()}."

    return _unless(lambda: not predicate(), told)


def run_on_devices(*enabled_devices: str, skip_reason: str | None = None) -> Callable:
    """Decorator: the test runs on these platforms only."""
    return _device_filter(lambda: test_device_matches(enabled_devices), skip_reason)


def skip_on_devices(*disabled_devices: str, skip_reason: str | None = None) -> Callable:
    """Decorator: the test is left out on these platforms."""
    return _device_filter(lambda: not test_device_matches(disabled_devices), skip_reason)


def device_supports_buffer_donation() -> Callable:
    """Decorator: the test runs where the memory of donated arrays is used again."""
    return _device_filter(lambda: test_device_matches(("cpu", "gpu", "tpu")))


def skip_on_flag(flag_name: str, skip_value: Any) -> Callable:
    """Decorator: the test is left out while a setting has this value."""
    return _unless(
        lambda: getattr(config, flag_name) == skip_value,
        lambda self: f"{flag_name} is {skip_value!r}",
    )  # fmt: skip


def skip_under_pytest(reason: str) -> Callable:
    """Decorator: the test is left out where pytest runs it."""
    return _unless(is_running_under_pytest, lambda self: reason)


def pytest_mark_if_available(marker: str) -> Callable:
    """Decorator: a mark of pytest's, if there is a pytest."""

    def decorate(test):
        pytest = sys.modules.get("pytest")  # without it, nobody looks at marks
        return test if pytest is None else getattr(pytest.mark, marker)(test)

    return decorate


class CudaArchSpecificTest:
    """A mixin for tests of one generation of GPUs."""

    skipTest: Callable[[str], Any]

    def _skip_unless(self, capability: str) -> None:
        if not is_cuda_compute_capability_equal(capability):
            self.skipTest(f"Only works on GPUs of capability {capability}")

    def skip_unless_sm90a(self) -> None:
        self._skip_unless("9.0")

    def skip_unless_tcgen05(self) -> None:
        if not (is_cuda_compute_capability_at_least("10.0") and
                not is_cuda_compute_capability_at_least("11.0")):  # fmt: skip
            self.skipTest("Only works on GPUs of capability 10")

    skip_unless_tcgen05_int8 = skip_unless_tcgen05
