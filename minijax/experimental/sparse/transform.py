"""`minijax.experimental.sparse.transform`: `sparsify`, functions of dense arrays on sparse ones.

A function is staged for dense arrays of the same shapes, and its program is run equation by
equation: an equation that meets a sparse array is done by the rule that its primitive has here, in
`bcoo_rules` or `bcsr_rules`. What would make a dense array of a sparse one has none, so that
nothing is made dense unseen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax, tree_util
from minijax import numpy as jnp
from minijax.arrays.array import as_array
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.jaxpr import ClosedJaxpr, Literal
from minijax.core.primitive import Primitive, RuleColumn
from minijax.core.trace import Trace, Tracer, set_trace
from minijax.experimental.sparse import bcoo as coordinates
from minijax.experimental.sparse import bcsr as rows
from minijax.experimental.sparse.bcoo import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.lax.sparse.todense import todense_p
from minijax.tracebacks import public
from minijax.transforms.tracing import trace_function

__all__ = ["SparseTrace", "SparseTracer", "eval_sparse", "sparsify"]


class Value(NamedTuple):
    """A sparse array in a program, and what stands for its places: equal places are one object."""

    mat: Any
    places: Any

    def with_data(self, data: Any) -> Value:
        """Other values at the same places."""
        return Value(_remade(self.mat, data), self.places)


def _remade(mat: Any, data: Any) -> Any:
    _, *places = mat.tree_flatten()[0]
    return type(mat).tree_unflatten(mat.tree_flatten()[1], (data, *places))


def fresh(x: Any) -> Any:
    """A result of a rule: sparse ones with places of their own."""
    return Value(x, object()) if isinstance(x, (BCOO, BCSR)) else x


def _is_sparse(x: Any) -> bool:
    return isinstance(x, (BCOO, BCSR))


def plain(x: Any) -> Any:
    """The array, sparse or dense, of a value."""
    return x.mat if type(x) is Value else x


Rule = Callable[..., Any]
bcoo_rules = RuleColumn("sparse, by coordinates")
bcsr_rules = RuleColumn("sparse, by rows")
_dense_results: set[Primitive] = {
    lax.acos_p, lax.acosh_p, lax.cos_p, lax.cosh_p, lax.eq_p, lax.exp_p, lax.ge_p, lax.gt_p,
    lax.le_p, lax.log_p, lax.lt_p, lax.ne_p, lax.xor_p,
}  # fmt: skip


def apply_rule(primitive: Primitive, values: Sequence[Any], params: dict) -> list[Any]:
    """The results of an equation of which some operands are sparse.

    NotImplementedError if its primitive has no rule for them.
    """
    compressed = any(isinstance(plain(x), BCSR) for x in values)
    rule = (bcsr_rules if compressed else bcoo_rules).rule(primitive)
    if rule is None:
        dense = primitive in _dense_results
        raise NotImplementedError(
            f"sparse rule for {primitive} is not implemented"
            + (" because it would result in dense output. If this is your intent, use "
               "sparse.todense() to convert your arguments to dense matrices." if dense else ".")
        )  # fmt: skip
    out = rule(*values, **params)
    outs = out if primitive.multiple_results else [out]
    return [fresh(x) for x in outs]


def eval_sparse(closed: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """Run a program on arrays and sparse values."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, values, strict=True))
    for eqn in jaxpr.eqns:
        ins = [v.value() if type(v) is Literal else env[v] for v in eqn.invars]
        if any(type(x) is Value for x in ins):
            outs = apply_rule(eqn.primitive, ins, eqn.params)
        else:
            out = eqn.primitive.bind(*ins, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [v.value() if type(v) is Literal else env[v] for v in jaxpr.outvars]


# -- sparsify ---------------------------------------------------------------------------------------


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """`f`, where arrays among its arguments may be BCOO or BCSR.

    - `use_tracer`: run `f` itself on tracers, instead of its program; control flow on values that
      are known is then possible, and derivatives inside of it are not

    NotImplementedError for an operation that has no rule for sparse arrays. Arrays of other formats
    are passed on as they are.
    """
    return (_with_tracers if use_tracer else _with_program)(f)


def _flat(args: tuple, kwargs: dict) -> tuple[list[Any], Any]:
    leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse)
    return [x if _is_sparse(x) or isinstance(x, Array) else as_array(x) for x in leaves], tree


