"""The rows of the table of compiled cost: one for each public function, on arrays of `INPUTS`.

Data, and what is read off it. A name of the modules of `MODULES` stands in a row or in `NO_PROGRAM`; `unnamed` tells
which do not.
"""

import importlib
import re
import typing

import numpy as np

_rng = np.random.RandomState(0)


def _normal(*shape):
    return _rng.randn(*shape).astype(np.float32)


_square = _normal(64, 64)

INPUTS = {
    "x": _normal(64, 128),
    "y": _normal(64, 128),
    "v": _normal(4096),
    "w": np.sort(_normal(512)),
    "a": _square,
    "s": _square @ _square.T + 10 * np.eye(64, dtype=np.float32),
    "p": np.abs(_normal(64, 128)) + 0.3,
    "q": np.abs(_normal(64, 128)) + 0.3,
    "u": _rng.uniform(0.01, 0.99, (64, 128)).astype(np.float32),
    "e": _normal(16, 8, 8),
    "z": (_normal(64, 64) + 1j * _normal(64, 64)).astype(np.complex64),
    "i": _rng.randint(0, 64, 512).astype(np.int32),
    "n": _rng.randint(-50, 50, (64, 128)).astype(np.int32),
    "b": _rng.rand(64, 128) > 0.5,
    "o": _rng.randint(0, 256, 4096).astype(np.uint8),
    "img": _normal(4, 32, 32, 8),
    "ker": _normal(3, 3, 8, 16),
    "seq": _normal(2, 64, 4, 16),
}

# Functions that are called with nothing but such arrays: the arrays, the module, the names.
ELEMENTWISE = """
x jnp abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan
x jnp atanh cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp i0
x jnp imag iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 modf
x jnp nan_to_num negative positive rad2deg radians real reciprocal rint sign signbit sin sinc sinh
x jnp spacing sqrt square tan tanh trunc all amax amin any argmax argmin argsort around average
x jnp copy corrcoef count_nonzero cov cumprod cumsum diff ediff1d flip fliplr flipud gradient
x jnp logical_not matrix_transpose max mean median min nanargmax nanargmin nancumprod nancumsum
x jnp nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ones_like empty_like prod ptp
x jnp ravel round sort sort_complex squeeze std sum trace transpose trapezoid tril triu unstack
x jnp unwrap var zeros_like atleast_1d atleast_2d atleast_3d array asarray
x,y jnp add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod
x,y jnp greater greater_equal heaviside hypot isclose less less_equal logaddexp logaddexp2 maximum
x,y jnp minimum mod multiply nextafter not_equal pow power remainder subtract true_divide allclose
x,y jnp array_equal array_equiv logical_and logical_or logical_xor vdot vecdot append
x,y jnp broadcast_arrays
n jnp bitwise_count bitwise_invert bitwise_not invert
n,n jnp bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm
n,n jnp left_shift right_shift ldexp floor_divide divmod mod
x lax abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf
x lax erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal round
x lax rsqrt sign sin sinh sqrt square stop_gradient tan tanh optimization_barrier dce_sink
x,y lax add atan2 complex div eq ge gt le lt max min mul ne nextafter pow rem sub
n,n lax bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical
n,n lax mulhi
n lax bitwise_not clz population_count
z lax conj
p,q lax igamma igamma_grad_a igammac random_gamma_grad zeta polygamma
p,q,u lax betainc
x nn celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid
x nn log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus
x nn sparse_plus sparse_sigmoid squareplus standardize swish tanh
p nn log1mexp
p special dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit factorial fresnel gamma gammaln
p special gammasgn i0 i0e i1 i1e log_ndtr log_softmax loggamma logsumexp ndtr sici softmax spence
p special wofz
u special logit ndtri
p,q special beta betaln boxcox boxcox1p comb gammainc gammaincc kl_div owens_t poch rel_entr
p,q special xlog1py xlogy zeta
p,q,u special betainc hyp1f1
a jnp.linalg cond det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_rank
a jnp.linalg matrix_transpose norm pinv qr slogdet svd svdvals trace vector_norm
s jnp.linalg cholesky
x,y jnp.linalg vecdot tensordot
z jnp.fft fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift irfft irfft2 irfftn
x jnp.fft ihfft rfft rfft2 rfftn
a lax.linalg eig hessenberg lu qdwh qr schur svd
s lax.linalg cholesky eigh tridiagonal
s scipy.linalg cho_factor cholesky eigh
a scipy.linalg det expm hessenberg inv lu lu_factor polar qr schur sqrtm svd
w scipy.linalg circulant fiedler toeplitz companion fiedler_companion hankel
x scipy.signal detrend
v scipy.signal stft welch
"""

