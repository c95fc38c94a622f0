"""`minijax.strict()`: faults that are silent otherwise are errors, with the user's line.

While it is on, a trace of its own runs each operation, and the programs of calls, loops and branches
operation by operation. While it is off, there is no such trace.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from minijax import dtypes, lax, tree_util
from minijax.arrays.array import ArrayImpl
from minijax.config import (
    ExplicitX64Mode,
    config,
    local,
    overridden,
    override,
    set_outermost,
)
from minijax.core import source
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.trace import Trace, Tracer, eval_trace, set_trace
from minijax.explain import nans
from minijax.explain.origins import Origins
from minijax.explain.programs import called, expression_at, place_named
from minijax.features.slots import slots
from minijax.lax.index_numbers import GatherScatterMode
from minijax.transforms.jvp import JVPTrace

__all__ = ["NarrowedError", "OutOfBoundsError", "StrictTrace", "outside", "strict", "turn"]


class OutOfBoundsError(IndexError):
    """An index that is out of bounds, which is clamped or ignored otherwise."""


class NarrowedError(OverflowError):
    """A value that a narrower type does not hold, which becomes another one otherwise."""


_EXPLICIT = re.compile(
    r"astype|dtype|asarray|\barray\(|(?:int|float|complex)\d+|bool|view|convert|round|floor|trunc"
)
_INDEXING_CALLS = re.compile(
    r"\.at\s*\[.*\]\.\w+$|(?:^|\.)(?:take|take_along_axis|dynamic_\w+)$", re.S
)


class strict:
    """Have silent faults be errors, within a `with` block or a decorated function.

    - `indices`: indices out of bounds, which are clamped or ignored (not where `mode=` is given)
    - `keys`: random keys that are used twice
    - `narrowing`: integers and floats that do not fit a narrower type, and 64-bit types that are
      asked for while they are off
    - `nans`: NaN from operands without NaN; `leaks`: tracers that outlive their trace

    Raises IndexError, `KeyReuseError`, OverflowError or ValueError, FloatingPointError or Exception,
    each with the user's line, eagerly and under every transform. Programs run operation by operation
    meanwhile. The setting `jax_strict` turns all of it on for the process; a `with` block within says
    what holds there. Source: the semantics of NumPy.

    >>> with minijax.strict():
    ...     jnp.arange(3)[-1]
    Array(2, dtype=int32)
    """

    def __init__(
        self, *, indices: bool = True, keys: bool = True, narrowing: bool = True,
        nans: bool = True, leaks: bool = True,
    ):  # fmt: skip
        self.indices, self.keys, self.narrowing = indices, keys, narrowing
        self.nans, self.leaks = nans, leaks
        self._open: list[ExitStack] = []

    def without_nans(self) -> strict:
        """Return these checks but that of NaN."""
        return strict(
            indices=self.indices,
            keys=self.keys,
            narrowing=self.narrowing,
            nans=False,
            leaks=self.leaks,
        )

    def __enter__(self) -> strict:
        stack = ExitStack()
        stack.enter_context(overridden({**local.context.overrides, **self._settings()}))
        stack.enter_context(_tracing(self))
        self._open.append(stack)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._open.pop().__exit__(*exc)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def checked(*args, **kwargs):
            with self:
                return f(*args, **kwargs)

        return checked

    def _settings(self) -> dict[str, Any]:
        """The settings that these checks need; the others as they are for the whole process."""
        wanted = {
            "debug_key_reuse": (self.keys, True),
            "check_tracer_leaks": (self.leaks, True),
            "explicit_x64_dtypes": (self.narrowing, ExplicitX64Mode.ERROR),
        }
        settings: dict[str, Any] = {"strict": True}
        for name, (on, value) in wanted.items():
            if on:
                settings[name] = value
            elif local.context.settings.strict:
                settings[name] = config.read(name)
        return settings


def turn(on: bool) -> None:
    """Have strict mode hold for the whole process, or end it: the setting `jax_strict`."""
    set_outermost(StrictTrace(eval_trace, strict()) if on else eval_trace)


@contextmanager
def _tracing(checks: strict) -> Iterator[None]:
    context = local.context
    saved = context.trace
    parent = saved.parent if type(saved) is StrictTrace else saved
    context.trace = StrictTrace(parent, checks)
    try:
        yield
    finally:
        context.trace.end()
        context.trace = saved


class StrictTrace(Trace):
    """Runs operations in its parent, and looks at their operands and results.

    The operations of the program of a call run in the trace `within`, which does not look for NaN: of
    those the program may make some that reach no result.
    """

    __slots__ = ("checks", "within")

    def __init__(self, parent: Trace, checks: strict):
        super().__init__(parent)
        self.checks = checks
        self.within = StrictTrace(parent, checks.without_nans()) if checks.nans else self

    main = property(lambda self: self.parent.main)  # whose values its values are
    eager = property(lambda self: self.parent.eager)

    def process(
        self, primitive: Primitive, args: Sequence[Any], params: dict, use_impl: bool = True
    ) -> Any:
        if not use_impl:  # within an `impl` rule, whose call is looked at
            return self.parent.process(primitive, args, params, use_impl=False)
        if any(isinstance(a, Tracer) for a in args):  # within an outer function that is traced
            return self.pass_to_parent(primitive, args, params)
        if self.checks.narrowing:
            _check_narrowing(primitive, args, params)
        if self.checks.indices and primitive in _INDEXING:
            _check_bounds(primitive, args, params)
        outs = self._run(primitive, args, params)
        if self.checks.nans and not local.context.in_library:
            self._check_nans(primitive, args, params, outs)
        if self.checks.leaks:
            _note_places(outs if primitive.multiple_results else [outs])
        return outs

    def _run(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        program = called(JaxprEqn([], [], primitive, params))
        if program is not None:
            with set_trace(self.within):
                return _evaluated(program, *args)
        outs = self.pass_to_parent(primitive, args, params)
        if primitive.rule_steps is not None and not primitive.effects_of(
            params, map(get_aval, args)
        ):
            # The keys within have been counted.
            with set_trace(self.within), override("debug_key_reuse", False):
                primitive.rule_steps(_evaluated, *args, **params)
        return outs

    def _check_nans(self, primitive: Primitive, args: Any, params: dict, outs: Any) -> None:
        results = outs if primitive.multiple_results else [outs]
        if not any(map(nans.has_nan, results)) or any(map(nans.has_nan, args)):
            return
        invars, outvars = ([Var(get_aval(x)) for x in xs] for xs in (args, results))
        place = local.context.source or source.capture(3)
        eqn = JaxprEqn(invars, outvars, primitive, params, source=place)
        closed = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]))
        with set_trace(self.parent):
            run = nans.Run(closed, args)
            bad = [n for n, x in enumerate(run.results) if nans.has_nan(x)]
            origin = nans.search(run, bad, ())
        if origin is not None and origin.eqn.primitive is not lax.gather_p:  # which fills with NaN
            raise nans.nan_error(origin, Origins())


def _traces() -> Iterator[Trace]:
    """Yield the traces that are at work, the innermost first."""
    trace = local.context.trace
    while trace is not None:
        yield trace
        trace = trace.parent


def _strict_trace() -> StrictTrace | None:
    """The innermost trace of strict mode that is at work."""
    return next((trace for trace in _traces() if type(trace) is StrictTrace), None)


def _call_library(fun: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a library function, whose results are looked at: NaN that it masks is its own affair.

    Where they have NaN, it is called again to find the operation.
    """
    trace = _strict_trace()
    out = fun(*args, **kwargs)
    if trace is None or not trace.checks.nans or not _has_nan(out) or _has_nan((args, kwargs)):
        return out
    for each in _traces():
        if isinstance(each, JVPTrace) and each.shared:
            each.shared.clear()  # of results, which are to be computed again
    context = local.context
    context.in_library = False
    try:
        return fun(*args, **kwargs)
    finally:
        context.in_library = True


