"""`minijax.numpy`: NumPy's functions on the arrays of minijax.

Importing it gives `Array` its operators and methods. What few programs use, or use late (`linalg`,
`fft`, sets, polynomials), is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as _np

from minijax.core.array import Array as ndarray
from minijax.dtypes import finfo, iinfo, isdtype, promote_types, result_type
from minijax.late_names import late_names
from minijax.namespace import own_names
from minijax.numpy import array_api as _array_api
from minijax.numpy import array_methods as _array_methods
from minijax.numpy.creation import (
    array,
    asarray,
    astype,
    copy,
    empty,
    empty_like,
    from_dlpack,
    frombuffer,
    fromfile,
    fromfunction,
    fromiter,
    fromstring,
    full,
    full_like,
    load,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from minijax.numpy.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    nancumprod,
    nancumsum,
)
from minijax.numpy.division import (
    divide,
    divmod,
    float_power,
    floor_divide,
    fmod,
    gcd,
    lcm,
    mod,
    pow,
    power,
    remainder,
    true_divide,
)
from minijax.numpy.einsum import einsum
from minijax.numpy.float_parts import (
    copysign,
    fmax,
    fmin,
    frexp,
    heaviside,
    ldexp,
    modf,
    nan_to_num,
    nextafter,
    signbit,
    spacing,
)
from minijax.numpy.joining import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)
from minijax.numpy.linear_algebra import (
    cross,
    diag,
    diagflat,
    diagonal,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    trace,
    vdot,
    vecdot,
    vecmat,
)
from minijax.numpy.logic import (
    allclose,
    array_equal,
    array_equiv,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_right_shift,
    equal,
    greater,
    greater_equal,
    invert,
    isclose,
    iscomplex,
    iscomplexobj,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    isrealobj,
    issubdtype,
    left_shift,
    less,
    less_equal,
    logical_not,
    not_equal,
    right_shift,
)
from minijax.numpy.printing import (
    array_repr,
    array_str,
    can_cast,
    get_printoptions,
    isscalar,
    iterable,
    printoptions,
    save,
    savez,
    set_printoptions,
)
from minijax.numpy.ranges import (
    arange,
    geomspace,
    linspace,
    logspace,
)
from minijax.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from minijax.numpy.repetition import repeat
from minijax.numpy.scalar_types import (
    bfloat16,
    bool,
    bool_,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    flexible,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    inexact,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    number,
    object_,
    signedinteger,
    single,
    uint,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from minijax.numpy.searching import (
    argwhere,
    choose,
    compress,
    extract,
    flatnonzero,
    mask_indices,
    nonzero,
    piecewise,
    select,
    where,
)
from minijax.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    resize,
    roll,
    rollaxis,
    rot90,
    shape,
    size,
    squeeze,
    swapaxes,
    tile,
    transpose,
)
from minijax.numpy.sorting import (
    argpartition,
    argsort,
    digitize,
    lexsort,
    partition,
    searchsorted,
    sort,
    sort_complex,
)
from minijax.numpy.taking import put, put_along_axis, take, take_along_axis
from minijax.numpy.triangles import (
    diag_indices,
    diag_indices_from,
    eye,
    identity,
    tri,
    tril,
    tril_indices,
    tril_indices_from,
    triu,
    triu_indices,
    triu_indices_from,
    vander,
)
from minijax.numpy.ufunc_objects import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    frompyfunc,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    subtract,
    ufunc,
)
from minijax.numpy.ufuncs import (
    abs,
    absolute,
    acos,
    acosh,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    around,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    clip,
    conj,
    conjugate,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    fabs,
    floor,
    hypot,
    imag,
    log,
    log1p,
    log2,
    log10,
    positive,
    rad2deg,
    radians,
    real,
    reciprocal,
    rint,
    round,
    sign,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from minijax.numpy.vectorizing import apply_along_axis, apply_over_axes, vectorize
from minijax.tracebacks import public

__all__ = [
    "ComplexWarning", "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin",
    "angle", "any", "append", "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition",
    "argsort", "argwhere", "around", "array", "array_equal", "array_equiv", "array_repr",
    "array_split", "array_str", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh",
    "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount",
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "c_", "can_cast", "cbrt", "cdouble",
    "ceil", "character", "choose", "clip", "column_stack", "complex128", "complex64", "complex_",
    "complexfloating", "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy",
    "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle",
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete",
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digitize",
    "divide", "divmod", "dot", "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum",
    "einsum_path", "empty", "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims",
    "expm1", "extract", "eye", "fabs", "fft", "fill_diagonal", "finfo", "flatnonzero", "flexible",
    "flip", "fliplr", "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn",
    "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "float_power",
    "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack",
    "frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring", "full",
    "full_like", "gcd", "generic", "geomspace", "get_printoptions", "gradient", "greater",
    "greater_equal", "hamming", "hanning", "heaviside", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo",
    "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert", "int1", "int16", "int2",
    "int32", "int4", "int64", "int8", "int_", "integer", "interp", "intersect1d", "invert",
    "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_",
    "kaiser", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "linalg",
    "linspace", "load", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "mask_indices", "matmul",
    "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid", "mgrid", "min",
    "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative",
    "newaxis", "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid", "ones",
    "ones_like", "outer", "packbits", "pad", "partition", "percentile", "permute_dims", "pi",
    "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
    "polysub", "polyval", "positive", "pow", "power", "printoptions", "prod", "promote_types",
    "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians", "ravel",
    "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "resize",
    "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "s_",
    "save", "savez", "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape",
    "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort",
    "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace",
    "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros",
    "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc", "ufunc", "uint", "uint1",
    "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unpackbits", "unravel_index",
    "unsignedinteger", "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat",
    "vectorize", "vsplit", "vstack", "where", "zeros", "zeros_like",
]  # fmt: skip

_array_methods.install()

__array_api_version__ = _array_api.VERSION
__array_namespace_info__ = _array_api.__array_namespace_info__

ComplexWarning = _np.exceptions.ComplexWarning
dtype = _np.dtype
e, euler_gamma, inf, nan, newaxis, pi = (
    _np.e, _np.euler_gamma, _np.inf, _np.nan, _np.newaxis, _np.pi,
)  # fmt: skip

_LATE = {
    "minijax.numpy.bits": "packbits ravel_multi_index unpackbits unravel_index",
    "minijax.numpy.einsum_paths": "einsum_path",
    "minijax.numpy.grids": "c_ index_exp indices ix_ meshgrid mgrid ogrid r_ s_",
    "minijax.numpy.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "minijax.numpy.insert_delete": "delete fill_diagonal insert place",
    "minijax.numpy.nan_reductions": (
        "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar"
    ),
    "minijax.numpy.padding": "pad",
    "minijax.numpy.polynomial_fits": "poly polyfit roots",
    "minijax.numpy.polynomials": (
        "polyadd polyder polydiv polyint polymul polysub polyval trim_zeros"
    ),
    "minijax.numpy.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "minijax.numpy.signal": (
        "bartlett blackman convolve correlate diff ediff1d gradient hamming hanning i0 interp "
        "kaiser trapezoid unwrap"
    ),
    "minijax.numpy.statistics": (
        "average corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile"
    ),
}

if TYPE_CHECKING:
    from minijax.numpy import fft, linalg
    from minijax.numpy.bits import packbits, ravel_multi_index, unpackbits, unravel_index
    from minijax.numpy.einsum_paths import einsum_path
    from minijax.numpy.grids import (
        c_,
        index_exp,
        indices,
        ix_,
        meshgrid,
        mgrid,
        ogrid,
        r_,
        s_,
    )
    from minijax.numpy.histograms import (
        bincount,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
    )
    from minijax.numpy.insert_delete import delete, fill_diagonal, insert, place
    from minijax.numpy.nan_reductions import (
        nanargmax,
        nanargmin,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from minijax.numpy.padding import pad
    from minijax.numpy.polynomial_fits import poly, polyfit, roots
    from minijax.numpy.polynomials import (
        polyadd,
        polyder,
        polydiv,
        polyint,
        polymul,
        polysub,
        polyval,
        trim_zeros,
    )
    from minijax.numpy.sets import (
        intersect1d,
        isin,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from minijax.numpy.signal import (
        bartlett,
        blackman,
        convolve,
        correlate,
        diff,
        ediff1d,
        gradient,
        hamming,
        hanning,
        i0,
        interp,
        kaiser,
        trapezoid,
        unwrap,
    )
    from minijax.numpy.statistics import (
        average,
        corrcoef,
        cov,
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        percentile,
        quantile,
    )
else:
    __getattr__ = late_names(__name__, _LATE, ("fft", "linalg"))


own_names(__name__)
__dir__ = public(__name__)
