"""Options on programs that are lowered: `jax_dump_ir_to` and `jax_captured_constants_warn_bytes`.

The first names a folder for their texts, in the forms that `jax_dump_ir_modes` lists; the second says
of how many bytes of closed-over arrays a warning tells.
"""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from typing import Any

from minijax.accepted_options import hints
from minijax.arrays.dispatch import Lowered
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.source import summarize
from minijax.features.diagnostics.places import located_text
from minijax.namespace import user_stacklevel
from minijax.runtime import mlir_modules

__all__ = ["dump_module", "sanitize_name", "tell_lowered"]

_NOT_IN_NAMES = re.compile(r"[^\w.-]")
_dumped = itertools.count()


def tell_lowered(lowered: Lowered, closed: ClosedJaxpr) -> None:
    """Warn of the constants of a program, and write its text, as the options say."""
    limit = hints["jax_captured_constants_warn_bytes"]
    if limit is not None and limit >= 0:
        total = sum([_bytes(value) for value in closed.consts])
        if total >= limit:
            warnings.warn(_captured(closed, total), stacklevel=user_stacklevel())
    if hints["jax_dump_ir_to"]:
        _dump(lowered, closed)


def _bytes(value: Any) -> int:
    return getattr(value, "nbytes", 0)


def _captured(closed: ClosedJaxpr, total: int) -> str:
    said = (
        f"A large amount of constants were captured during lowering ({_shown(total)} total). If this is "
        "intentional, disable this warning by setting JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1. "
    )
    most = hints["jax_captured_constants_report_frames"]
    if not most:
        return said + (
            "To obtain a report of where these constants were encountered, set "
            "JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1. To pass arrays to a function as arguments keeps "
            "them out of its program."
        )
    most = None if most < 0 else most
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    largest = sorted(pairs, key=lambda pair: -_bytes(pair[1]))[:most]
    report = [
        "The subsequent report may be disabled by setting JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=0.",
        f"\n\nLargest {len(largest)} allocation(s):\n",
    ]
    for var, value in largest:
        users = [eqn for eqn in closed.jaxpr.eqns if any(var is x for x in eqn.invars)]
        places = "\n    ".join(dict.fromkeys([summarize(eqn.source) for eqn in users[:most]]))
        report.append(
            f"  Constant {type(value)}, {get_aval(value).str_short()}, {_shown(_bytes(value))} captured "
            f"at:\n    {places}\n\n"
        )
    return said + "".join(report)


def _shown(size: float) -> str:
    """A number of bytes as text, in units of powers of 1000."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.2f}{unit}"
        size /= 1000
    return f"{size:.2f}GB"


def _dump(lowered: Lowered, closed: ClosedJaxpr) -> None:
    from minijax.features.diagnostics.equations import maybe_dump_jaxpr_to_file

    maybe_dump_jaxpr_to_file(lowered.name, closed.jaxpr)
    if "stablehlo" in hints["jax_dump_ir_modes"].split(","):
        text, located = lowered.text, hints["jax_include_debug_info_in_dumps"]
        if located and len(lowered.devices) == 1:
            text = located_text(closed, lowered.name, lowered.devices[0])
        module = mlir_modules.parse(text).operation
        name = str(module.attributes["sym_name"]).strip('"')
        dump_module(name, "compile", module.get_asm(enable_debug_info=located))


def dump_module(name: str, stage: str, text: str) -> str | None:
    """Write the text of a module into the folder of `jax_dump_ir_to`; its name, None without one."""
    folder = hints["jax_dump_ir_to"]
    if not folder:
        return None
    path = Path(folder, f"jax_ir{next(_dumped):04d}_{sanitize_name(name)}_{stage}.mlir")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path.name


def sanitize_name(name: str) -> str:
    """A name with `_` for what may not stand in names of modules and functions."""
    return _NOT_IN_NAMES.sub("_", name)


hooks.fill(lowered=tell_lowered)
