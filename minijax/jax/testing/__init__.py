"""A stand-in for `jax._src.test_util`: the helpers of test suites that were written for JAX.

Written from the documentation, signatures and behaviour of upstream's. Answers about accelerators
are those of the platform at hand. Names for events inside upstream alone are not here: asking for
one is an AttributeError that says so.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from absl.testing import parameterized

from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.jax.finder import missing
from minijax.jax.private import deprecations
from minijax.jax.private.internals import promote_dtypes, promote_dtypes_inexact
from minijax.jax.testing import cases, checks, contexts, counts, inputs, places
from minijax.jax.testing.checks import _assert_numpy_allclose, _dtype, tolerance
from minijax.jax.testing.contexts import (
    assert_global_configs_unchanged,
    global_config_context,
    thread_local_config_context,
)
from minijax.transforms.jit import jit
from minijax.tree_util import tree_all, tree_flatten, tree_map, tree_unflatten

# ruff: noqa: PT009, PT027, RUF012 (a test case of unittest's, for those who write such)

_MODULES = (
    cases, checks, contexts, counts, inputs, places,
)  # fmt: skip
ToleranceDict = dict[np.dtype, int | float]
__all__ = [
    "BufferDonationTestCase", "JIT_IMPLEMENTATION", "JaxTestCase", "ToleranceDict", "with_config",
    "with_global_config",
]  # fmt: skip
__all__ += [name for module in _MODULES for name in module.__all__]


def __getattr__(name: str) -> Any:
    for module in _MODULES:
        if name in vars(module) and not name.startswith("__"):
            return vars(module)[name]
    raise AttributeError(missing(f"jax._src.test_util.{name}"))


def _NOOP_JIT_IMPLEMENTATION(x: Any, *args: Any, **kwargs: Any) -> Any:
    return x


_PJIT_IMPLEMENTATION = jit
JIT_IMPLEMENTATION = (jit, _NOOP_JIT_IMPLEMENTATION)


class _Warned:
    """The result of a context that waits for a warning: all warnings, and the one waited for."""

    warning: Any = None
    filename: str = ""
    lineno: int = 0

    def __init__(self):
        self.warnings: list[Any] = []


class JaxTestCase(parameterized.TestCase):
    """A test case of numerical programs: strict settings, comparisons, and inputs by name of test."""

    _default_global_config: dict[str, Any] = {}
    _default_thread_local_config: dict[str, Any] = {
        "jax_enable_checks": True,
        "jax_numpy_dtype_promotion": "strict",
        "jax_numpy_rank_promotion": "raise",
        "jax_traceback_filtering": "off",
        "jax_legacy_prng_key": "error",
    }

    def setUp(self) -> None:
        super().setUp()
        self._rng: np.random.RandomState | None = None
        self.enterContext(assert_global_configs_unchanged())
        self.enterContext(global_config_context(**self._default_global_config))
        self.enterContext(thread_local_config_context(**self._default_thread_local_config))

    def tearDown(self) -> None:
        super().tearDown()

    def rng(self) -> np.random.RandomState:
        """Random numbers, the same in each run of the test of this name."""
        if getattr(self, "_rng", None) is None:
            self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))
        return self._rng

    def assertArraysEqual(
        self, actual, desired, *, check_dtypes=True, err_msg="", allow_object_dtype=False,
        verbose=True,
    ):  # fmt: skip
        """Assert that two arrays are exactly equal; NaNs equal each other."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        actual, desired = np.asarray(actual), np.asarray(desired)
        if not allow_object_dtype and np.dtype(object) in (actual.dtype, desired.dtype):
            raise TypeError(
                "assertArraysEqual compares arrays, and one of these becomes an array of Python "
                "objects. Compare collections by assertAllClose and keys by jax.random.key_data; "
                "or pass allow_object_dtype=True."
            )
        np.testing.assert_array_equal(actual, desired, err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(
        self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, err_msg=""
    ):
        """Assert that two arrays are near each other, by default as near as their dtypes allow."""
        self.assertEqual(actual.shape, desired.shape)
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        kinds = (_dtype(actual), _dtype(desired))
        atol = max(tolerance(kind, atol) for kind in kinds)
        rtol = max(tolerance(kind, rtol) for kind in kinds)
        _assert_numpy_allclose(actual, desired, atol=atol, rtol=rtol, err_msg=err_msg)

    def assertDtypesMatch(self, actual, desired, *, canonicalize_dtypes=True):
        """Assert that dtypes are equal; without x64, 64 bits count as 32 unless told otherwise."""
        kinds = (_dtype(actual), _dtype(desired))
        if canonicalize_dtypes:
            kinds = tuple(checks.canonical(kind) for kind in kinds)
        self.assertEqual(*kinds)

    def assertAllClose(
        self, actual, desired, *, check_dtypes=True, atol=None, rtol=None,
        canonicalize_dtypes=True, err_msg="",
    ):  # fmt: skip
        """Assert that arrays, numbers, or dicts and sequences of them are near each other."""
        options = {
            "check_dtypes": check_dtypes, "atol": atol, "rtol": rtol,
            "canonicalize_dtypes": canonicalize_dtypes, "err_msg": err_msg,
        }  # fmt: skip
        if actual is desired is None:
            return
        if isinstance(actual, ShapeDtypeStruct):
            self.assertEqual(actual, desired)
        elif isinstance(actual, dict):
            self.assertIsInstance(desired, dict)
            self.assertEqual(set(actual), set(desired))
            for name in actual:
                self.assertAllClose(actual[name], desired[name], **options)
        elif inputs.is_sequence(actual) and not hasattr(actual, "__array__"):
            if not inputs.is_sequence(desired) or hasattr(desired, "__array__"):
                self.fail(f"Expected sequence, got {desired}")
            self.assertEqual(len(actual), len(desired))
            if isinstance(actual, str):
                self.assertEqual(actual, desired)
                return
            for one, other in zip(actual, desired, strict=True):
                self.assertAllClose(one, other, **options)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            if not hasattr(desired, "__array__") and not np.isscalar(desired):
                self.fail(f"Expected array-like, got {desired}")
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(
                np.asarray(actual), np.asarray(desired), check_dtypes=False, atol=atol, rtol=rtol,
                err_msg=err_msg,
            )  # fmt: skip
        else:
            raise TypeError(f"assertAllClose compares arrays and collections, not {type(actual)}")

    def assertMultiLineStrippedEqual(self, expected, what):
        """Assert that two texts are equal when each line, and the whole, is stripped."""

        def stripped(text):
            lines = textwrap.dedent(text).strip().split("\n")
            return re.sub(r"\s*\n\s*", "\n", "\n".join(line.strip() for line in lines))

        self.assertMultiLineEqual(
            stripped(expected), stripped(what), msg=f"Found\n{what}\nExpecting\n{expected}"
        )

    def assertDeprecationWarnsOrRaises(
        self, deprecation_id: str, message: str, *, error_class: type[Exception] = ValueError
    ):
        """Context: the deprecation warns, or raises where it has been made to."""
        if deprecations.is_accelerated(deprecation_id):
            return self.assertRaisesRegex(error_class, message)
        return self.assertWarnsRegex(DeprecationWarning, message)

    def assertNoWarnings(self):
        """Context: a warning is an error."""
        return counts.raise_on_warnings()

    @contextlib.contextmanager
    def assertWarnsRegex(self, warning, regex):
        """Context: a warning of this class is given, whose text has `regex` in it."""
        pattern = None if regex is None else re.compile(regex)
        found = _Warned()
        with counts.record_warnings() as seen:
            found.warnings = seen
            yield found
        for one in seen:
            if issubclass(one.category, warning) and (
                pattern is None or pattern.search(str(one.message))
            ):
                found.warning, found.filename = one.message, one.filename
                found.lineno = one.lineno
                return
        texts = [str(one.message) for one in seen]
        raise self.failureException(
            f"Expected warning not found {warning}:{regex!r}, got warnings: {texts}"
        )

    def assertWarns(self, warning, *, msg=None):
        """Context: a warning of this class is given."""
        return self.assertWarnsRegex(warning, None if msg is None else re.escape(msg))

    def _CompileAndCheck(
        self, fun, args_maker, *, check_dtypes=True, tol=None, rtol=None, atol=None,
        check_cache_misses=True,
    ):  # fmt: skip
        """Run eagerly and under jit; compare, and see that neither compiles anew the second time."""
        may_run = True

        def traced(*args):
            self.assertTrue(may_run, "the compiled function was traced a second time")
            return fun(*args)

        args = args_maker()
        fun(*args)
        with counts.count_primitive_compiles() as compiles:
            eager = fun(*args)
        if check_cache_misses:
            self.assertEqual(
                0, compiles(), f"{compiles()} primitives were compiled in a second eager run"
            )
        options = {
            "check_dtypes": check_dtypes,
            "atol": tol if atol is None else atol,
            "rtol": tol if rtol is None else rtol,
        }
        compiled = jit(traced)
        self.assertAllClose(compiled(*args), eager, **options)
        may_run = not check_cache_misses
        args = args_maker()
        self.assertAllClose(compiled(*args), fun(*args), **options)

    def _CheckAgainstNumpy(
        self, numpy_reference_op, lax_op, args_maker, check_dtypes=True, tol=None, atol=None,
        rtol=None, canonicalize_dtypes=True,
    ):  # fmt: skip
        """Compare `lax_op` with a reference on the same arguments."""
        args = args_maker()
        found = lax_op(*args)
        wanted = numpy_reference_op(*args)
        self.assertAllClose(
            found, wanted, check_dtypes=check_dtypes,
            atol=tol if atol is None else atol, rtol=tol if rtol is None else rtol,
            canonicalize_dtypes=canonicalize_dtypes,
        )  # fmt: skip

    @contextlib.contextmanager
    def _counted(self, **wanted):
        counters = {
            "cpp": counts.count_pjit_cpp_cache_miss,
            "aot_call": counts.count_aot_jit_cpp_cache_miss,
            "tracing": counts.count_jit_tracing_cache_miss,
            "lowering": counts.count_jit_and_pmap_lowerings,
            "compilation_after_persistent_cache_miss":
                counts.count_compilation_after_persistent_cache_miss,
        }  # fmt: skip
        with contextlib.ExitStack() as stack:
            asked = {n: stack.enter_context(counters[n]()) for n, v in wanted.items()
                     if v is not None}  # fmt: skip
            yield
        for name, count in asked.items():
            self.assertEqual(wanted[name], count(), f"misses of the kind {name}")

    def assertCacheMisses(
        self, func: Callable[[], Any], *, cpp: int | None = None, aot_call: int | None = None,
        tracing: int | None = None, lowering: int | None = None,
        compilation_after_persistent_cache_miss: int | None = None,
    ):  # fmt: skip
        """Assert how many traces, lowerings, compilations and slow calls `func()` makes."""
        with self._counted(
            cpp=cpp, aot_call=aot_call, tracing=tracing, lowering=lowering,
            compilation_after_persistent_cache_miss=compilation_after_persistent_cache_miss,
        ):  # fmt: skip
            func()


class BufferDonationTestCase(JaxTestCase):
    """A test case of donated arrays."""

    def assertDeleted(self, x):
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x):
        self.assertFalse(x.is_deleted())


def with_config(**kwds: Any) -> Callable[[type], type]:
    """Decorator of a JaxTestCase: its tests run with these settings, of their thread."""

    def decorate(cls):
        assert issubclass(cls, JaxTestCase), f"with_config decorates a JaxTestCase, not {cls}"
        cls._default_thread_local_config = {**cls._default_thread_local_config, **kwds}
        return cls

    return decorate


def with_global_config(**kwds: Any) -> Callable[[type], type]:
    """Decorator of a JaxTestCase: its tests run with these settings, of the process."""

    def decorate(cls):
        assert issubclass(cls, JaxTestCase), f"with_global_config decorates a JaxTestCase: {cls}"
        cls._default_global_config = {**cls._default_global_config, **kwds}
        return cls

    return decorate