def _has_nan(tree: Any) -> bool:
    return any(map(nans.has_nan, _known(tree_util.tree_leaves(tree))))


def _known(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values that tracers are made of, those of programs that are recorded aside."""
    for x in values:
        if isinstance(x, Tracer):
            parts = (getattr(x, name, None) for name in ("primal", "tangent", "value"))
            yield from _known(part for part in parts if part is not None)
        else:
            yield x


slots.fill(call_library=_call_library)


def _evaluated(program: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(program.jaxpr, program.consts, *args)


# -- where -----------------------------------------------------------------------------------------


def _place() -> Any:
    return local.context.source or source.capture(2)


def _is_indexing(text: str) -> bool:
    """Whether an expression of the user's is an index, or a call of a function that takes one."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    if isinstance(node, ast.Call):
        return _INDEXING_CALLS.search(ast.unparse(node.func)) is not None
    return isinstance(node, ast.Subscript)


_made: dict[int, tuple[weakref.ref, Any]] = {}  # by the id of an array, and the place that made it


def _note_places(arrays: Iterable[Any]) -> None:
    place = _place()
    for x in arrays:
        if isinstance(x, ArrayImpl):
            number = id(x)
            _made[number] = weakref.ref(x, lambda _, number=number: _made.pop(number, None)), place


def _made_at(value: Any) -> Any:
    found = _made.get(id(value))
    return found[1] if found is not None and found[0]() is value else None


slots.fill(made_at=_made_at)


def _at(place: Any) -> str:
    line = (
        linecache.getline(place[0].co_filename, source.Source(*place).position[0] or 0)
        if place
        else ""
    )
    return f"at {place_named(place)}:\n    {line.strip()}\n"


# -- indices ---------------------------------------------------------------------------------------


def outside(primitive: Primitive, args: Sequence[Any], params: dict, place: Any) -> Any:
    """Return what an operation of the user's at `place` indexes out of bounds, or None.

    That is the index, how many elements are read from there on, the axis, and the array's shape.
    """
    found = _INDEXING[primitive](args, params) if primitive in _INDEXING else None
    if found is None:
        return None
    text = expression_at(place)
    if re.search(r"\bmode\s*=", text):
        return None
    asked = params.get("mode")
    quiet = asked is not None and asked != GatherScatterMode.PROMISE_IN_BOUNDS
    if quiet and not _is_indexing(text):
        return None  # of a function of the library, which means it
    return found


def _check_bounds(primitive: Primitive, args: Sequence[Any], params: dict) -> None:
    place = _place()
    found = outside(primitive, args, params, place)
    if found is None:
        return
    index, width, axis, shape = found
    told = f"index {index}" if width == 1 else f"a slice of {width} from index {index} on"
    if index < 0 and width == 1:  # the size has been added to one that counts from the end
        told = f"index {index - shape[axis]} (which is {index} from the beginning)"
    raise OutOfBoundsError(
        f"{_at(place)}{told} is out of bounds for axis {axis} of size {shape[axis]}, of an array of "
        f"shape {shape}. Without strict mode it is clamped, or what is written is dropped; say "
        "so with x.at[...].get(mode=...), or .set(..., mode='drop'), if it is meant."
    )


def _first_outside(starts: np.ndarray, axes: Sequence[int], shape: Any, windows: Any) -> Any:
    """The first index of those along the axes that leaves no room for a window, and its axis."""
    for column, axis in enumerate(axes):
        values = starts[..., column]
        bad = (values < 0) | (values > shape[axis] - windows[axis])
        if bad.any():
            return int(values[bad][0]), windows[axis], axis, shape
    return None


def _of_gather(args: Sequence[Any], params: dict) -> Any:
    shape, starts = np.shape(args[0]), np.asarray(args[1])
    numbers = params["dimension_numbers"]
    return _first_outside(starts, numbers.start_index_map, shape, params["slice_sizes"])


def _of_scatter(args: Sequence[Any], params: dict) -> Any:
    shape, starts, updates = np.shape(args[0]), np.asarray(args[1]), np.shape(args[2])
    numbers = params["dimension_numbers"]
    collapsed = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter(updates[d] for d in numbers.update_window_dims)
    windows = [1 if d in collapsed else next(sizes) for d in range(len(shape))]
    return _first_outside(starts, numbers.scatter_dims_to_operand_dims, shape, windows)


def _of_slice(starts: Sequence[Any], shape: Any, windows: Any) -> Any:
    values = np.array([int(np.asarray(s)) for s in starts])
    return _first_outside(values, range(len(shape)), shape, windows) if len(shape) else None


_INDEXING: dict[Primitive, Callable[[Sequence[Any], dict], Any]] = {
    lax.gather_p: _of_gather,
    lax.dynamic_slice_p: lambda args, params: _of_slice(
        args[1:], np.shape(args[0]), params["slice_sizes"]
    ),
    lax.dynamic_update_slice_p: lambda args, params: _of_slice(
        args[2:], np.shape(args[0]), np.shape(args[1])
    ),
    **dict.fromkeys(
        (
            lax.scatter_p,
            lax.scatter_add_p,
            lax.scatter_mul_p,
            lax.scatter_min_p,
            lax.scatter_max_p,
            lax.scatter_sub_p,
        ),
        _of_scatter,
    ),
}


# -- narrowing -------------------------------------------------------------------------------------


def _check_narrowing(primitive: Primitive, args: Sequence[Any], params: dict) -> None:
    for x in args:
        if type(x) is float:
            _check_fits(np.float64(x), get_aval(x).dtype)
        elif isinstance(x, (np.ndarray, np.generic)) and x.dtype.itemsize == 8:
            _check_fits(x, get_aval(x).dtype)
    if primitive is lax.convert_element_type_p:
        text = expression_at(_place())
        if text and not _EXPLICIT.search(text):
            _check_fits(np.asarray(args[0]), params["new_dtype"])


def _converted(value: np.ndarray, dtype: Any) -> np.ndarray:
    """Convert an array of the host; an error in strict mode where that changes its values."""
    trace = _strict_trace()
    if trace is not None and trace.checks.narrowing:
        _check_fits(value, dtype)
    return value.astype(dtype)


hooks.fill(converted=_converted)


def _check_fits(value: np.ndarray, dtype: Any) -> None:
    """NarrowedError for integers that become others, and for floats that become infinite."""
    if value.dtype == dtype or value.dtype.kind not in "iuf" or not value.size:
        return
    if dtypes.issubdtype(dtype, np.integer):
        limits = dtypes.iinfo(dtype)
        bad = (value < limits.min) | (value > limits.max)
        if value.dtype.kind == "f":
            bad |= value != np.trunc(value)
    elif dtypes.issubdtype(dtype, np.floating) and value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            bad = np.isfinite(value) & ~np.isfinite(value.astype(dtype).astype(np.float64))
    else:
        return
    if np.any(bad):
        first = np.asarray(value)[np.asarray(bad)].ravel()[0]
        raise NarrowedError(
            f"{_at(_place())}the value {first!r} of dtype {value.dtype.name} is none of "
            f"{np.dtype(dtype).name}. Without strict mode it becomes another value; convert it with astype, or turn "
            "on 64-bit dtypes (jax_enable_x64), if it is meant."
        )
