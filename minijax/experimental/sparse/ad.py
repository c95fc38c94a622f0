"""`minijax.experimental.sparse.ad`: derivatives with respect to sparse arrays.

A sparse argument is differentiated by its values: its derivative is a sparse array with the same
places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax import numpy as jnp
from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.bcoo import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.jacobians import jacfwd as dense_jacfwd
from minijax.jacobians import jacrev as dense_jacrev
from minijax.tracebacks import public
from minijax.transforms.grad import grad as dense_grad
from minijax.transforms.grad import value_and_grad as dense_value_and_grad

__all__ = ["grad", "is_sparse", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse array."""
    return isinstance(x, JAXSparse)


class _Flat:
    """The arguments of a function as arrays, and which of them its derivatives are taken by."""

    def __init__(self, args: Sequence[Any], argnums: int | Sequence[int]):
        numbers = [argnums] if isinstance(argnums, int) else list(argnums)
        if not 0 <= min(numbers) <= max(numbers) < len(args):
            raise AssertionError(
                f"{argnums=} must name arguments of the function: there are {len(args)}."
            )
        self.numbers, self.args = numbers, list(args)
        self.values, self.tree = tree_util.tree_flatten(self.args)
        self.chosen: list[int] = []
        start = 0
        for place, arg in enumerate(args):
            for leaf in tree_util.tree_leaves(arg, is_leaf=is_sparse):
                if place in numbers:
                    self.chosen.append(start)
                start += len(leaf.tree_flatten()[0]) if is_sparse(leaf) else 1

    def function(self, fun: Callable) -> Callable:
        """`fun` of the arrays."""
        return lambda *values: fun(*self.tree.unflatten(values))

    def derivatives(self, found: Sequence[Any]) -> Any:
        """Derivatives by the chosen arrays, as trees of the chosen arguments."""
        values = dict(zip(self.chosen, found, strict=True))
        start, made = 0, []
        for place, arg in enumerate(self.args):
            leaves, tree = tree_util.tree_flatten(arg, is_leaf=is_sparse)
            results = []
            for leaf in leaves:
                if place in self.numbers:
                    results.append(_like(leaf, values[start]))
                start += len(leaf.tree_flatten()[0]) if is_sparse(leaf) else 1
            made.append(tree.unflatten(results) if place in self.numbers else None)
        chosen = [made[number] for number in self.numbers]
        return chosen[0] if len(chosen) == 1 else tuple(chosen)


def _like(leaf: Any, values: Any) -> Any:
    """A derivative by a sparse array: with its places, repeated for each element of the output."""
    if not is_sparse(leaf):
        return values
    (data, *places), known = leaf.tree_flatten()
    extra = values.shape[: values.ndim - data.ndim]
    if extra:
        places = [jnp.broadcast_to(x, (*extra, *x.shape)) for x in places]
        if isinstance(leaf, (BCOO, BCSR)):
            known = {**known, "shape": (*extra, *leaf.shape)}
    return type(leaf).tree_unflatten(known, (values, *places))


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """`minijax.value_and_grad`, where arguments may be sparse."""
    named = dense_value_and_grad(fun, argnums=argnums, has_aux=has_aux, **kwargs)

    @functools.wraps(named)
    def value_and_grad(*args: Any) -> tuple[Any, Any]:
        flat = _Flat(args, argnums)
        of = dense_value_and_grad(
            flat.function(fun), argnums=tuple(flat.chosen), has_aux=has_aux, **kwargs
        )
        value, found = of(*flat.values)
        return value, flat.derivatives(found)

    return value_and_grad


def grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable:
    """`minijax.grad`, where arguments may be sparse: the gradient by one has the same places."""
    named = dense_grad(fun, argnums=argnums, has_aux=has_aux, **kwargs)
    both = value_and_grad(fun, argnums=argnums, has_aux=has_aux, **kwargs)

    @functools.wraps(named)
    def grad(*args: Any) -> Any:
        value, found = both(*args)
        return (found, value[1]) if has_aux else found

    return grad


def _gives_one(fun: Callable, has_aux: bool, error: type[Exception]) -> Callable:
    """`fun`, checked to give one dense array; `error` is the class that upstream raises."""

    def checked(*args: Any) -> Any:
        out = fun(*args)
        if is_sparse(out[0] if has_aux else out):
            raise error(
                f"{fun_name(fun)} gives a sparse array, of which there is no Jacobian: give its "
                "data, or todense()."
            )
        return out

    return checked


def _jacobian(transform: Callable, fun, argnums, has_aux, kwargs) -> Callable:
    @functools.wraps(transform(fun, argnums=argnums, has_aux=has_aux, **kwargs))
    def jacobian(*args: Any) -> Any:
        flat = _Flat(args, argnums)
        one = _gives_one(fun, has_aux, AssertionError if transform is dense_jacfwd else TypeError)
        of = transform(flat.function(one), argnums=tuple(flat.chosen), has_aux=has_aux, **kwargs)
        found = of(*flat.values)
        if has_aux:
            return flat.derivatives(found[0]), found[1]
        return flat.derivatives(found)

    return jacobian


def jacfwd(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable:
    """`minijax.jacfwd` of a function that gives one array, where arguments may be sparse.

    By a sparse array it is one too, with the dimensions of the result as batch dimensions.
    """
    return _jacobian(dense_jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable:
    """`minijax.jacrev` of a function that gives one array; see `jacfwd`."""
    return _jacobian(dense_jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev


__dir__ = public(__name__)
