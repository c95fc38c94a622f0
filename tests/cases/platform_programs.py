"""Programs whose lowering depends on the platform: data of `test_platforms` and of the long sweep.

A row is `(name, function, types)`: `function(m, *arrays)` computes with `m`, one of the two libraries,
and `types` is a line such as `f32[4,4] i32[4]`. Shapes are chosen on both sides of the thresholds at
which upstream takes another kernel.
"""

import functools
import itertools

import ml_dtypes
import numpy as np

_DTYPES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "c64": "complex64", "c128": "complex128",
    "i32": "int32", "i64": "int64", "u32": "uint32", "u64": "uint64", "u8": "uint8", "i8": "int8",
    "i16": "int16", "b1": "bool",
}  # fmt: skip
_ML = {
    "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e8m0": ml_dtypes.float8_e8m0fnu,
    "e5m2": ml_dtypes.float8_e5m2, "i4": ml_dtypes.int4, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def types_of(line):
    """`f32[4,4] i32[]` as pairs of a shape and a dtype."""
    out = []
    for word in line.split():
        kind, _, dims = word.rstrip("]").partition("[")
        dtype = np.dtype(_ML[kind]) if kind in _ML else np.dtype(_DTYPES[kind])
        out.append((tuple(map(int, filter(None, dims.split(",")))), dtype))
    return out


ROWS = []


def add(name, function, types, **params):
    shown = ",".join(f"{k}={v}" for k, v in params.items())
    label = f"{name}({shown}) {types}" if shown else f"{name} {types}"
    ROWS.append((label, functools.partial(function, **params) if params else function, types))


def along(name, function, *lines, **choices):
    """A row for each line of types and each choice of params."""
    for line in lines:
        for values in itertools.product(*choices.values()):
            add(name, function, line, **dict(zip(choices, values, strict=True)))


def linalg(name, **fixed):
    """A call of `lax.linalg.name`."""
    return lambda m, *xs, **params: getattr(m.lax.linalg, name)(*xs, **fixed, **params)


def grad_of(f):
    """The derivative of the sum of absolute values of the floating results."""

    def run(m, *xs):
        def total(*xs):
            outs = m.tree_util.tree_leaves(f(m, *xs))
            return sum(m.numpy.abs(x).sum() for x in outs if x.dtype.kind in "fcV")

        return m.grad(total)(*xs)

    return run


def mapped(f):
    return lambda m, *xs: m.vmap(functools.partial(f, m))(*xs)


def forward(f):
    return lambda m, *xs: m.jvp(functools.partial(f, m), xs, xs)


SQUARE = (
    "f32[4,4]",
    "f32[2,4,4]",
    "c64[4,4]",
    "f64[4,4]",
    "c128[2,3,4,4]",
    "bf16[4,4]",
    "f32[0,0]",
)
TALL = ("f32[5,4]", "f32[4,5]", "f32[2,5,4]", "c64[5,4]", "f64[4,5]", "bf16[5,4]", "f32[0,4]")

# -- linear algebra -------------------------------------------------------------------------------

along("cholesky", linalg("cholesky"), *SQUARE, "f16[4,4]", "f32[300,300]", "f32[3,0,0]")
along("cholesky", linalg("cholesky"), "f32[4,4]", symmetrize_input=(False,))
along("cholesky grad", grad_of(linalg("cholesky")), "f32[4,4]", "c64[2,4,4]")
along("cholesky vmap", mapped(linalg("cholesky")), "f32[3,4,4]", "f32[2,3,4,4]")
UPDATES = ("f32[4,4] f32[4]", "f64[4,4] f64[4]", "f32[8,8] f32[8]")
along("cholesky_update", linalg("cholesky_update"), *UPDATES)
along("cholesky_update vmap", mapped(linalg("cholesky_update")), "f32[3,4,4] f32[3,4]")
along("symmetric_product", linalg("symmetric_product"), "f32[4,3] f32[4,4]", "f64[2,4,3] f64[2,4,4]",
      alpha=(1.0, 2.0), beta=(0.0, 1.0))  # fmt: skip
along(
    "symmetric_product", linalg("symmetric_product"), "f32[4,3] f32[4,4]", symmetrize_output=(True,)
)
along("symmetric_product vmap", mapped(linalg("symmetric_product")), "f32[2,4,3] f32[2,4,4]")
along("lu", linalg("lu"), *SQUARE, *TALL, "f32[200,200]", "f32[40,8,8]", "f16[4,4]")
along("lu grad", grad_of(linalg("lu")), "f32[4,4]", "f32[5,4]", "f32[4,5]", "c64[2,4,4]")
along("lu vmap", mapped(linalg("lu")), "f32[3,4,4]")
along("lu_pivots_to_permutation", linalg("lu_pivots_to_permutation"), "i32[4]", "i32[2,4]",
      "i32[2,3,4]", "i32[0]", permutation_size=(4, 6))  # fmt: skip
along(
    "qr", linalg("qr"), *SQUARE, *TALL, "f32[200,100]", "f32[40,8,8]", full_matrices=(True, False)
)
along("qr pivoting", linalg("qr", pivoting=True), "f32[5,4]", "c64[2,4,5]", "f64[4,4]", "f32[0,4]",
      use_magma=(None, True, False))  # fmt: skip
along("qr grad", grad_of(linalg("qr", full_matrices=False)), "f32[5,4]", "c64[4,4]")
along("qr vmap", mapped(linalg("qr")), "f32[3,5,4]")
PRODUCTS = ("f32[5,4] f32[4]", "c64[2,5,4] c64[2,3]", "f64[4,4] f64[4]", "f32[5,0] f32[0]")
along("householder_product", linalg("householder_product"), *PRODUCTS)
along("householder_product vmap", mapped(linalg("householder_product")), "f32[3,5,4] f32[3,4]")
along("ormqr", linalg("ormqr"), "f32[5,4] f32[4] f32[5,2]", "c64[2,5,4] c64[2,4] c64[2,5,3]",
      left=(True,), transpose=(False, True))  # fmt: skip
along("ormqr", linalg("ormqr"), "f32[5,4] f32[4] f32[2,5]", left=(False,), transpose=(False, True))
along("eigh", linalg("eigh"), *SQUARE, "f32[200,200]", "f32[1,1]", "f32[257,257]", "f64[600,600]",
      "c64[300,300]")  # fmt: skip
along("eigh", linalg("eigh"), "f32[4,4]", "c64[2,4,4]", lower=(True, False),
      sort_eigenvalues=(True, False))  # fmt: skip
along("eigh", linalg("eigh", symmetrize_input=False), "f32[4,4]")
along("eigh subset", linalg("eigh"), "f32[4,4]", subset_by_index=((0, 4), (1, 3), (0, 2)))
along("eigh values", lambda m, x: m.numpy.linalg.eigvalsh(x), "f32[4,4]", "c64[2,4,4]")
for _which in ("QR", "JACOBI", "QDWH"):
    along(
        f"eigh {_which}",
        lambda m, x, which=_which: m.lax.linalg.eigh(
            x, implementation=getattr(m.lax.linalg.EighImplementation, which)
        ),
        "f32[4,4]", "c64[2,4,4]", "f64[300,300]",
    )  # fmt: skip
along("eigh grad", grad_of(linalg("eigh")), "f32[4,4]", "c64[2,4,4]")
along("eigh vmap", mapped(linalg("eigh")), "f32[3,4,4]", "f32[2,300,300]")
along("svd", linalg("svd"), *SQUARE, *TALL, "f32[2,6,4]", "f32[64,8]", "f32[300,300]",
      full_matrices=(True, False))  # fmt: skip
along("svd values", linalg("svd", compute_uv=False), "f32[5,4]", "c64[2,4,5]", "f64[4,4]")
along("svd large", linalg("svd"), "f32[1025,4]", "f32[4,1025]", "f32[1024,4]", "f32[2,1025,3]",
      full_matrices=(True, False))  # fmt: skip
along("svd large values", linalg("svd", compute_uv=False), "f32[1025,4]", "f32[2,4,1025]")
for _which in ("QR", "JACOBI", "POLAR", "DIVIDE_AND_CONQUER"):
    along(
        f"svd {_which}",
        lambda m, x, which=_which, **params: m.lax.linalg.svd(
            x, algorithm=getattr(m.lax.linalg.SvdAlgorithm, which), **params
        ),
        "f32[5,4]", "c64[2,4,5]", full_matrices=(True, False), compute_uv=(True, False),
    )  # fmt: skip
along(
    "svd subset", linalg("svd", full_matrices=False), "f32[5,4]", subset_by_index=((0, 2), (0, 4))
)
along("svd grad", grad_of(linalg("svd", full_matrices=False)), "f32[5,4]", "f32[4,5]", "c64[4,4]")
along("svd vmap", mapped(linalg("svd")), "f32[3,5,4]")
along("eig", linalg("eig"), "f32[4,4]", "c64[2,4,4]", "f64[4,4]", "f32[0,0]",
      compute_left_eigenvectors=(True, False), compute_right_eigenvectors=(True, False))  # fmt: skip
for _which in ("MAGMA", "LAPACK"):
    along(
        f"eig {_which}",
        lambda m, x, which=_which: m.lax.linalg.eig(
            x, implementation=getattr(m.lax.linalg.EigImplementation, which)
        ),
        "f32[4,4]", "c64[4,4]",
    )  # fmt: skip
along("eig vmap", mapped(linalg("eig")), "f32[3,4,4]")
along("triangular_solve", linalg("triangular_solve"), "f32[4,4] f32[4,4]", "c64[2,3,3] c64[2,3,3]",
      left_side=(True, False), lower=(True, False), transpose_a=(True, False))  # fmt: skip
along("triangular_solve", linalg("triangular_solve", left_side=True), "c64[4,4] c64[4,2]",
      "f32[4,4] f32[4,2]", "bf16[4,4] bf16[4,2]", conjugate_a=(True, False),
      unit_diagonal=(True, False))  # fmt: skip
along(
    "triangular_solve grad",
    grad_of(linalg("triangular_solve", left_side=True)),
    "f32[4,4] f32[4,2]",
)
along("triangular_solve vmap", mapped(linalg("triangular_solve", left_side=True)),
      "f32[3,4,4] f32[3,4,2]")  # fmt: skip
along("tridiagonal", linalg("tridiagonal"), "f32[4,4]", "c64[2,4,4]", "f64[4,4]", "f32[1,1]",
      lower=(True, False))  # fmt: skip
along("tridiagonal vmap", mapped(linalg("tridiagonal")), "f32[3,4,4]")
for _line in ("f32[4]", "f64[4]", "c64[4]", "f32[2,4]", "f32[2]", "f32[1]", "f32[3]", "bf16[4]"):
    _b = _line.replace("]", ",3]")
    along("tridiagonal_solve", linalg("tridiagonal_solve"), f"{_line} {_line} {_line} {_b}",
          perturb_singular=(False, True))  # fmt: skip
along(
    "tridiagonal_solve grad", grad_of(linalg("tridiagonal_solve")), "f32[4] f32[4] f32[4] f32[4,3]"
)
along("tridiagonal_solve vmap", mapped(linalg("tridiagonal_solve")),
      "f32[2,4] f32[2,4] f32[2,4] f32[2,4,3]")  # fmt: skip
along("hessenberg", linalg("hessenberg"), "f32[4,4]", "c64[2,4,4]")
along("schur", linalg("schur"), "f32[4,4]", "c64[2,4,4]")
along("qdwh", linalg("qdwh"), "f32[5,4]", "c64[4,4]")
NUMPY_LINALG = "det inv slogdet pinv matrix_rank cond eigvalsh svdvals"
for _name in NUMPY_LINALG.split():
    along(f"numpy.linalg.{_name}", lambda m, x, f=_name: getattr(m.numpy.linalg, f)(x), "f32[4,4]",
          "f32[2,4,4]")  # fmt: skip
along("numpy.linalg.solve", lambda m, a, b: m.numpy.linalg.solve(a, b), "f32[4,4] f32[4]",
      "c64[2,4,4] c64[2,4,3]")  # fmt: skip
along("numpy.linalg.solve grad", grad_of(lambda m, a, b: m.numpy.linalg.solve(a, b)),
      "f32[4,4] f32[4,3]")  # fmt: skip
along("numpy.linalg.lstsq", lambda m, a, b: m.numpy.linalg.lstsq(a, b), "f32[5,4] f32[5]")
along("numpy.linalg.qr", lambda m, x: m.numpy.linalg.qr(x), "f32[5,4]")
along("numpy.linalg.matrix_power", lambda m, x: m.numpy.linalg.matrix_power(x, 3), "f32[4,4]")
SCIPY_LINALG = "expm inv det lu polar sqrtm hessenberg schur"
for _name in SCIPY_LINALG.split():
    along(f"scipy.linalg.{_name}", lambda m, x, f=_name: _scipy(m, "linalg", f)(x), "f32[4,4]")
along("scipy.linalg.cho_solve", lambda m, a, b: _scipy(m, "linalg", "cho_solve")((a, True), b),
      "f32[4,4] f32[4,2]")  # fmt: skip
along("scipy.linalg.solve_triangular", lambda m, a, b: _scipy(m, "linalg", "solve_triangular")(a, b),
      "f32[4,4] f32[4]")  # fmt: skip
along("scipy.linalg.eigh_tridiagonal",
      lambda m, d, e: _scipy(m, "linalg", "eigh_tridiagonal")(d, e, eigvals_only=True),
      "f32[4] f32[3]")  # fmt: skip
along("random.orthogonal", lambda m, k: m.random.orthogonal(m.random.wrap_key_data(k), 4), "u32[2]")
along("random.multivariate_normal",
      lambda m, k, x: m.random.multivariate_normal(m.random.wrap_key_data(k), x[0], x), "u32[2] f32[4,4]")  # fmt: skip


def _scipy(m, package, name):
    """A function of `scipy`, which is imported by its full name."""
    module = __import__(f"{m.__name__}.scipy.{package}", fromlist=[name])
    return getattr(module, name)


# -- choice of the largest --------------------------------------------------------------------------

for _name in ("approx_max_k", "approx_min_k"):
    along(_name, lambda m, x, f=_name, **p: getattr(m.lax, f)(x, 3, **p), "f32[128]", "f32[4,1024]",
          "bf16[4,128]", recall_target=(0.95, 0.5))  # fmt: skip
    along(_name, lambda m, x, f=_name, **p: getattr(m.lax, f)(x, 3, **p), "f32[64,32]",
          reduction_dimension=(0, 1), aggregate_to_topk=(True, False))  # fmt: skip
    along(_name, lambda m, x, f=_name: getattr(m.lax, f)(x, 3, reduction_input_size_override=4096),
          "f32[128]")  # fmt: skip
along("approx_max_k vmap", mapped(lambda m, x: m.lax.approx_max_k(x, 3)), "f32[4,128]")
along("approx_max_k grad", grad_of(lambda m, x: m.lax.approx_max_k(x, 3)), "f32[128]")
along("top_k", lambda m, x: m.lax.top_k(x, 3), "f32[4,32]", "i32[32]", "bf16[4,32]")
along("top_k axis", lambda m, x: m.lax.top_k(x, 3, axis=0), "f32[32,4]")

# -- random bits ------------------------------------------------------------------------------------


def key_of(m, data, impl):
    return m.random.wrap_key_data(data, impl=impl)


SHAPES = ((), (5,), (4, 8), (3, 1, 2))
for _impl, _data in (("threefry2x32", "u32[2]"), ("rbg", "u32[4]"), ("unsafe_rbg", "u32[4]")):
    for _shape in SHAPES:
        along(f"random.bits {_impl} {_shape}",
              lambda m, k, i=_impl, s=_shape: m.random.bits(key_of(m, k, i), s), _data)  # fmt: skip
    along(
        f"random.bits {_impl} 8",
        lambda m, k, i=_impl: m.random.bits(key_of(m, k, i), (5,), "uint8"),
        _data,
    )
    along(
        f"random.bits {_impl} 64",
        lambda m, k, i=_impl: m.random.bits(key_of(m, k, i), (5,), "uint64"),
        _data,
    )
    along(f"random.split {_impl}", lambda m, k, i=_impl: m.random.split(key_of(m, k, i), 3), _data)
    along(
        f"random.fold_in {_impl}", lambda m, k, i=_impl: m.random.fold_in(key_of(m, k, i), 3), _data
    )
    along(
        f"random.normal {_impl}",
        lambda m, k, i=_impl: m.random.normal(key_of(m, k, i), (3, 4)),
        _data,
    )
    along(f"random.split vmap {_impl}", mapped(lambda m, k, i=_impl: m.random.bits(key_of(m, k, i), (3,))),
          _data.replace("[", "[5,"))  # fmt: skip
    along(
        f"random.key {_impl}",
        lambda m, s, i=_impl: m.random.key_data(m.random.key(s, impl=i)),
        "i32[]",
    )
RANDOM = {
    "gamma": lambda m, k: m.random.gamma(k, 2.0, (3,)), "poisson": lambda m, k: m.random.poisson(k, 2.0, (3,)),
    "permutation": lambda m, k: m.random.permutation(k, 8), "choice": lambda m, k: m.random.choice(k, 8, (3,)),
    "categorical": lambda m, k: m.random.categorical(k, m.numpy.ones(4)),
    "beta": lambda m, k: m.random.beta(k, 2.0, 3.0, (3,)), "randint": lambda m, k: m.random.randint(k, (3,), 0, 9),
    "truncated_normal": lambda m, k: m.random.truncated_normal(k, -1, 1, (3,)),
    "binomial": lambda m, k: m.random.binomial(k, 5, 0.4, (3,)), "t": lambda m, k: m.random.t(k, 3.0, (3,)),
}  # fmt: skip
for _name, _f in RANDOM.items():
    along(f"random.{_name}", lambda m, k, f=_f: f(m, key_of(m, k, "threefry2x32")), "u32[2]")
for _algorithm in ("RNG_DEFAULT", "RNG_PHILOX", "RNG_THREE_FRY"):
    for _dtype in ("uint32", "uint64", "uint8"):
        along(f"rng_bit_generator {_algorithm} {_dtype}",
              lambda m, k, a=_algorithm, d=_dtype: m.lax.rng_bit_generator(
                  k, (8,), d, getattr(m.lax.RandomAlgorithm, a)), "u32[4]")  # fmt: skip
along("rng_uniform", lambda m, a, b: m.lax.rng_uniform(a, b, (3,)), "f32[] f32[]", "i32[] i32[]")
along("random_gamma_grad", lambda m, a, x: m.lax.random_gamma_grad(a, x), "f32[4] f32[4]")

# -- products ----------------------------------------------------------------------------------------

along("scaled_matmul", lambda m, a, b, x, y, **p: m.nn.scaled_matmul(a, b, x, y, **p),
      "e4m3[1,32,64] e4m3[1,16,64] e8m0[1,32,2] e8m0[1,16,2]",
      "e4m3[2,128,128] e4m3[2,128,128] e8m0[2,128,4] e8m0[2,128,4]",
      "e2m1[1,32,64] e2m1[1,16,64] e4m3[1,32,4] e4m3[1,16,4]")  # fmt: skip


def scaled_dot(m, a, b, mode="mxfp8"):
    config = m.nn.get_scaled_dot_general_config(mode)
    return m.nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,))), configs=[config] * 3)


