"""Products of matrices in block-scaled low precision.

A block of numbers along the contracted axis shares one scale; the formats are mxfp8 and mxfp4's kin
of the OCP "Microscaling Formats" specification 1.0, and NVIDIA's nvfp4. NVIDIA's GPUs compute with
them; elsewhere they are scaled and multiplied in float32.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_vjp import custom_vjp
from minijax.features.library import library
from minijax.lax.block_scaled import scaled_matmul_p
from minijax.lax.casts import varying_alike
from minijax.transforms.grad import vjp
from minijax.typing import DTypeLike

__all__ = [
    "BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul",
]  # fmt: skip


@dataclasses.dataclass
class BlockScaleConfig:
    """The quantization of one operand: the dtypes of numbers and scales, and numbers to a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """Return how `scaled_dot_general` quantizes an operand.

    - `mode`: "mxfp8" or "nvfp4"
    - `global_scale`: scalar array, for "nvfp4" only

    The result is a configuration with the block's size and the dtypes of data and scales.
    ValueError for another mode.
    Source: Open Compute Project, Microscaling Formats (2023).

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        one = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, one, False
        )
    if mode == "mxfp8":
        return BlockScaleConfig(
            mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False
        )
    raise ValueError(f"Unsupported mode: {mode}. Give 'nvfp4' or 'mxfp8'.")


@library(static=("preferred_element_type",))
def scaled_matmul(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    rhs_scales: Array,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Multiply stacks of matrices whose blocks along the contracting dimension have scales.

    - `lhs`, `rhs`: arrays of shapes (B, M, K) and (B, N, K)
    - `lhs_scales`, `rhs_scales`: arrays of shapes (B, M, K / block) and (B, N, K / block)
    - `preferred_element_type`: dtype of the result

    The result has shape (B, M, N). ValueError for other ranks or sizes.
    Source: Open Compute Project, Microscaling Formats (2023).

    >>> x, scales = jnp.ones((1, 2, 4)), jnp.ones((1, 2, 2))
    >>> nn.scaled_matmul(x, x, scales, scales)
    Array([[[4., 4.],
            [4., 4.]]], dtype=float32)
    """
    operands = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    lhs, rhs, lhs_scales, rhs_scales = operands
    if any(x.ndim != 3 for x in operands):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    for what, a, b in (("inputs a and b", lhs, rhs), ("scales", lhs_scales, rhs_scales)):
        if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
            raise ValueError(
                f"scaled_matmul requires {what} to have matching batch (B) and contract (K) "
                f"dimensions, but got shapes {a.shape} and {b.shape}"
            )
    for x, scales in ((lhs, lhs_scales), (rhs, rhs_scales)):
        if x.shape[:2] != scales.shape[:2] or not scales.shape[2] or x.shape[2] % scales.shape[2]:
            raise ValueError(
                "scaled_matmul requires scales of shape (B, M, K / block) for operands of shape "
                f"(B, M, K), but got {scales.shape} for {x.shape}"
            )
    return scaled_matmul_p.bind(*operands, preferred_element_type=np.dtype(preferred_element_type))


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """Multiply two arrays that are first quantized in blocks.

    - `lhs`, `rhs`, `dimension_numbers`: as in `lax.dot_general`
    - `preferred_element_type`: dtype of the result
    - `configs`: configurations of lhs, rhs and the cotangent; without them this is
      `lax.dot_general`
    - `implementation`: ignored

    Derivatives are products that are quantized likewise, each along what it contracts; for "nvfp4"
    they are not, and zero where numbers were cut off. TypeError for misfits.
    Source: Open Compute Project, Microscaling Formats (2023).

    >>> dims = (((1,), (1,)), ((), ()))
    >>> nn.scaled_dot_general(jnp.ones((2, 32)), jnp.ones((3, 32)), dims).shape
    (2, 3)
    """
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    if configs is None:
        return lax.dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=np.dtype(preferred_element_type)
        )
    dtype = np.dtype(preferred_element_type)
    if dtype.name not in ("float32", "bfloat16", "float16"):
        raise ValueError(
            "scaled_dot_general: preferred_element_type must be float32, bfloat16 or float16; got "
            f"{dtype.name}."
        )
    if (
        not isinstance(configs, (list, tuple))
        or len(configs) < 2
        or not all(isinstance(config, BlockScaleConfig) for config in configs)
    ):
        raise TypeError(
            "scaled_dot_general: configs is a list of configurations of lhs, rhs and the cotangent, "
            f"made by get_scaled_dot_general_config; got {configs!r}."
        )
    numbers = tuple(tuple(tuple(axes) for axes in pair) for pair in dimension_numbers)

    @custom_vjp
    def product(x, y):
        return _quantized_dot(x, y, numbers, dtype, configs[0], configs[1])

    def forward(x, y):
        return product(x, y), (x, y)

    def backward(saved, ct):
        return _cotangents(saved, ct, numbers, dtype, configs)

    product.defvjp(forward, backward)
    return product(*varying_alike((lhs, rhs)))


