"""The stand-in: `import jax` resolves to minijax, for programs and libraries written for upstream.

Importing this package does nothing; it is switched on by one of

    import minijax.jax; minijax.jax.install()          # first thing in a program
    python -m minijax.jax script.py args               # or: -m module args
    %load_ext minijax.jax                              # in a notebook
    pytest -p minijax.jax                              # for a library's own tests

In such a process `jax.numpy` is the module object `minijax.numpy`, and so on for every public module;
upstream is never imported, whether or not it is installed. Names that libraries and test suites take
from `jax._src` are given where minijax has an honest counterpart (see `names` and `modules`), and
`jax._src.test_util` is `testing`; any other raises AttributeError or ImportError and says that
minijax does not have it.
"""

from typing import Any

from minijax.jax.finder import API_VERSION, install, is_installed

__all__ = ["API_VERSION", "install", "is_installed"]


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext minijax.jax`: ImportError if the notebook has imported upstream already."""
    install()


def pytest_addoption(parser: Any) -> None:
    """The first hook that pytest calls for `-p minijax.jax`: before any conftest is imported."""
    install()
