"""Python's command line with `import jax` resolving to minijax: `python -m minijax.jax script.py`.

It takes a script, `-m module`, `-c command` or nothing, which starts a prompt (or runs what comes on
standard input, if that is no terminal), each as Python itself does; `-i` starts a prompt afterwards.
"""

from __future__ import annotations

import code
import os
import pkgutil
import runpy
import sys
import traceback
import types
from importlib.machinery import SourceFileLoader
from typing import Any

from minijax.jax.finder import API_VERSION, install
from minijax.version import __version__

__all__ = ["main"]

VERSION = f"minijax {__version__} (JAX {API_VERSION})"
USAGE = """\
usage: python -m minijax.jax [-i] script.py [arguments]
       python -m minijax.jax [-i] -m module [arguments]
       python -m minijax.jax [-i] -c command [arguments]
       python -m minijax.jax
Runs a program written for JAX on minijax: within it, `import jax` is minijax. Without a program it
starts a prompt.
  -i         start a prompt when the program has ended
  --version  print the version and exit"""


def main(arguments: list[str]) -> None:
    """Run the program that the command line names; SystemExit if there is none to run."""
    interactive = arguments[:1] == ["-i"]
    arguments = arguments[interactive:]
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help"):
        print(USAGE)
    elif first in ("-V", "--version"):
        print(VERSION)
    elif first in ("-m", "-c") and len(arguments) == 1:
        _refuse(f"Argument expected for the {first} option")
    elif first.startswith("-") and first not in ("-", "-m", "-c"):
        _refuse(f"Unknown option: {first}")
    else:
        install()
        _run(first, arguments, interactive)


def _refuse(why: str) -> None:
    print(f"{why}\n{USAGE}", file=sys.stderr)
    raise SystemExit(2)


def _run(first: str, arguments: list[str], interactive: bool) -> None:
    """Run the program, and a prompt with its names if there is none or one is asked for."""
    if first in ("", "-") and (interactive or sys.stdin.isatty()):
        sys.argv = arguments or [""]
        _prompt(_main_names())
        return
    names: dict[str, Any] = {}
    try:
        names = _run_program(first, arguments)
    except BaseException as error:
        if not interactive:
            raise
        sys.excepthook(type(error), error, error.__traceback__)
        names = _names_of_failed(error)
    if interactive:
        _prompt({**_main_names(), **names})


def _names_of_failed(error: BaseException) -> dict[str, Any]:
    """Return the names of the `__main__` module in which the program failed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        names = frame.f_globals
        if names.get("__name__") == "__main__" and names is not globals():
            return names
    return {}


def _run_program(first: str, arguments: list[str]) -> dict[str, Any]:
    """Run a module, a command, standard input or a script; return its names."""
    if first == "-m":
        sys.argv = arguments[1:]
        return runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    if first == "-c":
        sys.argv = ["-c", *arguments[2:]]
        return _execute(arguments[1], "<string>")
    if first in ("", "-"):
        sys.argv = arguments or [""]
        return _execute(sys.stdin.read(), "<stdin>")
    sys.argv = arguments
    if os.path.isdir(first):  # puts itself in front
        return runpy.run_path(first, run_name="__main__")
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    if first.endswith(".pyc") or pkgutil.get_importer(first) is not None:  # a zip file
        return runpy.run_path(first, run_name="__main__")
    return _script(os.path.abspath(first))


def _script(path: str) -> dict[str, Any]:
    """Run a file as Python does: it knows its whole path, and `sys.argv` keeps what was typed."""
    loader = SourceFileLoader("__main__", path)
    code = loader.source_to_code(loader.get_data(path), path)
    names = _main_names()
    names.update(__file__=path, __loader__=loader, __cached__=None)
    exec(code, names)
    return names


def _main_names() -> dict[str, Any]:
    """Return the names of a new `__main__` module, which pickles and pytrees may look up."""
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    return module.__dict__


def _execute(source: str, filename: str) -> dict[str, Any]:
    sys.path[0] = ""
    names = _main_names()
    exec(compile(source, filename, "exec"), names)
    return names


def _prompt(names: dict[str, Any]) -> None:
    """Read and run statements until the end of input, with completion where there is readline."""
    try:
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    banner = f"{VERSION}, Python {sys.version.split()[0]}: `import jax` is minijax."
    code.interact(banner, local=names, exitmsg="")


if __name__ == "__main__":
    main(sys.argv[1:])