def _has_arrays(x: Any) -> bool:
    leaves = tree_util.tree_leaves(x, is_leaf=_is_sparse)
    return any(_is_sparse(leaf) or isinstance(leaf, (Array, np.ndarray)) for leaf in leaves)


def aval_of(x: Any) -> Any:
    """The type of the dense array that a sparse one stands for."""
    return ShapedArray(x.shape, x.dtype) if _is_sparse(x) else get_aval(x)


def _with_program(f: Callable) -> Callable:
    @functools.wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        static = {name: x for name, x in kwargs.items() if not _has_arrays(x)}
        leaves, tree = _flat(args, {name: x for name, x in kwargs.items() if name not in static})
        call = functools.partial(f, **static)  # such as the axes of a reduction
        traced = trace_function("sparsify", call, tree, list(map(aval_of, leaves)), hoisted=None)
        outs = eval_sparse(traced.closed, [fresh(x) for x in leaves])
        return traced.out_tree.unflatten([plain(_as_value(x)) for x in outs])

    return sparsified


def _as_value(x: Any) -> Any:
    return x if type(x) is Value or isinstance(x, Array) else as_array(x)


class SparseTracer(Tracer):
    """A sparse array in a function that runs under `sparsify(..., use_tracer=True)`."""

    __slots__ = ("value",)

    def __init__(self, trace: SparseTrace, *, spvalue: Value):
        super().__init__(trace, aval_of(spvalue.mat))
        self.value = spvalue

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval.str_short()}>"


class SparseTrace(Trace):
    """Does each operation on sparse values by its rule, and leaves the others to its parent."""

    __slots__ = ()
    adjective, other = "sparsified", "an outer"

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        """Apply a primitive."""
        ins = [x.value if type(x) is SparseTracer and x._trace is self else x for x in args]
        if not any(type(x) is Value for x in ins):
            return self.pass_to_parent(primitive, args, params)
        with set_trace(self.parent):
            outs = apply_rule(primitive, ins, params)
        outs = [SparseTracer(self, spvalue=fresh(x.mat)) if type(x) is Value else x for x in outs]
        return outs if primitive.multiple_results else outs[0]


def _with_tracers(f: Callable) -> Callable:
    @functools.wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = _flat(args, kwargs)
        trace = SparseTrace(local.context.trace)
        try:
            with set_trace(trace):
                values = [
                    SparseTracer(trace, spvalue=fresh(x)) if _is_sparse(x) else x for x in leaves
                ]
                given, named = tree.unflatten(values)
                outs, out_tree = tree_util.tree_flatten(f(*given, **named))
        finally:
            trace.end()
        return out_tree.unflatten(
            [x.value.mat if type(x) is SparseTracer else _as_value(x) for x in outs]
        )

    return sparsified


# -- operations on elements -------------------------------------------------------------------------


def _unique(x: Value) -> Value:
    """Return the array with one element for each index, so that a function may be applied to each."""
    mat = x.mat
    if isinstance(mat, BCSR) or mat.unique_indices:
        return x
    return Value(mat.sum_duplicates(nse=mat.nse, remove_zeros=False), object())


def _on_data(primitive: Primitive, linear: bool) -> Rule:
    """The rule of an operation on elements that keeps zeros; `linear` ones may see parts of sums."""

    def rule(x: Value, **params: Any) -> Value:
        x = x if linear else _unique(x)
        return x.with_data(primitive.bind(x.mat.data, **params))

    return rule


