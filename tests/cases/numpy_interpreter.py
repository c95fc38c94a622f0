"""An outermost interpreter that computes with NumPy: a trace, and a column of rules.

Programs reach it through every transform: `grad` and `vmap` apply primitives to their parent, which
is this trace in the end, and programs within programs are evaluated by binding their equations again.
"""

import numpy as np

import minijax as jax
from minijax import lax
from minijax.core.primitive import RuleColumn
from minijax.core.trace import Trace, set_trace
from minijax.interpreters.ad import add_jaxvals_p

on_numpy = RuleColumn("numpy")

ELEMENTWISE = {
    lax.add_p: np.add, lax.sub_p: np.subtract, lax.mul_p: np.multiply, lax.div_p: np.divide,
    lax.neg_p: np.negative, lax.max_p: np.maximum, lax.sin_p: np.sin, lax.cos_p: np.cos,
    lax.tanh_p: np.tanh, lax.exp_p: np.exp, lax.log_p: np.log, lax.lt_p: np.less,
    lax.gt_p: np.greater, lax.eq_p: np.equal, lax.square_p: np.square,
    add_jaxvals_p: np.add,
}  # fmt: skip
REDUCTIONS = {
    lax.reduce_sum_p: np.add, lax.reduce_max_p: np.maximum, lax.reduce_min_p: np.minimum,
}  # fmt: skip

for primitive, function in ELEMENTWISE.items():
    on_numpy(primitive)(lambda *xs, _f=function, **_: _f(*xs))
for primitive, function in REDUCTIONS.items():
    on_numpy(primitive)(lambda x, *, axes, _f=function, **_: _f.reduce(x, axes, x.dtype))
on_numpy(lax.integer_pow_p)(lambda x, *, y: x**y)
on_numpy(lax.select_n_p)(lambda which, *cases: np.choose(which, cases))
on_numpy(lax.transpose_p)(lambda x, *, permutation: np.transpose(x, permutation))
on_numpy(lax.reshape_p)(lambda x, *, new_sizes, **_: np.reshape(x, new_sizes))
on_numpy(lax.convert_element_type_p)(lambda x, *, new_dtype, **_: x.astype(new_dtype))
on_numpy(lax.iota_p)(
    lambda *, dtype, shape, dimension, **_: np.indices(shape)[dimension].astype(dtype)
)


@on_numpy(lax.broadcast_in_dim_p)
def broadcast(x, *, shape, broadcast_dimensions, **_):
    sizes = [1] * len(shape)
    for size, dim in zip(x.shape, broadcast_dimensions, strict=True):
        sizes[dim] = size
    return np.broadcast_to(np.reshape(x, sizes), shape)


@on_numpy(lax.dot_general_p)
def dot_general(x, y, *, dimension_numbers, **_):
    (contract_x, contract_y), (batch_x, batch_y) = dimension_numbers
    names = iter("abcdefghijklmnopqrstuvwxyz")
    of_x, of_y = [next(names) for _ in x.shape], [next(names) for _ in y.shape]
    for i, j in zip((*contract_x, *batch_x), (*contract_y, *batch_y), strict=True):
        of_y[j] = of_x[i]
    out = [of_x[i] for i in batch_x]
    out += [of_x[i] for i in range(x.ndim) if i not in (*contract_x, *batch_x)]
    out += [of_y[j] for j in range(y.ndim) if j not in (*contract_y, *batch_y)]
    return np.einsum(f"{''.join(of_x)},{''.join(of_y)}->{''.join(out)}", x, y)


on_numpy(jax.extend.core.primitives.jit_p)(
    lambda *args, jaxpr, **_: jax.extend.core.jaxpr_as_fun(jaxpr)(*args)
)


@on_numpy(lax.scan_p)
def scan(*args, jaxpr, length, num_consts, num_carry, reverse, **_):
    step, split = jax.extend.core.jaxpr_as_fun(jaxpr), num_consts + num_carry
    consts, carry, rows = args[:num_consts], args[num_consts:split], []
    for i in reversed(range(length)) if reverse else range(length):
        outs = step(*consts, *carry, *[x[i] for x in args[split:]])
        carry = outs[:num_carry]
        rows.append(outs[num_carry:])
    return [*carry, *[np.stack(column[:: -1 if reverse else 1]) for column in zip(*rows)]]


class NumpyTrace(Trace):
    """Computes with NumPy. NotImplementedError for primitives without a rule in the column."""

    def process(self, primitive, args, params):
        rule = on_numpy.rule(primitive)
        if rule is None:
            raise NotImplementedError(f"There is no rule for NumPy of {primitive.name!r}.")
        return rule(*[np.asarray(x, jax.typeof(x).dtype) for x in args], **params)


def with_numpy(f, *args):
    """Return `f(*args)`, computed with NumPy alone."""
    with set_trace(NumpyTrace()):
        return f(*args)
