"""The exceptions of `test_everywhere`: a pattern of settings and rows, and why the answers differ."""

import re

_OWN = "upstream checks what the function computes inside, which is not the user's affair"

_SHAPES = "shapes that do not fit: not checked by upstream, or not where nothing is to be done"
_FLAG = "a parameter of the operation, which must be known; upstream fails where it runs"
_ITSELF = (
    "not compiled as a whole: it says itself what must be known, where upstream cannot hash it"
)
_UNREAD = "taken, where upstream cannot hash it: it is not read, or need not be known"
_OTHERWISE = "another conversion of the tracer comes first; both errors say that it has no value"
_FAILS = "upstream fails inside of it; NumPy and SciPy, or the definition, have a value"

REASONS = {
    # Types and errors, by "setting: row".
    r"signal\.(csd|welch)": "segments of 256, SciPy's default, as upstream's documentation says too",
    r"conv_\w*shape_tuple": "plain integers, whose weak type upstream loses by NumPy's arithmetic",
    r"p(broadcast|cast|permute|send)\(F|ragged_all_to_all\(SQ": "two things are wrong at once",
    r"x64: .*owens_t": "float32 stays float32, as in all other special functions",
    r"x64: .*shape_as_value": "sizes have the default integer dtype",
    r"dtype: .*(sph_harm_y|hyp1f1|cov\(m, fweights|unravel_index\(jnp.array\(\[True)": _OWN,
    r"rank: .*(poisson\.entropy|multinomial)": _OWN,
    # Empty arrays, numbers, and arrays for numbers.
    r"reshape\([xM], \(": "upstream checks no sizes before it runs; the array has not those elements",
    r"(empty|numbers): .*fiedler_companion": "no other function of the module returns a weak type",
    r"ormqr|_tridiagonal\(|scipy\.linalg\.hessenberg|RegularGrid|cov\(m, fw": _SHAPES,
    r"empty: .*(nonzero\(im, |polyadd|polysub|polyder)": _SHAPES,
    r"empty: .*(lax\.linalg\.hessenberg|unique\((M|im|dup), )": "upstream's shape is not the one asked for",
    r"empty: .*(take\(x, i % 64|insert\(m, 1, f)": "upstream differs from NumPy",
    r"empty: .*cov\(m2, ddof=0\.5, fweights": "as NumPy's, for counts of samples that are not there",
    r"dtype: .*cov\(m2, ddof=0\.5, fweights": "upstream multiplies within by counts of another dtype",
    r"arrays of empty: .*(cov\(|digitize|expm\(|rankdata|repeat\(2\.5, 2, axis=ARG)": _UNREAD,
    r"arrays of empty: .*insert\(m, ARG, f": _SHAPES,
    r"empty: .*precv": "psend and precv are of a platform that this is not",
    r"(arrays|defaults): .*(indices_are_sorted|unique_indices)=ARG": _FLAG,
    r"defaults: .*(max_iterations|lax\.gather\(.*fill_value)=ARG": _FLAG,
    r"defaults: .*full_like\(.*dtype=ARG": "upstream refuses an array as a dtype in all other functions",
    r"defaults: None as float32\[3\]: .*(initial|tol)=ARG": "not a scalar, which upstream refuses elsewhere",
    r"defaults: .*setxor1d\(.*fill_value=ARG": "the dtype is that of the arrays, as in other functions of sets",
    r": array: .*jnp\.(resize|polyfit|(put_along_axis|\w+\.at)\(.*inplace|intersect1d|setxor1d|unique)": _ITSELF,
    r": array: .*jnp\.((lin|log|geom)space|isin|linalg\.(matrix_power|norm)|pad)\(": _ITSELF,
    r": array: .*jnp\.(\w+\.(reduce|accumulate|reduceat)\()": _ITSELF,
    r": array: .*(hadamard|hilbert|pascal|helmert|dft|eigh|lu_solve\(.*trans)": _ITSELF,
    r": array: .*(one_hot|map_coordinates|stats\.(mode|sem)\(|resample)": _ITSELF,
    r": array: .*(check_finite|overwrite_\w|assume_unique|max_squarings|unroll|is_hermitian)=ARG": _UNREAD,
    r": array: .*(solve\(.*lower|copy|use_consistent_padding|compress\(.*fill_value)=ARG": _UNREAD,
    r": array: .*(permutation|choice|repeat\((s|2\.5), 2, axis|piecewise)": _UNREAD,
    r": array: .*lax\.(conv|reduce_window|top_k|broadcast|associative_scan|padtype)": _OTHERWISE,
    r": array: .*(rfftfreq|jnp\.size|round|categorical|frompyfunc)": _OTHERWISE,
    r": array: .*dctn\(M, 2, ": "upstream fails on what it makes of an array",
    r"explicit .*logaddexp\.reduce": "goes along the axis, which must be whole; upstream has a reduction",
    r"split: .*(argsort|scaled_dot)": "upstream's type does not vary over the mesh, though the values do",
    r"empty: forward: .*lax\.reduce\(": "upstream's result is weakly typed where there are no elements",
    r"empty: .*(histogram|fft|reduceat|detrend|unpackbits|lax\.map|\bdet\()": _FAILS,
    r"empty: .*(compress|clamp|gmres|vmap\(lambda c|linalg\.lu\(|sph_harm_y)": _FAILS,
    r"empty: (gradient|forward): .*(gumbel_[lr]\.ppf|pm(ax|in))": _FAILS,
    r"empty: (gradient|forward): .*cholesky_update": "the derivative of no element is none",
    r"dtype: jnp\.array\(\[1, 2\.5": "a list of Python numbers is one value to convert, not operands",
}

