"""The report of a run as one HTML file: what was run, findings by verdict with their scripts, and coverage."""

from __future__ import annotations

import collections
import html
import json
import os
import pathlib
from collections.abc import Iterable, Iterator

from minijax.difftest import coverage
from minijax.difftest.generating import generate

__all__ = ["findings", "journal", "page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 78em; padding: 0 1em; color: #222 }
h2 { margin-top: 2em } table { border-collapse: collapse; font-size: 12px } th { position: sticky; top: 0 }
td, th { padding: 1px 6px; text-align: right; background: #fff } td:first-child { text-align: left }
td.none { color: #bbb } td.never { background: #f6b7b0 } td.few { background: #fae3a5 }
td.enough { background: #cbe8c4 } td.why { background: #e6e6e6 } pre { background: #f5f5f5; padding: 1em;
overflow-x: auto } details { margin: .4em 0 } summary { cursor: pointer }
"""


def journal(folder: str | os.PathLike) -> Iterator[dict]:
    """Yield the entries of the journal of a run; a line cut off by a kill is left out."""
    path = pathlib.Path(folder) / "journal.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def findings(folder: str | os.PathLike) -> dict[tuple[str, ...], dict]:
    """Return the findings of a run by kind and operations, each with how many programs showed it."""
    found: dict[tuple[str, ...], dict] = {}
    times: collections.Counter = collections.Counter()
    for entry in journal(folder):
        if "key" in entry:
            times[tuple(entry["key"])] += 1
        if "file" in entry:
            found.setdefault(tuple(entry["key"]), entry)
    return {key: entry | {"times": times[key]} for key, entry in sorted(found.items())}


def page(folder: str | os.PathLike, programs: int = 200, calls: int = 20_000) -> str:
    """Return the report of a run as HTML that needs no other file.

    - `folder`: of `fuzz`
    - `programs`, `calls`: how many programs of the run's seed the tables of coverage count

    Returns a string. Source: this package.
    """
    entries = list(journal(folder))
    seed = entries[0]["seed"] if entries else 0
    done = collections.Counter((e["mode"], e["status"]) for e in entries)
    cpu = sum(e["cpu"] for e in entries)
    parts = [
        f"<!doctype html><meta charset=utf-8><title>minijax.difftest</title><style>{_STYLE}</style>",
        f"<h1>Differential test, seed {seed}</h1><p>{len(entries)} programs in {cpu:.0f} s of CPU time, at most ",
        f"{max((e.get('memory', 0) for e in entries), default=0) >> 20} MiB in a process.</p>",
        _table(["mode", "status", "programs"], ([(m,), (s,), (str(n),)] for (m, s), n in sorted(done.items()))),
        "<h2>Findings</h2>", *_sections(pathlib.Path(folder)),
        "<h2>Rules</h2><p>How many of the first ", str(programs), " composed programs ran each rule of each "
        "primitive. Red cells were never run, yellow ones seldom; grey ones say why when pointed at.</p>",
        *_rules(coverage.Table.of(seed, programs)),
        "<h2>Functions</h2><p>How many of the first ", str(calls), " single calls gave each function each dtype "
        "with values of each class.</p>", *_values(seed, calls),
    ]  # fmt: skip
    return "\n".join(parts)


def _cell(word: str, kind: str = "", title: str = "") -> str:
    attributes = (f' class="{kind}"' if kind else "") + (
        f' title="{html.escape(title)}"' if title else ""
    )
    return f"<td{attributes}>{html.escape(word)}</td>"


def _table(head: list[str], rows: Iterable[list[tuple[str, ...]]]) -> str:
    first = "".join(f"<th>{html.escape(word)}</th>" for word in head)
    body = "".join("<tr>" + "".join(_cell(*cell) for cell in row) + "</tr>\n" for row in rows)
    return f"<table><tr>{first}</tr>\n{body}</table>"


def _sections(folder: pathlib.Path) -> Iterator[str]:
    by_verdict = collections.defaultdict(list)
    for key, entry in findings(folder).items():
        by_verdict[entry["verdict"]].append((key, entry))
    if not by_verdict:
        yield "<p>None.</p>"
    for verdict, rows in sorted(by_verdict.items()):
        yield f"<h3>{html.escape(verdict)} ({len(rows)})</h3>"
        for key, entry in rows:
            title = f"{', '.join(key)}: {entry['detail']} ({entry['times']} programs)"
            script = (folder / "findings" / entry["file"]).read_text()
            yield f"<details><summary>{html.escape(title)}</summary>"
            yield "".join(f"<p>{html.escape(line)}</p>" for line in entry.get("evidence", ()))
            yield f"<pre>{html.escape(script)}</pre></details>"


def _rules(table: coverage.Table) -> Iterator[str]:
    def cell(name: str, rule: str, word: str) -> tuple[str, ...]:
        if word == "-":
            return "", "none"
        count, why = int(word), coverage.reason_of((name, rule))
        if count >= coverage.ENOUGH:
            return word, "enough"
        return (word, "why", why) if why else (word, "few" if count else "never")

    rows = (
        [(name,), *(cell(name, rule, w) for rule, w in zip(coverage.RULES, words, strict=True))]
        for name, words in table.rows()
    )
    yield _table(["primitive", *coverage.RULES], rows)
    never = ", ".join(" ".join(cell) for cell in table.never())
    yield f"<p>Never run, without a reason: {html.escape(never) or 'none'}.</p>"


def _values(seed: int, calls: int) -> Iterator[str]:
    counts = coverage.values(generate(seed, number, "single") for number in range(calls))
    rows = (
        [(name,), (dtype,), *((str(n), "few" if n < 3 else "enough") if n else ("", "none") for n in cells)]
        for name, dtype in sorted({(name, dtype) for name, dtype, _ in counts})
        for cells in [[counts[name, dtype, word] for word in coverage.VALUES]]
    )  # fmt: skip
    yield _table(["function", "dtype", *coverage.VALUES], rows)
