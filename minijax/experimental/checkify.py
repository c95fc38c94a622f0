"""`minijax.experimental.checkify`: programs that return their failed checks as data.

The function is staged; its program is then run equation by equation, with the state of the first
failure (a number, and the values that its message shows) threaded through: conditionals, loops and
called programs carry it too. What holds no check is left whole.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from minijax import dtypes, lax, tree_util
from minijax import numpy as jnp
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import abstract
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from minijax.core.primitive import RuleColumn
from minijax.core.trace import Tracer, eval_trace
from minijax.features.checkpoint.decisions import name_p
from minijax.features.queries import is_ref
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.lax.checks import JaxRuntimeError, check_p, failures, pass_on_elements
from minijax.lax.control_flow.cond_rules import cond_p
from minijax.lax.control_flow.loops import while_p
from minijax.lax.control_flow.scan_rules import scan_p
from minijax.lax.shard_map import shard_map as lax_shard_map
from minijax.lax.shard_map import shard_map_p
from minijax.runtime.mesh import PartitionSpec
from minijax.tracebacks import public
from minijax.transforms.tracing import trace_function
from minijax.typing import ArrayLike

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]  # fmt: skip

_P = ParamSpec("_P")
_R = TypeVar("_R")


class JaxException(Exception):
    """The kinds of failures."""


class FailedCheckError(JaxException):
    """A `check` did not hold."""


class NaNError(JaxException):
    """An operation that computes gave a NaN."""


class DivisionByZeroError(JaxException):
    """A divisor was zero."""


class OOBError(JaxException):
    """An index was out of bounds."""


ErrorCategory = type[JaxException]
user_checks = frozenset((FailedCheckError,))
nan_checks = frozenset((NaNError,))
div_checks = frozenset((DivisionByZeroError,))
index_checks = frozenset((OOBError,))
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


# -- the user's checks -------------------------------------------------------------------------


class _Message:
    """A format string and the structure of its arguments, to be filled with their values."""

    __slots__ = ("template", "tree")
    category = FailedCheckError

    def __init__(self, template: str, tree: Any):
        self.template, self.tree = template, tree

    def __call__(self, values: Sequence[Any]) -> str:
        args, kwargs = self.tree.unflatten(values)
        try:
            return f"{self.template.format(*args, **kwargs)} (`check` failed)"
        except (IndexError, KeyError) as error:
            raise type(error)(
                f"{error}: checkify.check has no such value for its message {self.template!r}."
            ) from None


def check(
    pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Check that a scalar boolean is true: in a checkified function, record it if it is not.

    `msg` is a format string for the arguments, which are arrays; when the check has failed it is
    filled with their values. Outside of `checkify` a failed check raises JaxRuntimeError when run at
    once; staging one raises ValueError.
    """
    _check("check", debug, pred, msg, fmt_args, fmt_kwargs)


def _check(name: str, debug: bool, pred: Any, msg: str, fmt_args: Any, fmt_kwargs: Any) -> None:
    if not (isinstance(pred, (bool, np.bool_)) or (np.shape(pred) == () and _is_bool(pred))):
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    if not isinstance(msg, str):
        raise TypeError(f"{name} takes a format string as its message, got {msg!r}.")
    values, tree = tree_util.flatten((fmt_args, fmt_kwargs))
    for value in values:
        if not isinstance(value, (Array, np.ndarray)):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{value!r} of type {type(value)}."
            )
    check_p.bind(jnp.asarray(pred), *values, message=_Message(msg, tree), debug=debug)


def _is_bool(pred: Any) -> bool:
    return getattr(pred, "dtype", None) == np.bool_


