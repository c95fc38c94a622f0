"""Programs that may end their process: each is run in a child, and the next child goes on after it.

A module of programs has `PROGRAMS`, from names to functions of a library, and ends with
`survivors.main(PROGRAMS)`; it is run as `python -m tests.cases.NAME LIBRARY`. `outcomes` gives by name
what each program returned, ["raised", class names, message], or ["died", exit status].
"""

import importlib
import json
import os
import subprocess
import sys
import warnings

from tests.harness import upstream

ENVIRONMENT = upstream.devices(8)
# XLA's older emitters end a process at collectives of constants.
_QUICK = "--xla_cpu_use_fusion_emitters=false"
ENVIRONMENT["XLA_FLAGS"] = ENVIRONMENT["XLA_FLAGS"].replace(_QUICK, "")


def outcomes(module, library, names, seconds=900, environment=ENVIRONMENT):
    """The outcome of each program of `tests.cases.module`; one that is not done in time is "late"."""
    left, found = list(names), {}
    while left:
        began = None
        try:
            run = subprocess.run(
                [sys.executable, "-m", f"tests.cases.{module}", library],
                input=json.dumps(left), capture_output=True, text=True, timeout=seconds,
                env=os.environ | environment,
            )  # fmt: skip
            text, status, errors = run.stdout, run.returncode, run.stderr
        except subprocess.TimeoutExpired as error:
            text, status, errors = (error.stdout or b"").decode(), "late", ""
        for line in text.splitlines():
            if line.startswith('["begin",'):
                began = json.loads(line)[1]
            elif line.startswith('["end",'):
                _, name, outcome = json.loads(line)
                found[name], began = outcome, None
        if began is None:
            assert status == 0, errors[-3000:]
            break
        found[began] = ["died", status]
        left = left[left.index(began) + 1 :]
    return found


def main(programs):
    """Run the programs whose names stand in the standard input; one line before and after each."""
    name = sys.argv[1]
    library = importlib.import_module(name)
    importlib.import_module(f"{name}.experimental")
    upstream.collect_rarely()
    if name == "jax":
        upstream.share_contexts()
    chosen = json.loads(sys.stdin.read())
    for label in chosen:
        print(json.dumps(["begin", label]), flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcome = programs[label](library)
            except Exception as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                outcome = ["raised", kinds, str(error)[:1000]]
        print(json.dumps(["end", label, outcome]), flush=True)
