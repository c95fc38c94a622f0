"""The equations of a program: walks over them, counts, and a profile by source line.

The stand-in shows it as `jax._src.jaxpr_util`. Places are the user's lines; that of an equation within
the program of another has the other's place outside it.
"""

from __future__ import annotations

import gzip
import html
import itertools
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from minijax.accepted_options import hints
from minijax.core import source
from minijax.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params, subjaxprs

__all__ = [
    "all_eqns", "collect_eqns", "eqns_using_var", "eqns_using_var_with_invar_index", "histogram",
    "jaxpr_and_binder_in_params", "jaxpr_to_html", "maybe_dump_jaxpr_to_file",
    "pprof_equation_profile", "primitives", "primitives_by_shape", "primitives_by_source",
    "source_locations", "var_defs_and_refs",
]  # fmt: skip

Place = tuple[CodeType, int]

# -- walks ---------------------------------------------------------------------------------------------


def _walk(
    jaxpr: Jaxpr, outside: tuple[Place, ...], seen: set[Jaxpr] | None
) -> Iterator[tuple[Jaxpr, JaxprEqn, tuple[Place, ...]]]:
    """Equations with the places of those they are within, innermost first; own ones before others."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if seen is not None:
        if jaxpr in seen:
            return
        seen.add(jaxpr)
    for eqn in jaxpr.eqns:
        yield jaxpr, eqn, outside
    for eqn in jaxpr.eqns:
        around = outside if eqn.source is None else (eqn.source, *outside)
        for inner in jaxprs_in_params(eqn.params):
            yield from _walk(inner, around, seen)


def all_eqns(jaxpr: Jaxpr, revisit_inner_jaxprs: bool = True) -> Iterator[tuple[Jaxpr, JaxprEqn]]:
    """The equations of a program and of those within it, each with the program that it stands in.

    A program that is used twice is walked twice, or once without `revisit_inner_jaxprs`.
    """
    for owner, eqn, _ in _walk(jaxpr, (), None if revisit_inner_jaxprs else set()):
        yield owner, eqn


def jaxpr_and_binder_in_params(params: dict[str, Any], index: int) -> Iterator[tuple[Jaxpr, Var]]:
    """The programs in the params of an equation, each with its input of this number.

    RuntimeError for a program that has fewer.
    """
    for inner in jaxprs_in_params(params):
        if index >= len(inner.invars):
            raise RuntimeError(
                f"input {index} was asked for of a program with {len(inner.invars)}: its inputs are "
                "not those of the equation"
            )
        yield inner, inner.invars[index]


def eqns_using_var_with_invar_index(jaxpr: Jaxpr, invar: Var) -> Iterator[tuple[JaxprEqn, int]]:
    """The equations that read a variable, each with the first of its operands that is it."""
    for eqn in jaxpr.eqns:
        for index, atom in enumerate(eqn.invars):
            if atom is invar:
                yield eqn, index
                break


def eqns_using_var(jaxpr: Jaxpr, invar: Var) -> Iterator[JaxprEqn]:
    """The equations without programs of their own that read a variable, here or in those programs."""
    for eqn, index in eqns_using_var_with_invar_index(jaxpr, invar):
        inner = list(jaxpr_and_binder_in_params(eqn.params, index))
        if not inner:
            yield eqn
        for program, binder in inner:
            yield from eqns_using_var(program, binder)


def var_defs_and_refs(jaxpr: Jaxpr) -> Any:
    """A program with its variables: `(var, the equation that gives it, the equations that read
    it)`.

    None in the place of an equation stands for the program's own inputs and results. If there are
    programs within, a list of this and of the same for each of them.
    """
    given: dict[Var, JaxprEqn | None] = dict.fromkeys([*jaxpr.constvars, *jaxpr.invars])
    read: dict[Var, list[JaxprEqn | None]] = {}
    for eqn in jaxpr.eqns:
        given.update(dict.fromkeys(eqn.outvars, eqn))
    for eqn, atoms in [*((eqn, eqn.invars) for eqn in jaxpr.eqns), (None, jaxpr.outvars)]:
        for atom in atoms:
            if not isinstance(atom, Literal):
                read.setdefault(atom, []).append(eqn)
    found = jaxpr, [(var, eqn, read.get(var, [])) for var, eqn in given.items()]
    within = [var_defs_and_refs(inner) for inner in subjaxprs(jaxpr)]
    return [found, *within] if within else found


# -- counts --------------------------------------------------------------------------------------------


def collect_eqns(jaxpr: Jaxpr, key: Callable[[JaxprEqn], Hashable]) -> dict[Any, list[JaxprEqn]]:
    """The equations of a program and of those within it, by a key of each."""
    found: dict[Any, list[JaxprEqn]] = {}
    for _, eqn in all_eqns(jaxpr):
        found.setdefault(key(eqn), []).append(eqn)
    return found


def histogram(
    jaxpr: Jaxpr, key: Callable[[JaxprEqn], Hashable], key_fmt: Callable[[Any], Any] = lambda k: k
) -> dict[Any, int]:
    """Return how many equations have each key, by the keys as `key_fmt` shows them."""
    return {key_fmt(k): len(eqns) for k, eqns in collect_eqns(jaxpr, key).items()}


def primitives(jaxpr: Jaxpr) -> dict[str, int]:
    """Return how often each operation is used."""
    return histogram(jaxpr, lambda eqn: eqn.primitive.name)


def primitives_by_shape(jaxpr: Jaxpr) -> dict[str, int]:
    """Return how often each operation gives results of these types."""

    def key(eqn):
        return f"{eqn.primitive.name} :: {' '.join(v.aval.str_short() for v in eqn.outvars)}"

    return histogram(jaxpr, key)


def primitives_by_source(jaxpr: Jaxpr) -> dict[str, int]:
    """Return how often each operation is used by each place in the user's program."""
    return histogram(jaxpr, lambda eqn: f"{eqn.primitive.name} @ {_summary(eqn)}")


