"""Differences from upstream that are meant, each with its reason."""

import re
from typing import NamedTuple

BESIDE = ("class", "accepted")


class Reason(NamedTuple):
    """Why an outcome may differ: in these categories, for calls and outcomes that the patterns match.

    `functions` are names of the function that is called, `call` is searched in the text of the call, `said` in upstream's message, `told` in ours; `ours`
    and `theirs` are classes of errors, or "ok".
    """

    text: str
    categories: tuple
    said: str = ""
    call: str = ""
    ours: str = ".*"
    theirs: str = ".*"
    told: str = ""
    functions: frozenset | None = None

    def matches(self, call, ours, theirs):
        return bool(
            (self.functions is None or _function_of(call) in self.functions)
            and re.search(self.call, call)
            and re.search(self.said, theirs.get("text", ""))
            and re.search(self.told, ours.get("text", ""))
            and re.fullmatch(self.ours, ours.get("error", "ok"))
            and re.fullmatch(self.theirs, theirs.get("error", "ok"))
        )


# Functions that make the same checks in another order: of two things that are wrong with a call, or of
# two ways in which an argument is wrong, they tell another one first.
ORDER = frozenset(
    [
        "F.searchsorted",
        "jax.custom_batching.custom_vmap",
        "jax.example_libraries.optimizers.piecewise_constant",
        "jax.example_libraries.stax.logsoftmax",
        "jax.example_libraries.stax.softmax",
        "jax.experimental.checkify.check",
        "jax.experimental.checkify.check_error",
        "jax.experimental.mesh_utils.create_device_mesh",
        "jax.experimental.sparse.BCOO",
        "jax.experimental.sparse.BCSR",
        "jax.experimental.sparse.BCSR.fromdense",
        "jax.experimental.sparse.bcoo_conv_general_dilated",
        "jax.experimental.sparse.bcoo_slice",
        "jax.experimental.sparse.bcsr_dot_general",
        "jax.experimental.sparse.bcsr_extract",
        "jax.experimental.sparse.bcsr_fromdense",
        "jax.experimental.sparse.empty",
        "jax.experimental.sparse.eye",
        "jax.hessian",
        "jax.image.scale_and_translate",
        "jax.jit",
        "jax.make_array_from_process_local_data",
        "jax.nn.dot_product_attention",
        "jax.ops.segment_max",
        "jax.ops.segment_prod",
        "jax.scipy.fft.dctn",
        "jax.scipy.fft.idct",
        "jax.scipy.interpolate.RegularGridInterpolator",
        "jax.scipy.linalg.cho_solve",
        "jax.scipy.linalg.hilbert",
        "jax.scipy.linalg.lu",
        "jax.scipy.linalg.pascal",
        "jax.scipy.linalg.schur",
        "jax.scipy.signal.fftconvolve",
        "jax.scipy.signal.istft",
        "jax.scipy.sparse.linalg.bicgstab",
        "jax.scipy.sparse.linalg.gmres",
        "jax.scipy.spatial.transform.Rotation.from_euler",
        "jax.scipy.spatial.transform.Rotation.from_matrix",
        "jax.scipy.spatial.transform.Rotation.from_rotvec",
        "jax.scipy.special.hyp2f1",
        "jax.scipy.special.ndtri",
        "jax.scipy.special.sph_harm_y",
        "jax.scipy.stats.gaussian_kde",
        "jax.scipy.stats.mode",
        "jax.scipy.stats.truncnorm.cdf",
        "jnp.bincount",
        "jnp.column_stack",
        "jnp.corrcoef",
        "jnp.cross",
        "jnp.dstack",
        "jnp.eye",
        "jnp.fft.fftfreq",
        "jnp.fft.ifftn",
        "jnp.fft.irfftn",
        "jnp.fft.rfftn",
        "jnp.from_dlpack",
        "jnp.fromfunction",
        "jnp.frompyfunc",
        "jnp.histogram",
        "jnp.histogramdd",
        "jnp.hsplit",
        "jnp.interp",
        "jnp.linalg.cholesky",
        "jnp.max",
        "jnp.moveaxis",
        "jnp.nanpercentile",
        "jnp.nanquantile",
        "jnp.pad",
        "jnp.percentile",
        "jnp.permute_dims",
        "jnp.polyder",
        "jnp.quantile",
        "jnp.rot90",
        "jnp.searchsorted",
        "jnp.size",
        "jnp.stack",
        "jnp.sum",
        "jnp.uint1",
        "jnp.unique_values",
        "jnp.vectorize",
        "jnp.where",
        "lax.approx_max_k",
        "lax.approx_min_k",
        "lax.argmax",
        "lax.broadcast_like",
        "lax.broadcast_to_rank",
        "lax.conv",
        "lax.conv_general_dilated",
        "lax.conv_general_dilated_local",
        "lax.conv_general_dilated_patches",
        "lax.conv_transpose",
        "lax.conv_transpose_shape_tuple",
        "lax.conv_with_general_padding",
        "lax.cumlogsumexp",
        "lax.cummax",
        "lax.cumprod",
        "lax.cumsum",
        "lax.fori_loop",
        "lax.full_like",
        "lax.gather",
        "lax.linalg.cholesky_update",
        "lax.linalg.eigh",
        "lax.linalg.hessenberg",
        "lax.linalg.householder_product",
        "lax.linalg.lu_pivots_to_permutation",
        "lax.linalg.schur",
        "lax.linalg.svd",
        "lax.linalg.symmetric_product",
        "lax.linalg.triangular_solve",
        "lax.linalg.tridiagonal",
        "lax.map",
        "lax.pad",
        "lax.padtype_to_pads",
        "lax.pbroadcast",
        "lax.ragged_dot_general",
        "lax.random_gamma_grad",
        "lax.reduce",
        "lax.reshape",
        "lax.scatter",
        "lax.scatter_add",
        "lax.scatter_apply",
        "lax.scatter_max",
        "lax.scatter_min",
        "lax.scatter_mul",
        "lax.scatter_sub",
        "lax.sin",
        "lax.split",
        "lax.sqrt",
        "lax.tile",
        "lax.unstack",
        "lax.with_sharding_constraint",
    ]
)

