"""`breakpoint`: stopping a compiled program to look at the values of its Python frames.

May import the floors below. Values of the local variables that are arrays become operands of a debug
callback; when the program gets there, a console shows them.
"""

from __future__ import annotations

import cmd
import inspect
import linecache
import pathlib
from typing import Any

from minijax.lax.debug_callbacks import debug_callback

__all__ = ["Frame", "breakpoint"]

_LIBRARY = str(pathlib.Path(__file__).resolve().parent.parent)


class Frame:
    """A frame of the call stack as it stood when the program was traced."""

    def __init__(self, frame: Any):
        self.filename, self.line = frame.f_code.co_filename, frame.f_lineno
        self.function = frame.f_code.co_name
        self.locals = dict(frame.f_locals)

    def __str__(self) -> str:
        return f"{self.filename}({self.line}) in {self.function}"


def _frames(filter_frames: bool, most: int | None) -> list[Frame]:
    found, frame = [], inspect.currentframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if name != __file__ and not (filter_frames and name.startswith(_LIBRARY)):
            found.append(Frame(frame))
        frame = frame.f_back
    return found[:most]


class Console(cmd.Cmd):
    """Commands: p, pp, u, d, bt, l, c, q; anything else is evaluated as Python."""

    prompt = "(minijax) "

    def __init__(self, frames: list[Frame], values: list[dict[str, Any]], **streams: Any):
        super().__init__(**streams)
        self.use_rawinput = "stdin" not in streams
        self.frames, self.values, self.place = frames, values, 0
        self.intro = f"Stopped at {frames[0]}" if frames else "Stopped"

    def _say(self, text: Any) -> None:
        self.stdout.write(f"{text}\n")

    def do_p(self, code: str) -> None:
        """p EXPRESSION: print its value."""
        try:
            self._say(repr(eval(code, {}, self.values[self.place] if self.values else {})))
        except Exception as error:
            self._say(f"{type(error).__name__}: {error}")

    do_pp = default = do_p

    def do_u(self, _: str) -> None:
        """u: to the frame of the caller."""
        self.place = min(self.place + 1, len(self.frames) - 1)
        self._say(self.frames[self.place])

    def do_d(self, _: str) -> None:
        """d: to the frame that was called."""
        self.place = max(self.place - 1, 0)
        self._say(self.frames[self.place])

    def do_bt(self, _: str) -> None:
        """bt: all frames, the innermost first."""
        for place, frame in enumerate(self.frames):
            self._say(f"{'>' if place == self.place else ' '} {frame}")

    def do_l(self, _: str) -> None:
        """l: the lines around the place where it stands."""
        frame = self.frames[self.place]
        for number in range(max(frame.line - 5, 1), frame.line + 6):
            text = linecache.getline(frame.filename, number).rstrip("\n")
            self._say(f"{'->' if number == frame.line else '  '} {number:5d} {text}")

    def do_c(self, _: str) -> bool:
        """c: go on."""
        return True

    do_EOF = do_c

    def do_q(self, _: str) -> None:
        """q: end the program with SystemExit."""
        raise SystemExit("quit from the breakpoint")

    def emptyline(self) -> None:
        return None


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop a running program here and open a console on the values of the local variables.

    `num_frames` frames are kept, those of the library itself left out unless `filter_frames` is
    false. `stdin` and `stdout` may be given for the console. `token`, if given, is returned, so that
    the stop has a place among operations. ValueError for a `backend` other than "cli".
    """
    if backend not in (None, "cli"):
        raise ValueError(f"breakpoint: unknown backend {backend!r}; there is 'cli'.")
    frames = _frames(filter_frames, num_frames)

    def stop(values):
        Console(frames, values, **kwargs).cmdloop()

    debug_callback(stop, [_shown(frame.locals) for frame in frames], ordered=ordered)
    return token


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not name.startswith("__")}