_LINEAR = (lax.conj_p, lax.copy_p, lax.imag_p, lax.neg_p, lax.real_p)
_KEEPS_ZERO = (
    lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.bessel_i1e_p,
    lax.convert_element_type_p, lax.expm1_p, lax.log1p_p, lax.sign_p, lax.sin_p, lax.sinh_p,
    lax.sqrt_p, lax.square_p, lax.tan_p, lax.tanh_p,
)  # fmt: skip
for _primitive in (*_LINEAR, *_KEEPS_ZERO):
    _rule = _on_data(_primitive, _primitive in _LINEAR)
    bcoo_rules.update({_primitive: _rule})
    bcsr_rules.update({_primitive: _rule})


def _integer_pow(x: Value, *, y: int) -> Value:
    if y <= 0:
        raise NotImplementedError(
            f"sparse rule for {lax.integer_pow_p} with non-positive exponent {y} is not implemented "
            "because it would result in dense output. If this is your intent, use "
            "sparse.todense() to convert your argument to a dense array."
        )
    x = _unique(x)
    return x.with_data(lax.integer_pow_p.bind(x.mat.data, y=y))


def _joined(x: BCOO, y: BCOO) -> BCOO:
    """The sum of two arrays: the elements of both."""
    if x.shape != y.shape:
        raise NotImplementedError(
            f"Addition between sparse matrices of different shapes: {x.shape} and {y.shape}."
        )
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError(
            "Addition between sparse matrices with different batch/dense dimensions: got "
            f"n_batch={x.n_batch}, n_dense={x.n_dense} and n_batch={y.n_batch}, "
            f"n_dense={y.n_dense}. Change them by update_layout."
        )
    axis, whole = x.n_batch, x.shape[: x.n_batch]
    parts = []
    for pair in ((x.data, y.data), (x.indices, y.indices)):
        same = all(a.shape[:axis] == pair[0].shape[:axis] for a in pair)
        parts.append([a if same else jnp.broadcast_to(a, whole + a.shape[axis:]) for a in pair])
    data, indices = (lax.concatenate(pair, axis) for pair in parts)
    return BCOO((data, indices), shape=x.shape)


def _add(x: Any, y: Any) -> Any:
    if type(x) is Value and type(y) is Value:
        if x.places is y.places:
            return x.with_data(lax.add(x.mat.data, y.mat.data))
        return _joined(x.mat, y.mat)
    mat, dense = (x.mat, y) if type(x) is Value else (y.mat, x)
    shape = lax.broadcast_shapes(mat.shape, np.shape(dense))
    if shape != np.shape(dense):
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            "output shape is larger than Y.shape. This is to prevent silent densification of a "
            "large sparse array. If this is your intent, you can explicitly cast the sparse array "
            "to a dense matrix."
        )
    return lax.add(mat.todense(), dense)


def _sub(x: Any, y: Any) -> Any:
    if not (type(x) is Value and type(y) is Value):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    if x.places is y.places:
        return x.with_data(lax.sub(x.mat.data, y.mat.data))
    return _joined(x.mat, _remade(y.mat, lax.neg(y.mat.data)))


def _mul(x: Any, y: Any, **params: Any) -> Any:
    if type(x) is Value and type(y) is Value:
        if x.places is y.places and x.mat.unique_indices:
            return x.with_data(lax.mul(x.mat.data, y.mat.data))
        return coordinates.bcoo_multiply_sparse(x.mat, y.mat)
    value, dense = (x, y) if type(x) is Value else (y, x)
    return value.with_data(coordinates.bcoo_multiply_dense(value.mat, jnp.asarray(dense)))


def _div(x: Any, y: Any) -> Any:
    if type(y) is Value:
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to a "
            "dense array."
        )
    if not np.ndim(y):
        return x.with_data(lax.div(x.mat.data, y))
    dense = jnp.asarray(y)
    inverse = lax.div(jnp.ones_like(dense), dense)
    return x.with_data(coordinates.bcoo_multiply_dense(x.mat, inverse))


