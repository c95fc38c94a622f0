"""`einsum`: sums of products, written as subscripts. The subscripts are read once for given shapes
and become a list of steps, each of which multiplies two operands by one `dot_general`; the order
of the steps comes from NumPy's planner.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax import compare, creation
from minijax.lax.precision import PrecisionLike
from minijax.lax.shapes import squeeze_p
from minijax.numpy.linear_algebra import contract
from minijax.numpy.promotion import (
    check_arraylike,
    converted,
    number_like,
    promote_dtypes,
    to_array,
    weakened,
)
from minijax.numpy.selecting import choose_where
from minijax.runtime.named_sharding import out_sharding_of
from minijax.transforms.primitives import reduce_sum_p, transpose_p
from minijax.typing import DTypeLike

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] | None = None,
    out_sharding: Any = None,
) -> Array:
    """Evaluate Einstein's summation convention on arrays.

    - `subscripts`: text such as "ij,jk->ik": a label for each axis of each operand, and those to
      keep; without "->", labels that occur once are kept. "..." stands for axes that broadcast. Or
      operands and lists of labels in turn.
    - `operands`: numeric arrays.
    - `optimize`: order of contraction; "auto" (the default), "optimal", "greedy", False, or a path.
    - `precision`, `preferred_element_type`, `out_sharding`: as in `dot`.

    Returns an array of the promoted dtype. ValueError if subscripts and shapes do not fit. Source:
    NumPy's `einsum`.

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    del _dot_general
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    text, operands = _as_text(subscripts, operands)
    if isinstance(optimize, list):
        optimize = tuple(map(_frozen, optimize))
    return _einsum(text, optimize, precision, preferred_element_type, out_sharding, *operands)


def _frozen(step: Any) -> Any:
    return tuple(step) if isinstance(step, (tuple, list)) else step


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | list[tuple[int, ...]] = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """Find the order in which `einsum` contracts its operands.

    - `subscripts`, `operands`: as in `einsum`; only the shapes of the arrays matter.
    - `optimize`: as in `einsum`.

    Returns a list of tuples of positions, one for each contraction, and a description. ValueError
    if subscripts and shapes do not fit. Source: NumPy's `einsum_path`.

    >>> a, b = jnp.ones((2, 3)), jnp.ones((3, 4))
    >>> jnp.einsum_path("ij,jk->ik", a, b, optimize="greedy")[0]
    [(0, 1)]
    """
    if optimize == "auto":
        optimize = "optimal" if len(operands) <= 4 else "greedy"
    elif optimize is True:
        optimize = "optimal"
    text, operands = _as_text(subscripts, operands)
    inputs, output = _read(text, [np.ndim(x) for x in operands])
    dummies = [np.broadcast_to(np.float32(0), np.shape(x)) for x in operands]
    path, description = np.einsum_path(
        ",".join(inputs) + "->" + output, *dummies, optimize=optimize
    )
    return [tuple(step) for step in path if not isinstance(step, str)], description


# -- reading subscripts -----------------------------------------------------------------------