CALLS = """
jnp.argwhere(x, size=99)
jnp.flatnonzero(x, size=99)
jnp.nonzero(x, size=99)
jnp.cumulative_sum(x, axis=0)
jnp.cumulative_prod(x, axis=0)
jnp.column_stack([x, y])
jnp.concat([x, y])
jnp.concatenate([x, y])
jnp.dstack([x, y])
jnp.hstack([x, y])
jnp.vstack([x, y])
jnp.stack([x, y])
jnp.unique_all(i, size=64)
jnp.unique_counts(i, size=64)
jnp.unique_inverse(i, size=64)
jnp.unique_values(i, size=64)
lax.imag(z)
lax.real(z)
x ** 7
jnp.power(n, n & 31)
jnp.floor_divide(n, 7)
jnp.divmod(n, 7)
jnp.gcd(n, 12)
jnp.lcm(n, 12)
jnp.ldexp(x, 3)
jnp.round(x, 2)
jnp.clip(x, -1, 1)
jnp.where(b, x, y)
jnp.select([b, ~b], [x, y])
jnp.choose(i % 2, [i, i], mode="wrap")
jnp.piecewise(x, [x < 0, x > 1], [0.0, lambda c: c, 2.0])
jnp.astype(x, jnp.int32)
jnp.sum(x, axis=1)
jnp.prod(x, axis=0)
jnp.mean(x, axis=1)
jnp.var(x, axis=0)
jnp.max(x, axis=1)
jnp.ptp(x, axis=0)
jnp.argmax(x, axis=1)
jnp.nanmean(x, axis=1)
jnp.nanvar(x, axis=1)
jnp.nanargmin(x, axis=1)
jnp.median(x, axis=1)
jnp.quantile(x, 0.3, axis=1)
jnp.nanquantile(x, 0.3, axis=1)
jnp.percentile(v, 30)
jnp.nanpercentile(x, 30, axis=0)
jnp.average(x, weights=p, axis=1)
jnp.histogram(v, bins=16)
jnp.histogram2d(v, v, bins=16)
jnp.histogramdd(x[:, :2], bins=16)
jnp.histogram_bin_edges(v, bins=16)
jnp.bincount(i, length=64)
jnp.digitize(v, w)
jnp.searchsorted(w, v)
jnp.cumsum(v)
jnp.cumsum(x, axis=0)
jnp.cumprod(x, axis=1)
jnp.nancumsum(x, axis=1)
jnp.diff(v)
jnp.gradient(v)
jnp.trapezoid(v)
jnp.interp(v, w, w)
jnp.sort(x, axis=1)
jnp.sort(v)
jnp.argsort(x, axis=0)
jnp.lexsort((i, i))
jnp.partition(v, 10)
jnp.argpartition(v, 10)
jnp.unique(i, size=64)
jnp.union1d(i, i, size=64)
jnp.intersect1d(i, i, size=64)
jnp.setdiff1d(i, i, size=64)
jnp.setxor1d(i, i, size=64)
jnp.isin(i, i)
jnp.take(x, i % 64, axis=0)
jnp.take_along_axis(x, n % 64, axis=0)
jnp.put(v, i, w, inplace=False)
jnp.put_along_axis(x, n[:1] % 64, 2.0, axis=0, inplace=False)
jnp.place(x, b, w, inplace=False)
jnp.fill_diagonal(a, 2.0, inplace=False)
jnp.compress(b[0], x, axis=1, size=20)
jnp.extract(b, x, size=20)
jnp.insert(v, 7, 2.0)
jnp.insert(x, jnp.array([1, 5]), 2.0, axis=1)
jnp.delete(v, 7)
jnp.delete(x, np.array([1, 5]), axis=1)
x[i % 64]
x[b.any(axis=1).astype(int), :3]
x[::2, ::-1]
x[3]
x[i[0]]
x.at[i % 64].add(1.0)
x.at[i % 64].set(0.0)
x.at[3].set(1.0)
x.at[:, 2:5].multiply(2.0)
x.at[i % 64].max(0.0)
x.at[i % 64].apply(jnp.sin)
jnp.block([[a, a], [a, a]])
jnp.tile(x, (2, 2))
jnp.repeat(x, 3, axis=0)
jnp.repeat(v, i[:4].repeat(1024), total_repeat_length=4096)
jnp.resize(x, (100, 100))
jnp.reshape(x, (-1,))
jnp.expand_dims(x, 1)
jnp.moveaxis(img, 1, 3)
jnp.rollaxis(img, 2)
jnp.swapaxes(x, 0, 1)
jnp.permute_dims(img, (3, 0, 2, 1))
jnp.roll(x, 5, axis=1)
jnp.roll(x, i[0], axis=1)
jnp.rot90(x)
jnp.pad(x, 3)
jnp.pad(x, 3, mode="reflect")
jnp.pad(x, 3, mode="symmetric")
jnp.pad(x, 3, mode="wrap")
jnp.pad(x, 3, mode="edge")
jnp.pad(x, 3, mode="linear_ramp")
jnp.pad(x, 3, mode="mean")
jnp.split(x, 4)
jnp.array_split(x, 5)
jnp.hsplit(x, 4)
jnp.vsplit(x, 4)
jnp.dsplit(img, 4)
jnp.broadcast_to(x[0], (64, 128))
jnp.full((64, 128), w[0])
jnp.full_like(x, 3.0)
jnp.zeros((64, 128))
jnp.ones((64, 128))
jnp.empty((64, 128))
jnp.arange(1000)
jnp.linspace(0.0, 1.0, 1000)
jnp.linspace(w[0], w[1], 1000)
jnp.logspace(0.0, 1.0, 1000)
jnp.geomspace(1.0, 10.0, 1000)
jnp.meshgrid(w, w)
jnp.ix_(i, i)
jnp.indices((64, 64))
jnp.fromfunction(lambda c, g: c * g, (64, 64))
jnp.blackman(64)
jnp.bartlett(64)
jnp.hamming(64)
jnp.hanning(64)
jnp.kaiser(64, 5.0)
jnp.eye(64)
jnp.identity(64)
jnp.tri(64)
jnp.triu(a)
jnp.tril(a, -1)
jnp.triu_indices(64)
jnp.tril_indices(64)
jnp.triu_indices_from(a)
jnp.tril_indices_from(a)
jnp.diag_indices(64)
jnp.diag_indices_from(a)
jnp.mask_indices(64, jnp.triu, size=2080)
jnp.unravel_index(i, (8, 8))
jnp.ravel_multi_index((i % 8, i % 8), (8, 8), mode="wrap")
jnp.diag(a)
jnp.diag(w)
jnp.diagflat(w)
jnp.diagonal(a)
jnp.trace(a)
jnp.vander(w, 8)
jnp.kron(a, a[:4, :4])
jnp.outer(v, w)
jnp.inner(x, y)
jnp.dot(a, x)
jnp.cross(x[:, :3], y[:, :3])
jnp.matmul(a, x)
jnp.matmul(e, e)
jnp.matvec(a, x.T)
jnp.vecmat(x.T, a)
jnp.einsum("ij,kj->ik", x, y)
jnp.einsum("ij,jk,kl->il", a, a, a)
jnp.tensordot(x, y, axes=2)
jnp.vdot(v, v)
jnp.convolve(v, w[:64])
jnp.correlate(v, w[:64])
jnp.polyval(w[:8], v)
jnp.poly(w[:8])
jnp.polyadd(w[:8], w[:9])
jnp.polysub(w[:8], w[:9])
jnp.polyder(w)
jnp.polydiv(w[:9], w[:3])
jnp.polyfit(w, w, 3)
jnp.polymul(w[:8], w[:9])
jnp.polyint(w)
jnp.roots(w[:9], strip_zeros=False)
jnp.unwrap(v)
jnp.packbits(b)
jnp.unpackbits(o)
jnp.apply_along_axis(jnp.cumsum, 0, x)
jnp.apply_over_axes(jnp.sum, x, (0, 1))
jnp.vectorize(lambda c, g: c * g, signature="(k),(k)->(k)")(x, y)
jnp.frompyfunc(jnp.add, 2, 1, identity=0)(x, y)
jnp.add.at(x, i % 64, 1.0, inplace=False)
jnp.add.reduceat(v, i)
jnp.add.accumulate(x)
jnp.multiply.outer(v, w)
jnp.linalg.norm(x)
jnp.linalg.norm(x, axis=1)
jnp.linalg.norm(a, ord=2)
jnp.linalg.norm(a, ord="nuc")
jnp.linalg.cross(x[:, :3], y[:, :3])
jnp.linalg.matmul(a, x)
jnp.linalg.outer(v, w)
jnp.linalg.det(e)
jnp.linalg.slogdet(e)
jnp.linalg.inv(e)
jnp.linalg.solve(a, a)
jnp.linalg.solve(e, e)
jnp.linalg.solve(a, w[:64])
jnp.linalg.lstsq(a, a)
jnp.linalg.pinv(e)
jnp.linalg.matrix_power(a, 5)
jnp.linalg.cholesky(a @ a.T)
jnp.linalg.multi_dot([a, x, y.T])
jnp.linalg.tensorinv(a.reshape(8, 8, 8, 8))
jnp.linalg.tensorsolve(a.reshape(8, 8, 64), a[:8, :8])
jnp.fft.rfft(v)
jnp.fft.irfft2(z)
jnp.fft.fft(z, axis=0)
jnp.fft.fftfreq(64)
jnp.fft.rfftfreq(64)
lax.sort(x)
lax.sort((i, i), num_keys=2)
lax.sort_key_val(i, i)
lax.top_k(x, 5)
lax.approx_max_k(x, 5)
lax.approx_min_k(x, 5)
lax.argmax(x, 1, jnp.int32)
lax.argmin(x, 1, jnp.int32)
lax.cumlogsumexp(x, axis=1)
lax.cummax(x, axis=0)
lax.cummin(x, axis=1, reverse=True)
lax.cumprod(x, axis=1)
lax.cumsum(x, axis=0, reverse=True)
lax.reduce(x, 0.0, lambda c, g: c + g, (0,))
lax.reduce(x, 1.0, lambda c, g: c * g, (1,))
lax.reduce(x, 0.0, lambda c, g: c + g * g, (1,))
lax.reduce_and(b, (0,))
lax.reduce_or(b, (0,))
lax.reduce_xor(n, (0,))
lax.reduce_max(x, (0,))
lax.reduce_min(x, (0,))
lax.reduce_prod(x, (0,))
lax.reduce_sum(x, (0,))
lax.reduce_precision(x, 5, 7)
lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "VALID")
lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME")
lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
lax.conv(img.transpose(0, 3, 1, 2), ker.transpose(3, 2, 0, 1), (1, 1), "SAME")
lax.conv_general_dilated(img, ker, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.conv_general_dilated(img, ker, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.conv_general_dilated(img, ker, (1, 1), "SAME", None, (2, 2), ("NHWC", "HWIO", "NHWC"))
lax.conv_general_dilated(img, ker[:, :, :1], (1, 1), "SAME", None, None, ("NHWC", "HWIO", "NHWC"), 8)
lax.conv_general_dilated_patches(img, (3, 3), (1, 1), "SAME")
lax.conv_general_dilated_local(e[None], jnp.ones((8, 64, 7, 7)), (1, 1), "VALID", (2, 2))
lax.conv_transpose(img, ker, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.conv_with_general_padding(img, img[:, :, :3, :3], (1, 1), [(1, 1)] * 2, None, None)
lax.associative_scan(jnp.add, v)
lax.associative_scan(jnp.multiply, v)
lax.associative_scan(lambda c, g: (c[0] * g[0], c[1] * g[0] + g[1]), (x, y), axis=1)
lax.fori_loop(0, 10, lambda k, c: c * c, x)
lax.scan(lambda c, g: (c + g, c * g), x[0], x)
lax.scan(lambda c, g: (c * g, jnp.sin(c)), x[0], x)[1]
lax.map(lambda c: jnp.sin(c) * 2, x)
lax.map(lambda c: jnp.sin(c) * 2, x, batch_size=16)
lax.while_loop(lambda c: c[0] < 30, lambda c: (c[0] + 1, c[1] * 1.01), (0, x))
lax.cond(w[0] > 0, jnp.sin, jnp.cos, x)
lax.switch(i[0] % 3, [jnp.sin, jnp.cos, jnp.tanh], x)
lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
lax.custom_root(lambda c: c**3 - p[0, 0], q[0, 0], lambda f, c: c - f(c), lambda g, c: c / g(1.0))
lax.custom_linear_solve(lambda c: s @ c, w[:64], lambda f, c: jnp.linalg.solve(s, c), symmetric=True)
lax.composite(lambda c: jnp.sin(c) * 2, "tests.sine")(x)
lax.dynamic_slice(x, (i[0], i[1]), (8, 16))
lax.dynamic_slice_in_dim(x, i[0], 8)
lax.dynamic_index_in_dim(x, i[0])
lax.dynamic_update_slice(x, y[:4, :4], (i[0], i[1]))
lax.dynamic_update_slice_in_dim(x, y[:4], i[0], 0)
lax.dynamic_update_index_in_dim(x, y[0], i[0], 0)
lax.index_in_dim(x, 3)
lax.index_take(x, (i % 64,), (0,))
lax.slice(x, (1, 2), (60, 90), (3, 4))
lax.slice_in_dim(x, 3, 50)
lax.gather(x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 128))
lax.scatter(x, i[:1], y[0], lax.ScatterDimensionNumbers((0,), (0,), (0,)))
lax.scatter_add(x, i[:64, None], y, lax.ScatterDimensionNumbers((1,), (0,), (0,)))
lax.scatter_sub(x, i[:64, None], y, lax.ScatterDimensionNumbers((1,), (0,), (0,)))
lax.scatter_mul(x, i[:64, None], y, lax.ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True)
lax.scatter_max(x, i[:64, None], y, lax.ScatterDimensionNumbers((1,), (0,), (0,)))
lax.scatter_min(x, i[:64, None], y, lax.ScatterDimensionNumbers((1,), (0,), (0,)))
lax.scatter_apply(x, i[:1], jnp.sin, lax.ScatterDimensionNumbers((0,), (0,), (0,)), update_shape=(128,))
lax.select(b, x, y)
lax.select_n(b, x, y)
lax.clamp(-1.0, x, 1.0)
lax.pad(x, 0.0, ((1, 2, 1), (3, 4, 0)))
lax.pad(x, 0.0, ((-1, -2, 0), (3, -4, 2)))
lax.rev(x, (0, 1))
lax.integer_pow(x, 5)
lax.integer_pow(x, -2)
lax.bitcast_convert_type(x, jnp.int32)
lax.convert_element_type(x, jnp.bfloat16)
lax.broadcast(x, (3,))
lax.broadcast_in_dim(x, (64, 3, 128), (0, 2))
lax.broadcast_like(x[0], x)
lax.broadcast_to_rank(x, 4)
lax.broadcasted_iota(jnp.int32, (64, 128), 1)
lax.iota(jnp.int32, 1000)
lax.full((64, 128), 2.0)
lax.full_like(x, 2.0)
lax.empty((64, 128), jnp.float32)
lax.collapse(img, 1, 3)
lax.concatenate([x, y], 1)
lax.stack([x, y])
lax.unstack(x)
lax.expand_dims(x, (0,))
lax.reshape(x, (128, 64))
lax.squeeze(img[:1], (0,))
lax.split(x, (16, 48))
lax.tile(x, (2, 2))
lax.transpose(x, (1, 0))
lax.dot(a, x)
lax.dot_general(e, e, (((2,), (1,)), ((0,), (0,))))
lax.batch_matmul(e, e)
lax.ragged_dot(x, e.reshape(1, 128, 8), jnp.array([64]))
lax.ragged_dot(x, jnp.stack([y.T, y.T]), jnp.array([20, 44]))
lax.ragged_dot_general(x, jnp.stack([y.T, y.T]), jnp.array([20, 44]), lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)))
lax.scaled_dot(x.astype(jnp.float8_e4m3fn), y.T.astype(jnp.float8_e4m3fn), lhs_scale=jnp.ones((64, 4), jnp.float8_e8m0fnu), rhs_scale=jnp.ones((4, 64), jnp.float8_e8m0fnu))
lax.fft(z, "fft", (64,))
lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (64,))
lax.rng_uniform(0.0, 1.0, (64,))
jax.vmap(lambda c: lax.psum(c, "k"), axis_name="k")(x)
jax.vmap(lambda c: lax.pmax(c, "k"), axis_name="k")(x)
jax.vmap(lambda c: lax.pmin(c, "k"), axis_name="k")(x)
jax.vmap(lambda c: lax.pmean(c, "k"), axis_name="k")(x)
jax.vmap(lambda c: lax.ppermute(c, "k", [(0, 1), (1, 0)]), axis_name="k")(x[:2])
jax.vmap(lambda c: lax.pshuffle(c, "k", [1, 0]), axis_name="k")(x[:2])
jax.vmap(lambda c: lax.all_gather(c, "k"), axis_name="k", out_axes=None)(x)
jax.vmap(lambda c: lax.all_to_all(c, "k", 0, 0), axis_name="k")(a)
jax.vmap(lambda c: lax.pswapaxes(c, "k", 0), axis_name="k")(a)
jax.vmap(lambda c: lax.psum_scatter(c, "k"), axis_name="k")(a)
jax.vmap(lambda c: c + lax.axis_index("k") + lax.axis_size("k"), axis_name="k")(x)
lax.linalg.cholesky_update(jnp.linalg.cholesky(s), a[0])
lax.linalg.householder_product(a, a[:, 0])
lax.linalg.lu_pivots_to_permutation(i[:16] % 16, 64)
lax.linalg.ormqr(a, a[0], a)
lax.linalg.symmetric_product(a, s)
lax.linalg.triangular_solve(s, a, left_side=True, lower=True)
lax.linalg.tridiagonal_solve(w[:64] * 0.1, w[:64] * 0 + 4, w[:64] * 0.1, a)
nn.one_hot(i, 64)
nn.gelu(x, approximate=False)
nn.softmax(x, axis=0)
nn.softmax(x, where=b)
nn.logsumexp(x, axis=1)
nn.logsumexp(x, axis=1, b=y)
nn.dot_product_attention(img, img, img)
nn.dot_product_attention(seq, seq, seq, is_causal=True)
nn.initializers.constant(2.0)(key, (64, 64))
nn.initializers.zeros(key, (64, 64))
nn.initializers.ones(key, (64, 64))
nn.initializers.normal()(key, (64, 64))
nn.initializers.uniform()(key, (64, 64))
nn.initializers.truncated_normal()(key, (64, 64))
nn.initializers.orthogonal()(key, (64, 64))
nn.initializers.delta_orthogonal()(key, (3, 16, 16))
nn.initializers.variance_scaling(1.0, "fan_in", "normal")(key, (64, 64))
nn.initializers.glorot_normal()(key, (64, 64))
nn.initializers.glorot_uniform()(key, (64, 64))
nn.initializers.he_normal()(key, (64, 64))
nn.initializers.he_uniform()(key, (64, 64))
nn.initializers.kaiming_normal()(key, (64, 64))
nn.initializers.kaiming_uniform()(key, (64, 64))
nn.initializers.lecun_normal()(key, (64, 64))
nn.initializers.lecun_uniform()(key, (64, 64))
nn.initializers.xavier_normal()(key, (64, 64))
nn.initializers.xavier_uniform()(key, (64, 64))
random.key(i[0])
random.PRNGKey(i[0])
random.key_data(random.wrap_key_data(random.key_data(key)))
random.clone(key)
random.fold_in(key, i[0])
random.split(key, 10)
random.uniform(key, (1000,))
random.normal(key, (1000,))
random.normal(key, (1000,), jnp.bfloat16)
random.bits(key, (1000,))
random.bits(key, (1000,), jnp.uint8)
random.randint(key, (1000,), 0, 100)
random.permutation(key, 1000)
random.permutation(key, x)
random.permutation(key, x, independent=True)
random.choice(key, 1000, (10,), replace=False)
random.choice(key, 1000, (10,))
random.choice(key, w, (100,), p=jnp.abs(w) / jnp.abs(w).sum())
random.categorical(key, x)
random.truncated_normal(key, -1, 1, (1000,))
random.ball(key, 4, 2.0, (100,))
random.bernoulli(key, 0.3, (1000,))
random.bernoulli(key, u)
random.beta(key, 2.0, 3.0, (100,))
random.binomial(key, 100.0, 0.3, (100,))
random.cauchy(key, (1000,))
random.chisquare(key, 3.0, (100,))
random.dirichlet(key, p[0, :8], (10,))
random.double_sided_maxwell(key, 0.0, 1.0, (1000,))
random.exponential(key, (1000,))
random.f(key, 3.0, 4.0, (100,))
random.gamma(key, 2.0, (100,))
random.gamma(key, p)
random.generalized_normal(key, 2.0, (100,))
random.geometric(key, 0.3, (1000,))
random.gumbel(key, (1000,))
random.laplace(key, (1000,))
random.loggamma(key, 2.0, (100,))
random.logistic(key, (1000,))
random.lognormal(key, 1.0, (1000,))
random.maxwell(key, (1000,))
random.multinomial(key, 100.0, u[0, :8])
random.multivariate_normal(key, w[:8], jnp.eye(8))
random.orthogonal(key, 16)
random.pareto(key, 3.0, (1000,))
random.poisson(key, 3.0, (100,))
random.poisson(key, p)
random.rademacher(key, (1000,))
random.rayleigh(key, 1.0, (1000,))
random.t(key, 3.0, (100,))
random.triangular(key, 0.0, 0.5, 1.0, (1000,))
random.wald(key, 1.0, (1000,))
random.weibull_min(key, 1.0, 2.0, (1000,))
image.resize(img, (4, 48, 48, 8), "bilinear")
image.resize(img, (4, 16, 16, 8), "lanczos3")
image.resize(img, (4, 48, 40, 8), "cubic")
image.resize(img, (4, 48, 48, 8), "nearest")
image.scale_and_translate(img[0], (48, 48, 8), (0, 1), w[:2] * 0 + 1.5, w[:2], "linear")
jax.ops.segment_sum(w, i, 64)
jax.ops.segment_max(w, i, 64)
jax.ops.segment_min(w, i, 64)
jax.ops.segment_prod(w, i, 64)
special.bernoulli(40)
special.bessel_jn(p[0], v=5)
special.expn(3, p)
special.hyp2f1(p, q, q + 1, u * 0.5)
special.logsumexp(x, b=y, axis=0)
special.multigammaln(p + 3, 3)
special.polygamma(2, p)
special.sph_harm_y(i[:10] % 3, i[:10] % 5, u[0, :10], u[1, :10], n_max=5)
special.wofz(z)
scipy.linalg.block_diag(a, s, a)
scipy.linalg.cho_solve((s, True), a)
scipy.linalg.convolution_matrix(w[:16], 64)
scipy.linalg.dft(64)
scipy.linalg.eigh_tridiagonal(w[:64], w[:63], eigvals_only=True)
scipy.linalg.expm(e)
scipy.linalg.expm_frechet(a, s)
scipy.linalg.funm(a, jnp.sqrt)
scipy.linalg.hadamard(64)
scipy.linalg.helmert(64)
scipy.linalg.hilbert(64)
scipy.linalg.invhilbert(8)
scipy.linalg.invpascal(16)
scipy.linalg.leslie(w[:64], w[:63])
scipy.linalg.lu_solve((a, i[:64]), a)
scipy.linalg.pascal(16)
scipy.linalg.polar(a, method="qdwh")
scipy.linalg.qr_multiply(a, a)
scipy.linalg.rsf2csf(a, a)
scipy.linalg.solve(s, a)
scipy.linalg.solve(s, a, assume_a="pos")
scipy.linalg.solve_sylvester(a, s, a)
scipy.linalg.solve_triangular(s, a)
scipy.signal.convolve(v, w[:64])
scipy.signal.convolve(v, w, method="fft")
scipy.signal.convolve2d(x, a[:5, :5], mode="same")
scipy.signal.correlate(v, w[:64])
scipy.signal.correlate2d(x, a[:5, :5], mode="valid")
scipy.signal.csd(v, v)
scipy.signal.detrend(x, axis=0, bp=[20])
scipy.signal.fftconvolve(v, w)
scipy.signal.fftconvolve(x, a)
scipy.signal.istft(z)
"""

