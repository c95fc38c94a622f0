"""`ffi_call`: calling a compiled function that was registered with XLA by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, abstract_token, get_aval
from minijax.core.effects import Effect, control_flow_allowed, lowerable
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.lax.callbacks import VMAP_METHODS, map_call
from minijax.lowering.types import dense, element_type
from minijax.runtime.escape import key, quoted
from minijax.runtime.layouts import Layout

__all__ = ["FfiEffect", "aliases_of", "ffi_call", "ffi_call_p"]


class FfiEffect(Effect):
    """The function acts on the world outside."""

    def __repr__(self) -> str:
        return "FfiEffect()"


_effects = frozenset([FfiEffect()])
lowerable.add_type(FfiEffect)
control_flow_allowed.add_type(FfiEffect)

ffi_call_p = Primitive("ffi_call", multiple_results=True)
set_layout(ffi_call_p, parts=in_shape_rule)
ffi_call_p.effects_rule(
    lambda *, has_side_effect, **params: _effects if has_side_effect else frozenset()
)


@ffi_call_p.shape_rule
def _(*avals, result_avals, **params):
    return list(result_avals)


def _refuse(*args, target_name, **params):
    raise ValueError(
        f"The FFI call to `{target_name}` cannot be differentiated. You can use `jax.custom_jvp` or "
        "`jax.custom_vjp` to add support."
    )


ffi_call_p.jvp(_refuse)
ffi_call_p.transpose(no_rule("a foreign function is not known to be linear", ValueError))


@ffi_call_p.batch_axis
def _(axis, args, dims, *, result_avals, vmap_method, **params):
    return map_call(ffi_call_p, axis, args, dims, result_avals, vmap_method, params, _widened)


def _widened(params: dict, mapped: Sequence[bool]) -> dict:
    """The layouts of operands and results, with a leading axis more that varies slowest."""
    widen = lambda layout: (*[d + 1 for d in layout], 0)
    ins = [widen(x) if m else x for x, m in zip(params["input_layouts"], mapped, strict=True)]
    outs = tuple(map(widen, params["output_layouts"]))
    return dict(params, input_layouts=tuple(ins), output_layouts=outs)


@ffi_call_p.lower
def _(
    b, *operands, target_name, has_side_effect, input_layouts, output_layouts,
    input_output_aliases, custom_call_api_version, legacy_backend_config, attributes, **params,
):  # fmt: skip
    config = quoted(legacy_backend_config or "")
    if custom_call_api_version == 4:
        config = _attribute({name: value.value for name, value in attributes})
    return b.custom_call(
        target_name,
        operands,
        b.outs,
        config=config,
        api_version=custom_call_api_version,
        side_effect=has_side_effect,
        layouts=(input_layouts, output_layouts),
        aliases=input_output_aliases,
    )


# -- attributes -----------------------------------------------------------------------------------


class _Attribute:
    """The value of an attribute in the params of an equation: compares by what it is written as."""

    __slots__ = ("text", "value")

    def __init__(self, value: Any):
        self.value, self.text = value, _attribute(value)

    def __eq__(self, other):
        return type(other) is _Attribute and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.value)


def _array(value: np.ndarray) -> str:
    kind = element_type(value.dtype)
    return f"{dense(value)} : tensor<{''.join(f'{n}x' for n in value.shape)}{kind}>"


def _number(value: np.generic) -> str:
    if value.dtype.kind == "c":
        raise TypeError(
            f"Unsupported scalar attribute type: {type(value)}: pass its real and imaginary parts."
        )
    return f"{dense(np.asarray(value))[6:-1]} : {element_type(value.dtype)}"


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: lambda x: "true" if x else "false",
    np.bool_: lambda x: "true" if x else "false",
    int: lambda x: _number(np.int64(x)),
    float: lambda x: _number(np.float64(x)),
    str: quoted,
    bytes: lambda x: '"' + "".join(f"\\{byte:02X}" for byte in x) + '"',
    np.dtype: element_type,
    np.generic: _number,
    np.ndarray: _array,
    dict: lambda x: (
        "{" + ", ".join(f"{key(k)} = {_attribute(v)}" for k, v in sorted(x.items())) + "}"
    ),
    tuple: lambda x: f"[{', '.join(map(_attribute, x))}]",
}


def _attribute(value: Any) -> str:
    """A value as MLIR's text writes it. TypeError for what has no attribute."""
    for kind in type(value).__mro__:
        if kind in _WRITERS:
            return _WRITERS[kind](value)
    raise TypeError(f"No attribute handler defined for type: {type(value)}")


