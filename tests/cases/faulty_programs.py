"""Programs as users write them, each with a fault on the line that ends in `# here`.

`NANS` are faults that `explain.nan` finds, with whether they arise in a gradient and whether a `where`
was to hide them; `FAULTS` those that are errors in strict mode, with the class of the error;
`RETRACED` functions that are traced again, by the call on that line, with the cause.
"""

import dataclasses
import functools
import inspect

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, nn, random

NANS, FAULTS, RETRACED = {}, {}, {}


def line_of(f):
    """Return the number of the line of a function that ends in `# here`."""
    lines, first = inspect.getsourcelines(f)
    (place,) = (n for n, line in enumerate(lines) if line.rstrip().endswith("# here"))
    return first + place


def _nan(*, backward=False, masked=False):
    def add(f):
        NANS[f.__name__] = f, backward, masked
        return f

    return add


def _fault(kind):
    def add(f):
        FAULTS[f.__name__] = f, kind
        return f

    return add


def _retraced(cause):
    def add(f):
        RETRACED[f.__name__] = f, cause
        return f

    return add


# -- NaN, forward ----------------------------------------------------------------------------------


@_nan()
def attention_over_nothing():
    """A row of the mask that hides everything."""
    lengths = jnp.array([4, 0, 2])
    scores = jnp.ones((3, 4, 4))
    mask = jnp.arange(4)[None, None, :] < lengths[:, None, None]
    scores = jnp.where(mask, scores, -jnp.inf)
    weights = nn.softmax(scores, axis=-1)  # here
    return jnp.einsum("bqk,bkd->bqd", weights, jnp.ones((3, 4, 8)))


@_nan()
def variance_by_difference_of_squares():
    x = jnp.full(100, 1000.1)
    variance = jnp.mean(x**2) - jnp.mean(x) ** 2 - 1.0
    spread = jnp.sqrt(variance)  # here
    return (x - x.mean()) / spread


@_nan()
def softmax_without_the_maximum():
    def softmax(x):
        e = jnp.exp(x)
        return e / e.sum(-1, keepdims=True)  # here

    return jax.vmap(softmax)(jnp.array([[1.0, 2.0], [3.0, 100.0]]))


@_nan()
def mean_of_an_empty_group():
    groups = jnp.array([0, 0, 2, 2])
    values = jnp.array([1.0, 2.0, 3.0, 4.0])
    sums = jax.ops.segment_sum(values, groups, 3)
    counts = jax.ops.segment_sum(jnp.ones(4), groups, 3)
    return sums / counts  # here


@_nan()
def learning_rate_that_is_too_large():
    def loss(w):
        return jnp.sum(w**4)

    def step(w, _):
        g = jax.grad(loss)(w)
        w = w - 1.0 * g  # here
        return w, loss(w)

    return lax.scan(step, jnp.array([2.0, -3.0]), None, length=20)


@_nan()
def recurrent_cell():
    def cell(h, x):
        h = h * 8.0 + x
        gate = jnp.exp(h) / (1.0 + jnp.exp(h))  # here
        return gate * h, gate

    return jax.jit(lambda xs: lax.scan(cell, 0.0, xs)[0])(jnp.linspace(0.0, 3.0, 12))


@_nan()
def newton_without_a_bracket():
    def refine(x):
        return x - (x**2 - 2.0) / (2.0 * x)

    def body(state):
        n, x = state
        return n + 1, jnp.log(refine(x) - 3.0)  # here

    return lax.while_loop(lambda s: s[0] < 5, body, (0, 1.0))[1]


@_nan()
def matrix_that_is_not_positive_definite():
    x = jnp.array([0.0, 1.0, 2.0])
    covariance = jnp.exp(-((x[:, None] - x[None]) ** 2)) - 0.5 * jnp.eye(3)
    factor = jnp.linalg.cholesky(covariance)  # here
    return 2 * jnp.sum(jnp.log(jnp.diag(factor)))


# -- NaN in gradients ------------------------------------------------------------------------------


@_nan(backward=True)
def distances_of_all_pairs():
    points = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])

    def energy(points):
        difference = points[:, None] - points[None]
        squares = jnp.sum(difference**2, -1)  # here
        distance = jnp.sqrt(squares)
        return jnp.sum(jnp.exp(-distance))

    return jax.grad(energy)(points)


