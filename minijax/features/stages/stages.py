"""Compiling ahead of time: a function traced, lowered, compiled, each a thing to look at.

`jit(f).trace(...)` gives `Traced`, its `.lower()` `Lowered`, whose `.compile()` gives `Compiled`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minijax import dtypes, tree_util
from minijax.arguments.functions import debug_info
from minijax.arrays.array import ArrayImpl, Signature
from minijax.arrays.dispatch import (
    Program,
    compile_lowered,
    concrete,
    lower_program,
)
from minijax.config import local, override
from minijax.core.avals import ShapedArray, abstract, get_aval, opaque_types, raised
from minijax.core.caches import ProgramCache
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.trace import Tracer
from minijax.features.codegen_calls import reader
from minijax.features.queries import Reference, is_ref
from minijax.features.sharding.memory_layouts import layout_of
from minijax.features.sharding.program_placement import over_devices
from minijax.features.slots import slots
from minijax.features.stages.struct import (
    ShapeDtypeStruct,
    check_no_structs,
    shape_struct,
    without_structs,
)
from minijax.namespace import hiding
from minijax.runtime import executables, platforms
from minijax.runtime import sharding as shardings
from minijax.runtime.layouts import Format, Layout, place_for, preferred, sharding_in
from minijax.runtime.mlir_modules import as_hlo, described, hlo_with_metadata
from minijax.runtime.named_sharding import is_empty
from minijax.runtime.topologies import Placeholder
from minijax.tracebacks import boundary
from minijax.transforms.cached_calls import CACHE_MISS_ERRORS, cached_call, entry_of, gather
from minijax.transforms.jit import PjitFunction

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]


class ArgInfo:
    """The type of one argument of a staged function, and whether it is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: ShapedArray, donated: bool) -> None:
        object.__setattr__(self, "_aval", _aval)
        object.__setattr__(self, "donated", donated)

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}: an ArgInfo cannot be changed.")

    def __reduce__(self) -> Any:
        return ArgInfo, (self._aval, self.donated)

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (
            other._aval,
            other.donated,
        )

    def __hash__(self) -> Any:
        return hash((self._aval, self.donated))