along("scaled_dot_general", scaled_dot, "bf16[1,32,64] bf16[1,16,64]", mode=("mxfp8",))
along("scaled_dot_general grad", grad_of(scaled_dot), "f32[1,32,64] f32[1,32,64]")
along("scaled_dot", lambda m, a, b, x, y: m.lax.scaled_dot(a, b, lhs_scale=x, rhs_scale=y),
      "e4m3[4,32] e4m3[32,8] e8m0[4,1] e8m0[1,8]", "bf16[4,32] bf16[32,8] bf16[4,1] bf16[1,8]")  # fmt: skip
along("ragged_dot", lambda m, a, b, s: m.lax.ragged_dot(a, b, s), "f32[8,4] f32[3,4,5] i32[3]",
      "bf16[8,4] bf16[3,4,5] i32[3]", "f32[16,8] f32[2,8,4] i64[2]")  # fmt: skip
along("ragged_dot grad", grad_of(lambda m, a, b, s: m.lax.ragged_dot(a, b, s)),
      "f32[8,4] f32[3,4,5] i32[3]")  # fmt: skip
along("ragged_dot vmap", mapped(lambda m, a, b, s: m.lax.ragged_dot(a, b, s)),
      "f32[2,8,4] f32[2,3,4,5] i32[2,3]")  # fmt: skip
