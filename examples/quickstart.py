"""The quickstart of JAX's documentation on minijax, then a classifier trained on real digits.

Run by `make demo`. The first part follows the documentation step by step; the second trains a small
convolutional network on scikit-learn's handwritten digits and saves a picture.
"""

import pathlib
import sys
import time

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import grad, jacfwd, jacobian, jacrev, jit, random, vmap


def timed(label, function, repeats=50):
    """Print how long a call takes, compilation left out."""
    function().block_until_ready()
    start = time.perf_counter()
    for _ in range(repeats):
        function().block_until_ready()
    took = (time.perf_counter() - start) / repeats
    print(f"{label:42s} {took * 1e6:10.1f} us a call")


# -- the quickstart --------------------------------------------------------------------------------


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def sum_logistic(x):
    return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))


def first_finite_differences(f, x, eps=1e-3):
    return jnp.array([(f(x + eps * v) - f(x - eps * v)) / (2 * eps) for v in jnp.eye(len(x))])


def hessian(fun):
    return jit(jacfwd(jacrev(fun)))


def quickstart():
    print("== jax.numpy")
    print(selu(jnp.arange(5.0)))

    print("\n== jit")
    key, subkey = random.split(random.key(1701))
    x = random.normal(subkey, (1_000_000,))
    timed("selu, operation by operation", lambda: selu(x))
    selu_jit = jit(selu)
    timed("selu under jit", lambda: selu_jit(x))

    print("\n== grad")
    x_small = jnp.arange(3.0)
    print("grad            ", grad(sum_logistic)(x_small))
    print("finite difference", first_finite_differences(sum_logistic, x_small))
    print("grad of jit of grad of jit of grad:", grad(jit(grad(jit(grad(sum_logistic)))))(1.0))
    print("jacobian of exp:")
    print(jacobian(jnp.exp)(x_small))
    print("hessian of sum_logistic:")
    print(hessian(sum_logistic)(x_small))

    print("\n== vmap")
    key1, key2 = random.split(key)
    mat = random.normal(key1, (150, 100))
    batched_x = random.normal(key2, (10, 100))

    def apply_matrix(v):
        return jnp.dot(mat, v)

    def naively_batched_apply_matrix(v_batched):
        return jnp.stack([apply_matrix(v) for v in v_batched])

    @jit
    def batched_apply_matrix(v_batched):
        return jnp.dot(v_batched, mat.T)

    @jit
    def vmap_batched_apply_matrix(v_batched):
        return vmap(apply_matrix)(v_batched)

    naive = naively_batched_apply_matrix(batched_x)
    for other in (batched_apply_matrix(batched_x), vmap_batched_apply_matrix(batched_x)):
        np.testing.assert_allclose(naive, other, atol=1e-4, rtol=1e-4)
    timed("naively batched", lambda: naively_batched_apply_matrix(batched_x))
    timed("manually batched", lambda: batched_apply_matrix(batched_x))
    timed("vectorized by vmap", lambda: vmap_batched_apply_matrix(batched_x))


# -- handwritten digits -----------------------------------------------------------------------------


def load_digits(key):
    """1,797 pictures of 8 x 8 pixels, shuffled; the last 360 are for testing."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.asarray(random.permutation(key, len(data.target)))
    images = jnp.asarray(data.images[order] / 16.0, jnp.float32)[..., None]
    labels = jnp.asarray(data.target[order])
    return (images[:-360], labels[:-360]), (images[-360:], labels[-360:])


def init_params(key):
    """Two convolutions and two dense layers, scaled after He et al. 2015."""
    shapes = {
        "conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 32), "dense": (2 * 2 * 32, 64), "out": (64, 10),
    }  # fmt: skip
    params = {}
    for name, subkey in zip(shapes, random.split(key, len(shapes)), strict=True):
        shape = shapes[name]
        fan_in = np.prod(shape[:-1])
        params[name] = {
            "w": random.normal(subkey, shape) * jnp.sqrt(2.0 / fan_in),
            "b": jnp.zeros(shape[-1]),
        }
    return params


def conv(layer, x):
    out = jax.lax.conv_general_dilated(
        x, layer["w"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jnp.maximum(out + layer["b"], 0)


def logits(params, images):
    x = conv(params["conv2"], conv(params["conv1"], images))
    x = x.reshape(x.shape[0], -1)
    x = jnp.maximum(x @ params["dense"]["w"] + params["dense"]["b"], 0)
    return x @ params["out"]["w"] + params["out"]["b"]


def loss(params, images, labels):
    scores = logits(params, images)
    chosen = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    peak = jnp.max(scores, axis=1)
    normalizer = peak + jnp.log(jnp.sum(jnp.exp(scores - peak[:, None]), axis=1))
    return jnp.mean(normalizer - chosen)


@jit
def train_step(params, momentum, images, labels, rate):
    value, gradient = jax.value_and_grad(loss)(params, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    params = jax.tree.map(lambda p, m: p - rate * m, params, momentum)
    return params, momentum, value


@jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(logits(params, images), axis=1) == labels)


def progress(step, steps, text):
    done = 30 * step // steps
    bar = "#" * done + "-" * (30 - done)
    end = "\n" if step == steps else ""
    if sys.stdout.isatty() or step == steps:
        print(f"\r[{bar}] {text}", end=end, flush=True)


def train(epochs=20, batch=32):
    data_key, init_key, shuffle_key = random.split(random.key(0), 3)
    (images, labels), test = load_digits(data_key)
    params = init_params(init_key)
    momentum = jax.tree.map(jnp.zeros_like, params)
    curve = []
    for epoch in range(epochs):
        order = random.permutation(random.fold_in(shuffle_key, epoch), len(labels))
        rate = 0.03 * (1 + np.cos(np.pi * epoch / epochs)) / 2
        for start in range(0, len(labels) - batch + 1, batch):
            rows = order[start : start + batch]
            params, momentum, value = train_step(params, momentum, images[rows], labels[rows], rate)
            curve.append(value)
        score = float(accuracy(params, *test))
        progress(epoch + 1, epochs, f"epoch {epoch + 1:2d}  test accuracy {score:.3f}")
    return params, np.array([float(v) for v in curve]), test, score


def picture(curve, params, test, path):
    """The loss curve, and samples with the predictions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    images, labels = (np.asarray(part) for part in test)
    predictions = np.asarray(jnp.argmax(logits(params, images), axis=1))
    figure = plt.figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.1))
    axes = left.subplots()
    axes.semilogy(curve, lw=0.8, color="#3465a4")
    axes.set(xlabel="step", ylabel="cross entropy", title="training loss")
    for index, cell in enumerate(right.subplots(4, 6).flat):
        cell.imshow(images[index, ..., 0], cmap="gray_r")
        right_one = predictions[index] == labels[index]
        cell.set_title(str(predictions[index]), color="black" if right_one else "red", fontsize=9)
        cell.axis("off")
    right.suptitle("test pictures and predictions")
    figure.savefig(path, dpi=110)
    return path


def digits():
    print("\n== a convolutional classifier on scikit-learn's digits")
    start = time.perf_counter()
    params, curve, test, score = train()
    print(f"trained in {time.perf_counter() - start:.1f} s; test accuracy {score:.1%}")
    path = pathlib.Path(__file__).resolve().parent.parent / "quickstart.png"
    print("picture:", picture(curve, params, test, path))
    if score < 0.95:
        raise SystemExit(f"test accuracy {score:.3f} is below 0.95")


if __name__ == "__main__":
    quickstart()
    digits()
