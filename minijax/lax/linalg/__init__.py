"""`minijax.lax.linalg`: decompositions and solvers of matrices, a file per family.

Matrices stand in the last two axes; the axes in front of them are a batch. On CPU the work is
LAPACK's.
"""

from minijax.lax.linalg.definite import (
    cholesky,
    cholesky_p,
    cholesky_update,
    cholesky_update_p,
    symmetric_product,
    symmetric_product_p,
)
from minijax.lax.linalg.elimination import (
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
)
from minijax.lax.linalg.general import (
    EigImplementation,
    eig,
    eig_p,
    hessenberg,
    hessenberg_p,
    schur,
    schur_p,
)
from minijax.lax.linalg.hermitian import (
    EighImplementation,
    eigh,
    eigh_p,
    tridiagonal,
    tridiagonal_p,
)
from minijax.lax.linalg.orthogonal import (
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qr,
    qr_p,
)
from minijax.lax.linalg.polar import qdwh
from minijax.lax.linalg.singular_values import SvdAlgorithm, svd, svd_p
from minijax.lax.linalg.three_diagonals import tridiagonal_solve, tridiagonal_solve_p
from minijax.lax.linalg.triangular import triangular_solve, triangular_solve_p

from minijax.lax.linalg import gpu as gpu, tpu as tpu  # isort: skip: rules of other platforms
from minijax.tracebacks import public

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
    "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]  # fmt: skip

__dir__ = public(__name__)
