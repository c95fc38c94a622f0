"""`einsum_path`, and the table of costs that it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from minijax.numpy.contraction_paths import (
    Contraction,
    contraction_path,
    contractions,
    operations,
    size_of,
)
from minijax.numpy.einsum import as_text, label_sizes, read_labels

__all__ = ["einsum_path"]


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | list[tuple[int, ...]] = "auto"
) -> tuple[list[tuple[int, ...]], PathInfo]:
    """Find the order in which `einsum` contracts its operands.

    - `subscripts`, `operands`: as in `einsum`; only the shapes of the arrays matter.
    - `optimize`: as in `einsum`.

    Returns a list of tuples of positions, one for each contraction, and a table of their costs.
    ValueError if subscripts and shapes do not fit. Source: NumPy's `einsum_path`.

    >>> a, b = jnp.ones((2, 3)), jnp.ones((3, 4))
    >>> jnp.einsum_path("ij,jk->ik", a, b, optimize="greedy")[0]
    [(0, 1)]
    """
    text, operands = as_text(subscripts, operands)
    shapes = tuple([tuple(np.shape(x)) for x in operands])
    inputs, output = read_labels(text, [len(shape) for shape in shapes])
    sizes = label_sizes(text, inputs, shapes)
    path = contraction_path(inputs, output, sizes, optimize)
    return path, PathInfo(inputs, output, shapes, sizes, path)


def _blas(step: Contraction) -> str | bool:
    """The kind of BLAS routine that computes a contraction, or False."""
    if len(step.inputs) != 2:
        return False
    left, right = step.inputs
    one, two = set(left), set(right)
    both = one & two
    repeated = len(one) < len(left) or len(two) < len(right)
    if repeated or set(step.result) != (one | two) - both:
        return False
    count = len(both)
    if not count:
        return "OUTER/EINSUM"
    if one == two:
        return "DOT" if left == right else "DOT/EINSUM"
    if {left[:count], left[-count:]} & {right[:count], right[-count:]}:
        return "GEMM"
    return "GEMV/EINSUM" if both in (one, two) else "TDOT"


class PathInfo:
    """Costs of the contractions of a path, printed as a table.

    - `path`: positions of the operands of each contraction, as `einsum(optimize=path)` takes it.
    - `eq`: the subscripts.
    - `naive_cost`, `opt_cost`: operations of one loop over all labels, and along the path.
    - `speedup`: their ratio.
    - `largest_intermediate`: elements of the largest result.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        output: str,
        shapes: Sequence[tuple[int, ...]],
        sizes: Mapping[str, int],
        path: Sequence[tuple[int, ...]],
    ):
        self.input_subscripts, self.output_subscript = ",".join(inputs), output
        self.eq = f"{self.input_subscripts}->{output}"
        self.path, self.shapes, self.size_dict = path, list(shapes), dict(sizes)
        self.indices = frozenset().union(*inputs)
        steps = contractions(inputs, output, path)
        sums = sum([len(set(labels)) for labels in inputs]) > len(self.indices)
        self.naive_cost = Decimal(operations(self.indices, sums, len(inputs), sizes))
        involved = [frozenset("".join(step.inputs)) for step in steps]
        self.opt_cost = Decimal(
            sum([
                operations(labels, bool(step.summed), len(step.inputs), sizes)
                for labels, step in zip(involved, steps, strict=True)
            ])
        )  # fmt: skip
        self.scale_list = [len(labels) for labels in involved]
        self.size_list = [size_of(step.result, sizes) for step in steps]
        self.speedup = self.naive_cost / max(self.opt_cost, Decimal(1))
        self.largest_intermediate = Decimal(max(self.size_list, default=1))
        self.contraction_list = self._described(inputs, steps)

    def _described(
        self, inputs: Sequence[str], steps: Sequence[Contraction]
    ) -> list[tuple[Any, ...]]:
        """Positions, summed labels, subscripts, what remains and the BLAS routine of each step."""
        known = [dict(zip(*pair, strict=True)) for pair in zip(inputs, self.shapes, strict=True)]
        described = []
        for step in steps:
            taken = [known.pop(position) for position in step.positions]
            broadcast = any(len({sizes.get(k, -1) for sizes in taken}) > 1 for k in step.summed)
            known.append({k: max([sizes.get(k, 1) for sizes in taken]) for k in step.result})
            blas = not broadcast and _blas(step)
            text = f"{','.join(step.inputs)}->{step.result}"
            described.append((step.positions, step.summed, text, step.remaining, blas))
        return described

    def __repr__(self) -> str:
        lines = [
            f"  Complete contraction:  {self.eq}",
            f"         Naive scaling:  {len(self.indices)}",
            f"     Optimized scaling:  {max(self.scale_list, default=0)}",
            f"      Naive FLOP count:  {self.naive_cost:.3e}",
            f"  Optimized FLOP count:  {self.opt_cost:.3e}",
            f"   Theoretical speedup:  {self.speedup:.3e}",
            f"  Largest intermediate:  {self.largest_intermediate:.3e} elements",
            "-" * 80,
            "scaling        BLAS                current                             remaining",
            "-" * 80,
        ]
        for scale, (_, _, text, remaining, blas) in zip(
            self.scale_list, self.contraction_list, strict=True
        ):
            few = len(remaining) <= 20
            rest = f"{','.join(remaining)}->{self.output_subscript}" if few else "..."
            width = max(0, 56 - max(22, len(text)))
            lines.append(f"{scale:4d} {blas:>14} {text:>22}    {rest:>{width}}")
        return "\n".join(lines)
