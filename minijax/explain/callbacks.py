"""Callbacks in programs that are written as Python, which takes the functions from `callbacks`."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from minijax.arguments.functions import fun_name
from minijax.core.effects import ordered_types
from minijax.core.primitive import Primitive
from minijax.explain.literals import Operand, literal, operand, struct_text, tree_text, tuple_text
from minijax.lax.buffer_callbacks import buffer_callback_p
from minijax.lax.callbacks import io_callback_p, pure_callback_p
from minijax.lax.debug_callbacks import debug_callback_p, debug_print_p, inspect_sharding_p

__all__ = ["RULES", "arguments"]

# NumPy's own print options, which the text need not name.
_PRINT_OPTIONS = {
    "edgeitems": 3, "floatmode": "maxprec", "formatter": None, "infstr": "inf", "legacy": False,
    "linewidth": 75, "nanstr": "nan", "override_repr": None, "precision": 8, "sign": "-",
    "suppress": False, "threshold": 1000,
}  # fmt: skip


def arguments(tree: Any, operands: Sequence[str]) -> list[str] | None:
    """The texts of the arguments of a call; None where they hold containers without a text."""
    try:
        args, kwargs = tree.unflatten(map(Operand, operands))
        found = [tree_text(x, operand) for x in args]
        return found + [f"{name}={tree_text(kwargs[name], operand)}" for name in kwargs]
    except Exception:  # a container that holds no texts
        return None


def _results(avals: Sequence[Any]) -> list[str]:
    return list(map(struct_text, avals))


def _returned(avals: Sequence[Any]) -> str:
    return tuple_text(_results(avals))


def _given(options: dict[str, Any]) -> list[str]:
    return [
        f"{name}={literal(x)}" for name, x in options.items() if x is not None and x is not False
    ]


def _calls(function: str, *options: str) -> Callable[..., str]:
    """The rule of a callback that has results."""

    def rule(body, eqn, operands, *, callback, result_avals, **params):
        called, args = callback.callback_func, arguments(callback.in_tree, operands)
        if args is None:
            called, args = callback, list(operands)
        given = _given({name: params[name] for name in ("sharding", *options)})
        named = body.module.callback(called, fun_name(callback.callback_func))
        return f"{function}({', '.join([named, _returned(result_avals), *args, *given])})"

    return rule


def _buffer_callback(
    body, eqn, operands, *, callback, in_tree, out_tree, result_avals, input_output_aliases, **params,
):  # fmt: skip
    called, args = callback, arguments(in_tree, operands)
    try:
        outs = tree_text(out_tree.unflatten(map(Operand, _results(result_avals))), operand)
    except Exception:  # a container that holds no texts
        outs = None
    if args is None or outs is None:
        called, outs, args = _flat(callback, in_tree, out_tree), _returned(result_avals), operands
    aliases = dict(input_output_aliases) or None
    given = _given({"input_output_aliases": aliases, **params})
    made = ", ".join([body.module.callback(called, fun_name(callback)), outs, *given])
    return f"jax.tree.leaves(buffer_callback({made})({', '.join(args)}))"


def _flat(callback: Callable, in_tree: Any, out_tree: Any) -> Callable:
    """`callback`, called with the leaves of its results and of its arguments."""

    def called(context, outs, *leaves):
        args, kwargs = in_tree.unflatten(leaves)
        callback(context, out_tree.unflatten(outs), *args, **kwargs)

    return called


def _debug_callback(body, eqn, operands, *, callback, effect, partitioned):
    named = body.module.callback(callback, fun_name(inspect.unwrap(callback)))
    given = _given({"ordered": ordered_types.contains(effect), "partitioned": partitioned})
    return f"jax.debug.callback({', '.join([named, *operands, *given])})"


def _debug_print(
    body, eqn, operands, *, fmt, in_tree, static_args, np_printoptions, ordered, partitioned,
    logging_record, has_placeholders,
):  # fmt: skip
    texts = list(operands)
    for place, value in static_args:
        texts.insert(place, literal(value))
    args = body.module.arguments(in_tree, texts)
    unused = has_placeholders and _unused(fmt, args)
    options = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": unused}
    function = "print" if logging_record is None else "log"
    text = f"jax.debug.{function}({', '.join([repr(fmt), *args, *_given(options)])})"
    changed = {
        name: value for name, value in np_printoptions
        if name not in _PRINT_OPTIONS or value != _PRINT_OPTIONS[name]
    }  # fmt: skip
    if not changed:
        return text
    told = ", ".join(f"{name}={literal(value)}" for name, value in changed.items())
    return f"with np.printoptions({told}): {text}"


def _unused(fmt: str, args: Sequence[str]) -> bool:
    """Whether a format leaves arguments out, which `debug.print` refuses unless it is told."""
    fields = [field for _, field, _, _ in string.Formatter().parse(fmt) if field is not None]
    named = [re.split(r"[.\[]", field)[0] for field in fields]
    names = {*filter(None, named), *map(str, range(named.count("")))}
    keys = [re.match(r"(\w+)=", arg) for arg in args]
    wanted = {key[1] if key else str(n) for n, key in enumerate(keys)}
    return not wanted <= names


def _inspect_sharding(body, eqn, operands, *, callback):
    named = body.module.callback(callback, fun_name(callback))
    return f"jax.debug.inspect_array_sharding({operands[0]}, callback={named})"


RULES: dict[Primitive, Callable] = {
    buffer_callback_p: _buffer_callback,
    debug_callback_p: _debug_callback,
    debug_print_p: _debug_print,
    inspect_sharding_p: _inspect_sharding,
    io_callback_p: _calls("io_callback", "ordered"),
    pure_callback_p: _calls("jax.pure_callback", "vmap_method"),
}
