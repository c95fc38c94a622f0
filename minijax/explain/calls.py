"""Calls of public functions that apply one primitive, as data.

A primitive whose name and params are those of a function of `lax` or `lax.linalg` needs no entry.
A template is given the operands by position, `args` (all of them), the params by name, and `out` (the
type of the first result). `{args[1:]}` is the tuple of all operands but the first.
"""

from minijax import lax
from minijax.features.checkpoint.policies import name_p
from minijax.features.sharding.constraints import reshard_p
from minijax.lax.casts import pvary_p
from minijax.lax.collective_movement import reduce_scatter_p
from minijax.lax.cumulative import logaddexp_p
from minijax.lax.gathers import all_gather_invariant_p
from minijax.lax.linalg.definite import cholesky_p
from minijax.lax.linalg.hermitian import eigh_p
from minijax.lax.parallel import psum_invariant_p
from minijax.lax.prng import random_clone_p, random_unwrap_p, random_wrap_p
from minijax.lax.random_gamma import random_gamma_p
from minijax.lax.reductions import greatest, least
from minijax.transforms.primitives import add_any_p

TEMPLATES = {
    add_any_p: "lax.add({0}, {1})",
    lax.all_gather_p: (
        "lax.all_gather({0}, {axis_name}, axis_index_groups={axis_index_groups}, "
        "axis={all_gather_dimension}, tiled={tiled})"
    ),
    all_gather_invariant_p: (
        "lax.all_gather({0}, {axis_name}, axis={all_gather_dimension}, tiled={tiled}, to='invariant')"
    ),
    lax.and_p: "lax.bitwise_and({0}, {1})",
    lax.argmax_p: "lax.argmax({0}, {axes[0]}, {index_dtype})",
    lax.argmin_p: "lax.argmin({0}, {axes[0]}, {index_dtype})",
    cholesky_p: "lax.linalg.cholesky({0}, symmetrize_input=False)",
    lax.concatenate_p: "lax.concatenate({args}, {dimension})",
    lax.copy_p: "jnp.copy({0})",
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
    lax.iota_p: "lax.broadcasted_iota({dtype}, {shape}, {dimension})",
    logaddexp_p: "jnp.logaddexp({0}, {1})",
    name_p: "checkpoint_name({0}, {name})",
    lax.not_p: "lax.bitwise_not({0})",
    lax.optimization_barrier_p: "lax.optimization_barrier({args})",
    lax.or_p: "lax.bitwise_or({0}, {1})",
    lax.pmax_p: "lax.pmax({0}, {axes}, axis_index_groups={axis_index_groups})",
    lax.pmin_p: "lax.pmin({0}, {axes}, axis_index_groups={axis_index_groups})",
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
    reshard_p: "jax.sharding.reshard({0}, {dst_sharding})",
    lax.sharding_constraint_p: "lax.with_sharding_constraint({0}, {sharding})",
    lax.sort_p: (
        "lax.sort({args}, dimension={dimension}, is_stable={is_stable}, num_keys={num_keys})"
    ),
    lax.stack_p: "lax.stack({args}, {axis})",
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

# Primitives without a public function of their own whose params are upstream's.
BOUND = {
    lax.eq_to_p, lax.le_to_p, lax.lt_to_p, random_gamma_p, lax.select_and_gather_add_p,
    lax.select_and_scatter_add_p, lax.threefry2x32_p,
}  # fmt: skip

# Params that follow from the operands, or that change no value.
IMPLIED = {
    "accuracy", "axis_size", "input_dtype", "update_consts", "update_jaxpr", "_split_transpose",
}  # fmt: skip
