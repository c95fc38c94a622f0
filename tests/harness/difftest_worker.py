"""A worker of `difftest.fuzz` that judges nothing, and that some programs end: the child of its tests."""

import os
import pathlib
import sys
import time

from minijax.difftest import worker

CRASHES, HANGS, EATS, WAITS, SHRUNK = 1, 2, 3, 5, 6  # numbers of programs
STATUS = 7


def judge_all(programs, subjects):
    for program in programs:
        number = int(program.label.rpartition("/")[2])
        if number == CRASHES:
            os._exit(STATUS)
        while number == HANGS:
            pass
        if number == EATS:
            eaten = b"x" * (400 << 20)
            time.sleep(300)
            del eaten
        while number == WAITS and not pathlib.Path(sys.argv[1]).exists():
            time.sleep(0.1)
    return [None] * len(programs)


class Worker(worker.Worker):
    """One program ends it when it is shrunk."""

    def entries(self, numbers):
        if SHRUNK in numbers and len(set(self.order["subjects"])) > 1 and self.order["shrinking"]:
            os._exit(STATUS)
        return super().entries(numbers)


if __name__ == "__main__":
    worker.Worker = Worker
    worker.judge_all = judge_all
    worker.GROUPS = {"abstract": 4, "single": 1}
    worker.main()
