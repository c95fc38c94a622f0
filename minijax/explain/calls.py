"""Calls of public functions that apply one primitive, as data.

A primitive whose name and params are those of a function of `lax` or `lax.linalg` needs no entry.
A template is given the operands by position, `args` (all of them), the params by name, and `out` (the
type of the first result). `{args[1:]}` is the tuple of all operands but the first.
"""

TEMPLATES = {
    "add_any": "lax.add({0}, {1})",
    "all_gather": (
        "lax.all_gather({0}, {axis_name}, axis_index_groups={axis_index_groups}, "
        "axis={all_gather_dimension}, tiled={tiled})"
    ),
    "all_gather_invariant": (
        "lax.all_gather({0}, {axis_name}, axis={all_gather_dimension}, tiled={tiled}, to='invariant')"
    ),
    "and": "lax.bitwise_and({0}, {1})",
    "argmax": "lax.argmax({0}, {axes[0]}, {index_dtype})",
    "argmin": "lax.argmin({0}, {axes[0]}, {index_dtype})",
    "cholesky": "lax.linalg.cholesky({0}, symmetrize_input=False)",
    "concatenate": "lax.concatenate({args}, {dimension})",
    "copy": "jnp.copy({0})",
    "dynamic_slice": (
        "lax.dynamic_slice({0}, {args[1:]}, {slice_sizes}, allow_negative_indices=False)"
    ),
    "dynamic_update_slice": (
        "lax.dynamic_update_slice({0}, {1}, {args[2:]}, allow_negative_indices=False)"
    ),
    "eigh": (
        "lax.linalg.eigh({0}, lower={lower}, symmetrize_input=False, "
        "sort_eigenvalues={sort_eigenvalues}, subset_by_index={subset_by_index}, "
        "implementation={algorithm})"
    ),
    "iota": "lax.broadcasted_iota({dtype}, {shape}, {dimension})",
    "logaddexp": "jnp.logaddexp({0}, {1})",
    "name": "checkpoint_name({0}, {name})",
    "not": "lax.bitwise_not({0})",
    "optimization_barrier": "lax.optimization_barrier({args})",
    "or": "lax.bitwise_or({0}, {1})",
    "pmax": "lax.pmax({0}, {axes}, axis_index_groups={axis_index_groups})",
    "pmin": "lax.pmin({0}, {axes}, axis_index_groups={axis_index_groups})",
    "psum": "lax.psum({0}, {axes}, axis_index_groups={axis_index_groups})",
    "psum_invariant": "lax.psum({0}, {axes})",
    "pvary": "lax.pcast({0}, {axes}, to='varying')",
    "random_clone": "jax.random.clone({0})",
    "random_unwrap": "jax.random.key_data({0})",
    "random_wrap": "jax.random.wrap_key_data({0}, impl={impl})",
    "reduce_scatter": (
        "lax.psum_scatter({0}, {axis_name}, scatter_dimension={scatter_dimension}, "
        "axis_index_groups={axis_index_groups}, tiled={tiled})"
    ),
    "regularized_incomplete_beta": "lax.betainc({0}, {1}, {2})",
    "reshard": "jax.sharding.reshard({0}, {dst_sharding})",
    "sharding_constraint": "lax.with_sharding_constraint({0}, {sharding})",
    "sort": ("lax.sort({args}, dimension={dimension}, is_stable={is_stable}, num_keys={num_keys})"),
    "stack": "lax.stack({args}, {axis})",
    "xor": "lax.bitwise_xor({0}, {1})",
}

# Operations on one key or seed, mapped over those of an array.
OF_SCALARS = {
    "random_bits": "jax.random.bits({0}, {shape}, jnp.uint{bit_width})",
    "random_fold_in": "jax.random.fold_in({0}, {1})",
    "random_seed": "jax.random.key({0}, impl={impl})",
    "random_split": "jax.random.split({0}, {shape})",
}

# Reductions of windows: the function that combines two elements.
WINDOWS = {"reduce_window_max": "max", "reduce_window_min": "min", "reduce_window_sum": "add"}

# Primitives without a public function of their own whose params are upstream's.
BOUND = {
    "eq_to", "le_to", "lt_to", "random_gamma", "select_and_gather_add", "select_and_scatter_add",
    "threefry2x32",
}  # fmt: skip

# Params that follow from the operands, or that change no value.
IMPLIED = {
    "accuracy", "axis_size", "input_dtype", "update_consts", "update_jaxpr", "_split_transpose",
}  # fmt: skip
