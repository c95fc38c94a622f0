"""Working with tensors: a photograph filtered in NumPy and in JAX, devices, indices, dtypes, lax.

    python examples/seeds/working_with_tensors.py [FOLDER]                  on JAX
    python -m minijax.jax examples/seeds/working_with_tensors.py [FOLDER]   on minijax

The pictures are saved in FOLDER, or in a temporary one.
"""

import copy
import pathlib
import pickle
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal
from jax import lax, random
from jax.scipy.signal import convolve2d
from PIL import Image
from sklearn.datasets import load_sample_image

# -- a photograph as a tensor --------------------------------------------------------------------


def load():
    photograph = load_sample_image("china.jpg")
    print("the photograph:", photograph.ndim, photograph.shape, photograph.dtype)
    print("elements:", photograph.size, " bytes:", photograph.nbytes)
    print("bytes as float32:", photograph.astype(np.float32).nbytes)
    roof = photograph[100:240, 250:390, 1]  # the green channel of a part
    print("a part:", roof.shape)
    mirrored = photograph[:, ::-1, :]
    turned = np.rot90(photograph, k=2, axes=(0, 1))
    assert (turned[::-1] == mirrored).all() and (np.flip(photograph, 1) == mirrored).all()
    return photograph, roof


def save(folder, name, image):
    """An image of floats from 0 to 1, or of bytes, as a file."""
    image = np.asarray(image)
    if image.dtype != np.uint8:
        image = np.round(image * 255).astype(np.uint8)
    Image.fromarray(image).save(folder / name)


# -- filters: the same code for NumPy and for JAX ------------------------------------------------


def gaussian_kernel(xp, kernel_size, sigma=1.0, mu=0.0):
    """A Gaussian in two dimensions; `xp` is numpy or jax.numpy."""
    center = kernel_size // 2
    x, y = xp.mgrid[-center : kernel_size - center, -center : kernel_size - center]
    d = xp.sqrt(xp.square(x) + xp.square(y))
    factor = 1 / (2 * xp.pi * xp.square(sigma))
    return factor * xp.exp(-xp.square(d - mu) / (2 * xp.square(sigma)))


def kernels(xp):
    blur = xp.ones((5, 5))
    blur = blur / xp.sum(blur)
    spike = xp.zeros((5, 5)).astype(xp.float32)
    sharpen = xp.where(xp.arange(25).reshape(5, 5) == 12, 50.0, spike - 1)
    return {
        "blur": blur,
        "gauss": gaussian_kernel(xp, 5),
        "sharpen": sharpen / xp.sum(sharpen),
    }


def color_convolution(xp, convolve, image, kernel):
    """A filter applied to each channel of an image."""
    channels = [xp.clip(convolve(image[:, :, i], kernel, mode="same"), 0.0, 1.0) for i in range(3)]
    return xp.stack(channels, axis=2)


