"""`einsum`: sums of products, written as subscripts. The subscripts are read once for given shapes
and become a list of steps, each of which multiplies two operands by one `dot_general`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.array import Array
from minijax.core.source import joined
from minijax.features.library import library
from minijax.features.sharding.explicit import split_as
from minijax.lax import compare, creation
from minijax.lax.convert import to_dtype
from minijax.lax.dot import dot_general
from minijax.lax.precision import PrecisionLike
from minijax.lax.reductions import reduce_or_p
from minijax.lax.shapes import squeeze_p
from minijax.numpy.contraction_paths import (
    Contraction,
    contraction_path,
    contractions,
)
from minijax.numpy.promotion import check_arraylike, converted, is_arraylike, number_like, to_array
from minijax.numpy.selecting import choose_where
from minijax.runtime.named_sharding import out_sharding_of
from minijax.transforms.primitives import reduce_sum_p, transpose_p
from minijax.typing import DTypeLike

__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] = dot_general,
    out_sharding: Any = None,
) -> Array:
    """Evaluate Einstein's summation convention on arrays.

    - `subscripts`: text such as "ij,jk->ik": a label for each axis of each operand, and those to
      keep; without "->", labels that occur once are kept. "..." stands for axes that broadcast. Or
      operands and lists of labels in turn: numbers, strings or whatever can be hashed and sorted.
    - `operands`: numeric arrays.
    - `optimize`: order of contraction; "auto" (the default), "optimal", "greedy", False, or a path.
    - `precision`, `preferred_element_type`, `out_sharding`: as in `dot`.
    - `_dot_general`: function in place of `lax.dot_general`.

    Returns an array of the promoted dtype. ValueError if subscripts and shapes do not fit. Source:
    NumPy's `einsum`.

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    text, operands = as_text(subscripts, operands)
    if not all(map(is_arraylike, operands)):
        read_labels(
            text, [_rank_of(x) for x in operands]
        )  # what is said of their ranks comes first
    if isinstance(optimize, list):
        optimize = tuple(map(_frozen, optimize))
    return _einsum(
        text, optimize, precision, preferred_element_type, _dot_general, out_sharding, *operands
    )


def _rank_of(x: Any) -> int:
    if x is None or np.asarray(x).dtype == object:
        raise ValueError(
            f"Cannot determine the shape of {x}, can only determine the shape of array-like objects."
        )
    return np.ndim(x)


def _frozen(step: Any) -> Any:
    return tuple(step) if isinstance(step, (tuple, list)) else step


# -- reading subscripts -----------------------------------------------------------------------


def as_text(subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Subscripts as a string, whether they came as one or as lists of labels."""
    if isinstance(subscripts, str):
        return subscripts, operands
    given = [subscripts, *operands]
    arrays, labels = given[0::2], given[1::2]
    output = None
    if len(arrays) > len(labels):
        *arrays, output = arrays
    try:
        used = {label for group in labels for label in group}
        names = dict(zip(sorted(used - {Ellipsis}), _LETTERS, strict=False))
    except TypeError as error:
        raise TypeError(
            "For this input type lists must contain either Ellipsis or hashable and comparable "
            f"object (e.g. int, str): einsum was given the labels {labels!r}; {error}."
        ) from None

    def text(group):
        return "".join(["..." if label is Ellipsis else names[label] for label in group])

    joined = ",".join(map(text, labels))
    try:
        return joined if output is None else f"{joined}->{text(output)}", arrays
    except KeyError as error:
        error.add_note("It is a label of the result of einsum that no operand has.")
        raise


def read_labels(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
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
        raise ValueError(f"Subscripts can only contain one '->'. Got {text!r}.")
    for character in text.replace("->", "").replace("...", ""):
        if character in ".->":  # anything else may be a label
            what = (
                "Invalid Ellipses" if character == "." else "Subscripts can only contain one '->'"
            )
            raise ValueError(f"{what}. Character {character} is no label in {text!r}.")
    if any(labels.count("...") > 1 for labels in (*inputs, output)):
        raise ValueError(f"Invalid Ellipses. An operand has more than one in {text!r}.")
    free = [letter for letter in _LETTERS if letter not in text][: max(ranks, default=0)]
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
    hidden_labels = "".join(free[len(free) - longest :])
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


def label_sizes(text, inputs: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The size of each label. An axis of size 1 is broadcast."""
    sizes: dict[str, int] = {}
    for index, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for label, size in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, size)
            if known != size and 1 not in (known, size):
                raise ValueError(
                    f"Size of label {label!r} for operand {index} ({known}) does not match "
                    f"previous terms ({size}). The subscripts are {text!r}, the shapes "
                    f"{', '.join(map(str, shapes))}: name the axes otherwise, or transpose or "
                    "reshape an operand."
                )
            sizes[label] = max(known, size) if 0 not in (known, size) else 0
    return sizes


