"""`minijax.profiler`: what a program does and how long it takes, by jaxlib's profiler.

Profiles are read by XProf and TensorBoard, by Perfetto (`create_perfetto_trace`), or by a program
(`ProfileData`).
"""

from __future__ import annotations

import gzip
import http.server
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from minijax.runtime import profiling
from minijax.runtime.profiling import (
    ProfileData,
    ProfileEvent,
    ProfileOptions,
    ProfilePlane,
    register_subprocess,
    stop_server,
)
from minijax.tracebacks import public

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation",
    "TraceAnnotation", "annotate_function", "device_memory_profile", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]  # fmt: skip

_PERFETTO_PORT = 9001  # the one that Perfetto's page may fetch from
_wanted: list[tuple[bool, bool]] = []  # of the session under way: a Perfetto trace, a link to it


class TraceAnnotation(profiling.TraceMe):
    """`with TraceAnnotation("name", **metadata):` shows its body as an event of the profile."""


class StepTraceAnnotation(TraceAnnotation):
    """A step of training: `with StepTraceAnnotation("train", step_num=3):`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """`func`, shown as an event of its name at each call. Usable as a decorator."""
    shown = name or getattr(func, "__qualname__", None) or repr(func)

    @wraps(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Start recording; `stop_trace` writes the profile under `log_dir`.

    `create_perfetto_trace` also writes `perfetto_trace.json.gz`; `create_perfetto_link` prints a
    link that shows it, and waits until it was opened. RuntimeError if a profile is under way.
    """
    profiling.start(os.fspath(log_dir), profiler_options)
    _wanted[:] = [(create_perfetto_trace or create_perfetto_link, create_perfetto_link)]


def stop_trace() -> None:
    """Stop recording and write the profile. RuntimeError if none was started."""
    directory = profiling.stop()
    make, link = _wanted.pop()
    if make:
        path = _write_perfetto_trace(directory)
        if link:
            _serve_to_perfetto(path)


@contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Record what happens within the block; see `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def _write_perfetto_trace(directory: str) -> pathlib.Path:
    """The newest profile of a directory, in a file that Perfetto reads."""
    found = pathlib.Path(directory, "plugins", "profile").glob("*/*.trace.json.gz")
    newest = max(found, key=lambda path: path.stat().st_mtime)
    with gzip.open(newest, "rt", encoding="utf-8") as file:
        events = json.load(file)
    path = newest.with_name("perfetto_trace.json.gz")
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(events, file)
    return path


def _serve_to_perfetto(path: pathlib.Path) -> None:
    """Print a link, and answer the one request that opening it makes."""
    served = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path != f"/{path.name}":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            self.end_headers()
            self.wfile.write(path.read_bytes())
            served.append(True)

        def log_message(self, format, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", _PERFETTO_PORT), Handler) as server:
        where = f"http://127.0.0.1:{_PERFETTO_PORT}/{path.name}"
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url={where}")
        while not served:
            server.handle_request()


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let XProf or TensorBoard fetch profiles of this process at a port.

    Unless `requires_backend`, it starts before the platforms do. ValueError if there is a server.
    """
    return profiling.start_server(port, requires_backend)


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the memory of a platform's devices, in compressed `pprof` format."""
    return profiling.memory_profile(backend)


def save_device_memory_profile(filename: os.PathLike | str, backend: str | None = None) -> None:
    """`device_memory_profile`, written to a file."""
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))


__dir__ = public(__name__)
