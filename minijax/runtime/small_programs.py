"""Small programs for the CPU, which are compiled the quick way.

XLA makes the kernels of a program by way of MLIR, or, with `OLDER_EMITTERS`, of LLVM alone. The older
way compiles `sin` of a few numbers in 11 ms where the newer takes 24, which is what a user waits for
at each new operation of a notebook (seven operations after the import: 190 ms, or 127). It makes
slower code of loops (of 256 numbers twice, of 4096 four times) and of some large arrays (up to twice),
and takes longer over programs of many operations: so it is for small programs, whose calls cost as
much either way.
"""

from __future__ import annotations

import re

__all__ = ["is_small"]

_MOST_CHARACTERS = 16_000  # a training step of 12 layers has 57,000
_MOST_OF_ONE_RESULT = 32_000  # many operations, but few kernels: `random.normal` has 28,000
_MOST_ELEMENTS = 4096  # a softmax takes 5 us longer then
_MOST_IN_A_LOOP = 64

# Types of which both ways give the same bits, but for the operations that are named below.
_TYPES = frozenset(
    ["i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "bf16", "f32", "f64"]
)
# What rounds otherwise, what gains little or was not compared, and what concerns several devices or
# is no kernel of XLA's.
_EXCLUDED = (
    r"stablehlo\.(?:tan|cbrt|atan2|custom_call|convolution|sort|scatter"
    r"|all_\w+|collective_\w+|reduce_scatter|partition_id|replica_id|send|recv|infeed|outfeed)\b"
)
_SUMS = (
    r'(%\w+) = "?stablehlo\.(multiply|add|subtract|broadcast_in_dim|reshape|negate)"?[ (]'
    r"(%\w+)(?:, (%\w+))?"
)
_TENSOR = r"tensor<((?:\d+x)*)([^<>]+)"


def is_small(text: str) -> bool:
    """Whether a StableHLO module has few operations, of few numbers each."""
    one_result = re.search(r"public @main\(.*\) -> \(?tensor<[^,]*$", text, re.MULTILINE)
    if (
        len(text) > (_MOST_OF_ONE_RESULT if one_result else _MOST_CHARACTERS)
        or re.search(_EXCLUDED, text)
        or "num_partitions = 1 " not in text
    ):
        return False
    most = _MOST_IN_A_LOOP if "stablehlo.while" in text else _MOST_ELEMENTS
    for shape, dtype in set(re.findall(_TENSOR, text)):
        size = 1
        for length in shape.split("x")[:-1]:
            size *= int(length)
        if size > most or dtype not in _TYPES:
            return False
    return not _adds_products(text)


def _adds_products(text: str) -> bool:
    """Whether there is a sum or difference of two products.

    Fused operations round one of the two, and which one depends on the way: 17 of 2,000 random programs
    of some ten operations differed for that, and three for other reasons.
    """
    products = set()
    for name, operation, x, y in re.findall(_SUMS, text):
        if operation in ("add", "subtract"):
            if x in products and y in products:
                return True
            products.discard(name)
        elif operation == "multiply" or x in products:
            products.add(name)
        else:
            products.discard(name)  # of another function
    return False