for _a, _b in (("f32", "f32"), ("bf16", "bf16"), ("i8", "i8"), ("e4m3", "e4m3"), ("c64", "c64"), ("i32", "i32"),
               ("e4m3", "e5m2"), ("f16", "f16"), ("bf16", "f32")):  # fmt: skip
    along("dot", lambda m, a, b: m.lax.dot(a, b), f"{_a}[3,4] {_b}[4,5]")
    along("dot preferred", lambda m, a, b: m.lax.dot(a, b, preferred_element_type="float32"),
          f"{_a}[3,4] {_b}[4,5]")  # fmt: skip
ALGORITHMS = (
    "DEFAULT", "ANY_F8_ANY_F8_F32", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32",
    "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3",
    "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
for _name in ALGORITHMS:
    along(f"dot {_name}", lambda m, a, b, n=_name: m.lax.dot(
        a, b, precision=getattr(m.lax.DotAlgorithmPreset, n)), "f32[3,4] f32[4,5]", "bf16[3,4] bf16[4,5]")  # fmt: skip
for _kind in ("f32", "c64", "bf16", "i8", "f64"):
    along(
        "conv",
        lambda m, x, k: m.lax.conv(x, k, (1, 1), "SAME"),
        f"{_kind}[1,2,6,6] {_kind}[3,2,3,3]",
    )
along("conv grad", grad_of(lambda m, x, k: m.lax.conv(x, k, (1, 1), "SAME")),
      "f32[1,2,6,6] f32[3,2,3,3]", "c64[1,2,6,6] c64[3,2,3,3]")  # fmt: skip
along("conv vmap", mapped(lambda m, x, k: m.lax.conv(x, k, (1, 1), "SAME")),
      "f32[2,1,2,6,6] f32[2,3,2,3,3]")  # fmt: skip
for _kind in ("fft", "ifft", "rfft", "irfft"):
    along(
        f"numpy.fft.{_kind}",
        lambda m, x, f=_kind: getattr(m.numpy.fft, f)(x),
        "f32[8]",
        "f32[3,6]",
        "f64[8]",
    )
along("numpy.fft.fft2", lambda m, x: m.numpy.fft.fft2(x), "c64[4,8]", "c64[2,4,8]")

# -- cumulative, windows, sorting, special functions -------------------------------------------------

for _name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    _f = lambda m, x, f=_name, **p: getattr(m.lax, f)(x, **p)
    along(_name, _f, "f32[32]", "f32[4,32]", "bf16[4,200]", axis=(0,), reverse=(False, True))
    along(f"{_name} grad", grad_of(_f), "f32[32]")
    along(f"{_name} int", _f, "i32[32]" if "log" not in _name else "f64[32]")
for _name in ("max_pool", "avg_pool"):
    add(f"{_name} grad", grad_of(lambda m, x: m.lax.reduce_window(
        x, -np.inf, m.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")), "f32[1,8,8,2]")  # fmt: skip
along("max pool jvp", forward(lambda m, x: m.lax.reduce_window(
    x, -np.inf, m.lax.max, (2, 2), (1, 1), "VALID")), "f32[8,8]", "bf16[8,8]", "f64[8,8]")  # fmt: skip
along("max pool hessian", grad_of(grad_of(lambda m, x: m.lax.reduce_window(
    x, -np.inf, m.lax.max, (2, 2), (2, 2), "VALID"))), "f32[8,8]")  # fmt: skip
for _name in ("argmax", "argmin"):
    along(_name, lambda m, x, f=_name, **p: getattr(m.numpy, f)(x, **p), "f32[4,32]", "i32[32]", "bf16[32]",
          "b1[8]")  # fmt: skip
for _name in ("sort", "argsort", "median", "unique_counts", "any", "all", "nanmax"):
    if _name != "unique_counts":
        along(
            _name, lambda m, x, f=_name: getattr(m.numpy, f)(x), "f32[32]", "f32[4,32]", "bf16[32]"
        )
SPECIAL = (
    "erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e expm1 log1p tan cbrt sinh cosh asinh acosh "
    "atanh asin acos atan logistic exp2 is_finite round rsqrt nextafter_self population_count_"
)
for _name in SPECIAL.split():
    if _name.endswith("_self"):
        along("nextafter", lambda m, x: m.lax.nextafter(x, x), "f32[4]", "bf16[4]", "f16[4]")
    elif _name.endswith("_"):
        along("population_count", lambda m, x: m.lax.population_count(x), "u32[4]", "u8[4]")
    else:
        along(_name, lambda m, x, f=_name: getattr(m.lax, f)(x), "f32[4]", "bf16[4]")
for _name in [
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "expm1",
    "log1p",
    "logistic",
    "sqrt",
    "rsqrt",
    "cbrt",
    "sign",
]:
    along(_name, lambda m, x, f=_name: getattr(m.lax, f)(x), "c64[4]")
for _name in ("igamma", "igammac", "igamma_grad_a", "zeta", "atan2", "pow", "rem", "polygamma"):
    along(_name, lambda m, x, y, f=_name: getattr(m.lax, f)(x, y), "f32[4] f32[4]")
along("betainc", lambda m, x: m.lax.betainc(x, x, x), "f32[4]", "bf16[4]")
along("reduce_precision", lambda m, x: m.lax.reduce_precision(x, 5, 7), "f32[4]")
for _name in ("logsumexp", "softmax", "gelu", "silu"):
    along(f"nn.{_name}", lambda m, x, f=_name: getattr(m.nn, f)(x), "f32[4,8]", "bf16[4,8]")
along("scatter_add", lambda m, x, i: m.numpy.zeros(8, x.dtype).at[i].add(x), "f32[4] i32[4]", "c64[4] i32[4]",
      "bf16[4] i32[4]", "f64[4] i32[4]", "i64[4] i32[4]")  # fmt: skip
along(
    "scatter_mul",
    lambda m, x, i: m.numpy.ones(8, x.dtype).at[i].multiply(x),
    "f32[4] i32[4]",
    "c64[4] i32[4]",
)
along("scatter_max", lambda m, x, i: m.numpy.ones(8, x.dtype).at[i].max(x), "f32[4] i32[4]")
along("scatter_sub", lambda m, x, i: m.numpy.ones(8, x.dtype).at[i].subtract(x), "f32[4] i32[4]",
      "c64[4] i32[4]", "c128[4] i32[4]")  # fmt: skip
along("gather", lambda m, x, i: x[i], "f32[8,3] i32[4]", "c64[8] i32[4]")
along("empty", lambda m, x: m.lax.empty((3, 4), x.dtype), "f32[]", "bf16[]", "b1[]")

# -- sparse arrays ------------------------------------------------------------------------------------


def _sparse(m):
    return __import__(f"{m.__name__}.experimental.sparse.linalg", fromlist=["linalg"])


def matrix(m, kind, *parts, **known):
    """A sparse matrix (4, 5) of a kind, such as `BCOO`."""
    module = __import__(f"{m.__name__}.experimental.sparse", fromlist=[kind])
    return getattr(module, kind)(parts, shape=(4, 5), **known)


SPARSE = {
    "BCOO": ("i32[6,2]", {"indices_sorted": True, "unique_indices": True}),
    "BCSR": ("i32[6] i32[5]", {}), "CSR": ("i32[6] i32[5]", {}),
    "COO": ("i32[6] i32[6]", {"rows_sorted": True}),
}  # fmt: skip
for _kind, (_places, _known) in SPARSE.items():
    _product = lambda m, *xs, k=_kind, w=_known: matrix(m, k, *xs[:-1], **w) @ xs[-1]
    for _dtype in ("f32", "c64", "bf16", "f64"):
        along(f"{_kind} product", _product, f"{_dtype}[6] {_places} {_dtype}[5]",
              f"{_dtype}[6] {_places} {_dtype}[5,3]")  # fmt: skip
    along(f"{_kind} product grad", grad_of(_product), f"f32[6] {_places} f32[5]")
    along(f"{_kind} todense", lambda m, *xs, k=_kind: matrix(m, k, *xs).todense(),
          f"f32[6] {_places}", f"i32[6] {_places}")  # fmt: skip
along(
    "BCOO product unsorted",
    lambda m, x, i, y: matrix(m, "BCOO", x, i) @ y,
    "f32[6] i32[6,2] f32[5,3]",
)
along("BCOO product vmap", mapped(lambda m, x, i, y: matrix(m, "BCOO", x, i) @ y),
      "f32[2,6] i32[2,6,2] f32[2,5]")  # fmt: skip
along("COO product transposed", lambda m, x, i, j, y: matrix(m, "COO", x, i, j, rows_sorted=True).T @ y,
      "f32[6] i32[6] i32[6] f32[4,3]")  # fmt: skip
along("spsolve", lambda m, *xs, **p: _sparse(m).spsolve(*xs, **p), "f32[6] i32[6] i32[5] f32[4]",
      "c64[6] i32[6] i32[5] c64[4]", "f64[6] i32[6] i32[5] f64[4]", tol=(1e-6, 0), reorder=(0, 1))  # fmt: skip
along("spsolve grad", grad_of(lambda m, x, i, p, b: _sparse(m).spsolve(x, i, p, b)),
      "f32[6] i32[6] i32[5] f32[4]")  # fmt: skip

# -- the host, memory, choices by platform --------------------------------------------------------------


def callback(m, x, ordered=None, vectorized="sequential"):
    result = m.ShapeDtypeStruct(x.shape, x.dtype)
    if ordered is None:
        return m.pure_callback(np.asarray, result, x, vmap_method=vectorized)
    io = __import__(f"{m.__name__}.experimental", fromlist=["io_callback"]).io_callback
    return io(np.asarray, result, x, ordered=ordered)


along("pure_callback", callback, "f32[3]", "f32[]", "c64[3]", "b1[3]", "bf16[2,3]", "f64[3]")
along("pure_callback vmap", mapped(callback), "f32[4,3]")
along(
    "pure_callback vmap", mapped(functools.partial(callback, vectorized="expand_dims")), "f32[4,3]"
)
along("io_callback", callback, "f32[3]", ordered=(True, False))
along("debug.callback", lambda m, x: (m.debug.callback(print, x), x)[1], "f32[3]")
along(
    "debug.callback ordered",
    lambda m, x: (m.debug.callback(print, x, ordered=True), x)[1],
    "f32[3]",
)
along("debug.print", lambda m, x: (m.debug.print("{x}", x=x), x)[1], "f32[3]")
along("platform_dependent", lambda m, x: m.lax.platform_dependent(
    x, cpu=lambda x: x + 1, cuda=lambda x: x * 2, default=lambda x: x - 3), "f32[3]")  # fmt: skip
along("platform_dependent tpu", lambda m, x: m.lax.platform_dependent(
    x, tpu=lambda x: m.numpy.sin(x), rocm=lambda x: m.lax.linalg.qr(x)[0], default=m.numpy.cos), "f32[3,3]")  # fmt: skip
along("platform_dependent grad", grad_of(lambda m, x: m.lax.platform_dependent(
    x, tpu=m.numpy.sin, default=m.numpy.cos)), "f32[3]")  # fmt: skip
along("platform_dependent vmap", mapped(lambda m, x: m.lax.platform_dependent(
    x, tpu=m.numpy.sin, default=m.numpy.cos)), "f32[3]")  # fmt: skip
along("optimization_barrier", lambda m, x: m.lax.optimization_barrier(x), "f32[3]")
along("ffi_call", lambda m, x: m.ffi.ffi_call("some_target", m.ShapeDtypeStruct(x.shape, x.dtype))(
    x, count=np.int32(3), name="a"), "f32[3]")  # fmt: skip
along("device memory", lambda m, x: m.device_put(x, m.memory.Space.Host) * 1, "f32[3]")
along("composite", lambda m, x: m.lax.composite(lambda y: m.numpy.sin(y), "my.sin")(x), "f32[3]")

# -- attention and recurrent nets ------------------------------------------------------------------------


def attention(m, q, k, v, grad=False, **params):
    f = lambda q, k, v: m.nn.dot_product_attention(q, k, v, implementation="cudnn", **params)
    if not grad:
        return f(q, k, v)
    return m.grad(lambda q: f(q, k, v).astype("float32").sum())(q)


HEADS = "bf16[2,128,4,64] bf16[2,128,4,64] bf16[2,128,4,64]"
along("cudnn attention", attention, HEADS, is_causal=(False, True), grad=(False, True))
along("cudnn attention", attention, HEADS.replace("bf16", "f16"), is_causal=(True,))
along("cudnn attention window", attention, HEADS, local_window_size=((16, 0),), is_causal=(True,))
along("cudnn attention heads", attention, "bf16[2,128,4,64] bf16[2,128,2,64] bf16[2,128,2,64]")
along("cudnn attention bias", lambda m, q, k, v, b: m.nn.dot_product_attention(
    q, k, v, bias=b, implementation="cudnn"), f"{HEADS} bf16[2,4,128,128]")  # fmt: skip
along("cudnn attention mask", lambda m, q, k, v, b: m.nn.dot_product_attention(
    q, k, v, mask=b, implementation="cudnn"), f"{HEADS} b1[2,4,128,128]")  # fmt: skip
along("cudnn attention lengths", lambda m, q, k, v, a, b: m.nn.dot_product_attention(
    q, k, v, query_seq_lengths=a, key_value_seq_lengths=b, implementation="cudnn"),
    f"{HEADS} i32[2] i32[2]")  # fmt: skip
along("xla attention", lambda m, q, k, v: m.nn.dot_product_attention(q, k, v), HEADS)


def lstm(m, x, h, c, w, lengths, bidirectional=False):
    rnn = __import__(f"{m.__name__}.experimental.rnn", fromlist=["lstm"])
    return rnn.lstm(x, h, c, w, lengths, 5, 7, 1, 0.0, bidirectional)


along("lstm", lstm, "f32[2,6,5] f32[1,2,7] f32[1,2,7] f32[392] i32[2]")
along("lstm grad", grad_of(lstm), "f32[2,6,5] f32[1,2,7] f32[1,2,7] f32[392] i32[2]")

# -- collectives, over a mesh without devices -----------------------------------------------------------

MESHED = []


def over_four(f, outs="x", check=True):
    """A function of the parts of its arguments on four devices, whose axis is `x`."""

    def run(m, *xs):
        mesh, spec = m.sharding.AbstractMesh((4,), ("x",)), m.sharding.PartitionSpec
        ins, outs_ = spec("x"), spec(outs) if outs else spec()
        return m.shard_map(
            lambda *xs: f(m, *xs), mesh=mesh, in_specs=ins, out_specs=outs_, check_vma=check
        )(*xs)

    return run


_GROUPS = [[0, 1], [2, 3]]
COLLECTIVES = {
    "psum": (lambda m, x: m.lax.psum(x, "x"), None), "pmax": (lambda m, x: m.lax.pmax(x, "x"), None),
    "all_gather": (lambda m, x: m.lax.all_gather(x, "x"), "x"),
    "all_gather tiled": (lambda m, x: m.lax.all_gather(x, "x", axis=1, tiled=True), "x"),
    "psum_scatter": (lambda m, x: m.lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), "x"),
    "ppermute": (lambda m, x: m.lax.ppermute(x, "x", [(0, 1), (1, 2)]), "x"),
    "pshuffle": (lambda m, x: m.lax.pshuffle(x, "x", [1, 0, 3, 2]), "x"),
    "pbroadcast": (lambda m, x: m.lax.pbroadcast(x, "x", 1), "x"),
    "all_to_all": (lambda m, x: m.lax.all_to_all(x, "x", 1, 0, tiled=True), "x"),
    "psum of groups": (lambda m, x: m.lax.psum(x, "x", axis_index_groups=_GROUPS), "x"),
    "all_gather of groups": (lambda m, x: m.lax.all_gather(x, "x", axis_index_groups=_GROUPS), "x"),
}  # fmt: skip
for _name, (_f, _outs) in COLLECTIVES.items():
    _run = over_four(_f, _outs, "groups" not in _name)
    for _kind in ("f32", "c64", "i8", "bf16", "f64", "e4m3", *["b1"] * (_name != "psum_scatter")):
        MESHED.append((f"{_name} {_kind}", _run, f"{_kind}[8,8]"))
    if "groups" not in _name and _name not in ("pmax", "pbroadcast"):
        MESHED.append((f"{_name} grad", grad_of(_run), "f32[8,8]"))
MESHED.append(("ragged_all_to_all", over_four(lambda m, *xs: m.lax.ragged_all_to_all(*xs, axis_name="x")),
               "f32[16] f32[16] i32[16] i32[16] i32[16] i32[16]"))  # fmt: skip
MESHED.append(("axis_index", over_four(lambda m, x: x + m.lax.axis_index("x")), "i32[8,8]"))
