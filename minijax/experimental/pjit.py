"""`minijax.experimental.pjit`: `jit` as it was called when it took shardings by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from minijax.deprecated import moved
from minijax.tracebacks import boundary, public
from minijax.transforms.jit import jit

__all__ = ["pjit"]


@boundary
def pjit(
    fun: Callable,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """`minijax.jit`, whose options may be given by position."""
    return jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )


if not TYPE_CHECKING:
    _pjit = globals().pop("pjit")  # asked for by its name, it warns

    def __getattr__(name: str) -> Any:
        return moved(__name__, name)


__dir__ = public(__name__)
