"""`todense`: the dense array of a sparse one of any format, as one equation.

The parameter `tree` makes the sparse array of its buffers; what is dense already stays as it is.
"""

from __future__ import annotations

from typing import Any

from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.features.linear_transpose import linear_transpose
from minijax.lax.rules import linear_in
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import is_undefined
from minijax.transforms.vmap import vmap

__all__ = ["todense_p"]

todense_p = Primitive("todense")


def _dense(*bufs: Any, tree: Any) -> Any:
    made = tree.unflatten(bufs)
    return made.todense() if hasattr(made, "todense") else made


@todense_p.shape_rule
def _(*bufs, tree):
    made = tree.unflatten(bufs)
    weak = len(bufs) == 1 and bufs[0].weak_type
    return ShapedArray(made.shape, made.dtype, weak)


todense_p.lower(lower_by(_dense))


linear_in(todense_p, 0)


@todense_p.transpose
def _(ct, data, *places, tree):
    assert is_undefined(data)
    back = linear_transpose(lambda x: _dense(x, *places, tree=tree), data.aval)
    return [*back(ct), *[None] * len(places)]


@todense_p.batch
def _(args, dims, *, tree):
    return vmap(lambda *bufs: _dense(*bufs, tree=tree), in_axes=tuple(dims))(*args), 0
