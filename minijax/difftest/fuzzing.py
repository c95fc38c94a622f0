"""Many programs in child processes: journal, findings, deaths and resumption.

The parent hands batches of tasks to children (`worker`), which say when each group of programs begins and
ends. Where a child dies, hangs or takes too much memory, the next one runs the programs of that group one by
one; the program that ends a child by itself is reported and left out. Every program that is done has a line in the journal, so that a run that was killed goes
on where it was.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata

__all__ = ["Plan", "Progress", "fuzz", "variables"]

FLAGS = (
    "--xla_force_host_platform_device_count=2", "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
)  # fmt: skip
if metadata.version("jaxlib").startswith("0.10."):  # XLA refuses flags that it does not know
    # Kernels that are made by way of MLIR take three times as long to compile.
    FLAGS = (*FLAGS, "--xla_cpu_use_fusion_emitters=false")


def variables() -> dict[str, str]:
    """Return the environment variables under which programs are cheap to run and have two devices."""
    return {
        "XLA_FLAGS": " ".join((*FLAGS, os.environ.get("XLA_FLAGS", ""))),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_TRACEBACK_FILTERING": "off",  # filtering is a tenth of the time of refused calls
    }


_BATCH = {"composed": 400, "single": 2000, "abstract": 10000}  # programs of one child, at most

_START = 60.0  # seconds of CPU time until a child says something


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run to be made: how many programs of each mode, of which seed, and within which limits.

    - `seconds`: of CPU time of all children; 0 for no limit
    - `patience`, `memory`: seconds of CPU time of a group of programs, or of one (or ten times as many
      of silence), and bytes of a child, before it is ended
    - `budget`: bytes of a child, after which another goes on: compiled programs leave some behind
    - `shrinking`: seconds of CPU time to shrink one finding
    - `subjects`: names of the two that are compared, as `judge` takes them
    - `worker`: arguments of Python that start a child
    """

    counts: dict[str, int]
    seed: int = 0
    seconds: float = 0.0
    jobs: int = 1
    patience: float = 60.0
    memory: int = 6 << 30
    budget: int = 700 << 20
    shrinking: float = 20.0
    subjects: tuple[str, str] = ("minijax", "jax")
    worker: tuple[str, ...] = ("-m", "minijax.difftest.worker")


@dataclasses.dataclass
class Progress:
    """The work done so far: programs by mode and status, CPU time, and findings by file name."""

    done: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    cpu: float = 0.0
    peak: int = 0
    findings: dict[str, dict] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{n} {mode} {status}" for (mode, status), n in sorted(self.done.items())
        )
        rate = 60 * sum(self.done.values()) / self.cpu if self.cpu else 0.0
        memory = f"{self.peak >> 20} MiB"
        return f"{counts}; {self.cpu:.0f} s of CPU, {rate:.0f} a minute, {len(self.findings)} findings, {memory}"


