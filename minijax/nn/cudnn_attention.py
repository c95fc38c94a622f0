"""Attention by cuDNN's fused kernels on NVIDIA's GPUs, which never write the logits to memory.

Source: the custom calls `__cudnn$fmha...` of XLA's GPU compiler and `CudnnfMHABackendConfig`, what they
are told; the forward kernel gives the logarithms of the sums, from which the backward kernel starts.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.custom_batching import custom_vmap
from minijax.custom_derivatives import custom_vjp
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.lax.ffi_calls import ffi_call
from minijax.runtime import gpus

__all__ = ["cudnn_attention"]

_TYPES = {"bfloat16": "BF16", "float16": "F16"}
_MOST_FEATURES = 256
_LEAST = -float(1 << 41)  # of logits that do not count, finite in both dtypes' kernels
_ROWS, _HEADS_FIRST = (0, 1, 2, 3), (0, 2, 1, 3)


class _Settings(NamedTuple):
    """Settings of a kernel, and which operands follow the queries, keys and values."""

    scale: float
    is_causal: bool
    window: int  # how many keys a query sees at most, 0 for all
    with_bias: bool
    with_lengths: bool
    with_sums: bool

    @property
    def mask(self) -> str:
        parts = ["PADDING"] * self.with_lengths + ["CAUSAL"] * self.is_causal
        return "_".join(parts) or "NO_MASK"

    @property
    def target(self) -> str:
        return "__cudnn$fmhaScaleBiasSoftmax" if self.with_bias else "__cudnn$fmhaSoftmax"


def cudnn_attention(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, lengths: Any, scale: Any, is_causal: bool,
    window: tuple[int, int] | None, with_sums: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """The attention of arrays of shape (B, T, N, H), and the logarithms of the sums, (B, T, N), or None.

    The arguments are those of `dot_product_attention`, checked. RuntimeError where there is no cuDNN,
    NotImplementedError and ValueError for dtypes, sizes and windows that it has no kernel for.
    """
    if gpus.cudnn_version() is None:
        raise RuntimeError("cuDNN is not detected: use implementation='xla', or leave it out.")
    dtype, features = query.dtype, query.shape[-1]
    if dtype.name not in _TYPES:
        raise NotImplementedError(
            f"Q must be fp16 or bf16, got {dtype.name}: convert query, key and value, or use "
            "implementation='xla'."
        )
    if features > _MOST_FEATURES or features % 8:
        raise NotImplementedError(
            f"The head dim must be <= {_MOST_FEATURES} and a multiple of 8, but got {features}: pad "
            "it, or use implementation='xla'."
        )
    left, right = window or (None, 0)
    if right and not is_causal:
        raise ValueError(
            f"cuDNN doesn't support right window: {right} when causal mask is not used. Give "
            f"local_window_size=({left}, 0), or use implementation='xla'."
        )
    batch, t, s = query.shape[0], query.shape[1], key.shape[1]
    if mask is not None:
        unseen = jnp.where(mask, jnp.asarray(0, dtype), jnp.asarray(_LEAST, dtype))
        bias = unseen if bias is None else bias + unseen
    if bias is not None:
        bias = jnp.broadcast_to(bias, (*bias.shape[:2], t, s))
    operands = [] if bias is None else [bias]
    if any(length is not None for length in lengths):
        operands += [
            jnp.full(batch, size, np.int32) if length is None else length
            for size, length in zip((t, s), lengths, strict=True)
        ]
    settings = _Settings(
        float(scale), is_causal, 0 if left is None else left + 1, bias is not None,
        len(operands) > (bias is not None), with_sums,
    )  # fmt: skip
    out, *sums = _attention(settings)(query, key, value, *operands)
    return out, (sums[0].astype(dtype) if sums else None)


def _attention(settings: _Settings) -> Any:
    """The attention of these operands, with its derivative."""

    @custom_vjp
    def attend(*operands):
        return _forward(settings, *operands)

    def forward(*operands):
        query, key = operands[:2]
        if query.shape[1] % 2 or key.shape[1] % 2:
            raise NotImplementedError(
                f"Unsupported sequence length Q {query.shape[1]}, KV {key.shape[1]}. cuDNN has "
                "derivatives of even ones: pad them, or use implementation='xla'."
            )
        out, sums = _forward(settings._replace(with_sums=True), *operands)
        return (out, sums)[: 1 + settings.with_sums], (operands, out, sums)

    def backward(kept, cotangents):
        operands, out, sums = kept
        grads = _backward(settings, *operands, out, sums, cotangents[0].astype(out.dtype))
        return (*grads, *[None] * (len(operands) - len(grads)))

    attend.defvjp(forward, backward)
    return attend


# -- the kernels --------------------------------------------------------------------------------------


def _forward(settings: _Settings, *operands: Any) -> Any:
    """The results, and if asked for the logarithms of the sums as float32 of shape (B, T, N)."""

    @custom_vmap
    def call(*operands):
        query, key = operands[:2]
        batch, t, heads, features = query.shape
        config = _config(
            settings, query, key, {"bmm1": _dims(3, 3, 2, 2), "bmm2": _dims(3, 1, 1, 2)}
        )
        wanted = [
            ((batch, heads, t, features), query.dtype),
            ((batch, heads, t), np.dtype("float32")),
        ]
        outs = _kernel(settings.target, config, operands, wanted[: 1 + settings.with_sums])
        return tuple([jnp.swapaxes(out, 1, 2) for out in outs])

    call.def_vmap(_folded(lambda *operands: _forward(settings, *operands)))
    return call(*operands)


def _backward(settings: _Settings, *operands: Any) -> Any:
    """The cotangents of the queries, keys, values, and of the bias if there is one."""

    @custom_vmap
    def call(*operands):
        *given, out, sums, cotangent = operands
        query, key, value = given[:3]
        rest = given[3:]
        dims = {
            "bmm1_grad_gemm1": _dims(2, 1, 1, 2), "bmm1_grad_gemm2": _dims(3, 1, 1, 2),
            "bmm2_grad_gemm1": _dims(2, 1, 1, 2), "bmm2_grad_gemm2": _dims(3, 3, 2, 2),
        }  # fmt: skip
        bias = rest[: settings.with_bias]
        wanted = [
            *[((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype) for x in given[:3]],
            *[(x.shape, x.dtype) for x in bias],
        ]
        grads = _kernel(
            f"{settings.target}Backward", _config(settings, query, key, dims),
            [query, key, value, jnp.swapaxes(sums, 1, 2), cotangent, *bias, out, *rest[len(bias):]],
            wanted, straight=len(bias),
        )  # fmt: skip
        return (*[jnp.swapaxes(x, 1, 2) for x in grads[:3]], *grads[3:])

    call.def_vmap(_folded(lambda *operands: _backward(settings, *operands)))
    return call(*operands)


def _folded(function: Any) -> Any:
    """The rule of a function of batches for mapped ones, whose axis is joined with that of the batch."""

    def rule(size, batched, *operands):
        batch = operands[0].shape[1 if batched[0] else 0]

        def joined(x, is_mapped):
            if not is_mapped:
                x = jnp.broadcast_to(x[None], (size, *x.shape))
            x = jnp.broadcast_to(x, (size, batch, *x.shape[2:]))  # a bias may be that of all
            return x.reshape((size * batch, *x.shape[2:]))

        outs = function(*map(joined, operands, batched))
        outs = [x.reshape((size, batch, *x.shape[1:])) for x in outs]
        if len(outs) > 3:  # the cotangent of a bias
            shared = operands[3].shape[1 if batched[3] else 0] == 1 < batch
            outs[3] = outs[3].sum(1, keepdims=True) if shared else outs[3]
        return tuple(outs), (True,) * len(outs)

    return rule


def _kernel(
    target: str, config: str, operands: Any, wanted: Any, straight: int = 0
) -> tuple[Any, ...]:
    """Call a kernel, whose results are given by shapes and dtypes; there is a workspace for last.

    Results of rank 4 lie as queries do, (B, T, N, H) in memory, but for `straight` ones at the end.
    """
    turned = len(wanted) - straight
    layouts = [
        _HEADS_FIRST if len(shape) == 4 and place < turned else tuple(range(len(shape)))
        for place, (shape, _) in enumerate(wanted)
    ]
    results = [ShapeDtypeStruct(shape, dtype) for shape, dtype in wanted]
    call = ffi_call(
        target, [*results, ShapeDtypeStruct((0,), np.uint8)],
        input_layouts=[tuple(range(x.ndim)) for x in operands], output_layouts=[*layouts, (0,)],
        custom_call_api_version=2, legacy_backend_config=config,
    )  # fmt: skip
    return tuple(call(*operands))[:-1]


def _dims(left: int, right: int, left_batch: int, right_batch: int) -> dict[str, list[str]]:
    """A product's contracted and batch dimensions, as XLA writes them; axis 0 is of the batch."""
    return {
        "lhs_contracting_dimensions": [str(left)], "rhs_contracting_dimensions": [str(right)],
        "lhs_batch_dimensions": ["0", str(left_batch)],
        "rhs_batch_dimensions": ["0", str(right_batch)],
    }  # fmt: skip