def source_locations(jaxpr: Jaxpr) -> dict[str, int]:
    """Return how many equations each place in the user's program has made."""
    return histogram(jaxpr, _summary)


def _summary(eqn: JaxprEqn) -> str:
    return "" if eqn.source is None else source.summarize(eqn.source)


# -- profiles ------------------------------------------------------------------------------------------
# As `pprof` reads them: https://github.com/google/pprof/blob/main/proto/profile.proto. A message is
# its fields in a row, each a key, which is the field's number and kind, and a number or bytes.


def _number(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; the eighth bit says that more follow."""
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of numbers and of bytes, which may be messages."""
    parts = []
    for field, value in fields:
        if isinstance(value, int):
            parts.append(_number(field << 3) + _number(value))
        else:
            parts.append(_number(field << 3 | 2) + _number(len(value)) + value)
    return b"".join(parts)


class _Numbers(dict):
    """Things numbered in the order in which they are first asked for."""

    def __init__(self, first: int):
        self._count = itertools.count(first)

    def __missing__(self, thing: Any) -> int:
        found = self[thing] = next(self._count)
        return found


def _line(code: CodeType, at: int) -> int:
    return source.Source(code, at).position[0] or 0


def pprof_equation_profile(jaxpr: Jaxpr, *, workspace_root: str | None = None) -> bytes:
    """Return how many equations come from where: a compressed profile that the tool `pprof` shows.

    A program that is used several times counts once. Names of functions have the path of their file
    in front, without `workspace_root` if it begins with that.
    """
    counts: dict[tuple, int] = {}
    for _, eqn, outside in _walk(jaxpr, (), set()):
        stack = outside if eqn.source is None else (eqn.source, *outside)
        key = tuple(stack), eqn.primitive.name
        counts[key] = counts.get(key, 0) + 1

    def short(path: str) -> str:
        return path.removeprefix(workspace_root.rstrip("/")) if workspace_root else path

    strings, functions, locations = _Numbers(0), _Numbers(1), _Numbers(1)
    text = lambda string: strings[string]
    text("")  # the first of all strings is empty
    samples = [
        _message(
            (1, b"".join(_number(locations[place]) for place in stack)), (2, _number(count)),
            (3, _message((1, text("primitive")), (2, text(name)))),
        )
        for (stack, name), count in counts.items()
    ]  # fmt: skip
    places = [
        _message((1, number), (4, _message((1, functions[code]), (2, _line(code, at)))))
        for (code, at), number in locations.items()
    ]
    codes = []
    for code, number in functions.items():
        path = short(code.co_filename)
        name = text(f"{path.removesuffix('.py').replace('/', '.')}.{code.co_qualname}")
        codes.append(
            _message((1, number), (2, name), (4, text(path)), (5, code.co_firstlineno))
        )  # fmt: skip
    unit = _message((1, text("equations")), (2, text("count")))
    profile = [(1, unit), *[(2, s) for s in samples], *[(4, p) for p in places]]
    profile += [(5, c) for c in codes] + [(6, string.encode()) for string in strings]
    return gzip.compress(_message(*profile))


_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: monospace; white-space: pre }} .hit {{ background: #fe8 }}
</style></head><body><input id="find" placeholder="find" autofocus>
{lines}
<script>document.getElementById("find").oninput = e => document.querySelectorAll("div").forEach(
  d => d.classList.toggle("hit", e.target.value && d.textContent.includes(e.target.value)))</script>
</body></html>
"""


def jaxpr_to_html(jaxpr: Jaxpr) -> str:
    """A page of the program's text, each equation with its place as a comment, that can be searched."""
    text = jaxpr.pretty_print(source_info=True)
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in text.splitlines())
    return _PAGE.format(title="jaxpr", lines=lines)


_dumped = itertools.count()
_DUMPS: dict[str, tuple[str, Callable[[Jaxpr], bytes]]] = {
    "jaxpr": ("jaxpr.txt", lambda jaxpr: jaxpr.pretty_print().encode()),
    "jaxpr_html": ("jaxpr.html", lambda jaxpr: jaxpr_to_html(jaxpr).encode()),
    "eqn_count_pprof": ("eqn_count_pprof", pprof_equation_profile),
}


def maybe_dump_jaxpr_to_file(fun_name: str, jaxpr: Jaxpr) -> str | None:
    """Write a program where the setting `jax_dump_ir_to` says, as `jax_dump_ir_modes` says.

    Gives the name of the function; None if nothing is written.
    """
    folder, modes = hints["jax_dump_ir_to"], hints["jax_dump_ir_modes"].split(",")
    wanted = [_DUMPS[mode] for mode in _DUMPS if mode in modes]
    if not folder or not wanted:
        return None
    number = next(_dumped)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for ending, made in wanted:
        Path(folder, f"jax_{number:06d}_{fun_name}.{ending}").write_bytes(made(jaxpr))
    return fun_name
