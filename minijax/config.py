"""Settings: one frozen structure, a global value of it, and overrides for the current thread.

Ground layer: imports the standard library, `installation` and `accepted_options` only.

Hot paths read two things: `local.context.settings` (the settings that hold in this thread now) and
`local.context.key`, an object that is the same exactly while everything that can change a trace or a
compiled program is the same. Both are kept up to date when a setting changes, so reading costs nothing.
"""

from __future__ import annotations

import dataclasses
import enum
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import Any, ClassVar

from minijax import accepted_options
from minijax.accepted_options import check_choice, check_type
from minijax.accepted_options import parse_flag as _flag
from minijax.installation import check_installation

__all__ = [
    "Settings", "config", "forget_keys", "local", "make_user_context", "overridden", "override",
    "promoting_freely", "set_outermost", "setting_context", "update", "when_set",
]  # fmt: skip


def _optional(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text in ("", "None") else parse(text)


_text = _optional(str)


class ExplicitX64Mode(enum.Enum):
    """The treatment of a 64-bit dtype asked for by name while x64 is off: narrowed, refused, or
    kept.
    """

    WARN = 1
    ERROR = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: Any) -> ExplicitX64Mode | None:
        return next((mode for mode in cls if mode.name.lower() == value), None)


def _setting(default, parse=str, *, traced=False, choices=None, factory=None):
    """A field of `Settings`; `traced` marks those that change what tracing or compiling gives, or
    how compiled programs are run."""
    metadata = {"parse": parse, "traced": traced, "choices": choices, "factory": factory}
    return dataclasses.field(default=default, metadata=metadata)


def _guard():
    levels = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
    return _setting(None, _optional(str), choices=levels)


