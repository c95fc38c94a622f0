"""Attention by scaled dot products. Letters for sizes: B batch, T queries, S keys, N heads of
queries, K heads of keys (a divisor of N), G = N / K heads of queries for one of keys, H features
of a head.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.nn.cudnn_attention import cudnn_attention
from minijax.nn.normalizing import logsumexp, softmax
from minijax.runtime.platforms import default_backend
from minijax.typing import ArrayLike

__all__ = ["dot_product_attention"]

_PRECISIONS = {
    "float16": lax.DotAlgorithmPreset.F16_F16_F32,
    "bfloat16": lax.DotAlgorithmPreset.BF16_BF16_F32,
}


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
@library(
    static=("is_causal", "local_window_size", "implementation", "return_residual"),
    converted=("is_causal", "return_residual"),
)
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Compute `softmax(scale * query @ key.T + bias) @ value` for each head.

    - `query`: floats of shape (B, T, N, H) or (T, N, H); `key`, `value`: (B, S, K, H) or (S, K, H)
    - `bias`, boolean `mask` (True where a query sees a key): broadcastable to shape (B, N, T, S)
    - `scale`: 1 / sqrt(H) by default; `is_causal`: whether queries see no later keys
    - `query_seq_lengths`, `key_value_seq_lengths`: numbers of valid rows, int32 of shape (B,)
    - `local_window_size`: how far a query sees, a number or a pair (left, right)
    - `return_residual`: whether to return the logsumexp of the logits too
    - `implementation`: "cudnn" for NVIDIA's kernels, which take 16 bits and keep no logits

    K divides N. The result is like `query`. ValueError for misfits, RuntimeError without cuDNN.
    Source: Vaswani et al., arXiv:1706.03762; Ainslie et al., arXiv:2305.13245 (grouped heads).

    >>> nn.dot_product_attention(*[jnp.ones((4, 2, 8))] * 3).shape
    (4, 2, 8)
    """
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    out_shape = query.shape
    bias = None if bias is None else jnp.asarray(bias)
    mask = None if mask is None else jnp.asarray(mask)
    lengths = [
        None if x is None else jnp.asarray(x) for x in (query_seq_lengths, key_value_seq_lengths)
    ]
    query, key, value = (_at_rank_4(x) for x in (query, key, value))
    bias, mask = (None if x is None else _at_rank_4(x) for x in (bias, mask))
    _check(query, key, value, bias, mask, lengths)
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(
            f"Unsupported implementation option: {implementation}. Give 'xla', 'cudnn' or None."
        )
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    scale = 1.0 / np.sqrt(query.shape[-1]) if scale is None else scale
    if implementation == "cudnn":
        out, residual = cudnn_attention(
            query, key, value, bias, mask, lengths, scale, is_causal, local_window_size,
            return_residual,
        )  # fmt: skip
    else:
        seen = _seen(query, key, mask, is_causal, local_window_size, lengths)
        out, residual = _attend(query, key, value, bias, seen, scale, return_residual)
    if lengths[0] is not None:
        inside = jnp.arange(query.shape[1])[None, :] < lengths[0][:, None]
        out = out * jnp.reshape(inside, inside.shape + (1,) * (out.ndim - 2)).astype(out.dtype)
    out = jnp.reshape(out, out_shape)
    return (out, jnp.reshape(residual, out_shape[:-1])) if return_residual else out


def _at_rank_4(x: Any) -> Any:
    return x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x


