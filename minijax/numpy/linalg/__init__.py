"""`minijax.numpy.linalg`: NumPy's linear algebra. Matrices stand in the last two axes; integers are
converted to floating dtypes. Functions that give several arrays give named tuples, as NumPy's
do.
"""

from minijax.numpy.linalg.factors import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from minijax.numpy.linalg.inverses import (
    inv,
    lstsq,
    matrix_power,
    pinv,
    solve,
    tensorinv,
    tensorsolve,
)
from minijax.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from minijax.numpy.linalg.sizes import (
    cond,
    det,
    matrix_norm,
    matrix_rank,
    norm,
    slogdet,
    vector_norm,
)
from minijax.tracebacks import public

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

__dir__ = public(__name__)
