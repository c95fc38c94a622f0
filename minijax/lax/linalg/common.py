"""The parts that the files of `lax.linalg` share: matrices in the last two axes, calls of LAPACK,
batching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.queries import is_dim
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import batched
from minijax.lax.arithmetic import add_p, conj_p, div_p
from minijax.lax.compare import eq_p, ge_p, or_p, select_n_p
from minijax.lax.convert import to_dtype
from minijax.lax.creation import iota_p
from minijax.lax.dot import dot_general_p
from minijax.lax.precision import Precision
from minijax.lax.rules import INEXACT, check_dtype, same_dtypes, scalar_like
from minijax.lax.shapes import reshaped
from minijax.lax.slicing import pad_p, slice_p
from minijax.runtime.escape import quoted
from minijax.runtime.foreign import register_batch_partitionable
from minijax.transforms.batching import all_to_front
from minijax.transforms.primitives import insert_axes, to_shape, transpose_p

__all__ = [
    "INT32", "adjoint", "as_complex", "batch_in_front", "checked", "check_operands", "check_square",
    "column", "decomposition", "diagonal_of", "each_matrix", "eye", "is_complex", "kernel",
    "lapack", "matmul", "mT", "masked", "part", "row", "spread", "symmetrized", "take_lower",
    "take_upper", "unbatched_avals", "widen",
]  # fmt: skip

INT32 = np.dtype(np.int32)
_HIGHEST = (Precision.HIGHEST, Precision.HIGHEST)

# -- avals ------------------------------------------------------------------------------------


def check_operands(
    name: str, avals: Sequence[ShapedArray], ranks: Sequence[int], accepted: Any = INEXACT
) -> tuple[int, ...]:
    """The leading axes of operands that have `ranks` axes for each element of a batch.

    TypeError for a wrong dtype, too few axes, or different numbers of leading axes; ValueError if
    these differ in size.
    """
    for position, (x, rank) in enumerate(zip(avals, ranks, strict=True)):
        if x.ndim < rank:
            raise TypeError(
                f"Input {position} to {name} must have rank at least {rank}, but got shape="
                f"{x.shape}: matrices stand in the last two axes, vectors in the last one."
            )
    for position, x in enumerate(avals):
        check_dtype(name, x, accepted, position)
    same_dtypes(name, avals)
    leads = [x.shape[: x.ndim - rank] for x, rank in zip(avals, ranks, strict=True)]
    counts = [len(lead) for lead in leads]
    if len(set(counts)) > 1:
        raise TypeError(
            f"All inputs to {name} must have the same number of batch dimensions, but got "
            f"{counts} batch dimensions for the inputs: broadcast them first."
        )
    if len(set(leads)) > 1:
        raise ValueError(
            f"The batch dimensions of the inputs to {name} must be equal, but got {leads}: "
            "broadcast them first."
        )
    return leads[0]


def check_square(name: str, x: ShapedArray, what: str = "The input") -> None:
    """ValueError unless the matrices are square."""
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{what} to {name} must be a square matrix. Got shape {x.shape}.")


def each_matrix(x: ShapedArray, *dims: int, dtype: Any = None) -> ShapedArray:
    """The aval that has for each matrix of `x` an array of shape `dims`."""
    return x.update(shape=(*x.shape[:-2], *dims), dtype=x.dtype if dtype is None else dtype)


def is_complex(x: Any) -> bool:
    return get_aval(x).dtype.kind == "c"


# -- matrices ---------------------------------------------------------------------------------


def matmul(x: Any, y: Any, precision: Any = _HIGHEST) -> Any:
    """The products of matrices in the last two axes; leading axes are equal."""
    ndim = x.ndim
    lead = tuple(range(ndim - 2))
    return dot_general_p.bind(
        x,
        y,
        dimension_numbers=(((ndim - 1,), (ndim - 2,)), (lead, lead)),
        precision=precision,
        preferred_element_type=x.dtype,
        out_sharding=None,
    )


def mT(x: Any) -> Any:
    """The last two axes transposed."""
    ndim = x.ndim
    order = (*range(ndim - 2), ndim - 1, ndim - 2)
    if x.shape[-1:] == x.shape[-2:-1] == (1,):
        return x
    return transpose_p.bind(x, permutation=order)


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    x = mT(x)
    return conj_p.bind(x, input_dtype=x.dtype) if is_complex(x) else x


def symmetrized(x: Any) -> Any:
    """The mean of matrices and their adjoints, in a floating or complex dtype."""
    shape = np.shape(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(
            f"Decompositions of Hermitian matrices take shapes [..., n, n]; got {shape}: slice the "
            "matrix, or decompose x @ x^H."
        )
    is_bool = get_aval(x).dtype == np.bool_
    total = (or_p if is_bool else add_p).bind(x, adjoint(x))
    aval = get_aval(total)
    if aval.dtype.kind not in "fcV":
        dtype = dtypes.to_inexact_dtype(aval.dtype)
        weak = aval.weak_type or is_bool
        total = to_dtype(total, dtype, weak)
    return div_p.bind(total, scalar_like(2, total))


def as_complex(x: Any) -> Any:
    return to_dtype(x, dtypes.to_complex_dtype(get_aval(x).dtype))


def _row_and_column(rows: int, columns: int, offset: int) -> tuple[Any, Any]:
    shape = (rows, columns)
    i = iota_p.bind(dtype=INT32, shape=shape, dimension=0, sharding=None)
    j = iota_p.bind(dtype=INT32, shape=shape, dimension=1, sharding=None)
    return (add_p.bind(i, np.int32(offset)) if offset else i), j


def spread(x: Any, lead: Sequence[int]) -> Any:
    """An array repeated along new leading axes."""
    return to_shape(x, (*lead, *x.shape), range(len(lead), len(lead) + x.ndim)) if lead else x


def masked(x: Any, keep: Any) -> Any:
    """The elements of matrices where the matrix `keep` is true, and zero elsewhere."""
    return select_n_p.bind(spread(keep, x.shape[:-2]), to_shape(scalar_like(0, x), x.shape), x)


def take_lower(x: Any, offset: int = 0) -> Any:
    """Zero above the diagonal that is `offset` above the main one."""
    return masked(x, ge_p.bind(*_row_and_column(*x.shape[-2:], offset)))


def take_upper(x: Any, offset: int = 0) -> Any:
    """Zero below the diagonal that is `offset` above the main one."""
    i, j = _row_and_column(*x.shape[-2:], offset)
    return masked(x, ge_p.bind(j, i))


def eye(rows: int, dtype: Any, columns: int | None = None) -> Any:
    """Ones on the diagonal of one matrix."""
    i, j = _row_and_column(rows, rows if columns is None else columns, 0)
    return to_dtype(eq_p.bind(i, j), dtype)


def checked_subset(name: str, subset: Any) -> tuple[int, int] | None:
    """The range of eigenvalues or singular values to compute. TypeError unless it is a pair."""
    if subset is None:
        return None
    if not isinstance(subset, (tuple, list)) or len(subset) != 2:
        raise TypeError(f"{name}: subset_by_index must be a pair (start, end); got {subset!r}.")
    return tuple(map(index, subset))


def diagonal_of(x: Any) -> Any:
    """The diagonals of square matrices: a strided slice of the flattened ones."""
    from_flat = x.shape[-1]
    lead = x.shape[:-2]
    flat = reshaped(x, (*lead, from_flat * from_flat))
    if not from_flat:
        return flat
    return slice_p.bind(
        flat,
        start_indices=(0,) * len(lead) + (0,),
        limit_indices=(*lead, from_flat * from_flat),
        strides=(*(1,) * len(lead), from_flat + 1),
    )


def row(x: Any) -> Any:
    """Vectors as matrices of one row."""
    return insert_axes(x, (x.ndim - 1,))


def column(x: Any) -> Any:
    """Vectors as matrices of one column."""
    return insert_axes(x, (x.ndim,))


def part(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """A block of each matrix."""
    lead = x.shape[:-2]
    starts, limits = (0,) * len(lead), lead
    if (rows, columns) == ((0, x.shape[-2]), (0, x.shape[-1])):
        return x
    return slice_p.bind(
        x,
        start_indices=(*starts, rows[0], columns[0]),
        limit_indices=(*limits, rows[1], columns[1]),
        strides=None,
    )


def widen(x: Any, rows: int, columns: int, before: int = 0) -> Any:
    """Matrices made larger with zeros: after them, and `before` of both axes in front."""
    pad = (rows - before - x.shape[-2], columns - before - x.shape[-1])
    if not any((*pad, before)):
        return x
    config = (*((0, 0, 0),) * (x.ndim - 2), (before, pad[0], 0), (before, pad[1], 0))
    return pad_p.bind(x, scalar_like(0, x), padding_config=config)


# -- lowering ---------------------------------------------------------------------------------

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def _layout(ndim: int, matrix: bool) -> list[int]:
    """Column-major for matrices, row-major for the axes in front of them, and for vectors."""
    order = list(range(ndim))[::-1]
    if matrix and ndim >= 2:
        order[0], order[1] = order[1], order[0]
    return order


def _flag(value: Any) -> str:
    """An attribute of the typed FFI: letters are bytes, and longer text is text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, np.uint8):
        return f"{value} : ui8"
    if isinstance(value, str):
        return f"{ord(value)} : ui8" if len(value) == 1 else quoted(value)
    return f"{value} : i32"