class _Stage:
    """The part that the three stages share: the types that go in and out."""

    def __init__(self, spec: _Spec) -> None:
        self._spec = spec

    @property
    def in_tree(self) -> Any:
        return self._spec.in_tree

    @property
    def out_tree(self) -> Any:
        return self._spec.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as a tree `(args, kwargs)`."""
        return self.in_tree.unflatten(self._spec.in_avals)

    @property
    def out_avals(self) -> Any:
        return self.out_tree.unflatten(self._spec.closed.out_avals)

    @property
    def args_info(self) -> Any:
        """The types of the arguments and which are donated, as a tree `(args, kwargs)`."""
        return self.in_tree.unflatten(
            [
                ArgInfo(aval, donated)
                for aval, donated in zip(self._spec.in_avals, self._spec.donated, strict=True)
            ]
        )

    @property
    def out_info(self) -> Any:
        """The types of the results, with the shardings that were asked for."""
        avals, asked = self._spec.closed.out_avals, self._spec.out_shardings
        found = [shape_struct(aval) for aval in avals]
        if asked is not None:
            found = [
                one if where is None else one.update(sharding=_stated(where))
                for one, where in zip(found, asked, strict=True)
            ]
        return self.out_tree.unflatten(found)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return tuple(index for index, donated in enumerate(self._spec.donated) if donated)

    def _names(self) -> list[str]:
        names = self._spec.arg_names
        return list(names) if names else [str(i) for i in range(len(self._spec.in_avals))]

    def _check_tree(self, tree: Any) -> None:
        """TypeError for arguments in another pytree."""
        spec = self._spec
        if tree != spec.in_tree:
            found = [
                f"    * at {where}, seen {wanted} but now given {given}, so {why}\n"
                for where, wanted, given, why in tree_util.call_differences(spec.in_tree, tree)
            ]
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called "
                f"with. There are {len(found)} mismatches, including:\n{''.join(found)}Static "
                "arguments are left out when a compiled function is called."
            )

    def _check_types(self, leaves: Sequence[Any]) -> None:
        """TypeError for arguments of other types."""
        wrong = [
            f"Argument {name!r} compiled with {aval.str_short()} and called with "
            f"{get_aval(x).str_short()}"
            for name, aval, x in zip(self._names(), self._spec.in_avals, leaves, strict=True)
            if not _agree(get_aval(x), aval)
        ]
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                "Perhaps you are calling the compiled executable with a different enable_x64 mode "
                "than when it was AOT compiled? The mismatches are:\n" + "\n".join(wrong)
            )


class _Spec:
    """A traced function: its program, and how it is to be compiled."""

    __slots__ = (
        "arg_names", "closed", "consts", "device", "donated", "in_avals", "in_shardings", "in_tree",
        "keep_unused", "name", "options", "out_shardings", "out_tree", "out_types", "signatures",
    )  # fmt: skip

    def on_arrays(self, closed: ClosedJaxpr, out_types: Sequence[Any]) -> _Spec:
        """Return the specification of a program on the arrays that the values are made of."""
        changing = any(a.of_values() is not a for a in self.in_avals)
        if changing or any(
            type(c) in opaque_types and not isinstance(c, Reference) for c in self.consts
        ):
            raise NotImplementedError(
                f"{self.name} takes or closes over values that change in place, of types that a "
                "library defined: it cannot be compiled ahead of time. Call the jitted function."
            )
        made = self.with_program(closed)
        made.out_types = out_types
        sizes = [len(aval.lo_ty()) for aval in self.in_avals]
        made.donated, made.arg_names = (
            [x for x, size in zip(each, sizes, strict=True) for _ in range(size)]
            for each in (self.donated, self.arg_names)
        )
        return made

    def with_program(self, closed: ClosedJaxpr) -> _Spec:
        """Return the specification of another program on the same arguments."""
        made = _Spec()
        for name in _Spec.__slots__:
            setattr(made, name, getattr(self, name))
        made.closed = closed
        return made

    def result_names(self) -> list[str]:
        """Return the names of the results in programs, such as `result['a'][0]`."""
        tree = self.out_tree.unflatten(range(self.out_tree.num_leaves))
        return [f"result{tree_util.keystr(path)}" for path, _ in tree_util.generate_key_paths(tree)]


class Traced(_Stage):
    """A function staged to a jaxpr for arguments of given types."""

    __dir__ = hiding("with_jaxpr")

    def with_jaxpr(self, closed: ClosedJaxpr) -> Traced:
        """Return the same stage with another program on the same arguments."""
        return Traced(self._spec.with_program(closed))

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._spec.closed

    @property
    def fun_name(self) -> str:
        return self._spec.name

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the program's operations to arguments of the types that it was traced for.

        TypeError for others. Static arguments are left out, and nothing is donated.
        """
        leaves, tree = tree_util.flatten((args, kwargs))
        self._check_tree(tree)
        self._check_types(leaves)
        closed, consts = self._spec.closed, self._spec.consts
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *consts, *leaves)
        return self.out_tree.unflatten(outs)

    def lower(
        self, *, lowering_platforms: Sequence[str] | None = None, _private_parameters: Any = None
    ) -> Lowered:
        """Write the StableHLO module, for the default platform or for others.

        That of several takes the number of the platform as its first argument.
        """
        spec = self._spec
        low = hooks.as_arrays(spec.closed)
        if low is not None:
            spec = spec.on_arrays(*low)
            self._spec.out_types = spec.out_types
        check_no_structs(spec.consts)
        if not all(isinstance(c, Reference) for c in spec.consts):
            raise ValueError(
                f"{spec.name} closes over traced values, so that it cannot be compiled ahead of "
                "time within another transformation: pass them as arguments."
            )
        closed = (
            slots.on_values(spec.closed) if any(map(is_ref, spec.closed.in_avals)) else spec.closed
        )
        donated = [False] * len(spec.consts) + spec.donated
        signatures = [*[c._value.signature for c in spec.consts], *spec.signatures]
        lower = functools.partial(
            lower_program,
            closed,
            spec.name,
            donated=donated if any(donated) else None,
            keep_unused=spec.keep_unused,
            options=dict(spec.options) or None,
            device=spec.device,
            arg_names=[*["a closed-over reference"] * len(spec.consts), *spec.arg_names],
        )
        chosen = tuple(lowering_platforms or (None,))
        lying = signatures, spec.in_shardings, spec.out_shardings

        def made(devices=(), **options):
            given, ins, outs = lying
            if lowering_platforms:
                given, ins, outs = over_devices(closed.jaxpr, *lying, devices)
            options |= {"in_shardings": ins, "out_shardings": outs}
            each = [lower(given, platform=platform, **options) for platform in chosen]
            if len(chosen) > 1:
                each[0].text = slots.for_platforms([one.text for one in each], chosen)
            return each[0]

        return Lowered(self._spec, made(), made, len(chosen) > 1)