def _named(name: str, value: Any) -> tuple[str, _Attribute]:
    if isinstance(value, (list, set, Array)):
        raise TypeError(
            f"Non-hashable keyword argument to ffi_call {name}: {value}. Attributes are constants: "
            "numbers, strings, NumPy arrays, and dictionaries of those."
        )
    return name, _Attribute(value)


# -- the function ---------------------------------------------------------------------------------


def _order(layout: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions from the one that varies fastest, as XLA lists them."""
    if layout is None:
        return tuple(reversed(range(ndim)))
    order = layout.major_to_minor if isinstance(layout, Layout) else layout
    if sorted(order) != list(range(ndim)):
        raise ValueError(
            f"incorrect layout {tuple(order)} for a value of {ndim} dimensions: layout must be a "
            f"permutation of [0, {ndim}), from the dimension that varies slowest."
        )
    return tuple(reversed([int(d) for d in order]))


def _orders(what: str, layouts: Any, avals: Sequence[Any]) -> tuple:
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(
            f"The number of {what} arguments ({len(avals)}) must equal the number of {what} layouts "
            f"({len(layouts)})."
        )
    return tuple([_order(x, getattr(a, "ndim", 0)) for x, a in zip(layouts, avals, strict=True)])


def aliases_of(given: dict[int, int] | None, ins: tuple, outs: tuple, avals: Any, results: Any):
    """Pairs of an input and the output that takes its memory; ValueError unless they are alike."""
    pairs = sorted((given or {}).items())
    for index, out in pairs:
        start = f"input_output_aliases contains the mapping '{index}:{out}' "
        if not 0 <= index < len(avals):
            raise ValueError(
                f"{start}with input index {index} outside the range [0, {len(avals)})."
            )
        if not 0 <= out < len(results):
            raise ValueError(
                f"{start}with output index {out} outside the range [0, {len(results)})."
            )
        x, y = avals[index], results[out]
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise ValueError(
                f"{start}referring to an input with abstract value {x.str_short()} and an output "
                f"with a different abstract value {y.str_short()}."
            )
        if ins[index] != outs[out]:
            raise ValueError(
                f"{start}referring to an input with layout {ins[index]} and an output with a "
                f"different layout {outs[out]}."
            )
    return tuple(pairs)


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered target: `call(*arrays, **attributes)`.

    - `result_shape_dtypes`: the shape and dtype of the result, or a sequence of those
    - `has_side_effect`: run it even where nothing reads its results
    - `vmap_method`: what happens under `vmap`, as for `pure_callback`
    - `input_layouts`, `output_layouts`: for each array None (rows vary slowest), a Layout, or its
      dimensions from the one that varies slowest
    - `input_output_aliases`: which results take the memory of which arguments
    - `custom_call_api_version`: 4 is the typed FFI; older ones take `legacy_backend_config`

    Attributes are numbers, strings, NumPy arrays and dictionaries. ValueError for layouts, aliases or
    methods that do not fit, and under differentiation; JaxRuntimeError for a target that is unknown
    or refuses its arguments. Source: XLA's foreign function interface.
    """
    if vmap_method not in (None, *VMAP_METHODS):
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got: "
            f"{vmap_method}"
        )
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; "
            f"got {custom_call_api_version}."
        )
    several = isinstance(result_shape_dtypes, Sequence)
    declared = list(result_shape_dtypes) if several else [result_shape_dtypes]
    for place, x in enumerate(declared):
        if not (x is abstract_token or (hasattr(x, "shape") and hasattr(x, "dtype"))):
            raise ValueError(
                "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
                f"{x} at position {place}."
            )
    results = [
        x if x is abstract_token else ShapedArray(tuple(x.shape), np.dtype(x.dtype))
        for x in declared
    ]
    if not several and output_layouts is not None:
        output_layouts = [output_layouts]
    outs = _orders("output", output_layouts, results)

    def call(*args, **attributes):
        if attributes and custom_call_api_version < 4:
            raise ValueError(
                "Attributes are passed by legacy_backend_config where custom_call_api_version < 4; "
                f"got {sorted(attributes)}."
            )
        values = [x if isinstance(x, Array) else as_value(x) for x in tree_util.tree_leaves(args)]
        avals = [get_aval(x) for x in values]
        ins = _orders("input", input_layouts, avals)
        found = ffi_call_p.bind(
            *values,
            target_name=target_name,
            result_avals=tuple(results),
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
            input_layouts=ins,
            output_layouts=outs,
            input_output_aliases=aliases_of(input_output_aliases, ins, outs, avals, results),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            attributes=tuple(_named(name, attributes[name]) for name in sorted(attributes)),
        )
        return type(result_shape_dtypes)(found) if several else found[0]

    return call
