"""Counterparts of upstream's private functions that print programs; `modules` says for which
modules.

A document is that of `features.printing`, and names of variables are kept in its printer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.core.effects import Effect
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.features import printing
from minijax.features.printing import Doc

# -- documents -------------------------------------------------------------------------------------


def nil() -> Doc:
    """Nothing."""
    return Doc([])


def text(text: str, annotation: str | None = None, **shown_by_browsers: Any) -> Doc:
    """Text of one line."""
    return Doc([text])


def brk(text: str = " ") -> Doc:
    """A place where a line may break; `text` where it does not."""
    return Doc([printing._Break(text)])


def concat(children: Sequence[Doc]) -> Doc:
    """Documents in a row."""
    return Doc(list(children))


def group(doc: Doc) -> Doc:
    """A document that stands on one line if it fits, and breaks at all of its places if not."""
    return Doc([doc], group=True)


def nest(n: int, doc: Doc) -> Doc:
    """A document whose lines, but the first, are indented."""
    return Doc([doc], n)


def join(sep: Doc, docs: Sequence[Doc]) -> Doc:
    """Documents with a separator between each two."""
    return Doc(printing._joined(sep, docs))


def keyword(child: Doc, **colors: Any) -> Doc:
    """A document in the color of keywords: text has no colors here."""
    return child


type_annotation = keyword

# -- programs --------------------------------------------------------------------------------------


class JaxprPpSettings(NamedTuple):
    """Options of printing a program."""

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


class JaxprPpContext:
    """The names of variables so far."""

    def __init__(self, var_names: dict[Var, str] | None = None):
        self._printer = printing._Printer(printing._Options())
        self.var_names = self._printer.var_names
        self.var_names.update(var_names or {})

    def _with(self, settings: JaxprPpSettings) -> printing._Printer:
        self._printer.options = printing._options(**settings._asdict())
        return self._printer


def pp_var(
    v: Var | Literal, context: JaxprPpContext, *, print_literal_dtype: bool = True,
    is_binder: bool = False,
) -> str:  # fmt: skip
    """The name of a variable, or a number."""
    return context._printer.atom(v, print_literal_dtype)


def pp_vars(
    vs: Sequence[Any], context: JaxprPpContext, *, separator: str = "", print_shapes: bool = False,
    is_binder: bool = False,
) -> Doc:  # fmt: skip
    """Variables, with their types or without."""
    shown = [context._printer.atom(v) for v in vs]
    if print_shapes:
        typed = zip(shown, vs, strict=True)
        shown = [x if type(v) is Literal else f"{x}:{pp_aval(v.aval, context)}" for x, v in typed]
    between = Doc([separator, printing._SPACE], group=True)
    return Doc(printing._joined(between, shown), 2, group=True)


def pp_aval(a: Any, context: JaxprPpContext) -> str:
    """The name of a type."""
    return a.str_short(True)


def pp_effect(effect: Effect, context: JaxprPpContext) -> Doc:
    return Doc([context._printer.effect(effect)])


def pp_eqn(eqn: JaxprEqn, context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    return context._with(settings).eqn(eqn)


def pp_eqns(eqns: Sequence[JaxprEqn], context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    """Equations, one a line."""
    printer = context._with(settings)
    return Doc(printing._joined(printing._Break("; "), [printer.eqn(eqn) for eqn in eqns]))


def pp_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    return context._with(settings).jaxpr(printing._as_jaxpr(jaxpr))


def pp_jaxprs(jaxprs: Sequence[Any], context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    """Programs in parentheses."""
    return context._with(settings).value(tuple(jaxprs))


def pp_kv_pair(k: str, v: Any, context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    """A param of an equation."""
    return Doc([f"{k}=", context._with(settings).value(v)])


def pp_kv_pairs(kv_pairs: Any, context: JaxprPpContext, settings: JaxprPpSettings) -> Doc:
    """Params in brackets; nothing if there are none."""
    shown = [pp_kv_pair(k, v, context, settings) for k, v in kv_pairs]
    return printing._bracketed("[", shown, "]") if shown else nil()


def pp_toplevel_jaxpr(jaxpr_to_print: Jaxpr | ClosedJaxpr, **settings: bool) -> Doc:
    """A program, after those that are named in front of it."""
    printer = JaxprPpContext()._with(JaxprPpSettings(**settings))
    return printer.program(printing._as_jaxpr(jaxpr_to_print))


class _Rules:
    """The rules of printing equations: `pp_eqn_rules[primitive] = rule`, `(eqn, context, settings)
    -> Doc`.
    """

    def __setitem__(self, primitive: Any, rule: Callable) -> None:
        def shown(printer: printing._Printer, eqn: JaxprEqn) -> Doc:
            context = JaxprPpContext()
            context._printer, context.var_names = printer, printer.var_names
            shown = printer.options._asdict()
            shown["custom_pp_eqn_rules"] = shown.pop("rules")
            return rule(eqn, context, JaxprPpSettings(**shown))

        primitive.shown = shown

    def __contains__(self, primitive: Any) -> bool:
        return primitive.shown is not None

    def pop(self, primitive: Any, *default: Any) -> Any:
        if primitive.shown is None and not default:
            raise KeyError(primitive)
        rule, primitive.shown = primitive.shown, None
        return rule if rule is not None else default[0]

    __delitem__ = pop


pp_eqn_rules = _Rules()
