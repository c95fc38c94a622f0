"""`minijax.example_libraries.stax`: layers of neural networks as pairs of functions.

A layer is `(init_fun, apply_fun)`: `init_fun(rng, input_shape) -> (output_shape, params)` and
`apply_fun(params, inputs, **kwargs)`, where `rng=` is a key for layers that are random. New
programs will want a library made for the purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax, random
from minijax import numpy as jnp
from minijax.arguments.functions import check_at_most
from minijax.errors import check_arguments_of
from minijax.features.stages.struct import ShapeDtypeStruct, eval_shape
from minijax.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from minijax.nn.initializers import glorot_normal, normal, ones, zeros
from minijax.tracebacks import public

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
    "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel",
    "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]  # fmt: skip

Layer = tuple[Callable, Callable]
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax


def _shape(fun: Callable, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of what a function of arrays of these shapes gives."""
    return eval_shape(fun, *[ShapeDtypeStruct(tuple(s), jnp.float32) for s in shapes]).shape


# -- layers with parameters -----------------------------------------------------------------------


def Dense(out_dim: int, W_init: Callable | None = None, b_init: Callable | None = None) -> Layer:
    """Times a matrix, plus a vector: the last axis becomes `out_dim`. Parameters `(W, b)`."""
    W_init = glorot_normal() if W_init is None else W_init
    b_init = normal() if b_init is None else b_init

    def init_fun(rng, input_shape):
        key_w, key_b = random.split(rng)
        *batch, size = input_shape
        W = W_init(key_w, (size, out_dim))
        return (*batch, out_dim), (W, b_init(key_b, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(
    apply: Callable, dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None, padding: str, W_init: Callable | None, b_init: Callable | None,
) -> Layer:  # fmt: skip
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    if not all(isinstance(spec, str) for spec in (lhs_spec, rhs_spec, out_spec)):
        raise TypeError(f"dimension_numbers must be three strings; got {dimension_numbers!r}.")
    strides = strides or (1,) * len(filter_shape)
    if W_init is None:
        W_init = glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    b_init = normal(1e-6) if b_init is None else b_init

    def run(inputs, W):
        return apply(inputs, W, strides, padding, dimension_numbers=dimension_numbers)

    def init_fun(rng, input_shape):
        if len(input_shape) != len(lhs_spec):
            raise ValueError(f"input_shape must have {len(lhs_spec)} sizes; got {input_shape}.")
        spatial = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel = [channels[c] if c in channels else next(spatial) for c in rhs_spec]
        key_w, key_b = random.split(rng)
        W = W_init(key_w, kernel)
        b = b_init(key_b, tuple([out_chan if c == "C" else 1 for c in out_spec]))
        return _shape(run, input_shape, kernel), (W, b)

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return run(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None = None, padding: str = "VALID", W_init: Callable | None = None,
    b_init: Callable | None = None,
) -> Layer:  # fmt: skip
    """A convolution, plus a number for each channel. `filter_shape` has the spatial sizes."""
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding,
        W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None = None, padding: str = "VALID", W_init: Callable | None = None,
    b_init: Callable | None = None,
) -> Layer:  # fmt: skip
    """A transposed convolution, plus a number for each channel."""
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding,
        W_init, b_init,
    )  # fmt: skip


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
    scale: bool = True, beta_init: Callable = zeros, gamma_init: Callable = ones,
) -> Layer:  # fmt: skip
    """Normalized over some axes, then scaled by `gamma` and shifted by `beta` over the others."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple([size for i, size in enumerate(input_shape) if i not in axes])
        key_beta, key_gamma = random.split(rng)
        beta = beta_init(key_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(key_gamma, shape) if scale else ())

    def apply_fun(params, inputs, **kwargs):
        beta, gamma = params
        spread = [i for i in range(jnp.ndim(inputs)) if i in axes]
        out = standardize(inputs, axes, epsilon=epsilon)
        out = out * jnp.expand_dims(gamma, spread) if scale else out
        return out + jnp.expand_dims(beta, spread) if center else out

    return init_fun, apply_fun


# -- layers without -------------------------------------------------------------------------------


def _plain(apply: Callable, shape: Callable = lambda s: s) -> Layer:
    return (lambda rng, s: (shape(s), ())), (lambda params, inputs, **kwargs: apply(inputs))


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A function of each element."""
    return _plain(lambda x: fun(x, **fun_kwargs))


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu = elementwise(softplus), elementwise(sigmoid), elementwise(elu)
LeakyRelu, Selu, Gelu = elementwise(leaky_relu), elementwise(selu), elementwise(gelu)