def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` in a checkified function; elsewhere nothing."""
    _check("debug_check", True, pred, msg, fmt_args, fmt_kwargs)


# -- errors ------------------------------------------------------------------------------------


class _Site:
    """A place in a program that may fail: of what kind, and its message from some values.

    `nested` are the sites within a program mapped over devices, whose state the values are then.
    """

    __slots__ = ("avals", "category", "message", "nested", "number")

    def __init__(
        self,
        category: ErrorCategory,
        message: Callable,
        avals: Sequence[Any] = (),
        nested: tuple[_Site, ...] = (),
    ):
        self.category, self.message, self.avals = category, message, tuple(avals)
        self.nested = nested
        self.number = 0  # from one, once it is known


class Error:
    """The first failure of a program, if any. A pytree: `get()` reads it, `throw()` raises it."""

    def __init__(self, code: Any, payloads: Sequence[Any], sites: tuple[_Site, ...]) -> None:
        self._code, self._payloads, self._sites = code, list(payloads), sites

    def _failures(self) -> Iterator[tuple[tuple[int, ...], ErrorCategory, str]]:
        """Return for each failure where it was mapped to, its kind, and its message."""
        code = np.asarray(self._code)
        for found in np.argwhere(code):
            place = tuple(int(i) for i in found)
            site = self._sites[int(code[place]) - 1]
            payload = _payload_of(site, self._sites, self._payloads)
            values = [jnp.asarray(x)[place] for x in payload]
            if site.nested:
                inner = Error(values[0], values[1:], site.nested)
                for deeper, category, message in inner._failures():
                    yield (*place, *deeper), category, message
            else:
                yield place, site.category, site.message(values)

    def get(self) -> str | None:
        """The message of the failure; of each element if it was mapped. None if there is none."""
        lines = [
            (f"at mapped index {', '.join(map(str, place))}: " if place else "") + message
            for place, _, message in self._failures()
        ]
        return "\n".join(lines) or None

    def get_exception(self) -> JaxException | None:
        """The first failure, as an exception of its kind."""
        for _, category, _ in self._failures():
            return category(self.get())
        return None

    def throw(self) -> None:
        """Raise JaxRuntimeError if there is a failure; under a transformation, check it again."""
        check_error(self)

    def __repr__(self) -> str:
        known = not any(isinstance(x, Tracer) for x in (self._code, *self._payloads))
        return f"Error({self.get() if known else self._code})"


tree_util.register_pytree_node(
    Error,
    lambda e: ((e._code, e._payloads), e._sites),
    lambda sites, children: Error(*children, sites),
)
init_error = Error(np.int32(0), (), ())


def _payload_of(site: _Site, sites: Sequence[_Site], payloads: Sequence[Any]) -> list[Any]:
    start = sum(len(other.avals) for other in sites[: site.number - 1])
    return list(payloads[start : start + len(site.avals)])


class _Found:
    """The message of a failure that an `Error` holds, and of what kind it is."""

    __slots__ = ("category", "message")

    def __init__(self, category: ErrorCategory, message: Callable):
        self.category, self.message = category, message

    def __call__(self, values: Sequence[Any]) -> str:
        return self.message(values)


def check_error(error: Error) -> None:
    """Raise JaxRuntimeError if the error holds a failure; in a traced function, `check` it.

    Failures keep their kinds. Of a mapped error it is the last element that failed.
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error as argument, got type {type(error)} instead. It is {error!r}."
        )
    known = not any(isinstance(x, Tracer) for x in tree_util.tree_leaves(error))
    if known and local.context.trace is eval_trace:
        found = list(error._failures())
        if found:
            raise JaxRuntimeError(found[-1][2])
        return
    code, payloads = jnp.asarray(error._code), error._payloads
    if not code.size:
        return
    if code.ndim:
        mapped, code = code.shape, jnp.ravel(code)
        last = code.size - 1 - jnp.argmax(jnp.flip(code != 0))
        payloads = [jnp.reshape(x, (-1, *x.shape[len(mapped) :]))[last] for x in payloads]
        code = code[last]
    for site in error._sites:
        values = _payload_of(site, error._sites, payloads)
        pred = jnp.not_equal(code, site.number)
        check_p.bind(pred, *values, message=_Found(site.category, site.message), debug=False)


# -- finding the sites of a program ------------------------------------------------------------


def _programs(eqn: JaxprEqn) -> list[ClosedJaxpr]:
    """The programs in an equation that failures are followed into."""
    calls = eqn.primitive.programs
    held = [] if calls is None else calls.all(eqn.params)
    opened = [ClosedJaxpr(program) if isinstance(program, Jaxpr) else program for program in held]
    return [program for program in opened if isinstance(program, ClosedJaxpr)]


class _Checks:
    """The sites of a program, by the equation that each stands at."""

    def __init__(self, jaxpr: Jaxpr, errors: frozenset):
        self.errors = errors
        self.sites: list[_Site] = []
        self.by_eqn: dict[int, list[tuple[_Site, Callable]]] = {}
        self.inner: dict[int, bool] = {}
        self.any = self.visit(jaxpr)

    def visit(self, jaxpr: Jaxpr) -> bool:
        """Whether the program has a site, or a `check` that is left out since none is asked for."""
        found = False
        for eqn in jaxpr.eqns:
            found = found or eqn.primitive is check_p
            if id(eqn) in self.by_eqn:
                found = found or bool(self.by_eqn[id(eqn)]) or self.inner[id(eqn)]
                continue
            programs = _programs(eqn)
            made = [] if programs else list(_sites_of(eqn, self.errors))
            mapped = eqn.primitive is shard_map_p and bool(made)
            for site, _ in made:
                self.sites.append(site)
                site.number = len(self.sites)
            self.by_eqn[id(eqn)] = made
            below = [self.visit(program.jaxpr) for program in programs]  # all of them
            self.inner[id(eqn)] = mapped or any(below)
            found = found or bool(made) or self.inner[id(eqn)]
        return found


def _sites_of(eqn: JaxprEqn, errors: frozenset):
    """Pairs of a site and `test(operands, results) -> failed, values`."""
    return (failures.rule(eqn.primitive) or _computes)(eqn, errors)


def _computes(eqn, errors):
    """The rule of operations whose results may be the first to have a NaN, the default."""
    arrays = [i for i, v in enumerate(eqn.outvars) if not is_ref(v.aval)]
    inexact = [i for i in arrays if dtypes.issubdtype(eqn.outvars[i].aval.dtype, np.inexact)]
    if inexact and NaNError in errors and not eqn.effects:
        name = eqn.primitive.name
        site = _Site(NaNError, lambda values: f"nan generated by primitive: {name}.")
        yield site, lambda ins, outs: (_any_nan([outs[i] for i in inexact]), ())


@failures(check_p)
def _(eqn, errors):
    message = eqn.params["message"]
    if message.category in errors:
        site = _Site(message.category, message, [v.aval for v in eqn.invars[1:]])
        yield site, lambda ins, outs: (jnp.logical_not(ins[0]), ins[1:])


@failures(shard_map_p)
def _(eqn, errors):
    nested = _Checks(eqn.params["jaxpr"].jaxpr, errors)
    if nested.any:
        yield _mapped_site(eqn, nested), nested


@failures(lax.div_p)
def _(eqn, errors):
    if DivisionByZeroError in errors:
        site = _Site(DivisionByZeroError, lambda values: "division by zero")
        yield site, lambda ins, outs: (jnp.any(jnp.equal(ins[1], 0)), ())
    yield from _computes(eqn, errors)


def _mapped_site(eqn: JaxprEqn, nested: _Checks) -> _Site:
    """One site for all of a `shard_map`, whose values are the state of failure on each device."""
    mesh, manual = eqn.params["mesh"], eqn.params["newly_manual_axes"]
    count = math.prod(mesh.shape[name] for name in manual)
    inner = [abstract(np.int32(0)), *(aval for site in nested.sites for aval in site.avals)]
    avals = [ShapeDtypeStruct((count, *aval.shape), aval.dtype) for aval in inner]
    sites = tuple(nested.sites)
    message = lambda values: Error(values[0], values[1:], sites).get() or ""
    category = sites[0].category if sites else FailedCheckError
    return _Site(category, message, avals, sites)


pass_on_elements(
    name_p, lax.abs_p, lax.all_gather_p, lax.all_to_all_p, lax.argmax_p, lax.argmin_p,
    lax.broadcast_in_dim_p, lax.clamp_p, lax.complex_p, lax.concatenate_p, lax.conj_p,
    lax.convert_element_type_p, lax.copy_p, lax.device_put_p, lax.imag_p, lax.iota_p, lax.max_p,
    lax.min_p, lax.neg_p, lax.optimization_barrier_p, lax.ppermute_p, lax.real_p,
    lax.reduce_max_p, lax.reduce_min_p, lax.reduce_precision_p, lax.reshape_p, lax.rev_p,
    lax.select_n_p, lax.sign_p, lax.slice_p, lax.sort_p, lax.split_p, lax.squeeze_p,
    lax.stack_p, lax.stop_gradient_p, lax.tile_p, lax.top_k_p, lax.transpose_p, lax.unstack_p,
)  # fmt: skip


def _any_nan(outs: Sequence[Any]) -> Any:
    return functools.reduce(jnp.logical_or, [jnp.any(jnp.isnan(x)) for x in outs])


# -- indices -----------------------------------------------------------------------------------


def _bounds_site(shape, axes, limits, indices_of):
    """A site that fails where an index is below zero or above the limit of its axis."""

    def message(values):
        index, axis = int(values[0]), axes[int(values[1])]
        return (
            f"out-of-bounds indexing for array of shape {shape}: index {index} is out of bounds "
            f"for axis {axis} with size {shape[axis]}. "
        )

    def test(ins, outs):
        indices = indices_of(ins)  # (..., number of axes)
        bad = jnp.ravel((indices < 0) | (indices > jnp.asarray(limits, indices.dtype)))
        first = jnp.argmax(bad)
        value = jnp.ravel(indices)[first].astype(np.int32)
        return jnp.any(bad), [value, (first % len(axes)).astype(np.int32)]

    scalar = abstract(np.int32(0))
    return _Site(OOBError, message, [scalar, scalar]), test


def _gather_bounds(eqn, avals):
    axes = tuple(eqn.params["dimension_numbers"].start_index_map)
    sizes = eqn.params["slice_sizes"]
    limits = [avals[0].shape[d] - sizes[d] for d in axes]
    return (axes, limits, lambda ins: ins[1]) if axes and avals[1].size else None


def _scatter_bounds(eqn, avals):
    numbers = eqn.params["dimension_numbers"]
    axes = tuple(numbers.scatter_dims_to_operand_dims)
    narrow = {*numbers.inserted_window_dims, *getattr(numbers, "operand_batching_dims", ())}
    windows = iter([avals[2].shape[d] for d in numbers.update_window_dims])
    sizes = [1 if d in narrow else next(windows) for d in range(avals[0].ndim)]
    limits = [avals[0].shape[d] - sizes[d] for d in axes]
    return (axes, limits, lambda ins: ins[1]) if axes and avals[1].size else None


def _slice_bounds(eqn, avals):
    first = 1 if eqn.primitive is lax.dynamic_slice_p else 2
    sizes = eqn.params["slice_sizes"] if first == 1 else avals[1].shape
    axes = tuple(range(avals[0].ndim))
    limits = [avals[0].shape[d] - sizes[d] for d in axes]
    starts = lambda ins: jnp.stack([jnp.asarray(i).astype(np.int32) for i in ins[first:]])
    return (axes, limits, starts) if axes else None


def _indexed(bounds: Callable, computes: bool = False) -> Callable:
    """The rule of an operation that fails where its indices are out of bounds."""

    def rule(eqn, errors):
        if OOBError in errors:
            avals = [v.aval for v in eqn.invars]
            found = bounds(eqn, avals)
            if found is not None:
                yield _bounds_site(avals[0].shape, *found)
        if computes:
            yield from _computes(eqn, errors)

    return rule


_COMBINING = (
    lax.scatter_add_p, lax.scatter_sub_p, lax.scatter_mul_p, lax.scatter_min_p, lax.scatter_max_p,
)  # fmt: skip
failures.update({
    lax.gather_p: _indexed(_gather_bounds), lax.scatter_p: _indexed(_scatter_bounds),
    lax.dynamic_slice_p: _indexed(_slice_bounds),
    lax.dynamic_update_slice_p: _indexed(_slice_bounds),
    **dict.fromkeys(_COMBINING, _indexed(_scatter_bounds, computes=True)),
})  # fmt: skip


# -- running a program with its state of failure -------------------------------------------------


class _Runner:
    """`state` is the number of the first failure (zero: none), then the values of all sites."""

    def __init__(self, checks: _Checks):
        self.checks = checks

    def start(self) -> list[Any]:
        avals = [aval for site in self.checks.sites for aval in site.avals]
        return [jnp.asarray(np.int32(0)), *(jnp.zeros(a.shape, a.dtype) for a in avals)]

    def fail(self, state: list, site: _Site, failed: Any, values: Sequence[Any]) -> list:
        fresh = jnp.logical_and(failed, jnp.equal(state[0], 0))
        start = 1 + sum(len(other.avals) for other in self.checks.sites[: site.number - 1])
        state = list(state)
        state[0] = jnp.where(fresh, np.int32(site.number), state[0])
        for place, value in enumerate(values, start):
            state[place] = jnp.where(fresh, value, state[place])
        return state

    def run(self, closed: ClosedJaxpr, state: list, args: Sequence[Any]) -> tuple[list, list]:
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))
        read = lambda v: v.value() if type(v) is Literal else env[v]
        for eqn in jaxpr.eqns:
            state, outs = self.equation(eqn, state, [read(v) for v in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return state, [read(v) for v in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, state: list, ins: list) -> tuple[list, list]:
        if self.checks.inner[id(eqn)]:
            step = _steps.rule(eqn.primitive) or _Runner.call
            return step(self, eqn, state, ins)
        if eqn.primitive is check_p:
            outs: Any = []
        else:
            outs = eqn.primitive.bind(*ins, **eqn.params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        for site, test in self.checks.by_eqn[id(eqn)]:
            state = self.fail(state, site, *test(ins, outs))
        return state, outs

    def call(self, eqn, state, ins):
        return self.run(_programs(eqn)[0], state, ins)

    def shard_map(self, eqn, state, ins):
        p, ((site, nested),) = eqn.params, self.checks.by_eqn[id(eqn)]
        manual = tuple(n for n in p["mesh"].axis_names if n in p["newly_manual_axes"])

        def body(*parts):
            runner = _Runner(nested)
            found, outs = runner.run(p["jaxpr"], runner.start(), parts)
            return [lax.expand_dims(x, (0,)) for x in found], outs

        found, outs = lax_shard_map(
            body, mesh=p["mesh"], in_specs=p["in_specs"], check_vma=p["check_vma"],
            out_specs=(PartitionSpec(manual), list(p["out_specs"])), axis_names=frozenset(manual),
        )(*ins)  # fmt: skip
        return self.fail(state, site, jnp.any(found[0] != 0), found), outs

    def cond(self, eqn, state, ins):
        index, *ops = ins
        branches = [
            lambda state, *ops, program=program: self.run(program, state, ops)
            for program in eqn.params["branches"]
        ]
        return lax.switch(index, branches, state, *ops)

    def scan(self, eqn, state, ins):
        p = eqn.params
        consts, init = ins[: p["num_consts"]], ins[p["num_consts"] :]
        init, xs = init[: p["num_carry"]], init[p["num_carry"] :]

        def body(carry, x):
            state, values = carry
            state, outs = self.run(p["jaxpr"], state, [*consts, *values, *x])
            return (state, outs[: p["num_carry"]]), outs[p["num_carry"] :]

        (state, values), ys = lax.scan(
            body, (state, init), xs, length=p["length"], reverse=p["reverse"],
            unroll=p.get("unroll", 1),
        )  # fmt: skip
        return state, [*values, *ys]

    def while_(self, eqn, state, ins):
        p = eqn.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        cond_consts, body_consts, init = ins[:first], ins[first:second], ins[second:]
        if p["cond_jaxpr"].out_avals[0].shape:
            raise ValueError(
                "Checkify does not support batched while-loops (checkify-of-vmap-of-while). \n"
                "Hint: if possible, move the vmap to the outer level to get "
                "vmap-of-checkify-of-while."
            )

        def holds(state, values):
            state, (go,) = self.run(p["cond_jaxpr"], state, [*cond_consts, *values])
            return state, go

        def body(carry):
            state, values, _ = carry
            state, values = self.run(p["body_jaxpr"], state, [*body_consts, *values])
            state, go = holds(state, values)
            return state, values, go

        state, go = holds(state, init)
        state, values, _ = lax.while_loop(lambda carry: carry[2], body, (state, init, go))
        return state, values


# Rules `(runner, equation, state, operands) -> state, results` of what holds programs.
_steps = RuleColumn("checkify, running")
_steps.update({
    cond_p: _Runner.cond, scan_p: _Runner.scan, shard_map_p: _Runner.shard_map,
    while_p: _Runner.while_,
})  # fmt: skip


def _canonical(x: Any) -> Any:
    """A result that the function only passed on: NumPy's arrays have the dtypes that they enter with."""
    return jnp.asarray(x) if isinstance(x, np.ndarray) and x.dtype != dtypes.float0 else x


_NO_ARGUMENTS = tree_util.tree_structure(((), {}))


def checkify(
    f: Callable[_P, _R], errors: frozenset[Any] = user_checks
) -> Callable[_P, tuple[Error, _R]]:
    """A function that returns `(error, results of f)`, where `error` is the first failed check.

    `errors` says which: `user_checks` (calls of `check`), `nan_checks`, `div_checks`,
    `index_checks`, or unions of them. Derivatives are taken of the function that this gives, and
    custom derivative rules of what holds a check are not used.
    """

    @functools.wraps(f)
    def checked(*args, **kwargs):
        given = [*enumerate(args), *kwargs.items()]  # closed over: values stay known to `f`
        traced = trace_function("checkify", f, _NO_ARGUMENTS, [], statics=given, hoisted=None)
        closed = traced.closed
        checks = _Checks(closed.jaxpr, frozenset(errors))
        runner = _Runner(checks)
        state, outs = runner.run(closed, runner.start(), ())
        code, *payloads = state
        outs = [_canonical(x) for x in outs]
        return Error(code, payloads, tuple(checks.sites)), traced.out_tree.unflatten(outs)

    return checked


__dir__ = public(__name__)
