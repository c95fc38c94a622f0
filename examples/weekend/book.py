"""The books as notebooks and pages: `python examples/weekend/book.py FOLDER`, or `make book`.

The weekend book lies here, and the notebooks for researchers lie beside it.

A chapter is a Python file in the percent format, which Jupytext, VS Code and PyCharm open as a
notebook: `# %%` begins a cell of code and `# %% [markdown]` a cell of prose. Here a chapter is
taken apart, its code is run in this process, and the notebook is written with what it printed. No
kernel and no server is started; only the pages need a library (nbconvert).
"""

import ast
import contextlib
import io
import json
import linecache
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
BOOKS = [HERE, HERE.parent / "researchers"]
# Formulas and widgets, of which the books have none: the pages need no network.
_FETCHED = re.compile(r'<script src="https?://[^"]*">\s*</script>')
CHAPTERS = [path for book in BOOKS for path in sorted(book.glob("[0-9][0-9]_*.py"))]


class Cell(NamedTuple):
    """A cell: whether it is code, its text, and the line of the file at which it begins."""

    is_code: bool
    text: str
    line: int


def cells(path: Path) -> list[Cell]:
    """Return the cells of a chapter in order; prose comes without the signs of comments."""
    parts: list[tuple[bool, int, list[str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# %%"):
            parts.append(("[markdown]" not in line, number + 1, []))
        else:
            parts[-1][2].append(line)
    return [Cell(code, _text(code, lines), first) for code, first, lines in parts]


def _text(is_code: bool, lines: list[str]) -> str:
    text = "\n".join(
        line if is_code else line.removeprefix("#").removeprefix(" ") for line in lines
    )
    return text.rstrip() if is_code else text.strip()


def run(path: Path) -> list[str]:
    """Run the code of a chapter, cell by cell, and return what each cell printed.

    Lines are numbered as in the file, so that `explain` names the lines of the chapter.
    """
    linecache.checkcache(str(path))
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    printed = []
    for cell in cells(path):
        out = io.StringIO()
        if cell.is_code:
            tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
            with contextlib.redirect_stdout(out):
                exec(compile(tree, str(path), "exec"), space)
        printed.append(out.getvalue())
    return printed


def notebook(path: Path, printed: list[str]) -> dict[str, Any]:
    """Return a chapter as a notebook of format 4.5, with what its cells printed."""
    found = []
    for index, (cell, text) in enumerate(zip(cells(path), printed, strict=True)):
        made: dict[str, Any] = {
            "cell_type": "code" if cell.is_code else "markdown",
            "id": f"cell-{index}",
            "metadata": {},
            "source": cell.text,
        }
        if cell.is_code:
            stream = {"output_type": "stream", "name": "stdout", "text": text}
            made |= {"execution_count": None, "outputs": [stream] if text else []}
        found.append(made)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main(folder: Path) -> None:
    """Run all chapters, and write each as a notebook and as a page."""
    import nbformat
    from nbconvert import HTMLExporter

    import minijax

    minijax.config.update(
        "jax_num_cpu_devices", 8
    )  # for the chapter on devices, which comes too late
    for path in CHAPTERS:
        target = folder / path.parent.name / path.stem
        target.parent.mkdir(parents=True, exist_ok=True)
        made = json.dumps(notebook(path, run(path)), indent=1)
        target.with_suffix(".ipynb").write_text(made, encoding="utf-8")
        page, _ = HTMLExporter().from_notebook_node(nbformat.reads(made, as_version=4))
        page = _FETCHED.sub("", page)
        target.with_suffix(".html").write_text(page, encoding="utf-8")
        print(target.with_suffix(".html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/book"))
