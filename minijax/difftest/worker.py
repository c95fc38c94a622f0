"""The child process of `fuzz`: runs the programs it is told to and prints a line before and after each."""

from __future__ import annotations

import functools
import gc
import json
import sys
import time

from minijax.difftest import fuzzing, scripts
from minijax.difftest.generating import generate
from minijax.difftest.judging import Finding, judge
from minijax.difftest.running import library
from minijax.difftest.shrinking import shrink

_EVERY = 50  # programs, after which the caches of both libraries are emptied
# Shrunk findings with the same key, after which programs that contain it are counted only.
_CONFIRMED = 3


class Worker:
    """Judges programs one after the other; knows which findings were made before."""

    def __init__(self, order: dict):
        self.order = order
        self.seen = {tuple(key): _CONFIRMED for key in order["known"]}
        self.judge = functools.partial(judge, subjects=tuple(order["subjects"]))

    def entry(self, number: int) -> dict:
        """Return what the journal says of a program."""
        began = time.process_time()
        order = self.order
        entry = {"mode": order["mode"], "seed": order["seed"], "number": number, "status": "same"}
        program = generate(order["seed"], number, order["mode"])
        found = self.judge(program)
        if found is not None:
            entry |= self.described(found)
        return entry | {"cpu": round(time.process_time() - began, 3), "memory": fuzzing.resident()}

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


def main() -> None:
    order = json.load(sys.stdin)
    worker = Worker(order)
    for index, number in enumerate(order["numbers"]):
        print(json.dumps({"began": number}), flush=True)
        entry = worker.entry(number)
        print(json.dumps(entry), flush=True)
        if entry["memory"] > order["budget"]:
            return  # another child goes on
        if index % _EVERY == _EVERY - 1:
            for name in ("minijax", "jax"):
                library(name).clear_caches()
            gc.collect()


if __name__ == "__main__":
    main()