def _config(settings: _Settings, query: Any, key: Any, products: dict[str, Any]) -> str:
    """The settings as JSON, with the defaults of XLA's message."""
    batch, t, heads, _ = query.shape
    invalid = "PRIMITIVE_TYPE_INVALID"
    layout = {
        "dim_level_types": [], "dim_unique": [], "dim_ordered": [],
        "minor_to_major": ["3", "2", "1", "0"], "tiles": [], "element_size_in_bits": "0",
        "memory_space": "0", "index_primitive_type": invalid, "pointer_primitive_type": invalid,
        "dynamic_shape_metadata_prefix_bytes": "0",
    }  # fmt: skip
    config = {
        "algorithm": {
            "algo_id": "0", "math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True, "workspace_size": "0",
        },
        "fmha_scale": settings.scale,
        "intermediate_tensor_shape": {
            "element_type": _TYPES[query.dtype.name],
            "dimensions": [str(size) for size in (batch, heads, t, key.shape[1])],
            "tuple_shapes": [], "layout": layout, "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": settings.mask,
        **{f"{name}_dot_dimension_numbers": dims for name, dims in products.items()},
        "dropout_rate": 0.0, "seed": 42, "sliding_window_length": settings.window,
        "max_seg_per_batch": 1, "is_paged_attention": False,
    }  # fmt: skip
    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": config})