# What compiles to no program of its own on one CPU: questions about types and shapes, files and
# texts, shapes that depend on values, what only runs on several devices or on a GPU.
NO_PROGRAM = """
jnp array_repr array_str broadcast_shapes can_cast einsum_path from_dlpack frombuffer fromfile
jnp fromiter fromstring get_printoptions iscomplexobj isdtype isrealobj isscalar issubdtype
jnp iterable load ndim printoptions promote_types result_type save savez set_printoptions shape
jnp size trim_zeros
lax DotDimensionNumbers after_all broadcast_shapes conv_dimension_numbers conv_general_permutations
lax conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple create_token dtype
lax padtype_to_pads pbroadcast pcast precv psend ragged_all_to_all reduce_window_shape_tuple
lax shape_as_value stage with_sharding_constraint
random key_dtype key_impl
nn get_scaled_dot_general_config scaled_dot_general scaled_matmul
"""

# Where the names come from, by the name that rows call them by.
MODULES = {
    "jnp": "numpy",
    "jnp.linalg": "numpy.linalg",
    "jnp.fft": "numpy.fft",
    "lax": "lax",
    "lax.linalg": "lax.linalg",
    "random": "random",
    "nn": "nn",
    "nn.initializers": "nn.initializers",
    "image": "image",
    "jax.ops": "ops",
    "special": "scipy.special",
    "scipy.linalg": "scipy.linalg",
    "scipy.signal": "scipy.signal",
}

