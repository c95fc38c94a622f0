"""Modules that older programs and other libraries import: optimizers, layers, sparse arrays."""

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as their_optimizers
from jax.example_libraries import stax as their_stax
from jax.experimental import sparse as their_sparse

import minijax
from minijax.example_libraries import optimizers, stax
from minijax.experimental import sparse
from tests.harness.differential import assert_same

# -- optimizers ------------------------------------------------------------------------------------

PARAMS = {"a": np.float32([1, 2]), "b": (np.float32([[3, -1]]), np.float16([0.5]))}
GRADS = {"a": np.float32([0.5, 0]), "b": (np.float32([[-2, 1e-4]]), np.float16([1]))}

OPTIMIZERS = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd, schedule": lambda o: o.sgd(o.exponential_decay(0.1, 2, 0.5)),
    "momentum": lambda o: o.momentum(0.1, 0.9),
    "nesterov": lambda o: o.nesterov(0.1, 0.9),
    "adagrad": lambda o: o.adagrad(0.1),
    "rmsprop": lambda o: o.rmsprop(0.1),
    "rmsprop_momentum": lambda o: o.rmsprop_momentum(0.1),
    "adam": lambda o: o.adam(0.1),
    "adamax": lambda o: o.adamax(o.inverse_time_decay(0.1, 2, 0.5)),
    "sm3": lambda o: o.sm3(0.1),
}


def stepped(m, o, name):
    init, update, params_of = OPTIMIZERS[name](o)
    state = init(m.tree.map(m.numpy.asarray, PARAMS))
    for i in range(3):
        state = update(i, m.tree.map(lambda g, i=i: g * (i + 1), GRADS), state)
    again = o.pack_optimizer_state(o.unpack_optimizer_state(state))
    assert m.tree.structure(again) == m.tree.structure(state)
    return m.tree.leaves(again), params_of(again), len(state.subtree_defs)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    ours = stepped(minijax, optimizers, name)
    assert_same(ours, stepped(jax, their_optimizers, name))


