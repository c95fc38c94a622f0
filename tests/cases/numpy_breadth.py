"""Rows for every function of `jax.numpy` under `vmap`, `grad` and `jvp`; used by
`numpy/test_every_function`.

As in `numpy_cases`; a row holds several functions, which are run as one program.
"""

# Differentiable in the arrays that they name; complex results are taken apart.
DERIVED = """
jnp.sin(f), jnp.cos(f), jnp.tan(f), jnp.sinh(f), jnp.cosh(f), jnp.sinc(f)
jnp.asin(f / 8), jnp.arcsin(f / 8), jnp.acos(f / 8), jnp.arccos(f / 8), jnp.atan(f), jnp.arctan(f)
jnp.asinh(f), jnp.arcsinh(f), jnp.acosh(p + 1), jnp.arccosh(p + 1), jnp.atanh(f / 8)
jnp.exp(f), jnp.expm1(f), jnp.log(p), jnp.log2(p), jnp.log10(p), jnp.cbrt(f), jnp.arctanh(f / 8)
jnp.absolute(f), jnp.fabs(f), jnp.negative(f), jnp.positive(f), jnp.reciprocal(g), jnp.square(f)
jnp.deg2rad(f), jnp.degrees(f), jnp.rad2deg(f), jnp.radians(f)
jnp.floor(f), jnp.ceil(f), jnp.trunc(f), jnp.rint(f), jnp.round(f), jnp.around(f), jnp.sign(f)
jnp.modf(f), jnp.real(f), jnp.imag(f), jnp.conj(f), jnp.conjugate(f), jnp.heaviside(f, 0.5)
jnp.real((f + 1j * g) ** 2), jnp.imag(jnp.exp(f + 1j * g)), jnp.angle(f + 1j * g)
jnp.add(f, g), jnp.subtract(f, g), jnp.multiply(f, g), jnp.divide(f, g), jnp.true_divide(f, g)
jnp.pow(jnp.abs(f), g), jnp.float_power(jnp.abs(f), g), jnp.ldexp(f, 2), jnp.frexp(f)[0]
jnp.mod(f, g), jnp.fmod(f, g), jnp.fmax(f, g), jnp.fmin(f, g), jnp.atan2(f, g)
jnp.floor_divide(f, g), jnp.divmod(f, g)
jnp.reshape(m, (3, 2)), jnp.ravel(m, order="F"), jnp.transpose(m), jnp.permute_dims(t, (2, 0, 1))
jnp.matrix_transpose(t), jnp.swapaxes(t, 0, 1), jnp.moveaxis(t, 0, -1), jnp.rollaxis(t, 2)
jnp.atleast_1d(f), jnp.atleast_2d(f), jnp.atleast_3d(m), jnp.broadcast_to(f, (2, 3))
jnp.broadcast_arrays(f, m)
jnp.resize(f, (2, 4)), jnp.rot90(m), jnp.fliplr(m), jnp.flipud(m)
jnp.concat([f, g]), jnp.hstack([f, g]), jnp.vstack([f, g]), jnp.dstack([f, g])
jnp.column_stack([f, g]), jnp.append(f, g), jnp.block([[f, g], [g, f]])
jnp.array_split(p, 3), jnp.hsplit(m, 3), jnp.vsplit(m, 2), jnp.dsplit(t, 2), jnp.unstack(m)
jnp.insert(f, 1, g[0]), jnp.delete(f, 1), jnp.diagflat(m), jnp.fill_diagonal(sq, s, inplace=False)
jnp.astype(f, jnp.float16), jnp.asarray(f), jnp.array([f, g]), jnp.copy(f), jnp.float32(f)
jnp.zeros_like(f) + f, jnp.ones_like(f) * g, jnp.full_like(f, s), jnp.full((2, 3), g)
jnp.amax(m, 1), jnp.amin(m, 0), jnp.ptp(m, axis=1), jnp.nanmax(m, axis=1), jnp.nanmin(m)
jnp.nanstd(m, axis=0), jnp.nanvar(m), jnp.nanprod(m, axis=1), jnp.nancumsum(m, axis=1)
jnp.nancumprod(m, axis=1), jnp.cumulative_sum(m, axis=1), jnp.cumulative_prod(m, axis=0)
jnp.percentile(m, 30.0, axis=1), jnp.nanpercentile(m, 30.0), jnp.nanquantile(m, 0.3, axis=0)
jnp.nanmedian(m, axis=1)
jnp.inner(m, f), jnp.vdot(f, g), jnp.vecdot(m, f), jnp.matvec(m, f), jnp.vecmat(f, m.T)
jnp.take_along_axis(m, np.array([[0, 2], [1, -1]]), axis=1)
jnp.put(f, np.array([0, 2]), g[:2], inplace=False), jnp.place(f, f > 0, g, inplace=False)
jnp.put_along_axis(m, np.array([[0], [1]]), s, axis=1, inplace=False)
jnp.choose(np.array([0, 1, 0]), [f, g], mode="clip"), jnp.piecewise(f, [f < 0], [jnp.sin, jnp.exp])
jnp.compress(np.array([True, False, True]), f, size=2), jnp.extract(f > 0, f, size=2)
jnp.partition(p, 2), jnp.real(jnp.sort_complex(f)), jnp.unwrap(p * 2)
jnp.diff(p), jnp.ediff1d(p), jnp.correlate(p, f, mode="full"), jnp.geomspace(p, p + 1, 3)
jnp.logspace(f, g, 3), jnp.unique(f, size=3), jnp.union1d(f, g, size=6)
jnp.polyadd(f, p), jnp.polysub(f, p), jnp.polymul(f, p), jnp.polyder(p), jnp.polyint(p)
jnp.polydiv(p, f), jnp.apply_over_axes(jnp.sum, t, [0, 2])
jnp.bincount(np.array([0, 1, 0]), weights=f, length=2), jnp.frompyfunc(jnp.multiply, 2, 1)(f, g)
jnp.histogram(np.array([0.5, 1.0, 3.0], np.float32), bins=2, weights=f)[0]
"""

