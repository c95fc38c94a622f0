"""Subjects in child processes: other versions of upstream, other settings of XLA, the reference interpreter.

A subject has a name:

- `jax==0.12.0.1`: that version, in an environment that is made when it is first asked for
- `/path/to/python`: the `jax` of that interpreter
- `minijax:unoptimized`, `jax:unoptimized`: without the passes of XLA that rewrite and fuse
- `minijax@cuda`, `jax@cuda`: on another backend
- `minijax:eager`, `jax:eager`: operation by operation, in this process
- `interpreter`: the StableHLO reference interpreter of jaxlib

Environments lie beside the folder of compiled programs, one folder for each version. `algebra`, which is
no subject but an oracle of `judge`, compares what must be equal within minijax.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading

from minijax.difftest import running
from minijax.difftest.programs import Program
from minijax.difftest.running import Outcome
from minijax.runtime.cache import default_folder

__all__ = ["environment", "run"]

PATIENCE = 120.0  # seconds of one program
_PASSES = (
    "algsimp", "fusion", "cpu-instruction-fusion", "constant_folding", "cse", "reduce-decomposer",
)  # fmt: skip
_UNOPTIMIZED = (
    f"--xla_disable_hlo_passes={','.join(_PASSES)} --xla_backend_optimization_level=0 "
    "--xla_allow_excess_precision=false"
)
_PYTHONS = ("python3.13", "python3.12", "python3.14", "python3.11", "python3.10", "python3.9")


def run(
    program: Program, name: str, how: str = "compiled", arguments: tuple | None = None
) -> Outcome:
    """Run a program under a library, or another subject.

    - `name`: "minijax", "jax", or the name of another subject: see this module
    - `how`: "abstract" (`eval_shape`), "compiled" (`jit` of the whole) or "eager"
    - `arguments`: inputs in place of the program's own

    Returns an `Outcome`; errors of the program are in it, and `Died` of a child process that ended or
    hung. Source: this package.

    >>> difftest.run(difftest.generate(0, 1), "minijax", "abstract").error
    ()
    """
    if name in ("minijax", "jax"):
        return running.run(program, name, how, arguments)
    library, _, setting = name.partition(":")
    if setting == "eager":
        return running.run(
            program, library, "abstract" if how == "abstract" else "eager", arguments
        )
    child = _children.get(name)
    if child is None:
        child = _children[name] = _Child(name)
    if arguments is None:
        arguments = running.programs.arguments(program)
    return child.ask((program, how, arguments))


class _Child:
    """A process that answers; it is started when it is first asked, and again after it died."""

    def __init__(self, name: str):
        self.name = name
        self.process: subprocess.Popen | None = None

    def ask(self, question) -> Outcome:
        if self.process is None or self.process.poll() is not None:
            self.process = self.start()
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            status = self.process.wait()
            return Outcome(error=("Died",), message=f"{self.name} ended with status {status}")
        finally:
            timer.cancel()

    def start(self) -> subprocess.Popen:
        library, python, added = _described(self.name)
        command = [python, str(pathlib.Path(__file__).with_name("remote.py")), library]
        variables = dict(os.environ)
        if library != "jax":
            root = str(pathlib.Path(__file__).resolve().parents[2])
            variables["PYTHONPATH"] = os.pathsep.join((root, *sys.path[1:]))
        elif python != sys.executable:
            variables.pop("PYTHONPATH", None)
        for key, value in added.items():
            variables[key] = f"{variables.get(key, '')} {value}" if key == "XLA_FLAGS" else value
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables
        )  # fmt: skip
        atexit.register(process.kill)
        return process


_children: dict[str, _Child] = {}


def _described(name: str) -> tuple[str, str, dict[str, str]]:
    """Return the library, the Python and the environment variables of a subject."""
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if name == "interpreter":
        return name, sys.executable, two
    if "/" in name:
        return "jax", name, two
    if "==" in name:
        return "jax", str(environment(name)), two
    library, _, platform = name.partition("@")
    if platform:
        return library, sys.executable, {"JAX_PLATFORMS": platform}
    library, _, setting = name.partition(":")
    if library in ("minijax", "jax") and setting == "unoptimized":
        return library, sys.executable, two | {"XLA_FLAGS": f"{two['XLA_FLAGS']} {_UNOPTIMIZED}"}
    raise ValueError(f"{name!r} is no subject: see minijax.difftest.subjects.")


def environment(requirement: str) -> pathlib.Path:
    """Return the Python of an environment with a version of upstream; make it if it is not there.

    - `requirement`: such as "jax==0.12.0.1"

    Returns a path. RuntimeError if no Python of this machine can have that version. Source: pip.
    """
    home = default_folder()
    folder = home.with_name(f"{home.name}-difftest") / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    if python.exists():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    said: list[str] = []
    for candidate in _pythons():
        made = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
        install = [
            sys.executable, "-m", "pip", "--python", made / "bin" / "python", "install", "--quiet",
        ]  # fmt: skip
        try:
            for command in (
                [candidate, "-m", "venv", "--without-pip", made],
                [*install, requirement, "numpy", "ml_dtypes"],
            ):
                subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(made, ignore_errors=True)
            said.append((getattr(error, "stderr", "") or str(error)).strip()[-300:])
            continue
        made.rename(folder)  # whole or not at all
        return python
    raise RuntimeError(f"No Python found here can have {requirement}: " + "; ".join(said))


def _pythons() -> list[str]:
    """Return one interpreter for each version there is: this one, those on the path that start, and pyenv's."""
    found = [sys.executable, *filter(None, map(shutil.which, _PYTHONS))]
    found += map(str, pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python"))
    by_version: dict[str, str] = {}
    for python in found:
        told = subprocess.run([python, "--version"], capture_output=True, text=True)
        if told.returncode == 0:
            by_version.setdefault(told.stdout.rpartition(".")[0], python)
    return list(by_version.values())
