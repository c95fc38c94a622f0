"""A program over the public face in which a type checker finds no error."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, assert_type

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import Array, lax, nn, random
from minijax.experimental import checkify
from minijax.numpy import fft, linalg
from minijax.scipy import linalg as jlinalg
from minijax.scipy import special
from minijax.scipy import stats as jstats
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax.tree_util import register_dataclass, register_pytree_node_class, tree_map
from minijax.typing import ArrayLike, DTypeLike

Params: TypeAlias = dict[str, Array]


# Arrays: made, looked at, computed with.
def creation(dtype: DTypeLike = jnp.float32) -> list[Array]:
    x = jnp.zeros((2, 3), dtype)
    y = jnp.arange(6).reshape(2, 3)
    z = jnp.linspace(0, 1, 5)
    w = jnp.array([[1.0, 2.0], [3.0, 4.0]], dtype=jnp.bfloat16)
    v = jnp.asarray(np.ones(3, np.float32))
    assert_type(x, Array)
    assert_type(y, Array)
    assert_type(z, Array)
    assert_type(jnp.concatenate([x, y], axis=0), Array)
    assert_type(jnp.stack((z, z)), Array)
    assert_type(jnp.where(x > 0, x, 0.0), Array)
    assert_type(jnp.full_like(x, 3), Array)
    assert_type(jnp.eye(3), Array)
    assert_type(jnp.split(y, 3, axis=1), list[Array])
    return [x, y, z, w, v]


def attributes(x: Array) -> tuple[tuple[int, ...], int, int, np.dtype[Any]]:
    assert_type(x.T, Array)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim + x.size, int)
    assert_type(x.astype(jnp.int32), Array)
    assert_type(x.reshape(-1), Array)
    assert_type(x.sum(axis=0, keepdims=True), Array)
    assert_type(x.mean(), Array)
    assert_type(x.max(axis=(0, 1)), Array)
    assert_type(float(x[0, 0]), float)
    assert_type(np.asarray(x).shape, tuple[Any, ...])
    for row in x:
        assert_type(row, Array)
    return x.shape, x.ndim, x.size, x.dtype


def operators(x: Array, y: ArrayLike) -> Array:
    z = x + y - 2 * x / (x**2 + 1) % 3
    z = -z @ z.T | (x < 0).astype(int)
    assert_type(x == 0, Array)
    assert_type(1.0 - x, Array)
    assert_type(x[..., None], Array)
    assert_type(x[0], Array)
    assert_type(x[x > 0], Array)
    assert_type(x[:, jnp.array([0, 1])], Array)
    return abs(z)


def updates(x: Array) -> Array:
    x = x.at[0].set(1.0)
    x = x.at[:, 1].add(x[:, 0])
    x = x.at[jnp.array([0, 1]), ...].multiply(2, mode="drop", unique_indices=True)
    assert_type(x.at[5].get(mode="fill", fill_value=0.0), Array)
    assert_type(x.at[0].apply(jnp.sin), Array)
    return x.at[1:].max(0)


# Functions of the libraries.
def functions(x: ArrayLike) -> Array:
    y = jnp.sin(x) + jnp.cos(x) * jnp.exp(x) - jnp.log1p(jnp.abs(x))
    y = jnp.maximum(y, 0) + jnp.arctan2(y, 2.0) + jnp.logaddexp(y, y)
    y = jnp.clip(y, 0, 1) + jnp.add(y, 1) * jnp.power(y, 2)
    assert_type(jnp.sqrt(2), Array)
    assert_type(jnp.add.reduce(y), Array)
    assert_type(jnp.equal(y, y), Array)
    assert_type(jnp.floor(y), Array)
    assert_type(jnp.sum(y, axis=-1), Array)
    assert_type(jnp.argsort(y), Array)
    assert_type(jnp.einsum("i,i->", y, y), Array)
    assert_type(jnp.dot(y, y, precision="highest"), Array)
    assert_type(jnp.tensordot(y, y, 1), Array)
    assert_type(jnp.cumsum(y), Array)
    assert_type(jnp.unravel_index(y, (2, 3)), tuple[Array, ...])
    assert_type(linalg.norm(y), Array)
    assert_type(linalg.inv(y), Array)
    assert_type(fft.fft(y), Array)
    assert_type(special.gammaln(y), Array)
    assert_type(special.erf(y), Array)
    assert_type(jstats.norm.logpdf(y, 0, 1), Array)
    return y


def activations(x: Array) -> Array:
    assert_type(nn.one_hot(jnp.arange(3), 3), Array)
    return nn.relu(x) + nn.gelu(x) + nn.softmax(x, axis=-1) + nn.sigmoid(x) + nn.tanh(x)


def sampling(key: Array) -> Array:
    key, sub = random.split(key)
    assert_type(random.normal(sub, (2, 3)), Array)
    assert_type(random.uniform(sub, minval=-1, maxval=1), Array)
    assert_type(random.bernoulli(sub, 0.5, (3,)), Array)
    assert_type(random.permutation(sub, 5), Array)
    assert_type(random.fold_in(key, 3), Array)
    assert_type(random.categorical(sub, jnp.zeros(3)), Array)
    init = nn.initializers.glorot_normal()
    assert_type(init(key, (3, 3), jnp.float32), Array)
    return random.choice(key, jnp.arange(3), (2,), replace=False)


# A model and its training.
class State(NamedTuple):
    """What a step of training takes and gives."""

    params: Params
    step: Array


def loss(params: Params, x: Array, y: Array) -> Array:
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def descend(parameter: Array, gradient: Array) -> Array:
    return parameter - 0.1 * gradient


@jax.jit
def train(state: State, x: Array, y: Array) -> tuple[State, Array]:
    value, gradients = jax.value_and_grad(loss)(state.params, x, y)
    assert_type(gradients, Params)
    assert_type(value, Array)
    params: Params = tree_map(descend, state.params, gradients)
    return State(params, state.step + 1), value


@partial(jax.jit, static_argnames=("n",), donate_argnums=0)
def powers(x: Array, n: int) -> Array:
    return jnp.stack([x**i for i in range(n)])


def loop(state: State, batches: Sequence[tuple[Array, Array]]) -> State:
    for x, y in batches:
        state, value = train(state, x, y)
        assert_type(value, Array)
    print(train.lower(state, *batches[0]).compile().as_text())
    return state


# Transforms.
def square(x: Array) -> Array:
    return x * x


def transforms(x: Array, params: Params) -> None:
    assert_type(jax.grad(square)(x), Array)
    assert_type(jax.grad(loss)(params, x, x), Params)
    assert_type(jax.vmap(square)(x), Array)
    assert_type(jax.vmap(square, in_axes=0, out_axes=1)(x), Array)
    assert_type(jax.jit(square)(x), Array)
    assert_type(jax.checkpoint(square)(x), Array)
    assert_type(jax.jit(jax.vmap(jax.grad(square)))(x), Array)
    out, tangent = jax.jvp(square, (x,), (x,))
    assert_type(out, Array)
    assert_type(tangent, Array)
    primal, pullback = jax.vjp(square, x)
    assert_type(primal, Array)
    (cotangent,) = pullback(primal)
    print(cotangent, jax.jacfwd(square)(x), jax.hessian(square)(x), jax.linearize(square, x)[0])
    print(jax.make_jaxpr(square)(x), jax.eval_shape(square, x))
    assert_type(jax.device_put(x), Array)
    assert_type(jax.block_until_ready(params), Params)
    squares: Params = jax.tree.map(square, params)
    print(squares)
    assert_type(jax.tree.leaves(params), list[Any])


def with_auxiliary(x: Array) -> tuple[Array, int]:
    return jnp.sum(x), 3


def auxiliary(x: Array) -> None:
    gradient, aux = jax.grad(with_auxiliary, has_aux=True)(x)
    assert_type(gradient, Array)
    assert_type(aux, int)
    (value, _), gradient = jax.value_and_grad(with_auxiliary, has_aux=True)(x)
    assert_type(value, Array)
    assert_type(gradient, Array)


@jax.custom_jvp
def clipped(x: Array) -> Array:
    return jnp.clip(x, 0, 1)


@clipped.defjvp
def _clipped_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return clipped(*primals), tangents[0]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def applied(f: Callable[[Array], Array], x: Array) -> Array:
    return f(x)


def _applied_fwd(f: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    return f(x), x


def _applied_bwd(f: Callable[[Array], Array], residual: Array, ct: Array) -> tuple[Array]:
    return (ct * f(residual),)


applied.defvjp(_applied_fwd, _applied_bwd)


# Control flow.
def control(x: Array) -> tuple[Array, Array]:
    def body(carry: Array, row: Array) -> tuple[Array, Array]:
        return carry + row, carry * row

    total, rows = lax.scan(body, x[0], x)
    assert_type(total, Array)
    assert_type(rows, Array)
    total = lax.fori_loop(0, 10, lambda i, c: c * 2, total)
    total = lax.while_loop(lambda c: jnp.all(c < 10), lambda c: c * 2, total)
    assert_type(total, Array)
    chosen = lax.cond(jnp.all(total > 0), square, jnp.negative, total)
    print(chosen, lax.switch(1, [square, square], total), lax.map(square, x))
    assert_type(lax.dynamic_slice(x, (0, 0), (1, 1)), Array)
    assert_type(lax.add(x, x), Array)
    assert_type(lax.top_k(x, 2)[0], Array)
    assert_type(lax.stop_gradient(x), Array)
    return total, rows


# Pytrees of one's own.
@register_pytree_node_class
class Point:
    """Two arrays."""

    def __init__(self, x: Array, y: Array) -> None:
        self.x, self.y = x, y

    def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
        return (self.x, self.y), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Array, Array]) -> "Point":
        return cls(*children)


def squared(point: Point) -> Point:
    result: Point = tree_map(square, point)
    return result


def points(point: Point) -> Point:
    assert_type(jax.vmap(squared)(point), Point)
    leaves, structure = jax.tree.flatten(point)
    assert_type(structure.num_leaves, int)
    other: Point = jax.tree.unflatten(structure, leaves)
    return other


# Results whose type a flag decides.
def flags(x: Array) -> None:
    assert_type(jnp.average(x), Array)
    assert_type(jnp.average(x, returned=True), tuple[Array, Array])
    assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
    assert_type(jnp.linalg.svd(x).S, Array)
    assert_type(jnp.linalg.qr(x, mode="r"), Array)
    assert_type(jnp.linalg.qr(x).Q, Array)
    assert_type(jnp.atleast_2d(x), Array)
    assert_type(jnp.atleast_2d(x, x), list[Array])
    assert_type(jax.nn.logsumexp(x), Array)
    assert_type(jax.nn.logsumexp(x, return_sign=True), tuple[Array, Array])
    assert_type(lax.sort(x), Array)
    assert_type(lax.sort((x, x), num_keys=2), tuple[Array, ...])
    assert_type(jlinalg.eigh(x, eigvals_only=True), Array)
    assert_type(jlinalg.lu(x, permute_l=True), tuple[Array, Array])
    zeros: Array = jnp.zeros(3, jnp.result_type(x, jnp.int8))
    print(jnp.finfo(x.dtype).eps, jax.typeof(x).sharding, jax.core.Tracer, zeros)
    print(jax.__version__, jax.__version_info__ >= (0, 1, 0))


# References.
def references(x: Array) -> None:
    ref = jax.new_ref(x)
    ref[0] += 1
    ref.at[1:].addupdate(2)
    assert_type(ref[...], Array)


# Many devices.
def devices(x: Array) -> Array:
    mesh = jax.make_mesh((1,), ("data",))
    assert_type(mesh, Mesh)
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    x = jax.device_put(x, sharding)

    def local(part: Array) -> Array:
        return lax.psum(part, "data")

    mapped = jax.shard_map(local, mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P())
    assert_type(mapped(x), Array)
    print(jax.devices()[0].platform, jax.device_count(), x.sharding)
    return x


def checked(x: Array) -> Array:
    def positive(x: Array) -> Array:
        checkify.check(jnp.all(x > 0), "not positive: {}", x)
        return jnp.log(x)

    error, out = checkify.checkify(positive)(x)
    error.throw()
    return out


def settings() -> None:
    jax.config.update("jax_enable_x64", False)
    with jax.enable_x64(True), jax.debug_nans(True):
        print(jnp.float64(1), jnp.int32(3), jnp.finfo(jnp.float32).eps, jnp.pi)
    jax.debug.print("x = {}", 3)


__all__ = ["Point", "creation", "register_dataclass"]
