"""Ten things to know about JAX: pure functions, compilation, derivatives, keys, maps, trees, Optax, Flax.

python examples/seeds/ten_concepts.py                     on JAX
python -m minijax.jax examples/seeds/ten_concepts.py      on minijax
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import grad, jit, pmap, random, vmap
from jax import tree_util as tu


def pure_functions():
    traced = []

    @jit
    def impure(a, b):
        traced.append(1)  # happens while the function is traced, not when it runs
        return a + b

    print("three calls:", impure(1, 2), impure(3, 4), impure(5, 6), " effects:", len(traced))


def arrays():
    print(np.sqrt(4), jnp.sqrt(4))
    np_a, jnp_a = np.array([1.0, 2.0, 3.0]), jnp.array([1.0, 2.0, 3.0])
    print(np_a + 2, jnp_a + 2)
    print(np.array([[1, 2, 3]]) + np.arange(3), jnp.array([[1, 2, 3]]) + jnp.arange(3))
    print(np.sum(np_a), jnp.sum(jnp_a))
    print(np.mean(np_a), jnp.mean(jnp_a))
    print(np.dot(np_a, np_a), jnp.dot(jnp_a, jnp_a))
    x = jnp.array([1, 2, 3])
    try:
        x[0] = 10
    except TypeError:
        print("arrays do not change")
    print(x.at[0].set(10), x)


def compilation_and_derivatives():
    @jit
    def square(x):
        return x * x

    print("jit:", square(jnp.arange(4.0)))
    print("grad:", grad(lambda x: x**2 + 2 * x + 2)(2.0))


def random_numbers():
    key = random.PRNGKey(0)
    key, subkey = random.split(key)
    print("normal:", random.normal(subkey, ()))
    print("the same key again:", random.normal(subkey, ()))
    key, subkey = random.split(key)
    print("uniform:", random.uniform(subkey, (), minval=0.0, maxval=1.0))


def maps():
    def f(x):
        return x * x + 1

    x = jnp.array([1.0, 2.0, 3.0, 4.0])
    print("loop:", jnp.array([f(each) for each in x]))
    print("vmap:", vmap(f)(x))
    count = jax.local_device_count()
    print("pmap, a row a device:", pmap(f)(x[None].repeat(count, 0))[0])


def trees():
    tree = {"a": jnp.array([1, 2]), "b": [jnp.array([3, 4]), 5]}
    print("leaves:", tu.tree_leaves(tree))
    print("doubled:", tu.tree_map(lambda x: x * 2, tree))


def losses():
    logits, onehot = jnp.array([[2.0, -1.0]]), jnp.array([[1.0, 0.0]])
    x, y = jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0])
    labels = jnp.array([0])
    print(f"softmax: {optax.softmax_cross_entropy(logits, onehot).mean():.6f}")
    print(f"same: {optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean():.6f}")
    print(f"sigmoid: {optax.sigmoid_binary_cross_entropy(logits, onehot).mean():.6f}")
    print("l2:", optax.l2_loss(x, y).mean(), " huber:", optax.huber_loss(x, y).mean())


OPTIMIZERS = {
    "sgd": optax.sgd(learning_rate=1e-2),
    "momentum": optax.sgd(learning_rate=1e-2, momentum=0.9),
    "rmsprop": optax.rmsprop(1e-3),
    "adafactor": optax.adafactor(learning_rate=1e-3),
    "adam": optax.adam(1e-3),
    "adamw": optax.adamw(1e-3, weight_decay=1e-4),
    "clip": optax.clip(1.0),
    "clip by norm": optax.clip_by_global_norm(1.0),
    "decayed weights": optax.add_decayed_weights(1e-4),
    "noise": optax.add_noise(0.01, 0.55, random.key(3)),
    "chain": optax.chain(
        optax.clip_by_global_norm(1.0), optax.add_decayed_weights(1e-4), optax.adam(1e-3)
    ),
}
SCHEDULES = {
    "exponential": optax.exponential_decay(init_value=1e-3, transition_steps=1000, decay_rate=0.99),
    "cosine": optax.cosine_decay_schedule(init_value=1e-3, decay_steps=10_000),
    "linear": optax.linear_schedule(init_value=0.0, end_value=1e-3, transition_steps=500),
}


def optimizers():
    def loss(params):
        return jnp.sum((params["w"] - 3.0) ** 2) + params["b"] ** 2

    for name, optimizer in OPTIMIZERS.items():
        params = {"w": jnp.array([1.0, 2.0]), "b": jnp.array(0.5)}
        state = optimizer.init(params)
        for _ in range(5):
            _, grads = jax.value_and_grad(loss)(params)
            updates, state = optimizer.update(grads, state, params)
            params = optax.apply_updates(params, updates)
        print(f"{name}: w = {np.round(params['w'], 4)}, b = {params['b']:.4f}")
    for name, schedule in SCHEDULES.items():
        print(f"{name}: {[round(float(schedule(step)), 7) for step in (0, 250, 5000)]}")


class MLP(nn.Module):
    features: list

    @nn.compact
    def __call__(self, x):
        for f in self.features[:-1]:
            x = nn.relu(nn.Dense(f)(x))
        return nn.Dense(self.features[-1])(x)


LAYERS = {
    "dense": (nn.Dense(features=8), (2, 4)),
    "conv": (nn.Conv(features=4, kernel_size=(3, 3)), (1, 6, 6, 3)),
    "attention": (nn.MultiHeadDotProductAttention(num_heads=2), (1, 5, 8)),
    "batch norm": (nn.BatchNorm(use_running_average=True), (3, 4)),
    "layer norm": (nn.LayerNorm(), (3, 4)),
    "group norm": (nn.GroupNorm(num_groups=2), (3, 4)),
    "rms norm": (nn.RMSNorm(), (3, 4)),
    "dropout": (nn.Dropout(rate=0.1, deterministic=True), (3, 4)),
}
FUNCTIONS = {"relu": nn.relu, "gelu": nn.gelu, "sigmoid": nn.sigmoid, "tanh": nn.tanh}
CELLS = {
    "lstm": nn.LSTMCell(features=3),
    "optimized lstm": nn.OptimizedLSTMCell(features=3),
    "gru": nn.GRUCell(features=3),
}


def networks():
    key = random.PRNGKey(0)
    model = MLP([32, 16, 10])
    x = jnp.ones((1, 4))
    params = model.init(key, x)
    y = model.apply(params, x)
    print("MLP:", x.shape, "->", y.shape, np.round(y, 4))
    for name, (layer, shape) in LAYERS.items():
        x = random.normal(key, shape)
        out = layer.apply(layer.init(key, x), x)
        print(f"{name}: {x.shape} -> {out.shape}, of length {jnp.linalg.norm(out):.4f}")
    embed = nn.Embed(num_embeddings=100, features=6)
    words = jnp.array([1, 5, 99])
    out = embed.apply(embed.init(key, words), words)
    print(f"embed: {words.shape} -> {out.shape}, of length {jnp.linalg.norm(out):.4f}")
    for name, function in FUNCTIONS.items():
        print(f"{name}: {np.round(function(jnp.linspace(-2.0, 2.0, 5)), 4)}")
    image = random.normal(key, (1, 4, 4, 2))
    for name, pool in {"average": nn.avg_pool, "max": nn.max_pool}.items():
        out = pool(image, window_shape=(2, 2), strides=(2, 2))
        print(f"{name} pool: {out.shape}, {jnp.sum(out):.4f}")
    for name, cell in CELLS.items():
        x = random.normal(key, (2, 5))
        carry = cell.initialize_carry(key, x.shape)
        _, out = cell.apply(cell.init(key, carry, x), carry, x)
        print(f"{name}: {out.shape}, of length {jnp.linalg.norm(out):.4f}")


if __name__ == "__main__":
    pure_functions()
    arrays()
    compilation_and_derivatives()
    random_numbers()
    maps()
    trees()
    losses()
    optimizers()
    networks()
