"""`python -m tests.bad_calls [--count 100000] [--seed 0]`: the whole sweep, and what it found.

Outcomes are kept in a file (`--cache`), so that upstream is asked once for each call.
"""

import argparse
import collections
import json
import os
import re
import sys
import time

from tests.bad_calls import expected
from tests.bad_calls.generate import calls, rounds
from tests.bad_calls.judging import judge
from tests.bad_calls.running import outcomes

BLOCK = 4000  # calls between two writes of the file, which a child makes with its caches warm


def kept(path, library, texts):
    """Outcomes from the file, and those of the calls that it lacks."""
    known = {}
    if path and os.path.exists(path):
        with open(path) as file:
            known = dict(json.loads(line) for line in file)
    asked = [text for text in texts if text not in known]
    began = time.perf_counter()

    def progress(done):
        if done % 1000 == 0:
            print(
                f"{library}: {done} of {len(asked)}, {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
            )

    for begin in range(0, len(asked), BLOCK):
        part = asked[begin : begin + BLOCK]
        found = outcomes(library, part, progress=lambda done, begin=begin: progress(begin + done))
        known |= zip(part, found, strict=True)
        if path:
            with open(path, "a") as file:
                file.writelines(json.dumps(pair) + "\n" for pair in zip(part, found, strict=True))
    return [known[text] for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", help="file of upstream's outcomes")
    parser.add_argument("--ours", help="file of our outcomes")
    parser.add_argument("--only", default="", help="calls that match")
    parser.add_argument("--show", type=int, default=5, help="calls shown of each kind")
    parser.add_argument("--write", action="store_true", help="keep upstream's outcomes for tests")
    options = parser.parse_args()
    if options.write:
        made = rounds(expected.ROUNDS)
        texts = list(dict.fromkeys(text for part in made.values() for text in part))
        ours, theirs = kept(options.ours, "minijax", texts), kept(options.cache, "jax", texts)
        pairs = zip(ours, theirs, strict=True)
        expected.write(made, dict(zip(texts, pairs, strict=True)))
        return
    texts = [t for t in calls(options.count, options.seed) if re.search(options.only, t)]
    ours = kept(options.ours, "minijax", texts)
    theirs = kept(options.cache, "jax", texts)
    found, shown = collections.Counter(), collections.defaultdict(list)
    for text, our, their in zip(texts, ours, theirs, strict=True):
        if category := judge(text, our, their):
            found[category] += 1
            where = f"{our.get('error', 'ok')} at {our.get('where', '')}, upstream {their.get('error', 'ok')}"
            shown[category, where].append((text, our.get("text"), their.get("text")))
    for (category, where), rows in sorted(
        shown.items(), key=lambda item: (item[0][0], -len(item[1]))
    ):
        print(f"\n[{category}] {len(rows)} x {where}")
        for text, our, their in rows[: options.show]:
            print(
                f"    {text}\n        ours: {str(our)[:200]!r}\n        upstream: {str(their)[:200]!r}"
            )
    print(f"\n{len(texts)} calls:", dict(found))


if __name__ == "__main__":
    main()
