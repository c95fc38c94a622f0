"""`minijax.experimental.rnn`: LSTMs of several layers, in one direction or both.

Weights lie in one array, in cuDNN's order: for each layer and direction W_ih and W_hh, and after
all of those for each b_ih and b_hh; each has the rows of the gates i, f, g and o. Upstream calls
cuDNN's kernel; here the same is computed by a scan over time on any platform. Source:
https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

from minijax import numpy as jnp
from minijax import random
from minijax.arguments.functions import check_at_most
from minijax.core.array import Array
from minijax.lax.control_flow import scan
from minijax.lax.precision import PrecisionLike
from minijax.nn import sigmoid
from minijax.numpy.promotion import check_arraylike
from minijax.tracebacks import public

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates",
    "unpack_lstm_weights",
]  # fmt: skip

Weights = dict[int, Array]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Return for each part of the weights which of W_ih, W_hh, b_ih, b_hh it is of, and its shape."""
    check_at_most("the number of layers", operator.index(num_layers), 1 << 16)
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        size = hidden_size * directions if layer else input_size
        for _ in range(directions):
            yield 0, (4 * hidden_size, size)
            yield 1, (4 * hidden_size, hidden_size)
    for _ in range(num_layers * directions):
        yield 2, (4 * hidden_size,)
        yield 3, (4 * hidden_size,)


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """The number of weights."""
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum([math.prod(shape) for _, shape in shapes])


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Weights drawn uniformly between -k and k, with k = sqrt(1 / hidden_size)."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = math.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, minval=-k, maxval=k)


def _parts(weights: Array, *sizes: Any) -> Iterator[tuple[int, Array]]:
    check_arraylike("weights of an LSTM", weights)
    if not hasattr(weights, "shape"):
        raise TypeError(f"weights of an LSTM are an array of one dimension; got {weights!r}.")
    weights = jnp.asarray(weights)
    start = 0
    for kind, shape in _shapes(*sizes):
        count = math.prod(shape)
        yield kind, weights[start : start + count].reshape(shape)
        start += count


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """W_ih, W_hh, b_ih and b_hh, each by the number of the layer and direction."""
    found: tuple[Weights, ...] = ({}, {}, {}, {})
    for kind, part in _parts(weights, input_size, hidden_size, num_layers, bidirectional):
        found[kind][len(found[kind])] = part
    return found


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """The weights with the last two of the four gates exchanged, as other libraries want them."""
    swapped = []
    for _, part in _parts(weights, input_size, hidden_size, num_layers, bidirectional):
        one, two, three, four = jnp.split(part, 4)
        swapped += [x.reshape(-1) for x in (one, two, four, three)]
    return jnp.concatenate(swapped)


def _reversed_within(x: Array, lengths: Array) -> Array:
    """The first `lengths[b]` rows of each sequence from last to first; x is (time, batch, size)."""
    places = (lengths - 1 - jnp.arange(x.shape[0])[:, None]) % x.shape[0]
    return jnp.take_along_axis(x, places[:, :, None], axis=0)


def _layer(x, h, c, weights, lengths):
    """One layer in one direction: the outputs, and the last states of each sequence."""
    w_ih, w_hh, b_ih, b_hh = weights

    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), (h, c)

    _, (hs, cs) = scan(step, (h, c), x)
    batch = jnp.arange(x.shape[1])
    inside = jnp.arange(x.shape[0])[:, None] < lengths
    last = lengths - 1, batch
    return jnp.where(inside[:, :, None], hs, 0), hs[last], cs[last]


def lstm_ref(
    x: Array, h_0: Array, c_0: Array, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights,
    seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int, dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The outputs y, and the last states h_n and c_n.

    - x: (batch, time, input_size); seq_lengths: (batch,), what lies beyond them is left out
    - h_0, c_0: (layers times directions, batch, hidden_size), and h_n, c_n alike
    - y: (batch, time, hidden_size times directions), zero beyond the end of a sequence

    NotImplementedError for a dropout other than zero.
    """
    if dropout != 0.0:
        raise NotImplementedError(
            "Dropout not supported in LSTM reference because we cannot determine CUDNN dropout mask: "
            f"got dropout={dropout}."
        )
    directions = 2 if bidirectional else 1
    y = jnp.swapaxes(x, 0, 1)
    h_n, c_n = [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            n = layer * directions + direction
            weights = W_ih[n], W_hh[n], b_ih[n], b_hh[n]
            given = _reversed_within(y, seq_lengths) if direction else y
            out, h, c = _layer(given, h_0[n], c_0[n], weights, seq_lengths)
            outs.append(_reversed_within(out, seq_lengths) if direction else out)
            h_n.append(h)
            c_n.append(c)
        y = jnp.concatenate(outs, axis=-1)
    return jnp.swapaxes(y, 0, 1), jnp.stack(h_n), jnp.stack(c_n)


def lstm(
    x: Array, h_0: Array, c_0: Array, weights: Array, seq_lengths: Array, input_size: int,
    hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision: PrecisionLike = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """An LSTM whose weights lie in one array; arguments and results are those of `lstm_ref`.

    It runs on all platforms, by a scan, and no kernel of cuDNN is called; `precision` has no effect.
    NotImplementedError for a dropout other than zero.
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(
        x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout,
        bidirectional,
    )  # fmt: skip


__dir__ = public(__name__)
