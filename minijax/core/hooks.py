"""Slots through which features extend `core`, `transforms`, `lowering` and `arrays`.

These packages call a slot by its name, as in `hooks.discharged(jaxpr)`. A feature fills it once, when
it is imported: `hooks.fill(discharged=discharged)`. Until then a slot does what its method of `Hooks`
says, which is what programs need that do not use the feature: a first reader may take it as that;
where nothing runs without one, as for `place`, it raises an error that names the slot.
Where an attribute of a class is a slot, or a call more would cost too much, `hooks.method` makes the
function an attribute of the class. The sections are named after the modules that fill them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax import tree_util

__all__ = ["Hooks", "Slots", "hooks"]


class Slots:
    """Base class: each method that a subclass adds is a slot."""

    def __init__(self) -> None:
        self._filled: set[str] = set()
        self._methods: dict[str, list[tuple[type, str]]] = {}

    def fill(self, **functions: Callable[..., Any]) -> None:
        """Put functions into slots. ValueError for a slot that does not exist or is filled."""
        for name, function in functions.items():
            if not hasattr(type(self), name):
                raise ValueError(f"There is no slot {name!r}: see the methods of {type(self)}.")
            if name in self._filled:
                known = getattr(self, name)
                raise ValueError(f"The slot {name!r} is filled already, by {known.__module__}.")
            self._filled.add(name)
            setattr(self, name, function)
            for owner, attribute in self._methods.get(name, ()):
                setattr(owner, attribute, function)

    def method(self, name: str, owner: type, attribute: str) -> None:
        """Make the function in a slot an attribute of a class, now or when the slot is filled."""
        self._methods.setdefault(name, []).append((owner, attribute))
        if name in self._filled:
            setattr(owner, attribute, getattr(self, name))


class Hooks(Slots):
    """The slots. A comment above each group says which modules fill them."""

    # -- eager execution: arrays, features.constants, explain.strictness ---------------------------

    def run_primitive(self, trace: Any, primitive: Any, args: Any, params: dict) -> Any:
        """Run a primitive at once on concrete operands; the `process` of the outermost trace."""
        raise NotImplementedError("Nothing runs primitives: import minijax.arrays.dispatch.")

    def shared_constant(self, x: Any) -> Any:
        """Return a large array of the host as an array; where a program is recorded, one for it."""

    def array_of(self, number: Any, x64: bool) -> Any:
        """Return a number as an array of the dtype that it has with 64-bit dtypes on, or off."""
        raise NotImplementedError("Nothing makes arrays: import minijax.arrays.array.")

    def converted(self, value: Any, dtype: Any) -> Any:
        """Return an array of the host in another dtype, in which its values may be others."""
        return value.astype(dtype)

    # -- diagnostics: features.diagnostics, features.source_info, features.array_members -----------

    def check_module(self, lowered: Any) -> None:
        """Raise an error for a module over which XLA would end the process."""

    def lowered(self, lowered: Any, closed: Any) -> None:
        """Tell of a jaxpr that was lowered what the settings ask for."""

    def compiling(self, lowered: Any) -> Callable[[], None]:
        """Note that a module is about to be compiled; return a function to call afterwards."""
        return lambda: None

    def tell_places(self, module: Any, attributes: Any, names: Any) -> Any:
        """Have a module say where its operations were made; return the attributes of arguments."""
        return attributes

    def compile_error(self, message: str, lowered: Any, located: Callable) -> str:
        """Return what a compiler said, with the operation that it would not compile."""
        return message

    def say_place(self, error: NotImplementedError, eqn: Any) -> None:
        """Have the error of a lowering rule name the operation, and the user's line."""

    def result_check(self, name: str) -> Any:
        """Return a function of the arguments and results of each run of a program, or None.

        Its method `specialize` is called with the program, if there is one.
        """
        return None

    def explain_cache_miss(self, fun: Callable, key: tuple, earlier: Any) -> None:
        """Log why a function is traced again."""

    def origin(self, tracer: Any) -> str:
        """Return what is being traced, and which arguments and operations a tracer comes from."""
        return ""

    def source_info(self, eqn: Any) -> Any:
        """Return the place of an equation in the user's program, and the scopes there."""
        return eqn.source

    def where(self, source_info: Any, settings: Any) -> tuple[Any, str]:
        """Return the place and the scope of an equation with this `source_info` and `ctx`."""
        return source_info, ""

    def settings_of(self, eqn: Any) -> Any:
        """Return the settings that an equation is to be evaluated under."""

    def note_tracing(self, jitted: Any, call: Any, avals: tuple, seconds: float) -> None:
        """Note that a jitted function has been traced for these arguments, and how long it took."""

    def explain_cache(self, jitted: Any, /) -> Any:
        """Return what is kept of a jitted function; its method of this name."""
        raise NotImplementedError("Nothing lists caches: import minijax.features.diagnostics.")

    def check_executed(self, args: Any, error: Exception) -> None:
        """Raise the documented error where jaxlib refused the arguments of a program."""

    def unknown_value(self, tracer: Any, asked: str) -> Exception:
        """Return the error for a tracer whose value was asked for, and is not known."""
        return TypeError(f"{tracer.described()} has no value while it is traced ({asked}).")

    def escaped_tracer(self, tracer: Any) -> Exception:
        """Return the error for a tracer whose trace has ended, or is another thread's."""
        return TypeError(f"{tracer.described()} was used after its trace had ended.")

    def watch_leaks(self, trace: Any) -> Callable[[], None]:
        """Return a function to call when a trace has ended and its maker has dropped it."""
        return lambda: None

    # -- keys: lax.key_reuse -----------------------------------------------------------------------

    def watcher_of(self, closed: Any) -> Callable | None:
        """Return a function of the arguments, to call before each run of a program, or None.

        That returns a function of the results. Used while the reuse of keys is checked.
        """
        return None

    # -- printing: features.printing ---------------------------------------------------------------

    def format_jaxpr(self, jaxpr: Any, **options: Any) -> str:
        """Return the text of a jaxpr."""
        return object.__repr__(jaxpr)

    def format_eqn(self, eqn: Any, **options: Any) -> str:
        """Return the text of an equation."""
        return object.__repr__(eqn)

    # -- stages of compilation: features.stages ----------------------------------------------------

    def trace(self, jitted: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Trace a jitted function for arguments like these; its method of this name."""
        raise NotImplementedError("Nothing compiles ahead of time: import minijax.features.stages.")

    def lower(self, jitted: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Trace a jitted function for arguments like these and write its module; its method."""
        raise NotImplementedError("Nothing compiles ahead of time: import minijax.features.stages.")

    def eval_shape(self, jitted: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the results of a jitted function; its method of this name."""
        raise NotImplementedError("Nothing compiles ahead of time: import minijax.features.stages.")

    def shape_struct(self, aval: Any) -> Any:
        """Return the `ShapeDtypeStruct` that users are given in place of a type."""
        return aval

    def unvalued(self, operand: Any, primitive: Any) -> Any:
        """Return an operand that is no array as one, for a program that may make no use of it."""
        raise TypeError(f"{operand!r} of type {type(operand)} cannot become an array")

    # -- containers that `vmap` maps by functions of their own: features.vmappable -----------------

    def flatten_mapped(self, tree: Any) -> tuple[list[Any], Any]:
        """Return the leaves and the structure of what is mapped; registered containers are leaves."""
        return tree_util.flatten(tree)

    def is_axis_spec(self, x: Any) -> bool:
        """Whether `x` says, in a tree of axes, how a value is mapped that is no array."""
        return False

    def elements(self, leaves: Any, axes: Any) -> Any:
        """Return the arrays of arguments that are registered containers; None if there are none."""
        return None

    def wholes(self, leaves: Any, axes: Any, size: int) -> Any:
        """Return the arrays of results that are registered containers; None if there are none."""
        return None

    # -- programs over devices: features.sharding, features.donation -------------------------------

    def donations(self, lowered: Any, jaxpr: Any, args: Any) -> list[str]:
        """Return the attributes of arguments in a module, which mark those that are donated."""
        return [""] * len(jaxpr.invars)

    def moved(self, value: Any, target: Any, copy: bool) -> Any:
        """Return an array as another place says, where one of the two is no sharding of one device."""
        raise NotImplementedError("Nothing moves parts: import minijax.features.sharding.")

    def place(self, jaxpr: Any, signatures: Any, **asked: Any) -> Any:
        """Return the devices of a program, and the shardings of its arguments and results.

        The object, a `ProgramPlacement`, has `devices`, `args` (the shardings of arguments), `committed`
        (of results) and `spmd` (several devices), and methods `home` (the sharding of a constant),
        `places` (in the compiled program), `attributes` (in the module) and `checked` (for donation).
        ValueError if these arguments and shardings are for different devices.
        """
        raise NotImplementedError("Nothing places programs: import minijax.features.sharding.")

    def asked_shardings(self, ins: Any, outs: Any) -> Any:
        """Return the shardings that `jit` is asked for, hashable; None if it is not asked for any."""
        if ins is outs is None:
            return None
        raise NotImplementedError("Nothing reads shardings: import minijax.features.sharding.")

    def placed_as(self, x: Any, where: Any, name: str) -> Any:
        """Return a result of a library function with the sharding that was asked for."""
        raise NotImplementedError("Nothing reads shardings: import minijax.features.sharding.")

    def as_primal_placed(self, ct: Any, aval: Any) -> Any:
        """Return a cotangent with the placement that belongs to its primal, which has this type."""
        return ct

    def unplaced(self, aval: Any) -> Any:
        """Return a type without its placement."""
        return aval

    # -- types with a placement: features.sharding, lax.casts --------------------------------------

    def placement(self, aval: Any, shape: Any, stated: dict) -> Any:
        """Return the placement of a type of this shape.

        It is made of the type `aval`, or of none, and of what is stated, by name.
        """
        if any(value is not None for value in stated.values()):
            raise NotImplementedError(
                f"Nothing places {list(stated)}: import minijax.features.sharding."
            )
        return None

    def member_of_type(self, aval: Any, name: str) -> Any:
        """Return an attribute of a type that follows from its placement."""
        raise AttributeError(name)

    def shown_placement(self, aval: Any, mesh_axis_types: bool) -> tuple[Any, str, str]:
        """Return the sizes that a type shows, and what stands before and behind them."""
        return map(str, aval.shape), "", ""

    def without_axis(self, aval: Any, axis: int) -> Any:
        """Return the type of one slice, along an axis, of a value that has a placement."""
        raise NotImplementedError

    def with_axis(self, aval: Any, axis: int, size: int, split: Any) -> Any:
        """Return the type of values stacked along a new axis, where these or the axis are placed."""
        raise NotImplementedError

    def cotangent_type(self, aval: Any) -> Any:
        """Return the type of a cotangent of a value that has a placement."""
        raise NotImplementedError

    def type_at(self, aval: Any, where: Any) -> Any:
        """Return the type of an array that has this sharding."""
        return aval

    def stated_sharding(self, aval: Any) -> Any:
        """Return the sharding that a type states, or None."""
        return None

    def batched_sharding(self, where: Any, x: Any, dim: int, out_dim: int) -> Any:
        """Return the sharding of a mapped result, from the one of its elements."""
        raise NotImplementedError

    def mapped_axis(self, leaves: Any, dims: Any, spmd_name: Any) -> Any:
        """Return the mesh axes that the axis mapped by `vmap` is sharded over, or None."""
        return None

    def adds_in_place(self, aval: Any) -> bool:
        """Whether a rule may add to a sum of a type that has a placement: see `UndefinedPrimal`."""
        return False

    def is_cotangent_of(self, given: Any, wanted: Any) -> bool:
        """Whether a value is a cotangent, or a tangent, of the type that is wanted."""
        return True

    def layout(self, primitive: Any, avals: Any, params: dict) -> Any:
        """Return the types of the results of a primitive, with their placements."""
        return primitive.rule_shape(*avals, **params)

    def varied(self, x: Any, aval: Any) -> Any:
        """Return a value that varies over the manual mesh axes that a type says."""
        return x

    def aligned(self, trace: Any, atoms: Any, error: Any) -> Any:
        """Return the operands of an equation as its layout rule, which raised `error`, wants them."""
        raise error

    # -- tracers: core.staging, transforms.jvp, transforms.batching; types may override them -------

    def staged_tracer(self, trace: Any, var: Any) -> Any:
        """Return the tracer that stands for a variable of a jaxpr that is being recorded."""
        raise NotImplementedError("Nothing records: import minijax.core.staging.")

    def jvp_tracer(self, trace: Any, aval: Any, primal: Any, tangent: Any) -> Any:
        """Return the tracer that stands for a primal with a tangent."""
        raise NotImplementedError("Nothing differentiates: import minijax.transforms.jvp.")

    def batch_tracer(self, trace: Any, aval: Any, value: Any, dim: Any) -> Any:
        """Return the tracer that stands for a value with a batch axis."""
        raise NotImplementedError("Nothing maps: import minijax.transforms.batching.")

    # -- calls made often: features.codegen_calls --------------------------------------------------

    def call_reader(
        self, readers: dict, args: tuple, kwargs: dict, statics: Any, static_names: Any
    ) -> Callable | None:
        """Return `read(args, kwargs) -> key, operands` for calls with the structure of this one.

        It is generated, and faster than `PjitFunction._key`; it raises one of CACHE_MISS_ERRORS for
        another structure. `statics` and `static_names` say which arguments are static; `readers`
        keeps it. None if there is no such function.
        """
        return None

    def result_builder(self, tree: Any, signatures: Any) -> Callable | None:
        """Return a generated `build(buffers)`, which makes a pytree of arrays of these types, or None."""
        return None

    # -- what `vjp` gives: features.vjp ------------------------------------------------------------

    def vjp_function(self, flat: Any, primals: Any, in_tree: Any, pullback_of: Any) -> tuple:
        """Return the results of a function, and the function of cotangents that `vjp` gives."""
        return pullback_of(flat, primals, in_tree)

    # -- effects: features.effects -----------------------------------------------------------------

    def run_with_effects(self, program: Any, operands: Any) -> Any:
        """Run a program that has effects, ordered ones after those of the programs before."""
        raise NotImplementedError("Nothing orders effects: import minijax.features.")

    def on_operands(self, effects: frozenset, atoms: Any, params: dict) -> frozenset:
        """Return the effects of an equation; effects on an input refer to its operand."""
        return effects

    def check_effects(self, jaxpr: Any) -> None:
        """Raise ValueError if a program that was recorded must not have its effects."""

    # -- values that are no arrays: features.hijax -------------------------------------------------

    def recorded(self, eqn: Any) -> None:
        """Note an equation that has effects, when it has been recorded."""

    def as_arrays(self, closed: Any) -> tuple[Any, list[Any]] | None:
        """Return a program on the arrays that values are made of, and the types of its results.

        None for a program on arrays. Called before a program is compiled.
        """
        return None

    def call_on_arrays(self, trace: Any, primitive: Any, args: Any, params: dict) -> Any:
        """Return the results of a primitive that holds programs on values that are no arrays.

        None if all are on arrays. Called before a primitive that holds programs is run.
        """
        return None

    # -- references: features.references, lax.ref_views --------------------------------------------

    def bind_call(self, primitive: Any, /, *args: Any, **params: Any) -> Any:
        """Apply a primitive that calls programs; its method `bind`, in place of `Primitive.bind`."""
        raise NotImplementedError

    def check_operands(self, primitive: Any, avals: Any) -> None:
        """Raise TypeError for references, if the primitive does not take any."""

    def check_arguments(
        self, what: str, leaves: Any, fun: Any, in_tree: Any, outer: Any = (), statics: Any = ()
    ) -> None:
        """Raise ValueError if the same reference is passed twice, or passed and closed over."""

    def is_lasting(self, x: Any) -> bool:
        """Whether a program that closes over a value that is no array may be kept for other calls."""
        return False

    def mapped_cells(self, leaves: Any, dims: Any) -> Any:
        """Return the references among the arguments of a mapped function; None if there are none."""
        return None

    def member_of_tracer(self, tracer: Any, name: str) -> Any:
        """Return an attribute, which arrays do not have, of a tracer for a value of another type."""
        raise AttributeError(name)

    def discharged(self, jaxpr: Any) -> Any | None:
        """Return a program without the references that it makes; None if it makes none."""
        return None

    # -- symbolic sizes: features.symbolic ---------------------------------------------------------

    def is_expression(self, size: Any) -> bool:
        """Whether a size is symbolic: known only when a program is called."""
        return False

    def builder_for(self, avals: Any) -> type | None:
        """Return the class of the builder of functions with symbolic sizes; None without these."""
        return None

    # -- modules: features.sharding, features.export, features.frontend_attributes -----------------

    def refined(self, text: str) -> str:
        """Return the module with the symbolic sizes that follow from its arguments filled in."""
        raise NotImplementedError("Nothing refines modules: import minijax.features.export.")

    def make_module(self, name: str, platform: str, *, devices: tuple = (None,)) -> Any:
        """Return a new module for these devices; `Module.make`."""
        raise NotImplementedError("Nothing writes modules: import minijax.lowering.module.")

    def on_scopes(self, fun: Callable[..., str], *scopes: str) -> str:
        """Return the result of a function of scopes, for scopes that carry attributes."""
        raise NotImplementedError

    def mark_lines(self, lines: list, start: int, marks: Any, primitive: Any) -> None:
        """Add attributes that the user set to the operations from line `start` on."""

    def lowered_type(self, aval: Any) -> Any:
        """Return the type that an operand of a lowering rule has where that traces a function."""
        return aval


hooks = Hooks()