def fuzz(
    plan: Plan, folder: str | os.PathLike, say: Callable[[Progress], None] | None = None
) -> Progress:
    """Run programs in child processes and keep what is found in a folder.

    - `plan`: how many programs, of which seed, within which limits
    - `folder`: where the journal and the scripts of findings go; a run that was interrupted goes on
    - `say`: is called with the progress now and then

    Returns the `Progress`. Source: this package.
    """
    folder = pathlib.Path(folder)
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    run = _Run(plan, folder, say)
    threads = [threading.Thread(target=run.serve, daemon=True) for _ in range(plan.jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
    except KeyboardInterrupt:
        run.stop()
        for thread in threads:
            thread.join(10)
    run.journal.close()
    if run.failure is not None:
        raise run.failure
    return run.progress


class _Run:
    """The state that the threads of one run share."""

    def __init__(self, plan: Plan, folder: pathlib.Path, say):
        self.plan, self.folder, self.say = plan, folder, say
        self.progress = Progress()
        self.lock = threading.Lock()
        self.stopped = False
        self.failure: Exception | None = None
        self.children: set[subprocess.Popen] = set()
        self.told = time.monotonic()
        finished = self._resume(folder / "journal.jsonl")
        tasks: list[list] = []
        for mode, count in plan.counts.items():
            left = [n for n in range(count) if (mode, n) not in finished]
            size = max(1, min(_BATCH[mode], -(-len(left) // plan.jobs)))
            tasks += [[mode, left[i : i + size]] for i in range(0, len(left), size)]
        self.tasks = collections.deque(tasks)
        self.journal = (folder / "journal.jsonl").open("a")

    def _resume(self, path: pathlib.Path) -> set[tuple[str, int]]:
        """Read the journal of an earlier run with the same seed."""
        finished = set()
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:  # the last line of a run that was killed
                continue
            if entry["seed"] == self.plan.seed:
                finished.add((entry["mode"], entry["number"]))
                self._count(entry)
        return finished

    def _count(self, entry: dict) -> None:
        self.progress.done[entry["mode"], entry["status"]] += 1
        self.progress.cpu += entry["cpu"]
        self.progress.peak = max(self.progress.peak, entry.get("memory", 0))
        if "file" in entry:
            self.progress.findings.setdefault(entry["file"], entry)

    def stop(self) -> None:
        self.stopped = True
        for child in list(self.children):
            child.terminate()

    def serve(self) -> None:
        """Run batches until there are none, in one child after the other."""
        try:
            self._serve()
        except Exception as error:  # of a thread, which nobody would see
            self.failure = error
            self.stop()

    def _serve(self) -> None:
        while not self.stopped:
            with self.lock:
                if not self.tasks:
                    return
                mode, numbers = self.tasks.popleft()
            alone: set[int] = set()
            while numbers and not self.stopped:
                numbers = self._batch(mode, numbers, alone)

    def _child(self, mode, numbers, alone, subjects, **other) -> subprocess.Popen:
        """Start a child that runs programs; `other` fields of its order stand in place of the plan's."""
        child = subprocess.Popen(
            [sys.executable, *self.plan.worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=os.environ | variables(),
        )  # fmt: skip
        self.children.add(child)
        order = {"mode": mode, "seed": self.plan.seed, "numbers": numbers, "known": []}
        order |= {"alone": sorted(alone), "subjects": subjects}
        order |= {name: getattr(self.plan, name) for name in ("shrinking", "budget")}
        json.dump(order | other, child.stdin)
        child.stdin.close()
        return child

    def _who_ends_a_child(self, mode: str, number: int) -> str:
        """Return the verdict on a program that ended a child, by running it under each library alone."""
        ours, theirs = (
            self._told(mode, number, (subject, subject)) is None for subject in self.plan.subjects
        )
        return ("xla" if theirs else "minijax") if ours else "upstream" if theirs else "open"

    def _told(self, mode: str, number: int, subjects: tuple[str, str], **other) -> dict | None:
        """Return what a child says of one program, None if it ends before."""
        child = self._child(mode, [number], {number}, subjects, **other)
        # What one library did not end it does not end here; what both do may take long to be judged.
        patience = self.plan.patience * (1 if subjects[0] == subjects[1] else 3)
        watch = _Watch(child, dataclasses.replace(self.plan, patience=patience))
        child.stdout.readline()  # it has started
        watch.heard()
        entry = None
        for line in child.stdout:
            if line.startswith('{"mode"'):  # not printed by a program
                entry = json.loads(line)
        child.wait()
        watch.over = True
        self.children.discard(child)
        return entry

    def _batch(self, mode: str, numbers: list[int], alone: set[int]) -> list[int]:
        """Run programs in one child; return those that are left when it ends.

        - `alone`: those that are in no group; the group that ends a child is added
        """
        known = sorted({tuple(entry["key"]) for entry in self.progress.findings.values()})
        child = self._child(mode, numbers, alone, self.plan.subjects, known=known)
        watch = _Watch(child, self.plan)
        done: set[int] = set()
        began: list[int] = []
        last: dict = {}
        for line in child.stdout:
            watch.heard()
            try:
                entry = json.loads(line)
            except ValueError:  # printed by a program
                continue
            if "began" in entry:
                began, last = entry["began"], entry
                continue
            self._ended(entry)
            done.add(entry["number"])
            began.remove(entry["number"])
            if self.plan.seconds and self.progress.cpu > self.plan.seconds:
                self.stop()
        child.wait()
        watch.over = True
        self.children.discard(child)
        if began and not self.stopped:
            if "source" in last:
                self._died(mode, last, watch.reason or f"status {child.returncode}")
                done.update(began)
            else:  # of a group: each runs by itself
                alone.update(began)
        elif child.returncode and not self.stopped and not done:
            raise RuntimeError("The worker does not start: run python -m minijax.difftest.worker.")
        return [n for n in numbers if n not in done]

    def _died(self, mode: str, began: dict, reason: str) -> None:
        """Write down the program at which a child ended, as the child told it: it may have other devices."""
        (number,) = began["began"]
        kind = "hang" if reason == "patience" else "crash"
        verdict = "open" if reason == "memory" else self._who_ends_a_child(mode, number)
        if verdict == "open" and reason != "memory":  # a program that it was shrunk to, perhaps
            entry = self._told(mode, number, self.plan.subjects, shrinking=0.0)
            if entry is not None:
                self._ended(entry)
                return
        name = f"{kind}_{mode}_{self.plan.seed}_{number}.py"
        body = f"# {kind}: {reason}\n{began['source']}"
        self._ended({
            "mode": mode, "seed": self.plan.seed, "number": number, "status": kind, "cpu": 0.0,
            "file": name, "key": [kind, *began["operations"]], "verdict": verdict, "script": body,
            "detail": reason,
        })  # fmt: skip

    def _ended(self, entry: dict) -> None:
        with self.lock:
            script = entry.pop("script", None)
            if script is not None:
                (self.folder / "findings" / entry["file"]).write_text(script)
            self.journal.write(json.dumps(entry) + "\n")
            self.journal.flush()
            self._count(entry)
            if self.say is not None and time.monotonic() - self.told > 5:
                self.told = time.monotonic()
                self.say(self.progress)


class _Watch:
    """A thread that ends a child which computes or waits for too long or takes too much memory."""

    def __init__(self, child: subprocess.Popen, plan: Plan):
        self.child, self.plan = child, plan
        self.over = False
        self.reason = ""
        self.heard()
        self.limit = max(plan.patience, _START)
        threading.Thread(target=self._watch, daemon=True).start()

    def heard(self) -> None:
        """Note that the child has said something."""
        self.silent = 0.0  # seconds counted in steps, so that a suspended machine adds none
        self.since = cpu_time(self.child.pid)
        self.limit = self.plan.patience

    def _watch(self) -> None:
        while not self.over and self.child.poll() is None:
            time.sleep(0.5)
            self.silent += 0.5
            # On a busy machine a child may get little of it: a deadlock has ten times as long.
            busy = cpu_time(self.child.pid) - self.since
            if max(busy, self.silent / 10) > self.limit:
                self.reason = "patience"
            elif resident(self.child.pid) > self.plan.memory:
                self.reason = "memory"
            if self.reason:
                self.child.kill()
                return


def cpu_time(pid: int) -> float:
    """Return the seconds of CPU time that a process has used, 0 where that is not told."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def resident(pid: int | str = "self") -> int:
    """Return the bytes of memory that a process holds, 0 where that is not told."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, IndexError, ValueError):
        return 0
