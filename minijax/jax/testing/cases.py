"""Cases of tests written for JAX: samples of products of parameters, and their names.

`testing` shows these names as those of `jax._src.test_util`; the cases are the same as there.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from absl.testing import parameterized

__all__ = [
    "NUM_GENERATED_CASES", "SKIP_SLOW_TESTS", "TEST_NUM_THREADS",
    "TEST_WITH_PERSISTENT_COMPILATION_CACHE", "cases_from_gens", "kSanitizeNameRE",
    "named_cases_from_sampler", "parameterized_filterable", "sample_product",
    "sample_product_testcases", "sanitize_test_name",
]  # fmt: skip


class Flag:
    """A setting of the tests, read from the environment when the tests are loaded."""

    def __init__(self, name: str, value: Any):
        self._name, self.value = name, value

    def __bool__(self) -> bool:
        raise TypeError(f"read the flag {self._name} by its value: {self._name}.value")


def _flag(name: str, default: Any) -> Flag:
    text = os.environ.get(name)
    if text is None:
        return Flag(name, default)
    if isinstance(default, bool):
        return Flag(name, text.lower() in ("y", "yes", "t", "true", "on", "1"))
    return Flag(name, type(default)(text))


NUM_GENERATED_CASES = _flag("JAX_NUM_GENERATED_CASES", 10)
SKIP_SLOW_TESTS = _flag("JAX_SKIP_SLOW_TESTS", False)
TEST_NUM_THREADS = _flag("JAX_TEST_NUM_THREADS", 0)
TEST_WITH_PERSISTENT_COMPILATION_CACHE = _flag("JAX_TEST_WITH_PERSISTENT_COMPILATION_CACHE", False)
_MAX_CASES_SAMPLING_RETRIES = _flag("MAX_CASES_SAMPLING_RETRIES", 100)


def _limit() -> int:
    return int(NUM_GENERATED_CASES.value)


@functools.cache
def _choice(n: int, m: int) -> np.ndarray:
    return np.random.RandomState(42).choice(n, size=m, replace=False)


def sample_product_testcases(*args: Any, **kw: Any) -> Iterator[dict[str, Any]]:
    """Cases out of a cartesian product, at most JAX_NUM_GENERATED_CASES, always the same ones.

    A positional argument is a list of dictionaries, whose entries go together; a keyword argument
    is a list of values.
    """
    choices = [list(part) for part in args]
    choices += [[{name: value} for value in values] for name, values in kw.items()]
    total = math.prod(map(len, choices))
    for index in _choice(total, min(total, _limit())) if total else ():
        case: dict[str, Any] = {}
        for part in choices:
            index, place = divmod(int(index), len(part))
            case.update(part[place])
        yield case


def sample_product(*args: Any, **kw: Any) -> Callable:
    """Decorator: the test runs for each of `sample_product_testcases`."""
    return parameterized.parameters(*sample_product_testcases(*args, **kw))


def named_cases_from_sampler(gen: Callable) -> Iterator[dict[str, Any]]:
    """Cases of different names that `gen` makes by asking its argument to choose among values.

    A choice is given as a list of one.
    """
    seen: set[str] = set()
    rng = np.random.RandomState(42)

    def choose(values):
        values = list(values) if not isinstance(values, (list, tuple)) else values
        return [values[rng.randint(len(values))]]

    for _ in range(_limit()):
        for _ in range(_MAX_CASES_SAMPLING_RETRIES.value):
            cases = list(gen(choose))
            if not cases:
                continue
            if len(cases) > 1:
                raise RuntimeError(
                    "Generator is expected to only return a single case when sampling"
                )
            if cases[0]["testcase_name"] not in seen:
                seen.add(cases[0]["testcase_name"])
                yield cases[0]
                break


kSanitizeNameRE = re.compile(r"[ \"'\[\](){}<>=,._]+")


def sanitize_test_name(s: str) -> str:
    """`s` with what test filters cannot take as underscores, one for several in a row."""
    return kSanitizeNameRE.sub("_", s)


def parameterized_filterable(
    *, kwargs: Sequence[dict[str, Any]], testcase_name: Callable | None = None,
    one_containing: str | None = None,
) -> Callable:  # fmt: skip
    """Decorator: named cases, one for each dictionary, with names that `-k` can pick.

    `testcase_name` makes a case's name of its dictionary; `one_containing` leaves one case, under
    the name of the test itself.
    """

    def name_of(case):
        if testcase_name is not None:
            return testcase_name(case)
        return case.get("testcase_name") or "_".join(f"{k}={v}" for k, v in case.items())

    cases = [dict(case, testcase_name=sanitize_test_name(name_of(case))) for case in kwargs]
    if one_containing is None:
        return parameterized.named_parameters(cases)
    case = next((c for c in cases if one_containing in c["testcase_name"]), None)
    if case is None:
        raise ValueError(f"no case of {[c['testcase_name'] for c in cases]} has {one_containing!r}")
    del case["testcase_name"]

    def single(test):
        return functools.wraps(test)(lambda self: test(self, **case))

    return single


def cases_from_gens(*gens: Callable[[int], Any]) -> Iterator[tuple]:
    """Cases `(name, *made)` of what each of `gens` makes for the sizes 1, 3 and 10."""
    sizes = (1, 3, 10)
    for size in sizes:
        for index in range(max(1, math.ceil(_limit() / len(sizes)))):
            yield (f"_{size}_{index}", *(gen(size) for gen in gens))
