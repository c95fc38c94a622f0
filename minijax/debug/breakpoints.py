"""`breakpoint`: stopping a compiled program to look at the values of its Python frames.

Values of the local variables that are arrays become operands of a debug callback; when the program
gets there, a debugger shows them: the console here, or another that was registered.
"""

from __future__ import annotations

import cmd
import dataclasses
import inspect
import pathlib
import pprint
import sys
import traceback
from typing import IO, Any, Protocol

from minijax.core.array import Array
from minijax.lax.debug_callbacks import debug_callback
from minijax.tree_util import tree_flatten, tree_structure, tree_unflatten

__all__ = [
    "CliDebugger", "Debugger", "DebuggerFrame", "breakpoint", "get_debugger", "register_debugger",
    "run_debugger",
]  # fmt: skip

_LEFT_OUT = (str(pathlib.Path(__file__).resolve().parent.parent), "<frozen ")


@dataclasses.dataclass(frozen=True)
class DebuggerFrame:
    """A frame of the call stack: as it stood when the program was traced, with values of each run.

    `source` is the text of its function, of which the line that runs is number `offset`; None if
    there is no text.
    """

    filename: str
    locals: dict[str, Any]
    globals: dict[str, Any]
    code_context: Any
    source: list[str]
    lineno: int
    offset: int | None

    @classmethod
    def from_frameinfo(cls, frame_info: inspect.FrameInfo) -> DebuggerFrame:
        """The frame that `inspect` tells of; its global variables are left out."""
        try:
            lines, start = inspect.getsourcelines(frame_info.frame)
            source = "".join(lines).split("\n")
            offset = frame_info.lineno - max(start, 1)
        except OSError:
            source, offset = [], None
        kept = frame_info.frame.f_locals.items()
        return cls(
            filename=frame_info.filename, code_context=frame_info.code_context, globals={},
            locals={name: value for name, value in kept if not name.startswith("__")},
            source=source, lineno=frame_info.lineno, offset=offset,
        )  # fmt: skip


def _frames(filter_frames: bool, most: int | None) -> list[DebuggerFrame]:
    found, frame = [], inspect.currentframe()
    while frame is not None and (most is None or len(found) < most):
        name = frame.f_code.co_filename
        if name != __file__ and not (filter_frames and name.startswith(_LEFT_OUT)):
            about = inspect.getframeinfo(frame)
            info = inspect.FrameInfo(frame, *about)
            found.append(DebuggerFrame.from_frameinfo(info))
        frame = frame.f_back
    return found


# -- debuggers -----------------------------------------------------------------------------------------


class Debugger(Protocol):
    """A debugger: shows frames, the innermost first, while the program waits."""

    def __call__(
        self, frames: list[DebuggerFrame], thread_id: int | None, **kwargs: Any
    ) -> None: ...


_debugger_registry: dict[str, tuple[int, Debugger]] = {}


def register_debugger(name: str, debugger: Debugger, priority: int) -> None:
    """Have `breakpoint` know a debugger; the one of the highest priority is the default.

    ValueError if there is one of this name.
    """
    if name in _debugger_registry:
        raise ValueError(f'Debugger with name "{name}" already registered.')
    _debugger_registry[name] = priority, debugger


def get_debugger(backend: str | None = None) -> Debugger:
    """The debugger of this name; the default one if there is none."""
    if backend in _debugger_registry:
        return _debugger_registry[backend][1]
    return max(_debugger_registry.values(), key=lambda entry: entry[0])[1]


