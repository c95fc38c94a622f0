"""Mistakes that a type checker finds: an error on each line that ends in the comment `# wrong`."""

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import Array, lax, nn, random
from minijax.scipy import signal
from minijax.sharding import NamedSharding


def square(x: Array) -> Array:
    return x * x


def pair(x: Array, y: Array) -> tuple[Array, Array]:
    return x, y


@jax.jit
def step(params: dict[str, Array], x: Array) -> Array:
    return params["w"] @ x


@jax.custom_jvp
def clipped(x: Array) -> Array:
    return jnp.clip(x, 0, 1)


key = random.key(0)
x = jnp.ones((2, 3))
params = {"w": x}

jnp.sum("abc")  # wrong
jnp.summ(x)  # wrong
jnp.zeros((2, 3), dtype=3.5)  # wrong
jnp.sin(x, x)  # wrong
jnp.sum(x, axes=0)  # wrong
jnp.linspace(0, 1, num="5")  # wrong
x.reshaped(3, 2)  # wrong
x.sum(axis="rows")  # wrong
x.at[0].put(1.0)  # wrong
x.shape = (3, 2)  # wrong
size: str = x.size  # wrong
step(x, x)  # wrong
step(params)  # wrong
jax.vmap(square)(x, x)  # wrong
jax.grad(square)("x")  # wrong
jax.jit(square, static_argnums="x")  # wrong
jax.gradient(square)  # wrong
value, slope, rest = jax.jvp(square, (x,), (x,))  # wrong
lax.scan(lambda c: c, x, x)  # wrong
lax.fori_loop(0, 3, square, x)  # wrong
lax.cos(x, x, x)  # wrong
nn.softmax(x, axis="rows")  # wrong
random.normal(key, "abc")  # wrong
random.split(key, 2).keys()  # wrong
jax.device_put(x).upper()  # wrong
total: int = jnp.sum(x)  # wrong
clipped(x, x)  # wrong
jax.checkpoint(square)(x, 3)  # wrong
NamedSharding("mesh", jax.P())  # wrong
pair(x).sum()  # wrong
np.float32(3).block_until_ready()  # wrong
jnp.promote_types(1.5, jnp.float32)  # wrong
jnp.take(x, 0, fill_value="none")  # wrong
random.bits(key, dtype=3.5)  # wrong
signal.convolve(x, x, mode="some")  # wrong
lax.convert_element_type(x, 3.5)  # wrong
lax.axis_index(["rows"])  # wrong
