"""A finding as a file that runs alone, and files read back as what can be judged again."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re

from minijax.difftest.judging import Finding, judge
from minijax.difftest.programs import MODULES, Function, Program, arguments_text, text

__all__ = ["name_of", "read", "replayed", "script"]

_HEAD = '''"""{title}

{lines}
Run it alone: it prints what both libraries give, and ends with a status of 1 while they differ. With
`--library minijax` or `--library jax` it prints that library's result only.
"""
# ruff: noqa
# fmt: off

import importlib
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import ml_dtypes  # noqa: F401
import numpy as np
from numpy import array, inf, nan  # noqa: F401

KIND = {kind!r}
X64 = {x64}
MODE = {mode!r}
OPERATIONS = {operations!r}
EVIDENCE = {evidence!r}


{program}


ARGUMENTS = {arguments}
'''

_TAIL = '''

def load(name):
    """Return a library, with the submodules that programs use."""
    library = importlib.import_module(name)
    for sub in {modules!r}:
        importlib.import_module(f"{{name}}.{{sub}}")
    return library


def result(name):
    library = load(name)
    try:
        with library.enable_x64(X64):
            how = library.eval_shape if MODE == "abstract" else (lambda f, *a: library.jit(f)(*a))
            return how(lambda *args: program(library, *args), *ARGUMENTS)
    except Exception as error:
        return f"raised {{type(error).__name__}}: {{error}}".splitlines()[0]


if __name__ == "__main__":
    if "--library" in sys.argv:
        print(result(sys.argv[-1]))
    else:
        for name in ("minijax", "jax"):
            print(f"{{name}}: {{result(name)}}")
        print(*EVIDENCE, sep="\\n")
        from minijax import difftest

        sys.exit(difftest.replayed(__file__))
'''


def script(finding: Finding) -> str:
    """Return the file of a finding.

    - `finding`: of `judge` or `shrink`

    Returns Python as a string: it prints both results and the witness, and ends with a status of 1 while
    the difference is there. Source: this package.
    """
    program = finding.program
    operations = program.operations()
    title = f"{finding.difference.kind}: {' in '.join(operations)}"
    lines = [f"Verdict: {finding.verdict}. {finding.difference.detail}", *finding.evidence]
    lines += [
        f"minijax: {finding.ours}",
        f"upstream: {finding.theirs}",
        f"Program: {program.label}",
        "",
    ]
    clean = "\n".join(line for text in lines for line in str(text).splitlines() or [""])
    head = _HEAD.format(
        title=title, lines=re.sub(r'(["\\])', r"\\\1", clean) + "\n", kind=finding.difference.kind,
        x64=program.x64, mode=program.mode, operations=operations, evidence=finding.evidence, program=text(program),
        arguments=arguments_text(program),
    )  # fmt: skip
    return head + _TAIL.format(modules=MODULES)


def name_of(finding: Finding) -> str:
    """Return the name of the file of a finding: kind, operations, and a hash of the program."""
    words = "_".join((finding.difference.kind, *finding.program.operations()))
    words = re.sub(r"\W+", "_", words)[:60].strip("_")
    code = hashlib.sha256((text(finding.program) + arguments_text(finding.program)).encode())
    return f"{words}_{code.hexdigest()[:8]}.py"


def read(path: str | os.PathLike) -> tuple[Program, str]:
    """Return the program of a script and the kind of its difference."""
    source = pathlib.Path(path).read_text()
    names = {"__name__": "read", "__file__": str(path)}
    exec(compile(source, str(path), "exec"), names)
    body = re.search(r"^def program\(.*?(?=\n\n)", source, re.DOTALL | re.MULTILINE)[0]
    inputs = re.search(r"^ARGUMENTS = (.*?)$", source, re.MULTILINE)[1]
    main = Function("program", (), (), ())
    whole = (body, inputs, tuple(names["OPERATIONS"]))
    return Program(main, (), names["X64"], names["MODE"], str(path), whole), names["KIND"]


def replayed(path: str | os.PathLike, subject: str = "jax") -> int:
    """Judge the program of a script again; print what is found.

    - `path`: a file that `script` wrote
    - `subject`: what minijax is compared with, such as "jax==0.12.0.1"

    Returns an int, the exit status: 1 while the libraries differ, 0 when they agree.
    Source: this package.
    """
    found = judge(read(path)[0], subjects=("minijax", subject))
    if found is None:
        print("no difference")
        return 0
    print(f"{found.difference.kind}: {found.difference.detail}", *found.evidence, sep="\n")
    return 1