SCHEDULES = {
    "constant": lambda o: o.make_schedule(0.1),
    "exponential": lambda o: o.exponential_decay(0.1, 3, 0.5),
    "inverse time": lambda o: o.inverse_time_decay(0.1, 3, 0.5),
    "staircase": lambda o: o.inverse_time_decay(0.1, 3, 0.5, staircase=True),
    "polynomial": lambda o: o.polynomial_decay(0.1, 10, 0.01, 2.0),
    "pieces": lambda o: o.piecewise_constant([2, 6], [1.0, 0.5, 0.1]),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("step", [0, 2, 3, 6, 7, 20])
def test_schedules(name, step):
    assert_same(SCHEDULES[name](optimizers)(step), SCHEDULES[name](their_optimizers)(step))


def test_norms_of_trees():
    for norm in (1.0, 100.0):
        ours = optimizers.l2_norm(PARAMS), optimizers.clip_grads(PARAMS, norm)
        theirs = their_optimizers.l2_norm(PARAMS), their_optimizers.clip_grads(PARAMS, norm)
        assert_same(ours, theirs)


REFUSED = {
    "grads of another structure": lambda m, o: o.sgd(0.1).update_fn(
        0, {"a": 1.0}, o.sgd(0.1).init_fn(m.numpy.ones(2))
    ),
    "an array as a schedule": lambda m, o: o.sgd(m.numpy.ones(2)),
    "counts": lambda m, o: o.piecewise_constant([2, 6], [1.0, 0.5]),
    "ranks": lambda m, o: o.piecewise_constant([[2, 6]], [1.0, 0.5]),
    "a state of another structure": lambda m, o: o.optimizer(
        lambda: (lambda x: (x, x), lambda i, g, s: (s[0],), lambda s: s[0])
    )().update_fn(0, 1.0, o.OptimizerState(([1.0, 1.0],), *trees(m))),
}


def trees(m):
    return m.tree.structure(1.0), (m.tree.structure((1.0, 1.0)),)


@pytest.mark.parametrize("name", REFUSED)
def test_optimizers_refuse(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](jax, their_optimizers)
    with pytest.raises(theirs.type):
        REFUSED[name](minijax, optimizers)


# -- layers ----------------------------------------------------------------------------------------

IMAGE, ROWS, SEQUENCE = (2, 5, 6, 3), (2, 5), (2, 7, 3)

LAYERS = {
    "Dense": (lambda s: s.Dense(4), ROWS),
    "Conv": (lambda s: s.Conv(4, (3, 2), (2, 1), "SAME"), IMAGE),
    "ConvTranspose": (lambda s: s.ConvTranspose(2, (3, 2), (2, 2), "SAME"), IMAGE),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,), (2,)), SEQUENCE),
    "GeneralConv": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (2, 2)), IMAGE),
    "BatchNorm": (lambda s: s.BatchNorm(), IMAGE),
    "BatchNorm, one axis": (lambda s: s.BatchNorm(axis=0, scale=False), ROWS),
    "MaxPool": (lambda s: s.MaxPool((2, 2), (2, 2)), IMAGE),
    "SumPool": (lambda s: s.SumPool((2, 3), padding="SAME"), IMAGE),
    "AvgPool": (lambda s: s.AvgPool((2, 2), padding="SAME"), IMAGE),
    "AvgPool, spec": (lambda s: s.AvgPool((2, 2), spec="NCHW"), IMAGE),
    "Flatten": (lambda s: s.Flatten, IMAGE),
    "Dropout": (lambda s: s.Dropout(0.7), ROWS),
    "Dropout, test": (lambda s: s.Dropout(0.7, mode="test"), ROWS),
    "fan": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Identity), s.FanInConcat()),
        ROWS,
    ),
    "sum": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Dense(3)), s.FanInSum),
        ROWS,
    ),
    "serial": (
        lambda s: s.serial(s.Dense(6), s.Dropout(0.5), s.Tanh, s.Dense(3), s.LogSoftmax),
        ROWS,
    ),
    "shape_dependent": (lambda s: s.shape_dependent(lambda shape: s.Dense(2 * shape[-1])), ROWS),
    "elementwise": (lambda s: s.elementwise(abs), ROWS),
}
for _name in ("Relu", "Exp", "Softmax", "Softplus", "Sigmoid", "Elu", "LeakyRelu", "Selu", "Gelu"):
    LAYERS[_name] = (lambda s, name=_name: getattr(s, name), ROWS)


def applied(m, s, name):
    make, shape = LAYERS[name]
    init, apply = make(s)
    out_shape, params = init(m.random.key(7), shape)
    x = m.random.normal(m.random.key(1), shape)
    out = apply(params, x, rng=m.random.key(3))
    return np.array(out_shape), params, out


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    assert_same(applied(minijax, stax, name), applied(jax, their_stax, name))


def test_dropout_wants_a_key():
    for s in (stax, their_stax):
        with pytest.raises(ValueError, match="PRNG key"):
            s.Dropout(0.5)[1]((), np.ones(3))


# -- sparse arrays ---------------------------------------------------------------------------------

DENSE = np.float32([[0, 1, 0], [2, 0, 3], [0, 0, 0]])
TWICE = (np.float32([1, 2, 4]), np.int32([[1, 1], [1, 1], [0, 2]]))
V, D = np.float32([1, -1, 2]), np.arange(6, dtype=np.float32).reshape(3, 2)


def parts(x):
    return x.data, x.indices, np.array(x.shape), np.array([x.nse, x.ndim, x.size, x.n_sparse])


def flags(x):
    return np.array([x.indices_sorted, x.unique_indices])


