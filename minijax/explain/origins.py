"""Where equations and programs come from: rules that made them, transforms that were applied.

While a function is traced here, Python tells (`sys.setprofile`) of each equation that is recorded and
of each call of a function under a transform: the frames that are open then are those of the rules at
work. The machine itself knows nothing of it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.config import local, make_user_context
from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn, Var, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.source import is_internal
from minijax.core.staging import JaxprTrace, PartialTrace, trace_to_jaxpr
from minijax.core.trace import Trace, set_trace
from minijax.transforms import grad, vmap
from minijax.transforms.batching import BatchTrace
from minijax.transforms.grad import FlatFunction
from minijax.transforms.jvp import JVPTrace
from minijax.transforms.linearize import linearized
from minijax.transforms.primitives import add_tangents
from minijax.transforms.transpose import transpose_equation

__all__ = ["Applied", "Origin", "Origins", "anew", "watched"]


class Origin(NamedTuple):
    """The rules that recorded an equation, innermost first, and the equation that they were given."""

    rules: tuple[tuple[str, Primitive], ...]
    earlier: Var | None


class Applied:
    """One call of a function under a transform, with the programs before and after it."""

    def __init__(self, transform: str, fun: Callable, outer: Applied | None):
        self.transform, self.fun, self.outer = transform, fun, outer
        self.name = _name_within(fun)
        self.before: ClosedJaxpr | None = None
        self.after: ClosedJaxpr | None = None
        self.inner: list[Applied] = []


def _name_within(fun: Callable) -> str:
    """The name of a function, or of the one that a function of the package calls."""
    code = getattr(fun, "__code__", None)
    while code is not None and code.co_name == "call" and is_internal(code):
        inner = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True)).get("fun")
        fun = fun.__wrapped__ if inner is None else inner.cell_contents
        code = getattr(fun, "__code__", None)
    return fun_name(fun)


def _key(eqn: JaxprEqn) -> Any:
    """Return a key of an equation that its copies share: its first result."""
    if not eqn.outvars:
        return id(eqn)
    var = eqn.outvars[0]
    return var.var if type(var) is DropVar else var


# -- rules -----------------------------------------------------------------------------------------


def _by_primitive(name: str) -> Callable[[dict], tuple[str, Primitive] | None]:
    return lambda variables: (name, variables["primitive"])


def _of_transpose(variables: dict) -> tuple[str, Primitive] | None:
    return "transpose", variables["eqn"].primitive


# By the ids of code objects, which are kept by their functions: to hash one takes long.
_RULES: dict[int, Callable[[dict], Any]] = {
    id(JVPTrace.apply.__code__): _by_primitive("jvp"),
    id(BatchTrace.apply.__code__): _by_primitive("vmap"),
    id(transpose_equation.__code__): _of_transpose,
}
_READERS = {id(eval_jaxpr.__code__), id(transpose_equation.__code__)}
_STARTS = {id(trace_to_jaxpr.__code__), id(linearized.__code__)}
_RECORD = JaxprTrace.record.__code__
_SUM = id(add_tangents.__code__)


def _summed(frame: FrameType | None) -> JaxprEqn | None:
    """The equation that pulls back a cotangent which is added, or whose result comes out twice."""
    found = {} if frame is None else frame.f_locals
    if "eqn" in found or "linear" not in found:
        return found.get("eqn")
    return next((eqn for eqn in found["linear"] if found["var"] in eqn.outvars), None)


def _origin(frame: FrameType | None) -> Origin:
    rules: list[tuple[str, Primitive]] = []
    earlier = None
    while frame is not None:
        code = id(frame.f_code)
        if code in _STARTS:
            break
        if code in _READERS and earlier is None:
            eqn = frame.f_locals.get("eqn")
            earlier = None if eqn is None else _key(eqn)
        rule = _RULES.get(code)
        if rule is not None:
            rules.append(rule(frame.f_locals))
        elif code == _SUM and not rules and (eqn := _summed(frame.f_back)) is not None:
            rules.append(("sum of cotangents", eqn.primitive))
        frame = frame.f_back
    return Origin(tuple(rules), earlier if type(earlier) is Var else None)


# -- transforms ------------------------------------------------------------------------------------


def _inner(function: Callable, name: str) -> CodeType:
    """The code of a function that is defined within another."""
    codes = [c for c in function.__code__.co_consts if isinstance(c, CodeType)]
    return next(c for c in codes if c.co_name == name)


def _of_closure(frame: FrameType) -> tuple[Callable, tuple, dict]:
    """The function whose frame this is, with what it closes over, and its arguments."""
    code, found = frame.f_code, frame.f_locals
    cells = tuple(CellType(found[name]) for name in code.co_freevars)
    made = FunctionType(code, frame.f_globals, code.co_name, None, cells)
    return made, found["args"], found["kwargs"]


def _of_jvp(frame: FrameType) -> tuple[Callable, tuple, dict]:
    fun, aux = frame.f_locals["fun"], frame.f_locals["has_aux"]
    call = lambda primals, tangents: grad.jvp(fun, primals, tangents, aux)
    return call, (frame.f_locals["primals"], frame.f_locals["tangents"]), {}


_WRAPPERS: dict[int, Callable[[FrameType], tuple]] = {  # what transforms give
    id(_inner(vmap.vmap, "batched")): _of_closure,
    id(_inner(grad.grad, "gradient")): _of_closure,
    id(_inner(grad.differentiated, "value_and_gradient")): _of_closure,
    id(inspect.unwrap(grad.jvp).__code__): _of_jvp,
}
_CALLS = {id(FlatFunction.__call__.__code__), id(vmap.MappedCall.__call__.__code__)}


def _outer_trace(trace: Trace) -> Trace:
    parent = trace.parent
    return parent.parent if type(parent) is PartialTrace else parent


def _program(fun: Callable, args: Sequence[Any], kwargs: dict) -> ClosedJaxpr | None:
    leaves, tree = tree_util.tree_flatten((args, kwargs))

    def flat(*leaves):
        given, named = tree.unflatten(leaves)
        return [x for x in tree_util.tree_leaves(fun(*given, **named)) if hasattr(x, "dtype")]

    try:
        with anew():
            return trace_to_jaxpr(flat, [get_aval(x) for x in leaves])
    except Exception:  # values that the transform itself prepares, as references
        return None


# -- the watch -------------------------------------------------------------------------------------


class Origins:
    """The equations that have been seen: the origin of each, and the transforms in order."""

    def __init__(self) -> None:
        self.found: dict[Any, Origin] = {}
        self.kept: list[JaxprEqn] = []  # keeps those alive that are known by id
        self.applied: list[Applied] = []
        self._open: Applied | None = None
        self._quiet = False

    def of(self, eqn: JaxprEqn) -> Origin | None:
        return self.found.get(_key(eqn))

    def rules(self, eqn: JaxprEqn) -> list[tuple[str, Primitive]]:
        """Return the rules that led to an equation, the last one first; none where it was written."""
        found: list[tuple[str, Primitive]] = []
        origin = self.of(eqn)
        while origin is not None and len(found) < 16:
            found += origin.rules
            origin = self.found.get(origin.earlier) if origin.earlier is not None else None
        return found

    def watch(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if code is _RECORD:
            if event != "return":
                return
            eqn = frame.f_locals.get("eqn")
            if eqn is not None:
                self.found[_key(eqn)] = _origin(frame.f_back)
                if not eqn.outvars:
                    self.kept.append(eqn)
        elif event == "call" and id(code) in _CALLS and not self._quiet:
            call = frame.f_locals["self"]
            call.fun = self._watched(call, frame)

    def _watched(self, call: Any, frame: FrameType) -> Callable:
        """The function of a transform's call, whose programs are noted before it is called."""
        fun, outer = call.fun, self._open
        transform, rebuilt = getattr(call, "transform", "vmap"), None
        caller = frame.f_back
        while caller is not None and id(caller.f_code) not in _CALLS:
            known = _WRAPPERS.get(id(caller.f_code))
            if known is not None:
                if caller.f_code.co_name == "gradient":
                    transform = "grad"
                rebuilt = known(caller)
            elif rebuilt is not None and not str(caller.f_globals.get("__name__")).startswith(
                "minijax."
            ):
                break
            caller = caller.f_back

        @functools.wraps(fun, updated=())
        def noted(*args, **kwargs):
            call.fun = fun
            applied = Applied(transform, fun, outer)
            (self.applied if outer is None else outer.inner).append(applied)
            self._quiet = True
            try:
                applied.before = _program(fun, args, kwargs)
                if rebuilt is not None:
                    with set_trace(_outer_trace(local.context.trace)):
                        applied.after = _program(*rebuilt)
            finally:
                self._quiet = False
            self._open = applied
            try:
                return fun(*args, **kwargs)
            finally:
                self._open = outer

        return noted


_fresh = make_user_context(None)  # a part of all cache keys: nothing that is cached is found


def anew() -> AbstractContextManager[None]:
    """Have nothing be found that was traced before, while the context lasts."""
    return _fresh(_Once())


def watched(run: Callable[[], Any]) -> tuple[Any, Origins]:
    """Call `run`, in which all is traced anew, and return its result and the origins of equations."""
    seen = Origins()
    before = sys.getprofile()
    with anew():
        sys.setprofile(seen.watch)
        try:
            return run(), seen
        finally:
            sys.setprofile(before)


class _Once:
    """A value that is equal to no other."""