class Lowered(_Stage):
    """A function lowered to StableHLO."""

    __dir__ = hiding("called_with", "out_avals")

    def __init__(
        self, spec: _Spec, made: Any, make: Callable[..., Any], several: bool = False
    ) -> None:
        super().__init__(spec)
        self._made = made
        self._make = make  # makes it with other options, such as the places in the user's program
        self._several = several  # whether it is for several platforms

    @property
    def out_info(self) -> Any:
        """The types of the results; a program does not tell weak ones from others."""
        return tree_util.tree_map(_strong, super().out_info)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text: StableHLO by default, or `dialect="hlo"`.

        With `debug_info` it says of each operation which line of the user's program made it.
        """
        if dialect in (None, "stablehlo"):
            made = self._make(located=True) if debug_info else self._made
            module = described(made.text, self._spec.result_names())
            return module.operation.get_asm(enable_debug_info=debug_info)
        if dialect == "hlo":
            if debug_info:
                return hlo_with_metadata(self.as_text(debug_info=True))
            return self.compiler_ir(dialect).as_hlo_text()
        raise ValueError(f"unknown dialect: {dialect}. Use 'stablehlo' or 'hlo'.")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object: MLIR by default, an XlaComputation for `dialect="hlo"`."""
        if dialect in (None, "stablehlo"):
            return described(self._made.text, self._spec.result_names())
        if dialect == "hlo":
            return as_hlo(self._make(located=True).text)  # XLA names parameters by their places
        raise ValueError(f"unknown dialect: {dialect}. Use 'stablehlo' or 'hlo'.")

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimate of operations and bytes before optimization; None without the devices."""
        device = self._made.devices[0]
        if isinstance(device, Placeholder):
            device = platforms.devices("cpu")[0]
        return executables.unoptimized_cost(as_hlo(self._made.text), device)

    def called_with(self, tree: Any) -> Lowered:
        """Return the stage for calls whose arguments have this structure, and these leaves."""
        spec = copy.copy(self._spec)
        spec.in_tree = tree
        return Lowered(spec, self._made, self._make, self._several)

    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        *,
        device_assignment: tuple[Any, ...] | None = None,
    ) -> Compiled:
        """Compile for the devices of the arguments, or the default device.

        A program over a mesh without devices is compiled for those of `device_assignment`.
        """
        made, located = self._made, functools.partial(self._make, located=True)
        if self._several:
            raise ValueError(
                f"{self._spec.name} was lowered for several platforms, among which its first "
                "argument chooses: lower it for one of them to compile it, or export it."
            )
        if isinstance(made.devices[0], Placeholder):
            if device_assignment is None:
                raise RuntimeError(
                    "device_assignment cannot be `None` during compilation. Please pass a tuple of "
                    f"devices to `.compile(device_assignment=)`: {self._spec.name} is over a mesh "
                    "without devices."
                )
            devices = tuple(device_assignment)
            made, located = self._make(devices), functools.partial(located, devices)
        elif device_assignment is not None and tuple(device_assignment) != made.devices:
            raise ValueError(
                "device_assignment passed to `.compile` must match the device_assignment calculated "
                "from array shardings and out_shardings. Got device ids passed to compile "
                f"{_numbers(device_assignment)} and devices ids calculated from array shardings and "
                f"out_shardings {_numbers(made.devices)}"
            )
        if compiler_options:
            made = copy.copy(made)
            made.options = {**(made.options or {}), **compiler_options}
        with override("no_execution", False):  # which is asked at each call
            return Compiled(self._spec, compile_lowered(made, located))


def _numbers(devices: Sequence[Any]) -> str:
    return f"{[d.id for d in devices]} on platform {devices[0].platform.upper()}"


class Compiled(_Stage):
    """A compiled function: takes arguments of exactly the types it was compiled for."""

    __dir__ = hiding("Spec", "out_avals")
    Spec = _Spec

    def __init__(self, spec: _Spec, program: Program) -> None:
        super().__init__(spec)
        self._program = program
        self._fast = ProgramCache()  # by the types of arguments met before
        self._read: Callable | None = None  # what gives key and operands of calls with arrays

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    else:
        __call__ = cached_call(
            "__call__", "self, /, *args, **kwargs",
            traced="return self._checked(args, kwargs)",
            lookup="""
                if self._read is None:
                    key, operands = self._key(args, kwargs)
                else:
                    try:
                        key, operands = self._read(args, kwargs)
                    except CACHE_MISS_ERRORS:
                        key, operands = self._key(args, kwargs)
                """,
            tables="self._fast.tables", given="(args, kwargs)",
            missed="self._checked(args, kwargs)",
        )  # fmt: skip

    def _key(self, args: tuple, kwargs: dict) -> tuple[tuple, list]:
        key: list[Any] = sorted(kwargs)  # as the program takes them
        named = [kwargs[name] for name in key]
        operands: list[Any] = []
        for x in (*args, *named):
            gather(x, key, operands, local.context)
        return tuple(key), operands

    def _checked(self, args: tuple, kwargs: dict) -> Any:
        spec = self._spec
        leaves, tree = tree_util.flatten((args, kwargs))
        self._check_tree(tree)
        if any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled for a "
                f"particular signature. Detected argument of Tracer type in a call of {spec.name}: "
                "use the jitted function itself."
            )
        self._check_types(leaves)
        if not opaque_types.isdisjoint(map(type, leaves)):
            leaves = [low for x in leaves for low in get_aval(x).lower_val(x)]
        leaves = [*spec.consts, *leaves]
        arrays = [_array(x._value if isinstance(x, Reference) else x) for x in leaves]
        self._check_places(arrays)
        if local.context.settings.no_execution:
            self._program.refuse(arrays)
        outs = self._program(arrays)
        count = spec.out_tree.num_leaves
        if len(outs) > count and spec.out_types is None:
            outs = slots.keep_in_refs(leaves, outs, count)
        if spec.out_types is not None:
            outs = raised(spec.out_types, outs)
        elif not spec.consts and len(outs) == count:
            execute = self._program.direct([a.signature for a in arrays])
            if execute is not None:
                self._remember(args, kwargs, leaves, execute)
        return spec.out_tree.unflatten(outs)

    call = __call__

    def _check_places(self, arrays: Sequence[ArrayImpl]) -> None:
        """ValueError for arrays that were put elsewhere, or lie otherwise, than the program takes them."""
        names, first = self._names(), len(self._spec.consts)
        wrong, misplaced = [], []
        for index, wanted in zip(self._program.kept, self._program.targets, strict=True):
            array = arrays[index]
            own = array.signature.place
            if (
                index < first
                or not array.committed
                or own is wanted
                or dtypes.is_extended(array.dtype)
            ):
                continue
            name, layout = names[index - first], layout_of(own)
            if not sharding_in(own).is_equivalent_to(sharding_in(wanted), array.ndim):
                wrong.append(
                    f"argument {name!r} of type {array.aval.str_short()} has sharding "
                    f"{sharding_in(own)}, and the program takes {sharding_in(wanted)}"
                )
            if layout != layout_of(wanted):
                taken = layout_of(wanted) or preferred(sharding_in(wanted), array.aval)
                misplaced.append(
                    f"Argument {name} with shape {array.aval.str_short()}:\n"
                    f"  Passed layout: {array.format.layout}\n  Required layout: {taken}"
                )
        if wrong or misplaced:
            what = " and ".join(["shardings"] * bool(wrong) + ["layouts"] * bool(misplaced))
            raise ValueError(
                f"Computation was compiled for input {what} that disagree with the {what} of arguments "
                f"passed to it. Here are the {len(wrong + misplaced)} mismatches:\n"
                + "\n".join(wrong + misplaced)
                + "\nPut them there with minijax.device_put."
            )

    def _remember(self, args: tuple, kwargs: dict, leaves: list, execute: Callable) -> None:
        """Let the next call like this one find its entry; one with arrays only by lines of its own."""
        entry = entry_of(self._program, self._spec.out_tree, execute, often=True)
        with contextlib.suppress(*CACHE_MISS_ERRORS):
            self._fast[self._key(args, kwargs)[0]] = entry
        if {ArrayImpl}.issuperset(map(type, leaves)):
            self._read = reader(self._spec.in_tree)
        if self._read is not None:
            with contextlib.suppress(*CACHE_MISS_ERRORS):
                self._fast[self._read(args, kwargs)[0]] = entry

    def as_text(self) -> str:
        """The optimized HLO of the executable."""
        modules = self._program.executable.hlo_modules()
        return "\n\n".join(module.to_string() for module in modules)

    def cost_analysis(self) -> dict[str, float] | None:
        """The compiler's estimate of operations and bytes; None if its platform gives none."""
        return executables.optimized_cost(self._program.executable)

    def memory_analysis(self) -> Any:
        """Sizes in bytes: arguments, results, temporaries, generated code."""
        return self._program.executable.get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        return self._program.executable

    @property
    def input_shardings(self) -> Any:
        """Return how each argument lies; None of those that nothing reads, which are left out."""
        return self.in_tree.unflatten(self._argument_places())

    def _argument_places(self) -> list[Any]:
        """Return how each leaf of the arguments lies; None of those that nothing reads."""
        places = dict(zip(self._program.kept, self._program.lowered.place.args, strict=True))
        first = len(self._spec.consts)
        return [places.get(first + index) for index in range(self.in_tree.num_leaves)]

    @property
    def output_shardings(self) -> Any:
        return self.out_tree.unflatten(self._places())

    def _places(self) -> list[Any]:
        """Return how each result lies; what references hold at the end is none."""
        return [s.sharding for s in self._program.out_signatures][: self.out_tree.num_leaves]

    @property
    def input_formats(self) -> Any:
        """Return how each argument lies in memory, and over devices; empty for those left out."""
        found = iter(self._program.executable.get_parameter_layouts()[len(self._program.hidden) :])
        return self.in_tree.unflatten(
            [
                Format() if where is None else _format(next(found), where)
                for where in self._argument_places()
            ]
        )

    @property
    def output_formats(self) -> Any:
        """Return how each result lies in memory, and over devices."""
        places = self._places()
        found = self._program.executable.get_output_layouts()[: len(places)]
        return self.out_tree.unflatten(list(map(_format, found, places)))

    @property
    def out_info(self) -> Any:
        """The types of the results, and how they lie over devices."""
        avals = self._spec.closed.out_avals
        formats = tree_util.tree_leaves(self.output_formats)
        return self.out_tree.unflatten(
            [
                ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where)
                for aval, where in zip(avals, formats, strict=True)
            ]
        )


