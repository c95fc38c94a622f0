"""Compiled programs, and running one primitive eagerly.

`program_for` makes a `Program` of a jaxpr (`lower_program`, `compile_lowered`) and keeps it with the
jaxpr, by the signatures of its arguments. `run_primitive`, the `process` of the outermost trace, does so
for a jaxpr of one equation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from minijax import dtypes, errors, monitoring
from minijax.arrays.array import ArrayImpl, Signature, as_array, as_operand, keep, kept_number
from minijax.config import local
from minijax.core.avals import get_aval, opaque_types
from minijax.core.caches import ProgramCache, also_cleared
from minijax.core.effects import lowerable, observable
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, dce_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.trace import EvalTrace, Tracer, check_alive
from minijax.lowering.module import Module, write_function
from minijax.lowering.types import physical
from minijax.runtime import buffers, executables, launches, platforms
from minijax.runtime.escape import mangled
from minijax.runtime.gpus import platform_name
from minijax.runtime.guards import check_move
from minijax.runtime.mlir_modules import parse
from minijax.runtime.released import released
from minijax.runtime.sharding import SingleDeviceSharding

__all__ = [
    "Lowered", "Program", "compile_lowered", "lower_program", "made_program", "program_for",
]  # fmt: skip

_INLINE_BYTES = 4096  # larger constants are passed as hidden arguments, not written as text


class Lowered:
    """A module, and how its arguments and results relate to those of its jaxpr.

    Its arguments are the `hidden` ones, which are large constants, and those that are `kept`, by index;
    `donated` is about the latter, and `lent` lists the arguments whose memory results take over. `place`
    is what `hooks.place` returned. `keepalives` are objects that the module refers to by address.
    """

    __slots__ = (
        "callbacks", "devices", "donated", "effects", "hidden", "keepalives", "kept", "lent", "name",
        "options", "out_avals", "place", "takes_platform", "text",
    )  # fmt: skip


def lower_program(
    closed: ClosedJaxpr, name: str, signatures: Sequence[Signature], *,
    donated: Sequence[bool] | None = None, keep_unused: bool | Sequence[bool] = False,
    options: dict[str, Any] | None = None, device: Any = None,
    in_shardings: Sequence[Any] | None = None, out_shardings: Sequence[Any] | None = None,
    arg_names: Sequence[str] | None = None, platform: str | None = None,
    exported: Sequence[str] = (), located: bool = False,
) -> Lowered:  # fmt: skip
    """Write the module of a jaxpr for arguments of these signatures.

    - `exported`: platforms that the module is for, `platform` among them; it then contains all
      constants, and takes tokens
    - `located`: whether the module says where its operations were made, for messages
    """
    began = monitoring.begin_stage(monitoring.LOWERED, f"jit({name})")
    monitoring.log_compiling(name, signatures, in_shardings)
    lowered = Lowered()
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), instantiate=keep_unused)
    lowered.kept = kept = [index for index, keep in enumerate(used) if keep]
    lowered.name, lowered.options, lowered.effects = name, options, observable(jaxpr.effects)
    lowered.out_avals = (hooks.discharged(jaxpr) or closed).out_avals
    lowered.place = hooks.place(
        jaxpr,
        [signatures[index] for index in kept],
        device=device,
        in_shardings=in_shardings and [in_shardings[index] for index in kept],
        out_shardings=out_shardings,
        called=lambda index: f"argument {_argument(closed, arg_names, kept[index])} of {name}",
    )
    lowered.devices = lowered.place.devices
    unknown = lowerable.filter_not_in(jaxpr.effects)
    if unknown:
        raise ValueError(
            f"Cannot lower jaxpr with effects: {unknown}. Say of effects of your own that compiled "
            "programs may have them, with interpreters.mlir.lowerable_effects.add_type(...)."
        )
    small, lowered.hidden = _constants(jaxpr, closed.consts, within=bool(exported))
    lowered.donated = [bool(donated[index]) for index in kept] if donated else []
    shown = None
    if located:
        shown = [_argument(closed, arg_names, index) for index in kept]
    builder = hooks.builder_for(closed.in_avals)
    _write_module(lowered, small, platform, exported, builder, shown)
    if not (located or exported):
        hooks.lowered(lowered, closed)
    monitoring.end_stage(monitoring.LOWERED, began, f"jit({name})")
    return lowered


def _argument(closed: ClosedJaxpr, names: Sequence[str] | None, index: int) -> str:
    """The name of an argument in messages."""
    names = names or getattr(closed.jaxpr.debug_info, "arg_names", None) or ()
    return names[index] if len(names) == len(closed.jaxpr.invars) else f"args[{index}]"


def _write_module(
    lowered: Lowered, closed: ClosedJaxpr, platform: str | None, exported: Sequence[str],
    builder: type | None, shown: Sequence[str] | None,
) -> None:  # fmt: skip
    """Write the text of a module; with names of arguments it says where operations were made."""
    where = lowered.place
    first = where.devices[0]
    known = platform_name(platform or first.platform, first)
    module = Module.make(mangled(f"jit_{lowered.name}"), known, devices=where.devices)
    module.platforms, module.exported = tuple(exported) or module.platforms, bool(exported)
    module.builder = builder or module.builder
    homes = [*map(where.home, lowered.hidden), *where.args]
    lowered.lent = []
    donations = hooks.donations(lowered, closed.jaxpr, homes)
    arg_attributes, out_attributes = where.attributes(module, closed.jaxpr, homes, donations)
    if shown is not None:
        names = [*["a constant"] * len(lowered.hidden), *shown]
        arg_attributes = hooks.tell_places(module, arg_attributes, names)
    text = write_function(
        module, "main", closed, public=True, scope=f"jit({lowered.name})/", threaded=bool(exported),
        arg_attributes=arg_attributes, out_attributes=out_attributes,
    )  # fmt: skip
    module.functions.append(text)
    lowered.text = module.text()
    if module.refines and not exported:
        lowered.text = hooks.refined(lowered.text)
    lowered.takes_platform = module.takes_platform
    lowered.keepalives = [*module.keepalives, *module.host_callbacks]
    lowered.callbacks = module.host_callbacks


def _constants(
    jaxpr: Jaxpr, values: Sequence[Any], within: bool
) -> tuple[ClosedJaxpr, list[ArrayImpl]]:
    """Return the jaxpr with its small constants, and the large ones, which are its first arguments.

    With `within` all of them count as small.
    """
    small: dict[Var, Any] = {}
    large: dict[Var, ArrayImpl] = {}
    for var, value in zip(jaxpr.constvars, values, strict=True):
        if not within and is_large_constant(value):
            large[var] = as_array(value)
        else:
            small[var] = value
    jaxpr = Jaxpr(list(small), [*large, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects)
    return ClosedJaxpr(jaxpr, list(small.values())), list(large.values())


def is_large_constant(value: Any) -> bool:
    """Whether a constant becomes an argument: it is large, or committed to its device."""
    if isinstance(value, ArrayImpl) and value.signature.committed:
        return True
    return get_aval(value).size * 8 > _INLINE_BYTES


def compile_lowered(lowered: Lowered, located: Callable[[], Lowered]) -> Program:
    """Compile a module; `located` makes one that says where operations were made, for errors."""
    began = monitoring.begin_stage(monitoring.COMPILED, f"jit({lowered.name})")
    hooks.check_module(lowered)
    compile_only = executables.is_compile_only(lowered.devices)
    done = hooks.compiling(lowered)
    try:
        executable = executables.compile_module(
            # jaxlib takes callbacks, and devices that are not here, with a module in memory only.
            parse(lowered.text) if lowered.callbacks or compile_only else lowered.text,
            lowered.devices,
            spmd=lowered.place.spmd,
            overrides=lowered.options,
            cached=not lowered.keepalives,
            callbacks=lowered.callbacks,
        )
    except executables.JaxRuntimeError as error:
        message = hooks.compile_error(str(error), lowered, located)
        raise executables.JaxRuntimeError(message) from None
    finally:
        done()
    monitoring.end_stage(monitoring.COMPILED, began, f"jit({lowered.name})")
    return (CompileOnlyProgram if compile_only else Program)(lowered, executable)


class Program:
    """A compiled jaxpr. Calling it with a list of concrete arrays returns a list of them.

    It is `simple` if calls are an execution and nothing else: no argument is moved (to its place among
    `targets`), dropped (see `kept` and `hidden` of `Lowered`) or looked at (by `check` and `watch`), and
    there are no effects or results of dtype float0 (`trivial`).
    """

    __slots__ = (
        "check", "effects", "execute", "executable", "handlers", "hidden", "keepalives", "kept",
        "lowered", "name", "out_signatures", "simple", "targets", "trivial", "watch",
    )  # fmt: skip

    def __init__(self, lowered: Lowered, executable: Any):
        where = lowered.place
        self.lowered = lowered
        self.executable = executable
        self.execute = launches.launcher(executable, lowered.devices)
        if lowered.lent:
            self.execute = where.checked(self.execute, lowered.lent)
        self.name = lowered.name
        self.kept = lowered.kept
        self.hidden = self.constants(lowered)
        self.keepalives = lowered.keepalives
        self.effects = lowered.effects
        stored = [physical(aval) for aval in lowered.out_avals]
        self.targets, outs = where.places(stored, executable)
        self.out_signatures = [
            Signature(aval, out, where.committed)
            for aval, out in zip(lowered.out_avals, outs, strict=True)
        ]
        self.handlers = [
            executables.result_handler(aval, signature.sharding, where.committed)
            for aval, signature in zip(stored, self.out_signatures, strict=True)
        ]
        self.trivial = [i for i, a in enumerate(lowered.out_avals) if a.dtype == dtypes.float0]
        self.simple = False
        self.watch: Callable | None = None
        self.check: Callable | None = hooks.result_check(self.name)
        if local.context.settings.no_execution:
            self.execute = self.refuse

    def refuse(self, operands: Sequence[Any]) -> Any:
        raise RuntimeError(
            f"JAX tried to execute function jit({self.name}), but the no_execution config "
            "option is set"
        )

    def constants(self, lowered: Lowered) -> list[Any]:
        """Return the buffers of large constants, on the devices of the program."""
        return [moved(x, lowered.place.home(x), explicit=None)._buffer for x in lowered.hidden]

    def specialize(self, signatures: Sequence[Signature], closed: ClosedJaxpr) -> None:
        """Set `simple`, for calls with these signatures, and `execute`, so that it takes them all."""
        if self.check is not None:
            self.check.specialize(closed)
        if local.context.settings.debug_key_reuse:
            self.watch = hooks.watcher_of(closed)
        execute = self.direct(signatures)
        self.simple = execute is not None
        self.execute = execute or self.execute

    def direct(self, signatures: Sequence[Signature]) -> Callable | None:
        """Return the function that executes buffers of these types, if the program is simple."""
        if self.watch is not None or self.trivial or self.check is not None or self.effects:
            return None
        execute, hidden, kept = self.execute, self.hidden, self.kept
        places = [signatures[index].place for index in kept]
        if any(where != target for where, target in zip(places, self.targets, strict=True)):
            return None
        if not hidden and kept == list(range(len(signatures))):
            return execute
        return lambda operands: execute([*hidden, *[operands[index] for index in kept]])

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        operands = [a._buffer for a in args] if self.simple else self.prepare(args)
        watched = None if self.watch is None else self.watch(args)
        next(released)  # frees what jaxlib left of earlier executions
        try:
            if self.effects:
                results = hooks.run_with_effects(self, operands)
            else:
                results = self.execute(operands).consume_with_handlers(self.handlers)
        except Exception as error:
            hooks.check_executed(args, error)
            raise
        outs = list(map(ArrayImpl, results, self.out_signatures))
        for index in self.trivial:  # arrays of float0 are NumPy's
            outs[index] = np.asarray(outs[index])
        if self.check is not None:
            self.check(args, outs)
        if watched is not None:
            watched(outs)
        return outs

    def prepare(self, args: Sequence[ArrayImpl]) -> list[Any]:
        chosen = [args[index] for index in self.kept]
        return self.hidden + [
            a._buffer if a.signature.place is target else _moved_once(a, target)._buffer
            for a, target in zip(chosen, self.targets, strict=True)
        ]


class CompileOnlyProgram(Program):
    """A program for devices that are described, and not here: calling it is an error."""

    __slots__ = ()

    def constants(self, lowered: Lowered) -> list[Any]:
        return []

    def prepare(self, args: Sequence[ArrayImpl]) -> list[Any]:
        return self.execute()


def _moved_once(value: ArrayImpl, target: Any) -> ArrayImpl:
    """Return `moved(value, target)`; of a number that is kept, its copies are kept too."""
    known = kept_number(value._buffer)
    if known is None:
        return moved(value, target, explicit=None if getattr(value, "_of_host", 0) else False)
    found = known[1].get(target)
    if found is None or found.is_deleted():
        found = known[1][target] = keep((target, id(value)), moved(value, target, explicit=None))
    return found


def moved(value: ArrayImpl, target: Any, *, copy: bool = False, explicit: Any = False) -> ArrayImpl:
    """Return the array at another place, which is a sharding or a `Format`; itself if it is there."""
    own = value.signature.place
    if not copy and (own is target or own == target):
        return value
    check_move(value.aval, own, target, explicit)
    if type(own) is type(target) is SingleDeviceSharding:
        signature = Signature(value.aval, target, value.committed)
        return ArrayImpl(buffers.move(value._buffer, target, copy=copy), signature)
    return hooks.moved(value, target, copy)


_programs = ProgramCache()


def program_for(closed: ClosedJaxpr, name: str, args: Sequence[ArrayImpl], **options) -> Program:
    """Return the compiled program of a jaxpr for arguments like these; kept with the jaxpr."""
    signatures = tuple([a.signature for a in args])
    key = ("program", name, signatures, tuple(sorted(options.items(), key=str)))
    try:
        return closed.memo[local.context.key][key]
    except KeyError:
        pass
    options["options"] = dict(options.get("options") or ()) or None
    program = made_program(closed, name, signatures, **options)
    program.specialize(signatures, closed)
    closed.derived()[key] = program
    return program


def made_program(
    closed: ClosedJaxpr, name: str, signatures: Sequence[Signature], **options
) -> Program:
    platforms.check_not_forked()  # before any of jaxlib's compilers, which have threads, is entered
    lower = functools.partial(lower_program, closed, name, signatures, **options)
    return compile_lowered(lower(), functools.partial(lower, located=True))


def run_primitive(
    trace: EvalTrace, primitive: Primitive, args: tuple, params: dict, use_impl: bool = True
) -> Any:
    """Apply a primitive to concrete values: compiled on first use, then found by its key.

    A primitive with an `impl` rule is run by that, unless `use_impl` is false.
    """
    if primitive.holds_programs:
        found = hooks.call_on_arrays(trace, primitive, args, params)
        if found is not None:
            return found
    if primitive.rule_impl is not None and use_impl:
        return primitive.rule_impl(*args, **params)
    arrays = [a if type(a) is ArrayImpl else concrete(a, primitive) for a in args]
    if primitive.holds_programs:  # kept with the first of them
        tables, described = _tables_of(params)
    else:
        tables, described = _programs.tables, params.items()
    key = (primitive, *[a.signature for a in arrays], *described)
    try:
        program = tables[local.context.key][key]
    except (KeyError, TypeError):
        program = None
    if program is None:
        program = _compile_primitive(primitive, tuple([a.signature for a in arrays]), params)
        with suppress(TypeError):  # params that are not hashable
            tables.setdefault(local.context.key, {})[key] = program
    if primitive.multiple_results or not program.simple:
        outs = program(arrays)
        return outs if primitive.multiple_results else outs[0]
    try:
        next(released)
        results = program.execute([a._buffer for a in arrays]).consume_with_handlers(
            program.handlers
        )
    except Exception as error:
        hooks.check_executed(arrays, error)
        raise
    signature = program.out_signatures[0]
    return ArrayImpl(results[0], signature)


def _tables_of(params: dict) -> tuple[dict, Iterable]:
    """Return the tables of the first program in the params, and the params without that program."""
    for value in params.values():
        if isinstance(value, tuple) and value:
            value = value[0]
        if isinstance(value, ClosedJaxpr):
            return value.memo, [(name, value.left_out_of(x)) for name, x in params.items()]
    return {}, params.items()


def _compile_primitive(primitive, signatures, params) -> Program:
    for position, signature in enumerate(signatures):
        if signature.aval.dtype == dtypes.float0:
            raise errors.float0_error(primitive, position)
    in_vars = [Var(s.aval) for s in signatures]
    out_avals = primitive.out_avals(tuple([s.aval for s in signatures]), params)
    out_vars = [Var(a) for a in (out_avals if primitive.multiple_results else [out_avals])]
    effects = primitive.effects_of(params, [var.aval for var in in_vars])
    eqn = JaxprEqn(in_vars, out_vars, primitive, params, effects)
    closed = ClosedJaxpr(Jaxpr([], in_vars, out_vars, [eqn]))
    program = made_program(closed, primitive.name, signatures, keep_unused=True)
    program.specialize(signatures, closed)
    return program


def concrete(x: Any, primitive: Primitive | None = None) -> ArrayImpl:
    """Return an argument of an eager operation as an array; an error for tracers."""
    if isinstance(x, Tracer):
        check_alive(x)
        raise errors.ConcretizationTypeError(
            f"A traced array reached an operation that runs at once: {x!r}.\n{x.origin()}\nWithin "
            "ensure_compile_time_eval() all operands must be known."
        )
    return as_operand(x) if type(x) not in opaque_types else hooks.unvalued(x, primitive)


def clear_programs() -> None:
    """Forget the programs of single operations."""
    _programs.clear()
    executables.clear_executables()


hooks.fill(run_primitive=run_primitive)
also_cleared.append(executables.clear_executables)
