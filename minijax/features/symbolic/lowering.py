"""Programs whose sizes are known only when they are called: StableHLO with dynamic shapes.

Lowering rules are as ever: where a type has a symbolic size, a `DynamicBuilder` writes the dynamic
form of an operation in place of the static one, with sizes that it computes from those of the
function's arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr
from minijax.features.queries import is_dim
from minijax.features.sharding.lowering import ShardedBuilder
from minijax.features.symbolic.dims import DimExpr
from minijax.lowering.module import Builder, Module, Value
from minijax.lowering.types import physical

__all__ = ["DynamicBuilder", "is_symbolic", "solved"]

_INT = np.dtype(np.int32)
_SCALAR = ShapedArray((), _INT)


def is_symbolic(aval: Any) -> bool:
    """Whether a type has a size that depends on dimension variables."""
    return any(map(is_dim, getattr(aval, "shape", ())))


def solved(shapes: Sequence[Sequence[Any]]) -> tuple[dict[str, tuple], list[tuple]]:
    """Return how each variable follows from the sizes: `name -> (argument, axis, factor, rest)`.

    A size is `factor * variable + rest`, of which `rest` has variables before it only. The other
    result are the symbolic sizes that no variable follows from.
    """
    found: dict[str, tuple] = {}
    left = [
        (place, axis, size)
        for place, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
        if is_dim(size)
    ]
    while left:
        for entry in left:
            place, axis, size = entry
            new = size.variables() - set(found)
            linear = size.linear(new.pop()) if len(new) == 1 else None
            if linear is not None:
                name, factor, rest = linear
                found[name] = (place, axis, factor, rest)
                left.remove(entry)
                break
        else:
            break
    return found, [entry for entry in left if entry[2].variables() - set(found)]


# The static form, the dynamic one, and the attributes that become operands; "shape" is the result's.
_FORMS = {
    "stablehlo.broadcast_in_dim": ("stablehlo.dynamic_broadcast_in_dim", ("shape",)),
    "stablehlo.reshape": ("stablehlo.dynamic_reshape", ("shape",)),
    "stablehlo.iota": ("stablehlo.dynamic_iota", ("shape",)),
    "stablehlo.slice": (
        "stablehlo.real_dynamic_slice", ("start_indices", "limit_indices", "strides")
    ),
    "stablehlo.pad": (
        "stablehlo.dynamic_pad", ("edge_padding_low", "edge_padding_high", "interior_padding")
    ),
    "stablehlo.gather": ("stablehlo.dynamic_gather", ("slice_sizes",)),
}  # fmt: skip
_DYNAMIC_BITS = "stablehlo.dynamic_rng_bit_generator"
# A list with a size that has variables.
_WITH_VARIABLES = r"= array<i64: [^>]*[^\W\d]"


class DynamicBuilder(ShardedBuilder):
    """Writes functions whose arguments have symbolic sizes."""

    __slots__ = ("root", "sizes", "variables")

    def __init__(self, module: Module, outer: DynamicBuilder | None = None, *, isolated=False):
        super().__init__(module, outer, isolated=isolated)
        self.root: DynamicBuilder = self if outer is None else outer.root
        if outer is None:
            self.sizes: dict[Any, Value] = {}
            self.variables: dict[str, Callable[[], Value]] = {}

    # -- sizes as values ---------------------------------------------------------------------------

    def begin(self, args: Sequence[Value]) -> None:
        known, _ = solved([getattr(physical(x.aval), "shape", ()) for x in args if _is_array(x)])
        arrays = [x for x in args if _is_array(x)]
        for name, (place, axis, factor, rest) in known.items():
            self.variables[name] = lambda x=arrays[place], a=axis, f=factor, r=rest: self._solve(
                x, a, f, r
            )

    def _solve(self, x: Value, axis: int, factor: int, rest: Any) -> Value:
        size = self._early("stablehlo.get_dimension_size", (x,), f"dimension = {axis} : i64")
        size = self._binary("subtract", size, rest)
        return size if factor == 1 else self._binary("divide", size, factor)

    def _early(
        self, name: str, operands: Sequence[Value], attributes: str = "", out=_SCALAR
    ) -> Value:
        """An operation at the top of the function."""
        root = self.root
        lines, root.lines = root.lines, root.prologue
        made = Builder.op(root, name, operands, out, attributes)
        root.lines = lines
        return made

    def _binary(self, name: str, x: Any, y: Any) -> Value:
        if not is_dim(y) and not isinstance(y, Value) and y == (1 if name == "multiply" else 0):
            if name in ("multiply", "subtract", "add") and isinstance(x, Value):
                return x
        return self._early(f"stablehlo.{name}", (self.size(x), self.size(y)))

    def size(self, x: Any) -> Value:
        """A size as a value, int32, which is computed once, at the top of the function."""
        root = self.root
        if isinstance(x, Value):
            return x
        if not is_dim(x):
            return root.constant(np.int32(x), _SCALAR)
        if x not in root.sizes:
            root.sizes[x] = self._polynomial(x)
        return root.sizes[x]

    def _polynomial(self, x: DimExpr) -> Value:
        total: Any = 0
        for monomial, count in x.terms:
            product: Any = count
            for term, power in monomial:
                value = self._term(term)
                for _ in range(power):
                    product = self._binary("multiply", value, product)
            total = product if not isinstance(total, Value) else self._binary("add", total, product)
        return total

    def _term(self, term: Any) -> Value:
        if not term.operands:
            try:
                return self.root.sizes.get(term) or self.root.sizes.setdefault(
                    term, self.root.variables[term.name]()
                )
            except KeyError:
                raise NotImplementedError(
                    f"the size '{term.name}' is not known where it is needed, within a function of "
                    "the program that no argument tells it to."
                ) from None
        x, y = map(self.size, term.operands)
        if term.name in ("max", "min"):
            return self._binary(f"{term.name}imum", x, y)
        rest = self._binary("remainder", x, y)
        below = self._early(
            "stablehlo.compare", (self._binary("multiply", rest, y), self.size(0)),
            "compare_type = #stablehlo<comparison_type SIGNED>, "
            "comparison_direction = #stablehlo<comparison_direction LT>",
            ShapedArray((), np.dtype(np.bool_)),
        )  # fmt: skip
        if term.name == "mod":
            up = self._binary("add", rest, y)
            return self._early("stablehlo.select", (below, up, rest))
        quotient = self._binary("divide", x, y)
        down = self._binary("subtract", quotient, 1)
        return self._early("stablehlo.select", (below, down, quotient))

    def vector(self, sizes: Sequence[Any]) -> Value:
        """Sizes as one array, int32."""
        out = ShapedArray((len(sizes),), _INT)
        if not any(is_dim(size) for size in sizes):
            return self.root.constant(np.array(sizes, np.int32).reshape(len(sizes)), out)
        key = tuple(sizes)
        if key not in self.root.sizes:
            one = ShapedArray((1,), _INT)
            parts = [self._early("stablehlo.reshape", (self.size(s),), out=one) for s in sizes]
            self.root.sizes[key] = self._early(
                "stablehlo.concatenate", parts, "dimension = 0 : i64", out
            )
        return self.root.sizes[key]

    # -- operations --------------------------------------------------------------------------------

    def op(self, name: str, operands: Sequence[Value], out: Any, attributes: str = "") -> Value:
        if name == "stablehlo.dynamic_slice" and is_symbolic(out):
            return self._dynamic_slice(*operands, out=out)
        form = _FORMS.get(name)
        if form is None or not (is_symbolic(out) or re.search(_WITH_VARIABLES, attributes)):
            return super().op(name, operands, out, attributes)
        dynamic, moved = form
        given = list(operands)
        for field in moved:
            if field == "shape":
                given.append(self.vector(physical(out).shape))
                continue
            pattern = re.compile(rf"(?:, )?{field} = array<i64(?:: (.*?))?>")
            text = pattern.search(attributes)[1] or ""
            attributes = pattern.sub("", attributes).removeprefix(", ")
            given.append(self.vector(self._read(text, (out, *[x.aval for x in operands]))))
        return super().op(dynamic, given, out, attributes)

    def op_n(
        self, name: str, operands: Sequence[Value], outs: Sequence[Any], attributes: str = "",
        *regions: Any, **options: Any,
    ) -> list[Value]:  # fmt: skip
        if name == "stablehlo.rng_bit_generator" and is_symbolic(outs[-1]):
            # StableHLO has no dynamic form; its refinement of shapes knows a custom call instead.
            operands = [*operands, self.vector(physical(outs[-1]).shape)]
            name, options["extra"] = "stablehlo.custom_call", attributes
            attributes = f'call_target_name = "{_DYNAMIC_BITS}", api_version = 2 : i32'
        return super().op_n(name, operands, outs, attributes, *regions, **options)

    def _dynamic_slice(self, x: Value, *starts: Value, out: Any) -> Value:
        """A window, moved so that it lies within the array."""
        one, shape = ShapedArray((1,), _INT), ShapedArray((len(starts),), _INT)
        sizes = self.vector(physical(out).shape)
        rows = [
            Builder.op(self, "stablehlo.reshape", (self.convert(s, _INT),), one) for s in starts
        ]
        first = Builder.op(self, "stablehlo.concatenate", rows, shape, "dimension = 0 : i64")
        most = self._early(
            "stablehlo.subtract", (self.vector(physical(x.aval).shape), sizes), out=shape
        )
        zero = self.root.constant(np.zeros(len(starts), np.int32), shape)
        first = Builder.op(self, "stablehlo.clamp", (zero, first, most), shape)
        last = Builder.op(self, "stablehlo.add", (first, sizes), shape)
        steps = self.root.constant(np.ones(len(starts), np.int32), shape)
        return Builder.op(self, "stablehlo.real_dynamic_slice", (x, first, last, steps), out)

    def _read(self, text: str, avals: Sequence[Any]) -> list[Any]:
        """The sizes that a list of them was written as; a size of these types tells the scope."""
        scope = next(size.scope for aval in avals for size in aval.shape if is_dim(size))
        return list(scope.read(text))

    def custom_call(
        self, target: str, operands: Sequence[Value], outs: Sequence[Any], **options: Any
    ) -> list[Value]:
        """A custom call that is told the shapes of its results, if these depend on variables."""
        if not any(map(is_symbolic, outs)):
            return super().custom_call(target, operands, outs, **options)
        shapes = [self.vector(physical(out).shape) for out in outs]
        places = [*range(len(operands), len(operands) + len(shapes))]
        told = f"indices_of_shape_operands = dense<{places}> : tensor<{len(places)}xi64>"
        extra = options.pop("extra", "")
        if options.get("layouts") is not None:
            given, made = options["layouts"]
            options["layouts"] = ([*given, *[[0]] * len(shapes)], made)
        extra = f"{extra}, {told}" if extra else told
        return super().custom_call(target, (*operands, *shapes), outs, extra=extra, **options)

    def constant(self, value: Any, aval: ShapedArray | None = None) -> Value:
        aval = get_aval(value) if aval is None else aval
        if is_symbolic(aval):
            return self.broadcast(super().constant(value, aval.update(shape=())), aval.shape, ())
        return super().constant(value, aval)

    def call_jaxpr(self, closed: ClosedJaxpr, name: str, *args: Value) -> list[Value]:
        """Write the equations in place: a function would have to be told the sizes."""
        return self.closed_jaxpr(closed, *args)


def _is_array(x: Value) -> bool:
    return hasattr(x.aval, "dtype")


hooks.fill(builder_for=lambda avals: DynamicBuilder if any(map(is_symbolic, avals)) else None)