@_nan(backward=True)
def cosine_of_a_zero_vector():
    def similarity(a, b):
        norms = jnp.linalg.norm(a) * jnp.linalg.norm(b)  # here
        return a @ b / (norms + 1e-8)

    loss = lambda a, b: jax.vmap(similarity)(a, b).sum()
    return jax.jit(jax.grad(loss))(jnp.zeros((2, 3)), jnp.ones((2, 3)))


@_nan(backward=True)
def angle_between_equal_vectors():
    def angle(a, b):
        return jnp.arccos(a @ b)  # here

    a = jnp.array([1.0, 0.0])
    return jax.grad(lambda b: angle(a, b) * 0.0)(a)


@_nan(backward=True)
def normalized_layer_of_equal_inputs():
    def layer(p, x):
        x = x - x.mean(-1, keepdims=True)
        return x / (x.std(-1, keepdims=True) + 1e-6) * p  # here

    def loss(p, x):
        return jnp.sum(nn.relu(layer(p, x) * 0.0 + 1.0) ** 2)

    return jax.vmap(jax.grad(loss, argnums=1), (None, 0))(jnp.ones(4), jnp.ones((2, 4)))


@_nan(backward=True)
def power_with_a_learned_exponent():
    def loss(p, x):
        y = x ** p["exponent"]  # here
        return jnp.mean(y**2)

    return jax.grad(lambda x: loss({"exponent": 0.5}, x))(jnp.array([0.0, 1.0, 2.0]))


@_nan(backward=True)
def gradient_through_time():
    def simulate(velocity):
        def step(position, _):
            speed = jnp.sqrt(velocity**2)  # here
            return position + 0.1 * speed, None

        return lax.scan(step, 0.0, None, length=4)[0]

    return jax.grad(simulate)(0.0)


@_nan(backward=True)
def gradient_of_a_checkpointed_block():
    @jax.checkpoint
    def block(w, x):
        h = jnp.tanh(x @ w)
        scale = jnp.sqrt(jnp.sum(h**2, -1, keepdims=True))  # here
        return h / (scale + 1e-6)

    def loss(w):
        x = jnp.zeros((2, 3))
        for _ in range(2):
            x = block(w, x)
        return x.sum()

    return jax.jit(jax.value_and_grad(loss))(jnp.ones((3, 3)))


@_nan(backward=True)
def jacobian_of_coordinates():
    def polar(xy):
        radius = jnp.sqrt(xy @ xy)  # here
        return jnp.stack([radius, jnp.exp(xy[0])])

    return jax.jacrev(polar)(jnp.zeros(2))


@_nan()
def hessian_of_a_loss():
    def loss(w):
        penalty = jnp.abs(w) ** 1.5  # here
        return jnp.sum(penalty)

    return jax.hessian(loss)(jnp.array([0.0, 1.0]))


# -- a masked `where` ------------------------------------------------------------------------------


@_nan(backward=True, masked=True)
def entropy_of_a_policy():
    def entropy(p):
        terms = jnp.where(p > 0, -p * jnp.log(p), 0.0)  # here
        return terms.sum(-1).mean()

    return jax.grad(entropy)(jnp.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))


@_nan(backward=True, masked=True)
def potential_with_a_cutoff():
    def potential(r):
        inverse = 1.0 / r
        repulsion = 4.0 * (inverse**12 - inverse**6)  # here
        return jnp.where(r < 0.1, 0.0, repulsion).sum()

    return jax.jit(jax.grad(potential))(jnp.array([0.0, 1.0, 1.5]))


@_nan(masked=True)
def cardinal_sine_in_a_layer():
    def sinc(x):
        return jnp.where(x == 0, 1.0, jnp.sin(x) / x)  # here

    def loss(w, x):
        return jnp.sum(jax.vmap(sinc)(x * w))

    return jax.grad(loss)(2.0, jnp.array([0.0, 1.0]))


@_nan(backward=True, masked=True)
def huber_loss_by_root():
    def huber(error):
        small = 0.5 * error**2
        large = jnp.sqrt(jnp.square(error)) - 0.5  # here
        return jnp.where(jnp.abs(error) < 1, small, large)

    return jax.grad(lambda e: huber(e).mean())(jnp.array([0.0, 0.5, 3.0]))


@_nan(backward=True, masked=True)
def root_of_large_values():
    def loss(x):
        return jnp.where(jnp.abs(x) > 1e-6, jnp.sqrt(jnp.abs(x)), 0.0).sum()  # here

    return jax.vmap(jax.grad(loss))(jnp.array([0.0, -2.0]))