def _stated(place: Any) -> Any:
    """Return what is known of a place before the program is compiled."""
    return sharding_in(place) if layout_of(place) is Layout.AUTO else place


def _format(layout: Any, where: Any) -> Format:
    return Format(Layout.from_pjrt_layout(layout), where)


def _array(x: Any) -> ArrayImpl:
    return x if type(x) is ArrayImpl else concrete(x)


def _strong(info: Any) -> Any:
    """The type of a result of a compiled program."""
    return info.update(weak_type=False) if isinstance(info, ShapeDtypeStruct) else info


def _agree(given: Any, aval: Any) -> bool:
    """Whether an argument has the type that a program was compiled for."""
    if given.is_high or aval.is_high:
        return given == aval
    return (given.shape, given.dtype) == (aval.shape, aval.dtype)


def _signatures(x: Any, aval: Any) -> list[Signature]:
    """The signatures of the arrays that an argument is made of."""
    lows = aval.lower_val(x) if aval.of_values() is aval and type(x) in opaque_types else [x]
    types = aval.lo_ty() if aval.is_high else [aval]
    return list(map(signature_for, lows if len(lows) == len(types) else types, types))


def signature_for(x: Any, aval: ShapedArray) -> Signature:
    """The signature that an argument given as a value or as a type has."""
    if isinstance(x, Reference):
        x = x._value
    if isinstance(x, ArrayImpl):
        return x.signature
    sharding = getattr(x, "sharding", None) if not isinstance(x, Tracer) else None
    if sharding is not None and not is_empty(sharding):
        given = getattr(x, "format", None)
        if layout_of(given) is not None:
            return Signature(aval, place_for(given, aval), True)
        return Signature(aval, Format(Layout.AUTO, sharding), True)
    return Signature(aval, shardings.single_device(platforms.default_device()), False)


