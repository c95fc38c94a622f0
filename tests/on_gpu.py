"""The programs whose lowering depends on the platform, run on a GPU by minijax and by upstream.

    python -m tests.on_gpu [--jobs N] [--match REGEX]

Each library runs in processes of its own, so that one that a kernel ends, or whose GPU an illegal access
has stopped, costs one program. Results are compared, and what differs is printed. Without a GPU
JAX_PLATFORMS=cpu compares them on the CPU.
"""

import argparse
import collections
import concurrent.futures
import functools
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np

from tests.accelerators import TRANSFORMED
from tests.cases.platform_programs import ROWS, types_of
from tests.harness.differential import is_inexact, is_key, sample

PROGRAMS = ROWS + TRANSFORMED
PATIENCE = 60  # seconds of one program
ENDED = "ended the process"
# Of sparse matrices with 6 entries and 4 rows: where rows begin, their columns, and their rows.
BEGINS, COLUMNS, LINES = [0, 2, 3, 5, 6], [0, 2, 1, 0, 3, 2], [0, 0, 1, 2, 2, 3]
# What cannot be compared, or differs with a reason.
REASONS = [
    ("empty|rng_uniform", "undefined: memory as it is, bits that XLA draws"),
    (r"qr pivoting\(.*0,4\]", "upstream leaves the pivots of no rows zero"),
    ("qr grad", "the products of the rule are of the highest precision here"),
    ("lstm", "cuDNN's products keep more bits than XLA's, which are rounded to 10"),
    ("eig.compute", "eigenvectors up to their phases"),
    ("max pool jvp f64", "upstream rounds values and tangents to 32 bits together"),
]


def arguments(name, types):
    """Well-conditioned values: square matrices are positive definite, indices of sparse ones in range."""
    out, indices = [], iter(())
    if re.match("(B?CSR|spsolve)", name):
        indices = iter((COLUMNS, BEGINS))
    elif re.match("B?COO", name):
        indices = iter((LINES, COLUMNS))
    elif "ragged_dot" in name:
        indices = iter(([3, 0, 5],))
    elif "lengths" in name or "lstm" in name:
        indices = iter(([6, 3], [5, 6]))
    for index, (shape, dtype) in enumerate(types_of(types)):
        x = sample(shape, dtype, index)
        if dtype.kind == "i" and index:
            if shape[-2:] == (6, 2):
                x = np.broadcast_to(np.stack([LINES, COLUMNS], 1), shape).astype(dtype)
            else:
                given = next(indices, None)
                x = x if given is None else np.broadcast_to(given[: shape[-1]], shape).astype(dtype)
        elif len(shape) >= 2 and shape[-1] == shape[-2] and dtype.kind in "fcV":
            wide = x.astype("complex128" if dtype.kind == "c" else "float64")
            wide = wide @ np.conj(np.swapaxes(wide, -1, -2)) / max(shape[-1], 1) + np.eye(shape[-1])
            x = wide.astype(dtype)
        out.append(x)
    return out


def work(library, numbers):
    """Run programs, and write a pickle for each to the standard output."""
    m = __import__(library)
    __import__(f"{library}.experimental.sparse")
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    for number in numbers:
        name, function, types = PROGRAMS[number]
        pickle.dump((number, None), out)
        out.flush()
        stopped = False
        with m.enable_x64("64[" in types or "128[" in types):
            try:
                found = m.jit(functools.partial(function, m))(*arguments(name, types))
                found = [
                    (
                        np.asarray(m.random.key_data(x) if is_key(x) else x),
                        getattr(x, "weak_type", 0),
                    )
                    for x in m.tree_util.tree_leaves(found)
                ]
            except Exception as error:
                found = f"{type(error).__name__}: {str(error)[:300]}"
                stopped = "CUDA" in found
        pickle.dump((number, found), out)
        out.flush()
        if stopped:
            return