@functools.lru_cache(maxsize=1024)
def _plan(
    text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> tuple[list[str], list[Contraction]]:
    """The labels of the operands, and the contractions."""
    inputs, output = read_labels(text, [len(shape) for shape in shapes])
    sizes = label_sizes(text, inputs, shapes)
    path = contraction_path(inputs, output, sizes, optimize)
    return inputs, contractions(inputs, output, path)


# -- computing --------------------------------------------------------------------------------


@library(static=("text", "optimize", "precision", "preferred", "dot", "out_sharding"))
def _einsum(text, optimize, precision, preferred, dot, out_sharding, *operands):
    check_arraylike("einsum", *operands)
    arrays = [to_array("einsum", x, i) for i, x in enumerate(operands)]
    shapes = tuple([tuple(x.aval.shape) for x in arrays])
    inputs, steps = _plan(text, shapes, optimize)
    dtype, weak = _result_type(arrays, preferred)
    terms = list(zip(inputs, arrays, strict=True))
    context = local.context
    outer, context.scope = context.scope, joined(context.scope, text)  # as `named_scope(text)`
    try:
        x = _contracted(terms, steps, dot, precision, dtype, out_sharding)
    finally:
        context.scope = outer
    return split_as(to_dtype(x, dtype, weak), out_sharding, "einsum", new=False)


def _contracted(terms, steps, dot, precision, dtype, out_sharding) -> Any:
    for step in steps:
        taken = [terms.pop(position) for position in step.positions]
        needed = set(step.result)
        if len(taken) == 1:
            labels, x = _reduce(*taken[0], needed, dtype)
        elif len(taken) == 2:
            where = out_sharding if step is steps[-1] else None
            labels, x = _multiply(*taken, step.result, dot, precision, dtype, where)
        else:
            raise NotImplementedError(
                "jax.numpy.einsum does not support simultaneous contraction of 3 or more operands. "
                f"A step of the path in `optimize` takes {len(taken)}: {step.positions}."
            )
        if labels != step.result:
            order = tuple([labels.index(label) for label in step.result])
            x = transpose_p.bind(x, permutation=order)
        terms.append((step.result, x))
    [(_, x)] = terms
    return x


def _result_type(arrays: Sequence[Any], preferred: Any) -> tuple[Any, bool]:
    if preferred is not None:
        return dtypes.check_user_dtype_supported(preferred, "einsum"), False
    return dtypes.promote(tuple([(x.aval.dtype, x.aval.weak_type) for x in arrays]))


def _reduce(labels: str, x: Any, needed: set[str], dtype: Any) -> tuple[str, Any]:
    """Sums over labels that are not needed, and the diagonal of those that repeat."""
    for label in dict.fromkeys(labels):
        places = [axis for axis, other in enumerate(labels) if other == label]
        for first, second in itertools.pairwise(places):
            x = _on_diagonal(x, first, second)
    summed = tuple([
        axis
        for axis, label in enumerate(labels)
        if label not in needed or label in labels[axis + 1 :]
    ])  # fmt: skip
    if summed:
        if dtypes.promote_types(x.aval.dtype, dtype) != x.aval.dtype:  # the wider one sums
            x = converted(x, dtype)
        if x.aval.dtype == dtypes.bool_:
            x = reduce_or_p.bind(x, axes=summed)
        else:
            x = reduce_sum_p.bind(x, axes=summed, out_sharding=None)
    return "".join([label for axis, label in enumerate(labels) if axis not in summed]), x


def _on_diagonal(x: Any, first: int, second: int) -> Any:
    """Elements off the diagonal of two axes set to zero."""
    rows, columns = [creation.broadcasted_iota(np.uint32, x.aval.shape, i) for i in (first, second)]
    return choose_where(compare.eq_p.bind(rows, columns), x, number_like(x, 0))


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


def _multiply(one, two, wanted: str, dot, precision, dtype, out_sharding) -> tuple[str, Any]:
    """The product of two operands, summed over the labels that the result does not have."""
    (left, a), (right, b), needed = one, two, set(wanted)
    (left, a), (right, b) = _without_ones(left, a, right, b), _without_ones(right, b, left, a)
    left, a = _reduce(left, a, needed | set(right), dtype)
    right, b = _reduce(right, b, needed | set(left), dtype)
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    free = ["".join([label for label in labels if label not in shared]) for labels in (left, right)]
    lead = "".join(batch)
    if lead + free[1] + free[0] == wanted:  # as upstream's programs are
        (left, a), (right, b), free = (right, b), (left, a), free[::-1]
    dims = tuple([
        tuple([tuple([labels.index(label) for label in group]) for labels in (left, right)])
        for group in (summed, batch)
    ])  # fmt: skip
    labels = lead + free[0] + free[1]
    where = out_sharding_of(out_sharding, "einsum")
    if where is not None and labels != wanted:
        given = [*where.spec.partitions, *[None] * len(wanted)]
        parts = dict(zip(wanted, given, strict=False))
        where = where.with_parts([parts.get(label) for label in labels])
    split = {} if where is None else {"out_sharding": where}
    return labels, dot(a, b, dims, precision, preferred_element_type=dtype, **split)
