"""Calls of public functions that apply one primitive, as data.

A primitive whose name and params are those of a function of `lax` or `lax.linalg` needs no entry.
What begins with a name of `IMPORTS` is imported where the text has it.
A template is given the operands by position, `args` (all of them), the params by name, and `out` (the
type of the first result). `{args[1:]}` is the tuple of all operands but the first.
"""

from minijax import lax
from minijax.explain.progressing import begin_p
from minijax.features.checkpoint.decisions import name_p
from minijax.features.custom_rules.custom_vjp import custom_lin_p
from minijax.features.hijax.primitives import linearized_p
from minijax.features.sharding.memory_layouts import layout_constraint_p
from minijax.lax.block_scaled import scaled_matmul_p
from minijax.lax.casts import (
    preduced_p,
    pvary_p,
    reduced_vary_p,
    unreduced_psum_p,
    vary_unreduced_p,
)
from minijax.lax.collective_movement import reduce_scatter_p
from minijax.lax.cumulative import logaddexp_p
from minijax.lax.dims import dim_as_value_p
from minijax.lax.gathers import (
    all_gather_invariant_p,
    all_gather_reduced_p,
    unreduced_reduce_scatter_p,
)
from minijax.lax.linalg.definite import cholesky_p
from minijax.lax.linalg.hermitian import eigh_p
from minijax.lax.linalg.orthogonal import geqp3_p, geqrf_p
from minijax.lax.parallel import psum_invariant_p
from minijax.lax.prng import random_clone_p, random_unwrap_p, random_wrap_p
from minijax.lax.ragged import scaled_dot_p
from minijax.lax.random_gamma import random_gamma_p
from minijax.lax.reductions import greatest, least
from minijax.lax.refs import empty2_p
from minijax.lax.shard_alike import shard_alike_p
from minijax.lax.sparse import bcoo, bcoo_dot, bcoo_order, bcsr, matrices
from minijax.lax.sparse.solve import spsolve_p
from minijax.lax.threefry import threefry2x32_bits_p

TEMPLATES = {
    lax.all_gather_p: (
        "lax.all_gather({0}, {axis_name}, axis_index_groups={axis_index_groups}, "
        "axis={all_gather_dimension}, tiled={tiled})"
    ),
    all_gather_invariant_p: (
        "lax.all_gather({0}, {axis_name}, axis={all_gather_dimension}, tiled={tiled}, to='invarying')"
    ),
    all_gather_reduced_p: (
        "lax.all_gather({0}, {axis_name}, axis={all_gather_dimension}, tiled={tiled}, to='reduced')"
    ),
    lax.and_p: "lax.bitwise_and({0}, {1})",
    lax.argmax_p: "lax.argmax({0}, {axes[0]}, {index_dtype})",
    lax.argmin_p: "lax.argmin({0}, {axes[0]}, {index_dtype})",
    cholesky_p: "lax.linalg.cholesky({0}, symmetrize_input=False)",
    lax.concatenate_p: "lax.concatenate({args}, {dimension})",
    lax.copy_p: "jnp.copy({0})",
    dim_as_value_p: "jnp.asarray({dim})",
    lax.dynamic_slice_p: (
        "lax.dynamic_slice({0}, {args[1:]}, {slice_sizes}, allow_negative_indices=False)"
    ),
    lax.dynamic_update_slice_p: (
        "lax.dynamic_update_slice({0}, {1}, {args[2:]}, allow_negative_indices=False)"
    ),
    eigh_p: (
        "lax.linalg.eigh({0}, lower={lower}, symmetrize_input=False, "
        "sort_eigenvalues={sort_eigenvalues}, subset_by_index={subset_by_index}, "
        "implementation={algorithm})"
    ),
    geqrf_p: "(lambda h, taus: (jnp.swapaxes(h, -1, -2), taus))(*jnp.linalg.qr({0}, mode='raw'))",
    lax.iota_p: "lax.broadcasted_iota({dtype}, {shape}, {dimension})",
    layout_constraint_p: "with_layout_constraint({0}, {layout})",
    logaddexp_p: "jnp.logaddexp({0}, {1})",
    name_p: "checkpoint_name({0}, {name})",
    lax.not_p: "lax.bitwise_not({0})",
    lax.optimization_barrier_p: "lax.optimization_barrier({args})",
    lax.or_p: "lax.bitwise_or({0}, {1})",
    lax.pmax_p: "lax.pmax({0}, {axes}, axis_index_groups={axis_index_groups})",
    lax.pmin_p: "lax.pmin({0}, {axes}, axis_index_groups={axis_index_groups})",
    preduced_p: "lax.pcast({0}, {axes}, to='reduced')",
    lax.psum_p: "lax.psum({0}, {axes}, axis_index_groups={axis_index_groups})",
    psum_invariant_p: "lax.psum({0}, {axes})",
    pvary_p: "lax.pcast({0}, {axes}, to='varying')",
    random_clone_p: "jax.random.clone({0})",
    random_unwrap_p: "jax.random.key_data({0})",
    random_wrap_p: "jax.random.wrap_key_data({0}, impl={impl})",
    reduce_scatter_p: (
        "lax.psum_scatter({0}, {axis_name}, scatter_dimension={scatter_dimension}, "
        "axis_index_groups={axis_index_groups}, tiled={tiled})"
    ),
    lax.regularized_incomplete_beta_p: "lax.betainc({0}, {1}, {2})",
    reduced_vary_p: "lax.pcast({0}, {axes}, to='varying')",
    scaled_dot_p: (
        "lax.scaled_dot({0}, {1}, lhs_scale={2}, rhs_scale={3}, "
        "dimension_numbers={dimension_numbers}, preferred_element_type={preferred_element_type})"
    ),
    scaled_matmul_p: (
        "jax.nn.scaled_matmul({0}, {1}, {2}, {3}, preferred_element_type={preferred_element_type})"
    ),
    shard_alike_p: "shard_alike({0}, {1})",
    lax.sharding_constraint_p: "lax.with_sharding_constraint({0}, {sharding})",
    lax.sort_p: (
        "lax.sort({args}, dimension={dimension}, is_stable={is_stable}, num_keys={num_keys})"
    ),
    spsolve_p: "sparse.linalg.spsolve({0}, {1}, {2}, {3}, tol={tol}, reorder={reorder})",
    lax.stack_p: "lax.stack({args}, {axis})",
    unreduced_psum_p: "lax.psum({0}, {axes})",
    unreduced_reduce_scatter_p: (
        "lax.psum_scatter({0}, {axis_name}, scatter_dimension={scatter_dimension}, tiled={tiled})"
    ),
    vary_unreduced_p: "lax.pcast({0}, {axes}, to='unreduced')",
    lax.xor_p: "lax.bitwise_xor({0}, {1})",
}

