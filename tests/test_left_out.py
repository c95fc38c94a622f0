"""The package works without some of its features, and importing it starts nothing."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.both_ends

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_import_starts_nothing():
    """Importing minijax starts no XLA client, runs no computation, and imports no upstream."""
    program = (
        "import sys\n"
        "import minijax, minijax.numpy\n"
        "from minijax.runtime import platforms, executables\n"
        "assert not platforms._clients, platforms._clients\n"
        "assert not executables._in_memory\n"
        "assert 'jax' not in sys.modules\n"
        "x = minijax.numpy.arange(3.) + 1\n"
        "import numpy as np\n"
        "minijax.jit(lambda x, n: x * n)(np.ones(3, np.float32), 2.5), minijax.numpy.sin(np.ones(3))\n"
        "[x * n + n for n in range(9)], [minijax.numpy.sin(n / 7) for n in range(9)]\n"
        "repr(x); x.tolist(); minijax.grad(lambda x: (x * x).sum())(x)\n"
        "f = lambda x: minijax.lax.fori_loop(0, 3, lambda i, y: minijax.numpy.sin(y), x)\n"
        "minijax.vmap(minijax.linearize(minijax.jit(f), x)[1])(x[None])\n"
        "ref = minijax.new_ref(x)\n"
        "ref[0] = minijax.jit(lambda x: ref[0] + x)(x[0])\n"
        "assert ref[0] == 2\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


LEFT_OUT = {  # features that the package works without
    "hijax": "minijax.features.hijax",
    "key reuse": "minijax.lax.key_reuse",
    "references": "minijax.features.references",
    "symbolic sizes": "minijax.features.symbolic",
}


@pytest.mark.parametrize("feature", LEFT_OUT)
def test_the_package_works_without(feature):
    program = (
        "import sys\n"
        f"sys.modules[{LEFT_OUT[feature]!r}] = None  # as if it were not there\n"
        "import minijax as jax, minijax.numpy as jnp\n"
        "x = jnp.arange(3.)\n"
        "step = jax.checkpoint(lambda c, x: (c + jnp.sin(x[None]).sum(), x[1:].sum()))\n"
        "run = lambda x: jax.lax.scan(step, 0., x.reshape(3, 1))\n"
        "assert jax.grad(lambda x: run(x)[0])(x)[0] == 1\n"
        "assert jax.vmap(jax.jit(run))(x[None])[0].shape == (1,)\n"
        "assert jax.random.uniform(jax.random.key(0)).at[()].set(2) == 2\n"
        "assert jax.jit(jnp.cos).lower(x).compile()(x)[0] == 1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_tests_pass_without_features():
    """Part of the tests of `jit`, without all features that may be left out."""
    program = (
        "import sys, pytest\n"
        f"sys.modules.update(dict.fromkeys({list(LEFT_OUT.values())}))\n"
        "tests = ['tests/transforms/test_jit.py', '-k', 'test_agrees']\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', *tests]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
