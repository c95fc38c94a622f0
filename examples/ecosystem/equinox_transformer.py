"""A transformer block in Equinox, taught with Optax to reverse sequences of digits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

LENGTH, WIDTH, SYMBOLS = 8, 32, 10


class Block(eqx.Module):
    """Attention and an MLP, each with a norm before and a skip around it."""

    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, WIDTH, key=first)
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 64, 1, jax.nn.gelu, key=second)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)

    def __call__(self, x):
        y = jax.vmap(self.norm1)(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(jax.vmap(self.norm2)(x))


class Model(eqx.Module):
    """Symbols and places in, logits of symbols out."""

    embedding: eqx.nn.Embedding
    places: jax.Array
    block: Block
    readout: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 4)
        self.embedding = eqx.nn.Embedding(SYMBOLS, WIDTH, key=keys[0])
        self.places = jax.random.normal(keys[1], (LENGTH, WIDTH))
        self.block = Block(keys[2])
        self.readout = eqx.nn.Linear(WIDTH, SYMBOLS, key=keys[3])

    def __call__(self, tokens):
        x = jax.vmap(self.embedding)(tokens) + self.places
        return jax.vmap(self.readout)(self.block(x))


@eqx.filter_value_and_grad
def loss_of(model, tokens):
    logits = jax.vmap(model)(tokens)
    targets = tokens[:, ::-1]
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def main():
    model = Model(jax.random.key(0))
    optimizer = optax.adam(3e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    arrays = jax.tree.leaves(eqx.filter(model, eqx.is_array))
    print(f"{len(arrays)} arrays, {sum(x.size for x in arrays)} numbers")

    @eqx.filter_jit
    def step(model, state, key):
        tokens = jax.random.randint(key, (64, LENGTH), 0, SYMBOLS)
        loss, grads = loss_of(model, tokens)
        updates, state = optimizer.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, loss

    for number in range(41):
        model, state, loss = step(model, state, jax.random.key(number))
        if number % 10 == 0:
            print(f"step {number}: loss {loss:.4f}")

    frozen, trained = eqx.partition(model, lambda leaf: leaf is model.places)
    print(f"split: {len(jax.tree.leaves(frozen))} array apart")
    logits = eqx.combine(frozen, trained)(jnp.arange(LENGTH))
    print(f"logits: mean {jnp.mean(logits):.4f}, deviation {jnp.std(logits):.4f}")


if __name__ == "__main__":
    main()
