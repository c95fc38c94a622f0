"""Differential testing of composed transforms: random programs under minijax and under upstream JAX.

    python -m minijax.difftest fuzz --composed 1000 --jobs 2

`generate` makes a program of a seed, `judge` runs it under both libraries and compares, `shrink` makes a
finding small, `script` writes it as a file that runs alone, and `fuzz` does all that by the thousand in
child processes. Upstream is imported when a program first runs under it. Read `programs` next, then
`signatures`, `generate`, `running`, `comparing`, `judging`.
"""

from minijax.difftest.checking import Check, Report, check
from minijax.difftest.comparing import Difference, Tolerance, compare
from minijax.difftest.fuzzing import Plan, Progress, fuzz
from minijax.difftest.generating import Profile, generate
from minijax.difftest.grouping import judge_all
from minijax.difftest.judging import Finding, judge
from minijax.difftest.plugin import (
    pytest_configure,
    pytest_exception_interact,
    pytest_pyfunc_call,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from minijax.difftest.programs import Program, arguments_text, text
from minijax.difftest.running import Outcome
from minijax.difftest.scripts import replayed, script
from minijax.difftest.shrinking import shrink
from minijax.difftest.subjects import run

__all__ = [
    "Check", "Difference", "Finding", "Outcome", "Plan", "Profile", "Program", "Progress", "Tolerance",
    "Report", "arguments_text", "check", "compare", "fuzz", "generate", "judge", "judge_all", "replayed", "run", "script", "shrink",
    "text",
]  # fmt: skip