Identity = _plain(lambda x: x)


def _product(sizes: Sequence[int]) -> int:
    return functools.reduce(lambda a, b: a * b, sizes, 1)


Flatten = _plain(
    lambda x: jnp.reshape(x, (x.shape[0], -1)), lambda shape: (shape[0], _product(shape[1:]))
)


def _pooling(reduce: Callable, rescale: Callable | None = None) -> Callable[..., Layer]:
    def layer(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:  # fmt: skip
        """Reduces windows of the spatial axes. `spec` names the axes: "NHWC" by default."""
        check_at_most("the number of axes", len(window_shape), 1024)
        places = spec or f"N{'.' * len(window_shape)}C"
        spatial = sum(c not in "NC" for c in places)
        if len(window_shape) != spatial or len(strides or window_shape) != spatial:
            raise ValueError(
                f"window_shape and strides must have a size for each of {spatial} spatial axes; got "
                f"{window_shape} and {strides}."
            )
        sizes, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
        window = tuple([1 if c in "NC" else next(sizes) for c in places])
        strides_all = tuple([1 if c in "NC" else next(steps) for c in places])

        def run(x):
            out = reduce(x, window, strides_all, padding)
            return out if rescale is None else rescale(out, x, window, strides_all, padding)

        return _plain(run, lambda shape: _shape(run, shape))

    return layer


def _sums(x: Any, *windows: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, *windows)


def _means(out: Any, x: Any, *windows: Any) -> Any:
    return out / _sums(jnp.ones_like(x), *windows)


MaxPool = _pooling(lambda x, *windows: lax.reduce_window(x, -jnp.inf, lax.max, *windows))
SumPool = _pooling(_sums)
AvgPool = _pooling(_sums, _means)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each element with probability `rate`, scaled by its inverse; takes `rng=`.

    Any mode but "train" keeps all. ValueError without a key.
    """

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: instead of "
                "`apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, rng=key)`."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply_fun


def FanOut(num: int) -> Layer:
    """`num` times the same."""
    return _plain(lambda x: [x] * num, lambda shape: [shape] * num)


FanInSum = _plain(lambda inputs: sum(inputs), lambda shapes: shapes[0])


def FanInConcat(axis: int = -1) -> Layer:
    """A sequence of arrays, concatenated."""

    def shape(shapes):
        out = list(shapes[0])
        out[axis] = sum([s[axis] for s in shapes])
        return tuple(out)

    return _plain(lambda inputs: jnp.concatenate(inputs, axis), shape)


# -- putting layers together ----------------------------------------------------------------------


def _keys(rng: Any, count: int) -> Sequence[Any]:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """One after the other."""

    def init_fun(rng, input_shape):
        params = []
        for init, _ in layers:
            rng, key = random.split(rng)
            input_shape, found = init(key, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), found, key in zip(layers, params, keys, strict=True):
            inputs = apply(found, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Side by side: a sequence of inputs to a sequence of outputs. See `FanOut` and `FanInSum`."""

    def init_fun(rng, input_shape):
        keys = random.split(rng, len(layers))
        pairs = [
            init(key, shape)
            for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        shapes, params = zip(*pairs, strict=True)
        return shapes, params

    def apply_fun(params, inputs, **kwargs):
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            apply(found, x, rng=key, **kwargs)
            for (_, apply), found, x, key in zip(layers, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable) -> Layer:
    """The layer that a function makes of its input's shape."""

    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


check_arguments_of(globals())
__dir__ = public(__name__)
