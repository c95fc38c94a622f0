"""The distribution: its name, the other project of that import name, and `python -m minijax`."""

import os
import subprocess
import sys
import tarfile
from importlib.metadata import metadata
from pathlib import Path

import pytest

from minijax.installation import check_installation


def test_the_name_of_the_distribution():
    about = metadata("minijax-xla")
    assert about["Name"] == "minijax-xla" and about["License-Expression"] == "Apache-2.0"
    assert about["Author"] and about["Keywords"] and about.get_all("Classifier")


def test_files_of_the_other_project(tmp_path):
    check_installation(str(tmp_path))
    (tmp_path / "compute_graph.py").write_text("")
    with pytest.raises(
        ImportError, match=r"'minijax', another project.*compute_graph.py.*pip unin"
    ):
        check_installation(str(tmp_path))


def test_summary():
    done = subprocess.run(
        [sys.executable, "-m", "minijax"], capture_output=True, text=True, check=True
    )
    for word in ("minijax 0.", "jaxlib", "devices  ", "cache    ", "minijax.jax script.py"):
        assert word in done.stdout


def test_the_source_distribution_holds_and_runs_its_tests(tmp_path):
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder
    root = Path(__file__).parents[1]
    (built,) = builder(str(root)).build(directory=str(tmp_path))
    with tarfile.open(built) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(tmp_path)
    folder = Path(built.removesuffix(".tar.gz"))
    for part in ("tests", "examples", "minijax"):
        held = {path.relative_to(folder) for path in (folder / part).rglob("*.py")}
        assert held == {path.relative_to(root) for path in (root / part).rglob("*.py")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/test_installation.py", "-k", "other_project"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_every_module_without_docstrings():
    """`python -OO` leaves docstrings and assertions out."""
    program = (
        "import importlib, pkgutil, minijax\n"
        "for found in pkgutil.walk_packages(minijax.__path__, 'minijax.'):\n"
        "    if '__main__' not in found.name: importlib.import_module(found.name)\n"
        "x = minijax.numpy.ones(3)\n"
        "print(minijax.scipy.stats.norm.pdf.__doc__ is None)\n"
        "print(minijax.jit(minijax.grad(lambda x: minijax.scipy.stats.norm.pdf(x).sum()))(x))\n"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("True\n[-0.24197"), done.stdout + done.stderr
