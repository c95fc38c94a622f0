"""The programs of five tutorials: each prints the same on upstream and through the stand-in."""

import importlib.util
import pathlib

import pytest

from tests.jax.test_ecosystem import output, same_numbers, start

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "seeds"
NEEDS = {
    "introduction": [],
    "numpy_and_jax": [],
    "quickstart": [],
    "ten_concepts": ["flax", "optax"],
    "working_with_tensors": ["PIL", "scipy", "sklearn"],
}


def test_every_program_is_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_same_output(name):
    missing = [library for library in NEEDS[name] if importlib.util.find_spec(library) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install minijax[ecosystem])")
    script = str(EXAMPLES / f"{name}.py")
    upstream = start([script])
    standin = start(["-m", "minijax.jax", script])
    theirs, ours = output(upstream, "upstream"), output(standin, "the stand-in")
    assert ours.strip()
    same_numbers(ours, theirs)


def test_pictures_are_saved(tmp_path):
    """In the folder that is given."""
    missing = [
        name for name in ("PIL", "scipy", "sklearn") if importlib.util.find_spec(name) is None
    ]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install minijax[ecosystem])")
    script = str(EXAMPLES / "working_with_tensors.py")
    output(start(["-m", "minijax.jax", script, str(tmp_path / "pictures")]), "the stand-in")
    names = {path.name for path in (tmp_path / "pictures").glob("*.png")}
    assert {"noisy.png", "restored.png", "augmented.png"} <= names
