"""The errors that rows of tables are expected to raise: `tests/cases/expected_errors.txt`.

A row whose call raises in upstream passes if minijax raises the same class, and only if the class is
listed for the row's test: an error that is nobody's intention, such as that of a misspelled row,
fails. `EXPECTED_ERRORS=write pytest ...` adds what the tests that run see, and
`python -m tests.harness.expected_errors` sorts the file; read the difference.
"""

import functools
import os
import pathlib

FILE = pathlib.Path(__file__).parents[1] / "cases" / "expected_errors.txt"


@functools.cache
def _listed():
    """Return the classes of errors by test: each line of the file is a test, and classes after it."""
    listed = {}
    for line in FILE.read_text().splitlines():
        test, _, classes = line.rpartition("  ")
        listed.setdefault(test, set()).update(classes.split())
    return listed


def expect(error):
    """Fail unless the class of upstream's `error` is listed for the test that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
    if not test:
        return
    test, name = test.removeprefix("tests/"), type(error).__name__
    if name in _listed().get(test, ()):
        return
    if os.environ.get("EXPECTED_ERRORS") != "write":
        raise AssertionError(
            f"upstream raises {error!r}, which {FILE.name} does not list"
        ) from error
    with open(FILE, "a") as file:  # one line for each class, until the file is sorted
        file.write(f"{test}  {name}\n")


if __name__ == "__main__":
    found = sorted((test, " ".join(sorted(names))) for test, names in _listed().items())
    FILE.write_text("".join(f"{test}  {names}\n" for test, names in found))
