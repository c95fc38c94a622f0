"""A stand-in for `jax.config` and `jax._src.config`: minijax's settings, as states and as flags.

A flag of upstream's is a setting of minijax (`minijax.config`), or one that changes no result here
(`accepted_options`). Those on logging do something besides (`logs.OPTIONS`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax import accepted_options
from minijax.config import Settings, local
from minijax.config import canonical_name as _canonical
from minijax.config import config as _own
from minijax.config import override as _override
from minijax.jax import logs

__all__ = [
    "State", "bool_state", "config", "enum_state", "float_state", "int_state",
    "optional_string_state", "parse_flags_with_absl", "read", "string_state", "trace_context", "update",
]  # fmt: skip

_SETTINGS = frozenset(field.name for field in dataclasses.fields(Settings))


def _check(name: str, value: Any) -> None:
    if name in _kinds:
        _kinds[name](value)


def _defined(values: dict[str, Any]) -> Any:
    """absl's module of flags, with one for each setting; None if absl is not installed."""
    try:
        flags = importlib.import_module("absl.flags")
    except ModuleNotFoundError:
        return None
    for name, value in values.items():
        if name not in flags.FLAGS:
            kind = {bool: "bool", int: "integer", float: "float"}.get(type(value), "string")
            shown = value if kind != "string" or isinstance(value, str) else None
            getattr(flags, f"DEFINE_{kind}")(name, shown, f"The setting {name}.")
    return flags


class _Config:
    """`jax.config`: flags as attributes with their prefix, `update` and `read`."""

    use_absl = False

    @property
    def x64_enabled(self) -> bool:
        return _own.jax_enable_x64

    @property
    def values(self) -> dict[str, Any]:
        return {**_own.values, **accepted_options.FIXED, **accepted_options.hints}

    def update(self, name: str, value: Any) -> None:
        """Set a flag for the whole process. AttributeError for one that there is not."""
        _check(name, value)
        _own.update(name, value)
        if name in logs.OPTIONS:
            logs.OPTIONS[name](value)

    def read(self, name: str) -> Any:
        """The value of a flag for the whole process."""
        return _own.read(name)

    @contextlib.contextmanager
    def override(self, name: str, value: Any) -> Iterator[None]:
        """Set a flag for this thread while the context lasts."""
        if accepted_options.is_accepted(name):
            _check(name, value)
            saved = accepted_options.read(name)
            accepted_options.update(name, value)
            try:
                yield
            finally:
                accepted_options.update(name, saved)
        else:
            with _override(_canonical(name), value):
                yield

    def parse_flags_with_absl(self) -> None:
        """Take the settings that are given on the command line, if absl is installed.

        The rest of the command line is another program's, such as pytest's, and not for absl to read.
        """
        flags = _defined(self.values)
        if flags is not None:
            options = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
            own = [option for option in options if option.startswith("--jax")]
            flags.FLAGS([*sys.argv[:1], *own], known_only=True)
            self.complete_absl_config(flags)

    def config_with_absl(self) -> None:
        """Take them once absl's `app.run` has parsed the command line."""
        flags = _defined(self.values)
        if flags is not None:
            app = importlib.import_module("absl.app")
            app.call_after_init(lambda: self.complete_absl_config(flags))

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Take the settings that were given as flags."""
        flags = absl_flags.FLAGS
        for name in self.values:
            if name in flags and flags[name].present:
                self.update(name, flags[name].value)

    def __getattr__(self, name: str) -> Any:
        return getattr(_own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are changed by config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(_own), *self.values})


config = _Config()
update, read, parse_flags_with_absl = config.update, config.read, config.parse_flags_with_absl
_unset = object()


class State:
    """One setting: `.value` is what it is in this thread; called, it is a context that sets it."""

    def __init__(self, name: str):
        self.name = self._name = name

    @property
    def value(self) -> Any:
        return getattr(config, self.name)

    def get_global(self) -> Any:
        return config.values[self.name]

    def get_local(self) -> Any:
        """Return the value that this thread overrides it with; an opaque object if it does not."""
        return local.context.overrides.get(self.name.removeprefix("jax_"), _unset)

    def set_global(self, value: Any) -> None:
        config.update(self.name, value)

    def __call__(self, new_val: Any = True) -> Any:
        return config.override(self.name, new_val)

    def __bool__(self) -> bool:
        raise TypeError(
            "bool() not supported for instances of type 'State' "
            "(did you mean to use 'State.value' instead?)"
        )

    def __repr__(self) -> str:
        return f"State({self.name!r})"


# -- settings that a program defines for itself ---------------------------------------------------------

_kinds: dict[str, Callable[[Any], None]] = {}  # what refuses a value that is none of the setting's


def _define(name: str, default: Any, check: Callable[[Any], None]) -> State:
    if not name.startswith("jax_"):
        raise AssertionError(f"a setting's name begins with jax_, got {name!r}")
    if name in config.values:
        raise Exception(f"Config option {name} already defined")
    accepted_options.hints[name], _kinds[name] = default, check
    return State(name)


def _typed(kind: type, optional: bool = False) -> Callable[..., State]:
    """A function that defines a setting whose values are of this type."""

    def check(value: Any) -> None:
        if value is not None and not isinstance(value, kind):
            raise ValueError(
                f"new {kind.__name__} config value must be None or of type {kind.__name__}, got "
                f"{value} of type {type(value)}"
            )

    def define(name: str, default: Any, help: str = "", **options: Any) -> State:
        if not isinstance(default, kind) and not (optional and default is None):
            raise TypeError(
                f"Default value must be of type {kind.__name__}, got {default} of type "
                f"{getattr(type(default), '__name__', type(default))}"
            )
        return _define(name, default, check)

    return define


bool_state, int_state, float_state, string_state = map(_typed, (bool, int, float, str))
optional_string_state = _typed(str, optional=True)


def enum_state(
    name: str, enum_values: Sequence[str], default: str, help: str = "", **options: Any
) -> State:
    """Define a setting that is one of these strings."""
    values = list(enum_values)

    def check(value: Any) -> None:
        if value not in values:
            raise ValueError(
                f"new enum value must be in {values}, got {value} of type {type(value)}."
            )

    check(default)
    return _define(name, default, check)


def trace_context() -> Any:
    """An object that is the same while everything that can change a program is the same."""
    return local.context.key


def __getattr__(name: str) -> Any:
    if name == "checking_leaks":
        return State("jax_check_tracer_leaks")
    full = name if name.startswith("jax_") else f"jax_{name}"
    if full.removeprefix("jax_") in _SETTINGS or accepted_options.is_accepted(full):
        found = globals()[name] = State(full)
        return found
    raise AttributeError(
        f"minijax has no setting {name!r}: dir(jax.config) lists those there are."
    )  # fmt: skip
