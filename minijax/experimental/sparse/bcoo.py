"""`minijax.experimental.sparse.bcoo`: arrays in batched coordinate format, and all that is for
them.

It defines nothing: the class stands in `bcoo_array`, what changes shapes in `bcoo_shapes`, products
in `bcoo_products`.
"""

from minijax.core.array import Array  # noqa: F401  (for typing.get_type_hints of BCOO)
from minijax.experimental.sparse.bcoo_array import (
    BCOO,
    bcoo_eliminate_zeros,
    bcoo_extract,
    bcoo_extract_p,
    bcoo_fromdense,
    bcoo_fromdense_p,
    bcoo_sort_indices,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates,
    bcoo_sum_duplicates_p,
    bcoo_todense,
    bcoo_todense_p,
    bcoo_transpose,
    bcoo_transpose_p,
    bcoo_update_layout,
)
from minijax.experimental.sparse.bcoo_products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_p,
    bcoo_dot_general_sampled,
    bcoo_dot_general_sampled_p,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_spdot_general_p,
)
from minijax.experimental.sparse.bcoo_shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)

__all__ = [
    "BCOO", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated",
    "bcoo_dot_general", "bcoo_dot_general_p", "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract",
    "bcoo_extract_p", "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
    "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p",
    "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout",
]  # fmt: skip