# Functions that do not look at an argument which they do not need, or which take one that has a meaning.
TAKEN = frozenset(
    [
        "M.__format__",
        "M.at",
        "M.compress",
        "M.nonzero",
        "jax.P",
        "jax.ShapeDtypeStruct",
        "jax.checkpoint",
        "jax.core.max_dim",
        "jax.core.min_dim",
        "jax.default_device",
        "jax.default_matmul_precision",
        "jax.device_put",
        "jax.dlpack.is_supported_dtype",
        "jax.ds",
        "jax.dtypes.itemsize_bits",
        "jax.example_libraries.stax.ones",
        "jax.experimental.checkify.check",
        "jax.experimental.io_callback",
        "jax.experimental.layout.Format",
        "jax.experimental.multihost_utils.global_array_to_host_local_array",
        "jax.experimental.primal_tangent_dtype",
        "jax.experimental.sparse.empty",
        "jax.experimental.sparse.eye",
        "jax.flatten_util.ravel_pytree",
        "jax.jit",
        "jax.local_devices",
        "jax.make_array_from_callback",
        "jax.make_array_from_process_local_data",
        "jax.make_array_from_single_device_arrays",
        "jax.nn.initializers.zeros",
        "jax.pmap",
        "jax.pure_callback",
        "jax.remat",
        "jax.scipy.fft.idctn",
        "jax.scipy.signal.detrend",
        "jax.scipy.signal.welch",
        "jax.scipy.sparse.linalg.bicgstab",
        "jax.scipy.spatial.transform.Rotation.from_euler",
        "jax.scipy.spatial.transform.Rotation.from_matrix",
        "jax.scipy.spatial.transform.Rotation.from_rotvec",
        "jax.scipy.special.hyp2f1",
        "jax.scipy.special.ndtri",
        "jax.scipy.special.sph_harm_y",
        "jax.scipy.stats.gumbel_l.ppf",
        "jax.scipy.stats.norm.isf",
        "jax.sharding.PartitionSpec",
        "jax.sharding.use_abstract_mesh",
        "jax.smap",
        "jax.test_util.check_grads",
        "jax.test_util.check_jvp",
        "jnp.argwhere",
        "jnp.array_equal",
        "jnp.bincount",
        "jnp.broadcast_shapes",
        "jnp.cov",
        "jnp.einsum",
        "jnp.extract",
        "jnp.fft.ifft2",
        "jnp.fft.ifftn",
        "jnp.fft.rfft",
        "jnp.fft.rfftn",
        "jnp.flatnonzero",
        "jnp.from_dlpack",
        "jnp.frompyfunc",
        "jnp.fromstring",
        "jnp.histogram2d",
        "jnp.histogramdd",
        "jnp.int1",
        "jnp.int2",
        "jnp.int4",
        "jnp.intersect1d",
        "jnp.iscomplexobj",
        "jnp.isrealobj",
        "jnp.ones",
        "jnp.pad",
        "jnp.piecewise",
        "jnp.polyder",
        "jnp.polyfit",
        "jnp.put",
        "jnp.quantile",
        "jnp.ravel_multi_index",
        "jnp.repeat",
        "jnp.tensordot",
        "jnp.uint1",
        "jnp.uint2",
        "jnp.uint4",
        "jnp.unique_all",
        "jnp.unique_counts",
        "jnp.unpackbits",
        "lax.conv_general_shape_tuple",
        "lax.conv_transpose_shape_tuple",
        "lax.dynamic_update_slice",
        "lax.index_take",
        "lax.linalg.eig",
        "lax.linalg.lu_pivots_to_permutation",
        "lax.linalg.svd",
        "lax.map",
        "lax.reduce",
        "lax.shape_as_value",
        "pl.cdiv",
        "pl.ds",
        "pl.loop",
        "pl.strides_from_shape",
    ]
)

