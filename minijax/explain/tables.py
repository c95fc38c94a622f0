"""Tables that show themselves as text, and as HTML in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["Report", "Table", "quantity"]

_NUMBER = "text-align: right; font-variant-numeric: tabular-nums"


def quantity(number: float | None, unit: str = "", base: int = 1000) -> str:
    """Write a number with three digits and a prefix: `1.23 kB`; nothing for None."""
    if number is None:
        return ""
    prefixes = ["", "k", "M", "G", "T", "P"] if base == 1000 else ["", "Ki", "Mi", "Gi", "Ti", "Pi"]
    power, value = 0, float(number)
    while abs(value) >= base and power < len(prefixes) - 1:
        value, power = value / base, power + 1
    return f"{value:.{0 if power == 0 and value == int(value) else 2}f} {prefixes[power]}{unit}".strip()


class Table:
    """Rows of text below headings; columns whose headings begin with `>` are set to the right."""

    def __init__(self, title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]):
        self.title = title
        self.right = [name.startswith(">") for name in headings]
        self.headings = [name.removeprefix(">") for name in headings]
        self.rows = [["" if x is None else str(x) for x in row] for row in rows]

    def __str__(self) -> str:
        columns = zip(self.headings, *self.rows, strict=True)
        widths = [max(map(len, column)) for column in columns]
        lines = [self.title]
        for row in [self.headings, *self.rows]:
            cells = zip(row, widths, self.right, strict=True)
            lines.append(
                "  ".join(x.rjust(w) if right else x.ljust(w) for x, w, right in cells).rstrip()
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.headings)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="{_NUMBER if right else "text-align: left"}">{html.escape(x)}</td>'
                for x, right in zip(row, self.right, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return (
            f"<table><caption>{html.escape(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Report:
    """Base of results that are shown as tables."""

    def tables(self) -> list[Table]:
        """Return the tables of the report, the most important first."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())
