"""The child process of `fuzz`: runs the programs it is told to, and prints a line before and after each group."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator

from minijax.difftest import fuzzing, scripts
from minijax.difftest.generating import generate
from minijax.difftest.grouping import judge_all
from minijax.difftest.judging import Finding, judge
from minijax.difftest.known import hanging
from minijax.difftest.programs import arguments_text, text
from minijax.difftest.running import library
from minijax.difftest.shrinking import shrink

# By mode: programs that are judged together, and those after which both libraries' caches are emptied.
GROUPS = {"composed": 16, "single": 32, "abstract": 50}
_EVERY = {"composed": 48, "single": 96, "abstract": 1000}
# Shrunk findings with the same key, after which programs that contain it are counted only.
_CONFIRMED = 3


class Worker:
    """Judges programs one after the other; knows which findings were made before."""

    def __init__(self, order: dict):
        self.order = order
        self.seen = {tuple(key): _CONFIRMED for key in order["known"]}
        self.judge = functools.partial(judge, subjects=tuple(order["subjects"]))

    def entries(self, numbers: list[int]) -> Iterator[dict]:
        """Yield what the journal says of programs that are judged together."""
        began = time.process_time()
        seed, mode = self.order["seed"], self.order["mode"]
        made = {number: generate(seed, number, mode) for number in numbers}
        known = {number: hanging(program) for number, program in made.items()}
        run = [number for number in numbers if known[number] is None]
        judged = judge_all([made[number] for number in run], tuple(self.order["subjects"]))
        found = dict(zip(run, judged, strict=True))
        share = (time.process_time() - began) / len(numbers)
        for number in numbers:
            began = time.process_time()
            entry = {"mode": mode, "seed": seed, "number": number, "status": "same"}
            if (row := known[number]) is not None:
                entry["status"] = row.verdict
            elif (finding := found[number]) is not None:
                entry |= self.described(finding)
            cpu = round(share + time.process_time() - began, 4)
            yield entry | {"cpu": cpu, "memory": fuzzing.resident()}

    def told(self, numbers: list[int]) -> dict:
        """The text of a single program, written down before it runs in case it ends the process."""
        if len(numbers) > 1:
            return {}
        program = generate(self.order["seed"], *numbers, self.order["mode"])
        source = f"{text(program)}\n\nARGUMENTS = {arguments_text(program)}\n"
        return {"source": source, "operations": program.operations()}

    def described(self, found: Finding) -> dict:
        if found.settled:
            return {"status": found.verdict}
        key = self.repeated(found)
        if key is not None:
            return {"status": "repeated", "key": key}
        found = shrink(found, self.order["shrinking"], self.judge)
        if found.settled:
            return {"status": found.verdict}
        again = self.seen.get(found.key, 0)
        self.seen[found.key] = again + 1
        if again:
            return {"status": "repeated", "key": found.key}
        return {
            "status": "different", "key": found.key, "verdict": found.verdict,
            "detail": found.difference.detail, "evidence": found.evidence,
            "file": scripts.name_of(found), "script": scripts.script(found),
        }  # fmt: skip

    def repeated(self, found: Finding) -> tuple[str, ...] | None:
        """Return the key of a finding that this program likely contains."""
        operations = set(found.program.operations())
        for key, times in self.seen.items():
            if (
                times >= _CONFIRMED
                and key[0] == found.difference.kind
                and operations.issuperset(key[1:])
            ):
                return key
        return None


def groups(order: dict) -> list[list[int]]:
    """Return the numbers of programs in groups; those in `alone`, of which one ended a child, by themselves."""
    alone = set(order["alone"])
    rest = [number for number in order["numbers"] if number not in alone]
    size = GROUPS[order["mode"]]
    parts = [rest[at : at + size] for at in range(0, len(rest), size)]
    return [[number] for number in sorted(alone & set(order["numbers"]))] + parts


def _end_with_the_parent() -> None:
    """End this process when the one that started it is gone: no program runs on for nobody."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    _end_with_the_parent()
    order = json.load(sys.stdin)
    gc.freeze()  # the libraries
    gc.set_threshold(20_000, 20, 20)  # tracing allocates much that is not garbage
    worker = Worker(order)
    fresh = 0
    for numbers in groups(order):
        print(json.dumps({"began": numbers} | worker.told(numbers)), flush=True)
        for entry in worker.entries(numbers):
            print(json.dumps(entry), flush=True)
        if entry["memory"] > order["budget"]:
            return  # another child goes on
        fresh += len(numbers)
        if fresh >= _EVERY[order["mode"]]:
            fresh = 0
            for name in ("minijax", "jax"):
                library(name).clear_caches()
            gc.collect()


if __name__ == "__main__":
    main()
