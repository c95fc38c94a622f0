"""The dimension variables of exported programs: whether arguments tell them, and whether they fit.

What is refused is refused in Python, when a program is called, in upstream's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minijax import tree_util
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from minijax.features.queries import is_dim
from minijax.features.symbolic.dims import evaluate
from minijax.features.symbolic.lowering import is_symbolic, solved

__all__ = ["argument_names", "check_sizes", "check_solvable", "check_told"]

_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"
_DETAILS = f" Please see {_PAGE}#shape-assertion-errors for more details."


def argument_names(tree: Any) -> list[str]:
    """The leaves of `(args, kwargs)` as users know them: `args[0]['x']`."""
    pairs = tree_util.generate_key_paths(tree.unflatten(range(tree.num_leaves)))
    return [("args", "kwargs")[path[0].idx] + tree_util.keystr(list(path[1:])) for path, _ in pairs]


def _specifications(names: Sequence[str], avals: Sequence[Any]) -> str:
    shown = [f"{n}.shape = {a.shape}" for n, a in zip(names, avals, strict=True) if is_symbolic(a)]
    return f"Using the following polymorphic shapes specifications: {','.join(shown)}."


def check_solvable(in_tree: Any, in_avals: Sequence[Any]) -> None:
    """ValueError if the sizes of the arguments do not tell the values of all variables."""
    if not any(map(is_symbolic, in_avals)):
        return
    _, left = solved([getattr(aval, "shape", ()) for aval in in_avals])
    if not left:
        return
    known, _ = solved([getattr(aval, "shape", ()) for aval in in_avals])
    names = argument_names(in_tree)
    unknown = set().union(*(size.variables() for _, _, size in left)) - set(known)
    rest = ", ".join(
        f"'{size}' for dimension size {names[place]}.shape[{axis}]" for place, axis, size in left
    )
    raise ValueError(
        f"Cannot solve for values of dimension variables {unknown}. We can only solve linear "
        f"uni-variate constraints. {_specifications(names, in_avals)} Unprocessed specifications: "
        f"{rest}. Please see {_PAGE}#dimension-variables-must-be-solvable-from-the-input-shapes for "
        "more details."
    )


def check_told(closed: ClosedJaxpr, in_avals: Sequence[Any]) -> None:
    """UnexpectedDimVar for a size within a program of which no argument tells the value."""
    told, _ = solved([getattr(aval, "shape", ()) for aval in in_avals])
    for size in filter(is_dim, _sizes(closed.jaxpr)):
        if not size.variables() <= set(told):
            raise size.unexpected(
                "The following dimension variables are appearing in the shapes of the function "
                f"arguments: {sorted(told)}. Pass an array with such a size, of shape (0, size) perhaps."
            )


def _sizes(jaxpr: Jaxpr) -> Iterator[Any]:
    """The sizes in the types and the params of the equations of a program."""
    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            yield from getattr(var.aval, "shape", ())
        for value in eqn.params.values():
            yield from value if type(value) is tuple else (value,)
    for inner in subjaxprs(jaxpr):
        yield from _sizes(inner)


def check_scopes(name: str, args: Any) -> None:
    """ValueError if the symbolic sizes of arguments, as `(args, kwargs)`, are of several scopes."""
    leaves, tree = tree_util.flatten(args)
    shapes = [x.shape if isinstance(getattr(x, "shape", None), tuple) else () for x in leaves]
    if not any(is_dim(size) for shape in shapes for size in shape):
        return
    places = zip(argument_names(tree), shapes, strict=True)
    sizes = [(place, size) for place, shape in places for size in shape if is_dim(size)]
    (first, expected), *others = sizes
    for place, size in others:
        if size.scope is not expected.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes when exporting {name}.\n"
                f"Expected current (from {first}) scope {expected.scope}\n"
                f"and found for '{size}' ({place}) scope {size.scope}: make both with one scope=. "
                f"See {_PAGE}#user-specified-symbolic-constraints."
            )


def check_sizes(exported: Any, avals: Sequence[Any]) -> dict[str, Any]:
    """ValueError unless the sizes of arguments fit the symbolic ones that the program was made for.

    Gives the values of the variables.
    """
    if not any(map(is_symbolic, exported.in_avals)):
        return {}
    names = argument_names(exported.in_tree)
    specs = _specifications(names, exported.in_avals)
    known, _ = solved([aval.shape for aval in exported.in_avals])
    values: dict[str, Any] = {}
    obtained = ""
    start = "Input shapes do not match the polymorphic shapes specification. "

    def refuse(what: str) -> ValueError:
        return ValueError(f"{what} {specs} Obtained dimension variables: {obtained}.{_DETAILS}")

    for name, (place, axis, factor, rest) in known.items():
        size = avals[place].shape[axis]
        value, remainder = divmod(size - evaluate(rest, values), factor)
        if not is_dim(remainder) and remainder != 0:
            raise refuse(
                f"{start}Division had remainder {remainder} when computing the value of '{name}'."
            )
        values[name] = value
        wanted = exported.in_avals[place].shape[axis]
        obtained += (
            f"'{name}' = {value} from specification '{wanted}' for dimension "
            f"{names[place]}.shape[{axis}] (= {size}), "
        )
        if not value >= 1:
            raise refuse(f"{start}Expected value >= 1 for dimension variable '{name}'.")
    _check_others(exported, avals, names, values, lambda what: refuse(start + what))
    _check_constraints(exported, values, refuse)
    return values


def _check_others(exported: Any, avals: Any, names: Any, values: dict, refuse: Any) -> None:
    for name, wanted, aval in zip(names, exported.in_avals, avals, strict=True):
        for axis, (size, given) in enumerate(zip(wanted.shape, aval.shape, strict=True)):
            found = evaluate(size, values)
            if found != given:
                raise refuse(
                    f"Found inconsistency between dimension size {name}.shape[{axis}] (= {given}) and "
                    f"the specification '{size}' (= {found})."
                )


def _check_constraints(exported: Any, values: dict, refuse: Any) -> None:
    sizes = [size for aval in exported.in_avals for size in aval.shape if is_dim(size)]
    for text, kind, difference in sizes[0].scope.constraints:
        if is_dim(difference) and not difference.variables() <= set(values):
            continue
        found = evaluate(difference, values)
        if not (found == 0 if kind == "eq" else found >= 0):
            what = "equal" if kind == "eq" else "greater or equal"
            raise refuse(
                f"Input shapes do not match the symbolic shape constraint {text}. Expected "
                f"'{difference}' to be {what} to 0, but found {found}. "
            )