# Mapped, compiled; the results are integers or booleans, or have no derivative.
MAPPED = """
jnp.equal(f, g), jnp.not_equal(f, g), jnp.less(f, g), jnp.less_equal(f, g), jnp.greater(f, g)
jnp.greater_equal(f, g), jnp.isfinite(f), jnp.isinf(f), jnp.isnan(f), jnp.isneginf(f), jnp.isposinf(f)
jnp.signbit(f), jnp.iscomplex(f), jnp.isreal(f), jnp.isclose(f, g), jnp.allclose(f, g)
jnp.array_equal(f, g), jnp.array_equiv(f, m), jnp.isin(i, n)
jnp.logical_and(i, f), jnp.logical_or(i, f), jnp.logical_xor(i, f), jnp.logical_not(i)
jnp.bitwise_and(i, 6), jnp.bitwise_or(i, 6), jnp.bitwise_xor(i, 6), jnp.bitwise_not(i)
jnp.bitwise_invert(i), jnp.invert(i), jnp.bitwise_count(i), jnp.gcd(i, 6), jnp.lcm(i, 6)
jnp.left_shift(i, 2), jnp.right_shift(i, 1), jnp.bitwise_left_shift(i, 2)
jnp.bitwise_right_shift(i, 1), jnp.nextafter(f, g), jnp.spacing(f), jnp.frexp(f)
jnp.argmax(m, axis=1), jnp.argmin(m), jnp.nanargmax(m, axis=0), jnp.nanargmin(m), jnp.argsort(m)
jnp.argpartition(p, 2), jnp.lexsort((f, g)), jnp.argwhere(im, size=3), jnp.nonzero(im, size=3)
jnp.flatnonzero(im, size=3), jnp.count_nonzero(im, axis=1), jnp.all(im, axis=0), jnp.any(im)
jnp.searchsorted(srt, f), jnp.digitize(f, srt), jnp.unravel_index(i, (3, 4))
jnp.ravel_multi_index((i, i), (9, 9), mode="clip"), jnp.packbits(i > 0), jnp.unpackbits(u)
jnp.unique_values(i, size=3), jnp.unique_counts(i, size=3), jnp.unique_inverse(i, size=3)
jnp.unique_all(i, size=3), jnp.setdiff1d(i, i[:1], size=2), jnp.setxor1d(i, i[:1] + 1, size=4)
jnp.intersect1d(i, i[1:], size=3), jnp.ix_(i, i[:2])
jnp.histogram(f, bins=3), jnp.histogram_bin_edges(f, bins=3)
jnp.histogram2d(f, g, bins=2), jnp.histogramdd(m.T, bins=2)
jnp.mask_indices(3, jnp.triu, size=6)[0] + i[0], jnp.tril_indices_from(sq), jnp.triu_indices_from(sq)
jnp.diag_indices_from(sq), jnp.empty_like(f) * 0, jnp.bool_(f), jnp.int32(f), jnp.complex64(f)
"""

# Named nowhere above, with the reason.
UNMAPPED = {
    "no operand is an array": """
        arange bartlett blackman broadcast_shapes can_cast diag_indices dtype empty eye finfo
        frombuffer fromfunction fromstring hamming hanning identity iinfo indices isdtype issubdtype
        kaiser ones promote_types result_type tri tril_indices triu_indices zeros""",
    "answers of types and shapes": """
        array_repr array_str einsum_path iscomplexobj isrealobj isscalar iterable ndim shape size
        get_printoptions printoptions set_printoptions""",
    "files, and other makers of memory": "from_dlpack fromfile fromiter load save savez",
    "the size of the result depends on values": "trim_zeros",
    "classes": "ComplexWarning ndarray ufunc",
}

# Of modules that have tests of their own.
ELSEWHERE = {"poly", "polyfit", "roots"}