def _cotangents(operands: tuple, ct: Any, numbers: Any, dtype: Any, configs: list) -> tuple:
    """Cotangents of both operands, by products that are quantized as the forward one.

    They are not if the cotangent has no configuration, or that of nvfp4, whose range is too small,
    nor if what is contracted is not made of whole blocks.
    """

    def exact():
        product = lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=dtype)
        return vjp(product, *operands)[1](ct)

    if len(configs) < 3 or configs[2].mode == "nvfp4":
        return tuple(map(_within_range, exact(), operands, configs))
    free = [_free_axes(z, *axes) for z, *axes in zip(operands, *numbers, strict=True)]
    out = []
    for this, that in ((0, 1), (1, 0)):
        sizes = [operands[that].shape[axis] for axis in free[that]]
        blocks = (configs[2].block_size, configs[that].block_size)
        if any(int(np.prod(sizes, dtype=int)) % block for block in blocks):
            out.append(exact()[this])
            continue
        contract, batch, lead = numbers[0][this], numbers[1][this], len(numbers[1][0])
        start = lead + (len(free[0]) if that else 0)
        summed = (tuple(range(start, start + len(free[that]))), free[that])
        both = (tuple(range(lead)), numbers[1][that])
        found = _quantized_dot(ct, operands[that], (summed, both), dtype, configs[2], configs[that])
        pairs = sorted(zip(numbers[0][that], contract, strict=True))
        axes = (*batch, *free[this], *(axis for _, axis in pairs))
        out.append(jnp.transpose(found, np.argsort(axes)).astype(operands[this].dtype))
    return tuple(out)


def _within_range(ct: Any, x: Any, config: BlockScaleConfig) -> Any:
    """A cotangent, zero where an operand is beyond the largest number that nvfp4 has."""
    if config.mode != "nvfp4":
        return ct
    largest = [float(ml_dtypes.finfo(kind).max) for kind in (config.data_type, config.scale_type)]
    bound = jnp.asarray(config.global_scale, np.float32).reshape(()) * np.float32(np.prod(largest))
    return jnp.where(jnp.abs(x).astype(np.float32) <= bound, ct, jnp.zeros((), ct.dtype))


def _free_axes(x: Any, contract: tuple, batch: tuple) -> tuple[int, ...]:
    return tuple(axis for axis in range(x.ndim) if axis not in contract and axis not in batch)


def _quantized_dot(x, y, numbers, dtype, x_config, y_config) -> Any:
    (x_contract, y_contract), (x_batch, y_batch) = numbers
    x3, x_free = _as_rows(x, x_contract, x_batch)
    y3, y_free = _as_rows(y, y_contract, y_batch)
    qx, sx = _quantize(x3, x_config)
    qy, sy = _quantize(y3, y_config)
    out = scaled_matmul(qx, qy, sx, sy, preferred_element_type=np.dtype(np.float32))
    for config in (x_config, y_config):
        if config.mode == "nvfp4":
            out = out * jnp.asarray(config.global_scale, np.float32).reshape(())
    batch = tuple(x.shape[axis] for axis in x_batch)
    return jnp.reshape(out, (*batch, *x_free, *y_free)).astype(dtype)


def _as_rows(x: Any, contract: tuple, batch: tuple) -> tuple[Any, tuple[int, ...]]:
    """(B, M, K) of an operand, and the sizes of its free axes."""
    free = _free_axes(x, contract, batch)
    moved = jnp.transpose(x, (*batch, *free, *contract))
    sizes = [
        int(np.prod([x.shape[a] for a in axes], dtype=int)) for axes in (batch, free, contract)
    ]
    return jnp.reshape(moved, sizes), tuple(x.shape[axis] for axis in free)


def _quantize(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """Numbers and scales of blocks along the last axis."""
    if x.shape[-1] % config.block_size:
        raise ValueError(
            f"scaled_dot_general: the contracted size {x.shape[-1]} must be a multiple of the "
            f"block size {config.block_size} of {config.mode}."
        )
    blocks = jnp.reshape(x.astype(np.float32), (*x.shape[:-1], -1, config.block_size))
    largest = float(ml_dtypes.finfo(config.data_type).max)
    peak = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True)
    if config.mode == "nvfp4":
        whole = jnp.asarray(config.global_scale, np.float32).reshape(())
        top = float(ml_dtypes.finfo(config.scale_type).max)
        scales = jnp.clip(peak / largest / whole, 0, top).astype(config.scale_type)
        divisor = scales.astype(np.float32) * whole
    else:
        scales = _power_of_two_above(peak / largest)
        divisor = scales
    divisor = jnp.where(divisor == 0, np.float32(1), divisor)
    out = jnp.clip(blocks / divisor, -largest, largest).astype(config.data_type)
    return jnp.reshape(out, x.shape), scales[..., 0].astype(config.scale_type)


def _power_of_two_above(x: Any) -> Any:
    """The smallest power of two that is not less, for float32 numbers, and at least 2**-127."""
    bits = lax.bitcast_convert_type(x, np.dtype(np.uint32))
    exponent, fraction = bits >> 23, bits & np.uint32(0x7FFFFF)
    half = (exponent == 0) & (fraction <= 0x400000)
    up = (fraction > 0) & (exponent != 254) & ~half
    exponent = jnp.where(up, exponent + 1, exponent)
    power = lax.bitcast_convert_type(exponent << 23, np.dtype(np.float32))
    return jnp.where(exponent == 0, np.float32(2.0**-127), power)
