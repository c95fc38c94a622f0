"""A Flax MLP, trained with Optax on the handwritten digits that ship with scikit-learn."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits


class Classifier(nn.Module):
    """Two hidden layers with normalization and dropout."""

    features: tuple[int, ...] = (64, 32)

    @nn.compact
    def __call__(self, x, train: bool):
        for size in self.features:
            x = nn.Dense(size)(x)
            x = nn.LayerNorm()(x)
            x = nn.relu(x)
            x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(10)(x)


def main():
    images, labels = load_digits(return_X_y=True)
    images, labels = jnp.asarray(images / 16.0, jnp.float32), jnp.asarray(labels, jnp.int32)
    train, test = slice(0, 1500), slice(1500, None)

    model = Classifier()
    params = model.init(jax.random.key(0), images[:1], train=False)["params"]
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    print(f"parameters: {count}")

    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.01, 5, 60)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    state = optimizer.init(params)

    def loss_of(params, key, x, y):
        logits = model.apply({"params": params}, x, train=True, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    @jax.jit
    def step(params, state, key, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, key, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    key = jax.random.key(1)
    for epoch in range(2):
        key, shuffle = jax.random.split(key)
        order = jax.random.permutation(shuffle, 1500).reshape(30, 50)
        losses = []
        for rows in order:
            key, noise = jax.random.split(key)
            params, state, loss = step(params, state, noise, images[rows], labels[rows])
            losses.append(loss)
        print(f"epoch {epoch}: loss {jnp.mean(jnp.stack(losses)):.4f}")

    logits = model.apply({"params": params}, images[test], train=False)
    accuracy = jnp.mean(jnp.argmax(logits, -1) == labels[test])
    print(f"trained on {labels[train].size}, accuracy on {labels[test].size}: {accuracy:.3f}")


if __name__ == "__main__":
    main()