bcoo_rules.update(
    {
        lax.add_p: _add, lax.div_p: _div, lax.integer_pow_p: _integer_pow, lax.mul_p: _mul,
        lax.sub_p: _sub,
    }
)  # fmt: skip
bcsr_rules.update({lax.integer_pow_p: _integer_pow})


# -- operations on shapes ---------------------------------------------------------------------------


def _structural(function: Callable) -> Rule:
    """The rule of an operation that a function of sparse arrays does."""
    return lambda *values, **params: function(*map(plain, values), **params)


def _reduce_sum(x: Value, *, axes: Sequence[int], **params: Any) -> Any:
    out = coordinates.bcoo_reduce_sum(x.mat, axes=axes)
    return out if out.shape else out.todense()


def _concatenate(function: Callable) -> Rule:
    return lambda *values, dimension: function([plain(x) for x in values], dimension=dimension)


def _stack(broadcast: Callable, concatenate: Callable) -> Rule:
    def rule(*values: Value, axis: int) -> Any:
        parts = []
        for x in map(plain, values):
            shape = (*x.shape[:axis], 1, *x.shape[axis:])
            dims = [d for d in range(len(shape)) if d != axis]
            parts.append(broadcast(x, shape=shape, broadcast_dimensions=dims))
        return concatenate(parts, dimension=axis)

    return rule


def _unstack(x: Value, *, axis: int) -> list[Any]:
    parts = []
    for place in range(x.mat.shape[axis]):
        starts, limits = [0] * x.mat.ndim, list(x.mat.shape)
        starts[axis], limits[axis] = place, place + 1
        part = coordinates.bcoo_slice(x.mat, start_indices=starts, limit_indices=limits)
        parts.append(coordinates.bcoo_squeeze(part, dimensions=(axis,)))
    return parts


def _dot_general(function: Callable) -> Rule:
    def rule(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any):
        return function(
            plain(x), plain(y), dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
        )  # fmt: skip

    return rule


def _dynamic_slice(x: Value, *starts: Any, slice_sizes: Sequence[int]) -> Any:
    return coordinates.bcoo_dynamic_slice(x.mat, starts, slice_sizes)


def _gather(x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, **params: Any):
    return coordinates.bcoo_gather(
        plain(x), plain(indices), dimension_numbers, slice_sizes, **params
    )


def _todense(x: Value, *_: Any, tree: Any) -> Any:
    return x.mat.todense()


bcoo_rules.update(
    {
        lax.broadcast_in_dim_p: _structural(coordinates.bcoo_broadcast_in_dim),
        lax.concatenate_p: _concatenate(coordinates.bcoo_concatenate),
        lax.conv_general_dilated_p: _structural(coordinates.bcoo_conv_general_dilated),
        lax.dot_general_p: _dot_general(coordinates.bcoo_dot_general),
        lax.dynamic_slice_p: _dynamic_slice,
        lax.gather_p: _gather,
        lax.reduce_sum_p: _reduce_sum,
        lax.reshape_p: _structural(coordinates.bcoo_reshape),
        lax.rev_p: _structural(coordinates.bcoo_rev),
        lax.slice_p: _structural(coordinates.bcoo_slice),
        lax.squeeze_p: _structural(coordinates.bcoo_squeeze),
        lax.stack_p: _stack(coordinates.bcoo_broadcast_in_dim, coordinates.bcoo_concatenate),
        lax.transpose_p: _structural(coordinates.bcoo_transpose),
        todense_p: _todense,
        lax.unstack_p: _unstack,
    }
)
bcsr_rules.update(
    {
        lax.broadcast_in_dim_p: _structural(rows.bcsr_broadcast_in_dim),
        lax.concatenate_p: _concatenate(rows.bcsr_concatenate),
        lax.dot_general_p: _dot_general(rows.bcsr_dot_general),
        lax.stack_p: _stack(rows.bcsr_broadcast_in_dim, rows.bcsr_concatenate),
        todense_p: _todense,
    }
)


__dir__ = public(__name__)