# Operations on one key or seed, mapped over those of an array.
OF_SCALARS = {
    lax.random_bits_p: "jax.random.bits({0}, {shape}, jnp.uint{bit_width})",
    lax.random_fold_in_p: "jax.random.fold_in({0}, {1})",
    lax.random_seed_p: "jax.random.key({0}, impl={impl})",
    lax.random_split_p: "jax.random.split({0}, {shape})",
}

# Reductions of windows: the function that combines two elements, and what it leaves alone.
WINDOWS = {
    lax.reduce_window_max_p: ("max", least),
    lax.reduce_window_min_p: ("min", greatest),
    lax.reduce_window_sum_p: ("add", lambda dtype: dtype.type(0)),
}

# Primitives that are bound, with the module that has them: their params are upstream's.
BOUND = {
    **dict.fromkeys(
        (
            lax.eq_to_p, lax.le_to_p, lax.lt_to_p, empty2_p, random_gamma_p,
            lax.select_and_gather_add_p, lax.select_and_scatter_add_p, lax.threefry2x32_p,
            threefry2x32_bits_p,
        ),
        "primitives",
    ),
    **dict.fromkeys(
        (
            bcoo.bcoo_extract_p, bcoo.bcoo_fromdense_p, bcoo.bcoo_todense_p, bcoo.bcoo_transpose_p,
            bcoo_dot.bcoo_dot_general_p, bcoo_dot.bcoo_dot_general_sampled_p,
            bcoo_dot.bcoo_spdot_general_p, bcoo_order.bcoo_sort_indices_p,
            bcoo_order.bcoo_sum_duplicates_p, bcsr.bcsr_dot_general_p, bcsr.bcsr_extract_p,
            bcsr.bcsr_fromdense_p, bcsr.bcsr_todense_p, matrices.coo_fromdense_p,
            matrices.coo_matmat_p, matrices.coo_matvec_p, matrices.coo_todense_p,
            matrices.csr_fromdense_p, matrices.csr_matmat_p, matrices.csr_matvec_p,
            matrices.csr_todense_p,
        ),
        "sparse",
    ),
}  # fmt: skip

# Primitives that the text takes from `callbacks`, with the reason.
OPAQUE = {
    geqp3_p: "the factors as they are packed, which no function gives with their pivots",
    begin_p: "the wrapper that shows progress has no function for its parts",
    custom_lin_p: "the linear part of a custom_vjp call, which the transforms alone make",
    linearized_p: "the linear part of a primitive of a library, which the transforms alone make",
}

# Params that follow from the operands, or that change no value.
IMPLIED = {
    "accuracy", "axis_size", "input_dtype", "update_consts", "update_jaxpr", "_split_transpose",
}  # fmt: skip

# Imports by the names that need them.
IMPORTS = {
    "Format": "from minijax.experimental.layout import Format",
    "Layout": "from minijax.experimental.layout import Layout",
    "boxes": "from minijax.experimental import boxes",
    "buffer_callback": "from minijax.experimental.buffer_callback import buffer_callback",
    "checkify": "from minijax.experimental import checkify",
    "checkpoint_name": "from minijax.ad_checkpoint import checkpoint_name",
    "compute_on2": "from minijax.experimental.compute_on import compute_on2",
    "custom_partitioning": (
        "from minijax.experimental.custom_partitioning import custom_partitioning"
    ),
    "export": "from minijax import export",
    "fused": "from minijax.experimental.fused import fused",
    "io_callback": "from minijax.experimental import io_callback",
    "operator": "import operator",
    "pl": "from minijax.experimental import pallas as pl",
    "pltpu": "from minijax.experimental.pallas import tpu as pltpu",
    "primitives": "from minijax.extend.core import primitives",
    "set_xla_metadata": "from minijax.experimental.xla_metadata import set_xla_metadata",
    "shard_alike": "from minijax.experimental.shard_alike import shard_alike",
    "sparse": "from minijax.experimental import sparse",
    "with_layout_constraint": "from minijax.experimental.layout import with_layout_constraint",
    "xla_metadata_call": "from minijax.experimental.scheduling_groups import xla_metadata_call",
}