# -- indices out of bounds -------------------------------------------------------------------------


@_fault(IndexError)
def token_beyond_the_vocabulary():
    table = random.normal(random.key(0), (100, 8))
    tokens = jnp.array([[1, 5, 99], [3, 100, 2]])
    embedded = table[tokens]  # here
    return embedded.mean()


@_fault(IndexError)
def label_of_a_class_too_many():
    logits = jnp.zeros((4, 10))
    labels = jnp.array([1, 2, 10, 3])

    @jax.jit
    def loss(logits):
        scores = nn.log_softmax(logits)
        picked = scores[jnp.arange(4), labels]  # here
        return -picked.mean()

    return loss(logits)


@_fault(IndexError)
def labels_with_take_along_axis():
    logits = jnp.zeros((4, 10))
    labels = jnp.array([1, 2, 10, 3])

    def loss(logits):
        scores = nn.log_softmax(logits)
        picked = jnp.take_along_axis(scores, labels[:, None], axis=1)  # here
        return -picked.mean()

    return jax.grad(loss)(logits)


@_fault(IndexError)
def buffer_that_is_full():
    class Buffer:
        def __init__(self):
            self.data, self.size = jnp.zeros((4, 2)), 0

        def add(self, row):
            self.data = self.data.at[self.size].set(row)  # here
            self.size += 1

    buffer = Buffer()
    for n in range(5):
        buffer.add(jnp.ones(2) * n)
    return buffer.data


@_fault(IndexError)
def neighbours_of_a_grid():
    grid = jnp.arange(16.0).reshape(4, 4)

    def difference(i, total):
        right = grid[:, i + 1]  # here
        return total + jnp.sum(right - grid[:, i])

    return lax.fori_loop(0, 4, difference, 0.0)


@_fault(IndexError)
def window_at_the_end():
    series = jnp.arange(10.0)

    def window(start):
        return lax.dynamic_slice_in_dim(series, start, 4)  # here

    return jax.vmap(window)(jnp.arange(8))


@_fault(IndexError)
def cache_of_keys_and_values():
    def step(cache, position):
        new = jnp.ones((1, 2)) * position
        cache = lax.dynamic_update_slice(cache, new, (position, 0))  # here
        return cache, cache.sum()

    return lax.scan(step, jnp.zeros((3, 2)), jnp.arange(5))


@_fault(IndexError)
def counts_by_scatter():
    states = jnp.array([0, 2, 1, 3])
    counts = jnp.zeros(3).at[states].add(1.0)  # here
    return counts / counts.sum()


@_fault(IndexError)
def transitions_of_a_table():
    table = jnp.arange(6).reshape(3, 2)
    step = jax.jit(lambda s, a: table[s, a])  # here
    return step(1, 2)


@_fault(IndexError)
def batch_of_a_permutation():
    data = jnp.zeros((10, 3))
    order = random.permutation(random.key(0), 12)
    for n in range(0, 12, 4):
        batch = data[order[n : n + 4]]  # here
    return batch


# -- keys that are used twice ----------------------------------------------------------------------


@_fault(jax.errors.KeyReuseError)
def weights_and_biases_of_one_key():
    def layer(key, n, m):
        w = random.normal(key, (n, m))
        b = random.normal(key, (m,))  # here
        return w, b

    return layer(random.key(0), 3, 4)


@_fault(jax.errors.KeyReuseError)
def key_that_is_not_replaced():
    key = random.key(0)
    samples = []
    for _ in range(3):
        _, sub = random.split(key)  # here
        samples.append(random.normal(sub))
    return samples


@_fault(jax.errors.KeyReuseError)
def dropout_in_every_layer():
    def dropout(key, x):
        return jnp.where(random.bernoulli(key, 0.5, x.shape), x / 0.5, 0.0)  # here

    def net(key, x):
        for _ in range(2):
            x = dropout(key, nn.relu(x))
        return x.sum()

    return jax.grad(net, argnums=1)(random.key(0), jnp.ones(4))


@_fault(jax.errors.KeyReuseError)
def noise_of_a_sampler():
    def chain(key, x):
        def step(x, _):
            noise = random.normal(key, x.shape)  # here
            return x - 0.1 * x + 0.1 * noise, x

        return lax.scan(step, x, None, length=3)

    return jax.jit(chain)(random.key(0), jnp.zeros(2))