class CliDebugger(cmd.Cmd):
    """A console. What is no command is evaluated as Python, with the variables of the frame."""

    prompt = "(jdb) "

    def __init__(
        self, frames: list[DebuggerFrame], thread_id: Any, stdin: IO[str] | None = None,
        stdout: IO[str] | None = None, completekey: str = "tab",
    ):  # fmt: skip
        super().__init__(stdin=stdin, stdout=stdout, completekey=completekey)
        self.use_rawinput = stdin is None
        self.frames, self.frame_index, self.thread_id = frames, 0, thread_id
        self.intro = "Entering jdb:"

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def current_frame(self) -> DebuggerFrame:
        return self.frames[self.frame_index]

    def evaluate(self, expr: str) -> Any:
        """The value of an expression in the frame."""
        frame = self.current_frame()
        return eval(expr, dict(frame.globals), dict(frame.locals))

    def _show(self, expr: str, write: Any) -> None:
        try:
            write(self.evaluate(expr))
        except Exception as error:
            self._say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def print_context(self, num_lines: int = 2) -> None:
        """The place of the frame, and the lines around it."""
        frame = self.current_frame()
        self._say(f"> {frame.filename}({frame.lineno})")
        if frame.offset is None:
            return
        first = max(frame.offset - num_lines - 1, 0)
        for number, line in enumerate(frame.source[first : frame.offset + num_lines + 1], first):
            self._say(f"{'-> ' if number == frame.offset else '   '} {line}")

    def print_backtrace(self) -> None:
        """All frames, the outermost first."""
        self._say("Traceback:")
        for frame in reversed(self.frames):
            line = "<no source>" if frame.offset is None else frame.source[frame.offset].strip()
            self._say(f'  File "{frame.filename}", line {frame.lineno}\n    {line}')

    def default(self, line: str) -> None:
        self.do_p(line)

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: print its value."""
        self._show(arg, lambda value: self._say(repr(value)))

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: print its value, over several lines if it is long."""
        self._show(arg, lambda value: pprint.pprint(value, stream=self.stdout))

    def do_u(self, _: str) -> None:
        """u, up: to the frame of the caller."""
        if self.frame_index + 1 == len(self.frames):
            self._say("At topmost frame.")
        else:
            self.frame_index += 1
        self.print_context()

    def do_d(self, _: str) -> None:
        """d, down: to the frame that was called."""
        if self.frame_index == 0:
            self._say("At bottommost frame.")
        else:
            self.frame_index -= 1
        self.print_context()

    def do_l(self, _: str) -> None:
        """l, list: the lines around the place where the frame stands."""
        self.print_context(num_lines=5)

    def do_w(self, _: str) -> None:
        """w, where, bt: all frames, the outermost first."""
        self.print_backtrace()

    def do_c(self, _: str) -> bool:
        """c, cont, continue: go on."""
        return True

    def do_q(self, _: str) -> None:
        """q, quit, exit: end the program."""
        sys.exit(0)

    do_up, do_down, do_list, do_where, do_bt = do_u, do_d, do_l, do_w, do_w
    do_cont, do_continue, do_quit, do_exit, do_EOF = do_c, do_c, do_q, do_q, do_q

    def run(self) -> None:
        """Take commands until one says to go on."""
        self.cmdloop()


def run_debugger(frames: list[DebuggerFrame], thread_id: int | None, **kwargs: Any) -> None:
    """Open a console on frames; `stdin` and `stdout` may be given."""
    CliDebugger(frames, thread_id, **kwargs).run()


register_debugger("cli", run_debugger, -1)


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop a running program here and open a debugger on the values of the local variables.

    `num_frames` frames are kept, those of the library itself left out unless `filter_frames` is
    false. `backend` names the debugger, which takes the other arguments; that of the console is
    "cli", and takes `stdin` and `stdout`. `token`, if given, is returned, so that the stop has a
    place among operations.
    """
    debugger = get_debugger(backend)
    frames = _frames(filter_frames, num_frames)
    parts = [[(n, *_flattened(v)) for n, v in frame.locals.items()] for frame in frames]

    def stop(arrays):
        values = iter(arrays)
        shown = []
        for frame, variables in zip(frames, parts, strict=True):
            found = {}
            for name, leaves, tree in variables:
                now = [next(values) if isinstance(x, Array) else x for x in leaves]
                found[name] = tree_unflatten(tree, now)
            shown.append(dataclasses.replace(frame, locals=found))
        debugger(shown, None, **kwargs)

    leaves = [x for variables in parts for _, found, _ in variables for x in found]
    debug_callback(stop, [x for x in leaves if isinstance(x, Array)], ordered=ordered)
    return token


def _flattened(value: Any) -> tuple[list[Any], Any]:
    """The leaves of a variable and its structure; those of a leaf if it cannot be taken apart."""
    try:
        return tree_flatten(value)
    except Exception:  # a dictionary whose keys have no order, a library's node that refuses
        return [value], tree_structure(0)