# Functions that refuse at once, by name, what upstream looks at later, in another place, or never.
EARLY = frozenset(
    [
        "M.compress",
        "M.sum",
        "jax.checkpoint_policies.save_anything_except_these_names",
        "jax.example_libraries.stax.AvgPool",
        "jax.example_libraries.stax.BatchNorm",
        "jax.example_libraries.stax.GeneralConvTranspose",
        "jax.experimental.compute_on.compute_on",
        "jax.experimental.primal_tangent_dtype",
        "jax.experimental.random.stateful_rng",
        "jax.experimental.rnn.swap_lstm_gates",
        "jax.experimental.sparse.bcoo_reshape",
        "jax.experimental.sparse.linalg.spsolve",
        "jax.experimental.sparse.random_bcoo",
        "jax.experimental.sparse.todense",
        "jax.export.symbolic_shape",
        "jax.ffi.ffi_call",
        "jax.free_ref",
        "jax.ops.segment_prod",
        "jax.ref.free_ref",
        "jax.scipy.cluster.vq.vq",
        "jax.scipy.fft.idctn",
        "jax.scipy.linalg.pascal",
        "jax.scipy.optimize.minimize",
        "jax.scipy.special.bessel_jn",
        "jax.sharding.NamedSharding",
        "jax.sharding.SingleDeviceSharding",
        "jax.test_util.check_grads",
        "jax.test_util.check_vjp",
        "jax.transfer_guard",
        "jax.transfer_guard_device_to_device",
        "jax.transfer_guard_device_to_host",
        "jax.transfer_guard_host_to_device",
        "jnp.add.reduceat",
        "jnp.extract",
        "jnp.lexsort",
        "jnp.nanargmax",
        "jnp.nanargmin",
        "jnp.polydiv",
        "jnp.roll",
        "jnp.tile",
        "lax.RaggedDotDimensionNumbers",
        "lax.broadcast_shapes",
        "lax.conv_general_shape_tuple",
        "lax.conv_shape_tuple",
        "lax.conv_transpose_shape_tuple",
        "lax.gather",
        "lax.integer_pow",
        "lax.padtype_to_pads",
        "lax.pbroadcast",
        "lax.platform_dependent",
        "lax.precv",
        "lax.shape_as_value",
        "pl.BlockSpec",
        "pl.CostEstimate",
        "pl.GridSpec",
        "pl.align_to",
        "pl.broadcast_to",
        "pl.cdiv",
        "pl.lower_as_mlir",
        "pl.next_power_of_2",
        "pl.strides_from_shape",
    ]
)


def _function_of(call):
    """The name of the function that is called, within a transformation or not."""
    call = re.sub(r"^jax\.(eval_shape|jit|vmap|grad)\(lambda \w+: ", "", call)
    return re.match(r"[\w.]*", re.sub(r"^jnp\.sum\((?=[A-Za-z]+\.)", "", call)).group()