def process(photograph, folder):
    """Add noise, take it away by blurring, and sharpen: in NumPy, then in JAX."""
    image = (photograph / 255).astype(np.float32)
    noise = 0.1 * random.normal(random.key(0), image.shape)
    noisy = np.clip(image + np.asarray(noise), 0.0, 1.0)
    results = {}
    for name, xp, convolve in (("NumPy", np, scipy.signal.convolve2d), ("JAX", jnp, convolve2d)):
        by_name = kernels(xp)
        blurred = color_convolution(xp, convolve, xp.asarray(noisy), by_name["gauss"])
        restored = color_convolution(xp, convolve, blurred, by_name["sharpen"])
        results[name] = blurred, restored
        print(f"{name}: a kernel of {by_name['blur'].dtype}, an image of {restored.dtype}")
        for what, picture in (("noisy", noisy), ("blurred", blurred), ("restored", restored)):
            error = float(xp.sqrt(xp.mean((picture - image) ** 2)))
            print(f"  {what}: {error:.4f} from the photograph, of mean {float(picture.mean()):.4f}")
    for ours, theirs in zip(results["JAX"], results["NumPy"], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    blurred, restored = results["JAX"]
    save(folder, "noisy.png", noisy)
    save(folder, "blurred.png", blurred)
    save(folder, "restored.png", restored)
    top, bottom = np.hstack((image, noisy)), np.hstack((restored, blurred))
    save(folder, "all_four.png", np.vstack((top, bottom)))
    return image


# -- arrays ----------------------------------------------------------------------------------------


def arrays():
    print(np.sum([1, 42, 31337]), jnp.sum(jnp.array([1, 42, 31337])))
    try:
        jnp.sum([1, 42, 31337])
    except TypeError:
        print("a list is not an array")
    x = jnp.array([1, 42, 31337])
    print(repr(x), x.ndim, x.shape, x.dtype, x.size, x.nbytes)
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert isinstance(other, jax.Array) and (other == x).all()


def devices():
    print(jax.devices("cpu")[0], jax.local_devices(backend="cpu")[0], jax.process_index())
    x = jnp.array([1, 42, 31337])
    on_cpu = jax.device_put(x, jax.devices("cpu")[0])
    print("committed:", x.committed, on_cpu.committed, (x + on_cpu).committed)
    print("where:", on_cpu.devices(), " sum:", x + on_cpu)
    on_host = jax.device_get(x)
    print("on the host:", type(on_host).__name__, on_host)
    with jax.default_device(jax.devices("cpu")[0]):
        print("made there:", jnp.zeros(2).devices())
    a = jnp.arange(10_000.0).reshape(100, 100) / 10_000
    # A result is promised before it is there; printing waits for it, and so does this.
    print(f"the trace of a product: {jnp.trace(jnp.dot(a, a).block_until_ready()):.3f}")


def indices():
    x = jnp.array(range(10))
    try:
        x[5] = 100
    except TypeError:
        print("arrays do not change:", x.at[5].set(100))
    print(
        "beyond the end:", x[42], x.at[42].get(mode="clip"), x.at[42].get(mode="promise_in_bounds")
    )
    print("dropped or filled:", x.at[42].get(mode="drop"), x.at[42].get(mode="fill", fill_value=-1))
    print("an update beyond the end:", x.at[42].set(100))
    print("clipped:", x.at[42].set(100, mode="clip"))
    print("dropped:", x.at[jnp.array([2, 42])].add(100, mode="drop"))


def dtypes():
    with jax.enable_x64(True):
        print("64 bits:", jnp.array(range(10), dtype=jnp.float64).dtype)
    xb16 = jnp.array(range(10), dtype=jnp.bfloat16)
    x16 = jnp.array(range(10), dtype=jnp.float16)
    print(xb16.dtype, xb16.nbytes, x16.dtype)
    print("both kinds of 16 bits:", (xb16 + x16).dtype, xb16 + x16)
    print("one kind:", (xb16 + xb16).dtype, xb16 + xb16)
    names = ("bool_", "uint8", "int8", "int32", "bfloat16", "float16", "float32", "complex64")
    kinds = [getattr(jnp, name) for name in names]
    for one in kinds:
        print(f"{jnp.dtype(one)!s:>9}:", *(jnp.promote_types(one, other) for other in kinds))


# -- the lower interface ---------------------------------------------------------------------------


def low_level():
    print(repr(jnp.add(42, 42.0)), repr(jnp.add(42.0, 42.0)))
    try:
        lax.add(jnp.int32(42), jnp.float32(42.0))
    except TypeError:
        print("lax does not promote:", repr(lax.add(jnp.float32(42), 42.0)))


def add_noise(image, key):
    return jnp.clip(image + 0.05 * random.normal(key, image.shape), 0.0, 1.0)


def flip(image, key):
    return image[:, ::-1, :]


def rotate(image, key):
    return jnp.rot90(image, k=2, axes=(0, 1))


def adjust_colors(image, key):
    return jnp.clip(image * random.uniform(key, (3,), minval=0.7, maxval=1.3), 0.0, 1.0)


AUGMENTATIONS = [add_noise, flip, rotate, adjust_colors]


@jax.jit
def random_augmentation(image, key):
    """One of the transformations, chosen within the compiled program."""
    choice, noise = random.split(key)
    index = random.randint(choice, minval=0, maxval=len(AUGMENTATIONS), shape=())
    return index, lax.switch(index, AUGMENTATIONS, image, noise)


def augment(image, folder):
    part = jnp.asarray(image[100:240, 250:390])
    chosen, pictures = jax.vmap(random_augmentation, in_axes=(None, 0))(
        part, random.split(random.key(7), 6)
    )
    for index, picture in zip(chosen, pictures, strict=True):
        print(f"{AUGMENTATIONS[index].__name__}: corner {np.round(picture[0, 0], 3)}")
    save(folder, "augmented.png", np.hstack([part, *pictures]))


def main(folder):
    photograph, roof = load()
    save(folder, "roof.png", roof)
    image = process(photograph, folder)
    arrays()
    devices()
    indices()
    dtypes()
    low_level()
    augment(image, folder)
    print("saved:", *sorted(path.name for path in folder.glob("*.png")))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        chosen_folder = pathlib.Path(sys.argv[1])
        chosen_folder.mkdir(parents=True, exist_ok=True)
        main(chosen_folder)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
