"""Attention by cuDNN's kernels: the calls that are lowered for a GPU, beside upstream's."""

import functools
import json
import re

import jax
import jax._src.cudnn.fused_attention_stablehlo as their_kernels
import numpy as np
import pytest

import minijax
from minijax.nn import cudnn_attention

Q = K = V = ((2, 128, 4, 64), "bfloat16")
BIAS, MASK, LENGTHS = ((2, 4, 128, 128), "bfloat16"), ((2, 4, 128, 128), "bool"), ((2,), "int32")


@pytest.fixture(autouse=True)
def cudnn(monkeypatch):
    """A cuDNN that both libraries believe to be there."""
    monkeypatch.setattr(cudnn_attention.gpus, "cudnn_version", lambda: 91002)
    monkeypatch.setattr(their_kernels, "check_cudnn_version", lambda *args, **kwargs: 91002)
    monkeypatch.setattr(their_kernels, "is_cuda_compute_capability_equal", lambda *args: False)


def lowered(m, function, types):
    structs = [m.ShapeDtypeStruct(*pair) for pair in types]
    traced = m.jit(functools.partial(function, m)).trace(*structs)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


def calls(m, function, types):
    """Targets, settings, layouts and types of the kernels' calls."""
    found = []
    for line in lowered(m, function, types).splitlines():
        if "__cudnn" in line:
            config = re.search(r'backend_config = "(.*?)"(?:,|\})', line)[1]
            found.append((
                re.search(r"__cudnn\$\w+", line)[0],
                json.loads(config.replace("\\22", '"')),
                re.findall(r"dense<(\[?[\d, ]*\]?)> : tensor<\dxindex>", line),
                line.split(" : (")[-1],
            ))  # fmt: skip
    return found


def attention(m, *args, **params):
    return m.nn.dot_product_attention(*args, implementation="cudnn", **params)


def with_bias(m, q, k, v, bias):
    return attention(m, q, k, v, bias=bias)


def with_mask(m, q, k, v, mask):
    return attention(m, q, k, v, mask=mask)


def with_lengths(m, q, k, v, a, b, **params):
    return attention(m, q, k, v, query_seq_lengths=a, key_value_seq_lengths=b, **params)


def grad(function, places=(0, 1, 2)):
    def run(m, *args):
        def total(*args):
            return m.tree.leaves(function(m, *args))[0].astype("float32").sum()

        return m.grad(total, places)(*args)

    return run


def mapped(function, axes=0):
    return lambda m, *args: m.vmap(functools.partial(function, m), axes)(*args)


def partial(**params):
    return functools.partial(attention, **params)


def sized(dtype="bfloat16", t=128, s=128, kv_heads=4, features=64):
    kv = ((2, s, kv_heads, features), dtype)
    return ((2, t, 4, features), dtype), kv, kv


def more(*types):
    return [((3, *shape), dtype) for shape, dtype in types]


PROGRAMS = {
    "forward": (attention, Q, K, V),
    "three dimensions": (attention, *[(shape[1:], dtype) for shape, dtype in (Q, K, V)]),
    "derivative": (grad(attention), Q, K, V),
    "scale": (partial(scale=3.0), Q, K, V),
    "float16": (grad(attention), *sized("float16")),
    "causal": (grad(partial(is_causal=True)), Q, K, V),
    "fewer heads": (grad(attention), *sized(kv_heads=2)),
    "odd lengths": (attention, *sized(t=77, s=33)),
    "bias": (grad(with_bias, (0, 1, 2, 3)), Q, K, V, BIAS),
    "bias of all": (grad(with_bias, (0, 3)), Q, K, V, ((1, 4, 128, 128), "bfloat16")),
    "bias of all heads": (grad(with_bias, (0, 3)), Q, K, V, ((2, 1, 128, 128), "bfloat16")),
    "wide bias": (with_bias, Q, K, V, ((2, 4, 128, 128), "float32")),
    "mask": (grad(with_mask, 0), Q, K, V, MASK),
    "mask of all": (with_mask, Q, K, V, ((1, 1, 128, 128), "bool")),
    "mask and bias": (lambda m, q, k, v, b, x: attention(m, q, k, v, b, x), Q, K, V, BIAS, MASK),
    "lengths": (grad(with_lengths, 0), Q, K, V, LENGTHS, LENGTHS),
    "lengths of queries": (lambda m, q, k, v, a: with_lengths(m, q, k, v, a, None), Q, K, V, LENGTHS),
    "lengths of keys": (
        lambda m, q, k, v, b: with_lengths(m, q, k, v, None, b, is_causal=True), Q, K, V, LENGTHS,
    ),
    "residual": (partial(return_residual=True), Q, K, V),
    "residual, derivative": (grad(partial(return_residual=True)), Q, K, V),
    **{
        f"window {window}": (partial(local_window_size=window, is_causal=True), Q, K, V)
        for window in (16, (16, 0), (16, 4))
    },
    "window without mask": (partial(local_window_size=(16, 0)), Q, K, V),
    "vmap": (mapped(attention), *more(Q, K, V)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls(name):
    function, *types = PROGRAMS[name]
    theirs = calls(jax, function, types)
    assert theirs and calls(minijax, function, types) == theirs


# Programs that upstream refuses: the shapes of their results.
BEYOND = {
    "vmap of queries": (mapped(attention, (0, None, None)), *more(Q), K, V),
    "vmap of a derivative": (mapped(grad(with_bias, (0, 3))), *more(Q, K, V, BIAS)),
    "vmap of a shared bias": (
        mapped(grad(with_bias, (0, 3))), *more(Q, K, V, ((1, 4, 128, 128), "bfloat16")),
    ),
    "bias of rows": (grad(with_bias, (0, 3)), Q, K, V, ((1, 1, 1, 128), "bfloat16")),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_upstream(name):
    function, *types = BEYOND[name]
    structs = [minijax.ShapeDtypeStruct(*pair) for pair in types]
    outs = minijax.tree.leaves(minijax.eval_shape(functools.partial(function, minijax), *structs))
    wanted = [types[0], types[3]] if len(outs) > 1 else [types[0]]
    assert [(out.shape, out.dtype.name) for out in outs] == wanted
    assert calls(minijax, function, types)


REFUSED = {
    "float32": (NotImplementedError, attention, *sized("float32")),
    "features": (NotImplementedError, attention, *sized(features=100)),
    "many features": (NotImplementedError, attention, *sized(features=264)),
    "odd lengths": (NotImplementedError, grad(attention), *sized(t=77, s=33)),
    "window to the right": (ValueError, partial(local_window_size=16), Q, K, V),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    error, function, *types = REFUSED[name]
    for m in (minijax, jax):
        with pytest.raises(error):
            lowered(m, function, types)


def test_without_cudnn(monkeypatch):
    monkeypatch.setattr(cudnn_attention.gpus, "cudnn_version", lambda: None)
    with pytest.raises(RuntimeError, match="cuDNN is not detected"):
        attention(minijax, *[np.zeros(*pair) for pair in sized("float32")])