def _check(query, key, value, bias, mask, lengths) -> None:
    batch, _, heads, features = query.shape
    kv_heads = key.shape[2]
    rows = [
        ("key", key, (batch, None, kv_heads, features), query.dtype),
        ("value", value, (batch, key.shape[1], kv_heads, features), query.dtype),
        ("query_seq_lengths", lengths[0], (batch,), np.dtype(np.int32)),
        ("key_value_seq_lengths", lengths[1], (batch,), np.dtype(np.int32)),
        ("bias", bias, (None,) * 4, None),
        ("mask", mask, (None,) * 4, np.dtype(np.bool_)),
    ]
    for name, x, shape, dtype in rows:
        if x is None:
            continue
        if x.ndim != len(shape):
            raise ValueError(f"{name} ndim should be {len(shape)}, but got {x.ndim}")
        if dtype is not None and x.dtype != dtype:
            raise ValueError(f"{name} dtype should be {dtype.name}, but got {x.dtype.name}")
        if any(want not in (None, size) for want, size in zip(shape, x.shape, strict=True)):
            wanted = ["?" if size is None else size for size in shape]
            raise ValueError(f"{name} shape should be {wanted}: but got {x.shape}")
    if heads % kv_heads:
        raise ValueError(
            "The number of query heads must be a multiple of key/value heads, but got "
            f"{heads} vs {kv_heads}"
        )
    wanted = (batch, heads, query.shape[1], key.shape[1])
    for name, x, operation in (("bias", bias, "add"), ("mask", mask, "and")):
        if x is not None and any(s not in (1, w) for s, w in zip(x.shape, wanted, strict=True)):
            raise TypeError(
                f"{operation} got incompatible shapes for broadcasting: {wanted}, {x.shape}. The "
                f"{name} must broadcast to the first."
            )


def _seen(query, key, mask, is_causal, window, lengths) -> Any:
    """Return which logits count: a mask of rank 4, or None for all."""
    queries = jnp.arange(query.shape[1])[:, None]
    keys = jnp.arange(key.shape[1])[None, :]
    parts = [] if mask is None else [mask]
    if is_causal:
        parts.append((queries >= keys)[None, None])
    if window is not None:
        left, right = window
        parts.append(((queries <= keys + left) & (queries >= keys - right))[None, None])
    if lengths[0] is not None:
        parts.append((queries < lengths[0][:, None, None])[:, None])
    if lengths[1] is not None:
        parts.append((keys < lengths[1][:, None, None])[:, None])
    seen = None
    for part in parts:
        seen = part if seen is None else jnp.logical_and(seen, part)
    return seen


def _grouped(x: Any, kv_heads: int, is_grouped: bool) -> Any:
    """(B, N, T, S) as (B, K, T, G, S), where heads are grouped; an axis of size one stays one."""
    if not is_grouped:
        return x
    batch, heads, t, s = x.shape
    split = (1, 1) if heads == 1 else (kv_heads, heads // kv_heads)
    return jnp.transpose(jnp.reshape(x, (batch, *split, t, s)), (0, 1, 3, 2, 4))


def _precision(dtype: str) -> Any:
    """Return how products of this dtype are added up. XLA has no such name for float16 on a CPU,
    where `preferred_element_type` alone says the same.
    """
    if dtype == "float16" and default_backend() == "cpu":
        return None
    return _PRECISIONS.get(dtype)


def _attend(query, key, value, bias, seen, scale, with_residual) -> tuple[Any, Any]:
    batch, t, heads, features = query.shape
    kv_heads = key.shape[2]
    # An axis of groups of one head would make XLA copy the logits.
    is_grouped = heads != kv_heads
    if is_grouped:
        query = jnp.reshape(query, (batch, t, kv_heads, heads // kv_heads, features))
    last = query.ndim - 1
    wide = jnp.promote_types(query.dtype, np.float32)
    logits = lax.dot_general(
        query, key, (((last,), (3,)), ((0, 2), (0, 2))),
        precision=_precision(query.dtype.name), preferred_element_type=wide,
    )  # (B, K, T, S), with G before S if there are groups  # fmt: skip
    logits = logits * jnp.asarray(scale, wide)
    if bias is not None:
        logits = (logits + _grouped(bias, kv_heads, is_grouped)).astype(logits.dtype)
    if seen is not None:
        # A large finite number: a row with nothing to see stays free of nan.
        least = np.asarray(-0.7 * float(np.finfo(np.float32).max), wide)
        logits = jnp.where(_grouped(seen, kv_heads, is_grouped), logits, least)
    logits = logits.astype(np.float32)
    probabilities = softmax(logits).astype(key.dtype)
    out = lax.dot_general(
        probabilities, value, (((last,), (1,)), ((0, 1), (0, 2))), preferred_element_type=key.dtype
    )
    out = jnp.swapaxes(out, 1, 2)  # (B, T, K, G, H), or without groups (B, T, N, H)
    if not with_residual:
        return out, None
    residual = lax.stop_gradient(logsumexp(logits, axis=-1))
    return out, jnp.swapaxes(residual, 1, 2).astype(key.dtype)
