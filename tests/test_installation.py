"""The distribution: its name, the other project of that import name, and `python -m minijax`."""

import subprocess
import sys
from importlib.metadata import metadata

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
