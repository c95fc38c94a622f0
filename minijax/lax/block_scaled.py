"""`scaled_matmul_p`: products of matrices of which blocks of numbers share a scale.

NVIDIA's compiler has the product itself; elsewhere the operands are scaled, and multiplied in
float32.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.arithmetic import mul_p
from minijax.lax.convert import to_dtype
from minijax.lax.dot import dot_general_p
from minijax.lax.shapes import reshaped
from minijax.lowering.module import lower_by
from minijax.lowering.types import element_type
from minijax.runtime.escape import quoted
from minijax.transforms.batching import all_to_front
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.primitives import to_shape

__all__ = ["scaled_matmul_p"]

scaled_matmul_p = Primitive("scaled_matmul_wrapper")
_FLOAT32 = np.dtype(np.float32)


@scaled_matmul_p.shape_rule
def _(x, y, x_scales, y_scales, *, preferred_element_type):
    shape = (x.shape[0], x.shape[1], y.shape[1])
    return x.update(shape=shape, dtype=preferred_element_type, weak_type=False)


def _scaled(x: Any, scales: Any) -> Any:
    *outer, count = scales.shape
    blocks = (*outer, count, x.shape[-1] // count)
    spread = to_shape(to_dtype(scales, _FLOAT32), blocks, range(len(blocks) - 1))  # fmt: skip
    return reshaped(mul_p.bind(reshaped(to_dtype(x, _FLOAT32), blocks), spread), x.shape)


def _product(x, y, x_scales, y_scales, *, preferred_element_type):
    out = dot_general_p.bind(
        _scaled(x, x_scales), _scaled(y, y_scales), precision=None, out_sharding=None,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))), preferred_element_type=_FLOAT32,
    )  # fmt: skip
    return to_dtype(out, preferred_element_type)


scaled_matmul_p.lower(lower_by(_product))
scaled_matmul_p.rule_transpose = no_rule("its derivative is made of other operations")


@scaled_matmul_p.jvp
def _(primals, tangents, **params):
    outs, t_outs = jvp_flat(lambda *xs: [_product(*xs, **params)], primals, tangents)
    return outs[0], t_outs[0]


@scaled_matmul_p.batch
def _(args, dims, **params):
    """The mapped dimension joins that of the batch."""
    args = all_to_front(args, dims)
    size, batch = args[0].shape[:2]
    out = scaled_matmul_p.bind(*[reshaped(x, (size * batch, *x.shape[2:])) for x in args], **params)
    return reshaped(out, (size, batch, *get_aval(out).shape[1:])), 0


@scaled_matmul_p.lower_on("cuda")
def _(b, *operands, preferred_element_type):
    about = {
        "lhs_batch_dimensions": [0],
        "rhs_batch_dimensions": [0],
        "dequantize_type": element_type(b.out.dtype).upper(),
    }
    text = json.dumps({"scaled_dot_backend_config": about})
    rows = [2, 1, 0]
    return b.custom_call(
        "__op$block_scaled_dot", operands, [b.out], config=quoted(text), api_version=2,
        layouts=([rows] * 4, [rows]),
    )[0]  # fmt: skip
