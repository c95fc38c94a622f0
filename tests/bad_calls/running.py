"""Running calls in child processes, so that one that aborts or hangs costs itself alone."""

import json
import os
import select
import subprocess
import sys
import tempfile

LIMIT = 10.0  # seconds a call may compute
WAIT = 12  # times as long it may take by the clock: machines stand still at times
START = 120.0  # seconds for the child to import the library
FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
MEMORY = 3  # GiB beyond what the child takes when it starts


def outcomes(library, texts, limit=LIMIT, progress=None):
    """What came of each call: `{"ok": ...}`, `{"error": ...}`, `{"abort": signal}`, `{"hang": s}`."""
    found = [None] * len(texts)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        start = 0
        while start < len(texts):
            start = _one_child(library, file.name, start, found, limit, progress)
    return found


def _computed(child):
    """The seconds that a process has computed so far."""
    with open(f"/proc/{child.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _one_child(library, path, start, found, limit, progress):
    """Runs calls until the child ends; returns the index to go on from."""
    command = [
        sys.executable,
        "-m",
        "tests.bad_calls.worker",
        library,
        path,
        str(start),
        str(MEMORY),
    ]
    environment = {"XLA_FLAGS": FLAGS, **os.environ, "JAX_PLATFORMS": "cpu"}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    at, rest, waits, computed = None, b"", 0, 0.0
    try:
        while True:
            ready, _, _ = select.select([child.stdout], [], [], START if at is None else limit)
            if not ready:
                if at is None:
                    raise RuntimeError(f"{library} did not start")
                waits += 1
                if waits < WAIT and _computed(child) - computed < limit:
                    continue
                found[at] = {"hang": limit}
                return at + 1
            waits, computed = 0, _computed(child)
            read = os.read(child.stdout.fileno(), 1 << 16)
            if not read:
                break
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                kind, _, more = line.decode().partition(" ")
                if kind == "+":
                    at = int(more)
                    continue
                index, _, outcome = more.partition(" ")
                found[int(index)] = json.loads(outcome)
                if progress is not None:
                    progress(int(index))
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    if at is None:
        raise RuntimeError(f"{library} did not start: {child.returncode}")
    if found[at] is None:
        found[at] = {"abort": child.returncode}
    return at + 1