# The units of the last place by which a function may differ from upstream where no witness decides.
ULP = {
    r"igamma|gammainc|(gamma|chi2)\.|poisson\.cdf": 2048,  # where x is near a
    r"poisson\.entropy": 512,  # the expansion for large means
    r"(poisson|gennorm|betabinom)\.|gumbel_l\.logcdf": 128,  # exponentials of numbers as large as 88
    r"special\.(beta|expi|sici)$": 32,
    r"float64: .*(betainc|beta\.(log)?[cs]|poch)": 1024,  # exponentials of logarithms as large as 709
    r"float64: .*pareto\.pdf": 128,
    r"betainc|beta\.(log)?[cs]|poch|truncnorm|pareto\.pdf": 64,  # exponentials of logarithms as large as 88
    r"vonmises": 32,
    r"complex64: .*logistic\.pdf": 64,  # the parts of an exponential
    r"stats\.t\.": 256,  # a quotient of two gamma functions
    r"owens_t": 128,  # likewise, exp(-x**2 / 2)
}

# Where special values differ, by "dtype: path".
SPECIAL = {
    r"(igamma|gammainc|random_gamma_grad)": "infinite a, and a = 0: the limits, where upstream has NaN",
    r"complex\d+: .*(softplus|log_sigmoid|mish|logaddexp)": (
        "infinities: the limits, where upstream has NaN"
    ),
    r"spence": "infinity: the limit, where upstream has NaN",
    r"float16: .*stats\.beta\.": "huge parameters, whose lgamma is rounded: by some hundredths in both",
    r"complex\d+: .*(expon|pareto|uniform)\.ppf": "complex probabilities have no quantiles: refused",
    r"complex\d+: .*owens_t": "Owen's function of complex numbers is refused, as by SciPy",
    r"int64: .*betabinom": "parameters of 2**63, for which SciPy's probability is 1",
    r"float64: .*poisson\.entropy": "the least mean, of which upstream and SciPy leave out a term",
    r"pareto\.logpdf": "the largest shape, for which upstream and SciPy overflow",
    r"complex\d+: .*cauchy\.": "arctan on its cut, whose sides differ by 1",
    r"\bbinom\.": "endless trials, and numbers of them whose neighbours no float32 holds",
}

# Operands whose results differ, by "dtype: path(operands)".
_ENDLESS = "indices beyond int32, which upstream wraps around: what is out of bounds is filled"
_MODULO = "upstream takes the last six bits of an exponent; NumPy has no negative ones"

OPERANDS = {
    r"(int|uint)\d+: .*numpy\.(pow|power)\(-?\d+, (-|\d\d)": _MODULO,
    r"int(32|64): .*take_along_axis\(-?\d+, -?\d{10,}": _ENDLESS,
    r"float64: .*beta(inc|\.(log)?[cs]df)\(.*e-308": "the least numbers, of which SciPy and upstream make zero",
    r"float64: .*beta(ln)?\(1\.79": "the largest parameters: the limit, where upstream and SciPy have NaN",
    r"int64: .*betaln\(\d{19}": "the largest numbers: exact in ours, by mpmath; upstream and SciPy cancel",
    r"complex\d+: .*norm\.logpdf\(\(?(-0)?(-2|\+?1e\+30)j": "the sign of a zero imaginary part",
    r"complex128: .*loggamma\(\(1\+1e-30": "beside a zero, to the units of its terms",
}


def reason(table, label):
    """Why a row may differ, or None."""
    return next((text for pattern, text in table.items() if re.search(pattern, label)), None)
