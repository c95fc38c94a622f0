"""`python -m tests.benchmarks [section ...]`: minijax and upstream in turn."""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from tests.benchmarks import cost, devices, dispatch, eager, loops, processes, programs
from tests.benchmarks.timing import Table

SECTIONS = {
    "processes": processes,
    "dispatch": dispatch,
    "eager": eager,
    "devices": devices,
    "programs": programs,
    "loops": loops,
    "cost": cost,
}


def main(chosen):
    table = Table()
    print(f"{'':46s} {'minijax':>10s} {'upstream':>10s}   ratio")
    for name in chosen or SECTIONS:
        SECTIONS[name].rows(table)
    table.print_summary()


if __name__ == "__main__":
    main(sys.argv[1:])