_FIRST, _LETTERS = ord("i"), 18  # Shardy names factors i, ..., z, z_1, z_2, ...


def _partitioning(ins: Sequence[Any], outs: Sequence[Any], lead: int) -> str:
    """The attributes that let XLA split a kernel over the batch, and over no other dimension."""
    sizes: list[str] = []

    def factor(size: int) -> str:
        count = len(sizes)
        name = chr(_FIRST + count) if count < _LETTERS else f"z_{count - _LETTERS + 1}"
        sizes.append(f"{name}={size}")
        return name

    batch = [factor(size) for size in ins[0].shape[:lead]]

    def dims(aval: Any) -> str:
        if len(aval.shape) < lead:  # stands for a result that is not computed
            return "[]"
        return f"[{', '.join([*batch, *map(factor, aval.shape[lead:])])}]"

    attributes = f"mhlo.frontend_attributes = {{num_batch_dims = {quoted(str(lead))}}}"
    every = [size for aval in (*ins, *outs) for size in aval.shape]
    if any(is_dim(size) or size >= 2**31 for size in every):
        return attributes  # Shardy reads no larger factor, and none that is not known
    left, right = (", ".join(map(dims, avals)) for avals in (ins, outs))
    rule = f"({left})->({right}) {{{', '.join(sizes)}}}, custom"
    return f"{attributes}, sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>"