@_fault(jax.errors.KeyReuseError)
def augmentation_of_a_batch():
    @jax.vmap
    def augment(key, image):
        shift = random.uniform(key, (), minval=-1.0, maxval=1.0)
        flip = random.bernoulli(key)  # here
        return jnp.where(flip, image[::-1], image) + shift

    return augment(random.split(random.key(0), 2), jnp.ones((2, 4)))


@_fault(jax.errors.KeyReuseError)
def split_of_a_used_key():
    key = random.key(42)
    x = random.normal(key, (8,))
    first, second = random.split(key)  # here
    return x + random.normal(first, (8,)) + random.normal(second, (8,))


# -- values that are narrowed ----------------------------------------------------------------------


@_fault(OverflowError)
def milliseconds_since_the_epoch():
    stamps = np.array([1_700_000_000_000, 1_700_000_001_000])
    x = jnp.asarray(stamps)  # here
    return jnp.diff(x)


@_fault(OverflowError)
def image_of_bytes():
    image = jnp.zeros((2, 2), jnp.uint8)
    bright = jnp.array([250, 260])
    image = image.at[0].set(bright)  # here
    return image


@_fault(OverflowError)
def identifiers_of_a_table():
    table = {"id": np.array([2**33, 2**33 + 1]), "value": np.array([0.5, 1.5])}

    @jax.jit
    def mean(table):
        return jnp.mean(table["value"] * (table["id"] % 2))

    return mean(table)  # here


@_fault(OverflowError)
def physical_constants():
    planck, light = np.float64(6.62607015e-34), 2.998e8
    masses = jnp.array([1.0, 2.0])
    energies = masses * light**5  # here
    return energies * planck


@_fault(OverflowError)
def counter_of_small_integers():
    counts = jnp.zeros(3, jnp.int8)

    def count(n, counts):
        return counts.at[n].add(n * 100)  # here

    return lax.fori_loop(0, 3, count, counts)


@_fault(ValueError)
def precision_that_is_off():
    x = np.linspace(0.0, 1.0, 5)
    y = jnp.array(x, dtype=jnp.float64)  # here
    return jnp.cumsum(y)


# -- tracers that leak -----------------------------------------------------------------------------


@_fault(Exception)
def activations_that_are_kept():
    activations = []

    def net(w, x):
        h = jnp.tanh(x @ w)  # here
        activations.append(h)
        return h.sum()

    jax.jit(jax.grad(net))(jnp.ones((3, 3)), jnp.ones((2, 3)))
    return activations


@_fault(Exception)
def attribute_of_a_model():
    class Normalizer:
        mean = 0.0

        def __call__(self, x):
            mean = 0.9 * self.mean + 0.1 * x.mean()  # here
            self.mean = mean
            return x - mean

    model = Normalizer()
    step = jax.jit(lambda x: model(x))
    return step(jnp.ones(3)), model


@_fault(Exception)
def cached_property_within_jit():
    @dataclasses.dataclass
    class Kernel:
        points: np.ndarray

        @functools.cached_property
        def gram(self):
            scaled = jnp.asarray(self.points) * 2.0
            return scaled[:, None] * scaled[None]  # here

    kernel = Kernel(np.arange(3.0, dtype=np.float32))
    return jax.jit(lambda x: kernel.gram @ x)(jnp.ones(3)), kernel


@_fault(Exception)
def metrics_of_a_loop():
    metrics = {}

    def step(w, x):
        loss = (w * x - 1.0) ** 2  # here
        metrics["loss"] = loss
        return w - 0.1 * loss, None

    return lax.scan(step, 1.0, jnp.arange(3.0))[0], metrics


@_fault(Exception)
def memoized_function():
    known = {}

    def encode(n, x):
        if n not in known:
            known[n] = jnp.sin(x * n)  # here
        return known[n]

    return jax.vmap(lambda x: encode(2, x) + encode(2, x))(jnp.arange(3.0)), known


# -- NaN in strict mode ----------------------------------------------------------------------------


@_fault(FloatingPointError)
def likelihood_of_a_negative_scale():
    def likelihood(p, x):
        error = (x - p["mean"]) / p["scale"]
        return jnp.sum(-0.5 * error**2 - jnp.log(p["scale"]))  # here

    step = jax.jit(jax.value_and_grad(likelihood))
    return step({"mean": 0.0, "scale": -1.0}, jnp.arange(3.0))


