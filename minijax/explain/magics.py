"""Magics of notebooks: `%load_ext minijax.explain`.

%%strict                      runs a cell in strict mode; %%strict nans=False without one check
%strict on                    strict mode from here on, until %strict off
%explain f(x, y)              shows the stages of a call

Objects show themselves from then on, and Treescope, where it is installed, knows arrays.
"""

from __future__ import annotations

import ast
import contextlib
from typing import Any

from minijax.config import config
from minijax.explain.showing import Explanation, explain
from minijax.explain.showing_objects import SHOWN
from minijax.explain.showing_trees import register_treescope
from minijax.explain.strictness import strict

__all__ = ["load"]


def load(shell: Any) -> None:
    """Register the magics with a shell of IPython."""

    def strictly(line: str, cell: str | None = None) -> None:
        if cell is None:
            config.update("strict", line.strip() or "on")
            return
        __tracebackhide__ = True  # of IPython's tracebacks
        options = eval(f"dict({line})", shell.user_ns)
        shown, shell.showtraceback = shell.showtraceback, lambda *args, **kwargs: None
        try:
            with strict(**options):
                result = shell.run_cell(cell)
        finally:
            shell.showtraceback = shown
        result.raise_error()  # which is shown once, as that of this cell

    def explained(line: str) -> Explanation:
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError(f"%explain takes a call, as %explain f(x): got {line!r}.")
        function = eval(ast.unparse(call.func), shell.user_ns)
        given = ast.unparse(ast.Call(ast.Name("take"), call.args, call.keywords))
        take = {"take": lambda *args, **kwargs: (args, kwargs)}
        args, kwargs = eval(given, {**shell.user_ns, **take})
        return explain(function, *args, **kwargs)

    formatter = shell.display_formatter.formatters["text/html"]
    for kind, show in SHOWN.items():
        formatter.for_type(kind, show)
    with contextlib.suppress(ImportError):
        register_treescope()
    shell.register_magic_function(strictly, "line_cell", "strict")
    shell.register_magic_function(explained, "line", "explain")