def kernel(
    b: Any,
    target: str,
    operands: Sequence[Any],
    outs: Sequence[ShapedArray],
    lead: int,
    *,
    aliased: Sequence[int] = (),
    by_columns: bool = True,
    **flags: Any,
) -> list[Any]:
    """A call of a kernel of the typed FFI for each matrix of a batch with `lead` axes.

    - `aliased`: the operands whose memory results take, the first result that of the first one
    - `by_columns`: whether matrices are stored column after column
    - `flags`: what it is told: letters, numbers, booleans and text
    """
    avals = [x.aval for x in operands]
    if lead and len(b.module.devices) > 1:
        register_batch_partitionable(target)
    layouts = tuple(
        [_layout(x.ndim, by_columns and x.ndim - lead == 2) for x in group]
        for group in (avals, outs)
    )
    config = ", ".join([f"{name} = {_flag(value)}" for name, value in flags.items()])
    return b.custom_call(
        target, operands, outs, config=f"{{{config}}}", layouts=layouts,
        aliases=[(index, place) for place, index in enumerate(aliased)],
        extra=_partitioning(avals, outs, lead),
    )  # fmt: skip


def lapack(
    b: Any,
    routine: str | tuple[str, str],
    operands: Sequence[Any],
    outs: Sequence[ShapedArray],
    lead: int,
    *,
    dtype: Any = None,
    **flags: Any,
) -> list[Any]:
    """A call of a LAPACK kernel on a CPU; see `kernel`.

    `routine` is its name, without the letter for the dtype; or one for reals and one for complex; a
    name with `_ffi` is that of the kernel itself.
    """
    dtype = np.dtype(operands[0].dtype if dtype is None else dtype)
    if b.platform != "cpu":
        raise NotImplementedError(
            f"MLIR translation rule for the LAPACK routine {routine!r} not found for platform "
            f"{b.platform}: compute it on CPU, with minijax.device_put(x, "
            "minijax.devices('cpu')[0])."
        )
    if dtype.name not in _PREFIX:
        raise NotImplementedError(
            f"Unsupported dtype {dtype.name}: linear algebra on CPU takes "
            f"{', '.join(_PREFIX)}; convert with .astype(...)."
        )
    if isinstance(routine, tuple):
        routine = routine[dtype.kind == "c"]
    target = routine
    if not routine.endswith("_ffi"):
        target = f"lapack_{_PREFIX[dtype.name]}{routine}_ffi"
    return kernel(b, target, operands, outs, lead, **flags)


def checked(b: Any, info: Any, outs: Sequence[Any], direction: str = "EQ") -> list[Any]:
    """Results of a routine, with NaN in each matrix or vector of the batch for which it failed.

    It worked where `info` is zero; or, with the direction GE, not below zero.
    """
    ok = b.compare(info, b.full(0, info.aval), direction)
    masks = [b.broadcast(ok, x.shape, range(len(ok.shape))) for x in outs]
    return [
        b.op("stablehlo.select", (mask, x, b.full(_nan(x.dtype), x.aval)), x.aval)
        for mask, x in zip(masks, outs, strict=True)
    ]


def _nan(dtype: Any) -> Any:
    return complex(np.nan, np.nan) if np.dtype(dtype).kind == "c" else np.nan


# -- rules ------------------------------------------------------------------------------------


def decomposition(name: str, multiple_results: bool = True) -> Primitive:
    """A primitive that takes each matrix of a batch apart, with its rules for layouts, transposition
    and batching.
    """
    p = Primitive(name, multiple_results=multiple_results)
    set_layout(p, parts=batched(name, 2))
    p.rule_transpose = no_rule("it is not linear in its operand")
    batch_in_front(p)
    return p


def unbatched_avals(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[ShapedArray, ...]:
    """The types of one element's operands, from those of a batch."""
    avals = map(get_aval, args)
    return tuple(
        [aval if d is None else aval.without_axis(d) for aval, d in zip(avals, dims, strict=True)]
    )


def batch_in_front(p: Primitive) -> Callable:
    """The batching rule of an operation that takes any number of leading axes, alike in all."""

    def rule(args, dims, **params):
        p.out_avals(unbatched_avals(args, dims), params)  # whose rule checks the ranks
        args = all_to_front(args, dims)
        outs = p.bind(*args, **params)
        return outs, [0] * len(outs) if p.multiple_results else 0

    p.rule_batch = rule
    return rule