def run(library, numbers):
    """What a library makes of programs, by number; a process that ends is followed by another."""
    found, left = {}, list(numbers)
    while left:
        with tempfile.TemporaryFile() as file:
            command = [sys.executable, "-m", "tests.on_gpu", "--library", library]
            command += ["--numbers", ",".join(map(str, left))]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
            status = _watched(process, file)
            file.seek(0)
            began = None
            while True:
                try:
                    number, outs = pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    break
                began = number if outs is None else None
                if outs is not None:
                    found[number] = outs
            if began is not None:
                found[began] = f"{ENDED} with status {status}"
        rest = [number for number in left if number not in found]
        if len(rest) == len(left):
            raise SystemExit(f"{library} does not start: status {status}")
        left = rest
    return found


def _watched(process, file):
    """The status of a process, which is ended when it has written nothing for too long."""
    size, silent = 0, 0
    while True:
        try:
            return process.wait(2)
        except subprocess.TimeoutExpired:
            grown = os.fstat(file.fileno()).st_size
            size, silent = grown, 0 if grown > size else silent + 2
            if silent > PATIENCE:
                process.kill()


def difference(ours, theirs):
    """What differs between two results, an empty text if nothing does."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, upstream {len(theirs)}"
    for place, ((a, weak), (b, wanted)) in enumerate(zip(ours, theirs, strict=True)):
        if (a.shape, a.dtype, weak) != (b.shape, b.dtype, wanted):
            return f"{place}: {a.dtype}{a.shape}, upstream {b.dtype}{b.shape}"
        if not is_inexact(a.dtype):
            if not np.array_equal(a, b):
                return f"{place}: {a.ravel()[:6]}, upstream {b.ravel()[:6]}"
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        eps = float(ml_dtypes.finfo(a.dtype).eps)
        a, b = a.astype(wide), b.astype(wide)
        size = np.max(np.abs(b), where=np.isfinite(b), initial=0.0)
        with np.errstate(invalid="ignore"):
            off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        worst = np.max(off, initial=0.0)
        if not worst <= 256 * eps * max(size, eps):
            return f"{place}: off by {worst:.3g} of {size:.3g}"
    return ""


def judged(ours, theirs):
    """What became of a program: its kind, and a note where that is not equal results."""
    failed = isinstance(ours, str), isinstance(theirs, str)
    if failed == (False, False):
        note = difference(ours, theirs)
        return ("different" if note else "equal"), note
    if failed == (False, True):
        return "ours only", f"upstream {theirs[:150]!r}"
    if failed == (True, False):
        return "upstream only", ours
    kind = "ended by ours" if ENDED in ours and ENDED not in theirs else "neither"
    return kind, f"upstream {theirs[:150]!r}; ours {ours[:150]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes of each library")
    parser.add_argument("--match", default="", help="a pattern of names")
    parser.add_argument("--library", help="run this one alone, and write pickles")
    parser.add_argument("--numbers", help="of the programs that it runs")
    options = parser.parse_args()
    if options.library:
        return work(options.library, map(int, options.numbers.split(",")))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    chosen = [n for n, row in enumerate(PROGRAMS) if re.search(options.match, row[0])]
    with concurrent.futures.ThreadPoolExecutor(2 * options.jobs) as pool:
        parts = [chosen[first :: options.jobs] for first in range(options.jobs)]
        ours = [pool.submit(run, "minijax", part) for part in parts if part]
        theirs = [pool.submit(run, "jax", part) for part in parts if part]
        ours, theirs = (collections.ChainMap(*[f.result() for f in fs]) for fs in (ours, theirs))
    counts = collections.Counter()
    for number in chosen:
        name = PROGRAMS[number][0]
        kind, note = judged(ours[number], theirs[number])
        if any(re.match(pattern, name) for pattern, _ in REASONS):
            kind += ", with a reason"
        elif note:
            print(f"{kind}: {name}: {note}")
        counts[kind] += 1
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
