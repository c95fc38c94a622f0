"""`minijax.scipy.linalg`: SciPy's linear algebra."""

from minijax.scipy.linalg.factors import (
    cho_factor,
    cho_solve,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    solve_triangular,
    svd,
)
from minijax.scipy.linalg.matrix_functions import (
    det,
    expm,
    expm_frechet,
    funm,
    inv,
    solve,
    solve_sylvester,
    sqrtm,
)
from minijax.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from minijax.scipy.linalg.tridiagonals import eigh_tridiagonal
from minijax.tracebacks import public

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "det", "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet",
    "fiedler", "fiedler_companion", "funm", "hadamard", "hankel", "helmert", "hessenberg",
    "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve", "pascal",
    "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

__dir__ = public(__name__)