def _typed(x: Any) -> Any:
    """An argument of `trace`: a value, or anything with a shape and a dtype."""
    if type(x) in opaque_types:
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        return shape_struct(abstract(x))
    if type(x) is int:
        abstract(x)  # says so if it is too large
    return x


@boundary
def trace(jitted: PjitFunction, /, *args: Any, **kwargs: Any) -> Traced:
    """Trace for arguments of these types (arrays, or anything with shape and dtype)."""
    call = jitted._marks.split(args, kwargs)
    values = call.leaves
    call.leaves = [_typed(x) for x in values]
    traced = jitted._traced(call)
    avals = [get_aval(x).for_constant(x) for x in call.leaves]
    spec = _Spec()
    spec.closed, spec.consts = without_structs(traced.closed, traced.consts)
    spec.name = traced.name
    spec.arg_names = debug_info("jit", jitted._fun, call.in_tree, call.statics).arg_names
    spec.in_tree, spec.out_tree, spec.in_avals = call.in_tree, traced.out_tree, avals
    spec.donated = list(call.donated) or [False] * len(avals)
    spec.out_types = None
    spec.signatures = [s for x, a in zip(values, avals, strict=True) for s in _signatures(x, a)]
    params = dict(jitted._params, in_shardings=None, out_shardings=None)
    if jitted._asked is not None:
        params |= jitted._asked.params(call, traced.out_tree)
    spec.options, spec.keep_unused = params["compiler_options_kvs"], params["keep_unused"]
    spec.device = params["device"]
    spec.in_shardings, spec.out_shardings = params["in_shardings"], params["out_shardings"]
    return Traced(spec)


@boundary
def lower(
    jitted: PjitFunction,
    /,
    *args: Any,
    lowering_platforms: Sequence[str] | None = None,
    _private_parameters: Any = None,
    **kwargs: Any,
) -> Lowered:
    """Lower for arguments of these types; see `trace`."""
    if jitted._asked is not None:
        jitted._asked.check(jitted._marks.split(args, kwargs))
    return trace(jitted, *args, **kwargs).lower(lowering_platforms=lowering_platforms)


@boundary
def eval_shape(jitted: PjitFunction, /, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of the results, without running anything."""
    return trace(jitted, *args, **kwargs).out_info


hooks.fill(trace=trace, lower=lower, eval_shape=eval_shape)
