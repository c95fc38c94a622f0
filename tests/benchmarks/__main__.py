"""`python -m tests.benchmarks [section ...]`: minijax and upstream in turn."""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from tests.benchmarks import (
    compiling,
    cost,
    devices,
    dispatch,
    eager,
    host,
    loops,
    memory,
    processes,
    programs,
)
from tests.benchmarks.timing import Table

SECTIONS = {
    "processes": processes,
    "dispatch": dispatch,
    "eager": eager,
    "host": host,
    "devices": devices,
    "programs": programs,
    "compiling": compiling,
    "loops": loops,
    "cost": cost,
    "memory": memory,
}
BY_NAME_ONLY = {"memory"}  # which takes an hour


def main(chosen):
    table = Table()
    print(f"{'':46s} {'minijax':>10s} {'upstream':>10s}   ratio")
    for name in chosen or [name for name in SECTIONS if name not in BY_NAME_ONLY]:
        SECTIONS[name].rows(table)
    table.print_summary()


if __name__ == "__main__":
    main(sys.argv[1:])
