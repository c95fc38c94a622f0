"""The derivative functions: jvp, linearize, vjp, grad and linear_transpose, on pytrees.

The work is done on flat values by `transforms.jvp`, `linearize` and `transpose`; here stand the
checks and the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from minijax import dtypes, tree_util
from minijax.arguments.derivatives import (
    check_given,
    check_input,
    check_pair,
    check_scalar_output,
    check_tangent,
    chosen_numbers,
    is_int,
    jvp_leaves,
    no_reduce_axes,
    positions,
)
from minijax.arguments.functions import check_callable, fun_name, named_after
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.source import named_scope
from minijax.core.trace import Tracer
from minijax.tracebacks import boundary
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.linear_maps import LinearFunction, Pullback, as_result
from minijax.transforms.linearize import linearize_flat
from minijax.transforms.primitives import full_like_aval, instantiate
from minijax.transforms.tangents import Zero, zero_like

__all__ = ["differentiated", "grad", "jvp", "linearize", "value_and_grad", "vjp"]

_A = TypeVar("_A", bound=Any)  # the first argument; Any for that of a lambda
_P = ParamSpec("_P")
_R = TypeVar("_R")
_X = TypeVar("_X")  # auxiliary data


def as_given(x: Any) -> Any:
    """Return a result as a user's rule gave it: numbers stay numbers."""
    return x if type(x) in dtypes.python_scalar_dtypes else as_result(x)


def materialized(x: Any) -> Any:
    """Return a tangent or cotangent as custom rules see it: zeros are arrays."""
    return as_result(instantiate(x))


def stepped(x: Any) -> Any:
    """Return a tangent as a custom jvp rule sees it: zeros are arrays, numbers stay numbers."""
    return materialized(x) if type(x) is Zero else as_given(x)


_TRACED = object()  # stands for a tracer among auxiliary data


class FlatFunction:
    """A function on the leaves of its arguments; keeps the structure of what it returned last.

    With `has_aux` the tracers of the auxiliary data are further results, behind the first `count`.
    Anything else in that data is kept as it is.
    """

    def __init__(self, fun: Callable, in_tree: Any, has_aux: bool, transform: str):
        self.fun, self.in_tree, self.has_aux, self.transform = fun, in_tree, has_aux, transform
        self.out_tree = self.aux_tree = None
        self.aux: list[Any] = []
        self.count = 0

    def __call__(self, *leaves):
        out = self.fun(*self.in_tree.unflatten(leaves))
        if not self.has_aux:
            outs, self.out_tree = tree_util.flatten(out)
            self.count = len(outs)
            return outs
        check_pair(out, self.fun, self.transform)
        outs, self.out_tree = tree_util.flatten(out[0])
        aux, self.aux_tree = tree_util.flatten(out[1])
        self.count = len(outs)
        self.aux = [_TRACED if isinstance(x, Tracer) else x for x in aux]  # keeps no tracer alive
        return [*outs, *[x for x in aux if isinstance(x, Tracer)]]

    def results(self, outs: Sequence[Any], kept: Sequence[bool] = ()) -> tuple[Any, Any]:
        """Return output and auxiliary data as pytrees; outputs that `kept` marks stay numbers."""
        kept = kept or [False] * self.count
        out = self.out_tree.unflatten(
            [as_given(x) if keep else as_result(x) for x, keep in zip(outs, kept, strict=False)]
        )
        aux = None
        if self.has_aux:
            traced = iter(outs[self.count :])
            aux = [next(traced) if x is _TRACED else x for x in self.aux]
            aux = self.aux_tree.unflatten(aux)
        return out, aux


def _checked(leaves: Sequence[Any]) -> list[Any]:
    """Return the leaves, NumPy's as arrays; TypeError for one that is no value."""
    for x in leaves:
        get_aval(x)
    return [as_result(x) if not isinstance(x, (int, float, complex)) else x for x in leaves]


# -- forward mode -----------------------------------------------------------------------------------


