"""Timing two libraries in turn, so that a drift of the machine's speed touches both."""

import gc
import math
import operator
import statistics
import time


def best_of(function, seconds):
    """The least time of one call, in seconds, over repeats that last about `seconds`."""
    function()
    start = time.perf_counter()
    function()
    once = max(time.perf_counter() - start, 1e-7)
    inner = max(1, int(0.005 / once))
    best = math.inf
    deadline = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        for _ in range(inner):
            function()
        best = min(best, (time.perf_counter() - start) / inner)
        if time.perf_counter() > deadline:
            return best


def compare(ours, theirs, rounds=3, seconds=0.06):
    """The best times of two functions, measured in turn: (ours, theirs) in seconds."""
    times = ([], [])
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for function, found in zip((ours, theirs), times, strict=True):
                found.append(best_of(function, seconds))
    finally:
        if enabled:
            gc.enable()
    return min(times[0]), min(times[1])


def compare_quick(ours, theirs, turns=240, block=3e-4, seconds=1.0):
    """The best times of two functions over short blocks in many turns, in seconds.

    For calls of microseconds: a block is short beside the spells in which a machine is slow. Calls
    that take longer than a block get fewer turns, so that all takes about `seconds`.
    """
    once = [best_of(function, 0) for function in (ours, theirs)]
    calls = [max(1, int(block / took)) for took in once]
    turns = max(3, min(turns, int(seconds / sum(map(operator.mul, once, calls)))))
    enabled = gc.isenabled()
    gc.disable()
    try:
        return tuple(map(min, _in_turn((ours, theirs), calls, turns)))
    finally:
        if enabled:
            gc.enable()


def compare_typical(ours, theirs, blocks=250, calls=10):
    """The medians of two functions' times over short blocks of calls in turn, in seconds.

    For what many threads do together: how they wake makes calls fast or slow by turns, so that the
    best of them says little.
    """
    for function in (ours, theirs):
        function()
    return tuple(map(statistics.median, _in_turn((ours, theirs), (calls, calls), blocks)))


def _in_turn(functions, calls, turns):
    """The times of one call of each function, in blocks of so many calls, now one, now the other."""
    times = tuple([] for _ in functions)
    turn = list(zip(functions, calls, times, strict=True))
    for _ in range(turns):
        turn.reverse()
        for function, count, found in turn:
            start = time.perf_counter()
            for _ in range(count):
                function()
            found.append((time.perf_counter() - start) / count)
    return times


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


class Table:
    """Rows of (label, ours, theirs), printed as they come; remembers each section's ratios."""

    def __init__(self):
        self.summary = []

    def section(self, title, rows, budget=None, worst=None):
        """Print rows and their geometric mean; `budget` bounds the mean and `worst` each row."""
        print(f"\n== {title}" + (f"  (budget {budget})" if budget else ""))
        ratios = []
        for label, ours, theirs in rows:
            ratio = ours / theirs
            ratios.append(ratio)
            mark = "  <-- over" if worst is not None and ratio > worst else ""
            print(f"  {label:44s} {show(ours):>10s} {show(theirs):>10s}  {ratio:6.3f}{mark}")
        mean = geometric_mean(ratios)
        within = "" if budget is None else ("ok" if mean <= budget else "OVER")
        self.summary.append((title, mean, max(ratios), budget, within))
        print(f"  {'geometric mean':44s} {'':10s} {'':10s}  {mean:6.3f} {within}")

    def print_summary(self):
        print("\n== summary: minijax / upstream")
        print(f"  {'row':52s} {'mean':>7s} {'worst':>7s} {'budget':>7s}")
        for title, mean, worst, budget, within in self.summary:
            bound = "" if budget is None else f"{budget:7.2f}"
            print(f"  {title:52s} {mean:7.3f} {worst:7.3f} {bound:>7s} {within}")


def show(seconds):
    if seconds < 0:
        return "-"
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds:.2f} s"
