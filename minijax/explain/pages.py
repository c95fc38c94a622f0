"""One page of HTML for an explanation: no network, right without JavaScript.

Each line has the number of the user's line in `data-k`: with JavaScript all lines of a number light up
together. Sub-programs are `details`, which fold by themselves.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from minijax.explain.lines import Line, Stage
from minijax.explain.page_style import SCRIPT, STYLE
from minijax.explain.tables import Table

__all__ = ["framed", "page", "rows_of"]

_LARGEST = 1_900_000  # bytes of a page
_LONGEST = 600  # characters of a line
_TYPE = re.compile(r":([a-z]+\d*(?:_\w+)?\[[^\]]*\])")
_NAME = re.compile(r"^((?:[^=\[]|\[[^\]]*\])*? = )?([a-z_][\w-]*)")


def page(name: str, stages: Sequence[Stage], tables: Sequence[Table]) -> str:
    """Return the page of a program, with fewer lines of each stage where it would be too large."""
    for most in (3000, 1000, 400, 150, 50):
        text = _page(name, stages, tables, most)
        if len(text.encode()) <= _LARGEST:
            break
    return text


def framed(page: str, name: str, height: int = 640) -> str:
    """Return a page within a frame, for a notebook: its style and keys are its own."""
    source = html.escape(page, quote=True)
    return (
        f'<iframe srcdoc="{source}" sandbox="allow-scripts" title="{html.escape(name)}" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )


def _page(name: str, stages: Sequence[Stage], tables: Sequence[Table], most: int) -> str:
    sections = "".join(_section(n, stage, most) for n, stage in enumerate(stages))
    cost = "".join(table._repr_html_() for table in tables)
    count = len(stages)
    sections += f'<section id="s{count}"><h2>cost</h2><div class="tables">{cost}</div></section>'
    name = html.escape(name)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}</style></head><body><header><h1>{name}</h1>"
        '<ul class="legend"><li class="jvp">jvp</li><li class="transpose">transpose</li>'
        '<li class="vmap">vmap</li><li>as written</li></ul></header>'
        f"<main>{sections}</main><script>{SCRIPT}</script></body></html>"
    )


def _section(number: int, stage: Stage, most: int) -> str:
    lines = "".join(rows_of(stage, most))
    return (
        f'<section id="s{number}" class="{stage.kind}"><h2>{html.escape(stage.name)}</h2>'
        f'<div class="code">{lines}</div></section>'
    )


def rows_of(stage: Stage, most: int) -> Iterator[str]:
    opened = 0
    for number, line in enumerate(stage.lines):
        if number >= most:
            yield f'<div class="l">… {len(stage.lines) - most} more lines</div>'
            break
        text = _line(stage.kind, line)
        if line.opens:
            opened += 1
            yield f"<details open><summary {text}</summary>"
        else:
            yield f"<div {text}</div>"
        if line.closes and opened:
            opened -= 1
            yield "</details>"
    yield "</details>" * opened


def _line(kind: str, line: Line) -> str:
    transform = line.transform if line.transform in ("jvp", "transpose", "vmap") else ""
    transform = "transpose" if line.transform == "sum" else transform
    attributes = f'class="l {transform}"' if transform else 'class="l"'
    if line.kin:
        attributes += f' data-k="{line.kin}"'
    told = " · ".join(x for x in (line.where, line.made, line.place) if x)
    if told:
        attributes += f' title="{html.escape(told, quote=True)}"'
    if line.depth:
        attributes += f' style="--d:{line.depth}"'
    notes = f'<em class="v">{html.escape(line.value)}</em>' if line.value else ""
    notes += f'<em class="w">{html.escape(line.where)}</em>' if line.where else ""
    if line.made and line.made != "written":
        notes += f'<em class="m">{html.escape(_noted(line))}</em>'
    notes = f'<span class="n">{notes}</span>' if notes else ""
    return f"{attributes}><code>{_marked_up(kind, line)}</code>{notes}"


def _noted(line: Line) -> str:
    """The rule that made an equation, without the primitive if the equation says it."""
    made = line.made.partition(" ← ")[0]
    transform, _, primitive = made.partition(" of ")
    return transform if f" {primitive}[" in line.text or f" {primitive} " in line.text else made


def _marked_up(kind: str, line: Line) -> str:
    text = line.text if len(line.text) <= _LONGEST else line.text[:_LONGEST] + "…"
    text = html.escape(text, quote=False)
    if kind != "jaxpr":
        return text
    if not (line.opens or line.closes):
        text = _NAME.sub(r"\1<b>\2</b>", text, count=1)
    return _TYPE.sub(r"<i>:\1</i>", text)