REASONS = (
    Reason(
        "the factors of a product are numbers: upstream traces the call with anything, and fails when "
        "the program is lowered",
        (*BESIDE, "refused"),
        functions=frozenset(["lax.linalg.symmetric_product"]),
        told=r"float\(\) argument|could not convert",
    ),
    Reason(
        "upstream compiles the function with this argument static, and hashes it before it looks at it; "
        "here the function says what is wrong with it, or takes a value that is right",
        BESIDE,
        said=r"Non-hashable static|unhashable type|must have __hash__",
    ),
    Reason(
        "upstream reads the numbers of a container before the function sees that it is none of arrays",
        BESIDE,
        said=r"An overflow was encountered while parsing|too large to convert to int32",
    ),
    Reason(
        "upstream traces the argument before the function can refuse it by name",
        BESIDE,
        said=r"^Error interpreting argument to|Cannot interpret value of type|is not a valid JAX type",
    ),
    Reason(
        "upstream's message is one of the bindings of MLIR, or of XLA, which knows no arguments",
        BESIDE,
        said=r"incompatible function arguments|^UNKNOWN:|^INVALID_ARGUMENT|unsupported operand type"
        r"|not supported between instances|object is not (iterable|subscriptable)"
        r"|not enough values to unpack|too many values to unpack|has no len\(\)|object is not callable",
    ),
    Reason(
        "upstream uses an array or a tracer where a flag is wanted as a truth value",
        BESIDE,
        said=r"truth value of an|Attempted boolean conversion|cannot be converted to boolean",
    ),
    Reason(
        "upstream refuses a reference, or a masked, object or string array, at another step",
        BESIDE,
        call=r"REF|SPARSE|np\.ma\.|object\(\)|'a'|b'a|datetime64|longdouble|np\.void|Raising|KEY|Plain"
        r"|decimal|fractions|jax\.ref|new_ref|empty_ref",
    ),
    Reason(
        "an axis name that nothing binds is wrong before the other arguments are",
        ("class",),
        said="",
        ours="NameError|RuntimeError",
    ),
    Reason(
        "a tracer where a static value is wanted: which conversion meets it first differs",
        ("class",),
        call=r"lambda t:",
    ),
    Reason(
        "what the memory does not hold is refused with the number of bytes",
        ("class", "refused"),
        ours="JaxRuntimeError|XlaRuntimeError|MemoryError",
    ),
    Reason(
        "Python's own error for a container of 2**62 items, which says nothing of it; upstream's too",
        ("bare", "class", "accepted", "refused"),
        call=r"2\*\*(31|32|62|63)|2\*\*20",
        ours="MemoryError",
    ),
    Reason(
        "upstream runs out of memory, where here the number is refused",
        BESIDE,
        theirs="MemoryError",
    ),
    Reason(
        "an integer that its dtype does not hold is refused where it is read, before anything else",
        ("class", "refused"),
        ours="OverflowError",
    ),
    Reason(
        "upstream's message is one that Python or NumPy raises on the way, and knows no arguments",
        BESIDE,
        said=r"setting an array element|inhomogeneous|is not recognized|entry not a 2- or 3- tuple"
        r"|cannot hash|could not convert|safe_(zip|map)\(\)|bad_cast|is not in list|not in tuple"
        r"|positional arguments? but|missing \d+ required|must be a mapping|iteration over a 0-d"
        r"|could not be broadcast together|ufunc '\w+' not supported|len\(\) of unsized"
        r"|bad operand type|cannot convert float|can only concatenate|Can't pickle|invalid literal"
        r"|No attribute handler|cannot reshape array|pytree structure error|not a non-boolean"
        r"|hashable and comparable|too large to convert|is not callable|must be callable"
        r"|argument must be a string or a (real )?number|expected .* arguments?, got|not JSON",
    ),
    Reason(
        "upstream reads exported functions with a package that is not installed beside it",
        BESIDE,
        call=r"deserialize",
        theirs="ImportError",
    ),
    Reason(
        "upstream's module has no such function in this version",
        BESIDE,
        call=r"build_tree",
        theirs="AttributeError",
    ),
    Reason(
        "upstream looks for an attribute that the argument does not have",
        ("accepted", "class"),
        theirs="AttributeError|AssertionError|IndexError|KeyError|ZeroDivisionError|PicklingError",
    ),
    Reason(
        "an argument that is no array, or no dtype, is refused before what else is wrong",
        ("class",),
        told=r"requires ndarray or scalar|not a valid JAX|Cannot interpret|cannot become an array"
        r"|unhashable type|is no dtype|dtype=arr|truth value|only integer scalar|expects an array"
        r"|cannot be interpreted as an integer|not iterable|not supported between|incompatible function",
    ),
    Reason(
        "upstream refuses another argument first: both are wrong, or the value is wrong in two ways",
        ("class",),
        ours="ValueError|AxisError|TypeError|IndexError|NotImplementedError|IncompatibleShapes",
        theirs="ConcretizationTypeError|Tracer\\w+|NonConcreteBooleanIndexError|UnexpectedTracerError"
        r"|MLIRError|RuntimeError|UFuncTypeError",
    ),
    Reason(
        "a tracer where a static value is wanted: which conversion meets it first differs",
        ("class", "accepted", "refused"),
        call=r"jax\.(jit|vmap|grad|eval_shape)\(lambda \w+:",
        ours="ConcretizationTypeError|Tracer\\w+|NonConcreteBooleanIndexError|NonHashableStatic",
    ),
    Reason(
        "polynomials of one coefficient, and those whose coefficients are columns, are NumPy's affair",
        ("accepted",),
        call=r"poly(add|sub|mul)",
    ),
    Reason(
        "rows and columns of a sparse matrix may be given in any container",
        ("accepted",),
        call=r"sparse\.(CSR|CSC|COO|BCOO|BCSR)\(",
    ),
    Reason(
        "NumPy's answer: arrays of different shapes are not equivalent",
        ("accepted",),
        call=r"array_equiv",
        theirs="TypeError",
    ),
    Reason(
        "booleans and integers count as numbers here, as in SciPy",
        ("accepted",),
        call=r"softmax|stats\.norm\.ppf|ndtri|nanquantile|nanpercentile",
        said=r"does not accept dtype (bool|int)|x\.dtype=int",
    ),
    Reason(
        "the kind of a process for a granule is looked at where there are several",
        ("accepted", "class"),
        call=r"create_hybrid_device_mesh",
    ),
    Reason(
        "tokens do not leave the program that makes them",
        ("class", "refused"),
        call=r"create_token|after_all",
    ),
    Reason(
        "NumPy refuses an axis that is given twice",
        ("refused",),
        call=r"moveaxis|gradient",
        told=r"duplicate value",
    ),
    Reason(
        "an index that no shard has is refused, also of a replicated array",
        ("refused",),
        call=r"addressable_data",
    ),
    Reason(
        "several things are wrong with the call, or one in several ways; another is told first",
        ("class",),
        functions=ORDER,
    ),
    Reason(
        "an argument that is not needed is not looked at, or what it means is clear",
        ("accepted",),
        functions=TAKEN,
    ),
    Reason(
        "what upstream looks at later, in another place, or never, is refused at once and by name",
        ("refused", "class"),
        functions=EARLY,
    ),
    Reason(
        "what is not callable, no device, or no number of an argument or axis, is refused where it is "
        "given; upstream reads it when it is used, or never",
        ("refused",),
        told=r"Expected a (callable|device)|cannot be interpreted as an integer|^(the `)?static_arg|argnums must be"
        r"|object is not iterable|expected one of|Expected a sequence of integers",
    ),
    Reason(
        "an index of a reference that is out of bounds, a boolean or no integer is refused",
        ("refused",),
        call=r"ref\.|REF",
        told=r"Out of bound|Indexer must have|boolean indices",
    ),
    Reason(
        "whether indices are unique or sorted, and how a function is compiled, is no array",
        ("refused",),
        call=r"unique_indices|indices_are_sorted|check_finite|keepdims|(wrap|allow)_negative_indices",
        told=r"truth value|unhashable type|is not a valid JAX type|PRNGKey dtype|zip\(\) argument",
    ),
    Reason(
        "a parameter of upstream's own, for its source lines",
        ("refused",),
        call=r"propagate_source_info",
    ),
    Reason(
        "upstream runs this on accelerators alone, or has no rule for it",
        ("accepted",),
        call=r"fused\.fused|pl\.",
        theirs="NotImplementedError",
    ),
    Reason(
        "damaged bytes are a ValueError; upstream unpickles them",
        ("class",),
        call=r"deserialize_and_load",
        theirs="UnpicklingError|EOFError",
    ),
    # What upstream takes and does not look at, or takes for something else.
    Reason(
        "text, bytes, fractions and descriptions of arrays are no arrays, also for a function that "
        "does not use their elements",
        ("refused",),
        told=r"requires ndarray or scalar arguments, got <class '(memoryview|str|fractions\.Fraction"
        r"|minijax\.features\.stages\.struct\.ShapeDtypeStruct)'>",
    ),
    Reason(
        "a sequence is no array: most functions of upstream refuse one as well",
        ("refused",),
        functions=frozenset(["jax.scipy.special.expn", "jax.scipy.special.hyp2f1"]),
        told=r"requires ndarray or scalar arguments, got <class '(tuple|list)'>",
    ),
    Reason(
        "sets, bytes and views of memory are no sequences of arrays",
        ("refused",),
        told=r"takes a sequence of arrays; got (frozenset|set|memoryview|bytes|bytearray):",
    ),
    Reason(
        "a kind of reference, of accuracy or of abstract device that there is not is a mistake, which "
        "upstream keeps",
        ("refused",),
        told=r"^new_ref takes kind=|^Accuracy .* not supported|^abstract_device must be an",
    ),
    Reason(
        "as before: an array is compared with the kinds that there are",
        ("refused",),
        call=r"new_ref\(.*kind=np\.",
        told=r"truth value",
    ),
    Reason(
        "only references can be frozen",
        ("refused",),
        told=r"^freeze takes a reference",
    ),
    Reason(
        "the empty string and False are axis names like others, and a collective of no arrays needs its axis as "
        "well",
        ("refused",),
        call=r"axis=''|\(F, False\)|\((\[\]|\{\}|None), '",
        told=r"unbound axis name|Named reductions not implemented",
    ),
    Reason(
        "a flag that is an array of several elements says neither yes nor no",
        ("refused",),
        call=r"prevent_mlir_dce=|inverse=|degrees=|platforms=|keep_unused=",
        told=r"truth value|^Incompatible shapes",
    ),
    Reason(
        "each argument of a Taylor series has one series",
        ("refused",),
        told=r"^jet takes a series for each",
    ),
    Reason(
        "text, bytes, tuples and None are no numbers; upstream asks whether they are zero or equal to one",
        ("refused",),
        call=r"fold_in\(KEY, decimal|expn\(bytearray|\bord=\(|ddof=None",
        told=r"is not a valid JAX type",
    ),
    Reason(
        "what is not callable cannot be called later either",
        ("refused",),
        told=r"^(named_call|frompyfunc) takes a function",
    ),
    Reason(
        "a state of 16 bits is too coarse for an estimate of the error: upstream gives the state it began "
        "with",
        ("refused",),
        told=r"^odeint: a state of dtype",
    ),
    Reason(
        "a mesh is no step size: upstream's can be called, as a decorator",
        ("refused",),
        call=r"(make_schedule|sgd)\(MESH",
    ),
    Reason(
        "what is no dtype, or an array for one, is refused where upstream takes it for none, or does "
        "not look at it",
        ("refused",),
        functions=frozenset(["lax.full_like", "jnp.fft.rfftfreq"]),
        told=r"is no dtype|instead of dtype=arr",
    ),
    Reason(
        "an iterator that is used up when it is read once is no shape",
        ("refused",),
        call=r"iter\(\[1, 2\]\)",
        told=r"Shapes must be 1D|total size must be unchanged",
    ),
    Reason(
        "values of dtypes that arrays cannot have are refused, also where a dtype for the result is given",
        ("refused",),
        call=r"datetime64|np\.void|np\.str_|np\.array\('a'\)|\[slice\(None\)\]",
        told=r"is not a valid JAX (array )?type",
    ),
    Reason(
        "SciPy refuses these as well: a grid that does not fit its values, a sorter of more dimensions, "
        "polynomials, diagonals and sizes of matrices that are none",
        ("refused",),
        told=r"^the points in dimension|^there are \d+ points and|^sorter should be 1-dimensional"
        r"|^polyder takes coefficients|takes vectors of n and n - 1|takes a whole number of rows"
        r"|^x and n must be of integer type|^Invalid order|^Decompositions of Hermitian matrices",
    ),
    Reason(
        "steps, repetitions and sizes are nonnegative integers, and offsets integers",
        ("refused",),
        told=r"reps must be nonnegative|repeat takes nonnegative|It is nse\.|^bcoo_fromdense: n_batch"
        r"|offset must be an integer|'Indexed' and 'int'",
    ),
    Reason(
        "numbers of steps are single integers; upstream compares them with a counter",
        ("refused",),
        call=r"max_iterations=|max_squarings=",
        told=r"slice indices must be|scalar index|must have equal types",
    ),
    Reason(
        "keys are no numbers, and have no imaginary parts, order or zeros; upstream finds out when the "
        "program is lowered",
        ("refused",),
        call=r"KEY",
        told=r"PRNGKey dtype cannot be|key<fry>",
    ),
    Reason(
        "a seed is an integer, traced or not",
        ("refused",),
        told=r"^PRNG key seed must be an integer",
    ),
    Reason(
        "formulas that compare their arguments have no meaning for complex numbers",
        ("refused",),
        told=r"does not accept dtype complex64|does not support complex-valued|x\.dtype=complex64"
        r"|cannot safely cast argument of type complex64",
    ),
    Reason(
        "a backend, kind, device or process that is none of these, an implementation that the platform "
        "lacks, an option without effect",
        ("refused",),
        told=r"^backend must be the name|^Expected kind to be a dtype|^Unknown process_index"
        r"|^Only the lapack implementation|^ragged_dot_general: group_offset",
    ),
    Reason(
        "what is no device is refused, where upstream takes it for none given",
        ("refused",),
        call=r"from_dlpack\(.*device=(''|False)",
        told=r"only accepts `None`",
    ),
    Reason(
        "dimension numbers are three strings, sizes of a mesh as many as its axes",
        ("refused",),
        told=r"^dimension_numbers must be three strings|^AbstractMesh: \d sizes",
    ),
    Reason(
        "a value that fills what is missing is a number without axes",
        ("refused",),
        call=r"fill_value=",
        told=r"^broadcast_in_dim|fill_value must be a number",
    ),
    Reason(
        "a tolerance that is text fails in the message of the comparison; upstream calls no NumPy",
        ("refused",),
        call=r"check_jvp\(.*atol=''",
    ),
    Reason(
        "classes written in Python have the buffer protocol from Python 3.12 on",
        ("refused",),
        call=r"frombuffer",
        told=r"a bytes-like object is required",
    ),
    Reason(
        "an array of one-bit integers cannot be made: StableHLO has no such type",
        ("refused",),
        told=r"^StableHLO has no element type for int1",
    ),
    Reason(
        "a message that lacks its values says so at once",
        ("refused",),
        call=r"checkify\.check\(True, 'no \{\}'\)",
    ),
    Reason(
        "weights need an axis, along which they are",
        ("refused",),
        functions=frozenset(["jax.random.multinomial", "jax.scipy.stats.multinomial.logpmf"]),
        told=r"axis -1 is out of bounds",
    ),
    Reason(
        "an argument by a name that the function does not know; of two faults, upstream finds the other",
        ("refused", "class"),
        call=r"nonsense=",
        told=r"wrong number of positional|requested to map",
    ),
    Reason(
        "a number of bits is one of a dtype; a fraction of neighbours one number",
        ("refused",),
        call=r"itemsize_bits|recall_target=range",
        told=r"has no width in bits|real number, not 'range'",
    ),
    # What has a meaning, or NumPy's, where upstream refuses it.
    Reason(
        "booleans have an order, and count as integers, as in NumPy",
        ("accepted",),
        call=r"partition\(np\.ones\(\(2, 3\), bool|take\(M, True",
        said=r"neg does not accept dtype bool|indices must have an integer type",
    ),
    Reason(
        "an object with __index__ is an integer, as in NumPy",
        ("accepted",),
        said=r"requires ndarray or scalar arguments, got <class 'tests\.bad_calls\.inputs\.Indexed'>",
    ),
    Reason(
        "axes may be given in any container, as in most functions of upstream: those that are out of "
        "bounds are told",
        BESIDE,
        call=r"axis=|rollaxis",
        ours="ok|AxisError|ValueError",
        said=r"[Oo]nly integer scalar arrays|(frozenset|set|range|float)' object cannot be interpreted"
        r"|tuple indices must be integers",
    ),
    Reason(
        "upstream's derivative multiplies the tangent of an argument of integers or booleans",
        ("accepted",),
        said=r"float0s do not support any operations",
    ),
    Reason(
        "a mean and a mask broadcast",
        ("accepted",),
        call=r"(std|var)\(F, (mean|where)=",
        said=r"arrays must have the same number of dimensions",
    ),
    Reason(
        "integers count as floating-point numbers; upstream's loop fails within",
        ("accepted",),
        call=r"odeint|sparse\.linalg\.",
        said=r"^while_loop body function carry|^cotangent type does not match",
    ),
    Reason(
        "sizes beyond 64 bits become floating-point numbers in upstream, by NumPy's arithmetic",
        ("accepted",),
        call=r"np\.uint64\(2 ?\*\* ?63\)",
        said=r"np\.float64|numpy\.float64",
    ),
    Reason(
        "upstream reads a number, or an index type, in 32 bits, which the function does not need",
        ("accepted",),
        call=r"2\*\*(31|62)",
        said=r"out of bounds for int32",
    ),
    Reason(
        "an initial value of another dtype is converted, as upstream does with smaller numbers",
        ("accepted",),
        call=r"reduce_window\(M, np\.array\(2\*\*62\)",
        said=r"inconsistent dtypes for operands and init_values",
    ),
    Reason(
        "None, or an array, for the dtype of indices: the default one, or that of the array",
        ("accepted",),
        call=r"_fromdense\(.*index_dtype=(None|RAW)",
    ),
    Reason(
        "the value that fills what is missing may be traced",
        ("accepted",),
        call=r"fill_value=t\)",
        said=r"^Abstract tracer value encountered",
    ),
    Reason(
        "upstream's entropy asks for as many terms as there is no memory for",
        ("accepted",),
        call=r"poisson\.entropy",
        said=r"std::bad_alloc",
    ),
    Reason(
        "a boolean that is known is no traced index",
        ("accepted",),
        call=r"add\.at\(.*np\.bool_\(True\)",
    ),
    # Faults that upstream finds in another place, of another class.
    Reason(
        "shapes that do not fit are a TypeError of the operation of lax that meets them, or a ValueError "
        "of a function that compares them before",
        ("class",),
        ours="TypeError",
        said=r"^Incompatible shapes for broadcasting",
        told=r"incompatible shapes for broadcasting|^Cannot concatenate arrays",
    ),
    Reason(
        "nested sequences whose parts have different shapes have NumPy's class of error",
        ("class",),
        told=r"^setting an array element with a sequence",
        said=r"^Cannot (concatenate|determine dtype)|is not a valid JAX array type",
    ),
    Reason(
        "a size of 2**63 is too large before it is no integer of NumPy",
        ("class",),
        told=r"must be at most",
        said=r"must have every element be an integer type",
    ),
    Reason(
        "histogram2d looks at the number of its weights before it knows that they are in a container",
        ("class",),
        told=r"^should have one weight",
        said=r"requires ndarray or scalar arguments",
    ),
    Reason(
        "upstream's text for an argument that is text is one of Python's formatting or arithmetic",
        ("class",),
        said=r"^not all arguments converted during|^can't multiply sequence",
    ),
    Reason(
        "a value that fills is no number, or no scalar",
        ("class",),
        told=r"fill_value must be a number",
        said=r"^fill_value argument to indexed get",
    ),
    Reason(
        "a view of memory is no index, and no sequence; an iterator no sequence of arrays, nor text",
        ("class",),
        call=r"memoryview|iter\(|lax\.sort\(''",
        said=r"^Using a non-tuple sequence|^Need at least one array|^Zero-dimensional arrays"
        r"|^Sort requires at least one",
    ),
    Reason(
        "upstream looks at shapes before it looks for a derivative, or for a rule of vmap",
        ("class",),
        told=r"^Differentiation rule for 'nextafter'",
    ),
)
