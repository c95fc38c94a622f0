"""`minijax.lax`: the primitives, a file per family, and the functions on them.

The names are upstream's. Each function is a thin check before its primitive, which stands in the same
file with all of its rules; `minijax.numpy` is written with these. What few programs use (`linalg`,
convolutions) is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from minijax.features.sharding.constraints import sharding_constraint_p, with_sharding_constraint
from minijax.features.sharding.transfer import (
    device_put_p,
)
from minijax.late_names import late_names
from minijax.lax.arithmetic import (
    AccuracyMode,
    RoundingMethod,
    Tolerance,
    abs,
    abs_p,
    add,
    add_p,
    cbrt,
    cbrt_p,
    ceil,
    ceil_p,
    complex,
    complex_p,
    conj,
    conj_p,
    div,
    div_p,
    floor,
    floor_p,
    imag,
    imag_p,
    integer_pow,
    integer_pow_p,
    max,
    max_p,
    min,
    min_p,
    mul,
    mul_p,
    mulhi,
    mulhi_p,
    neg,
    neg_p,
    nextafter,
    nextafter_p,
    real,
    real_p,
    reciprocal,
    rem,
    rem_p,
    round,
    round_p,
    rsqrt,
    rsqrt_p,
    sign,
    sign_p,
    sqrt,
    sqrt_p,
    square,
    square_p,
    sub,
    sub_p,
)
from minijax.lax.barrier import optimization_barrier, optimization_barrier_p
from minijax.lax.compare import (
    and_p,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clamp,
    clamp_p,
    clz,
    clz_p,
    eq,
    eq_p,
    eq_to_p,
    ge,
    ge_p,
    gt,
    gt_p,
    is_finite,
    is_finite_p,
    le,
    le_p,
    le_to_p,
    lt,
    lt_p,
    lt_to_p,
    ne,
    ne_p,
    not_p,
    or_p,
    population_count,
    population_count_p,
    select,
    select_n,
    select_n_p,
    shift_left,
    shift_left_p,
    shift_right_arithmetic,
    shift_right_arithmetic_p,
    shift_right_logical,
    shift_right_logical_p,
    xor_p,
)
from minijax.lax.control_flow import (
    associative_scan,
    cond,
    cond_p,
    fori_loop,
    map,
    platform_dependent,
    scan,
    scan_p,
    switch,
    while_loop,
    while_p,
)
from minijax.lax.convert import (
    bitcast_convert_type,
    bitcast_convert_type_p,
    convert_element_type,
    convert_element_type_p,
    copy_p,
    dtype,
    reduce_precision,
    reduce_precision_p,
    stage,
    stage_p,
    stop_gradient,
    stop_gradient_p,
)
from minijax.lax.creation import (
    broadcasted_iota,
    empty,
    full,
    full_like,
    iota,
    iota_p,
)
from minijax.lax.cumulative import (
    cumlogsumexp,
    cumlogsumexp_p,
    cummax,
    cummax_p,
    cummin,
    cummin_p,
    cumprod,
    cumprod_p,
    cumsum,
    cumsum_p,
)
from minijax.lax.dot import (
    DotDimensionNumbers,
    batch_matmul,
    dot,
    dot_general,
    dot_general_p,
)
from minijax.lax.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_slice_p,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    dynamic_update_slice_p,
    index_take,
)
from minijax.lax.fft import (
    FftType,
    fft,
    fft_p,
)
from minijax.lax.index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from minijax.lax.indexing import (
    gather,
    gather_p,
    scatter,
    scatter_add,
    scatter_add_p,
    scatter_apply,
    scatter_max,
    scatter_max_p,
    scatter_min,
    scatter_min_p,
    scatter_mul,
    scatter_mul_p,
    scatter_p,
    scatter_sub,
    scatter_sub_p,
)
from minijax.lax.joining import (
    concatenate,
    concatenate_p,
    shape_as_value,
    split,
    split_p,
    stack,
    stack_p,
    unstack,
    unstack_p,
)
from minijax.lax.parallel import (
    axis_index,
    axis_index_p,
    axis_size,
    pcast,
    pmax,
    pmax_p,
    pmean,
    pmin,
    pmin_p,
    psum,
    psum_p,
)
from minijax.lax.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    PrecisionLike,
)
from minijax.lax.prng import (
    random_bits_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
)
from minijax.lax.reductions import (
    argmax,
    argmax_p,
    argmin,
    argmin_p,
    reduce_and,
    reduce_and_p,
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
    reduce_or_p,
    reduce_prod,
    reduce_prod_p,
    reduce_sum,
    reduce_sum_p,
    reduce_xor,
    reduce_xor_p,
)
from minijax.lax.shapes import (
    broadcast,
    broadcast_in_dim,
    broadcast_in_dim_p,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    collapse,
    expand_dims,
    reshape,
    reshape_p,
    rev,
    rev_p,
    squeeze,
    squeeze_p,
    tile,
    tile_p,
    transpose,
    transpose_p,
)
from minijax.lax.slicing import (
    index_in_dim,
    pad,
    pad_p,
    slice,
    slice_in_dim,
    slice_p,
)
from minijax.lax.sorting import (
    approx_max_k,
    approx_min_k,
    approx_top_k_p,
    sort,
    sort_key_val,
    sort_p,
    top_k,
    top_k_p,
)
from minijax.lax.transcendental import (
    acos,
    acos_p,
    acosh,
    acosh_p,
    asin,
    asin_p,
    asinh,
    asinh_p,
    atan,
    atan2,
    atan2_p,
    atan_p,
    atanh,
    atanh_p,
    cos,
    cos_p,
    cosh,
    cosh_p,
    exp,
    exp2,
    exp2_p,
    exp_p,
    expm1,
    expm1_p,
    log,
    log1p,
    log1p_p,
    log_p,
    logistic,
    logistic_p,
    pow,
    pow_p,
    sin,
    sin_p,
    sinh,
    sinh_p,
    tan,
    tan_p,
    tanh,
    tanh_p,
)
from minijax.lax.window_rules import (
    reduce_window_shape_tuple,
)
from minijax.tracebacks import public

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset",
    "DotDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode", "Precision", "PrecisionLike",
    "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers",
    "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p", "add", "add_p", "after_all",
    "after_all_p", "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "and_p",
    "approx_max_k", "approx_min_k", "approx_top_k_p", "argmax", "argmax_p", "argmin", "argmin_p",
    "asin", "asin_p", "asinh", "asinh_p", "associative_scan", "atan", "atan2", "atan2_p", "atan_p",
    "atanh", "atanh_p", "axis_index", "axis_index_p", "axis_size", "batch_matmul", "bessel_i0e",
    "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "bitcast_convert_type",
    "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p",
    "clz", "clz_p", "collapse", "complex", "complex_p", "composite", "concatenate", "concatenate_p",
    "cond", "cond_p", "conj", "conj_p", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_general_dilated_local", "conv_general_dilated_p", "conv_general_dilated_patches",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_transpose_shape_tuple", "conv_with_general_padding", "convert_element_type",
    "convert_element_type_p", "copy_p", "cos", "cos_p", "cosh", "cosh_p", "create_token",
    "create_token_p", "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p",
    "cumprod", "cumprod_p", "cumsum", "cumsum_p", "custom_linear_solve", "custom_root", "dce_sink",
    "dce_sink_p", "device_put_p", "digamma", "digamma_p", "div", "div_p", "dot", "dot_general",
    "dot_general_p", "dtype", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_slice_p", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "empty", "eq", "eq_p", "eq_to_p",
    "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "exp", "exp2", "exp2_p", "exp_p",
    "expand_dims", "expm1", "expm1_p", "fft", "fft_p", "floor", "floor_p", "fori_loop", "full",
    "full_like", "gather", "gather_p", "ge", "ge_p", "gt", "gt_p", "igamma", "igamma_grad_a",
    "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "imag", "imag_p", "index_in_dim",
    "index_take", "integer_pow", "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p",
    "le", "le_p", "le_to_p", "lgamma", "lgamma_p", "linalg", "linear_solve_p", "log", "log1p",
    "log1p_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "map", "max", "max_p",
    "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p", "nextafter",
    "nextafter_p", "not_p", "optimization_barrier", "optimization_barrier_p", "or_p", "pad",
    "pad_p", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent", "pmax", "pmax_p",
    "pmean", "pmin", "pmin_p", "polygamma", "polygamma_p", "population_count", "population_count_p",
    "pow", "pow_p", "ppermute", "ppermute_p", "precv", "psend", "pshuffle", "psum", "psum_p",
    "psum_scatter", "pswapaxes", "ragged_all_to_all", "ragged_all_to_all_p", "ragged_dot",
    "ragged_dot_general", "random_gamma_grad", "real", "real_p", "reciprocal", "reduce",
    "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min", "reduce_min_p",
    "reduce_or", "reduce_or_p", "reduce_p", "reduce_precision", "reduce_precision_p", "reduce_prod",
    "reduce_prod_p", "reduce_sum", "reduce_sum_p", "reduce_window", "reduce_window_max_p",
    "reduce_window_min_p", "reduce_window_p", "reduce_window_shape_tuple", "reduce_window_sum_p",
    "reduce_xor", "reduce_xor_p", "regularized_incomplete_beta_p", "rem", "rem_p", "reshape",
    "reshape_p", "rev", "rev_p", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform",
    "rng_uniform_p", "round", "round_p", "rsqrt", "rsqrt_p", "scaled_dot", "scan", "scan_p",
    "scatter", "scatter_add", "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p",
    "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub",
    "scatter_sub_p", "select", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p", "select_n", "select_n_p", "shape_as_value", "sharding_constraint_p",
    "shift_left", "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p",
    "shift_right_logical", "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh",
    "sinh_p", "slice", "slice_in_dim", "slice_p", "sort", "sort_key_val", "sort_p", "split",
    "split_p", "sqrt", "sqrt_p", "square", "square_p", "squeeze", "squeeze_p", "stack", "stack_p",
    "stage", "stage_p", "stop_gradient", "stop_gradient_p", "sub", "sub_p", "switch", "tan",
    "tan_p", "tanh", "tanh_p", "tile", "tile_p", "top_k", "top_k_p", "transpose", "transpose_p",
    "unstack", "unstack_p", "while_loop", "while_p", "with_sharding_constraint", "xor_p", "zeta",
    "zeta_p",
]  # fmt: skip


_LATE = {
    "minijax.lax.collective_movement": (
        "all_gather all_gather_p all_to_all all_to_all_p pbroadcast ppermute ppermute_p pshuffle "
        "psum_scatter pswapaxes"
    ),
    "minijax.lax.composites": "composite composite_p",
    "minijax.lax.control_flow.solves": "custom_linear_solve custom_root linear_solve_p",
    "minijax.lax.conv_numbers": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers "
        "conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose_shape_tuple padtype_to_pads"
    ),
    "minijax.lax.convolution": (
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_p "
        "conv_general_dilated_patches conv_transpose conv_with_general_padding"
    ),
    "minijax.lax.ordering": "after_all after_all_p create_token create_token_p dce_sink dce_sink_p",
    "minijax.lax.ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general scaled_dot",
    "minijax.lax.ragged_exchange": "precv psend ragged_all_to_all ragged_all_to_all_p",
    "minijax.lax.rng_bits": (
        "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p"
    ),
    "minijax.lax.special": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc digamma digamma_p erf erf_inv "
        "erf_inv_p erf_p erfc erfc_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac "
        "igammac_p lgamma lgamma_p polygamma polygamma_p random_gamma_grad "
        "regularized_incomplete_beta_p zeta zeta_p"
    ),
    "minijax.lax.threefry": "threefry2x32_p",
    "minijax.lax.variadic": "reduce reduce_p",
    "minijax.lax.window_choice": (
        "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p"
    ),
    "minijax.lax.windows": (
        "reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p reduce_window_sum_p"
    ),
}


if TYPE_CHECKING:
    from minijax.lax import linalg
    from minijax.lax.collective_movement import (
        all_gather,
        all_gather_p,
        all_to_all,
        all_to_all_p,
        pbroadcast,
        ppermute,
        ppermute_p,
        pshuffle,
        psum_scatter,
        pswapaxes,
    )
    from minijax.lax.composites import composite, composite_p
    from minijax.lax.control_flow.solves import custom_linear_solve, custom_root, linear_solve_p
    from minijax.lax.conv_numbers import (
        ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers,
        conv_dimension_numbers,
        conv_general_permutations,
        conv_general_shape_tuple,
        conv_shape_tuple,
        conv_transpose_shape_tuple,
        padtype_to_pads,
    )
    from minijax.lax.convolution import (
        conv,
        conv_general_dilated,
        conv_general_dilated_local,
        conv_general_dilated_p,
        conv_general_dilated_patches,
        conv_transpose,
        conv_with_general_padding,
    )
    from minijax.lax.ordering import (
        after_all,
        after_all_p,
        create_token,
        create_token_p,
        dce_sink,
        dce_sink_p,
    )  # fmt: skip
    from minijax.lax.ragged import (
        RaggedDotDimensionNumbers,
        ragged_dot,
        ragged_dot_general,
        scaled_dot,
    )
    from minijax.lax.ragged_exchange import precv, psend, ragged_all_to_all, ragged_all_to_all_p
    from minijax.lax.rng_bits import (
        RandomAlgorithm,
        rng_bit_generator,
        rng_bit_generator_p,
        rng_uniform,
        rng_uniform_p,
    )
    from minijax.lax.special import (
        bessel_i0e,
        bessel_i0e_p,
        bessel_i1e,
        bessel_i1e_p,
        betainc,
        digamma,
        digamma_p,
        erf,
        erf_inv,
        erf_inv_p,
        erf_p,
        erfc,
        erfc_p,
        igamma,
        igamma_grad_a,
        igamma_grad_a_p,
        igamma_p,
        igammac,
        igammac_p,
        lgamma,
        lgamma_p,
        polygamma,
        polygamma_p,
        random_gamma_grad,
        regularized_incomplete_beta_p,
        zeta,
        zeta_p,
    )
    from minijax.lax.threefry import (
        threefry2x32_p,
    )
    from minijax.lax.variadic import (
        reduce,
        reduce_p,
    )
    from minijax.lax.window_choice import (
        select_and_gather_add_p,
        select_and_scatter_add_p,
        select_and_scatter_p,
    )
    from minijax.lax.windows import (
        reduce_window,
        reduce_window_max_p,
        reduce_window_min_p,
        reduce_window_p,
        reduce_window_sum_p,
    )
else:
    __getattr__ = late_names(__name__, _LATE, ["linalg"])


__dir__ = public(__name__)
