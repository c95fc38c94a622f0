"""Real libraries on minijax: each example gives the same numbers on upstream and through the
stand-in.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ecosystem"
NEEDS = {
    "chex_training": ["chex"],
    "equinox_transformer": ["equinox", "optax"],
    "flax_digits": ["flax", "optax", "sklearn"],
    "haiku_recurrent": ["haiku", "optax"],
    "optax_tour": ["optax"],
}
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+")


def start(arguments):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process, name):
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, f"{name}: {err[-3000:]}"
    return out


def same_numbers(ours, theirs):
    """The same text, and numbers within 1e-4 of each other, or of the last digit that is shown."""
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for one, other in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
        if one != other:
            digits = len(other.partition(".")[2].partition("e")[0])
            near = max(1e-4 * abs(float(other)), 1.5 * 10**-digits if digits else 0)
            assert abs(float(one) - float(other)) <= near, (one, other)


def test_every_example_is_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_same_numbers(name):
    missing = [library for library in NEEDS[name] if importlib.util.find_spec(library) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install minijax[ecosystem])")
    script = str(EXAMPLES / f"{name}.py")
    upstream = start([script])
    standin = start(["-m", "minijax.jax", script])
    theirs, ours = output(upstream, "upstream"), output(standin, "the stand-in")
    assert ours.strip()
    same_numbers(ours, theirs)