# Why something costs more by XLA's account, by a pattern of the row; the first that fits.
REASONS = {
    r"setxor1d|extract|compress|union1d|unique|place|repeat": "counts by blocks, not by a pass for "
    "each power of two",
    r"sort|median|percentile|quantile|partition": "sorted as integers, whose comparison is one",
    r"argm": "compared as integers, which takes no care of NaN in the loop",
    r"cum|nanprod": "by blocks: less work, in more pieces",
    r"slogdet": "the identity that is solved for is scattered into zeros, not made by a mask",
    r"linalg\.det\(": "the gradient is right for singular matrices too",
    r"sinc\(": "the quotient is kept for its derivative, not computed again",
    r"attention": "probabilities are laid out for the product with the values",
    r"linalg\.qr\(|solve_triangular|standardize": "the same work; one array more is alive at once",
    r"power\(n": "a loop for exponents from 64 on, where upstream is wrong; not run here",
    r"diagflat|insert": "a choice in one pass over the result, not a scatter into zeros",
    r"dft|hilbert|helmert|circulant|convolution_matrix|polyder|fiedler": "a part is a constant, read",
    r"modf": "the fraction takes the sign of x: of -1.0 it is -0.0, as NumPy's",
    r"geomspace": "both ends are exact, by two choices",
    r"wofz\(p": "Dawson's integral, in more operations and far fewer bytes",
    r"wofz": "one sum for all z; in 64 bits its error is 1.5e-14, upstream's 3e-13",
    r"fresnel": "wofz's sum; in 32 bits its error for large x is 3e-7, upstream's 4e-7",
    r"bessel_jn": "begins at an order that the dtype has, where upstream's values are NaN",
    r"log_ndtr": "ndtr is taken in two ranges, in each of arguments clipped to it",
    r"sici": "sums that both integrals share are kept",
    r"betainc|hyp1f1": "a step of the loop does more, and fewer are taken",
    r"csd|welch|stft": "segments are laid out once, with their trend taken out",
    r"detrend": "the lines come from sums, not products: what is between the passes is kept",
    r"qdwh|polar": "steps with known weights are written out, where a loop's are counted once",
    r"rsf2csf": "rows and columns are rotated whole, and chosen",
    r"sylvester": "LAPACK's trsyl, whose arguments are copied",
    r"permutation": "keys and order of both rounds are alive at once",
    r"lax\.complex|lax\.conj|fftshift": "the slope of abs is XLA's sign, conjugated, not a quotient",
    r"hypot": "free of overflow in the derivative too",
    r"lax\.reduce\(|switch": "slices are joined instead of padded and added: fewer bytes",
    r"i0e": "value and derivative take a square root each",
    r"histogramdd": "the places along the axes are joined before they are counted",
    r"roots": "18 operations of 368, in the companion matrix",
}


def reason(label):
    for pattern, text in REASONS.items():
        if re.search(pattern, label):
            return text
    return "no reason is known"


def expressions():
    """Every row once: the calls, then the functions of arrays alone."""
    found = dict.fromkeys(line for line in CALLS.splitlines() if line)
    for line in ELEMENTWISE.strip().splitlines():
        arrays, module, *names = line.split()
        found |= {f"{module}.{name}({arrays.replace(',', ', ')})": None for name in names}
    return list(found)


def unnamed(package):
    """The public functions of a package that no row calls and `NO_PROGRAM` does not list."""
    text = "\n".join(expressions())
    left_out = {
        f"{module}.{name}"
        for module, *names in map(str.split, NO_PROGRAM.strip().splitlines())
        for name in names
    }
    found = []
    for prefix, path in MODULES.items():
        module = importlib.import_module(f"{package}.{path}")
        for name in module.__all__:
            function = getattr(module, name)
            is_type = isinstance(function, type) or typing.get_origin(function) is not None
            if not callable(function) or is_type or name.endswith("_p"):
                continue
            full = f"{prefix}.{name}"
            if full not in left_out and not re.search(rf"(?<![\w.]){re.escape(full)}\b", text):
                found.append(full)
    return found