def _as_text(subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Subscripts as a string, whether they came as one or as lists of labels."""
    if isinstance(subscripts, str):
        return subscripts, operands
    given = [subscripts, *operands]
    arrays, labels = given[0::2], given[1::2]
    output = None
    if len(arrays) > len(labels):
        *arrays, output = arrays
    for label in [label for group in [*labels, output or []] for label in group]:
        if label is not Ellipsis and not hasattr(label, "__index__"):
            raise TypeError(f"einsum: subscripts must be integers or Ellipsis; got {label!r}.")
    numbers = sorted(
        {label for group in [*labels, output or []] for label in group if label is not Ellipsis}
    )
    names = dict(zip(numbers, _LETTERS, strict=False))

    def text(group):
        return "".join(["..." if label is Ellipsis else names[label] for label in group])

    joined = ",".join(map(text, labels))
    return joined if output is None else f"{joined}->{text(output)}", arrays


def _read(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with ellipses replaced by new labels."""
    text = text.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ValueError(
            f"Number of einsum subscripts, {len(inputs)}, must be equal to the number of operands, "
            f"{len(ranks)}. The subscripts are {text!r}."
        )
    if text.count("->") > 1:
        raise ValueError(f"Subscripts can only contain one '->': got {text!r}.")
    for character in text.replace("->", "").replace("...", ""):
        if character in ".->":  # anything else may be a label
            what = "Invalid Ellipses" if character == "." else "Invalid arrow"
            raise ValueError(f"{what}: character {character} is not a valid symbol in {text!r}.")
    free = [letter for letter in reversed(_LETTERS) if letter not in text]
    longest = 0
    for index, (labels, rank) in enumerate(zip(inputs, ranks, strict=True)):
        named = len(labels.replace("...", ""))
        hidden = rank - named if "..." in labels else 0
        if hidden < 0 or named + hidden != rank:
            raise ValueError(
                f"Einstein sum subscript {labels!r} does not contain the correct number of indices "
                f"for operand {index}. It has {rank} axes."
            )
        longest = max(longest, hidden)
    hidden_labels = "".join(free[:longest])
    expanded = []
    for labels, rank in zip(inputs, ranks, strict=True):
        hidden = rank - len(labels.replace("...", ""))
        expanded.append(labels.replace("...", hidden_labels[longest - hidden :] if hidden else ""))
    if arrow:
        output = output.replace("...", hidden_labels)
    else:
        counted = "".join(inputs).replace(".", "")
        once = sorted(label for label in set(counted) if counted.count(label) == 1)
        output = hidden_labels + "".join(once)
    for label in output:
        if output.count(label) > 1:
            raise ValueError(f"Output character {label!r} appeared more than once in the output.")
        if not any(label in labels for labels in expanded):
            raise ValueError(f"Output character {label!r} did not appear in the input")
    return expanded, output


# -- planning ---------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> tuple:
    """The labels of the operands, those of the result, and the pairs to multiply in turn."""
    inputs, output = _read(text, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for index, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for label, size in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, size)
            if known != size and 1 not in (known, size):
                raise ValueError(
                    f"Size of label {label!r} for operand {index} ({size}) does not match "
                    f"previous terms ({known}): {text!r} of shapes {', '.join(map(str, shapes))}. "
                    "Name the axes otherwise, or transpose or reshape an operand."
                )
            sizes[label] = max(known, size) if 0 not in (known, size) else 0
    return tuple(inputs), output, _order(inputs, output, shapes, optimize)


def _order(inputs, output, shapes, optimize) -> tuple[tuple[int, ...], ...]:
    count = len(inputs)
    if count <= 2:
        return (tuple(range(count)),)
    if isinstance(optimize, tuple):
        steps = [step for step in optimize if not isinstance(step, str)]
    elif optimize is False:
        steps = [(0, 1)] * (count - 1)
    else:
        how = "optimal" if optimize is True or (optimize == "auto" and count <= 4) else optimize
        how = "greedy" if how == "auto" else how
        dummies = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
        steps = np.einsum_path(",".join(inputs) + "->" + output, *dummies, optimize=how)[0][1:]
    # The planner may put more than two operands into one step.
    return tuple(itertools.chain.from_iterable([_pairwise(tuple(step)) for step in steps]))


def _pairwise(step: tuple[int, ...]) -> list[tuple[int, ...]]:
    if len(step) <= 2:
        return [step]
    return [step]


# -- computing --------------------------------------------------------------------------------


@library(static=("text", "optimize", "precision", "preferred", "out_sharding"))
def _einsum(text, optimize, precision, preferred, out_sharding, *operands):
    check_arraylike("einsum", *operands)
    arrays = [to_array("einsum", x, i) for i, x in enumerate(operands)]
    shapes = tuple([tuple(x.aval.shape) for x in arrays])
    inputs, output, steps = _plan(text, shapes, optimize)
    dtype, weak = _result_type(arrays, preferred)
    if len(arrays) > 2 or any(len(set(labels)) < len(labels) for labels in inputs):
        arrays = promote_dtypes(*arrays) if preferred is None else arrays
    if dtype != dtypes.bool_:  # truths are counted, not joined
        arrays = [converted(x, dtype) if x.aval.dtype == dtypes.bool_ else x for x in arrays]
    terms = list(zip(inputs, arrays, strict=True))
    for position, step in enumerate(steps):
        chosen = [terms[i] for i in sorted(step)]
        terms = [term for i, term in enumerate(terms) if i not in step]
        is_last = position == len(steps) - 1
        needed = set(output).union(*[labels for labels, _ in terms])
        while len(chosen) > 1:
            wanted = output if is_last and len(chosen) == 2 else None
            later = needed.union(*[labels for labels, _ in chosen[2:]])
            where = None if wanted is None else out_sharding
            chosen[:2] = [_multiply(chosen[0], chosen[1], later, wanted, precision, dtype, where)]
        terms.append(chosen[0])
    (labels, x) = terms[0]
    labels, x = _reduce(labels, x, set(output))
    if labels != output:
        x = transpose_p.bind(x, permutation=tuple([labels.index(label) for label in output]))
    x = converted(x, dtype, weak)
    return weakened(x) if weak else x


def _result_type(arrays: Sequence[Any], preferred: Any) -> tuple[Any, bool]:
    if preferred is not None:
        return dtypes.check_user_dtype_supported(preferred, "einsum"), False
    return dtypes.promote(tuple([(x.aval.dtype, x.aval.weak_type) for x in arrays]))


def _reduce(labels: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """Sums over labels that nothing else needs, and the diagonal of those that repeat."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = _on_diagonal(x, first, second)
            labels = labels[:first] + labels[first + 1 :]
    summed = tuple([axis for axis, label in enumerate(labels) if label not in needed])
    if summed:
        if x.aval.dtype == dtypes.bool_:
            from_any = converted(x, dtypes.int_())
            total = reduce_sum_p.bind(from_any, axes=summed, out_sharding=None)
            x = compare.ne_p.bind(total, number_like(total, 0))
        else:
            x = reduce_sum_p.bind(x, axes=summed, out_sharding=None)
        labels = "".join([label for axis, label in enumerate(labels) if axis not in summed])
    return labels, x


def _on_diagonal(x: Any, first: int, second: int) -> Any:
    """One of two axes summed away, where elements off their diagonal count as zero."""
    sizes = x.aval.shape
    rows = creation.broadcasted_iota(np.uint32, sizes, first)
    columns = creation.broadcasted_iota(np.uint32, sizes, second)
    masked = choose_where(compare.eq_p.bind(rows, columns), x, number_like(x, 0))
    if x.aval.dtype == dtypes.bool_:
        masked = converted(masked, dtypes.int_())
        total = reduce_sum_p.bind(masked, axes=(first,), out_sharding=None)
        return compare.ne_p.bind(total, number_like(total, 0))
    return reduce_sum_p.bind(masked, axes=(first,), out_sharding=None)


def _without_ones(labels: str, x: Any, other: str, other_x: Any) -> tuple[str, Any]:
    """Axes of size one that the other operand has at a larger size are left to that one."""
    ones = tuple([
        axis
        for axis, label in enumerate(labels)
        if x.aval.shape[axis] == 1
        and label in other
        and other_x.aval.shape[other.index(label)] != 1
    ])  # fmt: skip
    if not ones:
        return labels, x
    kept = "".join([label for axis, label in enumerate(labels) if axis not in ones])
    return kept, squeeze_p.bind(x, dimensions=ones)


def _multiply(
    one, two, needed: set[str], wanted: str | None, precision, dtype, out_sharding
) -> tuple[str, Any]:
    """The product of two operands, summed over the labels that nothing else needs."""
    (left, a), (right, b) = one, two
    left, a = _reduce(left, a, needed | set(right))
    right, b = _reduce(right, b, needed | set(left))
    (left, a), (right, b) = _without_ones(left, a, right, b), _without_ones(right, b, left, a)
    left, a = _reduce(left, a, needed | set(right))
    right, b = _reduce(right, b, needed | set(left))
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    free = ["".join([label for label in labels if label not in shared]) for labels in (left, right)]
    lead = "".join(batch)
    if wanted is not None and lead + free[0] + free[1] != wanted:  # as upstream's programs are
        (left, a), (right, b), free = (right, b), (left, a), free[::-1]
    dims = tuple([
        tuple([tuple([labels.index(label) for label in group]) for labels in (left, right)])
        for group in (summed, batch)
    ])  # fmt: skip
    labels = lead + free[0] + free[1]
    where = out_sharding_of(out_sharding, "einsum")
    if where is not None and wanted is not None and labels != wanted:
        given = [*where.spec.partitions, *[None] * len(wanted)]
        parts = dict(zip(wanted, given, strict=False))
        where = where.with_parts([parts.get(label) for label in labels])
    return labels, contract("einsum", a, b, dims, precision, dtype, where)
