"""The test case of `jax.experimental.sparse.test_util`, beside its random sparse arrays.

The stand-in shows these names there (`jax/names.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax import grad, jit, jvp, tree_util, vmap
from minijax.experimental import sparse
from minijax.experimental.sparse.test_util import is_sparse
from minijax.jax.testing import JaxTestCase

__all__ = ["BatchedDotGeneralProperties", "MATMUL_TOL", "SparseTestCase"]

# ruff: noqa: PT009 (a test case of unittest's, for those who write such)

MATMUL_TOL = {
    np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10,
}  # fmt: skip


class BatchedDotGeneralProperties(NamedTuple):
    """Shapes of two operands and what is contracted; how many dimensions of the first are not sparse."""

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


def _dense(tree: Any) -> Any:
    return tree_util.tree_map(
        lambda x: x.todense() if is_sparse(x) else x, tree, is_leaf=is_sparse
    )  # fmt: skip


class SparseTestCase(JaxTestCase):
    """A test case that compares functions of sparse arrays with those of dense ones."""

    def assertSparseArraysEquivalent(
        self, x: Any, y: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None,
        canonicalize_dtypes: bool = True, err_msg: str = "",
    ) -> None:  # fmt: skip
        """Both of one format, with the same parts."""
        leaves, tree = tree_util.tree_flatten(x)
        others, other_tree = tree_util.tree_flatten(y)
        for one, other in zip(leaves, others, strict=True):
            self.assertEqual(np.shape(one), np.shape(other))
        self.assertEqual(tree, other_tree)
        self.assertAllClose(
            leaves, others, check_dtypes=check_dtypes, atol=atol, rtol=rtol,
            canonicalize_dtypes=canonicalize_dtypes, err_msg=err_msg,
        )  # fmt: skip

    def _CheckAgainstDense(
        self, dense_op: Callable, sparse_op: Callable, args_maker: Callable[[], Sequence[Any]],
        check_jit: bool = True, check_dtypes: bool = True, tol: Any = None, atol: Any = None,
        rtol: Any = None, canonicalize_dtypes: bool = True,
    ) -> None:  # fmt: skip
        """The dense function of the dense arrays gives what the sparse one gives, made dense."""
        args = args_maker()
        expected = dense_op(*_dense(args))
        for fun in (sparse_op, jit(sparse_op)) if check_jit else (sparse_op,):
            self.assertAllClose(
                expected, _dense(fun(*args)), check_dtypes=check_dtypes, atol=atol or tol,
                rtol=rtol or tol, canonicalize_dtypes=canonicalize_dtypes,
            )  # fmt: skip

    def _CheckGradsSparse(
        self, dense_fun: Callable, sparse_fun: Callable,
        args_maker: Callable[[], Sequence[Any]], *, argnums: Any = None,
        modes: Sequence[str] = ("fwd", "rev"), atol: Any = None, rtol: Any = None,
    ) -> None:  # fmt: skip
        """Derivatives with respect to the data of sparse arrays are those of the dense function."""
        args = list(args_maker())
        places = range(len(args)) if argnums is None else argnums
        places = [places] if isinstance(places, int) else list(places)

        def with_data(fun, make):
            def of_data(*data):
                given = list(args)
                for place, value in zip(places, data, strict=True):
                    given[place] = make(args[place], value)
                return _dense(fun(*given))

            return of_data

        def rebuilt(x, value):
            if not is_sparse(x):
                return value
            leaves, tree = tree_util.tree_flatten(x)
            return tree.unflatten([value, *leaves[1:]])

        ours = with_data(sparse_fun, rebuilt)
        theirs = with_data(
            lambda *xs: dense_fun(*_dense(xs)), lambda x, value: _dense(rebuilt(x, value))
        )
        data = [args[k].data if is_sparse(args[k]) else jnp.asarray(args[k]) for k in places]
        rng = self.rng()
        tangents = [jnp.asarray(rng.randn(*x.shape), x.dtype) for x in data]
        close = {"atol": atol, "rtol": rtol}
        if "fwd" in modes:
            self.assertAllClose(jvp(ours, data, tangents), jvp(theirs, data, tangents), **close)
        if "rev" in modes:
            every = tuple(range(len(data)))
            sums = [lambda *xs, f=f: abs(f(*xs)).sum() for f in (ours, theirs)]
            found, wanted = (grad(f, argnums=every)(*data) for f in sums)
            self.assertAllClose(found, wanted, **close)

    def _random_bdims(self, *args: int) -> list[int]:
        """Return for each number of dimensions a random place for one more."""
        rng = self.rng()
        return [int(rng.randint(0, count + 1)) for count in args]

    def _CheckBatchingSparse(
        self, dense_fun: Callable, sparse_fun: Callable,
        args_maker: Callable[[], Sequence[Any]], *, batch_size: int = 3, bdims: Any = None,
        check_jit: bool = False, check_dtypes: bool = True, tol: Any = None, atol: Any = None,
        rtol: Any = None, canonicalize_dtypes: bool = True,
    ) -> None:  # fmt: skip
        """Mapped over stacked arguments, along one batch dimension each, it gives the same."""
        if bdims is None:
            counts = [x.n_batch if is_sparse(x) else np.ndim(x) for x in args_maker()]
            bdims = self._random_bdims(*counts)

        def concat(parts, dim):
            if dim is None:
                return parts[0]
            if not is_sparse(parts[0]):
                return jnp.stack([jnp.asarray(x) for x in parts], axis=dim)
            cls = sparse.bcoo_concatenate if isinstance(parts[0], sparse.BCOO) else None
            if cls is None:
                cls = sparse.bcsr_concatenate
            one = [sparse.sparsify(lambda x: jnp.expand_dims(x, dim))(x) for x in parts]
            return cls(one, dimension=dim)

        def stacked():
            columns = zip(*(args_maker() for _ in range(batch_size)), strict=True)
            return [concat(list(c), dim) for c, dim in zip(columns, bdims, strict=True)]

        axes = tuple(bdims)
        self._CheckAgainstDense(
            vmap(dense_fun, in_axes=axes), vmap(sparse_fun, in_axes=axes), stacked,
            check_jit=check_jit, check_dtypes=check_dtypes, tol=tol, atol=atol, rtol=rtol,
            canonicalize_dtypes=canonicalize_dtypes,
        )  # fmt: skip