SPARSE = {
    "fromdense": lambda m, B: parts(B.fromdense(DENSE)),
    "fromdense, more": lambda m, B: parts(B.fromdense(DENSE, nse=5)),
    "fromdense, dtype": lambda m, B: parts(B.fromdense(DENSE, index_dtype=np.int16)),
    "fromdense, flags": lambda m, B: flags(B.fromdense(DENSE)),
    "fromdense, jit": lambda m, B: m.jit(lambda x: parts(B.fromdense(x, nse=4))[:2])(DENSE),
    "todense": lambda m, B: B(TWICE, shape=(3, 3)).todense(),
    "todense, rank 1": lambda m, B: B.fromdense(V).todense(),
    "todense, rank 3": lambda m, B: B.fromdense(np.ones((2, 1, 2))).todense(),
    "matvec": lambda m, B: B.fromdense(DENSE) @ V,
    "matmat": lambda m, B: B.fromdense(DENSE) @ m.numpy.asarray(D),
    "vecmat": lambda m, B: m.numpy.asarray(V) @ B.fromdense(DENSE),
    "matmat, left": lambda m, B: m.numpy.asarray(D.T) @ B.fromdense(DENSE),
    "promoted": lambda m, B: B.fromdense(DENSE.astype(np.int32)) @ V,
    "padded": lambda m, B: B.fromdense(DENSE, nse=7) @ np.float32([np.inf, 1, 1]),
    "transposed": lambda m, B: parts(B.fromdense(DENSE).T),
    "transposed, flags": lambda m, B: flags(B.fromdense(DENSE).T),
    "not transposed": lambda m, B: flags(B.fromdense(DENSE).transpose((0, 1))),
    "scaled": lambda m, B: (2 * -B.fromdense(DENSE)).todense(),
    "astype": lambda m, B: B.fromdense(DENSE).astype(np.int32).todense(),
    "sorted": lambda m, B: parts(B(TWICE, shape=(3, 3)).sort_indices()),
    "summed": lambda m, B: parts(B(TWICE, shape=(3, 3)).sum_duplicates()),
    "summed, size": lambda m, B: parts(B(TWICE, shape=(3, 3)).sum_duplicates(nse=3)),
    "jit": lambda m, B: m.jit(lambda b, x: b @ x)(B.fromdense(DENSE), V),
    "grad": lambda m, B: m.grad(lambda d: ((B((d, TWICE[1]), shape=(3, 3)) @ V) ** 2).sum())(
        TWICE[0]
    ),
    "vmap": lambda m, B: m.vmap(lambda x: B.fromdense(DENSE) @ x)(D.T),
    "shown": lambda m, B: np.frombuffer(repr(B.fromdense(DENSE)).encode(), np.uint8),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_arrays(name):
    assert_same(SPARSE[name](minijax, sparse.BCOO), SPARSE[name](jax, their_sparse.BCOO))


SPARSE_REFUSED = {
    "shapes": lambda m, B: B.fromdense(DENSE) @ np.ones(4, np.float32),
    "lists": lambda m, B: B.fromdense(DENSE) @ [1.0, 2.0, 3.0],
    "parts": lambda m, B: B((np.ones(3), np.ones((2, 2), int)), shape=(3, 3)),
    "size under jit": lambda m, B: m.jit(lambda x: B.fromdense(x).todense())(DENSE),
    "hash": lambda m, B: hash(B.fromdense(DENSE)),
}


@pytest.mark.parametrize("name", SPARSE_REFUSED)
def test_sparse_arrays_refuse(name):
    with pytest.raises(Exception) as theirs:
        SPARSE_REFUSED[name](jax, their_sparse.BCOO)
    with pytest.raises(Exception) as ours:
        SPARSE_REFUSED[name](minijax, sparse.BCOO)
    assert ours.type.__name__ == theirs.type.__name__


def test_sparse_arrays_of_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    for make in (scipy_sparse.csr_matrix, scipy_sparse.coo_matrix, scipy_sparse.csc_matrix):
        ours, theirs = [B.from_scipy_sparse(make(DENSE)) for B in (sparse.BCOO, their_sparse.BCOO)]
        assert_same((parts(ours), flags(ours)), (parts(theirs), flags(theirs)))