_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_GENERATORS = (
    "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Settings:
    """Every setting there is. Upstream's names; each may be written with the prefix `jax_`."""

    enable_x64: bool = _setting(False, _flag, traced=True)
    numpy_dtype_promotion: str = _setting("standard", traced=True, choices=("standard", "strict"))
    numpy_rank_promotion: str = _setting("allow", traced=True, choices=("allow", "warn", "raise"))
    default_matmul_precision: str | None = _setting(
        None, _optional(str), traced=True, choices=(None, *_PRECISIONS)
    )
    default_device: Any = _setting(None, _optional(str), traced=True)
    default_prng_impl: str = _setting("threefry2x32", traced=True, choices=_GENERATORS)
    threefry_partitionable: bool = _setting(True, _flag, traced=True)
    enable_custom_prng: bool = _setting(False, _flag, traced=True)
    legacy_prng_key: str = _setting("allow", traced=True, choices=("allow", "warn", "error"))
    debug_key_reuse: bool = _setting(False, _flag, traced=True)
    disable_jit: bool = _setting(False, _flag, traced=True)
    debug_nans: bool = _setting(False, _flag, traced=True)
    debug_infs: bool = _setting(False, _flag, traced=True)
    check_tracer_leaks: bool = _setting(False, _flag, traced=True)
    enable_checks: bool = _setting(False, _flag)
    explain_cache_misses: bool = _setting(False, _flag)
    log_compiles: bool = _setting(False, _flag)
    softmax_custom_jvp: bool = _setting(False, _flag, traced=True)
    allow_f16_reductions: bool = _setting(True, _flag, traced=True)
    auto_pcast: bool = _setting(True, _flag, traced=True)
    high_dynamic_range_gumbel: bool = _setting(False, _flag, traced=True)
    disallow_mesh_context_manager: bool = _setting(False, _flag)
    strict: bool = _setting(False, _flag, traced=True)
    no_tracing: bool = _setting(False, _flag)
    no_execution: bool = _setting(False, _flag, traced=True)
    explicit_x64_dtypes: ExplicitX64Mode = _setting(
        ExplicitX64Mode.WARN, ExplicitX64Mode, traced=True
    )
    check_static_indices: bool = _setting(False, _flag, traced=True)
    random_seed_offset: int = _setting(0, int, traced=True)
    array_garbage_collection_guard: str | None = _setting(
        "allow", choices=(None, "allow", "log", "fatal")
    )
    thread_guard: bool = _setting(False, _flag)
    transfer_guard: str | None = _guard()
    transfer_guard_host_to_device: str | None = _guard()
    transfer_guard_device_to_device: str | None = _guard()
    transfer_guard_device_to_host: str | None = _guard()
    traceback_filtering: str = _setting(
        "auto", choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
    )
    platforms: str | None = _setting(None, _text)
    cuda_visible_devices: str = _setting("all")
    rocm_visible_devices: str = _setting("all")
    num_cpu_devices: int = _setting(-1, int)
    cpu_enable_async_dispatch: bool = _setting(True, _flag)
    cpu_collectives_implementation: str | None = _setting(
        "gloo", _optional(str), choices=(None, "gloo", "mpi", "megascale")
    )
    enable_compilation_cache: bool = _setting(True, _flag)
    compilation_cache_dir: str | None = _setting(None, _text)
    compilation_cache_max_size: int = _setting(1 << 30, int)
    persistent_cache_min_compile_time_secs: float = _setting(0.0, float)
    persistent_cache_min_entry_size_bytes: int = _setting(0, int)
    raise_persistent_cache_errors: bool = _setting(False, _flag)
    disable_most_optimizations: bool = _setting(False, _flag, traced=True)
    exec_time_optimization_effort: float = _setting(0.0, float, traced=True)
    memory_fitting_effort: float = _setting(0.0, float, traced=True)
    optimization_level: str = _setting("UNKNOWN", traced=True, choices=_LEVELS)
    memory_fitting_level: str = _setting("O2", traced=True, choices=_LEVELS)


# Settings that `strict` brings along, for the whole process, unless a thread overrides them.
_STRICT = {
    "debug_key_reuse": True, "check_tracer_leaks": True, "explicit_x64_dtypes": ExplicitX64Mode.ERROR,
}  # fmt: skip
_FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
_TRACED = tuple(name for name, field in _FIELDS.items() if field.metadata["traced"])


def _restricts_promotion(settings: Settings) -> bool:
    return settings.numpy_dtype_promotion != "standard" or settings.numpy_rank_promotion != "allow"


class _Key:
    """Compares by identity; see `Context.key`."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple):
        self.parts = parts


_keys: dict[tuple, _Key] = {}


class _Itself:
    """Stands for a value that cannot be hashed: equal where the value is the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return type(other) is _Itself and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return value


class Context:
    """The state of one thread: its settings, its current trace, named axes and mesh, name stack,
    `varying`: the manual mesh axes for which the types of values say whether they vary, `marks`: the
    scope that programs begin in, "" or one with attributes for the compiled program, and `lent`: the
    memory that operands of the call being made lie in for the time of that call.

    The layers above own the meaning of `trace`, `axes` and `mesh`; they stand here so that one
    thread-local read gives everything a hot path needs.
    """

    outermost: ClassVar[Any] = None  # the trace of a thread that traces nothing: `set_outermost`

    __slots__ = (
        "__weakref__", "axes", "constraint_mesh", "in_library", "key", "lent", "marks", "mesh",
        "numbers_key", "outer", "overrides", "promotes_freely", "scope", "settings", "source", "trace",
        "traced", "user", "varying",
    )  # fmt: skip

    def __init__(self):
        self.overrides: dict[str, Any] = {}
        self.outer: list[dict[str, Any]] = []  # the overrides outside of each `with` block
        self.trace: Any = self.outermost
        self.axes: tuple = ()
        self.mesh: Any = None
        self.constraint_mesh: Any = None  # that of `with mesh:`, where no mesh is in force
        self.varying: frozenset = frozenset()
        self.scope: str = ""
        self.marks: str = ""
        self.user: dict[Any, Any] = {}  # values of user contexts
        self.source: Any = None
        self.lent: list[Any] = []
        self.in_library = False  # kept only while library calls are noted: see `features.library`
        self.refresh()

    def enter(self, overrides: dict[str, Any]) -> None:
        """Have these override the global settings, and no others, until `leave`."""
        self.outer.append(self.overrides)
        self.overrides = overrides
        try:
            self.refresh()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        self.overrides = self.outer.pop()
        self.refresh()

    def refresh(self) -> None:
        """Recompute `settings` and `key` from the global settings and this thread's state."""
        self.settings, self.traced, self.promotes_freely = _overridden(self.overrides)
        self.refresh_key()

    def refresh_key(self) -> None:
        settings = self.settings
        marks = tuple(self.marks.marks.items()) if self.marks else ()
        user = tuple([(name, _hashable(value)) for name, value in self.user.items()])
        meshes = self.mesh, self.constraint_mesh
        parts = (self.traced, self.axes, meshes, self.varying, marks, user)
        self.key = _keys.get(parts) or _keys.setdefault(parts, _Key(parts))
        # Numbers that are on a device already are not to be found where their transfer is guarded, or
        # where strict mode looks at them.
        guard = settings.transfer_guard_host_to_device or settings.transfer_guard
        looked_at = guard or settings.transfer_guard_device_to_device or settings.strict
        self.numbers_key = (self.key, guard) if looked_at else self.key


def _overridden(overrides: dict[str, Any]) -> tuple[Settings, tuple, bool]:
    """The global settings with those that a thread overrides, the values of those that are traced, and
    whether dtypes and ranks promote freely: where they do not, calls of library functions are noted.
    """
    key = tuple([(name, _hashable(value)) for name, value in overrides.items()])
    found = _settings.get(key)
    if found is None or found[0] is not _global_settings:
        base = settings = _global_settings
        if base.strict:
            overrides = {**_STRICT, **overrides}
        if overrides:
            settings = dataclasses.replace(base, **overrides)
        traced = tuple([getattr(settings, name) for name in _TRACED])
        freely = not (_restricts_promotion(settings) or settings.strict)
        found = _settings[key] = base, (settings, traced, freely)
    return found[1]


# By what a thread overrides: the global settings then, and the result. To make it takes 6 us.
_settings: dict[tuple, tuple[Settings, tuple]] = {}


def forget_keys() -> None:
    """Have what was traced or compiled so far not be found again."""
    _keys.clear()
    local.context.refresh_key()


def traced_differences(key: _Key, other: _Key) -> list[tuple[str, Any, Any]]:
    """Return the differences of two keys of a context: names, and the values of each."""
    names = [
        *[f"jax_{name}" for name in _TRACED],
        "named axes",
        "mesh",
        "manual axes",
        "marks",
        "user contexts",
    ]
    new, old = ((*key.parts[0], *key.parts[1:]) for key in (key, other))
    pairs = zip(names, new, old, strict=True)
    return [(name, new, old) for name, new, old in pairs if new != old]


class _Local(threading.local):
    def __init__(self) -> None:
        self.context = Context()
        _contexts.add(self.context)


def set_outermost(trace: Any) -> None:
    """Set the trace in which all threads run what is not traced."""
    former, Context.outermost = Context.outermost, trace
    for context in list(_contexts):
        if context.trace is former:
            context.trace = trace


def _from_environment() -> Settings:
    values = {}
    for name, field in _FIELDS.items():
        parse = field.metadata["parse"]
        checked = parse if parse is _flag else lambda text, p=parse, n=name: _checked(n, p(text))
        for value in accepted_options.from_environment(f"jax_{name}", checked):
            values[name] = value
    return Settings(**values)


_TYPES = {_text: str, int: int, float: float}  # of values of settings that are no choice

# Settings whose values are of an enumeration of upstream's: others are no values at all.
_ENUMS = {
    "numpy_dtype_promotion": "<enum 'NumpyDtypePromotion'>",
    "legacy_prng_key": "<enum 'LegacyPrngKeyState'>",
}


def _checked(name: str, value: Any) -> Any:
    metadata = _FIELDS[name].metadata
    parse, choices = metadata["parse"], metadata["choices"]
    if parse is _flag:
        return _flag(value) if isinstance(value, str) else bool(value)
    if isinstance(parse, type) and issubclass(parse, enum.Enum):
        if not isinstance(value, (str, parse)):
            raise TypeError(
                f"new enum value must be an instance of {parse}, got {value} of type {type(value)}. "
                f"Setting {name!r} is one of {[mode.name.lower() for mode in parse]}."
            )
        return parse(value)
    if name in _ENUMS and not isinstance(value, str):
        raise TypeError(
            f"new enum value must be an instance of {_ENUMS[name]}, got {value} of type {type(value)}. "
            f"Setting {name!r} takes one of {list(choices)}."
        )
    if name in _ENUMS and value not in choices:
        enumeration = _ENUMS[name].split("'")[1]
        raise ValueError(
            f"{value!r} is not a valid {enumeration}. It is the setting {name!r}, one of "
            f"{list(choices)}."
        )
    if parse in _TYPES:
        check_type(value, _TYPES[parse])
    if name == "default_device":
        named = value is None or isinstance(value, str)
        if value not in (None, "cpu", "gpu", "tpu") if named else not hasattr(value, "device_kind"):
            raise ValueError(
                "jax.default_device must be passed either a Device object (e.g. "
                "`jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: "
                f"{value!r}"
            )
    if choices is not None:
        check_choice(name, value, choices)
    return value


def canonical_name(name: str) -> str:
    """The field that `name` (with or without the prefix `jax_`) stands for."""
    short = name.removeprefix("jax_") if isinstance(name, str) else name
    if short not in _FIELDS:
        raise AttributeError(
            f"Unrecognized config option: {name}; dir(minijax.config) lists those there are."
        )
    return short


check_installation()  # here, because `__init__` may be a file of the other distribution
_lock = threading.Lock()
_contexts: weakref.WeakSet[Context] = weakref.WeakSet()
_actions: dict[str, Callable[[Any], None]] = {}
_global_settings = _from_environment()
local = _Local()


def update(name: str, value: Any) -> None:
    """Set a setting for the whole process. Raises AttributeError for an unknown name."""
    global _global_settings
    name = canonical_name(name)
    value = _checked(name, value)
    if name in _actions:
        _actions[name](value)  # before, since it may refuse
    with _lock:
        _global_settings = dataclasses.replace(_global_settings, **{name: value})
        for context in list(_contexts):
            context.refresh()


def when_set(name: str, action: Callable[[Any], None]) -> None:
    """Have a function called with the value that a setting is given for the whole process."""
    _actions[name] = action
    if getattr(_global_settings, name) != _FIELDS[name].default:  # by the environment
        action(getattr(_global_settings, name))


class overridden(ContextDecorator):
    """Have these settings, by name, and no others override those of the process in this thread."""

    def __init__(self, settings: dict[str, Any]):
        self._settings = settings

    def __enter__(self) -> None:
        local.context.enter(self._settings)

    def __exit__(self, *error: Any) -> None:
        local.context.leave()


class override(overridden):
    """Set a setting for this thread while the context lasts."""

    def __init__(self, name: str, value: Any):
        self._name, self._is_flag = name, _FIELDS[name].metadata["parse"] is _flag
        self._value = value if self._is_flag else _checked(name, value)

    def __enter__(self) -> None:
        context = local.context  # any value makes a flag's context, as upstream's
        value = _checked(self._name, self._value) if self._is_flag else self._value
        context.enter({**context.overrides, self._name: value})


@contextmanager
def promoting_freely() -> Iterator[None]:
    """Let dtypes and ranks promote whatever the settings say: for what a library function does
    inside.

    Also a decorator. A user who restricts promotion means the operands that they give.
    """
    context = local.context
    if not _restricts_promotion(context.settings):
        yield
        return
    free = {"numpy_dtype_promotion": "standard", "numpy_rank_promotion": "allow"}
    with overridden({**context.overrides, **free}):
        yield


_NO_VALUE = object()
_ABOUT = {  # what the settings with a public context manager do
    "allow_f16_reductions": "whether sums may be computed in 16-bit floats",
    "array_garbage_collection_guard": "the level of `array_garbage_collection_guard`, which has no effect",
    "auto_pcast": "the flag `auto_pcast`, which has no effect",
    "check_tracer_leaks": "whether a tracer that outlives its trace is an error",
    "debug_infs": "whether an operation that makes an infinity is an error",
    "debug_key_reuse": "whether a random key that is used twice is an error",
    "debug_nans": "whether an operation that makes a NaN is an error",
    "default_device": "the device on which uncommitted arrays are placed",
    "default_matmul_precision": "the precision of products where none is asked for",
    "default_prng_impl": "the generator of new random keys",
    "enable_checks": "the flag `enable_checks`, which has no effect",
    "enable_custom_prng": "whether `random.PRNGKey` makes typed keys",
    "enable_x64": "whether 64-bit dtypes exist, and are the default ones",
    "explain_cache_misses": "whether the reason of each new trace is logged",
    "legacy_prng_key": "what happens when random keys are given as words",
    "log_compiles": "whether each compilation is logged",
    "no_tracing": "whether tracing a new program is an error",
    "no_execution": "whether running a program is an error",
    "numpy_dtype_promotion": "the rules by which dtypes are promoted",
    "numpy_rank_promotion": "what happens when arrays of different ranks are broadcast",
    "softmax_custom_jvp": "whether the derivative of `nn.softmax` is computed from its result",
    "thread_guard": "the flag `thread_guard`, which has no effect",
    "threefry_partitionable": "whether random bits of a shape can be made in parts",
    "transfer_guard": "whether transfers between devices and the host are allowed",
    "transfer_guard_device_to_device": "whether transfers between devices are allowed",
    "transfer_guard_device_to_host": "whether transfers from devices to the host are allowed",
    "transfer_guard_host_to_device": "whether transfers from the host to devices are allowed",
}


def setting_context(
    name: str, default: Any = _NO_VALUE
) -> Callable[..., AbstractContextManager[None]]:
    """The public context manager of one setting, such as `enable_x64(True)`."""

    def context(new_val: Any = default) -> AbstractContextManager[None]:
        if new_val is _NO_VALUE:
            raise TypeError(f"{name}() takes the new value of the setting, as {name}(value)")
        return override(name, new_val)

    context.__name__ = context.__qualname__ = name
    choices = _FIELDS[name].metadata["choices"]
    example = True if default is True else choices[0] if choices else _FIELDS[name].default
    flag = isinstance(_FIELDS[name].default, bool)
    values = "a boolean" if flag else "a device, or the name of a platform"
    if choices is not None:
        values = f"{', '.join(map(repr, choices[:6]))}{', ...' if len(choices) > 6 else ''}"
    errors = ["TypeError without it"] if default is _NO_VALUE else []
    errors += ["ValueError for another value"] if flag or choices else []
    context.__doc__ = f"""Set {_ABOUT[name]}, within a `with` block.

    - `new_val`: {values}{", by default True" if default is True else ""}

    Other threads are not affected. {"; ".join(errors)}.
    Source: the setting `jax_{name}` of `jax.config`.

    >>> with jax.{name}({example!r}):
    ...     print(jax.config.jax_{name})
    {example}
    """
    return context


class UserContext:
    """A value that `jit` caches by; see `make_user_context`."""

    def __init__(self, default: Any):
        self._default = default

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return local.context.user.get(self, self._default)

    @contextmanager
    def __call__(self, value: Any) -> Iterator[None]:
        context = local.context
        saved = context.user
        context.user = {**saved, self: value}
        context.refresh_key()
        try:
            yield
        finally:
            context.user = saved
            context.refresh_key()


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a value, by thread, on which functions under `jit` may depend: each value is a program.

    - `default_value`: hashable object, the value where no other is set

    `with context(value):` sets it; `context.value` reads it, also while a function is traced, whose
    shapes and dtypes may depend on it.
    Source: `contextvars.ContextVar`.

    >>> context = jax.make_user_context(1)
    >>> with context(5):
    ...     jax.jit(lambda x: x * context.value)(2)
    Array(10, dtype=int32, weak_type=True)
    """
    return UserContext(default_value)


class _Config:
    """The object `minijax.config`: settings as attributes, `update`, and `parse_flags_with_absl`."""

    def update(self, name: str, value: Any) -> None:
        """Set a setting for the whole process, as in `config.update("jax_enable_x64", True)`."""
        (accepted_options.update if accepted_options.is_accepted(name) else update)(name, value)

    def read(self, name: str) -> Any:
        """The value of a setting for the whole process, whatever this thread overrides."""
        if accepted_options.is_accepted(name):
            return accepted_options.read(name)
        return getattr(_global_settings, canonical_name(name))

    @property
    def values(self) -> dict[str, Any]:
        return {"jax_" + name: getattr(_global_settings, name) for name in _FIELDS}

    def parse_flags_with_absl(self) -> None:
        """Nothing to parse: settings come from the environment and from `update`."""

    config_with_absl = parse_flags_with_absl

    def __getattr__(self, name: str) -> Any:
        if accepted_options.is_accepted(name):
            return accepted_options.read(name)
        if name.removeprefix("jax_") not in _FIELDS:
            raise AttributeError(
                f"'Config' object has no attribute '{name}'. dir(jax.config) lists the options there are."
            )
        return getattr(local.context.settings, canonical_name(name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are changed by config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return ["update", "read", "values", *("jax_" + name for name in _FIELDS)]


config = _Config()