@overload
def jvp(
    fun: Callable[..., _R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[_R, _R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[_R, _X]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[_R, _R, _X]: ...
@boundary
def jvp(
    fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Compute a function and its derivative in a direction.

    - `fun`: function of pytrees of arrays; with `has_aux` it returns `(out, aux)`
    - `primals`, `tangents`: tuples of pytrees of one structure, shapes and dtypes (float0 for
      integers)

    The result is `(out, tangent_out)`, and aux with `has_aux`. TypeError where structures or dtypes
    differ, ValueError where shapes differ.
    Source: forward-mode automatic differentiation (Wengert, 1964).

    >>> jax.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    leaves, tangent_leaves, in_tree = jvp_leaves(primals, tangents)
    pairs = list(map(tangent_for, leaves, tangent_leaves))
    flat = FlatFunction(fun, in_tree, has_aux, "jvp")
    made: list[bool] = []  # which outputs are no argument handed on

    def call(*args):
        outs, given = flat(*args), set(map(id, args))
        made.extend(id(out) not in given for out in outs[: flat.count])
        return outs

    with named_scope("jvp()"):
        outs, outs_dot = jvp_flat(call, leaves, pairs)
    out, aux = flat.results(outs, made)
    tangent_out, _ = flat.results([stepped(t) for t in outs_dot], made)
    return (out, tangent_out, aux) if has_aux else (out, tangent_out)


@overload
def linearize(
    fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[_R, Callable[..., _R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[_R, _X]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, Callable[..., _R], _X]: ...
@boundary
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]:
    """Compute a function, and its derivative as a linear function that can be applied many times.

    - `fun`: function of pytrees of arrays; with `has_aux` it returns `(out, aux)`
    - `primals`: pytrees of arrays

    The result is `(out, linear_function)`, and aux with `has_aux`; the linear function takes
    tangents of the primals' shapes and dtypes. TypeError or ValueError for other tangents.
    Source: forward-mode automatic differentiation (Wengert, 1964).

    >>> out, derivative = jax.linearize(lambda x: x * x, 3.0)
    >>> derivative(1.0)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    leaves, in_tree = tree_util.flatten(primals)
    flat = FlatFunction(fun, in_tree, has_aux, "linearize")
    outs, live, closed = linearize_flat(flat, _checked(leaves), count=lambda: flat.count)
    out, aux = flat.results(outs)
    avals = [get_aval(x) for x in leaves], [get_aval(x) for x in outs[: flat.count]]
    function = LinearFunction(closed.jaxpr, closed.consts, live, *avals, in_tree, flat.out_tree)
    return (out, function, aux) if has_aux else (out, function)


def tangent_for(x: Any, t: Any) -> Any:
    """Return a tangent, checked against its primal; a symbolic zero if the primal has no tangent."""
    if type(t) is Zero:
        return t
    return zero_like(x) if check_tangent(x, t) else t


# -- reverse mode -----------------------------------------------------------------------------------


def pullback_of(flat: FlatFunction, leaves: Sequence[Any], in_tree: Any) -> tuple[list[Any], Any]:
    """Return the results of a function on flat values, and its linear map, to be transposed."""
    outs, live, closed = linearize_flat(flat, leaves, count=lambda: flat.count, kind="vjp")
    in_avals = [get_aval(x) for x in leaves]
    out_avals = [get_aval(x) for x in outs[: flat.count]]
    program = closed.jaxpr, closed.consts, live, in_avals, out_avals, in_tree, flat.out_tree
    return outs, Pullback(*program)


@overload
def vjp(
    fun: Callable[..., _R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[_R, Callable[[_R], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[_R, _X]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
) -> tuple[_R, Callable[[_R], tuple[Any, ...]], _X]: ...
@boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]:
    """Compute a function, and the function from cotangents of its output to those of its arguments.

    - `fun`: function of pytrees of arrays; with `has_aux` it returns `(out, aux)`
    - `primals`: pytrees of arrays; `reduce_axes`: must be empty

    The result is `(out, vjp_fun)`, and aux with `has_aux`; `vjp_fun(cotangent)` returns a tuple of
    the primals' structures, shapes and dtypes (float0 for integers). ValueError for a cotangent of
    another shape.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> out, vjp_fun = jax.vjp(lambda x: x * x, 3.0)
    >>> vjp_fun(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun)
    no_reduce_axes("vjp", reduce_axes)
    leaves, in_tree = tree_util.flatten(primals)
    flat = FlatFunction(fun, in_tree, has_aux, "vjp")
    leaves = _checked(leaves)
    outs, pullback = hooks.vjp_function(flat, leaves, in_tree, pullback_of)
    out, aux = flat.results(outs)
    return (out, pullback, aux) if has_aux else (out, pullback)


@overload
def value_and_grad(
    fun: Callable[Concatenate[_A, _P], _R], argnums: Literal[0] = 0,
    has_aux: Literal[False] = False, holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[_A, _P], tuple[_R, _A]]: ...  # fmt: skip
@overload
def value_and_grad(
    fun: Callable[Concatenate[_A, _P], tuple[_R, _X]], argnums: Literal[0] = 0, *,
    has_aux: Literal[True], holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[_A, _P], tuple[tuple[_R, _X], _A]]: ...  # fmt: skip
@overload
def value_and_grad(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_P, Any]: ...  # fmt: skip
def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:  # fmt: skip
    """Make a function that returns the value and the gradient of `fun`.

    - `fun`: function that returns a real scalar (complex if `holomorphic`), or `(scalar, aux)` if
      `has_aux`
    - `argnums`: positional arguments to differentiate, an integer or a sequence
    - `allow_int`: whether these may be integers; `reduce_axes`: must be empty

    The function returns `(value, gradient)`, or `((value, aux), gradient)`; the gradient has the
    structure, shapes and dtypes of the argument, a tuple for a sequence. TypeError for another
    output or input.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> jax.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return differentiated(
        fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, "value_and_grad"
    )


@overload
def grad(
    fun: Callable[Concatenate[_A, _P], Any], argnums: Literal[0] = 0,
    has_aux: Literal[False] = False, holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[_A, _P], _A]: ...  # fmt: skip
@overload
def grad(
    fun: Callable[Concatenate[_A, _P], tuple[Any, _X]], argnums: Literal[0] = 0, *,
    has_aux: Literal[True], holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[_A, _P], tuple[_A, _X]]: ...  # fmt: skip
@overload
def grad(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_P, Any]: ...  # fmt: skip
def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:  # fmt: skip
    """Make a function that returns the gradient of `fun`.

    - `fun`: function that returns a real scalar (complex if `holomorphic`), or `(scalar, aux)` if
      `has_aux`
    - `argnums`: positional arguments to differentiate, an integer or a sequence
    - `allow_int`: whether these may be integers; `reduce_axes`: must be empty

    The function returns the gradient, or `(gradient, aux)`; it has the structure, shapes and dtypes
    of the argument, a tuple for a sequence. TypeError for another output or input.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> jax.grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    both = differentiated(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, "grad")

    def gradient(*args, **kwargs):
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return documented(gradient, fun, "Gradient")


def documented(function: Callable, fun: Callable, what: str) -> Callable:
    name = fun_name(fun)
    function = named_after(fun, boundary(function))
    text = fun.__doc__ if isinstance(getattr(fun, "__doc__", None), str) else ""
    function.__doc__ = f"{what} of {name}, with the same arguments.\n\n{text}".rstrip()
    return function


def _seed(aval: Any) -> Any:
    """Return the cotangent of a scalar result: 1."""
    if aval.placement is None:
        return full_like_aval(1, aval)
    return hooks.as_primal_placed(full_like_aval(1, hooks.unplaced(aval)), aval)


def differentiated(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, transform):
    """Return `value_and_grad` of a function, with the arguments of `grad`, for this transform."""
    check_callable(fun)
    no_reduce_axes(transform, reduce_axes)
    numbers = chosen_numbers(argnums)
    single = not isinstance(argnums, (tuple, list)) and is_int(argnums)

    def value_and_gradient(*args, **kwargs):
        check_given(argnums, numbers, len(args))
        chosen = positions(numbers, len(args))
        dynamic = args[chosen[0]] if single else tuple([args[n] for n in chosen])
        leaves, in_tree = tree_util.flatten(dynamic)
        for x in leaves:
            check_input(x, holomorphic, allow_int, "grad")
        call = with_arguments(fun, args, kwargs, chosen, single)
        flat = FlatFunction(call, OneArgument(in_tree), has_aux, transform)
        outs, pullback = pullback_of(flat, leaves, in_tree)
        check_scalar_output(outs[: flat.count], flat.out_tree, holomorphic)
        out, aux = flat.results(outs)
        seed = [_seed(get_aval(outs[0]))] if pullback.live[0] else []
        gradient = in_tree.unflatten([as_result(ct) for ct in pullback.pull(seed)])
        return ((out, aux) if has_aux else out), gradient

    return documented(value_and_gradient, fun, "Value and gradient")


class OneArgument:
    """Leaves to a call with one argument, of the given structure."""

    __slots__ = ("tree",)

    def __init__(self, tree):
        self.tree = tree

    def unflatten(self, leaves):
        return (self.tree.unflatten(leaves),)


def with_arguments(fun, args, kwargs, chosen, single):
    """`fun` as a function of the chosen arguments alone."""
    if single and len(args) == 1 and not kwargs:
        return fun
    place = chosen[0] if single else None

    def call(dynamic):
        given = list(args)
        if single:
            given[place] = dynamic
        else:
            for n, x in zip(chosen, dynamic, strict=True):
                given[n] = x
        return fun(*given, **kwargs)

    return call
