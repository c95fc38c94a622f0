"""`VJPHiPrimitive`: primitives that libraries define, with a method for each transform.

All of them are one primitive, `call_hi_primitive`, which holds the library's object and asks it for
its rules, on the trees that the object's types say it takes and gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arrays.array import as_value
from minijax.core.avals import get_aval
from minijax.core.primitive import no_rule
from minijax.dtypes import python_scalar_dtypes
from minijax.features.hijax.lowering import HighPrimitive
from minijax.features.hijax.qdd import within
from minijax.transforms.batching import AxisData, batch_flat, to_front
from minijax.transforms.primitives import add_tangents, instantiate, moveaxis, reduce_sum_p
from minijax.transforms.tangents import Zero, is_undefined, spread_tangents, zero_tangent

__all__ = ["NullAccum", "ValAccum", "VJPHiPrimitive", "VmapOf", "call_hi_primitive_p"]


class VJPHiPrimitive:
    """A primitive as a library defines it. A subclass sets, before `super().__init__()`,

    - `in_avals`, the types of its arguments (a tuple of trees), `out_aval`, that of its result (a
      tree), and `params`, a dict of static values, which become attributes

    and overrides `expand(*args)`, which computes it, and what its transforms need:

    - grad, vjp: `vjp_fwd(nzs_in, *args) -> (out, residuals)` and `vjp_bwd_retval(residuals, ct)`,
      which gives a tuple of cotangents (None for zero), or `vjp_bwd(residuals, ct, *accumulators)`,
      which calls `accum(ct)` on them
    - jvp: `jvp(primals, tangents) -> (out, tangent out)`; tangents may be `Zero`
    - linearize: `lin(nzs_in, *args) -> (out, residuals)` and `linearized(residuals, *tangents)`
    - vmap: `batch_dim_rule(axis_data, dims) -> out dim`, or `batch(axis_data, args, dims) -> (out,
      out dims)`
    - transposition, of what is linear: `transpose(ct, *arguments or accumulators)`

    An object is applied by calling it. NotImplementedError for a transform that it has no rule for.
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"subclass {type(self)} should set `self.{name}` before `super().__init__()`"
                )
        if self.has("vjp_bwd") and self.has("vjp_bwd_retval") and type(self) is not VmapOf:
            raise AttributeError(
                f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`"
            )
        self.in_avals_flat, self.in_tree = tree_util.flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree_util.flatten(self.out_aval)
        self.__dict__.update(self.params)

    def _lacks(self, transform: str, methods: str) -> NotImplementedError:
        return NotImplementedError(
            f"for {transform} support, subclass {type(self)} must implement {methods}"
        )

    def expand(self, *args: Any) -> Any:
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple:
        raise self._lacks("grad", "`vjp_fwd`")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        cotangents = self.vjp_bwd_retval(res, outgrad)
        tree_util.tree_map(lambda accum, ct: accum.accum(ct), arg_accums, cotangents)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> tuple:
        raise self._lacks("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: tuple, tangents: tuple) -> tuple:
        raise self._lacks("jvp", "`jvp`")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple:
        raise self._lacks("linearize", "`lin` and `linearized`")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        raise self._lacks("linearize", "`lin` and `linearized`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        raise self._lacks("transpose", "`transpose`")

    def batch_dim_rule(self, axis_data: AxisData, dims: tuple, /) -> Any:
        raise self._lacks("vmap", "`batch` or `batch_dim_rule`")

    def batch(self, axis_data: AxisData, args: tuple, dims: tuple) -> tuple:
        out_dim = self.batch_dim_rule(axis_data, dims)
        return VmapOf(self, axis_data, dims, out_dim)(*args), out_dim

    def check(self, *arg_tys: Any) -> None:
        """Called with the types of the arguments of each call; may raise."""

    def __call__(self, *args: Any) -> Any:
        leaves, tree = tree_util.flatten(args)
        if tree != self.in_tree:
            raise TypeError(
                f"{self} takes arguments of the structure of its in_avals, {self.in_tree}; got {tree}."
            )
        leaves = list(map(within, leaves))
        self.check(*tree.unflatten([get_aval(x) for x in leaves]))
        return self.out_tree.unflatten(call_hi_primitive_p.bind(*leaves, _prim=self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> tuple:
        params = tuple(sorted(self.params.items()))
        return type(self), *self.in_avals_flat, self.in_tree, *self.out_avals_flat, params

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def has(self, method: str) -> bool:
        """Whether the subclass has a rule of its own."""
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)


class ValAccum:
    """Adds up what it is given, as the cotangent of one argument."""

    __slots__ = ("aval", "val")

    def __init__(self, aval: Any, val: Any = None):
        self.aval, self.val = aval, val

    def accum(self, ct: Any) -> None:
        if ct is None or type(ct) is Zero:
            return
        wanted, found = self.aval.to_cotangent_aval(), get_aval(ct)
        if not (wanted.is_high or found.is_high) and wanted.shape != found.shape:
            raise ValueError(
                f"Expected cotangent type {wanted.str_short()} but got {found.str_short()} from a "
                "backward rule: return cotangents of the shapes of the arguments."
            )
        self.val = add_tangents(self.val, ct)

    def freeze(self) -> Any:
        return Zero(self.aval.to_cotangent_aval()) if self.val is None else self.val


class NullAccum:
    """The place of an accumulator whose cotangent is not wanted."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def accum(self, ct: Any) -> None:
        """Nothing is kept."""


# -- the primitive --------------------------------------------------------------------------------


def _is_none(x: Any) -> bool:
    return x is None


def _spread(prefix: Any, tree: Any) -> list[Any]:
    """A tree of dims, a prefix of `tree`, with one entry for each leaf."""
    if tree.num_nodes == tree.num_leaves == 1:
        return [prefix]
    return tree_util.flatten_axes("out_dims", tree, prefix)


call_hi_primitive_p = HighPrimitive("call_hi_primitive", multiple_results=True, holds_programs=True)
call_hi_primitive_p.user_rules = True
call_hi_primitive_p.lower(no_rule("it is expanded before it is lowered"))


@call_hi_primitive_p.shape_rule
def _(*avals, _prim):
    return _prim.out_avals_flat


@call_hi_primitive_p.impl
def _(*args, _prim):
    out = _prim.expand(*_prim.in_tree.unflatten(args))
    return _leaves(_prim.out_tree, out, _prim, "expand")


def _leaves(tree: Any, out: Any, prim: VJPHiPrimitive, method: str) -> list[Any]:
    leaves, found = tree_util.flatten(out)
    if found != tree:
        raise TypeError(
            f"the method `{method}` of {prim} must give what its out_aval says, of structure {tree}; "
            f"it gave {found}."
        )
    return leaves


@call_hi_primitive_p.jvp
def _(primals, tangents, *, _prim):
    ins = _prim.in_tree.unflatten(primals), _prim.in_tree.unflatten(tangents)
    out, out_dot = _prim.jvp(*ins)
    tangents_out = [
        zero_tangent(aval) if t is None else t
        for aval, t in zip(_prim.out_avals_flat, _prim.out_tree.flatten_up_to(out_dot), strict=True)
    ]
    return _leaves(_prim.out_tree, out, _prim, "jvp"), tangents_out


@call_hi_primitive_p.linearize
def _(trace, primals, tangents, *, _prim):
    flags = [type(t) is not Zero for t in tangents]
    nonzeros, args = _prim.in_tree.unflatten(flags), _prim.in_tree.unflatten(primals)
    kind = trace.debug_info.traced_for
    if kind == "linearize" or (_prim.has("lin") and not _prim.has("vjp_fwd")):
        out, residuals = _prim.lin(nonzeros, *args)
        out_dot = _prim.linearized(residuals, *_prim.in_tree.unflatten(tangents))
        return _leaves(_prim.out_tree, out, _prim, "lin"), _prim.out_tree.flatten_up_to(out_dot)
    out, residuals = _prim.vjp_fwd(nonzeros, *args)
    if kind != "vjp" and _prim.has("lin"):  # within a program, which may be applied or transposed
        residuals = (residuals, _prim.lin(nonzeros, *args)[1])
    else:
        residuals = (residuals,)
    kept, tree = tree_util.flatten(residuals)
    params = {"_prim": _prim, "res_tree": tree, "nonzeros": tuple(flags)}
    given = [t for t in tangents if type(t) is not Zero]
    dots = trace.record(linearized_p, [*kept, *given], params)
    return _leaves(_prim.out_tree, out, _prim, "vjp_fwd"), dots


@call_hi_primitive_p.transpose
def _(cts, *args, _prim):
    accums = [ValAccum(a.aval) if is_undefined(a) else a for a in args]
    _prim.transpose(_prim.out_tree.unflatten(cts), *_prim.in_tree.unflatten(accums))
    return [a.freeze() if type(a) is ValAccum else None for a in accums]


@call_hi_primitive_p.batch_axis
def _(axis, args, dims, *, _prim):
    ins = _prim.in_tree.unflatten(args), _prim.in_tree.unflatten(dims)
    out, out_dims = _prim.batch(axis, *ins)
    return _leaves(_prim.out_tree, out, _prim, "batch"), _spread(out_dims, _prim.out_tree)


# The linear part. Operands are residuals for its transpose, those for `linearized` if there may be a
# need for them, and the tangents that are not zero.
linearized_p = HighPrimitive(
    "call_hi_primitive_linearized", multiple_results=True, holds_programs=True
)


@linearized_p.shape_rule
def _(*avals, _prim, **params):
    return [aval.to_tangent_aval() for aval in _prim.out_avals_flat]


@linearized_p.impl
def _(*args, _prim, res_tree, nonzeros):
    size = res_tree.num_leaves
    residuals = res_tree.unflatten(args[:size])
    if len(residuals) == 1:
        raise _prim._lacks("linearize", "`lin` and `linearized`")
    dots = spread_tangents(args[size:], nonzeros, _prim.in_avals_flat)
    out_dot = _prim.linearized(residuals[1], *_prim.in_tree.unflatten(dots))
    return list(map(instantiate, _prim.out_tree.flatten_up_to(out_dot)))


@linearized_p.transpose
def _(cts, *args, _prim, res_tree, nonzeros):
    residuals = res_tree.unflatten(args[: res_tree.num_leaves])
    accums = [
        ValAccum(aval) if nz else NullAccum(aval)
        for aval, nz in zip(_prim.in_avals_flat, nonzeros, strict=True)
    ]
    cts = [as_value(ct) if type(ct) in python_scalar_dtypes else ct for ct in cts]
    _prim.vjp_bwd(residuals[0], _prim.out_tree.unflatten(cts), *_prim.in_tree.unflatten(accums))
    found = [a.freeze() for a in accums if type(a) is ValAccum]
    return [None] * res_tree.num_leaves + found


linearized_p.jvp(no_rule("it is linear, and transposed before it is differentiated again"))
linearized_p.batch(no_rule("it is transposed before it is mapped"))
linearized_p.lower(no_rule("for linearize support it must implement `lin` and `linearized`"))

# -- mapped primitives ----------------------------------------------------------------------------


class _Kept:
    """Residuals of a mapped rule, and where each has the mapped axis."""

    def __init__(self, leaves: Sequence[Any], dims: tuple, tree: Any):
        self.leaves, self.dims, self.tree = leaves, dims, tree


tree_util.register_pytree_node(
    _Kept, lambda k: (k.leaves, (k.dims, k.tree)), lambda aux, leaves: _Kept(leaves, *aux)
)


class VmapOf(VJPHiPrimitive):
    """A primitive mapped over one axis: each of its rules is the mapped rule."""

    def __init__(self, prim: VJPHiPrimitive, axis_data: AxisData, in_dims: tuple, out_dim: Any):
        self.dims = prim.in_tree.flatten_up_to(in_dims)
        self.out_dims = _spread(out_dim, prim.out_tree)
        self.axis = axis_data
        self.in_avals = prim.in_tree.unflatten(map(self._whole, prim.in_avals_flat, self.dims))
        self.out_aval = prim.out_tree.unflatten(
            map(self._whole, prim.out_avals_flat, self.out_dims)
        )
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": in_dims, "out_dim": out_dim}
        super().__init__()

    def _whole(self, aval: Any, dim: Any) -> Any:
        return aval if dim is None else aval.with_axis(dim, self.axis.size, self.axis.split)

    def _key(self) -> tuple:
        return VmapOf, self.prim, self.axis, tuple(self.dims), tuple(self.out_dims)

    def _run(self, fun: Callable, args: Sequence[Any], dims: Sequence[Any]) -> tuple:
        """A rule on flat values, mapped: what it gives, and where that has the mapped axis."""
        return batch_flat(fun, self.axis, args, dims)

    def _placed(self, outs: Sequence[Any], found: Sequence[Any], wanted: Sequence[Any]) -> list:
        return [
            x if dim == want or type(x) is Zero else moveaxis(to_front(x, dim, self.axis.size), 0, want)
            for x, dim, want in zip(outs, found, wanted, strict=True)
        ]  # fmt: skip

    def expand(self, *args: Any) -> Any:
        prim = self.prim
        leaves = self.in_tree.flatten_up_to(args)
        run = lambda *xs: _leaves(
            prim.out_tree, prim.expand(*prim.in_tree.unflatten(xs)), prim, "expand"
        )
        outs = self._placed(*self._run(run, leaves, self.dims), self.out_dims)
        return self.out_tree.unflatten(outs)

    def jvp(self, primals: tuple, tangents: tuple) -> tuple:
        prim, zeros = self.prim, []
        given = self.in_tree.flatten_up_to(tangents)
        flags = [type(t) is not Zero for t in given]
        chosen = [t for t, nz in zip(given, flags, strict=True) if nz]
        dims = [d for d, nz in zip(self.dims, flags, strict=True) if nz]
        count = prim.in_tree.num_leaves

        def run(*xs):
            dots = spread_tangents(xs[count:], flags, prim.in_avals_flat)
            ins = prim.in_tree.unflatten(xs[:count]), prim.in_tree.unflatten(dots)
            out, out_dot = prim.jvp(*ins)
            dots = prim.out_tree.flatten_up_to(out_dot)
            zeros.extend(type(t) is Zero for t in dots)
            return [*prim.out_tree.flatten_up_to(out), *map(instantiate, dots)]

        leaves = self.in_tree.flatten_up_to(primals)
        found = self._run(run, [*leaves, *chosen], [*self.dims, *dims])
        outs = self._placed(*found, [*self.out_dims, *self.out_dims])
        size = len(self.out_dims)
        dots = [
            zero_tangent(aval) if zero else t
            for aval, t, zero in zip(self.out_avals_flat, outs[size:], zeros, strict=True)
        ]
        return self.out_tree.unflatten(outs[:size]), self.out_tree.unflatten(dots)

    def _forward(self, method: str, nonzeros: Any, args: tuple) -> tuple:
        prim, trees = self.prim, []

        def run(*xs):
            out, res = getattr(prim, method)(nonzeros, *prim.in_tree.unflatten(xs))
            kept, tree = tree_util.flatten(res)
            trees.append(tree)
            return [*_leaves(prim.out_tree, out, prim, method), *kept]

        outs, found = self._run(run, self.in_tree.flatten_up_to(args), self.dims)
        size = len(self.out_dims)
        placed = self._placed(outs[:size], found[:size], self.out_dims)
        return self.out_tree.unflatten(placed), _Kept(outs[size:], tuple(found[size:]), trees[0])

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple:
        return self._forward("vjp_fwd", nzs_in, args)

    def lin(self, nzs_in: Any, *args: Any) -> tuple:
        return self._forward("lin", nzs_in, args)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        prim, accums = self.prim, self.in_tree.flatten_up_to(arg_accums)
        cts = self.out_tree.flatten_up_to(outgrad)
        flags = [type(ct) is not Zero for ct in cts]
        wanted = [type(a) is not NullAccum for a in accums]
        count = len(res.leaves)

        def run(*xs):
            rest = iter(xs[count:])
            given = [
                next(rest) if nz else Zero(aval.to_cotangent_aval())
                for aval, nz in zip(prim.out_avals_flat, flags, strict=True)
            ]
            own = [
                ValAccum(aval) if want else NullAccum(aval)
                for aval, want in zip(prim.in_avals_flat, wanted, strict=True)
            ]
            prim.vjp_bwd(
                res.tree.unflatten(xs[:count]), prim.out_tree.unflatten(given),
                *prim.in_tree.unflatten(own),
            )  # fmt: skip
            return [instantiate(a.freeze()) for a in own if type(a) is ValAccum]

        given = [ct for ct, nz in zip(cts, flags, strict=True) if nz]
        dims = [d for d, nz in zip(self.out_dims, flags, strict=True) if nz]
        outs, found = self._run(run, [*res.leaves, *given], [*res.dims, *dims])
        places = [d for d, want in zip(self.dims, wanted, strict=True) if want]
        accums = [a for a, want in zip(accums, wanted, strict=True) if want]
        for accum, ct, dim, place in zip(accums, outs, found, places, strict=True):
            accum.accum(
                self._summed(ct, dim) if place is None else self._placed([ct], [dim], [place])[0]
            )

    def _summed(self, ct: Any, dim: Any) -> Any:
        """The cotangent of an argument that is not mapped: the sum of those of the elements."""
        ct, dim = (to_front(ct, None, self.axis.size), 0) if dim is None else (ct, dim)
        return reduce_sum_p.bind(ct, axes=(dim,), out_sharding=None)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        prim = self.prim
        given = self.in_tree.flatten_up_to(tangents)
        flags = [type(t) is not Zero for t in given]
        count = len(residuals.leaves)

        def run(*xs):
            dots = spread_tangents(xs[count:], flags, prim.in_avals_flat)
            out = prim.linearized(
                residuals.tree.unflatten(xs[:count]), *prim.in_tree.unflatten(dots)
            )
            return list(map(instantiate, prim.out_tree.flatten_up_to(out)))

        chosen = [t for t, nz in zip(given, flags, strict=True) if nz]
        dims = [d for d, nz in zip(self.dims, flags, strict=True) if nz]
        found = self._run(run, [*residuals.leaves, *chosen], [*residuals.dims, *dims])
        return self.out_tree.unflatten(self._placed(*found, self.out_dims))

    def batch_dim_rule(self, axis_data: AxisData, dims: tuple, /) -> Any:
        inner = [
            d if d is None or own is None or not isinstance(d, int) else d - (own < d)
            for d, own in zip(self.in_tree.flatten_up_to(dims), self.dims, strict=True)
        ]
        found = self.prim.batch_dim_rule(axis_data, self.prim.in_tree.unflatten(inner))
        outs = [
            d if d is None or own is None else d + (own <= d)
            for d, own in zip(_spread(found, self.prim.out_tree), self.out_dims, strict=True)
        ]
        return self.out_tree.unflatten(outs)