@_fault(FloatingPointError)
def correlation_of_a_constant():
    def correlation(a, b):
        a, b = a - a.mean(), b - b.mean()
        return (a * b).sum() / jnp.sqrt((a**2).sum() * (b**2).sum())  # here

    return jax.vmap(correlation, (0, None))(jnp.ones((2, 3)), jnp.arange(3.0))


# -- functions that are traced again ---------------------------------------------------------------


@_retraced("shape")
def last_batch_is_smaller():
    data = np.zeros((10, 3), np.float32)
    loss = jax.jit(lambda x: jnp.mean(x**2))
    for start in range(0, 10, 4):
        batch = data[start : start + 4]
        loss(batch)  # here


@_retraced("shape")
def sequence_that_grows():
    @jax.jit
    def next_token(tokens):
        return jnp.argmax(jnp.cumsum(tokens)) % 7

    tokens = jnp.zeros(1, jnp.int32)
    for _ in range(3):
        new = next_token(tokens)  # here
        tokens = jnp.append(tokens, new)


@_retraced("number of axes")
def one_example_after_a_batch():
    predict = jax.jit(lambda w, x: x @ w)
    w = jnp.ones(3)
    predict(w, jnp.ones((4, 3)))
    return predict(w, jnp.ones(3))  # here


@_retraced("dtype")
def validation_in_another_precision():
    step = jax.jit(lambda x: x / 255)
    step(np.zeros((2, 2), np.float32))
    return step(np.zeros((2, 2), np.uint8))  # here


@_retraced("weak type")
def learning_rate_as_a_number():
    @jax.jit
    def update(w, rate):
        return w - rate * w

    w = update(jnp.ones(3), jnp.float32(0.1))
    return update(w, 0.01)  # here


@_retraced("number of arrays")
def optional_entry_of_a_batch():
    @jax.jit
    def loss(batch):
        x = batch["image"]
        return jnp.sum(x * batch["weight"] if "weight" in batch else x)

    batch = {"image": jnp.ones(3)}
    loss(batch)
    return loss({**batch, "weight": jnp.ones(3)})  # here


@_retraced("structure")
def argument_by_name():
    @jax.jit
    def dense(x, w):
        return x @ w

    x, w = jnp.ones(3), jnp.ones((3, 2))
    dense(x, w)
    return dense(x, w=w)  # here


@_retraced("static value")
def depth_of_a_network():
    @functools.partial(jax.jit, static_argnames="depth")
    def net(x, *, depth):
        for _ in range(depth):
            x = jnp.tanh(x)
        return x

    for depth in (1, 2):
        net(jnp.ones(3), depth=depth)  # here


@_retraced("static number")
def temperature_that_is_annealed():
    @functools.partial(jax.jit, static_argnums=1)
    def sample(logits, temperature):
        return nn.softmax(logits / temperature)

    for n in range(3):
        sample(jnp.ones(3), 1.0 / (n + 1))  # here


@_retraced("static object")
def configuration_without_equality():
    class Config:
        def __init__(self, width):
            self.width = width

    @functools.partial(jax.jit, static_argnums=0)
    def features(config, x):
        return jnp.tile(x, config.width)

    for _ in range(2):
        features(Config(2), jnp.ones(3))  # here


@_retraced("lambda or function defined anew")
def jit_within_the_training_loop():
    w = jnp.ones(3)
    for _ in range(3):
        gradient = jax.jit(jax.grad(lambda w: jnp.sum(w**2)))
        w = w - 0.1 * gradient(w)  # here


@_retraced("new closure")
def loss_for_each_penalty():
    def loss_with(penalty):
        def loss(w):
            return jnp.sum(w**2) * penalty

        return jax.jit(loss)

    for penalty in (0.1, 0.2, 0.3):
        loss = loss_with(penalty)
        loss(jnp.ones(3))  # here


@_retraced("new partial")
def partial_for_each_epoch():
    def decayed(w, factor):
        return w * factor

    w = jnp.ones(3)
    for epoch in range(3):
        step = jax.jit(functools.partial(decayed, factor=0.9**epoch))
        w = step(w)  # here


@_retraced("new object")
def method_of_a_model():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def predict(self, x):
            return x * self.scale

    for scale in (1.0, 2.0):
        predict = jax.jit(Model(scale).predict)
        predict(jnp.ones(3))  # here


@_retraced("setting")
def precision_that_is_changed():
    matmul = jax.jit(lambda a: a @ a)
    matmul(jnp.eye(3))
    with jax.default_matmul_precision("highest"):
        return matmul(jnp.eye(3))  # here
